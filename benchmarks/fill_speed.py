"""Processor time and error of `fill`, beside CatBoost, LightGBM and a random forest with their defaults, in one run.

    python benchmarks/fill_speed.py [--labels 30 300 2000] [--tables diamonds credit_data] [--draw 20]

On mixed tables of `mixed_tables.py` with up to 1,000 rows unlabelled, every method on one thread and as it comes: a
boosted model has its own way with categories, the forest gets our features. The others give values alone; `fill` also
intervals or sets, and what is guaranteed. Times are seconds of the processor for fit and answers, without imports;
errors those of the unlabelled rows: of numbers over that of the labelled mean, of classes the share of wrong answers.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from mixed_tables import TABLES, deal_mixed, enters
from race_draws import measure
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from threadpoolctl import threadpool_limits

from transduce import fill
from transduce.app.tables.features import vectorize

Method = Callable[[pd.DataFrame, np.ndarray, str, int], np.ndarray]


def by_fill(frame: pd.DataFrame, labels: np.ndarray, task: str, seed: int) -> np.ndarray:
    """Return what `fill` answers at the rows after the labelled ones."""
    cells = np.full(len(frame), np.nan if task == "regression" else None, dtype=labels.dtype)
    cells[: len(labels)] = labels
    filled = fill(frame.assign(target_=cells), "target_", random_state=seed)
    return filled.frame["target__filled"].to_numpy()[len(labels) :]


def by_forest(frame: pd.DataFrame, labels: np.ndarray, task: str, seed: int) -> np.ndarray:
    make = RandomForestRegressor if task == "regression" else RandomForestClassifier
    return _of_features(make(random_state=seed), frame, labels)


def by_lightgbm(frame: pd.DataFrame, labels: np.ndarray, task: str, seed: int) -> np.ndarray:
    import lightgbm

    make = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    texts = _texts(frame)
    table = frame.astype(dict.fromkeys(texts, "category"))
    model = make(n_jobs=1, verbose=-1, random_state=seed)
    return np.asarray(
        model.fit(table[: len(labels)], _plain(labels, task)).predict(table[len(labels) :])
    )


def by_catboost(frame: pd.DataFrame, labels: np.ndarray, task: str, seed: int) -> np.ndarray:
    import catboost

    make = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
    texts = _texts(frame)
    table = frame.assign(
        **{name: frame[name].astype(object).fillna("missing").astype(str) for name in texts}
    )
    model = make(
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_seed=seed,
        cat_features=texts,
    )
    return np.ravel(
        model.fit(table[: len(labels)], _plain(labels, task)).predict(table[len(labels) :])
    )


METHODS: dict[str, Method] = {
    "fill": by_fill,
    "CatBoost": by_catboost,
    "LightGBM": by_lightgbm,
    "forest": by_forest,
}


def _texts(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def _plain(labels: np.ndarray, task: str) -> np.ndarray:
    return labels if task == "regression" else labels.astype(str)


def _of_features(model: Any, frame: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    X, plain = (
        vectorize(frame, random_state=0).matrix,
        labels if labels.dtype.kind == "f" else labels.astype(str),
    )
    return model.fit(X[: len(labels)], plain).predict(X[len(labels) :])


def race(name: str, n_labels: int, draw: int) -> list[dict[str, Any]]:
    """Return time and error of every method on one table."""
    frame, target, seed = deal_mixed(name, n_labels, draw)
    task, labels, truth = TABLES[name].task, target[:n_labels], target[n_labels:]
    lines = []
    for method, answer in METHODS.items():
        start = time.process_time()
        found = answer(frame, labels, task, seed)
        seconds = time.process_time() - start
        found = found.astype(float) if task == "regression" else found.astype(str)
        line = {"labels": n_labels, "task": task, "table": name, "method": method}
        lines.append({**line, "seconds": seconds, "error": measure(found, labels, truth)})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 300, 2000])
    parser.add_argument(
        "--tables", nargs="+", default=["diamonds", "Computers", "credit_data", "Arrests"]
    )
    parser.add_argument("--draw", type=int, default=20)
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("diamonds", "Hawks"):  # compiled loops are loaded before anything is timed
            race(name, 250, options.draw + 1)
        lines: list[dict[str, Any]] = []
        for n_labels in options.labels:
            for name in (name for name in options.tables if enters(name, n_labels)):
                lines += race(name, n_labels, options.draw)
            table = pd.DataFrame(lines).groupby(["labels", "task", "method"], sort=False)
            print(table[["seconds", "error"]].mean().unstack().round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
