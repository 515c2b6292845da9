"""Calibration rows and unlabelled rows side by side after the one fit, from which the answers at any level are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.miscoverage import ClassMiscoverage, Miscoverage
from transduce.conformal.scores import Scored, class_p_values, intervals, label_sets, margins, powered_mean
from transduce.conformal.shell import Predictions
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask

NUMBERS, CLASSES = ("absolute", "scaled"), ("probability", "margin", "zero_one")


def choose_nonconformity(wanted: str, found: Predictions, n_classes: int) -> str:
    """Return the score to use, or raise a ValueError that says which the estimator has the means for.

    Parameters
    ----------
    wanted : str
        ``"auto"`` or a score.
    found : Predictions
        At all rows without label, hidden and unlabelled, so that the choice cannot tell them apart.
    n_classes : int
        0 for numbers.

    Returns
    -------
    str
    """
    if n_classes == 0:
        some = found.spreads is not None and np.any(_usable(found.spreads))
        every = found.spreads is not None and bool(np.all(_usable(found.spreads)[found.reached]))
        if wanted == "auto":
            return "scaled" if some and every else "absolute"
        if wanted in CLASSES:
            raise ValueError(
                f"nonconformity={wanted!r} is for classes: use 'absolute' or 'scaled' for numbers."
            )
        if wanted == "scaled" and not some:
            raise ValueError(
                "nonconformity='scaled' needs standard errors, which the estimator does not have here."
            )
        return wanted
    means = {
        "probability": found.probabilities is not None,
        "margin": found.scores is not None or found.probabilities is not None,
        "zero_one": True,
    }
    if wanted == "auto":
        return next(name for name, there in means.items() if there)
    if wanted in NUMBERS:
        names = ", ".join(map(repr, CLASSES))
        raise ValueError(f"nonconformity={wanted!r} is for numbers: use one of {names} for classes.")
    if not means[wanted]:
        there = ", ".join(repr(name) for name, has in means.items() if has)
        raise ValueError(f"nonconformity={wanted!r} needs what the estimator does not have: use {there}.")
    return wanted


def _usable(spreads: Array) -> Mask:
    return np.isfinite(spreads) & (spreads > 0.0)


def _floored(found: Predictions) -> Array:
    """Return the spreads, those that are no positive number replaced by a small one."""
    assert found.spreads is not None
    usable = _usable(found.spreads)
    return np.where(usable, found.spreads, 1e-6 * float(np.median(found.spreads[usable])))


def _class_table(found: Predictions, nonconformity: str, n_classes: int) -> Array:
    """Return the score of every class at rows, shape (u, n_classes)."""
    if nonconformity == "probability":
        assert found.probabilities is not None
        return 1.0 - found.probabilities
    if nonconformity == "zero_one":
        return (found.values[:, None] != np.arange(n_classes)).astype(float)
    scores = found.scores if found.scores is not None else found.probabilities
    assert scores is not None
    return margins(scores)


@dataclass(frozen=True, eq=False)
class Table:
    """Predictions and labels of calibration rows, predictions at unlabelled rows, and their scores.

    Parameters
    ----------
    hidden, unlabelled : Predictions
    labels : array of shape (c,)
        Calibration labels: numbers, or numbers of classes.
    class_sizes : tuple of int
        Number of labels of every class, hidden or not.
    by_class : bool
        Whether every class is held against its own calibration rows.
    nonconformity : str
    scales : tuple of two arrays, shapes (c,) and (m,)
        Numbers: what distances are divided by.
    tables : tuple of two arrays, shapes (c, n_classes) and (m, n_classes)
        Classes: the score of every class.
    ties : tuple of two arrays, shapes (c,) and (m,)
        What decides between equal scores.
    """

    hidden: Predictions
    unlabelled: Predictions
    labels: AnyArray
    class_sizes: tuple[int, ...]
    by_class: bool
    nonconformity: str
    scales: tuple[Array, Array]
    tables: tuple[Array, Array]
    ties: tuple[Array, Array]

    @classmethod
    def build(
        cls,
        found: Predictions,
        n_calibration: int,
        labels: AnyArray,
        *,
        class_sizes: tuple[int, ...],
        by_class: bool,
        wanted: str,
        ties: Array,
        seen: Mask,
    ) -> Table:
        """Score all rows alike, the calibration rows first, and part them.

        Parameters
        ----------
        found : Predictions
            At the calibration rows, then the unlabelled ones.
        n_calibration : int
        labels : array of shape (c,)
        class_sizes : tuple of int
            Empty for numbers.
        by_class : bool
        wanted : str
            Score, or "auto".
        ties : array of shape (c + m,)
        seen : boolean array of shape (n_classes,)
            Classes that a visible row has. Others score infinity: so it is at an unlabelled row whose class has no
            label at all, and calibration rows must be treated alike.

        Returns
        -------
        Table
        """
        total, n_classes = len(found.values), len(class_sizes)
        nonconformity = choose_nonconformity(wanted, found, n_classes) if total else wanted
        scales, table = np.ones(total), np.zeros((total, n_classes))
        if nonconformity == "scaled" and total:
            scales = _floored(found)
        if n_classes and total:
            table = _class_table(found, nonconformity, n_classes)
            table[:, ~seen] = (
                np.inf
            )  # a class that no visible row has is as nonconforming as can be, at any row
        first, rest = np.arange(n_calibration), np.arange(n_calibration, total)
        return cls(
            found.at(first),
            found.at(rest),
            labels,
            class_sizes,
            by_class,
            nonconformity,
            (scales[first], scales[rest]),
            (table[first], table[rest]),
            (ties[first], ties[rest]),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return len(self.class_sizes)

    @property
    def calibration_scores(self) -> Array:
        """Score of every calibration row at its label; NaN where the estimator has no answer."""
        if self.n_classes:
            scores = self.tables[0][np.arange(len(self.labels)), self.labels]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = np.abs(self.labels - self.hidden.values) / self.scales[0]
        return np.where(self.hidden.reached, scores, np.nan)

    @property
    def scored(self) -> Scored:
        """The rows at which the estimator has an answer."""
        known = self.hidden.reached
        return Scored(
            self.calibration_scores[known], self.ties[0][known], self.ties[1][self.unlabelled.reached]
        )

    def law(self, confidence: float) -> Miscoverage | ClassMiscoverage:
        """Return the law of the number outside at a level."""
        m = int(self.unlabelled.reached.sum())
        codes = self.labels[self.hidden.reached]
        if self.by_class:
            sizes = [int(np.sum(codes == y)) for y in range(self.n_classes)]
            m = len(self.unlabelled.values)  # those without an answer are never outside
            return ClassMiscoverage.at(
                confidence, n_unlabelled=m, n_labelled=self.class_sizes, n_calibration=sizes
            )
        return Miscoverage.at(confidence, n_unlabelled=m, n_calibration=len(codes))

    # --------------------------------------------------------------------------------------------- answers

    def regions(self, confidence: float) -> Regions:
        """Return the regions at a level; the whole line where the estimator has no answer."""
        reached = self.unlabelled.reached
        ends = np.tile([-np.inf, np.inf], (len(reached), 1))
        ends[reached] = intervals(
            self.scored, self.unlabelled.values[reached], self.scales[1][reached], confidence
        ).hull()
        return Regions.from_intervals(ends)

    def p_values(self) -> tuple[Array, AnyArray]:
        """Return p-values of all classes, 1 where the estimator has no answer, and sizes of what they rest on."""
        reached, codes = self.unlabelled.reached, self.labels[self.hidden.reached]
        p = np.ones((len(reached), self.n_classes))
        p[reached], sizes = class_p_values(
            self.scored, self.tables[1][reached], codes if self.by_class else None
        )
        return p, sizes

    def sets(self, p: Array, sizes: AnyArray, confidence: float) -> Mask:
        """Return the label sets at a level."""
        return label_sets(p, sizes, confidence) | ~self.unlabelled.reached[:, None]

    # --------------------------------------------------------------------------------------- mean and selection

    def mean(self, confidence: float, classes: AnyArray | None, shown: AnyArray) -> pd.DataFrame:
        """Return the mean of the unlabelled labels, or the share of every class, with an interval.

        Rows without an answer take the mean of the visible labels, `shown`.
        """
        if classes is None:
            fallback: Any = np.mean(shown)
            unlabelled, hidden = (
                np.where(part.reached, part.values, fallback).astype(float)
                for part in (self.unlabelled, self.hidden)
            )
            return powered_mean(
                unlabelled, hidden, np.asarray(self.labels, dtype=float), confidence, ["mean"]
            )
        shares, fallback = [], np.bincount(shown, minlength=len(classes)) / len(shown)
        for part in (self.unlabelled, self.hidden):
            said = part.probabilities
            if said is None:
                said = (part.values[:, None] == np.arange(len(classes))).astype(float)
            shares.append(np.where(part.reached[:, None], said, fallback))
        truth = (self.labels[:, None] == np.arange(len(classes))).astype(float)
        table = powered_mean(shares[0], shares[1], truth, confidence, classes)
        return table.clip(0.0, 1.0)  # a share is one

    def looks(self, wanted: dict[str, Any]) -> tuple[Array, Array, Mask]:
        """Return how much unlabelled and calibration rows look as wanted, and which calibration labels are so.

        Parameters
        ----------
        wanted : dict
            ``above`` and ``below`` (numbers), ``label`` (number of a class) or ``correct``.

        Returns
        -------
        unlabelled, hidden : array of shape (m,) and (c,)
        good : boolean array of shape (c,)
        """
        looks, good = [], np.ones(len(self.labels), dtype=bool)
        for part, scale, table in zip(
            (self.unlabelled, self.hidden), self.scales[::-1], self.tables[::-1], strict=True
        ):
            if "label" in wanted:
                looks.append(-table[:, wanted["label"]])
            elif "correct" in wanted:
                looks.append(-table[np.arange(len(table)), np.maximum(part.values, 0)])
            else:
                room = [part.values - wanted["above"]] if "above" in wanted else []
                room += [wanted["below"] - part.values] if "below" in wanted else []
                looks.append(np.min(room, axis=0) / scale)
        if "label" in wanted:
            good = self.labels == wanted["label"]
        elif "correct" in wanted:
            good = self.labels == self.hidden.values
        good &= self.labels > wanted.get("above", -np.inf)
        good &= self.labels < wanted.get("below", np.inf)
        return looks[0], looks[1], good
