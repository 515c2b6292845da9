"""The number of neighbours by the normalised objective of Joachims (2003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from transduce.core import checks, validation
from transduce.core.progress import stage
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.spectral_graph.cut import cut_graph
from transduce.methods.spectral_graph.graph import assemble, median_scale, nearest_rows, similarities
from transduce.methods.spectral_graph.neighbors import Neighbors
from transduce.methods.spectral_graph.shell import GraphShell, canonical_rows, check_graph_settings
from transduce.methods.spectral_graph.spectrum import Spectrum, graph_spectrum
from transduce.metrics import precision_recall_break_even


@dataclass(frozen=True, eq=False)
class NeighborChoice:
    """Numbers of neighbours compared.

    Parameters
    ----------
    n_neighbors : int
        The choice: of the candidates that leave the fewest rows unreached, the one with the smallest objective.
    table : pandas.DataFrame
        One line for each candidate: ``n_neighbors``, ``objective`` (normalised, 1 on average over the candidates),
        ``n_unreached`` and, if the truth was given, ``break_even``.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.methods.spectral_graph import choose_n_neighbors
    >>> X = np.vstack([np.eye(2)[[0] * 6], np.eye(2)[[1] * 6]]) + 0.1 * np.arange(24).reshape(12, 2) / 24
    >>> y = ["a"] + [None] * 10 + ["b"]
    >>> choose_n_neighbors(X, y, [2, 11]).table["n_neighbors"].tolist()
    [2, 11]
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
    metric: Any = "cosine",
    n_components: int = 80,
    label_weight: Any = "auto",
    truth: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    missing_label: Any = None,
) -> NeighborChoice:
    """Choose the number of neighbours without labels to spare, by the paper's normalised objective.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Features of all rows.
    y : array-like of shape (n,), or (n, s) for several labelled samples
        Labels, missing where the answer is wanted.
    candidates : sequence of int, default=(5, 10, 20, 50, 100)
        Numbers of neighbours to compare.
    metric : str or callable, default="cosine"
        As in `neighbor_graph`.
    n_components : int, default=80
        As in `SpectralGraphTransducer`.
    label_weight : float or "auto", default="auto"
        As in `SpectralGraphTransducer`.
    truth : array-like of shape (n,), optional
        All labels, to compare the objective with the break-even point of precision and recall at the unlabelled rows, a
        study and not a choice.
    n_jobs : int or None, default=None
        Threads.
    random_state : int, RandomState or None, default=None
        Seed.
    missing_label : object, default=None
        A label that stands for "none".

    Returns
    -------
    NeighborChoice

    See Also
    --------
    NeighborChoiceDisplay : The table as a picture.

    Notes
    -----
    With ``O_ik`` the objective's minimum for task i (a class against the rest, in one labelled sample) and candidate k,
    the table holds the mean over i of ``O_ik / mean_k O_ik``. Neighbours are searched once, for the largest candidate,
    by comparing all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from transduce.methods.spectral_graph import choose_n_neighbors
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.full(len(truth), np.nan)
    >>> y[[0, 50, 100]] = [0, 1, 2]
    >>> choice = choose_n_neighbors(X, y, [5, 10, 40], metric="euclidean", random_state=0)
    >>> list(choice.table.columns)
    ['n_neighbors', 'objective', 'n_unreached']
    """
    reader = GraphShell(label_weight=label_weight, missing_label=missing_label)
    rows = validation.read_rows(reader, X, reset=True, sparse=True)
    ks = _check_candidates(candidates, rows.shape[0])
    check_graph_settings(max(ks), metric, "exact", n_jobs)
    checks.check_whole("n_components", n_components, least=1)
    weight = reader._label_weight(rows.shape[0])
    samples = [
        validation.read_labels(np.empty((rows.shape[0], 0)), None, column, missing_label=missing_label)
        for column in _columns(y)
    ]
    tasks = [task for sample in samples for task in _tasks(sample, truth)]
    random = check_random_state(random_state)
    order, ordered = canonical_rows(rows, metric)
    with stage("neighbours") as report:
        found = nearest_rows(ordered, np.arange(len(order)), ordered, max(ks), metric, n_jobs, report)
    lines, objectives = [], []
    for k in ks:
        part = Neighbors(found.ids[:, :k].copy(), found.scores[:, :k])
        graph, _ = assemble(
            part.ids, similarities(part, None if metric == "cosine" else median_scale(part)), random
        )
        spectrum = graph_spectrum(graph, n_components=n_components, random_state=random, n_jobs=n_jobs)
        done = [task.solve(spectrum, order, weight, int(n_components)) for task in tasks]
        objectives.append([objective for objective, _, _ in done])
        line = {"n_neighbors": k, "objective": np.nan, "n_unreached": max(count for _, count, _ in done)}
        if truth is not None:
            line["break_even"] = float(np.mean([share for _, _, share in done]))
        lines.append(line)
    table = pd.DataFrame(lines)
    scaled = np.array(objectives) / np.mean(objectives, axis=0)
    table["objective"] = scaled.mean(axis=1)
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

    labelled: AnyArray
    members: Mask
    unlabelled: AnyArray
    positive: Mask | None

    def solve(
        self, spectrum: Spectrum, order: AnyArray, label_weight: float, d: int
    ) -> tuple[float, int, float]:
        """Return the objective, how many unlabelled rows are unreached, and the break-even point."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        count, inside = len(self.members), int(self.members.sum())
        cost: Array = np.where(self.members, count / (2.0 * inside), count / (2.0 * (count - inside)))
        cut = cut_graph(
            spectrum,
            place[self.labelled],
            self.members[:, None],
            cost[:, None],
            np.array([inside / count]),
            label_weight=label_weight,
            d=d,
        )
        unlabelled = place[self.unlabelled]
        share = np.nan
        if self.positive is not None and self.positive.any():
            scores = np.nan_to_num(cut.scores[unlabelled, 0], nan=-np.inf)
            share = precision_recall_break_even(self.positive, scores)
        return float(cut.objectives[0]), int((~cut.reached[unlabelled]).sum()), share


def _tasks(sample: PartlyLabelled, truth: Any) -> list[_Task]:
    classes, codes = validation.class_labels(sample)
    held = classes if len(classes) > 2 else classes[1:]
    labelled = np.flatnonzero(sample.labelled)
    if truth is not None:
        truth = np.asarray(truth)
        if truth.shape != sample.labelled.shape:
            raise ValueError(f"truth must hold one label for each of the {len(sample.labelled)} rows.")
    return [
        _Task(
            labelled,
            classes[codes] == name,
            sample.unlabelled,
            None if truth is None else np.asarray(truth[sample.unlabelled] == name),
        )
        for name in held
    ]
