"""Parameters of a moment-matched Gaussian process: settings, starts, descents, and how hard to match."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays, checks
from transduce.core.ranks import rank_folds
from transduce.core.scaling import label_moments
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import median_width, narrowed
from transduce.device.linalg import inverse_diagonal
from transduce.methods.gaussian_process.process import Objective, Posterior, even_steps, fit_posterior

if TYPE_CHECKING:
    from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor

MEMORY = 2e9  # bytes beyond which a fit announces what it will take


def read_settings(given: TransductiveGPRegressor) -> TransductiveGPRegressor:
    """Return a copy of an estimator's settings, checked, or raise a ValueError that says which one to mend."""
    read: dict[str, Any] = {}
    for name, value in {"matching": given.matching, "slack": given.slack}.items():
        if not isinstance(value, str) or value != "cv":
            checks.check_number(f"{name} (a number from 0, or 'cv')", value)
            read[name] = checks.check_not_negative(name, value, "'cv' or a number from 0")
    if np.size(given.prior) != 2:
        raise ValueError(f"prior must be two numbers from 0, such as (1.0, 0.5); got {given.prior!r}.")
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
    need = 4 * 8.0 * n_labelled**2
    if need > MEMORY:
        warnings.warn(
            f"A Gaussian process with {n_labelled:,} labels needs about {need / 1e9:.0f} GB of memory and hundreds "
            "of Cholesky factors of that size; TransductiveRidge(centres=500) needs far less.",
            stacklevel=3,
        )


