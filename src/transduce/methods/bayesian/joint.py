"""Joint labellings of several rows, and the centre of version space, from recorded flights.

A labelling of r rows is a cell of version space: the separators that put every row on its side. Its
probability is the share of the flight inside it (Graepel and others 1999, equation 1). Labellings
are whole numbers here, whose bit j says whether row j is on the positive side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numba
import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.methods.bayesian.balls import (
    Positions,
    Record,
    Round,
    Segment,
    Trace,
    standard_errors,
)

MOST_ROWS = 62  # bits of a labelling
CHUNK = 1000  # bounces followed at a time
DRAWS = 20_000  # of labels at least, for all positions of a ball, where labels may be wrong


class CellShares(NamedTuple):
    """Labellings of some rows, with the share of the flights in each."""

    cells: AnyArray  # (p,)
    shares: Array  # (p,)
    errors: Array  # (p,) their standard errors


@numba.njit(cache=True, nogil=True)
def _insert_in_order(
    moments: Array,
    rows: AnyArray,
    number: int,
    moment: float,
    row: int,
) -> None:
    """Add a moment, and its row, to so many that are in the order of time."""
    place = number
    while place > 0 and moments[place - 1] > moment:
        moments[place] = moments[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    moments[place] = moment
    rows[place] = row


@numba.njit(cache=True, nogil=True)
def _follow_cells(
    columns: Array,
    p: Array,
    q: Array,
    trace: Trace,
    cells: AnyArray,
    lengths: Array,
) -> int:
    """Write the cells that a flight passes, and how long it stays in each; return how many.

    Rows have inner products `columns` (l, r) with the labelled rows, and `p`, `q` (r,) with the
    ball's position and velocity, which are moved along. A flight crosses each row's wall at most
    once, so that there is room for ``r + 1`` cells a bounce.
    """
    walls, kicks, times = trace
    n_rows = p.size
    crossed = np.empty(n_rows, np.int64)
    moments = np.empty(n_rows)
    n_cells = 0
    for k in range(walls.size):
        time = times[k]
        cosine = np.cos(time)
        sine = np.sin(time)
        cell = 0
        n_crossed = 0
        for j in range(n_rows):
            before = p[j]
            speed = q[j]
            after = before * cosine + speed * sine
            if before > 0.0:
                cell |= 1 << j
            if (before > 0.0) != (after > 0.0):
                side = 1.0 if before > 0.0 else -1.0
                moment = min(np.arctan2(side * before, -side * speed), time)
                _insert_in_order(moments, crossed, n_crossed, moment, j)
                n_crossed += 1
            p[j] = after
            q[j] = speed * cosine - before * sine + kicks[k] * columns[walls[k], j]
        last = 0.0
        for i in range(n_crossed):
            cells[n_cells] = cell
            lengths[n_cells] = moments[i] - last
            n_cells += 1
            cell ^= 1 << crossed[i]
            last = moments[i]
        cells[n_cells] = cell
        lengths[n_cells] = time - last
        n_cells += 1
    return n_cells


def _cells_of_segment(segment: Segment, columns: Array) -> Iterator[tuple[AnyArray, Array]]:
    """Yield cells, and the time spent in each, some bounces at a time."""
    p = segment.position @ columns
    q = segment.velocity @ columns
    cells = np.empty(CHUNK * (len(p) + 1), dtype=np.int64)
    lengths = np.empty(len(cells))
    for start in range(0, len(segment.walls), CHUNK):
        part = slice(start, start + CHUNK)
        trace = (segment.walls[part], segment.kicks[part], segment.times[part])
        n_cells = _follow_cells(columns, p, q, trace, cells, lengths)
        yield _sum_by_cell(cells[:n_cells], lengths[:n_cells])


class SoftRows(NamedTuple):
    """Rows whose labels may be wrong, given the direction of a separator."""

    noise_root: Array  # (r, r) ``R`` with ``R R'`` the covariance of latent values beside it
    rank: int  # of the labelled rows' span

    def draw(
        self, record: Positions, columns: Array, random: np.random.RandomState
    ) -> tuple[AnyArray, Array]:
        """Draw labels at every position; return labellings, and the time that they stand for.

        A normal vector of feature space is a direction times a length, chi with `rank` degrees of
        freedom; what is outside of the labelled rows' span, and slack, is noise.
        """
        votes = record.coefficients @ columns
        n_draws = -(-DRAWS // len(votes))
        means = np.repeat(votes, n_draws, axis=0)
        lengths = np.sqrt(random.chisquare(self.rank, size=len(means)))
        noise = random.standard_normal(means.shape) @ self.noise_root.T
        latent = lengths[:, None] * means + noise
        bits = np.left_shift(1, np.arange(latent.shape[1], dtype=np.int64))
        cells = (latent > 0.0) @ bits
        return _sum_by_cell(cells, np.full(len(cells), record.length / len(cells)))


def _sum_by_cell(cells: AnyArray, lengths: Array) -> tuple[AnyArray, Array]:
    """Return the distinct cells, and the time spent in each."""
    distinct, places = np.unique(cells, return_inverse=True)
    totals = np.bincount(places, weights=lengths, minlength=len(distinct))
    return distinct, totals.astype(float)


def cell_shares(
    rounds: Sequence[Round], columns: Array, soft: SoftRows | None, n_bounces: int
) -> CellShares:
    """Return the shares of all labellings that the balls of the only game met, largest first.

    Rows have inner products `columns` (l, r) with the labelled rows' unit vectors; `soft` is given
    where labels may be wrong.
    """
    n_balls = len(rounds[0][0])
    random = np.random.RandomState(0)
    totals: list[dict[int, float]] = [{} for _ in range(n_balls)]
    for games in rounds:
        for ball, record in enumerate(games[0]):
            total = totals[ball]
            for cells, lengths in _cells_of_record(record, columns, soft, random):
                for cell, length in zip(cells.tolist(), lengths.tolist(), strict=True):
                    total[cell] = total.get(cell, 0.0) + length
    return _compare_balls(totals, n_bounces)


def _cells_of_record(
    record: Record, columns: Array, soft: SoftRows | None, random: np.random.RandomState
) -> Iterator[tuple[AnyArray, Array]]:
    """Yield cells of one record, and the time spent in each."""
    if isinstance(record, Positions):
        assert soft is not None
        yield soft.draw(record, columns, random)
        return
    for segment in record:
        yield from _cells_of_segment(segment, columns)


def _compare_balls(totals: list[dict[int, float]], n_bounces: int) -> CellShares:
    """Return shares of the time of all balls, with standard errors by their differences."""
    cells = np.array(sorted(set().union(*totals)), dtype=np.int64)
    times = np.zeros((len(totals), len(cells)))
    for ball, total in enumerate(totals):
        times[ball] = [total.get(cell, 0.0) for cell in cells.tolist()]
    lengths = times.sum(axis=1, keepdims=True)
    shares = times.sum(axis=0) / lengths.sum()
    errors = standard_errors(times / lengths, n_bounces)
    order = np.argsort(-shares, kind="stable")
    return CellShares(cells[order], shares[order], errors[order])


def centre_of_mass(rounds: Sequence[Round], game: int) -> Array:
    """Return the mean position (l,) of the balls of a game, as coefficients on the unit vectors."""
    total = np.zeros(0)
    length = 0.0
    for games in rounds:
        for record in games[game]:
            part, part_length = _integrate(record)
            total = part if not len(total) else total + part
            length += part_length
    return total / length


def _integrate(record: Record) -> tuple[Array, float]:
    """Return the integral of the position over a record (l,), and its length."""
    if isinstance(record, Positions):
        return record.coefficients.mean(axis=0) * record.length, record.length
    total = np.zeros_like(record[0].position)
    length = 0.0
    for segment in record:
        ends = np.cumsum(segment.times)
        end = float(ends[-1])
        # w(t) = cos(t) w(0) + sin(t) v(0) + sum_k kick_k sin(t - T_k) u_k, each from T_k on.
        total += np.sin(end) * segment.position + (1.0 - np.cos(end)) * segment.velocity
        kicks = segment.kicks * (1.0 - np.cos(end - ends))
        total += np.bincount(segment.walls, weights=kicks, minlength=len(total))
        length += end
    return total, length
