"""Reading labels, and handing them back in the user's own container."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.libraries import polars as pl
from transduce.core.sample import PartlyLabelled, label_array, missing_mask

X = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    "y",
    [
        [1.0, None, 3.0],
        [1.0, np.nan, 3.0],
        (1, pd.NA, 3),
        np.array([1.0, np.nan, 3.0]),
        np.array([1.0, None, 3.0], dtype=object),
        pd.Series([1.0, None, 3.0]),
        pd.Series([1, None, 3], dtype="Int64"),
        ["a", None, "b"],
        ["a", np.nan, "b"],
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2020-01-02"])),
    ],
)
def test_every_kind_of_missing_label_is_seen(y):
    np.testing.assert_array_equal(PartlyLabelled.from_arrays(X, y).unlabelled, [1])


def test_minus_one_is_a_label_unless_said_otherwise():
    assert not missing_mask(np.array([-1, 1, -1])).any()
    np.testing.assert_array_equal(missing_mask(np.array([-1, 1, -1]), -1), [True, False, True])
    np.testing.assert_array_equal(
        missing_mask(label_array(["?", "a", None]), "?"), [True, False, True]
    )


def test_series_come_back_as_they_were():
    index = pd.Index(["x", "y", "z"], name="key")
    numbers = PartlyLabelled.from_arrays(X, pd.Series([1.0, None, 3.0], index=index, name="price"))
    pd.testing.assert_series_equal(
        numbers.complete([2.5]), pd.Series([1.0, 2.5, 3.0], index=index, name="price")
    )
    for dtype in ("category", "object", "string"):
        source = pd.Series(["a", None, "b"], index=index, name="kind", dtype=dtype)
        completed = PartlyLabelled.from_arrays(X, source).complete(np.array(["b"], dtype=object))
        pd.testing.assert_series_equal(
            completed, pd.Series(["a", "b", "b"], index=index, name="kind", dtype=source.dtype)
        )
    whole = pd.Series([1, None, 3], dtype="Int64")
    assert (
        PartlyLabelled.from_arrays(X, whole).complete(np.array([3], dtype=object)).dtype == "Int64"
    )
    assert PartlyLabelled.from_arrays(X, whole).complete([2.5]).tolist() == [1.0, 2.5, 3.0]
    frame = pd.DataFrame({"price": [1.0, None, 3.0]}, index=index)
    pd.testing.assert_frame_equal(
        PartlyLabelled.from_arrays(X, frame).complete([2.0]),
        pd.DataFrame({"price": [1.0, 2.0, 3.0]}, index=index),
    )


@pytest.mark.parametrize("labels", [[1, None, 3], [1.0, None, 3.0], ["a", None, "b"]])
def test_missing_labels_of_polars_are_seen(labels):
    y = pl.Series("y", labels)
    np.testing.assert_array_equal(PartlyLabelled.from_arrays(X, y).unlabelled, [1])


def test_polars_series_come_back_as_they_were():
    for source, value in [
        (pl.Series("kind", ["a", None, "b"]), "b"),
        (pl.Series("count", [1, None, 3]), 3),
        (pl.Series("flag", [True, None, False]), True),
    ]:
        completed = PartlyLabelled.from_arrays(X, source).complete(np.array([value], dtype=object))
        assert completed.dtype == source.dtype
        assert completed.name == source.name
        assert completed[1] == value
    completed = PartlyLabelled.from_arrays(X, pl.Series("price", [1, None, 3])).complete([2.5])
    assert completed.to_list() == [1.0, 2.5, 3.0]


def test_several_columns():
    y = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
    sample = PartlyLabelled.from_arrays(X, y, columns=True)
    np.testing.assert_array_equal(sample.complete([[5.0, 6.0]]), [[1, 2], [5, 6], [3, 4]])
    frame = pd.DataFrame(y, columns=["a", "b"], index=list("xyz"))
    completed = PartlyLabelled.from_arrays(X, frame, columns=True).complete([[5.0, 6.0]])
    pd.testing.assert_frame_equal(completed, frame.fillna({"a": 5.0, "b": 6.0}))
    polars = PartlyLabelled.from_arrays(
        X, pl.DataFrame(y, schema=["a", "b"]), columns=True
    ).complete([[5.0, 6.0]])
    assert polars.to_dict(as_series=False) == {"a": [1, 5, 3], "b": [2, 6, 4]}
    with pytest.raises(ValueError, match="Row 1 has some of its labels but not all"):
        PartlyLabelled.from_arrays(X, [[1.0, 2.0], [np.nan, 1.0], [3.0, 4.0]], columns=True)


def test_a_polars_frame_of_one_column():
    completed = PartlyLabelled.from_arrays(X, pl.DataFrame({"price": [1.0, None, 3.0]})).complete(
        [2.0]
    )
    assert completed.to_dict(as_series=False) == {"price": [1.0, 2.0, 3.0]}


def test_one_is_not_true():
    np.testing.assert_array_equal(missing_mask(np.array([0, 1]), True), [False, False])
    np.testing.assert_array_equal(missing_mask(label_array([False, True]), True), [False, True])


def test_the_source_is_left_alone():
    y = np.array([1.0, np.nan, 3.0])
    PartlyLabelled.from_arrays(X, y).complete([2.0])
    assert np.isnan(y[1])


def test_refusals():
    with pytest.raises(ValueError, match="X has 3 rows but y has 2 labels"):
        PartlyLabelled.from_arrays(X, [1.0, None])
    with pytest.raises(ValueError, match="1d array"):
        PartlyLabelled.from_arrays(X, np.zeros((3, 2)))
