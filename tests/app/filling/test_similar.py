"""The labelled rows that are most like a row: by the definition, of a result, and as a column."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests import brute
from transduce import fill
from transduce.app.filling import fill_folder
from transduce.app.filling.similar import feature_scales, most_similar


@pytest.mark.parametrize("n_similar", [1, 4, 50])
def test_the_nearest_labelled_rows(n_similar):
    random = np.random.default_rng(n_similar)
    rows, labelled = random.normal(size=(1203, 3)), random.normal(size=(30, 3))
    places, weights = most_similar(rows, labelled, n_similar)
    for row in (0, 7, 999, 1000, 1202):
        expected, shares = brute.nearest_labelled(rows[row], labelled, n_similar)
        assert places[row].tolist() == expected
        assert weights[row] == pytest.approx(shares)


def test_copies_count_alike():
    places, weights = most_similar(np.ones((1, 2)), np.ones((3, 2)), 3)
    assert places.tolist() == [[0, 1, 2]]
    assert weights == pytest.approx(np.full((1, 3), 1 / 3))


def test_a_column_counts_as_much_as_it_matters():
    relevance = pd.Series({"b": 1.0, "a": 0.25})
    assert feature_scales(["a", "a", "b", "c"], relevance) == pytest.approx(
        [0.27, 0.27, 1.02, 0.02]
    )
    assert feature_scales(["a", "b"], None) == pytest.approx([1.0, 1.0])


def table(task):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(90, 3)), columns=["a", "b", "c"])
    y = frame["a"] * 5.0 + 0.1 * random.normal(size=90)
    known = np.arange(90) % 3 > 0
    if task == "regression":
        return frame.assign(y=y.round(2).where(known))
    return frame.assign(y=pd.Series(np.where(y > 0, "up", "down"), dtype=object).where(known, None))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_result_explains_its_predictions(task):
    frame = table(task).set_index(np.arange(90) * 2)
    result = fill(frame, "y", method="ridge")
    near = [result.explain(row) for row in result.answer.rows]
    for row, rows in zip(result.answer.rows, near, strict=True):
        assert len(rows) == 6
        assert rows["weight"].sum() == pytest.approx(1.0)
        assert rows["weight"].is_monotonic_decreasing
        assert frame["y"].iloc[rows.index].tolist() == rows["y"].tolist()
        assert frame["b"].iloc[rows.index].tolist() == rows["b"].tolist()
        assert row not in rows.index
    if task == "regression":
        means = [float(rows["y"] @ rows["weight"]) for rows in near]
        assert np.corrcoef(means, result.answer.values)[0, 1] > 0.9
    else:
        votes = [rows.groupby("y")["weight"].sum().idxmax() for rows in near]
        assert np.mean(votes == result.answer.values) > 0.9
    labelled = int(np.flatnonzero(frame["y"].notna())[0])
    assert labelled not in result.explain(labelled).index
    assert len(result.explain(int(result.answer.rows[0]), 2)) == 2
    with pytest.raises(ValueError, match="There is no row 90"):
        result.explain(90)
    with pytest.raises(ValueError, match="whole number"):
        result.explain(0, 0)


def test_a_column_names_them():
    frame = table("regression")
    result = fill(frame, "y", method="ridge")
    column = result.table(similar=True)["y_similar"]
    assert column.isna().tolist() == frame["y"].notna().tolist()
    row = int(result.answer.rows[3])
    near = result.explain(row)
    named = re.findall(r"row (\d+): (\S+) \((\d+) %\)", column[row])
    assert [int(place) - 1 for place, _, _ in named] == near.index[:3].tolist()
    assert [float(label) for _, label, _ in named] == pytest.approx(near["y"][:3].tolist())
    assert [int(share) / 100 for _, _, share in named] == pytest.approx(
        near["weight"][:3].tolist(), abs=0.006
    )
    by_name = fill(frame.assign(who=[f"P{n}" for n in range(90)]), "y", method="ridge", id="who")
    assert re.match(r"P\d+: ", by_name.table(similar=True)["y_similar"][row])


def test_rows_of_parts_are_named_by_their_part(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=600)
    frame = pd.DataFrame({"x": x, "größe": np.where(np.arange(600) % 4 == 0, 2.0 * x, np.nan)})
    for number in range(3):
        part = frame.iloc[200 * number : 200 * number + 200]
        part.to_parquet(tmp_path / f"part{number}.parquet", index=False)
    result = fill_folder(
        str(tmp_path / "*.parquet"), "größe", tmp_path / "out", method="ridge", sample=100
    )
    near = result.explain(int(result.answer.rows[0]))
    assert near.index.name == "row of the sample"
    for name, label in zip(near["row"], near["größe"], strict=True):
        file, _, row = name.rpartition(", row ")
        part = pd.read_parquet(tmp_path / "out" / file)
        assert part["größe"][int(row) - 1] == label
