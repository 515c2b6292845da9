"""Plots of Gaussian processes: relevance of features, bands along one of them, moments before and after matching."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
import pandas as pd

from transduce.core.types import AnyArray, Array
from transduce.display.axes import INSIDE, OUTSIDE, REGION, VALUE, finish, new_axes


def _check(estimator: Any) -> None:
    """Raise a TypeError unless an estimator is fitted and has what these plots show."""
    if not hasattr(estimator, "answer_") or not hasattr(estimator, "moments_"):
        raise TypeError("Pass a fitted TransductiveGPRegressor.")


def _names(estimator: Any) -> list[str]:
    default = [f"feature {j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", default)]


def _column(estimator: Any, feature: Any) -> int:
    """Return the position of a feature given by name or position."""
    names = _names(estimator)
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, numbers.Integral) and int(feature) in range(len(names)):
        return int(feature)
    raise ValueError(
        f"There is no feature {feature!r}; give a position from 0, or one of {', '.join(names[:20])}."
    )


class RelevanceDisplay:
    """How much each feature matters to a Gaussian process, as bars.

    Parameters
    ----------
    relevance : array of shape (d,)
        Larger is more relevant; comparable between features.
    names : sequence of d strings
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from transduce.display import RelevanceDisplay
    >>> display = RelevanceDisplay([0.5, 2.0], ["age", "dose"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age', 'dose']
    """

    def __init__(self, relevance: Any, names: Any) -> None:
        self.relevance = np.asarray(relevance, dtype=float)
        self.names = [str(name) for name in names]
        if self.relevance.shape != (len(self.names),):
            raise ValueError(f"Give one name for each of the {self.relevance.size} relevances.")

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 20, ax: Any = None) -> Self:
        """Plot the relevances of a fitted estimator, for features brought to standard deviation 1.

        Parameters
        ----------
        estimator : TransductiveGPRegressor
            Fitted.
        max_features : int, default=20
            Only as many of the most relevant features are shown.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RelevanceDisplay
        """
        _check(estimator)
        names = np.asarray(_names(estimator))
        relevance = estimator.relevance_ * estimator.feature_spread_
        most = np.argsort(-relevance, kind="stable")[:max_features]
        return cls(relevance[most], names[most]).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw, the most relevant on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        RelevanceDisplay
        """
        ax = new_axes((6, 0.9 + 0.28 * max(len(self.names), 3))) if ax is None else ax
        order = np.argsort(self.relevance, kind="stable")
        ax.barh([self.names[j] for j in order], self.relevance[order], color=INSIDE, height=0.7)
        ax.set(xlabel="relevance (inverse length scale, in standard deviations)", xlim=(0, None))
        self.ax_, self.figure_ = ax, ax.figure
        return self


class BandDisplay:
    """Predictions with bands along one feature, over the labels that were seen.

    Parameters
    ----------
    x : array of shape (k,)
        Values of the feature, ascending.
    mean, std : array of shape (k,)
        Predictions there, and their standard errors.
    seen : tuple of two arrays, optional
        The feature and the label of the labelled rows.
    unlabelled : tuple of three arrays, optional
        The feature, the answer and its standard error at the unlabelled rows.
    name : str, default="feature"
        Name of the feature.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import BandDisplay
    >>> display = BandDisplay(np.arange(3), np.zeros(3), np.ones(3), name="dose").plot()
    >>> display.ax_.get_xlabel()
    'dose'
    """

    def __init__(
        self,
        x: Array,
        mean: Array,
        std: Array,
        seen: Any = None,
        unlabelled: Any = None,
        name: str = "feature",
    ) -> None:
        self.x, self.mean, self.std = x, mean, std
        self.seen, self.unlabelled, self.name = seen, unlabelled, name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, feature: Any = 0, ax: Any = None) -> Self:
        """Plot a fitted estimator along one feature, the others at their median.

        Parameters
        ----------
        estimator : TransductiveGPRegressor
            Fitted on `X`.
        X : array-like of shape (n, d)
            The rows given to `fit`.
        feature : int or str, default=0
            Position or name.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        BandDisplay
        """
        _check(estimator)
        if np.shape(X)[0] != len(estimator.transduction_):
            raise ValueError(f"Pass the {len(estimator.transduction_)} rows of fit; got {np.shape(X)[0]}.")
        j, rows = _column(estimator, feature), np.asarray(X, dtype=float)
        line = np.linspace(rows[:, j].min(), rows[:, j].max(), 200)
        path: AnyArray = np.tile(np.median(rows, axis=0), (200, 1))
        path[:, j] = line
        if hasattr(estimator, "feature_names_in_"):
            path = pd.DataFrame(path, columns=estimator.feature_names_in_)
        mean, std = estimator.predict(path, return_std=True)
        answer = estimator.answer_
        known = np.setdiff1d(np.arange(len(rows)), answer.rows)
        labels = np.asarray(estimator.transduction_, dtype=float)
        return cls(
            line,
            mean,
            std,
            seen=(rows[known, j], labels[known]),
            unlabelled=(rows[answer.rows, j], answer.values, answer.standard_errors),
            name=_names(estimator)[j] + (", others at their median" if rows.shape[1] > 1 else ""),
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw: mean, two standard errors either way, labels, answers.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        BandDisplay
        """
        ax = new_axes((7.5, 4.5)) if ax is None else ax
        low, high = self.mean - 1.96 * self.std, self.mean + 1.96 * self.std
        ax.fill_between(
            self.x, low, high, color=REGION, alpha=0.5, lw=0, label="95 % of labels, by the model"
        )
        ax.plot(self.x, self.mean, color=INSIDE, lw=1.8, label="mean")
        if self.seen is not None:
            ax.plot(*self.seen, ".", color=VALUE, ms=5, label="label seen")
        if self.unlabelled is not None and len(self.unlabelled[0]):
            x, values, errors = self.unlabelled
            ax.errorbar(
                x, values, 1.96 * errors, fmt="o", ms=3, lw=0.7, color=OUTSIDE, alpha=0.7, label="answer"
            )
        return finish(self, ax, xlabel=self.name, ylabel="label", loc="best")


class MomentDisplay:
    """Mean and spread of the labels seen, and of the predictions before and after matching.

    Parameters
    ----------
    moments : pandas.DataFrame
        The ``moments_`` of an estimator: columns mean and standard deviation, one line for each distribution.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce.display import MomentDisplay
    >>> table = pd.DataFrame({"mean": [0.0, 0.2], "standard deviation": [1.0, 0.7]}, index=["labels", "predicted"])
    >>> MomentDisplay(table).plot().ax_.get_xlabel()
    'label: mean and one standard deviation either way'
    """

    def __init__(self, moments: pd.DataFrame) -> None:
        self.moments = moments

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot the moments of a fitted estimator.

        Parameters
        ----------
        estimator : TransductiveGPRegressor
            Fitted.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        MomentDisplay
        """
        _check(estimator)
        return cls(estimator.moments_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw a bar for each distribution, the labels' own on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        MomentDisplay
        """
        ax = new_axes((6.5, 0.9 + 0.5 * len(self.moments))) if ax is None else ax
        words = {
            "labels": "labels seen",
            "without matching": "predicted, without matching",
            "predicted": "predicted",
            "matched": "nearest that matches",
        }
        table = self.moments.iloc[::-1]
        mean, spread = table["mean"].to_numpy(), table["standard deviation"].to_numpy()
        colors = [VALUE if name == "labels" else INSIDE for name in table.index]
        places = np.arange(len(table))
        ax.barh(places, 2 * spread, left=mean - spread, height=0.45, color=colors, alpha=0.45)
        ax.plot(mean, places, "|", ms=16, mew=2.5, color=VALUE)
        ends = np.concatenate([mean - spread, mean + spread])
        margin = 0.06 * (np.ptp(ends) or 1.0)
        ax.set_xlim(ends.min() - margin, ends.max() + margin)
        for edge in (-1, 0, 1):
            ax.axvline(mean[-1] + edge * spread[-1], color=VALUE, lw=0.7, ls=":")
        ax.set(
            yticks=places,
            yticklabels=[words.get(name, name) for name in table.index],
            xlabel="label: mean and one standard deviation either way",
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self
