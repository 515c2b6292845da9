"""Selection: p-values by definition, the Benjamini-Hochberg rule, and the share of mistakes it guarantees."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from tests import brute
from transduce import ConformalTransducer
from transduce.conformal.selection import pick, selection_p_values

numbers = st.integers(0, 4).map(float)


@given(
    st.lists(numbers, min_size=1, max_size=6),
    st.lists(st.tuples(numbers, st.booleans()), min_size=1, max_size=8),
)
def test_p_values_are_ranks_of_clipped_scores(unlabelled, hidden):
    """V = infinity for a label as wanted, else -look; p = share of scores up to the row's, itself included."""
    looks, good = np.array([row[0] for row in hidden]), np.array([row[1] for row in hidden])
    V = np.where(good, np.inf, -looks)
    expected = [np.mean([*(-look >= V), True]) for look in unlabelled]
    np.testing.assert_allclose(selection_p_values(np.array(unlabelled), looks, good), expected)


@given(st.lists(st.integers(1, 20), max_size=12), st.sampled_from([0.05, 0.1, 0.3, 0.6]))
def test_the_rule_picks_by_definition(ranks, level):
    p = np.array(ranks, dtype=float) / 20
    np.testing.assert_array_equal(pick(p, level), brute.benjamini_hochberg(p, level))


def test_mistakes_are_as_few_as_guaranteed():
    """Poor, good and discrete looks: over many draws the mean share of mistakes is at most the level."""
    rng = np.random.default_rng(0)
    for noise, discrete in ((0.3, False), (1.0, False), (0.3, True)):
        shares, picked = [], []
        for _ in range(800):
            y = rng.normal(size=90)
            look = y + noise * rng.normal(size=90)
            look = np.round(look) if discrete else look
            good = y > 0.3
            chosen = pick(selection_p_values(look[60:], look[:60], good[:60]), 0.2)
            shares.append(np.mean(~good[60:][chosen]) if chosen.any() else 0.0)
            picked.append(chosen.mean())
        spread = np.std(shares) / np.sqrt(len(shares))
        assert np.mean(shares) <= 0.2 + 4 * spread
        assert np.mean(picked) > 0.1


def test_one_judgement_serves_any_amount():
    """What a selection was judged by gives its p-values at every amount, and at shares of the answers by definition."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    truth = X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
    model = ConformalTransducer(Ridge(), random_state=0).fit(
        X, np.where(np.arange(300) < 150, truth, np.nan)
    )
    judged = model.select(tolerance=1.0).judged
    for tolerance in (0.3, 1.0, 2.5):
        np.testing.assert_array_equal(
            judged.p_values(tolerance), model.select(tolerance=tolerance).p_values
        )
    unsure, answers, off = judged.of_known
    bad = off > 0.2 * np.abs(answers)
    looks = [np.abs(one) for one in (judged.answers, answers)]
    expected = [
        (1 + sum(bad & (unsure / looks[1] <= own))) / (1 + len(off))
        for own in judged.unsure / looks[0]
    ]
    np.testing.assert_allclose(judged.p_values(0.2, relative=True), expected)
    classes = np.where(np.arange(300) < 150, np.where(truth > 0, "a", "b"), None)
    picked = (
        ConformalTransducer(LogisticRegression(), random_state=0)
        .fit(X, classes)
        .select(correct=True)
    )
    np.testing.assert_array_equal(picked.judged.p_values(0.5), picked.p_values)
