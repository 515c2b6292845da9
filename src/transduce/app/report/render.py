"""A summary as JSON, or as a self-contained page: plots as SVG, no names that clash, no date, no address."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np
from markupsafe import Markup

from transduce import display
from transduce.app.estimating.forest_plot import paint_forest, panel_height
from transduce.app.report.plain import (
    clean,
    decimals_for,
    evenly,
    interval_text,
    name_of,
    number,
    rough_percent,
)
from transduce.app.report.quality import OTHERS
from transduce.app.report.rows import digits_of, ends_of, widths_of
from transduce.app.report.whole_column import frame_to_paint
from transduce.conformal.miscoverage import Miscoverage
from transduce.core.answer import Regions
from transduce.core.checks import check_type
from transduce.core.words import counted, percent
from transduce.display import INSIDE, OUTSIDE, REGION, VALUE

MOST_ROWS = 1000  # of the table in the page; JSON has all
ALLOWED = "style-src 'unsafe-inline'; script-src '{}'; img-src data:"
POLICY = f"default-src 'none'; {ALLOWED}; base-uri 'none'; form-action 'none'"
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), "#33414c"),
    **dict.fromkeys(
        ("axes.facecolor", "figure.facecolor", "savefig.facecolor", "svg.fonttype"), "none"
    ),
    **dict.fromkeys(
        ("axes.spines.right", "axes.spines.top", "text.parse_math", "text.usetex"), False
    ),
    **dict.fromkeys(("axes.labelsize", "axes.titlesize", "font.size"), 9.0),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8.0),
    "axes.edgecolor": "#7b8790",
    "axes.linewidth": 0.7,
    "font.family": "sans-serif",
    "svg.hashsalt": "transduce",
}
_UNSHOWN = re.compile(r"<(metadata|style|title)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")  # of the texts in a plot, those that hold < or > are escaped
_NAME = re.compile(r'(\bid="|href="#|url\(#)')  # where a tag names a part, or refers to one
_LONG = re.compile(r"(\.\d\d)\d+")


def check_summary(summary: Any, *parts: str) -> None:
    """Raise an error unless this is a summary, a dict, that has these parts."""
    check_type("summary", summary, dict, "a dict as summarize returns it")
    for part in parts:
        if part not in summary:
            raise ValueError(f"The summary has no {part!r}: pass what summarize returned, whole.")


def render_json(summary: dict[str, Any]) -> str:
    """Return a summary as JSON, one line for each of its parts.

    Parameters
    ----------
    summary : dict
        Of `summarize`.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render_json({"target": "prix €", "counts": {"rows": 3}}))
    {
    "target": "prix €",
    "counts": {"rows": 3}
    }
    """
    check_summary(summary)
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = (f"{json.dumps(key)}: {write(value)}" for key, value in summary.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def render_html(summary: dict[str, Any]) -> str:
    """Return a summary as one HTML page that needs nothing else: styles, plots and script are within.

    Parameters
    ----------
    summary : dict
        Of `summarize`, or of `render_json` read back; the same one gives the same page.

    Returns
    -------
    str
        Everything from the table is escaped, and the page tells browsers to run no script except its own and to load
        nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import fill
    >>> from transduce.app.report import render_html, summarize
    >>> table = pd.DataFrame({"size": range(60), "price": [2.0 * n if n % 3 else None for n in range(60)]})
    >>> render_html(summarize(fill(table, "price", method="ridge", guarantee="column").reported))[:15]
    '<!DOCTYPE html>'
    """
    check_summary(summary, "task", "rows", "answers")
    folder = files("transduce.app.report") / "templates"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        s=summary,
        figures={
            name: (drawing.title, Markup(draw(name, drawing.paint, drawing.size)), drawing.text)
            for name, drawing in figures(summary).items()
        },
        rows=summary["rows"][:MOST_ROWS],
        digits=digits_of(summary["answers"]),
        style=Markup(style),
        script=Markup(script),
        policy=POLICY.format(f"sha256-{digest}"),
    )


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    usual: dict[str, Any] = {
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    environment = Environment(
        autoescape=True, loader=PackageLoader("transduce.app.report"), **usual
    )
    environment.filters |= {
        "number": number,
        "percent": rough_percent,
        "level": percent,
        "name": name_of,
    }
    environment.filters |= {
        "interval": interval_text,
        "count": counted,
        "named": named,
        "short": clean,
    }
    environment.filters["unbroken"] = lambda text: text.replace(
        " %", "\u00a0%"
    )  # with the number before it
    return environment.get_template("report.html.j2")


def draw(name: str, paint: Callable[[Any], None], size: tuple[float, float]) -> str:
    """Return what a function paints on new axes, as an SVG element for a page."""
    from matplotlib import style
    from matplotlib.figure import Figure

    # Settings that a user has changed do not matter, nor do fonts that lack a character: the browser has its own.
    with warnings.catch_warnings(), style.context(["default", STYLE]):
        warnings.filterwarnings("ignore", message="(?s).*Glyph .* missing from")
        warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure.subplots())
        figure.savefig(source := StringIO(), format="svg", metadata={"Date": None, "Creator": None})
    return embed(source.getvalue(), name)


def embed(source: str, name: str) -> str:
    """Return an SVG file as an element for a page: named, sized by the page, with no metadata and no address."""
    box = re.search(r'viewBox="[^"]*"', source)
    assert box is not None
    body = _UNSHOWN.sub("", source[source.index(">", box.start()) + 1 :])
    own = _TAG.sub(lambda tag: _LONG.sub(r"\1", _NAME.sub(rf"\1{name}-", tag[0])), body)
    about = f'aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return f'<svg {box[0]} class="plot" role="img" {about}>{own}'


WIDTH = 4.4  # inches: about as many points as a phone has
SIZE = (WIDTH, 3.0)
MOST_INTERVALS = 300
MOST_BARS = 15
LONGEST = 22  # characters of a name in a plot
_short = partial(clean, most=LONGEST)
PALE, OCHRE = "#e8eef2", "#b07d1e"


@dataclass(frozen=True)
class Drawing:
    """A plot for a page."""

    title: str  # a few words
    text: str  # what is seen, in sentences with numbers
    paint: Callable[[Any], None]  # draws on axes
    size: tuple[float, float] = SIZE  # inches


def figures(summary: dict[str, Any]) -> dict[str, Drawing]:
    """Return the plots that a summary has the numbers for."""
    numbers = summary["task"] == "regression"
    painters: dict[str, Callable[[dict[str, Any]], Drawing | None]] = {
        "whole": _whole,
        "groups": _groups,
        "answers": _intervals if numbers else _class_bars,
        "law": _law,
        "quality": _pairs if numbers else _confusion,
        "rejection": _rejection,
        "relevance": _relevance,
        "map": _map,
        "overlap": _overlap,
    }
    drawn = {name: paint(summary) for name, paint in painters.items()}
    return {name: drawing for name, drawing in drawn.items() if drawing is not None}


def _legend_above(ax: Any, **settings: Any) -> None:
    """Put the legend above the plot, where no line crosses it."""
    ax.legend(
        fontsize=8.0,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        **settings,
    )


def named(summary: dict[str, Any], most: int = LONGEST) -> str:
    """Return the target's name, cut to a length, with its unit."""
    answers = summary["answers"]
    unit = "" if answers.get("moments") else answers.get("unit")
    return f"{clean(summary['target'], most)}{f' ({unit})' if unit else ''}"


