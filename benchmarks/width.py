"""How wide intervals are, and how often they hold the truth: our guarantees for rows and columns against the peers.

    TRANSDUCE_DATA=folder python benchmarks/width.py [--labels 15 30 60 100 300] [--draws 1] [--calibration]

Draws of the race (`race_draws.py`): all regression tables at hand, features as numbers. Level 90 %. *Width* is the mean
width of the intervals over the standard deviation of the labels, the geometric mean over tables; *coverage* the share
of truths inside, the mean over tables. An unbounded interval counts as the range of all labels of the table. Classes:
mean size of the prediction sets. `--calibration` compares numbers of calibration labels instead.

- *row*: what `fill` gives with few labels: the confidence machine tuned on the completed sample, no label held out,
  extended to the blend's values.
- *column*: what `fill` gives with many: calibration labels around the blend.
- *column, before*: the same with the standard errors that the blend had before, half of the squared error the same at
  all rows, half in proportion to the squared spread of the members.
- *fixed machine*: the confidence machine with its default settings.
- *split*, *CV+*, *jackknife+*: ridge and a forest, averaged, with half of the labels held out (crepes), and five folds
  or all labels left out one by one (MAPIE; jackknife+ up to 60 labels, since it takes a fit for each).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from paper_sets import dataset_names
from race_draws import LEFT_OUT, deal, enters
from race_methods import with_holes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from transduce import (
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveBlend,
)
from transduce.conformal.calibrated_answer import with_values
from transduce.ensemble import blend_fit

LEVEL = 0.9
OUT = Path(__file__).parent / "output" / "width.jsonl"


class HalfAndHalf:
    """The standard errors that the blend had before; stands in for `ErrorSize`."""

    def __init__(self, error, typical):
        self.error, self.typical = error, typical

    @classmethod
    def fit(cls, values, spreads, errors, shares):
        return cls(np.sqrt(np.mean(errors**2)), np.sqrt(np.mean(spreads**2)))

    def at(self, values, spreads):
        return self.error * np.sqrt((1.0 + (spreads / self.typical) ** 2) / 2.0)


def before(X, y, seed):
    with mock.patch.object(blend_fit, "ErrorSize", HalfAndHalf):
        return conformal(X, y, seed)


def blend(task, seed):
    return TransductiveBlend(task=task, random_state=seed)


def peer(seed):
    members = [
        ("ridge", RidgeCV(np.logspace(-3, 3, 13))),
        ("forest", RandomForestRegressor(100, random_state=seed)),
    ]
    return VotingRegressor(members)


def conformal(X, y, seed, calibration="auto"):
    model = ConformalTransducer(
        blend("regression", seed),
        calibration=calibration,
        refit=True,
        random_state=seed,
        test_exchangeability=False,
    )
    return model.fit(X, y).answer_.regions.hull()


def row(X, y, seed):
    machine = RidgeConfidenceMachine(settings="leave-one-out").fit(X, y)
    own = blend("regression", seed).fit(X, y).answer_
    answer = with_values(
        machine.answer_, own.values, own.status, own.standard_errors, own.probabilities
    )
    return answer.regions.hull()


def fixed(X, y, seed):
    return RidgeConfidenceMachine().fit(X, y).answer_.regions.hull()


def split(X, y, seed):
    from crepes import WrapRegressor

    known = np.flatnonzero(~np.isnan(y))
    half = np.random.default_rng(seed).permutation(known)
    train, hold = half[: len(half) // 2], half[len(half) // 2 :]
    wrapped = WrapRegressor(peer(seed))
    wrapped.fit(X[train], y[train])
    wrapped.calibrate(X[hold], y[hold])
    return wrapped.predict_int(X[np.isnan(y)], confidence=LEVEL)


def cross(X, y, seed, folds):
    from mapie.regression import CrossConformalRegressor

    known = ~np.isnan(y)
    model = CrossConformalRegressor(
        peer(seed), confidence_level=LEVEL, method="plus", cv=min(folds, int(known.sum()))
    )
    model.fit_conformalize(X[known], y[known])
    return model.predict_interval(X[~known])[1][:, :, 0]


def methods(n_labels, calibration):
    """Return the ways to make intervals with so many labels."""
    if calibration:
        numbers = [number for number in (19, 29, 49, 79) if number <= n_labels // 2]
        return {f"{n} held out": lambda X, y, s, n=n: conformal(X, y, s, n) for n in numbers}
    found = {
        "row": row,
        "fixed machine": fixed,
        "split": split,
        "CV+": lambda X, y, s: cross(X, y, s, 5),
    }
    if n_labels >= 20:
        found["column"] = conformal
        found["column, before"] = before
    if n_labels <= 60:
        found["jackknife+"] = lambda X, y, s: cross(X, y, s, 10**6)
    return found


def sets(n_labels):
    """Return the ways to make prediction sets with so many labels."""

    def calibrated(estimator):
        def answer(X, y, seed):
            model = ConformalTransducer(
                estimator(seed), random_state=seed, refit=True, test_exchangeability=False
            )
            return model.fit(X, y).answer_.label_sets, model.classes_

        return answer

    def machine(**settings):
        def answer(X, y, seed):
            model = RidgeConfidenceClassifier(**settings).fit(X, y)
            sets = model.answer_.label_sets.copy()
            sets[np.arange(len(sets)), np.searchsorted(model.classes_, model.answer_.values)] = True
            return sets, model.classes_

        return answer

    found = {"row": machine(settings="leave-one-out"), "fixed machine": machine()}
    if n_labels >= 20:
        found["column"] = calibrated(lambda seed: blend("classification", seed))
        found["split"] = calibrated(lambda seed: RandomForestClassifier(200, random_state=seed))
    return found


def judge(task, answer, X, y, n_labels, seed):
    """Return width, or size of the sets, and coverage of one way in one draw."""
    truth = y[n_labels:]
    if task == "classification":
        found, classes = answer(X, with_holes(X, y[:n_labels]), seed)
        inside = [
            c in classes and s[np.searchsorted(classes, c)]
            for s, c in zip(found, truth, strict=True)
        ]
        return float(found.sum(axis=1).mean()), float(np.mean(inside))
    holes = np.append(y[:n_labels], np.full(len(truth), np.nan))
    low, high = np.asarray(answer(X, holes, seed), dtype=float).T
    inside = (low <= truth) & (truth <= high)
    width = np.minimum(high, y.max()) - np.maximum(low, y.min())
    width = np.where(np.isfinite(low) & np.isfinite(high), high - low, width)
    return float(width.mean() / y.std()), float(inside.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", nargs="+", default=["15", "30", "60", "100", "300"])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--most", type=int, default=150, help="unlabelled rows of a draw")
    parser.add_argument("--task", choices=["regression", "classification"], default="regression")
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--methods", nargs="+", help="these only")
    options = parser.parse_args()
    OUT.parent.mkdir(exist_ok=True)
    done = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    seen = {(d["task"], d["table"], d["labels"], d["draw"], d["method"]) for d in done}
    with threadpool_limits(1), warnings.catch_warnings(), OUT.open("a") as file:
        warnings.simplefilter("ignore")
        for labels in options.labels:
            names = [
                name
                for name in dataset_names(options.task)
                if name not in LEFT_OUT and enters(name, labels)
            ]
            for name, draw in [(name, draw) for draw in range(options.draws) for name in names]:
                X, y, n_labels, seed = deal(options.task, name, labels, draw)
                X, y = X[: n_labels + options.most], y[: n_labels + options.most]
                if options.task == "classification":
                    ways = sets(n_labels)
                else:
                    ways = methods(n_labels, options.calibration)
                ways = {
                    name: way for name, way in ways.items() if name in (options.methods or ways)
                }
                for method, answer in ways.items():
                    key = (options.task, name, labels, draw, method)
                    if key in seen:
                        continue
                    began = time.process_time()
                    try:
                        width, coverage = judge(options.task, answer, X, y, n_labels, seed)
                    except Exception as error:  # a peer of any make may raise anything
                        print(
                            f"{method} failed on {name} with {labels} labels: {error}", flush=True
                        )
                        continue
                    line = dict(
                        zip(("task", "table", "labels", "draw", "method"), key, strict=True)
                    )
                    line |= {
                        "width": width,
                        "coverage": coverage,
                        "seconds": time.process_time() - began,
                    }
                    done.append(line)
                    file.write(json.dumps(line) + "\n")
                    file.flush()
    report(pd.DataFrame(done), options)


def report(found, options):
    """Print the figures of the labels asked for, over tables on which all ways ended."""
    found = found[(found["task"] == options.task) & found["labels"].isin(options.labels)]
    found = found[found["method"].str.endswith("held out") == options.calibration]
    found = found[found["method"].isin(options.methods or found["method"])]
    for labels, part in found.groupby("labels", sort=False):
        counts = part.groupby(["table", "draw"])["method"].nunique()
        whole = (
            part.set_index(["table", "draw"])
            .loc[counts[counts == counts.max()].index]
            .reset_index()
        )
        table = whole.groupby("method").agg(
            width=("width", lambda widths: np.exp(np.log(np.maximum(widths, 1e-9)).mean())),
            coverage=("coverage", "mean"),
            seconds=("seconds", "mean"),
        )
        print(
            f"\n{labels} labels, {whole['table'].nunique()} tables, {len(whole) // len(table)} draws"
        )
        print(table.sort_values("width").round(3).to_string())


if __name__ == "__main__":
    main()
