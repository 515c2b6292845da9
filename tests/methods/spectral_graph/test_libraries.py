"""The spectral graph transducer says the same wherever its arrays live."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from tests.libraries import ON_PROCESSOR, dispatch, give, library, same
from transduce import SpectralGraphTransducer
from transduce.core import arrays
from transduce.device import graph as device_graph
from transduce.methods.spectral_graph import graph_spectrum, neighbor_graph
from transduce.methods.spectral_graph.graph import GraphSettings, build_graph


def digits(n=300, share=0.1):
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    X, truth = X[:n] + 1e-3 * rng.normal(size=(n, 64)), truth[:n]
    y = np.where(rng.uniform(size=n) < share, truth.astype(float), np.nan)
    return X, y


def built(X, name, **settings):
    made = GraphSettings(
        settings.get("n_neighbors", 5), settings.get("metric", "cosine"), "auto", None
    )
    return build_graph(give(X, name), made, np.random.RandomState(0))


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_transducer(name, metric):
    X, y = digits()
    here = SpectralGraphTransducer(metric=metric, random_state=0).fit(X, y)
    with dispatch():
        there = SpectralGraphTransducer(metric=metric, random_state=0).fit(give(X, name), y)
        assert there.transduction_.tolist() == here.transduction_.tolist()
        same(there.scores_, here.scores_, name)
        same(there.answer_.scores, here.answer_.scores, name)
        assert there.answer_.status.tolist() == here.answer_.status.tolist()
        np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-10)
        np.testing.assert_allclose(there.spectrum_.values, here.spectrum_.values, atol=1e-12)
        assert there.graph_.diagnostics["recall"] == 1.0
        new = X[:9] + 0.1
        same(there.decision_function(give(new, name)), here.decision_function(new), name)
        assert there.predict(give(new, name)).tolist() == here.predict(new).tolist()
        y[np.flatnonzero(np.isnan(y))[:5]] = 3.0
        same(there.relabel(y).scores_, here.relabel(y).scores_, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_two_classes_in_parts_of_the_graph(name):
    """Several components, one without a label, classes by name: rows there are unreached, as with numpy."""
    X, blob = make_blobs(90, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    y = np.full(90, None, dtype=object)
    for part, names in ((0, ("a", "b")), (1, ("a", "b"))):
        y[np.flatnonzero(blob == part)[:4]] = names * 2
    settings = {"metric": "euclidean", "n_components": 6, "n_neighbors": 5}
    with pytest.warns(UserWarning, match="30 rows have no path to a label"):
        here = SpectralGraphTransducer(**settings).fit(X, y)
    with dispatch(), pytest.warns(UserWarning, match="30 rows have no path to a label"):
        there = SpectralGraphTransducer(**settings).fit(give(X, name), y)
    assert there.spectrum_.count == here.spectrum_.count == 3
    same(there.scores_, here.scores_, name)
    assert there.transduction_.tolist() == here.transduction_.tolist()
    for name_of_part in ("components", "degrees"):
        parts = [arrays.to_numpy(getattr(model.spectrum_, name_of_part)) for model in (there, here)]
        np.testing.assert_allclose(*parts, atol=1e-14)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_graph(name, metric):
    """The same graph: a row alone in the world, and an order of the rows that leaves no trace."""
    X, _ = digits(120)
    X[7] = 0.0
    wanted = neighbor_graph(X, n_neighbors=5, metric=metric, random_state=0)
    found = built(X, name, metric=metric)
    eye = give(np.eye(120), name)
    same(found.matrix @ eye, wanted.toarray(), name)
    assert found.diagnostics["n_random"] == wanted.diagnostics["n_random"]
    assert found.diagnostics["scale"] == (
        None if metric == "cosine" else pytest.approx(wanted.diagnostics["scale"], rel=1e-12)
    )
    X, _ = digits(120)  # equal rows, and ties of a row alone, may leave a trace of the order
    turn = np.random.default_rng(1).permutation(120)
    turned, straight = (
        arrays.to_numpy(built(rows, name, metric=metric).matrix @ eye) for rows in (X[turn], X)
    )
    np.testing.assert_allclose(turned, straight[turn][:, turn], atol=1e-10)


@pytest.mark.parametrize("name", [library("torch")])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_filtered_spectrum(name, precision, monkeypatch):
    """The Chebyshev filter finds the eigenvalues of the dense matrix, to the residuals it states."""
    monkeypatch.setattr(device_graph, "DENSE_ROWS", 10)
    if precision == "single":
        monkeypatch.setattr(device_graph, "DOUBLE_ROWS", 10)
    X, _ = make_blobs(400, centers=6, n_features=4, random_state=1)
    graph = built(X, name, metric="euclidean", n_neighbors=8)
    wanted = graph_spectrum(
        arrays.to_numpy(graph.matrix @ give(np.eye(400), name)), n_components=12
    )
    found = graph_spectrum(graph, n_components=12, random_state=np.random.RandomState(0))
    largest = 1e-8 if precision == "double" else 1e-4
    assert found.residuals.max() <= largest
    np.testing.assert_allclose(found.values, wanted.values, atol=10 * largest)
    np.testing.assert_array_equal(arrays.to_numpy(found.components), wanted.components)


def test_filter_that_does_not_converge(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(device_graph, "DENSE_ROWS", 10)
    monkeypatch.setattr(device_graph, "MOST_CYCLES", 1)
    X, _ = digits(200)
    graph = built(X, "torch")
    with pytest.raises(ArithmeticError, match="pass numpy arrays"):
        graph_spectrum(graph, n_components=12, random_state=np.random.RandomState(0))


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_refusals(name):
    X, y = digits(60, share=0.5)
    with dispatch():
        with pytest.raises(ValueError, match="metric='manhattan' is not there"):
            SpectralGraphTransducer(metric="manhattan").fit(give(X, name), y)
        with pytest.raises(ValueError, match="metric='precomputed' needs a graph of numpy arrays"):
            SpectralGraphTransducer(metric="precomputed").fit(give(X @ X.T, name), y)
        model = SpectralGraphTransducer().fit(give(X, name), y)
        with pytest.raises(ValueError, match="give features of new rows as such"):
            model.decision_function(X)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_components_along_a_line(name):
    """A chain of rows is one component however long, and two chains are two."""
    n = 257
    links = np.concatenate([np.arange(n - 1), np.arange(n, 2 * n - 1)])
    shuffle = np.random.default_rng(0).permutation(2 * n)
    one, two = shuffle[links], shuffle[links + 1]
    keys = np.concatenate([one * 2 * n + two, two * 2 * n + one])
    matrix = device_graph.merged(give(keys, name), give(np.ones(len(keys)), name), 2 * n)
    count, part = device_graph.find_components(device_graph.DeviceGraph(matrix, {}))
    assert count == 2
    part = arrays.to_numpy(part)[shuffle]
    assert len(set(part[:n])) == len(set(part[n:])) == 1
    assert part[0] != part[n]


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_steps_one_by_one(name):
    """Graph, then spectrum, then labels: as in one fit."""
    X, y = digits(120, share=0.3)
    with dispatch():
        spectrum = graph_spectrum(
            neighbor_graph(give(X, name), n_neighbors=5, random_state=0), n_components=9
        )
        model = SpectralGraphTransducer(metric="precomputed", n_components=9).fit(spectrum, y)
        whole = SpectralGraphTransducer(n_neighbors=5, n_components=9, random_state=0).fit(
            give(X, name), y
        )
    same(model.scores_, arrays.to_numpy(whole.scores_), name)


def test_spectrum_of_a_device_is_saved(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    X, _ = digits(60)
    spectrum = graph_spectrum(
        built(X, "torch"), n_components=5, random_state=np.random.RandomState(0)
    )
    spectrum.save(tmp_path / "spectrum.npz")
    loaded = type(spectrum).load(tmp_path / "spectrum.npz")
    np.testing.assert_array_equal(loaded.vectors, arrays.to_numpy(spectrum.vectors))
