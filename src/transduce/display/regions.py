"""Plots of regions and their coverage."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce.core.answer import Answer
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array
from transduce.display.axes import INSIDE, OUTSIDE, REGION, VALUE, check_truth, finish, new_axes


class RegionDisplay:
    """Answers and their regions, row by row in the order of the values; with the truth, if it is known.

    Parameters
    ----------
    values : array of shape (m,)
        Answers.
    regions : Regions
        Their regions.
    y_true : array of shape (m,), optional
        True labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import RegionDisplay
    >>> from transduce import Regions
    >>> display = RegionDisplay(np.array([1.0, 2.0]), Regions.from_intervals([[0, 3], [1, 2]])).plot()
    >>> display.ax_.get_ylabel()
    'label'
    """

    def __init__(self, values: Array, regions: Regions, y_true: Array | None = None) -> None:
        self.values = values
        self.regions = regions
        self.y_true = y_true

    @classmethod
    def from_answer(cls, answer: Answer, *, y_true: Any = None, ax: Any = None) -> Self:
        """Plot the answer of a regression method.

        Parameters
        ----------
        answer : Answer
            With regions.
        y_true : array-like of shape (m,), optional
            True labels at the unlabelled rows.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RegionDisplay
        """
        truth = check_truth(answer, y_true)
        if answer.regions is None:
            raise ValueError("This answer has no regions: plot one of a regression method.")
        return cls(answer.values, answer.regions, truth).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        RegionDisplay
        """
        from matplotlib.ticker import MaxNLocator

        ax = new_axes((8, 4.5)) if ax is None else ax
        order = np.argsort(self.values, kind="stable")
        place = np.empty(len(order))
        place[order] = np.arange(len(order))
        self._draw_regions(ax, place)
        size = float(np.clip(80.0 / np.sqrt(max(len(order), 1)), 1.0, 6.0))
        if self.y_true is not None:
            inside, known = self.regions.contains(self.y_true), ~np.isnan(self.y_true)
            for mask, color, marker, word in (
                (inside & known, INSIDE, "o", "truth, inside"),
                (~inside & known, OUTSIDE, "X", "truth, outside"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(place[mask], self.y_true[mask], marker, ms=size, color=color, label=label)
        ax.plot(place, self.values, "_", ms=max(size, 2.0), mew=1.5, color=VALUE, label="answer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return finish(self, ax, xlabel="unlabelled rows, by answer", ylabel="label")

    def _draw_regions(self, ax: Any, place: Array) -> None:
        """Draw every piece as a bar; rays end a little beyond everything finite."""
        from matplotlib.collections import LineCollection

        pieces, _ = self.regions.to_arrays()
        truth = np.empty(0) if self.y_true is None else self.y_true
        finite = np.concatenate([self.values, pieces.ravel(), truth])
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        margin = 0.05 * (high - low) or 1.0
        x = np.repeat(place, self.regions.n_pieces)
        ends = np.clip(pieces, low - margin, high + margin)
        lines = [[(at, lower), (at, upper)] for at, (lower, upper) in zip(x, ends, strict=True)]
        width = float(np.clip(300.0 / max(len(place), 1), 0.8, 6.0))
        ax.add_collection(LineCollection(lines, colors=REGION, linewidths=width, label="region"))
        ax.set(xlim=(-1, len(place)), ylim=(low - margin, high + margin))


class CoverageDisplay:
    """Observed against guaranteed coverage.

    Parameters
    ----------
    guaranteed : array of shape (k,)
        Confidence levels.
    observed : array of shape (k,) or (k, n_splits)
        Shares of rows whose region held the truth; with several splits their mean is drawn over them.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from transduce.display import CoverageDisplay
    >>> display = CoverageDisplay([0.8, 0.9], [0.82, 0.91]).plot()
    >>> display.ax_.get_xlabel()
    'guaranteed coverage'
    """

    def __init__(self, guaranteed: Any, observed: Any) -> None:
        self.guaranteed = np.asarray(guaranteed, dtype=float)
        observed = np.asarray(observed, dtype=float)
        self.observed: AnyArray = observed[:, None] if observed.ndim == 1 else observed
        if len(self.observed) != len(self.guaranteed):
            raise ValueError("Give one observed share, or one line of shares, for each guaranteed level.")
        shares = np.concatenate([self.guaranteed, self.observed.ravel()])
        if not len(shares) or np.any((shares < 0) | (shares > 1)):
            raise ValueError(
                "Guaranteed and observed coverage must be shares between 0 and 1, at least one of each."
            )

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        CoverageDisplay
        """
        ax = new_axes((4.5, 4.5)) if ax is None else ax
        start = min(self.guaranteed.min(), self.observed.min()) - 0.02
        ax.plot([start, 1], [start, 1], color=REGION, lw=1.5, label="as guaranteed")
        if self.observed.shape[1] > 1:
            x = np.repeat(self.guaranteed, self.observed.shape[1])
            ax.plot(x, self.observed.ravel(), "_", ms=9, alpha=0.35, color=INSIDE, label="single splits")
        ax.plot(self.guaranteed, self.observed.mean(axis=1), "o", color=INSIDE, label="observed")
        ax.set(xlim=(start, 1.005), ylim=(start, 1.005))
        return finish(self, ax, xlabel="guaranteed coverage", ylabel="observed coverage")
