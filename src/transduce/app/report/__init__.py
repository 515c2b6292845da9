"""The report of a filled table: numbers first (`summarize`), then a page or a JSON file made of them."""

from transduce.app.report.render import render_html, render_json
from transduce.app.report.summary import summarize

__all__ = ["render_html", "render_json", "summarize"]
