"""Rows drawn at random, and then labelled, calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.rows import DESCRIBES_ROWS, DrawnRows, RowValues
from transduce.conformal.designs.weights import Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core import assumptions
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Array, Mask, Random
from transduce.core.words import counted, percent

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.model_selection.problem import Problem


@dataclass(frozen=True)
class Drawn(Design):
    """Some rows were drawn at random from those without a label, and then labelled.

    It does not matter how the other labels came about.

    Parameters
    ----------
    rows : str or boolean array-like of shape (n,)
        Which rows were drawn. Their labels are used for calibration, all others for the fit. A
        drawn row without a label counts as the worst case, and the guarantee is then about the rows
        that were not drawn.
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Drawn
    >>> X, rows = np.arange(100.0)[:, None], np.arange(100) % 5 == 0
    >>> y = np.where(rows | (X[:, 0] < 20), X[:, 0], np.nan)
    >>> ConformalTransducer(Ridge(), labels=Drawn(rows)).fit(X, y).guarantee_.headline
    'exact'
    """

    rows: RowValues = field(metadata=DESCRIBES_ROWS)

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="random_labels",
            field="rows",
            help="A column that marks rows that were drawn at random and then labelled; their "
            "labels are used for calibration. See `transduce draw`.",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="drawn",
            place=20,
            title="Some on purpose, some by a draw",
            words="Some rows were drawn at random, and a column marks them; others were chosen "
            "at will.",
            flag="random_labels",
            column="The column that marks the rows drawn",
            kinds=("category", "number"),
            also=("within", "order"),
            needs="marks",
            unfit="No column marks such rows: it would hold two values, such as yes and no.",
        ),
    )
    rests_on: ClassVar[assumptions.Assumption] = assumptions.DRAWN
    draws_calibration: ClassVar[bool] = True
    weighs_equally: ClassVar[bool] = True

    @property
    def marks(self) -> RowValues:
        """The column that marks rows drawn at random to be labelled."""
        return self.rows

    def bind_rows(self, rows: RowReader) -> BoundDrawn:
        """Return the bound design, made of what a reader reads."""
        return BoundDrawn(
            drawn=rows.drawn_rows("rows"), since=rows.labelled_since("rows"), **rows.common()
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundDrawn(BoundDesign):
    """Rows of which some were drawn at random to be labelled."""

    drawn: DrawnRows
    since: Mask | None = None  # (n,) rows that could be drawn, were not, and were labelled later

    @classmethod
    def of_rows(cls, drawn: Mask) -> BoundDrawn:
        """Return the design of rows drawn at random (n,), all of which have a label."""
        no_rows = np.zeros(len(drawn), dtype=bool)
        return cls(spec=Drawn(drawn), drawn=DrawnRows(drawn, no_rows))

    @property
    def n_drawn(self) -> int:
        """How many rows were drawn at random to be labelled, with a label or without."""
        return int((self.drawn.labelled | self.drawn.unlabelled).sum())

    def n_calibration(
        self,
        n_labels: int,
        confidence: float,
        *,
        by_class: bool = False,
    ) -> int:
        """Return how many labels calibrate: all those of rows that were drawn."""
        return int(self.drawn.labelled.sum())

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        n_labels_drawn = int(self.drawn.labelled.sum())
        return (
            f"{counted(n_labels_drawn, 'label')} of rows drawn at random cannot guarantee "
            f"{percent(confidence)}: it takes {fewest_calibration(confidence)}. Draw and label "
            "more rows with `transduce draw`, or ask for less confidence."
        )

    def hold_out(
        self,
        problem: Problem,
        number: Any,
        levels: Sequence[float],
        by_class: bool,
        random: Random,
    ) -> Mask:
        """Return which labels to hold out, shape (l,): all those of rows that were drawn."""
        if not isinstance(number, str) or number != "auto":
            raise ValueError(
                "calibration says how many labels to hold out, and Drawn holds out those of the "
                "rows drawn: leave calibration at 'auto'."
            )
        return np.asarray(self.drawn.labelled[problem.rows])

    def _weigh_rows(self, problem: Problem, calibration: AnyArray, answered: Mask) -> Weights:
        unlabelled = problem.sample.unlabelled
        empty = self.drawn.unlabelled[unlabelled]
        weights = Weights.equal(len(calibration), len(unlabelled), empty=empty)
        n_since = 0
        if self.since is not None:
            n_since = int(np.sum(self.since))
        return weights.resting_on(n_since=n_since)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for unlabelled ones: only if it was drawn."""
        return np.asarray(self.drawn.labelled[rows], dtype=float)

    def compared_rows(self, missing: Mask) -> tuple[AnyArray, AnyArray]:
        """Return the rows drawn that have a label, and those not drawn that have none."""
        not_drawn = missing & ~self.drawn.unlabelled
        return np.flatnonzero(self.drawn.labelled), np.flatnonzero(not_drawn)

    def _sampled_rows(self, missing: Mask) -> Mask:
        return np.asarray(self.drawn.labelled, dtype=bool)

    def _later_rows(self) -> Mask | None:
        return self.since

    def _lost_rows(self) -> Mask | None:
        return np.asarray(self.drawn.unlabelled, dtype=bool)
