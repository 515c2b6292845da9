"""Checks of settings, each with one sentence that says what to correct."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from transduce.core.types import Array

MOST_JOBS = 100_000  # more than any machine has cores; joblib would count in vain


def is_number(value: Any) -> bool:
    """Return whether a setting is a real number, True and False not among them."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False
    return True


def check_positive(name: str, value: Any, *, least: float = 0.0, most: float = np.inf) -> float:
    """Return a setting as a float, or raise a ValueError unless it is a positive finite number within bounds."""
    if not is_number(value) or not 0.0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number; got {value!r}.")
    if not least <= float(value) <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}; got {value!r}.")
    return float(value)


def check_factor(name: str, value: Any) -> None:
    """Raise a ValueError unless a setting is a number from 1 on."""
    if check_positive(name, value) < 1.0:
        raise ValueError(f"{name} must be a factor from 1 on, for example 1.5; got {value!r}.")


def check_not_negative(name: str, value: Any, allowed: str) -> float:
    """Return a setting as a float, or raise a ValueError unless it is a number from 0 to infinity."""
    if not is_number(value) or not float(value) >= 0.0:
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return float(value)


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Raise a ValueError unless a setting is a whole number, no smaller than `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number from {least} on; got {value!r}.")


def check_jobs(value: Any) -> None:
    """Raise a ValueError unless `n_jobs` is None or a whole number other than 0."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and (not whole or not 0 < abs(int(value)) <= MOST_JOBS):
        raise ValueError(
            f"n_jobs must be None, a number of jobs, or -1 for one on each core; got {value!r}."
        )


def check_number(name: str, value: Any) -> None:
    """Raise a ValueError unless a setting is a finite number."""
    if not is_number(value) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a number; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless a setting is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless a setting is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def as_floats(name: str, values: Any) -> Array:
    """Return numbers as an array of floats, or raise a ValueError that says what they must be."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ValueError(f"{name} must be real numbers, not complex ones.")
        return array.astype(float)
    except OverflowError:
        raise ValueError(
            f"{name} holds a whole number that is too large for double precision: make it smaller."
        ) from None
    except TypeError:
        raise ValueError(f"{name} must be numbers.") from None


def check_list(name: str, value: Any) -> None:
    """Raise a ValueError if a setting is one name where it takes a list of them."""
    if isinstance(value, str):
        raise ValueError(f"{name} takes a list of columns; got {value!r}.")


def check_square(K: Array) -> None:
    """Raise a ValueError unless a precomputed kernel matrix is square and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        what = "a square matrix of all rows against all rows"
        raise ValueError(f"kernel='precomputed' needs {what}; got shape {K.shape}.")
    from transduce.core import arrays  # brings scikit-learn, for which help must not wait

    xp = arrays.namespace(K)
    if not bool(xp.all(xp.abs(K - K.T) <= 1e-8 * (xp.max(xp.abs(K)) + xp.abs(K.T)))):
        raise ValueError(
            "kernel='precomputed' needs a symmetric matrix; (K + K.T) / 2 repairs rounding."
        )


def check_share(name: str, value: Any) -> float:
    """Return a share as a float, or raise a ValueError unless it lies strictly between 0 and 1."""
    if not is_number(value) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)
