"""The settings of a confidence machine's estimator, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, NamedTuple

from transduce.core import checks
from transduce.device.kernels import check_kernel
from transduce.methods.confidence_machine.label_scales import SCALES
from transduce.methods.confidence_machine.own_scores import Nonconformity
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.setting_grid import Setting, check_settings

Residual = Literal["auto", "plain", "studentized", "deleted"]
Scale = Literal["identity", "sqrt", "log", "auto"]
SPREADS = ("constant", "local")


class MachineOptions(NamedTuple):
    """The settings of an estimator, checked."""

    setting: Setting  # kernel, width and ridge of the estimator itself
    candidates: str | tuple[Setting, ...] | None  # what to choose from instead
    fit_intercept: bool
    power: float  # as in `POWER`
    max_bytes: float
    is_local: bool  # whether residuals are divided by their local spread
    scale: str  # of the labels
    draws_in: bool  # whether far labels are drawn in
    function: Nonconformity | None  # the user's own scores
    resolution: float | None  # to which numbers are rounded for it


def read_options(params: Mapping[str, Any]) -> MachineOptions:
    """Return the settings of an estimator, or raise a ValueError."""
    check_kernel(params["kernel"])
    setting = Setting(**{item.name: params[item.name] for item in fields(Setting)})
    setting.check()
    checks.check_positive("max_memory_mb", params["max_memory_mb"])
    function = _read_function(params["residual"])
    if function is None:
        checks.check_choice("residual", params["residual"], ("auto", *POWER))
    resolution = _read_resolution(params.get("resolution", "auto"))
    checks.read_levels("confidence", params["confidence"])
    for name in ("standardize", "fit_intercept", "label_conditional", "draw_in_far"):
        checks.check_flag(name, params.get(name, False))
    spread = params.get("spread", "constant")
    checks.check_choice("spread", spread, SPREADS)
    scale = params.get("scale", "identity")
    checks.check_choice("scale", scale, ("auto", *SCALES))
    candidates = _read_candidates(params["settings"], setting)
    draws_in = bool(params.get("draw_in_far", False))
    needs_tuned = spread == "local" or scale != "identity" or draws_in
    if function is not None:
        _refuse_beside_function(setting, tuned=needs_tuned or candidates is not None)
    if candidates is None and needs_tuned:
        candidates = _only_candidate(setting)
    power = 0.0
    if function is None:
        power = POWER[_residual(params["residual"], spread, tuned=candidates is not None)]
    return MachineOptions(
        setting=setting,
        candidates=candidates,
        fit_intercept=bool(params["fit_intercept"]),
        power=power,
        max_bytes=float(params["max_memory_mb"]) * 2**20,
        is_local=spread == "local",
        scale=scale,
        draws_in=draws_in,
        function=function,
        resolution=resolution,
    )


def _read_function(residual: object) -> Nonconformity | None:
    """Return the user's own scores, or None."""
    if callable(residual):
        return residual
    return None


def _read_resolution(resolution: object) -> float | None:
    """Return the unit to which labels are rounded, None if the completed sample sets it."""
    if isinstance(resolution, str) and resolution == "auto":
        return None
    return checks.check_positive("resolution (a number, or 'auto')", resolution, least=1e-100)


def _refuse_beside_function(setting: Setting, *, tuned: bool) -> None:
    """Raise a ValueError if something is set that only ridge regression has."""
    _refuse_own_values(setting, "With a function as residual")
    if tuned:
        raise ValueError(
            "With a function as residual, settings, spread, scale and draw_in_far have no meaning: "
            "leave them out."
        )


def _refuse_own_values(setting: Setting, beside: str, instead: str = "") -> None:
    """Raise a ValueError if a setting of the estimator's own is not the default."""
    for item in fields(Setting):
        value = getattr(setting, item.name)
        if value != item.default:
            raise ValueError(
                f"{beside}, {item.name}={value!r} has no meaning: leave it out{instead}."
            )


def _residual(residual: str, spread: str, *, tuned: bool) -> str:
    """Return which residuals are compared, with "auto" decided."""
    if residual != "auto":
        return residual
    if spread == "local":
        # On ten mixed tables with 30 labels regions were 4 % narrower than with studentized ones,
        # with 100 labels as wide.
        return "deleted"
    if tuned:
        return "studentized"
    return "plain"


def _only_candidate(setting: Setting) -> tuple[Setting, ...]:
    """Return the estimator's own setting as the only one to choose, if the features make it."""
    if setting.kernel == "precomputed":
        raise ValueError(
            "A local spread, a scale that is not 'identity' and draw_in_far need the features of "
            "rows: leave them out with kernel='precomputed'."
        )
    return (setting,)


def _read_candidates(candidates: Any, setting: Setting) -> str | tuple[Setting, ...] | None:
    """Return "leave-one-out" or the settings to choose from, if the estimator's are defaults."""
    if candidates is None:
        return None
    if setting.kernel == "precomputed":
        raise ValueError(
            "settings are chosen among kernels of the features: with kernel='precomputed' leave "
            "settings=None, and set ridge."
        )
    _refuse_own_values(setting, "With settings given", ", or name it in each Setting")
    if isinstance(candidates, str) and candidates == "leave-one-out":
        return candidates
    return check_settings(candidates)
