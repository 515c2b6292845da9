"""Moment-matched Gaussian process (Le, Smola, Gartner, Altun 2006).

The paper's objective is `Objective` in `process`, its match of moments `match_moments` there, and
`descents` lowers it. Covariances and their derivatives are in `covariances`, the matrices behind
them in `triangles` (numpy) and `transduce.device.likelihood`; classes are in `laplace`.
"""

from transduce.methods.gaussian_process.classifier import TransductiveGPClassifier
from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor

__all__ = ["TransductiveGPClassifier", "TransductiveGPRegressor"]
