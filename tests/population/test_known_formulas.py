"""Estimates against formulas of the textbooks, where they agree by definition, and against all small tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom
from scipy.stats import t as student_t

from transduce.population import (
    Sample,
    estimate_mean,
    estimate_regression,
    estimate_share,
    estimate_total,
)
from transduce.population.linear import estimate_linear
from transduce.population.sample import read_column
from transduce.population.urns import urn_interval


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_no_table_of_zeros_and_ones_up_to_twelve_rows_is_missed_too_often(confidence):
    """Every number of rows, labels and ones; the number of ones among the labels is hypergeometric."""
    for n_rows in range(2, 13):
        for n_labels in range(1, n_rows + 1):
            ends = [
                np.add(urn_interval(ones, n_labels, n_rows - n_labels, confidence), ones)
                for ones in range(n_labels + 1)
            ]
            for total in range(n_rows + 1):
                held = sum(
                    hypergeom.pmf(ones, n_rows, total, n_labels)
                    for ones, (low, high) in enumerate(ends)
                    if low <= total <= high
                )
                assert held >= confidence - 1e-9, (n_rows, n_labels, total)


def test_an_exact_share_is_that_interval():
    y = np.array([1.0] * 3 + [0.0] * 5 + [np.nan] * 9)
    line = estimate_share(y, of=1.0, confidence=0.8, exact=True).iloc[0]
    low, high = urn_interval(3, 8, 9, 0.8)
    assert (line["lower"], line["upper"]) == ((3 + low) / 17, (3 + high) / 17)


def test_the_mean_of_a_simple_random_sample():
    """Cochran, Sampling Techniques, 2.4: ``s sqrt(1 / n - 1 / N)``; labels whose skewness is 0."""
    labels = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    y = np.append(labels, np.full(33, np.nan))
    line = estimate_mean(y, confidence=0.9).iloc[0]
    error = labels.std(ddof=1) * np.sqrt(1 / 7 - 1 / 40)
    half = student_t.ppf(0.95, 6) * error
    assert line["estimate"] == pytest.approx(4.0)
    assert line["upper"] - line["estimate"] == pytest.approx(half)
    total = estimate_total(y, confidence=0.9).iloc[0]
    assert total["upper"] - total["estimate"] == pytest.approx(40 * half)


def test_the_mean_of_a_stratified_sample():
    """Cochran 5.3: ``sum (N_h / N)^2 (1 / n_h - 1 / N_h) s_h^2``, degrees by Satterthwaite."""
    first, second = np.array([1.0, 3.0, 5.0]), np.array([10.0, 20.0, 30.0, 40.0])
    y = np.concatenate([first, np.full(7, np.nan), second, np.full(16, np.nan)])
    strata = np.repeat([0, 1], [10, 20])
    sample = Sample(~np.isnan(y), strata=strata)
    line = estimate_mean(y, confidence=0.9, sample=sample).iloc[0]
    weights = np.array([1 / 3, 2 / 3])
    variances = weights**2 * np.array(
        [(1 / 3 - 1 / 10) * first.var(ddof=1), (1 / 4 - 1 / 20) * second.var(ddof=1)]
    )
    degrees = variances.sum() ** 2 / np.sum(variances**2 / np.array([2, 3]))
    half = student_t.ppf(0.95, degrees) * np.sqrt(variances.sum())
    assert line["estimate"] == pytest.approx(weights @ [first.mean(), second.mean()])
    assert line["upper"] - line["estimate"] == pytest.approx(half)


def sample_with(mean, variance, size):
    """Return numbers with a mean and a variance (divisor ``size - 1``), symmetric about the mean."""
    pairs = size // 2
    off = np.sqrt(variance * (size - 1) / (2 * pairs))
    signs = np.concatenate([np.ones(pairs), -np.ones(pairs), np.zeros(size % 2)])
    return mean + off * signs


def test_a_worked_example_of_a_simple_sample():
    """Lohr, Sampling, chapter 2: acres of farms in 300 of 3,078 counties of the United States.

    `svymean` of R's survey gives 297,897 and 18,898 for this sample (Lu and Lohr, R Companion).
    """
    labels = sample_with(297_897.0, 344_551.9**2, 300)
    y = np.append(labels, np.full(2778, np.nan))
    column = read_column(y, None, None)
    mean = estimate_linear(column, np.full(3078, 1.0 / 3078.0)).number
    assert mean.estimate == pytest.approx(297_897.0)
    assert mean.standard_error == pytest.approx(18_898.43, abs=0.01)


def test_a_worked_example_of_a_stratified_sample():
    """Lohr, Sampling, chapter 3: the same total from samples of four regions.

    `svytotal` of R's survey gives 909,736,035 and 50,417,248 (Lu and Lohr, R Companion).
    """
    regions = [  # counties, those in the sample, mean and variance of the acres
        (1054, 103, 300_504.16, 29_618_183_543.0),
        (220, 21, 97_629.81, 7_647_472_708.0),
        (1382, 135, 211_315.04, 53_587_487_856.0),
        (422, 41, 662_295.51, 396_185_950_266.0),
    ]
    parts = []
    for n_counties, size, mean, variance in regions:
        parts += [sample_with(mean, variance, size), np.full(n_counties - size, np.nan)]
    y = np.concatenate(parts)
    strata = np.repeat([0, 1, 2, 3], [region[0] for region in regions])
    column = read_column(y, None, Sample(~np.isnan(y), strata=strata))
    total = estimate_linear(column, np.ones(len(y))).number
    assert total.estimate == pytest.approx(909_736_035.0, abs=10.0)  # means to two decimals
    assert total.standard_error == pytest.approx(50_417_248.0, abs=1.0)


@pytest.mark.parametrize(
    ("size", "mean", "variance", "printed_mean", "printed_error"),
    [
        (200, 584.61, 154_803.997988, "584.61", "27.368"),  # enroll
        (200, 656.585, 17_682.424899, "656.58", "9.2497"),  # api00
    ],
)
def test_the_simple_sample_of_schools(size, mean, variance, printed_mean, printed_error):
    """`svymean` of R's survey for `apisrs`, 200 of 6,194 Californian schools, as its documentation prints it."""
    y = np.append(sample_with(mean, variance, size), np.full(6194 - size, np.nan))
    number = estimate_linear(read_column(y, None, None), np.full(6194, 1.0 / 6194.0)).number
    assert number.estimate == pytest.approx(float(printed_mean), abs=0.0051)
    assert f"{number.standard_error:.5g}" == printed_error
    if printed_mean == "584.61":  # svytotal: 3621074 and 169520
        total = estimate_linear(read_column(y, None, None), np.ones(6194)).number
        assert (round(total.estimate), round(total.standard_error)) == (3_621_074, 169_520)


