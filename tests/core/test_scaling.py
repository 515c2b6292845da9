"""The factor that makes probabilities of scores."""

from __future__ import annotations

import numpy as np
import pytest

from transduce.core.scaling import fit_temperature


def test_temperature_minimises_the_log_loss():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(500, 3))
    codes = np.array([rng.choice(3, p=np.exp(2 * s) / np.exp(2 * s).sum()) for s in scores])
    assert fit_temperature(scores, codes) == pytest.approx(2.0, abs=0.4)
    assert fit_temperature(scores, rng.integers(0, 3, 500)) < 0.3
