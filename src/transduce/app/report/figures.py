"""The plots of a report, each with its title and a text that says what is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce import display
from transduce.app.estimating.forest_plot import paint_forest, panel_height
from transduce.app.report.jsonable import (
    decimals_for,
    escape_text,
    format_number,
    rough_percent,
    spread_evenly,
)
from transduce.app.report.quality import OTHERS
from transduce.app.report.rows import describe_widths, digits_of, format_ends
from transduce.app.report.summary_types import RowLevel, RowRecord, Summary
from transduce.app.report.whole_column import frame_to_paint
from transduce.conformal.miscoverage import Miscoverage
from transduce.core.answer import LevelAnswer, Regions
from transduce.core.types import AnyArray, Array, JsonObject, Mask
from transduce.core.words import counted, percent
from transduce.display import INSIDE, OUTSIDE, REGION, VALUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

WIDTH = 4.4  # inches: about as many points as a phone has
SIZE = (WIDTH, 3.0)
MOST_INTERVALS = 300
MOST_BARS = 15
MOST_NAMED = 6  # classes that a text names
LONGEST = 22  # characters of a name in a plot
PALE = "#e8eef2"
DARK = "#1f2a33"
OCHRE = "#b07d1e"
SHADES = [INSIDE, OUTSIDE, "#3d8b5f", "#8a5fb0", OCHRE, VALUE, "#c2558f", "#4aa3b5"]
Paint = Callable[[Any], None]  # draws on axes


@dataclass(frozen=True)
class Drawing:
    """A plot for a page."""

    title: str  # a few words
    text: str  # what is seen, in sentences with numbers
    paint: Paint
    size: tuple[float, float] = SIZE  # inches


def draw_figures(summary: Summary) -> dict[str, Drawing]:
    """Return the plots that a summary has the numbers for."""
    painters: dict[str, Callable[[Any], Drawing | None]] = {
        "whole": partial(_draw_forest, place=0),
        "groups": partial(_draw_forest, place=1),
        "answers": _draw_classes,
        "law": _draw_miscoverage,
        "quality": _draw_confusion,
        "rejection": _draw_rejection,
        "relevance": _draw_relevance,
        "map": _draw_map,
        "overlap": _draw_overlap,
    }
    if summary["task"] == "regression":
        painters["answers"] = _draw_intervals
        painters["quality"] = _draw_pairs
    drawings = {name: painter(summary) for name, painter in painters.items()}
    return {name: drawing for name, drawing in drawings.items() if drawing is not None}


def name_with_unit(summary: Any, most: int = LONGEST) -> str:
    """Return the target's name, cut to a length, with its unit."""
    name = escape_text(summary["target"], most)
    answers = summary["answers"]
    if answers.get("moments") or not answers.get("unit"):
        return name
    return f"{name} ({answers['unit']})"


_short_name = partial(escape_text, most=LONGEST)


def _legend_above(ax: Axes, **settings: Any) -> None:
    """Put the legend above the plot, where no line crosses it."""
    ax.legend(
        fontsize=8.0,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        **settings,
    )


def _write_dates(summary: Summary, *axes: Axis) -> None:
    """Write dates, times or durations at the ticks of axes, if these are what is filled."""
    from matplotlib.ticker import MaxNLocator

    digits = digits_of(summary["answers"])
    if isinstance(digits, int):
        return
    for axis in axes:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(lambda value, _: format_number(value, digits))


def _about_sample(summary: Summary) -> str:
    """Return that a drawing is about a sample of the rows, if it is."""
    sampled = summary["counts"].get("sampled")
    if sampled is None:
        return ""
    return f" These are the {sampled:,} unlabelled rows that were drawn at random for the fit."


# ---- the column as a whole


def _draw_forest(summary: Summary, place: int) -> Drawing | None:
    """Return the forest plot of the whole column, or of its groups."""
    whole = summary.get("whole")
    if whole is None or len(whole["tables"]) <= place:
        return None
    table = whole["tables"][place]
    frame = frame_to_paint(table)
    title = table["title"]

    def paint(ax: Axes) -> None:
        paint_forest(ax, frame, escape_text(title, 60), is_share=table["is_share"])

    lines = [f"{line['group'] or 'all rows'} {line['text']}" for line in table["lines"][:6]]
    text = (
        f"{title}: {'; '.join(lines)}. Each has its interval, with that of the labels alone "
        "below it."
    )
    return Drawing(title, text, paint, (WIDTH, panel_height(len(frame))))


# ---- the predictions


