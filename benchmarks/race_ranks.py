"""Mean ranks of methods over tables, and how far apart they must be to differ (Demsar 2006).

Demsar's example, four methods on 14 tables with mean ranks 3.143, 2.000, 2.893 and 1.964: Friedman's chi-squared is
9.28, F is 3.69, and the critical difference at 5 % is 1.25.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats


def mean_ranks(errors: pd.DataFrame) -> pd.Series:
    """Return the mean rank of every column over the rows, the best first; a column without a number comes last."""
    return errors.rank(axis=1, na_option="bottom").mean().sort_values(kind="stable")


def friedman(errors: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test, in the form of Iman and Davenport, that all columns rank alike."""
    n, k = errors.shape
    ranks = errors.rank(axis=1, na_option="bottom")
    tied = sum(
        float((count**3 - count).sum())
        for count in (row.value_counts() for _, row in ranks.iterrows())
    )
    return float(stats.f.sf(friedman_statistic(ranks.mean(), n, tied)[1], k - 1, (k - 1) * (n - 1)))


def friedman_statistic(ranks: pd.Series, n_tables: int, tied: float = 0.0) -> tuple[float, float]:
    """Return Friedman's chi-squared of mean ranks, and Iman and Davenport's F.

    `tied` is the sum of ``t^3 - t`` over all groups of t equal errors in a table.
    """
    k = len(ranks)
    chi = float(12 * n_tables / (k * (k + 1)) * ((ranks - (k + 1) / 2) ** 2).sum())
    chi /= 1 - tied / (n_tables * k * (k**2 - 1))
    rest = n_tables * (k - 1) - chi
    return chi, (n_tables - 1) * chi / rest if rest > 0 else np.inf


def critical_difference(n_methods: int, n_tables: int, level: float = 0.05) -> float:
    """Return Nemenyi's critical difference: methods whose mean ranks are further apart differ significantly."""
    q = stats.studentized_range.isf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def wilcoxon(errors: pd.Series, others: pd.Series) -> float:
    """Return the p-value of Wilcoxon's signed-rank test that two methods do alike; 1 if they never differ."""
    gaps = (errors - others).dropna().to_numpy()
    return float(stats.wilcoxon(gaps).pvalue) if gaps.any() else 1.0


def cliques(ranks: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """Return first and last place of each largest group of two or more that do not differ, of sorted mean ranks."""
    last = [int(np.searchsorted(ranks, rank + difference, side="right")) - 1 for rank in ranks]
    return [(i, j) for i, j in enumerate(last) if j > i and (i == 0 or j > last[i - 1])]
