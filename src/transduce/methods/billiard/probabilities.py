"""Bayesian transduction: from kernel matrices to the probabilities of classes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.parallel import Parallel, delayed

from transduce.core.types import AnyArray, Array
from transduce.methods.billiard.flight import VersionSpace
from transduce.methods.billiard.settings import Settings
from transduce.methods.billiard.votes import Game, Tally, Voter

log = logging.getLogger(__name__)

LAST = slice(-1, None)
MIN_BOUNCES = 2_000

Voters = Iterable[tuple[slice, Voter]]  # some rows at a time


def n_games(n_classes: int) -> int:
    """Return in how many version spaces balls fly: one for two classes, else one for each."""
    return 1 if n_classes == 2 else n_classes


class Geometry(NamedTuple):
    """The labelled rows as unit vectors of feature space."""

    space: VersionSpace  # of the first class; the others differ in signs only
    norms: Array  # (l,) lengths of the rows' vectors before they were scaled
    softness: float

    @classmethod
    def of(cls, K: Array, *, softness: float) -> Geometry:
        """Scale the kernel matrix (l, l) of the labelled rows, bias included, and factorise it."""
        A = np.array(K, dtype=float)
        A.flat[:: len(A) + 1] += softness
        norms = np.sqrt(A.diagonal())
        if not norms.min() > 0.0:
            raise ValueError(
                "A labelled row has length 0 in feature space, so that no separator can tell it: give bias > 0."
            )
        G = np.ascontiguousarray(A / norms / norms[:, None])
        return cls(VersionSpace.of(G, np.ones(len(G))), norms, softness)

    def games(
        self, codes: AnyArray, n_classes: int, seeds: AnyArray, n_jobs: int | None, refresh: int | None = None
    ) -> list[Game]:
        """Return one game for two classes, or one for each of several, one-vs-rest."""
        wanted = [1] if n_classes == 2 else range(n_classes)
        spaces = [replace(self.space, signs=np.where(codes == c, 1.0, -1.0)) for c in wanted]
        soft = self.softness > 0.0
        return [Game(space, row, soft, n_jobs, refresh) for space, row in zip(spaces, seeds, strict=True)]

    def voter(self, K_la: Array, k_aa: Array) -> Voter:
        """Return the voter for kernel columns (l, m) and the rows' own values (m,), bias included in both.

        A normal vector of feature space is a direction ``w`` of the rows' span, of r dimensions, times a length that
        is independent of it (chi with r degrees of freedom), and a part outside the span. So the sign of a latent value
        with slack, given ``w``, is that of ``sqrt(r) <w, phi> / outside`` less a Student's t with r degrees of freedom.
        """
        columns = np.ascontiguousarray(K_la / self.norms[:, None])
        blind = np.abs(columns).max(axis=0, initial=0.0) <= 1e-14 * np.sqrt(np.maximum(k_aa, 0.0))
        if self.softness == 0.0:
            return Voter(columns, blind=blind if blind.any() else None)
        rank, inverse = self.space.rank, self.space.inverse
        if inverse is not None:
            half = inverse.T @ columns
        else:
            half = solve_triangular(self.space.root, columns, lower=True, check_finite=False)
        outside = k_aa + self.softness - np.einsum("ij,ij->j", half, half)
        floor = 1e-12 * (k_aa + self.softness)
        return Voter(columns, np.sqrt(np.maximum(outside, floor) / rank), rank)


def probabilities(tallies: list[Tally]) -> tuple[Array, Array]:
    """Return the probability of every class and its standard error, each of shape (m, n_classes).

    Several classes are normalised ball by ball, so that the standard error is that of what is returned.
    """
    if len(tallies) == 1:
        share, error = tallies[0].share, tallies[0].standard_error
        return np.column_stack([1.0 - share, share]), np.column_stack([error, error])
    votes = np.array([tally.share for tally in tallies]).T
    by_ball = np.array([tally.by_ball for tally in tallies])  # classes, balls, rows
    balls = by_ball.shape[1]
    spread = _normalised(by_ball.transpose(1, 2, 0)).std(axis=0, ddof=1)
    return _normalised(votes), spread / np.sqrt(balls)


def _normalised(votes: Array) -> Array:
    """Return votes that sum to 1 along the last axis; even where no class got any."""
    total = votes.sum(axis=-1, keepdims=True)
    even = np.full_like(votes, 1.0 / votes.shape[-1])
    return np.divide(votes, total, out=even, where=total > 0.0)


def count_round(
    games: list[Game], tallies: list[Tally], voters: Voters, rounds: slice, n_jobs: int | None
) -> None:
    """Add the votes of some rounds of every game to the tallies, some rows at a time."""
    jobs = [
        (tally, ball, record)
        for game, tally in zip(games, tallies, strict=True)
        for ball, records in enumerate(game.records)
        for record in records[rounds]
    ]
    for part, voter in voters:
        counts = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(voter.count)(record) for *_, record in jobs
        )
        for (tally, ball, _), count in zip(jobs, counts, strict=True):
            tally.add(ball, count, part)


def play_until(
    games: list[Game], n_rows: int, voters: Callable[[], Voters], settings: Settings
) -> tuple[list[Tally], bool]:
    """Play rounds, each as long as all before it, until the largest standard error is small enough.

    The rounds that make up the first quarter of the flights are forgotten as it goes on: all balls start in a like
    manner, and what their starts have in common their differences cannot tell.
    """
    rounds: list[list[Tally]] = []
    lengths: list[int] = []
    n_bounces = min(max(MIN_BOUNCES // 4, 2 * games[0].pace), settings.max_bounces)
    while True:
        before = games[0].n_bounces
        for game in games:
            game.play(n_bounces)
        done = games[0].n_bounces
        fresh = [Tally.empty(len(game.balls), n_rows) for game in games]
        count_round(games, fresh, voters(), LAST, settings.n_jobs)
        rounds.append(fresh)
        lengths.append(done - before)
        while len(rounds) > 1 and done - sum(lengths) + lengths[0] <= done / 4:
            del rounds[0], lengths[0]
            for game in games:
                game.forget(1)
        tallies = [Tally.sum(parts) for parts in zip(*rounds, strict=True)]
        error = float(probabilities(tallies)[1].max()) if n_rows else np.inf
        log.info("%d bounces of each ball: largest standard error %.4f", done, error)
        n_bounces = min(done, settings.max_bounces - done)
        enough = error <= settings.tolerance and done >= MIN_BOUNCES
        if enough or n_bounces <= 0 or (n_rows == 0 and done >= 4 * MIN_BOUNCES):
            return tallies, n_rows == 0 or error <= settings.tolerance
