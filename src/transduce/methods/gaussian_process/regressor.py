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
from scipy.optimize import OptimizeResult, minimize
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import rank_folds
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import NumberTransducer
from transduce.device import memory
from transduce.device.kernels import median_width, narrowed
from transduce.device.linalg import inverse_diagonal
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
    return replace(given, matching=matching, slack=slack, prior=prior)


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


# Noise is a share of the labels' variance; below 1e-8 a kernel matrix of some thousand rows is
# singular to rounding.
NOISE_BOUNDS = (1e-8, 1e2)
RELEVANCE_BOUNDS = (1e-5, 1e4)  # times the inverse median distance of two rows


class StartRule(NamedTuple):
    """Where descents begin, and how far around random starts are drawn."""

    relevance: float  # times the inverse median distance of two rows
    noise: float
    spread: float  # standard deviation of the logarithms of random starts


# With many features a descent from short length scales falls into the trap where every label is
# noise, so the first begins with a nearly linear function of the features that the labels depend on
# most. Wiggly functions are found from short length scales only, so restarts are drawn around both.
SMOOTH = StartRule(relevance=0.3, noise=0.3, spread=0.7)
WIGGLY = StartRule(relevance=1.0, noise=0.1, spread=1.5)
# A restart begins at the best of so many random points, each after a short descent of so many steps
# on at most so many rows.
N_DRAWS = 8
N_SHORT = 6
N_SCREENED = 200
# After so many steps a restart is given up if it predicts each label from the others as the end of
# the first descent does, which is lower: to less than this share of the labels' spread. Height
# alone does not tell who ends lowest.
SOON = 30
ALIKE = 0.05
CONVERGED = "converged"


@dataclass(frozen=True)
class Descent:
    """Where a descent from one start ended."""

    log_parameters: Array  # (k,)
    objective: float
    path: Array  # the objective after every step; never rises
    n_iter: int
    n_evaluations: int
    converged: bool
    message: str  # how it ended, in words