def _dated(summary: dict[str, Any], *axes: Any) -> None:
    """Write dates, times or durations at the ticks of axes, if these are what is filled."""
    from matplotlib.ticker import MaxNLocator

    digits = digits_of(summary["answers"])
    for axis in axes if not isinstance(digits, int) else ():
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(lambda value, _: number(value, digits))


def _whole(summary: dict[str, Any]) -> Drawing | None:
    """Return the forest plot of the whole column."""
    return _forest(summary, 0)


def _groups(summary: dict[str, Any]) -> Drawing | None:
    """Return the forest plot of its groups."""
    return _forest(summary, 1)


def _forest(summary: dict[str, Any], place: int) -> Drawing | None:
    whole = summary.get("whole")
    if whole is None or len(whole["tables"]) <= place:
        return None
    table = whole["tables"][place]
    frame = frame_to_paint(table)
    title = table["title"]

    def paint(ax: Any) -> None:
        paint_forest(ax, frame, clean(title, 60), is_share=table["is_share"])

    lines = [f"{line['group'] or 'all rows'} {line['text']}" for line in table["lines"][:6]]
    text = f"{title}: {'; '.join(lines)}. Each with its interval, and below it that of the labels alone."
    return Drawing(title, text, paint, (WIDTH, panel_height(len(frame))))


