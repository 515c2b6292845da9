"""What each setting of the blend's members is worth: the blend as it is, and with one thing changed at a time.

    python benchmarks/member_settings.py [--labels 10 30 300 2000] [--draws 4] [--task regression]

On the mixed tables of `mixed_tables.py`, in draws that the race does not use (from number 10 on), with up to 500 rows
unlabelled. Printed for each change: the mean error of the blend with it, on how many tables it is worse than the blend
as it is, and Wilcoxon's p over the tables.

Error: of numbers the root mean squared error over that of the labelled mean; of classes the share of wrong answers.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from mixed_tables import TABLES, deal_mixed, enters
from race_draws import measure
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from transduce import TransductiveBlend
from transduce.app.tables.features import vectorize
from transduce.model_selection.methods import FEW_LABELS, MANY_LABELS, Case, default_members

FIRST_DRAW, MOST_ROWS = 10, 500
AS_IT_IS = "as it is"
STANDARDISED = "each feature standardised"
Members = dict[str, Any]
Change = Callable[[Members], Members]


def with_settings(name: str, **settings: Any) -> Change:
    """Return what gives one member other settings."""

    def change(members: Members) -> Members:
        member = clone(members[name])
        (member.steps[-1][1] if hasattr(member, "steps") else member).set_params(**settings)
        return members | {name: member}

    return change


def without(name: str) -> Change:
    return lambda members: {other: member for other, member in members.items() if other != name}


def weak_ridge(members: Members) -> Members:
    member = clone(members["ridge"])
    member.steps[-1] = (member.steps[-1][0], RidgeCV(np.logspace(-3, 4, 30)))
    return members | {"ridge": member}


def changes(task: str, n_labels: int) -> dict[str, Change]:
    """Return what is tried with so many labels."""
    few, many = n_labels < FEW_LABELS, n_labels >= MANY_LABELS
    old = {"min_samples_leaf": 20}
    slow_trees = {"boosted trees with 20 rows a leaf": with_settings("boosted_trees", **old)}
    found: dict[str, Change] = {
        AS_IT_IS: lambda members: members,
        STANDARDISED: lambda members: members,
    }
    if task == "regression":
        found["ridge chooses from 0.001 on"] = weak_ridge
        found["one relevance of all features"] = with_settings("gaussian_process", relevance=False)
        found["without the Gaussian process"] = without("gaussian_process")
        if few:
            found["transductive ridge by leave-one-out"] = with_settings(
                "transductive_ridge", ridge="loo"
            )
    else:
        found["without the spectral graph"] = without("spectral_graph")
        if few:
            found["logistic regression with C = 1"] = with_settings("logistic_regression", C=1.0)
            found["extremely randomised trees as by default"] = with_settings(
                "extra_trees", bootstrap=False, max_features="sqrt"
            )
    return found | (slow_trees if many else {})


def blends(task: str, table: str, n_labels: int, draw: int) -> dict[str, float]:
    """Return the errors of all changes in one draw."""
    frame, target, seed = deal_mixed(table, n_labels, draw)
    frame, target, seed = (
        frame[: n_labels + MOST_ROWS],
        target[: n_labels + MOST_ROWS],
        seed % 2**31,
    )
    X, labels, truth = vectorize(frame, random_state=0).matrix, target[:n_labels], target[n_labels:]
    y = np.full(len(X), np.nan if task == "regression" else None, dtype=labels.dtype)
    y[:n_labels] = labels
    errors = {}
    for name, change in changes(task, n_labels).items():
        case = Case(
            task, len(X), n_labels, X.shape[1], standardize=name == STANDARDISED, random_state=seed
        )
        members = change(default_members(case)[0])
        values = TransductiveBlend(members, task=task, random_state=seed).fit(X, y).answer_.values
        errors[name] = measure(
            values if task == "regression" else values.astype(str), labels, truth
        )
    return errors


def report(task: str, n_labels: int, draws: int) -> None:
    """Print one line a change."""
    lines = [
        {"table": name, **blends(task, name, n_labels, FIRST_DRAW + draw)}
        for draw in range(draws)
        for name, about in TABLES.items()
        if about.task == task and enters(name, n_labels)
    ]
    errors = pd.DataFrame(lines).groupby("table").mean()
    print(f"\n{task}, {n_labels:,} labels, {len(errors)} tables, {draws} draws of each")
    for name in errors:
        gaps = errors[name] - errors[AS_IT_IS]
        p = wilcoxon(gaps).pvalue if (gaps != 0).any() else 1.0
        print(
            f"{errors[name].mean():.4f}  worse on {int((gaps > 0).sum()):2d}  p {p:.2f}  {name}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 30, 300, 2000])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument(
        "--task",
        choices=["regression", "classification"],
        nargs="+",
        default=["regression", "classification"],
    )
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_labels in options.labels:
            for task in options.task:
                report(task, n_labels, options.draws)


if __name__ == "__main__":
    main()