def _draw_intervals(summary: Summary) -> Drawing | None:
    """Return predictions with their intervals, in the order of the predictions."""
    rows = [
        row for row in summary["rows"] if row["value"] is not None and row.get("pieces") is not None
    ]
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (row["value"], row["position"]))
    shown = [rows[i] for i in spread_evenly(len(rows), MOST_INTERVALS)]
    regions = Regions.from_pieces([_ends_of_pieces(row) for row in shown])
    values = np.array([row["value"] for row in shown], dtype=float)
    further = []
    for place, level in enumerate(summary["levels"]):
        pieces = [_ends_of_pieces(row["levels"][place]) for row in shown]
        further.append(LevelAnswer(level["confidence"], Regions.from_pieces(pieces)))

    def paint(ax: Axes) -> None:
        shown_levels = display.RegionDisplay(
            values,
            regions,
            level=summary["confidence"],
            further=tuple(further),
        )
        shown_levels.plot(ax=ax)
        handles, labels = ax.get_legend_handles_labels()
        labels = [label.replace("region", "interval") for label in labels]
        _legend_above(ax, handles=handles, labels=labels)
        ax.set(xlabel="filled rows, by prediction", ylabel=name_with_unit(summary))
        _write_dates(summary, ax.yaxis)
        if len(shown) < len(rows):
            ax.set(xticks=[])

    text = _about_intervals(summary, len(rows), len(shown))
    return Drawing("Predictions with their intervals", text, paint)


def _ends_of_pieces(row: RowRecord | RowLevel) -> list[tuple[float, float]]:
    """Return the intervals of a row, with infinite ends as such."""
    ends = []
    for low, high in row["pieces"] or ():
        ends.append((-np.inf if low is None else low, np.inf if high is None else high))
    return ends


def _about_intervals(summary: Any, n_rows: int, n_shown: int) -> str:
    """Return what is seen of predictions with their intervals."""
    answers = summary["answers"]
    smallest, _, largest = format_ends(answers)
    text = (
        f"{counted(n_rows, 'prediction')} from {smallest} to {largest}, each a dash beside its "
        "interval, in the order of the predictions."
    )
    if answers["median_width"] is not None:
        text += f" {describe_widths(answers)}"
    levels = [percent(level["confidence"]) for level in summary["levels"]]
    if levels:
        text += f" Those at {' and '.join(levels)} lie around them, or within."
    if answers["n_unbounded"]:
        text += f" {answers['n_unbounded']:,} are unbounded and run over the whole height."
    if n_shown < n_rows:
        text += f" {n_shown} of them are drawn, spread evenly."
    return text + _about_sample(summary)


def _draw_classes(summary: Any) -> Drawing | None:
    """Return how often each class was predicted."""
    answers = summary["answers"]
    tallies = answers["by_class"]
    if not tallies:
        return None
    shown = tallies
    if len(tallies) > MOST_BARS:
        rest = tallies[MOST_BARS - 1 :]
        merged = {word: sum(tally[word] for tally in rest) for word in ("one", "several")}
        shown = [*tallies[: MOST_BARS - 1], {"name": OTHERS, **merged}]
    bars = [("one", INSIDE, "one class possible"), ("several", REGION, "several possible")]
    if answers["n_one"] is None:
        bars[0] = ("one", INSIDE, "predictions")

    def paint(ax: Axes) -> None:
        places = np.arange(len(shown))[::-1]
        start = np.zeros(len(shown))
        for word, color, label in bars:
            lengths = np.array([tally[word] for tally in shown], dtype=float)
            if lengths.any():
                ax.barh(places, lengths, 0.7, left=start, color=color, label=label)
            start = start + lengths
        ax.set_yticks(places, [_short_name(tally["name"]) for tally in shown])
        ax.set(xlabel="filled rows")
        _legend_above(ax)

    size = (WIDTH, 1.1 + 0.24 * max(len(shown), 3))
    return Drawing("Predictions by class", _about_classes(summary, shown), paint, size)


def _about_classes(summary: Any, shown: list[Any]) -> str:
    """Return what is seen of the predicted classes."""
    answers = summary["answers"]
    named = [
        f"“{tally['name']}” at {tally['one'] + tally['several']:,}" for tally in shown[:MOST_NAMED]
    ]
    text = f"Predictions by class: {', '.join(named)}."
    if len(answers["by_class"]) > MOST_NAMED:
        text = f"Predictions by class: {', '.join(named)}, and others."
    if answers["n_one"] is not None:
        rows = counted(answers["n_one"], "row")
        text += f" One class is possible at {rows}, several at {answers['n_several']:,}."
    return text + _about_sample(summary)


