"""What a label would teach and which rows are likeliest, against slow definitions; maps and tables."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import brute
from tests.app.labelling.tables import prepared
from transduce.app.labelling.answering import ClassAnswers
from transduce.app.labelling.graph_features import GraphFeatures
from transduce.app.labelling.prepared import Prepared
from transduce.app.labelling.proposals import GRAPH_WEIGHT, NOISE, RIDGE, ClassRanking, Teaching
from transduce.app.labelling.row_map import draw_map
from transduce.app.labelling.sentences import rounded_down
from transduce.app.labelling.table import read_label_table
from transduce.methods.spectral_graph import SpectralGraphTransducer, graph_spectrum, neighbor_graph


def spread(parts=(30,), seed=0):
    """A graph with one component for each part."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(size, 3)) + 100.0 * part for part, size in enumerate(parts)])
    return neighbor_graph(X, n_neighbors=min(5, min(parts) - 1), metric="euclidean")


def graph(parts=(30,), seed=0):
    """The features of such a graph, also as one block matrix."""
    spectrum = graph_spectrum(spread(parts, seed), n_components=12)
    features = GraphFeatures(spectrum)
    width, n = spectrum.vectors.shape[1] + 1, sum(parts)
    blocks = np.zeros((n, spectrum.count * width))
    for row, values in enumerate(features.at_rows(np.arange(n))):
        start = int(features.component[row]) * width
        blocks[row, start : start + width] = values
    return features, blocks, np.tile(features.prior, spectrum.count)


# ------------------------------------------------------------------------------------------------- exact


@settings(max_examples=30)
@given(
    st.lists(st.sets(st.integers(0, 29), max_size=8), min_size=1, max_size=4),
    st.sampled_from([(30,), (12, 18)]),
)
def test_teaching_is_the_fall_of_the_variance(steps, parts):
    """After labels came and went, by rank-one updates: the textbook's posterior."""
    features, blocks, prior = graph(parts)
    teaching = Teaching(features)
    for labelled in steps:
        teaching.update(labelled)
        expected = np.diag(brute.posterior_covariance(blocks, prior, labelled, NOISE))
        np.testing.assert_allclose(teaching.variance, expected, atol=1e-8)
        np.testing.assert_allclose(
            teaching.gains(), brute.teaching(blocks, prior, labelled, NOISE), atol=1e-8
        )


