"""Plots of predictions, in the manner of scikit-learn's displays.

Notebooks, docs and reports share them.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core import arrays
from transduce.core.answer import Answer, LevelAnswer, Regions
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.core.words import percent
from transduce.metrics import rejection_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MiscoverageDisplay", "RegionDisplay", "RejectionCurveDisplay", "RelevanceDisplay"]
__all__ += ["BandDisplay", "EnvelopeDisplay", "GraphMapDisplay"]

INSIDE, OUTSIDE, REGION, VALUE = "#1b6ca8", "#c8371e", "#a9bccb", "#33414c"
PALEST, DARKEST = "#dce5ec", "#7f9db4"  # of regions at several levels
MOST_BARS = 400
LegendPlace = Literal["best", "upper left", "upper center", "upper right"]


class Display(ABC):
    """A plot that draws itself on given or new axes, and remembers them as `ax_` and `figure_`."""

    ax_: Axes
    figure_: Any
    _size = (6.5, 4.5)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw on given or new axes, and return the display itself.

        `ax_` and `figure_` are what it was drawn on.
        """
        ax = new_axes(self._size) if ax is None else ax
        self._draw(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on axes."""


def new_axes(size: tuple[float, float]) -> Any:
    """Return the axes of a new figure; matplotlib is imported only by those who plot."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def finish(
    ax: Axes,
    *,
    xlabel: str,
    ylabel: str,
    loc: LegendPlace = "upper left",
) -> None:
    """Label the axes, and add a legend that does not hide what is behind it."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(framealpha=0.85, edgecolor="none", fontsize="small", loc=loc)


def _shades(number: int) -> list[Any]:
    """Return the colours of regions at so many levels, that of the highest first."""
    if number == 1:
        return [REGION]
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("regions", [PALEST, DARKEST])
    return [shades(share) for share in np.linspace(0.0, 1.0, number)]


# ------------------------------------------------------------------------------------------ answers


@dataclass(eq=False, repr=False)
class RegionDisplay(Display):
    """Predictions and their regions, row by row in the order of the values.

    The truth is shown too, if it is known.

    Parameters
    ----------
    values, regions : array of shape (m,), Regions
        Predictions, and their regions.
    y_true : array of shape (m,), optional
        True labels.
    level : float, optional
        Level of the regions, for the legend.
    further : tuple of LevelAnswer
        Regions at other levels, drawn around these or within them.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Regions
    >>> from transduce.display import RegionDisplay
    >>> regions = Regions.from_intervals([[0, 3], [1, 2]])
    >>> RegionDisplay(np.array([1.0, 2.0]), regions).plot().ax_.get_ylabel()
    'label'
    """

    values: Array
    regions: Regions
    y_true: Array | None = None
    level: float | None = None
    further: tuple[LevelAnswer, ...] = ()
    _size = (8, 4.5)

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        *,
        y_true: Labels = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the predictions of a regression method.

        Parameters
        ----------
        answer : Answer
            Predictions with regions, such as ``model.answer_``.
        y_true : array-like of shape (m,), optional
            True labels at its rows, NaN where one is not known.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        RegionDisplay
        """
        if not isinstance(answer, Answer):
            raise TypeError(f"Pass an answer, such as model.answer_; got {type(answer).__name__}.")
        if answer.regions is None:
            raise ValueError("This answer has no regions: plot one of a regression method.")
        truth = None if y_true is None else np.asarray(y_true, dtype=float)
        if truth is not None and truth.shape != (len(answer),):
            raise ValueError(f"Give one true label for each of the {len(answer)} unlabelled rows.")
        level = answer.guarantee.confidence
        return cls(answer.values, answer.regions, truth, level, answer.further).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        place = np.argsort(np.argsort(self.values, kind="stable")).astype(float)
        self._draw_regions(ax, place)
        size = float(np.clip(80.0 / np.sqrt(max(len(place), 1)), 1.0, 6.0))
        if self.y_true is not None:
            inside = self.regions.contains(self.y_true)
            known = ~np.isnan(self.y_true)
            for mask, color, marker, word in (
                (inside & known, INSIDE, "o", "truth, inside"),
                (~inside & known, OUTSIDE, "X", "truth, outside"),
            ):
                label = f"{word} ({mask.sum()})"
                ax.plot(place[mask], self.y_true[mask], marker, ms=size, color=color, label=label)
        ax.plot(
            place,
            self.values,
            "_",
            ms=max(size, 2.0),
            mew=1.5,
            color=VALUE,
            label="prediction",
        )
        _whole_numbers(ax)
        finish(ax, xlabel="unlabelled rows, by prediction", ylabel="label")

    def _draw_regions(self, ax: Axes, place: Array) -> None:
        """Draw every piece as a bar; rays end a little beyond everything finite."""
        from matplotlib.collections import LineCollection

        by_level = {self.level or 0.5: self.regions}
        for other in self.further:
            assert other.regions is not None
            by_level[other.level] = other.regions
        highest_first = sorted(by_level.items(), reverse=True)
        if self.y_true is None:
            truth = np.empty(0)
        else:
            truth = self.y_true
        pieces = {level: arrays.to_numpy(regions.pieces) for level, regions in highest_first}
        all_ends = [ends.ravel() for ends in pieces.values()]
        finite = np.concatenate([self.values, *all_ends, truth])
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        margin = 0.05 * (high - low) or 1.0
        width = float(np.clip(300.0 / max(len(place), 1), 0.8, 6.0))
        shades = _shades(len(highest_first))
        for (level, regions), color in zip(highest_first, shades, strict=True):
            x = np.repeat(place, regions.n_pieces)
            ends = np.clip(pieces[level], low - margin, high + margin)
            lines = []
            for at, (lower, upper) in zip(x, ends, strict=True):
                lines.append([(at, lower), (at, upper)])
            label = "interval" if (regions.n_pieces <= 1).all() else "region"
            if self.further:
                label = f"{label} at {percent(level)}"
            ax.add_collection(LineCollection(lines, colors=color, linewidths=width, label=label))
        ax.set(xlim=(-1, len(place)), ylim=(low - margin, high + margin))


