"""Files of spectra: replaced in one piece, and refused in a sentence where they are damaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.methods.spectral_graph import Spectrum, graph_spectrum

DAMAGED = "holds no spectrum that Spectrum.save wrote, or is damaged"


@pytest.fixture
def saved(tmp_path):
    weights = np.random.default_rng(0).random((30, 30))
    spectrum = graph_spectrum(weights + weights.T, n_components=4)
    spectrum.save(tmp_path / "spectrum.npz")
    return spectrum, tmp_path / "spectrum.npz"


def test_a_disk_that_is_full_leaves_the_earlier_file(saved, monkeypatch):
    spectrum, path = saved
    before = path.read_bytes()

    def fail(file, **columns):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="the disk is full"):
        spectrum.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_are_refused(saved, seed):
    spectrum, path = saved
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    if rng.random() < 0.5:
        del content[rng.integers(len(content)) :]
    else:
        for place in rng.integers(len(content), size=5):
            content[place] = rng.integers(256)
    other = path.with_name("other.npz")
    other.write_bytes(content)
    read = None
    message = DAMAGED
    try:
        read = Spectrum.load(other)
    except ValueError as error:
        message = str(error)
    assert DAMAGED in message
    if read is not None:  # what was hit says nothing about the arrays
        np.testing.assert_array_equal(read.vectors, spectrum.vectors)


@pytest.mark.parametrize(
    "changed",
    [
        {"vectors": np.zeros((3, 2))},
        {"values": np.array([np.nan] * 4)},
        {"owners": np.array([0, 0, 0, 7])},
        {"columns": np.array([0, 1, 2, -1])},
        {"components": np.zeros(30)},
        {"residuals": np.zeros(2)},
    ],
)
def test_arrays_that_do_not_fit_each_other(saved, changed):
    spectrum, path = saved
    arrays = {name: getattr(spectrum, name) for name in spectrum.__dataclass_fields__}
    np.savez(path, **(arrays | changed))
    with pytest.raises(ValueError, match=DAMAGED):
        Spectrum.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Spectrum.load(tmp_path / "nothing.npz")
