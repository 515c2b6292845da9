"""Which methods a comparison or a blend starts from, by task and by the size of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading

from transduce.core.types import Array
from transduce.methods.billiard.classifier import BayesianTransducer
from transduce.methods.confidence_machine.classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine.regressor import RidgeConfidenceMachine
from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor
from transduce.methods.ridge.classifier import TransductiveRidgeClassifier
from transduce.methods.ridge.regressor import TransductiveRidge
from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.model_selection.ask import check_member

# Beyond MOST_ROWS transductive ridge has centres at some rows only; beyond MOST_LABELS some methods are left out.
MOST_ROWS = 1500
CENTRES = 500
MOST_LABELS = {"bayesian_transduction": 1000, "confidence_machine": 5000}
SEARCHED = 500  # labels on which the Gaussian process looks for its parameters
MANY_LABELS = 500  # from so many on boosted trees join
GRAPH_ROWS = 20_000  # beyond so many the graph is left out, since every fold builds it again
TREES = 200
LEAF = 3  # rows in the smallest leaf of the random forest for classes, unless there are few labels
FEW_LABELS = 30
FEW_RIDGE = 0.03  # penalty of transductive ridge for numbers with few labels
FEW_C = 0.3  # inverse penalty of logistic regression, likewise
SMALLEST_PENALTY = 30.0  # of ridge regression, over the number of labels
DRAWN = 10_000  # labels that each tree of a forest draws at most
MOST_FEATURES = 100
FARTHEST = 3.0  # where features of linear methods are cut off
NEIGHBORS = 7  # of label spreading, its default
# The members of a blend; a comparison has all methods. Chosen by benchmarks/blend_accuracy.py.
BLENDED = {
    "regression": ("transductive_ridge", "gaussian_process", "ridge", "random_forest", "boosted_trees"),
    "classification": (
        "transductive_ridge",
        "spectral_graph",
        "logistic_regression",
        "random_forest",
        "extra_trees",
        "boosted_trees",
    ),
}
# Smaller steps and leaves than the defaults, and of numbers some features only at each split: where labels say much
# this comes near to CatBoost, and where they say little the other members count for more.
BOOSTING = {
    "regression": {"learning_rate": 0.08, "max_leaf_nodes": 8, "max_iter": 400, "max_features": 0.3},
    "classification": {"learning_rate": 0.05, "max_leaf_nodes": 12, "max_iter": 100},
}


def default_members(
    task: str,
    n_rows: int,
    n_labels: int,
    random_state: Any = None,
    *,
    n_features: int | None = None,
    standardize: bool = True,
    compare: bool = False,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return methods that suit a table, by name, and for those that do not, why.

    Notes
    -----
    Transductive ridge has centres at all rows up to 1,500 rows, and 500 beyond: ``O(n^3)`` becomes ``O(n)``. The
    Gaussian process looks for its parameters on 500 labels at most, and for one relevance of all features where they
    are more than 100. Each tree of a forest draws 10,000 labels at most. Boosted trees join from 500 labels on.
    Bayesian transduction, ``O(l^3)`` and more for l labels several hundred times over, is left out above 1,000 labels;
    the confidence machine above 5,000; the spectral graph transducer and scikit-learn's label spreading above 20,000
    rows.
    """
    size = {"n_labels": n_labels, "n_features": n_features}
    methods = every_method(task, n_rows, random_state, **size, standardize=standardize)
    methods = {name: method for name, method in methods.items() if compare or name in BLENDED[task]}
    if n_labels < MANY_LABELS:
        methods.pop("boosted_trees")
    most = {name: MOST_LABELS.get(name, n_labels) for name in methods}
    left_out = {
        name: f"{n_labels:,} labels are more than {most[name]:,}" for name in methods if n_labels > most[name]
    }
    for name in ("spectral_graph", "label_spreading"):
        if name in methods and n_rows > GRAPH_ROWS:
            left_out[name] = f"{n_rows:,} rows are more than {GRAPH_ROWS:,}"
    return {name: method for name, method in methods.items() if name not in left_out}, left_out


def every_method(
    task: str,
    n_rows: int,
    random_state: Any = None,
    *,
    n_labels: int | None = None,
    n_features: int | None = None,
    standardize: bool = True,
) -> dict[str, Any]:
    """Return all methods for a task by name, however slow they are on such a table."""
    size = _Size(n_rows, n_labels, n_features)
    make = _number_methods if task == "regression" else _class_methods
    return make(size, random_state, standardize)


@dataclass(frozen=True)
class _Size:
    """The size of a table, as far as it is known, and what follows from it."""

    n_rows: int
    n_labels: int | None
    n_features: int | None

    @property
    def centres(self) -> int | None:
        return None if self.n_rows <= MOST_ROWS else CENTRES

    @property
    def few(self) -> bool:
        return self.n_labels is not None and self.n_labels < FEW_LABELS

    @property
    def wide(self) -> bool:
        return self.n_features is not None and self.n_features > MOST_FEATURES

    @property
    def penalties(self) -> Array:
        """What ridge regression chooses from: with few labels leave-one-out is no ground for a small penalty."""
        smallest = 1e-3 if self.n_labels is None else SMALLEST_PENALTY / max(self.n_labels, 1)
        return np.geomspace(smallest, 1e5, 30)

    @property
    def drawn(self) -> int | None:
        """How many labels each tree of a forest draws; None for as many as there are."""
        return DRAWN if self.n_labels is not None and self.n_labels > DRAWN else None


