"""ConformalTransducer: regions, sets, means and selections by definition; laws, limits, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, SVR

from tests import brute
from tests.libraries import polars as pl
from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.conformal import Chance, Miscoverage
from transduce.conformal.miscoverage import powered_mean
from transduce.conformal.scores import margins
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.population.urns import urn_interval


def numbers(n=90, labelled=50, seed=0):
    """Rows, labels with holes, and the truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    y = truth.copy()
    y[rng.permutation(n)[labelled:]] = np.nan
    return X, y, truth


def classes(n=120, labelled=70, names=("no", "perhaps", "yes"), seed=0, gap=1.0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(names)
    X = rng.normal(size=(n, 3)) + gap * codes[:, None]
    truth = np.array(names, dtype=object)[codes]
    y = truth.copy()
    y[rng.permutation(n)[labelled:]] = None
    return X, y, truth


def quiet(estimator, **settings):
    """A wrapper without the test of rows, for speed."""
    return ConformalTransducer(
        estimator, **{"test_exchangeability": False, "random_state": 0, **settings}
    )


# --------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    "inner", [TransductiveRidge(), TransductiveGPRegressor(matching=0.0, random_state=0)]
)
def test_regions_by_definition(inner):
    """Hide the same labels by hand, fit, and take the k-th smallest score: the same regions."""
    X, y, _ = numbers()
    model = quiet(inner, confidence=0.8).fit(X, y)
    shown = y.copy()
    shown[model.calibration_rows_] = np.nan
    hand = clone(inner).fit(X, shown)
    spread = np.ones(len(X))
    if isinstance(inner, TransductiveGPRegressor):
        spread[np.isnan(shown)] = hand.answer_.standard_errors
    scores = (
        np.abs(y - hand.transduction_)[model.calibration_rows_] / spread[model.calibration_rows_]
    )
    np.testing.assert_allclose(model.calibration_scores_, scores, rtol=1e-6)
    unlabelled, c = np.isnan(y), len(model.calibration_rows_)
    q = np.sort(scores)[int(np.ceil((c + 1) * 0.8 - 1e-9)) - 1]
    values = np.asarray(hand.transduction_)[unlabelled]
    np.testing.assert_allclose(model.answer_.values, values, rtol=1e-6)
    ends = np.column_stack([values - q * spread[unlabelled], values + q * spread[unlabelled]])
    np.testing.assert_allclose(model.answer_.regions.hull(), ends, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.transduction_[~unlabelled], y[~unlabelled])
    assert model.nonconformity_ == ("scaled" if spread[unlabelled][0] != 1 else "absolute")
    assert model.answer_.rows.tolist() == np.flatnonzero(unlabelled).tolist()


