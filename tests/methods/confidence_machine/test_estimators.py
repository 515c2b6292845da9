"""The confidence machine as users meet it: scikit-learn's contract, frames, guarantees, refusals."""

from __future__ import annotations

import itertools
import logging
import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests import brute
from tests.libraries import polars as pl
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.device.kernels import Kernel, median_width
from transduce.methods.confidence_machine.machine import announce_memory

BOTH = [RidgeConfidenceMachine, RidgeConfidenceClassifier]


def run(estimator, X, y):
    """Fit, with warnings about small samples and the shape of y kept quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def numbers(n=40, unlabelled=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=n)
    truth = y.copy()
    y[rng.choice(n, unlabelled, replace=False)] = np.nan
    return X, y, truth


def classes(n=60, unlabelled=15, seed=0, names=("no", "perhaps", "yes")):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(names)
    X = rng.normal(size=(n, 2)) + 2.0 * codes[:, None]
    truth = np.array(names, dtype=object)[codes]
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = None
    return X, y, truth


@pytest.mark.parametrize("make", BOTH)
def test_composes_with_scikit_learn(make):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), make(ridge=0.1))
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(model, X, y, cv=folds).mean() > 0.85
    fitted = make().fit(X[::2], y[::2])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(make(ridge=3.0)).ridge == 3.0


# ------------------------------------------------------------------------------------------------- exact


def full_kernel(model, X):
    """The kernel matrix of all rows by the documented recipe."""
    if model.standardize:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    width = median_width(X) if model.width == "median" else model.width
    return Kernel(model.kernel, width, model.degree, model.coef0).matrix(X, X)


@pytest.mark.few(6)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "exponential"])
@pytest.mark.parametrize("residual", ["plain", "deleted", "studentized"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_regions_of_asked_rows_equal_refits(kernel, residual, fit_intercept):
    """From the user's side: scale and width from all rows, one refit for every candidate label."""
    X, y, _ = numbers(n=24, unlabelled=5)
    model = RidgeConfidenceMachine(
        kernel=kernel, residual=residual, fit_intercept=fit_intercept, ridge=0.3, confidence=0.8
    ).fit(X, y)
    K, labelled = full_kernel(model, X), np.flatnonzero(~np.isnan(y))
    y_l, labels = y[labelled], np.linspace(-8, 8, 33)
    completed = np.vstack([np.repeat(y_l[:, None], 33, axis=1), labels])
    for j, row in enumerate(model.answer_.rows):
        rows = [*labelled, row]
        alphas = brute.nonconformity(K[np.ix_(rows, rows)], completed, 0.3, fit_intercept, residual)
        p = np.array([brute.p_value(alpha) for alpha in alphas.T])
        np.testing.assert_array_equal(
            model.answer_.regions[[j] * 33].contains(labels), p > 0.2 + 1e-9
        )
        np.testing.assert_allclose(model.p_values(X[[row] * 33], labels), p)
        c, b = brute.ridge_fit(K[np.ix_(labelled, labelled)], y_l, 0.3, fit_intercept)
        assert model.answer_.values[j] == pytest.approx(float(K[row, labelled] @ c + b))


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("names", [("no", "yes"), ("no", "perhaps", "yes")])
def test_label_sets_of_asked_rows_equal_refits(label_conditional, names):
    X, y, _ = classes(n=27, unlabelled=6, names=names)
    model = run(
        RidgeConfidenceClassifier(label_conditional=label_conditional, confidence=0.75), X, y
    )
    K, labelled = full_kernel(model, X), np.flatnonzero(y != None)  # noqa: E711
    codes = np.searchsorted(model.classes_, y[labelled].astype(str))
    for j, row in enumerate(model.answer_.rows):
        rows = [*labelled, row]
        p = [
            brute.class_p_value(
                K[np.ix_(rows, rows)],
                codes,
                c,
                len(names),
                1.0,
                True,
                label_conditional=label_conditional,
            )
            for c in range(len(names))
        ]
        np.testing.assert_allclose(model.answer_.p_values[j], p)
        np.testing.assert_array_equal(model.answer_.label_sets[j], np.array(p) > 0.25 + 1e-9)
        assert model.answer_.credibility[j] == pytest.approx(max(p))
        assert model.answer_.confidence[j] == pytest.approx(1 - sorted(p)[-2])
        overall = [
            brute.class_p_value(K[np.ix_(rows, rows)], codes, c, len(names), 1.0, True)
            for c in range(len(names))
        ]
        assert overall[list(model.classes_).index(model.answer_.values[j])] == pytest.approx(
            max(overall)
        )


