"""The exactly tuned confidence machine's numbers against refits with every setting, and the laws it must keep."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import brute
from tests.strategies import RESIDUALS, SIDES, every_other
from transduce.core.computing import show_progress
from transduce.core.ranks import nonconformity_rank
from transduce.device.kernels import Kernel
from transduce.methods.confidence_machine import parabolas as parabolas_module
from transduce.methods.confidence_machine import tuned_machine as regions_module
from transduce.methods.confidence_machine.bordered_ridge import Border
from transduce.methods.confidence_machine.local_spread import NO_NEIGHBORS
from transduce.methods.confidence_machine.machine import Machine, find_regions
from transduce.methods.confidence_machine.parabolas import choose, lower_envelope, parabolas
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.setting_grid import Setting, SettingGrid, default_settings
from transduce.methods.confidence_machine.tuned_machine import (
    RegionRule,
    TunedMachine,
    answer_rows,
    row_envelope,
)

SETTINGS = (
    Setting("rbf", 1.0, 0.1),
    Setting("rbf", 1.0, 1.0),
    Setting("linear", ridge=0.5),
    Setting("exponential", 0.8, 0.03),
    Setting({"rbf": 1.0, "linear": 0.3}, 0.7, 0.3),
    Setting("trees", ridge=0.3),
    Setting("poly", ridge=2.0, degree=2),
)


FEW = (*SETTINGS[:5], SETTINGS[6])  # trees take their time to grow


def make_rows(seed, *, kind="normal", n_labelled=None, n_unlabelled=1):
    """Rows and labels: normal, with heavy tails, or whole numbers full of duplicates and ties."""
    rng = np.random.default_rng(seed)
    n_labelled = int(rng.integers(3, 11)) if n_labelled is None else n_labelled
    shape = (n_labelled + n_unlabelled, int(rng.integers(1, 4)))
    if kind == "heavy":
        X, y = np.clip(rng.standard_t(1, size=shape), -20, 20), rng.standard_t(1, size=n_labelled)
    elif kind == "duplicates":
        X, y = (
            rng.integers(0, 3, size=shape).astype(float),
            rng.integers(0, 3, size=n_labelled).astype(float),
        )
    else:
        X, y = rng.normal(size=shape), rng.normal(size=n_labelled)
    return X, y


def build(X, y, grid=SETTINGS, *, residual="studentized", fit_intercept=True, **settings):
    """The machine for the first rows, which have labels."""
    grid = SettingGrid.build(grid, X)
    return TunedMachine.build(
        grid, X[: len(y)], y, power=POWER[residual], fit_intercept=fit_intercept, **settings
    )


def kernels(machine, X):
    """Kernel matrix of all rows and ridge of every setting."""
    grid = machine.grid
    forms = [kernel.represent(X) for kernel in grid.kernels]
    return [
        (grid.kernels[which].matrix(forms[which], forms[which]), setting.ridge)
        for setting, which in zip(grid.settings, grid.which, strict=True)
    ]


def candidates(machine, X, regions, rng):
    """Labels to either side of every end of a region and of a piece of the envelope, random ones, and far ones."""
    points = np.concatenate([row_envelope(machine, X[-1:], rank=1).starts, regions[0].ravel()])
    points = points[np.isfinite(points)]
    near = 1e-6 * (1 + np.abs(points))
    return np.concatenate([points - near, points + near, rng.normal(scale=3, size=3), [-1e4, 1e4]])


# ------------------------------------------------------------------------------------------- exact

GRID = list(itertools.product(RESIDUALS, [False, True], ["normal", "heavy", "duplicates"]))


@pytest.mark.few(3)
@pytest.mark.parametrize(("residual", "fit_intercept", "kind"), every_other(GRID, keep=3))
def test_regions_and_p_values_equal_refits(residual, fit_intercept, kind):
    """A label is in the region exactly when the setting that the completed sample chooses gives it a large p-value."""
    for seed in range(2):
        X, y = make_rows([seed, 1], kind=kind)
        rng, n = np.random.default_rng(seed), len(y)
        machine = build(X, y, residual=residual, fit_intercept=fit_intercept)
        every = kernels(machine, X)
        for side in SIDES:
            rank = int(rng.integers(1, n))
            found = answer_rows(machine, X[-1:], rank=rank, side=side)
            labels = candidates(machine, X, found.regions, rng)
            p = [
                brute.tuned_p_value(every, np.append(y, label), fit_intercept, residual, side)
                for label in labels
            ]
            inside = [bool(found.regions.contains(label)[0]) for label in labels]
            assert inside == list(np.round(np.array(p) * (n + 1)) > rank)
            if side == "two":
                rows = np.repeat(X[-1:], len(labels), axis=0)
                np.testing.assert_allclose(
                    machine.label_p_values(rows, labels, np.ones(len(labels))), p, rtol=1e-12
                )


def test_the_grid_above_meets_many_pieces():
    """Otherwise one setting might have been chosen at all labels."""
    counts = []
    for (_, fit_intercept, kind), seed in itertools.product(GRID[:6], range(2)):
        X, y = make_rows([seed, 1], kind=kind)
        machine = build(X, y, fit_intercept=fit_intercept)
        counts.append(len(row_envelope(machine, X[-1:], rank=1).starts))
    assert np.mean(np.array(counts) >= 3) > 0.5
    assert max(counts) >= 8
    assert max(counts) <= 2 * len(SETTINGS) - 1


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_parabolas_are_leave_one_out_errors(fit_intercept):
    """Also with more labels than trees have or a linear kernel has features."""
    X, y = make_rows(0, n_labelled=12)
    machine = build(X, y, fit_intercept=fit_intercept)
    found = row_envelope(machine, X[-1:], rank=1)
    for label in (-3.0, 0.2, 50.0):
        expected = (
            brute.completed_errors(kernels(machine, X), np.append(y, label), fit_intercept) / 13
        )
        t = label - found.curves[:, 0]
        np.testing.assert_allclose(
            found.curves[:, 1] + t * (found.curves[:, 2] + t * found.curves[:, 3]),
            expected,
            rtol=1e-9,
        )


@pytest.mark.few(3)
@pytest.mark.parametrize(("residual", "label_conditional", "kind"), every_other(GRID, keep=3))
def test_class_p_values_equal_refits(residual, label_conditional, kind):
    for n_classes, fit_intercept in itertools.product(
        (2, 4), (False, True)
    ):  # of four, one has one label
        X, _ = make_rows([n_classes, 2], kind=kind, n_labelled=7)
        codes = np.random.default_rng(n_classes).permutation(np.arange(7) % n_classes)
        targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        machine = build(X, targets, SETTINGS[:5], residual=residual, fit_intercept=fit_intercept)
        found = machine.class_p_values(X[-1:], codes, np.ones(1))
        every = kernels(machine, X)
        expected = [
            brute.tuned_class_p_value(
                every, codes, c, n_classes, fit_intercept, residual, label_conditional
            )
            for c in range(n_classes)
        ]
        np.testing.assert_allclose(
            (found.within if label_conditional else found.overall)[0], expected
        )


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_the_envelope_is_the_minimum(seed, n_curves, whole):
    """At any label the owner of the piece is lowest; at most 2 S - 1 pieces; each setting's part is right."""
    rng = np.random.default_rng(seed)
    curves = np.column_stack([rng.normal(size=(n_curves, 3)), 1 + rng.exponential(size=n_curves)])
    if whole:
        curves = np.round(curves)
    curves[:, 1] = np.abs(curves[:, 1]) + curves[:, 2] ** 2  # errors are not negative
    starts, owners = lower_envelope(curves)
    assert starts[0] == -np.inf
    assert np.all(np.diff(starts) > 0)
    assert np.all(np.diff(owners) != 0)
    assert whole or len(starts) <= 2 * n_curves - 1
    choice = choose(curves, np.zeros(n_curves), 10)
    for label in np.concatenate(
        [rng.normal(scale=3, size=20), rng.integers(-3, 4, size=5), [-1e8, 1e8]]
    ):
        heights = np.array([regions_module.height(curve, label) for curve in curves])
        owner = owners[np.searchsorted(starts, label, side="right") - 1]
        assert heights[owner] <= heights.min() * (1 + 1e-12)
        inside = (choice.low <= label) & (label <= choice.high)
        chosen = np.unique(choice.setting[inside])
        assert set(np.flatnonzero(heights <= heights.min() * (1 + 1e-12))) <= set(chosen)
        assert set(chosen) <= set(np.flatnonzero(heights <= heights.min() * (1 + 1e-8)))


