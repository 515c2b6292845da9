"""What is guaranteed of calibrated answers: a `Guarantee` made of counts, and the warning where they are too few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce.conformal.calibrated import Calibrated, Law
from transduce.conformal.categories import CategoryMiscoverage
from transduce.conformal.chosen import Chosen
from transduce.conformal.held_out import labels_needed
from transduce.conformal.miscoverage import Miscoverage
from transduce.conformal.weighing import ESTIMATED, GROUPS, KNOWN, Weighing, effective_needed
from transduce.core.guarantee import CHANCE, ESTIMATE, SEEN, CountBound, Guarantee, Verdict, counted, percent
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Mask
from transduce.tables.labels import draw_rows

N_TO_LABEL = 20  # as many as `transduce draw` draws, or more if the level takes more


def calibrated_guarantee(
    found: Calibrated,
    confidence: float,
    n_labelled: int,
    verdict: Verdict | None,
    *,
    chosen: Chosen | None = None,
    certainty: float = 0.95,
    wrong: CountBound | None = None,
) -> Guarantee:
    """Return what is guaranteed of calibrated answers at a level."""
    chosen = chosen or Chosen()
    n_unreached = int((~found.unlabelled.given).sum())
    common = Guarantee(
        "none",
        about="set" if found.n_classes else "interval",
        confidence=confidence,
        n_labelled=n_labelled,
        n_calibration=len(found.labels),
        n_unreached=n_unreached,
        verdict=verdict,
    )
    if len(found.unlabelled.values) == 0:
        return replace(common, reasons=("No row is unlabelled.",), confidence=None)
    if n_unreached == len(found.unlabelled.values):
        return replace(common, reasons=("The estimator has no answer at any unlabelled row.",))
    why = nothing_supported(found, confidence, n_labelled)
    if why:
        return replace(common, reasons=(f"{why}.",))
    untested = ("Whether labelled and unlabelled rows differ was not tested.",)
    sure = replace(
        common,
        kind="exact",
        within="class" if found.by_class else "category" if found.weighing.cells is not None else "",
        wrong=wrong,
        assumptions=(CHANCE, SEEN) if found.by_class else (CHANCE,),
        reasons=untested if verdict is None and chosen.testable else (),
    )
    sure = _with_counts(sure, found, confidence, certainty)
    if found.weighing.kind == ESTIMATED:
        sure = replace(
            sure,
            kind="approximate",
            assumptions=tuple(ESTIMATE if one == CHANCE else one for one in sure.assumptions),
            reasons=("The odds of a label are estimated, and no estimate bears an exact guarantee.",),
        )
    return chosen.assumed(sure).doubted(verdict)


def _with_counts(sure: Guarantee, found: Calibrated, confidence: float, certainty: float) -> Guarantee:
    """Return the guarantee with what is known of the number of rows outside, or of rows that weigh too much."""
    law = found.law(confidence)
    if law is None:
        effective = found.weighing.effective if found.weighing.kind in (KNOWN, ESTIMATED) else None
        return replace(sure, effective=effective, n_unbounded=found.n_unbounded(confidence))
    return replace(
        sure,
        outside=CountBound(certainty, law.quantile(certainty), law.n_unlabelled, law.mean),
        n_short=shortages(law) if found.by_class else 0,
        any_class=everything_possible(found, law),
    )


def nothing_supported(found: Calibrated, confidence: float, n_labelled: int) -> str | None:
    """Return why the calibration labels rule nothing out at any row, and how many would; None if they do at some."""
    law = found.law(confidence)
    if found.weighing.cells is not None:
        if found.n_unbounded(confidence) < int(found.unlabelled.given.sum()):
            return None
        return f"No category has the {labels_needed(confidence)} labels that {percent(confidence)} takes"
    if law is None and (len(found.labels) or found.weighing.kind == GROUPS):
        return _worth_too_little(found, confidence)
    if law is not None and shortages(law) < (1 if isinstance(law, Miscoverage) else len(law.ranks)):
        return None
    return too_few(found, confidence, n_labelled)


def _worth_too_little(found: Calibrated, confidence: float) -> str | None:
    """Return why labels that weigh differently rule nothing out at any row; None if they do at some."""
    weighing, labels = found.weighing, counted(len(found.labels), "calibration label")
    if weighing.kind == GROUPS:
        n, needed = round(float(weighing.calibration.sum())), _groups_needed(weighing, confidence)
        if n == 0:
            some = labels_needed(confidence)
            return f"Too few groups have labels to hold some out and guarantee {percent(confidence)}: it takes {some}"
        few = f"{counted(n, 'calibration group')} cannot support {percent(confidence)}: it takes {needed}"
        return None if n >= needed else few
    if not weighing.supports(confidence):
        return (
            f"Labelled and unlabelled rows differ so much that {labels} are worth {weighing.effective:.0f} of equal "
            f"weight, and {percent(confidence)} takes {effective_needed(confidence):.0f}"
        )
    if found.n_unbounded(confidence) < int(found.unlabelled.given.sum()):
        return None
    if weighing.kind == ESTIMATED and weighing.factor == 1.0:
        return f"Labelled and unlabelled rows have too little in common for {labels} to support {percent(confidence)}"
    off = (
        f"that may be off by a factor of {weighing.factor:g}"
        if weighing.factor > 1.0
        else "as different as these"
    )
    return (
        f"{labels}, worth {weighing.effective:.0f} of equal weight, cannot support {percent(confidence)} with odds "
        f"{off}"
    )


def shortages(law: Law) -> int:
    """Return for how many thresholds the calibration labels are too few."""
    if isinstance(law, Miscoverage):
        return int(law.rank > law.n_calibration)
    return sum(k > c for c, k in zip(law.n_calibration, law.ranks, strict=True))


def too_few(
    found: Calibrated, confidence: float, n_labelled: int, which: tuple[int, str] | None = None
) -> str:
    """Return why the calibration labels do not support a level, and how many would.

    `which` are the number of labels, and what they are of, where not all count.
    """
    if len(found.labels) == 0:
        verb = "is" if n_labelled == 1 else "are"
        return (
            f"{counted(n_labelled, 'label')} {verb} too few to hold some out and guarantee {percent(confidence)}: it "
            f"takes {labels_needed(confidence)}"
        )
    known = int(found.calibration.given.sum())
    n, of = which or (known, "" if known == len(found.labels) else " at rows with an answer")
    limit = f"at most {n}/{n + 1} = {n / (n + 1):.4g}" if n else "no level"
    verb = "supports" if n == 1 else "support"
    return (
        f"{counted(n, 'calibration label')}{of} {verb} {limit}: {percent(confidence)} takes "
        f"{fewest_calibration(confidence)}"
    )


def _groups_needed(weighing: Weighing, confidence: float) -> int:
    """Return how many calibration groups a level takes."""
    return max(
        fewest_calibration(confidence),
        int(np.ceil(weighing.factor**2 * confidence / (1.0 - confidence) - 1e-9)),
    )


def rows_to_label(found: Calibrated, confidence: float, missing: Mask) -> tuple[int, ...]:
    """Return rows without a label, drawn at random as ``transduce draw`` does: their labels would be enough."""
    if found.weighing.kind != ESTIMATED:
        return ()
    number = min(max(N_TO_LABEL, fewest_calibration(confidence)), int(missing.sum()))
    return tuple(draw_rows(missing, number, 0).tolist())


def everything_possible(found: Calibrated, law: Law) -> bool:
    """Return whether so many calibration labels are of classes without a visible label that no class is ruled out."""
    return isinstance(law, Miscoverage) and law.n_calibration - found.n_unseen < law.rank <= law.n_calibration


def _unseen(found: Calibrated) -> str:
    n = counted(len(found.labels), "calibration label")
    return f"{found.n_unseen} of {n} are of classes that no other label shows, so a row may be of any class"


def shortfall(found: Calibrated, confidence: float, n_labelled: int, classes: AnyArray | None) -> str | None:
    """Return a warning where the calibration labels are too few for a level; None where they are not."""
    law = found.law(confidence)
    region, everything = ("set", "all classes") if found.n_classes else ("interval", "the whole line")
    if law is None or isinstance(law, CategoryMiscoverage):
        why = nothing_supported(found, confidence, n_labelled)
        return None if why is None else f"{why}. Every {region} is {everything}."
    if isinstance(law, Miscoverage):
        if everything_possible(found, law):
            return f"{_unseen(found)}. Every set is all classes."
        if not shortages(law):
            return None
        return f"{too_few(found, confidence, n_labelled)}. Every {region} is {everything}."
    short = [y for y, (c, k) in enumerate(zip(law.n_calibration, law.ranks, strict=True)) if k > c]
    if not short or classes is None:
        return None
    rarest = min(short, key=lambda y: law.n_calibration[y])
    which = (law.n_calibration[rarest], f" of class {classes[rarest].item()!r}")
    more = f" (and {len(short) - 1} more that have too few)" if len(short) > 1 else ""
    return f"{too_few(found, confidence, n_labelled, which)}; that class{more} is in every set."


def selection_guarantee(
    bound: float, mistake: str, n_calibration: int, verdict: Verdict | None, *, exchangeable: bool = True
) -> Guarantee:
    """Return what is guaranteed of rows that were picked: a bound on the share of mistakes, and what a mistake is."""
    if n_calibration == 0:
        return Guarantee("none", about="selection", reasons=("No label was held out to pick rows by.",))
    if not exchangeable:
        weighted = (
            "Rows are picked as if all calibration labels stood for the unlabelled rows alike; they do not."
        )
        return Guarantee("none", about="selection", reasons=(weighted,), verdict=verdict)
    return Guarantee(
        "exact",
        about="selection",
        false_discovery=bound,
        mistake=mistake,
        reasons=(f"It rests on {counted(n_calibration, 'calibration label')}.",),
        assumptions=(CHANCE,),
    ).doubted(verdict)
