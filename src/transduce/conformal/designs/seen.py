"""Labels seen by what made a column of the table: for the fit, but not for calibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.held_out import labels_needed
from transduce.conformal.designs.rows import DESCRIBES_ROWS, RowValues
from transduce.conformal.designs.words import Flag
from transduce.core.assumptions import Assumption
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import counted, percent

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.model_selection.problem import Problem

UNSEEN = Assumption(
    "apart from rows whose labels were seen, rows were labelled at random, and the other columns "
    "were recorded in the same way with and without such a label",
    condition="if the other rows were labelled at random",
)


@dataclass(frozen=True)
class Seen(Design):
    """Some labels were seen by what made a column; all other rows were labelled at random, or not.

    Examples in the prompt of a language model were seen, and so were rows on which a model was
    trained whose predictions are a column.

    Parameters
    ----------
    rows : str or boolean array-like of shape (n,)
        Rows whose labels were seen. They are used for the fit, but not for calibration.
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Seen
    >>> X, seen = np.arange(100.0)[:, None], np.arange(100) < 10
    >>> y = np.where(seen | (np.arange(100) % 3 == 0), X[:, 0], np.nan)
    >>> model = ConformalTransducer(Ridge(), labels=Seen(seen), random_state=0).fit(X, y)
    >>> model.guarantee_.headline
    'exact if the other rows were labelled at random'
    """

    rows: RowValues = field(metadata=DESCRIBES_ROWS)

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="seen",
            field="rows",
            help="A column that marks rows whose labels the model behind --predictions has seen: "
            "they are used for the fit, but not for calibration.",
        ),
    )
    rests_on: ClassVar[Assumption] = UNSEEN
    weighs_equally: ClassVar[bool] = True

    @property
    def needs_all_rows(self) -> bool:
        """Whether a fit to a sample of the rows cannot make use of it: it tells rows apart."""
        return True

    def bind_rows(self, rows: RowReader) -> BoundSeen:
        """Return the bound design, made of what a reader reads."""
        seen = rows.seen_rows("rows")
        return BoundSeen(seen=seen, labelled=~rows.missing, **rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSeen(BoundDesign):
    """Rows some of whose labels were seen."""

    seen: Mask  # (n,)
    labelled: Mask  # (n,)

    @property
    def _unseen(self) -> Mask:
        """Labelled rows that stand for the others, shape (n,)."""
        return np.asarray(self.labelled & ~self.seen)

    def n_calibration(
        self,
        n_labels: int,
        confidence: float,
        *,
        by_class: bool = False,
    ) -> int:
        """Return how many labels calibrate, of those that were not seen."""
        n_unseen = int(np.sum(self._unseen))
        return super().n_calibration(n_unseen, confidence, by_class=by_class)

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        return (
            f"{counted(int(np.sum(self._unseen)), 'label')} of rows that were not seen cannot "
            f"guarantee {percent(confidence)}: it takes {labels_needed(confidence)}. Label more "
            "rows at random, or ask for less confidence."
        )

    def _may_calibrate(self, rows: AnyArray) -> Mask:
        """Return which labels may be held out: those that were not seen."""
        return self._unseen[rows]

    def _parts(self, problem: Problem) -> AnyArray | None:
        """Return None: the labels that were not seen are held out together."""
        return None

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for unlabelled ones: not if it was seen."""
        return np.asarray(~self.seen[rows], dtype=float)

    def compared_rows(self, missing: Mask) -> tuple[AnyArray, AnyArray]:
        """Return the labelled rows that were not seen, and the unlabelled ones."""
        return np.flatnonzero(self._unseen), np.flatnonzero(missing)

    def _sampled_rows(self, missing: Mask) -> Mask:
        return self._unseen
