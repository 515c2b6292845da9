"""The exactly tuned confidence machine: every candidate label chooses its own setting.

`parabolas` says how, and why p-values stay exact. What `b` unlabelled rows bring to all `S`
settings is a `Border` whose arrays have one more axis in front: prediction (S, b) or (S, b, c),
pivot (S, b) and weights (S, b, l).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.computing import few_threads, stage
from transduce.core.types import AnyArray, Array
from transduce.device import memory
from transduce.device.linalg import EPSILON
from transduce.methods.confidence_machine.bordered_ridge import (
    Border,
    check_pivots,
    rounding_slack,
    warn_of_raised_ridge,
)
from transduce.methods.confidence_machine.local_spread import (
    NO_NEIGHBORS,
    Neighborhood,
    Neighbors,
    count_over_spread,
    local_region,
    spread_parabolas,
)
from transduce.methods.confidence_machine.machine import ClassPValues
from transduce.methods.confidence_machine.parabolas import (
    NOWHERE,
    Choice,
    GridFit,
    Interval,
    choose,
    height,
    interval_ends,
    lower_envelope,
    lowest_point,
    mark_least,
    merge,
    parabolas,
)
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    count_nonconforming,
    counts_by_class,
    region_pieces,
    row_lines,
)
from transduce.methods.confidence_machine.setting_grid import KernelSum, Setting, SettingGrid

# -------------------------------------------------------------------------------- compiled regions


class RegionRule(NamedTuple):
    """What makes a region."""

    rank: int
    side: int  # as in `SIDE`
    power: float  # as in `POWER`


class TunedRegions(NamedTuple):
    """The regions of `b` rows."""

    pieces: Array  # (n_pieces, 2)
    counts: AnyArray  # (b,) how many pieces each row has
    values: Array  # (b,)
    winners: AnyArray  # (b,) the setting that gave each value
    used: AnyArray  # (b, S) which settings have a part in each region


@njit(cache=True, nogil=True)
def _setting_lines(
    fit: GridFit,
    border: Border,
    s: int,
    j: int,
    power: float,
) -> tuple[Array, Array]:
    """Return the labelled rows' lines with one setting, for row `j`."""
    return row_lines(
        fit.residuals[s],
        fit.diagonal[s],
        border.weights[s, j],
        border.pivot[s, j],
        power,
    )


@njit(cache=True, nogil=True)
def _row_region(
    fit: GridFit,
    border: Border,
    j: int,
    neighbors: Neighbors,
    choice: Choice,
    rule: RegionRule,
    used: AnyArray,
) -> list[Interval]:
    """Return the pieces of row `j`'s region in no order, and mark the settings used."""
    pieces = [NOWHERE for _ in range(0)]
    k = 0
    while k < len(choice.setting):
        s = choice.setting[k]
        n_before = len(pieces)
        rho, beta = _setting_lines(fit, border, s, j, rule.power)
        if len(neighbors.among) == 0 or rule.rank == 0:
            about_zero = region_pieces(rho, beta, rule.rank, rule.side, fit.slack[s])
        else:
            spreads = spread_parabolas(rho, beta, neighbors.among, neighbors.to_rows[j])
            about_zero = local_region(rho, beta, spreads, rule.rank, rule.side, fit.slack[s])
        region = border.prediction[s, j] + about_zero
        while k < len(choice.setting) and choice.setting[k] == s:
            for part in range(len(region)):
                low = max(choice.low[k], region[part, 0])
                high = min(choice.high[k], region[part, 1])
                if low <= high:
                    pieces.append((low, high))
            k += 1
        used[s] = len(pieces) > n_before
    return pieces


@njit(cache=True, nogil=True)
def tuned_regions(
    fit: GridFit,
    border: Border,
    curves: Array,
    neighbors: Neighbors,
    rule: RegionRule,
) -> TunedRegions:
    """Return the regions of rows with parabolas (b, S, 4)."""
    n_rows, n_settings = curves.shape[:2]
    pieces = [NOWHERE for _ in range(0)]
    counts = np.empty(n_rows, np.intp)
    winners = np.empty(n_rows, np.intp)
    values = np.empty(n_rows)
    used = np.zeros((n_rows, n_settings), dtype=np.bool_)
    for j in range(n_rows):
        choice = choose(curves[j], fit.slack, fit.residuals.shape[1] + 1)
        winner, value = lowest_point(curves[j], choice)
        region = _row_region(fit, border, j, neighbors, choice, rule, used[j])
        if rule.side == 0:
            region.append((value, value))
        region = merge(region)
        pieces.extend(region)
        counts[j] = len(region)
        winners[j] = winner
        values[j] = value
    return TunedRegions(interval_ends(pieces), counts, values, winners, used)


