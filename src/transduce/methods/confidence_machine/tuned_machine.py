"""The exactly tuned confidence machine: every candidate label chooses its own setting, exact and compiled.

The setting with the smallest leave-one-out error of the **completed** sample is chosen, that row and its label
included. The choice treats all rows alike, so p-values stay exact. Complete a sample with label ``v`` at one unlabelled
row. For one setting (see `machine` for the notation, ``t = v - prediction``) the leave-one-out residuals are ``(s r_i -
g_i t) / (s G_ii + g_i^2)`` at the labelled rows and ``t`` at the row itself, with an unpenalised intercept too. So the
sum of their squares is a parabola in ``v``::

    Q(v) = c0 + c1 (v - prediction) + c2 (v - prediction)^2,     c2 >= 1

stored as ``(prediction, c0, c1, c2)``. At each ``v`` the lowest parabola says which setting is chosen. Settings whose
errors differ by rounding only are chosen together, and whatever is derived from the choice takes the union: this keeps
the guarantee. What `b` unlabelled rows bring to all `S` settings is a `Border` whose arrays have one more axis in
front: prediction (S, b) or (S, b, c), pivot (S, b) and weights (S, b, l).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit

from transduce.core import arrays
from transduce.core.answer import Regions
from transduce.core.computing import few_threads, stage
from transduce.core.types import AnyArray, Array
from transduce.device import memory
from transduce.device.linalg import EPSILON
from transduce.methods.confidence_machine.machine import (
    Border,
    ClassPValues,
    _checked_pivot,
    _rounding_slack,
    warn_raised,
)
from transduce.methods.confidence_machine.menu import Menu, MenuKernel, Setting
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    count_nonconforming,
    counts_by_class,
    region_pieces,
    row_lines,
)

Interval = tuple[float, float]
LINE, NOWHERE = (-np.inf, np.inf), (np.inf, -np.inf)
TIE = 1e-9  # leave-one-out errors closer than this share of themselves are equal


class MenuFit(NamedTuple):
    """The ridge regressions of all settings on the labelled rows."""

    residuals: Array  # (S, l) or (S, l, c) ``G y`` for each setting
    diagonal: Array  # (S, l) ``G_ii``
    slack: Array  # (S,) residuals closer than this tie


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sums(
    residuals: Array, diagonal: Array, weights: Array, pivot: float
) -> tuple[float, float, float]:
    """Return ``c0``, ``c1``, ``c2`` of one setting at one row."""
    c0, c1, c2 = 0.0, 0.0, 1.0
    for i in range(len(residuals)):
        scale = pivot * diagonal[i] + weights[i] * weights[i]
        # A row that no other row can stand in for has no leave-one-out residual: it counts for nothing.
        inverse = 1.0 / scale if scale > 0.0 else 0.0
        start, slope = pivot * residuals[i] * inverse, weights[i] * inverse
        c0 += start * start
        c1 -= 2.0 * start * slope
        c2 += slope * slope
    return c0, c1, c2


@njit(cache=True, nogil=True)
def parabolas(fit: MenuFit, border: Border) -> Array:
    """Return ``(prediction, c0, c1, c2)`` of every setting at every row, shape (b, S, 4)."""
    n_settings, n_rows = border.pivot.shape
    curves = np.empty((n_rows, n_settings, 4))
    for s in range(n_settings):
        for j in range(n_rows):
            sums = _sums(
                fit.residuals[s], fit.diagonal[s], border.weights[s, j], border.pivot[s, j]
            )
            curves[j, s, 0] = border.prediction[s, j]
            curves[j, s, 1], curves[j, s, 2], curves[j, s, 3] = sums
    return curves


@njit(cache=True, nogil=True)
def height(parabola: Array, v: float) -> float:
    """Return the value of one parabola."""
    t = v - parabola[0]
    return parabola[1] + t * (parabola[2] + t * parabola[3])


@njit(cache=True, nogil=True)
def _where_below(
    one: Array, other: Array, factor: float, extra: float
) -> tuple[Interval, Interval]:
    """Return the two closed intervals on which ``one <= factor * other + extra``; the second may be empty, or both."""
    # In the coordinate x = v - other's prediction nothing large cancels.
    shift = one[0] - other[0]
    a = one[3] - factor * other[3]
    b = one[2] - 2.0 * one[3] * shift - factor * other[2]
    c = one[1] - one[2] * shift + one[3] * shift * shift - factor * other[1] - extra
    if a == 0.0 and b == 0.0:
        return (LINE if c <= 0.0 else NOWHERE), NOWHERE
    if a == 0.0:
        end = other[0] - c / b
        return ((-np.inf, end) if b > 0.0 else (end, np.inf)), NOWHERE
    inside = b * b - 4.0 * a * c
    if inside < 0.0:
        return (LINE if a < 0.0 else NOWHERE), NOWHERE
    half = -0.5 * (b + (np.sqrt(inside) if b >= 0.0 else -np.sqrt(inside)))
    first = other[0] + half / a
    second = other[0] + c / half if half != 0.0 else first
    low, high = min(first, second), max(first, second)
    if a > 0.0:
        return (low, high), NOWHERE
    return ((-np.inf, low), (high, np.inf)) if low < high else (LINE, NOWHERE)


class Choice(NamedTuple):
    """Where each setting is chosen, ties included."""

    setting: AnyArray  # (k,) ascending; a setting is chosen on as many closed intervals as it has lines here
    low: Array  # (k,)
    high: Array  # (k,)


@njit(cache=True, nogil=True)
def tie_margin(slack_one: float, slack_other: float, n_rows: int) -> float:
    """Return what `TIE` leaves out of rounding: the square of what `n_rows` residuals may be off together."""
    return n_rows * (slack_one + slack_other) ** 2 / TIE


@njit(cache=True, nogil=True)
def choose(curves: Array, slack: Array, n_rows: int) -> Choice:
    """Return where each setting has the smallest leave-one-out error of a sample of `n_rows`, up to rounding."""
    room, stop = len(curves) ** 2 + 1, 0  # each comparison parts at most one interval
    setting, low, high = np.empty(room, dtype=np.intp), np.empty(room), np.empty(room)
    for s in range(len(curves)):
        start, stop = stop, stop + 1
        low[start], high[start] = -np.inf, np.inf
        for other in range(len(curves)):
            if other == s or stop == start:
                continue
            margin = tie_margin(slack[s], slack[other], n_rows)
            one, two = _where_below(curves[s], curves[other], 1.0 + TIE, margin)
            for k in range(
                stop - 1, start - 1, -1
            ):  # backwards: the last interval takes the place of an empty one
                left, right = low[k], high[k]
                if max(left, two[0]) <= min(right, two[1]):
                    low[stop], high[stop] = max(left, two[0]), min(right, two[1])
                    stop += 1
                low[k], high[k] = max(left, one[0]), min(right, one[1])
                if low[k] > high[k]:
                    stop -= 1
                    low[k], high[k] = low[stop], high[stop]
        setting[start:stop] = s
    return Choice(setting[:stop].copy(), low[:stop].copy(), high[:stop].copy())


@njit(cache=True, nogil=True)
def mark_least(errors: Array, slack: Array, n_rows: int, picked: AnyArray) -> int:
    """Mark the smallest leave-one-out error of a sample of `n_rows` and those equal; return the first."""
    best, first = np.argmin(errors), -1
    for s in range(len(errors)):
        margin = tie_margin(slack[s], slack[best], n_rows)
        picked[s] = s == best or errors[s] <= (1.0 + TIE) * errors[best] + margin
        if picked[s] and first < 0:
            first = s
    return first


@njit(cache=True, nogil=True)
def answer(curves: Array, choice: Choice) -> tuple[int, float]:
    """Return the setting at the lowest point of the envelope, and its prediction as far as it is chosen there."""
    # The value is the setting's prediction or, if another setting is chosen at that label, the nearest label at which
    # this one is. Of settings that reach the same height, the first counts.
    lowest, best = np.empty(len(choice.setting)), np.inf
    for k in range(len(lowest)):
        curve = curves[choice.setting[k]]
        vertex = curve[0] - 0.5 * curve[2] / curve[3]
        lowest[k] = height(curve, min(max(vertex, choice.low[k]), choice.high[k]))
        best = min(best, lowest[k])
    first = 0
    while lowest[first] > (1.0 + 2.0 * TIE) * best:
        first += 1
    winner = choice.setting[first]
    prediction, value = curves[winner, 0], np.inf
    for k in range(len(lowest)):
        if choice.setting[k] == winner:
            near = min(max(prediction, choice.low[k]), choice.high[k])
            if abs(near - prediction) < abs(value - prediction):
                value = near
    return winner, value


def lower_envelope(curves: Array) -> tuple[Array, AnyArray]:
    """Return where each piece of the lower envelope of parabolas (S, 4) starts, and whose it is, (k,) each."""
    # Two parabolas cross at most twice, so S of them make at most 2 S - 1 pieces.
    crossings = np.array(
        [_where_below(one, other, 1.0, 0.0) for one, other in combinations(curves, 2)]
    )
    ends = np.unique(crossings[np.isfinite(crossings)])
    around = np.concatenate(
        [ends[:1] - 1.0 - np.abs(ends[:1]), ends, ends[-1:] + 1.0 + np.abs(ends[-1:])]
    )
    t = (0.5 * (around[:-1] + around[1:]) if len(ends) else np.zeros(1))[:, None] - curves[:, 0]
    owners = np.argmin(curves[:, 1] + t * (curves[:, 2] + t * curves[:, 3]), axis=1)
    new = np.append(True, owners[1:] != owners[:-1])
    return np.append(-np.inf, ends)[new], owners[new]


@njit(cache=True, nogil=True)
def merge(pieces: list[Interval]) -> list[Interval]:
    """Return the union of closed intervals as disjoint ones in ascending order."""
    for last in range(
        1, len(pieces)
    ):  # few, so insertion; numba's own sort takes longer to compile than all of this
        piece, place = pieces[last], last
        while place > 0 and pieces[place - 1][0] > piece[0]:
            pieces[place] = pieces[place - 1]
            place -= 1
        pieces[place] = piece
    merged = pieces[:1]
    for low, high in pieces[1:]:
        if low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


@njit(cache=True, nogil=True)
def _setting_lines(
    fit: MenuFit, border: Border, s: int, j: int, power: float
) -> tuple[Array, Array]:
    """Return the labelled rows' lines with one setting, for row `j`."""
    return row_lines(
        fit.residuals[s], fit.diagonal[s], border.weights[s, j], border.pivot[s, j], power
    )


