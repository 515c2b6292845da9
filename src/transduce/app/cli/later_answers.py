"""`transduce answer`: rows that come later, predicted from a file that `fill --save` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from transduce.app.cli.inputs import Show, check_paths, default_out, read_table
from transduce.app.cli.terminal import guarantee_lines, more_on_guarantee, tell
from transduce.app.filling import load
from transduce.app.filling.later_rows import FittedFill
from transduce.app.report import render_json
from transduce.app.report.summary import summarize_later
from transduce.app.tables.files import write
from transduce.app.tables.formats import Table
from transduce.app.tables.row_names import RowNames, naming_rows
from transduce.conformal import Exchangeability
from transduce.core.computing import stage
from transduce.core.files import together, write_text
from transduce.core.guarantee import Guarantee
from transduce.core.guarantee_sentences import level_sentences
from transduce.core.types import OptionValues
from transduce.core.words import counted


def answer_file(model: Path, table: str, given: OptionValues) -> Show:
    """Answer the rows of a table from what was saved; write them with their new columns."""
    force = given["force"]
    out = given["out"]
    if out is None:
        out = default_out(table, "answered")
    check_paths(table, given["json"], out, force=force)
    source = read_table(table, given)
    fitted = load(model).below(source.folder)
    with naming_rows(RowNames.of_lines(source.lines)):
        answered = _answer_later(fitted, source)
    with stage("writing"), together():
        if given["json"] is not None:
            text = render_json(answered.as_json(fitted))
            write_text(given["json"], text, force=force, like=[*source.files, model])
        write(out, source, fitted.columns_for_file(answered.new), force=force, like=[model])
    lines = answered.lines(fitted, quiet=given["quiet"])
    written = [str(path) for path in (out, given["json"]) if path not in ("-", None)]
    if written:
        lines.append(f"Written: {', '.join(written)}")

    def show() -> None:
        for line in lines:
            tell(line, err=out == "-")

    return show


@dataclass(frozen=True, eq=False)
class LaterAnswers:
    """The new columns of rows that came later, and what is known of them."""

    new: pd.DataFrame
    counts: dict[str, int]
    guarantees: dict[float, Guarantee]  # at each level, the main one first
    compared: Exchangeability  # how these rows compare with the labelled ones
    notes: list[str]

    def as_json(self, fitted: FittedFill) -> OptionValues:
        """Return what there is to say, for JSON."""
        account = {
            "target": fitted.reading.name,
            "task": fitted.reading.task,
            "counts": self.counts,
            "notes": self.notes,
            "values": _why_different(fitted),
        }
        return summarize_later(account, self.guarantees, self.compared)

    def lines(self, fitted: FittedFill, *, quiet: bool) -> list[str]:
        """Return what there is to say, line by line."""
        guarantee, *_ = self.guarantees.values()
        verdict = str(self.compared.verdict)
        lines = [f"{counted(self.counts['answered'], 'row')} predicted."]
        lines += [*guarantee_lines(guarantee), verdict, *level_sentences(self.guarantees)]
        if quiet:
            return lines
        more = [sentence for sentence in more_on_guarantee(guarantee) if sentence != verdict]
        lines += ["Notes:", *(f"- {note}" for note in [_why_different(fitted), *self.notes])]
        return [*lines, "More on the guarantee:", *(f"- {sentence}" for sentence in more)]


def _answer_later(fitted: FittedFill, source: Table) -> LaterAnswers:
    """Answer later rows, and compare them with the labelled ones."""
    frame = source.frame
    with stage("answers"):
        new = fitted.new_columns(frame)
    taken = [name for name in new.columns if name in frame.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: drop it first.")
    status = new[f"{fitted.reading.name}_status"].to_numpy()
    n_unreached = int((status == "unreached").sum())
    n_labelled = int((status == "given").sum())
    n_answered = len(new) - n_unreached - n_labelled
    with stage("exchangeability"):
        compared = fitted.compare_later(frame[status != "given"])
    guarantees = {}
    for level in (fitted.options.level, *fitted.options.further_levels):
        guarantees[level] = fitted.guarantee_of_later(
            n_answered, n_unreached, level=level, compared=compared
        )
    counts = {
        "rows": len(new),
        "labelled": n_labelled,
        "answered": n_answered,
        "unreached": n_unreached,
    }
    notes = [*source.notes, *fitted.notes_on_later(frame)]
    return LaterAnswers(new, counts, guarantees, compared, notes)


def _why_different(fitted: FittedFill) -> str:
    """Return why values are not those of `fill` where a row was in the table that it filled."""
    held_out = counted(len(fitted.outside.table.labels), "label")
    return (
        f"The fit behind these values holds out {held_out} to calibrate later rows, "
        "and does not see the rows themselves: at rows of the filled table its values differ "
        "a little from those of `transduce fill`."
    )
