"""Plot of a comparison of methods: the score of each, with its spread over the folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from transduce.display.axes import INSIDE, new_axes


def plot_comparison(table: pd.DataFrame, scoring: str, *, smaller: bool = False, ax: Any = None) -> Any:
    """Draw the mean score of each method and its standard deviation over the folds, the best on top.

    Parameters
    ----------
    table : pandas.DataFrame
        ``score`` and ``spread``, by method; methods without a score are left out.
    scoring : str
        Name of the score.
    smaller : bool, default=False
        Whether smaller scores are better.
    ax : matplotlib Axes, optional
        Where to plot; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"score": [0.9, 0.8], "spread": [0.05, 0.1]}, index=["ridge", "forest"])
    >>> [label.get_text() for label in plot_comparison(table, "accuracy").get_yticklabels()]
    ['ridge', 'forest']
    """
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
