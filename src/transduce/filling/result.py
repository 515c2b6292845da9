"""A filled table: everything a report, a file or a user may want to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class Filled:
    """A table whose target column was filled, and how.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table as it came, with the new columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set``),
        ``_confidence`` and ``_status`` behind its own.
    target : str
        The column that was filled.
    task : {"regression", "classification"}
    answer : Answer
        The answers at the rows whose label was missing.
    guarantee : Guarantee
        What is guaranteed of them, as sentences.
    model : estimator
        What the regions, or sets, come from: the fitted `ConformalTransducer`; or the confidence machine, where labels
        were too few to hide any.
    confidence, certainty : float
        Levels of the guarantee for each row, and for the column.
    members : pandas.DataFrame
        One line for each method: ``name``, ``weight`` (NaN if it was not blended), ``score`` (out of fold), ``scorer``,
        ``seconds``, ``note`` (why it was left out, or empty).
    out_of_fold : pandas.DataFrame
        ``true`` and ``answered`` at the labelled rows, each answered while hidden; for classes also ``probability`` of
        the answered class, where there is one.
    columns : pandas.DataFrame
        What was done to each column: ``name``, ``kind`` (number, category, date, text, identifier, constant, target,
        ignored), ``treatment`` (a few words), ``n_missing``, ``n_features``.
    relevance : pandas.Series or None
        How much each original column matters, from 0 to 1, largest first, where a method says so.
    map : pandas.DataFrame or None
        ``x`` and ``y`` of every row along the two leading vectors of its neighbour graph.
    settings : dict
        What was asked for, to do it again: source, target, method, seed and the like.
    notes : list of str
        Whatever the user should be told: how the task was guessed, columns left out, time budget, too few labels.
    values_model : estimator or None
        What the values come from, fitted to all labels: the blend, or the one method asked for.
    exchangeability : Exchangeability or None
        Whether the unlabelled rows look like the labelled ones.
    """

    frame: pd.DataFrame
    target: str
    task: str
    answer: Answer
    guarantee: Guarantee
    model: Any
    confidence: float
    certainty: float
    members: pd.DataFrame
    out_of_fold: pd.DataFrame
    columns: pd.DataFrame
    relevance: pd.Series | None = None
    map: pd.DataFrame | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    values_model: Any = None
    exchangeability: Any = None
