"""Neighbour graphs and their spectra: exact search, approximate search, components, eigenvectors, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from threadpoolctl import threadpool_limits

from tests import brute
from transduce import SpectralGraphTransducer, show_progress
from transduce.core import computing
from transduce.device import graph as device_graph
from transduce.methods.spectral_graph import (
    NeighborGraph,
    Spectrum,
    graph_spectrum,
    neighbor_graph,
    neighbors,
    spectrum,
)
from transduce.methods.spectral_graph import graph as graph_module


def blobs(n, d=10, n_centres=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_centres, d))[np.arange(n) % n_centres] + 0.6 * rng.normal(size=(n, d))


def plain(function):
    """The uncompiled form of a compiled function."""
    return getattr(function, "py_func", function)


def ring(n, k=2):
    """A circle of rows, each tied to k on either side."""
    A = np.zeros((n, n))
    for shift in range(1, k + 1):
        A += np.roll(np.eye(n), shift, axis=1) / shift
    return sp.csr_array(A + A.T)


# --------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("k", [1, 5])
def test_graph_is_its_definition(kind, k):
    X = np.abs(blobs(40)) + 0.1
    graph = neighbor_graph(kind(X), n_neighbors=k)
    np.testing.assert_allclose(graph.toarray(), brute.cosine_graph(X, k), atol=1e-12)
    assert graph.diagnostics == {
        "n_neighbors": k,
        "metric": "cosine",
        "method": "exact",
        "recall": 1.0,
        "n_random": 0,
        "scale": None,
    }


def test_search_in_many_blocks_and_threads(monkeypatch):
    """Blocks smaller than the table, and the uncompiled form of the compiled loops."""
    X = graph_module.unit_rows(blobs(300))
    true = np.argsort(-(X @ X.T) + 9 * np.eye(300), axis=1)[:, :7]
    own, offsets = np.arange(300), np.zeros(300)
    monkeypatch.setattr(neighbors, "QUERIES", 32)
    monkeypatch.setattr(neighbors, "CANDIDATES", 50)
    for _ in range(2):
        found = neighbors.search_dense(X, own, X, offsets, 7, neighbors.Work(2))
        np.testing.assert_array_equal(found.ids, true)
        found = neighbors.search_sparse(sp.csr_array(X), own, sp.csr_array(X), 7)
        np.testing.assert_array_equal(found.ids, true)
        for name in ("n_above", "replace_worst", "keep_best", "keep_best_sparse"):
            monkeypatch.setattr(neighbors, name, plain(getattr(neighbors, name)))


def nearest_by_definition(X, k):
    """Positions and values of the k largest cosines of every row with another, by sorting all of them."""
    cosines = X @ X.T - 9 * np.eye(len(X))
    order = np.argsort(-cosines, axis=1)[:, :k]
    return order, np.take_along_axis(cosines, order, axis=1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_pair_is_compared_once_for_both_rows(n_jobs, monkeypatch):
    """Blocks that do not divide the table; then the uncompiled form of the compiled loops."""
    X = graph_module.unit_rows(blobs(333))
    true, cosines = nearest_by_definition(X, 7)
    monkeypatch.setattr(neighbors, "BLOCK", 40)
    shares = []
    for _ in range(2):
        found = neighbors.search_pairs(X, 7, neighbors.Work(n_jobs, shares.append))
        np.testing.assert_array_equal(found.ids, true)
        np.testing.assert_allclose(found.scores, cosines, atol=1e-15)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        shares.clear()
        for name in ("n_good", "keep_pairs", "score_again"):
            monkeypatch.setattr(neighbors, name, plain(getattr(neighbors, name)))


def test_cosines_that_single_precision_cannot_tell_are_told(monkeypatch):
    """Rows of one direction up to 1e-6: their cosines differ by some 1e-12, and the order is still that of double."""
    rng = np.random.default_rng(0)
    X = graph_module.unit_rows(np.array([1.0, 2.0, -1.0]) + 1e-6 * rng.normal(size=(200, 3)))
    searched = []
    true = neighbors.search_dense
    monkeypatch.setattr(
        neighbors, "search_dense", lambda Q, *a, **b: (searched.append(len(Q)), true(Q, *a, **b))[1]
    )
    found = neighbors.search_pairs(X, 5)
    assert searched == [200]
    np.testing.assert_allclose(found.scores, nearest_by_definition(X, 5)[1], atol=1e-15)


@given(n=st.integers(2, 30), k=st.integers(1, 12), seed=st.integers(0, 2**31 - 1))
def test_pairs_find_the_best_among_equal_rows(n, k, seed):
    """Coordinates of few values, so that rows are equal or 0: the scores are those of the definition."""
    k = min(k, n - 1)
    X = graph_module.unit_rows(
        np.random.default_rng(seed).integers(-1, 2, size=(n, 3)).astype(float)
    )
    found = neighbors.search_pairs(X, k)
    np.testing.assert_allclose(found.scores, nearest_by_definition(X, k)[1], atol=1e-15)
    assert all(len({*ids, i}) == k + 1 for i, ids in enumerate(found.ids.tolist()))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_other_metrics(metric):
    X = blobs(60)
    distances = pairwise_distances(X, metric=metric) + np.diag(np.full(60, np.inf))
    nearest = np.argsort(distances, axis=1)[:, :4]
    graph = neighbor_graph(X, n_neighbors=4, metric=metric)
    scale = np.median(np.take_along_axis(distances, nearest, axis=1)[:, -1])
    directed = np.zeros((60, 60))
    for i in range(60):
        weights = np.exp(-((distances[i, nearest[i]] / scale) ** 2))
        directed[i, nearest[i]] = weights / weights.sum()
    np.testing.assert_allclose(graph.toarray(), directed + directed.T, atol=1e-10)


def test_callable_metric_is_the_named_one():
    X = blobs(30)
    one = neighbor_graph(X, n_neighbors=3, metric=lambda u, v: float(np.abs(u - v).sum()))
    np.testing.assert_allclose(
        one.toarray(), neighbor_graph(X, n_neighbors=3, metric="manhattan").toarray()
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [3, 40])
def test_approximate_search_reports_its_recall(metric, k):
    """The reported recall is that of the graph, within the error of its sample."""
    X = blobs(3000, d=12, n_centres=30)
    exact = neighbor_graph(X, n_neighbors=k, metric=metric, method="exact")
    near = neighbor_graph(
        X, n_neighbors=k, metric=metric, method="approximate", random_state=0, n_jobs=2
    )
    assert near.diagnostics["method"] == "approximate"
    assert near.diagnostics["recall"] >= 0.95
    common = (near.astype(bool).multiply(exact.astype(bool))).nnz / exact.nnz
    assert common == pytest.approx(near.diagnostics["recall"], abs=0.02)
    assert near.diagonal().max() == 0.0


def test_cells_hold_nearly_all_neighbours_compiled_or_not(monkeypatch):
    X = graph_module.unit_rows(blobs(500, d=8)).astype(np.float32)
    offsets, results = np.zeros(500, dtype=np.float32), []
    true = neighbors.search_dense(X, np.arange(500), X, offsets, 4).ids
    for _ in range(2):
        found, reached = neighbors.search_cells(X, offsets, 4, np.random.RandomState(0))
        hits = (true[:, :, None] == found.ids[:, None, :]).any(axis=2)
        assert hits.mean() == reached >= 0.97
        results.append(found.ids)
        monkeypatch.setattr(neighbors, "keep_best", plain(neighbors.keep_best))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("most", [1, 25, 50, 100, 10**9])
def test_most_compared_bounds_the_rows_that_each_is_compared_with(most, monkeypatch):
    """All rows are in the sample: but for its own cell no row is compared with more, and the recall is the graph's."""
    X, compared = blobs(450, d=8), []
    gaps = neighbors.Cells.gaps

    def counted(cells, rows):
        found = gaps(cells, rows)
        compared.append((cells, found.copy()))
        return found

    monkeypatch.setattr(neighbors.Cells, "gaps", counted)
    visits, visit = [], neighbors.Cells.visit
    monkeypatch.setattr(
        neighbors.Cells, "visit", lambda *given: (visits.append(given[2]), visit(*given))[1]
    )
    near = neighbor_graph(
        X, n_neighbors=5, method="approximate", most_compared=most, random_state=0
    )
    (cells, found), (reach,) = compared[0], visits
    sizes = np.diff(cells.bounds)
    own = sizes[found.argmin(axis=1)].mean()
    assert ((found <= reach) @ sizes).mean() <= max(most, own)
    exact = neighbor_graph(X, n_neighbors=5, method="exact")
    common = near.astype(bool).multiply(exact.astype(bool)).nnz / exact.nnz
    assert common == pytest.approx(near.diagnostics["recall"], abs=0.05)
    assert (near.diagnostics["recall"] >= 0.97) == (most >= 100)
    assert near.diagnostics["n_random"] == 0
    with pytest.raises(ValueError, match="most_compared"):
        neighbor_graph(X, most_compared=0)


