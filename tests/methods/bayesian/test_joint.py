"""Joint labellings, the Bayes point, and the paper's single ball, against sampling and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests import brute
from transduce import BayesianTransducer
from transduce.device.kernels import Kernel
from transduce.methods.bayesian.balls import Geometry, StraightGame
from transduce.methods.bayesian.classifier import bounces_by_hoeffding

ROWS = np.random.default_rng(1).normal(size=(9, 2))
SIGNS = np.where(ROWS[:5, 0] > 0.0, 1.0, -1.0)


def problem():
    """Five labelled rows and four others of two features, not standardised."""
    y = np.array([*np.where(SIGNS > 0, "yes", "no"), *[None] * 4], dtype=object)
    return ROWS, y


def fit(softness=0.0, **settings):
    X, y = problem()
    common = {"kernel": "rbf", "width": 1.0, "bias": 0.5, "standardize": False}
    common |= {"tolerance": 0.005, "random_state": 0}
    return BayesianTransducer(softness=softness, **common | settings).fit(X, y)


def kernel_matrix():
    X, _ = problem()
    return Kernel("rbf", 1.0).matrix(X, X) + 0.5


# ------------------------------------------------------------------------------------------- exact


def test_joint_labellings_are_cells_of_version_space():
    X, _ = problem()
    model = fit()
    K = kernel_matrix()
    root = np.linalg.cholesky(K[:5, :5])
    rows = np.linalg.solve(root, K[:5, 5:]).T
    normals = SIGNS[:, None] * root
    rng = np.random.default_rng(0)
    shares, mean, count = brute.sampled_cells(normals, rows, 1_000_000, rng)
    assert count > 20_000
    found = model.joint_labellings(X[5:], most=16)
    assert found["probability"].is_monotonic_decreasing
    assert found["probability"].sum() == pytest.approx(1.0)
    for labels, probability, error in found.itertuples(index=False):
        share = shares.get(tuple(int(label == "yes") for label in labels), 0.0)
        spread = np.sqrt(error**2 + share * (1.0 - share) / count)
        assert abs(probability - share) < 5.0 * spread + 1e-3
    # The marginals are the votes, of the same flights.
    for j in range(4):
        positive = found["labels"].map(lambda labels, j=j: labels[j] == "yes")
        vote = model.answer_.probabilities[j, 1]
        assert found.loc[positive, "probability"].sum() == pytest.approx(vote, abs=1e-9)
    best = found.iloc[0]
    again = model.labelling_probability(X[5:], best["labels"])
    assert again == (best["probability"], best["standard_error"])
    # The Bayes point is the mean of all separators.
    weights = np.linalg.solve(root.T, mean)  # on the rows' vectors
    np.testing.assert_allclose(model.bayes_point_, weights, atol=0.05 * np.abs(weights).max())
    scores = model.bayes_point_scores(X)
    np.testing.assert_allclose(scores, K[:, :5] @ model.bayes_point_, atol=1e-12)
    is_right = model.predict_bayes_point(X)[:5] == np.where(SIGNS > 0, "yes", "no")
    assert is_right.all()


def test_joint_labels_that_may_be_wrong():
    X, _ = problem()
    softness = 0.4
    model = fit(softness)
    K = kernel_matrix()
    rng = np.random.default_rng(0)
    parts = (K[:5, :5], K[:5, 5:], K[5:, 5:], SIGNS, softness)
    shares, count = brute.soft_cells(*parts, 500_000, rng)
    found = model.joint_labellings(X[5:], most=16)
    assert len(found) == 16
    assert found["probability"].sum() == pytest.approx(1.0)
    for labels, probability, error in found.itertuples(index=False):
        share = shares[tuple(int(label == "yes") for label in labels)]
        spread = np.sqrt(error**2 + share * (1.0 - share) / count)
        assert abs(probability - share) < 5.0 * spread + 2e-3


def test_several_classes_have_a_bayes_point_each():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.array([*"abcabcabc", None, None, None], dtype=object)
    model = BayesianTransducer(kernel="rbf", tolerance=0.05, random_state=0).fit(X, y)
    assert model.bayes_point_.shape == (3, 9)
    np.testing.assert_array_equal(model.predict_bayes_point(X[:9]), y[:9])
    with pytest.raises(ValueError, match="Joint labellings are there for two classes"):
        model.joint_labellings(X)


def test_the_bayes_point_follows_the_rows():
    X, y = problem()
    order = np.array([3, 8, 1, 0, 7, 4, 2, 6, 5])
    settings = {"width": 1.0, "tolerance": 0.02, "random_state": 0}
    model = BayesianTransducer(**settings).fit(X, y)
    other = BayesianTransducer(**settings).fit(X[order], y[order])
    labelled = [row for row in order if row < 5]
    np.testing.assert_allclose(other.bayes_point_, model.bayes_point_[labelled])
    np.testing.assert_allclose(other.bayes_point_scores(X), model.bayes_point_scores(X))


# ------------------------------------------------------------------------------- the paper's ball


def test_a_single_ball_bounces_exactly_as_often_as_asked():
    """Hoeffding's rule, or the budget where that is less, and the flight of explicit vectors."""
    assert bounces_by_hoeffding(0.048) == 1000
    X, _ = problem()
    model = fit(n_balls=1, tolerance=0.048)
    assert model.n_bounces_ == 1000
    assert sum(len(part.walls) for part in model._fitted.rounds[0][0][0]) == 1000
    np.testing.assert_allclose(model.answer_.standard_errors, 0.5 / np.sqrt(1000))
    with pytest.warns(UserWarning, match="budget of max_bounces=123 ended the vote"):
        short = fit(n_balls=1, max_bounces=123)
    assert short.n_bounces_ == 123
    many = fit(n_balls=1, tolerance=0.01)
    np.testing.assert_allclose(many.answer_.probabilities, fit().answer_.probabilities, atol=0.03)
    error = many.labelling_probability(X[5:], ["no"] * 4).standard_error
    assert error in (0.0, pytest.approx(0.5 / np.sqrt(bounces_by_hoeffding(0.01))))


