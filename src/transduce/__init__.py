"""Transductive inference: answers at the rows you have, with honest uncertainty."""

from transduce.answer import Answer, Guarantee, Regions
from transduce.column import ColumnLaw
from transduce.conformal import ConformalTransducer
from transduce.display import (
    BandDisplay,
    ColumnLawDisplay,
    CoverageDisplay,
    LeaveOneOutDisplay,
    MomentDisplay,
    RegionDisplay,
    RejectionCurveDisplay,
    RelevanceDisplay,
    TransductionDisplay,
)
from transduce.exchangeability import Exchangeability, exchangeability_test
from transduce.loo import leave_one_out
from transduce.methods.bayesian_transducer import BayesianTransducer
from transduce.methods.confidence_classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.gaussian_process import TransductiveGPRegressor
from transduce.methods.ridge import TransductiveRidge
from transduce.methods.ridge_classifier import TransductiveRidgeClassifier
from transduce.rejection import area_under_rejection_curve, rejection_curve
from transduce.sample import PartlyLabelled
from transduce.selection import Selection

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BandDisplay",
    "BayesianTransducer",
    "ColumnLaw",
    "ColumnLawDisplay",
    "ConformalTransducer",
    "CoverageDisplay",
    "Exchangeability",
    "Guarantee",
    "LeaveOneOutDisplay",
    "MomentDisplay",
    "PartlyLabelled",
    "RegionDisplay",
    "Regions",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "RidgeConfidenceClassifier",
    "RidgeConfidenceMachine",
    "Selection",
    "TransductionDisplay",
    "TransductiveGPRegressor",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "area_under_rejection_curve",
    "exchangeability_test",
    "leave_one_out",
    "rejection_curve",
]
