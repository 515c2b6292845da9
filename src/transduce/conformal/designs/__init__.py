"""How the labels came about: what that assumes, which labels calibrate, how much each weighs."""

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.by_class import ByClass
from transduce.conformal.designs.by_value import ByValue
from transduce.conformal.designs.chance import Chance
from transduce.conformal.designs.drawn import BoundDrawn, Drawn
from transduce.conformal.designs.estimated import Estimated
from transduce.conformal.designs.grouped import Grouped
from transduce.conformal.designs.held_out import calibration_number, labels_needed, most_calibration
from transduce.conformal.designs.registry import bind_labels
from transduce.conformal.designs.sampled import Sampled
from transduce.conformal.designs.seen import Seen
from transduce.conformal.designs.weights import (
    CLASSES,
    ESTIMATED,
    GROUPS,
    KNOWN,
    Grounds,
    GroupCounts,
    Strata,
    Weights,
)

__all__ = ["ByClass", "ByValue", "Chance", "Drawn", "Estimated", "Grouped", "Sampled", "Seen"]
__all__ += ["CLASSES", "ESTIMATED", "GROUPS", "KNOWN", "BoundDesign", "BoundDrawn", "Design"]
__all__ += ["Grounds", "GroupCounts", "Strata"]
__all__ += ["Weights", "bind_labels", "calibration_number", "labels_needed", "most_calibration"]
