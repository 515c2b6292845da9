"""Critical-difference plots: methods on an axis of mean ranks, those that do not differ joined by a bar."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from race_methods import OURS
from race_ranks import cliques, critical_difference, mean_ranks

matplotlib.use("svg")
import matplotlib.pyplot as plt

STRONG, GREY, INK = "#c8371e", "#8a8a8a", "#333333"
STYLE = {"svg.hashsalt": "transduce", "svg.fonttype": "none", "font.size": 9}
TITLES = {"regression": "Numbers", "classification": "Classes"}
STEP = 0.42  # between the lines of names
WIDTH, LINE = 5.8, 0.19  # inches: of a panel, of a line


def draw(panels: dict[tuple[str, str], pd.DataFrame], path: Path) -> None:
    """Write one figure: a row for each number of labels, a column for each task.

    Parameters
    ----------
    panels : dict of (task, labels) to DataFrame
        Errors, a row for each table and a column for each method.
    path : Path
        Where the SVG goes.
    """
    tasks = [task for task in TITLES if any(key[0] == task for key in panels)]
    rows = list(dict.fromkeys(labels for _, labels in panels))
    depth = max(_depth(errors) for errors in panels.values())
    with matplotlib.rc_context(STYLE):
        size = (WIDTH * len(tasks), (depth / STEP) * LINE * len(rows))
        figure, axes = plt.subplots(
            len(rows), len(tasks), figsize=size, squeeze=False, layout="constrained"
        )
        for i, labels in enumerate(rows):
            for j, task in enumerate(tasks):
                axes[i, j].set_axis_off()
                if (task, labels) in panels:
                    title = f"{TITLES[task]}, {labels} labels, {len(panels[task, labels])} tables"
                    _panel(axes[i, j], panels[task, labels], title, depth)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _bars(errors: pd.DataFrame) -> tuple[pd.Series, float, list[tuple[int, int]]]:
    ranks = mean_ranks(errors)
    difference = critical_difference(len(ranks), len(errors))
    return ranks, difference, cliques(ranks.to_numpy(), difference)


def _depth(errors: pd.DataFrame) -> float:
    """Return how far a panel reaches, from its title to the lowest name."""
    ranks, _, groups = _bars(errors)
    return 1.9 + 0.2 * len(groups) + STEP * ((len(ranks) + 1) // 2) + STEP


def _panel(axes: plt.Axes, errors: pd.DataFrame, title: str, depth: float) -> None:
    ranks, difference, groups = _bars(errors)
    k = len(ranks)
    reach = 0.36 * (k - 1)  # room for names beside the axis
    axes.set_xlim(1 - reach, k + reach)
    axes.set_ylim(-depth + 1.4, 1.4)
    axes.text(1 - reach, 1.15, title, weight="bold", color=INK, va="center")
    axes.plot([1, k], [0, 0], color=INK, linewidth=1)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.1], color=INK, linewidth=1)
        if k <= 10 or tick % 2 == 1:
            axes.text(tick, 0.17, str(tick), ha="center", va="bottom", color=INK, size=8)
    axes.plot([1, 1 + difference], [0.85, 0.85], color=INK, linewidth=1.4, marker="|", markersize=6)
    axes.text(
        1 + difference + 0.15,
        0.85,
        f"critical difference {difference:.1f}",
        va="center",
        size=8,
        color=INK,
    )
    for level, (first, last) in enumerate(groups):
        ends = [ranks.iloc[first] - 0.06, ranks.iloc[last] + 0.06]
        axes.plot(
            ends,
            [-0.22 - 0.2 * level] * 2,
            color=INK,
            linewidth=3,
            solid_capstyle="round",
            alpha=0.8,
        )
    _names(axes, ranks, -0.35 - 0.2 * len(groups), reach)


def _names(axes: plt.Axes, ranks: pd.Series, top: float, reach: float) -> None:
    """Write the better half of the names on the left, the best at the top, the others on the right."""
    k = len(ranks)
    half = (k + 1) // 2
    for place, (name, rank) in enumerate(ranks.items()):
        left = place < half
        y = top - STEP * (place if left else k - 1 - place)
        x = 1 - 0.02 * (k - 1) if left else k + 0.02 * (k - 1)
        color = STRONG if name in OURS else GREY
        axes.plot([rank, rank, x], [0, y, y], color=color, linewidth=1, zorder=1)
        text = f"{name}  {rank:.1f}" if left else f"{rank:.1f}  {name}"
        axes.text(
            x - 0.1 if left else x + 0.1,
            y,
            text,
            ha="right" if left else "left",
            va="center",
            color=color if name in OURS else "#555555",
            weight="bold" if name in ("auto", "blend") else "normal",
        )
    axes.plot(ranks, np.zeros(k), ".", color=INK, markersize=4)