@njit(cache=True, nogil=True)
def _row_region(
    fit: MenuFit,
    border: Border,
    j: int,
    choice: Choice,
    rule: tuple[int, int, float],
    used: AnyArray,
) -> list[Interval]:
    """Return the pieces of row `j`'s region in no order, and mark the settings used."""
    rank, side, power = rule
    pieces, k = [NOWHERE for _ in range(0)], 0
    while k < len(choice.setting):
        s, before = choice.setting[k], len(pieces)
        rho, beta = _setting_lines(fit, border, s, j, power)
        region = border.prediction[s, j] + region_pieces(rho, beta, rank, side, fit.slack[s])
        while k < len(choice.setting) and choice.setting[k] == s:
            for part in range(len(region)):
                low, high = (
                    max(choice.low[k], region[part, 0]),
                    min(choice.high[k], region[part, 1]),
                )
                if low <= high:
                    pieces.append((low, high))
            k += 1
        used[s] = len(pieces) > before
    return pieces


@njit(cache=True, nogil=True)
def tuned_regions(
    fit: MenuFit, border: Border, curves: Array, rule: tuple[int, int, float]
) -> tuple[Array, AnyArray, Array, AnyArray, AnyArray]:
    """Return pieces (n_pieces, 2), counts, values, winners (b,), and settings used (b, S), of curves (b, S, 4)."""
    n_rows, n_settings = curves.shape[:2]
    pieces, counts, winners = (
        [NOWHERE for _ in range(0)],
        np.empty(n_rows, np.intp),
        np.empty(n_rows, np.intp),
    )
    values, used = np.empty(n_rows), np.zeros((n_rows, n_settings), dtype=np.bool_)
    for j in range(n_rows):
        choice = choose(curves[j], fit.slack, fit.residuals.shape[1] + 1)
        winners[j], values[j] = answer(curves[j], choice)
        region = _row_region(fit, border, j, choice, rule, used[j])
        if rule[1] == 0:
            region.append((values[j], values[j]))
        region = merge(region)
        pieces.extend(region)
        counts[j] = len(region)
    ends = np.empty((len(pieces), 2))
    for k in range(len(pieces)):
        ends[k, 0], ends[k, 1] = pieces[k]
    return ends, counts, values, winners, used


