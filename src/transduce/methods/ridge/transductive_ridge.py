"""Transductive ridge (Chapelle, Vapnik and Weston 1999), for numbers and, as linear discrimination, for classes."""

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
        How hard the answers are held to the inductive ones: from 0, not at all, to ``np.inf``, the inductive answers
        themselves. ``"auto"`` is ``l / 2m`` for l labelled and m unlabelled rows; ``"cv"`` chooses by transductive
        cross-validation, which costs some forty solves.
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
    transduction_, answer_
        Labels completed, (n,) or (n, c); `Answer` with the inductive values and the leave-one-out residual of each
        unlabelled row in the completed sample.
    width_, ridge_, tether_ : float
        Settings as used; the width is None for kernels that have none.
    loo_error_, loo_path_ : float, pandas.DataFrame
        Mean squared leave-one-out residual of the inductive step; the widths and ridges that were tried, with theirs
        (of labels scaled to standard deviation 1).
    tether_path_ : dict
        With ``tether="cv"``, unlabelled rows and at least two labels: multiples of ``l / 2m`` that were tried, with
        their cross-validated error.
    objective_ : float
        What the answer minimises: sum of squared leave-one-out residuals of the completed sample, plus tether times
        the squared distance to the inductive answer.

    Notes
    -----
    `predict` is ridge regression on the completed sample. At an unlabelled row it differs from ``transduction_``, as
    a fit differs from its labels; with no unlabelled row it is ordinary ridge regression. With centres at all rows the
    cost is ``O(n^3)``, with p centres ``O(n p^2)``, and about three times ``l x p`` memory while settings are searched.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.where(np.arange(25) % 4 == 2, np.nan, np.sin(X[:, 0]))
    >>> np.abs(TransductiveRidge().fit(X, y).transduction_ - np.sin(X[:, 0])).max() < 0.01
    np.True_
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d), or of their kernel matrix, whose label in y (n,) or (n, c) is missing.

        Of several columns a row has all labels or none.
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
        """Return ridge regression on the completed sample at rows (m, d), or kernel values with all rows of `fit`."""
        check_is_fitted(self)
        return self._fitted.extend(validation.read_rows(self, X, reset=False, device=True))

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return answers at labelled rows whose labels are hidden, without a whole fit for each fold.

        Folds are pairs (visible, hidden) of positions among the labelled rows. The answers are those of the inductive
        step; width and ridge are chosen anew in each fold up to 500 labels, beyond they stay as they are.

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
    transduction_, answer_
        Labels completed (n,); `Answer` with inductive values, scores, probabilities and leave-one-out residuals of the
        completed sample, and the status ``"tied"`` where two classes are equally good.
    width_, ridge_, tether_, loo_error_, loo_path_, tether_path_, objective_
        As in `TransductiveRidge`, of targets -1 and +1.

    Notes
    -----
    Probabilities are the softmax of the scores times one factor, which minimises the log-loss of the labelled rows' own
    leave-one-out scores. It is calibrated for the inductive step and used for the transductive one.

    Examples
    --------
    >>> from transduce import TransductiveRidgeClassifier
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> y = ["low", None, "low", "high", None, "high"]
    >>> TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(X, y).transduction_
    array(['low', 'low', 'low', 'high', 'high', 'high'], dtype=object)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d), or of their kernel matrix, whose class in y (n,) is missing."""
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
        """Return the classes (m,) of ridge regression on the completed sample at rows, as in `TransductiveRidge`."""
        scores = self.decision_function(X)
        return self._fitted.winners(scores)

    def decision_function(self, X: Any) -> Array:
        """Return values whose sign, (m,) for two classes, or maximum, (m, n_classes), is the class at rows."""
        check_is_fitted(self)
        return self._fitted.ridge.extend(validation.read_rows(self, X, reset=False, device=True))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class (m, n_classes) at rows, as in `predict`, by leave-one-out."""
        scores = self.decision_function(X)
        return self._fitted.probabilities(scores)

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the probability of every class at labelled rows whose labels are hidden, as `TransductiveRidge` does.

        The factor of the scores stays as it is.
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
