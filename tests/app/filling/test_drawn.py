"""Rows drawn at random to be labelled, through `fill`, folders and the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.conformal.test_random_labels import biased
from transduce import fill
from transduce.app.cli.app import app
from transduce.app.filling import fill_folder, fit_fill
from transduce.conformal import Drawn


def frame_of(seed=0):
    X, y, truth, drawn = biased(seed)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, drawn=np.where(drawn, "yes", ""))
    return frame, truth


def test_fill_takes_a_column_of_marks():
    frame, truth = frame_of()
    result = fill(frame, "y", method="ridge", labels=Drawn("drawn"))
    assert result.guarantee.n_calibration == 19
    assert result.guarantee.headline == "exact"
    assert result.columns.set_index("name")["kind"]["drawn"] == "ignored"
    unlabelled = result.answer.rows
    assert (
        ~result.answer.regions.contains(truth[unlabelled])
    ).sum() <= result.model.outside_at_most(0.9999)


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({"drawn": "perhaps"}, {}, "holds 'perhaps': write true or yes"),
        ({"drawn": ""}, {}, "No row that 'drawn' marks as drawn at random has a label"),
        (
            {},
            {"confidence": 0.96},
            "19 labels of rows drawn at random cannot guarantee 96 %: it takes 24",
        ),
        ({}, {"guarantee": "row"}, "leave out one of the two"),
        ({}, {"labels": Drawn("y")}, "is the target"),
    ],
)
def test_bad_marks_get_one_sentence(change, settings, words):
    frame, _ = frame_of()
    with pytest.raises(ValueError, match=words):
        fill(frame.assign(**change), "y", **({"labels": Drawn("drawn")} | settings))


def test_draw_label_and_fill(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, truth = frame_of()
    frame = frame.drop(columns="drawn")
    frame.loc[~np.isin(np.arange(220), np.argsort(-frame["a"])[:40]), "y"] = np.nan
    frame.to_csv("t.csv", index=False)
    run = CliRunner().invoke
    found = run(app, ["draw", "t.csv", "--target", "y", "--number", "19"])
    assert found.exit_code == 0, found.output
    first = pd.read_csv("t-draw.csv")
    seed = str(first["y_random_seed"][0])
    assert f"with the seed {seed};" in found.output
    again = run(
        app, ["draw", "t.csv", "--target", "y", "--number", "19", "--seed", seed, "--force"]
    )
    pd.testing.assert_frame_equal(pd.read_csv("t-draw.csv"), first)
    other = run(app, ["draw", "t.csv", "--target", "y", "--number", "19", "--out", "other.csv"])
    assert again.exit_code == other.exit_code == 0
    assert not pd.read_csv("other.csv")["y_random_seed"].equals(first["y_random_seed"])
    assert "transduce fill t-draw.csv --target y --random-labels y_random" in found.output
    drawn = pd.read_csv("t-draw.csv")
    assert drawn["y_random"].sum() == 19
    assert drawn["y"][drawn["y_random"]].isna().all()
    pd.testing.assert_frame_equal(drawn[["a", "b", "y"]], pd.read_csv("t.csv"))
    drawn.loc[drawn["y_random"], "y"] = truth[drawn["y_random"]]
    drawn.to_csv("back.csv", index=False)
    words = "fill back.csv --target y --random-labels y_random --method ridge"
    found = run(app, words.split())
    assert found.exit_code == 0, found.output
    assert "Guarantee, exact: The interval" in found.output
    assert "Left out" not in found.output
    again = run(app, ["draw", "t-draw.csv", "--target", "y"])
    assert again.exit_code == 1
    assert "already, from an earlier draw" in again.output
    many = run(app, ["draw", "t.csv", "--target", "y", "--number", "999", "--force"])
    assert "999 of them cannot be drawn" in many.output


def test_large_tables_split_drawn_rows_whatever_became_of_them(tmp_path):
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    truth = frame["a"] + 0.1 * rng.normal(size=n)
    drawn = np.isin(np.arange(n), 100 + rng.choice(800, 80, replace=False))
    empty = np.flatnonzero(drawn)[:4]
    known = (np.arange(n) < 100) | drawn
    known[empty] = False
    frame = frame.assign(y=truth.where(known), drawn=drawn)
    result = fill(frame, "y", labels=Drawn("drawn"), method="ridge", sample=300)
    guarantee = result.guarantee
    assert (guarantee.kind, guarantee.n_empty, guarantee.n_calibration) == ("exact", 4, 76)
    assert guarantee.outside.of == int((~known).sum()) - 4
    assert result.frame["y_filled"][empty].notna().all()
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        frame.iloc[300 * k : 300 * k + 300].to_csv(parts / f"{k}.csv", index=False)
    settings = {"labels": Drawn("drawn"), "method": "ridge", "sample": 300}
    folder = fill_folder(str(parts), "y", tmp_path / "out", **settings)
    assert folder.guarantee.n_empty == 4
    assert folder.guarantee.outside.of == guarantee.outside.of
    fitted = fit_fill(frame, "y", **settings)
    later = fitted.guarantee_of_later(100)
    assert later.outside.of == 100
    assert later.n_calibration + later.n_empty == 40
