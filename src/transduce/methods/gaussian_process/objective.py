"""What the objectives of numbers and of classes share: rows, their kernel, and fewer of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray, Array
from transduce.methods.gaussian_process.covariances import Covariance, Pairs


class ProcessObjective:
    """What is minimised over the parameters of a process of labelled and unlabelled rows."""

    X: Array  # (l + m, d) labelled rows first, unlabelled rows last
    y_l: Array  # (l,) labels, or (l, c) signs of several problems
    matching: float  # weight of the match; with 0 the unlabelled rows play no part
    covariance: Covariance
    noise_bounds: ClassVar[tuple[float, float]]  # least and largest variance of the noise

    @property
    def looks_at_unlabelled(self) -> bool:
        """Whether there is something to match."""
        return self.matching > 0.0 and self.X.shape[0] > self.y_l.shape[0]

    @cached_property
    def rows(self) -> Array:
        """The rows that are looked at."""
        if self.looks_at_unlabelled:
            return self.X
        return self.X[: self.y_l.shape[0], :]

    @cached_property
    def _pairs(self) -> Pairs:
        """Their kernel, with a relevance for every feature."""
        return self.covariance.pairs(self.rows, common=False)

    @cached_property
    def _common_pairs(self) -> Pairs:
        """The same with one relevance that is common to all features."""
        return self.covariance.pairs(self.rows, common=True)

    def pairs(self, relevance: Array) -> Pairs:
        """Return the kernel of the rows that are looked at; its distances are computed once."""
        if len(relevance) == 1 != self.X.shape[1]:
            return self._common_pairs
        return self._pairs

    def thinned(self, most_labelled: int, most_unlabelled: int) -> Self:
        """Return the same on at most so many rows of each kind, at even steps of ordered ones."""
        n = self.X.shape[0]
        n_labelled = self.y_l.shape[0]
        labelled = even_steps(n_labelled, most_labelled)
        unlabelled = n_labelled + even_steps(n - n_labelled, most_unlabelled)
        if len(labelled) + len(unlabelled) == n:
            return self
        rows = arrays.pick(self.X, np.concatenate([labelled, unlabelled]))
        objective: Any = self  # of a class that is a dataclass
        return replace(objective, X=rows, y_l=arrays.pick(self.y_l, labelled))


def even_steps(count: int, most: int) -> AnyArray:
    """Return at most so many of the numbers from 0 to `count`, at even steps."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)
