"""Classes that prediction sets hold far more rarely, where they are the truth, than the level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy.stats import binom

# Labels of a class below which nothing is said of in how many sets it is, if it is in any.
FEWEST_SEEN = 3
FEWEST_MISSED = 5  # rows or hidden labels below which nothing is said of how often they are covered


def most_missed_class(coverage: pd.DataFrame, n_rows: int, level: float) -> Any:
    """Return the class that sets hold least, of those that they hold far too rarely; None if none.

    `coverage` has a line for each class: its `labels`, the sets of the `n_rows` rows that hold it
    (`in_sets`), its hidden labels (`judged`) and how many of these would be in their sets
    (`covered`).
    """
    n_labels = int(coverage["labels"].sum())
    missed = {
        name: line["covered"] / max(line["judged"], 1)
        for name, line in coverage.to_dict("index").items()
        if _is_missed(line, n_labels, n_rows, level)
    }
    if not missed:
        return None
    return min(missed, key=lambda name: missed[name])


def _is_missed(
    line: Mapping[Any, Any],
    n_labels: int,
    n_rows: int,
    level: float,
) -> bool:
    """Return whether sets hold a class far less often, where it is the true one, than the level."""
    # Sets hold a class at no fewer rows than those of it that are covered: its share of the rows
    # times its coverage.
    share = line["labels"] / n_labels
    # One label says little of how many rows are of its class; that they are none would be odd.
    seen = line["labels"] >= FEWEST_SEEN or line["in_sets"] == 0
    enough = seen and share * n_rows >= FEWEST_MISSED
    in_hardly_any = enough and line["in_sets"] < 0.5 * share * n_rows
    judged = line["judged"]
    # So few covered, or fewer, have a probability of 5 % at most if the class is covered at the
    # level.
    often_missed = judged >= FEWEST_MISSED and binom.cdf(line["covered"], judged, level) <= 0.05
    return bool(in_hardly_any or often_missed)
