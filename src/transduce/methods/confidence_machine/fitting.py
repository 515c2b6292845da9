"""A confidence machine from settings to a fitted machine: the user's rows become the machine's; the guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from transduce.core import arrays, checks, validation
from transduce.core.guarantee import Guarantee
from transduce.core.kernels import Kernel, KernelLike, check_kernel, median_width, uses_width
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.confidence_machine.bordered_ridge import PrimalRidge
from transduce.methods.confidence_machine.machine import Machine
from transduce.methods.confidence_machine.menu import Menu, Setting, check_settings, default_menu, given_menu
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.tuned import TunedMachine

_CHOSEN = (
    "For every candidate label the setting was chosen by the leave-one-out error of the sample completed with it, "
    "which treats all rows alike."
)


@dataclass(frozen=True)
class Settings:
    """The estimators' settings, under their names; the last is the classifier's.

    `residual` is "auto" no more; `settings` is None, "leave-one-out", or a list of checked ones.
    """

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
    settings: str | tuple[Setting, ...] | None
    label_conditional: bool = False

    @property
    def precomputed(self) -> bool:
        """Whether rows are kernel values."""
        return self.kernel == "precomputed"


FIXED = {"kernel": "rbf", "width": "median", "ridge": 1.0, "degree": 3, "coef0": 1.0}


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Return the estimator's settings, checked."""
    settings = Settings(**{item.name: given[item.name] for item in fields(Settings) if item.name in given})
    check_kernel(settings.kernel)
    checks.check_positive("ridge", settings.ridge)
    checks.check_positive("max_memory_mb", settings.max_memory_mb)
    checks.check_choice("residual", settings.residual, ("auto", *POWER))
    checks.check_confidence(settings.confidence)
    if settings.width != "median":
        checks.check_positive("width (a number, or 'median')", settings.width, least=1e-100, most=1e100)
    for name in ("degree", "coef0"):
        checks.check_number(name, getattr(settings, name))
    for name in ("standardize", "fit_intercept", "label_conditional"):
        checks.check_flag(name, getattr(settings, name))
    if settings.settings is not None:
        settings = replace(settings, settings=_read_menu(settings))
    if settings.residual == "auto":
        settings = replace(settings, residual="plain" if settings.settings is None else "studentized")
    return settings


