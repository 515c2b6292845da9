"""Billiard balls in version space: the sphere of all directions that get every labelled row right.

Rows are unit vectors ``u_i = phi_i / |phi_i|`` of feature space, known by their inner products
``G``, with signs ``y_i``. A ball is a position ``w`` and a velocity ``v``, orthogonal unit vectors
in the span of the rows; it is enough to know ``a_i = <w, u_i>`` and ``b_i = <v, u_i>``. It flies
along great circles until some ``a_c`` is 0, and is reflected at this wall::

    a(t) = a cos t + b sin t        b(t) = b cos t - a sin t        b <- b - 2 b_c G[c]

That costs ``O(l)``, and leaves a trace (wall, kick ``-2 b_c`` and time) from which everything else
follows. With ``T`` the time since a known position and velocity, and ``T_k`` that of kick k::

    w(T) = cos(T) w(0) + sin(T) v(0) + sum_k kick_k sin(T - T_k) u_{wall k}

What balls say about rows they never met are shares of their flight, with standard errors from their
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple, TypeVar

import numba
import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import lapack
from scipy.optimize import linprog
from scipy.special import gammaln, stdtr
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import arrays
from transduce.core.types import AnyArray, Array, Mask

MOST_AT_ONCE = 10_000  # bounces
Pair = tuple[Array, Array]
Trace = tuple[AnyArray, Array, Array]  # walls, kicks and times of bounces, each (k,)
T = TypeVar("T")
TINY = 1e-300  # a wall that the ball touches is in front of it no longer


class EmptyVersionSpaceError(ValueError):
    """No direction gets every labelled row right."""


class Segment(NamedTuple):
    """A flight of many bounces from a known position and velocity."""

    position: Array  # (l,) coefficients of ``w(0)`` on the rows' unit vectors
    velocity: Array  # (l,) likewise of ``v(0)``
    walls: AnyArray  # (k,) rows at which the ball was reflected
    kicks: Array  # (k,)
    times: Array  # (k,)

    @property
    def length(self) -> float:
        """Total length of the flight."""
        return float(self.times.sum())

    def at(self, moments: Array) -> Array:
        """Return coefficients of the positions at ascending times, shape (s, l)."""
        ends = np.cumsum(self.times)
        n_kicks = np.searchsorted(ends, moments, side="right")
        start = (self.position, self.velocity)
        kicks = (self.kicks * np.cos(ends), self.kicks * np.sin(ends))
        turns = (np.cos(moments), np.sin(moments))
        return _follow(start, self.walls, kicks, turns, n_kicks)


@numba.njit(cache=True, nogil=True)
def _follow(
    start: Pair,
    walls: AnyArray,
    kicks: Pair,
    turns: Pair,
    n_kicks: AnyArray,
) -> Array:
    """Return the positions (s, l) at moments ``T``, after `n_kicks` (s,) reflections.

    With ``sin(T - T_k) = sin(T) cos(T_k) - cos(T) sin(T_k)`` a position is ``cos(T) rest +
    sin(T) swing``, where a kick takes ``kick_k sin(T_k)`` from `rest` and adds ``kick_k cos(T_k)``
    to `swing`. So `turns` are the cosines and sines of the moments, and `kicks` the kicks times
    the cosines and sines of their times.
    """
    rest = start[0].copy()
    swing = start[1].copy()
    positions = np.empty((len(n_kicks), len(rest)))
    n_done = 0
    for i in range(len(n_kicks)):
        taken = np.zeros(len(rest))
        added = np.zeros(len(rest))
        for k in range(n_done, n_kicks[i]):
            taken[walls[k]] += kicks[1][k]
            added[walls[k]] += kicks[0][k]
        n_done = max(n_done, n_kicks[i])
        for j in range(len(rest)):
            rest[j] -= taken[j]
            swing[j] += added[j]
            positions[i, j] = turns[0][i] * rest[j] + turns[1][i] * swing[j]
    return positions


@dataclass(frozen=True)
class VersionSpace:
    """The directions that get every labelled row right."""

    G: Array  # (l, l) inner products of the unit vectors of the rows
    root: Array  # (l, r) ``R`` with ``R R' = G``
    inverse: Array | None  # (l, r) coefficients on the rows of those coordinates' unit vectors
    signs: Array  # (l,) +1 or -1: on which side of each row's wall version space lies

    @classmethod
    def of(cls, G: Array, signs: Array) -> VersionSpace:
        """Find coordinates: a Cholesky factor, or eigenvectors if rows are linearly dependent."""
        factor, info = lapack.dpotrf(G, lower=1, clean=1)
        if info == 0 and factor.diagonal().min() > 1e-4:
            return cls(G, factor, None, signs)
        values, vectors = np.linalg.eigh(G)
        if values[0] < -1e-8 * max(values[-1], 1.0) * len(G):
            raise ValueError(
                "The kernel matrix is not positive semidefinite: the kernel is not a proper one "
                "for these rows. Use another kernel, or a larger softness."
            )
        keep = values > 1e-10 * values[-1]
        scale = np.sqrt(values[keep])
        root = vectors[:, keep] * scale
        inverse = vectors[:, keep] / scale
        return cls(G, root, inverse, signs)

    @property
    def rank(self) -> int:
        """Dimension of the span of the rows."""
        return self.root.shape[1]

    def coefficients(self, coordinates: Array) -> Array:
        """Return coefficients on the rows of a vector given by its r coordinates."""
        if self.inverse is not None:
            return self.inverse @ coordinates
        return lapack.dtrtrs(self.root, coordinates, lower=1, trans=1)[0]

    def coordinates(self, products: Array) -> Array:
        """Return the r coordinates of vectors with these inner products with the rows.

        Where no vector has them, the nearest by least squares.
        """
        if self.inverse is not None:
            return self.inverse.T @ products
        return lapack.dtrtrs(self.root, products, lower=1)[0]

    def products(self, coefficients: Array) -> Array:
        """Return the inner products with the rows of a vector given by its coefficients."""
        return self.root @ (self.root.T @ coefficients)

    def start(self, random: np.random.RandomState) -> Array:
        """Return coefficients of a random unit vector inside version space."""
        margins = self.signs * (random.exponential(size=len(self.G)) + 0.1)
        coordinates = self.coordinates(margins)
        if self.inverse is not None:  # dependent rows cannot have every margin
            is_inside = (self.signs * (self.root @ coordinates)).min() > 0.0
            if not is_inside:
                coordinates = self._separate(np.abs(margins))
        return self.coefficients(coordinates / np.linalg.norm(coordinates))

    def _separate(self, margins: Array) -> Array:
        """Return a separator ``x`` with the largest multiple of these margins, or raise an error.

        A linear program: maximise ``t`` with ``y_i <x, u_i> >= t margin_i`` and ``|x_j| <= 1``.
        """
        n_rows, rank = self.root.shape
        program = linprog(
            np.append(np.zeros(rank), -1.0),
            A_ub=np.column_stack([-self.signs[:, None] * self.root, margins]),
            b_ub=np.zeros(n_rows),
            bounds=[(-1.0, 1.0)] * rank + [(None, 1.0)],
        )
        if not program.success or program.x[-1] <= 1e-10:
            raise EmptyVersionSpaceError("no separator gets every labelled row right")
        return program.x[:-1]

    def velocity(self, position: Array, random: np.random.RandomState) -> Array:
        """Return coefficients of a random unit vector orthogonal to a position."""
        here = self.root.T @ position
        direction = random.normal(size=self.rank)
        direction -= float(direction @ here) / float(here @ here) * here
        return self.coefficients(direction / np.linalg.norm(direction))


# Sums and maxima may be taken in any order, which lets the compiler work on several rows at once;
# NaN cannot occur.
@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _advance(
    column: Array,
    signs: Array,
    a: Array,
    b: Array,
    steepness: Array,
    turn: tuple[float, float, float],
) -> float:
    """Turn the ball up to a wall and reflect it there, in place.

    ``a <- a cos t + b sin t`` and ``b <- b cos t - a sin t + kick G[c]``. Fills in the `steepness`
    ``-b / a`` of every row and returns the largest, which belongs to the wall that comes next.
    """
    cosine, sine, kick = turn
    largest = -1e308
    for i in range(a.size):
        old = a[i]
        new = old * cosine + b[i] * sine
        speed = b[i] * cosine - old * sine + kick * column[i]
        a[i] = new
        b[i] = speed
        ratio = -signs[i] * speed / max(signs[i] * new, TINY)
        steepness[i] = ratio
        largest = max(largest, ratio)
    return largest


@numba.njit(cache=True, nogil=True)
def fly(
    G: Array,
    signs: Array,
    a: Array,
    b: Array,
    walls: AnyArray,
    kicks: Array,
    times: Array,
) -> None:
    """Let the ball bounce as often as the traces `walls`, `kicks`, `times` (k,) have room for.

    `a` and `b` (l,) are where it starts, and afterwards where it ends.
    """
    steepness = np.empty(a.size)
    wall = 0
    cosine = 1.0
    sine = 0.0
    kick = 0.0
    for bounce in range(walls.size + 1):
        largest = _advance(G[wall], signs, a, b, steepness, (cosine, sine, kick))
        if bounce == walls.size:
            return
        wall = 0
        while wall < a.size - 1 and steepness[wall] != largest:
            wall += 1
        time = np.arctan2(1.0, largest)
        cosine = np.cos(time)
        sine = np.sin(time)
        kick = -2.0 * (b[wall] * cosine - a[wall] * sine)
        walls[bounce] = wall
        kicks[bounce] = kick
        times[bounce] = time


class Ball:
    """A ball in version space: `position` (l,) are coefficients of a unit vector inside."""

    def __init__(self, space: VersionSpace, seed: int, reach: float) -> None:
        self.space = space
        self.random = np.random.RandomState(seed)
        self.position = space.start(self.random)
        self.reach = reach  # mean length of a segment, after which the velocity is drawn anew

    def run(self, n_segments: int) -> list[Segment]:
        """Fly so many segments, each with a fresh velocity; return the flight."""
        return [self._run_segment() for _ in range(n_segments)]

    def _run_segment(self) -> Segment:
        """Fly one segment, of random length around `reach`, and move to its end."""
        space = self.space
        position = self.position
        if space.rank == 1:  # a single direction: the ball rests
            return _rest(position)
        velocity = space.velocity(position, self.random)
        length = self.reach * (0.5 + self.random.random_sample())
        a = space.products(position)
        b = space.products(velocity)
        walls, kicks, times = _fly_for(space, a, b, length)
        segment = Segment(position, velocity, walls, kicks, times)
        # The end anew from the trace, through coordinates and as a unit vector, so that rounding
        # does not pile up and coefficients of dependent rows do not run away.
        (coefficients,) = segment.at(np.array([segment.length]))
        end = space.root.T @ coefficients
        self.position = space.coefficients(end / np.linalg.norm(end))
        return segment


class StraightBall:
    """A ball that keeps its velocity from wall to wall, and bounces exactly as often as asked.

    The paper's only ball: nothing is drawn anew, and no first flights are forgotten.
    """

    def __init__(self, space: VersionSpace, seed: int) -> None:
        self.space = space
        random = np.random.RandomState(seed)
        self.position = space.start(random)
        self.velocity = np.zeros_like(self.position)
        if space.rank > 1:
            self.velocity = space.velocity(self.position, random)

    def run(self, n_bounces: int) -> list[Segment]:
        """Fly so many bounces; return the flight."""
        if self.space.rank == 1:  # a single direction: the ball rests
            return [_rest(self.position)]
        segments = []
        while n_bounces > 0:
            segments.append(self._run_segment(min(n_bounces, MOST_AT_ONCE)))
            n_bounces -= MOST_AT_ONCE
        return segments

    def _run_segment(self, n_bounces: int) -> Segment:
        """Fly so many bounces, and move to where they end."""
        space = self.space
        a = space.products(self.position)
        b = space.products(self.velocity)
        trace = _empty_trace(n_bounces)
        fly(space.G, space.signs, a, b, *trace)
        segment = Segment(self.position, self.velocity, *trace)
        if not segment.length > 1e-9:
            raise EmptyVersionSpaceError("version space is smaller than rounding tells")
        # Both anew from the trace, so that rounding does not pile up. A quarter of a turn after the
        # last reflection the ball would be where its velocity points.
        end = float(np.cumsum(segment.times)[-1])
        coordinates = segment.at(np.array([end, end + np.pi / 2])) @ space.root
        position = coordinates[0] / np.linalg.norm(coordinates[0])
        velocity = coordinates[1] - float(coordinates[1] @ position) * position
        self.position = space.coefficients(position)
        self.velocity = space.coefficients(velocity / np.linalg.norm(velocity))
        return segment


def _rest(position: Array) -> Segment:
    """Return the flight of a ball that rests, of length 1."""
    no_wall = np.zeros(1, np.int32)
    no_kick = np.zeros(1)
    return Segment(position, np.zeros_like(position), no_wall, no_kick, times=np.ones(1))


def _empty_trace(size: int) -> Trace:
    """Return walls, kicks and times with room for so many bounces."""
    return np.empty(size, np.int32), np.empty(size), np.empty(size)


def _fly_for(space: VersionSpace, a: Array, b: Array, reach: float) -> Trace:
    """Return walls, kicks and times of a flight of this length; the last flight ends in the air."""
    traces = []
    length = 0.0
    n_bounces = 0
    size = max(32, len(a))
    while length < reach:
        trace = _empty_trace(size)
        fly(space.G, space.signs, a, b, *trace)
        traces.append(trace)
        length += float(trace[2].sum())
        n_bounces += size
        # As many bounces again as the rest of the way needs at this pace, and a tenth more.
        n_missing = 1.1 * (reach / length - 1.0) * n_bounces
        size = int(np.clip(n_missing, 32, MOST_AT_ONCE))
    walls, kicks, times = (np.concatenate(parts) for parts in zip(*traces, strict=True))
    ends = np.cumsum(times)
    last = int(np.searchsorted(ends, reach))
    times[last] -= ends[last] - reach
    kicks[last] = 0.0
    return walls[: last + 1], kicks[: last + 1], times[: last + 1]


def _first_reach(space: VersionSpace, position: Array, seed: int) -> float:
    """Return 1, or the length of a thousand bounces where so many are less than a hundredth."""
    velocity = space.velocity(position, np.random.RandomState(seed))
    a = space.products(position)
    b = space.products(velocity)
    trace = _empty_trace(1000)
    fly(space.G, space.signs, a, b, *trace)
    length = float(trace[2].sum())
    if not length > 1e-9:
        raise EmptyVersionSpaceError("version space is smaller than rounding tells")
    if length > 0.01:
        return 1.0
    return length


def choose_reach(space: VersionSpace, seed: int, n_bounces: int) -> float:
    """Return the length of a flight of about so many bounces, from a trial."""
    ball = Ball(space, seed, 1.0)
    n_fewer = max(20, n_bounces // 10)
    if space.rank > 1:
        ball.reach = _first_reach(space, ball.position, seed)
    for n_wanted in (20, n_fewer, n_fewer, n_bounces):
        # Flights are long with some velocities and short with others: count over several, and
        # correct the reach. The last flight of a segment is half a flight on average.
        n_counted = sum(len(segment.walls) - 0.5 for segment in ball.run(8))
        ball.reach *= 8 * n_wanted / n_counted
    return float(ball.reach)


# -------------------------------------------------------------------------------------------- votes

# A velocity is drawn anew after r^2 / 5 bounces in r dimensions, at least and for each dimension at
# most so many. In few dimensions walls alone hardly mix velocities; in many, fresh ones make a
# random walk of the flight, which is slow in the long narrow version spaces there. Never after
# fewer bounces than there are rows, since it costs as much. Where labels may be wrong version space
# is less narrow, and a third of the bounces is enough.
LEAST_REFRESH = 20
MOST_REFRESH = 30
MOST_SOFT_REFRESH = 10
# Every ball flies at least so many bounces, and one segment, before anything is recorded.
WARM_UP = 500
# When labels may be wrong, positions of a ball are kept in each round: one for every so many
# bounces and labelled rows, as neighbouring ones say the same; no fewer than this; and no more
# numbers than this.
SPACING = 0.5
FEWEST_POSITIONS = 64
MOST_NUMBERS = 4_000_000
_BLOCK = 512  # rows whose state stays near the processor


def in_threads(jobs: Sequence[Callable[[], T]], n_jobs: int | None) -> list[T]:
    """Return the results of functions, called in joblib's threads.

    One by one they are called without joblib, whose calls take time.
    """
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
        parts = []
        for segment, end in zip(flight, ends, strict=True):
            start = end - segment.length
            inside = (moments > start) & (moments <= end)
            parts.append(segment.at(moments[inside] - start))
        return cls(np.concatenate(parts), float(ends[-1]))


Record = list[Segment] | Positions


@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _turn(
    column: Array,
    p: Array,
    q: Array,
    old: Array,
    positive: Array,
    turn: tuple[float, float, float, float],
) -> int:
    """Follow one flight and reflection, as `_advance` does, at rows that are no walls.

    Gives the whole time of the flight to the side on which it began, keeps the position before it
    in `old`, and returns how many rows the ball crossed.
    """
    cosine, sine, kick, time = turn
    n_crossed = 0
    for j in range(p.size):
        before = p[j]
        speed = q[j]
        after = before * cosine + speed * sine
        p[j] = after
        q[j] = speed * cosine - before * sine + kick * column[j]
        old[j] = before
        # No branches here: only so does the compiler work on several rows at once.
        positive[j] += time if before > 0.0 else 0.0
        n_crossed += 1 if (before > 0.0) != (after > 0.0) else 0
    return n_crossed


@numba.njit(cache=True, nogil=True)
def follow(
    columns: Array,
    p: Array,
    q: Array,
    walls: AnyArray,
    kicks: Array,
    times: Array,
    positive: Array,
) -> None:
    """Add to `positive` (m,) how long the ball was on the positive side of each row.

    Rows have inner products `columns` (l, m) with the labelled rows, and `p`, `q` (m,) with the
    ball's position and velocity. A flight is shorter than half a turn, so it crosses a row's wall
    at most once, at the angle ``arctan2(|p|, -+q)``.
    """
    buffer = np.empty(_BLOCK)
    for first in range(0, p.size, _BLOCK):  # each block for the whole flight
        last = min(p.size, first + _BLOCK)
        here = p[first:last]
        speed = q[first:last]
        share = positive[first:last]
        old = buffer[: last - first]
        for k in range(walls.size):
            time = times[k]
            cosine = np.cos(time)
            sine = np.sin(time)
            column = columns[walls[k], first:last]
            turn = (cosine, sine, kicks[k], time)
            if _turn(column, here, speed, old, share, turn) == 0:
                continue
            for j in range(last - first):
                if (old[j] > 0.0) != (here[j] > 0.0):
                    slope = (here[j] - old[j] * cosine) / sine
                    if old[j] > 0.0:
                        share[j] += min(np.arctan2(old[j], -slope), time) - time
                    else:
                        share[j] += time - min(np.arctan2(-old[j], slope), time)


ROUNDING = 1e-12  # of the length of a round: less than this on a side is rounding
FARTHEST = 12.0  # where the table of shares ends
STEPS = 400  # of that table


@cache
def _student_table(rank: int) -> Array:
    """Return polynomials of degree 5, (steps, 6), for Student's t distribution between two steps.

    They meet the distribution, its density and the slope of the density at both ends.
    """
    at = np.linspace(0.0, FARTHEST, STEPS + 1)
    step = FARTHEST / STEPS
    log_constant = gammaln((rank + 1) / 2) - gammaln(rank / 2)
    log_density = log_constant - (rank + 1) / 2 * np.log1p(at**2 / rank)
    density = np.exp(log_density)
    density *= step / np.sqrt(np.pi * rank)
    slope = -step * density * (rank + 1) * at / (rank + at**2)
    share = stdtr(rank, at)
    rise = np.diff(share)
    density_left = density[:-1]
    density_right = density[1:]
    slope_left = slope[:-1]
    slope_right = slope[1:]
    third = 10 * rise - 6 * density_left - 4 * density_right
    third = third - 1.5 * slope_left + 0.5 * slope_right
    fourth = -15 * rise + 8 * density_left + 7 * density_right
    fourth = fourth + 1.5 * slope_left - slope_right
    fifth = 6 * rise - 3 * density_left - 3 * density_right
    fifth = fifth - 0.5 * slope_left + 0.5 * slope_right
    return np.column_stack([share[:-1], density_left, 0.5 * slope_left, third, fourth, fifth])


@numba.njit(cache=True, nogil=True)
def _look_up(values: Array, table: Array) -> None:
    """Replace numbers nearer than `FARTHEST` by their shares."""
    for i in range(values.size):
        place = abs(values[i]) * (STEPS / FARTHEST)
        k = int(min(place, STEPS - 1.0))
        s = place - k
        p = table[k]
        share = p[4] + s * p[5]  # by Horner's rule
        share = p[3] + s * share
        share = p[2] + s * share
        share = p[1] + s * share
        share = p[0] + s * share
        if values[i] >= 0.0:
            values[i] = share
        else:
            values[i] = 1.0 - share


def student_shares(values: Array, rank: int) -> Array:
    """Return Student's t distribution at numbers, which are overwritten.

    Good to 1e-11, and 30 times as fast as scipy's.
    """
    far = np.abs(values) >= FARTHEST
    far_shares = stdtr(rank, values[far])
    _look_up(values.reshape(-1), _student_table(rank))
    values[far] = far_shares
    return values


class Voter(NamedTuple):
    """Rows about which balls vote."""

    columns: Array  # (l, m) inner products of the labelled rows' unit vectors with the rows
    blind: Mask | None = None  # (m,) rows orthogonal to every labelled one
    spread: Array | None = None  # (m,) of the noise of latent values, where labels may be wrong
    rank: int = 1  # degrees of freedom of that noise: the dimension of the labelled rows' span

    def times(self, record: Record) -> tuple[Array, float]:
        """Return how long a ball was on the positive side of each row (m,), and the round's length.

        Where labels may be wrong, the time at a position is divided between the sides.
        """
        if isinstance(record, Positions):
            return self._soft_times(record), record.length
        length = sum(segment.length for segment in record)
        total = np.zeros(self.columns.shape[1])
        for segment in record:
            positive = np.zeros(len(total))
            p = segment.position @ self.columns
            q = segment.velocity @ self.columns
            follow(self.columns, p, q, segment.walls, segment.kicks, segment.times, positive)
            total += positive
        # A ball that met no disagreement leaves none to rounding: its vote is 0 or 1.
        total[total <= ROUNDING * length] = 0.0
        total[total >= (1.0 - ROUNDING) * length] = length
        if self.blind is not None:  # no separator can tell such a row: half of them on either side
            total[self.blind] = length / 2
        return total, length

    def _soft_times(self, record: Positions) -> Array:
        """Return the sum over positions ``w`` of the probability of ``<w, phi> + noise > 0``."""
        assert self.spread is not None
        n_positions = len(record.coefficients)
        n_rows = self.columns.shape[1]
        sums = np.zeros(n_rows)
        for part in arrays.blocks(n_positions, max(1, MOST_NUMBERS // max(n_rows, 1))):
            votes = record.coefficients[part] @ self.columns
            np.divide(votes, self.spread, out=votes)
            sums += student_shares(votes, self.rank).sum(axis=0)
        return sums * (record.length / n_positions)


class Game:
    """Balls in one version space, one for each seed.

    Where labels may be wrong, the game is `soft`: it records positions, and otherwise whole
    flights.
    """

    def __init__(
        self,
        space: VersionSpace,
        seeds: Sequence[int],
        *,
        soft: bool,
        n_jobs: int | None = None,
        refresh: int | None = None,
    ) -> None:
        self.space = space
        self.n_bounces = 0
        self.pace = refresh or _bounces_of_segment(space, soft=soft)
        self._soft = soft
        self._n_jobs = n_jobs
        reach = choose_reach(space, seeds[0], self.pace)
        self._balls = [Ball(space, seed, reach) for seed in seeds]
        self._fly(max(1, WARM_UP // self.pace))

    def _fly(self, n_segments: int) -> list[list[Segment]]:
        """Let every ball fly so many segments."""
        return in_threads([partial(ball.run, n_segments) for ball in self._balls], self._n_jobs)

    def play(self, n_bounces: int) -> list[Record]:
        """Let every ball bounce about so often, one segment at least; return a record of each."""
        n_segments = max(1, round(n_bounces / self.pace))
        flights = self._fly(n_segments)
        n_walls = sum(len(segment.walls) for flight in flights for segment in flight)
        self.n_bounces += round(n_walls / len(flights))
        if not self._soft:
            return list(flights)
        n_rows = len(self.space.G)
        return [_keep_positions(flight, n_segments * self.pace, n_rows) for flight in flights]


def _keep_positions(flight: list[Segment], n_bounces: int, n_rows: int) -> Positions:
    """Return some positions of a flight of about so many bounces between so many rows."""
    count = max(FEWEST_POSITIONS, round(n_bounces / (SPACING * n_rows)))
    count = min(count, max(1, MOST_NUMBERS // n_rows))
    return Positions.of(flight, count)


class StraightGame:
    """The paper's game: one ball, whose bounces are counted exactly."""

    def __init__(self, space: VersionSpace, seed: int, *, soft: bool) -> None:
        self.space = space
        self.n_bounces = 0
        self.pace = 1
        self._soft = soft
        self._ball = StraightBall(space, seed)

    def play(self, n_bounces: int) -> list[Record]:
        """Let the ball bounce exactly so often; return its record."""
        flight = self._ball.run(n_bounces)
        self.n_bounces += n_bounces
        if not self._soft:
            return [flight]
        return [_keep_positions(flight, n_bounces, len(self.space.G))]


