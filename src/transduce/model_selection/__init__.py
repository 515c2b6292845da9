"""Hiding labels to judge, tune and compare estimators while every row's features stay in sight."""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.model_selection.comparison import MethodChoice, choose_method
    from transduce.model_selection.corrected import CorrectedPredictions
    from transduce.model_selection.cross_validation import CrossTransduction, cross_val_transduce
    from transduce.model_selection.search import TransductiveSearchCV

__all__ = ["CorrectedPredictions", "CrossTransduction", "MethodChoice"]
__all__ += ["TransductiveSearchCV", "choose_method", "cross_val_transduce"]

_HOMES = dict.fromkeys(__all__, "transduce.model_selection.cross_validation")
_HOMES |= dict.fromkeys(("MethodChoice", "choose_method"), "transduce.model_selection.comparison")
_HOMES["CorrectedPredictions"] = "transduce.model_selection.corrected"
_HOMES["TransductiveSearchCV"] = "transduce.model_selection.search"
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
