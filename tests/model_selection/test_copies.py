"""Copies of a row get one answer, whichever of them an estimator answers differently."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from transduce import SpectralGraphTransducer, TransductiveBlend
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.model_selection.fit_and_predict import answer_of, fit_and_predict
from transduce.model_selection.problem import read_problem


def table_of_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(90, 2)).astype(float)
    X[X == 0.0] *= -1.0  # some zeros are negative, and are zeros all the same
    y = np.where(X[:, 0] + rng.normal(size=90) > 1.0, "a", "b").astype(object)
    y[rng.permutation(90) < 50] = None
    return X, y


def test_one_answer_for_copies():
    X, y = table_of_copies()
    problem = read_problem(X, y, task="classification")
    unlabelled = problem.sample.unlabelled
    visible = np.arange(len(problem.labels))
    graph = SpectralGraphTransducer(n_neighbors=4, random_state=0)
    reply = fit_and_predict(graph, problem, visible, unlabelled)
    answer = answer_of(reply, problem, Guarantee("none"))
    assert isinstance(answer, Answer)
    np.testing.assert_array_equal(answer.rows, unlabelled)
    for row in np.unique(X[unlabelled] + 0.0, axis=0):
        same = np.all(X[unlabelled] == row, axis=1)
        assert len(set(reply.values[same].tolist())) == 1
        assert len(set(answer.values[same].tolist())) == 1
        assert np.ptp(answer.scores[same]) == 0.0
    # The answer of a copy is that of the first one in the order of the estimator.
    own = reply.fitted.estimator.answer_
    firsts = problem.first_copies(unlabelled, unlabelled)
    np.testing.assert_array_equal(answer.scores, own.scores[firsts])
    assert (firsts <= np.arange(len(unlabelled))).all()


def test_no_rows_and_no_copies():
    X, y = table_of_copies()
    nobody = np.empty(0, dtype=int)
    assert len(read_problem(X, y, task="classification").first_copies(nobody, nobody)) == 0
    different = read_problem(np.arange(90.0)[:, None], y, task="classification")
    assert different.copies is None
    rows = np.array([5, 3])
    np.testing.assert_array_equal(different.first_copies(rows, rows), [0, 1])


def test_different_rows_of_whole_numbers_are_no_copies():
    rows = np.unique(np.random.default_rng(0).integers(2, size=(3000, 40)), axis=0).astype(float)
    y = np.full(len(rows), np.nan)
    y[:2] = 0.0, 1.0
    assert read_problem(rows, y, task="regression").copies is None


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="X has no rows: give a line of features for each row"):
        TransductiveBlend([Ridge()]).fit([], [1.0, 2.0, None])
