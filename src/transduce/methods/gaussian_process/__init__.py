"""Moment-matched Gaussian process (Le, Smola, Gartner, Altun 2006)."""

from transduce.methods.gaussian_process.classifier import TransductiveGPClassifier
from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor

__all__ = ["TransductiveGPClassifier", "TransductiveGPRegressor"]
