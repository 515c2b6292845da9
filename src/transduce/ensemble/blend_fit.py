"""How a blend is fitted: its members, fitted and asked, and the weighted mean of their answers.

What they answer at hidden labels is in `out_of_fold`, the weights that follow in `weights`, and
standard errors in `error_size`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.computing import call_with_threads, stage, threads_of_fit
from transduce.core.guarantee import Guarantee
from transduce.core.scaling import fit_power, label_moments, to_power
from transduce.core.types import AnyArray, Array, Mask, Rows
from transduce.core.words import in_a_sentence
from transduce.ensemble.error_size import ErrorSize
from transduce.ensemble.out_of_fold import OutOfFold, fit_factor, stack, unit_factor
from transduce.ensemble.weights import COUNT_OF_LINE, mix, read_weights, shrunk_weights
from transduce.model_selection.cross_validation import like, predict_folds
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import (
    FittedEstimator,
    RawPrediction,
    fit_and_predict,
)
from transduce.model_selection.folds import Fold, read_folds
from transduce.model_selection.linear import LinearRegressor
from transduce.model_selection.problem import Problem

MIN_LABELS = 5  # fewer say nothing about weights
NEARLY_ALL = 0.7  # of the labels: settings that were chosen with so many are good with all
# Times the smallest error of a member: up to there a line through nearly all labels is as good.
ABOUT_AS_GOOD = 1.5
FOLDS = 5  # in which members without another way are refitted
MEAN = (
    "The values are a weighted mean of several methods, weighted by how well each did at hidden "
    "labels."
)
NO_GUARANTEE = Guarantee("none", reasons=(MEAN,))


class MemberFailedWarning(UserWarning):
    """A member of a blend failed, and the blend is made of the others."""


def without_refits(
    reply: RawPrediction, problem: Problem, folds: list[Fold]
) -> list[RawPrediction] | None:
    """Return a member's answers at the hidden rows of every fold; None if only refits can tell."""
    fitted = reply.fitted
    if fitted.pairwise:
        return None
    last = last_step(fitted.estimator)
    if hasattr(last, "relabel") and problem.classes is not None:
        return _relabelled(fitted, problem, folds)
    if hasattr(last, "answers_in_folds"):
        return [_reply(fitted, part) for part in last.answers_in_folds(folds)]
    return None


def _reply(fitted: FittedEstimator, answers: Array) -> RawPrediction:
    """Return numbers, or the probabilities of the estimator's classes, as a reply."""
    answers = arrays.to_numpy(answers)
    if fitted.classes is None:
        return fitted.reply(answers)
    own_classes = last_step(fitted.estimator).classes_
    return fitted.reply(
        own_classes[answers.argmax(axis=1)],
        probabilities=answers,
        own_classes=own_classes,
    )


def _relabelled(
    fitted: FittedEstimator, problem: Problem, folds: list[Fold]
) -> list[RawPrediction] | None:
    """Return the answers of the same graph cut with the visible labels of each fold.

    None if a fold sees one class alone.
    """
    if any(len(np.unique(problem.codes[visible])) < 2 for visible, _ in folds):
        return None
    again = copy(last_step(fitted.estimator))  # on the graph and the spectrum of the fitted one
    replies = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for visible, hidden in folds:
            again.relabel(problem.shown(visible))
            refitted = replace(fitted, estimator=again)
            replies.append(refitted.transduced(problem.rows[hidden]))
    return replies


