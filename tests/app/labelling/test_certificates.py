"""The martingale of an audit: exact against fractions, and wrong stops against every order a person could choose."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import brute
from transduce.app.labelling.certificates import (
    Audit,
    Draws,
    bound_curve,
    certify_answers,
    certify_recall,
    draws_needed,
    first_rejection,
    first_total_below,
    log_martingale,
    share_of_level,
    total_at_most,
)
from transduce.population.betting import BETS, WEIGHTS


@st.composite
def histories(draw, most=60):
    """A table with some hits, labelled in any order, with draws in between: (draws, total, found, unlabelled)."""
    n = draw(st.integers(1, most))
    total = draw(st.integers(0, n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = (rng.permutation(n) < total).tolist()
    draws, found = [], 0
    for _ in range(draw(st.integers(0, n))):
        drawn = bool(rng.random() < 0.7)
        row = rows.pop(int(rng.integers(len(rows))))
        if drawn:
            draws.append((len(rows) + 1, found, row))
        found += row
    return draws, total, found, len(rows)


# ------------------------------------------------------------------------------------------------- exact


@given(histories(), st.integers(0, 10))
def test_martingale_is_the_product_of_fractions(history, more):
    draws, total, _, _ = history
    candidate = total + more
    found = log_martingale(Draws.of(draws), candidate)
    for s in range(len(draws)):
        expected = brute.audit_martingale(draws[: s + 1], candidate)
        if expected is None:
            assert found[s] == np.inf
        else:
            assert found[s] == pytest.approx(float(np.log(float(expected))), abs=1e-9)


@given(histories())
def test_it_is_a_martingale_for_the_true_total(history):
    """Given everything before a draw, its mean after the draw is what it was before."""
    draws, total, found, unlabelled = history
    if unlabelled == 0:
        return
    before = brute.audit_martingale(draws, total)
    chance = Fraction(total - found, unlabelled)
    after = Fraction(0)
    for hit, probability in ((True, chance), (False, 1 - chance)):
        if probability:
            after += probability * brute.audit_martingale([*draws, (unlabelled, found, hit)], total)
    if chance < 1:
        assert after == before
    else:  # nothing is left to bet on
        assert after < before


def test_weights_sum_to_one():
    assert WEIGHTS.sum() == pytest.approx(1.0, abs=1e-15)
    assert len(BETS) == len(WEIGHTS)
    assert sum(share_of_level(k) for k in range(1, 200_000)) == pytest.approx(1.0, abs=1e-9)


@given(histories(), st.sampled_from([0.05, 0.2, 0.5]))
def test_bound_is_the_largest_total_no_prefix_rejects(history, level):
    draws, _, found, unlabelled = history

    def rejected(total):
        values = [brute.audit_martingale(draws[:s], total) for s in range(1, len(draws) + 1)]
        return any(value is None or float(value) >= 1.0 / level for value in values)

    expected = max([found, *(r for r in range(found, found + unlabelled + 1) if not rejected(r))])
    assert total_at_most(Audit(Draws.of(draws), found, 0, unlabelled), level) == expected


@given(histories(most=40), st.integers(1, 12), st.sampled_from([0.05, 0.3]))
def test_forecast_is_what_misses_would_take(history, more, level):
    draws, _, found, unlabelled = history
    total = found + more
    audit = Audit(Draws.of(draws), found, 0, unlabelled)
    forecast = draws_needed(audit, total, level)
    if total > audit.most or first_rejection(audit.draws, total, level) is not None:
        assert forecast == 0
        return
    for count in range(1, unlabelled + 1):
        ahead = [*draws, *((unlabelled - s, found, False) for s in range(count))]
        if first_rejection(Draws.of(ahead), total, level) is not None:
            break
    assert forecast == count


@pytest.mark.parametrize("may_search", [True, False])
@pytest.mark.parametrize(
    ("n", "total", "level"), [(6, 1, 0.4), (6, 2, 0.5), (7, 3, 0.3), (6, 4, 0.2)]
)
def test_no_order_of_labelling_stops_wrongly_too_often(n, total, level, may_search):
    """Every strategy on a small table, by enumeration: with searching and without."""

    @cache
    def stops(draws, found, unlabelled):
        audit = Audit(Draws.of(list(draws)), found, 0, unlabelled)
        return total_at_most(audit, level) < first_total_below(found, 0.9)

    worst = brute.worst_wrong_stop(n, total, 0.9, stops, may_search)
    assert 0 < worst <= Fraction(level)


def test_a_test_for_one_look_fails_when_looked_at_after_every_draw():
    """Which is why there is a martingale: the usual test at 5 % is wrong clearly more often than that."""
    assert brute.repeated_hypergeometric(300, 95, 128, 0.8, 0.05) > 0.07


# ------------------------------------------------------------------------------------------------- laws


@given(histories(), st.integers(0, 20))
def test_it_rises_with_the_total(history, more):
    draws, total, _, _ = history
    low, high = (log_martingale(Draws.of(draws), r) for r in (total, total + more))
    assert np.all(high >= low - 1e-12)


@given(histories(), st.data())
def test_a_draw_in_doubt_never_certifies_more(history, data):
    """Counting what nobody has judged as hits, in the draw and in all later counts, only lowers the martingale."""
    draws, total, found, unlabelled = history
    doubt = data.draw(st.sets(st.integers(0, len(draws) - 1))) if draws else set()
    careful, extra = [], 0
    for s, (u, known, hit) in enumerate(draws):
        careful.append((u, known + extra, hit or s in doubt))
        extra += s in doubt and not hit
    for r in range(total, total + 5):
        exact = log_martingale(Draws.of(draws), r)
        assert np.all(log_martingale(Draws.of(careful), r) <= exact + 1e-12)
    level = 0.2
    n_hits = sum(draws[s][2] for s in doubt)
    kept = Audit(Draws.of(careful), found - n_hits, len(doubt), unlabelled)
    judged = Audit(Draws.of(draws), found, 0, unlabelled)
    assert total_at_most(kept, level) >= min(total_at_most(judged, level), kept.most)


@given(histories(), st.sampled_from([0.05, 0.3]))
def test_the_bound_never_rises_from_draw_to_draw(history, level):
    draws, _, found, unlabelled = history
    number, totals = zip(
        *bound_curve(Audit(Draws.of(draws), found, 0, unlabelled), level), strict=True
    )
    assert number[0] == 0
    assert number[-1] == len(draws)
    assert np.all(np.diff(totals) <= 0)
    assert totals[-1] == total_at_most(Audit(Draws.of(draws), found, 0, unlabelled), level)


@given(st.integers(0, 500), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 1.0]))
def test_first_total_below(found, recall):
    total = first_total_below(found, recall)
    share = Fraction(repr(recall))
    assert found < share * total
    assert found >= share * (total - 1)


# ------------------------------------------------------------------------------------------------- limits


def test_before_any_draw_nothing_is_certain():
    certificate = certify_recall(Audit(Draws.of([]), 5, 0, 95), recall=0.95, certainty=0.95)
    assert (certificate.total_at_most, certificate.missed_at_most, certificate.reached) == (
        100,
        95,
        False,
    )
    assert certificate.recall_at_least == 0.05


def test_a_table_labelled_to_the_end_is_certain():
    certificate = certify_recall(Audit(Draws.of([]), 5, 0, 0), recall=0.95, certainty=0.95)
    assert certificate.reached
    assert certificate.draws_needed == 0
    assert (
        certify_recall(Audit(Draws.of([]), 0, 0, 0), recall=0.95, certainty=0.95).recall_at_least
        == 1.0
    )


def test_rows_in_doubt_can_make_a_certificate_impossible():
    """One wanted row may be missed, and one skipped row could be it: no number of draws settles that."""
    audit = Audit(Draws.of([(50, 10, True)]), found=10, doubtful=1, pool=49)
    assert certify_recall(audit, recall=0.95, certainty=0.95).draws_needed is None


def test_wrong_answers_that_were_found_do_not_count_as_remaining():
    draws = Draws.of([(200 - s, int(s > 10), s == 10) for s in range(150)])
    certificate = certify_answers(Audit(draws, 1, 0, 50), share=0.1, certainty=0.95)
    assert certificate.found == 1
    assert certificate.wrong_at_most <= 5
    assert certificate.reached
    assert certificate.draws_needed == 0


def test_large_tables_are_quick_and_finite():
    draws = Draws.of([(1_000_000 - s, 5000, s % 100 == 7) for s in range(3000)])
    audit = Audit(draws, 5030, 0, 997_000)
    bound = total_at_most(audit, 0.05)
    assert 5030 < bound < 1_005_000
    assert draws_needed(audit, first_total_below(5030, 0.95), 0.05) > 0


def test_forecast_of_the_paper_page():
    """Without a hit about U (1 - (level / 2)^(1/K)) draws; the other bets only help."""
    for pool, found in itertools.product((500, 5000), (50, 200)):
        total = first_total_below(found, 0.95)
        rule = pool * (1 - 0.025 ** (1 / (total - found)))
        forecast = draws_needed(Audit(Draws.of([]), found, 0, pool), total, 0.05)
        assert 0.8 * rule < forecast <= rule + 1
