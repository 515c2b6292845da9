"""Where a session stands.

What a replay of its journal gives, and the counts that certificates need.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.app.labelling.certificates import Audit, Draws
from transduce.app.labelling.journal import Event, Header, Journal, Label, unpack
from transduce.app.labelling.samples import Sample
from transduce.app.labelling.table import LabelTable, given_labels
from transduce.core import checks
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Array

if TYPE_CHECKING:
    from transduce.app.labelling.session import SessionSettings

MODES = ("find", "learn", "audit")
GOALS = ("recall", "certainty", "wrong_share", "confidence")
ENOUGH_DRAWS = 10
LATE = 20
TEACHING = 10  # labels that a fit needs before draws can calibrate it
# A block has so many times as many draws as its level takes, 39 for 90 % and 79 for 95 %, but fewer
# than a quarter of the rows.
BLOCK = 4


@dataclass(frozen=True)
class Proposal:
    """A row to judge.

    Parameters
    ----------
    row, mode : int, {"find", "learn", "audit"}
        The row, and how it was chosen.
    reason : str
        Why, in a word: "likeliest", "teaches", "diverse", "widest", "advised", "random", "sample",
        "again", "undone" or "skipped"; before rows are compared "early", and where they cannot be
        "incomparable".
    value : float
        A number that belongs to the reason: the share of the uncertainty, the width, the number of
        the draw.
    random : bool
        Whether chance chose it.

    Examples
    --------
    >>> from transduce.app.labelling import Proposal
    >>> Proposal(3, "audit", "random", random=True).random
    True
    """

    row: int
    mode: str
    reason: str
    value: float = 0.0
    random: bool = False


@dataclass(frozen=True, eq=False)
class Answers:
    """An answer at every row."""

    values: AnyArray  # (n,) the number, or the place of the class in the list of classes
    certain: Array  # (n,) larger where the answer is more certain
    source: str  # who answered
    lower: Array | None = (
        None  # (n,) where the intervals of numbers begin; NaN where there is none yet
    )
    upper: Array | None = None  # (n,) where they end


@dataclass(frozen=True)
class Decision:
    """One row that the person judged or skipped, as it stands now."""

    row: int  # the row
    label: Label  # its label; None if it was skipped
    mode: str  # how it came up
    random: bool  # whether it was a random draw
    changed: bool = False  # whether the label was changed since


@dataclass(frozen=True, eq=False)
class Freeze:
    """Answers that were frozen, so that the wrong ones among them can be counted."""

    first_draw: int  # draws made before
    values: AnyArray  # (n,) an answer at each row
    tolerance: float  # how far a number may be off and still count as right
    time: str  # when


@dataclass(frozen=True, eq=False)
class GivenPredictions(Freeze):
    """Predictions made elsewhere that are checked: a column of the table, frozen from the start."""

    column: str  # its name


@dataclass(frozen=True)
class PlannedDraws:
    """A block of random draws, whose labels calibrate intervals or sets.

    Their number is fixed before the first of them.
    """

    # Nothing that is seen after its last draw changes which rows it is about.
    count: int  # draws planned
    first_draw: int  # draws made before
    spoilt: bool = (
        False  # whether, before the last of them, another row was labelled, or lost its label
    )
    level: float = 0.0  # of the intervals or sets; 0 if it is not known
    searched: bool = False  # the same, after the last of them
    began: int = 0  # events of the journal before the first of them
    ended: int = 0  # events up to the last of them; 0 until it is made
    teaching: int = (
        0  # draws, the first of them, that are to teach, since too few labels were there before
    )
    aside: int = (
        0  # rows that had been drawn before and had no label: they count as the worst possible, too
    )
    labelled: frozenset[int] = frozenset()  # rows that had a label before the first of them


def drawn_place(seed: int, number: int, count: int) -> int:
    """Give which of `count` rows is drawn.

    A hash of the seed and the number of the draw, so that all can check it.
    """
    return int(hashlib.sha256(f"transduce draw {seed} {number}".encode()).hexdigest(), 16) % count


@dataclass(eq=False)
class State:
    """The labels, draws, skips and plans of a session; every change goes through `apply`."""

    header: Header  # what the session is about
    given: Mapping[int, Label]  # labels that the table has already
    labels: dict[int, Label] = field(default_factory=dict)
    decisions: dict[int, Decision] = field(default_factory=dict)
    drawn: list[int] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    pending: int | None = None
    revisit: int | None = None
    classes: list[Label] = field(default_factory=list)
    wanted: Label = None
    mode: str = "find"
    freezes: list[Freeze] = field(default_factory=list)
    predictions: GivenPredictions | None = None
    first_answers: dict[int, Label] = field(default_factory=dict)  # before a prediction was seen
    plan: PlannedDraws | None = None  # the block that was begun last
    block: PlannedDraws | None = None  # the last one that is complete
    n_blocks: int = 0  # begun
    n_events: int = 0
    version: int = 0  # of the labels
    sample: Sample | None = None  # rows that are judged first
    goals: dict[str, float] = field(default_factory=dict)  # those changed since the session began

    def __post_init__(self) -> None:
        self.pool = np.ones(self.header.n_rows, dtype=bool)  # rows that can be drawn
        self.pool[list(self.given)] = False
        self.n_pool = int(self.pool.sum())
        self._left: dict[
            int, int
        ] = {}  # rows that left the pool, and how many draws had been made then
        self._returned: list[
            tuple[int, int, int]
        ] = []  # rows that came back: row, and between which draws
        self.undoable: list[tuple[Event, Decision | None, Label]] = []  # with what was there before

    # ------------------------------------------------------------------------------------- reading

    def label_of(self, row: int) -> Label:
        """Return a row's label, the person's before the table's; None if it has none."""
        if row in self.labels:
            return self.labels[row]
        return self.given.get(row)

    @property
    def recall(self) -> float:
        """The share of the wanted rows that is to be found."""
        return self.goals.get("recall", self.header.recall)

    @property
    def certainty(self) -> float:
        """The probability that no certificate, at any time, is wrong."""
        return self.goals.get("certainty", self.header.certainty)

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers, not classes."""
        return self.header.task == "numbers"

    def was_drawn(self, row: int) -> bool:
        """Return whether a row was drawn at random."""
        return row in self.drawn

    @property
    def doubtful(self) -> list[int]:
        """Rows that were drawn and are not labelled."""
        return [row for row in self.drawn if row not in self.labels]

    @property
    def labelled(self) -> dict[int, Label]:
        """All labels there are, the person's and the table's."""
        return {**self.given, **self.labels}

    def drawn_in(self, block: PlannedDraws | None) -> list[int]:
        """Return the rows drawn so far that belong to a block."""
        if block is None:
            return []
        return self.drawn[block.first_draw :][: block.count]

    def labelled_since(self, block: PlannedDraws) -> list[int]:
        """Return the rows that got a label after a block was begun, and are none of its draws."""
        known = block.labelled | set(self.drawn_in(block))
        return [row for row in self.labels if row not in known]

    def calibrating(self, block: PlannedDraws, level: float) -> list[int]:
        """Return those of the rows drawn so far that calibrate.

        Without the first, where these are to teach.
        """
        return self.drawn_in(block)[
            max(min(block.teaching, block.count - fewest_calibration(level)), 0) :
        ]

    @property
    def n_teaching(self) -> int:
        """How many of the next draws are to teach before others calibrate.

        Labels are too few, or of one class.
        """
        labels = self.labelled
        varied = self.numbers or len(set(labels.values())) > 1
        if varied and len(labels) >= TEACHING:
            return 0
        return TEACHING

    def block_size(self, level: float) -> int:
        """Return how many draws calibrate unless another number is fixed before the first.

        0 if rows are too few.
        """
        least = fewest_calibration(level)
        sizes = [times * (least + 1) - 1 for times in range(BLOCK, 0, -1)]
        size = next((size for size in sizes if 4 * size <= self.n_pool), least)
        size = max(size, least + self.n_teaching)
        if 2 * size <= self.n_pool:
            return size
        return 0

    @property
    def block_is_due(self) -> bool:
        """Whether the next draw begins a block.

        The first of all, and the first after rows were labelled on purpose.
        """
        return self.plan is None or self.plan.spoilt or self.plan.searched

    def open_sample(self) -> list[int]:
        """Return the rows of the sample that nobody has judged or skipped, in their order."""
        if self.sample is None:
            return []
        rows = self.sample.in_order(self.header.seed).tolist()
        return [row for row in rows if self.label_of(row) is None and row not in self.decisions]

    def in_sample(self, row: int) -> bool:
        """Return whether a row is among those that are judged first."""
        return self.sample is not None and bool(self.sample.codes[row] % 2)

    @property
    def saw_draws(self) -> bool:
        """Whether a row that chance chose was judged or skipped, even if that was taken back."""
        if any(self.in_sample(row) for row in (*self.first_answers, *self.decisions)):
            return True
        if self.drawn in ([], [self.pending]):
            return any(row in self.first_answers for row in self.drawn)
        return True

    def count(self, is_hit: Callable[[int, Label], bool]) -> int:
        """Return how many labelled rows are hits."""
        return sum(is_hit(row, label) for row, label in self.labelled.items())

    def hits(self) -> int:
        """Return how many rows of the wanted class are known."""
        return self.count(self.is_wanted)

    def _searched(self) -> list[bool]:
        """Return whether each proposal of the search was a hit, in their order."""
        labels = (decision.label for decision in self.decisions.values() if decision.mode == "find")
        return [label == self.wanted for label in labels if label is not None]

    @property
    def n_misses(self) -> int:
        """How many of the last proposals of the search, in a row, were no hits."""
        hits = self._searched()
        if True in hits:
            return hits[::-1].index(True)
        return len(hits)

    @property
    def hit_was_drawn(self) -> bool:
        """Whether a random draw turned out to be of the wanted class."""
        return any(self.labels.get(row) == self.wanted for row in self.drawn)

    def left_to_find(self) -> float | None:
        """Return an estimate of how many wanted rows have no label.

        None before draws, or a search's misses, tell.
        """
        late = self._searched()[-LATE:]
        judged = sum(row in self.labels for row in self.drawn)
        tells = judged >= ENOUGH_DRAWS or (len(late) == LATE and 2 * sum(late) <= LATE)
        if self.wanted is None or len(self.classes) < 2 or not tells:
            return None
        return float(self.shares_left()[self.places[self.wanted]]) * (
            self.header.n_rows - len(self.labelled)
        )

    def prediction_at(self, row: int) -> Label:
        """Return what was predicted elsewhere for a row; None if nothing was."""
        if self.predictions is None:
            return None
        value = self.predictions.values[row]
        if self.numbers:
            if np.isnan(value):
                return None
            return float(value)
        if value < 0:
            return None
        return self.classes[value]

    @property
    def n_changed(self) -> int:
        """How many labels differ from the first answer: the prediction had been seen by then."""
        firsts = self.first_answers
        return sum(row in firsts and firsts[row] != label for row, label in self.labels.items())

    def next_draw(self) -> int:
        """Return the row that is drawn next."""
        return int(
            np.flatnonzero(self.pool)[drawn_place(self.header.seed, len(self.drawn), self.n_pool)]
        )

    @property
    def places(self) -> dict[Label, int]:
        """The place of each class in the list of classes."""
        return {label: code for code, label in enumerate(self.classes)}

    def codes(self) -> dict[int, Any]:
        """Return all labels there are: numbers, or places in the list of classes."""
        return self.codes_of(self.labelled)

    def codes_of(self, labels: Mapping[int, Label]) -> dict[int, Any]:
        """Return labels by row as numbers, or as places in the list of classes."""
        if self.numbers:
            return dict(labels)
        places = self.places
        return {row: places[label] for row, label in labels.items()}

    def class_shares(self, left: Array | None = None) -> Array:
        """Return a guess of each class's share in all rows.

        `left` holds the shares in the rows without a label; by default they are guessed, too.
        """
        codes = list(self.codes().values())
        known = np.bincount(codes, minlength=len(self.classes)).astype(float)
        if left is None:
            left = self.shares_left()
        return (known + (self.header.n_rows - known.sum()) * left) / self.header.n_rows

    @property
    def tells_shares(self) -> bool:
        """Whether random draws, or a search, tell the shares of the classes."""
        n_judged = sum(row in self.labels for row in self.drawn)
        n_searched = sum(decision.mode == "find" for decision in self.decisions.values())
        return n_judged >= ENOUGH_DRAWS or n_searched >= LATE

    def shares_left(self) -> Array:
        """Return a guess of each class's share in the rows without a label."""
        # Random draws tell it, if there are enough; else all labels except those of rows that a
        # search proposed. These are mostly hits, and say how many are left in another way.
        drawn = [self.labels[row] for row in self.drawn if row in self.labels]
        if len(drawn) >= ENOUGH_DRAWS:
            return self._shares_of(drawn)
        proposed = [row for row, decision in self.decisions.items() if decision.mode == "find"]
        searched = set(proposed)
        unsearched = [label for row, label in self.labelled.items() if row not in searched]
        shares = self._shares_of(unsearched)
        late = [self.labels[row] for row in proposed[-LATE:] if row in self.labels]
        n_left = self.header.n_rows - len(self.labelled)
        if late and n_left and self.wanted is not None and len(self.classes) > 1:
            wanted = self.places[self.wanted]
            ahead = self._share_ahead(late, n_left)
            total = len(unsearched) * shares[wanted] + len(late) * ahead
            mean = total / (len(unsearched) + len(late))
            shares *= (1.0 - mean) / (1.0 - shares[wanted])
            shares[wanted] = mean
        return shares

    def _shares_of(self, labels: list[Label]) -> Array:
        """Return the share of each class in labels, half a label added to each."""
        places = self.places
        codes = [places[label] for label in labels]
        counts = np.bincount(codes, minlength=len(places)) + 0.5
        return np.asarray(counts / counts.sum())

    def _share_ahead(self, late: list[Label], n_left: int) -> float:
        """Return the share of hits left to a search, from the labels of its last proposals."""
        # If a share r of them were hits, a search whose hits thin out evenly finds about
        # r / (1 - r) times as many rows again, but no more hits than before.
        rate = (sum(label == self.wanted for label in late) + 0.5) / (len(late) + 1.0)
        return min(len(late) * rate / (1.0 - rate), self.hits() + 0.5, rate * n_left) / n_left

    # ------------------------------------------------------------------------------------ counting

    def audit(self, is_hit: Callable[[int, Label], bool], first_draw: int = 0) -> Audit:
        """Return what is known of the hits.

        Rows that nobody has judged count as hits, which is the careful side.
        """
        # The last draw may be on the table, neither judged nor put aside: then it is as if not yet
        # drawn.
        waiting = int(self.drawn[-1:] == [self.pending] and self.pending not in self.labels)
        count = len(self.drawn) - waiting
        outcomes = [
            row not in self.labels or is_hit(row, self.labels[row]) for row in self.drawn[:count]
        ]
        pools = np.array(self.pools[:count], dtype=np.int64)
        draws = Draws(
            pools,
            self.outside(is_hit, doubt=True)[:count],
            np.array(outcomes, dtype=bool),
        )
        doubtful = len(self.doubtful) - waiting
        pool = self.n_pool + waiting
        return Audit(draws[first_draw:], self.count(is_hit), doubtful, pool)

    def outside(self, is_hit: Callable[[int, Label], bool], *, doubt: bool) -> AnyArray:
        """Return how many hits could no longer be drawn before each draw, and now.

        Rows in doubt count as `doubt`.
        """
        # The last is for rows that stay outside.
        steps = np.zeros(len(self.drawn) + 2, dtype=np.int64)
        spans = [(row, start, -1) for row, start in self._left.items()]
        for row, start, stop in (*spans, *self._returned):
            label = self.labels.get(row)
            if doubt if label is None else is_hit(row, label):
                steps[start] += 1
                steps[stop] -= 1
        n_given = sum(is_hit(row, self.label_of(row)) for row in self.given)
        return np.cumsum(steps[:-1]) + n_given

    def is_wanted(self, row: int, label: Label) -> bool:
        """Return whether a label is the wanted class."""
        return label == self.wanted

    def is_wrong(self, freeze: Freeze) -> Callable[[int, Label], bool]:
        """Return what tells of a row and its label whether the frozen answer is wrong."""
        if self.numbers:

            def is_off(value: float, label: Label) -> bool:
                distance = abs(value - float(label))  # type: ignore[arg-type]
                return not distance <= freeze.tolerance

            return lambda row, label: is_off(float(freeze.values[row]), label)

        places = self.places
        return lambda row, label: places.get(label) != int(freeze.values[row])

    # ------------------------------------------------------------------------------------ changing

    def apply(self, event: Event) -> None:
        """Take one event of the journal."""
        self.n_events += 1
        match event.kind:
            case "draw":
                self._draw(event.row)
            case "answer" | "skip" | "change":
                self._decide(event)
            case "undo":
                self._undo()
            case "mode":
                self.mode = event.mode
                self.revisit = None
            case "wanted":
                self.wanted = event.label
            case "sample":
                sample = Sample.from_event(event)
                if len(sample.codes) != self.header.n_rows:
                    raise ValueError("a sample must be of as many rows as the table has")
                self.sample = sample
            case "goal":
                self.goals[event.mode] = event.number
            case "class":
                self.classes.append(event.label)
            case "freeze":
                frozen = unpack(event.data)
                if len(frozen) != self.header.n_rows:
                    raise ValueError("as many answers as rows must be frozen")
                self.freezes.append(Freeze(len(self.drawn), frozen, event.number, event.time))
            case "check":
                values = unpack(event.data)
                if len(values) != self.header.n_rows:
                    raise ValueError("as many predictions as rows must be checked")
                origin = (event.number, event.time, event.proposer)
                self.predictions = GivenPredictions(len(self.drawn), values, *origin)
            case "plan":
                self.plan = PlannedDraws(int(event.number), len(self.drawn), level=event.level)

    def _draw(self, row: int) -> None:
        if row != self.next_draw():
            raise ValueError(f"draw {len(self.drawn) + 1} is not the row that the seed gives")
        self.pools.append(self.n_pool)
        if self.plan is not None and self.plan.first_draw == len(self.drawn):
            began = self.n_events - 1
            aside = len(self.doubtful)
            self.plan = replace(
                self.plan,
                began=began,
                teaching=self.n_teaching,
                aside=aside,
                labelled=frozenset(self.labelled),
            )
            self.n_blocks += 1
        self.drawn.append(row)
        self._leave(row)
        self.pending = row
        if self.plan is not None and self._made() == self.plan.count and not self.plan.spoilt:
            self.block = self.plan = replace(self.plan, ended=self.n_events)

    def _made(self) -> int:
        """Return how many draws were made since the last plan."""
        if self.plan is None:
            return 0
        return len(self.drawn) - self.plan.first_draw

    def _leave(self, row: int) -> None:
        if self.pool[row]:
            self.pool[row] = False
            self.n_pool -= 1
            self._left[row] = len(self.drawn)

    def _return(self, row: int) -> None:
        """Put a row back to those that can be drawn, unless it was drawn.

        Then it stays in doubt.
        """
        if not self.was_drawn(row) and row in self._left:
            self.pool[row] = True
            self.n_pool += 1
            self._returned.append((row, self._left.pop(row), len(self.drawn)))

    def _decide(self, event: Event) -> None:
        row = event.row
        before = self.decisions.get(event.row)
        self.undoable.append((event, before, self.labels.get(row)))
        if before is None or before.label is None:
            self.decisions.pop(row, None)  # so that the last decision comes last
            self.decisions[row] = Decision(row, event.label, event.mode, event.random)
        else:
            self.decisions[row] = replace(before, label=event.label, changed=True)
        if event.kind != "skip":
            self.first_answers.setdefault(row, event.label)
            self._set(row, event.label)
        if row == self.pending:
            self.pending = None
        if row == self.revisit:
            self.revisit = None

    def _set(self, row: int, label: Label) -> None:
        """Set or, with None, take back a label."""
        self.version += 1
        n_pool = self.n_pool
        if label is None:
            self.labels.pop(row, None)
            if row not in self.given:
                self._return(row)
        else:
            self.labels[row] = label
            self._leave(row)
        if self.plan is not None and self._made() and n_pool != self.n_pool:
            if self.plan.ended:
                self.plan = replace(self.plan, searched=True)
            else:
                self.plan = replace(self.plan, spoilt=True)

    def _undo(self) -> None:
        event, decision, label = self.undoable.pop()
        row = event.row
        if event.kind != "skip":
            self._set(row, label)
        self.decisions.pop(row, None)
        if decision is not None:
            self.decisions[row] = decision
        if event.kind != "change":
            self.revisit = row
            if self.was_drawn(row) and row not in self.labels and self.pending is None:
                self.pending = row


