"""The alarm "labels were gathered by class" comes in at most 1 % of tables that were labelled at random."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from transduce import fill

N_TABLES = 120


def zipf(rng, n):
    """Forty classes, few of them frequent, hardly told apart."""
    shares = 1.0 / np.arange(1, 41)
    codes = rng.choice(40, n, p=shares / shares.sum())
    return codes, codes + 4.0 * rng.normal(size=n)


def two(rng, n):
    codes = rng.integers(0, 2, n)
    return codes, 1.5 * codes + rng.normal(size=n)


def three(rng, n):
    codes = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return codes, 1.5 * codes + rng.normal(size=n)


def rare(rng, n):
    codes = (rng.random(n) < 0.06).astype(int)
    return codes, 2.0 * codes + rng.normal(size=n)


def notes_on_classes(family, n_labels, rng, method="ridge"):
    """Return whether a table that was labelled at random has the note; None if it cannot be filled."""
    n = n_labels + 200
    codes, told = family(rng, n)
    frame = pd.DataFrame({"a": told, "b": rng.normal(size=n), "c": rng.normal(size=n)})
    labelled = np.isin(np.arange(n), rng.choice(n, n_labels, replace=False))
    names = np.array([f"c{code}" for code in codes], dtype=object)
    frame["y"] = np.where(labelled, names, None)
    with warnings.catch_warnings(action="ignore"):
        try:
            result = fill(frame, "y", method=method, task="classification")
        except ValueError:  # all labels are of one class
            return None
    return any("gathered by class" in note for note in result.notes)


@pytest.mark.parametrize("n_labels", [40, 120])
@pytest.mark.parametrize("family", [zipf, two, three, rare], ids=lambda family: family.__name__)
def test_false_alarms_are_rare(family, n_labels):
    rng = np.random.default_rng(n_labels)
    found = [notes_on_classes(family, n_labels, rng) for _ in range(N_TABLES)]
    found = [one for one in found if one is not None]
    # So many alarms, or more, have a probability above 1 in 1,000 if each comes with probability 1 %.
    assert binom.sf(sum(found) - 1, len(found), 0.01) > 1e-3, sum(found)


def test_labels_gathered_by_class_are_noticed():
    rng, found = np.random.default_rng(0), 0
    for _ in range(20):
        codes = np.append(np.arange(120) % 2, (rng.random(300) < 0.1).astype(int))
        frame = pd.DataFrame(rng.normal(size=(420, 3)), columns=["a", "b", "c"])
        frame["a"] += 2.0 * codes
        names = np.array(["no", "yes"], dtype=object)[codes]
        frame["y"] = np.where(np.arange(420) < 120, names, None)
        with warnings.catch_warnings(action="ignore"):
            notes = fill(frame, "y", method="ridge").notes
        found += any("gathered by class" in note for note in notes)
    assert found >= 14
