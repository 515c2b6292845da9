"""How long an audit takes, after the imports, and how much memory it needs.

Usage: python benchmarks/audit_speed.py [--rows 100000 1000000] [--classes 2 8 50]
                                        [--kind frame csv] [--draw simple class]

A table has predictions, 300 checks from a simple draw or from each predicted class, four groups,
numbers and short texts. Printed are seconds on the clock and of the processor, and the largest
memory of the process so far, also as a ratio to the table itself.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from transduce import audit
from transduce.population.draws import allocate, draw_from_strata

N_CHECKED = 300


def make_table(n_rows: int, n_classes: int, draw: str = "simple") -> pd.DataFrame:
    generator = np.random.default_rng(0)
    names = np.array([f"class {code}" for code in range(n_classes)], dtype=object)
    # A few classes are frequent and most are rare, as in real tables.
    shares = 1.0 / np.arange(1, n_classes + 1)
    shares /= shares.sum()
    truth = generator.choice(n_classes, n_rows, p=shares)
    right = generator.random(n_rows) < 0.95
    predicted = np.where(right, truth, generator.choice(n_classes, n_rows, p=shares))
    checked = generator.choice(n_rows, N_CHECKED, replace=False)
    if draw == "class":
        numbers = allocate(np.bincount(predicted, minlength=n_classes), N_CHECKED, "neyman")
        checked = draw_from_strata(np.ones(n_rows, bool), predicted, numbers, 0).rows
    gold = np.full(n_rows, None, dtype=object)
    gold[checked] = names[truth[checked]]
    words = generator.integers(0, n_rows, n_rows).astype(str)
    table = pd.DataFrame(
        {
            "row_id": np.arange(n_rows),
            "llm": names[predicted],
            "gold": gold,
            "region": generator.choice(["north", "east", "south", "west"], n_rows),
            "length": generator.integers(1, 500, n_rows),
            "score": generator.random(n_rows),
            "text": np.char.add("message about ", words).astype(object),
        }
    )
    if draw == "class":
        table["gold_random"] = np.isin(np.arange(n_rows), checked)
        table["gold_random_stratum"] = table["llm"]
    return table


def timed(table: pd.DataFrame | Path) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    audit(table, "gold", "llm", by="region").as_json()
    return time.perf_counter() - clock, time.process_time() - processor


def peak_memory() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n_rows: int, n_classes: int, draw: str, kind: str, folder: Path) -> None:
    table = make_table(n_rows, n_classes, draw)
    line = f"{n_rows:>9,} rows, {n_classes:>2} classes, {draw:>6} draw, {kind:>5}: "
    if kind == "frame":
        clock, processor = timed(table)
    else:
        path = folder / "judged.csv"
        table.to_csv(path, index=False)
        clock, processor = timed(path)
    size = table.memory_usage(deep=True).sum() / 2**20
    peak = peak_memory()
    line += f"{clock:.1f} s on the clock, {processor:.1f} s of the processor, "
    print(line + f"peak {peak:,.0f} MiB ({peak / size:.1f} of the table)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 5, 8, 20, 50])
    parser.add_argument("--kind", nargs="+", default=["frame", "csv"], choices=["frame", "csv"])
    parser.add_argument("--draw", nargs="+", default=["simple", "class"])
    given = parser.parse_args()
    timed(make_table(1000, 2))  # imports, and compiling where nothing is cached
    with tempfile.TemporaryDirectory() as folder:
        for cell in itertools.product(given.kind, given.rows, given.classes, given.draw):
            kind, n_rows, n_classes, draw = cell
            run(n_rows, n_classes, draw, kind, Path(folder))


if __name__ == "__main__":
    main()
