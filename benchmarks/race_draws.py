"""One draw of the race: the rows, who is labelled, and the error of every method; see `race.py`."""

from __future__ import annotations

import time
import zlib
from functools import cache, lru_cache

import numpy as np
import scipy.sparse
from paper_sets import CATALOGUE, load_dataset
from race_methods import methods

LEFT_OUT = ("adult", "reuters", "webkb-pages", "webkb-links", "bundled-digits", "cpus")
MOST_ASKED = 300
FEWEST_ASKED = 30
MANY = 300


@cache
def read_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features as numbers, and labels: numbers, or classes as 0, 1, ..."""
    data = load_dataset(name)
    if name == "machine":
        data.X.drop(columns="model", inplace=True)
    X = data.encoded()
    X = X.toarray() if scipy.sparse.issparse(X) else X
    if data.task == "regression":
        return X, data.y.to_numpy(float)
    return X, np.unique(data.y, return_inverse=True)[1]


def count_labels(labels: str, n_rows: int) -> int:
    """Return how many labels a draw has, 0 if the table is too small."""
    if labels == "many":
        n_labels = min(MANY, int(0.7 * n_rows))
        return n_labels if n_labels > 100 else 0
    return int(labels) if n_rows >= int(labels) + FEWEST_ASKED else 0


def enters(name: str, labels: str) -> bool:
    """Return whether a table is in the race with so many labels."""
    entry = CATALOGUE[name]
    n_labels = count_labels(labels, entry.n_rows)
    if name in LEFT_OUT or n_labels == 0:
        return False
    return entry.task == "regression" or 2 * (read_table(name)[1].max() + 1) <= n_labels


def draw_rows(y: np.ndarray, n_labels: int, task: str, random: np.random.Generator) -> np.ndarray:
    """Return rows in random order, those to be labelled first; each class is among them."""
    order = random.permutation(len(y))
    if task == "classification":
        first = np.sort(np.unique(y[order], return_index=True)[1])
        order = np.concatenate([order[first], np.delete(order, first)])
    return order[: n_labels + MOST_ASKED]


@lru_cache(maxsize=2)
def deal(task: str, table: str, labels: str, draw: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return features, scaled, and labels of one draw's rows, how many of them are labelled, and a seed."""
    X, y = read_table(table)
    n_labels = count_labels(labels, len(y))
    seed = zlib.crc32(f"{table} {labels} {draw}".encode()) % 2**31
    rows = draw_rows(y, n_labels, task, np.random.default_rng(seed))
    X, y = X[rows], y[rows]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y, n_labels, seed


def race(task: str, table: str, labels: str, draw: int, method: str) -> dict[str, object]:
    """Return the error of a method in one draw, its processor seconds, and why it failed if it did."""
    X, y, n_labels, seed = deal(task, table, labels, draw)
    answer = methods(task, X.shape[1])[method]
    began, failure = time.process_time(), ""
    try:
        error = measure(answer(X, y[:n_labels], seed), y[:n_labels], y[n_labels:])
    except Exception as problem:  # a method of any make may raise anything
        error, failure = np.nan, f"{type(problem).__name__}: {problem}"[:300]
    return {"error": error, "seconds": round(time.process_time() - began, 3), "failure": failure}


def measure(found: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> float:
    """Return the error of answers."""
    if labels.dtype.kind != "f":
        return float(np.mean(found != truth))
    if not np.isfinite(found).all():
        raise ValueError("some answers are not finite")
    return float(np.sqrt(np.mean((found - truth) ** 2) / np.mean((labels.mean() - truth) ** 2)))
