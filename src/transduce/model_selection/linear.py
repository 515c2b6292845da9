"""Linear regression for the blend: an exact relation where there is one, else Bayesian ridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import linprog
from scipy.special import gammaln
from scipy.stats import beta, norm
from scipy.stats import t as student_t
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.core.scaling import FARTHEST, moments_without_far_rows
from transduce.core.types import AnyArray, Array, Labels, Rows

# Penalties over which ridge regression is averaged, in units of the mean square of the features'
# singular values: from next to none to one that leaves the mean of the labels only.
SMALLEST_PENALTY = 1e-5
LARGEST_PENALTY = 1e4
PENALTIES = 46
# Features that are not cut off are taken if leave-one-out error is at most this share of that with
# the cut, and if so many labels can judge it.
MUCH_BETTER = 0.7
FEWEST_JUDGING = 8
# Leave-one-out error, over the spread of the labels, up to which a line is taken to go on beyond
# the labels: of a price with its tax, rounded to cents, half of the spread lies there in tables
# with a few very large amounts.
NEARLY_EXACT = 0.03
# Other lines go on beyond the cut where they have earned it: it is as many times as far as the root
# of this, over leave-one-out error as a share of the spread of the labels. Linear tables with
# skewed features and little noise have half the error so (20 labels: .22 to .09 of the spread), and
# curved ones hardly more. Lines alone on 28 real tables, with 10, 15, 30 and 60 labels: .7710 .7127
# .6643 .6464 of the spread (.7724 .7130 .6650 .6477 without; .7718 .7144 .6650 .6480 with 1.5).
GOES_ON = 0.6
FARTHEST_UNCUT = 100.0  # where features are cut off that are not to be
FEW_LABELS = 30  # below, labels are hidden one by one
EXACT = 1e-7  # of the spread of the labels: residuals of an exact relation are below
# An exact relation is believed if chance would bring it about once in so many tables, or more
# rarely.
ONCE_IN = 1e5
ROWS_TRIED = 50  # labels beyond the number of features that show whether there is an exact relation
MOST_IN_PAIRS = 20  # features of which every one and every two are tried
MOST_TERMS = 12  # of an exact relation among more features than labels
# Beyond these sizes relations among more features than labels are looked for one feature at a time
# only.
MOST_LABELS = 60
MOST_FEATURES = 400
SMALLEST_SHARE = 1e-9  # of the largest coefficient; smaller ones are none


def widen_cut(farthest: float, n_rows: int) -> float:
    """Return where to cut features off that were scaled by mean and spread of a few rows.

    A normal number lies beyond it, in these units, as rarely as beyond `farthest` of its own
    standard deviations: it is Student's quantile of a prediction from `n_rows`.

    >>> [round(widen_cut(3.0, n_rows), 1) for n_rows in (5, 9, 30, 1000)]
    [8.1, 4.8, 3.4, 3.0]
    """
    # With 9 labels and 4 features errors of a line are .161 of the spread so, and .191 with 3.
    if n_rows < 2 or not np.isfinite(farthest):
        return farthest
    quantile = -student_t.ppf(norm.sf(farthest), n_rows - 1)
    # Spreads divide by the number of rows, Student's by one less.
    return float(quantile * np.sqrt((1.0 + 1.0 / n_rows) * n_rows / (n_rows - 1)))


class FeatureScaler(StandardScaler):
    """scikit-learn's StandardScaler, whose scale is not set by a few far rows.

    Scaled features are cut off at `farthest`, widened by how little the rows of the fit say of it.
    """

    mean_: Array
    scale_: Array

    def __init__(self, *, farthest: float = np.inf) -> None:
        super().__init__()
        self.farthest = farthest

    def fit(
        self,
        X: Rows,
        y: Labels = None,
        sample_weight: Any = None,
    ) -> Self:
        """Take mean and standard deviation of every feature of rows (n, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            super().fit(X, y, sample_weight)
        rows = np.asarray(X, dtype=float)
        self.mean_, self.scale_ = moments_without_far_rows(rows, self.mean_, self.scale_)
        self.cut_ = min(widen_cut(self.farthest, len(rows)), FARTHEST)
        return self

    def transform(self, X: Rows, copy: bool | None = None) -> Any:
        """Return the scaled rows (n, d)."""
        with np.errstate(over="ignore"):
            scaled = super().transform(X, copy)
        return np.clip(scaled, -self.cut_, self.cut_)


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Bayesian ridge regression, and an exact linear relation where the labels show one.

    A total of columns, or a conversion of units, is found to rounding, also among more features
    than labels. Other labels are answered by the mean of ridge regressions with many penalties,
    each weighed by how likely it makes the labels. Features are cut off at `farthest`, or beyond it
    where leave-one-out error is small, or much smaller without the cut.
    """

    def __init__(self, *, standardize: bool = True, farthest: float = np.inf) -> None:
        self.standardize = standardize
        self.farthest = farthest

    def fit(self, X: Rows, y: Labels) -> Self:
        """Fit to rows (l, d) and labels (l,)."""
        X, y = validate_data(self, X, y, y_numeric=True)
        self._rows = X
        self._labels = np.asarray(y, dtype=float)
        self.relation_ = find_relation(X, self._labels)
        self._line = self._fit_line(np.arange(len(X)))
        self.coef_ = self._line.coefficients
        self.intercept_ = self._line.intercept
        self.is_nearly_exact_ = self.relation_ is not None or self._line.is_nearly_exact
        return self

    def predict(self, X: Rows) -> Array:
        """Return predictions (m,) at rows (m, d)."""
        check_is_fitted(self)
        return self._line.at(validate_data(self, X, reset=False))

    def answers_in_folds(self, folds: Sequence[tuple[AnyArray, AnyArray]]) -> list[Array]:
        """Return predictions at hidden labels, each from a fit to the visible ones.

        Below 30 labels all but the row itself are visible. Which features an exact relation has is
        known from all labels: that all of them agree by chance is as good as impossible.
        """
        check_is_fitted(self)
        n_labels = len(self._labels)
        if n_labels >= FEW_LABELS:
            return [self._fit_line(visible).at(self._rows[hidden]) for visible, hidden in folds]
        # Of few labels a fold is so large a part that a fit without it says little of the fit to
        # all of them.
        others = ~np.eye(n_labels, dtype=bool)
        hidden_rows = np.unique(np.concatenate([hidden for _, hidden in folds])).astype(int)
        answers = np.full(n_labels, np.nan)
        for row in hidden_rows:
            line = self._fit_line(np.flatnonzero(others[row]))
            answers[row] = line.at(self._rows[[row]])[0]
        return [answers[hidden] for _, hidden in folds]

    def _fit_line(self, visible: AnyArray) -> Line:
        """Return the linear function that is fitted to some of the labelled rows."""
        X = self._rows[visible]
        y = self._labels[visible]
        if self.relation_ is not None:
            return least_squares(X, y, self.relation_)
        return ridge_line(X, y, self.farthest, standardize=self.standardize)


@dataclass(frozen=True, eq=False)
class Line:
    """A linear function of features that are shifted, scaled and cut off first."""

    coefficients: Array
    intercept: float
    centre: Array
    scale: Array
    farthest: float
    is_nearly_exact: bool = False  # at the labels; then it goes on beyond them

    def at(self, X: Array) -> Array:
        """Return its values at rows (m, d)."""
        # Sums that do not depend on how many rows are asked at once.
        scaled = np.clip((X - self.centre) / self.scale, -self.farthest, self.farthest)
        return np.einsum("ij,j->i", scaled, self.coefficients) + self.intercept


class Spectrum(NamedTuple):
    """Rows in coordinates in which every penalty is a matter of shrinking."""

    vectors: Array  # (l, r)
    squares: Array  # (r,)
    right: Array  # (r, d)
    projected: Array  # (r,)
    labels: Array  # (l,) less their mean

    @classmethod
    def of(cls, X: Array, y: Array) -> Spectrum:
        """Decompose rows and labels, both of mean 0."""
        vectors, values, right = np.linalg.svd(X, full_matrices=False)
        return cls(vectors, values**2, right, vectors.T @ y, y)

    def penalties(self) -> Array:
        """Return the penalties that are averaged over."""
        typical = float(self.squares.mean()) or 1.0
        return typical * np.geomspace(SMALLEST_PENALTY, LARGEST_PENALTY, PENALTIES)

    def likelihoods(self, penalties: Array) -> Array:
        """Return the probability of the labels under each penalty, as shares with sum 1.

        Coefficients are normal with variance ``s / penalty``, labels normal around the line with
        variance ``s``; mean and ``s`` are integrated out, their prior being flat in the mean and in
        ``log s``.
        """
        squares = self.squares[:, None]
        left = self.labels @ self.labels - np.sum(
            squares / (squares + penalties) * self.projected[:, None] ** 2, axis=0
        )
        # A line through all labels leaves rounding, which is no more than nothing.
        least = np.finfo(float).eps * (float(self.labels @ self.labels) or 1.0)
        logs = 0.5 * np.sum(np.log(penalties / (squares + penalties)), axis=0)
        logs -= 0.5 * (len(self.labels) - 1) * np.log(np.maximum(left, least))
        shares = np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def shrinkage(self) -> Array:
        """Return by what ridge regression divides each projection, shape (r,).

        It is averaged over penalties.
        """
        penalties = self.penalties()
        shares = self.likelihoods(penalties)
        return np.sum(shares / (self.squares[:, None] + penalties), axis=1)

    def error(self, shrinkage: Array) -> float:
        """Return the mean squared leave-one-out residual, the mean being fitted too."""
        kept = self.squares * shrinkage
        residuals = self.labels - self.vectors @ (kept * self.projected)
        left = 1.0 - 1.0 / len(self.labels) - self.vectors**2 @ kept
        if left.min() <= 1e-10:
            return np.inf
        with np.errstate(over="ignore"):
            return float(np.mean((residuals / left) ** 2))

    def coefficients(self, shrinkage: Array) -> Array:
        """Return the coefficients of ridge regression."""
        return self.right.T @ (self.squares**0.5 * shrinkage * self.projected)


def ridge_line(
    X: Array,
    y: Array,
    farthest: float,
    *,
    standardize: bool,
) -> Line:
    """Return ridge regression, averaged over penalties.

    Features are cut off, the farther out the less the line is off at labels that it has not seen. A
    line that is nearly exact, or much better without the cut, goes on as far as that is safe.
    """
    centre = np.zeros(X.shape[1])
    scale = np.ones(X.shape[1])
    if standardize:
        with np.errstate(over="ignore", invalid="ignore"):
            centre, scale = moments_without_far_rows(X, X.mean(axis=0), X.std(axis=0))
        farthest = widen_cut(farthest, len(X))
        rounding = 10 * np.finfo(float).eps * (1.0 + np.abs(centre))
        scale = np.where(scale > rounding, scale, 1.0)
    Z = (X - centre) / scale
    y_mean = float(y.mean())
    size = float(np.abs(y - y_mean).max()) or 1.0  # so that no square is too large
    target = (y - y_mean) / size
    fit = _penalised(np.clip(Z, -farthest, farthest), target)
    is_nearly_exact = False
    if farthest < FARTHEST_UNCUT and len(y) >= FEWEST_JUDGING:
        is_cut = np.abs(Z).max(initial=0.0) > farthest
        uncut = fit
        if is_cut:
            uncut = _penalised(np.clip(Z, -FARTHEST_UNCUT, FARTHEST_UNCUT), target)
        is_much_better = is_cut and uncut.error < MUCH_BETTER * fit.error
        spread = float(np.mean(target**2))  # 0 where all labels but hidden ones are equal
        off = float(np.sqrt(uncut.error / spread)) if spread > 0.0 else np.inf
        is_nearly_exact = off < NEARLY_EXACT
        if is_much_better or is_nearly_exact:
            farthest = FARTHEST_UNCUT
        else:
            farthest = min(farthest * _times_as_far(off), FARTHEST_UNCUT)
        if is_cut:
            fit = _penalised(np.clip(Z, -farthest, farthest), target)
    coefficients = size * fit.coefficients
    intercept = y_mean - float(fit.means @ coefficients)
    return Line(coefficients, intercept, centre, scale, farthest, is_nearly_exact)


def _times_as_far(off: float) -> float:
    """Return how many times as far a line goes on, by its error over the spread of the labels."""
    return float(np.sqrt(max(GOES_ON / max(off, NEARLY_EXACT), 1.0)))


class PenalisedFit(NamedTuple):
    """Ridge regression, averaged over penalties."""

    coefficients: Array  # (d,)
    means: Array  # (d,) of the features
    error: float  # mean squared leave-one-out residual


def _penalised(Z: Array, target: Array) -> PenalisedFit:
    """Return the fit to features and labels, these of mean 0."""
    means = Z.mean(axis=0)
    spectrum = Spectrum.of(Z - means, target)
    shrinkage = spectrum.shrinkage()
    return PenalisedFit(spectrum.coefficients(shrinkage), means, spectrum.error(shrinkage))


# ---- exact relations


def least_squares(X: Array, y: Array, features: AnyArray) -> Line:
    """Return the line through the labels on some features, by least squares, with no penalty."""
    centre = X.mean(axis=0)
    y_mean = y.mean()
    # What does not vary is no more than rounding of its mean, which scaling would make a feature.
    features = features[_vary(X[:, features])]
    Z = X[:, features] - centre[features]
    scale = np.abs(Z).max(axis=0, initial=0.0)
    slopes = np.linalg.lstsq(Z / scale, y - y_mean, rcond=None)[0] / scale
    coefficients = np.zeros(X.shape[1])
    coefficients[features] = slopes
    return Line(coefficients, float(y_mean), centre, np.ones(X.shape[1]), np.inf)


def _vary(X: Array) -> AnyArray:
    """Return which columns do not have the same value in every row."""
    return np.any(X[1:] != X[:1], axis=0)


def find_relation(X: Array, y: Array) -> AnyArray | None:
    """Return the features of a linear relation that gives all labels, or nearly.

    Labels may be rounded, or have a little noise. None if there is no relation to believe.
    """
    spread = float(np.abs(y - y.mean()).max(initial=0.0))
    varied = np.flatnonzero(_vary(X))
    if spread == 0.0 or not np.isfinite(spread) or not len(varied):
        return None
    y = y / spread  # of any size, such as 1e-200, whose squares are 0
    exact = EXACT * float(np.std(y))
    if len(y) >= len(varied) + 2:
        residuals = _residuals(X, y, varied)
        if residuals is None:
            return None  # and so no fewer features are
        features = varied
        if np.abs(residuals).max() <= exact:
            features = _needed(X, y, varied)
        if _is_no_chance(y, residuals, len(features), len(features)):
            return features
    if len(y) <= len(varied) + 3:
        step = step_of(y)
        tolerance = exact
        if step <= NEARLY_EXACT * np.std(y):
            tolerance = max(exact, step)
        for features in _few_features(X, y, varied, tolerance):
            residuals = _residuals(X, y, features)
            if residuals is None or np.abs(residuals).max() > tolerance:
                continue
            if _is_no_chance(y, residuals, len(features), len(varied)):
                return features
    return None


def _needed(X: Array, y: Array, features: AnyArray) -> AnyArray:
    """Return the features of an exact relation without those that rounding gave.

    A feature goes if its coefficient is rounding and the relation stays exact.
    """
    spread = X[:, features].std(axis=0)
    parts = np.abs(least_squares(X, y, features).coefficients[features]) * spread
    fewer = features[parts > SMALLEST_SHARE * parts.max()]
    residuals = _residuals(X, y, fewer)
    is_exact = residuals is not None and np.abs(residuals).max() <= EXACT * np.std(y)
    return fewer if is_exact else features


def _few_features(X: Array, y: Array, varied: AnyArray, tolerance: float) -> Iterator[AnyArray]:
    """Yield small sets of features that may give all labels to a tolerance.

    As many features as there are labels give any.
    """
    Z = X[:, varied] - X[:, varied].mean(axis=0)
    Z = Z / np.linalg.norm(Z, axis=0)
    target = y - y.mean()
    most = min(MOST_TERMS, int(0.8 * len(y)) - 2)
    for search in (_one_or_two, _one_by_one, _fewest):
        chosen = search(Z, target, most, tolerance)
        if chosen is not None:
            yield varied[chosen]


def _one_or_two(Z: Array, target: Array, most: int, tolerance: float) -> AnyArray | None:
    """Return the feature, or else the two, that leave the least residual, if it is small enough."""
    n_features = Z.shape[1]
    if n_features > MOST_IN_PAIRS:
        return None
    for n_terms in range(1, min(most, 2) + 1):
        sets = [np.array(chosen) for chosen in combinations(range(n_features), n_terms)]
        left = [_residual(Z[:, chosen], target) for chosen in sets]
        sizes = [float(np.abs(residual).max()) for residual in left]
        if min(sizes, default=np.inf) <= tolerance:
            return sets[int(np.argmin(sizes))]
    return None


def _residual(Z: Array, target: Array) -> Array:
    """Return what least squares on some features leaves of a target, both of mean 0."""
    return np.asarray(target - Z @ np.linalg.lstsq(Z, target, rcond=None)[0])


def _one_by_one(Z: Array, target: Array, most: int, tolerance: float) -> AnyArray | None:
    """Return features that leave no residual above a tolerance, or None if they are too many.

    Each is added because it tells most of what is left.
    """
    chosen: list[int] = []
    residual = target
    while len(chosen) < most:
        tells = np.abs(Z.T @ residual)
        tells[chosen] = -1.0
        chosen.append(int(np.argmax(tells)))
        residual = _residual(Z[:, chosen], target)
        if np.abs(residual).max() <= tolerance:
            return np.array(sorted(chosen))
    return None


def _fewest(Z: Array, target: Array, most: int, tolerance: float) -> AnyArray | None:
    """Return the features of the solution of smallest coefficients, their absolute sum.

    It gives all labels to a tolerance. None if they are too many.
    """
    n_labels, n_features = Z.shape
    if n_labels > MOST_LABELS or n_features > MOST_FEATURES or most < 1:
        return None
    size = np.linalg.norm(target)
    both_signs = np.hstack([Z, -Z])
    labels = target / size
    limits: dict[str, Array] = {"A_eq": both_signs, "b_eq": labels}
    if tolerance > EXACT * size:
        off = tolerance / size
        limits = {
            "A_ub": np.vstack([both_signs, -both_signs]),
            "b_ub": np.concatenate([labels + off, off - labels]),
        }
    solution = linprog(np.ones(2 * n_features), method="highs", **limits)
    if not solution.success:
        return None
    sizes = np.abs(solution.x[:n_features] - solution.x[n_features:])
    chosen = np.flatnonzero(sizes > SMALLEST_SHARE * sizes.max())
    return chosen if len(chosen) <= most else None


def _residuals(X: Array, y: Array, features: AnyArray) -> Array | None:
    """Return what the best line on some features leaves of the labels (l,).

    None if it is not nearly exact. Most tables need a few of the labels to tell.
    """
    possible = len(features) + ROWS_TRIED
    if len(y) > 2 * possible:
        places = np.linspace(0, len(y) - 1, possible).round().astype(int)
        line = least_squares(X[places], y[places], features)
        left = y[places] - line.at(X[places])
        if np.sqrt(np.mean(left**2)) > NEARLY_EXACT * np.std(y):
            return None
    residuals = y - least_squares(X, y, features).at(X)
    free = len(y) - len(features) - 1
    # As in generalised cross-validation: few free labels make residuals small.
    error = np.sqrt(np.mean(residuals**2)) * len(y) / max(free, 1)
    if error > NEARLY_EXACT * np.std(y):
        return None
    return residuals


def _is_no_chance(y: Array, residuals: Array, n_terms: int, n_features: int) -> bool:
    """Return whether a line on some features agrees with all labels beyond chance."""
    # The F test of the line. Labels that are multiples of a step, such as whole numbers, agree to
    # the last digit by chance too: their residuals count at least what rounding to the step leaves.
    # Labels that occur twice, such as zeros, are one, and a few that are far off make no spread.
    # Every set of as many features has its chance.
    values = np.unique(y)
    free = len(values) - n_terms - 1
    if free < 1:
        return False
    variance = float(np.var(y))
    typical = float(np.median((values - np.median(values)) ** 2))
    noise = max(float(np.mean(residuals**2)), step_of(y) ** 2 / 12.0, EXACT**2 * variance)
    share = min(noise / min(variance, 2.0 * typical), 1.0)
    chance = float(beta.logcdf(share, 0.5 * free, 0.5 * n_terms))
    sets = gammaln(n_features + 1) - gammaln(n_terms + 1) - gammaln(n_features - n_terms + 1)
    return bool(chance + sets <= -np.log(ONCE_IN))


def step_of(y: Array) -> float:
    """Return the largest number of which all differences of labels (l,) are multiples.

    Steps below a tiny share of their range are that share.

    >>> round(step_of(np.array([1.25, 3.0, 7.75, 1.5])), 9)
    0.25
    """
    differences = np.diff(np.unique(y))
    if not len(differences):
        return 0.0
    least = EXACT * float(np.ptp(y))
    step = float(differences[0])
    extent = step
    for difference in differences[1:].tolist():
        smaller = difference
        while smaller > least:  # Euclid's algorithm
            step, smaller = smaller, abs(step - round(step / smaller) * smaller)
        if step <= 2.0 * least:
            return least
        # Rounding grows by each quotient; the extent is a multiple of the step to the last digit.
        extent += difference
        step = extent / round(extent / step)
    return step
