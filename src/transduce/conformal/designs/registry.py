"""The designs that there are."""

from __future__ import annotations

from typing import Any

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.chance import Chance
from transduce.core.types import Mask
from transduce.core.words import quoted


def read_design(labels: Any, missing: Mask) -> Design:
    """Return how the labels came about, `Chance` by default, with an array in place of each column."""
    design = Chance() if labels is None else labels
    if not isinstance(design, Design):
        known = (
            "Chance(), Drawn(rows), Sampled(probability), Grouped(groups), ByClass() or Estimated()"
        )
        raise ValueError(f"labels says how the labels came about: {known}; got {quoted(labels)}.")
    return design.read(missing)
