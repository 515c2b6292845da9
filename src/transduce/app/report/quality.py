"""How good answers at hidden labels were, in words and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.report.plain import (
    decimals_for,
    evenly,
    name_of,
    number,
    plain,
    rough_percent,
)
from transduce.conformal import Exchangeability
from transduce.core.guarantee import Guarantee
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray
from transduce.metrics import rejection_curve

MOST_POINTS = 1000  # in a plot
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better
CLEARLY_BETTER = 0.7  # errors up to this share of the simplest method's earn a tick
FEWEST_TICKED = 20  # known values that were hidden, below which none is earned
ALONE = 0.25  # share of the unlabelled rows without labelled ones like them: how good is not known
FEWEST, MOST_SLIPS = 20, 3  # labels among which slips can be told, and how many of them
FAR, APART = 25.0, 3.0  # a slip's error: times the median one, and times that of the next label


def _judged(error: float, simplest: float) -> str:
    """Return that errors are hardly smaller than the simplest method's, or not at all; "" if they are."""
    if error < NO_BETTER * simplest:
        return ""
    return "That is hardly better." if error < simplest else "That is no better."


def _is_clear(error: float, simplest: float, n_hidden: int) -> bool:
    """Return whether errors at enough hidden labels are clearly smaller than the simplest method's."""
    return n_hidden >= FEWEST_TICKED and error <= CLEARLY_BETTER * simplest


def why_not_known(
    has_draws: bool, exchangeability: Exchangeability | None, guarantee: Guarantee
) -> str:
    """Return why hidden labels do not tell how good the predictions are; "" if they do."""
    if has_draws:
        return ""  # rows drawn at random tell
    alone = share_alone(exchangeability)
    if alone >= ALONE:
        return (
            f"Rows with and without a value hardly overlap: {rough_percent(alone)} of those to be "
            "filled are unlike nearly all rows with a known value, which say nothing of them."
        )
    if guarantee.kind == "none":
        return (
            "Nothing is guaranteed of the rows to be filled, and how good they are cannot be told."
        )
    return ""


def share_alone(test: Exchangeability | None) -> float:
    """Return the share of the unlabelled rows that look less like a labelled one than 99 % of those do."""
    if test is None or not test.shifted or test.overlap is None:
        return 0.0
    labelled, unlabelled = test.overlap
    if not len(labelled) or not len(unlabelled):
        return 0.0
    return float(np.mean(unlabelled > np.quantile(labelled, 0.99)))


@dataclass(frozen=True)
class Quality:
    """How good answers at hidden labels were, in words and in numbers."""

    large: str  # how good they are, in a few words
    small: str  # what the simplest method would do
    judged: str  # that they are hardly better, or no better; "" if they are
    numbers: dict[str, Any]  # as a summary has them
    clear: bool = False  # whether they are clearly better, at enough labels to say so
    explained: str = ""  # the share of the variance, as the end of a sentence
    slips: str = ""  # labels that are perhaps wrong, in a sentence


