"""Plot of a comparison of methods: the score of each, with its spread over the folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.display.axes import INSIDE, new_axes


def plot_comparison(table: pd.DataFrame, scoring: str, *, smaller: bool = False, ax: Any = None) -> Any:
    """Draw the mean score of each method and its standard deviation over the folds, the best on top."""
    scored = table[table["score"].notna()]
    ax = new_axes((6.4, 1.2 + 0.4 * len(scored))) if ax is None else ax
    places = np.arange(len(scored))
    ax.errorbar(scored["score"], places, xerr=scored["spread"], fmt="o", color=INSIDE, capsize=3)
    ax.set_yticks(places, [str(name).replace("_", " ") for name in scored.index])
    ax.set_ylim(len(scored) - 0.5, -0.5)
    better = "smaller" if smaller else "larger"
    ax.set_xlabel(
        f"{scoring.replace('_', ' ')}, {better} is better\n(mean and standard deviation over the folds)"
    )
    return ax
