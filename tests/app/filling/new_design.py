"""A design that the package does not have: one class, registered before the application is loaded.

``python -m tests.app.filling.new_design FOLDER`` says, as JSON, where it has come up.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from tests.few_draws import take_few_draws
from transduce.conformal.designs import BoundDesign, Design, Sampled
from transduce.conformal.designs.registry import register
from transduce.conformal.designs.rows import NUMBERS_OF_ROWS
from transduce.conformal.designs.weights import KNOWN, Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core.assumptions import Assumption


@dataclass(frozen=True)
class Weighted(Design):
    """The odds that a row has no label are known, up to a common factor."""

    odds: Any = field(metadata=NUMBERS_OF_ROWS)

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(name="label_odds", field="odds", help="A column with the odds of no label."),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="odds",
            place=65,
            title="I know the odds",
            words="A column holds them.",
            flag="label_odds",
            column="The column with the odds",
            kinds=("number",),
        ),
    )
    rests_on: ClassVar[Assumption] = Assumption(
        "the given odds of being labelled are right", condition="if the given odds are right"
    )
    testable: ClassVar[bool] = False
    can_bound_column: ClassVar[bool] = False

    def bind_rows(self, rows: Any) -> BoundDesign:
        return BoundWeighted(odds=rows.cells("odds").to_floats(), **rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundWeighted(BoundDesign):
    odds: np.ndarray

    def _weigh_rows(self, problem: Any, calibration: Any, answered: Any) -> Weights:
        return Weights.of(self.odds, calibration, problem.sample.unlabelled, KNOWN)


def main(folder: Path) -> None:
    """Print what the application makes of the design."""
    from typer.testing import CliRunner

    from transduce.app.cli.app import app
    from transduce.app.filling import fill
    from transduce.app.filling.options import Options
    from transduce.app.page.server import OpenServer
    from transduce.app.page.workspace import Choices, Workspace, spell_for_page
    from transduce.core.words import option

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300)})
    frame["odds"] = np.exp(frame["x"])
    frame["y"] = np.where(
        rng.random(300) < 1.0 / (1.0 + frame["odds"]), frame["x"] + rng.normal(size=300), np.nan
    )
    by_probability = frame.assign(odds=1.0 / (1.0 + frame["odds"]))
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    runner = CliRunner()
    files = ["--out", str(folder / "filled.csv"), "--json", str(folder / "numbers.json")]
    command = ["fill", str(path), "--target", "y", "--method", "ridge", "--label-odds", "odds"]
    filled = runner.invoke(app, [*command, *files])
    both = runner.invoke(app, [*command, *files, "--groups", "x"])
    design = Weighted("odds")
    options = Options(labels=design)
    with contextlib.redirect_stderr(io.StringIO()):
        result = fill(frame, "y", method="ridge", labels=design)
        same = fill(by_probability, "y", method="ridge", labels=Sampled("odds"))
    choices = Choices(target="y", way="odds", column="odds")
    try:
        fill(frame, "y", labels="odds")
    except ValueError as error:
        refusal = str(error)
    report = {
        "help": runner.invoke(app, ["fill", "--help"], terminal_width=100).output,
        "doc": fill.__doc__,
        "exit": filled.exit_code,
        "output": filled.output,
        "both": both.output,
        "headline": result.guarantee.headline,
        "assumptions": list(result.guarantee.assumptions),
        "same intervals": bool(
            np.allclose(
                result.frame[["y_lower", "y_upper"]],
                same.frame[["y_lower", "y_upper"]],
                equal_nan=True,
            )
        ),
        "call": options.as_call("y", "regression"),
        "command": options.as_command("table.csv", "y", "regression"),
        "read back": Options.of_json(json.loads(json.dumps(options.as_json()))) == options,
        "in python": option("label_odds"),
        "on the page": spell_for_page("label_odds", "odds"),
        "by the page": choices.options().design == design,
        "cards": [card["title"] for card in OpenServer(Workspace(folder)).state()["ways"]],
        "refusal": refusal,
    }
    print(json.dumps(report))


if __name__ == "__main__":  # and not where tests are collected: it would stay for other tests
    register(Weighted)
    with pytest.MonkeyPatch.context() as monkeypatch:
        take_few_draws(monkeypatch)
        main(Path(sys.argv[1]))
