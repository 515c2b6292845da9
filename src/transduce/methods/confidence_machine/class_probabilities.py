"""Probabilities of classes from the p-values of a confidence machine."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from transduce.core import arrays
from transduce.core.row_order import content_order
from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array

N_GROUPS = 10  # in which labels are hidden


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """What turns p-values ``p_c`` into probabilities in proportion to ``p_c ** factor``.

    Labels have the largest likelihood with this factor, each while it is hidden.
    """

    machine: Any  # not fitted
    rows: Array  # (l, d) the labelled rows as they were given
    numbers: AnyArray  # (l,) which copies share, and which do not depend on the order of the rows
    codes: AnyArray  # (l,) numbers of their classes
    classes: AnyArray

    def of(self, log_p_values: Array) -> Array:
        """Return the probabilities of logarithms of p-values (m, n_classes)."""
        return np.asarray(softmax(self.factor * log_p_values, axis=1))

    @cached_property
    def factor(self) -> float:
        """The factor of the logarithms; 1 if no label can be hidden."""
        log_p_values, codes = self._judge_hidden_labels()
        if len(codes) == 0:
            return 1.0
        return float(fit_temperature(log_p_values, codes))

    def _judge_hidden_labels(self) -> tuple[Array, AnyArray]:
        """Return logarithms of p-values (h, n_classes) at labels while hidden, and their codes."""
        group = np.empty(len(self.codes), dtype=int)
        order = content_order(self.numbers, self.codes)
        group[order] = np.arange(len(self.codes)) % N_GROUPS
        log_p_values = [np.empty((0, len(self.classes)))]
        codes = [np.empty(0, dtype=int)]
        for number in np.unique(group):
            hidden = np.flatnonzero(group == number)
            if len(np.unique(self.codes[group != number])) < len(self.classes):
                continue  # a class without a label has no p-value
            labels = self.classes[self.codes].astype(object)
            labels[hidden] = None
            with warnings.catch_warnings(action="ignore"):
                answer = clone(self.machine).fit(self.rows, labels).answer_
            log_p_values.append(np.log(arrays.to_numpy(answer.p_values)))
            codes.append(self.codes[hidden])
        return np.concatenate(log_p_values), np.concatenate(codes)
