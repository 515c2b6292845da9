"""Draws of rows that were labelled, as the columns say that `transduce draw` wrote beside a table.

They are read without being told twice: a design that the user names wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.notes import About, Note
from transduce.app.tables.numbers import all_numbers
from transduce.conformal.designs import Design, Drawn, Sampled, calibration_number
from transduce.core.ranks import fewest_calibration
from transduce.core.types import Array, ColumnName, Mask
from transduce.core.words import counted
from transduce.population import Sample
from transduce.population.draws import read_marks


@dataclass(frozen=True)
class DrawColumns:
    """The columns that a draw writes beside a table, by the target of it."""

    target: ColumnName

    @property
    def marks(self) -> str:
        """Which rows were drawn."""
        return f"{self.target}_random"

    @property
    def seed(self) -> str:
        """The seed of the draw."""
        return f"{self.marks}_seed"

    @property
    def stratum(self) -> str:
        """What each row was drawn from."""
        return f"{self.marks}_stratum"

    @property
    def probability(self) -> str:
        """With which probability each row was drawn."""
        return f"{self.marks}_probability"

    def are_in(self, frame: pd.DataFrame) -> bool:
        """Return whether a table has marks of a draw, and not a column of that name by accident."""
        return self.marks in frame.columns and self.seed in frame.columns

    def have_strata(self, frame: pd.DataFrame) -> bool:
        """Return whether rows were drawn from strata."""
        return self.stratum in frame.columns and self.probability in frame.columns


def use_draw(source: FrameSource, options: Options) -> tuple[FrameSource, Options]:
    """Return the table, with a note, and options with the design that a draw tells."""
    columns = DrawColumns(source.labels.name)
    if options.labels is not None or not columns.are_in(source.frame):
        return source, options
    labelled = ~source.labels.missing
    drawn = read_marks(source.frame, columns.marks)
    design = None
    if columns.have_strata(source.frame):
        probability = _probabilities(source.frame, columns)
        if _drawn_alike(drawn, labelled, probability):
            return source, options
        design = _design_of_strata(columns, drawn, labelled, probability)
    elif (labelled & ~drawn).any():
        design = Drawn(columns.marks)
    else:
        return source, options  # all labels were drawn at random, which is what is assumed anyhow
    n_calibration = _count_calibration(design, drawn, labelled, options)
    if design is None or n_calibration < fewest_calibration(options.level):
        note = (
            f"Column {columns.marks!r} marks rows that were drawn to be labelled, but their labels "
            "are too few, or too few of each stratum, to calibrate by themselves: all labels count "
            "as those of rows that were labelled at random. Label every drawn row, or say how "
            "labels came about."
        )
        return _noted(source, note), options
    note = _about_design(design, columns, int(np.sum(drawn & ~labelled)))
    return _noted(source, note), replace(options, labels=design)


def _drawn_alike(drawn: Mask, labelled: Mask, probability: Array) -> bool:
    """Return whether all rows were drawn with one probability, and the drawn ones labelled."""
    return np.array_equal(drawn, labelled) and float(np.ptp(probability)) < 1e-9


def _design_of_strata(
    columns: DrawColumns, drawn: Mask, labelled: Mask, probability: Array
) -> Design | None:
    """Return how labels came about where rows were drawn from strata; None if nothing fits."""
    if (labelled & ~drawn).any():
        return Drawn(columns.marks, within=columns.stratum)
    sure = ~labelled & (probability >= 1.0)
    if bool(np.all(probability > 0.0)) and not sure.any():
        return Sampled(columns.probability)
    return None


def _count_calibration(
    design: Design | None,
    drawn: Mask,
    labelled: Mask,
    options: Options,
) -> int:
    """Return how many labels would calibrate; none where the options hold no label out."""
    if options.guarantee == "row" or options.parts == ["confidence-machine"]:
        return 0
    if design is not None and design.draws_calibration:
        return int(np.sum(drawn & labelled))
    return calibration_number(int(np.sum(labelled)), options.level)


def _about_design(design: Design, columns: DrawColumns, n_unlabelled: int) -> str:
    """Return what was found, in a sentence or two."""
    note = (
        f"Rows were drawn from each {columns.stratum!r} separately: calibration labels are "
        f"weighted by the probabilities in {columns.probability!r}."
    )
    if design.draws_calibration:
        note = (
            f"Column {columns.marks!r} marks the rows that `transduce draw` drew: their labels are "
            "used for calibration, and all others for the fit."
        )
    if design.within is not None:
        note += f" Rows are compared within each {columns.stratum!r}, from which they were drawn."
    if n_unlabelled:
        note += f" {counted(n_unlabelled, 'drawn row has', 'drawn rows have')} no label yet."
    return note


def _probabilities(frame: pd.DataFrame, columns: DrawColumns) -> Array:
    """Return the probability with which each row was drawn (n,); 0 where that is not known."""
    amounts = all_numbers(frame[columns.probability])
    if amounts is None:
        return np.zeros(len(frame))
    return np.nan_to_num(np.asarray(amounts, dtype=float), nan=0.0)


def _noted(source: FrameSource, note: str) -> FrameSource:
    """Return the table with one more note."""
    noted = Note(About.DESIGN, note)
    return replace(source, further_notes=(*source.further_notes, noted))


def sample_of_strata(
    frame: pd.DataFrame, target: ColumnName, options: Options, sample: Sample
) -> Sample:
    """Return the sample behind questions about the whole column: of each stratum a simple one."""
    columns = DrawColumns(target)
    probabilities = options.design.probabilities
    if not isinstance(probabilities, str) or probabilities != columns.probability:
        return sample
    if columns.stratum not in frame.columns:
        return sample
    codes = pd.factorize(frame[columns.stratum].astype(str))[0]
    return replace(sample, odds=None, strata=codes)
