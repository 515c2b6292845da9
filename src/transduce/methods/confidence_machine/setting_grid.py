"""The settings among which the tuned confidence machine chooses, and their kernels.

Widths and trees come from the features of all rows and from no label, whatever the order of the
rows: that is what keeps the guarantee exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, Literal

import numpy as np
from numba import njit
from scipy.stats import rankdata

from transduce.core import checks
from transduce.core.ranks import leaves_of, random_trees
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, check_kernel, median_width, uses_width

N_TREES = 100
DEPTH = 5
MAX_ROWS = 1000

# ----------------------------------------------------------------------------- the kernel of trees


@dataclass(frozen=True)
class TreeKernel:
    """A forest grown on the features of all rows, sorted, so that their order does not matter."""

    # The trees see ranks, not values: an outlier does not take every split, and no digit is lost
    # where scikit-learn's trees round to single precision.

    trees: list[Any]
    values: tuple[Array, ...]  # the distinct values of each column
    ranks: tuple[Array, ...]  # and their ranks, as shares of the rows

    @classmethod
    def grow(cls, X: Array) -> TreeKernel:
        """Grow the trees on all rows (n, d), or on `MAX_ROWS` of them spread evenly."""
        rows = X[np.lexsort(X.T[::-1])]
        if len(rows) > MAX_ROWS:
            spread = np.linspace(0, len(X) - 1, MAX_ROWS)
            rows = rows[spread.round().astype(int)]
        values = []
        ranks = []
        for column in rows.T:
            distinct, first = np.unique(column, return_index=True)
            values.append(distinct)
            ranks.append(rankdata(column)[first] / len(column))
        bare = cls([], tuple(values), tuple(ranks))
        trees = random_trees(bare._to_ranks(rows), N_TREES, depth=DEPTH, seed=0)
        return replace(bare, trees=trees)

    def leaves(self, X: Array) -> AnyArray:
        """Return the leaf of each row (n, d) in each tree, shape (n, N_TREES)."""
        if len(X) == 0:
            return np.empty((0, N_TREES), dtype=np.int16)
        return leaves_of(self.trees, self._to_ranks(X)).astype(np.int16)

    def _to_ranks(self, X: Array) -> Array:
        """Return the ranks of values (n, d), interpolated between those that the trees saw."""
        columns = zip(X.T, self.values, self.ranks, strict=True)
        ranks = [np.interp(column, values, ranks) for column, values, ranks in columns]
        return np.column_stack(ranks)


@njit(cache=True, nogil=True)
def shared_leaves(row_leaves: AnyArray, column_leaves: AnyArray) -> Array:
    """Return in which share of trees rows (n, t) and (k, t) have the same leaf, shape (n, k)."""
    shares = np.empty((len(row_leaves), len(column_leaves)))
    n_trees = row_leaves.shape[1]
    for i in range(len(row_leaves)):
        for j in range(len(column_leaves)):
            n_shared = 0
            for tree in range(n_trees):
                n_shared += row_leaves[i, tree] == column_leaves[j, tree]
            shares[i, j] = n_shared / n_trees
    return shares


# ----------------------------------------------------------------------------------- the settings

KernelName = str | Callable[..., float]
KernelParts = tuple[tuple[KernelName, float], ...]


@dataclass(frozen=True)
class Setting:
    """One setting of a ridge regression: a kernel, its width, and the ridge.

    Parameters
    ----------
    kernel : str, callable, or mapping of names to weights, default="rbf"
        As in `RidgeConfidenceMachine`; or ``"trees"``, the share of random trees in which two rows
        fall into the same leaf; or a weighted sum, such as ``{"rbf": 1.0, "linear": 0.1}``.
    width : float or "median", default="median"
        Length scale, for the kernels that have one; the median distance between rows.
    ridge : float, default=1.0
        Added to the diagonal of the kernel matrix.
    degree, coef0 : float, default=3 and 1.0
        Of the polynomial kernel.

    Examples
    --------
    >>> from transduce.methods.confidence_machine import Setting
    >>> print(Setting({"rbf": 1.0, "linear": 0.25}, ridge=0.3))
    rbf + 0.25 linear, median width, ridge 0.3
    """

    kernel: KernelName | Mapping[KernelName, float] | KernelParts = "rbf"
    width: float | Literal["median"] = "median"
    ridge: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kernel, Mapping):
            object.__setattr__(self, "kernel", tuple(self.kernel.items()))

    @property
    def parts(self) -> KernelParts:
        """The kernel as a weighted sum of kernels."""
        if isinstance(self.kernel, tuple):
            return self.kernel
        return ((self.kernel, 1.0),)  # type: ignore[return-value]

    @property
    def estimated(self) -> bool:
        """Whether the features of all rows set something of the kernel: a width, or trees."""
        return self.needs_median or self.has_part("trees")

    @property
    def needs_median(self) -> bool:
        """Whether its width is the median distance between rows."""
        return self.has_width and self.width == "median"

    @property
    def has_width(self) -> bool:
        """Whether any part of the kernel has a length scale."""
        return any(uses_width(name) for name, _ in self.parts)

    def has_part(self, name: str) -> bool:
        """Return whether a kernel is part of the sum."""
        return any(part == name for part, _ in self.parts)

    def check(self) -> None:
        """Raise a ValueError, in one sentence, unless all can be used."""
        if not self.parts:
            raise ValueError(
                "A kernel that is a sum needs at least one part, such as {'rbf': 1.0}."
            )
        for part in self.parts:
            self._check_part(part)
        checks.check_positive("ridge", self.ridge)
        if self.width != "median":
            name = "width (a number, or 'median')"
            checks.check_positive(name, self.width, least=1e-100, most=1e100)
        checks.check_number("degree", self.degree)
        checks.check_number("coef0", self.coef0)

    def _check_part(self, part: object) -> None:
        if not isinstance(part, tuple) or len(part) != 2:
            raise ValueError(f"A kernel that is a sum maps names to weights; got {self.kernel!r}.")
        name, weight = part
        if name != "trees":
            check_kernel(name)
        checks.check_positive("The weight of a kernel", weight)

    def __str__(self) -> str:
        terms = [_term(kernel, weight) for kernel, weight in self.parts]
        kernel = " + ".join(terms)
        if not self.has_width:
            return f"{kernel}, ridge {self.ridge:g}"
        if self.width == "median":
            return f"{kernel}, median width, ridge {self.ridge:g}"
        return f"{kernel}, width {self.width:.3g}, ridge {self.ridge:g}"


def _term(kernel: KernelName, weight: float) -> str:
    """Return one part of a sum of kernels in words."""
    if isinstance(kernel, str):
        name = kernel
    else:
        name = getattr(kernel, "__name__", type(kernel).__name__)
    if weight == 1.0:
        return name
    return f"{weight:.3g} {name}"


def default_settings(X: Array) -> tuple[Setting, ...]:
    """Return the settings to choose among if the user names none, from all rows (n, d)."""
    # On the papers' tables this grid made narrower regions than longer ones: narrow kernels and
    # tiny ridges win the leave-one-out contest of a few labels by chance.
    median = median_width(X)
    linear = 1.0 / X.shape[1]
    kernels: tuple[tuple[Mapping[KernelName, float], float], ...] = (
        ({"rbf": 1.0, "linear": linear}, median),
        ({"rbf": 1.0, "linear": linear}, 0.5 * median),
        ({"linear": linear}, 1.0),
        ({"trees": 1.0}, 1.0),
        ({"trees": 1.0, "rbf": 1.0, "linear": linear}, median),
    )
    ridges = (0.1, 0.3, 1.0, 3.0)
    return tuple(Setting(kernel, width, ridge) for kernel, width in kernels for ridge in ridges)


def check_settings(settings: object) -> tuple[Setting, ...]:
    """Return a list of settings as a tuple, or raise a ValueError that says what is wrong."""
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise ValueError(
            f"settings must be 'leave-one-out' or a list of Setting; got {settings!r}."
        )
    candidates = tuple(settings)
    if not candidates:
        raise ValueError("settings is an empty list: give at least one Setting to choose from.")
    for setting in candidates:
        if not isinstance(setting, Setting):
            raise ValueError(f"settings must be a list of Setting; one of them is {setting!r}.")
        setting.check()
        if setting.has_part("precomputed"):
            raise ValueError(
                "Settings are chosen among kernels of the features: a precomputed one is fixed."
            )
    return candidates


# ------------------------------------------------------------------------------- sums of kernels


@dataclass(frozen=True)
class KernelSum:
    """A weighted sum of kernels; rows are represented once, in the form that each part takes."""

    parts: tuple[tuple[Kernel | TreeKernel, float], ...]

    def represent(self, X: Array) -> tuple[AnyArray, ...]:
        """Return the forms of rows (n, d), one a part: features, leaves, or given kernel values."""
        return tuple(_represent(kernel, X) for kernel, _ in self.parts)

    def matrix(self, rows: tuple[AnyArray, ...], columns: tuple[AnyArray, ...]) -> Array:
        """Return the kernel values of represented rows with others; all finite."""
        parts = zip(self.parts, rows, columns, strict=True)
        terms = (
            weight * kernel_values(kernel, part_rows, part_columns)
            for (kernel, weight), part_rows, part_columns in parts
        )
        return reduce(iadd, terms)

    def diagonal(self, forms: tuple[AnyArray, ...]) -> Array:
        """Return the kernel value of each represented row with itself."""
        parts = zip(self.parts, forms, strict=True)
        terms = (weight * own_values(kernel, rows) for (kernel, weight), rows in parts)
        return reduce(iadd, terms)

    def rank(self, forms: tuple[AnyArray, ...]) -> int:
        """Return a bound on the rank of the kernel matrix: `d` if all is linear, else `n`."""
        if all(_is_linear(kernel) for kernel, _ in self.parts):
            return min(forms[0].shape)
        return len(forms[0])

    def check_symmetry(self, forms: tuple[AnyArray, ...]) -> None:
        """Raise a ValueError if a function of the user's is not symmetric at the rows."""
        for (kernel, _), rows in zip(self.parts, forms, strict=True):
            if isinstance(kernel, Kernel):
                kernel.check_symmetry(rows)


