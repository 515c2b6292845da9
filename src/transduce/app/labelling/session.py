"""A labelling session.

Rows are proposed and judged, the rest is answered, and certificates say when to stop.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from transduce.app.labelling.certificates import Certificates, certify
from transduce.app.labelling.journal import Event, Journal, Label, now, pack
from transduce.app.labelling.samples import (
    AGAIN,
    DRAW,
    SampleRequest,
    draw_sample,
    judged_before,
    read_draw,
)
from transduce.app.labelling.state import MODES, Answers, Proposal, State, check_goal, open_state
from transduce.app.labelling.table import (
    LabelTable,
    as_class,
    as_number,
    choose_classes,
    given_labels,
    read_label_table,
    read_predictions,
    spelled_like,
)
from transduce.app.tables.databases import database_address
from transduce.app.tables.nested import fields_below
from transduce.core import checks
from transduce.core.computing import few_threads, show_progress
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import OptionError, counted, quoted

# What compares all rows is imported when that begins: the first row needs none of it.
if TYPE_CHECKING:
    from transduce.app.labelling.model import Model
    from transduce.app.labelling.prepared import Prepared
    from transduce.conformal.designs import Design


@dataclass(frozen=True)
class SessionSettings:
    """What a session is to reach, and how.

    Parameters
    ----------
    recall, certainty : float, default=0.95
        Share of the wanted rows to be found, and how certain that is to be.
    wrong_share, confidence : float, default=0.05 and 0.9
        Share of the answers that may be wrong, and level of intervals of numbers.
    task : {"auto", "classes", "numbers"}, default="auto"
        What labels are.
    seed : int, optional
        Of the random draws; by default one that cannot be known beforehand.
    prepared : Prepared, optional
        Features and graph, if they are there already.
    labels_by_class : bool, default=False
        Whether the table's labels were chosen by their class: answers are then for the shares of
        the other rows.
    ignore, text, number : sequence of str, optional
        Columns that no answer may rest on, that are read word by word, and as numbers, as those of
        `transduce.fill`.
    minimum, maximum : float, optional
        The least and the largest number that a label can be.
    first : sequence of int, optional
        Rows to propose first where rows are to teach, such as those that `FillResult.advice` names.
    wait : bool, default=True
        Whether to wait until all rows are compared; until then rows come in a random order, without
        answers.
    tolerance : float, optional
        How far a number predicted elsewhere may be off and still count as right.
    person : str, default=""
        Who decides, for the journal.
    sample : SampleRequest, optional
        Predictions made elsewhere: rows to be drawn from each predicted class and judged first.
    again : str, optional
        The target of another session on the same table, whose rows are judged here again.

    Examples
    --------
    >>> from transduce.app.labelling import SessionSettings
    >>> SessionSettings(recall=0.9).certainty
    0.95
    """

    recall: float = 0.95
    certainty: float = 0.95
    wrong_share: float = 0.05
    confidence: float = 0.9
    task: str = "auto"
    seed: int | None = None
    prepared: Prepared | None = None
    labels_by_class: bool = False
    ignore: Sequence[ColumnName] = ()
    text: Sequence[ColumnName] = ()
    number: Sequence[ColumnName] = ()
    minimum: float | None = None
    maximum: float | None = None
    first: Sequence[int] = ()
    wait: bool = True
    tolerance: float | None = None
    person: str = ""
    sample: SampleRequest | None = None
    again: str | None = None

    def __post_init__(self) -> None:
        for name in ("recall", "certainty", "wrong_share", "confidence"):
            if name != "recall" or self.recall != 1.0:
                checks.check_share(name, getattr(self, name))
        if self.seed is not None:
            checks.check_whole("seed", self.seed, least=0)
        for row in self.first:
            checks.check_whole("first", row, least=0)
        if self.tolerance is not None:
            checks.check_not_negative("tolerance", self.tolerance, "a number from 0")
        checks.check_type("person", self.person, str, "a name, as text")

    def reading(self, table: LabelTable) -> dict[str, list[ColumnName]]:
        """Return how the columns that a table has are read, as options of `transduce.fill`."""
        named = {"ignore": self.ignore, "text": self.text, "number": self.number}
        others = [name for name in table.frame.columns if name != table.target]
        return {
            how: [name for name in fields_below(others, names) if name in others]
            for how, names in named.items()
        }

    def check_number(self, number: float) -> None:
        """Raise a ValueError if a label is a number that is not possible."""
        if self.minimum is not None and number < self.minimum:
            raise ValueError(
                f"{number:g} is below {self.minimum:g}, the least value that is possible."
            )
        if self.maximum is not None and number > self.maximum:
            raise ValueError(
                f"{number:g} is above {self.maximum:g}, the largest value that is possible."
            )


AND = ", "  # between the names of several columns of predictions


def as_columns(predictions: str | Sequence[str] | None) -> list[str]:
    """Return the columns that hold predictions: none, one, or one for each class."""
    if predictions is None:
        return []
    if isinstance(predictions, str):
        return [predictions]
    return list(predictions)


def as_name_part(name: str) -> str:
    """Return a name, such as CD4/CD8, as it may stand in that of a file."""
    return re.sub(r"[^\w]+", "-", name).strip("-") or "table"


def journal_path(table: LabelTable) -> Path | None:
    """Return where the journal of a table lies: beside it; None for a frame."""
    if table.path is None:
        return None
    # Two tables that differ in another ending than .csv have two journals.
    parts = [table.path.name.removesuffix(".csv"), table.target]
    if table.source is not None:
        address = database_address(table.source.name)
        of_database = address.table if address is not None else None
        parts.insert(1, table.source.sheet or of_database or "")
    words = [as_name_part(part) for part in parts if part]
    return table.path.with_name(f"{'-'.join(words)}-labels.jsonl")


def differing(state: State, settings: SessionSettings) -> list[str]:
    """Return, as sentences, which settings a session cannot take: it was begun with others."""
    # A level that is chosen after looking would not be the level of the certificate.
    levels = [
        (name, getattr(state, name), getattr(settings, name)) for name in ("recall", "certainty")
    ]
    words = "The session was begun with {}={:g} and keeps it; {:g} was asked for."
    notes = [words.format(name, begun, asked) for name, begun, asked in levels if begun != asked]
    header = state.header
    if settings.task not in ("auto", header.task):
        notes.append(
            f"The session was begun with {header.task} and keeps them; "
            f"{settings.task} were asked for."
        )
    return notes


@dataclass(frozen=True)
class Exported:
    """The files written, and what is guaranteed of them.

    Parameters
    ----------
    labelled, certificate : Path
        The table with the labels, and what is certain, as text.
    filled, report : Path or None
        The table filled from the labels, and its report; None if it could not be filled.
    guarantee, verdict, grounds : str
        What is guaranteed of the filled table, or why it could not be filled; and the same in two
        parts, what and why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from transduce.app.labelling import Exported
    >>> labelled = Path("papers-labelled.csv")
    >>> certificate = Path("papers-certificate.txt")
    >>> Exported(labelled, certificate, None, None, "No label.").guarantee
    'No label.'
    """

    labelled: Path
    certificate: Path
    filled: Path | None
    report: Path | None
    guarantee: str
    verdict: str = ""
    grounds: str = ""


class Preparation:
    """All rows compared with each other.

    At once, or in a thread while the first of them are judged. Where it is not needed, as by those
    who check predictions, rows that cannot be compared are no reason to end.
    """

    def __init__(self, make: Callable[[], Model], *, wait: bool, needed: bool) -> None:
        self._make = make
        self.stage = "columns"
        self.share = 0.0
        self.model: Model | None = None
        self.error: Exception | None = None
        context = copy_context()  # so that notes name options as this session's user sets them
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)
        if not wait:
            self._thread.start()
        elif needed:
            self.model = make()
        else:
            self._run()

    def _run(self) -> None:
        try:
            with show_progress(self._hear):
                self.model = self._make()
        except Exception as error:  # rows can be labelled all the same
            self.error = error

    def _hear(self, stage: str, share: float) -> None:
        self.stage = stage
        self.share = share

    @property
    def words(self) -> str:
        """How far it is, or why there is none, in words; none once it is there."""
        if self.error is not None:
            return f"The rows cannot be compared: {self.error}"
        if self.model is None:
            return f"Comparing all rows: {self.stage}, {100 * self.share:.0f} %."
        return ""

    def join(self, seconds: float | None = None) -> bool:
        """Wait until it is done, so many seconds at most; return whether it is."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()


