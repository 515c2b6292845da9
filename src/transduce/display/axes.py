"""What the displays share: colours, new axes, checks of the truth, labels and legend."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core.answer import Answer
from transduce.core.types import Array

INSIDE, OUTSIDE, REGION, VALUE = "#1b6ca8", "#c8371e", "#a9bccb", "#33414c"


def new_axes(size: tuple[float, float]) -> Any:
    """Return the axes of a new figure; matplotlib is imported only by those who plot."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def check_truth(answer: Answer, y_true: Any) -> Array | None:
    """Return the true labels at the unlabelled rows, checked; None if they are not known."""
    if not isinstance(answer, Answer):
        raise TypeError(f"Pass an answer, such as model.answer_; got {type(answer).__name__}.")
    truth = None if y_true is None else np.asarray(y_true, dtype=float)
    if truth is not None and truth.shape != (len(answer),):
        raise ValueError(f"Give one true label for each of the {len(answer)} unlabelled rows.")
    return truth


def finish(
    display: Any, ax: Any, *, xlabel: str, ylabel: str, loc: str = "upper left", ncols: int = 1
) -> Any:
    """Label the axes, add a legend that does not hide what is behind it, and remember them."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(
        framealpha=0.85, edgecolor="none", fontsize="small" if ncols == 1 else "x-small", loc=loc, ncols=ncols
    )
    display.ax_, display.figure_ = ax, ax.figure
    return display
