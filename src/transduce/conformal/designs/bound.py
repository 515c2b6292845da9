"""`BoundDesign`: how the labels of the rows of one table came about, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from transduce.conformal.designs.held_out import (
    calibration_number,
    labels_needed,
    most_calibration,
    read_number,
)
from transduce.conformal.designs.rows import Categories, OverlappingCategories
from transduce.conformal.designs.weights import Strata, Weights
from transduce.core.types import AnyArray, Array, Mask, Random
from transduce.core.words import option, percent

if TYPE_CHECKING:
    from transduce.conformal.designs.base import Design
    from transduce.conformal.exchangeability import Exchangeability
    from transduce.model_selection.problem import Problem
    from transduce.population.sample import Sample


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundDesign:
    """How the labels of the rows of one table came about: a design, and an array for each field.

    Every field except `spec` has one entry for each row.
    """

    spec: Design  # as the user says it
    within: Categories | None = None  # rows are compared within these
    overlapping: OverlappingCategories | None = None  # or within those of several columns
    order: Array | None = None  # (n,) the place of each row along an order
    groups: AnyArray | None = None  # (n,) rows that are held out together and that no fold splits

    def take_rows(self, rows: AnyArray) -> Self:
        """Return the design of some rows, in this order."""
        taken: dict[str, Any] = {}
        for described in fields(self):
            value = getattr(self, described.name)
            if described.name != "spec" and value is not None:
                taken[described.name] = value[rows]
        return replace(self, **taken)

    def check_rows(self, n_rows: int) -> Self:
        """Return the design, or raise a ValueError if it is one of other rows."""
        for described in fields(self):
            value = getattr(self, described.name)
            if described.name != "spec" and value is not None and len(value) != n_rows:
                raise ValueError(
                    f"labels describes {len(value)} rows, and there are {n_rows}: bind the design "
                    "to these rows."
                )
        return self

    # ---- which labels calibrate

    @property
    def n_drawn(self) -> int:
        """How many rows were drawn at random to be labelled, with a label or without."""
        return 0

    def n_calibration(
        self,
        n_labels: int,
        confidence: float,
        *,
        by_class: bool = False,
    ) -> int:
        """Return how many labels calibrate unless a number is given; none if there are too few."""
        # Many parts have labels of their own: then half of all labels calibrate.
        in_parts = by_class or self.overlapping is not None
        factor = float(self.spec.sensitivity)
        return calibration_number(n_labels, confidence, by_class=in_parts, factor=factor)

    def most_calibration(
        self, n_labels: int, levels: Sequence[float], *, by_class: bool = False
    ) -> int:
        """Return how many labels calibrate: enough for each of several levels that can be had."""
        return max(self.n_calibration(n_labels, level, by_class=by_class) for level in levels)

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        sensitivity = self.spec.sensitivity
        if sensitivity > 1.0:
            return (
                f"{n_labels} labels are too few to guarantee {percent(confidence)} if the odds of "
                f"a label are off by up to {sensitivity:g}: use a smaller {option('sensitivity')}, "
                "or ask for less confidence."
            )
        return (
            f"{n_labels} labels are too few to hold some out and guarantee {percent(confidence)}: "
            f"it takes {labels_needed(confidence)}."
        )

    def hold_out(
        self,
        problem: Problem,
        number: Any,
        levels: Sequence[float],
        by_class: bool,
        random: Random,
    ) -> Mask:
        """Return which labels to hold out, shape (l,), whatever they are.

        `number` is "auto" (as many as the levels take), a number of labels or a share of them.
        """
        auto = isinstance(number, str) and number == "auto"
        parts = self._parts(problem)
        if parts is not None and auto:
            return self._hold_out_of_parts(problem, parts, levels, random)
        units = problem.places[problem.rows]
        if self.groups is not None:
            units = self.groups[problem.rows]
        candidates = np.unique(units[self._may_calibrate(problem.rows)])
        if auto:
            size = self.most_calibration(len(candidates), levels, by_class=by_class)
        else:
            size = read_number(number, len(candidates))
        return np.isin(units, random.choice(candidates, size, replace=False))

    def _may_calibrate(self, rows: AnyArray) -> Mask:
        """Return which labels of these rows may be held out."""
        return np.ones(len(rows), dtype=bool)

    def _hold_out_of_parts(
        self, problem: Problem, parts: AnyArray, levels: Sequence[float], random: Random
    ) -> Mask:
        """Return which labels to hold out, as many of each part as it takes; shape (l,)."""
        held_out = np.zeros(len(parts), dtype=bool)
        by_content = np.argsort(problem.places[problem.rows])
        for part in np.unique(parts):
            labels = by_content[parts[by_content] == part]
            factor = float(self.spec.sensitivity)
            size = most_calibration(len(labels), levels, factor=factor)
            held_out[random.choice(labels, size, replace=False)] = True
        return held_out

    def _parts(self, problem: Problem) -> AnyArray | None:
        """Return numbers of the parts that hold out labels of their own, (l,), if any."""
        if self.within is None:
            return None
        return np.asarray(self.within.codes[problem.rows])

    def prepare_estimator(self, estimator: Any, rows: AnyArray) -> Any:
        """Return the estimator with folds that never split a group of these labelled rows."""
        if self.groups is None:
            return estimator
        from transduce.model_selection.folds import with_group_folds

        return with_group_folds(estimator, self.groups[rows])

    # ---- what to compare

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many known cells of a column are at labelled rows.

        Shapes: (n,) each.
        """
        from transduce.conformal.presence import tail_of_labels

        categories = np.zeros(len(known), dtype=int)
        if self.within is not None:
            categories = self.within.codes
        return tail_of_labels(known, labelled, categories)

    def compared_rows(self, missing: Mask) -> tuple[AnyArray, AnyArray]:
        """Return the labelled and the unlabelled rows that are alike if the assumption holds."""
        return np.flatnonzero(~missing), np.flatnonzero(missing)

    def _comparable_rows(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return which rows are alike if the assumption holds, and which count as labelled."""
        labelled, unlabelled = self.compared_rows(~problem.sample.labelled)
        rows = np.sort(np.concatenate([labelled, unlabelled]))
        return rows, problem.sample.labelled[rows]

    def _compare(self, problem: Problem, random: Random) -> Exchangeability:
        """Return how labelled and unlabelled rows compare."""
        from transduce.conformal.exchangeability import exchangeability_test
        from transduce.model_selection.problem import take_rows

        seed = random.randint(2**31 - 1)
        rows, labelled = self._comparable_rows(problem, random)
        categories = None
        if self.within is not None:
            categories = self.within.codes[rows]
        X = problem.X
        if len(rows) < problem.n_rows:
            X = take_rows(X, rows)
        return exchangeability_test(X, labelled, within=categories, random_state=seed)

    # ---- how labels weigh

    def weigh(
        self, problem: Problem, held_out: Mask, answered: Mask, *, test: bool, random: Random
    ) -> Weights:
        """Return how much rows weigh, and how they compare if that is tested.

        Shapes: held_out (l,); answered (c,), the calibration rows that have a prediction.
        """
        calibration = problem.rows[held_out]
        unlabelled = problem.sample.unlabelled
        testable = self.spec.testable
        compared = None
        verdict = None
        if test and testable and len(unlabelled):
            compared = self._compare(problem, random)
            verdict = compared.verdict
        if len(unlabelled) and self.spec.estimates_propensity(compared):
            from transduce.conformal.designs.propensity import weigh_by_estimate

            weights = weigh_by_estimate(problem, calibration, random.randint(2**31 - 1))
        else:
            weights = self._weigh_rows(problem, calibration, answered)
        weights = self._compare_within(weights, calibration, unlabelled)
        return weights.resting_on(testable=testable, compared=compared, verdict=verdict)

    def weigh_before_fit(self, problem: Problem, held_out: Mask) -> Weights:
        """Return weights as known before a fit; those to be estimated count as equal. (l,)."""
        calibration = problem.rows[held_out]
        unlabelled = problem.sample.unlabelled
        if self.spec.estimates_propensity(None):
            weights = Weights.equal(len(calibration), len(unlabelled))
        else:
            answered = np.ones(len(calibration), dtype=bool)
            weights = self._weigh_rows(problem, calibration, answered)
        return self._compare_within(weights, calibration, unlabelled)

    def _compare_within(
        self, weights: Weights, calibration: AnyArray, unlabelled: AnyArray
    ) -> Weights:
        """Return weights with the categories within which rows are compared, and their grounds."""
        if self.within is not None:
            codes = self.within.codes
            strata = Strata(codes[calibration], codes[unlabelled], self.within.names)
            weights = replace(weights, strata=strata)
        if self.overlapping is not None:
            both = self.overlapping[calibration], self.overlapping[unlabelled]
            weights = replace(weights, overlapping=both)
        weights = replace(weights, factor=float(self.spec.sensitivity))
        return weights.resting_on(assumption=self.spec.assumption)

    def _weigh_rows(self, problem: Problem, calibration: AnyArray, answered: Mask) -> Weights:
        """Return the weights that the design itself knows. Shapes: (c,) each."""
        return Weights.equal(len(calibration), len(problem.sample.unlabelled))

    def measure(self, rows: AnyArray) -> Array:
        """Return how much labelled rows (l,) stand for unlabelled ones in measures of quality."""
        return np.ones(len(rows))

    # ---- questions about the whole column

    def describe_sample(self, missing: Mask, estimated: Array | None = None) -> Sample:
        """Return how labelled rows stand for the others in questions about the whole column.

        Parameters
        ----------
        missing : boolean array of shape (n,)
            Rows without a label.
        estimated : array of shape (n,), optional
            Odds that a row has no label, up to a factor, where they were estimated.
        """
        from transduce.population.sample import Sample

        if self.order is not None:
            raise ValueError(
                "Labels that stop along an order say nothing certain about the rows beyond them: "
                "draw rows at random with `transduce draw`, label them, and fill with "
                f"{option('random_labels')}."
            )
        rows = self._sampled_rows(missing)
        odds = self._sampling_odds()
        if estimated is not None:
            odds = estimated * float(np.sum(missing)) / float(np.sum(estimated[rows]))
        strata = None
        if self.within is not None:
            strata = self.within.codes
        return Sample(
            rows,
            strata=strata,
            groups=self.groups,
            odds=odds,
            known_odds=estimated is None,
            sensitivity=float(self.spec.sensitivity),
            lost=self._lost_rows(),
            later=self._later_rows(),
        )

    def _sampled_rows(self, missing: Mask) -> Mask:
        """Return the labelled rows that stand for the others."""
        return ~missing

    def _lost_rows(self) -> Mask | None:
        """Return the rows that were drawn to be labelled and have no label, if rows were drawn."""
        return None

    def _later_rows(self) -> Mask | None:
        """Return the labelled rows that could be drawn and were not, if rows were drawn."""
        return None

    def _sampling_odds(self) -> Array | None:
        """Return the known odds that each row has no label; None if all are equal."""
        return None
