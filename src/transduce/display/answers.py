"""Plots of answers: their regions, coverage, how many are outside, rejection, and what the unlabelled rows changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from transduce.core.answer import Answer
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array
from transduce.display.base import INSIDE, OUTSIDE, REGION, VALUE, Display, check_truth, finish
from transduce.metrics import rejection_curve

MOST_BARS = 400


@dataclass(eq=False, repr=False)
class RegionDisplay(Display):
    """Answers and their regions, row by row in the order of the values; with the truth, if it is known.

    Parameters
    ----------
    values, regions : array of shape (m,), Regions
        Answers, and their regions.
    y_true : array of shape (m,), optional
        True labels.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Regions
    >>> from transduce.display import RegionDisplay
    >>> RegionDisplay(np.array([1.0, 2.0]), Regions.from_intervals([[0, 3], [1, 2]])).plot().ax_.get_ylabel()
    'label'
    """

    values: Array
    regions: Regions
    y_true: Array | None = None
    _size = (8, 4.5)

    @classmethod
    def from_answer(cls, answer: Answer, *, y_true: Any = None, ax: Any = None) -> Self:
        """Plot the answer of a regression method, with the true labels (m,) at its rows if they are known."""
        truth = check_truth(answer, y_true)
        if answer.regions is None:
            raise ValueError("This answer has no regions: plot one of a regression method.")
        return cls(answer.values, answer.regions, truth).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        place = np.argsort(np.argsort(self.values, kind="stable")).astype(float)
        self._draw_regions(ax, place)
        size = float(np.clip(80.0 / np.sqrt(max(len(place), 1)), 1.0, 6.0))
        if self.y_true is not None:
            inside, known = self.regions.contains(self.y_true), ~np.isnan(self.y_true)
            for mask, color, marker, word in (
                (inside & known, INSIDE, "o", "truth, inside"),
                (~inside & known, OUTSIDE, "X", "truth, outside"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(place[mask], self.y_true[mask], marker, ms=size, color=color, label=label)
        ax.plot(place, self.values, "_", ms=max(size, 2.0), mew=1.5, color=VALUE, label="answer")
        _whole_numbers(ax)
        finish(ax, xlabel="unlabelled rows, by answer", ylabel="label")

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


def _whole_numbers(ax: Any) -> None:
    """Count along the x axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


class CoverageDisplay(Display):
    """Observed against guaranteed coverage.

    Parameters
    ----------
    guaranteed : array of shape (k,)
        Confidence levels.
    observed : array of shape (k,) or (k, n_splits)
        Shares of rows whose region held the truth; with several splits their mean is drawn over them.

    Examples
    --------
    >>> from transduce.display import CoverageDisplay
    >>> CoverageDisplay([0.8, 0.9], [0.82, 0.91]).plot().ax_.get_xlabel()
    'guaranteed coverage'
    """

    _size = (4.5, 4.5)

    def __init__(self, guaranteed: Any, observed: Any) -> None:
        self.guaranteed, observed = np.asarray(guaranteed, dtype=float), np.asarray(observed, dtype=float)
        self.observed: AnyArray = observed[:, None] if observed.ndim == 1 else observed
        if len(self.observed) != len(self.guaranteed):
            raise ValueError("Give one observed share, or one line of shares, for each guaranteed level.")
        shares = np.concatenate([self.guaranteed, self.observed.ravel()])
        if not len(shares) or np.any((shares < 0) | (shares > 1)):
            raise ValueError("Give guaranteed and observed coverage as shares between 0 and 1, at least one.")

    def _draw(self, ax: Any) -> None:
        start = min(self.guaranteed.min(), self.observed.min()) - 0.02
        ax.plot([start, 1], [start, 1], color=REGION, lw=1.5, label="as guaranteed")
        if self.observed.shape[1] > 1:
            x = np.repeat(self.guaranteed, self.observed.shape[1])
            ax.plot(x, self.observed.ravel(), "_", ms=9, alpha=0.35, color=INSIDE, label="single splits")
        ax.plot(self.guaranteed, self.observed.mean(axis=1), "o", color=INSIDE, label="observed")
        ax.set(xlim=(start, 1.005), ylim=(start, 1.005))
        finish(ax, xlabel="guaranteed coverage", ylabel="observed coverage")