def _whole_numbers(ax: Axes) -> None:
    """Count along the x axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


@dataclass(eq=False, repr=False)
class MiscoverageDisplay(Display):
    """How many of the unlabelled rows are outside.

    The plot shows the probabilities, the bound and, if it is known, the truth.

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
    >>> law = Miscoverage(n_unlabelled=20, n_calibration=9, rank=9)
    >>> display = MiscoverageDisplay.from_law(law, truth=1)
    >>> display.ax_.get_xlabel()
    'number of 20 values outside'
    """

    probabilities: Array
    bound: int
    certainty: float = 0.95
    truth: int | None = None
    _size = (6.5, 3.8)

    @classmethod
    def from_law(
        cls,
        law: Any,
        *,
        certainty: float = 0.95,
        truth: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot a distribution of the number of rows outside.

        Parameters
        ----------
        law : Miscoverage or CategoryMiscoverage
            The distribution, such as ``model.miscoverage_``.
        certainty : float, default=0.95
            Probability with which the bound that is shown holds.
        truth : int, optional
            The true number, if it is known.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

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

    def _draw(self, ax: Axes) -> None:
        counts = np.arange(len(self.probabilities))
        likely = int(np.searchsorted(np.cumsum(self.probabilities), 0.999))
        last = min(max(likely, self.bound, self.truth or 0) + 1, counts[-1])
        within = counts <= self.bound
        shown = counts <= last
        likely_part = f"{100 * self.certainty:g} %: at most {self.bound}"
        self._draw_counts(ax, counts[within & shown], last, color=INSIDE, label=likely_part)
        self._draw_counts(ax, counts[~within & shown], last, color=REGION, label="more")
        if self.truth is not None:
            ax.axvline(self.truth, color=OUTSIDE, lw=2, label=f"truth: {self.truth}")
        ax.set(xlim=(-0.8, last + 0.8), ylim=(0.0, None))
        _whole_numbers(ax)
        finish(
            ax,
            xlabel=f"number of {counts[-1]} values outside",
            ylabel="probability",
            loc="upper right",
        )

    def _draw_counts(self, ax: Axes, counts: AnyArray, last: int, **style: Any) -> None:
        """Draw the probabilities of some of the numbers up to `last`."""
        if last <= MOST_BARS:
            width = 0.85 if last < 120 else 1.0
            ax.bar(counts, self.probabilities[counts], width, **style)
            return
        # Thousands of bars would look the same and take minutes.
        points = np.unique(np.append(counts[:: last // MOST_BARS + 1], counts[-1:]))
        ax.fill_between(points, self.probabilities[points], lw=0, **style)


@dataclass(eq=False, repr=False)
class RejectionCurveDisplay(Display):
    """Error among the predictions kept, against the share of rows rejected.

    The curve has one step for each value of confidence.

    Parameters
    ----------
    errors, rejected : array of shape (k,)
        What `rejection_curve` returns.
    name : str, default="predictions kept"
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
    name: str = "predictions kept"
    _size = (5.5, 4.2)

    @classmethod
    def from_predictions(
        cls,
        y_true: Labels,
        y_pred: Labels,
        confidence: npt.ArrayLike,
        *,
        name: str = "predictions kept",
        ax: Axes | None = None,
    ) -> Self:
        """Plot the curve of any predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (m,)
            True labels, and predictions.
        confidence : array-like of shape (m,)
            How certain each prediction is.
        name : str, default="predictions kept"
            Name in the legend.
        ax : matplotlib axes, optional
            Where to draw, perhaps beside another curve; new ones by default.

        Returns
        -------
        RejectionCurveDisplay
        """
        return cls(*rejection_curve(y_true, y_pred, confidence), name).plot(ax=ax)

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        y_true: Labels,
        *,
        name: str = "predictions kept",
        ax: Axes | None = None,
    ) -> Self:
        """Plot the curve of a classifier's predictions.

        Parameters
        ----------
        answer : Answer
            Predictions with confidences, such as ``model.answer_``.
        y_true : array-like of shape (m,)
            True labels at its rows.
        name, ax
            As in `from_predictions`.

        Returns
        -------
        RejectionCurveDisplay
        """
        if not isinstance(answer, Answer) or answer.confidence is None:
            raise TypeError("Pass the answer_ of a classifier that has confidences.")
        return cls.from_predictions(y_true, answer.values, answer.confidence, name=name, ax=ax)

    def _draw(self, ax: Axes) -> None:
        color = f"C{len(ax.lines)}" if ax.lines else INSIDE
        if not ax.lines:  # beside another curve it stands already
            ax.axhline(self.errors[0], color=REGION, lw=1.2, label="nothing rejected")
        rejected = np.append(self.rejected, 1.0)
        errors = np.append(self.errors, self.errors[-1])
        ax.step(rejected, errors, where="post", color=color, label=self.name)
        highest = max(float(np.max(line.get_ydata())) for line in ax.lines)
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.08 * highest or 0.1))
        finish(
            ax, xlabel="share of rows rejected", ylabel="error among the others", loc="upper right"
        )


