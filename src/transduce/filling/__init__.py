"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from transduce.filling.fill import fill, fit_fill
from transduce.filling.fitted import FittedFill
from transduce.filling.folder import FolderResult, fill_folder
from transduce.filling.large import SampleFit
from transduce.filling.lazily import LazyFill, fill_lazily
from transduce.filling.result import FillResult
from transduce.filling.saved import load, save

__all__ = [
    "FillResult",
    "FittedFill",
    "FolderResult",
    "LazyFill",
    "SampleFit",
    "fill",
    "fill_folder",
    "fill_lazily",
    "fit_fill",
    "load",
    "save",
]