@dataclass(frozen=True, eq=False)
class BlendFit:
    """Members, fitted, and how their answers are blended."""

    problem: Problem
    replies: dict[str, RawPrediction]  # what each member answers at the unlabelled rows
    factors: dict[str, float]  # by which each member's scores become shares
    weights: Array  # (k,)
    out_of_fold: pd.DataFrame | None = None  # out-of-fold answers of the members and the blend
    error_size: ErrorSize | None = None  # standard errors of numbers, in units of the labels
    power: float = 1.0  # of the blend's shares of the classes, which makes them probabilities
    failed: dict[str, str] = field(default_factory=dict)  # members that failed, and why
    hidden: OutOfFold | None = None  # what the weights were estimated from

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and spread of the labels, in which means are computed; 0 and 1 for classes."""
        if self.problem.classes is not None:
            return 0.0, 1.0
        return label_moments(self.problem.labels)

    @property
    def members(self) -> dict[str, FittedEstimator]:
        """The members, fitted, by name."""
        return {name: reply.fitted for name, reply in self.replies.items()}

    def mean(self, answers: Array, given: Mask) -> tuple[Array, Array]:
        """Return mean and spread of answers."""
        # In units of the labels none is too large to square.
        centre, unit = self.moments
        mean, spread = mix((answers - centre) / unit, self.weights, given)
        return mean * unit + centre, spread * unit

    def blend(self, replies: Iterable[RawPrediction]) -> tuple[Array, Array, Mask]:
        """Return means, spreads, and where there is a mean at all.

        Elsewhere the labels' mean, or the share of each class, stands in.
        """
        answers, given = stack(replies, self.factors.values(), self.problem.classes)
        mean, spread = self.mean(answers, given)
        if self.problem.classes is not None:
            mean = to_power(mean, self.power)
        reached = np.asarray(given.any(axis=0))
        if not reached.all():
            mean = self.problem.filled(mean, reached, np.arange(len(self.problem.labels)))
            n_unreached = int((~reached).sum())
            warnings.warn(
                f"No member answers at {n_unreached} rows: the labels' mean, or the share of each "
                "class, stands in.",
                stacklevel=4,
            )
        return mean, spread, reached

    def extend(self, X: Rows) -> tuple[Array, Array]:
        """Return mean and spread of the members' predictions at other rows."""
        n_rows = _num_samples(X)
        replies = []
        for member, weight in zip(self.members.values(), self.weights, strict=True):
            if weight > 0.0:
                reply = member.predict(member.arrange_rows(X), spreads=False, once=True)
            else:
                reply = member.unreached(n_rows)
            replies.append(reply)
        mean, spread, _ = self.blend(replies)
        return mean, spread

    def standard_errors(self, mean: Array, spread: Array) -> Array | None:
        """Return how large errors are at rows with these values and spreads; None if unknown."""
        if self.error_size is None:
            return None
        centre, unit = self.moments
        return self.error_size.at((mean - centre) / unit, spread / unit) * unit

    def answer(self, left_out: dict[str, str]) -> tuple[Answer, Any]:
        """Return the answer at the unlabelled rows, and the labels completed with it."""
        sample = self.problem.sample
        mean, spread, reached = self.blend(self.replies.values())
        answer = Answer(
            rows=sample.unlabelled,
            values=mean,
            status=np.where(reached, "answered", "unreached"),
            guarantee=NO_GUARANTEE,
            index=sample.index_at(sample.unlabelled),
            diagnostics=self._diagnose(left_out),
        )
        if self.problem.classes is None:
            answer = replace(answer, standard_errors=self.standard_errors(mean, spread))
            return answer, sample.complete(mean, reached)
        answer = self._choose_classes(answer, mean, spread, reached)
        return answer, sample.complete(answer.values.astype(object), reached)

    def _choose_classes(
        self, answer: Answer, probabilities: Array, spread: Array, reached: Mask
    ) -> Answer:
        """Return the answer with the most probable class of each row."""
        classes = self.problem.classes
        assert classes is not None
        winner = probabilities.argmax(axis=1)
        ranked = np.sort(probabilities, axis=1)
        lead = ranked[:, -1] - ranked[:, -2]
        return replace(
            answer,
            values=classes[winner],
            status=np.where(reached & (lead <= 1e-9), "tied", answer.status),
            standard_errors=spread[np.arange(len(spread)), winner],
            confidence=lead,
            probabilities=probabilities,
            classes=classes,
        )

    def _diagnose(self, left_out: dict[str, str]) -> dict[str, Any]:
        """Return what became of the members."""
        messages = {}
        for name, reply in self.replies.items():
            if reply.notes:
                messages[name] = [message for _, message in reply.notes]
        return {
            "left out": left_out | self.failed,
            "calibration": self.factors,
            "power": self.power,
            "warnings": messages,
            "seconds": {name: reply.seconds for name, reply in self.replies.items()},
        }


