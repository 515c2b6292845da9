"""What labels will guarantee, told before any fit, by the code that tells it afterwards."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.designs import BoundDesign, Design, Weights
from transduce.conformal.exchangeability import drift_along
from transduce.conformal.miscoverage import Law
from transduce.conformal.outside import table_outside
from transduce.conformal.scores import Scoring
from transduce.core.assumptions import ESTIMATE
from transduce.core.checks import check_random_state
from transduce.core.guarantee import Guarantee
from transduce.core.types import About, AnyArray, Array, Mask
from transduce.core.words import percent
from transduce.model_selection.fit_and_predict import RawPrediction
from transduce.model_selection.problem import Problem

# What only a fit, or a test before it, can tell; the worst first.
UNEVEN = "uneven"  # estimated propensities differ so much that the labels are worth too few
SHIFTED = "shifted"  # labelled and unlabelled rows are found to differ
DRIFTING = "drifting"  # errors are found to drift along the order of the rows
ROUNDED = "rounded"  # the ridge has to be raised for numerical reasons
EVENTS = (UNEVEN, SHIFTED, DRIFTING, ROUNDED)


@dataclass(frozen=True)
class Contingency:
    """What holds instead if something turns out that cannot be known before the fit."""

    event: str  # one of `EVENTS`
    guarantee: Guarantee


@dataclass(frozen=True)
class GuaranteeForecast:
    """What will be guaranteed, told before any fit.

    Parameters
    ----------
    guarantee : Guarantee
        What holds if every row gets a prediction and nothing of `contingencies` turns out.
    refusal : str
        Why a fit will be refused, in a sentence that says what to do; "" if it will not.
    contingencies : tuple of Contingency
        What holds instead if something turns out that only the fit can tell, the worst first.
    law : Law or None
        The distribution of the number of rows outside, if there is one.

    Examples
    --------
    >>> from transduce.core.guarantee import Guarantee
    >>> doubted = Contingency(SHIFTED, Guarantee("approximate"))
    >>> forecast = GuaranteeForecast(Guarantee("exact"), contingencies=(doubted,))
    >>> forecast.after(set()).kind, forecast.after({SHIFTED}).kind
    ('exact', 'approximate')
    """

    guarantee: Guarantee
    refusal: str = ""
    contingencies: tuple[Contingency, ...] = ()
    law: Law | None = None

    @property
    def n_calibration(self) -> int:
        """How many labels will calibrate; 0 where none is held out."""
        return self.guarantee.n_calibration

    @property
    def bounds_column(self) -> bool:
        """Whether the number of rows outside will be bounded."""
        return self.guarantee.outside is not None

    def after(self, events: Collection[str]) -> Guarantee:
        """Return what holds after some events: the worst of them counts."""
        happened = [
            contingency for contingency in self.contingencies if contingency.event in events
        ]
        return happened[0].guarantee if happened else self.guarantee

    def if_event(self, event: str) -> Guarantee | None:
        """Return what holds if something turns out; None if that changes nothing."""
        guarantees = [
            contingency.guarantee
            for contingency in self.contingencies
            if contingency.event == event
        ]
        return guarantees[0] if guarantees else None


def refused(about: About, confidence: float, reason: str) -> GuaranteeForecast:
    """Return the forecast of a fit that will be refused."""
    no_guarantee = Guarantee("none", about=about, confidence=confidence, reasons=(reason,))
    return GuaranteeForecast(no_guarantee, reason)


def in_order(contingencies: Collection[Contingency]) -> tuple[Contingency, ...]:
    """Return contingencies with the worst event first."""
    return tuple(sorted(contingencies, key=lambda contingency: EVENTS.index(contingency.event)))


# ---------------------------------------------------------------------------------- labels held out


def forecast_calibrated(
    problem: Problem,
    design: BoundDesign,
    *,
    levels: Sequence[float],
    certainty: float,
    by_class: bool,
    random_state: int,
) -> GuaranteeForecast:
    """Return what `ConformalTransducer` will guarantee at the first of some levels.

    It will hold out the very labels that are counted here.
    """
    random = check_random_state(random_state)
    confidence = levels[0]
    held_out = design.hold_out(problem, "auto", levels, by_class, random)
    weights = design.weigh_before_fit(problem, held_out)
    table = table_before_fit(problem, held_out, weights, by_class=by_class)
    guarantee = without_fit(table.guarantee(confidence, certainty))
    contingencies = []
    if design.order is not None:
        guarantee = _along(guarantee, design.order, problem.sample.labelled)
        contingencies.append(Contingency(DRIFTING, guarantee.weakened()))
    if guarantee.kind != "none" and design.spec.testable:
        contingencies.append(Contingency(SHIFTED, if_shifted(guarantee, design.spec)))
    if guarantee.kind != "none" and design.spec.may_estimate:
        contingencies.append(Contingency(UNEVEN, if_uneven(guarantee)))
    law = table.law(confidence)
    return GuaranteeForecast(guarantee, contingencies=in_order(contingencies), law=law)


def table_before_fit(
    problem: Problem, held_out: Mask, weights: Weights, *, by_class: bool
) -> CalibratedTable:
    """Return calibration and unlabelled rows as if a fit had answered all of them.

    Their numbers count, not values.
    """
    labels = problem.numbers[held_out]
    n_unlabelled = len(problem.sample.unlabelled)
    n_classes = len(problem.class_sizes)
    calibration = answered(len(labels), labels.dtype)
    return CalibratedTable(
        calibration=calibration,
        unlabelled=answered(n_unlabelled, labels.dtype),
        labels=labels,
        classes=problem.classes,
        sizes=problem.class_sizes or (len(problem.labels),),
        by_class=by_class,
        tolerance=None,
        scoring=_scoring(calibration, problem.numbers[~held_out], n_classes),
        ties=(np.zeros(len(labels)), np.zeros(n_unlabelled)),
        weights=weights,
    )


def answered(n_rows: int, kind: np.dtype) -> RawPrediction:
    """Return predictions that stand for any, at so many rows."""
    return RawPrediction(np.zeros(n_rows, dtype=kind), np.full(n_rows, "answered"))


def _scoring(reply: RawPrediction, shown: AnyArray, n_classes: int) -> Scoring:
    """Return a scoring that tells classes without a visible label from the others."""
    return Scoring.of(reply, shown, n_classes, "zero_one" if n_classes else "absolute")


def without_fit(guarantee: Guarantee) -> Guarantee:
    """Return a guarantee without bounds on wrong predictions, and tests that come later."""
    reasons = guarantee.reasons if guarantee.kind == "none" else ()
    bare = replace(guarantee, wrong=None, wrong_by_class=(), tolerance=None, reasons=reasons)
    return replace(bare, verdict=None, drift=None, details=())


def _along(guarantee: Guarantee, order: Array, labelled: Mask) -> Guarantee:
    """Return a guarantee with what has to be true along an order.

    Whether errors drift is not known yet.
    """
    places = drift_along(order, labelled, np.empty(0), [])
    return replace(guarantee.along(places), drift=None)


def if_shifted(guarantee: Guarantee, design: Design) -> Guarantee:
    """Return what is left of a guarantee if labelled and unlabelled rows are found to differ."""
    doubted = guarantee.weakened()
    if not design.reweighs_if_shifted:
        return doubted
    return replace(doubted, outside=None, assumptions=(ESTIMATE,))


def if_uneven(guarantee: Guarantee) -> Guarantee:
    """Return that nothing is left of a guarantee if estimated propensities differ too much."""
    level = percent(guarantee.confidence or 0.0)
    reason = (
        "Labelled and unlabelled rows differ so much that the calibration labels are worth too few "
        f"of equal weight for {level}."
    )
    return Guarantee(
        "none",
        about=guarantee.about,
        confidence=guarantee.confidence,
        n_labelled=guarantee.n_labelled,
        n_calibration=guarantee.n_calibration,
        reasons=(reason,),
    )


# ------------------------------------------------------------------------ rows that no fit will see


def table_outside_before_fit(
    shown: AnyArray, held: AnyArray, classes: AnyArray | None, weights: Weights, *, by_class: bool
) -> CalibratedTable:
    """Return labels (or their codes) that are kept from a fit, as if it had answered their rows."""
    n_classes = 0 if classes is None else len(classes)
    reply = answered(len(held), held.dtype)
    scoring = _scoring(reply, shown, n_classes)
    table = table_outside(reply, scoring, shown, held, classes, weights)
    return replace(table, by_class=by_class)
