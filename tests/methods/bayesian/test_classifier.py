"""Bayesian transduction: shares of version space, laws, limits, refusals; and rejection."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tests import brute
from tests.libraries import polars as pl
from transduce import BayesianTransducer
from transduce.core.ranks import rank_folds
from transduce.device.kernels import Kernel
from transduce.methods.bayesian.balls import Game, Geometry, count_votes, probabilities
from transduce.methods.bayesian.classifier import (
    CV_BALLS,
    CV_BOUNCES,
    LOO_SOFTNESSES,
    LabelledRows,
    leave_one_out_losses,
)
from transduce.metrics import area_under_rejection_curve, rejection_curve


def classes(n=60, unlabelled=25, names=("no", "yes"), seed=0, gap=1.2):
    """Rows, labels with holes, and the truth."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(names)
    X = rng.normal(size=(n, 3)) + gap * codes[:, None]
    truth = np.array(names, dtype=object)[codes]
    y = truth.copy()
    y[rng.choice(n, unlabelled, replace=False)] = None
    return X, y, truth


# --------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_probabilities_are_shares_of_version_space(kernel):
    """By rejection sampling of separators, from the user's side: scaled features, kernel, bias."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(16, 2))
    y = np.array(["a" if x > 0 else "b" for x in X[:, 0]], dtype=object)
    y[5:] = None
    model = BayesianTransducer(
        kernel=kernel, width=2.0, bias=0.5, tolerance=0.004, random_state=0
    ).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    K = Kernel(kernel, 2.0).matrix(Z, Z) + 0.5
    values, vectors = np.linalg.eigh(K[:5, :5])
    keep = values > 1e-9
    coordinates = vectors[:, keep] * np.sqrt(values[keep])
    unlabelled = K[5:, :5] @ vectors[:, keep] / np.sqrt(values[keep])
    signs = np.where(y[:5] == "b", 1.0, -1.0)
    share, count = brute.sampled_share(signs[:, None] * coordinates, unlabelled, 1_500_000, rng)
    spread = np.sqrt(model.answer_.standard_errors**2 + share * (1 - share) / count)
    assert count > 1000
    np.testing.assert_array_less(
        np.abs(model.answer_.probabilities[:, 1] - share), 5 * spread + 1e-3
    )
    assert model.converged_
    assert model.answer_.standard_errors.max() <= 0.004


@pytest.mark.parametrize("softness", [0.3, pytest.param(2.0, marks=pytest.mark.slow)])
def test_soft_probabilities_are_those_of_labels(softness):
    """By rejection sampling of labels with slack from the joint normal: exact, also with very few rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    signs = np.array([1.0, -1.0, 1.0, 1.0])
    K = Kernel("rbf", 1.5).matrix(X, X) + 1.0
    geometry = Geometry.of(K[:4, :4], softness=softness)
    games = geometry.games(np.array([1, 0, 1, 1]), 2, np.arange(8)[None], None)
    rounds = [[games[0].play(4000)] for _ in range(6)]
    voter = geometry.voter(K[:4, 4:], K.diagonal()[4:])
    found, errors = (
        part[:, 1] for part in probabilities(count_votes(rounds, 4, [(slice(None), voter)], None))
    )
    for j in range(4):
        share, count = brute.soft_label_share(
            K[:4, :4], signs, K[:4, 4 + j], K[4 + j, 4 + j], softness, 100_000, rng
        )
        spread = np.sqrt(errors[j] ** 2 + share * (1 - share) / count)
        assert abs(found[j] - share) < 4.5 * spread + 1e-4


@pytest.mark.parametrize("n_balls", [1, 4])
def test_rows_without_disagreement_are_certain_on_both_sides(n_balls):
    """The paper's threshold of 1 keeps rows of both classes: sums of many flights leave no rounding."""
    rng = np.random.default_rng(n_balls)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no").astype(object)
    model = BayesianTransducer(kernel="linear", bias=0.0, standardize=False, n_balls=n_balls)
    model.fit(np.vstack([X, 5.0 * X]), np.append(y, [None] * 60))
    assert model.n_bounces_ >= 250
    np.testing.assert_array_equal(model.answer_.values, y)
    np.testing.assert_array_equal(model.answer_.confidence, 1.0)
    assert set(model.predict_proba(X).ravel()) == {0.0, 1.0}


