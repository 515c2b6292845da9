"""The seam between numerics and libraries: what the standard lacks equals numpy, and arrays stay where they are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from tests.libraries import ON_PROCESSOR, dispatch, give, same
from transduce import RidgeConfidenceMachine, TransductiveRidge
from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.validation import read_array
from transduce.device import graph, linalg, lines, memory, neighbors
from transduce.device.kernels import ON_DEVICE, Kernel, median_width
from transduce.device.linalg import guarded_cholesky, inverse_diagonal

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(30, 30))
POSITIVE = SQUARE @ SQUARE.T + np.eye(30)
ROWS = np.column_stack([RNG.normal(size=(40, 3)), np.full(40, 7.0)])


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_factors_and_solves(name, monkeypatch):
    monkeypatch.setattr(linalg, "BLOCK", 7)  # so that a small matrix has several blocks
    monkeypatch.setattr(linalg, "LEAF", 4)
    A, b = give(POSITIVE, name), give(SQUARE, name)
    factor = linalg.cholesky(A)
    lower = np.linalg.cholesky(POSITIVE)
    same(factor, lower, name)
    same(
        linalg.triangular_solve(factor, b),
        scipy.linalg.solve_triangular(lower, SQUARE, lower=True),
        name,
    )
    same(linalg.cholesky_solve(factor, b), np.linalg.solve(POSITIVE, SQUARE), name)
    same(linalg.cholesky_solve(factor, b[:, 0]), np.linalg.solve(POSITIVE, SQUARE[:, 0]), name)
    same(linalg.cholesky_inverse(factor), np.linalg.inv(POSITIVE), name)
    same(inverse_diagonal(factor), np.diag(np.linalg.inv(POSITIVE)), name)
    for n in (1, 2, 7, 8, 15):
        part = POSITIVE[:n, :n]
        same(linalg.cholesky_inverse(linalg.cholesky(give(part, name))), np.linalg.inv(part), name)
    batch = np.stack([POSITIVE, 2.0 * POSITIVE])
    same(linalg.cholesky(give(batch, name)), np.linalg.cholesky(batch), name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_guarded_factor(name):
    """A matrix that is singular to rounding gets a jitter, one that is not positive an error; as with numpy."""
    singular = np.ones((5, 5))
    factor, jitter = guarded_cholesky(give(singular, name))
    assert jitter == guarded_cholesky(singular)[1] > 0.0
    np.testing.assert_allclose(arrays.to_numpy(factor @ factor.T), singular, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        guarded_cholesky(give(-np.eye(3), name))


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_selection(name):
    values = give(SQUARE, name)
    same(lines.kth_largest(values, 4), np.sort(SQUARE, axis=1)[:, -4], name)
    best, places = neighbors.top_k(values, 3)
    same(best, -np.sort(-SQUARE, axis=1)[:, :3], name)
    np.testing.assert_array_equal(arrays.to_numpy(places), np.argsort(-SQUARE, axis=1)[:, :3])
    coarse = np.round(ROWS)
    np.testing.assert_array_equal(
        arrays.to_numpy(arrays.lexsort(give(coarse, name))), np.lexsort(coarse.T[::-1])
    )


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_sums_and_sparse_products(name):
    groups = RNG.integers(0, 5, size=40)
    same(
        graph.sum_by_group(give(ROWS[:, 0], name), give(groups, name), 6),
        np.bincount(groups, ROWS[:, 0], 6),
        name,
    )
    found = graph.smallest_by_group(give(np.arange(40), name), give(groups, name), 40)
    wanted = [np.flatnonzero(groups == group)[0] for group in range(5)] + [40] * 35
    np.testing.assert_array_equal(arrays.to_numpy(found), wanted)
    dense = np.random.default_rng(1).uniform(size=(12, 30))
    matrix = sp.csr_array(np.where(dense < 0.2, dense, 0.0))
    rows = np.repeat(np.arange(12), np.diff(matrix.indptr))
    parts = (give(part.astype(int), name) for part in (rows, matrix.indices))
    sparse = graph.SparseRows(*parts, give(matrix.data, name), (12, 30))
    same(sparse @ give(SQUARE, name), matrix @ SQUARE, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("kernel", ON_DEVICE)
def test_kernels(name, kernel):
    made = Kernel(kernel, width=1.7, degree=2, coef0=0.5)
    X, Z = ROWS[:, :3], ROWS[5:20, :3] + 0.1
    same(made.matrix(give(X, name), give(Z, name)), made.matrix(X, Z), name)
    same(made.checked_matrix(give(X, name), give(Z, name)), made.matrix(X, Z), name)
    same(made.diagonal(give(X, name)), made.diagonal(X), name)
    own = give(X, name)
    same(made.matrix(own, own), made.matrix(X, X), name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_kernels_at_an_outlier(name):
    """An outlier makes the quick formula for distances lose digits; the slow one takes over, as with numpy."""
    X = np.array([[1e9], [1e9 + 0.5], [0.0]])
    same(
        Kernel("rbf").matrix(give(X, name), give(X[:2], name)), Kernel("rbf").matrix(X, X[:2]), name
    )


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_width_and_scaling(name):
    assert median_width(give(ROWS, name)) == pytest.approx(median_width(ROWS), rel=1e-12)
    many = RNG.normal(size=(1500, 2)).round(1)
    assert median_width(give(many, name)) == pytest.approx(median_width(many), rel=1e-12)
    assert median_width(give(np.ones((4, 2)), name)) == 1.0
    scaling, rows = Scaling.fit_apply(give(ROWS, name))
    wanted, scaled = Scaling.fit_apply(ROWS)
    same(rows, scaled, name)
    same(scaling.apply(give(ROWS[:3] + 1.0, name)), wanted.apply(ROWS[:3] + 1.0), name)
    assert scaling.keep.tolist() == [True, True, True, False]
    same(Scaling.fit_apply(give(ROWS[:, 3:], name))[1], np.zeros((40, 1)), name)
    huge = ROWS[:, :2] * np.array([1e200, 1e-200])
    same(Scaling.fit_apply(give(huge, name))[1], Scaling.fit_apply(huge)[1], name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_regions_stay_on_their_device(name):
    pieces = np.array([[-np.inf, 1.0], [3.0, 4.0], [0.0, 2.0], [5.0, 6.0], [7.0, np.inf]])
    offsets = [0, 2, 2, 3, 5]
    here, there = Regions(pieces, offsets), Regions(give(pieces, name), offsets)
    same(there.hull(), here.hull(), name)
    same(there.measure(), here.measure(), name)
    labels = np.array([3.5, 1.0, 2.5, 8.0])
    same(there.contains(give(labels, name)), here.contains(labels), name)
    assert arrays.to_numpy(there.contains(0.5)).tolist() == here.contains(0.5).tolist()
    assert there == here
    assert repr(there) == repr(here)
    assert there[[3, 0]] == here[[3, 0]]
    assert Regions.concatenate([there, there]) == Regions.concatenate([here, here])
    assert there.holding(give(labels, name)) == here.holding(labels)
    with pytest.raises(ValueError, match="disjoint"):
        Regions(give(pieces[::-1], name), [0, 5])


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_labels_are_completed_where_the_answers_live(name):
    y = np.array([1.0, np.nan, 3.0, np.nan])
    sample = PartlyLabelled.from_arrays(give(np.eye(4), name), y)
    same(sample.complete(give(np.array([5.0, 6.0]), name)), [1.0, 5.0, 3.0, 6.0], name)
    two = PartlyLabelled.from_arrays(give(np.eye(4), name), np.column_stack([y, y]), columns=True)
    same(
        two.complete(give(np.array([[5.0, 6.0], [7.0, 8.0]]), name))[:, 1],
        [1.0, 6.0, 3.0, 8.0],
        name,
    )
    # Labels of the library come back in it, those of classes too.
    classes = PartlyLabelled.from_arrays(
        give(np.eye(4), name), give(np.array([1, -1, 2, -1]), name), missing_label=-1
    )
    same(classes.complete(np.array([2, 1], dtype=object).astype(int)), [1, 2, 2, 1], name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("estimator", [RidgeConfidenceMachine(), TransductiveRidge()])
def test_without_dispatch_one_sentence(name, estimator):
    with pytest.raises(
        ValueError, match=r"switch on scikit-learn's array dispatch, sklearn.set_config"
    ):
        estimator.fit(give(ROWS, name), np.append(np.arange(39.0), np.nan))


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_refusals(name):
    with dispatch():
        for bad, words in (
            (np.full((2, 2), np.nan), "contains NaN"),
            (np.full((2, 2), np.inf), "contains infinity"),
            (np.ones(3), "Expected 2D array, got 1D"),
            (np.ones((0, 2)), "at least one row"),
            (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        ):
            with pytest.raises(ValueError, match=words):
                read_array(give(bad, name))
        with pytest.raises(ValueError, match="kernel='chi2' is not there for arrays of"):
            Kernel("chi2").matrix(give(ROWS, name), give(ROWS, name))


@pytest.mark.parametrize("mask", ["0110", "1010", "1111", "0000", "0001"])
def test_picked_rows_are_copies(mask):
    X, rows = np.arange(8.0).reshape(4, 2), np.array([digit == "1" for digit in mask])
    picked = arrays.pick(X, rows)
    np.testing.assert_array_equal(picked, X[rows])
    assert not np.shares_memory(picked, X)


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda like: 1e9)
    with pytest.raises(
        MemoryError,
        match=r"The matrix needs about 2.0 GB, but the device has 1.0 GB free. Give fewer",
    ):
        memory.check_fits(2e9, ROWS, "The matrix", "Give fewer rows.")
    memory.check_fits(1e9, ROWS, "The matrix", "Give fewer rows.")
    assert memory.work_bytes(ROWS, 5.0) == 0.2 * 1e9


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_a_kernel_matrix_that_cannot_fit(name, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda like: 100.0)
    X, y = give(ROWS, name), np.append(np.arange(39.0), np.nan)
    with dispatch(), pytest.raises(MemoryError, match="kernel matrix of 39 labelled rows"):
        RidgeConfidenceMachine().fit(X, y)


def test_to_device():
    pytest.importorskip("torch", reason="torch is not installed")
    moved = memory.to_device(np.arange(3), "cpu")
    same(moved, [0.0, 1.0, 2.0], "torch")
    assert memory.to_device(moved, "cpu") is moved
    with pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        memory.to_device(np.ones(1), "nowhere")


def test_to_device_needs_a_library(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "torch":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match="needs torch: pip install torch"):
        memory.to_device(np.ones(1))


def test_a_namespace_needs_compat(monkeypatch):
    """Without array-api-compat and scikit-learn's copy of it, one sentence says what to install."""

    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(arrays.importlib, "import_module", missing)
    foreign = type("Foreign", (), {"__array_namespace__": None})()
    with pytest.raises(ValueError, match="pip install array-api-compat"):
        arrays.namespace(foreign)
