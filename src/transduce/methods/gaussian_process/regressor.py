"""The moment-matched Gaussian process (Le, Smola, Gartner and Altun 2006)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, get_args

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Labels, Rows
from transduce.core.validation import NumberTransducer
from transduce.device.kernels import narrowed
from transduce.methods.gaussian_process.covariances import RADIAL, Covariance, KernelFeatures
from transduce.methods.gaussian_process.descents import Descent, Search, SearchOrder
from transduce.methods.gaussian_process.features import (
    Arrangement,
    arrange_rows,
    read_features,
)
from transduce.methods.gaussian_process.matching import choose_matching
from transduce.methods.gaussian_process.parameters import (
    FoundParameters,
    find_parameters,
    set_choice,
    warn_of_parameters,
)
from transduce.methods.gaussian_process.process import (
    InducedPosterior,
    Match,
    Objective,
    Posterior,
    fit_posterior,
)
from transduce.methods.gaussian_process.settings import (
    ProcessEstimator,
    announce_cost,
    read_settings,
)

log = logging.getLogger(__name__)

REASONS = (
    "Standard errors are the model's own: right if the labels are a Gaussian process with this "
    "kernel and noise.",
    "With few labels they tend to be too small.",
)
EQUAL_LABELS = (
    "All labels are equal: standard errors are 0, which is their spread, and say nothing about how "
    "far other labels may be."
)
INSTEAD = "For intervals with a guarantee, use ConformalTransducer or RidgeConfidenceMachine."

# --------------------------------------------------------------------------------------- parameters


FOLD_STEPS = 30  # from the parameters of all labels to those of a fold's
# With so few labels the parameters of all remember each of them, and a short descent does not
# forget.
FROM_SCRATCH = 100
MOST_DESCENDED = 500  # with more labels the parameters of all stand in for those of a fold


def answers_in_folds(
    chosen: FoundParameters[Objective],
    order: AnyArray,
    folds: Sequence[tuple[AnyArray, AnyArray]],
    max_exact: int,
) -> list[Array]:
    """Return the process at the hidden rows of each fold, with parameters of its visible labels.

    `order` (l,) are the labelled rows in the order of the objective.
    """
    n_labelled = len(order)
    place = np.argsort(order)
    whole = chosen.objective
    if whole.looks_at_unlabelled:
        X = whole.X
    else:
        X = whole.X[:n_labelled, :]
    if chosen.has_common_relevance(X) and whole.covariance.name in RADIAL:
        X = narrowed(X)
    X_l = X[:n_labelled, :]
    X_rest = X[n_labelled:, :]
    labels = arrays.to_numpy(whole.y_l)
    answers = []
    for visible, hidden in folds:
        shown = np.sort(place[visible])
        mean, spread = label_moments(labels[shown])
        X_v = arrays.pick(X_l, shown)
        y_v = arrays.asarray_like((labels[shown] - mean) / spread, X_l)
        parameters = chosen.best.log_parameters
        if n_labelled <= MOST_DESCENDED:
            rows = arrays.namespace(X_l).concat([X_v, X_rest])
            objective = replace(whole, X=rows, y_l=y_v)
            from_scratch = n_labelled <= FROM_SCRATCH
            parameters = _parameters_of_fold(chosen, objective, from_scratch=from_scratch)
        posterior = fit_posterior(X_v, y_v, parameters, max_exact, whole.covariance)
        predicted = posterior.mean(arrays.pick(X_l, place[hidden]))
        answers.append(predicted * float(spread) + float(mean))
    return answers


def _parameters_of_fold(
    chosen: FoundParameters[Objective], objective: Objective, *, from_scratch: bool
) -> Array:
    """Return parameters for a fold's labels.

    By a short descent from those of all labels or, from scratch, from the two rules for a start.
    """
    if not from_scratch:
        short = replace(chosen.search, max_iter=FOLD_STEPS, tolerance=1e-5)
        return short.descend(objective, chosen.best.log_parameters).log_parameters
    search = Search.at(
        objective.X[: objective.y_l.shape[0], :],
        objective.y_l,
        common=chosen.has_common_relevance(objective.X),
        solver=chosen.search.solver,
        max_iter=chosen.search.max_iter,
        tolerance=1e-5,
    )
    best, _ = search.best(objective, [search.start, search.wiggly], None)
    return best.log_parameters


# ------------------------------------------------------------------------------------------ answers


@dataclass(frozen=True)
class Units:
    """Mean and spread of the labels, which scaled labels have lost."""

    mean: float
    spread: float
    error: float  # the spread; 0 if all labels are equal

    @classmethod
    def of(cls, y_l: Array) -> Units:
        """Take them from the labels."""
        mean, spread = label_moments(np.sort(y_l))
        units = cls(float(mean), float(spread), float(spread))
        if np.ptp(y_l) > 0.0:
            return units
        return replace(units, error=0.0)

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

    chosen: FoundParameters[Objective]  # the parameters, and how they were found
    scaling: Scaling | KernelFeatures  # of the features
    units: Units  # of the labels
    unlabelled: Array  # (m, d) scaled rows at which the answer was wanted
    order: AnyArray  # (l,) the labelled rows in the order of the posterior
    # (k,) which of the unlabelled rows moments were matched at, in the order of `q`.
    matched: AnyArray
    max_exact: int  # labels up to which the process is exact

    @cached_property
    def posterior(self) -> Posterior | InducedPosterior:
        """The process of scaled labels at scaled rows."""
        return self.posterior_of(self.chosen.best)

    def posterior_of(self, descent: Descent) -> Posterior | InducedPosterior:
        """Return the process with the parameters at which a descent ended."""
        objective = self.chosen.objective
        y_l = objective.y_l
        X_l = objective.X[: y_l.shape[0], :]
        parameters = descent.log_parameters
        return fit_posterior(X_l, y_l, parameters, self.max_exact, objective.covariance)

    @cached_property
    def predicted(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the missing labels, shape (m,)."""
        return self.posterior.predict(self.unlabelled)

    @cached_property
    def plain(self) -> tuple[Array, Array]:
        """The same without matching."""
        if self.chosen.plain is self.chosen.best:
            return self.predicted
        return self.posterior_of(self.chosen.plain).predict(self.unlabelled)

    @cached_property
    def q(self) -> Match | None:
        """The matched distribution, when first asked for: a blend never asks."""
        objective = self.chosen.objective
        if not isinstance(self.posterior, Posterior) or len(self.matched) == 0:
            return None
        if np.ptp(arrays.to_numpy(objective.y_l)) == 0.0:
            return None
        return objective.match(self.chosen.best.log_parameters)

    @property
    def kernel_scale(self) -> float:
        """By what the kernel that was given is multiplied, labels having variance 1."""
        if not isinstance(self.scaling, KernelFeatures):
            return 1.0
        relevance = float(self.posterior.relevance[0])
        return relevance**2 / self.scaling.mean_variance

    @property
    def relevance(self) -> Array | None:
        """Relevances in units of the features, shape (d,); 0 for a feature that does not vary."""
        if isinstance(self.scaling, KernelFeatures):
            return None
        scale = arrays.to_numpy(self.scaling.scale)
        relevance = np.zeros(len(self.scaling.keep))
        relevance[self.scaling.keep] = self.posterior.relevance / scale
        return relevance

    def covariance(self, rows: Array) -> Array:
        """Return the covariance of the labels at scaled rows, shape (m, m)."""
        return self.in_squared_units(self.posterior.covariance(rows))

    def in_squared_units(self, scaled: Array) -> Array:
        """Return a scaled covariance in squared units of the labels, or raise if too large."""
        covariance = self.units.squared(scaled)
        if not np.isfinite(arrays.farthest(covariance)):
            raise ValueError(
                "The covariance, in squared units of the labels, is too large for double "
                "precision: divide the labels by a constant first."
            )
        return covariance


