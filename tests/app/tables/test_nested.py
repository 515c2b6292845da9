"""Objects in cells: their fields are columns wherever a table comes in, and stay objects in files."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from transduce.app.tables.files import read, write
from transduce.app.tables.nested import (
    MOST_FIELDS,
    ObjectFields,
    divide_objects,
    fields_below,
    refuse_objects,
)

ROWS = [
    {"input": {"text": "a b"}, "output": {"label": "x", "n": 1}, "gold": "x"},
    {"input": {"text": "c"}, "output": {"label": "y", "n": None}, "gold": None},
    {"input": {"text": "d"}, "output": None, "gold": None},
]
FIELDS = ["input.text", "output.label", "output.n", "gold"]


def divided(column):
    frame, _fields = divide_objects(pd.DataFrame({"o": pd.Series(column, dtype=object)}))
    return {
        name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame
    }


class TestDividing:
    def test_each_field_of_an_object_is_a_column(self):
        assert divided([{"a": 1, "b": {"c": "x"}}, {"a": 2}]) == {
            "o.a": [1, 2],
            "o.b.c": ["x", None],
        }

    def test_objects_in_lists_are_numbered(self):
        cells = [[{"m": {"text": "yes"}}, {"m": None}], [{"m": {"text": "no"}}]]
        assert divided(cells) == {"o.0.m.text": ["yes", "no"], "o.1.m": [None, None]}
        assert divided([np.array(cell, dtype=object) for cell in cells]) == divided(cells)

    def test_objects_as_text_are_read(self):
        assert divided(['{"a": "x"}', '{"a": "y"}']) == {"o.a": ["x", "y"]}
        assert divided(["{a} is a set", "{b}"]) == {"o": ["{a} is a set", "{b}"]}

    def test_what_is_no_object_keeps_its_name(self):
        """As where an interface answered some rows with the text of an error."""
        assert divided([{"a": 1}, "error: timeout", {"a": 3}]) == {
            "o.a": [1, None, 3],
            "o": [None, "error: timeout", None],
        }

    def test_fields_that_are_missing_everywhere_are_empty_columns(self):
        assert divided([{"a": None}, {"a": None}]) == {"o.a": [None, None]}
        assert divided([{"a": None}, {"a": {"b": 1}}]) == {"o.a.b": [None, 1]}

    def test_whole_numbers_keep_their_digits(self):
        large = 2**60 + 1
        assert divided([{"id": large}, {"id": None}]) == {"o.id": [large, None]}

    @pytest.mark.parametrize(
        "cells",
        [
            [{}, {}],
            [{"a.b": 1, "a": {"b": 2}}],
            [{str(key): 1 for key in range(MOST_FIELDS + 1)}],
            [[1.0, 2.0], [3.0, 4.0]],
            [["red"], ["red", "blue"]],
            [{"bytes": b"\x89PNG", "path": "a.png"}] * 3,
        ],
    )
    def test_columns_that_stay_as_they_are(self, cells):
        frame = pd.DataFrame({"o": pd.Series(cells, dtype=object)})
        same, fields = divide_objects(frame)
        assert same is frame
        assert not fields.paths

    def test_a_field_is_never_called_as_another_column(self):
        frame = pd.DataFrame({"o": [{"a": 1}], "o.a": [5]})
        assert divide_objects(frame)[0] is frame

    def test_later_rows_get_the_fields_that_are_known(self):
        frame = pd.DataFrame({"o": [{"a": 1, "b": 2}], "x": [0]})
        fields = ObjectFields.of(frame)
        later = pd.DataFrame({"o": [{"b": 5, "c": 6}], "x": [1]})
        for rows in (later, divide_objects(later)[0]):
            read_rows = fields.divide(rows)
            assert read_rows["o.b"].tolist() == [5]
            assert read_rows["o.a"].isna().all()
        assert fields.divide(fields.divide(frame)).equals(fields.divide(frame))

    def test_names_of_objects_stand_for_their_fields(self):
        columns = ["o.a", "o.b", "other"]
        assert fields_below(columns, ["o", "other"]) == ["o.a", "o.b", "other"]
        assert fields_below(columns, ["unknown"]) == ["unknown"]
        with pytest.raises(ValueError, match=r"holds objects: name one of .* 'o\.a'"):
            refuse_objects(columns, ["o"])


@pytest.fixture(params=["jsonl", "json", "parquet", "sqlite"])
def nested_file(request, tmp_path):
    path = tmp_path / f"table.{request.param}"
    if request.param == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    elif request.param == "json":
        path.write_text(json.dumps(ROWS))
    elif request.param == "parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE judged (input, output, gold)")
        texts = [[json.dumps(row["input"]), json.dumps(row["output"]), row["gold"]] for row in ROWS]
        texts[2][1] = None
        database.executemany("INSERT INTO judged VALUES (?, ?, ?)", texts)
        database.commit()
        database.close()
    return path


class TestFiles:
    def test_fields_are_columns_of_the_table(self, nested_file):
        table = read(nested_file)
        assert table.frame.columns.tolist() == FIELDS
        assert table.frame["output.label"].tolist()[:2] == ["x", "y"]
        assert table.stored_frame.columns.tolist() == ["input", "output", "gold"]

    @pytest.mark.parametrize("ending", ["jsonl", "json", "parquet", "csv", "sqlite"])
    def test_they_are_written_as_the_objects_they_were(self, nested_file, ending, tmp_path):
        table = read(nested_file)
        out = tmp_path / f"out.{ending}"
        if ending == "sqlite":
            out = f"{out}::new"
        write(out, table, pd.DataFrame({"new": [1, 2, 3]}))
        again = read(out)
        assert again.stored_frame.columns.tolist() == ["input", "output", "gold", "new"]

    def test_json_keeps_every_byte(self, nested_file, tmp_path):
        if nested_file.suffix != ".jsonl":
            return
        out = tmp_path / "out.jsonl"
        write(out, read(nested_file), pd.DataFrame({"new": [1, 2, 3]}))
        for given, written in zip(
            nested_file.read_text().splitlines(), out.read_text().splitlines(), strict=True
        ):
            assert written.startswith(given[:-1])


def test_blank_text_beside_objects_is_no_column():
    """SQLite keeps an empty text where there is no object."""
    frame = pd.DataFrame({"a": ['{"x": 1}', "", '{"x": 3}', " "]})
    divided, fields = divide_objects(frame)
    assert divided.columns.tolist() == ["a.x"]
    assert divided["a.x"].isna().tolist() == [False, True, False, True]
    pd.testing.assert_frame_equal(fields.rejoin(divided, frame), frame)
