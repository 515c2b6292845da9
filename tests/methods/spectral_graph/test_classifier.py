"""The spectral graph transducer: the constrained minimum, laws, limits, refusals; break-even; choice of neighbours."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from tests import brute
from tests.libraries import polars as pl
from tests.methods.spectral_graph.test_graph import blobs, ring
from transduce import SpectralGraphTransducer
from transduce.core.scaling import fit_temperature
from transduce.display import GraphMapDisplay
from transduce.methods.spectral_graph import Spectrum, graph_spectrum, neighbor_graph
from transduce.methods.spectral_graph.cut import (
    default_label_weight,
    first_ranks,
    minimise_on_sphere,
)
from transduce.metrics import precision_recall_break_even


def random_graph(n, seed, share=0.3):
    """A connected graph with random weights."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(0.1, 1.0, size=(n, n)) * (rng.uniform(size=(n, n)) < share)
    A = np.triu(A, 1) + np.diag(rng.uniform(0.1, 1.0, n - 1), 1)
    return A + A.T


def labels_for(n, n_labelled, seed, names=(0, 1)):
    rng = np.random.default_rng(seed)
    y = np.full(n, None, dtype=object)
    rows = rng.choice(n, n_labelled, replace=False)
    y[rows] = np.array(list(names), dtype=object)[np.arange(n_labelled) % len(names)]
    return y


def on_graph(**settings):
    return SpectralGraphTransducer(metric="precomputed", random_state=0, **settings)


# --------------------------------------------------------------------------------------------------- exact


@given(
    st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 25), st.sampled_from([0.5, 3200.0])
)
@example(853, 2, 17, 3200.0)
def test_scores_solve_the_paper_s_eigenproblem(seed, n_labelled, d, label_weight):
    A = random_graph(30, seed)
    y = labels_for(30, n_labelled, seed)
    model = on_graph(n_components=d, label_weight=label_weight).fit(A, y)
    labelled = np.flatnonzero(y != None)  # noqa: E711
    scores, objective = brute.spectral_scores(A, labelled, y[labelled] == 1, label_weight, d)
    np.testing.assert_allclose(model.scores_, scores, atol=2e-6)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    assert model.scores_ @ model.scores_ == pytest.approx(30.0)


@given(
    st.integers(0, 10_000),
    st.integers(2, 25),
    st.sampled_from(["normalized", "plain"]),
    st.sampled_from(["squares", "eigenvalues", "ranks", "values"]),
)
def test_other_laplacians_and_spectra(seed, d, laplacian, kind):
    A = 3.0 * random_graph(30, seed)
    y = labels_for(30, 6, seed)
    penalties = {
        "squares": np.arange(1.0, d + 1) ** 2,
        "eigenvalues": brute.graph_eigenpairs(A, d, laplacian)[0],
        "ranks": np.sqrt(np.arange(1.0, d + 1)),
        "values": np.linspace(0.5, 7.0, 25)[:d],
    }
    spectrum = {"ranks": np.sqrt, "values": np.linspace(0.5, 7.0, 25)}.get(kind, kind)
    settings = {"n_components": d, "laplacian": laplacian, "spectrum": spectrum}
    model = on_graph(label_weight=5.0, **settings).fit(A, y)
    labelled = np.flatnonzero(y != None)  # noqa: E711
    scores, objective = brute.spectral_scores(
        A, labelled, y[labelled] == 1, 5.0, d, laplacian, penalties[kind]
    )
    np.testing.assert_allclose(model.scores_, scores, atol=2e-6)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("n", [900, 3500])  # by ARPACK, and by filtering in single precision
