"""Predictions made elsewhere, corrected by an estimator: by hand, laws, limits, refusals, coverage."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests import brute
from tests.libraries import polars as pl
from transduce import (
    ConformalTransducer,
    RidgeConfidenceMachine,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
)
from transduce.model_selection import (
    CorrectedPredictions,
    TransductiveSearchCV,
    cross_val_transduce,
)

RIDGE = TransductiveRidge(ridge=0.1, width=2.0)


def judged(n=40, n_labelled=20, seed=0):
    """Return a table whose column "llm" nearly knows a number that other columns do not tell."""
    random = np.random.RandomState(seed)
    hidden = 5.0 * random.normal(size=n)
    X = pd.DataFrame({"size": random.normal(size=n), "llm": 0.0, "age": random.normal(size=n)})
    truth = hidden + np.sin(X["size"])
    X["llm"] = hidden + 0.1 * random.normal(size=n)
    return X, truth.to_numpy(), np.where(np.arange(n) < n_labelled, truth, np.nan)


AROUND = {
    "alone": lambda inner: CorrectedPredictions(inner, predictions="llm"),
    "conformal": lambda inner: ConformalTransducer(inner, predictions="llm", random_state=0),
    "blend": lambda inner: TransductiveBlend([("one", inner)], predictions="llm", random_state=0),
}


# ------------------------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    "estimator",
    [RIDGE, Ridge(), make_pipeline(StandardScaler(), Ridge()), RidgeConfidenceMachine()],
    ids=["transducer", "regressor", "pipeline", "machine"],
)
def test_it_is_a_fit_to_labels_minus_predictions(estimator):
    X, _, y = judged()
    model = CorrectedPredictions(estimator, predictions="llm").fit(X, y)
    values, answers = brute.corrected_predictions(estimator, X, y, X["llm"].to_numpy())
    np.testing.assert_allclose(model.transduction_, values)
    np.testing.assert_allclose(model.predict(X), answers)


@pytest.mark.parametrize("weights", ["shrunk", "equal"])
def test_a_blend_is_a_blend_of_labels_minus_predictions(weights):
    X, _, y = judged()
    members = [("ridge", RIDGE), ("mean", DummyRegressor())]
    settings = {"weights": weights, "random_state": 0}
    model = TransductiveBlend(members, predictions="llm", **settings).fit(X, y)
    plain = TransductiveBlend(members, **settings).fit(X, y - X["llm"])
    predictions = X["llm"].to_numpy()
    unlabelled = plain.answer_.rows
    np.testing.assert_allclose(model.weights_, plain.weights_)
    np.testing.assert_allclose(model.answer_.values, plain.answer_.values + predictions[unlabelled])
    values, errors = model.predict(X, return_std=True)
    plain_values, plain_errors = plain.predict(X, return_std=True)
    np.testing.assert_allclose(values, plain_values + predictions)
    np.testing.assert_allclose(errors, plain_errors)
    if weights == "shrunk":
        np.testing.assert_allclose(model.answer_.standard_errors, plain.answer_.standard_errors)
        labelled = model.out_of_fold_.index
        expected = plain.out_of_fold_.add(predictions[labelled], axis=0)
        pd.testing.assert_frame_equal(model.out_of_fold_, expected)


def test_a_blend_without_members_is_corrected_too():
    X, truth, y = judged(60, 30)
    model = TransductiveBlend(predictions="llm", random_state=0).fit(X, y)
    around = CorrectedPredictions(TransductiveBlend(random_state=0), predictions="llm").fit(X, y)
    np.testing.assert_allclose(model.transduction_, around.transduction_)
    unlabelled = np.isnan(y)
    assert np.abs(model.transduction_ - truth)[unlabelled].mean() < 0.5


@pytest.mark.parametrize("refit", [False, True])
def test_intervals_are_those_of_labels_minus_predictions(refit):
    X, _, y = judged(80, 50)
    settings = {"random_state": 0, "confidence": [0.8, 0.6], "refit": refit}
    settings["test_exchangeability"] = False
    model = ConformalTransducer(RIDGE, predictions="llm", **settings).fit(X, y)
    wrapped = CorrectedPredictions(RIDGE, predictions="llm")
    same = ConformalTransducer(wrapped, **settings).fit(X, y)
    np.testing.assert_array_equal(model.transduction_, same.transduction_)
    plain = ConformalTransducer(RIDGE, **settings).fit(X, y - X["llm"])
    np.testing.assert_array_equal(model.calibration_rows_, plain.calibration_rows_)
    moved = plain.answer_.shifted(X["llm"].to_numpy()[plain.answer_.rows])
    for one, other in [
        (model.answer_, moved),
        *zip(model.answer_.further, moved.further, strict=True),
    ]:
        np.testing.assert_allclose(one.regions.hull(), other.regions.hull())
    assert model.guarantee_.kind == plain.guarantee_.kind


def test_standard_errors_and_regions_of_the_estimator_stay():
    X, _, y = judged()
    predictions = X["llm"].to_numpy()
    process = TransductiveGPRegressor(n_restarts=1, random_state=0)
    model = CorrectedPredictions(process, predictions="llm").fit(X, y)
    plain = clone(process).fit(X, y - predictions)
    np.testing.assert_allclose(model.answer_.standard_errors, plain.answer_.standard_errors)
    machine = CorrectedPredictions(RidgeConfidenceMachine(), predictions="llm").fit(X, y)
    plain = RidgeConfidenceMachine().fit(X, y - predictions)
    rows = plain.answer_.rows
    expected = plain.answer_.regions.shifted(predictions[rows]).hull()
    np.testing.assert_allclose(machine.answer_.regions.hull(), expected)
    assert machine.answer_.guarantee == plain.answer_.guarantee


def test_standard_errors_of_new_rows():
    X, _, y = judged()
    sure = CorrectedPredictions(GaussianProcessRegressor(), predictions="llm").fit(X, y)
    labelled = ~np.isnan(y)
    plain = GaussianProcessRegressor().fit(X[labelled], (y - X["llm"])[labelled])
    np.testing.assert_allclose(
        sure.predict(X, return_std=True)[1], plain.predict(X, return_std=True)[1]
    )
    silent = CorrectedPredictions(Ridge(), predictions="llm").fit(X, y)
    assert np.isnan(silent.predict(X, return_std=True)[1]).all()


# ------------------------------------------------------------------------------------------------ laws


@given(st.floats(-100.0, 100.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_what_predictions_and_labels_share_comes_out_again(constant, of_size, of_age):
    """A line through features knows their sums: adding one to labels and predictions moves answers by it."""
    X, _, y = judged()
    line = constant + of_size * X["size"] + of_age * X["age"]
    moved = X.assign(llm=X["llm"] + line)
    before = CorrectedPredictions(LinearRegression(), predictions="llm").fit(X, y)
    after = CorrectedPredictions(LinearRegression(), predictions="llm").fit(moved, y + line)
    np.testing.assert_allclose(
        after.transduction_, before.transduction_ + line, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("around", AROUND)
def test_a_constant_in_predictions_changes_nothing(around):
    """Where the estimator's own features do not depend on it, and it has an intercept."""
    X, _, y = judged(60, 40)
    inner = make_pipeline(StandardScaler(), Ridge())
    before = AROUND[around](inner).fit(X, y).transduction_
    after = AROUND[around](inner).fit(X.assign(llm=X["llm"] + 7.0), y).transduction_
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("around", AROUND)
def test_the_order_of_the_rows_does_not_matter(around):
    X, _, y = judged(60, 40)
    order = np.random.RandomState(1).permutation(60)
    before = AROUND[around](RIDGE).fit(X, y).transduction_
    after = AROUND[around](RIDGE).fit(X.iloc[order], y[order]).transduction_
    np.testing.assert_allclose(after, before[order], rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("around", AROUND)
def test_right_predictions_stay(around):
    X, truth, y = judged(60, 40)
    X["llm"] = truth
    answer = AROUND[around](Ridge()).fit(X, y).answer_
    np.testing.assert_allclose(answer.values, truth[answer.rows])


def test_predictions_that_are_all_0_are_none():
    X, _, y = judged()
    X["llm"] = 0.0
    corrected = CorrectedPredictions(RIDGE, predictions="llm").fit(X, y)
    np.testing.assert_allclose(corrected.transduction_, clone(RIDGE).fit(X, y).transduction_)


def test_with_every_label_nothing_is_to_be_answered():
    X, truth, _ = judged()
    model = CorrectedPredictions(Ridge(), predictions="llm").fit(X, truth)
    np.testing.assert_array_equal(model.transduction_, truth)
    assert len(model.answer_) == 0


# ------------------------------------------------------------------------------------------------ kinds of tables


@pytest.mark.parametrize("around", AROUND)
def test_a_column_has_a_name_or_a_position(around):
    X, _, y = judged(60, 40)
    model = AROUND[around](Ridge())
    expected = clone(model).fit(X, y).transduction_
    for place in (1, -2, np.int64(1)):
        for table in (X, X.to_numpy(), X.to_numpy().tolist()):
            other = clone(model).set_params(predictions=place).fit(table, y)
            np.testing.assert_allclose(other.transduction_, expected)


def test_a_name_that_is_a_number_comes_before_a_position():
    X, _, y = judged()
    numbered = X.set_axis([1, 0, 5], axis=1)
    by_name = CorrectedPredictions(Ridge(), predictions=0).fit(numbered, y)
    by_position = CorrectedPredictions(Ridge(), predictions=0).fit(numbered.to_numpy(), y)
    expected = CorrectedPredictions(Ridge(), predictions="llm").fit(X, y).transduction_
    np.testing.assert_allclose(by_name.transduction_, expected)
    assert not np.allclose(by_position.transduction_, expected)


def test_sparse_tables_and_frames_of_polars():
    X, _, y = judged()
    expected = CorrectedPredictions(Ridge(), predictions="llm").fit(X, y).transduction_
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        model = CorrectedPredictions(Ridge(solver="lsqr", tol=1e-12), predictions=1)
        found = model.fit(kind(X.to_numpy()), y).transduction_
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = CorrectedPredictions(Ridge(), predictions="llm").fit(pl.from_pandas(X), y)
    np.testing.assert_allclose(found.transduction_, expected)


def test_numbers_may_be_nullable_or_objects():
    X, _, y = judged()
    inner = make_pipeline(StandardScaler(), Ridge())
    expected = CorrectedPredictions(inner, predictions="llm").fit(X, y).transduction_
    for kind in ("Float64", object):
        table = X.assign(llm=X["llm"].astype(kind))
        found = CorrectedPredictions(inner, predictions="llm").fit(table, y).transduction_
        np.testing.assert_allclose(found, expected)


# ------------------------------------------------------------------------------------------------ the adapter


def test_it_is_scored_and_searched_as_a_transducer():
    X, _, y = judged(60, 40)
    model = CorrectedPredictions(Ridge(), predictions="llm")
    corrected = cross_val_transduce(model, X, y, random_state=0).scores.mean()
    without = cross_val_transduce(Ridge(), X.drop(columns="llm"), y, random_state=0).scores.mean()
    assert corrected > without + 3.0
    grid = {"estimator__alpha": [1e-3, 1e6]}
    search = TransductiveSearchCV(model, grid, random_state=0).fit(X, y)
    inside = CorrectedPredictions(
        TransductiveSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}, random_state=0), predictions="llm"
    ).fit(X, y)
    assert search.best_params_["estimator__alpha"] == inside.estimator_.best_params_["alpha"]
    np.testing.assert_allclose(search.transduction_, inside.transduction_)