def test_plain_estimators_learn_from_visible_labels():
    X, y, _ = numbers()
    model = quiet(RandomForestRegressor(20, random_state=3)).fit(X, y)
    visible = np.setdiff1d(np.flatnonzero(~np.isnan(y)), model.calibration_rows_)
    hand = RandomForestRegressor(20, random_state=3).fit(X[visible], y[visible])
    np.testing.assert_allclose(model.answer_.values, hand.predict(X[np.isnan(y)]))
    np.testing.assert_allclose(
        model.calibration_scores_, np.abs(y - hand.predict(X))[model.calibration_rows_]
    )
    np.testing.assert_allclose(model.predict(X), hand.predict(X))
    assert model.answer_.diagnostics["transductive"] is False


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize(
    ("inner", "nonconformity"),
    [
        (GaussianNB(), "auto"),
        (GaussianNB(), "margin"),
        (GaussianNB(), "zero_one"),
        (RidgeClassifier(), "auto"),
        (TransductiveRidgeClassifier(), "auto"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*support")
def test_label_sets_by_definition(inner, nonconformity, by_class):
    X, y, truth = classes()
    model = quiet(
        inner, confidence=0.75, nonconformity=nonconformity, label_conditional=by_class
    ).fit(X, y)
    unlabelled = np.array([label is None for label in y])
    shown = y.copy()
    shown[model.calibration_rows_] = None
    if isinstance(inner, TransductiveRidgeClassifier):
        hand = clone(inner).fit(X, shown)
        table = np.zeros((len(X), 3))
        table[hand.answer_.rows] = 1 - hand.answer_.probabilities
    else:
        visible = np.array([label is not None for label in shown])
        hand = clone(inner).fit(X[visible], shown[visible].astype(str))
        if model.nonconformity_ == "probability":
            table = 1 - hand.predict_proba(X)
        elif model.nonconformity_ == "margin":
            said = (
                hand.predict_proba(X)
                if hasattr(hand, "predict_proba")
                else hand.decision_function(X)
            )
            table = np.array([[max(np.delete(row, y)) - row[y] for y in range(3)] for row in said])
        else:
            table = (hand.predict(X)[:, None] != hand.classes_).astype(float)
    codes = np.searchsorted(model.classes_, truth.astype(str))
    hidden = table[model.calibration_rows_, codes[model.calibration_rows_]]
    np.testing.assert_allclose(model.calibration_scores_, hidden, atol=1e-9)
    for j, row in enumerate(np.flatnonzero(unlabelled)):
        for k in range(3):
            among = hidden[codes[model.calibration_rows_] == k] if by_class else hidden
            p = brute.conformal_p_value(among, table[row, k] - 1e-9)
            assert model.answer_.p_values[j, k] == pytest.approx(p)
            own = model.answer_.values[j] == model.classes_[k]  # the answer is in its own set
            assert model.answer_.label_sets[j, k] == (p > 0.25 + 1e-9 or own)
    ranked = np.sort(model.answer_.p_values, axis=1)
    np.testing.assert_allclose(model.answer_.confidence, 1 - ranked[:, 1])
    np.testing.assert_allclose(model.answer_.credibility, ranked[:, 2])


def test_the_mean_corrects_predictions_by_hidden_residuals():
    X, y, truth = numbers(n=400, labelled=150)
    model = quiet(Ridge()).fit(X, y)
    f = model.estimator_.predict(X)
    unlabelled, hidden = np.isnan(y), model.calibration_rows_
    residuals = (truth - f)[hidden]
    assert model.mean_.loc["mean", "estimate"] == pytest.approx(
        f[unlabelled].mean() + residuals.mean()
    )
    half = residuals.std(ddof=1) * np.sqrt(1 / len(hidden) + 1 / unlabelled.sum())
    assert model.mean_.loc["mean", "standard_error"] == pytest.approx(half)
    assert model.mean_.loc["mean", "plain"] == pytest.approx(f[unlabelled].mean())
    X, y, truth = classes()
    shares = quiet(GaussianNB()).fit(X, y).mean_
    assert shares.index.tolist() == ["no", "perhaps", "yes"]
    assert shares["estimate"].between(shares["lower"], shares["upper"]).all()
    assert shares["lower"].min() >= 0.0
    assert quiet(RidgeClassifier()).fit(X, y).mean_["plain"].sum() == pytest.approx(1.0)


def test_standard_errors_of_means_are_about_right():
    rng, errors = np.random.default_rng(0), []
    for _ in range(1000):
        truth = rng.exponential(size=100)
        f = truth + rng.normal(size=100)
        table = powered_mean(f[:60, None], f[60:, None], truth[60:, None], np.ones(40))
        errors.append((table["estimate"][0] - truth[:60].mean()) / table["standard_error"][0])
    assert 0.95 < np.std(errors) < 1.1


def test_shares_of_rare_classes_are_covered():
    """The finite urn is exact for any share, where an approximation gave a rare class no width at all."""
    rng, n, missed, widths = np.random.default_rng(0), 400, 0, []
    for _ in range(n):
        codes = (rng.random(109) < 0.05).astype(int)
        low, high = urn_interval(int(codes[:9].sum()), 9, 100, 0.9)
        missed += not low <= codes[9:].sum() <= high
        widths.append(high - low)
    assert missed <= binom.ppf(0.999, n, 0.1)
    assert min(widths) > 0


def test_selection_by_definition():
    X, y, truth = numbers(n=300, labelled=150)
    model = quiet(Ridge(), calibration=80).fit(X, y)
    f, unlabelled = model.estimator_.predict(X), np.isnan(y)
    for wanted, look, good in (
        ({"above": 0.5}, f, truth > 0.5),
        ({"below": -0.5}, -f, truth < -0.5),
        ({"above": -1.0, "below": 1.0}, np.minimum(f + 1, 1 - f), np.abs(truth) < 1),
    ):
        picked = model.select(**wanted, false_discovery=0.2)
        bad = look[model.calibration_rows_][~good[model.calibration_rows_]]
        p = [(1 + np.sum(bad >= look[j])) / 81 for j in np.flatnonzero(unlabelled)]
        np.testing.assert_allclose(picked.p_values, p)
        mask = brute.benjamini_hochberg(np.array(p), 0.2)
        np.testing.assert_array_equal(picked.rows, np.flatnonzero(unlabelled)[mask])
        assert len(picked) > 5
        assert "false discovery rate is at most 20 %" in str(picked)
        np.testing.assert_array_equal(picked.to_frame()["value"], picked.values)
    assert "not above -1 or not below 1" in repr(picked)


def test_answers_that_are_off_by_little_are_picked_by_definition():
    """Rows whose standard error is small look good; at a calibration row the answer is known to be good or not."""
    X, y, truth = numbers(n=300, labelled=150)
    model = quiet(BayesianRidge(), calibration=80, nonconformity="scaled").fit(X, y)
    f, spread = model.estimator_.predict(X, return_std=True)
    rows, unlabelled = model.calibration_rows_, np.flatnonzero(np.isnan(y))
    for tolerance in (0.2, 1.0, 3.0):
        picked = model.select(tolerance=tolerance, false_discovery=0.3)
        bad = spread[rows][np.abs(f - truth)[rows] > tolerance]
        p = [(1 + np.sum(bad <= spread[j])) / 81 for j in unlabelled]
        np.testing.assert_allclose(picked.p_values, p)
        mask = brute.benjamini_hochberg(np.array(p), 0.3)
        np.testing.assert_array_equal(picked.rows, unlabelled[mask])
        np.testing.assert_allclose(picked.answers, f[unlabelled])
    assert "whose prediction is off by more than 3 is at most 30 %" in str(picked)
    assert len(picked) > 0


def test_a_label_at_the_edge_is_neither_above_nor_below():
    X = np.arange(60.0)[:, None]
    truth = np.repeat([0.0, 1.0, 2.0], 20)
    y = np.where(np.arange(60) % 2, truth, np.nan)
    model = quiet(Ridge(), confidence=0.5).fit(X, y)
    f = model.estimator_.predict(X)
    for wanted, look, good in (({"above": 1.0}, f, truth == 2), ({"below": 1.0}, -f, truth == 0)):
        bad = look[model.calibration_rows_][~good[model.calibration_rows_]]
        p = [
            (1 + np.sum(bad >= look[j])) / (1 + len(model.calibration_rows_))
            for j in np.flatnonzero(np.isnan(y))
        ]
        np.testing.assert_allclose(model.select(**wanted).p_values, p)


class Sure(RegressorMixin, BaseEstimator):
    """Claims to know rows with a negative first feature exactly."""

    def fit(self, X, y):
        self.inner_ = Ridge().fit(X, y)
        return self

    def predict(self, X, return_std=False):
        values = self.inner_.predict(X)
        return (values, np.where(X[:, 0] < 0.0, 0.0, 2.0)) if return_std else values


def test_spreads_of_zero_are_replaced_by_small_ones():
    X, y, _ = numbers()
    assert quiet(Sure()).fit(X, y).nonconformity_ == "absolute"
    model = quiet(Sure(), nonconformity="scaled").fit(X, y)
    scale = np.where(X[:, 0] < 0.0, 2e-6, 2.0)
    scores = np.abs(y - model.estimator_.predict(X)) / scale
    np.testing.assert_allclose(model.calibration_scores_, scores[model.calibration_rows_])
    width = model.answer_.regions.measure()
    sure = X[np.isnan(y), 0] < 0.0
    np.testing.assert_allclose(width[sure] * 1e6, width[~sure][0])


def test_selection_of_classes_by_definition():
    X, y, truth = classes(n=300, labelled=150, gap=1.5)
    model = quiet(GaussianNB()).fit(X, y)
    P, unlabelled = model.predict_proba(X), np.flatnonzero([label is None for label in y])
    answers = model.predict(X)
    for wanted, look, good in (
        ({"correct": True}, P.max(axis=1), answers == truth),
        ({"label": "yes"}, P[:, 2], truth == "yes"),
    ):
        bad = look[model.calibration_rows_][~good[model.calibration_rows_]]
        p = [
            (1 + np.sum(bad >= look[j] - 1e-12)) / (1 + len(model.calibration_rows_))
            for j in unlabelled
        ]
        picked = model.select(**wanted, false_discovery=0.15)
        np.testing.assert_allclose(picked.p_values, p)
        assert len(picked) == brute.benjamini_hochberg(np.array(p), 0.15).sum() > 0


def test_margins_are_to_the_best_other():
    np.testing.assert_array_equal(margins(np.array([[2.0, 2.0, 0.0]])), [[0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(margins(np.array([[2.0]])), [[-2.0]])


# ----------------------------------------------------------------------------------------------------- laws


def test_same_seed_same_answer():
    X, y, _ = numbers()
    one, two = (
        ConformalTransducer(TransductiveRidge(), random_state=5).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.calibration_rows_, two.calibration_rows_)
    np.testing.assert_array_equal(one.answer_.regions.hull(), two.answer_.regions.hull())
    assert str(one.guarantee_) == str(two.guarantee_)
    other = ConformalTransducer(TransductiveRidge(), random_state=6).fit(X, y)
    assert set(other.calibration_rows_) != set(one.calibration_rows_)


def test_the_order_of_asked_rows_does_not_matter():
    """Nor do labels scaled and shifted, beyond what they must."""
    X, y, _ = numbers()
    unlabelled = np.flatnonzero(np.isnan(y))
    order = np.arange(90)
    order[unlabelled] = np.random.default_rng(0).permutation(unlabelled)
    one, two = (
        quiet(TransductiveRidge()).fit(X, y),
        quiet(TransductiveRidge()).fit(X[order], y[order]),
    )
    np.testing.assert_array_equal(one.calibration_rows_, two.calibration_rows_)
    ends = dict(zip(order[unlabelled], two.answer_.regions.hull(), strict=True))
    np.testing.assert_allclose(
        [ends[row] for row in unlabelled], one.answer_.regions.hull(), atol=1e-6
    )
    scaled = quiet(TransductiveRidge()).fit(X, 7.0 - 3.0 * y)
    np.testing.assert_allclose(
        scaled.answer_.regions.hull(), 7.0 - 3.0 * one.answer_.regions.hull()[:, ::-1], atol=1e-5
    )


def test_other_levels_from_the_same_fit():
    X, y, _ = numbers(labelled=60)
    model = quiet(Ridge(), calibration=29).fit(X, y)
    refit = quiet(Ridge(), calibration=29, confidence=0.8).fit(X, y)
    other = model.answer_at(0.8)
    np.testing.assert_array_equal(other.regions.hull(), refit.answer_.regions.hull())
    assert str(other.guarantee) == str(refit.guarantee_)
    assert np.all(other.regions.measure() <= model.answer_.regions.measure())
    level = model.confidence_for(0.7, 0.9)
    assert Miscoverage.at(level, n_unlabelled=30, n_calibration=29).quantile(0.9) <= 9
    table = model.outside_at_all_levels(0.9)
    assert len(table) == 29
    assert table["outside_at_most"].is_monotonic_decreasing
    with pytest.raises(ValueError, match="it takes 270 calibration labels"):
        model.confidence_for(1, 0.9)
    X, y, _ = classes()
    sets = quiet(GaussianNB()).fit(X, y)
    assert np.all(sets.answer_at(0.7).label_sets <= sets.answer_.label_sets)


def test_equal_scores_are_inside():
    """Integer labels and answers: the threshold is met exactly by many, and rounding does not push them out."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 1)) * 0.1
    truth = 0.1 * rng.integers(0, 4, size=200) + X[:, 0]
    y = np.append(truth[:100], np.full(100, np.nan))
    from sklearn.tree import DecisionTreeRegressor

    model = quiet(DecisionTreeRegressor(max_depth=1, random_state=0), confidence=0.6).fit(X, y)
    q = np.sort(model.calibration_scores_)[
        int(np.ceil((len(model.calibration_rows_) + 1) * 0.6 - 1e-9)) - 1
    ]
    distance = np.abs(truth[100:] - model.answer_.values)
    met = np.isclose(distance, q, rtol=1e-12)
    assert met.any()
    assert model.answer_.regions.contains(truth[100:])[met].all()
    parted = quiet(
        DecisionTreeRegressor(max_depth=1, random_state=0), confidence=0.6, ties="random"
    ).fit(X, y)
    inside = parted.answer_.regions.contains(truth[100:])
    assert 0 < inside[met].sum() < met.sum()


@pytest.mark.parametrize("kind", ["pandas", "polars", "list"])
def test_frames_in_frames_out(kind):
    X, y, _ = numbers()
    names = ["größe", "b", "c"]
    if kind == "pandas":
        index = pd.Index([f"z{i}" for i in range(90)])
        table, labels = (
            pd.DataFrame(X, columns=names, index=index),
            pd.Series(y, index=index, name="preis"),
        )
    elif kind == "polars":
        table, labels = pl.DataFrame(X, schema=names), pl.Series("preis", y).fill_nan(None)
    else:
        table, labels = X.tolist(), [None if np.isnan(value) else value for value in y]
    model = ConformalTransducer(TransductiveRidge(), random_state=0).fit(table, labels)
    plain = ConformalTransducer(TransductiveRidge(), random_state=0).fit(X, y)
    np.testing.assert_allclose(np.asarray(model.transduction_, dtype=float), plain.transduction_)
    if kind == "pandas":
        assert model.transduction_.name == "preis"
        assert model.answer_.to_frame().index[0].startswith("z")
        assert model.select(above=0.0, false_discovery=0.5).to_frame().index[0].startswith("z")
    if kind != "list":
        assert list(model.feature_names_in_) == names
        assert model.predict(table).shape == (90,)


@pytest.mark.parametrize("names", [(0, 1), ("naïve", "ж"), (True, False), (2.0, 7.0, 9.0)])
def test_classes_of_any_type(names):
    X, y, truth = classes(names=names, gap=2.0)
    for inner in (TransductiveRidgeClassifier(), GaussianNB(), LabelSpreading(), SVC()):
        model = quiet(inner).fit(X, y)
        assert set(model.classes_.tolist()) == set(names)
        assert set(np.asarray(model.predict(X)).tolist()) <= set(names)
        assert np.mean(model.transduction_ == truth) > 0.8
        assert model.score(X, y) > 0.8
        assert len(model.select(label=names[0], false_discovery=0.3)) > 0


def test_other_kinds_of_estimators():
    X, y, truth = classes(gap=2.0)
    spreading = quiet(LabelSpreading()).fit(X, y)
    assert spreading.nonconformity_ == "probability"
    np.testing.assert_allclose(spreading.predict_proba(X).sum(axis=1), 1.0)
    training = quiet(SelfTrainingClassifier(GaussianNB())).fit(X, y)
    assert training.answer_.diagnostics["transductive"]
    assert (
        quiet(BayesianTransducer(softness=0.5, tolerance=0.1, random_state=0))
        .fit(X, y)
        .nonconformity_
        == "probability"
    )
    assert quiet(RidgeConfidenceClassifier()).fit(X, y).nonconformity_ == "margin"
    piped = quiet(make_pipeline(StandardScaler(), TransductiveRidgeClassifier())).fit(X, y)
    assert piped.answer_.diagnostics["transductive"]
    assert np.mean(piped.transduction_ == truth) > 0.8
    assert piped.decision_function(X).shape == (120, 3)
    X, y, _ = numbers()
    for inner in (
        make_pipeline(StandardScaler(), BayesianRidge()),
        GaussianProcessRegressor(alpha=0.1),
    ):
        assert quiet(inner).fit(X, y).nonconformity_ == "scaled"
        assert quiet(inner, nonconformity="scaled").fit(X, y).nonconformity_ == "scaled"
        assert quiet(inner, nonconformity="absolute").fit(X, y).nonconformity_ == "absolute"
    assert quiet(RidgeConfidenceMachine()).fit(X, y).nonconformity_ == "absolute"
    assert not hasattr(quiet(Ridge()).fit(X, y), "predict_proba")
    assert hasattr(quiet(GaussianNB()), "predict_proba")
    assert is_classifier(quiet(GaussianNB()))
    assert is_regressor(quiet(TransductiveRidge()))


@pytest.mark.parametrize(
    "inner", [TransductiveRidge(kernel="precomputed"), SVR(kernel="precomputed")]
)
def test_precomputed_kernels(inner):
    X, y, _ = numbers()
    K = X @ X.T
    model = ConformalTransducer(inner, random_state=0).fit(K, y)
    assert model.n_features_in_ == 90
    assert model.predict(K).shape == (90,)
    if isinstance(inner, SVR):
        visible = np.setdiff1d(np.flatnonzero(~np.isnan(y)), model.calibration_rows_)
        plain = SVR(kernel="linear").fit(X[visible], y[visible])
        np.testing.assert_allclose(model.answer_.values, plain.predict(X[np.isnan(y)]), atol=1e-2)
        np.testing.assert_allclose(model.predict(K), plain.predict(X), atol=1e-2)
    else:
        shown = y.copy()
        shown[model.calibration_rows_] = np.nan
        hand = clone(inner).fit(K, shown)
        np.testing.assert_allclose(
            model.answer_.values, np.asarray(hand.transduction_)[np.isnan(y)], atol=1e-6
        )
        np.testing.assert_allclose(model.predict(K), hand.predict(K), atol=1e-6)
    with pytest.raises(ValueError, match="needs a square matrix of all rows"):
        clone(model).fit(X, y)
    with pytest.raises(ValueError, match="with the 90 rows of fit; got an array of shape"):
        model.predict(K[:, :80])


def test_sparse_and_text_rows():
    X, y, truth = classes(gap=2.0)
    model = ConformalTransducer(LogisticRegression(), random_state=0).fit(sparse.coo_matrix(X), y)
    assert np.mean(model.transduction_ == truth) > 0.8
    texts = [f"{label} wort{i % 5}" for i, label in enumerate(truth)]
    model = ConformalTransducer(
        make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0
    )
    assert np.mean(model.fit(texts, y).transduction_ == truth) > 0.9
    assert model.predict(texts[:3]).tolist() == truth[:3].tolist()


def test_settings_changed_after_fit_do_not_leak():
    X, y, _ = numbers()
    model = quiet(Ridge()).fit(X, y)
    before, text = model.answer_at(0.8).regions.hull(), str(model.answer_at(0.8).guarantee)
    model.set_params(confidence=0.5, calibration=3, nonconformity="scaled", estimator__alpha=1e6)
    np.testing.assert_array_equal(model.answer_at(0.8).regions.hull(), before)
    assert str(model.answer_at(0.8).guarantee) == text
    assert model.outside_at_most() == model.miscoverage_.quantile(0.95)


def test_the_guarantee_reads_as_sentences():
    X, y, _ = numbers()
    model = ConformalTransducer(Ridge(), random_state=0).fit(X, y)
    assert str(model.guarantee_).startswith(
        "exact if rows were labelled at random: The interval of a row picked at random holds its true value with "
        "probability at least 90 %. With 95 % certainty at most "
    )
    verdict = model.exchangeability_.verdict
    assert " difference between 50 labelled and 40 unlabelled rows" in str(verdict)
    assert str(verdict) in str(model.guarantee_)
    assert model.guarantee_ == model.answer_.guarantee
    assert "was not tested" in str(quiet(Ridge()).fit(X, y).guarantee_)
    X[np.isnan(y), 1] += 3.0
    with pytest.warns(UserWarning, match="unlabelled rows differ .* column 1"):
        shifted = ConformalTransducer(Ridge(), random_state=0, labels=Chance(reweight=False)).fit(
            X, y
        )
    assert shifted.guarantee_.kind == "approximate"
    assert "rows differ" in str(shifted.guarantee_)
    assert "rows differ" in str(shifted.select(above=0.0))
    X, y, _ = classes()
    by_class = quiet(GaussianNB(), label_conditional=True, confidence=0.7).fit(X, y)
    assert "within every class" in by_class.guarantee_.statement
    assert "every class of the unlabelled rows has a label" in by_class.guarantee_.grounds
    assert by_class.outside_at_most(0.9) <= 50
    with pytest.raises(ValueError, match="fit with label_conditional=False"):
        by_class.confidence_for(0.9)


# --------------------------------------------------------------------------------------------------- limits


def test_no_row_is_unlabelled():
    X, _, truth = numbers()
    model = ConformalTransducer(Ridge(), random_state=0).fit(X, truth)
    np.testing.assert_allclose(model.predict(X), Ridge().fit(X, truth).predict(X))
    assert len(model.answer_) == len(model.calibration_rows_) == 0
    assert str(model.guarantee_) == "none: Nothing is guaranteed. No row is unlabelled."
    np.testing.assert_array_equal(model.transduction_, truth)
    assert model.mean_["estimate"].isna().all()
    X, _, truth = classes()
    sets = quiet(GaussianNB(), calibration=0.5).fit(X, truth)
    assert sets.answer_.label_sets.shape == (0, 3)
    assert len(sets.select(correct=True)) == 0


def test_too_few_labels_guarantee_nothing_and_say_so():
    X, y, _ = numbers(labelled=10)
    with pytest.warns(
        UserWarning, match="10 labels are too few to hold some out and guarantee 90 %: it takes 13"
    ):
        model = quiet(Ridge()).fit(X, y)
    assert np.isinf(model.answer_.regions.measure()).all()
    assert model.guarantee_.kind == "none"
    assert "too few to hold some out" in str(model.guarantee_)
    assert len(model.calibration_rows_) == 0
    np.testing.assert_allclose(
        model.predict(X), Ridge().fit(X[~np.isnan(y)], y[~np.isnan(y)]).predict(X)
    )
    assert len(model.select(above=0.0)) == 0
    with pytest.warns(
        UserWarning, match="5 calibration labels support at most 5/6 = 0.8333: 90 % takes 9"
    ):
        model = quiet(Ridge(), calibration=5).fit(X, y)
    assert model.outside_at_most() == 0
    assert np.isfinite(model.answer_at(0.8).regions.measure()).all()
    X, y, _ = classes(labelled=12)
    with pytest.warns(UserWarning, match="Every set is all classes"):
        sets = quiet(GaussianNB()).fit(X, y)
    assert sets.answer_.label_sets.all()
    assert (sets.answer_.p_values == 1).all()


def test_a_rare_class_is_in_every_set():
    X, y, _ = classes(n=200, labelled=150, names=("a", "b"))
    labelled = np.flatnonzero([label is not None for label in y])
    y[labelled[5:][y[labelled[5:]] == "b"]] = "a"
    with pytest.warns(
        UserWarning, match="calibration label.? of class 'b' support.*; that class is in every set"
    ):
        # With this seed some labels of 'b' stay visible.
        model = quiet(GaussianNB(), label_conditional=True, random_state=2).fit(X, y)
    assert model.answer_.label_sets[:, 1].all()
    assert (model.answer_.p_values[:, 0] <= 0.1).any()
    assert (
        "One class has too few calibration labels and is in every set."
        in model.guarantee_.statement
    )
    X, y, _ = classes(labelled=30)
    with pytest.warns(
        UserWarning, match=r"that class \(and 2 more that have too few\) is in every set"
    ):
        model = quiet(GaussianNB(), label_conditional=True).fit(X, y)
    assert model.guarantee_.kind == "none"
    assert "No class has the 9 calibration labels that 90 % takes." in model.guarantee_.grounds
    assert model.answer_.label_sets.all()


@pytest.mark.parametrize(
    "inner", [GaussianNB(), RidgeClassifier(), SVC(), TransductiveRidgeClassifier()]
)
def test_a_class_all_of_whose_labels_are_hidden(inner):
    """No estimator can answer it; its score is the worst there is, and columns stay in place."""
    X, y, _ = classes(labelled=60, names=("a", "b"))
    labelled = np.flatnonzero([label is not None for label in y])
    y[labelled[0]] = "aa"
    seed = next(
        seed
        for seed in range(99)
        if labelled[0]
        in quiet(GaussianNB(), random_state=seed, calibration=29).fit(X, y).calibration_rows_
    )
    model = quiet(inner, random_state=seed, calibration=29).fit(X, y)
    assert model.classes_.tolist() == ["a", "aa", "b"]
    assert set(model.answer_.values) == {"a", "b"}
    assert (
        model.calibration_scores_.max()
        == model.calibration_scores_[model.calibration_rows_ == labelled[0]][0]
    )
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(X)[:, 1], 0.0)
        assert model.predict_proba(X).shape == (120, 3)
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


class Patchy(RegressorMixin, BaseEstimator):
    """Has no answer where the first feature is above 1."""

    def fit(self, X, y):
        self.inner_ = Ridge().fit(X, y)
        return self

    def predict(self, X):
        return np.where(X[:, 0] > 1.0, np.nan, self.inner_.predict(X))


class PatchyClassifier(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return np.where(X[:, :1] > 1.0, np.nan, self.inner_.predict_proba(X))


def test_rows_without_an_answer_are_left_out_of_the_law():
    X, y, _truth = numbers(n=200, labelled=100)
    model = quiet(Patchy()).fit(X, y)
    unlabelled = np.isnan(y)
    lost = X[unlabelled, 0] > 1.0
    assert (model.answer_.status[lost] == "unreached").all()
    assert np.isinf(model.answer_.regions.measure()[lost]).all()
    assert np.isfinite(model.answer_.regions.measure()[~lost]).all()
    calibration_lost = X[model.calibration_rows_, 0] > 1.0
    np.testing.assert_array_equal(np.isnan(model.calibration_scores_), calibration_lost)
    assert (model.miscoverage_.n_unlabelled, model.miscoverage_.n_calibration) == (
        np.sum(~lost),
        np.sum(~calibration_lost),
    )
    assert f"At {lost.sum()} more rows there is no answer" in model.guarantee_.statement
    picked = model.select(above=0.0, false_discovery=0.3)
    assert len(picked)
    assert not np.isin(picked.rows, np.flatnonzero(unlabelled)[lost]).any()
    assert np.isfinite(model.mean_.to_numpy()).all()
    X, y, _ = classes(n=200, labelled=120, names=("a", "b"))
    for by_class in (False, True):
        sets = quiet(PatchyClassifier(), label_conditional=by_class, confidence=0.8).fit(X, y)
        lost = sets.answer_.status == "unreached"
        assert lost.any()
        assert all(value is None for value in sets.answer_.values[lost])
        assert all(label is None for label in sets.transduction_[sets.answer_.rows[lost]])
        assert sets.answer_.label_sets[lost].all()
        assert not sets.answer_.label_sets.all()
        assert np.isfinite(sets.mean_.to_numpy()).all()
    codes = np.array([-1 if label is None else "ab".index(label) for label in y])
    numbered = quiet(PatchyClassifier(), missing_label=-1).fit(X, codes)
    assert set(numbered.transduction_[numbered.answer_.rows[lost]]) == {-1}
    everywhere = X + 9.0
    with pytest.warns(
        UserWarning,
        match="0 calibration labels at rows with an answer support no level: 90 % takes 9",
    ):
        nowhere = quiet(PatchyClassifier()).fit(everywhere, y)
    assert nowhere.answer_.label_sets.all()
    assert str(nowhere.guarantee_).startswith(
        "none: Nothing is guaranteed at 90 %. The estimator has no answer at any"
    )
    assert len(nowhere.select(correct=True)) == 0


def test_extremes():
    X, y, _truth = numbers()
    big = quiet(Ridge()).fit(X, y * 1e280)
    small = quiet(Ridge()).fit(X, y)
    np.testing.assert_allclose(
        big.answer_.regions.hull() / 1e280, small.answer_.regions.hull(), rtol=1e-9
    )
    flat = quiet(TransductiveGPRegressor(matching=0.0, random_state=0))
    with pytest.warns(UserWarning, match="All labels are equal"):
        flat.fit(X, np.where(np.isnan(y), y, 3.0))
    assert flat.nonconformity_ == "absolute"
    np.testing.assert_allclose(flat.answer_.regions.hull(), 3.0)
    double = np.concatenate([X, X])
    model = quiet(TransductiveRidge()).fit(double, np.concatenate([y, y]))
    assert len(model.answer_) == 80
    one = np.append(1.0, np.full(89, np.nan))
    with pytest.warns(UserWarning, match="1 label is too few"):
        quiet(TransductiveRidge()).fit(X, one)
    with pytest.warns(
        UserWarning, match="1 calibration label supports at most 1/2 = 0.5: 90 % takes 9"
    ):
        quiet(Ridge(), calibration=1).fit(X, np.append([1.0, 2.0], one[2:]))


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": "high"}, "confidence must lie strictly between 0 and 1"),
        ({"calibration": 0}, "calibration must be 'auto'"),
        ({"calibration": "half"}, "calibration must be 'auto'"),
        ({"calibration": True}, "calibration must be 'auto'"),
        ({"calibration": 50}, "holds out 50 of 50 labels: at least one must be held out"),
        ({"calibration": 0.001}, "holds out 0 of 50 labels"),
        ({"calibration": 0.999}, "holds out 50 of 50 labels"),
        ({"nonconformity": "big"}, "nonconformity must be one of 'auto'"),
        ({"nonconformity": "probability"}, "nonconformity='probability' is for classes"),
        ({"nonconformity": "scaled"}, "needs standard errors"),
        ({"ties": "outside"}, "ties must be one of 'inside', 'random'"),
        ({"label_conditional": True}, "label_conditional=True is for classes"),
        ({"label_conditional": 1}, "label_conditional must be True or False"),
        ({"test_exchangeability": None}, "test_exchangeability must be True or False"),
    ],
)
def test_bad_settings_are_refused(setting, words):
    X, y, _ = numbers()
    model = quiet(Ridge(), **setting)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    for use in (model.predict, model.answer_at):
        with pytest.raises(NotFittedError):
            use(X)


def test_a_failed_fit_leaves_nothing_fitted():
    X, y, _ = numbers()
    model = quiet(TransductiveRidge()).fit(X, y)
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN in column 1"):
        model.fit(bad, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.outside_at_most()


class Undecided(BaseEstimator):
    """Takes numbers or classes, as the labels are."""

    def __init__(self, task="auto"):
        self.task = task

    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (TransductiveRidge, r"pass an instance, TransductiveRidge\(\.\.\.\)"),
        ("ridge", "estimator must be a regressor or a classifier"),
        (None, "estimator must be a regressor or a classifier"),
        (StandardScaler(), "StandardScaler is neither a regressor nor a classifier"),
        (Undecided(), "set its task to 'regression' or 'classification'"),
    ],
)
def test_what_is_no_estimator_is_refused(estimator, words):
    X, y, _ = numbers()
    with pytest.raises(TypeError, match=words):
        ConformalTransducer(estimator).fit(X, y)
    assert "ConformalTransducer" in repr(ConformalTransducer(estimator))


class Forgetful(RegressorMixin, BaseEstimator):
    """Leaves one row without an answer."""

    def __init__(self, missing_label=None):
        self.missing_label = missing_label

    def fit(self, X, y):
        rows = np.flatnonzero(np.isnan(y))[1:]
        none = Guarantee("none")
        self.answer_ = Answer(rows, np.zeros(len(rows)), np.full(len(rows), "answered"), none)
        return self


class Silent(RegressorMixin, BaseEstimator):
    """Takes rows without label, but leaves no answer."""

    def __init__(self, missing_label=None):
        self.missing_label = missing_label

    def fit(self, X, y):
        return self


def test_bad_labels_are_refused():
    X, y, _ = numbers()
    model = quiet(Ridge())
    with pytest.raises(ValueError, match="No row has a label"):
        model.fit(X, np.full(90, np.nan))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="X has 90 rows but y has 3 labels"):
        model.fit(X, [1.0, 2.0, None])
    with pytest.raises(ValueError, match="labels that are numbers, but y holds 'a'"):
        model.fit(X, ["a", None] * 45)
    with pytest.raises(ValueError, match="same rows in a different order"):
        model.fit(pd.DataFrame(X), pd.Series(y).iloc[::-1])
    with pytest.raises(ValueError, match="lazy frame"):
        model.fit(pl.DataFrame(X).lazy(), y)
    with pytest.raises(ValueError, match="holds text"):
        quiet(TransductiveRidge()).fit(np.array([["a", "b"]] * 90, dtype=object), y)
    with pytest.raises(ValueError, match="one class only"):
        quiet(GaussianNB()).fit(X, np.where(np.isnan(y), None, "a"))
    rare = np.where(np.isnan(y), None, "a")
    rare[np.flatnonzero(~np.isnan(y))[0]] = "b"
    seed = next(s for s in range(99) if 0 in np.random.RandomState(s).choice(50, 24, replace=False))
    alone = quiet(GaussianNB(), random_state=seed, calibration=24).fit(
        X, rare
    )  # 'a' alone is visible
    assert set(alone.answer_.values) == set(alone.predict(X)) == {"a"}
    assert alone.guarantee_.kind == "exact"
    with pytest.raises(TypeError, match="has no transduction_ after fit: it must answer"):
        quiet(Silent()).fit(X, y)
    with pytest.raises(ValueError, match="Forgetful has not answered at every row without a label"):
        quiet(Forgetful()).fit(X, y)


def test_bad_selections_are_refused():
    X, y, _ = numbers()
    model = quiet(Ridge()).fit(X, y)
    for wanted, words in (
        ({}, "Say what to pick"),
        ({"above": 1.0, "correct": True}, "Say what to pick"),
        ({"label": "a"}, "label and correct are for classes"),
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"tolerance": 1.0, "below": 2.0}, "Say what to pick"),
        ({"above": "high"}, "above must be a number"),
        ({"above": 0.0, "false_discovery": 1.0}, "false_discovery must lie strictly"),
        ({"above": 0.0, "false_discovery": -0.1}, "false_discovery must lie strictly"),
        ({"correct": "yes"}, "correct must be True or False"),
    ):
        with pytest.raises(ValueError, match=words):
            model.select(**wanted)
    X, y, _ = classes()
    sets = quiet(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match="label='maybe' is none of the classes"):
        sets.select(label="maybe")
    with pytest.raises(ValueError, match="above, below and tolerance are for numbers"):
        sets.select(above=1)
    with pytest.raises(ValueError, match="nonconformity='absolute' is for numbers"):
        quiet(GaussianNB(), nonconformity="absolute").fit(X, y)
    with pytest.raises(
        ValueError,
        match="needs probabilities, which the estimator does not have here: use 'margin', 'zero_one'",
    ):
        quiet(RidgeClassifier(), nonconformity="probability").fit(X, y)


def test_classes_that_are_known_besides_those_with_a_label():
    """With one class among the labels it is the answer; the other is in no set, unless every class has its own."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.array(["a"] * 60 + [None] * 60, dtype=object)
    inner = TransductiveRidgeClassifier(ridge=1.0, width=1.0)
    with pytest.raises(ValueError, match="one class only"):
        ConformalTransducer(inner, random_state=0).fit(X, y)
    model = ConformalTransducer(inner, classes=["b", "a"], random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b"]
    assert (model.transduction_ == "a").all()
    assert model.answer_.label_sets.tolist() == [[True, False]] * 60
    by_class = ConformalTransducer(
        inner, classes=["a", "b"], label_conditional=True, random_state=0
    )
    with pytest.warns(TooFewLabelsWarning, match="of class 'b'"):
        by_class.fit(X, y)
    assert by_class.answer_.label_sets.tolist() == [[True, True]] * 60


def test_probabilities_of_new_rows_beside_scores():
    """A transducer whose own rows have scores and no probabilities has them at new rows."""
    X, y, _ = classes()
    model = quiet(SpectralGraphTransducer(random_state=0)).fit(X, y)
    probabilities = model.predict_proba(X[:5])
    expected = model._fit.answering.estimator.predict_proba(X[:5])
    np.testing.assert_allclose(probabilities, expected)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
