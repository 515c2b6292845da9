"""Estimates of a column that is known in part: against enumeration, and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom

from tests import brute
from transduce.population import (
    Sample,
    estimate_difference,
    estimate_mean,
    estimate_quantile,
    estimate_regression,
    estimate_share,
    estimate_total,
)
from transduce.population.betting import BoundedDraws
from transduce.population.corrections import (
    share_of_degrees,
    spread_of_all_units,
    worst_mean,
)
from transduce.population.equations import Equation, EquationOfColumn
from transduce.population.linear import BY_REFITTING, estimate_linear, hinge_rows
from transduce.population.lines import labels_for_width
from transduce.population.regressions import hinges_of_regression
from transduce.population.sample import PartlyKnown
from transduce.population.skewness import skewness_of_all
from transduce.population.uncertain import Uncertain


def column_of(y, f, labelled, **design):
    return PartlyKnown(np.where(labelled, y, np.nan), f, Sample(labelled, **design))


class TestExact:
    def test_the_mean_is_its_definition(self):
        rng = np.random.default_rng(0)
        for n_labels in (3, 5, 8):
            y, f = rng.normal(size=12), rng.normal(size=12)
            f += y * rng.random()
            labelled = rng.permutation(12) < n_labels
            line = estimate_mean(np.where(labelled, y, np.nan), f).iloc[0]
            assert line["estimate"] == pytest.approx(brute.difference_estimate(y, f, labelled))

    @pytest.mark.parametrize("kind", ["mean", "group", "slope"])
    @pytest.mark.parametrize("n_labels", [4, 7])
    def test_the_mean_over_all_samples_is_the_truth(self, kind, n_labels):
        """Unbiased to rounding, however wrong the predictions are."""
        rng = np.random.default_rng(1)
        n = 9
        y = rng.exponential(size=n) ** 2
        f = 3.0 * y + 10.0 * rng.normal(size=n) - 5.0
        coefficients = np.full(n, 1.0 / n)
        if kind == "group":
            coefficients = np.where(np.arange(n) < 7, 1.0 / 7.0, 0.0)
        if kind == "slope":
            x = rng.normal(size=n)
            coefficients = np.linalg.pinv(np.column_stack([np.ones(n), x]))[1]
        truth = float(coefficients @ y)
        estimates = []
        for labelled in brute.every_sample(n, n_labels):
            if np.sum(labelled & (coefficients != 0)) < 2:
                continue
            found = estimate_linear(column_of(y, f, labelled), coefficients)
            estimates.append((int(np.sum(labelled & (coefficients != 0))), found.number.estimate))
        # Given the number of labels that matter, every set of them is equally likely.
        frame = pd.DataFrame(estimates, columns=["count", "estimate"])
        for _, part in frame.groupby("count"):
            assert part["estimate"].mean() == pytest.approx(truth, abs=1e-9)

    @pytest.mark.parametrize("kind", ["mean", "group"])
    def test_rows_elsewhere_are_unbiased_for_the_others(self, kind):
        """Each set of rows in turn is labelled elsewhere, and the rest is asked about."""
        rng = np.random.default_rng(2)
        n, n_labels = 9, 4
        y = rng.exponential(size=n) ** 2
        f = 3.0 * y + 10.0 * rng.normal(size=n) - 5.0
        group = np.arange(n) < (9 if kind == "mean" else 7)
        errors = []
        for labelled in brute.every_sample(n, n_labels):
            n_here = int(np.sum(labelled & group))
            if n_here < 2:
                continue
            sample = Sample(labelled, elsewhere=labelled)
            frame = estimate_mean(np.where(labelled, y, np.nan), f, by=group, sample=sample)
            errors.append((n_here, frame.loc[True, "estimate"] - y[group & ~labelled].mean()))
        frame = pd.DataFrame(errors, columns=["count", "error"])
        for _, part in frame.groupby("count"):
            assert part["error"].mean() == pytest.approx(0.0, abs=1e-9)

    @pytest.mark.few(5)
    @pytest.mark.parametrize("ones", range(11))
    def test_exact_shares_of_rows_elsewhere_never_miss_more_than_they_may(self, ones):
        n_rows, n_labels, confidence = 10, 4, 0.8
        y = (np.arange(n_rows) < ones).astype(float)
        missed = total = 0
        for labelled in brute.every_sample(n_rows, n_labels):
            sample = Sample(labelled, elsewhere=labelled)
            column = np.where(labelled, y, np.nan)
            line = estimate_share(column, of=1.0, confidence=confidence, sample=sample).iloc[0]
            truth = y[~labelled].mean()
            missed += not line["lower"] - 1e-9 <= truth <= line["upper"] + 1e-9
            total += 1
        assert missed <= (1.0 - confidence) * total

    def test_a_regression_of_the_rows_asked_about(self):
        """With predictions that are right the coefficients are those of these rows alone."""
        rng = np.random.default_rng(3)
        x, noise = rng.normal(size=(2, 80))
        y = 1.0 + 2.0 * x + noise
        elsewhere = np.arange(80) < 30
        sample = Sample(elsewhere, elsewhere=elsewhere)
        frame = estimate_regression(np.where(elsewhere, y, np.nan), x[:, None], y, sample=sample)
        slope, constant = np.polyfit(x[~elsewhere], y[~elsewhere], 1)
        assert frame["estimate"].tolist() == pytest.approx([constant, slope])

    @pytest.mark.parametrize(("n_rows", "n_labels"), [(5, 2), (8, 3), (12, 4), (12, 7)])
    def test_exact_shares_never_miss_more_than_they_may(self, n_rows, n_labels):
        for n_ones in range(n_rows + 1):
            y = np.where(np.arange(n_rows) < n_ones, 1.0, 0.0)
            held = [
                line["lower"] - 1e-12 <= n_ones / n_rows <= line["upper"] + 1e-12
                for labelled in distinct_samples(y, n_labels)
                for line in [
                    estimate_share(
                        np.where(labelled[0], y, np.nan), of=1.0, confidence=0.8, exact=True
                    ).iloc[0]
                ]
                for _ in range(labelled[1])
            ]
            assert np.mean(held) >= 0.8

    @pytest.mark.parametrize("q", [0.3, 0.5, 0.8])
    @pytest.mark.parametrize("kind", ["distinct", "tied"])
    def test_exact_quantiles_never_miss_more_than_they_may(self, kind, q):
        """On either side, over all samples of a small table."""
        n_rows, confidence = 8, 0.6
        rng = np.random.default_rng(3)
        y = rng.exponential(size=n_rows) if kind == "distinct" else rng.integers(0, 3, n_rows)
        y = y.astype(float)
        truth = np.sort(y)[int(np.ceil(q * n_rows)) - 1]
        too_high = too_low = total = 0
        for labelled in brute.every_sample(n_rows, 4):
            column = np.where(labelled, y, np.nan)
            line = estimate_quantile(column, q=q, confidence=confidence).iloc[0]
            too_high += line["lower"] > truth
            too_low += line["upper"] < truth
            total += 1
        assert max(too_high, too_low) <= (1.0 - confidence) / 2.0 * total

    def test_bets_never_miss_more_than_they_may(self):
        """Every order of every sample of small tables, numbers among them."""
        for values in ([0, 0, 1, 1, 1, 0], [0.2, 0.9, 0.4, 1.0, 0.0, 0.5], [1, 1, 1, 1, 1, 1]):
            values = np.array(values, dtype=float)
            held = []
            for order in itertools.permutations(range(6), 4):
                draws = BoundedDraws(values[list(order)], 6)
                low, high = draws.total_interval(0.5)
                held.append(low - 1e-9 <= values.sum() <= high + 1e-9)
            assert np.mean(held) >= 0.5

    def test_bets_are_fair(self):
        """At the true total the martingale's mean stays 1, over all orders."""
        from transduce.population.betting import log_wealth

        values = np.array([0.0, 0.3, 1.0, 0.6, 0.1])
        wealth = []
        for order in itertools.permutations(range(5), 3):
            drawn = values[list(order)]
            seen = np.append(0.0, np.cumsum(drawn)[:-1])
            means = (values.sum() - seen) / (5 - np.arange(3))
            wealth.append(np.exp(log_wealth(drawn, means)[-1]))
        assert np.mean(wealth) == pytest.approx(1.0)

    def test_worst_weights_by_trying_all_corners(self):
        rng = np.random.default_rng(3)
        sums, sizes, weights = (
            rng.normal(size=6),
            rng.integers(1, 4, 6).astype(float),
            rng.random(6),
        )
        corners = [
            np.sum(w * sums) / np.sum(w * sizes)
            for signs in itertools.product((0.5, 2.0), repeat=6)
            for w in [weights * np.array(signs)]
        ]
        assert worst_mean(sums, sizes, weights, 2.0) == pytest.approx(min(corners))

    def test_least_squares_on_a_complete_column_is_itself(self):
        rng = np.random.default_rng(4)
        X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
        frame = estimate_regression(y, X)
        expected = np.linalg.lstsq(np.column_stack([np.ones(30), X]), y, rcond=None)[0]
        assert np.allclose(frame["estimate"], expected)
        assert (frame["kind"] == "exact").all()
        assert np.allclose(frame["lower"], frame["upper"])

    def test_a_known_predictor_gives_least_squares(self):
        rng = np.random.default_rng(5)
        x, y = rng.normal(size=(40, 1)), rng.normal(size=40)
        outcome = 1.0 + 2.0 * x[:, 0] - y + rng.normal(size=40)
        frame = estimate_regression(y, x, y, outcome=outcome)
        design = np.column_stack([np.ones(40), x, y])
        assert np.allclose(frame["estimate"], np.linalg.lstsq(design, outcome, rcond=None)[0])

    def test_logistic_regressions_match_a_library(self):
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(6)
        x = rng.normal(size=(200, 2))
        y = (rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
        model = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(x, y)
        frame = estimate_regression(y, x, logistic=True)
        assert np.allclose(frame["estimate"], [model.intercept_[0], *model.coef_[0]], atol=1e-4)
        other = estimate_regression(x[:, 1], x[:, :1], outcome=y, logistic=True)
        assert np.allclose(other["estimate"], frame["estimate"])

    def test_leverages_by_leaving_rows_out(self):
        """Without its row a coefficient moves by the influence of the row over 1 - h (linear, exact)."""
        rng = np.random.default_rng(21)
        y, outcome = rng.normal(size=12), rng.normal(size=12)
        column = PartlyKnown(y, np.zeros(12), Sample(np.ones(12, dtype=bool)))
        problem = EquationOfColumn(Equation(np.ones((12, 1)), outcome), column, np.zeros(12))
        solution = problem.solve_with_factor(0.0)
        moves = problem.row_errors(solution, 1).errors
        for row in range(12):
            rest = np.arange(12) != row
            without = np.polyfit(y[rest], outcome[rest], 1)[0]
            assert solution.theta[1] - without == pytest.approx(moves[row])

    def test_a_sample_without_the_large_rows_is_told_how_much_larger_the_others_are(self):
        """Errors in proportion to a: their variance over all rows is that of the mean a^2."""
        of_sample = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
        of_all = np.vstack([of_sample, [[10.0, 0.0], [20.0, 0.0]]])
        squares = 7.0 * of_sample[:, 0]
        factor = spread_of_all_units(squares, np.ones(3), of_sample, of_all)
        assert factor == pytest.approx(of_all[:, 0].mean() / of_sample[:, 0].mean())
        assert spread_of_all_units(squares, np.ones(3), of_sample, of_sample) == 1.0

    def test_degrees_of_unequal_terms_by_their_definition(self):
        """Satterthwaite: the degrees that a chi-squared of that mean and variance has."""
        squares = np.array([1.0, 4.0, 9.0, 0.25, 1.0])
        # sum w_i chi_i: mean sum w, variance 2 sum w^2; c chi_d: mean c d, variance 2 c^2 d.
        degrees = squares.sum() ** 2 / np.sum(squares**2)
        assert share_of_degrees(squares) == pytest.approx(degrees / 5)


def distinct_samples(y, n_labels):
    """Yield samples that differ in their number of ones, and how many sets of rows each stands for."""
    counts: dict[int, list] = {}
    for labelled in brute.every_sample(len(y), n_labels):
        counts.setdefault(int(y[labelled].sum()), []).append(labelled)
    for masks in counts.values():
        yield masks[0], len(masks)


class TestLaws:
    def test_scales_and_offsets(self):
        rng = np.random.default_rng(7)
        y = np.where(rng.random(80) < 0.5, rng.normal(size=80), np.nan)
        f = rng.normal(size=80)
        one, other = estimate_mean(y, f), estimate_mean(1e6 * y + 3.0, 1e6 * f + 3.0)
        for name in ("estimate", "lower", "upper"):
            assert other[name].iloc[0] == pytest.approx(1e6 * one[name].iloc[0] + 3.0, rel=1e-9)
        assert other["worth"].iloc[0] == pytest.approx(one["worth"].iloc[0])

    def test_row_order_does_not_matter(self):
        rng = np.random.default_rng(8)
        y = np.where(rng.random(60) < 0.5, rng.normal(size=60), np.nan)
        f, by = rng.normal(size=60), rng.integers(0, 3, 60)
        order = rng.permutation(60)
        one = estimate_mean(y, f, by=by)
        other = estimate_mean(y[order], f[order], by=by[order])
        pd.testing.assert_frame_equal(one, other)

    @pytest.mark.parametrize("design", ["simple", "strata", "groups", "odds", "elsewhere", "later"])
    @pytest.mark.parametrize("question", ["mean", "share", "median"])
    def test_rows_outside_a_group_and_the_sample_play_no_part(self, question, design):
        rng = np.random.default_rng(5)
        n = 200
        truth = np.round(rng.exponential(size=n), 2)
        predictions = truth + rng.normal(size=n)
        labelled = rng.permutation(n) < 90
        by = np.repeat(["a", "b"], [140, 60])
        said = {
            "simple": {},
            "strata": {"strata": np.arange(n) % 2},
            "groups": {"groups": np.arange(n) // 3},
            "odds": {"odds": rng.uniform(0.5, 2.0, n)},
            "elsewhere": {"elsewhere": labelled & (np.arange(n) % 4 == 0)},
            "later": {"later": labelled & (np.arange(n) % 4 == 0)},
        }[design]
        drawn = labelled & (np.arange(n) % 4 != 0) if design == "later" else labelled
        of = {"above": 1.0} if question == "share" else {}
        ask = {"mean": estimate_mean, "share": estimate_share, "median": estimate_quantile}[
            question
        ]
        y = np.where(labelled, truth, np.nan)
        kept = (by == "b") | drawn
        inside = {name: values[kept] for name, values in said.items()}
        whole = ask(y, predictions, by=by, sample=Sample(drawn, **said), **of).loc["b"]
        part = ask(
            y[kept], predictions[kept], by=by[kept], sample=Sample(drawn[kept], **inside), **of
        ).loc["b"]
        pd.testing.assert_series_equal(whole, part)

    def test_groups_add_up_to_the_total(self):
        rng = np.random.default_rng(9)
        y = np.where(rng.random(200) < 0.6, rng.normal(size=200), np.nan)
        by = rng.integers(0, 2, 200)
        parts = estimate_total(y, by=by)["estimate"].sum()
        strata = Sample(~np.isnan(y), strata=by)
        whole = estimate_total(y, sample=strata)["estimate"].iloc[0]
        assert parts == pytest.approx(whole)

    def test_equal_odds_are_a_simple_sample(self):
        rng = np.random.default_rng(10)
        labelled = rng.random(50) < 0.4
        y, f = np.where(labelled, rng.normal(size=50), np.nan), rng.normal(size=50)
        odds = np.full(50, np.sum(~labelled) / np.sum(labelled))
        one = estimate_mean(y, f)
        other = estimate_mean(y, f, sample=Sample(labelled, odds=odds))
        assert other["estimate"].iloc[0] == pytest.approx(one["estimate"].iloc[0])
        assert other["upper"].iloc[0] == pytest.approx(one["upper"].iloc[0])

    def test_groups_of_one_row_are_rows(self):
        rng = np.random.default_rng(11)
        labelled = rng.random(50) < 0.4
        y, f = np.where(labelled, rng.normal(size=50), np.nan), rng.normal(size=50)
        one = estimate_mean(y, f)
        other = estimate_mean(y, f, sample=Sample(labelled, groups=np.arange(50)))
        pd.testing.assert_frame_equal(one, other)

    def test_good_predictions_are_worth_labels_and_bad_ones_cost_little(self):
        rng = np.random.default_rng(12)
        truth = rng.normal(size=1000)
        y = np.where(rng.random(1000) < 0.1, truth, np.nan)
        good = estimate_mean(y, truth + 0.3 * rng.normal(size=1000)).iloc[0]
        bad = estimate_mean(y, rng.normal(size=1000)).iloc[0]
        assert good["worth"] > 4.0 * good["n_labels"]
        assert bad["worth"] > 0.9 * bad["n_labels"]

    def test_a_sensitivity_widens(self):
        rng = np.random.default_rng(13)
        labelled = rng.random(100) < 0.5
        y = np.where(labelled, rng.normal(size=100), np.nan)
        plain = estimate_mean(y).iloc[0]
        wide = estimate_mean(y, sample=Sample(labelled, sensitivity=2.0)).iloc[0]
        assert wide["lower"] < plain["lower"]
        assert wide["upper"] > plain["upper"]
        assert wide["estimate"] == plain["estimate"]

    def test_share_above_and_below_add_up(self):
        rng = np.random.default_rng(14)
        y = np.where(rng.random(400) < 0.5, rng.normal(size=400), np.nan)
        above = estimate_share(y, above=0.3, exact=False).iloc[0]
        below = estimate_share(y, below=0.3, exact=False).iloc[0]
        assert above["estimate"] + below["estimate"] == pytest.approx(1.0)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_group_is_taken_to_be_as_skewed_as_all_labels(self, sign):
        """Its skewness and degrees by their definition; the side to which labels reach is longer."""
        rng = np.random.default_rng(3)
        y = sign * np.exp(rng.normal(size=400))
        small = np.arange(400) % 20 == 0
        y[small] = sign * np.linspace(1.0, 2.0, 20)  # labels without any skewness
        labelled = np.arange(400) < 200
        column = PartlyKnown(np.where(labelled, y, np.nan), np.zeros(400), Sample(labelled))
        number = estimate_linear(column, small / 20.0).number
        off = [y[labelled & rows] - y[labelled & rows].mean() for rows in (small, ~small)]
        expected = skewness_of_all(np.concatenate(off)) / np.sqrt(10) * 0.5**1.5
        assert number.skewness == pytest.approx(expected)
        assert np.sign(number.skewness) == sign
        minus = estimate_linear(column, small / -20.0).number
        assert minus.skewness == pytest.approx(-expected)
        share = column.with_values(np.where(labelled, y > sign, np.nan), column.predictions)
        of_share = estimate_linear(share, small / 20.0).number
        assert of_share.skewness != pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize("slope", [False, True])
    def test_a_fit_to_all_labels_has_a_larger_error(self, slope):
        """By one factor; with no predictions there is no such fit."""
        rng = np.random.default_rng(8)
        x = rng.normal(size=200)
        y = np.where(np.arange(200) < 50, x + 0.5 * rng.normal(size=200), np.nan)

        def width(predictions, refitted):
            if slope:
                how = {"outcome": 2.0 * x, "refitted": refitted}
                line = estimate_regression(y, None, predictions, **how).loc["y"]
            else:
                line = estimate_mean(y, predictions, refitted=refitted).iloc[0]
            return line["upper"] - line["lower"]

        assert width(x, True) == pytest.approx(BY_REFITTING * width(x, False))
        assert width(None, True) == pytest.approx(width(None, False))

    def test_a_difference_is_that_of_the_means(self):
        rng = np.random.default_rng(15)
        y = np.where(rng.random(100) < 0.5, rng.normal(size=100), np.nan)
        by = np.where(rng.random(100) < 0.5, "a", "b")
        means = estimate_mean(y, by=by)["estimate"]
        found = estimate_difference(y, by=by, groups=("a", "b"))["estimate"].iloc[0]
        assert found == pytest.approx(means["a"] - means["b"])

    @pytest.mark.parametrize("logistic", [False, True])
    def test_designs_that_are_simple_samples_in_other_words(self, logistic):
        """Of a regression with the column as a predictor: one stratum, groups of one, equal odds."""
        rng = np.random.default_rng(22)
        labelled = rng.permutation(80) < 30
        truth = rng.normal(size=80)
        outcome = truth + rng.normal(size=80)
        if logistic:
            outcome = (outcome > 0.0).astype(float)
        y = np.where(labelled, truth, np.nan)
        f = 0.8 * truth + 0.3 * rng.normal(size=80)
        odds = np.full(80, 50.0 / 30.0)
        samples = [
            None,
            Sample(labelled, strata=np.full(80, 3)),
            Sample(labelled, groups=np.arange(80)),
            Sample(labelled, odds=odds),
        ]
        frames = [
            estimate_regression(y, None, f, outcome=outcome, logistic=logistic, sample=sample)
            for sample in samples
        ]
        pd.testing.assert_frame_equal(frames[0], frames[1])
        for frame in frames[2:]:
            np.testing.assert_allclose(frame["estimate"], frames[0]["estimate"])

    def test_a_stratum_that_is_known_leaves_a_regression_to_the_others(self):
        rng = np.random.default_rng(23)
        truth = np.append(10.0 + rng.normal(size=20), rng.normal(size=60))
        outcome = truth + rng.normal(size=80)
        known = np.arange(80) < 20
        drawn = ~known & (rng.random(80) < 0.5)
        y = np.where(known | drawn, truth, np.nan)
        by_strata = estimate_regression(
            y, outcome=outcome, sample=Sample(known | drawn, strata=known.astype(int))
        )
        on_purpose = estimate_regression(y, outcome=outcome, sample=Sample(drawn))
        np.testing.assert_allclose(by_strata["estimate"], on_purpose["estimate"])

    def test_a_sensitivity_widens_a_regression(self):
        rng = np.random.default_rng(24)
        labelled = rng.random(100) < 0.5
        truth = rng.normal(size=100)
        y = np.where(labelled, truth, np.nan)
        outcome = truth + rng.normal(size=100)
        plain = estimate_regression(y, outcome=outcome).loc["y"]
        wide = estimate_regression(
            y, outcome=outcome, sample=Sample(labelled, sensitivity=1.5)
        ).loc["y"]
        assert wide["lower"] < plain["lower"]
        assert wide["upper"] > plain["upper"]
        assert wide["estimate"] == pytest.approx(plain["estimate"])

    def test_labels_for_a_width_are_those_that_give_it(self):
        """Standard errors of a mean in proportion to sqrt(1 / l - 1 / n)."""
        labels = labels_for_width(40, 300, 0.5)
        error, half = (np.sqrt(1.0 / count - 1.0 / 300) for count in (40, labels))
        assert half == pytest.approx(error / 2.0)
        assert labels_for_width(40, 300, 0.0) == pytest.approx(300)
        assert labels_for_width(40, np.inf, 0.5) == pytest.approx(160)

    def test_groups_drawn_as_wholes_are_compared_as_wholes(self):
        """Both halves of every household have its own level: the difference hardly varies."""
        rng = np.random.default_rng(25)
        household = np.repeat(np.arange(60), 2)
        by = np.tile(["a", "b"], 60)
        level = np.repeat(10.0 * rng.normal(size=60), 2)
        truth = level + (by == "b") + 0.1 * rng.normal(size=120)
        labelled = np.isin(household, rng.permutation(60)[:20])
        y = np.where(labelled, truth, np.nan)
        sample = Sample(labelled, groups=household)
        line = estimate_difference(y, by=by, groups=("b", "a"), sample=sample).iloc[0]
        assert line["upper"] - line["lower"] < 0.3
        assert line["lower"] <= truth[by == "b"].mean() - truth[by == "a"].mean() <= line["upper"]

    def test_rows_drawn_without_a_label_leave_nothing_to_compare_or_regress(self):
        rng = np.random.default_rng(26)
        lost = np.arange(40) >= 38
        y = np.where(np.arange(40) < 20, rng.normal(size=40), np.nan)
        sample = Sample(~np.isnan(y), lost=lost)
        by = np.tile(["a", "b"], 20)
        compared = estimate_difference(y, by=by, groups=("a", "b"), sample=sample)
        regressed = estimate_regression(y, outcome=rng.normal(size=40), sample=sample)
        assert compared["kind"].tolist() == ["none"]
        assert regressed["kind"].tolist() == ["none", "none"]


class TestLimits:
    def test_nothing_unknown(self):
        line = estimate_mean([1.0, 2.0, 6.0]).iloc[0]
        assert (line["estimate"], line["lower"], line["upper"], line["kind"]) == (
            3.0,
            3.0,
            3.0,
            "exact",
        )

    def test_a_quantile_of_known_rows_is_itself(self):
        """Its interval began at the value before it, and at no value if there was none."""
        y = np.array([3.0, 1.0, 2.0, 7.0, np.nan, 4.0])
        frame = estimate_quantile(y, by=["a", "a", "a", "b", "c", "c"])
        assert frame.loc["a", ["lower", "estimate", "upper"]].tolist() == [2.0, 2.0, 2.0]
        assert frame.loc["b", ["lower", "estimate", "upper"]].tolist() == [7.0, 7.0, 7.0]
        assert frame.loc["a", "kind"] == "exact"

    def test_one_label_says_nothing(self):
        line = estimate_mean([1.0, np.nan, np.nan]).iloc[0]
        assert line["kind"] == "none"
        assert (line["lower"], line["upper"]) == (-np.inf, np.inf)

    def test_a_group_without_labels_says_nothing_and_others_do(self):
        y = np.array([1.0, 2.0, 3.0, np.nan, np.nan, np.nan])
        frame = estimate_mean(y, by=["a", "a", "a", "a", "b", "b"])
        assert frame["kind"].tolist() == ["approximate", "none"]

    @pytest.mark.parametrize("predictions", [None, np.full(20, 5.0), np.arange(20.0)])
    def test_equal_labels_tell_no_spread(self, predictions):
        """Ten labels of 2 do not show that all others are 2: they once gave 2 to 2, and "exact"."""
        y = np.array([2.0] * 10 + [np.nan] * 10)
        line = estimate_mean(y, predictions).iloc[0]
        assert line["estimate"] == pytest.approx(2.0)
        assert (line["lower"], line["upper"], line["kind"]) == (-np.inf, np.inf, "none")

    def test_predictions_without_an_error_are_no_guarantee(self):
        """Ten labels without an error show at 97.5 % that they are useless at 31 % of the rows at most."""
        y = np.append(np.arange(10.0), np.full(10, np.nan))
        line = estimate_mean(y, np.arange(20.0)).iloc[0]
        alone = estimate_mean(y).iloc[0]
        share = 1.0 - 0.025**0.1
        expected = np.sqrt(share) * (alone["upper"] - alone["lower"])
        assert line["estimate"] == pytest.approx(9.5)
        assert line["upper"] - line["lower"] == pytest.approx(expected)
        assert line["kind"] == "approximate"

    @pytest.mark.parametrize("n_labels", [30, 100])
    def test_rare_errors_are_reckoned_with(self, n_labels):
        """Three answers of a hundred are wrong: most samples of 30 have one error or none."""
        rng = np.random.default_rng(0)
        truth = (rng.random(1000) < 0.4).astype(float)
        answers = np.where(rng.random(1000) < 0.03, 1.0 - truth, truth)
        held = 0
        for _ in range(150):
            labelled = rng.permutation(1000) < n_labels
            y = np.where(labelled, truth, np.nan)
            line = estimate_share(y, answers, of=1.0).iloc[0]
            held += line["lower"] <= truth.mean() <= line["upper"]
        assert held >= binom.ppf(1e-3, 150, 0.95)  # it was 66 and 91 %

    def test_labels_alone_promise_nothing_where_ours_do_not(self):
        """A group whose labels are equal had an interval of no width beside ours of any number."""
        y = np.append(np.full(5, 2.0), np.full(5, np.nan))
        line = estimate_mean(y).iloc[0]
        assert (line["labels_alone_lower"], line["labels_alone_upper"]) == (-np.inf, np.inf)

    def test_equal_labels_of_a_stratum_are_as_spread_as_the_others(self):
        """Strata in which all labels were 0 added nothing to the error of a column with many zeros."""
        first, second = np.array([1.0, 3.0, 8.0]), np.zeros(3)
        y = np.concatenate([first, np.full(7, np.nan), second, np.full(17, np.nan)])
        sample = Sample(~np.isnan(y), strata=np.repeat([0, 1], [10, 20]))
        found = estimate_linear(PartlyKnown(y, np.zeros(30), sample), np.full(30, 1.0 / 30.0))
        square = np.sum((first - 4.0) ** 2) / 4.0  # of both strata, each about its own mean
        variance = (1 / 3) ** 2 * (1 / 3 - 1 / 10) * first.var(ddof=1)
        variance += (2 / 3) ** 2 * (1 / 3 - 1 / 20) * square
        assert found.number.standard_error == pytest.approx(np.sqrt(variance))

    def test_equal_labels_of_a_group_tell_no_difference(self):
        y = np.array([2.0] * 4 + [np.nan] * 4 + [1.0, 2.0, 4.0, 3.0] + [np.nan] * 4)
        by = np.repeat(["a", "b"], 8)
        line = estimate_difference(y, by=by, groups=("a", "b")).iloc[0]
        assert (line["kind"], line["lower"], line["upper"]) == ("none", -np.inf, np.inf)

    def test_a_difference_of_rare_shares_by_the_interval_of_each(self):
        """Newcombe 1998, method 10: distances from the exact ends are added as errors are."""
        y = np.array([1.0] * 2 + [0.0] * 18 + [np.nan] * 20 + [0.0] * 20 + [np.nan] * 30)
        by = np.repeat(["a", "b"], [40, 50])
        line = estimate_difference(y, by=by, groups=("a", "b")).iloc[0]
        first, second = (
            estimate_share(y[by == group], of=1.0, exact=True).iloc[0] for group in ("a", "b")
        )
        below = np.hypot(first["estimate"] - first["lower"], second["upper"] - second["estimate"])
        above = np.hypot(first["upper"] - first["estimate"], second["estimate"] - second["lower"])
        difference = first["estimate"] - second["estimate"]
        assert line["lower"] == pytest.approx(difference - below)
        assert line["upper"] == pytest.approx(difference + above)
        assert (line["kind"], line["n_labels"]) == ("approximate", 40)

    @pytest.mark.parametrize("ones", [(0, 1), (1, 3), (2, 4), (5, 5)])
    def test_differences_of_shares_over_all_samples(self, ones):
        """Every pair of samples of two groups of ten rows: the difference is held at its level."""
        sizes, n_labels, confidence = 10, 4, 0.8
        by = np.repeat(["a", "b"], sizes)
        held = 0.0
        for found in itertools.product(range(n_labels + 1), repeat=2):
            chance = np.prod(
                [
                    hypergeom.pmf(k, sizes, n_ones, n_labels)
                    for k, n_ones in zip(found, ones, strict=True)
                ]
            )
            if chance == 0.0:
                continue
            y = np.concatenate(
                [[1.0] * k + [0.0] * (n_labels - k) + [np.nan] * (sizes - n_labels) for k in found]
            )
            line = estimate_difference(y, by=by, groups=("a", "b"), confidence=confidence).iloc[0]
            truth = (ones[0] - ones[1]) / sizes
            if line["lower"] - 1e-9 <= truth <= line["upper"] + 1e-9:
                held += chance
        assert held >= confidence

    def test_few_labels_of_a_kind_tell_no_logistic_slope(self):
        """With two labels of the rarer kind intervals held the slope in 82 % of draws."""
        rng = np.random.default_rng(1)
        x = rng.normal(size=(80, 1))
        for n_ones, kind in ((2, "none"), (6, "approximate")):
            y = np.where(np.arange(80) < 40, 0.0, np.nan)
            y[:n_ones] = 1.0
            assert estimate_regression(y, x, logistic=True).loc["x0", "kind"] == kind

    @pytest.mark.parametrize("what", ["mean", "difference", "slope", "slope on the column"])
    def test_a_prediction_far_out_promises_nothing(self, what):
        """A wrong decimal sign; without it the same question has an interval."""
        rng = np.random.default_rng(9)
        x = rng.normal(size=300)
        y = np.where(np.arange(300) < 60, 10.0 + x + 0.3 * rng.normal(size=300), np.nan)
        by = np.where(np.arange(300) % 2, "a", "b")
        ask = {
            "mean": lambda f: estimate_mean(y, f),
            "difference": lambda f: estimate_difference(y, f, by=by, groups=("a", "b")),
            "slope": lambda f: estimate_regression(y, np.sin(np.arange(300.0))[:, None], f),
            "slope on the column": lambda f: estimate_regression(y, None, f, outcome=x),
        }[what]
        f = 10.0 + x
        assert ask(f)["kind"].iloc[-1] == "approximate"
        f[200] *= 100.0
        line = ask(f).iloc[-1]
        assert (line["kind"], line["upper"]) == ("none", np.inf)
        y[200] = 10.0 + x[200]  # known, on purpose: what was predicted there no longer counts
        known_too = Sample(np.arange(300) < 60)
        assert estimate_mean(y, f, sample=known_too)["kind"].iloc[0] == "approximate"

    def test_a_prediction_far_beyond_zeros_and_ones_promises_nothing(self):
        rng = np.random.default_rng(11)
        truth = (rng.random(400) < 0.3).astype(float)
        f = np.clip(0.2 + 0.5 * truth + 0.1 * rng.normal(size=400), 0.0, 1.0)
        y = np.where(np.arange(400) < 100, truth, np.nan)
        f[200:203] = [0.0, 0.5, 1.0]
        assert estimate_mean(y, f)["kind"].iloc[0] == "approximate"
        f[200] = 100.0
        assert estimate_mean(y, f)["kind"].iloc[0] == "none"

    def test_predictions_somewhat_beyond_the_labelled_ones_are_usual(self):
        """Log-normal ones, which are good: rows beyond those of the sample are to be expected."""
        rng = np.random.default_rng(10)
        f = np.exp(rng.normal(size=1000))
        y = np.where(np.arange(1000) < 60, f * np.exp(0.3 * rng.normal(size=1000)), np.nan)
        assert estimate_mean(y, f)["kind"].iloc[0] == "approximate"

    def test_one_row_decides_a_slope(self):
        rng = np.random.default_rng(16)
        x = rng.normal(size=200)
        x[0] = 100.0
        y = np.where(np.arange(200) < 100, np.nan, rng.normal(size=200))
        frame = estimate_regression(y, x[:, None])
        assert frame["kind"].tolist()[1] == "none"
        coefficients = np.linalg.pinv(np.column_stack([np.ones(200), x]))[1]
        column = PartlyKnown(y, np.zeros(200), Sample(~np.isnan(y)))
        assert hinge_rows(column, coefficients).tolist() == [0]

    def test_one_row_decides_a_logistic_slope(self):
        """Its interval would be wider than any number that anybody can use."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=200)
        ones = (rng.random(200) < 1.0 / (1.0 + np.exp(1.5 + 0.2 * x))).astype(float)
        y = np.where(np.arange(200) < 40, ones, np.nan)
        x[150] = 25.0
        frame = estimate_regression(y, x[:, None], logistic=True)
        assert frame.loc["x0", "kind"] == "none"
        assert hinges_of_regression(y, x[:, None], logistic=True)["x0"].tolist() == [150]
        y[150] = 1.0
        labelled = Sample(np.arange(200) < 40)
        frame = estimate_regression(y, x[:, None], logistic=True, sample=labelled)
        assert frame.loc["x0", "kind"] == "approximate"

    def test_three_labels_have_a_degree_left(self):
        """Two less one for the factor is one, and was a rounding less."""
        y = np.full(100, np.nan)
        y[[10, 50, 90]] = [1.0, 2.0, 4.0]
        assert estimate_mean(y, np.linspace(0.0, 5.0, 100))["kind"].iloc[0] == "approximate"

    @pytest.mark.parametrize("degrees", [0.01, 0.5, 0.99])
    def test_less_than_a_degree_of_freedom_promises_nothing(self, degrees):
        number = Uncertain(1.0, 0.1, degrees, 1.0, 1.0)
        assert number.interval(0.95) == (-np.inf, np.inf)

    def test_a_median_lies_between_order_statistics(self):
        """Of 6 labels all lie on one side of the median with probability 2 / 64: the classical interval."""
        y = np.append([3.0, 1.0, 4.0, 1.5, 9.0, 2.6], np.full(10_000, np.nan))
        line = estimate_quantile(y, confidence=0.95).iloc[0]
        assert (line["lower"], line["upper"], line["kind"]) == (1.0, 9.0, "exact")
        assert estimate_quantile(y, confidence=0.98).iloc[0]["lower"] == -np.inf

    def test_a_median_among_ties_is_that_value(self):
        y = np.append(np.tile([0.0, 1.0, 1.0, 1.0, 2.0], 12), np.full(100, np.nan))
        line = estimate_quantile(y).iloc[0]
        assert (line["lower"], line["upper"]) == (1.0, 1.0)

    @pytest.mark.parametrize("beyond", [-100.0, 0.0, 100.0])
    def test_predictions_beyond_all_labels_leave_a_median_its_ends(self, beyond):
        """In strata nothing can be said of the share up to a value below, or above, all labels."""
        rng = np.random.default_rng(6)
        truth = rng.exponential(size=300)
        labelled = rng.permutation(300) < 60
        sample = Sample(labelled, strata=np.arange(300) % 2)
        y = np.where(labelled, truth, np.nan)
        line = estimate_quantile(y, beyond - truth, sample=sample).iloc[0]
        assert line["kind"] == "approximate"
        assert 0.0 < line["lower"] < np.median(truth) < line["upper"] < 2.0

    def test_a_quantile_of_rows_that_are_all_known_counts_all_of_them(self):
        """Those that were labelled on purpose too."""
        drawn = np.arange(9) < 3
        line = estimate_quantile(np.arange(9.0)[::-1], sample=Sample(drawn)).iloc[0]
        assert (line["lower"], line["estimate"], line["upper"]) == (4.0, 4.0, 4.0)

    def test_a_quantile_that_may_be_any_number_is_no_promise(self):
        y = np.array([1.0, 2.0] + [np.nan] * 30)
        line = estimate_quantile(y).iloc[0]
        assert (line["kind"], line["lower"], line["upper"]) == ("none", -np.inf, np.inf)

    def test_a_group_without_labels_has_no_quantile(self):
        y = np.append(np.arange(12.0), np.full(8, np.nan))
        by = np.repeat(["a", "b"], [14, 6])
        line = estimate_quantile(y, by=by).loc["b"]
        assert line["kind"] == "none"
        assert np.isnan(line["estimate"])

    def test_rows_labelled_on_purpose_are_known_and_no_sample(self):
        truth = np.append(1000.0, np.zeros(99))
        rng = np.random.default_rng(17)
        drawn = np.append(False, rng.random(99) < 0.5)
        y = np.where(drawn | (np.arange(100) == 0), truth, np.nan)
        line = estimate_mean(y, sample=Sample(drawn)).iloc[0]
        assert line["estimate"] == pytest.approx(10.0)

    def test_classes_that_a_column_tells_apart_have_no_slope(self):
        x = np.linspace(-2.0, 2.0, 60)
        y = np.where(np.arange(60) % 3 == 0, (x > 0.0).astype(float), np.nan)
        frame = estimate_regression(y, x[:, None], logistic=True)
        assert frame["kind"].tolist() == ["none", "none"]

    def test_median_of_a_known_column(self):
        line = estimate_quantile(np.arange(11.0)).iloc[0]
        assert line["estimate"] == 5.0

    def test_exact_mean_of_bounded_numbers(self):
        rng = np.random.default_rng(18)
        truth = rng.random(300)
        y = np.where(rng.permutation(300) < 100, truth, np.nan)
        good = np.clip(truth + 0.02 * rng.normal(size=300), 0.0, 1.0)
        with_predictions = estimate_mean(y, good, exact=True, bounds=(0.0, 1.0)).iloc[0]
        assert with_predictions["kind"] == "exact"
        assert with_predictions["lower"] <= truth.mean() <= with_predictions["upper"]
        width = with_predictions["upper"] - with_predictions["lower"]
        alone = with_predictions["labels_alone_upper"] - with_predictions["labels_alone_lower"]
        assert width < 0.8 * alone
        # What it is worth goes by these widths: so many labels make 1 / l - 1 / n so much smaller.
        inverse = (width / alone) ** 2 * (1 / 100 - 1 / 300) + 1 / 300
        assert with_predictions["worth"] == pytest.approx(1.0 / inverse)


def sample_of(**design):
    """Return a sample of the first of two rows."""
    return Sample(np.array([True, False]), **design)


class TestRefusals:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: estimate_mean([np.nan, np.nan]), "no label"),
            (lambda: estimate_mean([1.0, np.inf]), "infinite"),
            (lambda: estimate_mean([1.0, 2.0j]), "complex"),
            (lambda: estimate_mean(["a", "b"]), "must hold numbers"),
            (lambda: estimate_mean([1.0, np.nan], [1.0]), "a value for each of the 2 rows"),
            (lambda: estimate_mean([1.0, np.nan], [1.0, np.nan]), "finite number at every row"),
            (lambda: estimate_mean([1.0, 2.0], confidence=1.0), "between 0 and 1"),
            (lambda: estimate_mean([1.0, np.nan], by=["a"]), "a value for each of the 2 rows"),
            (lambda: estimate_mean([1.0, np.nan], by=[None, None]), "missing at every row"),
            (lambda: estimate_mean([1.0, np.nan], by=[["a"], ["b"]]), "names of groups"),
            (lambda: estimate_mean([1.0, np.nan], by=np.ones((2, 2))), "a column"),
            (lambda: estimate_mean(np.ones(10_001), by=np.arange(10_001)), "10,001 groups"),
            (lambda: estimate_mean(np.array(["2020-01-01", "NaT"], "M8[D]")), "dates"),
            (lambda: estimate_mean(np.array([5, "NaT"], "m8[D]")), "durations"),
            (lambda: estimate_mean([1e149, -1e149, np.nan]), "too large"),
            (lambda: estimate_mean([1.0, np.nan], sample=np.ones(2)), "must be a Sample"),
            (lambda: estimate_mean([1.0, np.nan], sample=sample_of(odds=[-1.0, 1.0])), "odds of"),
            (lambda: estimate_mean([1.0, np.nan], sample=sample_of(odds=[np.nan, 1.0])), "odds"),
            (lambda: estimate_mean([1.0, np.nan], sample=sample_of(strata=[0, np.nan])), "strata"),
            (lambda: estimate_mean([1.0, np.nan], sample=sample_of(groups=[None, "a"])), "groups"),
            (lambda: estimate_mean([1.0, np.nan], sample=sample_of(sensitivity=0.5)), "from 1 on"),
            (lambda: estimate_mean([1.0, np.nan], exact=True, bounds=(0, 1, 2)), "two finite"),
            (
                lambda: estimate_mean([1, np.nan], exact=True, bounds=(0, 2), random_state="a"),
                "whole",
            ),
            (lambda: estimate_share(["a", None], of=None, above=None), "Say which rows count"),
            (lambda: estimate_share(["a", None], of=np.nan), "of is missing"),
            (lambda: estimate_share([1, 2, None], of="1"), "some are 1"),
            (lambda: estimate_difference([1.0, 2.0], by=["a", "b"], groups="ab"), "two groups"),
            (lambda: estimate_difference([1.0, 2.0], by=None, groups=("a", "b")), "each row is of"),
            (lambda: estimate_mean([1.0, np.nan], exact=True), "needs bounds"),
            (lambda: estimate_mean([1.0, np.nan], exact=True, bounds=(2, 3)), "a label is"),
            (lambda: estimate_share(["a", None]), "Say which rows count"),
            (lambda: estimate_share([None, None], of="a"), "no label"),
            (lambda: estimate_share(["a", None], [0.1, 2.0], of="a"), "from 0 to 1"),
            (lambda: estimate_share([1.0, np.nan], above=2.0, below=1.0), "less than"),
            (lambda: estimate_quantile([1.0, np.nan], q=1.5), "between 0 and 1"),
            (lambda: estimate_difference([1.0, 2.0], by=["a", "b"], groups=("a", "c")), "'c'"),
            (lambda: estimate_regression([1.0, np.nan], [[1.0], [np.nan]]), "known at every row"),
            (lambda: estimate_regression([1.0, 2.0], logistic=True), "zeros and ones"),
            (lambda: estimate_regression([1.0, 2.0], [[3.0], [3.0]]), "'x0' is constant"),
            (lambda: estimate_regression([1.0, 2, 3], [[1, 2], [2, 4], [5, 10]]), "'x1' is"),
        ],
    )
    def test_bad_input_gets_a_sentence(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


def test_numbers_near_the_limits_of_doubles():
    """Powers of standard errors are taken in units of the largest of them."""
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(size=16), np.full(8, np.nan))
    predictions = np.append(y[:16] + 0.1 * rng.normal(size=16), rng.normal(size=8))
    plain = estimate_mean(y, predictions)
    for unit in (1e-90, 1e100):
        scaled = estimate_mean(unit * y, unit * predictions)
        np.testing.assert_allclose(scaled.estimate, unit * plain.estimate)
        np.testing.assert_allclose(scaled.upper, unit * plain.upper)


class TestRowsLabelledAfterTheDraw:
    """Rows are drawn and labelled; then others are labelled because of what they are."""

    COLUMN = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 5.0, 9.0])
    N_DRAWN = 3

    def draws(self, *, largest):
        """Yield every draw, with the two largest or least other rows labelled since."""
        column = self.COLUMN
        for chosen in itertools.combinations(range(len(column)), self.N_DRAWN):
            drawn = np.isin(np.arange(len(column)), chosen)
            order = np.argsort(-column if largest else column, kind="stable")
            later = np.zeros(len(column), dtype=bool)
            later[[row for row in order if not drawn[row]][:2]] = True
            yield drawn, later, np.where(drawn | later, column, np.nan)

    @pytest.mark.parametrize("largest", [True, False])
    @pytest.mark.parametrize("question", [estimate_mean, estimate_total])
    def test_estimates_are_right_on_average_over_all_draws(self, question, largest):
        predictions = np.array([0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 8.0])
        estimates = [
            question(y, predictions, sample=Sample(drawn, later=later))["estimate"].iloc[0]
            for drawn, later, y in self.draws(largest=largest)
        ]
        truth = self.COLUMN.mean() if question is estimate_mean else self.COLUMN.sum()
        assert np.mean(estimates) == pytest.approx(truth)

    def test_a_column_that_is_known_everywhere_is_no_estimate(self):
        drawn = np.isin(np.arange(7), [0, 3, 5])
        line = estimate_mean(self.COLUMN, sample=Sample(drawn, later=~drawn)).iloc[0]
        assert line["kind"] == "exact"
        assert line["lower"] == line["upper"] == pytest.approx(self.COLUMN.mean())

    def missed(self, chosen, *, told):
        """Return the largest probability that an exact interval at 80 % misses the share.

        5 of 14 rows are drawn; then up to 6 others are labelled that have the chosen value.
        """
        worst = 0.0
        for n_ones in range(15):
            column = (np.arange(14) < n_ones).astype(float)
            draws = hypergeom(14, n_ones, 5)
            missed = 0.0
            for n_drawn_ones in range(max(0, n_ones - 9), min(5, n_ones) + 1):
                drawn = np.zeros(14, dtype=bool)
                drawn[:n_drawn_ones] = True
                drawn[n_ones : n_ones + 5 - n_drawn_ones] = True
                later = np.zeros(14, dtype=bool)
                later[np.flatnonzero(~drawn & (column == chosen))[:6]] = True
                sample = Sample(drawn, later=later if told else None)
                y = np.where(drawn | later, column, np.nan)
                line = estimate_share(y, above=0.5, sample=sample, exact=True, confidence=0.8)
                ends = line["lower"].iloc[0], line["upper"].iloc[0]
                if not ends[0] - 1e-9 <= column.mean() <= ends[1] + 1e-9:
                    missed += float(draws.pmf(n_drawn_ones))
            worst = max(worst, missed)
        return worst

    @pytest.mark.parametrize("chosen", [0.0, 1.0])
    def test_exact_shares_hold_in_as_many_draws_as_they_say(self, chosen):
        assert self.missed(chosen, told=True) <= 0.2 + 1e-12
        assert self.missed(chosen, told=False) > 0.2  # rows that are left are unlike the drawn ones


@pytest.mark.parametrize("elsewhere", [False, True])
def test_where_times_are_counted_from_moves_no_slope(elsewhere):
    """Seconds since 1970 within an hour are nearly constant in double precision."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 3600, 200).astype(float)
    x = rng.normal(size=200)
    y = 0.001 * seconds + x + 0.2 * rng.normal(size=200)
    labelled = rng.random(200) < 0.5
    sample = Sample(labelled)
    if elsewhere:
        sample = Sample(labelled, elsewhere=labelled & (np.arange(200) < 40))
    lines = [
        estimate_regression(
            np.where(labelled, y, np.nan),
            np.column_stack([seconds + since, x]),
            x,
            sample=sample,
        )
        for since in (0.0, 1.7e9)
    ]
    numbers = ["estimate", "lower", "upper"]
    near, far = (frame.loc[["x0", "x1"], numbers].to_numpy() for frame in lines)
    np.testing.assert_allclose(far, near, rtol=1e-5)
    assert near[0, 0] == pytest.approx(0.001, rel=0.05)
