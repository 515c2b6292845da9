"""Calibration and unlabelled rows side by side after the fit: answers and guarantees at any level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal import miscoverage
from transduce.conformal.designs import (
    CLASSES,
    ESTIMATED,
    GROUPS,
    KNOWN,
    BoundDesign,
    Weights,
    labels_needed,
)
from transduce.conformal.exchangeability import drift_along
from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Law, Miscoverage
from transduce.conformal.overlapping import find_thresholds
from transduce.conformal.scores import (
    SLACK,
    Scoring,
    WeightedRanks,
    class_p_values,
    interval_ends,
    intervals,
    label_sets,
)
from transduce.conformal.shares import ClassShares
from transduce.core import guarantee
from transduce.core.answer import Answer, Regions
from transduce.core.computing import few_threads
from transduce.core.guarantee import CountBound, Drift, Guarantee
from transduce.core.ranks import calibration_rank, fewest_calibration, nonconformity_rank
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted, percent
from transduce.model_selection.fit_and_predict import PARTS, FittedEstimator, Problem, Reply
from transduce.population.draws import draw_rows
from transduce.population.urns import Urn, two_urns_bound, urn_interval

USUAL_FACTORS = (1.0, 1.5, 2.0)  # by which odds of a label may be off, as reports show them
N_TO_LABEL = 20  # as many as `transduce draw` draws, or more if the level takes more

# -------------------------------------------------------------------------------------- the calibrated table


@dataclass(frozen=True, eq=False)
class CalibratedTable:
    """Answers and labels of calibration rows, answers at unlabelled rows, their scores and their weights."""

    calibration: Reply
    unlabelled: Reply
    labels: AnyArray  # (c,) calibration labels: numbers, or numbers of classes
    classes: AnyArray | None  # (n_classes,) the classes; None for numbers
    sizes: tuple[
        int, ...
    ]  # number of labels of every class, held out or not; one number for numbers
    by_class: bool  # whether every class is compared with its own calibration rows
    tolerance: float | None  # numbers: by how much an answer may be off
    scoring: Scoring
    ties: tuple[Array, Array]  # what decides between equal scores
    weights: Weights  # how much each row weighs, and with which it is compared

    # ---- how rows compare

    @cached_property
    def scores(self) -> Array:
        """Scores of the calibration rows at their labels, shape (c,); NaN where the estimator has no answer."""
        return self.scoring.at_labels(self.calibration, self.labels)

    @cached_property
    def rankings(self) -> list[tuple[Mask, Mask, WeightedRanks]]:
        """Which calibration rows are compared with which unlabelled ones, all with an answer, and their ranks."""
        weights, known, given = self.weights, self.calibration.given, self.unlabelled.given
        parts = [(known, given)]
        if weights.cells is not None:
            first, rest = weights.cells
            parts = [(known & (first == cell), given & (rest == cell)) for cell in np.unique(rest)]
        rankings = []
        for own, at in parts:
            ties = self.ties[0][own], self.ties[1][at]
            heavy = weights.calibration[own], weights.unlabelled[at]
            ranks = WeightedRanks(
                self.scores[own], *ties, *heavy, weights.factor, self._n_empty(at)
            )
            rankings.append((own, at, ranks))
        return rankings

    @cached_property
    def _rankings_within_columns(self) -> list[list[tuple[Mask, Mask, WeightedRanks]]]:
        """The same within each of several columns whose categories overlap."""
        assert self.weights.overlapping is not None
        calibration, unlabelled = self.weights.overlapping
        partitions = []
        for column in range(len(calibration.names)):
            cells = calibration.codes[:, column], unlabelled.codes[:, column]
            weights = replace(self.weights, overlapping=None, cells=cells)
            partitions.append(replace(self, weights=weights).rankings)
        return partitions

    def _thresholds_within_columns(self, confidence: float) -> Array:
        """Return each unlabelled row's largest score that is inside, within several columns; (m,)."""
        # Several questions ask for the same level, and each takes a linear program for every
        # combination of categories.
        if confidence not in self._known_thresholds:
            self._known_thresholds[confidence] = self._find_thresholds(confidence)
        return self._known_thresholds[confidence]

    @cached_property
    def _known_thresholds(self) -> dict[float, Array]:
        """Thresholds within several columns, by the level."""
        return {}

    def _find_thresholds(self, confidence: float) -> Array:
        assert self.weights.overlapping is not None
        calibration, unlabelled = self.weights.overlapping
        answered = self.calibration.given
        covered = self.unlabelled.given
        thresholds = np.full(len(covered), np.inf)
        thresholds[covered] = find_thresholds(
            self.scores[answered],
            calibration[answered],
            unlabelled[covered],
            confidence,
            never_labelled=unlabelled[covered & ~self.covered],
        )
        return thresholds

    @property
    def covered(self) -> Mask:
        """The unlabelled rows with an answer that a guarantee is about: all that were not drawn, shape (m,)."""
        given, empty = self.unlabelled.given, self.weights.empty
        return given if empty is None else given & ~empty

    def _n_empty(self, at: Mask) -> int:
        """Return how many rows were drawn and have no label, those among some unlabelled rows and those elsewhere."""
        return self.weights.n_empty + int((at & ~self.covered & self.unlabelled.given).sum())

    @property
    def n_empty(self) -> int:
        """How many rows with an answer were drawn to be labelled and have no label."""
        return self._n_empty(self.unlabelled.given)

    @property
    def exchangeable(self) -> bool:
        """Whether all rows weigh the same and nothing may differ: then the number outside has a known law."""
        weights = self.weights
        same = np.all(weights.calibration == 1.0) and np.all(weights.unlabelled == 1.0)
        return (
            weights.factor == 1.0 and weights.kind != GROUPS and not self.by_shares and bool(same)
        )

    @property
    def by_shares(self) -> bool:
        """Whether rows are compared with the calibration labels of all classes by given shares of these."""
        return self.weights.shares is not None and not self.by_class

    @property
    def pooled(self) -> bool:
        """Whether the calibration rows are a random part of all rows that have no visible label."""
        return self.exchangeable and self.weights.cells is None and self.weights.kind != CLASSES

    @property
    def estimated(self) -> bool:
        """Whether the odds of a label were estimated, even where all came out the same."""
        return self.weights.kind == ESTIMATED or self.weights.assumption == guarantee.ESTIMATE

    def supports(self, confidence: float) -> bool:
        """Whether the labels are worth enough for a level: estimated weights take ``2 / (1 - confidence)`` of them."""
        return (
            self.weights.kind != ESTIMATED or self.effective >= effective_needed(confidence) - 1e-9
        )

    @property
    def effective(self) -> float:
        """How many labels of equal weight the calibration labels are worth: ``(sum w)^2 / sum w^2``."""
        squares = float(np.sum(self.weights.calibration**2))
        return float(np.sum(self.weights.calibration)) ** 2 / squares if squares > 0.0 else 0.0

    def n_unbounded(self, confidence: float) -> int:
        """Return at how many rows with an answer nothing is ruled out, whatever the calibration labels are."""
        if self.by_shares:
            assert self.weights.shares is not None
            n = np.bincount(self.labels[self.calibration.given], minlength=len(self.sizes))
            least = float(
                np.sum(self.weights.shares / (n + 1.0))
            )  # the smallest p-value that is possible
            return int(self.unlabelled.given.sum()) if least > 1.0 - confidence + SLACK else 0
        if self.weights.overlapping is not None:
            unbounded = np.isinf(self._thresholds_within_columns(confidence))
            return int((unbounded & self.unlabelled.given).sum())
        return sum(int(ranks.unbounded(confidence).sum()) for _, _, ranks in self.rankings)

    def law(self, confidence: float) -> Law | None:
        """Return the distribution of the number outside at a level; None if there is none."""
        # Of which class rows are that were drawn and have no label is not known.
        none = self.estimated or (self.by_class and self.n_empty)
        return None if none else self._thresholds(confidence)

    def _thresholds(self, confidence: float) -> Law | None:
        """Return how many calibration rows each threshold has, as a distribution; None if rows weigh differently."""
        if not self.exchangeable or self.weights.overlapping is not None:
            return None
        if self.weights.cells is not None:
            parts = [
                self._law_among(confidence, int(own.sum()), at) for own, at, _ in self.rankings
            ]
            return CategoryMiscoverage(tuple(parts))
        codes, every = self.labels[self.calibration.given], self.unlabelled.given
        if not self.by_class:
            return self._law_among(confidence, len(codes), every)
        laws = [
            self._law_among(confidence, int(np.sum(codes == y)), every)
            for y in range(len(self.sizes))
        ]
        return ClassMiscoverage(
            n_unlabelled=len(self.unlabelled.values),  # those without an answer are never outside
            n_labelled=() if self.weights.kind == CLASSES else self.sizes,
            n_calibration=tuple(law.n_calibration for law in laws),
            ranks=tuple(law.rank for law in laws),
        )

    def _law_among(self, confidence: float, c: int, at: Mask) -> Miscoverage:
        """Return the distribution of the number outside among some rows, compared with c labels."""
        n_empty, m = self._n_empty(at), int((at & self.covered).sum())
        law = Miscoverage.at(confidence, n_unlabelled=m, n_calibration=c + n_empty)
        # A rank beyond these, of a row that was drawn and has no label, is no threshold: then nothing is outside.
        return law if law.rank <= c else replace(law, rank=c + n_empty + 1)

    # ---- answers

    def answer(self, confidence: float, rows: AnyArray, index: pd.Index | None = None) -> Answer:
        """Return the answers at a level, of which nothing is guaranteed yet."""
        reply = self.unlabelled
        answer = Answer(
            rows, named(reply, self.classes), reply.status, Guarantee("none"), index=index
        )
        chances, errors = reply.probabilities, reply.spreads
        answer = replace(
            answer, probabilities=chances, standard_errors=errors, classes=self.classes
        )
        if self.classes is None:
            return replace(answer, regions=self._regions(confidence))
        p, new = self._p_values(), self._p_unseen()
        all_possible = not self.supports(confidence)
        if self.weights.overlapping is None:
            sets, unseen = (label_sets(each, confidence) | all_possible for each in (p, new))
        else:
            # P-values are the largest within the row's categories, valid at all levels at once;
            # thresholds of one level rule out more.
            thresholds = self._thresholds_within_columns(confidence)
            sets = self.scoring.measure(reply) <= thresholds[:, None]
            unseen = np.isinf(thresholds)
        ranked = np.sort(p, axis=1)
        sure, credible = 1.0 - np.maximum(ranked[:, -2], new), ranked[:, -1]
        answer = replace(answer, label_sets=sets, p_values=p, confidence=sure, credibility=credible)
        if self.weights.kind == CLASSES:  # classes that were chosen by are known
            return answer
        return replace(answer, unseen=unseen, p_unseen=new)

    def _regions(self, confidence: float) -> Regions:
        """Return the intervals at a level; the whole line where the estimator has no answer."""
        ends = np.tile([-np.inf, np.inf], (len(self.unlabelled.values), 1))
        if self.weights.overlapping is not None:
            limits = self._thresholds_within_columns(confidence)
            scales = self.scoring.measure(self.unlabelled)
            closed = np.ones(len(limits), dtype=bool)
            ends = interval_ends(limits, closed, self.unlabelled.values, scales, self.scoring.unit)
            ends[np.isinf(limits)] = [-np.inf, np.inf]
        elif self.supports(confidence):
            rankings, scales = self.rankings, self.scoring.measure(self.unlabelled)
            values = self.unlabelled.values
            for _, at, ranks in rankings:
                ends[at] = intervals(ranks, values[at], scales[at], confidence, self.scoring.unit)
        return Regions.from_intervals(ends)

    def _p_values(self) -> Array:
        """Return p-values of all classes, 1 where the estimator has no answer."""
        scores = self.scoring.measure(self.unlabelled)
        if self.weights.overlapping is not None:
            within = [self._p_values_of(scores, ranked) for ranked in self._rankings_within_columns]
            return np.max(within, axis=0)
        return self._p_values_of(scores, self.rankings)

    def _p_values_of(
        self, scores: Array, rankings: list[tuple[Mask, Mask, WeightedRanks]]
    ) -> Array:
        """Return p-values of scores of all classes (m, n_classes) by parts that are compared."""
        p = np.ones(scores.shape)
        for own, at, ranks in rankings:
            codes = self.labels[own] if self.by_class or self.by_shares else None
            shares = self.weights.shares if self.by_shares else None
            p[at] = class_p_values(ranks, scores[at], codes, shares)
        return p

    def _p_unseen(self) -> Array:
        """Return the p-value of a class that no label shows, whose score is infinite, shape (m,)."""
        p = np.ones(len(self.unlabelled.values))
        if self.weights.kind == CLASSES:
            return p * 0.0
        if self.weights.overlapping is not None:
            unseen = np.full((len(p), 1), np.inf)
            within = [self._p_values_of(unseen, ranked) for ranked in self._rankings_within_columns]
            return np.max(within, axis=0)[:, 0]
        for _, at, ranks in self.rankings:
            p[at] = ranks.p_values(np.full(int(at.sum()), np.inf))
        return p

    def mean(self, confidence: float, shown: AnyArray) -> pd.DataFrame:
        """Return the mean of the missing labels, or the classes' shares with intervals; `shown` are visible labels."""
        weights = self._weights_of_means()

        def columns(values: AnyArray) -> AnyArray:
            return (
                values[:, None]
                if self.classes is None
                else values[:, None] == np.arange(len(self.classes))
            )

        def filled(part: Reply) -> Array:
            said = columns(part.values) if part.probabilities is None else part.probabilities
            return np.where(part.given[:, None], said, columns(shown).mean(axis=0))

        truth, names = (
            columns(self.labels).astype(float),
            ["mean"] if self.classes is None else self.classes,
        )
        told = filled(self.unlabelled), filled(self.calibration)
        found = miscoverage.powered_mean(*told, truth, weights, names)
        if self.classes is None:
            return found
        lower = upper = np.full(len(found), np.nan)
        if np.all(weights == 1.0) and self.weights.cells is None and self.weights.kind != GROUPS:
            # Calibration rows are a random part of all rows, so that the interval is exact.
            n_empty = 0 if self.weights.empty is None else int(self.weights.empty.sum())
            size = len(self.labels), len(self.unlabelled.values)
            ends = [urn_interval(int(n), *size, confidence, n_empty) for n in truth.sum(axis=0)]
            lower, upper = np.array(ends, dtype=float).T / max(size[1], 1)
            found["estimate"] = np.clip(found["estimate"], lower, upper)
        found.insert(1, "lower", lower)
        found.insert(2, "upper", upper)
        return found

    def _weights_of_means(self) -> Array:
        """Return weights of the calibration rows in means over all unlabelled rows."""
        weights = self.weights
        if weights.cells is None:
            return weights.calibration
        first, rest = weights.cells
        sizes = np.bincount(first, minlength=1 + max(first.max(initial=0), rest.max(initial=0)))
        return weights.calibration * np.bincount(rest, minlength=len(sizes))[first] / sizes[first]

    # ---- guarantees

    def guarantee(
        self, confidence: float, certainty: float, second: Reply | None = None
    ) -> Guarantee:
        """Return what is guaranteed of the answers at a level, some of which may come from a second fit."""
        n_unreached = int((~self.unlabelled.given).sum())
        nothing = Guarantee(
            "none",
            about="set" if self.classes is not None else "interval",
            confidence=confidence,
            n_labelled=sum(self.sizes),
            n_calibration=len(self.labels),
            n_unreached=n_unreached,
            n_empty=self.n_empty,
            verdict=self.weights.verdict,
        )
        if len(self.unlabelled.values) == 0:
            return replace(nothing, reasons=("No row is unlabelled.",), confidence=None)
        if n_unreached == len(self.unlabelled.values):
            return replace(nothing, reasons=("The estimator has no answer at any unlabelled row.",))
        if not self.covered.any():
            return replace(
                nothing, reasons=("Every row without a label was drawn to get one: label them.",)
            )
        law, thresholds, outside = self.law(confidence), self._thresholds(confidence), None
        if law is not None:
            outside = CountBound(certainty, law.quantile(certainty), law.n_unlabelled, law.mean)
        why = self._nothing_supported(thresholds, confidence)
        if why:
            return replace(
                nothing, reasons=(f"{why}.",), reachable=self._reachable_level(confidence)
            )
        sure = replace(nothing, outside=outside, any_class=self._any_class_possible(confidence))
        if thresholds is None:
            effective = self.effective if self.weights.kind in (KNOWN, ESTIMATED) else None
            n_unbounded = self.n_unbounded(confidence) - self._n_in_short_categories(confidence)
            sure = replace(sure, effective=effective, n_unbounded=n_unbounded)
        elif self.by_class:
            sure = replace(sure, n_short=thresholds.n_short)
        if (
            self.pooled
            and not self.estimated
            and (self.classes is not None or self.tolerance is not None)
        ):
            sure = replace(sure, wrong=self.wrong_answers(second).bound(certainty))
        return self._with_grounds(sure, confidence)

    def _with_grounds(self, sure: Guarantee, confidence: float) -> Guarantee:
        """Return the guarantee with where it holds, what it rests on, and why it is of its kind."""
        weights, estimated, verdict = self.weights, self.estimated, sure.verdict
        reasons: tuple[str, ...] = ()
        if estimated:
            same = " No column tells which rows have one, so that all labels weigh the same."
            why = "The odds of a label are estimated, and no estimate bears an exact guarantee."
            reasons = (why + (same if weights.kind != ESTIMATED else ""),)
        elif verdict is None and weights.testable:
            reasons = (guarantee.NOT_TESTED,)
        assumption = guarantee.ESTIMATE if estimated else weights.assumption
        if self.by_class and weights.kind == CLASSES:  # whether or not given shares are right
            assumption = guarantee.BY_CLASS
        return replace(
            sure,
            kind="approximate"
            if estimated or (verdict is not None and verdict.shifted)
            else "exact",
            within=self._within,
            assumptions=(assumption, guarantee.SEEN) if self.by_class else (assumption,),
            reasons=reasons,
            factor=weights.factor,
            n_groups=weights.n_groups,
            n_other=weights.n_other,
            of_rows=largest_share(weights.sizes, 1.0 - confidence) if weights.sizes else None,
            short=self._short_categories(confidence),
        )

    def _short_categories(self, confidence: float) -> tuple[str, ...]:
        """Return the categories of unlabelled rows at which nothing is ruled out."""
        if self.weights.overlapping is not None:
            return self._short_categories_of_columns(confidence)
        if self.weights.cells is None:
            return ()
        short = [at.any() and ranks.unbounded(confidence).all() for _, at, ranks in self.rankings]
        return tuple(
            self.weights.categories[code] for code in np.unique(self.weights.cells[1])[short]
        )

    def _short_categories_of_columns(self, confidence: float) -> tuple[str, ...]:
        """Return categories, of several columns, whose calibration labels are too few by themselves."""
        assert self.weights.overlapping is not None
        calibration, unlabelled = self.weights.overlapping
        answered = self.unlabelled.given
        short: list[str] = []
        for column, names in enumerate(calibration.names):
            parts = self._rankings_within_columns[column]
            codes = np.unique(unlabelled.codes[:, column])
            for code, (_, rows, ranks) in zip(codes, parts, strict=True):
                if (rows & answered).any() and ranks.unbounded(confidence).all():
                    short.append(names[code])
        return tuple(short)

    def _n_in_short_categories(self, confidence: float) -> int:
        """Return how many rows are of a category, of several columns, with too few labels."""
        if self.weights.overlapping is None:
            return 0
        _, unlabelled = self.weights.overlapping
        short = self._short_categories_of_columns(confidence)
        rows = np.zeros(len(unlabelled), dtype=bool)
        for column, names in enumerate(unlabelled.names):
            codes = [code for code, name in enumerate(names) if name in short]
            rows |= np.isin(unlabelled.codes[:, column], codes)
        return int((rows & self.unlabelled.given).sum())

    @property
    def _within(self) -> str:
        """Where the guarantee holds: over all rows, or within classes, or within categories."""
        if self.by_class:
            return "class"
        if self.weights.overlapping is not None:
            return "categories"
        if self.weights.cells is not None:
            return "category"
        return ""

    @property
    def n_unseen(self) -> int:
        """Calibration labels of classes that no visible row has."""
        return (
            0 if self.classes is None else int(np.isinf(self.scores[self.calibration.given]).sum())
        )

    def _any_class_possible(self, confidence: float) -> bool:
        """Return whether so many calibration labels are of classes without a visible label that none is ruled out."""
        if (
            self.classes is None or self.weights.kind == CLASSES
        ):  # classes that were chosen by are known
            return False
        if self.weights.overlapping is not None:
            infinite = np.isinf(self._thresholds_within_columns(confidence))
            some_unseen = bool(np.isinf(self.scores[self.calibration.given]).any())
            return some_unseen and bool((infinite & self.unlabelled.given).any())
        if self.pooled:  # there may be billions of rows, and all are alike
            rank = nonconformity_rank(confidence, int(self.calibration.given.sum()) + self.n_empty)
            return self.n_empty < rank <= self.n_unseen + self.n_empty
        p, some = (
            self._p_unseen(),
            [at for own, at, _ in self.rankings if np.isinf(self.scores[own]).any()],
        )
        return any(bool(label_sets(p[at], confidence).any()) for at in some)

    def _reachable_level(self, confidence: float) -> float | None:
        """Return the highest round level below this one that these labels support; None if there is none."""
        if self.estimated:  # it is not for want of labels that nothing holds
            return None
        for level in guarantee.ROUND_LEVELS:
            if level >= confidence:
                continue
            if len(self.labels) == 0 and self.weights.kind not in (GROUPS, CLASSES):
                supported = labels_needed(level) <= sum(self.sizes)
            else:
                supported = self._nothing_supported(self._thresholds(level), level) is None
            if supported:
                return level
        return None

    # ---- coverage of the classes

    def held_out_p_values(self) -> Array:
        """Return the p-value of each calibration label, compared with the other calibration labels; (c,)."""
        # Each row in turn is taken for an unlabelled one. Its own weight is among those of the scores that are at
        # least its own, so that it adds nothing besides.
        if self.weights.overlapping is not None:
            within = [self._held_out_p_values_of(part) for part in self._rankings_within_columns]
            return np.max(within, axis=0)
        return self._held_out_p_values_of(self.rankings)

    def _held_out_p_values_of(self, rankings: list[tuple[Mask, Mask, WeightedRanks]]) -> Array:
        p_values = np.ones(len(self.labels))
        weights = self.weights
        for own, at, _ in rankings:
            ties = np.zeros(int(own.sum()))
            ranks = WeightedRanks(
                self.scores[own],
                ties,
                ties,
                weights.calibration[own],
                ties,
                weights.factor,
                self._n_empty(at),
            )
            p_values[own] = self._own_p_values(ranks, self.labels[own])
        return p_values

    def _own_p_values(self, ranks: WeightedRanks, codes: AnyArray) -> Array:
        """Return p-values of calibration rows at their own labels, within their classes or by shares."""
        if not self.by_class and not self.by_shares:
            return ranks.p_values(ranks.scores)
        p_values = np.zeros(len(codes))
        for code in np.unique(codes):
            of_class = codes == code
            among_class = ranks.p_values(ranks.scores, of_class)
            if self.by_class:
                p_values[of_class] = among_class[of_class]
                continue
            assert self.weights.shares is not None
            joins = replace(
                ranks, own=np.ones(len(codes))
            )  # a row joins a class that is not its own
            others = joins.p_values(ranks.scores, of_class)
            p_values += self.weights.shares[code] * np.where(of_class, among_class, others)
        if (
            self.by_shares and self.weights.shares is not None
        ):  # a class with no label rules nothing out
            absent = np.setdiff1d(np.arange(len(self.weights.shares)), codes)
            p_values += self.weights.shares[absent].sum()
        return p_values

    def covered_by_class(self, confidence: float) -> tuple[AnyArray, AnyArray]:
        """Return how many calibration labels each class has, and how many of them its sets would hold; (n_classes,)."""
        assert self.classes is not None
        covered = label_sets(self.held_out_p_values(), confidence)
        covered |= not self.supports(confidence)
        covered |= self.calibration.values == self.labels  # a set always holds the predicted class
        n_classes = len(self.classes)
        n_labels = np.bincount(self.labels, minlength=n_classes)
        return n_labels, np.bincount(self.labels[covered], minlength=n_classes)

    # ---- wrong answers

    def wrong_answers(self, second: Reply | None) -> WrongAnswers:
        """Return what the calibration rows tell of the wrong answers at the unlabelled rows."""
        # Where a second fit answers otherwise than the first, which the calibration rows judge, the answer counts as
        # wrong: nothing that is known of the first says more of the second. So does the answer at a row which was drawn
        # to be labelled and has no label.
        wrong, changed = self._wrong_and_changed(second)
        wrong = wrong[self.calibration.given]
        n_rows = int(self.covered.sum())
        urn = Urn(int(wrong.sum()) + self.n_empty, len(wrong) + self.n_empty, n_rows)
        n_kept = int((self.covered & ~changed).sum())
        return WrongAnswers(urn, n_kept, n_rows, self._one_answer_for_all(n_rows))

    def _one_answer_for_all(self, n_rows: int) -> Urn:
        """Return the same if all rows got one answer: the most frequent class, or the median."""
        if self.tolerance is not None:
            off = np.abs(self.labels - np.median(self.labels)) > self.tolerance
            n_wrong, n_labels = int(off.sum()), len(off)
        else:
            counts = np.bincount(self.labels, minlength=len(self.sizes))
            if self.weights.assumption == guarantee.CHANCE:  # then the other labels tell, too
                counts = np.asarray(self.sizes)
            n_wrong, n_labels = int(counts.sum() - counts.max()), int(counts.sum())
        return Urn(n_wrong + self.n_empty, n_labels + self.n_empty, n_rows)

    def wrong_by_class(
        self, second: Reply | None, certainty: float
    ) -> tuple[tuple[Any, CountBound], ...]:
        """Return a bound on the wrong answers among the rows that are answered with each class, each by itself."""
        assert self.classes is not None
        first, (wrong, _) = self.unlabelled.values, self._wrong_and_changed(second)
        given, final, bounds = self.covered, first if second is None else second.values, []
        for code, label in enumerate(self.classes.tolist()):
            ours = self.calibration.given & (self.calibration.values == code)
            before, last = given & (first == code), given & (final == code)
            if not last.any() or not ours.any():
                continue
            n_empty = int((self.unlabelled.given & ~given & (first == code)).sum())
            n_wrong, n_judged = int(wrong[ours].sum()), int(ours.sum())
            urn = Urn(n_wrong + n_empty, n_judged + n_empty, int(before.sum()))
            answers = WrongAnswers(urn, int((before & last).sum()), int(last.sum()))
            bound = answers.bound(certainty)
            if bound.at_most < bound.of:
                bounds.append((label, bound))
        return tuple(bounds)

    def _wrong_and_changed(self, second: Reply | None) -> tuple[Mask, Mask]:
        """Return which calibration rows the first fit answers wrongly, and where a second fit answers otherwise."""
        first, known, tolerance = self.unlabelled.values, self.calibration.values, self.tolerance
        last = first if second is None else second.values
        if tolerance is None:
            return known != self.labels, last != first
        slack = 0.0 if second is None else tolerance / 4.0
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(known - self.labels) <= tolerance - slack)
            return wrong, ~(np.abs(last - first) <= slack)

    # ---- too few labels

    def _nothing_supported(self, law: Law | None, confidence: float) -> str | None:
        """Return why the calibration labels rule nothing out at any row; None if they do at some."""
        weights = self.weights
        enough = law is not None and law.n_short < (len(self.sizes) if self.by_class else 1)
        if law is None or weights.cells is not None:
            enough = self.n_unbounded(confidence) < int(self.unlabelled.given.sum())
        if enough and self.supports(confidence):
            return None
        level, needed = percent(confidence), labels_needed(confidence)
        if weights.kind == GROUPS:
            return self._too_few_groups(confidence)
        if weights.kind == CLASSES:
            if law is None and len(self.labels):
                few = f"{counted(len(self.labels), 'calibration label')} are too few of each class"
                return f"The {few} for {level} with these shares of the classes"
            return f"No class has the {needed} labels that {level} takes within it"
        cells = weights.cells is not None and self.supports(confidence)
        if cells or (self.by_class and law is not None and len(self.labels)):
            kind, least = (
                ("category", needed) if cells else ("class", fewest_calibration(confidence))
            )
            few = f"No {kind} has the {least} {'' if cells else 'calibration '}labels that {level} takes"
            return f"{few}, since rows that were drawn have no label" if self.n_empty else few
        if weights.overlapping is not None and len(self.labels):
            return (
                f"At no row do all categories have the {fewest_calibration(confidence)} calibration "
                f"labels that {level} takes"
            )
        if law is None and len(self.labels):
            return self._worth_too_little(confidence)
        return self._too_few(confidence)

    def _worth_too_little(self, confidence: float) -> str:
        """Return why labels that weigh differently rule nothing out at any row."""
        weights, level = self.weights, percent(confidence)
        labels = counted(len(self.labels), "calibration label")
        if not self.supports(confidence):
            worth = f"worth {self.effective:.0f} of equal weight, and {level} takes"
            differ = f"Labelled and unlabelled rows differ so much that {labels} are {worth}"
            return f"{differ} {effective_needed(confidence):.0f}"
        if weights.kind == ESTIMATED and weights.factor == 1.0:
            return f"Labelled and unlabelled rows have too little in common for {labels} to support {level}"
        off = "as different as these"
        if weights.factor > 1.0:
            off = f"that may be off by a factor of {weights.factor:g}"
        return f"{labels}, worth {self.effective:.0f} of equal weight, cannot support {level} with odds {off}"

    def _too_few_groups(self, confidence: float) -> str:
        """Return why groups rule nothing out at any row."""
        n, level = round(float(self.weights.calibration.sum())), percent(confidence)
        if n == 0:
            some = labels_needed(confidence)
            return f"Too few groups have labels to hold some out and guarantee {level}: it takes {some}"
        needed = fewest_calibration(confidence, self.weights.factor)
        return f"{counted(n, 'calibration group')} cannot support {level}: it takes {needed}"

    def _too_few(self, confidence: float, rarest: int | None = None) -> str:
        """Return why the calibration labels, or those of one class, do not support a level, and how many would."""
        level, least, n_labelled = (
            percent(confidence),
            fewest_calibration(confidence),
            sum(self.sizes),
        )
        if len(self.labels) == 0:
            verb = "is" if n_labelled == 1 else "are"
            few = f"{counted(n_labelled, 'label')} {verb} too few to hold some out and guarantee {level}"
            return f"{few}: it takes {labels_needed(confidence)}"
        known = self.calibration.given
        n, of, may = int(known.sum()), "" if known.all() else " at rows with an answer", ""
        if rarest is not None and self.classes is not None:
            n, name = int(np.sum(self.labels[known] == rarest)), repr(self.classes[rarest].item())
            of, may = f" of class {name}", f" that may be of class {name}"
        if self.n_empty:
            total = n + self.n_empty
            needed = max(calibration_rank(confidence, total), least)
            what = (
                f"label {needed - n} more of them"
                if needed <= total
                else "draw and label more rows"
            )
            lack = "has no label, and it" if self.n_empty == 1 else "have no label, and each"
            drawn = f"{self.n_empty} of the {total} rows drawn at random{may} {lack} may be far off"
            return f"{drawn}: {level} takes {needed} labels of such rows, so {what}"
        limit = f"at most {n}/{n + 1} = {n / (n + 1):.4g}" if n else "no level"
        labels, verb = counted(n, "calibration label"), "supports" if n == 1 else "support"
        return f"{labels}{of} {verb} {limit}: {level} takes {least}"

    def shortfall(self, confidence: float) -> str | None:
        """Return a warning where the calibration labels are too few for a level; None where they are not."""
        everything = (
            "set is all classes" if self.classes is not None else "interval is the whole line"
        )
        law = self._thresholds(confidence)
        short = self._short_categories(confidence)
        if isinstance(law, ClassMiscoverage) and (len(self.labels) or self.weights.kind != CLASSES):
            return self._short_classes(law, confidence)
        why = self._nothing_supported(law, confidence)
        if isinstance(law, Miscoverage) and self._any_class_possible(confidence):
            unseen = f"{self.n_unseen} of {counted(len(self.labels), 'calibration label')}"
            why = f"{unseen} are of classes that no other label shows, so a row may be of any class"
        if why is not None:
            return f"{why}. Every {everything}."
        if not short:
            return None
        return f"Too few labels for {percent(confidence)} in {', '.join(short)}: every {everything} there."

    def _short_classes(self, law: ClassMiscoverage, confidence: float) -> str | None:
        """Return a warning where some classes have too few calibration labels; None where none has."""
        short = [
            y for y, (c, k) in enumerate(zip(law.n_calibration, law.ranks, strict=True)) if k > c
        ]
        if not short:
            return None
        rarest = min(short, key=lambda y: law.n_calibration[y])
        others = counted(len(short) - 1, "more that has", "more that have")
        more = f" (and {others} too few)" if len(short) > 1 else ""
        return f"{self._too_few(confidence, rarest)}; that class{more} is in every set."


