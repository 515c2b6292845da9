"""What every method returns: `Answer`, and `Regions` for unions of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from transduce.core import arrays, checks
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, Labels, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted

STATUSES = ("answered", "below", "above", "unusual", "tied", "rejected", "unreached")
N_PREVIEWED = 10  # rows that a notebook shows
UNSEEN = "or a class that no label shows"  # what a set says where such a class is possible


class Regions:
    """A ragged set of closed intervals: one union for each row.

    Parameters
    ----------
    pieces : array of shape (n_pieces, 2)
        Ends of every interval, the rows one after another; within a row ascending and disjoint.
        They may be infinite.
    offsets : array of shape (n + 1,), optional
        The intervals of row i are ``pieces[offsets[i] : offsets[i + 1]]``; by default each row has
        one.

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

    def __init__(self, pieces: Any, offsets: Any = None) -> None:
        if not arrays.is_foreign(pieces):
            pieces = checks.as_floats("pieces", pieces).reshape(-1, 2)
        ends = arrays.to_numpy(pieces)
        if not (ends[:, 0] <= ends[:, 1]).all():
            raise ValueError("Each piece needs a lower end that is not above its upper end.")
        self.pieces = pieces
        if offsets is None:
            self.offsets = np.arange(pieces.shape[0] + 1)
        else:
            self.offsets = np.array(offsets, dtype=np.intp)
            self._check_offsets(ends)

    def _check_offsets(self, ends: Array) -> None:
        places = self.offsets
        is_list = places.ndim == 1 and len(places) > 0
        if not is_list or places[0] != 0 or places[-1] != len(ends):
            raise ValueError("offsets must start at 0 and end at the number of pieces.")
        counts = self.n_pieces
        if counts.min(initial=0) < 0:
            raise ValueError("offsets must not decrease.")
        if counts.max(initial=0) > 1:  # as a rule every row has one piece
            row, _ = self._by_piece()
            same_row = row[1:] == row[:-1]
            touching = ends[1:, 0] <= ends[:-1, 1]
            if np.any(same_row & touching):
                raise ValueError("The pieces of a row must be disjoint and in ascending order.")

    @classmethod
    def from_pieces(cls, rows: Iterable[Any]) -> Regions:
        """Build regions from their pieces.

        Parameters
        ----------
        rows : iterable
            For each row a sequence of (lower, upper) pairs, which may be empty.

        Returns
        -------
        Regions
        """
        pieces = [np.asarray(row, dtype=float).reshape(-1, 2) for row in rows]
        offsets = np.cumsum([0, *map(len, pieces)])
        no_pieces = np.empty((0, 2))
        return cls(np.concatenate([*pieces, no_pieces]), offsets)

    @classmethod
    def from_intervals(cls, intervals: Any) -> Regions:
        """Build regions of one interval for each row.

        Parameters
        ----------
        intervals : array-like of shape (n, 2)
            Lower and upper ends.

        Returns
        -------
        Regions
        """
        return cls(intervals)

    @classmethod
    def from_touching(cls, ends: Array, counts: AnyArray) -> Regions:
        """Build regions of pieces some of which may touch, or overlap: those are joined.

        Parameters
        ----------
        ends : array of shape (k, 2)
            Lower and upper ends of the pieces, row by row, ascending within a row.
        counts : integer array of shape (n,)
            How many pieces each row has.

        Returns
        -------
        Regions
        """
        row = np.repeat(np.arange(len(counts)), counts)
        is_next_row = row[1:] != row[:-1]
        begins = is_next_row | (ends[1:, 0] > ends[:-1, 1])
        is_first = np.append(True, begins)[: len(row)]
        is_last = np.append(begins, True)[: len(row)]
        joined = np.column_stack([ends[is_first, 0], ends[is_last, 1]])
        n_joined = np.bincount(row[is_first], minlength=len(counts))
        return cls(joined, np.append(0, np.cumsum(n_joined)))

    @classmethod
    def concatenate(cls, parts: Iterable[Regions]) -> Regions:
        """Return the rows of several `Regions`, one after another.

        Parameters
        ----------
        parts : iterable of Regions
            What to join.

        Returns
        -------
        Regions
        """
        checks.check_type("parts", parts, Iterable, "a list of Regions")
        parts = list(parts) or [cls.from_pieces([])]
        for part in parts:
            checks.check_type("Each part", part, Regions, "Regions")
        counts = np.concatenate([part.n_pieces for part in parts])
        xp = arrays.namespace(parts[0].pieces)
        pieces = xp.concat([part.pieces for part in parts], axis=0)
        return cls(pieces, np.append(0, np.cumsum(counts)))

    def to_arrays(self) -> tuple[Array, AnyArray]:
        """Return copies of ``(pieces, offsets)``.

        ``Regions(*regions.to_arrays())`` is the way back.
        """
        return arrays.copy(self.pieces), self.offsets.copy()

    def _by_piece(self) -> tuple[AnyArray, Array]:
        """Return the row of each piece, and its ends, as arrays of numpy."""
        row = np.repeat(np.arange(len(self)), self.n_pieces)
        return row, arrays.to_numpy(self.pieces)

    @property
    def n_pieces(self) -> AnyArray:
        """Number of intervals of each row, shape (n,)."""
        return self.offsets[1:] - self.offsets[:-1]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> Any:
        """Return the (k, 2) array of one row, or the `Regions` of a slice, mask or list of rows."""
        if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"row {rows} of {len(self)}")
            row = range(len(self))[rows]
            start = int(self.offsets[row])
            stop = int(self.offsets[row + 1])
            return arrays.copy(self.pieces[start:stop, :])
        chosen = np.arange(len(self))[rows]
        counts = self.n_pieces[chosen]
        offsets = np.append(0, np.cumsum(counts))
        shift = self.offsets[chosen] - offsets[:-1]
        places = np.arange(offsets[-1]) + np.repeat(shift, counts)
        return Regions(arrays.pick(self.pieces, places), offsets)

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Regions):
            return NotImplemented
        pieces = (arrays.to_numpy(regions.pieces) for regions in (self, other))
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(*pieces)

    __hash__ = None  # type: ignore[assignment]

    def contains(self, y: Labels) -> Mask:
        """Return whether each row's region contains a label.

        Parameters
        ----------
        y : float or array-like of shape (n,)
            One label for all rows, or one for each. A missing label (NaN) is in no region.

        Returns
        -------
        boolean array of shape (n,)
        """
        labels = checks.as_floats("labels", arrays.to_numpy(y))
        if labels.ndim and labels.shape != (len(self),):
            raise ValueError(
                f"Give one label, or one for each of the {len(self)} rows; got shape "
                f"{labels.shape}."
            )
        row, ends = self._by_piece()
        label_of_piece = np.broadcast_to(labels, len(self))[row]
        holds = (ends[:, 0] <= label_of_piece) & (label_of_piece <= ends[:, 1])
        n_holding = np.bincount(row[holds], minlength=len(self))
        return arrays.asarray_like(n_holding > 0, self.pieces)

    def holding(self, values: Labels) -> Regions:
        """Return the regions, each extended to a value of its row; the nearest piece is extended.

        Parameters
        ----------
        values : array-like of shape (n,)
            NaN where a row has none.

        Returns
        -------
        Regions
        """
        values = np.asarray(arrays.to_numpy(values), dtype=float)
        lost = ~arrays.to_numpy(self.contains(values)) & ~np.isnan(values)
        if not lost.any():
            return self
        pieces = arrays.to_numpy(self.pieces).copy()
        empty = lost & (self.n_pieces == 0)
        for row in np.flatnonzero(lost & ~empty):
            of_row = pieces[self.offsets[row] : self.offsets[row + 1]]
            value = values[row]
            distances = np.maximum(of_row[:, 0] - value, value - of_row[:, 1])
            nearest = int(distances.argmin())
            of_row[nearest, 0] = min(of_row[nearest, 0], value)
            of_row[nearest, 1] = max(of_row[nearest, 1], value)
        places = self.offsets[:-1][empty]
        pieces = np.insert(pieces, places, values[empty][:, None], axis=0)
        offsets = np.append(0, np.cumsum(self.n_pieces + empty))
        return Regions(arrays.asarray_like(pieces, self.pieces), offsets)

    def within(self, lower: float, upper: float) -> Regions:
        """Return the parts of every region between two numbers.

        Parameters
        ----------
        lower, upper : float
            Where nothing is left the region is the nearer one of them.

        Returns
        -------
        Regions
        """
        lower = float(checks.as_floats("lower", lower))
        upper = float(checks.as_floats("upper", upper))
        row, ends = self._by_piece()
        kept = (ends[:, 1] >= lower) & (ends[:, 0] <= upper)
        counts = np.bincount(row[kept], minlength=len(self))
        lost = (self.n_pieces > 0) & (counts == 0)
        kept[self.offsets[:-1][lost]] = True
        counts = np.bincount(row[kept], minlength=len(self))
        offsets = np.append(0, np.cumsum(counts))
        return Regions(np.clip(ends[kept], lower, upper), offsets)

    def shifted(self, by: Array) -> Regions:
        """Return the regions, each moved by a number of its row, shape (n,)."""
        row, ends = self._by_piece()
        shift = np.asarray(by, dtype=float)[row]
        return Regions(ends + shift[:, None], self.offsets)

    def opened(self, below: float, above: float) -> Regions:
        """Return the regions, open where one reaches `below` or `above`."""
        ends = arrays.to_numpy(self.pieces).copy()
        ends[ends[:, 0] <= below, 0] = -np.inf
        ends[ends[:, 1] >= above, 1] = np.inf
        return Regions.from_touching(ends, self.n_pieces)

    def hull(self) -> Array:
        """Return the smallest interval that contains each row's region.

        Returns
        -------
        array of shape (n, 2)
            NaN if the region is empty.
        """
        ends = arrays.to_numpy(self.pieces)
        not_empty = self.n_pieces > 0
        first_piece = self.offsets[:-1][not_empty]
        last_piece = self.offsets[1:][not_empty] - 1
        hull = np.full((len(self), 2), np.nan)
        hull[not_empty, 0] = ends[first_piece, 0]
        hull[not_empty, 1] = ends[last_piece, 1]
        return arrays.asarray_like(hull, self.pieces)

    def measure(self) -> Array:
        """Return the total length of each row's region.

        Returns
        -------
        array of shape (n,)
            Infinite if the region has a ray.
        """
        row, ends = self._by_piece()
        alone = ends[:, 0] == ends[:, 1]  # a point, even one at infinity, has no length
        zeros = np.zeros(len(ends))
        length = np.subtract(ends[:, 1], ends[:, 0], out=zeros, where=~alone)
        lengths = np.bincount(row, length, len(self)).astype(float)  # of no piece integers
        return arrays.asarray_like(lengths, self.pieces)

    def __repr__(self) -> str:
        n_shown = min(len(self), 6)
        lines = []
        for row in range(n_shown):
            union = " ∪ ".join(_mathematics(*ends) for ends in arrays.to_numpy(self[row]))
            lines.append(f"  {row}: {union or '∅'}")
        if n_shown < len(self):
            lines.append(f"  … and {len(self) - n_shown} more")
        return "\n".join([f"Regions of {counted(len(self), 'row')}:", *lines])


