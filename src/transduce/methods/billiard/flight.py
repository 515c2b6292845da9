"""A billiard ball in version space: the sphere of all directions that get every labelled row right.

Rows are unit vectors ``u_i = phi_i / |phi_i|`` of feature space, known by their inner products ``G``, with signs
``y_i``. A ball is a position ``w`` and a velocity ``v``, orthogonal unit vectors in the span of the rows; it is enough
to know ``a_i = <w, u_i>`` and ``b_i = <v, u_i>``. It flies along great circles (``a cos t + b sin t``) until some
``a_i`` is 0, and is reflected there: ``b <- b - 2 b_c G[c]``. That costs ``O(l)``, and leaves a trace, wall, kick
``-2 b_c`` and time, from which everything else follows: with ``T`` the time since a known position and velocity and
``T_k`` that of kick k::

    w(T) = cos(T) w(0) + sin(T) v(0) + sum_k kick_k sin(T - T_k) u_{wall k}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.linalg import lapack
from scipy.optimize import linprog

from transduce.core.types import AnyArray, Array

MOST_AT_ONCE = 10_000  # bounces
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
        upto = np.searchsorted(ends, moments, side="right")
        kicks = self.kicks * np.cos(ends), self.kicks * np.sin(ends)
        turns = np.cos(moments), np.sin(moments)
        return _follow(self.position, self.velocity, self.walls, kicks, turns, upto)


@numba.njit(cache=True, nogil=True)
def _follow(
    position: Array,
    velocity: Array,
    walls: AnyArray,
    kicks: tuple[Array, Array],
    moments: tuple[Array, Array],
    upto: AnyArray,
) -> Array:
    """Return positions (s, l) at moments, given by cosine and sine, after so many kicks, times cosine and sine too."""
    rest, turn, done = position.copy(), velocity.copy(), 0
    found = np.empty((len(upto), len(rest)))
    for i in range(len(upto)):
        less, more = np.zeros(len(rest)), np.zeros(len(rest))
        for k in range(done, upto[i]):
            less[walls[k]] += kicks[1][k]
            more[walls[k]] += kicks[0][k]
        done = max(done, upto[i])
        for j in range(len(rest)):
            rest[j] -= less[j]
            turn[j] += more[j]
            found[i, j] = moments[0][i] * rest[j] + moments[1][i] * turn[j]
    return found


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
                "The kernel matrix is not positive semidefinite: the kernel is not a proper one for these rows. Use "
                "another kernel, or a larger softness."
            )
        keep = values > 1e-10 * values[-1]
        scale = np.sqrt(values[keep])
        return cls(G, vectors[:, keep] * scale, vectors[:, keep] / scale, signs)

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
        """Return the r coordinates of vectors with these inner products with the rows, or the nearest by squares."""
        if self.inverse is not None:
            return self.inverse.T @ products
        return lapack.dtrtrs(self.root, products, lower=1)[0]

    def start(self, random: np.random.RandomState) -> Array:
        """Return coefficients of a random unit vector inside version space."""
        margins = self.signs * (random.exponential(size=len(self.G)) + 0.1)
        coordinates = self.coordinates(margins)
        if self.inverse is not None and not (self.signs * (self.root @ coordinates)).min() > 0.0:
            coordinates = self._separate(np.abs(margins))
        return self.coefficients(coordinates / np.linalg.norm(coordinates))

    def _separate(self, margins: Array) -> Array:
        """Return the separator, of bounded coordinates, with the largest multiple of these margins; or raise."""
        n_rows, rank = self.root.shape
        found = linprog(
            np.append(np.zeros(rank), -1.0),
            A_ub=np.column_stack([-self.signs[:, None] * self.root, margins]),
            b_ub=np.zeros(n_rows),
            bounds=[(-1.0, 1.0)] * rank + [(None, 1.0)],
        )
        if not found.success or found.x[-1] <= 1e-10:
            raise EmptyVersionSpaceError("no separator gets every labelled row right")
        return found.x[:-1]

    def velocity(self, position: Array, random: np.random.RandomState) -> Array:
        """Return coefficients of a random unit vector orthogonal to a position."""
        here, fresh = self.root.T @ position, random.normal(size=self.rank)
        fresh -= float(fresh @ here) / float(here @ here) * here
        return self.coefficients(fresh / np.linalg.norm(fresh))


# Sums and maxima may be taken in any order, which lets the compiler work on several rows at once; NaN cannot occur.
@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _advance(
    column: Array, signs: Array, a: Array, b: Array, steepness: Array, turn: tuple[float, float, float]
) -> float:
    """Turn to the wall and reflect, in place; fill in ``-b / a``, and return the largest, which is the next wall's."""
    (cosine, sine, kick), largest = turn, -1e308
    for i in range(a.size):
        old = a[i]
        new = old * cosine + b[i] * sine
        speed = b[i] * cosine - old * sine + kick * column[i]
        a[i], b[i] = new, speed
        ratio = -signs[i] * speed / max(signs[i] * new, TINY)
        steepness[i] = ratio
        largest = max(largest, ratio)
    return largest