def _bounces_of_segment(space: VersionSpace, *, soft: bool) -> int:
    """Return after how many bounces a velocity is drawn anew."""
    n_rows, rank = space.root.shape
    most = rank * MOST_REFRESH
    if soft:
        most = rank * MOST_SOFT_REFRESH
    return max(LEAST_REFRESH, n_rows, min(rank**2 // 5, most))


Round = list[list[Record]]  # of every game, and every ball in it
Voters = Iterable[tuple[slice, Voter]]  # some rows at a time


def held_classes(n_classes: int) -> AnyArray:
    """Return the classes held against the rest: the second of two, or each of several."""
    if n_classes == 2:
        return np.arange(1, 2)
    return np.arange(n_classes)


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
                "A labelled row has length 0 in feature space: no separator can tell it; "
                "give bias > 0."
            )
        G = np.ascontiguousarray(A / norms / norms[:, None])
        return cls(VersionSpace.of(G, np.ones(len(G))), norms, softness)

    def games(
        self,
        codes: AnyArray,
        n_classes: int,
        seeds: AnyArray,
        n_jobs: int | None,
        refresh: int | None = None,
        most_bounces: int | None = None,
    ) -> list[Game | StraightGame]:
        """Return one game for two classes, or one for each of several, one-vs-rest.

        Seeds have shape (games, balls); a single ball plays the paper's game. Velocities are drawn
        anew after `refresh` bounces, no more than `most_bounces`.
        """
        soft = self.softness > 0.0
        games: list[Game | StraightGame] = []
        for held_class, ball_seeds in zip(held_classes(n_classes), seeds, strict=True):
            space = replace(self.space, signs=np.where(codes == held_class, 1.0, -1.0))
            if len(ball_seeds) == 1:
                games.append(StraightGame(space, ball_seeds[0], soft=soft))
                continue
            pace = refresh or _bounces_of_segment(space, soft=soft)
            if most_bounces is not None:
                pace = min(pace, most_bounces)
            games.append(Game(space, ball_seeds, soft=soft, n_jobs=n_jobs, refresh=pace))
        return games

    def voter(self, K_la: Array, k_aa: Array) -> Voter:
        """Return the voter for kernel columns (l, m) and the diagonal (m,), bias included in both.

        A normal vector of feature space is a direction ``w`` of the rows' span, of r dimensions,
        times a length that is independent of it (chi with r degrees of freedom), and a part outside
        the span. So the sign of a latent value with slack, given ``w``, is that of
        ``sqrt(r) <w, phi> / outside`` less a Student's t with r degrees of freedom.
        """
        columns = np.ascontiguousarray(K_la / self.norms[:, None])
        lengths = np.sqrt(np.maximum(k_aa, 0.0))
        blind = np.abs(columns).max(axis=0, initial=0.0) <= 1e-14 * lengths
        if self.softness == 0.0:
            return Voter(columns, blind)
        rank = self.space.rank
        coordinates = self.space.coordinates(columns)
        squares = k_aa + self.softness
        inside = np.einsum("ij,ij->j", coordinates, coordinates)
        outside = np.maximum(squares - inside, 1e-12 * squares)
        return Voter(columns, blind, np.sqrt(outside / rank), rank)


def standard_errors(shares_of_balls: Array, n_bounces: int) -> Array:
    """Return the standard errors of shares, by their differences along the last axis but one.

    These are balls. Of a single ball the bound of the paper's rule (8), as if its bounces were
    independent: a mean of so many numbers between 0 and 1 has no larger standard deviation.
    """
    n_balls = shares_of_balls.shape[-2]
    if n_balls == 1:
        return np.full_like(shares_of_balls[..., 0, :], 0.5 / np.sqrt(max(n_bounces, 1)))
    return shares_of_balls.std(axis=-2, ddof=1) / np.sqrt(n_balls)


def probabilities(flown: Array, n_bounces: int = 0) -> tuple[Array, Array]:
    """Return the probability of every class and its standard error, both (m, n_classes).

    `flown` is what `count_votes` returns, after so many bounces. Several classes are normalised,
    ball by ball for the standard errors.
    """
    positive, length = flown
    shares = positive.sum(axis=1) / length.sum(axis=1)
    shares_of_balls = positive / length
    if len(shares) > 1:
        shares = _normalised(shares)
        shares_of_balls = _normalised(shares_of_balls)
    errors = standard_errors(shares_of_balls, n_bounces)
    if len(shares) == 1:
        shares = np.concatenate([1.0 - shares, shares])
        errors = np.concatenate([errors, errors])
    return shares.T, errors.T


def _normalised(votes: Array) -> Array:
    """Return votes that sum to 1 along the first axis; even where no class got any."""
    total = votes.sum(axis=0)
    even = np.full_like(votes, 1.0 / len(votes))
    return np.divide(votes, total, out=even, where=total > 0.0)


def count_votes(
    rounds: Sequence[Round],
    n_rows: int,
    voters: Voters,
    n_jobs: int | None,
) -> Array:
    """Return the time on the positive side, and in all, of games, balls and rows (2, c, k, m)."""
    n_games = len(rounds[0])
    n_balls = len(rounds[0][0])
    flown = np.zeros((2, n_games, n_balls, n_rows))
    records = []
    for games in rounds:
        for game, balls in enumerate(games):
            records += [(game, ball, record) for ball, record in enumerate(balls)]
    for part, voter in voters:
        jobs = [partial(voter.times, record) for _, _, record in records]
        counts = in_threads(jobs, n_jobs)
        for (game, ball, _), (positive, length) in zip(records, counts, strict=True):
            flown[0, game, ball, part] += positive
            flown[1, game, ball, part] += length
    return flown
