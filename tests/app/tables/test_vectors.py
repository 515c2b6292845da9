"""Columns of vectors: one block of features, whatever they are stored in, and what is said of cells that hold none."""

import array
import json
import pickle
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy.sparse import csr_array

from tests.app.tables.noted import texts
from transduce import fill
from transduce.app.filling import fill_folder, load, save
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.table import read_label_table
from transduce.app.tables import files
from transduce.app.tables.features import vectorize
from transduce.app.tables.files import write
from transduce.app.tables.row_hashes import row_hashes
from transduce.app.tables.vectors import MOST_DIRECTIONS, in_short, read_vectors

N, LENGTH = 400, 16
SETTINGS = {"method": "ridge", "sample": 100, "random_state": 1, "ignore": ["number"]}
NEW = ["y_filled", "y_lower", "y_upper", "y_width_reduction"]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    X = random.normal(3.0, 2.0, size=(N, LENGTH)) * np.geomspace(1e-3, 1e3, LENGTH)
    y = X[:, 0] * 1e3 + np.sin(X[:, 5]) + 0.2 * random.normal(size=N)
    frame = pd.DataFrame({"v": [row.tolist() for row in X], "number": np.arange(N)})
    labels = np.where(random.uniform(size=N) < 0.6, y, np.nan).round(6)
    return frame.assign(size=random.normal(size=N).round(6), y=labels)


@pytest.fixture(scope="module")
def filled(table):
    return fill(table, "y", **SETTINGS)


def stored(frame, kind, folder):
    """The same table, from another place."""
    path, lists = folder / f"table{kind}", frame["v"].tolist()
    arrow = pa.table(
        {"v": pa.array(lists, pa.list_(pa.float64(), LENGTH)), **frame.drop(columns="v")}
    )
    if kind == ".parquet":
        parquet.write_table(pa.Table.from_pandas(frame), path)
    elif kind == ".feather":
        feather.write_feather(arrow, path)
    elif kind == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif kind == ".json":
        path.write_text(
            json.dumps(json.loads(frame.to_json(orient="records", double_precision=15)))
        )
    elif kind in (".csv", ".xlsx"):
        texts = frame.assign(v=frame["v"].map(str))
        texts.to_csv(path, index=False) if kind == ".csv" else texts.to_excel(path, index=False)
    elif kind == "arrays":
        return frame.assign(v=[np.array(cell).reshape(4, 4) for cell in lists])
    else:
        one = pl.List(pl.Float64) if kind == "polars list" else pl.Array(pl.Float32, LENGTH)
        return pl.DataFrame({"v": pl.Series(lists, dtype=one), **frame.drop(columns="v")})
    return files.read(path)


KINDS = [
    ".parquet",
    ".feather",
    ".jsonl",
    ".json",
    ".csv",
    ".xlsx",
    "arrays",
    "polars list",
    "polars array",
]


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_answers_wherever_vectors_are_stored(table, filled, tmp_path, kind):
    found = fill(stored(table, kind, tmp_path), "y", **SETTINGS)
    np.testing.assert_array_equal(found.new[NEW].to_numpy(), filled.new[NEW].to_numpy())
    assert found.columns.equals(filled.columns)