def test_row_in_a_cell_of_its_own_has_neighbours():
    """However few rows are compared: a row far from all others is compared with all of them."""
    X = np.vstack([blobs(400, d=3), np.full((1, 3), 30.0)])
    graph = neighbor_graph(
        X, n_neighbors=5, metric="euclidean", method="approximate", most_compared=1, random_state=0
    )
    assert graph.diagnostics["n_random"] == 0
    assert set(graph[[400]].nonzero()[1]) == set(
        np.argsort(np.linalg.norm(X[:400] - X[400], axis=1))[:5]
    )


def test_auto_is_approximate_for_many_dense_rows_only(monkeypatch):
    monkeypatch.setattr("transduce.methods.spectral_graph.neighbors.EXACT_ROWS", 100)
    X = blobs(400)
    assert neighbor_graph(X, random_state=0).diagnostics["method"] == "approximate"
    assert neighbor_graph(sp.csr_array(X)).diagnostics["method"] == "exact"
    assert neighbor_graph(X, metric="manhattan").diagnostics["method"] == "exact"


# --------------------------------------------------------------------------------------------------- spectrum


def residuals(A, found):
    B = np.asarray(A.sum(axis=1)).ravel()
    S = sp.diags_array(B**-0.5) @ A @ sp.diags_array(B**-0.5)
    return np.linalg.norm(found.vectors - S @ found.vectors - found.vectors * found.values, axis=0)


