"""Picking rows with a bounded false discovery rate, by conformal p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_answer import name_values
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted, quoted
from transduce.model_selection.fit_and_predict import RawPrediction


class Goal(NamedTuple):
    """What the labels of rows that are picked are to be like."""

    mistake: str  # what a mistake is, in words
    unlabelled: Array  # (m,) how much unlabelled rows look like wanted ones
    calibration: Array  # (c,) the same of calibration rows
    met: Mask  # (c,) which calibration labels are as wanted


def read_goal(
    table: CalibratedTable,
    *,
    above: Any,
    below: Any,
    tolerance: Any,
    label: Any,
    correct: Any,
    ranges: Array | None = None,
) -> Goal:
    """Return what is to be picked, or raise a ValueError that says what to correct."""
    bounds: dict[str, Any] = {"above": above, "below": below}
    bounds = {name: value for name, value in bounds.items() if value is not None}
    _check_goal(table.classes is None, bounds, tolerance, label, correct)
    if ranges is None and table.classes is None:
        ranges = np.column_stack([table.labels, table.labels])
    if bounds:
        assert ranges is not None
        return _goal_between(table, bounds, ranges)
    labels = table.labels
    if label is None:
        predicted = table.calibration.values
        if tolerance is None:
            mistake = "prediction is wrong"
            met = labels == predicted
        else:
            mistake = f"prediction is off by more than {tolerance:g}"
            assert ranges is not None
            met = _furthest_off(ranges, predicted) <= tolerance
        of_unlabelled = -_unsure(table, table.unlabelled)
        of_calibration = -_unsure(table, table.calibration)
        return Goal(mistake, of_unlabelled, of_calibration, met)
    assert table.classes is not None
    code = int(class_codes(np.asarray([label]), table.classes)[0])
    if code < 0:
        raise ValueError(
            f"label={quoted(label)} is none of the classes {quoted(table.classes.tolist())}."
        )
    of_unlabelled = -table.scoring.measure(table.unlabelled)[:, code]
    of_calibration = -table.scoring.measure(table.calibration)[:, code]
    return Goal(f"class is not {quoted(label)}", of_unlabelled, of_calibration, labels == code)


def _furthest_off(ranges: Array, predicted: AnyArray) -> Array:
    """Return how far off predictions (c,) are at most of labels in ranges (c, 2)."""
    return np.asarray(np.abs(ranges - np.asarray(predicted, dtype=float)[:, None]).max(axis=1))


def _goal_between(table: CalibratedTable, bounds: dict[str, Any], ranges: Array) -> Goal:
    """Return the goal of numbers above one bound, below another, or both."""
    not_met = " or ".join(f"not {name} {value:g}" for name, value in bounds.items())
    low = float(bounds.get("above", -np.inf))
    high = float(bounds.get("below", np.inf))

    def looks(reply: RawPrediction) -> Array:
        inside = np.minimum(reply.values - low, high - reply.values)
        return inside / table.scoring.measure(reply)

    # A label such as "<60" is met only where all that it may be is.
    met = (ranges[:, 0] > low) | np.isneginf(low)
    met &= (ranges[:, 1] < high) | np.isposinf(high)
    with np.errstate(invalid="ignore"):  # infinite where there is no prediction
        return Goal(f"label is {not_met}", looks(table.unlabelled), looks(table.calibration), met)


def _check_goal(
    numbers: bool,
    bounds: dict[str, Any],
    tolerance: Any,
    label: Any,
    correct: Any,
) -> None:
    """Raise a ValueError unless one thing is to be picked, and it suits numbers or classes."""
    checks.check_flag("correct", correct)
    if bool(bounds) + (label is not None) + bool(correct) + (tolerance is not None) != 1:
        raise ValueError(
            "Say what to pick: above or below (or both), tolerance, label, or correct=True."
        )
    for name, value in bounds.items():
        checks.check_number(name, value)
    of_numbers = label is None and not correct
    if of_numbers and not numbers:
        raise ValueError(
            "above, below and tolerance are for numbers: pick classes with label=..., or "
            "correct=True."
        )
    if numbers and not of_numbers:
        raise ValueError(
            "label and correct are for classes: pick numbers with above=..., below=... or "
            "tolerance=..."
        )
    if tolerance is not None:
        checks.check_positive("tolerance", tolerance)


def _unsure(table: CalibratedTable, reply: RawPrediction) -> Array:
    """Return how unsure each answer is, shape (m,)."""
    measure = table.scoring.measure(reply)
    if table.classes is None:
        return measure
    return measure[np.arange(len(measure)), np.maximum(reply.values, 0)]


def select_rows(
    table: CalibratedTable,
    answer: Answer,
    goal: Goal,
    false_discovery: Any,
    ranges: Array | None = None,
) -> Selection:
    """Return the unlabelled rows that are picked, and what is guaranteed of them.

    P-values are 1 where there is no prediction.
    """
    bound = checks.check_share("false_discovery", false_discovery)
    known = table.calibration.given
    covered = table.covered
    empty = table.unlabelled.given & ~covered  # drawn and not labelled: each may be a mistake
    judged = np.append(goal.calibration[known], goal.unlabelled[empty])
    not_met = np.zeros(int(empty.sum()), dtype=bool)
    met = np.append(goal.met[known], not_met)
    p_values = np.ones(len(covered))
    p_values[covered] = selection_p_values(
        _ordered(goal.unlabelled[covered]),
        _ordered(judged),
        met,
    )
    picked = np.zeros(len(covered), dtype=bool)
    picked[covered] = pick(p_values[covered], bound)
    # The first fit's values: calibration rows judge no other.
    values = name_values(table.unlabelled, table.classes)
    return Selection(
        rows=answer.rows[picked],
        values=values[picked],
        p_values=p_values,
        guarantee=_guarantee(table, goal.mistake, bound),
        index=None if answer.index is None else answer.index[picked],
        answers=values,
        judged=Judged.of(table, ranges),
    )


def _guarantee(table: CalibratedTable, mistake: str, bound: float) -> Guarantee:
    """Return what is guaranteed of rows that were picked: a bound on the share of mistakes."""
    n_calibration = int(table.calibration.given.sum())
    verdict = table.weights.grounds.verdict
    if n_calibration == 0:
        return Guarantee(
            "none", about="selection", reasons=("No label was held out to pick rows by.",)
        )
    if not table.pooled:
        reason = (
            "Rows are picked as if all calibration labels stood for the unlabelled rows alike; "
            "they do not."
        )
        return Guarantee("none", about="selection", reasons=(reason,), verdict=verdict)
    return Guarantee(
        "approximate" if table.estimated else "exact",
        about="selection",
        false_discovery=bound,
        mistake=mistake,
        reasons=(f"It rests on {counted(n_calibration, 'calibration label')}.",),
        assumptions=(table.weights.grounds.assumption,),
        n_empty=table.n_empty,
    ).doubted(verdict)


@dataclass(frozen=True, eq=False)
class Judged:
    """What rows to trust are picked by: how unsure predictions are, and how far off known ones."""

    unsure: Array  # (m,) of the unlabelled rows; infinite where no answer can be judged
    answers: Array  # (m,) at these; the number of a class
    # Each (c,): the same of calibration rows, and by how much these are off.
    of_known: tuple[Array, ...]

    @classmethod
    def of(cls, table: CalibratedTable, ranges: Array | None = None) -> Judged:
        """Return what the calibration labels of a table show.

        A wrong class is off by 1, a row that was drawn and has no label infinitely.
        """
        unsure = _unsure(table, table.unlabelled)
        values = np.asarray(table.unlabelled.values, dtype=float)
        known = table.calibration.given
        empty = table.unlabelled.given & ~table.covered
        if ranges is None:
            ranges = np.column_stack([table.labels, table.labels])
        off = _furthest_off(ranges, table.calibration.values)[known]
        if table.classes is not None:
            off = (off > 0).astype(float)
        of_calibration = _unsure(table, table.calibration)[known]
        predicted = np.asarray(table.calibration.values, dtype=float)[known]
        of_known = (
            np.append(of_calibration, unsure[empty]),
            np.append(predicted, values[empty]),
            np.append(off, np.full(empty.sum(), np.inf)),
        )
        return cls(np.where(table.covered, unsure, np.inf), values, of_known)

    def p_values(self, tolerance: float, *, relative: bool = False) -> Array:
        """Return p-values (m,) of "this is off by more", or by more than this share of itself."""
        unsure, answers, off = self.of_known
        own_unit = np.ones(len(self.answers))
        unit = np.ones(len(answers))
        if relative:
            own_unit = np.abs(self.answers)
            unit = np.abs(answers)
        with np.errstate(divide="ignore", invalid="ignore"):
            own_looks = _ordered(-self.unsure / own_unit)
            looks = _ordered(-unsure / unit)
            p_values = selection_p_values(own_looks, looks, off <= tolerance * unit)
        return np.where(np.isfinite(self.unsure), p_values, 1.0)


def _ordered(looks: Array) -> Array:
    """Return how much rows look like wanted ones, the least where that is 0 / 0."""
    # NaN would count as the most.
    return np.where(np.isnan(looks), -np.inf, looks)


def selection_p_values(unlabelled: Array, hidden: Array, good: Mask) -> Array:
    """Return, for every unlabelled row, a p-value of "its label is not as wanted".

    Parameters
    ----------
    unlabelled, hidden : array of shape (m,) and (c,)
        How much each row looks like a wanted one: any function of the row's features, larger for
        more.
    good : boolean array of shape (c,)
        Which calibration rows' labels are as wanted.

    Returns
    -------
    array of shape (m,)
        ``(1 + number of calibration rows that are not good and look at least as good) / (c + 1)``.

    Notes
    -----
    Jin and Candès (2023, JMLR 24) with ``V(x, y) = infinity`` if y is wanted and
    ``-look(x)`` if not, and ``W_j = -look(x_j)``. If the label of j is not as wanted, ``V_j =
    W_j``, so p_j is one of the ranks of V_j among c + 1 exchangeable scores.

    *Benjamini-Hochberg at level q keeps the expected share of mistakes at most q.* Let R be the
    rows picked, and R_j those picked when p_j is set to 0 and the one that is added in the other
    p-values counts the row j: ``1{V_j <= W_i}``. Suppose j is picked by mistake. A row i with ``W_i
    >= W_j`` has the same p-value in both, one with ``W_i < W_j`` has ``p_i <= p_j`` and is picked
    in both: R = R_j. Given the unordered scores of the calibration rows and j, R_j is fixed and the
    rank of V_j uniform (or, with ties, larger): ``E[1{p_j <= q |R_j| / m} / |R_j|] <= q / m``. Sum
    over j.

    Examples
    --------
    >>> import numpy as np
    >>> hidden, good = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False])
    >>> selection_p_values(np.array([0.7, 0.2]), hidden, good)
    array([0.2, 0.4])
    """
    unlabelled = checks.as_floats("unlabelled", unlabelled)
    hidden = checks.as_floats("hidden", hidden)
    good = np.asarray(good)
    if good.dtype.kind not in "biuf" or not np.isin(good, (0, 1)).all():
        raise ValueError("good must be true or false for each calibration row.")
    good = good.astype(bool)
    if unlabelled.ndim != 1 or hidden.ndim != 1 or hidden.shape != good.shape:
        raise ValueError(
            "Give a number for every row, and good for every calibration row; got shapes "
            f"{unlabelled.shape}, {hidden.shape} and {good.shape}."
        )
    if np.isnan(unlabelled).any() or np.isnan(hidden).any():
        raise ValueError("A row without a number cannot be compared: give it the lowest, -inf.")
    bad = np.sort(hidden[~good])
    worse = len(bad) - np.searchsorted(bad, unlabelled, side="left")
    return (1.0 + worse.astype(float)) / (len(hidden) + 1.0)


def pick(p_values: Array, false_discovery: float) -> Mask:
    """Return which rows the Benjamini-Hochberg rule picks. Shapes: p_values (m,); returns (m,)."""
    if len(p_values) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(false_discovery_control(p_values) <= false_discovery + 1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Rows that were picked, and what is guaranteed of them.

    Parameters
    ----------
    rows, values : array of shape (r,)
        Positions of the rows picked in the sample, ascending, and their answers.
    p_values : array of shape (m,)
        Of all unlabelled rows, in the order of ``answer_.rows``; 1 where the estimator has no
        answer.
    guarantee : Guarantee
        The guarantee, in words.
    index : pandas.Index, optional
        Names of the rows picked.
    answers : array of shape (m,), optional
        The answers at all unlabelled rows that this is about, in the order of `p_values`.
    judged : Judged, optional
        What p-values of "this answer is off by more than ..." come from, for any amount.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Guarantee
    >>> from transduce.conformal import Selection
    >>> guarantee = Guarantee(
    ...     "exact", about="selection", false_discovery=0.1, mistake="prediction is wrong"
    ... )
    >>> p_values = np.array([0.01, 0.02, 0.6])
    >>> len(Selection(np.array([4, 7]), np.array([2.5, 3.0]), p_values, guarantee))
    2
    """

    rows: AnyArray
    values: AnyArray
    p_values: Array
    guarantee: Guarantee
    index: Any = None
    answers: AnyArray | None = None
    judged: Judged | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"{len(self)} of {len(self.p_values)} rows picked\n{self.guarantee}"

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each row picked, named as the user's rows are."""
        return pd.DataFrame(
            {"value": self.values}, index=self.rows if self.index is None else self.index
        )
