"""Rows by what is in them: numbers that tell different rows apart, and copies not."""

import numpy as np
import pandas as pd
from scipy import sparse

from transduce.core.row_order import (
    content_order,
    number_rows,
    number_rows_of_kernel,
    places_in,
)


def test_rows_are_numbered_as_in_a_dictionary():
    rows = np.random.default_rng(0).integers(3, size=(200, 4)).astype(float)
    numbers = number_rows(rows)
    by_hand = {row: number for number, row in enumerate(sorted(set(map(tuple, rows))))}
    assert numbers.tolist() == [by_hand[tuple(row)] for row in rows]
    np.testing.assert_array_equal(number_rows(rows * [1e9, 1e-9, 2.0, 3.0] - 7.0), numbers)


def test_sparse_rows_have_the_numbers_of_dense_ones():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((300, 200)) < 0.01, rng.integers(-1, 3, size=(300, 200)), 0.0)
    np.testing.assert_array_equal(number_rows(sparse.csr_matrix(rows)), number_rows(rows))
    stored = sparse.csr_matrix((np.zeros(2), np.array([0, 1]), np.array([0, 2, 2])), (2, 2))
    assert number_rows(stored).tolist() == [0, 0]  # a zero that is stored is a zero


def test_copies_are_alike_in_every_container():
    rows = np.array([[0.0, 2.0], [-0.0, 2.0], [2.0, 0.0], [np.nan, 1.0], [-np.nan, 1.0]])
    assert number_rows(rows).tolist() == [0, 0, 1, 2, 2]
    assert number_rows(pd.DataFrame(rows)).tolist() == [0, 0, 1, 2, 2]
    frame = pd.DataFrame({"a": ["x", None, "x"], "b": pd.Categorical(["u", "v", "u"])})
    assert number_rows(frame).tolist() == [1, 0, 1]
    assert number_rows(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert number_rows(pd.Series(["b", "a", "b"])).tolist() == [1, 0, 1]
    assert number_rows(np.empty((3, 0))).tolist() == [0, 0, 0]
    assert number_rows(np.empty((0, 2))).tolist() == []


def test_rows_of_a_kernel_are_known_in_any_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    order = rng.permutation(20)
    kernel = X @ X.T
    numbers = number_rows_of_kernel(kernel)
    np.testing.assert_array_equal(number_rows_of_kernel(kernel[order][:, order]), numbers[order])
    assert len(set(numbers.tolist())) == 20


def test_an_order_and_its_places():
    numbers = np.array([5, 1, 5, 3])
    order = content_order(numbers, np.array([1.0, np.nan, 0.0, np.nan]))
    places = places_in(order)
    assert places[order].tolist() == [0, 1, 2, 3]
    assert places[0] == places[2] + 1  # copies side by side, by their labels
    assert sorted(content_order(np.arange(100)).tolist()) == list(range(100))
    assert abs(np.corrcoef(content_order(np.arange(100)), np.arange(100))[0, 1]) < 0.3
