"""A saved fit answers the same rows in the same way, however fast the clock goes and whoever does the work."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling import load, save


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    rows = random.normal(size=(400, 3))
    noise = (0.2 + np.abs(rows[:, 2])) * random.normal(size=400)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame["y"] = np.where(np.arange(400) < 200, 2.0 * rows[:, 0] + noise, np.nan)
    return frame.sample(frac=1.0, random_state=0, ignore_index=True)


CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [0.0, 1000.0])
def test_the_clock_changes_no_answer(table, tmp_path, monkeypatch, step):
    """Members were dropped, and their errors at hidden labels with them, when the machine was busy."""
    settings = {"sample": 150, "budget_seconds": 1.0}
    save(tmp_path / "fit.transduce", table, "y", **settings)
    later = table.drop(columns="y")[:50]
    usual = load(tmp_path / "fit.transduce").new_columns(later)
    filled = fill(table, "y", budget_seconds=1.0).new
    for name in CLOCKS:
        ticks = itertools.count()
        monkeypatch.setattr(time, name, lambda ticks=ticks: step * next(ticks))
    pd.testing.assert_frame_equal(load(tmp_path / "fit.transduce").new_columns(later), usual)
    pd.testing.assert_frame_equal(fill(table, "y", budget_seconds=1.0).new, filled)


@pytest.mark.slow
def test_processes_change_no_answer(table, tmp_path):
    """Neither does it matter which process fits a method."""
    later = table.drop(columns="y")[:50]
    answers = []
    for n_jobs in (1, 2):
        save(tmp_path / f"{n_jobs}.transduce", table, "y", sample=150, n_jobs=n_jobs)
        answers.append(load(tmp_path / f"{n_jobs}.transduce").new_columns(later))
    pd.testing.assert_frame_equal(answers[0], answers[1])
