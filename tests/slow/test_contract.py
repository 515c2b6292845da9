"""Estimators with other settings keep scikit-learn's contract too."""

import pytest

from tests.contract import VARIANTS, contract, keep


@pytest.mark.parametrize(("estimator", "check"), contract(VARIANTS))
def test_scikit_learn_contract(estimator, check):
    """Every check of scikit-learn's check_estimator, none expected to fail."""
    keep(estimator, check)