log = logging.getLogger(__name__)

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
    tolerance: float = 1e-8  # A descent ends when a step lowers the objective by less than this share of it

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of each logarithm, shape (k, 2)."""
        return np.array([*(np.log(RELEVANCE_BOUNDS) + at for at in self.wiggly[:-1]), np.log(NOISE_BOUNDS)])

    @classmethod
    def at(cls, X: Array, y_l: Array, *, common: bool = False, **limits: Any) -> Search:
        """Find the starts for rows (n, d), labelled ones first; `common` if all features share one relevance."""
        share = np.ones(1) if common else dependence(X[: y_l.shape[0], :], y_l)
        shares = np.maximum(share * np.sqrt(len(share) / max(float(share @ share), 1e-300)), 0.03)
        unit = 1.0 / median_width(X)
        start = np.log(np.append(SMOOTH[0] * unit * shares, SMOOTH[1]))
        return cls(start, np.log(np.append(np.full(len(share), WIGGLY[0] * unit), WIGGLY[1])), **limits)

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
        words = {0: "converged", 1: f"stopped after max_iter={max_iter} steps"}.get(result.status, "")
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
        self, objective: Objective, count: int, random: np.random.RandomState, n_jobs: int | None = None
    ) -> list[Array]:
        """Return starts spread over the parameters: for each, the best of some draws after a short descent."""
        wiggly = np.arange(count * N_DRAWS)[:, None] % 2 == 0  # around the two starts in turn
        steps = random.normal(size=(len(wiggly), len(self.start)))
        draws = np.where(wiggly, self.wiggly, self.start) + np.where(wiggly, WIGGLY[2], SMOOTH[2]) * steps
        short = replace(self, solver="nested", max_iter=SHORT, tolerance=1e-6)
        descents, _ = short._attempts(thinned(objective, N_SCREENED, N_SCREENED), draws, n_jobs)
        picked: list[Array] = []
        for end in sorted(descents, key=lambda end: end.objective):
            far = all(np.abs(end.log_parameters - other).max() > 0.5 for other in picked)
            if far and len(picked) < count:
                picked.append(end.log_parameters)
        return picked

    def _attempts(
        self, objective: Objective, starts: Sequence[Array] | Array, n_jobs: int | None
    ) -> tuple[list[Descent], list[Descent | str]]:
        """Return the descents that reached an end, and how each ended."""
        pool = Parallel(n_jobs=n_jobs, prefer="threads")
        ends = pool(delayed(self.attempt)(objective, start) for start in starts)
        return [end for end in ends if isinstance(end, Descent)], ends

    def best(
        self, objective: Objective, starts: list[Array], n_jobs: int | None
    ) -> tuple[Descent, list[Descent | str]]:
        """Descend from every start, to the end unless it leads where the first does; return the lowest, and all."""
        first = self.attempt(objective, starts[0])
        soon = replace(self, max_iter=min(SOON, self.max_iter))
        ends = [first, *soon._attempts(objective, starts[1:], n_jobs)[1]]
        for place in range(1, len(ends)) if self.max_iter > SOON else ():
            end = ends[place]
            if isinstance(end, Descent) and not end.converged:
                given_up = replace(
                    end, message=f"given up after {SOON} steps, as it leads where the first does"
                )
                alike = _alike(objective, end, first)
                ends[place] = given_up if alike else self.attempt(objective, end.log_parameters)
        descents = [end for end in ends if isinstance(end, Descent)]
        log.info("%d of %d starts reached an end", len(descents), len(starts))
        if not descents:
            raise ValueError(f"Every start failed: {ends[0]}")
        return min(descents, key=lambda end: end.objective), ends


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
    given = tuple(None if isinstance(value, str) else value for value in (settings.matching, settings.slack))
    matching, slack = (value or 0.0 for value in given)
    if _all_equal(objective.y_l):
        return MatchingChoice(0.0, slack, "matching=0: all labels are equal, so there is no spread to match")
    if objective.X.shape[0] == objective.y_l.shape[0]:
        return MatchingChoice(0.0, slack, "matching=0: no row is unlabelled, so there is nothing to match")
    if given[0] == 0.0 or None not in given:
        return MatchingChoice(matching, slack, f"matching={matching:g}, slack={slack:g}, as set")
    if objective.y_l.shape[0] < MIN_LABELS:
        slack = SLACKS[1] if given[1] is None else slack
        few = f"fewer than {MIN_LABELS} labels are too few to choose by"
        return MatchingChoice(matching, slack, f"matching={matching:g}, slack={slack:g}: {few}")
    return _cross_validate(objective, given, search, start, settings.n_jobs)


def _cross_validate(
    objective: Objective, given: tuple[float | None, ...], search: Search, start: Array, n_jobs: int | None
) -> MatchingChoice:
    """Choose by the error at hidden labels; no matching unless another is better by more than its standard error."""
    weight, slack = given
    fixed = weight is not None
    slacks = SLACKS if slack is None else (slack,)
    weights = MATCHINGS if weight is None else (weight,)
    pairs = [(weight, slack) for slack in slacks for weight in weights]
    grid = np.array(pairs if fixed else [(0.0, slacks[0]), *pairs])
    # A choice between a dozen pairs needs no more digits than their errors differ by.
    quick = replace(search, max_iter=min(50, search.max_iter), tolerance=max(1e-5, search.tolerance))
    path = compare_matchings(make_folds(objective), quick, objective.prior, start, grid, n_jobs)
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


class Fold(NamedTuple):
    """One fold of transductive cross-validation: what is shown, and what is hidden among the unlabelled rows."""

    X: Array  # (n, d) shown rows, then hidden rows, then unlabelled rows
    y_l: Array  # (l - h,) shown labels
    hidden: Array  # (h,) labels of the hidden rows

    def scaled(self) -> tuple[Array, float, float]:
        """Return shown labels with mean 0 and variance 1, and the mean and scale that were taken out."""
        xp = arrays.namespace(self.y_l)
        mean, scale = float(xp.mean(self.y_l)), float(xp.std(self.y_l)) or 1.0
        return (self.y_l - mean) / scale, mean, scale

    def errors(self, search: Search, prior: tuple[float, float], start: Array, grid: Array) -> Array:
        """Return the mean squared error at the hidden rows for every (matching, slack) of `grid`, shape (g,)."""
        # Each descent begins where the one with the next smaller weight of the same slack ended, the first of a slack
        # where that without matching did.
        y_l, mean, scale = self.scaled()
        xp = arrays.namespace(self.y_l)
        if _all_equal(y_l):  # all weights agree on the only label there is
            return np.full(len(grid), float(xp.mean((mean - self.hidden) ** 2)))
        n_shown, n_hidden = y_l.shape[0], self.hidden.shape[0]
        ends: dict[float, Array] = {}
        errors = np.full(len(grid), np.inf)
        for i, (matching, slack) in enumerate(grid):
            objective = Objective(self.X, y_l, prior, float(matching), float(slack))
            descent = search.attempt(objective, ends.get(slack, start))
            if isinstance(descent, str):
                log.info("matching=%g, slack=%g failed: %s", matching, slack, descent)
                continue
            if matching == 0.0:
                start = descent.log_parameters
            else:
                ends[slack] = descent.log_parameters
            fit = Posterior.fit(self.X[:n_shown, :], y_l, descent.log_parameters)
            hidden = fit.mean(self.X[n_shown : n_shown + n_hidden, :]) * scale + mean
            errors[i] = float(xp.mean((hidden - self.hidden) ** 2))
        return errors


def make_folds(objective: Objective) -> list[Fold]:
    """Hide each fold of the labels in turn, among the unlabelled rows."""
    z, n_labelled = objective.y_l, objective.y_l.shape[0]
    shown, unlabelled = objective.X[:n_labelled, :], objective.X[n_labelled:, :]
    fold = rank_folds(z, shown, min(N_FOLDS, n_labelled))
    xp, folds = arrays.namespace(shown), []
    for k in range(fold.max() + 1):
        rows = xp.concat([arrays.pick(shown, fold != k), arrays.pick(shown, fold == k), unlabelled])
        folds.append(Fold(rows, arrays.pick(z, fold != k), arrays.pick(z, fold == k)))
    return folds


def _all_equal(y_l: Array) -> bool:
    return bool(arrays.namespace(y_l).all(y_l == y_l[0]))


def compare_matchings(
    folds: list[Fold],
    search: Search,
    prior: tuple[float, float],
    start: Array,
    grid: Array,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Compare weights and slacks by transductive cross-validation. Shapes: start (k,), grid (g, 2)."""
    errors = np.empty((len(folds), len(grid)))
    done = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(fold.errors)(search, prior, start, grid) for fold in folds
    )
    for i, line in enumerate(done):
        errors[i] = line
        log.info("matching: fold %d of %d", i + 1, len(folds))
    sizes = np.array([fold.hidden.shape[0] for fold in folds], dtype=float)
    share = sizes / sizes.sum()
    with np.errstate(invalid="ignore"):
        gains = errors[:, :1] - errors
        gain = share @ gains
        spread = np.sqrt(share @ (gains - gain) ** 2 / max(len(folds) - 1, 1))
    columns = ["matching", "slack", "error", "gain", "gain_se"]
    return pd.DataFrame(np.column_stack([grid, share @ errors, gain, spread]), columns=columns)


