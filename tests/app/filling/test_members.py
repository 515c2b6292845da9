"""Members of the blend behind `fill`: an exact relation is found, a tiny budget leaves one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.model_selection.test_linear import RELATIONS, draw
from transduce import fill
from transduce.datasets import load_houses


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("n_rows", "n_labels", "options"),
    [
        (60, 10, {}),
        (120, 60, {"guarantee": "column"}),
        (320, 80, {"sample": 100, "guarantee": "column"}),
    ],
)
@pytest.mark.parametrize("name", ["a total", "a conversion"])
def test_fill_finds_a_relation_to_rounding(name, n_rows, n_labels, options):
    """With few labels, with labels held out, and in a sample of the rows; beside a column of categories."""
    X, per_unit = draw(n_rows, 5, 0)
    truth = RELATIONS[name](X, per_unit)
    rng = np.random.default_rng(5)
    shown = rng.permutation(n_rows)[:n_labels]
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = rng.choice(["red", "green", "blue"], size=n_rows)
    frame["target"] = np.nan
    frame.loc[shown, "target"] = truth[shown]
    result = fill(frame, "target", random_state=0, **options)
    errors = np.abs(result.answer.values - truth[result.answer.rows])
    assert len(errors) == n_rows - n_labels
    assert errors.max() <= 1e-8 * truth.std()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_tiny_budget_leaves_one_member_and_no_error(seed):
    frame, _ = load_houses()
    table = frame.sample(140, random_state=seed).reset_index(drop=True)
    result = fill(table, "price", budget_seconds=0.001, random_state=seed)
    assert (result.members["weight"] == 1.0).sum() == 1
    left_out = result.members[result.members["weight"].isna()]
    assert left_out["note"].str.contains("of a budget of 0.001 s").all()
    (note,) = [str(note) for note in result.notes if "Left out of the blend" in str(note)]
    assert all(name.replace(" ", "_") in note for name in left_out["name"])
    enough = float(note.split("budget_seconds=")[1].split()[0])
    every = fill(table, "price", budget_seconds=enough, random_state=seed)
    assert every.members["weight"].notna().all()
    assert not any("Left out of the blend" in str(note) for note in every.notes)
    again = fill(table, "price", budget_seconds=0.001, random_state=seed)
    assert result.frame.equals(again.frame)
