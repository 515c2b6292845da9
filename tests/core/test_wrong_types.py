"""What is of a wrong type is refused in a sentence, by functions that take records."""

from __future__ import annotations

import numpy as np
import pytest

from transduce import Regions, TransductiveRidge
from transduce.core.sample import PartlyLabelled
from transduce.model_selection import cross_val_transduce
from transduce.model_selection.linear import LinearRegressor

WRONG = [None, 5, "x", [1]]


@pytest.mark.parametrize("wrong", WRONG)
def test_records(wrong):
    for ask in (
        lambda: Regions.concatenate([wrong]),
        lambda: PartlyLabelled.from_arrays(wrong, [1.0]),
    ):
        with pytest.raises(ValueError, match=r"must be|takes"):
            ask()


@pytest.mark.parametrize("groups", [["a"], [1, 2], np.ones((20, 1)), 5])
def test_groups_of_another_length(groups):
    X = np.arange(40.0).reshape(20, 2)
    y = np.where(np.arange(20) < 12, X[:, 0], np.nan)
    with pytest.raises(ValueError, match="one group for each of the 20 rows"):
        cross_val_transduce(TransductiveRidge(), X, y, cv=2, groups=groups)


def test_groups_of_two_types():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(np.arange(20) < 12, X[:, 0], np.nan)
    mixed = np.array([1, "a"] * 10, dtype=object)
    found = cross_val_transduce(TransductiveRidge(), X, y, cv=2, groups=mixed, random_state=0)
    assert len(found.answers) == 12


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_penalties_are_compared_for_labels_of_any_size(factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 20)), rng.normal(size=30)
    plain = LinearRegressor().fit(X, y)
    scaled = LinearRegressor().fit(X, y * factor)
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), rtol=1e-9)
