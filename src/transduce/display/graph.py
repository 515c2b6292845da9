"""Plots for the spectral graph transducer: the rows along the graph's leading vectors, and the choice of a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.display.axes import INSIDE, OUTSIDE, REGION, finish, new_axes


class GraphMapDisplay:
    """Every row along the two leading eigenvectors of its graph, coloured by score or class.

    Parameters
    ----------
    positions : array of shape (n, 2)
        Entries of the two eigenvectors, divided by the root of the degree, which takes out how densely a row is tied.
    colours : array of shape (n,)
        Scores, or class numbers; NaN at rows that no label reaches.
    labelled : boolean array of shape (n,)
        Rows that carry a label.
    classes : array of shape (n_classes,)
        Names of the classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import GraphMapDisplay
    >>> from transduce import SpectralGraphTransducer
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.where(np.arange(40) < 4, X[:, 0] > 0, None)
    >>> model = SpectralGraphTransducer(random_state=0).fit(X, y)
    >>> GraphMapDisplay.from_estimator(model).ax_.get_xlabel()
    'first eigenvector'
    """

    def __init__(self, positions: Array, colours: Array, labelled: AnyArray, classes: AnyArray) -> None:
        self.positions = positions
        self.colours = colours
        self.labelled = labelled
        self.classes = classes

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot a fitted `SpectralGraphTransducer`.

        Parameters
        ----------
        estimator : SpectralGraphTransducer
            Fitted.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        GraphMapDisplay
        """
        if not hasattr(estimator, "spectrum_") or not hasattr(estimator, "answer_"):
            raise TypeError("Pass a fitted SpectralGraphTransducer.")
        spectrum = estimator.spectrum_
        if spectrum.vectors.shape[1] < 2:
            raise ValueError(
                "The graph has fewer than two eigenvectors to plot along: give n_components=2 or more."
            )
        roots = np.sqrt(np.maximum(spectrum.degrees, np.finfo(float).tiny))
        labelled = np.ones(len(roots), dtype=bool)
        labelled[estimator.answer_.rows] = False
        scores = estimator.scores_
        if scores.ndim == 1:
            colours = scores - estimator.thresholds_
        else:
            reached = ~np.isnan(scores[:, 0])
            margins = np.where(reached[:, None], scores - estimator.thresholds_, 0.0)
            colours = np.where(reached, margins.argmax(axis=1), np.nan)
        positions = spectrum.vectors[:, :2] / roots[:, None]
        return cls(positions, colours, labelled, estimator.classes_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; labelled rows have a black rim, rows that no label reaches are grey crosses.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        GraphMapDisplay
        """
        ax = new_axes((6.4, 4.8)) if ax is None else ax
        reached = ~np.isnan(self.colours)
        places = self.positions.T
        size = float(np.clip(4000.0 / len(self.colours), 3.0, 30.0))
        if not reached.all():
            ax.scatter(*places[:, ~reached], s=size, marker="x", color=REGION, label="no path to a label")
        if len(self.classes) == 2:
            limit = float(np.abs(self.colours[reached]).max())
            style: dict[str, Any] = {"cmap": "coolwarm", "vmin": -limit, "vmax": limit}
        else:
            from matplotlib import colormaps
            from matplotlib.colors import ListedColormap

            count = len(self.classes)
            colours = (
                colormaps["tab10"](range(10))
                if count <= 10
                else colormaps["turbo"](np.linspace(0.05, 0.95, count))
            )
            style = {"cmap": ListedColormap(colours[:count]), "vmin": -0.5, "vmax": count - 0.5}
        points = ax.scatter(*places[:, reached], c=self.colours[reached], s=size, linewidths=0, **style)
        ax.scatter(
            *places[:, self.labelled & reached],
            c=self.colours[self.labelled & reached],
            s=3 * size + 20,
            edgecolors="black",
            linewidths=1.2,
            label="labelled",
            **style,
        )
        self._legend(ax, points)
        return finish(self, ax, xlabel="first eigenvector", ylabel="second eigenvector", loc="best")

    def _legend(self, ax: Any, points: Any) -> None:
        if len(self.classes) == 2:
            low, high = self.classes.tolist()
            ax.figure.colorbar(points, ax=ax, label=f"score: {low} below 0, {high} above")
        else:
            bar = ax.figure.colorbar(points, ax=ax, ticks=np.arange(len(self.classes)))
            bar.ax.set_yticklabels(
                [f"{name:g}" if isinstance(name, float) else str(name) for name in self.classes.tolist()]
            )
            bar.ax.tick_params(length=0)


class NeighborChoiceDisplay:
    """The normalised objective over the number of neighbours and, where the truth is known, the break-even point.

    Parameters
    ----------
    choice : NeighborChoice
        What `choose_n_neighbors` returns.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from transduce.display import NeighborChoiceDisplay
    >>> from transduce.methods.spectral_graph import choose_n_neighbors
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(len(truth)) % 50 == 0, truth, None)
    >>> choice = choose_n_neighbors(X, y, [5, 20], metric="euclidean", truth=truth, random_state=0)
    >>> NeighborChoiceDisplay(choice).plot().ax_.get_xlabel()
    'neighbours'
    """

    def __init__(self, choice: Any) -> None:
        if not hasattr(choice, "table"):
            raise TypeError("Pass what choose_n_neighbors returns.")
        self.choice = choice

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; the choice is marked, the break-even point has the scale on the right.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        NeighborChoiceDisplay
        """
        ax = new_axes((6.0, 4.2)) if ax is None else ax
        table = self.choice.table
        ks = table["n_neighbors"].to_numpy()
        ax.plot(ks, table["objective"], "o-", color=INSIDE, label="normalised objective")
        ax.axvline(
            self.choice.n_neighbors, color=REGION, lw=1.2, ls="--", label=f"choice: {self.choice.n_neighbors}"
        )
        if "break_even" in table:
            right = ax.twinx()
            right.plot(ks, table["break_even"], "s-", color=OUTSIDE, label="break-even point")
            right.set_ylabel("break-even point (higher is better)", color=OUTSIDE)
            ax.plot([], [], "s-", color=OUTSIDE, label="break-even point")
        ax.set_xscale("log")
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.minorticks_off()
        return finish(
            self, ax, xlabel="neighbours", ylabel="normalised objective (lower is better)", loc="best"
        )
