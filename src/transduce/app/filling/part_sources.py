"""Tables in parts, and what is done in each where it is: it is read, drawn from and filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from transduce.app.filling.options import Options
from transduce.app.filling.runners import Work
from transduce.app.filling.sources import FrameSource, TableOrigin, scan_rows
from transduce.app.tables import columns
from transduce.app.tables.columns import ColumnReading, missing_labels, read_target
from transduce.app.tables.decimal_signs import sign_of_frame
from transduce.app.tables.nested import ObjectFields
from transduce.app.tables.new_columns import check_names
from transduce.app.tables.row_draws import PartScan, RowDraw
from transduce.app.tables.row_names import RowNames
from transduce.core.types import AnyArray, ColumnName

if TYPE_CHECKING:
    from transduce.app.filling.later_rows import FittedFill

MOST_FRAMES = 10**9  # all frames of a part
# Rows of a part that the fit saw, and their new columns.
SampledColumns = tuple[AnyArray, pd.DataFrame]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSource(TableOrigin):
    """A table in parts, each of one or more frames that are read where the work is done."""

    parts: Sequence[Any]
    fields: ObjectFields = field(default_factory=ObjectFields)  # of objects, which are columns here

    def check_questions(self, before: Options, asked: Options) -> None:
        """Refuse what no part of the table can be asked alone."""
        asked.check_sampled()

    def each(
        self,
        doing: str,
        work: Work,
        items: Sequence[Any],
    ) -> list[Any]:
        """Return ``work(item, frames)`` for every part, in order; None where the item is None."""
        raise NotImplementedError

    @property
    def stored_columns(self) -> list[ColumnName]:
        """The columns of the table as it is stored."""
        raise NotImplementedError

    @property
    def columns(self) -> list[ColumnName]:
        """The columns of the table, fields of objects among them."""
        return self.fields.all_names(self.stored_columns)

    def divided(self) -> Self:
        """Return the same parts, with the fields of objects as columns."""
        n_parts = len(self.parts)
        of_first, *_ = self.each("looking", _find_fields, [1, *[None] * (n_parts - 1)])
        if not of_first.paths:
            return self
        of_parts = self.each("looking", _find_fields, [MOST_FRAMES] * n_parts)
        return replace(self, fields=ObjectFields.of_parts(of_parts, self.stored_columns))

    def add_columns(self, columns: PartColumns, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""
        raise NotImplementedError

    def reopen(self, work: Path) -> PartSource:
        """Return the same parts, readable after the table was filled; `work` is an empty folder."""
        return self

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row of a part, both counted from 0."""
        return f"partition {part + 1}, row {row + 1}"

    def names_of_sample(self, roles: RowDraw) -> RowNames:
        """Return what messages call the rows that the fit sees."""
        places = roles.seen
        return RowNames(names=lambda row: self.name_row(*places[row].tolist()))

    def scan(self, target: ColumnName, options: Options) -> list[PartScan]:
        """Return what a draw needs to know of each part."""
        return self.each("reading", _scan_frames, [(target, options, self.words)] * len(self.parts))

    def take(
        self, roles: RowDraw, target: ColumnName, options: Options
    ) -> tuple[FrameSource, FrameSource]:
        """Return the rows that the fit sees and those kept from it, in the order of the draw."""
        drawn = np.concatenate([roles.visible, roles.sampled, roles.calibration])
        by_part = []
        for number in range(len(self.parts)):
            rows_of_part = drawn[drawn[:, 0] == number, 1]
            by_part.append(np.sort(rows_of_part))
        frames = self.each("sample", _take_rows, [rows if len(rows) else None for rows in by_part])
        all_rows = pd.concat([frame for frame in frames if frame is not None], ignore_index=True)
        # Parts and their rows came in order.
        places = np.argsort(np.lexsort((drawn[:, 1], drawn[:, 0])))
        frame = all_rows.iloc[places].reset_index(drop=True)
        cleaned = options.clean(frame).copy()
        of_parts = [part[target] for part in frames if part is not None]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in of_parts):
            # Categories that differ by part were lost.
            cleaned[target] = cleaned[target].astype("category")
        missing = missing_labels(cleaned[target], words=self.words)
        cleaned[target] = cleaned[target].mask(missing, None)
        prefer = sign_of_frame(frame, self.prefer)
        labels = read_target(
            cleaned,
            target,
            cells=ColumnReading(prefer=prefer),
            **options.reading_of(target),
        )
        columns.check_marks(labels)  # the rows with and without a label were drawn already
        check_names(frame, labels, **options.new_columns)
        n = len(drawn) - len(roles.calibration)
        rows = FrameSource(
            frame, frame, labels, prefer=prefer, pictures=self.pictures, fields=self.fields
        )
        held = rows.at(np.arange(n, len(drawn)))
        return rows.at(np.arange(n)), replace(held, frame=held.frame.reset_index(drop=True))


def _find_fields(n_frames: int, frames: Iterable[pd.DataFrame]) -> ObjectFields:
    """Return the fields of objects in the first frames of a part."""
    found = [ObjectFields.of(frame) for frame in islice(frames, n_frames)]
    names = [name for fields in found for name in fields.paths]
    return ObjectFields.of_parts(found, names)


