"""A filled table: everything a report, a file or a user may want to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.miscoverage import Law
from transduce.conformal.shares import ClassShares
from transduce.conformal.transducer import ConformalTransducer
from transduce.core.answer import Answer
from transduce.core.computing import stage
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.safe_files import write_text
from transduce.core.types import AnyArray
from transduce.filling.diagnostics import Diagnosis, NextLabels, Told
from transduce.filling.fitted import FittedFill, TableFit
from transduce.filling.options import OPTIONS, QUESTIONS, Options, Questions, described
from transduce.filling.sources import FrameSource, Source
from transduce.report import render_html, render_json, summarize
from transduce.tables.columns import check_names, new_columns
from transduce.tables.files import KINDS, kind_of
from transduce.tables.labels import Target

_SAMPLE_DOUBT = 0.1  # of the allowed uncertainty of a bound, what the rows of the sample take


@dataclass(frozen=True, eq=False, repr=False)
class FillResult:
    """A table whose target column was filled, what is guaranteed of it, and its report.

    Whatever does not touch the fit is asked of the result: `table`, `guarantee_at`, and `ask` for both at once. What
    takes time besides (``members``, ``out_of_fold``, ``relevance``, ``map``, ``advice``) is computed when it is first
    asked for, as by the report; if it cannot be computed, a note says so.

    Attributes
    ----------
    frame : pandas, polars or Dask DataFrame, or FilledFolder
        The table as it came, with the new columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set`` and
        ``_probability``, that the class is right), ``_narrower`` (or ``_confidence``) and ``_status`` after its own.
        ``_narrower`` is how much narrower an interval is than one made without features, from 0 to 1; the confidence
        of a class is the level up to which no other is possible. Of a Dask frame it is lazy; of files, the folder.
    new : pandas.DataFrame
        The new columns alone.
    target : str
        The column that was filled.
    task : {"regression", "classification"}
    answer : Answer
        The answers at the rows whose label was missing; of a Dask frame and of files, at those that the fit saw.
    guarantee : Guarantee
        What is guaranteed of all answers.
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
    class_shares : ClassShares or None
        The shares of the classes among the unlabelled rows, where labels were chosen by their class.
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
    advice : NextLabels or None
        What to label next, and how much twice the labels would help.
    options : Options
        What was asked for, as it was given.
    counts : dict
        Rows (``n_rows``), labels (``n_labels``), and rows that the fit saw (``n_fitted``).
    notes : list of str
        What the user should know: how the task was guessed, columns left out, time budget, too few labels.
    again : str
        The command, or the call, that does it again.

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
    exact if chance chose the labels: The interval of a row picked at random holds its true value with probability ...
    >>> result.guarantee_at(certainty=0.99).outside.certainty
    0.99
    >>> bool(result.table(maximum=118)["price_upper"].max() <= 118)
    True
    """

    fit: TableFit
    source: Source
    options: Options
    labels: Target  # of the rows that are shown
    unasked: Answer  # at these rows, before anything is asked of it
    diagnosis: Diagnosis
    counts: dict[str, int] = field(default_factory=dict)
    fitted: FittedFill | None = None  # what answers rows that the fit did not see
    rows: AnyArray | None = None  # where in the table the rows of the fit are, if not all take part in it
    outside: tuple[int, int] = (0, 0)  # rows that the fit did not see with an answer, and without one
    totals: dict[str, int] | None = None  # counts of the whole table, where this shows a sample of it

    # ------------------------------------------------------------------------------------------------ what is asked

    @described(QUESTIONS)
    def ask(self, **questions: Unpack[Questions]) -> FillResult:
        """Return the result as it is if other things are asked of it; nothing is fitted again.

        Parameters
        ----------
        OPTIONS

        Returns
        -------
        FillResult
            With a ``frame``, a ``guarantee`` and a ``report`` that answer these questions.
        """
        options = Options.read({**vars(self.options), **questions}, questions=True)
        options.check_labels(self.labels)
        if isinstance(self.source, FrameSource):
            check_names(self.source.frame, self.labels, options.probabilities, options.label_next)
        fitted = None if self.fitted is None else replace(self.fitted, options=options)
        return replace(self, options=options, fitted=fitted)

    @described(QUESTIONS)
    def table(self, **questions: Unpack[Questions]) -> Any:
        """Return the table with its new columns, as these questions want them.

        Parameters
        ----------
        OPTIONS

        Returns
        -------
        DataFrame
            As ``frame``, which is the table if nothing is asked.
        """
        return self.ask(**questions).frame

    def guarantee_at(self, *, certainty: float | None = None, tolerance: float | None = None) -> Guarantee:
        """Return what is guaranteed of the answers.

        Parameters
        ----------
        certainty : float, optional
            Of the guarantee for the whole column; 0.95 unless something else was asked for before.
        tolerance : float, optional
            Numbers: bound how many answers are off by more than this.

        Returns
        -------
        Guarantee
        """
        certainty = self.options.certainty if certainty is None else certainty
        tolerance = self.options.tolerance if tolerance is None else tolerance
        return self.ask(certainty=certainty, tolerance=tolerance).guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of all answers."""
        plain = self._guarantee
        return plain if plain.limits else plain.limited(self.options.limits_with(self.labels.limits))

    @property
    def _guarantee(self) -> Guarantee:
        """What is guaranteed of all answers, before labels that are limits are thought of.

        Where the fit saw a sample, bounds are sums of one for the sample and one for the other rows, which share the
        uncertainty.
        """
        certainty, tolerance = float(self.options.certainty), self.options.tolerance
        if self.told is not None:
            return self.told.guarantee
        n_inside, model, (n_others, n_lost) = len(self.fit.answer), self.fit.model, self.outside
        if self.fitted is not None:
            n_others -= self.fitted.outside.n_empty  # drawn, and not covered
        if self.fitted is None or n_others + n_lost <= 0:
            return self.fit.guarantee(certainty, tolerance)
        if n_inside == 0 or not isinstance(model, ConformalTransducer):
            others = self.fitted.guarantee_of_others(n_others, n_lost)
            return replace(others, outside=None, wrong=None) if n_inside else others
        doubt = 1.0 - certainty
        sure = 1.0 - (1.0 - _SAMPLE_DOUBT) * doubt
        others = self.fitted.guarantee_of_others(n_others, n_lost, certainty=sure)
        inside = model.guarantee_at(certainty=1.0 - _SAMPLE_DOUBT * doubt, tolerance=tolerance)
        if others.kind == "none":
            return replace(others, n_labelled=self.fit.target.n_labels)
        if inside.kind == "none":
            return inside
        return replace(
            others,
            n_calibration=others.n_calibration + inside.n_calibration,
            outside=_sum(others.outside, inside.outside, certainty),
            wrong=_sum(others.wrong, inside.wrong, certainty),
            n_unreached=others.n_unreached + inside.n_unreached,
            n_empty=others.n_empty + inside.n_empty,
            n_short=max(others.n_short, inside.n_short),
            any_class=others.any_class or inside.any_class,
        )

    @cached_property
    def answer(self) -> Answer:
        """The answers at the rows whose label was missing."""
        answer = self._possible(replace(self.unasked, guarantee=self.guarantee))
        if answer.probabilities is not None:
            answer = self.diagnosis.chance.of_classes(answer, self.confidence)
        return answer if self.options.reject is None else reject_unsure(answer, float(self.options.reject))

    def _possible(self, answer: Answer) -> Answer:
        """Return an answer that is open at limits, and cut to what is possible."""
        limits = self.options.limits_with(self.labels.limits)
        return answer.opened(limits.below, limits.above).within(*self.options.limits)

    @cached_property
    def new(self) -> pd.DataFrame:
        """The new columns."""
        index = self.shown.index
        if self.fitted is not None:
            new = self.fitted.as_columns(self.labels, self.answer, index)
        else:
            right = None if self.task == "regression" else self.diagnosis.chance.right(self.answer)
            level, shares = float(self.options.confidence), self.options.probabilities
            new = new_columns(self.labels, self.answer, level, index, right=right, probabilities=shares)
        if self.options.label_next:
            rows = () if self.advice is None else self.advice.rows
            numbers = pd.Series(pd.NA, index=range(len(new)), dtype="Int64")
            numbers.iloc[list(rows)] = np.arange(1, len(rows) + 1)
            new = new.assign(**{f"{self.target}_label_next": numbers.set_axis(index)})
        return new

    @cached_property
    def frame(self) -> Any:
        """The table with its new columns."""
        return self.source.with_columns(self)

    # ------------------------------------------------------------------------------------------- what is known of it

    @property
    def shown(self) -> pd.DataFrame:
        """The rows of the answer: all of them, or those that the fit saw."""
        return self.source.frame if isinstance(self.source, FrameSource) else self.fit.frame

    @property
    def told(self) -> Told | None:
        """Where the answers come from, if they were made elsewhere."""
        return self.diagnosis.told

    @property
    def target(self) -> str:
        """The column that was filled."""
        return self.labels.name

    @property
    def task(self) -> str:
        """Whether labels are numbers ("regression") or classes ("classification")."""
        return self.labels.task

    @property
    def confidence(self) -> float:
        """Level of the guarantee for each row."""
        return float(self.options.confidence)

    @property
    def certainty(self) -> float:
        """Certainty of the guarantee for the column."""
        return float(self.options.certainty)

    @property
    def model(self) -> Any:
        """What the intervals, or sets, come from."""
        return self.fit.model

    @property
    def values_model(self) -> Any:
        """What the values come from."""
        return self.fit.values_model

    @property
    def columns(self) -> pd.DataFrame:
        """What was done to each column."""
        return self.fit.features.columns

    @property
    def exchangeability(self) -> Exchangeability | None:
        """How labelled and unlabelled rows compare."""
        return self.fit.compared

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number of rows outside; None if there is none, or several."""
        whole = self.fitted is None and isinstance(self.fit.model, ConformalTransducer)
        return self.fit.model.miscoverage_ if whole else None

    @cached_property
    def sensitivity(self) -> pd.DataFrame | None:
        """How wide intervals get if the chance of a label also depends on the value; None if none calibrates."""
        model, certainty = self.fit.model, self.certainty
        if not isinstance(model, ConformalTransducer) or self.told is not None:
            return None
        if self.class_shares is not None:  # within a class the label is the same
            return None
        if self.fit.guarantee(certainty, self.options.tolerance).kind == "none":
            return None
        return model.widths_at(sorted({1.0, 1.5, 2.0, float(model.labels.sensitivity)}))

    @property
    def class_shares(self) -> ClassShares | None:
        """The shares of the classes among the unlabelled rows, where labels were chosen by their class."""
        return self.fit.shares

    @property
    def members(self) -> pd.DataFrame:
        """One line for each method."""
        return self.diagnosis.members

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at the labelled rows, each answered while it was hidden."""
        return self.diagnosis.out_of_fold

    @property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, where a method says so."""
        return self.diagnosis.relevance

    @cached_property
    def map(self) -> pd.DataFrame | None:
        """The place of every row that the fit saw, along the two leading vectors of its neighbour graph."""
        places = self.diagnosis.map
        if places is None or self.rows is None:
            return places
        every = pd.DataFrame(np.nan, index=range(len(self.shown)), columns=["x", "y"])
        every.iloc[self.rows] = places.to_numpy()
        return every

    @cached_property
    def advice(self) -> NextLabels | None:
        """What to label next; None where this shows a sample, whose rows have no places in the table."""
        if self.totals is not None:
            return None
        advice = self.diagnosis.next_labels(self._possible(self.fit.answer))
        return advice if self.rows is None else advice.of(self.rows)

    @property
    def notes(self) -> list[str]:
        """What the user should know."""
        notes = list(self.fit.notes)
        if self.class_shares is not None:
            weighed = "How good the answers are is counted by these shares."
            notes.insert(0, f"{self.class_shares} {weighed}")
        if self.fitted is not None:
            notes.append(_sample_note(self.counts, len(self.fitted.outside.labels)))
        if self.options.reject is not None:
            notes.append(_reject_note(self.answer))
        if self.totals is not None:
            notes.append("The rows that are shown are those of the sample.")
        notes += [self.diagnosis.unmeasured] if self.diagnosis.unmeasured else []
        return [*notes, *self.diagnosis.by_class, *self.diagnosis.notes]

    def compute_all(self) -> None:
        """Compute whatever else there is to know now, where progress is shown."""
        _ = self.members, self.relevance, self.advice, self.new

    @property
    def asked(self) -> dict[str, Any]:
        """The options as plain values, with the column and where the table came from."""
        about = {"source": self.source.name, "target": self.target}
        return {**about, **self.options.as_json(), "task": self.task, **self.source.flags}

    @property
    def again(self) -> str:
        """The command that does it again where the table came from a file, and the call of `fill` elsewhere."""
        if self.told is not None:
            return self.told.again
        name, task = self.source.name.replace("\\", "/"), self.task
        if self.labels.decisive is not None:  # a task that is named would make it exact
            task = self.options.task
        short = "-" if name == "standard input" else name.rpartition("/")[2]
        in_file = short == "-" or kind_of(short)[0] in KINDS.values()
        if in_file and not self.options.given_estimators:
            return self.options.as_command(short, self.target, task, **self.source.flags)
        return self.options.as_call(self.target, task, short if in_file else "", **self.source.flags)

    def __repr__(self) -> str:
        totals = self.totals or {"unlabelled": len(self.unasked), "rows": len(self.shown)}
        how = f"{self.task}, {self.options.method_name}"
        count = f"{totals['unlabelled']} of {totals['rows']} cells of {self.target!r}"
        return f"FillResult: {count} filled ({how})\n{self.guarantee.in_short}"

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it: what was filled, what is guaranteed, and the first filled rows."""
        rows = self.answer.rows[:10]
        first = pd.concat([self.shown.iloc[rows], self.new.iloc[rows]], axis=1)
        head, _, said = repr(self).partition("\n")
        return f"<p><strong>{escape(head)}</strong></p><p>{escape(said)}</p>{first.to_html(max_cols=12)}"

    # -------------------------------------------------------------------------------------------------- the report

    def summary(self) -> dict[str, Any]:
        """Return every number and sentence of the report, as one plain dictionary."""
        shown = FrameSource(
            self.shown, self.shown, self.labels, name=self.source.name, flags=self.source.flags
        )
        return summarize(replace(self, source=shown))

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
            return _written(render_html(self.summary()), path, force)

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
        return _written(render_json(self.summary()), path, force)