def test_a_long_flight_is_that_of_explicit_vectors(monkeypatch):
    """Computed anew after every seventh bounce, it goes on as if it were not."""
    monkeypatch.setattr("transduce.methods.bayesian.balls.MOST_AT_ONCE", 7)
    normals = np.random.default_rng(2).normal(size=(5, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    signs = np.where(normals @ np.array([1.0, 2.0, -1.0]) > 0, 1.0, -1.0)
    geometry = Geometry.of(normals @ normals.T, softness=0.0)
    codes = (signs > 0).astype(int)
    (game,) = geometry.games(codes, 2, np.array([[5]]), None)
    assert isinstance(game, StraightGame)
    (flight,) = game.play(40)
    assert [len(segment.walls) for segment in flight] == [7, 7, 7, 7, 7, 5]
    w = flight[0].position @ normals
    v = flight[0].velocity @ normals
    steps = list(brute.plain_billiard(signs[:, None] * normals, w, v, 40))
    walls = np.concatenate([segment.walls for segment in flight])
    np.testing.assert_array_equal(walls, [wall for _, _, _, wall in steps])
    times = np.concatenate([segment.times for segment in flight])
    np.testing.assert_allclose(times, [time for _, _, time, _ in steps], rtol=1e-6)


def test_a_small_budget_of_several_balls_is_kept_about():
    with pytest.warns(UserWarning, match="ended the vote"):
        model = fit(max_bounces=100, tolerance=1e-4)
    assert 50 <= model.n_bounces_ <= 200


# ---------------------------------------------------------------------------------------- refusals


def test_refusals():
    X, y = problem()
    model = fit(tolerance=0.05)
    with pytest.raises(ValueError, match="1 to 62 rows; got 63"):
        model.joint_labellings(np.zeros((63, 2)))
    with pytest.raises(ValueError, match="one label for each of the 4 rows"):
        model.labelling_probability(X[5:], ["yes"])
    with pytest.raises(ValueError, match="'maybe', which is none of the classes 'no', 'yes'"):
        model.labelling_probability(X[5:6], ["maybe"])
    with pytest.raises(ValueError, match="most must be"):
        model.joint_labellings(X[5:], most=0)
    linear = {"kernel": "linear", "bias": 0.0, "standardize": False, "tolerance": 0.1}
    flat = BayesianTransducer(**linear, random_state=0)
    flat.fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], ["yes", "no", None])
    with pytest.raises(ValueError, match="Row 0 is orthogonal to every labelled one"):
        flat.joint_labellings([[0.0, 1.0]])
    K = kernel_matrix()
    soft = BayesianTransducer(kernel="precomputed", softness=0.3, tolerance=0.1, random_state=0)
    with pytest.raises(ValueError, match="kernel values between the rows themselves"):
        soft.fit(K, y).joint_labellings(K)
