"""What the page promises is what `fill` gives: over tasks, numbers of labels, ways and guarantees."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import pytest

from tests.app.filling.forecasts import OF_DESIGNS, TASKS, events_of, make_table
from transduce import fill

pytest.importorskip("starlette", reason="NOT TESTED: the page, because starlette is not installed.")
from transduce.app.page.preview import NOTHING, Preview, outlook
from transduce.app.page.workspace import CARDS, Choices
from transduce.app.tables import files
from transduce.conformal.forecast import DRIFTING, ROUNDED, SHIFTED, without_fit
from transduce.core.guarantee import Guarantee

COLUMNS = {"drawn": "drawn", "groups": "group", "date": "place", "known": "probability"}
COUNTS = (8, 9, 12, 13, 28, 50, 60, 200)
GUARANTEES = ("auto", "row", "column")
GRID = list(product(TASKS, COUNTS, CARDS, GUARANTEES))
# Each way with each task, at one number of labels and one guarantee; the others take minutes.
SOME = [
    (task, COUNTS[(3 * place + shift) % 7], way, GUARANTEES[(place + shift) % 3])
    for shift, task in enumerate(TASKS)
    for place, way in enumerate(CARDS)
]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """What decides which rows have a label is learned by a small forest: here it only has to differ from chance."""
    monkeypatch.setattr("transduce.conformal.designs.propensity.N_TREES", 5)


def chosen(way, guarantee):
    """What a person says on the page about the table of `make_table`."""
    column = COLUMNS.get(way)
    others = [name for name in OF_DESIGNS if name != column]
    return Choices(target="y", way=way, column=column, guarantee=guarantee, ignore=others)


def differences(path, choices):
    """Return in what the promise of the page differs from what the page's own fill of the table gives."""
    try:
        said = outlook(Preview(path, choices), choices)
    except ValueError as error:
        said = {"refused": True, "will": [], "will_not": [str(error)], "headline": NOTHING}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = fill(files.read(path), "y", **choices.options().changed())
    except ValueError as error:
        same = said["refused"] and said["will_not"] == [str(error)]
        return [] if same else [f"said {said}, then refused: {error}"]
    if said["refused"]:
        return [f"said that it cannot be filled: {said['will_not']}"]
    return _compare(said, result.guarantee, events_of(result))


def _compare(said: dict, given: Guarantee, events: set[str]) -> list[str]:
    promised = NOTHING if given.kind == "none" else given.headline
    lines = [f"{said['headline']!r}, then {promised!r}"] if said["headline"] != promised else []
    if not events:
        if given.kind == "none":
            wanted = [[], list(given.reasons)]
        else:
            plain = replace(
                without_fit(given), outside=None
            )  # bounds on wrong classes rest on the fit
            wanted = [[plain.statement], said["will_not"]]
            if given.outside is not None:
                wanted[0].append(said["will"][-1])
                if f"at most {given.outside.at_most:,}." not in said["will"][-1]:
                    lines.append(f"{said['will'][-1]}, then {given.outside}")
        if [said["will"], said["will_not"]] != wanted:
            lines.append(f"{said}, then {wanted}")
        return lines
    # What only the fit can tell was said as a condition.
    words = {SHIFTED: "are found to differ", DRIFTING: "drift along the order"}
    conditions = " ".join(said["will_not"])
    told = [event for event in events if words.get(event, "Anything, if") in conditions]
    if events == {ROUNDED} or said["roughly"] or told or said["headline"] == promised:
        return []
    return [*lines, f"{events} were not said as a condition: {said['will_not']}"]


@pytest.mark.few(6)
@pytest.mark.parametrize(("task", "n_labels", "way", "guarantee"), SOME)
def test_the_page_promises_what_fill_gives(task, n_labels, way, guarantee, tmp_path):
    make_table(task, n_labels).to_csv(tmp_path / "t.csv", index=False)
    assert differences(tmp_path / "t.csv", chosen(way, guarantee)) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", CARDS)
@pytest.mark.parametrize("task", TASKS)
def test_the_page_promises_what_fill_gives_in_every_case(task, way, tmp_path):
    found = {}
    for n_labels, guarantee in product(COUNTS, GUARANTEES):
        path = tmp_path / f"{n_labels}.csv"
        make_table(task, n_labels).to_csv(path, index=False)
        lines = differences(path, chosen(way, guarantee))
        found |= {(n_labels, guarantee): lines} if lines else {}
    assert found == {}


def test_the_grid_has_as_many_cases_as_were_compared_once():
    assert len(GRID) == 384
