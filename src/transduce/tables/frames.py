"""Frames of pandas and polars."""

from __future__ import annotations

from typing import Any

import pandas as pd


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a frame as pandas; a TypeError unless it is one of pandas or polars."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        return pd.DataFrame(table.to_pandas())
    raise TypeError(
        f"fill takes a pandas or polars frame; got {type(table).__name__}. Files are filled by the command `transduce "
        "fill`."
    )
