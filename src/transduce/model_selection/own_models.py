"""Models that users bring, named or given: fitted like ours, and written as code."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import ClassifierTags, RegressorTags, get_tags
from sklearn.utils.metaestimators import available_if

from transduce.core.types import AnyArray, Array, KnownTask, Labels, Rows
from transduce.core.words import OptionError, in_a_sentence, on_command_line, option, quoted
from transduce.model_selection.estimator_kinds import check_predicts, is_transducer, last_step
from transduce.model_selection.methods import CLASSES, NUMBERS, Case

# A file that a stranger wrote may name estimators of these packages, and of no others.
SAFE = (
    "sklearn.",
    "transduce.methods.",
)
AT_FILES = ("memory", "input")  # settings by which an estimator reads files besides its rows


# ---- what is given


def imported(name: str) -> Any:
    """Return the estimator that ``package.module:name`` names, of a class an instance.

    A ValueError says what is wrong with it.
    """
    # On the command line modules may be in the folder in which it runs.
    place, _, word = name.partition(":")
    if on_command_line() and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        estimator = getattr(import_module(place), word)
        estimator = estimator() if isinstance(estimator, type) else estimator
    except Exception as error:  # the module may raise anything
        raise ValueError(
            f"{option('method', name)} cannot be imported ({type(error).__name__}: "
            f"{in_a_sentence(error)})."
        ) from error
    return checked(estimator)


def checked(estimator: Any) -> Any:
    """Return an estimator, or raise a ValueError that says why it is none."""
    if not hasattr(estimator, "fit"):
        raise ValueError(
            f"method is the name of a method or an estimator, and {quoted(estimator)} is neither: "
            "it has no fit."
        )
    check_predicts("method", estimator)
    return estimator


def called(estimator: Any) -> str:
    """Return what an estimator is called: by the class of its last step."""
    return type(last_step(estimator)).__name__


def check_task(estimator: Any, task: KnownTask) -> None:
    """Refuse an estimator for the other task, or one that learns no labels.

    It raises a ValueError.
    """
    good, labels = ("classifier", "classes") if task == CLASSES else ("regressor", "numbers")
    try:
        kind = get_tags(estimator).estimator_type
    except Exception:  # it has no tags: what it can do shows when it is fitted
        return
    if kind not in (None, good):
        other = {"classifier": "fills classes", "regressor": "fills numbers"}.get(
            kind, "learns no labels"
        )
        raise OptionError(
            f"{called(estimator)} {other}, and these labels are {labels}: give a {good}."
        )


# ---- how it is fitted


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows for models of two kinds: an array of features for ours, and the columns themselves."""

    matrix: Array  # (n, d)
    frame: pd.DataFrame  # (n, c)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the features."""
        return self.matrix.shape

    def __len__(self) -> int:
        return len(self.matrix)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        if copy:
            return np.array(self.matrix, dtype=dtype)
        return np.asarray(self.matrix, dtype=dtype)

    def __getitem__(self, key: Any) -> TableRows:
        if isinstance(key, tuple):
            rows = key[0]
        else:
            rows = key
        return TableRows(self.matrix[rows], self.frame.iloc[rows].reset_index(drop=True))


def columns_of(rows: TableRows) -> pd.DataFrame:
    """Return the columns themselves."""
    return rows.frame


def _last_has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.steps[-1][1], name))


