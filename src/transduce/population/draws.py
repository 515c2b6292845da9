"""Rows that are drawn at random to be labelled, and columns that mark them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import quoted

YES = ("true", "yes", "y", "1", "1.0", "x")
NO = ("false", "no", "n", "0", "0.0", "", "nan", "none", "<na>")
Allocation = Literal["equal", "proportional", "neyman"]
N_BANDS = 5  # of uncertainty, which are strata
FEWEST_A_STRATUM = 2  # rows drawn from each, if the number allows it: its spread can be told
# What each stratum gets at least if spreads are not known yet, as a share of what it would get in
# proportion to its size. If the spreads are in truth the same everywhere, a total is then known at
# most a twentieth less precisely than from rows drawn from all alike: 1.1 ** 0.5 = 1.049. Equal
# numbers from each class made exact intervals from 30 checks of a class of 2 % up to 1.47 times as
# wide as labels alone do. With it none of the 36 cases of benchmarks/audit.py is wider than these,
# and cases with 30 or 100 checks of a class of 2 or 5 % are narrower than by the root of the size
# alone; with 300 checks they are up to a tenth wider.
LEAST_OF_PROPORTION = 1.0 / 1.1


def read_marks(frame: pd.DataFrame, name: ColumnName) -> Mask:
    """Return which rows (n,) a column marks.

    Raise a ValueError that names a word for neither yes nor no.
    """
    words = (
        frame[name]
        .astype(object)
        .map(lambda cell: "" if pd.isna(cell) else str(cell).strip().lower())
    )
    odd = ~words.isin([*YES, *NO])
    if odd.any():
        cell = frame[name][odd].iloc[0]
        raise ValueError(
            f"Column {name!r} marks rows, but holds {quoted(cell)}: write true or yes where a row "
            "is marked, and false or nothing elsewhere."
        )
    return words.isin(YES).to_numpy(dtype=bool)


def read_drawn_from(frame: pd.DataFrame, name: ColumnName, drawn: Mask) -> Mask:
    """Return which rows (n,) could be drawn, from a column of probabilities and the drawn rows."""
    probabilities = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
    return np.asarray(drawn | (np.nan_to_num(probabilities, nan=0.0) > 0.0))


def draw_rows(missing: Mask, number: int, seed: int) -> AnyArray:
    """Return the positions (number,) of some rows where a label is missing (n,).

    The rows are drawn at random; their positions ascend.
    """
    rows = np.flatnonzero(missing)
    if not 1 <= number <= len(rows):
        raise ValueError(
            f"There are {len(rows):,} rows without a label: {number:,} of them cannot be drawn."
        )
    return np.sort(np.random.default_rng(seed).choice(rows, number, replace=False))


@dataclass(frozen=True, eq=False)
class StratifiedDraw:
    """Rows that were drawn at random from each stratum by itself.

    Attributes
    ----------
    rows : int array of shape (k,)
        Positions of the rows drawn, ascending.
    probabilities : array of shape (n,)
        The probability with which each row was drawn; 0 where it could not be.
    """

    rows: AnyArray
    probabilities: Array


def draw_from_strata(
    missing: Mask, strata: AnyArray, numbers: AnyArray, seed: int
) -> StratifiedDraw:
    """Draw rows where a label is missing (n,), a simple random sample from each stratum.

    Parameters
    ----------
    missing : boolean array of shape (n,)
    strata : int array of shape (n,)
        The number of the stratum of each row.
    numbers : int array of shape (H,)
        How many rows to draw from each.
    seed : int
    """
    sizes = np.bincount(strata[missing], minlength=len(numbers))
    generator = np.random.default_rng(seed)
    drawn = []
    for stratum, count in enumerate(numbers.tolist()):
        rows = np.flatnonzero(missing & (strata == stratum))
        drawn.append(generator.choice(rows, count, replace=False))
    shares = numbers / np.maximum(sizes, 1)
    probabilities = np.where(missing, shares[strata], 0.0)
    return StratifiedDraw(np.sort(np.concatenate(drawn)), probabilities)


def allocate(
    sizes: AnyArray, number: int, how: Allocation, spreads: Array | None = None
) -> AnyArray:
    """Return how many rows to draw from strata of these sizes (H,), `number` in all.

    Equal numbers, numbers in proportion to the sizes, or in proportion to size times spread
    (Neyman 1934), which makes the estimate of a total most precise. None gets more than it has, and
    each gets at least two where the number allows it. Spreads that nobody knows yet leave each
    stratum at least `LEAST_OF_PROPORTION` of its number in proportion.
    """
    n_rows = int(np.sum(sizes))
    if not 1 <= number <= n_rows:
        raise ValueError(
            f"There are {n_rows:,} rows without a label: {number:,} of them cannot be drawn."
        )
    proportional = number * sizes / n_rows
    weights = sizes.astype(float)
    if how == "equal":
        weights = np.ones(len(sizes))
    elif how == "neyman":
        weights = np.sqrt(sizes)  # rows of a rare class are wrong more often
        if spreads is not None:
            weights = sizes * np.maximum(spreads, 1e-9)
    fewest = np.minimum(sizes, FEWEST_A_STRATUM)
    if int(np.sum(fewest)) > number:
        fewest = np.zeros_like(sizes)
    if how == "neyman" and spreads is None:
        guarded = guarded_numbers(sizes, number)
        if np.sum(guarded) > number:
            weights = proportional
        else:
            fewest = guarded
    return _share_out(sizes, number, weights, fewest)


def guarded_numbers(sizes: AnyArray, number: int) -> AnyArray:
    """Return how many rows strata of these sizes (H,) get at least, if spreads are a guess."""
    proportional = number * sizes / np.sum(sizes)
    least = np.ceil(LEAST_OF_PROPORTION * proportional - 1e-9).astype(sizes.dtype)
    return np.maximum(np.minimum(sizes, FEWEST_A_STRATUM), least)


def join_small_strata(sizes: AnyArray, number: int, how: Allocation = "neyman") -> Mask:
    """Return which strata (H,) to join to one, so that `number` rows suffice for all that are left.

    Two rows from each of 50 classes would leave none of 100 for frequent ones, and a stratum of
    which no row is drawn may hold anything. So as few of the smallest as possible are joined. Equal
    numbers are what was asked for: two rows from each then suffice.
    """
    is_joined = np.zeros(len(sizes), dtype=bool)
    smallest = [stratum for stratum in np.argsort(sizes, kind="stable") if sizes[stratum]]
    for n_joined in range(1, len(smallest) + 1):
        if n_joined > 1:
            is_joined[smallest[:n_joined]] = True
        left = np.append(sizes[~is_joined], sizes[is_joined].sum())
        fewest = guarded_numbers(left, number)
        if how == "equal":
            fewest = np.minimum(left, FEWEST_A_STRATUM)
        if np.sum(fewest) <= number:
            break
    return is_joined


def _share_out(sizes: AnyArray, number: int, weights: Array, fewest: AnyArray) -> AnyArray:
    """Return whole numbers (H,) in proportion to weights, between the fewest and the sizes."""
    numbers = fewest.copy()
    while (left := number - int(np.sum(numbers))) > 0:
        available = sizes - numbers
        # What each would have of all, less what it has already.
        wanted = np.where(available > 0, weights, 0.0)
        wanted = np.maximum(number * wanted / np.sum(wanted) - numbers, 0.0)
        if not np.sum(wanted) > 0.0:
            wanted = np.where(available > 0, 1.0, 0.0)
        exact = np.minimum(left * wanted / np.sum(wanted), available)
        whole = np.floor(exact).astype(np.int64)
        if not whole.any():
            # Fewer are left than there are strata: those with the largest remainders get one each.
            order = np.argsort(-exact, kind="stable")[:left]
            whole[order] = np.minimum(1, available[order])
        numbers = numbers + whole
    return numbers


def expected_spreads(n_checked: AnyArray, n_wrong: AnyArray) -> Array | None:
    """Return the standard deviation expected of a yes-or-no question in each stratum, shape (H,).

    From the rows that were checked, smoothed as by two more of them; None if there are none.
    """
    if not np.any(n_checked):
        return None
    share = (n_wrong + 1.0) / (n_checked + 2.0)
    return np.asarray(np.sqrt(share * (1.0 - share)))


def uncertainty_bands(uncertainty: Array) -> AnyArray:
    """Return the band of each row (n,) by how uncertain its prediction is, 0 the most certain.

    Bands hold about equally many rows; rows of equal uncertainty are in one.
    """
    edges = np.quantile(uncertainty, np.linspace(0.0, 1.0, N_BANDS + 1)[1:-1])
    return np.searchsorted(np.unique(edges), uncertainty, side="left")
