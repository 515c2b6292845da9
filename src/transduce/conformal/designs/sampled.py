"""Each row was labelled with a known probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.propensity import odds_without_label
from transduce.conformal.designs.weights import KNOWN, Weights
from transduce.conformal.presence import bound_of_labels
from transduce.core import guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.fit_and_predict import Problem


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

    rests_on: ClassVar[str] = guarantee.DESIGN
    testable: ClassVar[bool] = False
    of_column: ClassVar[bool] = False

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        return Weights.of(
            odds_without_label(self.probability), calibration, problem.sample.unlabelled, KNOWN
        )

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return a bound on how likely at least as many of the known cells are at labelled rows; (n,), (n,)."""
        return bound_of_labels(known, labelled, self.probability)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: by the odds that it has no label."""
        return odds_without_label(self.probability[rows])
