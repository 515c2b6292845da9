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

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> result = fill(load_houses()[0], "price", method="ridge", guarantee="column")
    >>> result
    FillResult: 250 of 400 cells of 'price' filled (regression, ridge)
    exact if chance chose the labels: The interval of a row picked at random holds its true value with probability ...
    >>> bool(result.table(maximum=500_000)["price_upper"].max() <= 500_000)
    True
    """

    fit: TableFit
    source: Source
    options: Options  # what was asked for, as it was given
    labels: Target  # of the rows that are shown
    unasked: Answer  # at these rows, before anything is asked of it
    diagnosis: Diagnosis
    counts: dict[str, int] = field(default_factory=dict)  # n_rows, n_labels, and n_fitted, which the fit saw
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
        """What is guaranteed without limits; bounds for a sample and for other rows are added, and share the doubt."""
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
        """The answers at the rows whose label was missing; of a Dask frame and of files, at those that the fit saw."""
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
        """The new columns: ``<target>_filled``, ``_lower``, ``_upper`` (or ``_set``, ``_probability``), and so on."""
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
        """The table with its new columns; lazy of a Dask frame, and of files the `FilledFolder`."""
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
        """What the intervals, or sets, come from: a `ConformalTransducer`, or the confidence machine."""
        return self.fit.model

    @property
    def values_model(self) -> Any:
        """What the values come from, fitted to all labels: the blend, or the one method asked for."""
        return self.fit.values_model

    @property
    def columns(self) -> pd.DataFrame:
        """What was done to each column: ``name``, ``kind``, ``treatment``, ``n_missing``, ``n_features``."""
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
        """How wide intervals get if the odds of a label depend on the value by factors; None if no label calibrates."""
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
        """One line for each method: ``name``, ``weight``, ``score`` out of fold, ``scorer``, ``seconds``, ``note``."""
        return self.diagnosis.members

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at the labelled rows, each answered while it was hidden; its index are the rows."""
        folds = self.diagnosis.out_of_fold
        if self.totals is not None:  # rows of a sample have no places in the table
            return folds.reset_index(drop=True)
        return folds if self.rows is None else folds.set_axis(pd.Index(self.rows[folds.index], name="row"))

    @property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, from 0 to 1, largest first, where a method says so."""
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
        """What the user should know: how the task was guessed, columns left out, time budget, too few labels."""
        notes = list(self.fit.notes)
        if self.class_shares is not None:
            weighed = "How good the answers are is counted by these shares."
            notes.insert(0, f"{self.class_shares} {weighed}")
        if self.fitted is not None:
            saw, of = f"{self.counts['n_fitted']:,}", f"{self.counts['n_rows']:,}"
            notes.append(
                f"The fit saw {saw} of the {of} rows, drawn at random; all others are answered one by one, and "
                f"{len(self.fitted.outside.labels):,} labels that the fit did not see calibrate their answers. The "
                "comparison of labelled and unlabelled rows, the weights of methods and columns, and the map are those "
                "of the sample."
            )
        if self.options.reject is not None:
            count = int(np.sum(self.answer.status == "rejected"))
            notes.append(
                f"{count} of {len(self.answer)} answers, the least certain, are marked as rejected; their values stay, "
                "and the guarantee is about all answers together."
                if count
                else "No answer is marked as rejected: this method is equally certain of all of them."
            )
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
        about: dict[str, Any] = {"name": self.source.name, "flags": self.source.flags}
        return summarize(replace(self, source=FrameSource(self.shown, self.shown, self.labels, **about)))

    def report(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the report as one self-contained HTML page, and write it to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.
        """
        with stage("report"):
            return _written(render_html(self.summary()), path, force)

    def json(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the numbers of the report as JSON, and write them to a file as `report` does."""
        return _written(render_json(self.summary()), path, force)


@dataclass(frozen=True, eq=False, repr=False)
class FillResults(Mapping[Any, FillResult]):
    """A table of which several columns were filled: the result of each, by its name, and one table.

    Examples
    --------
    >>> from transduce import fill
    >>> from transduce.datasets import load_houses
    >>> table = load_houses()[0].assign(age=lambda houses: houses["house_age"].where(houses["price"] > 0))
    >>> results = fill(table, ["price", "age"], method="ridge", guarantee="column")
    >>> [name for name in results.frame if name.endswith("_filled")]
    ['price_filled', 'age_filled']
    """

    results: dict[Any, FillResult]  # of each target
    options: Options  # what was asked for

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
        """
        tasks = {result.task for result in self.values()}

        def suited(result: FillResult) -> dict[str, Any]:
            suits = {name: OPTIONS[name].kind.task if name in OPTIONS else "" for name in questions}
            return {k: one for k, one in questions.items() if suits[k] not in tasks - {result.task}}

        results = {name: result.ask(**suited(result)) for name, result in self.items()}
        return replace(self, results=results)

    def table(self, **questions: Unpack[Questions]) -> Any:
        """Return the table with the new columns of all targets, as the questions of ``ask`` want them."""
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


def reject_unsure(answer: Answer, share: float) -> Answer:
    """Return the answer with the most unsure rows rejected: those with the widest intervals, or the closest classes."""
    certain = answer.confidence  # which many rows share
    if answer.regions is not None:
        certain = -answer.regions.measure()
    elif answer.probabilities is not None:
        ranked = np.sort(answer.probabilities, axis=1)
        certain = ranked[:, -1] - ranked[:, -2]
    return replace(replace(answer, confidence=certain).reject(share=share), confidence=answer.confidence)
