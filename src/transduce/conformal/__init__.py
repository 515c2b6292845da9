"""Guarantees for each row and for the column, around any estimator.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.conformal.designs import (
        ByClass,
        ByValue,
        Chance,
        Drawn,
        Estimated,
        Grouped,
        Sampled,
        Seen,
    )
    from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
    from transduce.conformal.miscoverage import CategoryMiscoverage, ClassMiscoverage, Miscoverage
    from transduce.conformal.selection import Selection
    from transduce.conformal.shares import ClassShares
    from transduce.conformal.transducer import ConformalTransducer

__all__ = ["ByClass", "Chance", "ConformalTransducer", "Drawn", "Estimated", "Grouped", "Sampled"]
__all__ += ["ByValue", "Seen"]
__all__ += ["CategoryMiscoverage", "ClassMiscoverage", "ClassShares", "Miscoverage", "Selection"]
__all__ += ["Exchangeability", "exchangeability_test"]

_HOMES = dict.fromkeys(__all__, "transduce.conformal.designs")
for _name in ("CategoryMiscoverage", "ClassMiscoverage", "Miscoverage"):
    _HOMES[_name] = "transduce.conformal.miscoverage"
for _name in ("Exchangeability", "exchangeability_test"):
    _HOMES[_name] = "transduce.conformal.exchangeability"
_HOMES["ClassShares"] = "transduce.conformal.shares"
_HOMES["ConformalTransducer"] = "transduce.conformal.transducer"
_HOMES["Selection"] = "transduce.conformal.selection"
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
