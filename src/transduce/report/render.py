"""A summary as a self-contained page, or as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from transduce.report import wording
from transduce.report.figures import figures

MOST_ROWS = 1000  # of the table in the page; JSON has all
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def render_json(summary: dict[str, Any]) -> str:
    """Return a summary as JSON, one line for each of its parts.

    Parameters
    ----------
    summary : dict
        Of `summarize`.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render_json({"target": "prix €", "counts": {"rows": 3}}))
    {
    "target": "prix €",
    "counts": {"rows": 3}
    }
    """
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
        for key, value in summary.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}"


def render_html(summary: dict[str, Any]) -> str:
    """Return a summary as one HTML page that needs nothing else: styles, plots and script are within.

    Parameters
    ----------
    summary : dict
        Of `summarize`, or of `render_json` read back.

    Returns
    -------
    str
        The same summary gives the same page. Everything from the table is escaped, and the page tells browsers to run
        no script except its own and to load nothing.
    """
    environment = Environment(
        loader=PackageLoader("transduce.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=wording.number,
        percent=wording.percent,
        level=wording.level,
        name=wording.name_of,
        interval=wording.interval_text,
        count=wording.count,
        short=wording.clean,
        unbroken=_unbroken,
    )
    script = _source(environment, "report.js")
    return environment.get_template("report.html.j2").render(
        s=summary,
        figures={
            name: (drawing.title, Markup(drawing.svg), drawing.text)
            for name, drawing in figures(summary).items()
        },
        rows=summary["rows"][:MOST_ROWS],
        style=Markup(_source(environment, "report.css")),
        script=Markup(script),
        policy=POLICY.format(_digest(script)),
    )


def _source(environment: Environment, name: str) -> str:
    """Return a file of the templates as it is."""
    if environment.loader is None:  # pragma: no cover - there always is one
        raise RuntimeError("No templates.")
    return environment.loader.get_source(environment, name)[0]


def _unbroken(text: str) -> str:
    """Return a text whose percent signs stay on the line of their number."""
    return text.replace(" %", "\u00a0%")


def _digest(script: str) -> str:
    """Return what a content security policy knows a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
