"""Linear regression and the scale of features, for tables with far rows and labels of any size."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from transduce.core.scaling import FARTHEST, moments_without_far_rows, square_unit


class FeatureScaler(StandardScaler):
    """scikit-learn's StandardScaler; but where a few rows are far from all others, they do not set the scale."""

    mean_: Any
    scale_: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take mean and standard deviation of every feature of rows (n, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            super().fit(X, y, sample_weight)
        rows = np.asarray(X, dtype=float)
        self.mean_, self.scale_ = moments_without_far_rows(rows, self.mean_, self.scale_)
        return self

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Return the scaled rows (n, d)."""
        with np.errstate(over="ignore"):
            scaled = super().transform(X, copy)
        return np.clip(scaled, -FARTHEST, FARTHEST)


class PenalisedRegression(RidgeCV):
    """scikit-learn's RidgeCV, which compares penalties by squared errors, also for labels too large to square."""

    coef_: Any
    intercept_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty and fit rows (n, d) to numbers (n,)."""
        labels = np.asarray(y, dtype=float)
        unit = square_unit(labels)
        super().fit(X, labels / unit, sample_weight, **params)
        self.coef_ = self.coef_ * unit
        self.intercept_ = self.intercept_ * unit
        return self
