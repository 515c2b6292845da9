"""The confidence machine's numbers: window, selection and sweep against n refits and against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numba import njit

from tests import brute
from tests.strategies import (
    KERNELS,
    RESIDUALS,
    SIDES,
    confidences,
    every_other,
    make_problem,
    problems,
)
from transduce.core.ranks import nonconformity_rank
from transduce.device.kernels import Kernel
from transduce.methods.confidence_machine import residual_lines as lines_module
from transduce.methods.confidence_machine import window
from transduce.methods.confidence_machine.bordered_ridge import DualRidge, PrimalRidge
from transduce.methods.confidence_machine.machine import Machine, find_regions, window_intervals
from transduce.methods.confidence_machine.residual_lines import (
    POWER,
    SIDE,
    line_region,
    one_sided_sets,
    residual_lines,
    two_sided_sets,
)


@njit
def sweep_two_sided(rho, beta, rank, slack):
    """The sweep, also where selection would do; a door for Python, see `residual_lines`."""
    starts, ends, n_open = two_sided_sets(rho, beta, slack)
    return lines_module.sweep_sets(starts, ends, rank - n_open)


@njit
def sweep_one_sided(rho, beta, rank, slack):
    """Another one."""
    starts, ends, n_open = one_sided_sets(rho, beta, slack)
    return lines_module.sweep_sets(starts, ends, rank - n_open)


def plain_sweep(rho, beta, rank, slack):
    """The first without numba."""
    starts, ends, n_open = two_sided_sets.py_func(rho, beta, slack)
    return lines_module.sweep_sets.py_func(starts, ends, rank - n_open)


def build(problem, **settings):
    return Machine.build(
        problem.X[:-1],
        problem.y,
        problem.kernel,
        ridge=problem.ridge,
        fit_intercept=problem.fit_intercept,
        power=POWER[problem.residual],
        **settings,
    )


def count_labels(machine, rows, labels):
    """How many labelled rows are more nonconforming, and how many tie: p-values with two weights of ties tell."""
    n = machine.n_labelled + 1
    above, both = (
        n * machine.label_p_values(rows, labels, np.full(len(rows), tau)) for tau in (0.0, 1.0)
    )
    return np.round(above), np.round(both - above) - 1


def settings_of(problem):
    return problem.ridge, problem.fit_intercept, problem.residual


def completed(y_l, labels):
    """The labels with each candidate for the last row, a column each."""
    return np.vstack([np.repeat(y_l[:, None], len(labels), axis=1), labels])


def candidates(problem, seed=0):
    """Random labels, far labels, and labels a millionth to either side of every breakpoint."""
    points = brute.breakpoints(problem.K, problem.y, *settings_of(problem))
    near = 1e-6 * (1 + np.abs(points))
    rng = np.random.default_rng(seed)
    return np.concatenate([points - near, points + near, rng.normal(scale=5, size=6), [-1e6, 1e6]])


# ------------------------------------------------------------------------------------------- exact

GRID = list(itertools.product(range(len(KERNELS)), RESIDUALS, [False, True], [False, True]))


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("kernel", "residual", "fit_intercept", "heavy"), every_other(GRID, keep=4)
)
def test_regions_and_p_values_equal_refits(kernel, residual, fit_intercept, heavy):
    """A label is in the region exactly when refitting with it gives a p-value above 1 - confidence."""
    for seed in range(4):
        problem = make_problem(
            seed,
            heavy=heavy,
            kernel=KERNELS[kernel],
            residual=residual,
            fit_intercept=fit_intercept,
        )
        machine, labels = build(problem), candidates(problem)
        n, K = len(problem.y), problem.K
        alphas = brute.nonconformity(K, completed(problem.y, labels), *settings_of(problem))
        for side in SIDES:
            p = np.array([brute.p_value(alpha, side) for alpha in alphas.T])
            if side == "two":
                rows = np.repeat(problem.X[-1:], len(labels), axis=0)
                found = machine.label_p_values(rows, labels, np.ones(len(labels)))
                np.testing.assert_allclose(found, p, rtol=1e-12)
            for confidence in (0.5, 0.8, 0.9):
                rank = nonconformity_rank(confidence, n)
                region = find_regions(machine, problem.X[-1:], rank=rank, side=side)
                inside = region[[0] * len(labels)].contains(labels)
                np.testing.assert_array_equal(inside, np.round(p * (n + 1)) > rank)


def test_the_grid_above_meets_unions_and_rays():
    """Otherwise the sweep would be tested on single intervals only."""
    unions = rays = 0
    for kernel, residual, fit_intercept, _ in GRID:
        for seed in range(4):
            problem = make_problem(
                seed,
                heavy=True,
                kernel=KERNELS[kernel],
                residual=residual,
                fit_intercept=fit_intercept,
            )
            region = find_regions(
                build(problem), problem.X[-1:], rank=max(1, nonconformity_rank(0.8, len(problem.y)))
            )
            unions += int(region.n_pieces[0] > 1)
            rays += int(np.isinf(region.measure()[0]))
    assert unions >= 3
    assert rays >= 3


@given(problems, st.sampled_from([1, 2, 3, 4, 99]), st.booleans())
def test_class_p_values_equal_refits(problem, n_classes, label_conditional):
    """From one class to as many as labels; a row alone in its class is infinitely nonconforming."""
    n = len(problem.y)
    n_classes = min(n, n_classes)
    codes = np.arange(n) % n_classes
    targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    problem.y = targets
    found = build(problem).class_p_values(problem.X[-1:], codes, np.ones(1))
    expected, finer = (
        [
            brute.class_p_value(
                problem.K, codes, c, n_classes, *settings_of(problem), label_conditional, slack
            )
            for c in range(n_classes)
        ]
        for slack in (1e-9, 1e-11)
    )
    assume(expected == finer)  # else scores differ by less than a refit can tell from a tie
    np.testing.assert_allclose((found.within if label_conditional else found.overall)[0], expected)


@pytest.mark.few(6)
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_window_equals_selection_equals_sweep(residual, fit_intercept, side):
    """Three routes, one region; and the window settles nearly all rows of an ordinary problem."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(260, 4)), rng.normal(size=200)
    machine = Machine.build(
        X[:200], y, Kernel("linear"), ridge=0.3, fit_intercept=fit_intercept, power=POWER[residual]
    )
    for confidence in (0.2, 0.5, 0.8, 0.9, 0.99):
        rank = nonconformity_rank(confidence, 200)
        ends = window_intervals(machine, X[200:], rank=rank, side=side)
        assert np.mean(np.isnan(ends).any(axis=1)) < 0.05
        for j, prediction, rho, beta in machine.lines(X[200:], machine.fit.residuals):
            selected = line_region(rho, beta, rank, SIDE[side], machine.fit.slack)
            swept = sweep_any(rho, beta, rank, side, machine.fit.slack)
            np.testing.assert_allclose(selected, swept, rtol=1e-10, atol=1e-12)
            if not np.isnan(ends[j]).any():
                np.testing.assert_allclose(
                    ends[j : j + 1] - prediction, swept, rtol=1e-9, atol=1e-12
                )


def sweep_any(rho, beta, rank, side, slack):
    if side == "two":
        return sweep_two_sided(rho, beta, rank, slack)
    sign = -1.0 if side == "lower" else 1.0
    pieces = sweep_one_sided(sign * rho, beta, rank, slack)
    return pieces if side == "upper" else -pieces[::-1, ::-1]


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("side", SIDES)
def test_window_with_rows_of_high_leverage(residual, side):
    """Outliers among the labelled rows have groups of their own; the window still decides, and rightly."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(460, 3)), rng.normal(size=400)
    X[:7] *= np.array([5, 10, 20, 50, 100, 8, 8])[:, None]
    y[:3] += 30
    machine = Machine.build(X[:400], y, Kernel("linear"), ridge=0.3, power=POWER[residual])
    order = machine.order(side)
    groups = np.split(
        1 - machine.fit.ridge * machine.fit.diagonal()[order.order], order.starts[1:-1]
    )
    assert len(groups) > 3
    for leverage, largest in zip(groups, order.leverage, strict=True):
        assert np.max(leverage) == pytest.approx(largest)
    for rank in (2, 5, 40, 200):
        ends = window_intervals(machine, X[400:], rank=rank, side=side)
        assert np.mean(np.isnan(ends).any(axis=1)) < 0.2
        for j, prediction, rho, beta in machine.lines(X[400:], machine.fit.residuals):
            if not np.isnan(ends[j]).any():
                swept = sweep_any(rho, beta, rank, side, machine.fit.slack)
                np.testing.assert_allclose(
                    ends[j : j + 1] - prediction, swept, rtol=1e-9, atol=1e-12
                )


@given(problems)
def test_window_bounds_hold(problem):
    """No labelled row's end leaves the bounds that Cauchy-Schwarz gives."""
    problem.kernel = Kernel("linear")
    if problem.X.shape[1] >= len(problem.y):
        return
    machine = build(problem)
    pivot = machine.fit.directions(problem.X[-1:])[1]
    leverage = float(np.clip(1 - machine.fit.ridge * machine.fit.diagonal().min(), 0, 1))
    q = max(pivot[0] / machine.fit.ridge - 1, 0)
    shrink, grow = window.window_factors(leverage, q, machine.power)
    assert (shrink, grow) == window.window_factors.py_func(leverage, q, machine.power)
    if shrink == 0:
        return
    ((_, _, rho, beta),) = machine.lines(problem.X[-1:], machine.fit.residuals)
    at_zero = pivot * machine.fit.residuals / (pivot * machine.diagonal) ** machine.power
    for slope in (beta, -beta):
        ratio = rho / (1 + slope) / at_zero
        assert np.all(ratio * shrink <= 1 + 1e-9)
        assert np.all(ratio * grow >= 1 - 1e-9)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("side", SIDES)
def test_window_from_a_part_of_the_rows(residual, side):
    """Ordering only as many rows as a rank needs changes nothing, also where that turns out to be too few."""
    rng = np.random.default_rng(6)
    X, y = rng.standard_t(2, size=(1040, 2)), rng.normal(size=1000)
    X[1000:1010] *= 20
    settings = {"ridge": 0.3, "power": POWER[residual]}
    machine = Machine.build(X[:1000], y, Kernel("linear"), **settings)
    for rank in (1, 10, 100):
        whole = Machine.build(X[:1000], y, Kernel("linear"), **settings)
        whole.order(side)
        part = machine.order(side, rank)
        assert part.rest > 0
        assert len(part.order) < 600
        ends = window_intervals(whole, X[1000:], rank=rank, side=side)
        np.testing.assert_array_equal(
            window_intervals(machine, X[1000:], rank=rank, side=side), ends
        )
        assert np.mean(np.isnan(ends)) < 0.3
        machine = Machine.build(X[:1000], y, Kernel("linear"), **settings)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_window_where_many_rows_are_open(residual):
    """Rows of the same residual, a bracket that has to be widened, and more open rows than the block holds."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(2520, 3)), rng.integers(-1, 2, size=2500).astype(float)
    X[:2500] = np.round(X[:2500])
    X[2500:2510] *= np.geomspace(10, 1000, 10)[:, None]
    machine = Machine.build(X[:2500], y, Kernel("linear"), ridge=0.3, power=POWER[residual])
    settled = 0
    for rank in (25, 250, 1250):
        ends = window_intervals(machine, X[2500:], rank=rank, side="two")
        settled += np.count_nonzero(~np.isnan(ends))
        for j, prediction, rho, beta in machine.lines(X[2500:], machine.fit.residuals):
            if not np.isnan(ends[j]).any():
                swept = sweep_any(rho, beta, rank, "two", machine.fit.slack)
                np.testing.assert_allclose(
                    ends[j : j + 1] - prediction, swept, rtol=1e-9, atol=1e-12
                )
    assert settled > 60  # of 120
    assert settled < 120 or residual != "plain"


@given(problems)
def test_primal_and_dual_forms_agree(problem):
    linear = Kernel("linear")
    problem.kernel = linear
    if problem.X.shape[1] >= len(problem.y):
        return
    primal = build(problem)
    problem.kernel = Kernel(lambda u, v: float(u @ v))
    dual = build(problem)
    assert isinstance(primal.fit, PrimalRidge)
    assert isinstance(dual.fit, DualRidge)
    for rank in range(1, len(problem.y)):
        one, other = (find_regions(m, problem.X[-1:], rank=rank) for m in (primal, dual))
        np.testing.assert_allclose(one[0], other[0], rtol=1e-6, atol=1e-8)


def test_precomputed_equals_features():
    problem = make_problem(
        5, heavy=False, kernel=KERNELS[0], residual="deleted", fit_intercept=True
    )
    direct = find_regions(build(problem), problem.X[-1:], rank=2)
    K = problem.K
    rows = np.column_stack([K[:, :-1], np.diag(K)])
    machine = Machine.build(
        rows[:-1],
        problem.y,
        Kernel("precomputed"),
        ridge=problem.ridge,
        fit_intercept=True,
        power=1.0,
    )
    np.testing.assert_allclose(find_regions(machine, rows[-1:], rank=2)[0], direct[0], rtol=1e-10)


# -------------------------------------------------------------------------------------------- laws


@given(problems, confidences, confidences)
def test_regions_grow_with_confidence(problem, one, other):
    low, high = sorted((one, other))
    machine, labels = build(problem), np.linspace(-30, 30, 301)
    n = len(problem.y)
    narrow, wide = (
        find_regions(machine, problem.X[-1:], rank=nonconformity_rank(c, n)) for c in (low, high)
    )
    inside, still = (region[[0] * len(labels)].contains(labels) for region in (narrow, wide))
    assert still[inside].all()


@given(problems, st.sampled_from([1e-6, 0.1, 7.0, 1e8]), st.booleans())
def test_scaling_labels_scales_regions(problem, scale, mirrored):
    scale = -scale if mirrored else scale
    rank = max(1, len(problem.y) // 5)
    before = find_regions(build(problem), problem.X[-1:], rank=rank)[0]
    problem.y = problem.y * scale
    after = find_regions(build(problem), problem.X[-1:], rank=rank)[0]
    expected = before * scale if scale > 0 else (before * scale)[::-1, ::-1]
    np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-7 * abs(scale))


@given(problems)
def test_shifting_labels_shifts_regions_with_an_intercept(problem):
    problem.fit_intercept = True
    before = find_regions(build(problem), problem.X[-1:], rank=1)[0]
    problem.y = problem.y + 100.0
    after = find_regions(build(problem), problem.X[-1:], rank=1)[0]
    np.testing.assert_allclose(after, before + 100.0, rtol=1e-7, atol=1e-6)


@given(problems, st.randoms(use_true_random=False))
def test_order_of_labelled_rows_does_not_matter(problem, random):
    before = find_regions(build(problem), problem.X[-1:], rank=1)[0]
    order = list(range(len(problem.y)))
    random.shuffle(order)
    problem.y = problem.y[order]
    problem.X = problem.X[[*order, len(order)]]
    after = find_regions(build(problem), problem.X[-1:], rank=1)[0]
    np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-9)


@given(problems)
def test_the_prediction_is_always_inside(problem):
    machine = build(problem)
    prediction = machine.predict(problem.X[-1:])
    for rank in range(len(problem.y) + 1):
        assert find_regions(machine, problem.X[-1:], rank=rank).contains(prediction).all()


@given(problems)
def test_studentized_regions_are_single_intervals(problem):
    """Cauchy-Schwarz: no studentized line is as steep as the unlabelled row's own."""
    problem.residual = "studentized"
    regions = find_regions(build(problem), problem.X[-1:], rank=1)
    assert regions.n_pieces[0] == 1
    assert np.isfinite(regions.measure()).all()


