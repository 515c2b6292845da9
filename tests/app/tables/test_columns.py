"""New columns beside a table of polars."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce.app.filling.sources import with_new_columns
from transduce.app.tables.columns import read_target

polars = pytest.importorskip("polars")


def test_a_polars_frame_gets_columns_of_its_own_types():
    """Rows whose label was given have no set and no probability: both are null, as in any frame of polars."""
    new = pd.DataFrame(
        {
            "y_filled": pd.Series([1, 2, None], dtype="Int64"),
            "y_set": pd.Series([None, "a | b", "a"]),
            "y_probability": [np.nan, 0.5, 1.0],
        }
    ).set_axis(["u", "v", "w"])
    found = with_new_columns(polars.DataFrame({"x": [1.5, 2.5, 3.5]}), new)
    assert found.columns == ["x", "y_filled", "y_set", "y_probability"]
    assert found.dtypes == [polars.Float64, polars.Int64, polars.String, polars.Float64]
    assert found.rows()[0] == (1.5, 1, None, None)
    assert found.rows()[1:] == [(2.5, 2, "a | b", 0.5), (3.5, None, "a", 1.0)]


def test_numbers_of_numpy_in_a_column_of_objects_are_numbers():
    """They were read as classes, where Python's were numbers."""
    cells = pd.Series([*np.arange(5) * 7, None] * 4, dtype=object)
    assert read_target(pd.DataFrame({"y": cells}), "y").task == "regression"
