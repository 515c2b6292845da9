"""Plot of how many unlabelled rows are outside their intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce.core.types import Array
from transduce.display.axes import INSIDE, OUTSIDE, REGION, finish, new_axes

MOST_BARS = 400


class MiscoverageDisplay:
    """How many of the unlabelled rows are outside: the probabilities, the bound and, if it is known, the truth.

    Parameters
    ----------
    probabilities : array of shape (m + 1,)
        Of 0, 1, ..., m rows outside.
    bound : int
        The number that is not exceeded, with the certainty.
    certainty : float
        That certainty.
    truth : int, optional
        The true number.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from transduce.conformal import Miscoverage
    >>> from transduce.display import MiscoverageDisplay
    >>> display = MiscoverageDisplay.from_law(Miscoverage(n_unlabelled=20, n_calibration=9, rank=9), truth=1)
    >>> display.ax_.get_xlabel()
    'number of 20 values outside'
    """

    def __init__(
        self, probabilities: Array, bound: int, certainty: float = 0.95, truth: int | None = None
    ) -> None:
        self.probabilities = probabilities
        self.bound = bound
        self.certainty = certainty
        self.truth = truth

    @classmethod
    def from_law(cls, law: Any, *, certainty: float = 0.95, truth: int | None = None, ax: Any = None) -> Self:
        """Plot a distribution.

        Parameters
        ----------
        law : Miscoverage
            Such as ``model.miscoverage_``.
        certainty : float, default=0.95
            Of the bound.
        truth : int, optional
            Number of rows that were outside.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        MiscoverageDisplay
        """
        if not hasattr(law, "probabilities"):
            raise TypeError(
                f"Pass a Miscoverage, such as model.miscoverage_; got {type(law).__name__}. With "
                "label_conditional=True there is a bound, but no distribution to plot."
            )
        return cls(law.probabilities, law.quantile(certainty), certainty, truth).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; counts of next to no probability are left out.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        MiscoverageDisplay
        """
        from matplotlib.ticker import MaxNLocator

        ax = new_axes((6.5, 3.8)) if ax is None else ax
        counts = np.arange(len(self.probabilities))
        likely = int(np.searchsorted(np.cumsum(self.probabilities), 0.999))
        last = min(max(likely, self.bound, self.truth or 0) + 1, counts[-1])
        within = counts <= self.bound
        width = 0.85 if last < 120 else 1.0
        for mask, color, word in (
            (within, INSIDE, f"{100 * self.certainty:g} %: at most {self.bound}"),
            (~within, REGION, "more"),
        ):
            shown = counts[mask & (counts <= last)]
            if last <= MOST_BARS:
                ax.bar(shown, self.probabilities[shown], width, color=color, label=word)
            else:  # thousands of bars would look the same and take minutes
                some = np.unique(np.append(shown[:: last // MOST_BARS + 1], shown[-1:]))
                ax.fill_between(some, self.probabilities[some], color=color, lw=0, label=word)
        if self.truth is not None:
            ax.axvline(self.truth, color=OUTSIDE, lw=2, label=f"truth: {self.truth}")
        ax.set(xlim=(-0.8, last + 0.8), ylim=(0.0, None))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        xlabel = f"number of {counts[-1]} values outside"
        return finish(self, ax, xlabel=xlabel, ylabel="probability", loc="upper right")
