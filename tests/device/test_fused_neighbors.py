"""The fused search for neighbours against all scores: on a CUDA device, or in Triton's interpreter on the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
from transduce.device import fused_kernel as fused
from transduce.device.neighbors import Neighbors, recall

fused.HEIGHT = fused.STEP = 16
torch.manual_seed(0)
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
X = torch.randn(60, 5, dtype=torch.float64)
X /= X.norm(dim=1, keepdim=True)
X[7] = X[3]  # equal rows
for offsets in (None, 0.4 * torch.rand(60, dtype=torch.float64)):
    scores = X @ X.T - (0.0 if offsets is None else offsets)
    scores.fill_diagonal_(-torch.inf)
    wanted = scores.sort(dim=1, descending=True, stable=True)
    for k, fine in ((4, False), (20, True)):
        found = fused.search_fused(X, offsets, k, seed=1, fine=fine)
        assert torch.equal(found.ids, wanted.indices[:, :k]), (k, fine)
        assert (found.scores - wanted.values[:, :k]).abs().max() < 1e-14
sample = torch.arange(0, 60, 3)

fused.ROWS_IN_CELL = 12
fused.TARGET = 1.0
scores = X @ X.T
scores.fill_diagonal_(-torch.inf)
wanted = scores.sort(dim=1, descending=True, stable=True)
true = Neighbors(wanted.indices[sample, :4], wanted.values[sample, :4])
found = fused.search_cells(X, None, 4, 0, (sample, true.ids))
assert recall(found, true, sample) == 1.0
assert (found.ids == wanted.indices[:, :4]).double().mean() > 0.9
fused.TARGET = 0.5
found = fused.search_cells(X, None, 4, 0, (sample, true.ids))
assert 0.5 <= recall(found, true, sample) <= 1.0
few = fused.search_fused(X[:4], None, 3, seed=0)
assert (few.ids.sort(dim=1).values == torch.tensor([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])).all()
"""


def test_all_neighbours_are_found():
    """Triton decides once, when it is imported, whether it interprets: hence a process of its own."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, *sys.path])}
    if not torch.cuda.is_available():
        environment["TRITON_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
