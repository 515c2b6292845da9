"""Bayesian transduction by kernel billiard (Graepel, Herbrich, Obermayer 1999)."""

from transduce.methods.bayesian.classifier import BayesianTransducer, LabellingProbability

__all__ = ["BayesianTransducer", "LabellingProbability"]
