"""Where the rows of a table are, which of them are drawn, and where parts are worked on.

They are in a frame, a Dask frame or files.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd

from transduce.app.filling.options import Options
from transduce.app.tables import columns
from transduce.app.tables.columns import (
    ColumnReading,
    Target,
    check_names,
    missing_labels,
    read_target,
)
from transduce.app.tables.decimal_signs import sign_of_frame
from transduce.app.tables.formats import Table
from transduce.app.tables.nested import ObjectFields, divide_objects, refuse_objects
from transduce.app.tables.notes import About, Note, notes_about
from transduce.app.tables.row_draws import PartScan, RowDraw, draw_roles
from transduce.app.tables.row_hashes import content_order, labelled_hashes, row_hashes
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.app.tables.vectors import to_pandas
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.conformal.designs import most_calibration
from transduce.core import checks
from transduce.core.checks import WrongTypeError
from transduce.core.computing import call_each, n_threads, threads_here
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, ColumnName, JsonObject, Mask
from transduce.core.words import quoted
from transduce.population.draws import read_marks

if TYPE_CHECKING:
    from transduce.app.filling.later_rows import FittedFill

MOST_LABELS = 50_000  # more are not fitted to
MOST_FRAMES = 10**9  # all frames of a part
Work = Callable[[Any, Any], Any]
SampledColumns = tuple[
    AnyArray, pd.DataFrame
]  # rows of a part that the fit saw, and their new columns


@dataclass(frozen=True, eq=False, kw_only=True)
class _Source:
    """What is known of a table, wherever its rows are."""

    name: str = ""  # where it came from, if that is known
    flags: JsonObject = field(default_factory=dict)  # of the command line, to read it again
    prefer: str = "point"  # the decimal sign of numbers in text, in case of doubt
    words: bool = False  # whether texts such as NA stand for a missing label
    pictures: str = "."  # the folder below which pictures are

    @property
    def origin(self) -> tuple[Path, ...]:
        """The files that the rows came from, if they came from any.

        What is made of them is as private as they are.
        """
        if self.name and Path(self.name).is_file():
            return (Path(self.name),)
        return ()

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row of a part, both counted from 0."""
        return f"row {row + 1}"

    def check_questions(self, before: Options, asked: Options) -> None:
        """Refuse what a result of this table cannot answer, and say what to do instead."""


