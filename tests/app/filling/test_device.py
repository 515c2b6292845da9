"""Filling on a device: the same answers, and a sentence where it cannot be."""

import numpy as np
import pandas as pd
import pytest

from transduce import TransductiveBlend, fill
from transduce.core import arrays
from transduce.model_selection.estimator_kinds import last_step

LEAST_ROWS = 150  # of a table that goes to a device here; the program waits for more


@pytest.fixture(autouse=True)
def _small_tables_go_to_a_device(monkeypatch):
    monkeypatch.setattr("transduce.model_selection.methods.DEVICE_ROWS", LEAST_ROWS)


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    n = LEAST_ROWS + 20
    X = random.normal(size=(n, 3))
    y = X[:, 0] + 0.2 * random.normal(size=n)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.where(random.uniform(size=n) < 0.4, y, np.nan)
    )


@pytest.mark.parametrize(
    "method",
    [
        "ridge",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gaussian-process", "auto")),
    ],
)
def test_the_same_answers_on_a_device(frame, method):
    pytest.importorskip("torch", reason="torch is not installed")
    here = fill(
        frame, "y", method=method, guarantee="column"
    )  # so that a second fit continues from a first
    there = fill(frame, "y", method=method, guarantee="column", device="cpu")
    for name in ("y_filled", "y_lower", "y_upper"):
        np.testing.assert_allclose(there.new[name], here.new[name], atol=1e-8)
    assert isinstance(there.answer.values, np.ndarray)
    assert "y" in there.report()


@pytest.mark.parametrize(
    "task", ["classification", pytest.param("regression", marks=pytest.mark.slow)]
)
def test_a_blend_puts_some_members_on_the_device(frame, task):
    """Numbers of spread 1 and shares of classes agree to 1e-8; trees never see the device."""
    pytest.importorskip("torch", reason="torch is not installed")
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["y"].to_numpy()
    if task == "classification":
        y = np.where(
            np.isnan(y), None, np.where(y > 0.5, "high", np.where(y > -0.5, "middle", "low"))
        )
    here, there = (
        TransductiveBlend(random_state=0, device=device).fit(X, y) for device in (None, "cpu")
    )
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-8)
    if task == "classification":
        np.testing.assert_allclose(
            there.answer_.probabilities, here.answer_.probabilities, atol=1e-8
        )
        assert (there.answer_.values == here.answer_.values).all()
    else:
        np.testing.assert_allclose(there.answer_.values, here.answer_.values, atol=1e-8)
        np.testing.assert_allclose(there.predict(X[:5]), here.predict(X[:5]), atol=1e-8)
    assert isinstance(there.transduction_, np.ndarray)
    on_device = {"transductive_ridge", "gaussian_process", "spectral_graph"} & set(
        there.estimators_
    )
    assert on_device
    for name, member in there.estimators_.items():
        answer = getattr(last_step(member), "answer_", None)
        numbers = (
            None if answer is None else answer.values if answer.scores is None else answer.scores
        )
        assert arrays.is_foreign(numbers) == (name in on_device)


def test_small_tables_stay_on_the_processor(frame):
    pytest.importorskip("torch", reason="torch is not installed")
    small = frame[: LEAST_ROWS - 1]
    blend = TransductiveBlend(random_state=0, device="cpu", weights="equal").fit(
        small[["a"]], small["y"]
    )
    assert not hasattr(blend.estimators_["transductive_ridge"], "steps")


@pytest.mark.parametrize("method", ["forest", "bayesian"])
def test_where_it_cannot_be(frame, method):
    labels = frame["y"].map(lambda value: value if np.isnan(value) else value > 0)
    table = frame.assign(y=labels) if method == "bayesian" else frame
    with pytest.raises(
        ValueError,
        match="is for the methods auto, ridge, gaussian-process, moment-matched, spectral-graph",
    ):
        fill(table, "y", device="cpu", method=method)


def test_a_device_that_is_no_name(frame):
    with pytest.raises(ValueError, match="device is a name"):
        fill(frame, "y", device=0)
