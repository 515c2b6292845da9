"""Neighbours on a GPU in one kernel, by Triton, which torch brings: read where both are there.

Products are compared with the best so far where they arise, and never stored.
"""

from __future__ import annotations

import importlib.util

from transduce.core.types import DeviceArray
from transduce.device.neighbors import Neighbors

HEIGHT = 64  # queries of one product
STEP = 128  # rows of one product
WARPS = 4
STAGES = 3
SPARE = 4  # candidates more than needed, at least
SHIFT = 2.0**5  # what halves lose is kept in halves again, times this

if importlib.util.find_spec("triton") is not None:
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def best_products(  # type: ignore[no-untyped-def]  # noqa: PLR0913
        Q,
        X,
        ids,
        scores,
        lists,
        lengths,
        n_queries,
        n_blocks,
        PLACES: tl.constexpr,
        WIDTH: tl.constexpr,
        HEIGHT: tl.constexpr,
        STEP: tl.constexpr,
        LONG: tl.constexpr,
        LISTED: tl.constexpr,
    ):
        """Keep the rows of X with the PLACES largest products for every query."""
        # Q and X hold rows of WIDTH halves; X has a whole number of blocks of STEP rows. The
        # products of one block of queries with one block of rows stay in registers, and so do the
        # best so far: most blocks hold nothing that is good enough. LONG says that X has too many
        # entries to be counted by 32 bits. If LISTED, the queries of program i are compared with
        # the blocks of line i of `lists` (n_blocks entries wide) up to ``lengths[i]``, else with
        # all.
        queries = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
        inside = queries < n_queries
        features = tl.arange(0, WIDTH)
        columns = tl.arange(0, STEP)
        places = tl.arange(0, PLACES)
        own = queries.to(tl.int64) if LONG else queries
        q = tl.load(Q + own[:, None] * WIDTH + features[None, :], mask=inside[:, None], other=0.0)
        kept = tl.full((HEIGHT, PLACES), float("-inf"), tl.float32)
        who = tl.full((HEIGHT, PLACES), -1, tl.int32)
        worst = tl.min(kept, axis=1)
        if LISTED:
            n_compared = tl.load(lengths + tl.program_id(0))
        else:
            n_compared = n_blocks
        for place in range(0, n_compared):
            if LISTED:
                block = tl.load(lists + tl.program_id(0) * n_blocks + place)
            else:
                block = place
            rows = block * STEP + columns
            rows = rows.to(tl.int64) if LONG else rows
            x = tl.load(X + rows[None, :] * WIDTH + features[:, None])
            score = tl.dot(q, x)
            best = tl.max(score, axis=1)
            while tl.max((best > worst).to(tl.int32), axis=0) > 0:
                where = tl.argmax(score, axis=1)
                slot = tl.argmin(kept, axis=1)
                put = (places[None, :] == slot[:, None]) & (best > worst)[:, None]
                kept = tl.where(put, best[:, None], kept)
                who = tl.where(put, (block * STEP + where)[:, None], who)
                worst = tl.min(kept, axis=1)
                score = tl.where(columns[None, :] == where[:, None], float("-inf"), score)
                best = tl.max(score, axis=1)
        target = queries[:, None].to(tl.int64) * PLACES + places[None, :]
        tl.store(ids + target, who, mask=inside[:, None])
        tl.store(scores + target, kept, mask=inside[:, None])


def halves(
    X: DeviceArray,
    offsets: DeviceArray,
    *,
    fine: bool,
    as_rows: bool,
) -> DeviceArray:
    """Return rows (n, d), no longer than 1, as padded halves.

    Their products are ``x_i' x_j - offset_j``.
    """
    # With `fine` what halves lose is kept in further columns, so that products are good to about
    # six digits.
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


