"""The command `transduce estimate`: questions about a whole column, answered in a table."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd
import typer

from transduce.app.cli.inputs import Show, is_in_parts, read_options, read_table, with_list
from transduce.app.cli.terminal import say, show_table, tell
from transduce.app.estimating import Answered, PredictedColumn, answer_questions, read_question
from transduce.app.estimating.forest_plot import save_forest
from transduce.app.estimating.questions import Question
from transduce.app.estimating.words import plan_sentence, sentences_about, tables_to_read
from transduce.app.filling import fill_folder
from transduce.app.filling.engine import fill_table
from transduce.app.filling.options import Options
from transduce.app.filling.result import FillResult
from transduce.app.filling.saved import load
from transduce.app.report.jsonable import to_json
from transduce.app.report.render import render_json
from transduce.app.report.summary import today, versions
from transduce.app.tables.notes import About
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.core.computing import stage
from transduce.core.files import check_free, together, write_text
from transduce.core.types import OptionValues

WITH_DETAIL = ("quantile", "difference", "slope", "regression")  # questions that are of something


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """A column with its predictions, notes on the table, and the files that it is made of."""

    column: PredictedColumn
    notes: list[str]
    origin: list[Path]


def estimate_file(
    table: str,
    target: str | None,
    asked: OptionValues,
    given: OptionValues,
) -> Show:
    """Fill a column of a table in a file, and answer questions about the whole of it.

    With a saved model its column is asked about, and its fit predicts.
    """
    options = read_options(given)
    _check_outputs(table, asked, given)
    _check_model(asked["model"], target, options, given["checks"])
    questions = [
        _read_question(text, by, asked) for text in asked["what"] for by in asked["by"] or [None]
    ]
    with tempfile.TemporaryDirectory() as folder:
        if asked["model"] is not None:
            read = _predict_by_model(asked["model"], table, given)
        else:
            assert target is not None
            read = _predict_by_fill(table, target, options, given, Path(folder))
        column = read.column
        if not questions:
            usual = _usual_question(column, asked)
            questions = [_read_question(usual, by, asked) for by in asked["by"] or [None]]
        answered = answer_questions(column, questions, level=asked["level"], joint=asked["joint"])
    with together():
        written = _write_outputs(read, answered, asked, given)

    def show() -> None:
        to_stdout = asked["out"] == "-"
        if to_stdout:
            say(_as_csv(column, answered).rstrip())
        for title, lines in tables_to_read(column, answered, asked["level"]).items():
            show_table(lines, title, err=to_stdout)
        if not given["quiet"]:
            _show_sentences(column, answered, asked, read.notes, err=to_stdout)
        if written:
            say(f"Written: {', '.join(written)}", err=to_stdout)

    return show


def _write_outputs(
    read: ReadColumn,
    answered: Sequence[Answered],
    asked: OptionValues,
    given: OptionValues,
) -> list[str]:
    """Write the plot, the numbers and the table where that is asked for; return where."""
    column = read.column
    how: OptionValues = {"force": given["force"], "like": read.origin}
    written = []
    if given["plot"] is not None:
        save_forest(given["plot"], column, answered, **how)
        written.append(str(given["plot"]))
    if given["json"] is not None:
        write_text(given["json"], _as_json(column, answered, asked), **how)
        written.append(str(given["json"]))
    if asked["out"] not in (None, "-"):
        write_text(asked["out"], _as_csv(column, answered), **how)
        written.append(str(asked["out"]))
    return written


def _show_sentences(
    column: PredictedColumn,
    answered: Sequence[Answered],
    asked: OptionValues,
    notes: list[str],
    *,
    err: bool,
) -> None:
    """Print what the intervals mean, and what to know."""
    how = {"level": asked["level"], "joint": asked["joint"]}
    for sentence in sentences_about(column, answered, **how):
        tell(sentence, err=err)
    plan = plan_sentence(column, answered)
    if plan:
        tell(plan, err=err)
    for note in notes:
        tell(f"- {note}", err=err)


def _check_model(
    model: Path | None, target: str | None, options: Options, checks: Path | None
) -> None:
    """Refuse a saved model with options of a fit, and neither a model nor a target."""
    if model is None:
        if target is None:
            raise typer.BadParameter("Name the column with --target, or a saved fit with --model.")
        return
    if target is not None:
        raise typer.BadParameter("--model knows its column: leave --target out.")
    if checks is not None:
        raise typer.BadParameter("--model was fitted before: --checks goes with --target.")
    changed = [name for name in options.changed() if name != "labels"]
    if changed or options.labels is not None:
        name = changed[0] if changed else "labels"
        raise typer.BadParameter(
            f"--model has its own {name.replace('_', ' ')}: it was saved with all options of its "
            "fit."
        )


def _predict_by_model(model: Path, table: str, given: OptionValues) -> ReadColumn:
    """Return the column of later rows, predicted by a fit that was saved."""
    source = read_table(table, given)
    fitted = load(model).below(source.folder)
    with stage("estimates"):
        column = fitted.predict_column(source.frame)
    with naming_rows(RowNames.of_lines(source.lines)):
        notes = [*source.notes, *fitted.notes_on_later(source.frame)]
    return ReadColumn(column, notes, [*source.files, model])


def _predict_by_fill(
    table: str,
    target: str,
    options: Options,
    given: OptionValues,
    folder: Path,
) -> ReadColumn:
    """Return the column of a table that is filled for this."""
    result = _fill(table, target, options, given, folder)
    reading = (About.FILE, About.LABELS, About.DESIGN, About.COLUMNS)
    notes = [note.text for note in result.fit.notes if note.about in reading]
    return ReadColumn(result.predicted_column, notes, list(result.source.origin))


def _fill(
    table: str,
    target: str,
    options: Options,
    given: OptionValues,
    folder: Path,
) -> FillResult:
    """Return the filled column: of a table in memory, or in parts that are written to a folder."""
    if is_in_parts(table, given | {"out": None}):
        if given["checks"] is not None:
            raise typer.BadParameter("--checks: only for a table in memory, not for one in parts.")
        return fill_folder(table, target, folder / "filled", **options.as_dict())
    source = read_table(table, given)
    target = source.column_called(target)
    source.check_column(target)
    source = with_list(source, [target], given)
    return fill_table(source, target, options)


def _usual_question(column: PredictedColumn, asked: OptionValues) -> str:
    """Return what is asked if nothing is said: the mean, or the share of every class."""
    if asked["outcome"] is not None:
        return "slope"
    if column.is_numeric:
        return "mean"
    return "share"


def _read_question(text: str, by: str | None, asked: OptionValues) -> Question:
    """Return one question; what it is of comes from `--of` where the text does not say it."""
    word = text.strip().partition(" ")[0].lower()
    of = asked["of"]
    alone = text.strip().lower() == word
    if word == "share" and alone and of is not None:
        return read_question(f"share {of}", by=by)
    if word not in WITH_DETAIL:
        return read_question(text, by=by)
    if of is not None and word != "quantile":
        of = [part.strip() for part in of.split(",")]
    if word in ("slope", "regression"):
        return read_question(text, of=of, outcome=asked["outcome"])
    return read_question(text, of=of, by=by)


def _check_outputs(table: str, asked: OptionValues, given: OptionValues) -> None:
    """Refuse two outputs in one file, one over the table, or one over a file that exists."""
    named = [asked["out"], given["json"], given["plot"]]
    paths = [Path(path) for path in named if path is not None and str(path) != "-"]
    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) < len(resolved):
        raise typer.BadParameter("--out, --json and --plot name the same file: give each its own.")
    if table != "-" and Path(table).resolve() in resolved:
        raise typer.BadParameter(f"{table} is the table itself: write to other files.")
    for path in paths:
        check_free(path, force=given["force"])


def _frame_of(column: PredictedColumn, answered: Sequence[Answered]) -> pd.DataFrame:
    """Return all estimates as one frame with plain columns, for a file."""
    parts = []
    for answer in answered:
        part = answer.frame.reset_index(names="group")
        part.insert(0, "what", answer.question.in_words(column.name))
        part.insert(1, "by", answer.question.by)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _as_csv(column: PredictedColumn, answered: Sequence[Answered]) -> str:
    text = StringIO()
    _frame_of(column, answered).to_csv(text, index=False)
    return text.getvalue()


def _as_json(column: PredictedColumn, answered: Sequence[Answered], asked: OptionValues) -> str:
    """Return the estimates and sentences as JSON."""
    how = {"level": asked["level"], "joint": asked["joint"]}
    return render_json(
        {
            "format": 1,
            "target": to_json(column.name),
            **how,
            "assumption": column.assumption,
            "estimates": to_json(_frame_of(column, answered).to_dict("records")),
            "sentences": to_json(sentences_about(column, answered, **how)),
            "next": plan_sentence(column, answered),
            "versions": dict(versions()),
            "made": today(),
        }
    )
