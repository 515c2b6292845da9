"""Conversions keep digits and text, and what a format cannot hold is text or said before the work."""

from __future__ import annotations

import csv
import errno
import json
import os

import numpy as np
import openpyxl
import pandas as pd
import pytest

from transduce import fill
from transduce.app.tables import files
from transduce.app.tables.files import check_fits, write
from transduce.app.tables.formats import Original, Table
from transduce.app.tables.layout import LayoutRequest
from transduce.app.tables.workbook import LONGEST_TEXT
from transduce.core.files import check_free, whole_file

LONG, MIDDLE = "12345678901234567890123", "9007199254740993"  # 23 digits; 2^53 + 1
CSV = f"id,middle,gaps,text,=head,share\n{LONG},{MIDDLE},{MIDDLE},=1+1,a,0.1\n7,8,,+x,b,2.5\n"
NEW = pd.DataFrame({"=new": ["=2+2", "@a"], "y_filled": [1.5, np.inf]})


def converted(tmp_path, ending, text=CSV, new=NEW):
    (tmp_path / "a.csv").write_text(text)
    write(tmp_path / f"b{ending}", files.read(tmp_path / "a.csv"), new, force=True)
    return tmp_path / f"b{ending}"


def test_excel_keeps_digits_and_text(tmp_path):
    sheet = openpyxl.load_workbook(converted(tmp_path, ".xlsx")).worksheets[0]
    rows = list(sheet.iter_rows())
    assert [cell.data_type for row in rows for cell in row].count("f") == 0
    assert [cell.value for cell in rows[0]] == [
        "id",
        "middle",
        "gaps",
        "text",
        "=head",
        "share",
        "=new",
        "y_filled",
    ]
    assert [cell.value for cell in rows[1]] == [LONG, MIDDLE, MIDDLE, "=1+1", "a", 0.1, "=2+2", 1.5]
    assert [cell.value for cell in rows[2]][:5] == ["7", 8, None, "+x", "b"]
    assert rows[1][3].quotePrefix


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_arrow_keeps_digits_and_text(tmp_path, ending):
    frame = files.read(converted(tmp_path, ending)).original.rows.to_pydict()
    assert frame["id"] == [LONG, "7"]
    assert frame["middle"] == [int(MIDDLE), 8]
    assert frame["gaps"] == [int(MIDDLE), None]
    assert frame["text"] == ["=1+1", "+x"]
    assert frame["share"] == [0.1, 2.5]


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_json_keeps_digits_and_text(tmp_path, ending):
    text = converted(tmp_path, ending).read_text()
    rows = (
        [json.loads(line) for line in text.splitlines()] if ending == ".jsonl" else json.loads(text)
    )
    assert rows[0] == {"id": LONG, "middle": int(MIDDLE), "gaps": int(MIDDLE), "text": "=1+1", "=head": "a",
                       "share": 0.1, "=new": "=2+2", "y_filled": 1.5}  # fmt: skip
    assert rows[1]["gaps"] is None


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".json", ".feather"])
def test_there_and_back_again(tmp_path, ending):
    """Whole numbers of 16 digits with gaps survive two conversions."""
    there = converted(tmp_path, ending)
    write(tmp_path / "c.csv", files.read(there), pd.DataFrame({"z": [1, 2]}))
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[1].split(",")[:4] == [LONG, MIDDLE, MIDDLE, "=1+1"]
    assert lines[2].split(",")[:4] == ["7", "8", "", "+x"]


def test_json_arrays_are_tables(tmp_path):
    (tmp_path / "a.json").write_text(' [ {"a": 1.50, "b": "x, ]"},\n {"a": null} ]\n')
    table = files.read(tmp_path / "a.json")
    assert table.kind == "json"
    assert table.frame["a"].tolist()[0] == 1.5
    write(tmp_path / "b.json", table, pd.DataFrame({"z": [1, 2]}))
    assert '{"a": 1.50, "b": "x, ]", "z": 1}' in (tmp_path / "b.json").read_text()
    for bad, words in (
        ("[1, 2]", "no object"),
        ("[{]", "not JSON in line 1"),
        ("[]", "is empty"),
        ("[{}", "not JSON"),
    ):
        (tmp_path / "c.json").write_text(bad)
        with pytest.raises(ValueError, match=words):
            files.read(tmp_path / "c.json")
    (tmp_path / "lines.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert files.read(tmp_path / "lines.json").kind == "json lines"


def test_time_zones_go_to_excel_as_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = pd.to_datetime(["2020-01-02T03:04:05", None]).tz_localize("Europe/Berlin")
    pq.write_table(pa.table({"when": pa.array(times)}), tmp_path / "a.parquet")
    write(tmp_path / "b.xlsx", files.read(tmp_path / "a.parquet"), NEW)
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]
    assert [cell.value for cell in sheet["A"]] == ["when", "2020-01-02T03:04:05+01:00", None]


def test_what_no_sheet_holds_is_found_first(tmp_path):
    (tmp_path / "a.csv").write_text(f"t,y\n{'x' * (LONGEST_TEXT + 1)},1\n")
    table = files.read(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="cannot hold column 't'"):
        check_fits(tmp_path / "b.xlsx", table)
    check_fits(tmp_path / "b.csv", table)
    wide = Table(pd.DataFrame(np.zeros((1, 16_380))), Original(), "wide")
    with pytest.raises(ValueError, match="at most 1,048,576 rows and 16,384 columns"):
        check_fits("b.xlsx", wide)


