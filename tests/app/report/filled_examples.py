"""Filled tables for tests of the report, made with the real library from tables that scikit-learn brings along."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from transduce import (
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveBlend,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.app.report import FilledColumn
from transduce.app.report.filled_column import RowCounts
from transduce.app.tables.columns import Target
from transduce.app.tables.notes import About, Note

NASTY = '<script>alert("x")</script><img src=x onerror=alert(1)>'
LONG = "Ein sehr langer Name, der gar nicht aufhören will, " * 6


def _hide(frame, target, n_unlabelled, seed):
    """Return the table with the target missing at random rows."""
    frame = frame.copy()
    frame[target] = frame[target].astype(object)
    frame.loc[np.random.default_rng(seed).permutation(len(frame))[:n_unlabelled], target] = None
    return frame


def labels_of(frame, target, task):
    cells = frame[target]
    values = pd.to_numeric(cells) if task == "regression" else cells.astype(object)
    return Target(target, values.to_numpy(), cells.isna().to_numpy(), task)


def make(frame, target, model, method, *, task):
    """Return the record of a table filled by a model, the other fields filled in plausibly."""
    features = [name for name in frame.columns if name != target and frame[name].dtype.kind in "fi"]
    X = frame[features].to_numpy(float)
    y = frame[target].to_numpy(object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            X,
            np.array([np.nan if value is None else value for value in y], float)
            if task == "regression"
            else y,
        )
        half = _half(method, X, y, task)
    answer = model.answer_
    kind = [
        "target" if name == target else "number" if name in features else "text"
        for name in frame.columns
    ]
    columns = pd.DataFrame(
        {
            "name": list(frame.columns),
            "kind": kind,
            "treatment": [
                "brought to mean 0 and spread 1" if k == "number" else "left out" for k in kind
            ],
            "n_missing": [int(frame[name].isna().sum()) for name in frame.columns],
            "n_features": [1 if k == "number" else 0 for k in kind],
        }
    )
    regression = task == "regression"
    members = pd.DataFrame(
        {
            "name": ["ridge", "transductive_ridge", "gaussian_process"],
            "weight": [0.25, 0.75, np.nan],
            "score": [0.41, 0.44, np.nan] if regression else [0.91, 0.95, np.nan],
            "scorer": ["R²" if regression else "accuracy"] * 3,
            "seconds": [0.2, 1.4, np.nan],
            "note": ["", "", "4,000 labels are more than 1,000"],
        }
    )
    relevance = pd.Series(np.linspace(1, 0.1, len(features)), index=features)
    plane = PCA(2).fit_transform(StandardScaler().fit_transform(X))
    values = {
        "frame": frame,
        "labels": labels_of(frame, target, task),
        "answer": answer,
        "counts": RowCounts.count_rows(len(frame), answer),
        "row_names": range(1, len(frame) + 1),
        "again": "transduce fill table.csv --target y",
        "miscoverage": getattr(model, "miscoverage_", None),
        "exchangeability": getattr(model, "exchangeability_", None),
        "confidence": 0.9,
        "certainty": 0.95,
        "members": members,
        "out_of_fold": half,
        "columns": columns,
        "relevance": relevance,
        "map": pd.DataFrame(plane, columns=["x", "y"]),
        "options": {
            "source": "table.csv",
            "target": target,
            "method": "auto",
            "seed": 0,
            "ignore": [],
        },
        "notes": [Note(About.LABELS, "The task was guessed from the target.")],
    }
    return FilledColumn(**values)


def with_answer(filled, answer):
    """Return a filled column with another answer."""
    counts = RowCounts.count_rows(len(filled.frame), answer)
    return replace(filled, answer=answer, counts=counts)


def _half(method, X, y, task):
    """Return the truth and the answers at every other labelled row, all hidden at once."""
    hidden = np.flatnonzero(pd.notna(y))[::2]
    shown = y.copy()
    shown[hidden] = None
    fitted = method.fit(X, shown.astype(float) if task == "regression" else shown)
    at = np.searchsorted(fitted.answer_.rows, hidden)
    table = pd.DataFrame({"true": y[hidden], "answered": fitted.answer_.values[at]})
    if task == "classification":
        scores = (
            fitted.answer_.scores
            if fitted.answer_.confidence is None
            else fitted.answer_.confidence
        )
        scores = np.abs(scores[at]) if scores.ndim == 1 else np.sort(scores[at], axis=1)[:, -1]
        table["probability"] = scores
    return table


def diabetes(n_unlabelled=150, seed=0):
    data = load_diabetes(as_frame=True, scaled=False)
    table = data.frame.rename(columns={"target": "progression"})
    return _hide(table, "progression", n_unlabelled, seed)


@cache
def numbers():
    """A column of numbers, with a law."""
    model = ConformalTransducer(TransductiveRidge(), random_state=0)
    return make(diabetes(), "progression", model, TransductiveRidge(), task="regression")


@cache
def unbounded():
    """Too few labels to hide any: every interval is the whole line."""
    frame = diabetes(n_unlabelled=436)
    model = ConformalTransducer(TransductiveRidge(), random_state=0)
    return make(frame, "progression", model, TransductiveRidge(), task="regression")


@cache
def machine():
    """Regions of the confidence machine: no column law, no test of exchangeability."""
    frame = diabetes(n_unlabelled=420)
    return make(
        frame, "progression", RidgeConfidenceMachine(), RidgeConfidenceMachine(), task="regression"
    )


@cache
def blend():
    """A blend behind the guarantee."""
    model = ConformalTransducer(
        TransductiveBlend(task="regression", random_state=0), random_state=0
    )
    return make(
        diabetes(n_unlabelled=360), "progression", model, TransductiveRidge(), task="regression"
    )


@cache
def two_classes():
    """Two classes, some rows rejected."""
    data = load_breast_cancer(as_frame=True)
    table = data.data.iloc[:, [1, 4, 8, 9, 11]].assign(diagnosis=data.target_names[data.target])
    frame = _hide(table, "diagnosis", 400, 1)
    model = ConformalTransducer(
        TransductiveRidgeClassifier(), nonconformity="margin", random_state=0
    )
    filled = make(frame, "diagnosis", model, TransductiveRidgeClassifier(), task="classification")
    return with_answer(filled, filled.answer.reject(share=0.1))


@cache
def three_classes():
    """Three classes with the confidence machine: no law."""
    data = load_wine(as_frame=True)
    table = data.data.iloc[:, :6].assign(
        cultivar=np.array(["Barolo", "Grignolino", "Barbera"])[data.target]
    )
    frame = _hide(table, "cultivar", 120, 2)
    return make(
        frame,
        "cultivar",
        RidgeConfidenceClassifier(),
        RidgeConfidenceClassifier(),
        task="classification",
    )


@cache
def many_classes():
    """Thirty classes of numbers, with some rows that no label reaches."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(30), 12)
    table = pd.DataFrame(
        rng.normal(size=(360, 3)) + 6 * rng.normal(size=(30, 3))[label], columns=list("abc")
    )
    frame = _hide(table.assign(kind=label.astype(float)), "kind", 120, 3)
    model = ConformalTransducer(TransductiveRidgeClassifier(), random_state=0)
    filled = make(frame, "kind", model, TransductiveRidgeClassifier(), task="classification")
    status = filled.answer.status.copy().astype(object)
    status[:5] = "unreached"
    return with_answer(filled, replace(filled.answer, status=status))


