"""The moment-matched Gaussian process (Le, Smola, Gartner and Altun 2006)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import NumberTransducer
from transduce.device import memory
from transduce.device.kernels import narrowed
from transduce.methods.gaussian_process.covariances import (
    RADIAL,
    Covariance,
    KernelChoice,
    KernelFeatures,
    check_kernel,
    is_fixed,
)
from transduce.methods.gaussian_process.descents import NOISE_BOUNDS, Descent, Search
from transduce.methods.gaussian_process.matching import (
    MatchingChoice,
    MatchingSettings,
    choose_matching,
)
from transduce.methods.gaussian_process.process import (
    InducedPosterior,
    Match,
    Objective,
    Posterior,
    even_steps,
    fit_posterior,
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
# Beyond, squares of features are infinite, and so are the distances of rows.
LARGEST_FEATURE = 1e150
INSTEAD = "For intervals with a guarantee, use ConformalTransducer or RidgeConfidenceMachine."

# --------------------------------------------------------------------------------------- parameters


def read_settings(given: TransductiveGPRegressor) -> TransductiveGPRegressor:
    """Return a copy of an estimator's settings, checked, or raise a ValueError that names one."""
    least = {"n_restarts": 0, "max_iter": 1, "max_matched": 1, "max_searched": 2, "max_exact": 1}
    matching = _read_number_or_cv("matching", given.matching)
    slack = _read_number_or_cv("slack", given.slack)
    prior = _read_prior(given.prior)
    for name, number in least.items():
        checks.check_whole(name, getattr(given, name), least=number)
    checks.check_whole("n_restarts", given.n_restarts, least=0, most=10_000)
    checks.check_positive("tol", given.tol)
    checks.check_jobs(given.n_jobs)
    checks.check_choice("solver", given.solver, ("nested", "alternating"))
    checks.check_flag("relevance", given.relevance)
    checks.check_flag("standardize", given.standardize)
    check_kernel(given.kernel)
    epsilon = given.epsilon
    if epsilon is not None:
        epsilon = checks.check_not_negative("epsilon", epsilon, "None or a number from 0")
        if not checks.is_one_of(slack, "cv"):
            raise ValueError("epsilon takes the place of slack: leave slack='cv'.")
    has_relevances = given.relevance and not is_fixed(given.kernel)
    return replace(
        given,
        matching=matching,
        slack=slack,
        epsilon=epsilon,
        prior=prior,
        relevance=has_relevances,
    )


def _read_number_or_cv(name: str, value: float | str) -> float | str:
    """Return a number from 0, or "cv"."""
    if checks.is_one_of(value, "cv"):
        return value
    checks.check_number(f"{name} (a number from 0, or 'cv')", value)
    return checks.check_not_negative(name, value, "'cv' or a number from 0")


def _read_prior(prior: tuple[float, float]) -> tuple[float, float]:
    """Return the two numbers of the prior."""
    if np.size(prior) != 2:
        raise ValueError(f"prior must be two numbers from 0, such as (1.0, 0.5); got {prior!r}.")
    for value in prior:
        checks.check_number("Each of the two numbers of prior", value)
        checks.check_not_negative("Each of the two numbers of prior", value, "a number from 0")
    shape, rate = prior
    return float(shape), float(rate)


def announce_cost(n_labelled: int) -> None:
    """Warn before gigabytes are taken; `n_labelled` are those on which parameters are searched."""
    memory.announce(
        4 * 8.0 * n_labelled**2,
        0.0,
        None,
        f"A Gaussian process with {n_labelled:,} labels",
        "It takes hundreds of Cholesky factors; TransductiveRidge(centres=500) needs far less.",
    )


FOLD_STEPS = 30  # from the parameters of all labels to those of a fold's
# With so few labels the parameters of all remember each of them, and a short descent does not
# forget.
FROM_SCRATCH = 100
MOST_DESCENDED = 500  # with more labels the parameters of all stand in for those of a fold


class FoundParameters(NamedTuple):
    """Parameters, and how they were found."""

    best: Descent  # the lowest descent with the matching that was chosen
    plain: Descent  # the lowest descent without matching
    ends: list[Descent | str]  # how the descent from each start ended
    objective: Objective  # what the best one minimises
    search: Search
    choice: MatchingChoice
    max_exact: int  # labels up to which the process is exact

    def has_common_relevance(self, X: Array) -> bool:
        """Return whether the features of rows (n, d) share one relevance."""
        return len(self.search.start) <= X.shape[1]

    def posterior(self, descent: Descent) -> Posterior | InducedPosterior:
        """Return the process with the parameters at which a descent ended."""
        y_l = self.objective.y_l
        X_l = self.objective.X[: y_l.shape[0], :]
        covariance = self.objective.covariance
        return fit_posterior(X_l, y_l, descent.log_parameters, self.max_exact, covariance)


