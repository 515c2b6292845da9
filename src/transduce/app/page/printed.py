"""A list of the drawn rows, to print and to fill in by hand."""

from __future__ import annotations

from markupsafe import Markup, escape

from transduce.app.labelling.session import Session
from transduce.core.words import counted

FRAME = Markup(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/page/printed.css">
</head>
<body>
<h1>{title}</h1>
<p>{words}</p>
<table>
<thead><tr>{names}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""
)


def drawn_rows(session: Session) -> list[int]:
    """Return the rows that chance chose, or another person judged, those that wait first."""
    state = session.state
    rows = state.drawn.copy()
    if state.sample is not None:
        rows = [*state.sample.in_order(state.header.seed).tolist(), *rows]
    rows = list(dict.fromkeys(rows))
    return sorted(rows, key=lambda row: state.label_of(row) is not None)


def render_drawn_rows(session: Session) -> str:
    """Return the drawn rows as a page, with a box for each label; predictions are not on it."""
    table = session.table
    rows = drawn_rows(session)
    waiting = sum(session.state.label_of(row) is None for row in rows)
    words = f"{counted(len(rows), 'row')} drawn, {waiting:,} of them to be judged."
    names = Markup("").join(
        Markup("<th>{}</th>").format(name) for name in ("row", *table.show, table.target)
    )
    lines = Markup("\n").join(_line(session, row) for row in rows)
    title = f"{table.name}: “{table.target}”"
    return str(FRAME.format(title=title, words=words, names=names, rows=lines))


def _line(session: Session, row: int) -> Markup:
    """Return one row of the list."""
    label = session.state.label_of(row)
    texts = [str(cell.text) for cell in session.table.cells(row)]
    texts = [str(row + 1), *texts, "" if label is None else str(label)]
    cells = Markup("").join(Markup("<td>{}</td>").format(escape(text)) for text in texts)
    return Markup('<tr class="drawn">{}</tr>').format(cells)
