"""Rows that come later become the same features."""

import pickle

import numpy as np
import pandas as pd
import pytest

from tests.app.tables.noted import texts
from transduce.app.tables.features import vectorize

WORDS = [
    "the red house by the sea",
    "a small flat near the old town",
    "one room and a kitchen, no bath",
]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(3)
    n = 120
    return pd.DataFrame(
        {
            "number": random.normal(size=n) * 1e6,
            "holes": np.where(random.uniform(size=n) < 0.2, np.nan, random.normal(size=n)),
            "marked": np.where(random.uniform(size=n) < 0.1, -999.0, random.uniform(size=n)),
            "comma": [f"{value:.2f} EUR".replace(".", ",") for value in random.uniform(1, 99, n)],
            "limit": [f"<{v:.1f}" if v < 0.2 else f"{v:.3f}" for v in random.uniform(size=n)],
            "few": random.choice(["a", "b", "c", None], n),
            "two": random.choice(["no", "yes"], n),
            "many": [f"street {k}" for k in random.integers(0, 60, n)],
            "date": pd.date_range("2021-03-01", periods=n, freq="h"),
            "day": [f"2021-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(n)],
            "span": pd.to_timedelta(random.integers(1, 99, n), unit="s"),
            "text": [f"{WORDS[k % 3]} {k}" for k in range(n)],
            "flag": random.choice([True, False], n),
            "y": random.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def features(table):
    return vectorize(table, "y", text=["text"])


def test_the_same_rows_become_the_same_features(table, features):
    """All but words that were reduced, where the reduction of later rows is a projection, up to its tolerance."""
    again = features.encoder.transform(table)
    exact = [j for j, name in enumerate(features.names) if "direction" not in name]
    assert len(exact) > 20
    np.testing.assert_allclose(again[:, exact], features.matrix[:, exact], atol=1e-9)


def test_each_row_by_itself(table, features):
    encoder = pickle.loads(pickle.dumps(features.encoder))
    whole = encoder.transform(table)
    parts = [
        encoder.transform(table.iloc[rows]) for rows in (slice(0, 1), slice(1, 50), slice(50, None))
    ]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12, atol=1e-12)
    assert encoder.transform(table.iloc[:0]).shape == (0, whole.shape[1])


def test_what_was_never_seen_is_finite(table, features):
    odd = table.iloc[:3].copy()
    odd["few"], odd["many"], odd["number"] = "z", "nowhere at all", [np.inf, np.nan, 1e300]
    odd["comma"], odd["day"], odd["text"] = (
        ["n.d.", None, "12,5 EUR"],
        ["soon", None, "2021-05-05"],
        [None, "", "sea"],
    )
    assert np.isfinite(features.encoder.transform(odd)).all()


def test_numbers_may_come_as_text_later(table):
    encoder = vectorize(table[["number", "y"]], "y").encoder
    texts = table[["number"]].map(repr)
    np.testing.assert_allclose(encoder.transform(texts), encoder.transform(table), rtol=1e-12)


def test_a_missing_column_is_named(table, features):
    with pytest.raises(ValueError, match="no column 'number'"):
        features.encoder.transform(table.drop(columns="number"))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("step", ["D", "7h"])
def test_dates_are_read_as_skrub_reads_them(zone, step):
    """The parts of dates are those of skrub's encoder, also where later rows are text or in another zone."""
    from skrub import DatetimeEncoder

    dates = pd.Series(pd.date_range("1969-11-02", periods=400, freq=step, tz=zone), name="d")
    holes = dates.mask(np.arange(400) % 9 == 0)
    features = vectorize(pd.DataFrame({"d": holes}))
    slow = DatetimeEncoder().fit_transform(holes)
    seconds = (holes - pd.Timestamp(0, tz=None if zone is None else "UTC")).dt.total_seconds()
    np.testing.assert_allclose(
        slow["d_total_seconds"], seconds, rtol=1e-7
    )  # which it rounds to single precision
    slow = slow.assign(d_total_seconds=seconds).to_numpy(dtype=float)
    slow = np.where(np.isnan(slow), np.nanmedian(slow, axis=0), slow)
    slow = slow[:, np.ptp(slow, axis=0) > 0.0]  # some versions give the hour of midnights in a zone
    scales = [scale for scale in features.encoder.scales if scale.feature != "d is missing"]
    own = [scale.apply(values) for scale, values in zip(scales, slow.T, strict=True)]
    np.testing.assert_array_equal(features.matrix[:, : len(own)], np.column_stack(own))
    for other in (
        holes,
        holes.astype(str).mask(holes.isna(), None),
        pd.to_datetime(holes, utc=True),
    ):
        found = features.encoder.transform(pd.DataFrame({"d": other}))
        np.testing.assert_array_equal(found, features.matrix)


def test_every_second_of_a_date_counts():
    dates = pd.Series(pd.date_range("2024-05-01 10:00", periods=1800, freq="s"))
    assert len(np.unique(vectorize(pd.DataFrame({"d": dates})).matrix, axis=0)) == 1800


@pytest.mark.parametrize("zone", ["Africa/Cairo", "America/Havana"])
def test_where_the_clock_changes_at_midnight(zone):
    dates = pd.Series(pd.date_range("2023-01-01", periods=8760, freq="h", tz="UTC")).dt.tz_convert(
        zone
    )
    features = vectorize(pd.DataFrame({"d": dates}))
    assert "d: hour" in features.names
    np.testing.assert_array_equal(
        features.encoder.transform(pd.DataFrame({"d": dates})), features.matrix
    )


def test_cells_of_later_rows_are_noted_as_those_of_the_table(table, features):
    """Numbers, limits and dates in the same sentences; categories that the fit did not see besides."""
    bad = table.astype({"number": object})
    bad.loc[[3, 8], "number"], bad.loc[4, "comma"], bad.loc[5, "day"] = "broken", "free", "some day"
    bad.loc[[6, 9], "few"], bad.loc[7, "two"] = ["d", "e"], None
    rows = np.arange(len(bad))
    own, later = (
        texts(vectorize(bad, "y", text=["text"]).notes),
        texts(features.encoder.notes(bad, rows)),
    )
    unseen = "'few': 2 cells hold categories that the fit did not see: 'd' (row 7), 'e' (row 10)."
    assert [note for note in later if note not in own] == [unseen]
    assert (
        sum(
            "not a number" in note or "not numbers" in note or "not a date" in note
            for note in later
        )
        == 3
    )
    assert any(note.startswith("'number': 2 cells were taken as missing") for note in later)
    assert texts(features.encoder.notes(bad.iloc[[6]], np.array([41]))) == [
        "'few': 1 cell holds a category that the fit did not see: 'd' (row 42)."
    ]
    assert texts(features.encoder.notes(bad.iloc[:0], rows[:0])) == []
