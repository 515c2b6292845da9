"""Labels as the cut takes them: each class against the rest, with its share of all rows and what errors cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transduce.core import checks
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.spectral_graph.cut import KnownLabels, default_label_weight


def known_labels(
    classes: AnyArray,
    codes: AnyArray,
    labelled: Mask,
    *,
    label_weight: float | str = "auto",
    class_prior: Mapping[Any, float] | None = None,
    class_costs: Mapping[Any, float] | str | None = "balanced",
    costs: Any = None,
) -> KnownLabels:
    """Return the labels with the settings of a labelling, checked; of two classes the second against the first."""
    held = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
    members = codes[:, None] == held
    weight = default_label_weight(len(labelled))
    if not (isinstance(label_weight, str) and label_weight == "auto"):
        weight = checks.check_positive("label_weight (a number, or 'auto')", label_weight, most=1e12)
    each = _costs(class_costs, classes, codes, members)
    if costs is not None:
        each = each * _row_costs(costs, labelled)[:, None]
    return KnownLabels(
        np.flatnonzero(labelled), members, each, _prior(class_prior, classes, codes)[held], weight
    )


def _prior(class_prior: Mapping[Any, float] | None, classes: AnyArray, codes: AnyArray) -> Array:
    """Return the share of each class in all rows: as the user says, else as among the labelled."""
    if class_prior is None:
        counts = np.bincount(codes, minlength=len(classes))
        return counts / counts.sum()
    prior = _by_class("class_prior", class_prior, classes)
    if not np.isclose(prior.sum(), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(f"class_prior must be shares above 0 that sum to 1; got {class_prior!r}.")
    return prior


def _by_class(name: str, setting: Any, classes: AnyArray) -> Array:
    """Return a setting that the user gives by class, in the order of the classes."""
    names = classes.tolist()
    if not isinstance(setting, dict) or set(setting) != set(names):
        raise ValueError(
            f"{name} must be a dict with one number for each class ({', '.join(map(repr, names))}); got {setting!r}."
        )
    return np.array([checks.check_positive(name, setting[label]) for label in names])


def _costs(
    class_costs: Mapping[Any, float] | str | None, classes: AnyArray, codes: AnyArray, members: Mask
) -> Array:
    """Return what each labelled row costs if it is wrong, for each class held against the rest, shape (l, c)."""
    if isinstance(class_costs, str) and class_costs == "balanced":
        n, inside = len(codes), members.sum(axis=0)
        return np.where(members, n / (2.0 * inside), n / (2.0 * (n - inside)))
    if class_costs is None:
        return np.ones(members.shape)
    if isinstance(class_costs, dict):
        return np.broadcast_to(_by_class("class_costs", class_costs, classes)[codes][:, None], members.shape)
    raise ValueError(
        f"class_costs must be 'balanced', None or a dict with a number for each class; got {class_costs!r}."
    )


def _row_costs(costs: Any, labelled: Mask) -> Array:
    """Return the costs of the labelled rows."""
    costs = np.asarray(costs, dtype=float)
    if costs.shape != labelled.shape or not np.all(np.isfinite(costs[labelled]) & (costs[labelled] >= 0.0)):
        raise ValueError(f"costs must be one number from 0 for each of the {len(labelled)} rows.")
    return costs[labelled]
