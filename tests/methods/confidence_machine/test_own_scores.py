"""A function of the user's own in place of residuals: against its definition, and its laws."""

from __future__ import annotations

import numpy as np
import pytest

from tests import brute, brute_machine
from tests.methods.confidence_machine.test_tuned import make_rows
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.methods.confidence_machine.own_scores import farthest_label, unit_of

LINEAR = {"kernel": "linear", "standardize": False}


def to_neighbors(X, y):
    """Distance of each label to those of the other rows, weighed by nearness."""
    near = np.exp(-np.abs(X[:, None] - X).sum(axis=2))
    np.fill_diagonal(near, 0.0)
    return np.abs(y - near @ y / near.sum(axis=1))


def to_same_class(X, y):
    """Distance to the nearest row of the same class, in distances to the nearest other one."""
    distance = np.abs(X[:, None] - X).sum(axis=2) + 0.1
    np.fill_diagonal(distance, np.inf)
    same = y[:, None] == y
    same_nearest = np.where(same, distance, 100.0).min(axis=1)
    return same_nearest / np.where(same, 100.0, distance).min(axis=1)


def fit(X, y, function=to_neighbors, **options):
    holes = np.append(y, np.full(len(X) - len(y), np.nan))
    return RidgeConfidenceMachine(residual=function, standardize=False, **options).fit(X, holes)


# ------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(("seed", "kind"), [(0, "normal"), (1, "heavy"), (2, "duplicates")])
@pytest.mark.parametrize("resolution", ["auto", 0.5])
def test_regions_and_p_values_are_those_of_the_definition(seed, kind, resolution):
    X, y = make_rows(seed, kind=kind, n_labelled=9)
    machine = fit(X, y, resolution=resolution, confidence=0.75)
    spread = np.ptp(y)
    labels = np.random.default_rng(seed).uniform(y.min() - 2 * spread, y.max() + 2 * spread, 60)
    unit = None if resolution == "auto" else resolution
    expected = [
        brute_machine.own_p_value(to_neighbors, X, np.append(y, label), unit) for label in labels
    ]
    p = machine.p_values(np.repeat(X[-1:], len(labels), axis=0), labels)
    if kind == "duplicates":
        # The least score of copies counts, which can only raise p-values.
        assert np.all(p >= np.array(expected) - 1e-12)
    else:
        np.testing.assert_allclose(p, expected)
    inside = [bool(machine.answer_.regions.contains(label)[0]) for label in labels]
    away = np.abs(labels - machine.answer_.values[0]) > 0.5 * (unit or unit_of(y))
    np.testing.assert_array_equal(np.array(inside)[away], (p > 0.25 + 1e-9)[away])
    assert 0 < sum(inside) < len(labels)


def test_residuals_of_ridge_regression_give_its_p_values():
    """Whole labels without a gap, and a unit of 1: nothing is rounded, and no label is far."""
    X, _ = make_rows(3, n_labelled=12)
    y = np.arange(12.0) // 2

    def residuals(X, y):
        return np.abs(brute.ridge_residuals(X @ X.T, y, 1.0, True))

    labels = np.arange(-2.0, 8.0)
    rows = np.repeat(X[-1:], len(labels), axis=0)
    ours = fit(X, y, residuals, resolution=1.0).p_values(rows, labels)
    holes = np.append(y, np.nan)
    ridge = RidgeConfidenceMachine(**LINEAR).fit(X, holes)
    np.testing.assert_allclose(ours, ridge.p_values(rows, labels))


def test_classes_are_those_of_the_definition():
    X, _ = make_rows(4, n_labelled=14, n_unlabelled=3)
    y = np.array(list("aabbaabbabaabc"))
    holes = np.append(y.astype(object), [None] * 3)
    for by_class in (False, True):
        machine = RidgeConfidenceClassifier(
            residual=to_same_class, standardize=False, label_conditional=by_class, confidence=0.5
        ).fit(X, holes)
        expected = [
            [
                brute_machine.own_class_p_value(
                    to_same_class, np.vstack([X[:14], row]), np.append(y, name), by_class
                )
                for name in "abc"
            ]
            for row in X[14:]
        ]
        np.testing.assert_allclose(machine.answer_.p_values, expected)


# -------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("kind", ["normal", "heavy"])
def test_p_values_of_all_rows_are_ranks(kind):
    """Leave out each row in turn: the k-th smallest of n p-values is k / n."""
    X, y = make_rows(11, kind=kind, n_labelled=14, n_unlabelled=0)
    p = []
    for i in range(14):
        holes = np.where(np.arange(14) == i, np.nan, y)
        machine = RidgeConfidenceMachine(residual=to_neighbors).fit(X, holes)
        p.append(machine.p_values(X[i : i + 1], y[i : i + 1])[0])
    np.testing.assert_allclose(np.sort(p), np.arange(1, 15) / 14)


def test_the_order_of_rows_means_nothing():
    """Not even to a function that scores rows by their places."""

    def by_place(X, y):
        return np.abs(y) + np.arange(len(y))

    X, y = make_rows(5, n_labelled=10)
    labels = np.array([-1.0, 0.0, 2.0])
    rows = np.repeat(X[-1:], 3, axis=0)
    p = fit(X, y, by_place).p_values(rows, labels)
    order = np.random.default_rng(0).permutation(10)
    shuffled = fit(np.vstack([X[order], X[-1:]]), y[order], by_place)
    np.testing.assert_array_equal(shuffled.p_values(rows, labels), p)


def test_limits():
    X, y = make_rows(6, n_labelled=10, n_unlabelled=2)
    with pytest.warns(UserWarning, match="10 labelled rows support"):
        line = fit(X, y, confidence=0.95)
    assert line.answer_.regions.hull().tolist() == [[-np.inf, np.inf]] * 2
    constant = fit(X, np.full(10, 5.0), confidence=0.5)
    np.testing.assert_array_equal(constant.answer_.regions.hull(), 5.0)
    one_label = fit(X[:3], y[:1], lambda X, y: np.abs(y - y.mean()), confidence=0.3)
    assert one_label.answer_.regions.hull().tolist() == [[-np.inf, np.inf]] * 2
    assert farthest_label(np.array([0.0, 1.0])) is None
    assert farthest_label(np.array([0.0, 1.0, 2.0, 3.6])) == 3
    assert farthest_label(np.array([-1.6, 1.0, 2.0, 0.0])) == 0


# ---------------------------------------------------------------------------------------- refusals


def test_refusals():
    X, y = make_rows(7, n_labelled=10)
    random = np.random.default_rng(0)
    with pytest.raises(ValueError, match="fix the random_state"):
        fit(X, y, lambda X, y: random.uniform(size=len(y)))
    with pytest.raises(ValueError, match="must return one number for each row"):
        fit(X, y, lambda X, y: y[:-1])
    with pytest.raises(ValueError, match="must return one number for each row"):
        fit(X, y, lambda X, y: np.full(len(y), np.nan))
    with pytest.raises(ValueError, match=r"ridge=2\.0 has no meaning"):
        fit(X, y, ridge=2.0)
    with pytest.raises(ValueError, match="spread, scale and draw_in_far have no meaning"):
        fit(X, y, spread="local")
    with pytest.raises(ValueError, match="candidates for each row, and at most"):
        fit(X, y, resolution=1e-9)
    with pytest.raises(ValueError, match="resolution"):
        fit(X, y, resolution=-1.0)
    with pytest.raises(ValueError, match="only side='two'"):
        fit(X, y).predict_region(X, side="upper")
    with pytest.raises(ValueError, match="has no envelope"):
        fit(X, y).envelope(X[:1])
