"""What is to be fitted, by the options, the task and the size of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.columns import Target
from transduce.conformal.designs import (
    BoundDesign,
    Design,
    Estimated,
    calibration_number,
    labels_needed,
)
from transduce.conformal.transducer import ConformalTransducer
from transduce.core.ranks import fewest_calibration
from transduce.core.words import option, percent
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.fit_and_predict import last_step, unused_name
from transduce.model_selection.methods import (
    MEMBERS,
    METHODS,
    MOST_EXACT,
    Case,
    default_members,
    leave_out_slow,
    planned_costs,
)
from transduce.model_selection.own_models import OwnModel, called

FOLDS = 5
ANSWER_SHARE = (
    0.1  # of the time budget, for the answers of one slow method at rows outside of the fit
)
QUICK = 5e-6  # seconds a row: what answers faster costs no more than reading, features and writing
POINTS = 500  # of the Gaussian process with more labels than MOST_EXACT, or where exact answers would take too long
# Below so many labels "auto" guarantees for each row, with no label held out. On the tables of benchmarks/width.py
# such intervals are as wide with 30 labels, 7 % narrower with 100, 2 % wider with 60 and 5 % with 300; on 15 other
# tables, one draw of 100 labels each, they were 15 % wider, most of that from one table. Sets of classes are
# 12 % smaller with 30 labels and 9 % with 100, but calibration labels alone bound the number of wrong answers.
ROW_BELOW = {"regression": 200, "classification": 50}

NOTE_WEIGHTS = "Labelled and unlabelled rows differ: labels were held out, and weighted by "
NOTE_WEIGHTS += "estimated odds of a label."
BLENDS = ("auto", "blend")


@dataclass(frozen=True, eq=False)
class Plan:
    """What will be fitted."""

    model: Any  # a `ConformalTransducer`, or a confidence machine
    left_out: dict[str, str]  # methods that are not in the blend, and why
    seconds: float  # roughly how long it will take on one core
    notes: list[str]
    values: Any = None  # what the values come from, if not from the model
    by_row: bool = False  # whether the model is a confidence machine: no label is held out


def make_plan(
    case: Case,
    options: Options,
    design: BoundDesign,
    *,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
) -> Plan:
    """Choose what to fit, for `n_outside` more rows and `classes`, by task and size: labels would spoil guarantees."""
    parts = options.parts
    n_calibration = count_held_out(case, options, design)
    if parts == ["confidence-machine"]:
        return Plan(_machine(case.task, options, design), {}, 1.0, [], by_row=True)
    blended = len(parts) > 1 or parts[0] in BLENDS
    if blended:
        # One for the values and, from labels that are not held out, one for the intervals.
        inner, left_out, seconds, notes = _blend(
            case, options, n_outside, 2 if n_calibration else 1
        )
    else:
        left_out, notes = {}, []
        inner, seconds = _one(parts[0], case, options)
        seconds *= 2 + FOLDS
    what = "intervals" if case.task == "regression" else "sets"
    if asks_machine(options, design, n_calibration):
        values = "the blend" if blended else options.method_name
        note = f"Guarantee by row: the {what} come from the confidence machine, with no label held out, the values "
        note += f"from {values}. How many rows together are outside is not bounded; {option('guarantee', 'column')} "
        note += "does that, and holds labels out for it."
        machine = _machine(case.task, options, design)
        return Plan(machine, left_out, seconds, [note, *notes], inner, by_row=True)
    if (
        not n_outside or not n_calibration
    ):  # of a sample, what became of all labels is said as a whole
        notes.append(_about_labels(what, case.n_labels, n_calibration, design))
    how: dict[str, Any] = {
        "confidence": float(options.confidence),
        "random_state": options.random_state,
    }
    how |= {"label_conditional": options.label_conditional, "classes": classes or None}
    return Plan(
        ConformalTransducer(inner, labels=design, refit=True, **how), left_out, seconds, notes
    )


def _about_labels(what: str, n_labels: int, n_calibration: int, design: BoundDesign) -> str:
    """Return which labels values and intervals come from; what is guaranteed is said by the guarantee."""
    if not n_calibration:
        return f"The {n_labels} labels are too few to hold some out: nothing is guaranteed."
    if design.spec.holds_out_in_parts:
        return f"Values come from {n_labels} labels, {what} from a fit that saw some of them."
    n_seen = n_labels - n_calibration
    return (
        f"Values come from {n_labels} labels, {what} from a fit that saw {n_seen} of them, since the "
        f"other {n_calibration} were held out to calibrate it."
    )


def caution_on_method(task: str, n_labels: int) -> str:
    """Return what becomes of the guarantee of a method that is named because labels speak for it."""
    if n_labels < ROW_BELOW[task]:
        return (
            "Any of them may be named: with so few labels the guarantee is for each row and comes from the "
            "confidence machine, and the method makes the values only."
        )
    return (
        "A method that is named because it is the best here was chosen by the labels that calibrate: what "
        "`transduce fill --method` then calls exact is only nearly so. Leave --method out to keep it exact."
    )


def count_held_out(case: Case, options: Options, design: BoundDesign) -> int:
    """Return how many labels are to be held out: none where the guarantee is for each row only.

    Raise a ValueError that says what to do where the labels are too few for what was asked.
    """
    n_labels = case.n_labels
    confidence = float(options.confidence)
    number = design.n_calibration(n_labels, confidence, by_class=options.by_class)
    if is_by_row(case, options, design):
        return 0
    if design.spec.stands_without_guarantee and not options.own:
        return number  # with too few labels values stand without a guarantee, as where chance chose them
    if design.spec.holds_out and number < fewest_calibration(confidence):
        raise ValueError(design.too_few(n_labels, confidence))
    if number == 0 and options.guarantee == "column":
        without_own = ", without an estimator of your own" if options.own else ""
        raise ValueError(
            f"{n_labels} labels are too few to hold some out and guarantee {percent(confidence)} for "
            f"the column: it takes {labels_needed(confidence)}; {option('guarantee', 'row')} needs "
            f"none held out{without_own}."
        )
    return number


def is_by_row(case: Case, options: Options, design: BoundDesign) -> bool:
    """Return whether the guarantee is for each row only: that was asked for, or labels are few."""
    if design.spec.holds_out or options.guarantee == "column":
        return False
    if options.guarantee == "row" or case.n_labels < ROW_BELOW[case.task]:
        return True
    if not design.spec.chosen_by_class:
        return False
    labels_of_a_class = case.n_labels // max(case.n_classes, 1)
    return labels_of_a_class < labels_needed(float(options.confidence))


def asks_machine(options: Options, design: BoundDesign, n_held_out: int) -> bool:
    """Return whether intervals or sets come from the confidence machine, with no label held out."""
    if options.parts == ["confidence-machine"]:
        return True
    return n_held_out == 0 and not design.spec.holds_out


def design_if_shifted(n_labels: int, options: Options) -> Design | None:
    """Return the design to plan with again where rows differ and no label was held out; None if there is none."""
    free = options.guarantee == "auto" and options.parts != ["confidence-machine"]
    enough = calibration_number(n_labels, float(options.confidence)) > 0
    reweighs = options.design.reweighs_if_shifted
    return Estimated() if free and enough and reweighs else None


# ------------------------------------------------------------------------------- a fit to a sample of the rows


def is_sampled(source: FrameSource, options: Options) -> bool:
    """Return whether a table in memory has too many rows for a fit that sees them all."""
    labels = source.labels
    if int(labels.missing.sum()) <= options.sample:
        return False
    if options.guarantee == "row" or options.device is not None:
        return False
    if options.guarantee == "auto" and labels.n_labels < ROW_BELOW[labels.task]:
        return False
    # With weights, groups or categories the fit sees all rows.
    if options.design.needs_all_rows:
        return False
    if not options.design.draws_calibration:
        return True
    design = options.design.bind(labels.missing, source.frame)
    return design.n_drawn >= 2 * fewest_calibration(float(options.confidence))


def options_of_sample(shown: Target, options: Options) -> Options:
    """Return the options of a fit to a sample: labels are held out where they are enough."""
    level = float(options.confidence)
    enough = calibration_number(shown.n_labels, level, by_class=options.by_class) > 0
    holds_out = enough or options.design.draws_calibration or bool(options.own)
    return replace(options, guarantee="column" if holds_out else "row")


def classes_of_sample(shown: Target, kept: Target, options: Options) -> tuple[Any, ...]:
    """Return classes besides those in the sample: where chance left one to it, or shares of all are given."""
    if shown.task != "classification":
        return ()
    if len({*shown.known.tolist()}) >= 2 and not options.design.gives_shares:
        return ()
    return tuple(sorted({*kept.known.tolist()}, key=str))


# ------------------------------------------------------------------------------------------------ what is fitted


def _machine(task: str, options: Options, design: BoundDesign) -> Any:
    """Return the confidence machine that chooses its settings on the completed sample."""
    from transduce.methods.confidence_machine import (
        RidgeConfidenceClassifier,
        RidgeConfidenceMachine,
    )

    level = float(options.confidence)
    common: dict[str, Any] = {
        "settings": "leave-one-out",
        "standardize": False,
        "confidence": level,
    }
    if task == "regression":
        return RidgeConfidenceMachine(residual="studentized", **common)
    by_class = machine_by_class(options, design)
    return RidgeConfidenceClassifier(label_conditional=by_class, **common)


def machine_by_class(options: Options, design: BoundDesign) -> bool:
    """Return whether the machine compares every class with its own labels."""
    return options.label_conditional or design.spec.chosen_by_class


def _one(part: Any, case: Case, options: Options) -> tuple[Any, float]:
    """Return one method, ours or of the user, and about how many seconds a fit of it takes, if that is known."""
    if isinstance(part, str):
        return METHODS[part].suited(case), METHODS[part].fit_seconds(case)
    return OwnModel.of(part, case, columns=options.features == "columns"), 0.0


def _blend(
    case: Case, options: Options, n_outside: int, fits: int
) -> tuple[TransductiveBlend, dict[str, str], float, list[str]]:
    """Return a blend whose members are likely to end in time, who was left out, seconds it will take, and notes."""
    budget, n_labels = float(options.budget_seconds), case.n_labels
    by_name = [part for part in options.parts if isinstance(part, str)]
    members, unsuited = default_members(case) if set(BLENDS) & set(by_name) else ({}, {})
    # The Gaussian process answers rows outside of the fit from all labels, or from some points if that is quicker.
    one_by_one = n_outside * MEMBERS["gaussian_process"].answer_seconds(
        Case("regression", 0, n_labels)
    )
    quick = n_labels <= MOST_EXACT and one_by_one <= ANSWER_SHARE * budget
    exact = n_labels <= POINTS or quick
    answering = case if exact else replace(case, n_labels=POINTS)
    # Too slow to answer very many rows: counts alone decide, and not the number of processes.
    answers = {name: n_outside * MEMBERS[name].answer_seconds(answering) for name in members}
    most = max(ANSWER_SHARE * budget, QUICK * n_outside)
    slow = {name: seconds for name, seconds in answers.items() if seconds > most}
    slow = slow if len(slow) < len(members) else {}
    left_out = unsuited | dict.fromkeys(slow, "it answers too slowly for so many rows")
    more = {
        METHODS[name].member: METHODS[name].suited(case) for name in by_name if name not in BLENDS
    }
    for part in options.own:
        more[unused_name(called(part), more)] = _one(part, case, options)[0]
    changed = bool(slow or more or case.views)
    if "gaussian_process" in members and n_labels <= MOST_EXACT and not exact:
        last_step(members["gaussian_process"]).set_params(max_exact=POINTS)
        changed = True
    quick_enough = [name for name in members if name not in slow]
    costs = planned_costs(quick_enough, case, fits=fits)
    costs = {name: seconds + answers[name] for name, seconds in costs.items()}
    too_slow = leave_out_slow(costs, budget, others=len(more))
    left_out |= too_slow
    costs = {name: seconds for name, seconds in costs.items() if name not in too_slow}
    changed = changed or bool(too_slow)
    computing = {name: getattr(options, name) for name in ("n_jobs", "device", "random_state")}
    blend = TransductiveBlend(task=case.task, standardize=False, **computing)
    if changed:
        blend.set_params(estimators={name: members[name] for name in costs} | more)
    return (
        blend,
        left_out,
        sum(costs.values()),
        _about_slow(slow, n_outside, budget) if slow else [],
    )


def _about_slow(slow: dict[str, float], n_outside: int, budget: float) -> list[str]:
    """Return a note on the methods that answer too slowly for so many rows, and how to have them all the same."""
    names = ", ".join(f"{name} ({seconds:,.0f} s)" for name, seconds in slow.items())
    needed = option("budget_seconds", int(np.ceil(max(slow.values()) / ANSWER_SHARE)))
    long = f"longer than {ANSWER_SHARE * budget:,.0f} s to answer {n_outside:,} rows with it"
    return [
        f"Left out, since one core would take {long}: {names}. With {needed} all methods take part."
    ]