def _represent(kernel: Kernel | TreeKernel, X: Array) -> AnyArray:
    """Return rows (n, d) in the form that a kernel takes."""
    if isinstance(kernel, TreeKernel):
        return kernel.leaves(X)
    return X


def _is_linear(kernel: Kernel | TreeKernel) -> bool:
    return isinstance(kernel, Kernel) and kernel.name == "linear"


def kernel_values(kernel: Kernel | TreeKernel, rows: AnyArray, columns: AnyArray) -> Array:
    """Return the kernel values of rows with others; given values as they are."""
    if isinstance(kernel, TreeKernel):
        return shared_leaves(rows, columns)
    if kernel.name == "precomputed":
        return rows[:, :-1]
    return kernel.checked_matrix(rows, columns)


def own_values(kernel: Kernel | TreeKernel, rows: AnyArray) -> Array:
    """Return the kernel value of each row with itself; the last column if values are given."""
    if isinstance(kernel, TreeKernel):
        return np.ones(len(rows))
    if kernel.name == "precomputed":
        return rows[:, -1]
    return kernel.diagonal(rows)


# --------------------------------------------------------------------------------------- the grid


def build_kernel(setting: Setting, X: Array) -> Kernel:
    """Return the kernel of a setting that is no sum; its width from the features of all rows."""
    ((name, _),) = setting.parts
    return Kernel(name, *_shape(_with_width(setting, X)))


