"""What it costs in width to cover hard rows more often: ways to measure the local spread, one against another.

    python benchmarks/even_coverage.py [--labels 30 100] [--draws 6] [--difficulty]

Tables and draws of `local_spreads.py`; with ``--difficulty`` those of `difficulty.py`, on which nothing was chosen. As
in `learned_spreads.py` intervals are the rank among the deleted residuals of the labels over their spreads, near to the
exact regions and a hundred times as fast; labels are on the scale that the machine's criterion takes, but for
*constant, no scale*, the machine without either option, over whose mean width the others' are printed last. A spread is
to the power that is named; *width* is that of the weights' kernel in median distances, and *prior* so many rows' weight
for the mean.

- *studentized*: the spread of residuals over their standard errors, times the standard error of the row.
- *ranks*: weights from the ranks of each column, as normal scores.
- *columns*: the mean of one-way tables of squared residuals by five bins of each column, each column with a weight by
  the variance of its table.
- *regression*: the prediction of a row's absolute residual by kernel ridge regression on those of the others.
- *predictions*: the spread in the features times that among rows of similar predictions.
- *halves*: rows are compared within halves of the table only, by a measure that needs no label (the standard error of
  the prediction, the distance to the five nearest labels, the density of labels) or by the prediction.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from difficulty import FIRST_DRAW, LEVEL, difficulty_of, judge, report
from local_spreads import OTHER_TABLES
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from scipy.spatial.distance import cdist
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
    halves: str = ""  # by which rows are divided
    on_scale: bool = True


OLD = "constant, no scale"
WAYS = {
    OLD: Way(power=0.0, studentized=True, on_scale=False),
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
    "regression": Way(width=1.0, weights="regression"),
    "regression, power 1.5": Way(1.5, width=1.0, weights="regression"),
    "studentized, regression, power 1.5": Way(
        1.5, width=1.0, studentized=True, weights="regression"
    ),
    "predictions": Way(weights="predictions"),
    "predictions, power 1.25": Way(1.25, weights="predictions"),
    "halves by standard error": Way(halves="standard error"),
    "halves by distance": Way(halves="distance"),
    "halves by density": Way(halves="density"),
    "halves by prediction": Way(halves="prediction"),
}


class Residuals(NamedTuple):
    """What the setting with the smallest leave-one-out error says, on its scale of the labels."""

    scale: str
    deleted: np.ndarray  # (l,)
    predictions: np.ndarray  # (m,) at the unlabelled rows
    known: np.ndarray  # (l,) labels
    errors: np.ndarray  # (l + m,) standard errors but for a factor


def residuals_of(machine, X, y, *, choose_scale):
    """Return the residuals on the scale of labels that the machine's criterion takes."""
    n_labels = len(y)
    candidates = {}
    scales = SCALES if choose_scale and y.min() > 0.0 else SCALES[:1]
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
    known = scale_labels(y, scale)
    return Residuals(scale, residuals, np.concatenate(predictions), known, errors)


def to_normal_scores(X):
    """Return the ranks of each column as normal scores, with the standard deviation it had."""
    columns = []
    for column in X.T:
        scores = norm.ppf((rankdata(column) - 0.5) / len(column))
        columns.append((scores - scores.mean()) / (scores.std() or 1.0) * column.std())
    return np.column_stack(columns)


def smoothed(X, squares, residuals, way):
    """Return the mean squares (n,) of all rows, from those of the labelled ones (l,)."""
    n_labels = len(squares)
    if way.weights == "columns":
        return by_columns(X, squares, way.prior)
    if way.weights == "ranks":
        X = to_normal_scores(X)
    kernel = Kernel("rbf", way.width * median_width(X))
    weights = kernel.checked_matrix(X, X[:n_labels])
    if way.weights == "regression":
        return regressed(weights, squares)
    in_features = weighted_mean(weights, squares, way.prior)
    if way.weights == "predictions":
        return in_features * weighted_mean(alike_in_prediction(residuals), squares, 3.0)
    return in_features


def weighted_mean(weights, squares, prior):
    """Return means (n,) of the other rows' squares by weights (n, l), and of all with that of `prior` rows."""
    n_labels = len(squares)
    weights = weights.copy()
    weights[np.arange(n_labels), np.arange(n_labels)] = 0.0
    total = weights @ squares + prior * squares.mean()
    return total / (weights.sum(axis=1) + prior)


