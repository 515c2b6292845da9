"""Ridge regression confidence machine (Nouretdinov, Melluish, Vovk 2001).

The paper's formula is in `residual_lines`: each labelled row's residual as a line in the candidate
label, and the region of labels that enough lines exceed. `bordered_ridge` has the regression that
gives these lines, `machine` puts both together, and `window` is a faster route to the same region.
What an estimator is set to is read in `machine_options`, and what holds is in `promises`.
Settings chosen anew for each candidate label are in `tuned_machine` and `parabolas`, regions that
follow difficulty in `local_spread` and `quartics`.
"""

from transduce.methods.confidence_machine.confidence_machines import (
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
)
from transduce.methods.confidence_machine.setting_grid import Setting

__all__ = ["RidgeConfidenceClassifier", "RidgeConfidenceMachine", "Setting"]
