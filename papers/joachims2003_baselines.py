"""What Joachims (2003) compares with: a transductive SVM, co-training after Blum and Mitchell, and the minimum cut."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from joachims2003_tasks import (
    SETS,
    SVM,
    WEBKB,
    make_graph,
    percent,
    spectrum,
    table,
    tasks,
    transduce,
)
from paper_data import load_dataset
from scipy.optimize import minimize
from sklearn.naive_bayes import MultinomialNB

from transduce.methods.spectral_graph import average_cut, cut_value, minimum_cut, neighbor_graph

STEPS = 4.0 ** np.arange(-5, 1)  # of the unlabelled rows' weight, as shares of C
STEEPNESS = 3.0  # of the loss of an unlabelled row, exp(-3 f^2)
LEAST_PAGES = 20
SMOOTHINGS = (1.0, 0.1, 0.01)  # of naive Bayes
FEW_NEIGHBORS = 10  # of the graphs that are cut


# ---------------------------------------------------------------------------------------------- transductive SVM


class TransductiveSVM:
    """A linear transductive SVM by continuation over the weight of the unlabelled rows (Chapelle and Zien 2005).

    It minimises ``w'w / 2 + C sum_l max(0, 1 - y f)^2 + C* sum_u exp(-3 f^2)``, with C* growing from C / 1024 to C.
    Rows are centred at the mean of the unlabelled ones and the constant is the labels' mean, so that the predicted
    balance of the classes is that of the labels, as the paper's TSVM has it.
    """

    def __init__(self, C: float) -> None:
        self.C = C

    def scores(self, X, rows, signs, unlabelled):
        """Return the scores of all rows X (n, d) at each step, from labels -1 and 1 at some rows."""
        centre = np.asarray(X[unlabelled].mean(axis=0)).ravel()
        constant = float(np.mean(signs))
        X_l = X[rows]
        X_u = X[unlabelled]
        w = np.zeros(X.shape[1])

        def values(part, w):
            return part @ w - centre @ w + constant

        def gradient(part, slopes):
            return part.T @ slopes - slopes.sum() * centre

        def objective(w, weight):
            gaps = np.maximum(1.0 - signs * values(X_l, w), 0.0)
            f_u = values(X_u, w)
            hats = np.exp(-STEEPNESS * f_u**2)
            total = 0.5 * w @ w + self.C * np.sum(gaps**2) + weight * np.sum(hats)
            slope = w + gradient(X_l, -2.0 * self.C * signs * gaps)
            return total, slope + gradient(X_u, -2.0 * STEEPNESS * weight * f_u * hats)

        scores = {}
        for share in STEPS:
            arguments = (self.C * share,)
            w = minimize(objective, w, arguments, "L-BFGS-B", True, options={"maxiter": 60}).x
            scores[f"TSVM {self.C:g},{self.C * share:.2g}"] = values(X, w)
        return scores


def transductive_svm(X, truth, rows, unlabelled):
    """Return the scores by several C and C*: where the continuation stops is a setting too."""
    signs = np.where(truth[rows], 1.0, -1.0)
    scores = {}
    for c in SVM:
        scores |= TransductiveSVM(c).scores(X, rows, signs, unlabelled)
    return scores


# ----------------------------------------------------------------------------- co-training, after Blum and Mitchell


def co_train(views, truth, rows, seed, smoothing, *, rounds=30, pool=75, more=(1, 3)):
    """Return log-odds at all rows by two naive Bayes classifiers that label rows for each other.

    In each round either classifier labels the rows of a random pool that it is surest of, one positive and three
    negative ones: their share is fixed beforehand. The answer is the product of what both say.
    """
    random = np.random.default_rng(seed)
    known = dict(zip(rows.tolist(), truth[rows].tolist(), strict=True))
    left = random.permutation(np.setdiff1d(np.arange(len(truth)), rows)).tolist()
    drawn = [left.pop() for _ in range(min(pool, len(left)))]
    for _ in range(rounds):
        for model, X in zip(fit_views(views, known, smoothing), views, strict=True):
            for sign, count in zip((1.0, -1.0), more, strict=True):
                for _ in range(min(count, len(drawn))):
                    surest = int(np.argmax(sign * log_odds(model, X[drawn])))
                    known[drawn.pop(surest)] = sign > 0.0
        while left and len(drawn) < pool:
            drawn.append(left.pop())
    models = fit_views(views, known, smoothing)
    return sum(log_odds(model, X) for model, X in zip(models, views, strict=True))


def log_odds(model, X):
    """Return the logarithm of the odds of a positive, which does not end at 1 as probabilities do."""
    words = model.feature_log_prob_[1] - model.feature_log_prob_[0]
    return X @ words + model.class_log_prior_[1] - model.class_log_prior_[0]


def fit_views(views, known, smoothing):
    """Return one classifier for each view."""
    at = np.array(list(known))
    labels = np.array(list(known.values())).astype(int)
    return [MultinomialNB(alpha=smoothing).fit(X[at], labels) for X in views]


def frequent_words(X):
    """Return the counts of words that are on twenty pages or more: with all of them naive Bayes learns little."""
    X = X.tocsr()
    n_pages = np.asarray((X > 0).sum(axis=0)).ravel()
    return X[:, n_pages >= LEAST_PAGES]


# -------------------------------------------------------------------------------------------------------- cells


def compare_tsvm(folder, data, sample):
    """Return a line for each task: break-even points of the transducer and of the TSVM with each C."""
    X = table(data)[0]
    found = spectrum(folder, data, SETS[data.split(",")[0]].k)
    lines = []
    for name, truth, rows, y, unlabelled in tasks(data, SETS[data.split(",")[0]].labels, sample):
        scores = {"transducer": transduce(found, y).scores_}
        scores |= transductive_svm(X, truth, rows, unlabelled)
        line = {method: percent(truth, score, unlabelled) for method, score in scores.items()}
        lines.append({"task": name, **line})
    return lines


def compare_webkb(folder, sample):
    """Return break-even points and error rates of all methods on page, links and both, in per cent."""
    counts = [frequent_words(load_dataset(name).X) for name in ("webkb-pages", "webkb-links")]
    lines = []
    for view, data in (("page", "webkb-pages"), ("links", "webkb-links"), ("both", "co-training")):
        rows_of_view = "rows concatenated" if view == "both" else data
        X = table(rows_of_view)[0]
        found = spectrum(folder, data, WEBKB.k)
        for _, truth, rows, y, unlabelled in tasks(data, WEBKB.labels, sample):
            model = transduce(found, y)
            scores = {"transducer": model.scores_ - model.thresholds_}
            scores |= transductive_svm(X, truth, rows, unlabelled)
            if view == "both":
                for smoothing in SMOOTHINGS:
                    name = f"Blum-Mitchell {smoothing:g}"
                    scores[name] = co_train(counts, truth, rows, sample, smoothing)
            for method, score in scores.items():
                score = np.nan_to_num(score, nan=-np.inf)
                errors = (score[unlabelled] > 0.0) != truth[unlabelled]
                prbep = percent(truth, score, unlabelled)
                lines.append(
                    {"view": view, "method": method, "prbep": prbep, "error": 100 * errors.mean()}
                )
    return lines


def cut_least(data, sample):
    """Return for each task how the minimum cut of the graph of ten neighbours divides the rows."""
    graph = graph_of(data)
    lines = []
    for name, truth, rows, y, unlabelled in tasks(data, SETS[data.split(",")[0]].labels, sample):
        cut = minimum_cut(graph, y)
        labels = cut.labels.astype(bool)
        n_found = int(labels[unlabelled].sum())
        smaller = min(n_found, int(unlabelled.sum()) - n_found)
        lines.append(
            {
                "task": name,
                "corner": 100.0 * (smaller <= len(rows)),
                "found": 100 * labels[unlabelled].mean(),
                "true": 100 * truth[unlabelled].mean(),
                "cut_over_truth": 100 * cut.value / cut_value(graph, truth),
                "average_over_truth": 100 * average_cut(graph, labels) / average_cut(graph, truth),
            }
        )
    return lines


def graph_of(data):
    """Return the graph of ten neighbours: a sparse one, which suits the minimum cut."""
    if data == "co-training":
        return make_graph(data, FEW_NEIGHBORS)
    X = table(data)[0]
    return neighbor_graph(
        sp.csr_array(X) if sp.issparse(X) else X, n_neighbors=FEW_NEIGHBORS, random_state=0
    )