# -------------------------------------------------------------------------------------------- laws


@pytest.mark.few(8)
@pytest.mark.parametrize("setting", SETTINGS[:5], ids=str)
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_grid_of_one_is_the_fixed_machine(setting, residual, fit_intercept):
    """Regions, values, p-values of labels and of classes."""
    X, y = make_rows(4, n_labelled=40, n_unlabelled=12)
    tuned = build(X, y, [setting], residual=residual, fit_intercept=fit_intercept)
    kernel = tuned.grid.kernels[0]
    forms = kernel.represent(X)
    K = kernel.matrix(forms, forms)
    rows = np.column_stack([K[:, :40], kernel.diagonal(forms)])
    rule = {"ridge": setting.ridge, "fit_intercept": fit_intercept, "power": POWER[residual]}
    fixed = Machine.build(rows[:40], y, Kernel("precomputed"), **rule)
    for side, rank in itertools.product(SIDES, (0, 1, 4, 20)):
        ours = answer_rows(tuned, X[40:], rank=rank, side=side)
        theirs = find_regions(fixed, rows[40:], rank=rank, side=side)
        np.testing.assert_array_equal(ours.regions.n_pieces, theirs.n_pieces)
        np.testing.assert_allclose(ours.regions.pieces, theirs.pieces, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(ours.values, fixed.predict(rows[40:]), rtol=1e-9, atol=1e-11)
    tau = np.full(12, 0.3)
    np.testing.assert_array_equal(
        tuned.label_p_values(X[40:], y[:12], tau), fixed.label_p_values(rows[40:], y[:12], tau)
    )
    codes = np.arange(40) % 3
    targets = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    tuned = build(X, targets, [setting], residual=residual, fit_intercept=fit_intercept)
    fixed = Machine.build(rows[:40], targets, Kernel("precomputed"), **rule)
    found, expected = (
        tuned.class_p_values(X[40:], codes, tau),
        fixed.class_p_values(rows[40:], codes, tau),
    )
    np.testing.assert_array_equal(found.overall, expected.overall)
    np.testing.assert_array_equal(found.within, expected.within)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9, atol=1e-11)


