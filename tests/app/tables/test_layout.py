"""Where a table begins and ends: a corpus of sheets as people keep them, as CSV and as Excel."""

from __future__ import annotations

import csv
import datetime as dt
import io

import numpy as np
import openpyxl
import pandas as pd
import pytest

from transduce.app.tables import files
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.files import write
from transduce.app.tables.layout import LayoutRequest, find_layout
from transduce.core.words import OptionError

NAMES = ["id", "sex", "LDL", "Na"]
DATA = [
    ["p1", "m", 3.4, 140],
    ["p2", "f", 2.9, 138],
    ["p3", "m", None, 139],
    ["p4", "f", 3.3, 141],
    ["p5", "f", 4.7, 137],
]
E = [None] * 4  # an empty row


def title(text):
    return [text, None, None, None]


# Each sheet, the rows above the data that belong to it, and the names that it must have.
SHEETS = {
    "plain": ([NAMES, *DATA], NAMES),
    "a title": ([title("Lipids 2024"), NAMES, *DATA], NAMES),
    "a title and a blank row": ([title("Lipids 2024"), E, NAMES, *DATA], NAMES),
    "three lines above": (
        [title("Lipids"), title("Dr. Müller"), title("3.1.24"), NAMES, *DATA],
        NAMES,
    ),
    "a title with two cells": ([["Lipids", "2024", None, None], NAMES, *DATA], NAMES),
    "a title in the middle": ([[None, None, "Lipids", None], NAMES, *DATA], NAMES),
    "blank rows first": ([E, E, NAMES, *DATA], NAMES),
    "units below the names": ([NAMES, [None, None, "mmol/L", "mmol/L"], *DATA], NAMES),
    "units in brackets": ([NAMES, [None, None, "[mmol/l]", "(mM)"], *DATA], NAMES),
    "units and dashes in brackets": (
        [NAMES, ["[-]", "[-]", "[mmol/l]", "[10^9/l]"], *DATA],
        NAMES,
    ),
    "types of columns": ([NAMES, ["string", "factor", "double", "integer"], *DATA], NAMES),
    "types in brackets": ([NAMES, ["<chr>", "<fct>", "<dbl>", "<int>"], *DATA], NAMES),
    "groups of columns": (
        [["Patient", None, "Blood", None], NAMES, *DATA],
        ["Patient id", "Patient sex", "Blood LDL", "Blood Na"],
    ),
    "a title above groups": (
        [title("Study"), E, ["Patient", None, "Blood", None], NAMES, *DATA],
        ["Patient id", "Patient sex", "Blood LDL", "Blood Na"],
    ),
    "an empty first column": ([[None, *row] for row in [NAMES, *DATA]], NAMES),
    "empty columns at the end": ([[*row, None, None] for row in [NAMES, *DATA]], NAMES),
    "a footnote": ([NAMES, *DATA, title("* below the limit of detection")], NAMES),
    "a blank row and footnotes": ([NAMES, *DATA, E, title("* LOD"), title("Source: lab")], NAMES),
    "a mean": ([NAMES, *DATA, ["Mean", None, 3.575, 139.0]], NAMES),
    "a rounded mean": ([NAMES, *DATA, ["Mittelwert", None, 3.58, 139]], NAMES),
    "a total after a blank row": ([NAMES, *DATA, E, ["Total", None, 14.3, 695]], NAMES),
    "a total and a footnote": ([NAMES, *DATA, ["Sum", None, 14.3, 695], title("checked")], NAMES),
    "blank rows between": ([NAMES, *DATA[:2], E, *DATA[2:4], E, E, DATA[4]], NAMES),
    "names and pages again": ([NAMES, *DATA[:2], title("Page 2"), NAMES, *DATA[2:]], NAMES),
    "signs of a mean": (
        [NAMES, *DATA, ["Ø", None, 3.58, 139.0], ["± SD", None, 0.78, 1.6]],
        NAMES,
    ),
    "who printed it": ([NAMES, *DATA, [None, None, "printed by X", "page 1"]], NAMES),
    "everything at once": (
        [
            title("Lipids, ward 3"),
            E,
            ["Patient", None, "Blood", None],
            NAMES,
            *DATA[:3],
            E,
            *DATA[3:],
            E,
            ["Average", None, 3.575, 139],
            title("* values < LOD"),
        ],
        ["Patient id", "Patient sex", "Blood LDL", "Blood Na"],
    ),
    "a column without a name": (
        [[None, *NAMES[1:]], *DATA],
        ["column 1", "sex", "LDL", "Na"],
    ),
}


