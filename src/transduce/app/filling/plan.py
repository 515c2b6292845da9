"""What is to be fitted, by the options, the task and the size of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, cast

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
from transduce.core.ranks import fewest_calibration, nonconformity_rank
from transduce.core.types import OptionValues, Task
from transduce.core.words import option, percent
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.estimator_kinds import last_step, unused_name
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
# Of the Gaussian process with more labels than MOST_EXACT, or where exact answers take too long.
POINTS = 500
# Below so many labels "auto" guarantees for each row, with no label held out. Intervals of such
# fills were 7, 14, 8, 9 and 2 % narrower than those that calibration labels give, with 60, 100,
# 140, 200 and 300 labels (benchmarks/row_or_column.py: ten mixed tables, 8, 8, 8, 5 and 3 draws
# that no race uses), and sets of classes 5, 4 and 2 % smaller with 30, 100 and 300 (four draws).
# But calibration labels alone bound how many rows are outside: worth a little width in time.
ROW_BELOW = {"regression": 200, "classification": 50}
# From so many labels on, intervals of the confidence machine follow difficulty
# (benchmarks/difficulty.py, ten mixed tables, six draws on which nothing was chosen): with 15
# labels they were as wide as with a constant spread in an earlier run, with 30 labels 7 % and with
# 100 9 % narrower, the hardest third of the rows is covered in .862 instead of .844 and in .825
# instead of .805 of the cases.
LOCAL_FROM = 20

NOTE_WEIGHTS = (
    "Labelled and unlabelled rows differ: labels were held out, and weighted by estimated "
    "propensities (how likely a row is to have a label)."
)
BLENDS = ("auto", "blend")


@dataclass(frozen=True, eq=False)
class Plan:
    """What will be fitted."""

    model: Any  # what intervals come from: a `ConformalTransducer`, or a confidence machine
    holds_out: bool  # whether the model holds labels out, and compares rows by itself
    left_out: dict[str, str]  # methods that are not in the blend, and why
    seconds: float  # roughly how long it will take on one core
    notes: list[str]
    values: Any = None  # what the values come from, if not from the model


def make_plan(
    case: Case,
    options: Options,
    design: BoundDesign,
    *,
    n_outside: int = 0,
    classes: tuple[Any, ...] = (),
    more_members: Mapping[str, Any] = MappingProxyType({}),
    has_zero: bool = True,
) -> Plan:
    """Choose what to fit, for `n_outside` more rows and `classes`, by task and size alone.

    A blend gets `more_members` besides its own, by their names. Of dates and times of day it is
    known that their 0 means nothing (not `has_zero`): they have no logarithm.

    Labels have no say in it: that would spoil guarantees.
    """
    n_calibration = count_held_out(case, options, design)
    if options.parts == ["confidence-machine"]:
        machine = _machine(case, options, design, has_zero=has_zero)
        return Plan(machine, holds_out=False, left_out={}, seconds=1.0, notes=[])
    # One fit for the values and, from labels that are not held out, one for the intervals.
    fits = 1
    if n_calibration:
        fits = 2
    values = _plan_values(case, options, n_outside, fits, more_members)
    regions = "sets"
    if case.task == "regression":
        regions = "intervals"
    if asks_machine(options, design, n_calibration):
        return Plan(
            _machine(case, options, design, has_zero=has_zero),
            holds_out=False,
            left_out=values.left_out,
            seconds=values.seconds,
            notes=[_about_machine(regions, options), *values.notes],
            values=values.estimator,
        )
    notes = list(values.notes)
    # Of a sample, what became of all labels is said as a whole.
    if not n_outside or not n_calibration:
        notes.append(_about_labels(regions, case.n_labels, n_calibration, design))
    model = ConformalTransducer(
        values.estimator,
        labels=design,
        refit=True,
        confidence=options.confidence,
        random_state=options.random_state,
        label_conditional=options.label_conditional,
        classes=classes or None,
    )
    return Plan(
        model,
        holds_out=True,
        left_out=values.left_out,
        seconds=values.seconds,
        notes=notes,
    )


@dataclass(frozen=True, eq=False)
class _PlannedValues:
    """What the values will come from."""

    estimator: Any
    left_out: dict[str, str]  # methods that are not in the blend, and why
    seconds: float  # roughly how long it will take on one core
    notes: list[str]


def is_blended(options: Options) -> bool:
    """Return whether values come from a blend of methods."""
    return len(options.parts) > 1 or options.parts[0] in BLENDS


def _plan_values(
    case: Case,
    options: Options,
    n_outside: int,
    fits: int,
    more_members: Mapping[str, Any],
) -> _PlannedValues:
    """Return what the values will come from: a blend that is fitted so often, or one method."""
    if is_blended(options):
        return _plan_blend(case, options, n_outside, fits, more_members)
    estimator, seconds = _one_method(options.parts[0], case, options)
    return _PlannedValues(estimator, {}, seconds * (2 + FOLDS), [])


def _about_machine(what: str, options: Options) -> str:
    """Return where values and intervals come from where no label is held out."""
    values = options.method_name
    if is_blended(options):
        values = "the blend"
    column = option("guarantee", "column")
    return (
        f"Guarantee for each row: the {what} come from the confidence machine, which holds no "
        f"label out, and the values from {values}. {column} also bounds how many rows are outside "
        "in total, and holds labels out for that."
    )


def _about_labels(what: str, n_labels: int, n_calibration: int, design: BoundDesign) -> str:
    """Return which labels values and intervals come from.

    What is guaranteed is said by the guarantee.
    """
    if not n_calibration:
        return f"The {n_labels} labels are too few to hold some out: nothing is guaranteed."
    if design.spec.holds_out_in_parts:
        return (
            f"Values come from a fit to all {n_labels} labels, {what} from fits to some of them, "
            "calibrated by the others."
        )
    n_seen = n_labels - n_calibration
    return (
        f"Values come from a fit to all {n_labels} labels, {what} from a fit to {n_seen} of them, "
        f"calibrated by the other {n_calibration}."
    )


def caution_on_method(task: str, n_labels: int) -> str:
    """Return what becomes of the guarantee of a method named because labels speak for it."""
    if n_labels < ROW_BELOW[task]:
        return (
            "Any of them may be named: with so few labels the guarantee is for each row and comes "
            "from the confidence machine, and the method makes the values only."
        )
    return (
        "A method that is named because it is the best here was chosen by the labels that "
        "calibrate: what `transduce fill --method` then calls exact is only nearly so. Leave "
        "--method out to keep it exact."
    )


def count_held_out(case: Case, options: Options, design: BoundDesign) -> int:
    """Return how many labels are to be held out: none where the guarantee is for each row only.

    Raise a ValueError that says what to do where the labels are too few for what was asked.
    """
    n_labels = case.n_labels
    confidence = options.level
    number = design.n_calibration(n_labels, confidence, by_class=options.by_class)
    most = design.most_calibration(n_labels, options.levels, by_class=options.by_class)
    if is_by_row(case, options, design):
        return 0
    if design.spec.stands_without_guarantee and not options.own:
        # With too few labels values stand without a guarantee, as where chance chose them.
        return most
    if design.spec.holds_out and number < fewest_calibration(confidence):
        raise ValueError(design.too_few(n_labels, confidence))
    if number == 0 and options.guarantee == "column":
        without_own = ", without an estimator of your own" if options.own else ""
        raise ValueError(
            f"{n_labels} labels are too few to hold some out and guarantee {percent(confidence)} "
            f"for the column: it takes {labels_needed(confidence)}; {option('guarantee', 'row')} "
            f"needs none held out{without_own}."
        )
    if number == 0:
        return 0
    return most


def is_by_row(case: Case, options: Options, design: BoundDesign) -> bool:
    """Return whether the guarantee is for each row only: that was asked for, or labels are few."""
    if design.spec.holds_out or options.guarantee == "column":
        return False
    if options.guarantee == "row" or case.n_labels < ROW_BELOW[case.task]:
        return True
    if not design.spec.chosen_by_class:
        return False
    labels_of_a_class = case.n_labels // max(case.n_classes, 1)
    return labels_of_a_class < labels_needed(options.level)


def asks_machine(options: Options, design: BoundDesign, n_held_out: int) -> bool:
    """Return whether intervals or sets come from the confidence machine, with no label held out."""
    if options.parts == ["confidence-machine"]:
        return True
    return n_held_out == 0 and not design.spec.holds_out


def design_if_shifted(n_labels: int, options: Options) -> Design | None:
    """Return the design to plan with again where rows differ, or None.

    There is one only if no label was held out.
    """
    free = options.guarantee == "auto" and options.parts != ["confidence-machine"]
    enough = calibration_number(n_labels, options.level) > 0
    reweighs = options.design.reweighs_if_shifted
    return Estimated() if free and enough and reweighs else None


# ---- a fit to a sample of the rows


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
    return design.n_drawn >= 2 * fewest_calibration(options.level)


def options_of_sample(shown: Target, options: Options) -> Options:
    """Return the options of a fit to a sample: labels are held out where they are enough."""
    level = options.level
    enough = calibration_number(shown.n_labels, level, by_class=options.by_class) > 0
    holds_out = enough or options.design.draws_calibration or bool(options.own)
    return replace(options, guarantee="column" if holds_out else "row")


def classes_of_sample(shown: Target, kept: Target, options: Options) -> tuple[Any, ...]:
    """Return classes besides those in the sample.

    Chance left them out of it, or the shares of all classes are given.
    """
    if shown.task != "classification":
        return ()
    if len({*shown.known.tolist()}) >= 2 and not options.design.gives_shares:
        return ()
    return tuple(sorted({*kept.known.tolist()}, key=str))


# ---- what is fitted


def _machine(case: Case, options: Options, design: BoundDesign, *, has_zero: bool) -> Any:
    """Return the confidence machine that chooses its settings on the completed sample."""
    from transduce.methods.confidence_machine import (
        RidgeConfidenceClassifier,
        RidgeConfidenceMachine,
    )

    level = options.level
    common: OptionValues = {
        "settings": "leave-one-out",
        "standardize": False,
        "confidence": options.confidence,
    }
    if case.task == "regression" and case.n_labels < LOCAL_FROM:
        return RidgeConfidenceMachine(residual="studentized", draw_in_far=True, **common)
    if case.task == "regression":
        # One label that is not positive may cost a rank, and one rank must remain.
        scale: Literal["identity", "auto"] = "identity"
        if has_zero and nonconformity_rank(level, case.n_labels) >= 2:
            scale = "auto"
        return RidgeConfidenceMachine(spread="local", scale=scale, draw_in_far=True, **common)
    by_class = machine_by_class(options, design)
    return RidgeConfidenceClassifier(label_conditional=by_class, **common)


def machine_by_class(options: Options, design: BoundDesign) -> bool:
    """Return whether the machine compares every class with its own labels."""
    return options.label_conditional or design.spec.chosen_by_class


def _one_method(part: Any, case: Case, options: Options) -> tuple[Any, float]:
    """Return one method, ours or of the user, and about how many seconds a fit takes, if known."""
    if isinstance(part, str):
        return METHODS[part].suited(case), METHODS[part].fit_seconds(case)
    return OwnModel.of(part, case, columns=options.features == "columns"), 0.0


def _plan_blend(
    case: Case,
    options: Options,
    n_outside: int,
    fits: int,
    more_members: Mapping[str, Any],
) -> _PlannedValues:
    """Return a blend whose members are likely to end in time."""
    budget = float(options.budget_seconds)
    members: OptionValues = {}
    unsuited: dict[str, str] = {}
    if any(part in BLENDS for part in options.parts if isinstance(part, str)):
        members, unsuited = default_members(case)
    named_members = _named_members(case, options) | dict(more_members)
    uses_points = _uses_points(case.n_labels, n_outside, budget)
    in_time = _members_in_time(
        members,
        case,
        n_outside,
        fits,
        budget,
        n_points=POINTS if uses_points else None,
        n_others=len(named_members),
    )
    blend = TransductiveBlend(
        task=cast(Task, case.task),
        standardize=False,
        n_jobs=options.n_jobs,
        device=options.device,
        random_state=options.random_state,
    )
    limits_points = uses_points and "gaussian_process" in members and case.n_labels <= MOST_EXACT
    if limits_points:
        last_step(members["gaussian_process"]).set_params(max_exact=POINTS)
    if in_time.reasons or named_members or limits_points or case.views:
        kept = {name: members[name] for name in in_time.seconds}
        blend.set_params(estimators=kept | named_members)
    return _PlannedValues(
        blend,
        left_out=unsuited | in_time.reasons,
        seconds=sum(in_time.seconds.values()),
        notes=in_time.notes,
    )


@dataclass(frozen=True, eq=False)
class _MembersInTime:
    """Which members of a blend end in time."""

    seconds: dict[str, float]  # of each that stays, on one core
    reasons: dict[str, str]  # why the others are left out
    notes: list[str]


def _members_in_time(
    names: Iterable[str],
    case: Case,
    n_outside: int,
    fits: int,
    budget: float,
    *,
    n_points: int | None,
    n_others: int,
) -> _MembersInTime:
    """Return which members fit and answer in time, beside others that are there anyhow.

    The Gaussian process answers from `n_points`, if a number is given, and from all labels else.
    """
    answering = case
    if n_points is not None:
        answering = replace(case, n_labels=n_points)
    answer_seconds = {name: n_outside * MEMBERS[name].answer_seconds(answering) for name in names}
    slow_answers = _slow_answers(answer_seconds, n_outside, budget)
    fitted = [name for name in answer_seconds if name not in slow_answers]
    costs = {
        name: seconds + answer_seconds[name]
        for name, seconds in planned_costs(fitted, case, fits=fits).items()
    }
    too_slow = leave_out_slow(costs, budget, others=n_others)
    kept = {name: seconds for name, seconds in costs.items() if name not in too_slow}
    notes = []
    if slow_answers:
        notes.append(_about_slow(slow_answers, n_outside, budget))
    if too_slow:
        slow_costs = {name: costs[name] for name in too_slow}
        needed = sum(kept.values()) + sum(slow_costs.values())
        notes.append(_about_budget(slow_costs, needed, budget))
    reasons = dict.fromkeys(slow_answers, "it answers too slowly for so many rows") | too_slow
    return _MembersInTime(kept, reasons, notes)


def _uses_points(n_labels: int, n_outside: int, budget: float) -> bool:
    """Return whether the Gaussian process answers other rows from some points, not all labels."""
    if n_labels <= POINTS:
        return False
    seconds = MEMBERS["gaussian_process"].answer_seconds(Case("regression", 0, n_labels))
    is_quick = n_outside * seconds <= ANSWER_SHARE * budget
    return n_labels > MOST_EXACT or not is_quick


def _slow_answers(
    answer_seconds: dict[str, float], n_outside: int, budget: float
) -> dict[str, float]:
    """Return the members that are too slow to answer very many rows, with their seconds."""
    # Counts alone decide, and not the number of processes.
    most = max(ANSWER_SHARE * budget, QUICK * n_outside)
    slow = {name: seconds for name, seconds in answer_seconds.items() if seconds > most}
    if len(slow) == len(answer_seconds):
        return {}
    return slow


def _named_members(case: Case, options: Options) -> OptionValues:
    """Return the members of a blend that the user names, or gives."""
    members: OptionValues = {
        METHODS[part].member: METHODS[part].suited(case)
        for part in options.parts
        if isinstance(part, str) and part not in BLENDS
    }
    for part in options.own:
        members[unused_name(called(part), members)] = _one_method(part, case, options)[0]
    return members


def _about_budget(slow: dict[str, float], needed: float, budget: float) -> str:
    """Return a note on the methods that would take too long, and how to have them all the same."""
    names = ", ".join(f"{name} ({seconds:,.2g} s)" for name, seconds in slow.items())
    enough = option("budget_seconds", int(np.ceil(needed)))
    return (
        f"Left out of the blend, since all methods together would take longer than {budget:,.5g} "
        f"s on one core: {names}. With {enough} all of them take part."
    )


def _about_slow(slow: dict[str, float], n_outside: int, budget: float) -> str:
    """Return a note on the methods that answer too slowly, and how to have them all the same."""
    names = ", ".join(f"{name} ({seconds:,.0f} s)" for name, seconds in slow.items())
    needed = option("budget_seconds", int(np.ceil(max(slow.values()) / ANSWER_SHARE)))
    return (
        f"Left out, since one core would take longer than {ANSWER_SHARE * budget:,.0f} s to answer "
        f"{n_outside:,} rows with it: {names}. With {needed} all methods take part."
    )
