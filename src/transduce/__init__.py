"""Transductive inference: answers at the rows you have, with honest uncertainty."""

from transduce.answer import Answer, Guarantee, Regions
from transduce.display import CoverageDisplay, RegionDisplay
from transduce.methods.confidence_classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.sample import PartlyLabelled

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "CoverageDisplay",
    "Guarantee",
    "PartlyLabelled",
    "RegionDisplay",
    "Regions",
    "RidgeConfidenceClassifier",
    "RidgeConfidenceMachine",
]
