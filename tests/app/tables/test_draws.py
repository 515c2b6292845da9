"""Draws of rows by what is in them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from transduce.app.filling.options import Options
from transduce.app.filling.sources import scan_rows
from transduce.app.tables.row_draws import PartScan, draw_roles
from transduce.app.tables.row_hashes import cell_hashes, content_order, draw_keys, row_hashes


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": random.integers(0, 5, 400).astype(float),
            "b": random.choice(["x", "y", None], 400),
            "when": pd.date_range("2020-01-01", periods=400, freq="D"),
            "y": np.where(random.uniform(size=400) < 0.3, random.normal(size=400), np.nan),
        }
    )


def drawn_rows(parts, seed=0, **numbers):
    """Return the rows drawn, as a sorted list of what is in them."""
    scans = [
        scan_rows(part, part["y"].isna().to_numpy(), "y", Options(random_state=seed))
        for part in parts
    ]
    roles = draw_roles(scans, **numbers)
    return [
        sorted(tuple(map(str, parts[part].iloc[row])) for part, row in places.tolist())
        for places in (roles.visible, roles.calibration, roles.sampled)
    ]


def test_parts_and_order_change_nothing(table):
    numbers = {"n_calibration": 20, "n_visible": 50, "n_sampled": 100}
    whole = drawn_rows([table], **numbers)
    assert [len(rows) for rows in whole] == [50, 20, 100]
    shuffled = table.sample(frac=1.0, random_state=1)
    assert (
        drawn_rows([shuffled.iloc[:10], shuffled.iloc[10:333], shuffled.iloc[333:]], **numbers)
        == whole
    )
    assert drawn_rows([table], seed=1, **numbers) != whole


def test_copies_of_a_row_are_drawn_one_by_one(table):
    few = table[["a", "y"]].assign(y=np.nan)
    whole = drawn_rows([few], n_calibration=0, n_visible=0, n_sampled=100)
    halves = drawn_rows(
        [few.iloc[200:], few.iloc[:200]], n_calibration=0, n_visible=0, n_sampled=100
    )
    assert len(whole[2]) == 100
    assert whole == halves


def test_draws_are_uniform():
    """Every third of the rows, by a column, is drawn in proportion (chi-square, two degrees of freedom)."""
    frame = pd.DataFrame({"a": np.arange(30_000.0), "y": np.nan})
    roles = draw_roles(
        [scan_rows(frame, np.ones(30_000, dtype=bool), "y", Options(random_state=5))],
        n_calibration=0,
        n_visible=0,
        n_sampled=6000,
    )
    counts = np.bincount(roles.sampled[:, 1] // 10_000, minlength=3)
    assert ((counts - 2000) ** 2 / 2000).sum() < chi2.ppf(0.9999, 2)


def test_only_marked_rows_calibrate():
    marked = np.arange(40) < 8
    part = PartScan(np.zeros(40, dtype=bool), np.arange(40, dtype=np.uint64), marked)
    roles = draw_roles([part], n_calibration=4, n_visible=100, n_sampled=9)
    assert len(roles.calibration) == 4
    assert marked[roles.calibration[:, 1]].all()
    assert len(roles.visible) == 36


def test_types_that_hold_the_same_numbers_hash_alike():
    whole = pd.DataFrame({"n": [1, 2, 3]})
    for kind in ("float64", "Int64", "int8"):
        assert np.array_equal(row_hashes(whole), row_hashes(whole.astype(kind)))
    zeros = row_hashes(pd.DataFrame({"n": [0.0, -0.0]}))
    assert zeros[0] == zeros[1]


@pytest.mark.parametrize("levels", [2, 3, 10**6])
def test_names_and_places_of_columns_do_not_order_rows(levels):
    """Few levels make rows that hold the same cells in other columns."""
    random = np.random.default_rng(levels)
    cells = pd.DataFrame(random.integers(levels, size=(60, 4)).astype(float), columns=list("abcd"))
    cells["e"] = random.choice(["x", "y"], 60)
    labels = pd.Series(random.normal(size=60)).where(np.arange(60) < 20)
    order = content_order(cells, labels, labels.isna())
    for names in random.permuted(np.tile(list("abcde"), (20, 1)), axis=1):
        renamed = cells.set_axis([f"{name} of others" for name in names], axis=1)[
            [f"{name} of others" for name in random.permutation(names)]
        ]
        np.testing.assert_array_equal(content_order(renamed, labels, labels.isna()), order)
    shuffled = random.permutation(60)
    again = content_order(cells.iloc[shuffled], labels[shuffled], labels[shuffled].isna())
    rows = pd.concat([cells, labels], axis=1)
    in_order = rows.iloc[shuffled].iloc[again].reset_index(drop=True)
    pd.testing.assert_frame_equal(in_order, rows.iloc[order].reset_index(drop=True))


def test_keys_of_no_rows():
    assert len(draw_keys(np.empty(0, dtype=np.uint64))) == 0


def test_dates_have_one_hash_however_they_are_kept():
    """A file without types holds dates as text, others count them in units of their own."""
    days = pd.Series(pd.to_datetime(["2024-01-31", "1969-12-31", None, "2024-02-29"]))
    times = days + pd.to_timedelta([0.0, 37230.5, 0.0, 60.0], unit="s")
    for column in (days, times):
        expected = cell_hashes(column.astype("datetime64[ns]"))
        assert len(set(expected.tolist())) == 4
        assert expected[2] == 0
        for unit in ("us", "ms"):
            np.testing.assert_array_equal(
                cell_hashes(column.astype(f"datetime64[{unit}]")), expected
            )
        for sign in (" ", "T"):
            texts = pd.Series([None if day is pd.NaT else day.isoformat(sign) for day in column])
            np.testing.assert_array_equal(cell_hashes(texts), expected)
        zoned = column.dt.tz_localize("Europe/Berlin")
        np.testing.assert_array_equal(cell_hashes(zoned), expected)
    plain = pd.Series([None if day is pd.NaT else day.date() for day in days], dtype=object)
    np.testing.assert_array_equal(cell_hashes(plain), cell_hashes(days))
    spans = pd.Series(pd.to_timedelta([90, 5, None], unit="s"))
    np.testing.assert_array_equal(
        cell_hashes(spans.astype("timedelta64[ms]")), cell_hashes(spans.astype("timedelta64[ns]"))
    )