@dataclass(frozen=True, eq=False)
class FrameSource(_Source):
    """A table in memory: one part, whose labels are all known."""

    given: Any  # as it came: a pandas or polars frame
    frame: pd.DataFrame
    labels: Target
    computed: tuple[Any, ...] = ()  # columns that formulas of a workbook compute from the target
    further_notes: tuple[Note, ...] = ()  # on the file, and on what was found beside the labels
    lines: Sequence[int] | None = None  # of the file, on which each row begins
    fields: ObjectFields = field(default_factory=ObjectFields)  # of objects, which are columns here

    @classmethod
    def read(cls, table: Any, target: ColumnName, options: Options) -> FrameSource:
        """Return a frame, or a table read from a file, with its labels."""
        given = table
        if isinstance(table, Table):
            named = options.columns(target)
            index = [name for name in table.index if name not in named]
            given = table.stored_frame.drop(columns=index)
            frame = table.frame.drop(columns=index)
            fields = table.fields
            table.check_column(target)
        else:
            frame = table if isinstance(table, pd.DataFrame) else as_pandas(table)
            frame, fields = divide_objects(frame)
        names = options.below(frame.columns, target).columns(target)
        cleaned = options.clean(frame)
        columns.check_columns(frame, names)
        refuse_objects(frame.columns, [target, *options.predicted])
        if isinstance(table, Table):
            cells = table.column_reading(target)
        else:
            cells = ColumnReading(prefer=sign_of_frame(frame))
        lines = table.lines if isinstance(table, Table) else None
        with naming_rows(RowNames.of_lines(lines)):
            labels = read_target(cleaned, target, cells=cells, **options.reading_of(target))
        check_names(frame, labels, **options.new_columns)
        if not isinstance(table, Table):
            return cls(given, frame, labels, prefer=cells.prefer, fields=fields)
        account: JsonObject = {
            "further_notes": tuple(notes_about(About.FILE, table.notes)),
            "name": table.name,
            "prefer": table.prefer,
            "pictures": table.folder,
            "computed": tuple(table.computed_from(target)),
            "lines": lines,
        }
        return cls(
            given,
            frame,
            labels,
            flags=table.flags,
            fields=fields,
            **account,
        )

    @property
    def notes(self) -> list[Note]:
        """What the user should know of how the table was read."""
        of_labels = notes_about(About.LABELS, self.labels.notes, self.labels.name)
        return [*of_labels, *self.further_notes]

    def scan(self, target: ColumnName, options: Options) -> list[PartScan]:
        """Return what a draw needs to know of the table."""
        return [scan_rows(options.clean(self.frame), self.labels.missing, target, options)]

    def at(self, rows: AnyArray) -> FrameSource:
        """Return some of the rows."""
        labels = self.labels.at(rows)
        return replace(self, frame=self.frame.iloc[rows], labels=labels, lines=None)

    def order_by_content(self, options: Options) -> AnyArray:
        """Return the order in which a fit sees the rows: by content, not by place."""
        # Without the seed, so that a fit in which no seed has part is the same to the last digit
        # for every seed. Columns from which nothing is learned tell rows apart that are copies
        # otherwise, such as visits of two patients; beyond that they do not count, so that answers
        # do not change with them.
        frame = options.clean(self.frame)
        design = [name for name in options.design.not_features if name not in options.ignore]
        hashes = row_hashes(frame[self.feature_names(options)])
        hashes = labelled_hashes(hashes, frame[self.labels.name], self.labels.missing)
        return content_order(hashes, ties=row_hashes(frame[design]))

    def feature_names(self, options: Options) -> list[ColumnName]:
        """Return the columns from which something is learned, as far as the options say."""
        no_feature = {self.labels.name, options.id, *options.ignore, *options.design.not_features}
        return [name for name in self.frame.columns if name not in no_feature]

    def take(
        self, roles: RowDraw, target: ColumnName, options: Options
    ) -> tuple[FrameSource, FrameSource]:
        """Return the rows that the fit sees and those kept from it, in the order of the draw."""
        return self.at(roles.seen[:, 1]), self.at(roles.calibration[:, 1])

    @property
    def row_names(self) -> RowNames:
        """What messages call the rows: lines of the file, or rows counted from 1."""
        return RowNames.of_lines(self.lines)

    def names_of_sample(self, roles: RowDraw) -> RowNames:
        """Return what messages call the rows that the fit sees."""
        return self.row_names.at(roles.seen[:, 1])

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row, counted from 0."""
        return self.row_names.name([row])

    def add_columns(self, new: pd.DataFrame, table: Any = None) -> Any:
        """Return the table, which may have new columns already, with new columns after its own."""
        if table is None:
            table = self.given
        if not isinstance(table, pd.DataFrame):
            return with_new_columns(table, new, self.labels.name)
        if isinstance(table.columns, pd.MultiIndex):
            new = new.set_axis(_names_in_levels(new.columns, self.labels.name), axis=1)
        return pd.concat([table, new], axis=1)


def _names_in_levels(names: pd.Index, target: Any) -> pd.MultiIndex:
    """Return names of new columns in the levels of the target's name, its last one extended."""
    *levels, last = target  # a tuple
    endings = [str(name).removeprefix(str(target)) for name in names]
    return pd.MultiIndex.from_tuples([(*levels, f"{last}{ending}") for ending in endings])