@pytest.mark.parametrize("route", ["dense", "arpack", "filtered"])
def test_spectrum_by_every_route(route, monkeypatch):
    A = neighbor_graph(blobs(500, n_centres=1), n_neighbors=8)
    B = A.sum(axis=1)
    true = np.linalg.eigvalsh(np.eye(500) - A.toarray() / np.sqrt(np.outer(B, B)))[1:21]
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 800 if route == "dense" else 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10 if route == "filtered" else 20_000)
    found = graph_spectrum(A, n_components=20, random_state=0)
    exact = route != "filtered"
    np.testing.assert_allclose(found.values, true, atol=1e-9 if exact else 1e-6)
    np.testing.assert_allclose(
        found.vectors.T @ found.vectors, np.eye(20), atol=1e-9 if exact else 1e-4
    )
    assert found.residuals.max() < (1e-8 if exact else 1e-4)
    np.testing.assert_allclose(residuals(A, found), found.residuals, atol=1e-10 if exact else 1e-5)
    trivial = np.sqrt(found.degrees)
    assert np.abs(trivial @ found.vectors).max() < (1e-8 if exact else 1e-4)


def random_graph(n, n_neighbors, seed=0):
    """Ties between rows drawn at random: all eigenvalues but the first are far below 1."""
    ends = np.random.default_rng(seed).integers(0, n, (2, n * n_neighbors))
    A = sp.coo_array((np.ones(n * n_neighbors), ends), shape=(n, n)).tocsr()
    A = sp.lil_array(A + A.T)
    A.setdiag(0.0)
    return sp.csr_array(A)


@pytest.mark.parametrize("kind", ["random", "neighbours"])
def test_a_few_lanczos_steps_count_eigenvalues(kind):
    if kind == "random":
        A = random_graph(900, 4)
    else:
        A = neighbor_graph(blobs(900, n_centres=1), n_neighbors=8)
    S = spectrum.normalised(A, np.asarray(A.sum(axis=1)).ravel())
    true = np.linalg.eigvalsh(S.toarray())[::-1]
    found = []
    for seed in range(10):
        vector = np.random.default_rng(seed).standard_normal(900)
        lower, above = device_graph.eigenvalue_counts(S.__matmul__, vector / np.linalg.norm(vector))
        assert lower <= true[-1] + 0.01
        found.append([above(n) for n in (50, 100, 200)])
    np.testing.assert_allclose(np.mean(found, axis=0), true[[50, 100, 200]], atol=0.05)


def test_the_filter_finds_eigenvalues_far_below_1(monkeypatch):
    """A first cut that is too high is given up."""
    A = random_graph(1000, 60)
    wanted = graph_spectrum(A, n_components=20)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10)
    monkeypatch.setattr(spectrum, "_inverted", None)  # nothing else is tried
    counts = device_graph.eigenvalue_counts

    def too_high(*given):
        return counts(*given)[0], lambda n: 0.6

    for estimate in (counts, too_high):
        monkeypatch.setattr(device_graph, "eigenvalue_counts", estimate)
        found = graph_spectrum(A, n_components=20, random_state=0)
        np.testing.assert_allclose(found.values, wanted.values, atol=1e-6)


