"""Numbers or classes: what the labels are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from transduce.core.sample import PartlyLabelled

MOST_CLASSES = 10


def guess_task(sample: PartlyLabelled, estimators: Any = ()) -> str:
    """Return "regression" or "classification": what the estimators are for, or else what the labels look like.

    Text and booleans are classes, and so are whole numbers of 2 to 10 different values of which some occur twice.
    """
    for estimator in estimators:
        if is_classifier(estimator):
            return "classification"
        if is_regressor(estimator):
            return "regression"
    if sample.y.dtype.kind == "c":
        return "regression"  # refused there
    try:
        numbers = sample.y[sample.labelled].astype(float)
    except (TypeError, ValueError):
        return "classification"
    if isinstance(sample.y[sample.labelled][0], bool | np.bool_):
        return "classification"
    values = np.unique(numbers)
    whole = bool(np.all(np.isfinite(values)) and np.all(values == np.round(values)))
    return (
        "classification"
        if whole and 2 <= len(values) <= min(MOST_CLASSES, len(numbers) - 1)
        else "regression"
    )
