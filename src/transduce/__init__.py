"""Transductive inference: answers at the rows you have, with honest uncertainty.

The main names are here and are imported when first used; everything else is in its room, as in
scikit-learn: `transduce.model_selection`, `transduce.conformal`, `transduce.display`,
`transduce.metrics`, `transduce.methods`.
"""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.app.auditing import audit as audit
    from transduce.app.filling import FillResult as FillResult
    from transduce.app.filling import fill as fill
    from transduce.conformal import ConformalTransducer as ConformalTransducer
    from transduce.core.answer import Answer as Answer
    from transduce.core.answer import Regions as Regions
    from transduce.core.computing import show_progress as show_progress
    from transduce.core.guarantee import Guarantee as Guarantee
    from transduce.ensemble import TransductiveBlend as TransductiveBlend
    from transduce.methods.bayesian import BayesianTransducer as BayesianTransducer
    from transduce.methods.confidence_machine import (
        RidgeConfidenceClassifier as RidgeConfidenceClassifier,
    )
    from transduce.methods.confidence_machine import (
        RidgeConfidenceMachine as RidgeConfidenceMachine,
    )
    from transduce.methods.gaussian_process import (
        TransductiveGPClassifier as TransductiveGPClassifier,
    )
    from transduce.methods.gaussian_process import (
        TransductiveGPRegressor as TransductiveGPRegressor,
    )
    from transduce.methods.ridge import TransductiveRidge as TransductiveRidge
    from transduce.methods.ridge import TransductiveRidgeClassifier as TransductiveRidgeClassifier
    from transduce.methods.spectral_graph import SpectralGraphTransducer as SpectralGraphTransducer

__version__ = "0.1.0"

_HOMES = {
    "Answer": "transduce.core.answer",
    "BayesianTransducer": "transduce.methods.bayesian",
    "ConformalTransducer": "transduce.conformal",
    "FillResult": "transduce.app.filling",
    "Guarantee": "transduce.core.guarantee",
    "Regions": "transduce.core.answer",
    "RidgeConfidenceClassifier": "transduce.methods.confidence_machine",
    "RidgeConfidenceMachine": "transduce.methods.confidence_machine",
    "SpectralGraphTransducer": "transduce.methods.spectral_graph",
    "TransductiveBlend": "transduce.ensemble",
    "TransductiveGPClassifier": "transduce.methods.gaussian_process",
    "TransductiveGPRegressor": "transduce.methods.gaussian_process",
    "TransductiveRidge": "transduce.methods.ridge",
    "TransductiveRidgeClassifier": "transduce.methods.ridge",
    "audit": "transduce.app.auditing",
    "fill": "transduce.app.filling",
    "show_progress": "transduce.core.computing",
}
__all__ = sorted([*_HOMES, "__version__"])
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
