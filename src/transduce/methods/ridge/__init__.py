"""Transductive ridge (Chapelle, Vapnik, Weston 1999)."""

from transduce.methods.ridge.completion import leave_one_out
from transduce.methods.ridge.transductive_ridge import (
    TransductiveRidge,
    TransductiveRidgeClassifier,
)

__all__ = ["TransductiveRidge", "TransductiveRidgeClassifier", "leave_one_out"]