@dataclass(frozen=True, eq=False, repr=False)
class FillResults(Mapping[Any, FillResult]):
    """A table of which several columns were filled: the result of each, by its name, and one table.

    Parameters
    ----------
    results : dict
        The result of each target.
    options : Options
        What was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from transduce import fill
    >>> size = np.arange(60.0)
    >>> empty = size % 3 == 0
    >>> table = pd.DataFrame({"size": size, "price": np.where(empty, np.nan, 2 * size)})
    >>> table["kind"] = np.where(empty, None, np.where(size < 30, "small", "large"))
    >>> results = fill(table, ["price", "kind"], method="ridge")
    >>> results["kind"].new["kind_filled"][:3].tolist()
    ['small', 'small', 'small']
    >>> [name for name in results.frame if name.endswith("_filled")]
    ['price_filled', 'kind_filled']
    """

    results: dict[Any, FillResult]
    options: Options

    def __getitem__(self, target: Any) -> FillResult:
        return self.results[target]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @cached_property
    def frame(self) -> Any:
        """The table with the new columns of all targets."""
        first, *others = self.results.values()
        frame = first.frame
        for other in others:
            frame = other.source.with_columns(other, frame)
        return frame

    @described(QUESTIONS)
    def ask(self, **questions: Unpack[Questions]) -> FillResults:
        """Return the results as they are if other things are asked of those that a question suits.

        Parameters
        ----------
        OPTIONS

        Returns
        -------
        FillResults
        """
        tasks = {result.task for result in self.values()}

        def suited(result: FillResult) -> dict[str, Any]:
            suits = {name: OPTIONS[name].kind.task if name in OPTIONS else "" for name in questions}
            return {k: one for k, one in questions.items() if suits[k] not in tasks - {result.task}}

        results = {name: result.ask(**suited(result)) for name, result in self.items()}
        return replace(self, results=results)

    def table(self, **questions: Unpack[Questions]) -> Any:
        """Return the table with the new columns of all targets, as the questions of ``ask`` want them.

        Returns
        -------
        DataFrame
        """
        return self.ask(**questions).frame

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))


