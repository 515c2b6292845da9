"""Regions and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import regions_pieces
from transduce import Answer, Guarantee, Regions

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
