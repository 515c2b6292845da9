"""How far each calibration row stands for the unlabelled ones: its weight, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transduce.core.types import AnyArray, Array, Mask

EQUAL, KNOWN, ESTIMATED, GROUPS = "equal", "known", "estimated", "groups"


@dataclass(frozen=True, eq=False)
class Weighing:
    """Weights of calibration and unlabelled rows."""

    calibration: Array  # (c,) odds that a row has no label, up to a common factor
    unlabelled: Array  # (c,) odds that a row has no label, up to a common factor
    kind: str = EQUAL  # where they come from
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    cells: tuple[AnyArray, AnyArray] | None = None  # (c,)

    @classmethod
    def equal(cls, n_calibration: int, n_unlabelled: int, factor: float = 1.0) -> Weighing:
        """Return weights that are all 1."""
        return cls(np.ones(n_calibration), np.ones(n_unlabelled), factor=factor)

    @classmethod
    def of(cls, odds: Array, calibration: AnyArray, unlabelled: AnyArray, kind: str) -> Weighing:
        """Return the weights at rows of a table, the largest of the unlabelled ones being 1; equal odds are all 1."""
        largest = float(odds[unlabelled].max(initial=0.0)) or 1.0
        return cls(odds[calibration] / largest, odds[unlabelled] / largest, kind)

    @classmethod
    def of_groups(cls, groups: AnyArray, given: Mask, n_unlabelled: int) -> Weighing:
        """Return weights by which each calibration group counts once, however many of its rows have an answer."""
        sizes = np.bincount(groups[given], minlength=1 + groups.max(initial=0))
        weights = np.where(given, 1.0 / np.maximum(sizes[groups], 1), 0.0)
        return cls(weights, np.ones(n_unlabelled), GROUPS)

    @property
    def exchangeable(self) -> bool:
        """Whether all rows weigh the same and nothing may differ: then the number outside has a known law."""
        both = np.concatenate([self.calibration, self.unlabelled])
        return self.factor == 1.0 and self.kind != GROUPS and bool(np.all(both == 1.0))

    @property
    def pooled(self) -> bool:
        """Whether the calibration rows are a random part of all rows that have no visible label."""
        return self.exchangeable and self.cells is None

    @property
    def for_means(self) -> Array | None:
        """Weights of the calibration rows in means over all unlabelled rows; None if they are all the same."""
        if self.cells is None:
            return None if np.all(self.calibration == 1.0) and self.kind != GROUPS else self.calibration
        first, rest = self.cells
        sizes = np.bincount(first, minlength=1 + max(first.max(initial=0), rest.max(initial=0)))
        return self.calibration * np.bincount(rest, minlength=len(sizes))[first] / sizes[first]

    @property
    def effective(self) -> float:
        """How many labels of equal weight the calibration labels are worth: ``(sum w)^2 / sum w^2``."""
        squares = float(np.sum(self.calibration**2))
        return float(np.sum(self.calibration)) ** 2 / squares if squares > 0.0 else 0.0

    def without_support(self, beyond: Mask) -> Weighing:
        """Return the same weights, except that some unlabelled rows outweigh all labels: nothing is ruled out there."""
        heavy = 1e12 * (1.0 + float(self.calibration.sum()))
        return replace(self, unlabelled=np.where(beyond, heavy, self.unlabelled))

    def in_cells(self, codes: AnyArray, calibration: AnyArray, unlabelled: AnyArray) -> Weighing:
        """Return the same weights, with rows compared within categories."""
        return replace(self, cells=(codes[calibration], codes[unlabelled]))

    def supports(self, confidence: float) -> bool:
        """Whether the labels are worth enough for a level: estimated weights take ``2 / (1 - confidence)`` of them."""
        return self.kind != ESTIMATED or self.effective >= effective_needed(confidence) - 1e-9

    def parts(self, known: Mask, given: Mask) -> list[tuple[Mask, Mask]]:
        """Return which calibration rows are compared with which unlabelled ones, of those with an answer."""
        if self.cells is None:
            return [(known, given)]
        first, rest = self.cells
        return [(known & (first == cell), given & (rest == cell)) for cell in np.unique(rest)]


def effective_needed(confidence: float) -> float:
    """Return how many labels of equal weight a level takes where weights are estimated."""
    return 2.0 / (1.0 - confidence)


def odds_without_label(probability: Array) -> Array:
    """Return the odds that a row has no label, by the probability that it has one."""
    return (1.0 - probability) / probability