samples = st.builds(
    make_rows,
    st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["normal", "heavy", "duplicates"]),
    n_unlabelled=st.just(3),
)
fitted = st.fixed_dictionaries(
    {"residual": st.sampled_from(RESIDUALS), "fit_intercept": st.booleans()}
)


def find(X, y, grid=FEW, *, rank=1, side="two", **rule):
    return answer_rows(build(X, y, grid, **rule), X[len(y) :], rank=rank, side=side)


@given(samples, fitted, st.sampled_from(SIDES))
def test_a_duplicated_setting_changes_nothing(sample, rule, side):
    X, y = sample
    once, twice = (find(X, y, grid, side=side, **rule) for grid in (FEW, FEW + FEW[::-1]))
    np.testing.assert_allclose(twice.regions.hull(), once.regions.hull(), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(twice.regions.n_pieces, once.regions.n_pieces)
    np.testing.assert_allclose(twice.values, once.values, rtol=1e-9, atol=1e-12)


@given(samples, fitted, st.integers(-900, 900))
def test_scaling_labels_by_a_power_of_two_scales_all(sample, rule, power):
    """To the last digit, also where squares of the labels would over- or underflow."""
    X, y = sample
    before, after = find(X, y, **rule), find(X, np.ldexp(y, power), **rule)
    np.testing.assert_array_equal(after.values, np.ldexp(before.values, power))
    np.testing.assert_array_equal(after.regions.pieces, np.ldexp(before.regions.pieces, power))
    np.testing.assert_array_equal(after.used, before.used)


@given(samples, fitted)
def test_mirroring_labels_mirrors_all(sample, rule):
    X, y = sample
    before, after = find(X, y, side="upper", **rule), find(X, -y, side="lower", **rule)
    np.testing.assert_allclose(after.values, -before.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        after.regions.hull(), -before.regions.hull()[:, ::-1], rtol=1e-9, atol=1e-12
    )


@given(samples, st.sampled_from(RESIDUALS), st.sampled_from([4.0, -1024.0]))
def test_shifting_labels_shifts_all_with_an_intercept(sample, residual, shift):
    X, y = sample
    before, after = find(X, y, residual=residual), find(X, y + shift, residual=residual)
    np.testing.assert_allclose(after.values, before.values + shift, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        after.regions.hull(), before.regions.hull() + shift, rtol=1e-8, atol=1e-8
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(samples, fitted, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(sample, rule, random):
    """Of labelled and of unlabelled rows, trees included."""
    X, y = sample
    n = len(y)
    order, after = list(range(n)), list(range(n, len(X)))
    random.shuffle(order)
    random.shuffle(after)
    one = find(X, y, SETTINGS, **rule)
    other = find(X[order + after], y[order], SETTINGS, **rule)
    back = np.array(after) - n
    np.testing.assert_allclose(other.values, one.values[back], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(other.regions.hull(), one.regions.hull()[back], rtol=1e-8, atol=1e-9)


@given(samples, fitted)
def test_regions_grow_with_confidence_and_hold_the_value(sample, rule):
    X, y = sample
    machine = build(X, y, FEW, **rule)
    labels = np.linspace(-10, 10, 201)
    inside = np.ones((len(labels), 3), dtype=bool)
    for rank in range(len(y) + 1):
        found = answer_rows(machine, X[len(y) :], rank=rank)
        assert found.regions.contains(found.values).all()
        now = np.array([found.regions.contains(label) for label in labels])
        assert np.all(inside | ~now | np.isclose(labels[:, None], found.values))
        inside = now
    np.testing.assert_array_equal(found.values, machine.predict(X[len(y) :]))


@given(samples, fitted)
def test_regions_and_p_values_agree(sample, rule):
    """One choice and one definition of a tie for both; the value itself is always kept."""
    X, y = sample
    machine, n = build(X, y, FEW, **rule), len(y)
    labels = np.concatenate([np.linspace(-20, 20, 101), y, np.round(y)])
    rows = np.repeat(X[-1:], len(labels), axis=0)
    p = machine.label_p_values(rows, labels, np.ones(len(labels)))
    for rank in (1, max(1, n // 3)):
        found = answer_rows(machine, rows, rank=rank)
        kept = (np.round(p * (n + 1)) > rank) | (labels == found.values)
        np.testing.assert_array_equal(found.regions.contains(labels), kept)


def test_chunks_do_not_matter_and_progress_is_told():
    X, y = make_rows(3, n_labelled=20, n_unlabelled=30)
    wide, narrow = (build(X, y, max_bytes=size) for size in (1e9, 1.0))
    one, other = (answer_rows(machine, X[20:], rank=2) for machine in (wide, narrow))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-9)
    np.testing.assert_allclose(other.regions.hull(), one.regions.hull(), rtol=1e-9)
    seen = []
    with show_progress(lambda name, share: seen.append((name, share))):
        narrow.predict(X[20:])
    assert [share for name, share in seen if name == "tuned confidence machine"] == [
        0.0,
        *(np.arange(1, 31) / 30),
        1.0,
    ]


def test_a_linear_kernel_needs_only_as_many_directions_as_features():
    """And trees, of which there are a hundred, need all: both equal refits with 130 labels."""
    X, y = make_rows(8, n_labelled=130)
    grid = [
        Setting("linear", ridge=1e-3),
        Setting({"linear": 0.5}, ridge=3.0),
        Setting("trees", ridge=0.01),
    ]
    machine = build(X, y, grid)
    assert [spectrum.span.start for spectrum in machine.spectra] == [-X.shape[1], -X.shape[1], -130]
    found = row_envelope(machine, X[-1:], rank=1)
    for s, (K, ridge) in enumerate(kernels(machine, X)):
        c, b = brute.ridge_fit(K[:-1, :-1], y, ridge, True)
        assert found.curves[s, 0] == pytest.approx(float(K[-1, :-1] @ c + b), rel=1e-8)


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.few(6)
@pytest.mark.parametrize("n_labelled", [1, 2, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("residual", RESIDUALS)
def test_very_few_labels(n_labelled, fit_intercept, residual):
    for seed in range(3):
        X, y = make_rows([seed, 3], n_labelled=n_labelled)
        machine = build(X, y, FEW, residual=residual, fit_intercept=fit_intercept)
        every = kernels(machine, X)
        for rank in range(n_labelled + 1):
            found = answer_rows(machine, X[-1:], rank=rank)
            for label in (-2.0, 0.3, float(y[0]) + 1e-3):
                p = brute.tuned_p_value(every, np.append(y, label), fit_intercept, residual)
                assert found.regions.contains(label)[0] == (round(p * (n_labelled + 1)) > rank)


def test_one_label_and_an_intercept_give_the_line():
    """Two rows have equal and opposite residuals with every setting, so every label is as good as any."""
    X, y = make_rows(0, n_labelled=1)
    found = find(X, y)
    assert found.regions[0].tolist() == [[-np.inf, np.inf]]
    assert found.values[0] == pytest.approx(y[0])


def test_no_unlabelled_row():
    X, y = make_rows(0)
    machine = build(X, y)
    found = answer_rows(machine, X[:0], rank=1)
    assert len(found.values) == len(found.regions) == 0
    assert found.used.shape == (0, len(SETTINGS))
    assert machine.label_p_values(X[:0], y[:0], y[:0]).shape == (0,)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -3e-7, 1e300])
def test_constant_labels_give_a_point_that_holds_them(value):
    """All settings tie there, up to rounding."""
    X, _ = make_rows(1, n_labelled=20, n_unlabelled=10)
    found = find(X, np.full(20, value), rank=2)
    assert found.regions.contains(value).all()
    assert np.all(found.regions.measure() <= 1e-12 * abs(value))
    np.testing.assert_allclose(found.values, value, rtol=1e-12)


def test_ties_survive_rounding():
    """Duplicates of an unlabelled row with the same label tie with it, whichever setting is chosen."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(3, 2)), 10, axis=0)
    y = np.repeat([0.1, 0.7, 1.3], 10)
    tiny = [Setting("rbf", 1.0, ridge) for ridge in (1e-9, 1e-6, 1e-3)]
    machine = build(np.concatenate([X, X[::10]]), y, [*SETTINGS, *tiny])
    assert np.all(machine.label_p_values(X[::10], y[::10], np.ones(3)) >= 11 / 31)


def test_rank_zero_gives_the_line():
    X, y = make_rows(2)
    assert nonconformity_rank(0.99, len(y)) == 0
    assert find(X, y, rank=0).regions[0].tolist() == [[-np.inf, np.inf]]


def test_what_is_compiled_is_what_is_written(monkeypatch):
    """The same regions without numba."""
    X, y = make_rows(5, n_labelled=8, n_unlabelled=2)
    machine = build(X, y, residual="plain")
    expected = answer_rows(machine, X[8:], rank=1)
    p = machine.label_p_values(X[8:], y[:2], np.ones(2))
    for module in (regions_module, parabolas_module):
        for name, function in vars(module).items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    ((_, border),) = machine.borders(X[8:])
    curves = regions_module.parabolas(machine.fit, border)
    np.testing.assert_allclose(curves, parabolas(machine.fit, border), rtol=1e-12)
    for side in (0, 1, -1):
        pieces, counts, values, *_ = regions_module.tuned_regions(
            machine.fit, border, curves, NO_NEIGHBORS, RegionRule(1, side, 0.0)
        )
        np.testing.assert_allclose(values, machine.scale.apply(expected.values))
        if side == 0:
            np.testing.assert_allclose(machine.scale.undo(pieces), expected.regions.pieces)
            np.testing.assert_array_equal(counts, expected.regions.n_pieces)
    labels = machine.scale.apply(y[:2])
    found = regions_module.tuned_p_values(
        machine.fit, border, curves, NO_NEIGHBORS, labels, np.ones(2), 0.0
    )
    np.testing.assert_array_equal(found, p)
    codes = np.arange(8) % 2
    machine = build(X, np.where(codes[:, None] == np.arange(2), 1.0, -1.0))
    ((_, border),) = machine.borders(X[8:])
    assert isinstance(border, Border)
    own = np.ascontiguousarray(machine.fit.residuals[:, np.arange(8), codes])
    found = regions_module.tuned_classes(machine.fit, own, border, codes, np.ones(2), 0.5, 2)
    for one, other in zip(found, machine.class_p_values(X[8:], codes, np.ones(2)), strict=True):
        np.testing.assert_allclose(one, other)


# ---------------------------------------------------------------------------------------- refusals


def test_a_kernel_that_is_not_proper_is_refused():
    X, y = make_rows(0, n_labelled=10)
    with pytest.raises(ValueError, match=r"setting <lambda>, ridge 0.1 is not positive definite"):
        build(X, y, [Setting(lambda u, v: -float(u @ v), ridge=0.1)])
    with pytest.raises(ValueError, match="not symmetric"):
        build(X, y, [Setting(lambda u, v: float(u[0] - v[0]), ridge=0.1)])


def test_a_ridge_below_double_precision_is_raised_and_said():
    X, y = make_rows(0, n_labelled=10)
    with pytest.warns(UserWarning, match="too small for these rows"):
        machine = build(X, y, [Setting("linear", ridge=1e-30), SETTINGS[0]])
    assert 0.0 < machine.jitter < 1e-10


def test_a_large_grid_announces_its_memory():
    from transduce.methods.confidence_machine.tuned_machine import announce_memory

    with pytest.warns(UserWarning, match="20,000 labelled rows needs about 26 GB"):
        announce_memory(20_000, 5, 5e8)


def test_the_default_grid_answers():
    X, y = make_rows(0, n_labelled=30, n_unlabelled=5)
    found = find(X, y, default_settings(X), rank=3)
    assert np.isfinite(found.regions.measure()).all()
