"""Moment-matched Gaussian processes on 23 sets, after Le, Smola, Gartner and Altun (2006).

    TRANSDUCE_DATA=folder python papers/le2006.py [--full]

Table 1 and Figure 2: ten-fold cross-validation, root mean squared error of labels scaled to variance 1, except in the
first three sets. Three columns, all with the paper's prior (a = 1, b = 0.5) and features scaled over all rows:

Ind         one width for all features, and noise; the paper chose these two by cross-validation, we by the posterior
Ind AMS     a relevance for each feature
Trans AMS   moments of the unlabelled fold matched; weight and slack chosen by cross-validation among the other nine
            folds, where not to match is one of the choices

Full: all folds of all sets. Quick: the first folds, fewer of the sets that take long.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from paper_data import load_dataset
from scipy.stats import wilcoxon
from study import BLUE, GREY, RED, Study, main, summarise

from transduce import TransductiveGPRegressor

METHODS = ("Ind", "Ind AMS", "Trans AMS")
COLORS = dict(zip(METHODS, (GREY, BLUE, RED), strict=True))
# Set: the paper's errors, in the order of METHODS.
PAPER = {
    "diabetes": (0.64, 0.64, 0.66),
    "triazines": (0.10, 0.10, 0.09),
    "pyrimidines": (0.10, 0.09, 0.09),
    "BigMac2003": (1.08, 0.73, 0.53),
    "UN3": (0.84, 0.72, 0.61),
    "topo": (1.49, 0.74, 0.65),
    "mcycle": (1.23, 0.97, 0.90),
    "CobarOre": (1.47, 1.22, 1.14),
    "highway": (1.00, 0.93, 0.84),
    "sniffer": (0.75, 0.67, 0.58),
    "caution": (1.03, 0.92, 0.91),
    "gilgais": (0.85, 0.79, 0.73),
    "ftcollinssnow": (2.31, 1.20, 0.92),
    "crabs": (0.34, 0.29, 0.29),
    "boston": (0.47, 0.42, 0.39),
    "engel": (2.18, 0.81, 0.58),
    "heights": (0.10, 0.10, 0.10),
    "snowgeese": (0.53, 0.49, 0.44),
    "ufc": (0.63, 0.63, 0.63),
    "birthwt": (0.38, 0.25, 0.19),
    "GAGurine": (0.94, 0.81, 0.77),
    "geyser": (0.96, 0.93, 0.89),
    "cpus": (0.40, 0.48, 0.48),
}
RAW = {"diabetes", "triazines", "pyrimidines"}
N_FOLDS = 10
# Folds of the quick mode; of the sets that take longest, fewer.
QUICK, QUICK_LONG = 5, {"heights": 1, "boston": 2, "gilgais": 2, "triazines": 2, "ufc": 3}


def run_fold(name: str, fold: int) -> dict:
    """Return the errors of the three methods in one fold, and how strongly it was matched."""
    data = load_dataset(name)
    X, y = data.encoded(), data.y.to_numpy(float)
    y = y if name in RAW else (y - y.mean()) / y.std()
    unlabelled = np.random.default_rng(0).permutation(len(y)) % N_FOLDS == fold
    labels = np.where(unlabelled, np.nan, y)
    common = TransductiveGPRegressor(relevance=False, matching=0, random_state=0).fit(X, labels)
    matched = TransductiveGPRegressor(random_state=0).fit(X, labels)
    values = (common.answer_.values, matched.answer_.inductive, matched.answer_.values)
    errors = [float(np.sqrt(np.mean((found - y[unlabelled]) ** 2))) for found in values]
    return {
        **dict(zip(METHODS, errors, strict=True)),
        "matching": matched.matching_,
        "slack": matched.slack_,
    }


def table_1(study: Study) -> None:
    """Errors on the 23 sets, and the tests."""
    counts = {name: study.splits(QUICK_LONG.get(name, QUICK), N_FOLDS) for name in PAPER}
    cells = [{"name": name, "fold": fold} for name, folds in counts.items() for fold in folds]
    folds = study.collect("table-1", cells, run_fold)
    lines = folds.melt(["name", "fold"], list(METHODS), var_name="method")
    published = {
        (name, m): e for name, row in PAPER.items() for m, e in zip(METHODS, row, strict=True)
    }
    summary = summarise(lines, "name", "method", "value", published)
    draw(study, summary)
    title = "Root mean squared error, mean ± standard deviation over folds"
    study.publish("table-1", title, summary, note=say(folds, summary))


def say(folds: pd.DataFrame, summary: pd.DataFrame) -> str:
    """Return the tests over sets, ours and those of the paper's own figures."""
    ours = summary.pivot(index="row", columns="column", values="mean")
    paper = summary.pivot(index="row", columns="column", values="paper")
    chosen = int((folds["matching"] > 0).sum())
    said = [
        compare("Trans AMS against Ind", ours["Trans AMS"], ours["Ind"]),
        compare("Trans AMS against Ind AMS", ours["Trans AMS"], ours["Ind AMS"]),
        compare("Ind AMS against Ind", ours["Ind AMS"], ours["Ind"]),
        compare("Our Ind against the paper's", ours["Ind"], paper["Ind"]),
        compare("Our Trans AMS against the paper's", ours["Trans AMS"], paper["Trans AMS"]),
        compare("Our Ind AMS against the paper's Trans AMS", ours["Ind AMS"], paper["Trans AMS"]),
        compare("The paper's own figures, Trans AMS against Ind", paper["Trans AMS"], paper["Ind"]),
        compare(
            "The paper's own figures, Trans AMS against Ind AMS",
            paper["Trans AMS"],
            paper["Ind AMS"],
        ),
        f"Cross-validation chose to match in {chosen} of {len(folds)} folds.",
    ]
    return "\n".join(f"- {line}" for line in said)


