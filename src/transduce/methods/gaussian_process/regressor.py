"""The moment-matched Gaussian process (Le, Smola, Gartner and Altun 2006).

Relevances of the features and the noise are chosen so that the labels are likely and, as far as cross-validation
trusts it, the predictions at the unlabelled rows have the mean and spread of the labels that were seen. The numbers
come from `transduce.methods.gaussian_process.process`, `transduce.methods.gaussian_process.moments` and
`transduce.methods.gaussian_process.search`.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks, validation
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.linalg import few_threads, guarded_cholesky
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import label_moments
from transduce.core.types import Array
from transduce.methods.gaussian_process.moments import Match
from transduce.methods.gaussian_process.process import Posterior
from transduce.methods.gaussian_process.search import NOISE_BOUNDS, Descent
from transduce.methods.gaussian_process.shell import GaussianShell


class TransductiveGPRegressor(GaussianShell):
    """Gaussian process whose predictions at the unlabelled rows look, in mean and spread, like the labels seen.

    Parameters
    ----------
    matching : float or "cv", default="cv"
        Weight of the match between predicted and seen labels. 0 is plain Gaussian process regression with the
        parameters at their posterior maximum. ``"cv"`` chooses by transductive cross-validation among the labelled
        rows; 0 is one of the choices, and any other must be better by more than one standard error.
    slack : float or "cv", default="cv"
        How loose the match may be: 0 for equal moments, from about 1 on hardly any match.
    prior : tuple of two floats, default=(1.0, 0.5)
        ``a`` and ``b`` of the prior ``-log p(x) = -a log x + b x`` of each relevance and of the noise, in units of
        scaled features and labels. ``(0, 0)`` is maximum likelihood.
    relevance : bool, default=True
        Whether each feature has a relevance of its own; otherwise one is common to all.
    n_restarts : int, default=3
        Descents from random starts, besides the one from a rule.
    max_iter : int, default=200
        Most steps of a descent.
    tol : float, default=1e-8
        A descent ends when a step lowers the objective by less than this share of it.
    solver : {"nested", "alternating"}, default="nested"
        How moments are matched: anew in every evaluation of the objective, or in turns with the parameters, as in
        the paper. Both lower the same objective at every step; the first needs several times fewer evaluations.
    max_matched : int, default=300
        With more unlabelled rows than this, the moments are matched at as many of them; all are answered.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`.
    n_jobs : int or None, default=None
        Restarts and folds that run at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed.
    answer_ : Answer
        Values, their standard errors (noise included; NaN if all labels are equal), and the values without matching.
    relevance_ : array of shape (d,)
        Inverse length scales, in units of the features given: the kernel is ``exp(-sum (relevance_j dx_j)^2)``. 0 for
        a feature that does not vary.
    feature_spread_ : array of shape (d,)
        Standard deviation of each feature over all rows; ``relevance_ * feature_spread_`` compares features.
    noise_ : float
        Variance of the noise, in squared units of the labels.
    matching_, slack_ : float
        As used.
    matching_path_ : pandas.DataFrame
        With ``"cv"``: what was tried, with its cross-validated mean squared error (labels scaled to variance 1).
    objective_path_ : array
        The objective after every step of the best descent; it never rises.
    log_marginal_likelihood_ : float
        Log density of the labels, scaled to mean 0 and variance 1.
    mean_, covariance_ : array of shape (m,) and (m, m)
        The predictive distribution p of the unlabelled labels, noise included. The covariance is computed when asked
        for, and takes three matrices of its size while it is.
    matched_mean_, matched_covariance_ : array
        The distribution q nearest to p that matches the moments, at ``matched_rows_``.
    matched_rows_ : array
        Positions of the unlabelled rows at which moments are matched: all, up to `max_matched`.
    moments_ : pandas.DataFrame
        Mean and standard deviation of the labels: seen, predicted without matching, predicted (p), matched (q, at
        ``matched_rows_``).
    n_iter_ : int
        Steps of the best descent.
    converged_ : bool
        Whether it ended by itself.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    RidgeConfidenceMachine : Regions that cover whatever the distribution.

    Notes
    -----
    A Gaussian process is a function, so that `predict` at an unlabelled row is ``transduction_`` there; at a labelled
    row ``transduction_`` holds the label and `predict` the process.

    One evaluation of objective and gradient costs ``O(l^3 + l^2 d)``, with matching ``O(n^3 + n^2 d)``, and a few
    matrices of that size; a fit takes some hundred evaluations, with ``"cv"`` some hundred more for each fold.

    References
    ----------
    Le, Smola, Gartner, Altun (2006). Transductive Gaussian process regression with automatic model selection. ECML.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveGPRegressor
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=25)
    >>> y[2::4] = np.nan
    >>> model = TransductiveGPRegressor(random_state=0).fit(X, y)
    >>> np.abs(model.transduction_ - np.sin(X[:, 0])).max() < 0.15
    np.True_
    >>> model.answer_.standard_errors.shape
    (6,)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the parameters and answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted.

        Returns
        -------
        TransductiveGPRegressor
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y)
        y_l = validation.numeric_labels(sample)
        self._check_settings()
        self._announce_cost(len(y_l))
        rows = self._scale(sample.X, sample.labelled)
        self._mean, self._spread = label_moments(y_l)
        z = (y_l - self._mean) / self._spread
        # Equal labels say nothing about errors.
        self._error_unit = self._spread if np.ptp(y_l) > 0.0 else np.nan
        # Rows in an order of their own, so that the order in which they came leaves no trace, not even in rounding.
        labelled = np.flatnonzero(sample.labelled)
        order = np.lexsort([z, *rows[labelled].T[::-1]])
        unlabelled = sample.unlabelled[np.lexsort(rows[sample.unlabelled].T[::-1])]
        if len(unlabelled) > self.max_matched:
            unlabelled = unlabelled[np.linspace(0, len(unlabelled) - 1, self.max_matched).round().astype(int)]
        self.matched_rows_ = np.sort(unlabelled)
        self._rows = np.concatenate([rows[labelled[order]], rows[unlabelled]])
        self._inverse = np.argsort(unlabelled)
        self._z = z[order]
        one_thread = self.n_jobs not in (None, 1)
        with few_threads(0 if one_thread else len(self._rows)):
            found, plain = self._search()
            self._describe(found)
            self._answer(sample, rows[sample.unlabelled], plain)
        return self

    # ------------------------------------------------------------------------------------------ the answer

    def _describe(self, found: Descent) -> None:
        """Set what is known of the parameters, and say what a user should know of how they were found."""
        self._log_parameters = found.log_parameters
        self._posterior = self._fit_posterior(found)
        parameters = np.exp(found.log_parameters)
        keep = self._scaling.keep
        self.relevance_ = np.zeros(self.n_features_in_)
        if keep.any():
            self.relevance_[keep] = parameters[:-1] / self._scaling.scale
        self.noise_ = float(self._in_squared_units(parameters[-1]))
        self.log_marginal_likelihood_ = self._posterior.log_likelihood
        self.objective_path_ = found.path
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self._q: Match | None = None
        self._warn(found)

    def _fit_posterior(self, found: Descent) -> Posterior:
        return Posterior.fit(self._rows[: len(self._z)], self._z, found.log_parameters)

    def _warn(self, found: Descent) -> None:
        if not found.converged:
            warnings.warn(
                f"The parameters {found.message} before they settled: raise max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if np.ptp(self._z) == 0.0:
            return
        if np.any(found.log_parameters[:-1] > self._most_relevant - 1e-3):
            warnings.warn(
                "A relevance ran into its upper bound: rows no longer tell of each other. Match less, or give a prior "
                "whose second number is larger.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif found.log_parameters[-1] < np.log(NOISE_BOUNDS[0]) + 1e-3:
            warnings.warn(
                f"The noise ran into its lower bound, {NOISE_BOUNDS[0]:g} of the labels' variance: the labels look "
                "like an exact function of the features. If they are not, a prior whose first number is larger keeps "
                "the noise away from 0.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _answer(self, sample: PartlyLabelled, rows: Array, plain: Descent) -> None:
        mean, spread = self._predict(self._posterior, rows)
        before = (mean, spread)
        if plain.log_parameters is not self._log_parameters:
            before = self._predict(self._fit_posterior(plain), rows)
        self.mean_, self._asked_rows = self._restore(mean), rows
        self.moments_ = self._moments_table(before, (mean, spread))
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=self.mean_,
            status=np.full(len(rows), "answered"),
            guarantee=_guarantee(self._choice),
            standard_errors=spread * self._error_unit,
            inductive=self._restore(before[0]),
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={
                "choice": self._choice,
                "jitter": self._posterior.jitter,
                "starts": [end if isinstance(end, str) else end.message for end in self._ends],
                "objectives": [np.nan if isinstance(end, str) else end.objective for end in self._ends],
            },
        )
        self.transduction_ = sample.complete(self.answer_.values)

    def _moments_table(self, before: tuple[Array, Array], after: tuple[Array, Array]) -> pd.DataFrame:
        """Return mean and standard deviation over rows, in units of the labels."""
        moments = {"labels": (float(self._z.mean()), float(np.mean(self._z**2)))}
        if len(after[0]):
            for name, (mean, spread) in (("without matching", before), ("predicted", after)):
                moments[name] = (float(mean.mean()), float(np.mean(mean**2 + spread**2)))
            if not self._unmatched:
                q = self._matched()
                moments["matched"] = (
                    float(q.mean.mean()),
                    float((q.mean @ q.mean + np.sum(q.root**2)) / len(q.mean)),
                )
        table = pd.DataFrame(moments, index=["mean", "standard deviation"]).T
        table["standard deviation"] = (
            np.sqrt(np.maximum(table["standard deviation"] - table["mean"] ** 2, 0.0)) * self._spread
        )
        table["mean"] = self._restore(table["mean"])
        return table

    @property
    def _unmatched(self) -> bool:
        """Whether there is nothing to match: no row, or no spread. Then q is p."""
        return len(self.matched_rows_) == 0 or np.ptp(self._z) == 0.0

    def _matched(self) -> Match:
        if self._q is None:
            self._q = self._objective.match(self._log_parameters)
        return self._q

    def _predict(self, posterior: Posterior, rows: Array) -> tuple[Array, Array]:
        """Return means and standard deviations at rows, some at a time to spare memory."""
        size = max(1, 2**25 // len(self._z))
        mean, variance = np.empty(len(rows)), np.empty(len(rows))
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            mean[part], variance[part] = posterior.mean(rows[part]), posterior.variance(rows[part])
        return mean, np.sqrt(variance)

    def _restore(self, scaled: Any) -> Any:
        return scaled * self._spread + self._mean

    def _in_squared_units(self, scaled: Any) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return scaled * self._error_unit * self._error_unit

    # ------------------------------------------------------------------------------------------- attributes

    @property
    def covariance_(self) -> Array:
        """Covariance of the unlabelled labels, shape (m, m)."""
        check_is_fitted(self)
        return self._in_squared_units(self._posterior.covariance(self._asked_rows))

    @property
    def matched_mean_(self) -> Array:
        """Mean of the matched distribution at ``matched_rows_``."""
        check_is_fitted(self)
        if self._unmatched:
            return self.mean_[np.searchsorted(self.answer_.rows, self.matched_rows_)]
        return self._restore(self._matched().mean[self._inverse])

    @property
    def matched_covariance_(self) -> Array:
        """Covariance of the matched distribution at ``matched_rows_``."""
        check_is_fitted(self)
        if self._unmatched:
            at = np.searchsorted(self.answer_.rows, self.matched_rows_)
            return self._in_squared_units(self._posterior.covariance(self._asked_rows[at]))
        root = self._matched().root[self._inverse]
        return self._in_squared_units(root @ root.T)

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the process at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.
        return_std : bool, default=False
            Whether to return standard errors too.
        return_cov : bool, default=False
            Whether to return the covariance too; not both.

        Returns
        -------
        mean : array of shape (m,)
            At an unlabelled row this is ``transduction_`` there.
        std : array of shape (m,)
            Of a label, noise included; if `return_std`.
        cov : array of shape (m, m)
            Of the labels, noise included; if `return_cov`.
        """
        rows = self._read_more(X)
        if return_std and return_cov:
            raise RuntimeError("Ask for return_std or return_cov, not for both.")
        if return_cov:
            covariance = self._in_squared_units(self._posterior.covariance(rows))
            return self._restore(self._posterior.mean(rows)), covariance
        mean, spread = self._predict(self._posterior, rows)
        return (self._restore(mean), spread * self._error_unit) if return_std else self._restore(mean)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw labels at rows from the predictive distribution, noise included.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=0
            Seed.

        Returns
        -------
        array of shape (m, n_samples)
        """
        checks.check_whole("n_samples", n_samples, least=1)
        rows = self._read_more(X)
        factor, _ = guarded_cholesky(self._posterior.covariance(rows))
        draws = factor @ check_random_state(random_state).normal(size=(len(rows), n_samples))
        return self._restore(self._posterior.mean(rows))[:, None] + self._error_unit * draws


def _guarantee(choice: str) -> Guarantee:
    return Guarantee(
        "none",
        "Standard errors are the model's own: right if the labels are a Gaussian process with this kernel and noise.",
        f"Parameters were chosen on the labels ({choice}); for regions that cover, use RidgeConfidenceMachine.",
    )
