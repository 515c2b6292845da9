"""Transductive ridge: n refits and a general optimiser, laws, limits, refusals."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError

from tests import brute
from tests.libraries import polars as pl
from transduce import TransductiveRidge, TransductiveRidgeClassifier
from transduce.device.kernels import Kernel
from transduce.methods.ridge import leave_one_out
from transduce.methods.ridge.completion import DesignSystem, RidgeSpectrum
from transduce.methods.ridge.transductive_ridge import announce_memory

BOTH = [TransductiveRidge, TransductiveRidgeClassifier]
FIXED = {"width": 1.3, "ridge": 0.2, "tether": 0.7}


def numbers(n=40, unlabelled=15, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = np.nan
    return X, y, truth


def classes(n=60, unlabelled=30, names=("no", "perhaps", "yes")):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % len(names)
    X = rng.normal(size=(n, 2)) + 2.5 * codes[:, None]
    truth = np.array(names, dtype=object)[codes]
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = None
    return X, y, truth


# --------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "linear", "poly"])
def test_the_estimator_is_the_paper(kernel):
    """From the user's side: scaled features, centred labels, labelled centres first, all rows second."""
    X, y, _ = numbers(n=18, unlabelled=6)
    model = TransductiveRidge(kernel=kernel, **FIXED).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    unlabelled, mean = np.isnan(y), np.nanmean(y)
    y_l = y[~unlabelled] - mean
    if kernel == "linear":
        inner, outer, design = Z[~unlabelled], Z[unlabelled], Z
    else:
        k = Kernel(kernel, 1.3)
        inner, outer, design = (
            k.matrix(Z[~unlabelled], Z[~unlabelled]),
            k.matrix(Z[unlabelled], Z[~unlabelled]),
            k.matrix(Z, Z),
        )
    start = outer @ brute.design_fit(inner, y_l, 0.2)
    expected, objective = brute.complete_by_optimiser(design, y_l, unlabelled, start, 0.2, 0.7)
    np.testing.assert_allclose(model.answer_.inductive, start + mean, atol=1e-7)
    np.testing.assert_allclose(model.answer_.values, expected + mean, atol=1e-7)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    loo = brute.refit_leave_one_out(inner, y_l, 0.2)
    assert model.loo_error_ == pytest.approx(np.mean(loo**2), rel=1e-6)
    completed = model.transduction_ - mean
    np.testing.assert_allclose(
        model.answer_.loo_residuals,
        brute.refit_leave_one_out(design, completed, 0.2)[unlabelled],
        atol=1e-7,
    )
    fitted = design @ brute.design_fit(design, completed, 0.2) + mean
    np.testing.assert_allclose(model.predict(X), fitted, atol=1e-6)


def test_centres_are_the_same_derivation():
    X, y, _ = numbers(n=30, unlabelled=12)
    model = TransductiveRidge(centres=4, random_state=0, **FIXED).fit(X, y)
    K = Kernel("rbf", 1.3).matrix((X - X.mean(axis=0)) / X.std(axis=0), model._fitted.basis.centres)
    unlabelled, mean = np.isnan(y), np.nanmean(y)
    start = K[unlabelled] @ brute.design_fit(K[~unlabelled], y[~unlabelled] - mean, 0.2)
    expected, _ = brute.complete_by_optimiser(K, y[~unlabelled] - mean, unlabelled, start, 0.2, 0.7)
    np.testing.assert_allclose(model.answer_.values, expected + mean, atol=1e-7)
    assert model.answer_.diagnostics["solver"] == "conjugate gradients"
    assert model.answer_.diagnostics["converged"]


