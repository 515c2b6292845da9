"""What to label next, limits of what is possible, and results in a notebook."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling.next_labels import NextLabels, pick_rows


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.exp(X[:, 0]) + 0.1 * rng.normal(size=n) ** 2
    )
    return frame.assign(y=frame["y"].where(np.arange(n) % 2 == 0))


def test_rows_far_from_labels_and_from_each_other_are_picked():
    """Each pick has the largest product of unsureness and distance, by the definition."""
    rng = np.random.default_rng(1)
    matrix, unsure = rng.normal(size=(40, 2)), rng.uniform(0.1, 1, 30)
    labelled, rows = np.arange(10), np.arange(10, 40)
    found = pick_rows(matrix, labelled, rows, unsure)[:5]
    seen = list(labelled)
    for pick in found:
        gains = [
            -1.0
            if row in seen
            else unsure[row - 10]
            * min(np.linalg.norm(matrix[row] - matrix[other]) for other in seen)
            for row in rows
        ]
        assert pick == rows[int(np.argmax(gains))]
        seen.append(pick)
    assert pick_rows(matrix, labelled, rows[:0], unsure[:0]) == []
    assert len(pick_rows(matrix, labelled, rows[:3], unsure[:3])) == 3


def test_fill_says_what_to_label_next():
    frame = table()
    frame.loc[[11, 13], "a"] = [9.0, -9.0]  # far from all others
    result = fill(frame, "y", method="ridge").with_options(label_next=True)
    assert len(result.advice.rows) == 10
    assert {11, 13} <= set(result.advice.rows)
    assert 0.0 <= result.advice.smaller <= 0.5
    column = result.frame["y_label_next"]
    assert [int(column[row]) for row in result.advice.rows] == list(range(1, 11))
    assert column.isna().sum() == 110
    assert str(result.advice) in result.report().replace("\u00a0", " ")
    assert "y_label_next" not in fill(frame, "y", method="ridge").frame
    with pytest.raises(ValueError, match="'y_label_next' already"):
        fill(frame.assign(y_label_next=1), "y", method="ridge").table(label_next=True)


def test_classes_and_few_labels():
    frame = table()
    frame["y"] = pd.Series(np.where(frame["a"] > 0, "u", "v"), dtype=object).where(
        np.arange(120) % 2 == 0, None
    )
    result = fill(frame, "y", method="ridge")
    assert result.advice.about == "errors"
    few = fill(frame.assign(y=frame["y"].where(np.arange(120) < 24, None)), "y", method="ridge")
    assert few.advice.smaller is None
    assert "twice" not in str(few.advice)
    assert str(NextLabels((), None, "errors")) == ""
    assert str(NextLabels((2,), 0.1, "errors")).startswith("Row 3 would")


def test_more_labels_help_where_they_do():
    """Noise that no label removes promises nothing; a smooth function without noise a lot."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(200, 2))
    smooth = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]))
    noise = smooth.assign(y=rng.normal(size=200))
    gains = []
    for frame in (smooth, noise):
        frame["y"] = frame["y"].where(np.arange(200) % 2 == 0)
        gains.append(fill(frame, "y", method="ridge").advice.smaller)
    assert gains[0] > 0.2 > gains[1]


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_limits_cut_intervals_and_values(guarantee):
    frame = table()
    frame["y"] -= 2.0  # intervals of labels of which none is negative end at 0 by themselves
    free = fill(frame, "y", method="ridge", guarantee=guarantee)
    cut = free.with_options(minimum=-2, maximum=38)
    # A limit may rule out a piece of a region that is a union: its end is then that of the next one.
    rows = free.answer.rows[free.answer.regions.n_pieces == 1]
    for name, low in (("y_lower", True), ("y_upper", False), ("y_filled", None)):
        np.testing.assert_allclose(cut.frame[name][rows], np.clip(free.frame[name][rows], -2, 38))
        assert low is not True or (free.frame[name][rows] < -2).any()
    assert cut.guarantee == free.guarantee
    with pytest.raises(ValueError, match=r"has the label .*, beyond minimum=-1\.5"):
        free.table(minimum=-1.5)
    with pytest.raises(ValueError, match="minimum=2 is not below maximum=1"):
        free.table(minimum=2, maximum=1)
    classes = frame.assign(
        y=(frame["y"] > 1).map({True: "u", False: "v"}).where(frame["y"].notna(), None)
    )
    with pytest.raises(ValueError, match="minimum is for numbers"):
        fill(classes, "y", method="ridge").table(minimum=0)


def test_a_notebook_shows_the_result():
    frame = table().rename(columns={"a": "<b>a</b>"})
    page = fill(frame, "y", method="ridge")._repr_html_()
    assert "60 of 120 cells of &#x27;y&#x27; filled" in page
    assert "<b>a" not in page
    assert page.count("<tr") == 11
