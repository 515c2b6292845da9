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
TASKS = {
    "numbers, lines": ["linear", "quiet linear", "exact linear", "sparse", "scales", "offset"],
    "numbers, others": ["smooth", "steps", "collinear", "skewed", "discrete", "noise"],
    "classes": [
        "two classes",
        "three classes",
        "ten classes",
        "rare class",
        "moons",
        "exclusive or",
    ],
}
SWITCHES = [switch for switch in cliffs.SWITCHES if not switch.is_large]


def errors_of(families, switch):
    lines = cliffs.measure_all(families, [switch], ["fill auto"], draws=DRAWS)
    return cliffs.by_size(lines)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
@pytest.mark.parametrize("families", TASKS.values(), ids=TASKS)
def test_fill_falls_off_nowhere(families, switch):
    """In the mean over some draws: not far behind the best of three baselines, and no step at the switch."""
    errors = errors_of(families, switch)
    steps = cliffs.costly_steps(errors)
    assert steps.empty, steps.to_string()
    if switch.beyond.labels <= FEWEST_LABELS:
        return
    behind = cliffs.behind_baselines(errors)
    assert behind.empty, behind.to_string()
