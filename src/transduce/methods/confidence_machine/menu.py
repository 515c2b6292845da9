"""The settings among which the tuned confidence machine chooses, and their kernels.

Widths and trees come from the features of all rows and from no label, whatever the order of the rows: that is what
keeps the guarantee exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any

import numpy as np
from numba import njit
from scipy.stats import rankdata

from transduce.core import checks
from transduce.core.ranks import leaves_of, random_trees
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, check_kernel, median_width, uses_width

N_TREES, DEPTH, MAX_ROWS = 100, 5, 1000


@dataclass(frozen=True)
class TreeKernel:
    """A forest grown on the features of all rows, sorted, so that their order does not matter."""

    # The trees see ranks, not values: an outlier does not take every split, and no digit is lost where scikit-learn's
    # trees round to single precision.

    trees: list[Any]
    values: tuple[Array, ...]
    ranks: tuple[Array, ...]

    @classmethod
    def grow(cls, X: Array) -> TreeKernel:
        """Grow the trees on rows (n, d), labelled and unlabelled: on all, or on `MAX_ROWS` spread evenly."""
        ordered = X[np.lexsort(X.T[::-1])]
        if len(ordered) > MAX_ROWS:
            ordered = ordered[np.linspace(0, len(X) - 1, MAX_ROWS).round().astype(int)]
        firsts = [np.unique(column, return_index=True) for column in ordered.T]
        values = tuple(distinct for distinct, _ in firsts)
        ranks = zip(ordered.T, firsts, strict=True)
        kernel = cls(
            [], values, tuple(rankdata(column)[first] / len(column) for column, (_, first) in ranks)
        )
        return replace(
            kernel, trees=random_trees(kernel._to_ranks(ordered), N_TREES, depth=DEPTH, seed=0)
        )

    def leaves(self, X: Array) -> AnyArray:
        """Return the leaf of each row (n, d) in each tree, shape (n, N_TREES)."""
        if len(X) == 0:
            return np.empty((0, N_TREES), dtype=np.int16)
        return leaves_of(self.trees, self._to_ranks(X)).astype(np.int16)

    def _to_ranks(self, X: Array) -> Array:
        columns = zip(X.T, self.values, self.ranks, strict=True)
        return np.column_stack(
            [np.interp(column, values, ranks) for column, values, ranks in columns]
        )


@njit(cache=True, nogil=True)
def shared_leaves(one: AnyArray, other: AnyArray) -> Array:
    """Return the share of trees in which rows (n, t) and rows (k, t) have the same leaf, shape (n, k)."""
    shares = np.empty((len(one), len(other)))
    n_trees = one.shape[1]
    for i in range(len(one)):
        for j in range(len(other)):
            count = 0
            for tree in range(n_trees):
                count += one[i, tree] == other[j, tree]
            shares[i, j] = count / n_trees
    return shares


KernelName = str | Callable[..., float]
KernelParts = tuple[tuple[KernelName, float], ...]


@dataclass(frozen=True)
class Setting:
    """One setting of a ridge regression: a kernel, its width, and the ridge.

    Parameters
    ----------
    kernel : str, callable, or mapping of names to weights, default="rbf"
        As in `RidgeConfidenceMachine`; or ``"trees"``, the share of random trees in which two rows fall into the same
        leaf; or a weighted sum, such as ``{"rbf": 1.0, "linear": 0.1}``.
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
    width: float | str = "median"
    ridge: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kernel, Mapping):
            object.__setattr__(self, "kernel", tuple(self.kernel.items()))

    @property
    def parts(self) -> KernelParts:
        """The kernel as a weighted sum of kernels."""
        return self.kernel if isinstance(self.kernel, tuple) else ((self.kernel, 1.0),)  # type: ignore[return-value]

    @property
    def estimated(self) -> bool:
        """Whether the features of all rows set something of the kernel: a width, or trees."""
        return (self.has_width and self.width == "median") or _has(self, "trees")

    @property
    def has_width(self) -> bool:
        """Whether any part of the kernel has a length scale."""
        return any(uses_width(name) for name, _ in self.parts)

    def check(self) -> None:
        """Raise a ValueError, in one sentence, unless all can be used."""
        if not self.parts:
            raise ValueError(
                "A kernel that is a sum needs at least one part, such as {'rbf': 1.0}."
            )
        for part in self.parts:
            if not isinstance(part, tuple) or len(part) != 2:
                raise ValueError(
                    f"A kernel that is a sum maps names to weights; got {self.kernel!r}."
                )
            if part[0] != "trees":
                check_kernel(part[0])
            checks.check_positive("The weight of a kernel", part[1])
        checks.check_positive("ridge", self.ridge)
        if self.width != "median":
            checks.check_positive(
                "width (a number, or 'median')", self.width, least=1e-100, most=1e100
            )
        for name in ("degree", "coef0"):
            checks.check_number(name, getattr(self, name))

    def __str__(self) -> str:
        terms = []
        for kernel, weight in self.parts:
            name = (
                kernel
                if isinstance(kernel, str)
                else getattr(kernel, "__name__", type(kernel).__name__)
            )
            terms.append(name if weight == 1.0 else f"{weight:.3g} {name}")
        width = ", median width" if self.width == "median" else f", width {self.width:.3g}"
        return f"{' + '.join(terms)}{width if self.has_width else ''}, ridge {self.ridge:g}"


