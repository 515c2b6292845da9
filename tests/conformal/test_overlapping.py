"""Guarantees within every category of several columns at once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from tests import brute
from transduce import ConformalTransducer
from transduce.conformal import Chance, Drawn, Estimated, Sampled
from transduce.conformal.designs.rows import OverlappingCategories
from transduce.conformal.overlapping import find_thresholds
from transduce.core.ranks import calibration_rank

LETTERS = tuple("abcdef")


def categories(codes, *sizes):
    return OverlappingCategories(np.asarray(codes), tuple(LETTERS[:size] for size in sizes))


def draw(rng, n, *sizes):
    codes = np.column_stack([rng.integers(0, size, n) for size in sizes])
    return categories(codes, *sizes)


# ------------------------------------------------------------------------------------------ exact


@pytest.mark.parametrize("seed", range(6))
def test_inside_as_quantile_regression_on_the_completed_sample_says(seed):
    """Also with ties, with levels at which solutions are many, and beyond the largest score."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3) if seed % 2 else (2, 2, 3)
    confidence = (0.5, 0.75, 0.8)[seed % 3]
    scores = rng.normal(size=int(rng.integers(10, 40)))
    if seed % 3 == 0:
        scores = np.round(scores)
    calibration = draw(rng, len(scores), *sizes)
    unlabelled = draw(rng, 3, *sizes)
    thresholds = find_thresholds(scores, calibration, unlabelled, confidence)
    features = calibration.indicators()
    for row, threshold in zip(unlabelled.indicators(), thresholds, strict=True):
        candidates = np.concatenate([rng.choice(scores, 4), [scores.max() + 9.0]])
        if np.isfinite(threshold):
            candidates = np.append(candidates, [threshold, threshold - 1e-3, threshold + 1e-3])
        for score in candidates:
            inside = brute.is_inside_within_columns(score, scores, features, row, confidence)
            assert inside == (score <= threshold)


@pytest.mark.parametrize("n", [9, 10, 19, 25])
def test_of_one_column_the_usual_threshold_within_each_category(n):
    """Also where (n + 1) confidence is whole, which has many solutions."""
    rng = np.random.default_rng(n)
    codes = np.repeat([0, 1], [n, 30])
    scores = rng.exponential(size=len(codes))
    found = find_thresholds(scores, categories(codes[:, None], 2), categories([[0], [1]], 2), 0.9)
    for code, threshold in enumerate(found):
        within = np.sort(scores[codes == code])
        assert threshold == within[calibration_rank(0.9, len(within)) - 1]


def test_too_few_labels_of_a_category_rule_nothing_out():
    rng = np.random.default_rng(0)
    calibration = categories(np.column_stack([np.arange(40) % 2, np.arange(40) < 8]), 2, 2)
    rows = categories([[0, 0], [1, 1]], 2, 2)
    found = find_thresholds(rng.exponential(size=40), calibration, rows, 0.9)
    assert np.isfinite(found[0])
    assert np.isinf(found[1])


def test_a_row_that_was_drawn_and_has_no_label_counts_as_an_infinite_score():
    rng = np.random.default_rng(1)
    calibration = draw(rng, 60, 2, 3)
    lost = draw(rng, 3, 2, 3)
    scores = rng.exponential(size=60)
    rows = draw(rng, 5, 2, 3)
    codes = np.concatenate([calibration.codes, lost.codes])
    infinite = find_thresholds(
        np.append(scores, np.full(3, np.inf)), categories(codes, 2, 3), rows, 0.8
    )
    found = find_thresholds(scores, calibration, rows, 0.8, never_labelled=lost)
    np.testing.assert_array_equal(found, infinite)
    assert (found >= find_thresholds(scores, calibration, rows, 0.8)).all()


# ------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("seed", range(3))
def test_of_each_category_at_most_the_promised_share_is_outside(seed):
    """Each row in turn is the test row: on this the guarantee rests, and it has no exception."""
    rng = np.random.default_rng(seed)
    rows = draw(rng, 40, 2, 3)
    scores = np.round(rng.normal(size=40), seed)
    outside = np.zeros(40, dtype=bool)
    for row in range(40):
        others = np.arange(40) != row
        threshold = find_thresholds(scores[others], rows[others], rows[[row]], 0.8)
        outside[row] = scores[row] > threshold[0]
    shares = rows.indicators().T @ outside / rows.indicators().sum(axis=0)
    assert outside.any()
    assert (shares <= 0.2 + 1e-12).all()


# ------------------------------------------------------------------------- through the front doors


def table(n=240, n_labels=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)})
    frame["region"] = rng.choice(["east", "north", "west"], n, p=[0.6, 0.36, 0.04])
    noise = np.where(frame["sex"] == "f", 1.0, 0.2) * rng.normal(size=n)
    frame["y"] = np.where(rng.permutation(n) < n_labels, frame["x"] + noise, np.nan)
    return frame


def test_intervals_follow_the_categories_and_small_ones_are_named():
    frame = table()
    within = frame[["sex", "region"]]
    model = ConformalTransducer(Ridge(), labels=Chance(within=within), random_state=0)
    with pytest.warns(UserWarning, match="Too few labels for 90 % in region='west'"):
        model.fit(frame[["x"]], frame["y"])
    guarantee = model.guarantee_
    assert guarantee.headline == "exact if rows were labelled at random"
    assert "within every category of each column" in guarantee.statement
    assert guarantee.short == ("region='west'",)
    assert guarantee.outside is None
    assert guarantee.n_unbounded == 0  # besides those of the category that is named
    asked = frame[frame["y"].isna()]
    widths = pd.Series(model.answer_.regions.measure(), asked.index)
    assert np.isinf(widths[asked["region"] == "west"]).all()
    known = asked["region"] != "west"
    assert widths[known & (asked["sex"] == "f")].min() > widths[known & (asked["sex"] == "m")].max()
    with pytest.raises(ValueError, match="not known within several columns"):
        model.widths_at([1.5])


def test_sets_of_classes():
    frame = table(400, 300).drop(columns="y")
    rng = np.random.default_rng(3)
    y = np.where(frame["x"] + 0.5 * rng.normal(size=400) > 0, "yes", "no")
    labels = Drawn(np.arange(400) < 140, within=frame[["sex", "region"]])
    shown = np.where(np.arange(400) < 300, y, None)
    shown[:5] = None  # of these rows that were drawn nobody knows the label
    with pytest.warns(UserWarning, match="region='west'"):
        model = ConformalTransducer(LogisticRegression(), labels=labels).fit(frame[["x"]], shown)
    sets = model.answer_.label_sets
    assert model.guarantee_.kind == "exact"
    assert model.guarantee_.n_empty == 5
    assert 0.5 < sets.mean() < 0.9
    # P-values are valid at all levels at once, so that sets of one level are no larger.
    assert (sets <= (model.answer_.p_values > 0.1)).mean() > 0.99


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sampled("p", within=["a", "b"]), "labels that weigh the same"),
        (lambda: Estimated(within=["a", "b"]), "use Chance or Drawn"),
        (lambda: Chance(within=["a", "b"], sensitivity=2.0), "leave out sensitivity"),
        (lambda: Chance(within=["a", "b"]).bind(np.zeros(4, dtype=bool)), "there is no table here"),
        (
            lambda: Chance(within=np.ones((3, 2))).bind(np.zeros(4, dtype=bool)),
            "each of the 4 rows",
        ),
        (
            lambda: Chance(within=np.ones((4, 0))).bind(np.zeros(4, dtype=bool)),
            "each of the 4 rows",
        ),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ValueError, match=words):
        make()
