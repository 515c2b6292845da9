"""Transductive ridge (Chapelle, Vapnik, Weston 1999)."""

from transduce.methods.ridge.classifier import TransductiveRidgeClassifier
from transduce.methods.ridge.leave_one_out import leave_one_out
from transduce.methods.ridge.regressor import TransductiveRidge

__all__ = ["TransductiveRidge", "TransductiveRidgeClassifier", "leave_one_out"]
