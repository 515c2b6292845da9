"""Work that fits share: once in a block, forgotten afterwards, and never mixed up."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from transduce import ConformalTransducer, SpectralGraphTransducer, TransductiveBlend
from transduce.core.computing import once, reusing
from transduce.methods.spectral_graph import graph


class Count:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls


def test_once_in_a_block():
    rows, count = np.arange(6.0).reshape(3, 2), Count()
    assert [once("a", rows, 1, count) for _ in range(2)] == [
        1,
        2,
    ]  # outside of a block nothing is kept
    with reusing():
        first = once("a", rows, 1, count)
        with reusing():  # the outer block keeps for the inner one
            assert once("a", rows.copy(), 1, count) == first == 3
        assert once("a", rows, 1, count) == first
    with reusing():
        assert once("a", rows, 1, count) == 4
    with pytest.raises(ZeroDivisionError), reusing():
        once("a", rows, 1, lambda: 1 // 0)
    assert [once("a", rows, 1, count) for _ in range(2)] == [5, 6]


def test_what_differs_is_told_apart():
    rows, count = np.arange(6.0).reshape(3, 2), Count()
    others = [
        ("b", rows, 1),
        ("a", rows, 2),
        ("a", rows.reshape(2, 3), 1),
        ("a", rows + 1e-12, 1),
        ("a", rows.astype(np.float32), 1),
        ("a", rows[::-1], 1),
        ("a", sp.csr_array(rows), 1),
        ("a", sp.csr_array(rows[:, ::-1]), 1),
    ]
    with reusing():
        assert once("a", rows, 1, count) == 1
        assert once("a", np.asfortranarray(rows), 1, count) == 1
        assert [once(*key, count) for key in others] == list(range(2, 10))
        assert once(*others[-2], count) == 8  # the last two are kept
        assert once(*others[0], count) == 10


@pytest.mark.parametrize("sparse", [False, True])
def test_a_shared_graph_is_the_same_graph_in_any_order(sparse):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4)) + 4.0 * (np.arange(90) % 3 == 0)[:, None]
    y = np.where(np.arange(90) < 12, np.where(np.arange(90) % 3 == 0, "a", "b"), None).astype(
        object
    )
    give = sp.csr_array if sparse else np.asarray
    model = SpectralGraphTransducer(random_state=0, n_components=20)
    plain = model.fit(give(X), y)
    graph, scores = plain.graph_.toarray(), plain.answer_.scores
    with reusing():
        for order in (np.arange(90), random.permutation(90)):
            again = SpectralGraphTransducer(random_state=0, n_components=20).fit(
                give(X[order]), y[order]
            )
            np.testing.assert_allclose(
                again.graph_.toarray(), graph[np.ix_(order, order)], atol=1e-12
            )
            np.testing.assert_allclose(
                again.answer_.scores[np.argsort(order[again.answer_.rows])], scores, atol=1e-6
            )
            assert again.graph_.diagnostics == plain.graph_.diagnostics
    np.testing.assert_array_equal(  # in a block or not, the answers are the same to the bit
        SpectralGraphTransducer(random_state=0, n_components=20).fit(give(X), y).answer_.scores,
        scores,
    )
    with reusing():
        np.testing.assert_array_equal(
            SpectralGraphTransducer(random_state=0, n_components=20).fit(give(X), y).answer_.scores,
            scores,
        )


def test_both_fits_have_one_spectrum(monkeypatch):
    calls = []
    real = graph.graph_spectrum
    monkeypatch.setattr(
        graph, "graph_spectrum", lambda *a, **k: calls.append(len(calls)) or real(*a, **k)
    )
    random = np.random.default_rng(1)
    X = random.normal(size=(150, 3))
    y = np.where(np.arange(150) < 60, np.where(X[:, 0] > 0, "u", "v"), None).astype(object)
    blend = TransductiveBlend(task="classification", standardize=False, random_state=0)
    model = ConformalTransducer(blend, refit=True, random_state=0).fit(X, y)
    assert len(calls) == 1
    assert "spectral_graph" in model.estimator_.estimators_
