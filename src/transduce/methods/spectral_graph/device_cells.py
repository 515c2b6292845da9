"""Nearly all nearest neighbours on a GPU: the fused search, of every row among the cells nearest to its own.

Rows are put into k-means cells, each padded to whole blocks. How many cells to visit is read off a sample of rows whose
true neighbours are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transduce.methods.spectral_graph.fused_neighbors import (
    HEIGHT,
    SPARE,
    STEP,
    candidates,
    compare_again,
    halves,
)
from transduce.methods.spectral_graph.neighbors import Neighbors

ROWS_IN_CELL = 2000
MOST_CELLS = 4096
N_STEPS = 8  # of k-means
TRAINING = 64  # rows for each cell
TARGET = 0.975  # on the sample; a little more than is asked for


def nearest_centres(X: Any, centres: Any, k: int = 1) -> Any:
    """Return the `k` centres nearest to each row, nearest first, shape (n, k)."""
    import torch

    half = 0.5 * (centres * centres).sum(dim=1)
    parts, size = [], max(1, 2**28 // len(centres))
    for start in range(0, len(X), size):
        scores = X[start : start + size] @ centres.T - half
        parts.append(scores.argmax(dim=1)[:, None] if k == 1 else scores.topk(k, dim=1).indices)
    return torch.cat(parts)


def find_centres(X: Any, n_cells: int, generator: Any) -> Any:
    """Return the centres of cells by some steps of k-means on a part of the rows."""
    import torch

    part = X[torch.randperm(len(X), device=X.device, generator=generator)[: TRAINING * n_cells]]
    centres = part[:n_cells].clone()
    for _ in range(N_STEPS):
        cell = nearest_centres(part, centres)[:, 0]
        sums = torch.zeros_like(centres).index_add_(0, cell, part)
        counts = torch.bincount(cell, minlength=n_cells)[:, None]
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return centres


def search_device_cells(X: Any, offsets: Any, k: int, seed: int, sample: Any) -> tuple[Neighbors, float]:
    """Return nearly all of the `k` nearest neighbours of each row, and the share found at some rows.

    Shapes: X (n, d), offsets (n,).
    """
    import torch

    n, device = X.shape[0], X.device
    generator = torch.Generator(device=device).manual_seed(seed)
    single = X.float()
    n_cells = max(1, min(MOST_CELLS, n // ROWS_IN_CELL))
    centres = find_centres(single, n_cells, generator)
    cell = nearest_centres(single, centres)[:, 0]
    counts = torch.bincount(cell, minlength=n_cells)
    blocks = -(-counts // STEP)
    first = torch.cumsum(blocks, 0) - blocks  # first block of every cell
    order = torch.argsort(cell, stable=True)
    within = torch.arange(n, device=device) - (torch.cumsum(counts, 0) - counts)[cell[order]]
    slot = first[cell[order]] * STEP + within  # place of every row, in the order of the cells
    n_slots = int(blocks.sum()) * STEP
    rows_at = torch.full((n_slots,), -1, dtype=torch.int64, device=device)
    rows_at[slot] = order
    near = nearest_centres(centres, centres, n_cells)
    visits, sample_true = _visits_needed(X, offsets, k, cell, near, sample)
    lists, lengths = _block_lists(near[:, :visits], blocks, first)
    padded = torch.where(rows_at >= 0, rows_at, 0)
    filled = rows_at >= 0
    Q, R = (_in_slots(X, offsets, padded, filled, as_rows) for as_rows in (False, True))
    owner = torch.repeat_interleave(torch.arange(n_cells, device=device), blocks * (STEP // HEIGHT))
    found = candidates(Q, n_slots, R, k + 1 + SPARE, lists[owner].contiguous(), lengths[owner].contiguous())
    found = torch.where(found >= 0, rows_at[found.clamp(min=0).long()], -1)
    back = torch.empty_like(slot)
    back[order] = slot
    neighbors = compare_again(X, offsets, found[back], k)
    hits = (neighbors.ids[torch.as_tensor(sample, device=device)][:, :, None] == sample_true[:, None, :]).any(
        dim=1
    )
    return neighbors, float(hits.double().mean())


def _in_slots(X: Any, offsets: Any, padded: Any, filled: Any, as_rows: bool) -> Any:
    """Return halves of the rows in their slots; what fills up a block reaches no query."""
    packed = halves(X[padded], None if offsets is None else offsets[padded], fine=False, as_rows=as_rows)
    if as_rows:
        packed[: len(filled), -1] = (~filled).to(packed.dtype) * -6e4
    return packed


def _visits_needed(X: Any, offsets: Any, k: int, cell: Any, near: Any, sample: Any) -> tuple[int, Any]:
    """Return in how many of the nearest cells the target share of true neighbours lies, and the true neighbours."""
    import torch

    some = torch.as_tensor(sample, device=X.device)
    scores = X[some] @ X.T
    if offsets is not None:
        scores -= offsets
    scores[torch.arange(len(some), device=X.device), some] = -torch.inf
    true = scores.topk(k, dim=1).indices
    rank = torch.empty_like(near)
    rank.scatter_(1, near, torch.arange(near.shape[1], device=X.device).expand_as(near))
    needed = rank[cell[some][:, None], cell[true]].ravel()
    shares = torch.cumsum(torch.bincount(needed, minlength=near.shape[1]), 0) / needed.numel()
    return int(np.searchsorted(shares.cpu().numpy(), TARGET)) + 1, true


def _block_lists(visited: Any, blocks: Any, first: Any) -> tuple[Any, Any]:
    """Return the blocks of the cells that each cell visits, in order, and how many they are."""
    import torch

    n_cells = visited.shape[0]
    each = blocks[visited]  # (c, v)
    lengths = each.sum(dim=1)
    width = int(lengths.max())
    flat = each.reshape(-1)
    cells = torch.repeat_interleave(visited.reshape(-1), flat)
    lines = torch.repeat_interleave(torch.arange(n_cells, device=blocks.device), lengths)
    before = torch.cumsum(flat, 0) - flat
    at = torch.arange(len(cells), device=blocks.device)
    within = at - torch.repeat_interleave(before, flat)
    column = at - torch.repeat_interleave(torch.cumsum(lengths, 0) - lengths, lengths)
    lists = torch.zeros((n_cells, width), dtype=torch.int32, device=blocks.device)
    lists[lines, column] = (first[cells] + within).to(torch.int32)
    return lists, lengths.to(torch.int32)