# --------------------------------------------------------------------------------- single methods


@dataclass(eq=False, repr=False)
class EnvelopeDisplay(Display):
    """Leave-one-out error of every setting against the label of one row.

    The plot marks what is chosen, and the region.

    Parameters
    ----------
    envelope : RowEnvelope
        What `RidgeConfidenceMachine.envelope` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import RidgeConfidenceMachine
    >>> from transduce.display import EnvelopeDisplay
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> y = np.append(np.sin(X[1:, 0]), np.nan)
    >>> machine = RidgeConfidenceMachine(settings="leave-one-out").fit(X, y)
    >>> EnvelopeDisplay.from_envelope(machine.envelope(X[-1:])).ax_.get_ylabel()
    'leave-one-out error'
    """

    envelope: Any
    _size = (7, 4.5)

    @classmethod
    def from_envelope(cls, envelope: Any, *, ax: Axes | None = None) -> Self:
        """Plot the envelope of one row.

        Parameters
        ----------
        envelope : RowEnvelope
            What `RidgeConfidenceMachine.envelope` returns.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        EnvelopeDisplay
        """
        if not hasattr(envelope, "owners"):
            raise TypeError(f"Pass the envelope of one row; got {type(envelope).__name__}.")
        return cls(envelope).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        low, high = self._range()
        labels = np.linspace(low, high, 400)
        for s in range(len(self.envelope.curves)):
            ax.plot(labels, self._errors(s, labels), color=REGION, lw=0.6, zorder=1)
        top, bottom = self._draw_pieces(ax, low, high)
        for k, piece in enumerate(np.clip(self.envelope.region, low, high)):
            ax.axvspan(
                *piece,
                color=REGION,
                alpha=0.35,
                lw=0,
                zorder=0,
                label="region" if k == 0 else None,
            )
        ax.axvline(self.envelope.value, color=VALUE, lw=1, ls="--", label="value")
        margin = 0.25 * (top - bottom) or 1.0
        lowest = max(bottom - margin, 0.0)
        ax.set(xlim=(low, high), ylim=(lowest, top + 2 * margin))
        finish(ax, xlabel="label of the row", ylabel="leave-one-out error", loc="upper center")

    def _errors(self, setting: int, labels: Array) -> Array:
        p, c0, c1, c2 = self.envelope.curves[setting]
        return c0 + (labels - p) * (c1 + c2 * (labels - p))

    def _range(self) -> tuple[float, float]:
        """Return the labels to show: the region and some more.

        Where the region has no end, they go as far as errors double.
        """
        span = self.envelope
        _, c0, _, c2 = span.curves[
            int(span.owners[np.searchsorted(span.starts, span.value, side="right") - 1])
        ]
        reach = 2.0 * np.sqrt(max(c0 / c2, 0.0)) or 1.0
        ends = np.append(span.region[np.isfinite(span.region)], span.value)
        if not np.isfinite(span.region).all():
            ends = np.concatenate([ends, [span.value - reach, span.value + reach]])
        margin = 0.35 * np.ptp(ends) or reach
        return float(ends.min() - margin), float(ends.max() + margin)

    def _draw_pieces(
        self,
        ax: Axes,
        low: float,
        high: float,
    ) -> tuple[float, float]:
        """Draw the envelope between two labels, with a colour for each setting.

        Return its largest and smallest value.
        """
        span = self.envelope
        colours = dict[int, str]()
        heights = []
        ends = np.append(span.starts[1:], np.inf)
        for start, end, owner in zip(span.starts, ends, span.owners.tolist(), strict=True):
            if end <= low or start >= high:
                continue
            labels = np.linspace(max(start, low), min(end, high), 100)
            name = None if owner in colours else span.names[owner]
            colour = colours.setdefault(owner, f"C{len(colours)}")
            heights.append(self._errors(owner, labels))
            ax.plot(labels, heights[-1], color=colour, lw=3, zorder=2, label=name)
        whole = np.concatenate(heights)
        return float(whole.max()), float(whole.min())


