"""What was fitted to the visible labels and some rows, from which any other row is answered by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.designs import Drawn
from transduce.conformal.outside import OutsideCalibration, calibrate_outside
from transduce.core.answer import Answer
from transduce.core.types import AnyArray
from transduce.core.validation import class_codes
from transduce.filling.diagnostics import RightChance, right_of
from transduce.filling.result import FillResult
from transduce.filling.settings import FillSettings
from transduce.model_selection.ask import FittedEstimator
from transduce.tables.columns import new_columns
from transduce.tables.encoder import Encoder
from transduce.tables.labels import LabelReading, Target
from transduce.tables.numbers import without


@dataclass(frozen=True, eq=False)
class FittedFill:
    """A fitted model of one column, and labelled rows that it has not seen, which calibrate it for all other rows.

    Parameters
    ----------
    labels : array
        The labels that were fitted to.
    reading : LabelReading
        How the cells of the target are read.
    encoder : Encoder
        Turns the columns of any row into features.
    outside : OutsideCalibration
        Answers any row that was not fitted to.
    confidence : float
    chance : RightChance
        How probable it is that an answered class is right.
    probabilities : bool, default=False
        Whether to add a column for the probability of every class.
    missing : tuple
        Values that mark an empty cell.
    limits : tuple of two float
        The least and the largest value that is possible.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from transduce.filling import fit_fill
    >>> size = np.arange(200.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> fitted = fit_fill(table, "price", method="ridge").fitted
    >>> new = fitted.answer(pd.DataFrame({"size": [10.5], "price": [np.nan]}))
    >>> bool(new["price_lower"][0] <= 21.0 <= new["price_upper"][0])
    True
    """

    labels: AnyArray
    reading: LabelReading
    encoder: Encoder
    outside: OutsideCalibration
    confidence: float
    chance: RightChance
    probabilities: bool = False
    limits: tuple[float, float] = (-np.inf, np.inf)
    missing: tuple[Any, ...] = ()

    @classmethod
    def of(
        cls,
        result: FillResult,
        labels: Target,
        calibration: pd.DataFrame,
        held: Target,
        reading: LabelReading,
        settings: FillSettings,
    ) -> FittedFill:
        """Return what a filled sample makes possible, calibrated by labelled rows that were kept from it.

        Parameters
        ----------
        result : FillResult
            Of the sample.
        labels, held : Target
            Labels of the sample, and of the calibration rows.
        calibration : pandas.DataFrame
            The calibration rows.
        reading : LabelReading
            How labels are read.
        settings : FillSettings

        Returns
        -------
        FittedFill
        """
        shown, known = labels.labels[~labels.missing], held.labels
        classes = None
        if labels.task == "classification":
            classes = np.array(sorted({*shown.tolist(), *known.tolist()}))
            shown, known = class_codes(shown, classes), class_codes(known, classes)
        missing = tuple(settings.missing)
        matrix = result.encoder.transform(without(calibration, list(missing)))
        n_rows = len(labels.labels)
        fitted = FittedEstimator(result.values_model, classes, np.arange(n_rows), n_rows)
        outside = calibrate_outside(
            fitted,
            result.encoder.transform(without(result.frame.iloc[:1000], list(missing))),
            shown,
            matrix,
            known,
            by_class=settings.label_conditional,
            tolerance=settings.tolerance,
        )
        outside = replace(outside, drawn=isinstance(settings.design, Drawn))
        known = labels.labels[~labels.missing]
        model = (known, reading, result.encoder, outside, result.confidence, result.chance)
        return cls(*model, settings.probabilities, settings.limits, missing)

    def answers(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, whether or not they have a label.

        Parameters
        ----------
        frame : pandas.DataFrame
            The columns that were there in the fit; others are not looked at.
        rows : int array, optional
            Where the rows are in their table.

        Returns
        -------
        Answer
        """
        matrix = self.encoder.transform(without(frame, list(self.missing)))
        return self.outside.answer(matrix, self.confidence, rows).within(*self.limits)

    def answer(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the new columns of rows that were not fitted to.

        Parameters
        ----------
        frame : pandas.DataFrame
            With the target, which is empty where an answer is wanted, or without it.

        Returns
        -------
        pandas.DataFrame
            ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set``), ``_confidence`` and ``_status``.
        """
        frame = without(frame, list(self.missing))
        labels = self.reading.read(frame)
        wanted = np.flatnonzero(labels.missing)
        return self.columns(labels, self.answers(frame.iloc[wanted], wanted), frame.index)

    def columns(self, labels: Target, answer: Answer, index: pd.Index) -> pd.DataFrame:
        """Return the new columns of some rows, given their answers; of the same types, whatever the rows."""
        new = new_columns(
            labels,
            answer,
            self.confidence,
            index,
            right=right_of(self.chance, answer),
            probabilities=self.probabilities,
            known=self.labels,
        )
        kinds = {name: "string" for name in new.columns if new[name].dtype.kind not in "fib"}
        if self.reading.whole:
            kinds[f"{self.reading.name}_filled"] = "Int64"
        return new.astype(kinds)