def test_search_finds_the_smallest_leave_one_out_error():
    """No width and ridge on a fine grid does better by more than a hundredth."""
    X, _, truth = numbers(n=50)
    model = TransductiveRidge().fit(X, truth)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    z = truth - truth.mean()
    fine = [
        RidgeSpectrum.of_kernel(Kernel("rbf", w).matrix(Z, Z), z[:, None])
        .errors(10 ** np.linspace(-6, 3, 60))
        .min()
        for w in 10 ** np.linspace(-1, 2, 60)
    ]
    assert model.loo_error_ <= 1.01 * min(fine)
    assert model.loo_error_ == pytest.approx(
        model.loo_path_["error"].min() * np.var(truth), rel=1e-6
    )
    expected = leave_one_out(Kernel("rbf", model.width_).matrix(Z, Z), z, model.ridge_)
    assert model.loo_error_ == pytest.approx(np.mean(expected**2), rel=1e-6)


def test_settings_given_are_settings_used():
    """However little leave-one-out may trust them."""
    X, y, _ = numbers()
    model = TransductiveRidge(width=5.0, ridge=1e-11).fit(X, y)
    assert (model.width_, model.ridge_) == (5.0, 1e-11)
    assert len(model.loo_path_) == 1


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e8])
def test_the_scale_of_a_kernel_does_not_matter(scale):
    """A multiple of the kernel is undone by the ridge that is chosen."""
    X, y, _ = numbers()
    K = Kernel("rbf", 2.0).matrix(X, X)
    one, other = (
        TransductiveRidge(kernel="precomputed").fit(factor * K, y) for factor in (1.0, scale)
    )
    np.testing.assert_allclose(other.transduction_, one.transduction_, atol=1e-6)
    assert other.ridge_ == pytest.approx(scale**2 * one.ridge_, rel=1e-6)
    linear, scaled = (
        TransductiveRidge(kernel="linear", standardize=False).fit(factor * X, y)
        for factor in (1.0, scale)
    )
    np.testing.assert_allclose(scaled.transduction_, linear.transduction_, atol=1e-6)


