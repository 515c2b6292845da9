"""Problems of every kind the confidence machine meets: Hypothesis strategies, and grids of which a part is slow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from transduce.device.kernels import Kernel

KERNELS = [
    Kernel("rbf", 1.0),
    Kernel("exponential", 0.8),
    Kernel("laplacian", 1.5),
    Kernel("linear"),
    Kernel("poly", degree=2),
    Kernel("cosine"),
    Kernel(lambda u, v: float(np.exp(-np.abs(u - v).sum()))),
]
RESIDUALS = ["plain", "deleted", "studentized"]
SIDES = ["two", "lower", "upper"]


def every_other(grid, *, keep):
    """Return the cases of a grid with all but some marked as slow, so that each value meets several of each other."""
    sizes = [sorted(set(values), key=values.index) for values in zip(*grid, strict=True)]
    places = [
        sum(values.index(value) for values, value in zip(sizes, case, strict=True)) for case in grid
    ]
    marks = [[] if place % keep == 0 else pytest.mark.slow for place in places]
    return [pytest.param(*case, marks=mark) for case, mark in zip(grid, marks, strict=True)]


@dataclass
class Problem:
    """Labelled rows, one unlabelled row at the end, and a machine's settings."""

    X: np.ndarray
    y: np.ndarray
    kernel: Kernel
    ridge: float
    fit_intercept: bool
    residual: str

    @property
    def K(self):
        return self.kernel.matrix(self.X, self.X)


def make_problem(seed, *, heavy, kernel, residual, fit_intercept, n_labelled=None):
    """Rows and labels with normal or heavy tails; the tails are cut where doubles run out of digits."""
    rng = np.random.default_rng(seed)
    n_labelled = rng.integers(3, 20) if n_labelled is None else n_labelled
    d = rng.integers(1, 4)
    if heavy:
        X = np.clip(rng.standard_t(1, size=(n_labelled + 1, d)), -20, 20)
        y = rng.standard_t(1, size=n_labelled)
    else:
        X, y = rng.normal(size=(n_labelled + 1, d)), rng.normal(size=n_labelled)
    return Problem(X, y, kernel, 10.0 ** rng.uniform(-1.5, 1), fit_intercept, residual)


problems = st.builds(
    make_problem,
    st.integers(0, 2**32 - 1),
    heavy=st.booleans(),
    kernel=st.sampled_from(KERNELS),
    residual=st.sampled_from(RESIDUALS),
    fit_intercept=st.booleans(),
)

confidences = st.sampled_from([0.5, 0.6, 0.75, 0.8, 0.9, 0.95])


@st.composite
def regions_pieces(draw):
    """Rows of disjoint ascending closed intervals, some of them rays or points."""
    rows = []
    for _ in range(draw(st.integers(0, 6))):
        ends = draw(st.lists(st.integers(-20, 20), unique=True, max_size=6).map(sorted))
        pieces = [(float(a), float(b)) for a, b in zip(ends[::2], ends[1::2], strict=False)]
        if pieces and draw(st.booleans()):
            pieces[0] = (-np.inf, pieces[0][1])
        if pieces and draw(st.booleans()):
            pieces[-1] = (pieces[-1][0], np.inf)
        rows.append(pieces)
    return rows