@dataclass(frozen=True)
class WrongAnswers:
    """What calibration rows tell of the number of wrong answers at unlabelled rows."""

    urn: Urn  # of the rows that the first fit answers so: the calibration rows judge it
    n_kept: int  # rows that the last fit answers as the first
    n_rows: int  # rows that the last fit answers so: all others count as wrong
    of_one_answer: Urn | None = None  # the same if all rows got one answer

    def bound(self, certainty: float) -> CountBound:
        """Return a bound on the wrong answers."""
        most = self.urn.bound(certainty)
        simplest = None if self.of_one_answer is None else self.of_one_answer.bound(certainty)
        return self._counted(most, certainty, simplest)

    def bound_with(self, other: WrongAnswers, certainty: float) -> CountBound:
        """Return a bound on the wrong answers of these rows and of others together."""
        most = two_urns_bound(self.urn, other.urn, certainty)
        both = replace(self, n_kept=self.n_kept + other.n_kept, n_rows=self.n_rows + other.n_rows)
        simplest = None
        if self.of_one_answer is not None:
            all_rows = replace(self.of_one_answer, n_unlabelled=both.n_rows)
            simplest = all_rows.bound(certainty)
        return both._counted(most, certainty, simplest)

    def _counted(self, most: int, certainty: float, simplest: int | None) -> CountBound:
        """Return a bound, given one on the wrong answers of the first fit."""
        at_most = min(most, self.n_kept) + self.n_rows - self.n_kept
        return CountBound(certainty, at_most, self.n_rows, simplest=simplest)