def test_a_rough_spectrum_stays_within_its_tolerance(monkeypatch):
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10)
    A = neighbor_graph(blobs(1000, n_centres=1), n_neighbors=8)
    fine, rough = (
        graph_spectrum(A, n_components=20, tolerance=share, random_state=0) for share in (None, 0.2)
    )
    assert 1e-4 < rough.residuals.max() <= 0.2 * rough.values[-1]
    assert (np.abs(fine.values - rough.values) <= rough.residuals + 1e-4).all()
    with pytest.raises(ValueError, match="tolerance"):
        graph_spectrum(A, tolerance=0.0)


def test_labels_from_the_filtered_spectrum_are_those_from_the_exact_one(monkeypatch):
    """Ten draws of a hundred labelled digits: no row, or hardly one, is labelled otherwise."""
    X, truth = load_digits(return_X_y=True)
    A = neighbor_graph(X)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 2000)
    exact = graph_spectrum(A)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10)
    filtered = graph_spectrum(A, random_state=0)
    np.testing.assert_allclose(filtered.values, exact.values, atol=1e-6)
    models = [
        SpectralGraphTransducer(metric="precomputed").fit(found, truth)
        for found in (exact, filtered)
    ]
    n_other = 0
    for draw in range(10):
        y = np.full(len(truth), np.nan)
        rows = np.random.default_rng(draw).permutation(len(truth))[:100]
        y[rows] = truth[rows]
        one, two = (model.relabel(y).transduction_ for model in models)
        n_other += int((one != two).sum())
    assert n_other <= 2


def test_filter_uncompiled_and_with_dependent_columns(monkeypatch):
    """A block with two equal columns is made orthogonal first; the plain form of the compiled step agrees."""
    A = ring(60, 3)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    S, known = spectrum.normalised(A, degrees), np.full(60, 60**-0.5, dtype=np.float32)
    block = np.random.default_rng(0).standard_normal((60, 12)).astype(np.float32)
    block[:, 3] = block[:, 4]
    values, vectors, _ = spectrum.leading_pairs(S, block.copy(), 5, 1e-4, known)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S.toarray())[::-1][1:6], atol=1e-6)
    assert np.abs(known @ vectors).max() < 1e-5
    monkeypatch.setattr(spectrum, "chebyshev_step", spectrum.chebyshev_step.py_func)
    again = spectrum.leading_pairs(S, block.copy(), 5, 1e-4, known, neighbors.Work(2))[0]
    np.testing.assert_allclose(again, values, atol=1e-5)


@pytest.mark.parametrize("route", ["arpack", "filtered"])
def test_a_curve_is_solved_by_inversion(route, monkeypatch):
    """A path's eigenvalues are so close to 0 that products do not tell them apart: 1 - cos(j pi / (n - 1))."""
    n = 3000
    path = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10 if route == "filtered" else 20_000)
    monkeypatch.setattr(spectrum, "MOST_RESTARTS", 3)
    found = graph_spectrum(path, n_components=6, random_state=0)
    np.testing.assert_allclose(
        found.values, 1 - np.cos(np.arange(1, 7) * np.pi / (n - 1)), rtol=1e-4
    )
    assert found.residuals.max() < 1e-8
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-8)


def test_what_converges_by_no_route_is_an_error(monkeypatch):
    A = ring(600, 3)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 10)
    monkeypatch.setattr(spectrum, "EXTRA", 3)
    monkeypatch.setattr(spectrum, "MOST_CYCLES", 1)
    true = spectrum.eigsh

    def never(*args, **options):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    widths = []
    first = spectrum.leading_pairs
    monkeypatch.setattr(
        spectrum,
        "leading_pairs",
        lambda S, block, *a, **b: (widths.append(block.shape[1]), first(S, block, *a, **b))[1],
    )
    assert graph_spectrum(A, n_components=10, random_state=0).residuals.max() < 1e-8  # by inversion
    assert widths == [13, 19]
    monkeypatch.setattr(spectrum, "eigsh", never)
    monkeypatch.setattr(spectrum, "MOST_BLOCK_STEPS", 0)
    monkeypatch.setattr(spectrum, "MOST_DENSE_ROWS", 10)
    with pytest.raises(ArithmeticError, match="were not found"):
        graph_spectrum(A, n_components=10, random_state=0)
    monkeypatch.setattr(spectrum, "eigsh", true)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 1000)
    monkeypatch.setattr(spectrum, "GOOD", 1e-300)
    monkeypatch.setattr(spectrum, "MOST_DENSE_ROWS", 1000)
    assert graph_spectrum(A, n_components=10, random_state=0).residuals.max() < 1e-8