def test_a_large_plain_spectrum(n):
    graph = neighbor_graph(np.random.default_rng(0).normal(size=(n, 5)), metric="euclidean")
    L = sp.diags_array(graph.sum(axis=0)) - graph
    spectrum = graph_spectrum(graph, n_components=6, laplacian="plain", random_state=0)
    V = spectrum.vectors.astype(float)
    np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-4)
    np.testing.assert_allclose(V.sum(axis=0), 0.0, atol=1e-3)
    residuals = np.linalg.norm(L @ V - V * spectrum.values, axis=0)
    assert residuals.max() < 1e-3
    np.testing.assert_allclose(residuals, spectrum.residuals, atol=1e-5)
    if n < 1000:
        lowest = np.linalg.eigvalsh(L.toarray())[:7]
    else:  # inverses of a shifted matrix, since all eigenvalues of a large one take long
        lowest = np.sort(eigsh(L.tocsc(), k=7, sigma=-0.1, return_eigenvectors=False))
    np.testing.assert_allclose(spectrum.values, lowest[1:], rtol=1e-4)


def test_plain_parts_have_constant_null_vectors(tmp_path):
    """Two parts, a label of each class in both: the answer is that of one of them alone, twice."""
    part = random_graph(12, 1)
    A = sp.block_diag([part, part]).toarray()
    y = labels_for(12, 4, 1)
    both = on_graph(laplacian="plain").fit(A, np.concatenate([y, y]))
    np.testing.assert_allclose(both.scores_[:12], both.scores_[12:], atol=1e-8)
    path = tmp_path / "spectrum.npz"
    both.spectrum_.save(path)
    again = on_graph(laplacian="plain").fit(Spectrum.load(path), np.concatenate([y, y]))
    np.testing.assert_array_equal(again.scores_, both.scores_)
    with pytest.raises(ValueError, match="another Laplacian: set laplacian='plain'"):
        on_graph().fit(Spectrum.load(path), np.concatenate([y, y]))


def test_probabilities_fit_hidden_labels():
    """Up to ten labels are hidden one by one; the prior is given, which hiding them would change."""
    A = random_graph(40, 3)
    settings = {"class_costs": None, "class_prior": {0: 0.4, 1: 0.6}}
    y = labels_for(40, 8, 3)
    model = on_graph(**settings).fit(A, y)
    shares = model.predict_proba(A)
    margins = []
    codes = []
    for row in np.flatnonzero(y != None):  # noqa: E711
        hidden = y.copy()
        hidden[row] = None
        again = on_graph(**settings).fit(A, hidden)
        margins.append(again.scores_[row] - again.thresholds_)
        codes.append(y[row])
    factor = fit_temperature(np.column_stack([np.negative(margins), margins]), np.array(codes))
    second = 1.0 / (1.0 + np.exp(-2.0 * factor * model.decision_function(A)))
    np.testing.assert_allclose(shares, np.column_stack([1.0 - second, second]), atol=1e-6)


def test_probabilities_of_digits():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(400) < 80, truth[:400], np.nan)
    model = SpectralGraphTransducer(random_state=0).fit(X[:400], y)
    new = slice(400, 600)
    shares = model.predict_proba(X[new])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X[new]))
    assert -np.mean(np.log(shares[np.arange(200), truth[new]])) < 0.7
    order = np.random.default_rng(0).permutation(400)
    other = SpectralGraphTransducer(random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(other.predict_proba(X[new]), shares, atol=1e-6)
    few = SpectralGraphTransducer().fit(X[:30], labels_for(30, 2, 0))  # no label can be hidden
    second = 1.0 / (1.0 + np.exp(-2.0 * few.decision_function(X[30:40])))
    np.testing.assert_allclose(few.predict_proba(X[30:40])[:, 1], second)


def test_several_classes_are_held_against_the_rest():
    A, y = random_graph(40, 3), labels_for(40, 9, 3, names="abc")
    model = on_graph(n_components=12).fit(A, y)
    labelled = np.flatnonzero(y != None)  # noqa: E711
    for j, name in enumerate("abc"):
        scores, objective = brute.spectral_scores(A, labelled, y[labelled] == name, 3200.0, 12)
        np.testing.assert_allclose(model.scores_[:, j], scores, atol=1e-7)
        assert model.objective_[j] == pytest.approx(objective)
    margins = model.scores_ - model.thresholds_
    unlabelled = model.answer_.rows
    np.testing.assert_array_equal(
        model.answer_.values, np.array(list("abc"))[margins[unlabelled].argmax(axis=1)]
    )
    np.testing.assert_allclose(model.answer_.scores, margins[unlabelled])
    np.testing.assert_allclose(model.thresholds_, 0.5 * (np.sqrt(2) - np.sqrt(0.5)))


@given(st.integers(0, 10_000), st.integers(2, 6), st.floats(-3, 3))
def test_minimum_on_a_sphere_is_that_of_a_general_optimiser(seed, d, log_radius):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(d, d))
    G, b, n = G + G.T, rng.normal(size=d), float(np.exp(log_radius))
    best = minimise_on_sphere(G, b, n)
    assert best.w @ best.w == pytest.approx(n)
    np.testing.assert_allclose(
        G @ best.w - best.multiplier * best.w, b, atol=1e-7 * (1 + np.abs(b).max())
    )
    value = best.w @ G @ best.w - 2 * b @ best.w
    assert value == pytest.approx(brute.minimum_on_sphere(G, b, n, n_starts=8), abs=1e-6)