def test_several_classes_are_one_against_the_rest():
    """Each class its own game on the same vectors; votes normalised, ball by ball for the standard error."""
    flown = np.ones(
        (2, 3, 2, 1)
    )  # time on the positive side and in all, of three games, two balls, one row
    flown[0, :, :, 0] = [(0.6, 0.8), (0.2, 0.2), (0.0, 0.2)]
    share, error = probabilities(flown)
    np.testing.assert_allclose(share[0], [0.7, 0.2, 0.1])
    by_ball = np.array([[0.75, 0.25, 0.0], [0.8 / 1.2, 0.2 / 1.2, 0.2 / 1.2]])
    np.testing.assert_allclose(error[0], by_ball.std(axis=0, ddof=1) / np.sqrt(2))
    flown[0] = 0.0
    np.testing.assert_allclose(probabilities(flown)[0], 1 / 3)


def test_decisions_follow_the_probabilities():
    X, y, _ = classes(n=40, unlabelled=15)
    model = BayesianTransducer(random_state=0, tolerance=0.05).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), shares[:, 1] - shares[:, 0])
    np.testing.assert_array_equal(model.predict(X), np.where(shares[:, 1] > 0.5, "yes", "no"))


# ----------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ({}, ("no", "yes")),
        ({"softness": 0.5}, ("a", "b", "c")),
        ({"softness": "loo"}, ("a", "b", "c")),
        ({"softness": "cv"}, ("no", "yes")),
        pytest.param({}, ("a", "b", "c"), marks=pytest.mark.slow),
        pytest.param({"softness": 0.5}, ("no", "yes"), marks=pytest.mark.slow),
        pytest.param({"softness": "loo"}, ("no", "yes"), marks=pytest.mark.slow),
        pytest.param({"softness": "cv"}, ("a", "b", "c"), marks=pytest.mark.slow),
    ],
)
def test_same_seed_same_answer_in_any_order(setting, names, monkeypatch):
    monkeypatch.setattr("transduce.methods.bayesian.classifier.SOFTNESSES", (0.1, 1.0))
    X, y, _ = classes(n=36, unlabelled=15, names=names, gap=2.5)
    one, two = (
        BayesianTransducer(random_state=1, tolerance=0.03, **setting).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.answer_.probabilities, two.answer_.probabilities)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = BayesianTransducer(random_state=1, tolerance=0.03, **setting).fit(X[order], y[order])
    back = np.argsort(order[shuffled.answer_.rows])
    np.testing.assert_allclose(
        shuffled.answer_.probabilities[back], one.answer_.probabilities, atol=1e-9
    )
    np.testing.assert_allclose(one.answer_.probabilities.sum(axis=1), 1.0)


def test_renamed_classes():
    """Other names in another order: other signs and starts, the same answers within their standard errors."""
    X, y, _ = classes()
    names = {"no": 7, "yes": 3, None: None}
    one = BayesianTransducer(random_state=0).fit(X, y).answer_
    other = BayesianTransducer(random_state=0).fit(X, [names[label] for label in y]).answer_
    spread = np.sqrt(one.standard_errors**2 + other.standard_errors**2)
    np.testing.assert_array_less(
        np.abs(other.probabilities[:, 1] - one.probabilities[:, 0]), 5 * spread + 1e-3
    )


@pytest.mark.parametrize("setting", [{}, pytest.param({"softness": 0.5}, marks=pytest.mark.slow)])
def test_chunks_and_threads_change_nothing(setting):
    X, y, _ = classes(names=("a", "b", "c"), gap=2.5)
    one, chunked, parallel = (
        BayesianTransducer(random_state=1, tolerance=0.03, **setting, **more).fit(X, y)
        for more in ({}, {"max_memory_mb": 0.002}, {"n_jobs": 2})
    )
    np.testing.assert_allclose(chunked.answer_.probabilities, one.answer_.probabilities, atol=1e-12)
    np.testing.assert_allclose(
        parallel.answer_.probabilities, one.answer_.probabilities, atol=1e-12
    )
    for model in (one, chunked):
        unlabelled = model.predict_proba(X)[model.answer_.rows]
        np.testing.assert_allclose(unlabelled, one.answer_.probabilities, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X)[model.answer_.rows], one.answer_.values)


