"""No cliffs: `fill` on families of problems, at sizes on both sides of the places where the code takes another way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cliffs

DRAWS = 4
# Four draws are unlucky now and then: what fails in them is asked of so many others, which decide.
MORE_DRAWS = 16
# So few labels do not tell a line from noise: what is good for one is bad for the other.
FEWEST_LABELS = 5
SWITCHES = [switch for switch in cliffs.SWITCHES if not switch.is_large]


def complaints(family, switch, draws):
    """Return where `fill` falls off, or is far behind the best of three baselines, in words."""
    lines = cliffs.measure_all([family], [switch], ["fill auto"], draws=draws)
    errors = cliffs.by_size(lines)
    print(errors.round(3).to_string())
    tables = [cliffs.costly_steps(errors)]
    if switch.beyond.labels > FEWEST_LABELS:
        tables.append(cliffs.behind_baselines(errors))
    return "\n".join(table.to_string() for table in tables if not table.empty)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
@pytest.mark.parametrize("family", cliffs.FAMILIES)
def test_fill_falls_off_nowhere(family, switch):
    """In the mean over some draws: not far behind the best of three baselines, and no step at the switch."""
    complaint = complaints(family, switch, range(DRAWS))
    if complaint:
        complaint = complaints(family, switch, range(DRAWS, DRAWS + MORE_DRAWS))
    assert not complaint, complaint
