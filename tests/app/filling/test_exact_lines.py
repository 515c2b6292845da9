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
    truth = np.round(1.19 * amounts, 2)
    frame["c"] = random.choice(["A", "B"], 300)
    known = np.zeros(300, dtype=bool)
    known[random.permutation(300)[:n_labels]] = True
    frame["y"] = np.where(known, truth, np.nan)

    def error():
        errors = fill(frame, "y").frame["y_filled"].to_numpy(float) - truth
        return np.sqrt(np.mean(errors**2)) / truth.std()

    assert error() < 1e-3
    monkeypatch.setattr(blend_fit, "ABOUT_AS_GOOD", 0.0)
    assert error() > 0.05
