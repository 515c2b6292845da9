"""How long an audit takes, after the imports, and how much memory it needs.

Usage: python benchmarks/audit_speed.py [--rows 100000 1000000] [--classes 2 8] [--kind frame csv]

A table has predictions, 300 checks, four groups, numbers and short texts. Printed are seconds on
the clock and of the processor, and the largest memory of the process so far, also as a ratio to
the table itself.
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

N_CHECKED = 300


def make_table(n_rows: int, n_classes: int) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    names = np.array([f"class {code}" for code in range(n_classes)], dtype=object)
    truth = generator.integers(0, n_classes, n_rows)
    right = generator.random(n_rows) < 0.95
    predicted = np.where(right, truth, generator.integers(0, n_classes, n_rows))
    checked = generator.choice(n_rows, N_CHECKED, replace=False)
    gold = np.full(n_rows, None, dtype=object)
    gold[checked] = names[truth[checked]]
    words = generator.integers(0, n_rows, n_rows).astype(str)
    return pd.DataFrame(
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


def timed(table: pd.DataFrame | Path) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    audit(table, "gold", "llm", by="region").as_json()
    return time.perf_counter() - clock, time.process_time() - processor


def peak_memory() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n_rows: int, n_classes: int, kind: str, folder: Path) -> None:
    table = make_table(n_rows, n_classes)
    line = f"{n_rows:>9,} rows, {n_classes} classes, {kind:>5}: "
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
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--kind", nargs="+", default=["frame", "csv"], choices=["frame", "csv"])
    given = parser.parse_args()
    timed(make_table(1000, 2))  # imports, and compiling where nothing is cached
    with tempfile.TemporaryDirectory() as folder:
        for kind, n_rows, n_classes in itertools.product(given.kind, given.rows, given.classes):
            run(n_rows, n_classes, kind, Path(folder))


if __name__ == "__main__":
    main()
