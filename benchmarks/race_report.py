"""What the race says: mean errors, mean ranks, critical differences (Demsar 2006), as tables and figures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from docs_page import put_between
from race_figure import draw
from race_methods import OURS
from race_ranks import critical_difference, friedman, mean_ranks, wilcoxon

DOCS = Path(__file__).parent.parent / "docs"
START, END = "<!-- race: start -->", "<!-- race: end -->"
LABELS = ("10", "30", "100", "many")
TITLES = {
    "regression": "Numbers",
    "classification": "Classes",
    "both": "Numbers and classes together",
}
NAMES = {
    "SVM": "support vector machine",
    "GP": "Gaussian process, scikit-learn's",
    "transductive GP": "Gaussian process, ours",
    "transductive GP, wide prior": "Gaussian process, ours, wide prior",
    "extra trees": "extremely randomised trees",
}


def report(lines: pd.DataFrame, out: Path) -> None:
    """Write and print everything there is to say of the lines collected."""
    lines.to_csv(out / "race.csv", index=False, float_format="%.6g")
    panels = by_table(lines)
    ranks = pd.concat(
        [summarise(key, errors, lines) for key, errors in panels.items()], ignore_index=True
    )
    ranks.to_csv(out / "ranks.csv", index=False, float_format="%.6g")
    errors = pd.concat(panels, names=["task", "labels"]).reset_index()
    errors[errors["task"] != "both"].to_csv(out / "errors.csv", index=False, float_format="%.6g")
    for labels in ("all", *LABELS):
        shown = {
            key: value
            for key, value in panels.items()
            if key[0] != "both" and labels in ("all", key[1])
        }
        if shown:
            draw(
                shown,
                out
                / (
                    "critical-difference.svg"
                    if labels == "all"
                    else f"critical-difference-{labels}.svg"
                ),
            )
    text = "\n\n".join([tables(ranks), verdicts(ranks), times(lines), failures(lines)])
    (out / "race.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}")


def by_table(lines: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Return errors, a row for each table and a column for each method, by task and number of labels.

    Errors are means over draws; a method that failed on one has none. The task "both" has the methods of either task.
    """
    means = lines.groupby(["task", "labels", "table", "method"])["error"].agg(
        lambda e: e.mean(skipna=False)
    )
    found = {}
    for labels in (count for count in LABELS if count in set(lines["labels"])):
        parts = []
        for task in ("regression", "classification"):
            if (task, labels) in means.index:
                part = means.loc[task, labels].unstack("method")
                parts.append(part[list(dict.fromkeys(lines.loc[lines["task"] == task, "method"]))])
                found[task, labels] = parts[-1]
        if len(parts) == 2:
            found["both", labels] = pd.concat(parts, join="inner")
    return found


def summarise(key: tuple[str, str], errors: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each method, the best first."""
    task, labels = key
    ranks = mean_ranks(errors)
    here = lines[(lines["labels"] == labels) & (lines["table"].isin(errors.index))]
    draws = here.groupby("table")["draw"].nunique()
    return pd.DataFrame(
        {
            "task": task,
            "labels": labels,
            "method": ranks.index,
            "rank": ranks.to_numpy(),
            "error": errors.mean(skipna=False)[ranks.index].to_numpy(),
            "ahead_of_auto": (errors.lt(errors["auto"], axis=0)).sum()[ranks.index].to_numpy(),
            "behind_auto": (errors.gt(errors["auto"], axis=0)).sum()[ranks.index].to_numpy(),
            "wilcoxon_auto": [wilcoxon(errors[name], errors["auto"]) for name in ranks.index],
            "tables": len(errors),
            "fewest_draws": draws.min(),
            "most_draws": draws.max(),
            "critical_difference": critical_difference(len(ranks), len(errors)),
            "friedman": friedman(errors),
        }
    )


# ------------------------------------------------------------------------------------------------- in Markdown


def markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def tables(ranks: pd.DataFrame) -> str:
    """Return a table of mean ranks for each task, ours in bold type; the best at 30 labels or fewer first."""
    parts = ((title, ranks[ranks["task"] == task]) for task, title in TITLES.items())
    return "\n\n".join(f"{title}:\n\n{table(part)}" for title, part in parts if len(part))


def table(ranks: pd.DataFrame) -> str:
    """Return mean ranks of one task, with mean errors where they are of one kind."""
    columns = [labels for labels in LABELS if labels in set(ranks["labels"])]
    few = ranks[ranks["labels"].isin(columns[:2])]
    order = few.groupby("method")["rank"].mean().sort_values().index
    cell = {(line.method, line.labels): line for line in ranks.itertuples()}
    rows = [
        [_name(method), *(_rank(cell[method, labels]) for labels in columns)] for method in order
    ]
    some = [cell[order[0], labels] for labels in columns]
    rows.append(["critical difference", *(f"{line.critical_difference:.1f}" for line in some)])
    rows.append(["tables, draws of each", *(_counts(line) for line in some)])
    return markdown(["method", *map(_labels, columns)], rows)


def _rank(line: Any) -> str:
    return f"{line.rank:.1f}" if line.task == "both" else f"{line.rank:.1f} ({line.error:.3f})"


def _name(method: str) -> str:
    name = NAMES.get(method, method)
    return f"**{name}**" if method in OURS else name


def _labels(labels: str) -> str:
    return f"{labels} labels"


def _counts(line: Any) -> str:
    fewest, most = line.fewest_draws, line.most_draws
    return f"{line.tables}, {fewest}" if fewest == most else f"{line.tables}, {fewest} to {most}"


def verdicts(ranks: pd.DataFrame) -> str:
    """Return a sentence for each part of the race: who is best, and where `auto` is."""
    said = []
    for (task, labels), part in ranks.groupby(["task", "labels"], sort=False):
        best, auto = part.iloc[0], part[part["method"] == "auto"].iloc[0]
        near = auto["rank"] - best["rank"] <= best["critical_difference"]
        place = int((part["rank"] < auto["rank"] - 1e-9).sum()) + 1
        words = (
            f"- {TITLES[task]}, {_labels(labels)}: {_name(best['method'])} has the best mean rank, "
        )
        words += f"{best['rank']:.2f}"
        if best["method"] != "auto":
            words += (
                f"; `auto` is number {place} of {len(part)} with {auto['rank']:.2f}, "
                f"{'within' if near else 'beyond'} the critical difference; the best is ahead of `auto` on "
                f"{best['ahead_of_auto']} of {best['tables']} tables (Wilcoxon p {best['wilcoxon_auto']:.2g})"
            )
        said.append(f"{words}. Friedman p {best['friedman']:.1g}.")
    return "\n".join(said)


def times(lines: pd.DataFrame) -> str:
    """Return processor seconds of a fit and of a whole draw."""
    seconds = (
        lines.groupby(["task", "method", "labels"], sort=False)["seconds"].mean().unstack("labels")
    )
    cells = (
        lines.groupby(["task", "labels", "table", "draw"])["seconds"]
        .sum()
        .groupby(["task", "labels"])
        .mean()
    )
    columns = [labels for labels in LABELS if labels in seconds.columns]
    rows = [
        [task, method, *(f"{seconds.loc[(task, method), c]:.2f}" for c in columns)]
        for task, method in seconds.index
    ]
    rows += [
        [task, "all", *(f"{cells.get((task, c), np.nan):.1f}" for c in columns)]
        for task in TITLES
        if task in seconds.index
    ]
    return f"Processor seconds of one draw:\n\n{markdown(['task', 'method', *map(_labels, columns)], rows)}"


def failures(lines: pd.DataFrame) -> str:
    failed = lines[lines["failure"].fillna("") != ""]
    if failed.empty:
        return f"No method failed in {len(lines)} fits."
    counts = failed.groupby(["task", "method", "failure"]).size()
    return "\n".join(
        f"- {task}, {method}: {n} times {why}" for (task, method, why), n in counts.items()
    )


# ------------------------------------------------------------------------------------------------- in the docs


def publish(out: Path) -> None:
    """Copy tables and figures into the docs, and renew the tables of the page that helps to choose."""
    page, target = DOCS / "choosing.md", DOCS / "results" / "race"
    ranks = pd.read_csv(out / "ranks.csv", dtype={"labels": str})
    put_between(page, START, END, tables(ranks[ranks["task"] != "both"]))
    target.mkdir(parents=True, exist_ok=True)
    for name in ("race.md", "ranks.csv", "errors.csv", *(path.name for path in out.glob("*.svg"))):
        shutil.copy(out / name, target / name)
    print(f"Copied to {target}; the table of {page} is new.")
