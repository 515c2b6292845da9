"""Answers of any member on one scale: numbers, or the share of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.folds import Fold
from transduce.model_selection.hidden_labels import Problem, Reply

FEWEST_FOR_POWER = 20  # with fewer labels benchmarks/blend_calibration.py finds the shares better as they are
POWER_PRIOR = 4.0


@dataclass(frozen=True)
class Calibration:
    """How a member's scores become shares: softmax of the scores times a factor."""

    factor: float = 1.0  # not used for a member that gives probabilities; these are its shares

    @classmethod
    def fit(cls, replies: list[Reply], codes: list[AnyArray], n_classes: int) -> Calibration:
        """Choose the factor that minimises the log-loss of the out-of-fold shares."""
        pairs = [
            (class_scores(reply, n_classes)[reply.given], code[reply.given])
            for reply, code in zip(replies, codes, strict=True)
            if reply.probabilities is None
        ]
        scores = np.concatenate([part for part, _ in pairs]) if pairs else np.empty((0, n_classes))
        if len(scores) == 0:
            return cls()
        size = cls.of_size(scores).factor
        return cls(size * fit_temperature(size * scores, np.concatenate([code for _, code in pairs])))

    @classmethod
    def of_size(cls, scores: Array) -> Calibration:
        """Scale scores so that the best lies 1 above the mean of its row, on average; without labels."""
        size = float(np.mean(scores.max(axis=1) - scores.mean(axis=1))) if len(scores) else 0.0
        return cls(1.0 / size if 0.0 < size < np.inf else 1.0)

    def shares(self, reply: Reply, n_classes: int) -> Array:
        """Return the share of each class, shape (m, n_classes)."""
        if reply.probabilities is not None:
            return reply.probabilities
        return np.asarray(softmax(self.factor * class_scores(reply, n_classes), axis=1))


def fit_power(shares: Array, codes: AnyArray) -> float:
    """Return the power of the blend's shares that fits known classes best; 1 with fewer than 20 labels.

    Shapes: shares (l, n_classes), codes (l,).

    Notes
    -----
    A mean of probabilities is more cautious than its members where they agree for different reasons, so that the power
    is often above 1. A share below half a label counts as half a label.
    """
    n, n_classes = shares.shape
    if n < FEWEST_FOR_POWER:
        return 1.0
    logs = np.log(np.maximum(shares, 0.5 / n))
    target = np.eye(n_classes)[codes]

    def loss(log_power: float) -> float:
        fit = -float(np.sum(target * log_softmax(np.exp(log_power) * logs, axis=1)))
        return fit + POWER_PRIOR * log_power**2

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))


def to_power(shares: Array, power: float) -> Array:
    """Return shares to a power, scaled to sum 1 in each row."""
    if power == 1.0:
        return shares
    raised = (shares / shares.max(axis=1, keepdims=True)) ** power
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def class_scores(reply: Reply, n_classes: int) -> Array:
    """Return scores of the classes, shape (m, n_classes); 1 for the answer and 0 for others if that is all there is."""
    if reply.scores is not None:
        return reply.scores
    return np.eye(n_classes)[np.maximum(reply.values, 0)]


def stack(replies: list[Reply], calibrations: list[Calibration], classes: Any) -> tuple[Array, Mask]:
    """Return answers of k members at the same m rows, shape (k, m) or (k, m, n_classes), and where they were given."""
    given = np.stack([reply.given for reply in replies])
    if classes is None:
        return np.stack([reply.values for reply in replies]), given
    shares = [
        calibration.shares(reply, len(classes))
        for reply, calibration in zip(replies, calibrations, strict=True)
    ]
    return np.stack(shares), given


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Out-of-fold answers of k members, one entry for each label hidden in a fold."""

    hidden: AnyArray  # (r,) which of the labelled rows each entry is
    answers: Array  # (k, r) or (k, r, n_classes) numbers or shares
    truth: Array  # (r,) or (r, n_classes) labels, or 1 for the class and 0 for others

    @classmethod
    def of(
        cls, problem: Problem, folds: list[Fold], replies: list[list[Reply]], calibrations: list[Calibration]
    ) -> OutOfFold:
        """Collect the replies of k members in all folds."""
        parts = []
        for k, (visible, _) in enumerate(folds):
            answers, given = stack([member[k] for member in replies], calibrations, problem.classes)
            prior = problem.prior(visible)
            gap = ~given if problem.classes is None else ~given[..., None]
            parts.append(np.where(gap, prior[0] if problem.classes is None else prior, answers))
        hidden = np.concatenate([fold[1] for fold in folds])
        truth = problem.labels if problem.classes is None else np.eye(len(problem.classes))[problem.codes]
        return cls(hidden, np.concatenate(parts, axis=1), truth[hidden])

    def shares(self) -> Array:
        """Return what each entry counts: 1/t where a label was hidden t times."""
        return 1.0 / np.bincount(self.hidden)[self.hidden]

    def errors(self, unit: float) -> Array:
        """Return errors over `unit`, shape (r, k) or (r n_classes, k); a label hidden t times counts 1/t each time."""
        times = np.sqrt(self.shares()).reshape(-1, *[1] * (self.truth.ndim - 1))
        errors = (self.answers - self.truth) * times / unit
        return np.clip(errors, -1e100, 1e100).reshape(len(errors), -1).T

    def by_row(self, entries: Array) -> tuple[AnyArray, Array]:
        """Return the labelled rows that were hidden, and the mean of entries (r,) or (r, c) at each."""
        rows, at = np.unique(self.hidden, return_inverse=True)
        total = np.zeros((len(rows), *entries.shape[1:]))
        np.add.at(total, at, entries)
        return rows, total / np.bincount(at).reshape(-1, *[1] * (entries.ndim - 1))
