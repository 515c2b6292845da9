"""Hundreds of splits of one table of which the fit sees a sample: the law of the rows inside, and of all others."""

from __future__ import annotations

import pytest

from tests.app.filling.test_two_laws import check_laws, split_counts
from tests.conformal.test_guarantee import fit_of_law

SPLITS = 300


@pytest.mark.timeout(3600)
def test_numbers(tmp_path):
    """No two scores are equal: outside of the sample the law holds exactly, at two quantiles and as a whole."""
    found = [split_counts(tmp_path, split) for split in range(SPLITS)]
    check_laws(found)
    assert fit_of_law([pair[1][0] for pair in found], found[0][1][1]) > 1e-6


@pytest.mark.timeout(3600)
def test_classes(tmp_path):
    """Equal scores count as inside: no more rows are outside than the law says."""
    check_laws(
        [split_counts(tmp_path, split, "classification") for split in range(SPLITS)], (False, False)
    )