@pytest.mark.parametrize("softness", [0.0, 0.5])
def test_a_precomputed_kernel_is_the_same(softness):
    """To the last digit, if the labelled rows come in the order that they are brought into otherwise."""
    X, y, _ = classes(n=30, unlabelled=10)
    order = np.lexsort(X.T[::-1])
    X, y = X[order], y[order]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    K = Kernel("poly", degree=2).matrix(Z, Z)
    settings_ = {"softness": softness, "tolerance": 0.02, "random_state": 0}
    model = BayesianTransducer(kernel="precomputed", **settings_).fit(K, y)
    by_name = BayesianTransducer(kernel=lambda u, v: float((u @ v + 1) ** 2), **settings_).fit(X, y)
    np.testing.assert_allclose(
        model.answer_.probabilities, by_name.answer_.probabilities, atol=1e-6
    )
    own = np.column_stack([K, K.diagonal()])
    np.testing.assert_allclose(
        model.predict_proba(own)[model.answer_.rows], model.answer_.probabilities, atol=1e-9
    )
    if softness:
        with pytest.raises(ValueError, match="with itself"):
            model.predict_proba(K)
    else:
        np.testing.assert_allclose(model.predict_proba(K), model.predict_proba(own))
    with pytest.raises(ValueError, match="got 29 columns"):
        model.predict_proba(K[:, :29])
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    level = BayesianTransducer(
        kernel="precomputed", softness=0.5, tolerance=0.05, random_state=0
    ).fit(unit @ unit.T, y)
    assert level.predict_proba(unit @ unit.T).shape == (30, 2)  # the diagonal is 1, up to rounding


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_frames_out(frame):
    X, y, _ = classes(n=30, unlabelled=8)
    table = frame(
        X, **({"columns": list("abc")} if frame is pd.DataFrame else {"schema": list("abc")})
    )
    model = BayesianTransducer(tolerance=0.05, random_state=0).fit(table, y)
    assert list(model.feature_names_in_) == list("abc")
    series = pd.Series(y, index=[f"r{i}" for i in range(30)], name="answer")
    answered = BayesianTransducer(tolerance=0.05, random_state=0).fit(
        pd.DataFrame(X, index=series.index), series
    )
    assert answered.transduction_.index.equals(series.index)
    frame_ = answered.answer_.to_frame()
    assert list(frame_.columns) == ["value", "confidence", "standard_error", "status"]
    assert frame_.index[0].startswith("r")


