"""Each row was labelled with a known probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.weights import KNOWN, Weights, odds_without_label
from transduce.conformal.designs.words import Card, Flag
from transduce.core.guarantee import ALIKE, Assumption
from transduce.core.types import AnyArray, Array, Mask

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import Cells
    from transduce.model_selection.fit_and_predict import Problem


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
        With which each row was chosen to be labelled, e > 0; calibration labels are weighted by ``(1 - e) / e``.
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
    >>> ConformalTransducer(Ridge(), labels=Sampled(probability), random_state=0).fit(X, y).guarantee_.headline
    'exact if the given probabilities are right'
    """

    probability: Any

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="sampling_probability",
            field="probability",
            help="A column with the probability with which each row was chosen to be labelled, if known.",
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
        ),
    )
    row_fields: ClassVar[tuple[str, ...]] = ("probability", "within", "order")
    number_fields: ClassVar[tuple[str, ...]] = ("probability", "order")
    rests_on: ClassVar[Assumption] = PROBABILITIES
    testable: ClassVar[bool] = False
    of_column: ClassVar[bool] = False

    def _read_field(self, name: str, cells: Cells, missing: Mask) -> Any:
        from transduce.conformal.designs.reading import read_probability

        if name == "probability":
            return read_probability(cells, missing)
        return super()._read_field(name, cells, missing)

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        return Weights.of(
            odds_without_label(self.probability), calibration, problem.sample.unlabelled, KNOWN
        )

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return a bound on how likely at least as many of the known cells are at labelled rows; (n,), (n,)."""
        from transduce.conformal.presence import bound_of_labels

        return bound_of_labels(known, labelled, self.probability)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: by the odds that it has no label."""
        return odds_without_label(self.probability[rows])

    def _sampling_odds(self, missing: Mask) -> Array | None:
        return odds_without_label(self.probability)
