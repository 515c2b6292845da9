"""The same numbers on a GPU: seconds of the public estimators on one device, against this machine's processor.

    python benchmarks/gpu.py [--quick] [--parts machine ridge process graph billiard blend] [--out FILE]

Data are made on the device, and every fit runs from features there to answers there; compiled kernels are loaded by a
small problem before the clock starts. The processor runs the same script on numpy arrays of the sizes that it can do in
half a minute. The device's limits, a product of two matrices in double precision and a copy, are measured in the same
run. `--quick` takes small sizes, and torch on the processor where there is no device: a trial of this script.

*blend* is `fill` with its default, on a table of numbers and on one of classes, all rows in the fit: with a device some
members compute there and the trees on the processor, without one all of them on the processor, in one process each
time. Lines have the seconds of every member.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch

from transduce import (
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveRidge,
    show_progress,
)
from transduce.core.arrays import dispatching, to_numpy
from transduce.methods.gaussian_process.process import Objective

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = {
    "full": {
        "machine": ((300, True), (2000, True), (5000, True), (10_000, False), (40_000, False)),
        "ridge": ((300, True), (1000, True), (3000, True), (15_000, False)),
        "process": ((300, True), (1000, True), (3000, True), (10_000, False)),
        "graph": (
            (5000, True),
            (40_000, True),
            (100_000, True),
            (1_000_000, False),
            (10_000_000, False),
        ),
        "billiard": ((1000, True), (5000, True)),
        "blend": ((20_000, True), (50_000, True)),
    },
    "quick": {
        "machine": ((200, True),),
        "ridge": ((200, True),),
        "process": ((200, True),),
        "graph": ((800, True),),
        "billiard": ((200, True),),
        "blend": ((600, True),),
    },
}


COMPILED = set()


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(function, repeat=1):
    """Return the shortest time of some calls, device work included, and what the last returned."""
    best, found = np.inf, None
    for _ in range(repeat):
        synchronize()
        start = time.perf_counter()
        found = function()
        synchronize()
        best = min(best, time.perf_counter() - start)
    return best, found


def limits(quick):
    """Return the device's double-precision products (operations a second) and copies (bytes a second)."""
    n = 512 if quick else 8192
    A = torch.randn(n, n, dtype=torch.float64, device=DEVICE)
    seconds(lambda: A @ A)
    product = 2.0 * n**3 / seconds(lambda: A @ A, 5)[0]
    source = torch.empty(2 ** (20 if quick else 31), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    seconds(lambda: target.copy_(source))
    return product, 2.0 * len(source) / seconds(lambda: target.copy_(source), 5)[0]


def regression(n, d, seed=0):
    """Return rows on the device and labels on the host, a smooth function of the rows with noise."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    X = torch.randn(n, d, dtype=torch.float64, device=DEVICE, generator=generator)
    noise = torch.randn(n, dtype=torch.float64, device=DEVICE, generator=generator)
    y = torch.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * noise
    return X, to_numpy(y)


def clusters(n, d=50, n_classes=10, per_class=3, seed=0):
    """Return rows on the device around random centres that touch, elongated along random directions, and classes."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, device=DEVICE, generator=generator)

    cluster = torch.randint(0, n_classes * per_class, (n,), device=DEVICE, generator=generator)
    centres = 0.2 * normal(n_classes * per_class, d)
    axes = 0.3 * (normal(1, 6, d) + 0.5 * normal(n_classes * per_class, 6, d))
    X = torch.empty((n, d), dtype=torch.float64, device=DEVICE)
    for start in range(0, n, 250_000):
        part = cluster[start : start + 250_000]
        spread = torch.bmm(normal(len(part), 1, 6), axes[part])[:, 0]
        X[start : start + 250_000] = centres[part] + spread + 0.25 * normal(len(part), d)
    return X, to_numpy(cluster % n_classes)


def compare(name, n, make, on_processor, count=None, limit=None, **more):
    """Time one estimator on the device and, where it can be waited for, on the processor; return a line."""
    with dispatching():
        took, there = seconds(lambda: make(True))
    line = {"what": name, "n": n, "seconds": took, **more}
    if on_processor:
        if name not in COMPILED:  # the first time, code is compiled
            make(False)
            COMPILED.add(name)
        start = time.perf_counter()
        here = make(False)
        line["processor"] = time.perf_counter() - start
        line["ratio"] = line["processor"] / took
        line["agreement"] = agreement(there, here)
    if count is not None and limit:
        line["share"] = count / took / limit
    print(json.dumps(line), flush=True)
    return line


def agreement(there, here):
    """Return the largest difference of numbers over their largest, or the share of equal classes."""
    one, other = (to_numpy(getattr(model, "transduction_", model)) for model in (there, here))
    if one.dtype.kind == "f" and not isinstance(there, SpectralGraphTransducer):
        return float(np.abs(one - other).max() / np.abs(other).max())
    return float(np.mean(one == other))


def machine(size, on_processor, limit):
    """Exact kernel confidence machine, as many labels as unlabelled rows: l^3 / 3 and 2 l^2 m operations."""
    X, y = regression(2 * size, 20)
    truth = y.copy()
    y[size:] = np.nan

    def make(there):
        return RidgeConfidenceMachine().fit(X if there else to_numpy(X), y)

    with dispatching():
        model = RidgeConfidenceMachine().fit(X, y)
    inside = to_numpy(model.answer_.regions.contains(torch.as_tensor(truth[size:], device=DEVICE)))
    del model
    count = size**3 / 3 + 2.0 * size**3
    return compare(
        "confidence machine", size, make, on_processor, count, limit, coverage=float(inside.mean())
    )


def ridge(size, on_processor, limit):
    """Transductive ridge with its search, a third of the rows labelled."""
    X, y = regression(size, 8)
    truth = y.copy()
    y[size // 3 :] = np.nan

    def make(there):
        return TransductiveRidge().fit(X if there else to_numpy(X), y)

    with dispatching(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = np.mean((to_numpy(make(True).transduction_) - truth)[size // 3 :] ** 2)
        return compare(
            "transductive ridge, with search", size, make, on_processor, error=float(error)
        )


def process(size, on_processor, limit):
    """Objective and gradient of the Gaussian process, counted as n^3 operations."""
    X, y = regression(size, 8)
    y = (y - y.mean()) / y.std()
    at = np.log(np.append(np.full(8, 0.2), 0.1))
    there = Objective(X, torch.as_tensor(y, device=DEVICE), (1.0, 0.5))
    here = Objective(to_numpy(X), y, (1.0, 0.5))
    there(at)
    limit = limits(size < 1000)[0]  # right before, as a warm device has slower clocks
    took, (value, slopes) = seconds(lambda: there(at), 10)
    line = {"what": "Gaussian process, objective and gradient", "n": size, "seconds": took}
    line["share"] = size**3 / took / limit
    if on_processor:
        start = time.perf_counter()
        wanted, gradient = here(at)
        line["processor"] = time.perf_counter() - start
        line["ratio"] = line["processor"] / took
        line["agreement"] = float(
            max(abs(value / wanted - 1.0), np.abs(slopes - gradient).max() / np.abs(gradient).max())
        )
    print(json.dumps(line), flush=True)
    return line


def graph(size, on_processor, limit, method="auto"):
    """Spectral graph transducer from features to labels, ten labels a class, with the time of each part."""
    X, truth = clusters(size)
    rng = np.random.default_rng(0)
    y = np.full(size, np.nan)
    for label in range(10):
        y[rng.choice(np.flatnonzero(truth == label), 10, replace=False)] = label
    parts, began = {}, {}

    def listen(name, share):
        synchronize()
        if share == 0.0:
            began[name] = time.perf_counter()
        elif share >= 1.0:
            parts[name] = time.perf_counter() - began[name]

    def make(there):
        with (
            show_progress(listen if there else lambda name, share: None),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            return SpectralGraphTransducer(random_state=0, method=method).fit(
                X if there else to_numpy(X), y
            )

    with dispatching():
        if size <= 2_000_000:
            make(True)  # the allocator's memory is warm
        model = make(True)
        again, _ = seconds(partial(model.relabel, y))
        unlabelled = np.isnan(y)
        accuracy = float(np.mean(model.transduction_[unlabelled] == truth[unlabelled]))
        more = {
            "recall": model.graph_.diagnostics["recall"],
            "method": model.graph_.diagnostics["method"],
        }
        more |= {
            "accuracy": accuracy,
            "relabelling": again,
            "residual": float(model.spectrum_.residuals.max()),
        }
        if size > 2_000_000:
            line = {
                "what": "spectral graph",
                "n": size,
                "seconds": sum(parts.values()),
                **more,
                "parts": parts,
            }
            print(json.dumps(line), flush=True)
            return line
        del model
        line = compare("spectral graph", size, make, on_processor, **more)
        print(json.dumps({"n": size, "parts": parts}), flush=True)
        return {**line, "parts": dict(parts)}


def bounce(G, a, b):
    """Let many balls, each a line of `a` and `b`, fly to their next walls and bounce; in place."""
    largest, wall = (-b / a).max(dim=1)
    flight = torch.atan2(torch.ones_like(largest), largest)[:, None]
    cosine, sine = torch.cos(flight), torch.sin(flight)
    turned = b * cosine - a * sine
    a.mul_(cosine).add_(b * sine)
    kick = turned.gather(1, wall[:, None])
    b.copy_(turned - 2.0 * kick * G[wall])
    a.scatter_(1, wall[:, None], 1e-12)


def billiard(size, on_processor, limit, n_balls=64, n_bounces=2000):
    """Time a bounce of the kernel billiard: one ball compiled on one core, and many at once on the device."""
    from transduce.methods.bayesian.balls import fly

    generator = torch.Generator(device=DEVICE).manual_seed(0)
    rows = torch.randn(size, 50, dtype=torch.float64, device=DEVICE, generator=generator)
    G = torch.exp(-(torch.cdist(rows, rows) ** 2) / 100) + 1e-3 * torch.eye(
        size, dtype=torch.float64, device=DEVICE
    )
    G /= 1.001
    signs = torch.where(rows[:, 0] > 0, 1.0, -1.0)
    G = G * signs[:, None] * signs
    position = torch.linalg.solve(G, torch.ones(size, dtype=torch.float64, device=DEVICE))
    position /= torch.sqrt(position @ G @ position)
    a = (G @ position).expand(n_balls, size).clone()
    w = torch.randn(n_balls, size, dtype=torch.float64, device=DEVICE, generator=generator)
    b = w @ G
    b /= torch.sqrt((w * b).sum(dim=1, keepdim=True))
    bounce(G, a, b)

    def many():
        for _ in range(n_bounces):
            bounce(G, a, b)

    run = many
    if DEVICE == "cuda":  # the launches are recorded once and replayed
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                bounce(G, a, b)

        def run():
            for _ in range(n_bounces // 20):
                graph.replay()

    took = seconds(run, 2)[0] / n_bounces / n_balls
    host, walls = (
        [to_numpy(part) for part in (G, signs, a[0], b[0])],
        np.empty(n_bounces, dtype=np.int32),
    )
    traces = np.empty(n_bounces), np.empty(n_bounces)
    host[0], host[1] = (
        host[0] * host[1][:, None] * host[1],
        np.array(host[1]),
    )  # fly wants the kernel without signs
    fly(*(part.copy() for part in host), walls, *traces)
    start = time.perf_counter()
    fly(*(part.copy() for part in host), walls, *traces)
    core = (time.perf_counter() - start) / n_bounces
    line = {
        "what": "billiard, one bounce",
        "n": size,
        "seconds": took,
        "one core": core,
        "ratio": core / took,
    }
    print(json.dumps(line), flush=True)
    return line


def blend(size, on_processor, limit, n_labels=2000):
    """`fill` with its default method, from a frame to a filled one, with all rows in the fit."""
    import pandas as pd

    lines = []
    for task in ("numbers", "classes"):
        X, truth = regression(size, 20) if task == "numbers" else clusters(size, 20)
        labels = (
            truth
            if task == "numbers"
            else np.array([f"class {one:.0f}" for one in truth], dtype=object)
        )
        y = np.where(
            np.random.default_rng(0).permutation(size) < min(n_labels, size // 2), labels, None
        )
        frame = pd.DataFrame(to_numpy(X)).add_prefix("x").assign(y=pd.Series(y).infer_objects())
        filled(frame[:2000], device=DEVICE)  # compiles, and wakes the device
        took, there = filled(frame, device=DEVICE)
        line = {
            "what": f"fill, {task}",
            "n": size,
            "seconds": took,
            "members": member_seconds(there),
        }
        if on_processor:
            filled(frame[:2000])
            line["processor"], here = filled(frame)
            line["ratio"] = line["processor"] / took
            line["members on the processor"] = member_seconds(here)
            one, other = (model.values_model.answer_ for model in (there, here))
            if task == "numbers":
                line["agreement"] = float(
                    np.abs(one.values - other.values).max() / np.std(other.values)
                )
            else:
                line["agreement"] = float(np.mean(one.values == other.values))
                line["shares differ by"] = float(
                    np.abs(one.probabilities - other.probabilities).max()
                )
        print(json.dumps(line), flush=True)
        lines.append(line)
    return lines


def filled(frame, **more):
    """Return the seconds of `fill` with every row in the fit, and its result."""
    from transduce import fill

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seconds(lambda: fill(frame, "y", sample=len(frame), budget_seconds=3000.0, **more))


def member_seconds(result):
    """Return how long the fit of each member of the blend took, to two digits."""
    told = result.values_model.answer_.diagnostics["seconds"]
    return {name: float(f"{took:.2g}") for name, took in told.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", default=list(SIZES["full"]))
    parser.add_argument("--sizes", nargs="+", type=int, help="only these sizes")
    parser.add_argument("--method", default="auto", help="how neighbours are searched")
    parser.add_argument("--device-only", action="store_true", help="leave the processor out")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "processor"
    product, copy = limits(options.quick)
    lines = [{"device": name, "product": product, "copy": copy}]
    print(json.dumps(lines[0]), flush=True)
    for part in options.parts:
        function = globals()[part]
        for size, on_processor in SIZES["quick" if options.quick else "full"][part]:
            if options.sizes and size not in options.sizes:
                continue
            more = {"method": options.method} if part == "graph" else {}
            lines.append(function(size, on_processor and not options.device_only, product, **more))
            if part == "billiard":
                lines.append(function(size, on_processor, product, n_balls=8))
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
            if options.out:
                options.out.write_text(json.dumps(lines, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
