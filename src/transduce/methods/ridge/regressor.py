"""Transductive ridge regression (Chapelle, Vapnik and Weston 1999), for numbers.

The missing labels are chosen so that ridge regression on the completed sample has the smallest leave-one-out
error, while staying near the inductive answer. The numbers come from `transduce.methods.ridge.leave_one_out` and
`transduce.methods.ridge.completion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from transduce.core import validation
from transduce.core.computing import few_threads
from transduce.core.estimator import NumberTransducer
from transduce.core.guarantee import Guarantee
from transduce.core.scaling import label_moments
from transduce.core.types import AnyArray, Array
from transduce.methods.ridge.fitted_ridge import Labels, RidgeEstimator, fit_ridge

NO_GUARANTEE = Guarantee(
    "none",
    reasons=("Leave-one-out chose the values; for regions with a guarantee, use RidgeConfidenceMachine.",),
)


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
        RidgeSettings as used; the width is None for kernels that have none.
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
        self._fitted = fit_ridge(sample, labels, self._read_settings())
        self._tell(self._fitted)
        self.answer_ = self._fitted.answer(sample, NO_GUARANTEE)
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
