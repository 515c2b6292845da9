"""Hiding labels to judge, tune and compare estimators while every row's features stay in sight."""

from transduce.model_selection.compare import MethodChoice, choose_method
from transduce.model_selection.cross_validation import CrossTransduction, cross_val_transduce
from transduce.model_selection.search import TransductiveSearchCV

__all__ = [
    "CrossTransduction",
    "MethodChoice",
    "TransductiveSearchCV",
    "choose_method",
    "cross_val_transduce",
]