FOLD_STEPS = 30  # from the parameters of all labels to those of a fold's
# With so few labels the parameters of all remember each of them, and a short descent does not forget.
FROM_SCRATCH = 100
MOST_DESCENDED = 500  # with more labels the parameters of all stand in for those of a fold


class FoundParameters(NamedTuple):
    """Parameters, and how they were found."""

    best: Descent  # the lowest descent with the matching that was chosen, and without matching
    plain: Descent  # the lowest descent with the matching that was chosen, and without matching
    ends: list[Descent | str]  # how the descent from each start ended
    objective: Objective  # what the best one minimises
    search: Search
    choice: MatchingChoice
    max_exact: int  # labels up to which the process is exact


def find_parameters(
    objective: Objective,
    settings: TransductiveGPRegressor,
    random: np.random.RandomState,
    start: Array | None = None,
) -> FoundParameters:
    """Search without matching, or `start` from what is known to be good; choose how hard to match; search with it."""
    whole, objective = objective, thinned(objective, settings.max_searched, objective.X.shape[0])
    n_restarts, n_jobs, common = settings.n_restarts, settings.n_jobs, not settings.relevance
    if common:  # the kernel sees distances only
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
    X = whole.X if len(chosen.search.start) > whole.X.shape[1] else narrowed(whole.X)
    X_l, rest = X[: len(order), :], X[len(order) :, :]
    labels, answers = arrays.to_numpy(whole.y_l), []
    for visible, hidden in folds:
        shown = np.sort(place[visible])
        mean, spread = label_moments(labels[shown])
        X_v, y_l = arrays.pick(X_l, shown), arrays.beside((labels[shown] - mean) / spread, X_l)
        parameters = chosen.best.log_parameters
        if len(order) <= MOST_DESCENDED:
            objective = replace(whole, X=arrays.namespace(X_l).concat([X_v, rest]), y_l=y_l)
            parameters = _parameters_of_fold(chosen, objective, from_scratch=len(order) <= FROM_SCRATCH)
        posterior = fit_posterior(X_v, y_l, parameters, chosen.max_exact)
        answers.append(posterior.mean(arrays.pick(X_l, place[hidden])) * float(spread) + float(mean))
    return answers


def _parameters_of_fold(chosen: FoundParameters, objective: Objective, *, from_scratch: bool) -> Array:
    """Return parameters for a fold's labels, from those of all labels or from the two rules for a start."""
    if not from_scratch:
        short = replace(chosen.search, max_iter=FOLD_STEPS, tolerance=1e-5)
        return short.descend(objective, chosen.best.log_parameters).log_parameters
    X_l, common = objective.X[: objective.y_l.shape[0], :], len(chosen.search.start) <= objective.X.shape[1]
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
