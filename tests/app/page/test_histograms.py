"""Histograms in the heads of columns, against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest

from transduce.app.page.histograms import N_BARS, shape_of_numbers, shape_of_texts


def slow_counts(values, low, high, n_bars):
    """How many values lie in each of equal parts; the last part has its upper end."""
    counts = [0] * n_bars
    for value in values:
        inside = min(max(value, low), high)
        place = int((inside - low) / (high - low) * n_bars)
        counts[min(place, n_bars - 1)] += 1
    return counts


def test_every_number_is_in_one_bar():
    values = np.random.default_rng(0).normal(size=500)
    shape = shape_of_numbers(np.append(values, [np.nan, np.inf]))
    low, high = np.quantile(values, [0.01, 0.99])
    assert shape["counts"] == slow_counts(values, low, high, N_BARS)
    assert shape["ends"] == [values.min(), values.max()]


def test_a_value_far_from_all_others_leaves_more_than_one_bar():
    values = np.append(np.arange(1000.0), 1e9)
    assert sum(count > 0 for count in shape_of_numbers(values)["counts"]) == N_BARS


def test_few_values_have_as_many_bars():
    assert shape_of_numbers(np.array([0.0, 1.0, 1.0]))["counts"] == [1, 2]


@pytest.mark.parametrize("values", [[], [np.nan], [3.0, 3.0]])
def test_one_value_has_no_shape(values):
    assert shape_of_numbers(np.array(values)) is None


def test_the_most_frequent_texts_come_first_and_the_others_together():
    texts = [f"t{place}" for place in range(30) for _ in range(40 - place)]
    shape = shape_of_texts(texts)
    assert shape["counts"][: N_BARS - 1] == [40 - place for place in range(N_BARS - 1)]
    assert sum(shape["counts"]) == len(texts)
    assert len(shape["counts"]) == N_BARS
    assert shape_of_texts(["a", "a"]) is None
    assert shape_of_texts(["b", "a", "b"])["counts"] == [2, 1]
