"""Regions that follow difficulty: local spread and scale of labels against refits, and their laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import brute, brute_machine
from tests.methods.confidence_machine.test_tuned import SETTINGS, kernels, make_rows
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.core.guarantee import TooFewLabelsWarning
from transduce.methods.confidence_machine.far_labels import draw_in, label_pieces
from transduce.methods.confidence_machine.label_scales import SCALES, ScaledMachine
from transduce.methods.confidence_machine.local_spread import PRIOR, Neighborhood
from transduce.methods.confidence_machine.quartics import (
    MOST_ROOTS,
    find_roots,
    is_concave,
    only_root,
    polynomial,
)
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.setting_grid import Setting, SettingGrid
from transduce.methods.confidence_machine.tuned_machine import TunedMachine, answer_rows

FEW = SETTINGS[:3]


def build(X, y, grid=FEW, *, residual="deleted", fit_intercept=True, scale="identity"):
    """The machine with a local spread for the first rows, and the weights of all rows."""
    n_labelled = len(y)
    neighborhood = Neighborhood.build(X, X[:n_labelled])
    machine = TunedMachine.build(
        SettingGrid.build(grid, X),
        X[:n_labelled],
        y,
        power=POWER[residual],
        fit_intercept=fit_intercept,
        neighborhood=neighborhood,
    )
    weights = neighborhood.kernel.checked_matrix(X, X)
    if scale == "identity":
        return machine, weights
    return ScaledMachine.build(machine, y, scale), weights


def all_ends(machine, row, n, side="two"):
    """The ends of the regions at every rank: where p-values may change."""
    regions = []
    for rank in range(1, n + 1):
        if isinstance(machine, ScaledMachine):
            found = machine.answer_rows(row, rank=rank, side=side)
        else:
            found = answer_rows(machine, row, rank=rank, side=side)
        regions.append(found.regions)
    ends = np.concatenate([region[0].ravel() for region in regions])
    return regions, np.unique(ends[np.isfinite(ends)])


def between(ends):
    """Points of all gaps between ends that are wider than rounding."""
    around = np.concatenate([[ends[0] - 10.0], ends, [ends[-1] + 10.0]])
    wide = np.diff(around) > 1e-6 * (1.0 + np.abs(around[1:]))
    return (0.5 * (around[:-1] + around[1:]))[wide]


# ---------------------------------------------------------------------------------------- quartics


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["normal", "unequal", "roots", "whole"]))
def test_all_changes_of_sign_are_found(seed, kind):
    """Between neighbouring roots a quartic keeps its sign, as numpy's roots say it should."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=5)
    if kind == "unequal":
        q *= 10.0 ** rng.uniform(-6, 6, size=5)
    elif kind == "roots":
        roots = np.round(rng.normal(size=4), 1) * 10.0 ** rng.integers(-2, 3)
        q = np.poly(roots)[::-1].copy()
    elif kind == "whole":
        q = rng.integers(-2, 3, size=5).astype(float)
    found = np.empty(MOST_ROOTS)
    found = found[: find_roots(q, found)]
    assert np.all(np.diff(found) >= 0)
    expected = np.roots(q[::-1]) if np.any(q) else np.empty(0)
    real = expected[np.abs(expected.imag) <= 1e-9 * np.abs(expected)].real
    for root in real[np.abs(real) > 0]:
        step = 1e-4 * abs(root)
        if polynomial(q, root - step) * polynomial(q, root + step) < 0.0:
            assert np.any(np.abs(found - root) <= step)
    if q[0] > 0.0 and is_concave(q):
        np.testing.assert_allclose(only_root(q, 0.3), found[found > 0], rtol=1e-9)
        np.testing.assert_allclose(only_root(q, -5.0), found[found < 0], rtol=1e-9)


def test_double_roots_and_lost_degrees():
    roots = np.empty(MOST_ROOTS)
    squared = np.poly([2.0, 2.0, -3.0, -3.0])[::-1].copy()
    n = find_roots(squared, roots)
    assert set(np.round(roots[:n], 6)) <= {2.0, -3.0}
    assert find_roots(np.array([1.0, 0.0, 0.0, 0.0, 0.0]), roots) == 0
    assert find_roots(np.array([-6.0, 2.0, 0.0, 0.0, 0.0]), roots) == 1
    assert roots[0] == pytest.approx(3.0)
    assert find_roots(np.zeros(5), roots) == 0