def bound_together(one: Law, other: Law, certainty: float) -> CountBound:
    """Return a bound on the rows outside among rows that a fit saw and among others that it did not see."""
    expected = one.mean + other.mean
    n_rows = one.n_unlabelled + other.n_unlabelled
    if isinstance(one, Miscoverage) and isinstance(other, Miscoverage):
        at_most = CategoryMiscoverage((one, other)).quantile(certainty)
    else:  # of classes there is a bound and no distribution: both share the doubt, by numbers of rows alone
        share = float(np.clip(one.n_unlabelled / max(n_rows, 1), 0.1, 0.9))
        doubt = 1.0 - certainty
        at_most = one.quantile(1.0 - share * doubt) + other.quantile(1.0 - (1.0 - share) * doubt)
    return CountBound(certainty, at_most, n_rows, expected)


def largest_share(sizes: Sequence[int], share: float) -> float:
    """Return the share of all rows that the largest groups hold, which are this share of all groups."""
    # Each group counts once, so that this share of the rows may be outside if the groups outside are the largest.
    total = np.cumsum([0, *sorted(sizes, reverse=True)])
    return float(np.interp(share * len(sizes), np.arange(len(total)), total) / total[-1])


def effective_needed(confidence: float) -> float:
    """Return how many labels of equal weight a level takes where weights are estimated."""
    return 2.0 / (1.0 - confidence)


