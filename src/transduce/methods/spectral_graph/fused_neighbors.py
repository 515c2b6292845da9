"""Exact nearest neighbours on a GPU: products are compared with the best so far where they arise, and never stored.

Products are of halves, which decide only who is a candidate; the best candidates are compared again in the precision of
the rows. Rows are scanned in random order: then a good neighbour is seldom replaced by a better one.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from transduce.core.arrays import library_of
from transduce.methods.spectral_graph.neighbors import Neighbors

HEIGHT, STEP = 64, 128  # queries and rows of one product
WARPS, STAGES = 4, 3
SPARE = 4  # candidates more than needed, at least
MOST_NEIGHBORS = 60
MOST_FEATURES = 250
SHIFT = 2.0**5  # what halves lose is kept in halves again, times this


def can_fuse(X: Any, k: int) -> bool:
    """Return whether the search can run on the device of these rows: torch on CUDA, with Triton."""
    return (
        library_of(X) == "torch"
        and X.device.type == "cuda"
        and k <= MOST_NEIGHBORS
        and X.shape[1] <= MOST_FEATURES
        and importlib.util.find_spec("triton") is not None
    )


def halves(X: Any, offsets: Any, *, fine: bool, as_rows: bool) -> Any:
    """Return rows as halves, padded, whose products are the scores ``x_i' x_j - offset_j`` of rows no longer than 1.

    With `fine` what halves lose is kept in further columns, so that products are good to about six digits.

    Shapes: X (n, d), offsets (n,).
    """
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
        parts.append(
            torch.tensor([[1.0, 1.0 / SHIFT]], dtype=torch.float16, device=X.device).expand(len(X), 2)
        )
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
    """Return the rows of X with the largest products for each query, shape (q, p), p at least `n_wanted`.

    Shapes: lists (q / HEIGHT, b), lengths (q / HEIGHT,).
    """
    import torch

    from transduce.methods.spectral_graph.fused_kernel import best_products

    places = max(16, 1 << (n_wanted - 1).bit_length())
    ids = torch.empty((n_queries, places), dtype=torch.int32, device=Q.device)
    scores = torch.empty((n_queries, places), dtype=torch.float32, device=Q.device)
    best_products[(-(-n_queries // HEIGHT),)](
        Q,
        X,
        ids,
        scores,
        Q if lists is None else lists,
        Q if lengths is None else lengths,
        n_queries,
        X.shape[0] // STEP if lists is None else lists.shape[1],
        PLACES=places,
        WIDTH=Q.shape[1],
        HEIGHT=HEIGHT,
        STEP=STEP,
        LONG=X.numel() >= 2**31,
        LISTED=lists is not None,
        num_warps=WARPS,
        num_stages=STAGES,
    )
    return ids


def search_fused(X: Any, offsets: Any, k: int, seed: int, *, fine: bool = False) -> Neighbors:
    """Return the `k` rows with the largest score ``x_i' x_j - offset_j`` for each row, itself left out.

    Shapes: X (n, d), offsets (n,).
    """
    import torch

    n = X.shape[0]
    order = torch.randperm(n, device=X.device, generator=torch.Generator(device=X.device).manual_seed(seed))
    shuffled = None if offsets is None else offsets[order]
    rows = halves(X[order], shuffled, fine=fine, as_rows=True)
    queries = halves(X, offsets, fine=fine, as_rows=False)
    found = candidates(queries, n, rows, k + 1 + SPARE)  # a row may be among its own candidates
    real = (found >= 0) & (found < n)
    found = torch.where(real, order[torch.where(real, found, 0).long()], -1)
    return compare_again(X, offsets, found, k)


def compare_again(X: Any, offsets: Any, found: Any, k: int) -> Neighbors:
    """Return the best `k` of each row's candidates by scores in full precision."""
    import torch

    n, n_found = found.shape
    ids = torch.empty((n, k), dtype=torch.int64, device=X.device)
    scores = torch.empty((n, k), dtype=X.dtype, device=X.device)
    size = max(1, 2**28 // (n_found * X.shape[1]))
    for start in range(0, n, size):
        some, _ = found[start : start + size].sort(dim=1)  # of equal scores the first row comes first
        own = torch.arange(start, start + len(some), device=X.device)
        exact = torch.bmm(X[some], X[own][:, :, None])[:, :, 0]
        if offsets is not None:
            exact -= offsets[some]
        exact = torch.where((some < 0) | (some == own[:, None]), -torch.inf, exact)
        best = exact.sort(dim=1, descending=True, stable=True)
        scores[start : start + size] = best.values[:, :k]
        ids[start : start + size] = some.gather(1, best.indices)[:, :k]
    return Neighbors(torch.where(scores == -torch.inf, -1, ids), scores)


def seed_of(random: np.random.RandomState) -> int:
    """Draw a seed for a device's generator."""
    return int(random.randint(2**31 - 1))
