"""Work spread over processes gives what one process gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_selection.test_model_selection import FIXED, classes, numbers
from transduce import TransductiveBlend, TransductiveRidge
from transduce.core import computing
from transduce.model_selection import cross_val_transduce


@pytest.fixture(autouse=True)
def processes(monkeypatch):
    """Start processes however little there is to do."""
    monkeypatch.setattr(computing, "PAYING", 0.0)


def test_folds_in_two_processes():
    X, y, _ = numbers()
    one, two = (
        cross_val_transduce(TransductiveRidge(**FIXED), X, y, random_state=3, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(two.scores, one.scores)


@pytest.mark.parametrize("make", [numbers, classes])
def test_members_in_two_processes(make):
    X, y, _ = make()
    one, two = (TransductiveBlend(random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(two.transduction_, one.transduction_)
