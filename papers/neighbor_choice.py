"""The number of neighbours by the normalised objective of Joachims (2003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from transduce.core import arrays, checks, validation
from transduce.core.computing import stage
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Mask
from transduce.device.graph import median_scale, similarities
from transduce.device.neighbors import Neighbors
from transduce.display import INSIDE, OUTSIDE, REGION, Display, finish
from transduce.methods.spectral_graph.cut import KnownLabels, cut_graph, known_labels
from transduce.methods.spectral_graph.graph import (
    GraphSettings,
    Metric,
    assemble,
    row_order,
    unit_rows,
)
from transduce.methods.spectral_graph.neighbors import Work, nearest_rows
from transduce.methods.spectral_graph.spectrum import Spectrum, graph_spectrum
from transduce.metrics import precision_recall_break_even


@dataclass(frozen=True, eq=False)
class NeighborChoice:
    """Numbers of neighbours compared: of those that leave the fewest rows unreached, the one of smallest objective.

    The table has one line for each candidate: ``n_neighbors``, ``objective`` (normalised, 1 on average over the
    candidates), ``n_unreached`` and, if the truth was given, ``break_even``.
    """

    n_neighbors: int
    table: pd.DataFrame

    def __str__(self) -> str:
        return f"n_neighbors={self.n_neighbors}\n{self.table.to_string(index=False)}"


def choose_n_neighbors(
    X: Any,
    y: Any,
    candidates: Sequence[int] = (5, 10, 20, 50, 100),
    *,
    metric: Metric = "cosine",
    n_components: int = 80,
    label_weight: float | str = "auto",
    truth: Any = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    missing_label: object = None,
) -> NeighborChoice:
    """Choose the number of neighbours without labels to spare, by the paper's normalised objective.

    y has shape (n,), or (n, s) for several labelled samples; its labels are missing where the answer is wanted. With
    the true labels of all rows the table also says how precision and recall break even, a study and not a choice.

    With ``O_ik`` the objective's minimum for task i (a class against the rest, in one labelled sample) and candidate k,
    the table holds the mean over i of ``O_ik / mean_k O_ik``. Neighbours are searched once, for the largest candidate,
    by comparing all rows.
    """
    if arrays.is_foreign(X):
        raise ValueError(
            "choose_n_neighbors computes on the processor only: pass X as a numpy array."
        )
    rows = validation.read_rows(BaseEstimator(), X, reset=True, sparse=True)
    ks = _check_candidates(candidates, rows.shape[0])
    GraphSettings(max(ks), metric, "exact", n_jobs).check(rows)
    checks.check_whole("n_components", n_components, least=1)
    random = check_random_state(random_state)
    order = row_order(rows)
    ordered = unit_rows(rows[order]) if metric == "cosine" else rows[order]
    empty = np.empty((len(order), 0))
    parts = [
        validation.read_labels(empty, None, column, missing_label=missing_label)
        for column in _columns(y)
    ]
    tasks = [task for part in parts for task in _tasks(part, order, truth, label_weight)]
    with stage("neighbours") as report:
        found = nearest_rows(
            ordered, np.arange(len(order)), ordered, max(ks), metric, Work(n_jobs, report)
        )
    lines, objectives = [], []
    for k in ks:
        part = Neighbors(found.ids[:, :k].copy(), found.scores[:, :k])
        scale = None if metric == "cosine" else median_scale(part)
        graph, _ = assemble(part.ids, similarities(part, scale), random, np.arange(len(order)))
        spectrum = graph_spectrum(
            graph, n_components=n_components, random_state=random, n_jobs=n_jobs
        )
        done = [task.solve(spectrum, int(n_components)) for task in tasks]
        values, counts, shares = zip(*done, strict=True)
        objectives.append(values)
        lines.append((k, np.nan, max(counts), np.mean(shares)))
    table = pd.DataFrame(lines, columns=["n_neighbors", "objective", "n_unreached", "break_even"])
    table = table if truth is not None else table.drop(columns="break_even")
    table["objective"] = (np.array(objectives) / np.mean(objectives, axis=0)).mean(axis=1)
    fewest = table[table["n_unreached"] == table["n_unreached"].min()]
    return NeighborChoice(int(fewest.loc[fewest["objective"].idxmin(), "n_neighbors"]), table)


def _check_candidates(candidates: Any, n: int) -> list[int]:
    ks = list(candidates) if isinstance(candidates, Sequence | np.ndarray | range) else [candidates]
    if not ks:
        raise ValueError(
            "candidates is empty: give numbers of neighbours to compare, for example (5, 10, 20)."
        )
    for k in ks:
        checks.check_whole("candidates", k, least=1)
    possible = sorted({int(k) for k in ks if k < n})
    if not possible:
        raise ValueError(f"Every candidate is too large: {n} rows have at most {n - 1} neighbours.")
    return possible


def _columns(y: Any) -> list[Any]:
    """Return the labelled samples: the columns of a table, or the one series."""
    if len(getattr(y, "shape", ())) == 2:
        return [y[name] for name in y.columns] if hasattr(y, "columns") else list(np.asarray(y).T)
    return [y]


@dataclass(frozen=True, eq=False)
class _Task:
    """One class against the rest in one labelled sample; `positive` are its true members, if they are known."""

    known: KnownLabels
    unlabelled: AnyArray
    positive: Mask | None

    def solve(self, spectrum: Spectrum, d: int) -> tuple[float, int, float]:
        """Return the objective, how many unlabelled rows are unreached, and the break-even point."""
        cut = cut_graph(spectrum, self.known, d)
        share = np.nan
        if self.positive is not None and self.positive.any():
            scores = np.nan_to_num(cut.scores[self.unlabelled, 0], nan=-np.inf)
            share = precision_recall_break_even(self.positive, scores)
        return float(cut.objectives[0]), int((~cut.reached[self.unlabelled]).sum()), share


def _tasks(
    sample: PartlyLabelled, order: AnyArray, truth: Any, label_weight: float | str
) -> list[_Task]:
    """Return a task for each class, its rows numbered in the order of the graph."""
    classes, codes = validation.class_labels(sample)
    known = known_labels(classes, codes, sample.labelled, label_weight=label_weight)
    held = classes[-len(known.prior) :]
    positive = [None] * len(held)
    if truth is not None:
        truth = np.asarray(truth)
        if truth.shape != order.shape:
            raise ValueError(f"truth must hold one label for each of the {len(order)} rows.")
        positive = [truth[sample.unlabelled] == name for name in held]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows, unlabelled = place[known.rows], place[sample.unlabelled]
    one = [
        KnownLabels(
            rows, known.members[:, [j]], known.costs[:, [j]], known.prior[[j]], known.weight
        )
        for j in range(len(held))
    ]
    return [_Task(labels, unlabelled, true) for labels, true in zip(one, positive, strict=True)]


class NeighborChoiceDisplay(Display):
    """The normalised objective over the number of neighbours and, where the truth is known, the break-even point.

    The choice is marked; the break-even point has the scale on the right.
    """

    _size = (6.0, 4.2)

    def __init__(self, choice: Any) -> None:
        if not hasattr(choice, "table"):
            raise TypeError("Pass what choose_n_neighbors returns.")
        self.choice = choice

    def _draw(self, ax: Any) -> None:
        table = self.choice.table
        ks = table["n_neighbors"].to_numpy()
        ax.plot(ks, table["objective"], "o-", color=INSIDE, label="normalised objective")
        best = self.choice.n_neighbors
        ax.axvline(best, color=REGION, lw=1.2, ls="--", label=f"choice: {best}")
        if "break_even" in table:
            right = ax.twinx()
            right.plot(ks, table["break_even"], "s-", color=OUTSIDE, label="break-even point")
            right.set_ylabel("break-even point (higher is better)", color=OUTSIDE)
            ax.plot([], [], "s-", color=OUTSIDE, label="break-even point")
        ax.set_xscale("log")
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.minorticks_off()
        finish(ax, xlabel="neighbours", ylabel="normalised objective (lower is better)", loc="best")