@dataclass(eq=False, repr=False)
class MiscoverageDisplay(Display):
    """How many of the unlabelled rows are outside: the probabilities, the bound and, if it is known, the truth.

    Parameters
    ----------
    probabilities : array of shape (m + 1,)
        Of 0, 1, ..., m rows outside; counts of next to no probability are not drawn.
    bound, certainty : int, float
        The number that is not exceeded, with that certainty.
    truth : int, optional
        The true number.

    Examples
    --------
    >>> from transduce.conformal import Miscoverage
    >>> from transduce.display import MiscoverageDisplay
    >>> display = MiscoverageDisplay.from_law(Miscoverage(n_unlabelled=20, n_calibration=9, rank=9), truth=1)
    >>> display.ax_.get_xlabel()
    'number of 20 values outside'
    """

    probabilities: Array
    bound: int
    certainty: float = 0.95
    truth: int | None = None
    _size = (6.5, 3.8)

    @classmethod
    def from_law(cls, law: Any, *, certainty: float = 0.95, truth: int | None = None, ax: Any = None) -> Self:
        """Plot a distribution, such as ``model.miscoverage_``, and the true number outside if it is known."""
        if not hasattr(law, "probabilities"):
            raise TypeError(
                f"Pass a Miscoverage, such as model.miscoverage_; got {type(law).__name__}. With "
                "label_conditional=True there is a bound, but no distribution to plot."
            )
        return cls(law.probabilities, law.quantile(certainty), certainty, truth).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        counts = np.arange(len(self.probabilities))
        likely = int(np.searchsorted(np.cumsum(self.probabilities), 0.999))
        last = min(max(likely, self.bound, self.truth or 0) + 1, counts[-1])
        within = counts <= self.bound
        for mask, color, word in (
            (within, INSIDE, f"{100 * self.certainty:g} %: at most {self.bound}"),
            (~within, REGION, "more"),
        ):
            shown = counts[mask & (counts <= last)]
            if last <= MOST_BARS:
                ax.bar(shown, self.probabilities[shown], 0.85 if last < 120 else 1.0, color=color, label=word)
            else:  # thousands of bars would look the same and take minutes
                some = np.unique(np.append(shown[:: last // MOST_BARS + 1], shown[-1:]))
                ax.fill_between(some, self.probabilities[some], color=color, lw=0, label=word)
        if self.truth is not None:
            ax.axvline(self.truth, color=OUTSIDE, lw=2, label=f"truth: {self.truth}")
        ax.set(xlim=(-0.8, last + 0.8), ylim=(0.0, None))
        _whole_numbers(ax)
        finish(ax, xlabel=f"number of {counts[-1]} values outside", ylabel="probability", loc="upper right")


@dataclass(eq=False, repr=False)
class RejectionCurveDisplay(Display):
    """Error among the answers kept, against the share of rows rejected, one step for each value of confidence.

    Parameters
    ----------
    errors, rejected : array of shape (k,)
        What `rejection_curve` returns.
    name : str, default="answers kept"
        Legend.

    Examples
    --------
    >>> from transduce.display import RejectionCurveDisplay
    >>> display = RejectionCurveDisplay.from_predictions([0, 1, 1], [0, 1, 0], [0.9, 0.8, 0.1])
    >>> display.ax_.get_xlabel()
    'share of rows rejected'
    """

    errors: Array
    rejected: Array
    name: str = "answers kept"
    _size = (5.5, 4.2)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, confidence: Any, *, name: str = "answers kept", ax: Any = None
    ) -> Self:
        """Plot the curve of any answers (m,), given how sure each is."""
        return cls(*rejection_curve(y_true, y_pred, confidence), name).plot(ax=ax)

    @classmethod
    def from_answer(cls, answer: Answer, y_true: Any, *, name: str = "answers kept", ax: Any = None) -> Self:
        """Plot the curve of a classifier's answer, given the true labels (m,) at the unlabelled rows."""
        if not isinstance(answer, Answer) or answer.confidence is None:
            raise TypeError("Pass the answer_ of a classifier that has confidences.")
        return cls.from_predictions(y_true, answer.values, answer.confidence, name=name, ax=ax)

    def plot(self, *, ax: Any = None, color: Any = INSIDE) -> Self:
        """Draw on given or new axes, in a colour of matplotlib."""
        self._color = color
        return super().plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        if not ax.lines:  # beside another curve it stands already
            ax.axhline(self.errors[0], color=REGION, lw=1.2, label="nothing rejected")
        rejected, errors = np.append(self.rejected, 1.0), np.append(self.errors, self.errors[-1])
        ax.step(rejected, errors, where="post", color=self._color, label=self.name)
        highest = max(float(np.max(line.get_ydata())) for line in ax.lines)
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.08 * highest or 0.1))
        finish(ax, xlabel="share of rows rejected", ylabel="error among the others", loc="upper right")


@dataclass(eq=False, repr=False)
class TransductionDisplay(Display):
    """Transductive against inductive answers; with the truth, if it is known, how far each is off.

    Parameters
    ----------
    inductive, transductive : array of shape (m,)
        Answers without and with a look at the unlabelled rows.
    y_true : array of shape (m,), optional
        True labels.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import TransductionDisplay
    >>> TransductionDisplay(np.array([1.0, 2.0]), np.array([1.1, 1.8])).plot().ax_.get_xlabel()
    'inductive answer'
    """

    inductive: Array
    transductive: Array
    y_true: Array | None = None
    _size = (5, 5)

    @classmethod
    def from_answer(cls, answer: Answer, *, y_true: Any = None, ax: Any = None) -> Self:
        """Plot an answer that has inductive numbers too, with the true labels (m,) if they are known."""
        truth = check_truth(answer, y_true)
        if answer.inductive is None or answer.values.ndim != 1 or answer.values.dtype.kind != "f":
            raise ValueError("This answer has no inductive numbers: plot one of TransductiveRidge.")
        return cls(answer.inductive, answer.values, truth).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        both = np.concatenate([self.inductive, self.transductive])
        ends = [both.min(), both.max()] if len(both) else [0.0, 1.0]
        ax.plot(ends, ends, color=REGION, lw=1.5, label="no change")
        if self.y_true is None:
            ax.plot(self.inductive, self.transductive, ".", color=INSIDE, label="unlabelled row")
        else:
            closer = np.abs(self.transductive - self.y_true) <= np.abs(self.inductive - self.y_true)
            for mask, color, word in (
                (closer, INSIDE, "nearer to the truth"),
                (~closer & ~np.isnan(self.y_true), OUTSIDE, "further from it"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(self.inductive[mask], self.transductive[mask], ".", color=color, label=label)
        finish(ax, xlabel="inductive answer", ylabel="transductive answer")
