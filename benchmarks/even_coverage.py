"""What it costs in width to cover hard rows more often: ways to measure the local spread, one against another.

    python benchmarks/even_coverage.py [--labels 30 100] [--draws 6] [--difficulty]

Tables and draws of `local_spreads.py`; with ``--difficulty`` those of `difficulty.py`, on which nothing was chosen. As
in `learned_spreads.py` intervals are the rank among the deleted residuals of the labels over their spreads, near to the
exact regions and a hundred times as fast; labels are on the scale that the machine's criterion takes. A spread is to
the power that is named; *width* is that of the weights' kernel in median distances, and *prior* so many rows' weight
for the mean.

- *studentized*: the spread of residuals over their standard errors, times the standard error of the row.
- *ranks*: weights from the ranks of each column, as normal scores.
- *columns*: the mean of one-way tables of squared residuals by five bins of each column, each column with a weight by
  the variance of its table.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from difficulty import FIRST_DRAW, LEVEL, difficulty_of, judge, report
from local_spreads import OTHER_TABLES
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from scipy.stats import norm, rankdata
from threadpoolctl import threadpool_limits

from transduce.app.tables.features import vectorize
from transduce.device.kernels import Kernel, median_width
from transduce.methods.confidence_machine.label_scales import HANDICAP, SCALES, scale_labels
from transduce.methods.confidence_machine.setting_grid import SettingGrid, default_settings
from transduce.methods.confidence_machine.tuned_machine import TunedMachine

ROWS = 150
BINS = 5
CHOSEN_ON = 9100  # the first draw of the tables on which ways were compared


class Way(NamedTuple):
    """One way to measure the spread."""

    power: float = 1.0
    width: float = 0.5
    prior: float = 1.0
    studentized: bool = False
    weights: str = "features"


WAYS = {
    "constant": Way(power=0.0),
    "package": Way(),
    "power 1.5": Way(1.5),
    "power 2": Way(2.0),
    "power 3": Way(3.0),
    "power 2, width 0.35": Way(2.0, width=0.35),
    "power 3, width 0.35, prior 2": Way(3.0, width=0.35, prior=2.0),
    "studentized": Way(studentized=True),
    "studentized, power 2": Way(2.0, studentized=True),
    "ranks, power 2": Way(2.0, weights="ranks"),
    "studentized, ranks, power 2": Way(2.0, studentized=True, weights="ranks"),
    "columns": Way(prior=5.0, weights="columns"),
    "columns, power 2": Way(2.0, prior=5.0, weights="columns"),
}


class Residuals(NamedTuple):
    """What the setting with the smallest leave-one-out error says, on its scale of the labels."""

    scale: str
    deleted: np.ndarray  # (l,)
    predictions: np.ndarray  # (m,) at the unlabelled rows
    errors: np.ndarray  # (l + m,) standard errors but for a factor


def residuals_of(X, y):
    """Return the residuals on the scale of labels that the machine's criterion takes."""
    n_labels = len(y)
    machine = TunedMachine.build(SettingGrid.build(default_settings(X), X), X[:n_labels], y)
    candidates = {}
    scales = SCALES if y.min() > 0.0 else SCALES[:1]
    for scale, handicap in zip(scales, HANDICAP, strict=False):
        scaled = machine.with_labels(scale_labels(y, scale))
        residuals = scaled.fit.residuals / scaled.fit.diagonal * scaled.scale.unit
        setting = int(np.argmin(np.mean(residuals**2, axis=1)))
        slopes = {"identity": 0.0, "sqrt": np.log(0.25 / y), "log": -2.0 * np.log(y)}[scale]
        criterion = np.log(np.mean(residuals[setting] ** 2)) - np.mean(slopes) + handicap
        candidates[scale] = (criterion, scaled, setting, residuals[setting])
    scale = min(candidates, key=lambda name: candidates[name][0])
    _, scaled, setting, residuals = candidates[scale]
    predictions = []
    pivots = [1.0 / scaled.fit.diagonal[setting]]
    for _, border in machine.borders(X[n_labels:]):
        of_scale = scaled.border_of_labels(border)
        predictions.append(scaled.scale.undo(of_scale.prediction[setting]))
        pivots.append(of_scale.pivot[setting])
    errors = np.sqrt(np.concatenate(pivots))
    return Residuals(scale, residuals, np.concatenate(predictions), errors)


