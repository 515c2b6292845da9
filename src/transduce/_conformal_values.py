"""Values from a fit with all labels, kept inside the regions or sets that a fit with some of them hidden calibrates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce._typing import AnyArray, Array, Mask
from transduce.answer import Answer, Regions


def within_regions(values: Array, regions: Regions) -> Array:
    """Return each value, or the nearest point of its row's region if it is outside; values where there is no region.

    Parameters
    ----------
    values : array of shape (m,)
    regions : Regions of m rows

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> within_regions(np.array([0.5, 4.0, 2.4]), Regions.from_pieces([[(0, 1)], [(0, 3)], [(0, 1), (3, 5)]]))
    array([0.5, 3. , 3. ])
    """
    moved = values.copy()
    for row in np.flatnonzero(~regions.contains(values) & (regions.n_pieces > 0) & ~np.isnan(values)):
        ends = regions[int(row)].ravel()
        moved[row] = ends[np.argmin(np.abs(ends - values[row]))]
    return moved


def within_sets(codes: AnyArray, likely: Array, sets: Mask) -> AnyArray:
    """Return the number of each row's class: the likeliest in its set if its own is not there.

    Parameters
    ----------
    codes : int array of shape (m,)
        Numbers of the classes, -1 where there is no answer.
    likely : array of shape (m, n_classes)
        How likely each class is, on any scale.
    sets : bool array of shape (m, n_classes)

    Returns
    -------
    int array of shape (m,)

    Examples
    --------
    >>> sets = np.array([[True, False, True], [False, False, False]])
    >>> within_sets(np.array([1, 1]), np.array([[0.1, 0.7, 0.2], [0.1, 0.8, 0.1]]), sets)
    array([2, 1])
    """
    outside = (codes >= 0) & sets.any(axis=1) & ~sets[np.arange(len(codes)), codes]
    best = np.where(sets, likely, -np.inf).argmax(axis=1)
    return np.where(outside, best, codes)


def confidence_in(codes: AnyArray, p: Array) -> Array:
    """Return, for each row, the highest level at which all classes but the answered one are ruled out.

    Parameters
    ----------
    codes : int array of shape (m,)
        Numbers of the answered classes; where there is none (-1) the class with the largest p-value stands in.
    p : array of shape (m, n_classes)
        p-values.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> confidence_in(np.array([0, 1]), np.array([[0.6, 0.05], [0.6, 0.05]]))
    array([0.95, 0.4 ])
    """
    others = p.copy()
    others[np.arange(len(p)), np.where(codes >= 0, codes, p.argmax(axis=1))] = -np.inf
    return np.asarray(1.0 - others.max(axis=1), dtype=float)


def settle(answer: Answer, better: Answer) -> Answer:
    """Return an answer with the values of a better one, each inside its region or set.

    Parameters
    ----------
    answer : Answer
        With regions, or with label sets and p-values.
    better : Answer
        Values, status and, if there are some, standard errors or probabilities at the same rows. Its classes are among
        those of `answer`.

    Returns
    -------
    Answer
    """
    if answer.regions is not None:
        values = within_regions(np.asarray(better.values, dtype=float), answer.regions)
        return replace(answer, values=values, status=better.status, standard_errors=better.standard_errors)
    assert answer.classes is not None
    assert answer.label_sets is not None
    assert answer.p_values is not None
    number = {label: code for code, label in enumerate(answer.classes.tolist())}
    codes = np.array([number.get(label, -1) for label in better.values.tolist()], dtype=int)
    ranked = (better.probabilities, better.scores, answer.p_values)
    likely = next(part for part in ranked if part is not None)
    codes = within_sets(codes, likely, answer.label_sets)
    values = np.where(codes >= 0, answer.classes[codes], better.values)
    return replace(
        answer,
        values=values.astype(better.values.dtype),
        status=better.status,
        probabilities=better.probabilities,
        confidence=confidence_in(codes, answer.p_values),
    )
