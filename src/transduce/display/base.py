"""What the displays share: colours, axes, legend, checks of the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from transduce.core.answer import Answer
from transduce.core.types import Array

INSIDE, OUTSIDE, REGION, VALUE = "#1b6ca8", "#c8371e", "#a9bccb", "#33414c"


class Display(ABC):
    """A plot that draws itself on given or new axes, and remembers them as `ax_` and `figure_`."""

    ax_: Any
    figure_: Any
    _size = (6.5, 4.5)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on given or new axes, and return the display itself; `ax_` and `figure_` are what it was drawn on."""
        ax = new_axes(self._size) if ax is None else ax
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes."""


def new_axes(size: tuple[float, float]) -> Any:
    """Return the axes of a new figure; matplotlib is imported only by those who plot."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def finish(ax: Any, *, xlabel: str, ylabel: str, loc: str = "upper left", ncols: int = 1) -> None:
    """Label the axes, and add a legend that does not hide what is behind it."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    fontsize = "small" if ncols == 1 else "x-small"
    ax.legend(framealpha=0.85, edgecolor="none", fontsize=fontsize, loc=loc, ncols=ncols)


def check_truth(answer: Answer, y_true: Any) -> Array | None:
    """Return the true labels at the unlabelled rows, checked; None if they are not known."""
    if not isinstance(answer, Answer):
        raise TypeError(f"Pass an answer, such as model.answer_; got {type(answer).__name__}.")
    truth = None if y_true is None else np.asarray(y_true, dtype=float)
    if truth is not None and truth.shape != (len(answer),):
        raise ValueError(f"Give one true label for each of the {len(answer)} unlabelled rows.")
    return truth
