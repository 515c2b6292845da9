"""What every method returns at the unlabelled rows: `Answer`, and `Regions` for unions of intervals."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.core import arrays
from transduce.core.guarantee import Guarantee
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes

UNSEEN = "or a class that no label shows"  # what a set says where such a class is possible


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer at the unlabelled rows; numbers live where the features do, all else is numpy's.

    Parameters
    ----------
    rows, values : array of shape (m,)
        Positions of the unlabelled rows in the sample, and the answers: numbers, or class labels.
    status : array of shape (m,)
        ``"answered"``; ``"unusual"`` where even the answered class is ruled out; ``"tied"`` where two classes are
        equally good; ``"rejected"`` where it is too unsure; ``"unreached"`` where there is no answer; ``"below"`` and
        ``"above"`` where the value is a limit, beyond which nothing is told apart.
    guarantee : Guarantee
        What is guaranteed about these answers.
    regions : Regions, optional
        Numbers: where the label is, at the stated confidence.
    label_sets, p_values : array of shape (m, n_classes), optional
        Which classes are possible, at the stated confidence, and the p-value of each.
    unseen, p_unseen : array of shape (m,), optional
        The same of a class that no label shows.
    confidence, credibility : array of shape (m,), optional
        Classes: one minus the largest p-value of the others, seen or not (or how far the largest probability is ahead
        of the second), and the p-value of the answer.
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
    diagnostics : dict
        How the answer was computed.

    Examples
    --------
    >>> import numpy as np
    >>> guarantee, interval = Guarantee("exact", about="interval", confidence=0.9), Regions.from_intervals([[0, 1]])
    >>> Answer(np.array([2]), np.array([0.5]), np.array(["answered"]), guarantee, regions=interval).to_frame()
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
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        words = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        return f"Answer at {len(self)} rows ({words or 'no row is unlabelled'})\n{self.guarantee}"

    def reject(self, *, below: float | None = None, share: float | None = None) -> Answer:
        """Return the answer with the status ``"rejected"`` at rows that are too unsure; their values stay.

        Parameters
        ----------
        below : float, optional
            Rows whose confidence is below this are rejected.
        share : float, optional
            At most this share of all rows, the least confident; rows of equal confidence go together.

        Examples
        --------
        >>> import numpy as np
        >>> sure = {"confidence": np.array([0.9, 0.2, 0.5])}
        >>> answer = Answer(np.arange(3), np.array(list("aba")), np.full(3, "answered"), Guarantee("none"), **sure)
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
        confidence = arrays.to_numpy(self.confidence)
        if share is not None:
            ordered = np.sort(confidence)
            count = int(np.floor(share * len(ordered) + 1e-9))
            below = np.inf if count == len(ordered) else float(ordered[count])
        return replace(self, status=np.where(confidence < float(below or 0.0), "rejected", self.status))

    def within(self, lower: float, upper: float) -> Answer:
        """Return the answer with values and regions cut to what is possible."""
        if self.regions is None or not (np.isfinite(lower) or np.isfinite(upper)):
            return self
        regions = self.regions.within(lower, upper)
        return replace(self, values=np.clip(self.values, lower, upper), regions=regions)

    def contains(self, labels: Any) -> Mask:
        """Return whether each row's region, or set, holds its label (m,); one that no label shows counts too."""
        if self.regions is not None:
            return arrays.to_numpy(self.regions.contains(labels))
        if self.label_sets is None or self.classes is None:
            raise ValueError("This answer has neither regions nor sets.")
        codes = class_codes(np.asarray(labels, dtype=object), self.classes)
        own = arrays.to_numpy(self.label_sets)[np.arange(len(codes)), np.maximum(codes, 0)]
        return np.where(codes >= 0, own, False if self.unseen is None else arrays.to_numpy(self.unseen))

    def opened(self, below: float, above: float) -> Answer:
        """Return the answer where labels up to `below`, or from `above` on, are limits: regions are open there."""
        if self.regions is None or not (np.isfinite(below) or np.isfinite(above)):
            return self
        low, high = self.values <= below, self.values >= above
        beyond = [low & ~high, high & ~low]  # a value that is both, where limits overlap, stays as it is
        values, known = np.select(beyond, [below, above], self.values), self.status == "answered"
        status = np.select([known & one for one in beyond], ["below", "above"], self.status)
        regions = self.regions.opened(below, above).holding(values)
        return replace(self, values=values, status=status, regions=regions)

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each unlabelled row, named as the user's rows are."""
        columns: dict[str, Any] = _columns("value", self.values)
        if self.regions is not None:
            hull = arrays.to_numpy(self.regions.hull())
            columns |= {"lower": hull[:, 0], "upper": hull[:, 1], "n_pieces": self.regions.n_pieces}
        if self.label_sets is not None and self.classes is not None:
            sets, more = arrays.to_numpy(self.label_sets), self.unseen
            unseen = np.zeros(len(self), dtype=bool) if more is None else arrays.to_numpy(more)
            pairs = zip(sets, unseen, strict=True)
            columns["set"] = [(*self.classes[mask].tolist(), *[UNSEEN] * bool(new)) for mask, new in pairs]
        for name in ("confidence", "credibility", "standard_errors", "inductive", "loo_residuals"):
            if getattr(self, name) is not None:
                columns |= _columns(name.removesuffix("s"), getattr(self, name))
        columns["status"] = self.status
        return pd.DataFrame(columns, index=self.rows if self.index is None else self.index)


def _columns(name: str, values: AnyArray) -> dict[str, Any]:
    """Return an array as one column, or as numbered ones if it has several."""
    values = arrays.to_numpy(values)
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{column}": values[:, column] for column in range(values.shape[1])}
