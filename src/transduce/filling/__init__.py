"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from typing import TYPE_CHECKING

from transduce.core.lazy import lazy_names

if TYPE_CHECKING:
    from transduce.filling.engine import fill, fit_fill
    from transduce.filling.fitted import FittedFill
    from transduce.filling.folder import FolderResult, fill_folder
    from transduce.filling.large import SampleFit
    from transduce.filling.lazily import LazyFill, fill_lazily
    from transduce.filling.result import FillResult
    from transduce.filling.saved import load, save
    from transduce.filling.sources import LocalRunner, Runner, cluster_runner

__all__ = [
    "FillResult",
    "FittedFill",
    "FolderResult",
    "LazyFill",
    "LocalRunner",
    "Runner",
    "SampleFit",
    "cluster_runner",
    "fill",
    "fill_folder",
    "fill_lazily",
    "fit_fill",
    "load",
    "save",
]

_HOMES = {
    "FillResult": "transduce.filling.result",
    "FittedFill": "transduce.filling.fitted",
    "FolderResult": "transduce.filling.folder",
    "LazyFill": "transduce.filling.lazily",
    "LocalRunner": "transduce.filling.sources",
    "Runner": "transduce.filling.sources",
    "SampleFit": "transduce.filling.large",
    "cluster_runner": "transduce.filling.sources",
    "fill": "transduce.filling.engine",
    "fill_folder": "transduce.filling.folder",
    "fill_lazily": "transduce.filling.lazily",
    "fit_fill": "transduce.filling.engine",
    "load": "transduce.filling.saved",
    "save": "transduce.filling.saved",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
