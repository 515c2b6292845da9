"""Transductive ridge (Chapelle, Vapnik and Weston 1999), for numbers and, as linear discrimination, for classes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

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
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import ClassTransducer, NumberTransducer, Transducer
from transduce.device import memory
from transduce.device.kernels import (
    Kernel,
    KernelLike,
    check_kernel,
    median_width,
    narrowed,
    uses_width,
)
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

_INSTEAD = (
    "Leave-one-out chose the values; for regions with a guarantee, use RidgeConfidenceMachine."
)
_NUMBERS = Guarantee("none", reasons=(_INSTEAD,))
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
OWN_BASIS = ("linear", "precomputed")  # kernels whose rows are the lines of the design matrix


# ------------------------------------------------------------------------------------------------- settings


def _is(setting: Any, *words: str) -> bool:
    return isinstance(setting, str) and setting in words


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeEstimator(Transducer):
    """What the estimators of numbers and of classes share: their settings, and what they tell of a fit."""

    kernel: KernelLike = "rbf"
    width: float | str = "loo"
    ridge: float | str = "loo"
    tether: float | str = "auto"
    centres: int | None = None
    standardize: bool = True
    max_memory_mb: float = 2048
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None
    _fitted: FittedRidge = field(init=False)

    @property
    def _max_bytes(self) -> float:
        """The budget of the design matrix."""
        return float(self.max_memory_mb) * 2**20

    def continue_from(self, earlier: RidgeEstimator, places: AnyArray) -> None:
        """Take over the width that an earlier fit, to fewer labels of the same rows, has chosen."""
        if _is(self.width, "loo") and earlier.width_ is not None:
            self.width = earlier.width_

    def _checked(self) -> RidgeEstimator:
        """Return a copy of the settings, checked."""
        checks.check_positive("max_memory_mb", self.max_memory_mb)
        checks.check_flag("standardize", self.standardize)
        if not _is(self.width, "loo"):
            checks.check_positive(
                "width (a number, or 'loo')", self.width, least=1e-100, most=1e100
            )
        if not _is(self.ridge, "loo"):
            checks.check_positive("ridge (a number, or 'loo')", self.ridge)
        if not _is(self.tether, "auto", "cv"):
            checks.check_not_negative(
                "tether", self.tether, "'auto', 'cv' or a number from 0 to infinity"
            )
        check_kernel(self.kernel)
        if self.centres is not None:
            checks.check_whole("centres (a number, or None)", self.centres, least=1)
            if self.kernel in OWN_BASIS:
                raise ValueError(
                    f"kernel={self.kernel!r} has a basis of its own: leave centres=None."
                )
        return replace(self)

    def _tell(self, fitted: FittedRidge) -> None:
        """Set what was chosen, and how good it is."""
        self.width_, self.ridge_, _, self.loo_path_ = fitted.choice
        self.tether_ = fitted.tether
        if fitted.tether_path:
            self.tether_path_ = fitted.tether_path
        spread = fitted.labels.spread
        with np.errstate(over="ignore"):
            loo, objective = map(
                arrays.to_numpy, (fitted.labelled_loo, fitted.completion.objective)
            )
            self.loo_error_ = float(np.mean((loo * spread) ** 2))
            self.objective_ = float(np.sum(objective * spread**2))

    def _extend(self, X: Any) -> Array:
        """Return ridge regression on the completed sample at new rows, in the units of the labels."""
        check_is_fitted(self)
        fitted = self._fitted
        rows = fitted.basis.scale(validation.read_rows(self, X, reset=False, device=True))
        coefficients = fitted.completion.coefficients
        blocks = arrays.blocks(
            rows.shape[0], max(1, int(fitted.settings._max_bytes // (24 * coefficients.shape[0])))
        )
        parts = [fitted.basis.lines(rows[part, :]) @ coefficients for part in blocks]
        return fitted.labels.restore(arrays.namespace(rows).concat(parts))

    def _left_out(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the inductive answers at the hidden rows of each fold, in the units of the labels."""
        check_is_fitted(self)
        with few_threads(len(self._fitted.labelled_rows)):
            return self._fitted.answers_in_folds(folds)


