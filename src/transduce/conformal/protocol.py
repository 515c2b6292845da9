"""`Calibrated`: what a fitted model answers about its intervals or sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

    from transduce.conformal.calibrated import CalibratedTable
    from transduce.conformal.designs import BoundDesign
    from transduce.conformal.miscoverage import Law
    from transduce.core.guarantee import Guarantee
    from transduce.core.types import AnyArray, Array


class Calibrated(Protocol):
    """What a fitted model answers about its intervals or sets, whether or not labels were held out.

    `CalibratedFit` is one, with calibration labels; a method that needs none can be another.
    """

    @property
    def table(self) -> CalibratedTable | None:
        """Calibration and unlabelled rows side by side; None if no label was held out."""

    @property
    def design(self) -> BoundDesign | None:
        """How the labels came about; None if nothing depends on it."""

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row (n,), which no fold may split; None if there are none."""

    def guarantee_at(
        self, confidence: float, certainty: float, tolerance: float | None
    ) -> Guarantee:
        """Return what is guaranteed at a level; counts are bounded with a certainty."""

    def law_at(self, confidence: float) -> Law | None:
        """Return the distribution of the number of rows outside; None if there is none."""

    def measure(self, rows: AnyArray) -> Array:
        """Return how much labelled rows (k,) stand for unlabelled ones in measures of quality."""

    def sensitivity_at(self, confidence: float) -> pd.DataFrame | None:
        """Return how wide intervals get if the odds of being labelled depend on the label.

        There is a line for each factor by which they may.
        """
