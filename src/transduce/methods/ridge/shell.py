"""What transductive ridge for numbers and for classes share: basis, search, tether, extension to new rows."""

from __future__ import annotations

import logging
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks, validation
from transduce.core.folds import rank_folds
from transduce.core.kernels import Kernel, check_kernel, median_width, uses_width
from transduce.core.linalg import few_threads
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.transducer import Transducer
from transduce.core.types import Array, Mask
from transduce.methods.ridge.completion import (
    Completion,
    DenseSystem,
    Design,
    DesignSystem,
    SmallRidgeError,
    complete,
)
from transduce.methods.ridge.leave_one_out import Choice, Spectrum, search

log = logging.getLogger(__name__)

# What "cv" tries, as multiples of l / 2m; infinity is the inductive answer.
TETHERS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, np.inf)
N_FOLDS = 5


class Transduced(NamedTuple):
    """What fitting found, in units of the centred and scaled labels."""

    completion: Completion
    inductive: Array
    labelled_loo: Array


def _is(setting: Any, *words: str) -> bool:
    return isinstance(setting, str) and setting in words


class RidgeShell(Transducer):
    """Fits a matrix of label columns; the estimators turn labels into columns and back."""

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        width: Any = "loo",
        ridge: Any = "loo",
        tether: Any = "auto",
        centres: Any = None,
        standardize: bool = True,
        max_memory_mb: float = 2048,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.ridge = ridge
        self.tether = tether
        self.centres = centres
        self.standardize = standardize
        self.max_memory_mb = max_memory_mb
        self.random_state = random_state
        self.missing_label = missing_label

    def _transduce(self, sample: PartlyLabelled, y_l: Array) -> Transduced:
        """Choose the settings and complete the labels `y_l`, shape (l, c)."""
        self._check_settings(sample)
        self._announce_memory(len(sample.X))
        with few_threads(len(sample.X)):
            return self._transduce_rows(self._scale(sample.X), sample.labelled, y_l)

    def _transduce_rows(self, rows: Array, labelled: Mask, y_l: Array) -> Transduced:
        unlabelled = ~labelled
        self._set_basis(rows, labelled)
        if callable(self.kernel):
            Kernel(self.kernel).check_symmetry(rows)
        choice = self._choose(rows[labelled], y_l)
        self.width_, self.ridge_, self.loo_path_ = choice.width, choice.ridge, choice.path
        self._kernel = Kernel(self.kernel, choice.width or 1.0)
        y = np.zeros((len(rows), y_l.shape[1]))
        y[labelled] = y_l
        system = self._system(rows)
        self.tether_ = self._choose_tether(system, rows, y, labelled)
        start = self._inductive(rows, y, labelled, unlabelled)
        completion = complete(system, y, unlabelled, start=start, tether=self.tether_)
        if not completion.solver.get("converged", True):
            warnings.warn(
                "Conjugate gradients stopped at a relative residual of "
                f"{completion.solver['relative_residual']:.1e}: the answers are good to about as many digits. A larger "
                "ridge or tether helps.",
                stacklevel=4,
            )
        self._coefficients = completion.coefficients
        residuals, denominators = self._spectrum(rows[labelled], y_l, choice.width).residuals(self.ridge_)
        labelled_loo = residuals / denominators[:, None]
        if self.ridge_ != choice.ridge:
            raised = {"width": choice.width, "ridge": self.ridge_, "error": np.mean(labelled_loo**2)}
            self.loo_path_ = pd.concat([self.loo_path_, pd.DataFrame([raised])], ignore_index=True)
        return Transduced(completion, start, labelled_loo)

    # ------------------------------------------------------------------------------------ settings and rows

    def _check_settings(self, sample: PartlyLabelled) -> None:
        check_kernel(self.kernel)
        checks.check_positive("max_memory_mb", self.max_memory_mb)
        checks.check_flag("standardize", self.standardize)
        if not _is(self.width, "loo"):
            checks.check_positive("width (a number, or 'loo')", self.width, least=1e-100, most=1e100)
        if not _is(self.ridge, "loo"):
            checks.check_positive("ridge (a number, or 'loo')", self.ridge)
        if not _is(self.tether, "auto", "cv"):
            checks.check_not_negative("tether", self.tether, "'auto', 'cv' or a number from 0 to infinity")
        if self.kernel == "precomputed":
            checks.check_square(sample.X)
        if self.centres is not None and self.kernel in ("linear", "precomputed"):
            raise ValueError(f"kernel={self.kernel!r} has a basis of its own: leave centres=None.")

    def _announce_memory(self, n: int) -> None:
        """Warn before gigabytes are taken."""
        need = 5 * 8.0 * n**2
        if (
            self.centres is None
            and self.kernel != "linear"
            and need > max(float(self.max_memory_mb) * 2**20, 2e9)
        ):
            warnings.warn(
                f"Centres at all {n:,} rows need about {need / 1e9:.0f} GB of memory; centres=500 needs far less.",
                stacklevel=5,
            )

    def _scale(self, X: Array) -> Array:
        self._scaling, self._rotation = None, None
        if self.standardize and self.kernel != "precomputed":
            self._scaling, X = Scaling.fit_apply(X)
        if self.kernel == "linear" and X.shape[1] > len(X):
            # More features than rows: nothing is lost in the coordinates of the space that the rows span.
            self._rotation = np.linalg.svd(X, full_matrices=False)[2].T
            X = X @ self._rotation
        return X

    def _read_more(self, X: Any) -> Array:
        """Return rows that were not in `fit`, scaled as those were."""
        rows = validation.read_rows(self, X, reset=False)
        rows = self._scaling.apply(rows) if self._scaling else rows
        return rows if self._rotation is None else rows @ self._rotation

    def _set_basis(self, rows: Array, labelled: Mask) -> None:
        """Decide where the basis functions sit: features, centres, or all rows."""
        self._labelled = np.flatnonzero(labelled)
        self._exact = self.centres is None and self.kernel != "linear"
        self._centres = rows if self._exact else None
        if self.centres is not None:
            self._centres = self._pick_centres(rows)

    def _pick_centres(self, rows: Array) -> Array:
        if isinstance(self.centres, int | np.integer) and not isinstance(self.centres, bool):
            if self.centres < 1:
                raise ValueError(f"centres must be at least 1; got {self.centres}.")
            # Sorted first, so that the choice depends on the rows but not on their order.
            distinct = np.unique(rows, axis=0)
            if self.centres >= len(distinct):
                return distinct
            random = check_random_state(self.random_state)
            return distinct[np.sort(random.choice(len(distinct), self.centres, replace=False))]
        if np.ndim(self.centres) != 2:
            raise ValueError(
                f"centres must be None, a number of centres, or an array of rows; got {self.centres!r}."
            )
        try:
            return self._read_more(self.centres)
        except ValueError as error:
            raise ValueError(f"centres must be rows like those of X. {error}") from error

    # ------------------------------------------------------------------------------------- choosing settings

    def _spectrum(self, rows_l: Array, y_l: Array, width: float | None) -> Spectrum:
        """Decompose the inductive problem: labelled rows, centres at the labelled rows or as chosen."""
        kernel = Kernel(self.kernel, width or 1.0)
        if self.kernel == "precomputed":
            return Spectrum.of_kernel(rows_l[:, self._labelled], y_l)
        if self._exact:
            return Spectrum.of_kernel(kernel.checked_matrix(rows_l, rows_l), y_l)
        if self._centres is None:
            return Spectrum.of_design(rows_l, y_l)
        return Spectrum.of_design(kernel.checked_matrix(rows_l, self._centres), y_l)

    def _choose(self, rows_l: Array, y_l: Array) -> Choice:
        has_width = uses_width(self.kernel)
        start = None
        if has_width:
            start = median_width(rows_l) if _is(self.width, "loo") else float(self.width)
        return search(
            lambda width: self._spectrum(rows_l, y_l, width),
            width=start,
            search_width=has_width and _is(self.width, "loo"),
            ridge=None if _is(self.ridge, "loo") else float(self.ridge),
        )

    def _choose_tether(self, system: Any, rows: Array, y: Array, labelled: Mask) -> float:
        n_labelled, n_unlabelled = int(labelled.sum()), int((~labelled).sum())
        automatic = n_labelled / (2 * n_unlabelled) if n_unlabelled else np.inf
        if _is(self.tether, "auto"):
            return automatic
        if not _is(self.tether, "cv"):
            return float(self.tether)
        n_folds = min(N_FOLDS, n_labelled)
        if n_folds < 2 or n_unlabelled == 0:
            return automatic
        # Ties go by features, or by the largest kernel values, which are the same in whatever order the rows come.
        ties = np.sort(rows, axis=1)[:, :-9:-1] if self.kernel == "precomputed" else rows
        fold = rank_folds(y[labelled], ties[labelled], n_folds)
        errors = np.zeros(len(TETHERS))
        for k in range(n_folds):
            shown = labelled.copy()
            hidden = np.flatnonzero(labelled)[fold == k]
            shown[hidden] = False
            errors += self._fold_errors(system, rows, y, shown, hidden)
            log.info("tether: fold %d of %d", k + 1, n_folds)
        self.tether_path_ = {"multiple": np.array(TETHERS), "error": errors / (n_labelled * y.shape[1])}
        return float(TETHERS[int(np.argmin(errors))] * automatic)

    def _fold_errors(self, system: Any, rows: Array, y: Array, shown: Mask, hidden: Any) -> Array:
        """Return the squared errors at hidden rows for every tether."""
        y = y - y[shown].mean(axis=0)
        start = self._inductive(rows, y, shown, ~shown)
        automatic = shown.sum() / (2 * (~shown).sum())
        errors = []
        for multiple in TETHERS:
            labels = complete(system, y, ~shown, start=start, tether=multiple * automatic).labels
            errors.append(np.sum((labels[hidden] - y[hidden]) ** 2))
        return np.array(errors)

    # ------------------------------------------------------------------------------------------ the two steps

    def _lines(self, rows: Array) -> Array:
        """Return the design matrix of rows: features, kernel values with the centres, or as given."""
        if self.kernel == "precomputed" or self._centres is None:
            return rows
        return self._kernel.checked_matrix(rows, self._centres)

    def _design(self, rows: Array, *, max_bytes: float = 0.0) -> Design:
        p = rows.shape[1] if self._centres is None else len(self._centres)
        return Design.of(self._lines, rows, p, max_bytes=max_bytes)

    def _system(self, rows: Array) -> DenseSystem | DesignSystem:
        if self._exact:
            return DenseSystem.build(self._lines(rows), self.ridge_)
        design = self._design(rows, max_bytes=float(self.max_memory_mb) * 2**20)
        for _ in range(12):
            try:
                return DesignSystem.build(design, self.ridge_)
            except SmallRidgeError:
                if not _is(self.ridge, "loo"):
                    raise
                # The labelled rows alone could afford so small a ridge; all rows together cannot.
                self.ridge_ *= 10.0
                log.info("ridge raised to %.1e, so that every row can be left out", self.ridge_)
        return DesignSystem.build(design, self.ridge_)

    def _inductive(self, rows: Array, y: Array, shown: Mask, unlabelled: Mask) -> Array:
        """Return the ridge answers at unlabelled rows from shown labels alone, shape (m, c)."""
        if not unlabelled.any():
            return np.empty((0, y.shape[1]))
        if not self._exact:
            coefficients = self._design(rows[shown]).coefficients(y[shown], self.ridge_)
            return self._design(rows[unlabelled]).times(coefficients)
        if self.kernel == "precomputed":
            K_ll, K_al = rows[np.ix_(shown, shown)], rows[np.ix_(unlabelled, shown)]
        else:
            K_ll, K_al = (self._kernel.matrix(rows[part], rows[shown]) for part in (shown, unlabelled))
        return K_al @ DenseSystem.build(K_ll, self.ridge_).coefficients(y[shown])

    def _extend(self, X: Any) -> Array:
        """Return ridge regression on the completed sample at new rows, in units of the scaled labels."""
        check_is_fitted(self)
        rows = self._read_more(X)
        size = max(1, int(float(self.max_memory_mb) * 2**20 // (24 * len(self._coefficients))))
        parts = [self._lines(rows[i : i + size]) @ self._coefficients for i in range(0, len(rows), size)]
        return np.concatenate(parts)