# ------------------------------------------------------------------------------- compiled p-values


@njit(cache=True, nogil=True)
def tuned_p_values(
    fit: GridFit,
    border: Border,
    curves: Array,
    neighbors: Neighbors,
    labels: Array,
    tau: Array,
    power: float,
) -> Array:
    """Return the p-value of a label for each row (b,), the largest where settings tie.

    Ties of residuals count with weight `tau` (b,).
    """
    n_labelled = fit.residuals.shape[1]
    n_settings = curves.shape[1]
    p = np.zeros(len(curves))
    errors = np.empty(n_settings)
    picked = np.empty(n_settings, dtype=np.bool_)
    for j in range(len(curves)):
        for s in range(n_settings):
            errors[s] = height(curves[j, s], labels[j])
        mark_least(errors, fit.slack, n_labelled + 1, picked)
        for s in range(n_settings):
            if not picked[s]:
                continue
            rho, beta = _setting_lines(fit, border, s, j, power)
            t = labels[j] - curves[j, s, 0]
            if len(neighbors.among) == 0:
                n_above, n_tied = count_nonconforming(rho, beta, t, fit.slack[s])
            else:
                spreads = spread_parabolas(rho, beta, neighbors.among, neighbors.to_rows[j])
                n_above, n_tied = count_over_spread(rho, beta, spreads, t, fit.slack[s])
            p[j] = max(p[j], _p_value(n_above, n_tied, n_labelled, tau[j]))
    return p


@njit(cache=True, nogil=True)
def _p_value(n_above: int, n_tied: int, n_labelled: int, tau: float) -> float:
    """Return the share of rows at least as nonconforming as one more, which ties with itself."""
    return (n_above + tau * (n_tied + 1.0)) / (n_labelled + 1.0)


@njit(cache=True, nogil=True)
def _class_errors(
    fit: GridFit,
    border: Border,
    j: int,
    s: int,
    errors: Array,
) -> None:
    """Write one setting's leave-one-out error for every candidate class of row `j`.

    The error is over all class columns.
    """
    prediction = border.prediction[s, j]
    pivot = border.pivot[s, j]
    weights = border.weights[s, j]
    n_classes = len(prediction)
    slope = np.zeros(n_classes)
    c0 = 0.0
    c2 = 1.0
    for i in range(len(weights)):
        scale = pivot * fit.diagonal[s, i] + weights[i] * weights[i]
        inverse = 1.0 / scale if scale > 0.0 else 0.0
        share = weights[i] * inverse
        c2 += share * share
        for c in range(n_classes):
            start = pivot * fit.residuals[s, i, c] * inverse
            c0 += start * start
            slope[c] -= 2.0 * start * share
    total = c0  # if the row were of no class: -1 in every column
    for c in range(n_classes):
        t = -1.0 - prediction[c]
        total += t * (slope[c] + t * c2)
    for c in range(n_classes):
        if_not = -1.0 - prediction[c]
        if_so = 1.0 - prediction[c]
        error_if_so = if_so * (slope[c] + if_so * c2)
        error_if_not = if_not * (slope[c] + if_not * c2)
        errors[c, s] = total + error_if_so - error_if_not


