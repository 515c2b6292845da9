"""On a CUDA device every method says what it says with numpy, and its numbers stay on the device."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.libraries import dispatch, give, library, same
from transduce import (
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.core import arrays
from transduce.methods.gaussian_process.process import Objective
from transduce.methods.spectral_graph import graph_spectrum, neighbor_graph, spectrum
from transduce.methods.spectral_graph.graph import GraphSettings, build_graph

CUDA = [library("cuda")]


def problem(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    y[rng.permutation(n)[: n // 3]] = np.nan
    return X, y


@pytest.mark.parametrize("name", CUDA)
@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "linear"}, {"residual": "studentized", "ridge": 0.01}]
)
def test_confidence_machine(name, settings):
    X, y = problem()
    here = RidgeConfidenceMachine(**settings).fit(X, y)
    with dispatch():
        there = RidgeConfidenceMachine(**settings).fit(give(X, name), y)
    same(there.transduction_, here.transduction_, name)
    np.testing.assert_array_equal(there.answer_.regions.offsets, here.answer_.regions.offsets)
    same(there.answer_.regions.pieces, here.answer_.regions.pieces, name)


@pytest.mark.parametrize("name", CUDA)
def test_classes(name):
    X, y = problem()
    labels = np.where(np.isnan(y), None, np.where(y > 0.0, "high", "low"))
    for kind in (RidgeConfidenceClassifier(), TransductiveRidgeClassifier(width=2.0, ridge=0.1)):
        here = kind.fit(X, labels)
        answers = here.transduction_.tolist()
        with dispatch():
            assert kind.fit(give(X, name), labels).transduction_.tolist() == answers


@pytest.mark.parametrize("name", CUDA)
@pytest.mark.parametrize(
    "settings", [{}, {"centres": 40, "random_state": 0, "width": 2.0, "ridge": 0.1}]
)
def test_ridge(name, settings):
    X, y = problem()
    here = TransductiveRidge(**settings).fit(X, y)
    with dispatch():
        there = TransductiveRidge(**settings).fit(give(X, name), y)
    same(there.transduction_, here.transduction_, name, tolerance=1e-9)


@pytest.mark.parametrize("name", CUDA)
@pytest.mark.parametrize("matching", [0.0, 0.5])
def test_gaussian_process(name, matching):
    X, y = problem(1500)
    y_l, at = np.nan_to_num(y[:1200]), np.log([0.5, 0.4, 0.3, 0.2, 0.1])
    value, gradient = Objective(X, y_l, (1.0, 0.5), matching, 0.01)(at)
    found, slopes = Objective(give(X, name), give(y_l, name), (1.0, 0.5), matching, 0.01)(at)
    assert found == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(slopes, gradient, rtol=0.0, atol=1e-10 * np.abs(gradient).max())
    with dispatch():
        there = TransductiveGPRegressor(matching=0.0, n_restarts=0).fit(
            give(X[:100], name), y[:100]
        )
    same(
        there.transduction_,
        TransductiveGPRegressor(matching=0.0, n_restarts=0).fit(X[:100], y[:100]).transduction_,
        name,
        tolerance=1e-5,
    )


def digits():
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    return X + 1e-3 * rng.normal(size=X.shape), np.where(
        rng.uniform(size=len(X)) < 0.1, truth.astype(float), np.nan
    )


@pytest.mark.parametrize("name", CUDA)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_spectral_graph(name, metric, method):
    """The fused search finds the same graph, the cells nearly so; then labels agree."""
    X, y = digits()
    settings = GraphSettings(10, metric, method, None)
    wanted = neighbor_graph(X, metric=metric, method="exact", random_state=0)
    found = build_graph(give(X, name), settings, np.random.RandomState(0))
    dense = arrays.to_numpy(found.matrix @ give(np.eye(len(X)), name))
    if method == "exact":
        np.testing.assert_allclose(dense, wanted.toarray(), atol=1e-10)
        assert found.diagnostics["recall"] == 1.0
    else:
        assert ((dense > 0) & (wanted.toarray() > 0)).sum() >= 0.95 * wanted.nnz
        assert found.diagnostics["recall"] >= 0.97
    here = SpectralGraphTransducer(metric=metric, method="exact", random_state=0).fit(X, y)
    with dispatch():
        there = SpectralGraphTransducer(metric=metric, method=method, random_state=0).fit(
            give(X, name), y
        )
        assert np.mean(there.transduction_ == here.transduction_) >= (
            0.999 if method == "exact" else 0.98
        )
        assert there.scores_.device.type == "cuda"


@pytest.mark.parametrize("name", CUDA)
def test_filtered_spectrum(name, monkeypatch):
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 20_000)  # the processor in double precision too
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    graph = build_graph(
        give(X, name), GraphSettings(10, "euclidean", "auto", None), np.random.RandomState(0)
    )
    found = graph_spectrum(graph, n_components=20, random_state=np.random.RandomState(0))
    wanted = graph_spectrum(
        neighbor_graph(X, metric="euclidean", random_state=0), n_components=20, random_state=0
    )
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-7)
    assert found.residuals.max() < 1e-7


@pytest.mark.parametrize("name", CUDA)
def test_an_allocation_that_cannot_fit_is_refused_first(name):
    import torch

    X = torch.zeros((400_000, 2), dtype=torch.float64, device="cuda")
    X[:, 0] = torch.arange(400_000)
    y = np.append(np.zeros(399_999), np.nan)
    with dispatch(), pytest.raises(MemoryError, match="kernel matrix of 399,999 labelled rows"):
        RidgeConfidenceMachine().fit(X, y)
