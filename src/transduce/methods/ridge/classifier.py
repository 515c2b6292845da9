"""Transductive ridge for classes (Chapelle, Vapnik and Weston 1999): transductive linear discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, validation
from transduce.core.answer import Answer
from transduce.core.computing import few_threads
from transduce.core.estimator import ClassTransducer
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array
from transduce.methods.ridge.fitted_ridge import FittedRidge, Labels, RidgeEstimator, fit_ridge

_GUARANTEE = Guarantee(
    "none",
    reasons=(
        "Probabilities are calibrated by leave-one-out.",
        "For sets of classes with a guarantee, use RidgeConfidenceClassifier.",
    ),
)
ROUNDING = 1e-9  # scores that differ by less are equal


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
    width_, ridge_, tether_ : float
        RidgeSettings as used; the width is None for kernels that have none.
    loo_error_ : float
        Mean squared leave-one-out residual of the inductive step, of targets -1 and +1.
    loo_path_ : pandas.DataFrame
        The widths and ridges that were tried, with their leave-one-out error.
    tether_path_ : dict
        With ``tether="cv"``, unlabelled rows and at least two labels: multiples of ``l / 2m`` that were tried, with
        their cross-validated error.
    objective_ : float
        What the answer minimises.
    n_features_in_ : int
        Number of features seen in `fit`.

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
        settings, (classes, codes) = self._read_settings(), validation.class_labels(sample)
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
        """Return the values whose sign or maximum is the class.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.

        Returns
        -------
        array of shape (m,) for two classes (positive for the second), else (m, n_classes)
        """
        check_is_fitted(self)
        return self._fitted.ridge.extend(validation.read_rows(self, X, reset=False, device=True))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class at rows, calibrated by leave-one-out.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.

        Returns
        -------
        array of shape (m, n_classes)
        """
        scores = self.decision_function(X)
        return self._fitted.probabilities(scores)

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the probability of every class at labelled rows whose labels are hidden, without whole fits.

        Parameters
        ----------
        folds : sequence of (visible, hidden)
            Positions among the labelled rows, in their order.

        Returns
        -------
        list of arrays
            For each fold those of the inductive step at its hidden rows, given its visible labels. Width and ridge are
            chosen anew in each fold up to 500 labels; beyond they stay as they are.
            The factor of the scores stays.

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
        regression = self.ridge.answer(sample, _GUARANTEE)
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
