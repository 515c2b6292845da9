"""What is guaranteed of predictions, given calibration and unlabelled rows side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from transduce.conformal import too_few
from transduce.conformal.designs.held_out import labels_needed
from transduce.conformal.designs.weights import CLASSES, ESTIMATED, GROUPS, KNOWN
from transduce.conformal.miscoverage import CategoryMiscoverage, Law, Miscoverage
from transduce.conformal.ruled_out import (
    any_class_possible,
    count_in_short_categories,
    short_categories,
)
from transduce.core import assumptions, guarantee
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.types import Within
from transduce.core.words import counted
from transduce.model_selection.fit_and_predict import RawPrediction

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable

WHY_ESTIMATED = (
    "Propensities (how likely a row is to have a label) are estimated, so that the guarantee "
    "cannot be exact."
)
WHY_ALL_EQUAL = "No column tells which rows have one, so that all labels weigh the same."


def make_guarantee(
    table: CalibratedTable, confidence: float, certainty: float, second: RawPrediction | None
) -> Guarantee:
    """Return what is guaranteed at a level; predictions may come from a second fit."""
    no_guarantee = Guarantee(
        "none",
        about="interval" if table.classes is None else "set",
        confidence=confidence,
        n_labelled=sum(table.sizes),
        n_calibration=len(table.labels),
        n_unreached=int((~table.unlabelled.given).sum()),
        n_empty=table.n_empty,
        verdict=table.weights.grounds.verdict,
    )
    if len(table.unlabelled.values) == 0:
        return replace(no_guarantee, reasons=("No row is unlabelled.",), confidence=None)
    obstacle = _find_obstacle(table)
    if obstacle:
        return replace(no_guarantee, reasons=(obstacle,))
    shortfall = too_few.explain(table, confidence)
    if shortfall:
        reachable = _reachable_level(table, confidence)
        return replace(no_guarantee, reasons=(f"{shortfall}.",), reachable=reachable)
    bounded = replace(
        no_guarantee,
        outside=_bound_outside(table.law(confidence), certainty),
        any_class=any_class_possible(table, confidence),
    )
    bounded = _with_exceptions(table, bounded, confidence)
    can_be_wrong = table.classes is not None or table.tolerance is not None
    if table.pooled and not table.estimated and can_be_wrong:
        bounded = replace(bounded, wrong=table.wrong_answers(second).bound(certainty))
    return _with_grounds(table, bounded, confidence)


def _find_obstacle(table: CalibratedTable) -> str:
    """Return why nothing is guaranteed at any level, in a sentence; "" if something may be."""
    if not table.unlabelled.given.any():
        return "The estimator has no answer at any unlabelled row."
    if not table.covered.any():
        return "Every row without a label was drawn to get one: label them."
    if table.by_value:
        return assumptions.WHY_BY_VALUE
    return ""


def _bound_outside(law: Law | None, certainty: float) -> CountBound | None:
    """Return a bound on the number of rows outside, if it has a distribution."""
    if law is None:
        return None
    return CountBound(certainty, law.quantile(certainty), law.n_unlabelled, law.mean)


def _with_exceptions(table: CalibratedTable, bounded: Guarantee, confidence: float) -> Guarantee:
    """Return the guarantee with how many rows or classes it says nothing of."""
    law = table.law_of_thresholds(confidence)
    if law is None:
        effective = None
        if table.weights.kind in (KNOWN, ESTIMATED):
            effective = table.effective
        n_unbounded = table.n_unbounded(confidence) - count_in_short_categories(table, confidence)
        return replace(bounded, effective=effective, n_unbounded=n_unbounded)
    if table.by_class:
        return replace(bounded, n_short=law.n_short)
    return bounded


def _with_grounds(table: CalibratedTable, bounded: Guarantee, confidence: float) -> Guarantee:
    """Return the guarantee with where it holds, what it rests on, and why it is of its kind."""
    weights = table.weights
    shifted = bounded.verdict is not None and bounded.verdict.shifted
    grounded = replace(
        bounded,
        kind="approximate" if table.estimated or shifted or weights.grounds.n_since else "exact",
        within=_within(table),
        assumptions=_assumptions(table),
        reasons=_reasons(table, bounded),
        factor=weights.factor,
        short=short_categories(table, confidence),
    )
    groups = weights.groups
    if groups is None:
        return grounded
    of_rows = None
    if groups.sizes:
        of_rows = largest_share(groups.sizes, 1.0 - confidence)
    return replace(
        grounded,
        n_groups=groups.n_calibration,
        n_other=groups.n_other_rows,
        of_rows=of_rows,
    )


def _within(table: CalibratedTable) -> Within:
    """Return where the guarantee holds: over all rows, within classes, or within categories."""
    if table.by_class:
        return "class"
    if table.weights.overlapping is not None:
        return "categories"
    if table.weights.strata is not None:
        return "category"
    return ""


def _assumptions(table: CalibratedTable) -> tuple[str, ...]:
    """Return what has to be true."""
    if table.by_class and table.weights.kind == CLASSES:  # whether or not given shares are right
        return (assumptions.BY_CLASS, assumptions.SEEN)
    assumption = table.weights.grounds.assumption
    if table.estimated:
        assumption = assumptions.ESTIMATE
    if table.by_class:
        return (assumption, assumptions.SEEN)
    return (assumption,)


def _reasons(table: CalibratedTable, bounded: Guarantee) -> tuple[str, ...]:
    """Return why the guarantee is of its kind, in sentences."""
    if table.estimated and table.weights.kind == ESTIMATED:
        return (WHY_ESTIMATED,)
    if table.estimated:
        return (f"{WHY_ESTIMATED} {WHY_ALL_EQUAL}",)
    if table.weights.grounds.n_since:
        return (_why_since(table.weights.grounds.n_since),)
    if bounded.verdict is None and table.weights.grounds.testable:
        return (assumptions.NOT_TESTED,)
    return ()


def _why_since(n_since: int) -> str:
    """Return why rows that were labelled since the draw leave a guarantee approximate."""
    rows = counted(n_since, "row that was not drawn was", "rows that were not drawn were")
    return (
        f"{rows} labelled after the draw: if what such a row holds, or how well it is predicted, "
        "was a reason to choose it, the rows that are left differ from the drawn ones, so that the "
        "guarantee is approximate. Draw again to make it exact."
    )


def largest_share(sizes: Sequence[int], share: float) -> float:
    """Return the share of all rows that the largest groups hold, which are this share of groups."""
    # Each group counts once, so that this share of the rows may be outside if the groups outside
    # are the largest.
    total = np.cumsum([0, *sorted(sizes, reverse=True)])
    places = np.arange(len(total))
    reached = np.interp(share * len(sizes), places, total)
    return float(reached / total[-1])


def _reachable_level(table: CalibratedTable, confidence: float) -> float | None:
    """Return the highest round level below this one that these labels support, if there is one."""
    if table.estimated:  # it is not for want of labels that nothing holds
        return None
    none_held_out = len(table.labels) == 0 and table.weights.kind not in (GROUPS, CLASSES)
    for level in guarantee.ROUND_LEVELS:
        if level >= confidence:
            continue
        if none_held_out:
            supported = labels_needed(level) <= sum(table.sizes)
        else:
            supported = too_few.explain(table, level) is None
        if supported:
            return level
    return None


# ------------------------------------------------------------------------- two parts of a table


def bound_together(one: Law, other: Law, certainty: float) -> CountBound:
    """Return a bound on the rows outside among rows that a fit saw and others that it did not."""
    expected = one.mean + other.mean
    n_rows = one.n_unlabelled + other.n_unlabelled
    if isinstance(one, Miscoverage) and isinstance(other, Miscoverage):
        at_most = CategoryMiscoverage((one, other)).quantile(certainty)
        return CountBound(certainty, at_most, n_rows, expected)
    # Of classes there is a bound and no distribution: both share the doubt, by numbers of rows.
    share = float(np.clip(one.n_unlabelled / max(n_rows, 1), 0.1, 0.9))
    doubt = 1.0 - certainty
    most_of_one = one.quantile(1.0 - share * doubt)
    most_of_other = other.quantile(1.0 - (1.0 - share) * doubt)
    return CountBound(certainty, most_of_one + most_of_other, n_rows, expected)
