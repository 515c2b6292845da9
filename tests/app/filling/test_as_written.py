"""Answers are written as labels are: dates as dates, classes in their usual spelling, numbers with their unit."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import fill
from transduce.app.cli.app import app
from transduce.app.filling import load, save
from transduce.app.tables.columns import read_target

N = 90
RNG = np.random.default_rng(4)
A, B = RNG.normal(size=(2, N)).round(3)
GONE = np.arange(N) % 3 == 1
DAYS = pd.Series(pd.Timestamp("2024-03-01") + pd.to_timedelta(np.round(100 * A + 10 * B), unit="D"))


def table(labels):
    column = pd.Series(labels)
    whole = column.dtype.kind in "mM" or column.dtype == "category"
    return pd.DataFrame(
        {
            "a": A,
            "b": B,
            "y": column.mask(GONE) if whole else column.astype(object).mask(GONE, None),
        }
    )


@pytest.fixture(scope="module")
def dated():
    return fill(table(DAYS), "y", method="ridge", guarantee="column")


def test_dates_are_filled_as_dates(dated):
    new = dated.new[GONE]
    assert dated.task == "regression"
    assert (dated.new["y_filled"][~GONE] == DAYS[~GONE]).all()
    for name in ("y_filled", "y_lower", "y_upper"):
        assert new[name].dtype == DAYS.dtype
        assert (new[name] == new[name].dt.normalize()).all()
    hull = dated.answer.regions.hull()
    lower, upper = (
        (new[f"y_{end}"] - pd.Timestamp(0)).dt.days.to_numpy() for end in ("lower", "upper")
    )
    np.testing.assert_array_equal(lower, np.floor(hull[:, 0].round(6)))
    np.testing.assert_array_equal(upper, np.ceil(hull[:, 1].round(6)))
    assert dated.notes[0] == "'y' was read as dates; task='classification' reads them as classes."
    with pytest.raises(ValueError, match="minimum is for numbers, and these labels are dates"):
        dated.with_options(minimum=0)


def test_the_report_shows_dates(dated, figures):
    summary, page = dated.summary(), dated.report()
    assert "days on average" in summary["cards"][0]["large"]
    assert f"between {dated.new['y_filled'][GONE].min():%Y-%m-%d} and" in " ".join(summary["reply"])
    first = next(row for row in summary["rows"] if row["position"] == 1)
    assert f">{dated.new['y_filled'][1]:%Y-%m-%d}<" in page
    low, high = (dated.new[f"y_{end}"][1] for end in ("lower", "upper"))
    assert low <= pd.Timestamp(0) + pd.Timedelta(days=first["value"]) <= high
    axis = page.split('aria-labelledby="answers-title"')[1].split("</svg>")[0]
    assert ">2024-0" in axis
    assert "dates)" in summary["question"]


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        (np.where(A > 0, "TRUE", "FALSE"), {"TRUE", "FALSE"}),
        (np.where(A > 0, np.where(B > 1.5, "True", "TRUE"), "false"), {"TRUE", "false"}),
        (np.where(A > 0, "1.0", "0.0"), {"1.0", "0.0"}),
        (np.where(A > 0, "Yes", "no"), {"Yes", "no"}),
        (A > 0, {True, False}),
    ],
)
def test_classes_keep_their_spelling(labels, written):
    read = read_target(table(labels), "y")
    assert set(read.known) == written


def test_an_ordered_category_comes_back_ordered():
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = table(pd.Series(np.where(A + np.sin(99 * B) > 0, "high", "low")).astype(kind))
    result = fill(frame, "y", method="ridge", guarantee="column")
    filled = result.new["y_filled"]
    assert filled.dtype == kind
    assert set(filled) == {"low", "high"}
    told = result.table(probabilities=True)
    assert told.columns[-2:].tolist() == ["y_probability_low", "y_probability_high"]
    assert {"low | high"} <= set(told["y_set"].dropna()) <= {"low", "high", "low | high"}
    shares = told[["y_probability_low", "y_probability_high"]].to_numpy()[GONE]
    np.testing.assert_array_equal(np.array(["low", "high"])[shares.argmax(axis=1)], filled[GONE])
    polars = pytest.importorskip("polars")
    enum = polars.Enum(["low", "mid", "high"])
    words = frame["y"].astype(object).where(frame["y"].notna(), None)
    other = polars.from_pandas(frame.assign(y=words)).with_columns(polars.col("y").cast(enum))
    back = fill(other, "y", method="ridge", guarantee="column").frame
    assert back.schema["y_filled"] == enum
    assert back["y_filled"].to_list() == filled.tolist()


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("labels", "kind", "first"),
    [
        (DAYS.dt.date.astype("date32[pyarrow]"), "date32[pyarrow]", datetime.date),
        (DAYS.astype("timestamp[us][pyarrow]"), "datetime64[us]", pd.Timestamp),
        ((DAYS - DAYS[0]).astype("duration[s][pyarrow]"), "duration[s][pyarrow]", pd.Timedelta),
        (DAYS.dt.to_period("M"), object, str),
        (DAYS.dt.strftime("%Y%m%d").astype("Int64"), "Int64", int | np.int64),
        (pd.cut(A, 3), pd.CategoricalDtype, str),
        ([Decimal(f"{value:.2f}") for value in A], "float64", float),
    ],
)
def test_labels_of_other_types(labels, kind, first):
    """Those of Arrow are dates too, periods are months and intervals are classes; all may be features as well."""
    frame = pd.DataFrame({"a": A, "b": B, "same": labels, "y": pd.Series(labels).mask(GONE)})
    result = fill(frame, "y", method="ridge", guarantee="column")
    filled = result.new["y_filled"]
    assert (
        isinstance(filled.dtype, kind)
        if isinstance(kind, type) and kind is not object
        else filled.dtype == kind
    )
    assert isinstance(filled[1], first)
    assert result.columns["kind"].tolist()[2] in ("date", "number", "category")
    if kind is pd.CategoricalDtype:
        assert filled.cat.ordered
        assert filled.cat.categories.tolist() == [str(one) for one in pd.cut(A, 3).categories]
    found = fill(
        frame[["a", "b", "y"]].assign(y=frame["y"]), "y", method="ridge", guarantee="column"
    )
    assert found.task == ("classification" if kind is pd.CategoricalDtype else "regression")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (DAYS.dt.date, "date32[pyarrow]"),
        ([datetime.time(12, int(20 + 9 * value)) for value in A], "time64[us][pyarrow]"),
        (A > 0, "boolean"),
    ],
)
def test_types_of_later_rows_are_for_files(labels, kind, tmp_path):
    frame = table(labels)
    save(tmp_path / "m", frame, "y", method="ridge", guarantee="column")
    found = load(tmp_path / "m").new_columns(frame[["a", "b"]])
    assert found["y_filled"].dtype == kind
    assert isinstance(found["y_filled"][0], type(frame["y"][0]) | np.bool_)


def test_frames_of_polars_keep_their_types():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(table(DAYS)).with_columns(polars.col("y").cast(polars.Date))
    filled = fill(frame, "y", method="ridge", guarantee="column").frame
    assert filled.schema["y_filled"] == filled.schema["y_upper"] == polars.Date
    days = fill(table(DAYS), "y", method="ridge", guarantee="column").new["y_filled"]
    assert filled["y_filled"].to_list() == days.dt.date.tolist()


def test_units_stand_on_cards_tables_and_axes(figures):
    result = fill(
        table([f"{value:.1f} €" for value in 10 * A]), "y", method="ridge", guarantee="column"
    )
    page = result.report()
    assert "€ on average" in result.summary()["cards"][0]["large"]
    assert "in the unit of" not in page
    assert "y (€), filled" in page
    assert page.count("y (€)") >= 3


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([[1.0, 2.0]] * N, "holds lists: put what is to be filled into columns of their own"),
        (
            [f"note {row}" for row in range(N)],
            "fill a column of numbers, or of classes that occur more than once",
        ),
        ([(1.0, 2.0)] * N, "holds lists: put"),
        ([{1.0, 2.0}] * N, "holds lists: put"),
        (["[1.0, 2.0]"] * N, "holds lists: put"),
        ([{"a": 1.0}] * N, "holds objects: name one of their fields, such as 'y.a'"),
        (
            [f"note {max(row, 2)}" for row in range(N)],
            r"Nearly all labels of column 'y' differ \(59 of 60\)",
        ),
        ([f"note {max(row, 12)}" for row in range(N)], "or use task='classification'"),
        (
            np.where(np.arange(N) < 6, "soon", DAYS.dt.strftime("%Y-%m-%d")),
            "holds dates, but 4 of its 60 labels are not",
        ),
        (["2024-01-05"] * N, "are the same date, '2024-01-05'"),
    ],
)
def test_what_cannot_be_filled_is_said_in_a_sentence(labels, words):
    with pytest.raises(ValueError, match=words):
        fill(table(pd.Series(labels)), "y", method="ridge")


def test_files_and_later_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"day": DAYS.dt.strftime("%d.%m.%Y"), "flag": np.where(A > 0, "1.0", "0.0")}
    frame = pd.DataFrame(
        {
            "a": A,
            "b": B,
            **{name: pd.Series(cells).mask(GONE, "") for name, cells in columns.items()},
        }
    )
    frame.to_csv("t.csv", index=False)
    words = [
        "fill",
        "t.csv",
        "--target",
        "day",
        "--target",
        "flag",
        "--method",
        "ridge",
        "--json",
        "t.json",
        "--quiet",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    back = pd.read_csv("t-filled.csv", dtype=str)
    assert set(back["flag_filled"]) == {"1.0", "0.0"}
    assert (back["day_filled"][~GONE] == columns["day"][~GONE]).all()
    assert back["day_upper"][GONE].str.fullmatch(r"\d\d\.\d\d\.\d{4}").all()
    assert (
        json.loads((tmp_path / "t-day.json").read_text())["answers"]["moments"]["style"]
        == "%d.%m.%Y"
    )
    for name in ("day", "flag"):
        plain = frame.drop(columns=[other for other in columns if other != name]).replace("", None)
        save(f"{name}.transduce", plain, name, method="ridge")
        later = load(f"{name}.transduce").new_columns(plain[["a", "b"]].head(4))
        assert later[f"{name}_filled"].str.fullmatch(r"[01]\.0|\d\d\.\d\d\.\d{4}").all()
