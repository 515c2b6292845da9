"""Transductive inference: answers at the rows you have, with honest uncertainty."""

from transduce.answer import Answer, Guarantee, Regions
from transduce.blend import TransductiveBlend
from transduce.break_even import precision_recall_break_even
from transduce.column import ColumnLaw
from transduce.conformal import ConformalTransducer
from transduce.display import (
    BandDisplay,
    ColumnLawDisplay,
    CoverageDisplay,
    GraphMapDisplay,
    LeaveOneOutDisplay,
    MomentDisplay,
    NeighborChoiceDisplay,
    RegionDisplay,
    RejectionCurveDisplay,
    RelevanceDisplay,
    TransductionDisplay,
)
from transduce.exchangeability import Exchangeability, exchangeability_test
from transduce.filling import FillResult, fill
from transduce.graph import NeighborGraph
from transduce.loo import leave_one_out
from transduce.method_choice import MethodChoice, choose_method
from transduce.methods._graph_shell import neighbor_graph
from transduce.methods.bayesian_transducer import BayesianTransducer
from transduce.methods.confidence_classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.gaussian_process import TransductiveGPRegressor
from transduce.methods.neighbor_choice import NeighborChoice, choose_n_neighbors
from transduce.methods.ridge import TransductiveRidge
from transduce.methods.ridge_classifier import TransductiveRidgeClassifier
from transduce.methods.spectral_graph import SpectralGraphTransducer
from transduce.model_selection import CrossTransduction, cross_val_transduce
from transduce.progress import show_progress
from transduce.rejection import area_under_rejection_curve, rejection_curve
from transduce.sample import PartlyLabelled
from transduce.search_cv import TransductiveSearchCV
from transduce.selection import Selection
from transduce.spectrum import Spectrum, graph_spectrum

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BandDisplay",
    "BayesianTransducer",
    "ColumnLaw",
    "ColumnLawDisplay",
    "ConformalTransducer",
    "CoverageDisplay",
    "CrossTransduction",
    "Exchangeability",
    "FillResult",
    "GraphMapDisplay",
    "Guarantee",
    "LeaveOneOutDisplay",
    "MethodChoice",
    "MomentDisplay",
    "NeighborChoice",
    "NeighborChoiceDisplay",
    "NeighborGraph",
    "PartlyLabelled",
    "RegionDisplay",
    "Regions",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "RidgeConfidenceClassifier",
    "RidgeConfidenceMachine",
    "Selection",
    "SpectralGraphTransducer",
    "Spectrum",
    "TransductionDisplay",
    "TransductiveBlend",
    "TransductiveGPRegressor",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "TransductiveSearchCV",
    "area_under_rejection_curve",
    "choose_method",
    "choose_n_neighbors",
    "cross_val_transduce",
    "exchangeability_test",
    "fill",
    "graph_spectrum",
    "leave_one_out",
    "neighbor_graph",
    "precision_recall_break_even",
    "rejection_curve",
    "show_progress",
]
