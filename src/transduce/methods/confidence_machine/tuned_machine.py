"""The exactly tuned confidence machine: every candidate label chooses its own setting.

The setting with the smallest leave-one-out error of the **completed** sample is chosen, that row and its label
included. The choice treats all rows alike, so p-values stay exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.computing import few_threads, stage
from transduce.core.types import AnyArray, Array
from transduce.device import memory
from transduce.device.linalg import EPSILON
from transduce.methods.confidence_machine.machine import _checked_pivot, _rounding_slack, warn_raised
from transduce.methods.confidence_machine.menu import Menu, MenuKernel, Setting
from transduce.methods.confidence_machine.residual_lines import SIDE
from transduce.methods.confidence_machine.tuned_regions import (
    ClassPValues,
    MenuBorder,
    MenuFit,
    lower_envelope,
    parabolas,
    tuned_classes,
    tuned_p_values,
    tuned_regions,
    tuned_values,
)


@dataclass(frozen=True)
class KernelSpectrum:
    """A kernel on the labelled rows, diagonalised once for all ridges."""

    kernel: MenuKernel
    rows: tuple[AnyArray, ...]  # the labelled rows in the form that the kernel takes
    vectors: Array  # (l, l)
    values: Array  # (l,)
    span: slice  # eigenvectors that span the kernel columns of all rows: the last `d` of a linear kernel, else all

    @classmethod
    def of(cls, kernel: MenuKernel, X_l: Array) -> KernelSpectrum:
        """Diagonalise the kernel matrix of the labelled rows."""
        rows = kernel.represent(X_l)
        kernel.check_symmetry(rows)
        values, vectors = np.linalg.eigh(kernel.matrix(rows, rows))
        # What is rounding of 0 is 0: kernels of low rank are exact then however small the ridge.
        values[np.abs(values) < len(values) * EPSILON * np.abs(values).max()] = 0.0
        return cls(kernel, rows, np.ascontiguousarray(vectors), values, slice(-kernel.rank(rows), None))


@dataclass(frozen=True)
class LabelScale:
    """Labels are centred and divided by a power of two, so that squares of errors neither over- nor underflow."""

    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, y: Array, *, centred: bool) -> LabelScale:
        """Return the scale of labels (l,)."""
        centre = float(y.mean()) if centred else 0.0
        spread = float(np.abs(y - centre).max()) or float(np.abs(y).max()) or 1.0
        return cls(centre, float(2.0 ** np.ceil(np.log2(spread))))

    def apply(self, y: Array) -> Array:
        """Return labels in the machine's units."""
        return (y - self.centre) / self.unit

    def undo(self, v: Array) -> Array:
        """Return what the machine found in units of the labels."""
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
        cls, spectrum: KernelSpectrum, y: Array, setting: Setting, *, fit_intercept: bool, level: float
    ) -> Ridge:
        """Fit labels (l,) or (l, c) whose largest size, before they were centred, was `level`."""
        U, ridge = spectrum.vectors, float(setting.ridge)
        jitter = _jitter(spectrum.values, setting)
        inverse = 1.0 / (spectrum.values + (ridge + jitter))
        centre = y.mean(axis=0) if fit_intercept else 0.0
        residuals = U @ ((U.T @ (y - centre)).T * inverse).T
        diagonal, ones = (U * U) @ inverse, None
        if fit_intercept:
            ones = U @ (inverse * U.sum(axis=0))
            shift = residuals.sum(axis=0) / ones.sum()
            centre = centre + shift
            residuals = residuals - np.multiply.outer(ones, shift)
            diagonal = np.maximum(diagonal - ones**2 / ones.sum(), 0.0)
        norm = float(np.linalg.norm(spectrum.values))
        slack = _rounding_slack(norm, ridge, np.array([level]), y - centre)
        return cls(residuals, diagonal, ones, centre, ridge + jitter, jitter, slack)

    def border(
        self, spectrum: KernelSpectrum, K_al: Array, k_aa: Array, turned: Array, weights: Array
    ) -> tuple[Array, Array]:
        """Write the weights (b, l) of rows and return their predictions and pivots; `turned` is ``K_al U``."""
        inverse = 1.0 / (spectrum.values[spectrum.span] + self.ridge)
        pivot = _checked_pivot(k_aa + self.ridge - (turned * turned) @ inverse, k_aa, self.ridge)
        np.matmul(turned * inverse, spectrum.vectors[:, spectrum.span].T, out=weights)
        if self.ones is not None:
            # As in DualRidge.border: the intercept's rank-one term.
            missing, total = 1.0 - weights.sum(axis=1), self.ones.sum()
            weights += np.multiply.outer(missing / total, self.ones)
            pivot = pivot + missing**2 / total
        return K_al @ self.residuals + self.centre, pivot