@njit(cache=True, nogil=True)
def tuned_classes(
    fit: GridFit,
    class_residuals: Array,
    border: Border,
    codes: AnyArray,
    tau: Array,
    power: float,
    n_classes: int,
) -> tuple[Array, Array, Array, AnyArray]:
    """Return the fields of `ClassPValues` at rows, each class with its setting.

    `class_residuals` (S, l) are those in the column of a row's class; codes (l,), tau (b,).
    """
    n_settings, n_rows = border.pivot.shape
    shape = (n_rows, n_classes)
    overall = np.zeros(shape)
    within = np.zeros(shape)
    scores = np.full(shape, -np.inf)
    chosen = np.empty(shape, dtype=np.intp)
    class_sizes = np.bincount(codes, minlength=n_classes)
    n_errors = n_classes * (len(codes) + 1)
    errors = np.empty((n_classes, n_settings))
    picked = np.empty((n_classes, n_settings), dtype=np.bool_)
    for j in range(n_rows):
        for s in range(n_settings):
            _class_errors(fit, border, j, s, errors)
        for c in range(n_classes):
            chosen[j, c] = mark_least(errors[c], fit.slack, n_errors, picked[c])
        for s in range(n_settings):
            if not picked[:, s].any():
                continue
            prediction = border.prediction[s, j]
            rho, beta = row_lines(
                class_residuals[s],
                fit.diagonal[s],
                border.weights[s, j],
                border.pivot[s, j],
                power,
            )
            among_all, among_class = counts_by_class(rho, beta, codes, prediction, fit.slack[s])
            for c in range(n_classes):
                if not picked[c, s]:
                    continue
                # Where several settings are chosen, the one with the largest p-value counts.
                p = _p_value(among_all[0, c], among_all[1, c], len(codes), tau[j])
                p_within = _p_value(among_class[0, c], among_class[1, c], class_sizes[c], tau[j])
                overall[j, c] = max(overall[j, c], p)
                within[j, c] = max(within[j, c], p_within)
                scores[j, c] = max(scores[j, c], prediction[c])
    return overall, within, scores, chosen


# ------------------------------------------------------------------------ the fit of every setting


@dataclass(frozen=True)
class KernelSpectrum:
    """A kernel on the labelled rows, diagonalised once for all ridges."""

    kernel: KernelSum
    rows: tuple[AnyArray, ...]  # the labelled rows in the form that the kernel takes
    vectors: Array  # (l, l)
    values: Array  # (l,)
    # Eigenvectors that span the kernel columns of all rows: the last `d` of a linear kernel, else
    # all.
    span: slice

    @classmethod
    def build(cls, kernel: KernelSum, X_l: Array) -> KernelSpectrum:
        """Diagonalise the kernel matrix of the labelled rows."""
        rows = kernel.represent(X_l)
        kernel.check_symmetry(rows)
        values, vectors = np.linalg.eigh(kernel.matrix(rows, rows))
        # What is rounding of 0 is 0: kernels of low rank are exact then however small the ridge.
        rounding = len(values) * EPSILON * np.abs(values).max()
        values[np.abs(values) < rounding] = 0.0
        span = slice(-kernel.rank(rows), None)
        return cls(kernel, rows, np.ascontiguousarray(vectors), values, span)


@dataclass(frozen=True)
class LabelScale:
    """Labels are centred and divided by a power of two: squares neither over- nor underflow."""

    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def measure(cls, y: Array, *, centred: bool) -> LabelScale:
        """Return the scale of labels (l,)."""
        centre = 0.0
        if centred:
            centre = float(y.mean())
        farthest = float(np.abs(y - centre).max())
        largest = float(np.abs(y).max())
        spread = farthest or largest or 1.0
        return cls(centre, float(2.0 ** np.ceil(np.log2(spread))))

    def apply(self, y: Array) -> Array:
        """Return labels in the machine's units."""
        return (y - self.centre) / self.unit

    def undo(self, v: Array) -> Array:
        """Return the machine's values in units of the labels."""
        return v * self.unit + self.centre