def _intervals(summary: dict[str, Any]) -> Drawing | None:
    rows = [
        row for row in summary["rows"] if row["value"] is not None and row.get("pieces") is not None
    ]
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (row["value"], row["position"]))
    shown = [rows[i] for i in evenly(len(rows), MOST_INTERVALS)]
    ends = (
        [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in row["pieces"]]
        for row in shown
    )
    regions = Regions.from_pieces(ends)
    values = np.array([row["value"] for row in shown], dtype=float)

    def paint(ax: Any) -> None:
        display.RegionDisplay(values, regions).plot(ax=ax)
        handles, _ = ax.get_legend_handles_labels()
        _legend_above(ax, handles=handles, labels=["interval", "answer"])
        ax.set(xlabel="filled rows, by answer", ylabel=named(summary))
        _dated(summary, ax.yaxis)
        if len(shown) < len(rows):
            ax.set(xticks=[])

    answers, (smallest, _, largest) = summary["answers"], ends_of(summary["answers"])
    text = f"{counted(len(rows), 'answer')} from {smallest} to {largest}, each a dash beside its interval, in the "
    text += "order of the answers."
    if answers["median_width"] is not None:
        text += f" {widths_of(answers)}"
    if answers["n_unbounded"]:
        text += f" {answers['n_unbounded']:,} are unbounded and run over the whole height."
    if len(shown) < len(rows):
        text += f" {len(shown)} of them are drawn, spread evenly."
    text += _of_sample(summary)
    return Drawing("Answers with their intervals", text, paint)


def _class_bars(summary: dict[str, Any]) -> Drawing | None:
    answers, tallies = summary["answers"], summary["answers"]["by_class"]
    if not tallies:
        return None
    shown = tallies[:MOST_BARS]
    if len(tallies) > MOST_BARS:
        merged = {
            word: sum(tally[word] for tally in tallies[MOST_BARS - 1 :])
            for word in ("one", "several")
        }
        shown = [*tallies[: MOST_BARS - 1], {"name": OTHERS, **merged}]
    one = "answers" if answers["n_one"] is None else "one class possible"

    def paint(ax: Any) -> None:
        places, start = np.arange(len(shown))[::-1], np.zeros(len(shown))
        for word, color, label in (("one", INSIDE, one), ("several", REGION, "several possible")):
            lengths = np.array([tally[word] for tally in shown], dtype=float)
            if lengths.any():
                ax.barh(places, lengths, 0.7, left=start, color=color, label=label)
            start = start + lengths
        ax.set_yticks(places, [_short(tally["name"]) for tally in shown])
        ax.set(xlabel="filled rows")
        _legend_above(ax)

    said = [f"“{tally['name']}” at {tally['one'] + tally['several']:,}" for tally in shown[:6]]
    text = f"Answers by class: {', '.join(said)}{', and others' if len(tallies) > 6 else ''}."
    if answers["n_one"] is not None:
        rows = counted(answers["n_one"], "row")
        text += f" One class is possible at {rows}, several at {answers['n_several']:,}."
    text += _of_sample(summary)
    return Drawing("Answers by class", text, paint, (WIDTH, 1.1 + 0.24 * max(len(shown), 3)))


def _of_sample(summary: dict[str, Any]) -> str:
    """Return that a drawing is about a sample of the rows, if it is."""
    sampled = summary["counts"].get("sampled")
    if sampled is None:
        return ""
    return f" These are the {sampled:,} unlabelled rows that were drawn at random for the fit."