def alike_in_prediction(residuals):
    """Return weights (n, l) by the distance of predictions; of labelled rows those without their label."""
    n_labels = len(residuals.deleted)
    values = np.append(residuals.known - residuals.deleted, residuals.predictions)
    gaps = np.abs(values[:, None] - values[:n_labels])
    usual = np.median(gaps[:n_labels][np.triu_indices(n_labels, 1)]) + 1e-9
    return np.exp(-2.0 * (gaps / usual) ** 2)


def regressed(K, squares, ridge=3.0, least=0.4):
    """Return squares (n,) that kernel ridge regression of their roots gives, each without its own.

    At least a share of the mean root; K is (n, l).
    """
    n_labels = len(squares)
    sizes = np.sqrt(squares)
    mean = sizes.mean()
    inverse = np.linalg.inv(K[:n_labels] + ridge * np.eye(n_labels))
    coefficients = inverse @ (sizes - mean)
    without = sizes - coefficients / np.diag(inverse)
    elsewhere = mean + K[n_labels:] @ coefficients
    return np.maximum(np.append(without, elsewhere), least * mean) ** 2


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
    if way.power == 0.0:
        return errors
    return errors * smoothed(X, squares, residuals, way) ** (0.5 * way.power)


def halves_of(X, residuals, way):
    """Return to which half each row (n,) belongs."""
    n_labels = len(residuals.deleted)
    if not way.halves:
        return np.zeros(len(X), dtype=int)
    if way.halves == "standard error":
        measure = residuals.errors
    elif way.halves == "prediction":
        measure = np.append(residuals.known - residuals.deleted, residuals.predictions)
    else:
        distances = cdist(X, X[:n_labels])
        distances[np.arange(n_labels), np.arange(n_labels)] = np.inf
        if way.halves == "distance":
            measure = np.sort(distances, axis=1)[:, :5].mean(axis=1)
        else:
            measure = -np.exp(-2.0 * (distances / median_width(X)) ** 2).sum(axis=1)
    return (measure > np.median(measure)).astype(int)


def reaches(X, residuals, way):
    """Return how far intervals (m,) reach to either side, on the scale of the labels."""
    n_labels = len(residuals.deleted)
    spreads = spreads_of(X, residuals, way)
    half = halves_of(X, residuals, way)
    scores = np.abs(residuals.deleted) / spreads[:n_labels]
    reach = np.full(len(X), np.inf)
    for k in np.unique(half):
        own = np.sort(scores[half[:n_labels] == k])
        rank = int(np.ceil(LEVEL * (len(own) + 1) - 1e-9))
        if rank <= len(own):
            reach[half == k] = own[rank - 1] * spreads[half == k]
    return reach[n_labels:]


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
    machine = TunedMachine.build(
        SettingGrid.build(default_settings(X), X), X[:n_labels], y[:n_labels]
    )
    of_scale = {
        choose_scale: residuals_of(machine, X, y[:n_labels], choose_scale=choose_scale)
        for choose_scale in (False, True)
    }
    about = {"table": name, "labels": n_labels, "draw": draw}
    lines = []
    for name_of_way, way in WAYS.items():
        residuals = of_scale[way.on_scale]
        reach = reaches(X, residuals, way)
        ends = [residuals.predictions - reach, residuals.predictions + reach]
        ends = np.column_stack([undo_scale(residuals.scale, end) for end in ends])
        figures = judge(ends, y[n_labels:last], difficulty[order[n_labels:last]], target)
        lines.append(about | {"way": name_of_way} | figures)
    return lines


def report_ratios(lines):
    """Print the coverage of the hardest third, and the mean width over that of the old machine."""
    frame = pd.DataFrame(lines)
    for n_labels, part in frame.groupby("labels"):
        by_table = part.groupby(["way", "table"])[["width", "hard", "follows"]].mean()
        widths = np.log(by_table["width"]).unstack("table")
        ratios = np.exp(widths.sub(widths.loc[OLD], axis=1))
        table = by_table[["hard", "follows"]].groupby("way").mean()
        table["width over the old one's"] = np.exp(np.log(ratios).mean(axis=1))
        table["largest of a table"] = ratios.max(axis=1)
        print(f"\n{n_labels} labels")
        print(table.loc[list(WAYS)].round(3).to_string())


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
    report_ratios(lines)


if __name__ == "__main__":
    main()
