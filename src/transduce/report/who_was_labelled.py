"""Who was labelled? What tells labelled from unlabelled rows, how far they overlap, and what that means for answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.core.guarantee import CHANCE, DRAWN, Guarantee
from transduce.report.filled import FilledTable
from transduce.report.svg import draw
from transduce.report.wording import clean, count, finite, name_of, number, percent, plain

N_BINS = 24
MOST_COLUMNS = 8


def who_was_labelled(filled: FilledTable) -> dict[str, Any] | None:
    """Return what is known of which rows have a label, for a report; None if no row lacks one."""
    if not len(filled.answer):
        return None
    test, promised = filled.exchangeability, filled.guarantee
    columns = []
    if test is not None and test.verdict.p_value is not None:
        columns = [
            {"name": name_of(name), "distance": finite(line["distance"]), "p_value": finite(line["p_value"])}
            for name, line in test.features.head(MOST_COLUMNS).to_dict("index").items()
        ]
    found = {
        "columns": columns,
        "overlap": None if test is None else _overlap(test.overlap),
        "effective": finite(promised.effective),
        "n_calibration": promised.n_calibration,
        "factor": promised.factor,
        "drift": None if promised.drift is None else clean(str(promised.drift)),
        "sensitivity": _sensitivity(filled),
        "remedy": [row + 1 for row in promised.remedy],
    }
    return {**found, "sentences": [*_basis(promised), *_sentences(filled, found)]}


def _basis(promised: Guarantee) -> list[str]:
    """Return on what the guarantee rests."""
    if DRAWN in promised.assumptions:
        return ["Rows drawn at random calibrate; it does not matter how the other labels were chosen."]
    if CHANCE in promised.assumptions:
        return ["It was taken for granted that chance alone decided which rows have a label."]
    return (
        [f"It was taken for granted that {' and that '.join(promised.assumptions)}."]
        if promised.assumptions
        else []
    )


def _sentences(filled: FilledTable, found: dict[str, Any]) -> list[str]:
    """Return what a reader should know, in sentences."""
    said = []
    if found["effective"] is not None:
        said.append(
            f"The {count(found['n_calibration'], 'calibration label')} are weighted by how much they stand for the "
            f"unlabelled rows, and are worth {number(found['effective'], 0)} of equal weight."
        )
    if found["drift"]:
        said.append(found["drift"])
    if found["remedy"]:
        rows = ", ".join(f"{row:,}" for row in found["remedy"])
        said.append(
            f"To get an exact guarantee, label these rows, which were drawn at random: {rows} (counted from 1). "
            "`transduce draw` marks them, and `transduce fill --random-labels` uses them."
        )
    if found["sensitivity"]:
        said.append(_sensitivity_sentence(found["sensitivity"], filled.task, len(filled.answer)))
    return said


def _sensitivity(filled: FilledTable) -> list[dict[str, Any]] | None:
    """Return how wide intervals, or how large sets, get for each factor; None where it is not known."""
    table = filled.sensitivity
    if table is None or not len(table):
        return None
    size = "width" if "width" in table else "size"
    return [
        {"factor": float(line["factor"]), size: finite(line[size]), "n_unbounded": int(line["n_unbounded"])}
        for line in table.to_dict("records")
    ]


def _sensitivity_sentence(lines: list[dict[str, Any]], task: str, n: int) -> str:
    """Return how much wider intervals get if the chance of a label also depends on the value itself."""
    numbers = task == "regression"
    said = []
    for line in lines:
        size, free = line["width" if numbers else "size"], f"{line['n_unbounded']:,} of {n:,}"
        if not numbers:
            words = f"sets hold {size:.3g} classes on average"
        elif size is None:
            words = f"{free} intervals have no bound"
        else:
            more = f", and {free} have no bound" if line["n_unbounded"] else ""
            words = f"half of the intervals are narrower than {size:.3g}{more}"
        said.append(f"by a factor of up to {line['factor']:g}: {words}" if line["factor"] > 1.0 else words)
    first, *others = said
    return (
        f"If the value itself played no part in who has a label, {first}. If the odds of a label also depend on the "
        f"value, either way, {'; '.join(others)}."
    )


def _overlap(scores: Any) -> dict[str, Any] | None:
    """Return the shares of labelled and unlabelled rows in bins of their scores."""
    if scores is None or min(len(part) for part in scores) == 0:
        return None
    both = np.concatenate(scores)
    low, high = np.quantile(both, [0.005, 0.995])
    if not high > low:
        return None
    edges = np.linspace(low, high, N_BINS + 1)
    bins = [np.histogram(np.clip(part, low, high), edges)[0] / len(part) for part in scores]
    return {
        "edges": plain(edges),
        "labelled": plain(bins[0]),
        "unlabelled": plain(bins[1]),
        "shared": float(np.minimum(*bins).sum()),
        "n_labelled": len(scores[0]),
        "n_unlabelled": len(scores[1]),
    }


def overlap_figure(summary: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return title, plot and text of the overlap of labelled and unlabelled rows; None if it is not known."""
    found = (summary.get("who_was_labelled") or {}).get("overlap")
    if found is None:
        return None
    edges = np.array(found["edges"], dtype=float)

    def paint(ax: Any) -> None:
        for kind, color in (("labelled", "#1b6ca8"), ("unlabelled", "#b07d1e")):
            ax.stairs(found[kind], edges, fill=True, alpha=0.45, color=color, label=kind)
        ax.set(
            xlabel="score: the further right, the more a row looks unlabelled",
            ylabel="share of rows",
            xticks=[],
        )
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    text = (
        f"A classifier that has not seen a row scores how much it looks like the {found['n_unlabelled']:,} unlabelled "
        f"rather than the {found['n_labelled']:,} labelled rows. {percent(found['shared'])} of the two heaps lie on "
        "top of each other; where only unlabelled rows are, no label says anything."
    )
    return "Do labelled and unlabelled rows overlap?", draw("overlap", paint, (4.4, 3.0)), text
