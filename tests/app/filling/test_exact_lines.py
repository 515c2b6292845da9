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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["total", "by category"])
def test_a_large_amount_among_the_labels_is_no_slip_where_a_relation_gives_it(kind, seed):
    """It was drawn in, as one slip of the pen would be, and the relation was gone."""
    random = np.random.default_rng(seed)
    amounts = random.lognormal(3.0, 0.5, size=(150, 2))
    amounts[:2] *= 20.0
    frame = pd.DataFrame({"a": amounts[:, 0], "b": amounts[:, 1], "c": random.normal(size=150)})
    frame["kind"] = random.choice(["A", "B"], 150)
    truth = amounts.sum(axis=1)
    if kind == "by category":
        truth = truth + np.where(frame["kind"] == "A", 5.0, 20.0)
    known = np.zeros(150, dtype=bool)
    known[random.permutation(np.arange(2, 150))[:24]] = True
    known[0] = True
    frame["y"] = np.where(known, truth, np.nan)
    values = fill(frame, "y").frame["y_filled"].to_numpy(float)
    np.testing.assert_allclose(values, truth, rtol=1e-9)
    slip = frame.assign(y=frame["y"].where(frame.index != 0, 1e6))
    values = fill(slip, "y").frame["y_filled"].to_numpy(float)
    assert np.median(np.abs(values - truth)[2:]) < truth[2:].std()


@pytest.mark.parametrize("seed", range(3))
def test_a_relation_may_be_negative_where_no_label_is(seed):
    """Values beyond positive labels are positive, but those that a balance gives."""
    random = np.random.default_rng(seed)
    paid = random.lognormal(3.0, 0.5, size=120)
    owed = random.lognormal(2.0, 0.8, size=120)
    truth = paid - owed
    known = np.zeros(120, dtype=bool)
    known[random.permutation(np.flatnonzero(truth > 0.0))[:30]] = True
    assert (truth[~known] < 0.0).any()
    frame = pd.DataFrame({"paid": paid, "owed": owed, "other": random.normal(size=120)})
    frame["balance"] = np.where(known, truth, np.nan)
    values = fill(frame, "balance").frame["balance_filled"].to_numpy(float)
    np.testing.assert_allclose(values, truth, atol=1e-6)