def test_two_classes_are_ridge_regression_on_minus_and_plus_one():
    """The paper's classification: the regression machine's p-values at y = -1 and y = +1."""
    X, y, _ = classes(names=("a", "b"))
    signs = np.array([np.nan if label is None else 1.0 if label == "b" else -1.0 for label in y])
    unlabelled = np.isnan(signs)
    regression = RidgeConfidenceMachine().fit(X, signs)
    p = RidgeConfidenceClassifier().fit(X, y).answer_.p_values
    np.testing.assert_allclose(
        p[:, 0], regression.p_values(X[unlabelled], -np.ones(unlabelled.sum()))
    )
    np.testing.assert_allclose(
        p[:, 1], regression.p_values(X[unlabelled], np.ones(unlabelled.sum()))
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_precomputed_and_callable_kernels_equal_named_ones(kernel):
    X, y, _ = numbers()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    new = np.random.default_rng(5).normal(size=(6, 3))
    settings = {"standardize": False, "ridge": 0.5}
    named = RidgeConfidenceMachine(kernel=kernel, width=1.3, **settings).fit(X, y)
    k = Kernel(kernel, 1.3)
    computed = RidgeConfidenceMachine(kernel="precomputed", **settings).fit(k.matrix(X, X), y)
    called = RidgeConfidenceMachine(
        kernel=lambda u, v: k.matrix(u[None], v[None])[0, 0], **settings
    ).fit(X, y)
    rows = np.column_stack([k.matrix(new, X), k.diagonal(new)])
    for model, given_rows in ((computed, rows), (called, new)):
        np.testing.assert_allclose(model.transduction_, named.transduction_)
        np.testing.assert_allclose(
            model.answer_.regions.hull(), named.answer_.regions.hull(), rtol=1e-6
        )
        np.testing.assert_allclose(
            model.predict_interval(given_rows), named.predict_interval(new), rtol=1e-6
        )
    np.testing.assert_allclose(computed.predict(rows[:, :-1]), named.predict(new))
    if kernel == "rbf":
        with pytest.warns(UserWarning, match="not given: 1 is taken, as for all rows of fit"):
            assert computed.predict_region(rows[:, :-1]) == computed.predict_region(rows)
    else:
        with pytest.raises(ValueError, match=r"as column 41, with itself .*; got 40 columns"):
            computed.predict_region(rows[:, :-1])


def test_kernels_of_scikit_learns_gaussian_processes_work():
    X, y, _ = numbers()
    ours = RidgeConfidenceMachine(width=2.0).fit(X, y)
    theirs = RidgeConfidenceMachine(kernel=RBF(2.0)).fit(X, y)
    np.testing.assert_allclose(theirs.answer_.regions.hull(), ours.answer_.regions.hull())
    assert theirs.width_ is None


def test_smoothed_p_values_lie_below_plain_ones():
    X, y, truth = numbers()
    model = RidgeConfidenceMachine().fit(X, y)
    X, truth = X[np.isnan(y)], truth[np.isnan(y)]
    plain = model.p_values(X, truth)
    smooth = model.p_values(X, truth, smooth=True, random_state=0)
    assert np.all(smooth < plain)
    assert np.all(smooth > plain - 1 / 31 - 1e-9)
    np.testing.assert_array_equal(smooth, model.p_values(X, truth, smooth=True, random_state=0))
    assert not np.array_equal(smooth, model.p_values(X, truth, smooth=True, random_state=1))
    Xc, yc, _ = classes()
    classifier = RidgeConfidenceClassifier().fit(Xc, yc)
    smooth = classifier.p_values(Xc, smooth=True, random_state=0)
    assert np.all(smooth < classifier.p_values(Xc))


def test_one_sided_regions_are_bounds():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine().fit(X, y)
    upper = model.predict_region(X, confidence=0.9, side="upper").hull()
    lower = model.predict_region(X, confidence=0.9, side="lower").hull()
    assert np.all(np.isneginf(upper[:, 0]) & np.isfinite(upper[:, 1]))
    assert np.all(np.isposinf(lower[:, 1]) & np.isfinite(lower[:, 0]))
    assert np.all(lower[:, 0] < upper[:, 1])


# --------------------------------------------------------------------------------------------------- laws


@given(st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(random):
    X, y, _ = numbers(n=30)
    order = list(range(30))
    random.shuffle(order)
    before, after = (RidgeConfidenceMachine().fit(X[i], y[i]) for i in (range(30), order))
    np.testing.assert_allclose(after.transduction_, before.transduction_[order])
    where = {row: j for j, row in enumerate(before.answer_.rows)}
    expected = before.answer_.regions.hull()[[where[order[row]] for row in after.answer_.rows]]
    np.testing.assert_allclose(after.answer_.regions.hull(), expected, rtol=1e-8)


@given(st.permutations(["no", "perhaps", "yes"]))
def test_names_of_classes_do_not_matter(names):
    X, y, _ = classes()
    renamed = dict(zip(["no", "perhaps", "yes"], names, strict=True)) | {None: None}
    before = RidgeConfidenceClassifier().fit(X, y)
    after = RidgeConfidenceClassifier().fit(X, [renamed[label] for label in y])
    assert [renamed[label] for label in before.transduction_] == list(after.transduction_)
    np.testing.assert_allclose(
        np.sort(after.answer_.p_values, axis=1), np.sort(before.answer_.p_values, axis=1)
    )


def test_units_of_features_do_not_matter():
    X, y, _ = numbers()
    before = RidgeConfidenceMachine().fit(X, y).answer_.regions.hull()
    for scale in ([1e-200, 1.0, 1e200], [1e6, 1e-9, -1.0]):
        after = RidgeConfidenceMachine().fit(X * scale, y).answer_.regions.hull()
        np.testing.assert_allclose(after, before, rtol=1e-6)
    shifted = RidgeConfidenceMachine().fit(X + 1e5, y).answer_.regions.hull()
    np.testing.assert_allclose(shifted, before, rtol=1e-5)


def test_constant_columns_are_dropped():
    X, y, _ = numbers()
    before = RidgeConfidenceMachine().fit(X, y)
    padded = np.column_stack([np.full(40, 0.1), X, np.zeros(40)])
    after = RidgeConfidenceMachine().fit(padded, y)
    np.testing.assert_allclose(after.answer_.regions.hull(), before.answer_.regions.hull())
    constant = RidgeConfidenceMachine().fit(np.full((40, 2), 3.3), y)
    np.testing.assert_allclose(constant.transduction_[np.isnan(y)], np.nanmean(y))


def test_transduction_agrees_with_predict_and_keeps_labels():
    for make, (X, y, _) in (
        (RidgeConfidenceMachine, numbers()),
        (RidgeConfidenceClassifier, classes()),
    ):
        model = make().fit(X, y)
        unlabelled = model.answer_.rows
        at_unlabelled = np.asarray(model.transduction_)[unlabelled]
        if make is RidgeConfidenceMachine:
            np.testing.assert_allclose(model.predict(X)[unlabelled], at_unlabelled, rtol=1e-10)
        else:
            np.testing.assert_array_equal(model.predict(X)[unlabelled], at_unlabelled)
        kept = np.delete(np.arange(len(y)), unlabelled)
        np.testing.assert_array_equal(np.asarray(model.transduction_)[kept], y[kept])
    X, y, _ = numbers()
    model = RidgeConfidenceMachine().fit(X, y)
    assert model.predict_region(X[model.answer_.rows]) == model.answer_.regions


# ------------------------------------------------------------------------------------------------- limits


def test_no_asked_row_is_fine():
    X, _, truth = numbers()
    model = RidgeConfidenceMachine().fit(X, truth)
    assert len(model.answer_) == 0
    np.testing.assert_array_equal(model.transduction_, truth)
    assert np.isfinite(model.predict_interval(X)).all()
    Xc, _, truth_c = classes()
    classifier = RidgeConfidenceClassifier().fit(Xc, truth_c)
    assert len(classifier.answer_) == 0
    assert classifier.predict_set(Xc).shape == (60, 3)


def test_too_few_labels_give_the_line_and_a_warning_that_says_so():
    X, y, _ = numbers(n=18, unlabelled=10)
    with pytest.warns(
        UserWarning, match=r"8 labelled rows support a confidence of at most 8/9 = 0\.8889"
    ):
        model = RidgeConfidenceMachine().fit(X, y)
    np.testing.assert_array_equal(model.answer_.regions.hull(), np.tile([-np.inf, np.inf], (10, 1)))
    assert model.answer_.diagnostics["largest_confidence"] == 8 / 9
    assert np.isfinite(model.predict_interval(X, confidence=0.8)).all()


def test_nine_labels_are_enough_for_ninety_percent():
    X, y, _ = numbers(n=19, unlabelled=10)
    model = RidgeConfidenceMachine(confidence=0.9).fit(X, y)
    assert np.isfinite(model.answer_.regions.measure()).all()


def test_classes_with_too_few_labels_are_in_every_set():
    X, y, _ = classes()
    y[y == "yes"] = ["yes"] * 3 + [None] * (np.sum(y == "yes") - 3)
    model = RidgeConfidenceClassifier(label_conditional=True, confidence=0.8)
    with pytest.warns(
        UserWarning, match="3 labelled rows of class 'yes' support a confidence of at most 3/4"
    ):
        model.fit(X, y)
    assert model.answer_.label_sets[:, 2].all()
    assert not model.answer_.label_sets[:, 0].all()


def test_one_labelled_row():
    with pytest.warns(UserWarning, match="1 labelled row supports"):
        model = RidgeConfidenceMachine(residual="deleted").fit([[0.0], [1.0]], [5.0, None])
    assert model.transduction_.tolist() == [5.0, 5.0]
    # With an intercept the two residuals of two rows are equal, whatever the second label.
    np.testing.assert_array_equal(
        model.predict_interval([[1.0]], confidence=0.4), [[-np.inf, np.inf]]
    )


def test_ridge_to_infinity_is_the_mean():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine(ridge=1e12).fit(X, y)
    np.testing.assert_allclose(model.answer_.values, np.nanmean(y), rtol=1e-6)


def test_duplicate_rows_and_huge_and_tiny_labels():
    X, y, _ = numbers()
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    base = RidgeConfidenceMachine(ridge=1e-6).fit(X, y).answer_.regions.hull()
    assert not np.isnan(base).any()
    for scale in (1e200, 1e-200):
        scaled = RidgeConfidenceMachine(ridge=1e-6).fit(X, y * scale).answer_.regions.hull()
        np.testing.assert_allclose(scaled, base * scale, rtol=1e-6)


# ---------------------------------------------------------------------------------------------- guarantee


def test_the_guarantee_says_what_holds_and_why():
    X, y, truth = numbers()
    estimated = RidgeConfidenceMachine().fit(X, y).guarantee_
    assert estimated.kind == "exact"
    assert "set their scale and the kernel's width; no label did" in estimated.grounds
    assert "at least 90 %" in str(estimated)
    fixed = RidgeConfidenceMachine(standardize=False, width=1.0).fit(X, truth).guarantee_
    assert fixed.kind == "exact"
    assert "No setting was estimated" in fixed.grounds
    later = RidgeConfidenceMachine().fit(X, truth).guarantee_
    assert later.kind == "approximate"
    assert "rows given only to predict" in str(later)
    Xc, yc, _ = classes()
    by_class = RidgeConfidenceClassifier(label_conditional=True, confidence=0.8).fit(Xc, yc)
    assert "at least 80 %, within every class that has a label" in by_class.guarantee_.statement
    assert (
        "Nothing is guaranteed for rows of a class that has no label."
        in by_class.guarantee_.statement
    )
    assert by_class.answer_.guarantee == by_class.guarantee_


def test_a_raised_ridge_makes_the_guarantee_approximate():
    X, y, _ = numbers()
    with pytest.warns(UserWarning, match="too small for these rows"):
        model = RidgeConfidenceMachine(ridge=1e-17).fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    assert model.guarantee_.kind == "approximate"


@pytest.mark.parametrize(
    ("kernel", "n_labelled"),
    [
        ("rbf", 9),
        ("linear", 30),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("rbf", 30), ("rbf", 60), ("linear", 9), ("linear", 60))
        ),
    ],
)
def test_coverage(kernel, n_labelled):
    """One unlabelled row a split, so splits are independent: counts stay inside exact binomial bounds (1e-5)."""
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(n_labelled)
    levels, splits = (0.8, 0.9), 250
    hits = np.zeros(len(levels))
    for _ in range(splits):
        rows = rng.choice(len(y), n_labelled + 1, replace=False)
        labels = np.append(y[rows[:-1]], np.nan)
        model = RidgeConfidenceMachine(kernel=kernel, confidence=0.8).fit(X[rows], labels)
        higher = model.predict_region(X[rows[-1:]], confidence=0.9)
        hits += [regions.contains(y[rows[-1]])[0] for regions in (model.answer_.regions, higher)]
    for level, hit in zip(levels, hits, strict=True):
        # Without ties coverage is exactly 1 - floor((1 - level)(l + 1)) / (l + 1), a little above the level.
        exact = 1 - round((1 - level) * (n_labelled + 1) - 0.499) / (n_labelled + 1)
        assert binom.ppf(1e-5, splits, exact) <= hit <= binom.ppf(1 - 1e-5, splits, exact)


