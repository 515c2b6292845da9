"""Joachims (2003), Transductive learning via spectral graph partitioning: five claims on six data sets.

    TRANSDUCE_DATA=folder python papers/joachims2003.py [--full] [--only table sizes settings webkb speed tsvm ...]

Every task is a class against the rest; a sample of l labels has as many positives as their share says, at least one.
Figures are break-even points of precision and recall at the unlabelled rows, in percent, averaged over the tasks of a
set. The graph transducer has the paper's settings: c = 3200, d = 80, cosine neighbours. kNN (cosine) and the linear SVM
(rows of unit length) see the labelled rows only; their parameters are those with the best mean ON THE UNLABELLED ROWS,
as in the paper. So are those of the transductive SVM, of which there are fewer samples, as in the paper. The scan
that the paper is known from has lost its figures, so there are none beside ours.
"""

from __future__ import annotations

import json
import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joachims2003_baselines import compare_tsvm, compare_webkb, cut_least
from joachims2003_tasks import (
    AUTO,
    D_MAX,
    OURS,
    PART_OF_ADULT,
    SETS,
    VIEWS,
    WEBKB,
    compare,
    long,
    macro,
    percent,
    place,
    spectrum,
    tasks,
    transduce,
    with_the_best,
)
from scipy.stats import spearmanr, wilcoxon
from study import BLUE, GREEN, GREY, RED, main, summarise

WEIGHTS = (32.0, 100.0, 320.0, 1000.0, 3200.0, 10_000.0, 32_000.0, 100_000.0, 320_000.0)
COUNTS = (5, 10, 20, 40, 60, 80, 120, 160)
NEIGHBORS = (5, 10, 30, 100, 300, 800)
COLOURS = dict(zip(SETS, (BLUE, RED, GREEN, GREY, "#b07d12"), strict=True))


# ------------------------------------------------------------------------------------- the table, and the curves


def compared(study):
    cells = [
        {"data": data, "size": setup.labels, "sample": sample}
        for data, setup in SETS.items() for sample in study.splits(10, 100)
    ]  # fmt: skip
    return study.collect("table", cells, partial(compare, study.out / "spectra"))


def verdict(name, part):
    """Say how ours stands against the others: samples, tasks, and a signed-rank test over samples."""
    each, by_task, said = (
        part.groupby("sample")[[OURS, "kNN", "SVM"]].mean(),
        part.groupby("task"),
        [],
    )
    for other, setting in (("kNN", "k"), ("SVM", "C")):
        gain = each[OURS] - each[other]
        p = wilcoxon(gain).pvalue if gain.any() else 1.0
        wins = int((by_task[OURS].mean() > by_task[other].mean()).sum())
        on = f" and {wins} of {len(by_task)} tasks" if len(by_task) > 1 else ""
        value = part[setting].iloc[0]
        said.append(
            f"above {other} ({setting} = {value}) in {(gain > 0).sum()} of {len(gain)} samples{on}, p = {p:.2g}"
        )
    return f"- {name}: {'; '.join(said)}."


def run_table(study):
    frame = with_the_best(compared(study))
    shown = long(macro(frame), ["data", "size"])
    shown["data"] += ", " + shown["size"].astype(str) + " labels"
    title = "Break-even point in %, mean over tasks; kNN and SVM with the parameter that is best on the unlabelled rows"
    note = "\n".join(verdict(name, part) for name, part in frame.groupby("data", sort=False))
    about = f"The {OURS}, against the others; p of Wilcoxon's signed-rank test over samples:\n\n"
    study.publish("table", title, summarise(shown, "data", "method", "percent"), note=about + note)


