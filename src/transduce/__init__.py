"""Transductive inference: answers at the rows you have, with honest uncertainty."""

from transduce.answer import Answer, Guarantee, Regions
from transduce.break_even import precision_recall_break_even
from transduce.display import (
    BandDisplay,
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
from transduce.graph import NeighborGraph
from transduce.loo import leave_one_out
from transduce.methods._graph_shell import neighbor_graph
from transduce.methods.bayesian_transducer import BayesianTransducer
from transduce.methods.confidence_classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.gaussian_process import TransductiveGPRegressor
from transduce.methods.neighbor_choice import NeighborChoice, choose_n_neighbors
from transduce.methods.ridge import TransductiveRidge
from transduce.methods.ridge_classifier import TransductiveRidgeClassifier
from transduce.methods.spectral_graph import SpectralGraphTransducer
from transduce.progress import show_progress
from transduce.rejection import area_under_rejection_curve, rejection_curve
from transduce.sample import PartlyLabelled
from transduce.spectrum import Spectrum, graph_spectrum

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BandDisplay",
    "BayesianTransducer",
    "CoverageDisplay",
    "GraphMapDisplay",
    "Guarantee",
    "LeaveOneOutDisplay",
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
    "SpectralGraphTransducer",
    "Spectrum",
    "TransductionDisplay",
    "TransductiveGPRegressor",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "area_under_rejection_curve",
    "choose_n_neighbors",
    "graph_spectrum",
    "leave_one_out",
    "neighbor_graph",
    "precision_recall_break_even",
    "rejection_curve",
    "show_progress",
]
