"""Labels chosen by their class: wrong answers, shares and sets, plain, with estimated shares and with given ones.

Equally many labels of every class, on the tables with classes of `mixed_tables` and on scikit-learn's breast cancer
data; also the IDA sets of TRANSDUCE_DATA, where it is set. QuaPy's EMQ estimates the shares from the same
probabilities, where it is installed (``pip install quapy``).

    python benchmarks/by_class.py [--labels 60 200] [--draws 2] [--method auto]
"""

from __future__ import annotations

import argparse
import os
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mixed_tables import TABLES, read_mixed

from transduce import fill
from transduce.conformal import ByClass

MOST_UNLABELLED = 1000
IDA = ("breast_cancer", "diabetis", "heart", "thyroid", "titanic")


def tables() -> dict[str, Any]:
    """Return, by name, what reads the features and the classes of a table."""
    from sklearn.datasets import load_breast_cancer

    named = {
        name: (lambda name=name: read_mixed(name))
        for name, one in TABLES.items()
        if one.task != "regression"
    }

    def cancer() -> tuple[pd.DataFrame, np.ndarray]:
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return X, y.map({0: "malignant", 1: "benign"}).to_numpy(dtype=object)

    named["cancer"] = cancer
    folder = Path(os.environ.get("TRANSDUCE_DATA", "")) / "classification"
    for name in IDA:
        if (folder / f"ida_{name}.npz").exists():
            named[f"ida_{name}"] = lambda path=folder / f"ida_{name}.npz": _ida(path)
    return named


def _ida(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    content = np.load(path)
    return pd.DataFrame(content["x"]).add_prefix("x"), content["t"].astype(str).astype(object)


def deal(
    name: str, X: pd.DataFrame, y: np.ndarray, n_labels: int, draw: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with equally many labels of every class in its column ``class``, and the truth."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {n_labels} {draw}".encode()))
    classes = np.unique(y.astype(str))
    shown = []
    for label in classes:
        rows = rng.permutation(np.flatnonzero(y == label))
        shown.append(rows[: min(n_labels // len(classes), len(rows) // 2)])
    shown = np.concatenate(shown)
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), shown))[:MOST_UNLABELLED]
    rows = np.concatenate([shown, others])
    table = X.iloc[rows].reset_index(drop=True)
    table["class"] = np.where(np.arange(len(rows)) < len(shown), y[rows], None)
    return table, y[rows]


def emq(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Return the shares by QuaPy's EMQ; None if it is not installed."""
    try:
        from quapy.method.aggregative import EMQ
    except ImportError:
        return None
    return np.asarray(EMQ.EM(labels, probabilities)[0])


def measure(name: str, table: pd.DataFrame, truth: np.ndarray, method: str) -> list[dict[str, Any]]:
    """Return one line for each way: errors, the largest error of a share, sets and their coverage."""
    missing = table["class"].isna().to_numpy()
    classes, codes = np.unique(truth[missing].astype(str), return_inverse=True)
    true = dict(zip(*np.unique(truth.astype(str), return_counts=True), strict=True))
    shares = {label: float(np.mean(truth[missing] == label)) for label in true}
    common: dict[str, Any] = {"method": method, "task": "classification", "guarantee": "column"}
    ways = {"plain": {}, "estimated": {"labels": ByClass()}, "given": {"labels": ByClass(shares)}}
    lines = [{"way": "most frequent", "wrong": 1.0 - max(shares.values())}]
    for way, options in ways.items():
        result = fill(table, "class", **common, **options)
        answer = result.answer
        held = answer.label_sets[
            np.arange(len(codes)), np.searchsorted(answer.classes.astype(str), classes)[codes]
        ]
        within = [held[codes == k].mean() for k in range(len(classes)) if np.sum(codes == k) >= 20]
        line = {
            "way": way,
            "wrong": np.mean(answer.values != truth[missing]),
            "size": answer.label_sets.sum(1).mean(),
        }
        line |= {"covered": held.mean(), "least": min(within)}
        if way == "estimated":
            found, right = (
                result.class_shares,
                np.array([shares[str(c)] for c in result.class_shares.classes]),
            )
            line["share"] = np.abs(found.shares - right).max()
            line["inside"] = np.mean((found.lower <= right) & (right <= found.upper))
            plain = result.values_model.answer_.probabilities
            other = None if plain is None else emq(plain, found.labels)
            lines.append(
                {"way": "EMQ", "share": np.nan if other is None else np.abs(other - right).max()}
            )
            lines.append({"way": "labels' shares", "share": np.abs(found.labels - right).max()})
        lines.append(line)
    return [{"table": name, **line} for line in lines]


def main() -> None:
    """Print errors, shares, sizes and coverage, by number of labels and way, and the shares table by table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--method", default="auto")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[dict[str, Any]] = []
    for draw in range(given.draws):
        for name, read in tables().items():
            X, y = read()
            for n_labels in given.labels:
                table, truth = deal(name, X, y, n_labels, draw)
                new = measure(name, table, truth, given.method)
                lines += [{"labels": n_labels, **line} for line in new]
                print(pd.DataFrame(new).round(3).to_string(index=False), flush=True)
    every = pd.DataFrame(lines)
    columns = ["wrong", "share", "inside", "size", "covered", "least"]
    print(every.groupby(["labels", "way"], sort=False)[columns].mean().round(3).to_string())
    off = every[every["way"] == "estimated"].sort_values("share", ascending=False)
    print("Where estimated shares are worst:")
    print(off[["table", "labels", "share", "wrong"]].head(6).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