@dataclass(frozen=True)
class Ridge:
    """The ridge regression of one setting on the labelled rows."""

    residuals: Array  # (l,) or (l, c) ``G y``, with the intercept's term if there is one
    diagonal: Array  # (l,) ``G_ii``, likewise
    ones: Array | None  # (l,) ``G 1``; None without an intercept
    centre: Array | float  # (c,) what is added to predictions
    ridge: float  # as in `DualRidge`
    jitter: float  # as in `DualRidge`
    slack: float  # as in `DualRidge`

    @classmethod
    def fit(
        cls,
        spectrum: KernelSpectrum,
        y: Array,
        setting: Setting,
        *,
        fit_intercept: bool,
        level: float,
    ) -> Ridge:
        """Fit labels (l,) or (l, c) whose largest size, before they were centred, was `level`."""
        U = spectrum.vectors
        ridge = float(setting.ridge)
        jitter = _jitter(spectrum.values, setting)
        inverse = 1.0 / (spectrum.values + (ridge + jitter))
        centre: Array | float = 0.0
        if fit_intercept:
            centre = y.mean(axis=0)
        residuals = U @ ((U.T @ (y - centre)).T * inverse).T
        diagonal = (U * U) @ inverse
        ones = None
        if fit_intercept:
            ones = U @ (inverse * U.sum(axis=0))
            shift = residuals.sum(axis=0) / ones.sum()
            centre = centre + shift
            residuals = residuals - np.multiply.outer(ones, shift)
            diagonal = np.maximum(diagonal - ones**2 / ones.sum(), 0.0)
        norm = float(np.linalg.norm(spectrum.values))
        spread = arrays.largest(np.abs(y - centre))
        slack = rounding_slack(norm, ridge, level, spread)
        return cls(residuals, diagonal, ones, centre, ridge + jitter, jitter, slack)

    def border(
        self,
        spectrum: KernelSpectrum,
        K_al: Array,
        k_aa: Array,
        turned: Array,
        weights: Array,
    ) -> tuple[Array, Array]:
        """Write the weights (b, l) of rows and return their predictions and pivots.

        `turned` is ``K_al U``.
        """
        inverse = 1.0 / (spectrum.values[spectrum.span] + self.ridge)
        pivot = k_aa + self.ridge - (turned * turned) @ inverse
        pivot = check_pivots(pivot, k_aa, self.ridge)
        np.matmul(turned * inverse, spectrum.vectors[:, spectrum.span].T, out=weights)
        if self.ones is not None:
            # As in DualRidge.border: the intercept's rank-one term.
            missing = 1.0 - weights.sum(axis=1)
            total = self.ones.sum()
            weights += np.multiply.outer(missing / total, self.ones)
            pivot = pivot + missing**2 / total
        return K_al @ self.residuals + self.centre, pivot


def _jitter(values: Array, setting: Setting) -> float:
    """Return by how much the ridge must be raised for the eigenvalues to be positive."""
    largest = float(np.abs(values).max()) + setting.ridge
    smallest = float(values.min()) + setting.ridge
    needed = len(values) * EPSILON * largest  # in double precision
    if smallest >= needed:
        return 0.0
    if smallest < -1e-6 * largest:
        raise ValueError(
            f"The kernel matrix of the setting {setting!s} is not positive definite: the kernel is "
            "not a proper one for these rows. Use another kernel, or a larger ridge."
        )
    warn_of_raised_ridge(setting.ridge, needed - smallest)
    return needed - smallest


