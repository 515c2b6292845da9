"""The moment-matched Gaussian process (Le, Smola, Gartner and Altun 2006): its parameters, and its answers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.optimize import minimize
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
    "Standard errors are the model's own: right if the labels are a Gaussian process with this kernel and noise.",
    "With few labels they tend to be too small.",
)
EQUAL_LABELS = (
    "All labels are equal: standard errors are 0, which is their spread, and say nothing about how far other labels "
    "may be."
)
# Beyond, squares of features are infinite, and so are the distances of rows.
LARGEST_FEATURE = 1e150
INSTEAD = "For intervals with a guarantee, use ConformalTransducer or RidgeConfidenceMachine."

# ------------------------------------------------------------------------------------------------ parameters


def read_settings(given: TransductiveGPRegressor) -> TransductiveGPRegressor:
    """Return a copy of an estimator's settings, checked, or raise a ValueError that says which one to mend."""
    read: dict[str, Any] = {}
    for name, value in {"matching": given.matching, "slack": given.slack}.items():
        if not isinstance(value, str) or value != "cv":
            checks.check_number(f"{name} (a number from 0, or 'cv')", value)
            read[name] = checks.check_not_negative(name, value, "'cv' or a number from 0")
    if np.size(given.prior) != 2:
        raise ValueError(
            f"prior must be two numbers from 0, such as (1.0, 0.5); got {given.prior!r}."
        )
    for value in given.prior:
        checks.check_number("Each of the two numbers of prior", value)
        checks.check_not_negative("Each of the two numbers of prior", value, "a number from 0")
    read["prior"] = tuple(map(float, given.prior))
    least = {"n_restarts": 0, "max_iter": 1, "max_matched": 1, "max_searched": 2, "max_exact": 1}
    for name, number in least.items():
        checks.check_whole(name, getattr(given, name), least=number)
    checks.check_positive("tol", given.tol)
    checks.check_jobs(given.n_jobs)
    checks.check_choice("solver", given.solver, ("nested", "alternating"))
    checks.check_flag("relevance", given.relevance)
    checks.check_flag("standardize", given.standardize)
    return replace(given, **read)


def announce_cost(n_labelled: int) -> None:
    """Warn before gigabytes are taken; `n_labelled` are those on which parameters are searched."""
    what = f"A Gaussian process with {n_labelled:,} labels"
    instead = (
        "It takes hundreds of Cholesky factors; TransductiveRidge(centres=500) needs far less."
    )
    memory.announce(4 * 8.0 * n_labelled**2, 0.0, None, what, instead)