def _open_journal(journal: str | Path | None, table: LabelTable) -> Journal:
    """Return the journal with a name; "auto" is beside the table."""
    if journal == "auto":
        journal = journal_path(table)
    like = []
    if table.path is not None:
        like.append(table.path)
    if journal is None:
        return Journal(None, like)
    return Journal(Path(journal), like)


HELD_BACK = 30  # skipped rows come back after so many others
FEWEST_NUMBERS = 3  # labels that numbers are answered from


class Session:
    """Label a table by hand.

    After every label the rest is answered, and certificates say when to stop.
    A row that was drawn (mode "audit") stays drawn, also if it is skipped or undone, and is a hit
    until it is judged.

    Parameters
    ----------
    table : str, Path or pandas.DataFrame
        The table; it is never written.
    target : str
        The column to label; it need not exist yet. Labels that it has are kept.
    show : sequence of str, optional
        Columns that are shown and searched.
    classes : sequence, optional
        Classes; by default those that the table has, or yes and no.
    wanted : str, number or bool, optional
        The class to be found; by default of two the one that sounds like a hit, or the rarer one,
        and none if neither is.
    journal : str, Path, None or "auto", default="auto"
        File that everything is written to at once, and from which a session goes on; "auto" is
        ``NAME-TARGET-labels.jsonl`` beside the table. None, or "auto" for a frame: it is kept in
        memory only.
    predictions : str or sequence of str, optional
        A column of predictions made elsewhere, or one of probabilities for each class, whose
        likeliest class is the prediction. They are checked blindly: no column of them is shown or
        learnt from, a prediction is told once its row has a label, rows are drawn at random, and
        certificates say how many predictions are wrong and how frequent each class is.
    settings : SessionSettings, optional
        Recall, certainty, seed and the like.

    Attributes
    ----------
    table, state, preparation : LabelTable, State, Preparation
        The table; labels, draws and plans; and how far the comparison of all rows is.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce.app.labelling import Session
    >>> table = pd.DataFrame({"size": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2]})
    >>> session = Session(table, "large", classes=["yes", "no"])
    >>> for row, label in [(0, "no"), (3, "yes")]:
    ...     session.answer(label, row=row)
    >>> session.answers().values.tolist()  # places in the list of classes
    [1, 1, 1, 0, 0, 0]
    >>> session.propose("find").row in (4, 5)
    True
    """

    def __init__(  # noqa: PLR0913
        self,
        table: str | Path | pd.DataFrame | LabelTable,
        target: str,
        *,
        show: Sequence[str] = (),
        classes: Sequence[Label] = (),
        wanted: Label = None,
        journal: str | Path | None = "auto",
        predictions: str | Sequence[str] | None = None,
        settings: SessionSettings | None = None,
    ) -> None:
        self.settings = settings or SessionSettings()
        named = [as_class(label) for label in classes]
        if isinstance(table, LabelTable):
            self.table = table
        else:
            self.table = read_label_table(table, target, show)
        if max(self.settings.first, default=0) >= max(self.table.n_rows, 1):
            last = self.table.n_rows - 1
            raise ValueError(f"first names rows from 0 to {last}; got {max(self.settings.first)}.")
        self._journal = _open_journal(journal, self.table)
        task = None
        if named:
            task = "classes"
        if wanted is not None:
            wanted = as_class(wanted)
        asked = as_columns(predictions)
        try:
            if asked and task is None:
                task = self._task_of_predictions(asked, show)
            self.state = open_state(self.table, self._journal, self.settings, task)
            self._notes = differing(self.state, self.settings)
            self._follow_goals()
            if self._journal.note:
                self._notes.insert(0, self._journal.note)
            self._check_predictions(asked, named, wanted)
            self._begin_sample()
            self.preparation = Preparation(
                self._make_model,
                wait=self.settings.wait,
                needed=self.state.predictions is None,
            )
        except BaseException:
            self._journal.abandon()
            raise
        self._answers: tuple[int, Answers] | None = None
        self._proposal: Proposal | None = None
        self._recent: list[int] = []

    def _task_of_predictions(self, columns: Sequence[str], show: Sequence[str]) -> str | None:
        """Return what predictions are, where the table has no label that tells.

        None if the labels, or the settings, tell.
        """
        for column in columns:
            if column in show:
                raise OptionError(
                    f"{column!r} is hidden until a row has a label: show other columns."
                )
        labels, _ = given_labels(self.table, self.settings.task)
        if labels or self.settings.task != "auto":
            return None
        return read_predictions(self.table, columns, "auto")[1]

    def _check_predictions(
        self, columns: Sequence[str], classes: Sequence[Label], wanted: Label
    ) -> None:
        """Name the classes, and begin to check predictions, or go on with it."""
        checked = self.state.predictions
        asked = AND.join(columns)
        if checked is not None and columns and asked != checked.column:
            raise ValueError(
                f"The session checks the predictions of {checked.column!r}, not of {asked!r}: "
                "give another target, or name another journal."
            )
        if checked is not None and not columns:
            columns = [checked.column]
            if checked.column not in self.table.frame.columns:
                columns = checked.column.split(AND)
        if not columns:
            self._name_classes(classes, wanted)
            return
        self._hide([*columns, *self._columns_that_tell()])
        if checked is not None:
            self._name_classes(classes, wanted)
            return
        predictions, _ = read_predictions(self.table, columns, self.task)
        if self.task == "numbers":
            self._name_classes((), None)
            self._begin_check(asked, predictions)
            return
        known = [*self.state.classes, *classes, *self.state.given.values()]
        if not self.table.case_sensitive:
            predictions = spelled_like(predictions, known)
        predicted = sorted(set(predictions.values()), key=str)
        self._name_classes([*classes, *predicted], wanted)
        if wanted is None and self.state.wanted is not None and not self.state.drawn:
            self._record(Event("wanted", label=None))  # whoever checks searches for none
        self._begin_check(asked, predictions)

    def _begin_sample(self) -> None:
        """Write to the journal which rows are judged first, unless it is known already."""
        if self.state.sample is not None or self.state.decisions or self.state.drawn:
            if self.state.sample is None and (self.settings.sample or self.settings.again):
                self._notes.append(
                    "Rows were judged or drawn here before: which are judged first is not changed."
                )
            return
        sample = None
        if self.settings.again is not None:
            other = replace(self.table, target=self.settings.again)
            path = journal_path(other)
            if path is None:
                raise OptionError("Rows of a frame cannot be judged again: there is no journal.")
            sample = judged_before(path, self.table)
        elif self.settings.sample is not None:
            sample = draw_sample(
                self.table,
                self.state.pool,
                self.settings.sample,
                self.state.header.seed % 2**31,
            )
        elif self.state.predictions is not None:
            sample = read_draw(self.table)
        if sample is not None and sample.n_rows:
            self._record(sample.as_event())

    def _columns_that_tell(self) -> list[str]:
        """Return the columns that give a prediction away: those of draws, and others' labels."""
        named = [str(name) for name in self.table.frame.columns]
        endings = ("_random", "_random_seed", "_random_stratum", "_random_probability")
        columns = [name for name in named if name.endswith(endings)]
        others = self.settings.again
        if self.state.sample is not None and self.state.sample.kind == AGAIN:
            others = self.state.sample.origin
        if others is not None:
            columns += [name for name in named if name == others or name.startswith(f"{others}_")]
        return columns

    def _hide(self, columns: Sequence[str]) -> None:
        """Leave columns out of what is shown, searched and learnt from."""
        shown = [name for name in self.table.show if name not in columns]
        self.table = replace(self.table, show=shown)
        self.settings = replace(self.settings, ignore=[*self.settings.ignore, *columns])

    def _begin_check(self, column: str, predictions: Mapping[int, Label]) -> None:
        """Write the predictions to the journal, before any row is drawn to check them."""
        codes = self.state.codes_of(predictions)
        values: AnyArray = np.full(self.table.n_rows, -1, dtype=np.int16)
        tolerance = 0.0
        if self.task == "numbers":
            if self.settings.tolerance is None:
                raise OptionError(
                    "Say with tolerance how far a predicted number may be off and still count "
                    "as right."
                )
            tolerance = float(self.settings.tolerance)
            values = np.full(self.table.n_rows, np.nan)
        values[[*codes]] = [*codes.values()]
        n_empty = self.table.n_rows - len(codes)
        if n_empty:
            rows = counted(n_empty, "row has", "rows have")
            self._notes.append(f"{rows} no prediction in {column!r}: they count as wrong.")
        self._record(Event("check", number=tolerance, data=pack(values), proposer=column))
        if self.state.mode != "audit":
            self._record(Event("mode", mode="audit"))

    def _name_classes(self, classes: Sequence[Label], wanted: Label) -> None:
        """Add the classes that are not in the journal yet, and the class wanted."""
        state = self.state
        if self.task == "numbers":
            if state.mode == "find":
                self._record(Event("mode", mode="learn"))
            return
        fresh = not state.classes
        if fresh:
            classes, wanted = choose_classes(state.given, wanted, classes)
        for label in classes:
            if str(label) not in map(str, state.classes):
                self._record(Event("class", label=label))
        if wanted is not None:
            self.want(wanted)
        if fresh and state.wanted is None:
            self._record(Event("mode", mode="learn"))

    def _make_model(self) -> Model:
        from transduce.app.labelling import prepared as comparison
        from transduce.app.labelling.answering import estimate_shares_left
        from transduce.app.labelling.model import Model

        reading = self.settings.reading(self.table)
        prepared = self.settings.prepared
        if prepared is None:
            prepared = comparison.prepare(
                self.table,
                ignore=reading["ignore"],
                text=reading["text"],
                number=reading["number"],
            )
        shares_left = None
        if self.settings.labels_by_class and self.task == "classes":
            codes = self.state.codes_of(self.state.given)
            shares_left = estimate_shares_left(prepared.matrix, codes, len(self.classes))
        seed = self.state.header.seed
        return Model(prepared, self.task, self.settings.confidence, seed, shares_left)

    # ------------------------------------------------------------------------------------- looking

    @property
    def model(self) -> Model | None:
        """What proposes and answers rows; None until all rows are compared."""
        return self.preparation.model

    @property
    def prepared(self) -> Prepared | None:
        """Features, graph and map; None until they are there."""
        if self.model is None:
            return None
        return self.model.prepared

    @property
    def notes(self) -> list[str]:
        """What the user should be told."""
        if self.prepared is None:
            return list(self._notes)
        return [*self._notes, *self.prepared.notes]

    @property
    def task(self) -> str:
        """What labels are: "classes" or "numbers"."""
        return self.state.header.task

    @property
    def classes(self) -> list[Label]:
        """The classes, in the order of their keys."""
        return list(self.state.classes)

    @property
    def journal(self) -> Path | None:
        """The journal's file."""
        return self._journal.path

    @property
    def events(self) -> list[Event]:
        """All that happened, as the journal has it."""
        return self._journal.events

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    # ------------------------------------------------------------------------------------ deciding

    def _record(self, event: Event) -> None:
        """Write an event to the journal, then take it."""
        state = self.state
        event = replace(event, unlabelled=state.n_pool, hits=state.hits(), time=now())
        self._journal.append(event)
        state.apply(event)
        self._proposal = None

    def propose(self, mode: str | None = None) -> Proposal | None:
        """Return the row to judge next.

        A random draw is in the journal when it is returned, and is proposed again until it is
        judged or skipped.

        Parameters
        ----------
        mode : {"find", "learn", "audit"}, optional
            The mode in which rows are proposed from now on.

        Returns
        -------
        Proposal or None
            None if no row is left.
        """
        if mode is not None and mode != self.state.mode:
            checks.check_choice("mode", mode, MODES)
            if mode == "find" and self.task == "numbers":
                raise ValueError("Numbers are not searched for: choose 'learn' or 'audit'.")
            self._record(Event("mode", mode=mode))
        if self._proposal is None:
            with few_threads(
                0
            ):  # tall and thin products are bound by memory, and idle threads disturb them
                self._proposal = self._choose()
            if self._proposal is not None and self._proposal.row not in self._recent[-1:]:
                self._recent.append(self._proposal.row)
        return self._proposal

    def _choose(self) -> Proposal | None:
        state = self.state
        if state.revisit is not None and state.label_of(state.revisit) is None:
            return self._propose_again(state.revisit)
        first = state.open_sample()
        if first and state.sample is not None:
            reason = {DRAW: "sample", AGAIN: "again"}[state.sample.kind]
            number = state.sample.n_rows - len(first) + 1
            return Proposal(first[0], state.mode, reason, number, random=True)
        if state.n_pool == 0 and state.pending is None:
            waiting = state.doubtful
            if waiting:
                return Proposal(waiting[0], "audit", "skipped", random=True)
            return None
        if state.mode == "audit" or state.n_pool == 0:
            return self._draw()
        advised = [
            row for row in self.settings.first if state.pool[row] and row not in state.decisions
        ]
        if advised and state.mode == "learn":
            return Proposal(advised[0], "learn", "advised")
        free = self._free_rows()
        if self.model is None:
            # No search found it, so that it tells of all rows.
            random = np.random.default_rng([state.header.seed, state.n_events])
            place = random.integers(free.sum())
            return Proposal(int(np.flatnonzero(free)[place]), "learn", self._why_at_random)
        return self._choose_by_model(self.model, free)

    def _propose_again(self, row: int) -> Proposal:
        """Return a row whose label was taken back."""
        if self.state.was_drawn(row):
            return Proposal(row, "audit", "undone", random=True)
        return Proposal(row, self.state.mode, "undone")

    def _draw(self) -> Proposal:
        """Return the random draw that waits; where none does, a new one."""
        state = self.state
        if state.pending is None:
            size = 0
            if state.block_is_due:
                size = state.block_size(self.settings.confidence)
            if size:
                self._plan(size)
            self._record(Event("draw", row=state.next_draw(), mode="audit", random=True))
        assert state.pending is not None
        return Proposal(state.pending, "audit", "random", len(state.drawn), random=True)

    def _free_rows(self) -> Mask:
        """Return which rows may be proposed: those without a label that were not skipped lately."""
        state = self.state
        skipped = [row for row, decision in state.decisions.items() if decision.label is None]
        free = state.pool.copy()
        free[skipped[-HELD_BACK:]] = False
        if not free.any():
            return state.pool
        return free

    def _choose_by_model(self, model: Model, free: Mask) -> Proposal:
        state = self.state
        labelled = state.labelled
        if self.task == "classes" and state.mode == "find":
            hits = [row for row, label in labelled.items() if label == state.wanted]
            others = [row for row, label in labelled.items() if label != state.wanted]
            return model.find(free, hits, others)
        # Where nobody could tell, rows alike will not teach either.
        seen = {*labelled, *state.decisions}
        if self.task == "numbers":
            return model.widest(free, self.answers(), seen, self._recent)
        return model.learn(free, seen, self.answers(), self._recent)

    def answer(self, label: Label, *, row: int | None = None) -> None:
        """Label a row, or change its label, which is on disk when this returns.

        Parameters
        ----------
        label : object
            A class, or a number.
        row : int, optional
            The row, by default the one that is proposed.
        """
        label = self._read_label(label)
        current = self._proposal
        if row is None:
            current = self.propose()
            if current is not None:
                row = current.row
        row = self._read_row(row)
        is_drawn = self.state.was_drawn(row)
        mode = "chosen"
        if is_drawn:
            mode = "audit"
        elif current is not None and current.row == row:
            mode = current.mode
        kind = "change"
        if self.state.label_of(row) is None:
            kind = "answer"
        event = Event(kind, row=row, label=label, mode=mode, random=is_drawn)
        event = replace(event, decider=self.settings.person)
        if self.state.predictions is not None:
            column = self.state.predictions.column
            event = replace(event, proposed=self.state.prediction_at(row), proposer=column)
        self._record(event)

    def skip(self) -> None:
        """Leave the proposed row without a label.

        A random draw that is skipped counts as a hit until it is judged.
        """
        current = self.propose()
        if current is None:
            raise ValueError("There is no row to skip.")
        drawn = self.state.was_drawn(current.row)
        self._record(Event("skip", row=current.row, mode=current.mode, random=drawn))

    def undo(self) -> int:
        """Take back the last label, skip or change.

        Returns
        -------
        int
            Its row.
        """
        if not self.state.undoable:
            raise ValueError("There is nothing to undo.")
        row = self.state.undoable[-1][0].row
        self._record(Event("undo", row=row))
        return row

    def _read_row(self, row: int | None) -> int:
        whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if row is None or not whole or not 0 <= row < self.table.n_rows:
            raise ValueError(
                f"There is no row {quoted(row)}: rows count from 0 to {self.table.n_rows - 1}."
            )
        return int(row)

    def _read_label(self, label: Label) -> Label:
        """Return a label as it is kept."""
        if self.task == "numbers":
            if isinstance(label, bool):
                raise ValueError(f"label must be a number; got {quoted(label)}.")
            number = as_number(label, self.table.decimal)
            self.settings.check_number(number)
            return number
        alike = [
            label_of_class
            for label_of_class in self.classes
            if label is not None and str(label_of_class) == str(label)
        ]
        if not alike:
            names = ", ".join(map(repr, self.classes))
            raise ValueError(
                f"There is no class {quoted(label)}: choose one of {names}, or add it first."
            )
        return alike[0]

    def add_class(self, name: str) -> None:
        """Add a class.

        Parameters
        ----------
        name : str
            Its name.
        """
        checks.check_type("name", name, str, "the name of a class, as text")
        name = name.strip()
        if self.task == "numbers" or not name or name in map(str, self.state.classes):
            raise ValueError(f"{quoted(name)} cannot be added as a class.")
        self._record(Event("class", label=name))

    def want(self, label: Label) -> None:
        """Say which class is to be found; only before the first random draw.

        Parameters
        ----------
        label : object
            The class.
        """
        label = self._read_label(label)
        if self.state.drawn and label != self.state.wanted:
            raise ValueError(
                "The class to be found cannot change after the first random draw, because its "
                "certificate would not hold: start a new session to find another class."
            )
        if label != self.state.wanted:
            self._record(Event("wanted", label=label))

    def set_goal(self, name: str, value: float) -> None:
        """Change a goal.

        Certificates hold at every look for all shares at once, so that only their certainty must
        not change once a row was drawn at random.

        Parameters
        ----------
        name : {"recall", "certainty", "wrong_share", "confidence"}
            The goal.
        value : float
            A share between 0 and 1.
        """
        check_goal(self.state, name, value)
        if value == self.goals[name]:
            return
        self._record(Event("goal", mode=name, number=float(value)))
        self._follow_goals()
        if name == "confidence" and self.model is not None:
            self.model.set_confidence(value, self.state.header.seed)
            self._answers = None

    @property
    def goals(self) -> dict[str, float]:
        """What is to be reached, by name."""
        return {
            "recall": self.state.recall,
            "certainty": self.state.certainty,
            "wrong_share": self.settings.wrong_share,
            "confidence": self.settings.confidence,
        }

    def _follow_goals(self) -> None:
        """Take the goals that the journal has."""
        goals = self.state.goals
        self.settings = replace(
            self.settings,
            wrong_share=goals.get("wrong_share", self.settings.wrong_share),
            confidence=goals.get("confidence", self.settings.confidence),
        )

    def freeze(self, tolerance: float | None = None) -> None:
        """Freeze the current predictions: further random draws bound how many are wrong.

        Parameters
        ----------
        tolerance : float, optional
            Numbers: a prediction is wrong if it is off by more than this.
        """
        if self.no_answers:
            raise ValueError(f"There are no answers to freeze. {self.no_answers}")
        values = self.answers(everywhere=True).values
        if self.task == "numbers":
            if tolerance is None:
                raise ValueError(
                    "Give a tolerance: how far a number may be off and still count as right."
                )
            checks.check_not_negative("tolerance", tolerance, "a number from 0")
            values = values.astype(np.float64)
        else:
            values = values.astype(np.int16)
        data = pack(values)
        self._record(Event("freeze", number=float(tolerance or 0.0), data=data))

    def plan_draws(self, count: int) -> None:
        """Fix how many of the next random draws are used for calibration.

        Parameters
        ----------
        count : int
            For 90 % at least 9, and usually 39; for 95 % at least 19, and usually 79.
        """
        checks.check_whole("count", count, least=1)
        if count > self.state.n_pool:
            raise ValueError(
                f"{count} draws are more than the {self.state.n_pool} rows that are left."
            )
        if self.state.pending is not None:
            raise ValueError(
                "A random draw is waiting: judge it first, then fix the number of new draws."
            )
        self._plan(count)

    def _plan(self, count: int) -> None:
        """Write down how many draws calibrate, and at which level, before the first is made."""
        self._record(Event("plan", number=float(count), level=self.settings.confidence))

    # ------------------------------------------------------------------------------------- knowing

    def _class_shares(self, model: Model) -> Array | None:
        """Return a guess of each class's share in all rows; None for numbers."""
        if self.task == "numbers":
            return None
        state = self.state
        # Labels that were chosen by class say nothing of the shares, until draws or a search do.
        if model.shares_left is None or state.tells_shares:
            return state.class_shares()
        added = len(state.classes) - len(model.shares_left)
        return state.class_shares(np.append(model.shares_left, np.zeros(added)))

    def _unanswered(self) -> Answers:
        """Return the labels alone: rows are not compared yet, or cannot be."""
        certain = np.full(self.table.n_rows, np.nan)
        codes = self.state.codes()
        values: AnyArray = np.full(len(certain), -1, dtype=np.int16)
        if self.task == "numbers":
            values = certain.copy()
        values[[*codes]] = [*codes.values()]
        source = "nobody yet: all rows are being compared"
        if self.preparation.error is not None:
            source = "nobody: the rows cannot be compared"
        return Answers(values, certain, source)

    @property
    def _why_at_random(self) -> str:
        """Why rows that are to teach come in a random order."""
        if self.preparation.error is not None:
            return "incomparable"
        return "early"

    def named(self, values: AnyArray) -> AnyArray:
        """Return values of `Answers` as classes or numbers.

        Parameters
        ----------
        values : array
            Places in ``classes``, or numbers.

        Returns
        -------
        array
            None or NaN where there is no prediction.
        """
        if self.task == "numbers":
            return np.asarray(values, dtype=float)
        return np.array([*self.classes, None], dtype=object)[np.asarray(values, dtype=np.int64)]

    def answers(self, *, everywhere: bool = False) -> Answers:
        """Return the current predictions at all rows.

        Parameters
        ----------
        everywhere : bool, default=False
            Whether numbers are renewed at all rows of a very large table, which may take seconds.

        Returns
        -------
        Answers
        """
        if self.model is None:
            return self._unanswered()
        version = self.state.version
        if everywhere or self._answers is None or self._answers[0] != version:
            shares = self._class_shares(self.model)
            answers = self.model.answer(self.state.codes(), shares, everywhere=everywhere)
            self._answers = (version, answers)
        return self._answers[1]

    @property
    def no_answers(self) -> str:
        """Why there are no answers yet, as a sentence; empty if there are some."""
        if self.model is None:
            return self.preparation.words
        if self.task == "numbers":
            few = len(self.state.labelled) < FEWEST_NUMBERS
            if few:
                return f"Label {FEWEST_NUMBERS} rows first."
            return ""
        if len(set(self.state.labelled.values())) > 1:
            return ""
        return "Label rows of two classes first."

    def certificate(self) -> Certificates:
        """Return what is certain now, however often it was looked at before.

        Returns
        -------
        Certificates
        """
        return certify(self.state, self.settings.wrong_share)

    def to_fill(self) -> tuple[pd.DataFrame, Design]:
        """Return the table with the labels that were given, and how they came about.

        Both are for `transduce.fill`. With a complete block of random draws a column
        ``TARGET_random`` marks them, and labels that came after it are left out; without one all
        labels are there, and the odds of being labelled are estimated.

        Returns
        -------
        pandas.DataFrame, Design
        """
        from transduce.app.labelling.export import table_to_fill

        return table_to_fill(self)

    def export(self, folder: str | Path | None = None, *, force: bool = False) -> Exported:
        """Write the labels, and the table filled from them, beside the table or into a folder.

        Parameters
        ----------
        folder : str or Path, optional
            Where the files go; needed if the table is a frame.
        force : bool, default=False
            Whether files that exist may be replaced.

        Returns
        -------
        Exported
        """
        if folder is not None:
            target = Path(folder)
        elif self.table.path:
            target = self.table.path.parent
        else:
            target = None
        if target is None:
            raise ValueError("The table is a frame: say into which folder to export.")
        from transduce.app.labelling.export import write_files

        name = "table.csv" if self.table.path is None else self.table.name
        return write_files(self, target / name, force=force)