def run_sizes(study):
    cells = [
        {"data": data, "size": size, "sample": sample}
        for data, setup in SETS.items() for size in setup.more for sample in study.splits(8, 100)
    ]  # fmt: skip
    more = study.collect("sizes", cells, partial(compare, study.out / "spectra"))
    fewest = compared(study)
    fewest = fewest[fewest["sample"].isin(study.splits(8, 100))]
    frame = macro(with_the_best(pd.concat([fewest, more], ignore_index=True)))
    least = frame["size"] == frame["data"].map({data: setup.labels for data, setup in SETS.items()})
    frame["column"] = np.where(least, "10 to 20", frame["size"].astype(str))
    pairs = {
        "over kNN": (OURS, "kNN"), "over SVM": (OURS, "SVM"), "c by rows, over kNN": (AUTO, "kNN")
    }  # fmt: skip
    gains = pd.concat(
        frame.assign(row=frame["data"] + ", " + words, gain=frame[ours] - frame[other])
        for words, (ours, other) in pairs.items()
    )
    summary = summarise(gains.sort_values("size", kind="stable"), "row", "column", "gain")
    order = [f"{data}, {words}" for data in SETS for words in pairs]
    summary = summary.sort_values("row", key=lambda rows: rows.map(order.index), kind="stable")
    title = f"Points that the {OURS} (or by rows), has over kNN and SVM with their best parameters, by labels"
    study.publish("sizes", title, summary, digits=1, note=fading(summary))
    study.draw("sizes", draw_sizes(frame))


def fading(summary):
    """Say for which sets the gain over kNN is largest with the fewest labels."""
    said = []
    for data in SETS:
        means = summary[summary["row"] == f"{data}, over kNN"].set_index("column")["mean"]
        said.append(
            f"{data}: {means.iloc[0]:+.1f} with {SETS[data].labels} labels, {means.iloc[-1]:+.1f} with "
            f"{means.index[-1]}, largest with {means.idxmax()}."
        )
    return "Gain over kNN. " + " ".join(said)


def draw_sizes(frame):
    figure, panels = plt.subplots(2, 3, figsize=(9, 5.2), layout="constrained")
    for panel, (data, part) in zip(panels.flat, frame.groupby("data", sort=False), strict=False):
        means = part.groupby("size")[[OURS, AUTO, "kNN", "SVM"]].mean()
        styles = ((OURS, BLUE, "o-"), (AUTO, GREEN, "o--"), ("kNN", RED, "s-"), ("SVM", GREY, "^-"))
        for method, colour, style in styles:
            panel.plot(means.index, means[method], style, color=colour, label=method, markersize=4)
        panel.set_xscale("log")
        panel.set_xticks(list(means.index), [str(size) for size in means.index])
        panel.minorticks_off()
        panel.set(title=data, xlabel="labels", ylabel="break-even point, %")
    panels.flat[-1].axis("off")
    panels.flat[-1].legend(*panels.flat[0].get_legend_handles_labels(), loc="center")
    return figure


# ------------------------------------------------------------------------------------- settings


def vary(folder, data, sample):
    """Return the mean over tasks of the break-even point for each c, and for each d."""
    found, figures = spectrum(folder, data, SETS[data].k), {}
    for _, truth, _, y, unlabelled in tasks(data, SETS[data].labels, sample):
        for c in WEIGHTS:
            figures.setdefault(("c", c), []).append(
                percent(truth, transduce(found, y, c).scores_, unlabelled)
            )
        for d in COUNTS:
            figures.setdefault(("d", d), []).append(
                percent(truth, transduce(found, y, d=d).scores_, unlabelled)
            )
    return [
        {"setting": s, "value": v, "percent": np.mean(list_)} for (s, v), list_ in figures.items()
    ]


def vary_neighbours(folder, data, k, sample):
    """Return a line for each task: break-even point, objective and rows not reached."""
    found, lines = spectrum(folder, data, k, 80), []
    for name, truth, _, y, unlabelled in tasks(data, SETS[data.split(",")[0]].labels, sample):
        model = transduce(found, y)
        line = {"percent": percent(truth, model.scores_, unlabelled), "objective": model.objective_}
        lines.append(
            {"task": name, **line, "unreached": int(np.isnan(model.scores_[unlabelled]).sum())}
        )
    return lines


def run_settings(study):
    cells = [{"data": data, "sample": sample} for data in SETS for sample in study.splits(10, 100)]
    frame = study.collect("settings", cells, partial(vary, study.out / "spectra"))
    words = {"c": "weight of the labels", "d": "number of eigenvectors"}
    for setting, part in frame.groupby("setting"):
        part = part.assign(column=[f"{setting} = {value:,.0f}" for value in part["value"]])
        title = f"Break-even point in % by the {words[setting]}, {setting}"
        note = near_the_best(part, setting)
        name = f"settings-{setting}"
        study.publish(
            name, title, summarise(part, "data", "column", "percent"), digits=1, note=note
        )
        study.draw(name, draw_losses(part, words[setting], setting))
    run_neighbours(study)


