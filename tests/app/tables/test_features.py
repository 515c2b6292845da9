"""Columns as features: what each kind becomes, and what is left out."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tests.app.tables.noted import texts
from tests.wild import MAKERS, wild_table
from transduce.app.tables import features as features_module
from transduce.app.tables.features import reduce_words, vectorize

N = 60


def kinds(frame, **settings):
    features = vectorize(pd.DataFrame(frame), **settings)
    assert (
        features.matrix.shape
        == (len(frame), len(features.names))
        == (len(frame), len(features.origins))
    )
    assert np.isfinite(features.matrix).all()
    np.testing.assert_allclose(features.matrix.mean(axis=0), 0, atol=1e-9)
    for name in dict.fromkeys(features.origins):
        check_spread(name, features)
    return features


def check_spread(name, features):
    """Numbers and words have standard deviation 1, categories and dates as a whole; less where most are equal."""
    own = features.matrix[:, [origin == name for origin in features.origins]]
    kind = features.columns.set_index("name").loc[name, "kind"]
    if kind in ("category", "date"):
        assert 0.05 < own.var(axis=0).sum() <= 1 + 1e-9
        return
    for feature in own.T:
        if kind == "text":
            assert abs(feature.std() - 1) < 1e-9
            continue
        apart = feature - np.median(feature)
        half = 0.5 * np.sqrt(np.mean(apart[apart != 0.0] ** 2))
        assert abs(max(feature.std(), half) - 1) < 1e-9


def test_every_column_counts_the_same():
    n = 400
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": random.normal(7.0, 3.0, n),
            "colour": random.choice(list("abcdefgh"), n),
            "place": random.choice([f"town {k}" for k in range(60)], n),
            "day": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(random.integers(0, 900, n), unit="D"),
        }
    )
    features = kinds(frame)
    totals = pd.Series(features.matrix.var(axis=0)).groupby(features.origins).sum()
    np.testing.assert_allclose(totals, 1.0)
    assert features.origins.count("place") == 10


def test_rare_values_are_not_far_off():
    n = 500
    frame = pd.DataFrame(
        {"x": np.arange(n) % 9.0, "rare": np.zeros(n), "few": np.zeros(n), "kind": "plain"}
    )
    frame["day"] = pd.Timestamp("2024-03-04")
    frame["when"] = pd.Timestamp("2024-03-04") + pd.to_timedelta(np.arange(n) % 300, unit="D")
    frame.loc[3, "x"] = np.nan
    frame.loc[[5, 8], "rare"] = 1.0
    frame.loc[[5, 8], "few"] = [1.0, 2.0]
    frame.loc[7, "kind"] = "odd"
    frame.loc[9, "day"] = pd.Timestamp("2020-01-01")
    frame.loc[4, "when"] = pd.NaT
    features = vectorize(frame)
    expected = {"x", "x is missing", "rare", "few", "kind: plain", "when is missing", "day: year"}
    assert expected <= set(features.names)
    assert np.abs(features.matrix).max() < 3.0


FAR_CELLS = {
    "on both sides": {4: 1e15, 90: -3e200},
    "on one side": {4: 1e9, 90: 3e9, 91: 3e9},
    "one": {17: -1e12},
}


@pytest.mark.parametrize("cells", FAR_CELLS.values(), ids=list(FAR_CELLS))
@pytest.mark.parametrize("mostly_zero", [False, True])
def test_absurd_numbers_do_not_set_the_scale(cells, mostly_zero):
    random = np.random.default_rng(1)
    plain = random.normal(5.0, 2.0, 300)
    if mostly_zero:
        plain = np.where(random.uniform(size=300) < 0.8, 0.0, plain)
    dirty = plain.copy()
    dirty[list(cells)] = list(cells.values())
    features = vectorize(pd.DataFrame({"x": dirty, "z": plain}))
    found = dict(zip(features.names, features.matrix.T, strict=True))
    rest = np.delete(np.arange(300), list(cells))
    assert np.abs(found["x"][rest] - found["z"][rest]).max() < 0.1
    assert np.abs(found["x"][list(cells)]).tolist() == [100.0] * len(cells)


def test_what_is_no_mistake_keeps_its_standard_deviation():
    random = np.random.default_rng(2)
    for values in (
        np.exp(random.normal(size=1000)),
        random.standard_t(3, size=1000),
        np.array([0.0, 1.0, 8.0, 27.0, 64.0]),
        np.array([0.0, 1.0, 2.0, 3.0, 1000.0]),  # too few to tell
        random.poisson(0.5, size=300).astype(float),
    ):
        found = vectorize(pd.DataFrame({"x": values})).matrix
        np.testing.assert_allclose([found.mean(), found.std()], [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize(
    ("values", "kind", "n_features"),
    [
        (np.arange(N) * 1.5, "number", 1),
        ([1.0, np.nan] * (N // 2), "number", 1),  # only whether it is missing varies
        ([1.0, np.nan, 3.0] * (N // 3), "number", 2),
        ([np.inf, 2.0, 3.0] * (N // 3), "number", 2),
        ([f"{k},5" for k in range(N)], "number", 1),
        ([f"{k} kg" for k in range(N)], "number", 1),
        (pd.to_timedelta(np.arange(N), unit="s"), "number", 1),
        (pd.array([1, None, 3] * (N // 3), dtype="Int64"), "number", 2),
        ([True, False] * (N // 2), "number", 1),
        (np.array([1e300, -1e300] * (N // 2)), "number", 1),
        (np.array([1.7e308, -1.7e308] * (N // 2)), "number", 1),
        (np.arange(N) * 1e-300, "number", 1),
        (["a", "b", None] * (N // 3), "category", 3),
        (pd.Categorical(["u", "v"] * (N // 2)), "category", 1),
        (["01234", "50667"] * (N // 2), "category", 1),
        ([f"name{k % 50} x" for k in range(N)], "category", 10),
        (pd.date_range("2020-01-01", periods=N), "date", 3),
        ([f"2020-{k % 12 + 1:02d}-03" for k in range(N)], "date", 2),
        ([f"{k % 28 + 1:02d}.03.2021" for k in range(N - 1)] + [None], "date", 3),
        ([f"token{k}" for k in range(N)], "identifier", 0),
        ([7] * N, "constant", 0),
        ([None] * N, "empty", 0),
        (["only"] * N, "constant", 0),
        (pd.to_datetime(["2020-01-01"] * N), "constant", 0),
        ([[k % 2] for k in range(N)], "vector", 1),
        ([f"{k % 24}:0{k % 7}" for k in range(N)], "number", 1),
        ([f"{k} days 02:00:00" for k in range(N - 1)] + ["soon"], "number", 2),
        (pd.Series([datetime.timedelta(days=k % 9) for k in range(N)], dtype=object), "number", 1),
        ([datetime.time(k % 24) for k in range(N)], "number", 1),
    ],
)
def test_kinds(values, kind, n_features):
    features = kinds(pd.DataFrame({"x": values, "other": np.arange(N) % 7}))
    line = features.columns.set_index("name").loc["x"]
    assert (line["kind"], line["n_features"]) == (kind, n_features)
    assert features.origins.count("x") == n_features


@pytest.mark.parametrize(
    "name", ["id", "house_id", "HouseID", "PMID", "key", "Unnamed: 0", "__index_level_0__", ""]
)
def test_counters_called_id_are_dropped(name):
    features = kinds(pd.DataFrame({name: range(N), "video": range(N)}))
    assert features.origins == ["video"]


def test_settings():
    frame = pd.DataFrame(
        {"a": range(N), "b": [f"{k % 3} of it" for k in range(N)], "name": range(N), "y": range(N)}
    )
    features = kinds(frame, target="y", ignore=["a"], text=["b"], id="name")
    assert features.columns["kind"].tolist() == ["ignored", "text", "identifier", "target"]
    assert vectorize(frame[["y"]], "y").matrix.shape == (N, 0)


def test_the_target_is_never_seen():
    frame, _ = wild_table("mixed")
    other = frame.assign(target=frame["target"].sample(frac=1, random_state=0).to_numpy())
    np.testing.assert_array_equal(
        vectorize(frame, "target").matrix, vectorize(other, "target").matrix
    )


def test_text_is_reduced():
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(200)]
    frame = pd.DataFrame(
        {
            "t": [" ".join(rng.choice(words, 8)) for _ in range(N)],
            "none": ["! ?"] * (N - 1) + [". . . ."],
        }
    )
    features = kinds(frame, text=["none"])
    assert features.columns["kind"].tolist() == ["text", "constant"]
    assert features.matrix.shape[1] == 50
    np.testing.assert_array_equal(features.matrix, kinds(frame, text=["none"]).matrix)


@pytest.mark.parametrize("kind", MAKERS)
def test_tables_in_the_wild(kind):
    frame, _ = wild_table(kind)
    assert kinds(frame, target="target").matrix.shape[1] > 0


def test_missing_rows_of_text_and_order_of_rows():
    """The features of a row do not depend on where it stands, up to the sign of directions."""
    frame, _ = wild_table("mixed")
    order = np.random.default_rng(1).permutation(len(frame))
    one, other = vectorize(frame, "target"), vectorize(frame.iloc[order], "target")
    assert one.names == other.names
    plain = [j for j, name in enumerate(one.names) if not name.startswith("Straße")]
    np.testing.assert_allclose(one.matrix[order][:, plain], other.matrix[:, plain], atol=1e-6)


def test_the_order_of_rows_leaves_no_trace():
    """Also where words and letters are reduced at random: rows must not differ by where they stand."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{j}" for j in range(400)])
    frame = pd.DataFrame(
        {
            "text": [" ".join(rng.choice(words, 8)) for _ in range(120)],
            "city": [f"city {rng.integers(0, 90)}" for _ in range(120)],
            "size": rng.normal(size=120),
        }
    )
    mix = rng.permutation(120)
    one, two = vectorize(frame).matrix, vectorize(frame.iloc[mix]).matrix
    np.testing.assert_allclose(two, one[mix], atol=1e-8)