def with_new_columns(table: Any, new: pd.DataFrame, target: ColumnName = None) -> Any:
    """Return a polars frame with new columns after its own.

    Dates and enumerations have the type of the target.
    """
    import polars

    columns = polars.from_pandas(new.reset_index(drop=True))
    kind = table.schema.get(target)
    if kind is not None and kind.is_temporal():
        columns = columns.with_columns(polars.selectors.temporal().cast(kind))
    if isinstance(kind, polars.Enum):
        columns = columns.with_columns(polars.col(f"{target}_filled").cast(kind))
    return table.hstack(columns)


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a polars frame as pandas, or raise a TypeError if it is not one."""
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise WrongTypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        lists = [name for name, kind in table.schema.items() if kind.is_nested()]
        plain = table.drop(lists)
        frame = with_all_digits(pd.DataFrame(plain.to_pandas()), partial(_integers_of, plain))
        for name, column in to_pandas(table.select(lists).to_arrow()).items():
            frame.insert(table.columns.index(name), name, column)
        return frame
    kind = type(table).__name__
    raise WrongTypeError(
        f"fill takes a pandas or polars frame; got {kind}. Files are filled by `transduce fill`."
    )


def find_target(table: Any, options: Options) -> ColumnName:
    """Return the column to fill of a table: the only one with empty cells and with full ones."""
    if is_dask(table):
        raise TypeError("Name the column to fill: the cells of a Dask frame are not looked at.")
    if isinstance(table, Table):
        frame = table.frame
    elif isinstance(table, pd.DataFrame):
        frame = table
    else:
        frame = as_pandas(table)
    columns.check_columns(frame, [])
    cleaned = options.clean(frame)
    partly_empty = []
    for name in cleaned.columns:
        missing = missing_labels(cleaned[name], words=isinstance(table, Table))
        if name not in options.ignore and missing.any() and not missing.all():
            partly_empty.append(name)
    if not partly_empty:
        raise ValueError(
            "No column has empty cells beside full ones, so that there is none to fill."
        )
    if len(partly_empty) > 1:
        raise ValueError(
            f"Several columns have empty cells, {quoted(partly_empty)}: name the one to fill as "
            "target."
        )
    return partly_empty[0]


def _integers_of(table: Any, place: int) -> list[Any] | None:
    """Return the cells of a column of a polars frame, None if they are no whole numbers."""
    column = table.to_series(place)
    if column.dtype.is_integer():
        return column.to_list()
    return None


def scan_rows(
    frame: pd.DataFrame,
    missing: Mask,
    target: ColumnName,
    options: Options,
) -> PartScan:
    """Return what a draw needs to know of some rows; the label counts where there is one."""
    marks = options.design.marks
    drawn = None
    if marks is not None:
        drawn = read_marks(frame, marks)
    seen = [name for name in frame.columns if name != target and name not in options.ignore]
    hashes = row_hashes(frame[seen], options.random_state)
    hashes = labelled_hashes(hashes, frame[target], missing)
    return PartScan(
        missing,
        hashes,
        drawn,
        limits=columns.limit_texts(frame[target]),
        cells=columns.extreme_cells(frame[target], missing),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSource(_Source):
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
        places = np.argsort(
            np.lexsort((drawn[:, 1], drawn[:, 0]))
        )  # parts and their rows came in order
        frame = all_rows.iloc[places].reset_index(drop=True)
        cleaned = options.clean(frame).copy()
        if all(
            isinstance(part[target].dtype, pd.CategoricalDtype)
            for part in frames
            if part is not None
        ):
            cleaned[target] = cleaned[target].astype(
                "category"
            )  # categories that differ by part were lost
        cleaned[target] = cleaned[target].mask(
            missing_labels(cleaned[target], words=self.words), None
        )
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


class Source(Protocol):
    """A table, wherever its rows are, of which a sample can be drawn."""

    @property
    def words(self) -> bool:
        """Whether texts such as NA stand for a missing label."""

    def scan(self, target: ColumnName, options: Options) -> list[PartScan]:
        """Return what a draw needs to know of each part."""

    def take(
        self, roles: RowDraw, target: ColumnName, options: Options
    ) -> tuple[FrameSource, FrameSource]:
        """Return the rows that the fit sees, and those that are kept from it."""

    def names_of_sample(self, roles: RowDraw) -> RowNames:
        """Return what messages call the rows that the fit sees."""


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
    np.empty(
        2**21
    )  # freed at once: Linux then keeps what smaller arrays free, and takes half the time
    scans = [
        PartScan(np.empty(0, dtype=bool), np.empty(0, dtype=np.uint64))
    ]  # of a part without rows
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


@dataclass(frozen=True)
class LocalRunner:
    """The cores of this machine, through joblib.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Processes at the same time, as joblib counts them, started only if they save time; None is
        1.

    Examples
    --------
    >>> sorted(LocalRunner().map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        checks.check_jobs(self.n_jobs)

    @property
    def n_here(self) -> int:
        """How many processes share the memory of this machine."""
        return n_threads(self.n_jobs or 1)

    def map(
        self,
        work: Work,
        shared: Any,
        items: Sequence[Any],
    ) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, in order; in other processes if they pay."""
        return call_each([(work, shared, item) for item in items], threads_here(), self.n_jobs or 1)


@dataclass(frozen=True)
class DaskRunner:
    """The workers of a Dask cluster.

    One that dies costs the time of its parts, which others do again.
    """

    client: Any

    @property
    def n_here(self) -> int:
        """How many workers of the cluster share the memory of this machine."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(_is_here(str(worker.get("host", ""))) for worker in workers))

    def map(
        self,
        work: Work,
        shared: Any,
        items: Sequence[Any],
    ) -> Iterator[Any]:
        """Yield ``work(shared, item)`` for every item, as soon as it is there.

        `shared` travels once.
        """
        from distributed import as_completed

        sent = self.client.submit(
            lambda: shared, pure=False
        )  # made again if the worker that holds it dies
        futures = [self.client.submit(work, sent, item, pure=False) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
                future.release()
        finally:
            self.client.cancel(futures)


def _is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    from distributed.utils import get_ip

    names = {"localhost", "", "::1", socket.gethostname(), socket.getfqdn(), get_ip()}
    return host in names or host.startswith("127.")


Runner = LocalRunner | DaskRunner  # each with `n_here`, and with `map`


LONGEST_WAIT = 86_400.0  # seconds for a scheduler to answer: a day


@contextmanager
def cluster_runner(
    address: str, *, n_workers: int | None = None, timeout: float = 10.0
) -> Iterator[DaskRunner]:
    """Connect to a Dask cluster, or start one on this machine.

    Parameters
    ----------
    address : str
        ``"local"`` starts a cluster of worker processes here, which ends with the block; otherwise
        the address of a scheduler, such as ``tcp://scheduler:8786``.
    n_workers : int, optional
        Workers of a local cluster; one for each core by default.
    timeout : float, default=10.0
        Seconds to wait for a scheduler to answer, and for its first worker.

    Yields
    ------
    DaskRunner
        For `fill_folder`.

    Examples
    --------
    >>> from transduce.app.filling import fill_folder
    >>> with cluster_runner("local", n_workers=2) as runner:  # doctest: +SKIP
    ...     fill_folder("data/*.parquet", "price", "filled", runner=runner)
    """
    checks.check_positive("timeout", timeout, most=LONGEST_WAIT)
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ValueError("A cluster needs Dask: pip install 'transduce[dask]'.") from error
    if address == "local":
        here = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
        with here as cluster, Client(cluster) as client:
            yield DaskRunner(client)
        return
    try:
        client = Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        refusal = f"No Dask scheduler answers at {address}: check the address and that it runs."
        raise ConnectionError(refusal) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ConnectionError(
                f"The Dask scheduler at {address} has no workers: start some, then run this again."
            ) from error
        yield DaskRunner(client)


# ---- random draws of rows by what is in them


def draw(scans: list[PartScan], target: ColumnName, options: Options) -> RowDraw:
    """Draw the rows that the fit sees, and the labelled rows that calibrate all others.

    The latter are kept from the fit.
    """
    n_labels = sum(int((~scan.missing).sum()) for scan in scans)
    number = most_calibration(n_labels, options.levels, by_class=options.by_class)
    if options.design.draws_calibration:
        drawn = sum(int(scan.drawn.sum()) for scan in scans if scan.drawn is not None)
        least = 2 * fewest_calibration(options.level)
        if drawn < least:
            raise ValueError(
                f"{drawn} rows drawn at random are too few for a table of which the fit sees a "
                "sample: half of them calibrate the sample and half all other rows, "
                f"so it takes {least}."
            )
        number = drawn // 2
    roles = draw_roles(scans, n_calibration=number, n_visible=MOST_LABELS, n_sampled=options.sample)
    if roles.n_unlabelled == 0:
        raise ValueError(f"No cell of column {target!r} is empty, so there is nothing to fill.")
    if roles.n_labelled == 0:
        raise ValueError(
            f"All cells of column {target!r} are empty: some must have a label to learn from."
        )
    return roles