def as_csv(rows, delimiter):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n")
    for row in rows:
        writer.writerow(["" if cell is None else cell for cell in row])
    return buffer.getvalue()


def write_sheet(path, rows, kind):
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.worksheets[0].append(row)
        book.save(path)
        return
    delimiter = {"comma": ",", "semicolon": ";", "stated": ";"}[kind]
    text = as_csv(rows, delimiter)
    if kind == "stated":
        text = "sep=;\r\n" + text
    path.write_text(text, encoding="utf-8", newline="")


@pytest.mark.parametrize("kind", ["xlsx", "comma", "semicolon", "stated"])
@pytest.mark.parametrize("name", SHEETS)
def test_the_same_table_is_read_however_it_is_kept(tmp_path, name, kind):
    rows, names = SHEETS[name]
    path = tmp_path / ("a.xlsx" if kind == "xlsx" else "a.csv")
    write_sheet(path, rows, kind)
    table = files.read(path)
    assert table.frame.columns.tolist() == names
    found = table.frame.astype(object).where(table.frame.notna(), None).to_numpy().tolist()
    assert found == DATA
    if name != "plain" and "empty" not in name and name != "blank rows first":
        assert table.notes


@pytest.mark.parametrize("kind", ["xlsx", "comma", "stated"])
@pytest.mark.parametrize(
    "name",
    [
        *("everything at once", "an empty first column", "a mean"),
        *("units and dashes in brackets", "names and pages again"),
    ],
)
def test_new_columns_join_and_all_else_stays(tmp_path, name, kind):
    rows, names = SHEETS[name]
    ending = "xlsx" if kind == "xlsx" else "csv"
    path = tmp_path / f"a.{ending}"
    write_sheet(path, rows, kind)
    table = files.read(path)
    write(tmp_path / f"b.{ending}", table, pd.DataFrame({"new": np.arange(5.0)}))
    again = files.read(tmp_path / f"b.{ending}").frame
    assert again.columns.tolist() == [*names, "new"] or again.columns[-1].endswith("new")
    assert again.iloc[:, -1].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    if kind != "xlsx":
        before = path.read_text(encoding="utf-8").splitlines()
        after = (tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()
        assert len(before) == len(after)
        assert all(new.startswith(old) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("kind", ["xlsx", "comma", "semicolon"])
def test_columns_of_one_name_are_numbered(tmp_path, kind):
    path = tmp_path / ("a.xlsx" if kind == "xlsx" else "a.csv")
    write_sheet(path, [["id", "sex", "LDL", "LDL"], *DATA], kind)
    table = files.read(path)
    assert table.frame.columns.tolist() == ["id", "sex", "LDL (1)", "LDL (2)"]
    assert any("2 columns are called 'LDL'" in note for note in table.notes)
    with pytest.raises(ValueError, match="Several columns of the table are called 'LDL'"):
        check_columns(table.frame, ["LDL"])
    write(tmp_path / f"b{path.suffix}", table, pd.DataFrame({"new": np.arange(5.0)}))
    again = files.read(tmp_path / f"b{path.suffix}").frame
    assert again.columns.tolist() == ["id", "sex", "LDL (1)", "LDL (2)", "new"]


@pytest.mark.parametrize("kind", ["xlsx", "comma", "semicolon"])
def test_a_legend_beside_the_table_is_no_column(tmp_path, kind):
    beside = [[None] * 3, [None, "m", "male"], [None, "f", "female"], *[[None] * 3] * 3]
    rows = [[*row, *other] for row, other in zip([NAMES, *DATA], beside, strict=True)]
    path = tmp_path / ("a.xlsx" if kind == "xlsx" else "a.csv")
    write_sheet(path, rows, kind)
    table = files.read(path)
    assert table.frame.columns.tolist() == NAMES
    assert any("beside the table, with cells from row 2 on" in note for note in table.notes)
    write(tmp_path / f"b{path.suffix}", table, pd.DataFrame({"new": np.arange(5.0)}))
    again = files.read(tmp_path / f"b{path.suffix}").frame
    assert again["new"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_other_sheets_with_tables_are_named(tmp_path):
    book = openpyxl.Workbook()
    for row in [NAMES, *DATA]:
        book.worksheets[0].append(row)
    other = book.create_sheet("2022")
    for row in [NAMES, *DATA]:
        other.append(row)
    other["C4"].value = "#N/A"
    book.save(tmp_path / "a.xlsx")
    first = files.read(tmp_path / "a.xlsx")
    assert any("1 other sheet holds a table too" in note for note in first.notes)
    second = files.read(tmp_path / "a.xlsx", sheet="2022")
    assert not second.notes
    assert second.frame["LDL"].isna().tolist() == [False, False, True, False, False]
    pd.testing.assert_frame_equal(second.frame, first.frame)


ROWS = [["a", "b"], ["x", "y"], [1, 2], [3, 4], [5, 6], ["Total", 12]]


class TestRequests:
    def test_the_header_is_where_the_user_says(self):
        assert find_layout(ROWS, LayoutRequest(header=2)).names == ["x", "y"]
        without = find_layout(ROWS, LayoutRequest(header=0))
        assert without.names == ["column 1", "column 2"]
        assert without.rows[0] == 0

    def test_rows_are_those_the_user_names(self):
        assert find_layout(ROWS, LayoutRequest(first=3, last=4)).rows == [2, 3]
        assert find_layout(ROWS, LayoutRequest(last=6)).rows == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("rows", ["5", "a:b", "9:3", "1-3"])
    def test_odd_rows_are_refused(self, rows):
        with pytest.raises(OptionError):
            LayoutRequest.read(None, None, rows)

    def test_header_and_skip_are_one_thing(self):
        assert LayoutRequest.read(None, 3, None).header == 4
        with pytest.raises(OptionError, match="say the same"):
            LayoutRequest.read(1, 3, None)

    def test_a_header_that_is_not_there(self):
        with pytest.raises(ValueError, match="there is no row 9 with names"):
            find_layout(ROWS, LayoutRequest(header=9))


class TestNothingIsLostByMistake:
    @pytest.mark.parametrize(
        "rows",
        [
            [["q", "a"], ["who", "me"], ["why", "so"], ["how", "well"]],  # texts alone
            [["id", "x", "y"], *[[1, 2, None]] * 3, [4, 5, 6]],  # few labels
            [["year", "2001", "2002"], ["a", 1, 2], ["b", 3, 4], ["c", 5, 6]],  # years as names
            [["city", "n"], ["Total", 1], ["Sumy", 2], ["Mean Park", 3]],  # names like totals
            [["price"], [1], [2], [3]],
        ],
    )
    def test_plain_tables_stay_whole(self, rows):
        layout = find_layout(rows)
        assert layout.header == (0,)
        assert layout.rows == list(range(1, len(rows)))

    @pytest.mark.parametrize(
        "names",
        [["", "kcal", "steps"], [None, "kcal", "steps"], ["who", "kcal", "steps", "watt"]],
    )
    def test_a_first_row_with_numbers_like_years_is_kept(self, names):
        first = ["Anna", 1950, 2010, 1987]
        others = [[f"B{i}", 870 + 400 * i, 3400 - 300 * i, 5 * i] for i in range(6)]
        rows = [row[: len(names)] for row in (first, *others)]
        for cells in (rows, [[str(cell) for cell in row] for row in rows]):
            layout = find_layout([names, *cells])
            assert (layout.header, len(layout.rows)) == ((0,), 7)

    @pytest.mark.few(2)
    @pytest.mark.parametrize("word", ["mittel", "average", "median", "total"])
    def test_categories_that_sound_like_totals_are_kept(self, word):
        """Grades of 1 to 5 are often the mean, the least or the number of some others."""
        random = np.random.default_rng(0)
        for _ in range(20):
            levels = random.choice(["high", "low", "poor", word], 60)
            rows = [[level, int(random.integers(1, 6))] for level in levels]
            assert len(find_layout([["level", "grade"], *rows]).rows) == 60
            rows = [["id", "level", "grade"], *[[level, level, grade] for level, grade in rows]]
            assert len(find_layout(rows).rows) == 60

    def test_a_person_called_max_is_kept(self):
        """The highest grade is that of many, and Max is a name."""
        names = ["Anna", "Bert", "Cleo", "Max", "Dora", "Emil", "Finn", "Gus"]
        rows = [[name, grade] for name, grade in zip(names, [1, 3, 5, 5, 2, 5, 4, 1], strict=True)]
        assert len(find_layout([["who", "grade"], *rows]).rows) == 8
        means = [["Mean", 3.0], ["Max", 5]]
        assert find_layout([["who", "grade"], *rows[:3], *rows[4:], *means]).rows[-1] == 7

    def test_words_and_dates_beside_the_label_are_of_no_total(self):
        rows = [[f"S{i}", "Ada", f"2024-03-{10 + i}", 3] for i in range(9)]
        for place in (4, 8):
            rows[place] = ["Mean", "Bo", "2024-03-09", 3]
            assert len(find_layout([["name", "by", "day", "grade"], *rows]).rows) == 9

    @pytest.mark.parametrize("empty", ["", None])
    def test_a_column_of_row_names_has_no_name(self, empty):
        """As R and pandas write it, the names of the others are no names of groups, or a title."""
        rows = [["Anna", "Rome", "Italy"], ["Bert", "Bonn", "Germany"], ["Cleo", "Aix", "France"]]
        layout = find_layout([[empty, "city", "country"], *rows * 3])
        assert (layout.header, len(layout.rows)) == ((0,), 9)
        layout = find_layout([[empty, "city"], *[row[:2] for row in rows * 3]])
        assert (layout.header, len(layout.rows)) == ((0,), 9)

    def test_words_in_a_row_below_numbers_are_no_names(self):
        rows = [[0.3 + i, f"n{i % 3}"] for i in range(12)]
        rows[4] = ["n/a", "none"]
        layout = find_layout([[None, "remark"], *rows])
        assert (layout.header, len(layout.rows)) == ((0,), 12)

    def test_a_category_that_begins_like_a_footnote_is_kept(self):
        rows = [[["note", "letter"][i % 2], "x", i, i**2] for i in range(11)]
        rows[-1][1] = None
        assert len(find_layout([["kind", "by", "a", "b"], *rows]).rows) == 11

    @pytest.mark.parametrize("name", ["MW-1", "SE 12", "N3", "n_4", "Min-5"])
    def test_a_last_row_whose_number_begins_like_a_total_is_kept(self, name):
        random = np.random.default_rng(0)
        for _ in range(20):
            ph = np.round(7.0 + 0.1 * random.normal(size=20), 1)
            rows = [[f"GW-{i}", value, 12.0 + i % 3, i] for i, value in enumerate(ph.tolist())]
            rows[-1][0] = name
            assert len(find_layout([["well", "ph", "temp", "ions"], *rows]).rows) == 20

    def test_a_last_row_with_a_word_among_numbers_is_kept(self):
        rows = [[f"S{i}", i, 2 * i, i**2] for i in range(1, 30)]
        rows.append(["S30", None, None, "failed"])
        assert len(find_layout([["id", "a", "b", "y"], *rows]).rows) == 30

    def test_a_row_with_its_number_alone_above_names_again_is_kept(self):
        """So it is where two files were joined, and the last row of the first has no values."""
        names = ["id", "a", "b", "y"]
        rows = [[f"S{i}", i, 2 * i, i**2] for i in range(1, 30)]
        joined = [names, *rows, ["S30", None, None, None], names, *rows]
        assert len(find_layout(joined).rows) == 59

    def test_a_last_row_that_only_sounds_like_a_total_is_kept(self):
        rows = [["city", "x", "y"], ["Aix", 1, 5], ["Bonn", 2, 6], ["Total Hill", 9, 9]]
        assert find_layout(rows).rows == [1, 2, 3]


JANUARY, FEBRUARY = dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)
SALES = [[f"shop {i}", ["North", "South"][i % 2], 120.5 + i, 99.0 - i] for i in range(8)]
BY_YEAR = {
    "texts": (["shop", "region", "2023", "2024"], ["shop", "region", "2023", "2024"]),
    "numbers": (["shop", "region", 2023, 2024.0], ["shop", "region", "2023", "2024"]),
    "months": (
        ["shop", "region", JANUARY, FEBRUARY],
        ["shop", "region", "2024-01-01", "2024-02-01"],
    ),
}


@pytest.mark.parametrize("name", BY_YEAR)
def test_years_and_dates_name_columns(name):
    head, names = BY_YEAR[name]
    for above in ([], [title("Sales of all shops"), E]):
        layout = find_layout([*above, head, *SALES])
        assert (layout.names, len(layout.rows)) == (names, len(SALES))
        groups = ["Shop", None, "Sales", None]
        layout = find_layout([*above, groups, head, *SALES])
        first, second = names[2:]
        expected = ["Shop shop", "Shop region", f"Sales {first}", f"Sales {second}"]
        assert (layout.names, len(layout.rows)) == (expected, len(SALES))


def test_years_in_the_data_are_no_names():
    founded = [[f"shop {i}", 1990 + i, "open", 2001 + i] for i in range(8)]
    layout = find_layout([["shop", None, "state", "moved"], *founded])
    assert (layout.header, len(layout.rows)) == ((0,), 8)
    founded = [[f"shop {i}", "open", 2005 if i == 0 else 31 + i] for i in range(8)]
    layout = find_layout([["shop", None, "sold"], *founded])
    assert (layout.header, len(layout.rows)) == ((0,), 8)


def test_merged_names_of_groups_end_with_their_columns(tmp_path):
    """In a workbook a group ends where its merged cells end, not at the next group alone."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["Patient", None, "Blood", None, None])
    sheet.append([*NAMES, "Remarks"])
    for row in DATA:
        sheet.append([*row, "ok"])
    sheet.merge_cells("A1:B1")
    sheet.merge_cells("C1:D1")
    book.save(tmp_path / "t.xlsx")
    frame = files.read(tmp_path / "t.xlsx").frame
    names = ["Patient id", "Patient sex", "Blood LDL", "Blood Na", "Remarks"]
    assert frame.columns.tolist() == names


COUNTRIES = ["N", "SE", "SD", "Max", "MW", "N/A", "n.b.", "Min", "Std"]


@pytest.mark.parametrize("label", COUNTRIES)
@pytest.mark.parametrize("value", [3, 40, 22])
def test_a_row_that_has_the_name_of_a_statistic_by_chance_stays(label, value):
    """Sweden, Sudan, a person called Max: the least, the greatest or a usual number is no total."""
    values = [3, 9, 14, 17, 22, 25, 31, 40, 37, 5, 12, 28]
    rows = [["place", "who", "x"], *[[f"c{x}", "abc"[x % 3], x] for x in values]]
    other = {"Max": 22, "Min": 22, "SE": value, "MW": 40}.get(label, value)
    rows.insert(5, [label, "a", other])
    layout = find_layout(rows)
    assert len(layout.rows) == len(values) + 1
    assert not layout.notes


@pytest.mark.parametrize("cell", ["#N/A", "*", "-", "n.b.", "#NV"])
def test_a_last_row_with_marks_of_empty_cells_alone_stays(cell):
    for last in ([None, None, cell, None], [cell, None, None, None], [cell, "f", None, None]):
        layout = find_layout([NAMES, *DATA, last])
        assert len(layout.rows) == len(DATA) + 1


@pytest.mark.parametrize(
    "first",
    [
        ["p0", "m", "(EUR 5.57)", 140],
        ["p0", "m", "($5.57)", "(12)"],
        ["pending", "—", "n.b.", "n.b."],
    ],
)
def test_amounts_and_gaps_below_the_names_are_no_units(first):
    layout = find_layout([NAMES, first, *DATA])
    assert layout.header == (0,)
    assert len(layout.rows) == len(DATA) + 1


@pytest.mark.parametrize("last", [["Source: lab", None, None], ["end", None, None]])
def test_a_note_below_rows_that_mostly_lack_a_value_is_left_out(last):
    rows = [["id", "x", "y"], *[[i, 2 * i, i if i % 4 == 0 else None] for i in range(12)], last]
    assert len(find_layout(rows).rows) == 12


@pytest.mark.parametrize("rows", ["0:4", "0:", ":0"])
def test_rows_count_from_one(rows):
    with pytest.raises(OptionError, match="Rows count from 1"):
        LayoutRequest.read(None, None, rows)


@pytest.mark.parametrize("name", ["id", None])
@pytest.mark.parametrize(
    "spelled", ["{} EUR", "EUR {}", "{} kg", "{} %", "<{}", "{} H", "- ${}", "({} USD)", "{}-"]
)
def test_a_first_row_of_amounts_is_no_description(name, spelled):
    rows = [[f"p{i}", *[spelled.format(i + k + 0.5) for k in range(3)]] for i in range(8)]
    layout = find_layout([[name, "x", "y", "z"], *rows])
    assert layout.header == (0,)
    assert len(layout.rows) == 8


def test_times_below_groups_are_names():
    rows = [[f"p{i}", 1.5 + i, 2.5 + i, 3.5 + i] for i in range(8)]
    layout = find_layout([["id", "Conc", None, None], [None, "0 h", "24 h", "48 h"], *rows])
    assert layout.names == ["id", "Conc 0 h", "Conc 24 h", "Conc 48 h"]


@pytest.mark.parametrize(
    "units",
    [
        ("g/dL", "-", "1/min"),
        ("10^9/L", "–", "×10⁹/L"),
        ("x10^3/µL", "%", "n/a"),
        ("g/dL", "-", "points"),
    ],
)
def test_a_row_of_units_where_some_column_has_none(units):
    """A pH has none: its dash makes no row of data of the others."""
    data = [[f"p{k}", 10 + k, 7.0 + 0.1 * k, 60 + 3 * k] for k in range(8)]
    layout = find_layout([["patient", "Hb", "pH", "pulse"], [None, *units], *data])
    assert len(layout.rows) == len(data)
    assert len(layout.notes) == 1
