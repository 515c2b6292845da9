"""What a fitted machine says at rows, whether its setting is fixed or chosen at every candidate label."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from transduce.core import arrays
from transduce.core.guarantee import TooFewLabelsWarning
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array
from transduce.methods.confidence_machine.machine import Machine, count_classes, count_labels, find_regions
from transduce.methods.confidence_machine.tuned import (
    TunedMachine,
    answer_rows,
    class_p_values,
    label_p_values,
    predict_rows,
)

AnyMachine = Machine | TunedMachine


@dataclass(frozen=True)
class NumberAnswers:
    """Values (m,) and regions of m rows; `told` says how often each setting was chosen, if any was."""

    values: Array
    regions: Regions
    told: dict[str, object] = field(default_factory=dict)


def predict_values(machine: AnyMachine, rows: Array) -> Array:
    """Return the values at rows, shape (m,)."""
    return predict_rows(machine, rows) if isinstance(machine, TunedMachine) else machine.predict(rows)


def answer_numbers(machine: AnyMachine, rows: Array, confidence: float, side: str) -> NumberAnswers:
    """Return values and regions of rows, with a warning if the labels are too few for the level."""
    if not isinstance(machine, TunedMachine):
        return NumberAnswers(machine.predict(rows), find_level(machine, rows, confidence, side))
    found = answer_rows(machine, rows, rank=_rank(machine, rows, confidence), side=side)
    told = {
        "settings": _names(machine),
        "n_chosen": _count(found.winners, machine),
        "n_in_region": found.used.sum(axis=0).tolist(),
    }
    return NumberAnswers(found.values, found.regions, told)


def find_level(machine: AnyMachine, rows: Array, confidence: float, side: str) -> Regions:
    """Return the regions of rows alone, with the same warning."""
    if isinstance(machine, TunedMachine):
        return answer_numbers(machine, rows, confidence, side).regions
    return find_regions(machine, rows, rank=_rank(machine, rows, confidence), side=side)


def _rank(machine: AnyMachine, rows: Array, confidence: float) -> int:
    rank = nonconformity_rank(confidence, machine.n_labelled)
    if rank == 0 and rows.shape[0]:
        warn_level(confidence, machine.n_labelled, "every region is the whole line")
    return rank


def judge_labels(machine: AnyMachine, rows: Array, labels: Array, tau: Array) -> Array:
    """Return the p-value of one candidate label for each row (m,); ties count with weight `tau` (m,)."""
    if isinstance(machine, TunedMachine):
        return label_p_values(machine, rows, labels, tau)
    above, tied = count_labels(machine, rows, labels)
    above, tied = (_numbers(count, rows) for count in (above, tied))
    tau = arrays.beside(tau, rows)
    return p_values(above, tied, machine.n_labelled, tau)


@dataclass(frozen=True)
class ClassAnswers:
    """p-values and one-vs-rest predictions (m, n_classes), and the setting chosen for each candidate, if any was."""

    overall: Array
    within: Array
    scores: Array
    chosen: AnyArray | None = None


def judge_classes(machine: AnyMachine, rows: Array, codes: AnyArray, tau: Array) -> ClassAnswers:
    """Return the p-values of every class, among all labelled rows and within the class, with ties weighed by `tau`."""
    if isinstance(machine, TunedMachine):
        return ClassAnswers(*class_p_values(machine, rows, codes, tau))
    overall, within, scores = count_classes(machine, rows, codes)
    overall, within = _numbers(overall, rows), _numbers(within, rows)
    each = arrays.beside(tau[:, None], rows)
    return ClassAnswers(
        p_values(overall[0, ...], overall[1, ...], len(codes), each),
        p_values(within[0, ...], within[1, ...], arrays.beside(np.bincount(codes), rows, "float64"), each),
        scores,
    )


def _numbers(counts: AnyArray, rows: Array) -> Array:
    """Return counts in double precision, where the rows live."""
    return arrays.beside(counts, rows, "float64")


def tell_choice(machine: AnyMachine, found: ClassAnswers, best: AnyArray) -> dict[str, object]:
    """Return how often each setting was chosen: for the answered class of each row, and for all candidates."""
    if not isinstance(machine, TunedMachine) or found.chosen is None:
        return {}
    return {
        "settings": _names(machine),
        "n_chosen": _count(found.chosen[np.arange(len(best)), best], machine),
        "n_chosen_candidates": _count(found.chosen.ravel(), machine),
    }


def _names(machine: TunedMachine) -> list[str]:
    return [str(setting) for setting in machine.menu.settings]


def _count(chosen: AnyArray, machine: TunedMachine) -> list[int]:
    return np.bincount(chosen, minlength=len(machine.menu)).tolist()


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )
