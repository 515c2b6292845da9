"""A summary as JSON, or as a self-contained page with plots as SVG."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from transduce.app.report.figures import draw_figures, name_with_unit
from transduce.app.report.jsonable import (
    escape_text,
    format_number,
    interval_text,
    json_name,
    rough_percent,
)
from transduce.app.report.rows import digits_of
from transduce.app.report.summary_types import Summary
from transduce.core.checks import check_type
from transduce.core.words import counted, percent

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS = 1000  # of the table in the page; JSON has all
ALLOWED = "style-src 'unsafe-inline'; script-src '{}'; img-src data:"
POLICY = f"default-src 'none'; {ALLOWED}; base-uri 'none'; form-action 'none'"
STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#7b8790",
    "axes.facecolor": "none",
    "axes.labelcolor": "#33414c",
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.0,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "legend.fontsize": 8.0,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "transduce",
    "text.color": "#33414c",
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": "#33414c",
    "xtick.labelsize": 8.0,
    "ytick.color": "#33414c",
    "ytick.labelsize": 8.0,
}
_UNSHOWN = re.compile(r"<(metadata|style|title)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")  # of the texts in a plot, those that hold < or > are escaped
_NAME = re.compile(r'(\bid="|href="#|url\(#)')  # where a tag names a part, or refers to one
_LONG = re.compile(r"(\.\d\d)\d+")


def check_summary(summary: Any, *parts: str) -> None:
    """Raise an error unless this is a summary, a dict, that has these parts."""
    check_type("summary", summary, dict, "a dict as summarize returns it")
    for part in parts:
        if part not in summary:
            raise ValueError(f"The summary has no {part!r}: pass what summarize returned, whole.")


def render_json(summary: Mapping[str, Any]) -> str:
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
    check_summary(summary)
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = (f"{json.dumps(key)}: {write(value)}" for key, value in summary.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def render_html(summary: Summary) -> str:
    """Return a summary as one HTML page that needs nothing else.

    Parameters
    ----------
    summary : dict
        Of `summarize`, or of `render_json` read back; the same one gives the same page.

    Returns
    -------
    str
        Everything from the table is escaped, and the page tells browsers to run no script except
        its own and to load nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import fill
    >>> from transduce.app.report import render_html, summarize
    >>> price = [2.0 * n if n % 3 else None for n in range(60)]
    >>> table = pd.DataFrame({"size": range(60), "price": price})
    >>> result = fill(table, "price", method="ridge", guarantee="column")
    >>> render_html(summarize(result.reported))[:15]
    '<!DOCTYPE html>'
    """
    check_summary(summary, "task", "rows", "answers")
    folder = files("transduce.app.report") / "templates"
    style = (folder / "report.css").read_text("utf-8")
    script = (folder / "report.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    figures = {
        name: (drawing.title, Markup(draw(name, drawing.paint, drawing.size)), drawing.text)
        for name, drawing in draw_figures(summary).items()
    }
    return _template().render(
        s=summary,
        figures=figures,
        rows=summary["rows"][:MOST_ROWS],
        digits=digits_of(summary["answers"]),
        style=Markup(style),
        script=Markup(script),
        policy=POLICY.format(f"sha256-{digest}"),
    )


def page_environment(package: str) -> Environment:
    """Return what reads the templates of a package: all that is put in is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _template() -> Any:
    environment = page_environment("transduce.app.report")
    environment.filters |= {
        "number": format_number,
        "percent": rough_percent,
        "level": percent,
        "name": json_name,
        "interval": interval_text,
        "count": counted,
        "named": name_with_unit,
        "short": escape_text,
        "unbroken": _keep_percent_signs,
    }
    return environment.get_template("report.html.j2")


def _keep_percent_signs(text: str) -> str:
    """Return a text whose percent signs stay with the numbers before them."""
    return text.replace(" %", "\u00a0%")


def draw(name: str, paint: Callable[[Any], None], size: tuple[float, float]) -> str:
    """Return what a function paints on new axes, as an SVG element for a page."""
    from matplotlib import style
    from matplotlib.figure import Figure

    # Settings that a user has changed do not matter, nor do fonts that lack a character: the
    # browser has its own.
    with warnings.catch_warnings(), style.context(["default", STYLE]):
        warnings.filterwarnings("ignore", message="(?s).*Glyph .* missing from")
        warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure.subplots())
        figure.savefig(source := StringIO(), format="svg", metadata={"Date": None, "Creator": None})
    return embed(source.getvalue(), name)


def embed(source: str, name: str) -> str:
    """Return an SVG file as an element for a page: named, without metadata and address."""
    box = re.search(r'viewBox="[^"]*"', source)
    assert box is not None
    body = _UNSHOWN.sub("", source[source.index(">", box.start()) + 1 :])
    drawing = _TAG.sub(lambda tag: _LONG.sub(r"\1", _NAME.sub(rf"\1{name}-", tag[0])), body)
    labelled_by = f'aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return f'<svg {box[0]} class="plot" role="img" {labelled_by}>{drawing}'
