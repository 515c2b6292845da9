"""Filling a table that need not fit into memory: read, sampled, answered and written part by part."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.core import checks
from transduce.core.answer import STATUSES
from transduce.core.computing import stage
from transduce.core.safe_files import locked, whole_file, write_text
from transduce.core.words import OptionError, option
from transduce.filling import sources
from transduce.filling.engine import fill_sample
from transduce.filling.options import Options
from transduce.filling.result import FillResult, FittedFill
from transduce.filling.sources import LocalRunner, PartSource, Runner, SampledColumns, Work
from transduce.tables.columns import check_columns, rounded
from transduce.tables.files import decimal_sign, memory_free
from transduce.tables.parts import Part, PartFiles, PartWriter, open_parts

MANIFEST = "_manifest.json"  # named so that readers of a folder of Parquet pass over it
WORK = ".work"
_SWELLING = 12  # bytes of features, kernels and answers for a byte of a row
ENDINGS = {"parquet": ".parquet", "csv": ".csv", "tsv": ".tsv", "json lines": ".jsonl"}


@dataclass(frozen=True, eq=False)
class FilledFolder:
    """A table that was filled part by part into a folder, as by `fill_folder`; nothing is read before it is asked for.

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
    """A table in files, which are read part by part where the work is done; its name is the pattern."""

    folder: Path  # where the filled parts go
    files: PartFiles
    runner: Runner
    batch_rows: int
    filled: FilledFolder | None = None  # once the parts are written

    def each(self, doing: str, work: Work, items: Sequence[Any]) -> list[Any]:
        """Return ``work(item, frames)`` for every part, in order; None where the item is None."""
        todo = [
            (part, item) for part, item in zip(self.parts, items, strict=True) if item is not None
        ]
        results: list[Any] = [None] * len(items)
        shared = (work, self.files, self.batch_rows)
        with stage(doing) as report:
            for done, (number, result) in enumerate(self.runner.map(_work, shared, todo), start=1):
                results[number] = result
                report(done / len(todo))
        return results

    def with_columns(self, result: FillResult, table: Any = None) -> FilledFolder | None:
        """Return the folder that was filled, as it was written."""
        return self.filled


def _work(shared: tuple[Work, PartFiles, int], item: tuple[Part, Any]) -> tuple[int, Any]:
    """Do some work on the rows of a part."""
    (work, files, batch_rows), (part, about) = shared, item
    return part.number, work(about, map(files.frame_of, files.batches(part, batch_rows)))


def _write(
    shared: tuple[FittedFill, PartFiles, int, Path], item: tuple[Part, SampledColumns | None]
) -> dict[str, Any]:
    """Answer a part, whose rows that the fit saw are answered, write it in one piece, and return its counts."""
    (fitted, files, batch_rows, folder), (part, sampled) = shared, item
    target, task = fitted.reading.name, fitted.reading.task
    # The digits of all labels are those of all parts.
    known = np.concatenate([fitted.labels, fitted.outside.table.labels])
    name, start = f"{part.name}{ENDINGS[files.kind]}", 0
    counts: Counter[str] = Counter()
    with whole_file(folder / name, force=True) as file:
        writer = PartWriter(file, files, fitted.reading.spelling.decimal)
        for batch in files.batches(part, batch_rows):
            frame = files.frame_of(batch)
            some = None
            if sampled is not None:  # the sampled rows of the batch, counted from its start
                mine = np.flatnonzero((sampled[0] >= start) & (sampled[0] < start + len(frame)))
                some = sampled[0][mine] - start, sampled[1].iloc[mine]
            new = sources.columns_of_part(fitted, frame, some)
            writer.write(
                batch, new if files.kind == "parquet" else rounded(new, target, task, known)
            )
            counts.update(new[f"{target}_status"].value_counts().to_dict())
            start += len(frame)
        writer.close()
    status = {word: int(n) for word, n in counts.items()}
    return {"name": name, "number": part.number, "rows": part.n_rows, "status": status}


def _open_manifest(folder: Path, of: dict[str, Any], *, force: bool) -> dict[str, Any]:
    """Return what is in the folder: of which table and options, from which model, and the parts that are complete."""
    path, new = (
        folder / MANIFEST,
        {"format": 1, "state": "incomplete", "of": of, "model": "", "parts": {}},
    )
    if not path.exists():
        others = [other.name for other in folder.iterdir() if other.name not in (WORK, ".lock")]
        if others and not force:
            said = f"{folder} holds other files, such as {others[0]}"
            raise FileExistsError(
                f"{said}: name an empty or a new folder, or use {option('force', True)}."
            )
        return new
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = found["of"] == json.loads(json.dumps(of, default=str))
    except (ValueError, KeyError, TypeError):
        same, found = False, {}
    if force:
        for part in found.get("parts", {}):
            (folder / Path(part).name).unlink(missing_ok=True)
        return new
    if not same:
        said = f"{folder} holds another table, or one filled with other settings"
        raise FileExistsError(f"{said}: name another folder, or use {option('force', True)}.")
    if found["state"] == "complete":
        raise FileExistsError(
            f"{folder} holds this table, filled already; to fill it again use {option('force', True)}."
        )
    return found