# Noise is a share of the labels' variance; below 1e-8 a kernel matrix of some thousand rows is singular to rounding.
NOISE_BOUNDS = (1e-8, 1e2)
RELEVANCE_BOUNDS = (1e-5, 1e4)  # times the inverse median distance of two rows
# With many features a descent from short length scales falls into the trap where every label is noise, so the first
# begins with a nearly linear function of the features that the labels depend on most. Wiggly functions are found from
# short length scales only, so restarts are drawn around both: shares of the inverse median distance, noise, and spread.
SMOOTH, WIGGLY = (0.3, 0.3, 0.7), (1.0, 0.1, 1.5)
# A restart begins at the best of so many random points, each after a short descent on at most so many rows.
N_DRAWS, SHORT, N_SCREENED = 8, 6, 200
# After so many steps a restart is given up if it predicts each label from the others as the end of the first descent
# does, which is lower: to less than this share of the labels' spread. Height alone does not tell who ends lowest.
SOON, ALIKE = 30, 0.05


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

    start: Array  # (k,)
    wiggly: Array  # (k,) likewise for the other half; its relevances set the bounds
    solver: str = "nested"
    max_iter: int = 200  # most steps of a descent
    tolerance: float = (
        1e-8  # A descent ends when a step lowers the objective by less than this share of it
    )

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of each logarithm, shape (k, 2)."""
        return np.array(
            [*(np.log(RELEVANCE_BOUNDS) + at for at in self.wiggly[:-1]), np.log(NOISE_BOUNDS)]
        )

    @classmethod
    def at(cls, X: Array, y_l: Array, *, common: bool = False, **limits: Any) -> Search:
        """Find the starts for rows (n, d), labelled ones first; `common` if all features share one relevance."""
        share = np.ones(1) if common else dependence(X[: y_l.shape[0], :], y_l)
        shares = np.maximum(share * np.sqrt(len(share) / max(float(share @ share), 1e-300)), 0.03)
        unit = 1.0 / median_width(X)
        start = np.log(np.append(SMOOTH[0] * unit * shares, SMOOTH[1]))
        return cls(
            start, np.log(np.append(np.full(len(share), WIGGLY[0] * unit), WIGGLY[1])), **limits
        )

    def descend(self, objective: Objective, start: Array) -> Descent:
        """Minimise from one start."""
        start = np.clip(start, *self.bounds.T)
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
        path: list[float] = []
        max_iter = self.max_iter
        # Many past steps are remembered: relevances that go to 0 make long valleys.
        limits = {"maxiter": max_iter, "maxfun": 10 * max_iter + 50, "maxcor": 40}

        def evaluate(at: Array) -> tuple[float, Array]:
            value, slope = objective(at)
            if not path:
                path.append(value)  # at the start, where the search evaluates first
            return value, slope

        result = minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            # The new style of callback, which is told the value, is recognised by its argument's name.
            callback=lambda intermediate_result: path.append(float(intermediate_result.fun)),
            options=limits | {"ftol": self.tolerance, "gtol": 1e-5},
        )
        words = {0: "converged", 1: f"stopped after max_iter={max_iter} steps"}.get(
            result.status, ""
        )
        if not words:
            # A line search that found no lower point: at a minimum, to rounding, if the slope within bounds vanishes.
            slope = result.x - np.clip(result.x - objective(result.x)[1], *self.bounds.T)
            flat = np.abs(slope).max() <= 1e-3 * max(1.0, abs(result.fun))
            words = "converged" if flat else "stopped where no lower point could be found"
        settled, lowest = words == "converged", float(result.fun)
        return Descent(result.x, lowest, np.array(path), result.nit, result.nfev, settled, words)

    def _alternate(self, objective: Objective, start: Array) -> Descent:
        """Take the q-step and the p-step in turns, as the paper does."""
        at, path, evaluations = start, [objective(start)[0]], 1
        for turn in range(1, self.max_iter + 1):
            held = replace(objective, q=objective.match(at))
            step = self._lbfgs(held, at)
            evaluations += step.n_evaluations
            at = step.log_parameters
            after = objective(at)[0]
            path += [min(step.objective, path[-1]), min(after, step.objective)]
            if path[-3] - path[-1] <= 10 * self.tolerance * max(1.0, abs(path[-1])):
                return Descent(at, path[-1], np.array(path), turn, evaluations, True, "converged")
        words = f"stopped after max_iter={self.max_iter} turns"
        return Descent(at, path[-1], np.array(path), self.max_iter, evaluations, False, words)

    def restarts(
        self,
        objective: Objective,
        count: int,
        random: np.random.RandomState,
        n_jobs: int | None = None,
    ) -> list[Array]:
        """Return starts spread over the parameters: for each, the best of some draws after a short descent."""
        wiggly = np.arange(count * N_DRAWS)[:, None] % 2 == 0  # around the two starts in turn
        steps = random.normal(size=(len(wiggly), len(self.start)))
        draws = (
            np.where(wiggly, self.wiggly, self.start)
            + np.where(wiggly, WIGGLY[2], SMOOTH[2]) * steps
        )
        short = replace(self, solver="nested", max_iter=SHORT, tolerance=1e-6)
        ends = short._attempts(thinned(objective, N_SCREENED, N_SCREENED), draws, n_jobs)
        picked: list[Array] = []
        for end in sorted(_reached(ends), key=lambda end: end.objective):
            far = all(np.abs(end.log_parameters - other).max() > 0.5 for other in picked)
            if far and len(picked) < count:
                picked.append(end.log_parameters)
        return picked

    def _attempts(
        self, objective: Objective, starts: Sequence[Array] | Array, n_jobs: int | None
    ) -> list[Descent | str]:
        """Return how the descent from each start ended."""
        pool = Parallel(n_jobs=n_jobs, prefer="threads")
        return list(pool(delayed(self.attempt)(objective, start) for start in starts))

    def best(
        self, objective: Objective, starts: list[Array], n_jobs: int | None
    ) -> tuple[Descent, list[Descent | str]]:
        """Descend from every start, to the end unless it leads where the first does; return the lowest, and all."""
        first = self.attempt(objective, starts[0])
        soon = replace(self, max_iter=min(SOON, self.max_iter))
        ends = [first, *soon._attempts(objective, starts[1:], n_jobs)]
        for place in range(1, len(ends)) if self.max_iter > SOON else ():
            end = ends[place]
            if isinstance(end, Descent) and not end.converged:
                words = f"given up after {SOON} steps, as it leads where the first does"
                alike = _alike(objective, end, first)
                ends[place] = (
                    replace(end, message=words)
                    if alike
                    else self.attempt(objective, end.log_parameters)
                )
        log.info("%d of %d starts reached an end", len(_reached(ends)), len(starts))
        if not _reached(ends):
            raise ValueError(f"Every start failed: {ends[0]}")
        return min(_reached(ends), key=lambda end: end.objective), ends


def _reached(ends: list[Descent | str]) -> list[Descent]:
    return [end for end in ends if isinstance(end, Descent)]


def _alike(objective: Objective, one: Descent, lower: Descent | str) -> bool:
    """Return whether a lower descent, if it is one, predicts each label from the others nearly as another does."""
    if isinstance(lower, str) or one.objective < lower.objective:
        return False
    X_l, errors = objective.X[: objective.y_l.shape[0], :], []
    for end in (one, lower):
        fit = Posterior.fit(X_l, objective.y_l, end.log_parameters)
        errors.append(arrays.to_numpy(fit.weights / inverse_diagonal(fit.factor)))
    return bool(np.std(errors[0] - errors[1]) < ALIKE * np.std(arrays.to_numpy(objective.y_l)))


def thinned(objective: Objective, most_labelled: int, most_unlabelled: int) -> Objective:
    """Return the objective on at most so many labelled and unlabelled rows, at even steps of the ordered ones."""
    n_labelled, n = objective.y_l.shape[0], objective.X.shape[0]
    labelled = even_steps(n_labelled, most_labelled)
    unlabelled = n_labelled + even_steps(n - n_labelled, most_unlabelled)
    if len(labelled) + len(unlabelled) == n:
        return objective
    some = arrays.pick(objective.X, np.concatenate([labelled, unlabelled]))
    return replace(objective, X=some, y_l=arrays.pick(objective.y_l, labelled))


def dependence(X_l: Array, y_l: Array) -> Array:
    """Return how much of the spread of y (l,) each feature explains alone (d,): correlation ratios, by binned means."""
    # Some thousand labels at most: ranks are taken on the host.
    X_l, y_l = arrays.to_numpy(X_l), arrays.to_numpy(y_l)
    n_rows, spread = len(y_l), float(y_l.var())
    n_bins = max(2, min(6, n_rows // 5))
    if n_rows < 4 or spread == 0.0:
        return np.zeros(X_l.shape[1])
    ratios = np.empty(X_l.shape[1])
    for j, feature in enumerate(X_l.T):
        bins = ((rankdata(feature) - 0.5) * n_bins / n_rows).astype(int)  # equal values share a bin
        means = np.bincount(bins, weights=y_l) / np.maximum(np.bincount(bins), 1)
        ratios[j] = np.mean((means[bins] - y_l.mean()) ** 2) / spread
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
    """Choose how hard to match the rows of an objective without matching, whose lowest point `start` is."""
    given = tuple(
        None if isinstance(value, str) else value for value in (settings.matching, settings.slack)
    )
    matching, slack = (value or 0.0 for value in given)
    if _all_equal(objective.y_l):
        return MatchingChoice(
            0.0, slack, "matching=0: all labels are equal, so there is no spread to match"
        )
    if objective.X.shape[0] == objective.y_l.shape[0]:
        return MatchingChoice(
            0.0, slack, "matching=0: no row is unlabelled, so there is nothing to match"
        )
    if given[0] == 0.0 or None not in given:
        return MatchingChoice(matching, slack, f"matching={matching:g}, slack={slack:g}, as set")
    if objective.y_l.shape[0] < MIN_LABELS:
        slack = SLACKS[1] if given[1] is None else slack
        few = f"fewer than {MIN_LABELS} labels are too few to choose by"
        return MatchingChoice(matching, slack, f"matching={matching:g}, slack={slack:g}: {few}")
    return _cross_validate(objective, given, search, start, settings.n_jobs)


def _cross_validate(
    objective: Objective,
    given: tuple[float | None, ...],
    search: Search,
    start: Array,
    n_jobs: int | None,
) -> MatchingChoice:
    """Choose by the error at hidden labels; no matching unless another is better by more than its standard error."""
    weight, slack = given
    fixed = weight is not None
    slacks = SLACKS if slack is None else (slack,)
    weights = MATCHINGS if weight is None else (weight,)
    pairs = [(weight, slack) for slack in slacks for weight in weights]
    grid = np.array(pairs if fixed else [(0.0, slacks[0]), *pairs])
    # A choice between a dozen pairs needs no more digits than their errors differ by.
    quick = replace(
        search, max_iter=min(50, search.max_iter), tolerance=max(1e-5, search.tolerance)
    )
    n_labelled = objective.y_l.shape[0]
    fold = rank_folds(objective.y_l, objective.X[:n_labelled, :], min(N_FOLDS, n_labelled))
    path = compare_matchings(objective, fold, quick, start, grid, n_jobs)
    best = int(path["error"].to_numpy().argmin())
    if not fixed and path["gain"][best] <= path["gain_se"][best]:
        best = 0
    matching, slack = (float(path[name][best]) for name in ("matching", "slack"))
    if matching == 0.0 and given[1] is None:
        slack = 0.0
    why = f"matching={matching:g}, slack={slack:g}, by cross-validation"
    if not best and not fixed:
        none = "no weight was better than none by more than its standard error"
        why = f"matching=0, by cross-validation: {none}"
    return MatchingChoice(matching, slack, why, path)


def fold_errors(whole: Objective, hidden: Mask, search: Search, start: Array, grid: Array) -> Array:
    """Return the mean squared error at hidden labels for every (matching, slack) of `grid`, shape (g,)."""
    # Each descent begins where the one with the next smaller weight of the same slack ended, the first of a slack
    # where that without matching did.
    n_labelled, xp = whole.y_l.shape[0], arrays.namespace(whole.y_l)
    (X_v, y_l), (X_h, truth) = (
        (arrays.pick(whole.X[:n_labelled, :], part), arrays.pick(whole.y_l, part))
        for part in (~hidden, hidden)
    )
    mean, scale = float(xp.mean(y_l)), float(xp.std(y_l)) or 1.0
    y_l = (y_l - mean) / scale
    if _all_equal(y_l):  # all weights agree on the only label there is
        return np.full(len(grid), float(xp.mean((mean - truth) ** 2)))
    fold = replace(whole, X=xp.concat([X_v, X_h, whole.X[n_labelled:, :]]), y_l=y_l)
    ends: dict[float, Array] = {}
    errors = np.full(len(grid), np.inf)
    for i, (matching, slack) in enumerate(grid):
        objective = replace(fold, matching=float(matching), slack=float(slack))
        descent = search.attempt(objective, ends.get(slack, start))
        if isinstance(descent, str):
            log.info("matching=%g, slack=%g failed: %s", matching, slack, descent)
            continue
        if matching == 0.0:
            start = descent.log_parameters
        else:
            ends[slack] = descent.log_parameters
        answered = Posterior.fit(X_v, y_l, descent.log_parameters).mean(X_h) * scale + mean
        errors[i] = float(xp.mean((answered - truth) ** 2))
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
    """Compare weights and slacks (g, 2) by hiding each fold (l,) of the labels in turn, among the unlabelled rows."""
    sizes = np.bincount(fold).astype(float)
    errors = np.empty((len(sizes), len(grid)))
    done = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(fold_errors)(objective, fold == k, search, start, grid) for k in range(len(sizes))
    )
    for i, line in enumerate(done):
        errors[i] = line
        log.info("matching: fold %d of %d", i + 1, len(sizes))
    share = sizes / sizes.sum()
    with np.errstate(invalid="ignore"):
        gains = errors[:, :1] - errors
        gain = share @ gains
        spread = np.sqrt(share @ (gains - gain) ** 2 / max(len(sizes) - 1, 1))
    columns = ["matching", "slack", "error", "gain", "gain_se"]
    return pd.DataFrame(np.column_stack([grid, share @ errors, gain, spread]), columns=columns)


FOLD_STEPS = 30  # from the parameters of all labels to those of a fold's
# With so few labels the parameters of all remember each of them, and a short descent does not forget.
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

    def posterior(self, descent: Descent) -> Posterior | InducedPosterior:
        """Return the process with the parameters at which a descent ended."""
        y_l, X = self.objective.y_l, self.objective.X
        return fit_posterior(X[: y_l.shape[0], :], y_l, descent.log_parameters, self.max_exact)


def find_parameters(
    objective: Objective,
    settings: TransductiveGPRegressor,
    random: np.random.RandomState,
    start: Array | None = None,
) -> FoundParameters:
    """Search without matching, or `start` from what is known to be good; choose how hard to match; search with it."""
    whole, objective = objective, thinned(objective, settings.max_searched, objective.X.shape[0])
    n_restarts, n_jobs, common = settings.n_restarts, settings.n_jobs, not settings.relevance
    if (
        common and settings.matching != 0
    ):  # the kernel sees distances only, here of many sets of rows
        objective = replace(objective, X=narrowed(objective.X))
    limits = {"solver": settings.solver, "max_iter": settings.max_iter, "tolerance": settings.tol}
    search = Search.at(objective.X, objective.y_l, common=common, **limits)
    log.info("parameters without matching")
    n_restarts = n_restarts if start is None else 0
    first = search.start if start is None else start
    starts = [first, *search.restarts(objective, n_restarts, random, n_jobs)]
    plain, ends = search.best(objective, starts, n_jobs)
    choice = choose_matching(objective, settings, search, plain.log_parameters)
    log.info(choice.why)
    objective, best = replace(objective, matching=choice.matching, slack=choice.slack), plain
    if objective.looks_at_unlabelled:
        log.info("parameters with matching=%g, slack=%g", choice.matching, choice.slack)
        restarts = search.restarts(objective, n_restarts, random, n_jobs)
        best, ends = search.best(objective, [plain.log_parameters, search.start, *restarts], n_jobs)
    objective = replace(objective, X=whole.X, y_l=whole.y_l)
    return FoundParameters(best, plain, ends, objective, search, choice, settings.max_exact)


def answers_in_folds(
    chosen: FoundParameters, order: AnyArray, folds: Sequence[tuple[AnyArray, AnyArray]]
) -> list[Array]:
    """Return the process at the hidden rows of each fold, with parameters of its visible labels. Shapes: order (l,)."""
    place, whole = np.argsort(order), chosen.objective
    X = whole.X if whole.looks_at_unlabelled else whole.X[: len(order), :]
    X = X if len(chosen.search.start) > X.shape[1] else narrowed(X)
    X_l, rest = X[: len(order), :], X[len(order) :, :]
    labels, answers = arrays.to_numpy(whole.y_l), []
    for visible, hidden in folds:
        shown = np.sort(place[visible])
        mean, spread = label_moments(labels[shown])
        X_v, y_l = arrays.pick(X_l, shown), arrays.beside((labels[shown] - mean) / spread, X_l)
        parameters = chosen.best.log_parameters
        if len(order) <= MOST_DESCENDED:
            objective = replace(whole, X=arrays.namespace(X_l).concat([X_v, rest]), y_l=y_l)
            parameters = _parameters_of_fold(
                chosen, objective, from_scratch=len(order) <= FROM_SCRATCH
            )
        posterior = fit_posterior(X_v, y_l, parameters, chosen.max_exact)
        answers.append(
            posterior.mean(arrays.pick(X_l, place[hidden])) * float(spread) + float(mean)
        )
    return answers


def _parameters_of_fold(
    chosen: FoundParameters, objective: Objective, *, from_scratch: bool
) -> Array:
    """Return parameters for a fold's labels, from those of all labels or from the two rules for a start."""
    if not from_scratch:
        short = replace(chosen.search, max_iter=FOLD_STEPS, tolerance=1e-5)
        return short.descend(objective, chosen.best.log_parameters).log_parameters
    X_l, common = (
        objective.X[: objective.y_l.shape[0], :],
        len(chosen.search.start) <= objective.X.shape[1],
    )
    limits = {"solver": chosen.search.solver, "max_iter": chosen.search.max_iter, "tolerance": 1e-5}
    search = Search.at(X_l, objective.y_l, common=common, **limits)
    return search.best(objective, [search.start, search.wiggly], None)[0].log_parameters


