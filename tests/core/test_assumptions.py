"""Assumptions, joined in a sentence."""

from __future__ import annotations

import re

from transduce import RidgeConfidenceClassifier
from transduce.core.assumptions import ALIKE, CHANCE, LIMITED, SEEN, SHARES, join_assumptions


def test_one_assumption_stays_as_it_is():
    assert join_assumptions([CHANCE]) == CHANCE
    assert join_assumptions([SEEN]) == SEEN
    assert join_assumptions([]) == ""


def test_several_are_one_list_with_one_and():
    joined = join_assumptions([CHANCE, LIMITED])
    assert joined == f"rows were labelled at random, {ALIKE}, and {LIMITED}"
    assert join_assumptions([SHARES]).count(", and ") == 1


def test_a_guarantee_within_classes_says_if_once():
    rows = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    labels = ["a", "a", None, "b", "b", None]
    machine = RidgeConfidenceClassifier(confidence=0.6, label_conditional=True).fit(rows, labels)
    sentence = re.search(r"It holds[^.]*\.", str(machine.guarantee_))[0]
    assert sentence.count(" if ") == 1
    assert sentence.count(" and ") == 2  # one of them in “with and without”
