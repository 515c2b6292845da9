"""Checks of settings, each with one sentence that says what to correct."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from transduce.core.types import Array
from transduce.core.words import quoted


class WrongTypeError(TypeError, ValueError):
    """What was given is of a type that cannot be used: a TypeError and a ValueError."""


def check_type(
    name: str,
    value: object,
    kind: type | tuple[type, ...],
    allowed: str,
) -> None:
    """Raise an error that says what is allowed unless a value is of a type."""
    if not isinstance(value, kind):
        raise WrongTypeError(f"{name} must be {allowed}; got {quoted(value)}.")


def check_path(name: str, value: object) -> None:
    """Raise an error unless a value can be the path of a file or folder."""
    check_type(name, value, (str, os.PathLike), "the path of a file or folder, as text or a Path")


MOST_JOBS = 100_000  # more than any machine has cores; joblib would count in vain


def is_number(value: object) -> bool:
    """Return whether a setting is a real number, True and False not among them."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False
    return True


def as_float(value: Any) -> float:
    """Return a real number as a float, infinite where it is too large for one.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        if value > 0:
            return np.inf
        return -np.inf


LARGEST_SEED = 2**32 - 1  # of numpy's RandomState
LARGEST_WHOLE = 2**63 - 1  # that an array can hold


def check_random_state(value: Any) -> np.random.RandomState:
    """Return the random numbers that a seed stands for.

    Raise a ValueError that says what the seed must be if it stands for none.

    As scikit-learn's function of this name: None is numpy's own generator, a RandomState stays as
    it is.

    >>> check_random_state(0).randint(10)
    5
    """
    if value is None or value is np.random:
        return np.random.mtrand._rand
    if isinstance(value, np.random.RandomState):
        return value
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if is_whole and 0 <= int(value) <= LARGEST_SEED:
        return np.random.RandomState(int(value))
    raise ValueError(
        f"random_state must be a whole number from 0 to {LARGEST_SEED}, a RandomState or None; "
        f"got {quoted(value)}."
    )


def is_one_of(setting: object, *words: str) -> bool:
    """Return whether a setting is one of these words rather than a number."""
    return isinstance(setting, str) and setting in words


def check_positive(
    name: str,
    value: object,
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> float:
    """Return a setting as a float; raise a ValueError unless it is a positive finite number."""
    if not is_number(value) or not 0.0 < as_float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number; got {quoted(value)}.")
    if not least <= as_float(value) <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}; got {quoted(value)}.")
    return as_float(value)


def read_levels(name: str, value: object) -> tuple[float, ...]:
    """Return the levels that a setting names, the main one first.

    Raise a ValueError unless it is a share, or a list of different ones.
    """
    if not isinstance(value, list | tuple | np.ndarray):
        return (check_share(name, value),)
    levels = tuple(check_share(f"Each level of {name}", level) for level in value)
    if not levels:
        raise ValueError(f"{name} is an empty list: give at least one level, such as 0.9.")
    if len(set(levels)) < len(levels):
        raise ValueError(f"{name} names each level once; got {quoted(value)}.")
    return levels


def check_factor(name: str, value: object) -> None:
    """Raise a ValueError unless a setting is a number from 1 on."""
    if check_positive(name, value) < 1.0:
        raise ValueError(
            f"{name} must be a factor from 1 on, for example 1.5; got {quoted(value)}."
        )


def check_not_negative(name: str, value: object, allowed: str) -> float:
    """Return a setting as a float; raise a ValueError unless it is a number from 0 on."""
    if not is_number(value) or not as_float(value) >= 0.0:
        raise ValueError(f"{name} must be {allowed}; got {quoted(value)}.")
    return as_float(value)


def check_whole(
    name: str,
    value: object,
    *,
    least: int,
    most: int = LARGEST_WHOLE,
) -> None:
    """Raise a ValueError unless a setting is a whole number within bounds."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number from {least} on; got {quoted(value)}.")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}; got {quoted(value)}.")


def check_jobs(value: Any) -> None:
    """Raise a ValueError unless `n_jobs` is None or a whole number other than 0."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and (not is_whole or not 0 < abs(int(value)) <= MOST_JOBS):
        raise ValueError(
            "n_jobs must be None, a number of jobs, or -1 for one on each core; got "
            f"{quoted(value)}."
        )


def check_number(name: str, value: object) -> None:
    """Raise a ValueError unless a setting is a finite number."""
    if not is_number(value) or not np.isfinite(as_float(value)):
        raise ValueError(f"{name} must be a number; got {quoted(value)}.")


def check_flag(name: str, value: object) -> None:
    """Raise a ValueError unless a setting is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {quoted(value)}.")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless a setting is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {quoted(value)}."
        )


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


def check_list(name: str, value: object) -> None:
    """Raise a ValueError if a setting is one name where it takes a list of them."""
    if isinstance(value, str):
        raise ValueError(f"{name} takes a list of columns; got {quoted(value)}.")


def check_square(K: Array) -> None:
    """Raise a ValueError unless a precomputed kernel matrix is square and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            "kernel='precomputed' needs a square matrix of all rows against all rows; got shape "
            f"{K.shape}."
        )
    from transduce.core import arrays  # brings scikit-learn, for which help must not wait

    xp = arrays.namespace(K)
    difference = xp.abs(K - K.T)
    tolerance = 1e-8 * (xp.max(xp.abs(K)) + xp.abs(K.T))
    if not bool(xp.all(difference <= tolerance)):
        raise ValueError(
            "kernel='precomputed' needs a symmetric matrix; (K + K.T) / 2 repairs rounding."
        )


def check_share(name: str, value: object) -> float:
    """Return a share as a float, or raise a ValueError unless it lies strictly between 0 and 1."""
    if not is_number(value) or not 0.0 < as_float(value) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {quoted(value)}.")
    return as_float(value)
