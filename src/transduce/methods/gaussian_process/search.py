"""Parameters of a moment-matched Gaussian process: where a search for them starts, and how it descends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import median_width
from transduce.methods.gaussian_process.process import Objective

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
    def at(cls, X: Array, y_l: Array, *, common: bool = False, solver: str = "nested") -> Search:
        """Find the starts for rows (n, d), labelled ones first; `common` if all features share one relevance."""
        share = np.ones(1) if common else dependence(X[: y_l.shape[0], :], y_l)
        shares = np.maximum(share * np.sqrt(len(share) / max(float(share @ share), 1e-300)), 0.03)
        unit = 1.0 / median_width(X)
        start = np.log(np.append(SMOOTH[0] * unit * shares, SMOOTH[1]))
        wiggly = np.log(np.append(np.full(len(share), WIGGLY[0] * unit), WIGGLY[1]))
        return cls(start, wiggly, solver)

    def descend(self, objective: Objective, start: Array) -> Descent:
        """Minimise from one start."""
        start = np.clip(start, *self.bounds.T)
        if self.solver == "alternating" and objective.looks_at_unlabelled:
            return self._alternate(objective, start)
        return self._lbfgs(objective, start, self.max_iter, self.tolerance)

    def _lbfgs(self, objective: Objective, start: Array, max_iter: int, tolerance: float) -> Descent:
        path: list[float] = []

        def evaluate(at: Array) -> tuple[float, Array]:
            value, slope = objective(at)
            if not path:
                path.append(value)  # at the start, where the search evaluates first
            return value, slope

        found = minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            # The new style of callback, which is told the value, is recognised by its argument's name.
            callback=lambda intermediate_result: path.append(float(intermediate_result.fun)),
            options={"maxiter": max_iter, "maxfun": 10 * max_iter + 50, "ftol": tolerance, "gtol": 1e-5},
        )
        words = {0: "converged", 1: f"stopped after max_iter={max_iter} steps"}.get(found.status, "")
        if not words:
            # A line search that found no lower point: at a minimum, to rounding, if the slope within bounds vanishes.
            slope = found.x - np.clip(found.x - objective(found.x)[1], *self.bounds.T)
            flat = np.abs(slope).max() <= 1e-3 * max(1.0, abs(found.fun))
            words = "converged" if flat else "stopped where no lower point could be found"
        lowest = float(found.fun)
        return Descent(found.x, lowest, np.array(path), found.nit, found.nfev, words == "converged", words)

    def _alternate(self, objective: Objective, start: Array) -> Descent:
        """Take the q-step and the p-step in turns, as the paper does."""
        at, path, evaluations = start, [objective(start)[0]], 1
        for turn in range(1, self.max_iter + 1):
            held = replace(objective, q=objective.match(at))
            step = self._lbfgs(held, at, self.max_iter, self.tolerance)
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
        thin, draws = _thin(objective), self._draw(count * N_DRAWS, random)
        short = replace(self, solver="nested", max_iter=SHORT, tolerance=1e-6)
        ends = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(attempt)(short.descend, thin, draw) for draw in draws
        )
        found = [end for end in ends if isinstance(end, Descent)]
        picked: list[Array] = []
        for end in sorted(found, key=lambda end: end.objective):
            far = all(np.abs(end.log_parameters - other).max() > 0.5 for other in picked)
            if far and len(picked) < count:
                picked.append(end.log_parameters)
        return picked

    def _draw(self, count: int, random: np.random.RandomState) -> Array:
        """Return random points around the two starts in turn."""
        wiggly = np.arange(count)[:, None] % 2 == 0
        spread = np.where(wiggly, WIGGLY[2], SMOOTH[2])
        return np.where(wiggly, self.wiggly, self.start) + spread * random.normal(
            size=(count, len(self.start))
        )

    def best(
        self, objective: Objective, starts: list[Array], n_jobs: int | None
    ) -> tuple[Descent, list[Descent | str]]:
        """Descend from every start; return the lowest, and how each ended."""
        ends = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(attempt)(self.descend, objective, start) for start in starts
        )
        found = [end for end in ends if isinstance(end, Descent)]
        log.info("%d of %d starts reached an end", len(found), len(starts))
        if not found:
            raise ValueError(f"Every start failed: {ends[0]}")
        return min(found, key=lambda end: end.objective), ends


def attempt(
    descend: Callable[[Objective, Array], Descent], objective: Objective, start: Array
) -> Descent | str:
    """Return the descent, or in words why it failed."""
    try:
        return descend(objective, start)
    except ValueError as error:
        return str(error)


def _thin(objective: Objective) -> Objective:
    """Return the objective on at most `N_SCREENED` labelled and as many unlabelled rows, at even steps."""
    n_labelled, n = objective.y_l.shape[0], objective.X.shape[0]
    labelled, unlabelled = even_steps(n_labelled), n_labelled + even_steps(n - n_labelled)
    if len(labelled) + len(unlabelled) == n:
        return objective
    some = arrays.pick(objective.X, np.concatenate([labelled, unlabelled]))
    return replace(objective, X=some, y_l=arrays.pick(objective.y_l, labelled))


def even_steps(count: int, most: int = N_SCREENED) -> AnyArray:
    """Return at most so many of the numbers from 0 to `count`, at even steps."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def dependence(X_l: Array, y_l: Array) -> Array:
    """Return how much of the labels' spread each feature explains alone: the correlation ratio, from binned means.

    Shapes: X_l (l, d), y_l (l,); returns (d,).
    """
    if arrays.is_foreign(X_l):
        return _foreign_dependence(X_l, y_l)
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


def _foreign_dependence(X_l: Any, y_l: Any) -> Array:
    """Return the same, computed on a device."""
    xp, (n_rows, d) = arrays.namespace(X_l), X_l.shape
    mean = xp.mean(y_l)
    spread = float(xp.mean((y_l - mean) ** 2))
    n_bins = max(2, min(6, n_rows // 5))
    if n_rows < 4 or spread == 0.0:
        return np.zeros(d)
    ratios = np.empty(d)
    for j in range(d):
        feature = 1.0 * X_l[:, j]  # contiguous
        ordered = xp.sort(feature)
        ends = (xp.searchsorted(ordered, feature, side=side) for side in ("left", "right"))
        rank = 0.5 * (sum(xp.astype(end, xp.float64) for end in ends) + 1.0)  # equal values share a bin
        bins = xp.floor((rank - 0.5) * n_bins / n_rows)
        explained = 0.0
        for place in range(n_bins):
            inside = xp.astype(bins == place, xp.float64)
            count = float(xp.sum(inside))
            explained += count * (float(xp.sum(inside * y_l)) / max(count, 1.0) - float(mean)) ** 2
        ratios[j] = explained / n_rows / spread
    return np.sqrt(np.clip(ratios - (n_bins - 1) / n_rows, 0.0, 1.0))