def _read_menu(settings: Settings) -> str | tuple[Setting, ...]:
    """Return "leave-one-out" or the list of settings to choose from, which leave no word to those of the estimator."""
    for name, default in FIXED.items():
        value = getattr(settings, name)
        if value != default and not (name == "kernel" and settings.precomputed):
            raise ValueError(
                f"With settings given, {name}={value!r} has no meaning: leave it out, or name it in each Setting."
            )
    if isinstance(settings.settings, str) and settings.settings == "leave-one-out":
        return settings.settings
    found = check_settings(settings.settings)
    if settings.precomputed != any(setting.precomputed for setting in found):
        raise ValueError(
            "kernel='precomputed' goes with settings that have it: Setting('precomputed', ridge=...) for each ridge."
        )
    return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted machine, and how the user's rows become its rows.

    `own_value` is the kernel value of every row with itself, if that is known; `estimated` is what the features set.
    """

    machine: Machine | TunedMachine
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
        if isinstance(self.machine, TunedMachine):
            return "tuned"
        return "primal" if isinstance(self.machine.fit, PrimalRidge) else "dual"

    @property
    def settings(self) -> tuple[Setting, ...] | None:
        """The settings that were chosen from, if any were."""
        return self.machine.menu.settings if isinstance(self.machine, TunedMachine) else None

    def new_rows(self, X: Any, read_rows: Callable[[Any], Array], *, own_value: bool = True) -> Array:
        """Return rows given after `fit` as the machine takes them; `read_rows` reads rows like those of `fit`."""
        if not self.precomputed:
            rows = read_rows(X)
            return self.scaling.apply(rows) if self.scaling else rows
        own_value = own_value or isinstance(self.machine, TunedMachine)  # which needs it for everything
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
        tuned = isinstance(self.machine, TunedMachine)
        jitter = self.machine.jitter if isinstance(self.machine, TunedMachine) else self.machine.fit.jitter
        chosen = (_CHOSEN,) if tuned else ()
        if jitter > 0.0:
            reason = "The ridge had to be raised for numerical reasons."
            return replace(exact, kind="approximate", reasons=(reason,))
        if not self.estimated:
            reason = "The features set nothing." if tuned else "No setting was estimated from the data."
            return replace(exact, reasons=(*chosen, reason))
        what = " and ".join(self.estimated)
        if sample.labelled.all():
            reason = f"The features set {what}, and rows given only to predict had no part in that."
            return replace(exact, kind="approximate", reasons=(*chosen, reason))
        reasons = (
            *chosen,
            f"The features of all rows, labelled and unlabelled alike, set {what}; no label did.",
            "Rows given only to predict had no part in that: for them the guarantee is approximate.",
        )
        return replace(exact, reasons=reasons)


def _with_own(values: Array, labelled: AnyArray) -> Array:
    """Return kernel values with the labelled rows alone, and the last column: values of rows with themselves."""
    if arrays.is_foreign(values):
        xp = arrays.namespace(values)
        return xp.concat([xp.take(values, arrays.beside(labelled, values), axis=1), values[:, -1:]], axis=1)
    return np.column_stack([values[:, labelled], values[:, -1]])


def fit_machine(sample: PartlyLabelled, y_l: Array, settings: Settings) -> tuple[Fitted, Array]:
    """Fit the machine to the labelled rows; return the unlabelled rows in the form it takes, too."""
    rows, labelled = sample.X, np.flatnonzero(sample.labelled)
    own_value, scaling = None, None
    estimated: list[str] = []
    if settings.precomputed:
        checks.check_square(rows)
        own = arrays.diagonal(rows)
        # A kernel that is the same for all rows with themselves is so for rows yet to come.
        near = arrays.namespace(own).abs(own - own[0]) <= 1e-12 * abs(float(own[0]))
        own_value = float(own[0]) if bool(arrays.namespace(own).all(near)) else None
        rows = _with_own(arrays.namespace(rows).concat([rows, own[:, None]], axis=1), labelled)
    elif settings.standardize:
        scaling, rows = Scaling.fit_apply(rows)
        estimated.append("their scale")
    machine: Machine | TunedMachine
    if settings.settings is None:
        machine, width = _build_fixed(rows, sample.labelled, y_l, settings, estimated)
    else:
        machine, width = _build_tuned(rows, sample.labelled, y_l, settings, estimated), None
    n = sample.X.shape[0]
    fitted = Fitted(machine, n, labelled, settings.precomputed, own_value, scaling, width, tuple(estimated))
    return fitted, arrays.pick(rows, ~sample.labelled)


def _build_fixed(
    rows: Array, labelled: Mask, y_l: Array, settings: Settings, estimated: list[str]
) -> tuple[Machine, float | None]:
    """Return the machine with one setting and its width; note if the features set that."""
    width = None
    if uses_width(settings.kernel) and settings.width == "median":
        width = median_width(rows)
        estimated.append("the kernel's width")
    elif uses_width(settings.kernel):
        width = float(settings.width)
    machine = Machine.build(
        arrays.pick(rows, labelled),
        y_l,
        Kernel(settings.kernel, width or 1.0, settings.degree, settings.coef0),
        ridge=float(settings.ridge),
        fit_intercept=bool(settings.fit_intercept),
        power=POWER[settings.residual],
        max_bytes=float(settings.max_memory_mb) * 2**20,
    )
    return machine, width


def _build_tuned(
    rows: Array, labelled: Mask, y_l: Array, settings: Settings, estimated: list[str]
) -> TunedMachine:
    """Return the machine that chooses its setting; note if the features set widths or trees."""
    if arrays.is_foreign(rows):
        raise ValueError(
            "settings are chosen on numpy arrays only: pass X as one, or set kernel, width and ridge."
        )
    choices = settings.settings
    if choices is None or isinstance(choices, str):
        choices = given_menu(rows[:, -1]) if settings.precomputed else default_menu(rows)
        estimated.append("the scale of the ridges" if settings.precomputed else "the kernels")
    elif any(setting.estimated for setting in choices):
        estimated.append("the kernels")
    return TunedMachine.build(
        Menu.build(choices, rows),
        rows[labelled],
        y_l,
        fit_intercept=bool(settings.fit_intercept),
        power=POWER[settings.residual],
        max_bytes=float(settings.max_memory_mb) * 2**20,
    )
