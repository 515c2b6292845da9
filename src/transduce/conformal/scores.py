"""Nonconformity scores: how badly a label fits a row, and how rows rank by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.fit_and_predict import RawPrediction

SLACK = (
    1e-12  # 1 - 0.9 is a hair below 0.1 in floating point: without this, p = 0.1 would exceed it
)
EVERYONE = slice(None)  # all calibration rows

# --------------------------------------------------------------------------------------- scores


@dataclass(frozen=True, eq=False)
class Scoring:
    """How rows are scored, one by one."""

    nonconformity: str  # the score
    spread: float  # stands in for a standard error that is not a positive number
    unit: float  # scores (of numbers: distances) that differ by less are equal
    seen: tuple[bool, ...]  # which classes have a visible label; empty for numbers

    @classmethod
    def of(
        cls, reply: RawPrediction, shown: AnyArray, n_classes: int, nonconformity: str = "auto"
    ) -> Scoring:
        """Return the scoring that suits predictions and visible labels (or their numbers)."""
        if not len(reply.values):
            return cls(nonconformity, 1.0, 0.0, (True,) * n_classes)
        name = _choose_score(nonconformity, reply, n_classes)
        if n_classes:
            any_class = cls(name, 1.0, 0.0, (True,) * n_classes)
            unit = resolution(any_class._unrounded(reply))
            seen = np.bincount(shown, minlength=n_classes) > 0
            return cls(name, 1.0, unit, tuple(seen))
        spread = 1.0
        usable = _usable(reply)
        if reply.spreads is not None and usable.any():
            spread = 1e-6 * float(np.median(reply.spreads[usable]))
        unit = resolution(reply.values, np.asarray(shown, dtype=float))
        return cls(name, spread, unit, ())

    def measure(self, reply: RawPrediction) -> Array:
        """Return what distances are divided by (m,), or scores of classes (m, n_classes)."""
        if not len(reply.values):
            return np.ones((0, len(self.seen)) if self.seen else 0)
        if not self.seen:
            return self._unrounded(reply)
        scores = rounded(self._unrounded(reply), self.unit)
        scores[:, ~np.array(self.seen)] = np.inf
        return scores

    def _unrounded(self, reply: RawPrediction) -> Array:
        """Return the same as it comes, not rounded, whether or not classes have a visible label."""
        if self.nonconformity == "probability":
            assert reply.probabilities is not None
            return np.asarray(1.0 - reply.probabilities)
        if self.nonconformity == "margin":
            scores = reply.scores
            if scores is None:
                scores = reply.probabilities
            assert scores is not None
            return margins(scores)
        if self.nonconformity == "zero_one":
            return (reply.values[:, None] != np.arange(len(self.seen))).astype(float)
        if self.nonconformity == "scaled":
            assert reply.spreads is not None
            return np.where(_usable(reply), reply.spreads, self.spread)
        return np.ones(len(reply.values))

    def at_labels(self, reply: RawPrediction, labels: AnyArray) -> Array:
        """Return the score of every row at its label (m,); NaN where there is no prediction."""
        measure = self.measure(reply)
        if self.seen:
            scores = measure[np.arange(len(labels)), labels]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = rounded(np.abs(labels - reply.values), self.unit) / measure
        return np.where(reply.given, scores, np.nan)


def _usable(reply: RawPrediction) -> Mask:
    """Return which rows have a positive number as standard error."""
    if reply.spreads is None:
        return np.zeros(len(reply.values), dtype=bool)
    return np.isfinite(reply.spreads) & (reply.spreads > 0.0)


# What an estimator must provide for each score; in the order in which "auto" tries them.
NUMBER_SCORES = {"scaled": "standard errors", "absolute": ""}
CLASS_SCORES = {"probability": "probabilities", "margin": "probabilities or scores", "zero_one": ""}
Score = Literal["auto", "scaled", "absolute", "probability", "margin", "zero_one"]
SCORES = get_args(Score)


def _choose_score(nonconformity: str, reply: RawPrediction, n_classes: int) -> str:
    """Return the score to use, or raise a ValueError that names those the estimator supports."""
    if n_classes:
        suited = CLASS_SCORES
        has_probabilities = reply.probabilities is not None
        has_scores = reply.scores is not None
        possible = {
            "probability": has_probabilities,
            "margin": has_probabilities or has_scores,
            "zero_one": True,
        }
    else:
        suited = NUMBER_SCORES
        possible = {"scaled": bool(_usable(reply).any()), "absolute": True}
    if nonconformity == "auto":  # takes standard errors where every answer has one
        if possible.get("scaled") and not np.all(_usable(reply) | ~reply.given):
            return "absolute"
        return next(name for name in suited if possible[name])
    names = ", ".join(map(repr, sorted(suited)))
    if nonconformity not in suited:
        task = "classes" if n_classes else "numbers"
        other_task = "numbers" if n_classes else "classes"
        raise ValueError(
            f"nonconformity={nonconformity!r} is for {other_task}: use one of {names} for {task}."
        )
    if not possible[nonconformity]:
        available = ", ".join(repr(name) for name in suited if possible[name])
        raise ValueError(
            f"nonconformity={nonconformity!r} needs {suited[nonconformity]}, which the estimator "
            f"does not have here: use {available}."
        )
    return nonconformity


def margins(scores: Array) -> Array:
    """Return by how much each class falls short of the best other one (n, n_classes).

    It is negative where the class wins.
    """
    if scores.shape[1] < 2:
        return -scores
    ranked = np.sort(scores, axis=1)
    best = ranked[:, -1:]
    second = ranked[:, -2:-1]
    return np.where(scores == best, second, best) - scores


def resolution(*numbers: Array) -> float:
    """Return a unit below which differences between numbers of this size are rounding.

    It is 64 units in the last place.
    """
    size = 0.0
    for part in numbers:
        finite = part[np.isfinite(part)]
        size = max(size, float(np.max(np.abs(finite), initial=0.0)))
    if size <= 1e-280:
        return 0.0
    return float(2.0 ** (np.ceil(np.log2(size)) - 46))


def rounded(numbers: Array, unit: float) -> Array:
    """Return numbers as multiples of a unit, so that those which differ by rounding are equal."""
    if unit == 0.0:
        return numbers
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = np.round(numbers / unit) * unit
    return np.where(np.isfinite(multiples), multiples, numbers)


# ---------------------------------------------------------------------------------------- ranks


@dataclass(frozen=True, eq=False)
class WeightedRanks:
    """Scores of the calibration rows, their weights, and what decides between equal ones."""

    # With G the factor, the p-value of a score S at row j is the largest that any odds between w /
    # G and w G give: u / (u + l), u the sum of w_i G over calibration scores that are at least S,
    # plus w_j G, and l that of w_i / G over the others. With equal weights and G = 1 it is (1 +
    # count) / (c + 1). A row that was drawn and has no label has an unknown score: plus infinity
    # makes every p-value the largest possible, whatever its class.

    scores: Array  # (c,) score of each calibration row at its label
    calibration_ties: Array  # (c,) which of two equal scores counts as the larger one
    unlabelled_ties: Array  # (m,) which of two equal scores counts as the larger one
    weights: Array  # (c,) of the calibration rows
    unlabelled_weights: Array  # (m,)
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    n_empty: int = 0  # calibration rows that have no label: each counts as larger than any score

    def _sums(self, among: Mask | slice = EVERYONE) -> tuple[Array, Array, Array]:
        """Return sums over the smallest k scores and all others (c + 1,), and rows' own parts."""
        ordered = self.weights[among][self._order(among)]
        below = np.append(0.0, np.cumsum(ordered / self.factor))
        from_above = np.cumsum((ordered * self.factor)[::-1])
        above = np.append(from_above[::-1], 0.0)
        return below, above + self.n_empty * self.factor, self.unlabelled_weights * self.factor

    def _order(self, among: Mask | slice = EVERYONE) -> AnyArray:
        return np.lexsort([self.calibration_ties[among], self.scores[among]])

    def thresholds(self, confidence: float) -> tuple[Array, Mask]:
        """Return each row's largest score that is inside, and whether an equal one is."""
        order = self._order()
        below, above, own_weights = self._sums()
        share = 1.0 - confidence + SLACK
        # With k smaller calibration scores the p-value is u / (u + l) > share if the row itself
        # adds more than this.
        least = share / (1.0 - share) * below - above
        # So many of the calibration scores may be smaller.
        most = np.maximum(np.searchsorted(least, own_weights) - 1, 0)
        limits = np.append(self.scores[order], np.inf)[most]
        ties = np.append(self.calibration_ties[order], np.inf)[most]
        return limits, self.unlabelled_ties <= ties

    def p_values(self, scores: Array, among: Mask | slice = EVERYONE) -> Array:
        """Return the p-value of a score at each unlabelled row, among some calibration rows."""
        order = self._order(among)
        below, above, own_weights = self._sums(among)
        known = self.scores[among][order]
        if self.unlabelled_ties.any():  # otherwise equal scores count as at least as large
            # Complex numbers are in the order of their first parts, and among equal ones of their
            # second.
            known = known + 1j * self.calibration_ties[among][order]
            scores = scores + 1j * self.unlabelled_ties
        k = np.searchsorted(known, scores)  # of the calibration scores are smaller
        u = above[k] + own_weights
        return np.asarray(u / (below[k] + u))

    def unbounded(self, confidence: float) -> Mask:
        """Return at which rows every score is inside: too few labels for their weight."""
        below, above, own_weights = self._sums()
        u = above[-1] + own_weights
        return np.asarray(u > (1.0 - confidence + SLACK) * (below[-1] + u))