def find_parameters(
    objective: Objective,
    settings: TransductiveGPRegressor,
    random: np.random.RandomState,
    start: Array | None = None,
) -> FoundParameters:
    """Search without matching; choose how hard to match; search with it.

    A `start` that is known to be good takes the place of the rule and of all restarts.
    """
    n_jobs = settings.n_jobs
    has_common_relevance = not settings.relevance
    whole = objective
    objective = whole.thinned(settings.max_searched, whole.X.shape[0])
    sees_distances = objective.covariance.name in RADIAL
    if has_common_relevance and sees_distances and settings.matching != 0:
        # The kernel sees distances only, here of many sets of rows.
        objective = replace(objective, X=narrowed(objective.X))
    search = Search.at(
        objective.X,
        objective.y_l,
        common=has_common_relevance,
        solver=settings.solver,
        max_iter=settings.max_iter,
        tolerance=settings.tol,
    )
    log.info("parameters without matching")
    if start is None:
        n_restarts = settings.n_restarts
        start = search.start
    else:
        n_restarts = 0
    restarts = search.restarts(objective, n_restarts, random, n_jobs)
    plain, ends = search.best(objective, [start, *restarts], n_jobs)
    best = plain
    wanted = MatchingSettings.of(settings.matching, settings.slack, settings.epsilon, n_jobs)
    choice = choose_matching(objective, wanted, search, plain.log_parameters)
    log.info(choice.why)
    objective = replace(objective, matching=choice.matching, slack=choice.slack)
    if objective.looks_at_unlabelled:
        log.info("parameters with matching=%g, slack=%g", choice.matching, choice.slack)
        restarts = search.restarts(objective, n_restarts, random, n_jobs)
        starts = [plain.log_parameters, search.start, *restarts]
        best, ends = search.best(objective, starts, n_jobs)
    objective = replace(objective, X=whole.X, y_l=whole.y_l)
    return FoundParameters(best, plain, ends, objective, search, choice, settings.max_exact)


def answers_in_folds(
    chosen: FoundParameters, order: AnyArray, folds: Sequence[tuple[AnyArray, AnyArray]]
) -> list[Array]:
    """Return the process at the hidden rows of each fold, with parameters of its visible labels.

    `order` (l,) are the labelled rows in the order of the objective.
    """
    n_labelled = len(order)
    place = np.argsort(order)
    whole = chosen.objective
    X = whole.X if whole.looks_at_unlabelled else whole.X[:n_labelled, :]
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
        y_v = arrays.beside((labels[shown] - mean) / spread, X_l)
        parameters = chosen.best.log_parameters
        if n_labelled <= MOST_DESCENDED:
            rows = arrays.namespace(X_l).concat([X_v, X_rest])
            objective = replace(whole, X=rows, y_l=y_v)
            from_scratch = n_labelled <= FROM_SCRATCH
            parameters = _parameters_of_fold(chosen, objective, from_scratch=from_scratch)
        posterior = fit_posterior(X_v, y_v, parameters, chosen.max_exact, whole.covariance)
        predicted = posterior.mean(arrays.pick(X_l, place[hidden]))
        answers.append(predicted * float(spread) + float(mean))
    return answers


