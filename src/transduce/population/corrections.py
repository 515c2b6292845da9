"""What labelled rows say of the sum of something over the rows without a label.

Row i has a number ``z_i`` (what a prediction is off by, say) that is known where it has a label.
Within a stratum h, whose labelled rows were drawn at random, ``m_h`` unlabelled rows sum to about
``m_h`` times the mean of the sample, with the variance ``m_h^2 (1 / l_h + 1 / m_h) var_h(z)``. Rows
that were labelled with their own probability e weigh ``w = (1 - e) / e`` each: the labelled row i
then adds ``w_i (1 + w_i) (z_i - mean)^2``, which is the same formula where all weights are equal to
``m / l``. Where whole groups were drawn, groups take the place of rows, and the mean is that of the
ratio of their sums and sizes.

*What the sample does not show.* In ``z_i = a_i e_i`` the coefficients a are known at all rows, and
so are predictions, with which errors e often grow. A sample without the largest of them would take
the variance for smaller than it is: squares of z are regressed on ``a^2`` and ``a^2 f^2``, and the
regression is averaged over all rows (`spread_of_all_units`). Where few rows have most of ``sum
a^2``, the variance rests on few errors, and has fewer degrees of freedom (`share_of_degrees`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from transduce.core.types import AnyArray, Array, Mask
from transduce.population.sample import Sample
from transduce.population.skewness import skewness_of_all
from transduce.population.uncertain import NOTHING_KNOWN, Uncertain, add_independent

FEWEST_LABELS = 2  # with one there is no spread
ROUNDING = 1e-12  # of the numbers: what they differ by less is rounding


@dataclass(frozen=True, eq=False)
class RowErrors:
    """Numbers whose sum is wanted, and what is known of the rows where they are not.

    Attributes
    ----------
    errors : array of shape (n,)
        The numbers ``a_i e_i`` at sampled rows; others are not read.
    leverages : array of shape (n,)
        Squares of ``a_i``, which are known at all rows.
    magnitudes : array of shape (n,)
        Squares of ``a_i f_i``, predictions taken about their mean: errors may grow with them.
    sampled, missing : boolean array of shape (n,)
        Rows that matter, with a label of the sample and with none.
    have_tails : bool
        Whether some numbers may be much larger than those of the sample: not those of a column of
        zeros and ones, whose skewness their own share tells.
    """

    errors: Array
    leverages: Array
    magnitudes: Array
    sampled: Mask
    missing: Mask
    have_tails: bool = True

    def inside(self, rows: Mask) -> RowErrors:
        """Return the same of some rows alone."""
        return RowErrors(
            self.errors,
            self.leverages,
            self.magnitudes,
            self.sampled & rows,
            self.missing & rows,
            self.have_tails,
        )


def correct_by_sample(sample: Sample, rows: RowErrors) -> Uncertain:
    """Return an estimate of the sum of the numbers over the missing rows."""
    parts = []
    strata = np.unique(sample.stratum_codes[rows.missing])
    typical = typical_square(sample, rows, strata) if len(strata) > 1 else 0.0
    for stratum in strata:
        inside = rows.inside(sample.stratum_codes == stratum)
        part = correct_in_stratum(sample, inside, typical)
        if part is NOTHING_KNOWN:
            return NOTHING_KNOWN
        parts.append(part)
    return add_independent(parts)


@dataclass(frozen=True, eq=False)
class SampledUnits:
    """The sampled rows or groups of a stratum, and for how many unlabelled ones each stands.

    Attributes
    ----------
    unit_of_row : int array of shape (l,)
        The unit of each sampled row.
    sizes : array of shape (k,)
        Sampled rows of each unit.
    weights : array of shape (k,)
        For how many missing units each stands, but for a common factor.
    n_missing : int
        Rows without a label.
    """

    unit_of_row: AnyArray
    sizes: Array
    weights: Array
    n_missing: int

    @classmethod
    def of(cls, sample: Sample, sampled: Mask, missing: Mask) -> SampledUnits:
        """Return the units of a stratum. Shapes: sampled, missing (n,)."""
        units, unit_of_row = np.unique(sample.unit_codes[sampled], return_inverse=True)
        n_units = len(units)
        sizes = np.bincount(unit_of_row, minlength=n_units).astype(float)
        if sample.odds is None:
            n_missing_units = len(np.unique(sample.unit_codes[missing]))
            weights = np.full(n_units, n_missing_units / max(n_units, 1))
        else:
            weights = np.bincount(unit_of_row, sample.odds[sampled], n_units) / sizes
        return cls(unit_of_row, sizes, weights, int(np.sum(missing)))

    @property
    def worth(self) -> float:
        """How many units of equal weight these are worth."""
        squares = float(np.sum(self.weights**2))
        if not squares > 0.0:
            return 0.0
        return float(np.sum(self.weights)) ** 2 / squares

    @property
    def tell_a_spread(self) -> bool:
        """Whether they are enough to tell how much the numbers vary."""
        return len(self.sizes) >= FEWEST_LABELS and self.worth > 1.0 and self.scale > 0.0

    @property
    def scale(self) -> float:
        """By how much the weights miss the number of missing rows, which is known."""
        represented = float(np.sum(self.weights * self.sizes))
        if not represented > 0.0:
            return 0.0
        return self.n_missing / represented

    @property
    def row_weights(self) -> Array:
        """For how many missing rows each sampled row stands, shape (l,)."""
        return np.asarray(self.scale * self.weights[self.unit_of_row])

    def sum_up(self, numbers: Array) -> Array:
        """Return the sums of numbers (l,) of rows over each unit, shape (k,)."""
        return np.bincount(self.unit_of_row, numbers, len(self.sizes)).astype(float)

    def mean_of(self, sums: Array) -> float:
        """Return the weighted mean of numbers over rows, from their sums (k,) over units."""
        total = float(np.sum(self.weights * sums))
        n_rows = float(np.sum(self.weights * self.sizes))
        return total / n_rows

    def about_mean(self, sums: Array) -> Array:
        """Return by how much sums (k,) over units differ from what their mean would give."""
        return np.asarray(sums - self.mean_of(sums) * self.sizes)


def weigh_sample(sample: Sample, sampled: Mask, missing: Mask) -> Array | None:
    """Return for how many missing rows each sampled row stands, shape (n,), 0 at other rows.

    None if a stratum has too few labels.
    """
    weights = np.zeros(len(sampled))
    for stratum in np.unique(sample.stratum_codes[missing]):
        inside = sample.stratum_codes == stratum
        units = SampledUnits.of(sample, sampled & inside, missing & inside)
        if not units.tell_a_spread:
            return None
        weights[sampled & inside] = units.row_weights
    return weights


def typical_square(sample: Sample, rows: RowErrors, strata: AnyArray) -> float:
    """Return the mean square of the numbers about the mean of their stratum, over all strata."""
    total = 0.0
    n_free = 0
    for stratum in strata:
        inside = rows.inside(sample.stratum_codes == stratum)
        units = SampledUnits.of(sample, inside.sampled, inside.missing)
        if units.tell_a_spread:
            off = units.about_mean(units.sum_up(inside.errors[inside.sampled]))
            total += float(np.sum(off**2))
            n_free += len(off) - 1
    return total / n_free if n_free else 0.0


def correct_in_stratum(sample: Sample, rows: RowErrors, typical: float = 0.0) -> Uncertain:
    """Return the correction of one stratum, whose sampled units were drawn at random.

    Numbers that are all alike tell no spread of the others: their mean square then is `typical`,
    that of the strata together.
    """
    units = SampledUnits.of(sample, rows.sampled, rows.missing)
    if not units.tell_a_spread:
        return NOTHING_KNOWN
    sums = units.sum_up(rows.errors[rows.sampled])
    weights = units.weights
    off = units.about_mean(sums)
    mean_error = units.mean_of(sums)
    worth = units.worth
    squares = off**2
    largest_off = float(np.max(np.abs(off)))
    if largest_off <= ROUNDING * float(np.max(np.abs(sums))):
        squares = np.full(len(off), typical * (worth - 1.0) / worth)
    spread = float(np.sum(weights * (1.0 + weights) * squares))
    spread *= worth / (worth - 1.0)
    of_sample = squares_of_units(sample, rows, rows.sampled)
    of_all = squares_of_units(sample, rows, rows.sampled | rows.missing)
    spread *= spread_of_all_units(squares, weights, of_sample, of_all)
    degrees = (worth - 1.0) * share_of_degrees(of_all[:, 0])
    error = units.scale * float(np.sqrt(spread))
    skewness = 0.0
    if error > 0.0:
        shares = units.scale * weights / error
        skewness = float(np.sum((shares * off) ** 3))
        if rows.have_tails:
            typical_shares = shares * float(np.sqrt(np.mean(off**2)))
            of_tail = skewness_of_all(off) * float(np.sum(typical_shares**3))
            skewness = max(skewness, of_tail, key=abs)
    total = units.n_missing * mean_error
    lowest = total
    highest = total
    if sample.sensitivity > 1.0:
        lowest = units.n_missing * worst_mean(sums, units.sizes, weights, sample.sensitivity)
        highest = -units.n_missing * worst_mean(-sums, units.sizes, weights, sample.sensitivity)
    return Uncertain(total, error, degrees, lowest, highest, skewness)


def squares_of_units(sample: Sample, rows: RowErrors, inside: Mask) -> Array:
    """Return the squares of ``a`` and of ``a f``, each summed over a unit, shape (k, 2).

    Of the units of the rows (n,) inside; what a group's errors have in common adds up with its
    rows, so that the sum is squared.
    """
    codes = np.unique(sample.unit_codes[inside], return_inverse=True)[1]
    of_leverages = np.bincount(codes, weights=np.sqrt(rows.leverages[inside]))
    of_magnitudes = np.bincount(codes, weights=np.sqrt(rows.magnitudes[inside]))
    sums = np.column_stack((of_leverages, of_magnitudes))
    return np.asarray(np.square(sums), dtype=float)


def spread_of_all_units(squares: Array, weights: Array, of_sample: Array, of_all: Array) -> float:
    """Return by what factor squares of the numbers are larger over all units than in the sample.

    1 at least. Shapes: squares, weights (k,), of_sample (k, 2), of_all (K, 2).
    """
    mean_square = float(np.mean(squares))
    sizes = np.mean(of_sample, axis=0)
    if not mean_square > 0.0 or not np.any(np.ptp(of_sample, axis=0) > 0.0):
        return 1.0
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    slopes = nnls(of_sample / sizes, squares / mean_square)[0]
    expected = float(np.average(of_sample / sizes @ slopes, weights=weights))
    everywhere = float(np.mean(of_all / sizes @ slopes))
    if expected > 0.0:
        return max(1.0, everywhere / expected)
    return 1.0


def share_of_degrees(squares: Array) -> float:
    """Return what share of its degrees of freedom a variance has, its terms being unequal.

    If all errors e have one variance, that of ``sum (a e)^2`` is proportional to ``sum a^4``: as
    many equal terms as ``(sum a^2)^2 / sum a^4`` would have it (Satterthwaite 1946). Shapes:
    squares (K,), of a at all units.
    """
    largest = float(np.max(squares, initial=0.0))
    if not largest > 0.0:
        return 1.0
    squares = squares / largest
    return float(np.mean(squares) ** 2 / np.mean(squares**2))


def worst_mean(sums: Array, sizes: Array, weights: Array, factor: float) -> float:
    """Return the smallest weighted mean if each weight may be off by a factor, either way.

    The smallest is reached where units below some limit weigh most and those above it least, so it
    is enough to try every limit between neighbours. Shapes: sums, sizes, weights (k,).
    """
    order = np.argsort(sums / sizes)
    heavy = factor * weights[order]
    light = weights[order] / factor
    sorted_sums = sums[order]
    sorted_sizes = sizes[order]
    low_sums = np.append(0.0, np.cumsum(heavy * sorted_sums))
    low_sizes = np.append(0.0, np.cumsum(heavy * sorted_sizes))
    high_sums = _sums_from(light * sorted_sums)
    high_sizes = _sums_from(light * sorted_sizes)
    return float(np.min((low_sums + high_sums) / (low_sizes + high_sizes)))


def _sums_from(values: Array) -> Array:
    """Return the sum of the values from each place on (k + 1,), 0 at the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)
