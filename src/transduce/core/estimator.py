"""What all estimators share: when they count as fitted, and scores at the rows that have a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import _safe_indexing

from transduce.core.sample import label_array, missing_mask


class Transducer(BaseEstimator):
    """An estimator that is fitted once it has an answer."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "answer_")

    def _forget(self) -> None:
        """Drop all that was fitted, so that a fit that fails leaves nothing half-fitted."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]

    def _missing_label(self) -> Any:
        """Return what stands for "no label", besides NaN, None, NA and NaT."""
        return self.missing_label

    def _with_label(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows and labels that can be scored."""
        labels = label_array(y, columns=True)
        missing = missing_mask(labels, self._missing_label())
        known = np.flatnonzero(~(missing if missing.ndim == 1 else missing.any(axis=1)))
        return _safe_indexing(X, known), labels[known]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of numbers, or the share of right classes, at the rows (m, d) that have a label."""
        from sklearn.metrics import accuracy_score, r2_score  # half a second, which no fit needs

        rows, labels = self._with_label(X, y)
        answers = self.predict(rows)
        if self.answer_.classes is None:
            return float(r2_score(labels.astype(float), answers, sample_weight=sample_weight))
        return float(accuracy_score(np.array(labels.tolist()), answers, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags


class NumberTransducer(RegressorMixin, Transducer):
    """A transducer whose labels are numbers."""

    score = Transducer.score


class ClassTransducer(ClassifierMixin, Transducer):
    """A transducer whose labels are classes."""

    score = Transducer.score
