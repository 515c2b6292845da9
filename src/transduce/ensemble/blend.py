"""A blend: the mean of several methods' predictions, weighted by how they do out of fold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import ClassifierTags, RegressorTags, get_tags
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core import checks, validation
from transduce.core.checks import check_random_state
from transduce.core.types import AnyArray, Array, ColumnName, Labels, Rows, Seed, Task
from transduce.core.validation import Transducer
from transduce.core.words import TASKS
from transduce.ensemble.blend_fit import Asking, BlendFit, Earlier
from transduce.model_selection.corrected import less_predictions, read_predictions
from transduce.model_selection.estimator_kinds import name_members, own_missing_label
from transduce.model_selection.folds import Folds
from transduce.model_selection.methods import (
    Case,
    default_members,
    leave_out_slow,
    planned_costs,
)
from transduce.model_selection.problem import Problem, read_problem, read_table

TASKS_OF_KINDS = {"classifier": "classification", "regressor": "regression"}


@dataclass(eq=False, repr=False)
class TransductiveBlend(Transducer, _BaseComposition):
    """Weighted mean of several methods' predictions, for numbers or classes.

    Parameters
    ----------
    estimators : None, dict or list, default=None
        Members, by name or not: transducers, and any regressors or classifiers. None: those of our
        methods that suit the task, the number of labels and the size of the table, as
        docs/model_selection.md lists them.
    weights : {"shrunk", "equal"} or array of shape (n_members,), default="shrunk"
        ``"shrunk"``: weights that minimise the out-of-fold error, pulled towards those in inverse
        proportion to the members' errors, more strongly with fewer labels. An array is scaled to
        sum 1.
    task : {"auto", "regression", "classification"}, default="auto"
        What labels are. ``"auto"``: what the given members are for, or else what the labels are:
        text, booleans and categories are classes, and so are numbers that are all 0 or 1, or all -1
        or 1.
    cv : "auto", int, splitter or iterable, default="auto"
        Out-of-fold predictions for the weights. ``"auto"``: from the one fit of each member where
        that is possible (leave-one-out in closed form, the trees of our forests that did not draw a
        row, another cut of the same graph), else from five folds. Otherwise every member is
        refitted in these folds, as in `cross_val_transduce`.
    standardize : bool, default=True
        Whether the default members that depend on the scale of features give each standard
        deviation 1 first. Members that are given do as they are set.
    n_jobs : int or None, default=None
        Members and folds at the same time, in joblib's way.
    budget_seconds : float or None, default=None
        Seconds that the default members may take on one core. What each takes is planned from the
        size of the table, not measured: the slowest are left out until the others fit, one stays at
        least, and ``answer_.diagnostics["left out"]`` says who was left out. Members that are given
        all take part.
    device : str or None, default=None
        Where those default members compute that can: transductive ridge, the Gaussian process and
        the spectral graph transducer, from 500 rows on. As `transduce.device.to_device` takes it;
        predictions are numpy arrays.
    predictions : hashable, optional
        Numbers: a column of X, by name or position, with predictions that were made elsewhere
        without the labels. Members are fitted to the labels minus the predictions, which are added
        to the blend; they stay a feature.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the default members.
    missing_label : object, default=None
        A value that stands for "no label", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, classes_
        Labels completed (n,); the classes, sorted, only for classes.
    answer_ : Answer
        Values; for classes also probabilities and confidence. Standard errors: for numbers the
        out-of-fold error of the blend, larger where members disagree; for classes how far members
        disagree about the probability.
    weights_, estimators_ : pandas.Series, dict
        Weight of each member, and the members, fitted; by name.
    out_of_fold_ : pandas.DataFrame
        Out-of-fold predictions of the members and the blend, at the labelled rows; for classes the
        share of each. Only if weights were estimated.
    task_ : {"regression", "classification"}
        How labels were read.

    Notes
    -----
    How weights, shares and probabilities come about is in docs/model_selection.md. A member that
    fails is left out, with a warning; warnings of members are in ``answer_.diagnostics``. `predict`
    is the same mean of the members' `predict`, of those that have it. At an unlabelled row it may
    differ from ``transduction_``, because the members' own may.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce import TransductiveBlend
    >>> low, high = (DummyRegressor(strategy="constant", constant=value) for value in (0.0, 4.0))
    >>> model = TransductiveBlend({"low": low, "high": high}, weights=[3, 1])
    >>> model.fit([[0.0]] * 4, [0.0, 1.0, 2.0, None]).transduction_
    array([0., 1., 2., 1.])
    """

    estimators: Any = None
    _: KW_ONLY
    weights: npt.ArrayLike | Literal["shrunk", "equal"] = "shrunk"
    task: Task = "auto"
    cv: Folds | Literal["auto"] = "auto"
    standardize: bool = True
    n_jobs: int | None = None
    budget_seconds: float | None = None
    device: str | None = None
    predictions: ColumnName | None = None
    random_state: Seed = None
    missing_label: Any = None

    # ------------------------------------------------------------------------------------ fitting

    def fit(self, X: Rows, y: Labels) -> Self:
        """Fit the members, weigh them, and predict the rows whose label is missing.

        Shapes: X (n, d), y (n,).
        """
        members, problem, predictions = self._read(X, y)
        random = check_random_state(self.random_state)
        left_out: dict[str, str] = {}
        if self.estimators is None:
            seed = int(random.randint(np.iinfo(np.int32).max))
            case = problem.case(standardize=self.standardize, random_state=seed, device=self.device)
            members, left_out = self._members_in_budget(case)
        earlier = self.__dict__.pop("_earlier", None)
        fitted = Asking(members, problem, self, earlier).fit(random)
        self._fit = fitted
        self.estimators_ = {name: member.estimator for name, member in fitted.members.items()}
        self.weights_ = pd.Series(fitted.weights, index=list(fitted.replies), name="weight")
        if fitted.out_of_fold is not None:
            self.out_of_fold_ = fitted.out_of_fold
        self.answer_, self.transduction_ = fitted.answer(left_out)
        if predictions is not None:
            self._add(predictions, fitted)
        return self

    def _read_predictions(self, X: Rows) -> Array | None:
        """Return what was predicted elsewhere at each row (n,); None if nothing was."""
        if self.predictions is None:
            return None
        return read_predictions(read_table(X), self.predictions)

    def _add(self, predictions: Array, fitted: BlendFit) -> None:
        """Add the predictions (n,) to all that was fitted to the labels minus them."""
        problem = fitted.problem
        self.answer_ = self.answer_.shifted(predictions[self.answer_.rows])
        reached = np.asarray(self.answer_.status != "unreached")
        self.transduction_ = problem.sample.complete(self.answer_.values, reached)
        if fitted.out_of_fold is not None and fitted.hidden is not None:
            rows = problem.rows[np.unique(fitted.hidden.hidden)]
            self.out_of_fold_ = fitted.out_of_fold.add(predictions[rows], axis=0)

    def _members_in_budget(self, case: Case) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the default members that fit the budget as planned, and why others do not."""
        members, left_out = default_members(case)
        if self.budget_seconds is None:
            return members, left_out
        slow = leave_out_slow(planned_costs(members, case), float(self.budget_seconds))
        kept = {name: member for name, member in members.items() if name not in slow}
        return kept, left_out | slow

    def continue_from(self, earlier: Any, places: AnyArray) -> None:
        """Let the next fit weigh its members by what an earlier fit of the same rows has answered.

        The earlier fit has the same settings and saw fewer labels. At those its out-of-fold answers
        count, at the others its answers; so no member is asked in folds again. `places` (n,) say
        where each of its rows is among those of the next.
        """
        if isinstance(earlier, TransductiveBlend):  # where one class was visible it is none
            self._earlier = Earlier(earlier._fit, places)

    def _read(self, X: Rows, y: Labels) -> tuple[dict[str, Any], Problem, Array | None]:
        """Check the settings; return given members, table and labels, and given predictions.

        Default members get finite numbers. Labels are those less the predictions.
        """
        validation.check_given(self, y)
        checks.check_choice("task", self.task, TASKS)
        checks.check_flag("standardize", self.standardize)
        checks.check_jobs(self.n_jobs)
        if self.budget_seconds is not None:
            checks.check_positive("budget_seconds", self.budget_seconds)
        if isinstance(self.weights, str):
            checks.check_choice("weights (or an array)", self.weights, ("shrunk", "equal"))
        members: dict[str, Any] = {}
        if self.estimators is not None:
            members = name_members("estimators", self.estimators)
        kinds = {bool(get_tags(member).input_tags.pairwise) for member in members.values()}
        if len(kinds) > 1:
            raise ValueError(
                "Some members take a precomputed kernel, others features: give members of one kind."
            )
        predictions = self._read_predictions(X)
        rows = self._rows(X, reset=True)
        problem = read_problem(
            X,
            y,
            estimators=list(members.values()),
            task=self.task,
            missing_label=self.missing_label,
        )
        problem = replace(problem, X=rows)
        self.task_ = problem.task
        if problem.classes is not None:
            self.classes_ = problem.classes
        if predictions is not None:
            problem = less_predictions(problem, predictions)
        return members, problem, predictions

    def _rows(self, X: Rows, *, reset: bool) -> Any:
        """Return features as the default members need them, or as the given ones may take them."""
        if self.estimators is None:
            return validation.read_rows(self, X, reset=reset)
        return validate_data(self, read_table(X), reset=reset, skip_check_array=True)

    def _missing_label(self) -> Any:
        members = [member for _, member in self._named()]
        return own_missing_label(self.missing_label, members)

    # --------------------------------------------------------------------------------- prediction

    def _extend(self, X: Rows) -> tuple[Array, Array]:
        """Return the blend at rows, shape (m,) or (m, n_classes), and the members' spread."""
        check_is_fitted(self)
        return self._fit.extend(self._rows(X, reset=False))

    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return the blend of the members' predictions at rows, without transducing again.

        With `return_std` standard errors too, of numbers whose weights were estimated; NaN where
        they are not known. Shapes: X (m, d), predictions and standard errors (m,).
        """
        check_is_fitted(self)
        predictions = self._read_predictions(X)
        mean, spread = self._extend(X)
        if self.answer_.classes is not None:
            if return_std:
                raise ValueError(
                    "return_std is for numbers; predict_proba says how sure a class is."
                )
            return self.classes_[mean.argmax(axis=1)]
        values = mean
        if predictions is not None:
            values = mean + predictions
        if not return_std:
            return values
        errors = self._fit.standard_errors(mean, spread)
        if errors is None:
            errors = np.full(len(mean), np.nan)
        return values, errors

    @available_if(lambda self: self._kind() != "regression")
    def predict_proba(self, X: Rows) -> Array:
        """Return the share of every class at rows (m, d), shape (m, n_classes)."""
        return self._extend(X)[0]

    # --------------------------------------------------------------------- scikit-learn's contract

    def _kind(self) -> str | None:
        """Return the task as far as it is known: of the last fit, or of the fit to come."""
        if hasattr(self, "task_"):
            return self.task_
        if self.task != "auto":
            return self.task
        for _, member in self._named():
            kind = get_tags(member).estimator_type
            if kind in TASKS_OF_KINDS:
                return TASKS_OF_KINDS[kind]
        return None

    def _named(self) -> list[Any]:
        """Return the members by name if they were given so, in a list or a dict."""
        members = self._pairs()
        if isinstance(self.estimators, dict):
            members = list(self.estimators.items())
        return [pair for pair in members if hasattr(pair[1], "get_params")]

    def _pairs(self) -> list[Any]:
        """Return the members if they were given as a list of names and estimators.

        Then settings can be nested.
        """
        members = self.estimators
        if not isinstance(members, list):
            return []
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in members):
            return []
        return members

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, and with `deep` those of members in a list of (name, estimator)."""
        if deep and self._pairs():
            return self._get_params("estimators")
        return super().get_params(deep=False)

    def set_params(self, **params: Any) -> Any:
        """Set settings, ``name__setting`` for those of members in a list of (name, estimator)."""
        if self._pairs():
            return self._set_params("estimators", **params)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [get_tags(member).input_tags for _, member in self._named()]
        tags.input_tags.pairwise = bool(members) and all(member.pairwise for member in members)
        of_default_members = self.estimators is None
        tags.input_tags.sparse = of_default_members or any(member.sparse for member in members)
        kind = self._kind()
        if kind == "classification":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        elif kind == "regression":
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        tags.target_tags.required = kind is not None
        return tags
