"""The methods of the race: what a user would pick instead, the five systems, their blend, and what fills by default.

Every method gets the same numbers: features with mean 0 and standard deviation 1 over all rows, labelled or unlabelled,
which can only help those that would see the labelled rows alone. Settings:

- Of scikit-learn's methods the penalty of ridge and the C of the support vector machine are chosen by cross-validation,
  the Gaussian processes' lengths by likelihood; forests have 200 trees; all else is at its default.
- Ours have the settings of `choose_method` (`transduce.model_selection.methods.MEMBERS`), except the Gaussian
  process, which has its defaults, with moment matching.
- ``auto`` is what `transduce.fill` takes its values from: the blend of several methods, fitted to all labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, SVR

from transduce import TransductiveGPRegressor
from transduce.app.filling.options import Options
from transduce.app.filling.plan import make_plan
from transduce.conformal import Chance
from transduce.core.answer import Answer
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.methods import MEMBERS, Case

TREES = 200
PENALTIES = np.logspace(-3, 4, 30)
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}
OURS = (
    "auto",
    "transductive ridge",
    "transductive GP",
    "transductive GP, wide prior",
    "spectral graph",
    "Bayesian transduction",
    "confidence machine",
)
Method = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def methods(task: str, n_features: int) -> dict[str, Method]:
    """Return functions of features, labels and a seed that answer at the rows after the labels, by name."""
    return _number_methods(n_features) if task == "regression" else _class_methods(n_features)


def _number_methods(n_features: int) -> dict[str, Method]:
    kernel = ConstantKernel() * RBF(np.sqrt(n_features)) + WhiteKernel()
    svm = GridSearchCV(SVR(), GRID, scoring="neg_mean_squared_error")
    return {
        "ridge": plain(lambda seed: RidgeCV(PENALTIES)),
        "SVM": plain(lambda seed: TransformedTargetRegressor(svm, transformer=StandardScaler())),
        "random forest": plain(lambda seed: RandomForestRegressor(TREES, random_state=seed)),
        "extra trees": plain(lambda seed: ExtraTreesRegressor(TREES, random_state=seed)),
        "gradient boosting": plain(lambda seed: GradientBoostingRegressor(random_state=seed)),
        "GP": plain(
            lambda seed: GaussianProcessRegressor(
                kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed
            )
        ),
        "transductive ridge": _member("transductive_ridge", "regression"),
        "transductive GP": transducer(
            lambda n_rows, seed: TransductiveGPRegressor(random_state=seed)
        ),
        "transductive GP, wide prior": _member("gaussian_process", "regression"),
        "confidence machine": _member("confidence_machine", "regression"),
        "auto": _auto("regression"),
    }


def _class_methods(n_features: int) -> dict[str, Method]:
    # A fold may lose all but one class: it counts as wrong for every C.
    svm = GridSearchCV(SVC(), GRID, cv=3, error_score=0.0)
    kernel = ConstantKernel() * RBF(np.sqrt(n_features))
    return {
        "ridge": plain(lambda seed: RidgeClassifierCV(PENALTIES)),
        "SVM": plain(lambda seed: svm),
        "random forest": plain(lambda seed: RandomForestClassifier(TREES, random_state=seed)),
        "extra trees": plain(lambda seed: ExtraTreesClassifier(TREES, random_state=seed)),
        "gradient boosting": plain(lambda seed: GradientBoostingClassifier(random_state=seed)),
        "GP": plain(lambda seed: GaussianProcessClassifier(kernel, random_state=seed)),
        "label spreading": semi_supervised(lambda seed: LabelSpreading(kernel="knn")),
        "self-training": semi_supervised(
            lambda seed: SelfTrainingClassifier(LogisticRegression(max_iter=2000))
        ),
        "transductive ridge": _member("transductive_ridge", "classification"),
        "spectral graph": _member("spectral_graph", "classification"),
        "Bayesian transduction": _member("bayesian_transduction", "classification"),
        "confidence machine": _member("confidence_machine", "classification"),
        "auto": _auto("classification"),
    }


# ------------------------------------------------------------------------------------------------- how to ask


def plain(make: Callable[[int], object]) -> Method:
    """Fit to the labelled rows, predict the others."""

    def answer(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
        return make(seed).fit(X[: len(labels)], labels).predict(X[len(labels) :])

    return answer


def semi_supervised(make: Callable[[int], object]) -> Method:
    """Fit to all rows, with scikit-learn's -1 where a label is missing."""

    def answer(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
        y = np.concatenate([labels, np.full(len(X) - len(labels), -1)])
        model = make(seed).fit(X, y)
        last = last_step(model)
        # Self-training's `transduction_` has -1 where it was never sure enough.
        if isinstance(last, SelfTrainingClassifier):
            return model.predict(X[len(labels) :])
        return last.transduction_[len(labels) :]

    return answer


def with_holes(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    numbers = labels.dtype.kind == "f"
    y = np.full(len(X), np.nan if numbers else None, dtype=float if numbers else object)
    y[: len(labels)] = labels
    return y


def _values(found: Answer, labels: np.ndarray) -> np.ndarray:
    """Return an answer's values; where there is none, the mean or the most frequent class."""
    values = np.array(found.values)
    unreached = np.asarray(found.status) == "unreached"
    values[unreached] = labels.mean() if labels.dtype.kind == "f" else np.bincount(labels).argmax()
    return values.astype(labels.dtype)


def _member(name: str, task: str) -> Method:
    return transducer(
        lambda n_rows, seed: MEMBERS[name].make(Case(task, n_rows, random_state=seed))
    )


def transducer(make: Callable[[int, int], object]) -> Method:
    """Fit to all rows with labels missing."""

    def answer(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
        return _values(last_step(make(len(X), seed).fit(X, with_holes(X, labels))).answer_, labels)

    return answer


def _auto(task: str) -> Method:
    """Fit what `fill` takes its values from, by the size of the table."""

    def answer(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
        case = Case(task, len(X), len(labels), standardize=False, random_state=seed)
        design = Chance().bind(np.arange(len(X)) >= len(labels))
        found = make_plan(case, Options(random_state=seed), design)
        model = found.values if found.values is not None else found.model.estimator
        return _values(model.fit(X, with_holes(X, labels)).answer_, labels)

    return answer
