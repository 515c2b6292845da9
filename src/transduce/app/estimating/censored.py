"""Shares and quantiles of a column some of whose labels are limits, such as "<0.5".

Such a label counts as far as it decides the question. Where it does not, the question is answered
for both ends of what the label may be, and the interval holds both answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce import population
from transduce.app.estimating.predicted import PredictedColumn
from transduce.core.types import Array, Mask
from transduce.core.words import counted


def find_undecided(column: PredictedColumn, above: float | None, below: float | None) -> Mask:
    """Return the rows (n,) whose label is a limit that may lie between two numbers, or not."""
    surely_inside, surely_outside = _find_decided(column, above, below)
    return column.target.censored & ~surely_inside & ~surely_outside


def _find_decided(
    column: PredictedColumn, above: float | None, below: float | None
) -> tuple[Mask, Mask]:
    """Return the labelled rows (n,) that surely lie between two numbers, and those that do not."""
    least, most = column.target.bounds
    low = -np.inf if above is None else float(above)
    high = np.inf if below is None else float(below)
    with np.errstate(invalid="ignore"):
        inside = (least > low) | (low == -np.inf)
        inside &= (most < high) | (high == np.inf)
        outside = (most <= low) | (least >= high)
    return inside, outside


def estimate_share(
    column: PredictedColumn, above: float | None, below: float | None, how: dict[str, Any]
) -> pd.DataFrame:
    """Return the share of rows between two numbers; `how` has the other settings.

    Labels that leave it open count as inside in one answer, and as outside in another.
    """
    asked: dict[str, Any] = {"above": above, "below": below, **how}
    if not column.target.censored.any():
        return population.estimate_share(column.numbers, column.predictions, **asked)
    inside, outside = _find_decided(column, above, below)
    undecided = column.target.censored & ~inside & ~outside
    fewest = _counted_as(column, inside & ~undecided, above, below)
    frame = population.estimate_share(fewest, column.predictions, **asked)
    if not undecided.any():
        return frame
    most = _counted_as(column, inside | undecided, above, below)
    return _join_answers(frame, population.estimate_share(most, column.predictions, **asked))


def _counted_as(
    column: PredictedColumn, inside: Mask, above: float | None, below: float | None
) -> Array:
    """Return the labels (n,) with limits moved to where `inside` (n,) says that they lie.

    Each is moved no further than it has to be: predictions are judged by how far off they are.
    """
    low = -np.inf if above is None else float(above)
    high = np.inf if below is None else float(below)
    values = column.numbers
    if not low < high:  # the question is refused where it is answered
        return values
    sides = column.target.all_sides
    within = np.clip(values, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    downwards = (sides < 0) & (low > -np.inf) | (high == np.inf)
    beyond = np.where(downwards, np.minimum(values, low), np.maximum(values, high))
    beyond = np.where((values > low) & (values < high), beyond, values)
    return np.where(column.target.censored, np.where(inside, within, beyond), values)


def estimate_quantile(column: PredictedColumn, q: float, how: dict[str, Any]) -> pd.DataFrame:
    """Return a quantile; an end is infinite where a label that is a limit may be the quantile.

    Above all limits such as "<0.5", and below all such as ">20", labels decide the share of rows
    up to a number, and ends are what they would be. Elsewhere the lower end comes from labels as
    small as they may be, the upper one from labels as large.
    """
    labels = column.numbers
    frame = population.estimate_quantile(labels, column.predictions, q=q, **how)
    if not column.target.censored.any():
        return frame
    sides = column.target.all_sides
    is_low = column.target.censored & (sides < 0)
    is_high = column.target.censored & (sides > 0)
    largest = np.max(labels, initial=-np.inf, where=is_low)
    smallest = np.min(labels, initial=np.inf, where=is_high)
    far_below, far_above = _numbers_around(column)
    lowest = np.where(is_low, far_below, labels)
    highest = np.where(is_high, far_above, labels)
    low = population.estimate_quantile(lowest, column.predictions, q=q, **how)
    high = population.estimate_quantile(highest, column.predictions, q=q, **how)
    low = low.replace(far_below, -np.inf)
    high = high.replace(far_above, np.inf)
    joined = frame.copy()
    for name in ("lower", "labels_alone_lower"):
        is_open = frame[name] <= largest
        joined[name] = frame[name].mask(is_open, np.minimum(low[name], largest))
    for name in ("upper", "labels_alone_upper"):
        is_open = frame[name] >= smallest
        joined[name] = frame[name].mask(is_open, np.maximum(high[name], smallest))
    for name in ("estimate", "labels_alone"):
        is_told = (frame[name] > largest) & (frame[name] < smallest)
        is_told |= (frame[name] == low[name]) & (frame[name] == high[name])
        joined[name] = frame[name].where(is_told)
    moved = (joined["lower"] != frame["lower"]) | (joined["upper"] != frame["upper"])
    says_nothing = np.isinf(joined["lower"]) & np.isinf(joined["upper"])
    says_nothing |= frame["kind"] == "none"
    joined["kind"] = _least_sure([frame, low, high]).where(moved, frame["kind"])
    joined.loc[says_nothing, "kind"] = "none"
    joined.loc[says_nothing, "lower"] = -np.inf
    joined.loc[says_nothing, "upper"] = np.inf
    joined["labels_for_half"] = frame["labels_for_half"].mask(moved | says_nothing)
    joined["worth"] = frame["worth"].mask(moved, frame["n_labels"].astype(float))
    return joined


def _numbers_around(column: PredictedColumn) -> tuple[float, float]:
    """Return a number below all labels and predictions, and one above."""
    known = column.numbers[~column.target.missing]
    if column.predictions is not None:
        known = np.append(known, column.predictions[np.isfinite(column.predictions)])
    beside = max(1.0, float(np.ptp(known)))
    return float(known.min()) - beside, float(known.max()) + beside


def _least_sure(frames: list[pd.DataFrame]) -> pd.Series:
    """Return for each line what kind of promise the least sure of several answers makes.

    An answer that promises nothing has no end that could be used.
    """
    has_exact = [frame["kind"] != "approximate" for frame in frames]
    all_exact = pd.concat(has_exact, axis=1).all(axis=1)
    return all_exact.map({True: "exact", False: "approximate"})


def _join_answers(fewest: pd.DataFrame, most: pd.DataFrame) -> pd.DataFrame:
    """Return answers whose intervals hold those of both; the estimate is the middle."""
    frame = fewest.copy()
    for name in ("lower", "labels_alone_lower"):
        frame[name] = np.minimum(fewest[name], most[name])
    for name in ("upper", "labels_alone_upper"):
        frame[name] = np.maximum(fewest[name], most[name])
    for name in ("estimate", "labels_alone"):
        frame[name] = (fewest[name] + most[name]) / 2.0
    frame["kind"] = _least_sure([fewest, most])
    frame.loc[(fewest["kind"] == "none") | (most["kind"] == "none"), "kind"] = "none"
    differ = (fewest["lower"] != most["lower"]) | (fewest["upper"] != most["upper"])
    # More labels do not close what limits leave open.
    frame["labels_for_half"] = frame["labels_for_half"].mask(differ)
    frame["worth"] = np.minimum(fewest["worth"], most["worth"])
    return frame


def note_on_share(
    column: PredictedColumn, above: float | None, below: float | None, rows: Mask
) -> str:
    """Return that labels of some rows (n,) leave a share open, in a sentence; "" if none does."""
    undecided = find_undecided(column, above, below) & rows
    n_open = int(np.sum(undecided))
    if not n_open:
        return ""
    sides = column.target.all_sides
    values = column.numbers
    closed = []
    if (undecided & (sides < 0)).any():
        closed.append(f"from {np.max(values[column.target.censored & (sides < 0)]):g} upwards")
    if (undecided & (sides > 0)).any():
        closed.append(f"up to {np.min(values[column.target.censored & (sides > 0)]):g}")
    is_one = n_open == 1
    return (
        f"{counted(n_open, 'label is a limit that leaves', 'labels are limits that leave')} this "
        f"question open, so that the interval holds the share with "
        f"{'it' if is_one else 'them'} counted either way, and the estimate is the middle: ask for "
        f"numbers {' and '.join(closed)}, and {'it decides' if is_one else 'they decide'}."
    )


def note_on_quantile(column: PredictedColumn, line: pd.Series, rows: Mask) -> str:
    """Return that a quantile may lie beyond a limit, in a sentence; "" if it does not."""
    numbers = line[["estimate", "lower", "upper"]].to_numpy(dtype=float)
    is_told = bool(np.isfinite(numbers).all())
    limits = column.target.censored & rows
    is_low = limits & (column.target.all_sides < 0)
    is_high = limits & (column.target.all_sides > 0)
    sentences = []
    if is_low.any() and not is_told and not line["lower"] > np.max(column.numbers[is_low]):
        sentences.append(
            "The quantile may lie below a label that is a limit, and how far is not known: ask "
            "for a higher quantile."
        )
    if is_high.any() and not is_told and not line["upper"] < np.min(column.numbers[is_high]):
        sentences.append(
            "The quantile may lie above a label that is a limit, and how far is not known: ask "
            "for a lower quantile."
        )
    return " ".join(sentences)