def test_chunks_do_not_matter():
    """A budget for one row at a time gives the answers of a budget for all."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=40)
    for kernel in (Kernel("rbf"), Kernel("linear")):
        wide = Machine.build(X[:40], y, kernel, max_bytes=1e9)
        narrow = Machine.build(X[:40], y, kernel, max_bytes=1.0)
        assert len(narrow.chunks(20, 3)) == 20
        np.testing.assert_allclose(
            find_regions(wide, X[40:], rank=4).hull(), find_regions(narrow, X[40:], rank=4).hull()
        )
        np.testing.assert_array_equal(
            count_labels(wide, X[40:], y[:20]), count_labels(narrow, X[40:], y[:20])
        )
        np.testing.assert_allclose(wide.predict(X[40:]), narrow.predict(X[40:]))


# ------------------------------------------------------------------------------------------ limits


@given(st.floats(0.01, 0.99), st.integers(1, 400))
def test_rank_is_the_p_value_rule(confidence, n):
    """count >= rank says the same as (1 + count) / (n + 1) > 1 - confidence, away from equality."""
    rank = nonconformity_rank(confidence, n)
    assert (1 + rank) / (n + 1) > 1 - confidence - 1e-9
    assert rank == 0 or rank / (n + 1) <= 1 - confidence + 1e-9


@pytest.mark.parametrize(
    ("confidence", "n"), [(0.9, 9), (0.8, 4), (0.8, 9), (0.95, 19), (0.99, 99)]
)
def test_rank_at_equality(confidence, n):
    """With n / (n + 1) = confidence exactly, the most nonconforming label is out: floating point must not keep it."""
    assert nonconformity_rank(confidence, n) == round((1 - confidence) * (n + 1))


def test_ties_survive_rounding():
    """Duplicates of an unlabelled row with the same label tie with it: rounding must not set it apart."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(3, 2)), 10, axis=0)
    y = np.repeat([0.1, 0.7, 1.3], 10)
    for kernel in (Kernel("rbf"), Kernel("linear")):
        machine = Machine.build(X, y, kernel, ridge=0.01)
        above, tied = count_labels(machine, X[::10], y[::10])
        assert np.all(tied >= 10)
        for j, rank in enumerate(above + tied):
            assert (
                find_regions(machine, X[10 * j : 10 * j + 1], rank=int(rank))
                .contains(y[10 * j])
                .all()
            )


