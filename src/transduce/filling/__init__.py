"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from typing import TYPE_CHECKING

from transduce.core.lazy import lazy_names

if TYPE_CHECKING:
    from transduce.filling.engine import fill, fit_fill
    from transduce.filling.fitted import FittedFill
    from transduce.filling.folder import FilledFolder, fill_folder
    from transduce.filling.result import FillResult
    from transduce.filling.saved import load, save
    from transduce.filling.sources import LocalRunner, Runner, cluster_runner

_HOMES = {
    "FillResult": "transduce.filling.result",
    "FilledFolder": "transduce.filling.folder",
    "FittedFill": "transduce.filling.fitted",
    "LocalRunner": "transduce.filling.sources",
    "Runner": "transduce.filling.sources",
    "cluster_runner": "transduce.filling.sources",
    "fill": "transduce.filling.engine",
    "fill_folder": "transduce.filling.folder",
    "fit_fill": "transduce.filling.engine",
    "load": "transduce.filling.saved",
    "save": "transduce.filling.saved",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
