"""Which methods a comparison or a blend starts from, by task and by the size of the table."""

from __future__ import annotations

from collections.abc import Iterable
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
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from transduce.methods.billiard.classifier import BayesianTransducer
from transduce.methods.confidence_machine.classifier import RidgeConfidenceClassifier
from transduce.methods.confidence_machine.regressor import RidgeConfidenceMachine
from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor
from transduce.methods.ridge.classifier import TransductiveRidgeClassifier
from transduce.methods.ridge.regressor import TransductiveRidge
from transduce.methods.spectral_graph.classifier import SpectralGraphTransducer
from transduce.model_selection.hidden_labels import check_member

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
# Smaller steps and leaves than the defaults: as good with many labels, better with some hundred.
BOOSTING = {"learning_rate": 0.05, "max_leaf_nodes": 12, "max_iter": 200, "l2_regularization": 1.0}


def default_members(
    task: str, n_rows: int, n_labels: int, random_state: Any = None, *, compare: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return methods that suit a table, by name, and for those that do not, why.

    Parameters
    ----------
    task : {"regression", "classification"}
    n_rows, n_labels : int
        Rows of the table, and how many of them have a label.
    random_state : int, RandomState or None, default=None
        Seed of every method that has one.
    compare : bool, default=False
        Whether to return all methods, as for a comparison, or the members of a blend.

    Returns
    -------
    members : dict of str to estimator
    left_out : dict of str to str

    Notes
    -----
    Transductive ridge has centres at all rows up to 1,500 rows, and at 500 of them beyond: ``O(n^3)`` becomes ``O(n)``.
    The Gaussian process looks for its parameters on 500 labels at most. Boosted trees join from 500 labels on. Bayesian
    transduction, ``O(l^3)`` and more for l labels several hundred times over, is left out above 1,000 labels; the
    confidence machine above 5,000; the spectral graph transducer and scikit-learn's label spreading above 20,000 rows.

    Examples
    --------
    >>> members, left_out = default_members("regression", 300, 40)
    >>> list(members)
    ['transductive_ridge', 'gaussian_process', 'ridge', 'random_forest']
    >>> members, left_out = default_members("classification", 30_000, 4000)
    >>> left_out
    {'spectral_graph': '30,000 rows are more than 20,000'}
    """
    methods = every_method(task, n_rows, random_state, n_labels=n_labels)
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
    task: str, n_rows: int, random_state: Any = None, *, n_labels: int | None = None
) -> dict[str, Any]:
    """Return all methods for a task by name, however slow they are on such a table.

    Parameters
    ----------
    task : {"regression", "classification"}
    n_rows : int
        Beyond 1,500 rows transductive ridge has centres at 500 of them.
    random_state : int, RandomState or None, default=None
    n_labels : int, optional
        From 30 labels on (or if not given) a leaf of the random forest for classes holds three rows at least, and
        extremely randomised trees draw their rows.

    Returns
    -------
    dict of str to estimator
    """
    centres = None if n_rows <= MOST_ROWS else CENTRES
    if task == "regression":
        return _number_methods(centres, random_state)
    few = n_labels is not None and n_labels < FEW_LABELS
    return _class_methods(centres, min(NEIGHBORS, n_rows), few, random_state)


def _number_methods(centres: int | None, random_state: Any) -> dict[str, Any]:
    return {
        "transductive_ridge": TransductiveRidge(centres=centres, random_state=random_state),
        "gaussian_process": TransductiveGPRegressor(
            matching=0,
            prior=(0.1, 2.0),
            n_restarts=1,
            tol=1e-5,
            max_searched=SEARCHED,
            random_state=random_state,
        ),
        "confidence_machine": RidgeConfidenceMachine(confidence=0.5),
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))),
        "random_forest": RandomForestRegressor(TREES, random_state=random_state),
        "boosted_trees": HistGradientBoostingRegressor(**BOOSTING, random_state=random_state),
    }


def _class_methods(centres: int | None, n_neighbors: int, few: bool, random_state: Any) -> dict[str, Any]:
    return {
        "transductive_ridge": TransductiveRidgeClassifier(centres=centres, random_state=random_state),
        "bayesian_transduction": BayesianTransducer(softness=0.3, tolerance=0.05, random_state=random_state),
        "spectral_graph": make_pipeline(
            StandardScaler(), SpectralGraphTransducer(metric="euclidean", random_state=random_state)
        ),
        "label_spreading": make_pipeline(
            StandardScaler(), LabelSpreading(kernel="knn", n_neighbors=n_neighbors, max_iter=300)
        ),
        "confidence_machine": RidgeConfidenceClassifier(confidence=0.5),
        "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "random_forest": RandomForestClassifier(
            TREES, min_samples_leaf=1 if few else LEAF, random_state=random_state
        ),
        # From drawn rows, as in a forest: each tree has rows that it did not see, which weigh it in a blend.
        "extra_trees": ExtraTreesClassifier(TREES, bootstrap=not few, random_state=random_state),
        "boosted_trees": HistGradientBoostingClassifier(**BOOSTING, random_state=random_state),
    }


def name_members(what: str, estimators: Any) -> dict[str, Any]:
    """Return estimators by name, or raise a ValueError that says how to give them.

    Parameters
    ----------
    what : str
        The name of the setting, for messages.
    estimators : dict, or list of estimators or of (name, estimator)
        Estimators without a name get that of their class; the second of the same class also gets a number.

    Returns
    -------
    dict of str to estimator

    Examples
    --------
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> list(name_members("estimators", [Ridge(), Lasso(), ("mine", Ridge()), Ridge()]))
    ['Ridge', 'Lasso', 'mine', 'Ridge-2']
    """
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
