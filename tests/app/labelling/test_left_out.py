"""Columns that are known only where the label is take no part in labelling either."""

import numpy as np
import pandas as pd
import pytest

from transduce.app.labelling.prepared import prepare
from transduce.app.labelling.table import read_label_table
from transduce.app.tables.new_columns import STATUSES


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.normal(size=90)})
    frame["y"] = np.where(np.arange(90) < 30, rng.choice(["u", "v"], 90), None)
    return frame.assign(late=np.where(np.arange(90) < 30, rng.normal(size=90), np.nan))


@pytest.mark.parametrize(("n_labels", "columns"), [(30, ("a", "b")), (2, ("a", "b", "late"))])
def test_a_column_known_only_with_the_label_is_left_out(n_labels, columns):
    frame = table()
    frame.loc[n_labels:, "y"] = None
    prepared = prepare(read_label_table(frame, "y"))
    assert prepared.columns == columns
    assert any("'late'" in note for note in prepared.notes) == (n_labels == 30)


def test_columns_of_an_earlier_fill_are_left_out_before_the_first_label():
    rng = np.random.default_rng(0)
    frame = table().drop(columns=["y", "late"])
    frame = frame.assign(z_filled=rng.normal(size=90), z_status=min(STATUSES))
    assert prepare(read_label_table(frame, "y")).columns == ("a", "b")
