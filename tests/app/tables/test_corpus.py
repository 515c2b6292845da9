"""A corpus of files as they are met, each with what must be read from it, or why it is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sqlite3
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from transduce import fill
from transduce.app.tables import files

NAMES = ["id", "age", "hb", "grp"]
ROWS = [[f"P{i}", 20 + i, 12.5 + i / 10, "AB"[i % 2]] for i in range(1, 31)]
TABLE = [NAMES, *ROWS]
SUM_AGE = sum(row[1] for row in ROWS)
SUM_HB = round(sum(row[2] for row in ROWS), 1)
MEAN = ["Mean", round(SUM_AGE / 30, 2), round(SUM_HB / 30, 2), None]


def text_of(rows, delimiter=",", end="\n"):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return buffer.getvalue()


def aligned(rows, width, *, right=False):
    lines = []
    for row in rows:
        cells = [str(cell).rjust(width) if right else str(cell).ljust(width) for cell in row]
        lines.append("".join(cells) + "\n")
    return "".join(lines)


def blocks():
    """The table in three blocks, each with its sum."""
    rows = []
    for start in (0, 10, 20):
        block = ROWS[start : start + 10]
        total = [sum(row[1] for row in block), round(sum(row[2] for row in block), 1)]
        rows += [*block, ["Subtotal", *total, None]]
    return rows


PIPED = "".join("| " + " | ".join(map(str, row)) + " |\n" for row in ROWS)
PRINTED = "".join(" " + " | ".join(map(str, row)) + "\n" for row in ROWS)
QUOTED_R = "".join(
    f'"{place}" "{row[0]}" {row[1]} {row[2]} "{row[3]}"\n' for place, row in enumerate(ROWS, 1)
)
MARKED = "\ufeff" + text_of(TABLE)

# What is in each file, and words of the note that must be given ("" if none need be).
TEXTS = {
    "titles with values.csv": (text_of([["Export"], ["Date:", "2024-01-03"], [], *TABLE]), "above"),
    "quoted titles.csv": ('"A study, 2024",,,\n"by X, Y",,,\n' + text_of(TABLE), "above"),
    "two marks.csv": ("\ufeff" + MARKED, ""),
    "a title with a comma.csv": ("A study, 2024\n\n" + text_of(TABLE), "above"),
    "comments.csv": ("# by foo 1.2\n# on Monday\n" + text_of(TABLE), "above"),
    "comments with commas.csv": ("# by foo, version 1, me\n# on, x\n" + text_of(TABLE), "above"),
    "names in row 7.csv": (
        text_of([["Lab"], ["Street 1"], ["Tel 030"], [], ["Report 12"], [], *TABLE]),
        "row 7",
    ),
    "sep.csv": ("sep=;\n" + text_of(TABLE, ";"), ""),
    "sep and a mark.csv": ("\ufeffsep=;\r\n" + text_of(TABLE, ";", "\r\n"), ""),
    "sep tab.csv": ("sep=\t\n" + text_of(TABLE, "\t"), ""),
    "an empty first column.csv": (text_of([[None, *row] for row in TABLE]), ""),
    "empty columns between.csv": (
        text_of([[row[0], None, row[1], row[2], None, row[3]] for row in TABLE]),
        "",
    ),
    "trailing fields here and there.csv": (
        text_of([NAMES, *[[*row, None, None][: 4 + 2 * (row[1] % 2)] for row in ROWS]]),
        "",
    ),
    "trailing fields below the names.csv": (text_of([NAMES, *[[*row, None] for row in ROWS]]), ""),
    "trailing fields everywhere.csv": (text_of([[*row, None] for row in TABLE]), ""),
    "units.csv": (text_of([NAMES, [None, "years", "g/dL", None], *ROWS]), "units"),
    "units in brackets.csv": (text_of([NAMES, [None, "[a]", "(g/dL)", None], *ROWS]), "units"),
    "units and dashes.csv": (text_of([NAMES, ["-", "y", "g/dl", "-"], *ROWS]), "units"),
    "a mean.csv": (text_of([*TABLE, MEAN]), "totals"),
    "a mean above.csv": (text_of([NAMES, MEAN, *ROWS]), "sums up"),
    "a sum without a word.csv": (text_of([*TABLE, [None, SUM_AGE, SUM_HB, None]]), "totals"),
    "mean, SD and the like.csv": (
        text_of(
            [
                *TABLE,
                MEAN,
                ["SD", 8.8, 0.88, None],
                ["n", 30, 30, None],
                ["Min", 21, 12.6, None],
                ["Max", 50, 15.5, None],
            ]
        ),
        "totals",
    ),
    "subtotals.csv": (text_of([NAMES, *blocks()]), "sum up others"),
    "a footnote.csv": (text_of(TABLE) + "* below LOD\n", "totals or notes"),
    "a footnote with commas.csv": (
        text_of(TABLE) + "* below LOD, see Meier et al., 2020\nSource: lab\n",
        "totals or notes",
    ),
    "a second table below.csv": (
        text_of([*TABLE, [], [], ["Summary", "n"], ["A", 15], ["B", 15]]),
        "totals or notes",
    ),
    "names on each page.csv": (
        text_of([*TABLE[:11], NAMES, *TABLE[11:21], NAMES, *TABLE[21:]]),
        "rows repeat the names",
    ),
    "blank rows.csv": (text_of([*TABLE[:5], [None] * 4, *TABLE[5:], [None] * 4]), "blank row"),
    "blanks around names.csv": (
        text_of([[f"  {name} " for name in NAMES], *ROWS]),
        "",
    ),
    "aligned.txt": (aligned(TABLE, 8), "blanks"),
    "aligned right.txt": (aligned(TABLE, 10, right=True), "blanks"),
    "a blank between.txt": ("".join(" ".join(map(str, row)) + "\n" for row in TABLE), "blanks"),
    "pipes.txt": (text_of(TABLE, "|"), ""),
    "tabs.txt": (text_of(TABLE, "\t"), ""),
    "old Mac.csv": (text_of(TABLE, ",", "\r"), ""),
    "two kinds of line ends.csv": (text_of(TABLE[:15], ",", "\r\n") + text_of(TABLE[15:]), ""),
    "every field quoted.csv": (
        "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in TABLE),
        "",
    ),
    "a mark.csv": (MARKED, ""),
    "UTF-16.csv": (MARKED.encode("utf-16-le"), ""),
    "UTF-16, big.csv": (MARKED.encode("utf-16-be"), ""),
    "UTF-16 without a mark.csv": (text_of(TABLE, "\t").encode("utf-16-le"), ""),
    "UTF-32.csv": (text_of(TABLE).encode("utf-32"), ""),
    "packed.csv.gz": (gzip.compress(text_of(TABLE).encode()), ""),
    "CSV in truth.xls": (text_of(TABLE), ""),
    "CSV in truth.xlsx": (text_of(TABLE, ";"), ""),
    "no ending": (text_of(TABLE), ""),
}  # fmt: skip


def records():
    return [dict(zip(NAMES, row, strict=True)) for row in ROWS]


JSONS = {
    "array": json.dumps(records()),
    "data": json.dumps({"data": records()}),
    "a deep place": json.dumps({"meta": {"n": 30}, "result": {"rows": records()}, "ok": True}),
    "lines": "".join(json.dumps(row) + "\n" for row in records()),
    "lists by column": json.dumps({n: [r[i] for r in ROWS] for i, n in enumerate(NAMES)}),
    "objects by column": pd.DataFrame(ROWS, columns=NAMES).to_json(),
    "split": pd.DataFrame(ROWS, columns=NAMES).to_json(orient="split"),
    "objects by row": pd.DataFrame(ROWS, columns=NAMES).to_json(orient="index"),
    "lists by row": json.dumps(TABLE),
}


def as_cells(frame):
    return [[cell.strip() if isinstance(cell, str) else cell for cell in row] for row in frame]


def check_table(frame, names=NAMES):
    assert frame.columns.tolist() == names
    assert as_cells(frame.to_numpy(dtype=object).tolist()) == ROWS


@pytest.mark.parametrize("name", TEXTS)
def test_texts(tmp_path, name):
    content, word = TEXTS[name]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = files.read(path)
    check_table(table.frame)
    assert word in " ".join(table.notes)


@pytest.mark.parametrize("name", JSONS)
def test_json(tmp_path, name):
    path = tmp_path / "t.json"
    path.write_text(JSONS[name])
    table = files.read(path)
    check_table(table.frame)
    files.write(tmp_path / "new.json", table, pd.DataFrame({"new": range(30)}))
    again = files.read(tmp_path / "new.json").frame
    assert again["new"].tolist() == list(range(30))
    check_table(again[NAMES])


def test_what_is_around_a_table_in_json_stays(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(JSONS["a deep place"])
    files.write(tmp_path / "new.json", files.read(path), pd.DataFrame({"new": range(30)}))
    new = json.loads((tmp_path / "new.json").read_text())
    assert new["meta"] == {"n": 30}
    assert new["ok"] is True
    assert new["result"]["rows"][3] == {**records()[3], "new": 3}


@pytest.mark.parametrize(
    ("above", "names"),
    [
        ([["Person", None, "Blood", None], NAMES], ["Person id", "Person age", "Blood hb", "Blood grp"]),
        ([["Person", "Person", "Blood", "Blood"], NAMES], ["Person id", "Person age", "Blood hb", "Blood grp"]),
        ([["id", "Blood", None, "grp"], [None, "age", "hb", None]], ["id", "Blood age", "Blood hb", "grp"]),
        (
            [["Study"], [], ["id", "Blood", None, "grp"], [None, "age", "hb", None]],
            ["id", "Blood age", "Blood hb", "grp"],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_names_in_two_rows(tmp_path, above, names, kind):
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text(text_of([*above, *ROWS], ";"))
    else:
        book = openpyxl.Workbook()
        for row in [*above, *ROWS]:
            book.worksheets[0].append(row)
        book.save(path)
    check_table(files.read(path).frame, names)


def test_equal_names_below_their_groups(tmp_path):
    rows = [[row[0], row[1], row[2], row[1] + 1, row[2] + 1] for row in ROWS]
    heads = [[None, "Before", None, "After", None], ["id", "hb", "wbc", "hb", "wbc"]]
    (tmp_path / "t.csv").write_text(text_of([*heads, *rows]))
    frame = files.read(tmp_path / "t.csv").frame
    assert frame.columns.tolist() == ["id", "Before hb", "Before wbc", "After hb", "After wbc"]
    assert len(frame) == 30


PRINTED_TABLES = {
    "of Markdown.md": "| " + " | ".join(NAMES) + " |\n|---|---|:-:|---|\n" + PIPED,
    "of a database.txt": " id | age | hb | grp\n----+-----+----+----\n" + PRINTED + "(30 rows)\n",
}


@pytest.mark.parametrize("name", PRINTED_TABLES)
def test_printed_tables(tmp_path, name):
    (tmp_path / name).write_text(PRINTED_TABLES[name])
    check_table(files.read(tmp_path / name).frame)


def test_names_of_rows_by_r(tmp_path):
    (tmp_path / "t.txt").write_text("id age hb grp\n" + QUOTED_R)
    frame = files.read(tmp_path / "t.txt").frame
    assert frame.columns[0] == "column 1"
    check_table(frame[NAMES])


def test_a_last_row_that_sums_up_roughly_is_noted(tmp_path):
    total = [None, round(SUM_AGE), round(SUM_HB), None]
    (tmp_path / "a.csv").write_text(text_of([*TABLE, total]))
    assert any(
        "Row 32, the last, sums up the others" in note
        for note in files.read(tmp_path / "a.csv").notes
    )


def test_the_empty_cell_of_databases(tmp_path):
    rows = [
        [row[0], row[1], r"\N" if place % 3 == 0 else row[2], row[3]]
        for place, row in enumerate(ROWS)
    ]
    (tmp_path / "a.tsv").write_text(text_of([NAMES, *rows], "\t"))
    assert files.read(tmp_path / "a.tsv").frame["hb"].isna().sum() == 10


def test_objects_over_several_lines(tmp_path):
    objects = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    (tmp_path / "a.json").write_text("\n".join(json.dumps(row, indent=2) for row in objects))
    table = files.read(tmp_path / "a.json")
    assert table.frame.to_numpy().tolist() == ROWS
    files.write(tmp_path / "b.json", table, pd.DataFrame({"z": range(30)}))
    files.write(tmp_path / "b.jsonl", table, pd.DataFrame({"z": range(30)}))
    for name in ("b.json", "b.jsonl"):
        assert files.read(tmp_path / name).frame.columns.tolist() == [*NAMES, "z"]
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    assert [json.loads(line)["z"] for line in lines] == list(range(30))
    cut = (tmp_path / "a.json").read_text()[:-20]
    (tmp_path / "c.json").write_text(cut)
    with pytest.raises(ValueError, match=r"is not JSON in line 17\d"):
        files.read(tmp_path / "c.json")


def test_a_table_as_pandas_prints_it(tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    (tmp_path / "a.txt").write_text(f"{frame.to_string()}\n")
    printed = files.read(tmp_path / "a.txt").frame
    assert printed.columns.tolist() == ["column 1", *NAMES]
    assert printed[NAMES].to_numpy().tolist() == ROWS


@pytest.mark.parametrize(
    ("name", "objects", "meant"),
    [
        ("leu", [{"lab": {"leu": 1.5}, "age": 3}] * 5, "'lab.leu'"),
        ("gold", [{"a": {"gold": 1}, "b": {"gold": 2}}] * 5, "'a.gold' or 'b.gold'"),
    ],
)
def test_the_field_below_an_object_is_named(tmp_path, name, objects, meant):
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, objects)))
    with pytest.raises(ValueError, match=f"Did you mean {meant}"):
        fill(files.read(tmp_path / "a.jsonl"), name)


OTHER_LETTERS = {
    "shift_jis": (["患者", "年齢", "性別", "検査値"], ["男", "女"]),
    "euc_jp": (["患者", "年齢", "性別", "コメント"], ["カレー", "ひらがな"]),
    "gb2312": (["病人", "年龄", "性别", "测试结果"], ["男子", "女子"]),
    "big5": (["病人", "年齡", "性別", "檢驗結果"], ["男性", "女性"]),
    "euc_kr": (["환자번호", "나이", "성별", "검사결과"], ["남자", "여자"]),
    "cp1251": (["Больной", "Возраст", "Пол", "Результат"], ["мужской", "женский"]),
    "cp1252": (["Fall", "Größe", "Café", "Übergröße"], ["müde", "l’été à “Nîmes”…"]),
    "latin-1": (["Fall", "Größe", "Café", "Übergröße"], ["müde", "été"]),
}


@pytest.mark.parametrize("encoding", OTHER_LETTERS)
def test_letters_of_other_scripts(tmp_path, encoding):
    """Whatever program wrote a text, its letters are read, and its bytes stay as they are."""
    names, words = OTHER_LETTERS[encoding]
    rows = [[f"P{place}", 20 + place, words[place % 2], place / 2] for place in range(30)]
    content = text_of([names, *rows]).encode(encoding)
    (tmp_path / "a.csv").write_bytes(content)
    table = files.read(tmp_path / "a.csv")
    assert table.frame.columns.tolist() == names
    assert table.frame.to_numpy().tolist() == rows
    is_noted = any("was read as" in note for note in table.notes)
    assert is_noted == (encoding not in ("cp1252", "latin-1"))
    files.write(tmp_path / "b.csv", table, pd.DataFrame({"z": np.arange(30)}))
    given = content.splitlines()
    written = (tmp_path / "b.csv").read_bytes().splitlines()
    assert written == [
        line + b"," + str(new).encode() for line, new in zip(given, ["z", *range(30)], strict=True)
    ]


def test_cells_that_spreadsheets_show_as_they_stand(tmp_path):
    rows = [[f'="00{place}"', f'="{place},5"', "x"] for place in range(9)]
    text = text_of([['="id"', "value", "word"], *rows], ";")
    (tmp_path / "a.csv").write_text(text)
    frame = files.read(tmp_path / "a.csv").frame
    assert frame["value"].tolist() == [place + 0.5 for place in range(9)]
    assert frame.iloc[:, 0].tolist() == [f"00{place}" for place in range(9)]


@pytest.mark.parametrize("name", ["aligned.txt", "a blank between.txt", "comments with commas.csv"])
def test_new_fields_join_lines_of_all_kinds(tmp_path, name):
    content, _ = TEXTS[name]
    (tmp_path / name).write_text(content)
    new = pd.DataFrame({"new": [1.5, np.nan] * 15, "set": ["a | b", None] * 15})
    out = tmp_path / f"new {name}"
    files.write(out, files.read(tmp_path / name), new)
    frame = files.read(out).frame
    check_table(frame[NAMES])
    assert frame["new"].isna().sum() == 15
    assert frame["set"][0] == "a | b"
    given = content.splitlines()
    assert all(line.startswith(old) for line, old in zip(out.read_text().splitlines(), given, strict=True))  # fmt: skip


MIXED = b"id,town,x\n" + b"".join(
    b"P%d,%s,%d\n" % (i, "Köln".encode("cp1252" if i % 10 == 3 else "utf-8"), i) for i in range(60)
)


def test_stray_bytes_are_read_as_those_of_windows_and_stay(tmp_path):
    (tmp_path / "t.csv").write_bytes(MIXED)
    table = files.read(tmp_path / "t.csv")
    assert set(table.frame["town"]) == {"Köln"}
    assert "6 bytes" in table.notes[0]
    assert "'Köln'" in table.notes[0]
    files.write(tmp_path / "new.csv", table, pd.DataFrame({"new": ["ö"] * 60}))
    lines = (tmp_path / "new.csv").read_bytes().splitlines()
    assert [line.rsplit(b",", 1)[0] for line in lines] == MIXED.splitlines()
    assert lines[1].endswith("ö".encode())
    files.write(tmp_path / "new.xlsx", table, pd.DataFrame({"new": range(60)}))
    assert set(files.read(tmp_path / "new.xlsx").frame["town"]) == {"Köln"}


KEPT = {
    "a number without values below the others": [*TABLE, ["P31", None, None, None]],
    "words in the first row": [NAMES, ["P0", "pending", None, "A"], *ROWS],
    "two words in the first row": [NAMES, ["P0", "pending", "lost", "A"], *ROWS],
    "a person called Max": [*TABLE, ["Max", 33, 13.0, "A"]],
    "a sign as a name": [["#", *NAMES[1:]], *[[place, *row[1:]] for place, row in enumerate(ROWS)]],
    "one column of two words": [["full name"], *[[f"Jane Doe{i}"] for i in range(20)]],
    "a last row with few values": [*TABLE, [], ["P31", 40, None, None]],
}


@pytest.mark.parametrize("name", KEPT)
def test_rows_that_are_data_stay(tmp_path, name):
    rows = KEPT[name]
    (tmp_path / "t.csv").write_text(text_of(rows))
    frame = files.read(tmp_path / "t.csv").frame
    assert frame.columns.tolist() == rows[0]
    assert len(frame) == sum(len(row) > 0 for row in rows) - 1


def test_a_last_row_that_sums_the_others_is_noted(tmp_path):
    (tmp_path / "t.csv").write_text(text_of([*TABLE, ["P31", SUM_AGE, SUM_HB, "A"]]))
    table = files.read(tmp_path / "t.csv")
    assert len(table.frame) == 31
    assert "Row 32, the last, sums up the others" in table.notes[0]
    assert "rows='2:31'" in table.notes[0]


def workbook(path, sheets, change=None):
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    if change is not None:
        change(book)
    book.save(path)
    return files.read(path)


def test_the_sheet_with_the_table(tmp_path):
    path = tmp_path / "t.xlsx"
    cover = [["Author", "Meier"], ["Date", "2024-01-01"], ["Version", 3]]
    check_table(workbook(path, {"Info": cover, "Data": TABLE}).frame)

    def hide(book):
        book["Old"].sheet_state = "hidden"

    table = workbook(path, {"Old": TABLE[:9], "New": TABLE}, hide)
    check_table(table.frame)
    assert "'Old' is hidden" in table.notes[0]
    check_table(files.read(path, sheet="New").frame)
    assert len(files.read(path, sheet="Old").frame) == 8


def test_cells_merged_over_rows_and_hidden_rows(tmp_path):
    rows = [["ward", "x"], *[[f"W{i // 5}" if i % 5 == 0 else None, i * 1.5] for i in range(30)]]

    def merge(book):
        for start in range(2, 32, 5):
            book["S"].merge_cells(f"A{start}:A{start + 4}")
        book["S"].row_dimensions[7].hidden = True

    table = workbook(tmp_path / "t.xlsx", {"S": rows}, merge)
    assert table.frame["ward"].tolist() == [f"W{i // 5}" for i in range(30)]
    assert "6 cells merged" in table.notes[0]
    assert "1 row hidden" in table.notes[1]


def zipped(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_what_systems_add_to_archives_is_no_table(tmp_path):
    content = zipped({"t.csv": text_of(TABLE), "__MACOSX/._t.csv": "junk", ".DS_Store": "x"})
    (tmp_path / "t.zip").write_bytes(content)
    check_table(files.read(tmp_path / "t.zip").frame)


REFUSED = {
    "a.csv": (b"%PDF-1.7\n1 0 obj\n<< >>", "is a PDF file: .* save the table as CSV"),
    "page.xls": (b"<html><body><table><tr><td>1</td></tr></table></body></html>", "is a web page"),
    "a.xml": (b"<?xml version='1.0'?><rows><row a='1'/></rows>", "is XML"),
    "a.rtf": (b"{\\rtf1 hello}", "is an RTF text"),
    "a.rds": (gzip.compress(b"X\n\x00\x00\x00\x03"), r"is a file of R: .* write\.csv"),
    "a.rda": (gzip.compress(b"RDX3\nX\n\x00\x00\x00\x03"), "is a file of R"),
    "a.mat": (b"MATLAB 5.0 MAT-file" + bytes(100), "is a file of MATLAB"),
    "a.h5": (b"\x89HDF\r\n\x1a\n\x00\x00", "is an HDF5 file"),
    "a.pkl": (b"\x80\x04\x95\x00", "is a pickle of Python"),
    "a.7z": (b"7z\xbc\xaf\x27\x1c\x00\x04", "is a 7z archive: unpack it"),
    "doc.xlsx": (zipped({"[Content_Types].xml": "", "word/document.xml": ""}), "is a Word document"),
    "a.numbers": (zipped({"Index/Document.iwa": "", "x": ""}), "is a file of Numbers"),
    "two.zip": (zipped({"a.csv": "a\n1", "b.csv": "a\n1"}), r"holds 2 files \(a.csv, b.csv\)"),
    "cut.xlsx": (zipped({"[Content_Types].xml": "x" * 999})[:60], "was cut off"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" * 1000)[:30], "was cut off"),
    "data.csv": (b"SQLite format 3\x00" + bytes(90), r"is an SQLite database: .* file\.db::table"),
    "iris.arff": (b"% Iris\n%\n@RELATION iris\n@DATA\n1,2\n", "is an ARFF file of Weka"),
    "a.por": (b"0" * 200 + b"ASCII SPSS PORT FILE" + b"1\n2\n", "a portable file of SPSS"),
    "a.bin": (b"\x00\x01\x02" * 40, "is a binary file, .* save the table as CSV"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_files_of_other_kinds(tmp_path, name):
    content, words = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as refused:
        files.read(tmp_path / name)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("method", ["ridge", "forest"])
def test_the_same_table_has_the_same_answers_in_every_format(tmp_path, method):
    """To the bit, dates too, which files without types hold as text."""
    random = np.random.default_rng(5)
    n = 60
    frame = pd.DataFrame({"age": random.integers(20, 80, n), "sex": random.choice(["m", "f"], n)})
    frame["hb"] = random.normal(13, 1, n).round(2)
    ldl = (0.05 * frame["age"] + (frame["sex"] == "m") + random.normal(0, 0.1, n)).round(2)
    frame["seen"] = pd.Timestamp("2023-05-01") + pd.to_timedelta(random.integers(0, 600, n), "D")
    frame["ldl"] = ldl.where(np.arange(n) < 40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    plain = files.read(tmp_path / "t.csv")
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather")
    frame.to_json(tmp_path / "t.json", orient="records", date_format="iso")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True, date_format="iso")
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    frame.to_csv(tmp_path / "blanks.txt", index=False, sep=" ", na_rep="NA")
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    with sqlite3.connect(tmp_path / "t.db") as database:
        frame.to_sql("t", database, index=False)
    database.close()
    records = json.loads((tmp_path / "t.json").read_text())
    (tmp_path / "data.json").write_text(json.dumps({"data": records}))
    expected = fill(plain, "ldl", method=method).new
    paths = sorted(path for path in tmp_path.iterdir() if path.name != "t.csv")
    assert len(paths) == 11
    for path in paths:
        new = fill(files.read(path), "ldl", method=method).new
        assert new.columns.tolist() == expected.columns.tolist(), path.name
        for name in ("ldl_filled", "ldl_lower", "ldl_upper"):
            np.testing.assert_array_equal(new[name], expected[name], err_msg=path.name)


def some_labels(cells):
    """A table with titles above, whose first labels are these cells."""
    random = np.random.default_rng(8)
    rows = [
        [f"P{i}", f"{random.normal():.3f}", f"{i / 7:.2f}" if i < 40 else ""] for i in range(60)
    ]
    for row, cell in zip(rows, cells, strict=False):
        row[2] = cell
    return text_of([["A study"], [], ["id", "x", "y"], *rows])


@pytest.mark.parametrize(
    "cells",
    [
        ["pending", "haemolysed"],
        ["pending", "lost", "haemolysed", "late", "no tube", "clotted"],
        ["2.54 mmol/L", "1.8 mmol/L"],
    ],
)
def test_the_option_that_a_refusal_names_settles_it(tmp_path, cells):
    (tmp_path / "t.csv").write_text(some_labels(cells))
    table = files.read(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"\(line 4\)") as refused:
        fill(table, "y", method="ridge")
    sentence = str(refused.value)
    if "mmol" in cells[0]:
        assert "Read the number in each with number=['y']" in sentence
        result = fill(table, "y", method="ridge", number=["y"])
        assert result.labels.known[:2].tolist() == [2.54, 1.8]
        assert any("(line 4)" in str(note) for note in result.notes)
        return
    named = sentence.partition("missing=")[2].partition("]")[0] + "]"
    settled = [word.strip("' ") for word in named.strip("[]").split(",")]
    assert settled == cells
    assert len(fill(table, "y", method="ridge", missing=settled).labels.known) == 40 - len(cells)


@pytest.mark.parametrize("options", [{}, {"guarantee": "column", "sample": 200}])
def test_notes_name_lines_of_the_file_also_where_the_fit_sees_a_sample(tmp_path, options):
    random = np.random.default_rng(0)
    n = 400
    x = random.normal(size=n)
    odd = [5, 201, 202, 203, 396]
    z = pd.Series(random.normal(size=n).round(2).astype(str))
    z[odd] = "pending"
    y = pd.Series((2.0 * x).round(3)).where(np.arange(n) % 4 == 0)
    pd.DataFrame({"x": x.round(3), "z": z, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    result = fill(files.read(tmp_path / "t.csv"), "y", method="ridge", **options)
    assert result.seen.is_sample == bool(options)
    (note,) = [str(note) for note in result.notes if "pending" in str(note)]
    lines = [int(number) for number in re.findall(r"\d+", note.partition("(line")[2])]
    assert lines
    assert set(lines) <= {row + 2 for row in odd}


def survey(rows):
    """Answers as survey programs export them, with rows of their own below the names."""
    answers = [
        [f"2024-01-{1 + i % 28:02d} 10:00:00", 20 + i, 1.5 * i, 12 + i / 7] for i in range(30)
    ]
    return text_of([["StartDate", "Q1", "Q2", "Q3"], *rows, *answers]), answers


KEYS = [
    '{"ImportId":"startDate"}',
    '{"ImportId":"QID1"}',
    '{"ImportId":"QID2"}',
    '{"ImportId":"QID3"}',
]
SURVEYS = {
    "questions and keys": [["Start Date", "Your age?", "How much, in EUR?", "How long?"], KEYS],
    "keys": [KEYS],
    "kinds of answers": [[None, "Open-Ended Response", "Open-Ended Response", "Response"]],
}  # fmt: skip


@pytest.mark.parametrize("name", SURVEYS)
def test_rows_of_survey_programs_are_no_answers(tmp_path, name):
    text, answers = survey(SURVEYS[name])
    (tmp_path / "t.csv").write_text(text)
    table = files.read(tmp_path / "t.csv")
    assert table.frame.columns.tolist() == ["StartDate", "Q1", "Q2", "Q3"]
    assert table.frame.iloc[:, 1:].to_numpy().tolist() == [row[1:] for row in answers]
    assert "left out" in " ".join(table.notes)
    files.write(tmp_path / "u.csv", table, pd.DataFrame({"new": range(30)}))
    assert files.read(tmp_path / "u.csv").frame["new"].tolist() == list(range(30))


UNEVEN = {
    "names of rows, tabs.tsv": "\t".join(NAMES) + "\n" + text_of([[i, *r] for i, r in enumerate(ROWS)], "\t"),
    "names of rows.csv": ",".join(NAMES) + "\n" + text_of([[f"r{i}", *r] for i, r in enumerate(ROWS)]),
    "a title, aligned.txt": "          The SAS System\n\n" + aligned(
        [["Obs", *NAMES], *[[i, *r] for i, r in enumerate(ROWS)]], 9, right=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEVEN)
def test_tables_of_statistics_programs(tmp_path, name):
    (tmp_path / name).write_text(UNEVEN[name])
    table = files.read(tmp_path / name)
    assert table.frame.columns.tolist()[1:] == NAMES
    check_table(table.frame[NAMES])
    files.write(tmp_path / f"new {name}", table, pd.DataFrame({"new": range(30)}))
    assert files.read(tmp_path / f"new {name}").frame["new"].tolist() == list(range(30))


LABORATORY = [
    ["Pat", "Age", "Hb", "CRP", "Taken", "Score"],
    [None, "years", "g/dl", "mg/l", None, "points"],
    *[
        [f"P{i}", 20 + i, ["12,1 L", "13,5", "11,0 (L)"][i % 3], ["<0,6", "5,1"][i % 2],
         f"{1 + i:02d}.02.2024", None if i % 4 == 0 else f"{i},5"]
        for i in range(25)
    ],
]  # fmt: skip


@pytest.mark.parametrize(
    "above",
    [
        [["Laboratory"], ["Printed: 03.02.2024", "User: meier"], []],
        [[None, "Printed: 03.02.2024", "User: meier", "Ward: 3"]],
        [],
    ],
)
@pytest.mark.parametrize("below", [[], [["Endsaldo", *[None] * 4, "225,0"]], [["Gesamtzahl", 25]]])
def test_units_below_flags_and_lines_above_and_below(tmp_path, above, below):
    (tmp_path / "t.csv").write_text(text_of([*above, *LABORATORY, *below], ";"))
    table = files.read(tmp_path / "t.csv")
    assert table.frame.columns.tolist() == LABORATORY[0]
    assert len(table.frame) == 25
