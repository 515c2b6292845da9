"""What is of a wrong type is refused in a sentence, by functions that take records and files."""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from transduce import Regions, TransductiveRidge
from transduce.app.filling import fill_folder, load
from transduce.app.report import render_html, render_json, summarize
from transduce.app.tables import files
from transduce.core.sample import PartlyLabelled
from transduce.model_selection import cross_val_transduce
from transduce.model_selection.linear import LinearRegressor

WRONG = [None, 5, "x", [1]]


@pytest.mark.parametrize("wrong", WRONG)
def test_records(wrong):
    for ask in (
        lambda: Regions.concatenate([wrong]),
        lambda: summarize(wrong),
        lambda: render_html(wrong),
        lambda: render_json(wrong),
        lambda: PartlyLabelled.from_arrays(wrong, [1.0]),
    ):
        with pytest.raises(ValueError, match=r"must be|takes"):
            ask()


def test_a_summary_that_is_not_whole():
    with pytest.raises(ValueError, match="summary has no 'task'"):
        render_html({})


@pytest.mark.parametrize("wrong", [None, 5, [1], {}])
def test_paths(wrong, tmp_path):
    with pytest.raises(ValueError, match="path must be the path of a file"):
        load(wrong)
    with pytest.raises(ValueError, match="table must be the path of a file"):
        fill_folder(wrong, "t", tmp_path / "out")
    with pytest.raises(ValueError, match="runner must be LocalRunner"):
        fill_folder("t.csv", "t", tmp_path / "out", runner=wrong or "x")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("groups", [["a"], [1, 2], np.ones((20, 1)), 5])
def test_groups_of_another_length(groups):
    X = np.arange(40.0).reshape(20, 2)
    y = np.where(np.arange(20) < 12, X[:, 0], np.nan)
    with pytest.raises(ValueError, match="one group for each of the 20 rows"):
        cross_val_transduce(TransductiveRidge(), X, y, cv=2, groups=groups)


def test_groups_of_two_types():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(np.arange(20) < 12, X[:, 0], np.nan)
    mixed = np.array([1, "a"] * 10, dtype=object)
    found = cross_val_transduce(TransductiveRidge(), X, y, cv=2, groups=mixed, random_state=0)
    assert len(found.answers) == 12


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_penalties_are_compared_for_labels_of_any_size(factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 20)), rng.normal(size=30)
    plain = LinearRegressor().fit(X, y)
    scaled = LinearRegressor().fit(X, y * factor)
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), rtol=1e-9)


def test_files_that_unpack_to_far_more_than_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 10**5)
    blanks = b" " * 10**6
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(blanks)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", blanks)
    for name in ("t.csv.gz", "t.xlsx"):
        assert files.unpacked_size(tmp_path / name) == 10**6
        with pytest.raises(MemoryError, match="unpacks to 1 MB, far more than a table"):
            files.read(tmp_path / name)
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=20_000)})
    frame.to_csv(tmp_path / "own.csv.gz", index=False)
    assert len(files.read(tmp_path / "own.csv.gz").frame) == 20_000