def intervals(
    ranks: WeightedRanks, values: Array, scales: Array, confidence: float, unit: float
) -> Array:
    """Return the ends (m, 2) of ``value ± threshold * scale``.

    They are infinite where calibration labels are too few.
    """
    limits, closed = ranks.thresholds(confidence)
    return interval_ends(limits, closed, values, scales, unit)


def interval_ends(
    limits: Array,
    closed: Mask,
    values: Array,
    scales: Array,
    unit: float,
) -> Array:
    """Return ``value ± limit * scale``, (m, 2), a little wider where an equal score is inside."""
    with np.errstate(over="ignore", invalid="ignore"):
        half = limits * scales
        if unit > 0.0:
            # Whole at the row that sets the limit; 1/8 of a unit forgives the product's rounding.
            steps = half / unit
            if_closed = np.floor(steps + 0.125) + 0.5
            if_open = np.ceil(steps - 0.125) - 0.5
            rounded = np.maximum(np.where(closed, if_closed, if_open), 0.0) * unit
            is_small = np.isfinite(steps) & (steps < 2.0**50)
            half = np.where(is_small, rounded, half)
        return np.column_stack([values - half, values + half])


def class_p_values(
    ranks: WeightedRanks, scores: Array, codes: AnyArray | None, shares: Array | None
) -> Array:
    """Return p-values of classes (m, n_classes), by codes (c,) each among its own rows."""
    # With shares q it is sum_k q_k (1 + #{i of class k : S_i >= S}) / (c_k + 1). Take one row at
    # random of each class besides its c_k labels: the unlabelled row is one of the c_k + 1 with
    # probability q_k / (c_k + 1) each, whichever k, so the weights of all that score at least as
    # high sum to a p-value, exact for fixed numbers of labels by class.
    p_values = np.ones(scores.shape)
    for code in range(scores.shape[1]):
        column = scores[:, code]
        if codes is None:
            p_values[:, code] = ranks.p_values(column)
        elif shares is None:
            p_values[:, code] = ranks.p_values(column, codes == code)
        else:
            parts = [share * ranks.p_values(column, codes == k) for k, share in enumerate(shares)]
            p_values[:, code] = np.sum(parts, axis=0)
    return p_values


def label_sets(p_values: Array, confidence: float) -> Mask:
    """Return which classes have a p-value above ``1 - confidence``."""
    return np.asarray(p_values > 1.0 - confidence + SLACK)