def test_cross_validation_chooses_the_least_log_loss():
    """Noisy labels want softness; the table says what was tried."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    truth = np.where(X[:, 0] + 0.8 * rng.normal(size=120) > 0, 1, 0).astype(float)
    y = np.where(np.arange(120) < 70, truth, np.nan)
    model = BayesianTransducer(softness="cv", width="cv", random_state=0, tolerance=0.05).fit(X, y)
    best = model.cv_path_.loc[model.cv_path_["log_loss"].idxmin()]
    assert (model.width_, model.softness_) == (best["width"], best["softness"])
    assert len(model.cv_path_) == 30
    with pytest.warns(ConvergenceWarning):  # a version space thin as paper
        hard = BayesianTransducer(random_state=0, tolerance=0.05, max_bounces=10_000).fit(X, y)

    def loss(fitted):
        right = fitted.answer_.probabilities[np.arange(50), truth[70:].astype(int)]
        return -np.mean(np.log(np.clip(right, 1e-3, 1)))

    assert loss(model) < loss(hard)
    width = BayesianTransducer(width="cv", random_state=0, tolerance=0.5).fit(X, y)
    assert width.softness_ == 0.0
    assert len(width.cv_path_) == 5


def test_the_loss_is_that_of_hidden_labels():
    """By hand, fold by fold, for one pair of settings; infinite where no separator exists."""
    X, y, _ = classes(n=24, unlabelled=0)
    codes = (y == "yes").astype(int)
    shown_rows = LabelledRows(Kernel("rbf"), X, codes, 1.0, np.arange(24))
    found = shown_rows.compare([(1.0, 0.5)], 3, None)[2]["log_loss"][0]
    K, total = Kernel("rbf", 1.0).matrix(X, X) + 1.0, 0.0
    fold = rank_folds(codes.astype(float), X, 5)
    for k in range(5):
        shown, hidden = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        geometry = Geometry.of(K[np.ix_(shown, shown)], softness=0.5)
        seeds_ = np.random.RandomState(3).randint(2**31 - 1, size=(1, CV_BALLS))
        game = geometry.games(codes[shown], 2, seeds_, None, refresh=10 * len(X))[0]
        records = game.play(CV_BOUNCES)
        voter = geometry.voter(K[np.ix_(shown, hidden)], np.full(len(hidden), 2.0))
        positive, lengths = zip(*map(voter.times, records), strict=True)
        share = sum(positive) / sum(lengths)
        total -= np.log(np.where(codes[hidden] == 1, share, 1 - share)).sum()
    assert found == pytest.approx(total / 24)
    linear = LabelledRows(Kernel("linear"), X[:, :1], codes, 0.0, np.arange(24))
    assert linear.compare([(1.0, 0.0)], 0, None)[2]["log_loss"][0] == np.inf


@given(
    seed=st.integers(0, 2**31 - 1),
    n=st.integers(6, 25),
    n_classes=st.integers(2, 4),
    softness=st.floats(1e-3, 10.0),
    bias=st.floats(0.0, 2.0),
)
def test_leave_one_out_is_a_refit_without_the_row(seed, n, n_classes, softness, bias):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % n_classes)
    K = Kernel("rbf", 1.0).matrix(X, X) + bias
    found = leave_one_out_losses(K, codes, [softness, 2.0 * softness])
    true = [brute.refit_softness_loss(K, codes, value) for value in (softness, 2.0 * softness)]
    np.testing.assert_allclose(found, true, rtol=1e-7)


def test_leave_one_out_chooses_the_least_log_loss():
    """Noisy labels want more softness than clean ones; with a width by "cv" each width has its own softness."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    chosen = []
    for noise in (0.0, 1.5):
        y = np.where(X[:, 0] + noise * rng.normal(size=120) > 0, 1.0, 0.0)
        y[70:] = np.nan
        model = BayesianTransducer(softness="loo", random_state=0, tolerance=0.05).fit(X, y)
        best = model.cv_path_.loc[model.cv_path_["log_loss"].idxmin()]
        assert (model.width_, model.softness_) == (best["width"], best["softness"])
        assert len(model.cv_path_) == len(LOO_SOFTNESSES)
        chosen.append(model.softness_)
    assert chosen[0] < 0.1 < chosen[1]
    both = BayesianTransducer(softness="loo", width="cv", random_state=0, tolerance=0.05).fit(X, y)
    assert len(both.cv_path_) == 5
    for _, line in both.cv_path_.iterrows():
        alone = BayesianTransducer(
            softness="loo", width=line["width"], tolerance=0.5, random_state=0
        ).fit(X, y)
        assert line["softness"] == alone.softness_


def test_rows_that_no_separator_can_tell_are_tied():
    """Orthogonal to every labelled row: half of the separators on either side, and nothing is claimed."""
    far = BayesianTransducer(bias=0, standardize=False, width=1.0, random_state=0).fit(
        [[0.0], [1.0], [100.0]], ["a", "b", None]
    )
    np.testing.assert_allclose(far.answer_.probabilities, [[0.5, 0.5]])
    assert far.answer_.status.tolist() == ["tied"]
    zero = BayesianTransducer(kernel="linear", bias=0, standardize=False, random_state=0).fit(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, 1.0]], [1, 0, None, None]
    )
    assert zero.answer_.confidence.tolist() == [0.0, 1.0]


