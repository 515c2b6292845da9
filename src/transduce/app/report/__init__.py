"""The report of a filled table: its numbers (`summarize`), as a page or as JSON."""

from transduce.app.report.filled_column import FilledColumn
from transduce.app.report.render import render_html, render_json
from transduce.app.report.summary import summarize
from transduce.app.report.summary_types import Summary

__all__ = ["FilledColumn", "Summary", "render_html", "render_json", "summarize"]
