"""Filling on a device: the same answers, and a sentence where it cannot be."""

import numpy as np
import pandas as pd
import pytest

from transduce import fill


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = X[:, 0] + 0.2 * random.normal(size=200)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.where(random.uniform(size=200) < 0.4, y, np.nan)
    )


@pytest.mark.parametrize("method", ["ridge", "gaussian-process"])
def test_the_same_answers_on_a_device(frame, method):
    pytest.importorskip("torch", reason="torch is not installed")
    here = fill(frame, "y", method=method, guarantee="column")
    there = fill(frame, "y", method=method, device="cpu")
    for name in ("y_filled", "y_lower", "y_upper"):
        np.testing.assert_allclose(there.new[name], here.new[name], atol=1e-8)
    assert isinstance(there.answer.values, np.ndarray)
    assert "y" in there.report()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "is for the methods ridge, gaussian-process, spectral-graph"),
        ({"method": "ridge", "guarantee": "row"}, "needs guarantee='column'"),
    ],
)
def test_where_it_cannot_be(frame, settings, words):
    with pytest.raises(ValueError, match=words):
        fill(frame, "y", device="cpu", **settings)


def test_a_device_that_is_no_name(frame):
    with pytest.raises(ValueError, match="device is a name"):
        fill(frame, "y", device=0)
