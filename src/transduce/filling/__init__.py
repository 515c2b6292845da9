"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from transduce.filling.fill import FillResult, fill

__all__ = ["FillResult", "fill"]
