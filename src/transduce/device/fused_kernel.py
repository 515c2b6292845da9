"""The inner loop of the fused neighbour search, in Triton; there where Triton is, which torch brings."""

# mypy: allow-untyped-defs, allow-incomplete-defs
# (A compiled function's arguments have types of Triton's own.)
from __future__ import annotations

import importlib.util

if importlib.util.find_spec("triton") is not None:
    import triton
    import triton.language as tl

    @triton.jit
    def best_products(  # noqa: PLR0913
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
        # Q and X hold rows of WIDTH halves; X has a whole number of blocks of STEP rows. The products of one block of
        # queries with one block of rows stay in registers, and so do the best so far: most blocks hold nothing that is
        # good enough. LONG says that X has too many entries to be counted by 32 bits. If LISTED, the queries of program
        # i are compared with the blocks of line i of `lists` (n_blocks entries wide) up to ``lengths[i]``, else with
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
        n_compared = tl.load(lengths + tl.program_id(0)) if LISTED else n_blocks
        for place in range(0, n_compared):
            block = tl.load(lists + tl.program_id(0) * n_blocks + place) if LISTED else place
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