def test_weak_ties_are_not_taken_for_none():
    """Three cliques in a row: the eigenvectors of eigenvalues near 0 are not mixed with the constant one."""
    A = np.kron(np.eye(3), np.ones((6, 6))) - np.eye(18)
    A[5, 6] = A[6, 5] = A[11, 12] = A[12, 11] = 1e-30
    found = graph_spectrum(A, n_components=4)
    assert np.abs(np.sqrt(found.degrees) @ found.vectors).max() < 1e-12
    assert found.count == 1


def test_equal_eigenvalues_are_kept_or_dropped_together():
    """A circle has every eigenvalue twice but one."""
    assert len(graph_spectrum(ring(60), n_components=7).values) == 6
    assert len(graph_spectrum(ring(60), n_components=8).values) == 8
    assert (
        len(graph_spectrum(np.ones((30, 30)), n_components=5).values) == 5
    )  # nothing else is left


def test_degrees_are_those_of_the_graph_given():
    found = graph_spectrum(5.0 * (np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1)))
    np.testing.assert_array_equal(found.degrees, [5.0, 10.0, 5.0])
    tiny = graph_spectrum(sp.block_diag([1e200 * (np.ones((2, 2))), 1e-200 * np.ones((2, 2))]))
    assert tiny.count == 3  # beside the largest weight the small ones are none


def test_the_user_s_matrix_is_left_alone():
    X = sp.csr_array(np.abs(blobs(20)))
    X.indices = X.indices.reshape(20, -1)[:, ::-1].ravel().copy()
    X.data = X.data.reshape(20, -1)[:, ::-1].ravel().copy()
    X.has_sorted_indices = False
    before = X.indices.copy()
    neighbor_graph(X, n_neighbors=3)
    np.testing.assert_array_equal(X.indices, before)


def test_distances_that_are_not_numbers_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 4))
    huge = neighbor_graph(1e200 * X, n_neighbors=3, metric="euclidean")
    np.testing.assert_allclose(
        huge.toarray(), neighbor_graph(X, n_neighbors=3, metric="euclidean").toarray()
    )
    tiny = neighbor_graph(1e-200 * X, n_neighbors=3, metric="manhattan")
    np.testing.assert_allclose(
        tiny.toarray(), neighbor_graph(X, n_neighbors=3, metric="manhattan").toarray()
    )
    X[3] = 1.0
    with pytest.raises(ValueError, match="no finite distance"):
        neighbor_graph(X, n_neighbors=3, metric="correlation")


def test_arpack_that_gives_up_is_tried_with_a_larger_space(monkeypatch):
    A = neighbor_graph(blobs(300), n_neighbors=6)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    sizes = []
    true = spectrum.eigsh

    def sometimes(S, k, **options):
        sizes.append(options["ncv"])
        if len(sizes) == 1:
            raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))
        return true(S, k, **options)

    monkeypatch.setattr(spectrum, "eigsh", sometimes)
    assert graph_spectrum(A, n_components=10, random_state=0).residuals.max() < 1e-8
    assert sizes[1] > sizes[0]