def moments_table(fitted: FittedProcess) -> pd.DataFrame:
    """Return mean and standard deviation over rows, of the labels and of what is predicted."""
    y_l = fitted.chosen.objective.y_l
    xp = arrays.namespace(y_l)
    moments = {"labels": (float(xp.mean(y_l)), float(xp.mean(y_l**2)))}
    if fitted.unlabelled.shape[0]:
        moments["without matching"] = _moments(*fitted.plain)
        moments["predicted"] = _moments(*fitted.predicted)
    q = fitted.q
    if q is not None:
        sum_of_squares = q.mean @ q.mean + xp.sum(q.root**2)
        mean_square = sum_of_squares / q.mean.shape[0]
        moments["matched"] = (float(xp.mean(q.mean)), float(mean_square))
    mean, square = np.array(list(moments.values())).T
    spread = np.sqrt(np.maximum(square - mean**2, 0.0)) * fitted.units.spread
    columns = {"mean": fitted.units.restore(mean), "standard deviation": spread}
    return pd.DataFrame(columns, index=list(moments))


def _moments(mean: Array, spread: Array) -> tuple[float, float]:
    """Return the mean over rows of labels and of their squares, given mean and spread of each."""
    xp = arrays.namespace(mean)
    return float(xp.mean(mean)), float(xp.mean(mean**2 + spread**2))