@dataclass(frozen=True)
class Search:
    """How parameters are looked for."""

    start: Array  # (k,) where the first descent begins: see `SMOOTH`
    wiggly: Array  # (k,) around which half of the restarts are drawn; sets the bounds
    solver: str = "nested"
    max_iter: int = 200  # most steps of a descent
    # A descent ends when a step lowers the objective by less than this share of it.
    tolerance: float = 1e-8

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of each logarithm, shape (k, 2)."""
        of_relevances = [np.log(RELEVANCE_BOUNDS) + at for at in self.wiggly[:-1]]
        return np.array([*of_relevances, np.log(NOISE_BOUNDS)])

    @classmethod
    def at(
        cls,
        X: Array,
        y_l: Array,
        *,
        common: bool = False,
        solver: str = "nested",
        max_iter: int = 200,
        tolerance: float = 1e-8,
    ) -> Search:
        """Find the starts for rows (n, d), labelled ones first.

        `common`: all features share one relevance.
        """
        if common:
            shares = np.ones(1)
        else:
            shares = dependence(X[: y_l.shape[0], :], y_l)
        mean_square = max(float(shares @ shares), 1e-300)
        scaled_shares = np.maximum(shares * np.sqrt(len(shares) / mean_square), 0.03)
        unit = 1.0 / median_width(X)
        smooth = np.append(SMOOTH.relevance * unit * scaled_shares, SMOOTH.noise)
        equal = np.full(len(shares), WIGGLY.relevance * unit)
        wiggly = np.append(equal, WIGGLY.noise)
        return cls(np.log(smooth), np.log(wiggly), solver, max_iter, tolerance)

    def clip(self, log_parameters: Array) -> Array:
        """Return the nearest parameters within the bounds."""
        lower, upper = self.bounds.T
        return np.clip(log_parameters, lower, upper)

    def descend(self, objective: Objective, start: Array) -> Descent:
        """Minimise from one start."""
        start = self.clip(start)
        if self.solver == "alternating" and objective.looks_at_unlabelled:
            return self._alternate(objective, start)
        return self._lbfgs(objective, start)

    def attempt(self, objective: Objective, start: Array) -> Descent | str:
        """Return the descent, or in words why it failed."""
        try:
            return self.descend(objective, start)
        except ValueError as error:
            return str(error)

    def _lbfgs(self, objective: Objective, start: Array) -> Descent:
        """Minimise by quasi-Newton steps within the bounds."""
        path: list[float] = []

        def evaluate(at: Array) -> tuple[float, Array]:
            value, slope = objective(at)
            if not path:
                path.append(value)  # at the start, where the search evaluates first
            return value, slope

        # The new style of callback, which is told the value, is recognised by its argument's name.
        def note_step(intermediate_result: OptimizeResult) -> None:
            path.append(float(intermediate_result.fun))

        result = minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            callback=note_step,
            options={
                "maxiter": self.max_iter,
                "maxfun": 10 * self.max_iter + 50,
                # Many past steps are remembered: relevances that go to 0 make long valleys.
                "maxcor": 40,
                "ftol": self.tolerance,
                "gtol": 1e-5,
            },
        )
        message = self._describe_end(objective, result)
        return Descent(
            log_parameters=result.x,
            objective=float(result.fun),
            path=np.array(path),
            n_iter=result.nit,
            n_evaluations=result.nfev,
            converged=message == CONVERGED,
            message=message,
        )

    def _describe_end(self, objective: Objective, result: OptimizeResult) -> str:
        """Return in words how a descent ended."""
        if result.status == 0:
            return CONVERGED
        if result.status == 1:
            return f"stopped after max_iter={self.max_iter} steps"
        # A line search that found no lower point: at a minimum, to rounding, if the slope within
        # bounds vanishes.
        _, gradient = objective(result.x)
        slope = result.x - self.clip(result.x - gradient)
        unit = max(1.0, abs(result.fun))
        if np.abs(slope).max() <= 1e-3 * unit:
            return CONVERGED
        return "stopped where no lower point could be found"

    def _alternate(self, objective: Objective, start: Array) -> Descent:
        """Take the q-step and the p-step in turns, as the paper does."""
        log_parameters = start
        path = [objective(start)[0]]
        n_evaluations = 1
        n_turns = 0
        message = f"stopped after max_iter={self.max_iter} turns"
        while n_turns < self.max_iter and message != CONVERGED:
            n_turns += 1
            with_q_held = replace(objective, q=objective.match(log_parameters))
            p_step = self._lbfgs(with_q_held, log_parameters)
            n_evaluations += p_step.n_evaluations
            log_parameters = p_step.log_parameters
            value, _ = objective(log_parameters)
            path.append(min(p_step.objective, path[-1]))
            path.append(min(value, p_step.objective))
            descent = path[-3] - path[-1]
            if descent <= 10 * self.tolerance * max(1.0, abs(path[-1])):
                message = CONVERGED
        return Descent(
            log_parameters=log_parameters,
            objective=path[-1],
            path=np.array(path),
            n_iter=n_turns,
            n_evaluations=n_evaluations,
            converged=message == CONVERGED,
            message=message,
        )

    def restarts(
        self,
        objective: Objective,
        count: int,
        random: np.random.RandomState,
        n_jobs: int | None = None,
    ) -> list[Array]:
        """Return starts spread over the parameters.

        Each is the best of some draws after a short descent.
        """
        is_wiggly = np.arange(count * N_DRAWS)[:, None] % 2 == 0  # around the two starts in turn
        steps = random.normal(size=(len(is_wiggly), len(self.start)))
        centres = np.where(is_wiggly, self.wiggly, self.start)
        draws = centres + np.where(is_wiggly, WIGGLY.spread, SMOOTH.spread) * steps
        short = replace(self, solver="nested", max_iter=N_SHORT, tolerance=1e-6)
        ends = short._attempts(thinned(objective, N_SCREENED, N_SCREENED), draws, n_jobs)
        starts: list[Array] = []
        for end in sorted(_reached(ends), key=lambda end: end.objective):
            is_far = all(np.abs(end.log_parameters - other).max() > 0.5 for other in starts)
            if is_far and len(starts) < count:
                starts.append(end.log_parameters)
        return starts

    def _attempts(
        self, objective: Objective, starts: Sequence[Array] | Array, n_jobs: int | None
    ) -> list[Descent | str]:
        """Return how the descent from each start ended."""
        pool = Parallel(n_jobs=n_jobs, prefer="threads")
        return list(pool(delayed(self.attempt)(objective, start) for start in starts))

    def best(
        self, objective: Objective, starts: list[Array], n_jobs: int | None
    ) -> tuple[Descent, list[Descent | str]]:
        """Descend from every start; return the lowest end, and all of them.

        A descent is given up if it soon leads where the first does.
        """
        first = self.attempt(objective, starts[0])
        soon = replace(self, max_iter=min(SOON, self.max_iter))
        ends = [first, *soon._attempts(objective, starts[1:], n_jobs)]
        if self.max_iter > SOON:
            ends[1:] = [self._continue(objective, end, first) for end in ends[1:]]
        reached = _reached(ends)
        log.info("%d of %d starts reached an end", len(reached), len(starts))
        if not reached:
            raise ValueError(f"Every start failed: {ends[0]}")
        return min(reached, key=lambda end: end.objective), ends

    def _continue(
        self, objective: Objective, end: Descent | str, first: Descent | str
    ) -> Descent | str:
        """Continue a descent that was cut off, unless it leads where the first does."""
        if isinstance(end, str) or end.converged:
            return end
        if _predicts_alike(objective, end, first):
            words = f"given up after {SOON} steps, as it leads where the first does"
            return replace(end, message=words)
        return self.attempt(objective, end.log_parameters)


def _reached(ends: list[Descent | str]) -> list[Descent]:
    """Return the descents that did not fail."""
    return [end for end in ends if isinstance(end, Descent)]


def _predicts_alike(objective: Objective, end: Descent, lower: Descent | str) -> bool:
    """Return whether a lower descent predicts each label from the others nearly as this one."""
    if isinstance(lower, str) or end.objective < lower.objective:
        return False
    difference = _left_out_errors(objective, end) - _left_out_errors(objective, lower)
    spread = np.std(arrays.to_numpy(objective.y_l))
    return bool(np.std(difference) < ALIKE * spread)


def _left_out_errors(objective: Objective, end: Descent) -> Array:
    """Return the leave-one-out errors ``(C^-1 y)_i / (C^-1)_ii`` (l,) with a descent's end."""
    y_l = objective.y_l
    X_l = objective.X[: y_l.shape[0], :]
    posterior = Posterior.fit(X_l, y_l, end.log_parameters)
    return arrays.to_numpy(posterior.weights / inverse_diagonal(posterior.factor))


