"""A fitted model of one column that answers rows which it has not seen, and what holds for them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn, estimate_of
from transduce.app.filling.answer_columns import AnswerColumns, answer_as_asked, columns_for_file
from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.given_predictions import read_offset
from transduce.app.filling.options import Options
from transduce.app.filling.predicted import numbers_of_reply
from transduce.app.filling.predicted_later import predict_later
from transduce.app.filling.sources import FrameSource, as_pandas
from transduce.app.filling.table_fit import TableFit, estimator_rows
from transduce.app.tables.column_names import check_once
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Encoder
from transduce.app.tables.nested import ObjectFields
from transduce.app.tables.row_hashes import content_order
from transduce.conformal import Exchangeability, exchangeability_test
from transduce.conformal.outside import OutsideCalibration, calibrate_outside
from transduce.core.answer import Answer
from transduce.core.checks import check_type
from transduce.core.findings import Verdict
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray, Array, ColumnName
from transduce.core.validation import class_codes
from transduce.model_selection.fit_and_predict import FittedEstimator

MOST_COMPARED = 1000  # calibration rows, and later ones, whose features are compared
MOST_SCORED = 1000  # rows of the fit by which the scale of scores is chosen


@dataclass(frozen=True, eq=False)
class FittedFill:
    """A fitted model of one column, calibrated for all rows that the fit has not seen.

    Labelled rows that were kept from the fit calibrate it.

    Examples
    --------
    >>> from transduce.app.filling import fit_fill
    >>> price = [2.0 * n if n % 3 else None for n in range(200)]
    >>> table = pd.DataFrame({"size": range(200), "price": price})
    >>> fit_fill(table, "price", method="ridge").guarantee_of_later(1000).outside.at_most < 250
    True
    """

    labels: AnyArray  # those that were fitted to
    reading: Target  # how the cells of the target are read
    encoder: Encoder  # turns the columns of any row into features
    outside: OutsideCalibration  # answers any row that was not fitted to
    calibration: ClassCalibration  # how probable classes are
    options: Options  # what was asked for
    held: Array  # (c, d) features of some calibration rows, with which later rows are compared
    verdict: Verdict | None = None  # how labelled and unlabelled rows compare
    kept_offset: Array | None = None  # (k,) predictions made elsewhere, at calibration labels
    # (k, columns) calibration rows with their labels; None where rows are answered part by part
    kept_frame: pd.DataFrame | None = None
    fields: ObjectFields = field(default_factory=ObjectFields)  # of objects, which are columns here

    @classmethod
    def calibrate(
        cls, fit: TableFit, calibration: ClassCalibration, held: FrameSource, options: Options
    ) -> FittedFill:
        """Calibrate a fit to a sample by labelled rows that were kept from it."""
        encoder = fit.features.encoder
        kept_rows = estimator_rows(encoder, held.frame, options)
        labelled = np.flatnonzero(~held.labels.missing)
        kept_offset = None
        if fit.offset is not None:
            kept_offset = read_offset(held.frame.iloc[labelled], fit.target, options)
        outside = _calibrate_outside(fit, held, kept_rows, kept_offset, options)
        verdict = None
        if fit.compared is not None:
            verdict = fit.compared.verdict
        compared = np.random.default_rng(0).permutation(len(kept_rows))[:MOST_COMPARED]
        return cls(
            labels=fit.target.known,
            reading=fit.target,
            encoder=encoder,
            outside=outside,
            calibration=calibration,
            options=options.for_other_rows(),
            held=kept_rows[compared],
            verdict=verdict,
            kept_offset=kept_offset,
            kept_frame=held.frame.iloc[labelled].reset_index(drop=True),
            fields=held.fields,
        )

    def for_parts(self) -> FittedFill:
        """Return the same model without the rows that calibrate it, to send to other processes."""
        return replace(self, kept_frame=None)

    def with_options(self, options: Options) -> FittedFill:
        """Return the same model, asked with other options."""
        return replace(self, options=options.for_other_rows())

    def below(self, folder: str | Path) -> FittedFill:
        """Return the same model for a table in another folder, which holds its pictures."""
        return replace(self, encoder=self.encoder.below(folder))

    def clean(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return later rows as those of the fit: fields of objects are columns."""
        return self.options.clean(self.fields.divide(frame))

    def raw_answer(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows of a table, at these places of it, as the fit gives them."""
        X = estimator_rows(self.encoder, frame, self.options)
        options = self.options
        answer = self.outside.answer(X, options.level, rows, options.further_levels)
        offset = read_offset(frame, self.reading, self.options)
        if offset is None or self.kept_offset is None:
            return answer
        return answer.shifted(offset)

    @property
    def kept_labels(self) -> AnyArray:
        """The labels of rows that were kept from the fit and calibrate it."""
        if self.kept_offset is None:
            return self.outside.table.labels
        return self.outside.table.labels + self.kept_offset

    def predict_kept(self) -> Array:
        """Return predictions at rows whose labels were kept from the fit."""
        table = self.outside.table
        predictions = numbers_of_reply(table.calibration, table.classes)
        if self.kept_offset is None:
            return predictions
        return predictions + self.kept_offset

    def answer_at(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, labelled or not, at these places of their table."""
        answer = self.raw_answer(frame, rows)
        return answer_as_asked(answer, self.options, self.reading.limits, self.calibration)

    def new_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the new columns of rows that were not fitted to.

        Their types are the same, whatever the rows.

        Parameters
        ----------
        frame : pandas.DataFrame
            With the target, which is empty where an answer is wanted, or without it.
        """
        check_type("frame", frame, pd.DataFrame, "a pandas frame")
        check_once(frame.columns, "The table")
        frame = self.clean(frame)
        labels = self.reading.read(frame)
        rows = np.flatnonzero(labels.missing)
        columns = AnswerColumns(self.options, self.calibration, self.labels, same_types=True)
        return columns.make(labels, self.answer_at(frame.iloc[rows], rows), frame.index)

    def estimate(  # noqa: PLR0913 - what a question may say
        self,
        frame: Any,
        what: str | list[str] = "mean",
        *,
        of: Any = None,
        above: Any = None,
        below: Any = None,
        by: ColumnName | None = None,
        outcome: ColumnName | None = None,
        level: float = 0.95,
        joint: bool = False,
    ) -> pd.DataFrame:
        """Estimate a number of a whole column of later rows, with an interval that holds.

        If they are like the rows of the table that was fitted, the labels kept from the fit tell
        how wrong its predictions are. Where a test finds them different, nothing is promised.

        Parameters
        ----------
        frame : pandas or polars DataFrame
            The later rows. Labels that they have are counted.
        what, of, above, below, by, outcome, level, joint
            As those of `FillResult.estimate`.

        Returns
        -------
        pandas.DataFrame
            As that of `FillResult.estimate`; ``n_labels`` counts those that were kept from the fit.

        Examples
        --------
        >>> from transduce.app.filling import fit_fill
        >>> price = [2.0 * n if n % 3 else None for n in range(200)]
        >>> table = pd.DataFrame({"size": range(200), "price": price})
        >>> later = pd.DataFrame({"size": range(0, 200, 5)})
        >>> line = fit_fill(table, "price", method="ridge").estimate(later, "mean").iloc[0]
        >>> bool(abs(line["estimate"] - 195.0) < 5.0), line["kind"]
        (True, 'approximate')
        """
        if not isinstance(frame, pd.DataFrame):
            frame = as_pandas(frame)
        return estimate_of(
            self.predict_column(frame),
            what,
            of=of,
            above=above,
            below=below,
            by=by,
            outcome=outcome,
            level=level,
            joint=joint,
        )

    def predict_column(self, frame: pd.DataFrame) -> PredictedColumn:
        """Return the column of later rows with predictions: what `estimate` rests on."""
        check_type("frame", frame, pd.DataFrame, "a pandas frame")
        check_once(frame.columns, "The table")
        if not len(frame):
            raise ValueError("The table has no rows: there is nothing to estimate.")
        return predict_later(self, frame)

    def columns_for_file(self, new: pd.DataFrame) -> pd.DataFrame:
        """Return new columns as a file of text has them: with the digits of all labels."""
        all_labels = np.concatenate([self.labels, self.kept_labels])
        return columns_for_file(new, self.reading, all_labels)

    def notes_on_later(self, frame: pd.DataFrame) -> list[str]:
        """Return notes on cells of later rows: unreadable, limits, new categories."""
        frame = self.clean(frame)
        rows = np.flatnonzero(self.reading.read(frame).missing)
        return [note.text for note in self.encoder.notes(frame.iloc[rows], rows)]

    def compare_later(self, frame: pd.DataFrame) -> Exchangeability:
        """Return how later rows, 1000 of them at most, compare with the calibration rows."""
        frame = self.clean(frame)
        columns = [name for name in self.encoder.columns if name in frame.columns]
        drawn = content_order(frame[columns])[:MOST_COMPARED]
        features = self.encoder.transform(frame.iloc[drawn])
        is_held = np.arange(len(self.held) + len(drawn)) < len(self.held)
        compared = exchangeability_test(np.concatenate([self.held, features]), is_held)
        named = compared.named([scale.column for scale in self.encoder.scales])
        return replace(named, other="later")

    def guarantee_of_later(
        self,
        n_answered: int,
        n_unreached: int = 0,
        *,
        level: float | None = None,
        certainty: float | None = None,
        compared: Exchangeability | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of rows that come later, if they are like the labelled ones.

        Parameters
        ----------
        n_answered, n_unreached : int
            How many have an answer, and how many have none.
        level : float, optional
            Of the intervals or sets; the main one by default.
        certainty : float, optional
            Of the bounds for all of them together; that of the options by default.
        compared : Exchangeability, optional
            What `compare_later` returned. If it saw too few rows to tell, the verdict on the table
            counts.
        """
        later = self
        # Labels that were chosen by class differ from later rows anyhow.
        if compared is not None and self.outside.shares is None:
            later = replace(self, verdict=self.verdict_on_later(compared.verdict))
        guarantee = later.guarantee_of_others(
            n_answered, n_unreached, level=level, certainty=certainty
        )
        return guarantee.of_later

    def verdict_on_later(self, verdict: Verdict) -> Verdict:
        """Return what is known of later rows.

        Where too few could be tested, that is what is known of the table.
        """
        if verdict.p_value is None and self.verdict is not None and self.verdict.shifted:
            return self.verdict
        return verdict

    def guarantee_of_others(
        self,
        n_answered: int,
        n_unreached: int = 0,
        *,
        level: float | None = None,
        certainty: float | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of rows of the table that the fit did not see."""
        options = self.options
        if certainty is None:
            certainty = float(options.certainty)
        weights = self.outside.table.weights.resting_on(verdict=self.verdict)
        outside = replace(self.outside, table=replace(self.outside.table, weights=weights))
        if level is None:
            level = options.level
        guarantee = outside.guarantee(level, n_answered, certainty, options.tolerance)
        guarantee = replace(guarantee, n_unreached=n_unreached)
        limited = guarantee.limited(options.limits_with(self.reading.limits))
        return limited.decided_by(self.reading.decisive)


def _calibrate_outside(
    fit: TableFit,
    held: FrameSource,
    kept_rows: AnyArray,
    kept_offset: Array | None,
    options: Options,
) -> OutsideCalibration:
    """Return what answers rows that the fit did not see, calibrated by rows kept from it."""
    seen_labels = fit.fitted_labels[~fit.target.missing]
    kept_labels = held.labels.known
    if kept_offset is not None:
        kept_labels = kept_labels - kept_offset
    classes = None
    shares = None
    if fit.target.task == "classification":
        classes = np.array(sorted({*seen_labels.tolist(), *kept_labels.tolist()}))
        seen_labels = class_codes(seen_labels, classes)
        kept_labels = class_codes(kept_labels, classes)
        if fit.shares is not None:
            shares = fit.shares.at(classes)
    n_rows = len(fit.target.labels)
    outside = calibrate_outside(
        FittedEstimator(fit.values_model, classes, np.arange(n_rows), n_rows),
        estimator_rows(fit.features.encoder, fit.frame.iloc[:MOST_SCORED], options),
        seen_labels,
        kept_rows[~held.labels.missing],
        kept_labels,
        shares=shares,
        empty=kept_rows[held.labels.missing],
    )
    weights = outside.table.weights.resting_on(assumption=options.design.assumption)
    table = replace(outside.table, by_class=options.by_class, weights=weights)
    return replace(outside, table=table)