@njit(cache=True, nogil=True)
def tuned_p_values(
    fit: MenuFit, border: Border, curves: Array, labels: Array, tau: Array, power: float
) -> Array:
    """Return the p-value of a label for each row (b,), ties weighed by `tau` (b,); the largest where settings tie."""
    n_labelled = fit.residuals.shape[1]
    p, n_settings = np.zeros(len(curves)), curves.shape[1]
    errors, picked = np.empty(n_settings), np.empty(n_settings, dtype=np.bool_)
    for j in range(len(curves)):
        for s in range(n_settings):
            errors[s] = height(curves[j, s], labels[j])
        mark_least(errors, fit.slack, n_labelled + 1, picked)
        for s in range(n_settings):
            if not picked[s]:
                continue
            rho, beta = _setting_lines(fit, border, s, j, power)
            above, tied = count_nonconforming(rho, beta, labels[j] - curves[j, s, 0], fit.slack[s])
            p[j] = max(p[j], (above + tau[j] * (tied + 1.0)) / (n_labelled + 1.0))
    return p


@njit(cache=True, nogil=True)
def _class_errors(fit: MenuFit, border: Border, j: int, s: int, errors: Array) -> None:
    """Write the leave-one-out error of one setting for every candidate class of row `j`, over all class columns."""
    prediction, pivot, weights = border.prediction[s, j], border.pivot[s, j], border.weights[s, j]
    n_classes = len(prediction)
    slope, c0, c2 = np.zeros(n_classes), 0.0, 1.0
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
        if_not, if_so = -1.0 - prediction[c], 1.0 - prediction[c]
        errors[c, s] = total + if_so * (slope[c] + if_so * c2) - if_not * (slope[c] + if_not * c2)


@njit(cache=True, nogil=True)
def tuned_classes(
    fit: MenuFit,
    own: Array,
    border: Border,
    codes: AnyArray,
    tau: Array,
    power: float,
    n_classes: int,
) -> tuple[Array, Array, Array, AnyArray]:
    """Return the fields of `ClassPValues` at rows, each class with its setting; own (S, l), codes (l,), tau (b,)."""
    n_settings, n_rows = border.pivot.shape
    shape = (n_rows, n_classes)
    overall, within = np.zeros(shape), np.zeros(shape)
    scores, chosen = np.full(shape, -np.inf), np.empty(shape, dtype=np.intp)
    sizes = np.bincount(codes, minlength=n_classes)
    errors = np.empty((n_classes, n_settings))
    picked = np.empty((n_classes, n_settings), dtype=np.bool_)
    for j in range(n_rows):
        for s in range(n_settings):
            _class_errors(fit, border, j, s, errors)
        for c in range(n_classes):
            chosen[j, c] = mark_least(errors[c], fit.slack, n_classes * (len(codes) + 1), picked[c])
        for s in range(n_settings):
            if not picked[:, s].any():
                continue
            rho, beta = row_lines(
                own[s], fit.diagonal[s], border.weights[s, j], border.pivot[s, j], power
            )
            every, same = counts_by_class(rho, beta, codes, border.prediction[s, j], fit.slack[s])
            for c in range(n_classes):
                if not picked[c, s]:
                    continue
                # Where several settings are chosen, the one with the largest p-value counts.
                p = (every[0, c] + tau[j] * (every[1, c] + 1.0)) / (len(codes) + 1.0)
                overall[j, c] = max(overall[j, c], p)
                p = (same[0, c] + tau[j] * (same[1, c] + 1.0)) / (sizes[c] + 1.0)
                within[j, c] = max(within[j, c], p)
                scores[j, c] = max(scores[j, c], border.prediction[s, j, c])
    return overall, within, scores, chosen


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
        return cls(
            kernel, rows, np.ascontiguousarray(vectors), values, slice(-kernel.rank(rows), None)
        )


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
        cls,
        spectrum: KernelSpectrum,
        y: Array,
        setting: Setting,
        *,
        fit_intercept: bool,
        level: float,
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
                ridges.append(
                    Ridge.fit(spectra[which], v, setting, fit_intercept=fit_intercept, level=level)
                )
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
        return answer_rows(self, rows, rank=0).values

    def label_p_values(self, rows: Array, labels: Array, tau: Array) -> Array:
        """Return the p-value of a candidate label for each row, as `Machine` does."""
        p, v = np.empty(len(rows)), self.scale.apply(labels)
        for part, border in self.borders(rows):
            curves = parabolas(self.fit, border)
            p[part] = tuned_p_values(self.fit, border, curves, v[part], tau[part], self.power)
        return p

    def class_p_values(self, rows: Array, codes: AnyArray, tau: Array) -> ClassPValues:
        """Return the p-values of every class at rows, the setting chosen for every candidate."""
        own = np.ascontiguousarray(self.fit.residuals[:, np.arange(len(codes)), codes])
        n_classes = self.fit.residuals.shape[2]
        overall, within, scores = np.empty((3, len(rows), n_classes))
        chosen = np.empty((len(rows), n_classes), dtype=np.intp)
        for part, border in self.borders(rows):
            overall[part], within[part], scores[part], chosen[part] = tuned_classes(
                self.fit, own, border, codes, tau[part], self.power, n_classes
            )
        return ClassPValues(overall, within, scores, chosen)

    def borders(self, rows: Array) -> Iterator[tuple[slice, Border]]:
        """Yield chunks of the rows under the memory budget, with what they bring to every setting."""
        n_settings, n = len(self.menu), len(rows)
        size = int(np.clip(self.max_bytes // (8 * self.n_labelled * (n_settings + 6)), 1, 1024))
        with stage("tuned confidence machine") as report, few_threads(self.n_labelled):
            for part in arrays.blocks(n, size):
                yield part, self._border(rows[part])
                report(part.stop / n)

    def _border(self, rows: Array) -> Border:
        """Return what a chunk of rows brings to every setting, kernel by kernel."""
        n_settings, b = len(self.menu), len(rows)
        prediction = np.empty((n_settings, b, *self.fit.residuals.shape[2:]))
        pivot, weights = np.empty((n_settings, b)), np.empty((n_settings, b, self.n_labelled))
        for place, spectrum in enumerate(self.spectra):
            forms = spectrum.kernel.represent(rows)
            K_al, k_aa = (
                spectrum.kernel.matrix(forms, spectrum.rows),
                spectrum.kernel.diagonal(forms),
            )
            turned = K_al @ spectrum.vectors[:, spectrum.span]
            for s in np.flatnonzero(self.menu.which == place):
                prediction[s], pivot[s] = self.ridges[s].border(
                    spectrum, K_al, k_aa, turned, weights[s]
                )
        return Border(prediction, pivot, weights)


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
        ends, n_pieces, *rest = tuned_regions(
            machine.fit, border, parabolas(machine.fit, border), how
        )
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
    return RowEnvelope(
        names, shown, scale.undo(starts), owners, answers.regions[0], float(answers.values[0])
    )
