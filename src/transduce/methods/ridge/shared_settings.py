"""One width and one ridge for several samples, by their mean leave-one-out error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from transduce.core import validation
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import label_moments
from transduce.core.types import Array
from transduce.methods.ridge.completion import JoinedSpectra, RidgeChoice, search
from transduce.methods.ridge.transductive_ridge import (
    Basis,
    InductiveProblem,
    TransductiveRidge,
    TransductiveRidgeClassifier,
    class_targets,
    given_ridge,
)

RidgeEstimators = TransductiveRidge | TransductiveRidgeClassifier
Samples = Iterable[tuple[Any, Any]]


def choose_settings(estimator: RidgeEstimators, samples: Samples) -> RidgeChoice:
    """Return the width and ridge with the smallest mean leave-one-out error over samples.

    So the paper chose them: over five random splits of its data, for all other splits.

    Parameters
    ----------
    estimator : TransductiveRidge or TransductiveRidgeClassifier
        Its ``"loo"`` settings are chosen; kernel, centres and the rest are as it says.
    samples : iterable of pairs (X, y)
        Rows and labels of each sample, as `fit` takes them; every sample counts the same.

    Returns
    -------
    RidgeChoice
        Width, ridge, their mean squared leave-one-out residual and all that was tried. Errors are
        of classes' targets -1 and +1, or of labels divided by the largest of the samples' standard
        deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> from transduce.methods.ridge import choose_settings
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> halves = [(X[::2], np.sin(X[::2, 0])), (X[1::2], np.sin(X[1::2, 0]))]
    >>> choice = choose_settings(TransductiveRidge(), halves)
    >>> y = np.where(np.arange(40) % 4 == 0, np.sin(X[:, 0]), np.nan)
    >>> model = TransductiveRidge(width=choice.width, ridge=choice.ridge).fit(X, y)
    >>> np.abs(model.transduction_ - np.sin(X[:, 0])).max() < 0.05
    np.True_
    """
    if not isinstance(estimator, TransductiveRidge | TransductiveRidgeClassifier):
        raise ValueError(
            "estimator must be a TransductiveRidge or a TransductiveRidgeClassifier; "
            f"got {type(estimator).__name__}."
        )
    problems = _read_problems(estimator, samples)
    widths = [problem.first_width for problem in problems if problem.first_width is not None]
    first_width = None
    if widths:
        first_width = float(np.median(widths))

    def spectra(width: float | None) -> JoinedSpectra:
        return JoinedSpectra([problem.spectrum(width) for problem in problems])

    return search(
        spectra,
        width=first_width,
        search_width=estimator.searches_width,
        ridge=given_ridge(estimator),
    )


class _Labelled(NamedTuple):
    """A sample, and its labels as columns of mean 0."""

    sample: PartlyLabelled
    centred: Array  # (l, c)
    spread: Array  # (c,)


def _read_problems(estimator: RidgeEstimators, samples: Samples) -> list[InductiveProblem]:
    """Read the samples as `fit` would, and divide the labels of all by the same amount."""
    settings = estimator._checked_copy()
    labelled_samples = [_read_sample(estimator, pair) for pair in samples]
    if not labelled_samples:
        raise ValueError("There is no sample to choose by: give at least one pair (X, y).")
    unit: Array | float = 1.0
    if isinstance(estimator, TransductiveRidge):
        spreads = [labelled.spread for labelled in labelled_samples]
        if len({len(spread) for spread in spreads}) > 1:
            raise ValueError("The samples must have the same number of columns of labels.")
        unit = np.max(spreads, axis=0)
    problems = []
    for labelled in labelled_samples:
        has_label = labelled.sample.labelled
        basis, rows = Basis.fit_apply(labelled.sample.X, has_label, settings)
        y_l = labelled.centred / unit
        problems.append(InductiveProblem.of(basis, rows, has_label, y_l, settings))
    return problems


def _read_sample(estimator: RidgeEstimators, pair: tuple[Any, Any]) -> _Labelled:
    """Return one sample with its labels, or with targets -1 and +1 of its classes."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError("Each sample must be a pair (X, y) of rows and their labels.")
    X, y = pair
    copy = clone(estimator)
    if isinstance(copy, TransductiveRidge):
        sample = validation.read_sample(copy, X, y, columns=True, device=True)
        labels = validation.numeric_labels(sample)
    else:
        sample = validation.read_sample(copy, X, y, device=True)
        classes, codes = validation.class_labels(sample)
        labels = class_targets(codes, len(classes))
    columns = labels.reshape(len(labels), -1)
    mean, spread = label_moments(columns)
    return _Labelled(sample, columns - mean, spread)
