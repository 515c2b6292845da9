"""Settings of the moment-matched Gaussian process: what they may be, and what a fit with them will take."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from transduce.core import checks

MEMORY = 2e9  # bytes beyond which a fit announces what it will take


@dataclass(frozen=True)
class Settings:
    """Settings of `TransductiveGPRegressor`, checked; a matching or slack of None is chosen by cross-validation."""

    matching: float | None
    slack: float | None
    prior: tuple[float, float]
    relevance: bool
    n_restarts: int
    max_iter: int
    tol: float
    solver: str
    max_matched: int
    max_searched: int
    max_exact: int
    standardize: bool
    n_jobs: int | None


def read_settings(given: dict[str, Any]) -> Settings:
    """Return the settings of an estimator, or raise a ValueError that says which one to mend."""
    read = {field.name: given[field.name] for field in fields(Settings)}
    for name in ("matching", "slack"):
        if isinstance(read[name], str) and read[name] == "cv":
            read[name] = None
        else:
            checks.check_number(f"{name} (a number from 0, or 'cv')", read[name])
            read[name] = checks.check_not_negative(name, read[name], "'cv' or a number from 0")
    if np.size(read["prior"]) != 2:
        raise ValueError(f"prior must be two numbers from 0, such as (1.0, 0.5); got {read['prior']!r}.")
    for value in read["prior"]:
        checks.check_number("Each of the two numbers of prior", value)
        checks.check_not_negative("Each of the two numbers of prior", value, "a number from 0")
    read["prior"] = tuple(map(float, read["prior"]))
    least = {"n_restarts": 0, "max_iter": 1, "max_matched": 1, "max_searched": 2, "max_exact": 1}
    for name, number in least.items():
        checks.check_whole(name, read[name], least=number)
    checks.check_positive("tol", read["tol"])
    checks.check_jobs(read["n_jobs"])
    checks.check_choice("solver", read["solver"], ("nested", "alternating"))
    checks.check_flag("relevance", read["relevance"])
    checks.check_flag("standardize", read["standardize"])
    return Settings(**read)


def announce_cost(n_labelled: int) -> None:
    """Warn before gigabytes are taken; `n_labelled` are those on which parameters are searched."""
    need = 4 * 8.0 * n_labelled**2
    if need > MEMORY:
        warnings.warn(
            f"A Gaussian process with {n_labelled:,} labels needs about {need / 1e9:.0f} GB of memory and hundreds "
            "of Cholesky factors of that size; TransductiveRidge(centres=500) needs far less.",
            stacklevel=3,
        )
