"""The benchmark of cliffs finds those that are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def cliffs(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import cliffs

    return cliffs


def errors_at(cliffs, *, before, beyond, ridge=0.3, mean_beyond=1.0):
    """Errors of `fill` before and beyond a switch, with those of the baselines."""
    lines = []
    for side, error, of_mean in (("before", before, 1.0), ("beyond", beyond, mean_beyond)):
        found = {"mean": of_mean, "ridge": ridge, "forest": 0.9, "fill auto": error}
        for method, value in found.items():
            size = {"rows": 100, "labels": 10, "features": 4}
            line = {"family": "linear", "switch": "a", "side": side, **size}
            lines.append({**line, "method": method, "draw": 0, "error": value})
    return cliffs.by_size(pd.DataFrame(lines))


def test_what_is_behind_or_falls_off_is_found(cliffs):
    fine = errors_at(cliffs, before=0.3, beyond=0.33)
    assert cliffs.behind_baselines(fine).empty
    assert cliffs.costly_steps(fine).empty
    behind = errors_at(cliffs, before=0.4, beyond=0.44)
    assert cliffs.behind_baselines(behind)["fill auto"].tolist() == [0.44]
    fallen = errors_at(cliffs, before=0.2, beyond=0.3)
    assert cliffs.costly_steps(fallen)["beyond"].tolist() == [0.3]
    odd_label = errors_at(cliffs, before=0.2, beyond=0.3, mean_beyond=1.5)
    assert cliffs.costly_steps(odd_label).empty


def test_both_sides_of_a_switch_have_the_same_rows(cliffs):
    """The rows that are asked have no label on either side, and a step adds a row, a label or a feature."""
    for family in cliffs.FAMILIES:
        for switch in cliffs.SWITCHES[:9]:
            sides = {side: cliffs.Case(family, switch, side, 1) for side in ("before", "beyond")}
            (one, shown, asked), (more, more_shown, again) = (
                sides[side].problem() for side in ("before", "beyond")
            )
            n, d = one.features.shape
            np.testing.assert_array_equal(one.features, more.features[:n, :d])
            np.testing.assert_array_equal(one.truth, more.truth[:n])
            np.testing.assert_array_equal(asked, again)
            assert not set(asked) & {*shown, *more_shown}
            steps = np.array(switch.beyond) - np.array(switch.before)
            assert sorted(steps) == [0, 0, 1]


def test_a_line_is_measured(cliffs):
    switch = cliffs.Switch("small", cliffs.Size(40, 12, 2), cliffs.Size(41, 12, 2))
    lines = cliffs.measure_all(["exact linear"], [switch], ["fill ridge"], draws=range(1))
    assert set(lines["method"]) == {"mean", "ridge", "forest", "fill ridge"}
    filled = lines[lines["method"] == "fill ridge"]
    assert (filled["error"] < 0.5).all()
    assert filled["coverage"].between(0.0, 1.0).all()
    assert lines[lines["method"] == "mean"]["error"].between(0.9, 1.3).all()
