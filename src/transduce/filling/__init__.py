"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.filling.engine import fill as fill
    from transduce.filling.engine import fit_fill as fit_fill
    from transduce.filling.folder import FilledFolder as FilledFolder
    from transduce.filling.folder import fill_folder as fill_folder
    from transduce.filling.result import FillResult as FillResult
    from transduce.filling.result import FillResults as FillResults
    from transduce.filling.result import FittedFill as FittedFill
    from transduce.filling.saved import load as load
    from transduce.filling.saved import save as save
    from transduce.filling.sources import LocalRunner as LocalRunner
    from transduce.filling.sources import Runner as Runner
    from transduce.filling.sources import cluster_runner as cluster_runner

_HOMES = {
    "FillResult": "transduce.filling.result",
    "FillResults": "transduce.filling.result",
    "FilledFolder": "transduce.filling.folder",
    "FittedFill": "transduce.filling.result",
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
