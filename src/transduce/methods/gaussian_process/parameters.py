"""The parameters of a Gaussian process: found without matching, then with it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from transduce.core import arrays
from transduce.core.types import Array
from transduce.device.kernels import narrowed
from transduce.methods.gaussian_process.covariances import RADIAL
from transduce.methods.gaussian_process.descents import Descent, Search, SearchOrder
from transduce.methods.gaussian_process.laplace import ClassObjective
from transduce.methods.gaussian_process.matching import MatchingChoice, MatchingSettings
from transduce.methods.gaussian_process.process import Objective
from transduce.methods.gaussian_process.settings import ProcessEstimator

log = logging.getLogger(__name__)

AnyObjective = TypeVar("AnyObjective", Objective, ClassObjective)
ChooseMatching = Callable[[AnyObjective, MatchingSettings, Search, Array], MatchingChoice]


@dataclass(frozen=True)
class FoundParameters(Generic[AnyObjective]):
    """Parameters, and how they were found."""

    best: Descent  # the lowest descent with the matching that was chosen
    plain: Descent  # the lowest descent without matching
    ends: list[Descent | str]  # how the descent from each start ended
    objective: AnyObjective  # what the best one minimises
    search: Search
    choice: MatchingChoice

    def has_common_relevance(self, X: Array) -> bool:
        """Return whether the features of rows (n, d) share one relevance."""
        return len(self.search.start) <= X.shape[1]


def find_parameters(
    whole: AnyObjective,
    settings: ProcessEstimator,
    random: np.random.RandomState,
    *,
    choose: ChooseMatching[AnyObjective],
    start: Array | None = None,
    solver: SearchOrder = "nested",
) -> FoundParameters[AnyObjective]:
    """Search without matching; `choose` how hard to match; search with it.

    A `start` that is known to be good takes the place of the rule and of all restarts.
    """
    n_jobs = settings.n_jobs
    has_common_relevance = not settings.relevance
    objective = whole.thinned(settings.max_searched, whole.X.shape[0])
    sees_distances = objective.covariance.name in RADIAL
    if has_common_relevance and sees_distances and settings.matching != 0:
        # The kernel sees distances only, here of many sets of rows.
        objective = replace(objective, X=narrowed(objective.X))
    search = Search.at(
        objective.X,
        objective.y_l,
        common=has_common_relevance,
        solver=solver,
        max_iter=settings.max_iter,
        tolerance=settings.tol,
        noise_bounds=objective.noise_bounds,
    )
    log.info("parameters without matching")
    if start is None:
        n_restarts = settings.n_restarts
        start = search.start
    else:
        n_restarts = 0
    restarts: list[Array] = search.restarts(objective, n_restarts, random, n_jobs)
    plain, ends = search.best(objective, [start, *restarts], n_jobs)
    best = plain
    wanted = MatchingSettings.of(settings.matching, settings.slack, settings.epsilon, n_jobs)
    choice = choose(objective, wanted, search, plain.log_parameters)
    log.info(choice.why)
    objective = replace(objective, matching=choice.matching, slack=choice.slack)
    if objective.looks_at_unlabelled:
        log.info("parameters with matching=%g, slack=%g", choice.matching, choice.slack)
        restarts = search.restarts(objective, n_restarts, random, n_jobs)
        starts = [plain.log_parameters, search.start, *restarts]
        best, ends = search.best(objective, starts, n_jobs)
    objective = replace(whole, matching=choice.matching, slack=choice.slack)
    return FoundParameters(best, plain, ends, objective, search, choice)


def set_choice(estimator: Any, chosen: FoundParameters[AnyObjective]) -> None:
    """Set attributes of an estimator: how hard moments are matched, and how the descent went."""
    best = chosen.best
    choice = chosen.choice
    estimator.matching_ = choice.matching
    estimator.slack_ = choice.slack
    if choice.path is not None:
        estimator.matching_path_ = choice.path
    estimator.objective_path_ = best.path
    estimator.n_iter_ = best.n_iter
    estimator.converged_ = best.converged


def warn_of_parameters(chosen: FoundParameters[AnyObjective]) -> None:
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
            f"The noise ran into its lower bound, {np.exp(bounds[-1, 0]):g} of the variance: "
            "the labels look like an exact function of the features. If they are not, a prior "
            "whose first number is larger keeps the noise away from 0.",
            ConvergenceWarning,
            stacklevel=3,
        )
