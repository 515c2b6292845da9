"""How good out-of-fold answers were: scores, pairs to plot, tables of confusion, rejection curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray
from transduce.metrics import rejection_curve
from transduce.report.wording import name_of, plain

MOST_POINTS = 1000  # in a plot
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"


def evenly(length: int, most: int) -> AnyArray:
    """Return at most so many of the positions 0, 1, ..., spread evenly."""
    if length <= most:
        return np.arange(length)
    return np.round(np.linspace(0, length - 1, most)).astype(int)


def number_quality(out_of_fold: pd.DataFrame) -> dict[str, Any] | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true, answered = pairs["true"].to_numpy(float), pairs["answered"].to_numpy(float)
    off, around = np.abs(answered - true), np.abs(true - true.mean())
    spread = float(np.sum(around**2))
    shown = evenly(len(pairs), MOST_POINTS)
    return {
        "n": len(pairs),
        "n_without_answer": len(out_of_fold) - len(pairs),
        "mean_absolute_error": float(off.mean()),
        "median_absolute_error": float(np.median(off)),
        "of_the_mean": float(around.mean()),
        "r2": 1.0 - float(np.sum(off**2)) / spread if spread > 0.0 else None,
        "true": true[shown].tolist(),
        "answered": answered[shown].tolist(),
    }


def class_quality(out_of_fold: pd.DataFrame) -> dict[str, Any] | None:
    """Return scores of classes, who was taken for whom, and errors as unsure answers are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    true = np.array([name_of(value) for value in pairs["true"].tolist()], dtype=object)
    answered = np.array([name_of(value) for value in pairs["answered"].tolist()], dtype=object)
    names, frequency = np.unique(true.astype(str), return_counts=True)
    classes, table = _confusion(true, answered)
    return {
        "n": len(pairs),
        "n_without_answer": len(out_of_fold) - len(pairs),
        "accuracy": float(np.mean(true == answered)),
        "of_the_commonest": float(frequency.max() / len(pairs)),
        "commonest": str(names[frequency.argmax()]),
        "classes": classes,
        "confusion": table,
        "rejection": _rejection(true, answered, pairs),
    }


def _confusion(true: AnyArray, answered: AnyArray) -> tuple[list[str], list[list[int]]]:
    """Return classes, the most frequent ones by name, and how often each was answered for each."""
    both = pd.Series(np.concatenate([true, answered]))
    frequent = both.value_counts(sort=True)
    frequent = frequent.sort_index(kind="stable").sort_values(ascending=False, kind="stable")
    kept = list(frequent.index)
    if len(kept) > MOST_CLASSES:
        kept = kept[: MOST_CLASSES - 1]
    classes = sorted(kept, key=_by_number) + ([OTHERS] if len(kept) < len(frequent) else [])
    place = {name: i for i, name in enumerate(classes)}
    table = np.zeros((len(classes), len(classes)), dtype=int)
    last = len(classes) - 1
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
    at_half = errors[np.searchsorted(rejected, 0.5, side="right") - 1]
    return {
        "errors": plain(errors[shown]),
        "rejected": plain(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(at_half),
    }
