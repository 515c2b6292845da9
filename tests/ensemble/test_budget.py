"""A time budget: planned costs leave slow members out, and the clock decides nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

from tests.model_selection.test_model_selection import numbers
from transduce import TransductiveBlend
from transduce.model_selection.methods import (
    Case,
    default_members,
    leave_out_slow,
    planned_costs,
)


class Slow(RegressorMixin, BaseEstimator):
    """Takes a tenth of a second whatever it is fitted to."""

    def fit(self, X, y):
        time.sleep(0.1)
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_the_slowest_members_go_first_and_one_stays():
    costs = {"a": 1.0, "b": 5.0, "c": 2.0}
    assert leave_out_slow(costs, 8.0) == {}
    assert list(leave_out_slow(costs, 7.9)) == ["b"]
    assert list(leave_out_slow(costs, 2.9)) == ["b", "c"]
    assert list(leave_out_slow(costs, 0.001)) == ["b", "c"]
    assert list(leave_out_slow(costs, 0.001, others=1)) == ["b", "c", "a"]
    reason = leave_out_slow(costs, 0.001)["b"]
    assert reason == "it would take about 5 s of a budget of 0.001 s"


def test_a_blend_plans_its_default_members():
    X, y, _ = numbers()
    n_labels = int(np.sum(~np.isnan(y)))
    case = Case("regression", len(X), n_labels, X.shape[1])
    members, _ = default_members(case)
    costs = planned_costs(members, case)
    slowest = max(costs, key=costs.get)
    budget = sum(costs.values()) - 0.5 * costs[slowest]
    model = TransductiveBlend(budget_seconds=budget, random_state=0).fit(X, y)
    assert set(members) - set(model.weights_.index) == {slowest}
    assert "of a budget of" in model.answer_.diagnostics["left out"][slowest]
    unlimited = TransductiveBlend(random_state=0).fit(X, y)
    assert set(unlimited.weights_.index) == set(members)


def test_members_that_are_given_all_take_part():
    X, y, _ = numbers()
    members = {"mean": DummyRegressor(), "slow": Slow()}
    model = TransductiveBlend(members, budget_seconds=0.001, cv=2, random_state=0).fit(X, y)
    assert list(model.weights_.index) == ["mean", "slow"]
    assert model.answer_.diagnostics["left out"] == {}
    with pytest.raises(ValueError, match="budget_seconds"):
        TransductiveBlend(members, budget_seconds=0).fit(X, y)
