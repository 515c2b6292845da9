"""Where arrays live: moving them to a device, and how much is free there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.words import option


def to_device(X: Any, device: str = "cuda") -> Any:
    """Return a numpy array as one that lives on a device, in double precision, for estimators to compute there.

    Parameters
    ----------
    X : array-like
        An array of another library is moved within that library.
    device : str, default="cuda"
        As torch names devices: ``"cuda"``, ``"cuda:1"``, ``"cpu"``. Without torch, cupy takes ``"cuda"``.

    Returns
    -------
    torch tensor or cupy array

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> to_device(np.ones(2), "cpu")
    tensor([1., 1.], dtype=torch.float64)
    """
    if arrays.library_of(X) == "cupy":
        return X
    try:
        import torch
    except ModuleNotFoundError:
        return _to_cupy(X, device)
    try:
        target = torch.device(device)
        if target.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch finds no CUDA device")
        return torch.as_tensor(X, dtype=torch.float64).to(target)
    except RuntimeError as error:
        raise ValueError(f"{option('device', device)} cannot be used: {error}.") from error


def _to_cupy(X: Any, device: str) -> Any:
    try:
        import cupy
    except ModuleNotFoundError:
        said = f"{option('device', device)} needs torch or cupy"
        raise ValueError(f"{said}: pip install transduce[gpu] brings torch.") from None
    if not device.startswith("cuda"):
        raise ValueError(f"{option('device', device)} needs torch; cupy has 'cuda' alone.")
    return cupy.asarray(X, dtype=cupy.float64)


def free_bytes(like: Any) -> float:
    """Return how many bytes are free on the device of an array; infinite where nothing says."""
    library = arrays.library_of(like)
    if library == "torch" and like.device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(like.device)
        held = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
        return float(free + held)
    if library == "cupy":
        import cupy

        return float(like.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    return np.inf


def check_fits(need: float, like: Any, what: str, advice: str) -> None:
    """Raise a MemoryError that says what is needed and what is free, before an allocation that cannot fit."""
    free = free_bytes(like)
    if need > free:
        sizes = f"{need / 1e9:.1f} GB, but the device has {free / 1e9:.1f} GB free"
        raise MemoryError(f"{what} needs about {sizes}. {advice}")


def announce(need: float, budget: float, like: Any, what: str, advice: str) -> None:
    """Warn before gigabytes are taken, where nothing says what is free; raise a MemoryError where they cannot fit."""
    check_fits(need, like, what, advice)
    if need > max(budget, 2e9) and np.isinf(free_bytes(like)):
        warnings.warn(f"{what} needs about {need / 1e9:.0f} GB of memory. {advice}", stacklevel=4)


def work_bytes(like: Any, budget: float) -> float:
    """Return how much a chunk of work may take: `budget`, or a fifth of what a device has free if that is more."""
    free = free_bytes(like)
    return max(budget, 0.2 * free) if np.isfinite(free) else budget
