"""Intervals for the true share of a class, from predictions for all rows and a few checks.

Usage: python benchmarks/audit.py [--draws 200] [--jobs 1] [--rows 10000] [--classes .05 ...]

A table has a class of a given share; a predictor finds it with a given sensitivity and specificity.
Rows are checked by a simple draw, or by a draw from each predicted class. Printed are, for each way,
how often the 95 % interval holds the truth, how wide it is on average, its width as a ratio to that of
labels alone with a simple draw of as many rows, and how many calls failed. Opponents that are
installed run on the same draws: glide, truescore and ppi_py.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from transduce.population import audit_classes
from transduce.population.draws import draw_from_strata, expected_spreads
from transduce.population.urns import urn_interval

LEVEL = 0.95


@dataclass(frozen=True)
class Case:
    """One kind of table and draw."""

    n_rows: int
    share: float
    sensitivity: float
    specificity: float
    n_checked: int


@dataclass(frozen=True, eq=False)
class Checked:
    """A table, predictions for it, and the rows that were checked."""

    truth: np.ndarray  # (n,) 0 and 1
    predicted: np.ndarray  # (n,) 0 and 1
    simple: np.ndarray  # rows of a simple draw
    by_class: dict[str, np.ndarray]  # rows of a draw from each predicted class, by allocation

    @property
    def share(self) -> float:
        """The true share of the class."""
        return float(np.mean(self.truth))


def make_draw(case: Case, seed: int) -> Checked:
    generator = np.random.default_rng(seed)
    truth = np.zeros(case.n_rows, dtype=int)
    truth[: round(case.share * case.n_rows)] = 1
    hit = generator.random(case.n_rows)
    predicted = np.where(truth == 1, hit < case.sensitivity, hit > case.specificity).astype(int)
    everywhere = np.ones(case.n_rows, dtype=bool)
    sizes = np.bincount(predicted, minlength=2)
    spreads = expected_spreads(sizes, np.zeros(2), np.zeros(2))
    by_class = {}
    for how in ("equal", "neyman"):
        draw = draw_from_strata(everywhere, predicted, case.n_checked, seed, spreads, how)
        by_class[how] = draw.rows
    simple = generator.choice(case.n_rows, case.n_checked, replace=False)
    return Checked(truth, predicted, simple, by_class)


def labels_alone(table: Checked) -> tuple[float, float]:
    n_rows = len(table.truth)
    hits = int(table.truth[table.simple].sum())
    n_checked = len(table.simple)
    fewest, most = urn_interval(hits, n_checked, n_rows - n_checked, LEVEL)
    return (hits + fewest) / n_rows, (hits + most) / n_rows


def ours(table: Checked, rows: np.ndarray, *, stratified: bool) -> tuple[float, float]:
    known = np.full(len(table.truth), None, dtype=object)
    known[rows] = table.truth[rows]
    strata = table.predicted if stratified else None
    line = audit_classes(known, table.predicted, strata=strata, certainty=LEVEL).shares.loc[1]
    return float(line["lower"]), float(line["upper"])


def ppi_py_interval(table: Checked) -> tuple[float, float]:
    from ppi_py import ppi_mean_ci

    rows = table.simple
    others = np.setdiff1d(np.arange(len(table.truth)), rows)
    labels = table.truth[rows].astype(float)
    predicted = table.predicted.astype(float)
    lower, upper = ppi_mean_ci(labels, predicted[rows], predicted[others], alpha=1 - LEVEL)
    return float(np.squeeze(lower)), float(np.squeeze(upper))


def glide_interval(table: Checked) -> tuple[float, float]:
    from glide.estimators import PPIMeanEstimator

    rows = table.simple
    labels = np.full(len(table.truth), np.nan)
    labels[rows] = table.truth[rows]
    result = PPIMeanEstimator().estimate(
        y_true=labels, y_proxy=table.predicted.astype(float), confidence_level=LEVEL
    )
    interval = result.confidence_interval
    return float(interval.lower_bound), float(interval.upper_bound)


def truescore_interval(table: Checked) -> tuple[float, float]:
    from truescore.correct import ppi_estimate

    rows = np.sort(table.simple)
    result = ppi_estimate(table.predicted, table.truth[rows], rows, alpha=1 - LEVEL)
    return float(result.low), float(result.high)


WAYS: dict[str, Callable[[Checked], tuple[float, float]]] = {
    "labels alone": labels_alone,
    "ours, simple draw": lambda table: ours(table, table.simple, stratified=False),
    "ours, equal draw": lambda table: ours(table, table.by_class["equal"], stratified=True),
    "ours, neyman draw": lambda table: ours(table, table.by_class["neyman"], stratified=True),
    "ppi_py": ppi_py_interval,
    "glide": glide_interval,
    "truescore": truescore_interval,
}


def run_draw(case: Case, seed: int) -> list[tuple[str, float, float, bool]]:
    """Return, for each way, whether the interval holds, its width, and whether the call failed."""
    table = make_draw(case, seed)
    lines = []
    for name, interval in WAYS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lower, upper = interval(table)
        except ImportError:
            continue
        except Exception:
            lines.append((name, np.nan, np.nan, True))
            continue
        holds = lower - 1e-12 <= table.share <= upper + 1e-12
        lines.append((name, float(holds), upper - lower, False))
    return lines


def measure(case: Case, draws: int, jobs: int) -> pd.DataFrame:
    runs = Parallel(n_jobs=jobs)(delayed(run_draw)(case, seed) for seed in range(draws))
    frame = pd.DataFrame(itertools.chain(*runs), columns=["way", "holds", "width", "failed"])
    lines = frame.groupby("way", sort=False).mean()
    lines["ratio"] = lines["width"] / lines.loc["labels alone", "width"]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.05, 0.3, 0.5])
    parser.add_argument("--checked", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--quality", nargs="+", default=["0.8/0.8", "0.9/0.98", "0.99/0.99"])
    given = parser.parse_args()
    for share, quality, n_checked in itertools.product(given.shares, given.quality, given.checked):
        sensitivity, specificity = map(float, quality.split("/"))
        case = Case(given.rows, share, sensitivity, specificity, n_checked)
        print(
            f"\nshare {share:g}, sensitivity {sensitivity:g}, specificity {specificity:g}, ", end=""
        )
        print(f"{n_checked} checked, {given.draws} draws")
        print(measure(case, given.draws, given.jobs).round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