def _written(text: str, path: str | Path | None, force: bool) -> str:
    """Return a text that is also in a file, if one is named."""
    if path is not None:
        write_text(path, text, force=force)
    return text


def _sum(one: CountBound | None, other: CountBound | None, certainty: float) -> CountBound | None:
    if one is None or other is None:
        return None
    expected = None if one.expected is None or other.expected is None else one.expected + other.expected
    return CountBound(certainty, one.at_most + other.at_most, one.of + other.of, expected)


def _sample_note(counts: dict[str, int], n_calibration: int) -> str:
    """Return what the user should know about a fit to a sample."""
    return (
        f"The fit saw {counts['n_fitted']:,} of the {counts['n_rows']:,} rows, drawn at random; all others are "
        f"answered one by one, and {n_calibration:,} labels that the fit did not see calibrate their answers. The "
        "comparison of labelled and unlabelled rows, the weights of methods and columns, and the map are those of the "
        "sample."
    )


def reject_unsure(answer: Answer, share: float) -> Answer:
    """Return the answer with the most unsure rows rejected.

    For numbers those with the widest intervals; for classes those whose two likeliest classes are closest, since many
    rows have the same confidence.
    """
    certain = answer.confidence
    if answer.regions is not None:
        certain = -answer.regions.measure()
    elif answer.probabilities is not None:
        ranked = np.sort(answer.probabilities, axis=1)
        certain = ranked[:, -1] - ranked[:, -2]
    return replace(replace(answer, confidence=certain).reject(share=share), confidence=answer.confidence)


def _reject_note(answer: Answer) -> str:
    """Return how many answers are rejected."""
    count = int(np.sum(answer.status == "rejected"))
    if not count:
        return "No answer is marked as rejected: this method is equally certain of all of them."
    return (
        f"{count} of {len(answer)} answers, the least certain, are marked as rejected; their values stay, and the "
        "guarantee is about all answers together."
    )