@dataclass(frozen=True, eq=False)
class Earlier:
    """A fit of the same blend to fewer labels of the same rows."""

    fit: BlendFit
    places: AnyArray  # (n,) where its rows are in the table of the new fit

    def member(self, name: str, n_labels: int) -> FittedEstimator | None:
        """Return a member to continue from that saw nearly as many labels; None if none did."""
        member = self.fit.members.get(name)
        if member is None or len(self.fit.problem.labels) < NEARLY_ALL * n_labels:
            return None
        return replace(member, order=self.places[member.order])

    def out_of_fold(self, problem: Problem, names: list[str]) -> OutOfFold | None:
        """Return what it answered at the labels, out of fold at those it saw; None if unknown."""
        fit = self.fit
        old = fit.problem
        if fit.hidden is None or not set(names) <= set(fit.replies):
            return None
        if not _same_classes(old, problem):
            return None
        members = [list(fit.replies).index(name) for name in names]
        answers, given = stack(fit.replies.values(), fit.factors.values(), old.classes)
        number = np.full(problem.n_rows, -1)
        number[problem.rows] = np.arange(len(problem.rows))
        held = number[self.places[old.sample.unlabelled]]
        answers = old.filled(answers, given, np.arange(len(old.labels)))[:, held >= 0]
        hidden_before = number[self.places[old.rows]][fit.hidden.hidden]
        hidden = np.concatenate([hidden_before, held[held >= 0]])
        together = np.concatenate([fit.hidden.answers, answers], axis=1)[members]
        return OutOfFold(hidden, together, problem.truth[hidden])


def _same_classes(problem: Problem, other: Problem) -> bool:
    """Return whether two problems have the same classes, or both numbers."""
    if problem.classes is None or other.classes is None:
        return problem.classes is other.classes
    return np.array_equal(problem.classes, other.classes)


class CalibratedMembers(NamedTuple):
    """Members that answer at the unlabelled rows, and at labels that were hidden from them."""

    replies: dict[str, RawPrediction]  # at the unlabelled rows
    factors: dict[str, float]  # by which each member's scores become shares
    out_of_fold: OutOfFold | None  # at hidden labels, if weights are estimated from them


