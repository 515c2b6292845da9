"""Walk through the package as a reader would, and print how often the walk changes modules.

Usage: python .ci/walks.py

A walk is the functions of one call in the order in which each is first entered. Printed are the
functions, the modules they are in, how often the walk goes from one module to another, how many of
these are returns to a module that was left, and the same without the room `core`. It gates nothing.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import transduce

HOME = Path(transduce.__file__).parent
MOST_ENTERED = 3  # modules that are named for each walk


def walk(call: Callable[[], Any]) -> list[str]:
    """Return the module of each function that a call enters, in the order of first entries."""
    seen: dict[tuple[str, int], str] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(HOME)):
            return
        if code.co_name.startswith("<") or "__qualname__" in code.co_names[:2]:
            return  # a module or class that is imported, a comprehension, a lambda
        module = str(Path(code.co_filename).relative_to(HOME).with_suffix(""))
        seen.setdefault((code.co_filename, code.co_firstlineno), module)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(seen.values())


def count(modules: list[str]) -> str:
    """Return functions, modules, changes and returns of a walk."""
    entered = [module for module, _ in groupby(modules)]
    n_modules = len(set(modules))
    return f"{len(modules):4d} {n_modules:4d} {len(entered):4d} {len(entered) - n_modules:4d}"


def often(modules: list[str]) -> str:
    """Return the modules that a walk enters most often."""
    entered = [module for module, _ in groupby(modules)]
    ranked = sorted(set(entered), key=lambda module: (-entered.count(module), module))
    return ", ".join(f"{module} {entered.count(module)}" for module in ranked[:MOST_ENTERED])


def make_table(n_labels: int) -> pd.DataFrame:
    """Return a table of numbers and words with so many labels."""
    rng = np.random.default_rng(0)
    size = rng.normal(50.0, 10.0, 400)
    table = pd.DataFrame({"size": size, "region": rng.choice(["north", "south"], 400)})
    is_labelled = rng.permutation(400) < n_labels
    table["price"] = np.where(is_labelled, 2.0 * size + rng.normal(0.0, 5.0, 400), np.nan)
    return table


def on_command_line(folder: Path) -> None:
    """Fill a table of a file, with a report."""
    from typer.testing import CliRunner

    from transduce.app.cli.app import app

    words = f"fill {folder}/t.csv --target price --method ridge --report {folder}/r.html --force"
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 0, result.output


def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the walks by their names."""
    from transduce import RidgeConfidenceMachine, SpectralGraphTransducer, fill
    from transduce.app.labelling import Session, SessionSettings

    table = make_table(150)
    few = make_table(60)
    X = np.random.default_rng(1).normal(size=(60, 3))
    numbers = np.where(np.arange(60) < 30, X[:, 0], np.nan)
    classes = np.where(np.arange(60) < 30, np.where(X[:, 0] > 0.0, "a", "b"), None)
    table.to_csv(folder / "t.csv", index=False)
    rows = pd.DataFrame(X, columns=list("abc"))
    settings = SessionSettings(seed=1)
    session = Session(rows, "y", classes=["yes", "no"], settings=settings)

    def open_session() -> None:
        Session(rows, "y", classes=["yes", "no"], settings=settings)

    def answer_one(mode: str) -> None:
        session.propose(mode)
        session.answer("yes")

    return {
        'fill, method="ridge"': lambda: fill(table, "price", method="ridge", guarantee="column"),
        "fill, auto": lambda: fill(few, "price"),
        "confidence machine": lambda: RidgeConfidenceMachine().fit(X, numbers),
        "spectral graph": lambda: SpectralGraphTransducer(random_state=0).fit(X, classes),
        "command line": lambda: on_command_line(folder),
        "session opened": open_session,
        "session, learn": lambda: answer_one("learn"),
        "session, audit": lambda: answer_one("audit"),
    }


def main() -> None:
    """Print all walks, the second time each is taken: imports and caches are behind them."""
    warnings.simplefilter("ignore")
    print(f"{'':22s} functions, modules, changes, returns | without core | entered most often")
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        for title, call in walks(Path(name)).items():
            if not title.startswith("session, "):
                call()
            modules = walk(call)
            others = [module for module in modules if not module.startswith("core")]
            print(f"{title:22s} {count(modules)} | {count(others)} | {often(others)}")


if __name__ == "__main__":
    main()
