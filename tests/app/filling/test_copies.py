"""Copies of rows that are labelled together: each row counts once, with its copies."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling.copies import Copies
from transduce.app.filling.forecast import forecast_guarantee
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource


def people(seed, n_rows=80, n_labels=34):
    """A table in which nothing tells the class, and random labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    truth = rng.choice(["no", "yes"], n_rows).astype(object)
    labelled = rng.permutation(n_rows) < n_labels
    return frame.assign(y=np.where(labelled, truth, None)), truth


def said_of(result):
    return " ".join(map(str, result.notes))


@pytest.mark.parametrize("codes", [[0, 0, 1, 1, 2, 2, 3, 4], [0, 0, 0, 1, 1, 2, 3, 4], [*range(8)]])
@pytest.mark.parametrize("n_labels", [2, 4, 7])
def test_the_chance_is_a_bound_for_every_table(codes, n_labels):
    """Of all ways to label so many rows, at most a share p has a chance of p or less."""
    chances = []
    for rows in itertools.combinations(range(8), n_labels):
        labelled = np.isin(np.arange(8), rows)
        chances.append(Copies(np.array(codes), labelled).chance)
    for chance in np.unique(chances):
        assert np.mean(np.array(chances) <= chance + 1e-12) <= chance + 1e-12


def test_labels_that_were_entered_several_times_do_not_seem_to_be_known():
    """Nothing tells the class; copies of labelled rows made nearly all predictions seem right."""
    frame, _ = people(0)
    again = pd.concat([frame, *[frame[frame["y"].notna()]] * 3], ignore_index=True)
    result = fill(again, "y", method="ridge")
    assert "136 labelled rows are copies of other labelled rows" in said_of(result)
    assert result.guarantee.n_groups > 0
    quality = result.summary()["quality"]
    assert quality["accuracy"] < 0.75
    hidden = result.out_of_fold
    assert np.mean(hidden["true"] == hidden["answered"]) < 0.75
    forecast = forecast_guarantee(
        FrameSource.read(again, "y", Options.read({})), Options.read({"method": "ridge"})
    )
    assert forecast.guarantee.n_groups == result.guarantee.n_groups


def test_who_said_how_labels_came_about_is_told_what_to_do():
    frame, _ = people(1)
    again = pd.concat([frame, frame[frame["y"].notna()]], ignore_index=True)
    result = fill(again, "y", method="ridge", guarantee="row")
    assert "does not allow for that: keep one of each" in said_of(result)
    assert result.guarantee.n_groups == 0


@pytest.mark.parametrize("seed", range(4))
def test_copies_that_chance_labelled_are_none(seed):
    """Few values, so that most rows have copies, and labels at random."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, size=(90, 3)), columns=list("abc"))
    truth = np.where(frame["a"] > frame["b"], "yes", "no").astype(object)
    labelled = rng.permutation(90) < 50
    result = fill(frame.assign(y=np.where(labelled, truth, None)), "y", method="ridge")
    assert "copies of other labelled rows" not in said_of(result)
    assert result.guarantee.n_groups == 0
