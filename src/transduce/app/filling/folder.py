"""Filling a table larger than memory: read, sampled, answered and written by parts."""

from __future__ import annotations

import errno
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from transduce.app.filling import part_sources
from transduce.app.filling.engine import fill_parts
from transduce.app.filling.later_rows import FittedFill
from transduce.app.filling.manifest import LOCK, Manifest
from transduce.app.filling.options import OF_GUARANTEE, QUESTIONS, Options
from transduce.app.filling.part_sources import PartColumns, PartSource, SampledColumns
from transduce.app.filling.result import FillResult
from transduce.app.filling.runners import LocalRunner, Runner, Work
from transduce.app.filling.seen_rows import OtherRows, SampleOfParts
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.delimited import usual_sign
from transduce.app.tables.files import memory_free
from transduce.app.tables.nested import ObjectFields
from transduce.app.tables.notes import About, notes_about
from transduce.app.tables.parts import (
    Part,
    PartFiles,
    PartWriter,
    find_files,
    open_parts,
    reopen_parts,
)
from transduce.core import checks
from transduce.core.answer import STATUSES
from transduce.core.checks import WrongTypeError, check_path
from transduce.core.computing import stage
from transduce.core.files import (
    DiskFullError,
    locked,
    make_folder,
    remove_folders,
    remove_torn,
    together,
    whole_file,
)
from transduce.core.types import ColumnName, JsonObject
from transduce.core.words import OptionError, counted, option, quoted

_SWELLING = 12  # bytes of features, kernels and answers for a byte of a row
ENDINGS = {"parquet": ".parquet", "csv": ".csv", "tsv": ".tsv", "json lines": ".jsonl"}


@dataclass(frozen=True, eq=False)
class FilledFolder:
    """A table that was filled part by part into a folder, as by `fill_folder`.

    Nothing is read before it is asked for.

    Parameters
    ----------
    folder : Path
        Where the parts and their manifest are.
    parts : list of str
        The files, in the order of the rows.

    Examples
    --------
    >>> FilledFolder(Path("filled"), ["part-00000-a.parquet"]).paths[0].name
    'part-00000-a.parquet'
    """

    folder: Path
    parts: list[str]

    @property
    def paths(self) -> list[Path]:
        """The files, in the order of the rows."""
        return [self.folder / name for name in self.parts]


@dataclass(frozen=True, eq=False)
class _FileSource(PartSource):
    """A table in files, which are read part by part where the work is done.

    Its name is the pattern of the files.
    """

    folder: Path  # where the filled parts go
    files: PartFiles
    runner: Runner
    batch_rows: int
    filled: FilledFolder | None = None  # once the parts are written

    @property
    def stored_columns(self) -> list[ColumnName]:
        """The columns of the files."""
        return list(self.files.columns)

    @property
    def origin(self) -> tuple[Path, ...]:
        """The files that the rows came from."""
        return self.files.files

    def each(
        self,
        doing: str,
        work: Work,
        items: Sequence[Any],
    ) -> list[Any]:
        """Return ``work(item, frames)`` for every part, in order; None where the item is None."""
        todo = [
            (part, item) for part, item in zip(self.parts, items, strict=True) if item is not None
        ]
        results: list[Any] = [None] * len(items)
        shared = (work, self.files, self.batch_rows, self.fields)
        with stage(doing) as report:
            for n_done, (number, result) in enumerate(
                self.runner.map(_work, shared, todo), start=1
            ):
                results[number] = result
                report(n_done / len(todo))
        return results

    def name_row(self, part: int, row: int) -> str:
        """Return what to call a row of a part, both counted from 0."""
        return f"{part_file(self.parts[part], self.files)}, row {row + 1}"

    def reopen(self, work: Path) -> PartSource:
        """Return the same parts: texts are kept as Parquet in another folder for work."""
        files = reopen_parts(self.files, work)
        return replace(self, files=files, parts=files.parts)

    def check_questions(self, before: Options, asked: Options) -> None:
        """Refuse what would change the columns.

        The parts are written once, with the options of `fill_folder`.
        """
        super().check_questions(before, asked)
        changes = [
            name
            for name in QUESTIONS
            if name not in OF_GUARANTEE and getattr(asked, name) != getattr(before, name)
        ]
        if changes:
            value = getattr(asked, changes[0])
            raise OptionError(
                f"The parts in {self.folder} were written without {option(changes[0], value)}, and "
                "are not written again: fill the table into another folder, with "
                f"{option(changes[0], value)} given to fill_folder."
            )

    def add_columns(self, columns: PartColumns, table: Any = None) -> FilledFolder | None:
        """Return the folder that was filled, as it was written."""
        return self.filled


