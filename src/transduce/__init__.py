"""Transductive inference: answers at the rows you have, with honest uncertainty."""

from transduce.answer import Answer, Guarantee, Regions
from transduce.blend import TransductiveBlend
from transduce.display import (
    BandDisplay,
    CoverageDisplay,
    LeaveOneOutDisplay,
    MomentDisplay,
    RegionDisplay,
    RejectionCurveDisplay,
    RelevanceDisplay,
    TransductionDisplay,
)
from transduce.loo import leave_one_out
from transduce.method_choice import MethodChoice, choose_method
from transduce.methods.bayesian_transducer import BayesianTransducer
from transduce.methods.confidence_classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.gaussian_process import TransductiveGPRegressor
from transduce.methods.ridge import TransductiveRidge
from transduce.methods.ridge_classifier import TransductiveRidgeClassifier
from transduce.model_selection import CrossTransduction, cross_val_transduce
from transduce.rejection import area_under_rejection_curve, rejection_curve
from transduce.sample import PartlyLabelled
from transduce.search_cv import TransductiveSearchCV

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BandDisplay",
    "BayesianTransducer",
    "CoverageDisplay",
    "CrossTransduction",
    "Guarantee",
    "LeaveOneOutDisplay",
    "MethodChoice",
    "MomentDisplay",
    "PartlyLabelled",
    "RegionDisplay",
    "Regions",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "RidgeConfidenceClassifier",
    "RidgeConfidenceMachine",
    "TransductionDisplay",
    "TransductiveBlend",
    "TransductiveGPRegressor",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "TransductiveSearchCV",
    "area_under_rejection_curve",
    "choose_method",
    "cross_val_transduce",
    "leave_one_out",
    "rejection_curve",
]
