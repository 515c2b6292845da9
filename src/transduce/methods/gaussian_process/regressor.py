"""The moment-matched Gaussian process (Le, Smola, Gartner and Altun 2006)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import NumberTransducer
from transduce.device.linalg import guarded_cholesky
from transduce.methods.gaussian_process import parameters, process

REASONS = (
    "Standard errors are the model's own: right if the labels are a Gaussian process with this kernel and noise.",
    "With few labels they tend to be too small.",
)
INSTEAD = "For intervals with a guarantee, use ConformalTransducer or RidgeConfidenceMachine."


@dataclass(frozen=True)
class Units:
    """Mean and spread of the labels, which scaled labels have lost; equal labels say nothing about errors (NaN)."""

    mean: float
    spread: float
    error: float

    @classmethod
    def of(cls, y_l: Array) -> Units:
        """Take them from the labels."""
        mean, spread = label_moments(np.sort(y_l))
        return cls(float(mean), float(spread), float(spread) if np.ptp(y_l) > 0.0 else np.nan)

    def scale(self, y_l: Array) -> Array:
        """Return labels with mean 0 and variance 1."""
        return (y_l - self.mean) / self.spread

    def restore(self, scaled: Array) -> Array:
        """Return scaled labels in units of the labels."""
        return scaled * self.spread + self.mean

    def squared(self, scaled: Array) -> Array:
        """Return scaled variances in squared units of the labels."""
        with np.errstate(over="ignore", under="ignore"):
            return scaled * self.error * self.error


@dataclass(frozen=True)
class FittedProcess:
    """What a fit keeps."""

    scaling: Scaling  # of the features
    units: Units  # of the labels
    posterior: process.Posterior | process.InducedPosterior  # of scaled labels at scaled rows
    noise: float  # variance of the noise, in squared units of the labels
    unlabelled: Array  # (m, d) scaled rows at which the answer was wanted
    predicted: tuple[Array, Array]  # (m,)
    plain: tuple[Array, Array]  # (m,)
    matched: AnyArray  # (k,) which of the unlabelled rows moments were matched at, in the order of `q`
    chosen: parameters.FoundParameters  # the parameters, and how they were found
    order: AnyArray  # (l,) the labelled rows in the order of the posterior

    @classmethod
    def of(
        cls,
        chosen: parameters.FoundParameters,
        unlabelled: Array,
        places: tuple[AnyArray, AnyArray],
        scaling: Scaling,
        units: Units,
    ) -> FittedProcess:
        """Predict with the parameters found."""
        y_l, best, (order, matched) = chosen.objective.y_l, chosen.best.log_parameters, places
        X_l = chosen.objective.X[: y_l.shape[0], :]
        posterior = process.fit_posterior(X_l, y_l, best, chosen.max_exact)
        predicted = plain = posterior.predict(unlabelled)
        if chosen.plain is not chosen.best:
            other = process.fit_posterior(X_l, y_l, chosen.plain.log_parameters, chosen.max_exact)
            plain = other.predict(unlabelled)
        noise = float(units.squared(np.exp(best)[-1]))
        return cls(scaling, units, posterior, noise, unlabelled, predicted, plain, matched, chosen, order)

    @cached_property
    def q(self) -> process.Match | None:
        """The matched distribution, when first asked for: a blend never asks."""
        objective, few = self.chosen.objective, isinstance(self.posterior, process.Posterior)
        varied = few and len(self.matched) > 0 and np.ptp(arrays.to_numpy(objective.y_l)) > 0.0
        return objective.match(self.chosen.best.log_parameters) if varied else None

    @property
    def relevance(self) -> Array:
        """Relevances in units of the features, shape (d,); 0 for a feature that does not vary."""
        relevance = np.zeros(len(self.scaling.keep))
        relevance[self.scaling.keep] = self.posterior.relevance / arrays.to_numpy(self.scaling.scale)
        return relevance

    def covariance(self, rows: Array) -> Array:
        """Return the covariance of the labels at scaled rows, shape (m, m)."""
        return self.units.squared(self.posterior.covariance(rows))


def moments_table(fitted: FittedProcess) -> pd.DataFrame:
    """Return mean and standard deviation, over rows, of scaled labels and of what is predicted; in their units."""
    y_l = fitted.chosen.objective.y_l
    xp = arrays.namespace(y_l)
    moments = {"labels": (float(xp.mean(y_l)), float(xp.mean(y_l**2)))}
    if fitted.unlabelled.shape[0]:
        for name, (mean, spread) in (("without matching", fitted.plain), ("predicted", fitted.predicted)):
            moments[name] = (float(xp.mean(mean)), float(xp.mean(mean**2 + spread**2)))
    q = fitted.q
    if q is not None:
        second = (q.mean @ q.mean + xp.sum(q.root**2)) / q.mean.shape[0]
        moments["matched"] = (float(xp.mean(q.mean)), float(second))
    mean, square = np.array(list(moments.values())).T
    spread = np.sqrt(np.maximum(square - mean**2, 0.0)) * fitted.units.spread
    columns = {"mean": fitted.units.restore(mean), "standard deviation": spread}
    return pd.DataFrame(columns, index=list(moments))


def make_answer(sample: PartlyLabelled, fitted: FittedProcess) -> Answer:
    """Return the answer at the unlabelled rows."""
    (mean, spread), chosen = fitted.predicted, fitted.chosen
    reasons = (*REASONS, f"Parameters were chosen on the labels ({chosen.choice.why}).", INSTEAD)
    return Answer(
        rows=sample.unlabelled,
        values=fitted.units.restore(mean),
        status=np.full(mean.shape[0], "answered"),
        guarantee=Guarantee("none", reasons=reasons),
        standard_errors=spread * fitted.units.error,
        inductive=fitted.units.restore(fitted.plain[0]),
        index=None if sample.index is None else sample.index[sample.unlabelled],
        diagnostics={
            "choice": chosen.choice.why,
            "jitter": fitted.posterior.jitter,
            "starts": [end.message if isinstance(end, parameters.Descent) else end for end in chosen.ends],
            "objectives": [
                end.objective if isinstance(end, parameters.Descent) else np.nan for end in chosen.ends
            ],
        },
    )


def scale_rows(
    sample: PartlyLabelled, names: Sequence[str | int], *, standardize: bool
) -> tuple[Array, Scaling, Array]:
    """Return the rows, scaled or at least centred (small numbers are safer); how; and the spread of every feature."""
    # In an order of their own, so that the rounding of a mean does not depend on the order in which rows came.
    xp = arrays.namespace(sample.X)
    scaling, _ = Scaling.fit_apply(xp.take(sample.X, arrays.lexsort(sample.X), axis=0))
    rows = scaling.apply(sample.X)
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    shown = arrays.to_numpy(xp.std(arrays.pick(rows, sample.labelled), axis=0))
    narrow = np.flatnonzero((shown > 0.0) & (shown < 0.01))
    if len(narrow):
        warnings.warn(
            f"Feature {names[np.flatnonzero(scaling.keep)[narrow[0]]]!r} varies a hundred times less among the "
            "labelled rows than among all: a few far-off rows set its scale. Look at them; leave them out or transform "
            "the feature.",
            stacklevel=3,
        )
    if not standardize:
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
        rows = scaling.apply(sample.X)
    return rows, scaling, spread


def arrange_rows(
    rows: Array, labelled: Mask, y_l: Array, settings: TransductiveGPRegressor
) -> tuple[process.Objective, AnyArray, AnyArray]:
    """Return the objective of rows ordered by their values, so that how they came leaves no trace; and both orders."""
    xp, shown, unlabelled = arrays.namespace(rows), arrays.pick(rows, labelled), arrays.pick(rows, ~labelled)
    labels = arrays.beside(y_l, rows)
    order = arrays.to_numpy(arrays.lexsort(xp.concat([shown, labels[:, None]], axis=1)))
    matched = arrays.to_numpy(arrays.lexsort(unlabelled)) if unlabelled.shape[0] else np.empty(0, dtype=int)
    matched = matched[process.even_steps(len(matched), settings.max_matched)]
    used = xp.concat([arrays.pick(shown, order), arrays.pick(unlabelled, matched)])
    return process.Objective(used, arrays.pick(labels, order), settings.prior), order, matched


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveGPRegressor(NumberTransducer):
    """Gaussian process whose predictions at the unlabelled rows look, in mean and spread, like the labels seen.

    Le, Smola, Gartner, Altun (2006). Transductive Gaussian process regression with automatic model selection. ECML.

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
        Descents from random starts, besides the one from a rule; given up if they soon predict as that one does.
    max_iter, tol : int and float, default=200 and 1e-8
        A descent ends after so many steps, or when one lowers the objective by less than this share of it.
    solver : {"nested", "alternating"}, default="nested"
        How moments are matched: anew in every evaluation of the objective, or in turns with the parameters, as in
        the paper. Both lower the same objective at every step; the first needs several times fewer evaluations.
    max_matched : int, default=300
        With more unlabelled rows than this, the moments are matched at as many of them; all are answered.
    max_searched : int, default=2000
        With more labels, relevances and noise are searched on as many of them; the process then uses all labels.
    max_exact : int, default=3000
        With more labels than this, they tell of each other through 500 inducing points only: a row is then answered
        from 500 kernel values, not from as many as there are labels.
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
    transduction_, answer_
        Labels completed (n,); `Answer` with standard errors (noise included; NaN if all labels are equal), and the
        values without matching.
    relevance_ : array of shape (d,)
        Inverse length scales, in units of the features given: the kernel is ``exp(-sum (relevance_j dx_j)^2)``. 0 for
        a feature that does not vary.
    feature_spread_ : array of shape (d,)
        Standard deviation of each feature over all rows; ``relevance_ * feature_spread_`` compares features.
    noise_, matching_, slack_ : float
        Variance of the noise, in squared units of the labels; settings as used.
    matching_path_ : pandas.DataFrame
        With ``"cv"``: what was tried, with its cross-validated mean squared error (labels scaled to variance 1).
    objective_path_, n_iter_, converged_ : array, int, bool
        The objective after every step of the best descent, how many there were, and whether it ended by itself.
    log_marginal_likelihood_ : float
        Log density of the labels, scaled to mean 0 and variance 1.
    mean_, covariance_ : array of shape (m,) and (m, m)
        The predictive distribution p of the missing labels, noise included; the covariance is computed when asked for.
    matched_mean_, matched_covariance_, matched_rows_ : array
        The distribution q nearest to p that matches the moments, and the positions of its rows: up to `max_matched`.
    moments_ : pandas.DataFrame
        Mean and standard deviation of the labels: seen, predicted without matching, predicted (p), matched (q, at
        ``matched_rows_``).

    Notes
    -----
    A Gaussian process is a function, so that `predict` at an unlabelled row is ``transduction_`` there; at a labelled
    row ``transduction_`` holds the label and `predict` the process. One evaluation costs ``O(l^3 + l^2 d)``, with
    matching ``O(n^3 + n^2 d)``; a fit takes some hundred, with ``"cv"`` some hundred more for each fold.

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
    """

    matching: float | str = "cv"
    slack: float | str = "cv"
    prior: tuple[float, float] = (1.0, 0.5)
    relevance: bool = True
    n_restarts: int = 3
    max_iter: int = 200
    tol: float = 1e-8
    solver: str = "nested"
    max_matched: int = 300
    max_searched: int = 2000
    max_exact: int = 3000
    standardize: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the parameters and answer at the rows of X (n, d) whose label in y (n,) is missing."""
        sample = validation.read_sample(self, X, y, device=True)
        y_l = validation.numeric_labels(sample)
        settings = parameters.read_settings(self)
        parameters.announce_cost(min(len(y_l), settings.max_searched))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        rows, scaling, self.feature_spread_ = scale_rows(sample, names, standardize=settings.standardize)
        units = Units.of(y_l)
        objective, order, matched = arrange_rows(rows, sample.labelled, units.scale(y_l), settings)
        with few_threads(objective.X.shape[0] if settings.n_jobs in (None, 1) else 0):
            random, start = check_random_state(self.random_state), self.__dict__.pop("_start", None)
            chosen = parameters.find_parameters(objective, settings, random, start)
            parameters.warn_of_parameters(chosen)
            unlabelled = arrays.pick(rows, ~sample.labelled)
            fitted = self._fitted = FittedProcess.of(chosen, unlabelled, (order, matched), scaling, units)
        self.matched_rows_ = sample.unlabelled[np.sort(matched)]
        self.relevance_, self.noise_ = fitted.relevance, fitted.noise
        self.matching_, self.slack_ = chosen.choice.matching, chosen.choice.slack
        if chosen.choice.path is not None:
            self.matching_path_ = chosen.choice.path
        self.objective_path_, self.n_iter_ = chosen.best.path, chosen.best.n_iter
        self.converged_ = chosen.best.converged
        self.log_marginal_likelihood_ = fitted.posterior.log_likelihood
        self.answer_ = make_answer(sample, fitted)
        self.mean_ = self.answer_.values
        self.transduction_ = sample.complete(self.mean_)
        return self

    def continue_from(self, earlier: TransductiveGPRegressor, places: AnyArray) -> None:
        """Let the next fit begin at the parameters of an earlier one, to fewer labels of the same rows, and only there.

        The earlier one has the same settings; `places` (n,) say where each of its rows is among those of the next.
        """
        self._start = earlier._fitted.chosen.best.log_parameters

    # ------------------------------------------------------------------------------------------- attributes

    @property
    def covariance_(self) -> Array:
        """Covariance of the missing labels, shape (m, m)."""
        check_is_fitted(self)
        return self._fitted.covariance(self._fitted.unlabelled)

    @property
    def moments_(self) -> pd.DataFrame:
        """Mean and standard deviation of labels and predictions."""
        check_is_fitted(self)
        return moments_table(self._fitted)

    @property
    def matched_mean_(self) -> Array:
        """Mean of the matched distribution at ``matched_rows_``, in the order in which rows came, shape (k,)."""
        check_is_fitted(self)
        fitted = self._fitted
        if fitted.q is None:
            return fitted.units.restore(arrays.pick(fitted.predicted[0], np.sort(fitted.matched)))
        return fitted.units.restore(arrays.pick(fitted.q.mean, np.argsort(fitted.matched)))

    @property
    def matched_covariance_(self) -> Array:
        """Covariance of the matched distribution at ``matched_rows_``, shape (k, k)."""
        check_is_fitted(self)
        fitted = self._fitted
        if fitted.q is None:
            return fitted.covariance(arrays.pick(fitted.unlabelled, np.sort(fitted.matched)))
        root = arrays.pick(fitted.q.root, np.argsort(fitted.matched))
        return fitted.units.squared(root @ root.T)

    # ------------------------------------------------------------------------------------------- prediction

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the process at rows X (m, d), without transducing again.

        With `return_std` also the standard error (m,) of a label, noise included, or with `return_cov` the covariance
        (m, m) of the labels; not both.
        """
        rows, fitted = self._read_more(X), self._fitted
        if return_std and return_cov:
            raise RuntimeError("Ask for return_std or return_cov, not for both.")
        if return_std:
            mean, spread = fitted.posterior.predict(rows)
            return fitted.units.restore(mean), spread * fitted.units.error
        mean = fitted.units.restore(fitted.posterior.mean(rows))
        return (mean, fitted.covariance(rows)) if return_cov else mean

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return answers at labelled rows whose labels are hidden, without a whole fit for each fold.

        Folds are pairs (visible, hidden) of positions among the labelled rows. Up to 100 labels the parameters are
        searched with the visible labels, from two starts; up to 500 by at most 30 steps that begin at those of the fit;
        beyond they are those of the fit.

        >>> import numpy as np
        >>> from transduce import TransductiveGPRegressor
        >>> X, even, odd = np.linspace(0, 6, 25)[:, None], np.arange(0, 25, 2), np.arange(1, 25, 2)
        >>> y = np.sin(X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=25)
        >>> model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
        >>> bool(np.abs(model.answers_in_folds([(even, odd)])[0] - y[odd]).max() < 0.2)
        True
        """
        # Leave-one-out with the parameters of the fit has a closed form, but with few labels these parameters fit every
        # label too well for it to be of use.
        check_is_fitted(self)
        fitted = self._fitted
        with few_threads(len(fitted.order)):
            answers = parameters.answers_in_folds(fitted.chosen, fitted.order, folds)
        return [fitted.units.restore(part) for part in answers]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw labels (m, n_samples) at rows (m, d) from the predictive distribution, noise included."""
        checks.check_whole("n_samples", n_samples, least=1)
        rows, fitted = self._read_more(X), self._fitted
        factor, _ = guarded_cholesky(fitted.posterior.covariance(rows))
        drawn = check_random_state(random_state).normal(size=(rows.shape[0], n_samples))
        draws = factor @ arrays.beside(drawn, rows)
        return fitted.units.restore(fitted.posterior.mean(rows))[:, None] + fitted.units.error * draws

    def _read_more(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._fitted.scaling.apply(validation.read_rows(self, X, reset=False, device=True))