def workbook(path, formulas=False, second=False):
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Data") if second else book.worksheets[0]
    rng = np.random.default_rng(0)
    sheet.append(["a", "b", "y"])
    for k in range(40):
        a = float(rng.normal())
        sheet.append([a, f"=A{k + 2}*2" if formulas else a**2, 3 * a if k % 2 else None])
    book.save(path)


def test_formulas_without_values_are_said(tmp_path):
    workbook(tmp_path / "a.xlsx", formulas=True)
    table = files.read(tmp_path / "a.xlsx")
    result = fill(table, "y", method="ridge")
    assert any(
        note == "'b': 40 formulas have no value stored and are missing." for note in result.notes
    )
    assert result.columns.set_index("name").loc["b", "kind"] == "empty"
    with pytest.raises(
        ValueError, match=r"40 formulas have no value stored.*Open .* in a spreadsheet program"
    ):
        fill(table, "b", method="ridge")


def test_sheets_are_named(tmp_path):
    workbook(tmp_path / "a.xlsx", second=True)
    found = files.read(tmp_path / "a.xlsx")
    assert found.original.sheet == "Data"
    assert "The table is in sheet 'Data'; 'Sheet' holds none." in found.notes
    with pytest.raises(
        ValueError,
        match="has no table in its sheet 'Sheet'; name another, such as 'Data': sheet='Data'",
    ):
        files.read(tmp_path / "a.xlsx", sheet="Sheet")
    with pytest.raises(ValueError, match="has no sheet 'Dada', but 'Sheet', 'Data'"):
        files.read(tmp_path / "a.xlsx", sheet="Dada")
    for name in ("Data", "2"):
        table = files.read(tmp_path / "a.xlsx", sheet=name)
        assert table.frame.columns.tolist() == ["a", "b", "y"]
    write(tmp_path / "b.xlsx", table, pd.DataFrame({"z": np.arange(40)}))
    back = openpyxl.load_workbook(tmp_path / "b.xlsx")
    assert back["Data"]["D1"].value == "z"
    assert back["Sheet"]["A1"].value is None
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    for row in (["notes", "by", "on"], ["none", "me", "Monday"], ["one", "you", "Friday"]):
        book["Sheet"].append(row)
    book.save(tmp_path / "c.xlsx")
    with pytest.raises(ValueError, match="but its sheet 'Data' has: use sheet='Data'"):
        fill(files.read(tmp_path / "c.xlsx"), "y")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not an Excel file: leave out sheet"):
        files.read(tmp_path / "a.csv", sheet="1")


@pytest.mark.parametrize(
    "content", [bytes(range(256)), b"\xff\xfe\x00\xd8\x01", b"\xef\xbb\xbf\xff\xfe,1"]
)
def test_random_bytes_are_no_table(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match="is a binary file, not a table"):
        files.read(tmp_path / "a.csv")


def test_full_disks_and_folders_without_rights(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"b.csv cannot be written: the disk is full"):  # noqa: SIM117
        with whole_file(tmp_path / "b.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=f"Nothing can be written into the folder {tmp_path}"):
        check_free(tmp_path / "b.csv")


def test_tabulators_stay(tmp_path):
    (tmp_path / "a.txt").write_text("a\tb\n1\tx\n")
    write(tmp_path / "b.txt", files.read(tmp_path / "a.txt"), pd.DataFrame({"z": [1]}))
    assert (tmp_path / "b.txt").read_text() == "a\tb\tz\n1\tx\t1\n"
    write(tmp_path / "b.tsv", files.read(tmp_path / "a.txt"), pd.DataFrame({"z": [1]}))
    assert (tmp_path / "b.tsv").read_text() == "a\tb\tz\n1\tx\t1\n"


def as_programs_read_it(path, skip=0):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[skip:]


def test_new_names_and_cells_with_line_ends_are_one_field(tmp_path):
    (tmp_path / "a.csv").write_text('id,"Hb\n(g/dl)"\n1,3\n2,4\n')
    new = pd.DataFrame({"Hb\n(g/dl)_filled": ["a\nb", "c"]})
    write(tmp_path / "b.csv", files.read(tmp_path / "a.csv"), new)
    assert as_programs_read_it(tmp_path / "b.csv") == [
        ["id", "Hb\n(g/dl)", "Hb\n(g/dl)_filled"],
        ["1", "3", "a\nb"],
        ["2", "4", "c"],
    ]
    assert files.read(tmp_path / "b.csv").frame.shape == (2, 3)


@pytest.mark.parametrize("cells", ["1,x,,", '1,x,"",', "1,x", '1,"x",,,,'])
def test_new_fields_stand_below_their_names_where_rows_end_in_empty_fields(tmp_path, cells):
    (tmp_path / "a.csv").write_text(f"a,b\n{cells}\n2,y\n3,z\n")
    write(tmp_path / "b.csv", files.read(tmp_path / "a.csv"), pd.DataFrame({"new": [7, 8, 9]}))
    assert as_programs_read_it(tmp_path / "b.csv") == [
        ["a", "b", "new"],
        ["1", "x", "7"],
        ["2", "y", "8"],
        ["3", "z", "9"],
    ]


def test_no_row_beside_the_table_is_shorter_than_it(tmp_path):
    (tmp_path / "a.csv").write_text("Study 7\na,b\nkg,\n1,x\n2,y\n3,z\n\n6,\n")
    layout = LayoutRequest.read(2, None, "4:6")
    table = files.read(tmp_path / "a.csv", layout=layout)
    write(tmp_path / "b.csv", table, pd.DataFrame({"m": [7, 8, 9], "n": [1, 2, 3]}))
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "Study 7",
        "a,b,m,n",
        "kg,,,",
        "1,x,7,1",
        "2,y,8,2",
        "3,z,9,3",
        "",
        "6,,,",
    ]
