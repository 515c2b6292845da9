"""What a user says of how labels came about: columns of the table, read and checked, as settings of the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.designs import is_mask, read_codes, read_factor
from transduce.core import checks
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import SHIFTS
from transduce.tables.labels import Target, read_marks


@dataclass(frozen=True)
class HowLabelled:
    """Names of columns, and settings, as `transduce.fill` takes them."""

    random_labels: Any = None
    sampling_probability: Any = None
    shift: str = "auto"
    sensitivity: float = 1.0
    groups: Any = None
    within: Any = None
    order: Any = None

    @property
    def columns(self) -> list[Any]:
        """The columns that are named."""
        return [*self.not_features, *([] if self.within is None else [self.within])]

    @property
    def not_features(self) -> list[Any]:
        """The columns that say something of labels or rows, and from which nothing is learned."""
        named = (self.random_labels, self.sampling_probability, self.groups, self.order)
        return [name for name in named if name is not None]

    @property
    def calibrates(self) -> bool:
        """Whether labels must be held out to make use of it."""
        return bool(self.columns) or self.sensitivity != 1.0 or self.shift == "estimate"

    @property
    def needs_all_rows(self) -> bool:
        """Whether a fit to a sample of the rows cannot make use of it: it knows random labels alone."""
        usual = HowLabelled(random_labels=self.random_labels)
        return self.calibrates and self != usual

    @property
    def odd(self) -> str:
        """The first setting that was given besides random labels; "" if none was."""
        usual = HowLabelled(random_labels=self.random_labels)
        names = self.__dataclass_fields__
        return next((name for name in names if getattr(self, name) != getattr(usual, name)), "")

    def check(self, target: Any, guarantee: str, method: str) -> None:
        """Raise a ValueError that says what to correct."""
        checks.check_choice("shift", self.shift, SHIFTS)
        read_factor(self.sensitivity)
        if target in self.columns:
            raise ValueError(
                f"{target!r} is the target: it cannot be ignored, read as text, or name or mark rows."
            )
        if not self.calibrates:
            return
        given = self.given()
        if guarantee == "row":
            verb = "calibrate" if given == "random_labels" else "needs labels that calibrate"
            raise ValueError(
                f"{given} {verb}, which guarantee 'row' does not have: leave out one of the two."
            )
        if str(method).replace("_", "-").lower() == "confidence-machine":
            raise ValueError(f"{given} needs labels that calibrate: choose another method than the machine.")

    def given(self) -> str:
        """Return the first of the settings that was given."""
        usual = HowLabelled()
        return next(name for name in self.__dataclass_fields__ if getattr(self, name) != getattr(usual, name))

    def settings(self, frame: pd.DataFrame, target: Target) -> dict[str, Any]:
        """Return what to tell a `ConformalTransducer`, or raise a ValueError that names the column."""
        found: dict[str, Any] = {"shift": self.shift, "sensitivity": float(self.sensitivity)}
        if self.random_labels is not None:
            found["calibration"] = _drawn(frame, target, self.random_labels)
        if self.sampling_probability is not None:
            found["sampling_probability"] = _probabilities(frame, self.sampling_probability, target.missing)
        if self.groups is not None:
            found["groups"] = _codes(frame, self.groups, "groups")
        if self.within is not None:
            _codes(frame, self.within, "categories")
            found["within"] = frame[self.within].to_numpy(dtype=object)
        if self.order is not None:
            found["order"] = _order(frame, self.order)
        return found


def n_drawn(settings: dict[str, Any]) -> int | None:
    """Return how many labels are of rows drawn at random; None if no column says so."""
    marks = settings.get("calibration")
    return int(marks.sum()) if is_mask(marks) and marks is not None else None


def _drawn(frame: pd.DataFrame, target: Target, name: Any) -> Mask:
    """Return which labelled rows were drawn at random."""
    drawn = read_marks(frame, name) & ~target.missing
    if not drawn.any():
        raise ValueError(f"No row that {name!r} marks as drawn at random has a label in {target.name!r}.")
    return drawn


def _probabilities(frame: pd.DataFrame, name: Any, missing: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled."""
    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        raise ValueError(
            f"Column {name!r} says with which probability each row was chosen to be labelled: it must lie above 0 and "
            f"be at most 1, and row {bad[0] + 1} has {_cell(frame, name, bad[0])}."
        )
    sure = np.flatnonzero(missing & (numbers == 1.0))
    if len(sure):
        raise ValueError(
            f"By column {name!r}, row {sure[0] + 1} was sure to be labelled, and it has no label: give it the "
            "probability it had."
        )
    return numbers


def _codes(frame: pd.DataFrame, name: Any, what: str) -> AnyArray:
    """Return the number of each row's group or category."""
    holes = np.flatnonzero(frame[name].isna())
    if len(holes):
        raise ValueError(
            f"Column {name!r} names {what}, and row {holes[0] + 1} has none: fill that hole first."
        )
    return read_codes(what, frame[name].to_numpy(dtype=object), len(frame))[0]


def _order(frame: pd.DataFrame, name: Any) -> Array:
    """Return the place of each row along an order: numbers, or times as their ranks."""
    column = frame[name]
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.isna().any() or pd.api.types.is_datetime64_any_dtype(column):
        times = pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
        numbers = times.rank().where(times.notna())
    bad = np.flatnonzero(numbers.isna())
    if len(bad):
        raise ValueError(
            f"Column {name!r} orders the rows, and row {bad[0] + 1} has {_cell(frame, name, bad[0])}: it must be a "
            "number or a date in each."
        )
    return numbers.to_numpy(dtype=float)


def _cell(frame: pd.DataFrame, name: Any, row: int) -> str:
    cell = frame[name].iloc[row]
    return "nothing" if pd.isna(cell) else repr(cell.item() if hasattr(cell, "item") else cell)
