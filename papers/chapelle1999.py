"""Chapelle, Vapnik and Weston (1999), Transductive inference for estimating values of functions: figure 1 and table 1.

    TRANSDUCE_DATA=folder python papers/chapelle1999.py [--full]

figure1a  boston, 481 labelled and 25 unlabelled rows: mean squared error as the width varies
figure1b  boston: as the number of unlabelled rows varies
figure1c  kin-32fh, 64 labelled and 256 unlabelled rows: as the width varies
figure1d  kin-32fh: as the number of unlabelled rows varies
table1    test error on seven sets of two classes, beside the paper's and beside scikit-learn's SVC on the same splits

The full mode has the paper's 100 splits (23 of postal) and takes about twenty minutes on one core; the quick mode
takes the first few of them, and about three minutes.

Widths, ridges and tethers of figure 1 are the paper's, on standardised features; figure 1a goes on to larger widths.
Where the number m of unlabelled rows varies, the same rows are answered every time, m of them in one fit, so that
the inductive error cannot change: 24 of boston's 25, since 24 has divisors. In table 1 width and ridge have the
smallest leave-one-out error on the first five training sets together, without the unlabelled rows; the tether is
l / 2m, as in figure 1b. C and width of the SVC are the medians of what five folds choose in each of the same five
training sets. Splits are those that come with the data. The training file of postal is cut into 23 sets of 317 at
random, and the first 2,000 rows of its test file are the unlabelled rows. The test file is known to be harder, so
"postal, one file" takes 2,000 other rows of the training file instead.

Centres are at all rows, as in the paper. On banana, with 5,300 rows, ``centres=1000`` puts them at the 400 labelled
rows; the full mode also runs five splits with centres at all rows ("banana, all centres").
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from paper_data import load_dataset
from scipy.stats import wilcoxon
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from study import BLUE, GREY, RED, Study, main, summarise

from transduce import TransductiveRidge, TransductiveRidgeClassifier
from transduce.device.kernels import Kernel, median_width
from transduce.methods.ridge.completion import RidgeSpectrum

BOTH = ["inductive", "transductive"]
# AdaBoost, regularised AdaBoost, SVM and transductive linear discrimination, from table 1.
PAPER = {
    "postal": (np.nan, np.nan, 5.5, 4.7),
    "postal, one file": (np.nan, np.nan, 5.5, 4.7),
    "banana": (12.3, 10.9, 11.5, 11.4),
    "banana, all centres": (12.3, 10.9, 11.5, 11.4),
    "diabetis": (26.5, 23.8, 23.5, 23.3),
    "titanic": (22.6, 22.6, 22.4, 22.4),
    "breast-cancer": (30.4, 26.5, 26.0, 25.7),
    "heart": (20.3, 16.6, 16.0, 15.7),
    "thyroid": (4.4, 4.6, 4.8, 4.0),
}
COLUMNS = ["AdaBoost", "regularised AdaBoost", "SVM", "transductive"]
# How many splits in quick and in full mode: fits of thousands of rows take seconds.
SPLITS = {
    "postal": (6, 23),
    "postal, one file": (8, 23),
    "banana": (12, 100),
    "banana, all centres": (0, 5),
    "diabetis": (20, 100),
    "titanic": (8, 100),
}


# ------------------------------------------------------------------------------------------------ figure 1


@cache
def read_numbers(name):
    """Return standardised features and the target."""
    data = load_dataset(name)
    X = data.encoded()
    return (X - X.mean(axis=0)) / X.std(axis=0), data.y.to_numpy(float)


def squared_errors(name, split, n_labelled, n_unlabelled, m, **settings):
    """Return the mean squared errors of both answers in one split, with m unlabelled rows in each fit."""
    X, y = read_numbers(name)
    order = np.random.default_rng([1999, split]).permutation(len(y))[: n_labelled + n_unlabelled]
    known, unlabelled = order[:n_labelled], order[n_labelled:]
    gaps = []
    for group in unlabelled.reshape(-1, m):
        labels = np.append(y[known], np.full(m, np.nan))
        model = TransductiveRidge(standardize=False, **settings).fit(
            X[np.append(known, group)], labels
        )
        gaps.append([model.answer_.inductive - y[group], model.answer_.values - y[group]])
    return dict(zip(BOTH, np.mean(np.square(gaps), axis=(0, 2)), strict=True))


def by_width(name, split, log_width, ridge, tether, n_labelled, n_unlabelled):
    settings = {"width": np.exp(log_width), "ridge": ridge, "tether": tether}
    return squared_errors(name, split, n_labelled, n_unlabelled, n_unlabelled, **settings)


def by_number(name, split, log_width, ridge, pull, n_labelled, n_unlabelled, m):
    """Return the errors with a tether of pull / m."""
    settings = {"width": np.exp(log_width), "ridge": ridge, "tether": pull / m}
    return squared_errors(name, split, n_labelled, n_unlabelled, m, **settings)


def show_figure(study, part, title, frame, varied, digits):
    """Publish and draw both errors against what is varied; say how often transduction is lower."""
    long = frame.melt(id_vars=varied, value_vars=BOTH, var_name="column", value_name="value")
    summary = summarise(long, varied, "column", "value")
    summary["row"] = [f"{varied} {float(value):g}" for value in summary["row"]]
    tests = "; ".join(
        f"{varied} {value:g}: {compared(group)}" for value, group in frame.groupby(varied)
    )
    note = f"Splits in which the transductive error is lower or higher than the inductive one (Wilcoxon p). {tests}."
    study.publish(part, title, summary, digits=digits, note=note)
    draw_errors(study, part, frame, varied)


def paired_test(frame):
    """Return the p-value of the paired difference between the two answers, in words."""
    difference = frame["transductive"] - frame["inductive"]
    if len(difference) < 2 or not np.any(difference):
        return "no difference"
    return f"{wilcoxon(difference).pvalue:.2g}"


def draw_errors(study, part, frame, varied):
    """Draw means with their standard errors, those of the differences within splits."""
    groups = frame.groupby(varied)
    means = groups[BOTH].mean()
    gap = groups.apply(lambda g: (g["transductive"] - g["inductive"]).sem(), include_groups=False)
    figure, ax = plt.subplots(figsize=(4.2, 3.2))
    ax.plot(means.index, means["inductive"], "o--", color=GREY, markersize=4, label="inductive")
    ax.errorbar(
        means.index,
        means["transductive"],
        gap,
        fmt="o-",
        color=BLUE,
        markersize=4,
        capsize=2,
        label="transductive",
    )
    named = {"log width": "log width (natural)", "m": "unlabelled rows in a fit, m"}[varied]
    ax.set(xlabel=named, ylabel="mean squared error\n(bars: standard error of the difference)")
    if varied == "m":
        ax.set_xscale("log", base=2)
        ax.set_xticks(means.index, [f"{m:g}" for m in means.index])
    figure.legend(*ax.get_legend_handles_labels(), loc="upper center", ncols=2)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    study.draw(part, figure)


def figure1a(study: Study) -> None:
    fixed = {
        "name": "boston",
        "ridge": 0.005,
        "tether": 10.0,
        "n_labelled": 481,
        "n_unlabelled": 25,
    }
    widths = (
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        1.0,
        1.2,
        1.4,
        1.6,
    )  # the last three are not in the paper
    cells = [{**fixed, "log_width": w, "split": s} for s in study.splits(12, 100) for w in widths]
    frame = study.collect("figure1a", cells, by_width).rename(columns={"log_width": "log width"})
    show_figure(
        study, "figure1a", "Figure 1a. boston, 481 / 25: mean squared error", frame, "log width", 2
    )


def figure1b(study: Study) -> None:
    fixed = {
        "name": "boston",
        "log_width": 0.7,
        "ridge": 0.005,
        "pull": 481 / 2,
        "n_labelled": 481,
        "n_unlabelled": 24,
    }
    cells = [{**fixed, "m": m, "split": s} for s in study.splits(12, 100) for m in (3, 8, 24)]
    frame = study.collect("figure1b", cells, by_number)
    show_figure(
        study, "figure1b", "Figure 1b. boston, 481 labelled: mean squared error", frame, "m", 2
    )


def figure1c(study: Study) -> None:
    fixed = {"name": "kin-32fh", "ridge": 0.1, "tether": 0.1, "n_labelled": 64, "n_unlabelled": 256}
    widths = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75)
    cells = [{**fixed, "log_width": w, "split": s} for s in study.splits(25, 100) for w in widths]
    frame = study.collect("figure1c", cells, by_width).rename(columns={"log_width": "log width"})
    show_figure(
        study,
        "figure1c",
        "Figure 1c. kin-32fh, 64 / 256: mean squared error",
        frame,
        "log width",
        4,
    )


def figure1d(study: Study) -> None:
    fixed = {
        "name": "kin-32fh",
        "log_width": 2.75,
        "ridge": 0.1,
        "pull": 50.0,
        "n_labelled": 64,
        "n_unlabelled": 256,
    }
    cells = [
        {**fixed, "m": m, "split": s} for s in study.splits(25, 100) for m in (16, 32, 64, 128, 256)
    ]
    frame = study.collect("figure1d", cells, by_number)
    show_figure(
        study, "figure1d", "Figure 1d. kin-32fh, 64 labelled: mean squared error", frame, "m", 4
    )


# ------------------------------------------------------------------------------------------------ table 1


@cache
def read_classes(name):
    """Return features, classes -1 and 1, and the labelled and unlabelled rows of each split."""
    if not name.startswith("postal"):
        data = load_dataset(name.split(",")[0])
        return data.encoded(), data.y.to_numpy(), *data.splits
    data = load_dataset("usps")
    order = np.random.default_rng(0).permutation(7291)
    learn = order.reshape(23, 317)
    if name == "postal":
        ask = np.tile(np.arange(7291, 9291), (23, 1))
    else:
        ask = np.array([np.roll(order, -317 * split)[317:2317] for split in range(23)])
    return data.encoded(), np.where(data.y.astype(int) < 5, -1, 1), learn, ask


def scaled(name):
    """Return whether features are standardised; pixels share a unit, and their margins are empty."""
    return not name.startswith("postal")


def choose_ridge(name):
    """Return the width and ridge of the smallest leave-one-out error over the first five training sets together."""
    X, t, learn, _ = read_classes(name)
    sets = [X[rows] for rows in learn[:5]]
    sets = [StandardScaler().fit_transform(rows) for rows in sets] if scaled(name) else sets
    widths = median_width(sets[0]) * 2.0 ** np.arange(-4, 4.1, 0.5)
    ridges = 10.0 ** np.arange(-5, 3.1, 0.25)
    errors = np.zeros((len(widths), len(ridges)))
    for Z, rows in zip(sets, learn[:5], strict=True):
        labels = (t[rows] - t[rows].mean())[:, None]
        errors += [
            RidgeSpectrum.of_kernel(Kernel("rbf", w).matrix(Z, Z), labels).errors(ridges)
            for w in widths
        ]
    best = np.unravel_index(np.argmin(errors), errors.shape)
    return {"width": widths[best[0]], "ridge": ridges[best[1]]}


def choose_svm(name):
    """Return the medians of C and gamma that five folds choose in each of the first five training sets."""
    X, t, learn, _ = read_classes(name)
    base = (
        0.5
        / median_width(StandardScaler().fit_transform(X[learn[0]]) if scaled(name) else X[learn[0]])
        ** 2
    )
    grid = {"svc__C": 10.0 ** np.arange(-1, 3.1, 0.5), "svc__gamma": base * 4.0 ** np.arange(-2, 3)}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = [
        GridSearchCV(make_svm(name), grid, cv=folds).fit(X[r], t[r]).best_params_ for r in learn[:5]
    ]
    return {key: np.median([f[f"svc__{key}"] for f in found]) for key in ("C", "gamma")}


def make_svm(name, **settings):
    return make_pipeline(StandardScaler() if scaled(name) else "passthrough", SVC(**settings))


def choose(name):
    return {**choose_ridge(name), **choose_svm(name)}


def test_errors(name, split, width, ridge, C, gamma):
    """Return the test errors in per cent of the three methods in one split."""
    X, t, learn, ask = read_classes(name)
    learn, ask = learn[split], ask[split]
    centres = 1000 if name == "banana" else None
    model = TransductiveRidgeClassifier(
        width=width, ridge=ridge, standardize=scaled(name), centres=centres, random_state=split
    )
    answer = model.fit(
        X[np.append(learn, ask)], np.append(t[learn].astype(float), np.full(len(ask), np.nan))
    ).answer_
    svm = make_svm(name, C=C, gamma=gamma).fit(X[learn], t[learn]).predict(X[ask])
    found = {"inductive": answer.inductive, "transductive": answer.values, "SVM": svm}
    return {method: 100 * np.mean(values != t[ask]) for method, values in found.items()}


def table1(study: Study) -> None:
    numbers = {name: study.splits(*SPLITS.get(name, (50, 100))) for name in PAPER}
    names = [name for name, splits in numbers.items() if len(splits)]
    bases = dict.fromkeys(name.split(",")[0] for name in names)
    chosen = (
        study.collect("settings", [{"name": base} for base in bases], choose)
        .set_index("name")
        .T.to_dict()
    )
    cells = [{"name": n, "split": s, **chosen[n.split(",")[0]]} for n in names for s in numbers[n]]
    frame = study.collect("table1", cells, test_errors)
    published = {(n, c): f for n in names for c, f in zip(COLUMNS, PAPER[n], strict=True)}
    long = frame.melt(
        id_vars="name", value_vars=[*BOTH, "SVM"], var_name="column", value_name="value"
    )
    summary = summarise(long, "name", "column", "value", published)
    quoted = [[n, c, np.nan, np.nan, 0, published[n, c]] for n in names for c in COLUMNS[:2]]
    summary = pd.concat([pd.DataFrame(quoted, columns=summary.columns), summary], ignore_index=True)
    tests = "; ".join(
        f"{name} {compared(group)}" for name, group in frame.groupby("name", sort=False)
    )
    note = f"Splits in which the transductive error is lower or higher than the inductive one (Wilcoxon p): {tests}."
    study.publish("table1", "Table 1. Test error, %", summary, digits=1, note=note)
    draw_table(study, summary, names)


def compared(frame):
    """Say in how many splits the transductive error is lower and higher."""
    lower, higher = (
        np.sum(sign * (frame["inductive"] - frame["transductive"]) > 0) for sign in (1, -1)
    )
    return f"{lower} lower, {higher} higher ({paired_test(frame)})"


def draw_table(study, summary, names):
    """Draw our errors with their spread over splits, and the paper's."""
    figure, ax = plt.subplots(figsize=(6.5, 0.45 * len(names) + 1.2))
    for shift, (column, colour) in zip(
        (0.2, 0.0, -0.2), (("inductive", GREY), ("transductive", BLUE), ("SVM", RED)), strict=True
    ):
        lines = summary[summary["column"] == column].set_index("row").loc[names]
        place = -np.arange(len(names)) + shift
        ax.errorbar(
            lines["mean"],
            place,
            xerr=lines["sd"],
            fmt="o",
            color=colour,
            markersize=4,
            label=column,
        )
        if lines["paper"].notna().any():
            ax.plot(
                lines["paper"], place, "x", color=colour, markersize=6, label=f"{column}, paper"
            )
    ax.set_yticks(-np.arange(len(names)), names)
    ax.set(xlabel="test error, % (bars: standard deviation over splits)", xlim=(0, None))
    figure.legend(*ax.get_legend_handles_labels(), loc="upper center", ncols=5, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    study.draw("table1", figure)


if __name__ == "__main__":
    parts = {p.__name__: p for p in (figure1a, figure1b, figure1c, figure1d, table1)}
    names = (
        "boston",
        "kin-32fh",
        "usps",
        "banana",
        "diabetis",
        "titanic",
        "breast-cancer",
        "heart",
        "thyroid",
    )
    main("chapelle1999", __doc__, parts, names)
