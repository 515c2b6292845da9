"""One table of options: whatever is in it is in the signature, the help, the docs, JSON, and "To do it again"."""

from __future__ import annotations

import inspect
import json
import pydoc
import typing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import FillResult, fill
from transduce.app.cli.app import app
from transduce.app.filling.options import (
    DEFAULTS,
    FIT,
    LABEL_DEFAULTS,
    LABEL_FLAGS,
    OPTIONS,
    PANELS,
    QUESTIONS,
    FillOptions,
    Options,
    Questions,
)
from transduce.conformal import Chance, Drawn, Estimated, Grouped, Sampled, Seen
from transduce.conformal.designs.registry import design_of_flags
from transduce.core.words import flag

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
OTHER = {
    "method": "ridge",
    "task": "regression",
    "minimum": -1.5,
    "maximum": 99.5,
    "limit": ["<0.5"],
    "probabilities": True,
    "reject": 0.25,
    "label_next": True,
    "suspect": True,
    "similar": True,
    "labels": Drawn("drawn"),
    "confidence": 0.8,
    "guarantee": "column",
    "certainty": 0.8,
    "tolerance": 3.5,
    "label_conditional": True,
    "ignore": ["a"],
    "text": ["b"],
    "number": ["d"],
    "views": [["e", "f"], ["g"]],
    "id": "c",
    "predictions": "h",
    "features": "columns",
    "missing": ["-9"],
    "keep": ["999"],
    "same": [["i", "one", "1", "I, or i"]],
    "case_sensitive": True,
    "pictures": "photos",
    "sample": 500,
    "budget_seconds": 60.0,
    "device": "cpu",
    "n_jobs": 2,
    "random_state": 7,
}
DESIGNS = [
    Chance(),
    Chance(reweight=False, within="kind"),
    Chance(order="day", sensitivity=1.5),
    Drawn("drawn"),
    Drawn("drawn", within="kind", sensitivity=2.0),
    Sampled("p"),
    Seen("shown"),
    Grouped("person", order="day"),
    Estimated(),
]


@pytest.fixture(scope="module")
def filled():
    size = np.arange(60.0)
    table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    return fill(table, "price", method="ridge", guarantee="column")


def test_every_field_is_tried_here():
    assert list(OTHER) == list(OPTIONS) == [one.name for one in fields(Options)]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_everywhere(name, filled):
    """In the signature, in help, on the command line and its page, in JSON, and in what is printed to do it again."""
    question = name in QUESTIONS
    parameters = inspect.signature(FillResult.with_options if question else fill).parameters
    assert parameters[name].default == DEFAULTS[name]
    assert f"{name} : " in pydoc.render_doc(
        FillResult.with_options if question else fill, renderer=pydoc.plaintext
    )
    flags = LABEL_FLAGS if name == "labels" else [name]
    text = CliRunner().invoke(app, ["fill", "--help"], terminal_width=100).output
    for one in flags:
        assert f"{flag(one)} " in text
        assert f"{flag(one)} " in PAGE.read_text(encoding="utf-8")
    assert name in json.loads(filled.json())["options"]
    options = Options.read({name: OTHER[name]}, questions=True)
    assert f"{name}=" in options.as_call("price", "regression")
    command = options.as_command("t.csv", "price", "regression")
    assert f"{'--random-labels' if name == 'labels' else flag(name)}" in command


def test_editors_know_every_option():
    for names, typed in ((FIT, FillOptions), (QUESTIONS, Questions)):
        assert list(typing.get_type_hints(typed, localns={"Design": object})) == list(names)
        assert list(names) == [name for name in OPTIONS if name in names]
    assert {*FIT, *QUESTIONS} == set(OPTIONS)
    assert not set(FIT) & set(QUESTIONS)
    assert {one.panel for one in OPTIONS.values()} <= set(PANELS)
    assert set(inspect.signature(fill).parameters) == {"table", "target", *FIT}
    assert set(inspect.signature(FillResult.table).parameters) == {"self", *QUESTIONS}


def test_the_signature_says_what_an_option_may_be():
    parameters = inspect.signature(fill).parameters
    for name in FIT:
        hint = FillOptions.__annotations__[name].__forward_arg__
        assert parameters[name].annotation == hint
    assert "MethodName" in parameters["method"].annotation