def _law(summary: dict[str, Any]) -> Drawing | None:
    bound = summary["law"]
    if bound is None or bound["at_most"] is None or bound["rank"] is None:
        return None
    law = Miscoverage(bound["n_unlabelled"], bound["n_calibration"], bound["rank"])

    def paint(ax: Any) -> None:
        display.MiscoverageDisplay.from_law(law, certainty=bound["certainty"], ax=ax)
        ax.locator_params(axis="x", nbins=6)
        _legend_above(ax)

    sure, mean = (
        f"at most {bound['at_most']:,} with {percent(bound['certainty'])} certainty",
        bound["expected"],
    )
    text = (
        f"How likely each number of the {bound['n_unlabelled']:,} values is to be outside: at most "
    )
    text += f"{format(mean, ',.0f' if mean >= 100 else '.3g')} are expected, and {sure}."
    return Drawing("How many may be outside", text, paint)


def _pairs(summary: dict[str, Any]) -> Drawing | None:
    quality = summary["quality"]
    if quality is None:
        return None
    true, answered = np.array(quality["true"]), np.array(quality["answered"])
    both = np.concatenate([true, answered])
    margin = 0.04 * float(both.max() - both.min()) or 1.0
    ends = (float(both.min()) - margin, float(both.max()) + margin)
    unit = named(summary).removeprefix(_short(summary["target"]))

    def paint(ax: Any) -> None:
        ax.plot(ends, ends, color=REGION, lw=1.5, label="right")
        size = float(np.clip(90.0 / np.sqrt(len(true)), 2.0, 5.0))
        ax.plot(true, answered, "o", ms=size, mew=0, color=INSIDE, alpha=0.6, label="known value")
        ax.set(
            xlim=ends,
            ylim=ends,
            xlabel=f"true value{unit}",
            ylabel=f"answered while it was hidden{unit}",
        )
        _dated(summary, ax.xaxis, ax.yaxis)
        _legend_above(ax)

    errors = (quality["mean_absolute_error"], quality["median_absolute_error"])
    mean, half = (number(error, decimals_for(errors[0]), quality["unit"]) for error in errors)
    text = (
        f"{counted(quality['n'], 'known value')}, each answered while it was held out, against the truth: the nearer "
        f"to the line, the better. They are off by {mean} on average and half of them by less than {half}."
    )
    if len(true) < quality["n"]:
        text += f" {len(true):,} of them are drawn."
    return Drawing("Known values, answered while hidden", text, paint, (WIDTH, 3.5))


def _confusion(summary: dict[str, Any]) -> Drawing | None:
    quality = summary["quality"]
    if quality is None:
        return None
    table, names = np.array(quality["confusion"]), [_short(name) for name in quality["classes"]]
    shares, k = table / np.maximum(table.sum(axis=1, keepdims=True), 1), len(names)

    def paint(ax: Any) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        shades = LinearSegmentedColormap.from_list("blues", [PALE, INSIDE])
        ax.pcolormesh(shares, cmap=shades, vmin=0.0, vmax=1.0, edgecolors="white", linewidth=1.0)
        for i, j in np.ndindex(k, k):
            if table[i, j]:
                style: dict[str, Any] = {
                    "fontsize": 8.0 if k < 9 else 6.5,
                    "ha": "center",
                    "va": "center",
                }
                color = "white" if shares[i, j] > 0.55 else "#1f2a33"
                ax.text(j + 0.5, i + 0.5, f"{table[i, j]:,}", color=color, **style)
        long = max(map(len, names)) > 4 and k > 3
        ax.set_xticks(
            np.arange(k) + 0.5, names, rotation=45 if long else 0, ha="right" if long else "center"
        )
        ax.set_yticks(np.arange(k) + 0.5, names)
        ax.set(xlabel="answered while it was held out", ylabel="true class", ylim=(k, 0))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    right = f"{rough_percent(quality['accuracy'])} are right. {_worst(table, quality['classes'])}"
    text = f"{counted(quality['n'], 'known value')}, each answered while it was held out: {right}"
    return Drawing(
        "Known classes, answered while hidden", text, paint, (WIDTH, 1.4 + 0.36 * max(k, 4))
    )


