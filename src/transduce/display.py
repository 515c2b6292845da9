"""Plots of answers, in the manner of scikit-learn's displays: notebooks, docs and reports share them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce._typing import AnyArray, Array
from transduce.answer import Answer, Regions

_INSIDE, _OUTSIDE, _REGION, _VALUE = "#1b6ca8", "#c8371e", "#a9bccb", "#33414c"


def _new_axes(size: tuple[float, float]) -> Any:
    """Return the axes of a new figure; matplotlib is imported only by those who plot."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _truth(answer: Answer, y_true: Any) -> Array | None:
    """Return the true labels at the asked rows, checked; None if they are not known."""
    if not isinstance(answer, Answer):
        raise TypeError(f"Pass an answer, such as model.answer_; got {type(answer).__name__}.")
    truth = None if y_true is None else np.asarray(y_true, dtype=float)
    if truth is not None and truth.shape != (len(answer),):
        raise ValueError(f"Give one true label for each of the {len(answer)} asked rows.")
    return truth


def _finish(
    display: Any, ax: Any, *, xlabel: str, ylabel: str, loc: str = "upper left", ncols: int = 1
) -> Any:
    """Label the axes, add a legend that does not hide what is behind it, and remember them."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(
        framealpha=0.85, edgecolor="none", fontsize="small" if ncols == 1 else "x-small", loc=loc, ncols=ncols
    )
    display.ax_, display.figure_ = ax, ax.figure
    return display


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
    >>> from transduce import RegionDisplay, Regions
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
            True labels at the asked rows.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RegionDisplay
        """
        truth = _truth(answer, y_true)
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

        ax = _new_axes((8, 4.5)) if ax is None else ax
        order = np.argsort(self.values, kind="stable")
        place = np.empty(len(order))
        place[order] = np.arange(len(order))
        self._draw_regions(ax, place)
        size = float(np.clip(80.0 / np.sqrt(max(len(order), 1)), 1.0, 6.0))
        if self.y_true is not None:
            inside, known = self.regions.contains(self.y_true), ~np.isnan(self.y_true)
            for mask, color, marker, word in (
                (inside & known, _INSIDE, "o", "truth, inside"),
                (~inside & known, _OUTSIDE, "X", "truth, outside"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(place[mask], self.y_true[mask], marker, ms=size, color=color, label=label)
        ax.plot(place, self.values, "_", ms=max(size, 2.0), mew=1.5, color=_VALUE, label="answer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return _finish(self, ax, xlabel="asked rows, by answer", ylabel="label")

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
        ax.add_collection(LineCollection(lines, colors=_REGION, linewidths=width, label="region"))
        ax.set(xlim=(-1, len(place)), ylim=(low - margin, high + margin))


class CoverageDisplay:
    """Observed against promised coverage.

    Parameters
    ----------
    promised : array of shape (k,)
        Confidence levels.
    observed : array of shape (k,) or (k, n_splits)
        Shares of rows whose region held the truth; with several splits their mean is drawn over them.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from transduce import CoverageDisplay
    >>> display = CoverageDisplay([0.8, 0.9], [0.82, 0.91]).plot()
    >>> display.ax_.get_xlabel()
    'promised coverage'
    """

    def __init__(self, promised: Any, observed: Any) -> None:
        self.promised = np.asarray(promised, dtype=float)
        observed = np.asarray(observed, dtype=float)
        self.observed: AnyArray = observed[:, None] if observed.ndim == 1 else observed
        if len(self.observed) != len(self.promised):
            raise ValueError("Give one observed share, or one line of shares, for each promised level.")
        shares = np.concatenate([self.promised, self.observed.ravel()])
        if not len(shares) or np.any((shares < 0) | (shares > 1)):
            raise ValueError(
                "Promised and observed coverage must be shares between 0 and 1, at least one of each."
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
        ax = _new_axes((4.5, 4.5)) if ax is None else ax
        start = min(self.promised.min(), self.observed.min()) - 0.02
        ax.plot([start, 1], [start, 1], color=_REGION, lw=1.5, label="as promised")
        if self.observed.shape[1] > 1:
            x = np.repeat(self.promised, self.observed.shape[1])
            ax.plot(x, self.observed.ravel(), "_", ms=9, alpha=0.35, color=_INSIDE, label="single splits")
        ax.plot(self.promised, self.observed.mean(axis=1), "o", color=_INSIDE, label="observed")
        ax.set(xlim=(start, 1.005), ylim=(start, 1.005))
        return _finish(self, ax, xlabel="promised coverage", ylabel="observed coverage")


class LeaveOneOutDisplay:
    """Leave-one-out error over ridge and width, with the choice.

    Parameters
    ----------
    path : pandas.DataFrame
        Columns width, ridge, error: the ``loo_path_`` of an estimator.
    width : float or None
        The width that was chosen.
    ridge : float
        The ridge that was chosen.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import LeaveOneOutDisplay, TransductiveRidge
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = TransductiveRidge().fit(X, np.sin(X[:, 0]))
    >>> LeaveOneOutDisplay.from_estimator(model).ax_.get_xlabel()
    'ridge'
    """

    def __init__(self, path: Any, width: float | None, ridge: float) -> None:
        self.path = path
        self.width = width
        self.ridge = ridge

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot what a fitted estimator tried.

        Parameters
        ----------
        estimator : TransductiveRidge or TransductiveRidgeClassifier
            Fitted.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        LeaveOneOutDisplay
        """
        if not hasattr(estimator, "loo_path_"):
            raise TypeError("Pass a fitted TransductiveRidge or TransductiveRidgeClassifier.")
        return cls(estimator.loo_path_, estimator.width_, estimator.ridge_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw one curve for each width, the darker the wider, and the choice.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        LeaveOneOutDisplay
        """
        ax = _new_axes((6.5, 4.5)) if ax is None else ax
        finite = self.path[np.isfinite(self.path["error"])].sort_values("ridge")
        widths = finite["width"].drop_duplicates().sort_values()
        for i, width in enumerate(widths):
            curve = finite[
                finite["width"].isna() if width is None or np.isnan(width) else finite["width"] == width
            ]
            shade = 0.15 + 0.85 * (i + 1) / len(widths)
            label = "" if width is None or np.isnan(width) else f"width {width:.3g}"
            ax.plot(curve["ridge"], curve["error"], color=_INSIDE, alpha=shade, lw=1.2, label=label)
        best = finite["error"][finite["ridge"] == self.ridge].min()
        ax.plot([self.ridge], [best], "o", color=_OUTSIDE, label="choice")
        top = max(float(finite["error"].quantile(0.9)), 2.0 * float(finite["error"].min()))
        ax.set(xscale="log", ylim=(0.0, 1.1 * top))
        return _finish(self, ax, xlabel="ridge", ylabel="leave-one-out error", loc="lower left", ncols=3)


class TransductionDisplay:
    """Transductive against inductive answers; with the truth, if it is known, how far each is off.

    Parameters
    ----------
    inductive, transductive : array of shape (m,)
        Answers without and with a look at the asked rows.
    y_true : array of shape (m,), optional
        True labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductionDisplay
    >>> TransductionDisplay(np.array([1.0, 2.0]), np.array([1.1, 1.8])).plot().ax_.get_xlabel()
    'inductive answer'
    """

    def __init__(self, inductive: Array, transductive: Array, y_true: Array | None = None) -> None:
        self.inductive = inductive
        self.transductive = transductive
        self.y_true = y_true

    @classmethod
    def from_answer(cls, answer: Answer, *, y_true: Any = None, ax: Any = None) -> Self:
        """Plot the answer of a method that has both.

        Parameters
        ----------
        answer : Answer
            With numbers as values and inductive values beside them.
        y_true : array-like of shape (m,), optional
            True labels at the asked rows.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        TransductionDisplay
        """
        truth = _truth(answer, y_true)
        if answer.inductive is None or answer.values.ndim != 1 or answer.values.dtype.kind != "f":
            raise ValueError(
                "This answer has no inductive numbers beside its values: plot one of TransductiveRidge."
            )
        return cls(answer.inductive, answer.values, truth).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        TransductionDisplay
        """
        ax = _new_axes((5, 5)) if ax is None else ax
        both = np.concatenate([self.inductive, self.transductive])
        ends = [both.min(), both.max()] if len(both) else [0.0, 1.0]
        ax.plot(ends, ends, color=_REGION, lw=1.5, label="no change")
        if self.y_true is None:
            ax.plot(self.inductive, self.transductive, ".", color=_INSIDE, label="asked row")
        else:
            closer = np.abs(self.transductive - self.y_true) <= np.abs(self.inductive - self.y_true)
            for mask, color, word in (
                (closer, _INSIDE, "nearer to the truth"),
                (~closer & ~np.isnan(self.y_true), _OUTSIDE, "further from it"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(self.inductive[mask], self.transductive[mask], ".", color=color, label=label)
        return _finish(self, ax, xlabel="inductive answer", ylabel="transductive answer")
