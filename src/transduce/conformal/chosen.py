"""How labels came about, as far as the user knows: read from settings, and turned into weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.conformal.estimated_odds import CHANCE_ALONE, EstimatedOdds
from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.weighing import ESTIMATED, KNOWN, Weighing, odds_without_label
from transduce.core import checks
from transduce.core.guarantee import CHANCE, DESIGN, DRAWN, Guarantee
from transduce.core.types import Array, Mask
from transduce.model_selection.hidden_labels import Problem

SHIFTS = ("auto", "estimate", "ignore")


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is known of how labels came about, row by row.

    Parameters
    ----------
    drawn : boolean array of shape (l,) or None
        Which labels are of rows that were drawn at random.
    probability : array of shape (n,) or None
        With which each row was chosen to be labelled.
    shift : {"auto", "estimate", "ignore"}
        Whether odds are estimated: if a test says that labelled and unlabelled rows differ, always, or never.
    factor : float
        By how much odds may be off.
    """

    drawn: Mask | None = None
    probability: Array | None = None
    shift: str = "auto"
    factor: float = 1.0

    def assumed(self, found: Guarantee) -> Guarantee:
        """Return a guarantee with what it rests on, given how labels came about."""
        if found.kind == "none":
            return found
        instead = DRAWN if self.drawn is not None else DESIGN if self.probability is not None else CHANCE
        return replace(
            found,
            assumptions=tuple(instead if one == CHANCE else one for one in found.assumptions),
            factor=self.factor,
        )

    def estimates(self, compared: Exchangeability | None) -> bool:
        """Return whether odds are to be estimated, given how labelled and unlabelled rows compare."""
        if self.drawn is not None or self.probability is not None:
            return False
        return self.shift == "estimate" or (
            self.shift == "auto" and compared is not None and compared.shifted
        )

    @property
    def testable(self) -> bool:
        """Whether a difference between labelled and unlabelled rows speaks against what is assumed."""
        return self.probability is None


def read_chosen(params: dict[str, Any], problem: Problem) -> Chosen:
    """Return what settings say of how labels came about, or raise a ValueError that says what to correct."""
    drawn = read_drawn(params["calibration"], problem) if is_mask(params["calibration"]) else None
    probability = params["sampling_probability"]
    if drawn is not None and probability is not None:
        raise ValueError(
            "calibration marks rows drawn at random, and sampling_probability says that labels were drawn with "
            "different probabilities: leave out one of the two."
        )
    checks.check_choice("shift", params["shift"], SHIFTS)
    if params["shift"] == "estimate" and (drawn is not None or probability is not None):
        known = (
            "calibration marks rows drawn at random" if drawn is not None else "sampling_probability is given"
        )
        raise ValueError(f"{known}, so there is nothing to estimate: leave out shift='estimate'.")
    return Chosen(
        drawn,
        None if probability is None else read_probability(probability, problem.sample.labelled),
        params["shift"],
        read_factor(params["sensitivity"]),
    )


def read_factor(sensitivity: Any) -> float:
    """Return the factor by which odds may be off, or raise a ValueError."""
    factor = checks.check_positive("sensitivity", sensitivity)
    if factor < 1.0:
        raise ValueError(f"sensitivity must be a factor from 1 on, for example 1.5; got {sensitivity!r}.")
    return factor


def read_probability(probability: Any, labelled: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled, or raise a ValueError.

    Examples
    --------
    >>> read_probability([1, 0.5], np.array([True, False]))
    array([1. , 0.5])
    """
    try:
        numbers = np.asarray(probability, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != labelled.shape:
        raise ValueError(
            f"sampling_probability must be a number for each of the {len(labelled)} rows: the probability with which "
            "the row was chosen to be labelled."
        )
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        raise ValueError(
            f"sampling_probability must lie above 0 and be at most 1, and is {numbers[bad[0]]:g} at row {bad[0]} "
            "(counted from 0): a row that could not be chosen has nothing in common with those that were."
        )
    sure = np.flatnonzero(~labelled & (numbers == 1.0))
    if len(sure):
        raise ValueError(
            f"sampling_probability is 1 at row {sure[0]} (counted from 0), which has no label: a row that was sure to "
            "be labelled cannot lack one."
        )
    return numbers


def is_mask(calibration: Any) -> bool:
    """Return whether calibration rows are marked, one True or False for each row of the table."""
    return not isinstance(calibration, str) and np.ndim(calibration) == 1


def read_drawn(calibration: Any, problem: Problem) -> Mask:
    """Return which labels are of rows that were drawn at random, shape (l,), or raise a ValueError."""
    marks = np.asarray(calibration)
    if marks.shape != (problem.n_rows,) or marks.dtype.kind != "b":
        raise ValueError(
            f"calibration as a mask needs True or False for each of the {problem.n_rows} rows: True where a row was "
            "drawn at random to be labelled."
        )
    drawn = marks[problem.rows]
    if not drawn.any():
        raise ValueError(
            "No row that calibration marks as drawn at random has a label: label some of them first."
        )
    if drawn.all():
        raise ValueError("All labels are marked for calibration: at least one other is needed to learn from.")
    return drawn


def weigh(
    chosen: Chosen, problem: Problem, held_out: Mask, estimated: EstimatedOdds | None = None
) -> Weighing:
    """Return how much calibration and unlabelled rows weigh."""
    calibration, unlabelled = problem.rows[held_out], problem.sample.unlabelled
    if chosen.probability is not None:
        odds, kind = odds_without_label(chosen.probability), KNOWN
    elif estimated is not None and estimated.model != CHANCE_ALONE:
        odds, kind = estimated.odds, ESTIMATED
    else:
        return Weighing.equal(len(calibration), len(unlabelled), chosen.factor)
    return replace(Weighing.of(odds, calibration, unlabelled, kind), factor=chosen.factor)
