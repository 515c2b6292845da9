"""What a session is to reach, and how it is opened."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.core import checks
from transduce.labelling.journal import Header, Journal, Label
from transduce.labelling.prepare import Prepared
from transduce.labelling.state import State, replay
from transduce.labelling.table import LabelTable, given_labels

HITS = ("yes", "true", "relevant", "positive", "include", "included", "1", "spam", "hit")


@dataclass(frozen=True)
class Settings:
    """What a session is to reach, and how.

    Parameters
    ----------
    recall : float, default=0.95
        Share of the wanted rows to be found.
    certainty : float, default=0.95
        How certain that is to be.
    wrong_share : float, default=0.05
        Share of the answers that may be wrong.
    confidence : float, default=0.9
        Level of intervals of numbers.
    task : {"auto", "classes", "numbers"}, default="auto"
        What labels are.
    seed : int, optional
        Of the random draws; by default one that nobody knows beforehand.
    prepared : Prepared, optional
        Features and graph, if they are there already.

    Examples
    --------
    >>> from transduce.labelling import Settings
    >>> Settings(recall=0.9).certainty
    0.95
    """

    recall: float = 0.95
    certainty: float = 0.95
    wrong_share: float = 0.05
    confidence: float = 0.9
    task: str = "auto"
    seed: int | None = None
    prepared: Prepared | None = None


def open_state(table: LabelTable, journal: Journal, settings: Settings, task: str | None) -> State:
    """Return where a session stands: a replay of its journal, or the beginning of a new one."""
    given, found = given_labels(table, task or settings.task)
    if journal.header is None:
        journal.begin(
            Header(
                table=table.name,
                digest=table.digest,
                n_rows=table.n_rows,
                target=table.target,
                task=found,
                seed=secrets.randbits(48) if settings.seed is None else settings.seed,
                recall=settings.recall,
                certainty=settings.certainty,
            )
        )
    header = journal.header
    assert header is not None
    _check_header(header, table, settings, journal.path)
    return replay(
        header, given if found == header.task else given_labels(table, header.task)[0], journal.events
    )


def journal_path(table: LabelTable) -> Path | None:
    """Return where the journal of a table lies: beside it; None for a frame."""
    if table.path is None:
        return None
    stem = table.path.name.split(".")[0] or "table"
    column = re.sub(r"\W+", "-", table.target).strip("-") or "column"
    return table.path.with_name(f"{stem}-{column}-labels.jsonl")


def as_path(journal: str | Path | None) -> Path | None:
    """Return the name of a file as a path."""
    return None if journal is None else Path(journal)


def default_wanted(classes: Sequence[Label], given: Mapping[int, Label]) -> Label:
    """Return which of two classes is likely to be wanted; None if there are more."""
    if len(classes) != 2:
        return None
    for label in classes:
        if str(label).casefold() in HITS:
            return label
    counts = [sum(other == label for other in given.values()) for label in classes]
    return classes[1] if counts[1] < counts[0] else classes[0]


def checked(settings: Settings) -> Settings:
    """Return settings, or raise a ValueError that says which is wrong."""
    for name in ("recall", "certainty", "wrong_share", "confidence"):
        if name != "recall" or settings.recall != 1.0:
            checks.check_share(name, getattr(settings, name))
    if settings.seed is not None:
        checks.check_whole("seed", settings.seed, least=0)
    return settings


def differing(header: Header, settings: Settings) -> list[str]:
    """Return, as sentences, which settings a session cannot take, because it was begun with others.

    A level that is chosen after looking would not be the level of the certificate.
    """
    return [
        f"The session was begun with {name}={getattr(header, name):g} and keeps it; {getattr(settings, name):g} was "
        "asked for."
        for name in ("recall", "certainty")
        if getattr(header, name) != getattr(settings, name)
    ]


def _check_header(header: Header, table: LabelTable, settings: Settings, path: Path | None) -> None:
    """Raise a ValueError if a journal belongs to another table, or to other settings."""
    name = path.name if path is not None else "the journal"
    if header.digest != table.digest or header.n_rows != table.n_rows:
        raise ValueError(
            f"{table.name} has changed since {name} was begun: put the old table back, or move the journal away to "
            "begin anew."
        )
    if header.target != table.target:
        raise ValueError(
            f"{name} is about the column {header.target!r}, not {table.target!r}: name another journal."
        )
    if settings.seed is not None and settings.seed != header.seed:
        raise ValueError(
            f"{name} was begun with the seed {header.seed}: leave the seed out to go on with it."
        )