def warn_of_parameters(chosen: FoundParameters) -> None:
    """Say what a user should know of how the parameters were found."""
    best, words = chosen.best, []
    if not best.converged:
        words.append(f"The parameters {best.message} before they settled: raise max_iter, or tol.")
    if np.ptp(arrays.to_numpy(chosen.objective.y_l)) > 0.0:
        if np.any(best.log_parameters[:-1] > chosen.search.bounds[:-1, 1] - 1e-3):
            words.append(
                "A relevance ran into its upper bound: rows no longer tell of each other. Match less, or give a prior "
                "whose second number is larger."
            )
        elif best.log_parameters[-1] < chosen.search.bounds[-1, 0] + 1e-3:
            words.append(
                f"The noise ran into its lower bound, {NOISE_BOUNDS[0]:g} of the labels' variance: the labels look "
                "like an exact function of the features. If they are not, a prior whose first number is larger keeps "
                "the noise away from 0."
            )
    for sentence in words:
        warnings.warn(sentence, ConvergenceWarning, stacklevel=3)


# ------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True)
class Units:
    """Mean and spread of the labels, which scaled labels have lost; errors have the spread 0 if labels are equal."""

    mean: float
    spread: float
    error: float

    @classmethod
    def of(cls, y_l: Array) -> Units:
        """Take them from the labels."""
        mean, spread = label_moments(np.sort(y_l))
        error = spread if np.ptp(y_l) > 0.0 else 0.0
        return cls(float(mean), float(spread), float(error))

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
    matched: (
        AnyArray  # (k,) which of the unlabelled rows moments were matched at, in the order of `q`
    )

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
        objective, few = self.chosen.objective, isinstance(self.posterior, Posterior)
        varied = few and len(self.matched) > 0 and np.ptp(arrays.to_numpy(objective.y_l)) > 0.0
        return objective.match(self.chosen.best.log_parameters) if varied else None

    @property
    def relevance(self) -> Array:
        """Relevances in units of the features, shape (d,); 0 for a feature that does not vary."""
        relevance = np.zeros(len(self.scaling.keep))
        relevance[self.scaling.keep] = self.posterior.relevance / arrays.to_numpy(
            self.scaling.scale
        )
        return relevance

    def covariance(self, rows: Array) -> Array:
        """Return the covariance of the labels at scaled rows, shape (m, m)."""
        return self.in_squared_units(self.posterior.covariance(rows))

    def in_squared_units(self, scaled: Array) -> Array:
        """Return a scaled covariance in squared units of the labels, or raise a ValueError if these are too large."""
        covariance = self.units.squared(scaled)
        if not np.isfinite(arrays.farthest(covariance)):
            raise ValueError(
                "The covariance, in squared units of the labels, is too large for double precision: divide the labels "
                "by a constant first."
            )
        return covariance