def default_menu(X: Array) -> tuple[Setting, ...]:
    """Return the settings to choose among if the user names none, from the features of all rows (n, d)."""
    # On the papers' tables this menu made narrower regions than longer ones: narrow kernels and tiny ridges win the
    # leave-one-out contest of a few labels by chance.
    median, linear = median_width(X), 1.0 / X.shape[1]
    kernels: tuple[tuple[Mapping[KernelName, float], float], ...] = (
        ({"rbf": 1.0, "linear": linear}, median),
        ({"rbf": 1.0, "linear": linear}, 0.5 * median),
        ({"linear": linear}, 1.0),
        ({"trees": 1.0}, 1.0),
        ({"trees": 1.0, "rbf": 1.0, "linear": linear}, median),
    )
    return tuple(
        Setting(kernel, width, ridge) for kernel, width in kernels for ridge in (0.1, 0.3, 1.0, 3.0)
    )


@dataclass(frozen=True)
class MenuKernel:
    """A weighted sum of kernels; rows are represented once, in the form that each part takes."""

    parts: tuple[tuple[Kernel | TreeKernel, float], ...]

    def represent(self, X: Array) -> tuple[AnyArray, ...]:
        """Return the forms of rows (n, d), one a part: features, leaves, or given kernel values."""
        return tuple(
            kernel.leaves(X) if isinstance(kernel, TreeKernel) else X for kernel, _ in self.parts
        )

    def matrix(self, one: tuple[AnyArray, ...], other: tuple[AnyArray, ...]) -> Array:
        """Return the kernel values of represented rows, a line for each of the first; all finite."""
        parts = zip(self.parts, one, other, strict=True)
        return reduce(
            iadd, (weight * kernel_values(kernel, *rows) for (kernel, weight), *rows in parts)
        )

    def diagonal(self, forms: tuple[AnyArray, ...]) -> Array:
        """Return the kernel value of each represented row with itself."""
        parts = zip(self.parts, forms, strict=True)
        return reduce(iadd, (weight * own_values(kernel, rows) for (kernel, weight), rows in parts))

    def rank(self, forms: tuple[AnyArray, ...]) -> int:
        """Return a bound on the rank of the kernel matrix of rows (n, d): `d` if all is linear, else `n`."""
        linear = all(
            isinstance(kernel, Kernel) and kernel.name == "linear" for kernel, _ in self.parts
        )
        return min(forms[0].shape) if linear else len(forms[0])

    def check_symmetry(self, forms: tuple[AnyArray, ...]) -> None:
        """Raise a ValueError if a function of the user's is not symmetric at the rows."""
        for (kernel, _), rows in zip(self.parts, forms, strict=True):
            if isinstance(kernel, Kernel):
                kernel.check_symmetry(rows)