def _clip() -> FunctionTransformer:
    """Return a step that cuts features off at 3 standard deviations.

    A feature that hardly varies among few labelled rows is millions of theirs away at some of the others.
    """
    return FunctionTransformer(np.clip, kw_args={"a_min": -FARTHEST, "a_max": FARTHEST})


def _scaled(standardize: bool, *steps: Any) -> Any:
    """Return steps, after a first one that gives features standard deviation 1 among the rows they are fitted to."""
    steps = (StandardScaler(), *steps) if standardize else steps
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _number_methods(size: _Size, random_state: Any, standardize: bool) -> dict[str, Any]:
    return {
        "transductive_ridge": TransductiveRidge(
            ridge=FEW_RIDGE if size.few else "loo",
            centres=size.centres,
            standardize=standardize,
            random_state=random_state,
        ),
        "gaussian_process": TransductiveGPRegressor(
            matching=0,
            prior=(0.1, 2.0),
            relevance=not size.wide,
            standardize=standardize,
            n_restarts=1,
            tol=1e-5,
            max_searched=SEARCHED,
            random_state=random_state,
        ),
        "confidence_machine": RidgeConfidenceMachine(confidence=0.5, standardize=standardize),
        "ridge": _scaled(standardize, _clip(), RidgeCV(size.penalties)),
        "random_forest": RandomForestRegressor(
            TREES,
            max_features=MOST_FEATURES if size.wide else 1.0,
            max_samples=size.drawn,
            random_state=random_state,
        ),
        "boosted_trees": HistGradientBoostingRegressor(
            **BOOSTING["regression"], l2_regularization=1.0, random_state=random_state
        ),
    }


def _class_methods(size: _Size, random_state: Any, standardize: bool) -> dict[str, Any]:
    neighbors = min(NEIGHBORS, size.n_rows)
    return {
        "transductive_ridge": TransductiveRidgeClassifier(
            centres=size.centres, standardize=standardize, random_state=random_state
        ),
        "bayesian_transduction": BayesianTransducer(
            softness=0.3, tolerance=0.05, standardize=standardize, random_state=random_state
        ),
        "spectral_graph": _scaled(
            standardize, SpectralGraphTransducer(metric="euclidean", random_state=random_state)
        ),
        "label_spreading": _scaled(
            standardize, LabelSpreading(kernel="knn", n_neighbors=neighbors, max_iter=300)
        ),
        "confidence_machine": RidgeConfidenceClassifier(confidence=0.5, standardize=standardize),
        "logistic_regression": _scaled(
            standardize, _clip(), LogisticRegression(C=FEW_C if size.few else 1.0, max_iter=2000)
        ),
        "random_forest": RandomForestClassifier(
            TREES, min_samples_leaf=1 if size.few else LEAF, max_samples=size.drawn, random_state=random_state
        ),
        # From drawn rows, as in a forest: each tree has rows that it did not see, which weigh it in a blend.
        "extra_trees": ExtraTreesClassifier(
            TREES,
            bootstrap=True,
            max_features=0.5 if size.few else "sqrt",
            max_samples=size.drawn,
            random_state=random_state,
        ),
        "boosted_trees": HistGradientBoostingClassifier(
            **BOOSTING["classification"], l2_regularization=1.0, random_state=random_state
        ),
    }


def name_members(what: str, estimators: Any) -> dict[str, Any]:
    """Return estimators by name, or raise a ValueError that says how to give them."""
    if isinstance(estimators, dict):
        pairs: list[tuple[Any, Any]] = list(estimators.items())
    elif (
        isinstance(estimators, Iterable)
        and not isinstance(estimators, str)
        and not hasattr(estimators, "fit")
    ):
        pairs = [
            entry if isinstance(entry, tuple) and len(entry) == 2 else (None, entry) for entry in estimators
        ]
    else:
        raise ValueError(
            f"{what} must be a dict of names and estimators, or a list of estimators; got {estimators!r}."
        )
    if not pairs:
        raise ValueError(f"{what} is empty: give at least one estimator, or None for the default ones.")
    named: dict[str, Any] = {}
    for name, estimator in pairs:
        check_member(f"{what}: {name!r}" if name is not None else what, estimator)
        word = type(estimator).__name__ if name is None else name
        if not isinstance(word, str) or (name is not None and word in named):
            raise ValueError(f"{what}: names must be text, each once; got {name!r}.")
        count = sum(other == word or other.startswith(f"{word}-") for other in named)
        named[f"{word}-{count + 1}" if name is None and count else word] = estimator
    return named
