"""Histograms of columns, small enough for the head of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from transduce.app.report.jsonable import escape_text
from transduce.core.types import Array, JsonObject

N_BARS = 14
FEWEST = 2  # different values, below which a histogram shows nothing


def shape_of_numbers(values: Array, *, dates: bool = False) -> JsonObject | None:
    """Return how often numbers fall into each of equal parts between their ends.

    The outermost hundredth on either side counts to the outermost bars: a few values far from all
    others would leave one bar.

    Parameters
    ----------
    values : array of shape (n,)
        NaN where a cell is empty.
    dates : bool, default=False
        Whether these are seconds since 1970.

    Returns
    -------
    dict or None
        ``counts`` of the bars, and the ``ends``; None of fewer than two different values.
    """
    known = values[np.isfinite(values)]
    different = np.unique(known[: 10 * N_BARS])
    if len(different) < FEWEST:
        different = np.unique(known)
    if len(different) < FEWEST:
        return None
    low, high = np.quantile(known, [0.01, 0.99])
    if low == high:
        low = known.min()
        high = known.max()
    n_bars = min(N_BARS, max(len(np.unique(known)), FEWEST))
    counts, _ = np.histogram(np.clip(known, low, high), bins=n_bars, range=(low, high))
    return {
        "of": "dates" if dates else "numbers",
        "counts": counts.tolist(),
        "ends": [float(known.min()), float(known.max())],
    }


def shape_of_texts(texts: Sequence[str]) -> JsonObject | None:
    """Return how often each text occurs, the most frequent first; the last bar is all others."""
    counts = Counter(texts).most_common()
    if len(counts) < FEWEST:
        return None
    first = counts[:N_BARS]
    others = sum(count for _, count in counts[N_BARS:])
    if others:
        others += first.pop()[1]
    return {
        "of": "texts",
        "counts": [count for _, count in first] + [others] * bool(others),
        "ends": [escape_text(first[0][0], 40), escape_text(first[-1][0], 40)],
    }
