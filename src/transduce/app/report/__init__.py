"""The report of a filled table: numbers first (`summarize`), then a page or a JSON file made of them."""

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.render import render_html, render_json
from transduce.app.report.summary import summarize
from transduce.app.report.summary_types import Summary

__all__ = ["FilledColumn", "Summary", "render_html", "render_json", "summarize"]
