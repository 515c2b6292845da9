"""A real table that comes with the package: house prices of California's districts in 1990."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pandas as pd

__all__ = ["load_houses"]

N_KNOWN = 150  # prices that stay
TARGET = "price"


def load_houses() -> tuple[pd.DataFrame, pd.Series]:
    """Return the table with missing prices, and the prices.

    Counts and medians are those that the Census Bureau published, in the public domain, as Pace and
    Barry (1997, Statistics and Probability Letters 33) put them together.

    Returns
    -------
    table, price : DataFrame of 400 rows, Series
        A district each, with eight measurements and its median price, 150 of which are known; and
        all prices.

    Examples
    --------
    >>> from transduce.datasets import load_houses
    >>> table, price = load_houses()
    >>> table.shape, int(table["price"].isna().sum()), int(price.isna().sum())
    ((400, 9), 250, 0)
    """
    with (
        resources.files("transduce.datasets").joinpath("houses.csv").open(encoding="utf-8") as file
    ):
        table = pd.read_csv(file)
    price = table[TARGET].astype(float)
    table[TARGET] = price.where(np.random.default_rng(0).permutation(len(table)) < N_KNOWN)
    return table, price
