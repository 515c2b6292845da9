"""Whether labelled and unlabelled rows differ, and whether errors drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import linalg, sparse
from scipy.optimize import brentq
from scipy.stats import mannwhitneyu, norm, rankdata
from sklearn.utils.validation import _num_samples

from transduce.core import arrays, checks
from transduce.core.checks import check_random_state
from transduce.core.findings import SUSPECTED, Drift, Verdict
from transduce.core.ranks import leaves_of, random_trees
from transduce.core.row_order import content_order, number_rows
from transduce.core.types import AnyArray, Array, Mask, OtherRows, Rows, Seed, Units
from transduce.core.words import quoted
from transduce.model_selection.folds import group_codes

N_FOLDS = 5
N_TREES = 60
MOST_LEVELS = 10  # of a column of texts that are compared, the most frequent
MOST_WORDS = 200  # likewise, of texts, and columns of a sparse matrix
RIDGE = 1.0  # of kernel ridge regression; kernels have diagonals about 1
# Of the regression of each column on the others, in units of its variance. Where a column was
# filled by ridge regression, 67, 93 and 100 % of the tables with 30, 60 and 220 labels were found
# with 0.001, 0.01 and 0.1 alike.
RESIDUAL_RIDGE = 0.01
FEW_STEPS = 8  # values of a feature below which a product counts the rows up to each
MOST_STEPS = 200  # features above which ranks are compared instead of distribution functions
FEWEST = 5  # with fewer rows on either side nothing can be seen
# P-values up to this make the verdict "shifted", and "drift": the share found by mistake.
SIGNIFICANCE = 0.01
POWER = 0.8  # with which a difference called detectable is found
FEWEST_ALONG = 8  # calibration rows below which no drift can be seen
N_ORDERS = 999
APART_ALONG = 0.1  # p-value of places along the order below which they are not taken for chance


@dataclass(frozen=True, eq=False, repr=False)
class Exchangeability:
    """What a comparison of labelled and unlabelled rows has found.

    Parameters
    ----------
    p_value : float
        Probability of so large a difference if rows were labelled at random.
    auc : float
        How well a classifier that has not seen a row tells whether it is unlabelled: 0.5 is chance,
        1 always right.
    features : pandas.DataFrame
        One line a feature, the most different first: *distance* of its distributions, from 0 to 1;
        *residuals*, how differently the other features explain it in the two kinds of rows, from 0
        to 1; and the p-value of both.
    n_labelled, n_unlabelled, n_permutations, of_rows : int
        Rows compared, permutations behind the p-values, and rows given.
    detectable : float or None
        The smallest shift of one feature, in standard deviations, that is found at least four times
        in five.
    overlap : tuple of two arrays, optional
        Out-of-fold scores at labelled and at unlabelled rows: larger the more a row looks
        unlabelled.
    other : {"unlabelled", "later"}
        What the rows without a label are called in sentences.
    by_column : bool
        Whether features are called as the columns of a table, which may be left out.
    running : tuple of str
        Columns that are running numbers, or times, along which labels stop.
    whole : str
        What to do about a column of which whole values were labelled, in a sentence; "" without
        one.
    units : {"rows", "groups"}
        What was compared; of groups one row each.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.conformal import exchangeability_test
    >>> found = exchangeability_test(np.arange(40.0)[:, None], np.arange(40) < 20, random_state=0)
    >>> found.shifted, found.p_value <= 0.01
    (True, True)
    """

    p_value: float
    auc: float
    features: pd.DataFrame
    n_labelled: int
    n_unlabelled: int
    n_permutations: int
    of_rows: int = 0
    detectable: float | None = None
    overlap: tuple[Array, Array] | None = None
    other: OtherRows = "unlabelled"
    by_column: bool = False
    running: tuple[str, ...] = ()
    whole: str = ""
    units: Units = "rows"

    def named(self, names: Sequence[Any]) -> Exchangeability:
        """Return the same with names for the columns of an array.

        Of features of one name the most different stays.
        """
        new_names = {f"column {j}": str(name) for j, name in enumerate(names)}
        index = [new_names.get(name, name) for name in self.features.index]
        features = self.features.set_axis(index, axis=0)
        return replace(self, features=features[~features.index.duplicated()], by_column=True)

    @property
    def shifted(self) -> bool:
        """Whether the unlabelled rows differ from the labelled ones by more than chance."""
        return self.p_value <= SIGNIFICANCE

    @property
    def verdict(self) -> Verdict:
        """The finding, as guarantees carry it; ``str`` makes a sentence of it."""
        enough = min(self.n_labelled, self.n_unlabelled) >= FEWEST
        p_value = None
        if enough and not self.features.empty:
            p_value = self.p_value
        limit = 0.0
        if self.shifted:
            limit = 0.05
        elif self.p_value < SUSPECTED:
            limit = SUSPECTED
        differ = self.features.index[self.features["p_value"] <= limit]
        names = tuple(map(str, differ))
        columns: tuple[str, ...] = ()
        running: tuple[str, ...] = ()
        if self.by_column:
            columns = names
            if self.shifted and not names:
                # Several differ together, and none by itself: the most different is named.
                columns = tuple(map(str, self.features.index[:1]))
            running = tuple(name for name in self.running if name in names)
        return Verdict(
            p_value,
            self.shifted,
            self.n_labelled,
            self.n_unlabelled,
            names,
            self.detectable,
            other=self.other,
            units=self.units,
            columns=columns,
            running=running,
            whole=self.whole,
        )

    def __repr__(self) -> str:
        if self.verdict.p_value is None:
            return str(self.verdict)
        n_used = self.n_labelled + self.n_unlabelled
        sampled = ""
        if n_used < self.of_rows:
            sampled = f", a random {n_used} of all {self.of_rows} rows"
        return (
            f"{self.verdict} A classifier tells {self.n_labelled} labelled from "
            f"{self.n_unlabelled} {self.other} rows with an area under the curve of "
            f"{self.auc:.2f}, 0.5 being chance ({self.n_permutations} permutations{sampled})."
        )


def exchangeability_test(
    X: Rows,
    labelled: Any,
    *,
    n_permutations: int = 499,
    max_rows: int = 1000,
    within: Any = None,
    random_state: Seed = 0,
) -> Exchangeability:
    """Test whether rows may have been labelled at random, by their features.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, d), or sequence of n texts
        Features of all rows; text and missing values are welcome.
    labelled : boolean array-like of shape (n,)
        True where a row has a label.
    n_permutations : int, default=499
        The p-value is a multiple of ``1 / (n_permutations + 1)``.
    max_rows : int, default=1000
        From more rows this many are drawn at random, half of each kind if there are enough.
    within : integer array of shape (n,), optional
        Categories within which chance may have chosen: permutations then stay within them.
    random_state : int, RandomState or None, default=0
        Seed of folds, trees, permutations and drawn rows.

    Returns
    -------
    Exchangeability
        p-value, area under the curve, and which features differ; its ``verdict`` prints as a
        sentence.

    Notes
    -----
    The statistics are the areas under the curve of out-of-fold scores of two
    classifiers (Lopez-Paz, Oquab 2017), ridge regression on ranks and on the leaves that rows share
    in random trees, the largest distance of a feature (Kolmogorov-Smirnov; with more than 200
    features ``|2 auc - 1|``), and the largest difference of residuals: the ranks of every feature
    are regressed on those of all others over all rows, and ``|2 auc - 1|`` says how well the
    absolute residual tells the two kinds of rows apart. A column that was imputed where the label
    is missing is explained too well there. Folds, trees, ranks and residuals do not depend on which
    rows are labelled, so a permutation costs one matrix product. The largest of the four, each in
    units of its own spread over the permutations, is compared with that of every permutation, which
    is exact in finite samples.

    A large p-value does not prove that rows are exchangeable: what chose the labels may not be
    among the features.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.conformal import exchangeability_test
    >>> X, labelled = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) < 80
    >>> X[~labelled, 1] += 1.0
    >>> print(exchangeability_test(X, labelled).verdict)
    Labelled and unlabelled rows differ (p = 0.002, most of all in column 1). ...
    """
    mask = np.asarray(labelled)
    random = check_random_state(random_state)
    categories = _read_categories(X, mask, within)
    checks.check_whole("n_permutations", n_permutations, least=1)
    checks.check_whole("max_rows", max_rows, least=2 * FEWEST)
    kinds = mask + 2 * categories
    order = content_order(number_rows(X), kinds)
    rows = order[_draw_rows(mask[order], int(max_rows), random)]
    features, names = table_features(X, rows)
    compared = _compare(features, names, ~mask[rows], categories[rows], n_permutations, random)
    return replace(compared, of_rows=len(mask))


def _compare(
    features: Array,
    names: list[str],
    unlabelled: Mask,
    categories: AnyArray,
    n_permutations: int,
    random: np.random.RandomState,
) -> Exchangeability:
    """Return how labelled and unlabelled rows differ, by their features (n, d)."""
    n = int((~unlabelled).sum())
    m = int(unlabelled.sum())
    if min(n, m) < FEWEST or not names:
        empty = pd.DataFrame({"distance": 0.0, "residuals": 0.0, "p_value": 1.0}, index=names)
        return Exchangeability(1.0, 0.5, empty, n, m, n_permutations=0)
    members = _permuted(unlabelled, categories, n_permutations, random)
    ranks = _ranks(features)
    scores = _scores(ranks, members, random)
    areas = [_areas(part, members) for part in scores]
    distances = _distances(ranks, members)
    residuals = _residuals_apart(ranks, members)
    statistics = np.array([*areas, residuals.max(axis=0), distances.max(axis=0)])
    largest = _largest(statistics, statistics)
    better = int(areas[1][0] > areas[0][0])
    return Exchangeability(
        p_value=float(np.mean(largest >= largest[0] - 1e-9)),
        auc=float(areas[better][0]),
        features=_by_feature(names, residuals, distances),
        n_labelled=n,
        n_unlabelled=m,
        n_permutations=n_permutations,
        detectable=_detectable(statistics[:, 1:], features.shape[1], n, m),
        overlap=(scores[better][~unlabelled, 0], scores[better][unlabelled, 0]),
    )


def _read_categories(X: Rows, labelled: Mask, within: Any) -> AnyArray:
    """Return the category of each row by number; a ValueError if there is not one for each."""
    n_rows = _num_samples(X)
    if labelled.dtype.kind != "b" or labelled.shape != (n_rows,):
        raise ValueError(
            f"labelled must be True or False for each of the {n_rows} rows: pd.notna(y)."
        )
    if within is None:
        return np.zeros(n_rows, dtype=int)
    if np.shape(within) != labelled.shape:
        raise ValueError(f"within must name the category of each of the {n_rows} rows.")
    return group_codes(within)


def _permuted(
    unlabelled: Mask, cells: AnyArray, number: int, random: np.random.RandomState
) -> Array:
    """Return memberships as they are, and so many permutations within cells: (n, number + 1)."""
    members = np.repeat(unlabelled[:, None], number + 1, axis=1).astype(float)
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        for column in range(1, number + 1):
            members[rows, column] = random.permutation(unlabelled[rows])
    return members


def _largest(statistics: Array, reference: Array) -> Array:
    """Return the largest of the statistics, each in units of its spread over the permutations."""
    centre = reference.mean(axis=1, keepdims=True)
    spread = reference.std(axis=1, keepdims=True)
    scaled = (statistics - centre) / np.maximum(spread, 1e-12)
    return np.asarray(scaled.max(axis=0))


def _by_feature(names: list[str], residuals: Array, distances: Array) -> pd.DataFrame:
    """Return how far apart rows are in every feature, the most different first.

    The first column of residuals and distances (d, b) is that of the rows as they are.
    """
    # Both statistics, in units of their spread over the permutations, are compared with the largest
    # of any feature.
    reference = np.array([residuals.max(axis=0), distances.max(axis=0)])
    largest = _largest(reference, reference)
    of_feature = _largest(np.array([residuals[:, 0], distances[:, 0]]), reference)
    p_values = np.mean(largest >= of_feature[:, None] - 1e-9, axis=1)
    columns = {"distance": distances[:, 0], "residuals": residuals[:, 0], "p_value": p_values}
    return pd.DataFrame(columns, names).iloc[np.argsort(-of_feature, kind="stable")]


def _detectable(
    permuted: Array,
    n_features: int,
    n: int,
    m: int,
) -> float | None:
    """Return the smallest shift of one feature that is found in most cases.

    It is in standard deviations.
    """
    allowed = int(np.floor(SIGNIFICANCE * (permuted.shape[1] + 1) + 1e-9))
    if allowed < 1:
        return None
    critical = np.sort(_largest(permuted, permuted))[-allowed]
    needed = permuted[-1].mean() + permuted[-1].std() * critical
    # The observed distance is no smaller than the one that `distance_at` gives, so such a shift is
    # found at least so often.
    distance_at = _areas_apart if n_features > MOST_STEPS else _halfway_apart

    def surplus(shift: float) -> float:
        distance, error = distance_at(shift, n, m)
        return float(distance - norm.ppf(POWER) * error - needed)

    if not surplus(10.0) > 0.0 > surplus(0.0):
        return None
    return float(brentq(surplus, 0.0, 10.0))


def _halfway_apart(shift: float, n: int, m: int) -> tuple[float, float]:
    """Return by how much two normal distributions differ halfway, with its standard error."""
    p = float(norm.cdf(-shift / 2.0))
    variance = p * (1.0 - p) * (1.0 / n + 1.0 / m)
    return 1.0 - 2.0 * p, float(np.sqrt(variance))


def _areas_apart(shift: float, n: int, m: int) -> tuple[float, float]:
    """Return the same of twice the area under the curve, less 1.

    The standard error is Hanley and McNeil's.
    """
    area = float(norm.cdf(shift / np.sqrt(2.0)))
    of_labelled = (n - 1) * (area / (2.0 - area) - area**2)
    of_unlabelled = (m - 1) * (2.0 * area**2 / (1.0 + area) - area**2)
    pairs = of_labelled + of_unlabelled
    error = float(np.sqrt((area * (1.0 - area) + pairs) / (n * m)))
    return 2.0 * area - 1.0, 2.0 * error


def _draw_rows(mask: Mask, most: int, random: np.random.RandomState) -> AnyArray:
    """Return all rows if they are few, else as many as allowed, of the rarer kind first."""
    if len(mask) <= most:
        return np.arange(len(mask))
    rarer, other = sorted((np.flatnonzero(mask), np.flatnonzero(~mask)), key=len)
    n_rarer = min(len(rarer), most // 2)
    first = random.choice(rarer, n_rarer, replace=False)
    second = random.choice(other, most - n_rarer, replace=False)
    return np.sort(np.concatenate([first, second]))


def _ranks(X: Array) -> Array:
    """Return the ranks of rows (n, d) in every column."""
    # As scipy's, which take twice as long where no values are equal.
    columns = np.ascontiguousarray(X.T)
    places = np.arange(1.0, len(X) + 1.0)
    ranks = np.empty(columns.shape)
    tied = np.empty(len(columns), dtype=bool)
    for j, column in enumerate(columns):
        order = np.argsort(column)
        ranks[j, order] = places
        ordered = column[order]
        tied[j] = (ordered[1:] == ordered[:-1]).any()
    ranks[tied] = rankdata(columns[tied], axis=1)
    return ranks.T


def _scores(ranks: Array, members: Array, random: np.random.RandomState) -> list[Array]:
    """Return out-of-fold scores of memberships (n, b), by ranks and by the leaves of trees."""
    n = len(ranks)
    # Several divisions into folds: the fewer the rows, the more the scores depend on it.
    n_divisions = 5 if n <= 400 else 2
    folds = [random.permutation(n) % N_FOLDS for _ in range(n_divisions)]
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    trees = random_trees(ranks, N_TREES, depth=6, fewest=2, seed=random.randint(2**31 - 1))
    places = leaves_of(trees, ranks) + 2**7 * np.arange(N_TREES)
    starts = np.arange(0, places.size + 1, N_TREES)
    leaves = sparse.csr_array((np.ones(places.size), places.ravel(), starts))
    by_ranks = ranks @ ranks.T / ranks.shape[1]
    by_leaves = (leaves @ leaves.T).toarray() / N_TREES
    return [_out_of_fold(K, folds, members) for K in (by_ranks, by_leaves)]


def _out_of_fold(K: Array, folds: list[AnyArray], members: Array) -> Array:
    """Return what kernel ridge regression predicts for each fold from the others."""
    # The residuals of a fold that is left out are G_kk^-1 G_k y, with G = (K + RIDGE I)^-1.
    factor = linalg.cholesky(K + RIDGE * np.eye(len(K)))
    half = linalg.lapack.dpotri(factor)[0]
    G = half + np.triu(half, 1).T
    product = G @ members
    scores = np.zeros_like(members)
    for fold in folds:
        for k in range(N_FOLDS):
            rows = np.flatnonzero(fold == k)
            n_others = len(K) - len(rows)
            sum_of_others = members.sum(axis=0) - members[rows].sum(axis=0)
            mean = sum_of_others / n_others
            centred = product[rows] - np.outer(G[rows].sum(axis=1), mean)
            residuals = linalg.solve(G[np.ix_(rows, rows)], centred, assume_a="pos")
            scores[rows] += members[rows] - mean - residuals
    return scores / len(folds)


def _areas(scores: Array, members: Array) -> Array:
    """Return the area under the curve of every column of scores for its memberships (n, b)."""
    ranks = _ranks(np.round(scores, 12))
    return _area_of_ranks((ranks * members).sum(axis=0), members)


def _area_of_ranks(sums: Array, members: Array) -> Array:
    """Return the area under the curve by the sums of the members' ranks."""
    n_members = members[:, 0].sum()
    n_pairs = n_members * (len(members) - n_members)
    return np.asarray((sums - n_members * (n_members + 1) / 2) / n_pairs)


def _distances(ranks: Array, members: Array) -> Array:
    """Return how far members and others are apart in every feature, for all memberships: (d, b)."""
    if ranks.shape[1] > MOST_STEPS:
        return np.abs(2.0 * _area_of_ranks(ranks.T @ members, members) - 1.0)
    return np.array([_steps_apart(column, members) for column in ranks.T])


def _residuals_apart(ranks: Array, members: Array) -> Array:
    """Return how well absolute residuals of every feature (d, b) tell members: |2 auc - 1|."""
    # Rounded, so that the last digits make no difference.
    sizes = np.asarray(np.abs(_residuals(ranks)).round(10), dtype=float)
    return np.abs(2.0 * _area_of_ranks(_ranks(sizes).T @ members, members) - 1.0)


def _residuals(ranks: Array) -> Array:
    """Return residuals (n, d) of every column of ranks, by ridge regression on all others."""
    # With Omega = (Z'Z / n + r I)^-1 they are Z Omega, each column divided by its element of
    # Omega's diagonal: the formula of partial regression, for the rows of Z and those of sqrt(n r)
    # I together. With more columns than rows the same by G = (Z Z' / n + r I)^-1, since Z Omega = G
    # Z.
    n, d = ranks.shape
    Z = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    if d <= n:
        omega = linalg.inv(Z.T @ Z / n + RESIDUAL_RIDGE * np.eye(d))
        return np.asarray(Z @ omega / np.diag(omega))
    product = linalg.solve(Z @ Z.T / n + RESIDUAL_RIDGE * np.eye(n), Z, assume_a="pos")
    diagonal = (1.0 - np.einsum("ij,ij->j", Z, product) / n) / RESIDUAL_RIDGE
    return np.asarray(product / diagonal)


