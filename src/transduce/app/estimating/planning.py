"""How many labels an interval of half the width would take, from the present spread."""

from __future__ import annotations

import numpy as np
import pandas as pd


def labels_for_half_width(n_labels: float, n_rows: float) -> float:
    """Return how many of `n_rows` rows need a label for half the width that `n_labels` give.

    The variance of an estimate is in proportion to ``1 / l - 1 / n``: with l labels of n rows nothing is
    left to chance once all have one. Predictions that get better with more labels need fewer.

    >>> round(labels_for_half_width(100, 10_000))
    388
    """
    if not 0 < n_labels < n_rows:
        return float(n_labels)
    quarter = (1.0 / n_labels - 1.0 / n_rows) / 4.0
    return 1.0 / (quarter + 1.0 / n_rows)


def add_plan(frame: pd.DataFrame, n_rows: list[int]) -> pd.DataFrame:
    """Return estimates with a column ``labels_for_half``: labels for an interval of half the width.

    `n_rows` counts the rows that each line is about. Where nothing is promised, or nothing unknown, it is
    missing.
    """
    needed = []
    for (_, line), rows in zip(frame.iterrows(), n_rows, strict=True):
        labels = labels_for_half_width(line["n_labels"], rows)
        has_width = line["kind"] != "none" and line["upper"] > line["lower"]
        if not has_width or line["n_labels"] >= rows:
            needed.append(pd.NA)
        else:
            needed.append(int(np.ceil(labels)))
    return frame.assign(labels_for_half=pd.array(needed, dtype="Int64"))
