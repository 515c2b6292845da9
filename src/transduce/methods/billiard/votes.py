"""What balls in version space say about rows they never met: shares of their flight, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import NamedTuple, TypeVar

import numba
import numpy as np
from joblib import effective_n_jobs
from scipy.special import gammaln, stdtr
from sklearn.utils.parallel import Parallel, delayed

from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.billiard.flight import Ball, Segment, VersionSpace, choose_reach

# A velocity is drawn anew after r^2 / 5 bounces in r dimensions, at least and for each dimension at most so many. In
# few dimensions walls alone hardly mix velocities; in many, fresh ones make a random walk of the flight, which is slow
# in the long narrow version spaces there. Never after fewer bounces than there are rows, since it costs as much.
# Where labels may be wrong version space is less narrow, and a third of the bounces is enough.
LEAST_REFRESH, MOST_REFRESH, MOST_SOFT_REFRESH = 20, 30, 10
# Every ball flies at least so many bounces, and one segment, before anything is recorded.
WARM_UP = 500
# When labels may be wrong, positions of a ball are kept in each round: one for every so many bounces and labelled rows,
# as neighbouring ones say the same; no fewer than this; and no more numbers than this.
SPACING, FEWEST_POSITIONS, MOST_NUMBERS = 0.5, 64, 4_000_000
ALL, LAST = slice(None), slice(-1, None)
_BLOCK = 512  # rows whose state stays near the processor
T = TypeVar("T")


def in_threads(jobs: Sequence[Callable[[], T]], n_jobs: int | None) -> list[T]:
    """Return what functions return, called in joblib's way; without joblib, whose calls take time, if one by one."""
    if effective_n_jobs(n_jobs) == 1:
        return [job() for job in jobs]
    return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(job)() for job in jobs)


class Positions(NamedTuple):
    """Positions of a ball at even times of a round."""

    coefficients: Array  # (s, l)
    length: float  # length of the flight that they stand for

    @classmethod
    def of(cls, flight: list[Segment], count: int) -> Positions:
        """Take so many positions at even times of a flight of several segments."""
        ends = np.cumsum([segment.length for segment in flight])
        moments = (np.arange(count) + 0.5) * ends[-1] / count
        parts = [
            segment.at(moments[(moments > end - segment.length) & (moments <= end)] - (end - segment.length))
            for segment, end in zip(flight, ends, strict=True)
        ]
        return cls(np.concatenate(parts), float(ends[-1]))


Record = list[Segment] | Positions


class Count(NamedTuple):
    """What one round of one ball says about m rows."""

    positive: Array  # (m,) length of the flight on the positive side
    length: float  # length of the whole
    sums: Array  # (m,) sum of the shares of the round's parts
    squares: Array  # (m,) and of their squares
    n_parts: int


@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _turn(
    column: Array, p: Array, q: Array, old: Array, positive: Array, turn: tuple[float, float, float, float]
) -> int:
    """Follow one flight and reflection; give all its time to the side on which it began; return how many crossed."""
    (cosine, sine, kick, time), crossed = turn, 0
    for j in range(p.size):
        before, speed = p[j], q[j]
        after = before * cosine + speed * sine
        p[j] = after
        q[j] = speed * cosine - before * sine + kick * column[j]
        old[j] = before
        positive[j] += time if before > 0.0 else 0.0
        crossed += 1 if (before > 0.0) != (after > 0.0) else 0
    return crossed


@numba.njit(cache=True, nogil=True)
def follow(
    columns: Array, p: Array, q: Array, walls: AnyArray, kicks: Array, times: Array, positive: Array
) -> None:
    """Add to `positive` (m,) how long the ball was on the positive side of rows with columns (l, m) and p, q (m,)."""
    # A flight is shorter than half a turn, so it crosses a row's wall at most once, at the angle ``arctan2(|p|, -+q)``.
    buffer = np.empty(_BLOCK)
    for first in range(0, p.size, _BLOCK):  # a block's state stays near the processor for the whole flight
        last = min(p.size, first + _BLOCK)
        here, speed, share = p[first:last], q[first:last], positive[first:last]
        old = buffer[: last - first]
        for k in range(walls.size):
            time = times[k]
            cosine, sine = np.cos(time), np.sin(time)
            column = columns[walls[k], first:last]
            if _turn(column, here, speed, old, share, (cosine, sine, kicks[k], time)) == 0:
                continue
            for j in range(last - first):
                if (old[j] > 0.0) != (here[j] > 0.0):
                    slope = (here[j] - old[j] * cosine) / sine
                    if old[j] > 0.0:
                        share[j] += min(np.arctan2(old[j], -slope), time) - time
                    else:
                        share[j] += time - min(np.arctan2(-old[j], slope), time)


