"""To do it again: the command and the call that a report prints give the same table, bit for bit."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import transduce
from transduce import conformal
from transduce.app.cli.app import app
from transduce.app.cli.inputs import read_options
from transduce.app.filling.engine import fill_table
from transduce.core.words import flag

N = 320
COMMON = {
    "confidence": [0.8, 0.85],
    "certainty": [0.8, 0.99],
    "guarantee": ["column", "row"],
    "ignore": [["b"], ["b", "note"]],
    "text": [["note"]],
    "number": [["note"]],
    "id": ["id"],
    "missing": [["-", "-9"]],
    "label_next": [True],
    "suspect": [True],
    "similar": [True],
    "reject": [0.1],
    "budget_seconds": [77.0],
    "sample": [110, 150],
    "random_state": [3],
    "n_jobs": [1],
    "random_labels": ["drawn"],
    "sampling_probability": ["chance"],
    "shift": ["estimate", "ignore"],
    "sensitivity": [1.2],
    "groups": ["group"],
    "within": ["kind"],
    "order": ["id"],
}
OF_TASK = {
    "price": {
        "tolerance": [2.5],
        "minimum": [-40.0],
        "maximum": [60.0],
        "limit": [["<-35", ">55"]],
    },
    "sort": {"label_conditional": [True], "probabilities": [True]},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, N)).round(3)
    price = (3 * a + b + rng.normal(size=N)).round(2)
    sort = np.where(a + 0.5 * rng.normal(size=N) > 0, "yes", "no")
    labelled = rng.random(N) < 0.45
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "a": a,
            "b": np.where(np.arange(N) % 50 == 0, -9.0, b),
            "note": np.where(a > 0.2, "warm and dry", "cold - wet"),
            "kind": np.where(b > 0, "x", "y"),
            "group": np.arange(N) // 3,
            "drawn": labelled & (rng.random(N) < 0.5),
            "chance": 0.45,
            "price": np.where(labelled, price, np.nan),
            "sort": np.where(labelled, sort, None),
        }
    )


def draw_options(seed: int) -> tuple[str, dict]:
    """Return a target and a random set of options."""
    rng = np.random.default_rng(seed)
    target = str(rng.choice(["price", "sort"]))
    choices = COMMON | OF_TASK[target]
    names = rng.choice(list(choices), size=rng.integers(1, 5), replace=False)
    options = {name: choices[name][rng.integers(len(choices[name]))] for name in names.tolist()}
    if options.get("number") == options.get("text"):  # a column is read in one way
        options.pop("number", None)
    return target, {"method": "ridge", **options}


def as_words(options: dict) -> list[str]:
    """Return options as a user writes them on the command line."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [flag(name)] if one is True else [f"{flag(name)}={one}"]
    return words


def run(*words: str):
    return CliRunner().invoke(app, list(words))


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))]
)
def test_the_printed_call_does_it_again(table, seed):
    for attempt in range(10):  # sets of options that exclude each other are drawn anew
        target, options = draw_options(seed + 1000 * attempt)
        other = "sort" if target == "price" else "price"
        options["ignore"] = [*options.get("ignore", []), other]
        try:
            result = fill_table(table, target, read_options(options))
            break
        except ValueError:
            continue
    else:
        pytest.fail("ten sets of options in a row were refused")
    call = result.summary()["again"]
    twin = eval(call, {"fill": transduce.fill, "table": table, **vars(conformal)})
    pd.testing.assert_frame_equal(twin.frame, result.frame, check_exact=True)
    assert twin.guarantee == result.guarantee


@pytest.mark.parametrize(
    "seed", [100, *(pytest.param(k, marks=pytest.mark.slow) for k in range(101, 108))]
)
def test_the_printed_command_does_it_again(table, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    kind = "csv" if seed % 2 else "xlsx"
    target, options = draw_options(seed)
    words = as_words(options)
    if kind == "csv":
        table.to_csv("t.csv", index=False)
    else:
        with pd.ExcelWriter("t.xlsx") as book:
            table[["id"]].to_excel(book, sheet_name="One", index=False)
            table.to_excel(book, sheet_name="Two", index=False)
        words.append("--sheet=Two")
    done = run(
        "fill",
        f"t.{kind}",
        "--target",
        target,
        "--out",
        "first.csv",
        "--json",
        "first.json",
        "--quiet",
        *words,
    )
    assert done.exit_code == 0, done.output
    again = shlex.split(json.loads(Path("first.json").read_text())["again"])
    assert again[:3] == ["transduce", "fill", f"t.{kind}"]
    done = run(*again[1:], "--out", "second.csv", "--json", "second.json", "--quiet")
    assert done.exit_code == 0, done.output
    assert Path("second.csv").read_bytes() == Path("first.csv").read_bytes()
    assert json.loads(Path("second.json").read_text())["again"] == shlex.join(again)
