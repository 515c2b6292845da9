"""What was fitted: to the rows of a table, and, calibrated by rows that the fit did not see, for any other row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.calibrated import OutsideCalibration, calibrate_outside
from transduce.conformal.designs import Drawn
from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
from transduce.conformal.shares import ClassShares
from transduce.conformal.transducer import ConformalTransducer
from transduce.core.answer import Answer
from transduce.core.guarantee import BY_CLASS, CHANCE, SEEN, Guarantee, Verdict, too_few_labels
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes
from transduce.filling.diagnostics import RightChance
from transduce.filling.options import Options
from transduce.filling.plan import Plan
from transduce.filling.sources import Rows
from transduce.model_selection.ask import FittedEstimator
from transduce.model_selection.own_models import TableRows
from transduce.tables.columns import new_columns
from transduce.tables.features import Encoder, Features
from transduce.tables.labels import LabelReading, Target
from transduce.tables.numbers import without

MOST_COMPARED = 1000  # calibration rows, and later ones, whose features are compared


@dataclass(frozen=True, eq=False)
class TableFit:
    """What was fitted to the rows of a table, and its answers at those without a label."""

    frame: pd.DataFrame
    target: Target
    features: Features
    X: Any  # what estimators are given: the features, with the columns themselves where one asks for them
    plan: Plan
    model: Any  # what intervals or sets come from: a `ConformalTransducer`, or a confidence machine
    values_model: Any  # what values come from, fitted to all labels
    order: AnyArray  # positions of the rows that it was fitted to
    answer: Answer  # before anything is asked of it
    compared: Exchangeability | None  # how labelled and unlabelled rows compare
    seconds: float
    notes: list[str]
    shares: ClassShares | None = None  # of the classes, where labels were chosen by their class

    @property
    def groups(self) -> AnyArray | None:
        """The group of each row, which no fold may split; None if there are none."""
        return self.model.labels.together if isinstance(self.model, ConformalTransducer) else None

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones where quality is measured, shape (k,)."""
        if self.shares is not None:
            return self.shares.weights(self.target.labels[rows])
        if not isinstance(self.model, ConformalTransducer):
            return np.ones(len(rows))
        estimated = self.model.estimated_odds_
        return self.model.labels.measure(rows) if estimated is None else estimated.odds[rows]

    def guarantee(self, certainty: float, tolerance: float | None) -> Guarantee:
        """Return what is guaranteed of the answers."""
        found, confidence = self.model.guarantee_, float(self.model.confidence)
        if isinstance(self.model, ConformalTransducer):
            found = self.model.guarantee_at(certainty=certainty, tolerance=tolerance)
        elif self.shares is not None:
            others = [one for one in found.assumptions if one not in (CHANCE, SEEN)]
            given = () if found.kind == "none" else (BY_CLASS, SEEN, *others)
            found = replace(found, assumptions=given, any_class=False)
        if self.compared is not None:
            found = found.doubted(self.compared.verdict)
        found = found.decided_by(self.target.decisive)
        least = fewest_calibration(confidence)
        return too_few_labels(found, self.target.n_labels, least) if self.target.n_labels < least else found