# ------------------------------------------------------------------------------------------------- frames


def test_pandas_in_same_index_out():
    X, y, _ = numbers()
    index = pd.Index([f"röw {i}" for i in range(40)], name="haus")
    frame = pd.DataFrame(X, columns=["größe", "b", "c"], index=index)
    series = pd.Series(y, index=index, name="preis €")
    model = RidgeConfidenceMachine().fit(frame, series)
    assert isinstance(model.transduction_, pd.Series)
    assert model.transduction_.index.equals(index)
    assert model.transduction_.name == "preis €"
    unlabelled = index[np.isnan(y)]
    assert model.answer_.to_frame().index.equals(unlabelled)
    assert RidgeConfidenceMachine().fit(frame, y).answer_.to_frame().index.equals(unlabelled)
    assert list(model.feature_names_in_) == ["größe", "b", "c"]


def test_polars_in_polars_out():
    X, y, _ = numbers()
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    series = pl.Series("price", [None if np.isnan(v) else v for v in y])
    model = RidgeConfidenceMachine().fit(frame, series)
    assert isinstance(model.transduction_, pl.Series)
    assert model.transduction_.name == "price"
    assert model.transduction_.null_count() == 0
    np.testing.assert_allclose(model.predict(frame), RidgeConfidenceMachine().fit(X, y).predict(X))
    Xc, yc, _ = classes()
    kinds = pl.Series("kind", list(yc))
    classified = RidgeConfidenceClassifier().fit(pl.DataFrame(Xc), kinds)
    assert classified.transduction_.dtype == pl.String


