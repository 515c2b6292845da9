"""Nearest neighbours on a device: by all scores, some rows at a time, or in one fused kernel on a GPU.

There products are compared with the best so far where they arise, and never stored.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np

from transduce.core import arrays
from transduce.core.types import AnyArray
from transduce.device import memory

PRODUCTS = ("cosine", "euclidean", "l2")
Random = np.random.RandomState
N_SAMPLE = 512  # rows on which the recall is measured
GOOD_RECALL = 0.999  # below this candidates are chosen to more digits
BUDGET = 2.0**28  # bytes of scores at a time, where nothing says how much is free

HEIGHT, STEP = 64, 128  # queries and rows of one product
WARPS, STAGES = 4, 3
SPARE = 4  # candidates more than needed, at least
MOST_NEIGHBORS = 60
MOST_FEATURES = 250
SHIFT = 2.0**5  # what halves lose is kept in halves again, times this


class Neighbors(NamedTuple):
    """The nearest other rows of each row, best first."""

    ids: AnyArray  # (n, k) which rows they are; -1 where a row has fewer
    scores: AnyArray  # (n, k) how near they are; the larger the nearer, and -inf where a row has fewer


def unit_rows(X: Any) -> Any:
    """Return rows of norm 1; rows of zeros stay so."""
    xp = arrays.namespace(X)
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0.0, largest, xp.ones_like(largest))
    norms = xp.sqrt(arrays.row_products(X, X))
    return X / xp.where(norms > 0.0, norms, xp.ones_like(norms))[:, None]


def search_blocks(Q: Any, own: Any, X: Any, offsets: Any, k: int) -> Neighbors:
    """Return the `k` rows of X (n, d) with the largest score ``q' x_j - offset_j`` for each row of Q (q, d)."""
    xp, n = arrays.namespace(X), X.shape[0]
    size = max(1, int(memory.work_bytes(X, BUDGET) // (4 * 8 * n)))
    columns = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
    found = []
    for part in arrays.blocks(Q.shape[0], size):
        block = Q[part, :] @ X.T
        block = block if offsets is None else block - offsets[None, :]
        block = xp.where(columns[None, :] == own[part][:, None], xp.full_like(block, -xp.inf), block)
        best, where = top_k(block, k)
        found.append(in_order(where, best))
    return Neighbors(*(xp.concat(parts, axis=0) for parts in zip(*found, strict=True)))


def in_order(ids: Any, scores: Any) -> Neighbors:
    """Return neighbours best first, equal ones in the order of the rows; -1 where the score is -inf."""
    xp = arrays.namespace(ids)
    turn = xp.argsort(ids, axis=1, stable=True)
    ids, scores = xp.take_along_axis(ids, turn, axis=1), xp.take_along_axis(scores, turn, axis=1)
    turn = xp.argsort(-scores, axis=1, stable=True)
    ids, scores = xp.take_along_axis(ids, turn, axis=1), xp.take_along_axis(scores, turn, axis=1)
    return Neighbors(xp.where(xp.isinf(scores), xp.full_like(ids, -1), ids), scores)


def comparable(X: Any, metric: Any) -> tuple[Any, Any]:
    """Return rows no longer than 1, and offsets, whose products rank neighbours; X has unit rows for the cosine."""
    if metric == "cosine":
        return X, None
    xp = arrays.namespace(X)
    rows = X - xp.mean(X, axis=0)
    longest = float(xp.max(xp.sqrt(xp.sum(rows * rows, axis=1))))
    rows = rows / (longest or 1.0)
    return rows, 0.5 * xp.sum(rows * rows, axis=1)


def nearest_on_device(Q: Any, X: Any, k: int, metric: Any) -> Neighbors:
    """Return the `k` rows of X nearest to other rows, all compared; scores are cosines, or minus distances."""
    xp, n_queries = arrays.namespace(X), Q.shape[0]
    own = arrays.zeros((n_queries,), X, "int64") - 1
    if metric == "cosine":
        return search_blocks(Q, own, X, None, k)
    both, offsets = comparable(xp.concat([X, Q], axis=0), metric)
    n = X.shape[0]
    neighbors = search_blocks(both[n:, :], own, both[:n, :], offsets[:n], k)
    return in_order(neighbors.ids, -distances_to(Q, X, neighbors.ids))


def distances_to(Q: Any, X: Any, ids: Any) -> Any:
    """Return the Euclidean distance of every query to its neighbours, infinite where there is none."""
    xp = arrays.namespace(X)
    parts, size = [], max(1, int(memory.work_bytes(X, 2.0**28) // (32 * max(ids.shape[1] * X.shape[1], 1))))
    for part in arrays.blocks(Q.shape[0], size):
        near = xp.where(ids[part, :] >= 0, ids[part, :], xp.zeros_like(ids[part, :]))
        rows = xp.reshape(xp.take(X, xp.reshape(near, (-1,)), axis=0), (*near.shape, X.shape[1]))
        parts.append(xp.sqrt(xp.sum((Q[part, :][:, None, :] - rows) ** 2, axis=2)))
    distances = xp.concat(parts, axis=0)
    return xp.where(ids >= 0, distances, xp.full_like(distances, xp.inf))


def top_k(values: Any, k: int) -> tuple[Any, Any]:
    """Return the `k` largest of each line (m, n) and where they stand, largest first; of equal ones any."""
    if arrays.library_of(values) == "torch":
        largest = values.topk(k, dim=1)
        return largest.values, largest.indices
    xp = arrays.namespace(values)
    some = xp.argsort(-values, axis=1)[:, :k]
    return xp.take_along_axis(values, some, axis=1), some


def search(X: Any, k: int, settings: Any, random: Random, report: Any) -> tuple[Neighbors, str, float]:
    """Return the neighbours of every row among the others, how they were found, and the recall on a sample."""
    xp, n = arrays.namespace(X), X.shape[0]
    rows, offsets = comparable(X, settings.metric)
    share, method = 1.0, "exact"
    if not can_fuse(rows, k):
        own = xp.arange(n, dtype=xp.int64, **arrays.on_device(X))
        found = search_blocks(rows, own, rows, offsets, k)
    else:
        sample = arrays.beside(np.sort(random.choice(n, min(N_SAMPLE, n), replace=False)), X)
        seed, true = int(random.randint(2**31 - 1)), search_blocks(rows[sample], sample, rows, offsets, k)
        if settings.method == "approximate" and n >= 4 * k:
            found, method = search_cells(rows, offsets, k, seed, (sample, true.ids)), "approximate"
        else:
            found = search_fused(rows, offsets, k, seed)
            if recall(found, true, sample) < GOOD_RECALL:
                found = search_fused(rows, offsets, k, seed, fine=True)
        share = recall(found, true, sample)
    report(0.9)
    if settings.metric != "cosine":
        found = in_order(found.ids, -distances_to(X, X, found.ids))
    return found, method, share


def recall(found: Neighbors, true: Neighbors, sample: Any) -> float:
    """Return the share of true neighbours found at some rows; of rows that tie with the last, any counts as true."""
    hits = (true.ids[:, :, None] == found.ids[sample][:, None, :]).any(dim=2)
    as_good = found.scores[sample] >= true.scores[:, -1:] - 1e-12
    return max(float(part.double().mean()) for part in (hits, as_good))


def can_fuse(X: Any, k: int) -> bool:
    """Return whether the search can run on the device of these rows: torch on CUDA, with Triton."""
    there = arrays.library_of(X) == "torch" and X.device.type == "cuda"
    small = k <= MOST_NEIGHBORS and X.shape[1] <= MOST_FEATURES
    return there and small and importlib.util.find_spec("triton") is not None


def halves(X: Any, offsets: Any, *, fine: bool, as_rows: bool) -> Any:
    """Return rows (n, d) as halves, padded, whose products are scores ``x_i' x_j - offset_j``; lengths up to 1."""
    # With `fine` what halves lose is kept in further columns, so that products are good to about six digits.
    import torch

    high = X.to(torch.float16)
    parts = [high]
    if fine:
        low = ((X - high) * SHIFT).to(torch.float16)
        parts = [high, low, high / SHIFT] if as_rows else [high, high / SHIFT, low]
    if offsets is not None and as_rows:
        first = (-offsets).to(torch.float16)
        parts.append(torch.stack([first, ((-offsets - first) * SHIFT).to(torch.float16)], dim=1))
    elif offsets is not None:
        ones = torch.tensor([[1.0, 1.0 / SHIFT]], dtype=torch.float16, device=X.device)
        parts.append(ones.expand(len(X), 2))
    packed = torch.cat(parts, dim=1)
    n, used = packed.shape
    width = max(16, 1 << used.bit_length())  # with one column to spare
    out = torch.zeros((-(-n // STEP) * STEP, width), dtype=torch.float16, device=X.device)
    out[:n, :used] = packed
    # By this column the rows that only fill up the last block come last for every query.
    if as_rows:
        out[n:, -1] = -6e4
    else:
        out[:, -1] = 1.0
    return out


def candidates(Q: Any, n_queries: int, X: Any, n_wanted: int, lists: Any = None, lengths: Any = None) -> Any:
    """Return the rows of X with the largest products for each query, shape (q, p), p at least `n_wanted`."""
    import torch

    from transduce.device.fused_kernel import best_products

    places = max(16, 1 << (n_wanted - 1).bit_length())
    ids = torch.empty((n_queries, places), dtype=torch.int32, device=Q.device)
    scores = torch.empty((n_queries, places), dtype=torch.float32, device=Q.device)
    sizes = {"PLACES": places, "WIDTH": Q.shape[1], "HEIGHT": HEIGHT, "STEP": STEP}
    sizes |= {"LONG": X.numel() >= 2**31, "LISTED": lists is not None}
    n_blocks = X.shape[0] // STEP if lists is None else lists.shape[1]
    lists, lengths = (Q, Q) if lists is None else (lists, lengths)
    run = best_products[(-(-n_queries // HEIGHT),)]
    run(Q, X, ids, scores, lists, lengths, n_queries, n_blocks, **sizes, num_warps=WARPS, num_stages=STAGES)
    return ids


def search_fused(X: Any, offsets: Any, k: int, seed: int, *, fine: bool = False) -> Neighbors:
    """Return the `k` rows (n, d) with the largest score ``x_i' x_j - offset_j`` for each row, itself left out."""
    import torch

    n = X.shape[0]
    order = torch.randperm(n, device=X.device, generator=torch.Generator(device=X.device).manual_seed(seed))
    rows = halves(X[order], None if offsets is None else offsets[order], fine=fine, as_rows=True)
    queries = halves(X, offsets, fine=fine, as_rows=False)
    nearest = candidates(queries, n, rows, k + 1 + SPARE)  # a row may be among its own candidates
    real = (nearest >= 0) & (nearest < n)
    nearest = torch.where(real, order[torch.where(real, nearest, 0).long()], -1)
    return compare_again(X, offsets, nearest, k)


def compare_again(X: Any, offsets: Any, nearest: Any, k: int) -> Neighbors:
    """Return the best `k` of each row's candidates by scores in full precision."""
    import torch

    n, n_found = nearest.shape
    ids = torch.empty((n, k), dtype=torch.int64, device=X.device)
    scores = torch.empty((n, k), dtype=X.dtype, device=X.device)
    size = max(1, 2**28 // (n_found * X.shape[1]))
    for start in range(0, n, size):
        some, _ = nearest[start : start + size].sort(dim=1)  # of equal scores the first row comes first
        own = torch.arange(start, start + len(some), device=X.device)
        exact = torch.bmm(X[some], X[own][:, :, None])[:, :, 0]
        if offsets is not None:
            exact -= offsets[some]
        exact = torch.where((some < 0) | (some == own[:, None]), -torch.inf, exact)
        best = exact.sort(dim=1, descending=True, stable=True)
        scores[start : start + size] = best.values[:, :k]
        ids[start : start + size] = some.gather(1, best.indices)[:, :k]
    return Neighbors(torch.where(scores == -torch.inf, -1, ids), scores)


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


def search_cells(X: Any, offsets: Any, k: int, seed: int, known: tuple[Any, Any]) -> Neighbors:
    """Return nearly all of the `k` nearest neighbours of each row (n, d); `known` are rows (s,) and theirs (s, k)."""
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
    lists, lengths = _block_lists(near[:, : _visits_needed(cell, near, *known)], blocks, first)
    padded = torch.where(rows_at >= 0, rows_at, 0)
    filled = rows_at >= 0
    Q, R = (_in_slots(X, offsets, padded, filled, as_rows) for as_rows in (False, True))
    owner = torch.repeat_interleave(torch.arange(n_cells, device=device), blocks * (STEP // HEIGHT))
    nearest = candidates(Q, n_slots, R, k + 1 + SPARE, lists[owner].contiguous(), lengths[owner].contiguous())
    nearest = torch.where(nearest >= 0, rows_at[nearest.clamp(min=0).long()], -1)
    return compare_again(X, offsets, nearest[slot[torch.argsort(order)]], k)


def _in_slots(X: Any, offsets: Any, padded: Any, filled: Any, as_rows: bool) -> Any:
    """Return halves of the rows in their slots; what fills up a block reaches no query."""
    packed = halves(X[padded], None if offsets is None else offsets[padded], fine=False, as_rows=as_rows)
    if as_rows:
        packed[: len(filled), -1] = (~filled).to(packed.dtype) * -6e4
    return packed


def _visits_needed(cell: Any, near: Any, rows: Any, true: Any) -> int:
    """Return in how many of the nearest cells the target share of the true neighbours (s, k) of some rows lies."""
    import torch

    needed = near.argsort(dim=1)[cell[rows][:, None], cell[true]].ravel()
    shares = torch.cumsum(torch.bincount(needed, minlength=near.shape[1]), 0) / needed.numel()
    return int(np.searchsorted(shares.cpu().numpy(), TARGET)) + 1


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
