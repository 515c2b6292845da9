"""A summary as JSON, or as a self-contained page whose plots are SVG: no names that clash, no date, no address."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from transduce.core.words import counted, percent
from transduce.report import plain
from transduce.report.figures import digits_of, figures, named

MOST_ROWS = 1000  # of the table in the page; JSON has all
ALLOWED = "style-src 'unsafe-inline'; script-src '{}'; img-src data:"
POLICY = f"default-src 'none'; {ALLOWED}; base-uri 'none'; form-action 'none'"
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), "#33414c"),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor", "svg.fonttype"), "none"),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top", "text.parse_math", "text.usetex"), False),
    **dict.fromkeys(("axes.labelsize", "axes.titlesize", "font.size"), 9.0),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8.0),
    "axes.edgecolor": "#7b8790",
    "axes.linewidth": 0.7,
    "font.family": "sans-serif",
    "svg.hashsalt": "transduce",
}
# Families of settings that a user may have changed, and that must not change a report.
_TOUCHED = {"axes", "figure", "font", "legend", "lines", "patch", "scatter", "svg", "text", "xtick", "ytick"}
_LONG = re.compile(r"(\.\d\d)\d+")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


def render_json(summary: dict[str, Any]) -> str:
    """Return a summary as JSON, one line for each of its parts.

    Parameters
    ----------
    summary : dict
        Of `summarize`.

    Examples
    --------
    >>> print(render_json({"target": "prix €", "counts": {"rows": 3}}))
    {
    "target": "prix €",
    "counts": {"rows": 3}
    }
    """
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = (f"{json.dumps(key)}: {write(value)}" for key, value in summary.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def render_html(summary: dict[str, Any]) -> str:
    """Return a summary as one HTML page that needs nothing else: styles, plots and script are within.

    Parameters
    ----------
    summary : dict
        Of `summarize`, or of `render_json` read back; the same one gives the same page. Everything from the table is
        escaped, and the page tells browsers to run no script except its own and to load nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    usual: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, loader=PackageLoader("transduce.report"), **usual)
    environment.filters.update(
        number=plain.number,
        percent=plain.rough_percent,
        level=percent,
        name=plain.name_of,
        interval=plain.interval_text,
        count=counted,
        named=named,
        short=plain.clean,
        unbroken=lambda text: text.replace(" %", "\u00a0%"),  # the sign stays on the line of its number
    )
    folder = files("transduce.report") / "templates"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        s=summary,
        figures={
            name: (drawing.title, Markup(draw(name, drawing.paint, drawing.size)), drawing.text)
            for name, drawing in figures(summary).items()
        },
        rows=summary["rows"][:MOST_ROWS],
        digits=digits_of(summary),
        style=Markup(style),
        script=Markup(script),
        policy=POLICY.format(f"sha256-{digest}"),
    )


# --------------------------------------------------------------------------------------------------------- plots


def draw(name: str, paint: Callable[[Any], None], size: tuple[float, float]) -> str:
    """Return what a function paints on new axes, as an SVG element for a page."""
    from matplotlib import rc_context, rcParamsDefault
    from matplotlib.figure import Figure

    usual: dict[Any, Any] = {k: v for k, v in rcParamsDefault.items() if k.split(".")[0] in _TOUCHED}
    # Fonts that lack a character do not matter: the browser has its own.
    with warnings.catch_warnings(), rc_context({**usual, **STYLE}):
        warnings.filterwarnings("ignore", message="(?s).*Glyph .* missing from")
        warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure.subplots())
        buffer = BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return embed(buffer.getvalue(), name)


def embed(source: bytes, name: str) -> str:
    """Return an SVG file as an element for a page: named, sized by the page, with no metadata and no address."""
    root = ElementTree.fromstring(source)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style", "title"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        if element.tag != "text" and element.tag != "tspan":
            element.text = None
        _rename(element, name)
    for key in root.attrib.keys() - {"viewBox"}:
        del root.attrib[key]
    root.attrib |= {"class": "plot", "role": "img"}
    root.attrib |= {"aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-caption"}
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, name: str) -> None:
    """Put a name before every name within an element, and take digits off its numbers."""
    for key, value in list(element.attrib.items()):
        short = key.rpartition("}")[2]
        if short == "id":
            value = f"{name}-{value}"
        elif short == "href":
            value = f"#{name}-{value.removeprefix('#')}"
        elif short in ("d", "x", "y", "points", "width", "height"):
            value = _LONG.sub(r"\1", " ".join(value.split()))
        elif short in ("style", "clip-path", "fill"):
            value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
        if short != key:
            del element.attrib[key]
        element.attrib[short] = value
