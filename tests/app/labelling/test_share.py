"""The share of the wanted class while a person labels: valid at every look."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from transduce.app.labelling.certificates import Audit, Draws, certify_share
from transduce.app.labelling.sentences import about_share


def audits_of(hits, n_searched, n_rows):
    """Return audits after the first rows were searched for and the others drawn, one after another."""
    searched, drawn = hits[:n_searched], hits[n_searched:]
    pairs = []
    for outcome in (drawn, [not hit for hit in drawn]):
        known = sum(searched) if outcome is drawn else len(searched) - sum(searched)
        rows = []
        for place, hit in enumerate(outcome):
            left = n_rows - n_searched - place
            rows.append((left, known, hit))
            known += hit
        pairs.append(Audit(Draws.of(rows), known, 0, n_rows - len(hits)))
    return pairs


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "table", [(1, 0, 0, 1, 0, 1, 0), (0,) * 7, (1,) * 7, (1, 1, 1, 1, 1, 1, 0)]
)
@pytest.mark.parametrize("n_searched", [0, 2])
def test_the_true_share_is_never_left_out_too_often_at_any_look(table, n_searched):
    """All orders in which rows can be drawn; the first rows are labelled on purpose."""
    searched, others = table[:n_searched], table[n_searched:]
    held = []
    for order in itertools.permutations(range(len(others)), min(4, len(others))):
        drawn = [bool(others[row]) for row in order]
        always = True
        for look in range(1, len(drawn) + 1):
            seen = [*map(bool, searched), *drawn[:look]]
            share = certify_share(*audits_of(seen, n_searched, len(table)), certainty=0.5)
            always &= share.fewest <= sum(table) <= share.most
        held.append(always)
    assert np.mean(held) >= 0.5


def test_all_rows_drawn_leave_nothing_open():
    hits = [True, False, False, True]
    share = certify_share(*audits_of(hits, 0, 4), certainty=0.95)
    assert share.ends == (0.5, 0.5)


def test_the_sentence_names_class_and_certainty():
    hits = [True] + [False] * 60
    share = certify_share(*audits_of(hits, 0, 1000), certainty=0.95)
    words = about_share(share, "yes")
    assert "Of all 1,000 rows" in words
    assert "“yes”, with 95 % certainty at every look" in words
    assert about_share(None, "yes") == ""
