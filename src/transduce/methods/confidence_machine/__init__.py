"""Ridge regression confidence machine (Nouretdinov, Melluish, Vovk 2001)."""

from transduce.methods.confidence_machine.confidence_machines import (
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
)
from transduce.methods.confidence_machine.setting_grid import Setting

__all__ = ["RidgeConfidenceClassifier", "RidgeConfidenceMachine", "Setting"]
