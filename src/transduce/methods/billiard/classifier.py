"""Bayesian transduction by kernel billiard (Graepel, Herbrich and Obermayer 1999).

The label of an unlabelled row is the vote of every linear separator in feature space that gets the labelled rows
right. The numbers come from `transduce.methods.billiard.flight`, `transduce.methods.billiard.votes` and
`transduce.methods.billiard.probabilities`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks, validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.linalg import few_threads
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Array
from transduce.methods.billiard.flight import EmptyVersionSpaceError
from transduce.methods.billiard.probabilities import Geometry, count_round, n_games, play_until, probabilities
from transduce.methods.billiard.shell import BayesianShell
from transduce.methods.billiard.votes import Tally, Voter


class BayesianTransducer(BayesianShell):
    """Classifier in which every separator that gets the labelled rows right has a vote.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two rows.
    width : float, "median" or "cv", default="median"
        Length scale of the kernel; ``"median"`` is the median distance between two rows, ``"cv"`` chooses a multiple
        of it by cross-validation on log-loss.
    softness : float or "cv", default=0.0
        Added to the kernel's diagonal, so that labels may be wrong. 0: only separators that get every labelled row
        right have a vote. ``"cv"`` chooses by cross-validation on log-loss.
    bias : float, default=1.0
        Constant added to the kernel, so that separators need not pass through the origin.
    n_balls : int, default=8
        Balls that take the vote, from different starts; the standard errors come from their differences, and are rough
        with fewer than four.
    tolerance : float, default=0.01
        The balls stop when the largest standard error of a probability at an unlabelled row is below this.
    max_bounces : int, default=400_000
        Most bounces of each ball, about; a ball bounces at least some thirty times for each labelled row.
    predict_with : {"vote", "bayes_point"}, default="vote"
        How `predict` decides at new rows: by the balls' vote, or faster by the one separator that is their mean.
    reject_below : float or None, default=None
        Unlabelled rows whose confidence is below this get the status ``"rejected"``.
    reject_share : float or None, default=None
        This share of the unlabelled rows, the least confident, gets the status ``"rejected"``.
    max_memory_mb : float, default=1024
        Kernel values of labelled with unlabelled rows beyond this are computed some rows at a time, again in every
        round.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`.
    n_jobs : int or None, default=None
        Balls that fly at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the balls. The same seed gives the same answer in whatever order the rows come, except that with a
        precomputed kernel the order of the labelled rows matters within the standard errors.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed.
    answer_ : Answer
        Values, probabilities of all classes, confidence (the largest probability less the second largest), the Monte
        Carlo standard error of the largest, status.
    classes_ : array of shape (n_classes,)
        Classes, sorted.
    width_, softness_ : float
        As used; the width is None for kernels that have none.
    cv_path_ : pandas.DataFrame
        With ``"cv"``: what was tried, with its log-loss.
    bayes_point_ : array of shape (l,) or (n_classes, l)
        Mean direction of the flights, as coefficients on the labelled rows.
    n_bounces_ : int
        Bounces of each ball.
    converged_ : bool
        Whether the tolerance was reached.
    r_hat_ : float
        Spread of the votes over all parts of the flights, over that within one ball's; near 1 when the balls agree. NaN
        if no ball has two parts.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    RidgeConfidenceClassifier : Label sets that cover whatever the distribution.
    rejection_curve : Error against the share of answers rejected.

    Notes
    -----
    With ``softness=0`` a probability is the share of version space on one side of the row: how sure the separators are,
    not how often they are right. With ``softness > 0`` it is the probability of the label, in which the row's own slack
    and its part outside the span of the labelled rows have a say.

    A bounce costs ``O(l)``, a bounce's votes ``O(m)``; the Gram matrix of the labelled rows is factorised once for all
    classes. `predict_proba` follows the recorded flights at new rows; at an unlabelled row it gives the same
    probability as ``answer_``. Several classes are voted one against the rest and normalised.

    References
    ----------
    Graepel, Herbrich, Obermayer (1999). Bayesian transduction. NIPS 12.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import BayesianTransducer
    >>> X = np.array([[-3.0], [-2.0], [-0.1], [2.0], [3.0]])
    >>> model = BayesianTransducer(kernel="linear", random_state=0).fit(X, ["no", "no", None, "yes", "yes"])
    >>> model.transduction_
    array(['no', 'no', 'no', 'yes', 'yes'], dtype=object)
    >>> bool(model.answer_.confidence[0] < 0.5)  # separators between -2 and 2 disagree near 0
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Let the balls vote at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows, or the kernel matrix of all rows if ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted.

        Returns
        -------
        BayesianTransducer
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y)
        self.classes_, codes = validation.class_labels(sample)
        self._check_settings(sample)
        labelled = np.flatnonzero(sample.labelled)
        rows = self._scale(sample.X)
        if self.kernel != "precomputed":
            # Rows in an order of their own, so that the order in which they came leaves no trace.
            order = np.lexsort([codes, *rows[labelled].T[::-1]])
            labelled, codes = labelled[order], codes[order]
        self._labelled, self._rows_l = labelled, rows[labelled]
        if self.kernel == "precomputed":
            self._rows_l = self._rows_l[:, labelled]
        random = check_random_state(self.random_state)
        with few_threads(0):
            K = self._choose(rows, codes, random.randint(2**31 - 1))
            self._geometry = Geometry.of(K, softness=self.softness_)
            self._check_contradictions(K, sample, codes)
            self._play(sample, rows[sample.unlabelled], codes, random)
        return self

    # ------------------------------------------------------------------------------------------- the vote

    def _columns(self, rows: Array) -> tuple[Array, Array]:
        """Return kernel values of the labelled rows with rows (l, m), and of the rows with themselves (m,)."""
        if self._kernel.name == "precomputed":
            return rows[:, self._labelled].T + self._bias, rows[:, -1] + self._bias
        values = self._kernel.checked_matrix(self._rows_l, rows) + self._bias
        return values, self._kernel.diagonal(rows) + self._bias

    def _voters(self, rows: Array) -> Callable[[], Iterator[tuple[slice, Voter]]]:
        """Return what makes voters for the rows, some at a time; kept between rounds if all fit into memory."""
        size = max(1, int(float(self.max_memory_mb) * 2**20 // (8 * len(self._rows_l))))
        parts = [slice(i, min(i + size, len(rows))) for i in range(0, len(rows), size)]
        if len(parts) == 1:
            kept = [(parts[0], self._geometry.voter(*self._columns(rows)))]
            return lambda: iter(kept)
        return lambda: ((part, self._geometry.voter(*self._columns(rows[part]))) for part in parts)

    def _play(self, sample: PartlyLabelled, unlabelled: Array, codes: AnyArray, random: Any) -> None:
        n_classes = len(self.classes_)
        seeds = random.randint(2**31 - 1, size=(n_games(n_classes), self.n_balls))
        try:
            self._games = self._geometry.games(codes, n_classes, seeds, self.n_jobs)
        except EmptyVersionSpaceError:
            raise ValueError(self._inseparable()) from None
        if self.kernel == "precomputed":
            unlabelled = np.column_stack([unlabelled, sample.X.diagonal()[sample.unlabelled]])
        tallies, self.converged_ = play_until(
            self._games,
            len(unlabelled),
            self._voters(unlabelled),
            tolerance=float(self.tolerance),
            max_bounces=int(self.max_bounces),
            n_jobs=self.n_jobs,
        )
        self.n_bounces_ = max(game.n_bounces for game in self._games)
        self.r_hat_ = float(np.max([tally.r_hat() for tally in tallies])) if len(unlabelled) else np.nan
        points = np.array([game.mean_direction() for game in self._games]) / self._geometry.norms
        self.bayes_point_ = points[0] if len(points) == 1 else points
        self._answer(sample, *probabilities(tallies))

    def _answer(self, sample: PartlyLabelled, shares: Array, errors: Array) -> None:
        n_unlabelled = len(sample.unlabelled)
        best = shares.argmax(axis=1) if n_unlabelled else np.empty(0, dtype=int)
        ordered = np.sort(shares, axis=1)
        confidence = ordered[:, -1] - ordered[:, -2]
        largest = float(errors.max()) if n_unlabelled else 0.0
        if not self.converged_:
            warnings.warn(
                f"The budget of max_bounces={self.max_bounces} ended the vote: the largest standard error of a "
                f"probability is {largest:.3f}, not {self.tolerance:g}. Raise max_bounces, or tolerance.",
                ConvergenceWarning,
                stacklevel=4,
            )
        answer = Answer(
            rows=sample.unlabelled,
            values=self.classes_[best],
            status=np.where(confidence > 1e-12, "answered", "tied"),
            guarantee=_guarantee(self.softness_, largest if n_unlabelled else None, self.converged_),
            confidence=confidence,
            standard_errors=errors[np.arange(n_unlabelled), best],
            probabilities=shares,
            classes=self.classes_,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={"n_bounces": self.n_bounces_, "n_balls": self.n_balls, "r_hat": self.r_hat_},
        )
        if self.reject_below is not None or self.reject_share is not None:
            answer = answer.reject(below=self.reject_below, share=self.reject_share)
        self.answer_ = answer
        self.transduction_ = sample.complete(answer.values.astype(object))

    # ------------------------------------------------------------------------------------------- prediction

    def _read_new(self, X: Any, *, own_value: bool) -> Array:
        if self._kernel.name != "precomputed":
            rows = validation.read_rows(self, X, reset=False)
            return self._scaling.apply(rows) if self._scaling else rows
        rows = validation.read_kernel_rows(X, self.n_features_in_, self._own, own_value=own_value)
        return np.nan_to_num(rows)  # an own value that is not needed

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class at rows, from the recorded flights.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not. With a precomputed kernel: kernel values with all n rows of `fit` and, if labels
            may be wrong, with the row itself as one more column (not needed if it was the same for all rows of `fit`).

        Returns
        -------
        array of shape (m, n_classes)
        """
        check_is_fitted(self)
        rows = self._read_new(X, own_value=self.softness_ > 0.0)
        tallies = [Tally.empty(len(game.balls), len(rows)) for game in self._games]
        with few_threads(0):
            count_round(self._games, tallies, self._voters(rows)(), slice(None), self.n_jobs)
        return probabilities(tallies)[0]

    def decision_function(self, X: Any) -> Array:
        """Return by how much the vote is for a class.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict_proba`.

        Returns
        -------
        array of shape (m,) or (m, n_classes)
            The probability of the second of two classes less that of the first; of several, their probabilities.
        """
        shares = self.predict_proba(X)
        return shares[:, 1] - shares[:, 0] if shares.shape[1] == 2 else shares

    def bayes_point_function(self, X: Any) -> Array:
        """Return the value at rows of one separator, the mean direction of all flights.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict_proba`.

        Returns
        -------
        array of shape (m,) or (m, n_classes)
            Positive for the second of two classes; the largest wins of several.
        """
        check_is_fitted(self)
        return self._columns(self._read_new(X, own_value=False))[0].T @ self.bayes_point_.T

    def predict(self, X: Any) -> AnyArray:
        """Return the class at rows, by vote or by the Bayes point as `predict_with` says.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict_proba`.

        Returns
        -------
        array of shape (m,)
            By vote, at an unlabelled row this is ``transduction_`` there.
        """
        check_is_fitted(self)
        checks.check_choice("predict_with", self.predict_with, ("vote", "bayes_point"))
        if self.predict_with == "bayes_point":
            scores = self.bayes_point_function(X)
            best = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
            return self.classes_[best]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _guarantee(softness: float, error: float | None, converged: bool) -> Guarantee:
    what = "of the label, by the model" if softness > 0.0 else "that a random separator votes for"
    guarantee = f"Probabilities are {what}"
    if error is not None:
        end = "" if converged else ", where the budget of bounces ended the vote"
        guarantee += f"; their largest Monte Carlo standard error is {error:.2g}{end}"
    return Guarantee("none", f"{guarantee}.", "For label sets that cover, use RidgeConfidenceClassifier.")
