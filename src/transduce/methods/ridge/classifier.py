"""Transductive ridge for classes (Chapelle, Vapnik and Weston 1999): transductive linear discrimination."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax

from transduce.core import validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.temperature import fit_temperature
from transduce.core.transducer import ClassTransducer
from transduce.core.types import AnyArray, Array
from transduce.methods.ridge.shell import RidgeShell

_GUARANTEE = Guarantee(
    "none",
    "These probabilities are calibrated by leave-one-out, not guaranteed.",
    "For label sets that cover, use RidgeConfidenceClassifier.",
)


class TransductiveRidgeClassifier(ClassTransducer, RidgeShell):
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
        Settings as used; the width is None for kernels that have none.
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
        sample = validation.read_sample(self, X, y)
        self.classes_, codes = validation.class_labels(sample)
        columns = np.array([1]) if len(self.classes_) == 2 else np.arange(len(self.classes_))
        targets = np.where(codes[:, None] == columns, 1.0, -1.0)
        self._mean = targets.mean(axis=0)
        found = self._transduce(sample, targets - self._mean)
        self.loo_error_ = float(np.mean(found.labelled_loo**2))
        self.objective_ = float(found.completion.objective.sum())
        self._factor = fit_temperature(_by_class(targets - found.labelled_loo), codes)
        scores = found.completion.labels[sample.unlabelled] + self._mean
        inductive = found.inductive + self._mean
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=self.classes_[self._winner(scores)],
            status=self._status(scores),
            guarantee=_GUARANTEE,
            inductive=self.classes_[self._winner(inductive)],
            loo_residuals=_narrow(found.completion.loo_residuals[sample.unlabelled]),
            scores=_narrow(scores),
            probabilities=self._probabilities(scores),
            classes=self.classes_,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={"form": "all rows" if self._exact else "design", **found.completion.solver},
        )
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
        scores = self._extend(X)
        return self.classes_[self._winner(scores + self._mean)]

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
        scores = self._extend(X)
        return _narrow(scores + self._mean)

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
        scores = self._extend(X)
        return self._probabilities(scores + self._mean)

    def _winner(self, scores: Array) -> AnyArray:
        return np.argmax(_by_class(scores), axis=1)

    def _status(self, scores: Array) -> AnyArray:
        """Return "tied" where the best two classes differ by rounding only."""
        ranked = np.sort(_by_class(scores), axis=1)
        return np.where(ranked[:, -1] - ranked[:, -2] <= 1e-9, "tied", "answered")

    def _probabilities(self, scores: Array) -> Array:
        return softmax(self._factor * _by_class(scores), axis=1)


def _by_class(columns: Array) -> Array:
    """Return a score for every class: of two classes the first has the negative of the second's."""
    return np.column_stack([-columns, columns]) if columns.shape[1] == 1 else columns


def _narrow(columns: Array) -> Array:
    """Return a single column as a vector, several as they are."""
    return columns[:, 0] if columns.shape[1] == 1 else columns
