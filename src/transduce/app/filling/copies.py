"""Rows that stand in a table several times, label and all.

Copies of a labelled row that are labelled with it tell nothing new, but hidden labels among them
are answered as if they were known: predictions seem right, and intervals are too narrow. So where
copies are labelled together more often than chance lets them be, each row counts once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import gammaln

from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.columns import Target
from transduce.app.tables.features import Features
from transduce.app.tables.notes import About, Note
from transduce.app.tables.row_hashes import row_hashes
from transduce.conformal.designs import Grouped
from transduce.conformal.designs.held_out import labels_needed
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import counted, option

RARE = 1e-4  # chance at random that as many copies are labelled together: then it was not chance
MOST_DISTINCT = 0.7  # share of different rows up to which a table seems to hold copies
DECIMALS = 9  # of features that rows have in common


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are equal in all features, and which of them have a label."""

    codes: AnyArray  # (n,) a number that equal rows share
    labelled: Mask  # (n,)

    @property
    def chance(self) -> float:
        """A bound on how likely as many sets of copies have labels throughout, if at random.

        >>> one_pair = np.array([0, 0, 1, 2]), np.array([True, True, False, False])
        >>> print(f"{Copies(*one_pair).chance:.2f}")
        0.38
        """
        sizes = np.bincount(self.codes)
        n_labels = np.bincount(self.codes, weights=self.labelled)
        together = (sizes > 1) & (n_labels == sizes)
        number = int(together.sum())
        expected = float(self._all_labelled(sizes[sizes > 1]).sum())
        if number <= expected:
            return 1.0
        # Labels drawn without replacement are negatively associated, and so are these events, each
        # of which is about rows of its own: Chernoff's bound holds as for independent ones.
        return float(np.exp(number - expected - number * np.log(number / expected)))

    def _all_labelled(self, sizes: AnyArray) -> Array:
        """Return how likely all of so many copies get a label at random."""
        n_labels = int(self.labelled.sum())
        n_rows = len(self.codes)
        logs = gammaln(n_labels + 1) - gammaln(np.maximum(n_labels - sizes, 0) + 1)
        logs -= gammaln(n_rows + 1) - gammaln(n_rows - sizes + 1)
        return np.where(sizes <= n_labels, np.exp(logs), 0.0)

    @property
    def n_repeated(self) -> int:
        """How many labelled rows are copies of another labelled row."""
        codes = self.codes[self.labelled]
        return int(np.sum(np.bincount(codes)[codes] > 1))

    @property
    def are_together(self) -> bool:
        """Whether copies are labelled together more often than chance lets them be."""
        return self.n_repeated > 0 and self.chance <= RARE


def copies_of_features(features: Features, target: Target) -> Copies:
    """Return which rows have the same features."""
    rows = pd.DataFrame(features.matrix.round(DECIMALS) + 0.0)
    return Copies(pd.factorize(row_hashes(rows))[0], ~target.missing)


def copies_of_rows(source: FrameSource, options: Options) -> Copies:
    """Return which rows have the same cells in all columns that are learned from."""
    frame = options.clean(source.frame)
    hashes = row_hashes(frame[source.feature_names(options)])
    return Copies(pd.factorize(hashes)[0], ~source.labels.missing)


def with_copies_as_groups(options: Options, copies: Copies) -> Options:
    """Return options by which each row counts once, however often it stands in the table.

    They stay as they are where copies were not labelled together, where the user said how labels
    came about, and where labels are too few to hold groups out.
    """
    says_otherwise = options.labels is not None or options.guarantee == "row" or options.by_class
    n_groups = len(np.unique(copies.codes[copies.labelled]))
    if says_otherwise or n_groups < labels_needed(options.level) or not copies.are_together:
        return options
    return replace(options, labels=Grouped(copies.codes))


def note_on_copies(copies: Copies, features: Features, *, grouped: bool) -> list[Note]:
    """Return a note on rows that are copies of others, if they are many, or labelled together.

    `grouped` says whether each row counts once.
    """
    if copies.are_together:
        text = (
            f"{counted(copies.n_repeated, 'labelled row')} are copies of other labelled rows, more "
            "than chance would label together. "
        )
        if grouped:
            text += "A row and its copies are a group, and each group counts once."
        else:
            text += (
                "What is said of quality and guarantees does not allow for that: keep one of each, "
                f"or name them with {option('groups')}."
            )
        return [Note(About.ROWS, text)]
    # With a column of numbers, rows are rarely copies unless a table was entered twice.
    n_rows = len(copies.codes)
    n_distinct = len(np.unique(copies.codes))
    if "number" not in set(features.columns["kind"]) or n_distinct > MOST_DISTINCT * n_rows:
        return []
    text = (
        f"{n_rows - n_distinct:,} of the {n_rows:,} rows are copies of others. If they were "
        f"entered twice, keep one of each, or name them with {option('groups')}: copies that "
        "are labelled together are not chosen by chance one by one."
    )
    return [Note(About.ROWS, text)]
