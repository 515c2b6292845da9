"""The labelling page: seconds until the first row and until all rows are compared, and milliseconds of a click.

    python benchmarks/labelling.py [--opening 20000 1000000] [--tables texts] [--sizes 10000] [--out FOLDER]

The page of a new session is opened on short texts, on the same texts beside numbers and categories, and on vectors of
50 numbers, in files of Parquet; a process of its own imports the package, reads the file and shows the first row, then
compares all rows. Seconds of the clock and of the processor, and the peak of the process's memory. A million rows take
minutes and up to 12 GB.

A click is everything the server does for one decision: the line in the journal (on disk, synchronised), the labels
spread over the graph again, the next row chosen, the certificates with their curves, the lists and the map, and all of
it written as JSON. Graph and spectrum are there before. At 10,000 rows they are those of clustered rows; beyond 30,000
rows the spectrum is made up, since its numbers do not matter for the time. The table shows the median and the 95th
percentile over the clicks, by mode and number of classes, in milliseconds; and the 95th percentile of processor time,
which programs that run beside it do not change much.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from spectral_graph import clustered

from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.graph_features import GraphFeatures
from transduce.app.labelling.prepared import Prepared, prepare_matrix
from transduce.app.labelling.row_map import draw_map
from transduce.app.page.view import view
from transduce.methods.spectral_graph import Spectrum

LIMITS = {10_000: 100.0, 1_000_000: 1000.0}
MADE_UP = 30_000  # rows from which on the spectrum is made up


def made_up(n: int, d: int = 80, n_features: int = 50) -> Prepared:
    """Return features and a spectrum of the right sizes."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, d), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=0)
    spectrum = Spectrum(
        vectors,
        np.linspace(0.01, 0.5, d),
        np.zeros(n, dtype=np.int32),
        np.full(n, 2.0),
        np.zeros(d),
        np.zeros(d, dtype=int),
        np.arange(d),
    )
    graph = GraphFeatures(spectrum)
    unit = rng.standard_normal((n, n_features), dtype=np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return Prepared(unit[:, :20].astype(float), unit, spectrum, graph, draw_map(spectrum))


def table(n: int) -> tuple[pd.DataFrame, Prepared, np.ndarray]:
    if n > MADE_UP:
        prepared = made_up(n)
        truth = np.argmax(prepared.spectrum.vectors[:, :10], axis=1)
        return pd.DataFrame({"number": np.arange(n), "size": np.arange(n) % 97}), prepared, truth
    X, truth = clustered(n)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (
        pd.DataFrame(X.round(3), columns=[f"x{j}" for j in range(X.shape[1])]),
        prepare_matrix(X),
        truth,
    )


OPENED = """
import json, resource, sys, time
began = time.perf_counter()
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page.view import view
session = Session(sys.argv[1], "label", classes=["yes", "no"], journal=None, settings=SessionSettings(wait=False))
json.dumps(view(session))
first = time.perf_counter() - began, time.process_time()
session.preparation.join()
assert not session.preparation.words, session.preparation.words
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([*first, time.perf_counter() - began, time.process_time(), peak]))
"""


def short_texts(n: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return texts of 6 to 15 words, two fifths of them from the vocabulary of the text's topic, and the topics."""
    letters = "etaoinshrdlucmfwypvb"
    words = np.array(["".join(letters[(i // 20**k) % 20] for k in range(4)) for i in range(20_000)])
    frequent = np.cumsum(1.0 / np.arange(1, len(words) + 1))
    topics, lengths = rng.integers(12, size=n), rng.integers(6, 16, size=n)
    drawn = np.searchsorted(frequent / frequent[-1], rng.random(lengths.sum()))
    own = np.array([rng.permutation(len(words)) for _ in range(12)])
    drawn = np.where(rng.random(len(drawn)) < 0.4, own[np.repeat(topics, lengths), drawn], drawn)
    parts = np.split(words[drawn], np.cumsum(lengths)[:-1])
    return [" ".join(part) for part in parts], topics


def opening_table(kind: str, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    if kind == "vectors":
        centres, which = rng.normal(size=(30, 50)), rng.integers(30, size=n)
        return pd.DataFrame(
            {"vector": list((centres[which] + rng.normal(size=(n, 50))).astype(np.float32))}
        )
    texts, topics = short_texts(n, rng)
    frame = pd.DataFrame({"title": texts})
    if kind == "mixed":
        for j in range(6):
            frame[f"number {j}"] = rng.normal(size=n) + topics * (j % 3)
        for j in range(4):
            frame[f"kind {j}"] = np.array(list("abcdefgh"))[(topics + rng.integers(3, size=n)) % 8]
    return frame


def measure_opening(sizes, kinds):
    """Return seconds until the first row and until all rows are compared, and the peak of memory."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            for kind in kinds:
                path = Path(folder) / f"{kind}.parquet"
                opening_table(kind, n).to_parquet(path)
                said = subprocess.run(
                    [sys.executable, "-c", OPENED, str(path)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                names = ("first row s", "first row cpu s", "ready s", "ready cpu s", "peak GB")
                lines.append(
                    {
                        "table": kind,
                        "rows": n,
                        **dict(zip(names, json.loads(said.stdout), strict=True)),
                    }
                )
                print(lines[-1], flush=True)
    return pd.DataFrame(lines)


def clicks(frame, prepared, truth, n_classes, mode, count, folder):
    """Return milliseconds of each of some clicks, on the clock and of the processor, shape (count, 2)."""
    names = list(range(n_classes)) if n_classes > 2 else ["yes", "no"]
    code = truth if n_classes > 2 else np.where(truth == 0, 0, 1)
    first = np.concatenate([np.flatnonzero(code == c)[:3] for c in range(max(n_classes, 2))])
    labels = [names[c] for c in code]
    options = {
        "classes": names,
        "wanted": names[0],
        "settings": SessionSettings(seed=0, prepared=prepared),
    }
    if n_classes == 0:
        labels = (prepared.matrix[:, 0] + np.sin(prepared.matrix[:, 1])).tolist()
        options = {"settings": SessionSettings(seed=0, prepared=prepared, task="numbers")}
    journal = Path(folder) / f"{len(frame)}-{n_classes}-{mode}.jsonl"
    took = []
    with Session(frame, "label", journal=journal, **options) as session:
        for row in first:
            session.answer(labels[row], row=int(row))
        session.propose(mode)
        for _ in range(count):
            row = session.propose().row
            began = np.array([time.perf_counter(), time.process_time()])
            session.answer(labels[row], row=row)
            json.dumps(view(session))
            took.append(1e3 * (np.array([time.perf_counter(), time.process_time()]) - began))
    return np.array(took)


def measure(sizes, count):
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            frame, prepared, truth = table(n)
            for n_classes in (2, 10, 0):  # 0: numbers
                for mode in ("find", "learn", "audit") if n_classes else ("learn", "audit"):
                    took = clicks(frame, prepared, truth, n_classes, mode, count, folder)
                    lines.append(
                        {
                            "rows": n,
                            "classes": n_classes or "numbers",
                            "mode": mode,
                            "median ms": float(np.median(took[:, 0])),
                            "95th percentile ms": float(np.quantile(took[:, 0], 0.95)),
                            "processor ms": float(np.quantile(took[:, 1], 0.95)),
                            "limit ms": LIMITS.get(n, np.nan),
                        }
                    )
                    print(lines[-1], flush=True)
    return pd.DataFrame(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--opening", type=int, nargs="*", default=[20_000, 100_000, 1_000_000])
    parser.add_argument("--tables", nargs="+", default=["texts", "mixed", "vectors"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--clicks", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/output"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, found in (
        ("labelling_opening", measure_opening(given.opening, given.tables)),
        ("labelling", measure(given.sizes, given.clicks)),
    ):
        found.to_csv(given.out / f"{name}.csv", index=False)
        print(found.round(1).to_string(index=False))


if __name__ == "__main__":
    main()