def test_a_column_is_read_as_numbers_where_somebody_says_so():
    """The one number in each cell, of these rows and of later ones; a cell without one is missing, and named."""
    size = [f"{n} m²" if n % 2 else f"{n}0 sqft" for n in range(30, 90)]
    frame = pd.DataFrame({"size": [*size, "unknown to me", "3 or 4"], "x": np.arange(62.0)})
    plain, forced = vectorize(frame), vectorize(frame, number=["size"])
    kinds = [found.columns.set_index("name")["kind"]["size"] for found in (plain, forced)]
    assert kinds == ["identifier", "number"]  # each differs from all others
    assert "are not numbers of one kind (units: sqft, m²)" in texts(plain.notes)[0]
    assert "number='size' reads the number in each" in texts(plain.notes)[0]
    assert "2 cells were taken as missing, since they are not numbers: 'unknown to me'" in " ".join(
        texts(forced.notes)
    )
    assert forced.columns.set_index("name")["n_missing"]["size"] == 2
    np.testing.assert_allclose(forced.encoder.transform(frame), forced.matrix)


def test_categories_that_differ_in_blanks_or_capitals_are_noted():
    frame = pd.DataFrame(
        {"district": ["West", "West ", "west", "North", "South", "NORTH"] * 5, "x": range(30)}
    )
    assert texts(vectorize(frame).notes) == [
        "Categories of 'district' that differ in capitals only were taken as the same: 'NORTH' (5), 'North' (5); "
        "'West' (10), 'west' (5). Use case_sensitive=True to keep them apart."
    ]


