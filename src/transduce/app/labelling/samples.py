"""Rows that are judged first: a draw whose size is fixed, or what another person judged.

A draw by strata says more of rare classes than draws from all rows alike. Its statement is that of
an audit: it holds for the whole draw, and rows that nobody has judged yet count as wrong, so that
it holds at every look before, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from transduce.app.labelling.certificates import MOST_CLASSES, ShareInterval
from transduce.app.labelling.journal import Event, Journal, Label, pack, unpack
from transduce.app.labelling.table import LabelTable
from transduce.core import checks
from transduce.core.types import AnyArray, Mask
from transduce.core.words import counted
from transduce.population.checks import CheckedRows
from transduce.population.draws import Allocation, read_drawn_from, read_marks

DRAW = "draw"  # rows that chance chose: they speak for the others
AGAIN = "again"  # rows that another person judged
NOT_DRAWN_FROM = -2  # the code of a row that had a label before the draw


@dataclass(frozen=True)
class SampleRequest:
    """How rows are drawn before the first is judged.

    Parameters
    ----------
    by : tuple of str
        The column of predicted classes, or of probabilities, from each of which rows are drawn.
    number : int, default=100
        How many rows are drawn.
    allocation : {"equal", "proportional", "neyman"}, default="neyman"
        How many from each class.

    Examples
    --------
    >>> from transduce.app.labelling import SampleRequest
    >>> SampleRequest(("llm",)).number
    100
    """

    by: tuple[str, ...]
    number: int = 100
    allocation: Allocation = "neyman"

    def __post_init__(self) -> None:
        checks.check_list("by", self.by)
        if not self.by:
            raise ValueError("by is empty: name the column of predicted classes.")
        checks.check_whole("number", self.number, least=1)
        checks.check_choice("allocation", self.allocation, get_args(Allocation))


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that are judged before all others.

    Attributes
    ----------
    kind : {"draw", "again"}
    codes : int array of shape (n,)
        Twice the stratum of a row, and one more if it is among the rows; `NOT_DRAWN_FROM` if it
        could not be.
    strata : list of str
        What the strata are called; empty if there is one only.
    origin : str
        Where the rows come from.
    """

    kind: str
    codes: AnyArray
    strata: list[str]
    origin: str

    @classmethod
    def of(
        cls,
        kind: str,
        rows: Mask,
        origin: str,
        strata: AnyArray | None = None,
        drawn_from: Mask | None = None,
    ) -> Sample:
        """Return a sample of the marked rows (n,), drawn from each of the strata (n,) by itself.

        Rows that could be drawn (n,) are all by default.
        """
        codes = np.zeros(len(rows), dtype=np.int16)
        names: list[str] = []
        if strata is not None:
            numbers, stratum_names = pd.factorize(np.asarray(strata, dtype=object), sort=True)
            codes = 2 * numbers.astype(np.int16)
            names = [str(name) for name in stratum_names]
        codes = codes + rows.astype(np.int16)
        if drawn_from is not None:
            codes = np.where(drawn_from | rows, codes, np.int16(NOT_DRAWN_FROM))
        return cls(kind, codes, names, origin)

    @classmethod
    def from_event(cls, event: Event) -> Sample:
        """Return a sample as the journal has it."""
        return cls(event.mode, unpack(event.data), json.loads(str(event.label)), event.proposer)

    def as_event(self) -> Event:
        """Return the sample as the journal takes it."""
        names = json.dumps(self.strata, ensure_ascii=False)
        data = pack(self.codes.astype(np.int16))
        return Event("sample", label=names, mode=self.kind, data=data, proposer=self.origin)

    @property
    def mask(self) -> Mask:
        """Which rows are in the sample, shape (n,)."""
        return np.asarray(self.codes % 2 == 1)

    @property
    def drawn_from(self) -> Mask:
        """Which rows could be drawn, shape (n,)."""
        return np.asarray(self.codes >= 0)

    @property
    def stratum_codes(self) -> AnyArray:
        """The number of the stratum of each row (n,); 0 where none could be drawn."""
        return np.where(self.drawn_from, self.codes.astype(np.int64) // 2, 0)

    @property
    def n_rows(self) -> int:
        """How many rows are in the sample."""
        return int(self.mask.sum())

    def in_order(self, seed: int) -> AnyArray:
        """Return the rows in the order in which they are judged, which no class decides."""
        return np.random.default_rng([seed, 1]).permutation(np.flatnonzero(self.mask))

    def wrong_at_most(self, labelled: AnyArray, wrong: AnyArray, certainty: float) -> int:
        """Return how many of the rows without a label are wrong at most, with a certainty.

        Given are the rows that have a label, and those of them that are wrong. Rows of the sample
        without a label count as wrong.
        """
        true = np.full(len(self.codes), -1, dtype=np.int64)
        true[labelled] = 0
        true[wrong] = 1
        predicted = np.zeros(len(true), dtype=np.int64)
        rows = CheckedRows(
            predicted,
            true,
            self.mask,
            self.stratum_codes,
            drawn_from=self.drawn_from,
        )
        return rows.count_strata(rows.wrong, doubtful=True).at_most_unchecked(certainty)

    def share_intervals(
        self, labels: Mapping[int, Label], classes: Sequence[Label], certainty: float
    ) -> list[tuple[Label, ShareInterval]]:
        """Return between which shares of all rows the classes lie, those with most labels first.

        Rows of the sample without a label may be of any class, so that this holds before the last
        of them, too.
        """
        codes = {label: code for code, label in enumerate(classes)}
        true = np.full(len(self.codes), -1, dtype=np.int64)
        for row, label in labels.items():
            true[row] = codes[label]
        predicted = np.full_like(true, -1)
        if self.strata:
            # Strata are mostly called as the classes that were predicted.
            by_name = {str(label): code for label, code in codes.items()}
            of_strata = np.array([by_name.get(name, -1) for name in self.strata])
            predicted = of_strata[self.stratum_codes]
        rows = CheckedRows(
            predicted, true, self.mask, self.stratum_codes, drawn_from=self.drawn_from
        )
        frequent = Counter(labels.values())
        intervals = []
        for label in sorted(classes, key=lambda label: -frequent[label])[:MOST_CLASSES]:
            code = codes[label]
            fewest, _ = rows.count_class(code, doubtful=False).total_interval(certainty)
            _, most = rows.count_class(code, doubtful=True).total_interval(certainty)
            intervals.append((label, ShareInterval(fewest, most, len(true), certainty)))
        return intervals

    def columns(self, target: str) -> dict[str, AnyArray]:
        """Return the columns of a draw, as `transduce draw` writes them beside a table."""
        name = f"{target}_random"
        columns: dict[str, AnyArray] = {name: np.where(self.mask, "yes", "no")}
        strata = self.stratum_codes
        if self.strata:
            columns[f"{name}_stratum"] = np.array(self.strata, dtype=object)[strata]
        n_drawn = np.bincount(strata[self.mask], minlength=int(strata.max(initial=0)) + 1)
        n_rows = np.bincount(strata[self.drawn_from], minlength=len(n_drawn))
        shares = n_drawn / np.maximum(n_rows, 1)
        columns[f"{name}_probability"] = np.where(self.drawn_from, shares[strata], 0.0)
        return columns


def read_draw(table: LabelTable) -> Sample | None:
    """Return the draw whose columns a table has beside its target; None if there is none."""
    name = f"{table.target}_random"
    if name not in table.frame.columns:
        return None
    strata = None
    if f"{name}_stratum" in table.frame.columns:
        strata = table.frame[f"{name}_stratum"].astype(str).to_numpy()
    drawn = read_marks(table.frame, name)
    drawn_from = None
    if f"{name}_probability" in table.frame.columns:
        drawn_from = read_drawn_from(table.frame, f"{name}_probability", drawn)
    elif table.target in table.frame.columns:
        drawn_from = table.frame[table.target].isna().to_numpy(dtype=bool)
    return Sample.of(DRAW, drawn, name, strata, drawn_from)


def draw_sample(table: LabelTable, open_rows: Mask, request: SampleRequest, seed: int) -> Sample:
    """Return rows drawn from each predicted class, of those that may be drawn (n,)."""
    from transduce.app.auditing.drawing import StrataRequest, draw_by_strata

    asked = StrataRequest(
        number=request.number,
        seed=seed,
        by=request.by,
        allocation=request.allocation,
    )
    frame = table.frame
    if table.target not in frame.columns:
        frame = frame.assign(**{table.target: None})
    drawn = draw_by_strata(frame, table.target, open_rows, asked)
    rows = np.isin(np.arange(table.n_rows), drawn.rows)
    strata = drawn.columns[f"{table.target}_random_stratum"].to_numpy()
    return Sample.of(DRAW, rows, ", ".join(request.by), strata, open_rows)


def judged_before(path: Path, table: LabelTable) -> Sample:
    """Return the rows that were judged in another session on the same table."""
    if not path.exists():
        raise ValueError(f"There is no {path.name}: nobody has judged rows there yet.")
    journal = Journal(path)
    try:
        header = journal.header
        events = journal.events
    finally:
        journal.close()
    if header is None or header.digest != table.digest:
        raise ValueError(f"{path.name} is about another table, or about this one as it was before.")
    rows = np.zeros(table.n_rows, dtype=bool)
    rows[[event.row for event in events if event.kind in ("answer", "change")]] = True
    if not rows.any():
        raise ValueError(f"Nobody has judged a row in {path.name} yet.")
    return Sample.of(AGAIN, rows, header.target)


def about_sample(
    sample: Sample,
    n_open: int,
    bound: int,
    left: int,
    sure: str,
) -> tuple[str, str]:
    """Return what is certain of predictions by a draw whose size was fixed, and how far it is."""
    if n_open == 0 and left == 0:
        return "Every row is checked.", ""
    judged = f"{sample.n_rows - n_open:,} of {counted(sample.n_rows, 'row')}"
    if sample.kind == AGAIN:
        return f"{judged} judged again.", f"These rows have a label in “{sample.origin}” already."
    by = f"drawn from the classes of “{sample.origin}”"
    if not sample.strata:
        by = "drawn from all rows alike"
    at_most = f"At most {bound:,} of {counted(left, 'unchecked prediction')} are wrong."
    if n_open:
        open_rows = counted(n_open, "open row")
        certain = f"That is {sure} certain; {open_rows} of the draw counted as wrong."
        return f"{judged} judged.", f"They were {by}. {at_most} {certain}"
    return at_most, f"That is {sure} certain: all {counted(sample.n_rows, 'row')} {by} are judged."