def _mathematics(lower: float, upper: float) -> str:
    """Return a closed interval in the usual notation."""
    if lower == upper:
        return f"{{{lower:.4g}}}"
    if lower == -np.inf:
        left = "(-∞"
    else:
        left = f"[{lower:.4g}"
    if upper == np.inf:
        right = "∞)"
    else:
        right = f"{upper:.4g}]"
    return f"{left}, {right}"


@dataclass(frozen=True, eq=False)
class LevelAnswer:
    """The intervals, or sets, of an answer at a level besides its own."""

    level: float
    regions: Regions | None = None
    label_sets: Mask | None = None
    unseen: Mask | None = None

    @property
    def name(self) -> str:
        """The level as names of columns have it: in percent, such as 95 or 99.5."""
        return level_name(self.level)

    def at(self, places: AnyArray) -> LevelAnswer:
        """Return the intervals, or sets, at some of the rows, in the order of `places` (k,)."""
        names = ("regions", "label_sets", "unseen")
        picked = {name: _pick_rows(getattr(self, name), places) for name in names}
        return LevelAnswer(self.level, **picked)


def level_name(level: float) -> str:
    """Return a level as names of columns have it: in percent, such as 95 or 99.5."""
    return f"{100.0 * level:.12g}"


def _pick_rows(part: Any, places: AnyArray) -> Any:
    """Return what an answer has at some rows; None if it has nothing."""
    if part is None:
        return None
    if arrays.is_foreign(part):
        return arrays.pick(part, places)
    return part[places]


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer at the unlabelled rows; numbers live where the features do, all else is numpy's.

    Parameters
    ----------
    rows, values : array of shape (m,)
        Positions of the unlabelled rows in the sample, and the answers: numbers, or class labels.
    status : array of shape (m,)
        ``"answered"``; ``"unusual"`` where even the answered class is ruled out; ``"tied"`` where
        two classes are equally good; ``"rejected"`` where it is too unsure; ``"unreached"`` where
        there is no answer; ``"below"`` and ``"above"`` where the value is a limit, beyond which
        nothing is told apart.
    guarantee : Guarantee
        What is guaranteed about these answers.
    regions : Regions, optional
        Numbers: where the label is, at the stated confidence.
    label_sets, p_values : array of shape (m, n_classes), optional
        Which classes are possible, at the stated confidence, and the p-value of each.
    unseen, p_unseen : array of shape (m,), optional
        The same of a class that no label shows.
    confidence, credibility : array of shape (m,), optional
        Classes: one minus the largest p-value of the others, seen or not (or how far the largest
        probability is ahead of the second), and the p-value of the answer.
    standard_errors : array of shape (m,), optional
        Standard error of each value, or probability, as the method itself states it.
    inductive : array of the shape of `values`, optional
        What the same method answers when it may not look at the unlabelled rows.
    loo_residuals : array of shape (m,) or (m, c), optional
        Leave-one-out residual of each unlabelled row in the completed sample.
    scores, probabilities : array of shape (m,) or (m, n_classes), optional
        The numbers whose sign or maximum is the answer, and the probability of each class.
    classes : array of shape (n_classes,), optional
        What columns stand for.
    index : pandas.Index, optional
        Names of the unlabelled rows.
    further : tuple of LevelAnswer
        The regions, or sets, at each further ``level`` that was asked for, lowest first.
    diagnostics : dict
        How the answer was computed.

    Examples
    --------
    >>> import numpy as np
    >>> guarantee = Guarantee("exact", about="interval", confidence=0.9)
    >>> interval = Regions.from_intervals([[0, 1]])
    >>> status = np.array(["answered"])
    >>> Answer(np.array([2]), np.array([0.5]), status, guarantee, regions=interval).to_frame()
       value  lower  upper  n_pieces    status
    2    0.5    0.0    1.0         1  answered
    """

    rows: AnyArray
    values: AnyArray
    status: AnyArray
    guarantee: Guarantee
    regions: Regions | None = None
    label_sets: Mask | None = None
    p_values: Array | None = None
    unseen: Mask | None = None
    p_unseen: Array | None = None
    confidence: Array | None = None
    credibility: Array | None = None
    standard_errors: Array | None = None
    inductive: AnyArray | None = None
    loo_residuals: Array | None = None
    scores: Array | None = None
    probabilities: Array | None = None
    classes: AnyArray | None = None
    index: pd.Index | None = None
    further: tuple[LevelAnswer, ...] = ()
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"{self._counts_of_status()}\n{self.guarantee}"

    def _repr_html_(self) -> str:
        """Return the answer for a notebook: counts, guarantee and first rows."""
        first = self.at(np.arange(min(len(self), N_PREVIEWED))).to_frame()
        return (
            f"<p><strong>{escape(self._counts_of_status())}</strong></p>"
            f"{self.guarantee._repr_html_()}{first.to_html()}"
        )

    def _counts_of_status(self) -> str:
        """Return how many rows there are of each status, in words."""
        kinds, counts = np.unique(self.status, return_counts=True)
        words = [f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True)]
        if not words:
            words = ["no row is unlabelled"]
        return f"Answer at {len(self)} rows ({', '.join(words)})"

    def at(self, places: AnyArray) -> Answer:
        """Return the answer at some of its rows.

        Parameters
        ----------
        places : array of int, shape (k,)
            Places among its rows, in the order that is wanted.

        Returns
        -------
        Answer
        """
        picked: dict[str, Any] = {}
        for name in _OF_ROWS:
            picked[name] = _pick_rows(getattr(self, name), places)
        further = tuple(answer.at(places) for answer in self.further)
        return replace(self, further=further, **picked)

    def _with_regions(self, change: Callable[[Regions], Regions]) -> Answer:
        """Return the answer with its regions changed, those at further levels among them."""
        assert self.regions is not None
        further = []
        for answer in self.further:
            assert answer.regions is not None
            further.append(replace(answer, regions=change(answer.regions)))
        return replace(self, regions=change(self.regions), further=tuple(further))

    def reject(self, *, below: float | None = None, share: float | None = None) -> Answer:
        """Return the answer with the status ``"rejected"`` at the least certain rows.

        Their values stay.

        Parameters
        ----------
        below : float, optional
            Reject rows with a confidence below this.
        share : float, optional
            Or reject at most this share of the rows; equally certain rows are rejected together.

        Returns
        -------
        Answer
        """
        if self.confidence is None:
            raise ValueError("This answer has no confidence to reject by.")
        if (below is None) == (share is None):
            raise ValueError("Give either below or share.")
        limit = below
        if limit is None:
            limit = share
        if limit is None or not checks.is_number(limit) or not 0.0 <= float(limit) <= 1.0:
            raise ValueError(f"below and share must lie between 0 and 1; got {limit!r}.")
        confidence = arrays.to_numpy(self.confidence)
        if share is not None:
            count = int(np.floor(share * len(confidence) + 1e-9))
            below = float(np.append(np.sort(confidence), np.inf)[count])
        return replace(
            self, status=np.where(confidence < float(below or 0.0), "rejected", self.status)
        )

    def within(self, lower: float, upper: float) -> Answer:
        """Return the answer with values and regions cut to what is possible.

        Parameters
        ----------
        lower, upper : float
            The least and the greatest value that the column can have; infinite where unknown.

        Returns
        -------
        Answer
        """
        if self.regions is None or not (np.isfinite(lower) or np.isfinite(upper)):
            return self
        cut = self._with_regions(lambda regions: regions.within(lower, upper))
        return replace(cut, values=np.clip(self.values, lower, upper))

    def shifted(self, by: Array) -> Answer:
        """Return the answer with values and regions moved by a number of each row, shape (m,)."""
        moved = self
        if self.regions is not None:
            moved = self._with_regions(lambda regions: regions.shifted(by))
        return replace(moved, values=self.values + by)

    def holding(self, values: Array) -> Answer:
        """Return the answer with its regions extended to numbers (m,), where there is one."""
        return self._with_regions(lambda regions: regions.holding(values))

    def contains(self, labels: Any) -> Mask:
        """Return whether each row's region, or set, contains its label.

        Parameters
        ----------
        labels : array-like of shape (m,)
            One label for each row, of a class that no label shows, too: a set may say that it
            contains such classes.

        Returns
        -------
        boolean array of shape (m,)
        """
        if self.regions is not None:
            return arrays.to_numpy(self.regions.contains(labels))
        if self.label_sets is None or self.classes is None:
            raise ValueError("This answer has neither regions nor sets.")
        codes = class_codes(np.asarray(labels, dtype=object), self.classes)
        sets = arrays.to_numpy(self.label_sets)
        holds_class = sets[np.arange(len(codes)), np.maximum(codes, 0)]
        holds_unseen = np.zeros(len(codes), dtype=bool)
        if self.unseen is not None:
            holds_unseen = arrays.to_numpy(self.unseen)
        return np.where(codes >= 0, holds_class, holds_unseen)

    def opened(self, below: float, above: float) -> Answer:
        """Return the answer where labels up to `below`, or from `above` on, are limits.

        Regions are open there.
        """
        if self.regions is None or not (np.isfinite(below) or np.isfinite(above)):
            return self
        is_low = self.values <= below
        is_high = self.values >= above
        # A value that is both, where limits overlap, stays as it is.
        only_low = is_low & ~is_high
        only_high = is_high & ~is_low
        values = np.select([only_low, only_high], [below, above], self.values)
        known = self.status == "answered"
        cases = [known & only_low, known & only_high]
        status = np.select(cases, ["below", "above"], self.status)
        opened = self._with_regions(lambda regions: regions.opened(below, above).holding(values))
        return replace(opened, values=values, status=status)

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each unlabelled row, named as the user's rows are.

        Returns
        -------
        pandas.DataFrame
            ``value``, and what the method has of ``lower``, ``upper``, ``n_pieces``, ``set``,
            ``confidence``, ``credibility``, ``standard_errors`` and ``status``.
        """
        columns: dict[str, Any] = _columns("value", self.values)
        if self.regions is not None:
            columns |= _ends(self.regions)
            columns["n_pieces"] = self.regions.n_pieces
        if self.label_sets is not None and self.classes is not None:
            columns["set"] = self._named_sets(self.label_sets, self.unseen)
        for answer in self.further:
            if answer.regions is not None:
                columns |= _ends(answer.regions, f"_{answer.name}")
            if answer.label_sets is not None and self.classes is not None:
                sets = self._named_sets(answer.label_sets, answer.unseen)
                columns[f"set_{answer.name}"] = sets
        for name in ("confidence", "credibility", "standard_errors", "inductive", "loo_residuals"):
            if getattr(self, name) is not None:
                columns |= _columns(name.removesuffix("s"), getattr(self, name))
        columns["status"] = self.status
        return pd.DataFrame(columns, index=self.rows if self.index is None else self.index)

    def _named_sets(self, label_sets: Mask, unseen: Mask | None) -> list[tuple[Any, ...]]:
        """Return the classes in each set, and that a class without a label may be in it."""
        assert self.classes is not None
        holds_unseen = np.zeros(len(self), dtype=bool)
        if unseen is not None:
            holds_unseen = arrays.to_numpy(unseen)
        named = []
        for mask, more in zip(arrays.to_numpy(label_sets), holds_unseen, strict=True):
            names = self.classes[mask].tolist()
            if more:
                names.append(UNSEEN)
            named.append(tuple(names))
        return named


def _ends(regions: Regions, suffix: str = "") -> dict[str, Array]:
    """Return the ends of the smallest intervals around regions, by the names of their columns."""
    hull = arrays.to_numpy(regions.hull())
    return {f"lower{suffix}": hull[:, 0], f"upper{suffix}": hull[:, 1]}


# What an answer has for each of its rows.
_OF_ROWS = (
    "rows",
    "values",
    "status",
    "regions",
    "label_sets",
    "p_values",
    "unseen",
    "p_unseen",
    "confidence",
    "credibility",
    "standard_errors",
    "inductive",
    "loo_residuals",
    "scores",
    "probabilities",
    "index",
)


def _columns(name: str, values: AnyArray) -> dict[str, Any]:
    """Return an array as one column, or as numbered ones if it has several."""
    values = arrays.to_numpy(values)
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{column}": values[:, column] for column in range(values.shape[1])}
