"""Bayesian transduction by kernel billiard (Graepel, Herbrich, Obermayer 1999).

The ball's flight and its bounces are in `balls`, the vote of its positions in `classifier`, and
votes of several rows at once in `joint`.
"""

from transduce.methods.bayesian.classifier import BayesianTransducer, LabellingProbability

__all__ = ["BayesianTransducer", "LabellingProbability"]