def _draw_miscoverage(summary: Any) -> Drawing | None:
    """Return how many of the true values may be outside."""
    bound = summary["law"]
    if bound is None or bound["at_most"] is None or bound["rank"] is None:
        return None
    law = Miscoverage(bound["n_unlabelled"], bound["n_calibration"], bound["rank"])

    def paint(ax: Axes) -> None:
        display.MiscoverageDisplay.from_law(law, certainty=bound["certainty"], ax=ax)
        ax.locator_params(axis="x", nbins=6)
        _legend_above(ax)

    expected = f"{bound['expected']:.3g}"
    if bound["expected"] >= 100:
        expected = f"{bound['expected']:,.0f}"
    text = (
        f"How likely each number of the {bound['n_unlabelled']:,} values is to be outside: at most "
        f"{expected} are expected, and at most {bound['at_most']:,} with "
        f"{percent(bound['certainty'])} certainty."
    )
    return Drawing("How many may be outside", text, paint)


# ---- the quality


def _draw_pairs(summary: Any) -> Drawing | None:
    """Return known numbers against what was predicted while they were hidden."""
    quality = summary["quality"]
    if quality is None:
        return None
    true = np.array(quality["true"])
    answered = np.array(quality["answered"])
    least = float(min(true.min(), answered.min()))
    most = float(max(true.max(), answered.max()))
    margin = 0.04 * (most - least) or 1.0
    ends = (least - margin, most + margin)
    unit = name_with_unit(summary).removeprefix(_short_name(summary["target"]))

    def paint(ax: Axes) -> None:
        ax.plot(ends, ends, color=REGION, lw=1.5, label="right")
        size = float(np.clip(90.0 / np.sqrt(len(true)), 2.0, 5.0))
        ax.plot(true, answered, "o", ms=size, mew=0, color=INSIDE, alpha=0.6, label="known value")
        ax.set(
            xlim=ends,
            ylim=ends,
            xlabel=f"true value{unit}",
            ylabel=f"predicted while it was hidden{unit}",
        )
        _write_dates(summary, ax.xaxis, ax.yaxis)
        _legend_above(ax)

    decimals = decimals_for(quality["mean_absolute_error"])
    mean = format_number(quality["mean_absolute_error"], decimals, quality["unit"])
    half = format_number(quality["median_absolute_error"], decimals, quality["unit"])
    text = (
        f"{counted(quality['n'], 'known value')}, each predicted while it was held out, against "
        f"the truth: the nearer to the line, the better. They are off by {mean} on average and "
        f"half of them by less than {half}."
    )
    if len(true) < quality["n"]:
        text += f" {len(true):,} of them are drawn."
    return Drawing("Known values, predicted while hidden", text, paint, (WIDTH, 3.5))


def _draw_confusion(summary: Any) -> Drawing | None:
    """Return how often each class was predicted for each."""
    quality = summary["quality"]
    if quality is None:
        return None
    table = np.array(quality["confusion"])
    names = [_short_name(name) for name in quality["classes"]]
    n_classes = len(names)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)

    def paint(ax: Axes) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        shades = LinearSegmentedColormap.from_list("blues", [PALE, INSIDE])
        ax.pcolormesh(shares, cmap=shades, vmin=0.0, vmax=1.0, edgecolors="white", linewidth=1.0)
        _write_counts(ax, table, shares)
        is_long = max(map(len, names)) > 4 and n_classes > 3
        middles = np.arange(n_classes) + 0.5
        if is_long:
            ax.set_xticks(middles, names, rotation=45, ha="right")
        else:
            ax.set_xticks(middles, names, rotation=0, ha="center")
        ax.set_yticks(middles, names)
        ax.set(xlabel="predicted while it was held out", ylabel="true class", ylim=(n_classes, 0))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    text = (
        f"{counted(quality['n'], 'known value')}, each predicted while it was held out: "
        f"{rough_percent(quality['accuracy'])} are right. "
        f"{_about_worst(table, quality['classes'])}"
    )
    size = (WIDTH, 1.4 + 0.36 * max(n_classes, 4))
    return Drawing("Known classes, predicted while hidden", text, paint, size)


def _write_counts(ax: Axes, table: AnyArray, shares: Array) -> None:
    """Write each count into its cell, in a colour that is seen on its shade."""
    fontsize = 6.5
    if len(table) < 9:
        fontsize = 8.0
    for i, j in np.argwhere(table):
        color = DARK
        if shares[i, j] > 0.55:
            color = "white"
        count = f"{table[i, j]:,}"
        ax.text(j + 0.5, i + 0.5, count, color=color, fontsize=fontsize, ha="center", va="center")