def compare(what: str, first: pd.Series, second: pd.Series) -> str:
    """Return on how many sets the first error is below the second, and the one-sided Wilcoxon signed-rank test.

    Errors that differ by less than 1e-6 are equal: with one feature two methods are the same except for rounding.
    """
    differs = (first - second).abs() > 1e-6
    said = f"{what}: below on {int((first < second)[differs].sum())} of {len(first)} sets"
    if not differs.all():
        said += f", equal on {int((~differs).sum())}"
    if not differs.any():
        return said + "."
    p = wilcoxon(first[differs], second[differs], alternative="less").pvalue
    return said + f"; Wilcoxon signed-rank test, one-sided, p = {p:.2g}."


def draw(study: Study, summary: pd.DataFrame) -> None:
    """Draw a line of dots for each set, with a tick where the paper has its transductive column."""
    figure, ax = plt.subplots(figsize=(6.4, 6.6), layout="constrained")
    names = list(PAPER)
    place = {name: len(names) - i for i, name in enumerate(names)}
    for shift, (method, color) in zip((0.22, 0.0, -0.22), COLORS.items(), strict=True):
        lines = summary[summary["column"] == method]
        heights = lines["row"].map(place) + shift
        ax.errorbar(
            lines["mean"], heights, xerr=lines["sd"].fillna(0), fmt="o", color=color, markersize=4,
            elinewidth=0.7, label=method,
        )  # fmt: skip
    ticks = [PAPER[name][2] for name in names]
    ax.scatter(
        ticks, list(place.values()), marker="|", s=170, color="black", label="Trans AMS, paper"
    )
    ax.set(yticks=list(place.values()), yticklabels=names, ylim=(0.3, len(names) + 0.7))
    ax.set(
        xlabel="root mean squared error, mean ± standard deviation over folds",
        xscale="log",
        xlim=(0.03, 2),
    )
    ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
    ax.minorticks_off()
    ax.grid(axis="y", color="#eeeeee")
    ax.set_axisbelow(True)
    shown = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    order = [*METHODS, "Trans AMS, paper"]
    figure.legend([shown[name] for name in order], order, loc="outside upper center", ncols=4)
    study.draw("table-1", figure)
    plt.close(figure)


if __name__ == "__main__":
    main("le2006", __doc__, {"table-1": table_1}, PAPER)
