"""Transductive ridge (Chapelle, Vapnik, Weston 1999)."""

from transduce.methods.ridge.completion import RidgeChoice, leave_one_out
from transduce.methods.ridge.shared_settings import choose_settings
from transduce.methods.ridge.transductive_ridge import (
    TransductiveRidge,
    TransductiveRidgeClassifier,
)

__all__ = [
    "RidgeChoice",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "choose_settings",
    "leave_one_out",
]