def replay(header: Header, given: Mapping[int, Label], events: list[Event]) -> State:
    """Return the state after all events."""
    state = State(header, given)
    for number, event in enumerate(events, start=2):
        try:
            _check_event(state, event)
            state.apply(event)
        except (ValueError, TypeError, LookupError, ArithmeticError, zlib.error) as error:
            words = f"Line {number} of the journal does not follow from the lines before: {error}."
            raise ValueError(words) from error
    return state


def _check_event(state: State, event: Event) -> None:
    """Raise a ValueError if an event cannot be about this table, or comes before what it needs."""
    if not isinstance(event.row, int) or not -1 <= event.row < state.header.n_rows:
        raise ValueError(f"the table has no row {event.row!r}")
    if event.row < 0 and event.kind in ("draw", "answer", "skip", "change", "undo"):
        raise ValueError("it names no row")
    if event.kind == "goal":
        check_goal(state, event.mode, event.number)
    if event.kind in ("answer", "change"):
        number = isinstance(event.label, int | float)
        if not (number if state.numbers else event.label in state.classes):
            raise ValueError(f"{event.label!r} is no label here")


def check_goal(state: State, name: str, value: float) -> None:
    """Raise a ValueError if a goal cannot be changed to a value, or no more."""
    checks.check_choice("goal", name, GOALS)
    if name == "recall" and value == 1.0:
        return
    checks.check_share(name, value)
    if name == "certainty" and state.saw_draws:
        raise ValueError(
            "The certainty cannot change after the first random draw was judged: a level that is "
            "chosen after looking would not be that of the certificates."
        )


