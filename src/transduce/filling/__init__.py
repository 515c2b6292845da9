"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from transduce.filling.fill import fill, fit_fill
from transduce.filling.fitted import FittedFill
from transduce.filling.large import SampleFit
from transduce.filling.lazily import LazyFill, fill_lazily
from transduce.filling.result import FillResult

__all__ = ["FillResult", "FittedFill", "LazyFill", "SampleFit", "fill", "fill_lazily", "fit_fill"]