def to_normal_scores(X):
    """Return the ranks of each column as normal scores, with the standard deviation it had."""
    columns = []
    for column in X.T:
        scores = norm.ppf((rankdata(column) - 0.5) / len(column))
        columns.append((scores - scores.mean()) / (scores.std() or 1.0) * column.std())
    return np.column_stack(columns)


def smoothed(X, squares, way):
    """Return the mean squares (n,) of all rows, from those of the labelled ones (l,)."""
    n_labels = len(squares)
    if way.weights == "columns":
        return by_columns(X, squares, way.prior)
    if way.weights == "ranks":
        X = to_normal_scores(X)
    kernel = Kernel("rbf", way.width * median_width(X))
    weights = kernel.checked_matrix(X, X[:n_labels])
    weights[np.arange(n_labels), np.arange(n_labels)] = 0.0
    total = weights @ squares + way.prior * squares.mean()
    return total / (weights.sum(axis=1) + way.prior)


def by_columns(X, squares, prior):
    """Return the same from one-way tables of the columns."""
    n_labels = len(squares)
    tables = []
    for column in X.T:
        ranks = (rankdata(column) - 0.5) / len(column)
        bins = np.minimum((ranks * BINS).astype(int), BINS - 1)
        sums = np.bincount(bins[:n_labels], squares, minlength=BINS)[bins]
        counts = np.bincount(bins[:n_labels], minlength=BINS)[bins].astype(float)
        sums[:n_labels] -= squares
        counts[:n_labels] -= 1.0
        tables.append((sums + prior * squares.mean()) / (counts + prior))
    variances = np.var(np.array(tables)[:, :n_labels], axis=1)
    return variances @ np.array(tables) / variances.sum()


def spreads_of(X, residuals, way):
    """Return the spreads (n,) of all rows."""
    errors = np.ones(len(X))
    if way.studentized:
        errors = residuals.errors
    squares = (residuals.deleted / errors[: len(residuals.deleted)]) ** 2
    return errors * smoothed(X, squares, way) ** (0.5 * way.power)


def undo_scale(scale, values):
    """Return labels from their values on a scale."""
    if scale == "log":
        return np.exp(values)
    if scale == "sqrt":
        return np.maximum(values, 0.0) ** 2
    return values


def run_draw(name, n_labels, draw, difficulty):
    """Return the figures of all ways in one draw."""
    frame, y, seed = deal_mixed(name, n_labels, draw)
    order = np.random.default_rng(seed).permutation(len(difficulty))[: len(y)]
    last = min(len(y), n_labels + ROWS)
    target = read_mixed(name)[1]
    holes = np.append(y[:n_labels], np.full(last - n_labels, np.nan))
    matrix = vectorize(frame.iloc[:last].assign(target=holes), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    residuals = residuals_of(X, y[:n_labels])
    rank = int(np.ceil(LEVEL * (n_labels + 1)))
    about = {"table": name, "labels": n_labels, "draw": draw}
    lines = []
    for name_of_way, way in WAYS.items():
        spreads = spreads_of(X, residuals, way)
        half = np.sort(np.abs(residuals.deleted) / spreads[:n_labels])[rank - 1]
        reach = half * spreads[n_labels:]
        ends = [residuals.predictions - reach, residuals.predictions + reach]
        ends = np.column_stack([undo_scale(residuals.scale, end) for end in ends])
        figures = judge(ends, y[n_labels:last], difficulty[order[n_labels:last]], target)
        lines.append(about | {"way": name_of_way} | figures)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--difficulty", action="store_true", help="the tables of difficulty.py")
    options = parser.parse_args()
    names = [table.item for table in OTHER_TABLES]
    first = CHOSEN_ON
    if options.difficulty:
        names = [name for name, table in TABLES.items() if table.task == "regression"]
        first = FIRST_DRAW
    TABLES.update({table.item: table for table in OTHER_TABLES})
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            difficulty = difficulty_of(name)
            for n_labels in options.labels:
                if enters(name, n_labels):
                    for draw in range(first, first + options.draws):
                        lines += run_draw(name, n_labels, draw, difficulty)
    report(lines)


if __name__ == "__main__":
    main()