def _check(estimator: object) -> None:
    """Raise a TypeError unless an estimator is fitted and has what these plots show."""
    if not hasattr(estimator, "answer_") or not hasattr(estimator, "moments_"):
        raise TypeError("Pass a fitted TransductiveGPRegressor.")


def _names(estimator: Any) -> list[str]:
    default = [f"feature {j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", default)]


class RelevanceDisplay(Display):
    """How much each feature matters to a Gaussian process, as bars, the most relevant on top.

    Parameters
    ----------
    relevance : array of shape (d,)
        Larger is more relevant; comparable between features.
    names : sequence of d strings
        Names of the features.

    Examples
    --------
    >>> from transduce.display import RelevanceDisplay
    >>> display = RelevanceDisplay([0.5, 2.0], ["age", "dose"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age', 'dose']
    """

    def __init__(self, relevance: npt.ArrayLike, names: Iterable[object]) -> None:
        self.relevance = np.asarray(relevance, dtype=float)
        self.names = [str(name) for name in names]
        if self.relevance.shape != (len(self.names),):
            raise ValueError(f"Give one name for each of the {self.relevance.size} relevances.")
        self._size = (6, 0.9 + 0.28 * max(len(self.names), 3))

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_features: int = 20, ax: Axes | None = None
    ) -> Self:
        """Plot the largest relevances of a Gaussian process, for features of standard deviation 1.

        Parameters
        ----------
        estimator : TransductiveGPRegressor
            Fitted.
        max_features : int, default=20
            How many bars at most.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        RelevanceDisplay
        """
        _check(estimator)
        names = np.asarray(_names(estimator))
        relevance = estimator.relevance_ * estimator.feature_spread_
        most = np.argsort(-relevance, kind="stable")[:max_features]
        return cls(relevance[most], names[most]).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        order = np.argsort(self.relevance, kind="stable")
        ax.barh([self.names[j] for j in order], self.relevance[order], color=INSIDE, height=0.7)
        ax.set(xlabel="relevance (inverse length scale, in standard deviations)", xlim=(0, None))


