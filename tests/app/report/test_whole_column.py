"""The part of a report about the column as a whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.app.estimating.test_estimate import make_table
from transduce import fill, show_progress
from transduce.app.report import render_html, render_json
from transduce.app.report.whole_column import summarize_whole, tables_by_column
from transduce.conformal import Chance, Drawn


def filled(target="price", **options):
    frame, _, _ = make_table()
    return fill(frame[["size", "region", target]], target, method="ridge", **options)


def test_the_mean_and_its_groups_are_those_of_the_result(figures):
    result = filled()
    whole = summarize_whole(result.reported)
    overall, by_region = whole["tables"]
    line = result.estimate("mean").iloc[0]
    assert overall["lines"][0]["estimate"] == pytest.approx(line["estimate"])
    assert by_region["by"] == "region"
    assert [entry["group"] for entry in by_region["lines"]] == ["north", "south", "west"]
    assert "about" in whole["next"]
    page = render_html(result.summary())
    assert "The column as a whole" in page
    assert page.count("labels and predictions") >= 2


def test_the_columns_to_group_by_may_be_named(tmp_path):
    result = filled()
    tables = result.summary(by=["size", "region"])["whole"]["tables"]
    assert [table["by"] for table in tables] == [None, "size", "region"]
    assert len(tables[1]["lines"]) == 4
    assert "Mean of price, by size" in result.report(by="size")
    path = tmp_path / "numbers.json"
    result.json(path, by="size")
    assert json.loads(path.read_text())["whole"]["tables"][1]["by"] == "size"


@pytest.mark.parametrize(
    ("by", "message"), [("age", "no column 'age'"), ("price", "group by another column")]
)
def test_a_column_without_groups_is_refused(by, message):
    with pytest.raises(ValueError, match=message):
        filled().report(by=by)


def test_marks_of_a_draw_are_no_groups():
    """Rows that were not drawn have no label that counts, so that nothing can be said of them."""
    frame, _, _ = make_table()
    kept = frame[["size", "price"]]
    drawn = kept["price"].notna() & (np.arange(len(kept)) % 2 == 0)
    marked = kept.assign(drawn=drawn)
    result = fill(marked, "price", method="ridge", labels=Drawn("drawn"))
    tables = summarize_whole(result.reported)["tables"]
    assert [table["by"] for table in tables] == [None]


def test_where_nothing_can_be_said_the_section_says_why():
    frame, _, _ = make_table()
    frame["day"] = np.arange(len(frame))
    kept = frame[["size", "day", "price"]]
    result = fill(kept, "price", method="ridge", labels=Chance(order="day"))
    shares = []
    with show_progress(lambda name, share: shares.append(share)):
        summary = result.summary()
    assert not np.isnan(shares).any()  # no stage looks broken off
    assert "stop along an order" in summary["whole"]["why"]
    assert "stop along an order" in render_html(summary)


def test_numbers_of_the_section_are_plain():
    summary = filled().summary()
    back = json.loads(render_json(summary))
    assert back["whole"] == summary["whole"]
    assert render_html(back) == render_html(summary)


def test_a_column_with_limits_has_no_tables_by_column():
    frame, _, _ = make_table()
    price = frame["price"].astype(object)
    price[price.first_valid_index()] = "<0.5"
    result = fill(frame[["size", "region"]].assign(price=price), "price", method="ridge")
    assert "are detection limits" in summarize_whole(result.reported)["why"]
    assert tables_by_column(result.reported) == []