# ------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    ("residual", "fit_intercept", "kind"),
    [("deleted", True, "normal"), ("studentized", False, "heavy"), ("plain", True, "normal")],
)
def test_a_local_spread_equals_refits(residual, fit_intercept, kind):
    """At candidates between the ends of all regions; the setting is the completed sample's."""
    X, y = make_rows([3, 1], kind=kind, n_labelled=8)
    machine, weights = build(X, y, residual=residual, fit_intercept=fit_intercept)
    every = kernels(machine, X)
    for side in ("two", "lower", "upper"):
        regions, ends = all_ends(machine, X[-1:], len(y), side)
        labels = between(ends)
        expected = []
        for label in labels:
            z = np.append(y, label)
            (chosen,) = brute.chosen_settings(brute.completed_errors(every, z, fit_intercept))
            K, ridge = every[chosen]
            expected.append(
                brute_machine.local_p_value(
                    K, z, ridge, fit_intercept, residual, weights, PRIOR, side
                )
            )
        count = np.round(np.array(expected) * (len(y) + 1))
        for rank, region in enumerate(regions, 1):
            inside = [bool(region.contains(label)[0]) for label in labels]
            value = answer_rows(machine, X[-1:], rank=rank).values[0]
            away = np.abs(labels - value) > 1e-9
            np.testing.assert_array_equal(np.array(inside)[away], (count > rank)[away])
        if side == "two":
            rows = np.repeat(X[-1:], len(labels), axis=0)
            found = machine.label_p_values(rows, labels, np.ones(len(labels)))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("seed", "spread", "slope"), [(0, 0.3, 0.5), (1, 1.0, 0.5), (2, 3.0, 0.5), (3, 0.05, 0.05)]
)
def test_scales_equal_refits(seed, spread, slope):
    """Scale, setting and rank by the definition, between all ends; no region reaches below 0.

    Labels of the last case are alike.
    """
    X, y = make_rows([seed, 7], n_labelled=9)
    y = np.exp(spread * y + slope * X[:-1, 0])
    machine, weights = build(X, y, scale="auto")
    every = kernels(machine, X)
    regions, ends = all_ends(machine, X[-1:], len(y))
    labels = between(ends)
    expected = [
        brute_machine.scaled_p_value(
            every, np.append(y, label), True, "deleted", weights, PRIOR, list(SCALES)
        )
        for label in labels
    ]
    rows = np.repeat(X[-1:], len(labels), axis=0)
    found = machine.label_p_values(rows, labels, np.ones(len(labels)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    count = np.round(np.array(expected) * (len(y) + 1))
    for rank, region in enumerate(regions, 1):
        inside = np.array([bool(region.contains(label)[0]) for label in labels])
        np.testing.assert_array_equal(inside, count > rank)
        assert region[0].min() >= 0.0


def test_no_value_lies_below_0_where_a_straight_line_does():
    """Of rows beyond all labels, the prediction on the labels as they are would be negative."""
    x = np.append(np.linspace(0.0, 4.0, 25), [-1.5, -0.7, 5.0])
    y = np.append(np.exp(x[:25] + 0.2 * np.sin(9.0 * x[:25])), [np.nan] * 3)
    lines = [Setting("linear", 1.0, ridge) for ridge in (0.1, 1.0)]
    for spread in ("constant", "local"):
        machine = RidgeConfidenceMachine(settings=lines, spread=spread, scale="auto")
        answer = machine.fit(x[:, None], y).answer_
        assert answer.values.min() > 0.0
        assert answer.regions.hull()[:, 0].min() >= 0.0
        assert np.all(answer.regions.contains(answer.values))


def test_labels_that_are_alike_have_no_scale():
    """Years, say: regions are those of the labels as they are, as far as labels are alike."""
    X, y = make_rows(5, n_labelled=30, n_unlabelled=4)
    holes = np.append(2000.0 + 5.0 * y, np.full(4, np.nan))
    common = {"settings": "leave-one-out", "spread": "local"}
    chosen = RidgeConfidenceMachine(scale="auto", **common).fit(X, holes)
    plain = RidgeConfidenceMachine(scale="identity", **common).fit(X, holes)
    np.testing.assert_allclose(chosen.answer_.regions.hull(), plain.answer_.regions.hull())
    assert chosen.answer_.diagnostics["n_scales"] == {"identity": 4, "sqrt": 0, "log": 0}


def test_every_scale_is_chosen_somewhere():
    """Otherwise the test above might have met one scale only."""
    chosen = []
    for spread in (0.05, 1.0, 4.0):
        X, y = make_rows([5, 7], n_labelled=30, n_unlabelled=5)
        y = np.exp(spread * (y + X[:30, 0]))
        if spread == 1.0:
            y = (20.0 + y) ** 2 / 400.0
        machine, _ = build(X, y, scale="auto")
        chosen += machine.answer_rows(X[30:], rank=3).scales.tolist()
    assert {0, 2} <= set(chosen)


# -------------------------------------------------------------------------------------------- laws


def fit(X, y, **options):
    holes = np.append(y, np.full(len(X) - len(y), np.nan))
    machine = RidgeConfidenceMachine(settings="leave-one-out", spread="local", **options)
    return machine.fit(X, holes)


def test_regions_follow_the_labels():
    """Labels times a number, and shifted: so are regions; with a scale, times a number."""
    X, y = make_rows(4, n_labelled=25, n_unlabelled=6)
    regions = fit(X, y).answer_.regions
    moved = fit(X, 7.0 - 3.0 * y).answer_.regions
    np.testing.assert_allclose(moved.hull()[:, ::-1], 7.0 - 3.0 * regions.hull(), rtol=1e-8)
    positive = np.exp(y)
    scaled = fit(X, 1e6 * positive, scale="auto").answer_.regions
    expected = fit(X, positive, scale="auto").answer_.regions
    np.testing.assert_allclose(scaled.hull(), 1e6 * expected.hull(), rtol=1e-6)


def test_regions_are_wide_where_residuals_are_large():
    rng = np.random.default_rng(0)
    X = np.repeat([-3.0, 3.0], 60)[:, None] + rng.normal(size=(120, 1))
    y = X[:, 0] + np.where(X[:, 0] > 0, 3.0, 0.1) * rng.normal(size=120)
    order = rng.permutation(120)
    X, y = X[order], y[order]
    width = fit(X, y[:80]).answer_.regions.measure()
    constant = RidgeConfidenceMachine(settings="leave-one-out")
    constant.fit(X, np.append(y[:80], np.full(40, np.nan)))
    quiet = X[80:, 0] < 0
    assert width[quiet].mean() < 0.25 * width[~quiet].mean()
    assert width.mean() < constant.answer_.regions.measure().mean()


def test_constant_labels_and_duplicates():
    X = np.repeat(np.arange(6.0), 4)[:, None]
    answer = fit(X, np.full(20, 5.0), scale="auto").answer_
    np.testing.assert_allclose(answer.values, 5.0)
    assert np.all(answer.regions.contains(np.full(4, 5.0)))
    tied = fit(X, np.tile([1.0, 2.0], 10)).answer_
    assert np.all(np.isfinite(tied.regions.hull()))


def test_too_few_labels_rule_nothing_out():
    """At 90 % with five labels the label of a row may be anything, negative too; regions start at 0, not near it."""
    X, y = make_rows(9, n_labelled=12, n_unlabelled=3)
    with pytest.warns(TooFewLabelsWarning):
        few = fit(np.vstack([X[:5], X[12:]]), np.exp(y[:5]), scale="auto")
    assert few.answer_.regions.hull().tolist() == [[-np.inf, np.inf]] * 3
    ends = fit(X, np.exp(y), scale="auto").answer_.regions.hull()
    assert np.all((ends[:, 0] == 0.0) | (ends[:, 0] > 1e-12))


def test_one_label_that_is_not_positive_counts_as_nonconforming():
    X, y = make_rows(9, n_labelled=30, n_unlabelled=3)
    y = np.abs(y) + 0.1
    y[4] = 0.0
    with_zero = fit(X, y, scale="auto", confidence=0.9)
    plain = fit(X, y, confidence=1.0 - 2.0 / 31.0)
    np.testing.assert_allclose(with_zero.answer_.regions.hull(), plain.answer_.regions.hull())
    p = with_zero.p_values(X[30:], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(p, plain.p_values(X[30:], [1.0, 2.0, 3.0]) + 1 / 31)


def test_refusals():
    X, y = make_rows(9, n_labelled=12, n_unlabelled=3)
    with pytest.raises(ValueError, match="scale='log' needs positive labels"):
        fit(X, y, scale="log")
    with pytest.raises(ValueError, match="scale='sqrt' needs labels that are not negative"):
        fit(X, y, scale="sqrt")
    with pytest.raises(ValueError, match="spread"):
        RidgeConfidenceMachine(spread="wide").fit(X, np.append(y, [np.nan] * 3))
    K = np.eye(15)
    with pytest.raises(ValueError, match="need the features of rows"):
        RidgeConfidenceMachine(kernel="precomputed", spread="local").fit(
            K, np.append(y, [np.nan] * 3)
        )
    p = fit(X, np.exp(y), scale="log").p_values(X[12:], [-1.0, 0.0, 1.0])
    np.testing.assert_allclose(p[:2], 1.0 / 13.0)
    assert p[2] > 1.0 / 13.0


@pytest.mark.parametrize("kind", ["normal", "heavy"])
def test_p_values_of_all_rows_are_ranks(kind):
    """Leave out each row of a sample in turn: at most k of n p-values are k / n or less, whatever the sample."""
    X, y = make_rows(11, kind=kind, n_labelled=14, n_unlabelled=0)
    for options in ({}, {"scale": "auto"}):
        labels = np.exp(np.clip(y, -9, 9)) if options else y
        p = []
        for i in range(14):
            machine = RidgeConfidenceMachine(settings=FEW, spread="local", **options)
            machine.fit(X, np.where(np.arange(14) == i, np.nan, labels))
            p.append(machine.p_values(X[i : i + 1], labels[i : i + 1])[0])
        np.testing.assert_allclose(np.sort(p), np.arange(1, 15) / 14)


# ------------------------------------------------------------------------------------- far labels


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 14), st.booleans())
def test_pieces_of_the_line_are_those_of_the_completed_sample(seed, n, whole):
    """At any candidate the labels of its piece are those of the completed sample, drawn in."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(1, size=n)
    if whole:
        y = np.round(y)
    y[0] *= 10.0 ** rng.integers(0, 7)
    pieces = label_pieces(y)
    assert pieces[0].low == -np.inf
    assert pieces[-1].high == np.inf
    for before, after in itertools.pairwise(pieces):
        assert before.high == after.low
    candidates = np.concatenate([rng.standard_t(1, size=20) * 10.0 ** rng.integers(0, 6), y + 1e-3])
    for candidate in candidates:
        drawn = draw_in(np.append(y, candidate))
        (piece,) = [piece for piece in pieces if piece.low < candidate < piece.high]
        np.testing.assert_array_equal(piece.labels, drawn.labels[:-1])
        assert piece.n_far == drawn.is_far[:-1].sum()
        assert piece.is_far == drawn.is_far[-1]


def test_one_slip_of_the_pen_is_contained():
    X, y = make_rows(21, n_labelled=50, n_unlabelled=20)
    y = 50.0 + 5.0 * X[:50, 0] + y
    clean = fit(X, y, draw_in_far=True).answer_.regions.measure()
    np.testing.assert_array_equal(clean, fit(X, y).answer_.regions.measure())
    slipped = y.copy()
    slipped[3] *= 1e6
    contained = fit(X, slipped, draw_in_far=True, scale="auto")
    assert np.median(contained.answer_.regions.measure()) < 2.0 * np.median(clean)
    assert np.median(fit(X, slipped).answer_.regions.measure()) > 1e3 * np.median(clean)
    p = contained.p_values(X[50:], contained.answer_.values)
    assert np.all(p > 0.1)


def test_p_values_are_ranks_with_a_far_label():
    """As above, with a slip of the pen: its row has its turn too; p-values may be a little too large."""
    X, y = make_rows(11, n_labelled=14, n_unlabelled=0)
    y[5] = 1e6
    p = []
    for i in range(14):
        machine = RidgeConfidenceMachine(settings=FEW, spread="local", draw_in_far=True)
        machine.fit(X, np.where(np.arange(14) == i, np.nan, y))
        p.append(machine.p_values(X[i : i + 1], y[i : i + 1])[0])
        assert machine.answer_.regions.contains(y[i : i + 1])[0] == (p[-1] > 0.1 + 1e-12)
    assert np.all(np.sort(p) >= np.arange(1, 15) / 14 - 1e-12)
    assert p[5] == pytest.approx(1 / 14)
    np.testing.assert_allclose(np.sort(p)[-1], 1.0)


# ---------------------------------------------------------------------------------- several levels


def test_several_levels_are_nested():
    X, y = make_rows(2, n_labelled=40, n_unlabelled=5)
    machine = fit(X, y)
    levels = [0.8, 0.9, 0.95]
    regions = machine.predict_region(X[40:], confidence=levels)
    intervals = machine.predict_interval(X[40:], confidence=levels)
    assert intervals.shape == (5, 3, 2)
    for place, level in enumerate(levels):
        expected = machine.predict_region(X[40:], confidence=level)
        np.testing.assert_array_equal(regions[place].pieces, expected.pieces)
        np.testing.assert_array_equal(intervals[:, place], expected.hull())
    assert np.all(np.diff(intervals[:, :, 0], axis=1) <= 0)
    assert np.all(np.diff(intervals[:, :, 1], axis=1) >= 0)
    classifier = RidgeConfidenceClassifier().fit(X, ["a" if v < 0 else "b" for v in y] + [None] * 5)
    sets = classifier.predict_set(X[40:], confidence=levels)
    assert sets.shape == (5, 3, 2)
    np.testing.assert_array_equal(sets[:, 1], classifier.predict_set(X[40:], confidence=0.9))
    assert np.all(sets[:, 0] <= sets[:, 1])
    for wrong, message in (([], "empty list"), ([0.9, 2.0], "strictly between"), ("0.9", "conf")):
        with pytest.raises(ValueError, match=message):
            machine.predict_region(X[40:], confidence=wrong)
