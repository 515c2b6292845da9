"""Settings of the moment-matched Gaussian processes, and their checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from transduce.core import checks
from transduce.core.validation import Transducer
from transduce.device import memory
from transduce.methods.gaussian_process.covariances import KernelChoice, check_kernel, is_fixed


@dataclass(kw_only=True, eq=False, repr=False)
class ProcessEstimator(Transducer):
    """What the estimators of numbers and of classes share: their settings."""

    kernel: KernelChoice = "rbf"
    matching: float | Literal["cv"] = "cv"
    slack: float | Literal["cv"] = "cv"
    epsilon: float | None = None
    prior: tuple[float, float] = (1.0, 0.5)
    relevance: bool = True
    n_restarts: int = 3
    max_iter: int = 200
    tol: float = 1e-8
    max_matched: int = 300
    max_searched: int = 2000
    standardize: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None


Settings = TypeVar("Settings", bound=ProcessEstimator)


def read_settings(given: Settings) -> Settings:
    """Return a copy of an estimator's settings, checked, or raise a ValueError that names one."""
    least = {"n_restarts": 0, "max_iter": 1, "max_matched": 1, "max_searched": 2}
    matching = _read_number_or_cv("matching", given.matching)
    slack = _read_number_or_cv("slack", given.slack)
    prior = read_prior("prior", given.prior)
    for name, number in least.items():
        checks.check_whole(name, getattr(given, name), least=number)
    checks.check_whole("n_restarts", given.n_restarts, least=0, most=10_000)
    checks.check_positive("tol", given.tol)
    checks.check_jobs(given.n_jobs)
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


def _read_number_or_cv(name: str, value: float | Literal["cv"]) -> float | Literal["cv"]:
    """Return a number from 0, or "cv"."""
    if checks.is_one_of(value, "cv"):
        return "cv"
    checks.check_number(f"{name} (a number from 0, or 'cv')", value)
    return checks.check_not_negative(name, value, "'cv' or a number from 0")


def read_prior(name: str, prior: tuple[float, float]) -> tuple[float, float]:
    """Return the two numbers of a prior."""
    if np.size(prior) != 2:
        raise ValueError(f"{name} must be two numbers from 0, such as (1.0, 0.5); got {prior!r}.")
    for value in prior:
        checks.check_number(f"Each of the two numbers of {name}", value)
        checks.check_not_negative(f"Each of the two numbers of {name}", value, "a number from 0")
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
