"""Tables in files: what is read, and that old columns come back as they were."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from transduce.app.tables import files as tables
from transduce.app.tables.delimited import sniff_delimiter
from transduce.app.tables.encodings import decode
from transduce.app.tables.files import write
from transduce.app.tables.numbers import find_numbers, number_text, plain_numbers, typed
from transduce.core.files import check_free, temporary_name, whole_file, write_text

NEW = pd.DataFrame({"y_filled": [1.5, 2.0], "y_status": ["given", "answered"]})


def read_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return tables.read(tmp_path / name)


# ------------------------------------------------------------------------------------------------------ exact


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a;b\n1,5;x\n-2;y\n", {"a": [1.5, -2.0], "b": ["x", "y"]}),
        ("a\tb\n1\t\n2\ty", {"a": [1, 2], "b": [None, "y"]}),
        ("a|b\n007|1e3\n12|2\n", {"a": ["007", "12"], "b": [1000.0, 2.0]}),
        ('a,b\n"x, ""y""",1\n"two\nlines",2\n', {"a": ['x, "y"', "two\nlines"], "b": [1, 2]}),
        ("a,b\n1.234,5\n,6\n", {"a": [1.234, np.nan], "b": [5, 6]}),
        ("a;b\n1.234,5;NA\n2;?\n", {"a": [1234.5, 2.0], "b": [None, None]}),
        ("größe,名\n1,é\n2,ß\n", {"größe": [1, 2], "名": ["é", "ß"]}),
    ],
)
def test_delimited_text_is_typed(tmp_path, text, frame):
    found = read_bytes(tmp_path, "a.csv", text.encode()).frame
    assert found.columns.tolist() == list(frame)
    for name, values in frame.items():
        assert [None if pd.isna(value) else value for value in found[name]] == [
            None if pd.isna(value) else value for value in values
        ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_old_fields_come_back_byte_by_byte(tmp_path, encoding, end, last):
    lines = ['Straße,"y",date', '"Ä, ""b""",1.50,01/02/2020', " 007 ,,2020-1-1"]
    text = end.join(lines) + (end if last else "")
    table = read_bytes(tmp_path, "a.csv", text.encode(encoding))
    write(tmp_path / "b.csv", table, NEW)
    wanted = [
        f"{line},{more}"
        for line, more in zip(lines, ["y_filled,y_status", "1.5,given", "2,answered"], strict=True)
    ]
    assert (tmp_path / "b.csv").read_bytes() == (end.join(wanted) + (end if last else "")).encode(
        encoding
    )


@pytest.mark.parametrize(
    ("cells", "as_written"),
    [
        (["1,5", "2"], "1,5"),
        (["1,5", "2", "broken", "3,25", "4", "NA", "7"], "1,5"),  # one bad cell makes a column text
        (["1,5 m²", "2 m²", "<3,5 m²"], "1,5"),
        (["1.5", "2", "broken", "3.25", "4"], "1.5"),
        (["a", "b", "c,d"], "1.5"),
        (["12 rooms, 3,5 baths", "none"], "1.5"),
        (["1", "2", "3", "4", "2, maybe 3"], "1.5"),  # no number with a comma
        (["0 m", "1 m", "2 m", "none, closed", "3 m"], "1.5"),
    ],
)
def test_decimal_commas_are_written_where_they_were_read(tmp_path, cells, as_written):
    text = "\n".join(["a;y", *(f"{cell};" for cell in cells)])
    table = read_bytes(tmp_path, "a.csv", text.encode())
    write(tmp_path / "b.csv", table, pd.DataFrame({"y_filled": np.full(len(cells), 1.5)}))
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == f"{cells[0]};;{as_written}"


def test_parquet_keeps_types_and_order(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.table(
        {
            "i": pa.array([1, None], pa.int16()),
            "d": pa.array([0, 1], pa.date32()),
            "c": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    pq.write_table(source, tmp_path / "a.parquet")
    table = tables.read(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", table, NEW)
    back = pq.read_table(tmp_path / "b.parquet")
    assert back.select(["i", "d", "c"]).equals(source)
    assert back.column_names[3:] == ["y_filled", "y_status"]


def test_json_lines_keep_their_text(tmp_path):
    table = read_bytes(tmp_path, "a.jsonl", '{"a": 1.50, "b": "é\u2028"}\r\n\n{ }\n'.encode())
    write(tmp_path / "b.jsonl", table, NEW.assign(y_filled=[np.nan, np.inf]))
    lines = (tmp_path / "b.jsonl").read_text().split("\n")
    assert lines[0] == '{"a": 1.50, "b": "é\u2028", "y_filled": null, "y_status": "given"}'
    assert json.loads(lines[1]) == {"y_filled": None, "y_status": "answered"}
    pd.DataFrame({"own": [np.inf, 1.0]}).to_parquet(tmp_path / "c.parquet")
    write(
        tmp_path / "c.json",
        tables.read(tmp_path / "c.parquet"),
        NEW.assign(y_filled=[-np.inf, 2.0]),
    )
    found = json.loads((tmp_path / "c.json").read_text())
    assert [list(row.values())[:2] for row in found] == [
        ["inf", None],
        [1.0, 2.0],
    ]  # own cells stay


def test_excel_keeps_its_cells(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in (
        ["a", "when"],
        [1, pd.Timestamp("2020-01-02").to_pydatetime()],
        [None, None],
        ["x", None],
    ):
        sheet.append(row)
    sheet["A2"].number_format = "0.000"
    book.create_sheet("other")["A1"] = "kept"
    book.save(tmp_path / "a.xlsx")
    table = tables.read(tmp_path / "a.xlsx")
    assert table.frame["a"].tolist() == [1, "x"]  # a blank row is none of the table
    new = pd.DataFrame({"y": [1.0, -np.inf]})
    write(tmp_path / "b.xlsx", table, new)
    back = openpyxl.load_workbook(tmp_path / "b.xlsx")
    assert [cell.value for cell in back.worksheets[0]["C"]] == ["y", 1, None, "-inf"]
    assert back.worksheets[0]["A2"].number_format == "0.000"
    assert back["other"]["A1"].value == "kept"


@pytest.mark.parametrize(
    "name", ["b.csv.gz", "b.tsv", "b.parquet", "b.jsonl.zip", "b.xlsx", "b.csv.zip"]
)
def test_any_kind_is_written_from_any_other(tmp_path, name):
    table = read_bytes(tmp_path, "a.csv", b"a,b\n1,x\n2,\n")
    write(tmp_path / name, table, NEW)
    back = tables.read(tmp_path / name).frame
    assert back.columns.tolist() == ["a", "b", "y_filled", "y_status"]
    assert back["a"].tolist() == [1, 2]
    assert back["y_status"].tolist() == ["given", "answered"]
    assert pd.isna(back["b"][1])


def test_packed_tables_and_tables_without_a_suffix(tmp_path):
    assert read_bytes(tmp_path, "a.csv.gz", gzip.compress(b"a;b\n1;2\n")).frame.shape == (1, 2)
    assert read_bytes(tmp_path, "nothing", b'{"a": 1}\n').kind == "json lines"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.tsv", "a\tb\n1\t2\n")
    assert read_bytes(tmp_path, "a.zip", buffer.getvalue()).kind == "tsv"


def test_standard_input_and_output(tmp_path, monkeypatch):
    class Stream:
        def __init__(self, content=b""):
            self.buffer = io.BytesIO(content)

    monkeypatch.setattr("sys.stdin", Stream(b"a,y\n1,2\n3,\n"))
    out = Stream()
    monkeypatch.setattr("sys.stdout", out)
    write("-", tables.read("-"), NEW)
    assert out.buffer.getvalue().startswith(b"a,y,y_filled,y_status\n1,2,1.5,given\n")


# ------------------------------------------------------------------------------------------------- numbers, text


@pytest.mark.parametrize(
    ("texts", "values", "decimal", "unit"),
    [
        (["1,200 EUR", "950 EUR", None], [1200, 950, np.nan], "point", "EUR"),
        (["$1,200.50", "$3"], [1200.5, 3], "point", "$"),
        (["1.200,50 €", "3 €"], [1200.5, 3], "comma", "€"),
        (["12 %", "7.5 %"], [12, 7.5], "point", "%"),
        (["1 200", "3"], [1200, 3], "point", ""),
        (["-1e-3", ".5"], [-0.001, 0.5], "point", ""),
        (["2020-01-02", "2020-03-04"], [np.nan, np.nan], "point", ""),
        (["u1", "u2"], [np.nan, np.nan], "point", ""),
        (["5 m", "6 km", "7 m"], [5, np.nan, 7], "point", "m"),
    ],
)
def test_numbers_in_text(texts, values, decimal, unit):
    found = find_numbers(texts)
    np.testing.assert_array_equal(found.values, values)
    if not np.isnan(values).all():
        assert (found.decimal, found.unit) == (decimal, unit)


def test_the_quick_way_to_numbers_is_the_long_one():
    """Draws of numbers, codes, words for nothing and what Python or Arrow may take for a number."""
    cells = "1 -2 +3 0 00 007 -07 1.5 .5 5. 1e5 1E-3 -.5e+3 inf nan NaN NA 1_000 1,5 0x10 1e400 1e-400 -0 -0.0 ? 2.675"
    cells += " 123456789012345678 999999999999999999 1234567890123456789 9007199254740993"
    cells += " 4.9406564584124654e-324 \u0663 None true"
    random, n_quick = np.random.default_rng(0), 0
    for _ in range(1000):
        texts = random.choice(
            np.array([*cells.split(), "", " 7 ", "9\n"], dtype=object), random.integers(1, 5)
        )
        quick, (typed_texts, decimal) = plain_numbers(texts), typed(texts)
        if quick is not None:
            n_quick += 1
            assert decimal == "point"
            pd.testing.assert_series_equal(quick, typed_texts, check_exact=True)
    assert n_quick > 200


def test_typed_columns():
    assert typed(np.array(["1", "2"], dtype=object))[0].dtype == "int64"
    assert typed(np.array(["99999999999999999999", "2"], dtype=object))[0].dtype == float
    assert typed(np.array(["1", "x"], dtype=object))[0].tolist() == ["1", "x"]
    assert typed(np.array(["1 m", "2 m"], dtype=object))[0].tolist() == ["1 m", "2 m"]
    assert typed(np.array(["", "NA"], dtype=object))[0].isna().all()
    assert typed(np.array(["3,5", "1e400"], dtype=object), "comma")[0].tolist() == ["3,5", "1e400"]
    assert number_text(-np.inf) == "-inf"


def test_delimiters_and_encodings():
    assert sniff_delimiter("a\n1\n2\n") == ","
    assert sniff_delimiter("a;b\n1\n2;3;4\n") == ";"
    long = "a;b\n" + "1,2;3,4\n" * 20000
    assert sniff_delimiter(long) == ";"
    assert decode(b"\x81\xe4")[1] == "latin-1"


# ------------------------------------------------------------------------------------------- writing in one piece


def test_nothing_is_left_behind_when_writing_breaks_off(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "a.txt", force=True) as file:  # noqa: PT012
        file.write(b"half of it")
        raise KeyboardInterrupt
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_files_are_replaced_by_force_only(tmp_path):
    write_text(tmp_path / "a.txt", "one")
    with pytest.raises(FileExistsError, match="force=True"):
        write_text(tmp_path / "a.txt", "two")
    os.chmod(tmp_path / "a.txt", 0o600)
    write_text(tmp_path / "a.txt", "two", force=True)
    assert (tmp_path / "a.txt").read_text() == "two"
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError, match="is a folder"):
        check_free(tmp_path, force=True)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_free(tmp_path / "no" / "a.txt")


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"sep=;\n", "is empty"),
        ("a.csv", b" \n\n", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "is a picture, not a table"),
        ("a.csv", b"a,b\n1,2,3\n", "has 3 fields in record 2 but 2 in its header"),
        ("a.csv", b"a,a,a (1)\n1,2,3\n", "has two columns called 'a'"),
        ("a.jsonl", b"{1}\n", "is not JSON in line 1"),
        ("a.jsonl", b"[1]\n", "has no object"),
        ("a.parquet", b"PAR1 and nothing", "is not a Parquet file"),
        ("a.gz", b"\x1f\x8b broken", "cannot be read"),
        ("a.zip", b"PK\x03\x04 broken", "cannot be read"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_bytes(tmp_path, name, content)
    assert "\n" not in str(caught.value)


def test_other_refusals(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        tables.read(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        tables.read(tmp_path)
    table = read_bytes(tmp_path, "a.csv", b"a,b\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="unknown format"):
        write(tmp_path / "b.docx", table, NEW)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(ValueError, match="holds 2 files"):
        read_bytes(tmp_path, "a.zip", buffer.getvalue())
    monkeypatch.setattr(tables, "memory_free", lambda: 50)
    with pytest.raises(
        MemoryError, match=r"needs about .* GB of memory and .* anyway with force=True\."
    ):
        tables.read(tmp_path / "a.csv")
    assert len(tables.read(tmp_path / "a.csv", force=True).frame) == 2


def test_excel_without_its_library(tmp_path, monkeypatch):
    table = read_bytes(tmp_path, "a.csv", b"a,b\n1,2\n3,4\n")
    write(tmp_path / "a.xlsx", table, NEW)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ValueError, match="needs openpyxl"):
        tables.read(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match="needs openpyxl"):
        write(tmp_path / "b.xlsx", table, NEW)
    assert not Path(tmp_path / "b.xlsx").exists()


def test_an_empty_sheet(tmp_path):
    import openpyxl

    openpyxl.Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match="has no table in its sheet 'Sheet'"):
        tables.read(tmp_path / "a.xlsx")


def test_memory_is_unknown_elsewhere(monkeypatch, tmp_path):
    def nowhere(*_):
        raise OSError

    monkeypatch.setattr(Path, "read_text", nowhere)
    assert tables.memory_free() is None
    (tmp_path / "a.csv").write_bytes(b"a\n")
    tables.check_memory(tmp_path / "a.csv")


def test_words_that_may_be_answers_are_no_empty_cells(tmp_path):
    """Among words "none" and "?" are values; among numbers they are missing."""
    path = tmp_path / "a.csv"
    path.write_text("severity,size\nnone,1\nmild,none\n,3\nNA,?\n")
    table = tables.read(path)
    frame = table.frame
    assert frame["severity"].tolist() == ["none", "mild", None, None]
    assert frame["size"].isna().tolist() == [False, True, False, True]
    assert table.column_reading("severity").markers == {"none": 1, "NA": 1}


@pytest.mark.parametrize("name", ["b.tsv", "b.jsonl", "b.parquet"])
def test_values_survive_a_change_of_kind(tmp_path, name):
    path = tmp_path / "a.csv"
    path.write_text("ean,x\n4006381333931,0.12345678901234567\n,2\n4006381333932,3.5\n")
    table = tables.read(path)
    write(tmp_path / name, table, pd.DataFrame({"new": [1.5, 2.5, 1 / 3]}))
    again = tables.read(tmp_path / name).frame
    assert again["ean"].dropna().astype("int64").tolist() == [4006381333931, 4006381333932]
    assert again["x"].tolist() == [0.12345678901234567, 2.0, 3.5]
    assert again["new"].tolist() == [1.5, 2.5, 1 / 3]
    if name == "b.tsv":
        assert "4006381333931\t0.12345678901234567\t1.5" in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage", "cannot be read"),
        ("a.csv", b'x,y\n1,"b', "ends inside a quoted field"),
        ("a.jsonl", b'{"a": ' + b"[" * 100_000, "cannot be read"),
    ],
)
def test_damaged_files(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        tables.read(tmp_path / name)


def test_a_line_separator_inside_a_json_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "x\u2028y"}\n{"a": "z"}\n', encoding="utf-8")
    assert tables.read(tmp_path / "a.jsonl").frame["a"].tolist() == ["x\u2028y", "z"]


def test_special_files_are_not_replaced(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.csv")
    with (
        pytest.raises(FileExistsError, match="not a plain file"),
        whole_file(tmp_path / "pipe.csv", force=True),
    ):
        pass


@pytest.mark.parametrize(("delimiter", "value"), [(";", 4.638), ("\t", 4638.0)])
def test_a_comma_before_three_digits(tmp_path, delimiter, value):
    """Where semicolons part the fields it is a decimal sign; elsewhere it parts thousands; either is said."""
    path = tmp_path / "a.txt"
    rows = [f"{i + 1},383{delimiter}{4},{638 + i}" for i in (0, 1, 2)]
    path.write_text("\n".join([f"x{delimiter}price", *rows]) + "\n")
    table = tables.read(path)
    assert table.frame["price"].tolist()[0] == value
    assert table.column_reading("price").reading == f"'4,638' was read as {value:g}"


def test_tabs_come_back_as_tabs(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x\ty\n1\t2\n")
    table = tables.read(path)
    assert table.kind == "tsv"


# ---------------------------------------------------------------------------------------- without a line of names

NAMELESS = {
    "5.1,3.5,setosa\n4.9,3.0,setosa\n6.2,3.4,virginica\n5.9,3.0,\n": True,
    "6,148,72,?\n1,85,66,29\n8,183,64,0\n1,89,66,23\n": True,
    '"3";"1,5";"2"\r\n"1";"5";"6"\r\n"1";"5,5";"6"\r\n"1";"5";"7"\r\n': True,
    "a,b,c\n1,2,3\n4,5,6\n7,8,9\n": False,
    "0,1,2\n1.5,4,1\n1,2,5\n4,5,6\n": False,  # numbered columns
    "country,2001,2005\nx,1,2\ny,2,3\nz,5,6\n": False,
    "sample,1100.5,1102.5,1104.5\nx,1,2,1\ny,2,3,2\nz,5,6,1\n": False,
    "x\na\nb\nc\n": False,
}


@pytest.mark.parametrize("text", NAMELESS)
def test_a_line_of_names_is_told_from_data(tmp_path, text):
    """Where the first line holds data it is a row, the columns are numbered, and a note says so."""
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = tables.read(tmp_path / "t.csv")
    lines = text.splitlines()
    assert len(table.frame) == len(lines) - (not NAMELESS[text])
    if NAMELESS[text]:
        assert list(table.frame.columns) == [f"column {j + 1}" for j in range(table.frame.shape[1])]
        assert "holds data and no names" in table.notes[0]
        with pytest.raises(ValueError, match="There is no column 'y'"):
            table.check_column("y")
        write(tmp_path / "back.csv", table, pd.DataFrame({"z": range(len(lines))}))
        back = (tmp_path / "back.csv").read_text().splitlines()
        assert back[0].endswith("z")
        assert [line[: len(given)] for line, given in zip(back[1:], lines, strict=True)] == lines
    else:
        assert not table.notes


def test_what_a_killed_process_left_is_taken_away(tmp_path):
    """Except what another process is writing, and files of others whose names are like it."""
    torn = tmp_path / temporary_name("t.csv")
    torn.write_bytes(b"half")
    (tmp_path / ".t.csv.abc.part").write_bytes(b"a download of the user")
    with whole_file(tmp_path / "t.csv", force=True) as first:
        with whole_file(tmp_path / "t.csv", force=True) as second:
            assert not torn.exists()
            assert len(list(tmp_path.glob(".*.part"))) == 3
            second.write(b"2")
        first.write(b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".t.csv.abc.part", "t.csv"]
    assert (tmp_path / "t.csv").read_bytes() == b"1"
