"""What the confidence machine answers about its intervals or sets: no label is held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array


@dataclass(frozen=True, eq=False)
class MachineFit:
    """A `transduce.conformal.protocol.Calibrated` without calibration labels."""

    promise: Callable[[float], Guarantee]  # what is guaranteed at a level
    table: None = None
    design: None = None
    groups: None = None

    def guarantee_at(
        self, confidence: float, certainty: float, tolerance: float | None
    ) -> Guarantee:
        """Return what is guaranteed, which is for each row alone."""
        return self.promise(confidence)

    def law_at(self, confidence: float) -> None:
        """Return that the number of rows outside has no known distribution."""

    def measure(self, rows: AnyArray) -> Array:
        """Return how much labelled rows (k,) stand for the unlabelled ones: all the same."""
        return np.ones(len(rows))

    def sensitivity_at(self, confidence: float) -> None:
        """Return that widths are not known for other odds of being labelled."""
