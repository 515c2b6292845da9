"""Transductive ridge (Chapelle, Vapnik and Weston 1999), for numbers and, as linear discrimination, for classes.

The missing labels are chosen so that ridge regression on the completed sample has the smallest leave-one-out
error, while staying near the inductive answer. The numbers come from `transduce.methods.ridge.leave_one_out` and
`transduce.methods.ridge.completion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, validation
from transduce.core.answer import Answer
from transduce.core.computing import few_threads
from transduce.core.estimator import ClassTransducer, NumberTransducer
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import fit_temperature, label_moments
from transduce.core.types import AnyArray, Array
from transduce.methods.ridge.fitted_ridge import FittedRidge, Labels, RidgeEstimator, fit_ridge

_NUMBERS = Guarantee(
    "none",
    reasons=("Leave-one-out chose the values; for regions with a guarantee, use RidgeConfidenceMachine.",),
)
_CLASSES = Guarantee(
    "none",
    reasons=(
        "Probabilities are calibrated by leave-one-out.",
        "For sets of classes with a guarantee, use RidgeConfidenceClassifier.",
    ),
)
ROUNDING = 1e-9  # scores that differ by less are equal


class TransductiveRidge(RidgeEstimator, NumberTransducer):
    """Ridge regression that chooses the missing labels by leave-one-out.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two rows: the basis
        functions are the kernel at the centres. ``"linear"``: the basis functions are the features.
    width : float or "loo", default="loo"
        Length scale of the kernel; ``"loo"`` minimises the leave-one-out error of the inductive step.
    ridge : float or "loo", default="loo"
        Penalty on the squared coefficients, likewise.
    tether : float, "auto" or "cv", default="auto"
        How hard the answers are held to the inductive ones: from 0, not at all, to ``np.inf``, the inductive
        answers themselves. ``"auto"`` is ``l / 2m`` for l labelled and m unlabelled rows; ``"cv"`` chooses by
        transductive cross-validation.
    centres : None, int or array of shape (p, d), default=None
        None: centres at all rows, the paper's method, with ``n x n`` matrices. A number: at most as many distinct rows,
        those with a label; if these are more, half of the number are drawn at random from them and half from all rows.
        Nothing ``n x n`` is formed. An array: these.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`.
    max_memory_mb : float, default=2048
        With centres: a design matrix (all rows by centres) larger than this is computed in blocks, again and again,
        rather than stored.
    random_state : int, RandomState or None, default=None
        Seed of the choice of centres.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,) or (n, c)
        The labels, completed.
    answer_ : Answer
        Values, inductive values beside them, and the leave-one-out residual of each unlabelled row in the completed
        sample.
    width_, ridge_, tether_ : float
        Settings as used; the width is None for kernels that have none.
    loo_error_ : float
        Mean squared leave-one-out residual of the inductive step.
    loo_path_ : pandas.DataFrame
        The widths and ridges that were tried, with their leave-one-out error (of labels scaled to standard
        deviation 1).
    tether_path_ : dict
        With ``tether="cv"``, unlabelled rows and at least two labels: multiples of ``l / 2m`` that were tried, with
        their cross-validated error.
    objective_ : float
        What the answer minimises: sum of squared leave-one-out residuals of the completed sample, plus tether times
        the squared distance to the inductive answer.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    TransductiveRidgeClassifier : The same for classes.
    leave_one_out : The closed form behind it.

    Notes
    -----
    `predict` is ridge regression on the completed sample. At an unlabelled row it differs from ``transduction_``, as
    a fit differs from its labels; with no unlabelled row it is ordinary ridge regression.

    With centres at all rows the cost is ``O(n^3)`` and ``n x n`` memory: good for some thousand rows. With p centres it
    is ``O(n p^2)``, ``n x p`` memory at most, and about three times ``l x p`` while width and ridge are searched.
    Several columns of labels share everything but the last solve. Transductive cross-validation of the tether costs
    some forty solves; width and ridge are chosen once, on all labels.

    References
    ----------
    Chapelle, Vapnik, Weston (1999). Transductive inference for estimating values of functions. NIPS 12.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[2::4] = np.nan
    >>> model = TransductiveRidge().fit(X, y)
    >>> np.abs(model.transduction_ - np.sin(X[:, 0])).max() < 0.01
    np.True_
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows, or the kernel matrix of all rows if ``kernel="precomputed"``.
        y : array-like of shape (n,) or (n, c)
            Labels, missing where the answer is wanted. Of several columns a row has all or none.

        Returns
        -------
        TransductiveRidge
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y, columns=True, device=True)
        y_l = validation.numeric_labels(sample)
        labels = Labels(y_l, *label_moments(y_l.reshape(len(y_l), -1)))
        self._fitted = fit_ridge(sample, labels, self._checked())
        self._tell(self._fitted)
        self.answer_ = self._fitted.answer(sample, _NUMBERS)
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def predict(self, X: Any) -> Array:
        """Return ridge regression on the completed sample at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not; kernel values with all rows of `fit` if the kernel is precomputed.

        Returns
        -------
        array of shape (m,) or (m, c)
            At an unlabelled row this differs from ``transduction_`` by a residual.
        """
        check_is_fitted(self)
        return self._fitted.extend(validation.read_rows(self, X, reset=False, device=True))

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return answers at labelled rows whose labels are hidden, without a whole fit for each fold.

        Parameters
        ----------
        folds : sequence of (visible, hidden)
            Positions among the labelled rows, in their order.

        Returns
        -------
        list of arrays
            For each fold those of the inductive step at its hidden rows, given its visible labels. Width and ridge are
            chosen anew in each fold up to 500 labels; beyond they stay as they are.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import TransductiveRidge
        >>> model = TransductiveRidge(kernel="linear", ridge=1e9).fit(np.arange(3.0)[:, None], [1.0, 2.0, 4.0])
        >>> model.answers_in_folds([([0, 2], [1])])[0].round(6)  # with so large a ridge, the mean
        array([2.5])
        """
        check_is_fitted(self)
        with few_threads(len(self._fitted.labelled_rows)):
            return self._fitted.answers_in_folds(folds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TransductiveRidgeClassifier(RidgeEstimator, ClassTransducer):
    """Classes by ridge regression that chooses the missing labels by leave-one-out.

    Transductive linear discrimination: targets -1 and +1, the answer is the sign. Three and more classes are
    one-vs-rest columns that share one factorisation; the largest value wins.

    Parameters
    ----------
    kernel, width, ridge, tether, centres, standardize, max_memory_mb, random_state, missing_label
        As in `TransductiveRidge`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    transduction_ : array or series of shape (n,)
        The labels, completed.
    answer_ : Answer
        Values, inductive values beside them, scores, probabilities, and leave-one-out residuals of the completed
        sample.
    width_, ridge_, tether_, loo_error_, loo_path_, tether_path_, objective_, n_features_in_
        As in `TransductiveRidge`, of targets -1 and +1.

    See Also
    --------
    TransductiveRidge : The same for numbers.

    Notes
    -----
    Probabilities are the softmax of the scores times one factor, which minimises the log-loss of the labelled rows' own
    leave-one-out scores: these cost nothing, and a row's score does not know its label. One factor keeps the most
    probable class the answer. It is calibrated for the inductive step and used for the transductive one.

    A status is ``"tied"`` where two classes are equally good.

    References
    ----------
    Chapelle, Vapnik, Weston (1999). Transductive inference for estimating values of functions. NIPS 12.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidgeClassifier
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]])
    >>> y = ["low", None, "low", None, "high", None, None, "high"]
    >>> TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(X, y).transduction_
    array(['low', 'low', 'low', 'low', 'high', 'high', 'high', 'high'],
          dtype=object)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows, or the kernel matrix of all rows if ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Class labels of any type, missing where the answer is wanted.

        Returns
        -------
        TransductiveRidgeClassifier
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y, device=True)
        settings, (classes, codes) = self._checked(), validation.class_labels(sample)
        inside = codes == 1 if len(classes) == 2 else codes[:, None] == np.arange(len(classes))
        targets = np.where(inside, 1.0, -1.0)
        fitted = fit_ridge(sample, Labels(targets, targets.mean(axis=0)), settings)
        self._tell(fitted)
        self._fitted = FittedClasses.of(fitted, classes, codes)
        self.classes_, self.answer_ = classes, self._fitted.answer(sample)
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the classes of ridge regression on the completed sample at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not; kernel values with all rows of `fit` if the kernel is precomputed.

        Returns
        -------
        array of shape (m,)
            At an unlabelled row this may differ from ``transduction_``, as a fit may differ from its labels.
        """
        scores = self.decision_function(X)
        return self._fitted.winners(scores)

    def decision_function(self, X: Any) -> Array:
        """Return the values at rows, as in `predict`, whose sign or maximum is the class.

        Shape (m,) for two classes, positive for the second, else (m, n_classes).
        """
        check_is_fitted(self)
        return self._fitted.ridge.extend(validation.read_rows(self, X, reset=False, device=True))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class (m, n_classes) at rows, as in `predict`, by leave-one-out."""
        scores = self.decision_function(X)
        return self._fitted.probabilities(scores)

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the probability of every class at labelled rows whose labels are hidden, without whole fits.

        As `TransductiveRidge.answers_in_folds`; the factor of the scores stays as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import TransductiveRidgeClassifier
        >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]])
        >>> y = ["low", None, "low", None, "high", None, None, "high"]
        >>> model = TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(X, y)
        >>> model.answers_in_folds([([0, 2], [1, 3])])[0].argmax(axis=1)  # labels of rows 0 and 4 are visible
        array([1, 0])
        """
        check_is_fitted(self)
        with few_threads(len(self._fitted.ridge.labelled_rows)):
            return [self._fitted.probabilities(part) for part in self._fitted.ridge.answers_in_folds(folds)]


@dataclass(frozen=True, eq=False)
class FittedClasses:
    """Ridge regression on targets -1 and +1, and the factor that makes probabilities of its scores."""

    ridge: FittedRidge
    classes: AnyArray
    factor: float

    @classmethod
    def of(cls, ridge: FittedRidge, classes: AnyArray, codes: AnyArray) -> FittedClasses:
        """Fit the factor to leave-one-out scores, which do not know the labels of their rows."""
        # One number is fitted, on the host.
        scores = ridge.labels.values - arrays.to_numpy(ridge.labels.restore(ridge.labelled_loo, shift=False))
        return cls(ridge, classes, fit_temperature(_by_class(scores), codes))

    def winners(self, scores: Array) -> AnyArray:
        """Return the class of the largest score."""
        return self.classes[np.argmax(_by_class(arrays.to_numpy(scores)), axis=1)]

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of every class, shape (m, n_classes)."""
        scores = self.factor * _by_class(scores)
        xp = arrays.namespace(scores)
        raised = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return raised / xp.sum(raised, axis=1, keepdims=True)

    def answer(self, sample: PartlyLabelled) -> Answer:
        """Return the answer at the unlabelled rows; what the regression answers are its scores."""
        regression = self.ridge.answer(sample, _CLASSES)
        scores, inductive = regression.values, self.ridge.labels.restore(self.ridge.start)
        ranked = np.sort(_by_class(arrays.to_numpy(scores)), axis=1)
        return replace(
            regression,
            values=self.winners(scores),
            status=np.where(ranked[:, -1] - ranked[:, -2] <= ROUNDING, "tied", "answered"),
            inductive=self.winners(inductive),
            scores=scores,
            probabilities=self.probabilities(scores),
            classes=self.classes,
        )


def _by_class(scores: Array) -> Array:
    """Return a score for every class: of two classes the first has the negative of the second's."""
    return arrays.namespace(scores).stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