def _with_width(setting: Setting, X: Array) -> Setting:
    """Return a setting whose width is a number, if its kernel has one."""
    if setting.needs_median:
        return replace(setting, width=median_width(X))
    return setting


def _shape(setting: Setting) -> tuple[float, float, float]:
    """Return width, degree and coefficient of a setting's kernels; without a width it is 1."""
    width = 1.0
    if setting.has_width:
        width = float(setting.width)
    return width, setting.degree, setting.coef0


@dataclass(frozen=True)
class SettingGrid:
    """Settings with their widths known, and the kernels that they share."""

    settings: tuple[Setting, ...]  # as the user gave them, except for widths, which are numbers
    kernels: tuple[KernelSum, ...]
    which: AnyArray  # (S,) the place of each setting's kernel among them

    @classmethod
    def build(cls, settings: Iterable[Setting], X: Array) -> SettingGrid:
        """Set widths and grow trees on all rows (n, d); equal kernels are built once."""
        settings = _with_widths(tuple(settings), X)
        trees = None
        if any(setting.has_part("trees") for setting in settings):
            trees = TreeKernel.grow(X)
        distinct: list[tuple[KernelParts, tuple[float, float, float]]] = []
        which = []
        for setting in settings:
            key = (setting.parts, _shape(setting))
            if key not in distinct:  # no dict: functions may have no hash
                distinct.append(key)
            which.append(distinct.index(key))
        kernels = tuple(_build_sum(parts, shape, trees) for parts, shape in distinct)
        return cls(settings, kernels, np.array(which))

    def __len__(self) -> int:
        return len(self.settings)

    def count(self, chosen: AnyArray) -> list[int]:
        """Return how often each setting is among those that were chosen."""
        return np.bincount(chosen.ravel(), minlength=len(self)).tolist()

    def summarize(self, chosen: AnyArray, **other_counts: list[int]) -> dict[str, Any]:
        """Return the settings in words and how often each was chosen, with other counts."""
        names = [str(setting) for setting in self.settings]
        return {"settings": names, "n_chosen": self.count(chosen), **other_counts}


def _with_widths(settings: tuple[Setting, ...], X: Array) -> tuple[Setting, ...]:
    """Return the settings with the median distance for a width, if any of them needs it."""
    if not any(setting.needs_median for setting in settings):
        return settings
    median = median_width(X)
    with_widths = []
    for setting in settings:
        if setting.width == "median":
            setting = replace(setting, width=median)
        with_widths.append(setting)
    return tuple(with_widths)


def _build_sum(
    parts: KernelParts,
    shape: tuple[float, float, float],
    trees: TreeKernel | None,
) -> KernelSum:
    """Return the kernel with these parts, widths and the like."""
    kernels: list[tuple[Kernel | TreeKernel, float]] = []
    for name, weight in parts:
        if trees is not None and name == "trees":
            kernels.append((trees, float(weight)))
        else:
            kernels.append((Kernel(name, *shape), float(weight)))
    return KernelSum(tuple(kernels))