@pytest.mark.parametrize(
    "names", [("ja", "nein"), (0, 1), (-1, 1), (0.0, 1.0, 2.0), (True, False), ("α", "β", "γ", "δ")]
)
def test_labels_of_any_type(names):
    X, y, truth = classes(names=names)
    model = run(RidgeConfidenceClassifier(), X, y)
    assert set(model.transduction_) == set(names)
    assert np.mean(model.transduction_ == truth) > 0.7
    series = pd.Series(y).astype("category")
    assert run(RidgeConfidenceClassifier(), X, series).transduction_.dtype == series.dtype


def test_missing_label_marks_asked_rows():
    X, y, _ = classes(names=(0, 1))
    marked = np.array([-1 if label is None else label for label in y])
    expected = RidgeConfidenceClassifier().fit(X, y)
    model = RidgeConfidenceClassifier(missing_label=-1).fit(X, marked)
    np.testing.assert_array_equal(model.answer_.rows, expected.answer_.rows)
    np.testing.assert_array_equal(model.transduction_, expected.transduction_.astype(int))
    three = run(RidgeConfidenceClassifier(), X, marked)
    assert len(three.classes_) == 3


def test_progress_is_logged(caplog):
    X, y, _ = numbers()
    with caplog.at_level(logging.INFO, logger="transduce"):
        RidgeConfidenceMachine(max_memory_mb=0.001).fit(X, y)
    assert "10 of 10 rows" in caplog.text


