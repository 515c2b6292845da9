"""Transductive inference: answers at the rows you have, with honest uncertainty.

The main names are here and are imported when first used; everything else is in its room, as in scikit-learn:
`transduce.model_selection`, `transduce.conformal`, `transduce.display`, `transduce.metrics`, `transduce.methods`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.conformal import ConformalTransducer
    from transduce.core.answer import Answer
    from transduce.core.guarantee import Guarantee
    from transduce.core.progress import show_progress
    from transduce.core.regions import Regions
    from transduce.ensemble import TransductiveBlend
    from transduce.filling import FillResult, fill
    from transduce.methods.billiard import BayesianTransducer
    from transduce.methods.confidence_machine import RidgeConfidenceClassifier, RidgeConfidenceMachine
    from transduce.methods.gaussian_process import TransductiveGPRegressor
    from transduce.methods.ridge import TransductiveRidge, TransductiveRidgeClassifier
    from transduce.methods.spectral_graph import SpectralGraphTransducer

__version__ = "0.1.0"

_HOMES = {
    "Answer": "core.answer",
    "BayesianTransducer": "methods.billiard",
    "ConformalTransducer": "conformal",
    "FillResult": "filling",
    "Guarantee": "core.guarantee",
    "Regions": "core.regions",
    "RidgeConfidenceClassifier": "methods.confidence_machine",
    "RidgeConfidenceMachine": "methods.confidence_machine",
    "SpectralGraphTransducer": "methods.spectral_graph",
    "TransductiveBlend": "ensemble",
    "TransductiveGPRegressor": "methods.gaussian_process",
    "TransductiveRidge": "methods.ridge",
    "TransductiveRidgeClassifier": "methods.ridge",
    "fill": "filling",
    "show_progress": "core.progress",
}

__all__ = [
    "Answer",
    "BayesianTransducer",
    "ConformalTransducer",
    "FillResult",
    "Guarantee",
    "Regions",
    "RidgeConfidenceClassifier",
    "RidgeConfidenceMachine",
    "SpectralGraphTransducer",
    "TransductiveBlend",
    "TransductiveGPRegressor",
    "TransductiveRidge",
    "TransductiveRidgeClassifier",
    "__version__",
    "fill",
    "show_progress",
]


def __getattr__(name: str) -> Any:
    """Import a main name when it is first used, or a room."""
    if name in _HOMES:
        value = getattr(import_module(f"transduce.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'transduce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