def _parameters_of_fold(
    chosen: FoundParameters, objective: Objective, *, from_scratch: bool
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


def warn_of_parameters(chosen: FoundParameters) -> None:
    """Say what a user should know of how the parameters were found."""
    best = chosen.best
    if not best.converged:
        warnings.warn(
            f"The parameters {best.message} before they settled: raise max_iter, or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if np.ptp(arrays.to_numpy(chosen.objective.y_l)) == 0.0:
        return
    bounds = chosen.search.bounds
    if np.any(best.log_parameters[:-1] > bounds[:-1, 1] - 1e-3):
        warnings.warn(
            "A relevance ran into its upper bound: rows no longer tell of each other. "
            "Match less, or give a prior whose second number is larger.",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif best.log_parameters[-1] < bounds[-1, 0] + 1e-3:
        warnings.warn(
            f"The noise ran into its lower bound, {NOISE_BOUNDS[0]:g} of the labels' variance: "
            "the labels look like an exact function of the features. If they are not, a prior "
            "whose first number is larger keeps the noise away from 0.",
            ConvergenceWarning,
            stacklevel=3,
        )


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

    chosen: FoundParameters  # the parameters, and how they were found
    scaling: Scaling | KernelFeatures  # of the features
    units: Units  # of the labels
    unlabelled: Array  # (m, d) scaled rows at which the answer was wanted
    order: AnyArray  # (l,) the labelled rows in the order of the posterior
    # (k,) which of the unlabelled rows moments were matched at, in the order of `q`.
    matched: AnyArray

    @cached_property
    def posterior(self) -> Posterior | InducedPosterior:
        """The process of scaled labels at scaled rows."""
        return self.chosen.posterior(self.chosen.best)

    @cached_property
    def predicted(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the missing labels, shape (m,)."""
        return self.posterior.predict(self.unlabelled)

    @cached_property
    def plain(self) -> tuple[Array, Array]:
        """The same without matching."""
        if self.chosen.plain is self.chosen.best:
            return self.predicted
        return self.chosen.posterior(self.chosen.plain).predict(self.unlabelled)

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
        index=None if sample.index is None else sample.index[sample.unlabelled],
        diagnostics={
            "choice": chosen.choice.why,
            "jitter": fitted.posterior.jitter,
            "starts": [getattr(end, "message", end) for end in chosen.ends],
            "objectives": [getattr(end, "objective", np.nan) for end in chosen.ends],
        },
    )


def scale_rows(
    sample: PartlyLabelled, names: Sequence[str | int], *, standardize: bool
) -> tuple[Array, Scaling, Array]:
    """Return the scaled rows, how they were scaled, and the spread of every feature (d,).

    Without `standardize` rows are centred all the same: small numbers are safer.
    """
    # In an order of their own, so that the rounding of a mean does not depend on the order in which
    # rows came.
    xp = arrays.namespace(sample.X)
    ordered = xp.take(sample.X, arrays.lexsort(sample.X), axis=0)
    scaling, _ = Scaling.fit_apply(ordered)
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    _warn_of_narrow_features(sample, scaling, names)
    if not standardize:
        if arrays.farthest(sample.X) > LARGEST_FEATURE:
            raise ValueError(
                f"Features beyond {LARGEST_FEATURE:g} are too large for standardize=False: "
                "set standardize=True, or divide them by a constant first."
            )
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
    return scaling.apply(sample.X), scaling, spread


def _warn_of_narrow_features(
    sample: PartlyLabelled, scaling: Scaling, names: Sequence[str | int]
) -> None:
    """Warn of a feature that hardly varies among the labelled rows."""
    labelled_rows = scaling.apply(arrays.pick(sample.X, sample.labelled))
    spread = arrays.to_numpy(arrays.namespace(sample.X).std(labelled_rows, axis=0))
    narrow = np.flatnonzero((spread > 0.0) & (spread < 0.01))
    if len(narrow) == 0:
        return
    feature = np.flatnonzero(scaling.keep)[narrow[0]]
    warnings.warn(
        f"Feature {names[feature]!r} varies a hundred times less among the labelled rows than "
        "among all: a few far-off rows set its scale. Look at them; leave them out or transform "
        "the feature.",
        stacklevel=4,
    )


class Features(NamedTuple):
    """Rows as the process sees them."""

    rows: Array  # (n, d)
    keys: Array  # (n, k) numbers by which rows are put in order
    scaling: Scaling | KernelFeatures  # how new rows become such
    covariance: Covariance
    spread: Array  # (d,) of the features given


def read_features(
    sample: PartlyLabelled, names: Sequence[str | int], settings: TransductiveGPRegressor
) -> Features:
    """Scale the rows, or give them features whose inner products are the kernel given."""
    check_kernel(settings.kernel, sample.X)
    if is_fixed(settings.kernel):
        kernel_map, features, keys = KernelFeatures.fit_apply(sample.X, settings.kernel)
        spread = np.std(sample.X, axis=0)
        return Features(features, keys, kernel_map, Covariance("linear"), spread)
    rows, scaling, spread = scale_rows(sample, names, standardize=settings.standardize)
    return Features(rows, rows, scaling, Covariance(str(settings.kernel)), spread)


class Arrangement(NamedTuple):
    """Rows in an order of their own, so that the order in which they came leaves no trace."""

    rows: Array  # (l + k, d) labelled rows first, then those at which moments are matched
    labels: Array  # (l,) labels
    order: AnyArray  # (l,) where the labelled rows are among those given
    matched: AnyArray  # (k,) where the others are among the unlabelled rows given


def arrange_rows(features: Features, labelled: Mask, y_l: Array, max_matched: int) -> Arrangement:
    """Put labelled and unlabelled rows in order, and thin the latter at even steps."""
    rows = features.rows
    xp = arrays.namespace(rows)
    labels = arrays.beside(y_l, rows)
    keys_l = arrays.pick(features.keys, labelled)
    with_labels = xp.concat([keys_l, labels[:, None]], axis=1)
    order = arrays.to_numpy(arrays.lexsort(with_labels))
    matched = np.empty(0, dtype=int)
    if not labelled.all():
        keys_a = arrays.pick(features.keys, ~labelled)
        matched = arrays.to_numpy(arrays.lexsort(keys_a))
    matched = matched[even_steps(len(matched), max_matched)]
    shown = arrays.pick(arrays.pick(rows, labelled), order)
    unlabelled = arrays.pick(arrays.pick(rows, ~labelled), matched)
    used = xp.concat([shown, unlabelled])
    return Arrangement(used, arrays.pick(labels, order), order, matched)


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveGPRegressor(NumberTransducer):
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
        5). Within it nothing is matched.
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

    kernel: KernelChoice = "rbf"
    matching: float | str = "cv"
    slack: float | str = "cv"
    epsilon: float | None = None
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
        """Choose the parameters, and predict rows of X (n, d) whose label in y (n,) is missing."""
        sample = validation.read_sample(self, X, y, device=True)
        y_l = validation.numeric_labels(sample)
        settings = read_settings(self)
        announce_cost(min(len(y_l), settings.max_searched))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        features = read_features(sample, names, settings)
        self.feature_spread_ = features.spread
        units = Units.of(y_l)
        scaled = (y_l - units.mean) / units.spread
        arranged = arrange_rows(features, sample.labelled, scaled, settings.max_matched)
        objective = Objective(
            arranged.rows,
            arranged.labels,
            settings.prior,
            covariance=features.covariance,
            epsilon=settings.epsilon,
        )
        start = self.__dict__.pop("_start", None)
        random = check_random_state(self.random_state)
        is_parallel = settings.n_jobs not in (None, 1)
        with few_threads(0 if is_parallel else objective.X.shape[0]):
            chosen = find_parameters(objective, settings, random, start)
            warn_of_parameters(chosen)
            if units.error == 0.0:
                warnings.warn(EQUAL_LABELS, stacklevel=2)
            fitted = FittedProcess(
                chosen=chosen,
                scaling=features.scaling,
                units=units,
                unlabelled=arrays.pick(features.rows, ~sample.labelled),
                order=arranged.order,
                matched=arranged.matched,
            )
            self._fitted = fitted
            self.answer_ = make_answer(sample, fitted)
        self.matched_rows_ = sample.unlabelled[np.sort(arranged.matched)]
        self._set_parameters(fitted)
        self.mean_ = self.answer_.values
        self.transduction_ = sample.complete(self.mean_)
        return self

    def _set_parameters(self, fitted: FittedProcess) -> None:
        """Set what was chosen, and how it was found."""
        best = fitted.chosen.best
        choice = fitted.chosen.choice
        noise = np.exp(best.log_parameters)[-1]
        if fitted.relevance is None:
            self.kernel_scale_ = fitted.kernel_scale
        else:
            self.relevance_ = fitted.relevance
        self.noise_ = float(fitted.units.squared(noise))
        self.matching_ = choice.matching
        self.slack_ = choice.slack
        if choice.path is not None:
            self.matching_path_ = choice.path
        self.objective_path_ = best.path
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
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
        self, X: Any, return_std: bool = False, return_cov: bool = False
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
            answers = answers_in_folds(fitted.chosen, fitted.order, folds)
        return [fitted.units.restore(part) for part in answers]

    def _read_more(self, X: Any) -> Array:
        """Return new rows scaled as those of `fit` were."""
        check_is_fitted(self)
        rows = validation.read_rows(self, X, reset=False, device=True)
        return self._fitted.scaling.apply(rows)