def near_the_best(part, setting):
    """Say which values are within two points of the best."""
    means = part.groupby(["data", "value"], sort=False)["percent"].mean().unstack()
    near = means.ge(means.max(axis=1) - 2, axis=0)
    said = [
        f"{data}: {', '.join(f'{v:,.0f}' for v in means.columns[row])}"
        for data, row in near.iterrows()
    ]
    return f"Values of {setting} within two points of the best. " + "; ".join(said) + "."


def draw_losses(part, words, setting):
    figure, panel = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    means = part.groupby(["data", "value"], sort=False)["percent"].mean().unstack()
    for data, row in means.iterrows():
        panel.plot(row.index, row - row.max(), "o-", color=COLOURS[data], label=data, markersize=4)
    panel.axhline(-2, color="black", linewidth=0.6, linestyle=":")
    panel.set(xlabel=f"{words}, {setting}", ylabel="break-even point less the best")
    if setting == "c":
        panel.set_xscale("log")
    figure.legend(loc="outside right center")
    return figure


def run_neighbours(study):
    names = [PART_OF_ADULT if data == "adult" else data for data in SETS]
    cells = [
        {"data": data, "k": k, "sample": sample}
        for data in names for k in NEIGHBORS if not (data == "ionosphere" and k > 300)
        for sample in study.splits(10, 100)
    ]  # fmt: skip
    frame = study.collect("settings-k", cells, partial(vary_neighbours, study.out / "spectra"))
    mean = frame.groupby(["data", "sample", "task"], sort=False)["objective"].transform("mean")
    frame["objective"] /= mean
    each = frame.groupby(["data", "k", "sample"], sort=False)[
        ["percent", "objective", "unreached"]
    ].mean()
    each = each.reset_index().assign(column=lambda part: "k = " + part["k"].astype(str))
    shown = pd.concat(
        each.assign(row=each["data"] + f": {word}", value=factor * each[name])
        for name, word, factor in (
            ("percent", "break-even", 1),
            ("objective", "objective x 100", 100),
        )
    )
    order = {name: place for place, name in enumerate(names)}
    shown = shown.sort_values(
        ["data", "row", "k"], key=lambda s: s.map(order) if s.name == "data" else s
    )
    title = (
        "Break-even point in % and normalised objective (100 on average), by number of neighbours"
    )
    summary = summarise(shown, "row", "column", "value")
    study.publish("settings-k", title, summary, digits=1, note=tracking(each))
    study.draw("settings-k", draw_neighbours(each))


def tracking(each):
    """Say which k is best, which one the objective chooses, and how the two are ranked."""
    said = []
    for data, part in each.groupby("data", sort=False):
        means = part.groupby("k")[["percent", "objective", "unreached"]].mean()
        chosen = means[means["unreached"] == means["unreached"].min()]["objective"].idxmin()
        lost = means["percent"].max() - means["percent"][chosen]
        rho = spearmanr(means["percent"], -means["objective"])[0]
        said.append(
            f"{data}: best k = {means['percent'].idxmax()}, chosen k = {chosen}, "
            f"{lost:.1f} points below, rank correlation {rho:.2f}"
        )
    about = (
        "Chosen by the smallest objective, among the graphs that leave the fewest rows unreached, as "
        "`papers/neighbor_choice.py` does; of adult 10,000 rows, drawn once. "
    )
    return about + "; ".join(said) + "."


