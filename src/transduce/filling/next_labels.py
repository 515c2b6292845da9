"""What to label next: rows whose labels would help most, and how much twice the labels would help."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from transduce.core.answer import Answer
from transduce.core.types import AnyArray, Array
from transduce.ensemble.blend import TransductiveBlend
from transduce.filling.diagnostics import Values
from transduce.filling.plan import cost
from transduce.model_selection.cross_validation import cross_val_transduce
from transduce.model_selection.hidden_labels import is_transducer
from transduce.tables.features import Features
from transduce.tables.labels import Target

N_ROWS = 10
MOST_COMPARED = 5000  # rows and labels among which rows are picked
MOST_SECONDS = 3.0  # of a fit of the method whose learning curve is looked at
FEW_TREES = 40  # of a forest: how errors shrink with labels shows with few
REPEATS = 2


@dataclass(frozen=True)
class NextLabels:
    """What to label next."""

    rows: tuple[int, ...]  # positions in the table of the rows whose labels would help most, the best first
    smaller: float | None
    about: str  # what gets smaller

    def of(self, rows: AnyArray) -> NextLabels:
        """Return the same of a table in which the rows stand at these positions."""
        return replace(self, rows=tuple(int(rows[row]) for row in self.rows))

    def __str__(self) -> str:
        said = []
        if self.rows:
            names = [f"{row + 1:,}" for row in self.rows]
            which = f"Row {names[0]}" if len(names) == 1 else f"Rows {', '.join(names[:-1])} and {names[-1]}"
            said.append(f"{which} would help most if they were labelled.")
        if self.smaller is not None:
            much = f"{100 * self.smaller:.0f} %"
            what = f"intervals would be about {much} narrower"
            if self.about == "errors":
                what = f"about {much} fewer answers would be wrong"
            said.append(f"With twice the labels {what}, by the learning curve so far.")
        if self.rows:
            said.append(
                "Rows picked like this are not chosen by chance: for a guarantee, draw rows at random too."
            )
        return " ".join(said)


def pick_rows(
    matrix: Array, labelled: AnyArray, rows: AnyArray, unsure: Array, number: int = N_ROWS
) -> list[int]:
    """Return rows that are unsure and far from all labelled rows, and from each other, the best first.

    Shapes: matrix (n, d).
    """
    if not len(rows):
        return []
    nearest = pairwise_distances(matrix[rows], matrix[labelled]).min(axis=1)
    picked: list[int] = []
    for _ in range(min(number, len(rows))):
        gain = unsure * nearest
        best = int(np.argmax(gain))
        if picked and gain[best] <= 0.0:
            break
        picked.append(int(rows[best]))
        nearest = np.minimum(nearest, pairwise_distances(matrix[rows], matrix[rows[best]][None])[:, 0])
        nearest[best] = -1.0
    return picked


def unsureness(answer: Answer) -> Array:
    """Return how unsure each answer is, from what the methods say: spread of numbers, or chance of another class."""
    if answer.regions is None:
        if answer.probabilities is not None:
            return 1.0 - answer.probabilities.max(axis=1)
        assert answer.confidence is not None
        return 1.0 - answer.confidence + 1e-3
    if answer.standard_errors is not None and np.all(np.isfinite(answer.standard_errors)):
        return np.asarray(answer.standard_errors, dtype=float)
    widths = answer.regions.measure()
    known = widths[np.isfinite(widths)]
    return np.where(np.isfinite(widths), widths, known.max() if len(known) else 1.0)


def next_labels(answer: Answer, values: Values, features: Features, target: Target, seed: int) -> NextLabels:
    """Return what to label next."""
    random = np.random.default_rng(seed)
    labelled = np.flatnonzero(~target.missing)
    if len(labelled) > MOST_COMPARED:
        labelled = random.choice(labelled, MOST_COMPARED, replace=False)
    places = np.arange(len(answer))
    if len(places) > MOST_COMPARED:
        places = np.sort(random.choice(places, MOST_COMPARED, replace=False))
    rows = pick_rows(features.matrix, labelled, answer.rows[places], unsureness(answer)[places])
    about = "intervals" if target.task == "regression" else "errors"
    return NextLabels(tuple(rows), _gain(values, features, target, seed), about)


def _gain(values: Values, features: Features, target: Target, seed: int) -> float | None:
    """Return by which share errors get smaller with twice the labels, by a power law through two sizes."""
    method = _quick(values.estimator, target)
    if method is None or target.n_labels < 20 or target.n_labels > MOST_COMPARED:
        return None
    sizes, errors = [], []
    for folds in (2, 5):
        sizes.append(1.0 - 1.0 / folds)
        found = [
            _error(method, features, target, folds, seed + k) for k in range(REPEATS if folds == 2 else 1)
        ]
        if any(error is None for error in found):
            return None
        errors.append(float(np.mean([error for error in found if error is not None])))
    if min(errors) <= 0.0:
        return None
    power = np.log(errors[0] / errors[1]) / np.log(sizes[1] / sizes[0])
    return float(1.0 - 0.5 ** np.clip(power, 0.0, 1.0))


def _quick(model: Any, target: Target) -> Any:
    """Return the method, or the member of a blend with the largest weight whose fits are quick; None if none is.

    Counts tell which are quick, and not the clock: those that are fitted to labelled rows only, and to few enough.
    """
    if not isinstance(model, TransductiveBlend):
        return clone(model)
    is_class = target.task == "classification"
    n_classes = len(set(target.labels[~target.missing])) if is_class else 0
    size = len(target.labels), target.n_labels, n_classes
    for name in model.weights_.sort_values(ascending=False, kind="stable").index:
        member = model.estimators_[name]
        if model.weights_[name] > 0.0 and not is_transducer(member) and cost(name, *size) <= MOST_SECONDS:
            found = clone(member)
            return found.set_params(n_estimators=FEW_TREES) if hasattr(found, "n_estimators") else found
    return None


def _error(method: Any, features: Features, target: Target, folds: int, seed: int) -> float | None:
    """Return the mean error at hidden labels; None where the method cannot answer them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cross_val_transduce(
                method, features.matrix, target.labels, cv=folds, random_state=seed
            ).answers
    except ValueError:
        return None
    true = target.labels[found.rows]
    if target.task == "regression":
        return float(np.mean(np.abs(true.astype(float) - found.values.astype(float))))
    return float(np.mean([str(a) != str(b) for a, b in zip(true, found.values, strict=True)]))