def _with_fields(
    about: tuple[Work, ObjectFields], item: Any, frames: Iterable[pd.DataFrame]
) -> Any:
    """Do some work on frames in which fields of objects are columns."""
    work, fields = about
    return work(item, map(fields.divide, frames))


def _scan_frames(about: tuple[Any, Options, bool], frames: Iterable[pd.DataFrame]) -> PartScan:
    """Return what a draw needs to know of a part."""
    target, options, words = about
    # Freed at once: Linux then keeps what smaller arrays free, and takes half the time.
    np.empty(2**21)
    # Of a part without rows.
    scans = [PartScan(np.empty(0, dtype=bool), np.empty(0, dtype=np.uint64))]
    for frame in frames:
        cleaned = options.clean(frame)
        scans.append(
            scan_rows(cleaned, missing_labels(cleaned[target], words=words), target, options)
        )
    drawn = [scan.drawn for scan in scans if scan.drawn is not None]
    return PartScan(
        np.concatenate([scan.missing for scan in scans]),
        np.concatenate([scan.hashes for scan in scans]),
        np.concatenate(drawn) if drawn else None,
        sum((Counter(scan.limits) for scan in scans), Counter()),
        cells=list({cell for scan in scans for cell in scan.cells}),
    )


def _take_rows(rows: AnyArray, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return some rows of a part."""
    taken = []
    start = 0
    for frame in frames:
        taken.append(frame.iloc[rows[(rows >= start) & (rows < start + len(frame))] - start])
        start += len(frame)
    return pd.concat(taken, ignore_index=True)


@dataclass(frozen=True, eq=False)
class PartColumns:
    """What makes the new columns of each part of a table."""

    fitted: FittedFill  # answers rows that the fit did not see
    sampled: dict[int, SampledColumns]  # of each part, the rows that the fit saw


def sampled_columns(new: pd.DataFrame, roles: RowDraw) -> dict[int, SampledColumns]:
    """Return the new columns of the sampled rows of each part, as the fit answered them."""
    new = new.iloc[len(roles.visible) :].reset_index(drop=True)
    part_of_row = roles.sampled[:, 0]
    parts = {n: np.flatnonzero(part_of_row == n) for n in np.unique(part_of_row).tolist()}
    return {n: (roles.sampled[rows, 1], new.iloc[rows]) for n, rows in parts.items()}


def columns_of_part(
    fitted: FittedFill, frame: pd.DataFrame, sampled: SampledColumns | None
) -> pd.DataFrame:
    """Return the new columns of a part.

    Sampled rows stay as the fit answered them, all others are answered one by one.
    """
    new = fitted.new_columns(frame)
    if sampled is not None:
        rows, seen = sampled
        for name in new.columns:
            column = new[name].array.copy()
            column[rows] = seen[name].astype(new[name].dtype).array
            new[name] = column
    return new


def is_dask(table: Any) -> bool:
    """Return whether this is a Dask frame."""
    return type(table).__module__.startswith(("dask.", "dask_expr.")) and hasattr(
        table, "map_partitions"
    )


@dataclass(frozen=True, eq=False)
class DaskSource(PartSource):
    """A Dask frame, partition by partition; its answers are computed when its frame is."""

    given: Any

    @property
    def stored_columns(self) -> list[ColumnName]:
        """The columns of the frame as it was given."""
        return list(self.given.columns)

    def each(
        self,
        doing: str,
        work: Work,
        items: Sequence[Any],
    ) -> list[Any]:
        """Return ``work(item, [partition])`` for every partition, in order.

        It is None where the item is None.
        """
        from dask import compute, delayed

        pairs = zip(items, self.parts, strict=True)
        divided_work = partial(_with_fields, (work, self.fields))
        tasks = [delayed(divided_work)(item, [part]) for item, part in pairs if item is not None]
        done = iter(compute(*tasks))
        return [None if item is None else next(done) for item in items]

    def add_columns(self, columns: PartColumns, table: Any = None) -> Any:
        """Return a lazy frame with new columns after its own.

        It may have new columns already.
        """
        import dask.dataframe as dd
        from dask import delayed

        if table is None:
            table = self.given
        meta = _with_columns(columns.fitted, None, table._meta)
        fitted = _sent(columns.fitted)
        tasks = [
            delayed(_with_columns)(fitted, columns.sampled.get(number), part)
            for number, part in enumerate(table.to_delayed())
        ]
        return dd.from_delayed(tasks, meta=meta, divisions=self.given.divisions, verify_meta=False)


def _with_columns(fitted: Any, sampled: SampledColumns | None, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a partition with its new columns."""
    return pd.concat([frame, columns_of_part(fitted, frame, sampled)], axis=1)


def _sent(shared: Any) -> Any:
    """Return what stands for an object on the workers.

    It is sent to a running cluster now, else it is a part of the graph.
    """
    from dask import delayed

    try:
        from distributed import get_client

        return get_client().scatter(shared, broadcast=True, hash=False)
    except (ImportError, ValueError):  # there is no cluster
        return delayed(shared, pure=False)