def _worst(table: Any, classes: list[str]) -> str:
    """Return the most frequent mistake between classes that have a name of their own."""
    wrong = table - np.diag(np.diag(table))
    if classes[-1] == OTHERS:
        wrong[-1], wrong[:, -1] = 0, 0
    if not wrong.any():
        return f"None of {'the classes named here' if classes[-1] == OTHERS else 'the classes'} was taken for another."
    i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
    times = counted(int(wrong[i, j]), "time")
    return f"The most frequent mistake: “{classes[j]}” answered for “{classes[i]}”, {times}."


def _rejection(summary: dict[str, Any]) -> Drawing | None:
    curve = (summary["quality"] or {}).get("rejection")
    if curve is None:
        return None

    def paint(ax: Any) -> None:
        display.RejectionCurveDisplay(np.array(curve["errors"]), np.array(curve["rejected"])).plot(
            ax=ax
        )
        _legend_above(ax)

    text = (
        f"Share of wrong answers among known values, as more and more of the least sure are left aside: "
        f"{rough_percent(curve['error_of_all'])} of all, {rough_percent(curve['error_of_surer_half'])} of the surer "
        "half."
    )
    return Drawing("Errors, if unsure answers are left aside", text, paint)


def _relevance(summary: dict[str, Any]) -> Drawing | None:
    entries = summary["relevance"]
    if not entries:
        return None
    shown = entries[:MOST_BARS]

    def paint(ax: Any) -> None:
        # Numbers keep names that are equal once they are short apart.
        display.RelevanceDisplay([entry["relevance"] for entry in shown], range(len(shown))).plot(
            ax=ax
        )
        texts = [_short(shown[int(tick.get_text())]["name"]) for tick in ax.get_yticklabels()]
        ax.set_yticks(range(len(shown)), texts)
        ax.set(xlabel="relevance, from 0 to 1", xlim=(0, 1.02))

    said = ", ".join(f"“{entry['name']}” {number(entry['relevance'], 2)}" for entry in shown[:5])
    text = f"How much each column matters to the answers, the most relevant first: {said}."
    if len(entries) > len(shown):
        text += f" {len(shown)} of {counted(len(entries), 'column')} are drawn."
    return Drawing("Which columns matter", text, paint, (WIDTH, 0.9 + 0.21 * max(len(shown), 4)))


def _map(summary: dict[str, Any]) -> Drawing | None:
    places = summary["map"]
    if places is None or not places["x"]:
        return None
    paint_values = _paint_numbers if summary["task"] == "regression" else _paint_classes
    given = np.array([places["x"], places["y"]], dtype=float)
    low, high = np.quantile(given, [0.01, 0.99], axis=1)[..., None]
    reach = np.where(high > low, 0.5 * (high - low), np.inf)
    # Places far beyond almost all others are brought to the edge.
    near = np.clip(given, low - reach, high + reach)
    n_far = int((near != given).any(axis=0).sum())

    def paint(ax: Any) -> None:
        from matplotlib.lines import Line2D

        paint_values(ax, places | {"x": near[0], "y": near[1]}, summary)
        ax.set(xlabel="similar rows lie near each other", xticks=[], yticks=[])
        colours = (
            ax.get_legend()
        )  # which the legend of dots and rings, above the map, would replace
        settings: dict[str, Any] = {"marker": "o", "ls": "", "ms": 5.0, "color": VALUE}
        marks = [Line2D([], [], mew=0, **settings), Line2D([], [], mfc="none", **settings)]
        _legend_above(ax, handles=marks, labels=["filled", "known value"])
        if colours is not None:
            ax.add_artist(colours)

    n_unlabelled = sum(places["unlabelled"])
    text = (
        f"{counted(len(places['x']), 'row')}, similar ones near each other: {n_unlabelled:,} filled (dots) among "
        f"{len(places['x']) - n_unlabelled:,} with a known value (rings). The axes have no unit."
    )
    if len(places["x"]) < places["n_rows"]:
        text += f" They are spread evenly over all {places['n_rows']:,}."
    if n_far:
        text += (
            f" {counted(n_far, 'row')} far off {'is' if n_far == 1 else 'are'} drawn at the edge."
        )
    return Drawing("Map of the rows", text, paint, (WIDTH, 3.5))


