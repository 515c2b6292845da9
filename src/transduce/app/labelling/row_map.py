"""The map of the labelling page: rows along the two leading eigenvectors of their graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from transduce.core.types import AnyArray, Array
from transduce.methods.spectral_graph import Spectrum

MOST_ON_MAP = 5_000  # rows that are drawn; of a larger table a random sample
MARGIN = 0.03  # of the unit square that stays free
OUTERMOST = 0.005  # share of the rows, at either end, that are moved to the edge


@dataclass(frozen=True, eq=False)
class RowMap:
    """Where rows lie in the unit square."""

    rows: AnyArray  # (p,) the rows that are drawn
    every_place: Array  # (n, 2) where each row of the table lies

    @property
    def places(self) -> Array:
        """Where the rows that are drawn lie, shape (p, 2)."""
        return self.every_place[self.rows]

    def place(self, row: int) -> tuple[float, float]:
        """Return where a row lies, whether it is drawn or not."""
        x, y = self.every_place[row]
        return float(x), float(y)


def draw_map(spectrum: Spectrum, seed: int = 0) -> RowMap:
    """Return the map of a table, on which at most `MOST_ON_MAP` rows are drawn."""
    n_rows = len(spectrum.components)
    rows = np.arange(n_rows)
    if n_rows > MOST_ON_MAP:
        random = np.random.default_rng(seed)
        rows = np.sort(random.choice(n_rows, MOST_ON_MAP, replace=False))
    return RowMap(rows, _place_components(spectrum))


def _place_components(spectrum: Spectrum) -> Array:
    """Return a place for each row: components side by side, each as wide as its share of rows."""
    n_rows = len(spectrum.components)
    within = np.full((n_rows, 2), 0.5)
    order = np.argsort(spectrum.components, kind="stable")
    sizes = np.bincount(spectrum.components, minlength=spectrum.count)
    vectors = _leading_vectors(spectrum)
    for rows in np.split(order, np.cumsum(sizes)[:-1]):
        if len(rows) > 2:
            within[rows] = _fit_into_square(vectors[rows])
    # The largest component comes first.
    from_largest = np.argsort(-sizes, kind="stable")
    left = np.empty(spectrum.count)
    left[from_largest] = np.cumsum(sizes[from_largest]) - sizes[from_largest]
    width = sizes[spectrum.components]
    across = (left[spectrum.components] + within[:, 0] * width) / n_rows
    return np.column_stack([across, within[:, 1]])


def _leading_vectors(spectrum: Spectrum) -> Array:
    """Return the two leading eigenvectors, as the report's map shows them; 0 where one lacks."""
    n_vectors = min(spectrum.vectors.shape[1], 2)
    roots = np.sqrt(np.maximum(spectrum.degrees, np.finfo(float).tiny))
    leading = np.zeros((len(spectrum.components), 2))
    leading[:, :n_vectors] = spectrum.vectors[:, :n_vectors] / roots[:, None]
    return leading


def _fit_into_square(points: Array) -> Array:
    """Return points in the unit square, each coordinate in the order it has."""
    # A coordinate is the mean of the scaled value, which shows gaps between groups, and of its
    # rank, since eigenvectors crowd most rows into a corner. The outermost rows are moved to the
    # edge.
    low = np.quantile(points, OUTERMOST, axis=0)
    high = np.quantile(points, 1.0 - OUTERMOST, axis=0)
    extent = high - low
    scaled = np.full(points.shape, 0.5)
    np.divide(points - low, extent, out=scaled, where=extent > 0.0)
    scaled = np.clip(scaled, 0.0, 1.0)
    ranks = (rankdata(points, axis=0) - 0.5) / len(points)
    return MARGIN + (1.0 - 2.0 * MARGIN) * (scaled + ranks) / 2.0