def _save_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest in one piece."""
    text = json.dumps(manifest, indent=1, default=str, ensure_ascii=False)
    write_text(folder / MANIFEST, text, force=True)


def _table_of(files: PartFiles, target: Any, options: Options) -> dict[str, Any]:
    """Return what a filled folder depends on: the files, and the options."""
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files.files]
    asked = {name: value for name, value in options.as_json().items() if name != "n_jobs"}
    cut = [[part.name, part.n_rows] for part in files.parts]
    return {"files": stats, "target": target, "options": asked, "parts": cut}


def _fingerprint(result: FillResult, fitted: FittedFill) -> str:
    """Return what tells two fits apart: a hash of what they answer."""
    digest = hashlib.sha256()
    rows = result.shown.iloc[-2000:].drop(columns=[result.target])
    for frame in (result.new, fitted.new_columns(rows)):
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def fill_folder(
    table: str,
    target: Any,
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
        A folder; it gets a file for each part, in the kind of the table, and ``_manifest.json``. If it holds some parts
        of the same table already, since an earlier run was stopped, only the others are done.
    memory : float, optional
        Bytes that all processes together may take, besides what Python itself needs; by default half of what is free.
    runner : LocalRunner or that of cluster_runner, optional
        Where the work is done: by default on this machine, with ``n_jobs`` processes.
    force : bool, default=False
        Whether to replace what the folder holds.
    **options
        As those of `fill`, and of `FillResult.ask`: the parts are written once.

    Returns
    -------
    FillResult
        Its ``frame`` is the folder and its parts; ``totals`` are counts of the whole table, and the rows that it shows
        are those that the fit saw.

    Examples
    --------
    >>> import tempfile
    >>> from transduce.datasets import load_houses
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_houses()[0].to_parquet(f"{folder}/houses.parquet")
    ...     fill_folder(f"{folder}/*.parquet", "price", f"{folder}/filled", method="ridge").frame.parts
    ['part-00000-houses.parquet']
    """
    read, folder = Options.read(options, questions=True), Path(out)
    read.check_sampled()
    runner = runner or LocalRunner(read.n_jobs)
    taken = f"{folder} is being filled by another process."
    with _made(folder), locked(folder / ".lock", taken):
        for torn in folder.glob(".*.part"):  # of a process that was killed
            torn.unlink()
        names = read.columns(target)
        with stage("looking"):
            files = open_parts(table, folder / WORK)
            files = replace(files, index=tuple(name for name in files.index if name not in names))
        check_columns(pd.DataFrame(columns=files.columns), names)
        manifest = _open_manifest(folder, _table_of(files, target, read), force=force)
        _save_manifest(folder, manifest)
        about: dict[str, Any] = {"name": table, "flags": {"out": f"{out}".rstrip("/") + "/"}}
        about |= {"prefer": decimal_sign(files.delimiter), "words": files.kind in ("csv", "tsv")}
        about |= {"pictures": os.path.commonpath([path.resolve().parent for path in files.files])}
        batch_rows = _batch_rows(files, memory, runner)
        source = _FileSource(folder, files, runner, batch_rows, parts=files.parts, **about)
        result = _answer(fill_sample(source, target, read), source, manifest)
        shutil.rmtree(folder / WORK, ignore_errors=True)
    return result


def _answer(sample: FillResult, source: _FileSource, manifest: dict[str, Any]) -> FillResult:
    """Answer the parts that are not complete yet, and return the result of all."""
    files, folder, fitted, roles = source.files, source.folder, sample.fitted, sample.source.roles
    assert fitted is not None
    assert roles is not None
    model = _fingerprint(sample, fitted)
    if model != manifest["model"]:  # parts of another one are done again
        manifest |= {"model": model, "parts": {}}
    _save_manifest(folder, manifest)
    parts = manifest["parts"]
    kept = {
        part["number"]: part["rows"] for name, part in parts.items() if (folder / name).exists()
    }
    todo = [part for part in files.parts if kept.get(part.number) != part.n_rows]
    rows, sampled = (
        files.n_rows - sum(part.n_rows for part in todo),
        sources.sampled_columns(sample, roles),
    )
    with stage("answers") as report:
        report(rows / files.n_rows)
        items = [(part, sampled.get(part.number)) for part in todo]
        shared = (fitted, files, source.batch_rows, folder)
        for part in source.runner.map(_write, shared, items):
            parts[part["name"]] = part
            _save_manifest(folder, manifest)
            rows += part["rows"]
            report(rows / files.n_rows)
    totals = _counts(list(parts.values()))
    names = sorted(parts, key=lambda name: parts[name]["number"])
    lost = totals["unreached"] - int((sample.fit.answer.status == "unreached").sum())
    result = replace(
        sample,
        source=replace(source, roles=roles, filled=FilledFolder(folder, names)),
        outside=(totals["unlabelled"] - len(sample.fit.answer) - lost, lost),
        totals=totals,
    )
    manifest |= {"state": "complete", "guarantee": str(result.guarantee), "counts": totals}
    _save_manifest(folder, manifest)
    return result


def _counts(parts: list[dict[str, Any]]) -> dict[str, int]:
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
def _made(folder: Path) -> Iterator[None]:
    """Make a folder; if the work in it is refused before a part is complete, take it away again."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except Exception as error:
        if isinstance(error, FileExistsError):  # the folder holds something else
            shutil.rmtree(folder / WORK, ignore_errors=True)
        if folder in new and not any(folder.glob("part-*")):
            shutil.rmtree(folder, ignore_errors=True)
            for path in new[1:]:
                path.rmdir()
        if isinstance(error, OSError) and error.errno == ENOSPC:
            then = "make room and run the same command again; complete parts are kept"
            raise OSError(f"The disk of {folder} is full: {then}.") from error
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