def quality_of(task: str, out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return how good answers at hidden labels were; None if no label was hidden and answered."""
    return number_quality(out_of_fold, unit) if task == "regression" else class_quality(out_of_fold)


def number_quality(out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true, answered = pairs["true"].to_numpy(float), pairs["answered"].to_numpy(float)
    weights = _weights(out_of_fold.loc[pairs.index])
    off, around = np.abs(answered - true), np.abs(true - weights @ true)
    error, simplest = float(weights @ off), float(weights @ around)
    size = square_unit(off, around)
    spread = float(weights @ (around / size) ** 2)
    middle = np.quantile(off, 0.5, weights=weights, method="inverted_cdf")
    r2 = 1.0 - float(weights @ (off / size) ** 2) / spread if spread > 0.0 else None
    drawn, explained = evenly(len(pairs), MOST_POINTS), f"{100 * (r2 or 0.0):.0f}"
    odd = pairs.iloc[_slips(off)]
    shown = partial(number, decimals=decimals_for(error), unit=unit)
    return Quality(
        large=f"off by {shown(error)} on average",
        small=f"always answering the mean would be off by {shown(simplest)}",
        judged=_judged(error, simplest),
        clear=_is_clear(error, simplest, len(pairs)),
        explained=f"; the answers explain {explained} % of the variance"
        if float(explained) > 0.0
        else "",
        slips=_about_slips(odd, unit) if len(odd) else "",
        numbers={
            "n": len(pairs),
            "mean_absolute_error": error,
            "median_absolute_error": float(np.median(off) if np.ptp(weights) == 0.0 else middle),
            "of_the_mean": simplest,  # of always answering the mean
            "r2": r2,
            "true": true[drawn].tolist(),
            "answered": answered[drawn].tolist(),
            "unit": unit,
        },
    )


def _slips(off: AnyArray) -> AnyArray:
    """Return the few places (k,) with errors (n,) far larger than all others: perhaps a slip of whoever typed them."""
    order = np.argsort(-off)[: MOST_SLIPS + 1] if len(off) >= FEWEST else np.zeros(0, dtype=int)
    far = off[order] > FAR * np.median(off) if len(order) else off[order] > 0.0
    ends = [
        k for k in range(1, len(order)) if far[k - 1] and off[order[k - 1]] > APART * off[order[k]]
    ]
    return order[: ends[-1] if ends else 0]


def _about_slips(odd: pd.DataFrame, unit: str) -> str:
    """Return which known values are far from their answers, as a sentence."""
    said = []
    for row, true, answered in zip(odd.index, odd["true"], odd["answered"], strict=True):
        where = f" in row {row + 1:,}" if odd.index.name == "row" else ""
        value = number(true, 0 if float(true).is_integer() else decimals_for(true), unit)
        instead = number(answered, decimals_for(answered))
        said.append(f"{value}{where}, answered with {instead} while it was hidden")
    return f"Look whether these known values are right: {'; '.join(said)}."


def class_quality(out_of_fold: pd.DataFrame) -> Quality | None:
    """Return scores of classes, who was taken for whom, and errors as unsure answers are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    columns = (pairs["true"].tolist(), pairs["answered"].tolist())
    true, answered = (np.array([*map(name_of, column)], dtype=object) for column in columns)
    weights = _weights(pairs)
    names, at = np.unique(true, return_inverse=True)
    frequency = np.bincount(at, weights)
    right, most, commonest = (
        float(weights @ (true == answered)),
        frequency.max(),
        str(names[frequency.argmax()]),
    )
    classes, table = _confusion(true, answered)
    return Quality(
        large=f"{rough_percent(right)} right",
        small=f"always answering “{commonest}” would be right for {rough_percent(most)}",
        judged=_judged(1.0 - right, 1.0 - most),
        clear=_is_clear(1.0 - right, 1.0 - most, len(pairs)),
        numbers={
            "n": len(pairs),
            "accuracy": right,
            "of_the_commonest": float(most),  # of always answering the commonest class
            "commonest": commonest,
            "classes": classes,
            "confusion": table,  # how often each class (column) was answered for each (row)
            "rejection": _rejection(true, answered, pairs) if np.ptp(weights) == 0.0 else None,
        },
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
    shown = (np.where(np.isin(names, kept), names, OTHERS) for names in (true, answered))
    table = pd.crosstab(*shown).reindex(index=classes, columns=classes, fill_value=0)
    return classes, table.to_numpy().tolist()


def _by_number(name: str) -> tuple[float, str]:
    """Return what puts names in order: numbers by size, then words."""
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


def _rejection(true: AnyArray, answered: AnyArray, pairs: pd.DataFrame) -> dict[str, Any] | None:
    """Return the rejection curve where probabilities tell answers apart; None elsewhere."""
    if (
        "probability" not in pairs
        or pairs["probability"].nunique() < 2
        or pairs["probability"].isna().any()
    ):
        return None
    errors, rejected = rejection_curve(true, answered, pairs["probability"].to_numpy(float))
    shown = evenly(len(errors), 200)
    return {
        "errors": plain(errors[shown]),
        "rejected": plain(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(errors[np.searchsorted(rejected, 0.5, side="right") - 1]),
    }
