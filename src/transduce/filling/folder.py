"""Filling a table that need not fit into memory: read, sampled, answered and written part by part."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.core.computing import stage
from transduce.core.guarantee import Guarantee
from transduce.core.safe_files import locked, whole_file, write_text
from transduce.core.types import AnyArray
from transduce.filling.fitted import FittedFill
from transduce.filling.large import SampleFit, draw, sample_note
from transduce.filling.lazily import answer_rows, fit_parts, gather, rows_wanted, scan_frame
from transduce.filling.result import FillResult
from transduce.filling.settings import FillSettings
from transduce.filling.sources import LocalRunner, Runner
from transduce.tables.columns import rounded
from transduce.tables.draws import PartScan
from transduce.tables.files import memory_free
from transduce.tables.labels import check_columns
from transduce.tables.parts import Part, PartFiles, PartWriter, open_parts

MANIFEST = "manifest.json"
WORK = ".work"
_SWELLING = 12  # bytes of features, kernels and answers for a byte of a row
ENDINGS = {"parquet": ".parquet", "csv": ".csv", "tsv": ".tsv", "json lines": ".jsonl"}


@dataclass(frozen=True, eq=False)
class FolderResult:
    """A table that was filled part by part.

    Parameters
    ----------
    folder : Path
        Where the parts and their manifest are.
    sample : SampleFit
        The filled sample, and what answered all other rows.
    guarantee : Guarantee
        Of all answers together.
    counts : dict
        Rows, labels, filled cells, how often each status occurs, and, of classes, how often each was answered.
    parts : list of str
        The files, in the order of the rows.
    options : dict
        What was asked for, as it was given.

    Examples
    --------
    See `fill_folder`.

    >>> FolderResult.__dataclass_fields__.keys() >= {"folder", "guarantee", "counts"}
    True
    """

    folder: Path
    sample: SampleFit
    guarantee: Guarantee
    counts: dict[str, Any]
    parts: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> FillResult:
        """The sample as a result with the guarantee and the counts of the whole table, for reports."""
        found, counts = self.sample.result, self.counts
        note = sample_note(len(found.frame), counts["rows"], len(self.sample.fitted.outside.labels))
        return replace(
            found,
            answer=replace(found.answer, guarantee=self.guarantee),
            miscoverage=None,
            advice=None,
            options=self.options,
            totals={name: value for name, value in counts.items() if isinstance(value, int)},
            notes=[*found.notes, note, "The rows of this page are those of the sample."],
        )


@dataclass(frozen=True)
class _Job:
    """What every worker needs to know."""

    files: PartFiles
    settings: FillSettings
    batch_rows: int


def _scan(job: _Job, part: Part) -> tuple[int, PartScan]:
    """Return what a draw needs to know of a part."""
    frames = job.files.frames(part, job.batch_rows)
    scans = [scan_frame(job.settings, frame, words=job.files.has_words) for frame in frames]
    drawn = [one.drawn for one in scans if one.drawn is not None]
    return part.number, PartScan(
        np.concatenate([one.missing for one in scans]) if scans else np.empty(0, dtype=bool),
        np.concatenate([one.hashes for one in scans]) if scans else np.empty(0, dtype=np.uint64),
        np.concatenate(drawn) if drawn else None,
    )


def _take(job: _Job, wanted: tuple[Part, AnyArray]) -> tuple[int, pd.DataFrame]:
    """Return some rows of a part."""
    part, rows = wanted
    found, start = [], 0
    for frame in job.files.frames(part, job.batch_rows):
        mine = rows[(rows >= start) & (rows < start + len(frame))] - start
        found.append(frame.iloc[mine])
        start += len(frame)
    return part.number, pd.concat(found, ignore_index=True)


@dataclass(frozen=True, eq=False)
class _Answering:
    """What it takes to answer and write parts."""

    job: _Job
    fitted: FittedFill
    folder: Path

    def rounded(self, new: pd.DataFrame) -> pd.DataFrame:
        """Return new columns for a text: with the digits of the labels, the same in all parts."""
        fitted = self.fitted
        known = np.concatenate([fitted.labels, fitted.outside.labels])
        return rounded(new, fitted.reading.name, fitted.reading.task, known)


@dataclass(frozen=True, eq=False)
class _Piece:
    """A part, and its rows that the fit saw, with their answers."""

    part: Part
    sampled: tuple[AnyArray, pd.DataFrame] | None


def _write(answering: _Answering, piece: _Piece) -> dict[str, Any]:
    """Answer a part, write it in one piece, and return its counts."""
    job, part = answering.job, piece.part
    name = f"{part.name}{ENDINGS[job.files.kind]}"
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    with whole_file(answering.folder / name, force=True) as file:
        writer, start = PartWriter(file, job.files, answering.fitted.reading.decimal), 0
        for batch in job.files.batches(part, job.batch_rows):
            frame = job.files.frame_of(batch)
            new = answer_rows(answering.fitted, frame, _within(piece.sampled, start, len(frame)))
            writer.write(batch, new if job.files.kind == "parquet" else answering.rounded(new))
            status = new[f"{job.settings.target}_status"]
            counts.update(status.value_counts().to_dict())
            if job.settings.task == "classification":
                filled = new.loc[(status != "given").to_numpy(), f"{job.settings.target}_filled"]
                classes.update({str(label): int(n) for label, n in filled.value_counts().items()})
            start += len(frame)
        writer.close()
    return {
        "name": name,
        "number": part.number,
        "rows": part.n_rows,
        "status": {word: int(n) for word, n in counts.items()},
        "classes": dict(classes),
    }


def _within(
    sampled: tuple[AnyArray, pd.DataFrame] | None, start: int, length: int
) -> tuple[AnyArray, pd.DataFrame] | None:
    """Return the sampled rows of a batch, counted from its start."""
    if sampled is None:
        return None
    rows, new = sampled
    mine = (rows >= start) & (rows < start + length)
    return rows[mine] - start, new.iloc[np.flatnonzero(mine)]


# --------------------------------------------------------------------------------------------------- the manifest


@dataclass(eq=False)
class _Manifest:
    """What is in the folder: of which table, with which settings, and which parts are complete."""

    path: Path
    of: dict[str, Any]
    model: str = ""
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    state: str = "incomplete"

    @classmethod
    def open(cls, folder: Path, of: dict[str, Any], *, force: bool) -> _Manifest:
        """Return the manifest of a folder, with the parts that are complete if it is of the same table."""
        path = folder / MANIFEST
        if not path.exists():
            others = [other.name for other in folder.iterdir() if other.name not in (WORK, ".lock")]
            if others and not force:
                raise FileExistsError(
                    f"{folder} holds other files, such as {others[0]}: name an empty or a new folder, or use --force."
                )
            return cls(path, of)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            same = found["of"] == json.loads(json.dumps(of, default=str))
        except (ValueError, KeyError, TypeError):
            same, found = False, {}
        if same and found["state"] == "complete" and not force:
            raise FileExistsError(f"{folder} holds this table, filled already; to fill it again use --force.")
        if same and not force:
            return cls(path, of, found["model"], found["parts"])
        if not force:
            raise FileExistsError(
                f"{folder} holds another table, or one filled with other settings: name another folder, or use --force."
            )
        for part in found.get("parts", {}):
            (folder / Path(part).name).unlink(missing_ok=True)
        return cls(path, of)

    def begin(self, model: str) -> None:
        """Note which model answers; parts of another one are done again."""
        if model != self.model:
            self.model, self.parts = model, {}
        self.save()

    def add(self, part: dict[str, Any]) -> None:
        """Note that a part is complete."""
        self.parts[part["name"]] = part
        self.save()

    def save(self, **more: Any) -> None:
        """Write the manifest in one piece."""
        content = {
            "format": 1,
            "state": self.state,
            "of": self.of,
            "model": self.model,
            **more,
            "parts": self.parts,
        }
        write_text(self.path, json.dumps(content, indent=1, default=str, ensure_ascii=False), force=True)


def _table_of(files: PartFiles, settings: FillSettings) -> dict[str, Any]:
    """Return what a filled folder depends on: the files, and the settings."""
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files.files]
    given = {name: value for name, value in settings.flat.items() if name not in ("n_jobs", "source")}
    cut = [[part.name, part.n_rows] for part in files.parts]
    return {"files": stats, "settings": given, "parts": cut}


def _fingerprint(found: SampleFit) -> str:
    """Return what tells two fits apart: a hash of what they answer."""
    digest = hashlib.sha256()
    rows = found.result.frame.iloc[-2000:].drop(columns=[found.fitted.reading.name])
    for frame in (found.result.new, found.fitted.answer(rows)):
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------------ all of it


def fill_folder(
    table: str,
    target: Any,
    out: str | Path,
    *,
    memory: float | None = None,
    runner: Runner | None = None,
    force: bool = False,
    **settings: Any,
) -> FolderResult:
    """Fill a table in one or many files, part by part, into a folder.

    Parameters
    ----------
    table : str
        A file, a folder, or a pattern such as ``data/*.parquet``: CSV, TSV, Parquet or JSON lines.
    target : str
        The column to fill.
    out : str or Path
        A folder; it gets a file for each part, in the kind of the table, and ``manifest.json``. If it holds some parts
        of the same table already, since an earlier run was stopped, only the others are done.
    memory : float, optional
        Bytes that all processes together may take, besides what Python itself needs; by default half of what is free.
    runner : Runner, optional
        Where the work is done: by default on this machine, with ``n_jobs`` processes.
    force : bool, default=False
        Whether to replace what the folder holds.
    **settings
        As those of `fill`.

    Returns
    -------
    FolderResult

    Notes
    -----
    All rows are read three times: to see where labels are missing and draw the rows that the fit sees, to gather these,
    and to answer all. Which rows are drawn depends on what is in them and on the seed alone.

    Examples
    --------
    >>> import tempfile
    >>> size = np.arange(300.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/prices.parquet")
    ...     found = fill_folder(f"{folder}/*.parquet", "price", f"{folder}/filled", method="ridge")
    ...     names = [path.name for path in sorted(found.folder.iterdir())]
    >>> names
    ['manifest.json', 'part-00000-prices.parquet']
    >>> found.counts["answered"]
    100
    """
    wanted, folder = FillSettings.read(target, settings), Path(out)
    wanted.check_sampled()
    asked = wanted.as_given()
    folder.mkdir(parents=True, exist_ok=True)
    runner = runner or LocalRunner(wanted.n_jobs)
    with locked(folder / ".lock", f"{folder} is being filled by another process."), _disk(folder):
        for torn in folder.glob(".*.part"):  # of a process that was killed
            torn.unlink()
        with stage("looking"):
            files = open_parts(table, folder / WORK).naming(wanted.named)
        check_columns(pd.DataFrame(columns=files.columns), wanted.named)
        try:
            manifest = _Manifest.open(folder, _table_of(files, wanted), force=force)
        except FileExistsError:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            raise
        manifest.save()
        job = _Job(files, wanted, _batch_rows(files, memory, runner))
        found, sampled, wanted = _fit(job, runner)
        manifest.begin(_fingerprint(found))
        answering = _Answering(replace(job, settings=wanted), found.fitted, folder)
        _answer(answering, sampled, manifest, runner)
        counts = _counts(manifest, wanted)
        n_inside = len(found.result.answer)
        lost = counts["unreached"] - int((found.result.answer.status == "unreached").sum())
        guarantee = found.guarantee(counts["unlabelled"] - n_inside - lost, lost)
        names = sorted(manifest.parts, key=lambda name: manifest.parts[name]["number"])
        manifest.state = "complete"
        manifest.save(guarantee=str(guarantee), counts=counts)
        shutil.rmtree(folder / WORK, ignore_errors=True)
    return FolderResult(folder, found, guarantee, counts, names, asked | {"task": wanted.task})


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """Say in a sentence that the disk is full, and what is left to do then."""
    try:
        yield
    except OSError as error:
        import errno

        if error.errno != errno.ENOSPC:
            raise
        raise OSError(
            f"The disk of {folder} is full: make room and run the same command again; complete parts are kept."
        ) from error


def _batch_rows(files: PartFiles, memory: float | None, runner: Runner) -> int:
    """Return how many rows are read at a time, so that all workers stay within the memory."""
    if memory is None:
        memory = 0.5 * (memory_free() or 4e9)
    if memory < 2e8:
        raise ValueError(f"{memory / 1e6:.0f} MB are too little: give at least 200 MB.")
    rows = memory / runner.n_here / (_SWELLING * max(files.row_bytes, 200.0))
    return int(np.clip(rows, 1000, 100_000))


def _fit(
    job: _Job, runner: Runner
) -> tuple[SampleFit, dict[int, tuple[AnyArray, pd.DataFrame]], FillSettings]:
    """Look at all rows, draw some, and fit to them."""
    parts = job.files.parts
    scans: dict[int, PartScan] = {}
    with stage("reading") as report:
        for number, one in runner.map(_scan, job, parts):
            scans[number] = one
            report(len(scans) / len(parts))
    roles = draw([scans[number] for number in range(len(parts))], job.settings)
    if roles.n_unlabelled == 0:
        raise ValueError(f"No cell of column {job.settings.target!r} is empty, so there is nothing to fill.")
    if roles.n_labelled == 0:
        raise ValueError(
            f"All cells of column {job.settings.target!r} are empty: some must have a label to learn from."
        )
    del scans
    wanted = rows_wanted(roles, len(parts))
    frames: list[pd.DataFrame | None] = [None] * len(parts)
    items = [(part, rows) for part, rows in zip(parts, wanted, strict=True) if rows is not None]
    with stage("sample") as report:
        for done, (number, frame) in enumerate(runner.map(_take, job, items), start=1):
            frames[number] = frame
            report(done / len(items))
    prefer, words = job.files.prefer, job.files.has_words
    gathered, settings = gather(frames, wanted, roles, job.settings, prefer=prefer, words=words)
    found, sampled = fit_parts(gathered, roles, settings, prefer=prefer, words=words)
    return found, sampled, settings


def _answer(
    answering: _Answering,
    sampled: dict[int, tuple[AnyArray, pd.DataFrame]],
    manifest: _Manifest,
    runner: Runner,
) -> None:
    """Answer the parts that are not complete yet."""
    files, folder = answering.job.files, answering.folder
    done = {
        name
        for name, part in manifest.parts.items()
        if (folder / name).exists() and part["rows"] == files.parts[part["number"]].n_rows
    }
    todo = [part for part in files.parts if f"{part.name}{ENDINGS[files.kind]}" not in done]
    rows = files.n_rows - sum(part.n_rows for part in todo)
    with stage("answers") as report:
        report(rows / files.n_rows)
        items = [_Piece(part, sampled.get(part.number)) for part in todo]
        for part in runner.map(_write, answering, items):
            manifest.add(part)
            rows += part["rows"]
            report(rows / files.n_rows)


def _counts(manifest: _Manifest, settings: FillSettings) -> dict[str, Any]:
    status: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for part in manifest.parts.values():
        status.update(part["status"])
        classes.update(part["classes"])
    rows = sum(part["rows"] for part in manifest.parts.values())
    words = {word: status.get(word, 0) for word in ("answered", "unusual", "tied", "rejected", "unreached")}
    counts: dict[str, Any] = {
        "rows": rows,
        "labelled": status["given"],
        "unlabelled": rows - status["given"],
        **words,
    }
    if settings.task == "classification":
        counts["by_class"] = dict(classes.most_common())
    return counts