def test_settings_changed_after_fit_do_not_leak():
    X, y, _ = classes()
    model = BayesianTransducer(random_state=0, tolerance=0.05).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(bias=50.0, n_balls=16, kernel="precomputed")
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_memory_does_not_grow_with_positions_times_rows(monkeypatch):
    """Soft votes at many rows, many positions: the arrays in hand stay below a fixed size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2510, 2))
    y = np.full(2510, np.nan)
    y[:10] = X[:10, 0] > 0
    settings_ = {"softness": 0.3, "width": 1.0, "n_balls": 2, "tolerance": 1e-9, "random_state": 0}
    BayesianTransducer(max_bounces=10, **settings_).fit(
        X, y
    )  # what is compiled at first use does not count
    monkeypatch.setattr("transduce.methods.bayesian.balls.MOST_NUMBERS", 20_000)
    tracemalloc.start()
    BayesianTransducer(max_bounces=6000, **settings_).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6  # positions times rows of the last round would take 10 MB


@pytest.mark.parametrize(
    ("load", "n_labelled", "least"),
    [(load_iris, 40, 0.9), pytest.param(load_breast_cancer, 100, 0.93, marks=pytest.mark.slow)],
)
def test_accuracy_on_real_data(load, n_labelled, least):
    X, truth = load(return_X_y=True)
    shown = np.random.default_rng(0).permutation(len(X))[:n_labelled]
    y = np.full(len(X), np.nan)
    y[shown] = truth[shown]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianTransducer(softness="cv", random_state=0).fit(X, y)
    assert np.mean(model.transduction_.astype(int) == truth) > least


# --------------------------------------------------------------------------------------------------- limits


def test_no_asked_row():
    X, _, truth = classes(n=30, unlabelled=0)
    model = BayesianTransducer(random_state=0).fit(X, truth)
    assert (len(model.answer_), model.converged_) == (0, True)
    assert np.mean(model.predict(X) == truth) == 1.0
    assert model.predict_proba(X[:2]).shape == (2, 2)


def test_two_rows_and_one_feature():
    model = BayesianTransducer(kernel="linear", bias=0.0, standardize=False, random_state=0).fit(
        [[1.0], [-2.0], [0.5]], [1, 0, None]
    )
    assert model.transduction_[2] == 1  # a single direction: the version space is a point
    assert model.answer_.confidence[0] == 1.0
    middle = BayesianTransducer(
        kernel="linear", standardize=False, random_state=0, tolerance=0.005
    ).fit([[1.0], [-1.0], [0.0]], [1, 0, None])
    assert middle.answer_.probabilities[0, 1] == pytest.approx(0.5, abs=0.03)


def test_many_rows_of_few_dimensions():
    """More labelled rows than dimensions, separable: the span is small and a start is found by linear programming."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X @ [1.0, -0.7] > 0.2, "x", "y").astype(object)
    y[60:] = None
    model = BayesianTransducer(kernel="linear", random_state=0, tolerance=0.03).fit(X, y)
    assert model._fitted.geometry.space.rank == 3
    assert np.mean(model.answer_.values == np.where(X[60:] @ [1.0, -0.7] > 0.2, "x", "y")) > 0.9


def test_a_small_budget_may_be_enough():
    X, y, _ = classes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianTransducer(max_bounces=1000, tolerance=0.5, random_state=0).fit(X, y)
    assert model.converged_
    assert "largest Monte Carlo standard error" in str(model.answer_.guarantee)


def test_the_budget_is_reported():
    X, y, _ = classes(gap=0.3)
    with pytest.warns(ConvergenceWarning, match="max_bounces=10 ended the vote"):
        model = BayesianTransducer(max_bounces=10, tolerance=1e-6, random_state=0).fit(X, y)
    assert not model.converged_
    assert "budget of bounces ended the vote" in str(model.answer_.guarantee)
    assert [len(flight) for flight in model._fitted.rounds[0][0]] == [
        1
    ] * 8  # one segment, whatever the budget