def kernel_values(kernel: Kernel | TreeKernel, rows: AnyArray, columns: AnyArray) -> Array:
    """Return the kernel values of rows, in the form that the kernel takes, with others; given ones as they are."""
    if isinstance(kernel, TreeKernel):
        return shared_leaves(rows, columns)
    return rows[:, :-1] if kernel.name == "precomputed" else kernel.checked_matrix(rows, columns)


def own_values(kernel: Kernel | TreeKernel, rows: AnyArray) -> Array:
    """Return the kernel value of each row with itself; if the values are given, it is the last column."""
    if isinstance(kernel, TreeKernel):
        return np.ones(len(rows))
    return rows[:, -1] if kernel.name == "precomputed" else kernel.diagonal(rows)


@dataclass(frozen=True)
class Menu:
    """Settings with their widths known, and the kernels that they share."""

    settings: tuple[Setting, ...]  # as the user gave them, except for widths, which are numbers
    kernels: tuple[MenuKernel, ...]
    which: AnyArray  # (S,) the place of each setting's kernel among them

    @classmethod
    def build(cls, settings: tuple[Setting, ...], X: Array) -> Menu:
        """Set widths and grow trees on the features of all rows (n, d); equal kernels are built once."""
        if any(setting.has_width and setting.width == "median" for setting in settings):
            median = median_width(X)
            settings = tuple(
                replace(one, width=median) if one.width == "median" else one for one in settings
            )
        trees = TreeKernel.grow(X) if any(_has(setting, "trees") for setting in settings) else None
        keys = [
            (
                setting.parts,
                float(setting.width) if setting.has_width else 1.0,
                setting.degree,
                setting.coef0,
            )
            for setting in settings
        ]
        distinct = [
            key for place, key in enumerate(keys) if key not in keys[:place]
        ]  # functions may have no hash

        def kernel(name: Any, form: list[Any]) -> Kernel | TreeKernel:
            return trees if trees and name == "trees" else Kernel(name, *form)

        parts = [
            tuple((kernel(name, form), float(w)) for name, w in parts) for parts, *form in distinct
        ]
        return cls(
            settings, tuple(map(MenuKernel, parts)), np.array([distinct.index(key) for key in keys])
        )

    def __len__(self) -> int:
        return len(self.settings)

    def count(self, chosen: AnyArray) -> list[int]:
        """Return how often each setting is among those that were chosen."""
        return np.bincount(chosen.ravel(), minlength=len(self)).tolist()

    def tell(self, chosen: AnyArray, **more: list[int]) -> dict[str, Any]:
        """Return the settings in words and how often each was chosen, with other counts."""
        names = [str(setting) for setting in self.settings]
        return {"settings": names, "n_chosen": self.count(chosen), **more}


def check_settings(settings: object) -> tuple[Setting, ...]:
    """Return a list of settings as a tuple, or raise a ValueError that says what is wrong with it."""
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise ValueError(
            f"settings must be 'leave-one-out' or a list of Setting; got {settings!r}."
        )
    choices = tuple(settings)
    if not choices:
        raise ValueError("settings is an empty list: give at least one Setting to choose from.")
    for setting in choices:
        if not isinstance(setting, Setting):
            raise ValueError(f"settings must be a list of Setting; one of them is {setting!r}.")
        setting.check()
        if _has(setting, "precomputed"):
            raise ValueError(
                "Settings are chosen among kernels of the features: a precomputed one is fixed."
            )
    return choices


def _has(setting: Setting, name: str) -> bool:
    return any(part == name for part, _ in setting.parts)
