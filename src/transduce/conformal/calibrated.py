"""Calibration and unlabelled rows side by side after the one fit: answers and guarantees at any level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.counts import class_shares, powered_mean, urn_bound
from transduce.conformal.designs import (
    ESTIMATED,
    GROUPS,
    KNOWN,
    Chance,
    Design,
    Weighing,
    effective_needed,
    labels_needed,
)
from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Miscoverage
from transduce.conformal.scores import (
    CLASS_SCORES,
    NUMBER_SCORES,
    Ranking,
    choose_score,
    class_p_values,
    intervals,
    label_sets,
    resolution,
    rounded,
)
from transduce.core.answer import Answer
from transduce.core.guarantee import CHANCE, ESTIMATE, SEEN, CountBound, Guarantee, Verdict
from transduce.core.ranks import fewest_calibration
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted, percent
from transduce.model_selection.ask import Reply
from transduce.tables.labels import draw_rows

Law = Miscoverage | ClassMiscoverage | CategoryMiscoverage


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Answers and labels of calibration rows, answers at unlabelled rows, and their scores."""

    calibration: Reply
    unlabelled: Reply
    labels: AnyArray  # (c,) calibration labels: numbers, or numbers of classes
    class_sizes: tuple[int, ...]  # number of labels of every class, held out or not; empty for numbers
    by_class: bool  # whether every class is compared with its own calibration rows
    nonconformity: str  # the score
    measures: tuple[Array, Array]  # numbers
    ties: tuple[Array, Array]  # what decides between equal scores
    unit: float  # scores (of numbers: distances) that differ by less are equal
    weights: Weighing | None = None  # how much each row weighs, and with which it is compared

    @classmethod
    def build(
        cls,
        found: Reply,
        labels: AnyArray,
        shown: AnyArray,
        *,
        class_sizes: tuple[int, ...],
        by_class: bool,
        wanted: str,
        ties: Array,
    ) -> Calibrated:
        """Score all rows in the same way, and split them into calibration and unlabelled rows.

        Shapes: labels, shown (c,), ties (c + m,).
        """
        n_classes, c = len(class_sizes), len(labels)
        name = choose_score(wanted, found, n_classes) if len(found.values) else wanted
        if not len(found.values):
            measure = np.ones((0, n_classes)) if n_classes else np.ones(0)
            unit = 0.0
        elif n_classes:
            measure = CLASS_SCORES[name].measure(found, n_classes)
            unit = resolution(measure)
            measure = rounded(measure, unit)
            measure[:, np.bincount(shown, minlength=n_classes) == 0] = np.inf
        else:
            measure = NUMBER_SCORES[name].measure(found, 0)
            unit = resolution(found.values, np.asarray(shown, dtype=float))
        first, rest = np.arange(c), np.arange(c, len(found.values))
        return cls(
            found.at(first),
            found.at(rest),
            labels,
            class_sizes,
            by_class,
            name,
            (measure[first], measure[rest]),
            (ties[first], ties[rest]),
            unit,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return len(self.class_sizes)

    @property
    def scores(self) -> Array:
        """Score of every calibration row at its label; NaN where the estimator has no answer."""
        if self.n_classes:
            scores = self.measures[0][np.arange(len(self.labels)), self.labels]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = rounded(np.abs(self.labels - self.calibration.values), self.unit) / self.measures[0]
        return np.where(self.calibration.given, scores, np.nan)

    @property
    def weighing(self) -> Weighing:
        """How much each row weighs."""
        return self.weights or Weighing.equal(len(self.labels), len(self.unlabelled.values))

    def rankings(self) -> list[tuple[Mask, Mask, Ranking]]:
        """Return which calibration rows are compared with which unlabelled ones, and their ranking.

        Only rows at which the estimator has an answer are among them.
        """
        found, scores = self.weighing, self.scores
        return [
            (
                own,
                at,
                Ranking(
                    scores[own],
                    self.ties[0][own],
                    self.ties[1][at],
                    found.calibration[own],
                    found.unlabelled[at],
                    found.factor,
                ),
            )
            for own, at in found.parts(self.calibration.given, self.unlabelled.given)
        ]

    @property
    def n_unseen(self) -> int:
        """Calibration labels of classes that no visible row has."""
        return int(np.isinf(self.scores[self.calibration.given]).sum()) if self.n_classes else 0

    def law(self, confidence: float) -> Law | None:
        """Return the distribution of the number outside at a level; None if rows weigh differently."""
        if self.weights is not None and not self.weights.exchangeable:
            return None
        if self.weights is not None and self.weights.cells is not None:
            parts = [(int(own.sum()), int(at.sum())) for own, at, _ in self.rankings()]
            return CategoryMiscoverage.at(confidence, [m for _, m in parts], [c for c, _ in parts])
        m = int(self.unlabelled.given.sum())
        codes = self.labels[self.calibration.given]
        if self.by_class:
            sizes = [int(np.sum(codes == y)) for y in range(self.n_classes)]
            m = len(self.unlabelled.values)  # those without an answer are never outside
            return ClassMiscoverage.at(
                confidence, n_unlabelled=m, n_labelled=self.class_sizes, n_calibration=sizes
            )
        return Miscoverage.at(confidence, n_unlabelled=m, n_calibration=len(codes))

    # --------------------------------------------------------------------------------------------- answers

    def regions(self, confidence: float) -> Regions:
        """Return the intervals at a level; the whole line where the estimator has no answer."""
        ends = np.tile([-np.inf, np.inf], (len(self.unlabelled.values), 1))
        if not self.weighing.supports(confidence):
            return Regions.from_intervals(ends)
        for _, at, ranking in self.rankings():
            values, scales = self.unlabelled.values[at], self.measures[1][at]
            ends[at] = intervals(ranking, values, scales, confidence, self.unit).hull()
        return Regions.from_intervals(ends)

    def p_values(self) -> Array:
        """Return p-values of all classes, 1 where the estimator has no answer."""
        p = np.ones((len(self.unlabelled.values), self.n_classes))
        for own, at, ranking in self.rankings():
            p[at] = class_p_values(ranking, self.measures[1][at], self.labels[own] if self.by_class else None)
        return p

    def sets(self, p: Array, confidence: float) -> Mask:
        """Return the sets of classes at a level."""
        if not self.weighing.supports(confidence):
            return np.ones(p.shape, dtype=bool)
        return label_sets(p, confidence) | ~self.unlabelled.given[:, None]

    def n_unbounded(self, confidence: float) -> int:
        """Return at how many rows with an answer nothing is ruled out, whatever the calibration labels are."""
        return sum(int(ranking.unbounded(confidence).sum()) for _, _, ranking in self.rankings())

    # --------------------------------------------------------------------------------------- mean and selection

    def mean(self, confidence: float, classes: AnyArray | None, shown: AnyArray) -> pd.DataFrame:
        """Return the mean of the missing labels, or the share of every class with an interval.

        Rows without an answer take the mean of the visible labels, `shown`.
        """
        parts = (self.unlabelled, self.calibration)
        if classes is None:
            filled, known = (
                np.where(part.given, part.values, np.mean(shown)).astype(float) for part in parts
            )
            labels = np.asarray(self.labels, dtype=float)
            return powered_mean(filled, known, labels, ["mean"], self.weighing.for_means)
        shares, fallback = [], np.bincount(shown, minlength=len(classes)) / len(shown)
        for part in parts:
            said = part.probabilities
            if said is None:
                said = (part.values[:, None] == np.arange(len(classes))).astype(float)
            shares.append(np.where(part.given[:, None], said, fallback))
        truth = (self.labels[:, None] == np.arange(len(classes))).astype(float)
        found = powered_mean(shares[0], shares[1], truth, classes, self.weighing.for_means)
        exact = self.weighing.for_means is None
        return class_shares(found, self.labels if exact else None, len(self.unlabelled.values), confidence)

    def looks(self, wanted: dict[str, Any]) -> tuple[Array, Array, Mask]:
        """Return how much unlabelled and calibration rows look wanted, and which calibration labels are wanted.

        Returns shape unlabelled, calibration (m,), good (c,).
        """
        looks, good = [], np.ones(len(self.labels), dtype=bool)
        for part, measure in zip((self.unlabelled, self.calibration), self.measures[::-1], strict=True):
            if "label" in wanted:
                looks.append(-measure[:, wanted["label"]])
            elif "correct" in wanted:
                looks.append(-measure[np.arange(len(measure)), np.maximum(part.values, 0)])
            else:
                room = [part.values - wanted["above"]] if "above" in wanted else []
                room += [wanted["below"] - part.values] if "below" in wanted else []
                looks.append(np.min(room, axis=0) / measure)
        if "label" in wanted:
            good = self.labels == wanted["label"]
        elif "correct" in wanted:
            good = self.labels == self.calibration.values
        good &= self.labels > wanted.get("above", -np.inf)
        good &= self.labels < wanted.get("below", np.inf)
        return looks[0], looks[1], good


def confidence_in(codes: AnyArray, p: Array) -> Array:
    """Return, for each row, the highest level at which all classes except the answered one are ruled out.

    Shapes: codes (m,), p (m, n_classes); returns (m,).
    """
    others = p.copy()
    others[np.arange(len(p)), np.where(codes >= 0, codes, p.argmax(axis=1))] = -np.inf
    return np.asarray(1.0 - others.max(axis=1), dtype=float)


def with_values(answer: Answer, better: Answer) -> Answer:
    """Return an answer with the values of a better one; its intervals or sets are extended to contain them.

    Notes
    -----
    The fit with all labels is the better one, so its value stays and the interval is extended: a larger interval
    contains the truth no less often.
    """
    answer = replace(
        answer,
        values=better.values,
        status=better.status,
        standard_errors=better.standard_errors,
        probabilities=better.probabilities,
    )
    if answer.p_values is not None and answer.classes is not None:
        codes = class_codes(better.values, answer.classes)
        own = np.take_along_axis(answer.p_values, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
        credibility = np.where(codes >= 0, own, answer.p_values.max(axis=1))
        answer = replace(answer, confidence=confidence_in(codes, answer.p_values), credibility=credibility)
    return holding_values(answer)


def holding_values(answer: Answer) -> Answer:
    """Return the answer with every value in its own interval, and every class in its own set; no set is empty.

    Where no class was possible, the status says that the row is unusual.
    """
    if answer.regions is not None:
        known = np.where(answer.status == "unreached", np.nan, answer.values).astype(float)
        return replace(answer, regions=answer.regions.holding(known))
    if answer.label_sets is None or answer.classes is None:
        return answer
    codes = class_codes(answer.values, answer.classes)
    sets = answer.label_sets.copy()
    known = np.flatnonzero(codes >= 0)
    sets[known, codes[known]] = True
    unusual = ~answer.label_sets.any(axis=1) & (answer.status == "answered")
    return replace(answer, label_sets=sets, status=np.where(unusual, "unusual", answer.status))


def wrong_answers(
    found: Calibrated, second: Reply | None, certainty: float, tolerance: float | None = None
) -> CountBound | None:
    """Return a bound on the number of wrong answers at the unlabelled rows."""
    is_class = found.n_classes > 0
    if not is_class and tolerance is None:
        return None
    wrong, changed = _wrong_and_changed(found, second, tolerance)
    known, given = found.calibration.given, found.unlabelled.given
    m = int((given & ~changed).sum())
    if not known.any() or not len(given):
        return None
    n = int(given.sum())
    most = urn_bound(int(wrong[known].sum()), int(known.sum()), n, certainty)
    return CountBound(certainty, min(most, m) + int(changed[given].sum()), n)


def wrong_by_class(
    found: Calibrated, second: Reply | None, certainty: float, classes: AnyArray
) -> tuple[tuple[Any, CountBound], ...]:
    """Return a bound on the wrong answers among the rows that are answered with each class, each by itself.

    Shapes: classes (n_classes,).
    """
    wrong, _ = _wrong_and_changed(found, second, None)
    known, given = found.calibration.given, found.unlabelled.given
    final = found.unlabelled.values if second is None else second.values
    bounds = []
    for code, label in enumerate(classes.tolist()):
        ours = known & (found.calibration.values == code)
        first = given & (found.unlabelled.values == code)
        last = given & (final == code)
        if not last.any() or not ours.any():
            continue
        most = urn_bound(int(wrong[ours].sum()), int(ours.sum()), int(first.sum()), certainty)
        kept, joined = int((first & last).sum()), int((last & ~first).sum())
        bound = CountBound(certainty, min(most, kept) + joined, int(last.sum()))
        if bound.at_most < bound.of:
            bounds.append((label, bound))
    return tuple(bounds)


def _wrong_and_changed(found: Calibrated, second: Reply | None, tolerance: float | None) -> tuple[Mask, Mask]:
    """Return which calibration rows the first fit answers wrongly, and where a second fit answers otherwise."""
    unchanged = np.zeros(len(found.unlabelled.values), dtype=bool)
    if tolerance is None:
        wrong = found.calibration.values != found.labels
        changed = unchanged if second is None else second.values != found.unlabelled.values
        return wrong, changed
    slack = 0.0 if second is None else tolerance / 4.0
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(found.calibration.values - found.labels) <= tolerance - slack)
        if second is None:
            return wrong, unchanged
        return wrong, ~(np.abs(second.values - found.unlabelled.values) <= slack)


N_TO_LABEL = 20  # as many as `transduce draw` draws, or more if the level takes more


def calibrated_guarantee(
    found: Calibrated,
    confidence: float,
    n_labelled: int,
    verdict: Verdict | None,
    *,
    design: Design | None = None,
    certainty: float = 0.95,
    wrong: CountBound | None = None,
) -> Guarantee:
    """Return what is guaranteed of calibrated answers at a level."""
    design = design or Chance()
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
        reasons=untested if verdict is None and design.testable else (),
    )
    sure = _with_counts(sure, found, confidence, certainty)
    if found.weighing.kind == ESTIMATED:
        sure = replace(
            sure,
            kind="approximate",
            assumptions=tuple(ESTIMATE if one == CHANCE else one for one in sure.assumptions),
            reasons=("The odds of a label are estimated, and no estimate bears an exact guarantee.",),
        )
    return design.assumed(sure).doubted(verdict)


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
