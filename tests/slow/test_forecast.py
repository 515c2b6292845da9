"""What is said before a fit is what `fill` gives: over tasks, numbers of labels, designs, guarantees and levels."""

from itertools import product

import pytest

from tests.app.filling.forecasts import (
    COUNTS,
    DESIGNS,
    GUARANTEES,
    LEVELS,
    TASKS,
    Case,
    differences,
    make_table,
)
from transduce.model_selection.methods import METHODS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("task", TASKS)
def test_what_is_said_before_is_what_is_given_after(task, design):
    tables = {n_labels: make_table(task, n_labels) for n_labels in COUNTS}
    found = {}
    for n_labels, guarantee, level in product(COUNTS, GUARANTEES, LEVELS):
        for by_class in (False, True) if task == "classification" else (False,):
            case = Case(task, n_labels, design, guarantee, level, by_class)
            lines = differences(case, tables[n_labels])
            found |= {case: lines} if lines else {}
    assert found == {}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n_labels", [30, 60, 220])
def test_also_where_rows_differ_and_of_a_sample(task, design, n_labels):
    found = {}
    for guarantee, shift, sampled in product(GUARANTEES, (0.0, 1.5), (False, True)):
        case = Case(task, n_labels, design, guarantee)
        frame = make_table(task, n_labels, n_unlabelled=300 if sampled else 40, shift=shift)
        lines = differences(case, frame, **({"sample": 100} if sampled else {}))
        found |= {(case, shift, sampled): lines} if lines else {}
    assert found == {}


@pytest.mark.parametrize("method", METHODS)
def test_whatever_the_method_is(method):
    found, n_cases = {}, 0
    for task, n_labels, design, guarantee in product(
        TASKS, (8, 9, 14, 29, 60, 210), DESIGNS, GUARANTEES
    ):
        case = Case(task, n_labels, design, guarantee, method=method)
        if not case.is_meant:
            continue
        n_cases += 1
        lines = differences(case, make_table(task, n_labels))
        found |= {case: lines} if lines else {}
    assert found == {}
    assert n_cases >= 6 * len(DESIGNS) * len(GUARANTEES)
