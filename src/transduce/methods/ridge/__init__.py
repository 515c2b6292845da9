"""Transductive ridge (Chapelle, Vapnik, Weston 1999).

The paper's leave-one-out formula, and the labels that make it small, are in `completion`; the ball
around the inductive answer in `ball`.
"""

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
