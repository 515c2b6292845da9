"""Plots of answers, in the manner of scikit-learn's displays: notebooks, docs and reports share them."""

from transduce.display.answers import (
    CoverageDisplay,
    MiscoverageDisplay,
    RegionDisplay,
    RejectionCurveDisplay,
    TransductionDisplay,
)
from transduce.display.estimators import (
    BandDisplay,
    EnvelopeDisplay,
    GraphMapDisplay,
    LeaveOneOutDisplay,
    MomentDisplay,
    RelevanceDisplay,
)

__all__ = ["CoverageDisplay", "MiscoverageDisplay", "RegionDisplay", "RejectionCurveDisplay"]
__all__ += ["BandDisplay", "EnvelopeDisplay", "GraphMapDisplay", "LeaveOneOutDisplay", "MomentDisplay"]
__all__ += ["RelevanceDisplay", "TransductionDisplay"]
