"""A blend: the weighted mean of several methods' answers, the weights from out-of-fold answers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state, get_tags
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core import checks, validation
from transduce.core.estimator import Transducer
from transduce.core.sample import guess_task
from transduce.core.types import AnyArray, Array
from transduce.core.words import TASKS
from transduce.ensemble.blend_fit import BlendSettings, Earlier, fit_blend
from transduce.model_selection.ask import Problem, name_members, own_missing_label, read_problem, read_table
from transduce.model_selection.methods import default_members

KINDS = {"classifier": "classification", "regressor": "regression"}


@dataclass(eq=False, repr=False)
class TransductiveBlend(Transducer, _BaseComposition):
    """Weighted mean of several methods' answers, for numbers or classes.

    Parameters
    ----------
    estimators : None, dict or list, default=None
        Members, by name or not: transducers, and any regressors or classifiers. None: transductive ridge, a Gaussian
        process, ridge regression and a random forest for numbers; transductive ridge, the spectral graph transducer,
        logistic regression, a random forest and extremely randomised trees for classes; from 200 labels on boosted
        trees too, and for numbers extremely randomised trees instead of the forest. Those that are too slow for the
        table are left out (see `transduce.model_selection.methods.default_members`).
    weights : {"shrunk", "equal"} or array of shape (n_members,), default="shrunk"
        ``"shrunk"``: weights that minimise the out-of-fold error, pulled towards equal weights, more strongly with
        fewer labels. An array is scaled to sum 1.
    task : {"auto", "regression", "classification"}, default="auto"
        What labels are. ``"auto"``: what the given members are for, or else what the labels are: text, booleans and
        categories are classes, and so are numbers that are all 0 or 1, or all -1 or 1.
    cv : "auto", int, splitter or iterable, default="auto"
        Out-of-fold answers for the weights. ``"auto"``: from the one fit of each member where that is possible
        (leave-one-out in closed form, the trees of our forests that did not draw a row, another cut of the same
        graph), else from five folds. Otherwise every member is refitted in these folds, as in `cross_val_transduce`.
    standardize : bool, default=True
        Whether the default members that depend on the scale of features give each standard deviation 1 first. Members
        that are given do as they are set.
    n_jobs : int or None, default=None
        Members and folds at the same time, in joblib's way.
    budget_seconds : float or None, default=None
        Seconds in which `fit` has to be done. On long tables members are timed on 2,000 rows first, and asked in the
        order of what they are likely to take; one that would take too long is not begun, and one that does is stopped.
        ``answer_.diagnostics["left out"]`` says so. One member answers however little time there is; weights are equal
        if there was none for them. Who takes part then depends on the machine.
    device : str or None, default=None
        Where those default members compute that can: transductive ridge, the Gaussian process and the spectral graph
        transducer, from 500 rows on. As `transduce.device.to_device` takes it, for example ``"cuda"``; answers are
        numpy arrays.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the default members.
    missing_label : object, default=None
        A value that stands for "no label", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed.
    answer_ : Answer
        Values; for classes also probabilities and confidence. Standard errors: for numbers the out-of-fold error of the
        blend, larger where members disagree; for classes how far members disagree about the probability.
    weights_ : pandas.Series
        Weight of each member, by name.
    estimators_ : dict
        Members, fitted, by name.
    out_of_fold_ : pandas.DataFrame
        Out-of-fold answers of the members and the blend, at the labelled rows; for classes the share of each. Only if
        weights were estimated.
    task_ : {"regression", "classification"}
        How labels were read.
    classes_ : array of shape (n_classes,)
        Classes, sorted; only for classes.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    choose_method : Compares methods instead of blending them.
    cross_val_transduce : How well a method, or a blend, does.

    Notes
    -----
    With E the out-of-fold errors of k members at l labels (of class shares: l times n_classes), the weights minimise
    ``|E w|^2 + s k^2 (k + 1) / (k - 1) |w - 1/k|^2`` over ``w >= 0, sum(w) = 1``, s being the squared error per label
    of the equal blend. The second part is a normal prior with the moments of the uniform distribution over all such
    weights: it counts as much as ``k^2 (k + 1) / (k - 1)`` labels, 27 for four members, whatever l. Below five labels
    weights are equal. See `transduce.ensemble.weights.shrunk_weights`.

    A member's share of a class is its probability; else the softmax of its scores, or of 1 for its answer and 0 for
    other classes, times a factor that minimises the out-of-fold log-loss. The blend's probabilities are the mean shares
    to a power that fits the out-of-fold labels (`transduce.core.scaling.fit_power`); answers stay the same. Where a
    member has no answer the others' weights are scaled up. A member that fails is left out, with a warning. Warnings of
    members are in ``answer_.diagnostics``.

    `predict` is the same mean of the members' `predict` at new rows, of those that have it. At an unlabelled row it may
    differ from ``transduction_``, because the members' own `predict` may.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from transduce import TransductiveBlend
    >>> members = {"low": DummyRegressor(strategy="constant", constant=0.0),
    ...            "high": DummyRegressor(strategy="constant", constant=4.0)}
    >>> model = TransductiveBlend(members, weights=[3, 1]).fit(np.zeros((4, 1)), [0.0, 1.0, 2.0, None])
    >>> model.transduction_
    array([0., 1., 2., 1.])
    """

    estimators: Any = None
    _: KW_ONLY
    weights: Any = "shrunk"
    task: str = "auto"
    cv: Any = "auto"
    standardize: bool = True
    n_jobs: int | None = None
    budget_seconds: float | None = None
    device: str | None = None
    random_state: Any = None
    missing_label: Any = None

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the members, weigh them, and answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows: numbers for the default members, whatever they take for members given.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted.

        Returns
        -------
        TransductiveBlend
            The fitted estimator.
        """
        problem = self._read(X, y)
        random = check_random_state(self.random_state)
        left_out: dict[str, str] = {}
        if self.estimators is None:
            seed = int(random.randint(np.iinfo(np.int32).max))
            case = problem.case(standardize=self.standardize, random_state=seed, device=self.device)
            members, left_out = default_members(case)
        else:
            members = name_members("estimators", self.estimators)
        settings = BlendSettings(self.weights, self.cv, self.n_jobs, self.budget_seconds)
        self._fit = fitted = fit_blend(
            members, problem, settings, random, self.__dict__.pop("_earlier", None)
        )
        self.estimators_ = {name: member.estimator for name, member in fitted.members.items()}
        self.weights_ = pd.Series(fitted.weights, index=list(fitted.replies), name="weight")
        if fitted.out_of_fold is not None:
            self.out_of_fold_ = fitted.out_of_fold
        self.answer_, self.transduction_ = fitted.answer(left_out)
        return self

    def continue_from(self, earlier: Any, places: AnyArray) -> None:
        """Let the next fit weigh its members by what an earlier fit, to fewer labels of the same rows, has answered.

        Parameters
        ----------
        earlier : TransductiveBlend
            Fitted, with the same settings. At labels that it saw its out-of-fold answers count, at the others its
            answers; so no member is asked in folds again.
        places : int array of shape (n,)
            Where each row of the earlier fit is among those of the next.
        """
        if isinstance(earlier, TransductiveBlend):  # where one class was visible it is none
            self._earlier = Earlier(earlier._fit, places)

    def _read(self, X: Any, y: Any) -> Problem:
        """Check the settings, and return table and labels: finite numbers for the default members."""
        self._forget()
        checks.check_choice("task", self.task, TASKS)
        checks.check_flag("standardize", self.standardize)
        checks.check_jobs(self.n_jobs)
        if self.budget_seconds is not None:
            checks.check_positive("budget_seconds", self.budget_seconds)
        if isinstance(self.weights, str):
            checks.check_choice("weights (or an array)", self.weights, ("shrunk", "equal"))
        if self.estimators is None:
            sample = validation.read_sample(self, X, y)
            problem = Problem.of(sample.X, sample, guess_task(sample) if self.task == "auto" else self.task)
        else:
            given = name_members("estimators", self.estimators).values()
            validation.check_given(self, y)
            validate_data(self, read_table(X), skip_check_array=True)
            if len({bool(get_tags(member).input_tags.pairwise) for member in given}) > 1:
                raise ValueError(
                    "Some members take a precomputed kernel, others features: give members of one kind."
                )
            members, missing = list(given), self.missing_label
            problem = read_problem(X, y, task=self.task, estimators=members, missing_label=missing)
        self.task_ = problem.task
        if problem.classes is not None:
            self.classes_ = problem.classes
        return problem

    def _missing_label(self) -> Any:
        return own_missing_label(self.missing_label, [member for _, member in self._named()])

    # ---------------------------------------------------------------------------------------------- prediction

    def _extend(self, X: Any) -> tuple[Array, Array]:
        """Return the blend of the members' predictions at rows, shape (m,) or (m, n_classes), and their spread."""
        check_is_fitted(self)
        if self.estimators is None:
            X = validation.read_rows(self, X, reset=False)
        else:
            X = read_table(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        return self._fit.extend(X)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the blend of the members' predictions at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.
        return_std : bool, default=False
            Whether to return standard errors too: of numbers whose weights were estimated.

        Returns
        -------
        values : array of shape (m,)
            Numbers or classes. At an unlabelled row this may differ from ``transduction_``.
        standard_errors : array of shape (m,)
            Only if `return_std`; NaN where they are not known.
        """
        mean, spread = self._extend(X)
        if self.answer_.classes is not None:
            if return_std:
                raise ValueError("return_std is for numbers; predict_proba says how sure a class is.")
            return self.classes_[mean.argmax(axis=1)]
        if not return_std:
            return mean
        errors = self._fit.standard_errors(mean, spread)
        return mean, np.full(len(mean), np.nan) if errors is None else errors

    @available_if(lambda self: self._kind() != "regression")
    def predict_proba(self, X: Any) -> Array:
        """Return the share of every class at rows (m, d), shape (m, n_classes)."""
        return self._extend(X)[0]

    # --------------------------------------------------------------------------------- scikit-learn's contract

    def _kind(self) -> str | None:
        """Return the task as far as it is known: of the last fit, or of the fit to come."""
        if hasattr(self, "task_"):
            return self.task_
        if self.task != "auto":
            return self.task if self.task in TASKS else None
        kinds = (get_tags(member).estimator_type for _, member in self._named())
        return next((KINDS[kind] for kind in kinds if kind in KINDS), None)

    def _named(self) -> list[Any]:
        """Return the members by name if they were given so, in a list or a dict."""
        members = list(self.estimators.items()) if isinstance(self.estimators, dict) else self._pairs()
        return [pair for pair in members if hasattr(pair[1], "get_params")]

    def _pairs(self) -> list[Any]:
        """Return the members if they were given as a list of names and estimators, so that settings can be nested."""
        members = self.estimators
        if not isinstance(members, list):
            return []
        return members if all(isinstance(pair, tuple) and len(pair) == 2 for pair in members) else []

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, and with `deep` those of members given as a list of (name, estimator)."""
        if deep and self._pairs():
            return self._get_params("estimators", deep=True)
        return super().get_params(deep=False)

    def set_params(self, **params: Any) -> Any:
        """Set settings, ``name__setting`` for those of members given as a list of (name, estimator)."""
        if self._pairs():
            return self._set_params("estimators", **params)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [get_tags(member).input_tags for _, member in self._named()]
        tags.input_tags.pairwise = bool(members) and all(member.pairwise for member in members)
        tags.input_tags.sparse = any(member.sparse for member in members)
        kind = self._kind()
        if kind == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif kind == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        if kind is not None:
            tags.target_tags.required = True
        return tags
