"""How cost grows with the number of rows, and which limit of the machine it is near.

    python benchmarks/scaling.py [--quick] [--out FOLDER]

One fit with fixed settings (nothing searched) at sizes that grow geometrically, on one thread, in seconds of the
processor; the best of three runs, fewer where a run takes long. The exponent is the slope of log seconds on log n over
the three largest sizes. Operations or bytes of the dominating step are counted by formula, of the spectrum as they are
made; divided by the seconds and by what the machine does in the same run (a product of two matrices; adding two long
arrays into a third) they give the share of its limit.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bayesian import make_kernel, time_ours
from spectral_graph import clustered, few_labels
from threadpoolctl import threadpool_limits

from transduce import (
    BayesianTransducer,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveRidge,
)
from transduce.methods.gaussian_process.process import Objective
from transduce.methods.spectral_graph import Spectrum, graph_spectrum, neighbor_graph, spectrum

D, CENTRES, N_UNLABELLED, N_LABELS, N_BOUNCES = 20, 250, 500, 200, 20_000
BUDGET_S = 6.0  # beyond this no run of a size is repeated
UPPER = 3  # sizes that the exponent is fitted to


@dataclass(frozen=True)
class System:
    """What to time: a name, the sizes, and what makes the work of one size.

    Parameters
    ----------
    name, formula : str
        The formula is that of `count`, in words.
    expected : str
        The exponent that the docs' formula of the cost gives.
    unit : {"flops", "single flops", "bytes", ""}
        What `count` counts.
    sizes : tuple of int
    prepare : callable
        From n to a function to be timed. What it returns, if it is a number, is the seconds, already measured.
    count : callable
        From n to operations or bytes.
    """

    name: str
    expected: str
    unit: str
    formula: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Callable[[], Any]]
    count: Callable[[int], float]


def regression(n, n_labelled, d=D):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X @ rng.normal(size=d) / 3 + 0.3 * rng.normal(size=n)
    return X, np.append(y[:n_labelled], np.full(n - n_labelled, np.nan))


def ridge_exact(n):
    X, y = regression(n, n // 2)
    model = TransductiveRidge(width=5.0, ridge=1.0, tether=1.0)
    return lambda: model.fit(X, y)


def ridge_centres(n):
    X, y = regression(n, 500)
    model = TransductiveRidge(width=5.0, ridge=1.0, tether=1.0, centres=CENTRES, random_state=0)
    return lambda: model.fit(X, y)


def gaussian(n):
    X, y = regression(n, n)
    objective, parameters = Objective(X, y, (0.0, 0.0)), np.log(np.append(np.full(D, 0.2), 0.1))
    return lambda: objective(parameters)


def bounce(n):
    case = make_kernel(n // 2, n // 2)
    return lambda: N_BOUNCES * time_ours(*case, clock=time.process_time)


def bayesian(n):
    X, _ = regression(n, n)
    y = np.where(np.arange(n) < N_LABELS, X[:, 0] > 0, np.nan)
    model = BayesianTransducer(
        width=5.0,
        softness=0.0,
        n_balls=2,
        max_bounces=20_000,
        tolerance=1e-9,
        n_jobs=1,
        random_state=0,
    )
    return lambda: model.fit(X, y)


def primal(n):
    X, y = regression(n + 1_000, n)
    model = RidgeConfidenceMachine(kernel="linear")
    return lambda: model.fit(X, y)


def dual(n):
    X, y = regression(n + N_UNLABELLED, n)
    model = RidgeConfidenceMachine(kernel="rbf", width=5.0)
    return lambda: model.fit(X, y)


def graph(method):
    def prepare(n):
        X, _ = clustered(n)
        return lambda: neighbor_graph(X, method=method, random_state=0, n_jobs=1)

    return prepare


def labelling(n):
    """Another labelling of rows whose spectrum is there; that it is made up does not change the work."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, 80), dtype=np.float32) / np.float32(np.sqrt(n))
    nothing = np.zeros(n, dtype=np.int32)
    spectrum = Spectrum(
        vectors,
        np.linspace(0.1, 0.9, 80),
        nothing,
        np.ones(n),
        np.zeros(80),
        np.zeros(80, int),
        np.arange(80),
    )
    y = few_labels(np.arange(n) % 10, rng)
    model = SpectralGraphTransducer(metric="precomputed", random_state=0).fit(spectrum, y)
    return lambda: model.relabel(y)


