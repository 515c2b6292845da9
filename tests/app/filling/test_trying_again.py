"""What is said of trying again: where it voids the guarantee, and where it changes nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from transduce import ConformalTransducer, fill
from transduce.app.filling.options import OPTIONS
from transduce.app.filling.plan import ROW_BELOW, caution_on_method
from transduce.core.assumptions import CHANCE
from transduce.core.guarantee import Guarantee

VOIDS = (
    "no longer holds if the seed, the method, columns, settings or the level were chosen by looking"
)
VALUES_ONLY = "other seeds and methods: they change the values only"


def small_table(n_labels: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_labels + 40)
    y = x + rng.normal(size=len(x))
    labelled = rng.permutation(len(x)) < n_labels
    return pd.DataFrame({"x": x, "y": np.where(labelled, y, np.nan)})


def test_held_out_labels_know_the_seed():
    result = fill(small_table(60), "y", method="ridge", guarantee="column")
    assert result.guarantee.n_calibration > 0
    assert VOIDS in str(result.guarantee)
    assert VOIDS in str(result.guarantee_at(certainty=0.9))
    assert any(VOIDS in caveat for caveat in result.summary()["caveats"])


def test_the_machine_knows_no_seed():
    table = small_table(60)
    result = fill(table, "y", method="ridge", guarantee="row")
    assert VALUES_ONLY in str(result.guarantee)
    assert VOIDS not in str(result.guarantee)
    assert any(VALUES_ONLY in caveat for caveat in result.summary()["caveats"])
    # It is true: another seed and another method leave the intervals as they are, except where they are extended.
    other = fill(table, "y", method="forest", guarantee="row", random_state=7)
    ends = result.model.answer_.regions.hull()
    np.testing.assert_array_equal(ends, other.model.answer_.regions.hull())


def test_nothing_guaranteed_is_nothing_lost():
    assert Guarantee("none").caution == ""
    exact = Guarantee("exact", about="interval", confidence=0.9, assumptions=(CHANCE,))
    assert VALUES_ONLY in exact.caution


def test_an_estimator_says_it_too():
    table = small_table(60)
    model = ConformalTransducer(Ridge(), random_state=0).fit(table[["x"]], table["y"])
    assert VOIDS in str(model.guarantee_)
    assert VOIDS in str(model.guarantee_at(0.8))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_method_named_by_its_scores(task):
    least = ROW_BELOW[task]
    assert "the method makes the values only" in caution_on_method(task, least - 1)
    assert "only nearly so" in caution_on_method(task, least)


@pytest.mark.parametrize("name", ["random_state", "method"])
def test_help_says_it(name):
    assert "a guarantee for the column no longer holds" in OPTIONS[name].help
    assert "by row" in OPTIONS[name].help  # where it changes nothing