def draw_neighbours(each):
    figure, panels = plt.subplots(2, 3, figsize=(9.5, 5.2), layout="constrained")
    for panel, (data, part) in zip(panels.flat, each.groupby("data", sort=False), strict=False):
        means = part.groupby("k")[["percent", "objective"]].mean()
        other = panel.twinx()
        other.spines["right"].set_visible(True)
        (first,) = panel.plot(means.index, means["percent"], "o-", color=BLUE, markersize=4)
        (second,) = other.plot(means.index, means["objective"], "s--", color=RED, markersize=4)
        other.invert_yaxis()
        panel.set_xscale("log")
        panel.set_xticks(list(means.index), [str(k) for k in means.index])
        panel.minorticks_off()
        panel.set(title=data, xlabel="neighbours, k")
        panel.set_ylabel("break-even point, %", color=BLUE)
        other.set_ylabel("objective, downwards", color=RED)
    panels.flat[-1].axis("off")
    words = ["break-even point", "normalised objective\n(small is up)"]
    panels.flat[-1].legend([first, second], words, loc="center")
    return figure


# ------------------------------------------------------------------------------------- co-training, and speed


def run_webkb(study):
    cells = [
        {"data": view, "size": WEBKB.labels, "sample": sample}
        for view in VIEWS for sample in study.splits(20, 100)
    ]  # fmt: skip
    frame = with_the_best(study.collect("webkb", cells, partial(compare, study.out / "spectra")))
    each = frame.pivot_table(index="sample", columns="data", values=OURS)
    said = []
    for view in list(VIEWS)[:-1]:
        gain = each["co-training"] - each[view]
        said.append(
            f"{view}: above in {(gain > 0).sum()} of {len(gain)} samples, p = {wilcoxon(gain).pvalue:.2g}"
        )
    title = "WebKB course pages, 12 labels: break-even point in %"
    note = (
        "Co-training against the other graphs. "
        + "; ".join(said)
        + " (Wilcoxon's signed-rank test)."
    )
    shown = long(frame, ["data"])
    shown = shown[shown["method"] != AUTO]  # the same: there are fewer than 3200 rows
    study.publish("webkb", title, summarise(shown, "data", "method", "percent"), note=note)


# ------------------------------------------------------------------------------------- what the paper compares with


def run_tsvm(study):
    """Compare with the transductive SVM, whose C and C* are best on the unlabelled rows."""
    # The 26 tasks of isolet would take as long as all others together several times over.
    names = [PART_OF_ADULT if data == "adult" else data for data in SETS if data != "isolet"]
    cells = [{"data": data, "sample": sample} for sample in study.splits(1, 3) for data in names]
    frame = study.collect("tsvm", cells, partial(compare_tsvm, study.out / "spectra"))
    parts = []
    notes = []
    for data, part in frame.groupby("data", sort=False):
        by_c = part[[name for name in part if name.startswith("TSVM")]]
        best = by_c.mean().idxmax()
        means = part.assign(TSVM=by_c[best]).groupby("sample")[["transducer", "TSVM"]].mean()
        by_task = part.assign(TSVM=by_c[best]).groupby("task")[["transducer", "TSVM"]].mean()
        wins = int((by_task["transducer"] > by_task["TSVM"]).sum())
        notes.append(
            f"{data}: C, C* = {best.split()[1]}, above it on {wins} of {len(by_task)} tasks"
        )
        parts.append(means.reset_index().assign(data=data))
    shown = pd.concat(parts).melt(["data"], ["transducer", "TSVM"], "method", "percent")
    title = "Break-even point in %, mean over tasks, beside a transductive SVM by continuation"
    note = f"The transducer has c = 3200. {'; '.join(notes)}."
    study.publish("tsvm", title, summarise(shown, "data", "method", "percent"), note=note)


def run_webkb_errors(study):
    """Give error rates beside break-even points, with the transductive SVM, and co-training as it was proposed."""
    cells = [{"sample": sample} for sample in study.splits(5, 10)]
    frame = study.collect("webkb-errors", cells, partial(compare_webkb, study.out / "spectra"))
    frame["family"] = frame["method"].str.split(" ").str[0]
    means = frame.groupby(["view", "family", "method"])["prbep"].mean()
    best = set(means.groupby(["view", "family"]).idxmax())
    kept = [
        line in best for line in zip(frame["view"], frame["family"], frame["method"], strict=True)
    ]
    frame = frame[kept].assign(method=frame["family"])
    shown = frame.melt(["view", "method"], ["prbep", "error"], "measure", "percent")
    words = {"prbep": "break-even", "error": "error"}
    shown["row"] = shown["view"] + ", " + shown["measure"].map(words)
    title = "WebKB course pages, 12 labels: break-even point, and error rate, in %"
    note = (
        "Both: the transducer on the sum of the graphs, the TSVM on the joined rows, Blum and Mitchell's co-training "
        "by two naive Bayes classifiers, 30 rounds, words on 20 pages or more.\n"
        "C, C* and the smoothing of naive Bayes are those of the best mean break-even point.\n"
        "Error rates have the methods' own thresholds: for the transducer the middle between the targets."
    )
    study.publish("webkb-errors", title, summarise(shown, "row", "method", "percent"), note=note)