SYSTEMS = (
    System(
        "TransductiveRidge, centres at all rows",
        "3",
        "flops",
        "8.6 n³",
        (190, 375, 750, 1_500, 3_000),
        ridge_exact,
        lambda n: 8.6 * n**3,
    ),
    System(
        f"TransductiveRidge, p = {CENTRES} centres",
        "1",
        "flops",
        "6 n p² + 2 n p d",
        (8_000, 16_000, 32_000, 64_000, 128_000),
        ridge_centres,
        lambda n: 6.0 * n * CENTRES**2 + 2.0 * n * CENTRES * D,
    ),
    System(
        "TransductiveGPRegressor, one evaluation with gradient",
        "3",
        "flops",
        "n³ + 3 n² d",
        (250, 500, 1_000, 2_000, 4_000),
        gaussian,
        lambda n: float(n) ** 3 + 3.0 * n**2 * D,
    ),
    System(
        f"BayesianTransducer, {N_BOUNCES:,} bounces, half labelled",
        "1",
        "bytes",
        "8 n a bounce",
        (500, 1_000, 2_000, 4_000, 8_000),
        bounce,
        lambda n: 8.0 * n * N_BOUNCES,
    ),
    System(
        f"BayesianTransducer, fit, {N_LABELS} labels",
        "1",
        "",
        "",
        (1_000, 2_000, 4_000, 8_000, 16_000),
        bayesian,
        lambda n: np.nan,
    ),
    System(
        "SpectralGraphTransducer, graph, exact",
        "2",
        "single flops",
        "2 n² d",
        (1_500, 3_000, 6_000, 12_000, 24_000),
        graph("exact"),
        lambda n: 2.0 * n**2 * 50,
    ),
    System(
        "SpectralGraphTransducer, labelling, 10 classes",
        "1",
        "bytes",
        "320 n: one reading of 80 vectors",
        (64_000, 128_000, 256_000, 512_000, 1_024_000),
        labelling,
        lambda n: 320.0 * n,
    ),
    System(
        "RidgeConfidenceMachine, linear",
        "1",
        "flops",
        "2 n d²",
        (4_000, 16_000, 64_000, 256_000, 1_024_000),
        primal,
        lambda n: 2.0 * n * D**2,
    ),
    System(
        f"RidgeConfidenceMachine, rbf, m = {N_UNLABELLED} unlabelled",
        "2 to 3",
        "flops",
        "n³ / 3 + 2 n² m",
        (375, 750, 1_500, 3_000, 6_000),
        dual,
        lambda n: n**3 / 3 + 2.0 * n**2 * N_UNLABELLED,
    ),
)
GRAPH_SIZES = (24_000, 36_000, 54_000, 80_000)


def best_of(work, repeats=3):
    """Return the shortest of some runs; a number that the work returns is taken for its seconds."""
    times, began = [], time.process_time()
    while not times or (len(times) < repeats and time.process_time() - began < BUDGET_S):
        start = time.process_time()
        found = work()
        took = time.process_time() - start
        times.append(found if isinstance(found, float) else took)
    return min(times)


def machine_limits():
    """Return operations a second of a matrix product in double and single precision, and bytes a second of adding."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(1_500, 1_500))
    B = A.astype(np.float32)
    a, b, c = (np.ones(8_000_000) for _ in range(3))
    return {
        "flops": 2 * 1_500**3 / best_of(lambda: A @ A, 5),
        "single flops": 2 * 1_500**3 / best_of(lambda: B @ B, 5),
        "bytes": 24 * len(a) / best_of(lambda: np.add(a, b, out=c), 5),
    }


def time_system(system, n_sizes) -> Iterator[dict[str, Any]]:
    """Yield one line for each size; the smallest is run once before, which compiles."""
    system.prepare(system.sizes[0])()
    for n in system.sizes[:n_sizes]:
        seconds = best_of(system.prepare(n))
        print(f"  {system.name}: n = {n:,}, {seconds:.3g} s", flush=True)
        yield line(
            system.name, system.expected, system.unit, system.formula, n, seconds, system.count(n)
        )


def line(name, expected, unit, formula, n, seconds, count):
    return {
        "system": name,
        "expected": expected,
        "unit": unit,
        "formula": formula,
        "n": n,
        "seconds": seconds,
        "count": count,
    }


class CountedSteps:
    """Counts the bytes that the steps of the Chebyshev filter move, while it is entered."""

    def __enter__(self):
        self.bytes, self.kept = 0.0, spectrum.Filter._step

        def step(matrix, now, past, scale, shift):
            # The matrix once, one panel read, one read and written, in single precision.
            self.bytes += sum(part.nbytes for part in matrix._matrix) + 3 * now.nbytes
            return self.kept(matrix, now, past, scale, shift)

        spectrum.Filter._step = step
        return self

    def __exit__(self, *_):
        spectrum.Filter._step = self.kept


def time_graphs(n_sizes) -> Iterator[dict[str, Any]]:
    """Yield lines for the graph of many rows and its spectrum."""
    words = [f"SpectralGraphTransducer, {part}" for part in ("graph, approximate", "spectrum")]
    graph("approximate")(3_000)()
    for n in GRAPH_SIZES[:n_sizes]:
        X, _ = clustered(n)
        seconds = best_of(
            lambda X=X: neighbor_graph(X, method="approximate", random_state=0, n_jobs=1), 2
        )
        yield line(words[0], "1 to 1.5", "", "", n, seconds, np.nan)
        A = neighbor_graph(X, method="approximate", random_state=0, n_jobs=1)
        with CountedSteps() as counted:
            graph_spectrum(A, random_state=0, n_jobs=1)
        seconds = best_of(lambda A=A: graph_spectrum(A, random_state=0, n_jobs=1), 2)
        yield line(
            words[1],
            "1",
            "bytes",
            "counted: matrix and block at each step",
            n,
            seconds,
            counted.bytes,
        )
        print(f"  SpectralGraphTransducer: n = {n:,}", flush=True)


def measure(size):
    """Return seconds, counts and the machine's limits at all sizes."""
    n_sizes = 3 if size == "quick" else 5
    with threadpool_limits(1):
        before = machine_limits()
        lines = [found for system in SYSTEMS for found in time_system(system, n_sizes)]
        lines += list(time_graphs(n_sizes))
        after = machine_limits()
    table = pd.DataFrame(lines)
    best = {unit: max(before[unit], after[unit]) for unit in before}
    table["limit"] = table["unit"].map(best)
    return table.sort_values("system", kind="stable")


