"""Whether labelled and unlabelled rows look as if their classes had different shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.conformal.share_likelihood import mixture, share_intervals
from transduce.core.checks import check_random_state
from transduce.core.types import AnyArray, Array, Seed

CONFIDENCE = 0.9  # of intervals for a share that is told without being asked for
FEWEST_POOLED = 10  # labels below which a class is compared together with others
MOST_ROWS = 2000  # of a resample
N_PERMUTATIONS = 999


@dataclass(frozen=True, eq=False)
class SharesCompared:
    """Whether labelled and unlabelled rows look as if their classes had different shares.

    Parameters
    ----------
    p_value : float
        Probability of so large a difference if rows were labelled at random.
    classes : tuple of int
        Numbers of the classes that differ most; several where those with few labels were taken
        together.
    of_labels, share : float
        Their share among the labels, and its estimate among the unlabelled rows.
    lower, upper : float
        Ends of an interval for that share, at `CONFIDENCE`.
    """

    p_value: float
    classes: tuple[int, ...]
    of_labels: float
    share: float
    lower: float
    upper: float

    @property
    def apart(self) -> bool:
        """Whether the interval excludes the share that the labels have."""
        return not self.lower <= self.of_labels <= self.upper


def compare_shares(
    held: Array,
    unlabelled: Array,
    labels: AnyArray,
    held_labels: AnyArray,
    random_state: Seed = 0,
    *,
    level: float = 1.0,
) -> SharesCompared | None:
    """Compare the shares of classes by the predictions of one fit at labels that it did not see.

    Parameters
    ----------
    held, unlabelled : array of shape (c, n_classes), (m, n_classes)
        Probabilities of the classes by one fit, at rows whose labels were held out at random, and
        at unlabelled rows.
    labels, held_labels : array of int of shape (l,), (c,)
        The class of every label, and of those that were held out.
    random_state : int or RandomState
        Seed of the permutations.
    level : float, default=1.0
        Largest p-value that is of interest.

    Returns
    -------
    SharesCompared or None
        None where all classes have too few labels to be told apart, or where the p-value exceeds
        the level.
    """
    # If rows were labelled at random, those held out and the unlabelled ones are exchangeable for a
    # fit that saw the label of neither, so that a permutation test of its predictions is exact.
    # Predictions out of fold come from several fits, each of fewer labels than the one behind the
    # predictions at unlabelled rows: with 40 classes such a test raised a false alarm at 1 % in 8 %
    # of the tables.
    random = check_random_state(random_state)
    groups = pool_classes(np.bincount(labels, minlength=held.shape[1]))
    if len(groups) < 2 or not len(held) or not len(unlabelled):
        return None
    rows = unlabelled
    if len(rows) > MOST_ROWS:
        rows = unlabelled[random.choice(len(unlabelled), MOST_ROWS, replace=False)]
    held_groups = _pooled(held, groups)
    row_groups = _pooled(rows, groups)
    p_value, differences = permutation_test(held_groups, row_groups, random)
    if p_value > level:
        return None
    of_group = np.empty(held.shape[1], dtype=int)
    for number, group in enumerate(groups):
        of_group[group] = number
    codes = of_group[held_labels]
    k = int(np.argmax(differences))
    lower, upper = share_intervals(row_groups, (held_groups, codes), CONFIDENCE, random)[:, k]
    counts = np.bincount(codes, minlength=len(groups))
    share = float(lower + upper) / 2.0
    if counts.min() > 0:
        means = [held_groups[codes == number].mean(axis=0) for number in range(len(groups))]
        mixed = mixture(row_groups.mean(axis=0), np.array(means))
        share = float(np.clip(mixed[k], lower, upper))
    of_labels = float(np.mean(of_group[labels] == k))
    return SharesCompared(p_value, tuple(groups[k]), of_labels, share, float(lower), float(upper))


def _pooled(probabilities: Array, groups: list[list[int]]) -> Array:
    """Return the probability of each group of classes."""
    return np.column_stack([probabilities[:, group].sum(axis=1) for group in groups])


def pool_classes(counts: AnyArray) -> list[list[int]]:
    """Return groups of classes: each that has enough labels by itself, and all others together."""
    # Predictions of a class with two or three labels are nearly 0/0 when divided by its share.
    groups = [[int(k)] for k in np.flatnonzero(counts >= FEWEST_POOLED)]
    rare = [int(k) for k in np.flatnonzero(counts < FEWEST_POOLED)]
    if not rare:
        return groups
    if counts[rare].sum() >= FEWEST_POOLED or not groups:
        return [*groups, rare]
    smallest = min(groups, key=lambda group: int(counts[group].sum()))
    return [sorted([*group, *rare]) if group is smallest else group for group in groups]


def permutation_test(first: Array, second: Array, random: Any) -> tuple[float, Array]:
    """Return a p-value of "both come from one distribution", and the differences.

    The differences are those of the mean of each column.

    The statistic is the largest difference of means of a column, in units of its standard
    deviation. Shapes: first (c, k), second (m, k).
    """
    rows = np.vstack([first, second])
    n = len(first)
    centred = rows - rows.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-9
    scaled = centred / np.where(varies, spread, 1.0) * varies
    mean_of_first = scaled[:n].mean(axis=0)
    mean_of_second = scaled[n:].mean(axis=0)
    differences = np.abs(mean_of_first - mean_of_second)
    # Rows are centred, so that the difference of means is a multiple of the sum over the first n.
    largest = float(np.abs(scaled[:n].sum(axis=0)).max())
    picks = np.zeros((N_PERMUTATIONS, len(rows)), dtype=bool)
    for pick in picks:
        pick[random.permutation(len(rows))[:n]] = True
    permuted = np.abs(picks.astype(float) @ scaled).max(axis=1)
    n_larger = int(np.sum(permuted >= largest - 1e-9 * max(largest, 1.0)))
    return (1.0 + n_larger) / (1.0 + N_PERMUTATIONS), differences
