"""Settings that say how labels came about, checked: each with one sentence that says what to correct."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.chosen import ESTIMATE, Chosen
from transduce.core import checks
from transduce.core.names import SHIFTS
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.hidden_labels import Problem

# Settings that exclude each other, and why.
APART = {
    ("calibration", "sampling_probability"): "rows drawn at random need no probabilities",
    ("calibration", "groups"): "rows drawn at random calibrate one by one",
    ("sampling_probability", "groups"): "probabilities are of rows, and groups are held out as a whole",
    ("groups", "within"): "groups are held out as a whole, categories calibrate one by one",
    ("groups", "label_conditional"): "groups are held out as a whole, classes calibrate one by one",
    ("within", "label_conditional"): "rows are compared within categories or within classes",
    ("shift='estimate'", "calibration"): "rows drawn at random leave nothing to estimate",
    ("shift='estimate'", "sampling_probability"): "known probabilities leave nothing to estimate",
    ("shift='estimate'", "groups"): "odds are estimated for rows, and groups are held out as a whole",
}


def read_chosen(params: dict[str, Any], problem: Problem) -> Chosen:
    """Return what settings say of how labels came about, or raise a ValueError that says what to correct."""
    checks.check_choice("shift", params["shift"], SHIFTS)
    there = {name for name in ("sampling_probability", "groups", "within") if params[name] is not None}
    there |= {"calibration"} if is_mask(params["calibration"]) else set()
    there |= {"label_conditional"} if params["label_conditional"] else set()
    there |= {"shift='estimate'"} if params["shift"] == ESTIMATE else set()
    for (one, other), why in APART.items():
        if {one, other} <= there:
            raise ValueError(f"{one} and {other} exclude each other ({why}): leave out one of the two.")
    labelled, n = problem.sample.labelled, problem.n_rows
    probability, groups, within = (params[name] for name in ("sampling_probability", "groups", "within"))
    categories, names = (None, ()) if within is None else read_codes("within", within, n)
    return Chosen(
        read_drawn(params["calibration"], problem) if "calibration" in there else None,
        None if probability is None else read_probability(probability, labelled),
        params["shift"],
        read_factor(params["sensitivity"]),
        None if groups is None else read_groups(groups, labelled),
        categories,
        names,
        None if params["order"] is None else read_order(params["order"], n),
    )


def read_factor(sensitivity: Any) -> float:
    """Return the factor by which odds may be off, or raise a ValueError."""
    factor = checks.check_positive("sensitivity", sensitivity)
    if factor < 1.0:
        raise ValueError(f"sensitivity must be a factor from 1 on, for example 1.5; got {sensitivity!r}.")
    return factor


def read_probability(probability: Any, labelled: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled, or raise a ValueError."""
    try:
        numbers = np.asarray(probability, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != labelled.shape:
        raise ValueError(
            f"sampling_probability must be a number for each of the {len(labelled)} rows: the probability with which "
            "the row was chosen to be labelled."
        )
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        raise ValueError(
            f"sampling_probability must lie above 0 and be at most 1, and is {numbers[bad[0]]:g} at row {bad[0]} "
            "(counted from 0): a row that could not be chosen has nothing in common with those that were."
        )
    sure = np.flatnonzero(~labelled & (numbers == 1.0))
    if len(sure):
        raise ValueError(
            f"sampling_probability is 1 at row {sure[0]} (counted from 0), which has no label: a row that was sure to "
            "be labelled cannot lack one."
        )
    return numbers


def read_codes(name: str, cells: Any, n: int) -> tuple[AnyArray, tuple[str, ...]]:
    """Return the number of each row's group or category, and their names, or raise a ValueError."""
    column = pd.Series(np.asarray(cells, dtype=object) if np.ndim(cells) == 1 else [], dtype=object)
    if len(column) != n:
        raise ValueError(f"{name} must name a group or category for each of the {n} rows.")
    holes = np.flatnonzero(column.isna())
    if len(holes):
        raise ValueError(
            f"{name} has a hole at row {holes[0]} (counted from 0): name a group or category for each row."
        )
    codes, values = pd.factorize(column, sort=False)
    order = np.argsort([str(value) for value in values], kind="stable")
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    return place[codes], tuple(repr(_plain(values[k])) for k in order)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def read_groups(groups: Any, labelled: Mask) -> AnyArray:
    """Return the number of each row's group, or raise a ValueError that says what to correct."""
    codes, _ = read_codes("groups", groups, len(labelled))
    if len(np.unique(codes[labelled])) < 2:
        raise ValueError("All labels are of one group: at least one other is needed to calibrate.")
    if not labelled.all() and np.isin(codes[~labelled], codes[labelled]).all():
        raise ValueError(
            "Every group has a label, and groups=... is for rows of groups that have none. Leave it out: if chance "
            "chose which rows have a label, the guarantee holds without it."
        )
    return codes


def read_order(order: Any, n: int) -> Array:
    """Return the place of each row along an order as a number, or raise a ValueError."""
    column = pd.Series(order).reset_index(drop=True) if np.ndim(order) == 1 else pd.Series(dtype=float)
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        column = column.rank()
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if len(numbers) != n or not np.isfinite(numbers).all():
        raise ValueError(f"order must be a number or a time for each of the {n} rows, with no hole.")
    return numbers


def is_mask(calibration: Any) -> bool:
    """Return whether calibration rows are marked, one True or False for each row of the table."""
    return not isinstance(calibration, str) and np.ndim(calibration) == 1


def read_drawn(calibration: Any, problem: Problem) -> Mask:
    """Return which labels are of rows that were drawn at random, shape (l,), or raise a ValueError."""
    marks = np.asarray(calibration)
    if marks.shape != (problem.n_rows,) or marks.dtype.kind != "b":
        raise ValueError(
            f"calibration as a mask needs True or False for each of the {problem.n_rows} rows: True where a row was "
            "drawn at random to be labelled."
        )
    drawn = marks[problem.rows]
    if not drawn.any():
        raise ValueError(
            "No row that calibration marks as drawn at random has a label: label some of them first."
        )
    if drawn.all():
        raise ValueError("All labels are marked for calibration: at least one other is needed to learn from.")
    return drawn