# ------------------------------------------------------------------------------------------ answers at a level


@dataclass(frozen=True, eq=False)
class CalibratedFit:
    """What was fitted: all that answers at any level are read from."""

    problem: Problem
    held_out: Mask  # (l,) which of the labels calibrate
    first: FittedEstimator  # fitted to the other labels
    second: Reply | None  # answers of a fit to all labels, at the unlabelled rows
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
        return (
            self.first if self.second is None or self.second.fitted is None else self.second.fitted
        )

    def answer(self, confidence: float) -> Answer:
        """Return the answer at a level, with its guarantee."""
        return replace(self._answer(confidence), guarantee=self.guarantee(confidence))

    def _answer(self, confidence: float) -> Answer:
        """Return the answer at a level, of which nothing is guaranteed yet."""
        sample, second, table = self.problem.sample, self.second, self.table
        index = None if sample.index is None else sample.index[sample.unlabelled]
        found = {"n_calibration": len(table.labels), "nonconformity": table.scoring.nonconformity}
        found |= {"transductive": len(self.first.order) > len(self.shown)}
        answer = replace(table.answer(confidence, sample.unlabelled, index), diagnostics=found)
        if second is None:
            return holding_values(answer)
        values, sure = named(second, self.problem.classes), second.probabilities
        return with_values(answer, values, second.status, second.spreads, sure)

    def guarantee(self, confidence: float, certainty: float = 0.95) -> Guarantee:
        """Return what is guaranteed at a level."""
        table, second = self.table, self.second
        found = table.guarantee(confidence, certainty, second)
        order = self.design.order
        if order is not None:
            found = found.along(self._drift(order))
        if found.kind == "none":
            return replace(found, remedy=self._rows_to_label(confidence))
        if table.classes is None or found.wrong is None:
            return replace(found, tolerance=table.tolerance)
        return replace(found, wrong_by_class=table.wrong_by_class(second, certainty))

    def _rows_to_label(self, confidence: float) -> tuple[int, ...]:
        """Return rows without a label, drawn at random as ``transduce draw`` does: their labels would be enough."""
        if self.table.weights.kind != ESTIMATED:
            return ()
        missing = ~self.problem.sample.labelled
        number = min(max(N_TO_LABEL, fewest_calibration(confidence)), int(missing.sum()))
        return tuple(draw_rows(missing, number, 0).tolist())

    def _drift(self, order: Array) -> Drift:
        """Return whether errors at calibration rows drift along an order of the rows."""
        table, known = self.table, self.table.calibration.given
        errors = [table.scores[known]]
        if table.classes is None:
            errors.append((table.labels - table.calibration.values)[known].astype(float))
        at = order[self.problem.rows[self.held_out]][known]
        return drift_along(order, self.problem.sample.labelled, at, errors)

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
        """Return how much labelled rows (k,) stand for the unlabelled ones where quality is measured."""
        estimated = self.table.weights.estimated
        if estimated is None:
            return self.design.measure(rows)
        return estimated.odds[rows]

    def sensitivity_at(
        self, confidence: float, factors: Sequence[float] | None = None
    ) -> pd.DataFrame | None:
        """Return how wide intervals get if the odds of a label depend on the label, by factors."""
        if self.table.weights.overlapping is not None and factors is None:
            return None
        if factors is None:
            factors = sorted({*USUAL_FACTORS, float(self.design.spec.sensitivity)})
        lines = [(factor, *self.width(confidence, factor)) for factor in factors]
        size = "width" if self.problem.classes is None else "size"
        return pd.DataFrame(lines, columns=["factor", size, "n_unbounded"])

    def width(self, confidence: float, factor: float) -> tuple[float, int]:
        """Return the median width, or mean size of sets, and at how many all is possible, with odds off by a factor."""
        if self.table.weights.overlapping is not None and factor != 1.0:
            raise ValueError(
                "Widths at other odds of a label are not known within several columns."
            )
        weights = replace(self.table.weights, factor=factor)
        answer: Any = replace(self, table=replace(self.table, weights=weights))._answer(confidence)
        middle: Any
        if answer.regions is None:
            sizes, everything, middle = (
                answer.label_sets.sum(axis=1),
                answer.label_sets.shape[1],
                np.mean,
            )
        else:
            sizes, everything, middle = answer.regions.measure(), np.inf, np.median
        return (float(middle(sizes)) if len(sizes) else np.nan), int((sizes == everything).sum())


def named(reply: Reply, classes: AnyArray | None) -> AnyArray:
    """Return answers as numbers, NaN where there is none, or as classes, None there."""
    if classes is None:
        return np.where(reply.given, reply.values, np.nan)
    names = classes[np.where(reply.given, reply.values, 0).astype(int)]
    if not reply.given.all():
        names = names.astype(object)
        names[~reply.given] = None
    return names


# ------------------------------------------------------------------------------------------ values of another fit


def with_values(
    answer: Answer, values: AnyArray, status: AnyArray, errors: Array | None, chances: Array | None
) -> Answer:
    """Return an answer with the values of a better one; its intervals or sets are extended to contain them."""
    # A larger interval contains the truth no less often.
    answer = replace(
        answer, values=values, status=status, standard_errors=errors, probabilities=chances
    )
    if answer.p_values is not None and answer.classes is not None:
        codes = class_codes(values, answer.classes)
        own = np.take_along_axis(answer.p_values, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
        credibility = np.where(codes >= 0, own, answer.p_values.max(axis=1))
        sure = confidence_in(codes, answer.p_values, answer.p_unseen)
        answer = replace(answer, confidence=sure, credibility=credibility)
    return holding_values(answer)


def confidence_in(codes: AnyArray, p: Array, unseen: Array | None = None) -> Array:
    """Return the highest level at which all classes except the answered one are ruled out. Shapes: p (m, n_classes)."""
    others = p.copy()
    own = np.where(codes >= 0, codes, p.argmax(axis=1))
    others[np.arange(len(p)), own] = 0.0 if unseen is None else unseen
    return np.asarray(1.0 - others.max(axis=1), dtype=float)


def holding_values(answer: Answer) -> Answer:
    """Return the answer with every value in its interval or set, "unusual" where no class was possible."""
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


# ---------------------------------------------------------------------------------- rows that no fit saw

# Given the fit, calibration rows and those to be answered are exchangeable if chance chose the labels: the number
# outside has the distribution `Miscoverage`, for any number of rows. Each is answered by itself, however a table is cut
# into parts: rows are answered in blocks of one size, a multiple of what matrix products compute at a time, on one
# thread: rounding then does not depend on how a table was cut.
BLOCK = 4608


@dataclass(frozen=True, eq=False)
class OutsideCalibration:
    """A fitted estimator, and calibration rows that it has not seen, from which any other such row is answered."""

    fitted: FittedEstimator  # sees neither the calibration rows nor the rows to be answered
    table: CalibratedTable  # the calibration rows, beside no row to be answered
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class

    def answer(self, X: Any, confidence: float, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, each by itself. Shapes: X (m, d), rows (m,)."""
        reply, shares = _in_blocks(self.fitted, X) if len(X) else self.table.unlabelled, self.shares
        last, none = reply if shares is None else shares.applied(reply), np.zeros(len(reply.values))
        scored = last if shares is not None and shares.given else reply
        weights = replace(self.table.weights, unlabelled=none + 1.0)
        table = replace(
            self.table, unlabelled=scored, ties=(self.table.ties[0], none), weights=weights
        )
        answer = table.answer(confidence, np.arange(len(none)) if rows is None else rows)
        if shares is None:
            return holding_values(answer)
        return with_values(
            answer, named(last, table.classes), last.status, None, last.probabilities
        )

    def guarantee(
        self,
        confidence: float,
        n_answered: int,
        certainty: float = 0.95,
        tolerance: float | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of the answers at rows that no fit saw, of which there may be billions."""
        table = replace(self.beside(n_answered), tolerance=tolerance)
        return replace(table.guarantee(confidence, certainty), tolerance=tolerance)

    def beside(self, n_answered: int) -> CalibratedTable:
        """Return the calibration rows beside so many rows with an answer, which takes no memory for each."""
        return beside_rows(self.table, n_answered)


def beside_rows(table: CalibratedTable, n_answered: int) -> CalibratedTable:
    """Return calibration rows beside so many other rows with an answer, which takes no memory for each."""
    one = np.zeros(1, dtype=table.labels.dtype), np.array(["answered"])
    values, status = (np.broadcast_to(part, n_answered) for part in one)
    return replace(table, unlabelled=Reply(values, status))


def calibrate_outside(
    fitted: FittedEstimator,
    inside: Any,
    shown: AnyArray,
    X: Any,
    labels: AnyArray,
    *,
    shares: ClassShares | None = None,
    empty: Any = None,
) -> OutsideCalibration:
    """Calibrate a fit by labelled rows (c, d) that it has not seen, and such rows (e, d) that were left empty."""
    classes = fitted.classes
    n_classes = 0 if classes is None else len(classes)
    first, reply = fitted.predict(inside, once=True), _in_blocks(fitted, X)
    if (
        shares is not None and shares.given
    ):  # estimated ones are no part of the scores, as in the fit itself
        first, reply = shares.applied(first), shares.applied(reply)
    n_empty = 0 if empty is None or not len(empty) else int(_in_blocks(fitted, empty).given.sum())
    weights = Weights.equal(len(labels), 0, n_empty=n_empty)
    if shares is not None:
        given = shares.shares if shares.given else None
        weights = replace(weights, kind=CLASSES, shares=given, testable=False)
    scoring = Scoring.of(first, shown, n_classes)
    table = table_outside(reply, scoring, shown, labels, classes, weights)
    return OutsideCalibration(fitted, table, shares)


def table_outside(
    reply: Reply,
    scoring: Scoring,
    shown: AnyArray,
    labels: AnyArray,
    classes: AnyArray | None,
    weights: Weights,
) -> CalibratedTable:
    """Return calibration rows that no fit has seen, beside no row to be answered; `shown` are the visible labels."""
    sizes: tuple[int, ...] = (len(shown) + len(labels),)
    if classes is not None:
        codes = np.append(shown, labels).astype(int)
        sizes = tuple(np.bincount(codes, minlength=len(classes)).tolist())
    return CalibratedTable(
        calibration=reply,
        unlabelled=reply.at(np.arange(0)),
        labels=labels,
        classes=classes,
        sizes=sizes,
        by_class=False,
        tolerance=None,
        scoring=scoring,
        ties=(np.zeros(len(labels)), np.zeros(0)),
        weights=weights,
    )


def _in_blocks(fitted: FittedEstimator, X: Any) -> Reply:
    """Return predictions made in blocks of one size."""
    replies = []
    with few_threads(0):
        for start in range(0, max(len(X), 1), BLOCK):
            block = X[start : start + BLOCK]
            if isinstance(X, np.ndarray):  # columns of any type are for an estimator of the user's
                block = np.vstack([block, np.zeros((BLOCK - len(block), X.shape[1]))])
            replies.append(fitted.predict(block, once=True))
    own: dict[str, Any] = {name: [getattr(reply, name) for reply in replies] for name in PARTS}
    own = {
        name: np.concatenate(each)[: len(X)] for name, each in own.items() if each[0] is not None
    }
    return Reply(**own)
