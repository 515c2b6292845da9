"""`transduce audit`: how wrong predictions are that were made elsewhere."""

from __future__ import annotations

from typing import Any

import typer

from transduce.app.cli.inputs import Show, check_paths, read_table
from transduce.app.cli.terminal import NOT_SHOWN, show_audit, tell
from transduce.core.computing import stage
from transduce.core.files import together, write_text
from transduce.core.types import OptionValues


def audit_file(
    table: str,
    target: str,
    predictions: list[str],
    question: OptionValues,
    limit: float | None,
    given: OptionValues,
) -> Show:
    """Say how wrong predictions of a table in a file are."""
    from transduce.app.auditing import audit
    from transduce.app.auditing.page import render_audit

    force = given["force"]
    check_paths(table, given["report"], given["json"], force=force)
    source = read_table(table, given)
    target = source.column_called(target)
    predictions = [source.column_called(name) for name in predictions]
    named: Any = predictions[0] if len(predictions) == 1 else predictions
    result = audit(
        source,
        target,
        named,
        certainty=given["certainty"],
        missing=given["missing"] or [],
        case_sensitive=given["case_sensitive"],
        **question,
    )
    written = []
    with stage("writing"), together():
        if given["report"] is not None:
            write_text(given["report"], render_audit(result), force=force, like=source.files)
            written.append(str(given["report"]))
        if given["json"] is not None:
            result.write_json(given["json"], force=force, like=source.files)
            written.append(str(given["json"]))

    def show() -> None:
        show_audit(result, quiet=given["quiet"])
        if written:
            tell(f"Written: {', '.join(written)}")
        if limit is None:
            return
        tell(result.verdict(limit))
        if not result.shows_at_most(limit):
            raise typer.Exit(NOT_SHOWN)

    return show
