"""Draws of rows that were labelled, as the columns say that `transduce draw` wrote beside a table.

They are read without being told twice: a design that the user names wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.numbers import all_numbers
from transduce.conformal.designs import Drawn, Sampled
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
    """Return the table, with a note, and options that say how labels came about, if a draw tells."""
    columns = DrawColumns(source.labels.name)
    if options.labels is not None or not columns.are_in(source.frame):
        return source, options
    labelled = ~source.labels.missing
    drawn = read_marks(source.frame, columns.marks)
    if columns.have_strata(source.frame):
        return _use_strata(source, options, columns, drawn, labelled)
    # Where all labels are those of the draw, chance chose them all, which is what is assumed anyhow.
    if (drawn & labelled).sum() == labelled.sum() or options.guarantee == "row":
        return source, options
    if (drawn & labelled).sum() < fewest_calibration(float(options.confidence)):
        note = (
            f"{counted(int((drawn & labelled).sum()), 'label is', 'labels are')} of rows that "
            f"{columns.marks!r} marks as drawn at random, too few to calibrate: all labels count as "
            "labels of rows that chance chose."
        )
        return _noted(source, note), options
    note = (
        f"Column {columns.marks!r} marks the rows that `transduce draw` drew: their labels "
        "calibrate, and all others teach."
    )
    return _noted(source, note), replace(options, labels=Drawn(columns.marks))


def _use_strata(
    source: FrameSource, options: Options, columns: DrawColumns, drawn: Mask, labelled: Mask
) -> tuple[FrameSource, Options]:
    """Return the table and the options of a draw by strata."""
    probability = _probabilities(source.frame, columns)
    complete = np.array_equal(drawn, labelled) and bool(np.all(probability > 0.0))
    equal = bool(np.ptp(probability) < 1e-9)
    if complete and equal:
        return source, options  # as if chance had drawn from all rows alike, or nearly so
    if complete and options.guarantee != "row":
        note = (
            f"Rows were drawn from each {columns.stratum!r} by itself: calibration labels are "
            f"weighed by the probabilities in {columns.probability!r}."
        )
        return _noted(source, note), replace(options, labels=Sampled(columns.probability))
    note = (
        f"Rows were drawn from each {columns.stratum!r} by itself, but not all labels are those of "
        "the draw, or not all rows drawn have a label: all labels count as labels of rows that "
        "chance chose, which they were not. Label every drawn row, or name the design."
    )
    return _noted(source, note), options


def _probabilities(frame: pd.DataFrame, columns: DrawColumns) -> Array:
    """Return the probability with which each row was drawn (n,); 0 where that is not known."""
    amounts = all_numbers(frame[columns.probability])
    if amounts is None:
        return np.zeros(len(frame))
    return np.nan_to_num(np.asarray(amounts, dtype=float), nan=0.0)


def _noted(source: FrameSource, note: str) -> FrameSource:
    """Return the table with one more note."""
    labels = replace(source.labels, notes=[*source.labels.notes, note])
    return replace(source, labels=labels)


def sample_of_strata(
    frame: pd.DataFrame, target: ColumnName, options: Options, sample: Sample
) -> Sample:
    """Return the sample behind questions about the whole column: of each stratum a simple one."""
    columns = DrawColumns(target)
    design = options.design
    if not isinstance(design, Sampled) or design.probability != columns.probability:
        return sample
    if columns.stratum not in frame.columns:
        return sample
    codes = pd.factorize(frame[columns.stratum].astype(str))[0]
    return replace(sample, odds=None, strata=codes)
