"""Plots of errors against the share of answers that are rejected."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce.core.answer import Answer
from transduce.core.types import Array
from transduce.display.axes import INSIDE, REGION, finish, new_axes
from transduce.metrics import rejection_curve


class RejectionCurveDisplay:
    """Error among the answers kept, against the share of rows rejected.

    Parameters
    ----------
    errors, rejected : array of shape (k,)
        What `rejection_curve` returns.
    name : str, default="answers kept"
        Legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from transduce.display import RejectionCurveDisplay
    >>> display = RejectionCurveDisplay.from_predictions([0, 1, 1], [0, 1, 0], [0.9, 0.8, 0.1])
    >>> display.ax_.get_xlabel()
    'share of rows rejected'
    """

    def __init__(self, errors: Array, rejected: Array, name: str = "answers kept") -> None:
        self.errors = errors
        self.rejected = rejected
        self.name = name

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, confidence: Any, *, name: str = "answers kept", ax: Any = None
    ) -> Self:
        """Plot the curve of any answers.

        Parameters
        ----------
        y_true : array-like of shape (m,)
            True labels.
        y_pred : array-like of shape (m,)
            Answers.
        confidence : array-like of shape (m,)
            How sure each answer is.
        name : str, default="answers kept"
            Legend.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RejectionCurveDisplay
        """
        return cls(*rejection_curve(y_true, y_pred, confidence), name).plot(ax=ax)

    @classmethod
    def from_answer(cls, answer: Answer, y_true: Any, *, name: str = "answers kept", ax: Any = None) -> Self:
        """Plot the curve of a classifier's answer.

        Parameters
        ----------
        answer : Answer
            With confidences.
        y_true : array-like of shape (m,)
            True labels at the unlabelled rows.
        name : str, default="answers kept"
            Legend.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RejectionCurveDisplay
        """
        if not isinstance(answer, Answer) or answer.confidence is None:
            raise TypeError("Pass the answer_ of a classifier that has confidences.")
        return cls.from_predictions(y_true, answer.values, answer.confidence, name=name, ax=ax)

    def plot(self, *, ax: Any = None, color: Any = INSIDE) -> Self:
        """Draw; each step is one more value of confidence that is no longer enough.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        color : matplotlib color, optional

        Returns
        -------
        RejectionCurveDisplay
        """
        fresh = ax is None
        ax = new_axes((5.5, 4.2)) if ax is None else ax
        if fresh:
            ax.axhline(self.errors[0], color=REGION, lw=1.2, label="nothing rejected")
        ax.step(
            np.append(self.rejected, 1.0),
            np.append(self.errors, self.errors[-1]),
            where="post",
            color=color,
            label=self.name,
        )
        shown = [float(np.max(line.get_ydata())) for line in ax.lines]
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.08 * max(shown) or 0.1))
        return finish(
            self, ax, xlabel="share of rows rejected", ylabel="error among the others", loc="upper right"
        )
