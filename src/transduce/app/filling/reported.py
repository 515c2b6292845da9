"""What a report, the terminal and a file say of a result: notes, the call again, and all else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transduce.app.estimating import PredictedColumn
from transduce.app.estimating.groups import read_groups
from transduce.app.report import FilledColumn
from transduce.app.report.filled_column import RowCounts
from transduce.app.tables.files import is_table_name
from transduce.app.tables.new_columns import notes_on_numbers
from transduce.app.tables.notes import About, Note, notes_about
from transduce.core.files import write_text
from transduce.core.types import Array, ColumnName, JsonObject
from transduce.core.words import OptionError, percent

if TYPE_CHECKING:
    from transduce.app.filling.result import FillResult


def report_column(result: FillResult) -> FilledColumn:
    """Return all that a report reads of a result, computed now."""
    answer = result.answer
    advice = result.advice
    counts = result.seen.count_rows(answer)
    predicted, why_unasked = _ask_whole(result, counts)
    places = result.diagnosis.map
    if places is not None:
        places = result.seen.place_map(places)
    return FilledColumn(
        frame=result.seen.frame,
        labels=result.labels,
        answer=answer,
        counts=counts,
        row_names=result.seen.name_rows(),
        confidence=result.options.level,
        certainty=float(result.options.certainty),
        options=options_as_json(result),
        again=call_again(result),
        columns=result.fit.features.columns,
        members=result.diagnosis.members,
        out_of_fold=result.seen.place_labels(result.diagnosis.out_of_fold),
        probability=_probability(result),
        miscoverage=result.seen.miscoverage(result.fit, result.options.level),
        exchangeability=result.fit.compared,
        sensitivity=result.sensitivity,
        relevance=result.diagnosis.relevance,
        map=places,
        advice="" if advice is None else str(advice),
        has_rows_to_label=advice is not None and bool(advice.rows),
        class_shares=result.fit.shares,
        class_coverage=result.diagnosis.class_coverage,
        measured_at=result.diagnosis.measured_at,
        unmeasured=result.diagnosis.unmeasured,
        has_draws=result.diagnosis.drawn,
        predicted=predicted,
        why_unasked=why_unasked,
        guarantees=result.guarantees,
        suspects=result.known_suspects,
        lines=result.seen.lines,
        notes=collect_notes(result),  # last: what could not be computed is among them
    )


def columns_to_group_by(
    result: FillResult, by: ColumnName | list[ColumnName] | None
) -> list[ColumnName]:
    """Return the columns that are named to group by; raise an error if one has no groups."""
    if by is None:
        return []
    named = by if isinstance(by, list) else [by]
    for name in named:
        read_groups(result.seen.frame, name, case_sensitive=result.options.case_sensitive)
        if name == result.labels.name:
            raise OptionError(
                f"{name!r} is what is filled, and is not known at every row: group by another "
                "column."
            )
    return named


def _ask_whole(result: FillResult, counts: RowCounts) -> tuple[PredictedColumn | None, str]:
    """Return what questions about the whole column rest on, or why none can be asked here."""
    if not len(result.answer):
        return None, ""
    if counts.sampled is not None:
        return None, (
            "The fit saw a sample of the table: ask with `transduce estimate`, which reads all "
            "rows."
        )
    try:
        return result.predicted_column, ""
    except ValueError as error:
        return None, str(error)


def _probability(result: FillResult) -> Array | None:
    """Return the probability that each answered class is right, as the new column has it."""
    name = f"{result.labels.name}_probability"
    if name not in result.new.columns:
        return None
    return result.new[name].to_numpy(dtype=float)[result.answer.rows]


# ---- the notes


def collect_notes(result: FillResult) -> list[Note]:
    """Return what the user should know: the task, columns left out, time budget, too few labels."""
    of_shares = []
    if result.fit.shares is not None:
        of_shares = [
            f"{result.fit.shares} The quality of the predictions is weighted by these shares."
        ]
    on_answers = _about_answers(result)
    return [
        *notes_about(About.DESIGN, of_shares),
        *result.fit.notes,
        *notes_about(About.ROWS, result.seen.notes(result.fit)),
        *notes_about(About.ANSWERS, on_answers),
        *notes_about(About.FAILURE, result.diagnosis.notes),
    ]


def _about_answers(result: FillResult) -> list[str]:
    """Return what the user should know of the filled values."""
    options = result.options
    texts = []
    if options.reject is not None:
        texts.append(_about_rejected(result, float(options.reject)))
    if options.probabilities and result.raw_answer.probabilities is None:
        texts.append(
            "There is no column for the probability of each class: this method states no "
            "probabilities."
        )
    texts += result.seen.notes_on_shown()
    if result.diagnosis.unmeasured:
        texts.append(result.diagnosis.unmeasured)
    if result.labels.task == "regression" and result.answer.regions is not None:
        texts += notes_on_numbers(
            result.answer,
            result.labels,
            options.limits,
            labels_elsewhere=result.seen.labels_elsewhere(),
            among=result.seen.shown_among_others(),
        )
    return [*texts, *result.diagnosis.by_class, *result.diagnosis.rare_classes]


def _about_rejected(result: FillResult, share: float) -> str:
    """Return how many predictions are marked as rejected, and why they are fewer, if they are."""
    n_answers = len(result.answer)
    count = int(np.sum(result.answer.status == "rejected"))
    if count == 0:
        return "No prediction is marked as rejected: this method is equally certain of all of them."
    message = (
        f"The {count} least certain of {n_answers} predictions are marked as rejected; their "
        "values stay, and the guarantee is about all predictions together."
    )
    wanted = int(np.floor(share * n_answers + 1e-9))
    if count < wanted:
        message += (
            f" These are fewer than {percent(share)}, since equally certain predictions are marked "
            "together or not at all."
        )
    return message


# ---------------------------------------------------------------------------------------- once more


def options_as_json(result: FillResult) -> JsonObject:
    """Return the options as plain values, with the column and where the table came from."""
    source = result.seen.source
    return {
        "source": source.name,
        "target": result.labels.name,
        **result.options.as_json(),
        "task": result.labels.task,
        **source.flags,
    }


def call_again(result: FillResult) -> str:
    """Return the command that does it again of a file, and the call of `fill` elsewhere."""
    source = result.seen.source
    options = result.options
    target = result.labels.name
    task: str = result.labels.task
    if result.labels.decisive is not None:  # a task that is named would make it exact
        task = options.task
    name = source.name.replace("\\", "/").rpartition("/")[2]
    if source.name == "standard input":
        name = "-"
    if name != "-" and not is_table_name(name):
        return options.as_call(target, task, **source.flags)
    if isinstance(options.method, str) or not options.own:
        return options.as_command(name, target, task, **source.flags)
    return options.as_call(target, task, name, **source.flags)


def write_report(
    result: FillResult,
    text: str,
    path: str | Path | None,
    force: bool,
) -> str:
    """Return a text; write it to a file, if one is named, as private as those of the table."""
    if path is not None:
        write_text(path, text, force=force, like=result.seen.source.origin)
    return text