@pytest.mark.parametrize("kind", ["parquet", "csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_the_same_answers_in_parts(table, filled, tmp_path, kind):
    """Cells of texts are texts in parts, and draw other rows than numbers do: the same ones as in memory."""
    (tmp_path / "in").mkdir()
    for k, some in enumerate((table[:150], table[150:])):
        path = tmp_path / "in" / f"{k}.{kind}"
        if kind == "parquet":
            some.to_parquet(path)
        elif kind == "csv":
            some.to_csv(path, index=False)
        else:
            some.to_json(path, orient="records", lines=True, double_precision=15)
    fill_folder(str(tmp_path / "in"), "y", tmp_path / "out", **SETTINGS)
    parts = [files.read(path).frame for path in sorted((tmp_path / "out").glob("part-*"))]
    found = pd.concat(parts).sort_values("number")
    if kind != "parquet":
        texts = {name: table[name].map(str, na_action="ignore") for name in ("size", "y")}
        filled = fill(table.assign(**texts), "y", task="regression", **SETTINGS)
    np.testing.assert_allclose(
        found["y_filled"], filled.new["y_filled"], atol=1e-6
    )  # digits of the labels


@pytest.mark.parametrize("as_text", [True, False])
def test_the_same_answers_on_dask(table, filled, as_text):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    import dask.dataframe as dd

    with dask.config.set({"dataframe.convert-string": as_text}):
        found = fill(dd.from_pandas(table, npartitions=3), "y", **SETTINGS).frame.compute(
            scheduler="sync"
        )
    np.testing.assert_array_equal(found[NEW].to_numpy(float), filled.new[NEW].to_numpy(float))


def test_later_rows_and_saved_files(table, filled, tmp_path):
    save(tmp_path / "model.transduce", table, "y", **SETTINGS)
    model = load(tmp_path / "model.transduce")
    later = table[table["y"].isna()][:20]
    as_text = later.assign(v=later["v"].map(lambda cell: str(np.array(cell)).replace("\n", "")))
    found = model.new_columns(later.drop(columns="y"))
    assert np.isfinite(found["y_filled"]).all()
    np.testing.assert_allclose(model.new_columns(as_text)["y_filled"], found["y_filled"], rtol=1e-4)


def test_the_block_is_that_of_the_numbers_in_columns(table):
    """Each number is scaled like a column, and all together count as one."""
    wide = pd.DataFrame(np.array(table["v"].tolist(), dtype=np.float32)).rename(columns=str)
    columns, block = vectorize(wide), vectorize(table[["v"]])
    in_order = columns.matrix[:, np.argsort([int(name) for name in columns.names])]
    np.testing.assert_allclose(block.matrix * LENGTH**0.5, in_order, rtol=1e-5, atol=1e-6)
    assert block.matrix.var(axis=0).sum() == pytest.approx(1.0)
    assert set(block.origins) == {"v"}
    both = vectorize(table[["v", "size"]])
    assert both.matrix[:, :-1].var(axis=0).sum() == pytest.approx(both.matrix[:, -1].var())


def test_vectors_of_unit_length_are_compared_by_cosine():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 24)) * np.linspace(0.05, 3.0, 24)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    features = vectorize(pd.DataFrame({"v": list(X.astype(np.float16))}))
    assert features.columns["treatment"].tolist() == ["vectors of 24 numbers, compared by cosine"]
    squares = np.square(features.matrix[:, None] - features.matrix[None]).sum(axis=2)
    pairs = np.triu_indices(80, 1)
    cosines = (X @ X.T)[pairs]
    np.testing.assert_allclose(
        squares[pairs] * (1 - np.square(X.mean(axis=0)).sum()), 2 - 2 * cosines, atol=0.01
    )
    assert features.matrix.var(axis=0).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shape", "unit"),
    [
        ((60, 300), True),
        ((60, 300), False),
        ((700, 1200), True),
        pytest.param((700, 1200), False, marks=pytest.mark.slow),
    ],
)
def test_long_vectors_are_projected(shape, unit):
    n, d = shape
    random = np.random.default_rng(2)
    X = random.normal(size=(n, 20)) @ random.normal(size=(20, d)) + 0.01 * random.normal(
        size=(n, d)
    )
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X
    frame = pd.DataFrame({"v": list(X.astype(np.float32))})
    features = vectorize(frame)
    k = min(MOST_DIRECTIONS, n)
    assert f"projected onto {k} directions" in features.columns["treatment"][0]
    assert features.matrix.var(axis=0).sum() == pytest.approx(1.0)
    scaled = X - X.mean(axis=0)
    scaled = scaled / (np.sqrt(scaled.var(axis=0).sum()) if unit else scaled.std(axis=0) * d**0.5)
    here, there = (
        np.square(Z[:50, None] - Z[None, :50]).sum(axis=2) for Z in (features.matrix, scaled)
    )
    np.testing.assert_allclose(here, there, rtol=0.02, atol=0.02)
    mixed = frame.sample(frac=1.0, random_state=0)
    np.testing.assert_array_equal(vectorize(mixed).matrix, features.matrix[mixed.index])
    again = pickle.loads(pickle.dumps(features.encoder)).transform(frame)
    np.testing.assert_allclose(again, features.matrix, atol=1e-4)


