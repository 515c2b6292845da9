"""What to label next: rows that would help most, and what more labels would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from transduce.app.filling.hidden_labels import hide_labels
from transduce.app.tables.columns import Target
from transduce.core.answer import Answer
from transduce.core.types import AnyArray, Array
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.estimator_kinds import is_transducer
from transduce.model_selection.methods import MEMBERS, Case
from transduce.model_selection.own_models import OwnModel

if TYPE_CHECKING:
    from transduce.app.filling.table_fit import TableFit

N_ROWS = 10
MOST_COMPARED = 5000  # rows and labels among which rows are picked
FEWEST_FOR_CURVE = 20  # labels from which a learning curve is read
MOST_SECONDS = 3.0  # of a fit of the method whose learning curve is looked at
FEW_TREES = 40  # of a forest: how errors shrink with labels shows with few
REPEATS = 2
FOLDS_OF_HALF = 2  # each fit sees a half of the labels
FOLDS_OF_MOST = 5  # each fit sees four fifths of the labels


@dataclass(frozen=True)
class NextLabels:
    """What to label next."""

    rows: tuple[int, ...]  # positions in the table of rows whose labels would help most, best first
    smaller: float | None  # share by which intervals or errors get smaller with twice the labels
    about: str  # what gets smaller: "intervals" or "errors"
    lines: Sequence[int] | None = None  # of the file, on which each row of the table begins

    def at_places(self, places: AnyArray, lines: Sequence[int] | None) -> NextLabels:
        """Return the same of a table in which the rows stand at these places, on these lines."""
        rows = tuple(int(places[row]) for row in self.rows)
        return replace(self, rows=rows, lines=lines)

    def __str__(self) -> str:
        sentences = [self._about_rows(), self._about_more_labels()]
        if self.rows:
            sentences.append(
                "Rows picked like this are no random sample: for a guarantee, draw rows at random "
                "too."
            )
        return " ".join(filter(None, sentences))

    def _about_rows(self) -> str:
        """Return which rows would help most, in a sentence; "" if there are none."""
        if not self.rows:
            return ""
        rows = "Row"
        numbers = [row + 1 for row in self.rows]
        if self.lines is not None:
            rows = "Line"
            numbers = [self.lines[row] for row in self.rows]
        *names, last = [f"{number:,}" for number in numbers]
        if not names:
            return f"{rows} {last} would help most if it was labelled."
        return f"{rows}s {', '.join(names)} and {last} would help most if they were labelled."

    def _about_more_labels(self) -> str:
        """Return what twice the labels would bring, in a sentence; "" if that is not known."""
        if self.smaller is None:
            return ""
        share = f"{100 * self.smaller:.0f} %"
        source = "(extrapolated from fits to fewer labels)"
        if share == "0 %" and self.about == "intervals":
            return f"Doubling the labels would hardly narrow the intervals {source}."
        if share == "0 %":
            return f"Doubling the labels would hardly reduce the number of errors {source}."
        if self.about == "intervals":
            return f"Doubling the labels would narrow the intervals by about {share} {source}."
        return f"Doubling the labels would avoid about {share} of the errors {source}."


def next_rows(
    matrix: Array,
    missing: AnyArray,
    answer: Answer,
    seed: int,
) -> list[int]:
    """Return the rows whose labels would help most. Shapes: matrix (n, d), missing (n,)."""
    random = np.random.default_rng(seed)
    labelled = np.flatnonzero(~missing)
    places = np.arange(len(answer))
    if len(labelled) > MOST_COMPARED:
        labelled = random.choice(labelled, MOST_COMPARED, replace=False)
    if len(places) > MOST_COMPARED:
        places = np.sort(random.choice(places, MOST_COMPARED, replace=False))
    return pick_rows(matrix, labelled, answer.rows[places], unsureness(answer)[places])


def pick_rows(
    matrix: Array,
    labelled: AnyArray,
    rows: AnyArray,
    unsure: Array,
) -> list[int]:
    """Return unsure rows, far from labelled rows and from each other, the best first."""
    from sklearn.metrics import pairwise_distances

    if not len(rows):
        return []
    nearest = pairwise_distances(matrix[rows], matrix[labelled]).min(axis=1)
    picked: list[int] = []
    for _ in range(min(N_ROWS, len(rows))):
        gain = unsure * nearest
        best = int(np.argmax(gain))
        if picked and gain[best] <= 0.0:
            break
        picked.append(int(rows[best]))
        to_best = pairwise_distances(matrix[rows], matrix[rows[best]][None])[:, 0]
        nearest = np.minimum(nearest, to_best)
        nearest[best] = -1.0
    return picked


def unsureness(answer: Answer) -> Array:
    """Return how unsure each answer is: spread of numbers, or probability of another class."""
    if answer.regions is None:
        if answer.probabilities is not None:
            return 1.0 - answer.probabilities.max(axis=1)
        assert answer.confidence is not None
        return 1.0 - answer.confidence + 1e-3
    if answer.standard_errors is not None and np.all(np.isfinite(answer.standard_errors)):
        return np.asarray(answer.standard_errors, dtype=float)
    widths = answer.regions.measure()
    finite = widths[np.isfinite(widths)]
    if not len(finite):
        return np.ones(len(widths))
    return np.where(np.isfinite(widths), widths, finite.max())


def gain_of_labels(fit: TableFit, seed: int) -> float | None:
    """Return the share by which errors shrink with twice the labels, by a power law."""
    n_labels = fit.target.n_labels
    method = quick_method(fit.values_model, fit.target, fit.seconds)
    if method is None or not FEWEST_FOR_CURVE <= n_labels <= MOST_COMPARED:
        return None
    with_half = _mean_error(method, fit, FOLDS_OF_HALF, REPEATS, seed)
    with_most = _mean_error(method, fit, FOLDS_OF_MOST, 1, seed)
    if min(with_half, with_most) <= 0.0:
        return None
    ratio_of_labels = (1.0 - 1.0 / FOLDS_OF_MOST) / (1.0 - 1.0 / FOLDS_OF_HALF)
    power = np.log(with_half / with_most) / np.log(ratio_of_labels)
    return float(1.0 - 0.5 ** np.clip(power, 0.0, 1.0))


def _mean_error(
    method: Any,
    fit: TableFit,
    folds: int,
    repeats: int,
    seed: int,
) -> float:
    """Return the mean error at hidden labels over some repeats."""
    return float(np.mean([_error(method, fit, folds, seed + k) for k in range(repeats)]))


def _error(method: Any, fit: TableFit, folds: int, seed: int) -> float:
    """Return the mean error at hidden labels."""
    true, answers = hide_labels(method, fit, folds, seed)
    if fit.target.task == "regression":
        errors = np.abs(true.astype(float) - answers.values.astype(float))
    else:
        pairs = zip(true.tolist(), answers.values.tolist(), strict=True)
        errors = np.array([str(label) != str(value) for label, value in pairs])
    return float(np.average(errors, weights=fit.weigh_labels(answers.rows)))


def quick_method(model: Any, target: Target, seconds: float) -> Any:
    """Return the method, or the quick member of a blend with the largest weight, or None."""
    if not isinstance(model, TransductiveBlend):
        # Of an estimator of the user's own, nothing but its seconds is known.
        if isinstance(model, OwnModel) and seconds > 2 * MOST_SECONDS:
            return None
        return clone(model)
    # Counts tell which are quick, and not the clock: those that are fitted to labelled rows only,
    # and to few enough.
    n_classes = 0
    if target.task == "classification":
        n_classes = len(set(target.known))
    case = Case(target.task, len(target.labels), target.n_labels, n_classes=n_classes)
    for name in model.weights_.sort_values(ascending=False, kind="stable").index:
        member = model.estimators_[name]
        if model.weights_[name] <= 0.0 or is_transducer(member) or name not in MEMBERS:
            continue
        if MEMBERS[name].fit_seconds(case) <= MOST_SECONDS:
            return _with_few_trees(clone(member))
    return None


def _with_few_trees(estimator: Any) -> Any:
    """Return an estimator with fewer trees, if it has any."""
    if hasattr(estimator, "n_estimators"):
        return estimator.set_params(n_estimators=FEW_TREES)
    return estimator
