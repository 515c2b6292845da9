"""`Regions`: a union of closed intervals for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray, Array, Mask


class Regions:
    """A ragged set of closed intervals: one union for each row.

    Parameters
    ----------
    pieces : array of shape (n_pieces, 2)
        Ends of every interval, the rows one after another; within a row ascending and disjoint. They may be infinite.
    offsets : array of shape (n + 1,)
        The intervals of row i are ``pieces[offsets[i] : offsets[i + 1]]``.

    Examples
    --------
    >>> regions = Regions.from_pieces([[(0, 1)], [(-np.inf, 2), (3, 5)]])
    >>> regions
    Regions of 2 rows:
      0: [0, 1]
      1: (-∞, 2] ∪ [3, 5]
    >>> regions.contains([0.5, 2.5])
    array([ True, False])
    """

    def __init__(self, pieces: Any, offsets: Any) -> None:
        if not arrays.is_foreign(pieces):
            pieces = np.array(pieces, dtype=float).reshape(-1, 2)
        offsets = np.array(offsets, dtype=np.intp)
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != pieces.shape[0]:
            raise ValueError("offsets must start at 0 and end at the number of pieces.")
        counts = offsets[1:] - offsets[:-1]
        if counts.min(initial=0) < 0:
            raise ValueError("offsets must not decrease.")
        if not bool(arrays.namespace(pieces).all(pieces[:, 0] <= pieces[:, 1])):
            raise ValueError("Each piece needs a lower end that is not above its upper end.")
        if counts.max(initial=0) > 1:
            row = np.repeat(np.arange(len(counts)), counts)
            follows = row[1:] == row[:-1]
            after, before = (arrays.pick(ends, follows) for ends in (pieces[1:, 0], pieces[:-1, 1]))
            if bool(arrays.namespace(pieces).any(after <= before)):
                raise ValueError("The pieces of a row must be disjoint and in ascending order.")
        self.pieces = pieces
        self.offsets = offsets

    @classmethod
    def from_pieces(cls, rows: Iterable[Any]) -> Regions:
        """Build from one sequence of (lower, upper) pairs for each row; a row may have none."""
        arrays = [np.asarray(row, dtype=float).reshape(-1, 2) for row in rows]
        offsets = np.cumsum([0, *map(len, arrays)])
        return cls(np.concatenate([*arrays, np.empty((0, 2))]), offsets)

    @classmethod
    def from_intervals(cls, intervals: Any) -> Regions:
        """Build from an array of shape (n, 2): one interval for each row."""
        if not arrays.is_foreign(intervals):
            intervals = np.asarray(intervals, dtype=float).reshape(-1, 2)
        return cls(intervals, np.arange(intervals.shape[0] + 1))

    @classmethod
    def concatenate(cls, parts: Iterable[Regions]) -> Regions:
        """Return the rows of several `Regions`, one after another."""
        parts = list(parts) or [cls.from_pieces([])]
        counts = np.concatenate([part.n_pieces for part in parts])
        pieces = arrays.namespace(parts[0].pieces).concat([part.pieces for part in parts], axis=0)
        return cls(pieces, np.concatenate([[0], np.cumsum(counts)]))

    def to_arrays(self) -> tuple[Array, AnyArray]:
        """Return copies of ``(pieces, offsets)``; ``Regions(*regions.to_arrays())`` is the way back."""
        return arrays.copy(self.pieces), self.offsets.copy()

    def to_numpy(self) -> Regions:
        """Return the same regions as numpy arrays; themselves if they are."""
        return Regions(arrays.to_numpy(self.pieces), self.offsets) if arrays.is_foreign(self.pieces) else self

    @property
    def n_pieces(self) -> AnyArray:
        """Number of intervals of each row, shape (n,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> Any:
        """Return the (k, 2) array of one row, or the `Regions` of a slice, mask or list of rows."""
        if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
            row = int(rows) + (len(self) if rows < 0 else 0)
            if not 0 <= row < len(self):
                raise IndexError(f"row {rows} of {len(self)}")
            return arrays.copy(self.pieces[int(self.offsets[row]) : int(self.offsets[row + 1]), :])
        chosen = np.arange(len(self))[rows]
        counts = self.n_pieces[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], counts)
        return Regions(arrays.pick(self.pieces, at), offsets)

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Regions):
            return NotImplemented
        pieces = (arrays.to_numpy(regions.pieces) for regions in (self, other))
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(*pieces)

    __hash__ = None  # type: ignore[assignment]

    def contains(self, y: Any) -> Mask:
        """Return whether each row's region holds a label, or its own label (n,); a missing one (NaN) is in none."""
        labels = y if arrays.is_foreign(y) else np.asarray(y, dtype=float)
        if labels.ndim and labels.shape != (len(self),):
            said = f"Give one label, or one for each of the {len(self)} rows"
            raise ValueError(f"{said}; got shape {labels.shape}.")
        return self._over_pieces(lambda ends, own: (ends[:, 0] <= own) & (own <= ends[:, 1]), labels, "bool")

    def _over_pieces(self, function: Any, own: Any, dtype: str) -> Any:
        """Return the sum, over the pieces of each row, of a function of ends and of the row's own number."""
        counts, pieces = self.n_pieces, self.pieces
        xp = arrays.namespace(pieces)
        own = xp.broadcast_to(arrays.beside(own, pieces, "float64"), (len(self),))
        total = xp.zeros_like(own, dtype=getattr(xp, dtype))
        # Every row has a first piece, some have a second, few a third: one step for each.
        for place in range(int(counts.max(initial=0))):
            at = np.where(counts > place, self.offsets[:-1] + place, 0)
            each = function(arrays.pick(pieces, at), own)
            each = xp.where(arrays.beside(counts > place, pieces), each, xp.zeros_like(each))
            total = total | each if dtype == "bool" else total + each
        return total

    def holding(self, values: Any) -> Regions:
        """Return the regions, each extended to its row's value (n,) if there is one, from the nearest piece.

        Examples
        --------
        >>> Regions.from_pieces([[(0, 1)], [(0, 1), (4, 5)], []]).holding([2, 3, 7])
        Regions of 3 rows:
          0: [0, 2]
          1: [0, 1] ∪ [3, 5]
          2: {7}
        """
        host, values = self.to_numpy(), np.asarray(arrays.to_numpy(values), dtype=float)
        lost = ~host.contains(values) & ~np.isnan(values)
        if not lost.any():
            return self
        rows = list(host)
        for row in np.flatnonzero(lost):
            pieces, value = rows[row], values[row]
            if not len(pieces):
                rows[row] = np.array([[value, value]])
                continue
            distance = np.maximum(pieces[:, 0] - value, value - pieces[:, 1])
            near = int(distance.argmin())
            pieces[near] = min(pieces[near, 0], value), max(pieces[near, 1], value)
        extended = Regions.from_pieces(rows)
        return Regions(arrays.beside(extended.pieces, self.pieces), extended.offsets)

    def within(self, lower: float, upper: float) -> Regions:
        """Return the parts of every region between two numbers; the nearer one where nothing is left."""
        rows = []
        for row in self:
            cut = np.clip(row, lower, upper)
            kept = cut[(row[:, 1] >= lower) & (row[:, 0] <= upper)]
            rows.append(kept if len(kept) else cut[:1])
        return Regions.from_pieces(rows)

    def opened(self, below: float, above: float) -> Regions:
        """Return the regions, with all that is less where one reaches `below`, and all that is more from `above` on.

        Examples
        --------
        >>> Regions.from_pieces([[(0, 3)], [(-2, 0), (4, 5)]]).opened(1, 6)
        Regions of 2 rows:
          0: (-∞, 3]
          1: (-∞, 0] ∪ [4, 5]
        """
        rows = []
        for row in self.to_numpy():
            low, high = row[row[:, 0] <= below], row[row[:, 1] >= above]
            rest = row[(row[:, 0] > below) & (row[:, 1] < above)]
            more = [[-np.inf, low[:, 1].max()]] if len(low) else []
            more += [[high[:, 0].min(), np.inf]] if len(high) else []
            rows.append(_joined([*more, *rest.tolist()]))
        return Regions.from_pieces(rows)

    def hull(self) -> Array:
        """Return the smallest interval around each row's region, shape (n, 2); NaN where it is empty."""
        some = self.n_pieces > 0
        if not some.any():
            return arrays.zeros((len(self), 2), self.pieces) + np.nan
        ends = [np.where(some, self.offsets[:-1], 0), np.where(some, self.offsets[1:] - 1, 0)]
        xp = arrays.namespace(self.pieces)
        hull = xp.stack([arrays.pick(self.pieces, at)[:, j] for j, at in enumerate(ends)], axis=1)
        return xp.where(arrays.beside(some, hull)[:, None], hull, xp.full_like(hull, xp.nan))

    def measure(self) -> Array:
        """Return the total length of each row's region, shape (n,); infinite where it has a ray."""
        return self._over_pieces(lambda ends, own: ends[:, 1] - ends[:, 0], 0.0, "float64")

    def __repr__(self) -> str:
        shown = min(len(self), 6)
        lines = [f"  {row}: {_mathematics(arrays.to_numpy(self[row]))}" for row in range(shown)]
        if shown < len(self):
            lines.append(f"  … and {len(self) - shown} more")
        return "\n".join([f"Regions of {len(self)} row{'s' * (len(self) != 1)}:", *lines])


def _joined(pieces: list[Any]) -> list[Any]:
    """Return intervals in order, those that meet as one."""
    joined: list[Any] = []
    for low, high in sorted(pieces):
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    return joined


def _mathematics(pieces: Array) -> str:
    """Return a union of closed intervals in the usual notation."""
    if len(pieces) == 0:
        return "∅"

    def write(lower: float, upper: float) -> str:
        left = "(-∞" if lower == -np.inf else f"[{lower:.4g}"
        right = "∞)" if upper == np.inf else f"{upper:.4g}]"
        return f"{{{lower:.4g}}}" if lower == upper else f"{left}, {right}"

    return " ∪ ".join(write(lower, upper) for lower, upper in pieces)