class OwnModel(Pipeline):
    """A model that a user brings, after a step that picks its features; its errors name it."""

    def __init__(
        self,
        steps: Any,
        *,
        task: KnownTask = NUMBERS,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        self.task = task
        super().__init__(steps, memory=memory, verbose=verbose)

    @classmethod
    def of(cls, estimator: Any, case: Case, *, columns: bool) -> OwnModel:
        """Return an estimator for a table, which gets features or columns.

        Chance in it is seeded where it is not.
        """
        model = clone(estimator, safe=False)
        settings = model.get_params() if hasattr(model, "get_params") else {}
        unset = [name for name, value in settings.items() if value is None]
        chance = [name for name in unset if name.rpartition("__")[2] == "random_state"]
        if chance:
            model.set_params(**dict.fromkeys(chance, case.random_state))
        first = FunctionTransformer(columns_of) if columns else "passthrough"
        return cls([("columns", first), ("model", model)], task=case.task)

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Let an error of the estimator say whose it is, and what may help."""
        try:
            yield
        except Exception as error:
            hint = ""
            if self.steps[0][1] != "passthrough":
                hint = (
                    f"; with {option('features', 'encoded')} it gets numbers only, none of them "
                    "missing"
                )
            reason = in_a_sentence(error).rstrip(".")
            raise ValueError(f"{called(self)} cannot {what}: {reason}{hint}.") from error

    def fit(self, X: Rows, y: Labels = None, **params: Any) -> Self:
        """Fit the estimator to its features."""
        with self._doing("be fitted"):
            super().fit(X, y, **params)
        self.seen_ = np.unique(y) if self.task == CLASSES and not is_transducer(self) else None
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "seen_")

    @property
    def classes_(self) -> Any:
        """The classes, of an estimator that does not say them those of its labels."""
        return getattr(self.steps[-1][1], "classes_", self.seen_)

    @_last_has("predict")
    def predict(self, X: Rows, **params: Any) -> Any:
        """Return one value a row, also of estimators that answer with a column."""
        with self._doing("predict"):
            values = super().predict(X, **params)
        if isinstance(values, tuple):
            return values
        values = np.asarray(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        self._check(values, (len(X),))
        if self.task == CLASSES and len(values):
            is_class = pd.Series(values).isin(self.classes_)
            if not is_class.any():
                raise ValueError(
                    f"{called(self)} answers with {quoted(values[0])} and the like, which no label "
                    "is."
                )
        return values

    @_last_has("predict_proba")
    def predict_proba(self, X: Rows, **params: Any) -> Any:
        """Return the probability of each class."""
        with self._doing("give probabilities"):
            shares = np.asarray(super().predict_proba(X, **params))
        self._check(shares, (len(X), len(self.classes_)))
        return shares

    def _check(self, answers: AnyArray, shape: tuple[int, ...]) -> None:
        if answers.shape != shape:
            raise ValueError(
                f"{called(self)} answers {shape[0]:,} rows with an array of shape {answers.shape} "
                f"in place of {shape}."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.task == NUMBERS else "classifier"
        tags.regressor_tags = RegressorTags() if self.task == NUMBERS else None
        tags.classifier_tags = None if self.task == NUMBERS else ClassifierTags()
        return tags


# ---- as code


def _settings(estimator: Any) -> dict[str, Any]:
    """Return the settings of an estimator that are not at their defaults."""
    if not hasattr(estimator, "get_params"):
        return {}
    usual = inspect.signature(type(estimator)).parameters
    settings = estimator.get_params(deep=False)
    return {
        name: setting
        for name, setting in settings.items()
        if name not in usual or not _same(setting, usual[name].default)
    }


def _same(value: object, default: Any) -> bool:
    return value is default or (type(value) is type(default) and as_code(value) == as_code(default))


def as_code(value: object) -> str:
    """Return a method, or a setting of one, as Python code."""
    if isinstance(value, list | tuple):
        inside = ", ".join(map(as_code, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        pairs = [f"{key!r}: {as_code(item)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if hasattr(value, "fit") and not isinstance(value, type):
        words = ", ".join(f"{name}={as_code(item)}" for name, item in _settings(value).items())
        return f"{type(value).__name__}({words})"
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def import_lines(value: object) -> list[str]:
    """Return what must be imported for the code of a method.

    These are its classes, from where users import them.
    """
    if isinstance(value, list | tuple | dict):
        values = value.values() if isinstance(value, dict) else value
        return sorted({line for item in values for line in import_lines(item)})
    if not hasattr(value, "fit") or isinstance(value, type):
        return []
    kind = type(value)
    public = kind.__module__.partition("._")[0]
    if getattr(sys.modules.get(public), kind.__name__, None) is kind:
        home = public
    else:
        home = kind.__module__
    return sorted({f"from {home} import {kind.__name__}", *import_lines(_settings(value))})


def as_stored(method: Any) -> str:
    """Return a method as code that `of_stored` can read.

    A ValueError says that it is not safe to.
    """
    code = "\n".join([*import_lines(method), as_code(method)])
    try:
        of_stored(code)
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{as_code(method)} cannot be saved: a saved file holds estimators of scikit-learn "
            "with plain settings, and no other code."
        ) from error
    return code


def of_stored(code: str) -> Any:
    """Return the method that code describes.

    It holds names, and known estimators with plain settings; nothing else is run.
    """
    *lines, expression = code.splitlines()
    homes = dict(line.removeprefix("from ").split(" import ")[::-1] for line in lines)

    def build(node: Any) -> Any:
        match node:
            case ast.List(items) | ast.Tuple(items):
                parts = [build(item) for item in items]
                if isinstance(node, ast.List):
                    return parts
                return tuple(parts)
            case ast.Call(ast.Name(word), [], words) if homes.get(word, "").startswith(SAFE):
                settings = {str(item.arg): build(item.value) for item in words}
                kind = getattr(import_module(homes[word]), word)
                if issubclass(kind, BaseEstimator) and not set(AT_FILES) & set(settings):
                    return kind(**settings)
        return ast.literal_eval(node)

    return build(ast.parse(expression, mode="eval").body)
