"""Whole numbers beyond 2**53, which double precision does not tell apart."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from transduce.app.tables.columns import read_target
from transduce.app.tables.features import vectorize
from transduce.app.tables.files import read
from transduce.app.tables.whole_numbers import are_exact, large_integers, taken_as_equal

NAMES = [2**60 + 1, 2**60 + 3, 2**60 + 5]
CELLS = [*NAMES * 5, None, None]


def frame_of(kind):
    return pd.DataFrame({"x": range(len(CELLS)), "id": pd.Series(CELLS, dtype=kind)})


@pytest.mark.parametrize("kind", ["Int64", object])
def test_names_are_no_numbers(kind):
    """Identifiers as labels were merged, and those that were left written with other digits."""
    with pytest.raises(ValueError, match=f"holds {NAMES[0]} and {NAMES[1]}, which are the same"):
        read_target(frame_of(kind), "id")
    target = read_target(frame_of(kind), "id", task="classification")
    assert target.known.tolist() == NAMES * 5
    later = target.read(frame_of(kind))
    assert later.known.tolist() == NAMES * 5


def test_numbers_that_differ_keep_their_digits_as_classes_and_are_noted_as_numbers():
    large = [10**18 + 7, 2 * 10**18 + 7, 3 * 10**18 + 7]
    frame = pd.DataFrame({"id": pd.array([*large * 5, None], dtype="Int64")})
    assert set(read_target(frame, "id", task="classification").known) == set(large)
    as_numbers = read_target(frame, "id", task="regression")
    assert any("double precision keeps some 16 digits" in note for note in as_numbers.notes)
    plain = pd.DataFrame({"id": [*range(20), None]})
    assert not any("double precision" in note for note in read_target(plain, "id").notes)


def test_as_a_feature_they_are_names():
    """A column of them was left out as constant."""
    features = vectorize(pd.DataFrame({"id": np.array(NAMES * 5)}))
    assert features.matrix.shape[1] == 3
    assert features.columns["kind"].tolist() == ["category"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet", "feather", "db"])
def test_files_keep_all_digits(tmp_path, ending):
    """With an empty cell among them they became floats."""
    path = str(tmp_path / f"ids.{ending}")
    frame = frame_of("Int64")
    if ending in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    elif ending in ("json", "jsonl"):
        frame.to_json(path, orient="records", lines=ending == "jsonl")
    elif ending == "db":
        with sqlite3.connect(path) as connection:
            frame.astype(object).where(frame.notna(), None).to_sql("ids", connection, index=False)
        path += "::ids"
    else:
        getattr(frame, f"to_{ending}")(path)
    table = read(path)
    target = read_target(table.frame, "id", task="classification", cells=table.column_reading("id"))
    assert list(map(int, target.known)) == NAMES * 5


def test_polars_keeps_all_digits():
    polars = pytest.importorskip("polars")
    from transduce.app.filling.sources import as_pandas

    frame = as_pandas(polars.DataFrame({"id": CELLS, "x": [0.5] * len(CELLS)}))
    assert frame["id"].dropna().tolist() == NAMES * 5


def test_which_are_large():
    column = pd.Series([2**53, -(2**53) - 1, "9007199254740993", " 5", 0.5, None], dtype=object)
    assert large_integers(column) == [-(2**53) - 1, 2**53 + 1]
    assert large_integers(pd.Series([2**53 + 2, 7])) == [2**53 + 2]
    assert large_integers(pd.Series([1e300])) == []
    assert taken_as_equal([5, 2**53 + 1]) is None
    assert are_exact([2**53 + 2])
    assert not are_exact([2**53 + 1])
