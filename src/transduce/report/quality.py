"""How good out-of-fold answers were: scores, pairs to plot, tables of confusion, rejection curves, and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray
from transduce.core.words import counted
from transduce.metrics import rejection_curve
from transduce.report.plain import decimals_for, name_of, number, plain, rough_percent, with_unit

MOST_POINTS = 1000  # in a plot
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better
FEWEST, MOST_SLIPS = 20, 3  # labels among which slips can be told, and how many of them
FAR, APART = (
    25.0,
    3.0,
)  # a slip's error: so many times the median one, and so many times that of the next label


def evenly(length: int, most: int) -> AnyArray:
    """Return at most so many of the positions 0, 1, ..., spread evenly."""
    return np.round(np.linspace(0, length - 1, min(length, most))).astype(int)


def _judged(error: float, simplest: float) -> str:
    """Return that errors are hardly smaller than the simplest method's, or not at all; "" if they are."""
    if error < NO_BETTER * simplest:
        return ""
    return "That is hardly better." if error < simplest else "That is no better."


def _hidden(n: int) -> str:
    return f"{counted(n, 'known value')} {'was' if n == 1 else 'were'} hidden in turn and answered."


@dataclass(frozen=True)
class NumberQuality:
    """How far answers at hidden labels were off."""

    n: int  # labels that were answered
    n_without_answer: int
    mean_absolute_error: float
    median_absolute_error: float
    of_the_mean: float  # the mean absolute error of always answering the mean
    r2: float | None
    true: list[float]  # pairs to plot
    answered: list[float]
    unit: str = ""
    slips: str = ""  # labels that are perhaps wrong, in a sentence

    @property
    def large(self) -> str:
        """How good the answers are, in a few words."""
        return f"off by {self.shown(self.mean_absolute_error)} on average"

    @property
    def small(self) -> str:
        """What the simplest method would do."""
        return f"always answering the mean would be off by {self.shown(self.of_the_mean)}"

    @property
    def explained(self) -> str:
        """The share of the variance that the answers explain, as the end of a sentence; "" if it is none."""
        share = f"{100 * (self.r2 or 0.0):.0f}"
        return f"; the answers explain {share} % of the variance" if float(share) > 0.0 else ""

    @property
    def judged(self) -> str:
        """That they are hardly better, or no better; "" if they are."""
        return _judged(self.mean_absolute_error, self.of_the_mean)

    @property
    def sentence(self) -> str:
        """How good the answers were."""
        return (
            f"{_hidden(self.n)} On average they were off by {self.shown(self.mean_absolute_error)}; the mean value "
            f"for every row would have been off by {self.shown(self.of_the_mean)}."
        )

    def shown(self, error: float) -> str:
        """Return an error for reading."""
        return with_unit(number(error, decimals_for([self.mean_absolute_error])), self.unit)


@dataclass(frozen=True)
class ClassQuality:
    """How many of the answers at hidden labels were right."""

    n: int  # labels that were answered
    n_without_answer: int
    accuracy: float
    of_the_commonest: float  # the accuracy of always answering the commonest class
    commonest: str
    classes: list[str]
    confusion: list[list[int]]  # how often each class (column) was answered for each (row)
    rejection: dict[str, Any] | None  # errors as unsure answers are rejected, where probabilities are known

    @property
    def large(self) -> str:
        """How good the answers are, in a few words."""
        return f"{rough_percent(self.accuracy)} right"

    @property
    def small(self) -> str:
        """What the simplest method would do."""
        return (
            f"always answering “{self.commonest}” would be right for {rough_percent(self.of_the_commonest)}"
        )

    @property
    def judged(self) -> str:
        """That they are hardly better, or no better; "" if they are."""
        return _judged(1.0 - self.accuracy, 1.0 - self.of_the_commonest)

    @property
    def sentence(self) -> str:
        """How good the answers were."""
        return (
            f"{_hidden(self.n)} {rough_percent(self.accuracy)} of the answers were right; answering "
            f"“{self.commonest}” for every row would have been right for {rough_percent(self.of_the_commonest)}."
        )


Quality = NumberQuality | ClassQuality


