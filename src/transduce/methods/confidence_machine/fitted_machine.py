"""A fitted confidence machine: the user's rows become the machine's, what it says at rows, and the guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from transduce.core import arrays, checks, validation
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.regions import Regions
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Mask
from transduce.device import linalg
from transduce.device.kernels import Kernel, KernelLike, check_kernel, median_width, uses_width
from transduce.methods.confidence_machine.bordered_ridge import PrimalRidge
from transduce.methods.confidence_machine.machine import Machine, count_classes, count_labels, find_regions
from transduce.methods.confidence_machine.menu import Menu, Setting, check_settings, default_menu, given_menu
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.tuned_machine import (
    TunedMachine,
    answer_rows,
    class_p_values,
    label_p_values,
    predict_rows,
)

_CHOSEN = (
    "For every candidate label the setting was chosen by the leave-one-out error of the sample completed with it, "
    "which treats all rows alike."
)


@dataclass(frozen=True)
class MachineSettings:
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


def read_settings(given: Mapping[str, Any]) -> MachineSettings:
    """Return the estimator's settings, checked."""
    names = [item.name for item in fields(MachineSettings) if item.name in given]
    settings = MachineSettings(**{name: given[name] for name in names})
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


def _read_menu(settings: MachineSettings) -> str | tuple[Setting, ...]:
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
class FittedMachine:
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


def fit_machine(sample: PartlyLabelled, y_l: Array, settings: MachineSettings) -> tuple[FittedMachine, Array]:
    """Fit the machine to the labelled rows; return the unlabelled rows in the form it takes, too."""
    rows, labelled = sample.X, np.flatnonzero(sample.labelled)
    own_value, scaling = None, None
    estimated: list[str] = []
    if settings.precomputed:
        checks.check_square(rows)
        own = linalg.diagonal(rows)
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
    fitted = FittedMachine(
        machine, n, labelled, settings.precomputed, own_value, scaling, width, tuple(estimated)
    )
    return fitted, arrays.pick(rows, ~sample.labelled)


def _build_fixed(
    rows: Array, labelled: Mask, y_l: Array, settings: MachineSettings, estimated: list[str]
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
    rows: Array, labelled: Mask, y_l: Array, settings: MachineSettings, estimated: list[str]
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


AnyMachine = Machine | TunedMachine


@dataclass(frozen=True)
class NumberAnswers:
    """Values (m,) and regions of m rows; `told` says how often each setting was chosen, if any was."""

    values: Array
    regions: Regions
    told: dict[str, object] = field(default_factory=dict)


def predict_values(machine: AnyMachine, rows: Array) -> Array:
    """Return the values at rows, shape (m,)."""
    return predict_rows(machine, rows) if isinstance(machine, TunedMachine) else machine.predict(rows)


def answer_numbers(machine: AnyMachine, rows: Array, confidence: float, side: str) -> NumberAnswers:
    """Return values and regions of rows, with a warning if the labels are too few for the level."""
    if not isinstance(machine, TunedMachine):
        return NumberAnswers(machine.predict(rows), find_level(machine, rows, confidence, side))
    found = answer_rows(machine, rows, rank=_rank(machine, rows, confidence), side=side)
    told = {
        "settings": _names(machine),
        "n_chosen": _count(found.winners, machine),
        "n_in_region": found.used.sum(axis=0).tolist(),
    }
    return NumberAnswers(found.values, found.regions, told)


def find_level(machine: AnyMachine, rows: Array, confidence: float, side: str) -> Regions:
    """Return the regions of rows alone, with the same warning."""
    if isinstance(machine, TunedMachine):
        return answer_numbers(machine, rows, confidence, side).regions
    return find_regions(machine, rows, rank=_rank(machine, rows, confidence), side=side)


def _rank(machine: AnyMachine, rows: Array, confidence: float) -> int:
    rank = nonconformity_rank(confidence, machine.n_labelled)
    if rank == 0 and rows.shape[0]:
        warn_level(confidence, machine.n_labelled, "every region is the whole line")
    return rank


def judge_labels(machine: AnyMachine, rows: Array, labels: Array, tau: Array) -> Array:
    """Return the p-value of one candidate label for each row (m,); ties count with weight `tau` (m,)."""
    if isinstance(machine, TunedMachine):
        return label_p_values(machine, rows, labels, tau)
    above, tied = count_labels(machine, rows, labels)
    above, tied = (_numbers(count, rows) for count in (above, tied))
    tau = arrays.beside(tau, rows)
    return p_values(above, tied, machine.n_labelled, tau)


@dataclass(frozen=True)
class ClassAnswers:
    """p-values and one-vs-rest predictions (m, n_classes), and the setting chosen for each candidate, if any was."""

    overall: Array
    within: Array
    scores: Array
    chosen: AnyArray | None = None


def judge_classes(machine: AnyMachine, rows: Array, codes: AnyArray, tau: Array) -> ClassAnswers:
    """Return the p-values of every class, among all labelled rows and within the class, with ties weighed by `tau`."""
    if isinstance(machine, TunedMachine):
        return ClassAnswers(*class_p_values(machine, rows, codes, tau))
    overall, within, scores = count_classes(machine, rows, codes)
    overall, within = _numbers(overall, rows), _numbers(within, rows)
    each = arrays.beside(tau[:, None], rows)
    return ClassAnswers(
        p_values(overall[0, ...], overall[1, ...], len(codes), each),
        p_values(within[0, ...], within[1, ...], arrays.beside(np.bincount(codes), rows, "float64"), each),
        scores,
    )


def _numbers(counts: AnyArray, rows: Array) -> Array:
    """Return counts in double precision, where the rows live."""
    return arrays.beside(counts, rows, "float64")


def tell_choice(machine: AnyMachine, found: ClassAnswers, best: AnyArray) -> dict[str, object]:
    """Return how often each setting was chosen: for the answered class of each row, and for all candidates."""
    if not isinstance(machine, TunedMachine) or found.chosen is None:
        return {}
    return {
        "settings": _names(machine),
        "n_chosen": _count(found.chosen[np.arange(len(best)), best], machine),
        "n_chosen_candidates": _count(found.chosen.ravel(), machine),
    }


def _names(machine: TunedMachine) -> list[str]:
    return [str(setting) for setting in machine.menu.settings]


def _count(chosen: AnyArray, machine: TunedMachine) -> list[int]:
    return np.bincount(chosen, minlength=len(machine.menu)).tolist()


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )
