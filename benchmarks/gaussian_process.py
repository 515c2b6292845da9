"""The Gaussian process against scikit-learn's GaussianProcessRegressor: time and memory, as ratios in one run.

    python benchmarks/gaussian_process.py [--quick] [--out FOLDER]

Same kernel family (a length scale for every feature, plus noise), two restarts besides the first start for both.

1. One evaluation of objective and gradient, and the peak memory above what is needed to import and hold the data; each
   in a process of its own, the median of five (three from 1,000 rows on).
2. A whole fit without matching. scikit-learn's likelihood has no prior, so ours is given none. Where its fit would
   take very long it is left out ("-"). Where its optimum is poor, also the time until ours is no worse than that.
3. What matching costs on top: the evaluation, and the whole fit with the weight fixed and by cross-validation, over
   the fit without; a fifth of the rows is unlabelled.
4. The paper's alternation against the nested search: evaluations to reach the same objective.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from speed_table import as_frame, clock, line

from transduce import TransductiveGPRegressor
from transduce.methods.gaussian_process.descents import Search
from transduce.methods.gaussian_process.process import Objective

N_RESTARTS = 2
SIZES = {  # rows, rows of whole fits in the table of all comparisons, and features
    "quick": ((200, 500), (200,), (5, 20)),
    "standard": ((200, 500, 1_000), (200, 500), (5, 20)),
    "full": ((200, 500, 1_000, 2_000), (200, 500, 1_000), (5, 20, 60)),
}
LONGEST_FIT = 1_000  # rows up to which scikit-learn is fitted


def make_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def start(d):
    return np.append(np.full(d, 1 / np.sqrt(2 * d)), 0.1)


def peer(d, **settings):
    return GaussianProcessRegressor(
        RBF(1 / (np.sqrt(2) * start(d)[:-1]), (1e-4, 1e5)) + WhiteKernel(0.1, (1e-8, 1e2)),
        random_state=0,
        **settings,
    )


def timed(function, repeats):
    times = []
    for _ in range(repeats):
        began = clock()
        function()
        times.append(clock() - began)
    return float(np.median(times))


def run_evaluation(which, n, d):
    X, y = make_data(n, d)
    warm_X, warm_y = make_data(30, d)
    if which == "ours":
        parameters = np.log(start(d))
        Objective(warm_X, warm_y, (0.0, 0.0))(parameters)
        objective = Objective(X, y, (0.0, 0.0))
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = timed(lambda: objective(parameters), 5 if n < 1000 else 3)
    else:
        peer(d, optimizer=None).fit(warm_X, warm_y)
        model = peer(d, optimizer=None)
        model.fit(warm_X, warm_y)
        model.X_train_, model.y_train_ = X, y
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        theta = model.kernel_.theta
        seconds = timed(
            lambda: model.log_marginal_likelihood(theta, eval_gradient=True), 5 if n < 1000 else 3
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "MB": (peak - base) / 1024}


def run_fit(which, n, d):
    X, y = make_data(n, d)
    began, path = clock(), [(0.0, -np.inf)]  # seconds until each higher likelihood of all rows
    if which == "ours":
        plain = Objective.__call__

        def watched(objective, log_parameters):
            value, slope = plain(objective, log_parameters)
            likelihood = -value - n / 2 * np.log(2 * np.pi)
            if len(objective.y_l) == n and likelihood > path[-1][1]:
                path.append((clock() - began, likelihood))
            return value, slope

        Objective.__call__ = watched
        model = TransductiveGPRegressor(
            matching=0, prior=(0.0, 0.0), n_restarts=N_RESTARTS, standardize=False, random_state=0
        ).fit(X, y)
        found = model.log_marginal_likelihood_
    else:
        found = peer(d, n_restarts_optimizer=N_RESTARTS).fit(X, y).log_marginal_likelihood_value_
    return {"seconds": clock() - began, "log_likelihood": float(found), "path": path[1:]}


def run_matching(n, d):
    """Return the times of fits without matching, with it, and with its weight chosen; and of evaluations."""
    X, y = make_data(n, d)
    labels = np.append(y[: n * 4 // 5], np.full(n - n * 4 // 5, np.nan))
    fits = {}
    for name, settings in {
        "plain": {"matching": 0},
        "fixed": {"matching": 0.3, "slack": 0.01},
        "cv": {},
    }.items():
        model = TransductiveGPRegressor(random_state=0, n_restarts=N_RESTARTS, **settings)
        began = clock()
        model.fit(X, labels)
        fits[name] = clock() - began
    parameters, known = np.log(start(d)), y[: n * 4 // 5]
    one = timed(lambda: Objective(X, known, (1.0, 0.5))(parameters), 5)
    both = timed(lambda: Objective(X, known, (1.0, 0.5), 0.3, 0.01)(parameters), 5)
    return {
        "evaluation": both / one,
        "fixed": fits["fixed"] / fits["plain"],
        "cv": fits["cv"] / fits["plain"],
    }


def run_solvers(n, d, matching):
    X, y = make_data(n, d)
    objective = Objective(X, y[: n // 2], (1.0, 0.5), matching, 0.01)
    counts = {}
    for solver in ("nested", "alternating"):
        found = Search.at(X, y[: n // 2], solver=solver).descend(objective, np.log(start(d)))
        counts[solver] = found.n_evaluations
        counts[f"{solver} objective"] = found.objective
    return counts


RUNS = {
    "evaluation": run_evaluation,
    "fit": run_fit,
    "matching": run_matching,
    "solvers": run_solvers,
}


def in_process(which, *arguments):
    """Run a case in a process of its own."""
    command = [sys.executable, __file__, "--case", json.dumps([which, *arguments])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare_evaluations(rows, features):
    lines = []
    for n in rows:
        for d in features:
            ours, theirs = (in_process("evaluation", which, n, d) for which in ("ours", "sklearn"))
            lines.append(
                {
                    "rows": n,
                    "features": d,
                    "ms": 1000 * ours["seconds"],
                    "MB": ours["MB"],
                    "time, sklearn / ours": theirs["seconds"] / ours["seconds"],
                    "memory, sklearn / ours": theirs["MB"] / max(ours["MB"], 1.0),
                }
            )
            print(f"  evaluation at {n} x {d}", file=sys.stderr, flush=True)
    return pd.DataFrame(lines)


def compare_fits(rows, features):
    lines = []
    for n in rows:
        for d in features:
            ours = in_process("fit", "ours", n, d)
            line = {
                "rows": n,
                "features": d,
                "s": ours["seconds"],
                "log likelihood": ours["log_likelihood"],
            }
            if n <= LONGEST_FIT and n * d <= 20_000:
                theirs = in_process("fit", "sklearn", n, d)
                line["time, sklearn / ours"] = theirs["seconds"] / ours["seconds"]
                line["its log likelihood"] = theirs["log_likelihood"]
                reached = (at for at, high in ours["path"] if high >= theirs["log_likelihood"])
                line["s until its log likelihood"] = next(reached, np.nan)
            lines.append(line)
            print(f"  fit at {n} x {d}", file=sys.stderr, flush=True)
    return pd.DataFrame(lines)


def measure(size):
    """Return lines for the table of all comparisons; n is the number of rows."""
    rows, fitted, features = SIZES[size]
    name, opponent, lines = "TransductiveGPRegressor", "GaussianProcessRegressor", []
    for found in (
        compare_evaluations(rows, features).sort_values(["features", "rows"]).to_dict("records")
    ):
        what, s = f"likelihood and gradient, {found['features']} features", found["ms"] / 1e3
        megabytes = max(found["MB"], 1.0)
        times, memory = found["time, sklearn / ours"], found["memory, sklearn / ours"]
        lines.append(
            line(name, what, found["rows"], s, opponent, times * s, megabytes, memory * megabytes)
        )
    for found in (
        compare_fits(fitted, features).sort_values(["features", "rows"]).to_dict("records")
    ):
        times = found.get("time, sklearn / ours", np.nan)
        what = f"whole fit, {found['features']} features"
        if times == times and found["its log likelihood"] < found["log likelihood"] - 10:
            reached = f"{found['log likelihood']:.0f} against {found['its log likelihood']:.0f}"
            what += f", log likelihood {reached}"
        lines.append(line(name, what, found["rows"], found["s"], opponent, times * found["s"]))
        if "against" in what:
            until = f"whole fit, {found['features']} features, until ours is as likely"
            seconds = found["s until its log likelihood"]
            lines.append(line(name, until, found["rows"], seconds, opponent, times * found["s"]))
    return as_frame(lines).dropna(subset="ratio")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        which, *arguments = json.loads(options.case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(RUNS[which](*arguments)))
        return
    names = ["transduce", "numpy", "scipy", "scikit-learn"]
    print(
        platform.processor() or platform.machine(),
        *(f"{name} {version(name)}" for name in names),
        sep="; ",
    )
    rows, _, features = SIZES["quick" if options.quick else "full"]
    tables = {
        "evaluation": compare_evaluations(rows, features),
        "fit": compare_fits(rows, features),
    }
    sizes = [(n, 20) for n in rows[:3]]
    tables["matching, times the cost without"] = pd.DataFrame(
        [{"rows": n, "features": d, **in_process("matching", n, d)} for n, d in sizes]
    )
    tables["evaluations, nested and alternating"] = pd.DataFrame(
        [
            {"matching": weight, **in_process("solvers", 200, 5, weight)}
            for weight in (0.1, 1.0, 3.0)
        ]
    )
    for name, table in tables.items():
        print(
            f"\n{name}\n{table.to_string(index=False, float_format=lambda x: f'{x:.3g}', na_rep='-')}"
        )
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out / f"gaussian_process_{name.split(',')[0]}.csv", index=False)


if __name__ == "__main__":
    main()