def _steps_apart(column: Array, members: Array) -> Array:
    """Return the Kolmogorov-Smirnov distance of members and others in one feature."""
    values, counts = np.unique(column, return_counts=True)  # steps at equal values are one
    n_members = members[:, 0].sum()
    n = len(members)
    below = np.cumsum(counts)
    if len(values) < FEW_STEPS:
        members_below = (column <= values[:, None]).astype(float) @ members
    else:
        ordered = members[np.argsort(column, kind="stable")]
        members_below = np.cumsum(ordered, axis=0)[below - 1]
    distances = n * members_below - n_members * below[:, None]
    largest = np.maximum(distances.max(axis=0), -distances.min(axis=0))
    return np.asarray(largest / (n_members * (n - n_members)))


def drift_along(
    order: Array,
    labelled: Mask,
    at: Array,
    errors: list[Array],
) -> Drift:
    """Return whether kinds of rows lie apart along an order (n,), and whether errors drift.

    Errors are those of calibration rows at places `at` (c,) of the order.
    """
    late = order[~labelled]
    early = order[labelled]
    later = 0.5
    lie_apart = False
    if len(late) and len(early):
        test = mannwhitneyu(late, early)
        later = float(test.statistic) / (len(late) * len(early))
        lie_apart = bool(test.pvalue < APART_ALONG)
    c = len(at)
    if c < FEWEST_ALONG or np.ptp(at) == 0.0:
        return Drift(later, lie_apart, None, False)
    random = np.random.RandomState(0)
    by_order = np.argsort(at, kind="stable")  # whatever order the rows came in
    at = at[by_order]
    errors = [error[by_order] for error in errors]
    places = _unit(rankdata(at))
    orders = np.array([places, *(random.permutation(places) for _ in range(N_ORDERS))])
    ranked = np.column_stack([_unit(rankdata(error)) for error in errors])
    correlations = np.abs(orders @ ranked).max(axis=1)  # as they are first, then of permutations
    p_value = float(np.mean(correlations >= correlations[0] - 1e-12))
    needed = norm.ppf(1.0 - SIGNIFICANCE / (2.0 * len(errors))) + norm.ppf(POWER)
    # Fisher's transformation has a standard error of about 1 / sqrt(c - 3).
    detectable: float | None = float(np.tanh(needed / np.sqrt(c - 3)))
    if detectable is not None and detectable >= 0.95:
        detectable = None
    return Drift(later, lie_apart, p_value, p_value <= SIGNIFICANCE, detectable)


