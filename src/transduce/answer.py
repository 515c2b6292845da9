"""What every method returns at the asked rows: `Answer`, and `Regions` for unions of intervals."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce._typing import AnyArray, Array, Mask


class Regions:
    """A ragged set of closed intervals: one union for each row.

    Parameters
    ----------
    pieces : array of shape (n_pieces, 2)
        Lower and upper end of every interval, the rows one after another; within a row ascending and
        disjoint. Ends may be infinite.
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
    >>> regions[1]
    array([[-inf,   2.],
           [  3.,   5.]])
    """

    def __init__(self, pieces: Any, offsets: Any) -> None:
        pieces = np.array(pieces, dtype=float).reshape(-1, 2)
        offsets = np.array(offsets, dtype=np.intp)
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(pieces):
            raise ValueError("offsets must start at 0 and end at the number of pieces.")
        if np.any(np.diff(offsets) < 0):
            raise ValueError("offsets must not decrease.")
        if not np.all(pieces[:, 0] <= pieces[:, 1]):
            raise ValueError("Each piece needs a lower end that is not above its upper end.")
        self._check_order(pieces, offsets)
        self.pieces = pieces
        self.offsets = offsets

    @staticmethod
    def _check_order(pieces: Array, offsets: AnyArray) -> None:
        follows = np.ones(max(len(pieces) - 1, 0), dtype=bool)
        first = offsets[1:-1]
        follows[first[(first > 0) & (first < len(pieces))] - 1] = False
        if np.any(pieces[1:, 0][follows] <= pieces[:-1, 1][follows]):
            raise ValueError("The pieces of a row must be disjoint and in ascending order.")

    @classmethod
    def from_pieces(cls, rows: Iterable[Any]) -> Regions:
        """Build from one sequence of (lower, upper) pairs for each row; a row may have none.

        Examples
        --------
        >>> Regions.from_pieces([[(0, 1), (2, 3)], []]).n_pieces
        array([2, 0])
        """
        arrays = [np.asarray(row, dtype=float).reshape(-1, 2) for row in rows]
        offsets = np.cumsum([0, *map(len, arrays)])
        return cls(np.concatenate([*arrays, np.empty((0, 2))]), offsets)

    @classmethod
    def from_intervals(cls, intervals: Any) -> Regions:
        """Build from an array of shape (n, 2): one interval for each row.

        Examples
        --------
        >>> Regions.from_intervals([[0, 1], [2, 4]]).measure()
        array([1., 2.])
        """
        intervals = np.asarray(intervals, dtype=float).reshape(-1, 2)
        return cls(intervals, np.arange(len(intervals) + 1))

    @classmethod
    def concatenate(cls, parts: Iterable[Regions]) -> Regions:
        """Return the rows of several `Regions`, one after another.

        Examples
        --------
        >>> one = Regions.from_intervals([[0, 1]])
        >>> len(Regions.concatenate([one, one]))
        2
        """
        parts = list(parts)
        counts = np.concatenate([part.n_pieces for part in parts] or [np.empty(0, dtype=np.intp)])
        pieces = np.concatenate([*(part.pieces for part in parts), np.empty((0, 2))])
        return cls(pieces, np.concatenate([[0], np.cumsum(counts)]))

    def to_arrays(self) -> tuple[Array, AnyArray]:
        """Return copies of ``(pieces, offsets)``; ``Regions(*regions.to_arrays())`` is the way back.

        Examples
        --------
        >>> Regions.from_intervals([[0, 1]]).to_arrays()
        (array([[0., 1.]]), array([0, 1]))
        """
        return self.pieces.copy(), self.offsets.copy()

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
            return self.pieces[self.offsets[row] : self.offsets[row + 1]].copy()
        return Regions.from_pieces(self[int(row)] for row in np.arange(len(self))[rows])

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Regions):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.pieces, other.pieces)

    __hash__ = None  # type: ignore[assignment]

    def contains(self, y: Any) -> Mask:
        """Return whether each row's region holds that row's label.

        Parameters
        ----------
        y : float or array of shape (n,)
            One label for all rows, or one for each. A missing label (NaN) is in no region.

        Returns
        -------
        boolean array of shape (n,)

        Examples
        --------
        >>> Regions.from_intervals([[0, 1], [2, 4]]).contains(1)
        array([ True, False])
        """
        labels = np.asarray(y, dtype=float)
        if labels.ndim and labels.shape != (len(self),):
            raise ValueError(
                f"Give one label, or one for each of the {len(self)} rows; got shape {labels.shape}."
            )
        row = np.repeat(np.arange(len(self)), self.n_pieces)
        each = np.broadcast_to(labels, (len(self),))[row]
        inside = (self.pieces[:, 0] <= each) & (each <= self.pieces[:, 1])
        return np.bincount(row, weights=inside, minlength=len(self)) > 0

    def hull(self) -> Array:
        """Return the smallest interval around each row's region, shape (n, 2); NaN where it is empty.

        Examples
        --------
        >>> Regions.from_pieces([[(0, 1), (4, 5)], []]).hull()
        array([[ 0.,  5.],
               [nan, nan]])
        """
        hull = np.full((len(self), 2), np.nan)
        some = self.n_pieces > 0
        hull[some, 0] = self.pieces[self.offsets[:-1][some], 0]
        hull[some, 1] = self.pieces[self.offsets[1:][some] - 1, 1]
        return hull

    def measure(self) -> Array:
        """Return the total length of each row's region, shape (n,); infinite where it has a ray.

        Examples
        --------
        >>> Regions.from_pieces([[(0, 1), (4, 6)], [], [(0, np.inf)]]).measure()
        array([ 3.,  0., inf])
        """
        row = np.repeat(np.arange(len(self)), self.n_pieces)
        lengths = np.diff(self.pieces)[:, 0]
        return np.bincount(row, weights=lengths, minlength=len(self)).astype(float)

    def __repr__(self) -> str:
        shown = min(len(self), 6)
        lines = [f"  {row}: {_mathematics(self[row])}" for row in range(shown)]
        if shown < len(self):
            lines.append(f"  … and {len(self) - shown} more")
        return "\n".join([f"Regions of {len(self)} row{'s' * (len(self) != 1)}:", *lines])


def _mathematics(pieces: Array) -> str:
    """Return a union of closed intervals in the usual notation."""
    if len(pieces) == 0:
        return "∅"

    def write(lower: float, upper: float) -> str:
        left = "(-∞" if lower == -np.inf else f"[{lower:.4g}"
        right = "∞)" if upper == np.inf else f"{upper:.4g}]"
        return f"{{{lower:.4g}}}" if lower == upper else f"{left}, {right}"

    return " ∪ ".join(write(lower, upper) for lower, upper in pieces)


@dataclass(frozen=True)
class Guarantee:
    """What is promised about the answers, and on what ground.

    Parameters
    ----------
    kind : {"exact", "approximate", "none"}
        Whether the promise holds in finite samples with no assumption but exchangeable rows; "none" if there is none.
    promise : str
        The promise, as a sentence.
    why : str
        Why it is of this kind, as a sentence.

    Examples
    --------
    >>> print(Guarantee("exact", "Each region covers with probability 90 %.", "Nothing was tuned."))
    exact: Each region covers with probability 90 %. Nothing was tuned.
    """

    kind: str
    promise: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.promise} {self.why}"


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer at the asked rows.

    Parameters
    ----------
    rows : array of shape (m,)
        Positions of the asked rows in the sample.
    values : array of shape (m,)
        The answer itself: numbers, or class labels.
    status : array of shape (m,)
        ``"answered"``; ``"tied"`` where two classes are equally good; ``"rejected"`` where the answer is too unsure;
        ``"unreached"`` where there is none.
    guarantee : Guarantee
        What is promised about these answers.
    regions : Regions, optional
        Regression: where the label is, at the stated confidence.
    label_sets : boolean array of shape (m, n_classes), optional
        Classification: which classes are possible, at the stated confidence.
    p_values : array of shape (m, n_classes), optional
        Classification: p-value of each class.
    confidence, credibility : array of shape (m,), optional
        Classification: how sure the answer is, from 0 to 1 (one less the second largest p-value, or the largest
        probability less the second largest), and the largest p-value. If the answer comes from a fit of its own: one
        less the largest p-value of the other classes, and the p-value of the answered one.
    standard_errors : array of shape (m,), optional
        How far off each value, or probability, is by the method's own account: a standard deviation.
    inductive : array of the shape of `values`, optional
        What the same method answers when it may not look at the asked rows.
    loo_residuals : array of shape (m,) or (m, c), optional
        Leave-one-out residual of each asked row in the completed sample.
    scores : array of shape (m,) or (m, n_classes), optional
        Classification: the numbers whose sign or maximum is the answer.
    probabilities : array of shape (m, n_classes), optional
        Classification: probability of each class.
    classes : array of shape (n_classes,), optional
        What the columns of `label_sets` and `p_values` stand for.
    index : pandas.Index, optional
        Names of the asked rows.
    diagnostics : dict
        How the answer was computed.

    Examples
    --------
    >>> import numpy as np
    >>> promise = Guarantee("exact", "Each region covers with probability 90 %.", "Nothing was tuned.")
    >>> answer = Answer(np.array([2]), np.array([0.5]), np.array(["answered"]), promise,
    ...                 regions=Regions.from_intervals([[0, 1]]))
    >>> answer.to_frame()
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
    confidence: Array | None = None
    credibility: Array | None = None
    standard_errors: Array | None = None
    inductive: AnyArray | None = None
    loo_residuals: Array | None = None
    scores: Array | None = None
    probabilities: Array | None = None
    classes: AnyArray | None = None
    index: pd.Index | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        words = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        return f"Answer at {len(self)} rows ({words or 'none asked'})\n{self.guarantee}"

    def reject(self, *, below: float | None = None, share: float | None = None) -> Answer:
        """Return the answer with the status ``"rejected"`` at rows that are too unsure; their values stay.

        Parameters
        ----------
        below : float, optional
            Rows whose confidence is below this are rejected.
        share : float, optional
            As many of the least confident rows as make up this share of all, at most; rows of equal confidence are
            rejected together or not at all.

        Returns
        -------
        Answer
            Rows that were rejected before stay so.

        Examples
        --------
        >>> import numpy as np
        >>> none = Guarantee("none", "No promise.", "It is an example.")
        >>> answer = Answer(np.arange(3), np.array(list("aba")), np.full(3, "answered"), none,
        ...                 confidence=np.array([0.9, 0.2, 0.5]))
        >>> answer.reject(share=0.4).status.tolist()
        ['answered', 'rejected', 'answered']
        """
        if self.confidence is None:
            raise ValueError("This answer has no confidence to reject by.")
        if (below is None) == (share is None):
            raise ValueError("Give either below or share.")
        limit = share if below is None else below
        if not isinstance(limit, numbers.Real) or not 0.0 <= float(limit) <= 1.0:
            raise ValueError(f"below and share must lie between 0 and 1; got {limit!r}.")
        if share is not None:
            ordered = np.sort(self.confidence)
            count = int(np.floor(share * len(ordered) + 1e-9))
            below = np.inf if count == len(ordered) else float(ordered[count])
        return replace(self, status=np.where(self.confidence < float(below or 0.0), "rejected", self.status))

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each asked row, named as the user's rows are."""
        columns: dict[str, Any] = _columns("value", self.values)
        if self.regions is not None:
            hull = self.regions.hull()
            columns |= {"lower": hull[:, 0], "upper": hull[:, 1], "n_pieces": self.regions.n_pieces}
        if self.label_sets is not None and self.classes is not None:
            columns["set"] = [tuple(self.classes[mask].tolist()) for mask in self.label_sets]
        for name, word in (
            ("confidence", "confidence"),
            ("credibility", "credibility"),
            ("standard_errors", "standard_error"),
            ("inductive", "inductive"),
            ("loo_residuals", "loo_residual"),
        ):
            if getattr(self, name) is not None:
                columns |= _columns(word, getattr(self, name))
        columns["status"] = self.status
        return pd.DataFrame(columns, index=self.rows if self.index is None else self.index)


def _columns(name: str, values: AnyArray) -> dict[str, Any]:
    """Return an array as one column, or as numbered ones if it has several."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{column}": values[:, column] for column in range(values.shape[1])}
