"""What is said before a fit is what `fill` gives: kind, bound, calibration labels, or the same refusal."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from tests.app.filling.forecasts import DESIGNS, TASKS, Case, differences, make_table
from transduce import fill
from transduce.app.filling.forecast import forecast_draw, forecast_guarantee
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import Chance, Drawn, Estimated
from transduce.conformal.forecast import DRIFTING, SHIFTED, UNEVEN
from transduce.core.assumptions import CHANCE, ESTIMATE, STILL
from transduce.model_selection.methods import METHODS
from transduce.population.draws import draw_rows

# Some of the grid of tests/slow/test_forecast.py: just below and above what each level takes.
FEW = [
    ("regression", 8, "auto", 0.9),
    ("regression", 12, "column", 0.9),
    ("regression", 13, "column", 0.9),
    ("regression", 27, "auto", 0.95),
    ("regression", 60, "row", 0.9),
    ("classification", 8, "row", 0.9),
    ("classification", 28, "column", 0.95),
    ("classification", 51, "auto", 0.9),
]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """What decides which rows have a label is learned by a small forest: here it only has to differ from chance."""
    monkeypatch.setattr("transduce.conformal.designs.propensity.N_TREES", 5)


def forecast(frame, **options):
    options = Options.read(options)
    return forecast_guarantee(FrameSource.read(frame, "y", options), options)


@pytest.mark.few(6)
@pytest.mark.parametrize("design", DESIGNS)
def test_what_is_said_before_is_what_is_given_after(design):
    cases = [Case(task, n, design, *asked) for task, n, *asked in FEW]
    tables = [make_table(case.task, case.n_labels) for case in cases]
    found = {case: differences(case, table) for case, table in zip(cases, tables, strict=True)}
    assert {case: lines for case, lines in found.items() if lines} == {}


@pytest.mark.few(3)
@pytest.mark.parametrize("method", METHODS)
def test_whatever_the_method_is(method):
    few = product(TASKS, (8, 14), ("chance", "drawn"), ("auto", "column"))
    cases = [Case(*case, method=method) for case in few]
    found = {
        case: differences(case, make_table(case.task, case.n_labels))
        for case in cases
        if case.is_meant
    }
    assert {case: lines for case, lines in found.items() if lines} == {}
    assert len(found) >= 8


@pytest.mark.few(3)
@pytest.mark.parametrize("design", ["chance", "chance, not weighed", "unknown", "drawn"])
@pytest.mark.parametrize("guarantee", ["auto", "column"])
def test_what_holds_where_rows_differ_is_said_as_a_condition(design, guarantee):
    case = Case("regression", 60, design, guarantee)
    frame = make_table("regression", 60, shift=2.0)
    before = forecast(frame, **case.options())
    assert before.if_event(SHIFTED).kind == "approximate"
    assert differences(case, frame) == []
    frame["z"] = frame["x"] + 20.0 * frame["y"].isna()  # nothing is alike
    assert differences(case, frame) == []


def test_estimated_weights_may_turn_out_to_be_worth_nothing():
    before = forecast(make_table("regression", 30), labels=Estimated())
    assert (before.guarantee.kind, before.guarantee.assumptions) == ("approximate", (ESTIMATE,))
    assert before.if_event(UNEVEN).kind == "none"
    assert before.after({UNEVEN, SHIFTED}).kind == "none"  # the worst counts


def test_an_order_is_assumed_to_change_nothing_only_where_rows_lie_apart_along_it():
    frame = make_table("regression", 60)
    before = forecast(frame, labels=Chance(order="place"))
    assert before.guarantee.assumptions == (CHANCE,)
    assert before.if_event(DRIFTING).kind == "approximate"
    frame["place"] = np.arange(len(frame)) + 1000 * frame["y"].isna()
    case = Case("regression", 60, "along an order")
    assert forecast(frame, **case.options()).guarantee.assumptions == (STILL,)
    assert differences(case, frame) == []


@pytest.mark.few(2)
@pytest.mark.parametrize("design", ["chance", "drawn, some empty", "by class", "by class, shares"])
def test_a_table_of_which_the_fit_sees_a_sample(design):
    for shift in (0.0, 2.0):
        frame = make_table("classification", 120, n_unlabelled=400, shift=shift)
        case = Case("classification", 120, design, "column")
        assert differences(case, frame, sample=100) == []


def test_one_label_that_decides_the_task_leaves_nothing_exact():
    frame = make_table("regression", 60)
    frame["y"] = np.where(frame["y"].isna(), np.nan, np.arange(100) % 2)
    frame.loc[frame["y"].first_valid_index(), "y"] = 0.5
    frame = frame[["x", "y"]]
    before = forecast(frame, method="ridge").guarantee
    after = fill(frame, "y", method="ridge").guarantee
    assert (before.kind, before.decisive) == (after.kind, after.decisive) == ("approximate", 0.5)


def test_limits_are_part_of_what_is_assumed():
    frame = make_table("regression", 60).astype({"y": object})
    texts = frame["y"].map(lambda value: "<-1" if value < -1 else f"{value:.3f}", "ignore")
    frame = pd.DataFrame({"x": frame["x"], "y": texts})
    before = forecast(frame, method="ridge").guarantee
    after = fill(frame, "y", method="ridge").guarantee
    assert (before.limits, before.assumptions) == (after.limits, after.assumptions)
    assert before.limits is not None


def test_what_a_draw_will_guarantee_once_it_is_labelled():
    frame = make_table("regression", 30)
    options = Options.read({"method": "ridge"})
    labels = FrameSource.read(frame, "y", options).labels
    for number, kind in ((8, "none"), (9, "exact"), (20, "exact"), (40, "none")):
        rows = draw_rows(labels.missing, number, 0)
        before = forecast_draw(labels, rows, options)
        assert (before.guarantee.kind, bool(before.refusal)) == (kind, number == 8)
        labelled = frame.assign(drawn=np.isin(np.arange(len(frame)), rows))
        labelled.loc[rows, "y"] = labelled.loc[rows, "x"]
        if number not in (8, 40):
            after = fill(labelled, "y", labels=Drawn("drawn"), method="ridge").guarantee
            assert (after.n_calibration, after.outside) == (number, before.guarantee.outside)


def test_what_cannot_be_read_is_refused_in_the_same_words():
    frame = pd.DataFrame({"x": range(40), "y": [*range(20), *[None] * 20], "share": 1.0})
    before = forecast(frame, labels=Drawn("share"))
    with pytest.raises(ValueError, match="marks all labelled rows") as error:
        fill(frame, "y", labels=Drawn("share"))
    assert before.refusal == str(error.value)
    assert before.guarantee.kind == "none"
