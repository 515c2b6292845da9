"""What a report reads of a filled column: plain fields, whoever filled it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn
from transduce.app.report.suspects import Suspects
from transduce.app.tables.columns import Target
from transduce.app.tables.notes import Note
from transduce.conformal import ClassShares, Exchangeability
from transduce.conformal.miscoverage import Law
from transduce.core.answer import STATUSES, Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import Array, ColumnName, JsonObject


@dataclass(frozen=True)
class RowCounts:
    """How many rows a table has, and how many of them were answered in which way."""

    rows: int
    labelled: int
    unlabelled: int
    # Answers of each status: of all rows, or of the sample of a lazy frame.
    statuses: dict[str, int]
    sampled: int | None = (
        None  # unlabelled rows in the sample, if the answers shown are theirs alone
    )
    is_lazy: bool = False  # whether all other rows are answered when the frame is computed

    @classmethod
    def count_rows(cls, n_rows: int, answer: Answer) -> RowCounts:
        """Count the rows of a table, all of which are shown."""
        n_unlabelled = len(answer)
        return cls(n_rows, n_rows - n_unlabelled, n_unlabelled, count_statuses(answer))


def count_statuses(answer: Answer) -> dict[str, int]:
    """Return how many answers have each status."""
    status = np.asarray(answer.status)
    return {word: int(np.sum(status == word)) for word in STATUSES}


@dataclass(frozen=True, eq=False)
class FilledColumn:
    """A filled column, with all that there is to know of it."""

    frame: pd.DataFrame  # the rows that are shown: all, or those of a sample
    labels: Target  # of these rows
    answer: Answer  # at those without a label
    counts: RowCounts
    row_names: Sequence[Any]  # what to call each row that is shown
    confidence: float  # level of the intervals or sets
    certainty: float  # of bounds for the whole column
    options: JsonObject  # as JSON holds them
    again: str  # the command or code that does it again; "" if there is none
    columns: pd.DataFrame  # what was done to each column
    members: pd.DataFrame  # one line for each method
    out_of_fold: pd.DataFrame  # ``true`` and ``answered`` at labels that were hidden
    notes: list[Note]
    probability: Array | None = None  # that each answered class is right
    miscoverage: Law | None = None
    exchangeability: Exchangeability | None = None
    sensitivity: pd.DataFrame | None = None
    relevance: pd.Series | None = None
    map: pd.DataFrame | None = None
    advice: str = ""  # what to label next
    has_rows_to_label: bool = False  # whether the advice names rows
    class_shares: ClassShares | None = None
    class_coverage: pd.DataFrame | None = None
    measured_at: str = ""  # which labels tell how good the answers are; "" if all do alike
    unmeasured: str = ""  # why no label tells; "" if some do
    has_draws: bool = False  # whether rows drawn at random tell how good the answers are
    origins: str = ""  # how the labels of a labelling session came about
    to_do: str = ""  # what to do next, if a labelling session says so
    is_session: bool = False  # whether a labelling session made the answers
    predicted: PredictedColumn | None = None  # what questions about the whole column rest on
    guarantees: dict[float, Guarantee] = field(default_factory=dict)  # at each of several levels
    suspects: Suspects | None = None  # known values that are perhaps wrong
    lines: Sequence[int] | None = None  # of the file, on which each row begins
    why_unasked: str = ""  # why the whole column cannot be asked about
    by: Sequence[ColumnName] = ()  # columns whose groups are shown of it; one is proposed if none

    @property
    def target(self) -> Any:
        """The name of the column."""
        return self.labels.name

    @property
    def task(self) -> str:
        """Whether numbers ("regression") or classes ("classification") were filled."""
        return self.labels.task

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of the answers."""
        return self.answer.guarantee
