"""Settings of Bayesian transduction: what they may be, how automatic ones are chosen, contradictions in labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from transduce.core import checks
from transduce.core.kernels import Kernel, check_kernel, median_width, uses_width
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.transducer import ClassTransducer
from transduce.core.types import AnyArray, Array
from transduce.methods.billiard.probabilities import SOFTNESSES, WIDTHS, Candidates


def _is(setting: Any, word: str) -> bool:
    return isinstance(setting, str) and setting == word


class BayesianShell(ClassTransducer):
    """Everything but the vote."""

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        width: Any = "median",
        softness: Any = 0.0,
        bias: float = 1.0,
        n_balls: int = 8,
        tolerance: float = 0.01,
        max_bounces: int = 400_000,
        predict_with: str = "vote",
        reject_below: float | None = None,
        reject_share: float | None = None,
        max_memory_mb: float = 1024,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.softness = softness
        self.bias = bias
        self.n_balls = n_balls
        self.tolerance = tolerance
        self.max_bounces = max_bounces
        self.predict_with = predict_with
        self.reject_below = reject_below
        self.reject_share = reject_share
        self.max_memory_mb = max_memory_mb
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def _check_settings(self, sample: PartlyLabelled) -> None:
        check_kernel(self.kernel)
        if not _is(self.width, "median") and not _is(self.width, "cv"):
            checks.check_positive("width (a number, 'median' or 'cv')", self.width, least=1e-100, most=1e100)
        if not _is(self.softness, "cv"):
            checks.check_number("softness (a number from 0, or 'cv')", self.softness)
            checks.check_not_negative("softness", self.softness, "'cv' or a number from 0")
        checks.check_number("bias", self.bias)
        checks.check_not_negative("bias", self.bias, "a number from 0")
        checks.check_whole("n_balls", self.n_balls, least=2)
        checks.check_whole("max_bounces", self.max_bounces, least=1)
        checks.check_positive("tolerance", self.tolerance)
        checks.check_positive("max_memory_mb", self.max_memory_mb)
        checks.check_choice("predict_with", self.predict_with, ("vote", "bayes_point"))
        checks.check_flag("standardize", self.standardize)
        checks.check_jobs(self.n_jobs)
        for name in ("reject_below", "reject_share"):
            value = getattr(self, name)
            if value is not None:
                checks.check_number(name, value)
                if not 0.0 <= value <= 1.0:
                    raise ValueError(f"{name} must lie between 0 and 1; got {value!r}.")
        if self.reject_below is not None and self.reject_share is not None:
            raise ValueError("Give either reject_below or reject_share, not both.")
        if self.kernel == "precomputed":
            checks.check_square(sample.X)

    def _scale(self, X: Array) -> Array:
        self._scaling = None
        if self.kernel != "precomputed" and self.standardize:
            self._scaling, X = Scaling.fit_apply(X)
        if callable(self.kernel):
            Kernel(self.kernel).check_symmetry(X)
        self._own: float | None = None  # every row's kernel value with itself, if it is the same for all
        if self.kernel == "precomputed" and np.allclose(X.diagonal(), X[0, 0], rtol=1e-10, atol=0.0):
            self._own = float(X[0, 0])
        return X

    def _choose(self, rows: Array, codes: AnyArray, seed: int) -> Array:
        """Set width and softness; return the kernel matrix of the labelled rows, bias included."""
        has_width = uses_width(self.kernel)
        candidates = Candidates(Kernel(self.kernel), self._rows_l, codes, float(self.bias))
        middle = median_width(rows) if has_width and isinstance(self.width, str) else 1.0
        widths = [middle] if isinstance(self.width, str) else [float(self.width)]
        if has_width and _is(self.width, "cv"):
            widths = [middle * factor for factor in WIDTHS]
        softnesses = [self.softness]
        if _is(self.softness, "cv"):
            unit = float(candidates.gram(widths[0]).diagonal().mean())
            softnesses = [unit * factor for factor in SOFTNESSES]
        width, softness = widths[len(widths) // 2], float(softnesses[len(softnesses) // 2])
        if len(widths) * len(softnesses) > 1:
            if np.bincount(codes).min() >= 2:
                self.cv_path_ = candidates.compare(widths, softnesses, seed, self.n_jobs)
                best = self.cv_path_.iloc[int(self.cv_path_["log_loss"].to_numpy().argmin())]
                width, softness = float(best["width"]), float(best["softness"])
            else:
                warnings.warn(
                    "A class has one label only, too few to choose width or softness by: width "
                    f"{width:.3g} and softness {softness:.3g} are used.",
                    stacklevel=4,
                )
        self.width_, self.softness_ = (width if has_width else None), softness
        self._kernel, self._bias = Kernel(self.kernel, width), float(self.bias)
        return candidates.gram(width)

    def _check_contradictions(self, K: Array, sample: PartlyLabelled, codes: AnyArray) -> None:
        """Raise a ValueError that names two rows which are one in feature space but differ in label."""
        if self.softness_ > 0.0:
            return
        norms = np.sqrt(np.maximum(K.diagonal(), np.finfo(float).tiny))
        for i in range(len(K)):
            same = (K[i] > (1.0 - 1e-13) * norms[i] * norms) & (codes != codes[i])
            if same.any():
                j = int(np.flatnonzero(same)[0])
                one, two = sorted((i, j), key=lambda k: self._labelled[k])
                equal = self.kernel == "precomputed" or np.array_equal(self._rows_l[one], self._rows_l[two])
                raise ValueError(self._contradiction(sample, one, two, equal))

    def _contradiction(self, sample: PartlyLabelled, one: int, two: int, equal: bool) -> str:
        index = range(len(sample.X)) if sample.index is None else sample.index
        names = f"Rows {index[self._labelled[one]]} and {index[self._labelled[two]]}"
        if equal:
            return (
                f"{names} are equal but labelled differently, so no separator gets both right: let labels be wrong "
                "with softness > 0 (or softness='cv'), or drop one of them."
            )
        return (
            f"{names} cannot be told apart by this kernel in double precision, but are labelled differently: scale the "
            "features (standardize=True), give a smaller width or bias, or softness > 0."
        )

    def _inseparable(self) -> str:
        """Return what to do when no separator was found."""
        if self.softness_ > 0.0:
            how = f"give a softness larger than {self.softness_:g}"
        else:
            how = "let labels be wrong with softness > 0 (or softness='cv')"
        width = ", or give the kernel a smaller width" if self.width_ is not None else ""
        return (
            "No separator in this kernel's feature space gets every labelled row right, as far as double precision can "
            f"tell: {how}{width}. Features far from 0 should be standardised."
        )
