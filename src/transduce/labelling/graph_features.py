"""A spectrum as features of the rows, and which label would teach most in them.

Every connected component of the graph is a table of its own: a row of a component of m rows has the features
``sqrt(m) [null, v_1, v_2, ...]``, its entries in the eigenvectors of that component, with prior variances 1, 1, 1/4,
1/9, ...: the spectral graph transducer's penalties turned round. Features of different components are unrelated.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.methods.spectral_graph import Spectrum

NOISE = 0.25  # variance of a label beside a prior variance of about 2


class GraphFeatures:
    """Rows of a graph in the coordinates of its spectrum. Shapes: prior (d + 1,), component (n,)."""

    def __init__(self, spectrum: Spectrum) -> None:
        self._vectors = spectrum.vectors
        self.component = spectrum.components
        self.sizes = np.bincount(self.component, minlength=spectrum.count)
        weights = np.bincount(self.component, weights=spectrum.degrees, minlength=spectrum.count)
        share = spectrum.degrees / np.where(weights > 0.0, weights, 1.0)[self.component]
        self._scale = np.sqrt(self.sizes[self.component])
        self._null = np.sqrt(np.where((weights > 0.0)[self.component], share, 1.0)) * self._scale
        self.prior = np.concatenate([[1.0], 1.0 / np.arange(1.0, self._vectors.shape[1] + 1) ** 2])
        self._order = np.argsort(self.component, kind="stable") if spectrum.count > 1 else None
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])

    def __len__(self) -> int:
        return len(self.component)

    def rows_of(self, component: int) -> AnyArray | slice:
        """Return the rows of a component; all of them as a slice if there is one."""
        if self._order is None:
            return slice(None)
        return self._order[self._starts[component] : self._starts[component + 1]]

    def at(self, rows: AnyArray | slice) -> Array:
        """Return the features of some rows, each in the coordinates of its own component."""
        vectors = self._vectors[rows] * self._scale[rows][:, None]
        return np.concatenate([self._null[rows][:, None], vectors], axis=1)

    def products(self, rows: AnyArray | slice, weights: Array) -> Array:
        """Return the products of rows of one component with weights of shape (d + 1, k), without forming features."""
        vectors = self._vectors if isinstance(rows, slice) else self._vectors[rows]
        inner = vectors @ weights[1:].astype(vectors.dtype)
        return self._null[rows][:, None] * weights[0] + self._scale[rows][:, None] * inner

    def expand(self, weights: Mapping[int, Array]) -> Array:
        """Return the products of every row with the weights of its component, 0 where there are none."""
        found = np.zeros(len(self))
        for component, vector in weights.items():
            rows = self.rows_of(component)
            found[rows] = self.products(rows, vector[:, None])[:, 0]
        return found

    def prior_variance(self) -> Array:
        """Return the variance of each row before any label."""
        found = np.empty(len(self))
        for start in range(0, len(self), 50_000):
            rows = slice(start, start + 50_000)
            found[rows] = np.square(self.at(rows)) @ self.prior
        return found

    def prior_teaching(self) -> Array:
        """Return the squared norm of each row's covariance with the features before any label."""
        found = np.empty(len(self))
        for start in range(0, len(self), 50_000):
            rows = slice(start, start + 50_000)
            found[rows] = np.square(self.at(rows)) @ np.square(self.prior)
        return found


class Teaching:
    """How much the label of each row would teach, kept up to date label by label.

    Rows are a Gaussian process in the features. Labelling row i lowers the summed variance of all rows of its component
    by ``m |S f_i|^2 / (noise + f_i' S f_i)``, with S the posterior covariance of the features. Both parts are known at
    every row and change by two products a label.

    Shapes: variance (n,).
    """

    def __init__(self, features: GraphFeatures, noise: float = NOISE) -> None:
        self._features, self._noise = features, noise
        self._covariances: dict[int, Array] = {}
        self._known: set[int] = set()
        self.variance = features.prior_variance()
        self._reach = features.prior_teaching()

    def update(self, labelled: set[int]) -> None:
        """Take away the labels that are gone, and add the new ones."""
        for row in sorted(self._known - labelled):
            self._change(row, -1.0)
        for row in sorted(labelled - self._known):
            self._change(row, 1.0)
        self._known = set(labelled)

    def _change(self, row: int, sign: float) -> None:
        """Add (1) or take away (-1) one label."""
        features, component = self._features, int(self._features.component[row])
        covariance = self._covariances.setdefault(component, np.diag(features.prior))
        own = features.at(np.array([row]))[0]
        first = covariance @ own
        second = covariance @ first
        factor = sign / (self._noise + sign * float(own @ first))
        rows = features.rows_of(component)
        near, far = features.products(rows, np.stack([first, second], axis=1)).T
        self.variance[rows] -= factor * near**2
        self._reach[rows] += factor * near * (factor * float(first @ first) * near - 2.0 * far)
        covariance -= factor * np.outer(first, first)

    def gains(self) -> Array:
        """Return by how much the label of each row would lower the summed variance, as a share of the rows."""
        sizes = self._features.sizes[self._features.component] / len(self._features)
        return sizes * np.maximum(self._reach, 0.0) / (self._noise + np.maximum(self.variance, 0.0))