@pytest.mark.parametrize("fitted", [10_000, 50])
def test_words_of_many_texts_are_reduced_along_directions_of_some(fitted, monkeypatch):
    """Texts that differ in three directions differ in them wherever one looks: their products stay as they are."""
    monkeypatch.setattr(features_module, "FITTED_TEXTS", fitted)
    rng = np.random.default_rng(0)
    weights = sp.csr_array(
        rng.random((200, 3)) @ (rng.random((3, 40)) * (rng.random((3, 40)) < 0.5))
    )
    reduction, along = reduce_words(weights, 3, 0)
    np.testing.assert_allclose(along @ along.T, (weights @ weights.T).toarray(), atol=1e-9)
    np.testing.assert_allclose(reduction.transform(weights), along, atol=1e-9)


def test_dates_in_several_formats_are_dates():
    """A column in which two people wrote dates differently is one of dates, for later rows too."""
    cells = ["2024-01-09", "09.02.2024", "2024-03-10", "31.12.2023", "09/05/2024"] * 4
    features = vectorize(pd.DataFrame({"seen": cells, "x": range(20)}))
    plain = vectorize(
        pd.DataFrame(
            {
                "seen": ["2024-01-09", "2024-02-09", "2024-03-10", "2023-12-31", "2024-05-09"] * 4,
                "x": range(20),
            }
        )
    )
    assert features.columns["kind"].tolist() == ["date", "number"]
    np.testing.assert_allclose(features.matrix, plain.matrix)
    (note,) = features.notes
    assert str(note).startswith("'seen' has dates in several formats: ")
    assert "'09/05/2024' as 2024-05-09" in str(note)
    later = pd.DataFrame({"seen": ["10.03.2024"], "x": [2]})
    as_plain = pd.DataFrame({"seen": ["2024-03-10"], "x": [2]})
    np.testing.assert_allclose(features.encoder.transform(later), plain.encoder.transform(as_plain))
