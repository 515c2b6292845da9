"""Rows of a neighbour graph in the coordinates of its spectrum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.methods.spectral_graph import Spectrum


class GraphFeatures:
    """Rows of a graph in the coordinates of its spectrum.

    Shapes: prior (d + 1,), component (n,), sizes (n_components,).
    """

    # Every connected component of the graph is a table of its own: a row of a component of m rows
    # has the features sqrt(m) [null, v_1, v_2, ...], its entries in the eigenvectors of that
    # component, with prior variances 1, 1, 1/4, 1/9, ...: the spectral graph transducer's
    # penalties turned round. Features of different components are unrelated.

    def __init__(self, spectrum: Spectrum) -> None:
        self._vectors = spectrum.vectors
        self.component = spectrum.components
        self.sizes = np.bincount(self.component, minlength=spectrum.count)
        self._scale = np.sqrt(self.sizes[self.component])
        self._null = _null_vectors(spectrum) * self._scale
        ranks = np.arange(1.0, self._vectors.shape[1] + 1)
        self.prior = np.concatenate([[1.0], 1.0 / ranks**2])
        self._order: AnyArray | None = None
        if spectrum.count > 1:
            self._order = np.argsort(self.component, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])

    def __len__(self) -> int:
        return len(self.component)

    def rows_of(self, component: int) -> AnyArray | slice:
        """Return the rows of a component; all of them as a slice if there is one."""
        if self._order is None:
            return slice(None)
        start = self._starts[component]
        stop = self._starts[component + 1]
        return self._order[start:stop]

    def at_rows(self, rows: AnyArray | slice) -> Array:
        """Return the features of rows, each in the coordinates of its own component."""
        vectors = self._vectors[rows] * self._scale[rows][:, None]
        return np.concatenate([self._null[rows][:, None], vectors], axis=1)

    def products(self, rows: AnyArray | slice, weights: Array) -> Array:
        """Return the products of rows of one component with weights of shape (d + 1, k).

        No features are formed.
        """
        vectors = self._vectors
        if not isinstance(rows, slice):
            vectors = vectors[rows]
        inner = vectors @ weights[1:].astype(vectors.dtype)
        return self._null[rows][:, None] * weights[0] + self._scale[rows][:, None] * inner

    def expand(self, weights: Mapping[int, Array]) -> Array:
        """Return every row's product with the weights of its component, 0 where there are none."""
        products = np.zeros(len(self))
        for component, vector in weights.items():
            rows = self.rows_of(component)
            products[rows] = self.products(rows, vector[:, None])[:, 0]
        return products

    def weigh_squares(self, weights: Array) -> Array:
        """Return the products of every row's squared features with weights of shape (d + 1,)."""
        squares = np.einsum("ij,ij,j->i", self._vectors, self._vectors, weights[1:])
        return np.asarray(self._null**2 * weights[0] + self._scale**2 * squares)


def _null_vectors(spectrum: Spectrum) -> Array:
    """Return each row's entry in the null vector of its component; 1 where no edge leads to it."""
    weights = np.bincount(spectrum.components, weights=spectrum.degrees, minlength=spectrum.count)
    has_edges = (weights > 0.0)[spectrum.components]
    divisors = np.where(weights > 0.0, weights, 1.0)[spectrum.components]
    shares = spectrum.degrees / divisors
    return np.sqrt(np.where(has_edges, shares, 1.0))