@pytest.mark.parametrize("parts", [(30,), (12, 18)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("given", [True, False])
def test_answers_are_those_of_relabel(parts, n_classes, given):
    spectrum = graph_spectrum(spread(parts), n_components=80)
    rng = np.random.default_rng(5)
    rows = rng.permutation(parts[0])[:9]  # with two parts, one has no label
    codes = np.arange(9) % n_classes
    shares = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum() if given else None
    y = np.full(sum(parts), np.nan)
    y[rows] = codes
    prior = None if shares is None else {float(c): float(share) for c, share in enumerate(shares)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SpectralGraphTransducer(metric="precomputed", class_prior=prior).fit(spectrum, y)
    record = Prepared(np.empty((30, 0)), np.empty((30, 0)), spectrum, GraphFeatures(spectrum), None)
    found = ClassAnswers(record).answer(
        dict(zip(rows.tolist(), codes.tolist(), strict=True)), shares
    )
    np.testing.assert_array_equal(
        np.where(found.values < 0, np.nan, found.values), model.transduction_
    )
    scores = model.answer_.scores
    ranked = np.sort(scores if scores.ndim == 2 else np.column_stack([-scores, scores]), axis=1)
    expected = ranked[:, -1] - ranked[:, -2]
    np.testing.assert_allclose(found.certain[model.answer_.rows], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parts", [(30,), (12, 18)])
@pytest.mark.parametrize(("hits", "others"), [([1, 5], [7, 20, 21, 22]), ([3], []), ([], [4, 5])])
def test_ranking_is_the_sum_of_two_kernel_ridges(hits, others, parts):
    features, blocks, prior = graph(parts)
    unit = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rows = [*hits, *others]
    plain = 1.0 + unit @ unit.T
    tied = plain + GRAPH_WEIGHT**2 * blocks @ np.diag(prior) @ blocks.T
    y = np.array([1.0] * len(hits) + [-1.0] * len(others))
    w = np.array([len(rows) / 2 / max(len(part), 1) for part in (hits, others) for _ in part])
    expected = np.zeros(30)
    for K in (plain, tied):
        expected += (K - 1.0)[:, rows] @ np.linalg.solve(
            K[np.ix_(rows, rows)] + RIDGE * np.diag(1.0 / w), y
        )
    ranking = ClassRanking(unit, features)
    for _ in range(2):  # the second time from the first answer
        np.testing.assert_allclose(ranking.scores(hits, others), expected, atol=2e-3)


# ------------------------------------------------------------------------------------------------- laws


def test_gains_fall_with_every_label():
    features, _, _ = graph()
    teaching, before, labelled = Teaching(features), np.inf, set()
    for row in (3, 8, 20, 25):
        labelled.add(row)
        teaching.update(labelled)
        assert teaching.gains().sum() < before
        before = teaching.gains().sum()


def test_map_is_the_same_for_the_same_seed_and_in_the_square():
    places = draw_map(prepared().spectrum, seed=3).places
    np.testing.assert_array_equal(places, draw_map(prepared().spectrum, seed=3).places)
    assert places.shape == (60, 2)
    assert places.min() >= 0.0
    assert places.max() <= 1.0


def test_rows_alike_are_near_each_other_on_the_map():
    from tests.app.labelling.tables import clusters

    places, truth = prepared(200, 80).map.places, clusters(200, 80)[1]
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(200) * 9
    nearest = distances.argmin(axis=1)
    assert np.mean(truth[nearest] == truth) > 0.9


def test_one_component_lies_along_its_leading_eigenvectors():
    """Each coordinate rises with its eigenvector, as the report's map shows it."""
    spectrum = graph_spectrum(spread((40,)), n_components=12)
    points = spectrum.vectors[:, :2] / np.sqrt(spectrum.degrees)[:, None]
    places = draw_map(spectrum).places
    for axis in (0, 1):
        order = np.argsort(points[:, axis], kind="stable")
        assert np.all(np.diff(places[order, axis]) >= 0.0)
        assert len(np.unique(places[:, axis])) >= 38


def test_components_lie_side_by_side_as_wide_as_they_have_rows():
    spectrum = graph_spectrum(spread((12, 30, 18)), n_components=12)
    across = draw_map(spectrum).places[:, 0]
    largest, middle, smallest = across[12:42], across[42:], across[:12]
    assert 0.0 <= largest.min() < largest.max() <= 0.5
    assert 0.5 <= middle.min() < middle.max() <= 0.8
    assert 0.8 <= smallest.min() < smallest.max() <= 1.0


def test_rows_that_nothing_ties_lie_apart():
    places = draw_map(graph_spectrum(np.zeros((3, 3)))).places
    assert len(np.unique(places[:, 0])) == 3


def test_rows_off_the_map_have_a_place(monkeypatch):
    monkeypatch.setattr("transduce.app.labelling.row_map.MOST_ON_MAP", 40)
    found = draw_map(prepared(200, 80).spectrum)
    assert len(found.rows) == 40
    assert found.place(int(found.rows[7])) == tuple(found.places[7])
    assert all(0.0 <= value <= 1.0 for value in found.place(3))


@given(st.floats(0, 1))
def test_percent_never_flatters(share):
    assert float(rounded_down(share).removesuffix(" %")) <= 100 * share + 1e-6


# ------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("n", [2, 3, 5])
def test_tiny_tables_have_a_map(n):
    spectrum = graph_spectrum(
        neighbor_graph(np.arange(float(n))[:, None] + 1.0, n_neighbors=1, metric="euclidean")
    )
    assert draw_map(spectrum).places.shape == (n, 2)


def test_cells_are_shown_as_people_write_them():
    frame = pd.DataFrame(
        {
            "year": [1999],
            "people": [1234567],
            "rate": [0.123456789],
            "big": [12345.5],
            "none": [None],
            "flag": [True],
            "photo": ["a/b.PNG"],
            "text": ["<b>bold</b>"],
        }
    )
    cells = {cell.name: (cell.kind, cell.text) for cell in read_label_table(frame, "y").cells(0)}
    assert cells == {
        "year": ("number", "1999"),
        "people": ("number", "1,234,567"),
        "rate": ("number", "0.123457"),
        "big": ("number", "12,345.5"),
        "none": ("missing", ""),
        "flag": ("text", "True"),
        "photo": ("image", "a/b.PNG"),
        "text": ("text", "<b>bold</b>"),
    }


def test_images_are_confined_to_the_folder_of_the_table(tmp_path):
    folder = tmp_path / "data"
    (folder / "in").mkdir(parents=True)
    for file in (folder / "in" / "a.png", tmp_path / "secret.png", folder / "notes.txt"):
        file.write_bytes(b"x")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    paths = [
        "in/a.png",
        "../secret.png",
        "link.png",
        str(tmp_path / "secret.png"),
        "notes.txt",
        "none.png",
        "x" * 5000 + ".png",
        "in",
    ]
    pd.DataFrame({"image": paths, "size": range(len(paths))}).to_csv(folder / "t.csv", index=False)
    table = read_label_table(folder / "t.csv", "y", ["image"])
    found = [table.image(row, 0) for row in range(len(paths))]
    assert found == [(folder / "in" / "a.png").resolve(), *[None] * (len(paths) - 1)]
    assert table.image(-1, 0) is table.image(0, 1) is table.image(99, 0) is None