@pytest.mark.parametrize(
    ("variable", "levels", "printed"),
    [
        (
            "enroll",
            [(416.78, 27_576.880404), (1320.70, 450_339.928571), (832.48, 156_307.275102)],
            ("595.28", "18.509"),  # svytotal: 3687178 and 114642
        ),
        (
            "api00",
            [(674.43, 15_687.419293), (625.82, 11_947.089388), (636.60, 13_824.857143)],
            ("662.29", "9.4089"),
        ),
    ],
)
def test_the_stratified_sample_of_schools(variable, levels, printed):
    """The same for `apistrat`: elementary, high and middle schools were drawn by themselves."""
    sizes = [(4421, 100), (755, 50), (1018, 50)]
    parts = []
    for (n_schools, n_drawn), (mean, variance) in zip(sizes, levels, strict=True):
        parts += [sample_with(mean, variance, n_drawn), np.full(n_schools - n_drawn, np.nan)]
    y = np.concatenate(parts)
    strata = np.repeat([0, 1, 2], [size for size, _ in sizes])
    column = read_column(y, None, Sample(~np.isnan(y), strata=strata))
    number = estimate_linear(column, np.full(len(y), 1.0 / len(y))).number
    assert (f"{number.estimate:.2f}", f"{number.standard_error:.5g}") == printed
    if variable == "enroll":
        total = estimate_linear(column, np.ones(len(y))).number
        assert round(total.estimate) == pytest.approx(3_687_178, abs=1)
        assert round(total.standard_error) == 114_642