def thinned(objective: Objective, most_labelled: int, most_unlabelled: int) -> Objective:
    """Return the objective on at most so many rows of each kind, at even steps of ordered ones."""
    n = objective.X.shape[0]
    n_labelled = objective.y_l.shape[0]
    labelled = even_steps(n_labelled, most_labelled)
    unlabelled = n_labelled + even_steps(n - n_labelled, most_unlabelled)
    if len(labelled) + len(unlabelled) == n:
        return objective
    rows = arrays.pick(objective.X, np.concatenate([labelled, unlabelled]))
    return replace(objective, X=rows, y_l=arrays.pick(objective.y_l, labelled))


def dependence(X_l: Array, y_l: Array) -> Array:
    """Return how much of the spread of y (l,) each feature explains alone (d,).

    Correlation ratios by binned means, ``sqrt(var(mean of the bin) / var(y) - (bins - 1) / l)``,
    the last term being what chance explains.
    """
    # Some thousand labels at most: ranks are taken on the host.
    X_l = arrays.to_numpy(X_l)
    y_l = arrays.to_numpy(y_l)
    n_rows = len(y_l)
    variance = float(y_l.var())
    if n_rows < 4 or variance == 0.0:
        return np.zeros(X_l.shape[1])
    n_bins = max(2, min(6, n_rows // 5))
    ratios = np.empty(X_l.shape[1])
    for j, feature in enumerate(X_l.T):
        bins = ((rankdata(feature) - 0.5) * n_bins / n_rows).astype(int)  # equal values share a bin
        sums = np.bincount(bins, weights=y_l)
        means = sums / np.maximum(np.bincount(bins), 1)
        explained = np.mean((means[bins] - y_l.mean()) ** 2)
        ratios[j] = explained / variance
    return np.sqrt(np.clip(ratios - (n_bins - 1) / n_rows, 0.0, 1.0))


# What "cv" tries, besides no matching at all.
MATCHINGS = (0.1, 0.3, 1.0)
SLACKS = (0.001, 0.01, 0.1)
N_FOLDS = 5
MIN_LABELS = 10


class MatchingChoice(NamedTuple):
    """How hard to match, why in words, and the table of cross-validation if it was asked."""

    matching: float
    slack: float
    why: str
    path: pd.DataFrame | None = None


def choose_matching(
    objective: Objective, settings: TransductiveGPRegressor, search: Search, start: Array
) -> MatchingChoice:
    """Choose how hard to match; `start` is the lowest point of the objective without matching."""
    matching = _number_or_none(settings.matching)
    slack = _number_or_none(settings.slack)
    n_labelled = objective.y_l.shape[0]
    if _all_equal(objective.y_l):
        why = "matching=0: all labels are equal, so there is no spread to match"
        return MatchingChoice(0.0, slack or 0.0, why)
    if objective.X.shape[0] == n_labelled:
        why = "matching=0: no row is unlabelled, so there is nothing to match"
        return MatchingChoice(0.0, slack or 0.0, why)
    is_set = matching is not None and slack is not None
    if is_set or matching == 0.0:
        return _without_choice(matching or 0.0, slack or 0.0, ", as set")
    if n_labelled < MIN_LABELS:
        why = f": fewer than {MIN_LABELS} labels are too few to choose by"
        return _without_choice(matching or 0.0, SLACKS[1] if slack is None else slack, why)
    return _cross_validate(objective, (matching, slack), search, start, settings.n_jobs)


def _number_or_none(setting: float | str) -> float | None:
    """Return a setting that is a number, or None where it is to be chosen."""
    if isinstance(setting, str):
        return None
    return setting


def _without_choice(matching: float, slack: float, why: str) -> MatchingChoice:
    """Return the settings as they are, and why."""
    return MatchingChoice(matching, slack, f"matching={matching:g}, slack={slack:g}{why}")


def _cross_validate(
    objective: Objective,
    given: tuple[float | None, float | None],
    search: Search,
    start: Array,
    n_jobs: int | None,
) -> MatchingChoice:
    """Choose by the error at hidden labels what is not given: matching, slack, or both.

    No matching, unless another is better by more than its standard error.
    """
    matching, slack = given
    grid = _matching_grid(matching, slack)
    # A choice between a dozen pairs needs no more digits than their errors differ by.
    quick = replace(
        search, max_iter=min(50, search.max_iter), tolerance=max(1e-5, search.tolerance)
    )
    n_labelled = objective.y_l.shape[0]
    fold = rank_folds(objective.y_l, objective.X[:n_labelled, :], min(N_FOLDS, n_labelled))
    path = compare_matchings(objective, fold, quick, start, grid, n_jobs)
    best = int(path["error"].to_numpy().argmin())
    is_hardly_better = path["gain"][best] <= path["gain_se"][best]
    if matching is None and (best == 0 or is_hardly_better):
        why = (
            "matching=0, by cross-validation: no weight was better than none by more than its "
            "standard error"
        )
        return MatchingChoice(0.0, slack or 0.0, why, path)
    matching = float(path["matching"][best])
    slack = float(path["slack"][best])
    why = f"matching={matching:g}, slack={slack:g}, by cross-validation"
    return MatchingChoice(matching, slack, why, path)


def _matching_grid(matching: float | None, slack: float | None) -> Array:
    """Return the pairs (matching, slack) to try, (g, 2); no matching first, unless one is given."""
    slacks = SLACKS if slack is None else (slack,)
    matchings = MATCHINGS if matching is None else (matching,)
    pairs = [(weight, looseness) for looseness in slacks for weight in matchings]
    if matching is None:
        pairs = [(0.0, slacks[0]), *pairs]
    return np.array(pairs)


def fold_errors(whole: Objective, hidden: Mask, search: Search, start: Array, grid: Array) -> Array:
    """Return the mean squared error at hidden labels for every (matching, slack) of `grid` (g,).

    Each descent begins where the one with the next smaller weight of the same slack ended, the
    first of a slack where that without matching did.
    """
    n_labelled = whole.y_l.shape[0]
    xp = arrays.namespace(whole.y_l)
    X_l = whole.X[:n_labelled, :]
    X_visible = arrays.pick(X_l, ~hidden)
    X_hidden = arrays.pick(X_l, hidden)
    truth = arrays.pick(whole.y_l, hidden)
    visible = arrays.pick(whole.y_l, ~hidden)
    mean = float(xp.mean(visible))
    scale = float(xp.std(visible)) or 1.0
    y_l = (visible - mean) / scale
    if _all_equal(y_l):  # all weights agree on the only label there is
        return np.full(len(grid), float(xp.mean((mean - truth) ** 2)))
    rows = xp.concat([X_visible, X_hidden, whole.X[n_labelled:, :]])
    fold = replace(whole, X=rows, y_l=y_l)
    starts: dict[float, Array] = {}  # of each slack
    errors = np.full(len(grid), np.inf)
    for i, (matching, slack) in enumerate(grid):
        objective = replace(fold, matching=float(matching), slack=float(slack))
        descent = search.attempt(objective, starts.get(slack, start))
        if isinstance(descent, str):
            log.info("matching=%g, slack=%g failed: %s", matching, slack, descent)
            continue
        if matching == 0.0:
            start = descent.log_parameters
        else:
            starts[slack] = descent.log_parameters
        posterior = Posterior.fit(X_visible, y_l, descent.log_parameters)
        predicted = posterior.mean(X_hidden) * scale + mean
        errors[i] = float(xp.mean((predicted - truth) ** 2))
    return errors


def _all_equal(y_l: Array) -> bool:
    return bool(arrays.namespace(y_l).all(y_l == y_l[0]))


def compare_matchings(
    objective: Objective,
    fold: AnyArray,
    search: Search,
    start: Array,
    grid: Array,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Compare pairs (matching, slack) of a grid (g, 2) by hiding each fold (l,) of the labels.

    Hidden labels count among the unlabelled rows. ``gain`` is the error of the first pair less
    that of each, and ``gain_se`` its standard error over the folds.
    """
    sizes = np.bincount(fold).astype(float)
    errors = np.empty((len(sizes), len(grid)))
    errors_of_folds = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(fold_errors)(objective, fold == k, search, start, grid) for k in range(len(sizes))
    )
    for k, errors_of_fold in enumerate(errors_of_folds):
        errors[k] = errors_of_fold
        log.info("matching: fold %d of %d", k + 1, len(sizes))
    share = sizes / sizes.sum()
    with np.errstate(invalid="ignore"):
        gains = errors[:, :1] - errors
        gain = share @ gains
        variance = share @ (gains - gain) ** 2
        gain_se = np.sqrt(variance / max(len(sizes) - 1, 1))
    columns = ["matching", "slack", "error", "gain", "gain_se"]
    table = np.column_stack([grid, share @ errors, gain, gain_se])
    return pd.DataFrame(table, columns=columns)


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
        return fit_posterior(X_l, y_l, descent.log_parameters, self.max_exact)


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
    objective = thinned(whole, settings.max_searched, whole.X.shape[0])
    if has_common_relevance and settings.matching != 0:
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
    choice = choose_matching(objective, settings, search, plain.log_parameters)
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
    if chosen.has_common_relevance(X):
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
        posterior = fit_posterior(X_v, y_v, parameters, chosen.max_exact)
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
    scaling: Scaling  # of the features
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
    def relevance(self) -> Array:
        """Relevances in units of the features, shape (d,); 0 for a feature that does not vary."""
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


def arrange_rows(
    rows: Array, labelled: Mask, y_l: Array, settings: TransductiveGPRegressor
) -> tuple[Objective, AnyArray, AnyArray]:
    """Return the objective of rows ordered by their values, and the orders of both kinds of rows.

    So the order in which rows came leaves no trace.
    """
    xp = arrays.namespace(rows)
    shown = arrays.pick(rows, labelled)
    unlabelled = arrays.pick(rows, ~labelled)
    labels = arrays.beside(y_l, rows)
    with_labels = xp.concat([shown, labels[:, None]], axis=1)
    order = arrays.to_numpy(arrays.lexsort(with_labels))
    matched = np.empty(0, dtype=int)
    if unlabelled.shape[0]:
        matched = arrays.to_numpy(arrays.lexsort(unlabelled))
    matched = matched[even_steps(len(matched), settings.max_matched)]
    used = xp.concat([arrays.pick(shown, order), arrays.pick(unlabelled, matched)])
    return Objective(used, arrays.pick(labels, order), settings.prior), order, matched


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveGPRegressor(NumberTransducer):
    """Gaussian process whose predictions look, in mean and spread, like the labels seen.

    Le, Smola, Gartner, Altun (2006). Transductive Gaussian process regression with automatic model
    selection. ECML.

    Parameters
    ----------
    matching : float or "cv", default="cv"
        Weight of the match between predicted and seen labels. 0 is plain Gaussian process
        regression with the parameters at their posterior maximum. ``"cv"`` chooses by transductive
        cross-validation among the labelled rows; 0 is one of the choices, and any other must be
        better by more than one standard error.
    slack : float or "cv", default="cv"
        How loose the match may be: 0 for equal moments, from about 1 on hardly any match.
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
        dx_j)^2)``. 0 for a feature that does not vary.
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
        """Choose the parameters, and predict rows of X (n, d) whose label in y (n,) is missing."""
        sample = validation.read_sample(self, X, y, device=True)
        y_l = validation.numeric_labels(sample)
        settings = read_settings(self)
        announce_cost(min(len(y_l), settings.max_searched))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        rows, scaling, self.feature_spread_ = scale_rows(
            sample, names, standardize=settings.standardize
        )
        units = Units.of(y_l)
        scaled = (y_l - units.mean) / units.spread
        objective, order, matched = arrange_rows(rows, sample.labelled, scaled, settings)
        start = self.__dict__.pop("_start", None)
        random = check_random_state(self.random_state)
        is_parallel = settings.n_jobs not in (None, 1)
        with few_threads(0 if is_parallel else objective.X.shape[0]):
            chosen = find_parameters(objective, settings, random, start)
            warn_of_parameters(chosen)
            if units.error == 0.0:
                warnings.warn(EQUAL_LABELS, stacklevel=2)
            unlabelled = arrays.pick(rows, ~sample.labelled)
            fitted = FittedProcess(chosen, scaling, units, unlabelled, order, matched)
            self._fitted = fitted
            self.answer_ = make_answer(sample, fitted)
        self.matched_rows_ = sample.unlabelled[np.sort(matched)]
        self._set_parameters(fitted)
        self.mean_ = self.answer_.values
        self.transduction_ = sample.complete(self.mean_)
        return self

    def _set_parameters(self, fitted: FittedProcess) -> None:
        """Set what was chosen, and how it was found."""
        best = fitted.chosen.best
        choice = fitted.chosen.choice
        noise = np.exp(best.log_parameters)[-1]
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
