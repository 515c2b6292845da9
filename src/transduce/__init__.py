"""Transductive inference: answers at the rows you have, with honest uncertainty.

The main names are here and are imported when first used; everything else is in its room, as in scikit-learn:
`transduce.model_selection`, `transduce.conformal`, `transduce.display`, `transduce.metrics`, `transduce.methods`.
"""

from typing import TYPE_CHECKING

from transduce.core.lazy import lazy_names

if TYPE_CHECKING:
    from transduce.conformal import ConformalTransducer
    from transduce.core.answer import Answer
    from transduce.core.computing import show_progress
    from transduce.core.guarantee import Guarantee
    from transduce.core.regions import Regions
    from transduce.ensemble import TransductiveBlend
    from transduce.filling import FillResult, fill
    from transduce.methods.billiard import BayesianTransducer
    from transduce.methods.confidence_machine import RidgeConfidenceClassifier, RidgeConfidenceMachine
    from transduce.methods.gaussian_process import TransductiveGPRegressor
    from transduce.methods.ridge import TransductiveRidge, TransductiveRidgeClassifier
    from transduce.methods.spectral_graph import SpectralGraphTransducer

__version__ = "0.1.0"

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

_HOMES = {
    "Answer": "transduce.core.answer",
    "BayesianTransducer": "transduce.methods.billiard",
    "ConformalTransducer": "transduce.conformal",
    "FillResult": "transduce.filling",
    "Guarantee": "transduce.core.guarantee",
    "Regions": "transduce.core.regions",
    "RidgeConfidenceClassifier": "transduce.methods.confidence_machine",
    "RidgeConfidenceMachine": "transduce.methods.confidence_machine",
    "SpectralGraphTransducer": "transduce.methods.spectral_graph",
    "TransductiveBlend": "transduce.ensemble",
    "TransductiveGPRegressor": "transduce.methods.gaussian_process",
    "TransductiveRidge": "transduce.methods.ridge",
    "TransductiveRidgeClassifier": "transduce.methods.ridge",
    "fill": "transduce.filling",
    "show_progress": "transduce.core.computing",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
