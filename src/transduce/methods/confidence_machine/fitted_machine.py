"""A fitted confidence machine: the user's rows become the machine's, what it says at rows, and the guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Mask
from transduce.device.kernels import Kernel, KernelLike, check_kernel, median_width
from transduce.methods.confidence_machine.machine import Machine, count_classes, count_labels, find_regions
from transduce.methods.confidence_machine.menu import Menu, Setting, check_settings, default_menu, given_menu
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.tuned_machine import (
    RowAnswers,
    TunedMachine,
    answer_rows,
    class_p_values,
    label_p_values,
)
from transduce.methods.confidence_machine.tuned_regions import ClassPValues

AnyMachine = Machine | TunedMachine
_CHOSEN = (
    "For every candidate label the setting was chosen by the leave-one-out error of the sample completed with it, "
    "which treats all rows alike."
)


@dataclass(frozen=True)
class MachineSettings:
    """The settings of a machine, checked: one for all candidate labels, unless there is a menu to choose from."""

    fixed: Setting
    menu: str | tuple[Setting, ...] | None  # "leave-one-out" is a menu made for the rows
    standardize: bool
    build: dict[str, Any]  # what every machine is built with


def read_settings(params: Mapping[str, Any]) -> MachineSettings:
    """Return the estimator's settings, checked."""
    check_kernel(params["kernel"])
    fixed = Setting(**{item.name: params[item.name] for item in fields(Setting)})
    fixed.check()
    checks.check_positive("max_memory_mb", params["max_memory_mb"])
    checks.check_choice("residual", params["residual"], ("auto", *POWER))
    checks.check_share("confidence", params["confidence"])
    for name in ("standardize", "fit_intercept", "label_conditional"):
        checks.check_flag(name, params.get(name, False))
    menu, residual = params["settings"], params["residual"]
    if menu is not None:
        menu = _read_menu(menu, fixed)
    if residual == "auto":
        residual = "plain" if menu is None else "studentized"
    build = {
        "fit_intercept": bool(params["fit_intercept"]),
        "power": POWER[residual],
        "max_bytes": float(params["max_memory_mb"]) * 2**20,
    }
    return MachineSettings(fixed, menu, bool(params["standardize"]), build)


def _read_menu(menu: Any, fixed: Setting) -> str | tuple[Setting, ...]:
    """Return "leave-one-out" or the settings to choose from, if the estimator's own are left at their defaults."""
    for item in fields(Setting):
        value = getattr(fixed, item.name)
        if value != item.default and not (item.name == "kernel" and fixed.precomputed):
            raise ValueError(
                f"With settings given, {item.name}={value!r} has no meaning: leave it out, or name it in each Setting."
            )
    if isinstance(menu, str) and menu == "leave-one-out":
        return menu
    choices = check_settings(menu)
    if fixed.precomputed != any(setting.precomputed for setting in choices):
        raise ValueError(
            "kernel='precomputed' goes with settings that have it: Setting('precomputed', ridge=...) for each ridge."
        )
    return choices


@dataclass(frozen=True, eq=False)
class FittedMachine:
    """A fitted machine, and how the user's rows become its rows."""

    machine: AnyMachine
    n: int  # rows of fit
    labelled: AnyArray  # positions among them
    precomputed: bool
    own_value: float | None  # the kernel value of every row with itself, if that is known
    scaling: Scaling | None
    width: float | None
    estimated: tuple[str, ...]  # what the features set

    @property
    def menu(self) -> Menu | None:
        """What was chosen from, if settings were."""
        return self.machine.menu if isinstance(self.machine, TunedMachine) else None

    @property
    def settings(self) -> tuple[Setting, ...] | None:
        """The settings that were chosen from, if any were."""
        return None if self.menu is None else self.menu.settings

    def new_rows(self, estimator: Any, X: Any, *, own_value: bool) -> Array:
        """Return rows given after `fit` as the machine takes them."""
        if not self.precomputed:
            rows = validation.read_rows(estimator, X, reset=False, device=True)
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
        n_labelled = len(self.labelled)
        if self.machine.jitter > 0.0:
            reason = "The ridge had to be raised for numerical reasons."
            return replace(exact, kind="approximate", reasons=(reason,), n_labelled=n_labelled)
        chosen = () if self.settings is None else (_CHOSEN,)
        what, kind = " and ".join(self.estimated), exact.kind
        reasons: tuple[str, ...]
        if not self.estimated:
            reasons = ("The features set nothing." if chosen else "No setting was estimated from the data.",)
        elif sample.labelled.all():
            kind = "approximate"
            reasons = (f"The features set {what}, and rows given only to predict had no part in that.",)
        else:
            reasons = (
                f"The features of all rows, labelled and unlabelled alike, set {what}; no label did.",
                "Rows given only to predict had no part in that: for them the guarantee is approximate.",
            )
        return replace(exact, kind=kind, reasons=(*chosen, *reasons), n_labelled=n_labelled)


@dataclass(kw_only=True, eq=False, repr=False)
class MachineEstimator:
    """The settings of both confidence machines, and what they do with what a call gives them."""

    kernel: KernelLike = "rbf"
    width: float | str = "median"
    ridge: float = 1.0
    degree: float = 3
    coef0: float = 1.0
    fit_intercept: bool = True
    standardize: bool = True
    residual: str = "auto"
    confidence: float = 0.9
    max_memory_mb: float = 512
    settings: str | Sequence[Setting] | None = None
    missing_label: object = None
    _fitted: FittedMachine = field(init=False)

    def _new_rows(self, X: Any, *, own_value: bool = True) -> Array:
        if not hasattr(self, "answer_"):
            check_is_fitted(self)  # which takes its time, and says what to do
        return self._fitted.new_rows(self, X, own_value=own_value)

    def _level(self, confidence: float | None) -> float:
        return checks.check_share("confidence", self.confidence if confidence is None else confidence)


