"""The same questions of a table of which the fit saw a sample: in memory, in files and on Dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling import fill_folder
from transduce.conformal import Drawn

N_ROWS = 900
SETTINGS = {"method": "ridge", "sample": 150, "random_state": 1, "ignore": ["number"]}


def make_table():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 2))
    y = X[:, 0] * 2 + 0.3 * random.normal(size=N_ROWS)
    known = random.uniform(size=N_ROWS) < 0.4
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(number=np.arange(N_ROWS))
    frame["side"] = np.where(X[:, 1] > 0.0, "right", "left")
    frame["drawn"] = known & (np.arange(N_ROWS) % 10 > 0)  # others were labelled on purpose
    return frame.assign(y=np.where(known, y, np.nan)), y


def fill_everywhere(folder, **settings):
    import dask.dataframe as dd

    frame, _ = make_table()
    for k in range(3):
        part = frame.iloc[300 * k : 300 * (k + 1)]
        part.to_parquet(folder / f"{k}.parquet", index=False)
    return {
        "memory": fill(frame, "y", **settings),
        "folder": fill_folder(f"{folder}/*.parquet", "y", folder / "out", **settings),
        "dask": fill(dd.from_pandas(frame, npartitions=3), "y", **settings),
    }


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    return fill_everywhere(tmp_path_factory.mktemp("parts"), **SETTINGS)


@pytest.mark.few(2)
@pytest.mark.parametrize("what", ["mean", "share above 1", "median", "slope of u"])
def test_parts_answer_as_files_and_dask_do(everywhere, what):
    _, y = make_table()
    folder, dask = (everywhere[name].estimate(what) for name in ("folder", "dask"))
    pd.testing.assert_frame_equal(folder, dask)
    memory = everywhere["memory"].estimate(what)
    # In memory rows of the sample have predictions of their own fit: nearly the same.
    assert np.allclose(memory["estimate"], folder["estimate"], atol=0.05)
    assert (folder["worth"] > 0).all()
    assert folder["n_labels"].iloc[0] == int(np.sum(make_table()[0]["y"].notna()))
    if what == "mean":
        assert folder["lower"].iloc[0] <= y.mean() <= folder["upper"].iloc[0]


def test_parts_are_grouped_by_any_column(everywhere):
    found = everywhere["dask"].estimate("mean", by="side")
    assert found.index.tolist() == ["left", "right"]
    with pytest.raises(ValueError, match="no column"):
        everywhere["dask"].estimate("mean", by="nothing")


def test_rows_drawn_at_random_are_the_sample(tmp_path):
    marked = SETTINGS | {"labels": Drawn("drawn")}
    results = fill_everywhere(tmp_path, **marked)
    for result in results.values():
        assert result.estimate("mean")["kind"].iloc[0] == "approximate"
