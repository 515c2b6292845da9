"""Filling one column of a table: plan, fit, answer, and what there is to know about it."""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.app.filling.engine import fill as fill
    from transduce.app.filling.engine import fit_fill as fit_fill
    from transduce.app.filling.folder import FilledFolder as FilledFolder
    from transduce.app.filling.folder import fill_folder as fill_folder
    from transduce.app.filling.later_rows import FittedFill as FittedFill
    from transduce.app.filling.result import FillResult as FillResult
    from transduce.app.filling.results import FillResults as FillResults
    from transduce.app.filling.runners import LocalRunner as LocalRunner
    from transduce.app.filling.runners import cluster_runner as cluster_runner
    from transduce.app.filling.saved import load as load
    from transduce.app.filling.saved import save as save

_HOMES = {"FillResult": "transduce.app.filling.result"}
_HOMES["FillResults"] = "transduce.app.filling.results"
_HOMES["FittedFill"] = "transduce.app.filling.later_rows"
_HOMES |= dict.fromkeys(("LocalRunner", "cluster_runner"), "transduce.app.filling.runners")
_HOMES |= dict.fromkeys(("FilledFolder", "fill_folder"), "transduce.app.filling.folder")
_HOMES |= dict.fromkeys(("fill", "fit_fill"), "transduce.app.filling.engine")
_HOMES |= dict.fromkeys(("load", "save"), "transduce.app.filling.saved")
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
