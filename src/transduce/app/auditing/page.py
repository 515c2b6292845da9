"""An audit as one self-contained HTML page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import transduce
from transduce.app.auditing.result import AuditResult
from transduce.app.report.render import page_environment

if TYPE_CHECKING:
    from jinja2 import Template

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def render_audit(result: AuditResult) -> str:
    """Return an audit as a page that loads nothing; everything from the table is escaped."""
    style = (files("transduce.app.report") / "templates" / "report.css").read_text("utf-8")
    content: dict[str, Any] = result.as_json()
    content |= {"warnings": result.warnings, "notes": result.notes}
    for part in ("shares", "by_prediction", "confusion", "off_by", "mean", "agreement"):
        content.setdefault(part, None)  # what classes have and numbers lack, or the other way
    return _template().render(
        a=content,
        style=Markup(style),
        policy=POLICY,
        version=transduce.__version__,
    )


@cache
def _template() -> Template:
    return page_environment("transduce.app.auditing").get_template("audit.html.j2")
