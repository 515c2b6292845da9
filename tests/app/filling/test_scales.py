"""The scale of positive labels in `fill`: where it is chosen, and what it means for values."""

from __future__ import annotations

import numpy as np
import pandas as pd

from transduce import fill
from transduce.methods.confidence_machine.label_scales import raise_to_labels


def test_intervals_of_dates_move_with_the_dates():
    """That dates are counted from 1970 on is of no matter: they have no logarithm."""
    random = np.random.default_rng(0)
    x = random.normal(size=50)
    days = np.round(500.0 * x + 200.0 * random.normal(size=50))
    widths = []
    for first in ("1974-01-01", "2004-01-01"):
        dates = pd.Timestamp(first) + pd.to_timedelta(days, unit="D")
        frame = pd.DataFrame({"x": x, "day": pd.Series(dates).where(np.arange(50) < 35)})
        new = fill(frame, "day", method="confidence-machine").new[35:]
        lower, upper = new["day_lower"], new["day_upper"]
        widths.append((upper - lower).dt.days.to_numpy())
    np.testing.assert_allclose(widths[0], widths[1], atol=1.0)


def test_values_beyond_positive_labels_are_positive():
    """A straight line through them would say less than 0, and intervals would follow it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 3))
    y = np.exp(1.5 * X[:, 0] + 0.1 * random.normal(size=100))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = pd.Series(y).where(np.arange(100) < 40)
    new = fill(frame, "y", method="ridge").new[40:]
    assert new["y_filled"].min() == y[:40].min()
    assert new["y_lower"].min() >= 0.0
    assert np.all(new["y_filled"].between(new["y_lower"], new["y_upper"]))


def test_only_values_that_are_not_positive_are_raised():
    values = np.array([-1.0, 0.0, 0.5, 3.0])
    known = np.array([2.0, np.nan, 4.0])
    np.testing.assert_array_equal(raise_to_labels(values, known), [2.0, 2.0, 0.5, 3.0])
    for labels in (np.array([2.0, 0.0]), np.array([np.nan])):
        np.testing.assert_array_equal(raise_to_labels(values, labels), values)
