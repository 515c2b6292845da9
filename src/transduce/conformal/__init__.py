"""Guarantees for each row and for the column, around any estimator."""

from transduce.conformal.designs import ByClass, Chance, Drawn, Estimated, Grouped, Sampled
from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Miscoverage
from transduce.conformal.selection import Selection
from transduce.conformal.shares import ClassShares
from transduce.conformal.transducer import ConformalTransducer

__all__ = ["ByClass", "Chance", "ConformalTransducer", "Drawn", "Estimated", "Grouped", "Sampled"]
__all__ += ["CategoryMiscoverage", "ClassMiscoverage", "ClassShares", "Miscoverage", "Selection"]
__all__ += ["Exchangeability", "exchangeability_test"]