# ----------------------------------------------------------------------------------------------- refusals

GOOD_X, GOOD_Y, _ = numbers()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge must be a positive number; got 0.0"),
        ({"ridge": -1}, "ridge must be a positive number; got -1"),
        ({"ridge": "big"}, "ridge must be a positive number; got 'big'"),
        ({"ridge": np.nan}, "ridge must be a positive number"),
        ({"ridge": np.inf}, "ridge must be a positive number"),
        ({"ridge": True}, "ridge must be a positive number"),
        ({"kernel": "gauss"}, "Unknown kernel 'gauss': use one of"),
        ({"width": 0}, r"width \(a number, or 'median'\) must be a positive number; got 0"),
        ({"width": "mean"}, "width .* must be a positive number; got 'mean'"),
        (
            {"residual": "raw"},
            "residual must be one of 'auto', 'plain', 'studentized', 'deleted'; got 'raw'",
        ),
        ({"confidence": 0.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": 1}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": 90}, "confidence must lie strictly between 0 and 1; got 90"),
        ({"confidence": "90%"}, "confidence must lie strictly between 0 and 1"),
        ({"max_memory_mb": 0}, "max_memory_mb must be a positive number"),
        ({"width": 1e-300}, "must lie between 1e-100 and 1e\\+100"),
        ({"kernel": ["rbf"]}, "Unknown kernel"),
        ({"kernel": "poly", "degree": "3"}, "degree must be a number; got '3'"),
        ({"coef0": None}, "coef0 must be a number; got None"),
        ({"standardize": "no"}, "standardize must be True or False; got 'no'"),
        ({"kernel": "poly", "degree": 2.5}, "not finite"),
        ({"kernel": lambda u, v: np.nan}, "not finite"),
        ({"kernel": lambda u, v: float(u[0] > v[0])}, "not symmetric"),
        ({"kernel": "chi2"}, "features that are not negative: pass standardize=False"),
        ({"kernel": "precomputed"}, "square matrix of all rows against all rows"),
    ],
)
@pytest.mark.parametrize("make", BOTH)
def test_bad_settings_get_their_sentence(make, settings, message):
    y = GOOD_Y if make is RidgeConfidenceMachine else np.where(np.isnan(GOOD_Y), np.nan, GOOD_Y > 0)
    with pytest.raises(ValueError, match=message):
        make(**settings).fit(GOOD_X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GOOD_X, np.full(40, np.nan), "No row has a label"),
        (GOOD_X, None, "requires y to be passed"),
        (GOOD_X, GOOD_Y[:-1], "X has 40 rows but y has 39 labels"),
        (GOOD_X, np.column_stack([GOOD_Y, GOOD_Y]), "1d array"),
        (np.where(GOOD_X > 2, np.nan, GOOD_X), GOOD_Y, "Input X contains NaN in column"),
        (np.where(GOOD_X > 2, np.inf, GOOD_X), GOOD_Y, "Input X contains infinity in column"),
        (pd.DataFrame({"a": GOOD_X[:, 0], "kind": ["x"] * 40}), GOOD_Y, "column 'kind' holds text"),
        (pd.DataFrame({"a": pd.array([1, None] * 20, dtype="Int64")}), GOOD_Y, "NaN in column 'a'"),
        (
            pd.DataFrame({"a": GOOD_X[:, 0], "b": pd.array([1, None] * 20, dtype="Int64")}),
            GOOD_Y,
            "NaN in column 'b'",
        ),
        (
            pd.DataFrame({"a": GOOD_X[:, 0], "day": pd.date_range("2020", periods=40)}),
            GOOD_Y,
            "column 'day' holds dates",
        ),
        (pd.date_range("2020", periods=40).to_numpy()[:, None], GOOD_Y, "column 0 holds dates"),
        (np.empty((0, 3)), np.empty(0), "0 sample"),
        (np.empty((40, 0)), GOOD_Y, "0 feature"),
        (GOOD_X[:, 0], GOOD_Y, "2D array"),
    ],
)
@pytest.mark.parametrize("make", BOTH)
def test_bad_data_get_their_sentence(make, X, y, message):
    if make is RidgeConfidenceClassifier and y is not None and np.ndim(y) == 1:
        y = [None if np.isnan(label) else bool(label > 0) for label in y]
    with pytest.raises(ValueError, match=message):
        run(make(), X, y)


