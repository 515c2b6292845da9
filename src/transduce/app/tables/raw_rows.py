"""The first rows of a file as they stand, whatever is table, title or footnote among them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from transduce.app.tables import files
from transduce.app.tables.delimited import CSV, TSV, first_records
from transduce.app.tables.files import format_named_by
from transduce.app.tables.formats import split_ending
from transduce.app.tables.layout import LayoutRequest

HEAD = 2**18  # bytes of a text file in which its first rows are looked for
NO_HEADER = LayoutRequest(header=0, first=1)


def raw_rows(path: Path, sheet: str | None, n_rows: int) -> list[tuple[int, list[str]]]:
    """Return the first rows of a file, each with its number, which counts from 1.

    A ValueError if the file has no rows that could be other than they are, as of a database.
    """
    if format_named_by(path) in (CSV, TSV) and not split_ending(path)[1]:
        with path.open("rb") as file:
            content = file.read(HEAD)
        if len(content) == HEAD:
            content = content[: content.rfind(b"\n") + 1]
        return first_records(content, n_rows)
    table = files.read(path, sheet=sheet, layout=NO_HEADER)
    if table.lines is None:
        raise ValueError("The columns of this kind of file have their names in the file.")
    first = table.frame.head(n_rows)
    cells = [["" if pd.isna(cell) else str(cell) for cell in row] for row in first.to_numpy(object)]
    return [(int(line), row) for line, row in zip(table.lines, cells, strict=False)]
