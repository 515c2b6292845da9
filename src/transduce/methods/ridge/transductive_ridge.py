"""Transductive ridge (Chapelle, Vapnik and Weston 1999), for numbers and for classes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import rank_folds
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, fit_temperature, label_moments
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.core.validation import ClassTransducer, NumberTransducer, Transducer
from transduce.device import memory
from transduce.device.kernels import (
    Kernel,
    KernelLike,
    Near,
    check_kernel,
    median_width,
    narrowed,
    uses_width,
)
from transduce.methods.ridge.ball import complete_in_ball
from transduce.methods.ridge.completion import (
    LEAST_COUNTED,
    Completion,
    DenseSystem,
    DesignMatrix,
    DesignSystem,
    RidgeChoice,
    RidgeSpectrum,
    complete,
    search,
)

_NUMBERS = Guarantee(
    "none",
    reasons=(
        "Leave-one-out chose the values; for regions with a guarantee, use RidgeConfidenceMachine.",
    ),
)
_CLASSES = Guarantee(
    "none",
    reasons=(
        "Probabilities are calibrated by leave-one-out.",
        "For sets of classes with a guarantee, use RidgeConfidenceClassifier.",
    ),
)
ROUNDING = 1e-9  # scores that differ by less are equal

log = logging.getLogger(__name__)

# What "cv" tries, as multiples of l / 2m; infinity is the inductive answer.
TETHERS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, np.inf)
N_FOLDS = 5
MOST_CHOOSING = 2000  # labels by which width and ridge are chosen
MOST_SEARCHED = 500  # with more labels the width and ridge of the fit stand in for those of a fold
Folds = Sequence[tuple[AnyArray, AnyArray]]  # positions of visible and of hidden labels
OWN_BASIS = ("linear", "precomputed")  # kernels whose rows are the lines of the design matrix


# ----------------------------------------------------------------------------------------- settings


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeEstimator(Transducer):
    """What the estimators of numbers and of classes share: settings, and attributes of a fit."""

    kernel: KernelLike = "rbf"
    width: float | Literal["loo"] = "loo"
    ridge: float | Literal["loo"] = "loo"
    tether: float | Literal["auto", "cv"] = "auto"
    radius: float | None = None
    centres: int | None = None
    standardize: bool = True
    max_memory_mb: float = 2048
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None
    _fitted: FittedRidge = field(init=False)

    @property
    def max_bytes(self) -> float:
        """The budget of the design matrix."""
        return float(self.max_memory_mb) * 2**20

    @property
    def searches_width(self) -> bool:
        """Whether the kernel has a width, and leave-one-out is to choose it."""
        return uses_width(self.kernel) and checks.is_one_of(self.width, "loo")

    @property
    def searches_ridge(self) -> bool:
        """Whether leave-one-out is to choose the ridge."""
        return checks.is_one_of(self.ridge, "loo")

    def continue_from(self, earlier: RidgeEstimator, places: AnyArray) -> None:
        """Take over the width that an earlier fit, to fewer labels of the same rows, has chosen."""
        if checks.is_one_of(self.width, "loo") and earlier.width_ is not None:
            self.width = earlier.width_

    def _checked_copy(self) -> RidgeEstimator:
        """Return a copy of the settings, checked."""
        checks.check_positive("max_memory_mb", self.max_memory_mb)
        checks.check_flag("standardize", self.standardize)
        if not checks.is_one_of(self.width, "loo"):
            checks.check_positive(
                "width (a number, or 'loo')", self.width, least=1e-100, most=1e100
            )
        if not checks.is_one_of(self.ridge, "loo"):
            checks.check_positive("ridge (a number, or 'loo')", self.ridge)
        if not checks.is_one_of(self.tether, "auto", "cv"):
            checks.check_not_negative(
                "tether", self.tether, "'auto', 'cv' or a number from 0 to infinity"
            )
        if self.radius is not None:
            checks.check_not_negative("radius", self.radius, "None or a number from 0 to infinity")
            if not checks.is_one_of(self.tether, "auto"):
                raise ValueError("radius takes the place of tether: leave tether='auto'.")
        check_kernel(self.kernel)
        if self.centres is not None:
            checks.check_whole("centres (a number, or None)", self.centres, least=1)
            if self.kernel in OWN_BASIS:
                raise ValueError(
                    f"kernel={self.kernel!r} has a basis of its own: leave centres=None."
                )
        return replace(self)

    def _set_attributes(self, fitted: FittedRidge) -> None:
        """Set what was chosen, and how good it is."""
        self.width_ = fitted.choice.width
        self.ridge_ = fitted.choice.ridge
        self.loo_path_ = fitted.choice.path
        self.tether_ = fitted.tether
        if fitted.tether_path:
            self.tether_path_ = fitted.tether_path
        spread = fitted.labels.spread
        loo = arrays.to_numpy(fitted.labelled_loo)
        completed_loo = arrays.to_numpy(fitted.completion.loo_residuals)
        objective = arrays.to_numpy(fitted.completion.objective)
        moved = arrays.to_numpy(fitted.moved)
        self.loo_residuals_ = fitted.labels.restore_differences(fitted.completion.loo_residuals)
        with np.errstate(over="ignore"):
            self.loo_error_ = float(np.mean((loo * spread) ** 2))
            self.completed_loo_error_ = float(np.mean((completed_loo * spread) ** 2))
            self.objective_ = float(np.sum(objective * spread**2))
            self.distance_moved_ = _of_columns(np.linalg.norm(moved, axis=0) * spread)

    def _predict_rows(self, X: Rows) -> Array:
        """Return ridge regression on the completed sample at new rows, in the labels' units."""
        check_is_fitted(self)
        fitted = self._fitted
        new_rows = validation.read_rows(self, X, reset=False, device=True)
        rows = fitted.basis.scale(new_rows)
        coefficients = fitted.completion.coefficients
        bytes_of_row = 24 * coefficients.shape[0]
        size = max(1, int(fitted.settings.max_bytes // bytes_of_row))
        blocks = arrays.blocks(rows.shape[0], size)
        parts = [fitted.basis.predict(rows[part, :], coefficients) for part in blocks]
        return fitted.labels.restore(arrays.namespace(rows).concat(parts))

    def _predict_folds(self, folds: Folds) -> list[Array]:
        """Return inductive predictions at the hidden rows of each fold, in the labels' units."""
        check_is_fitted(self)
        with few_threads(len(self._fitted.labelled_rows)):
            return self._fitted.answers_in_folds(folds)


def _of_columns(numbers: Array) -> float | Array:
    """Return the number of the only column of labels, or those of several columns (c,)."""
    if len(numbers) == 1:
        return float(numbers[0])
    return numbers


def announce_memory(settings: RidgeEstimator, n: int, X: Array | None = None) -> None:
    """Warn before gigabytes are taken."""
    has_few_centres = settings.centres is not None and settings.centres < n
    if has_few_centres or settings.kernel == "linear":
        return
    memory.announce(
        5 * 8.0 * n**2,
        settings.max_bytes,
        X,
        f"Ridge regression with centres at all {n:,} rows",
        "centres=500 needs far less.",
    )


# ------------------------------------------------------------------------ rows and basis functions


@dataclass(frozen=True, eq=False)
class Basis:
    """From the user's rows to lines of the design matrix.

    Rows are scaled; then come their kernel values with the centres, if there are any. The
    transductive step has these centres. The inductive step has centres at the labelled rows if
    `at_labelled`, as in the paper, and else these.
    """

    kernel: Kernel
    centres: Array | None  # (p, d) scaled
    at_all_rows: bool
    at_labelled: bool
    # (p,) how often the row of a centre occurs, where each distinct row is one centre; then all
    # steps give what centres at all rows give.
    counts: Array | None = None
    scaling: Scaling | None = None
    rotation: Array | None = None  # (d, n) to the coordinates of the space that the rows span

    @classmethod
    def fit_apply(
        cls,
        X: Array,
        labelled: Mask,
        settings: RidgeEstimator,
    ) -> tuple[Basis, Array]:
        """Scale all rows and decide where the basis functions sit; return the scaled rows too."""
        scaling = None
        rotation = None
        if settings.standardize and settings.kernel != "precomputed":
            scaling, X = Scaling.fit_apply(X)
        if settings.kernel == "linear" and X.shape[1] > X.shape[0]:
            # More features than rows: nothing is lost in the coordinates of their span.
            rotation = arrays.namespace(X).linalg.svd(X, full_matrices=False)[2].T
            X = X @ rotation
        basis = cls._with_centres(X, labelled, settings)
        return replace(basis, scaling=scaling, rotation=rotation), X

    @classmethod
    def _with_centres(cls, rows: Array, labelled: Mask, settings: RidgeEstimator) -> Basis:
        """Place the centres: at all rows, all distinct rows, the labelled rows, or at some rows."""
        kernel = Kernel(settings.kernel)
        n_wanted = settings.centres
        if settings.kernel == "linear":
            return cls(kernel, None, at_all_rows=False, at_labelled=False)
        if settings.kernel == "precomputed":
            return cls(kernel, None, at_all_rows=True, at_labelled=True)
        if n_wanted is None or n_wanted >= rows.shape[0]:
            return cls(kernel, rows, at_all_rows=True, at_labelled=True)
        # Sorted, so that the choice depends on the rows but not on their order.
        distinct, counts = arrays.counted_rows(rows)
        if n_wanted >= distinct.shape[0]:
            counts = arrays.asarray_like(counts, rows, "float64")
            return cls(kernel, distinct, at_all_rows=False, at_labelled=True, counts=counts)
        random = check_random_state(settings.random_state)
        centres = _draw_centres(arrays.pick(rows, labelled), distinct, n_wanted, random)
        at_labelled = int(labelled.sum()) <= n_wanted
        return cls(kernel, centres, at_all_rows=False, at_labelled=at_labelled)

    def scale(self, X: Array) -> Array:
        """Return rows scaled as those of `fit` were."""
        if self.scaling is not None:
            X = self.scaling.apply(X)
        if self.rotation is not None:
            X = X @ self.rotation
        return X

    def with_width(self, width: float | None) -> Basis:
        """Return the same with another width of the kernel."""
        return replace(self, kernel=replace(self.kernel, width=width or 1.0))

    def lines(self, rows: Array) -> Array:
        """Return the design matrix of scaled rows."""
        if self.centres is None:
            return rows
        values = self.kernel.checked_matrix(rows, self.centres)
        if self.counts is None:
            return values
        # Equal columns, k of them, are as good as one times the root of k: the penalty divides
        # among them.
        return values * arrays.namespace(values).sqrt(self.counts)

    def predict(self, rows: Array, coefficients: Array) -> Array:
        """Return the design matrix of scaled rows times coefficients."""
        if self.centres is None:
            return rows @ coefficients
        if self.counts is not None:
            roots = arrays.namespace(coefficients).sqrt(self.counts)
            coefficients = roots[:, None] * coefficients
        return self.kernel.times(rows, self.centres, coefficients)

    def design(self, rows: Array, *, max_bytes: float = 0.0) -> DesignMatrix:
        """Return the same in blocks."""
        if self.centres is None:
            p = rows.shape[1]
        else:
            p = self.centres.shape[0]
        return DesignMatrix.of(self.lines, rows, p, max_bytes=max_bytes)

    def with_kernel_matrix(self, rows: Array) -> tuple[Basis, Array]:
        """Return basis and rows; of wide rows, with centres at all, the whole kernel matrix.

        With more features than rows it is cheaper to pick from it than to compute it again.
        """
        is_wide = rows.shape[1] > rows.shape[0]
        if not self.at_all_rows or not is_wide or self.centres is None:
            return self, rows
        return replace(self, kernel=Kernel("precomputed"), centres=None), self.lines(rows)

    def pick(self, rows: Array, mask: Mask) -> Array:
        """Return the rows of a mask; of a kernel matrix their columns alone."""
        picked = arrays.pick(rows, mask)
        if self.at_all_rows and self.centres is None:
            return arrays.pick_columns(picked, mask)
        return picked

    @property
    def has_kernel_matrix(self) -> bool:
        """Whether the inductive step's design matrix is the labelled rows' kernel matrix."""
        return self.at_labelled and self.counts is None

    def of_labelled(self, rows_l: Array) -> Basis:
        """Return the basis of the inductive step, where it has no kernel matrix."""
        if not self.at_labelled:
            return self
        distinct, counts = arrays.counted_rows(rows_l)
        return replace(
            self,
            centres=distinct,
            counts=arrays.asarray_like(counts, rows_l, "float64"),
        )

    def spectrum(
        self,
        rows_l: Array,
        y_l: Array,
        near: Near | None = None,
    ) -> RidgeSpectrum:
        """Decompose the inductive problem: labelled rows, centres at them or as chosen.

        `near` are the rows' distances to each other, if known.
        """
        if not self.has_kernel_matrix:
            return RidgeSpectrum.of_square(self.of_labelled(rows_l).lines(rows_l), y_l)
        if self.centres is None:
            return RidgeSpectrum.of_kernel(rows_l, y_l)
        K = self.kernel.checked_matrix(rows_l, rows_l, near)
        return RidgeSpectrum.of_kernel(K, y_l)


def _draw_centres(
    labelled_rows: Array, distinct: Array, n_wanted: int, random: np.random.RandomState
) -> Array:
    """Return the distinct labelled rows or, of more than wanted, some of them and of all rows.

    Half of the number is drawn from the labelled rows, half from all distinct rows.
    """
    labelled = arrays.unique_rows(labelled_rows)
    if labelled.shape[0] <= n_wanted:
        return labelled
    n_labelled = (n_wanted + 1) // 2
    n_others = n_wanted // 2
    from_labelled = random.choice(labelled.shape[0], n_labelled, replace=False)
    from_all = random.choice(distinct.shape[0], n_others, replace=False)
    both = [arrays.pick(labelled, from_labelled), arrays.pick(distinct, from_all)]
    return arrays.unique_rows(arrays.namespace(labelled_rows).concat(both))


@dataclass(frozen=True, eq=False)
class Regression:
    """Ridge regression on all rows: width and ridge are chosen, the labels are still free."""

    basis: Basis
    rows: Array
    ridge: float
    system: DenseSystem | DesignSystem

    @classmethod
    def of(
        cls,
        basis: Basis,
        rows: Array,
        ridge: float,
        settings: RidgeEstimator,
    ) -> Regression:
        """Factorise; a ridge that was given must be large enough to leave every row out."""
        if basis.at_all_rows:
            return cls(basis, rows, ridge, DenseSystem.build(basis.lines(rows), ridge))
        design = basis.design(rows, max_bytes=settings.max_bytes)
        if settings.searches_ridge:
            return cls(basis, rows, ridge, DesignSystem.build(design, ridge, least=LEAST_COUNTED))
        system = DesignSystem.build(design, ridge)
        system.check_left_out()
        return cls(basis, rows, ridge, system)


@dataclass(frozen=True, eq=False)
class InductiveStep:
    """Ridge regression on the rows whose labels are shown.

    Fit, folds and leave-one-out all go through it.
    """

    basis: Basis  # where it has no kernel matrix, that of the shown rows
    rows: Array
    shown: Mask
    system: DenseSystem | DesignSystem

    @classmethod
    def of(
        cls, basis: Basis, rows: Array, ridge: float, shown: Mask, settings: RidgeEstimator
    ) -> InductiveStep:
        """Factorise; `rows` are scaled, or lines of the kernel matrix."""
        shown_rows = arrays.pick(rows, shown)
        if not basis.has_kernel_matrix:
            basis = basis.of_labelled(shown_rows)
            design = basis.design(shown_rows, max_bytes=settings.max_bytes)
            return cls(basis, rows, shown, DesignSystem.build(design, ridge))
        if basis.centres is None:
            K = arrays.pick_columns(shown_rows, shown)
        else:
            K = basis.kernel.matrix(shown_rows, shown_rows)
        return cls(basis, rows, shown, DenseSystem.build(K, ridge))

    def leave_one_out(self, y: Array) -> Array:
        """Return the leave-one-out residuals at the shown rows, of labels (n, c) of all rows."""
        return self.system.loo(arrays.pick(y, self.shown))

    def answers(self, y: Array) -> Array:
        """Return predictions at the other rows (m, c), from the labels of those that are shown."""
        if self.shown.all():
            return arrays.zeros((0, y.shape[1]), y)
        coefficients = self.system.coefficients(arrays.pick(y, self.shown))
        other_rows = arrays.pick(self.rows, ~self.shown)
        if not self.basis.has_kernel_matrix:
            return self.basis.design(other_rows).times(coefficients)
        if self.basis.centres is None:
            return arrays.pick_columns(other_rows, self.shown) @ coefficients
        shown_rows = arrays.pick(self.rows, self.shown)
        design = replace(self.basis, centres=shown_rows).design(other_rows)
        return design.times(coefficients)


# -------------------------------------------------------------------------------- choosing settings


def choose_width_and_ridge(
    basis: Basis, rows: Array, labelled: Mask, y_l: Array, settings: RidgeEstimator
) -> RidgeChoice:
    """Return what minimises the leave-one-out error of the inductive step, or what was given."""
    problem = InductiveProblem.of(basis, rows, labelled, y_l, settings)
    return search(
        problem.spectrum,
        width=problem.first_width,
        search_width=settings.searches_width,
        ridge=given_ridge(settings),
    )


def given_ridge(settings: RidgeEstimator) -> float | None:
    """Return the ridge that was given, or None where leave-one-out is to choose it."""
    if settings.searches_ridge:
        return None
    return float(settings.ridge)


@dataclass(frozen=True, eq=False)
class InductiveProblem:
    """The labels of one sample, for which width and ridge are to be chosen."""

    basis: Basis
    rows_l: Array
    y_l: Array  # (l, c) scaled
    near: Near | None  # distances of the rows to each other, where the kernel takes them
    first_width: float | None

    @classmethod
    def of(
        cls, basis: Basis, rows: Array, labelled: Mask, y_l: Array, settings: RidgeEstimator
    ) -> InductiveProblem:
        """Pick the labelled rows, or of very many some at even steps of their order."""
        rows_l = basis.pick(rows, labelled)
        y_l = arrays.asarray_like(y_l, rows)
        width = _first_width(rows_l, settings)
        if settings.kernel != "precomputed" and rows_l.shape[0] > MOST_CHOOSING:
            lines = arrays.namespace(rows).concat([rows_l, y_l], axis=1)
            order = arrays.to_numpy(arrays.lexsort(lines))
            steps = np.linspace(0, len(order) - 1, MOST_CHOOSING).round().astype(int)
            picked = np.sort(order[steps])
            rows_l = arrays.pick(rows_l, picked)
            y_l = arrays.pick(y_l, picked)
        near = None
        if basis.has_kernel_matrix:
            near = basis.kernel.near(rows_l)
        return cls(basis, rows_l, y_l, near, width)

    def spectrum(self, width: float | None) -> RidgeSpectrum:
        """Decompose the problem with this width of the kernel."""
        return self.basis.with_width(width).spectrum(self.rows_l, self.y_l, self.near)


def _first_width(rows_l: Array, settings: RidgeEstimator) -> float | None:
    """Return the width that was given, or around which to search; None if the kernel has none."""
    if not uses_width(settings.kernel):
        return None
    if settings.searches_width:
        return median_width(rows_l)
    return float(settings.width)


def choose_tether(
    regression: Regression, rows: Array, y: Array, labelled: Mask, settings: RidgeEstimator
) -> tuple[float, dict[str, Array]]:
    """Return the tether and, if it was cross-validated, the errors of all that were tried."""
    if not checks.is_one_of(settings.tether, "auto", "cv"):
        return float(settings.tether), {}
    n_labelled = int(labelled.sum())
    n_folds = min(N_FOLDS, n_labelled)
    if labelled.all():
        return np.inf, {}
    automatic = automatic_tether(labelled)
    if settings.tether == "auto" or n_folds < 2:
        return automatic, {}
    fold = _tether_folds(rows, y, labelled, n_folds, settings)
    errors = np.zeros(len(TETHERS))
    for k in range(n_folds):
        hidden = np.flatnonzero(labelled)[fold == k]
        errors += _fold_errors(regression, y, labelled, hidden, settings)
        log.info("tether: fold %d of %d", k + 1, n_folds)
    mean_errors = errors / (n_labelled * y.shape[1])
    path = {"multiple": np.array(TETHERS), "error": mean_errors}
    best = TETHERS[int(np.argmin(errors))]
    return float(best * automatic), path


def automatic_tether(labelled: Mask) -> float:
    """Return ``l / 2m`` for l labelled and m unlabelled rows."""
    return float(labelled.sum() / (2 * (~labelled).sum()))


def _tether_folds(
    rows: Array, y: Array, labelled: Mask, n_folds: int, settings: RidgeEstimator
) -> AnyArray:
    """Return the fold of every labelled row (l,), the same in whatever order the rows come.

    Ties of labels go by features, or by the largest kernel values.
    """
    ties = rows
    if settings.kernel == "precomputed":
        xp = arrays.namespace(rows)
        n_values = min(8, rows.shape[1])
        largest = xp.sort(rows, axis=1)[:, -n_values:]
        ties = xp.flip(largest, axis=1)
    return rank_folds(arrays.pick(y, labelled), arrays.pick(ties, labelled), n_folds)


def _fold_errors(
    regression: Regression, y: Array, labelled: Mask, hidden: AnyArray, settings: RidgeEstimator
) -> Array:
    """Return the sum of squared errors at hidden rows for every tether."""
    shown = labelled.copy()
    shown[hidden] = False
    xp = arrays.namespace(y)
    y = y - xp.mean(arrays.pick(y, shown), axis=0)
    truth = arrays.pick(y, hidden)
    step = InductiveStep.of(regression.basis, regression.rows, regression.ridge, shown, settings)
    start = step.answers(y)
    automatic = automatic_tether(shown)
    errors = []
    for multiple in TETHERS:
        tether = float(multiple * automatic)
        completion = complete(regression.system, y, ~shown, start=start, tether=tether)
        predicted = arrays.pick(completion.labels, hidden)
        errors.append(float(xp.sum((predicted - truth) ** 2)))
    return np.array(errors)


# ------------------------------------------------------------------------------------------ fitting


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels of the labelled rows, (l,) or (l, c), and how their columns are scaled."""

    values: Array
    mean: Array  # subtracted from each column
    spread: Array | float = 1.0  # divides each column

    def scaled(self) -> Array:
        """Return the labels as columns of mean 0, shape (l, c)."""
        columns = self.values.reshape(len(self.values), -1)
        return (columns - self.mean) / self.spread

    def restore(self, scaled: Array) -> Array:
        """Return columns of scaled labels in the units and the shape of the labels."""
        mean = arrays.asarray_like(np.asarray(self.mean), scaled)
        return self._in_shape(self._in_units(scaled) + mean)

    def restore_differences(self, scaled: Array) -> Array:
        """Return columns of differences of scaled labels likewise, without adding the mean."""
        return self._in_shape(self._in_units(scaled))

    def _in_units(self, scaled: Array) -> Array:
        return scaled * arrays.asarray_like(np.asarray(self.spread), scaled)

    def _in_shape(self, columns: Array) -> Array:
        if self.values.ndim == 1:
            return columns[:, 0]
        return columns


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """What was fitted, in units of the scaled labels."""

    basis: Basis
    labels: LabelColumns
    choice: RidgeChoice
    tether: float | Array  # (c,) for each of several columns of labels within a radius
    tether_path: dict[str, Array]
    start: Array  # (m, c) inductive predictions
    completion: Completion
    moved: Array  # (m, c) how far the answers lie from the inductive predictions
    labelled_loo: Array  # (l, c) leave-one-out residuals of the inductive step
    labelled_rows: Array
    settings: RidgeEstimator

    def answer(self, sample: PartlyLabelled, guarantee: Guarantee) -> Answer:
        """Return the answer at the unlabelled rows, in the units of the labels."""
        rows = sample.unlabelled
        labels = arrays.pick(self.completion.labels, rows)
        loo_residuals = arrays.pick(self.completion.loo_residuals, rows)
        form = "all rows" if self.basis.at_all_rows else "design"
        return Answer(
            rows=rows,
            values=self.labels.restore(labels),
            status=np.full(len(rows), "answered"),
            guarantee=guarantee,
            inductive=self.labels.restore(self.start),
            loo_residuals=self.labels.restore_differences(loo_residuals),
            index=sample.index_at(rows),
            diagnostics={"form": form, **self.completion.solver},
        )

    def answers_in_folds(self, folds: Folds) -> list[Array]:
        """Return the inductive predictions at the hidden rows of each fold, in labels' units."""
        rows = self._rows_for_folds()
        return [self._answer_fold(rows, visible, hidden) for visible, hidden in folds]

    @property
    def searches_in_folds(self) -> bool:
        """Whether width and ridge are chosen anew in each fold."""
        return len(self.labelled_rows) <= MOST_SEARCHED

    def _rows_for_folds(self) -> Array:
        """Return the labelled rows; narrowed where many searches need their distances only."""
        rows = self.labelled_rows
        is_wide = rows.shape[1] > MOST_SEARCHED
        needs_distances_only = self.settings.kernel == "rbf" and self.basis.has_kernel_matrix
        if self.searches_in_folds and is_wide and needs_distances_only:
            return narrowed(rows)
        return rows

    def _answer_fold(self, rows: Array, visible: AnyArray, hidden: AnyArray) -> Array:
        """Return the inductive predictions at hidden rows, from visible labels."""
        y = self.labels.scaled()
        shown = np.zeros(len(y), dtype=bool)
        shown[visible] = True
        mean = y[shown].mean(axis=0)
        basis = self.basis
        ridge = self.choice.ridge
        if self.searches_in_folds:
            choice = choose_width_and_ridge(basis, rows, shown, y[shown] - mean, self.settings)
            basis = basis.with_width(choice.width)
            ridge = choice.ridge
        step = InductiveStep.of(basis, rows, ridge, shown, self.settings)
        predicted = np.full(y.shape, np.nan)
        centred = arrays.asarray_like(y - mean, rows)
        predicted[~shown] = arrays.to_numpy(step.answers(centred)) + mean
        return self.labels.restore(predicted[hidden])


def fit_ridge(
    sample: PartlyLabelled, labels: LabelColumns, settings: RidgeEstimator
) -> FittedRidge:
    """Choose the settings that are left open, and complete the labels."""
    if settings.kernel == "precomputed":
        checks.check_square(sample.X)
    announce_memory(settings, sample.X.shape[0], sample.X)
    with few_threads(sample.X.shape[0]):
        return _fit_rows(sample, labels, settings)


def _fit_rows(
    sample: PartlyLabelled, labels: LabelColumns, settings: RidgeEstimator
) -> FittedRidge:
    labelled = sample.labelled
    y_l = labels.scaled()
    basis, rows = Basis.fit_apply(sample.X, labelled, settings)
    if callable(settings.kernel):
        basis.kernel.check_symmetry(rows)
    choice = choose_width_and_ridge(basis, rows, labelled, y_l, settings)
    basis = basis.with_width(choice.width)
    y = np.zeros((rows.shape[0], y_l.shape[1]))
    y[labelled] = y_l
    y = arrays.asarray_like(y, rows)
    inner_basis, inner_rows = basis.with_kernel_matrix(rows)
    regression = Regression.of(inner_basis, inner_rows, choice.ridge, settings)
    step = InductiveStep.of(inner_basis, inner_rows, choice.ridge, labelled, settings)
    start = step.answers(y)
    tether: float | Array
    tether_path: dict[str, Array] = {}
    if settings.radius is None:
        tether, tether_path = choose_tether(regression, rows, y, labelled, settings)
        completion = complete(regression.system, y, ~labelled, start=start, tether=tether)
    else:
        radii = float(settings.radius) / np.broadcast_to(labels.spread, y.shape[1])
        completion, tethers = complete_in_ball(
            regression.system, y, ~labelled, start=start, radii=radii
        )
        tether = _of_columns(tethers)
    _warn_if_unfinished(completion)
    return FittedRidge(
        basis=basis,
        labels=labels,
        choice=choice,
        tether=tether,
        tether_path=tether_path,
        start=start,
        completion=completion,
        moved=arrays.pick(completion.labels, ~labelled) - start,
        labelled_loo=step.leave_one_out(y),
        labelled_rows=basis.pick(rows, labelled),
        settings=settings,
    )


def _warn_if_unfinished(completion: Completion) -> None:
    """Warn if conjugate gradients stopped before they converged."""
    if completion.solver.get("converged", True):
        return
    warnings.warn(
        "Conjugate gradients stopped at a relative residual of "
        f"{completion.solver['relative_residual']:.1e}: the answers are good to about as many "
        "digits. A larger ridge or tether helps.",
        stacklevel=5,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveRidge(RidgeEstimator, NumberTransducer):
    """Ridge regression that chooses the missing labels by leave-one-out.

    Chapelle, Vapnik, Weston (1999). Transductive inference for estimating values of functions. NIPS
    12.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two
        rows: the basis functions are the kernel at the centres. ``"linear"``: the basis functions
        are the features.
    width : float or "loo", default="loo"
        Length scale of the kernel; ``"loo"`` minimises the leave-one-out error of the inductive
        step.
    ridge : float or "loo", default="loo"
        Penalty on the squared coefficients, likewise.
    tether : float, "auto" or "cv", default="auto"
        How hard the answers are held to the inductive ones: from 0, not at all, to ``np.inf``, the
        inductive answers themselves. ``"auto"`` is ``l / 2m`` for l labelled and m unlabelled rows;
        ``"cv"`` chooses by transductive cross-validation, which costs some forty solves.
    radius : float or None, default=None
        In place of the tether, how far all answers together may lie from the inductive ones: the
        root of the sum of their squared differences, in units of the labels. 0 is the inductive
        answer, ``np.inf`` is no tether. Of several columns each has a radius of its own.
    centres : int or None, default=None
        None: centres at all rows, the paper's method, with ``n x n`` matrices. A number: the
        distinct rows with a label or, if these are more, half of the number drawn at random from
        them and half from all rows. Nothing ``n x n`` is formed. A number that all distinct rows
        are within gives what None gives.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`,
        but for a few that are far from all others.
    max_memory_mb : float, default=2048
        With centres: a design matrix (all rows by centres) larger than this is computed in blocks,
        again and again, rather than stored.
    random_state : int, RandomState or None, default=None
        Seed of the choice of centres.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_
        Labels completed, (n,) or (n, c); `Answer` with the inductive values and the leave-one-out
        residual of each unlabelled row in the completed sample.
    width_, ridge_, tether_ : float
        Settings as used; the width is None for kernels that have none. With a radius, the tether
        whose answer it is: 0 if the radius does not matter, and (c,) for several columns.
    distance_moved_ : float or array of shape (c,)
        Root of the sum of squared differences between the answers and the inductive ones.
    loo_error_, loo_path_ : float, pandas.DataFrame
        Mean squared leave-one-out residual of the inductive step; the widths and ridges that were
        tried, with theirs (of labels scaled to standard deviation 1).
    loo_residuals_, completed_loo_error_ : array of the shape of y, float
        Leave-one-out residuals of the completed sample at all rows, and their mean square.
    tether_path_ : dict
        With ``tether="cv"``, unlabelled rows and at least two labels: multiples of ``l / 2m`` that
        were tried, with their cross-validated error.
    objective_ : float
        What the answer minimises: sum of squared leave-one-out residuals of the completed sample,
        plus tether times the squared distance to the inductive answer.

    Notes
    -----
    `predict` is ridge regression on the completed sample. At an unlabelled row it differs from
    ``transduction_``, as a fit differs from its labels; with no unlabelled row it is ordinary ridge
    regression. With centres at all rows the cost is ``O(n^3)``, with p centres ``O(n p^2)``, and
    about three times ``l x p`` memory while settings are searched.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.where(np.arange(25) % 4 == 2, np.nan, np.sin(X[:, 0]))
    >>> np.abs(TransductiveRidge().fit(X, y).transduction_ - np.sin(X[:, 0])).max() < 0.01
    np.True_
    """

    def fit(self, X: Rows, y: Labels) -> Self:
        """Predict the rows of X (n, d) whose label in y (n,) or (n, c) is missing.

        X may be their kernel matrix (n, n). Of several columns a row has all labels or none.
        """
        sample = validation.read_sample(self, X, y, columns=True, device=True)
        y_l = validation.numeric_labels(sample)
        mean, spread = label_moments(y_l.reshape(len(y_l), -1))
        self._fitted = fit_ridge(sample, LabelColumns(y_l, mean, spread), self._checked_copy())
        self._set_attributes(self._fitted)
        self.answer_ = self._fitted.answer(sample, _NUMBERS)
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def predict(self, X: Rows) -> Array:
        """Return ridge regression on the completed sample at rows (m, d).

        With a precomputed kernel rows hold kernel values with all n rows of `fit`.
        """
        return self._predict_rows(X)

    def answers_in_folds(self, folds: Folds) -> list[Array]:
        """Return predictions at labelled rows whose labels are hidden, by folds.

        Folds are pairs (visible, hidden) of positions among the labelled rows; none takes a whole
        fit. The predictions are those of the inductive step; width and ridge are chosen anew in
        each fold up to 500 labels, beyond they stay as they are.

        >>> import numpy as np
        >>> from transduce import TransductiveRidge
        >>> model = TransductiveRidge(kernel="linear", ridge=1e9)
        >>> model = model.fit(np.arange(3.0)[:, None], [1.0, 2.0, 4.0])
        >>> model.answers_in_folds([([0, 2], [1])])[0].round(6)  # with so large a ridge, the mean
        array([2.5])
        """
        return self._predict_folds(folds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveRidgeClassifier(RidgeEstimator, ClassTransducer):
    """Classes by ridge regression that chooses the missing labels by leave-one-out.

    `TransductiveRidge` as linear discrimination: targets -1 and +1, the answer is the sign. Three
    and more classes are one-vs-rest columns that share one factorisation; the largest value wins.

    Parameters
    ----------
    kernel, width, ridge, tether, radius, centres, standardize : see `TransductiveRidge`
        The radius is in units of the targets, -1 and +1.
    max_memory_mb, random_state, missing_label : see `TransductiveRidge`
        Likewise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    transduction_, answer_
        Labels completed (n,); `Answer` with inductive values, scores, probabilities and
        leave-one-out residuals of the completed sample, and the status ``"tied"`` where two classes
        are equally good.
    width_, ridge_, tether_, distance_moved_, loo_error_, loo_path_, loo_residuals_
        As in `TransductiveRidge`, of targets -1 and +1.
    completed_loo_error_, tether_path_, objective_
        Likewise.

    Notes
    -----
    Probabilities are the softmax of the scores times one factor, which minimises the log-loss of
    the labelled rows' own leave-one-out scores. It is calibrated for the inductive step and used
    for the transductive one.

    Examples
    --------
    >>> from transduce import TransductiveRidgeClassifier
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> y = ["low", None, "low", "high", None, "high"]
    >>> TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(X, y).transduction_
    array(['low', 'low', 'low', 'high', 'high', 'high'], dtype=object)
    """

    def fit(self, X: Rows, y: Labels) -> Self:
        """Predict the rows of X (n, d) whose class in y (n,) is missing.

        X may be their kernel matrix (n, n).
        """
        sample = validation.read_sample(self, X, y, device=True)
        settings = self._checked_copy()
        classes, codes = validation.class_labels(sample)
        targets = class_targets(codes, len(classes))
        fitted = fit_ridge(sample, LabelColumns(targets, targets.mean(axis=0)), settings)
        self._fitted = fitted
        self._set_attributes(fitted)
        self.classes_ = classes
        # One number is fitted, on the host, to leave-one-out scores, which do not know the labels
        # of their rows.
        residuals = fitted.labels.restore_differences(fitted.labelled_loo)
        scores = targets - arrays.to_numpy(residuals)
        self._factor = fit_temperature(_by_class(scores), codes)
        regression = fitted.answer(sample, _CLASSES)  # what it answers are the scores
        self.answer_ = replace(
            regression,
            values=self._winners(regression.values),
            status=_status(regression.values),
            inductive=self._winners(fitted.labels.restore(fitted.start)),
            scores=regression.values,
            probabilities=self._probabilities(regression.values),
            classes=classes,
        )
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def predict(self, X: Rows) -> AnyArray:
        """Return the classes (m,) of ridge regression on the completed sample at rows.

        Rows are as in `TransductiveRidge`.
        """
        return self._winners(self._predict_rows(X))

    def decision_function(self, X: Rows) -> Array:
        """Return values whose sign (m,), of two classes, or maximum (m, n_classes) is the class."""
        return self._predict_rows(X)

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class (m, n_classes) at rows, as in `predict`."""
        return self._probabilities(self._predict_rows(X))

    def answers_in_folds(self, folds: Folds) -> list[Array]:
        """Return the probability of every class at labelled rows whose labels are hidden, by folds.

        As in `TransductiveRidge`; the factor of the scores stays as it is.
        """
        return [self._probabilities(scores) for scores in self._predict_folds(folds)]

    def _winners(self, scores: Array) -> AnyArray:
        """Return the class of the largest score."""
        best = np.argmax(_by_class(arrays.to_numpy(scores)), axis=1)
        return self.classes_[best]

    def _probabilities(self, scores: Array) -> Array:
        """Return probabilities (m, n_classes): the softmax of scores times the fitted factor."""
        scores = self._factor * _by_class(scores)
        xp = arrays.namespace(scores)
        powers = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return powers / xp.sum(powers, axis=1, keepdims=True)


def class_targets(codes: AnyArray, n_classes: int) -> Array:
    """Return +1 in a row's class and -1 elsewhere: (l,) for two classes, else (l, n_classes)."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def _by_class(scores: Array) -> Array:
    """Return a score of every class: of two classes the first has the second's negative."""
    if scores.ndim == 1:
        return arrays.namespace(scores).stack([-scores, scores], axis=1)
    return scores


def _status(scores: Array) -> AnyArray:
    """Return "tied" where the two best classes have equal scores, to rounding."""
    ranked = np.sort(_by_class(arrays.to_numpy(scores)), axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    return np.where(lead <= ROUNDING, "tied", "answered")
