"""Certificates of the labelling room under people who do their worst: thousands of runs, exact binomial bounds.

A wrong stop means that the true total was rejected at some look. Each strategy knows every row's truth and everything
drawn so far; only the draws to come are hidden from it. A bound is crossed with probability one in a million if the
certificate is right.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from transduce.app.labelling.certificates import (
    Audit,
    Draws,
    certify_recall,
    first_rejection,
    share_of_level,
)
from transduce.app.labelling.journal import Event, Header, pack
from transduce.app.labelling.state import State

RUNS = 4000
LEVEL = 0.05


def only_draws(run):
    return "draw"


def hits_first(run):
    """Search until the recall is nearly reached, then draw: the moment at which a wrong stop is easiest."""
    return "hit" if run.found < 0.94 * run.total and run.hits_left else "draw"


def others_away(run):
    """Label misses on purpose, so that few rows are left to draw from."""
    return "other" if run.others_left > 3 * run.total and len(run.draws) % 2 else "draw"


def after_luck(run):
    """After two misses in a row keep drawing; after a hit search a hit, to make the total look complete."""
    if run.draws and run.draws[-1][2] and run.hits_left:
        return "hit"
    return "draw"


def against_the_martingale(run):
    """Go on drawing while the true total is close to being rejected, else stir the counts."""
    if len(run.draws) < 10 or run.near_rejection():
        return "draw"
    return ("hit", "other", "draw")[len(run.draws) % 3]


STRATEGIES = [only_draws, hits_first, others_away, after_luck, against_the_martingale]


class Run:
    """One table, labelled to the end by a strategy."""

    def __init__(self, n, total, seed):
        self.rng = np.random.default_rng(seed)
        self.total, self.hits_left, self.others_left = total, total, n - total
        self.draws = []

    @property
    def found(self):
        return self.total - self.hits_left

    def near_rejection(self):
        recent = self.draws[-8:]
        return not any(hit for _, _, hit in recent)

    def step(self, action):
        unlabelled = self.hits_left + self.others_left
        if action == "draw":
            hit = bool(self.rng.random() * unlabelled < self.hits_left)
            self.draws.append((unlabelled, self.found, hit))
        else:
            hit = action == "hit"
        if (hit and not self.hits_left) or (not hit and not self.others_left):
            hit = not hit
        self.hits_left -= hit
        self.others_left -= not hit


def play(strategy, n, total, seed):
    run = Run(n, total, seed)
    while run.hits_left + run.others_left:
        run.step(strategy(run))
    return run


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
@pytest.mark.parametrize(("n", "total"), [(120, 8), (300, 60), (60, 40)])
def test_the_true_total_is_rejected_no_more_often_than_stated(strategy, n, total):
    rejected = 0
    for seed in range(RUNS):
        run = play(strategy, n, total, [seed, n, total])
        rejected += first_rejection(Draws.of(run.draws), total, LEVEL) is not None
    assert rejected <= binom.ppf(1 - 1e-6, RUNS, LEVEL)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_stops_below_the_recall_are_rare(strategy):
    """The certificate as the page shows it, looked at after every label."""
    runs, wrong, stopped = 300, 0, 0
    for seed in range(runs):
        run = Run(80, 30, [seed, 5])
        while run.hits_left + run.others_left:
            run.step(strategy(run))
            if not run.draws:
                continue
            audit = Audit(Draws.of(run.draws), run.found, 0, run.hits_left + run.others_left)
            if certify_recall(audit, recall=0.9, certainty=1 - LEVEL).reached:
                stopped += run.hits_left + run.others_left > 0
                wrong += run.found < 0.9 * run.total
                break
    assert wrong <= binom.ppf(1 - 1e-6, runs, LEVEL)
    assert stopped > 0.5 * runs  # it does stop before the table is labelled to the end


def test_a_level_four_times_as_high_would_be_noticed():
    """The worst strategy here comes near enough to its level that a certificate at four times the level would fail."""
    rejected = 0
    for seed in range(RUNS):
        run = play(only_draws, 300, 60, [seed, 300, 60])
        rejected += first_rejection(Draws.of(run.draws), 60, 4 * LEVEL) is not None
    assert rejected > binom.ppf(1 - 1e-6, RUNS, LEVEL)


def tricked(seed, n=60, total=12):
    """Whether the true total is ever rejected in a session whose person skips, undoes and comes back as suits them."""
    rng = np.random.default_rng([seed, 9])
    hit = rng.permutation(n) < total
    state = State(
        Header("t", "0", n, "y", "classes", int(rng.integers(2**40)), 0.9, 0.95),
        {},
        classes=["yes", "no"],
    )
    state.wanted = "yes"

    def label(row, kind="answer"):
        state.apply(Event(kind, row=int(row), label="yes" if hit[row] else "no"))

    while state.n_pool or state.pending is not None:
        if state.pending is None and rng.random() < 0.3 and state.n_pool:
            rows = np.flatnonzero(state.pool)
            wanted = rows[hit[rows]] if rng.random() < 0.5 else rows[~hit[rows]]
            label(rng.choice(wanted if len(wanted) else rows))
        elif state.pending is None:
            state.apply(Event("draw", row=state.next_draw()))
        elif not hit[state.pending]:
            label(state.pending)  # misses are welcome at once
        else:
            trick = rng.integers(4)
            row = state.pending
            if trick == 0:
                label(row)
            elif trick == 1:
                state.apply(Event("skip", row=row))
            else:
                label(row)
                state.apply(Event("undo", row=row))
                state.apply(Event("skip", row=row))
        doubtful = [row for row in state.doubtful if row != state.pending]
        if doubtful and rng.random() < 0.1:
            label(doubtful[0])
        if first_rejection(state.audit(state.is_wanted).draws, total, LEVEL) is not None:
            return True
    return False


def test_skipping_undoing_and_coming_back_does_not_help():
    runs = 3000
    assert sum(map(tricked, range(runs))) <= binom.ppf(1 - 1e-6, runs, LEVEL)


def frozen(seed, n=80, n_wrong=10):
    """Whether the true number of wrong answers is ever rejected, in any of several freezes of changing answers."""
    rng = np.random.default_rng([seed, 4])
    truth = rng.integers(2, size=n)
    state = State(
        Header("t", "0", n, "y", "classes", int(rng.integers(2**40)), 0.9, 0.95), {}, classes=[0, 1]
    )
    while state.n_pool:
        if not state.freezes or rng.random() < 0.05:
            answers = truth.copy()
            rows = np.flatnonzero(state.pool)
            wrong = rng.choice(rows, min(n_wrong, len(rows)), replace=False)
            answers[wrong] = 1 - answers[wrong]
            state.apply(Event("freeze", data=pack(answers.astype(np.int16))))
            total = len(wrong)
        if rng.random() < 0.2:
            row = int(rng.choice(np.flatnonzero(state.pool)))
        else:
            row = state.next_draw()
            state.apply(Event("draw", row=row))
        state.apply(Event("answer", row=row, label=int(truth[row])))
        freeze = state.freezes[-1]
        draws = state.audit(state.is_wrong(freeze), freeze.first_draw).draws
        if first_rejection(draws, total, LEVEL * share_of_level(len(state.freezes))) is not None:
            return True
    return False


def test_freezing_again_and_again_does_not_help():
    runs = 3000
    assert sum(map(frozen, range(runs))) <= binom.ppf(1 - 1e-6, runs, LEVEL)
