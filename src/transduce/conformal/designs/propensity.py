"""A cross-fitted model of the odds that a row has no label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from transduce.conformal.designs.weights import EQUAL, ESTIMATED, Weights, odds_without_label
from transduce.conformal.exchangeability import table_features
from transduce.core.row_order import content_order, number_rows, places_in
from transduce.core.types import AnyArray, Array, Mask, Random, Rows
from transduce.model_selection.problem import Problem

N_FOLDS = 5
N_TREES = 50
# A model is fitted to so many rows of each kind; a smaller share of one changes all odds alike.
MOST_ROWS = 5000
MOST_TRIED = 100  # features at a split: of thousands half would take minutes
FEWEST = 5  # rows of either kind below which nothing can be learned
# Of the labelled rows have odds up to the cap: beyond, there is next to no labelled row to compare
# with, and estimates are wild. On nine tables with 100 labels under a strong shift this cap covered
# 0.90 with 8 % unbounded intervals, no cap 0.93 with 26 %, equal weights 0.86.
CAP = 0.95
CHANCE_ALONE = "chance"
SURE = 1e-3  # probabilities closer than this to 0 or 1 are not believed


@dataclass(frozen=True, eq=False)
class EstimatedOdds:
    """Odds that each row has no label, by a model that was not fitted to the row."""

    odds: Array  # (n,) capped
    model: str  # the one whose probabilities were best at rows it had not seen
    beyond: Mask  # (n,) rows whose odds, before the cap, exceed those of every labelled row


def estimate_odds(X: Rows, labelled: Mask, seed: int) -> EstimatedOdds:
    """Return the odds that rows have no label, estimated from their features X (n, d)."""
    n = len(labelled)
    order = content_order(number_rows(X), labelled)
    features, names = table_features(X, order)
    if min(labelled.sum(), (~labelled).sum()) < FEWEST or not names:
        return EstimatedOdds(np.ones(n), CHANCE_ALONE, np.zeros(n, dtype=bool))
    estimated = _estimate(features, labelled[order], seed)
    places = places_in(order)
    return EstimatedOdds(estimated.odds[places], estimated.model, estimated.beyond[places])


def _estimate(features: Array, labelled: Mask, seed: int) -> EstimatedOdds:
    """Return the odds of rows in an order that contents decide; shapes (n, d), (n,)."""
    n = len(labelled)
    random = np.random.RandomState(seed)
    features = norm.ppf((rankdata(features, axis=0) - 0.5) / n)
    features /= features.std(axis=0)
    fold = _deal(labelled, random)  # a row's own mark does not tell: others' models judge it
    tried = [(CHANCE_ALONE, np.full(n, 0.5))]  # half of all rows, where both kinds weigh the same
    for name, model in _candidates(seed, features.shape[1]):
        tried.append((name, _cross_fit(model, features, labelled, fold, random)))
    best, probability = min(tried, key=lambda estimate: _loss(estimate[1], labelled))
    odds = odds_without_label(probability)
    cap = float(np.quantile(odds[labelled], CAP))
    beyond = odds > odds[labelled].max()  # no weight makes up for labels that are not there
    return EstimatedOdds(np.minimum(odds, cap), best, beyond)


def weigh_by_estimate(problem: Problem, calibration: AnyArray, seed: int) -> Weights:
    """Return weights by the odds that rows have no label, estimated from their features."""
    unlabelled = problem.sample.unlabelled
    estimated = estimate_odds(problem.X, problem.sample.labelled, seed)
    kind = EQUAL if estimated.model == CHANCE_ALONE else ESTIMATED
    weights = Weights.of(estimated.odds, calibration, unlabelled, kind)
    # Rows beyond all labelled ones outweigh all labels, so that nothing is ruled out there.
    heavy = 1e12 * (1.0 + float(weights.calibration.sum()))
    beyond = np.where(estimated.beyond[unlabelled], heavy, weights.unlabelled)
    return replace(weights, unlabelled=beyond).resting_on(estimated=estimated)


def _candidates(seed: int, n_features: int) -> list[tuple[str, Any]]:
    """Return the models that are tried besides chance."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    tried = min(0.5, MOST_TRIED / n_features)
    forest = RandomForestClassifier(
        N_TREES, min_samples_leaf=10, max_features=tried, random_state=seed
    )
    logistic = [
        ("logistic regression", LogisticRegression(C=C, max_iter=1000)) for C in (0.01, 0.1, 1.0)
    ]
    return [*logistic, ("random forest", forest)]


def _deal(labelled: Mask, random: Random) -> AnyArray:
    """Return a fold for each row, labelled and unlabelled rows spread evenly."""
    fold = np.empty(len(labelled), dtype=int)
    for kind in (labelled, ~labelled):
        fold[random.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % N_FOLDS
    return fold


def _cross_fit(
    model: Any, features: Array, labelled: Mask, fold: AnyArray, random: Random
) -> Array:
    """Return each row's probability of a label by a model of the other folds.

    Both kinds of rows weigh the same.
    """
    odds = np.empty(len(labelled))
    for k in range(N_FOLDS):
        kinds = [
            _at_most(np.flatnonzero((fold != k) & kind), random) for kind in (labelled, ~labelled)
        ]
        sizes = np.array([len(kind) for kind in kinds])
        rows = np.concatenate(kinds)
        weights = np.repeat(len(rows) / (2.0 * sizes), sizes)
        model.fit(features[rows], labelled[rows], sample_weight=weights)
        odds[fold == k] = model.predict_proba(features[fold == k])[:, 1]
    return np.clip(odds, SURE, 1.0 - SURE)


def _at_most(rows: AnyArray, random: Random) -> AnyArray:
    """Return the rows, or some of them, drawn at random, if they are many."""
    if len(rows) <= MOST_ROWS:
        return rows
    return random.choice(rows, MOST_ROWS, replace=False)


def _loss(probability: Array, labelled: Mask) -> float:
    """Return the log-loss, in which both kinds weigh the same."""
    of_labelled = np.log(probability[labelled]).mean()
    of_unlabelled = np.log(1.0 - probability[~labelled]).mean()
    return -float(of_labelled + of_unlabelled) / 2.0
