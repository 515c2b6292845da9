"""How filled cells look in a workbook: colours and comments say how far each can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

GREEN = "C6EFCE"
YELLOW = "FFEB9C"
RED = "F8CBAD"
NARROW = 0.5  # an interval whose width is reduced by this share says much
BARELY = 0.2  # and by less than this share little
MOST_COMMENTS = 2000  # cells with a comment: a workbook with very many opens slowly
AUTHOR = "transduce"
LEGENDS = {
    "numbers": "Predicted where the value was missing. Green: the interval is at most half as wide "
    "as without the other columns. Yellow: it is hardly narrower. Red: unusual, or no prediction.",
    "classes": "Predicted where the value was missing. Green: only this class is possible. Yellow: "
    "several are. Red: unusual, undecided, or no prediction.",
}
ODD = ("unusual", "tied", "unreached", "rejected")  # statuses of predictions to look at


class Look(NamedTuple):
    """How one filled cell looks."""

    colour: str  # "" if it has none
    comment: str  # "" if it has none


def looks_of(new: pd.DataFrame, base: str) -> list[Look]:
    """Return how each cell of a filled column looks; those of known values look as before."""
    columns = {
        name.removeprefix(f"{base}_"): new[name]
        for name in new.columns
        if str(name).startswith(f"{base}_")
    }
    has_set = "set" in columns
    lines = pd.DataFrame(columns).to_dict("records")
    return [_look_of_class(line) if has_set else _look_of_number(line) for line in lines]


def _look_of_number(line: Mapping[Any, Any]) -> Look:
    if line["status"] == "given":
        return Look("", "")
    if line["status"] in ODD:
        return Look(RED, f"Predicted; {line['status']}. {_interval(line)}")
    reduction: Any = line.get("width_reduction")
    colour = ""
    if not pd.isna(reduction) and reduction >= NARROW:
        colour = GREEN
    elif pd.isna(reduction) or reduction < BARELY:
        colour = YELLOW
    return Look(colour, f"Predicted. {_interval(line)}")


def _interval(line: Mapping[Any, Any]) -> str:
    """Return the interval of a row in words."""
    low: Any = line.get("lower")
    high: Any = line.get("upper")
    if pd.isna(low) and pd.isna(high):
        return "Any value is possible."
    if pd.isna(low):
        return f"Interval: up to {high}."
    if pd.isna(high):
        return f"Interval: from {low} on."
    return f"Interval: {low} to {high}."


def _look_of_class(line: Mapping[Any, Any]) -> Look:
    if line["status"] == "given":
        return Look("", "")
    probability: Any = line.get("probability")
    words = "Predicted"
    if not pd.isna(probability):
        words += f", with probability {100 * float(probability):.0f} %"
    words += f". Possible: {line['set'] or 'none that was seen'}."
    if line["status"] in ODD:
        return Look(RED, f"{words} {str(line['status']).capitalize()}.")
    if str(line["set"]) == str(line["filled"]):
        return Look(GREEN, words)
    return Look(YELLOW, words)


def mark_filled(
    sheet: Any,
    new: pd.DataFrame,
    n_before: int,
    header: int,
    rows: Sequence[int],
    formats: Mapping[str, Any],
) -> None:
    """Colour the filled cells of a sheet, and comment on them.

    Parameters
    ----------
    sheet : openpyxl.worksheet.worksheet.Worksheet
        Where the new columns stand already.
    new : pandas.DataFrame
        The new columns.
    n_before : int
        Columns before the new ones.
    header : int
        The row with the names, counted from 0; -1 if there is none.
    rows : list of int
        The rows of the table, counted from 0.
    formats : dict of str
        How numbers are written in the columns of the table.
    """
    from openpyxl.comments import Comment
    from openpyxl.styles import PatternFill

    fills = {colour: PatternFill("solid", fgColor=colour) for colour in (GREEN, YELLOW, RED)}
    places = {str(name): place for place, name in enumerate(new.columns, start=n_before + 1)}
    for name, place in places.items():
        base = name.removesuffix("_filled")
        if base == name or f"{base}_status" not in places:
            continue
        looks = looks_of(new, base)
        n_comments = 0
        for row, look in zip(rows, looks, strict=True):
            cell = sheet.cell(row=row + 1, column=place)
            if look.colour:
                cell.fill = fills[look.colour]
            if look.comment and n_comments < MOST_COMMENTS:
                cell.comment = Comment(look.comment, AUTHOR)
                n_comments += 1
        if header >= 0:
            legend = LEGENDS["classes" if f"{base}_set" in places else "numbers"]
            sheet.cell(row=header + 1, column=place).comment = Comment(legend, AUTHOR)
        if base in formats:
            for ending in ("filled", "lower", "upper"):
                if f"{base}_{ending}" in places:
                    _write_like(sheet, places[f"{base}_{ending}"], rows, formats[base])


def _write_like(
    sheet: Any,
    column: int,
    rows: Sequence[int],
    number_format: str,
) -> None:
    """Let the numbers of a column be written like those of another."""
    for row in rows:
        sheet.cell(row=row + 1, column=column).number_format = number_format