def copies(n=400, n_different=60, d=20, seed=0):
    """Rows of which half are copies of a few: a graph of cliques that hardly hang together."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    X[: n // 2] = X[rng.integers(n_different, size=n // 2)]
    return X


def refuse(*args, **options):
    raise spectrum.ArpackError(-1, {-1: "no convergence"})


def refuse_filter(*args, **options):
    raise spectrum.NotConvergedError("no convergence")


def mislead(S, d, v0, **options):
    """What ARPACK could return: vectors that are none of the eigenvectors."""
    return np.zeros(d), np.linalg.qr(np.random.default_rng(0).normal(size=(S.shape[0], d)))[0]


def test_what_a_solver_returns_is_checked(monkeypatch):
    A = neighbor_graph(blobs(400, 3), n_neighbors=8, metric="euclidean")
    true = graph_spectrum(A, n_components=5, random_state=0)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "eigsh", mislead)
    for rows in (20, 3000):
        monkeypatch.setattr(spectrum, "ARPACK_ROWS", rows)
        monkeypatch.setattr(spectrum, "leading_pairs", refuse_filter)
        found = graph_spectrum(A, n_components=5, random_state=0)
        assert found.residuals.max() < 1e-8
        np.testing.assert_allclose(found.values, true.values, atol=1e-10)


SOLVERS = {"leading_pairs": refuse_filter, "eigsh": refuse, "splu": refuse}


@pytest.mark.parametrize("n_failing", range(4))
@pytest.mark.parametrize("rows", [2, 30])
def test_an_eigenproblem_that_one_solver_gives_up_is_solved_by_the_next(
    n_failing, rows, monkeypatch
):
    """Filter, ARPACK on the inverse, a block with the inverse, a dense matrix: all find the same vectors."""
    A = neighbor_graph(blobs(400, 3), n_neighbors=8, metric="euclidean")
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", rows)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", rows)
    for name in list(SOLVERS)[:n_failing]:
        monkeypatch.setattr(spectrum, name, SOLVERS[name])
    found, again = (graph_spectrum(A, n_components=5, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(found.vectors, again.vectors)
    assert found.residuals.max() < 1e-4
    B = np.asarray(A.sum(axis=1)).ravel()
    dense = np.linalg.eigvalsh(np.eye(400) - A.toarray() / np.sqrt(np.outer(B, B)))
    np.testing.assert_allclose(found.values, dense[1:6], atol=1e-5)


@pytest.mark.parametrize("rows", [(10, 20), (10, 3000), (800, 3000)])
@pytest.mark.parametrize("n_components", [2, 40])
def test_equal_rows_have_a_spectrum_and_always_the_same_one(rows, n_components, monkeypatch):
    """Dozens of eigenvalues are 0 but for rounding, which no Krylov space tells apart."""
    monkeypatch.setattr(spectrum, "DENSE_ROWS", rows[0])
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", rows[1])
    A = neighbor_graph(copies(), metric="euclidean", random_state=0)
    found, again = (graph_spectrum(A, n_components=n_components, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(found.vectors, again.vectors)
    assert found.residuals.max() < 1e-4
    for component in range(found.count):
        inside = found.components == component
        own = found.vectors[inside][:, found.columns[found.owners == component]]
        np.testing.assert_allclose(own.T @ own, np.eye(own.shape[1]), atol=1e-4)
        assert (
            np.abs(np.sqrt(found.degrees[inside] / found.degrees[inside].sum()) @ own).max(
                initial=0.0
            )
            < 1e-4
        )


def test_fewer_vectors_rather_than_none(monkeypatch):
    A = neighbor_graph(copies(300, d=3), metric="euclidean", random_state=0)
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 20)
    monkeypatch.setattr(spectrum, "MOST_DENSE_ROWS", 0)
    monkeypatch.setattr(spectrum, "leading_pairs", refuse_filter)
    monkeypatch.setattr(spectrum, "eigsh", refuse)
    monkeypatch.setattr(spectrum, "EXTRA", 1)
    monkeypatch.setattr(spectrum, "MOST_BLOCK_STEPS", 10)
    with pytest.warns(UserWarning, match="only .* were found"):
        found = graph_spectrum(A, n_components=40, random_state=0)
    assert 0 < len(found.values) < 40
    assert found.residuals.max() < 1e-8
    monkeypatch.setattr(spectrum, "splu", refuse)
    with pytest.raises(ArithmeticError, match="ask for fewer n_components"):
        graph_spectrum(A, n_components=40, random_state=0)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_tiny_graphs_have_all_their_vectors(n):
    found = graph_spectrum(np.ones((n, n)))
    np.testing.assert_allclose(found.values, np.full(n - 1, n / (n - 1)))


def test_threads_leave_no_trace(monkeypatch):
    """Neither among equally near rows nor in sums over all rows."""
    monkeypatch.setattr(spectrum, "DENSE_ROWS", 10)
    monkeypatch.setattr(spectrum, "ARPACK_ROWS", 20)
    monkeypatch.setattr(spectrum, "CHUNK", 64)
    rows, smooth = copies(), neighbor_graph(blobs(400, 3), n_neighbors=8)
    graphs, spectra = [], []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            graphs.append(neighbor_graph(rows, metric="euclidean", random_state=0).toarray())
            spectra.append(
                graph_spectrum(smooth, n_components=5, random_state=0, n_jobs=threads).vectors
            )
    for one in (graphs, spectra):
        np.testing.assert_array_equal(one[0], one[1])
        np.testing.assert_array_equal(one[0], one[2])


@pytest.mark.parametrize("route", ["dense", "filtered"])
def test_thirty_components_are_all_found(route, monkeypatch):
    """ARPACK alone returns some of the thirty null vectors; here they are built."""
    sizes = np.arange(30) + 5
    A = sp.block_diag([ring(size) for size in sizes]).tocsr()
    mix = np.random.default_rng(0).permutation(A.shape[0])
    A = A[mix][:, mix]
    if route == "filtered":
        monkeypatch.setattr(spectrum, "DENSE_ROWS", 20)
        monkeypatch.setattr(spectrum, "ARPACK_ROWS", 25)
        monkeypatch.setattr(spectrum, "EXTRA", 5)
    found = graph_spectrum(A, n_components=8, random_state=0)
    assert found.count == 30
    np.testing.assert_array_equal(np.sort(np.bincount(found.components)), sizes)
    null = brute.null_vectors(found)
    np.testing.assert_allclose(null.T @ null, np.eye(30), atol=1e-12)
    B = np.asarray(A.sum(axis=1)).ravel()
    S = sp.diags_array(B**-0.5) @ A @ sp.diags_array(B**-0.5)
    assert abs(S @ null - null).max() < 1e-12
    dense = np.linalg.eigvalsh(np.eye(len(B)) - S.toarray())
    np.testing.assert_allclose(found.values[:8], dense[30:38], atol=1e-5)
    assert found.residuals.max() < 1e-4
    for value, residual, owner, column in zip(
        found.values, found.residuals, found.owners, found.columns, strict=True
    ):
        v = np.where(found.components == owner, found.vectors[:, column], 0.0)
        assert np.linalg.norm(v) == pytest.approx(1.0, abs=1e-4)
        assert np.linalg.norm(v - S @ v - value * v) == pytest.approx(residual, abs=1e-5)


# --------------------------------------------------------------------------------------------------- laws


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from(["cosine", "euclidean"]))
def test_row_order_leaves_no_trace(seed, k, metric):
    """Also with many ties: small whole numbers."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, 4, size=(25, 3)) + 1.0, axis=0)
    mix = rng.permutation(len(X))
    one = neighbor_graph(X, n_neighbors=k, metric=metric).toarray()
    two = neighbor_graph(X[mix], n_neighbors=k, metric=metric).toarray()
    np.testing.assert_allclose(two, one[mix][:, mix], atol=1e-12)


