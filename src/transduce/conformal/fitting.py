"""The one fit that cannot tell calibration from unlabelled rows, a second one to all labels, and answers from both."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from transduce.conformal.calibrated import Calibrated
from transduce.conformal.chosen import Chosen, weigh
from transduce.conformal.drift import drift_along
from transduce.conformal.estimated_odds import EstimatedOdds, estimate_odds
from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
from transduce.conformal.guarantee import calibrated_guarantee, rows_to_label, shortfall
from transduce.conformal.held_out import (
    calibration_number,
    hold_out_groups,
    hold_out_within,
    read_number,
)
from transduce.conformal.scores import SCORES
from transduce.conformal.second_fit import holding_values, with_values
from transduce.conformal.wrong_answers import wrong_answers, wrong_by_class
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.guarantee import Drift, Guarantee, TooFewLabelsWarning, percent
from transduce.core.reuse import reusing
from transduce.core.types import AnyArray, Mask
from transduce.model_selection.hidden_labels import Fitted, Problem, Reply, ask, is_transducer, take


@dataclass(frozen=True)
class Settings:
    """Settings of a `ConformalTransducer`, checked."""

    confidence: float
    calibration: Any
    nonconformity: str
    label_conditional: bool
    ties: str
    transductive: bool
    refit: bool
    test_exchangeability: bool
    tolerance: float | None


def read_settings(params: dict[str, Any], is_class: bool) -> Settings:
    """Return checked settings, or raise a ValueError that says what to correct."""
    confidence = checks.check_confidence(params["confidence"])
    checks.check_choice("nonconformity", params["nonconformity"], SCORES)
    checks.check_choice("ties", params["ties"], ("inside", "random"))
    for name in ("label_conditional", "test_exchangeability", "refit"):
        checks.check_flag(name, params[name])
    if params["label_conditional"] and not is_class:
        raise ValueError("label_conditional=True is for classes; for numbers leave it False.")
    transductive = params["transductive"]
    if not isinstance(transductive, bool | np.bool_) and transductive != "auto":
        raise ValueError(f"transductive must be 'auto', True or False; got {transductive!r}.")
    return Settings(
        confidence,
        params["calibration"],
        params["nonconformity"],
        bool(params["label_conditional"]),
        params["ties"],
        is_transducer(params["estimator"]) if isinstance(transductive, str) else bool(transductive),
        bool(params["refit"]),
        bool(params["test_exchangeability"]),
        _read_tolerance(params["tolerance"], is_class),
    )


def _read_tolerance(tolerance: Any, is_class: bool) -> float | None:
    if tolerance is None:
        return None
    if is_class:
        raise ValueError("tolerance is for numbers: an answer that is a class is right or wrong.")
    return checks.check_positive("tolerance", tolerance)


def check_wrapped(estimator: Any) -> bool:
    """Return whether the estimator is a classifier; raise a TypeError unless it is one or a regressor."""
    if inspect.isclass(estimator):
        raise TypeError(
            f"estimator is the class {estimator.__name__}: pass an instance, {estimator.__name__}(...)."
        )
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be a regressor or a classifier with fit and predict; got {estimator!r}."
        )
    if not is_classifier(estimator) and not is_regressor(estimator):
        if "task" in estimator.get_params(deep=False):
            raise TypeError(
                f"{type(estimator).__name__} does not say whether it answers numbers or classes: set its task to "
                "'regression' or 'classification'."
            )
        raise TypeError(
            f"{type(estimator).__name__} is neither a regressor nor a classifier, as its tags say: it has no answer to "
            "calibrate."
        )
    return bool(is_classifier(estimator))


@dataclass(frozen=True, eq=False)
class CalibratedFit:
    """What was fitted: all that answers at any level are read from."""

    problem: Problem
    held_out: Mask  # (l,) which of the labels calibrate
    first: Fitted  # fitted to the other labels
    second: Reply | None  # answers of a fit to all labels, at the unlabelled rows
    calibrated: Calibrated
    exchangeability: Exchangeability | None
    chosen: Chosen  # how labels came about
    estimated: EstimatedOdds | None  # odds that rows have no label, if they were estimated
    tolerance: float | None  # by how much a number may be off

    @property
    def shown(self) -> AnyArray:
        """The labels that were not held out: numbers, or numbers of classes."""
        return self.problem.numbers[~self.held_out]

    @property
    def answering(self) -> Fitted:
        """The fit that values come from."""
        if self.second is None:
            return self.first
        assert self.second.fitted is not None
        return self.second.fitted

    def names(self, codes: AnyArray) -> AnyArray:
        """Return classes by their numbers, None where there is none; numbers as they are."""
        classes = self.problem.classes
        if classes is None:
            return codes
        if len(codes) and codes.min() < 0:
            names = classes.astype(object)[codes]
            names[codes < 0] = None
            return names
        return classes[codes.astype(int)]

    def guarantee(self, confidence: float, certainty: float = 0.95) -> Guarantee:
        """Return what is guaranteed at a level."""
        verdict = None if self.exchangeability is None else self.exchangeability.verdict
        wrong = None
        if self.calibrated.weighing.pooled:
            wrong = wrong_answers(self.calibrated, self.second, certainty, self.tolerance)
        found = calibrated_guarantee(
            self.calibrated,
            confidence,
            len(self.problem.labels),
            verdict,
            chosen=self.chosen,
            certainty=certainty,
            wrong=wrong,
        )
        found = self._of_rows(found, confidence).along(self.drift())
        if found.kind == "none":
            missing = ~self.problem.sample.labelled
            return replace(found, remedy=rows_to_label(self.calibrated, confidence, missing))
        if self.problem.classes is None or found.wrong is None:
            return replace(found, tolerance=self.tolerance)
        by_class = wrong_by_class(self.calibrated, self.second, certainty, self.problem.classes)
        return replace(found, wrong_by_class=by_class)

    def _of_rows(self, found: Guarantee, confidence: float) -> Guarantee:
        """Return the guarantee with the groups or categories that it is about."""
        if found.kind == "none":
            return found
        if self.chosen.groups is not None:
            used = np.unique(self.chosen.groups[self.problem.rows[self.held_out]])
            others = int((~self.chosen.new_groups(self.problem)).sum())
            return replace(found, n_groups=len(used), n_other=others, effective=None)
        return replace(found, short=self.short_categories(confidence))

    def short_categories(self, confidence: float) -> tuple[str, ...]:
        """Return the categories of unlabelled rows at which nothing is ruled out."""
        cells = self.calibrated.weighing.cells
        if cells is None:
            return ()
        codes = np.unique(cells[1][self.calibrated.unlabelled.given])
        names = [self.chosen.category_names[code] for code in np.unique(cells[1])]
        short = [ranking.unbounded(confidence).all() for _, _, ranking in self.calibrated.rankings()]
        named = zip(np.unique(cells[1]), names, short, strict=True)
        return tuple(name for code, name, all_ in named if all_ and code in codes)

    def warning(self, confidence: float) -> str | None:
        """Return where labels are too few for a level; None where they are not."""
        labels, classes = self.problem.labels, self.problem.classes
        short = self.short_categories(confidence)
        why = shortfall(self.calibrated, confidence, len(labels), classes)
        if why is not None or not short:
            return why
        what = "every interval is the whole line" if classes is None else "every set is all classes"
        return f"Too few labels for {percent(confidence)} in {', '.join(short)}: {what} there."

    def drift(self) -> Drift | None:
        """Return whether errors at calibration rows drift along the order of the rows, if there is one."""
        if self.chosen.order is None:
            return None
        table, known = self.calibrated, self.calibrated.calibration.given
        errors = [table.scores[known]]
        if self.problem.classes is None:
            errors.append((table.labels - table.calibration.values)[known].astype(float))
        order = self.chosen.order
        at = order[self.problem.rows[self.held_out]][known]
        return drift_along(order, self.problem.sample.labelled, at, errors)

    def at_factor(self, factor: float) -> CalibratedFit:
        """Return the same fit, calibrated for odds of a label that may be off by another factor."""
        weights = replace(self.calibrated.weighing, factor=factor)
        chosen = replace(self.chosen, factor=factor)
        return replace(self, calibrated=replace(self.calibrated, weights=weights), chosen=chosen)

    def width(self, confidence: float) -> tuple[float, int]:
        """Return the median width of the intervals, or the mean size of the sets, and at how many all is possible."""
        answer = self.answer(confidence)
        if answer.regions is not None:
            widths = answer.regions.measure()
            return (float(np.median(widths)) if len(widths) else np.nan), int(np.isinf(widths).sum())
        assert answer.label_sets is not None
        sizes = answer.label_sets.sum(axis=1)
        everything = int((sizes == answer.label_sets.shape[1]).sum())
        return (float(sizes.mean()) if len(sizes) else np.nan), everything

    def answer(self, confidence: float) -> Answer:
        """Return the answer at a level."""
        problem, table = self.problem, self.calibrated
        sample, found = problem.sample, table.unlabelled
        answer = Answer(
            rows=sample.unlabelled,
            values=self.names(_marked(found)),
            status=found.status,
            guarantee=self.guarantee(confidence),
            index=None if sample.index is None else sample.index[sample.unlabelled],
            probabilities=found.probabilities,
            standard_errors=found.spreads,
            classes=problem.classes,
            diagnostics={
                "n_calibration": len(table.labels),
                "nonconformity": table.nonconformity,
                "transductive": len(self.first.order) > len(self.shown),
            },
        )
        if problem.classes is None:
            answer = replace(answer, regions=table.regions(confidence))
        else:
            p = table.p_values()
            ranked = np.sort(p, axis=1)
            answer = replace(
                answer,
                label_sets=table.sets(p, confidence),
                p_values=p,
                confidence=1.0 - ranked[:, -2],
                credibility=ranked[:, -1],
            )
        if self.second is None:
            return holding_values(answer)
        better = replace(
            answer,
            values=self.names(_marked(self.second)),
            status=self.second.status,
            standard_errors=self.second.spreads,
            probabilities=self.second.probabilities,
        )
        return with_values(answer, better)


def _marked(reply: Reply) -> AnyArray:
    """Return values, missing (NaN, or the class number -1) where there is no answer."""
    return np.where(reply.given, reply.values, np.nan if reply.values.dtype.kind == "f" else -1)


def hold_out(settings: Settings, chosen: Chosen, problem: Problem, random: np.random.RandomState) -> Mask:
    """Return which labels to hold out, shape (l,); their number does not depend on what they are."""
    rows, n_labelled, wanted = problem.rows, len(problem.labels), settings.calibration
    if not len(problem.sample.unlabelled):
        return np.zeros(n_labelled, dtype=bool)
    if chosen.drawn is not None:
        return chosen.drawn
    auto = isinstance(wanted, str) and wanted == "auto"
    if chosen.categories is not None and auto:
        return hold_out_within(chosen.categories[rows], settings.confidence, chosen.factor, random)
    groups = np.arange(n_labelled) if chosen.groups is None else chosen.groups[rows]
    units = len(np.unique(groups))
    if auto:
        number = calibration_number(
            units, settings.confidence, by_class=settings.label_conditional, factor=chosen.factor
        )
    else:
        number = read_number(wanted, units)
    return hold_out_groups(groups, number, random)


def fit_calibrated(
    estimator: Any, problem: Problem, settings: Settings, chosen: Chosen, random: np.random.RandomState
) -> CalibratedFit:
    """Hold labels out, fit once with calibration and unlabelled rows shuffled together, and calibrate."""
    rows, unlabelled = problem.rows, problem.sample.unlabelled
    held_out = hold_out(settings, chosen, problem, random)
    both = np.concatenate([rows[held_out], unlabelled])
    order = np.concatenate([rows[~held_out], random.permutation(both)])
    visible = np.flatnonzero(~held_out)
    inner = chosen.ready(estimator, rows[~held_out], 0)
    with reusing():
        found = ask(inner, problem, visible, both, order=order, transductive=settings.transductive)
        _pass_on(found)
        second = _fit_to_all(chosen.ready(estimator, rows, 0), problem, settings, found, held_out)
    calibrated = Calibrated.build(
        found,
        problem.numbers[held_out],
        problem.numbers[~held_out],
        class_sizes=() if problem.classes is None else problem.class_sizes,
        by_class=settings.label_conditional,
        wanted=settings.nonconformity,
        ties=random.uniform(size=len(both)) if settings.ties == "random" else np.zeros(len(both)),
    )
    compared = None
    if settings.test_exchangeability and chosen.testable and len(unlabelled):
        compared = _compare(problem, chosen, random)
    estimated = None
    if chosen.estimates(compared) and len(unlabelled):
        estimated = estimate_odds(problem.X, problem.sample.labelled, random.randint(2**31 - 1))
    weights = weigh(chosen, problem, held_out, calibrated.calibration.given, estimated)
    assert found.fitted is not None
    return CalibratedFit(
        problem,
        held_out,
        found.fitted,
        second,
        replace(calibrated, weights=weights),
        compared,
        chosen,
        estimated,
        settings.tolerance,
    )


def _compare(problem: Problem, chosen: Chosen, random: np.random.RandomState) -> Exchangeability:
    """Return how labelled and unlabelled rows compare."""
    seed = random.randint(2**31 - 1)
    some = chosen.to_compare(problem, random)
    if some is None:
        labelled = problem.sample.labelled
        return exchangeability_test(problem.X, labelled, within=chosen.categories, random_state=seed)
    return exchangeability_test(take(problem.X, some[0]), some[1], random_state=seed)


def _fit_to_all(
    estimator: Any, problem: Problem, settings: Settings, first: Reply, held_out: Mask
) -> Reply | None:
    """Return the answers of a second fit, to all labels, if one is wanted; the first where no label was held out."""
    if not settings.refit:
        return None
    if not held_out.any():
        return first
    rows, unlabelled = problem.rows, problem.sample.unlabelled
    again = ask(
        estimator,
        problem,
        np.arange(len(rows)),
        unlabelled,
        order=np.concatenate([rows, unlabelled]),
        transductive=settings.transductive,
    )
    _pass_on(again)
    return again


def _pass_on(reply: Reply) -> None:
    """Pass on the estimator's warnings, except that its labels are too few for regions of its own."""
    for category, message in reply.notes:
        if not issubclass(category, TooFewLabelsWarning):
            warnings.warn(message, category, stacklevel=4)
