"""A forest plot.

Each estimate as a point on its interval, above the interval that labels alone would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating.answers import ALL, Answered
from transduce.app.estimating.predicted import PredictedColumn
from transduce.core.files import whole_file
from transduce.core.types import Array
from transduce.core.words import shortened

OURS = "#1f5f8b"
ALONE = "#b9c3ca"
LONGEST_NAME = 24  # characters of a group
LINE_HEIGHT = 0.34  # inches
MARGINS = 0.95  # inches above and below the lines of a panel


def panel_height(n_lines: int) -> float:
    """Return how high a panel of so many lines is, in inches."""
    return MARGINS + LINE_HEIGHT * max(n_lines, 2)


def paint_forest(
    ax: Any, frame: pd.DataFrame, label: str, *, is_share: bool = False, legend: bool = True
) -> None:
    """Draw the estimates of one question on axes, the first on top.

    An interval that has no end is drawn as none.
    """
    places = np.arange(len(frame))[::-1].astype(float)
    factor = 100.0 if is_share else 1.0
    estimates = _numbers(frame["estimate"], factor)
    ours = [_numbers(frame[name], factor) for name in ("lower", "upper")]
    alone = [_numbers(frame[f"labels_alone_{name}"], factor) for name in ("lower", "upper")]
    _paint_bars(ax, places - 0.2, alone, ALONE, 2.5, "labels alone")
    _paint_bars(ax, places, ours, OURS, 4.0, "labels and predictions")
    promised = np.isfinite(ours[0]) & np.isfinite(ours[1])
    ax.plot(
        estimates[promised],
        places[promised],
        "o",
        color="white",
        markeredgecolor=OURS,
        markersize=6,
    )
    for place in places[~promised]:
        ax.text(0.5, place, "nothing is promised", transform=ax.get_yaxis_transform(), ha="center")
    names = [
        "all rows" if name == ALL else shortened(str(name), LONGEST_NAME) for name in frame.index
    ]
    ax.set_yticks(places, names)
    ax.set_ylim(-0.6, len(frame) - 0.4)
    if is_share:
        label = f"{label} (%)"
    ax.set_xlabel(label)
    if pd.api.types.is_numeric_dtype(frame["estimate"]):
        ax.locator_params(axis="x", nbins=6)
        ax.xaxis.set_major_formatter("{x:,g}")
    else:
        ax.xaxis_date()
    ax.grid(axis="x", color="#e3e8eb", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    if legend:
        ax.legend(
            frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8.0
        )


def _numbers(column: pd.Series, factor: float) -> Array:
    """Return numbers to draw; dates as days of matplotlib."""
    if pd.api.types.is_numeric_dtype(column):
        return factor * column.to_numpy(dtype=float)
    # Matplotlib counts days from 1970 on, as these do.
    moments = pd.to_datetime(column)
    if moments.dt.tz is not None:
        moments = moments.dt.tz_convert(None)
    days = (moments - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=float)


def _paint_bars(
    ax: Any, places: Array, ends: list[Array], color: str, width: float, label: str
) -> None:
    """Draw intervals as bars."""
    known = np.isfinite(ends[0]) & np.isfinite(ends[1])
    ax.hlines(
        places[known], ends[0][known], ends[1][known], color=color, linewidth=width, label=label
    )


def save_forest(
    path: Path,
    column: PredictedColumn,
    answered: Sequence[Answered],
    *,
    force: bool,
    like: tuple[Path, ...] = (),
) -> None:
    """Write a forest plot of all estimates as PNG, SVG or PDF, as the name says.

    One panel a question.
    """
    import matplotlib.pyplot as plt

    heights = [panel_height(len(answer.frame)) for answer in answered]
    figure, axes = plt.subplots(
        len(answered),
        1,
        figsize=(7.0, sum(heights) + 0.3),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    try:
        for place, answer in enumerate(answered):
            question = answer.question
            ax = axes[place, 0]
            label = question.in_words(column.name)
            if question.by is not None:
                label = f"{label}, by {question.by}"
            is_share = question.what == "share"
            paint_forest(ax, answer.frame, label, is_share=is_share, legend=place == 0)
        with whole_file(path, force=force, like=like) as file:
            figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=150)
    finally:
        plt.close(figure)