def moments_table(fitted: FittedProcess) -> pd.DataFrame:
    """Return mean and standard deviation, over rows, of scaled labels and of what is predicted; in their units."""
    y_l = fitted.chosen.objective.y_l
    xp = arrays.namespace(y_l)
    moments = {"labels": (float(xp.mean(y_l)), float(xp.mean(y_l**2)))}
    if fitted.unlabelled.shape[0]:
        for name, (mean, spread) in (
            ("without matching", fitted.plain),
            ("predicted", fitted.predicted),
        ):
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
    reasons = [*REASONS, f"Parameters were chosen on the labels ({chosen.choice.why}).", INSTEAD]
    if fitted.units.error == 0.0:
        reasons = [EQUAL_LABELS, *reasons]
    return Answer(
        rows=sample.unlabelled,
        values=fitted.units.restore(mean),
        status=np.full(mean.shape[0], "answered"),
        guarantee=Guarantee("none", reasons=tuple(reasons)),
        standard_errors=spread * fitted.units.error,
        inductive=fitted.units.restore(fitted.plain[0]),
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
    """Return the rows, scaled or at least centred (small numbers are safer); how; and the spread of every feature."""
    # In an order of their own, so that the rounding of a mean does not depend on the order in which rows came.
    xp = arrays.namespace(sample.X)
    scaling = Scaling.fit_apply(xp.take(sample.X, arrays.lexsort(sample.X), axis=0))[0]
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    shown = arrays.to_numpy(xp.std(scaling.apply(arrays.pick(sample.X, sample.labelled)), axis=0))
    narrow = np.flatnonzero((shown > 0.0) & (shown < 0.01))
    if len(narrow):
        warnings.warn(
            f"Feature {names[np.flatnonzero(scaling.keep)[narrow[0]]]!r} varies a hundred times less among the "
            "labelled rows than among all: a few far-off rows set its scale. Look at them; leave them out or transform "
            "the feature.",
            stacklevel=3,
        )
    if not standardize:
        if arrays.farthest(sample.X) > LARGEST_FEATURE:
            raise ValueError(
                f"Features beyond {LARGEST_FEATURE:g} are too large for standardize=False: set standardize=True, or "
                "divide them by a constant first."
            )
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
    return scaling.apply(sample.X), scaling, spread


def arrange_rows(
    rows: Array, labelled: Mask, y_l: Array, settings: TransductiveGPRegressor
) -> tuple[Objective, AnyArray, AnyArray]:
    """Return the objective of rows ordered by their values, so that how they came leaves no trace; and both orders."""
    xp, shown, unlabelled = (
        arrays.namespace(rows),
        arrays.pick(rows, labelled),
        arrays.pick(rows, ~labelled),
    )
    labels = arrays.beside(y_l, rows)
    order = arrays.to_numpy(arrays.lexsort(xp.concat([shown, labels[:, None]], axis=1)))
    matched = (
        arrays.to_numpy(arrays.lexsort(unlabelled))
        if unlabelled.shape[0]
        else np.empty(0, dtype=int)
    )
    matched = matched[even_steps(len(matched), settings.max_matched)]
    used = xp.concat([arrays.pick(shown, order), arrays.pick(unlabelled, matched)])
    return Objective(used, arrays.pick(labels, order), settings.prior), order, matched


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
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`, but for a few that
        are far from all others.
    n_jobs : int or None, default=None
        Restarts and folds that run at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_
        Labels completed (n,); `Answer` with standard errors (noise included; 0 if all labels are equal), and the
        values without matching.
    relevance_ : array of shape (d,)
        Inverse length scales, in units of the features given: the kernel is ``exp(-sum (relevance_j dx_j)^2)``. 0 for
        a feature that does not vary.
    feature_spread_ : array of shape (d,)
        Standard deviation of each feature over all rows, but for a few that are far from all others;
        ``relevance_ * feature_spread_`` compares features.
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
    row ``transduction_`` holds the label and `predict` the  One evaluation costs ``O(l^3 + l^2 d)``, with
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
        settings = read_settings(self)
        announce_cost(min(len(y_l), settings.max_searched))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        rows, scaling, self.feature_spread_ = scale_rows(
            sample, names, standardize=settings.standardize
        )
        units = Units.of(y_l)
        scaled = (y_l - units.mean) / units.spread
        objective, order, matched = arrange_rows(rows, sample.labelled, scaled, settings)
        with few_threads(objective.X.shape[0] if settings.n_jobs in (None, 1) else 0):
            random, start = check_random_state(self.random_state), self.__dict__.pop("_start", None)
            chosen = find_parameters(objective, settings, random, start)
            warn_of_parameters(chosen)
            if units.error == 0.0:
                warnings.warn(EQUAL_LABELS, stacklevel=2)
            unlabelled = arrays.pick(rows, ~sample.labelled)
            fitted = self._fitted = FittedProcess(
                chosen, scaling, units, unlabelled, order, matched
            )
            self.answer_ = make_answer(sample, fitted)
        self.matched_rows_ = sample.unlabelled[np.sort(matched)]
        self.relevance_ = fitted.relevance
        self.noise_ = float(units.squared(np.exp(chosen.best.log_parameters)[-1]))
        self.matching_, self.slack_ = chosen.choice.matching, chosen.choice.slack
        if chosen.choice.path is not None:
            self.matching_path_ = chosen.choice.path
        self.objective_path_, self.n_iter_ = chosen.best.path, chosen.best.n_iter
        self.converged_ = chosen.best.converged
        self.log_marginal_likelihood_ = fitted.posterior.log_likelihood
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
        return fitted.in_squared_units(root @ root.T)

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
            answers = answers_in_folds(fitted.chosen, fitted.order, folds)
        return [fitted.units.restore(part) for part in answers]

    def _read_more(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._fitted.scaling.apply(validation.read_rows(self, X, reset=False, device=True))
