"""Filling a Dask frame: two passes over its partitions and a fit now, the answers when they are wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.computing import stage
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray
from transduce.filling.fitted import FittedFill
from transduce.filling.large import SampleFit, at, draw, fit_sample, join_answers, scan
from transduce.filling.settings import FillSettings
from transduce.filling.sources import DaskParts
from transduce.tables.columns import check_names
from transduce.tables.delimited import ColumnCells
from transduce.tables.draws import PartScan, RowDraw
from transduce.tables.labels import Target, check_columns, missing_labels, read_target
from transduce.tables.numbers import without


@dataclass(frozen=True, eq=False)
class Gathered:
    """The rows of a draw, gathered from all parts, in the order of the draw, with their labels."""

    inside: pd.DataFrame  # the rows that the fit sees, and those that are kept from it
    calibration: pd.DataFrame  # the rows that the fit sees, and those that are kept from it
    labels: tuple[Target, Target]


def scan_frame(settings: FillSettings, frame: pd.DataFrame, *, words: bool = False) -> PartScan:
    """Return what a draw needs to know of a part; with `words`, texts such as NA stand for a missing label."""
    known = without(frame, settings.missing)
    return scan(known, missing_labels(known[settings.target], words=words), settings)


def rows_wanted(roles: RowDraw, n_parts: int) -> list[AnyArray | None]:
    """Return which rows of each part take part in the fit or calibrate it; None where none do."""
    every = np.concatenate([roles.visible, roles.sampled, roles.calibration])
    wanted: list[AnyArray | None] = []
    for number in range(n_parts):
        rows = np.sort(every[every[:, 0] == number, 1])
        wanted.append(rows if len(rows) else None)
    return wanted


def take_rows(rows: AnyArray, frame: pd.DataFrame) -> pd.DataFrame:
    """Return some rows of a part."""
    return frame.iloc[rows]


def gather(
    parts: list[pd.DataFrame | None],
    wanted: list[AnyArray | None],
    roles: RowDraw,
    settings: FillSettings,
    *,
    prefer: str = "point",
    words: bool = False,
) -> tuple[Gathered, FillSettings]:
    """Return the rows of a draw with their labels, and the settings for their task."""
    pairs = [
        (frame, rows)
        for frame, rows in zip(parts, wanted, strict=True)
        if frame is not None and rows is not None
    ]
    every = pd.concat([frame for frame, _ in pairs], ignore_index=True)
    numbers = [number for number, rows in enumerate(wanted) if rows is not None]
    keys = [(number, row) for number, (_, rows) in zip(numbers, pairs, strict=True) for row in rows.tolist()]
    place = {key: position for position, key in enumerate(keys)}

    def positions(places: AnyArray) -> AnyArray:
        return np.array([place[(part, row)] for part, row in places.tolist()], dtype=int)

    inside = np.concatenate([positions(roles.visible), positions(roles.sampled)])
    held = positions(roles.calibration)
    frame = every.iloc[np.concatenate([inside, held])].reset_index(drop=True)
    known = without(frame, settings.missing)
    gone, known = missing_labels(known[settings.target], words=words), known.copy()
    known[settings.target] = known[settings.target].mask(gone, None)
    cells = ColumnCells(prefer=prefer)
    target = read_target(known, settings.target, task=settings.task, cells=cells)
    check_names(frame, target, settings.probabilities)
    n = len(inside)
    rows = np.arange(len(frame))
    labels = at(target, rows[:n]), at(target, rows[n:])
    found = Gathered(frame.iloc[:n], frame.iloc[n:].reset_index(drop=True), labels)
    return found, settings.for_task(target.task)


def fit_parts(
    gathered: Gathered, roles: RowDraw, settings: FillSettings, *, prefer: str = "point", words: bool = False
) -> tuple[SampleFit, dict[int, tuple[AnyArray, pd.DataFrame]]]:
    """Fit to the gathered rows; return the fit, and the new columns of the sampled rows of each part."""
    n_outside = roles.n_unlabelled - len(roles.sampled)
    found = fit_sample(
        gathered.inside, gathered.calibration, gathered.labels, settings, n_outside=n_outside, prefer=prefer
    )
    fitted = replace(found.fitted, reading=replace(found.fitted.reading, words=words))
    found = replace(found, fitted=fitted)
    answer = join_answers(
        [found.result.answer, fitted.answers(gathered.inside[:0])], by_class=settings.label_conditional
    )
    new = fitted.columns(gathered.labels[0], answer, found.result.frame.index)
    new = new.iloc[len(roles.visible) :].reset_index(drop=True)
    by_part = {}
    for number in np.unique(roles.sampled[:, 0]).tolist():
        mine = np.flatnonzero(roles.sampled[:, 0] == number)
        by_part[number] = (roles.sampled[mine, 1], new.iloc[mine])
    return found, by_part


def answer_rows(
    fitted: FittedFill, frame: pd.DataFrame, sampled: tuple[AnyArray, pd.DataFrame] | None
) -> pd.DataFrame:
    """Return the new columns of a part: the sampled rows as the fit answered them, all others one by one."""
    new = fitted.answer(frame)
    if sampled is not None:
        rows, given = sampled
        for name in new.columns:
            column = new[name].array.copy()
            column[rows] = given[name].astype(new[name].dtype).array
            new[name] = column
    return new


@dataclass(frozen=True, eq=False)
class LazyFill:
    """A Dask frame that is filled when it is computed.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        With the new columns after its own.
    sample : SampleFit
        The filled sample, and what answers all other rows; ``sample.result`` has its report.
    guarantee : Guarantee
        Of all answers together.

    Examples
    --------
    See `fill_lazily`.

    >>> LazyFill.__dataclass_fields__.keys() >= {"frame", "sample", "guarantee"}
    True
    """

    frame: Any
    sample: SampleFit
    guarantee: Guarantee


def _answered(
    fitted: FittedFill, sampled: tuple[AnyArray, pd.DataFrame] | None, frame: pd.DataFrame
) -> pd.DataFrame:
    """Return a partition with its new columns."""
    return pd.concat([frame, answer_rows(fitted, frame, sampled)], axis=1)


def fill_lazily(table: Any, target: Any, **settings: Any) -> LazyFill:
    """Fill a Dask frame: two passes over its partitions and a fit now, the answers when they are computed.

    Parameters
    ----------
    table : dask.dataframe.DataFrame
    target : str
        The column to fill.
    **settings
        As those of `fill`.

    Returns
    -------
    LazyFill

    Notes
    -----
    Which rows the fit sees depends on what is in them, on the seed, and on nothing else: partitions, their order and
    the number of workers change no answer.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> size = np.arange(300.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> found = fill_lazily(dd.from_pandas(table, npartitions=3), "price", method="ridge")
    >>> found.guarantee.outside.of
    100
    >>> found.frame.compute()["price_filled"].round().tolist()[:4]
    [0.0, 2.0, 4.0, 6.0]
    """
    return fill_partitions(table, FillSettings.read(target, settings))


def fill_partitions(table: Any, settings: FillSettings) -> LazyFill:
    """Fill a Dask frame, with settings that were read."""
    parts = DaskParts(table)
    settings.check_sampled()
    check_columns(pd.DataFrame(columns=parts.columns), settings.named)
    with stage("reading"):
        scans = parts.each(scan_frame, [settings] * parts.n_parts)
    roles = draw(scans, settings)
    wanted = rows_wanted(roles, parts.n_parts)
    with stage("sample"):
        gathered, settings = gather(parts.each(take_rows, wanted), wanted, roles, settings)
    found, sampled = fit_parts(gathered, roles, settings)
    items = [sampled.get(number) for number in range(parts.n_parts)]
    lazy = parts.beside(_answered, found.fitted, items)
    return LazyFill(lazy, found, found.guarantee(roles.n_unlabelled - len(roles.sampled)))
