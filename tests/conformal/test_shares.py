"""Shares of classes among unlabelled rows: by maximum likelihood, with intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from transduce.conformal.shares import (
    PULL,
    ClassShares,
    calibrated,
    compare_shares,
    estimate_shares,
    fit_power,
    fit_shares,
)


def bayes_table(rng, shares, m, apart=1.5):
    """Rows of normal classes one unit apart: their class, and the probabilities of equal shares."""
    codes = rng.choice(len(shares), size=m, p=shares)
    centres = apart * np.arange(len(shares))
    logs = -0.5 * (centres[codes][:, None] + rng.normal(size=(m, 1)) - centres) ** 2
    return codes, np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)


class TestExact:
    @given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.0, 4.0]))
    def test_em_finds_what_a_general_optimiser_finds(self, seed, k, pull):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(k, 5.0))
        P = rng.dirichlet(p * 3.0 + 0.1, size=40)
        prior = pull * p + 1e-3
        fast, slow = fit_shares(P, p, prior), brute.class_shares(P, p, prior)

        def objective(q):
            return np.sum(np.log(P / p @ q)) + np.sum(prior * np.log(q))

        assert objective(fast) >= objective(slow) - 1e-7
        np.testing.assert_allclose(fast, slow, atol=2e-4)

    def test_labels_of_rows_drawn_at_random_join_with_their_counts(self):
        nothing = np.full((50, 2), 0.5)  # rows that say nothing: the counts alone decide
        found = estimate_shares(nothing, [10, 10], drawn=[6, 2], n_resamples=0)
        # EM leaves the 50 rows where the others are
        np.testing.assert_allclose(found.shares[0], (6 + PULL / 2) / (8 + PULL), atol=1e-6)

    def test_reweighing_is_bayes_rule(self):
        shares = ClassShares(np.array(["a", "b"]), np.array([0.5, 0.5]), np.array([0.8, 0.2]), given=True)
        np.testing.assert_allclose(shares.reweigh(np.array([[0.25, 0.75]])), [[0.2 / 0.35, 0.15 / 0.35]])


class TestLaws:
    def test_shares_and_intervals_where_labels_were_balanced(self):
        truth = np.array([0.9, 0.1])
        inside, off = 0, []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            _, P = bayes_table(rng, truth, 800)
            hidden = bayes_table(rng, np.array([0.5, 0.5]), 200)[::-1]
            found = estimate_shares(P, [100, 100], hidden=hidden, n_resamples=30, random_state=seed)
            off.append(abs(found.shares[0] - 0.9))
            inside += found.lower[0] <= 0.9 <= found.upper[0]
        assert np.mean(off) < 0.05
        assert inside >= 7  # 90 % intervals: 6 or fewer of 12 have a probability below 0.001

    @pytest.mark.parametrize(
        ("share", "least", "most"), [(0.5, 0, 2), (0.9, 9, 10)], ids=["chance", "by class"]
    )
    def test_other_shares_than_those_of_the_labels_are_noticed(self, share, least, most):
        found = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            hidden = bayes_table(rng, np.array([0.5, 0.5]), 80)[::-1]
            rows = bayes_table(rng, np.array([share, 1.0 - share]), 300)[1]
            found += compare_shares(rows, hidden)[1] <= 0.01
        assert least <= found <= most

    def test_the_order_of_classes_does_not_matter(self):
        _, P = bayes_table(np.random.default_rng(0), np.array([0.6, 0.3, 0.1]), 300)
        one = estimate_shares(P, [10, 20, 30], n_resamples=0).shares
        other = estimate_shares(P[:, ::-1], [30, 20, 10], n_resamples=0).shares
        np.testing.assert_allclose(one, other[::-1], atol=1e-8)

    def test_probabilities_that_were_blurred_are_sharpened(self):
        codes, P = bayes_table(np.random.default_rng(1), np.array([0.5, 0.5]), 2000)
        blurred = calibrated(P, 0.5)
        np.testing.assert_allclose(fit_power(blurred, codes), 2.0, rtol=0.1)


class TestLimits:
    def test_a_class_without_a_label_has_no_share(self):
        found = estimate_shares(np.array([[0.5, 0.5, 0.0]] * 9), [3, 3, 0], n_resamples=5)
        assert found.shares[2] == 0.0
        np.testing.assert_allclose(found.reweigh(np.array([[0.2, 0.8, 0.0]])).sum(), 1.0)

    @pytest.mark.parametrize("m", [0, 1])
    def test_few_rows_leave_the_shares_near_those_of_the_labels(self, m):
        found = estimate_shares(np.array([[1.0, 0.0]] * m).reshape(m, 2), [5, 15], n_resamples=5)
        assert abs(found.shares[1] - 0.75) < 0.3
        assert found.lower[1] <= found.shares[1] <= found.upper[1]