def announce_memory(settings: RidgeEstimator, n: int, X: Any = None) -> None:
    """Warn before gigabytes are taken."""
    has_few_centres = settings.centres is not None and settings.centres < n
    if has_few_centres or settings.kernel == "linear":
        return
    what = f"Ridge regression with centres at all {n:,} rows"
    memory.announce(5 * 8.0 * n**2, settings._max_bytes, X, what, "centres=500 needs far less.")


# --------------------------------------------------------------------------------------- rows and basis functions


@dataclass(frozen=True, eq=False)
class Basis:
    """From the user's rows to lines of the design matrix: scale, then kernel values with the centres, if any.

    The transductive step has these centres. The inductive step has centres at the labelled rows if `at_labelled`, as
    in the paper, and else these. `counts` say how often the row of a centre occurs, where each distinct row is one
    centre; then all steps give what centres at all rows give.
    """

    scaling: Scaling | None
    rotation: Array | None
    kernel: Kernel
    centres: Array | None
    at_all_rows: bool
    at_labelled: bool
    counts: Array | None = None

    @classmethod
    def fit_apply(cls, X: Array, labelled: Mask, settings: RidgeEstimator) -> tuple[Basis, Array]:
        """Scale all rows and decide where the basis functions sit; return the scaled rows too."""
        scaling, rotation = None, None
        if settings.standardize and settings.kernel != "precomputed":
            scaling, X = Scaling.fit_apply(X)
        if settings.kernel == "linear" and X.shape[1] > X.shape[0]:
            # More features than rows: nothing is lost in the coordinates of the space that the rows span.
            rotation = arrays.namespace(X).linalg.svd(X, full_matrices=False)[2].T
            X = X @ rotation
        return cls._placed(X, labelled, settings, scaling, rotation), X

    @classmethod
    def _placed(
        cls,
        rows: Array,
        labelled: Mask,
        settings: RidgeEstimator,
        scaling: Scaling | None,
        rotation: Array | None,
    ) -> Basis:
        """Place the centres: at all rows, at all distinct rows, at the labelled rows, or at some of both kinds."""
        kernel = Kernel(settings.kernel)
        wanted = settings.centres
        if settings.kernel == "linear":
            return cls(scaling, rotation, kernel, None, at_all_rows=False, at_labelled=False)
        if settings.kernel == "precomputed":
            return cls(scaling, rotation, kernel, None, at_all_rows=True, at_labelled=True)
        if wanted is None or wanted >= rows.shape[0]:
            return cls(scaling, rotation, kernel, rows, at_all_rows=True, at_labelled=True)
        # Sorted, so that the choice depends on the rows but not on their order.
        distinct, counts = arrays.counted_rows(rows)
        if wanted >= distinct.shape[0]:
            counts = arrays.beside(counts, rows, "float64")
            return cls(scaling, rotation, kernel, distinct, False, True, counts)
        centres = _some_rows(rows, distinct, labelled, settings)
        at_labelled = int(labelled.sum()) <= wanted
        return cls(scaling, rotation, kernel, centres, False, at_labelled)

    def scale(self, X: Array) -> Array:
        """Return rows scaled as those of `fit` were."""
        X = self.scaling.apply(X) if self.scaling else X
        return X if self.rotation is None else X @ self.rotation

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
        # Equal columns, k of them, are as good as one times the root of k: the penalty divides among them.
        return values * arrays.namespace(values).sqrt(self.counts)

    def design(self, rows: Array, *, max_bytes: float = 0.0) -> DesignMatrix:
        """Return the same in blocks."""
        p = rows.shape[1] if self.centres is None else self.centres.shape[0]
        return DesignMatrix.of(self.lines, rows, p, max_bytes=max_bytes)

    def of_wide(self, rows: Array) -> tuple[Basis, Array]:
        """Return basis and rows; where there are more features than rows, to pick from, the whole kernel matrix."""
        if not self.at_all_rows or rows.shape[1] <= rows.shape[0] or self.centres is None:
            return self, rows
        return replace(self, kernel=Kernel("precomputed"), centres=None), self.lines(rows)

    def pick(self, rows: Array, some: Mask) -> Array:
        """Return some rows; of a kernel matrix their columns alone."""
        own = arrays.pick(rows, some)
        return arrays.pick_columns(own, some) if self.at_all_rows and self.centres is None else own

    @property
    def has_kernel_matrix(self) -> bool:
        """Whether the design matrix of the inductive step is the kernel matrix of the labelled rows."""
        return self.at_labelled and self.counts is None

    def of_labelled(self, rows_l: Array) -> Basis:
        """Return the basis of the inductive step, where it has no kernel matrix."""
        if not self.at_labelled:
            return self
        distinct, counts = arrays.counted_rows(rows_l)
        return replace(self, centres=distinct, counts=arrays.beside(counts, rows_l, "float64"))

    def spectrum(self, rows_l: Array, y_l: Array, near: Any = None) -> RidgeSpectrum:
        """Decompose the inductive problem: labelled rows, centres at the labelled rows or as chosen."""
        if not self.has_kernel_matrix:
            return RidgeSpectrum.of_square(self.of_labelled(rows_l).lines(rows_l), y_l)
        K = rows_l if self.centres is None else self.kernel.checked_matrix(rows_l, rows_l, near)
        return RidgeSpectrum.of_kernel(K, y_l)