@pytest.mark.parametrize("softness", ["loo", "cv"])
def test_one_label_of_a_class_is_too_few_to_choose_by(softness):
    X, y, _ = classes(n=20, unlabelled=0)
    y[2:] = None
    with pytest.warns(UserWarning, match="too few to choose width or softness by"):
        model = BayesianTransducer(softness=softness, random_state=0, tolerance=0.05).fit(X, y)
    assert model.softness_ > 0


def test_rejection_marks_the_least_sure():
    X, y, _ = classes(gap=0.8)
    plain = BayesianTransducer(random_state=0, tolerance=0.03).fit(X, y).answer_
    half = BayesianTransducer(random_state=0, tolerance=0.03, reject_share=0.5).fit(X, y).answer_
    rejected = half.status == "rejected"
    assert rejected.sum() <= 12
    assert half.confidence[rejected].max(initial=0) <= half.confidence[~rejected].min()
    np.testing.assert_array_equal(half.values, plain.values)
    below = BayesianTransducer(random_state=0, tolerance=0.03, reject_below=0.7).fit(X, y).answer_
    np.testing.assert_array_equal(below.status == "rejected", plain.confidence < 0.7)
    assert (plain.reject(share=1.0).status == "rejected").all()
    assert (plain.reject(share=0.0).status != "rejected").all()
    assert (half.reject(share=0.0).status == "rejected").sum() == rejected.sum()
    with pytest.raises(ValueError, match="either below or share"):
        plain.reject()
    for bad in ({"share": 2.0}, {"share": -0.5}, {"share": "half"}, {"below": np.nan}):
        with pytest.raises(ValueError, match="must lie between 0 and 1"):
            plain.reject(**bad)


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"kernel": "rfb"}, "Unknown kernel 'rfb'"),
        ({"width": -1.0}, "width .* must be a positive number"),
        ({"softness": -1.0}, "softness must be 'loo', 'cv' or a number from 0"),
        ({"softness": "auto"}, "softness .* must be a number"),
        ({"bias": -0.5}, "bias must be a number from 0"),
        ({"n_balls": 0}, "n_balls must be a whole number from 1"),
        ({"tolerance": 0}, "tolerance must be a positive number"),
        ({"max_bounces": 0}, "max_bounces must be a whole number from 1"),
        ({"max_memory_mb": 0}, "max_memory_mb must be a positive number"),
        ({"reject_below": 2.0}, "reject_below must lie between 0 and 1"),
        ({"reject_share": "half"}, "reject_share must be a number"),
        ({"reject_share": 0.1, "reject_below": 0.1}, "either reject_below or reject_share"),
        ({"standardize": "no"}, "standardize must be True or False"),
        ({"n_jobs": 1.5}, "n_jobs must be None"),
    ],
)
def test_bad_settings_are_refused(setting, words):
    X, y, _ = classes(n=20, unlabelled=5)
    model = BayesianTransducer(**setting)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    for use in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(NotFittedError):
            use(X)


def test_contradictions_are_named():
    X, y, _ = classes(n=20, unlabelled=5)
    y[0], y[7] = "no", "yes"
    X[7] = X[0]
    with pytest.raises(ValueError, match="Rows 0 and 7 are equal but labelled differently"):
        BayesianTransducer().fit(X, y)
    named = pd.DataFrame(X, index=[f"r{i}" for i in range(20)])
    with pytest.raises(ValueError, match="Rows r0 and r7 are equal"):
        BayesianTransducer().fit(named, pd.Series(y, index=named.index))
    soft = BayesianTransducer(softness=0.5, random_state=0, tolerance=0.05).fit(X, y)
    assert len(soft.answer_) == np.sum([label is None for label in y])
    with pytest.raises(ValueError, match="cannot be told apart by this kernel in double precision"):
        BayesianTransducer(width=1e9).fit(*classes(n=20, unlabelled=5)[:2])
    K = np.eye(20)
    K[0, 7] = K[7, 0] = 1.0
    with pytest.raises(ValueError, match="Rows 0 and 7"):
        BayesianTransducer(kernel="precomputed").fit(K, y)


