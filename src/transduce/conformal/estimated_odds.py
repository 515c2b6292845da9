"""Who has a label? A cross-fitted model of it, from features alone, and the odds that a row has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from transduce.conformal.weighing import odds_without_label
from transduce.core.types import AnyArray, Array, Mask
from transduce.tables.features import table_features

N_FOLDS = 5
MOST_ROWS = 5000  # of each kind that a model is fitted to; a smaller share of one kind changes all odds alike
FEWEST = 5  # rows of either kind below which nothing can be learned
CAP = 0.95  # of the labelled rows have odds up to the cap
CHANCE_ALONE = "chance"
SURE = 1e-3  # probabilities closer than this to 0 or 1 are not believed


@dataclass(frozen=True, eq=False)
class EstimatedOdds:
    """Odds that each row has no label, up to a common factor, as a model sees them that was not fitted to the row."""

    odds: Array  # (n,) capped
    probability: Array  # (n,) that the row has a label, if half of all had one
    model: str  # the one whose probabilities were best at rows it had not seen
    n_capped: int  # rows whose odds were capped
    beyond: Mask  # (n,) rows whose odds, before the cap, exceed those of every labelled row


def estimate_odds(X: Any, labelled: Mask, seed: int) -> EstimatedOdds:
    """Return the odds that rows have no label, estimated from their features.

    Shapes: X (n, d), labelled (n,).

    Notes
    -----
    Candidates are chance (the same odds for all rows), logistic regressions on the normal scores of the features, and a
    random forest. Rows are dealt into five folds; each fold's probabilities come from models fitted to the others, so
    that a row's own mark does not tell. The candidate with the smallest log-loss over all rows is taken. Odds are cut
    off at those that 95 % of the labelled rows do not exceed: beyond, there is next to no labelled row to compare with,
    and estimates are wild. On nine tables with 100 labels under a strong shift, this cap covered 0.90 with 8 %
    unbounded intervals, no cap 0.93 with 26 %, equal weights 0.86. Rows whose odds exceed those of every labelled row
    are `beyond`: no weight makes up for labels that are not there, and nothing is ruled out at them.
    """
    n, random = len(labelled), np.random.RandomState(seed)
    features, names = table_features(X, np.arange(n))
    chance = np.full(n, 0.5)
    if min(labelled.sum(), (~labelled).sum()) < FEWEST or not names:
        return EstimatedOdds(np.ones(n), chance, CHANCE_ALONE, 0, np.zeros(n, dtype=bool))
    features = norm.ppf((rankdata(features, axis=0) - 0.5) / n)
    features /= features.std(axis=0)
    fold = _deal(labelled, random)
    found = {CHANCE_ALONE: chance}
    for name, model in _candidates(seed):
        said = _cross_fit(model, features, labelled, fold, random)
        if name not in found or _loss(said, labelled) < _loss(found[name], labelled):
            found[name] = said
    best = min(found, key=lambda name: _loss(found[name], labelled))
    if best == CHANCE_ALONE:
        return EstimatedOdds(np.ones(n), chance, CHANCE_ALONE, 0, np.zeros(n, dtype=bool))
    odds = odds_without_label(found[best])
    cap = float(np.quantile(odds[labelled], CAP))
    beyond = odds > odds[labelled].max()
    return EstimatedOdds(np.minimum(odds, cap), found[best], best, int(np.sum(odds > cap)), beyond)


def _candidates(seed: int) -> list[tuple[str, Any]]:
    """Return the models that are tried besides chance."""
    forest = RandomForestClassifier(50, min_samples_leaf=10, max_features=0.5, random_state=seed)
    logistic = [("logistic regression", LogisticRegression(C=C, max_iter=1000)) for C in (0.01, 0.1, 1.0)]
    return [*logistic, ("random forest", forest)]


def _deal(labelled: Mask, random: np.random.RandomState) -> AnyArray:
    """Return a fold for each row, labelled and unlabelled rows spread evenly."""
    fold = np.empty(len(labelled), dtype=int)
    for kind in (labelled, ~labelled):
        fold[random.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % N_FOLDS
    return fold


def _cross_fit(
    model: Any, features: Array, labelled: Mask, fold: AnyArray, random: np.random.RandomState
) -> Array:
    """Return each row's probability of a label by a model fitted to the other folds, both kinds weighing half."""
    said = np.empty(len(labelled))
    for k in range(N_FOLDS):
        kinds = [np.flatnonzero((fold != k) & kind) for kind in (labelled, ~labelled)]
        kinds = [rows if len(rows) <= MOST_ROWS else random.choice(rows, MOST_ROWS, False) for rows in kinds]
        rows = np.concatenate(kinds)
        weights = np.concatenate([np.full(len(kind), len(rows) / (2.0 * len(kind))) for kind in kinds])
        model.fit(features[rows], labelled[rows], sample_weight=weights)
        said[fold == k] = model.predict_proba(features[fold == k])[:, 1]
    return np.clip(said, SURE, 1.0 - SURE)


def _loss(probability: Array, labelled: Mask) -> float:
    """Return the log-loss, both kinds weighing half."""
    return -float(np.log(probability[labelled]).mean() + np.log(1.0 - probability[~labelled]).mean()) / 2.0