@pytest.mark.parametrize("residual", RESIDUALS)
def test_two_rows_always_tie_with_an_intercept(residual):
    """Their residuals are equal and opposite whatever the second label: the line, in spite of rounding."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, y = rng.normal(size=(2, 2)), rng.normal(size=1)
        for kernel in (Kernel("rbf"), Kernel("linear")):
            machine = Machine.build(X[:1], y, kernel, ridge=0.3, power=POWER[residual])
            assert np.isinf(find_regions(machine, X[1:], rank=1).hull()).all()
            assert count_labels(machine, X[1:], np.array([7.0]))[1] == 1


@given(problems, st.sampled_from([1e-6, 1e-3, 0.1]))
def test_regions_and_p_values_agree(problem, ridge):
    """One definition of a tie for both, near interpolation too.

    The ridge is in units of the kernel. At 1e-10 of it the last digits decide: slopes are within 1e-8 of 1, where ends
    of regions are quotients of rounding errors, and one row alone has other ones than many at once.
    """
    problem.ridge = ridge * max(1.0, np.abs(problem.K).max())
    machine, n = build(problem), len(problem.y)
    labels = np.concatenate([np.linspace(-20, 20, 101), problem.y])
    rows = np.repeat(problem.X[-1:], len(labels), axis=0)
    p = machine.label_p_values(rows, labels, np.ones(len(labels)))
    for rank in (1, max(1, n // 3)):
        inside = find_regions(machine, rows, rank=rank).contains(labels)
        np.testing.assert_array_equal(inside, np.round(p * (n + 1)) > rank)


@pytest.mark.parametrize("name", ["chi2", "additive_chi2", "sigmoid"])
@pytest.mark.parametrize("residual", RESIDUALS)
def test_kernels_for_positive_features_equal_refits(name, residual):
    """The last two are not positive definite by themselves; a large ridge makes them so."""
    for seed in range(5):
        problem = make_problem(
            seed,
            heavy=False,
            kernel=Kernel(name, 1.0),
            residual=residual,
            fit_intercept=True,
            n_labelled=9,
        )
        problem.X, problem.ridge = np.abs(problem.X), 30.0
        machine, K = build(problem), problem.K
        region, labels = find_regions(machine, problem.X[-1:], rank=2), np.linspace(-6, 6, 41)
        alphas = brute.nonconformity(K, completed(problem.y, labels), *settings_of(problem))
        p = np.array([brute.p_value(alpha) for alpha in alphas.T])
        np.testing.assert_array_equal(region[[0] * 41].contains(labels), np.round(10 * p) > 2)


def test_constant_labels_give_a_point_that_holds_them():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    for value in (0.1, 1e9 + 0.1, -3e-7):
        for kernel in (Kernel("rbf"), Kernel("linear")):
            regions = find_regions(
                Machine.build(X[:20], np.full(20, value), kernel), X[20:], rank=2
            )
            assert regions.contains(value).all()
            assert np.all(regions.measure() <= 1e-12 * abs(value))


OWN = lines_module.OWN
SPECIAL = [
    # (rho, beta, region of rank 1): the rows of the table of sets S_i, ties read generously
    (3.0, 0.5, [[-6.0, 2.0]]),
    (-3.0, 0.5, [[-2.0, 6.0]]),
    (3.0, 2.0, [[-np.inf, 1.0], [3.0, np.inf]]),
    (3.0, -2.0, [[-np.inf, -3.0], [-1.0, np.inf]]),
    (3.0, OWN, [[-np.inf, 1.5]]),
    (3.0, -OWN, [[-1.5, np.inf]]),
    (0.0, OWN, [[-np.inf, np.inf]]),
    (0.0, 1.0, [[-np.inf, np.inf]]),
    (0.0, 2.0, [[-np.inf, np.inf]]),
    (0.0, 0.5, [[0.0, 0.0]]),
]


@pytest.mark.parametrize(("rho", "beta", "expected"), SPECIAL)
@pytest.mark.parametrize("sweep", [sweep_two_sided, plain_sweep])
def test_every_shape_of_a_single_set(rho, beta, expected, sweep):
    pieces = sweep(np.array([rho]), np.array([beta]), 1, 0.0)
    np.testing.assert_allclose(pieces, expected, rtol=1e-11)


def test_touching_sets_join():
    """[0, 1] and [1, 2] cover [0, 2] without a gap, and share one point."""
    starts, ends = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    for walk in (lines_module.sweep_sets, lines_module.sweep_sets.py_func):
        np.testing.assert_array_equal(walk(starts.copy(), ends.copy(), 1), [[0.0, 2.0]])
        np.testing.assert_array_equal(walk(starts.copy(), ends.copy(), 2), [[1.0, 1.0]])
        np.testing.assert_array_equal(walk(starts[:1].copy(), ends[:0].copy(), 1), [[0.0, np.inf]])
        np.testing.assert_array_equal(walk(starts[:0].copy(), ends[:1].copy(), 0), [[-np.inf, 1.0]])


@given(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=40), st.data())
def test_selection_is_sorting(values, data):
    k = data.draw(st.integers(1, len(values)))
    for kth in (lines_module.kth_largest, lines_module.kth_largest.py_func):
        assert kth(np.array(values), k) == sorted(values)[-k]


@given(problems)
def test_compiled_functions_equal_their_python(problem):
    """What numba compiled is what is written."""
    machine = build(problem)
    ((_, _, rho, beta),) = machine.lines(problem.X[-1:], machine.fit.residuals)
    for side in SIDE.values():
        np.testing.assert_array_equal(
            line_region(rho, beta, 1, side, 0.0),
            lines_module.region_pieces.py_func(rho, beta, 1, side, 0.0),
        )
    for sets, slopes in itertools.product(
        (two_sided_sets, one_sided_sets), (beta, beta - 1, np.sign(rho))
    ):
        for ours, theirs in zip(
            sets(rho, slopes, 0.0), sets.py_func(rho, slopes, 0.0), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    for power in POWER.values():
        scale = lines_module.residual_scale
        assert scale(2.0, 3.0, 0.5, power) == scale.py_func(2.0, 3.0, 0.5, power)
    counts = lines_module.count_nonconforming
    assert counts(rho, beta, 0.3, 0.0) == counts.py_func(rho, beta, 0.3, 0.0)
    codes, scores = np.arange(len(rho)) % 2, np.array([0.2, -0.2])
    by_class = lines_module.count_nonconforming_by_class
    np.testing.assert_array_equal(
        by_class(rho, beta, codes, scores, 0.0), by_class.py_func(rho, beta, codes, scores, 0.0)
    )


def test_compiled_window_equals_its_python():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(45, 2)), rng.normal(size=40)
    for power in POWER.values():
        machine = Machine.build(X[:40], y, Kernel("linear"), power=power)
        fit = machine.fit
        for side in SIDES:
            settings = fit.offset, 1.0, power, 0.0, SIDE[side]
            lines = window.Lines(fit.X, fit.residuals, machine.diagonal, *settings)
            arguments = (machine.order(side), lines, *fit.directions(X[40:]), 4)
            compiled = window.window_ends(*arguments)
            plain = window.window_ends.py_func(*arguments)
            np.testing.assert_allclose(plain, compiled, rtol=1e-13)


def test_the_window_leaves_steep_lines_to_the_others():
    """A row far out has weights that the bound cannot keep below 1: NaN, and the sweep takes over."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(41, 2)), rng.normal(size=40)
    X[40] = 1e3
    machine = Machine.build(X[:40], y, Kernel("linear"), ridge=1e-3)
    assert np.isnan(window_intervals(machine, X[40:], rank=4, side="two")).all()
    assert np.isinf(find_regions(machine, X[40:], rank=4).measure()[0])
    assert window.window_factors(1.0, 1.0, 0.5) == (0.0, np.inf)
    assert window.window_factors(1.0, 1.0, 0.0) == (0.0, np.inf)


def test_lines_of_a_row_that_stands_alone():
    """Scale 0 (a deleted residual that does not exist) gives the set {prediction}, not NaN."""
    zero, one = np.zeros(1), np.ones(1)
    for function in (residual_lines, residual_lines.py_func):
        rho, beta = function(one, zero, zero, 1.0, 1.0)
        assert line_region(rho, beta, 1, SIDE["two"], 0.0).tolist() == [[0.0, 0.0]]
        assert line_region(rho, beta, 1, SIDE["upper"], 0.0).tolist() == [[-np.inf, 0.0]]