def make_answer(sample: PartlyLabelled, fitted: FittedProcess) -> Answer:
    """Return the answer at the unlabelled rows."""
    chosen = fitted.chosen
    mean, spread = fitted.predicted
    plain_mean, _ = fitted.plain
    reasons = [*REASONS, f"Parameters were chosen on the labels ({chosen.choice.why}).", INSTEAD]
    if fitted.units.error == 0.0:
        reasons = [EQUAL_LABELS, *reasons]
    return Answer(
        rows=sample.unlabelled,
        values=fitted.units.restore(mean),
        status=np.full(mean.shape[0], "answered"),
        guarantee=Guarantee("none", reasons=tuple(reasons)),
        standard_errors=spread * fitted.units.error,
        inductive=fitted.units.restore(plain_mean),
        index=sample.index_at(sample.unlabelled),
        diagnostics={
            "choice": chosen.choice.why,
            "jitter": fitted.posterior.jitter,
            "starts": [getattr(end, "message", end) for end in chosen.ends],
            "objectives": [getattr(end, "objective", np.nan) for end in chosen.ends],
        },
    )


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveGPRegressor(ProcessEstimator, NumberTransducer):
    """Gaussian process whose predictions look, in mean and spread, like the labels seen.

    Le, Smola, Gartner, Altun (2006). Transductive Gaussian process regression with automatic model
    selection. ECML.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Covariance of the process: ``"rbf"``, the paper's, ``"exponential"``, ``"matern32"``,
        ``"matern52"`` and ``"linear"``, all with relevances; ``"precomputed"``, where X is the
        kernel matrix (n, n) of all rows, such as one of a graph; or a function of two rows. Of the
        last two only the size is found, besides the noise.
    matching : float or "cv", default="cv"
        Weight of the match between predicted and seen labels. 0 is plain Gaussian process
        regression with the parameters at their posterior maximum. ``"cv"`` chooses by transductive
        cross-validation among the labelled rows; 0 is one of the choices, and any other must be
        better by more than one standard error.
    slack : float or "cv", default="cv"
        How loose the match may be: 0 for equal moments, from about 1 on hardly any match.
    epsilon : float or None, default=None
        In place of the slack, how far the moments may be from those of the labels: the distance of
        (mean, -1/2 mean square), of labels scaled to mean 0 and variance 1 (the paper's equation
        5). Within it nothing is matched; nor is it anywhere where ``matching="cv"`` chooses 0.
    prior : tuple of two floats, default=(1.0, 0.5)
        ``a`` and ``b`` of the prior ``-log p(x) = -a log x + b x`` of each relevance and of the
        noise, in units of scaled features and labels. ``(0, 0)`` is maximum likelihood.
    relevance : bool, default=True
        Whether each feature has a relevance of its own; otherwise one is common to all.
    n_restarts : int, default=3
        Descents from random starts, besides the one from a rule; given up if they soon predict as
        that one does.
    max_iter, tol : int and float, default=200 and 1e-8
        A descent ends after so many steps, or when one lowers the objective by less than this share
        of it.
    solver : {"nested", "alternating"}, default="nested"
        How moments are matched: anew in every evaluation of the objective, or in turns with the
        parameters, as in the paper. Both lower the same objective at every step; the first needs
        several times fewer evaluations.
    max_matched : int, default=300
        With more unlabelled rows than this, the moments are matched at as many of them; all are
        answered.
    max_searched : int, default=2000
        With more labels, relevances and noise are searched on as many of them; the process then
        uses all labels.
    max_exact : int, default=3000
        With more labels than this, they tell of each other through 500 inducing points only: a row
        is then answered from 500 kernel values, not from as many as there are labels.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`,
        but for a few that are far from all others.
    n_jobs : int or None, default=None
        Restarts and folds that run at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_
        Labels completed (n,); `Answer` with standard errors (noise included; 0 if all labels are
        equal), and the values without matching.
    relevance_ : array of shape (d,)
        Inverse length scales, in units of the features given: the kernel is ``exp(-sum (relevance_j
        dx_j)^2)``, or another function of that sum. 0 for a feature that does not vary.
    kernel_scale_ : float
        Instead, with a kernel of one's own: by what it is multiplied, labels having variance 1.
    feature_spread_ : array of shape (d,)
        Standard deviation of each feature over all rows, but for a few that are far from all
        others; ``relevance_ * feature_spread_`` compares features.
    noise_, matching_, slack_ : float
        Variance of the noise, in squared units of the labels; settings as used.
    matching_path_ : pandas.DataFrame
        With ``"cv"``: what was tried, with its cross-validated mean squared error (labels scaled to
        variance 1).
    objective_path_, n_iter_, converged_ : array, int, bool
        The objective after every step of the best descent, how many there were, and whether it
        ended by itself.
    log_marginal_likelihood_ : float
        Log density of the labels, scaled to mean 0 and variance 1.
    mean_, covariance_ : array of shape (m,) and (m, m)
        The predictive distribution p of the missing labels, noise included; the covariance is
        computed when asked for.
    matched_mean_, matched_covariance_, matched_rows_ : array
        The distribution q nearest to p that matches the moments, and the positions of its rows: up
        to `max_matched`.
    moments_ : pandas.DataFrame
        Mean and standard deviation of the labels: seen, predicted without matching, predicted (p),
        matched (q, at ``matched_rows_``).

    Notes
    -----
    A Gaussian process is a function, so that `predict` at an unlabelled row is ``transduction_``
    there; at a labelled row ``transduction_`` holds the label and `predict` the mean of the
    process, from which the label differs by its noise. One evaluation of the objective costs
    ``O(l^3 + l^2 d)``, with matching ``O(n^3 + n^2 d)``; a fit takes some hundred evaluations, and
    ``"cv"`` some hundred more for each fold.

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

    solver: SearchOrder = "nested"
    max_exact: int = 3000

    def fit(self, X: Rows, y: Labels) -> Self:
        """Choose the parameters, and predict rows of X (n, d) whose label in y (n,) is missing."""
        sample = validation.read_sample(self, X, y, device=True)
        y_l = validation.numeric_labels(sample)
        checks.check_choice("solver", self.solver, get_args(SearchOrder))
        checks.check_whole("max_exact", self.max_exact, least=1)
        settings = read_settings(self)
        announce_cost(min(len(y_l), settings.max_searched))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        features = read_features(sample, names, settings)
        self.feature_spread_ = features.spread
        units = Units.of(y_l)
        scaled = (y_l - units.mean) / units.spread
        arranged = arrange_rows(features, sample.labelled, scaled, settings.max_matched)
        n_rows = arranged.rows.shape[0]
        if settings.n_jobs not in (None, 1):
            n_rows = 0
        with few_threads(n_rows):
            chosen = self._find_parameters(arranged, features.covariance, settings)
            warn_of_parameters(chosen)
            if units.error == 0.0:
                warnings.warn(EQUAL_LABELS, stacklevel=2)
            self._fitted = FittedProcess(
                chosen=chosen,
                scaling=features.scaling,
                units=units,
                unlabelled=arrays.pick(features.rows, ~sample.labelled),
                order=arranged.order,
                matched=arranged.matched,
                max_exact=settings.max_exact,
            )
            self.answer_ = make_answer(sample, self._fitted)
        self.matched_rows_ = sample.unlabelled[np.sort(arranged.matched)]
        self._set_parameters(self._fitted)
        self.mean_ = self.answer_.values
        self.transduction_ = sample.complete(self.mean_)
        return self

    def _find_parameters(
        self, arranged: Arrangement, covariance: Covariance, settings: TransductiveGPRegressor
    ) -> FoundParameters[Objective]:
        """Choose the parameters, from a start that `continue_from` has set or from the rules."""
        objective = Objective(
            arranged.rows,
            arranged.labels,
            settings.prior,
            covariance=covariance,
            epsilon=settings.epsilon,
        )
        start = self.__dict__.pop("_start", None)
        return find_parameters(
            objective,
            settings,
            check_random_state(self.random_state),
            choose=choose_matching,
            start=start,
            solver=settings.solver,
        )

    def _set_parameters(self, fitted: FittedProcess) -> None:
        """Set what was chosen, and how it was found."""
        noise = np.exp(fitted.chosen.best.log_parameters)[-1]
        if fitted.relevance is None:
            self.kernel_scale_ = fitted.kernel_scale
        else:
            self.relevance_ = fitted.relevance
        self.noise_ = float(fitted.units.squared(noise))
        set_choice(self, fitted.chosen)
        self.log_marginal_likelihood_ = fitted.posterior.log_likelihood

    def continue_from(self, earlier: TransductiveGPRegressor, places: AnyArray) -> None:
        """Let the next fit begin at the parameters of an earlier one, and only there.

        The earlier fit was to fewer labels of the same rows.
        The earlier one has the same settings; `places` (n,) say where each of its rows is among
        those of the next.
        """
        self._start = earlier._fitted.chosen.best.log_parameters

    # ---------------------------------------------------------------------------------- attributes

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
        """Mean of the matched distribution at ``matched_rows_``, in their order, shape (k,)."""
        check_is_fitted(self)
        fitted = self._fitted
        if fitted.q is None:
            predicted, _ = fitted.predicted
            scaled = arrays.pick(predicted, np.sort(fitted.matched))
        else:
            scaled = arrays.pick(fitted.q.mean, np.argsort(fitted.matched))
        return fitted.units.restore(scaled)

    @property
    def matched_covariance_(self) -> Array:
        """Covariance of the matched distribution at ``matched_rows_``, shape (k, k)."""
        check_is_fitted(self)
        fitted = self._fitted
        if fitted.q is None:
            return fitted.covariance(arrays.pick(fitted.unlabelled, np.sort(fitted.matched)))
        root = arrays.pick(fitted.q.root, np.argsort(fitted.matched))
        return fitted.in_squared_units(root @ root.T)

    # ---------------------------------------------------------------------------------- prediction

    def predict(
        self, X: Rows, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the process at rows X (m, d), without transducing again.

        With `return_std` also the standard error (m,) of a label, noise included, or with
        `return_cov` the covariance (m, m) of the labels; not both.
        """
        rows = self._read_more(X)
        fitted = self._fitted
        if return_std and return_cov:
            raise RuntimeError("Ask for return_std or return_cov, not for both.")
        if (return_std or return_cov) and isinstance(fitted.scaling, KernelFeatures):
            raise ValueError(
                "A kernel of your own does not tell how uncertain new rows are: give them to fit, "
                "whose answer_ has standard errors."
            )
        if return_std:
            mean, spread = fitted.posterior.predict(rows)
            return fitted.units.restore(mean), spread * fitted.units.error
        mean = fitted.units.restore(fitted.posterior.mean(rows))
        if return_cov:
            return mean, fitted.covariance(rows)
        return mean

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return predictions at labelled rows whose labels are hidden, by folds.

        Folds are pairs (visible, hidden) of positions among the labelled rows; none takes a whole
        fit. Up to 100 labels the parameters are searched with the visible labels, from two starts;
        up to 500 by at most 30 steps that begin at those of the fit; beyond they are those of the
        fit.

        >>> import numpy as np
        >>> from transduce import TransductiveGPRegressor
        >>> X, even, odd = np.linspace(0, 6, 25)[:, None], np.arange(0, 25, 2), np.arange(1, 25, 2)
        >>> y = np.sin(X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=25)
        >>> model = TransductiveGPRegressor(matching=0, random_state=0).fit(X, y)
        >>> bool(np.abs(model.answers_in_folds([(even, odd)])[0] - y[odd]).max() < 0.2)
        True
        """
        # Leave-one-out with the parameters of the fit has a closed form, but with few labels these
        # parameters fit every label too well for it to be of use.
        check_is_fitted(self)
        fitted = self._fitted
        with few_threads(len(fitted.order)):
            answers = answers_in_folds(fitted.chosen, fitted.order, folds, fitted.max_exact)
        return [fitted.units.restore(part) for part in answers]

    def _read_more(self, X: Rows) -> Array:
        """Return new rows scaled as those of `fit` were."""
        check_is_fitted(self)
        rows = validation.read_rows(self, X, reset=False, device=True)
        return self._fitted.scaling.apply(rows)