def exponent(part):
    """Return the slope of log seconds on log n over the largest sizes."""
    upper = part.tail(UPPER)
    return float(np.polyfit(np.log(upper["n"]), np.log(upper["seconds"]), 1)[0])


def report(table):
    """Return the table of exponents and shares as Markdown."""
    words = {
        "flops": "operations",
        "single flops": "operations, single precision",
        "bytes": "bytes",
    }
    lines = ["| system | n | exponent seen | expected | counted | share of the limit |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, part in table.fillna({"unit": "", "formula": ""}).groupby("system", sort=False):
        last = part.iloc[-1]
        sizes = f"{part['n'].iloc[-min(UPPER, len(part))]:,} to {last['n']:,}"
        counted, share = "", ""
        if last["unit"]:
            counted = f"{last['formula']} ({words[last['unit']]})"
            share = f"{100 * last['count'] / last['seconds'] / last['limit']:.0f} %"
        lines.append(
            f"| {name} | {sizes} | {exponent(part):.2f} | {last['expected']} | {counted} | {share} |"
        )
    return "\n".join(lines)


def draw(table, path):
    """Draw seconds on n, one panel for each method, fitted slopes in the legends."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {
        "svg.hashsalt": "transduce",
        "svg.fonttype": "none",
        "font.size": 9,
        "legend.frameon": False,
    }
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    methods = table["system"].str.partition(",")[0]
    colours, marks = ("#1b6ca8", "#c8371e", "#3f8f3f", "#777777"), "os^D"
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            2, 3, figsize=(10, 6.4), sharex=True, sharey=True, layout="constrained"
        )
        for axis, method in zip(axes.flat, methods.unique(), strict=False):
            for i, (name, part) in enumerate(
                table[methods == method].groupby("system", sort=False)
            ):
                slope, upper = exponent(part), part.tail(UPPER)
                label = f"{name.partition(', ')[2]}: {slope:.2f}"
                axis.loglog(
                    part["n"], part["seconds"], marks[i], color=colours[i], ms=4, label=label
                )
                middle = np.exp(np.log(upper[["n", "seconds"]]).mean())
                fitted = middle["seconds"] * (upper["n"] / middle["n"]) ** slope
                axis.loglog(upper["n"], fitted, color=colours[i], lw=1)
            box = {"loc": "lower left", "bbox_to_anchor": (-0.03, 1.0), "alignment": "left"}
            axis.legend(title=method, fontsize=8, title_fontsize=9, handletextpad=0.2, **box)
            axis.set_xlabel("n")
            axis.tick_params(labelbottom=True)
            axis.minorticks_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("seconds, one thread")
        for axis in axes.flat[methods.nunique() :]:
            axis.remove()
        figure.savefig(path, metadata={"Date": None} if Path(path).suffix == ".svg" else None)
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three sizes of five")
    parser.add_argument("--out", type=Path, help="folder for the table as CSV and the figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = measure("quick" if options.quick else "standard")
    print(report(table), file=sys.stdout)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(options.out / "scaling.csv", index=False, float_format="%.4g")
        draw(table, options.out / "scaling.svg")


if __name__ == "__main__":
    main()