@given(st.integers(0, 10_000), st.floats(1e-200, 1e200))
def test_scale_of_a_row_does_not_matter_to_the_cosine(seed, factor):
    X = np.random.default_rng(seed).normal(size=(20, 4))
    one = neighbor_graph(X, n_neighbors=3).toarray()
    X[7] *= factor
    np.testing.assert_allclose(neighbor_graph(X, n_neighbors=3).toarray(), one, atol=1e-9)


@given(st.integers(0, 10_000))
def test_weights_of_a_row_sum_to_one_in_either_direction(seed):
    X = np.random.default_rng(seed).normal(size=(30, 5))
    graph = neighbor_graph(X, n_neighbors=4)
    assert graph.sum() == pytest.approx(60.0)
    assert abs(graph - graph.T).max() < 1e-15
    assert graph.diagonal().max() == 0.0


# --------------------------------------------------------------------------------------------------- limits


def test_rows_without_similarity_are_tied_to_random_rows():
    X = np.vstack([np.abs(blobs(20)), -np.ones((1, 10)), np.zeros((1, 10))])
    for rows in (X, sp.csr_array(X)):
        graph = neighbor_graph(rows, n_neighbors=5, random_state=0)
        assert graph.diagnostics["n_random"] == 2
        for row in (20, 21):
            assert (graph[[row]].toarray() > 0).sum() >= 5
        assert graph.diagonal().max() == 0.0
        again = neighbor_graph(rows, n_neighbors=5, random_state=0)
        assert abs(graph - again).max() == 0.0


def test_more_neighbours_than_rows():
    graph = neighbor_graph(np.abs(blobs(5)), n_neighbors=50)
    assert graph.diagnostics["n_neighbors"] == 4
    assert neighbor_graph(np.ones((1, 2))).shape == (1, 1)


def test_equal_rows_and_far_rows_have_neighbours():
    X = np.vstack([np.zeros((12, 2)), [[1e6, 0.0]]])
    graph = neighbor_graph(X, n_neighbors=3, metric="euclidean")
    assert graph.diagnostics["n_random"] == 0
    assert graph[[12]].nnz >= 3
    assert np.isfinite(graph.data).all()


def test_sum_of_graphs_is_a_graph():
    one, two = (
        neighbor_graph(blobs(20), n_neighbors=2),
        neighbor_graph(blobs(20, seed=1), n_neighbors=2),
    )
    both = one + two
    assert isinstance(both, NeighborGraph)
    assert both.diagnostics == {}
    np.testing.assert_allclose(both.toarray(), one.toarray() + two.toarray())


