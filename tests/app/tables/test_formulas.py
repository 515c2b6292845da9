"""Which columns formulas of a workbook point at."""

import openpyxl
import pytest
from openpyxl.workbook.defined_name import DefinedName

from transduce.app.tables.formulas import columns_in_formulas, pointing_at

NAMES = ["id", "price", "area", "tax", "Net amount", "year 2020", "year 2021"]


def sheet_with(*formulas, names=NAMES):
    """Return a sheet with formulas in one more column."""
    sheet = openpyxl.Workbook().active
    sheet.title = "Data"
    sheet.append([*names, "made"])
    for formula in formulas:
        sheet.append([None] * len(names) + [formula])
    return sheet


def pointed(*formulas):
    """Return what the formulas of a column point at."""
    sheet = sheet_with(*formulas)
    found = columns_in_formulas(sheet, [*NAMES, "made"], sheet.max_row)
    return sorted(found.get("made", set()))


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("=B2*2", ["price"]),
        ("=b2", ["price"]),
        ("=$B$2 + C2", ["area", "price"]),
        ("=SUM(A2:C2)", ["area", "id", "price"]),
        ("=SUM(C2:B2)", ["area", "price"]),
        ("=B:B", ["price"]),
        ("=AVERAGE(2:2)", sorted([*NAMES, "made"])),
        ("=Data!B2", ["price"]),
        ("='Data'!B2", ["price"]),
        ("=Other!B2", []),
        ("='It''s'!B2", []),
        ("=LOG10(C2)", ["area"]),
        ('="B2" & C2', ["area"]),
        ('=IF(B2="","",B2/C2)', ["area", "price"]),
        ("=SUM(Houses[price])", ["price"]),
        ("=[@price]*[@[Net amount]]", ["Net amount", "price"]),
        ("=[@[year 2021]]", ["year 2021"]),
        ("=1.5E2*TRUE", []),
        ("=ZZ9", []),
        ("=OFFSET(C2,0,-1)", sorted([*NAMES, "made"])),
        ('=INDIRECT("B"&ROW())', sorted([*NAMES, "made"])),
        ("=NOOFFSET(C2)", ["area"]),
    ],
)
def test_references(formula, columns):
    assert pointed(formula) == columns


def test_of_all_rows():
    assert pointed("=A2", "=B3", "=[@[year 2020]]", "=[@[year 2021]]") == sorted(
        ["id", "price", "year 2020", "year 2021"]
    )


def test_names_of_ranges():
    sheet = sheet_with("=Worth*2", "=Worthless")
    sheet.parent.defined_names["Worth"] = DefinedName("Worth", attr_text="Data!$B$2:$B$9")
    found = columns_in_formulas(sheet, [*NAMES, "made"], sheet.max_row)
    assert found == {"made": {"price"}}


def test_by_way_of_other_sheets():
    """A summary of prices, and what is computed from it, come from the prices; a list does not."""
    sheet = sheet_with("=Means!B2", "=VLOOKUP(A3, 'Rates of tax'!A:B, 2)", "=Missing!A1")
    book = sheet.parent
    means = book.create_sheet("Means")
    means["B2"] = "=Raw!A1 / 2"
    raw = book.create_sheet("Raw")
    raw["A1"] = "=AVERAGE(Data!B:B) + C9 + Means!B2"
    raw["C9"] = "=Data!C2"
    rates = book.create_sheet("Rates of tax")
    rates["A1"] = 0.2
    rates["B1"] = "=A1 * 100 + SUM(2:2)"
    found = columns_in_formulas(sheet, [*NAMES, "made"], sheet.max_row)
    assert found == {"made": {"price", "area", "id"}}  # the id by itself


def test_by_way_of_others():
    formulas = {"gross": {"net"}, "net": {"price", "area"}, "loop": {"loop", "x"}, "x": {"loop"}}
    assert pointing_at("price", formulas) == ["net", "gross"]
    assert pointing_at("gross", formulas) == []
    assert pointing_at("x", formulas) == ["loop"]
