"""The spectral graph transducer on real data: against the peers with ten labels a class, and the paper's settings.

    TRANSDUCE_DATA=folder python benchmarks/spectral_graph_accuracy.py [--draws 20] [--out FOLDER]

1. *Peers*: accuracy with ten labels a class over many draws of the labels, paired: scikit-learn's LabelSpreading and
   LabelPropagation (kernel="knn", ten neighbours, raw features), Laplace and Poisson learning of GraphLearning on our
   graph; bundled digits and, if the folder is given, optdigits, USPS and Isolet. A difference is "clear" if a Wilcoxon
   signed-rank test over the draws says so at 0.01.
2. *Settings*: accuracy with ten labels a class, mean of the first draws, for several label weights and numbers of
   eigenvectors; and what `choose_n_neighbors` says of five candidates, averaged over ten samples of one label a class,
   beside the break-even point.
3. *Paper* (needs the folder): macro-averaged break-even point of precision and recall on optdigits with ten labels, kNN
   with its best k beside it; WebKB course pages with 12 labels: pages, links, both concatenated, co-training.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import wilcoxon
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from spectral_graph import PEERS, answer, few_labels

from transduce import (
    SpectralGraphTransducer,
    choose_n_neighbors,
    graph_spectrum,
    neighbor_graph,
    precision_recall_break_even,
)


def tables(folder):
    yield "digits", *load_digits(return_X_y=True)
    if folder is None:
        return
    frame = pd.read_csv(folder / "optdigits.csv")
    yield "optdigits", frame.drop(columns="label").to_numpy(float), frame["label"].to_numpy()
    usps = pd.concat([pd.read_csv(folder / f"usps_{part}.csv.gz") for part in ("train", "test")])
    label = "label" if "label" in usps else usps.columns[0]
    yield "USPS", usps.drop(columns=label).to_numpy(float), usps[label].to_numpy()
    isolet = pd.read_csv(folder / "isolet.csv.gz")
    label = "label" if "label" in isolet else isolet.columns[-1]
    yield "Isolet", isolet.drop(columns=label).to_numpy(float), pd.factorize(isolet[label], sort=True)[0]


def compare_peers(folder, n_draws):
    lines = []
    for name, X, truth in tables(folder):
        truth = np.unique(truth, return_inverse=True)[1]
        graph = neighbor_graph(X, random_state=0)
        model, shares = None, {method: [] for method in ("transduce", *PEERS)}
        for draw in range(n_draws):
            y = few_labels(truth, np.random.default_rng(draw))
            asked = np.isnan(y)
            for method, list_ in shares.items():
                if method == "transduce":
                    fresh = SpectralGraphTransducer(metric="precomputed", random_state=0)
                    model = fresh.fit(graph, y) if model is None else model.relabel(y)
                    answers = model.transduction_
                else:
                    answers = answer(method, X, y, graph)
                list_.append(np.mean(answers[asked] == truth[asked]))
        ours = np.array(shares["transduce"])
        for method, list_ in shares.items():
            gain = ours - np.array(list_)
            p = wilcoxon(gain).pvalue if np.any(gain) else 1.0
            verdict = "" if method == "transduce" else "no clear difference"
            if p < 0.01:
                verdict = "ours better" if np.median(gain) > 0 else "ours worse"
            lines.append(
                {
                    "data": name,
                    "method": method,
                    "accuracy %": 100 * np.mean(list_),
                    "sd": 100 * np.std(list_, ddof=1),
                    "ours less this": 100 * gain.mean(),
                    "p": p,
                    "verdict": verdict,
                }
            )
        print(pd.DataFrame(lines[-5:]).to_string(index=False, float_format=lambda x: f"{x:.3g}"), flush=True)
    return pd.DataFrame(lines)


def compare_settings(folder, n_draws):
    lines = []
    for name, X, truth in tables(folder):
        truth = np.unique(truth, return_inverse=True)[1]
        spectrum = graph_spectrum(neighbor_graph(X, random_state=0), random_state=0)
        draws = [few_labels(truth, np.random.default_rng(draw)) for draw in range(min(n_draws, 10))]
        choices = [("label_weight", c) for c in (320.0, 3200.0, "auto", 32_000.0, 320_000.0)]
        for setting, value in [*choices, *(("n_components", d) for d in (20, 40, 60, 80))]:
            model = SpectralGraphTransducer(metric="precomputed", **{setting: value})
            shares = [
                np.mean(model.fit(spectrum, y).transduction_[np.isnan(y)] == truth[np.isnan(y)])
                for y in draws
            ]
            lines.append(
                {"data": name, "setting": setting, "value": value, "accuracy %": 100 * np.mean(shares)}
            )
    table = pd.DataFrame(lines).pivot_table(
        index=["setting", "value"], columns="data", values="accuracy %", sort=False
    )
    return table.reset_index()


def compare_neighbors(folder):
    lines = []
    for name, X, truth in tables(folder):
        if name not in ("digits", "optdigits"):
            continue
        samples = [few_labels(truth, np.random.default_rng(draw), per_class=1) for draw in range(10)]
        choice = choose_n_neighbors(X, np.column_stack(samples), truth=truth, random_state=0)
        lines.append(choice.table.assign(data=name, chosen=choice.table["n_neighbors"] == choice.n_neighbors))
    return pd.concat(lines)


def knn_break_even(X, truth, rows, asked, ks=(1, 2, 3, 5, 10)):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    sims = unit[asked] @ unit[rows].T
    found = {}
    for k in ks:
        kept = np.where(sims >= np.sort(sims, axis=1)[:, [-k]], sims, 0.0)
        shares = [kept[:, truth[rows] == c].sum(axis=1) / kept.sum(axis=1) for c in np.unique(truth)]
        found[k] = macro(truth[asked], np.column_stack(shares))
    return found


def macro(truth, scores):
    pairs = zip(np.unique(truth), scores.T, strict=True)
    return float(np.mean([precision_recall_break_even(truth == c, score) for c, score in pairs]))


def reproduce_digits(folder, n_draws):
    _, X, truth = next(table for table in tables(folder) if table[0] == "optdigits")
    model, lines = SpectralGraphTransducer(random_state=0), []
    for draw in range(n_draws):
        y = few_labels(truth, np.random.default_rng(draw), per_class=1)
        model = model.fit(X, y) if draw == 0 else model.relabel(y)
        asked, rows = model.answer_.rows, np.flatnonzero(~np.isnan(y))
        near = knn_break_even(X, truth, rows, asked)
        lines.append(
            {"ours": macro(truth[asked], model.scores_[asked])} | {f"{k}-NN": v for k, v in near.items()}
        )
    table = 100 * pd.DataFrame(lines)
    return (
        pd.DataFrame({"PRBEP %": table.mean(), "sd": table.std()})
        .rename_axis("optdigits, 10 labels")
        .reset_index()
    )


def reproduce_webkb(folder, n_draws):
    page, link = (
        TfidfTransformer().fit_transform(sp.load_npz(folder / f"webkb_course_{view}_tf.npz"))
        for view in ("page", "link")
    )
    course = pd.read_csv(folder / "webkb_course_labels.csv")["label"].to_numpy() > 0
    views = {"page": page, "links": link, "concatenated": sp.hstack([page, link]).tocsr()}
    graphs = {name: neighbor_graph(rows, n_neighbors=200, random_state=0) for name, rows in views.items()}
    graphs["co-training"] = graphs["page"] + graphs["links"]
    models, lines = {}, []
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        y = np.full(len(course), np.nan)
        for part, count in ((course, 3), (~course, 9)):
            y[rng.choice(np.flatnonzero(part), count, replace=False)] = float(part is course)
        line = {}
        for name, graph in graphs.items():
            fresh = SpectralGraphTransducer(metric="precomputed", random_state=0)
            models[name] = models[name].relabel(y) if draw else fresh.fit(graph, y)
            asked = models[name].answer_.rows
            line[name] = precision_recall_break_even(course[asked], models[name].scores_[asked])
        lines.append(line)
    table = 100 * pd.DataFrame(lines)
    return (
        pd.DataFrame({"PRBEP %": table.mean(), "sd": table.std()})
        .rename_axis("WebKB, 12 labels")
        .reset_index()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20, help="draws of the labels")
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    root = os.environ.get("TRANSDUCE_DATA")
    folder = Path(root) / "classification" if root else None
    results = {"peers": compare_peers(folder, options.draws)}
    results["settings"] = compare_settings(folder, options.draws)
    results["neighbours"] = compare_neighbors(folder)
    if folder:
        results["digits"] = reproduce_digits(folder, options.draws)
        results["webkb"] = reproduce_webkb(folder, options.draws)
    for name, table in results.items():
        print(f"\n{name}\n{table.to_string(index=False, float_format=lambda x: f'{x:.3g}')}", flush=True)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out / f"spectral_graph_{name}.csv", index=False)


if __name__ == "__main__":
    main()
