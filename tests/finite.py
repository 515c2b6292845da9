"""The promise of every public name: a finite result, or a ValueError in words; never a silent NaN.

`ENTRIES` holds, for every public name, calls with good arguments. The tests replace one argument at a time by
something odd: numbers that are missing, infinite, huge or tiny, tables that are empty or of one row, wrong shapes and
wrong types. What comes back has no NaN in it, or the call was refused.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import transduce

ROOT = Path(__file__).parents[1]
LONGEST = 120  # seconds for one call, after which it counts as hanging


# ------------------------------------------------------------------------------------------------ public names


def public_names() -> set[str]:
    """Return every public name: those of docs/api.md, and those that a room lists in ``__all__``."""
    names = set()
    room = "transduce"
    for line in (ROOT / "docs" / "api.md").read_text("utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            room = found[1]
        elif found := re.match(r"   (\w[\w.]*)$", line):
            names.add(f"{room}.{found[1]}")
    for module in pkgutil.walk_packages(transduce.__path__, "transduce."):
        above = module.name.rpartition(".")[0]
        is_room = module.ispkg and above in ("transduce", "transduce.app", "transduce.methods")
        if is_room:
            listed = getattr(importlib.import_module(module.name), "__all__", [])
            names |= {f"{module.name}.{name}" for name in listed}
    names |= {f"transduce.{name}" for name in transduce.__all__ if name != "__version__"}
    return {_home(name) for name in names}


def _home(name: str) -> str:
    """Return one name for what is public in two rooms: the shorter."""
    module, _, last = name.rpartition(".")
    if last in transduce.__all__:
        return f"transduce.{last}"
    return f"{module}.{last}"


# ------------------------------------------------------------------------------------------------ odd values

HUGE = 10**400


@dataclasses.dataclass(frozen=True)
class Odd:
    """One odd value, and whether its type is plainly wrong, so that a TypeError is right too."""

    name: str
    value: Any
    wrong_type: bool = False


def odd_values(good: Any) -> list[Odd]:
    """Return what stands in the place of a good argument."""
    if isinstance(good, pd.DataFrame):
        return odd_frames(good) + odd_objects()
    if isinstance(good, np.ndarray) and good.ndim == 2:
        return odd_matrices(good) + odd_objects()
    if isinstance(good, np.ndarray):
        return odd_vectors(good) + odd_objects()
    if isinstance(good, bool):
        return [Odd("2", 2, True), Odd("text", "yes", True), Odd("none", None, True)]
    if isinstance(good, int):
        return odd_wholes()
    if isinstance(good, float):
        return odd_numbers()
    if isinstance(good, str):
        return odd_texts()
    return odd_objects()


def odd_numbers() -> list[Odd]:
    """Return odd numbers."""
    values = [0.0, 1.0, -1.0, 2.0, np.nan, np.inf, -np.inf, 1e200, 1e-200, -1e200, HUGE, 0, 1]
    odd = [Odd(f"{value:g}" if value != HUGE else "10**400", value) for value in values]
    return odd + odd_scalars()


def odd_wholes() -> list[Odd]:
    """Return odd whole numbers."""
    values = [0, 1, -1, 2**31, 2**32, 2**63, HUGE, -HUGE]
    odd = [Odd(str(value) if abs(value) < HUGE else "±10**400", value) for value in values]
    odd += [Odd("1.5", 1.5), Odd("nan", np.nan), Odd("inf", np.inf), Odd("true", True)]
    return odd + odd_scalars()


def odd_scalars() -> list[Odd]:
    """Return what is no number."""
    values = ["", "0.5", "ü", None, 1j, object(), [], [1], {}, np.array([]), np.array([0.5, 0.5])]
    names = ["empty text", "number as text", "ü", "none", "complex", "object", "empty list"]
    names += ["list", "mapping", "empty array", "array"]
    return [Odd(name, value, True) for name, value in zip(names, values, strict=True)]


def odd_texts() -> list[Odd]:
    """Return odd texts."""
    texts = ["", "no such thing", "größe", "\0", "a\nb", "\ud800", "x" * 100_000]
    names = ["empty", "unknown", "non-ASCII", "NUL", "two lines", "surrogate", "long"]
    odd = [Odd(name, text) for name, text in zip(names, texts, strict=True)]
    others = [Odd("number", 5, True), Odd("none", None, True), Odd("object", object(), True)]
    return odd + others + [Odd("list", ["a"], True)]


def odd_objects() -> list[Odd]:
    """Return what is of a wrong type nearly everywhere."""
    values = [None, 5, "ü", object(), [], {}, 1j, np.array([]), np.zeros((2, 2, 2))]
    names = ["none", "number", "ü", "object", "empty list", "mapping", "complex"]
    names += ["empty array", "cube"]
    return [Odd(name, value, True) for name, value in zip(names, values, strict=True)]


def odd_vectors(good: np.ndarray) -> list[Odd]:
    """Return odd arrays of the length of a good one, and some of another length."""
    n = len(good)
    first = good[~pd.isna(good)][:1]
    odd = {
        "all missing": np.full(n, np.nan),
        "constant": np.repeat(first, n),
        "one value": np.where(np.arange(n) == 0, np.repeat(first, n), np.full(n, None)),
        "shorter": good[:-1],
        "longer": np.append(good, first),
        "first only": good[:1],
        "column": good[:, None],
        "empty": good[:0],
        "reversed": good[::-1],
        "series of another index": pd.Series(good, index=np.arange(n) + 7),
        "list": good.tolist(),
    }
    if good.dtype.kind in "fiu":
        numbers = good.astype(float)
        odd |= {
            "times 1e200": numbers * 1e200,
            "times 1e-200": numbers * 1e-200,
            "times 1e307": numbers * 1e307,
            "infinite": np.where(np.arange(n) == 0, np.inf, numbers),
            "minus infinite": np.where(np.arange(n) == 0, -np.inf, numbers),
            "one NaN more": np.where(np.arange(n) == 0, np.nan, numbers),
            "complex": numbers + 1j,
            "negative": -np.abs(numbers),
            "zero": 0.0 * numbers,
            "single precision": numbers.astype(np.float32),
            "objects": numbers.astype(object),
            "huge integer": _with_first(numbers, HUGE),
            "text": np.array([str(value) for value in numbers], dtype=object),
        }
    else:
        odd |= {
            "non-ASCII": np.array([None if _gone(one) else f"ü{one}" for one in good], object),
            "blank": np.array([None if _gone(one) else "" for one in good], object),
            "NUL": np.array([None if _gone(one) else f"{one}\0" for one in good], object),
            "mixed": _with_first(good, 5),
            "tuples": _with_first(good, (1, 2)),
            "each its own": np.array([f"c{row}" for row in range(n)], dtype=object),
        }
    return [Odd(name, value, name in WRONG) for name, value in odd.items()]


WRONG = {
    "sparse",
    "text",
    "complex",
    "tuples",
    "mixed",
    "objects",
    "huge integer",
    "column",
    "frame of text",
}


def _gone(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _with_first(values: np.ndarray, first: Any) -> np.ndarray:
    changed = np.empty(len(values), dtype=object)
    changed[:] = list(values)
    changed[0] = first
    return changed


def odd_matrices(good: np.ndarray) -> list[Odd]:
    """Return odd tables of numbers."""
    n = len(good)
    rows = np.arange(n)[:, None]
    numbers = good.astype(float)
    odd = {
        "NaN": np.where(rows == 0, np.nan, numbers),
        "infinite": np.where(rows == 0, np.inf, numbers),
        "all NaN": np.full(good.shape, np.nan),
        "times 1e200": numbers * 1e200,
        "times 1e-200": numbers * 1e-200,
        "one huge row": np.where(rows == 0, 1e200, numbers),
        "constant": np.ones_like(numbers),
        "zero": 0.0 * numbers,
        "duplicated rows": np.repeat(numbers[:2], -(-n // 2), axis=0)[:n],
        "shorter": numbers[:-1],
        "first only": numbers[:1],
        "no rows": numbers[:0],
        "no columns": numbers[:, :0],
        "one column": numbers[:, :1],
        "more columns": np.hstack([numbers, numbers]),
        "a vector": numbers[:, 0],
        "text": np.full(good.shape, "ü", dtype=object),
        "objects": numbers.astype(object),
        "complex": numbers + 1j,
        "whole": (10 * numbers).astype(int),
        "bool": numbers > 0,
        "huge integer": np.where(rows == 0, HUGE, numbers.astype(object)),
        "sparse": sparse.csr_array(numbers),
        "frame": pd.DataFrame(numbers, columns=[f"ü{k}" for k in range(good.shape[1])]),
        "frame of equal names": pd.DataFrame(numbers, columns=["a"] * good.shape[1]),
        "frame of text": pd.DataFrame(numbers).astype(str) + " €",
        "list": numbers.tolist(),
        "masked": np.ma.masked_array(numbers, (rows == 0) | (numbers > 1e300)),
    }
    return [Odd(name, value, name in WRONG) for name, value in odd.items()]


def odd_frames(good: pd.DataFrame) -> list[Odd]:
    """Return odd tables of columns of any type; the last column is the target."""
    target = good.columns[-1]
    n = len(good)
    numeric = good.columns[0]
    odd = {
        "no rows": good[:0],
        "one row": good[:1],
        "no columns": good[[]],
        "target only": good[[target]],
        "all labels missing": good.assign(**{target: None}),
        "no label missing": good.assign(**{target: good[target].ffill().bfill()}),
        "constant labels": good.assign(**{target: good[target].where(good[target].isna(), "5")}),
        "duplicated rows": good.iloc[np.arange(n) % 3],
        "duplicated index": good.set_axis(np.zeros(n, dtype=int)),
        "equal names": good.set_axis([*good.columns[:-2], target, target], axis=1),
        "names are numbers": good.set_axis([*range(good.shape[1] - 1), target], axis=1),
        "non-ASCII names": good.rename(columns={numeric: "größe 😀"}),
        "infinite": good.assign(**{numeric: np.where(np.arange(n) == 0, np.inf, good[numeric])}),
        "times 1e200": good.assign(**{numeric: good[numeric] * 1e200}),
        "huge integers": good.assign(**{numeric: pd.Series([HUGE] * n, dtype=object)}),
        "missing column": good.assign(**{numeric: np.nan}),
        "lists in cells": good.assign(**{numeric: pd.Series([[1, 2]] * n, dtype=object)}),
        "complex": good.assign(**{numeric: good[numeric] + 1j}),
        "constant": good.assign(**{numeric: 1.0}),
        "dates": good.assign(**{numeric: pd.date_range("2020", periods=n)}),
        "periods": good.assign(**{numeric: pd.period_range("2020", periods=n, freq="D")}),
        "categories": good.assign(**{numeric: pd.Categorical(np.resize(["ü", "b"], n))}),
    }
    return [Odd(name, value) for name, value in odd.items()]


# ------------------------------------------------------------------------------------------------ outcomes


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Raise a TimeoutError if a call does not come back."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(*_: Any) -> None:
        raise TimeoutError(f"no answer within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


REFUSALS = (ValueError, OSError)  # a file that is not there, or exists, is refused by an OSError


def broken_promise(function: Callable[..., Any], arguments: Mapping[str, Any], odd: Odd) -> str:
    """Return how a call breaks the promise; "" if it keeps it."""
    refused = (*REFUSALS, TypeError) if odd.wrong_type else REFUSALS
    with warnings.catch_warnings(), np.errstate(all="ignore"), no_longer_than(LONGEST):
        warnings.simplefilter("ignore")
        try:
            result = function(**arguments)
        except TimeoutError as error:
            return str(error)
        except refused as error:
            return "" if str(error).strip() else f"{type(error).__name__} without a word"
        except (Exception, RecursionError) as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
        return where_nan(result)


def broken_promises(name: str, call: Call, few: int | None = None) -> list[str]:
    """Return how a call breaks the promise, with each odd value in turn; of some only a few are tried."""
    broken = []
    message = broken_promise(call.function, call.arguments, Odd("good", None))
    if message and call.refused is False:
        broken.append(f"with good arguments: {message}")
    cases = [
        (argument, odd)
        for argument in call.replaced
        for odd in odd_values(call.arguments[argument])
        if not left_open(name, argument, odd)
    ]
    step = 1 if few is None else max(len(cases) // few, 1)
    for argument, odd in cases[step // 2 :: step]:
        message = broken_promise(call.function, {**call.arguments, argument: odd.value}, odd)
        if message:
            broken.append(f"{argument} = {odd.name}: {message}")
    return broken


# Broken promises that are being mended elsewhere: of which names, at which arguments and odd values, and why.
# Each line goes when what it tells of is mended.
LEFT_OPEN: list[tuple[str, str, str, str]] = []


def left_open(name: str, argument: str, odd: Odd) -> str:
    """Return why a promise is known to be broken; "" if it is not."""
    for names, arguments, values, reason in LEFT_OPEN:
        found = re.search(names, name) and re.search(arguments, argument)
        if found and re.search(values, odd.name):
            return reason
    return ""


def where_nan(result: Any, at: str = "result", depth: int = 0) -> str:
    """Return where a result has a NaN; "" if nowhere."""
    if depth > 4 or result is None or isinstance(result, str | bytes | bool | int | type):
        return ""
    if isinstance(result, float | np.floating | complex):
        return f"NaN in {at}" if result != result else ""
    if isinstance(result, np.ndarray):
        return f"NaN in {at}" if result.dtype.kind in "fc" and np.isnan(result).any() else ""
    if sparse.issparse(result):
        return where_nan(result.data, at)
    if isinstance(result, pd.DataFrame):
        return _first(where_nan(result[name].to_numpy(), f"{at}[{name!r}]") for name in result)
    if isinstance(result, pd.Series):
        return where_nan(result.to_numpy(), at)
    if isinstance(result, Mapping):
        return _first(
            where_nan(value, f"{at}[{key!r}]", depth + 1) for key, value in result.items()
        )
    if isinstance(result, tuple | list):
        return _first(
            where_nan(value, f"{at}[{place}]", depth + 1)
            for place, value in enumerate(result[:200])
        )
    if dataclasses.is_dataclass(result):
        return _first(
            where_nan(getattr(result, field.name), f"{at}.{field.name}", depth + 1)
            for field in dataclasses.fields(result)
        )
    return ""


def _first(found: Iterator[str]) -> str:
    return next(filter(None, found), "")


# ------------------------------------------------------------------------------------------------ good arguments

N, N_LABELLED = 24, 16
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(N, 2)).round(3)
NUMBERS = np.where(np.arange(N) < N_LABELLED, (X @ [1.0, 2.0] + 0.1).round(3), np.nan)
CLASSES = np.array(
    [("yes" if x > 0 else "no") if row < N_LABELLED else None for row, x in enumerate(X[:, 0])],
    dtype=object,
)
NEW = RANDOM.normal(size=(3, 2)).round(3)
TABLE = pd.DataFrame(
    {
        "size": np.tile(X[:, 0], 3).round(3),
        "kind": np.tile(["ü", "b", "c"], N),
        "price": np.where(np.arange(3 * N) % 5 > 1, np.tile(X[:, 0] + X[:, 1], 3).round(3), np.nan),
    }
)
CLASS_TABLE = TABLE.assign(
    price=[None if np.isnan(value) else "hi" if value > 0 else "lo" for value in TABLE["price"]]
)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call with good arguments; `odd` names those that are replaced, all of them by default."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    name: str = ""
    odd: tuple[str, ...] | None = None
    slow: bool = False  # each call takes more than a tenth of a second
    refused: bool = (
        False  # whether even the good arguments are refused, since what they name is not there
    )

    @property
    def replaced(self) -> tuple[str, ...]:
        """The arguments that are replaced by something odd."""
        return tuple(self.arguments) if self.odd is None else self.odd


def estimator_calls(
    make: Callable[..., Any], y: np.ndarray, *, slow: bool = False, **settings: Any
):
    """Return the calls of an estimator: a fit, what it answers at new rows, and each of its settings."""

    def fit(X: Any, y: Any, **settings: Any) -> Any:
        return answered(make(**settings).fit(X, y))

    def predict(X_new: Any) -> Any:
        model = fitted(make, y is CLASSES)
        return [getattr(model, name)(X_new) for name in PREDICTIONS if hasattr(model, name)]

    def score(X_new: Any, y_new: Any) -> Any:
        return fitted(make, y is CLASSES).score(X_new, y_new)

    return [
        Call(fit, {"X": X, "y": y}, "fit", slow=slow),
        Call(predict, {"X_new": NEW}, "predict", slow=slow),
        Call(score, {"X_new": X[:N_LABELLED], "y_new": y[:N_LABELLED]}, "score", slow=slow),
        Call(fit, {"X": X, "y": y, **settings}, "settings", tuple(settings), slow=slow),
    ]


PREDICTIONS = ("predict", "predict_proba", "decision_function")


@cache
def fitted(make: Callable[..., Any], of_classes: bool) -> Any:
    """Return an estimator that was fitted to good data."""
    return make().fit(X, CLASSES if of_classes else NUMBERS)


def answered(model: Any) -> Any:
    """Return what a fitted estimator answers, without rows that it says it cannot reach."""
    answer = model.answer_
    parts = [answer.values, answer.standard_errors, answer.p_values, answer.confidence]
    parts += [answer.scores, answer.probabilities, answer.inductive, answer.credibility]
    reached = answer.status != "unreached"
    pieces = [] if answer.regions is None else [answer.regions.to_arrays()[0]]
    return pieces + [np.asarray(part)[reached] for part in parts if part is not None]


def filled_columns(result: Any) -> Any:
    """Return the numbers of a filled table, where there is an answer, and everything that is told of it."""
    new = result.new
    status = new[f"{result.target}_status"].astype(str)
    told = new[status.isin(["answered", "unusual", "tied", "below", "above", "rejected"])]
    result.json()
    return [told, result.report() and ""]


@cache
def filled(of_classes: bool = False) -> Any:
    """Return a good table, filled."""
    return transduce.fill(CLASS_TABLE if of_classes else TABLE, "price", method="ridge")


def entries() -> dict[str, list[Call]]:
    """Return the calls of every public name."""
    found: dict[str, list[Call]] = {}
    for part in (of_estimators, of_filling, of_conformal, of_selection, of_labelling, of_records):
        found |= part()
    return found | of_displays() | of_functions() | of_population()


def of_estimators() -> dict[str, list[Call]]:
    """Return the calls of the estimators."""
    ridge = {"ridge": 0.1, "width": 2.0, "kernel": "rbf", "missing_label": "?"}
    machine = {"confidence": 0.8, "kernel": "rbf", "ridge": 1.0, "width": 2.0}
    process = {"n_restarts": 1, "random_state": 0, "matching": 0.5, "slack": 0.01, "kernel": "rbf"}

    def gaussian(**settings: Any) -> Any:
        return transduce.TransductiveGPRegressor(**{"n_restarts": 1, "random_state": 0} | settings)

    def of_classes(**settings: Any) -> Any:
        usual = {"n_restarts": 0, "max_iter": 30, "matching": 0.3, "slack": 0.01}
        return transduce.TransductiveGPClassifier(**usual | settings)

    def bayesian(**settings: Any) -> Any:
        usual = {"softness": 0.5, "n_balls": 2, "tolerance": 0.3, "max_bounces": 500}
        return transduce.BayesianTransducer(**usual | {"random_state": 0} | settings)

    def graph(**settings: Any) -> Any:
        return transduce.SpectralGraphTransducer(**{"n_neighbors": 4} | settings)

    def conformal(**settings: Any) -> Any:
        usual = {"random_state": 0, "confidence": 0.8}
        return transduce.ConformalTransducer(transduce.TransductiveRidge(), **usual | settings)

    def blend(**settings: Any) -> Any:
        from sklearn.linear_model import Ridge

        members = [
            ("ridge", transduce.TransductiveRidge(ridge=0.1, width=2.0)),
            ("linear", Ridge()),
        ]
        return transduce.TransductiveBlend(members, **{"cv": 2, "random_state": 0} | settings)

    settings_of_graph = {"n_neighbors": 4, "metric": "euclidean", "n_components": 10}
    settings_of_graph |= {"laplacian": "plain", "spectrum": "eigenvalues", "views": [[0], [1]]}
    return {
        "transduce.TransductiveRidge": estimator_calls(
            transduce.TransductiveRidge,
            NUMBERS,
            **ridge | {"centres": 10, "radius": 0.5, "random_state": 0},
        ),
        "transduce.TransductiveRidgeClassifier": estimator_calls(
            transduce.TransductiveRidgeClassifier, CLASSES, **ridge
        ),
        "transduce.RidgeConfidenceMachine": estimator_calls(
            transduce.RidgeConfidenceMachine, NUMBERS, **machine | {"resolution": 0.5}
        ),
        "transduce.RidgeConfidenceClassifier": estimator_calls(
            transduce.RidgeConfidenceClassifier, CLASSES, **machine | {"label_conditional": True}
        ),
        "transduce.TransductiveGPRegressor": estimator_calls(
            gaussian, NUMBERS, slow=True, **process
        ),
        "transduce.TransductiveGPClassifier": estimator_calls(
            of_classes, CLASSES, slow=True, matching=0.3, slack=0.01, noise_prior=(1.0, 2.0)
        ),
        "transduce.BayesianTransducer": estimator_calls(
            bayesian, CLASSES, slow=True, softness=0.5, n_balls=2, tolerance=0.3, random_state=0
        ),
        "transduce.SpectralGraphTransducer": estimator_calls(graph, CLASSES, **settings_of_graph),
        "transduce.TransductiveBlend": estimator_calls(
            blend, NUMBERS, slow=True, cv=2, task="regression", predictions=0, random_state=0
        ),
        "transduce.ConformalTransducer": [
            *estimator_calls(
                conformal, NUMBERS, slow=True, confidence=0.8, calibration=8, predictions=0
            ),
            Call(
                lambda above, false_discovery: [
                    fitted(conformal, False)
                    .select(above=above, false_discovery=false_discovery)
                    .rows
                ],
                {"above": 0.5, "false_discovery": 0.2},
                "select",
            ),
        ],
    }


def of_filling() -> dict[str, list[Call]]:
    """Return the calls that fill tables."""
    from transduce.app import filling

    def fill(table: Any, target: Any, **options: Any) -> Any:
        return filled_columns(transduce.fill(table, target, **{"method": "ridge"} | options))

    def fill_classes(table: Any) -> Any:
        return filled_columns(transduce.fill(table, "price", method="ridge"))

    def fit_fill(table: Any, target: Any) -> Any:
        later_rows = TABLE[:3].drop(columns="price")
        columns = filling.fit_fill(table, target, method="ridge").new_columns(later_rows)
        return columns[columns[f"{target}_status"].astype(str) == "answered"]

    @cache
    def usual_fit() -> Any:
        return filling.fit_fill(TABLE, "price", method="ridge")

    def later(frame: Any) -> Any:
        columns = usual_fit().new_columns(frame)
        return columns[columns["price_status"].astype(str) == "answered"]

    def estimate_later(frame: Any, what: Any) -> Any:
        line = usual_fit().estimate(frame, what)
        promised = line["kind"] != "none"
        return line.loc[promised, ["estimate", "lower", "upper"]]

    def save_and_load(table: Any, target: Any, name: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}" if isinstance(name, str) else name
            filling.save(path, table, target, method="ridge")
            return filling.load(path).options.confidence

    def load(content: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "x.transduce").write_bytes(str(content).encode("utf-8", "replace"))
            return filling.load(f"{folder}/x.transduce")

    def fill_folder(target: Any, memory: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            TABLE.to_csv(f"{folder}/a.csv", index=False)
            result = filling.fill_folder(
                f"{folder}/a.csv", target, f"{folder}/out", memory=memory, method="ridge"
            )
            return result.guarantee.confidence

    def ask(**questions: Any) -> Any:
        return filled_columns(filled().with_options(**questions))

    options = {"confidence": 0.8, "random_state": 0, "missing": ["?"], "ignore": ["kind"]}
    options |= {"guarantee": "auto", "task": "auto", "certainty": 0.9, "id": "kind"}
    options |= {"budget_seconds": 100.0, "n_jobs": 1, "max_rows": 1000}
    known = set(_parameters(transduce.fill))
    options = {name: value for name, value in options.items() if name in known}
    questions = {"minimum": -100.0, "maximum": 100.0, "tolerance": 0.5, "reject": 0.1}

    def audited(table: Any, target: Any, predictions: Any, **settings: Any) -> Any:
        result = transduce.audit(table, target, predictions, suspects=0, **settings)
        return result.wrong["at_most"], result.forecast["share"].to_numpy()

    checks = CLASS_TABLE.assign(guess="a")
    columns = {"table": checks, "target": "price", "predictions": "guess"}
    settings = {"by": "kind", "certainty": 0.9, "missing": ["?"]}
    return {
        "transduce.audit": [
            Call(audited, columns),
            Call(audited, columns | settings, "settings", (*settings,)),
        ],
        "transduce.app.auditing.AuditResult": [
            Call(lambda by: audited(**columns, by=by), {"by": "kind"})
        ],
        "transduce.fill": [
            Call(fill, {"table": TABLE, "target": "price"}, slow=True),
            Call(fill_classes, {"table": CLASS_TABLE}, "classes", slow=True),
            Call(
                fill,
                {"table": TABLE, "target": "price", **options},
                "options",
                (*options,),
                slow=True,
            ),
        ],
        "transduce.FillResult": [
            Call(ask, {name: value}, f"ask {name}", slow=True) for name, value in questions.items()
        ],
        "transduce.app.filling.FillResults": [
            Call(
                lambda target: filled_columns(
                    transduce.fill(TABLE, [target], method="ridge")[target]
                ),
                {"target": "price"},
                slow=True,
            )
        ],
        "transduce.app.filling.fit_fill": [
            Call(fit_fill, {"table": TABLE, "target": "price"}, slow=True)
        ],
        "transduce.app.filling.FittedFill": [
            Call(later, {"frame": TABLE[:5]}, "new_columns", slow=True),
            Call(estimate_later, {"frame": TABLE, "what": "mean"}, "estimate", slow=True),
        ],
        "transduce.app.filling.save": [
            Call(
                save_and_load,
                {"table": TABLE, "target": "price", "name": "größe.transduce"},
                slow=True,
            )
        ],
        "transduce.app.filling.load": [
            Call(load, {"content": "PK"}, refused=True),
            Call(filling.load, {"path": "missing.transduce"}, "path", refused=True),
        ],
        "transduce.app.filling.fill_folder": [
            Call(fill_folder, {"target": "price", "memory": 1e9}, slow=True)
        ],
        "transduce.app.filling.FilledFolder": [
            Call(lambda: fill_folder("price", 1e9), {}, "through fill_folder", slow=True)
        ],
        "transduce.app.filling.LocalRunner": [
            Call(
                lambda n_jobs: list(filling.LocalRunner(n_jobs).map(pow, 2, [1, 2])),
                {"n_jobs": 1},
                slow=True,
            )
        ],
        "transduce.app.filling.cluster_runner": [
            Call(
                cluster,
                {"address": "tcp://127.0.0.1:1", "timeout": 0.2},
                odd=("timeout",),
                slow=True,
            )
        ],
        "transduce.app.report.FilledColumn": [Call(lambda: _summary_of(object()), {})],
        "transduce.app.report.Summary": [Call(lambda: _summary_of(object()), {})],
        "transduce.app.report.summarize": [
            Call(lambda result: _summary_of(result), {"result": object()})
        ],
        "transduce.app.report.render_html": [
            Call(_render("render_html"), {"summary": {"task": "regression"}}, refused=True)
        ],
        "transduce.app.report.render_json": [Call(_render("render_json"), {"summary": {"a": 1.0}})],
        "transduce.datasets.load_houses": [Call(lambda: load_houses_shape(), {})],
    }


def _parameters(function: Callable[..., Any]) -> list[str]:
    import inspect

    return list(inspect.signature(function).parameters)


def _summary_of(result: Any) -> Any:
    from transduce.app.report import summarize

    return summarize(filled().reported if type(result) is object else result)["counts"]


def _render(name: str) -> Callable[..., Any]:
    def render(summary: Any) -> Any:
        return len(getattr(importlib.import_module("transduce.app.report"), name)(summary))

    return render


def load_houses_shape() -> Any:
    """Return the shape of the example."""
    from transduce.datasets import load_houses

    return load_houses()[0].shape


def cluster(address: Any, timeout: Any) -> Any:
    """Try to connect to a scheduler that is not there."""
    from transduce.app.filling import cluster_runner

    with cluster_runner(address, timeout=timeout):
        return 0.0


def of_conformal() -> dict[str, list[Call]]:
    """Return the calls about guarantees."""
    from transduce import conformal
    from transduce.conformal.selection import selection_p_values

    missing = np.isnan(NUMBERS)
    drawn = (np.arange(N) % 2 == 0).astype(float)

    def read(design: type, **arguments: Any) -> Any:
        design(**arguments).bind(missing)

    def fit_by(design: type) -> Callable[..., Any]:
        def fit(**arguments: Any) -> Any:
            labels = design(**arguments)
            model = transduce.ConformalTransducer(
                transduce.TransductiveRidge(ridge=0.1, width=2.0),
                labels=labels,
                random_state=0,
                confidence=0.5,
            )
            return answered(model.fit(X, NUMBERS))

        return fit

    def by_class(shares: Any) -> Any:
        classifier = transduce.TransductiveRidgeClassifier(ridge=0.1, width=2.0)
        labels = conformal.ByClass(shares)
        model = transduce.ConformalTransducer(classifier, labels=labels, random_state=0)
        return answered(model.fit(X, CLASSES))

    def law(**arguments: Any) -> Any:
        law = conformal.Miscoverage(**arguments)
        return [law.mean, law.quantile(0.9), law.cdf(3)]

    def law_at(**arguments: Any) -> Any:
        return conformal.Miscoverage.at(**arguments).mean

    def at(count: Any, certainty: Any) -> Any:
        law = conformal.Miscoverage(20, 12, 10)
        return [law.cdf(count), law.quantile(certainty)]

    def class_law(n_unlabelled: Any, n_labelled: Any, n_calibration: Any, ranks: Any) -> Any:
        law = conformal.ClassMiscoverage(n_unlabelled, n_labelled, n_calibration, ranks)
        return [law.mean, law.quantile(0.9), law.n_short]

    def categories(parts: Any) -> Any:
        law = conformal.CategoryMiscoverage(parts)
        return [law.mean, law.quantile(0.9)]

    def shares(**arguments: Any) -> Any:
        found = conformal.ClassShares(**arguments)
        return [found.to_frame().drop(columns=["lower", "upper"], errors="ignore")]

    def reweigh(probabilities: Any) -> Any:
        half = np.array([0.5, 0.5])
        found = conformal.ClassShares(np.array(["no", "yes"]), half, np.array([0.9, 0.1]))
        return found.reweigh(probabilities)

    def compared(X: Any, labelled: Any, **settings: Any) -> Any:
        return conformal.exchangeability_test(X, labelled, n_permutations=19, **settings).p_value

    def picked(**arguments: Any) -> Any:
        guarantee = transduce.Guarantee("none", about="selection")
        return conformal.Selection(**arguments, guarantee=guarantee).to_frame()

    groups = np.array([f"g{row // 2}" for row in range(N)], dtype=object)
    probability = np.full(N, 0.5)
    good = np.arange(8) % 2 == 0
    return {
        "transduce.conformal.Chance": [
            Call(fit_by(conformal.Chance), {"sensitivity": 1.2}, slow=True),
            Call(fit_by(conformal.Chance), {"within": groups}, "within", slow=True),
            Call(fit_by(conformal.Chance), {"order": X[:, 0]}, "order", slow=True),
            Call(fit_by(conformal.Chance), {"reweight": False}, "reweight", slow=True),
        ],
        "transduce.conformal.Drawn": [Call(fit_by(conformal.Drawn), {"rows": drawn}, slow=True)],
        "transduce.conformal.Seen": [Call(fit_by(conformal.Seen), {"rows": drawn}, slow=True)],
        "transduce.conformal.Sampled": [
            Call(fit_by(conformal.Sampled), {"probability": probability}, slow=True)
        ],
        "transduce.conformal.Grouped": [
            Call(fit_by(conformal.Grouped), {"groups": groups}, slow=True)
        ],
        "transduce.conformal.Estimated": [
            Call(fit_by(conformal.Estimated), {"sensitivity": 1.2}, slow=True)
        ],
        "transduce.conformal.ByValue": [
            Call(fit_by(conformal.ByValue), {"sensitivity": 1.0}, slow=True)
        ],
        "transduce.conformal.ByClass": [
            Call(by_class, {"shares": {"yes": 0.5, "no": 0.5}}, slow=True),
            *[
                Call(by_class, {"shares": odd}, f"shares {place}", odd=(), slow=True)
                for place, odd in enumerate(
                    [{"yes": 0.5}, {"yes": 0.0, "no": 1.0}, {"yes": 1e200, "no": 1.0}]
                )
            ],
        ],
        "transduce.conformal.Miscoverage": [
            Call(law, {"n_unlabelled": 20, "n_calibration": 12, "rank": 10}),
            Call(law_at, {"confidence": 0.8, "n_unlabelled": 20, "n_calibration": 12}, "at"),
            Call(at, {"count": 3.0, "certainty": 0.9}, "cdf"),
        ],
        "transduce.conformal.ClassMiscoverage": [
            Call(
                class_law,
                {
                    "n_unlabelled": 20,
                    "n_labelled": (9, 9),
                    "n_calibration": (5, 5),
                    "ranks": (4, 5),
                },
            )
        ],
        "transduce.conformal.CategoryMiscoverage": [
            Call(categories, {"parts": (conformal.Miscoverage(3, 2, 1),)})
        ],
        "transduce.conformal.ClassShares": [
            Call(reweigh, {"probabilities": np.array([[0.5, 0.5], [0.1, 0.9]])}),
            Call(
                shares,
                {
                    "classes": np.array(["a", "b"]),
                    "labels": np.full(2, 0.5),
                    "shares": np.full(2, 0.5),
                },
                "fields",
                (),
            ),
        ],
        "transduce.conformal.Selection": [
            Call(
                picked,
                {
                    "rows": np.array([1]),
                    "values": np.array([2.0]),
                    "p_values": np.array([0.1, 0.2]),
                },
                odd=(),
            )
        ],
        "transduce.conformal.exchangeability_test": [
            Call(compared, {"X": X, "labelled": ~missing, "random_state": 0}, slow=True),
            Call(
                compared,
                {"X": X, "labelled": ~missing, "within": groups},
                "within",
                ("within",),
                slow=True,
            ),
        ],
        "transduce.conformal.Exchangeability": [
            Call(lambda: compared(X, ~missing, random_state=0), {}, slow=True)
        ],
        "transduce.conformal.selection.selection_p_values": [
            Call(
                selection_p_values,
                {"unlabelled": X[:5, 0], "hidden": X[:8, 0], "good": good},
            )
        ],
    }


def of_selection() -> dict[str, list[Call]]:
    """Return the calls that score, tune and compare."""
    from sklearn.linear_model import Ridge

    from transduce import metrics, model_selection

    def cross(X: Any, y: Any, **settings: Any) -> Any:
        usual = {"cv": 2, "random_state": 0} | settings
        return model_selection.cross_val_transduce(Ridge(), X, y, **usual).scores

    def choose(X: Any, y: Any, **settings: Any) -> Any:
        usual = {"cv": 2, "random_state": 0, "task": "regression"} | settings
        choice = model_selection.choose_method(X, y, {"linear": Ridge()}, **usual)
        return choice.table["score"].dropna()

    def search(X: Any, y: Any, **settings: Any) -> Any:
        found = model_selection.TransductiveSearchCV(
            Ridge(), {"alpha": [0.1, 1.0]}, **{"cv": 2} | settings
        ).fit(X, y)
        return [found.best_score_, found.predict(NEW)]

    def corrected(**settings: Any) -> Any:
        usual = {"predictions": 0} | settings
        return model_selection.CorrectedPredictions(Ridge(), **usual)

    choosing = {"X": X, "y": NUMBERS}
    truth, guess = np.array(["a", "b"] * 4), np.array(["a", "a"] * 4)
    sure = np.linspace(0.1, 0.9, 8)
    rejection = {"y_true": truth, "y_pred": guess, "confidence": sure}
    folds = np.array([f"g{row % 4}" for row in range(N)], dtype=object)
    return {
        "transduce.model_selection.cross_val_transduce": [
            Call(cross, {"X": X, "y": NUMBERS}),
            Call(
                cross,
                {"X": X, "y": NUMBERS, "cv": 2, "random_state": 0},
                "settings",
                ("cv", "random_state"),
            ),
            Call(cross, {"X": X, "y": NUMBERS, "groups": folds}, "groups", ("groups",)),
            Call(cross, {"X": X, "y": NUMBERS, "scoring": "r2"}, "scoring", ("scoring",)),
        ],
        "transduce.model_selection.CrossTransduction": [
            Call(lambda: cross(X, NUMBERS), {}, "through cross_val_transduce")
        ],
        "transduce.model_selection.choose_method": [Call(choose, choosing, slow=True)],
        "transduce.model_selection.MethodChoice": [
            Call(lambda: choose(X, NUMBERS), {}, "through choose_method", slow=True)
        ],
        "transduce.model_selection.TransductiveSearchCV": [
            Call(search, {"X": X, "y": NUMBERS}),
            Call(search, {"X": X, "y": NUMBERS, "cv": 2}, "settings", ("cv",)),
        ],
        "transduce.model_selection.CorrectedPredictions": estimator_calls(
            corrected, NUMBERS, predictions=0
        ),
        "transduce.metrics.rejection_curve": [Call(metrics.rejection_curve, rejection)],
        "transduce.metrics.area_under_rejection_curve": [
            Call(metrics.area_under_rejection_curve, rejection)
        ],
        "transduce.metrics.precision_recall_break_even": [
            Call(
                metrics.precision_recall_break_even,
                {"y_true": np.array([1.0, 0.0] * 4), "score": sure},
            )
        ],
    }


def of_labelling() -> dict[str, list[Call]]:
    """Return the calls about labelling by hand."""
    from transduce.app import labelling

    def session(table: Any, target: Any, classes: Any = ("yes", "no"), label: Any = "yes") -> Any:
        with labelling.Session(table, target, classes=classes) as found:
            found.answer(label, row=0)
            found.answer("no", row=1)
            return found.answers().values

    def settings(**arguments: Any) -> Any:
        return labelling.SessionSettings(**arguments).recall

    def act(row: Any) -> Any:
        with labelling.Session(TABLE[["size"]], "large", classes=["yes", "no"]) as found:
            return found.answer("yes", row=row)

    def add_class(label: Any) -> Any:
        with labelling.Session(TABLE[["size"]], "large", classes=["yes", "no"]) as found:
            return found.add_class(label)

    def propose(mode: Any) -> Any:
        with labelling.Session(TABLE[["size"]], "large", classes=["yes", "no"]) as found:
            return found.propose(mode).row

    def draws(rows: Any) -> Any:
        return labelling.Draws.of(rows).known

    def audit(found: Any, doubtful: Any, pool: Any) -> Any:
        return labelling.Audit(labelling.Draws.of([]), found, doubtful, pool).most

    def certified(function: Callable[..., Any], share: str) -> Callable[..., Any]:
        def certify(found: Any, doubtful: Any, pool: Any, **levels: Any) -> Any:
            usual = labelling.Draws.of([(100 - s, 5, False) for s in range(20)])
            return function(labelling.Audit(usual, found, doubtful, pool), **levels)

        return certify

    counts = {"found": 5, "doubtful": 0, "pool": 80}
    recall = certified(labelling.certify_recall, "recall")
    answers = certified(labelling.certify_answers, "share")
    levels = {"recall": 0.9, "certainty": 0.9}
    limits = {"recall": 0.9, "certainty": 0.9, "wrong_share": 0.1, "confidence": 0.9, "seed": 1}
    plain = TABLE[["size", "kind"]]
    return {
        "transduce.app.labelling.Session": [
            Call(session, {"table": plain, "target": "large"}, slow=True),
            Call(
                session,
                {"table": plain, "target": "large", "label": "no"},
                "answer",
                ("label",),
                slow=True,
            ),
            Call(
                session,
                {"table": plain, "target": "large", "classes": ("yes", "no")},
                "classes",
                ("classes",),
                slow=True,
            ),
            Call(act, {"row": 3}, "row", slow=True),
            Call(add_class, {"label": "perhaps"}, "add_class", slow=True),
            Call(propose, {"mode": "audit"}, "propose", slow=True),
        ],
        "transduce.app.labelling.SessionSettings": [
            Call(settings, limits | {"task": "auto", "labels_by_class": False, "first": (1, 2)})
        ],
        "transduce.app.labelling.SampleRequest": [
            Call(
                labelling.SampleRequest,
                {"by": ("llm",), "number": 10, "allocation": "neyman"},
            )
        ],
        "transduce.app.labelling.Draws": [Call(draws, {"rows": [(10, 2, True)]})],
        "transduce.app.labelling.Audit": [Call(audit, counts)],
        "transduce.app.labelling.certify_recall": [Call(recall, counts | levels)],
        "transduce.app.labelling.certify_answers": [
            Call(answers, counts | {"share": 0.1, "certainty": 0.9})
        ],
        "transduce.app.labelling.RecallCertificate": [
            Call(lambda: recall(**counts, **levels).recall_at_least, {}, "through certify_recall")
        ],
        "transduce.app.labelling.WrongCertificate": [
            Call(
                lambda: answers(**counts, share=0.1, certainty=0.9).wrong_at_most,
                {},
                "through certify_answers",
            )
        ],
        "transduce.app.labelling.Proposal": [
            Call(lambda: propose("find"), {}, "through Session", slow=True)
        ],
        "transduce.app.labelling.Exported": [
            Call(
                lambda: labelling.Exported(Path("a"), Path("b"), None, None, "No label.").guarantee,
                {},
                "a record",
            )
        ],
    }


def of_records() -> dict[str, list[Call]]:
    """Return the calls of what estimators return, and of what they read."""
    from transduce import Answer, Guarantee, Regions, show_progress
    from transduce.core.sample import PartlyLabelled
    from transduce.methods.confidence_machine import Setting

    def regions(pieces: Any) -> Any:
        found = Regions(pieces)
        return [found.to_arrays()[0], found.measure(), found.hull(), found.contains(0.0)]

    def contains(y: Any) -> Any:
        return Regions.from_intervals([[0, 1], [2, 3]]).contains(y)

    def from_pieces(rows: Any) -> Any:
        return Regions.from_pieces(rows).to_arrays()[0]

    def together(parts: Any) -> Any:
        return Regions.concatenate(parts).to_arrays()[0]

    def within(lower: Any, upper: Any) -> Any:
        return Regions.from_intervals([[0, 1], [2, 3]]).within(lower, upper).to_arrays()[0]

    def answer(values: Any) -> Any:
        rows, status = np.arange(2), np.array(["answered"] * 2)
        return Answer(rows, values, status, Guarantee("none"), confidence=np.full(2, 0.5))

    def reject(share: Any) -> Any:
        return answer(np.ones(2)).reject(share=share).status

    def sample(X: Any, y: Any) -> Any:
        return PartlyLabelled.from_arrays(X, y).labelled

    def progress(listener: Any) -> Any:
        from transduce.core.computing import stage

        with show_progress(listener), stage("test"):
            return 0.0

    def machine(**settings: Any) -> Any:
        setting = Setting(**settings)
        model = transduce.RidgeConfidenceMachine(settings=[setting, Setting("linear")])
        return answered(model.fit(X, NUMBERS))

    two = np.array([[0.0, 1.0], [2.0, 3.0]])
    return {
        "transduce.Regions": [
            Call(regions, {"pieces": two}),
            Call(contains, {"y": np.array([0.5, 2.5])}, "contains"),
            Call(from_pieces, {"rows": [[(0, 1)]]}, "from_pieces"),
            Call(together, {"parts": [Regions(two)]}, "concatenate"),
            Call(within, {"lower": 0.5, "upper": 2.5}, "within"),
        ],
        "transduce.Answer": [Call(reject, {"share": 0.5})],
        "transduce.Guarantee": [
            Call(lambda: len(str(Guarantee("exact", about="interval", confidence=0.9))), {})
        ],
        "transduce.show_progress": [Call(progress, {"listener": lambda name, share: None}, odd=())],
        "transduce.core.sample.PartlyLabelled": [Call(sample, {"X": X, "y": NUMBERS})],
        "transduce.methods.confidence_machine.Setting": [
            Call(machine, {"kernel": "rbf", "ridge": 1.0, "width": 2.0}, slow=True)
        ],
    }


def of_displays() -> dict[str, list[Call]]:
    """Return the calls that plot."""
    import matplotlib.pyplot as plt

    from transduce import Regions, conformal, display

    def closing(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            try:
                make(**arguments).figure_.canvas.draw()
            finally:
                plt.close("all")

        return call

    two = Regions.from_intervals([[0, 1], [2, 3]])
    answer = transduce.Answer(
        np.arange(2),
        np.array([0.5, 2.5]),
        np.array(["answered"] * 2),
        transduce.Guarantee("none"),
        regions=two,
    )
    law = conformal.Miscoverage(20, 12, 10)
    truth, guess = np.array(["a", "b"] * 4), np.array(["a", "a"] * 4)
    rejection = {"y_true": truth, "y_pred": guess, "confidence": np.linspace(0.1, 0.9, 8)}
    estimator = {"estimator": transduce.TransductiveRidge()}
    return {
        "transduce.display.RegionDisplay": [
            Call(
                closing(lambda values: display.RegionDisplay(values, two).plot()),
                {"values": np.array([0.5, 2.5])},
                odd=(),
                slow=True,
            ),
            Call(
                closing(lambda answer: display.RegionDisplay.from_answer(answer)),
                {"answer": answer},
                "from_answer",
                slow=True,
            ),
        ],
        "transduce.display.MiscoverageDisplay": [
            Call(closing(display.MiscoverageDisplay.from_law), {"law": law}, slow=True)
        ],
        "transduce.display.RejectionCurveDisplay": [
            Call(closing(display.RejectionCurveDisplay.from_predictions), rejection, slow=True)
        ],
        "transduce.display.EnvelopeDisplay": [
            Call(
                closing(lambda envelope: display.EnvelopeDisplay.from_envelope(envelope)),
                {"envelope": None},
                refused=True,
                slow=True,
            )
        ],
        "transduce.display.RelevanceDisplay": [
            Call(closing(display.RelevanceDisplay.from_estimator), estimator, refused=True)
        ],
        "transduce.display.BandDisplay": [
            Call(
                closing(display.BandDisplay.from_estimator),
                estimator | {"X": NEW},
                odd=("estimator",),
                refused=True,
            )
        ],
        "transduce.display.GraphMapDisplay": [
            Call(closing(display.GraphMapDisplay.from_estimator), estimator, refused=True)
        ],
    }


def of_functions() -> dict[str, list[Call]]:
    """Return the calls of the functions under the estimators, and about devices."""
    from transduce.device import dispatching, to_device
    from transduce.methods.ridge import choose_settings, leave_one_out
    from transduce.methods.spectral_graph import (
        NeighborGraph,
        Spectrum,
        average_cut,
        cut_value,
        graph_spectrum,
        minimum_cut,
        neighbor_graph,
        neighbor_margins,
    )

    K = np.exp(-((X[:8, None, 0] - X[None, :8, 0]) ** 2))
    whole = np.array(["a", "b"] * 4)

    def graph(X: Any, **settings: Any) -> Any:
        return neighbor_graph(X, **{"n_neighbors": 4} | settings).toarray()

    def settings_of(X: Any, y: Any) -> Any:
        choice = choose_settings(transduce.TransductiveRidge(), [(X, y)])
        return [choice.width, choice.ridge, choice.error]

    def spectrum(A: Any, **settings: Any) -> Any:
        found = graph_spectrum(A, **settings)
        return [found.values, found.vectors]

    @cache
    def billiard() -> Any:
        two = np.where(CLASSES == "c", "a", CLASSES)
        return transduce.BayesianTransducer(tolerance=0.2, random_state=0).fit(X, two)

    def joint_labelling(X: Any, labels: Any) -> Any:
        return billiard().labelling_probability(X, labels)

    def cut(graph: Any, y: Any) -> Any:
        return minimum_cut(graph, y).value

    def margins(X: Any, labels: Any, **settings: Any) -> Any:
        found = neighbor_margins(X, labels, **settings)
        return [found.margins, found.error_bound, found.leave_one_out_error]

    def load(content: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "x.npz").write_bytes(str(content).encode("utf-8", "replace"))
            return Spectrum.load(f"{folder}/x.npz")

    def dispatch() -> Any:
        with dispatching():
            return 0.0

    assert NeighborGraph is not None
    return {
        "transduce.methods.ridge.leave_one_out": [
            Call(leave_one_out, {"K": K, "y": X[:8, 0], "ridge": 0.5})
        ],
        "transduce.methods.ridge.choose_settings": [Call(settings_of, {"X": X, "y": NUMBERS})],
        "transduce.methods.ridge.RidgeChoice": [
            Call(lambda: settings_of(X, NUMBERS), {}, "through choose_settings")
        ],
        "transduce.methods.bayesian.LabellingProbability": [
            Call(joint_labelling, {"X": X[:3], "labels": np.array(["a", "b", "a"])}),
        ],
        "transduce.methods.spectral_graph.neighbor_graph": [
            Call(graph, {"X": X}),
            Call(
                graph,
                {"X": X, "n_neighbors": 4, "metric": "cosine"},
                "settings",
                ("n_neighbors", "metric"),
            ),
        ],
        "transduce.methods.spectral_graph.NeighborGraph": [
            Call(lambda: graph(X), {}, "through neighbor_graph")
        ],
        "transduce.methods.spectral_graph.graph_spectrum": [
            Call(spectrum, {"A": K}),
            Call(spectrum, {"A": K, "n_components": 3}, "settings", ("n_components",)),
        ],
        "transduce.methods.spectral_graph.cut_value": [
            Call(cut_value, {"graph": K, "labels": whole}),
        ],
        "transduce.methods.spectral_graph.average_cut": [
            Call(average_cut, {"graph": K, "labels": whole}),
        ],
        "transduce.methods.spectral_graph.minimum_cut": [
            Call(cut, {"graph": K, "y": CLASSES[:8]}),
        ],
        "transduce.methods.spectral_graph.MinimumCut": [
            Call(lambda: cut(K, CLASSES[:8]), {}, "through minimum_cut"),
        ],
        "transduce.methods.spectral_graph.neighbor_margins": [
            Call(margins, {"X": X[:8], "labels": whole, "n_neighbors": 3, "metric": "cosine"}),
        ],
        "transduce.methods.spectral_graph.NeighborMargins": [
            Call(lambda: margins(X[:8], whole), {}, "through neighbor_margins"),
        ],
        "transduce.methods.spectral_graph.Spectrum": [
            Call(load, {"content": "PK"}, "load"),
        ],
        "transduce.device.to_device": [
            Call(to_device, {"X": X, "device": "cpu"}, odd=("device",), slow=True)
        ],
        "transduce.device.dispatching": [Call(dispatch, {})],
    }


def of_population() -> dict[str, list[Call]]:
    """Return the calls about a column as a whole; a line of the kind "none" says that it says nothing."""
    from transduce import population

    predictions = np.where(np.isnan(NUMBERS), 1.0, NUMBERS) + 0.1
    groups = np.array(["a", "b"] * (N // 2) + ["a"] * (N % 2))
    checked = np.where(np.isnan(NUMBERS), None, groups)

    def estimated(function: Callable[..., pd.DataFrame], **fixed: Any) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            frame = function(**fixed | arguments)
            return frame.loc[frame["kind"] != "none", "estimate"].to_numpy()

        return call

    usual = {"y": NUMBERS, "predictions": predictions, "confidence": 0.9}
    home = "transduce.population"
    return {
        f"{home}.Sample": [
            Call(
                lambda rows: population.estimate_mean(NUMBERS, sample=population.Sample(rows))[
                    "estimate"
                ].to_numpy(),
                {"rows": ~np.isnan(NUMBERS)},
            )
        ],
        f"{home}.audit_classes": [
            Call(
                lambda **given: population.audit_classes(**given).shares[["lower", "upper"]],
                {"truth": checked, "predictions": groups, "certainty": 0.9},
            )
        ],
        f"{home}.audit_numbers": [
            Call(
                lambda **given: population.audit_numbers(**given).wrong["at_most"].to_numpy(),
                {"truth": NUMBERS, "predictions": predictions, "tolerance": 0.2, "certainty": 0.9},
            )
        ],
        f"{home}.Audit": [
            Call(
                lambda more: population.audit_classes(checked, groups).forecast(more)["share"],
                {"more": [10, 20]},
            )
        ],
        f"{home}.NumberAudit": [
            Call(
                lambda relative: population.audit_numbers(
                    NUMBERS, predictions, tolerance=0.2, relative=relative
                ).wrong["at_most"],
                {"relative": True},
            )
        ],
        f"{home}.estimate_mean": [Call(estimated(population.estimate_mean), usual)],
        f"{home}.estimate_total": [Call(estimated(population.estimate_total), usual)],
        f"{home}.estimate_difference": [
            Call(
                estimated(population.estimate_difference, groups=("a", "b")), usual | {"by": groups}
            )
        ],
        f"{home}.estimate_share": [
            Call(estimated(population.estimate_share), usual | {"above": 0.5})
        ],
        f"{home}.estimate_quantile": [
            Call(estimated(population.estimate_quantile), usual | {"q": 0.5})
        ],
        f"{home}.estimate_regression": [
            Call(estimated(population.estimate_regression), usual | {"X": X})
        ],
    }
