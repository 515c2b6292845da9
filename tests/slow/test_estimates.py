"""Estimates of a whole column, statistically: every design holds its level, and filled values as data do not.

Numbers of a skewed column are drawn once; labels are drawn again and again, as each design says, and the
interval at 90 % is to hold the mean of these rows. The bound is that of the binomial distribution: fewer
hits than it allows have a probability of one in ten thousand if the level holds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from transduce import fill
from transduce.conformal import ByClass, Chance, Estimated
from transduce.population import (
    Sample,
    estimate_difference,
    estimate_mean,
    estimate_quantile,
    estimate_regression,
    estimate_share,
)

N_ROWS = 400
N_DRAWS = 600
LEVEL = 0.9
# Approximate intervals may miss their level by this much.
SLACK = 0.02

pytestmark = pytest.mark.slow


def make_column(seed=0):
    """Return a skewed column, predictions that are biased and shrunk, and a feature."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N_ROWS)
    y = np.exp(0.6 * x + 0.4 * rng.normal(size=N_ROWS))
    predictions = 1.0 + 0.6 * np.exp(0.5 * x)
    return x, y, predictions


def draw_chance(rng, x, y):
    labelled = rng.permutation(N_ROWS) < 80
    return labelled, Sample(labelled)


def draw_strata(rng, x, y):
    strata = (x > 0).astype(int)
    labelled = np.zeros(N_ROWS, dtype=bool)
    for stratum, number in ((0, 30), (1, 60)):
        rows = np.flatnonzero(strata == stratum)
        labelled[rng.choice(rows, number, replace=False)] = True
    return labelled, Sample(labelled, strata=strata)


def draw_known_probabilities(rng, x, y):
    probability = 0.1 + 0.3 / (1.0 + np.exp(-2.0 * x))
    labelled = rng.random(N_ROWS) < probability
    return labelled, Sample(labelled, odds=(1.0 - probability) / probability)


