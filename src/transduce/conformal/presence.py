"""How likely cells of a column lie at labelled rows, if these are random."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr
from scipy.stats import hypergeom

from transduce.core.types import AnyArray, Array, Mask


def tail_of_labels(known: Mask, labelled: Mask, cells: AnyArray) -> float:
    """Return the chance that at least as many known rows are labelled.

    It is the chance if rows were labelled at random within cells.

    Shapes: (n,) each. Of the `k` known rows of a cell with `n` rows, `l` of them labelled, the
    number that is labelled is hypergeometric: a sample of `l` rows without replacement. The numbers
    of several cells are independent, and their sum has the convolution of their laws. Where all `k`
    known rows are labelled, and there is one cell, the chance is ``C(l, k) / C(n, k)``, at most
    ``(l / n)^k``.
    """
    law = np.ones(1)
    for cell in np.unique(cells):
        rows = cells == cell
        n_known = int((known & rows).sum())
        n_labelled = int((labelled & rows).sum())
        counts = np.arange(n_known + 1)
        law = np.convolve(law, hypergeom.pmf(counts, int(rows.sum()), n_known, n_labelled))
    at_least = int((known & labelled).sum())
    return float(min(law[at_least:].sum(), 1.0))


def bound_of_labels(known: Mask, labelled: Mask, probability: Array) -> float:
    """Return a bound on the same chance where rows were labelled independently.

    Each row was labelled with a known probability; shapes: (n,) each.

    Chernoff's bound of a sum of independent indicators: with the mean ``p`` of the `k` known rows'
    probabilities, at least ``h`` labelled ones have the chance ``exp(-k KL(h / k, p))`` at most;
    where all are labelled it is ``p^k``.
    """
    k = int(known.sum())
    if k == 0:
        return 1.0
    share = int((known & labelled).sum()) / k
    mean = float(probability[known].mean())
    if share <= mean:
        return 1.0
    divergence = rel_entr(share, mean) + rel_entr(1.0 - share, 1.0 - mean)
    return float(np.exp(-k * divergence))
