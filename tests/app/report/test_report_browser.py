"""The report in a real browser: no request, no error, nothing wider than the screen, no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess

import pytest

from tests.app.report import filled_examples as examples
from transduce.app.report import render_html, summarize

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason="NOT TESTED, because no Chromium is installed: that the report makes no request, logs no error, fits a "
    "phone and runs no script from the table. Put chromium, chromium-browser or google-chrome on PATH.",
)
WIDTHS = {"phone": 390, "desktop": 1280}
# Put before everything else in the page: it sees every error, searches, measures, and writes what it saw into the page.
# It stands in a frame, because a browser's own window is not as narrow as a phone.
PROBE = """
var seen = {errors: [], alerts: 0};
window.alert = function () { seen.alerts += 1; };
window.addEventListener("error", function (event) { seen.errors.push(String(event.message)); }, true);
document.addEventListener("securitypolicyviolation", function (event) { seen.errors.push(event.blockedURI); });
window.addEventListener("load", function () {
  var width = document.documentElement.clientWidth;
  seen.width = window.innerWidth;
  seen.page = document.documentElement.scrollWidth;
  seen.wide = Array.from(document.querySelectorAll("body *")).filter(function (element) {
    var inside = element.parentElement.closest(".box, svg");
    return !inside && element.getBoundingClientRect().right > width + 1 && !element.matches(".skip");
  }).map(function (element) { return element.tagName + "." + element.className; });
  seen.resources = performance.getEntriesByType("resource").map(function (entry) { return entry.name; });
  var box = document.getElementById("search");
  seen.hidden = document.getElementById("searching").hidden;
  var head = document.querySelector("#filled thead th");
  function values() {
    return Array.from(document.querySelectorAll("#filled tbody tr")).map(function (row) {
      var cell = row.cells[0];
      return cell.hasAttribute("data-v") ? Number(cell.getAttribute("data-v")) : cell.textContent;
    });
  }
  seen.sorted = [0, 1].map(function () {
    head.querySelector("button").click();
    return [head.getAttribute("aria-sort"), values()];
  });
  box.value = "onerror";
  box.dispatchEvent(new Event("input"));
  window.setTimeout(function () {
    seen.shown = document.querySelectorAll("#filled tbody tr:not([hidden])").length;
    seen.found = document.getElementById("found").textContent;
    window.parent.postMessage(JSON.stringify(seen), "*");
  }, 400);
});
"""


FRAME = """<!DOCTYPE html><title>frame</title>
<iframe src="framed.html" width="{}" height="900" frameborder="0"></iframe>
<script>window.addEventListener("message", function (event) {{
  document.documentElement.setAttribute("data-seen", event.data); }});</script>"""


def visit(folder, page):
    """Return the page as the browser leaves it, what it wrote to the console, and the addresses it asked for."""
    file, log = folder / "page.html", folder / "net.json"
    file.write_text(page, encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-extensions",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000",
        "--hide-scrollbars", "--virtual-time-budget=3000", "--enable-logging=stderr", "--v=0", f"--log-net-log={log}",
        "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("NOT TESTED: Chromium did not answer within five minutes.")
    if done.returncode or not done.stdout:
        pytest.skip(
            f"NOT TESTED: Chromium does not run here ({done.stderr.decode(errors='replace')[-300:]})."
        )
    console = re.findall(r"CONSOLE.*", done.stderr.decode(errors="replace"))
    return done.stdout.decode(), console, requested(log)


def requested(log):
    """Return the addresses that the page asked for; those that the browser wants for itself have no origin."""
    events = [event.get("params") for event in json.loads(log.read_text())["events"]]
    unlabelled = [params for params in events if isinstance(params, dict) and "initiator" in params]
    return {params["url"] for params in unlabelled if params["initiator"] != "not an origin"}


def with_probe(page):
    """Return the page with the probe as its first script, allowed by its policy."""
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    page, found = re.subn(
        r"script-src ", lambda _: f"script-src &#39;sha256-{digest}&#39; ", page, count=1
    )
    assert found
    return page.replace("<title>", f"<script>{PROBE}</script><title>", 1)


@pytest.fixture(scope="module")
def spoilt():
    return render_html(summarize(examples.spoil(examples.two_classes())))


@pytest.mark.parametrize(
    "width",
    [WIDTHS["phone"], pytest.param(WIDTHS["desktop"], marks=pytest.mark.slow)],
    ids=["phone", "desktop"],
)
def test_nothing_is_requested_nothing_fails_and_all_fits(spoilt, tmp_path, width):
    (tmp_path / "framed.html").write_text(with_probe(spoilt), encoding="utf-8")
    dom, console, addresses = visit(tmp_path, FRAME.format(width))
    seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))
    assert console == []
    assert {address for address in addresses if not address.startswith(("file:", "data:"))} == set()
    assert seen["errors"] == []
    assert seen["alerts"] == 0
    assert [name for name in seen["resources"] if not name.startswith("data:")] == []
    assert seen["width"] == width
    assert seen["page"] <= width
    assert seen["wide"] == []
    # One cell in seven holds the script, as text; the search finds it.
    assert not seen["hidden"]
    assert 0 < seen["shown"] < 400
    assert seen["found"] == f"{seen['shown']} of 400 rows shown"
    (up, rising), (down, falling) = seen["sorted"]
    assert (up, down) == ("ascending", "descending")
    assert len(rising) == 400
    assert rising != falling
    assert rising == sorted(rising, key=str.lower)
    assert falling == sorted(falling, key=str.lower, reverse=True)


def test_the_page_as_it_is_runs_clean(tmp_path, figures):
    page = render_html(summarize(examples.numbers()))
    dom, console, addresses = visit(tmp_path, page)
    assert console == []
    assert {address for address in addresses if not address.startswith(("file:", "data:"))} == set()
    assert '<div id="searching">' in dom  # its own script has run


def test_these_tests_would_see_requests_and_errors(tmp_path):
    page = '<!DOCTYPE html><img src="http://example.invalid/x.png"><script>console.error("seen")</script>'
    _, console, addresses = visit(tmp_path, page)
    assert any("seen" in line for line in console)
    assert "http://example.invalid/x.png" in addresses
