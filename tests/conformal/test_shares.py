"""Shares of classes among unlabelled rows: by maximum likelihood, with intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from transduce.conformal.share_likelihood import fit_shares, mixture, share_intervals
from transduce.conformal.shares import ClassShares, estimate_shares
from transduce.conformal.shares_compared import compare_shares, permutation_test, pool_classes
from transduce.core.scaling import fit_power, to_power


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

    @given(st.integers(0, 10_000), st.integers(2, 5))
    def test_mixtures_are_those_of_a_general_optimiser(self, seed, k):
        rng = np.random.default_rng(seed)
        of_class, q = rng.dirichlet(np.full(k, 2.0), size=k), rng.dirichlet(np.ones(k))
        near = q @ of_class + rng.choice([0.0, 0.3]) * rng.normal(size=k)
        fast, slow = mixture(near, of_class), brute.mixture(near, of_class)
        np.testing.assert_allclose(fast @ of_class, slow @ of_class, atol=1e-3)

    @given(st.integers(0, 10_000))
    def test_the_permutation_test_is_that_of_all_permutations(self, seed):
        rng = np.random.default_rng(seed)
        here, there = rng.dirichlet([1.0, 2.0, 0.5], size=3), rng.dirichlet([2.0, 1.0, 0.5], size=5)
        p_value, differences = permutation_test(here, there, np.random.RandomState(seed))
        exact, apart = brute.permutation_test(here, there)
        np.testing.assert_allclose(differences, apart, atol=1e-9)
        assert abs(p_value - exact) < 5.0 * np.sqrt(exact * (1.0 - exact) / 999) + 2e-3

    @pytest.mark.parametrize(
        ("counts", "groups"),
        [
            ([50, 40, 3], [[0], [1, 2]]),
            ([50, 9, 8, 7], [[0], [1, 2, 3]]),
            ([3, 2, 1], [[0, 1, 2]]),
            ([10, 10], [[0], [1]]),
            ([30, 0], [[0, 1]]),
        ],
    )
    def test_classes_with_few_labels_are_compared_together(self, counts, groups):
        assert pool_classes(np.array(counts)) == groups

    def test_reweighing_is_bayes_rule(self):
        shares = ClassShares(
            np.array(["a", "b"]), np.array([0.5, 0.5]), np.array([0.8, 0.2]), given=True
        )
        np.testing.assert_allclose(
            shares.reweigh(np.array([[0.25, 0.75]])), [[0.2 / 0.35, 0.15 / 0.35]]
        )


class TestLaws:
    def test_shares_and_intervals_where_labels_were_balanced(self):
        truth = np.array([0.9, 0.1])
        inside, off = 0, []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            _, P = bayes_table(rng, truth, 800)
            hidden = bayes_table(rng, np.array([0.5, 0.5]), 200)[::-1]
            off.append(abs(estimate_shares(P, [100, 100], hidden=hidden).shares[0] - 0.9))
            lower, upper = share_intervals(P, hidden, 0.9, seed)
            inside += lower[0] <= 0.9 <= upper[0]
            assert upper[0] - lower[0] < 0.3
        assert np.mean(off) < 0.05
        assert inside >= 7  # 90 % intervals: 6 or fewer of 12 have a probability below 0.001

    @pytest.mark.parametrize(
        ("share", "least", "most"), [(0.5, 0, 1), (0.9, 9, 10)], ids=["chance", "by class"]
    )
    def test_other_shares_than_those_of_the_labels_are_noticed(self, share, least, most):
        found = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            codes, held = bayes_table(rng, np.array([0.5, 0.5]), 80)
            rows = bayes_table(rng, np.array([share, 1.0 - share]), 300)[1]
            compared = compare_shares(held, rows, codes, codes, seed)
            found += compared.p_value <= 0.005
            assert compared.lower <= compared.share <= compared.upper
            assert compared.p_value > 0.005 or compared.apart
        assert least <= found <= most

    def test_the_order_of_classes_does_not_matter(self):
        _, P = bayes_table(np.random.default_rng(0), np.array([0.6, 0.3, 0.1]), 300)
        one = estimate_shares(P, [10, 20, 30]).shares
        other = estimate_shares(P[:, ::-1], [30, 20, 10]).shares
        np.testing.assert_allclose(one, other[::-1], atol=1e-8)

    def test_probabilities_that_were_blurred_are_sharpened(self):
        codes, P = bayes_table(np.random.default_rng(1), np.array([0.5, 0.5]), 2000)
        blurred = to_power(P, 0.5)
        np.testing.assert_allclose(fit_power(blurred, codes), 2.0, rtol=0.1)


class TestLimits:
    def test_nothing_is_compared_where_classes_cannot_be_told_apart(self):
        few = np.full((4, 3), 1.0 / 3.0)
        codes = np.array([0, 1, 2, 0])
        assert compare_shares(few, few, codes, codes) is None
        many = np.zeros(40, dtype=int) + (np.arange(40) < 20)
        same = np.full((40, 2), 0.5)
        assert compare_shares(same, same[:0], many, many) is None
        assert compare_shares(same, same, many, many).p_value == 1.0  # nothing is told of any row

    def test_a_class_without_a_label_has_no_share(self):
        found = estimate_shares(np.array([[0.5, 0.5, 0.0]] * 9), [3, 3, 0])
        assert found.shares[2] == 0.0
        np.testing.assert_allclose(found.reweigh(np.array([[0.2, 0.8, 0.0]])).sum(), 1.0)

    @pytest.mark.parametrize("m", [0, 1])
    def test_few_rows_leave_the_shares_near_those_of_the_labels(self, m):
        found = estimate_shares(np.array([[1.0, 0.0]] * m).reshape(m, 2), [5, 15])
        assert abs(found.shares[1] - 0.75) < 0.3

    def test_a_class_with_one_hidden_label_or_none_may_have_almost_any_share(self):
        rng = np.random.default_rng(0)
        codes, P = bayes_table(rng, np.array([0.9, 0.1]), 60)
        rows = bayes_table(rng, np.array([0.7, 0.3]), 300)[1]
        some = (codes == 0) | (np.arange(60) == np.flatnonzero(codes == 1)[0])
        for kept in (some, codes == 0):
            lower, upper = share_intervals(rows, (P[kept], codes[kept]), 0.9)
            assert upper[1] - lower[1] > 0.5
