"""Small tables to label, and what is prepared of them once."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.prepared import prepare
from transduce.app.labelling.table import read_label_table


@cache
def clusters(n=60, n_hits=15, seed=0):
    """Two clouds: n_hits rows of class yes, the others no; and a column of words."""
    rng = np.random.default_rng(seed)
    hit = np.zeros(n, dtype=bool)
    hit[rng.permutation(n)[:n_hits]] = True
    X = rng.normal(size=(n, 3)) + 4.0 * hit[:, None]
    frame = pd.DataFrame(X.round(4), columns=["height", "weight", "age"])
    frame.insert(0, "title", [f"{'apple' if h else 'stone'} number {i}" for i, h in enumerate(hit)])
    return frame, np.where(hit, "yes", "no")


@cache
def prepared(n=60, n_hits=15, seed=0):
    frame, _ = clusters(n, n_hits, seed)
    return prepare(read_label_table(frame, "relevant"))


def new_session(n=60, n_hits=15, seed=0, *, journal=None, **options):
    """A session on a frame of two clouds, kept in memory unless a journal is named."""
    frame, truth = clusters(n, n_hits, seed)
    settings = SessionSettings(**{"seed": 1, "prepared": prepared(n, n_hits, seed), **options})
    return Session(
        frame, "relevant", classes=["yes", "no"], journal=journal, settings=settings
    ), truth


def numbers(n=60, seed=0):
    """A table whose target is a number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(4)
    return pd.DataFrame(X, columns=list("abc")), 3.0 * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=n)
