"""Rows that somebody picked, a second reason, cards that do not suit, and what is left open of one table."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="NOT TESTED: the page, because starlette is not installed.")
from tests.app.page.serving import Client, Served
from transduce import fill
from transduce.app.page.one_table import one_table
from transduce.app.page.preview import NOTHING, Preview, outlook
from transduce.app.page.workspace import CARDS, Choices, Workspace, way_of_picked
from transduce.conformal import (
    ByClass,
    ByValue,
    Chance,
    Drawn,
    Estimated,
    Grouped,
    Miscoverage,
    Sampled,
)
from transduce.core.guarantee import Guarantee


def clinic(n_rows=120):
    """Return a table with dates, groups, marks, probabilities, a number and a class to fill."""
    random = np.random.default_rng(0)
    age = random.normal(50, 10, n_rows).round(1)
    known = random.random(n_rows) < 0.5
    return pd.DataFrame(
        {
            "age": age,
            "patient": [f"p{number // 3}" for number in range(n_rows)],
            "ward": np.where(np.arange(n_rows) % 2 == 0, "north", "south"),
            "seen": pd.date_range("2024-01-01", periods=n_rows, freq="D").astype(str),
            "drawn": np.where(random.random(n_rows) < 0.3, "yes", "no"),
            "share": np.full(n_rows, 0.5),
            "dose": np.where(known, age / 10 + random.normal(size=n_rows), np.nan).round(2),
            "sick": np.where(known, np.where(age > 50, "yes", "no"), None),
        }
    )


@pytest.fixture
def table(tmp_path):
    clinic().to_csv(tmp_path / "clinic.csv", index=False)
    return tmp_path / "clinic.csv"


@pytest.mark.parametrize(
    ("value", "columns", "classes", "way"),
    [
        (False, False, False, "chance"),
        (False, True, True, "unknown"),
        (True, False, True, "class"),
        (True, False, False, "value"),
        (True, True, True, "value"),
        (True, True, False, "value"),
    ],
)
def test_two_answers_lead_to_a_card(value, columns, classes, way):
    assert way_of_picked({"value": value, "columns": columns}, classes=classes) == way
    assert way in CARDS


def test_one_answer_leads_nowhere_yet():
    assert way_of_picked({"value": True}, classes=True) is None
    assert way_of_picked({}, classes=False) is None


@pytest.mark.parametrize(
    "picked", [{"value": "yes"}, {"other": True}, ["value"], "value", {"value": None}]
)
def test_odd_answers_are_refused(picked):
    with pytest.raises(ValueError, match="Say yes or no to each question"):
        Choices(target="dose", picked=picked)


def test_answers_are_kept_by_the_server_and_lead_to_a_design(table):
    space = Workspace(table.parent, table.name)
    with Served(space) as served:
        client = Client(served)

        def change(**changes):
            known = client.get("/open/state").json()
            body = {"table": table.name, "revision": known["revision"], "changes": changes}
            reply = client.post("/open/change", body)
            assert reply.status == 200, reply.content
            return reply.json()["choices"]

        change(target="sick")
        assert change(picked={})["way"] is None
        assert change(picked={"value": True})["way"] is None
        assert change(picked={"value": True, "columns": False})["way"] == "class"
        # Another target has other values: the answers are asked for again.
        other = change(target="dose")
        assert (other["way"], other["picked"]) == (None, None)
        assert change(picked={"value": True, "columns": False})["way"] == "value"
        said = client.get("/open/outlook").json()
        assert (said["headline"], said["will"], said["draw"]) == (NOTHING, [], True)
        assert change(way="groups")["picked"] is None
    assert Workspace(table.parent, table.name).saved.choices.way == "groups"


def test_the_fill_of_values_that_were_picked_promises_nothing(table):
    choices = Choices(target="dose", way="value")
    said = outlook(Preview(table, choices), choices)
    result = fill(pd.read_csv(table), "dose", method="ridge", labels=ByValue())
    assert result.guarantee.kind == "none"
    assert said["will_not"] == list(result.guarantee.reasons)
    assert len(result.guarantee.remedy) == 20
    assert result.frame["dose_filled"].notna().all()
    picked = result.select(tolerance=1.0, false_discovery=0.1)
    assert picked.guarantee.kind == "none"
    with pytest.raises(ValueError, match="draw rows at random"):
        result.estimate("mean")


def test_labels_by_value_take_no_more():
    with pytest.raises(ValueError, match="leave out within"):
        ByValue(within="ward")


# ---- two reasons at once

BOTH = {
    ("chance", "within"): lambda column: Chance(within=column["within"]),
    ("date", "groups"): lambda column: Grouped(column["groups"], order="seen"),
    ("date", "within"): lambda column: Chance(order="seen", within=column["within"]),
    ("groups", "order"): lambda column: Grouped("patient", order=column["order"]),
    ("drawn", "within"): lambda column: Drawn("drawn", within=column["within"]),
    ("drawn", "order"): lambda column: Drawn("drawn", order=column["order"]),
    ("known", "within"): lambda column: Sampled("share", within=column["within"]),
    ("known", "order"): lambda column: Sampled("share", order=column["order"]),
    ("unknown", "within"): lambda column: Estimated(within=column["within"]),
    ("unknown", "order"): lambda column: Estimated(order=column["order"]),
}
FIRST = {"date": "seen", "groups": "patient", "drawn": "drawn", "known": "share"}
SECOND = {"within": "ward", "groups": "patient", "order": "seen"}


def test_every_pair_that_the_page_offers_is_tested():
    assert set(BOTH) == {(card.way, flag) for card in CARDS.values() for flag in card.also}


@pytest.mark.parametrize(("way", "also"), BOTH)
def test_two_reasons_at_once_make_one_design(way, also, table):
    choices = Choices(
        target="dose", way=way, column=FIRST.get(way), also=also, also_column=SECOND[also]
    )
    assert choices.options().design == BOTH[way, also](SECOND)
    said = outlook(Preview(table, choices), choices)
    assert said["headline"]
    # Until the second column is named, the first reason stands alone.
    alone = Choices(target="dose", way=way, column=FIRST.get(way), also=also)
    assert alone.flags == Choices(target="dose", way=way, column=FIRST.get(way)).flags


def test_a_second_reason_that_does_not_go_with_the_first_is_refused():
    with pytest.raises(ValueError, match="also"):
        Choices(target="sick", way="class", also="groups", also_column="patient")
    changed = Choices(target="dose", way="groups", column="patient", also="order").changed(
        {"way": "chance"}
    )
    assert changed.also is None


# ---- cards that do not suit


def test_cards_that_do_not_suit_say_why(table):
    preview = Preview(table, Choices())
    assert preview.unfit(Choices()) == {}
    assert preview.unfit(Choices(target="sick")) == {}
    assert preview.unfit(Choices(target="dose")) == {
        "class": "The values are numbers, not classes."
    }


def test_a_bare_table_suits_few_cards(tmp_path):
    path = tmp_path / "bare.csv"
    names = [f"name {number}" for number in range(40)]
    pd.DataFrame({"who": names, "y": [1.5, None, 2.5, 3.0] * 10}).to_csv(path, index=False)
    unfit = Preview(path, Choices()).unfit(Choices(target="y"))
    assert set(unfit) == {"class", "drawn", "groups", "date", "known"}
    assert all(reason.endswith(".") for reason in unfit.values())


@pytest.mark.parametrize(
    ("cells", "needs"),
    [
        (["yes", "no", "no", ""], "marks"),
        ([1, 0, 0, 1], "marks"),
        (["a", "a", "b", "c"], "groups"),
        (["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"], "order"),
        (["03.01.2024", "04.01.2024", "13.01.2024", "14.01.2024"], "order"),
        ([3.5, 2.5, 1.5, 4.0], "order"),
        ([0.2, 0.5, 1.0, 0.01], "probabilities"),
    ],
)
def test_a_column_suits_by_what_it_holds(cells, needs, tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"it": cells * 5, "y": [1.5, None, 2.5, 3.0] * 5})
    frame.to_csv(path, index=False)
    unfit = Preview(path, Choices()).unfit(Choices(target="y"))
    wanted = next(card.way for card in CARDS.values() if card.needs == needs)
    assert wanted not in unfit


# ---- one table


@pytest.mark.parametrize(("n_rows", "n_labels"), [*product((1, 7, 82, 1000), (9, 19, 100))])
def test_the_shares_of_one_table_are_those_of_draws(n_rows, n_labels):
    """The k-th smallest of the labels' scores is the threshold; all orders are equally likely."""
    law = Miscoverage.at(0.9, n_unlabelled=n_rows, n_calibration=n_labels)
    random = np.random.default_rng(n_rows + n_labels)
    scores = random.random((4000, n_labels + n_rows))
    threshold = np.sort(scores[:, :n_labels], axis=1)[:, law.rank - 1]
    inside = (scores[:, n_labels:] <= threshold[:, None]).mean(axis=1)
    low, high = law.share_inside(0.9)
    assert np.mean(inside < low - 1e-9) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert np.mean(inside > high + 1e-9) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 4000)
    # A share nearer to the middle would leave out more.
    assert np.mean(inside < low + 1.01 / n_rows) > 0.05 - 4 * np.sqrt(0.05 * 0.95 / 4000)


def test_nineteen_draws_leave_much_open():
    law = Miscoverage.at(0.9, n_unlabelled=82, n_calibration=19)
    found = one_table(law, Guarantee("exact", about="interval", confidence=0.9))
    assert "75 to 99 % of the intervals may hold the truth" in found["sentence"]
    assert "19 labels" in found["sentence"]
    assert found["more"] == "With 50 of them it would be 80 to 98 %."
    assert sum(height for _, height in found["curve"]) > 1
    assert max(height for _, height in found["curve"]) == 1.0


def test_many_labels_leave_little_open():
    law = Miscoverage.at(0.9, n_unlabelled=100_000, n_calibration=5_000)
    found = one_table(law, Guarantee("exact", about="set", confidence=0.9))
    assert found["more"] == ""
    assert len(found["curve"]) < 100


def test_without_a_law_nothing_is_said():
    nothing = Guarantee("exact", about="set", confidence=0.9)
    assert one_table(None, nothing) is None
    assert one_table(Miscoverage(0, 19, 18), nothing) is None
    assert one_table(Miscoverage(20, 5, 6), nothing) is None


def test_shares_of_classes_are_said_to_the_fill(tmp_path):
    shares = {"healthy": 0.9, "a=b": 0.1}
    choices = Choices(target="y", way="class", shares=shares)
    assert choices.options().labels == ByClass(shares=shares)
    assert choices.changed({"way": "chance"}).shares is None
    assert choices.changed({"target": "z"}).shares is None
    assert choices.of_column("y").shares == shares
    for wrong in ([0.5], {"healthy": 0.9, "sick": 0.3}, {"healthy": "many"}):
        with pytest.raises(ValueError, match=r"share"):
            choices.changed({"shares": wrong})