def test_a_lazy_frame_gets_its_sentence():
    lazy = pl.DataFrame({"a": GOOD_X[:, 0]}).lazy()
    with pytest.raises(ValueError, match="lazy frame"):
        RidgeConfidenceMachine().fit(lazy, GOOD_Y)


def test_bad_labels_get_their_sentence():
    with pytest.raises(ValueError, match="y contains infinity"):
        RidgeConfidenceMachine().fit(GOOD_X, np.where(GOOD_Y > 0, np.inf, GOOD_Y))
    with pytest.raises(
        ValueError, match="labels that are numbers, but y holds 'dear': convert them"
    ):
        RidgeConfidenceMachine().fit(GOOD_X, [*GOOD_Y[:-1], "dear"])
    with pytest.raises(ValueError, match="Complex data not supported"):
        RidgeConfidenceMachine().fit(GOOD_X, GOOD_Y + 1j)
    with pytest.raises(ValueError, match=r"one class only \('a'\)"):
        RidgeConfidenceClassifier().fit(GOOD_X, ["a"] * 39 + [None])
    with pytest.raises(ValueError, match="mixes text with other labels"):
        RidgeConfidenceClassifier().fit(GOOD_X, ["a", 1] * 20)
    with pytest.raises(ValueError, match=r"must be text, numbers or booleans, but y holds .*2020"):
        RidgeConfidenceClassifier().fit(GOOD_X, list(pd.date_range("2020", periods=2)) * 20)
    with pytest.raises(ValueError, match="Unknown label type"):
        RidgeConfidenceClassifier().fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="y contains infinity"):
        RidgeConfidenceClassifier().fit(GOOD_X, np.where(GOOD_Y > 0, np.inf, 1.0))