@cache
def nothing_unlabelled():
    """A table without holes."""
    model = ConformalTransducer(TransductiveRidge(), random_state=0)
    return make(
        diabetes(n_unlabelled=0), "progression", model, TransductiveRidge(), task="regression"
    )


def spoil(filled):
    """Return the table with scripts, long names, no names and characters that no page can show all over it."""
    frame = filled.frame.copy()
    words = [NASTY, "naïve 東京 🙂", "", "a\x00b\ud800c", "$x$ \\frac", LONG, None]
    cells = pd.Series(
        [words[i % len(words)] for i in range(len(frame))], index=frame.index, dtype=object
    )
    frame.insert(0, NASTY, cells)
    frame = frame.rename(columns={filled.target: NASTY + LONG})
    extra = pd.DataFrame(
        {
            "name": [NASTY, ""],
            "kind": ["identifier", NASTY],
            "treatment": [NASTY, LONG],
            "n_missing": 0,
            "n_features": 0,
        }
    )
    columns = filled.columns.replace({"name": {filled.target: NASTY + LONG}})
    relevance = pd.Series({NASTY: 1.0, "$\\frac{": 0.9, "": 0.8, LONG: 0.7, "東京": 0.2})
    return replace(
        filled,
        frame=frame,
        labels=replace(filled.labels, name=NASTY + LONG),
        columns=pd.concat([columns, extra], ignore_index=True),
        relevance=relevance,
        again=f"transduce fill {NASTY}",
        options={
            "source": NASTY,
            NASTY: [NASTY],
            "none": None,
            "nested": {"a": np.nan, NASTY: np.inf},
        },
        notes=[Note(About.COLUMNS, NASTY)],
        members=filled.members.assign(name=[NASTY, LONG, ""], note=NASTY),
    )
