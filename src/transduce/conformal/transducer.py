"""Guarantees for each unlabelled row, and for all of them, around any estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce.conformal.calibrated import CalibratedTable
from transduce.conformal.calibrated_fit import CalibratedFit
from transduce.conformal.designs import BoundDesign, Chance, Design, bind_labels
from transduce.conformal.miscoverage import Law, Miscoverage, confidence_for, simultaneous_bounds
from transduce.conformal.scores import SCORES, Score, Scoring
from transduce.conformal.selection import Selection, read_goal, select_rows
from transduce.conformal.shares import ClassShares, shares_of_classes
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import reusing
from transduce.core.guarantee import Guarantee, ShiftWarning, TooFewLabelsWarning
from transduce.core.types import (
    AnyArray,
    Array,
    ColumnName,
    KnownTask,
    Labels,
    Mask,
    Rows,
    Seed,
)
from transduce.core.validation import Transducer, check_given
from transduce.model_selection.corrected import (
    CorrectedPredictions,
    read_predictions,
    refusal_of_classes,
)
from transduce.model_selection.estimator_kinds import own_missing_label
from transduce.model_selection.fit_and_predict import (
    FittedEstimator,
    RawPrediction,
    fit_and_predict,
    pass_on,
)
from transduce.model_selection.problem import Problem, read_problem

FEWEST_FOR_WEIGHTS = 30  # labels that a fit saw, whose weights of a blend serve another fit too


def _inner_has(name: str) -> Any:
    def check(self: ConformalTransducer) -> bool:
        estimator = getattr(self, "estimator_", self.estimator)
        getattr(estimator, name)  # an AttributeError names what is missing
        return True

    return available_if(check)


def _check_tolerance(tolerance: Any, is_class: bool) -> float:
    """Return by how much a number may be off, or raise a ValueError."""
    if is_class:
        raise ValueError("tolerance is for numbers: an answer that is a class is right or wrong.")
    return checks.check_positive("tolerance", tolerance)


@dataclass(eq=False, repr=False)
class ConformalTransducer(Transducer):
    """Any estimator's answers, with a guarantee for each row and an exact one for the whole column.

    Some labels, drawn at random, are held out to calibrate. The estimator is fitted once, with
    calibration and unlabelled rows shuffled together as its rows without a label: its errors at the
    former say how large those at the latter are.

    Parameters
    ----------
    estimator : estimator
        A transducer of this package, or any scikit-learn regressor, classifier or pipeline. It is
        cloned.
    confidence : float or list of float, default=0.9
        Probability with which the interval, or set of classes, of a row picked at random holds the
        truth. Of several levels the first is the main one; intervals or sets at the others are in
        ``answer_.further``, each guaranteed by itself, as `guarantee_at` says.
    labels : Design, optional
        How the labels came about, with arrays of shape (n,): `Chance` (the default), `Drawn`,
        `Sampled`, `Grouped`, `ByClass` or `Estimated` of `transduce.conformal`.
    calibration : "auto", int or float, default="auto"
        How many labels, or which share of them, to hold out; ``"auto"``: about ``min(l / 2, 5
        sqrt(l))`` of l, none if l is too small to guarantee anything.
    nonconformity : {"auto", "absolute", "scaled", "probability", "margin", "zero_one"}
        Numbers: distance from the answer, as it is or in standard errors. Classes: one minus the
        probability, how far the class falls behind the best other one, or whether it is not the
        answer. By default, "auto", the one that suits what the estimator answers.
    label_conditional : bool, default=False
        Whether the guarantee is to hold within every class, rare ones included.
    ties : {"inside", "random"}, default="inside"
        Whether a score that equals the threshold counts as inside, or a random order decides.
    refit : bool, default=False
        Whether values come from a second fit, with all labels; an interval is extended where its
        value would be outside.
    test_exchangeability : bool, default=True
        Whether to test if labelled and unlabelled rows differ; the verdict is part of the
        guarantee.
    tolerance : float, optional
        Numbers: an answer off by more than this counts as wrong, and the guarantee bounds how many
        are.
    classes : collection, optional
        Classes that are known besides those that have a label.
    predictions : hashable, optional
        Numbers: a column of X, by name or position, with predictions that were made elsewhere
        without the labels. The estimator corrects them, as `CorrectedPredictions` of
        `transduce.model_selection` does, and the guarantee holds as without them.
    random_state : int, RandomState or None, default=None
        Seed of which labels are held out, of the shuffle, and of the test.
    missing_label : object, default=None
        A value that stands for "no label", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_, guarantee_ : array or series of shape (n,), Answer, Guarantee
        The labels, completed by the answers; the answers at the unlabelled rows; what is guaranteed
        of them.
    miscoverage_ : Miscoverage, ClassMiscoverage, CategoryMiscoverage or None
        Distribution of the number of unlabelled rows outside; None if rows weigh differently.
    exchangeability_ : Exchangeability or None
        How labelled and unlabelled rows compare, if that was tested.
    estimated_odds_ : EstimatedOdds or None
        The odds that rows have no label, if they were estimated.
    class_shares_ : ClassShares or None
        The shares of the classes, if they are known.
    mean_ : pandas.DataFrame
        The mean of the missing labels with its standard error, or the share of every class with an
        exact interval.
    estimator_, refitted_ : estimator
        Fitted to the labels that were not held out and, with ``refit=True``, to all.
    calibration_rows_, calibration_scores_ : array of shape (c,)
        Positions of the rows whose label was held out, and how nonconforming it is (NaN without an
        answer).
    nonconformity_, classes_, n_features_in_ : str, array of shape (n_classes,), int
        The score that was used; the classes, sorted; the number of features, if the estimator says
        so.

    Notes
    -----
    If rows were labelled at random, and the other columns were recorded in the same way
    with and without a label, every order of the c + m scores is equally likely: each interval or
    set holds the truth with probability at least `confidence`, and the number of the m outside is
    ``BetaBinomial(m, c + 1 - k, k)`` with ``k = ceil((c + 1) confidence)`` (Vovk, Gammerman, Shafer
    2005; Marques 2025). Rows at which the estimator has no answer get the whole line, or all
    classes, and are not counted. `select` and `mean_` use the first fit, which treats calibration
    and unlabelled rows alike. An estimator that was tuned on these labels outside of `fit` loses
    the guarantee, and so do a seed, an estimator or a level that was chosen among several by
    looking at the answers; a search as the estimator does not.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import ConformalTransducer, TransductiveRidge
    >>> X = np.random.default_rng(0).normal(size=(160, 2))
    >>> y = np.where(np.arange(160) < 60, X[:, 0] + 0.1 * X[:, 1] ** 2, np.nan)
    >>> model = ConformalTransducer(TransductiveRidge(), random_state=0).fit(X, y)
    >>> len(model.calibration_rows_), model.outside_at_most(0.95)
    (29, 22)
    """

    estimator: Any
    _: KW_ONLY
    confidence: float | Sequence[float] = 0.9
    labels: Design | BoundDesign | None = None
    calibration: float | Literal["auto"] = "auto"
    nonconformity: Score = "auto"
    label_conditional: bool = False
    ties: Literal["inside", "random"] = "inside"
    refit: bool = False
    test_exchangeability: bool = True
    tolerance: float | None = None
    classes: Any = None
    predictions: ColumnName | None = None
    random_state: Seed = None
    missing_label: Any = None

    # ---- fit

    def fit(self, X: Rows, y: Labels) -> Self:
        """Hold labels of `y` out, fit the estimator to `X` (n, d), and predict missing labels."""
        levels, task = self._check_settings()
        check_given(self, y)
        problem = self._read_problem(X, y, task)
        if self.predictions is not None:
            # Here rows still have the numbers that the user knows.
            read_predictions(problem.X, self.predictions)
        rows = problem.rows
        random = check_random_state(self.random_state)
        design = bind_labels(self.labels, ~problem.sample.labelled)
        held_out = self._hold_out(problem, design, levels, random)
        inner = self._correcting(design.prepare_estimator(self.estimator, rows[~held_out]))
        again = self._correcting(design.prepare_estimator(self.estimator, rows))
        first, second = self._fit_estimator(problem, held_out, inner, again, random)
        shares = None
        if design.spec.chosen_by_class:
            given = design.spec.given_shares(problem.classes)
            shares = shares_of_classes(problem, held_out, first, second, given, random)
            first, second = _at_shares(problem, held_out, first, second, shares)
        table = self._calibrate(problem, design, held_out, first, random)
        self._fit = CalibratedFit(problem, held_out, first.fitted, second, table, design, shares)
        self._publish(levels)
        verdict = table.weights.grounds.verdict
        if verdict is not None and verdict.shifted:
            warnings.warn(str(verdict), ShiftWarning, stacklevel=2)
        return self

    def taught_rows(self, X: Rows, y: Labels) -> AnyArray:
        """Return where the labels are that `fit` would not hold out, if the seed is a number.

        What their labels decide before the fit leaves the guarantee as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import ConformalTransducer, TransductiveRidge
        >>> X = np.arange(5.0)[:, None]
        >>> y = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
        >>> model = ConformalTransducer(
        ...     TransductiveRidge(), confidence=0.5, calibration=2, random_state=0
        ... )
        >>> rows = [*model.taught_rows(X, y), *model.fit(X, y).calibration_rows_]
        >>> sorted(int(row) for row in rows)
        [0, 1, 2, 3]
        """
        levels, task = self._check_settings()
        problem = self._read_problem(X, y, task)
        design = bind_labels(self.labels, ~problem.sample.labelled)
        random = check_random_state(self.random_state)
        return problem.rows[~self._hold_out(problem, design, levels, random)]

    def _read_problem(self, X: Rows, y: Labels, task: KnownTask) -> Problem:
        known: Sequence[Any] = ()
        if self.classes is not None:
            known = list(self.classes)
        return read_problem(
            X,
            y,
            task=task,
            estimators=[self.estimator],
            missing_label=self.missing_label,
            known=known,
        )

    def _correcting(self, estimator: Any) -> Any:
        """Return the estimator, around it what adds the given predictions, if there are any."""
        if self.predictions is None:
            return estimator
        return CorrectedPredictions(estimator, predictions=self.predictions)

    def _hold_out(
        self,
        problem: Problem,
        design: BoundDesign,
        levels: tuple[float, ...],
        random: np.random.RandomState,
    ) -> Mask:
        """Return which of the labels (l,) calibrate."""
        by_class = bool(self.label_conditional) or design.spec.by_class
        design.spec.check(problem.classes, by_class)
        if problem.sample.labelled.all():
            return np.zeros(len(problem.rows), dtype=bool)
        return design.hold_out(problem, self.calibration, levels, by_class, random)

    def _check_settings(self) -> tuple[tuple[float, ...], KnownTask]:
        """Return the levels and the task, or raise an error that names a wrong setting."""
        is_class = check_wrapped(self.estimator)
        levels = checks.read_levels("confidence", self.confidence)
        checks.check_choice("nonconformity", self.nonconformity, SCORES)
        checks.check_choice("ties", self.ties, ("inside", "random"))
        for name in ("label_conditional", "test_exchangeability", "refit"):
            checks.check_flag(name, getattr(self, name))
        if self.label_conditional and not is_class:
            raise ValueError("label_conditional=True is for classes; for numbers leave it False.")
        if self.predictions is not None and is_class:
            raise refusal_of_classes()
        if self.tolerance is not None:
            _check_tolerance(self.tolerance, is_class)
        return levels, "classification" if is_class else "regression"

    def _fit_estimator(
        self,
        problem: Problem,
        held_out: Mask,
        inner: Any,
        again: Any,
        random: np.random.RandomState,
    ) -> tuple[RawPrediction, RawPrediction | None]:
        """Return predictions at calibration and unlabelled rows, and a second fit's at the latter.

        There is a second fit with ``refit=True``.
        """
        rows = problem.rows
        judged = np.concatenate([rows[held_out], problem.sample.unlabelled])
        drawn = random.permutation(problem.by_content(judged))
        order = np.concatenate([rows[~held_out], drawn])
        visible = np.flatnonzero(~held_out)
        second = None
        with reusing():
            first = fit_and_predict(inner, problem, visible, judged, order=order)
            if self.refit and not held_out.any():
                second = first
            elif self.refit:
                # A blend need not cross-validate again, unless the first fit saw so few labels that
                # its weights say little of the second: it could not even see an exact relation.
                after = None
                has_weights = hasattr(first.fitted.estimator, "out_of_fold_")
                if has_weights and len(visible) >= FEWEST_FOR_WEIGHTS:
                    after = first.fitted
                second = fit_to_all_labels(again, problem, after)
        pass_on(first.notes, stacklevel=4)
        if second is not None and second is not first:
            pass_on(second.notes, stacklevel=4)
        return first, second

    def _calibrate(
        self,
        problem: Problem,
        design: BoundDesign,
        held_out: Mask,
        reply: RawPrediction,
        random: np.random.RandomState,
    ) -> CalibratedTable:
        """Score all rows in the same way, part calibration from unlabelled rows, and weigh them."""
        c = int(held_out.sum())
        n = len(reply.values)
        calibration = reply.at(np.arange(c))
        sizes = problem.class_sizes
        ties = np.zeros(n)
        if self.ties == "random":
            both = np.concatenate([problem.rows[held_out], problem.sample.unlabelled])
            ties[np.argsort(problem.places[both])] = random.uniform(size=n)
        test = bool(self.test_exchangeability)
        return CalibratedTable(
            calibration=calibration,
            unlabelled=reply.at(np.arange(c, n)),
            labels=problem.numbers[held_out],
            classes=problem.classes,
            sizes=sizes or (len(problem.labels),),
            by_class=bool(self.label_conditional) or design.spec.by_class,
            tolerance=self.tolerance,
            scoring=Scoring.of(reply, problem.numbers[~held_out], len(sizes), self.nonconformity),
            ties=(ties[:c], ties[c:]),
            weights=design.weigh(problem, held_out, calibration.given, test=test, random=random),
        )

    def _missing_label(self) -> Any:
        return own_missing_label(self.missing_label, [self.estimator])

    def _publish(self, levels: tuple[float, ...]) -> None:
        """Set the attributes that a user reads."""
        confidence = levels[0]
        fit: CalibratedFit = self._fit
        problem = fit.problem
        sample = problem.sample
        table = fit.table
        self.answer_ = self._answer_at(confidence, sorted(levels[1:]))
        self._publish_estimators(fit)
        self.calibration_rows_ = problem.rows[fit.held_out]
        self.calibration_scores_ = table.scores
        self.nonconformity_ = table.scoring.nonconformity
        self.exchangeability_ = table.weights.grounds.compared
        self.estimated_odds_ = table.weights.grounds.estimated
        if problem.classes is not None:
            self.classes_ = problem.classes
        self.class_shares_ = fit.shares
        if fit.shares is None:
            self.mean_ = table.mean(confidence, fit.shown)
        else:
            shares = fit.shares.to_frame().drop(columns="labels")
            self.mean_ = shares.rename(columns={"share": "estimate"})
        self.guarantee_ = self.answer_.guarantee
        self.miscoverage_ = table.law(confidence)
        values = self.answer_.values
        answered = self.answer_.status != "unreached"
        if problem.classes is None:
            self.transduction_ = sample.complete(values)
        else:  # where there is no answer, what stood for "no label" stays
            self.transduction_ = sample.complete(values.astype(object), answered)

    def _publish_estimators(self, fit: CalibratedFit) -> None:
        """Set the attributes that come from the estimators that were fitted."""
        self.estimator_ = fit.first.estimator
        self.fitted_rows_ = fit.answering.order
        if self.refit:
            self.refitted_ = fit.answering.estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if fit.first.pairwise:
            self.n_features_in_ = fit.problem.n_rows

    def _answer_at(self, confidence: float, further: Sequence[float] = ()) -> Answer:
        answer = self._fit.answer(confidence, further)
        warning = self._fit.table.shortfall(confidence)
        if warning and len(answer):
            warnings.warn(warning, TooFewLabelsWarning, stacklevel=4)
        return answer

    @property
    def _level(self) -> float:
        """The main level."""
        return checks.read_levels("confidence", self.confidence)[0]

    # ---- guarantees

    @property
    def calibrated(self) -> CalibratedFit:
        """What was fitted and calibrated: all that answers and guarantees come from."""
        check_is_fitted(self)
        fit: CalibratedFit = self._fit
        return fit

    def guarantee_at(
        self,
        confidence: float | None = None,
        *,
        certainty: float = 0.95,
        tolerance: float | None = None,
    ) -> Guarantee:
        """Return what is guaranteed at another level or tolerance.

        Parameters
        ----------
        confidence : float, optional
            The level, by default the estimator's.
        certainty : float, default=0.95
            Probability with which the bounds on the numbers of rows outside and of wrong
            predictions hold.
        tolerance : float, optional
            Numbers: a prediction is wrong if it is off by more than this; by default the
            estimator's.

        Returns
        -------
        Guarantee
        """
        check_is_fitted(self)
        fit: CalibratedFit = self._fit
        if tolerance is not None:
            tolerance = _check_tolerance(tolerance, fit.problem.classes is not None)
        if confidence is None:
            confidence = self._level
        level = checks.check_share("confidence", confidence)
        return fit.guarantee_at(level, checks.check_share("certainty", certainty), tolerance)

    def answer_at(self, confidence: float) -> Answer:
        """Return the answer at another level, from the same fit.

        The guarantee holds for a level chosen without looking at the answers; for others see
        `outside_at_all_levels`.

        Parameters
        ----------
        confidence : float
            The level, between 0 and 1.

        Returns
        -------
        Answer
        """
        check_is_fitted(self)
        return self._answer_at(checks.check_share("confidence", confidence))

    def outside_at_most(self, certainty: float = 0.95) -> int:
        """Bound the number of unlabelled rows outside their intervals or sets.

        Parameters
        ----------
        certainty : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        int
        """
        return self._law().quantile(certainty)

    def wrong_at_most(self, certainty: float = 0.95) -> int:
        """Bound the number of wrong predictions.

        Numbers are wrong if they are off by more than `tolerance`.

        Parameters
        ----------
        certainty : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        int
        """
        bound = self.guarantee_at(certainty=certainty).wrong
        if bound is None:
            raise ValueError(
                "There is no bound on wrong answers: numbers need a tolerance, and labels must be "
                "held out."
            )
        return bound.at_most

    def confidence_for(self, share: float, certainty: float = 0.95) -> float:
        """Return the smallest level at which a share of the unlabelled rows is inside.

        If no level is enough, a ValueError says how many calibration labels would be.

        Parameters
        ----------
        share : float
            Share of the unlabelled rows that is to be inside.
        certainty : float, default=0.95
            Probability with which it is.

        Returns
        -------
        float
        """
        law = self._whole_column("confidence_for")
        return confidence_for(
            share, certainty, n_unlabelled=law.n_unlabelled, n_calibration=law.n_calibration
        )

    def outside_at_all_levels(
        self, certainty: float = 0.95, *, random_state: Seed = 0
    ) -> pd.DataFrame:
        """Return bounds on the number of rows outside that hold at all levels at once.

        With these the level may be chosen after looking at the intervals.

        Parameters
        ----------
        certainty : float, default=0.95
            Probability with which all bounds hold.
        random_state : int, default=0
            Seed of the simulation that finds them.

        Returns
        -------
        pandas.DataFrame
            ``confidence`` and ``outside_at_most``, one line for each calibration label.
        """
        law = self._whole_column("outside_at_all_levels")
        c = law.n_calibration
        bounds = simultaneous_bounds(
            certainty,
            n_unlabelled=law.n_unlabelled,
            n_calibration=c,
            random_state=random_state,
        )
        levels = np.arange(1, c + 1) / (c + 1)
        return pd.DataFrame({"confidence": levels, "outside_at_most": bounds})

    def _law(self) -> Law:
        check_is_fitted(self)
        if self.miscoverage_ is None:
            raise ValueError(
                "Rows differ in their chance of a label: the guarantee is for each row alone."
            )
        return self.miscoverage_

    def _whole_column(self, name: str) -> Miscoverage:
        law = self._law()
        if not isinstance(law, Miscoverage):
            raise ValueError(
                f"{name} needs one threshold for all rows: fit with label_conditional=False, and "
                "without within."
            )
        return law

    def widths_at(self, factors: Sequence[float] = (1.0, 1.5, 2.0)) -> pd.DataFrame:
        """Return how wide intervals get, or how large sets, if labels depend on the value itself.

        Parameters
        ----------
        factors : sequence of float, default=(1.0, 1.5, 2.0)
            Factors by which the odds of being labelled may depend on the value, either way.

        Returns
        -------
        pandas.DataFrame
            One line a factor: the median *width* of intervals or mean *size* of sets, and at how
            many rows nothing is ruled out.
        """
        check_is_fitted(self)
        sensible = [Chance(sensitivity=factor).sensitivity for factor in factors]
        fit: CalibratedFit = self._fit
        widths = fit.sensitivity_at(self._level, sensible)
        assert widths is not None  # since factors are given
        return widths

    def select(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        tolerance: float | None = None,
        label: Any = None,
        correct: bool = False,
        false_discovery: float = 0.1,
        ranges: npt.ArrayLike | None = None,
    ) -> Selection:
        """Pick unlabelled rows whose label is a wanted one.

        The false discovery rate among the rows picked is bounded.

        Parameters
        ----------
        above, below : float, optional
            Numbers: the label is to be larger or smaller than this; give both for a range.
        tolerance : float, optional
            Numbers: the answer (of the first fit) is to be off by no more than this.
        label : object, optional
            Classes: the class it is to be.
        correct : bool, default=False
            Classes: the answer (of the first fit) is to be right, whichever class it is.
        false_discovery : float, default=0.1
            Bound on the false discovery rate: the expected share of wrong ones among the rows
            picked.
        ranges : array-like of shape (n, 2), optional
            Numbers: the least and the greatest number that each label of the fit may be, where
            some are limits such as "<0.5". Such a label is a wanted one only if all that it may
            be is.

        Returns
        -------
        Selection
            The rows, and the guarantee; with c calibration labels ``m / (false_discovery (c + 1))``
            rows or more, or none.
        """
        check_is_fitted(self)
        table = self._fit.table
        known = None
        if ranges is not None:
            known = np.asarray(ranges, dtype=float)[self.calibration_rows_]
        goal = read_goal(
            table,
            above=above,
            below=below,
            tolerance=tolerance,
            label=label,
            correct=correct,
            ranges=known,
        )
        return select_rows(table, self.answer_, goal, false_discovery, known)

    # ---- prediction

    @_inner_has("predict")
    def predict(self, X: Rows) -> AnyArray:
        """Return the estimator's predictions at rows (m, d), without a guarantee.

        They are not transduced again.
        """
        check_is_fitted(self)
        fitted = self._fit.answering
        if self._fit.shares is not None:
            reply = self._fit.shares.applied(fitted.predict(fitted.arrange_rows(X)))
            return self.classes_[reply.values]
        values = fitted.estimator.predict(fitted.arrange_rows(X))
        if not fitted.by_number:
            return values
        return self.classes_[np.asarray(values).astype(int)]

    @_inner_has("predict_proba")
    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class; 0 for a class without visible labels.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.

        Returns
        -------
        array of shape (m, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        probabilities: Any = self._fit.answering.predict_proba(X)
        if self._fit.shares is None:
            return probabilities
        return self._fit.shares.reweigh(probabilities)

    @_inner_has("decision_function")
    def decision_function(self, X: Rows) -> Array:
        """Return the estimator's decision values.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.

        Returns
        -------
        array of shape (m,) for two classes, else (m, n_classes)
        """
        check_is_fitted(self)
        fitted = self._fit.answering
        scores = np.asarray(fitted.estimator.decision_function(fitted.arrange_rows(X)))
        wide = fitted.at_all_classes(scores, fitted.codes(fitted.estimator.classes_), absent=None)
        if len(self.classes_) == 2 or wide is None:
            return scores
        return wide

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if not isinstance(self.estimator, type) and hasattr(self.estimator, "get_params"):
            inner = get_tags(self.estimator)
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags"):
                setattr(tags, name, deepcopy(getattr(inner, name)))
            if tags.classifier_tags is not None:
                tags.classifier_tags.multi_label = False
        return tags


def fit_to_all_labels(
    estimator: Any, problem: Problem, after: FittedEstimator | None
) -> RawPrediction:
    """Return predictions at the unlabelled rows by a fit to all labels, perhaps after another."""
    unlabelled = problem.sample.unlabelled
    all_labels = np.arange(len(problem.rows))
    order = np.concatenate([problem.rows, unlabelled])
    return fit_and_predict(estimator, problem, all_labels, unlabelled, order=order, after=after)


def check_wrapped(estimator: Any) -> bool:
    """Return whether the estimator is a classifier, or raise a TypeError if it is neither."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator is the class {name}: pass an instance, {name}(...).")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            "estimator must be a regressor or a classifier with fit and predict; got "
            f"{estimator!r}."
        )
    if not is_classifier(estimator) and not is_regressor(estimator):
        name = type(estimator).__name__
        if "task" in estimator.get_params(deep=False):
            raise TypeError(
                f"{name} does not say whether it answers numbers or classes: set its task to "
                "'regression' or 'classification'."
            )
        raise TypeError(
            f"{name} is neither a regressor nor a classifier: it has no answer to calibrate."
        )
    return bool(is_classifier(estimator))


def _at_shares(
    problem: Problem,
    held_out: Mask,
    first: RawPrediction,
    second: RawPrediction | None,
    shares: ClassShares,
) -> tuple[RawPrediction, RawPrediction]:
    """Return the first fit's predictions as they are scored, and those that are shown."""
    # Estimated shares depend on which rows are unlabelled, so that nothing is scored by them; given
    # ones do not.
    last = second
    if last is None:
        last = first.at(np.arange(int(held_out.sum()), len(first.values)))
    if shares.given:
        visible = np.bincount(problem.codes[~held_out], minlength=len(shares.classes))
        of_visible = replace(shares, labels=visible / visible.sum(), power=1.0, unit=None)
        first = of_visible.applied(first)
    return first, shares.applied(last)
