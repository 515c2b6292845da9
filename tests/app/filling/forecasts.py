"""What is said before a fit, beside what is given after it: tables, designs, and how to compare them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from transduce import fill
from transduce.app.filling.forecast import forecast_guarantee
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import (
    ByClass,
    ByValue,
    Chance,
    ConformalTransducer,
    Drawn,
    Estimated,
    Grouped,
    Sampled,
)
from transduce.conformal.designs import ESTIMATED
from transduce.conformal.forecast import DRIFTING, ROUNDED, SHIFTED, UNEVEN
from transduce.model_selection.methods import METHODS

DESIGNS: dict[str, Any] = {
    "chance": None,
    "chance, not weighed": Chance(reweight=False),
    "within categories": Chance(within="category"),
    "along an order": Chance(order="place"),
    "odds off by 2": Chance(sensitivity=2.0),
    "drawn": Drawn("drawn"),
    "drawn, some empty": Drawn("drawn_and_empty"),
    "equal probabilities": Sampled("probability"),
    "other probabilities": Sampled("uneven_probability"),
    "groups": Grouped("group"),
    "unknown": Estimated(),
    "by value": ByValue(),
    "by class": ByClass(),
    "by class, shares": ByClass({"low": 0.7, "high": 0.3}),
}
# On both sides of each switch: labels that a fit takes (3), that 80, 90 and 95 % take without holding any out (4, 9,
# 19), and of which some are held out (7, 13, 28), "row" or "column" by default (50 classes, 200 numbers).
COUNTS = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    13,
    14,
    18,
    19,
    20,
    27,
    28,
    29,
    40,
    49,
    50,
    51,
    60,
    100,
)
COUNTS += (199, 200, 201, 250)
# Columns that say how labels came about; a design ignores those of the others.
OF_DESIGNS = ("category", "place", "drawn", "drawn_and_empty", "probability", "uneven_probability")
OF_DESIGNS += ("group",)
GUARANTEES = ("auto", "row", "column")
LEVELS = (0.8, 0.9, 0.95)
TASKS = ("regression", "classification")


def make_table(
    task: str, n_labels: int, *, n_unlabelled: int = 40, shift: float = 0.0
) -> pd.DataFrame:
    """Return a table with so many labels, and columns for every design; `shift` moves the unlabelled rows."""
    rng = np.random.default_rng(n_labels)
    n_rows = n_labels + n_unlabelled
    labelled = rng.permutation(n_rows) < n_labels
    x = rng.normal(size=n_rows) + shift * ~labelled
    y = x + 0.5 * rng.normal(size=n_rows)
    frame = pd.DataFrame({"x": x, "z": rng.normal(size=n_rows)})
    target = pd.Series(y) if task == "regression" else pd.Series(np.where(y > 0.3, "high", "low"))
    frame["y"] = target.astype(float if task == "regression" else object).where(labelled)
    frame["category"] = np.where(rng.random(n_rows) < 0.7, "many", "few")
    frame["place"] = rng.permutation(n_rows)
    draws = rng.permutation(np.flatnonzero(labelled))[: max(n_labels // 3, 1)]
    frame["drawn"] = np.isin(np.arange(n_rows), draws)
    frame["drawn_and_empty"] = frame["drawn"] | np.isin(
        np.arange(n_rows), np.flatnonzero(~labelled)[: n_labels // 40 + 1]
    )
    share = n_labels / n_rows
    frame["probability"] = share
    frame["uneven_probability"] = np.clip(share * rng.uniform(0.3, 1.5, n_rows), 0.01, 0.99)
    # Groups of one to three rows, none of which has rows of both kinds.
    frame["group"] = np.where(labelled, 0, 10_000) + rng.integers(0, max(n_rows // 2, 2), n_rows)
    return frame


@dataclass(frozen=True)
class Case:
    """One fill."""

    task: str
    n_labels: int
    design: str
    guarantee: str = "auto"
    confidence: float = 0.9
    label_conditional: bool = False
    method: str = "ridge"

    @property
    def is_meant(self) -> bool:
        """Whether anybody would ask for it."""
        if self.label_conditional and self.task == "regression":
            return False
        return self.task in METHODS[self.method].tasks

    def options(self) -> dict[str, Any]:
        """Return the options of `fill`."""
        design = DESIGNS[self.design]
        used = [] if design is None else design.columns
        options = {"labels": design, "guarantee": self.guarantee}
        options["ignore"] = [name for name in OF_DESIGNS if name not in used]
        options |= {"confidence": self.confidence, "method": self.method}
        return options | {"label_conditional": self.label_conditional}


def events_of(result: Any) -> set[str]:
    """Return what turned out in a fit that could not be known before."""
    guarantee, model = result.guarantee, result.model
    events = set()
    if guarantee.verdict is not None and guarantee.verdict.shifted:
        events.add(SHIFTED)
    if guarantee.drift is not None and guarantee.drift.found:
        events.add(DRIFTING)
    if isinstance(model, ConformalTransducer):
        table = model._fit.table
        level = float(model.confidence)
        all_open = table.n_unbounded(level) == len(table.unlabelled.values)
        if table.weights.kind == ESTIMATED and (not table.supports(level) or all_open):
            events.add(UNEVEN)
    elif getattr(model, "_machine", None) is not None and model._machine.jitter > 0.0:
        events.add(ROUNDED)
    return events


def differences(case: Case, frame: pd.DataFrame, **more: Any) -> list[str]:
    """Return in what a forecast differs from what `fill` then gives; a column may turn out to be bounded."""
    given = case.options() | more
    options = Options.read(given)
    try:
        forecast = forecast_guarantee(FrameSource.read(frame, "y", options), options)
        refusal = forecast.refusal
    except ValueError as error:
        refusal = str(error)  # the table cannot be read at all
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = fill(frame, "y", **given)
    except ValueError as error:
        return [] if refusal == str(error) else [f"refused: {refusal!r}, then {error}"]
    if refusal:
        return [f"refused: {refusal!r}, then filled"]
    events = events_of(result)
    before, after = forecast.after(events), result.guarantee
    names = ("kind", "about", "confidence", "n_calibration", "n_labelled", "within", "n_groups")
    if not events:
        names += ("outside", "assumptions", "n_short", "short", "n_other", "of_rows", "n_empty")
        names += ("any_class", "condition", "headline", "decisive", "factor")
        if DESIGNS[case.design] != Estimated():  # beyond all labelled rows nothing is ruled out
            names += ("n_unbounded",)
    found = [
        f"{name}: {getattr(before, name)!r}, then {getattr(after, name)!r}"
        for name in names
        if getattr(before, name) != getattr(after, name)
    ]
    if before.outside is not None and after.outside is None:
        found.append(f"the column was to be bounded, and is not after {events}")
    return found
