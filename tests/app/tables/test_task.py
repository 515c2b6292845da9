"""Numbers or classes: by type and spelling, alike in every kind of table, and never by counting labels."""

from __future__ import annotations

import dask.dataframe as dask
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce import fill
from transduce.app.filling import fill_folder, load, save
from transduce.app.tables import files
from transduce.app.tables.columns import read_target
from transduce.app.tables.formats import Table

COLUMNS = {
    "yes or no": ([0, 1, 1, 0, 1, 0], "classification"),
    "signs": ([-1, 1, 1, -1, 1, -1], "classification"),
    "codes": ([0, 1, 2, 2, 1, 0], "regression"),
    "grades": ([1, 2, 3, 4, 5, 1], "regression"),
    "years": ([1999, 2003, 2003, 1999, 2007, 2010], "regression"),
    "fractions": ([0.5, 1.0, 1.0, 0.0, 0.5, 1.5], "regression"),
    "words": (["yes", "no", "no", "yes", "no", "no"], "classification"),
    "booleans": ([True, False, False, True, True, False], "classification"),
}


def read(table, **options):
    frame = table.frame if isinstance(table, Table) else table
    return read_target(frame, "y", **options)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_kind_of_table_reads_alike(column, tmp_path):
    labels, task = COLUMNS[column]
    frame = pd.DataFrame({"a": np.arange(8.0), "y": pd.Series([*labels, None, None], dtype=object)})
    frame["y"] = frame["y"].infer_objects()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    tables = [files.read(tmp_path / name) for name in ("t.csv", "t.xlsx", "t.parquet")]
    polars = pl.DataFrame({"a": frame["a"].tolist(), "y": [*labels, None, None]})
    tables += [frame, polars.to_pandas(), frame.assign(y=frame["y"].convert_dtypes())]
    found = [read(table) for table in tables]
    assert {one.task for one in found} == {task}
    assert {one.decisive for one in found} == {None}
    other = "regression" if task == "classification" else "classification"
    offered = [any(f"task={other!r} reads them" in note for note in one.notes) for one in found]
    assert set(offered) == {column in ("yes or no", "signs", "codes")}
    if column != "words":
        categories = read(frame.assign(y=frame["y"].astype("category")))
        assert categories.task == "classification"


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0, 1, 2, 3, 7, 0.5]), min_size=4, max_size=12), st.integers(0, 99))
def test_no_label_changes_the_reading_unless_it_is_decisive(labels, which):
    """Drop one label: the reading stays, or that label is the one that is said to have decided it."""
    which %= len(labels)
    fewer = [*labels[:which], *labels[which + 1 :]]
    if not all(2 <= len(set(some)) < len(some) for some in (labels, fewer)):
        return  # refused if they are classes
    one, other = (
        read_target(pd.DataFrame({"y": [*some, None]}, dtype=float), "y")
        for some in (labels, fewer)
    )
    if one.task != other.task:
        assert one.task == "regression"
        assert one.decisive == labels[which]


@pytest.fixture(scope="module")
def one_other():
    """Forty labels of 0 and 1, and one 2."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    y = (a + 0.3 * rng.normal(size=60) > 0).astype(float)
    y[5], y[41:] = 2.0, np.nan
    return pd.DataFrame({"a": a, "y": y})


def test_one_label_that_decides_makes_it_approximate(one_other, tmp_path):
    filled = fill(one_other, "y", method="ridge")
    assert filled.task == "regression"
    assert filled.guarantee.kind == filled.guarantee.headline == "approximate"
    assert filled.guarantee.decisive == 2.0
    assert "One label, 2, decided that these are numbers and not classes" in str(filled.guarantee)
    assert "task=" not in filled.again
    named = fill(one_other, "y", method="ridge", task="regression").guarantee
    assert (named.kind, named.decisive) == ("exact", None)
    two = one_other.assign(y=one_other["y"].where(np.arange(60) != 6, 2.0))
    assert fill(two, "y", method="ridge").guarantee.kind == "exact"
    save(tmp_path / "m.transduce", one_other, "y", method="ridge")
    assert load(tmp_path / "m.transduce").guarantee_of_later(10).decisive == 2.0


def test_files_in_parts_read_alike(one_other, tmp_path):
    for number, part in enumerate(np.array_split(np.arange(60), 2)):
        one_other.iloc[part].to_parquet(tmp_path / f"{number}.parquet", index=False)
    found = fill_folder(str(tmp_path / "*.parquet"), "y", tmp_path / "out", method="ridge")
    assert found.task == "regression"
    assert found.labels.decisive == found.guarantee.decisive == 2.0


def test_categories_that_differ_by_part_are_classes(tmp_path):
    """Parquet does not keep categories that are numbers, so a saved table keeps what was read."""
    a = np.random.default_rng(0).normal(size=64)
    y = pd.Series([*np.repeat([1.0, 2.0], 15), None, None, *np.repeat([2.0, 3.0], 15), None, None])
    parts = dask.from_pandas(pd.DataFrame({"a": a, "y": y}), npartitions=2)
    found = fill(parts.assign(y=parts["y"].astype("category")), "y", method="ridge")
    assert found.task == "classification"
    save(
        tmp_path / "m.transduce",
        pd.DataFrame({"a": a, "y": y.astype("category")}),
        "y",
        method="ridge",
    )
    assert load(tmp_path / "m.transduce").reading.task == "classification"
