"""Files made of a session: the labels, and the table filled from them with its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.core.safe_files import check_free, write_text
from transduce.core.types import AnyArray
from transduce.filling import FillResult, fill
from transduce.labelling.wording import certificate_text, counted
from transduce.tables import files
from transduce.tables.writing import write

if TYPE_CHECKING:
    from transduce.labelling.session import Session

TASKS = {"classes": "classification", "numbers": "regression"}


@dataclass(frozen=True)
class Exported:
    """The files written, and what is guaranteed of them.

    Parameters
    ----------
    labelled : Path
        The table with the labels.
    certificate : Path
        What is certain, as text.
    filled, report : Path or None
        The table filled from the labels, and its report; None if it could not be filled.
    guarantee : str
        What is guaranteed of the filled table, as sentences; or why it could not be filled.

    Examples
    --------
    >>> from pathlib import Path
    >>> from transduce.labelling import Exported
    >>> files = Exported(Path("papers-labelled.csv"), Path("papers-certificate.txt"), None, None, "No label yet.")
    >>> files.guarantee
    'No label yet.'
    """

    labelled: Path
    certificate: Path
    filled: Path | None
    report: Path | None
    guarantee: str


def export_session(session: Session, folder: Path, *, force: bool = False) -> Exported:
    """Write labels, certificates, the filled table and its report into a folder."""
    stem, ends = _name(session)
    labelled, filled = folder / f"{stem}-labelled{ends}", folder / f"{stem}-filled{ends}"
    report, certificate = folder / f"{stem}-filled.html", folder / f"{stem}-certificate.txt"
    for path in (labelled, filled, report, certificate):
        check_free(path, force=force)
    source = session.table.source or files.Table(session.table.frame, "csv", None, "table")
    write(labelled, source, label_columns(session), force=force)
    text = certificate_text(session.certificate(), session.state.wanted, session.table.name)
    write_text(certificate, text, force=force)
    try:
        result, guarantee = fill_labels(session)
    except ValueError as error:
        return Exported(labelled, certificate, None, None, f"The table could not be filled: {error}")
    result.report(report, force=force)
    write(filled, source, result.new, force=force)
    return Exported(labelled, certificate, filled, report, guarantee)


def _name(session: Session) -> tuple[str, str]:
    """Return the table's name without its ending, and the ending of the files to write."""
    path = session.table.path
    if path is None:
        return "table", ".csv"
    ends = "".join(path.suffixes[-2:]) if path.suffix.lower() in files.PACKED else path.suffix
    known = files.kind_of(path)[0] is not None
    return path.name.removesuffix(ends), ends if known else ".csv"


def label_columns(session: Session) -> pd.DataFrame:
    """Return the new columns of the labelled table: label, who gave it, whether the row was drawn, and the answer.

    The answer is the frozen one, which the certificate of wrong answers is about, or else the current one.
    """
    state, target, n = session.state, session.table.target, session.table.n_rows
    labels = np.full(n, None, dtype=object)
    by = np.full(n, None, dtype=object)
    for row, label in state.labelled.items():
        labels[row] = label
        by[row] = "person" if row in state.labels else "table"
    random = np.zeros(n, dtype=bool)
    random[state.drawn] = True
    values = state.freezes[-1].values if state.freezes else session.complete_answers().values
    columns = {
        f"{target}_label": pd.Series(labels).infer_objects(),
        f"{target}_by": by,
        f"{target}_random": np.where(random, "yes", "no"),
        f"{target}_answer": named(session, values),
    }
    taken = [name for name in columns if name in session.table.frame.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: rename it first.")
    return pd.DataFrame(columns)


def named(session: Session, values: AnyArray) -> AnyArray:
    """Return answers as classes or numbers, None or NaN where there is none."""
    if session.task == "numbers":
        return np.asarray(values, dtype=float)
    names = np.array([*session.classes, None], dtype=object)
    return names[np.asarray(values, dtype=np.int64)]


def fill_labels(session: Session) -> tuple[FillResult, str]:
    """Return the table filled from the labels of a session, and what is guaranteed of it."""
    state, target = session.state, session.table.target
    frame = session.table.frame.drop(columns=[target], errors="ignore").copy()
    exact = session.certificate().intervals.ready
    calibrating = set(state.calibrating()) if exact else set()
    later = (
        state.drawn_later() if exact else []
    )  # after the planned draws: were they to teach, looking could spoil it
    kept = {row: label for row, label in state.labelled.items() if row not in set(later)}
    column = pd.Series([kept.get(row) for row in range(session.table.n_rows)], dtype=object)
    frame[target] = column.astype(float).to_numpy() if session.task == "numbers" else column.to_numpy()
    task, name = TASKS[session.task], session.table.name
    if exact:
        marked = frame.assign(**{f"{target}_random": [row in calibrating for row in range(len(frame))]})
        result = fill(marked, target, task=task, source=name, random_labels=f"{target}_random")
        return replace(result, new=_with_labels(result.new, session, later)), str(result.guarantee)
    result = fill(frame, target, task=task, source=name)
    return result, f"{result.guarantee} {_ground(session)}"


def _with_labels(new: pd.DataFrame, session: Session, rows: list[int]) -> pd.DataFrame:
    """Return the new columns with the labels of rows that were kept out of the fit."""
    target, new = session.table.target, new.copy()
    for row in rows:
        label = session.state.labels.get(row)
        if label is not None:
            new.loc[new.index[row], :] = None
            new.loc[new.index[row], [f"{target}_filled", f"{target}_status"]] = [label, "given"]
    return new


def _ground(session: Session) -> str:
    """Return on what ground the plain guarantee stands."""
    state = session.state
    n_random = sum(row in state.labels for row in state.drawn)
    others = len(state.labelled) - n_random
    if others == 0:
        return "All labels are random draws of this session, as the guarantee assumes."
    return (
        "This guarantee assumes that chance chose the labelled rows, and it did not: "
        f"{counted(n_random, 'label')} of {len(state.labelled):,} are random draws, the others were chosen. "
        "Take the intervals and sets as approximate. The certificates of recall and of wrong answers do not need "
        "this assumption."
    )
