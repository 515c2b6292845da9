"""Regions and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import regions_pieces
from transduce import Answer, Guarantee, Regions, RidgeConfidenceMachine

PROMISE = Guarantee("exact", about="interval", confidence=0.9)


@given(regions_pieces())
def test_regions_hold_what_was_put_in(rows):
    regions = Regions.from_pieces(rows)
    assert len(regions) == len(rows)
    assert list(regions.n_pieces) == [len(row) for row in rows]
    for row, pieces in zip(regions, rows, strict=True):
        np.testing.assert_array_equal(row, np.array(pieces).reshape(-1, 2))
    assert Regions(*regions.to_arrays()) == regions
    assert Regions.concatenate([regions[:2], regions[2:]]) == regions


@given(regions_pieces(), st.integers(-21, 21).map(float))
def test_contains_hull_and_measure_follow_their_definitions(rows, label):
    regions = Regions.from_pieces(rows)
    expected = [any(a <= label <= b for a, b in row) for row in rows]
    assert list(regions.contains(label)) == expected
    assert list(regions.contains([label] * len(rows))) == expected
    for hull, measure, row in zip(regions.hull(), regions.measure(), rows, strict=True):
        assert measure == sum(b - a for a, b in row)
        if row:
            np.testing.assert_array_equal(hull, [row[0][0], row[-1][1]])
        else:
            assert np.isnan(hull).all()


def test_indexing():
    regions = Regions.from_intervals([[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(regions[-1], [[4, 5]])
    assert regions[[True, False, True]] == Regions.from_intervals([[0, 1], [4, 5]])
    assert regions[np.array([2, 0])] == Regions.from_intervals([[4, 5], [0, 1]])
    with pytest.raises(IndexError):
        regions[3]
    assert regions != "regions"
    regions[0][0, 0] = 99.0
    assert regions[0][0, 0] == 0.0


def test_repr_reads_like_mathematics():
    text = repr(Regions.from_pieces([[(0, 1), (2, np.inf)], [], [(3, 3)], [(-np.inf, np.inf)]]))
    assert text.splitlines() == [
        "Regions of 4 rows:",
        "  0: [0, 1] ∪ [2, ∞)",
        "  1: ∅",
        "  2: {3}",
        "  3: (-∞, ∞)",
    ]
    assert "… and 94 more" in repr(Regions.from_intervals(np.zeros((100, 2))))
    assert repr(Regions.from_intervals([[0, 1]])).startswith("Regions of 1 row:")


def test_missing_label_is_in_no_region():
    line = Regions.from_intervals([[-np.inf, np.inf]])
    assert not line.contains([np.nan]).any()
    assert line.contains(1e300).all()


@pytest.mark.parametrize(
    ("pieces", "offsets", "message"),
    [
        ([(0, 1)], [], "start at 0"),
        ([(0, 1)], [[0, 1]], "start at 0"),
        ([[1, 0]], [0, 1], "not above its upper end"),
        ([[0, np.nan]], [0, 1], "not above its upper end"),
        ([[0, 1], [1, 2]], [0, 2], "disjoint"),
        ([[3, 4], [1, 2]], [0, 2], "ascending"),
        ([[0, 1]], [0, 2], "end at the number of pieces"),
        ([[0, 1]], [0, 2, 1], "must not decrease"),
    ],
)
def test_malformed_regions_are_refused(pieces, offsets, message):
    with pytest.raises(ValueError, match=message):
        Regions(pieces, offsets)


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(ValueError, match="one for each of the 2 rows"):
        Regions.from_intervals([[0, 1], [2, 3]]).contains([1, 2, 3])


def test_answers_read_well():
    empty = Answer(np.arange(0), np.arange(0), np.array([], dtype=str), PROMISE)
    assert "no row is unlabelled" in repr(empty)
    answer = Answer(
        np.array([1, 4]),
        np.array(["a", "b"]),
        np.array(["answered", "tied"]),
        PROMISE,
        label_sets=np.array([[True, False], [True, True]]),
        confidence=np.array([0.9, 0.8]),
        credibility=np.array([0.5, 0.4]),
        classes=np.array(["a", "b"]),
    )
    assert repr(answer) == f"Answer at 2 rows (1 answered, 1 tied)\n{PROMISE}"
    frame = answer.to_frame()
    assert list(frame.columns) == ["value", "set", "confidence", "credibility", "status"]
    assert frame.loc[4, "set"] == ("a", "b")


def test_regions_are_cut_to_what_is_possible():
    cut = Regions.from_intervals([[-2, 3], [5, 9]]).within(0, 4)
    assert cut.hull().tolist() == [[0.0, 3.0], [4.0, 4.0]]


def test_the_nearest_piece_reaches_out_to_a_value():
    regions = Regions.from_pieces([[(0, 1)], [(0, 1), (4, 5)], []]).holding([2, 3, 7])
    assert regions == Regions.from_pieces([[(0, 2)], [(0, 1), (3, 5)], [(7, 7)]])


def number_answer(values, intervals):
    status = np.full(len(values), "answered")
    regions = Regions.from_intervals(intervals)
    return Answer(
        np.arange(len(values)), np.array(values), status, Guarantee("none"), regions=regions
    )


def test_answers_are_cut_and_opened():
    """What is possible cuts values and regions; a limit opens regions, and the status says so."""
    cut = number_answer([-0.5], [[-2, 3]]).within(0, np.inf).to_frame()
    assert cut[["value", "lower", "upper"]].values.tolist() == [[0.0, 0.0, 3.0]]
    opened = number_answer([0.2, 2.0], [[0, 1], [1, 3]]).opened(0.5, np.inf).to_frame()
    columns = opened[["value", "lower", "upper", "status"]].values.tolist()
    assert columns == [[0.5, -np.inf, 1.0, "below"], [2.0, 1.0, 3.0, "answered"]]


def test_sets_say_whether_a_class_that_no_label_shows_is_in_them():
    sets, unseen = np.array([[True, False], [True, True]]), np.array([False, True])
    known = {"label_sets": sets, "unseen": unseen, "classes": np.array(["a", "b"])}
    answer = Answer(
        np.arange(2), np.array(["a", "a"]), np.full(2, "answered"), Guarantee("none"), **known
    )
    assert [answer.contains([label] * 2).tolist() for label in ("b", "c")] == [
        [False, True],
        [False, True],
    ]


def test_the_least_confident_are_rejected():
    sure = {"confidence": np.array([0.9, 0.2, 0.5])}
    answer = Answer(
        np.arange(3), np.array(list("aba")), np.full(3, "answered"), Guarantee("none"), **sure
    )
    for rejected in (answer.reject(share=0.4), answer.reject(below=0.5)):
        assert rejected.status.tolist() == ["answered", "rejected", "answered"]
        assert rejected.values.tolist() == list("aba")


def test_a_notebook_shows_the_answer_as_a_table_below_its_guarantee():
    X = np.arange(30.0)[:, None]
    y = np.where(np.arange(30) % 3 > 0, X[:, 0], np.nan)
    page = RidgeConfidenceMachine(confidence=0.8).fit(X, y).answer_._repr_html_()
    assert "Answer at 10 rows (10 answered)" in page
    assert "at least 80 %" in page
    assert page.count("<tr") == 11
