"""Errors of `fill` and of each method on families of problems, at sizes on both sides of every switch in the code.

    python benchmarks/cliffs.py [--quick] [--families linear steps] [--sizes LABEL ...] [--methods auto ridge]
        [--draws 3] [--jobs 2] [--out FILE]

Methods change with the size of a table: beyond 1,500 rows transductive ridge has centres at some rows, from 30 labels
on leave-one-out chooses penalties, from 200 on boosted trees join. Each switch is a place where nobody looks. Here each
family of problems is drawn at sizes just before and just beyond each switch, answered by `fill` with its default, by
`fill` with each method, by the mean (or the most frequent class), by cross-validated ridge and by a random forest.

Errors are of the unlabelled rows: of numbers the root mean squared error over the truth's standard deviation, of
classes the share of wrong answers. Coverage and width (over that standard deviation; of sets their mean size) are those
of `fill` at 90 %. The last two tables say where `fill` is more than 1.35 times the best of the three others plus 0.03,
and where one step over a switch costs more than a tenth. Before and beyond a switch the same rows are answered.
``--quick`` takes two draws of the default method at the smaller sizes.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from transduce import fill
from transduce.model_selection.methods import CLASSES, METHODS, NUMBERS

TARGET = "target"
FEATURES = 10
BASELINES = ("mean", "ridge", "forest")
PENALTIES = np.geomspace(1e-3, 1e5, 30)
LARGEST_RATIO = 1.35  # of the error of `fill` over that of the best baseline,
LARGEST_EXCESS = 0.03  # and so much more
LARGEST_STEP = 1.1  # of the error beyond a switch over that before it,
STEP_EXCESS = 0.01  # and so much more, which is rounding of shares of wrong answers


class Size(NamedTuple):
    """The size of a table."""

    rows: int
    labels: int
    features: int = FEATURES


class Switch(NamedTuple):
    """Two sizes, before and beyond a place where the code takes another way."""

    name: str
    before: Size
    beyond: Size
    is_large: bool = False  # takes minutes


SWITCHES = (
    Switch("5 labels: weights are estimated", Size(100, 4, 4), Size(100, 5, 4)),
    Switch("10 labels: the process cross-validates", Size(100, 9, 4), Size(100, 10, 4)),
    Switch("as many labels as features", Size(200, 15), Size(200, 16)),
    Switch("20 labels: probabilities are sharpened", Size(200, 19), Size(200, 20)),
    Switch("30 labels: penalties by leave-one-out", Size(300, 29), Size(300, 30)),
    Switch("50 labels: classes are calibrated", Size(300, 49), Size(300, 50)),
    Switch("200 labels: boosted trees join", Size(600, 199), Size(600, 200)),
    Switch("100 features: some are tried at a split", Size(200, 60, 100), Size(200, 60, 101)),
    Switch("625 features: one relevance for all", Size(400, 200, 625), Size(400, 200, 626), True),
    Switch("1,500 rows, 15 labels: centres", Size(1500, 15), Size(1501, 15)),
    Switch("1,500 rows, 100 labels: centres", Size(1500, 100), Size(1501, 100)),
    Switch("1,500 rows, 300 labels: centres", Size(1500, 300), Size(1501, 300)),
    Switch("500 labels: centres are drawn", Size(2000, 500), Size(2000, 501)),
    Switch("150 features: trees screen them", Size(300, 100, 150), Size(300, 100, 151)),
    Switch("1,000 features: no random cuts", Size(400, 250, 1000), Size(400, 250, 1001), True),
    Switch("2,000 labels: some choose the width", Size(4000, 2000), Size(4000, 2001), True),
    Switch("3,000 labels: inducing points", Size(5000, 3000), Size(5000, 3001), True),
    Switch("20,000 rows: no graph", Size(20_000, 100), Size(20_001, 100), True),
    Switch("20,000 unlabelled: a sample", Size(20_300, 300), Size(20_301, 300), True),
)


# -------------------------------------------------------------------------------------------- families of problems


class Problem(NamedTuple):
    """A table with all labels; the first rows are labelled."""

    features: np.ndarray
    truth: np.ndarray
    task: str


def _linear(noise: float) -> Callable[[np.random.Generator, int, int], Problem]:
    def draw(rng: np.random.Generator, n: int, d: int) -> Problem:
        X = rng.normal(size=(n, d))
        return Problem(X, _noisy(X @ _slopes(d), noise, rng), NUMBERS)

    return draw


def _slopes(d: int) -> np.ndarray:
    """Return ten coefficients and, of more features, zeros: the truth is the same in wider tables."""
    slopes = np.zeros(d)
    slopes[: min(d, FEATURES)] = np.random.default_rng(0).normal(size=FEATURES)[: min(d, FEATURES)]
    return slopes / np.linalg.norm(slopes)


def _noisy(signal: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    return signal + noise * rng.normal(size=len(signal))


def _smooth(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.normal(size=(n, d))
    signal = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3]
    return Problem(X, _noisy(signal, 0.2, rng), NUMBERS)


def _steps(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.normal(size=(n, d))
    signal = 1.0 * (X[:, 0] > 0) + 1.5 * (X[:, 1] > 0.5) * (X[:, 2] > 0) - 1.0 * (X[:, 3] < -0.5)
    return Problem(X, _noisy(signal, 0.1, rng), NUMBERS)


def _sparse(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.normal(size=(n, d))
    return Problem(X, _noisy(X[:, 0], 0.2, rng), NUMBERS)


def _collinear(rng: np.random.Generator, n: int, d: int) -> Problem:
    hidden = rng.normal(size=(n, 3))
    mixing = np.random.default_rng(1).normal(size=(3, d))
    X = hidden @ mixing + 1e-3 * rng.normal(size=(n, d))
    return Problem(X, _noisy(hidden @ np.array([1.0, -1.0, 0.5]), 0.2, rng), NUMBERS)


def _scales(rng: np.random.Generator, n: int, d: int) -> Problem:
    X, truth, _ = _linear(0.1)(rng, n, d)
    return Problem(X * np.geomspace(1e-6, 1e6, d), 1e6 * truth, NUMBERS)


def _offset(rng: np.random.Generator, n: int, d: int) -> Problem:
    X, truth, _ = _linear(0.1)(rng, n, d)
    return Problem(X + 1e4, truth + 1e6, NUMBERS)


def _skewed(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = np.exp(0.7 * rng.normal(size=(n, d)))
    return Problem(X, _noisy(X @ _slopes(d), 0.3, rng), NUMBERS)


def _amounts(rng: np.random.Generator, n: int, d: int) -> Problem:
    """Draw totals with tax, rounded to cents, of amounts of which a few are very large."""
    X = np.exp(8.0 + rng.normal(size=(n, d)))
    return Problem(X, np.round(1.19 * (X[:, 0] + X[:, 1]) + X[:, 2], 2), NUMBERS)


def _discrete(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.integers(5, size=(n, d)).astype(float)
    rate = np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1] + 0.5)
    return Problem(X, rng.poisson(rate).astype(float), NUMBERS)


def _noise(rng: np.random.Generator, n: int, d: int) -> Problem:
    return Problem(rng.normal(size=(n, d)), rng.normal(size=n), NUMBERS)


def _blobs(n_classes: int, apart: float) -> Callable[[np.random.Generator, int, int], Problem]:
    def draw(rng: np.random.Generator, n: int, d: int) -> Problem:
        codes = rng.integers(n_classes, size=n)
        centres = np.zeros((n_classes, d))
        used = min(d, FEATURES)
        centres[:, :used] = apart * np.random.default_rng(2).normal(size=(n_classes, used))
        return Problem(centres[codes] + rng.normal(size=(n, d)), _names(codes), CLASSES)

    return draw


def _names(codes: np.ndarray) -> np.ndarray:
    return np.array([f"class {code}" for code in codes], dtype=object)


def _rare(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.normal(size=(n, d))
    return Problem(X, _names((_noisy(X @ _slopes(d), 0.5, rng) > 1.7).astype(int)), CLASSES)


def _moons(rng: np.random.Generator, n: int, d: int) -> Problem:
    X, codes = make_moons(n, noise=0.15, random_state=int(rng.integers(2**31)))
    others = 0.3 * rng.normal(size=(n, max(d - 2, 0)))
    return Problem(np.hstack([X, others])[:, :d], _names(codes), CLASSES)


def _exclusive_or(rng: np.random.Generator, n: int, d: int) -> Problem:
    X = rng.normal(size=(n, d))
    X[:, 2:] *= 0.3
    return Problem(X, _names(((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)), CLASSES)


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Problem]] = {
    "linear": _linear(0.3),
    "quiet linear": _linear(0.02),
    "exact linear": _linear(0.0),
    "smooth": _smooth,
    "steps": _steps,
    "sparse": _sparse,
    "collinear": _collinear,
    "scales": _scales,
    "offset": _offset,
    "skewed": _skewed,
    "amounts": _amounts,
    "discrete": _discrete,
    "noise": _noise,
    "two classes": _blobs(2, 0.5),
    "three classes": _blobs(3, 0.7),
    "ten classes": _blobs(10, 1.0),
    "rare class": _rare,
    "moons": _moons,
    "exclusive or": _exclusive_or,
}


# --------------------------------------------------------------------------------------------------- one case


class Case(NamedTuple):
    """A family at a size of a switch, in one draw."""

    family: str
    switch: Switch
    side: str  # "before" or "beyond"
    draw: int

    @property
    def size(self) -> Size:
        """Its size."""
        return self.switch.before if self.side == "before" else self.switch.beyond

    def problem(self) -> tuple[Problem, np.ndarray, np.ndarray]:
        """Return the table, its labelled rows, and rows that have no label on either side of the switch.

        Both sides have the same rows as far as they go; a size with one label more labels one more of them.
        """
        before, beyond = self.switch.before, self.switch.beyond
        rng = np.random.default_rng([self.draw, *self.family.encode()])
        problem = FAMILIES[self.family](rng, max(before.rows, beyond.rows), beyond.features)
        size = self.size
        shown = np.arange(size.labels)
        asked = np.arange(max(before.labels, beyond.labels), min(before.rows, beyond.rows))
        features = problem.features[: size.rows, : size.features]
        return problem._replace(features=features, truth=problem.truth[: size.rows]), shown, asked


def baseline(name: str, task: str, seed: int) -> Any:
    """Return one of the three that `fill` is held against."""
    if name == "mean":
        return DummyRegressor() if task == NUMBERS else DummyClassifier()
    if name == "forest":
        make = RandomForestRegressor if task == NUMBERS else RandomForestClassifier
        return make(random_state=seed)
    make = RidgeCV if task == NUMBERS else RidgeClassifierCV
    return make_pipeline(StandardScaler(), make(PENALTIES))


def error_of(values: np.ndarray, truth: np.ndarray, task: str) -> float:
    """Return the error of predictions: in standard deviations of the truth, or the share of wrong classes."""
    if task == CLASSES:
        return float(np.mean(values != truth))
    return float(np.sqrt(np.mean((values.astype(float) - truth) ** 2)) / np.std(truth))


def measure(case: Case, method: str) -> dict[str, Any]:
    """Return the error of a method in a case and, of `fill`, coverage, width and seconds."""
    problem, shown, asked = case.problem()
    n_seen = len(set(problem.truth[shown]))
    if problem.task == CLASSES and (n_seen < 2 or n_seen == len(shown)):  # `fill` refuses them
        return {}
    line: dict[str, Any] = {
        "family": case.family,
        "switch": case.switch.name,
        "side": case.side,
        "rows": case.size.rows,
        "labels": case.size.labels,
        "features": case.size.features,
        "draw": case.draw,
        "method": method,
    }
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in BASELINES:
            model = baseline(method, problem.task, case.draw)
            model.fit(problem.features[shown], problem.truth[shown])
            values = model.predict(problem.features[asked])
            line["error"] = error_of(values, problem.truth[asked], problem.task)
        else:
            line |= _measure_fill(problem, shown, asked, method.removeprefix("fill "), case.draw)
    line["seconds"] = time.perf_counter() - began
    return line


def _measure_fill(
    problem: Problem, shown: np.ndarray, asked: np.ndarray, method: str, seed: int
) -> dict[str, float]:
    columns = [f"feature {j + 1}" for j in range(problem.features.shape[1])]
    frame = pd.DataFrame(problem.features, columns=columns)
    labels = np.full(len(frame), np.nan if problem.task == NUMBERS else None, problem.truth.dtype)
    labels[shown] = problem.truth[shown]
    result = fill(frame.assign(**{TARGET: labels}), TARGET, method=method, random_state=seed)
    answer = result.answer
    places = np.searchsorted(answer.rows, asked)
    truth = problem.truth[asked]
    line = {"error": error_of(answer.values[places], truth, problem.task)}
    if answer.regions is not None:
        lower, upper = answer.regions.hull()[places].T
        line["coverage"] = float(np.mean((lower <= truth) & (truth <= upper)))
        line["width"] = float(np.median(upper - lower) / np.std(truth))
    elif answer.label_sets is not None:
        codes = np.searchsorted(answer.classes, truth)
        codes = np.minimum(codes, len(answer.classes) - 1)
        known = answer.classes[codes] == truth
        inside = answer.label_sets[places, codes] & known
        line["coverage"] = float(np.mean(inside))
        line["width"] = float(answer.label_sets[places].sum(axis=1).mean())
    return line


# ------------------------------------------------------------------------------------------------------ all cases


def measure_all(
    families: Iterable[str],
    switches: Iterable[Switch],
    methods: Iterable[str],
    *,
    draws: Iterable[int],
    jobs: int = 1,
) -> pd.DataFrame:
    """Return a line for each family, side of a switch, draw and method; a method that does not suit is left out."""
    sides = ("before", "beyond")
    cases = [Case(*which) for which in itertools.product(families, switches, sides, draws)]
    work = [
        delayed(measure)(case, method)
        for case in cases
        for method in (*BASELINES, *methods)
        if _suits(case, method)
    ]
    lines = Parallel(jobs, batch_size=1, verbose=1 if jobs != 1 else 0)(work)
    return pd.DataFrame([line for line in lines if line])


def _suits(case: Case, method: str) -> bool:
    """Return whether a method is for the task of a case, and not too slow for its size."""
    name = method.removeprefix("fill ")
    if name not in METHODS:
        return True
    rng = np.random.default_rng(0)
    task = FAMILIES[case.family](rng, 10, case.size.features).task
    known = METHODS[name]
    sizes = {"labels": case.size.labels, "rows": case.size.rows, "features": case.size.features}
    fits = all(sizes[what] <= most for what, most in known.most.items())
    return task in known.tasks and fits


def by_size(lines: pd.DataFrame) -> pd.DataFrame:
    """Return mean errors over the draws, a line for each family and size, a column for each method."""
    where = ["family", "switch", "side", "rows", "labels", "features"]
    return lines.pivot_table(index=where, columns="method", values="error", sort=False)


def behind_baselines(errors: pd.DataFrame, method: str = "fill auto") -> pd.DataFrame:
    """Return where a method is too far behind the best of the three baselines."""
    best = errors[list(BASELINES)].min(axis=1)
    behind = errors[method] > LARGEST_RATIO * best + LARGEST_EXCESS
    return pd.DataFrame({method: errors[method], "best baseline": best})[behind]


def costly_steps(errors: pd.DataFrame, method: str = "fill auto") -> pd.DataFrame:
    """Return where one step over a switch costs more than a tenth.

    A label more may be an odd one that harms the mean of the labels too: so much is not the step's.
    """
    sizes = ["rows", "labels", "features"]
    sides = errors[method].reset_index(sizes, drop=True).unstack("side")
    of_mean = errors["mean"].reset_index(sizes, drop=True).unstack("side")
    before = of_mean["before"].where(of_mean["before"] > 0.0, 1.0)
    harm = (of_mean["beyond"] / before).clip(lower=1.0)
    costly = sides["beyond"] > LARGEST_STEP * harm * sides["before"] + STEP_EXCESS
    return sides[costly]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawTextHelpFormatter
    )
    names = [switch.name for switch in SWITCHES]
    ours = [name for name in METHODS if name != "blend"]
    parser.add_argument("--quick", action="store_true", help="two draws, smaller sizes, auto only")
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--switches", nargs="+", choices=names, default=names)
    parser.add_argument("--methods", nargs="+", choices=ours, help="of fill; all by default")
    parser.add_argument("--draws", type=int, default=None, help="3 by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="file for all lines, as CSV")
    options = parser.parse_args()
    switches = [switch for switch in SWITCHES if switch.name in options.switches]
    if options.quick:
        switches = [switch for switch in switches if not switch.is_large]
    methods = options.methods or (["auto"] if options.quick else ours)
    draws = options.draws or (2 if options.quick else 3)
    lines = measure_all(
        options.families,
        switches,
        [f"fill {name}" for name in methods],
        draws=range(draws),
        jobs=options.jobs,
    )
    if options.out is not None:
        lines.to_csv(options.out, index=False)
    report(lines, [f"fill {name}" for name in methods])


def report(lines: pd.DataFrame, methods: list[str]) -> None:
    """Print the table of errors, and where `fill` is behind or falls off."""
    errors = by_size(lines)
    filled = lines[lines["method"] == methods[0]]
    where = list(errors.index.names)
    about = filled.groupby(where, sort=False)[["coverage", "width", "seconds"]].mean()
    table = errors.join(about)
    with pd.option_context("display.width", 250, "display.max_rows", None):
        print(table.round(3).to_string())
        for method in methods:
            behind = behind_baselines(errors, method).dropna()
            print(f"\n{method}: behind the best baseline at {len(behind)} of {len(errors)} sizes")
            print(behind.round(3).to_string() if len(behind) else "nowhere")
            steps = costly_steps(errors, method).dropna()
            print(f"\n{method}: steps that cost more than a tenth: {len(steps)}")
            print(steps.round(3).to_string() if len(steps) else "none")


if __name__ == "__main__":
    main()
