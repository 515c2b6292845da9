"""Plots of answers, in the manner of scikit-learn's displays: notebooks, docs and reports share them."""

from transduce.display.envelope import EnvelopeDisplay
from transduce.display.gaussian import BandDisplay, MomentDisplay, RelevanceDisplay
from transduce.display.graph import GraphMapDisplay, NeighborChoiceDisplay
from transduce.display.miscoverage import MiscoverageDisplay
from transduce.display.regions import CoverageDisplay, RegionDisplay
from transduce.display.rejection import RejectionCurveDisplay
from transduce.display.ridge import LeaveOneOutDisplay, TransductionDisplay

__all__ = [
    "BandDisplay",
    "CoverageDisplay",
    "EnvelopeDisplay",
    "GraphMapDisplay",
    "LeaveOneOutDisplay",
    "MiscoverageDisplay",
    "MomentDisplay",
    "NeighborChoiceDisplay",
    "RegionDisplay",
    "RejectionCurveDisplay",
    "RelevanceDisplay",
    "TransductionDisplay",
]