def test_more_features_than_rows():
    """In the rows' own coordinates: the same answers as from the features themselves, and new rows too."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 90)), np.append(rng.normal(size=12), np.full(8, np.nan))
    model = TransductiveRidge(kernel="linear", ridge=3.0, tether=0.5, standardize=False).fit(X, y)
    unlabelled, mean = np.isnan(y), np.nanmean(y)
    start = X[unlabelled] @ brute.design_fit(X[~unlabelled], y[~unlabelled] - mean, 3.0)
    expected, _ = brute.complete_by_optimiser(X, y[~unlabelled] - mean, unlabelled, start, 3.0, 0.5)
    np.testing.assert_allclose(model.answer_.values, expected + mean, atol=1e-7)
    new = rng.normal(size=(5, 90))
    fitted = new @ brute.design_fit(X, model.transduction_ - mean, 3.0) + mean
    np.testing.assert_allclose(model.predict(new), fitted, atol=1e-7)


def test_stored_and_recomputed_designs_agree():
    X, y, _ = numbers(n=700, unlabelled=500)
    chosen = {"centres": 20, "random_state": 0, **FIXED}
    stored = TransductiveRidge(**chosen).fit(X, y)
    blocks = TransductiveRidge(max_memory_mb=0.01, **chosen).fit(X, y)
    np.testing.assert_allclose(blocks.transduction_, stored.transduction_, atol=1e-8)
    np.testing.assert_allclose(blocks.predict(X), stored.predict(X), atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "linear"}, {"centres": 36, "ridge": 0.3}],
)
def test_answers_in_folds_are_those_of_whole_fits(settings):
    """Of fits that see the visible labels only and stay at the inductive answer."""
    X, y, _ = numbers(n=36, unlabelled=9)
    rows = np.flatnonzero(~np.isnan(y))
    fold = np.arange(len(rows)) % 3
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    found = TransductiveRidge(**settings).fit(X, y).answers_in_folds(folds)
    for (_, hidden), answers in zip(folds, found, strict=True):
        shown = y.copy()
        shown[rows[hidden]] = np.nan
        again = TransductiveRidge(tether=np.inf, **settings).fit(X, shown)
        np.testing.assert_allclose(answers, again.transduction_[rows[hidden]], rtol=1e-6)


def test_answers_in_folds_of_a_kernel_matrix_and_of_many_labels(monkeypatch):
    X, y, _ = numbers(n=30, unlabelled=6)
    rows = np.flatnonzero(~np.isnan(y))
    folds = [(np.arange(4, len(rows)), np.array([3, 0]))]
    plain = TransductiveRidge(width=1.3, standardize=False).fit(X, y)
    K = Kernel("rbf", 1.3).matrix(X, X)
    other = TransductiveRidge(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(
        plain.answers_in_folds(folds)[0], other.answers_in_folds(folds)[0], rtol=1e-6
    )
    monkeypatch.setattr("transduce.methods.ridge.transductive_ridge.MOST_SEARCHED", 10)
    shown = y.copy()
    shown[rows[:4]] = np.nan
    kept = {"width": plain.width_, "ridge": plain.ridge_, "standardize": False}
    again = TransductiveRidge(tether=np.inf, **kept).fit(X, shown)
    np.testing.assert_allclose(
        plain.answers_in_folds(folds)[0], again.transduction_[rows[[3, 0]]], rtol=1e-6
    )


def test_class_answers_in_folds_are_those_of_whole_fits():
    X, y, _ = classes()
    rows = np.flatnonzero(pd.notna(y))
    hidden = np.arange(0, len(rows), 4)
    model = TransductiveRidgeClassifier().fit(X, y)
    found = model.answers_in_folds([(np.setdiff1d(np.arange(len(rows)), hidden), hidden)])[0]
    shown = y.copy()
    shown[rows[hidden]] = None
    again = TransductiveRidgeClassifier(tether=np.inf).fit(X, shown)
    scores = again.answer_.scores[np.searchsorted(again.answer_.rows, rows[hidden])]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    factor = np.diff(np.log(found), axis=1) / np.diff(scores, axis=1)
    np.testing.assert_allclose(
        factor, factor[0, 0], rtol=1e-6
    )  # one factor makes probabilities of all scores


def test_centres_are_labelled_rows_first():
    """All of them if they are few enough, else half of the number and as many of all rows."""
    X, y, _ = numbers(n=40, unlabelled=30)
    few, many = (
        TransductiveRidge(centres=n, random_state=0).fit(X, y)._fitted.basis.centres
        for n in (12, 6)
    )
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(few, np.unique(Z[~np.isnan(y)], axis=0))
    places = [int(np.argmin(np.abs(Z - row).sum(axis=1))) for row in many]
    assert 5 <= len(set(places)) <= 6
    assert sum(not np.isnan(y[place]) for place in places) >= 3


# ---------------------------------------------------------------------------------------------------- laws


@settings(max_examples=12)
@given(
    st.randoms(use_true_random=False), st.sampled_from([None, 7]), st.sampled_from(["auto", "cv"])
)
def test_order_of_rows_does_not_matter(random, centres, tether):
    X, y, _ = numbers(n=30)
    order = list(range(30))
    random.shuffle(order)
    chosen = {"centres": centres, "random_state": 0, "ridge": 0.1, "width": 2.0, "tether": tether}
    before, after = (TransductiveRidge(**chosen).fit(X[i], y[i]) for i in (range(30), order))
    np.testing.assert_allclose(after.transduction_, before.transduction_[order], atol=1e-7)
    assert after.tether_ == before.tether_


@pytest.mark.parametrize("centres", [None, 12])
@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_does_not_matter_with_automatic_settings(centres, seed):
    """A smooth curve, for which leave-one-out picks the smallest ridge it may."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) % 3 == 0, np.nan, X[:, 0] ** 2 + X[:, 1])
    order = rng.permutation(40)
    before, after = (
        TransductiveRidge(centres=centres, random_state=0).fit(X[i], y[i])
        for i in (range(40), order)
    )
    np.testing.assert_allclose(after.transduction_, before.transduction_[order], atol=1e-6)