def _points(ax: Any, places: dict[str, Any], mask: Any, color: Any, label: str = "") -> None:
    """Draw filled rows as dots, known ones as rings."""
    x, y, unlabelled = places["x"], places["y"], np.array(places["unlabelled"], bool)
    size = float(np.clip(4000.0 / len(x), 6.0, 26.0))
    ax.scatter(
        x[mask & unlabelled], y[mask & unlabelled], s=size, color=color, linewidths=0, label=label
    )
    rings = mask & ~unlabelled
    ax.scatter(x[rings], y[rings], s=size + 3, facecolors="none", edgecolors=color, linewidths=0.9)


def _paint_numbers(ax: Any, places: dict[str, Any], summary: dict[str, Any]) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    values = np.array(
        [np.nan if value is None else value for value in places["value"]], dtype=float
    )
    known = ~np.isnan(values)
    if (~known).any():
        _points(ax, places, ~known, REGION, "no answer")
        ax.legend(fontsize=8.0, frameon=False, loc="best")
    edges = (
        np.unique(np.quantile(values[known], np.linspace(0, 1, 9))) if known.any() else np.zeros(1)
    )
    if len(edges) < 3:
        _points(ax, places, known, INSIDE)
        return
    shades = colormaps["viridis_r"](np.linspace(0.12, 1.0, len(edges) - 1))
    group = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    for i, shade in enumerate(shades):
        _points(ax, places, known & (group == i), [shade])
    scale = ScalarMappable(BoundaryNorm(edges, len(shades)), ListedColormap(shades))
    digits = digits_of(summary["answers"])
    digits = decimals_for(float(edges[-1] - edges[0])) if isinstance(digits, int) else digits
    bar = ax.figure.colorbar(scale, ax=ax, spacing="uniform", ticks=edges, label=named(summary))
    bar.ax.set_yticklabels([number(float(edge), digits) for edge in edges])
    bar.outline.set_visible(False)


def _paint_classes(ax: Any, places: dict[str, Any], summary: dict[str, Any]) -> None:
    values = np.array(["" if value is None else value for value in places["value"]], dtype=object)
    shown = np.array([*map(str, values[values != ""]), None], dtype=object)[:-1]
    names, sizes = np.unique(shown, return_counts=True)
    names = names[np.argsort(-sizes, kind="stable")]
    shades = [INSIDE, OUTSIDE, "#3d8b5f", "#8a5fb0", OCHRE, VALUE, "#c2558f", "#4aa3b5"]
    for name, shade in zip(names[: len(shades)], shades, strict=False):
        _points(ax, places, values == name, shade, _short(name))
    others = np.isin(values, names[len(shades) :].tolist()) & (values != "")
    for mask, label in ((others, OTHERS), (values == "", "no answer")):
        if mask.any():
            _points(ax, places, mask, REGION, label)
    ax.legend(
        fontsize=7.5,
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        title=named(summary),
    )


def _overlap(summary: dict[str, Any]) -> Drawing | None:
    overlap = (summary.get("who_was_labelled") or {}).get("overlap")
    if overlap is None:
        return None
    edges = np.array(overlap["edges"], dtype=float)

    def paint(ax: Any) -> None:
        for kind, color in (("labelled", INSIDE), ("unlabelled", OCHRE)):
            ax.stairs(overlap[kind], edges, fill=True, alpha=0.45, color=color, label=kind)
        xlabel = "score: the further right, the more a row looks unlabelled"
        ax.set(xlabel=xlabel, ylabel="share of rows", xticks=[])
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    text = (
        f"A classifier that has not seen a row scores how much it looks like the {overlap['n_unlabelled']:,} "
        f"unlabelled rather than the {overlap['n_labelled']:,} labelled rows. The two groups share "
        f"{rough_percent(overlap['shared'])} of their scores; where only unlabelled rows are, no label says anything."
    )
    return Drawing("Do labelled and unlabelled rows overlap?", text, paint)