def _some_rows(rows: Array, distinct: Array, labelled: Mask, settings: RidgeEstimator) -> Array:
    """Return the distinct labelled rows or, of more than wanted, half of the number and as many of all rows."""
    assert settings.centres is not None
    wanted = settings.centres
    shown = arrays.unique_rows(arrays.pick(rows, labelled))
    if shown.shape[0] <= wanted:
        return shown
    random = check_random_state(settings.random_state)
    halves = (shown, (wanted + 1) // 2), (distinct, wanted // 2)
    both = [arrays.pick(some, random.choice(some.shape[0], n, replace=False)) for some, n in halves]
    return arrays.unique_rows(arrays.namespace(rows).concat(both))


@dataclass(frozen=True, eq=False)
class Regression:
    """Ridge regression on all rows: width and ridge are chosen, the labels are still free."""

    basis: Basis
    rows: Array
    ridge: float
    system: DenseSystem | DesignSystem

    @classmethod
    def of(cls, basis: Basis, rows: Array, ridge: float, settings: RidgeEstimator) -> Regression:
        """Factorise; a ridge that was given must be large enough to leave every row out."""
        if basis.at_all_rows:
            return cls(basis, rows, ridge, DenseSystem.build(basis.lines(rows), ridge))
        design = basis.design(rows, max_bytes=settings._max_bytes)
        if _is(settings.ridge, "loo"):
            return cls(basis, rows, ridge, DesignSystem.build(design, ridge, least=LEAST_COUNTED))
        system = DesignSystem.build(design, ridge)
        system.check_left_out()
        return cls(basis, rows, ridge, system)


@dataclass(frozen=True, eq=False)
class InductiveStep:
    """Ridge regression on the rows whose labels are shown: fit, folds and leave-one-out all go through it."""

    basis: Basis  # where it has no kernel matrix, that of the shown rows
    rows: Array
    shown: Mask
    system: DenseSystem | DesignSystem

    @classmethod
    def of(
        cls, basis: Basis, rows: Array, ridge: float, shown: Mask, settings: RidgeEstimator
    ) -> InductiveStep:
        """Factorise; `rows` are scaled, or lines of the kernel matrix."""
        here = arrays.pick(rows, shown)
        if not basis.has_kernel_matrix:
            basis = basis.of_labelled(here)
            design = basis.design(here, max_bytes=settings._max_bytes)
            return cls(basis, rows, shown, DesignSystem.build(design, ridge))
        if basis.centres is None:
            K = arrays.pick_columns(here, shown)
        else:
            K = basis.kernel.matrix(here, here)
        return cls(basis, rows, shown, DenseSystem.build(K, ridge))

    def leave_one_out(self, y: Array) -> Array:
        """Return the leave-one-out residuals at the shown rows, of labels (n, c) of all rows."""
        return self.system.loo(arrays.pick(y, self.shown))

    def answers(self, y: Array) -> Array:
        """Return the answers at the other rows, shape (m, c), from the labels of those that are shown."""
        if self.shown.all():
            return arrays.zeros((0, y.shape[1]), y)
        coefficients = self.system.coefficients(arrays.pick(y, self.shown))
        there = arrays.pick(self.rows, ~self.shown)
        if not self.basis.has_kernel_matrix:
            return self.basis.design(there).times(coefficients)
        if self.basis.centres is None:
            return arrays.pick_columns(there, self.shown) @ coefficients
        here = arrays.pick(self.rows, self.shown)
        design = replace(self.basis, centres=here).design(there)
        return design.times(coefficients)


# ---------------------------------------------------------------------------------------------- choosing settings


def choose_width_and_ridge(
    basis: Basis, rows: Array, labelled: Mask, y_l: Array, settings: RidgeEstimator
) -> RidgeChoice:
    """Return what minimises the leave-one-out error of the inductive step, or what was given."""
    rows_l, y_l = basis.pick(rows, labelled), arrays.beside(y_l, rows)
    start, free = None, uses_width(settings.kernel) and _is(settings.width, "loo")
    if uses_width(settings.kernel):
        start = median_width(rows_l) if free else float(settings.width)
    ridge = None if _is(settings.ridge, "loo") else float(settings.ridge)
    if settings.kernel != "precomputed" and rows_l.shape[0] > MOST_CHOOSING:
        # Some labels are enough, at even steps of the ordered rows.
        order = arrays.to_numpy(
            arrays.lexsort(arrays.namespace(rows).concat([rows_l, y_l], axis=1))
        )
        some = np.sort(order[np.linspace(0, len(order) - 1, MOST_CHOOSING).round().astype(int)])
        rows_l, y_l = arrays.pick(rows_l, some), arrays.pick(y_l, some)
    near = basis.kernel.near(rows_l) if basis.has_kernel_matrix else None

    def spectrum(width: float | None) -> RidgeSpectrum:
        return basis.with_width(width).spectrum(rows_l, y_l, near)

    return search(spectrum, width=start, search_width=free, ridge=ridge)


def choose_tether(
    regression: Regression, rows: Array, y: Array, labelled: Mask, settings: RidgeEstimator
) -> tuple[float, dict[str, Array]]:
    """Return the tether and, if it was cross-validated, the errors of all that were tried."""
    n_labelled, n_unlabelled = int(labelled.sum()), int((~labelled).sum())
    automatic = n_labelled / (2 * n_unlabelled) if n_unlabelled else np.inf
    if not _is(settings.tether, "auto", "cv"):
        return float(settings.tether), {}
    n_folds = min(N_FOLDS, n_labelled)
    if settings.tether == "auto" or n_folds < 2 or n_unlabelled == 0:
        return automatic, {}
    # Ties go by features, or by the largest kernel values, which are the same in whatever order the rows come.
    ties, xp = rows, arrays.namespace(rows)
    if settings.kernel == "precomputed":
        ties = xp.flip(xp.sort(rows, axis=1)[:, -min(8, rows.shape[1]) :], axis=1)
    fold = rank_folds(arrays.pick(y, labelled), arrays.pick(ties, labelled), n_folds)
    errors = np.zeros(len(TETHERS))
    for k in range(n_folds):
        hidden = np.flatnonzero(labelled)[fold == k]
        errors += _fold_errors(regression, y, labelled, hidden, settings)
        log.info("tether: fold %d of %d", k + 1, n_folds)
    path = {"multiple": np.array(TETHERS), "error": errors / (n_labelled * y.shape[1])}
    return float(TETHERS[int(np.argmin(errors))] * automatic), path


def _fold_errors(
    regression: Regression, y: Array, labelled: Mask, hidden: AnyArray, settings: RidgeEstimator
) -> Array:
    """Return the squared errors at hidden rows for every tether."""
    shown = labelled.copy()
    shown[hidden] = False
    xp = arrays.namespace(y)
    y = y - xp.mean(arrays.pick(y, shown), axis=0)
    step = InductiveStep.of(regression.basis, regression.rows, regression.ridge, shown, settings)
    start = step.answers(y)
    automatic = shown.sum() / (2 * (~shown).sum())
    errors = []
    for multiple in TETHERS:
        done = complete(
            regression.system, y, ~shown, start=start, tether=float(multiple * automatic)
        )
        errors.append(
            float(xp.sum((arrays.pick(done.labels, hidden) - arrays.pick(y, hidden)) ** 2))
        )
    return np.array(errors)


# -------------------------------------------------------------------------------------------------- fitting


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of the labelled rows, (l,) or (l, c), with what is subtracted from each column and what divides it."""

    values: Array
    mean: Array
    spread: Array | float = 1.0

    def scaled(self) -> Array:
        """Return the labels as columns of mean 0, shape (l, c)."""
        return (self.values.reshape(len(self.values), -1) - self.mean) / self.spread

    def restore(self, scaled: Array, *, shift: bool = True) -> Array:
        """Return columns in the units and the shape of the labels; differences of labels without the shift."""
        spread, mean = (
            arrays.beside(np.asarray(part), scaled) for part in (self.spread, self.mean)
        )
        columns = scaled * spread + mean if shift else scaled * spread
        return columns[:, 0] if self.values.ndim == 1 else columns


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """What was fitted, in units of the scaled labels."""

    basis: Basis
    labels: Labels
    choice: RidgeChoice
    tether: float
    tether_path: dict[str, Array]
    start: Array
    completion: Completion
    labelled_loo: Array
    labelled_rows: Array
    settings: RidgeEstimator

    def answer(self, sample: PartlyLabelled, guarantee: Guarantee) -> Answer:
        """Return the answer at the unlabelled rows, in the units of the labels."""
        rows, completion = sample.unlabelled, self.completion
        return Answer(
            rows=rows,
            values=self.labels.restore(arrays.pick(completion.labels, rows)),
            status=np.full(len(rows), "answered"),
            guarantee=guarantee,
            inductive=self.labels.restore(self.start),
            loo_residuals=self.labels.restore(
                arrays.pick(completion.loo_residuals, rows), shift=False
            ),
            index=None if sample.index is None else sample.index[rows],
            diagnostics={
                "form": "all rows" if self.basis.at_all_rows else "design",
                **completion.solver,
            },
        )

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the inductive answers at the hidden rows of each fold, in the units of the labels."""
        rows, y, answers = self.labelled_rows, self.labels.scaled(), []
        few = len(rows) <= MOST_SEARCHED
        is_wide = rows.shape[1] > MOST_SEARCHED
        if few and is_wide and self.settings.kernel == "rbf" and self.basis.has_kernel_matrix:
            rows = narrowed(rows)
        for visible, hidden in folds:
            shown = np.zeros(len(y), dtype=bool)
            shown[visible] = True
            mean = y[shown].mean(axis=0)
            basis, ridge = self.basis, self.choice.ridge
            if few:
                choice = choose_width_and_ridge(basis, rows, shown, y[shown] - mean, self.settings)
                basis, ridge = basis.with_width(choice.width), choice.ridge
            centred = arrays.beside(y - mean, rows)
            step = InductiveStep.of(basis, rows, ridge, shown, self.settings)
            inside = np.full(y.shape, np.nan)
            inside[~shown] = arrays.to_numpy(step.answers(centred)) + mean
            answers.append(self.labels.restore(inside[hidden]))
        return answers


def fit_ridge(sample: PartlyLabelled, labels: Labels, settings: RidgeEstimator) -> FittedRidge:
    """Choose the settings that are left open, and complete the labels."""
    if settings.kernel == "precomputed":
        checks.check_square(sample.X)
    announce_memory(settings, sample.X.shape[0], sample.X)
    with few_threads(sample.X.shape[0]):
        return _fit_rows(sample, labels, settings)


def _fit_rows(sample: PartlyLabelled, labels: Labels, settings: RidgeEstimator) -> FittedRidge:
    labelled, y_l = sample.labelled, labels.scaled()
    basis, rows = Basis.fit_apply(sample.X, labelled, settings)
    if callable(settings.kernel):
        basis.kernel.check_symmetry(rows)
    choice = choose_width_and_ridge(basis, rows, labelled, y_l, settings)
    basis = basis.with_width(choice.width)
    y = np.zeros((rows.shape[0], y_l.shape[1]))
    y[labelled] = y_l
    y = arrays.beside(y, rows)
    inner, lines = basis.of_wide(rows)
    regression = Regression.of(inner, lines, choice.ridge, settings)
    tether, path = choose_tether(regression, rows, y, labelled, settings)
    step = InductiveStep.of(inner, lines, choice.ridge, labelled, settings)
    start = step.answers(y)
    completion = complete(regression.system, y, ~labelled, start=start, tether=tether)
    if not completion.solver.get("converged", True):
        warnings.warn(
            "Conjugate gradients stopped at a relative residual of "
            f"{completion.solver['relative_residual']:.1e}: the answers are good to about as many digits. A larger "
            "ridge or tether helps.",
            stacklevel=4,
        )
    loo = step.leave_one_out(y)
    shown = basis.pick(rows, labelled)
    return FittedRidge(basis, labels, choice, tether, path, start, completion, loo, shown, settings)


class TransductiveRidge(RidgeEstimator, NumberTransducer):
    """Ridge regression that chooses the missing labels by leave-one-out.

    Chapelle, Vapnik, Weston (1999). Transductive inference for estimating values of functions. NIPS 12.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two rows: the basis
        functions are the kernel at the centres. ``"linear"``: the basis functions are the features.
    width : float or "loo", default="loo"
        Length scale of the kernel; ``"loo"`` minimises the leave-one-out error of the inductive step.
    ridge : float or "loo", default="loo"
        Penalty on the squared coefficients, likewise.
    tether : float, "auto" or "cv", default="auto"
        How hard the answers are held to the inductive ones: from 0, not at all, to ``np.inf``, the inductive answers
        themselves. ``"auto"`` is ``l / 2m`` for l labelled and m unlabelled rows; ``"cv"`` chooses by transductive
        cross-validation, which costs some forty solves.
    centres : int or None, default=None
        None: centres at all rows, the paper's method, with ``n x n`` matrices. A number: the distinct rows with a label
        or, if these are more, half of the number drawn at random from them and half from all rows. Nothing ``n x n`` is
        formed. A number that all distinct rows are within gives what None gives.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`, but for a few that
        are far from all others.
    max_memory_mb : float, default=2048
        With centres: a design matrix (all rows by centres) larger than this is computed in blocks, again and again,
        rather than stored.
    random_state : int, RandomState or None, default=None
        Seed of the choice of centres.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_
        Labels completed, (n,) or (n, c); `Answer` with the inductive values and the leave-one-out residual of each
        unlabelled row in the completed sample.
    width_, ridge_, tether_ : float
        Settings as used; the width is None for kernels that have none.
    loo_error_, loo_path_ : float, pandas.DataFrame
        Mean squared leave-one-out residual of the inductive step; the widths and ridges that were tried, with theirs
        (of labels scaled to standard deviation 1).
    tether_path_ : dict
        With ``tether="cv"``, unlabelled rows and at least two labels: multiples of ``l / 2m`` that were tried, with
        their cross-validated error.
    objective_ : float
        What the answer minimises: sum of squared leave-one-out residuals of the completed sample, plus tether times
        the squared distance to the inductive answer.

    Notes
    -----
    `predict` is ridge regression on the completed sample. At an unlabelled row it differs from ``transduction_``, as
    a fit differs from its labels; with no unlabelled row it is ordinary ridge regression. With centres at all rows the
    cost is ``O(n^3)``, with p centres ``O(n p^2)``, and about three times ``l x p`` memory while settings are searched.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveRidge
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.where(np.arange(25) % 4 == 2, np.nan, np.sin(X[:, 0]))
    >>> np.abs(TransductiveRidge().fit(X, y).transduction_ - np.sin(X[:, 0])).max() < 0.01
    np.True_
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d), or of their kernel matrix, whose label in y (n,) or (n, c) is missing.

        Of several columns a row has all labels or none.
        """
        sample = validation.read_sample(self, X, y, columns=True, device=True)
        y_l = validation.numeric_labels(sample)
        labels = Labels(y_l, *label_moments(y_l.reshape(len(y_l), -1)))
        self._fitted = fit_ridge(sample, labels, self._checked())
        self._tell(self._fitted)
        self.answer_ = self._fitted.answer(sample, _NUMBERS)
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def predict(self, X: Any) -> Array:
        """Return ridge regression on the completed sample at rows (m, d), or kernel values with all rows of `fit`."""
        return self._extend(X)

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return answers at labelled rows whose labels are hidden, without a whole fit for each fold.

        Folds are pairs (visible, hidden) of positions among the labelled rows. The answers are those of the inductive
        step; width and ridge are chosen anew in each fold up to 500 labels, beyond they stay as they are.

        >>> import numpy as np
        >>> from transduce import TransductiveRidge
        >>> model = TransductiveRidge(kernel="linear", ridge=1e9).fit(np.arange(3.0)[:, None], [1.0, 2.0, 4.0])
        >>> model.answers_in_folds([([0, 2], [1])])[0].round(6)  # with so large a ridge, the mean
        array([2.5])
        """
        return self._left_out(folds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TransductiveRidgeClassifier(RidgeEstimator, ClassTransducer):
    """Classes by ridge regression that chooses the missing labels by leave-one-out.

    `TransductiveRidge` as linear discrimination: targets -1 and +1, the answer is the sign. Three and more classes are
    one-vs-rest columns that share one factorisation; the largest value wins.

    Parameters
    ----------
    kernel, width, ridge, tether, centres, standardize, max_memory_mb, random_state, missing_label
        As in `TransductiveRidge`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    transduction_, answer_
        Labels completed (n,); `Answer` with inductive values, scores, probabilities and leave-one-out residuals of the
        completed sample, and the status ``"tied"`` where two classes are equally good.
    width_, ridge_, tether_, loo_error_, loo_path_, tether_path_, objective_
        As in `TransductiveRidge`, of targets -1 and +1.

    Notes
    -----
    Probabilities are the softmax of the scores times one factor, which minimises the log-loss of the labelled rows' own
    leave-one-out scores. It is calibrated for the inductive step and used for the transductive one.

    Examples
    --------
    >>> from transduce import TransductiveRidgeClassifier
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> y = ["low", None, "low", "high", None, "high"]
    >>> TransductiveRidgeClassifier(width=1.0, ridge=0.1).fit(X, y).transduction_
    array(['low', 'low', 'low', 'high', 'high', 'high'], dtype=object)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d), or of their kernel matrix, whose class in y (n,) is missing."""
        sample = validation.read_sample(self, X, y, device=True)
        settings, (classes, codes) = self._checked(), validation.class_labels(sample)
        inside = codes == 1 if len(classes) == 2 else codes[:, None] == np.arange(len(classes))
        targets = np.where(inside, 1.0, -1.0)
        fitted = self._fitted = fit_ridge(sample, Labels(targets, targets.mean(axis=0)), settings)
        self._tell(fitted)
        # One number is fitted, on the host, to leave-one-out scores, which do not know the labels of their rows.
        scores = targets - arrays.to_numpy(fitted.labels.restore(fitted.labelled_loo, shift=False))
        self.classes_, self._factor = classes, fit_temperature(_by_class(scores), codes)
        regression = fitted.answer(sample, _CLASSES)  # what it answers are the scores
        ranked = np.sort(_by_class(arrays.to_numpy(regression.values)), axis=1)
        self.answer_ = replace(
            regression,
            values=self._winners(regression.values),
            status=np.where(ranked[:, -1] - ranked[:, -2] <= ROUNDING, "tied", "answered"),
            inductive=self._winners(fitted.labels.restore(fitted.start)),
            scores=regression.values,
            probabilities=self._probabilities(regression.values),
            classes=classes,
        )
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the classes (m,) of ridge regression on the completed sample at rows, as in `TransductiveRidge`."""
        return self._winners(self._extend(X))

    def decision_function(self, X: Any) -> Array:
        """Return values whose sign, (m,) for two classes, or maximum, (m, n_classes), is the class at rows."""
        return self._extend(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class (m, n_classes) at rows, as in `predict`, by leave-one-out."""
        return self._probabilities(self._extend(X))

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return the probability of every class at labelled rows whose labels are hidden, as `TransductiveRidge` does.

        The factor of the scores stays as it is.
        """
        return [self._probabilities(scores) for scores in self._left_out(folds)]

    def _winners(self, scores: Array) -> AnyArray:
        """Return the class of the largest score."""
        return self.classes_[np.argmax(_by_class(arrays.to_numpy(scores)), axis=1)]

    def _probabilities(self, scores: Array) -> Array:
        """Return the probability of every class, shape (m, n_classes)."""
        scores = self._factor * _by_class(scores)
        xp = arrays.namespace(scores)
        raised = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return raised / xp.sum(raised, axis=1, keepdims=True)


def _by_class(scores: Array) -> Array:
    """Return a score for every class: of two classes the first has the negative of the second's."""
    return arrays.namespace(scores).stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
