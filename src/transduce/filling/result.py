"""A filled table: everything a report, a file or a user may want to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.miscoverage import Law
from transduce.core.answer import Answer
from transduce.core.computing import stage
from transduce.core.guarantee import Guarantee
from transduce.core.safe_files import write_text
from transduce.filling.diagnostics import NextLabels, RightChance
from transduce.report import render_html, render_json, summarize
from transduce.tables.columns import as_pandas
from transduce.tables.encoder import Encoder


@dataclass(frozen=True, eq=False, repr=False)
class FillResult:
    """A table whose target column was filled, what is guaranteed of it, and its report.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        The table as it came, with the new columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set`` and
        ``_probability``, that the class is right), ``_confidence`` and ``_status`` after its own. The confidence of a
        number is how much narrower its interval is than one made without features, from 0 to 1; that of a class is
        the level up to which no other class is possible.
    new : pandas.DataFrame
        The new columns alone.
    target : str
        The column that was filled.
    task : {"regression", "classification"}
    answer : Answer
        The answers at the rows whose label was missing.
    model : estimator
        What the intervals, or sets, come from: the fitted `ConformalTransducer`; or the confidence machine, where
        labels were too few to hold any out.
    values_model : estimator
        What the values come from, fitted to all labels: the blend, or the one method asked for.
    miscoverage : Miscoverage, ClassMiscoverage, CategoryMiscoverage or None
        The distribution of the number of rows outside; None if there is none.
    exchangeability : Exchangeability or None
        How labelled and unlabelled rows compare.
    sensitivity : pandas.DataFrame or None
        How wide intervals, or how large sets, get if the odds of a label also depend on the value itself, by factors of
        1, 1.5 and 2; None if no label calibrates.
    confidence, certainty : float
        Levels of the guarantee for each row, and for the column.
    members : pandas.DataFrame
        One line for each method: ``name``, ``weight`` (NaN if it was not blended), ``score`` (out of fold), ``scorer``,
        ``seconds``, ``note`` (why it was left out, or empty).
    out_of_fold : pandas.DataFrame
        ``true`` and ``answered`` at the labelled rows, each answered while it was hidden; for classes also
        ``probability`` of the answered class, if there is one.
    columns : pandas.DataFrame
        What was done to each column: ``name``, ``kind`` (number, category, date, text, identifier, constant, empty,
        target, ignored), ``treatment`` (a few words), ``n_missing``, ``n_features``.
    relevance : pandas.Series or None
        How much each original column matters, from 0 to 1, largest first, where a method says so.
    map : pandas.DataFrame or None
        ``x`` and ``y`` of every row along the two leading vectors of its neighbour graph.
    options : dict
        What was asked for, as it was given, and where the table came from: enough to do it again.
    counts : dict
        Rows (``n_rows``), labels (``n_labels``), and rows that the fit saw (``n_fitted``).
    notes : list of str
        What the user should know: how the task was guessed, columns left out, time budget, too few labels.
    encoder : Encoder
        Turns rows which come later into the features that were fitted to.
    chance : RightChance
        How probable it is that an answered class is right.
    advice : NextLabels or None
        What to label next, and how much twice the labels would help.
    totals : dict or None
        Counts of the whole table, where this is a sample of it.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from transduce import fill
    >>> size = np.arange(60.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> result = fill(table, "price", method="ridge", guarantee="column")
    >>> result
    FillResult: 20 of 60 cells of 'price' filled (regression, ridge)
    exact if chance chose the labels: Each interval holds its row's true value with probability at least 90 %. ...
    """

    frame: Any
    new: pd.DataFrame
    target: str
    task: str
    answer: Answer
    model: Any
    values_model: Any
    confidence: float
    certainty: float
    members: pd.DataFrame
    out_of_fold: pd.DataFrame
    columns: pd.DataFrame
    miscoverage: Law | None = None
    exchangeability: Exchangeability | None = None
    sensitivity: pd.DataFrame | None = None
    relevance: pd.Series | None = None
    map: pd.DataFrame | None = None
    options: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    encoder: Encoder = field(default_factory=Encoder)
    chance: RightChance = field(default_factory=RightChance)
    advice: NextLabels | None = None
    totals: dict[str, int] | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of the answers."""
        return self.answer.guarantee

    def __repr__(self) -> str:
        n, how = len(self.answer), f"{self.task}, {self.options['method']}"
        return (
            f"FillResult: {n} of {len(self.frame)} cells of {self.target!r} filled ({how})\n{self.guarantee}"
        )

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it: what was filled, what is guaranteed, and the first filled rows."""
        first = self.new.iloc[self.answer.rows[:10]]
        if isinstance(self.frame, pd.DataFrame):
            first = self.frame.iloc[self.answer.rows[:10]]
        head, _, said = repr(self).partition("\n")
        return f"<p><strong>{escape(head)}</strong></p><p>{escape(said)}</p>{first.to_html(max_cols=12)}"

    def with_next_column(self) -> FillResult:
        """Return the result with a column that numbers the rows whose labels would help most."""
        rows = () if self.advice is None else self.advice.rows
        numbers = pd.Series(pd.NA, index=range(len(self.new)), dtype="Int64")
        numbers.iloc[list(rows)] = np.arange(1, len(rows) + 1)
        name = f"{self.target}_label_next"
        column = {name: numbers.set_axis(self.new.index)}
        return replace(self, new=self.new.assign(**column), frame=self.frame.assign(**column))

    def summary(self) -> dict[str, Any]:
        """Return every number and sentence of the report, as one plain dictionary."""
        return summarize(replace(self, frame=as_pandas(self.frame)))

    def report(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the report as one self-contained HTML page, and write it to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
        """
        with stage("report"):
            page = render_html(self.summary())
        if path is not None:
            write_text(path, page, force=force)
        return page

    def json(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the numbers of the report as JSON, and write them to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write them, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
        """
        text = render_json(self.summary())
        if path is not None:
            write_text(path, text, force=force)
        return text