def _unit(ranks: Array) -> Array:
    """Return ranks with mean 0 and length 1; all 0 if they are equal."""
    ranks = ranks - ranks.mean()
    length = float(np.linalg.norm(ranks))
    if length > 0.0:
        ranks = ranks / length
    return np.asarray(ranks)


# ------------------------------------------------------------------------ any table as numbers


def table_features(X: Rows, rows: Rows) -> tuple[Array, list[str]]:
    """Return some rows of a table as numbers, and the names of the columns."""
    if arrays.is_foreign(X):  # these rows alone go to the host
        X = arrays.to_numpy(arrays.pick(X, rows))
        rows = np.arange(len(rows))
    if sparse.issparse(X):
        return _sparse_columns(X.tocsr()[rows])
    if isinstance(X, pd.DataFrame):
        table = X.iloc[rows].reset_index(drop=True)
        columns = [(repr(name), table.iloc[:, j]) for j, name in enumerate(X.columns)]
    elif hasattr(X, "columns") and hasattr(X, "shape"):  # of polars
        columns = []
        for name in X.columns:
            cells = X[name].gather(rows).to_list()
            columns.append((repr(name), pd.Series(cells)))
    else:
        array = np.asarray(X)
        if array.ndim == 1:
            return _word_indicators([str(array[i]) for i in rows])
        array = array[rows].reshape(len(rows), -1)
        names = [f"column {j}" for j in range(array.shape[1])]
        if array.dtype.kind == "f" and np.isfinite(array).all():  # numbers, as most arrays are
            return _varying(array.astype(float, copy=False), names)
        columns = [(name, _column_of(array[:, j])) for j, name in enumerate(names)]
    parts: list[tuple[str, Array]] = []
    for name, column in columns:
        parts += _numbers(name, column)
    matrix = np.zeros((len(rows), 0))
    if parts:
        matrix = np.column_stack([values for _, values in parts])
    return _varying(matrix, [name for name, _ in parts])


