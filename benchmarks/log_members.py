"""Whether members of the blend on the logarithm of positive labels make values better.

    python benchmarks/log_members.py [--labels 15 30 100] [--draws 4] [--rows 200] [--jobs 16]

Tables with positive numbers of `local_spreads.py`, which no race uses. *blend* is the blend as it is, *one more* has
its ridge regression on the logarithm besides, *two more* its forest too, and *only* is the blend of all members on the
logarithm of the labels. Printed are the mean absolute error and the root mean squared error over the standard deviation
of the target, and for each table the ratio of the mean absolute errors to the blend's.
"""

from __future__ import annotations

import argparse
import warnings

import mixed_tables
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from local_spreads import OTHER_TABLES
from mixed_tables import TABLES, deal_mixed, enters, read_mixed
from sklearn.compose import TransformedTargetRegressor
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.app.tables.features import vectorize
from transduce.model_selection.methods import Case, default_members

FIRST_DRAW = 7700


def on_log(estimator):
    """Return an estimator that is fitted to the logarithm of its labels."""
    return TransformedTargetRegressor(estimator, func=np.log, inverse_func=np.exp)


def run_draw(name, n_labels, draw, n_rows):
    """Return the errors of all ways in one draw."""
    warnings.simplefilter("ignore")
    # Another process has a module of its own, and a copy of the names that were imported from it.
    mixed_tables.TABLES.update({table.item: table for table in OTHER_TABLES})
    frame, y, seed = deal_mixed(name, n_labels, draw)
    n = min(len(y), n_labels + n_rows)
    holes = np.append(y[:n_labels], np.full(n - n_labels, np.nan))
    matrix = vectorize(frame.iloc[:n].assign(target=holes), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    case = Case("regression", n, n_labels, X.shape[1], 0, standardize=False, random_state=seed)
    members, _ = default_members(case)
    more = {
        f"log of {member}": on_log(members[member])
        for member in ("ridge", "random_forest")
        if member in members
    }
    first = dict(list(more.items())[:1])
    ways = {
        "blend": (members, holes),
        "one more": (members | first, holes),
        "two more": (members | more, holes),
        "only": (members, np.log(holes)),
    }
    spread = read_mixed(name)[1].std()
    lines = []
    for way, (chosen, labels) in ways.items():
        model = TransductiveBlend(chosen, standardize=False, random_state=seed)
        with threadpool_limits(1):
            values = model.fit(X, labels).answer_.values
        if way == "only":
            values = np.exp(values)
        errors = (values - y[n_labels:n]) / spread
        figures = {"mae": np.abs(errors).mean(), "rmse": np.sqrt(np.mean(errors**2))}
        lines.append({"table": name, "labels": n_labels, "draw": draw, "way": way} | figures)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[15, 30, 100])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, default=200, help="unlabelled rows")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    TABLES.update({table.item: table for table in OTHER_TABLES})
    names = [table.item for table in OTHER_TABLES]
    names = [name for name in names if read_mixed(name)[1].min() > 0.0]
    tasks = [
        delayed(run_draw)(name, n_labels, draw, options.rows)
        for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
        for n_labels in options.labels
        for name in names
        if enters(name, n_labels)
    ]
    lines = [line for part in Parallel(n_jobs=options.jobs)(tasks) for line in part]
    frame = pd.DataFrame(lines)
    for n_labels, part in frame.groupby("labels"):
        means = part.groupby(["way", "table"], sort=False)[["mae", "rmse"]].mean()
        print(f"\n{n_labels} labels, {part['table'].nunique()} tables, {len(part) // 4} draws")
        print(means.groupby("way", sort=False).mean().round(3).to_string())
        by_table = means["mae"].unstack("way")
        print(by_table.div(by_table["blend"], axis=0).round(2).to_string())


if __name__ == "__main__":
    main()
