"""One estimator of each class keeps scikit-learn's contract; tests/slow has the others."""

import pytest

from tests.contract import ONE_OF_EACH, contract, keep


@pytest.mark.parametrize(("estimator", "check"), contract(ONE_OF_EACH))
def test_scikit_learn_contract(estimator, check):
    """Every check of scikit-learn's check_estimator, none expected to fail."""
    keep(estimator, check)
