"""Relations that are exact but for rounding, filled with the default blend."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.ensemble import blend_fit


@pytest.mark.parametrize("n_labels", [15, 40])
def test_a_nearly_exact_line_is_alone_in_the_blend(n_labels, monkeypatch):
    """A Gaussian process is as good at the labels, and comes back to their mean beyond them."""
    random = np.random.default_rng(0)
    amounts = random.lognormal(5.0, 1.0, size=300)
    frame = pd.DataFrame({"a": amounts, "b": random.normal(size=300)})
    truth = 1.19 * amounts + 0.01 * amounts.std() * random.normal(size=300)
    frame["c"] = random.choice(["A", "B"], 300)
    known = np.zeros(300, dtype=bool)
    known[random.permutation(300)[:n_labels]] = True
    frame["y"] = np.where(known, truth, np.nan)

    def error():
        errors = fill(frame, "y").frame["y_filled"].to_numpy(float) - truth
        return np.sqrt(np.mean(errors**2)) / truth.std()

    alone = error()
    assert alone < 0.05
    monkeypatch.setattr(blend_fit, "ABOUT_AS_GOOD", 0.0)
    assert error() > alone


TOTALS = {
    "conversion": lambda X: 1.19 * X[:, 0],
    "difference": lambda X: X[:, 0] - X[:, 1],
    "total": lambda X: X[:, :3].sum(axis=1),
}


@pytest.mark.parametrize(
    ("name", "n_rows", "n_labels"),
    [
        ("conversion", 12, 4),
        ("conversion", 2000, 4),
        ("difference", 30, 5),
        ("total", 15, 6),
        ("total", 1600, 8),
    ],
)
def test_a_total_rounded_to_cents_is_found_by_few_labels(name, n_rows, n_labels):
    """Also beside columns that have nothing to do with it, and where amounts are far from each other."""
    random = np.random.default_rng(n_rows)
    amounts = np.round(random.lognormal(5.0, 1.0, size=(n_rows, 3)), 2)
    truth = np.round(TOTALS[name](amounts), 2)
    frame = pd.DataFrame(amounts, columns=["net", "fee", "delivery"])
    frame["sum"] = np.where(random.permutation(n_rows) < n_labels, truth, np.nan)
    values = fill(frame, "sum").frame["sum_filled"].to_numpy(float)
    assert np.abs(values - truth).max() < 0.001 * truth.std()
