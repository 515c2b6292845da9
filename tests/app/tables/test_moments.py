"""Dates, times of day and durations: read as numbers and written again as they were, in their own steps."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from transduce.app.tables.features import vectorize
from transduce.app.tables.moments import Moments

DAYS = pd.Series(pd.to_datetime(["2024-01-05", "1969-12-31", None, "2031-11-23", "2024-02-29"]))
CASES = {  # cells, the step, and the first cell a third of a unit of the numbers later, rounded up
    "datetime64": (DAYS, "D", pd.Timestamp("2024-01-06")),
    "nanoseconds": (DAYS.astype("datetime64[ns]"), "D", pd.Timestamp("2024-01-06")),
    "a zone": (DAYS.dt.tz_localize("Europe/Berlin"), "D", pd.Timestamp("2024-01-06", tz="Europe/Berlin")),
    "hours in a zone": (
        (DAYS + pd.Timedelta("7h")).dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
        "h",
        pd.Timestamp("2024-01-05 08:00", tz="UTC"),
    ),
    "months": (
        pd.Series(pd.date_range("2020-11-01", periods=6, freq="MS")),
        "M",
        pd.Timestamp("2020-12-01"),
    ),
    "date": (DAYS.dt.date.astype(object).where(DAYS.notna(), None), "D", datetime.date(2024, 1, 6)),
    "time": (pd.Series([datetime.time(23, 58), None, datetime.time(0, 30)]), "m", datetime.time(23, 59)),
    "timedelta": (pd.Series(pd.to_timedelta(["90min", None, "-3h"])), "m", pd.Timedelta("91min")),
    "ISO": (["2024-01-05", None, "1969-12-31"], "D", "2024-01-06"),
    "ends of time": (["0001-01-02", "9999-12-30"], "D", "0001-01-03"),
    "day first": (["05.01.2024", "31.12.1969"], "D", "06.01.2024"),
    "month first": (["1/5/2024", "12/31/1999"], "D", "1/6/2024"),
    "day first, seen at one cell": (["05/01/2024", "31/12/1999"], "D", "06/01/2024"),
    "words": (["5 Jan 2024", "31 Dec 1999"], "D", "6 Jan 2024"),
    "minutes": (["2024-01-05 10:30", "1999-12-31 00:00"], "m", "2024-01-05 10:31"),
    "Z": (["2024-01-05T10:30:00Z", "1999-12-31T00:00:01Z"], "s", "2024-01-05T10:30:01Z"),
    "an offset": (["2024-01-05T10:30:00+02:00", "1999-12-31T00:00:00+02:00"], "m", "2024-01-05T10:31:00+02:00"),
    "milliseconds": (["2024-01-05T10:30:00.250", "1999-12-31T00:00:00.000"], "ms", "2024-01-05T10:30:00.584"),
    "month": (["2024-01", "2023-12", "2023-11", "2022-07", "2020-01"], "M", "2024-02"),
    "a month": (["January 2024", "March 2020", "May 2020", "June 2021", "July 2022"], "M", "February 2024"),
    "two digits": (["05.01.24", "31.12.99"], "D", "06.01.24"),
    "two digits, in one century": (["12/31/68", "3/1/69", "5/2/70"], "D", "1/1/69"),
    "two digits of births": (["05-JAN-40", "05-MAR-66", "05-MAR-98", "05-MAR-05"], "D", "06-JAN-40"),
    "halves of the day": (["01/05/2024 10:30 PM", "12/31/1999 12:00 AM"], "m", "01/05/2024 10:31 PM"),
    "small letters": (["5 jan 2024 1:30 pm", "31 dec 1999 12:00 am"], "m", "5 jan 2024 1:31 pm"),
    "days of the week": (["Fri, 05 Jan 2024", "Fri, 31 Dec 1999"], "D", "Sat, 06 Jan 2024"),
    "digits": (["20240105", "19991231", "20200229", "16010203", "20990101"], "D", "20240106"),
    "clock": (["9:05", None, "23:50"], "m", "9:06"),
    "clock with seconds": (["09:05:00", "123:50:07"], "s", "09:05:01"),
    "span": (["2 days 03:00:00", "0 days 01:00:00"], "h", "2 days 04:00:00"),
}  # fmt: skip


FAR = pytest.mark.skipif(pd.__version__ < "3", reason="pandas 2 has dates from 1677 to 2262 alone")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=FAR if case in ("ends of time", "digits") else ()) for case in CASES],
)
def test_cells_come_back_as_they_were(case):
    cells, step, later = CASES[case]
    column = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    moments = Moments.of(column)
    assert moments.step == step
    numbers = moments.numbers(column)
    np.testing.assert_array_equal(np.isnan(numbers), column.isna())
    back = moments.written(numbers)
    assert back.dtype == column.dtype
    pd.testing.assert_series_equal(back, column.reset_index(drop=True), check_names=False)
    assert moments.written(numbers[:1] + 1 / 3, np.ceil)[0] == later
    assert moments.written(numbers[:1] + 1e-9, np.ceil)[0] == column[0]
    assert (
        moments.written(numbers[:1] - 1 / 3 * (numbers[0] > 1), np.ceil)[0] == column[0]
        or step == "ms"
    )
    assert moments.written(np.array([np.inf, -np.inf, 1e30, np.nan])).isna().all()
    assert isinstance(moments.shown(numbers[0]), str)


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "b"],
        ["12", "13"],
        ["2020", "2021"],
        ["20240105", "20240106"],
        [20240101.0 + k for k in range(40)],
        [1.0, 2.0],
        ["1.5", "2.5"],
        ["A-1", "B-2"],
        [True, False],
    ],
)
def test_other_cells_are_no_moments(cells):
    assert Moments.of(pd.Series(cells)) is None


def test_numbers_that_are_dates_and_centuries():
    column = pd.Series([20240105, None, 19991231, 20200229, 20010203, 19690101])
    moments = Moments.of(column)
    assert (moments.cells, moments.step, moments.what) == ("number", "D", "dates")
    back = moments.written(moments.numbers(column))
    assert back.tolist() == [20240105, None, 19991231, 20200229, 20010203, 19690101]
    years = [1940, 1966, 1998, 2005]
    moments = Moments.of(pd.Series([f"01.02.{year % 100:02d}" for year in years]))
    shown = [
        pd.Timestamp(0) + pd.Timedelta(number, "D")
        for number in moments.numbers(pd.Series(["01.02.40", "01.02.05"]))
    ]
    assert [one.year for one in shown] == [1940, 2005]
    assert Moments.of(pd.Series(["12:30", "13:05"]), dates=False).what == "times"
    assert Moments.of(pd.Series(["2024-01-05", "2024-01-06"]), dates=False) is None


MIXED = {
    "ISO and points": (["2024-01-09", "2024-02-09", "31.12.2023"], "2024-01-09 2024-02-09 2023-12-31"),
    "days first, as in the others": (["09/01/2024", "05/02/2024", "31.12.2023"], "2024-01-09 2024-02-05 2023-12-31"),
    "months first, as in the others": (["09/01/2024", "05/02/2024", "12-31-2023"], "2024-09-01 2024-05-02 2023-12-31"),
    "months first, alone": (["09/01/2024", "05/02/2024", "2023-12-31"], "2024-09-01 2024-05-02 2023-12-31"),
    "words": (["Jan 9, 2024", "9 January 2024", "10.01.2024"], "2024-01-09 2024-01-09 2024-01-10"),
    "with and without a time": (["2024-01-09 10:30", "09.01.2024"], "2024-01-09 2024-01-09"),
    "years of two digits too": (["09.02.2024", "09.02.2025", "09.01.24"], "2024-02-09 2025-02-09 2024-01-09"),
    "cells of a sheet and text": ([pd.Timestamp("2024-01-09"), "10.01.2024"], "2024-01-09 2024-01-10"),
    "days and months first": (["31/12/2023", "12/31/2023", "05/02/2024"], None),
    "versions": (["1.2.3", "1.10", "2.0.1"], None),
    "years alone": (["2023", "2024", "1.2.3"], None),
}  # fmt: skip


@pytest.mark.parametrize("case", list(MIXED))
def test_dates_in_several_formats(case):
    cells, expected = MIXED[case]
    column = pd.Series([*cells, None] * 4, dtype=object, name="d")
    moments = Moments.of(column)
    if expected is None:
        assert moments is None
        return
    numbers = moments.numbers(column)
    days = [
        str(pd.Timestamp(0) + pd.Timedelta(number, {"days": "D", "seconds": "s"}[moments.unit]))[
            :10
        ]
        for number in numbers[: len(cells)]
    ]
    assert days == expected.split()
    assert np.isnan(numbers[len(cells)])
    written = moments.written(numbers).tolist()
    again = pd.Series(written, dtype=object)
    assert Moments.of(again).numbers(again) == pytest.approx(numbers, nan_ok=True)
    if not isinstance(cells[0], pd.Timestamp):
        assert written[0] == cells[0]  # the most frequent format, or the first, is that of all


def test_cells_that_are_no_dates_are_left_out_of_the_formats():
    column = pd.Series(["2024-01-09", "09.02.2024", "2024-03-10", "31.12.2023", "soon"] * 3)
    numbers = Moments.of(column).numbers(column)
    assert np.isnan(numbers).tolist() == [False, False, False, False, True] * 3


FORMATS = [
    *("%d-%b-%Y", "%d-%b-%y", "%m/%d/%y", "%d.%m.%y", "%m/%d/%Y %I:%M %p", "%d%b%Y"),
    *("%d%b%Y:%H:%M:%S", "%Y.%m.%d", "%d.%m.%Y, %H:%M", "%d.%m.%Y %H:%M Uhr", "%b-%y", "%m/%Y"),
    *("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S +0000", "%Y%m%dT%H%M%S", "%m-%d-%Y"),
    *("%Y年%m月%d日", "%Y%m%d", "%d. %m. %Y", "%d %b %y"),
]


@pytest.mark.parametrize("style", FORMATS)
def test_a_column_and_a_target_of_dates_are_read_alike(style):
    """What is a date in the column to be filled is one in any other column."""
    days = pd.Timestamp("2019-03-01") + pd.to_timedelta(np.arange(60) * 1000003, unit="s")
    written = pd.Series([day.strftime(style) for day in days], dtype=object)
    meant = pd.to_datetime(written, format=style)
    if meant.dt.tz is not None:
        meant = meant.dt.tz_convert(None)
    column = pd.to_numeric(written) if style == "%Y%m%d" else written
    features = vectorize(pd.DataFrame({"a": column, "b": np.arange(60) % 7}))
    assert features.columns.set_index("name").loc["a", "kind"] == "date"
    seconds = features.encoder.readings["a"].seconds(column)
    np.testing.assert_array_equal(seconds, (meant - pd.Timestamp(0)) / pd.Timedelta("1s"))
    moments = Moments.of(column)
    assert moments.written(moments.numbers(column)).astype(str).tolist() == written.tolist()


LANGUAGES = {
    "German": (["{d}. Januar {y}", "{d}. März {y}", "{d}. Mai {y}", "{d}. Dezember {y}"]),
    "German, short": (["{d:02d}. Jan {y}", "{d:02d}. Mrz {y}", "{d:02d}. Mai {y}", "{d:02d}. Dez {y}"]),
    "French": (["{d} janvier {y}", "{d} mars {y}", "{d} mai {y}", "{d} décembre {y}"]),
    "Spanish": (["{d:02d}-ene-{y}", "{d:02d}-mar-{y}", "{d:02d}-may-{y}", "{d:02d}-dic-{y}"]),
    "English": (["January {d}, {y}", "March {d}, {y}", "May {d}, {y}", "December {d}, {y}"]),
    "shortened": (["Jan. {d}, {y}", "Mar. {d}, {y}", "May {d}, {y}", "Dec. {d}, {y}"]),
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_months_of_other_languages(language):
    months = [1, 3, 5, 12]
    days = [(2020 + k % 4, k % 4, 1 + k % 27) for k in range(40)]
    written = [LANGUAGES[language][m].format(d=d, y=y) for y, m, d in days]
    column = pd.Series(written, dtype=object)
    moments = Moments.of(column)
    meant = pd.to_datetime([f"{y}-{months[m]}-{d}" for y, m, d in days])
    assert moments.read(column).tolist() == meant.tolist()
    assert moments.written(moments.numbers(column)).tolist() == written
    features = vectorize(pd.DataFrame({"a": column, "b": np.arange(40) % 7}))
    assert features.columns.set_index("name").loc["a", "kind"] == "date"


def test_ordinals_in_dates():
    column = pd.Series(["May 1st, 2023", "June 22nd, 2023", "July 3rd, 2023", "May 4th, 2024"] * 3)
    assert Moments.of(column).read(column)[1] == pd.Timestamp("2023-06-22")


@pytest.mark.parametrize(
    "codes", [["0400-01", "0400-02"], ["4711-01", "4711-12"], ["1:20", "1:40", "1:80", "1:160"]]
)
def test_accounts_and_titres_are_no_moments(codes):
    column = pd.Series(np.resize(codes, 40), dtype=object)
    assert Moments.of(column) is None
    features = vectorize(pd.DataFrame({"a": column, "b": np.arange(40) % 7}))
    assert features.columns.set_index("name").loc["a", "kind"] == "category"
