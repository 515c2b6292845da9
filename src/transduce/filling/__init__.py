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
    from transduce.filling.sources import cluster_runner as cluster_runner

_HOMES = dict.fromkeys(("FillResult", "FillResults", "FittedFill"), "transduce.filling.result")
_HOMES |= dict.fromkeys(("LocalRunner", "cluster_runner"), "transduce.filling.sources")
_HOMES |= dict.fromkeys(("FilledFolder", "fill_folder"), "transduce.filling.folder")
_HOMES |= dict.fromkeys(("fill", "fit_fill"), "transduce.filling.engine")
_HOMES |= dict.fromkeys(("load", "save"), "transduce.filling.saved")
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