def run_mincut(study):
    """Show what the minimum cut does on the paper's sets."""
    names = ("optdigits", "ionosphere", "reuters", "isolet")
    cells = [{"data": data, "sample": sample} for data in names for sample in study.splits(2, 10)]
    frame = study.collect("mincut", cells, cut_least)
    words = {
        "corner": "cuts off a corner",
        "found": "positives, cut",
        "true": "positives, truth",
        "cut_over_truth": "cut / truth's",
        "average_over_truth": "average cut / truth's",
    }
    each = frame.groupby(["data", "sample"], sort=False)[list(words)].mean().reset_index()
    shown = each.melt(["data"], list(words), "column", "percent")
    shown["column"] = shown["column"].map(words)
    title = "The minimum cut (Blum and Chawla) of the graph of ten neighbours, in %"
    note = (
        "It cuts off a corner if one side has, besides the labelled rows, no more rows than there are labels.\n"
        "Its cut is smaller than that of the true labelling, and its average cut many times as large."
    )
    study.publish(
        "mincut", title, summarise(shown, "data", "column", "percent"), digits=1, note=note
    )


def clock(folder, data, k, d):
    """Return the seconds that graph and spectrum took when they were made, and those of some labellings now."""
    found = spectrum(folder, data, k, d)
    built = json.loads(place(folder, data, k, d).with_suffix(".json").read_text(encoding="utf-8"))
    lines = []
    for sample in range(21):
        y = next(tasks(data, 10, sample))[3]
        begin = time.perf_counter()
        transduce(found, y)
        lines.append({**built, "labelling": time.perf_counter() - begin, "rows": len(y)})
    return lines[1:]  # the first one warms up


def run_speed(study):
    names = {"optdigits": (10, D_MAX), PART_OF_ADULT: (100, 80), "adult": (100, D_MAX)}
    cells = [{"data": data, "k": k, "d": d} for data, (k, d) in names.items()]
    frame = study.collect("speed", cells, partial(clock, study.out / "spectra"))
    groups = frame.groupby("data", sort=False)
    middle = groups.median().rename(
        index=lambda data: f"{data.split(',')[0]}, {groups.get_group(data)['rows'].iloc[0]:,} rows"
    )
    figures = pd.DataFrame(
        {
            "graph, s": middle["graph"],
            "spectrum, s": middle["spectrum"],
            "labelling, ms": 1000 * middle["labelling"],
            "graph and spectrum / labelling": (middle["graph"] + middle["spectrum"])
            / middle["labelling"],
        }
    )
    summary = figures.stack().rename_axis(["row", "column"]).rename("mean").reset_index()
    summary = summary.assign(sd=np.nan, n=len(frame) // len(names), paper=np.nan)
    slowest = figures["labelling, ms"].max()
    note = (
        "One thread; a two-class task with ten labels; medians.\n"
        f"The slowest labelling takes {slowest:.1f} ms, where the paper has less than a second.\n"
        f"Spectra have {D_MAX} eigenvectors, that of the part of adult 80."
    )
    study.publish(
        "speed",
        "Time of a labelling once the spectrum is there",
        summary,
        digits=1,
        note=note,
        check=False,
    )


if __name__ == "__main__":
    parts = {"table": run_table, "sizes": run_sizes, "settings": run_settings, "webkb": run_webkb}
    main(
        "joachims2003",
        __doc__,
        {
            **parts,
            "speed": run_speed,
            "tsvm": run_tsvm,
            "webkb-errors": run_webkb_errors,
            "mincut": run_mincut,
        },
        (*SETS, "webkb-pages", "webkb-links"),
    )
