"""Saving what rows that come later are answered from: the table and the options, and no code."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import parquet

from transduce.app.filling.engine import fit_fill
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource, draw
from transduce.app.tables.arrow_tables import arrow_table
from transduce.app.tables.formats import Table
from transduce.app.tables.nested import ObjectFields
from transduce.app.tables.pictures import file_below, holds_pictures, small_copies
from transduce.app.tables.vectors import to_pandas
from transduce.core.checks import check_path
from transduce.core.files import whole_file
from transduce.core.findings import Limits
from transduce.core.types import AnyArray, ColumnName, OptionValues
from transduce.model_selection.methods import METHODS
from transduce.model_selection.own_models import as_stored, of_stored

_FORMAT = 3
_TABLE = "table.parquet"
_OPTIONS = "options.json"


def save(
    path: str | Path,
    table: Any,
    target: ColumnName,
    *,
    force: bool = False,
    **options: Any,
) -> None:
    """Save a table and options, so that later rows can be answered as this table is filled.

    Parameters
    ----------
    path : str or Path
        A file; by custom its name ends in ``.transduce``.
    table : pandas or polars DataFrame, or Table
        Rows with and without a label. Those that a fit would see are kept, and no others.
    target : str
        The column.
    force : bool, default=False
        Whether an existing file may be replaced.
    **options
        As those of `fill`, and of `FillResult.with_options`.

    Notes
    -----
    The file holds data, and small copies of pictures, and no code: a file from a stranger can be
    opened.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> prices = [2.0 * n if n % 3 else None for n in range(200)]
    >>> table = pd.DataFrame({"size": range(200), "price": prices})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/prices.transduce", table, "price", method="ridge")
    ...     load(f"{folder}/prices.transduce").new_columns(table[:1])["price_status"].tolist()
    ['answered']
    """
    read = Options.read(options, questions=True)
    source = FrameSource.read(table, target, read)
    read = read.below(source.frame.columns, target)
    read.check_sampled()
    if not all(isinstance(name, str) for name in source.frame.columns):
        raise ValueError(
            "A table is saved with its columns' names as text: rename those that are not."
        )
    roles = draw(source.scan(target, read), target, read)
    rows = np.sort(np.concatenate([roles.visible, roles.calibration, roles.sampled])[:, 1])
    account = {
        "format": _FORMAT,
        "version": version("transduce"),
        "prefer": source.prefer,
        "target": target,
        "objects": source.fields.as_json(),
        "limits": asdict(source.labels.limits),
        "options": _options_as_json(source, read),
    }
    folder = read.pictures or source.pictures
    like = _origin(table, source.frame.iloc[rows], folder)
    with whole_file(path, force=force, like=like) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_OPTIONS, json.dumps(account, ensure_ascii=False, default=str))
        archive.writestr(_TABLE, _rows_as_parquet(source, rows, folder))


def _options_as_json(source: FrameSource, options: Options) -> OptionValues:
    """Return the options that fill the rows again, in a table without formulas."""
    settled = options.for_task(source.labels.task)
    if source.labels.decisive is not None:  # a task that is named would make the guarantee exact
        settled = replace(settled, task=options.task)
    ignore = list(dict.fromkeys([*settled.ignore, *source.computed]))
    method = options.parts
    if len(method) == 1:
        method = method[0]
    return replace(settled, ignore=ignore).as_json() | {"method": as_stored(method)}


def _rows_as_parquet(source: FrameSource, rows: AnyArray, folder: str) -> bytes:
    """Return some rows as a file, with classes as they are spelled and small pictures."""
    frame = source.frame.iloc[rows].copy()
    if source.labels.spelling.classes:
        frame[source.labels.name] = source.labels.labels[rows]
    for name, column in frame.items():
        if holds_pictures(column):
            frame[name] = small_copies(column, folder)
    buffer = io.BytesIO()
    parquet.write_table(arrow_table(frame), buffer)
    return buffer.getvalue()


def _origin(table: Any, frame: pd.DataFrame, folder: str) -> list[Path]:
    """Return the files that a saved fit is made of: that of the table, and those of pictures."""
    names = [
        cell
        for _, column in frame.items()
        if holds_pictures(column)
        for cell in column
        if isinstance(cell, str)
    ]
    pictures = [file_below(folder, name) for name in names]
    if isinstance(table, Table):
        files_of_table = table.files
    else:
        files_of_table = ()
    return [*files_of_table, *(path for path in pictures if isinstance(path, Path))]


def load(path: str | Path) -> FittedFill:
    """Fit again what was saved.

    Parameters
    ----------
    path : str or Path
        A file of `save`.

    Returns
    -------
    FittedFill
        As `fit_fill` returns it.

    Examples
    --------
    >>> load("nothing.transduce")
    Traceback (most recent call last):
    FileNotFoundError: There is no file nothing.transduce.
    """
    check_path("path", path)
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            account = json.loads(archive.read(_OPTIONS))
            frame = to_pandas(parquet.read_table(io.BytesIO(archive.read(_TABLE))))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        refusal = f"{path} is not a file that `transduce fill --save` wrote, or it is damaged."
        raise ValueError(refusal) from error
    if account.get("format") != _FORMAT:
        raise ValueError(
            f"{path} was written by transduce {account.get('version')}, in a format that is not "
            "known here."
        )
    method = of_stored(account["options"]["method"])
    for part in method if isinstance(method, list) else [method]:
        if isinstance(part, str) and part not in METHODS:  # nothing is imported that a file names
            raise ValueError(f"{path} names the method {part!r}, which is not known here.")
    options = Options.of_json(account["options"] | {"method": method}).as_dict()
    limits = Limits(**account["limits"])
    fields = ObjectFields.of_json(account.get("objects", {}))
    fitted = fit_fill(frame, account["target"], prefer=account["prefer"], limits=limits, **options)
    return replace(fitted, fields=fields)
