"""The shares of the classes among unlabelled rows, where labels were chosen by their class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from transduce.conformal.share_likelihood import Hidden, fit_shares, share_intervals
from transduce.core import checks
from transduce.core.scaling import fit_power, to_power
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted, quoted
from transduce.model_selection.cross_validation import predict_folds
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import FittedEstimator, RawPrediction
from transduce.model_selection.folds import read_folds
from transduce.model_selection.problem import Problem

PULL = 2.0  # labels, which the labels' shares weigh; measured by benchmarks/by_class.py
MOST_SAID = 5  # classes
# Labels held out: where a class has fewer, labels are hidden in turn to see how sure shares are.
FEWEST_OF_CLASS = 5


@dataclass(frozen=True, eq=False)
class ClassShares:
    """The shares of the classes among the unlabelled rows.

    Probabilities are made to fit them.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The classes, or their numbers.
    labels, shares : array of shape (n_classes,)
        Their shares among the labels that probabilities were learned from, and among the unlabelled
        rows.
    lower, upper : array of shape (n_classes,)
        Ends of an interval for each share, at `confidence`; the share itself if shares were given.
    confidence, given : float, bool
        Level of the intervals, and whether the shares were given.
    power : float
        What makes the probabilities that were learned calibrated ones: each to this power, scaled
        to sum 1.
    unit : float
        By what scores are divided where an estimator has no probabilities, so that each row is
        answered by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.conformal import ClassShares
    >>> classes = np.array(["no", "yes"])
    >>> shares = ClassShares(classes, np.array([0.5, 0.5]), np.array([0.9, 0.1]), given=True)
    >>> shares.reweigh(np.array([[0.5, 0.5], [0.1, 0.9]])).round(2)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    classes: AnyArray
    labels: Array
    shares: Array
    lower: Array | None = None
    upper: Array | None = None
    confidence: float = 0.9
    given: bool = False
    power: float = 1.0
    unit: float | None = None

    def reweigh(self, probabilities: Array) -> Array:
        """Return probabilities (m, n_classes) at these shares: ``P(c | x) shares / labels``."""
        probabilities = checks.as_floats("probabilities", probabilities)
        if not np.isfinite(probabilities).all():
            raise ValueError("probabilities must be finite: leave out rows that have none.")
        known = self.labels > 0.0
        ratio = np.divide(self.shares, self.labels, out=np.zeros(len(known)), where=known)
        weighted = to_power(probabilities, self.power) * ratio
        total = weighted.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), self.shares)

    def applied(self, reply: RawPrediction) -> RawPrediction:
        """Return answers as they are at these shares."""
        unit = self.unit or score_unit(reply, len(self.classes))
        probabilities = self.reweigh(class_probabilities(reply, self.labels, unit))
        ranked = np.sort(probabilities, axis=1)
        is_tied = ranked[:, -1] - ranked[:, -2] <= 1e-9
        status = np.where(is_tied, "tied", "answered")
        return replace(
            reply,
            values=probabilities.argmax(axis=1),
            status=np.where(reply.given, status, reply.status),
            probabilities=probabilities,
            scores=None,
        )

    def at(self, classes: AnyArray) -> ClassShares:
        """Return the same of fewer or more classes.

        One that no label in the fit has is never answered.
        """
        at = class_codes(classes, self.classes)
        parts: dict[str, Any] = {}
        for name in ("labels", "shares", "lower", "upper"):
            numbers = getattr(self, name)
            parts[name] = None if numbers is None else np.where(at >= 0, numbers[at], 0.0)
        return replace(self, classes=classes, **parts)

    def weights(self, labels: AnyArray) -> Array:
        """Return how many unlabelled rows each label stands for, up to a factor."""
        of_labels = self.at(np.asarray(labels))
        is_known = of_labels.labels > 0.0
        zeros = np.zeros(len(labels))
        return np.divide(of_labels.shares, of_labels.labels, out=zeros, where=is_known)

    def __str__(self) -> str:
        """Return the shares in a sentence, the most frequent classes first."""
        order = np.argsort(-self.shares, kind="stable")
        named = []
        for k in order[:MOST_SAID].tolist():
            ends = ""
            if self.lower is not None and self.upper is not None:
                ends = f" ({100 * self.lower[k]:.0f} to {100 * self.upper[k]:.0f} %)"
            share = f"{100 * self.shares[k]:.3g} %"
            named.append(f"{share} {quoted(str(self.classes[k]))}{ends}")
        listed = ", ".join(named)
        n_more = len(order) - MOST_SAID
        if n_more > 0:
            listed += f", and {counted(n_more, 'more class', 'more classes')}"
        if self.given:
            return f"Predictions are adjusted to the given shares of the classes: {listed}."
        return (
            "Shares of the classes among the unlabelled rows, estimated (intervals at about "
            f"{100 * self.confidence:.0f} %): {listed}."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each class: shares of labels and unlabelled rows, interval."""
        columns = {
            "labels": self.labels,
            "share": self.shares,
            "lower": self.shares if self.lower is None else self.lower,
            "upper": self.shares if self.upper is None else self.upper,
        }
        return pd.DataFrame(columns, index=pd.Index(self.classes, name="class"))


# ---------------------------------------------------------------------------------------- estimates


def shares_of_classes(
    problem: Problem,
    held_out: Mask,
    first: RawPrediction,
    second: RawPrediction | None,
    given: Array | None,
    random: Any,
) -> ClassShares:
    """Return the shares of the classes among the unlabelled rows, given or estimated.

    The `first` fit predicts at held-out labels, then at the unlabelled rows; the `second`, if there
    is one, saw all labels and predicts at the unlabelled rows.
    """
    assert problem.classes is not None
    n_classes = len(problem.classes)
    n_held = int(held_out.sum())
    at_unlabelled = first.at(np.arange(n_held, len(first.values)))
    fitted_codes = problem.codes[~held_out]
    best = at_unlabelled
    unit = score_unit(first, n_classes)
    if second is not None:
        fitted_codes = problem.codes
        best = second
        unit = score_unit(second, n_classes)
    counts = np.bincount(fitted_codes, minlength=n_classes)
    p = counts / counts.sum()
    hidden = _at_held_out(problem, held_out, first, class_probabilities(first, p, unit))
    if given is not None:
        power = fit_power(*hidden)
        return ClassShares(problem.classes, p, given, given=True, power=power, unit=unit)
    probabilities = class_probabilities(best, p, unit)[best.given]
    shares = estimate_shares(probabilities, counts, hidden=hidden)
    shares = replace(shares, classes=problem.classes, unit=unit)
    _, hidden_codes = hidden
    n_rarest = np.bincount(hidden_codes, minlength=n_classes).min()
    if n_rarest < FEWEST_OF_CLASS and best.fitted is not None:
        hidden = _hidden_in_turn(problem, best.fitted, p, unit)
        at_unlabelled = best
    compared = class_probabilities(at_unlabelled, p, unit)[at_unlabelled.given]
    return _with_intervals(shares, compared, hidden, random)


def _with_intervals(
    shares: ClassShares, compared: Array, hidden: Hidden, random: Any
) -> ClassShares:
    """Return estimated shares with intervals that hold them, from 0 to 1 if nothing is known."""
    ends = np.tile([[0.0], [1.0]], len(shares.shares))
    if len(compared) and len(hidden[1]):
        ends = share_intervals(compared, hidden, shares.confidence, random)
    lower = np.minimum(ends[0], shares.shares)
    upper = np.maximum(ends[1], shares.shares)
    return replace(shares, lower=lower, upper=upper)


def _at_held_out(
    problem: Problem, held_out: Mask, reply: RawPrediction, probabilities: Array
) -> Hidden:
    """Return the probabilities at held-out labels, which come first, and their classes."""
    n_held = int(held_out.sum())
    is_given = reply.given[:n_held]
    by_content = np.argsort(problem.places[problem.rows[held_out]][is_given])
    at_labels = probabilities[:n_held][is_given]
    codes = problem.codes[held_out][is_given]
    return at_labels[by_content], codes[by_content]


def _hidden_in_turn(problem: Problem, fitted: FittedEstimator, p: Array, unit: float) -> Hidden:
    """Return probabilities at labels while these were hidden, and their classes."""
    out_of_fold = getattr(last_step(fitted.estimator), "out_of_fold_", None)
    if out_of_fold is not None:  # a blend has done so
        return _hidden_in_blend(problem, fitted, out_of_fold["blend"].dropna())
    folds = read_folds(5, problem, random_state=0, quiet=True)
    replies = predict_folds([fitted.estimator], problem, folds)[0]
    probabilities = [np.empty((0, len(p)))]
    labels = [np.empty(0, dtype=int)]
    for (_, hidden), reply in zip(folds, replies, strict=True):
        if isinstance(reply, RawPrediction):
            probabilities.append(class_probabilities(reply, p, unit)[reply.given])
            labels.append(hidden[reply.given])
    hidden = np.concatenate(labels)
    by_content = np.argsort(problem.places[problem.rows[hidden]])
    return np.vstack(probabilities)[by_content], problem.codes[hidden[by_content]]


def _hidden_in_blend(problem: Problem, fitted: FittedEstimator, blend: pd.DataFrame) -> Hidden:
    """Return the probabilities of a blend out of fold, and the classes of their rows."""
    columns = fitted.codes(blend.columns.to_numpy())
    probabilities = fitted.at_all_classes(blend.to_numpy(), columns, absent=0.0)
    rows = fitted.order[blend.index]
    codes = problem.codes[np.searchsorted(problem.rows, rows)]
    by_content = np.argsort(problem.places[rows])
    return np.asarray(probabilities)[by_content], codes[by_content]


def estimate_shares(
    probabilities: Array, label_counts: Any, *, hidden: Hidden | None = None
) -> ClassShares:
    """Estimate the shares of the classes among unlabelled rows by maximum likelihood."""
    # The likelihood of shares q is prod_j sum_c P(c | x_j) q_c / p_c, P learned from labels with
    # the shares p (Saerens et al. 2002) and calibrated (Alexandari et al. 2020) at labels while
    # they were hidden. Probabilities learned from l labels tell no more of q than l rows would, so
    # m rows count as m l / (m + l).
    counts = np.asarray(label_counts, dtype=float)
    p = counts / counts.sum()
    m = len(probabilities)
    power = 1.0
    if hidden is not None:
        power = fit_power(*hidden)
    prior = PULL * p * (1.0 + m / counts.sum())
    shares = fit_shares(to_power(probabilities, power), p, prior)
    return ClassShares(np.arange(len(p)), p, shares, power=power)


def class_probabilities(reply: RawPrediction, p: Array, unit: float) -> Array:
    """Return probabilities where labels have the shares p, made of scores if need be."""
    if reply.probabilities is not None:
        return reply.probabilities
    # Scores and answers alone are taken for odds at equal shares: they say nothing of how frequent
    # a class is.
    weighted = softmax(reply.class_scores(len(p)) / unit, axis=1) * p
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def score_unit(reply: RawPrediction, n_classes: int) -> float:
    """Return by how much the best score of a row exceeds their mean; 1 if it never does."""
    scores = reply.class_scores(n_classes)
    if not len(scores):
        return 1.0
    leads = scores.max(axis=1) - scores.mean(axis=1)
    return float(np.mean(leads)) or 1.0
