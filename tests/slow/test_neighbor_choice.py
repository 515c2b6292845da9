"""The number of neighbours by the normalised objective of Joachims (2003), as the paper's script has it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tests.libraries import ON_PROCESSOR, dispatch, give
from tests.methods.spectral_graph.test_classifier import blobs, labels_for
from transduce import SpectralGraphTransducer
from transduce.metrics import precision_recall_break_even

PAPERS = str(Path(__file__).parents[2] / "papers")
sys.path.insert(0, PAPERS)

from neighbor_choice import NeighborChoiceDisplay, choose_n_neighbors  # noqa: E402

sys.path.remove(PAPERS)


def test_choice_is_the_smallest_normalised_objective():
    X, truth = load_iris(return_X_y=True)
    X += 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no ties
    y = np.where(np.isin(np.arange(150), [0, 20, 60, 80, 110, 130]), truth, np.nan)
    choice = choose_n_neighbors(X, y, [20, 5, 10], metric="euclidean", truth=truth, random_state=0)
    np.testing.assert_array_equal(choice.table["n_neighbors"], [5, 10, 20])
    objectives = []
    for k in (5, 10, 20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SpectralGraphTransducer(n_neighbors=k, metric="euclidean", random_state=0).fit(
                X, y
            )
        objectives.append(model.objective_)
        row = choice.table.set_index("n_neighbors").loc[k]
        assert row["n_unreached"] == model.answer_.diagnostics["n_unreached"]
        unlabelled = model.answer_.rows
        shares = [
            precision_recall_break_even(
                truth[unlabelled] == c, np.nan_to_num(model.scores_[unlabelled, c], nan=-np.inf)
            )
            for c in range(3)
        ]
        assert row["break_even"] == pytest.approx(np.mean(shares))
    normalised = (np.array(objectives) / np.mean(objectives, axis=0)).mean(axis=1)
    np.testing.assert_allclose(choice.table["objective"], normalised)
    fewest = choice.table[choice.table["n_unreached"] == choice.table["n_unreached"].min()]
    assert choice.n_neighbors == fewest.loc[fewest["objective"].idxmin(), "n_neighbors"]
    assert f"n_neighbors={choice.n_neighbors}" in str(choice)


def test_choice_over_several_samples():
    X, y = (
        blobs(60, n_centres=1),
        np.column_stack([labels_for(60, 6, seed).astype(float) for seed in range(3)]),
    )
    table = choose_n_neighbors(X, y, (4, 8)).table
    assert table["objective"].mean() == pytest.approx(1.0)
    frame = choose_n_neighbors(X, pd.DataFrame(y), (4, 8)).table
    pd.testing.assert_frame_equal(frame, table)


@pytest.mark.parametrize(
    ("candidates", "match"),
    [
        ([], "candidates is empty"),
        ([0], "whole number from 1"),
        ([200], "too large"),
        (2.5, "whole number"),
    ],
)
def test_bad_candidates(candidates, match):
    with pytest.raises(ValueError, match=match):
        choose_n_neighbors(blobs(20), labels_for(20, 6, 0), candidates)


def test_bad_truth():
    with pytest.raises(ValueError, match="truth must hold one label"):
        choose_n_neighbors(blobs(20), labels_for(20, 6, 0), (3,), truth=[1, 2])


def test_display():
    import matplotlib.pyplot as plt

    X, y = blobs(60, n_centres=1), labels_for(60, 8, 0, names="ab")
    choice = choose_n_neighbors(X, y, (4, 8), truth=np.where(y == "a", "a", "b"))
    assert NeighborChoiceDisplay(choice).plot().ax_.get_ylabel().startswith("normalised")
    plt.close("all")
    with pytest.raises(TypeError, match="choose_n_neighbors"):
        NeighborChoiceDisplay(3)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_devices_are_refused(name):
    with dispatch(), pytest.raises(ValueError, match="computes on the processor only"):
        choose_n_neighbors(give(blobs(20), name), labels_for(20, 6, 0), [3])