@numba.njit(cache=True, nogil=True)
def fly(G: Array, signs: Array, a: Array, b: Array, walls: AnyArray, kicks: Array, times: Array) -> None:
    """Let the ball bounce as often as the traces (k,) have room for; `a`, `b` (l,) are where it starts, then ends."""
    steepness = np.empty(a.size)
    cosine, sine, wall, kick = 1.0, 0.0, 0, 0.0
    for bounce in range(walls.size + 1):
        largest = _advance(G[wall], signs, a, b, steepness, (cosine, sine, kick))
        if bounce == walls.size:
            return
        wall = 0
        while wall < a.size - 1 and steepness[wall] != largest:
            wall += 1
        flight = np.arctan2(1.0, largest)
        cosine, sine = np.cos(flight), np.sin(flight)
        kick = -2.0 * (b[wall] * cosine - a[wall] * sine)
        walls[bounce], kicks[bounce], times[bounce] = wall, kick, flight


class Ball:
    """A ball in version space: `position` (l,) are coefficients of a unit vector inside."""

    def __init__(self, space: VersionSpace, seed: int, reach: float) -> None:
        self.space, self.random = space, np.random.RandomState(seed)
        self.position = space.start(self.random)
        self.reach = reach  # mean length of a segment, after which the velocity is drawn anew

    def run(self, n_segments: int) -> list[Segment]:
        """Fly so many segments, each with a fresh velocity; return the flight."""
        return [self._run_segment() for _ in range(n_segments)]

    def _run_segment(self) -> Segment:
        space, position = self.space, self.position
        if space.rank == 1:  # a single direction: the ball rests
            return Segment(position, np.zeros_like(position), np.zeros(1, np.int32), np.zeros(1), np.ones(1))
        velocity = space.velocity(position, self.random)
        a, b = (space.root @ (space.root.T @ vector) for vector in (position, velocity))
        length = self.reach * (0.5 + self.random.random_sample())
        segment = Segment(position, velocity, *_fly_for(space, a, b, length))
        # The end anew from the trace, through coordinates and as a unit vector, so that rounding does not pile up and
        # coefficients of dependent rows do not run away.
        end = space.root.T @ segment.at(np.array([segment.length]))[0]
        self.position = space.coefficients(end / np.linalg.norm(end))
        return segment


def _fly_for(space: VersionSpace, a: Array, b: Array, reach: float) -> tuple[AnyArray, Array, Array]:
    """Return walls, kicks and times of a flight of this length; the last flight ends in the air."""
    traces, length, size = [], 0.0, max(32, len(a))
    while length < reach:
        trace = (np.empty(size, np.int32), np.empty(size), np.empty(size))
        fly(space.G, space.signs, a, b, *trace)
        traces.append(trace)
        length += float(trace[2].sum())
        done = sum(len(part[0]) for part in traces)
        size = int(np.clip(1.1 * (reach / length - 1.0) * done, 32, MOST_AT_ONCE))
    walls, kicks, times = (np.concatenate(parts) for parts in zip(*traces, strict=True))
    ends = np.cumsum(times)
    last = int(np.searchsorted(ends, reach))
    times[last] -= ends[last] - reach
    kicks[last] = 0.0
    return walls[: last + 1], kicks[: last + 1], times[: last + 1]


def _first_reach(space: VersionSpace, position: Array, seed: int) -> float:
    """Return 1, or the length of a thousand bounces where a flight of length 1 would have very many."""
    velocity = space.velocity(position, np.random.RandomState(seed))
    a, b = (space.root @ (space.root.T @ vector) for vector in (position, velocity))
    trace = (np.empty(1000, np.int32), np.empty(1000), np.empty(1000))
    fly(space.G, space.signs, a, b, *trace)
    length = float(trace[2].sum())
    if not length > 1e-9:
        raise EmptyVersionSpaceError("version space is smaller than rounding tells")
    return 1.0 if length > 0.01 else length


def choose_reach(space: VersionSpace, seed: int, n_bounces: int) -> float:
    """Return the length of a flight of about so many bounces, from a trial."""
    ball, some = Ball(space, seed, 1.0), max(20, n_bounces // 10)
    if space.rank > 1:
        ball.reach = _first_reach(space, ball.position, seed)
    for wanted in (20, some, some, n_bounces):
        # Flights are long with some velocities and short with others: count over several, and correct the reach. The
        # last flight of a segment is half a flight on average.
        bounces = sum(len(segment.walls) - 0.5 for segment in ball.run(8))
        ball.reach *= 8 * wanted / bounces
    return float(ball.reach)