def estimator_rows(
    encoder: Encoder, frame: pd.DataFrame, options: Options, known: Array | None = None
) -> Any:
    """Return what estimators are given of rows, whose features may be known."""
    matrix = encoder.transform(frame) if known is None else known
    if options.features == "encoded":
        return matrix
    return TableRows(matrix, frame[encoder.columns].reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class FittedFill:
    """A fitted model of one column, and labelled rows that it has not seen, which calibrate it for all other rows.

    Examples
    --------
    >>> from transduce.filling import fit_fill
    >>> table = pd.DataFrame({"size": range(200), "price": [2.0 * n if n % 3 else None for n in range(200)]})
    >>> fit_fill(table, "price", method="ridge").guarantee_of_later(1000).outside.at_most < 250
    True
    """

    labels: AnyArray  # those that were fitted to
    reading: LabelReading  # how the cells of the target are read
    encoder: Encoder  # turns the columns of any row into features
    outside: OutsideCalibration  # answers any row that was not fitted to
    chance: RightChance  # how probable classes are
    options: Options  # what was asked for
    held: Array  # (c, d) features of some calibration rows, with which later rows are compared
    verdict: Verdict | None = None  # how labelled and unlabelled rows compare

    @classmethod
    def of(
        cls, fit: TableFit, chance: RightChance, held: Rows, reading: LabelReading, options: Options
    ) -> FittedFill:
        """Return what a fit to a sample makes possible, calibrated by rows that were kept from it."""
        known, missing, classes = fit.target.known, list(options.missing), None
        shown, kept = known, held.labels.known
        if fit.target.task == "classification":
            classes = np.array(sorted({*shown.tolist(), *kept.tolist()}))
            shown, kept = class_codes(shown, classes), class_codes(kept, classes)
        encoder, n_rows = fit.features.encoder, len(fit.target.labels)
        kept_rows = estimator_rows(encoder, without(held.frame, missing), options)
        outside = calibrate_outside(
            FittedEstimator(fit.values_model, classes, np.arange(n_rows), n_rows),
            estimator_rows(encoder, without(fit.frame.iloc[:1000], missing), options),
            shown,
            kept_rows[~held.labels.missing],
            kept,
            shares=None if fit.shares is None or classes is None else fit.shares.at(classes),
            empty=kept_rows[held.labels.missing],
        )
        outside = replace(outside, by_class=options.by_class, drawn=isinstance(options.design, Drawn))
        verdict = None if fit.compared is None else fit.compared.verdict
        some = kept_rows[np.random.default_rng(0).permutation(len(kept_rows))[:MOST_COMPARED]]
        return cls(known, reading, encoder, outside, chance, options, some, verdict)

    def below(self, folder: str | Path) -> FittedFill:
        """Return the same model for rows of a table in another folder, below which its pictures are."""
        return replace(self, encoder=self.encoder.below(folder))

    def unasked(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, which are at these places of their table, before anything is asked of them."""
        X = estimator_rows(self.encoder, without(frame, list(self.options.missing)), self.options)
        return self.outside.answer(X, float(self.options.confidence), rows)

    def answer_at(self, frame: pd.DataFrame, rows: AnyArray | None = None) -> Answer:
        """Return the answers at rows, whether or not they have a label; `rows` says where they are in their table."""
        limits, level = self.options.limits_with(self.reading.limits), float(self.options.confidence)
        answer = self.unasked(frame, rows).opened(limits.below, limits.above)
        return self.chance.of_classes(answer, level).within(*self.options.limits)

    def new_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the new columns of rows that were not fitted to.

        Parameters
        ----------
        frame : pandas.DataFrame
            With the target, which is empty where an answer is wanted, or without it.
        """
        frame = without(frame, list(self.options.missing))
        labels = self.reading.read(frame)
        rows = np.flatnonzero(labels.missing)
        return self.as_columns(labels, self.answer_at(frame.iloc[rows], rows), frame.index)

    def as_columns(self, labels: Target, answer: Answer, index: pd.Index) -> pd.DataFrame:
        """Return answers as the new columns of some rows; of the same types, whatever the rows."""
        level, shares = float(self.options.confidence), self.options.probabilities
        right = None if self.reading.task == "regression" else self.chance.right(answer)
        new = new_columns(labels, answer, level, index, right=right, probabilities=shares, known=self.labels)
        plain = [name for name, kind in new.dtypes.items() if kind.kind == "O" and kind != "category"]
        kinds = dict.fromkeys(plain, "string")
        moments, name = self.reading.spelling.moments, self.reading.name
        if moments is not None and moments.cells in ("date", "time"):  # objects are not for files
            kind = "date32[pyarrow]" if moments.cells == "date" else "time64[us][pyarrow]"
            kinds |= {one: kind for one in plain if one != f"{name}_status"}
        if self.reading.whole:
            kinds[f"{name}_filled"] = "Int64"
        elif plain and all(isinstance(label, bool) for label in self.labels.tolist()):
            kinds[f"{name}_filled"] = "boolean"
        return new.astype(kinds)

    def compare_later(self, frame: pd.DataFrame) -> Exchangeability:
        """Return how later rows, 1000 of them at most, compare with the calibration rows by their features."""
        later = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST_COMPARED]]
        features = self.encoder.transform(without(later, list(self.options.missing)))
        known = np.arange(len(self.held) + len(later)) < len(self.held)
        compared = exchangeability_test(np.concatenate([self.held, features]), known)
        names = [scale.column for scale in self.encoder.scales]
        return replace(compared.named(names), other="later")

    def guarantee_of_later(
        self,
        n_answered: int,
        n_unreached: int = 0,
        *,
        certainty: float | None = None,
        compared: Exchangeability | None = None,
    ) -> Guarantee:
        """Return what is guaranteed of rows that come later, if they are like the labelled ones.

        Parameters
        ----------
        n_answered, n_unreached : int
            How many have an answer, and how many have none.
        certainty : float, optional
            Of the bounds for all of them together; that of the options by default.
        compared : Exchangeability, optional
            What `compare_later` found. If it saw too few rows to tell, what was found in the table counts.
        """
        verdict, by_class = self.verdict, self.outside.shares is not None
        if compared is not None and not by_class:  # labels by class differ from later rows anyhow
            blind = compared.verdict.p_value is None and verdict is not None and verdict.shifted
            verdict = verdict if blind else compared.verdict
        later = replace(self, verdict=verdict)
        return later.guarantee_of_others(n_answered, n_unreached, certainty=certainty).of_later

    def guarantee_of_others(
        self, n_answered: int, n_unreached: int = 0, *, certainty: float | None = None
    ) -> Guarantee:
        """Return what is guaranteed of the rows of the table that the fit did not see, so many with an answer."""
        options = self.options
        found = replace(self.outside, tolerance=options.tolerance).guarantee(
            float(options.confidence),
            n_answered=n_answered,
            n_unreached=n_unreached,
            certainty=float(options.certainty) if certainty is None else certainty,
            verdict=self.verdict,
        )
        return found.limited(options.limits_with(self.reading.limits)).decided_by(self.reading.decisive)
