"""What was fitted and calibrated: all that predictions and guarantees at any level come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_answer import holding_values, name_values, with_values
from transduce.conformal.designs import ESTIMATED, BoundDesign
from transduce.conformal.exchangeability import drift_along
from transduce.conformal.miscoverage import Law
from transduce.conformal.shares import ClassShares
from transduce.core.answer import Answer
from transduce.core.findings import Drift
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.fit_and_predict import FittedEstimator, RawPrediction
from transduce.model_selection.problem import Problem
from transduce.population.draws import draw_rows

USUAL_FACTORS = (1.0, 1.5, 2.0)  # by which odds of being labelled may be off, as reports show them
N_TO_LABEL = 20  # as many as `transduce draw` draws, or more if the level takes more


@dataclass(frozen=True, eq=False)
class CalibratedFit:
    """What was fitted: all that predictions at any level are read from."""

    problem: Problem
    held_out: Mask  # (l,) which of the labels calibrate
    first: FittedEstimator  # fitted to the other labels
    second: RawPrediction | None  # predictions of a fit to all labels, at the unlabelled rows
    table: CalibratedTable
    design: BoundDesign  # how the labels came about
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class

    @property
    def shown(self) -> AnyArray:
        """The labels that were not held out: numbers, or numbers of classes."""
        return self.problem.numbers[~self.held_out]

    @property
    def answering(self) -> FittedEstimator:
        """The fit that values come from."""
        if self.second is None or self.second.fitted is None:
            return self.first
        return self.second.fitted

    def answer(self, confidence: float, further: Sequence[float] = ()) -> Answer:
        """Return the answer at a level, with its guarantee; intervals or sets at further ones."""
        return replace(self._answer(confidence, further), guarantee=self.guarantee(confidence))

    def _answer(self, confidence: float, further: Sequence[float] = ()) -> Answer:
        """Return the answer at a level, without a guarantee yet."""
        sample = self.problem.sample
        index = sample.index_at(sample.unlabelled)
        answer = self.table.answer(confidence, sample.unlabelled, index, further)
        diagnostics = {
            "n_calibration": len(self.table.labels),
            "nonconformity": self.table.scoring.nonconformity,
            "transductive": len(self.first.order) > len(self.shown),
        }
        answer = replace(answer, diagnostics=diagnostics)
        second = self.second
        if second is None:
            return holding_values(answer)
        values = name_values(second, self.problem.classes)
        return with_values(answer, values, second.status, second.spreads, second.probabilities)

    def guarantee(self, confidence: float, certainty: float = 0.95) -> Guarantee:
        """Return what is guaranteed at a level."""
        guarantee = self.table.guarantee(confidence, certainty, self.second)
        order = self.design.order
        if order is not None:
            guarantee = guarantee.along(self._drift(order))
        if guarantee.kind == "none":
            return replace(guarantee, remedy=self._rows_to_label(confidence))
        if self.table.classes is None or guarantee.wrong is None:
            return replace(guarantee, tolerance=self.table.tolerance)
        by_class = self.table.wrong_by_class(self.second, certainty)
        return replace(guarantee, wrong_by_class=by_class)

    def _rows_to_label(self, confidence: float) -> tuple[int, ...]:
        """Return rows drawn at random, as `transduce draw` does: their labels would be enough."""
        if self.table.weights.kind != ESTIMATED and not self.table.by_value:
            return ()
        missing = ~self.problem.sample.labelled
        wanted = max(N_TO_LABEL, fewest_calibration(confidence))
        number = min(wanted, int(missing.sum()))
        return tuple(draw_rows(missing, number, 0).tolist())

    def _drift(self, order: Array) -> Drift:
        """Return whether errors at calibration rows drift along an order of the rows."""
        table = self.table
        known = table.calibration.given
        errors = [table.scores[known]]
        if table.classes is None:
            residuals = table.labels - table.calibration.values
            errors.append(residuals[known].astype(float))
        places = order[self.problem.rows[self.held_out]][known]
        return drift_along(order, self.problem.sample.labelled, places, errors)

    # ---- what `Calibrated` asks besides

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row (n,), which no fold may split; None if there are none."""
        return self.design.groups

    def guarantee_at(
        self, confidence: float, certainty: float, tolerance: float | None
    ) -> Guarantee:
        """Return what is guaranteed at a level, and at a tolerance if one is given."""
        fit = self
        if tolerance is not None:
            fit = replace(self, table=replace(self.table, tolerance=tolerance))
        return fit.guarantee(confidence, certainty)

    def law_at(self, confidence: float) -> Law | None:
        """Return the distribution of the number of rows outside; None if there is none."""
        return self.table.law(confidence)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row (k,) stands for unlabelled ones.

        These weights are used where quality is measured.
        """
        estimated = self.table.weights.grounds.estimated
        if estimated is None:
            return self.design.measure(rows)
        return estimated.odds[rows]

    def sensitivity_at(
        self, confidence: float, factors: Sequence[float] | None = None
    ) -> pd.DataFrame | None:
        """Return how wide intervals get if the odds of being labelled depend on the label.

        There is a line for each factor by which they may.
        """
        if factors is None and self.table.weights.overlapping is not None:
            return None
        if factors is None:
            factors = sorted({*USUAL_FACTORS, float(self.design.spec.sensitivity)})
        lines = [(factor, *self.width(confidence, factor)) for factor in factors]
        size = "width" if self.problem.classes is None else "size"
        return pd.DataFrame(lines, columns=["factor", size, "n_unbounded"])

    def width(self, confidence: float, factor: float) -> tuple[float, int]:
        """Return the median width, or mean size of sets, and at how many rows all is possible.

        The odds of being labelled may be off by a factor.
        """
        if self.table.weights.overlapping is not None and factor != 1.0:
            raise ValueError(
                "Widths at other odds of being labelled are not known within several columns."
            )
        weights = replace(self.table.weights, factor=factor)
        answer = replace(self, table=replace(self.table, weights=weights))._answer(confidence)
        if answer.regions is not None:
            sizes = answer.regions.measure()
            n_unbounded = int((sizes == np.inf).sum())
            if not len(sizes):
                return np.nan, n_unbounded
            return float(np.median(sizes)), n_unbounded
        assert answer.label_sets is not None
        sizes = answer.label_sets.sum(axis=1)
        n_unbounded = int((sizes == answer.label_sets.shape[1]).sum())
        if not len(sizes):
            return np.nan, n_unbounded
        return float(np.mean(sizes)), n_unbounded