@dataclass(frozen=True)
class TunedMachine:
    """Ridge regressions with all settings of a grid, to be bordered by rows, as in `Machine`."""

    grid: SettingGrid
    spectra: tuple[KernelSpectrum, ...]
    ridges: tuple[Ridge, ...]
    fit: GridFit
    labels: Array  # (l,) or (l, c) in the machine's units
    scale: LabelScale
    power: float
    max_bytes: float
    fit_intercept: bool
    neighborhood: Neighborhood | None  # for residuals over their local spread
    form = "tuned"

    @classmethod
    def build(
        cls,
        grid: SettingGrid,
        X_l: Array,
        y: Array,
        *,
        fit_intercept: bool = True,
        power: float = 0.5,
        max_bytes: float = 5e8,
        neighborhood: Neighborhood | None = None,
    ) -> TunedMachine:
        """Fit every setting to labelled rows and labels (l,), or columns of -1 and +1 (l, c)."""
        announce_memory(len(X_l), len(grid.kernels), max_bytes)
        spectra = []
        with stage("kernels of the grid") as report, few_threads(len(X_l)):
            for n_done, kernel in enumerate(grid.kernels, 1):
                spectra.append(KernelSpectrum.build(kernel, X_l))
                report(n_done / len(grid.kernels))
        machine = _fit_labels(grid, tuple(spectra), y, fit_intercept=fit_intercept)
        return replace(machine, power=power, max_bytes=max_bytes, neighborhood=neighborhood)

    def with_labels(self, y: Array) -> TunedMachine:
        """Return the machine of the same rows with other labels (l,)."""
        machine = _fit_labels(self.grid, self.spectra, y, fit_intercept=self.fit_intercept)
        return replace(
            machine,
            power=self.power,
            max_bytes=self.max_bytes,
            neighborhood=self.neighborhood,
        )

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return self.fit.diagonal.shape[1]

    @property
    def jitter(self) -> float:
        """The most by which rounding made it necessary to raise a ridge; 0.0 as a rule."""
        return max(ridge.jitter for ridge in self.ridges)

    def predict(self, rows: Array) -> Array:
        """Return the values at rows, shape (m,)."""
        return answer_rows(self, rows, rank=0).values

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a candidate label for each row, as `Machine` does."""
        p = np.empty(len(rows))
        v = self.scale.apply(labels)
        for part, border in self.borders(rows):
            neighbors = self.neighbors(rows[part])
            p[part] = self.chunk_p_values(border, neighbors, v[part], tau[part])
        return p

    def chunk_p_values(
        self,
        border: Border,
        neighbors: Neighbors,
        labels: Array,
        tau: Array,
    ) -> Array:
        """Return the p-values of labels (b,), in the machine's units, for a chunk of rows."""
        curves = parabolas(self.fit, border)
        return tuned_p_values(self.fit, border, curves, neighbors, labels, tau, self.power)

    def neighbors(self, rows: Array) -> Neighbors:
        """Return how much a chunk of rows and the labelled rows weigh in each other's spread."""
        if self.neighborhood is None:
            return NO_NEIGHBORS
        return self.neighborhood.of(rows)

    def class_p_values(self, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
        """Return the p-values of every class at rows, the setting chosen for every candidate."""
        of_class = self.fit.residuals[:, np.arange(len(codes)), codes]
        class_residuals = np.ascontiguousarray(of_class)
        n_classes = self.fit.residuals.shape[2]
        shape = (len(rows), n_classes)
        overall = np.empty(shape)
        within = np.empty(shape)
        scores = np.empty(shape)
        chosen = np.empty(shape, dtype=np.intp)
        for part, border in self.borders(rows):
            overall[part], within[part], scores[part], chosen[part] = tuned_classes(
                self.fit,
                class_residuals,
                border,
                codes,
                tau[part],
                self.power,
                n_classes,
            )
        return ClassPValues(overall, within, scores, chosen)

    def borders(self, rows: Array) -> Iterator[tuple[slice, Border]]:
        """Yield chunks of rows under the memory budget, with what they bring to all settings."""
        n = len(rows)
        bytes_a_row = 8 * self.n_labelled * (len(self.grid) + 6)
        size = int(np.clip(self.max_bytes // bytes_a_row, 1, 1024))
        with stage("tuned confidence machine") as report, few_threads(self.n_labelled):
            for part in arrays.blocks(n, size):
                yield part, self._border(rows[part])
                report(part.stop / n)

    def _border(self, rows: Array) -> Border:
        """Return what a chunk of rows brings to every setting, kernel by kernel."""
        shape = (len(self.grid), len(rows))
        prediction = np.empty((*shape, *self.fit.residuals.shape[2:]))
        pivot = np.empty(shape)
        weights = np.empty((*shape, self.n_labelled))
        for place, spectrum in enumerate(self.spectra):
            forms = spectrum.kernel.represent(rows)
            K_al = spectrum.kernel.matrix(forms, spectrum.rows)
            k_aa = spectrum.kernel.diagonal(forms)
            turned = K_al @ spectrum.vectors[:, spectrum.span]
            for s in np.flatnonzero(self.grid.which == place):
                prediction[s], pivot[s] = self.ridges[s].border(
                    spectrum, K_al, k_aa, turned, weights[s]
                )
        return Border(prediction, pivot, weights)

    def border_of_labels(self, border: Border) -> Border:
        """Return what the same rows bring to a machine `with_labels`: other predictions only."""
        return border._replace(prediction=border.weights @ self.labels)


def _fit_labels(
    grid: SettingGrid,
    spectra: tuple[KernelSpectrum, ...],
    y: Array,
    *,
    fit_intercept: bool,
) -> TunedMachine:
    """Return the machine of labels (l,) or (l, c) of rows whose kernels are diagonalised."""
    scale = LabelScale()
    if y.ndim == 1:
        scale = LabelScale.measure(y, centred=fit_intercept)
    labels = scale.apply(y)
    level = float(np.abs(y).max()) / scale.unit
    ridges = []
    with few_threads(len(y)):
        for setting, which in zip(grid.settings, grid.which, strict=True):
            ridge = Ridge.fit(
                spectra[which],
                labels,
                setting,
                fit_intercept=fit_intercept,
                level=level,
            )
            ridges.append(ridge)
    fit = GridFit(
        residuals=np.stack([ridge.residuals for ridge in ridges]),
        diagonal=np.stack([ridge.diagonal for ridge in ridges]),
        slack=np.array([ridge.slack for ridge in ridges]),
    )
    return TunedMachine(
        grid=grid,
        spectra=spectra,
        ridges=tuple(ridges),
        fit=fit,
        labels=labels,
        scale=scale,
        power=0.5,
        max_bytes=5e8,
        fit_intercept=fit_intercept,
        neighborhood=None,
    )


def announce_memory(n_labelled: int, n_kernels: int, max_bytes: float) -> None:
    """Say what the kernel matrices of a grid take, or refuse them."""
    memory.announce(
        8.0 * n_labelled**2 * (n_kernels + 3),
        max_bytes,
        None,
        f"A grid of settings for {n_labelled:,} labelled rows",
        "Fewer kernels among the settings need less.",
    )


# -------------------------------------------------------------------------------- answers at rows


@dataclass(frozen=True)
class RowAnswers:
    """Predictions and regions at rows; the settings only where they are chosen."""

    values: Array  # (m,) the prediction; of the setting at the lowest point of the envelope
    regions: Regions
    winners: AnyArray | None = None  # (m,) the setting that gave each value
    used: AnyArray | None = None  # (m, S) which settings have a part in each region
    scales: AnyArray | None = None  # (m,) the scale that gave each value, where it is chosen


def answer_rows(
    machine: TunedMachine,
    rows: Array,
    *,
    rank: int,
    side: str = "two",
) -> RowAnswers:
    """Return values and regions of rows, the setting chosen for every candidate label."""
    rule = RegionRule(rank, SIDE[side], machine.power)
    values = np.empty(len(rows))
    winners = np.empty(len(rows), dtype=np.intp)
    used = np.empty((len(rows), len(machine.grid)), dtype=bool)
    pieces = [np.empty((0, 2))]
    counts = [np.empty(0, dtype=np.intp)]
    for part, border in machine.borders(rows):
        curves = parabolas(machine.fit, border)
        neighbors = machine.neighbors(rows[part])
        chunk = tuned_regions(machine.fit, border, curves, neighbors, rule)
        pieces.append(chunk.pieces)
        counts.append(chunk.counts)
        values[part] = chunk.values
        winners[part] = chunk.winners
        used[part] = chunk.used
    # Rounding may have made pieces touch.
    ends = machine.scale.undo(np.concatenate(pieces))
    regions = Regions.from_touching(ends, np.concatenate(counts))
    return RowAnswers(machine.scale.undo(values), regions, winners, used)


@dataclass(frozen=True)
class RowEnvelope:
    """The leave-one-out errors of all settings as one row's label varies; for `EnvelopeDisplay`."""

    names: tuple[str, ...]  # the settings
    curves: Array  # (S, 4)
    starts: Array  # (k,) where each piece of the lower envelope starts
    owners: AnyArray  # (k,) whose it is
    region: Array  # (n_pieces, 2)
    value: float


def row_envelope(machine: TunedMachine, row: Array, *, rank: int) -> RowEnvelope:
    """Return the envelope of one row (1, d), in units of the labels."""
    scale = machine.scale
    ((_, border),) = machine.borders(row)
    curves = parabolas(machine.fit, border)[0]
    starts, owners = lower_envelope(curves)
    mean_errors = curves / (machine.n_labelled + 1)
    mean_errors[:, 0] = scale.undo(curves[:, 0])
    mean_errors[:, 1:3] *= np.array([scale.unit**2, scale.unit])
    answers = answer_rows(machine, row, rank=rank)
    return RowEnvelope(
        names=tuple(str(setting) for setting in machine.grid.settings),
        curves=mean_errors,
        starts=scale.undo(starts),
        owners=owners,
        region=answers.regions[0],
        value=float(answers.values[0]),
    )