@pytest.mark.parametrize("name", OPTIONS)
def test_json_brings_options_back(name):
    options = Options.read({name: OTHER[name]}, questions=True)
    assert Options.of_json(json.loads(json.dumps(options.as_json()))) == options
    assert list(options.changed()) == [name]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_flags_are_designs(design):
    flags = design.as_flags()
    assert (design_of_flags(flags) or Chance()) == design
    assert set(flags) <= set(LABEL_FLAGS) == set(LABEL_DEFAULTS)
    assert (
        eval(Options(labels=design).as_call("y", "regression").split("labels=")[1][:-1]) == design
    )


def test_what_is_asked_of_the_result_changes_no_fit(filled):
    surer = filled.guarantee_at(certainty=0.99, tolerance=1.0)
    assert surer.outside.certainty == 0.99
    assert surer.tolerance == 1.0
    assert surer.outside.at_most >= filled.guarantee.outside.at_most
    cut = filled.with_options(minimum=0.0, reject=0.2)
    assert cut.fit is filled.fit
    assert cut.diagnosis is filled.diagnosis
    assert filled.table() is not filled.frame
    pd.testing.assert_frame_equal(filled.table(), filled.frame)
    assert cut.with_options(minimum=None, reject=None).frame.equals(filled.frame)
    assert cut.again.endswith(".with_options(minimum=0.0, reject=0.2)")


def test_what_cannot_be_computed_is_a_note(filled, monkeypatch):
    """A map or a score that fails costs neither the answers nor the report."""
    from transduce.app.filling import diagnostics

    def fails(*args):
        raise ArithmeticError("no convergence")

    for name in ("row_map", "look_at_labels", "relevance", "gain_of_labels", "next_rows"):
        monkeypatch.setattr(diagnostics, name, fails)
    fresh = replace(filled, diagnosis=diagnostics.Diagnosis(filled.fit, filled.options))
    assert fresh.map is None
    assert fresh.relevance is None
    assert len(fresh.out_of_fold) == 0
    assert fresh.members["name"].tolist() == ["ridge"]  # how it was filled is known all the same
    page = fresh.report()
    assert sum("could not be computed: no convergence" in note for note in fresh.notes) == 5
    assert "The map could not be computed: no convergence" in page
    again = fresh.with_options(minimum=0.0)
    assert again.report().count("The map could not be computed") == page.count(
        "The map could not be computed"
    )
    failures = [note for note in fresh.notes if "could not be computed" in note]
    assert [note for note in again.notes if "could not be computed" in note] == failures


def test_what_cannot_be_computed_is_shown(tmp_path, monkeypatch):
    """The terminal and the report have the same notes, those on what they asked for among them."""
    from transduce.app.filling import hidden_labels

    def fails(*args, **settings):
        raise ValueError("too few labels of a class.")

    monkeypatch.setattr(hidden_labels, "cross_val_transduce", fails)
    size = np.arange(60.0)
    table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["fill", str(tmp_path / "t.csv"), "--target", "price", "--method", "ridge"]
    done = CliRunner().invoke(app, [*words, "--json", str(tmp_path / "t.json")])
    assert done.exit_code == 0
    notes = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["notes"]
    for what in ("How well the methods do", "What more labels would bring"):
        assert sum(note.startswith(f"{what} could not be computed: too few") for note in notes) == 1
        assert f"- {what} could not be computed" in done.output
    assert "filled (numbers, ridge)." in done.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"certainty": 0.9},
            r"fill has no option 'certainty': ask the result, as in fill\(...\).with_options",
        ),
        ({"groups": "person"}, "fill has no option 'groups': say how the labels came about"),
        ({"within": ["sex", "region"]}, r"as in labels=Chance\(within=...\)"),
        ({"magic": 1}, "fill has no option 'magic'"),
        ({"min": 0}, r"no option 'min': ask the result, as in fill\(...\).with_options\(minimum="),
        ({"seed": 0}, "fill has no option 'seed': in Python it is 'random_state'"),
    ],
)
def test_options_that_fill_has_not(given, words):
    with pytest.raises(TypeError, match=words):
        fill(pd.DataFrame({"y": [1.0, None]}), "y", **given)


def test_a_column_that_is_named_twice_counts_once():
    for named in ("sex", ["sex"], ["sex", "sex"]):
        assert Chance.of_flags({"within": named}) == Chance(within="sex")
    both = Chance.of_flags({"within": ["sex", "region", "sex"]})
    assert both == Chance(within=["sex", "region"])