def test_values_beyond_double_precision_get_their_sentence():
    with pytest.raises(ValueError, match="labels are too large for double precision"):
        RidgeConfidenceMachine().fit(GOOD_X, GOOD_Y * 1e307)
    with pytest.raises(ValueError, match="features are too large to be squared"):
        RidgeConfidenceMachine(kernel="linear", standardize=False).fit(GOOD_X * 1e200, GOOD_Y)
    tiny = RidgeConfidenceMachine().fit(GOOD_X * 1e-310, GOOD_Y)
    assert np.isfinite(tiny.answer_.regions.measure()).all()


def test_a_failed_fit_leaves_no_half_fitted_machine():
    model = RidgeConfidenceMachine().fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="not positive definite"):
        model.set_params(kernel="sigmoid").fit(GOOD_X, GOOD_Y)
    with pytest.raises(NotFittedError):
        model.predict(GOOD_X)


@pytest.mark.parametrize("make", BOTH)
def test_settings_after_fit_do_not_leak_into_predict(make):
    model = make(kernel="poly").fit(
        GOOD_X, np.where(np.isnan(GOOD_Y), np.nan, np.round(GOOD_Y) > 0)
    )
    before = model.predict(GOOD_X)
    model.set_params(kernel="precomputed", standardize=False, ridge=1e6)
    np.testing.assert_array_equal(model.predict(GOOD_X), before)


def test_rows_in_another_order_are_refused():
    frame = pd.DataFrame(GOOD_X, index=[f"r{i}" for i in range(40)])
    series = pd.Series(GOOD_Y, index=frame.index)
    with pytest.raises(ValueError, match="same rows in a different order"):
        RidgeConfidenceMachine().fit(frame, series[::-1])
    RidgeConfidenceMachine().fit(frame, series.reset_index(drop=True))


def test_a_marker_that_never_occurs_is_pointed_out():
    X, _, truth = numbers()
    with pytest.warns(UserWarning, match="missing_label=-1 does not occur in y"):
        RidgeConfidenceMachine(missing_label=-1).fit(X, truth)


def test_masked_labels_are_missing():
    X, y, truth = numbers()
    masked = np.ma.array(np.where(np.isnan(y), -9999.0, truth), mask=np.isnan(y))
    np.testing.assert_array_equal(
        RidgeConfidenceMachine().fit(X, masked).transduction_,
        RidgeConfidenceMachine().fit(X, y).transduction_,
    )


