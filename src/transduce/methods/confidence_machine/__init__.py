"""Ridge regression confidence machine (Nouretdinov, Melluish, Vovk 2001)."""

from transduce.methods.confidence_machine.classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine.menu import Setting
from transduce.methods.confidence_machine.regressor import RidgeConfidenceMachine

__all__ = ["RidgeConfidenceClassifier", "RidgeConfidenceMachine", "Setting"]
