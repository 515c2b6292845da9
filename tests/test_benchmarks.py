"""The table of the speed comparisons: what it shows, where it is written. Nothing is timed here."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _beside(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


# ------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.254, "0.25"), (0.996, "1.0"), (4.63, "4.6"), (718.0, "720"), (12_345.0, "12,000"), (np.nan, "-")],
)
def test_ratios_have_two_digits(number, text):
    import speed_table

    assert speed_table.short(number) == text


def test_sizes_stand_side_by_side():
    import speed_table

    lines = [
        speed_table.line("Ours", "a fit", 100, 1.0, "theirs", 2.0, 10.0, 5.0),
        speed_table.line("Ours", "a fit", 1000, 2.0, "theirs", 90.0, 10.0, 20.0),
        speed_table.line("Ours", "a fit", 100, 1.0, "another", 0.5),
    ]
    assert speed_table.as_markdown(speed_table.as_frame(lines)).splitlines()[2:] == [
        "| `Ours` | a fit | theirs | 100 / 1,000 | 2.0 / 45 | 0.50 / 2.0 |",
        "|  | a fit | another | 100 | 0.50 |  |",
    ]


def test_exponent_and_share():
    """A cube law has exponent 3; 2 n^3 operations in n^3 seconds are 20 % of ten a second."""
    import scaling

    n = np.array([1, 10, 100, 1000])
    table = pd.DataFrame(
        [scaling.line("A, fit", "3", "flops", "2 n³", int(k), float(k) ** 3, 2.0 * k**3) for k in n]
    )
    table["limit"] = 10.0
    assert scaling.exponent(table) == pytest.approx(3.0)
    assert scaling.report(table).splitlines()[-1] == (
        "| A, fit | 10 to 1,000 | 3.00 | 3 | 2 n³ (operations) | 20 % |"
    )


# ------------------------------------------------------------------------------------------------- laws


def test_every_script_of_the_runner_has_something_to_measure():
    import run

    for name in (*run.SCRIPTS, "scaling"):
        tree = ast.parse((BENCHMARKS / f"{name}.py").read_text())
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {"measure", "main"} <= found, name


def test_publishing_keeps_what_is_around_the_markers(tmp_path):
    import run

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nafter\n")
    for text in ("new", "newer"):
        run.publish_into(page, "speed", text)
        assert page.read_text() == (
            f"before\n<!-- speed: begin -->\n\n{text}\n\n<!-- speed: end -->\nafter\n"
        )


def test_the_machine_is_not_named():
    import platform

    import speed_table

    assert not platform.node() or platform.node() not in speed_table.machine()
    assert "numpy" in speed_table.versions()


# ------------------------------------------------------------------------------------------------- refusals


def test_a_page_without_markers_is_refused(tmp_path):
    import run

    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(SystemExit, match="no markers"):
        run.publish_into(tmp_path / "page.md", "speed", "text")
