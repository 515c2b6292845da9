"""What wraps around any estimator: reading of input, checks of settings, and predictions by the fitted estimator."""

from __future__ import annotations

import numbers
import types
import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
from transduce.conformal.scores import SCORES, calibration_number
from transduce.conformal.second_fit import with_values
from transduce.conformal.shell import Masked, check_estimator_setting, is_transductive
from transduce.core import checks, validation
from transduce.core.answer import Answer
from transduce.core.sample import PartlyLabelled
from transduce.core.transducer import EitherTransducer
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.hidden_labels import own_missing_label


def _inner_has(name: str) -> Any:
    def check(self: Wrapper) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)  # an AttributeError names what is missing
        return True

    return available_if(check)


class Wrapper(EitherTransducer):
    """Everything but the calibration."""

    _masked: Masked
    _classes: AnyArray | None
    _again: Masked | None

    def _read(self, X: Any, y: Any) -> tuple[PartlyLabelled, AnyArray | None, AnyArray]:
        """Return the sample, the classes and the labels as numbers, or the numbers of classes."""
        is_class = check_estimator_setting(self.estimator)
        self._check_settings(is_class)
        if y is None:
            raise ValueError(
                "ConformalTransducer requires y to be passed, but the target y is None: give one label for each row, "
                "missing (NaN or None) where the answer is wanted."
            )
        if hasattr(X, "collect") and not hasattr(X, "shape"):
            raise ValueError("X is a lazy frame: call its collect() first.")
        if getattr(getattr(X, "dtype", None), "kind", "") == "c":
            raise ValueError("Complex data not supported: features must be real numbers.")
        self._no_label = own_missing_label(self.missing_label, [self.estimator])
        reader = types.SimpleNamespace(missing_label=self._no_label)
        sample = validation.read_labels(reader, np.empty((_num_samples(X), 0)), getattr(X, "index", None), y)
        if is_class:
            return sample, *validation.class_labels(sample)
        return sample, None, validation.numeric_labels(sample)

    def _check_settings(self, is_class: bool) -> None:
        checks.check_confidence(self.confidence)
        checks.check_choice("nonconformity", self.nonconformity, SCORES)
        checks.check_choice("ties", self.ties, ("inside", "random"))
        checks.check_flag("label_conditional", self.label_conditional)
        checks.check_flag("test_exchangeability", self.test_exchangeability)
        checks.check_flag("refit", self.refit)
        if self.label_conditional and not is_class:
            raise ValueError("label_conditional=True is for classes; for numbers leave it False.")
        if not isinstance(self.transductive, bool | np.bool_) and self.transductive != "auto":
            raise ValueError(f"transductive must be 'auto', True or False; got {self.transductive!r}.")

    def _transductive(self) -> bool:
        return is_transductive(self.estimator) if self.transductive == "auto" else bool(self.transductive)

    def _calibration_number(self, n_labelled: int, n_unlabelled: int) -> int:
        """Return how many labels to hide, which must not depend on what they are."""
        wanted = self.calibration
        if isinstance(wanted, str) and wanted == "auto":
            number = calibration_number(n_labelled, self.confidence, by_class=bool(self.label_conditional))
            return number if n_unlabelled else 0
        ok = isinstance(wanted, numbers.Real) and not isinstance(wanted, bool | np.bool_)
        if ok and isinstance(wanted, numbers.Integral) and int(wanted) >= 1:
            number = int(wanted)
        elif ok and 0.0 < float(wanted) < 1.0:
            number = round(float(wanted) * n_labelled)
        else:
            raise ValueError(
                "calibration must be 'auto', a number of labels to hide from 1 on, or a share of them between 0 "
                f"and 1; got {wanted!r}."
            )
        if n_unlabelled and not 1 <= number < n_labelled:
            raise ValueError(
                f"calibration={wanted!r} hides {number} of {n_labelled} labels: at least one must be held out and at "
                "least one stay visible."
            )
        return number if n_unlabelled else 0

    def _hide(self, n_labelled: int, n_unlabelled: int, random: np.random.RandomState) -> Mask:
        """Return which labels stay visible, shape (n_labelled,)."""
        seen = np.ones(n_labelled, dtype=bool)
        seen[random.choice(n_labelled, self._calibration_number(n_labelled, n_unlabelled), replace=False)] = (
            False
        )
        return seen

    def _check_visible(self, classes: AnyArray | None, shown: AnyArray) -> None:
        if classes is not None and len(np.unique(shown)) < 2:
            raise ValueError(
                f"Once some labels are held out, the other {len(shown)} are all of class {classes[shown[0]].item()!r}: "
                "give more labels of the other classes, or hide fewer with a smaller calibration."
            )

    def _compare(self, X: Any, sample: PartlyLabelled, random: np.random.RandomState) -> None:
        """Test whether unlabelled rows look like labelled ones, and say so if they do not."""
        self.exchangeability_: Exchangeability | None = None
        if not self.test_exchangeability or not len(sample.unlabelled):
            return
        self.exchangeability_ = exchangeability_test(
            X, sample.labelled, random_state=random.randint(2**31 - 1)
        )
        if self.exchangeability_.shifted:
            warnings.warn(self.exchangeability_.verdict, stacklevel=4)

    def _fit_again(
        self,
        X: Any,
        masked: Masked,
        labels: AnyArray,
        classes: AnyArray | None,
        hidden: AnyArray,
        unlabelled: AnyArray,
    ) -> Masked | None:
        """Return a second fit, to all labels, if one is wanted; the first where no label was held out."""
        if not self.refit or not len(hidden):
            return masked if self.refit else None
        labelled = np.sort(np.concatenate([masked.visible, hidden]))
        return Masked(
            self.estimator, X, labelled, unlabelled, labels, classes, transductive=self._transductive()
        )

    @property
    def _answering(self) -> Masked:
        """The fit that values come from."""
        return self._masked if self._again is None else self._again

    def _settled(self, answer: Answer) -> Answer:
        """Return the answer with the values of the second fit, if there was one."""
        if self._again is None:
            return answer
        found = self._again.predictions
        better = replace(
            answer,
            values=found.values if self._classes is None else self._names(found.values),
            status=found.status,
            standard_errors=found.spreads,
            probabilities=found.probabilities,
        )
        return with_values(answer, better)

    def _names(self, codes: AnyArray) -> AnyArray:
        """Return classes by their numbers; None where there is none."""
        assert self._classes is not None
        if len(codes) and codes.min() < 0:
            names = self._classes.astype(object)[codes]
            names[codes < 0] = None
            return names
        return self._classes[codes.astype(int)]

    def _wanted(self, above: Any, below: Any, label: Any, correct: Any) -> tuple[dict[str, Any], str]:
        """Return what is wanted, and what a mistake is, in words."""
        checks.check_flag("correct", correct)
        bounds = {name: value for name, value in (("above", above), ("below", below)) if value is not None}
        if (len(bounds) > 0) + (label is not None) + bool(correct) != 1:
            raise ValueError("Say what to pick: above or below (or both), or label, or correct=True.")
        for name, value in bounds.items():
            checks.check_number(name, value)
        if bounds and self._classes is not None:
            raise ValueError("above and below are for numbers: pick classes with label=..., or correct=True.")
        if not bounds and self._classes is None:
            raise ValueError("label and correct are for classes: pick numbers with above=... or below=...")
        if bounds:
            no = [f"not {name} {value:g}" for name, value in bounds.items()]
            return {name: float(value) for name, value in bounds.items()}, f"label is {' or '.join(no)}"
        if correct:
            return {"correct": True}, "answer is wrong"
        number = int(self._masked.numbers_of([label])[0])
        if number < 0:
            raise ValueError(f"label={label!r} is none of the classes {self.classes_.tolist()}.")
        return {"label": number}, f"class is not {label!r}"

    # ------------------------------------------------------------------------------------------- prediction

    @_inner_has("predict")
    def predict(self, X: Any) -> AnyArray:
        """Return the estimator's prediction at rows, without transducing again; no guarantee goes with it.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.

        Returns
        -------
        array of shape (m,)
            At an unlabelled row this differs from ``transduction_`` if the estimator's own `predict` does.
        """
        check_is_fitted(self)
        found = self._answering
        values = found.estimator.predict(found.new_rows(X))
        return self._names(np.asarray(values)) if found.by_number else values

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Return the fitted estimator's class probabilities at rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.

        Returns
        -------
        array of shape (m, n_classes)
            0 for a class all of whose labels were held out.
        """
        check_is_fitted(self)
        found = self._answering
        return found.spread_out(found.estimator.predict_proba(found.new_rows(X)))

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Return the fitted estimator's decision values at rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.

        Returns
        -------
        array of shape (m,) for two classes, else (m, n_classes)
        """
        check_is_fitted(self)
        found = self._answering
        scores = np.asarray(found.estimator.decision_function(found.new_rows(X)))
        full = found.by_class(scores)
        return scores if len(self.classes_) == 2 or full is None else full

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if not isinstance(self.estimator, type) and hasattr(self.estimator, "get_params"):
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = deepcopy(inner.classifier_tags)
            if tags.classifier_tags is not None:
                tags.classifier_tags.multi_label = False
            tags.regressor_tags = deepcopy(inner.regressor_tags)
            tags.input_tags = deepcopy(inner.input_tags)
        return tags