def test_what_cannot_be_separated_is_refused():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    with pytest.raises(ValueError, match="No separator in this kernel's feature space"):
        BayesianTransducer(kernel="linear").fit(X, [0, 1, 0, None])
    with pytest.raises(ValueError, match="give a softness larger than 1e-13"):
        BayesianTransducer(kernel="linear", softness=1e-13).fit(X[[0, 1, 1, 2]], [0, 1, 0, None])
    with pytest.raises(ValueError, match="length 0 in feature space"):
        BayesianTransducer(kernel="linear", bias=0.0, standardize=False).fit(X, [0, 1, 1, None])
    with pytest.raises(ValueError, match="one class only"):
        BayesianTransducer().fit(X, [0, 0, 0, None])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        BayesianTransducer(kernel="precomputed").fit(
            np.array(
                [
                    [1.0, 0.9, -0.9, 0.0],
                    [0.9, 1.0, 0.9, 0.0],
                    [-0.9, 0.9, 1.0, 0.0],
                    [0.0, 0.0, 0.0, 1.0],
                ]
            ),
            [0, 1, 0, None],
        )
    with pytest.raises(ValueError, match="not positive semidefinite"):
        BayesianTransducer(kernel="sigmoid").fit(*classes(n=40, unlabelled=5)[:2])
    with pytest.raises(ValueError, match="not symmetric"):
        BayesianTransducer(kernel=lambda u, v: float(u[0] - v[0])).fit(X, [0, 1, 1, None])


# ---------------------------------------------------------------------------------------------- rejection


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=6))
def test_the_area_is_the_mean_over_all_orders(rows):
    """Ties in every order: the definition, by going through all permutations."""
    wrong, sureness = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    areas = []
    for order in itertools.permutations(range(len(rows))):
        if all(sureness[a] >= sureness[b] for a, b in itertools.pairwise(order)):  # surest first
            kept = np.cumsum(wrong[list(order)]) / np.arange(1, len(rows) + 1)
            areas.append(kept.mean())
    zeros = np.zeros(len(rows))
    assert area_under_rejection_curve(zeros, wrong, sureness) == pytest.approx(np.mean(areas))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=20))
def test_the_curve_is_the_error_among_those_kept(rows):
    wrong, sureness = (
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows], dtype=float),
    )
    errors, rejected = rejection_curve(np.zeros(len(rows)), wrong, sureness)
    assert rejected[0] == 0.0
    for error, share, level in zip(errors, rejected, np.unique(sureness), strict=True):
        kept = sureness >= level
        assert error == pytest.approx(wrong[kept].mean())
        assert share == pytest.approx(1 - kept.mean())


def test_rejection_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="at least one row"):
        rejection_curve([], [], [])
    with pytest.raises(ValueError, match="confidence holds NaN"):
        area_under_rejection_curve([0], [1], [np.nan])
    with pytest.raises(ValueError, match="inconsistent"):
        rejection_curve([0, 1], [0], [0.5])
    with pytest.raises(ValueError, match="y_true is missing"):
        rejection_curve([0.0, np.nan], [0.0, 1.0], [0.5, 0.6])
    with pytest.raises(ValueError, match="different kinds"):
        rejection_curve(["1", "0"], [1, 0], [0.5, 0.6])
    with pytest.raises(ValueError, match="confidence must be numbers"):
        rejection_curve([1, 0], [1, 0], ["a", "b"])
    text = rejection_curve(["ja", "nein"], ["ja", "ja"], [0.9, 0.1])[0]
    np.testing.assert_allclose(text, [0.5, 0.0])


def test_a_game_counts_its_bounces():
    game = Game(Geometry.of(np.eye(3), softness=0.0).space, [0, 1], soft=False)
    walls = [len(segment.walls) for flight in game.play(1) for segment in flight]
    assert game.pace == 20
    assert game.n_bounces == round(np.mean(walls))
