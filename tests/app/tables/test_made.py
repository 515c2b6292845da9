"""Messy files made at random from a known table: the table is read, or the file is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.app.tables.messy_files import make
from transduce.app.tables import files
from transduce.app.tables.columns import read_target


def check(seed, folder):
    messy = make(seed)
    table = files.read(messy.write(folder))
    names = [name.strip() for name in messy.names]
    found = [re.sub(r"column \d+", "column 1", name) for name in table.frame.columns]
    assert found == names, messy.made_of
    ids = [str(cell).removesuffix(".0") for cell in table.frame.iloc[:, 0]]
    assert [name.lstrip("0") for name in ids] == [name.lstrip("0") for name in messy.ids]
    labels = read_target(table.frame, messy.target, cells=table.column_reading(messy.target)).labels
    assert np.allclose(labels.astype(float), messy.labels, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_made_files_are_read_as_they_were_meant(tmp_path, start):
    for seed in range(start, start + 20):
        check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_made_files_are_read_as_they_were_meant(tmp_path, start):
    for seed in range(start, start + 100):
        check(seed, tmp_path)
