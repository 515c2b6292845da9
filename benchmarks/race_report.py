"""Tables and critical-difference plots of the race (Demsar 2006)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

DOCS = Path(__file__).parent.parent / "docs"


def mean_ranks(errors: pd.DataFrame) -> pd.Series:
    """Return the mean rank of every column over the rows, the best first; a column without a number comes last."""
    return errors.rank(axis=1, na_option="bottom").mean().sort_values()


def friedman(errors: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test, in the form of Iman and Davenport, that all columns rank alike."""
    n, k = errors.shape
    spread = ((mean_ranks(errors) - (k + 1) / 2) ** 2).sum()
    chi = 12 * n / (k * (k + 1)) * spread
    return float(stats.f.sf((n - 1) * chi / (n * (k - 1) - chi), k - 1, (k - 1) * (n - 1)))


def critical_difference(n_methods: int, n_tables: int, level: float = 0.05) -> float:
    """Return Nemenyi's critical difference: mean ranks that are further apart differ significantly."""
    q = stats.studentized_range.isf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def report(lines: pd.DataFrame, out: Path) -> None:
    lines.to_csv(out / "race.csv", index=False, float_format="%.6g")
    for (task, labels), part in lines.groupby(["task", "labels"]):
        errors = part.pivot_table(
            "error", "table", "method", aggfunc=lambda e: e.mean(skipna=False), dropna=False
        )
        ranks = mean_ranks(errors)
        print(
            f"\n{task}, {labels} labels: {len(errors)} tables, {part.groupby('table')['draw'].nunique().min()} draws; "
            f"CD {critical_difference(len(ranks), len(errors)):.2f}, Friedman p {friedman(errors):.1e}"
        )
        print(
            pd.DataFrame(
                {"rank": ranks, "error": errors.mean(), "seconds": part.groupby("method")["seconds"].mean()}
            )
            .loc[ranks.index]
            .round(3)
            .to_string()
        )
    bad = lines[lines["failure"] != ""]
    print(bad.groupby(["task", "method", "failure"]).size().to_string() if len(bad) else "No method failed.")


def publish(out: Path) -> None:
    target = DOCS / "results" / "race"
    target.mkdir(parents=True, exist_ok=True)
    for path in out.glob("*.svg"):
        shutil.copy(path, target)
