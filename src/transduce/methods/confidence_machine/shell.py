"""What the confidence machines for numbers and for classes share: settings, fitting, the guarantee."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks, validation
from transduce.core.guarantee import Guarantee
from transduce.core.kernels import Kernel, check_kernel, median_width, uses_width
from transduce.core.notices import TooFewLabelsWarning
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.transducer import Transducer
from transduce.core.types import Array
from transduce.methods.confidence_machine.bordered_ridge import PrimalRidge
from transduce.methods.confidence_machine.machine import Machine
from transduce.methods.confidence_machine.residual_lines import POWER


class ConfidenceShell(Transducer):
    """What the two estimators share: settings, fitting, and turning the user's rows into the machine's."""

    def _fit_machine(self, sample: PartlyLabelled, y_l: Array) -> Array:
        """Fit the machine to the labelled rows; return all rows in the form it takes."""
        self._check_settings(sample)
        self._labelled = np.flatnonzero(sample.labelled)
        self._scaling = None
        rows = sample.X
        if self.kernel == "precomputed":
            own = np.diag(rows)
            # A kernel that is the same for all rows with themselves is so for rows yet to come.
            self._own_value = float(own[0]) if np.allclose(own, own[0], rtol=1e-12, atol=0.0) else None
            rows = self._represent(np.column_stack([rows, own]))
        elif self.standardize:
            self._scaling, rows = Scaling.fit_apply(rows)
        self.width_ = None
        if uses_width(self.kernel):
            self.width_ = median_width(rows) if self.width == "median" else float(self.width)
        self._machine = Machine.build(
            rows[sample.labelled],
            y_l,
            Kernel(self.kernel, self.width_ or 1.0, self.degree, self.coef0),
            ridge=float(self.ridge),
            fit_intercept=bool(self.fit_intercept),
            power=POWER[self.residual],
            max_bytes=float(self.max_memory_mb) * 2**20,
        )
        return rows

    def _check_settings(self, sample: PartlyLabelled) -> None:
        check_kernel(self.kernel)
        checks.check_positive("ridge", self.ridge)
        checks.check_positive("max_memory_mb", self.max_memory_mb)
        checks.check_choice("residual", self.residual, tuple(POWER))
        checks.check_confidence(self.confidence)
        if self.width != "median":
            checks.check_positive("width (a number, or 'median')", self.width, least=1e-100, most=1e100)
        for name in ("degree", "coef0"):
            checks.check_number(name, getattr(self, name))
        for name in ("standardize", "fit_intercept"):
            checks.check_flag(name, getattr(self, name))
        if self.kernel == "precomputed":
            checks.check_square(sample.X)

    def _represent(self, X: Array) -> Array:
        """Return rows of features or, precomputed, of kernel values and own value, as the machine takes them."""
        if self.kernel == "precomputed":
            return np.column_stack([X[:, self._labelled], X[:, -1]])
        return self._scaling.apply(X) if self._scaling else X

    def _read_new(self, X: Any, *, own_value: bool = True) -> Array:
        """Return rows given after `fit`, checked, in the form the machine takes."""
        check_is_fitted(self)
        if self.kernel != "precomputed":
            return self._represent(validation.read_rows(self, X, reset=False))
        n = self.n_features_in_
        if own_value and self._own_value is not None and np.shape(X)[1:] == (n,):
            warnings.warn(
                f"The kernel values of new rows with themselves (column {n + 1}) are not given: {self._own_value:g} is "
                "taken, as for all rows of fit.",
                stacklevel=3,
            )
        return self._represent(validation.read_kernel_rows(X, n, self._own_value, own_value=own_value))

    def _level(self, confidence: float | None) -> float:
        return checks.check_confidence(self.confidence if confidence is None else confidence)

    def _guarantee(self, sample: PartlyLabelled, guarantee: str) -> Guarantee:
        """Return the guarantee for the unlabelled rows; with none unlabelled, for rows given later."""
        estimated = [
            *(["their scale"] if self._scaling else []),
            *(["the kernel's width"] if uses_width(self.kernel) and self.width == "median" else []),
        ]
        if self._machine.fit.jitter > 0.0:
            return Guarantee("approximate", guarantee, "The ridge had to be raised for numerical reasons.")
        if not estimated:
            return Guarantee("exact", guarantee, "No setting was estimated from the data.")
        what = " and ".join(estimated)
        if sample.labelled.all():
            why = f"The features set {what}, and rows given only to predict had no part in that."
            return Guarantee("approximate", guarantee, why)
        why = (
            f"The features of all rows, labelled and unlabelled alike, set {what}; no label did. Rows given "
            "only to predict had no part in that: for them the guarantee is approximate."
        )
        return Guarantee("exact", guarantee, why)

    def _form(self) -> str:
        return "primal" if isinstance(self._machine.fit, PrimalRidge) else "dual"


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )
