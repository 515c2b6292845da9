"""Each row was labelled with a known probability."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.rows import NUMBERS_OF_ROWS, RowValues
from transduce.conformal.designs.weights import KNOWN, Weights, odds_without_label
from transduce.conformal.designs.words import Card, Flag
from transduce.core.assumptions import ALIKE, Assumption
from transduce.core.types import AnyArray, Array, Mask

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.model_selection.problem import Problem


PROBABILITIES = Assumption(
    "each row was labelled, or not, with the probability given for it, independently of the "
    f"others, and {ALIKE}",
    condition="if the given probabilities are right",
)


@dataclass(frozen=True)
class Sampled(Design):
    """Each row was labelled, or not, with a known probability, independently of the others.

    Parameters
    ----------
    probability : str or array-like of shape (n,)
        With which each row was chosen to be labelled, e > 0; calibration labels are weighted by
        ``(1 - e) / e``.
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Sampled
    >>> rng, X = np.random.default_rng(0), np.linspace(-2, 2, 100)[:, None]
    >>> probability = 1 / (1 + np.exp(-X[:, 0]))
    >>> y = np.where(rng.random(100) < probability, X[:, 0], np.nan)
    >>> model = ConformalTransducer(Ridge(), labels=Sampled(probability), random_state=0)
    >>> model.fit(X, y).guarantee_.headline
    'exact if the given probabilities are right'
    """

    probability: RowValues = field(metadata=NUMBERS_OF_ROWS)

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="sampling_probability",
            field="probability",
            help="A column with the known probability that a row was chosen to be labelled.",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="known",
            place=60,
            title="I know the probabilities",
            words="A column holds the probability with which each row was to get a value.",
            flag="sampling_probability",
            column="The column with the probabilities",
            kinds=("number",),
            also=("within", "order"),
            needs="probabilities",
            unfit="No other column holds probabilities, which are above 0 and at most 1.",
        ),
    )
    rests_on: ClassVar[Assumption] = PROBABILITIES
    testable: ClassVar[bool] = False
    can_bound_column: ClassVar[bool] = False

    @property
    def probabilities(self) -> RowValues:
        """The column of known probabilities of a label."""
        return self.probability

    def bind_rows(self, rows: RowReader) -> BoundSampled:
        """Return the bound design, made of what a reader reads."""
        return BoundSampled(probability=rows.probability("probability"), **rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSampled(BoundDesign):
    """Rows that were labelled, or not, each with a known probability."""

    probability: Array  # (n,)

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return a bound on how likely at least as many known cells are at labelled rows.

        Shapes: (n,) each.
        """
        from transduce.conformal.presence import bound_of_labels

        return bound_of_labels(known, labelled, self.probability)

    def _weigh_rows(self, problem: Problem, calibration: AnyArray, answered: Mask) -> Weights:
        odds = odds_without_label(self.probability)
        return Weights.of(odds, calibration, problem.sample.unlabelled, KNOWN)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for unlabelled ones: by its odds of no label."""
        return odds_without_label(self.probability[rows])

    def _sampling_odds(self) -> Array | None:
        return odds_without_label(self.probability)
