"""How the labels came about: what that assumes, which labels calibrate, and how much each of them weighs."""

from transduce.conformal.designs.base import AnyDesign, Design
from transduce.conformal.designs.by_class import ByClass
from transduce.conformal.designs.chance import Chance
from transduce.conformal.designs.drawn import Drawn
from transduce.conformal.designs.estimated import Estimated
from transduce.conformal.designs.grouped import Grouped
from transduce.conformal.designs.held_out import calibration_number, labels_needed
from transduce.conformal.designs.registry import read_design
from transduce.conformal.designs.rows import DrawnRows
from transduce.conformal.designs.sampled import Sampled
from transduce.conformal.designs.weights import CLASSES, ESTIMATED, GROUPS, KNOWN, Weights

__all__ = ["ByClass", "Chance", "Drawn", "Estimated", "Grouped", "Sampled"]
__all__ += ["CLASSES", "ESTIMATED", "GROUPS", "KNOWN", "AnyDesign", "Design", "DrawnRows"]
__all__ += ["Weights", "calibration_number", "labels_needed", "read_design"]