def candidates(
    Q: DeviceArray,
    n_queries: int,
    X: DeviceArray,
    n_wanted: int,
    lists: DeviceArray = None,
    lengths: DeviceArray = None,
) -> DeviceArray:
    """Return the rows of X with the largest products for each query.

    There are at least `n_wanted` of them.
    """
    places = max(16, 1 << (n_wanted - 1).bit_length())
    ids = torch.empty((n_queries, places), dtype=torch.int32, device=Q.device)
    scores = torch.empty((n_queries, places), dtype=torch.float32, device=Q.device)
    sizes = {"PLACES": places, "WIDTH": Q.shape[1], "HEIGHT": HEIGHT, "STEP": STEP}
    sizes["LONG"] = X.numel() >= 2**31
    sizes["LISTED"] = lists is not None
    if lists is None:
        n_blocks = X.shape[0] // STEP
        lists = Q  # which is not read
        lengths = Q
    else:
        n_blocks = lists.shape[1]
    run = best_products[(-(-n_queries // HEIGHT),)]
    run(
        Q,
        X,
        ids,
        scores,
        lists,
        lengths,
        n_queries,
        n_blocks,
        **sizes,
        num_warps=WARPS,
        num_stages=STAGES,
    )
    return ids


def search_fused(
    X: DeviceArray, offsets: DeviceArray, k: int, seed: int, *, fine: bool = False
) -> Neighbors:
    """Return the `k` other rows with the largest score ``x_i' x_j - offset_j`` for each row."""
    n = X.shape[0]
    generator = torch.Generator(device=X.device).manual_seed(seed)
    order = torch.randperm(n, device=X.device, generator=generator)
    rows = halves(X[order], _take(offsets, order), fine=fine, as_rows=True)
    queries = halves(X, offsets, fine=fine, as_rows=False)
    nearest = candidates(queries, n, rows, k + 1 + SPARE)  # a row may be among its own candidates
    real = (nearest >= 0) & (nearest < n)
    nearest = torch.where(real, order[torch.where(real, nearest, 0).long()], -1)
    return compare_again(X, offsets, nearest, k)


def compare_again(X: DeviceArray, offsets: DeviceArray, nearest: DeviceArray, k: int) -> Neighbors:
    """Return the best `k` of each row's candidates by scores in full precision."""
    n, n_found = nearest.shape
    ids = torch.empty((n, k), dtype=torch.int64, device=X.device)
    scores = torch.empty((n, k), dtype=X.dtype, device=X.device)
    size = max(1, 2**28 // (n_found * X.shape[1]))
    for start in range(0, n, size):
        # Of equal scores the first row is first.
        rows, _ = nearest[start : start + size].sort(dim=1)
        own_rows = torch.arange(start, start + len(rows), device=X.device)
        exact = torch.bmm(X[rows], X[own_rows][:, :, None])[:, :, 0]
        if offsets is not None:
            exact -= offsets[rows]
        exact = torch.where((rows < 0) | (rows == own_rows[:, None]), -torch.inf, exact)
        best = exact.sort(dim=1, descending=True, stable=True)
        scores[start : start + size] = best.values[:, :k]
        ids[start : start + size] = rows.gather(1, best.indices)[:, :k]
    return Neighbors(torch.where(scores == -torch.inf, -1, ids), scores)


ROWS_IN_CELL = 2000
MOST_CELLS = 4096
N_STEPS = 8  # of k-means
TRAINING = 64  # rows for each cell
TARGET = 0.975  # on the sample; a little more than is asked for


def nearest_centre(X: DeviceArray, centres: DeviceArray) -> DeviceArray:
    """Return the centre nearest to each row, shape (n,)."""
    half = 0.5 * (centres * centres).sum(dim=1)
    parts = X.split(max(1, 2**28 // len(centres)))
    return torch.cat([(part @ centres.T - half).argmax(dim=1) for part in parts])


def find_centres(X: DeviceArray, n_cells: int, generator: DeviceArray) -> DeviceArray:
    """Return the centres of cells by some steps of k-means on a part of the rows."""
    part = X[torch.randperm(len(X), device=X.device, generator=generator)[: TRAINING * n_cells]]
    centres = part[:n_cells].clone()
    for _ in range(N_STEPS):
        cell = nearest_centre(part, centres)
        sums = torch.zeros_like(centres).index_add_(0, cell, part)
        counts = torch.bincount(cell, minlength=n_cells)[:, None]
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return centres


def search_cells(
    X: DeviceArray,
    offsets: DeviceArray,
    k: int,
    seed: int,
    known: tuple[DeviceArray, DeviceArray],
) -> Neighbors:
    """Return nearly all of the `k` nearest neighbours of each row (n, d).

    `known` are some rows (s,) and their neighbours (s, k).
    """
    n = X.shape[0]
    device = X.device
    generator = torch.Generator(device=device).manual_seed(seed)
    single = X.float()
    n_cells = max(1, min(MOST_CELLS, n // ROWS_IN_CELL))
    centres = find_centres(single, n_cells, generator)
    cell = nearest_centre(single, centres)
    counts = torch.bincount(cell, minlength=n_cells)
    blocks = -(-counts // STEP)
    first = torch.cumsum(blocks, 0) - blocks  # first block of every cell
    order = torch.argsort(cell, stable=True)
    within = torch.arange(n, device=device) - (torch.cumsum(counts, 0) - counts)[cell[order]]
    slot = first[cell[order]] * STEP + within  # place of every row, in the order of the cells
    n_slots = int(blocks.sum()) * STEP
    rows_at = torch.full((n_slots,), -1, dtype=torch.int64, device=device)
    rows_at[slot] = order
    closeness = centres @ centres.T - 0.5 * (centres * centres).sum(dim=1)
    near = closeness.argsort(dim=1, descending=True)
    n_visits = _visits_needed(cell, near, *known)
    lists, lengths = _block_lists(near[:, :n_visits], blocks, first)
    filled = rows_at >= 0
    padded = torch.where(filled, rows_at, 0)
    Q = _in_slots(X, offsets, padded, filled, as_rows=False)
    R = _in_slots(X, offsets, padded, filled, as_rows=True)
    owner = torch.repeat_interleave(torch.arange(n_cells, device=device), blocks * (STEP // HEIGHT))
    nearest = candidates(
        Q,
        n_slots,
        R,
        k + 1 + SPARE,
        lists[owner].contiguous(),
        lengths[owner].contiguous(),
    )
    nearest = torch.where(nearest >= 0, rows_at[nearest.clamp(min=0).long()], -1)
    return compare_again(X, offsets, nearest[slot[torch.argsort(order)]], k)


def _take(offsets: DeviceArray, rows: DeviceArray) -> DeviceArray:
    """Return the offsets of some rows, if there are any."""
    if offsets is None:
        return None
    return offsets[rows]


def _in_slots(
    X: DeviceArray, offsets: DeviceArray, padded: DeviceArray, filled: DeviceArray, *, as_rows: bool
) -> DeviceArray:
    """Return halves of the rows in their slots; what fills up a block reaches no query."""
    packed = halves(X[padded], _take(offsets, padded), fine=False, as_rows=as_rows)
    if as_rows:
        packed[: len(filled), -1] = (~filled).to(packed.dtype) * -6e4
    return packed


def _visits_needed(
    cell: DeviceArray, near: DeviceArray, rows: DeviceArray, true: DeviceArray
) -> int:
    """Return how many of the nearest cells hold the target share of true neighbours (s, k)."""
    needed = near.argsort(dim=1)[cell[rows][:, None], cell[true]].ravel()
    shares = torch.cumsum(torch.bincount(needed, minlength=near.shape[1]), 0) / needed.numel()
    return int(torch.searchsorted(shares, TARGET)) + 1


def _block_lists(
    visited: DeviceArray, blocks: DeviceArray, first: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """Return the blocks of the cells that each cell visits, in order, and how many they are."""
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
