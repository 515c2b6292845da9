"""Where arrays live: moving them to a device, and how much is free there."""

from __future__ import annotations

import warnings

import numpy as np

from transduce.core import arrays
from transduce.core.types import DeviceArray, Rows
from transduce.core.words import option

GIGABYTE = 1e9
MUCH = 2 * GIGABYTE  # that is announced, where nothing says how much is free
SHARE_OF_FREE = 0.2  # of a device's free memory that one chunk of work may take


def to_device(X: Rows, device: str = "cuda") -> DeviceArray:
    """Return an array as one of torch that lives on a device, in double precision.

    Estimators then compute there.

    Parameters
    ----------
    X : array-like
        An array of numpy or torch.
    device : str, default="cuda"
        As torch names devices: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.

    Returns
    -------
    torch tensor

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> to_device(np.ones(2), "cpu")
    tensor([1., 1.], dtype=torch.float64)
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise ValueError(f"{option('device', device)} needs torch: pip install torch.") from None
    try:
        target = torch.device(device)
        if target.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch finds no CUDA device")
        return torch.as_tensor(X, dtype=torch.float64).to(target)
    except RuntimeError as error:
        raise ValueError(f"{option('device', device)} cannot be used: {error}.") from error


def free_bytes(like: DeviceArray) -> float:
    """Return how many bytes are free on the device of an array; infinite where nothing says."""
    if arrays.library_of(like) != "torch" or like.device.type != "cuda":
        return np.inf
    import torch

    free, _ = torch.cuda.mem_get_info(like.device)
    reserved = torch.cuda.memory_reserved(like.device)
    allocated = torch.cuda.memory_allocated(like.device)
    return float(free + reserved - allocated)


def check_fits(need: float, like: DeviceArray, what: str, advice: str) -> None:
    """Raise a MemoryError, before an allocation that cannot fit, with what is needed and free."""
    free = free_bytes(like)
    if need > free:
        raise MemoryError(
            f"{what} needs about {need / GIGABYTE:.1f} GB, but the device has "
            f"{free / GIGABYTE:.1f} GB free. {advice}"
        )


def announce(
    need: float,
    budget: float,
    like: DeviceArray,
    what: str,
    advice: str,
) -> None:
    """Warn before gigabytes are taken where nothing says what is free; refuse what cannot fit."""
    check_fits(need, like, what, advice)
    if need > max(budget, MUCH) and np.isinf(free_bytes(like)):
        message = f"{what} needs about {need / GIGABYTE:.0f} GB of memory. {advice}"
        warnings.warn(message, stacklevel=4)


def work_bytes(like: DeviceArray, budget: float) -> float:
    """Return how much a chunk of work may take: `budget`, or more if a device has much free."""
    free = free_bytes(like)
    if np.isinf(free):
        return budget
    return max(budget, SHARE_OF_FREE * free)
