"""A blend: the weighted mean of several methods' answers, the weights from out-of-fold answers."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from transduce.core import validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Mask
from transduce.ensemble.shares import stack
from transduce.ensemble.shell import BlendShell, calibrate
from transduce.model_selection.hidden_labels import Problem, Reply, is_transducer, predict, read_table

_GUARANTEE = Guarantee(
    "none",
    "These values come with no probability attached.",
    "They are a weighted mean of several methods, weighted by how well each did at hidden labels.",
)


class TransductiveBlend(BlendShell):
    """Weighted mean of several methods' answers, for numbers or classes.

    Parameters
    ----------
    estimators : None, dict or list, default=None
        Members, by name or not: transducers, and any regressors or classifiers. None: transductive ridge, a Gaussian
        process, ridge regression and a random forest for numbers; transductive ridge, logistic regression, a
        random forest and extremely randomised trees for classes; less those too slow for the table (see
        `transduce.model_selection.catalogue.default_members`).
    weights : {"shrunk", "equal"} or array of shape (n_members,), default="shrunk"
        ``"shrunk"``: weights that make the out-of-fold error smallest, pulled towards equal ones, the more so the fewer
        the labels. An array is scaled to sum 1.
    task : {"auto", "regression", "classification"}, default="auto"
        What labels are. ``"auto"`` asks the members given, or else the labels: text and booleans are classes, and so
        are whole numbers of 2 to 10 different values of which some occur twice.
    cv : int, splitter or iterable, default=5
        Folds for the weights, as in `cross_val_transduce`.
    n_jobs : int or None, default=None
        Members and folds at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the default members.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

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
    other classes, times a factor that makes the out-of-fold log-loss smallest. Where a member has no answer the others'
    weights are scaled up. A member that fails is left out, with a warning. Warnings of members are in
    ``answer_.diagnostics``.

    `predict` is the same mean of the members' `predict` at new rows, of those that have it; at an unlabelled row it may
    differ from ``transduction_``, as theirs may.

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
        self._forget()
        problem = self._read(X, y)
        self._labelled = problem.rows
        random = check_random_state(self.random_state)
        members, left_out = self._members(problem, random)
        given = self._given_weights(members)
        replies = self._ask(members, problem)
        folds = self._folds(problem, replies, random)
        hidden = self._ask_hidden(members, replies, problem, folds)
        names = [name for name in members if name in replies]
        self._calibrations = [calibrate(problem, folds, replies[name], hidden.get(name)) for name in names]
        self.estimators_ = {name: replies[name].fitted for name in names}
        self._weigh(problem, folds, names, given, hidden)
        self._answer(problem, [replies[name] for name in names], left_out)
        return self

    # ------------------------------------------------------------------------------------------------- answers

    def _answer(self, problem: Problem, replies: list[Reply], left_out: dict[str, str]) -> None:
        sample = problem.sample
        self._prior = problem.prior(np.arange(len(problem.labels)))
        answers, given = stack(replies, self._calibrations, problem.classes)
        mean, spread, reached = self._mix(answers, given)
        common: dict[str, Any] = {
            "rows": sample.unlabelled,
            "guarantee": _GUARANTEE,
            "index": None if sample.index is None else sample.index[sample.unlabelled],
            "diagnostics": self._diagnostics(replies, left_out),
        }
        if problem.classes is None:
            self.answer_ = Answer(
                values=mean,
                status=np.where(reached, "answered", "unreached"),
                standard_errors=self._standard_errors(spread),
                **common,
            )
            self.transduction_ = sample.complete(np.where(reached, mean, np.nan))
            return
        ranked = np.sort(mean, axis=1)
        confidence = ranked[:, -1] - ranked[:, -2]
        winner = mean.argmax(axis=1)
        status = np.where(confidence <= 1e-9, "tied", "answered")
        self.answer_ = Answer(
            values=problem.classes[winner],
            status=np.where(reached, status, "unreached"),
            confidence=confidence,
            standard_errors=spread[np.arange(len(spread)), winner],
            probabilities=mean,
            classes=problem.classes,
            **common,
        )
        self.transduction_ = sample.complete(self.answer_.values.astype(object), reached)

    def _diagnostics(self, replies: list[Reply], left_out: dict[str, str]) -> dict[str, Any]:
        """Return who was left out and why, how scores became shares, warnings of members, and their time, by name."""
        names = self.weights_.index
        factors = [calibration.factor for calibration in self._calibrations]
        notes = {
            name: [message for _, message in reply.notes] for name, reply in zip(names, replies, strict=True)
        }
        return {
            "left out": left_out,
            "calibration": dict(zip(names, factors, strict=True)),
            "warnings": {name: messages for name, messages in notes.items() if messages},
            "seconds": {name: reply.seconds for name, reply in zip(names, replies, strict=True)},
        }

    def _standard_errors(self, spread: Array) -> Array | None:
        """Return the out-of-fold error, half of its square as it is and half in proportion to the members' spread."""
        if np.isnan(self._error):
            return None
        if not self._disagreement > 0.0:
            return np.full(len(spread), self._error)
        return self._error * np.sqrt((1.0 + (spread / self._disagreement) ** 2) / 2.0)

    def _mix(self, answers: Array, given: Mask) -> tuple[Array, Array, Mask]:
        """Return means, spreads, and where there is a mean at all; elsewhere the labels' mean or shares stand in."""
        mean, spread = self._mean(answers, self.weights_.to_numpy(), given)
        reached = np.asarray(given.any(axis=0))
        if not reached.all():
            mean[~reached] = self._prior if mean.ndim == 2 else self._prior[0]
            warnings.warn(
                f"No member answers at {int((~reached).sum())} rows: the labels' mean, or the share of each class, "
                "stands in.",
                stacklevel=4,
            )
        return mean, spread, reached

    # ---------------------------------------------------------------------------------------------- prediction

    def _extend(self, X: Any) -> Array:
        """Return the blend of the members' predictions at rows, shape (m,) or (m, n_classes)."""
        check_is_fitted(self)
        if self._checked:
            X = validation.read_rows(self, X, reset=False)
        else:
            X = read_table(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        classes = self.answer_.classes
        nothing = np.zeros(_num_samples(X), dtype=bool)
        replies = [
            predict(member, self._for_member(member, X), classes)
            if hasattr(member, "predict")
            else Reply(np.zeros(len(nothing), dtype=int), nothing)  # it can transduce only
            for member in self.estimators_.values()
        ]
        return self._mix(*stack(replies, self._calibrations, classes))[0]

    def _for_member(self, member: Any, X: Any) -> Any:
        """Return rows as a member takes them: of kernel values, a plain one wants those with the labelled rows."""
        if not get_tags(member).input_tags.pairwise or is_transducer(member):
            return X
        return np.asarray(X)[:, self._labelled]

    def predict(self, X: Any) -> AnyArray:
        """Return the blend of the members' predictions at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.

        Returns
        -------
        array of shape (m,)
            Numbers or classes. At an unlabelled row this may differ from ``transduction_``.
        """
        mean = self._extend(X)
        return mean if self.answer_.classes is None else self.classes_[mean.argmax(axis=1)]

    @available_if(lambda self: self._kind() != "regression")
    def predict_proba(self, X: Any) -> Array:
        """Return the share of every class at rows, for classes.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.

        Returns
        -------
        array of shape (m, n_classes)
        """
        return self._extend(X)