def quality_of(task: str, out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return how good answers at hidden labels were; None if no label was hidden and answered."""
    return number_quality(out_of_fold, unit) if task == "regression" else class_quality(out_of_fold)


def number_quality(out_of_fold: pd.DataFrame, unit: str = "") -> NumberQuality | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true, answered = pairs["true"].to_numpy(float), pairs["answered"].to_numpy(float)
    weights = _weights(out_of_fold.loc[pairs.index])
    off, around = np.abs(answered - true), np.abs(true - weights @ true)
    spread = float(weights @ around**2)
    order = np.argsort(off)
    middle = order[min(int(np.searchsorted(np.cumsum(weights[order]), 0.5)), len(off) - 1)]
    shown = evenly(len(pairs), MOST_POINTS)
    odd = pairs.iloc[_slips(off)]
    return NumberQuality(
        n=len(pairs),
        n_without_answer=len(out_of_fold) - len(pairs),
        mean_absolute_error=float(weights @ off),
        median_absolute_error=float(np.median(off) if np.ptp(weights) == 0.0 else off[middle]),
        of_the_mean=float(weights @ around),
        r2=1.0 - float(weights @ off**2) / spread if spread > 0.0 else None,
        true=true[shown].tolist(),
        answered=answered[shown].tolist(),
        unit=unit,
        slips=_about_slips(odd, unit) if len(odd) else "",
    )


def _slips(off: AnyArray) -> AnyArray:
    """Return the few places (k,) with errors (n,) far larger than all others: perhaps a slip of whoever typed them."""
    order = np.argsort(-off)[: MOST_SLIPS + 1] if len(off) >= FEWEST else np.zeros(0, dtype=int)
    far = off[order] > FAR * np.median(off) if len(order) else off[order] > 0.0
    ends = [k for k in range(1, len(order)) if far[k - 1] and off[order[k - 1]] > APART * off[order[k]]]
    return order[: ends[-1] if ends else 0]


def _about_slips(odd: pd.DataFrame, unit: str) -> str:
    """Return which known values are far from their answers, as a sentence."""
    said = []
    for row, true, answered in zip(odd.index, odd["true"], odd["answered"], strict=True):
        where = f" in row {row + 1:,}" if odd.index.name == "row" else ""
        value = with_unit(number(true, 0 if float(true).is_integer() else decimals_for([true])), unit)
        said.append(
            f"{value}{where}, answered with {number(answered, decimals_for([answered]))} while it was hidden"
        )
    return f"Look whether these known values are right: {'; '.join(said)}."


def class_quality(out_of_fold: pd.DataFrame) -> ClassQuality | None:
    """Return scores of classes, who was taken for whom, and errors as unsure answers are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    columns = (pairs["true"].tolist(), pairs["answered"].tolist())
    true, answered = (np.array([*map(name_of, column)], dtype=object) for column in columns)
    weights = _weights(pairs)
    names, at = np.unique(true.astype(str), return_inverse=True)
    frequency = np.bincount(at, weights)
    classes, table = _confusion(true, answered)
    return ClassQuality(
        n=len(pairs),
        n_without_answer=len(out_of_fold) - len(pairs),
        accuracy=float(weights @ (true == answered)),
        of_the_commonest=float(frequency.max()),
        commonest=str(names[frequency.argmax()]),
        classes=classes,
        confusion=table,
        rejection=_rejection(true, answered, pairs) if np.ptp(weights) == 0.0 else None,
    )


def _weights(pairs: pd.DataFrame) -> AnyArray:
    """Return how much each label counts, shape (n,); their sum is 1."""
    weights = pairs["weight"].to_numpy(float) if "weight" in pairs else np.ones(len(pairs))
    return weights / weights.sum() if weights.sum() > 0.0 else np.full(len(pairs), 1.0 / len(pairs))


def _confusion(true: AnyArray, answered: AnyArray) -> tuple[list[str], list[list[int]]]:
    """Return classes, the most frequent ones by name, and how often each was answered for each."""
    counts = pd.Series(np.concatenate([true, answered])).value_counts().sort_index(kind="stable")
    frequent = counts.sort_values(ascending=False, kind="stable").index
    kept = frequent[: MOST_CLASSES - (len(frequent) > MOST_CLASSES)]
    classes = sorted(kept, key=_by_number) + ([OTHERS] if len(kept) < len(frequent) else [])
    place, last = {name: i for i, name in enumerate(classes)}, len(classes) - 1
    table = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(table, ([place.get(name, last) for name in true], [place.get(n, last) for n in answered]), 1)
    return classes, table.tolist()


def _by_number(name: str) -> tuple[float, str]:
    """Return what puts names in order: numbers by size, then words."""
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


def _rejection(true: AnyArray, answered: AnyArray, pairs: pd.DataFrame) -> dict[str, Any] | None:
    """Return the rejection curve where probabilities tell answers apart; None elsewhere."""
    if "probability" not in pairs or pairs["probability"].nunique() < 2 or pairs["probability"].isna().any():
        return None
    errors, rejected = rejection_curve(true, answered, pairs["probability"].to_numpy(float))
    shown = evenly(len(errors), 200)
    return {
        "errors": plain(errors[shown]),
        "rejected": plain(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(errors[np.searchsorted(rejected, 0.5, side="right") - 1]),
    }
