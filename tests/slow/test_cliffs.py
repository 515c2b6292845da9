"""No cliffs: `fill` on families of problems, at sizes on both sides of the places where the code takes another way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cliffs

DRAWS = 4
# So few labels do not tell a line from noise: what is good for one is bad for the other.
FEWEST_LABELS = 5
SWITCHES = [switch for switch in cliffs.SWITCHES if not switch.is_large]


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
@pytest.mark.parametrize("family", cliffs.FAMILIES)
def test_fill_falls_off_nowhere(family, switch):
    """In the mean over some draws: not far behind the best of three baselines, and no step at the switch."""
    lines = cliffs.measure_all([family], [switch], ["fill auto"], draws=DRAWS)
    errors = cliffs.by_size(lines)
    print(errors.round(3).to_string())
    steps = cliffs.costly_steps(errors)
    assert steps.empty, steps.to_string()
    if switch.beyond.labels <= FEWEST_LABELS:
        return
    behind = cliffs.behind_baselines(errors)
    assert behind.empty, behind.to_string()