FARTHEST, STEPS = 12.0, 400  # where the table of shares ends, and its steps


@cache
def _student_table(rank: int) -> Array:
    """Return polynomials of degree 5, (steps, 6), that meet the distribution, its density and slope at every step."""
    at, step = np.linspace(0.0, FARTHEST, STEPS + 1), FARTHEST / STEPS
    density = np.exp(gammaln((rank + 1) / 2) - gammaln(rank / 2) - (rank + 1) / 2 * np.log1p(at**2 / rank))
    density *= step / np.sqrt(np.pi * rank)
    slope = -step * density * (rank + 1) * at / (rank + at**2)
    share = stdtr(rank, at)
    rise, (a, b), (c, d) = np.diff(share), (density[:-1], density[1:]), (slope[:-1], slope[1:])
    third = 10 * rise - 6 * a - 4 * b - 1.5 * c + 0.5 * d
    fourth = -15 * rise + 8 * a + 7 * b + 1.5 * c - d
    fifth = 6 * rise - 3 * a - 3 * b - 0.5 * c + 0.5 * d
    return np.column_stack([share[:-1], a, 0.5 * c, third, fourth, fifth])


@numba.njit(cache=True, nogil=True)
def _look_up(values: Array, table: Array) -> None:
    """Replace numbers nearer than `FARTHEST` by their shares."""
    for i in range(values.size):
        place = abs(values[i]) * (STEPS / FARTHEST)
        k = int(min(place, STEPS - 1.0))
        s, p = place - k, table[k]
        share = p[0] + s * (p[1] + s * (p[2] + s * (p[3] + s * (p[4] + s * p[5]))))
        values[i] = share if values[i] >= 0.0 else 1.0 - share


def student_shares(values: Array, rank: int) -> Array:
    """Return Student's t distribution at numbers, which may be overwritten, good to 1e-11 and 30 times as fast."""
    far = np.abs(values) >= FARTHEST
    there = stdtr(rank, values[far])
    _look_up(values.reshape(-1), _student_table(rank))
    values[far] = there
    return values


