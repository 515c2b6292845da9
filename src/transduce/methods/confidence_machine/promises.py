"""What a confidence machine guarantees, and what that rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce.core.assumptions import CHANCE, NOT_FOR_LATER
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import nonconformity_rank
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Within
from transduce.methods.confidence_machine.far_labels import GuardedMachine
from transduce.methods.confidence_machine.label_scales import ScaledMachine
from transduce.methods.confidence_machine.machine import Machine
from transduce.methods.confidence_machine.own_scores import ScoredMachine
from transduce.methods.confidence_machine.tuned_machine import TunedMachine

AnyMachine = Machine | TunedMachine | ScaledMachine | GuardedMachine | ScoredMachine
TUNED = (TunedMachine, ScaledMachine, GuardedMachine)
CHOSEN_BY_CANDIDATE = (
    "For every candidate label the setting was chosen by the leave-one-out error of the sample "
    "completed with it, which treats all rows alike."
)


def promise_intervals(confidence: float) -> Guarantee:
    """Return what a machine guarantees of numbers, whatever they are."""
    return Guarantee("exact", "region", confidence, assumptions=(CHANCE,))


def promise_sets(confidence: float, codes: AnyArray, *, by_class: bool) -> Guarantee:
    """Return what a machine guarantees of classes, given the codes (l,) of the labels."""
    within: Within = "class" if by_class else ""
    guarantee = Guarantee("exact", "set", confidence, within, assumptions=(CHANCE,))
    n_single = count_single_labels(codes)
    rank = nonconformity_rank(confidence, len(codes))
    return replace(guarantee, any_class=0 < rank <= n_single)


def count_single_labels(codes: AnyArray) -> int:
    """Return how many classes are shown by one label only."""
    return int(np.sum(np.bincount(codes) == 1))


def explain(
    machine: AnyMachine,
    sample: PartlyLabelled,
    exact: Guarantee,
    estimated: list[str],
) -> Guarantee:
    """Return what is guaranteed at the unlabelled rows; with none, for rows given later."""
    guarantee = replace(exact, n_labelled=machine.n_labelled)
    if machine.jitter > 0.0:
        reason = "The ridge had to be raised for numerical reasons."
        return replace(guarantee, kind="approximate", reasons=(reason,))
    tuned = isinstance(machine, TUNED) and len(machine.grid) > 1
    details = (CHOSEN_BY_CANDIDATE,) if tuned else ()
    if not estimated:
        no_estimate = "No setting was estimated from the data."
        if tuned:
            no_estimate = "The features set nothing."
        return replace(guarantee, details=(*details, no_estimate))
    listed = " and ".join(estimated)
    if sample.labelled.all():
        reason = f"The features set {listed}, and rows given only to predict had no part in that."
        return replace(guarantee, kind="approximate", details=details, reasons=(reason,))
    detail = f"The features of all rows, labelled and unlabelled alike, set {listed}; no label did."
    return replace(guarantee, details=(*details, detail), reasons=(NOT_FOR_LATER,))
