"""`transduce example` and `transduce demo`: real tables to try it on, and the truth beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from transduce.app.cli.app import DEMO_FOLDER, TABLES
from transduce.app.cli.fills import write_filled
from transduce.app.cli.inputs import Show, default_out, read_table
from transduce.app.cli.terminal import say, show_result
from transduce.app.filling import FillResult, fill
from transduce.core.files import make_folder, together, write_text
from transduce.core.types import OptionValues, Task
from transduce.core.words import percent
from transduce.datasets import load_houses


def write_example(path: Path, *, force: bool) -> None:
    """Write a real table with missing prices."""
    table, _ = load_houses()
    write_text(path, table.astype({"price": "Int64"}).to_csv(index=False), force=force)
    unknown = table["price"].isna().sum()
    say(f"{path}: {len(table)} districts of California in 1990, {unknown} of them without a price.")
    say(f"Now: transduce fill {path} --target price --min 0 --report houses.html")


def run_demo(name: str, folder: Path, options: OptionValues) -> Show:
    """Hide labels of a bundled table, fill them, and compare with the truth."""
    frame, target, truth = demo_table(name, options["random_state"])
    make_folder(folder)
    path = folder / f"{name}.csv"
    outputs = [path, Path(default_out(str(path))), folder / f"{name}.html", folder / f"{name}.json"]
    check_demo(folder, outputs)
    write_text(path, frame.to_csv(index=False), force=True)
    source = read_table(str(path), {"force": True})
    task: Task = "classification"
    if truth.dtype.kind == "f":
        task = "regression"
    result = fill(source, target, guarantee="column", task=task, **options)
    reports: list[Path | None] = [folder / f"{name}.html", folder / f"{name}.json"]
    with together():
        written = write_filled(source, [result], default_out(str(path)), [reports], force=True)
    result.compute_all()

    def show() -> None:
        say(f"{TABLES[name][2]}.")
        show_result(result, written)
        say(compare_with_truth(result, truth))

    return show


def check_demo(folder: Path, outputs: list[Path]) -> None:
    """Raise a FileExistsError if a demo would replace files that may not be of an earlier one."""
    taken = [path for path in outputs if path.exists()]
    if taken and folder != DEMO_FOLDER:  # which only demos write to
        raise FileExistsError(
            f"{taken[0]} exists already: name another folder with --folder, "
            f"or leave it out to use {DEMO_FOLDER}."
        )


def demo_table(name: str, seed: int = 0) -> tuple[pd.DataFrame, str, pd.Series]:
    """Return a bundled table with holes, the column they are in, and that column without them."""
    target, n_labels, _ = TABLES[name]
    if name == "houses":
        table, truth = load_houses()
        return table, target, truth
    from sklearn import datasets

    numeric = name == "diabetes"
    as_measured = {"scaled": False} if numeric else {}
    load = getattr(datasets, f"load_{name.replace('-', '_')}")
    bundle = load(as_frame=True, **as_measured)
    table = bundle.data.copy()
    truth = bundle.target.rename(target)
    if name in ("breast-cancer", "wine"):
        truth = truth.map(dict(enumerate(map(str, bundle.target_names)))).astype(object)
    hidden = np.random.default_rng(seed).permutation(len(table))[n_labels:]
    if numeric:
        table[target] = truth
        table.loc[hidden, target] = np.nan
    else:
        table[target] = truth.astype(object)
        table.loc[hidden, target] = None
    return table, target, truth


def compare_with_truth(filled: FillResult, truth: pd.Series) -> str:
    """Return what was guaranteed about a filled column, and what was observed."""
    answer = filled.answer
    bound = filled.guarantee.outside
    true = truth.to_numpy()[answer.rows]
    inside = answer.contains(true)
    regions = "intervals"
    if filled.task == "regression":
        share = 1.0 - float(((true - answer.values) ** 2).mean() / true.var())
        right = f"The values explain {100 * share:.0f} % of the variance of the hidden labels."
    else:
        regions = "sets"
        right = f"{100 * float((true == answer.values).mean()):.1f} % of the predictions are right."
    average = (
        f"at least {percent(filled.confidence)} on average over many such tables, and less in some"
    )
    n_outside = int((~inside).sum())
    observed = f"{100 * (1 - n_outside / len(true)):.1f} % of the hidden labels"
    lines = [f"Inside their {regions}: {observed}. Guaranteed: {average}."]
    if bound is not None:
        most = f"at most {bound.at_most} of {len(true)}, with {percent(filled.certainty)} certainty"
        lines.append(f"Outside their {regions}: {n_outside}. Guaranteed: {most}.")
    return "\n".join([*lines, right])