def _column_of(cells: AnyArray) -> pd.Series:
    """Return cells (n,) as a column of the type that all of them have."""
    column = pd.Series(cells)
    try:
        return column.infer_objects()
    except OverflowError:  # of pandas 2, for a whole number beyond double precision
        return column


def _numbers(name: str, column: pd.Series) -> list[tuple[str, Array]]:
    """Return one column as one or several columns of numbers."""
    missing = column.isna().to_numpy()
    if pd.api.types.is_datetime64_any_dtype(column):
        column = (column - column.min()).dt.total_seconds()
    elif pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    elif isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    try:
        numeric = pd.to_numeric(column, errors="coerce")
    except OverflowError as error:
        raise ValueError(
            f"{name} holds a whole number of more than 308 digits: leave the column out, "
            "or make text of it."
        ) from error
    values = numeric.to_numpy(dtype=float, na_value=np.nan)
    if np.isnan(values[~missing]).any():
        texts = column.astype(str).to_numpy()
        common = pd.Series(texts[~missing]).value_counts().index[:MOST_LEVELS]
        parts = [(f"{name} is {quoted(level)}", (texts == level).astype(float)) for level in common]
    else:
        middle = 0.0
        if not missing.all():
            middle = float(np.median(values[~missing]))
        parts = [(name, np.where(missing, middle, values))]
    if missing.any():
        parts.insert(1, (f"{name} is missing", missing.astype(float)))
    return parts