def _about_worst(table: AnyArray, classes: list[str]) -> str:
    """Return the most frequent mistake between classes that have a name of their own."""
    wrong = table - np.diag(np.diag(table))
    has_others = classes[-1] == OTHERS
    if has_others:
        wrong[-1] = 0
        wrong[:, -1] = 0
    if not wrong.any() and has_others:
        return "None of the classes named here was taken for another."
    if not wrong.any():
        return "None of the classes was taken for another."
    i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
    times = counted(int(wrong[i, j]), "time")
    return f"The most frequent mistake: “{classes[j]}” predicted for “{classes[i]}”, {times}."


def _draw_rejection(summary: Any) -> Drawing | None:
    """Return how errors shrink as unsure predictions are left aside."""
    curve = (summary["quality"] or {}).get("rejection")
    if curve is None:
        return None

    def paint(ax: Axes) -> None:
        errors = np.array(curve["errors"])
        rejected = np.array(curve["rejected"])
        display.RejectionCurveDisplay(errors, rejected).plot(ax=ax)
        _legend_above(ax)

    text = (
        "Share of wrong predictions among known values, as more and more of the least sure are "
        f"left aside: {rough_percent(curve['error_of_all'])} of all, "
        f"{rough_percent(curve['error_of_surer_half'])} of the surer half."
    )
    return Drawing("Errors, if unsure predictions are left aside", text, paint)


# ---- columns and the map


def _draw_relevance(summary: Summary) -> Drawing | None:
    """Return how much each column matters."""
    entries = summary["relevance"]
    if not entries:
        return None
    shown = entries[:MOST_BARS]

    def paint(ax: Axes) -> None:
        # Numbers keep names that are equal once they are short apart.
        weights = [entry["relevance"] for entry in shown]
        display.RelevanceDisplay(weights, range(len(shown))).plot(ax=ax)
        places = [int(tick.get_text()) for tick in ax.get_yticklabels()]
        ax.set_yticks(range(len(shown)), [_short_name(shown[place]["name"]) for place in places])
        ax.set(xlabel="relevance, from 0 to 1", xlim=(0, 1.02))

    named = ", ".join(
        f"“{entry['name']}” {format_number(entry['relevance'], 2)}" for entry in shown[:5]
    )
    text = f"How much each column matters to the predictions, the most relevant first: {named}."
    if len(entries) > len(shown):
        text += f" {len(shown)} of {counted(len(entries), 'column')} are drawn."
    return Drawing("Which columns matter", text, paint, (WIDTH, 0.9 + 0.21 * max(len(shown), 4)))


@dataclass(frozen=True, eq=False)
class _MapPoints:
    """The rows of a map."""

    x: Array
    y: Array
    unlabelled: Mask
    values: list[Any]

    def scatter(
        self,
        ax: Axes,
        mask: Mask,
        color: Any,
        label: str = "",
    ) -> None:
        """Draw filled rows as dots, known ones as rings."""
        size = float(np.clip(4000.0 / len(self.x), 6.0, 26.0))
        dots = mask & self.unlabelled
        rings = mask & ~self.unlabelled
        ax.scatter(self.x[dots], self.y[dots], s=size, color=color, linewidths=0, label=label)
        ax.scatter(
            self.x[rings],
            self.y[rings],
            s=size + 3,
            facecolors="none",
            edgecolors=color,
            linewidths=0.9,
        )


def _draw_map(summary: Summary) -> Drawing | None:
    """Return the rows, similar ones near each other, with their values."""
    places = summary["map"]
    if places is None or not places["x"]:
        return None
    paint_values = _paint_classes
    if summary["task"] == "regression":
        paint_values = _paint_numbers
    given = np.array([places["x"], places["y"]], dtype=float)
    near = _bring_near(given)
    unlabelled = np.array(places["unlabelled"], dtype=bool)
    points = _MapPoints(near[0], near[1], unlabelled, places["value"])

    def paint(ax: Axes) -> None:
        from matplotlib.lines import Line2D

        paint_values(ax, points, summary)
        ax.set(xlabel="similar rows lie near each other", xticks=[], yticks=[])
        # The legend of dots and rings, above the map, would replace that of the colours.
        colours = ax.get_legend()
        settings: JsonObject = {"marker": "o", "ls": "", "ms": 5.0, "color": VALUE}
        marks = [Line2D([], [], mew=0, **settings), Line2D([], [], mfc="none", **settings)]
        _legend_above(ax, handles=marks, labels=["filled", "known value"])
        if colours is not None:
            ax.add_artist(colours)

    n_rows = len(places["x"])
    n_unlabelled = int(unlabelled.sum())
    text = (
        f"{counted(n_rows, 'row')}, similar ones near each other: {n_unlabelled:,} filled (dots) "
        f"among {n_rows - n_unlabelled:,} with a known value (rings). The axes have no unit."
    )
    if n_rows < places["n_rows"]:
        text += f" They are spread evenly over all {places['n_rows']:,}."
    n_far = int((near != given).any(axis=0).sum())
    if n_far == 1:
        text += " 1 row far off is drawn at the edge."
    elif n_far:
        text += f" {n_far:,} rows far off are drawn at the edge."
    return Drawing("Map of the rows", text, paint, (WIDTH, 3.5))


