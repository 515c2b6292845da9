"""A forest plot.

Each estimate as a point on its interval, above the interval that labels alone would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    ax: Any,
    frame: pd.DataFrame,
    label: str,
    *,
    is_share: bool = False,
    legend: bool = True,
) -> None:
    """Draw the estimates of one question on axes, the first on top.

    An end that is infinite is drawn as an arrow.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = np.arange(len(frame))[::-1].astype(float)
    factor = 100.0 if is_share else 1.0
    estimates = _numbers(frame["estimate"], factor)
    ours = [_numbers(frame[name], factor) for name in ("lower", "upper")]
    alone = [_numbers(frame[f"labels_alone_{name}"], factor) for name in ("lower", "upper")]
    _paint_bars(ax, places - 0.2, alone, ALONE, 2.5, "labels alone")
    _paint_bars(ax, places, ours, OURS, 4.0, "labels and predictions")
    promised = (frame["kind"] != "none").to_numpy(dtype=bool) & np.isfinite(estimates)
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
        # A report is as narrow as a phone, where more dates would run into each other.
        dates = AutoDateLocator(minticks=3, maxticks=5)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(dates)
        formatter = ConciseDateFormatter(dates)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(formatter)
    ax.grid(axis="x", color="#e3e8eb", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    if legend:
        ax.legend(
            frameon=False,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=2,
            fontsize=8.0,
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
    ax: Any,
    places: Array,
    ends: list[Array],
    color: str,
    width: float,
    label: str,
) -> None:
    """Draw intervals as bars; one without an end as an arrow."""
    lower, upper = ends
    known = np.isfinite(lower) & np.isfinite(upper)
    ax.hlines(places[known], lower[known], upper[known], color=color, linewidth=width, label=label)
    for start, head, direction in ((lower, upper, 1), (upper, lower, -1)):
        open_ended = np.flatnonzero(np.isfinite(start) & np.isinf(head))
        ax.update_datalim(np.column_stack([start, places])[open_ended])
        ax.autoscale_view()
        for row in open_ended:
            ax.annotate(
                "",
                xy=((1.0 + direction) / 2.0, places[row]),
                xytext=(start[row], places[row]),
                xycoords=ax.get_yaxis_transform(),
                textcoords="data",
                arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0},
                zorder=1.5,
            )


@dataclass(frozen=True, eq=False)
class Panel:
    """Estimates that share an axis."""

    frame: pd.DataFrame
    label: str
    is_share: bool


def panels_of(column: PredictedColumn, answered: Sequence[Answered]) -> list[Panel]:
    """Return one panel for each question; for each slope of a regression, whose units differ.

    The constant of a regression is left out: nobody asks for it, and slopes beside it are dots.
    """
    panels = []
    for answer in answered:
        question = answer.question
        label = question.in_words(column.name)
        if question.by is not None:
            label = f"{label}, by {question.by}"
        if question.what == "regression":
            slopes = answer.frame.iloc[1:]
            panels += [Panel(slopes.iloc[[k]], label, False) for k in range(len(slopes))]
        else:
            panels.append(Panel(answer.frame, label, question.what == "share"))
    return panels


def save_forest(
    path: Path,
    column: PredictedColumn,
    answered: Sequence[Answered],
    *,
    force: bool,
    like: tuple[Path, ...] = (),
) -> None:
    """Write a forest plot of all estimates as PNG, SVG or PDF, as the name says."""
    import matplotlib.pyplot as plt

    panels = panels_of(column, answered)
    heights = [panel_height(len(panel.frame)) for panel in panels]
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(7.0, sum(heights) + 0.3),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    try:
        for place, panel in enumerate(panels):
            paint_forest(
                axes[place, 0],
                panel.frame,
                panel.label,
                is_share=panel.is_share,
                legend=place == 0,
            )
        with whole_file(path, force=force, like=like) as file:
            figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=150)
    finally:
        plt.close(figure)