def _work(
    shared: tuple[Work, PartFiles, int, ObjectFields], item: tuple[Part, Any]
) -> tuple[int, Any]:
    """Do some work on the rows of a part."""
    work, files, batch_rows, fields = shared
    part, account = item
    frames = map(files.frame_of, files.batches(part, batch_rows))
    return part.number, work(account, map(fields.divide, frames))


class _HashedFile:
    """A file that is written from its start to its end, with the hash of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.n_bytes = 0
        self.closed = False

    def write(self, content: Any) -> int:
        """Write bytes."""
        view = memoryview(content).cast("B")
        self._file.write(view)
        self._digest.update(view)
        self.n_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.n_bytes

    def flush(self) -> None:
        """Hand on what is held back."""
        self._file.flush()

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""

    def sha256(self) -> str:
        """Return the hash of all that was written.

        An OSError says that the disk has not taken all of it.
        """
        self._file.flush()
        if os.fstat(self._file.fileno()).st_size != self.n_bytes:
            raise OSError(errno.ENOSPC, "the disk took a part of the file only")
        return self._digest.hexdigest()


def part_file(part: Part, files: PartFiles) -> str:
    """Return what the file of a filled part is called."""
    return f"{part.name}{ENDINGS[files.kind]}"


def _write(
    shared: tuple[FittedFill, PartFiles, int, Path], item: tuple[Part, SampledColumns | None]
) -> JsonObject:
    """Answer a part, write it in one piece, and return its counts.

    Rows that the fit saw keep the answers of the fit.
    """
    fitted, files, batch_rows, folder = shared
    part, sampled = item
    target = fitted.reading.name
    name = part_file(part, files)
    start = 0
    counts: Counter[str] = Counter()
    with whole_file(folder / name, force=True, like=files.files) as file:
        hashed: Any = _HashedFile(file)
        writer = PartWriter(hashed, files, fitted.reading.spelling.decimal)
        with closing(writer):
            for batch in files.batches(part, batch_rows):
                frame = files.frame_of(batch)
                first_rows = None
                if sampled is not None:  # the sampled rows of the batch, counted from its start
                    mine = np.flatnonzero((sampled[0] >= start) & (sampled[0] < start + len(frame)))
                    first_rows = sampled[0][mine] - start, sampled[1].iloc[mine]
                new = part_sources.columns_of_part(fitted, frame, first_rows)
                is_text = files.kind != "parquet"
                writer.write(batch, fitted.columns_for_file(new) if is_text else new)
                counts.update(new[f"{target}_status"].value_counts().to_dict())
                start += len(frame)
        sha256 = hashed.sha256()
    return {
        "name": name,
        "number": part.number,
        "rows": part.n_rows,
        "status": {word: int(n) for word, n in counts.items()},
        "bytes": hashed.n_bytes,
        "sha256": sha256,
    }


def _table_of(files: Sequence[Path], target: ColumnName, options: Options) -> JsonObject:
    """Return what a filled folder depends on: the files, and the options."""
    stats = [
        (os.path.abspath(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files
    ]
    asked = {name: value for name, value in options.as_json().items() if name != "n_jobs"}
    return {"files": stats, "target": target, "options": asked}


def _fingerprint(result: FillResult, fitted: FittedFill) -> str:
    """Return what tells two fits apart: a hash of what they answer."""
    digest = hashlib.sha256()
    rows = result.seen.frame.iloc[-2000:].drop(columns=[result.target])
    for frame in (result.new, fitted.new_columns(rows)):
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def _check_arguments(table: Any, out: Any, runner: Any) -> None:
    """Raise an error that says what to give instead, before anything is written."""
    check_path("table", table)
    check_path("out", out)
    if runner is not None and not hasattr(runner, "map"):
        raise WrongTypeError(
            "runner must be LocalRunner(), what cluster_runner returns, or None; got "
            f"{quoted(runner)}."
        )


def fill_folder(
    table: str,
    target: ColumnName,
    out: str | Path,
    *,
    memory: float | None = None,
    runner: Runner | None = None,
    force: bool = False,
    **options: Any,
) -> FillResult:
    """Fill a table in one or many files, part by part, into a folder.

    Parameters
    ----------
    table : str
        A file, a folder, or a pattern such as ``data/*.parquet``: CSV, TSV, Parquet or JSON lines.
    target : str
        The column to fill.
    out : str or Path
        A folder; it gets a file for each part, in the kind of the table, and ``_manifest.json``. If
        it holds some parts of the same table already, since an earlier run was stopped, only the
        others are done.
    memory : float, optional
        Bytes that all processes together may take, besides what Python itself needs; by default
        half of what is free.
    runner : LocalRunner or that of cluster_runner, optional
        Where the work is done: by default on this machine, with ``n_jobs`` processes.
    force : bool, default=False
        Whether to replace what the folder holds.
    **options
        As those of `fill`, and of `FillResult.with_options`: the parts are written once.

    Returns
    -------
    FillResult
        Its ``frame`` is the folder and its parts; ``counts`` are of the whole table, and the rows
        that it shows are those that the fit saw.

    Examples
    --------
    >>> import tempfile
    >>> from transduce.datasets import load_houses
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_houses()[0].to_parquet(f"{folder}/houses.parquet")
    ...     files = f"{folder}/*.parquet"
    ...     fill_folder(files, "price", f"{folder}/filled", method="ridge").frame.parts
    ['part-00000-houses.parquet']
    """
    return fill_folder_and_finish(
        table,
        target,
        out,
        memory=memory,
        runner=runner,
        force=force,
        **options,
    )


def fill_folder_and_finish(
    table: str,
    target: ColumnName,
    out: str | Path,
    *,
    memory: float | None = None,
    runner: Runner | None = None,
    force: bool = False,
    finish: Callable[[FillResult], None] = lambda result: None,
    **options: Any,
) -> FillResult:
    """Fill a folder as `fill_folder` does.

    It is complete once `finish`, which may write reports, is done.
    """
    _check_arguments(table, out, runner)
    read = Options.read(options, questions=True)
    read.check_sampled()
    runner = runner or LocalRunner(read.n_jobs)
    folder = Path(out)
    _, given = find_files(table, folder)
    with (
        _made(folder, given),
        locked(folder / LOCK, f"{folder} is being filled by another process."),
    ):
        manifest = Manifest.open(folder, given, _table_of(given, target, read), force=force)
        remove_torn(folder)
        try:
            source = _open_source(table, target, manifest, read, memory, runner)
            settled = read.below(source.columns, target)
            result = _answer(fill_parts(source, target, settled), source, manifest)
            _finish(result, manifest, finish)
        except Exception:
            manifest.abandon()
            raise
    return result


def _open_source(
    table: str,
    target: ColumnName,
    manifest: Manifest,
    options: Options,
    memory: float | None,
    runner: Runner,
) -> _FileSource:
    """Return the files of a table as the source of its rows.

    Texts are kept as Parquet in the folder for work.
    """
    names = options.columns(target)
    folder = manifest.folder
    with stage("looking"):
        kind, _ = find_files(table, folder)
        is_text = kind != "parquet"
        files = open_parts(table, manifest.make_work() if is_text else folder / "none")
        files = replace(files, index=tuple(name for name in files.index if name not in names))
    account: JsonObject = {"name": table, "flags": {"out": f"{folder}".rstrip("/") + "/"}}
    account |= {"prefer": usual_sign(files.delimiter), "words": files.kind in ("csv", "tsv")}
    account |= {"pictures": os.path.commonpath([path.resolve().parent for path in files.files])}
    batch_rows = _batch_rows(files, memory, runner)
    source = _FileSource(folder, files, runner, batch_rows, parts=files.parts, **account).divided()
    settled = options.below(source.columns, target)
    check_columns(pd.DataFrame(columns=source.columns), settled.columns(target))
    manifest.check_strangers([part_file(part, files) for part in files.parts], ENDINGS[kind])
    if manifest.earlier is None:
        manifest.save()
    return source


def _answer(sample: FillResult, source: _FileSource, manifest: Manifest) -> FillResult:
    """Answer the parts that are not complete yet, and return the result of all."""
    files = source.files
    seen = sample.seen
    assert isinstance(seen, SampleOfParts)
    fitted = seen.others.later
    notes = _check_earlier(manifest, files, _fingerprint(sample, fitted))
    done = {part["number"] for part in manifest.parts.values()}
    todo = [part for part in files.parts if part.number not in done]
    n_done = files.n_rows - sum(part.n_rows for part in todo)
    sampled = part_sources.sampled_columns(sample.new, seen.roles)
    with stage("answers") as report:
        report(n_done / files.n_rows)
        items = [(part, sampled.get(part.number)) for part in todo]
        # Workers may have another working directory.
        folder = Path(os.path.abspath(source.folder))
        shared = (fitted.for_parts(), files, source.batch_rows, folder)
        for part in source.runner.map(_write, shared, items):
            manifest.parts[part["name"]] = part
            manifest.save()
            n_done += part["rows"]
            report(n_done / files.n_rows)
    fit = sample.fit.with_notes(notes_about(About.ROWS, notes))
    return replace(sample, fit=fit, seen=_seen_parts(sample, seen, source, manifest))


def _seen_parts(
    sample: FillResult, seen: SampleOfParts, source: _FileSource, manifest: Manifest
) -> SampleOfParts:
    """Return which rows the fit saw, now that all parts are written."""
    parts = manifest.parts
    names = sorted(parts, key=lambda name: parts[name]["number"])
    totals = _counts(list(parts.values()))
    inside = sample.fit.answer
    n_unreached = totals["unreached"] - int((inside.status == "unreached").sum())
    n_answered = totals["unlabelled"] - len(inside) - n_unreached
    return replace(
        seen,
        source=replace(source, filled=FilledFolder(source.folder, names)),
        others=OtherRows(seen.others.later, n_answered, n_unreached),
        totals=totals,
    )


def _check_earlier(manifest: Manifest, files: PartFiles, model: str) -> list[str]:
    """Keep the parts of an earlier run that this one would write alike.

    Returns notes on the others.
    """
    notes: list[str] = []
    planned = {part_file(part, files): part for part in files.parts}
    manifest.plan(planned)
    if model != manifest.model:
        manifest.parts = {}
    with stage("checking parts"):
        damaged = manifest.check_parts()
    if damaged:
        n_parts = counted(len(damaged), "part")
        names = ", ".join(damaged[:5])
        notes.append(
            f"{n_parts} of an earlier run had been damaged or changed since, and "
            f"{'was' if len(damaged) == 1 else 'were'} written again: {names}."
        )
    for name, part in list(manifest.parts.items()):
        if name not in planned or planned[name].n_rows != part["rows"]:
            del manifest.parts[name]
    manifest.model = model
    manifest.save()
    return notes


def _finish(result: FillResult, manifest: Manifest, finish: Callable[[FillResult], None]) -> None:
    """Let reports be written, and say then that the folder is complete."""
    # The manifest names the reports before these have their names: killed in between, the same
    # command knows them as its own and writes them again.
    with together() as run:
        finish(result)
        manifest.reports = run.hashes()
        manifest.save()
        run.place_last_first()
    counts = _counts(list(manifest.parts.values()))
    manifest.complete(guarantee=str(result.guarantee), counts=counts)


def _counts(parts: list[JsonObject]) -> dict[str, int]:
    """Return counts of all rows."""
    status: Counter[str] = sum((Counter(part["status"]) for part in parts), Counter())
    rows = sum(part["rows"] for part in parts)
    words = {word: status.get(word, 0) for word in STATUSES}
    return {
        "rows": rows,
        "labelled": status["given"],
        "unlabelled": rows - status["given"],
        **words,
    }


@contextmanager
def _made(folder: Path, like: Sequence[Path]) -> Iterator[None]:
    """Make a folder; if the work in it is refused and nothing is in it, take it away again."""
    new = make_folder(folder, like=like)
    try:
        yield
    except Exception as error:
        remove_folders(new)
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or isinstance(error, DiskFullError):
            raise DiskFullError(
                f"The disk of {folder} is full: make room and run the same command again; "
                "complete parts are kept."
            ) from error
        raise


def _batch_rows(files: PartFiles, memory: float | None, runner: Runner) -> int:
    """Return how many rows are read at a time, so that all workers stay within the memory."""
    if memory is None:
        memory = 0.5 * (memory_free() or 4e9)
    memory = checks.check_positive("memory", memory)
    if memory < 2e8:
        raise OptionError(f"{memory / 1e6:.0f} MB are too little: give at least 200 MB.")
    return int(
        np.clip(memory / runner.n_here / (_SWELLING * max(files.row_bytes, 200.0)), 1000, 100_000)
    )
