"""Bayesian transduction by kernel billiard (Graepel, Herbrich, Obermayer 1999)."""

from transduce.methods.billiard.classifier import BayesianTransducer

__all__ = ["BayesianTransducer"]
