"""What a graph says about a labelling, and the minimum cut, against their definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from tests.methods.spectral_graph.test_graph import blobs
from transduce import SpectralGraphTransducer
from transduce.methods.spectral_graph import (
    average_cut,
    cut_value,
    minimum_cut,
    neighbor_graph,
    neighbor_margins,
)


def weighted_graph(n, seed, whole=False):
    """Random weights, some of them 0; whole numbers have many labellings of the same cut."""
    random = np.random.default_rng(seed)
    A = random.uniform(size=(n, n))
    if whole:
        A = random.integers(0, 3, size=(n, n)).astype(float)
    A = np.triu(A * (random.uniform(size=(n, n)) < 0.6), 1)
    return A + A.T


# ------------------------------------------------------------------------------------------- exact


@given(st.integers(0, 10_000))
def test_values_of_a_cut_are_sums_over_pairs(seed):
    A = weighted_graph(9, seed)
    signs = np.random.default_rng(seed).permutation([-1, -1, -1, 1, 1, 1, 1, 1, 1])
    cut = brute.cut_of(A, signs)
    assert cut_value(A, signs) == pytest.approx(cut)
    assert average_cut(A, signs) == pytest.approx(cut / 18)
    names = pd.Series(np.where(signs > 0, "ja", "nein"), dtype="category")
    assert cut_value(A, names) == pytest.approx(cut)


@given(st.integers(0, 10_000), st.booleans(), st.integers(3, 9), st.sampled_from([1, 2]))
def test_the_minimum_cut_is_the_best_of_all_labellings(seed, whole, n, n_second):
    """Of few rows too, where a connection may weigh more than all that can flow."""
    A = weighted_graph(n, seed, whole)
    signs = np.zeros(n, dtype=int)
    known = [-1, *[1] * n_second]
    signs[: len(known)] = known
    least, labellings = brute.least_cuts(A, signs)
    y = np.where(signs == 0, np.nan, signs)
    found = minimum_cut(A, y)
    assert found.value == pytest.approx(least, abs=1e-7)
    assert cut_value(A, found.labels) == pytest.approx(least, abs=1e-7)
    np.testing.assert_array_equal(found.labels[: len(known)], known)
    either = labellings.min(axis=0) != labellings.max(axis=0)
    np.testing.assert_array_equal(found.undecided, either)
    np.testing.assert_array_equal(found.labels[either], -1)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_margins_are_those_of_the_neighbours(seed, k):
    random = np.random.default_rng(seed)
    X = random.uniform(0.1, 1.0, size=(12, 3))
    signs = random.choice([-1, 1], size=12)
    found = neighbor_margins(X, signs, n_neighbors=k)
    margins = brute.knn_margins(X, k, signs)
    np.testing.assert_allclose(found.margins, margins, atol=1e-6)
    assert found.leave_one_out_error <= found.error_bound + 1e-12
    # The sum of all margins is all weights less those that are cut, twice.
    graph = neighbor_graph(X, n_neighbors=k)
    kept = 0.5 * graph.sum() - 2.0 * cut_value(graph, signs)
    assert found.margins.sum() == pytest.approx(kept, abs=1e-5)


# ------------------------------------------------------------------------------------------ limits


def two_clusters():
    """The paper's figure 1: two clusters of ten rows, one label in each, and ties between them."""
    A = np.zeros((20, 20))
    A[:10, :10] = 0.3
    A[10:, 10:] = 0.3
    for i in range(10):  # each row has two neighbours in the other cluster
        A[i, 10 + i] = A[i, 10 + (i + 1) % 10] = 0.2
    A = np.maximum(A, A.T)
    np.fill_diagonal(A, 0.0)
    y = np.full(20, np.nan)
    y[0] = 1
    y[10] = 0
    return A, y


def test_the_minimum_cut_takes_off_a_corner_where_the_average_cut_does_not():
    A, y = two_clusters()
    clusters = (np.arange(20) < 10).astype(float)
    corner = minimum_cut(A, y)
    assert min(np.sum(corner.labels == 1), np.sum(corner.labels == 0)) == 1
    assert corner.value < cut_value(A, clusters)
    assert average_cut(A, clusters) < average_cut(A, corner.labels)
    spectral = SpectralGraphTransducer(metric="precomputed").fit(A, y)
    np.testing.assert_array_equal(spectral.transduction_, clusters)


def test_rows_without_a_path_to_a_label_are_undecided():
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 1.0
    found = minimum_cut(A, ["a", None, None, "b"])
    assert found.value == 0.0
    assert found.labels[1] == "a"
    np.testing.assert_array_equal(found.undecided, [False, False, True, False])


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_a_connection_heavier_than_all_that_can_flow_is_not_cut(first, second):
    A = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = minimum_cut(A, [None, first, second])
    assert found.value == 1.0
    assert found.labels[0] == first
    assert not found.undecided.any()


def test_weights_of_any_size_are_cut_alike():
    A = weighted_graph(9, 5)
    y = [1, 0, *[None] * 7]
    found = minimum_cut(A, y)
    for scale in (1e-200, 1e200):
        scaled = minimum_cut(A * scale, y)
        np.testing.assert_array_equal(scaled.labels, found.labels)
        assert scaled.value == pytest.approx(found.value * scale)


# ---------------------------------------------------------------------------------------- refusals


def test_refusals():
    A = weighted_graph(4, 0)
    with pytest.raises(ValueError, match="2 labels are missing: give a label for every row"):
        cut_value(A, ["a", None, "b", None])
    with pytest.raises(ValueError, match="All rows have the same label"):
        average_cut(A, ["a"] * 4)
    with pytest.raises(ValueError, match="two sides, and y has 3 classes"):
        minimum_cut(A, ["a", "b", "c", None])
    with pytest.raises(ValueError, match="1 labels are missing"):
        neighbor_margins(blobs(4), ["a", "a", "b", None])