def draw_groups(rng, x, y):
    groups = np.arange(N_ROWS) // 4
    labelled = np.isin(groups, rng.choice(N_ROWS // 4, 30, replace=False))
    return labelled, Sample(labelled, groups=groups)


def draw_on_purpose_and_at_random(rng, x, y):
    """The largest values are labelled on purpose, then some of the others at random."""
    purpose = y > np.quantile(y, 0.95)
    drawn = np.zeros(N_ROWS, dtype=bool)
    drawn[rng.choice(np.flatnonzero(~purpose), 60, replace=False)] = True
    return purpose | drawn, Sample(drawn)


def draw_by_value(rng, x, y):
    """Odds of a label depend on the value by a factor of up to 1.5 either way: what a sensitivity allows."""
    factor = np.where(y > np.median(y), 1.5, 1.0 / 1.5)
    odds = 0.3 * factor
    labelled = rng.random(N_ROWS) < odds / (1.0 + odds)
    return labelled, Sample(labelled, sensitivity=1.6)


def draw_estimated(rng, x, y):
    """Rows are labelled with probabilities that nobody knows: odds come from a regression on x."""
    labelled, _ = draw_known_probabilities(rng, x, y)
    model = LogisticRegression().fit(x[:, None], labelled)
    probability = model.predict_proba(x[:, None])[:, 1]
    odds = (1.0 - probability) / probability
    return labelled, Sample(labelled, odds=odds, known_odds=False)


DESIGNS = {
    "chance": draw_chance,
    "strata": draw_strata,
    "known probabilities": draw_known_probabilities,
    "groups": draw_groups,
    "drawn": draw_on_purpose_and_at_random,
    "sensitivity": draw_by_value,
    "estimated": draw_estimated,
}


def fewest_hits(level):
    """Return the fewest hits of all draws that the level makes probable."""
    return int(binom.ppf(1e-4, N_DRAWS, level))


@pytest.mark.parametrize("name", DESIGNS)
def test_the_mean_is_held_and_the_naive_interval_is_not(name):
    x, y, predictions = make_column()
    rng = np.random.default_rng(1)
    hits = 0
    naive_hits = 0
    for _ in range(N_DRAWS):
        labelled, sample = DESIGNS[name](rng, x, y)
        column = np.where(labelled, y, np.nan)
        line = estimate_mean(column, predictions, confidence=LEVEL, sample=sample).iloc[0]
        hits += line["lower"] <= y.mean() <= line["upper"]
        completed = np.where(labelled, y, predictions)
        half = 1.645 * completed.std(ddof=1) / np.sqrt(N_ROWS)
        naive_hits += abs(completed.mean() - y.mean()) <= half
    assert hits >= fewest_hits(LEVEL - SLACK)
    assert naive_hits < fewest_hits(LEVEL - SLACK)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_slope_on_the_column_is_held_and_the_naive_interval_is_not(name):
    """Estimating equations: a known outcome on the column, filled values as if measured."""
    x, prices, _ = make_column()
    y = np.log(prices)
    predictions = 0.2 + 0.4 * x
    outcome = 2.0 * y + np.random.default_rng(5).normal(size=N_ROWS)
    truth = np.polyfit(y, outcome, 1)[0]
    rng = np.random.default_rng(6)
    hits = 0
    naive_hits = 0
    for _ in range(N_DRAWS):
        labelled, sample = DESIGNS[name](rng, x, y)
        column = np.where(labelled, y, np.nan)
        line = estimate_regression(
            column, None, predictions, outcome=outcome, confidence=LEVEL, sample=sample
        ).loc["y"]
        hits += line["lower"] <= truth <= line["upper"]
        completed = np.where(labelled, y, predictions)
        slope, covariance = np.polyfit(completed, outcome, 1, cov=True)
        naive_hits += abs(slope[0] - truth) <= 1.645 * np.sqrt(covariance[0, 0])
    assert hits >= fewest_hits(LEVEL - SLACK)
    assert naive_hits < fewest_hits(LEVEL - SLACK)


def test_ignoring_the_design_fails():
    """Labels that are more frequent among large values, taken as if chance had chosen them."""
    x, y, predictions = make_column()
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(N_DRAWS):
        labelled, _ = draw_known_probabilities(rng, x, y)
        line = estimate_mean(np.where(labelled, y, np.nan), predictions, confidence=LEVEL).iloc[0]
        hits += line["lower"] <= y.mean() <= line["upper"]
    assert hits < fewest_hits(LEVEL)


@pytest.mark.parametrize("what", ["share", "quantile", "difference", "slope"])
def test_other_questions_are_held(what):
    x, y, predictions = make_column()
    groups = np.where(np.arange(N_ROWS) % 3 == 0, "a", "b")
    in_a = groups == "a"
    slope = np.polyfit(x, y, 1)[0]
    truths = {
        "share": np.mean(y > 1.5),
        "quantile": np.sort(y)[N_ROWS // 2 - 1],
        "difference": y[in_a].mean() - y[~in_a].mean(),
        "slope": slope,
    }
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(N_DRAWS):
        labelled, _ = draw_chance(rng, x, y)
        column = np.where(labelled, y, np.nan)
        if what == "share":
            frame = estimate_share(column, predictions, above=1.5, confidence=LEVEL)
        elif what == "quantile":
            frame = estimate_quantile(column, predictions, confidence=LEVEL)
        elif what == "difference":
            pair = ("a", "b")
            frame = estimate_difference(
                column, predictions, by=groups, groups=pair, confidence=LEVEL
            )
        else:
            frame = estimate_regression(column, x[:, None], predictions, confidence=LEVEL).iloc[1:]
        line = frame.iloc[0]
        hits += line["lower"] <= truths[what] <= line["upper"]
    assert hits >= fewest_hits(LEVEL - SLACK)


def test_the_exact_mean_holds_at_every_look():
    """Bets on a column within bounds: the truth is never left out, at any number of labels."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=200)
    y = np.clip(0.5 + 0.2 * x + 0.1 * rng.normal(size=200), 0.0, 1.0)
    predictions = np.clip(0.5 + 0.2 * x, 0.0, 1.0)
    hits = 0
    n_draws = 200
    for draw in range(n_draws):
        order = rng.permutation(200)
        held = True
        for n_labels in (10, 20, 40, 80):
            labelled = np.isin(np.arange(200), order[:n_labels])
            column = np.where(labelled, y, np.nan)
            line = estimate_mean(
                column,
                predictions,
                confidence=LEVEL,
                exact=True,
                bounds=(0.0, 1.0),
                random_state=draw,
            ).iloc[0]
            held &= line["lower"] <= y.mean() <= line["upper"]
        hits += held
    assert hits >= binom.ppf(1e-4, n_draws, LEVEL)


def make_classes(rng, n_rows=400):
    """Return a table whose class depends on two columns, and the class: a fifth is "yes"."""
    x = rng.normal(size=(n_rows, 2))
    is_yes = x[:, 0] + 0.5 * x[:, 1] + 0.7 * rng.normal(size=n_rows) > 1.1
    return pd.DataFrame(x, columns=["a", "b"]), np.where(is_yes, "yes", "no").astype(object)


def test_shares_are_held_where_labels_were_chosen_by_their_class():
    """Half of the labels are "yes": shares of the filled column, and of the labels, are not the truth."""
    n_draws = 60
    hits = 0
    naive_hits = 0
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        table, truth = make_classes(rng)
        labelled = np.zeros(len(truth), dtype=bool)
        for label in ("yes", "no"):
            labelled[rng.choice(np.flatnonzero(truth == label), 30, replace=False)] = True
        table["kind"] = np.where(labelled, truth, None)
        result = fill(table, "kind", method="ridge", labels=ByClass())
        line = result.estimate("share of yes", level=LEVEL).iloc[0]
        share = np.mean(truth == "yes")
        hits += line["lower"] <= share <= line["upper"]
        naive = fill(table, "kind", method="ridge").new["kind_filled"] == "yes"
        half = 1.645 * np.sqrt(naive.mean() * (1.0 - naive.mean()) / len(naive))
        naive_hits += abs(naive.mean() - share) <= half
    assert hits >= binom.ppf(1e-4, n_draws, LEVEL - SLACK)
    assert naive_hits < binom.ppf(1e-4, n_draws, LEVEL - SLACK)


def test_means_are_held_where_other_columns_decided_who_has_a_label():
    """Odds are estimated by `fill`, since the comparison of rows finds the difference."""
    n_draws = 60
    hits = 0
    promised = 0
    naive_hits = 0
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        x = rng.normal(size=(400, 2))
        y = np.exp(0.5 * x[:, 0] + 0.3 * x[:, 1] + 0.3 * rng.normal(size=400))
        labelled = rng.random(400) < 0.1 + 0.4 / (1.0 + np.exp(-1.5 * x[:, 0]))
        table = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.where(labelled, y, np.nan))
        result = fill(table, "y", method="ridge", labels=Estimated())
        line = result.estimate("mean", level=LEVEL).iloc[0]
        promised += line["kind"] != "none"
        hits += line["lower"] <= y.mean() <= line["upper"]
        completed = y[labelled]
        half = 1.645 * completed.std(ddof=1) / np.sqrt(len(completed))
        naive_hits += abs(completed.mean() - y.mean()) <= half
    assert promised >= 0.9 * n_draws
    assert hits >= binom.ppf(1e-4, n_draws, LEVEL - SLACK)
    assert naive_hits < binom.ppf(1e-4, n_draws, LEVEL - SLACK)


def test_labels_along_an_order_are_refused_in_a_sentence():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"day": np.arange(120), "a": rng.normal(size=120)})
    table["y"] = np.where(table["day"] < 60, rng.normal(size=120), np.nan)
    result = fill(table, "y", method="ridge", labels=Chance(order="day"))
    with pytest.raises(ValueError, match="stop along an order"):
        result.estimate("mean")


def make_family(name, rng, n_rows=800):
    """Return a column and predictions for it, as other tables than those of the benchmark may be."""
    x, noise = rng.normal(size=(2, n_rows))
    is_a = rng.random(n_rows) < 0.3
    wrong = rng.random(n_rows) < 0.03
    families = {
        "normal": (x + 0.5 * noise, x),
        "log-normal": (np.exp(0.6 * x + 0.5 * noise), np.exp(0.6 * x)),
        "many zeros": (np.where(noise > 0.3, np.exp(0.5 * x), 0.0), 0.4 * np.exp(0.5 * x)),
        "heavy tails": (x + rng.standard_t(3, n_rows), x),
        "counts": (rng.poisson(np.exp(0.5 * x)).astype(float), np.exp(0.5 * x)),
        "useless predictions": (noise, x),
        "wrong by group": (x + 0.5 * noise, x + np.where(is_a, 2.0, -1.0)),
        "opposite predictions": (x + 0.5 * noise, -x),
        "without an error": (x, x),
        "wrong at three rows of a hundred": (x, np.where(wrong, noise, x)),
    }
    return families[name]


@pytest.mark.parametrize("n_labels", [30, 100, 300])
@pytest.mark.parametrize(
    "name",
    [
        *("normal", "log-normal", "many zeros", "heavy tails", "counts", "useless predictions"),
        *("wrong by group", "opposite predictions", "without an error"),
        "wrong at three rows of a hundred",
    ],
)
def test_means_of_other_columns_are_held(name, n_labels):
    rng = np.random.default_rng([7, n_labels])
    hits = 0
    n_draws = 400
    for draw in range(n_draws):
        if draw % 20 == 0:
            y, predictions = make_family(name, rng)
        labelled = rng.permutation(len(y)) < n_labels
        column = np.where(labelled, y, np.nan)
        line = estimate_mean(column, predictions, confidence=0.95).iloc[0]
        hits += line["lower"] <= y.mean() <= line["upper"]
    assert hits >= binom.ppf(1e-4, n_draws, 0.95 - SLACK)


@pytest.mark.parametrize("n_labels", [30, 100, 300])
@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.03, 0.3])
def test_shares_and_differences_by_bare_answers_are_held(wrong, n_labels):
    """Answers that are wrong at a share of the rows, of a class of 8 %, in two groups."""
    rng = np.random.default_rng([8, n_labels])
    hits = np.zeros(2)
    n_draws = 300
    for draw in range(n_draws):
        if draw % 20 == 0:
            truth = (rng.random(800) < 0.08).astype(float)
            answers = np.where(rng.random(800) < wrong, 1.0 - truth, truth)
            by = np.where(rng.random(800) < 0.3, "a", "b")
            means = [truth[by == group].mean() for group in ("a", "b")]
        labelled = rng.permutation(800) < n_labels
        column = np.where(labelled, truth, np.nan)
        share = estimate_share(column, answers, of=1.0).iloc[0]
        difference = estimate_difference(column, answers, by=by, groups=("a", "b")).iloc[0]
        hits[0] += share["lower"] - 1e-9 <= truth.mean() <= share["upper"] + 1e-9
        hits[1] += difference["lower"] <= means[0] - means[1] <= difference["upper"]
    assert (hits >= binom.ppf(1e-4, n_draws, 0.95 - SLACK)).all()
