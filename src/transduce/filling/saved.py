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

from transduce.core.guarantee import Limits
from transduce.core.safe_files import whole_file
from transduce.filling.engine import draw, fit_fill
from transduce.filling.fitted import FittedFill
from transduce.filling.options import Options
from transduce.filling.sources import FrameSource
from transduce.model_selection.methods import METHODS
from transduce.model_selection.own_models import as_stored, of_stored
from transduce.tables.pictures import PictureCells, holds_pictures
from transduce.tables.vectors import to_pandas

_FORMAT = 3
_TABLE, _OPTIONS = "table.parquet", "options.json"


def save(path: str | Path, table: Any, target: Any, *, force: bool = False, **options: Any) -> None:
    """Save a table and options, so that rows which come later can be answered as this table is filled.

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
        As those of `fill`, and of `FillResult.ask`.

    Notes
    -----
    The file is a zip archive of the rows, as Parquet, and the options, as JSON: nothing in it is code, so that a file
    from a stranger can be opened. It holds data, and small copies of pictures: treat it as you treat the table. `load`
    fits again, with the same result.

    Examples
    --------
    >>> import tempfile
    >>> size = np.arange(200.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "prices.transduce", table, "price", method="ridge")
    ...     model = load(Path(folder) / "prices.transduce")
    >>> model.new_columns(pd.DataFrame({"size": [12.5]}))["price_filled"].round().tolist()
    [25.0]
    """
    read = Options.read(options, questions=True)
    source = FrameSource.read(table, target, read)
    read.check_sampled()
    if not all(isinstance(name, str) for name in source.frame.columns):
        raise ValueError("A table is saved with its columns' names as text: rename those that are not.")
    roles = draw(source.scan(target, read), target, read)
    rows = np.sort(np.concatenate([roles.visible, roles.calibration, roles.sampled])[:, 1])
    about = {"format": _FORMAT, "version": version("transduce"), "prefer": source.prefer, "target": target}
    about["limits"] = asdict(source.labels.limits)
    method = read.parts if len(read.parts) > 1 else read.parts[0]
    settled = read.for_task(source.labels.task)
    if source.labels.decisive is not None:  # a task that is named would make the guarantee exact
        settled = replace(settled, task=read.task)
    about["options"] = settled.as_json() | {"method": as_stored(method)}
    with whole_file(path, force=force) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_OPTIONS, json.dumps(about, ensure_ascii=False, default=str))
        frame = source.frame.iloc[rows]
        if source.labels.spelling.classes:  # as they are written
            frame = frame.assign(**{target: source.labels.labels[rows]})
        archive.writestr(_TABLE, _parquet(_with_copies(frame, read.pictures or source.pictures)))


def _with_copies(frame: pd.DataFrame, folder: str) -> pd.DataFrame:
    """Return a table with small copies of its pictures in place of the names of their files."""
    columns = [name for name in frame.columns if holds_pictures(frame[name])]
    return frame.assign(**{name: PictureCells(folder).copies(frame[name]) for name in columns})


def _parquet(frame: pd.DataFrame) -> bytes:
    """Return a table as Parquet; columns of several types become text."""
    import pyarrow as pa

    frame, buffer = frame.reset_index(drop=True), io.BytesIO()
    columns = {}
    for name in frame.columns:
        try:
            pa.array(frame[name], from_pandas=True)
            columns[str(name)] = frame[name]
        except (pa.ArrowException, TypeError, ValueError):
            columns[str(name)] = frame[name].astype(object).map(str, "ignore")
    pd.DataFrame(columns).to_parquet(buffer, index=False)
    return buffer.getvalue()


def load(path: str | Path) -> FittedFill:
    """Fit again what was saved.

    Parameters
    ----------
    path : str or Path
        A file of `save`.

    Returns
    -------
    FittedFill
        ``new_columns(rows)`` gives the new columns of later rows; ``guarantee_of_later(n)`` says what holds for n of
        them.

    Examples
    --------
    See `save`.

    >>> load("nothing.transduce")
    Traceback (most recent call last):
    FileNotFoundError: There is no file nothing.transduce.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_OPTIONS))
            frame = to_pandas(parquet.read_table(io.BytesIO(archive.read(_TABLE))))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a file that `transduce fill --save` wrote, or it is damaged."
        ) from error
    if about.get("format") != _FORMAT:
        raise ValueError(
            f"{path} was written by transduce {about.get('version')}, in a format that is not known here."
        )
    method = of_stored(about["options"]["method"])
    for part in method if isinstance(method, list) else [method]:
        if isinstance(part, str) and part not in METHODS:  # nothing is imported that a file names
            raise ValueError(f"{path} names the method {part!r}, which is not known here.")
    options = vars(Options.of_json(about["options"] | {"method": method}))
    limits = Limits(**about["limits"])
    return fit_fill(frame, about["target"], prefer=about["prefer"], limits=limits, **options)
