"""The first rows of a file, and a sample of one that is too large for memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce.app.tables import files, glances
from transduce.app.tables.glances import first_rows, glance, is_too_large

N = 3000


def table():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"n": range(N), "x": random.normal(size=N).round(3)})
    frame["kind"] = random.choice(["a", "b"], N)
    frame["seen"] = np.where(random.uniform(size=N) < 0.3, "yes", None)
    rare = np.full(N, np.nan)
    rare[random.permutation(N)[:20]] = 1.5
    return frame.assign(y=rare)


WRITE = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "s.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","),
    "t.parquet": lambda frame, path: frame.to_parquet(path),
    "t.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize("name", list(WRITE))
def test_a_sample_is_read_as_the_file_is(name, tmp_path):
    frame = table()
    WRITE[name](frame, tmp_path / name)
    whole = files.read(tmp_path / name).frame
    found = glance(tmp_path / name, 200)
    sample = found.table.frame
    assert found.n_rows == N
    assert found.n_known == frame.notna().sum().to_dict()
    assert len(sample) == 200
    assert sample["n"].is_monotonic_increasing
    assert sample["y"].notna().sum() == 20  # each rare value is there
    rows = whole.iloc[sample["n"].to_numpy(int)].reset_index(drop=True)
    pd.testing.assert_frame_equal(sample, rows, check_dtype=False)
    assert found.table.lines is None
    assert len(glance(tmp_path / name, 10 * N).table.frame) == N


def test_rows_are_drawn_evenly(tmp_path):
    table().drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    drawn = np.concatenate(
        [glance(tmp_path / "t.csv", 300, seed).table.frame["n"] for seed in range(10)]
    )
    counts = np.histogram(drawn, bins=10, range=(0, N))[0]
    assert counts.sum() == 3000
    assert abs(counts - 300).max() < 90  # five standard deviations


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "s.csv", "t.parquet"])
def test_the_first_rows_are_there_without_reading_the_file(name, tmp_path, monkeypatch):
    frame = table()
    WRITE[name](frame, tmp_path / name)
    monkeypatch.setattr(glances, "HEAD", 2000)
    head = first_rows(tmp_path / name, 5)
    assert head["n"].tolist() == [0, 1, 2, 3, 4]
    assert head["x"].tolist() == frame["x"][:5].tolist()


def test_of_other_files_there_are_no_first_rows(tmp_path):
    table().to_csv(tmp_path / "t.csv.gz", index=False)
    (tmp_path / "empty.csv").write_text("")
    table().to_json(tmp_path / "t.json")
    for name in ("t.csv.gz", "empty.csv", "t.json"):
        assert first_rows(tmp_path / name, 3) is None


def test_what_is_too_large(tmp_path, monkeypatch):
    for name in ("t.csv", "t.jsonl"):
        WRITE[name](table(), tmp_path / name)
        assert not is_too_large(tmp_path / name)
    table().to_json(tmp_path / "t.json")
    monkeypatch.setattr(glances, "memory_free", lambda: 1000)
    assert is_too_large(tmp_path / "t.csv")
    assert is_too_large(tmp_path / "t.jsonl")
    assert not is_too_large(tmp_path / "t.json")  # which cannot be read in parts
    monkeypatch.setattr(glances, "memory_free", lambda: None)
    assert not is_too_large(tmp_path / "t.csv")
