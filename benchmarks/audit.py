"""Intervals for the true share of a class, from predictions for all rows and a few checks.

Usage: python benchmarks/audit.py [--draws 200] [--jobs 1] [--rows 10000] [--shares .05 ...]

A table has a class of a given share; a predictor finds it with a given sensitivity and specificity.
Rows are checked by a simple draw, or by a draw from each predicted class, as `transduce draw --by`
makes it by default; `--ways "labels alone" "ours, equal draw"` takes equal numbers from each, as
`--allocation equal` does there, and may tell less of all rows. Printed are, for each way, how often
the 95 % interval holds the truth, how wide it is on average, its width as a ratio to that of labels
alone with a simple draw of as many rows, and how many calls failed. "Narrowest" is the width below
which no exact interval from a draw by class can be, if its ends rise with the marked rows drawn.

Opponents run on the same simple draws: ppi_py, glide, truescore and evalstats (pip install
ppi-python glide-py truescore evalstats); one that is not installed is named and left out.

With `--exact` nothing is drawn: the coverage and the mean width of a draw by class, with the default
allocation or `--allocation equal`, are added up over all samples, weighed by their probabilities,
beside labels alone.

With `--reachable` the same is done of what no draw by class can beat: the normal interval of somebody
who knows the spread in both classes, and divides the checks by them (Neyman), and the narrowest exact
interval from such a draw.

At the end stand the lowest coverage and the widest ratio of each way over all cells. With 16 cores
`python benchmarks/audit.py --draws 200 --jobs 16` is meant to end within eight minutes.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import get_args

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binom, hypergeom, norm

from transduce.population.checks import CheckedRows, class_interval
from transduce.population.draws import Allocation, allocate, draw_from_strata
from transduce.population.strata import narrowest_most_marked, total_interval
from transduce.population.stratum import Stratum
from transduce.population.urns import urn_interval

LEVEL = 0.95
DRAWS_A_TASK = 10
LEAST_CHANCE = 1e-5  # samples that are less probable are left out of the exact means


@dataclass(frozen=True)
class Case:
    """One kind of table and draw."""

    n_rows: int
    share: float
    sensitivity: float
    specificity: float
    n_checked: int

    def __str__(self) -> str:
        return (
            f"share {self.share:g}, sensitivity {self.sensitivity:g}, specificity "
            f"{self.specificity:g}, {self.n_checked} checked"
        )


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
    by_class = {}
    for how in ("equal", "neyman"):
        numbers = allocate(np.bincount(predicted, minlength=2), case.n_checked, how)
        draw = draw_from_strata(everywhere, predicted, numbers, seed)
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
    n_rows = len(table.truth)
    known = np.full(n_rows, -1)
    known[rows] = table.truth[rows]
    strata = table.predicted if stratified else np.zeros(n_rows, dtype=int)
    # What `audit` does for one class; lines on other classes and wrong rows are not asked for.
    fewest, most = class_interval(CheckedRows(table.predicted, known, known >= 0, strata), 1, LEVEL)
    return fewest / n_rows, most / n_rows


def narrowest(table: Checked, rows: np.ndarray) -> tuple[float, float]:
    """Return ends between which an exact interval from a draw by class cannot lie."""
    strata, mirrored = [], []
    for code in (0, 1):
        n_rows = int(np.sum(table.predicted == code))
        labels = table.truth[rows[table.predicted[rows] == code]]
        stratum = Stratum(n_rows, len(labels), int(labels.sum()))
        strata.append(stratum)
        mirrored.append(stratum.mirrored())
    level = (1.0 - LEVEL) / 2.0
    n_rows = len(table.truth)
    most = narrowest_most_marked(tuple(strata), level)
    fewest = n_rows - narrowest_most_marked(tuple(mirrored), level)
    return fewest / n_rows, most / n_rows


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


def evalstats_interval(table: Checked) -> tuple[float, float]:
    from evalstats import judge_debias_mean_ci

    labels = np.full(len(table.truth), np.nan)
    labels[table.simple] = table.truth[table.simple]
    result = judge_debias_mean_ci(table.predicted.astype(float), labels, alpha=1 - LEVEL, rng=0)
    return float(result.ci_low), float(result.ci_high)


WAYS: dict[str, Callable[[Checked], tuple[float, float]]] = {
    "labels alone": labels_alone,
    "ours, simple draw": lambda table: ours(table, table.simple, stratified=False),
    "ours, equal draw": lambda table: ours(table, table.by_class["equal"], stratified=True),
    "ours, neyman draw": lambda table: ours(table, table.by_class["neyman"], stratified=True),
    "narrowest, equal": lambda table: narrowest(table, table.by_class["equal"]),
    "narrowest, neyman": lambda table: narrowest(table, table.by_class["neyman"]),
    "ppi_py": ppi_py_interval,
    "glide": glide_interval,
    "truescore": truescore_interval,
    "evalstats": evalstats_interval,
}


OPPONENTS = ("ppi_py", "glide", "truescore", "evalstats")  # as they are imported


def installed_ways() -> list[str]:
    """Return the ways that can run here, and say which opponents cannot."""
    missing = [name for name in OPPONENTS if find_spec(name) is None]
    if missing:
        print(f"Not installed, and left out: {', '.join(missing)}.")
    return [name for name in WAYS if name not in missing]


def default_ways(ways: list[str]) -> list[str]:
    """Return the ways that run if none is named: draws by class are those of the default."""
    return [name for name in ways if "equal" not in name]


def run_draws(case: Case, seeds: list[int], ways: list[str]) -> list[dict[str, object]]:
    """Return a line for each draw and way: whether the interval holds, its width, failures."""
    lines = []
    for seed in seeds:
        table = make_draw(case, seed)
        for name in ways:
            lines.append({"case": case, "way": name, **run_way(table, name)})
    return lines


def run_way(table: Checked, name: str) -> dict[str, object]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower, upper = WAYS[name](table)
    except Exception:
        return {"holds": np.nan, "width": np.nan, "failed": True}
    holds = lower - 1e-12 <= table.share <= upper + 1e-12
    return {"holds": float(holds), "width": upper - lower, "failed": False}


def summarize(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the means of one case, with widths as ratios to that of labels alone."""
    means = lines.groupby("way", sort=False)[["holds", "width", "failed"]].mean()
    means["ratio"] = means["width"] / means.loc["labels alone", "width"]
    return means


def measure(cases: list[Case], seeds: range, jobs: int, ways: list[str]) -> pd.DataFrame:
    """Return the means of each way in each case, which are printed as they come."""
    blocks = [list(block) for block in np.array_split(seeds, -(-len(seeds) // DRAWS_A_TASK))]
    tasks = (delayed(run_draws)(case, block, ways) for case in cases for block in blocks)
    runs = Parallel(n_jobs=jobs, return_as="generator")(tasks)
    summaries = []
    for case in cases:
        lines = pd.DataFrame(itertools.chain(*itertools.islice(runs, len(blocks))))
        summary = summarize(lines)
        print(f"\n{case}, {len(seeds)} draws")
        print(summary.round(3).to_string(), flush=True)
        summaries.append(summary.reset_index())
    return pd.concat(summaries, ignore_index=True)


def exact_means(
    strata: list[tuple[int, int, int]], interval: Callable[[tuple[int, ...]], tuple[int, int]]
) -> tuple[float, float]:
    """Return the coverage and the mean width of an interval for the number of marked rows.

    Strata are (rows, marked rows, rows drawn); the interval is a function of the marked rows drawn.
    """
    total = sum(marked for _, marked, _ in strata)
    chances = [
        hypergeom(size, marked, drawn).pmf(range(drawn + 1)) for size, marked, drawn in strata
    ]
    likely = [np.flatnonzero(chance > LEAST_CHANCE).tolist() for chance in chances]
    covered, width, weight = 0.0, 0.0, 0.0
    for hits in itertools.product(*likely):
        probability = float(np.prod([chance[x] for chance, x in zip(chances, hits, strict=True)]))
        if probability < LEAST_CHANCE:
            continue
        fewest, most = interval(hits)
        covered += probability * (fewest <= total <= most)
        width += probability * (most - fewest)
        weight += probability
    n_rows = sum(size for size, _, _ in strata)
    return covered / weight, width / weight / n_rows


def tabulate(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows are predicted not to be, and to be, of the class, and how many are."""
    marked = round(case.share * case.n_rows)
    found = round(marked * case.sensitivity)
    false = round((case.n_rows - marked) * (1.0 - case.specificity))
    return np.array([case.n_rows - found - false, found + false]), np.array([marked - found, found])


def alone_means(case: Case) -> tuple[float, float]:
    """Return the exact coverage and mean width of the interval from labels alone."""

    def alone(hits: tuple[int, ...]) -> tuple[int, int]:
        left = case.n_rows - case.n_checked
        fewest, most = urn_interval(hits[0], case.n_checked, left, LEVEL)
        return hits[0] + fewest, hits[0] + most

    marked = round(case.share * case.n_rows)
    return exact_means([(case.n_rows, marked, case.n_checked)], alone)


def oracle_width(sizes: np.ndarray, marked: np.ndarray, drawn: np.ndarray) -> float:
    """Return the width of the normal interval of somebody who knows the spread of each stratum."""
    shares = marked / sizes
    errors = sizes**2 * shares * (1.0 - shares) / drawn * (1.0 - drawn / sizes)
    return float(2.0 * norm.ppf(0.5 + LEVEL / 2.0) * np.sqrt(np.sum(errors)) / np.sum(sizes))


def show_reachable(case: Case) -> None:
    """Print how narrow an interval from a draw by class could be at best, and how narrow ours is."""
    sizes, marked = tabulate(case)
    spreads = np.sqrt(marked / sizes * (1.0 - marked / sizes))
    drawn = allocate(sizes, case.n_checked, "neyman", spreads)
    level = (1.0 - LEVEL) / 2.0

    def strata_of(hits: tuple[int, ...]) -> tuple[Stratum, ...]:
        parts = zip(sizes.tolist(), drawn.tolist(), hits, strict=True)
        return tuple(Stratum(*part) for part in parts)

    def narrowest_ends(hits: tuple[int, ...]) -> tuple[int, int]:
        strata = strata_of(hits)
        mirrored = tuple(stratum.mirrored() for stratum in strata)
        fewest = case.n_rows - narrowest_most_marked(mirrored, level)
        return fewest, narrowest_most_marked(strata, level)

    def our_ends(hits: tuple[int, ...]) -> tuple[int, int]:
        return total_interval(strata_of(hits), LEVEL)

    strata = list(zip(sizes.tolist(), marked.tolist(), drawn.tolist(), strict=True))
    _, width_alone = alone_means(case)
    _, narrowest_width = exact_means(strata, narrowest_ends)
    _, width = exact_means(strata, our_ends)
    oracle = oracle_width(sizes, marked, drawn)
    print(
        f"{case}: {drawn.tolist()} drawn, labels alone {width_alone:.4f}; as ratios: normal with "
        f"known spreads {oracle / width_alone:.3f}, narrowest exact "
        f"{narrowest_width / width_alone:.3f}, ours {width / width_alone:.3f}",
        flush=True,
    )


def show_exact(case: Case, how: Allocation) -> None:
    """Print the exact coverage and width of a draw by class, and of labels alone."""
    sizes, marked = tabulate(case)
    drawn = allocate(sizes, case.n_checked, how).tolist()

    def by_class(hits: tuple[int, ...]) -> tuple[int, int]:
        parts = zip(sizes.tolist(), drawn, hits, strict=True)
        return total_interval(tuple(Stratum(*part) for part in parts), LEVEL)

    strata = list(zip(sizes.tolist(), marked.tolist(), drawn, strict=True))
    holds, width = exact_means(strata, by_class)
    holds_alone, width_alone = alone_means(case)
    print(
        f"{case}: {drawn} drawn, holds {holds:.3f}, width {width:.4f}; labels alone "
        f"{holds_alone:.3f}, {width_alone:.4f}; ratio {width / width_alone:.3f}",
        flush=True,
    )


def show_worst(cells: pd.DataFrame, n_draws: int) -> None:
    """Print the worst of all cells, beside what chance alone gives in as many of them."""
    n_cells = int(np.sum(cells["way"] == "labels alone"))
    # The smallest share of draws that hold, in so many cells whose coverage is exactly the level.
    by_chance = binom.ppf(0.05 / n_cells, n_draws, LEVEL) / n_draws
    worst = cells.groupby("way", sort=False).agg(
        lowest_coverage=("holds", "min"),
        widest_ratio=("ratio", "max"),
        most_failed=("failed", "max"),
    )
    print(f"\nWorst of {n_cells} cells; by chance a coverage as low as {by_chance:.3f} is expected")
    print("in one run of twenty where it is 0.95 in all of them.")
    print(worst.round(3).to_string(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.05, 0.3, 0.5])
    parser.add_argument("--checked", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--quality", nargs="+", default=["0.8/0.8", "0.9/0.98", "0.99/0.99"])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS))
    parser.add_argument("--allocation", choices=get_args(Allocation), default="neyman")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--reachable", action="store_true")
    given = parser.parse_args()
    cases = [
        Case(given.rows, share, *map(float, quality.split("/")), n_checked)
        for share, quality, n_checked in itertools.product(
            given.shares, given.quality, given.checked
        )
    ]
    if given.exact or given.reachable:
        for case in cases:
            if given.reachable:
                show_reachable(case)
            else:
                show_exact(case, given.allocation)
        return
    seeds = range(given.first_seed, given.first_seed + given.draws)
    started = time.perf_counter()
    ways = [name for name in installed_ways() if name in (given.ways or default_ways(list(WAYS)))]
    cells = measure(cases, seeds, given.jobs, ways)
    show_worst(cells, given.draws)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
