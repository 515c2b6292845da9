"""The tasks of Joachims (2003): data, graphs, labelled samples, and what each method makes of them."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from paper_data import load_dataset
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from transduce import SpectralGraphTransducer
from transduce.methods.spectral_graph import Spectrum, graph_spectrum, neighbor_graph
from transduce.metrics import precision_recall_break_even


@dataclass(frozen=True)
class Setup:
    """The paper's number of neighbours and of labels; more labels for the curves."""

    k: int
    labels: int
    more: tuple[int, ...] = ()


SETS = {
    "reuters": Setup(800, 17, (40, 80, 160, 320)),
    "optdigits": Setup(10, 10, (40, 80, 160, 320)),
    "isolet": Setup(100, 20, (40, 80, 160, 320)),
    "adult": Setup(100, 10, (40, 80, 160, 320)),
    "ionosphere": Setup(100, 10, (40, 80, 160)),
}
VIEWS = {
    "page": "webkb-pages",
    "links": "webkb-links",
    "counts concatenated": "",  # then weighted by TFIDF as one text
    "rows concatenated": "",  # each view weighted and of unit length before
    "co-training": "",
}
WEBKB = Setup(200, 12)
PART_OF_ADULT = "adult, 10,000 rows"  # where many graphs are compared
KNN = (1, 2, 3, 5, 10, 20, 50)
SVM = (0.1, 1.0, 10.0, 100.0)
D_MAX = 160
OURS = "transducer, c = 3200"
AUTO = "transducer, c by rows"


# ------------------------------------------------------------------------------------- data, graphs, samples


@lru_cache(maxsize=3)
def table(data):
    """Return rows of unit length, which of them are positive in each task, and the tasks' names."""
    if data.endswith("concatenated"):
        return concatenated(data == "counts concatenated"), *table("webkb-pages")[1:]
    source = load_dataset({PART_OF_ADULT: "adult"}.get(data, data))
    X, y = source.encoded(), source.y
    if data == "reuters" or data.startswith("webkb"):
        X = TfidfTransformer().fit_transform(X)
    if data == "reuters":
        return normalize(X), y.to_numpy() > 0, list(y.columns)
    X = X.toarray() if "adult" in data else X
    kept = np.arange(len(y))
    if data == PART_OF_ADULT:
        kept = np.sort(np.random.default_rng(2003).choice(len(y), 10_000, replace=False))
    classes = np.unique(y)
    classes = classes if len(classes) > 2 else classes[1:]
    return normalize(X[kept]), y.to_numpy()[kept, None] == classes, [str(name) for name in classes]


def concatenated(counts):
    """Return page and links side by side, counts or rows of unit length."""
    views = VIEWS["page"], VIEWS["links"]
    if counts:
        return TfidfTransformer().fit_transform(
            sp.hstack([load_dataset(v).X for v in views]).tocsr()
        )
    return normalize(sp.hstack([table(v)[0] for v in views]).tocsr())


@lru_cache(maxsize=1)
def cosines(data):
    """Return the cosines of all rows, or None where they would fill too much memory."""
    X = table(data)[0]
    if X.shape[0] > 10_000:
        return None
    return (X @ X.T).toarray().astype(np.float32) if sp.issparse(X) else X.astype(np.float32) @ X.T


def similar(data, rows):
    """Return the cosines of all rows with those named, an array of shape (n, l)."""
    whole, X = cosines(data), table(data)[0]
    return X @ X[rows].T if whole is None else whole[rows].T


def make_graph(data, k):
    if data == "co-training":
        return make_graph("webkb-pages", k) + make_graph("webkb-links", k)
    return neighbor_graph(table(data)[0], n_neighbors=k, method="exact", random_state=0)


def place(folder, data, k, d):
    return folder / f"{data.replace(', ', '-').replace(' ', '-')}-{k}-{d}.npz"


@lru_cache(maxsize=2)
def spectrum(folder, data, k, d=D_MAX):
    """Return the spectrum of a set's graph, from the file of an earlier call if there is one."""
    path = place(folder, data, k, d)
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        graph = make_graph(data, k)
        middle = time.perf_counter()
        found = graph_spectrum(graph, n_components=d, random_state=0)
        seconds = {"graph": middle - begin, "spectrum": time.perf_counter() - middle}
        path.with_suffix(".json").write_text(json.dumps(seconds), encoding="utf-8")
        part = path.with_name(f"{os.getpid()}-{path.name}")
        found.save(part)
        os.replace(
            part, path
        )  # in one piece: a run may be stopped here, and others may be at the same
    return Spectrum.load(path)