def test_prediction_powered_inference():
    """``mean_U f + mean_L (y - f)`` for unlabelled rows, where the factor is 1: labels vary twice as much."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=60)
    truth = 2.0 * f + 0.1 * rng.normal(size=60)
    labelled = rng.permutation(60) < 25
    line = estimate_mean(np.where(labelled, truth, np.nan), f).iloc[0]
    unlabelled_mean = f[~labelled].mean() + (truth - f)[labelled].mean()
    expected = (truth[labelled].sum() + 35 * unlabelled_mean) / 60
    assert line["estimate"] == pytest.approx(expected)


def test_probabilities_of_a_label():
    """Hajek's estimator of the unlabelled rows: weights are the odds of no label."""
    rng = np.random.default_rng(1)
    probability = rng.uniform(0.3, 0.9, 50)
    labelled = rng.random(50) < probability
    truth = rng.normal(size=50)
    odds = (1 - probability) / probability
    sample = Sample(labelled, odds=odds)
    line = estimate_mean(np.where(labelled, truth, np.nan), sample=sample).iloc[0]
    unlabelled_mean = np.average(truth[labelled], weights=odds[labelled])
    expected = (truth[labelled].sum() + np.sum(~labelled) * unlabelled_mean) / 50
    assert line["estimate"] == pytest.approx(expected)


def test_a_row_drawn_without_a_label_may_be_anything():
    y = np.array([1.0] * 4 + [0.0] * 6 + [np.nan] * 20)
    lost = np.arange(30) >= 28
    sample = Sample(~np.isnan(y), lost=lost)
    share = estimate_share(y, of=1.0, sample=sample).iloc[0]
    plain = estimate_share(y, of=1.0).iloc[0]
    assert share["kind"] == "exact"
    assert share["lower"] <= plain["lower"] < plain["upper"] <= share["upper"]
    assert estimate_mean(y, sample=sample)["kind"].iloc[0] == "none"


def test_numbers_of_ppi_py():
    """ppi_py 0.2.3 with lam=1, about the rows without a label: the labelled ones are elsewhere.

    Labels vary more than predictions, so that the factor is 1 here too.
    """
    k = np.arange(40)
    x = np.round(np.linspace(-2.0, 2.0, 40), 3)
    noise = np.sin(7.0 * k)
    labelled = k % 2 == 0
    sample = Sample(labelled, elsewhere=labelled)
    numbers = np.where(labelled, 2.0 * x + noise, np.nan)
    mean = estimate_mean(numbers, np.round(x, 1), sample=sample)
    assert mean["estimate"].tolist() == pytest.approx([0.06222588066])
    probabilities = np.round(0.5 + 0.05 * (x + 3.0 * noise), 3)
    ones = (x + 3.0 * noise + 1.5 * np.cos(3.0 * k) > 0.0).astype(float)
    logistic = estimate_regression(
        np.where(labelled, ones, np.nan), x[:, None], probabilities, logistic=True, sample=sample
    )
    expected = [-0.18373138893541, 0.13857698276277]  # ppi_logistic_pointestimate
    assert logistic["estimate"].tolist() == pytest.approx(expected)


def test_the_mean_of_groups_drawn_as_wholes():
    """Lohr, Sampling, 5.3: the ratio estimator of clusters of unequal sizes, and its variance."""
    sizes = np.array([2, 3, 5, 4, 2, 6, 3, 5])
    group = np.repeat(np.arange(8), sizes)
    rng = np.random.default_rng(2)
    truth = np.repeat(rng.normal(size=8), sizes) + rng.normal(size=30)
    drawn = np.array([2, 3, 5, 6])  # larger than the others, whose errors then are no larger
    labelled = np.isin(group, drawn)
    sample = Sample(labelled, groups=group)
    column = read_column(np.where(labelled, truth, np.nan), None, sample)
    mean = estimate_linear(column, np.full(30, 1.0 / 30.0)).number
    totals = np.bincount(group, truth)[drawn]
    ratio = totals.sum() / sizes[drawn].sum()
    assert mean.estimate == pytest.approx(ratio)
    residuals = totals - ratio * sizes[drawn]
    n, n_all = 4, 8
    variance = (1 - n / n_all) * residuals @ residuals / (n - 1) / n / np.mean(sizes[drawn]) ** 2
    # The textbook scales by the share of the groups that were not drawn, we by that of their rows.
    share_of_rows = np.mean(~labelled) / (1 - n / n_all)
    assert mean.standard_error == pytest.approx(np.sqrt(variance) * share_of_rows)
    squares = sizes.astype(float) ** 2
    assert mean.degrees == pytest.approx((n - 1) * squares.mean() ** 2 / np.mean(squares**2))
