"""What is of a wrong type is refused in a sentence, by functions of the application."""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from transduce.app.filling import fill_folder, load
from transduce.app.report import render_html, render_json, summarize
from transduce.app.tables import files


@pytest.mark.parametrize("wrong", [None, 5, "x", [1]])
def test_records(wrong):
    for ask in (
        lambda: summarize(wrong),
        lambda: render_html(wrong),
        lambda: render_json(wrong),
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
