"""How the parameters of a Gaussian process are found: descents from several starts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.stats import rankdata
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device.kernels import median_width
from transduce.methods.gaussian_process.process import NOISE_BOUNDS

log = logging.getLogger(__name__)

RELEVANCE_BOUNDS = (1e-5, 1e4)  # times the inverse median distance of two rows


class Objective(Protocol):
    """What descents lower: a function of the logarithms of relevances and noise."""

    @property
    def looks_at_unlabelled(self) -> bool:
        """Whether there is something to match."""

    @property
    def label_spread(self) -> float:
        """Standard deviation of what `left_out_errors` are the errors of."""

    def __call__(self, log_parameters: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""

    def thinned(self, most_labelled: int, most_unlabelled: int) -> Self:
        """Return the same on at most so many rows of each kind."""

    def left_out_errors(self, log_parameters: Array) -> Array:
        """Return by how much each label differs from what the others say of it."""

    def hold_q(self, log_parameters: Array) -> Self:
        """Return the same with q held at the best for these parameters."""


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


SearchOrder = Literal["nested", "alternating"]


@dataclass(frozen=True)
class Search:
    """How parameters are looked for."""

    start: Array  # (k,) where the first descent begins: see `SMOOTH`
    wiggly: Array  # (k,) around which half of the restarts are drawn; sets the bounds
    solver: SearchOrder = "nested"
    max_iter: int = 200  # most steps of a descent
    # A descent ends when a step lowers the objective by less than this share of it.
    tolerance: float = 1e-8
    noise_bounds: tuple[float, float] = NOISE_BOUNDS

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of each logarithm, shape (k, 2)."""
        of_relevances = [np.log(RELEVANCE_BOUNDS) + at for at in self.wiggly[:-1]]
        return np.array([*of_relevances, np.log(self.noise_bounds)])

    @classmethod
    def at(
        cls,
        X: Array,
        y_l: Array,
        *,
        common: bool = False,
        solver: SearchOrder = "nested",
        max_iter: int = 200,
        tolerance: float = 1e-8,
        noise_bounds: tuple[float, float] = NOISE_BOUNDS,
    ) -> Search:
        """Find the starts for rows (n, d), labelled ones first, and labels (l,) or (l, c).

        `common`: all features share one relevance.
        """
        if common:
            shares = np.ones(1)
        else:
            X_l = X[: y_l.shape[0], :]
            columns = arrays.to_numpy(y_l).reshape(y_l.shape[0], -1)
            shares = np.max([dependence(X_l, column) for column in columns.T], axis=0)
        mean_square = max(float(shares @ shares), 1e-300)
        scaled_shares = np.maximum(shares * np.sqrt(len(shares) / mean_square), 0.03)
        unit = 1.0 / median_width(X)
        smooth = np.append(SMOOTH.relevance * unit * scaled_shares, SMOOTH.noise)
        equal = np.full(len(shares), WIGGLY.relevance * unit)
        wiggly = np.append(equal, WIGGLY.noise)
        return cls(np.log(smooth), np.log(wiggly), solver, max_iter, tolerance, noise_bounds)

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
            with_q_held = objective.hold_q(log_parameters)
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
        ends = short._attempts(objective.thinned(N_SCREENED, N_SCREENED), draws, n_jobs)
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
    difference = objective.left_out_errors(end.log_parameters) - objective.left_out_errors(
        lower.log_parameters
    )
    return bool(np.std(difference) < ALIKE * objective.label_spread)


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
