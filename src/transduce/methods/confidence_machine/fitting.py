"""A confidence machine from settings to a fitted machine: the user's rows become the machine's; the guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from transduce.core import checks, validation
from transduce.core.guarantee import Guarantee
from transduce.core.kernels import Kernel, KernelLike, check_kernel, median_width, uses_width
from transduce.core.notices import TooFewLabelsWarning
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.bordered_ridge import PrimalRidge
from transduce.methods.confidence_machine.machine import Machine
from transduce.methods.confidence_machine.residual_lines import POWER


@dataclass(frozen=True)
class Settings:
    """The estimators' settings, under their names; the last is the classifier's."""

    kernel: KernelLike
    width: float | str
    ridge: float
    degree: float
    coef0: float
    fit_intercept: bool
    standardize: bool
    residual: str
    confidence: float
    max_memory_mb: float
    label_conditional: bool = False


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Return the estimator's settings, checked."""
    settings = Settings(**{item.name: given[item.name] for item in fields(Settings) if item.name in given})
    check_kernel(settings.kernel)
    checks.check_positive("ridge", settings.ridge)
    checks.check_positive("max_memory_mb", settings.max_memory_mb)
    checks.check_choice("residual", settings.residual, tuple(POWER))
    checks.check_confidence(settings.confidence)
    if settings.width != "median":
        checks.check_positive("width (a number, or 'median')", settings.width, least=1e-100, most=1e100)
    for name in ("degree", "coef0"):
        checks.check_number(name, getattr(settings, name))
    for name in ("standardize", "fit_intercept", "label_conditional"):
        checks.check_flag(name, getattr(settings, name))
    return settings


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted machine, and how the user's rows become its rows.

    `own_value` is the kernel value of every row with itself, if that is known; `estimated` is what the features set.
    """

    machine: Machine
    n: int
    labelled: AnyArray
    precomputed: bool
    own_value: float | None
    scaling: Scaling | None
    width: float | None
    estimated: tuple[str, ...]

    @property
    def form(self) -> str:
        """The form of the ridge regression."""
        return "primal" if isinstance(self.machine.fit, PrimalRidge) else "dual"

    def new_rows(self, X: Any, read_rows: Callable[[Any], Array], *, own_value: bool = True) -> Array:
        """Return rows given after `fit` as the machine takes them; `read_rows` reads rows like those of `fit`."""
        if not self.precomputed:
            rows = read_rows(X)
            return self.scaling.apply(rows) if self.scaling else rows
        if own_value and self.own_value is not None and np.shape(X)[1:] == (self.n,):
            warnings.warn(
                f"The kernel values of new rows with themselves (column {self.n + 1}) are not given: "
                f"{self.own_value:g} is taken, as for all rows of fit.",
                stacklevel=4,
            )
        rows = validation.read_kernel_rows(X, self.n, self.own_value, own_value=own_value)
        return _with_own(rows, self.labelled)

    def guarantee(self, sample: PartlyLabelled, exact: Guarantee) -> Guarantee:
        """Return what is guaranteed at the unlabelled rows, with its reasons; with none, for rows given later."""
        exact = replace(exact, n_labelled=len(self.labelled))
        if self.machine.fit.jitter > 0.0:
            reason = "The ridge had to be raised for numerical reasons."
            return replace(exact, kind="approximate", reasons=(reason,))
        if not self.estimated:
            return replace(exact, reasons=("No setting was estimated from the data.",))
        what = " and ".join(self.estimated)
        if sample.labelled.all():
            reason = f"The features set {what}, and rows given only to predict had no part in that."
            return replace(exact, kind="approximate", reasons=(reason,))
        reasons = (
            f"The features of all rows, labelled and unlabelled alike, set {what}; no label did.",
            "Rows given only to predict had no part in that: for them the guarantee is approximate.",
        )
        return replace(exact, reasons=reasons)


def _with_own(values: Array, labelled: AnyArray) -> Array:
    """Return kernel values with the labelled rows alone, and the last column: values of rows with themselves."""
    return np.column_stack([values[:, labelled], values[:, -1]])


def fit_machine(sample: PartlyLabelled, y_l: Array, settings: Settings) -> tuple[Fitted, Array]:
    """Fit the machine to the labelled rows; return the unlabelled rows in the form it takes, too."""
    rows, labelled = sample.X, np.flatnonzero(sample.labelled)
    own_value, scaling, width = None, None, None
    precomputed, estimated = settings.kernel == "precomputed", []
    if precomputed:
        checks.check_square(rows)
        own = np.diag(rows)
        # A kernel that is the same for all rows with themselves is so for rows yet to come.
        own_value = float(own[0]) if np.allclose(own, own[0], rtol=1e-12, atol=0.0) else None
        rows = _with_own(np.column_stack([rows, own]), labelled)
    elif settings.standardize:
        scaling, rows = Scaling.fit_apply(rows)
        estimated.append("their scale")
    if uses_width(settings.kernel) and settings.width == "median":
        width = median_width(rows)
        estimated.append("the kernel's width")
    elif uses_width(settings.kernel):
        width = float(settings.width)
    machine = Machine.build(
        rows[sample.labelled],
        y_l,
        Kernel(settings.kernel, width or 1.0, settings.degree, settings.coef0),
        ridge=float(settings.ridge),
        fit_intercept=bool(settings.fit_intercept),
        power=POWER[settings.residual],
        max_bytes=float(settings.max_memory_mb) * 2**20,
    )
    n = len(sample.X)
    fitted = Fitted(machine, n, labelled, precomputed, own_value, scaling, width, tuple(estimated))
    return fitted, rows[sample.unlabelled]


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )
