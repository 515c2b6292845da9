"""Libraries that the science does without: polars and, to hold numerics against numpy, array-api-strict and torch."""

from __future__ import annotations

import importlib.util
import os
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from transduce.core import arrays


class Missing:
    """Stand for a library that is not installed: a test that calls something of it is skipped."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return partial(self._skip, attribute)

    def _skip(self, *_, **__):
        pytest.skip(f"{self._name} is not installed")


try:
    import polars
except ImportError:
    polars = Missing("polars")


# A text is looked at when the test begins: torch takes seconds to import.
NO_DEVICE = "not __import__('torch').cuda.is_available()"


def library(name):
    """Return a parameter for a test: the name, skipped with a reason where it cannot be had."""
    module = "array_api_strict" if name == "strict" else "torch"
    if importlib.util.find_spec(module) is None:
        mark = pytest.mark.skip(reason=f"{name} is not installed")
    elif name == "cuda":
        mark = pytest.mark.skipif(NO_DEVICE, reason="there is no CUDA device")
    else:
        mark = ()
    return pytest.param(name, marks=mark)


ON_PROCESSOR = [library("strict"), library("torch")]


def give(values, name):
    """Return a numpy array as one of the library, on its device."""
    if name == "strict":
        import array_api_strict

        return array_api_strict.asarray(np.array(values))
    import torch

    return torch.as_tensor(np.array(values), device="cuda" if name == "cuda" else "cpu")


@contextmanager
def dispatch():
    """Switch scikit-learn's array dispatch on; scipy's own, which it asks for, is not used here."""
    from sklearn import config_context

    before = os.environ.get("SCIPY_ARRAY_API")
    os.environ["SCIPY_ARRAY_API"] = "1"
    try:
        with config_context(array_api_dispatch=True):
            yield
    finally:
        if before is None:
            del os.environ["SCIPY_ARRAY_API"]
        else:
            os.environ["SCIPY_ARRAY_API"] = before


def same(found, wanted, name, *, tolerance=1e-10):
    """Assert that an array lives in the library and equals numpy's, relative to the largest entry."""
    assert arrays.library_of(found) == {"strict": "array_api_strict"}.get(name, "torch")
    if name == "cuda":
        assert found.device.type == "cuda"
    found, wanted = arrays.to_numpy(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    scale = np.abs(wanted[finite]).max(initial=1.0)
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=0.0, atol=tolerance * scale)
