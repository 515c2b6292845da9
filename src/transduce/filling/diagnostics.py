"""What a fitted model tells about itself: its members, its answers at hidden labels, relevance, and a map."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score

from transduce.core import arrays
from transduce.core.types import AnyArray, Array
from transduce.ensemble.blend import TransductiveBlend
from transduce.filling.plan import FOLDS, Plan, parts
from transduce.methods.spectral_graph.graph import neighbor_graph
from transduce.methods.spectral_graph.spectrum import graph_spectrum
from transduce.model_selection.cross_validation import cross_val_transduce
from transduce.tables.features import Features
from transduce.tables.labels import Target

MOST_MAPPED = 20_000
SCORERS = {"regression": "R²", "classification": "accuracy"}


@dataclass(frozen=True, eq=False)
class Values:
    """What the values come from."""

    estimator: Any  # fitted to all labels
    order: AnyArray  # positions in the table of the rows that it was fitted to
    groups: AnyArray | None = None  # (n,) groups of all rows, which folds must not split


def score(task: str, true: AnyArray, answered: AnyArray) -> float:
    """Return R², or the share of right answers; NaN if there is nothing to score."""
    if len(true) < 2:
        return np.nan
    if task == "regression":
        return float(r2_score(true.astype(float), answered.astype(float)))
    return float(accuracy_score([str(label) for label in true], [str(label) for label in answered]))


def members_and_folds(
    values: Values, method: str, plan: Plan, features: Features, target: Target, seconds: float, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how each method did, and the out-of-fold answers at the labelled rows."""
    if isinstance(values.estimator, TransductiveBlend):
        lines, folds = _of_blend(values.estimator, values.order, target)
    else:
        folds = _cross_validate(values, features, target, seed)
        lines = [(method, 1.0, score(target.task, folds["true"], folds["answered"]), seconds, "")]
    lines += [(name, np.nan, np.nan, np.nan, why) for name, why in plan.left_out.items()]
    members = pd.DataFrame(lines, columns=["name", "weight", "score", "seconds", "note"])
    members.insert(3, "scorer", SCORERS[target.task])
    return members, folds


def _of_blend(
    blend: TransductiveBlend, order: AnyArray, target: Target
) -> tuple[list[tuple[Any, ...]], pd.DataFrame]:
    """Return a line for each member of the blend, and the blend's out-of-fold answers."""
    diagnostics = blend.answer_.diagnostics
    found = getattr(blend, "out_of_fold_", None)
    scores, folds = dict.fromkeys(blend.weights_.index, np.nan), _no_folds()
    if found is not None:
        true = target.labels[order[found.index]]
        answers = {name: _answered(found, name, blend) for name in [*blend.weights_.index, "blend"]}
        scores = {name: score(target.task, true, answers[name]) for name in blend.weights_.index}
        folds = pd.DataFrame({"true": true, "answered": answers["blend"]})
        if target.task == "classification":
            folds["probability"] = found["blend"].to_numpy().max(axis=1)
    lines: list[tuple[Any, ...]] = [
        (name, weight, scores[name], diagnostics["seconds"][name], "")
        for name, weight in blend.weights_.items()
    ]
    lines += [(name, np.nan, np.nan, np.nan, why) for name, why in diagnostics["left out"].items()]
    return lines, folds


def _answered(found: pd.DataFrame, name: str, blend: TransductiveBlend) -> AnyArray:
    """Return one member's out-of-fold answers."""
    if blend.task_ == "regression":
        return found[name].to_numpy()
    shares = found[name]
    return shares.columns.to_numpy()[shares.to_numpy().argmax(axis=1)]


def _no_folds() -> pd.DataFrame:
    return pd.DataFrame({"true": [], "answered": []})


def _cross_validate(values: Values, features: Features, target: Target, seed: int) -> pd.DataFrame:
    """Return out-of-fold answers of a single method."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = cross_val_transduce(
                values.estimator,
                features.matrix,
                target.labels,
                cv=FOLDS,
                groups=values.groups,
                random_state=seed,
            ).answers
    except ValueError:  # too few labels of a class, say: there is nothing to show then
        return _no_folds()
    folds = pd.DataFrame({"true": target.labels[answers.rows], "answered": answers.values})
    if answers.probabilities is not None:
        folds["probability"] = answers.probabilities.max(axis=1)
    return folds


def relevance(model: Any, features: Features) -> pd.Series | None:
    """Return how much each column matters, from 0 to 1, by the Gaussian process or else the trees behind a model."""
    found = parts(model).values()
    for member in found:
        if getattr(member, "relevance", False):  # of each feature, and not one of all
            spread = arrays.to_numpy(member.feature_spread_)
            return _by_column(arrays.to_numpy(member.relevance_) * spread, features)
    for member in found:
        if hasattr(member, "feature_importances_"):
            return _by_column(member.feature_importances_, features)
    return None


def _by_column(weights: Array, features: Features) -> pd.Series | None:
    """Return the root of the sum of squares over each column's features, the largest being 1."""
    sums = pd.Series(np.square(weights)).groupby(pd.Index(features.origins, dtype=object)).sum() ** 0.5
    if not sums.max() > 0.0:
        return None
    return (sums / sums.max()).sort_values(ascending=False, kind="stable").rename("relevance")


def row_map(matrix: Array, seed: int) -> pd.DataFrame | None:
    """Return every row's place along the two leading vectors of its neighbour graph; None if rows are too many."""
    if not 5 <= len(matrix) <= MOST_MAPPED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = neighbor_graph(matrix, metric="euclidean", random_state=seed)
        spectrum = graph_spectrum(graph, n_components=2, random_state=seed)
    if spectrum.vectors.shape[1] < 2:
        return None
    roots = np.sqrt(np.maximum(spectrum.degrees, np.finfo(float).tiny))
    return pd.DataFrame(spectrum.vectors[:, :2] / roots[:, None], columns=["x", "y"])