def _bring_near(places: Array) -> Array:
    """Return places (2, n), those far beyond almost all others at the edge."""
    low, high = np.quantile(places, [0.01, 0.99], axis=1)[..., None]
    reach = np.where(high > low, 0.5 * (high - low), np.inf)
    return np.clip(places, low - reach, high + reach)


def _paint_numbers(ax: Axes, points: _MapPoints, summary: Summary) -> None:
    """Draw rows in the colours of their numbers."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    values = np.array([np.nan if value is None else value for value in points.values], dtype=float)
    known = ~np.isnan(values)
    if (~known).any():
        points.scatter(ax, ~known, REGION, "no answer")
        ax.legend(fontsize=8.0, frameon=False, loc="best")
    edges = np.zeros(1)
    if known.any():
        edges = np.unique(np.quantile(values[known], np.linspace(0, 1, 9)))
    if len(edges) < 3:
        points.scatter(ax, known, INSIDE)
        return
    shades = colormaps["viridis_r"](np.linspace(0.12, 1.0, len(edges) - 1))
    group = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    for number, shade in enumerate(shades):
        points.scatter(ax, known & (group == number), [shade])
    scale = ScalarMappable(BoundaryNorm(edges, len(shades)), ListedColormap(shades))
    digits = digits_of(summary["answers"])
    if isinstance(digits, int):
        digits = decimals_for(float(edges[-1] - edges[0]))
    label = name_with_unit(summary)
    bar = ax.figure.colorbar(scale, ax=ax, spacing="uniform", ticks=edges, label=label)
    bar.ax.set_yticklabels([format_number(float(edge), digits) for edge in edges])
    bar.outline.set_visible(False)


def _paint_classes(ax: Axes, points: _MapPoints, summary: Summary) -> None:
    """Draw rows in the colours of their classes, the most frequent ones by name."""
    values = np.array(["" if value is None else value for value in points.values], dtype=object)
    named = [str(value) for value in values if value != ""]
    names_of_rows = np.array([*named, None], dtype=object)[:-1]
    names, sizes = np.unique(names_of_rows, return_counts=True)
    names = names[np.argsort(-sizes, kind="stable")]
    for name, shade in zip(names[: len(SHADES)], SHADES, strict=False):
        points.scatter(ax, values == name, shade, _short_name(name))
    others = np.isin(values, names[len(SHADES) :].tolist()) & (values != "")
    if others.any():
        points.scatter(ax, others, REGION, OTHERS)
    if (values == "").any():
        points.scatter(ax, values == "", REGION, "no answer")
    ax.legend(
        fontsize=7.5,
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        title=name_with_unit(summary),
    )


def _draw_overlap(summary: Any) -> Drawing | None:
    """Return how much labelled and unlabelled rows overlap in their scores."""
    overlap = (summary.get("who_was_labelled") or {}).get("overlap")
    if overlap is None:
        return None
    edges = np.array(overlap["edges"], dtype=float)

    def paint(ax: Axes) -> None:
        for kind, color in (("labelled", INSIDE), ("unlabelled", OCHRE)):
            ax.stairs(overlap[kind], edges, fill=True, alpha=0.45, color=color, label=kind)
        xlabel = "score: the further right, the more a row looks unlabelled"
        ax.set(xlabel=xlabel, ylabel="share of rows", xticks=[])
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    text = (
        "A classifier that has not seen a row scores how much it looks like the "
        f"{overlap['n_unlabelled']:,} unlabelled rather than the {overlap['n_labelled']:,} "
        f"labelled rows. The two groups share {rough_percent(overlap['shared'])} of their scores; "
        "where there are only unlabelled rows, labels say nothing."
    )
    return Drawing("Do labelled and unlabelled rows overlap?", text, paint)
