"""What the members of a blend answer at labels that were hidden from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array, Mask
from transduce.ensemble.weights import shrunk_weights
from transduce.model_selection.fit_and_predict import RawPrediction
from transduce.model_selection.folds import Fold
from transduce.model_selection.problem import Problem

PARTS = 5  # of the labels: standard errors are of weights that come from the other parts


def unit_factor(scores: Array) -> float:
    """Return by what to multiply scores so that the best is 1 above its row's mean, on average."""
    if not len(scores):
        return 1.0
    above_mean = scores.max(axis=1) - scores.mean(axis=1)
    size = float(np.mean(above_mean))
    if 0.0 < size < np.inf:
        return 1.0 / size
    return 1.0


def fit_factor(replies: list[RawPrediction], codes: list[AnyArray], n_classes: int) -> float:
    """Return the factor of a member's scores that makes the log-loss out of fold least."""
    scores_in_folds = []
    codes_in_folds = []
    for reply, code in zip(replies, codes, strict=True):
        if reply.probabilities is None and reply.given.any():
            scores_in_folds.append(reply.class_scores(n_classes)[reply.given])
            codes_in_folds.append(code[reply.given])
    if not scores_in_folds:
        return 1.0
    scores = np.concatenate(scores_in_folds)
    size = unit_factor(scores)
    return size * fit_temperature(size * scores, np.concatenate(codes_in_folds))


def stack(
    replies: Iterable[RawPrediction], factors: Iterable[float], classes: Any
) -> tuple[Array, Mask]:
    """Return answers of k members at the same m rows, and where they were given.

    The shares of the classes are a member's probabilities, or else the softmax of its scores times
    a factor. Shapes: (k, m), or (k, m, n_classes) of classes, and (k, m).
    """
    replies = list(replies)
    given = np.stack([reply.given for reply in replies])
    if classes is None:
        return np.stack([reply.values for reply in replies]), given
    shares = []
    for reply, factor in zip(replies, factors, strict=True):
        probabilities = reply.probabilities
        if probabilities is None:
            scores = reply.class_scores(len(classes))
            probabilities = softmax(factor * scores, axis=1)
        shares.append(probabilities)
    return np.stack(shares), given


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Out-of-fold answers of k members, one entry for each label hidden in a fold."""

    hidden: AnyArray  # (r,) which of the labelled rows each entry is
    answers: Array  # (k, r) or (k, r, n_classes) numbers or shares
    truth: Array  # (r,) or (r, n_classes) labels, or 1 for the class and 0 for others

    @classmethod
    def of(
        cls,
        problem: Problem,
        folds: list[Fold],
        hidden: dict[str, Any],
        factors: dict[str, float],
    ) -> OutOfFold:
        """Collect the replies of k members in all folds."""
        parts = []
        for k, (visible, _) in enumerate(folds):
            own_replies = [replies[k] for replies in hidden.values()]
            answers, given = stack(own_replies, factors.values(), problem.classes)
            parts.append(problem.filled(answers, given, visible))
        rows = np.concatenate([fold[1] for fold in folds])
        return cls(rows, np.concatenate(parts, axis=1), problem.truth[rows])

    def shares(self) -> Array:
        """Return what each entry counts: 1/t where a label was hidden t times."""
        return 1.0 / np.bincount(self.hidden)[self.hidden]

    def errors(self, unit: float) -> Array:
        """Return errors over `unit`, shape (r, k) or (r n_classes, k).

        A label hidden t times counts 1/t each time.
        """
        times = np.sqrt(self.shares())
        if self.truth.ndim == 2:
            times = times[:, None]
        errors = (self.answers - self.truth) * times / unit
        return np.clip(errors, -1e100, 1e100).reshape(len(errors), -1).T

    def crossed_errors(self, unit: float, counts: Array | None = None) -> Array:
        """Return errors of the blend over `unit`, shape (r,), with weights that did not see them.

        Labels are dealt into parts by the order of their truth; the weights of a part come from the
        others. Shapes: counts (k,), what each member counts before any label is seen.
        """
        errors = self.errors(unit)
        rows, place = np.unique(self.hidden, return_inverse=True)
        # Ties go by errors, so that the order of the rows does not matter.
        _, by_row = self.by_row(np.column_stack([errors, self.truth]))
        rank = np.empty(len(rows), dtype=int)
        rank[np.lexsort(by_row.T)] = np.arange(len(rows))
        part = (rank % PARTS)[place]
        crossed = np.empty(len(errors))
        for k in np.unique(part):
            inside = part == k
            others = inside
            if len(rows) > 1:
                others = ~inside
            n_others = len(np.unique(self.hidden[others]))
            crossed[inside] = errors[inside] @ shrunk_weights(errors[others], n_others, counts)
        return crossed / np.sqrt(self.shares())

    def by_row(self, entries: Array) -> tuple[AnyArray, Array]:
        """Return the labelled rows that were hidden, and the mean of entries (r, ...) at each."""
        rows, place = np.unique(self.hidden, return_inverse=True)
        total = np.zeros((len(rows), *entries.shape[1:]))
        np.add.at(total, place, entries)
        extra_axes = [1] * (entries.ndim - 1)
        counts = np.bincount(place).reshape(-1, *extra_axes)
        return rows, total / counts
