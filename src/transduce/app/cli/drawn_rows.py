"""`transduce draw`: rows drawn at random, to label them or to check what was predicted there."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transduce.app.auditing.drawing import (
    RowsToCheck,
    StrataRequest,
    classes_to_choose,
    draw_by_strata,
    list_to_check,
    write_list,
)
from transduce.app.cli.inputs import Show, check_paths, default_out, read_options, read_table
from transduce.app.cli.terminal import say, tell
from transduce.app.filling.forecast import forecast_draw
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.column_names import check_columns
from transduce.app.tables.columns import Target
from transduce.app.tables.databases import database_address
from transduce.app.tables.files import check_fits, out_kind, write
from transduce.app.tables.formats import Table
from transduce.app.tables.nested import fields_below
from transduce.core.computing import stage
from transduce.core.files import together
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, ColumnName, Mask, OptionValues
from transduce.core.words import counted, in_shell, percent
from transduce.population.draws import draw_rows

N_ROWS_NAMED = 20  # of a draw, in the message


@dataclass(frozen=True, eq=False)
class TableToDrawFrom:
    """A table in a file, with a column to label, and where the drawn rows are written."""

    stored: Table  # as it was read
    source: Table  # with the column
    added: pd.DataFrame  # the column, if the table had none; it is empty
    target: str
    hidden: list[ColumnName]  # columns of predictions that the list is not to show
    out: str
    given: OptionValues  # options of the command

    @classmethod
    def read(cls, table: str, target: str, given: OptionValues) -> TableToDrawFrom:
        """Read the table; an error says what to do if it was drawn from, or cannot be written."""
        out = given["out"] or default_out(table, "draw")
        check_paths(table, given["list"], out, force=given["force"])
        stored = read_table(table, given)
        check_fits(out, stored)
        target = stored.column_called(target)
        _check_not_drawn(stored, target)
        source, added = _with_target(stored, target)
        hidden = fields_below(source.frame.columns, given["predictions"])
        check_columns(source.frame, hidden)
        return cls(stored, source, added, target, hidden, out, given)

    def is_open(self, options: Options) -> Mask:
        """Return which rows (n,) have no label."""
        cleaned = options.clean(self.source.frame[[self.target]])
        return np.asarray(cleaned[self.target].isna())

    def write(self, drawn: RowsToCheck, request: StrataRequest | None = None) -> None:
        """Write the table with what was drawn, and the list of the drawn rows if it is wanted."""
        new = pd.concat([self.added, drawn.columns], axis=1)
        with stage("writing"), together():
            if self.given["list"] is not None:
                _write_list(self, drawn, request)
            write(self.out, self.stored, new, force=self.given["force"])

    def tell(self, text: str) -> None:
        """Print a line, beside the table if that goes to standard output."""
        tell(text, err=self.out == "-")

    def tell_written(self, remark: str = "") -> None:
        """Print what was added, a remark, and where the drawn rows are."""
        for name in self.added.columns:
            self.tell(f"The table has no column {name!r}: an empty one was added.")
        if remark:
            self.tell(f"- {remark}")
        written = [str(path) for path in (self.out, self.given["list"]) if path is not None]
        self.tell(f"Written: {', '.join(written)}")

    def audit_command(self, predictions: Sequence[ColumnName]) -> str:
        """Return the command that audits predictions once the drawn rows are labelled."""
        return self._command("audit", in_shell("predictions", list(predictions)))

    def fill_command(self, *, names_draw: bool) -> str:
        """Return the command that fills the column then, with the draw named where it counts."""
        draw = in_shell("random_labels", f"{self.target}_random") if names_draw else ""
        return self._command("fill", draw)

    def _command(self, verb: str, further: str) -> str:
        parts = [f"transduce {verb} {shlex.quote(self.out)}", in_shell("target", self.target)]
        if further:
            parts.append(further)
        if self.given["list"] is not None:
            parts.append(in_shell("checks", self.given["list"]))
        for name in self._options_to_repeat(verb):
            value = self.given[name]
            if value is not None and value != []:
                parts.append(in_shell(name, value))
        return " ".join(parts)

    def _options_to_repeat(self, verb: str) -> list[str]:
        """Return the options by which the table is read again as it was read for the draw."""
        names = ["missing", "decimal"]
        if verb == "fill":
            names.append("keep")  # an audit takes no cell for a mark by itself
        is_copy = database_address(self.out) is None
        if is_copy and out_kind(self.out, self.stored.kind)[0] == self.stored.kind:
            names.append("sheet")
            if self.given["header"] != 0:  # where there were no names, the copy has some
                names += ["header", "skip", "rows"]
        return names


def draw_rows_of(
    table: str,
    target: str,
    number: int,
    seed: int | None,
    given: OptionValues,
) -> Show:
    """Mark rows drawn at random from those without a label.

    The table is written with the marks and the seed.
    """
    if seed is None:
        seed = _fresh_seed()
    options = read_options(given)
    to_draw = TableToDrawFrom.read(table, target, given)
    target = to_draw.target
    labels = _labels_to_draw(to_draw.source, target, options)
    missing = to_draw.is_open(options)
    if labels is not None:  # then cells that `fill` reads as empty may be drawn too
        missing = labels.missing
    rows = draw_rows(missing, number, seed)
    name = f"{target}_random"
    marks = {
        name: np.isin(np.arange(len(missing)), rows),
        f"{name}_seed": seed,
        f"{name}_probability": np.where(missing, number / np.sum(missing), 0.0),
    }
    new = pd.DataFrame(marks, index=to_draw.source.frame.index)
    to_draw.write(RowsToCheck(rows, new, ""))
    lacking = _what_draw_lacks(labels, rows, options)
    # If no row has a label, chance chooses all of them.
    then = to_draw.fill_command(names_draw=not missing.all())
    if given["predictions"]:
        then = to_draw.audit_command(given["predictions"])
    if given["predictions"] or given["quiet"]:
        lacking = ""

    def show() -> None:
        to_draw.tell(_about_draw(rows, seed, target))
        to_draw.tell_written(lacking)
        say(f"Then: {then}", err=to_draw.out == "-")

    return show


def draw_strata_of(
    table: str,
    target: str,
    strata: OptionValues,
    given: OptionValues,
) -> Show:
    """Mark rows drawn at random from each predicted class, or from bands of uncertainty."""
    if strata["seed"] is None:
        strata["seed"] = _fresh_seed()
    request = StrataRequest(**strata)
    to_draw = TableToDrawFrom.read(table, target, given)
    missing = to_draw.is_open(read_options(given))
    drawn = draw_by_strata(to_draw.source.frame, to_draw.target, missing, request)
    to_draw.write(drawn, request)

    def show() -> None:
        to_draw.tell(f"{drawn.statement} The seed is {request.seed}.")
        to_draw.tell_written()
        named = request.by or tuple(given["predictions"]) or ("COLUMN",)
        say(f"Label them, then: {to_draw.audit_command(named)}", err=to_draw.out == "-")

    return show


def _fresh_seed() -> int:
    """Return a seed that nobody knew beforehand.

    With one that can be known, so can the rows, when labels are chosen.
    """
    return secrets.randbelow(2**31)


def _check_not_drawn(source: Table, target: str) -> None:
    """Raise a ValueError if the table has the columns of an earlier draw."""
    begins = f"{target}_random"
    taken = [name for name in source.frame.columns if str(name).startswith(begins)]
    if taken:
        raise ValueError(
            f"The table has a column {taken[0]!r} already, from an earlier draw: draw from the "
            f"table as it was before, or drop the columns that begin with {begins!r} first. Rows "
            "that have a label then are known, and the new draw speaks for the others."
        )


def _with_target(source: Table, target: str) -> tuple[Table, pd.DataFrame]:
    """Return a table in which a target can be read, and the empty column that was added for it."""
    none = pd.DataFrame(index=source.frame.index)
    source.check_column(target)
    if target in source.frame.columns:
        check_columns(source.frame, [target])
        return source, none
    alike = [name for name in source.frame.columns if str(name).casefold() == target.casefold()]
    if alike:
        check_columns(source.frame, [target])  # which names the one that is meant
    added = none.assign(**{target: None})
    return replace(source, frame=pd.concat([source.frame, added], axis=1)), added


def _about_draw(rows: AnyArray, seed: int, target: str) -> str:
    """Return which rows were drawn, and what to do with them."""
    places = ", ".join(f"{row + 1:,}" for row in rows[:N_ROWS_NAMED].tolist())
    if len(rows) > N_ROWS_NAMED:
        places += " ..."
    drawn = f"{counted(len(rows), 'row')} drawn with the seed {seed}"
    if len(rows) == 1:
        return f"{drawn}; label it in {target!r}: row {places}."
    return f"{drawn}; label all of them in {target!r}: rows {places}."


def _write_list(
    to_draw: TableToDrawFrom, drawn: RowsToCheck, request: StrataRequest | None
) -> None:
    """Write the drawn rows alone, with the classes that a checker may choose from."""
    frame = to_draw.source.frame
    given = to_draw.given
    hidden = to_draw.hidden.copy()
    # An object that is hidden as a whole has other fields than classes.
    by = tuple(hidden) if hidden == given["predictions"] else ()
    if request is not None:
        hidden += request.columns
        by = request.by or by
    rows = list_to_check(frame, to_draw.target, drawn, hidden)
    classes = classes_to_choose(frame, to_draw.target, by)
    write_list(given["list"], rows, classes, force=given["force"], like=to_draw.source.files)


def _labels_to_draw(source: Table, target: str, options: Options) -> Target | None:
    """Return the labels that a table has before rows are drawn.

    None if there is none, or one to be mended first.
    """
    try:
        return FrameSource.read(source, target, options).labels
    except ValueError:
        return None


def _what_draw_lacks(labels: Target | None, rows: AnyArray, options: Options) -> str:
    """Return what rows drawn at random lack to guarantee the level once they are labelled.

    "" if nothing.
    """
    level = options.level
    needed = f"it takes {fewest_calibration(level)}. Draw that many before you label any."
    few = f"{counted(len(rows), 'label')} of rows drawn at random cannot guarantee {percent(level)}"
    if labels is None:
        if len(rows) < fewest_calibration(level):
            return f"{few}: {needed}"
        return ""
    if len(rows) == int(labels.missing.sum()):
        return "Every row without a label was drawn: none is left to fill once they are labelled."
    forecast = forecast_draw(labels, rows, options)
    if forecast.guarantee.kind != "none":
        return ""
    if len(rows) < fewest_calibration(level):
        return f"{few}: {needed}"
    return " ".join(forecast.guarantee.reasons)
