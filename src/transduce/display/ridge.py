"""Plots of transductive ridge: what leave-one-out chose, and what looking at the unlabelled rows changed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce.core.answer import Answer
from transduce.core.types import Array
from transduce.display.axes import INSIDE, OUTSIDE, REGION, check_truth, finish, new_axes


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
    >>> from transduce.display import LeaveOneOutDisplay
    >>> from transduce import TransductiveRidge
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
        ax = new_axes((6.5, 4.5)) if ax is None else ax
        finite = self.path[np.isfinite(self.path["error"])].sort_values("ridge")
        widths = finite["width"].drop_duplicates().sort_values()
        for i, width in enumerate(widths):
            curve = finite[
                finite["width"].isna() if width is None or np.isnan(width) else finite["width"] == width
            ]
            shade = 0.15 + 0.85 * (i + 1) / len(widths)
            label = "" if width is None or np.isnan(width) else f"width {width:.3g}"
            ax.plot(curve["ridge"], curve["error"], color=INSIDE, alpha=shade, lw=1.2, label=label)
        best = finite["error"][finite["ridge"] == self.ridge].min()
        ax.plot([self.ridge], [best], "o", color=OUTSIDE, label="choice")
        top = max(float(finite["error"].quantile(0.9)), 2.0 * float(finite["error"].min()))
        ax.set(xscale="log", ylim=(0.0, 1.1 * top))
        return finish(self, ax, xlabel="ridge", ylabel="leave-one-out error", loc="lower left", ncols=3)


class TransductionDisplay:
    """Transductive against inductive answers; with the truth, if it is known, how far each is off.

    Parameters
    ----------
    inductive, transductive : array of shape (m,)
        Answers without and with a look at the unlabelled rows.
    y_true : array of shape (m,), optional
        True labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import TransductionDisplay
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
            True labels at the unlabelled rows.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        TransductionDisplay
        """
        truth = check_truth(answer, y_true)
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
        ax = new_axes((5, 5)) if ax is None else ax
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
        return finish(self, ax, xlabel="inductive answer", ylabel="transductive answer")
