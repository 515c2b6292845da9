"""From a partly labelled sample to balls that vote at its unlabelled rows."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from transduce.core import arrays, checks
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, uses_width
from transduce.methods.billiard import votes
from transduce.methods.billiard.billiard_settings import KernelChoice, LabelledRows
from transduce.methods.billiard.flight import EmptyVersionSpaceError

if TYPE_CHECKING:
    from transduce.methods.billiard.classifier import BayesianTransducer

MIN_BOUNCES = 2_000

log = logging.getLogger(__name__)


class Arranged(NamedTuple):
    """Rows ready for use, the labelled ones in an order of their own."""

    shown: LabelledRows
    labelled: AnyArray  # their positions among all rows
    unlabelled: Array  # with a precomputed kernel: values with the labelled rows, then with themselves
    rows: Array  # all of them
    names: Sequence[object]  # of all rows
    scaling: Scaling | None = None
    own: float | None = None  # every row's precomputed kernel value with itself, if it is the same for all


def arrange_rows(sample: PartlyLabelled, codes: AnyArray, settings: BayesianTransducer) -> Arranged:
    """Scale and order the rows, so that the order in which they came leaves no trace; codes (l,) are classes."""
    rows, labelled, kernel = sample.X, np.flatnonzero(sample.labelled), Kernel(settings.kernel)
    names = range(len(rows)) if sample.index is None else sample.index
    if settings.kernel == "precomputed":
        checks.check_square(rows)
        shown = LabelledRows(kernel, rows[np.ix_(labelled, labelled)], codes, settings.bias)
        own = rows.diagonal()
        unlabelled = np.column_stack([rows[:, labelled], own])[~sample.labelled]
        same = np.allclose(own, own[0], rtol=1e-10, atol=0.0)
        return Arranged(shown, labelled, unlabelled, rows, names, own=float(own[0]) if same else None)
    scaling, rows = Scaling.fit_apply(rows) if settings.standardize else (None, rows)
    kernel.check_symmetry(rows)
    order = np.lexsort([codes, *rows[labelled].T[::-1]])
    shown = LabelledRows(kernel, rows[labelled[order]], codes[order], settings.bias)
    return Arranged(shown, labelled[order], rows[~sample.labelled], rows, names, scaling)


@dataclass(frozen=True)
class FittedBilliard:
    """What a fit keeps: labelled rows with the kernel as used, how to read new rows, balls and their flights."""

    shown: LabelledRows
    labelled: AnyArray
    scaling: Scaling | None
    own: float | None
    geometry: votes.Geometry
    games: list[votes.Game]

    def voters(self, rows: Array, max_memory_mb: float) -> Callable[[], votes.Voters]:
        """Return what makes voters for the rows, some at a time; kept between rounds if all fit into memory."""
        size = max(1, int(max_memory_mb * 2**20 // (8 * len(self.labelled))))
        parts = arrays.blocks(len(rows), size)
        if len(parts) == 1:
            kept = [(parts[0], self.geometry.voter(*self.shown.columns(rows)))]
            return lambda: kept
        return lambda: ((part, self.geometry.voter(*self.shown.columns(rows[part]))) for part in parts)

    def bayes_point(self) -> Array:
        """Return the mean direction of the flights, as coefficients on the labelled rows, (l,) or (n_classes, l)."""
        points = np.array([game.mean_direction() for game in self.games]) / self.geometry.norms
        return points[0] if len(points) == 1 else points


def drop_balls(
    arranged: Arranged, choice: KernelChoice, settings: BayesianTransducer, random: np.random.RandomState
) -> FittedBilliard:
    """Put balls into version space, or raise a ValueError if it is empty."""
    shown = arranged.shown
    K, n_classes = shown.gram(choice.width), int(shown.codes.max()) + 1
    geometry = votes.Geometry.of(K, softness=choice.softness)
    if choice.softness == 0.0:
        check_contradictions(K, arranged)
    seeds = random.randint(2**31 - 1, size=(len(votes.held_classes(n_classes)), settings.n_balls))
    try:
        games = geometry.games(shown.codes, n_classes, seeds, settings.n_jobs)
    except EmptyVersionSpaceError:
        raise ValueError(_inseparable(choice.softness, uses_width(settings.kernel))) from None
    shown = shown._replace(kernel=replace(shown.kernel, width=choice.width))
    return FittedBilliard(shown, arranged.labelled, arranged.scaling, arranged.own, geometry, games)


def check_contradictions(K: Array, arranged: Arranged) -> None:
    """Raise a ValueError that names two rows which are one in feature space but differ in label."""
    labelled, (kernel, rows, codes, _) = arranged.labelled, arranged.shown
    norms = np.sqrt(np.maximum(K.diagonal(), np.finfo(float).tiny))
    for i in range(len(K)):
        same = (K[i] > (1.0 - 1e-13) * norms[i] * norms) & (codes != codes[i])
        if same.any():
            j = int(np.flatnonzero(same)[0])
            who = " and ".join(str(arranged.names[row]) for row in sorted((labelled[i], labelled[j])))
            if kernel.name == "precomputed" or np.array_equal(rows[i], rows[j]):
                raise ValueError(
                    f"Rows {who} are equal but labelled differently, so no separator gets both right: let labels be "
                    "wrong with softness > 0 (or softness='loo'), or drop one of them."
                )
            raise ValueError(
                f"Rows {who} cannot be told apart by this kernel in double precision, but are labelled differently: "
                "scale the features (standardize=True), give a smaller width or bias, or softness > 0."
            )


def _inseparable(softness: float, has_width: bool) -> str:
    """Return what to do when no separator was found."""
    soft = "let labels be wrong with softness > 0 (or softness='loo')"
    how = f"give a softness larger than {softness:g}" if softness > 0.0 else soft
    width = ", or give the kernel a smaller width" if has_width else ""
    return (
        "No separator in this kernel's feature space gets every labelled row right, as far as double precision can "
        f"tell: {how}{width}. Features far from 0 should be standardised."
    )


class Vote(NamedTuple):
    """What the balls say at the unlabelled rows."""

    shares: Array  # probabilities, (m, n_classes)
    errors: Array  # their standard errors
    converged: bool
    n_bounces: int  # of each ball
    r_hat: float  # NaN if no row is unlabelled


def take_vote(fitted: FittedBilliard, unlabelled: Array, settings: BayesianTransducer) -> Vote:
    """Let the balls fly until they agree about the unlabelled rows, or warn that the budget is spent."""
    voters = fitted.voters(unlabelled, settings.max_memory_mb)
    tallies, converged = play_until(fitted.games, len(unlabelled), voters, settings)
    r_hat = float(np.max([tally.r_hat() for tally in tallies])) if len(unlabelled) else np.nan
    n_bounces = max(game.n_bounces for game in fitted.games)
    shares, errors = votes.probabilities(tallies)
    if not converged:
        warnings.warn(
            f"The budget of max_bounces={settings.max_bounces} ended the vote: the largest standard error of a "
            f"probability is {errors.max():.3f}, not {settings.tolerance:g}. Raise max_bounces, or tolerance.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Vote(shares, errors, converged, n_bounces, r_hat)


def play_until(
    games: list[votes.Game], n_rows: int, voters: Callable[[], votes.Voters], settings: BayesianTransducer
) -> tuple[list[votes.Tally], bool]:
    """Play rounds, each as long as all before it, until the largest standard error is small enough."""
    # The rounds that make up the first quarter of the flights are forgotten as it goes on: all balls start in a like
    # manner, and what their starts have in common their differences cannot tell.
    rounds: list[list[votes.Tally]] = []
    lengths: list[int] = []
    n_bounces = min(max(MIN_BOUNCES // 4, 2 * games[0].pace), settings.max_bounces)
    while True:
        before = games[0].n_bounces
        for game in games:
            game.play(n_bounces)
        done = games[0].n_bounces
        rounds.append(votes.count_votes(games, n_rows, voters(), votes.LAST, settings.n_jobs))
        lengths.append(done - before)
        while len(rounds) > 1 and done - sum(lengths) + lengths[0] <= done / 4:
            del rounds[0], lengths[0]
            for game in games:
                game.forget(1)
        tallies = [votes.Tally.sum(parts) for parts in zip(*rounds, strict=True)]
        error = float(votes.probabilities(tallies)[1].max()) if n_rows else np.inf
        log.info("%d bounces of each ball: largest standard error %.4f", done, error)
        n_bounces = min(done, settings.max_bounces - done)
        enough = error <= settings.tolerance and done >= MIN_BOUNCES
        if enough or n_bounces <= 0 or (n_rows == 0 and done >= 4 * MIN_BOUNCES):
            return tallies, n_rows == 0 or error <= settings.tolerance
