"""One estimator of each class keeps scikit-learn's contract; tests/slow has the others."""

from dataclasses import fields, is_dataclass
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from tests.contract import ONE_OF_EACH, contract, keep


@pytest.mark.parametrize(("estimator", "check"), contract(ONE_OF_EACH))
def test_scikit_learn_contract(estimator, check):
    """Every check of scikit-learn's check_estimator, none expected to fail."""
    keep(estimator, check)


# Settings that take any name which scikit-learn knows, or that tell a base class nothing.
ANY_NAME = ("kernel", "metric")


def literal_words(hint):
    """Return the words that a type lists, its parts included."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*map(literal_words, get_args(hint)), set())


@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_the_type_of_a_setting_lists_its_words(estimator):
    """An editor offers them, and a type checker finds one that is misspelt."""
    made_of = type(estimator)
    if not is_dataclass(made_of):
        return
    hints = get_type_hints(made_of)
    for setting in fields(made_of):
        if isinstance(setting.default, str) and setting.name not in ANY_NAME:
            assert setting.default in literal_words(hints[setting.name]), setting.name