@dataclass(eq=False, repr=False)
class BandDisplay(Display):
    """Predictions with bands of two standard errors along one feature.

    They are drawn over the labels that were seen.

    Parameters
    ----------
    x : array of shape (k,)
        Values of the feature, ascending.
    mean, std : array of shape (k,)
        Predictions there, and their standard errors.
    seen : tuple of two arrays, optional
        The feature and the label of the labelled rows.
    unlabelled : tuple of three arrays, optional
        The feature, the prediction and its standard error at the unlabelled rows.
    name : str, default="feature"
        Name of the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import BandDisplay
    >>> BandDisplay(np.arange(3), np.zeros(3), np.ones(3), name="dose").plot().ax_.get_xlabel()
    'dose'
    """

    x: Array
    mean: Array
    std: Array
    seen: tuple[Array, Array] | None = None
    unlabelled: tuple[Array, Array, Array] | None = None
    name: str = "feature"
    _size = (7.5, 4.5)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Rows,
        *,
        feature: int | str = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Plot a Gaussian process along one feature, the others at their median.

        Parameters
        ----------
        estimator : TransductiveGPRegressor
            Fitted.
        X : array-like of shape (n, d)
            The rows of `fit`.
        feature : int or str, default=0
            Position or name of the feature.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        BandDisplay
        """
        _check(estimator)
        if np.shape(X)[0] != len(estimator.transduction_):
            raise ValueError(
                f"Pass the {len(estimator.transduction_)} rows of fit; got {np.shape(X)[0]}."
            )
        names = _names(estimator)
        rows = np.asarray(X, dtype=float)
        j: Any = names.index(feature) if feature in names else feature
        if not isinstance(j, numbers.Integral) or j not in range(len(names)):
            listed = ", ".join(names[:20])
            raise ValueError(
                f"There is no feature {feature!r}; give a position from 0, or one of {listed}."
            )
        line = np.linspace(rows[:, j].min(), rows[:, j].max(), 200)
        path: AnyArray = np.tile(np.median(rows, axis=0), (200, 1))
        path[:, j] = line
        if hasattr(estimator, "feature_names_in_"):
            path = pd.DataFrame(path, columns=estimator.feature_names_in_)
        mean, std = estimator.predict(path, return_std=True)
        answer = estimator.answer_
        known = np.setdiff1d(np.arange(len(rows)), answer.rows)
        labels = np.asarray(estimator.transduction_, dtype=float)
        seen = (rows[known, j], labels[known])
        asked = rows[answer.rows, j]
        name = names[j] + (", others at their median" if rows.shape[1] > 1 else "")
        return cls(
            line,
            mean,
            std,
            seen,
            (asked, answer.values, answer.standard_errors),
            name,
        ).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        low = self.mean - 1.96 * self.std
        high = self.mean + 1.96 * self.std
        label = "95 % of labels, by the model"
        ax.fill_between(self.x, low, high, color=REGION, alpha=0.5, lw=0, label=label)
        ax.plot(self.x, self.mean, color=INSIDE, lw=1.8, label="mean")
        if self.seen is not None:
            ax.plot(*self.seen, ".", color=VALUE, ms=5, label="label seen")
        if self.unlabelled is not None and len(self.unlabelled[0]):
            x, values, errors = self.unlabelled
            style: dict[str, Any] = {"fmt": "o", "ms": 3, "lw": 0.7, "alpha": 0.7}
            ax.errorbar(x, values, 1.96 * errors, color=OUTSIDE, label="prediction", **style)
        finish(ax, xlabel=self.name, ylabel="label", loc="best")


@dataclass(eq=False, repr=False)
class GraphMapDisplay(Display):
    """Every row along the two leading eigenvectors of its graph.

    Rows are coloured by score or class, and labelled ones have a rim.

    Parameters
    ----------
    positions : array of shape (n, 2)
        Entries of the two eigenvectors, divided by the root of the degree, which takes out how
        densely a row is tied.
    colours : array of shape (n,)
        Scores, or class numbers; NaN at rows that no label reaches, which are grey crosses.
    labelled : boolean array of shape (n,)
        Rows that carry a label.
    classes : array of shape (n_classes,)
        Names of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import SpectralGraphTransducer
    >>> from transduce.display import GraphMapDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.where(np.arange(40) < 4, X[:, 0] > 0, None)
    >>> model = SpectralGraphTransducer(random_state=0).fit(X, y)
    >>> GraphMapDisplay.from_estimator(model).ax_.get_xlabel()
    'first eigenvector'
    """

    positions: Array
    colours: Array
    labelled: AnyArray
    classes: AnyArray
    _size = (6.4, 4.8)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Plot the rows of a graph, coloured by score or class.

        Parameters
        ----------
        estimator : SpectralGraphTransducer
            Fitted.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        GraphMapDisplay
        """
        if not hasattr(estimator, "spectrum_") or not hasattr(estimator, "answer_"):
            raise TypeError("Pass a fitted SpectralGraphTransducer.")
        spectrum = estimator.spectrum_
        if spectrum.vectors.shape[1] < 2:
            raise ValueError(
                "The graph has fewer than two eigenvectors: give n_components=2 or more."
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

    def _draw(self, ax: Axes) -> None:
        reached = ~np.isnan(self.colours)
        x, y = self.positions.T
        style = self._colour_scale(reached)
        size = float(np.clip(4000.0 / len(self.colours), 3.0, 30.0))
        if not reached.all():
            ax.scatter(
                x[~reached],
                y[~reached],
                s=size,
                marker="x",
                color=REGION,
                label="no path to a label",
            )
        colours = self.colours[reached]
        points = ax.scatter(x[reached], y[reached], c=colours, s=size, linewidths=0, **style)
        labelled = self.labelled & reached
        rim: dict[str, Any] = {"edgecolors": "black", "linewidths": 1.2, "label": "labelled"}
        colours = self.colours[labelled]
        ax.scatter(x[labelled], y[labelled], c=colours, s=3 * size + 20, **rim, **style)
        self._explain_colours(ax, points)
        finish(ax, xlabel="first eigenvector", ylabel="second eigenvector", loc="best")

    def _explain_colours(self, ax: Axes, points: Any) -> None:
        """Add a bar that says which score, or class, each colour is."""
        names = self._names_of_classes()
        bar = ax.figure.colorbar(points, ax=ax)
        if len(names) == 2:
            bar.set_label(f"score: {names[0]} below 0, {names[1]} above")
        else:
            bar.set_ticks(list(range(len(names))), labels=names)
            bar.ax.tick_params(length=0)

    def _names_of_classes(self) -> list[str]:
        """Return the classes as text, without the zeros behind a whole number."""
        names = []
        for name in self.classes.tolist():
            if isinstance(name, float):
                names.append(f"{name:g}")
            else:
                names.append(str(name))
        return names

    def _colour_scale(self, reached: Mask) -> dict[str, Any]:
        """Return which colours stand for the score of two classes, or for each of more."""
        count = len(self.classes)
        if count == 2:
            limit = float(np.abs(self.colours[reached]).max())
            return {"cmap": "coolwarm", "vmin": -limit, "vmax": limit}
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        if count <= 10:
            colours = colormaps["tab10"](range(10))
        else:
            colours = colormaps["turbo"](np.linspace(0.05, 0.95, count))
        return {"cmap": ListedColormap(colours[:count]), "vmin": -0.5, "vmax": count - 0.5}
