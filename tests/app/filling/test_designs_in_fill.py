"""Designs of the science in `fill` and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.conformal.test_overlapping import table
from tests.conformal.test_seen import seen_problem
from transduce import fill
from transduce.app.cli.app import app
from transduce.app.filling.options import Options
from transduce.conformal import Chance, Seen
from transduce.conformal.designs.registry import design_of_flags


def test_fill_and_the_command_line_take_several_columns():
    frame = table()
    design = Chance(within=["sex", "region"])
    result = fill(frame, "y", method="ridge", labels=design)
    assert result.guarantee.within == "categories"
    assert "sex" in result.fit.features.encoder.columns
    options = Options(labels=design)
    assert "--within sex --within region" in options.as_command("t.csv", "y", "regression")
    assert Options.of_json(json.loads(json.dumps(options.as_json()))) == options
    assert design_of_flags({"within": ["sex", "region"]}) == design
    assert design_of_flags({"within": ["sex"]}) == Chance(within="sex")
    assert design_of_flags({"within": []}) is None


def test_too_few_others_are_refused_in_words():
    X, truth, seen, labelled = seen_problem(n_labels=5)
    table = pd.DataFrame({"llm": X[:, 0], "shown": seen, "y": np.where(labelled, truth, np.nan)})
    how = {"method": "ridge", "predictions": "llm", "labels": Seen("shown")}
    with pytest.raises(ValueError, match="5 labels of rows that were not seen cannot guarantee"):
        fill(table, "y", **how)
    with pytest.raises(ValueError, match="marks all labelled rows as seen"):
        fill(table.assign(shown=True), "y", **how)


def test_on_the_command_line(tmp_path):
    X, truth, seen, labelled = seen_problem()
    table = pd.DataFrame({"llm": X[:, 0], "shown": seen, "y": np.where(labelled, truth, np.nan)})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["fill", str(tmp_path / "t.csv"), "--target", "y", "--method", "ridge"]
    words += ["--predictions", "llm", "--seen", "shown", "--json", str(tmp_path / "t.json")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "--seen shown" in (tmp_path / "t.json").read_text()
    assert "--predictions llm" in (tmp_path / "t.json").read_text()