def test_gaps_are_counted_and_named():
    random = np.random.default_rng(3)
    cells = list(random.normal(size=(60, 8)))
    cells[3], cells[4], cells[5], cells[6] = None, np.zeros(7), [], "no vector"
    cells[7][2], cells[8][1] = np.nan, np.inf
    features = vectorize(pd.DataFrame({"v": cells, "x": random.normal(size=60)}))
    (note,) = texts(features.notes)
    for words in (
        "1 cell is empty",
        "2 vectors have another length",
        "1 cell holds something else",
    ):
        assert words in note
    assert "2 vectors have gaps or infinite numbers" in note
    assert "v is missing" in features.names
    block = features.matrix[:, [name.startswith("v: ") for name in features.names]]
    assert np.unique(block[[3, 4, 5, 6]], axis=0).shape == (1, 8)
    assert np.isfinite(
        features.encoder.transform(pd.DataFrame({"v": [None, "x", [1.0]], "x": 0.0}))
    ).all()


@pytest.mark.parametrize(
    "cells",
    [
        [list(range(k % 9)) for k in range(40)],
        [str(list(range(2 + k % 9))) for k in range(40)],
        [str(np.arange(2000.0)) for _ in range(40)],
    ],
)
def test_a_column_without_a_prevailing_length_is_left_out(cells):
    features = vectorize(pd.DataFrame({"v": cells, "x": np.arange(40.0)}))
    assert features.columns["kind"].tolist() == ["lists", "number"]
    assert "'v' was left out" in texts(features.notes)[0]
    assert set(features.origins) == {"x"}


@pytest.mark.parametrize(
    "cells",
    [
        [["red", "blue"], ["green"], ["red"]] * 5,
        ["[see note 1]", "[1]", "plain"] * 5,
        ["[1]", "[2]", "[3]"] * 5,
        ["(1,234)", "(5,678)", "(12,345)"] * 5,
        ["030 123 45 67", "2020 01 02", "1, 2, 3"] * 5,
        ["{a: 1}", "(see above, please)", "{}"] * 5,
        [{"a": 1}, {"a": 2}, {"b": 1}] * 5,
        ["a", "b", None] * 5,
        [np.array([1j, 2.0]), np.array([3.0, 4j]), None] * 5,
    ],
)
def test_other_lists_and_texts_are_no_vectors(cells):
    assert read_vectors(pd.Series(cells)) is None
    assert (
        "vector"
        not in vectorize(pd.DataFrame({"v": cells, "x": np.arange(15.0)})).columns["kind"].tolist()
    )


def test_constant_and_empty_vectors():
    for cells in ([[1.0, 2.0]] * 5, [list(range(300))] * 5, [[np.nan] * 4] * 5):
        kinds = vectorize(pd.DataFrame({"a": cells, "x": range(5)})).columns
        assert kinds["kind"].tolist() == ["constant", "number"]
    assert vectorize(pd.DataFrame({"a": [list(range(300))]})).matrix.shape == (1, 0)
    assert vectorize(pd.DataFrame({"a": pd.Series([None] * 5, dtype=object)})).matrix.shape == (
        5,
        0,
    )


def test_hashes_depend_on_the_numbers_alone(table):
    lists = row_hashes(table[["v"]])
    packed = pd.Series(table["v"].tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64())))
    for other in (packed, table["v"].map(str), table["v"].map(np.array)):
        np.testing.assert_array_equal(row_hashes(pd.DataFrame({"v": other})), lists)
    assert len(set(lists)) == N
    long = np.zeros((2, 4096))
    long[1, 2000] = 1.0
    assert len(set(row_hashes(pd.DataFrame({"v": list(long)})))) == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda row: str([np.float32(number) for number in row]),
        lambda row: repr(np.array(row)),
        lambda row: repr(np.array(row, dtype=np.float32)),
        lambda row: str(np.array(row)),
        lambda row: json.dumps(row),
        lambda row: " " + str(row).replace(",", ";"),
        lambda row: str(tuple(row)),
        lambda row: "{" + ",".join(map(str, row)) + "}",
        lambda row: " ".join(map(str, row)),
        lambda row: ";".join(map(str, row)),
    ],
)
def test_vectors_as_other_programs_write_them(write):
    rows = [[0.5, -1.25, 3.0, float("nan")] * 2, [1e-5, 2.0, float("inf"), 4.0] * 2]
    found = read_vectors(pd.Series([*map(write, rows), None]))
    np.testing.assert_array_equal(
        found.matrix(8), np.array([*rows, [np.nan] * 8], dtype=np.float32)
    )


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        deque,
        pd.Series,
        np.float16,
        np.ma.array,
        lambda row: array.array("f", row),
        csr_array,
    ],
)
def test_lists_of_any_make_are_vectors(make):
    rows = np.arange(24.0).reshape(6, 4)
    found = read_vectors(pd.Series([make(row) for row in rows], dtype=object))
    np.testing.assert_array_equal(found.matrix(4), rows)
    nested = pd.Series(
        rows.reshape(6, 2, 2).tolist(), dtype=pd.ArrowDtype(pa.list_(pa.list_(pa.float64())))
    )
    np.testing.assert_array_equal(read_vectors(nested).hashes(), found.hashes())


