"""A table and its labels, ready to be hidden in part.

Features stay in the user's own container, and estimators check them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples

from transduce.core import arrays, checks, validation
from transduce.core.row_order import (
    are_rows_in_order,
    content_order,
    number_rows,
    number_rows_of_kernel,
    places_in,
)
from transduce.core.sample import PartlyLabelled, guess_task
from transduce.core.scaling import label_moments
from transduce.core.types import AnyArray, Array, KnownTask, Labels, Mask, Rows, Task
from transduce.core.words import TASKS
from transduce.model_selection.estimator_kinds import check_member, own_missing_label
from transduce.model_selection.methods import Case


@dataclass(frozen=True, eq=False)
class Problem:
    """A table in the user's own container, and its labels, ready to be hidden in part."""

    X: Rows  # (n, d) features as given; estimators check them
    sample: PartlyLabelled  # which rows are labelled; it has no features
    labels: AnyArray  # (l,) labels of the labelled rows: numbers, or classes
    classes: AnyArray | None  # (n_classes,) the classes, sorted; None if labels are numbers
    codes: AnyArray  # (l,) class of each labelled row; empty if labels are numbers
    rows: AnyArray  # (l,) positions of the labelled rows in the table
    pairwise: bool = False  # whether features are kernel values of all rows
    ordered: bool = False  # whether rows are in the order from which they are drawn

    @classmethod
    def of(
        cls,
        X: Rows,
        sample: PartlyLabelled,
        task: KnownTask,
        known: Collection[Any] = (),
    ) -> Problem:
        """Read labels as numbers or as classes.

        The classes that are known may be more than have a label.
        """
        rows = np.flatnonzero(sample.labelled)
        if task == "regression":
            no_codes = np.empty(0, dtype=int)
            return cls(X, sample, validation.numeric_labels(sample), None, no_codes, rows)
        classes, codes = validation.class_labels(sample, known)
        return cls(X, sample, classes[codes], classes, codes, rows)

    @property
    def task(self) -> KnownTask:
        """Whether labels are numbers or classes."""
        return "regression" if self.classes is None else "classification"

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 if labels are numbers."""
        if self.classes is None:
            return 0
        return len(self.classes)

    @property
    def class_sizes(self) -> tuple[int, ...]:
        """How many labels each class has."""
        return tuple(np.bincount(self.codes, minlength=self.n_classes).tolist())

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.sample.labelled)

    def case(
        self,
        *,
        standardize: bool,
        random_state: int,
        device: str | None = None,
    ) -> Case:
        """Return what methods are to be made for."""
        n_features = 0
        if hasattr(self.X, "shape"):
            n_features = self.X.shape[1]
        return Case(
            task=self.task,
            n_rows=self.n_rows,
            n_labels=len(self.labels),
            n_features=n_features,
            n_classes=self.n_classes,
            standardize=standardize,
            random_state=random_state,
            device=device,
        )

    @property
    def numbers(self) -> AnyArray:
        """Labels of the labelled rows as numbers: themselves, or the numbers of their classes."""
        return self.labels if self.classes is None else self.codes

    @property
    def truth(self) -> Array:
        """The labels, shape (l,), or indicators of their classes, shape (l, n_classes).

        An indicator is 1 for the class of a label, and 0 for the others.
        """
        if self.classes is None:
            return self.labels
        return np.eye(len(self.classes))[self.codes]

    def shown(self, visible: AnyArray) -> AnyArray:
        """Return a label for every row of the table.

        It is missing, except at the visible ones of the labelled rows.
        """
        y: AnyArray = np.full(self.n_rows, np.nan)
        if self.classes is not None:
            y = np.full(self.n_rows, None, dtype=object)
        y[self.rows[visible]] = self.labels[visible].tolist()
        return y

    def prior(self, visible: AnyArray) -> Array:
        """Return what is known without features.

        That is the mean label, shape (1,), or the share of each class.
        """
        if self.classes is None:
            mean, _ = label_moments(self.labels[visible])
            return np.array([mean])
        return np.bincount(self.codes[visible], minlength=len(self.classes)) / len(visible)

    def filled(self, answers: Array, given: Mask, visible: AnyArray) -> Array:
        """Return answers (k, m) or (k, m, n_classes), with the prior where none was given.

        The prior is what is known without features.
        """
        if self.classes is None:
            return np.where(given, answers, self.prior(visible)[0])
        return np.where(given[..., None], answers, self.prior(visible))

    # ---- the order of the rows, and copies among them

    @cached_property
    def row_numbers(self) -> AnyArray:
        """A number for each row (n,) that depends on features alone; copies share it."""
        if self.pairwise:
            return number_rows_of_kernel(self.X)
        return number_rows(self.X)

    @cached_property
    def places(self) -> AnyArray:
        """Where each row (n,) is in the order that contents decide.

        Its label tells copies of a row apart.
        """
        if self.ordered:
            return np.arange(self.n_rows)
        labels = np.full(self.n_rows, np.nan)
        labels[self.rows] = self.numbers
        return places_in(content_order(self.row_numbers, labels))

    def by_content(self, rows: AnyArray) -> AnyArray:
        """Return positions (m,) in the order that contents decide.

        What is drawn is drawn from it.
        """
        return rows[np.argsort(self.places[rows])]

    @cached_property
    def copies(self) -> AnyArray | None:
        """A number for each row (n,) that rows with the same features share.

        None if all rows differ, or are no array.
        """
        if type(self.X) is not np.ndarray or self.pairwise:
            return None
        if self.X.ndim != 2 or self.X.dtype.kind != "f":
            return None
        values, numbers = np.unique(self.row_numbers, return_inverse=True)
        if len(values) == len(numbers):
            return None
        return numbers

    def first_copies(self, rows: AnyArray, places: AnyArray) -> AnyArray:
        """Return for each of some rows (m,) its copy with the smallest place (m,)."""
        firsts = np.arange(len(rows))
        if self.copies is None or not len(rows):
            return firsts
        codes = self.copies[rows]
        by_place = np.lexsort((places, codes))
        is_first = np.append(True, codes[by_place][1:] != codes[by_place][:-1])
        n_copies = np.diff(np.append(np.flatnonzero(is_first), len(rows)))
        firsts[by_place] = np.repeat(by_place[is_first], n_copies)
        return firsts


def read_problem(
    X: Rows,
    y: Labels,
    *,
    task: Task,
    estimators: Sequence[Any] = (),
    missing_label: Any = None,
    known: Collection[Any] = (),
) -> Problem:
    """Return table and labels.

    Features stay as given, for the estimators to check. Shapes: X (n, d).
    """
    for estimator in estimators:
        check_member("estimator", estimator)
    checks.check_choice("task", task, TASKS)
    if y is None:
        raise ValueError(
            "y is None: give a label for each row, missing (NaN or None) where it is wanted."
        )
    missing_label = own_missing_label(missing_label, estimators)
    X = read_table(X)
    no_features = np.empty((_num_samples(X), 0))
    index = getattr(X, "index", None)
    sample = validation.read_labels(no_features, index, y, missing_label=missing_label)
    known_task = guess_task(sample, estimators) if task == "auto" else task
    problem = Problem.of(X, sample, known_task, known)
    pairwise = any(get_tags(estimator).input_tags.pairwise for estimator in estimators)
    return replace(problem, pairwise=pairwise, ordered=are_rows_in_order())


def read_table(X: Rows) -> Rows:
    """Return features as given if their rows can be picked, else as an array.

    Estimators check the rest.
    """
    if arrays.is_foreign(X):
        arrays.check_dispatch(X)
        return X
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError("X is a lazy frame: call its collect() first.")
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        raise TypeError("X must be a table, one line for each row; got a mapping: make it a frame.")
    table = indexable(X)[0]
    if isinstance(table, list) and not table:
        raise ValueError("X has no rows: give a line of features for each row of the table.")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: features must be real numbers.")
    is_column = len(getattr(table, "shape", (0, 0))) == 1
    if is_column and np.asarray(table).dtype.kind in "biuf":
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data: one line for each row."
        )
    return table


def take_rows(X: Rows, rows: AnyArray, columns: AnyArray | None = None) -> Rows:
    """Return some rows, with nothing left that says where they stood.

    Of kernel values the columns are picked too.
    """
    if arrays.is_foreign(X):
        part = arrays.pick(X, rows)
        if columns is None:
            return part
        return arrays.pick_columns(part, columns)
    part = _safe_indexing(X, rows)
    if isinstance(part, pd.DataFrame | pd.Series):
        part = part.reset_index(drop=True)
    if columns is None:
        return part
    return np.asarray(part)[:, columns]
