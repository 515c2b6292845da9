"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from transduce.filling.fill import fill
from transduce.filling.result import FillResult

__all__ = ["FillResult", "fill"]