def test_scores_leave_missing_labels_out():
    X, y, _ = numbers()
    known = ~np.isnan(y)
    model = RidgeConfidenceMachine().fit(X, y)
    assert model.score(X, y) == model.score(X[known], y[known])
    search = GridSearchCV(RidgeConfidenceMachine(), {"ridge": [0.1, 10.0]}, cv=KFold(3)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    Xc, yc, truth = classes()
    classifier = RidgeConfidenceClassifier().fit(Xc, yc)
    shown = yc != None  # noqa: E711
    assert classifier.score(Xc, yc) == np.mean(classifier.predict(Xc)[shown] == truth[shown])


def test_rare_classes_do_not_swallow_label_conditional_answers():
    """Their p-values are large because they are rare; the answer does not compare them with the others'."""
    X, y, _ = classes(n=240, unlabelled=120)
    y[np.flatnonzero(y == "yes")[3:]] = None
    plain = run(RidgeConfidenceClassifier(), X, y)
    conditional = run(RidgeConfidenceClassifier(label_conditional=True), X, y)
    np.testing.assert_array_equal(plain.transduction_, conditional.transduction_)
    assert not np.array_equal(plain.answer_.p_values, conditional.answer_.p_values)


def test_equal_classes_are_tied():
    model = RidgeConfidenceClassifier(confidence=0.5).fit([[-1.0], [1.0], [0.0]], ["a", "b", None])
    assert model.answer_.status.tolist() == ["tied"]


def test_precomputed_classifiers_can_be_cross_validated():
    X, _, truth = classes()
    K = Kernel("linear").matrix(X, X)
    model = RidgeConfidenceClassifier(kernel="precomputed")
    assert (
        cross_val_score(
            model, K, truth.astype(str), cv=KFold(3, shuffle=True, random_state=0)
        ).mean()
        > 0.6
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "make"),
    [("rbf", BOTH[0]), ("linear", BOTH[1])]
    + [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (("linear", BOTH[0]), ("rbf", BOTH[1]))
    ],
)
def test_memory_stays_within_the_budget(kernel, make):
    """Beyond copies of the features and the answers themselves, asking more rows needs no more memory."""
    rng = np.random.default_rng(0)
    peaks = []
    for n_unlabelled in (1_000, 10_000):
        X = rng.normal(size=(300 + n_unlabelled, 2))
        y = np.append(np.arange(300) % 30.0, np.full(n_unlabelled, np.nan))
        tracemalloc.start()
        make(kernel=kernel, max_memory_mb=4).fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
    # 9,000 more rows: features 0.15 MB a copy; 30 classes times five answers of 8 bytes 11 MB.
    assert peaks[1] - peaks[0] < (3 if make is RidgeConfidenceMachine else 20)
    assert peaks[0] < 25


def test_bad_precomputed_matrices_get_their_sentence():
    K = Kernel("rbf").matrix(GOOD_X, GOOD_X)
    model = RidgeConfidenceMachine(kernel="precomputed")
    with pytest.raises(ValueError, match=r"got shape \(40, 39\)"):
        model.fit(K[:, :-1], GOOD_Y)
    lopsided = K.copy()
    lopsided[0, 1] += 0.1
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        model.fit(lopsided, GOOD_Y)
    with pytest.raises(ValueError, match="not positive definite"):
        model.fit(-5 * K, GOOD_Y)


def test_bad_calls_get_their_sentence():
    model = RidgeConfidenceMachine().fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="side must be one of 'two', 'lower', 'upper'; got 'left'"):
        model.predict_region(GOOD_X, side="left")
    with pytest.raises(ValueError, match="confidence must lie strictly between"):
        model.predict_region(GOOD_X, confidence=1.5)
    with pytest.raises(ValueError, match="one candidate label for each of the 40 rows"):
        model.p_values(GOOD_X, [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        model.p_values(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(GOOD_X[:, :2])


def test_a_large_kernel_matrix_is_announced():
    with pytest.warns(UserWarning, match="needs about 54 GB of memory"):
        announce_memory(47_500, 5e8)


def test_settings_are_the_same_in_both():
    """The classifier has every setting that is not about numbers, with the same default."""
    of_numbers, of_classes = (make().get_params() for make in BOTH)
    assert set(of_classes) - set(of_numbers) == {"label_conditional"}
    assert set(of_numbers) - set(of_classes) == {"spread", "scale", "draw_in_far", "resolution"}
    shared = set(of_numbers) & set(of_classes)
    assert all(of_classes[name] == of_numbers[name] for name in shared)
    assert not set(itertools.chain(of_numbers, of_classes)) & {"alpha", "gamma", "lambda"}