def test_tether_by_cv_does_not_see_row_order():
    """Ties between labels, kernels that are given, several columns: the folds are the same in any order."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(15, 2)), 2, axis=0) + 1e-3 * rng.normal(size=(30, 2))
    shown = np.arange(30) % 2 == 0
    columns = np.column_stack([np.round(X[:, 0]), X[:, 1]])
    order = rng.permutation(30)
    chosen = {"ridge": 0.1, "tether": "cv"}
    K = Kernel("rbf").matrix(X, X)
    for y in (
        np.where(shown[:, None], columns, np.nan),
        np.where(shown, np.round(X[:, 0]), np.nan),
    ):
        for kernel, rows, shuffled in (
            ("rbf", X, X[order]),
            ("precomputed", K, K[np.ix_(order, order)]),
        ):
            settings_ = {"kernel": kernel, **chosen} | ({"width": 1.0} if kernel == "rbf" else {})
            before, after = (
                TransductiveRidge(**settings_).fit(r, labels)
                for r, labels in ((rows, y), (shuffled, y[order]))
            )
            np.testing.assert_allclose(
                after.tether_path_["error"], before.tether_path_["error"], rtol=1e-6
            )


def test_folds_do_not_see_hidden_labels():
    """The cross-validated error of the inductive answer is that of refits on the other folds alone."""
    X, y, _ = numbers(n=20, unlabelled=10)
    model = TransductiveRidge(ridge=0.2, width=1.3, tether="cv").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    labelled = np.flatnonzero(~np.isnan(y))
    fold = np.empty(10, dtype=int)
    fold[np.argsort(y[labelled])] = np.arange(10) % 5
    K, total = Kernel("rbf", 1.3).matrix(Z, Z), 0.0
    for k in range(5):
        shown, hidden = labelled[fold != k], labelled[fold == k]
        mean = y[shown].mean()
        c = brute.design_fit(K[np.ix_(shown, shown)], y[shown] - mean, 0.2)
        total += np.sum((K[np.ix_(hidden, shown)] @ c + mean - y[hidden]) ** 2)
    assert model.tether_path_["error"][-1] * np.var(y[labelled]) == pytest.approx(
        total / 10, rel=1e-6
    )


@given(st.sampled_from([1e-200, 1e-3, -2.0, 1e150]), st.sampled_from([0.0, 5.0]))
def test_scaling_labels_scales_answers(scale, shift):
    X, y, _ = numbers()
    before = TransductiveRidge().fit(X, y).answer_
    after = TransductiveRidge().fit(X, (y + shift) * scale).answer_
    np.testing.assert_allclose(after.values / scale, before.values + shift, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        after.inductive / scale, before.inductive + shift, rtol=1e-6, atol=1e-8
    )


def test_label_columns_do_not_see_each_other():
    """Several columns share settings and factors; each is answered as if alone."""
    X, y, _ = numbers()
    Y = np.column_stack([y, np.where(np.isnan(y), np.nan, X[:, 0] ** 2)])
    for chosen in (
        FIXED,
        {"centres": 9, "random_state": 1, **FIXED},
        {"kernel": "linear", **FIXED},
    ):
        together = TransductiveRidge(**chosen).fit(X, Y)
        for column in range(2):
            alone = TransductiveRidge(**chosen).fit(X, Y[:, column])
            np.testing.assert_allclose(
                together.answer_.values[:, column], alone.answer_.values, atol=1e-8
            )
            np.testing.assert_allclose(together.predict(X)[:, column], alone.predict(X), atol=1e-8)
    assert list(together.answer_.to_frame().columns[:2]) == ["value_0", "value_1"]


@given(st.permutations(["no", "perhaps", "yes"]))
def test_names_of_classes_do_not_matter(names):
    X, y, _ = classes()
    renamed = dict(zip(["no", "perhaps", "yes"], names, strict=True)) | {None: None}
    before = TransductiveRidgeClassifier(**FIXED).fit(X, y)
    after = TransductiveRidgeClassifier(**FIXED).fit(X, [renamed[label] for label in y])
    assert [renamed[label] for label in before.transduction_] == list(after.transduction_)


def test_the_same_seed_gives_the_same_centres():
    X, y, _ = numbers(n=60)
    fits = [
        TransductiveRidge(centres=10, random_state=seed, **FIXED).fit(X, y) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0].transduction_, fits[1].transduction_)
    assert not np.array_equal(fits[0].transduction_, fits[2].transduction_)


# -------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("chosen", [{}, {"centres": 8, "random_state": 0}, {"kernel": "linear"}])
def test_tether_to_infinity_is_the_inductive_answer(chosen):
    X, y, _ = numbers()
    for tether, tolerance in ((np.inf, 0.0), (1e9, 1e-6)):
        answer = TransductiveRidge(**{**FIXED, **chosen, "tether": tether}).fit(X, y).answer_
        np.testing.assert_allclose(answer.values, answer.inductive, atol=tolerance)


@pytest.mark.parametrize("make_model", BOTH)
def test_no_asked_row_is_ridge_regression(make_model):
    X, _, truth = numbers()
    labels = truth if make_model is TransductiveRidge else truth > 0
    model = make_model(**FIXED).fit(X, labels)
    assert len(model.answer_) == 0
    np.testing.assert_array_equal(model.transduction_, labels)
    if make_model is TransductiveRidge:
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        K = Kernel("rbf", 1.3).matrix(Z, Z)
        fitted = K @ brute.design_fit(K, truth - truth.mean(), 0.2) + truth.mean()
        np.testing.assert_allclose(model.predict(X), fitted, atol=1e-7)


def test_auto_tether_is_half_the_ratio_of_rows():
    X, y, _ = numbers(n=40, unlabelled=10)
    assert TransductiveRidge().fit(X, y).tether_ == 30 / 20


def test_cv_tether_is_on_the_grid_and_can_choose_the_inductive_answer():
    X, y, _ = numbers()
    model = TransductiveRidge(tether="cv", width=2.0, ridge=0.1).fit(X, y)
    errors = model.tether_path_["error"]
    multiple = model.tether_path_["multiple"][np.argmin(errors)]
    assert model.tether_ == pytest.approx(multiple * 25 / 30)
    assert np.isinf(model.tether_path_["multiple"][-1])
    noise = np.random.default_rng(0)
    found = [
        TransductiveRidge(tether="cv", width=0.05, ridge=1e-3)
        .fit(noise.normal(size=(30, 3)), np.where(np.arange(30) % 2, np.nan, noise.normal(size=30)))
        .tether_
        for _ in range(5)
    ]
    assert np.isinf(found).any()


def test_duplicate_rows_constant_columns_and_tiny_ridges():
    X, y, _ = numbers(n=20, unlabelled=6)
    X, y = np.repeat(np.column_stack([X, np.full(20, 0.1)]), 3, axis=0), np.repeat(y, 3)
    for chosen in ({}, {"ridge": 1e-9}, {"centres": 15, "random_state": 0}):
        assert np.isfinite(TransductiveRidge(**chosen).fit(X, y).transduction_).all()
    constant = TransductiveRidge().fit(
        np.ones((20, 2)), np.append(np.arange(10.0), np.full(10, np.nan))
    )
    np.testing.assert_allclose(constant.answer_.values, 4.5, atol=0.5)
    same = TransductiveRidge().fit(X, np.where(np.isnan(y), np.nan, 7.0))
    np.testing.assert_allclose(same.transduction_, 7.0)


def test_vanishing_denominators():
    model = TransductiveRidge(kernel="linear", ridge=1e-14, standardize=False)
    with pytest.raises(ValueError, match="cannot be left out in double precision"):
        model.fit(np.eye(4), [1.0, 2.0, 3.0, np.nan])
    assert np.isnan(leave_one_out(np.eye(4)[:, :3], np.ones(4), 1e-14)[:3]).all()
    X, y, _ = numbers()
    raised = TransductiveRidge(centres=39, random_state=0, width=0.2).fit(X, y)
    assert np.isfinite(raised.transduction_).all()
    chosen = raised.loo_path_[raised.loo_path_["ridge"] == raised.ridge_]
    assert raised.loo_error_ == pytest.approx(chosen["error"].min() * np.nanvar(y), rel=1e-6)


def test_transduction_beats_induction_where_it_should():
    """A curve seen at a few places and unlabelled at many: the unlabelled rows carry the shape."""
    rng = np.random.default_rng(0)
    wins = 0
    for _ in range(20):
        X = rng.normal(size=(150, 8))
        truth = X @ np.ones(8) + rng.normal(size=150)
        y = np.append(truth[:20], np.full(130, np.nan))
        answer = TransductiveRidge(width=8.0, ridge=0.1).fit(X, y).answer_
        wins += np.mean((answer.values - truth[20:]) ** 2) < np.mean(
            (answer.inductive - truth[20:]) ** 2
        )
    assert wins >= 15


# ---------------------------------------------------------------------------------------------- classifier


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_classifier_on_real_data(load):
    X, truth = load(return_X_y=True)
    y = truth.astype(float)
    unlabelled = np.random.default_rng(0).permutation(len(y))[30:]
    y[unlabelled] = np.nan
    model = TransductiveRidgeClassifier().fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    assert model.score(X, y) > 0.9
    probabilities = model.answer_.probabilities
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        model.classes_[probabilities.argmax(axis=1)], model.answer_.values
    )
    np.testing.assert_array_equal(
        model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X)
    )
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
    )


def test_two_classes_are_the_sign_of_regression_on_plus_and_minus_one():
    X, y, _ = classes(names=("a", "b"))
    signs = np.array([np.nan if label is None else 1.0 if label == "b" else -1.0 for label in y])
    regression = TransductiveRidge(**FIXED).fit(X, signs)
    model = TransductiveRidgeClassifier(**FIXED).fit(X, y)
    np.testing.assert_allclose(model.answer_.scores, regression.answer_.values, atol=1e-8)
    np.testing.assert_array_equal(model.answer_.values == "b", regression.answer_.values > 0)
    np.testing.assert_allclose(model.decision_function(X), regression.predict(X), atol=1e-8)
    assert model.objective_ == pytest.approx(regression.objective_)


def test_tied_rows_say_so():
    model = TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(
        [[-1.0], [1.0], [0.0]], ["a", "b", None]
    )
    assert model.answer_.status.tolist() == ["tied"]


@pytest.mark.parametrize("names", [(0, 1), (-1, 1), (True, False), ("α", "β", "γ", "δ")])
def test_labels_of_any_type(names):
    X, y, truth = classes(names=names)
    model = TransductiveRidgeClassifier().fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.85
    series = pd.Series(y, name="kind").astype("category")
    completed = TransductiveRidgeClassifier().fit(X, series).transduction_
    assert completed.dtype == series.dtype
    assert completed.name == "kind"


def test_frames_in_frames_out():
    X, y, _ = numbers()
    index = pd.Index([f"röw {i}" for i in range(40)])
    frame = pd.DataFrame(X, columns=list("abc"), index=index)
    model = TransductiveRidge(**FIXED).fit(frame, pd.Series(y, index=index, name="preis €"))
    assert model.transduction_.index.equals(index)
    answers = model.answer_.to_frame()
    assert answers.index.equals(index[np.isnan(y)])
    assert list(answers.columns) == ["value", "inductive", "loo_residual", "status"]
    series = pl.Series("price", [None if np.isnan(v) else v for v in y])
    assert TransductiveRidge(**FIXED).fit(pl.DataFrame(X), series).transduction_.null_count() == 0


def test_precomputed_and_callable_kernels_equal_named_ones():
    X, y, _ = numbers()
    k = Kernel("rbf", 1.3)
    chosen = {"standardize": False, "ridge": 0.2, "tether": 0.7}
    named = TransductiveRidge(width=1.3, **chosen).fit(X, y)
    computed = TransductiveRidge(kernel="precomputed", **chosen).fit(k.matrix(X, X), y)
    called = TransductiveRidge(kernel=lambda u, v: k.matrix(u[None], v[None])[0, 0], **chosen).fit(
        X, y
    )
    for model, new in ((computed, k.matrix(X[:5] + 1, X)), (called, X[:5] + 1)):
        np.testing.assert_allclose(model.transduction_, named.transduction_, atol=1e-8)
        np.testing.assert_allclose(model.predict(new), named.predict(X[:5] + 1), atol=1e-8)
        assert model.width_ is None


def test_progress_is_logged(caplog):
    X, y, _ = numbers()
    with caplog.at_level(logging.INFO, logger="transduce"):
        TransductiveRidge(tether="cv").fit(X, y)
        TransductiveRidge(centres=5, random_state=0, **FIXED).fit(X, y)
    for words in (
        "leave-one-out: width",
        "tether: fold 5 of 5",
        "conjugate gradients: column 1 of 1",
    ):
        assert words in caplog.text


def test_a_solver_that_stops_early_says_so(monkeypatch):
    """With a tolerance that nothing reaches, the answer comes with a warning."""
    monkeypatch.setattr(DesignSystem, "solve", _unfinished(DesignSystem.solve))
    X, y, _ = numbers()
    with pytest.warns(UserWarning, match=r"stopped at a relative residual of 1\.0e-03"):
        TransductiveRidge(centres=5, random_state=0, **FIXED).fit(X, y)


def _unfinished(solve):
    def stopped(*arguments):
        solution, report = solve(*arguments)
        return solution, {**report, "relative_residual": 1e-3, "converged": False}

    return stopped


def test_answers_guarantee_nothing():
    X, y, _ = numbers()
    assert TransductiveRidge(**FIXED).fit(X, y).answer_.guarantee.kind == "none"


# ------------------------------------------------------------------------------------------------ refusals

GOOD_X, GOOD_Y, _ = numbers()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"ridge": 0.0}, r"ridge \(a number, or 'loo'\) must be a positive number; got 0.0"),
        ({"ridge": "gcv"}, "ridge .* must be a positive number; got 'gcv'"),
        ({"width": -1}, "width .* must be a positive number; got -1"),
        ({"tether": -1}, "tether must be 'auto', 'cv' or a number from 0 to infinity; got -1"),
        ({"tether": "best"}, "a number from 0 to infinity; got 'best'"),
        ({"tether": np.nan}, "a number from 0 to infinity; got nan"),
        ({"tether": np.ones(2)}, "a number from 0 to infinity"),
        ({"width": np.ones(2)}, "width .* must be a positive number"),
        ({"kernel": "chi2"}, "features that are not negative: pass standardize=False"),
        ({"kernel": "gauss"}, "Unknown kernel 'gauss'"),
        ({"centres": 0}, "centres .* must be a whole number from 1 on; got 0"),
        ({"centres": "all"}, "centres .* must be a whole number from 1 on; got 'all'"),
        (
            {"centres": 5, "kernel": "linear"},
            "kernel='linear' has a basis of its own: leave centres=None",
        ),
        ({"max_memory_mb": 0}, "max_memory_mb must be a positive number"),
        ({"standardize": 1}, "standardize must be True or False"),
        ({"kernel": "precomputed"}, "square matrix"),
        ({"kernel": lambda u, v: np.nan}, "not finite"),
    ],
)
@pytest.mark.parametrize("make_model", BOTH)
def test_bad_settings_get_their_sentence(make_model, chosen, message):
    y = (
        GOOD_Y
        if make_model is TransductiveRidge
        else np.where(np.isnan(GOOD_Y), np.nan, GOOD_Y > 0)
    )
    with pytest.raises(ValueError, match=message):
        make_model(**chosen).fit(GOOD_X, y)


def test_bad_data_get_their_sentence():
    with pytest.raises(ValueError, match="No row has a label"):
        TransductiveRidge().fit(GOOD_X, np.full(40, np.nan))
    with pytest.raises(ValueError, match="Row 1 has some of its labels but not all"):
        TransductiveRidge().fit(GOOD_X, np.where(np.eye(40, 2, k=-1) == 1, np.nan, 1.0))
    with pytest.raises(ValueError, match="labels that are numbers, but y holds 'dear'"):
        TransductiveRidge().fit(GOOD_X, [*GOOD_Y[:-1], "dear"])
    with pytest.raises(ValueError, match="one class only"):
        TransductiveRidgeClassifier().fit(GOOD_X, ["a"] * 39 + [None])
    with pytest.raises(ValueError, match="column 'kind' holds text"):
        TransductiveRidge().fit(pd.DataFrame({"a": GOOD_X[:, 0], "kind": ["x"] * 40}), GOOD_Y)
    with pytest.raises(ValueError, match="one line for each label"):
        leave_one_out(np.eye(2), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="ridge must be a positive number"):
        leave_one_out(np.eye(2), np.ones(2), 0.0)
    with pytest.raises(ValueError, match="must be finite: leave out rows without a label"):
        leave_one_out(np.eye(2), [1.0, np.nan], 1.0)


def test_memory_is_announced():
    with pytest.warns(UserWarning, match="centres at all 20,000 rows needs about 16 GB"):
        announce_memory(TransductiveRidge(), 20_000)


def test_a_failed_refit_leaves_no_half_fitted_model():
    model = TransductiveRidge(tether="cv", width=2.0, ridge=0.1).fit(GOOD_X, GOOD_Y)
    assert hasattr(model, "tether_path_")
    with pytest.raises(ValueError, match="labels that are numbers"):
        model.fit(GOOD_X[:, :2], ["text"] * 40)
    with pytest.raises(NotFittedError):
        model.predict(GOOD_X)
    assert not hasattr(model, "tether_path_")


@pytest.mark.parametrize("make_model", BOTH)
def test_settings_after_fit_do_not_leak_into_predict(make_model):
    y = np.where(np.isnan(GOOD_Y), np.nan, np.round(GOOD_Y) > 0)
    model = make_model(centres=7, random_state=0, **FIXED).fit(GOOD_X, y)
    before = model.predict(GOOD_X)
    model.set_params(kernel="precomputed", standardize=False, width=9.0)
    np.testing.assert_array_equal(model.predict(GOOD_X), before)


def test_scores_compare_labels_as_they_are():
    X, _, truth = classes(names=("no", "yes"))
    model = TransductiveRidgeClassifier(**FIXED).fit(X, truth)
    longer = np.where(truth == "yes", "yesterday", "nope").astype(object)
    assert model.score(X, longer) == 0.0


def test_one_or_two_labelled_rows():
    X = np.array([[0.0], [1.0], [2.0], [0.5]])
    assert TransductiveRidge().fit(X, [3.0, None, None, None]).transduction_.tolist() == [3.0] * 4
    two = TransductiveRidge(tether="cv").fit(X, [3.0, None, 5.0, None]).transduction_
    assert np.isfinite(two).all()


def test_diabetes_end_to_end():
    """All settings automatic on real data: no worse than the mean, and near the inductive answer."""
    X, truth = load_diabetes(return_X_y=True)
    y = truth.copy()
    unlabelled = np.random.default_rng(0).permutation(442)[150:]
    y[unlabelled] = np.nan
    answer = TransductiveRidge().fit(X, y).answer_
    truth = truth[np.sort(unlabelled)]
    error, inductive = (
        np.mean((values - truth) ** 2) for values in (answer.values, answer.inductive)
    )
    assert error < 0.65 * np.var(truth)
    assert error < 1.05 * inductive
