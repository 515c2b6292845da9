"""Rows as a Gaussian process sees them: scaled, and in an order of their own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.gaussian_process.covariances import (
    Covariance,
    KernelFeatures,
    check_kernel,
    is_fixed,
)
from transduce.methods.gaussian_process.objective import even_steps
from transduce.methods.gaussian_process.settings import ProcessEstimator

# Beyond, squares of features are infinite, and so are the distances of rows.
LARGEST_FEATURE = 1e150


def scale_rows(
    sample: PartlyLabelled, names: Sequence[str | int], *, standardize: bool
) -> tuple[Array, Scaling, Array]:
    """Return the scaled rows, how they were scaled, and the spread of every feature (d,).

    Without `standardize` rows are centred all the same: small numbers are safer.
    """
    # In an order of their own, so that the rounding of a mean does not depend on the order in which
    # rows came.
    xp = arrays.namespace(sample.X)
    ordered = xp.take(sample.X, arrays.lexsort(sample.X), axis=0)
    scaling, _ = Scaling.fit_apply(ordered)
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    _warn_of_narrow_features(sample, scaling, names)
    if not standardize:
        if arrays.farthest(sample.X) > LARGEST_FEATURE:
            raise ValueError(
                f"Features beyond {LARGEST_FEATURE:g} are too large for standardize=False: "
                "set standardize=True, or divide them by a constant first."
            )
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
    return scaling.apply(sample.X), scaling, spread


def _warn_of_narrow_features(
    sample: PartlyLabelled, scaling: Scaling, names: Sequence[str | int]
) -> None:
    """Warn of a feature that hardly varies among the labelled rows."""
    labelled_rows = scaling.apply(arrays.pick(sample.X, sample.labelled))
    spread = arrays.to_numpy(arrays.namespace(sample.X).std(labelled_rows, axis=0))
    narrow = np.flatnonzero((spread > 0.0) & (spread < 0.01))
    if len(narrow) == 0:
        return
    feature = np.flatnonzero(scaling.keep)[narrow[0]]
    warnings.warn(
        f"Feature {names[feature]!r} varies a hundred times less among the labelled rows than "
        "among all: a few far-off rows set its scale. Look at them; leave them out or transform "
        "the feature.",
        stacklevel=4,
    )


class Features(NamedTuple):
    """Rows as the process sees them."""

    rows: Array  # (n, d)
    keys: Array  # (n, k) numbers by which rows are put in order
    scaling: Scaling | KernelFeatures  # how new rows become such
    covariance: Covariance
    spread: Array  # (d,) of the features given


def read_features(
    sample: PartlyLabelled, names: Sequence[str | int], settings: ProcessEstimator
) -> Features:
    """Scale the rows, or give them features whose inner products are the kernel given."""
    check_kernel(settings.kernel, sample.X)
    if is_fixed(settings.kernel):
        kernel_map, features, keys = KernelFeatures.fit_apply(sample.X, settings.kernel)
        spread = np.std(sample.X, axis=0)
        return Features(features, keys, kernel_map, Covariance("linear"), spread)
    rows, scaling, spread = scale_rows(sample, names, standardize=settings.standardize)
    return Features(rows, rows, scaling, Covariance(str(settings.kernel)), spread)


class Arrangement(NamedTuple):
    """Rows in an order of their own, so that the order in which they came leaves no trace."""

    rows: Array  # (l + k, d) labelled rows first, then those at which moments are matched
    labels: Array  # (l,) labels
    order: AnyArray  # (l,) where the labelled rows are among those given
    matched: AnyArray  # (k,) where the others are among the unlabelled rows given


def arrange_rows(features: Features, labelled: Mask, y_l: Array, max_matched: int) -> Arrangement:
    """Put labelled and unlabelled rows in order, and thin the latter at even steps."""
    rows = features.rows
    xp = arrays.namespace(rows)
    labels = arrays.asarray_like(y_l, rows)
    keys_l = arrays.pick(features.keys, labelled)
    with_labels = xp.concat([keys_l, labels[:, None]], axis=1)
    order = arrays.to_numpy(arrays.lexsort(with_labels))
    matched = np.empty(0, dtype=int)
    if not labelled.all():
        keys_a = arrays.pick(features.keys, ~labelled)
        matched = arrays.to_numpy(arrays.lexsort(keys_a))
    matched = matched[even_steps(len(matched), max_matched)]
    shown = arrays.pick(arrays.pick(rows, labelled), order)
    unlabelled = arrays.pick(arrays.pick(rows, ~labelled), matched)
    used = xp.concat([shown, unlabelled])
    return Arrangement(used, arrays.pick(labels, order), order, matched)