@dataclass(frozen=True, eq=False)
class Asking:
    """Members that are asked for their answers; `failed` says which of them failed, and why."""

    members: Mapping[str, Any]
    problem: Problem
    settings: Any  # of the blend
    earlier: Earlier | None = None
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def estimated(self) -> bool:
        """Whether weights are estimated from out-of-fold answers."""
        return isinstance(self.settings.weights, str) and self.settings.weights == "shrunk"

    @property
    def refits(self) -> bool:
        """Whether every member is refitted in every fold, also one that can tell without that."""
        return not (isinstance(self.settings.cv, str) and self.settings.cv == "auto")

    def fit(self, random: np.random.RandomState) -> BlendFit:
        """Fit the members, weigh them, and return what it takes to blend their answers."""
        given = read_weights(self.settings.weights, list(self.members))
        calibrated = self._calibrate(self.replies(), random)
        kept = np.array([given[name] for name in calibrated.replies])
        if kept.sum() == 0.0:
            raise ValueError(
                "The members left have weight 0: give weights to those that do not fail."
            )
        fitted = BlendFit(
            self.problem,
            calibrated.replies,
            calibrated.factors,
            kept / kept.sum(),
            failed=self.failed,
            hidden=calibrated.out_of_fold,
        )
        if calibrated.out_of_fold is None:
            if self.estimated:
                weights = _relation_alone(fitted.replies, fitted.weights)
                return replace(fitted, weights=weights)
            return fitted
        return _weigh_by_errors(fitted, calibrated.out_of_fold)

    def _calibrate(
        self, replies: dict[str, RawPrediction], random: np.random.RandomState
    ) -> CalibratedMembers:
        """Return the members that answer at hidden labels too, and what they answer there."""
        problem = self.problem
        if self.earlier is not None and self.estimated:
            columns = self.earlier.out_of_fold(problem, list(replies))
            if columns is not None:
                factors = {name: self.earlier.fit.factors[name] for name in replies}
                return CalibratedMembers(replies, factors, columns)
        folds, hidden = self.out_of_fold(replies, random)
        factors = {
            name: calibrate(problem, folds, replies[name], folds_of_member)
            for name, folds_of_member in hidden.items()
        }
        columns = None
        if self.estimated and folds:
            columns = OutOfFold.of(problem, folds, hidden, factors)
        return CalibratedMembers({name: replies[name] for name in hidden}, factors, columns)

    def replies(self) -> dict[str, RawPrediction]:
        """Return what the members answer at the unlabelled rows; leave out those that fail."""
        members = self.members
        threads = threads_of_fit(self.problem.n_rows)
        n_jobs = 1
        if len(members) > 1:
            n_jobs = self.settings.n_jobs
        parallel = Parallel(n_jobs, return_as="generator")
        results: dict[str, RawPrediction | Exception] = {}

        def job(name: str) -> Any:
            after = None
            if self.earlier is not None:
                after = self.earlier.member(name, len(self.problem.labels))
            return delayed(call_with_threads)(threads, _attempt, members[name], self.problem, after)

        with stage("methods") as report:
            for name, result in zip(members, parallel(map(job, members)), strict=True):
                results[name] = result
                report(len(results) / len(members))
        self._failures(results, "")
        return {name: reply for name, reply in results.items() if isinstance(reply, RawPrediction)}

    def _failures(self, results: Mapping[str, Any], when: str) -> dict[str, Exception]:
        """Return the failures, note them and warn of them; raise one if every member failed."""
        failures = {
            name: result for name, result in results.items() if isinstance(result, Exception)
        }
        if len(failures) == len(results):
            name, first = next(iter(failures.items()))
            raise like(
                first, f"Every member failed{when}. {name}: {in_a_sentence(first)}"
            ) from first
        for name, why in failures.items():
            reason = in_a_sentence(why)
            self.failed[name] = f"it failed{when}: {reason}"
            message = f"Member {name!r} failed{when} and is left out: {reason}"
            warnings.warn(message, MemberFailedWarning, stacklevel=5)
        return failures

    def out_of_fold(
        self, replies: dict[str, RawPrediction], random: np.random.RandomState
    ) -> tuple[list[Fold], dict[str, list[RawPrediction] | None]]:
        """Return folds, and the replies in them of the members that stay.

        None stands for the replies of a member that needs none. There are no folds if they are of
        no use.
        """
        needed = list(replies)
        if not self.estimated:
            needed = [name for name, reply in replies.items() if self._needs_factor(reply)]
        if len(self.problem.labels) < MIN_LABELS or not needed:
            return [], dict.fromkeys(replies)
        cv = FOLDS
        if self.refits:
            cv = self.settings.cv
        folds = read_folds(cv, self.problem, random_state=random, quiet=True)
        results: dict[str, Any] = {
            name: self._in_folds(self.members[name], replies[name], folds) for name in needed
        }
        failures = self._failures(results, " when labels were hidden")
        return folds, {name: results.get(name) for name in replies if name not in failures}

    def _needs_factor(self, reply: RawPrediction) -> bool:
        """Return whether a member has scores of classes, which are no probabilities."""
        return self.problem.classes is not None and not _has_probabilities(reply)

    def _in_folds(
        self, member: Any, reply: RawPrediction, folds: list[Fold]
    ) -> list[Any] | Exception:
        """Return a member's replies at the hidden rows of every fold, or why one is missing."""
        answers = None
        if not self.refits:
            try:
                answers = without_refits(reply, self.problem, folds)
            except Exception as error:  # an estimator of any make may raise anything
                return error
        if answers is not None:
            return answers
        refitted = predict_folds([member], self.problem, folds, n_jobs=self.settings.n_jobs)[0]
        for answer in refitted:
            if isinstance(answer, Exception):
                return answer
        return refitted


def _weigh_by_errors(fitted: BlendFit, hidden: OutOfFold) -> BlendFit:
    """Return the fit with weights by the errors that members make at hidden labels."""
    _, unit = fitted.moments
    errors = hidden.errors(unit)
    counts = member_counts(fitted.replies)
    weights = shrunk_weights(errors, len(np.unique(hidden.hidden)), counts)
    weights = _line_alone(fitted.replies, errors, weights)
    return _with_out_of_fold(replace(fitted, weights=weights), hidden)