def draw_rows(positive, size, sample, task):
    """Return the labelled rows of a sample, stratified, a positive at least; larger samples hold the smaller."""
    random = np.random.default_rng([2003, sample, task])
    inside, outside = (random.permutation(np.flatnonzero(part)) for part in (positive, ~positive))
    count = max(1, round(size * positive.mean()))
    return np.concatenate([inside[:count], outside[: size - count]])


def tasks(data, size, sample):
    """Yield name, truth, labelled rows, partly known labels and the mask of unlabelled rows of each task."""
    _, Y, names = table("webkb-pages" if data == "co-training" else data)
    for task, name in enumerate(names):
        rows = draw_rows(Y[:, task], size, sample, task)
        y = np.full(len(Y), np.nan)
        y[rows] = Y[rows, task]
        yield name, Y[:, task], rows, y, np.isnan(y)


# ------------------------------------------------------------------------------------- methods


def transduce(found, y, c=3200.0, d=80):
    return SpectralGraphTransducer(metric="precomputed", label_weight=c, n_components=d).fit(
        found, y
    )


def percent(truth, scores, unlabelled):
    """Return the break-even point at the unlabelled rows; rows that were not reached come last."""
    return 100 * precision_recall_break_even(
        truth[unlabelled], np.nan_to_num(scores[unlabelled], nan=-np.inf)
    )


def neighbour_shares(near, positive):
    """Return for several k the share of the positives in the similarity to the k nearest labelled rows."""
    ks = [k for k in KNN if k <= len(positive)]
    top = np.argpartition(-near, max(ks) - 1, axis=1)[:, : max(ks)]
    weight = np.maximum(np.take_along_axis(near, top, axis=1), 1e-9)
    order = np.argsort(-weight, axis=1)
    weight, inside = (
        np.take_along_axis(weight, order, axis=1),
        positive[np.take_along_axis(top, order, axis=1)],
    )
    both, ours = weight.cumsum(axis=1), (weight * inside).cumsum(axis=1)
    return {f"kNN {k}": ours[:, k - 1] / both[:, k - 1] for k in ks}


def margins(near, rows, positive):
    """Return for several C the scores of the linear SVM, from the inner products."""
    gram = near[rows].astype(float)
    found = {}
    for c in SVM:
        model = SVC(C=c, kernel="precomputed").fit(gram, positive)
        found[f"SVM {c:g}"] = near[:, model.support_] @ model.dual_coef_[0]
    return found


def compare(folder, data, size, sample):
    """Return a line for each task: ours, and the others with each of their parameters."""
    source, lines = VIEWS.get(data) or data, []
    k = WEBKB.k if data in VIEWS else SETS[data].k
    found = spectrum(folder, source, k)
    for name, truth, rows, y, unlabelled in tasks(source, size, sample):
        scores = {OURS: transduce(found, y).scores_, AUTO: transduce(found, y, "auto").scores_}
        if data != "co-training":
            near = similar(source, rows)
            scores |= neighbour_shares(near, truth[rows]) | margins(near, rows, truth[rows])
        line = {method: percent(truth, score, unlabelled) for method, score in scores.items()}
        lines.append({"task": name, **line})
    return lines


def best_of(frame, family):
    """Return the figures of a family with the parameter that is best on average, and that parameter."""
    own = frame[[name for name in frame if name.startswith(f"{family} ")]].dropna(axis=1, how="any")
    if own.empty:
        return np.full(len(frame), np.nan), ""
    means = own.groupby(frame["sample"]).mean().mean()
    return own[means.idxmax()].to_numpy(), means.idxmax().split(" ")[1]


def with_the_best(frame):
    """Return ours and the best of the others, one line for each set, size, sample and task."""
    parts = []
    for _, part in frame.groupby(["data", "size"], sort=False):
        (knn, k), (svm, c) = best_of(part, "kNN"), best_of(part, "SVM")
        kept = part[["data", "size", "sample", "task", OURS, AUTO]]
        parts.append(kept.assign(kNN=knn, SVM=svm, k=k, C=c))
    return pd.concat(parts, ignore_index=True)


def macro(frame):
    """Return the mean over tasks of each sample."""
    groups = frame.groupby(["data", "size", "sample"], sort=False)
    return groups[[OURS, AUTO, "kNN", "SVM"]].mean().reset_index()


def long(frame, keys):
    return frame.melt(keys, [OURS, AUTO, "kNN", "SVM"], "method", "percent").dropna(
        subset="percent"
    )