def _jitter(values: Array, setting: Setting) -> float:
    """Return by how much the ridge must be raised for the eigenvalues to be positive in double precision."""
    largest = float(np.abs(values).max()) + setting.ridge
    smallest, needed = float(values.min()) + setting.ridge, len(values) * EPSILON * largest
    if smallest >= needed:
        return 0.0
    if smallest < -1e-6 * largest:
        raise ValueError(
            f"The kernel matrix of the setting {setting!s} is not positive definite: the kernel is not a proper one "
            "for these rows. Use another kernel, or a larger ridge."
        )
    warn_raised(setting.ridge, needed - smallest)
    return needed - smallest


@dataclass(frozen=True)
class TunedMachine:
    """Ridge regressions with all settings of a menu, to be bordered by unlabelled rows, as in `Machine`."""

    menu: Menu
    spectra: tuple[KernelSpectrum, ...]
    ridges: tuple[Ridge, ...]
    fit: MenuFit
    scale: LabelScale
    power: float
    max_bytes: float
    form = "tuned"

    @classmethod
    def build(
        cls,
        menu: Menu,
        X_l: Array,
        y: Array,
        *,
        fit_intercept: bool = True,
        power: float = 0.5,
        max_bytes: float = 5e8,
    ) -> TunedMachine:
        """Fit every setting to labelled rows and their labels (l,), or columns of -1 and +1 (l, c)."""
        _announce_memory(len(X_l), len(menu.kernels), max_bytes)
        scale = LabelScale.of(y, centred=fit_intercept) if y.ndim == 1 else LabelScale()
        v, level = scale.apply(y), float(np.abs(y).max()) / scale.unit
        spectra, ridges = [], []
        with stage("kernels of the menu") as report, few_threads(len(X_l)):
            for done, kernel in enumerate(menu.kernels, 1):
                spectra.append(KernelSpectrum.of(kernel, X_l))
                report(done / len(menu.kernels))
            for setting, which in zip(menu.settings, menu.which, strict=True):
                ridges.append(Ridge.fit(spectra[which], v, setting, fit_intercept=fit_intercept, level=level))
        fit = MenuFit(
            np.stack([ridge.residuals for ridge in ridges]),
            np.stack([ridge.diagonal for ridge in ridges]),
            np.array([ridge.slack for ridge in ridges]),
        )
        return cls(menu, tuple(spectra), tuple(ridges), fit, scale, power, max_bytes)

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
        values = np.empty(len(rows))
        for part, border in self.borders(rows):
            values[part] = tuned_values(self.fit, parabolas(self.fit, border))
        return self.scale.undo(values)

    def borders(self, rows: Array) -> Iterator[tuple[slice, MenuBorder]]:
        """Yield chunks of the rows under the memory budget, with what they bring to every setting."""
        n_settings, n = len(self.menu), len(rows)
        a_row = 8 * self.n_labelled * (n_settings + 6)
        size = int(np.clip(self.max_bytes // a_row, 1, 1024))
        with stage("tuned confidence machine") as report, few_threads(self.n_labelled):
            for part in arrays.blocks(n, size):
                yield part, self._border(rows[part])
                report(part.stop / n)

    def _border(self, rows: Array) -> MenuBorder:
        """Return what a chunk of rows brings to every setting, kernel by kernel."""
        n_settings, b = len(self.menu), len(rows)
        prediction = np.empty((n_settings, b, *self.fit.residuals.shape[2:]))
        pivot, weights = np.empty((n_settings, b)), np.empty((n_settings, b, self.n_labelled))
        for place, spectrum in enumerate(self.spectra):
            forms = spectrum.kernel.represent(rows)
            K_al, k_aa = spectrum.kernel.matrix(forms, spectrum.rows), spectrum.kernel.diagonal(forms)
            turned = K_al @ spectrum.vectors[:, spectrum.span]
            for s in np.flatnonzero(self.menu.which == place):
                prediction[s], pivot[s] = self.ridges[s].border(spectrum, K_al, k_aa, turned, weights[s])
        return MenuBorder(prediction, pivot, weights)


def _announce_memory(n_labelled: int, n_kernels: int, max_bytes: float) -> None:
    need, what = 8.0 * n_labelled**2 * (n_kernels + 3), f"A menu for {n_labelled:,} labelled rows"
    memory.announce(need, max_bytes, None, what, "Fewer kernels among the settings need less.")


@dataclass(frozen=True)
class RowAnswers:
    """What a machine says at rows; of settings only where they are chosen."""

    values: Array  # (m,) the prediction; of the setting at the lowest point of the envelope
    regions: Regions
    winners: AnyArray | None = None  # (m,) the setting that gave each value
    used: AnyArray | None = None  # (m, S) which settings have a part in each region


def answer_rows(machine: TunedMachine, rows: Array, *, rank: int, side: str = "two") -> RowAnswers:
    """Return values and regions of unlabelled rows, the setting chosen for every candidate label."""
    values, winners = np.empty(len(rows)), np.empty(len(rows), dtype=np.intp)
    used = np.empty((len(rows), len(machine.menu)), dtype=bool)
    pieces, counts = [np.empty((0, 2))], [np.zeros(1, dtype=np.intp)]
    for part, border in machine.borders(rows):
        how = rank, SIDE[side], machine.power
        ends, n_pieces, *rest = tuned_regions(machine.fit, border, parabolas(machine.fit, border), how)
        pieces.append(ends)
        counts.append(n_pieces)
        values[part], winners[part], used[part] = rest
    scale = machine.scale
    regions = _regions(scale.undo(np.concatenate(pieces)), np.cumsum(np.concatenate(counts)))
    return RowAnswers(scale.undo(values), regions, winners, used)


def _regions(pieces: Array, offsets: AnyArray) -> Regions:
    """Return the regions of rows whose pieces may have come to touch by rounding."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    first = np.ones(len(pieces), dtype=bool)
    first[1:] = (np.diff(row) > 0) | (pieces[1:, 0] > pieces[:-1, 1])
    last = np.append(first[1:], True)[: len(pieces)]
    joined = np.column_stack([pieces[first, 0], pieces[last, 1]])
    counts = np.bincount(row[first], minlength=len(offsets) - 1)
    return Regions(joined, np.concatenate([[0], np.cumsum(counts)]))


def label_p_values(machine: TunedMachine, rows: Array, labels: Array, tau: Array) -> Array:
    """Return the p-value of a candidate label for each row, shape (m,); ties count with weight `tau` (m,)."""
    p, v = np.empty(len(rows)), machine.scale.apply(labels)
    for part, border in machine.borders(rows):
        curves = parabolas(machine.fit, border)
        p[part] = tuned_p_values(machine.fit, border, curves, v[part], tau[part], machine.power)
    return p


def class_p_values(machine: TunedMachine, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
    """Return the p-values of every class at rows, the setting chosen for every candidate; codes (l,), tau (m,)."""
    n_classes = machine.fit.residuals.shape[2]
    own = np.ascontiguousarray(machine.fit.residuals[:, np.arange(len(codes)), codes])
    overall, within, scores = np.empty((3, len(rows), n_classes))
    chosen = np.empty((len(rows), n_classes), dtype=np.intp)
    for part, border in machine.borders(rows):
        overall[part], within[part], scores[part], chosen[part] = tuned_classes(
            machine.fit, own, border, codes, tau[part], machine.power, n_classes
        )
    return ClassPValues(overall, within, scores, chosen)


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
    ((_, border),) = machine.borders(row)
    curves = parabolas(machine.fit, border)[0]
    starts, owners = lower_envelope(curves)
    answers, scale = answer_rows(machine, row, rank=rank), machine.scale
    shown = curves / (machine.n_labelled + 1)
    shown[:, 0] = scale.undo(curves[:, 0])
    shown[:, 1:3] *= np.array([scale.unit**2, scale.unit])
    names = tuple(str(setting) for setting in machine.menu.settings)
    return RowEnvelope(names, shown, scale.undo(starts), owners, answers.regions[0], float(answers.values[0]))
