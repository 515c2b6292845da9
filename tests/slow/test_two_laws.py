"""Hundreds of splits of one table of which the fit sees a sample: the law of the rows inside, and of all others."""

from __future__ import annotations

import pytest

from tests.conformal.test_guarantee import fit_of_law
from tests.filling.test_two_laws import check_laws, split_counts
from transduce.conformal import Miscoverage

SPLITS = 300


@pytest.mark.timeout(3600)
def test_numbers(tmp_path):
    """No two scores are equal, so that the law holds exactly: at two quantiles, and as a whole."""
    found = [split_counts(tmp_path, split) for split in range(SPLITS)]
    check_laws(found)
    for group in (0, 1):
        law: Miscoverage = found[0][group][1]
        assert fit_of_law([pair[group][0] for pair in found], law) > 1e-6


@pytest.mark.timeout(3600)
def test_classes(tmp_path):
    """Equal scores count as inside: no more rows are outside than the law says."""
    check_laws([split_counts(tmp_path, split, "classification") for split in range(SPLITS)], exact=False)