def test_files_hold_arrays_only(tmp_path):
    graph = neighbor_graph(load_digits().data[:100], n_neighbors=3)
    found = graph_spectrum(graph, n_components=4)
    found.save(tmp_path / "spectrum.npz")
    too = Spectrum.load(tmp_path / "spectrum.npz")
    for name in ("vectors", "values", "components", "degrees", "residuals", "owners", "columns"):
        np.testing.assert_array_equal(getattr(too, name), getattr(found, name))


def test_spectrum_of_rows_tied_to_nothing():
    found = graph_spectrum(np.zeros((3, 3)))
    assert found.vectors.shape == (3, 0)
    assert found.count == 3
    np.testing.assert_array_equal(brute.null_vectors(found), np.eye(3))


def test_progress_is_told_and_shown(capsys):
    seen = []
    with show_progress(lambda name, share: seen.append((name, share))):
        graph = neighbor_graph(blobs(600), n_neighbors=3)
        graph_spectrum(graph, n_components=3)
    assert {name for name, _ in seen} == {"neighbours", "spectrum"}
    shares = [share for name, share in seen if name == "neighbours"]
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    with show_progress():
        neighbor_graph(blobs(600), n_neighbors=3)
    assert "neighbours: 100%" in capsys.readouterr().err
    neighbor_graph(blobs(20), n_neighbors=3)
    assert capsys.readouterr().err == ""


def test_a_stage_that_is_broken_off_says_so(capsys):
    with pytest.raises(KeyboardInterrupt), show_progress(), computing.stage("long work"):
        raise KeyboardInterrupt
    assert "long work: broken off" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number from 1"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number"),
        ({"metric": "nonsense"}, "metric must be 'cosine'"),
        ({"metric": "precomputed"}, r"SpectralGraphTransducer\(metric='precomputed'\)"),
        ({"metric": 3}, "metric must be"),
        ({"metric": "seuclidean"}, "metric must be"),
        ({"method": "guess"}, "method must be one of"),
        ({"method": "approximate", "metric": "manhattan"}, "needs metric='cosine' or 'euclidean'"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_settings_of_a_graph(settings, match):
    with pytest.raises(ValueError, match=match):
        neighbor_graph(blobs(20), **settings)


def test_bad_rows_of_a_graph():
    with pytest.raises(ValueError, match="holds text"):
        neighbor_graph([["a", "b"], ["c", "d"]])
    with pytest.raises(ValueError, match="contains NaN"):
        neighbor_graph([[1.0, np.nan]])
    with pytest.raises(ValueError, match="does not take a sparse matrix"):
        neighbor_graph(sp.csr_array(blobs(20)), metric="chebyshev")
    with pytest.raises(ValueError, match=r"and dense rows: use method=.exact."):
        neighbor_graph(sp.csr_array(blobs(20)), method="approximate")


@pytest.mark.parametrize(
    ("A", "match"),
    [
        (np.ones((2, 3)), "square matrix"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "negative weights"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "must be finite"),
        ("text", "square matrix of weights"),
        (np.empty((0, 0)), "square matrix"),
    ],
)
def test_bad_graphs(A, match):
    with pytest.raises(ValueError, match=match):
        graph_spectrum(A)


@pytest.mark.parametrize("n_components", [0, 1.5, True])
def test_bad_number_of_components(n_components):
    with (
        warnings.catch_warnings(),
        pytest.raises(ValueError, match="n_components must be a whole number"),
    ):
        graph_spectrum(np.ones((3, 3)), n_components=n_components)


def test_a_spectrum_in_another_order_is_that_of_the_moved_graph():
    random = np.random.default_rng(0)
    blocks = [random.uniform(size=(k, k)) for k in (5, 3, 4)]
    A = sp.block_diag([block + block.T for block in blocks]).toarray()
    order = random.permutation(12)
    moved, again = (
        graph_spectrum(A, n_components=3).take(order),
        graph_spectrum(A[np.ix_(order, order)], n_components=3),
    )
    np.testing.assert_array_equal(moved.components, again.components)
    np.testing.assert_allclose(moved.degrees, again.degrees)
    np.testing.assert_allclose(moved.values, again.values)
    np.testing.assert_array_equal(moved.owners, again.owners)
    np.testing.assert_allclose(brute.null_vectors(moved), brute.null_vectors(again))
    np.testing.assert_allclose(
        np.abs(moved.vectors), np.abs(again.vectors), atol=1e-9
    )  # up to signs
