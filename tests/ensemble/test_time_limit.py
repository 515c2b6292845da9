"""Time as a limit: what runs past it is stopped, and that is said."""

from __future__ import annotations

import threading
import time
from types import FunctionType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

from tests.model_selection.test_model_selection import numbers
from transduce import TransductiveBlend, TransductiveRidge
from transduce.ensemble import blend_fit
from transduce.ensemble.blend_fit import Budget, OutOfTimeError, time_limit


class Endless(RegressorMixin, BaseEstimator):
    """Never done with more labels than `most`, and takes any exception for its own."""

    def __init__(self, most=0):
        self.most = most

    def fit(self, X, y):
        while len(X) > self.most:
            try:
                time.sleep(0.01)
            except Exception:
                continue
        return self

    def predict(self, X):
        return np.zeros(len(X))


def constants():
    return {str(value): DummyRegressor(strategy="constant", constant=value) for value in (0.0, 1.0)}


def test_a_block_is_stopped_and_no_later_line_is_hit():
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        Endless().fit([1], [1])
    with time_limit(0.05):
        pass
    for _ in range(20):
        time.sleep(0.005)
    with time_limit(float("inf")):
        pass
    with pytest.raises(OutOfTimeError), time_limit(0.0):
        pytest.fail("there was no time to begin")


def test_what_is_being_compiled_is_waited_for(monkeypatch):
    def work():
        while True:
            pass

    answers = iter([True, True, False])
    monkeypatch.setattr(blend_fit, "_compiles", lambda thread: next(answers))
    with pytest.raises(OutOfTimeError), time_limit(0.001):
        work()
    assert list(answers) == []


def test_numba_is_known_by_its_frames():
    def compiles():
        return blend_fit._compiles(threading.get_ident())

    names = {"__name__": "numba.core.dispatcher", "blend_fit": blend_fit, "threading": threading}
    assert FunctionType(compiles.__code__, names)()
    assert not compiles()


def test_a_limit_works_in_any_thread():
    found = []

    def work():
        try:
            with time_limit(0.05):
                while True:
                    time.sleep(0.005)
        except OutOfTimeError:
            found.append("stopped")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert found == ["stopped"]


def test_a_budget():
    assert Budget().left() == np.inf
    budget = Budget(100)
    assert 0 < budget.left(0.7) < budget.left() <= 100
    assert "100 s" in budget.said


def test_a_member_that_never_ends_is_stopped_and_said():
    X, y, _ = numbers()
    members = {**constants(), "endless": Endless()}
    model = TransductiveBlend(members, budget_seconds=3.0, random_state=0).fit(X, y)
    assert list(model.weights_.index) == ["0.0", "1.0"]
    said = model.answer_.diagnostics["left out"]
    assert said == {"endless": "it was stopped, because it took too much of the time budget of 3 s"}
    plain = TransductiveBlend(constants(), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.transduction_, plain.transduction_)


def test_answers_at_hidden_labels_have_their_time_too():
    X, y, _ = numbers()
    n_labels = int(np.sum(~np.isnan(y)))

    class Late(Endless):
        """Quick with all labels, endless with fewer."""

        def fit(self, X, y):
            while len(X) < n_labels:
                time.sleep(0.01)
            return self

    model = TransductiveBlend(
        {**constants(), "late": Late()}, budget_seconds=1.5, random_state=0
    ).fit(X, y)
    assert "hidden labels" in model.answer_.diagnostics["left out"]["late"]
    assert list(model.weights_.index) == ["0.0", "1.0"]


def test_one_answers_however_little_time_there_is():
    X, y, _ = numbers()
    model = TransductiveBlend({"tr": TransductiveRidge(), **constants()}, budget_seconds=1e-9).fit(
        X, y
    )
    assert list(model.weights_.index) == ["0.0"]  # the first that is no transducer
    said = model.answer_.diagnostics["left out"]
    assert said == dict.fromkeys(("tr", "1.0"), "nothing was left of the time budget of 1e-09 s")
    assert not hasattr(model, "out_of_fold_")
    with pytest.raises(ValueError, match="budget_seconds"):
        TransductiveBlend(constants(), budget_seconds=0).fit(X, y)