@given(st.integers(0, 10_000), st.booleans())
def test_hard_case_has_two_minima_or_a_sphere_of_them(seed, degenerate):
    """b has no part along the leading eigenvectors, and the sphere is too large for the rest."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    eigenvalues = np.array([1.0, 1.0 if degenerate else 2.0, 3.0, 5.0, 8.0])
    G, b = Q @ np.diag(eigenvalues) @ Q.T, Q[:, 2:] @ rng.normal(size=3)
    best = minimise_on_sphere(G, b, 100.0)
    smallest = brute.minimum_on_sphere(G, b, 100.0, n_starts=8)
    assert best.free.shape == (5, 2 if degenerate else 1)
    u = rng.normal(size=best.free.shape[1])
    u /= np.linalg.norm(u)
    for w in (best.w, best.fixed + best.free @ u, best.fixed - best.free @ u):
        assert w @ w == pytest.approx(100.0)
        assert w @ G @ w - 2 * b @ w == pytest.approx(smallest, rel=1e-6)
    easy = minimise_on_sphere(
        G, 1000.0 * b, 1.0
    )  # the same b, but the sphere is small: one minimum
    assert easy.free.shape[1] == 0
    assert easy.w @ easy.w == pytest.approx(1.0)


@pytest.mark.parametrize("graph", [ring(16, 1), sp.csr_array(np.ones((16, 16)))])
def test_rows_that_could_be_on_either_side_are_tied(graph):
    """Labels in four places of a circle that mirror images share; and rows that nothing tells apart."""
    y = np.full(16, None, dtype=object)
    y[[0, 8]], y[[4, 12]] = "a", "b"
    with pytest.warns(UserWarning, match="more than one best labelling"):
        model = on_graph(n_components=15, label_weight=1e-3).fit(graph, y)
    assert model.scores_ @ model.scores_ == pytest.approx(16.0)
    assert (model.answer_.status == "tied").all()


def test_break_even_is_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(30):
        truth, score = rng.uniform(size=40) < 0.3, rng.permutation(40)
        truth[0] = True
        assert precision_recall_break_even(truth, score) == pytest.approx(
            brute.break_even(truth, score)
        )


def test_ties_at_the_break_even_count_in_part():
    rng = np.random.default_rng(1)
    truth, score = rng.uniform(size=30) < 0.4, rng.integers(0, 4, size=30)
    broken = [brute.break_even(truth, score + 1e-6 * rng.permutation(30)) for _ in range(20_000)]
    assert precision_recall_break_even(truth, score) == pytest.approx(np.mean(broken), abs=0.004)
    assert precision_recall_break_even([1, -1, -1], [3.0, 2.0, 1.0]) == 1.0


# --------------------------------------------------------------------------------------------------- laws


@given(st.integers(0, 10_000))
def test_row_order_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, y, mix = blobs(50, seed=seed), labels_for(50, 8, seed), rng.permutation(50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = SpectralGraphTransducer(n_neighbors=5, random_state=0).fit(X, y)
        two = SpectralGraphTransducer(n_neighbors=5, random_state=0).fit(X[mix], y[mix])
    np.testing.assert_allclose(two.scores_, one.scores_[mix], atol=1e-6)


@given(st.integers(0, 10_000))
def test_signs_of_eigenvectors_do_not_matter(seed):
    from dataclasses import replace

    rng = np.random.default_rng(seed)
    A, y = random_graph(25, seed), labels_for(25, 5, seed)
    model = on_graph(n_components=9).fit(A, y)
    flipped = model.spectrum_.vectors * rng.choice([-1.0, 1.0], size=9)
    again = on_graph(n_components=9).fit(replace(model.spectrum_, vectors=flipped), y)
    np.testing.assert_allclose(again.scores_, model.scores_, atol=1e-9)


@given(st.integers(0, 10_000))
def test_two_classes_exchanged_change_the_sign(seed):
    A, y = random_graph(25, seed), labels_for(25, 5, seed)
    one = on_graph(n_components=9).fit(A, y)
    other = np.array([None if label is None else 1 - label for label in y], dtype=object)
    np.testing.assert_allclose(
        one.scores_, -on_graph(n_components=9).fit(A, other).scores_, atol=1e-8
    )


def test_parts_without_a_label_leave_no_trace():
    """The answer is that of the graph without them; they are unreached."""
    parts = [random_graph(20, 0), random_graph(15, 1), random_graph(12, 2)]
    A = sp.block_diag(parts).tocsr()
    y = np.full(47, None, dtype=object)
    y[[0, 3, 7]], y[[25, 30]] = "a", "b"
    with pytest.warns(UserWarning, match="12 rows have no path to a label"):
        model = on_graph(n_components=12).fit(A, y)
    small = on_graph(n_components=12).fit(A[:35][:, :35], y[:35])
    np.testing.assert_allclose(model.scores_[:35], small.scores_, atol=1e-9)
    assert np.isnan(model.scores_[35:]).all()
    assert model.scores_[:35] @ model.scores_[:35] == pytest.approx(35.0)
    assert (model.answer_.status[-12:] == "unreached").all()
    assert (model.answer_.status[:-12] == "answered").all()
    assert model.answer_.diagnostics["n_unreached"] == 12
    assert list(model.transduction_[35:]) == [None] * 12
    assert set(model.transduction_[:35]) == {"a", "b"}
    assert set(model.transduction_[:20]) == {"a"}  # no weight leads from one part to the other


def test_basis_of_the_null_space_does_not_matter():
    """Components in another order give the same scores."""
    parts = [random_graph(n, n) for n in (8, 9, 10, 11)]
    y = np.full(38, None, dtype=object)
    y[[0, 8, 9, 17, 27]] = ["a", "b", "a", "b", "c"]
    one = on_graph(n_components=20).fit(sp.block_diag(parts), y)
    order = np.r_[27:38, 0:8, 17:27, 8:17]
    two = on_graph(n_components=20).fit(sp.block_diag(parts).tocsr()[order][:, order], y[order])
    np.testing.assert_allclose(two.scores_, one.scores_[order], atol=1e-9)


def test_label_weight_follows_the_number_of_rows():
    A, y = random_graph(20, 0), labels_for(20, 6, 0)
    model = on_graph().fit(A, y)
    assert model.label_weight_ == 3200.0
    np.testing.assert_array_equal(model.scores_, on_graph(label_weight=3200.0).fit(A, y).scores_)
    assert default_label_weight(5000) == 5000.0


def test_equal_eigenvalues_share_their_rank():
    np.testing.assert_array_equal(
        first_ranks(np.array([0.0, 1e-12, 0.3, 0.3, 0.5])), [1, 1, 3, 3, 5]
    )
    assert len(first_ranks(np.empty(0))) == 0


def test_relabel_is_fit_without_the_long_part():
    X, y = blobs(60), labels_for(60, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=6, random_state=0).fit(X, y)
    other = labels_for(60, 9, 1, names="xyz")
    spectrum = model.spectrum_
    fresh = SpectralGraphTransducer(n_neighbors=6, random_state=0).fit(X, other)
    assert model.relabel(other) is model
    assert model.spectrum_ is spectrum
    np.testing.assert_allclose(model.scores_, fresh.scores_)
    np.testing.assert_array_equal(model.transduction_, fresh.transduction_)
    np.testing.assert_array_equal(model.classes_, ["x", "y", "z"])
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))


def test_new_rows_get_the_mean_score_of_their_neighbours():
    X, y = np.abs(blobs(40)), labels_for(40, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=4, random_state=0).fit(X, y)
    new = np.abs(blobs(5, seed=3))
    unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)  # noqa: E731
    sims = unit(new) @ unit(X).T
    nearest = np.argsort(-sims, axis=1)[:, :4]
    weights = np.take_along_axis(sims, nearest, axis=1)
    means = (weights * model.scores_[nearest]).sum(axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(model.decision_function(new), means - model.thresholds_)
    np.testing.assert_array_equal(model.predict(new), (means > model.thresholds_).astype(int))
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(new)), means - model.thresholds_
    )
    alone = model.decision_function(-np.ones((1, 10)))  # similar to none
    np.testing.assert_allclose(alone, model.scores_.mean() - model.thresholds_)


def test_new_rows_of_a_graph_come_as_weights():
    A, y = random_graph(20, 0), labels_for(20, 6, 0)
    model = on_graph(n_components=8).fit(A, y)
    weights = np.random.default_rng(0).uniform(size=(3, 20))
    means = weights @ model.scores_ / weights.sum(axis=1)
    np.testing.assert_allclose(model.decision_function(weights), means - model.thresholds_)
    with pytest.raises(ValueError, match="must not be negative"):
        model.predict(-weights)


def test_prior_and_costs_move_the_cut():
    X, y = blobs(60, n_centres=2), labels_for(60, 10, 0, names="ab")
    plain = SpectralGraphTransducer(n_neighbors=15, random_state=0).fit(X, y)
    half = clone(plain).set_params(class_prior={"a": 0.5, "b": 0.5}).fit(X, y)
    np.testing.assert_allclose(half.scores_, plain.scores_)  # five labels each: the same prior
    few = clone(plain).set_params(class_prior={"a": 0.9, "b": 0.1}).fit(X, y)
    assert few.thresholds_ == pytest.approx(0.5 * (3.0 - 1.0 / 3.0))
    assert (few.transduction_ == "b").sum() < (plain.transduction_ == "b").sum()
    weights = clone(plain).set_params(class_costs=None).fit(X, y)
    np.testing.assert_allclose(weights.scores_, plain.scores_)  # balanced labels cost the same
    by_class = clone(plain).set_params(class_costs={"a": 1.0, "b": 1.0}).fit(X, y)
    np.testing.assert_allclose(by_class.scores_, plain.scores_)
    costs = np.where(y == "a", 3.0, 5.0)
    by_row = clone(plain).fit(X, y, costs=costs)
    same = clone(plain).set_params(class_costs={"a": 3.0, "b": 5.0}).fit(X, y)
    np.testing.assert_allclose(by_row.scores_, same.scores_)
    assert np.abs(by_row.scores_ - plain.scores_).max() > 1e-6
    nothing = clone(plain).fit(
        X, y, costs=np.where(np.arange(60) == np.flatnonzero(y == "a")[0], 0.0, 1.0)
    )
    assert np.abs(nothing.scores_ - plain.scores_).max() > 1e-6


@pytest.mark.parametrize("frame", [pd, pl])
def test_frames_in_frames_out(frame):
    X, y = blobs(30), labels_for(30, 8, 0, names=("spam", "hüm"))
    columns = [f"c{j}" for j in range(10)]
    table = frame.DataFrame({name: X[:, j] for j, name in enumerate(columns)})
    series = (
        pd.Series(y, name="kind", index=[f"r{i}" for i in range(30)])
        if frame is pd
        else pl.Series("kind", list(y))
    )
    if frame is pd:
        table.index = series.index
    model = SpectralGraphTransducer(n_neighbors=20, random_state=0).fit(table, series)
    assert type(model.transduction_) is type(series)
    assert model.transduction_.name == "kind"
    if frame is pd:
        assert model.transduction_.index.equals(series.index)
        assert model.answer_.to_frame().index[0].startswith("r")
    assert set(model.predict(table)) <= {"spam", "hüm"}


def test_digits_by_one_label_each():
    """One label for each digit, at random, three times: far better than the nearest labelled row."""
    X, truth = load_digits(return_X_y=True)
    model, rng, gains = None, np.random.default_rng(0), []
    for _ in range(3):
        rows = np.array([rng.choice(np.flatnonzero(truth == digit)) for digit in range(10)])
        y = np.full(len(truth), np.nan)
        y[rows] = truth[rows]
        model = (
            SpectralGraphTransducer(random_state=0).fit(X, y) if model is None else model.relabel(y)
        )
        unlabelled = model.answer_.rows
        ours = [
            precision_recall_break_even(truth[unlabelled] == c, model.scores_[unlabelled, c])
            for c in range(10)
        ]
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        sims = unit[unlabelled] @ unit[rows].T
        nearest = [
            precision_recall_break_even(truth[unlabelled] == truth[row], sims[:, j])
            for j, row in enumerate(rows)
        ]
        gains.append(np.mean(ours) - np.mean(nearest))
    assert np.mean(gains) > 0.1


# --------------------------------------------------------------------------------------------------- limits


def test_nothing_unlabelled():
    X = blobs(30)
    model = SpectralGraphTransducer(n_neighbors=5).fit(X, np.arange(30) % 2)
    assert len(model.answer_) == 0
    np.testing.assert_array_equal(model.transduction_, np.arange(30) % 2)


def test_numbers_with_unreached_rows_stay_missing():
    A = sp.block_diag([random_graph(6, 0), random_graph(5, 1)])
    y = np.full(11, np.nan)
    y[:2] = [0.0, 1.0]
    with pytest.warns(UserWarning, match="no path"):
        model = on_graph().fit(A, y)
    assert np.isnan(model.transduction_[6:]).all()
    assert set(model.transduction_[:6]) == {0.0, 1.0}
    marked = np.where(np.isnan(y), -1, y).astype(int)
    with pytest.warns(UserWarning, match="no path"):
        model = on_graph(missing_label=-1).fit(A, marked)
    assert (model.transduction_[6:] == -1).all()


def test_more_labelled_parts_than_eigenvectors():
    A = sp.block_diag([np.ones((3, 3)) for _ in range(12)])
    y = np.full(36, None, dtype=object)
    y[::3] = np.arange(12) % 2
    model = on_graph(n_components=4).fit(A, y)
    np.testing.assert_array_equal(
        model.transduction_.reshape(12, 3), np.repeat(np.arange(12) % 2, 3).reshape(12, 3)
    )


def test_labels_in_a_small_part_beside_a_large_one():
    """The part without a label has smaller eigenvalues, but takes no eigenvector away."""
    A = sp.block_diag([np.ones((10, 10)), ring(200, 1)])
    y = np.full(210, None, dtype=object)
    y[[0, 9]] = ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = on_graph().fit(A, y)
    assert model.scores_[:10] @ model.scores_[:10] == pytest.approx(10.0)


def test_too_many_parts_with_a_label(monkeypatch):
    monkeypatch.setattr("transduce.methods.spectral_graph.cut.MOST_PARTS", 5)
    A = sp.block_diag([np.ones((2, 2))] * 6)
    with pytest.raises(ValueError, match="6 parts of the graph"):
        on_graph().fit(A, [0, None, 1, None] * 3)


def test_a_failed_fit_leaves_nothing_behind():
    X, y = blobs(30), labels_for(30, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=5).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.where(y == 1, 1, None))
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.relabel(y)


def test_a_failed_relabel_can_be_followed_by_a_good_one():
    X, y = blobs(30), labels_for(30, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=5).fit(X, y)
    before = model.scores_
    with pytest.raises(ValueError, match="one class only"):
        model.relabel(np.where(y == 1, 1, None))
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "scores_")
    assert not hasattr(model, "transduction_")
    model.set_params(n_components=3)  # a setting of the spectrum: for the next fit
    np.testing.assert_array_equal(model.relabel(y).scores_, before)


def test_settings_after_fit_do_not_leak_into_predict():
    X, y = blobs(40), labels_for(40, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=5, random_state=0).fit(X, y)
    before = model.decision_function(X)
    model.set_params(n_neighbors=1, metric="euclidean")
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_pickled_and_back():
    X, y = blobs(40), labels_for(40, 8, 0)
    model = SpectralGraphTransducer(n_neighbors=5, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.graph_.diagnostics == model.graph_.diagnostics


def test_a_spectrum_from_a_file_is_enough(tmp_path):
    X, y = blobs(40), labels_for(40, 8, 0)
    graph = neighbor_graph(X, n_neighbors=6)
    model = on_graph().fit(graph, y)
    model.spectrum_.save(tmp_path / "spectrum.npz")
    again = on_graph().fit(Spectrum.load(tmp_path / "spectrum.npz"), y)
    np.testing.assert_array_equal(again.scores_, model.scores_)
    assert again.graph_ is None
    np.testing.assert_array_equal(again.predict(graph), model.predict(graph))
    with pytest.raises(ValueError, match="set metric='precomputed'"):
        SpectralGraphTransducer().fit(model.spectrum_, y)


def test_views_are_a_sum_of_graphs():
    X = blobs(50)
    Z = blobs(50, seed=1)
    y = labels_for(50, 8, 0)
    both = neighbor_graph(X, n_neighbors=5) + neighbor_graph(Z, n_neighbors=5)
    given = on_graph().fit(both, y)
    columns = [*(f"x{j}" for j in range(X.shape[1])), *(f"ü{j}" for j in range(Z.shape[1]))]
    frame = pd.DataFrame(np.column_stack([X, Z]), columns=columns)
    frame["not used"] = np.arange(50.0)
    views = [columns[: X.shape[1]], columns[X.shape[1] :]]
    model = SpectralGraphTransducer(n_neighbors=5, views=views, random_state=0).fit(frame, y)
    np.testing.assert_allclose(model.graph_.toarray(), both.toarray())
    np.testing.assert_allclose(model.scores_, given.scores_, atol=1e-8)
    by_place = [range(X.shape[1]), np.arange(X.shape[1], X.shape[1] + Z.shape[1])]
    again = SpectralGraphTransducer(n_neighbors=5, views=by_place, random_state=0)
    again.fit(sp.csr_array(frame.to_numpy()), y)
    np.testing.assert_allclose(again.scores_, model.scores_, atol=1e-8)
    # New rows get the mean of what either view says.
    new = frame.iloc[:7] + 0.01
    said = []
    for view, rows in zip(views, (X, Z), strict=True):
        one = SpectralGraphTransducer(n_neighbors=5, random_state=0).fit(rows, y)
        graph = one._fitted
        by_view = type(graph)(graph.base, model._fitted.cut, graph.known, "squares")
        said.append(by_view.extend(new[view].to_numpy())[:, 0])
    margins = model.decision_function(new)
    np.testing.assert_allclose(margins, np.mean(said, axis=0) - model.thresholds_, atol=1e-8)


@pytest.mark.parametrize(
    ("views", "match"),
    [
        ("text", "views must be a list of views"),
        ([], "views must be a list of views"),
        ([[0], []], "A view has no columns"),
        (["x"], "A view is a list of columns"),
        ([[0], [99]], "a column that X does not have: 99"),
        ([[0], ["ü"]], "a column that X does not have: 'ü'"),
        ([[True]], "a column that X does not have: True"),
    ],
)
def test_bad_views(views, match):
    with pytest.raises(ValueError, match=match):
        SpectralGraphTransducer(views=views).fit(blobs(20), labels_for(20, 4, 0))
    with pytest.raises(ValueError, match="metric='precomputed' takes a graph"):
        on_graph(views=[[0]]).fit(random_graph(20, 0), labels_for(20, 4, 0))


# --------------------------------------------------------------------------------------------------- displays


def test_displays():
    plt = pytest.importorskip("matplotlib.pyplot")

    X, y = blobs(60, n_centres=1), labels_for(60, 8, 0, names="ab")
    model = SpectralGraphTransducer(n_neighbors=6, random_state=0).fit(X, y)
    display = GraphMapDisplay.from_estimator(model)
    assert "b above" in display.figure_.axes[1].get_ylabel()
    model.relabel(labels_for(60, 8, 0, names="abc"))
    assert len(GraphMapDisplay.from_estimator(model).figure_.axes[1].get_yticklabels()) == 3
    A = sp.block_diag([random_graph(9, 0), random_graph(8, 1)])
    with pytest.warns(UserWarning, match="no path"):
        model = on_graph().fit(A, np.array(["a", "b"] + [None] * 15, dtype=object))
    labels = GraphMapDisplay.from_estimator(model).ax_.get_legend_handles_labels()[1]
    assert "no path to a label" in labels
    plt.close("all")
    with pytest.raises(TypeError, match="Pass a fitted"):
        GraphMapDisplay.from_estimator(SpectralGraphTransducer())
    with pytest.raises(ValueError, match="fewer than two eigenvectors"):
        GraphMapDisplay.from_estimator(
            on_graph(n_components=1).fit(random_graph(9, 0), labels_for(9, 4, 0))
        )


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"label_weight": 0.0}, "label_weight .* must be a positive number"),
        ({"label_weight": "much"}, "label_weight .* must be a positive number"),
        ({"label_weight": 1e16}, "label_weight .* must lie between"),
        ({"method": "magic"}, "method must be one of"),
        ({"laplacian": "signless"}, "laplacian must be one of 'normalized', 'plain'"),
        ({"spectrum": "cubes"}, "spectrum must be one of 'squares', 'eigenvalues'"),
        ({"spectrum": [1.0, 2.0]}, "spectrum has 2 numbers, and 19 eigenvectors are used"),
        ({"spectrum": np.negative}, "finite numbers from 0 that do not fall"),
        ({"spectrum": lambda ranks: 1.0}, "finite numbers from 0 that do not fall"),
        ({"metric": "magic"}, "metric must be"),
        ({"class_prior": {0: 0.5}}, "class_prior must be a dict with one number for each class"),
        ({"class_prior": {0: 0.5, 1: 0.6}}, "sum to 1"),
        ({"class_prior": {0: 1.5, 1: -0.5}}, "class_prior must be a positive number"),
        ({"class_costs": "heavy"}, "class_costs must be 'balanced'"),
        ({"class_costs": {0: 1.0, 1: 0.0}}, "class_costs must be a positive number"),
    ],
)
def test_bad_settings(settings, match):
    with pytest.raises(ValueError, match=match):
        SpectralGraphTransducer(**settings).fit(blobs(20), labels_for(20, 6, 0))


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (blobs(10), None, "requires y"),
        (blobs(10), [None] * 10, "No row has a label"),
        (blobs(10), ["a"] + [None] * 9, "one class only"),
        (blobs(10), [0, 1], "10 rows but y has 2 labels"),
        (blobs(1), ["a"], "at least two rows"),
        (np.full((4, 2), np.nan), [0, 1, 0, 1], "contains NaN"),
        ([["a", "b"]] * 4, [0, 1, 0, 1], "holds text"),
        (np.empty((0, 3)), [], "0 sample"),
    ],
)
def test_bad_input(X, y, match):
    with pytest.raises(ValueError, match=match):
        SpectralGraphTransducer().fit(X, y)


def test_bad_costs_and_graphs():
    X, y = blobs(20), labels_for(20, 6, 0)
    with pytest.raises(ValueError, match="costs must be one number from 0"):
        SpectralGraphTransducer().fit(X, y, costs=[1.0])
    with pytest.raises(ValueError, match="square matrix"):
        on_graph().fit(X, y)
    with pytest.raises(ValueError, match="symmetric"):
        on_graph().fit(np.triu(np.ones((20, 20))), y)


@pytest.mark.parametrize(
    ("truth", "score", "match"),
    [
        ([1, 0], [1.0], "one score for each label"),
        (["a", "b"], [1.0, 2.0], "true or false"),
        ([0, 0], [1.0, 2.0], "No row is positive"),
        ([0, 1], [np.nan, 1.0], "contains NaN"),
    ],
)
def test_bad_rankings(truth, score, match):
    with pytest.raises(ValueError, match=match):
        precision_recall_break_even(truth, score)