def _sparse_columns(X: Rows) -> tuple[Array, list[str]]:
    """Return the columns that most rows have an entry in."""
    filled = np.asarray((X != 0).sum(axis=0)).ravel()
    keep = np.sort(np.argsort(-filled, kind="stable")[:MOST_WORDS])
    return _varying(X[:, keep].toarray().astype(float), [f"column {j}" for j in keep])


def _word_indicators(texts: list[str]) -> tuple[Array, list[str]]:
    """Return which of the most frequent words each text has."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        words = CountVectorizer(max_features=MOST_WORDS, binary=True).fit(texts)
    except ValueError:  # no words at all
        return np.zeros((len(texts), 0)), []
    names = [f"the word {quoted(word)}" for word in words.get_feature_names_out()]
    return _varying(words.transform(texts).toarray().astype(float), names)


def _varying(matrix: Array, names: list[str]) -> tuple[Array, list[str]]:
    """Return the columns of a matrix (n, k) that vary, all numbers finite.

    The matrix is changed.
    """
    # Infinities keep their place in the order; most columns are used only through their order.
    largest = np.finfo(float).max / 4
    np.clip(np.nan_to_num(matrix, copy=False, nan=0.0), -largest, largest, out=matrix)
    keep = np.flatnonzero((matrix != matrix[:1]).any(axis=0))
    return np.ascontiguousarray(matrix[:, keep]), [names[j] for j in keep]
