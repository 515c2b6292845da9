"""Why calibration labels do not support a level, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transduce.conformal.designs.held_out import effective_needed, labels_needed
from transduce.conformal.designs.weights import CLASSES, ESTIMATED, GROUPS
from transduce.conformal.miscoverage import ClassMiscoverage, Law, Miscoverage
from transduce.conformal.ruled_out import any_class_possible, short_categories
from transduce.core.ranks import calibration_rank, fewest_calibration
from transduce.core.words import counted, percent

if TYPE_CHECKING:
    from transduce.conformal.calibrated import CalibratedTable


def explain(table: CalibratedTable, confidence: float) -> str | None:
    """Return why the calibration labels rule nothing out at any row; None if they do at some.

    The reason is a sentence without its full stop.
    """
    law = table.law_of_thresholds(confidence)
    supported = table.supports(confidence)
    if supported and _rules_something_out(table, law, confidence):
        return None
    weights = table.weights
    level = percent(confidence)
    has_labels = len(table.labels) > 0
    if weights.kind == GROUPS:
        return _too_few_groups(table, confidence)
    if weights.kind == CLASSES:
        return _too_few_of_classes(table, law, confidence)
    drawn = ", since rows that were drawn have no label" if table.n_empty else ""
    if weights.strata is not None and supported:
        return f"No category has the {labels_needed(confidence)} labels that {level} takes{drawn}"
    if table.by_class and law is not None and has_labels:
        fewest = fewest_calibration(confidence)
        return f"No class has the {fewest} calibration labels that {level} takes{drawn}"
    if weights.overlapping is not None and has_labels:
        return (
            f"At no row do all categories have the {fewest_calibration(confidence)} calibration "
            f"labels that {level} takes"
        )
    if has_labels and (law is None or not supported):
        return _worth_too_little(table, confidence)
    return too_few_labels(table, confidence)


def _rules_something_out(table: CalibratedTable, law: Law | None, confidence: float) -> bool:
    """Return whether something is ruled out at some row."""
    if law is None or table.weights.strata is not None:
        return table.n_unbounded(confidence) < int(table.unlabelled.given.sum())
    n_parts = len(table.sizes) if table.by_class else 1
    return law.n_short < n_parts


def _too_few_of_classes(table: CalibratedTable, law: Law | None, confidence: float) -> str:
    """Return why labels that were chosen by their class rule nothing out at any row."""
    if law is None and len(table.labels):
        labels = counted(len(table.labels), "calibration label")
        return (
            f"The {labels} are too few of each class for {percent(confidence)} with these shares "
            "of the classes"
        )
    needed = labels_needed(confidence)
    return f"No class has the {needed} labels that {percent(confidence)} takes within it"


def _worth_too_little(table: CalibratedTable, confidence: float) -> str:
    """Return why labels that weigh differently rule nothing out at any row."""
    weights = table.weights
    level = percent(confidence)
    labels = counted(len(table.labels), "calibration label")
    if not table.supports(confidence):
        verb = "is" if len(table.labels) == 1 else "are"
        return (
            f"Labelled and unlabelled rows differ so much that {labels} {verb} worth "
            f"{table.effective:.0f} of equal weight, and {level} takes "
            f"{effective_needed(confidence):.0f}"
        )
    if weights.kind == ESTIMATED and weights.factor == 1.0:
        return (
            "Labelled and unlabelled rows have too little in common "
            f"for {labels} to support {level}"
        )
    odds = "as different as these"
    if weights.factor > 1.0:
        odds = f"that may be off by a factor of {weights.factor:g}"
    return (
        f"{labels}, worth {table.effective:.0f} of equal weight, cannot support {level} with odds "
        f"{odds}"
    )


def _too_few_groups(table: CalibratedTable, confidence: float) -> str:
    """Return why groups rule nothing out at any row."""
    n_groups = round(float(table.weights.calibration.sum()))
    level = percent(confidence)
    if n_groups == 0:
        return (
            f"Too few groups have labels to hold some out and guarantee {level}: it takes "
            f"{labels_needed(confidence)}"
        )
    needed = fewest_calibration(confidence, table.weights.factor)
    groups = counted(n_groups, "calibration group")
    return f"{groups} cannot support {level}: it takes {needed}"


def too_few_labels(table: CalibratedTable, confidence: float, rarest: int | None = None) -> str:
    """Return why the labels, or those of one class, do not support a level, and how many would."""
    level = percent(confidence)
    if len(table.labels) == 0:
        n_labelled = sum(table.sizes)
        verb = "is" if n_labelled == 1 else "are"
        return (
            f"{counted(n_labelled, 'label')} {verb} too few to hold some out and guarantee "
            f"{level}: it takes {labels_needed(confidence)}"
        )
    known = table.calibration.given
    n_labels = int(known.sum())
    which = "" if known.all() else " at rows with an answer"
    may_be = ""
    if rarest is not None and table.classes is not None:
        n_labels = int(np.sum(table.labels[known] == rarest))
        name = repr(table.classes[rarest].item())
        which = f" of class {name}"
        may_be = f" that may be of class {name}"
    if table.n_empty:
        return _too_few_drawn(table, confidence, n_labels, may_be)
    limit = "no level"
    if n_labels:
        limit = f"at most {n_labels}/{n_labels + 1} = {n_labels / (n_labels + 1):.4g}"
    labels = counted(n_labels, "calibration label")
    verb = "supports" if n_labels == 1 else "support"
    least = fewest_calibration(confidence)
    return f"{labels}{which} {verb} {limit}: {level} takes {least}"


def _too_few_drawn(table: CalibratedTable, confidence: float, n_labels: int, may_be: str) -> str:
    """Return why labels of rows drawn at random are too few, where some of these have none."""
    total = n_labels + table.n_empty
    needed = max(calibration_rank(confidence, total), fewest_calibration(confidence))
    advice = "draw and label more rows"
    if needed <= total:
        advice = f"label {needed - n_labels} more of them"
    lack = "has no label, and it" if table.n_empty == 1 else "have no label, and each"
    return (
        f"{table.n_empty} of the {total} rows drawn at random{may_be} {lack} may be far off: "
        f"{percent(confidence)} takes {needed} labels of such rows, so {advice}"
    )


def warn_of_shortfall(table: CalibratedTable, confidence: float) -> str | None:
    """Return a warning where the calibration labels are too few for a level, if they are."""
    law = table.law_of_thresholds(confidence)
    has_labels = len(table.labels) > 0
    if isinstance(law, ClassMiscoverage) and (has_labels or table.weights.kind != CLASSES):
        return _warn_of_classes(table, law, confidence)
    everything = "interval is the whole line"
    if table.classes is not None:
        everything = "set is all classes"
    reason = explain(table, confidence)
    one_law = isinstance(law, Miscoverage)
    if one_law and any_class_possible(table, confidence):
        labels = counted(len(table.labels), "calibration label")
        reason = (
            f"{table.n_unseen} of {labels} are of classes that no other label shows, so a row may "
            "be of any class"
        )
    if reason is not None:
        return f"{reason}. Every {everything}."
    short = short_categories(table, confidence)
    if not short:
        return None
    names = ", ".join(short)
    return f"Too few labels for {percent(confidence)} in {names}: every {everything} there."


def _warn_of_classes(
    table: CalibratedTable, law: ClassMiscoverage, confidence: float
) -> str | None:
    """Return a warning where some classes have too few calibration labels; None where none has."""
    short = []
    for code, (n_calibration, rank) in enumerate(zip(law.n_calibration, law.ranks, strict=True)):
        if rank > n_calibration:
            short.append(code)
    if not short:
        return None
    rarest = min(short, key=lambda code: law.n_calibration[code])
    more = ""
    if len(short) > 1:
        others = counted(len(short) - 1, "more that has", "more that have")
        more = f" (and {others} too few)"
    reason = too_few_labels(table, confidence, rarest)
    return f"{reason}; that class{more} is in every set."
