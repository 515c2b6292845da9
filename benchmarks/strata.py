"""How much wider bounds over strata are than a full search over all splits would make them.

Usage: python benchmarks/strata.py [--tables 20] [--strata 3 4 5]

A total of several strata is too large if every split of it between them makes the sample too
extreme. Two comparisons, each with the same order of samples:

- small tables (about 40 rows, a third of them drawn): all splits are tried, one by one;
- tables of 20,000 rows, 300 drawn by predicted class: splits are improved step by step from the
  estimated one, so that the largest total found is at most that of a full search. The excess over
  it is therefore at most the one that is printed.

Printed is how far the bound lies above the estimate, as a ratio to that of the search.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from transduce.population.draws import allocate
from transduce.population.strata import SplitSearch
from transduce.population.stratum import Stratum
from transduce.population.urns import Urn, drawn_marked

LEVEL = 0.025
SMALLEST_STEP = 10  # rows by which splits are improved in large tables


def probability(search: SplitSearch, split: tuple[int, ...]) -> float:
    """Return how probable a sample is that is no more extreme than the observed one."""
    n_sums = int(search.reached.max()) + 1
    sums = np.zeros(n_sums)
    sums[0] = 1.0
    chances = []
    for stratum, marked in zip(search.strata, split, strict=True):
        urn = Urn(0, stratum.n_drawn, stratum.n_left)
        chances.append(drawn_marked(np.array([marked]), urn)[0])
    for weight, of_stratum in zip(search.weights.tolist(), chances[1:], strict=True):
        added = np.zeros(n_sums)
        for drawn, chance in enumerate(of_stratum.tolist()):
            shift = weight * drawn
            if shift >= n_sums:
                break
            added[shift:] += chance * sums[: n_sums - shift]
        sums = added
    at_most = np.cumsum(sums)
    is_reached = search.reached >= 0
    return float(chances[0][is_reached] @ at_most[search.reached[is_reached]])


def largest_of_all(search: SplitSearch) -> int:
    """Return the largest total of a split that is not rejected, trying every split."""
    fewest, most = search.limits()
    ranges = [range(low, high + 1) for low, high in zip(fewest, most, strict=True)]
    splits = sorted(itertools.product(*ranges), key=sum, reverse=True)
    return next(sum(split) for split in splits if probability(search, split) > search.level)


def largest_found(search: SplitSearch) -> int:
    """Return a total that some split makes possible, improved step by step."""
    fewest, most = (np.array(limits) for limits in search.limits())
    shares = [stratum.n_marked / stratum.n_drawn for stratum in search.strata]
    sizes = np.array([stratum.n_rows for stratum in search.strata])
    split = np.clip(np.round(sizes * shares).astype(int), fewest, most)
    step = int(np.max(most - fewest)) // 4
    while step >= SMALLEST_STEP:
        better = best_step(search, split, (fewest, most), step)
        if better is None:
            step //= 2
        else:
            split = better
    return int(split.sum())


def best_step(
    search: SplitSearch, split: np.ndarray, limits: tuple[np.ndarray, np.ndarray], step: int
) -> np.ndarray | None:
    """Return a split with more marked rows that is not rejected, or as many but more probable."""
    n_strata = len(split)
    now = probability(search, tuple(split.tolist()))
    candidates = []
    for h in range(n_strata):
        more = split.copy()
        more[h] = min(more[h] + step, limits[1][h])
        candidates.append(more)
        for other in range(n_strata):
            moved = more.copy()
            moved[other] = max(moved[other] - (more[h] - split[h]), limits[0][other])
            if other != h and moved.sum() == split.sum():
                candidates.append(moved)
    best = None
    for candidate in candidates:
        chance = probability(search, tuple(candidate.tolist()))
        gain = (int(candidate.sum()), chance)
        is_better = gain > (int(split.sum()), 1.01 * now)
        if chance > search.level and is_better and (best is None or gain > best[0]):
            best = gain, candidate
    return None if best is None else best[1]


def small_table(n_strata: int, generator: np.random.Generator) -> tuple[Stratum, ...]:
    sizes = generator.integers(5, 2 * 40 // n_strata - 4, n_strata)
    strata = []
    for size in sizes.tolist():
        drawn = max(size // 3, 1)
        strata.append(Stratum(size, drawn, int(generator.integers(0, drawn + 1))))
    return tuple(strata)


def large_table(n_strata: int, generator: np.random.Generator) -> tuple[Stratum, ...]:
    """Return strata of which the first holds most rows of a class, which is rare in all others."""
    shares = 1.0 / np.arange(1, n_strata + 1)
    sizes = np.round(20_000 * generator.permutation(shares) / shares.sum()).astype(int)
    drawn = allocate(sizes, 300, "neyman")
    rates = np.full(n_strata, 0.05)
    rates[0] = 0.9
    marked = generator.binomial(drawn, rates)
    return tuple(map(Stratum, sizes.tolist(), drawn.tolist(), marked.tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--strata", type=int, nargs="+", default=[3, 4, 5])
    given = parser.parse_args()
    kinds = {"small": (small_table, largest_of_all), "large": (large_table, largest_found)}
    for kind, n_strata in itertools.product(kinds, given.strata):
        make, search_all = kinds[kind]
        generator = np.random.default_rng(0)
        ratios = []
        for _ in range(given.tables):
            strata = make(n_strata, generator)
            estimate = sum(s.n_rows * s.n_marked / s.n_drawn for s in strata)
            search = SplitSearch.of(strata, LEVEL, apart=0)
            full = search_all(search)
            if full - estimate > 0.5:
                ratios.append((search.largest_total() - estimate) / (full - estimate))
        print(
            f"{kind} tables, {n_strata} strata: {np.mean(ratios):.3f} times as far above the "
            f"estimate on average, {np.max(ratios):.3f} at most ({len(ratios)} tables)",
            flush=True,
        )


if __name__ == "__main__":
    main()