def tie_weights(n: int, smooth: bool, random_state: Any) -> Array:
    """Return the weight of ties at each of `n` rows: 1, or smoothed, a random number between 0 and 1."""
    return check_random_state(random_state).uniform(size=n) if smooth else np.ones(n)


def _with_own(values: Array, labelled: AnyArray) -> Array:
    """Return kernel values with the labelled rows alone, and the last column: values of rows with themselves."""
    xp = arrays.namespace(values)
    return xp.concat([arrays.pick_columns(values, labelled), values[:, -1:]], axis=1)


def fit_machine(sample: PartlyLabelled, y_l: Array, settings: MachineSettings) -> tuple[FittedMachine, Array]:
    """Fit the machine to the labelled rows; return the unlabelled rows in the form it takes, too."""
    rows, labelled = sample.X, np.flatnonzero(sample.labelled)
    own_value, scaling = None, None
    estimated: list[str] = []
    if settings.fixed.precomputed:
        checks.check_square(rows)
        own = arrays.diagonal(rows)
        # A kernel that is the same for all rows with themselves is so for rows yet to come.
        near = arrays.namespace(own).abs(own - own[0]) <= 1e-12 * abs(float(own[0]))
        own_value = float(own[0]) if bool(arrays.namespace(own).all(near)) else None
        rows = _with_own(arrays.namespace(rows).concat([rows, own[:, None]], axis=1), labelled)
    elif settings.standardize:
        scaling, rows = Scaling.fit_apply(rows)
        estimated.append("their scale")
    machine: AnyMachine
    if settings.menu is None:
        machine, width = _build_fixed(rows, sample.labelled, y_l, settings, estimated)
    else:
        machine, width = _build_tuned(rows, sample.labelled, y_l, settings, estimated), None
    form = settings.fixed.precomputed, own_value, scaling
    fitted = FittedMachine(machine, sample.X.shape[0], labelled, *form, width, tuple(estimated))
    return fitted, arrays.pick(rows, ~sample.labelled)


def _build_fixed(
    rows: Array, labelled: Mask, y_l: Array, settings: MachineSettings, estimated: list[str]
) -> tuple[Machine, float | None]:
    """Return the machine with one setting and its width; note if the features set that."""
    fixed, width = settings.fixed, None
    if fixed.has_width and fixed.width == "median":
        width = median_width(rows)
        estimated.append("the kernel's width")
    elif fixed.has_width:
        width = float(fixed.width)
    kernel = Kernel(fixed.kernel, width or 1.0, fixed.degree, fixed.coef0)  # type: ignore[arg-type]
    picked = arrays.pick(rows, labelled)
    return Machine.build(picked, y_l, kernel, ridge=float(fixed.ridge), **settings.build), width


def _build_tuned(
    rows: Array, labelled: Mask, y_l: Array, settings: MachineSettings, estimated: list[str]
) -> TunedMachine:
    """Return the machine that chooses its setting; note if the features set widths or trees."""
    if arrays.is_foreign(rows):
        raise ValueError(
            "settings are chosen on numpy arrays only: pass X as one, or set kernel, width and ridge."
        )
    choices = settings.menu
    if choices is None or isinstance(choices, str):
        choices = given_menu(rows[:, -1]) if settings.fixed.precomputed else default_menu(rows)
        estimated.append("the scale of the ridges" if settings.fixed.precomputed else "the kernels")
    elif any(setting.estimated for setting in choices):
        estimated.append("the kernels")
    return TunedMachine.build(Menu.build(choices, rows), rows[labelled], y_l, **settings.build)


def answer_numbers(
    machine: AnyMachine, rows: Array, confidence: float, side: str = "two", *, values: bool = True
) -> RowAnswers:
    """Return values, if they are wanted, and regions of rows; warn if the labels are too few for the level."""
    rank = nonconformity_rank(confidence, machine.n_labelled)
    if rank == 0 and rows.shape[0]:
        warn_level(confidence, machine.n_labelled, "every region is the whole line")
    if isinstance(machine, TunedMachine):
        return answer_rows(machine, rows, rank=rank, side=side)
    regions = find_regions(machine, rows, rank=rank, side=side)
    return RowAnswers(machine.predict(rows) if values else rows[:0, 0], regions)


def judge_labels(machine: AnyMachine, rows: Array, labels: Array, tau: Array) -> Array:
    """Return the p-value of one candidate label for each row (m,); ties count with weight `tau` (m,)."""
    if isinstance(machine, TunedMachine):
        return label_p_values(machine, rows, labels, tau)
    above, tied = (_numbers(count, rows) for count in count_labels(machine, rows, labels))
    return p_values(above, tied, machine.n_labelled, arrays.beside(tau, rows))


def judge_classes(machine: AnyMachine, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
    """Return the p-values of every class, among all labelled rows and within the class, with ties weighed by `tau`."""
    if isinstance(machine, TunedMachine):
        return class_p_values(machine, rows, codes, tau)
    overall, within, scores = count_classes(machine, rows, codes)
    overall, within = _numbers(overall, rows), _numbers(within, rows)
    each, sizes = arrays.beside(tau[:, None], rows), _numbers(np.bincount(codes), rows)
    return ClassPValues(
        p_values(overall[0, ...], overall[1, ...], len(codes), each),
        p_values(within[0, ...], within[1, ...], sizes, each),
        scores,
    )


def _numbers(counts: AnyArray, rows: Array) -> Array:
    """Return counts in double precision, where the rows live."""
    return arrays.beside(counts, rows, "float64")


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )
