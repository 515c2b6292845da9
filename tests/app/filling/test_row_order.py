"""The order of the rows of a table changes nothing: neither values, nor intervals or sets, nor what is said."""

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling.forecast import forecast_guarantee
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import Chance, Drawn, Grouped, Sampled
from transduce.model_selection.methods import METHODS

N_ROWS = 90
WORDS = ["red", "green", "old", "new", "big", "tiny", "round", "flat"]


def mixed_table(kind):
    """Return a table with columns of every kind, and with numbers or classes as labels."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N_ROWS, 3))
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    table["colour"] = rng.choice(["red", "green", "blue"], N_ROWS)
    table["text"] = [" ".join(rng.choice(WORDS, 5)) for _ in range(N_ROWS)]
    days = pd.to_timedelta(rng.integers(0, 900, N_ROWS), unit="D")
    table["when"] = pd.Timestamp("2020-01-01") + days
    table.loc[rng.permutation(N_ROWS)[:10], "b"] = np.nan
    signal = x[:, 0] + x[:, 2] ** 2 + 0.3 * rng.normal(size=N_ROWS)
    table["y"] = with_labels(signal, kind, rng)
    return table


def copies_table(kind):
    """Return a table most of whose rows are copies of others, some of them with different labels."""
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.integers(0, 3, size=(N_ROWS, 2)).astype(float), columns=["a", "b"])
    signal = table["a"].to_numpy() + rng.integers(0, 2, N_ROWS)
    return table.assign(y=with_labels(signal, kind, rng))


def with_labels(signal, kind, rng):
    """Return labels of 55 rows: numbers, dates or classes."""
    labelled = rng.permutation(N_ROWS) < 55
    if kind == "numbers":
        return np.where(labelled, signal, np.nan)
    if kind == "dates":
        days = pd.Series(pd.Timestamp("2021-01-01") + pd.to_timedelta(signal, unit="D"))
        return days.where(labelled)
    names = np.where(signal > 1.5, "high", np.where(signal > 0.0, "middle", "low"))
    return np.where(labelled, names, None)


def assert_same_after_shuffling(table, **options):
    """Fill a table and a shuffled copy of it, and compare what is said of every row."""
    mix = np.random.default_rng(7).permutation(len(table))
    result = fill(table, "y", **options)
    shuffled = fill(table.iloc[mix].reset_index(drop=True), "y", **options)
    expected = result.new.iloc[mix].reset_index(drop=True)
    pd.testing.assert_frame_equal(shuffled.new, expected, rtol=1e-9, atol=1e-9)
    assert str(shuffled.guarantee) == str(result.guarantee)
    assert shuffled.out_of_fold.index.is_monotonic_increasing
    # Labelled rows that are copies, the label among their cells, may lie in each other's folds.
    columns = ["true", "answered"]
    folds = result.out_of_fold[columns].sort_values(columns, ignore_index=True)
    others = shuffled.out_of_fold[columns].sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(others, folds, rtol=1e-9)


KINDS = {
    "bayesian": ["classes"],
    "spectral-graph": ["classes"],
    "gaussian-process": ["numbers"],
    "moment-matched": ["numbers"],
}
SLOW = {"moment-matched"}  # tests/methods shuffles the rows of the estimator itself
CASES = [
    pytest.param(method, kind, marks=[pytest.mark.slow] * (method in SLOW))
    for method in METHODS
    for kind in KINDS.get(method, ["numbers", "classes"])
]


@pytest.mark.few(5)
@pytest.mark.parametrize(("method", "kind"), CASES)
def test_every_method(method, kind):
    assert_same_after_shuffling(copies_table(kind), method=method, guarantee="column")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_columns_of_every_kind(kind):
    assert_same_after_shuffling(mixed_table(kind), guarantee="column")


@pytest.mark.slow
@pytest.mark.parametrize("make", [mixed_table, copies_table])
@pytest.mark.parametrize("guarantee", ["row", "column"])
@pytest.mark.parametrize(("method", "kind"), CASES)
def test_every_method_by_row_and_by_column(method, kind, make, guarantee):
    assert_same_after_shuffling(make(kind), method=method, guarantee=guarantee)


def test_dates_as_labels_by_row():
    assert_same_after_shuffling(mixed_table("dates"), guarantee="row")


def test_a_sample_of_the_rows():
    # Rows that differ: of two copies, one may be in the sample and the other not.
    rng = np.random.default_rng(10)
    x = rng.normal(size=(600, 2))
    labelled = rng.permutation(600) < 200
    table = pd.DataFrame(x, columns=["a", "b"])
    table["y"] = np.where(labelled, x[:, 0] + rng.integers(0, 3, 600), np.nan)
    assert_same_after_shuffling(table, method="ridge", sample=100)


def test_designs():
    table = mixed_table("numbers")
    rng = np.random.default_rng(8)
    table["probability"] = rng.uniform(0.3, 0.9, N_ROWS)
    table["drawn"] = (rng.uniform(size=N_ROWS) < 0.5) & table["y"].notna()
    table["time"] = rng.permutation(N_ROWS)
    table["patient"] = np.where(table["y"].notna(), rng.integers(0, 25, N_ROWS), 100)
    for design in (
        Sampled("probability"),
        Drawn("drawn"),
        Grouped("patient"),
        Chance(order="time"),
        Chance(within="colour"),
    ):
        others = ("probability", "drawn", "time", "patient")
        ignore = [name for name in others if name not in design.columns]
        assert_same_after_shuffling(table, method="ridge", labels=design, ignore=ignore)


def test_copies_that_differ_in_their_group_only():
    """Copies of a row are told apart by the group, which is no feature, so that the same groups calibrate."""
    table = copies_table("numbers")
    labelled = table["y"].notna()
    table["patient"] = np.where(labelled, np.arange(N_ROWS) % 20, 100)
    assert_same_after_shuffling(table, method="ridge", labels=Grouped("patient"))


def test_an_array_describes_the_rows_of_the_table():
    table = mixed_table("numbers")
    by_name = fill(table, "y", method="ridge", labels=Chance(within="colour"))
    by_array = fill(table, "y", method="ridge", labels=Chance(within=table["colour"].to_numpy()))
    pd.testing.assert_frame_equal(by_array.new, by_name.new)


def test_what_a_message_calls_a_row_is_its_place_in_the_table():
    table = mixed_table("numbers").assign(probability=0.5)
    table.loc[17, "probability"] = np.nan
    with pytest.raises(ValueError, match="row 18 has nothing"):
        fill(table, "y", labels=Sampled("probability"))
    table = mixed_table("numbers")
    table["d"] = table["c"].round(2).astype(str)
    table.loc[33, "d"] = "lost it"
    result = fill(table, "y", method="ridge")
    assert any("'lost it' (row 34)" in note for note in result.notes), result.notes


def test_what_is_told_of_rows_is_in_the_order_of_the_table():
    table = mixed_table("numbers")
    result = fill(table, "y", method="ridge")
    labelled = result.out_of_fold.index
    np.testing.assert_array_equal(result.out_of_fold["true"], table["y"].iloc[labelled])
    assert table["y"].iloc[list(result.advice.rows)].isna().all()
    np.testing.assert_array_equal(result.answer.rows, np.flatnonzero(table["y"].isna()))
    mix = np.random.default_rng(11).permutation(N_ROWS)
    shuffled = fill(table.iloc[mix], "y", method="ridge")
    np.testing.assert_allclose(shuffled.map, result.map.iloc[mix])
    assert [mix[row] for row in shuffled.advice.rows] == list(result.advice.rows)


def test_columns_that_take_no_part_change_nothing():
    table = mixed_table("classes")
    plain = fill(table, "y", guarantee="column")
    noted = table.assign(note=np.random.default_rng(9).normal(size=N_ROWS))
    ignored = fill(noted, "y", guarantee="column", ignore=["note"])
    pd.testing.assert_frame_equal(ignored.new, plain.new)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_what_columns_are_called_changes_nothing(kind):
    table = copies_table(kind)
    rng = np.random.default_rng(12)
    table[["c", "d"]] = rng.integers(0, 2, size=(N_ROWS, 2))
    plain = fill(table, "y")
    names = {"a": "weight", "b": "Z", "c": "0", "d": "and so on", "y": "first of all"}
    renamed = fill(table.rename(columns=names), names["y"])
    for name in plain.new:
        again = renamed.new[name.replace("y", names["y"], 1)]
        pd.testing.assert_series_equal(again, plain.new[name], check_names=False)
    np.testing.assert_array_equal(renamed.members["weight"], plain.members["weight"])


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("seed", range(2))
def test_where_a_column_stands_changes_nothing(kind, seed):
    """Trees and the machine's kernels draw features by their places, and sums are rounded by them."""
    table = mixed_table(kind)
    rng = np.random.default_rng(seed)
    columns = rng.permutation(table.columns.to_numpy(object))
    rows = rng.permutation(N_ROWS)
    plain = fill(table, "y")
    moved = fill(table[columns].iloc[rows].reset_index(drop=True), "y")
    expected = plain.new.iloc[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(moved.new, expected, rtol=1e-9, atol=1e-9)
    assert str(moved.guarantee) == str(plain.guarantee)
    np.testing.assert_allclose(moved.members["weight"], plain.members["weight"])
    assert moved.columns["name"].tolist() == columns.tolist()


def test_the_forecast_holds_out_the_same_labels():
    """By class, the bounds depend on which labels are held out."""
    table = copies_table("classes")
    options = Options.read({"guarantee": "column", "label_conditional": True, "method": "ridge"})
    forecast = forecast_guarantee(FrameSource.read(table, "y", options), options)
    result = fill(table, "y", guarantee="column", label_conditional=True, method="ridge")
    assert result.guarantee.n_calibration == forecast.n_calibration
    assert result.guarantee.outside == forecast.guarantee.outside
