"""The report of an audit on a phone, in a real browser."""

import html
import json
import re

import numpy as np
import pandas as pd

from tests.app.report.test_report_browser import FRAME, WIDTHS, pytestmark, visit  # noqa: F401
from transduce import audit
from transduce.app.auditing.page import render_audit

PROBE = """<script>window.addEventListener("load", function () {
  var tables = Array.from(document.querySelectorAll("table.counts"));
  var seen = tables.map(function (table) {
    return {hidden: table.parentElement.scrollWidth - table.parentElement.clientWidth,
            last: table.querySelector("tbody td:last-child").getBoundingClientRect().right};
  });
  window.parent.postMessage(JSON.stringify(seen), "*");
});</script>"""


def test_all_counts_of_wrong_rows_are_seen_on_a_phone(tmp_path):
    """How many are wrong stood behind a scrollbar."""
    rng = np.random.default_rng(0)
    predicted = rng.choice(["question", "fault", "invoice", "complaint"], 3000)
    gold = np.where(rng.permutation(3000) < 200, predicted, None)
    table = pd.DataFrame({"llm": predicted, "gold": gold})
    page = render_audit(audit(table, "gold", "llm"))
    page = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("<title>", f"{PROBE}<title>", 1)
    (tmp_path / "framed.html").write_text(page, encoding="utf-8")
    dom, _, _ = visit(tmp_path, FRAME.format(WIDTHS["phone"]))
    seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))
    assert len(seen) == 2
    for table in seen:
        assert table["hidden"] <= 0
        assert table["last"] <= WIDTHS["phone"]