def test_help_is_quick_to_import():
    """Options and the command line bring nothing heavy."""
    import subprocess
    import sys

    heavy = "[name for name in ('scipy', 'sklearn', 'pandas', 'numba', 'matplotlib') if name in sys.modules]"
    code = f"import sys, transduce.app.filling.options, transduce.app.cli.app; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_boolean_column_keeps_its_type_and_a_path_is_read(tmp_path):
    x = np.random.default_rng(0).normal(size=80)
    known = np.arange(80) % 2 == 0
    labels = pd.array(np.where(known, x > 0, None), dtype="boolean")
    filled = fill(pd.DataFrame({"x": x, "y": labels}), "y", method="ridge").frame["y_filled"]
    assert filled.dtype == "boolean"
    assert filled.notna().all()
    table = pd.DataFrame({"x": x, "y": np.where(known, 2.0 * x, np.nan)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = fill(tmp_path / "t.csv", "y", method="ridge", guarantee="column", confidence=0.8)
    assert result.source.name.endswith("t.csv")
    later = result.fill_later(pd.DataFrame({"x": [0.5]}))
    assert later["y_filled"].round(1).tolist() == [1.0]
    assert {"frame", "guarantee", "report"} <= set(dir(result))
    assert len(dir(result)) < 30
    assert "Why" in result.guarantee._repr_html_()


def half_known(labels, *, dtype=None):
    """Return a table whose second half has no label."""
    x = np.random.default_rng(0).normal(size=60)
    column = pd.Series(labels(x), dtype=dtype)
    column[30:] = pd.NA
    return pd.DataFrame({"x": x, "y": column})


@pytest.mark.parametrize(
    ("dtype", "labels"),
    {
        "boolean": lambda x: x > 0,
        "bool[pyarrow]": lambda x: x > 0,
        "Int64": lambda x: (x > 0).astype(int),
        "UInt8": lambda x: (x > 0).astype(int),
        "int64[pyarrow]": lambda x: (x > 0).astype(int),
        "string": lambda x: np.where(x > 0, "up", "down"),
        "category": lambda x: np.where(x > 0, "up", "down"),
        "datetime64[s]": lambda x: 946_684_800 + (1e6 * x).astype(int),
        "date32[day][pyarrow]": lambda x: pd.to_datetime((1e6 * x).astype(int), unit="s").date,
    }.items(),
)
def test_filled_values_have_the_type_of_the_target(dtype, labels):
    table = half_known(labels, dtype=dtype)
    filled = fill(table, "y", method="ridge").frame["y_filled"]
    assert filled.dtype == table["y"].dtype
    assert filled.notna().all()


def test_the_only_column_with_gaps_is_filled_by_itself(tmp_path):
    table = half_known(lambda x: x.round(2), dtype=float)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert fill(table, method="ridge").target == "y"
    assert fill(tmp_path / "t.csv", method="ridge").target == "y"
    assert fill(table.assign(z=table["y"]), method="ridge", ignore=["z"]).target == "y"
    with pytest.raises(ValueError, match=r"Several columns have empty cells, \['y', 'z'\]"):
        fill(table.assign(z=table["y"]))
    for full in (table[["x"]], table[["x"]].assign(y=None)):
        with pytest.raises(ValueError, match="No column has empty cells"):
            fill(full)


def test_later_rows_of_polars_come_back_in_polars():
    polars = pytest.importorskip("polars")
    table = half_known(lambda x: np.where(x > 0, "up", "down"))
    later = polars.DataFrame({"x": [-2.0, 2.0]})
    result = fill(table, "y", method="ridge")
    answered = result.fill_later(later)
    assert isinstance(answered, polars.DataFrame)
    assert answered["y_filled"].to_list() == ["down", "up"]
    assert answered.columns == result.fill_later(later.to_pandas()).columns.tolist()


def test_several_results_show_their_main_names():
    results = fill(two := half_known(lambda x: x, dtype=float).assign(z=1.0), ["y"], method="ridge")
    assert list(results) == ["y"]
    assert {"frame", "table", "items"} <= set(dir(results))
    assert not [name for name in dir(results) if name.startswith("_")]
    assert list(results.frame.columns[:3]) == list(two.columns)


def test_a_result_has_the_type_of_its_table():
    """So editors know what `frame` is: every form of a call names the type that it takes and gives."""
    forms = typing.get_overloads(fill)
    assert len(forms) == 4
    for form in forms:
        given = form.__annotations__["table"]
        found = form.__annotations__["return"]
        frame = "pd.DataFrame" if "Path" in given else "Frame"
        assert given == frame or frame == "pd.DataFrame"
        assert found.endswith(f"[{frame}]")
