"""Whether a spread that is learned from residuals and predictions follows difficulty better than a smoothed one.

    python benchmarks/learned_spreads.py [--labels 30 100] [--draws 3] [--log]

Tables and figures of `local_spreads.py`. Here the spread is fitted to the deleted residuals of the labelled rows alone,
with the setting that they choose, and intervals are the rank among their residuals over their spreads: no exact p-value
of the completed sample, but near to it, and a hundred times as fast. With ``--log`` positive targets are on their
logarithm.

- *constant*: the same spread everywhere.
- *package*: mean squared residuals of the neighbours in the features, a row's weight for the mean of all.
- *predictions*: of those with a similar prediction, three rows' weight; *both*: of either kind.
- *product*: the first times the second.
- *forest*: out of the bag, of absolute residuals by features and prediction; *to the power of 1.5*.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from difficulty import LEVEL, difficulty_of, judge, report
from local_spreads import OTHER_TABLES, weights_of
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

from transduce.app.tables.features import vectorize
from transduce.methods.confidence_machine.parabolas import parabolas
from transduce.methods.confidence_machine.setting_grid import SettingGrid, default_settings
from transduce.methods.confidence_machine.tuned_machine import TunedMachine

FIRST_DRAW = 9000
ROWS = 150
LEAST = 0.1  # of the mean absolute residual is added to a forest's


def deleted_residuals(X, y):
    """Return the residuals of labelled rows, predictions of the others, and what undoes the scale."""
    n_labels = len(y)
    machine = TunedMachine.build(SettingGrid.build(default_settings(X), X), X[:n_labels], y)
    residuals = machine.fit.residuals / machine.fit.diagonal
    setting = np.argmin(np.mean(residuals**2, axis=1))
    predictions = [
        curves[setting, 0]
        for _, border in machine.borders(X[n_labels:])
        for curves in parabolas(machine.fit, border)
    ]
    zero, one = machine.scale.undo(np.array([0.0, 1.0]))
    return residuals[setting] * (one - zero), np.array(predictions) * (one - zero) + zero


def smoothed(weights, squares, prior):
    """Return the root of means of squares (l,) by weights (l, l) or (m, l)."""
    if len(weights) == len(squares):
        weights = weights - np.diag(np.diag(weights))
    total = weights @ squares + prior * squares.mean()
    return np.sqrt(total / (weights.sum(axis=1) + prior))


def spreads_of(X, y, residuals, predictions):
    """Return the spreads of labelled and of unlabelled rows, for each way."""
    n_labels = len(y)
    values = np.append(y - residuals, predictions)
    in_features = weights_of(X, "rbf")[:, :n_labels]
    gaps = np.abs(values[:, None] - values[:n_labels])
    usual = np.median(gaps[:n_labels][np.triu_indices(n_labels, 1)]) + 1e-9
    in_values = np.exp(-2.0 * (gaps / usual) ** 2)
    squares = residuals**2

    def both_parts(weights, prior):
        parts = (weights[:n_labels], weights[n_labels:])
        return [smoothed(part, squares, prior) for part in parts]

    features = np.column_stack([X, values])
    sizes = np.abs(residuals)
    forest = RandomForestRegressor(
        150,
        min_samples_leaf=max(3, n_labels // 10),
        max_features=0.4,
        oob_score=True,
        random_state=0,
    )
    forest.fit(features[:n_labels], sizes)
    learned = [forest.oob_prediction_, forest.predict(features[n_labels:])]
    learned = [part + LEAST * sizes.mean() for part in learned]
    package = both_parts(in_features, 1.0)
    by_value = both_parts(in_values, 3.0)
    return {
        "constant": [np.ones(n_labels), np.ones(len(predictions))],
        "package": package,
        "predictions": by_value,
        "both": both_parts(in_features + in_values, 1.0),
        "product": [one * other for one, other in zip(package, by_value, strict=True)],
        "forest": learned,
        "forest, power 1.5": [part**1.5 for part in learned],
    }


def run_draw(name, n_labels, draw, difficulty, *, on_log):
    """Return the figures of all ways in one draw."""
    frame, y, seed = deal_mixed(name, n_labels, draw)
    order = np.random.default_rng(seed).permutation(len(difficulty))[: len(y)]
    last = min(len(y), n_labels + ROWS)
    target = read_mixed(name)[1]
    on_log = on_log and target.min() > 0.0
    known = np.log(y[:n_labels]) if on_log else y[:n_labels]
    holes = np.append(y[:n_labels], np.full(last - n_labels, np.nan))
    matrix = vectorize(frame.iloc[:last].assign(target=holes), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    residuals, predictions = deleted_residuals(X, known)
    rank = int(np.ceil(LEVEL * (n_labels + 1)))
    lines = []
    for way, (of_known, of_others) in spreads_of(X, known, residuals, predictions).items():
        half = np.sort(np.abs(residuals) / of_known)[rank - 1] * of_others
        ends = np.column_stack([predictions - half, predictions + half])
        if on_log:
            ends = np.exp(ends)
        figures = judge(ends, y[n_labels:last], difficulty[order[n_labels:last]], target)
        lines.append({"table": name, "labels": n_labels, "draw": draw, "way": way} | figures)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--log", action="store_true", help="positive targets on their logarithm")
    options = parser.parse_args()
    TABLES.update({table.item: table for table in OTHER_TABLES})
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (table.item for table in OTHER_TABLES):
            difficulty = difficulty_of(name)
            for n_labels in options.labels:
                if not enters(name, n_labels):
                    continue
                for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws):
                    lines += run_draw(name, n_labels, draw, difficulty, on_log=options.log)
    report(lines)


if __name__ == "__main__":
    main()