def open_state(
    table: LabelTable, journal: Journal, settings: SessionSettings, task: str | None
) -> State:
    """Return where a session stands: a replay of its journal, or the beginning of a new one."""
    given, task = given_labels(table, task or settings.task)
    header = journal.header
    if header is None:
        if settings.seed is None:
            seed = secrets.randbits(48)
        else:
            seed = settings.seed
        about_table = (table.name, table.digest, table.n_rows, table.target)
        header = journal.begin(
            Header(*about_table, task, seed, settings.recall, settings.certainty)
        )
    _check_header(header, table, settings, journal.path)
    if task != header.task:
        given, _ = given_labels(table, header.task)
    return replay(header, given, journal.events)


def _check_header(
    header: Header, table: LabelTable, settings: SessionSettings, path: Path | None
) -> None:
    """Raise a ValueError if a journal belongs to another table, or to other settings."""
    if path is not None:
        name = path.name
    else:
        name = "the journal"
    if header.digest != table.digest and header.table != table.name:
        raise ValueError(f"{name} is about {header.table}, not {table.name}: name another journal.")
    if header.digest != table.digest or header.n_rows != table.n_rows:
        raise ValueError(
            f"{table.name} has changed since {name} was begun: put the old table back, or move the "
            "journal away to begin anew."
        )
    if header.target != table.target:
        raise ValueError(
            f"{name} is about the column {header.target!r}, not {table.target!r}: name another "
            "journal."
        )
    if settings.seed is not None and settings.seed != header.seed:
        raise ValueError(
            f"{name} was begun with the seed {header.seed}: leave the seed out to go on."
        )
