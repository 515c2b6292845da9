"""Forest plots: what is drawn of intervals without an end, and of regressions."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.app.estimating.test_estimate import prices
from transduce.app.estimating.answers import answer_questions
from transduce.app.estimating.forest_plot import paint_forest, panels_of
from transduce.app.estimating.questions import read_question
from transduce.app.report.figures import WIDTH


@pytest.fixture
def axes():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def frame_of(lower, upper, kind):
    return pd.DataFrame(
        {
            "estimate": [2.0, 5.0],
            "lower": [lower, 4.0],
            "upper": [upper, 6.0],
            "labels_alone_lower": [lower, 3.0],
            "labels_alone_upper": [upper, 7.0],
            "kind": [kind, "approximate"],
        },
        index=["a", "b"],
    )


def test_an_interval_without_an_end_is_an_arrow(axes):
    """It was drawn as one of which nothing is promised."""
    paint_forest(axes, frame_of(1.0, np.inf, "exact"), "median")
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None) is not None]
    assert [arrow.xyann[0] for arrow in arrows] == [1.0, 1.0]  # of the labels alone, and ours
    assert not [text for text in axes.texts if "promised" in text.get_text()]
    low, high = axes.get_xlim()
    assert low < 1.0
    assert high > 7.0


def test_nothing_promised_is_said(axes):
    paint_forest(axes, frame_of(-np.inf, np.inf, "none"), "mean")
    assert [text.get_text() for text in axes.texts] == ["nothing is promised"]


def test_each_slope_has_an_axis_of_its_own():
    column = prices()[0].predicted_column
    asked = [read_question("mean"), read_question("regression of size, region")]
    panels = panels_of(column, answer_questions(column, asked))
    names = [list(panel.frame.index) for panel in panels]
    assert names == [["all"], ["size"], ["region = south"], ["region = west"]]


@pytest.mark.parametrize("days", [3, 20, 100, 400, 4000])
def test_dates_at_the_ticks_of_a_narrow_plot_do_not_touch(days):
    """At the width of a report they were printed over each other."""
    start = pd.Timestamp("2024-02-27")
    numbers = frame_of(1.0, 3.0, "exact").drop(columns="kind")
    frame = numbers.apply(lambda column: start + pd.to_timedelta(days * column, unit="D"))
    figure, ax = plt.subplots(figsize=(WIDTH, 1.6), layout="constrained")
    paint_forest(ax, frame.assign(kind="exact"), "mean of discharged")
    figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    boxes = [text.get_window_extent() for place, text in ticks if low <= place <= high]
    plt.close(figure)
    assert len(boxes) >= 2
    for left, right in pairwise(sorted(boxes, key=lambda box: box.x0)):
        assert left.x1 < right.x0