@dataclass(frozen=True)
class Voter:
    """Rows about which balls vote."""

    columns: Array  # (l, m) inner products of the labelled rows' unit vectors with the rows
    spread: Array | None = None  # (m,) of the noise of latent values; None where no label is wrong
    rank: int = 1  # degrees of freedom of that noise: the dimension of the labelled rows' span
    blind: Mask | None = None  # (m,) rows orthogonal to every labelled one

    def count(self, record: Record) -> Count:
        """Return what a round says."""
        counted = self._soft(record) if isinstance(record, Positions) else self._hard(record)
        if self.blind is not None:  # no separator can tell such a row: half of them on either side
            counted.positive[self.blind], counted.sums[self.blind] = counted.length / 2, counted.n_parts / 2
            counted.squares[self.blind] = counted.n_parts / 4
        return counted

    def _soft(self, record: Positions) -> Count:
        if self.spread is None:
            raise ValueError("Positions are recorded where labels may be wrong: give the voter a spread.")
        m, n_parts = self.columns.shape[1], len(record.coefficients)
        sums, squares = np.zeros((2, m))
        size = max(1, MOST_NUMBERS // max(m, 1))
        for first in range(0, n_parts, size):
            votes = record.coefficients[first : first + size] @ self.columns
            votes = student_shares(np.divide(votes, self.spread, out=votes), self.rank)
            sums += votes.sum(axis=0)
            squares += np.einsum("ij,ij->j", votes, votes)
        return Count(sums * (record.length / n_parts), record.length, sums, squares, n_parts)

    def _hard(self, record: list[Segment]) -> Count:
        m = self.columns.shape[1]
        total, sums, squares = np.zeros((3, m))
        for segment in record:
            positive = np.zeros(m)
            p, q = segment.position @ self.columns, segment.velocity @ self.columns
            follow(self.columns, p, q, segment.walls, segment.kicks, segment.times, positive)
            total += positive
            sums += positive / segment.length
            squares += (positive / segment.length) ** 2
        return Count(total, sum(segment.length for segment in record), sums, squares, len(record))


@dataclass
class Tally:
    """Votes of several balls about m rows, added up."""

    totals: Array  # (5, k, m) the five numbers of `Count`, for each of k balls: positive, length, ...

    @classmethod
    def empty(cls, n_balls: int, m: int) -> Tally:
        """Start from nothing."""
        return cls(np.zeros((len(Count._fields), n_balls, m)))

    @classmethod
    def sum(cls, tallies: Sequence[Tally]) -> Tally:
        """Add up the tallies of several rounds."""
        return cls(np.sum([tally.totals for tally in tallies], axis=0))

    def add(self, ball: int, count: Count, rows: slice = ALL) -> None:
        """Add a round of one ball, about all rows or some."""
        for total, part in zip(self.totals, count, strict=True):
            total[ball, rows] += part

    @property
    def by_ball(self) -> Array:
        """Share of each ball's flight on the positive side of each row, shape (k, m)."""
        return self.totals[0] / self.totals[1]

    @property
    def share(self) -> Array:
        """Share of all balls' flights, shape (m,)."""
        return self.totals[0].sum(axis=0) / self.totals[1].sum(axis=0)

    @property
    def standard_error(self) -> Array:
        """Standard error of the share, from the differences between balls, shape (m,)."""
        return self.by_ball.std(axis=0, ddof=1) / np.sqrt(self.totals.shape[1])

    def r_hat(self) -> float:
        """Return the largest ratio, over rows, of the spread of all parts of the flights to that within balls."""
        # Parts are a ball's segments or, where labels may be wrong, its positions. Near 1 when every ball has been
        # everywhere; clearly above when the balls still differ; NaN if no ball has two parts to compare.
        sums, squares, n_parts = self.totals[2:]
        if n_parts.size == 0 or n_parts.min() < 2:
            return np.nan
        means = sums / n_parts
        scatter = np.maximum(squares / n_parts - means**2, 0.0) * n_parts / (n_parts - 1)
        within, between = scatter.mean(axis=0), means.var(axis=0, ddof=1)
        resting = within <= 1e-12
        moved = np.where(between > 1e-12, np.inf, 0.0)
        ratio = np.where(resting, moved, between / np.where(resting, 1.0, within))
        return float(np.sqrt(1.0 + ratio.max()))


@dataclass
class Game:
    """Balls in one version space, and their rounds so far."""

    space: VersionSpace
    seeds: Sequence[int]  # one for each ball
    soft: bool  # whether labels may be wrong: then positions are recorded, otherwise whole flights
    n_jobs: int | None = None
    refresh: int | None = None  # bounces after which a ball's velocity is drawn anew, on average
    n_bounces: int = 0
    pace: int = field(init=False)
    balls: list[Ball] = field(init=False)
    records: list[list[Record]] = field(init=False)

    def __post_init__(self) -> None:
        n_rows, rank = self.space.root.shape
        most = rank * (MOST_SOFT_REFRESH if self.soft else MOST_REFRESH)
        self.pace = self.refresh or max(LEAST_REFRESH, n_rows, min(rank**2 // 5, most))
        reach = choose_reach(self.space, self.seeds[0], self.pace)
        self.balls = [Ball.drop(self.space, seed, reach) for seed in self.seeds]
        self.records = [[] for _ in self.balls]
        self._fly(max(1, WARM_UP // self.pace))

    def _fly(self, n_segments: int) -> list[list[Segment]]:
        return in_threads([partial(ball.run, n_segments) for ball in self.balls], self.n_jobs)

    def play(self, n_bounces: int) -> None:
        """Let every ball bounce about so often, one segment at least, and record the round."""
        n_segments = max(1, round(n_bounces / self.pace))
        flights, n_rows = self._fly(n_segments), len(self.space.G)
        count = max(FEWEST_POSITIONS, round(n_segments * self.pace / (SPACING * n_rows)))
        count = min(count, max(1, MOST_NUMBERS // n_rows))
        for record, flight in zip(self.records, flights, strict=True):
            record.append(Positions.of(flight, count) if self.soft else flight)
        bounces = sum(len(segment.walls) for flight in flights for segment in flight)
        self.n_bounces += round(bounces / len(flights))

    def forget(self, n_rounds: int) -> None:
        """Drop the first rounds of every ball, in which it may still be near its start."""
        for record in self.records:
            del record[:n_rounds]

    def mean_direction(self) -> Array:
        """Return coefficients of the mean position of all balls, a unit vector: the Bayes point."""
        total = np.zeros(len(self.space.G))
        for record in (record for rounds in self.records for record in rounds):
            if isinstance(record, Positions):
                total += record.length * record.coefficients.mean(axis=0)
            else:
                total += sum(segment.length * segment.mean() for segment in record)
        return total / np.sqrt(float(total @ (self.space.G @ total)))


Voters = Iterable[tuple[slice, Voter]]  # some rows at a time


def held_classes(n_classes: int) -> AnyArray:
    """Return the classes that are told from the rest, each in a game: the second of two, or all of several."""
    return np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)


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
            short = "A labelled row has length 0 in feature space"
            raise ValueError(f"{short}: no separator can tell it; give bias > 0.")
        G = np.ascontiguousarray(A / norms / norms[:, None])
        return cls(VersionSpace.of(G, np.ones(len(G))), norms, softness)

    def games(
        self, codes: AnyArray, n_classes: int, seeds: AnyArray, n_jobs: int | None, refresh: int | None = None
    ) -> list[Game]:
        """Return one game for two classes, or one for each of several, one-vs-rest."""
        games = []
        for held, row in zip(held_classes(n_classes), seeds, strict=True):
            space = replace(self.space, signs=np.where(codes == held, 1.0, -1.0))
            games.append(Game(space, row, self.softness > 0.0, n_jobs, refresh))
        return games

    def voter(self, K_la: Array, k_aa: Array) -> Voter:
        """Return the voter for kernel columns (l, m) and the rows' own values (m,), bias included in both."""
        # A normal vector of feature space is a direction ``w`` of the rows' span, of r dimensions, times a length that
        # is independent of it (chi with r degrees of freedom), and a part outside the span. So the sign of a latent
        # value with slack, given ``w``, is that of ``sqrt(r) <w, phi> / outside`` less a Student's t with r degrees of
        # freedom.
        columns = np.ascontiguousarray(K_la / self.norms[:, None])
        blind = np.abs(columns).max(axis=0, initial=0.0) <= 1e-14 * np.sqrt(np.maximum(k_aa, 0.0))
        if self.softness == 0.0:
            return Voter(columns, blind=blind if blind.any() else None)
        half, own = self.space.coordinates(columns), k_aa + self.softness
        outside = np.maximum(own - np.einsum("ij,ij->j", half, half), 1e-12 * own)
        return Voter(columns, np.sqrt(outside / self.space.rank), self.space.rank)


def probabilities(tallies: list[Tally]) -> tuple[Array, Array]:
    """Return the probability of every class and its standard error, (m, n_classes); several normalised ball by ball."""
    if len(tallies) == 1:
        share, error = tallies[0].share, tallies[0].standard_error
        return np.column_stack([1.0 - share, share]), np.column_stack([error, error])
    votes = np.array([tally.share for tally in tallies]).T
    by_ball = _normalised(np.array([tally.by_ball for tally in tallies]).transpose(1, 2, 0))
    return _normalised(votes), by_ball.std(axis=0, ddof=1) / np.sqrt(len(by_ball))


def _normalised(votes: Array) -> Array:
    """Return votes that sum to 1 along the last axis; even where no class got any."""
    total = votes.sum(axis=-1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, 1.0 / votes.shape[-1]), where=total > 0.0)


def count_votes(
    games: list[Game], n_rows: int, voters: Voters, rounds: slice, n_jobs: int | None
) -> list[Tally]:
    """Return the votes of some rounds of every game, counted some rows at a time."""
    tallies = [Tally.empty(len(game.balls), n_rows) for game in games]
    jobs = [
        (tally, ball, record)
        for game, tally in zip(games, tallies, strict=True)
        for ball, records in enumerate(game.records)
        for record in records[rounds]
    ]
    for part, voter in voters:
        counts = in_threads([partial(voter.count, record) for *_, record in jobs], n_jobs)
        for (tally, ball, _), count in zip(jobs, counts, strict=True):
            tally.add(ball, count, part)
    return tallies