def member_counts(replies: Mapping[str, RawPrediction]) -> Array:
    """Return what each member counts (k,) before any label is seen."""
    estimators = [last_step(reply.fitted.estimator) for reply in replies.values()]
    is_line = [isinstance(estimator, LinearRegressor) for estimator in estimators]
    return np.where(is_line, COUNT_OF_LINE, 1.0)


def _line_alone(replies: dict[str, RawPrediction], errors: Array, weights: Array) -> Array:
    """Return all of the weight for a line that is nearly exact, and about as good as any member.

    Others are as good between the labels, but come back to their mean beyond them.
    """
    sizes = np.sqrt(np.mean(errors**2, axis=0))
    for place, reply in enumerate(replies.values()):
        estimator = last_step(reply.fitted.estimator)
        is_line = isinstance(estimator, LinearRegressor) and estimator.is_nearly_exact_
        if is_line and sizes[place] <= ABOUT_AS_GOOD * sizes.min():
            return np.eye(len(weights))[place]
    return weights


def _relation_alone(replies: Mapping[str, RawPrediction], weights: Array) -> Array:
    """Return all of the weight for a linear relation, of which fewer labels tell than of weights.

    Chance would hardly ever bring it about.
    """
    for place, reply in enumerate(replies.values()):
        estimator = last_step(reply.fitted.estimator)
        if isinstance(estimator, LinearRegressor) and estimator.relation_ is not None:
            return np.eye(len(weights))[place]
    return weights


def _attempt(
    member: Any, problem: Problem, after: FittedEstimator | None = None
) -> RawPrediction | Exception:
    """Return a member's answers at the unlabelled rows, or why there are none."""
    every_label = np.arange(len(problem.labels))
    try:
        return fit_and_predict(member, problem, every_label, problem.sample.unlabelled, after=after)
    except Exception as error:  # an estimator of any make may raise anything
        return error


def _with_out_of_fold(fitted: BlendFit, hidden: OutOfFold) -> BlendFit:
    """Return the fit with its out-of-fold answers and, for numbers, the size of its errors."""
    problem = fitted.problem
    names = [*fitted.replies, "blend"]
    all_rows = np.ones(hidden.answers.shape[:2], dtype=bool)
    blend, spread = fitted.mean(hidden.answers, all_rows)
    if problem.classes is not None:
        rows, shares = hidden.by_row(blend)
        fitted = replace(fitted, power=fit_power(shares, problem.codes[rows]))
        blend = to_power(blend, fitted.power)
    answers = np.concatenate([hidden.answers, blend[None]])
    rows, by_row = hidden.by_row(np.moveaxis(answers, 0, -1))
    places = problem.rows[rows]
    index = problem.sample.index_at(places)
    if index is None:
        index = pd.Index(places)
    if problem.classes is None:
        centre, unit = fitted.moments
        signals = (blend - centre) / unit, spread / unit
        errors = hidden.crossed_errors(unit, member_counts(fitted.replies))
        size = ErrorSize.fit(*signals, errors, hidden.shares())
        frame = pd.DataFrame(by_row, index=index, columns=names)
        return replace(fitted, out_of_fold=frame, error_size=size)
    places_of_columns = np.indices((len(names), len(problem.classes))).reshape(2, -1)
    # Not from their product: pandas 2 takes texts that differ by a NUL for one.
    columns = pd.MultiIndex(
        levels=[names, problem.classes], codes=places_of_columns, names=["member", "class"]
    )
    wide = np.moveaxis(by_row, -1, 1).reshape(len(rows), -1)
    return replace(fitted, out_of_fold=pd.DataFrame(wide, index=index, columns=columns))


def _has_probabilities(reply: RawPrediction) -> bool:
    return reply.probabilities is not None or hasattr(reply.fitted.estimator, "predict_proba")


def calibrate(
    problem: Problem, folds: list[Fold], reply: RawPrediction, hidden: list[RawPrediction] | None
) -> float:
    """Return the factor of a member's scores: by those out of fold, or without labels."""
    if problem.classes is None or _has_probabilities(reply):
        return 1.0
    n_classes = len(problem.classes)
    if hidden is None:
        return unit_factor(reply.class_scores(n_classes)[reply.given])
    return fit_factor(hidden, [problem.codes[fold[1]] for fold in folds], n_classes)
