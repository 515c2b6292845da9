"""Filled cells of a workbook: their colours, comments and formats, and what stays as it was."""

from __future__ import annotations

import numpy as np
import openpyxl
import pandas as pd
import pytest

from transduce import fill
from transduce.app.tables import files
from transduce.app.tables.filled_cells import GREEN, RED, YELLOW, Look, looks_of

NUMBERS = pd.DataFrame(
    {
        "y_filled": [1.5, 2.5, 3.5, 4.5, 5.5],
        "y_lower": [np.nan, 2.0, np.nan, 4.0, 5.0],
        "y_upper": [np.nan, 3.0, 9.0, 5.0, 6.0],
        "y_width_reduction": [np.nan, 0.6, 0.1, 0.3, 0.9],
        "y_status": ["given", "answered", "answered", "answered", "unusual"],
    }
)
CLASSES = pd.DataFrame(
    {
        "y_filled": ["a", "b", "a", "b"],
        "y_set": [None, "b", "a | b", ""],
        "y_probability": [np.nan, 0.934, 0.6, 0.5],
        "y_status": ["given", "answered", "answered", "unusual"],
    }
)


def test_looks_of_numbers():
    assert looks_of(NUMBERS, "y") == [
        Look("", ""),
        Look(GREEN, "Predicted. Interval: 2.0 to 3.0."),
        Look(YELLOW, "Predicted. Interval: up to 9.0."),
        Look("", "Predicted. Interval: 4.0 to 5.0."),
        Look(RED, "Predicted; unusual. Interval: 5.0 to 6.0."),
    ]


def test_looks_of_classes():
    assert looks_of(CLASSES, "y") == [
        Look("", ""),
        Look(GREEN, "Predicted, with probability 93 %. Possible: b."),
        Look(YELLOW, "Predicted, with probability 60 %. Possible: a | b."),
        Look(RED, "Predicted, with probability 50 %. Possible: none that was seen. Unusual."),
    ]


@pytest.fixture
def book(tmp_path):
    """A workbook with a title, bold names, a comment, and numbers with one decimal."""
    random = np.random.default_rng(0)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Laboratory"])
    sheet.append(["x", "y"])
    for row in range(60):
        x = float(random.normal())
        sheet.append([x, round(3.0 * x, 1) if row < 40 else None])
        sheet.cell(row=row + 3, column=2).number_format = "0.0"
    sheet["A2"].font = openpyxl.styles.Font(bold=True)
    sheet["B3"].comment = openpyxl.comments.Comment("seen twice", "Ann")
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_the_filled_sheet_has_colours_comments_and_formats(book):
    table = files.read(book)
    result = fill(table, "y", method="ridge")
    files.write(book.with_name("filled.xlsx"), table, result.columns_for_file)
    sheet = openpyxl.load_workbook(book.with_name("filled.xlsx")).active
    names = [cell.value for cell in sheet[2]]
    column = names.index("y_filled") + 1
    assert "Green" in sheet.cell(row=2, column=column).comment.text
    given, filled = sheet.cell(row=5, column=column), sheet.cell(row=50, column=column)
    assert given.comment is None
    assert given.fill.fgColor.rgb == "00000000"
    assert filled.comment.text.startswith("Predicted. Interval: ")
    assert filled.fill.fgColor.rgb.endswith(GREEN)
    assert filled.number_format == given.number_format == "0.0"
    assert sheet["A2"].font.bold
    assert sheet["B3"].comment.text == "seen twice"
    assert sheet["A1"].value == "Laboratory"


def test_a_table_of_another_format_is_coloured_too(tmp_path):
    x = np.random.default_rng(0).normal(size=50)
    frame = pd.DataFrame({"x": x, "y": pd.Series(np.where(x > 0, "up", "down"), dtype=object)})
    frame.loc[30:, "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = files.read(tmp_path / "t.csv")
    result = fill(table, "y", method="forest")
    files.write(tmp_path / "t.xlsx", table, result.columns_for_file)
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert sheet["C1"].value == "y_filled"
    assert sheet["C40"].comment.text.startswith("Predicted, with probability")
    assert sheet["C40"].fill.fgColor.rgb[-6:] in (GREEN, YELLOW)