def test_it_is_a_member_of_a_blend():
    X, truth, y = judged(60, 40)
    member = CorrectedPredictions(Ridge(), predictions="llm")
    blend = TransductiveBlend({"corrected": member, "mean": DummyRegressor()}, random_state=0)
    blend.fit(X, y)
    assert blend.weights_["corrected"] > 0.9
    assert np.abs(blend.transduction_ - truth).max() < 2.0


@pytest.mark.parametrize("around", AROUND)
def test_a_copy_answers_the_same(around):
    X, _, y = judged(60, 40)
    model = AROUND[around](Ridge()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_own_mark_of_a_missing_label():
    X, _, y = judged()
    marked = np.where(np.isnan(y), -999.0, y)
    inner = TransductiveRidge(ridge=0.1, width=2.0, missing_label=-999.0)
    found = CorrectedPredictions(inner, predictions="llm").fit(X, marked).transduction_
    expected = CorrectedPredictions(RIDGE, predictions="llm").fit(X, y).transduction_
    np.testing.assert_allclose(found, expected)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
def test_a_row_without_a_prediction_is_named(around, odd):
    X, _, y = judged(60, 40)
    X.loc[[3, 50], "llm"] = odd
    with pytest.raises(ValueError, match=r"'llm' of X has no usable number.* 2 rows.*: 3, 50\."):
        AROUND[around](RIDGE).fit(X, y)


def test_a_blend_without_members_names_the_row_too():
    X, _, y = judged(60, 40)
    X.loc[3, "llm"] = np.nan
    with pytest.raises(ValueError, match=r"'llm' of X has no usable number.* 1 row, .*: 3\."):
        TransductiveBlend(predictions="llm", random_state=0).fit(X, y)


@pytest.mark.parametrize("around", AROUND)
def test_a_new_row_without_a_prediction_is_named(around):
    X, _, y = judged(60, 40)
    model = AROUND[around](Ridge()).fit(X, y)
    X.loc[7, "llm"] = np.nan
    with pytest.raises(ValueError, match=r"'llm' of X has no usable number.* 1 row, .*: 7\."):
        model.predict(X)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("column", ["lm", 3, -4, True, 1.5, None, ["llm"], np.array([1])])
def test_a_column_that_is_not_there_is_named(around, column):
    X, _, y = judged(60, 40)
    model = AROUND[around](RIDGE).set_params(predictions=column)
    if column is None and around != "alone":
        assert len(model.fit(X, y).answer_) == 20  # no predictions
        return
    with pytest.raises(
        ValueError, match=r"is no column of X: its columns are 'size', 'llm', 'age'"
    ):
        model.fit(X, y)


@pytest.mark.parametrize("cells", [["a", "b"], [pd.Timestamp(2020, 1, 1)] * 2])
def test_text_and_dates_are_no_numbers(cells):
    X, _, y = judged()
    table = X.assign(llm=pd.Series(cells * 20))
    with pytest.raises(
        ValueError, match=r"'llm' of X has no usable number.* 40 rows.*: 0, 1, 2, …"
    ):
        CorrectedPredictions(Ridge(), predictions="llm").fit(table, y)


@pytest.mark.parametrize("around", AROUND)
def test_classes_are_refused(around):
    X, _, y = judged(60, 40)
    labels = np.array([None if np.isnan(one) else "ab"[int(one > 0)] for one in y], dtype=object)
    with pytest.raises(ValueError, match=r"must be numbers: .*fill\(predictions=\.\.\.\)"):
        AROUND[around](LogisticRegression()).fit(X, labels)


@pytest.mark.parametrize("around", AROUND)
def test_precomputed_kernels_are_refused(around):
    X, _, y = judged(60, 40)
    kernel = X.to_numpy() @ X.to_numpy().T
    inner = TransductiveRidge(kernel="precomputed", ridge=0.1)
    model = AROUND[around](inner).set_params(predictions=0)
    with pytest.raises(ValueError, match="a precomputed kernel has none"):
        model.fit(kernel, y)


# ------------------------------------------------------------------------------------------------ coverage


def test_intervals_hold_as_often_as_they_say():
    """Of wrong predictions too: with 9 calibration labels an interval at 0.8 holds with chance 0.8."""
    n_draws = 150
    random = np.random.RandomState(0)
    n_inside = 0
    for _ in range(n_draws):
        n = 26
        X = random.normal(size=(n, 2))
        truth = X[:, 0] * random.choice([-1.0, 1.0, 5.0]) + random.standard_t(2, size=n)
        y = np.where(np.arange(n) < n - 1, truth, np.nan)
        model = ConformalTransducer(
            Ridge(),
            predictions=0,
            confidence=0.8,
            calibration=9,
            test_exchangeability=False,
            random_state=random,
        ).fit(X, y)
        n_inside += int(model.answer_.contains(truth[-1:])[0])
    assert binom.cdf(n_inside, n_draws, 0.8) > 1e-3
    assert binom.sf(n_inside - 1, n_draws, 0.8) > 1e-3