def test_masked_numbers_are_gaps_and_one_number_is_a_vector():
    cells = pd.Series([np.ma.masked_equal([1.0, 2.0], 2.0), None], dtype=object)
    np.testing.assert_array_equal(read_vectors(cells).matrix(2), [[1.0, np.nan], [np.nan, np.nan]])
    table = vectorize(pd.DataFrame({"v": [[float(k)] for k in range(12)]}))
    assert table.columns["treatment"].tolist() == ["vectors of 1 number"]
    assert table.matrix.shape == (12, 1)


def test_what_is_no_vector_is_said():
    cells = {"tags": [["red"], ["red", "blue"], ["blue"]], "about": [{"a": 1}, {"a": 2}, {"b": 1}]}
    table = pd.DataFrame({name: column * 5 for name, column in cells.items()}).assign(x=range(15))
    table["thing"] = [object() for _ in range(15)]
    features = vectorize(table)
    assert len(texts(features.notes)) == 3
    assert texts(features.notes)[0].startswith("'tags': cells such as ['")
    assert "(dict) are neither numbers nor vectors: read as text." in texts(features.notes)[1]
    assert "'thing' was left out: objects of the type object" in texts(features.notes)[2]
    assert features.columns["kind"].tolist() == ["category", "category", "number", "objects"]


def test_vectors_are_shown_in_short_form(tmp_path):
    cells = list(np.arange(3 * 4096.0).reshape(3, 4096))
    pd.DataFrame({"v": cells, "name": ["one", "two", "three"]}).to_parquet(tmp_path / "a.parquet")
    table = read_label_table(tmp_path / "a.parquet", "y")
    assert table.cells(1)[0].text == "[4096, 4097, 4098, …], 4,096 numbers"
    assert table.title(1) == "two"
    assert table.search("two") == [1]
    assert in_short(str(list(range(50)))) == "[0, 1, 2, …], 50 numbers"
    assert in_short("[1, 2]") is None


def test_vectors_are_labelled(tmp_path, monkeypatch):
    """Of many rows, neighbours are searched along a few directions; what is shown is short."""
    monkeypatch.setattr("transduce.app.labelling.prepared.EXACT_TEXTS", 50)
    monkeypatch.setattr("transduce.app.tables.features.FITTED_TEXTS", 110)
    random, truth = np.random.default_rng(4), np.tile([0, 1], 60)
    rows = random.normal(size=(120, 150)) + 2.0 * truth[:, None]
    pd.DataFrame({"v": list(rows.astype(np.float32))}).to_parquet(tmp_path / "a.parquet")
    with Session(
        tmp_path / "a.parquet", "y", classes=["no", "yes"], settings=SessionSettings(seed=0)
    ) as session:
        for row in range(6):
            session.answer(["no", "yes"][truth[row]], row=row)
        assert np.mean(session.answers().values == truth) == 1.0
        assert session.prepared.columns == ("v",)
        assert all(len(cell.text) < 60 for cell in session.table.cells(7))


def test_vectors_are_written_in_other_formats(tmp_path, table):
    source = stored(table[:30], ".parquet", tmp_path)
    new = pd.DataFrame({"y_filled": np.arange(30.0)})
    for kind in (".csv", ".jsonl", ".xlsx", ".feather"):
        write(tmp_path / f"out{kind}", source, new)
        back = read_vectors(files.read(tmp_path / f"out{kind}").frame["v"])
        np.testing.assert_array_equal(back.hashes(), read_vectors(source.frame["v"]).hashes())


def test_a_parquet_file_of_vectors_needs_little_memory(tmp_path):
    pd.DataFrame({"v": list(np.random.default_rng(0).normal(size=(500, 64)))}).to_parquet(
        tmp_path / "a.parquet"
    )
    size = (tmp_path / "a.parquet").stat().st_size
    assert size <= files.memory_needed(tmp_path / "a.parquet") < 10 * size


def test_empty_lists_in_text_beside_what_is_no_list():
    found = read_vectors(pd.Series([*["[1, 2]"] * 5, "[]", "[1-2, 3]"]))
    assert found.lengths.tolist() == [*[2] * 5, 1, 0]
    assert found.n_odd == 1
