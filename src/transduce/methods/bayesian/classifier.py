"""Bayesian transduction by kernel billiard (Graepel, Herbrich and Obermayer 1999)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import stdtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import rank_folds
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.core.validation import ClassTransducer
from transduce.device.kernels import Kernel, KernelLike, check_kernel, median_width, uses_width
from transduce.methods.bayesian import balls, joint
from transduce.methods.bayesian.balls import EmptyVersionSpaceError

INSTEAD = "For sets of classes with a guarantee, use RidgeConfidenceClassifier."
MIN_BOUNCES = 2_000
# What "cv" and "loo" try: multiples of the mean of the kernel's diagonal, and of the median
# distance.
SOFTNESSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LOO_SOFTNESSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
N_FOLDS = 5
CV_BALLS = 3
CV_BOUNCES = 2_000
LEAST = 1e-3  # probabilities below count as this
HOEFFDING_RISK = 0.01  # of the paper's rule

log = logging.getLogger(__name__)

Grid = Sequence[tuple[float, float]]  # pairs of width and softness
Games = list[balls.Game | balls.StraightGame]
RowNames = Sequence[object]  # by which errors name rows


class Choice(NamedTuple):
    """Width and softness, and the table of everything that was tried, if anything was."""

    width: float
    softness: float
    path: pd.DataFrame | None = None


def check_settings(settings: BayesianTransducer) -> None:
    """Raise a ValueError that says which setting to mend."""
    check_kernel(settings.kernel)
    if not checks.is_one_of(settings.width, "median", "cv"):
        checks.check_positive(
            "width (a number, 'median' or 'cv')", settings.width, least=1e-100, most=1e100
        )
    if not checks.is_one_of(settings.softness, "loo", "cv"):
        checks.check_number("softness (a number from 0, 'loo' or 'cv')", settings.softness)
        checks.check_not_negative("softness", settings.softness, "'loo', 'cv' or a number from 0")
    checks.check_number("bias", settings.bias)
    checks.check_not_negative("bias", settings.bias, "a number from 0")
    checks.check_whole("n_balls", settings.n_balls, least=1, most=100_000)
    checks.check_whole("max_bounces", settings.max_bounces, least=1)
    checks.check_positive("tolerance", settings.tolerance)
    checks.check_positive("max_memory_mb", settings.max_memory_mb)
    checks.check_flag("standardize", settings.standardize)
    checks.check_jobs(settings.n_jobs)
    _check_rejection("reject_below", settings.reject_below)
    _check_rejection("reject_share", settings.reject_share)
    if settings.reject_below is not None and settings.reject_share is not None:
        raise ValueError("Give either reject_below or reject_share, not both.")


def _check_rejection(name: str, share: float | None) -> None:
    """Raise a ValueError unless a share is None or a number from 0 to 1."""
    if share is None:
        return
    checks.check_number(name, share)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1; got {share!r}.")


class LabelledRows(NamedTuple):
    """The labelled rows, in an order of their own, their kernel, and how new rows are read."""

    kernel: Kernel
    rows: Array  # (l, d) labelled rows, or their kernel matrix if it is precomputed
    codes: AnyArray  # (l,) classes
    bias: float
    labelled: AnyArray  # (l,) their positions among all rows
    scaling: Scaling | None = None
    # Every row's precomputed kernel value with itself, if it is the same for all.
    common_diagonal: float | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1

    def gram(self, width: float) -> Array:
        """Return their kernel matrix with another width, bias included."""
        if self.kernel.name == "precomputed":
            return self.rows + self.bias
        kernel = replace(self.kernel, width=width)
        return kernel.checked_matrix(self.rows, self.rows) + self.bias

    def columns(self, rows: Array) -> tuple[Array, Array]:
        """Return kernel values with rows (l, m), and the rows' diagonal (m,), bias included."""
        if self.kernel.name == "precomputed":
            return rows[:, :-1].T + self.bias, rows[:, -1] + self.bias
        K = self.kernel.checked_matrix(self.rows, rows)
        return K + self.bias, self.kernel.diagonal(rows) + self.bias

    def compare(self, grid: Grid, seed: int, n_jobs: int | None) -> Choice:
        """Return the pair of width and softness with the smallest log-loss at hidden labels."""
        ties = self.rows
        if self.kernel.name == "precomputed":
            ties = np.sort(self.rows, axis=1)[:, :-9:-1]  # the largest values, in any row order
        n_folds = min(N_FOLDS, int(np.bincount(self.codes).min()))
        fold = rank_folds(self.codes.astype(float), ties, n_folds)
        jobs = [partial(self._loss, width, softness, fold, seed) for width, softness in grid]
        return best_of(grid, balls.in_threads(jobs, n_jobs))

    def leave_one_out(self, width: float) -> Choice:
        """Return the softness with the smallest leave-one-out log-loss for this width."""
        K = self.gram(width)
        mean = float(K.diagonal().mean())
        softnesses = [mean * factor for factor in LOO_SOFTNESSES]
        losses = leave_one_out_losses(K, self.codes, softnesses)
        return best_of([(width, softness) for softness in softnesses], losses)

    def _loss(
        self,
        width: float,
        softness: float,
        fold: AnyArray,
        seed: int,
    ) -> float:
        """Return the mean log-loss over all folds; infinity where no separator is found."""
        K = self.gram(width)
        total = 0.0
        for k in range(int(fold.max()) + 1):
            try:
                total -= self._log_likelihood(K, softness, fold == k, seed)
            except EmptyVersionSpaceError:
                return np.inf
        loss = total / len(self.codes)
        log.info("width=%.4g, softness=%.4g: log-loss %.4f", width, softness, loss)
        return loss

    def _log_likelihood(
        self,
        K: Array,
        softness: float,
        hidden: Mask,
        seed: int,
    ) -> float:
        """Return the sum of the log probabilities that a short billiard gives to hidden labels."""
        shown = ~hidden
        n_hidden = int(hidden.sum())
        n_games = len(balls.held_classes(self.n_classes))
        geometry = balls.Geometry.of(K[np.ix_(shown, shown)], softness=softness)
        random = np.random.RandomState(seed)
        seeds = random.randint(2**31 - 1, size=(n_games, CV_BALLS))
        refresh = max(20, 10 * len(K))
        games = geometry.games(self.codes[shown], self.n_classes, seeds, None, refresh)
        K_la = K[np.ix_(shown, hidden)]
        voter = geometry.voter(K_la, K.diagonal()[hidden])
        records = [game.play(CV_BOUNCES) for game in games]
        flown = balls.count_votes([records], n_hidden, [(slice(None), voter)], None)
        shares, _ = balls.probabilities(flown)
        of_truth = shares[np.arange(n_hidden), self.codes[hidden]]
        return float(np.sum(np.log(np.clip(of_truth, LEAST, 1.0))))


def best_of(grid: Grid, losses: Sequence[float] | Array) -> Choice:
    """Return the pair of width and softness with the smallest loss, and the table of all."""
    path = pd.DataFrame(grid, columns=["width", "softness"]).assign(log_loss=losses)
    width, softness = grid[int(np.argmin(losses))]
    return Choice(width, softness, path)


def choose(shown: LabelledRows, rows: Array, settings: BayesianTransducer, seed: int) -> Choice:
    """Choose width and softness; the median distance is that of all rows (n, d)."""
    widths = _widths_to_try(rows, settings)
    softnesses = _softnesses_to_try(shown, widths[0], settings)
    middle = Choice(widths[len(widths) // 2], softnesses[len(softnesses) // 2])
    if len(widths) * len(softnesses) == 1:
        return middle
    if np.bincount(shown.codes).min() < 2:
        warnings.warn(
            "A class has one label only, too few to choose width or softness by: "
            f"width {middle.width:.3g} and softness {middle.softness:.3g} are used.",
            stacklevel=3,
        )
        return middle
    if settings.softness != "loo":
        grid = [(width, softness) for width in widths for softness in softnesses]
        return shown.compare(grid, seed, settings.n_jobs)
    choices = [shown.leave_one_out(width) for width in widths]
    if len(choices) == 1:
        return choices[0]
    grid = [(choice.width, choice.softness) for choice in choices]
    return shown.compare(grid, seed, settings.n_jobs)


def _widths_to_try(rows: Array, settings: BayesianTransducer) -> list[float]:
    """Return the width that was set, or multiples of the median distance of rows (n, d)."""
    if not isinstance(settings.width, str):
        return [float(settings.width)]
    if not uses_width(settings.kernel):
        return [1.0]
    median = median_width(rows)
    if settings.width == "median":
        return [median]
    return [median * factor for factor in WIDTHS]


def _softnesses_to_try(
    shown: LabelledRows, width: float, settings: BayesianTransducer
) -> list[float]:
    """Return the softness that was set, or multiples of the mean of the kernel's diagonal."""
    if not isinstance(settings.softness, str):
        return [float(settings.softness)]
    mean = float(shown.gram(width).diagonal().mean())
    return [mean * factor for factor in SOFTNESSES]


def leave_one_out_losses(K: Array, codes: AnyArray, softnesses: Sequence[float]) -> Array:
    """Return the mean leave-one-out log-loss of every softness, by a Gaussian process.

    Shapes: K (l, l), codes (l,). The kernel is ``A = K + softness I`` times an unknown scale, and
    labels of -1 and 1 count as if they were latent values. With row i left out, the latent value
    there is Student's t with ``l - 1`` degrees of freedom and ::

        weights = A^-1 y                    diagonal = diag(A^-1)
        mean_i = y_i - weights_i / diagonal_i
        scale_i = (y' weights - weights_i^2 / diagonal_i) / (l - 1)
        spread_i = sqrt(scale_i / diagonal_i)

    One eigendecomposition of K gives all of it, for every softness.
    """
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    squares = vectors**2
    held = balls.held_classes(int(codes.max()) + 1)
    signs = np.where(codes[:, None] == held, 1.0, -1.0)
    projected = vectors.T @ signs
    freedom = len(codes) - 1
    tiny = np.finfo(float).tiny
    losses = []
    for softness in softnesses:
        inverse = 1.0 / (values + softness)
        weights = vectors @ (inverse[:, None] * projected)
        diagonal = (squares @ inverse)[:, None]
        means = signs - weights / diagonal
        sums = (signs * weights).sum(axis=0) - weights**2 / diagonal
        scales = np.maximum(sums, tiny) / freedom
        shares = stdtr(freedom, means * np.sqrt(diagonal / scales))
        if shares.shape[1] == 1:
            shares = np.hstack([1.0 - shares, shares])
        total = np.maximum(shares.sum(axis=1), tiny)
        of_truth = shares[np.arange(len(codes)), codes] / total
        log_likelihoods = np.log(np.clip(of_truth, LEAST, 1.0))
        losses.append(-np.mean(log_likelihoods))
    return np.array(losses)


def arrange_rows(
    sample: PartlyLabelled, codes: AnyArray, settings: BayesianTransducer
) -> tuple[LabelledRows, Array, Array]:
    """Scale and order the rows, so that the order in which they came leaves no trace.

    `codes` (l,) are classes. Returns the labelled rows, all of them, and the unlabelled ones: with
    a precomputed kernel their values with the labelled rows, then with themselves.
    """
    if settings.kernel == "precomputed":
        return _arrange_kernel_matrix(sample, codes, settings)
    kernel = Kernel(settings.kernel)
    rows = sample.X
    scaling = None
    if settings.standardize:
        scaling, rows = Scaling.fit_apply(rows)
    kernel.check_symmetry(rows)
    labelled = np.flatnonzero(sample.labelled)
    order = np.lexsort([codes, *rows[labelled].T[::-1]])
    labelled = labelled[order]
    bias = float(settings.bias)
    shown = LabelledRows(kernel, rows[labelled], codes[order], bias, labelled, scaling)
    return shown, rows, rows[~sample.labelled]


def _arrange_kernel_matrix(
    sample: PartlyLabelled, codes: AnyArray, settings: BayesianTransducer
) -> tuple[LabelledRows, Array, Array]:
    """Do so with a precomputed kernel matrix, whose rows stay in their order."""
    K = sample.X
    checks.check_square(K)
    labelled = np.flatnonzero(sample.labelled)
    diagonal = K.diagonal()
    shown = LabelledRows(
        Kernel(settings.kernel),
        K[np.ix_(labelled, labelled)],
        codes,
        float(settings.bias),
        labelled,
    )
    if np.allclose(diagonal, diagonal[0], rtol=1e-10, atol=0.0):
        shown = shown._replace(common_diagonal=float(diagonal[0]))
    unlabelled = np.column_stack([K[:, labelled], diagonal])[~sample.labelled]
    return shown, K, unlabelled


class FittedBilliard(NamedTuple):
    """What a fit keeps: labelled rows with the kernel as used, and the balls' rounds."""

    shown: LabelledRows
    geometry: balls.Geometry
    rounds: list[balls.Round]

    def voters(self, rows: Array, max_memory_mb: float) -> Callable[[], balls.Voters]:
        """Return a function that makes voters for the rows, some at a time.

        If the kernel values of all rows fit into memory, they are kept between its calls.
        """
        bytes_of_row = 8 * len(self.shown.codes)
        size = max(1, int(max_memory_mb * 2**20 // bytes_of_row))
        parts = arrays.blocks(len(rows), size)
        if len(parts) == 1:
            kept = [(parts[0], self._voter(rows))]
            return lambda: kept
        return lambda: ((part, self._voter(rows[part])) for part in parts)

    def cells(self, rows: Array, n_bounces: int) -> FoundCells:
        """Return the joint labellings of rows that the balls met in so many bounces."""
        K_la, k_aa = self.shown.columns(rows)
        voter = self.geometry.voter(K_la, k_aa)
        if voter.blind is not None and voter.blind.any() and self.geometry.softness == 0.0:
            row = int(np.flatnonzero(voter.blind)[0])
            raise ValueError(
                f"Row {row} is orthogonal to every labelled one, so that no separator can tell it: "
                "leave it out."
            )
        soft = None
        if self.geometry.softness > 0.0:
            soft = joint.SoftRows(self._noise_root(rows, K_la), self.geometry.space.rank)
        shares = joint.cell_shares(self.rounds, voter.columns, soft, n_bounces)
        return FoundCells(shares, len(rows))

    def _noise_root(self, rows: Array, K_la: Array) -> Array:
        """Return a root (r, r) of the covariance of latent values beside their separator's."""
        if self.shown.kernel.name == "precomputed":
            raise ValueError(
                "With a precomputed kernel and softness > 0 joint labellings are not there: they "
                "need kernel values between the rows themselves."
            )
        K_aa = self.shown.kernel.checked_matrix(rows, rows) + self.shown.bias
        columns = K_la / self.geometry.norms[:, None]
        coordinates = self.geometry.space.coordinates(columns)
        covariance = K_aa - coordinates.T @ coordinates
        covariance.flat[:: len(covariance) + 1] += self.geometry.softness
        values, vectors = np.linalg.eigh(covariance)
        return vectors * np.sqrt(np.maximum(values, 0.0))

    def _voter(self, rows: Array) -> balls.Voter:
        K_la, k_aa = self.shown.columns(rows)
        return self.geometry.voter(K_la, k_aa)


class FoundCells(NamedTuple):
    """The joint labellings of some rows."""

    cells: joint.CellShares
    n_rows: int


def bayes_point(fitted: FittedBilliard) -> Array:
    """Return the mean of all separators, as weights of kernel values, in the rows' order."""
    shown = fitted.shown
    n_games = len(balls.held_classes(shown.n_classes))
    centres = [joint.centre_of_mass(fitted.rounds, game) for game in range(n_games)]
    weights = np.array(centres) / fitted.geometry.norms
    weights = weights[:, np.argsort(shown.labelled)]
    if n_games == 1:
        return weights[0]
    return weights


def drop_balls(
    shown: LabelledRows,
    softness: float,
    settings: BayesianTransducer,
    names: RowNames,
    random: np.random.RandomState,
) -> tuple[balls.Geometry, Games]:
    """Put balls into version space, or raise a ValueError if it is empty."""
    K = shown.gram(shown.kernel.width)
    geometry = balls.Geometry.of(K, softness=softness)
    if softness == 0.0:
        check_contradictions(K, shown, names)
    n_games = len(balls.held_classes(shown.n_classes))
    seeds = random.randint(2**31 - 1, size=(n_games, settings.n_balls))
    try:
        games = geometry.games(
            shown.codes,
            shown.n_classes,
            seeds,
            settings.n_jobs,
            most_bounces=int(settings.max_bounces),
        )
    except EmptyVersionSpaceError:
        raise ValueError(_explain_empty_space(softness, settings)) from None
    return geometry, games


def _explain_empty_space(softness: float, settings: BayesianTransducer) -> str:
    """Return why there is no ball to drop, and which settings help."""
    advice = "let labels be wrong with softness > 0 (or softness='loo')"
    if softness > 0.0:
        advice = f"give a softness larger than {softness:g}"
    if uses_width(settings.kernel):
        advice += ", or give the kernel a smaller width"
    return (
        "No separator in this kernel's feature space gets every labelled row right, as far as "
        f"double precision can tell: {advice}. Features far from 0 should be standardised."
    )


def check_contradictions(K: Array, shown: LabelledRows, names: RowNames) -> None:
    """Raise a ValueError that names two rows which are one in feature space but differ in label."""
    norms = np.sqrt(np.maximum(K.diagonal(), np.finfo(float).tiny))
    for i in range(len(K)):
        is_same_point = K[i] > (1.0 - 1e-13) * norms[i] * norms
        others = np.flatnonzero(is_same_point & (shown.codes != shown.codes[i]))
        if len(others):
            raise ValueError(_explain_contradiction(shown, i, int(others[0]), names))


def _explain_contradiction(shown: LabelledRows, i: int, j: int, names: RowNames) -> str:
    """Return what is wrong with two labelled rows, and which settings help."""
    first, second = sorted((shown.labelled[i], shown.labelled[j]))
    pair = f"{names[first]} and {names[second]}"
    is_equal = np.array_equal(shown.rows[i], shown.rows[j])
    if shown.kernel.name == "precomputed" or is_equal:
        return (
            f"Rows {pair} are equal but labelled differently, so no separator gets both right: "
            "let labels be wrong with softness > 0 (or softness='loo'), or drop one of them."
        )
    return (
        f"Rows {pair} cannot be told apart by this kernel in double precision, but are labelled "
        "differently: scale the features (standardize=True), give a smaller width or bias, or "
        "softness > 0."
    )


class Vote(NamedTuple):
    """What the balls say at the unlabelled rows."""

    shares: Array  # probabilities, (m, n_classes)
    errors: Array  # their standard errors
    converged: bool
    n_bounces: int  # of each ball


class Tally:
    """Votes at the unlabelled rows, round by round.

    Rounds that make up the first quarter of the flights are forgotten as it goes on: all balls
    start in a like manner, and what their starts have in common their differences cannot tell.
    """

    def __init__(self, rounds: list[balls.Round]) -> None:
        self.rounds = rounds
        self.counts: list[Array] = []  # what `balls.count_votes` returns for each round
        self.n_bounces: list[int] = []  # in each round

    def add(self, round_: balls.Round, counts: Array, n_bounces: int) -> None:
        """Add a round, whose balls made so many bounces each."""
        self.rounds.append(round_)
        self.counts.append(counts)
        self.n_bounces.append(n_bounces)

    def forget_first(self, n_bounces: int) -> None:
        """Forget the first rounds of balls that have made so many bounces in all."""
        while len(self.n_bounces) > 1:
            n_forgotten = n_bounces - sum(self.n_bounces) + self.n_bounces[0]
            if n_forgotten > n_bounces / 4:
                return
            del self.rounds[0]
            del self.counts[0]
            del self.n_bounces[0]

    def probabilities(self) -> tuple[Array, Array]:
        """Return the probability of every class, and its standard error, both (m, n_classes)."""
        return balls.probabilities(np.sum(self.counts, axis=0), sum(self.n_bounces))


def take_vote(
    games: Games, fitted: FittedBilliard, unlabelled: Array, settings: BayesianTransducer
) -> Vote:
    """Let the balls fly until they agree about the unlabelled rows, or the budget is spent.

    They fly in rounds, each as long as all before it.
    """
    make_voters = fitted.voters(unlabelled, settings.max_memory_mb)
    n_rows = len(unlabelled)
    tally = Tally(fitted.rounds)
    error = np.inf
    n_bounces = min(max(MIN_BOUNCES // 4, 2 * games[0].pace), settings.max_bounces)
    if settings.n_balls == 1:
        n_bounces = min(bounces_by_hoeffding(settings.tolerance), int(settings.max_bounces))
    while True:
        n_before = games[0].n_bounces
        round_ = [game.play(n_bounces) for game in games]
        n_done = games[0].n_bounces
        counts = balls.count_votes([round_], n_rows, make_voters(), settings.n_jobs)
        tally.add(round_, counts, n_done - n_before)
        tally.forget_first(n_done)
        shares, errors = tally.probabilities()
        if n_rows:
            error = float(errors.max())
        log.info("%d bounces of each ball: largest standard error %.4f", n_done, error)
        n_bounces = min(n_done, settings.max_bounces - n_done)
        is_sure = error <= settings.tolerance and n_done >= MIN_BOUNCES
        has_no_question = n_rows == 0 and n_done >= 4 * MIN_BOUNCES
        if is_sure or has_no_question or n_bounces <= 0 or settings.n_balls == 1:
            break
    converged = n_rows == 0 or error <= settings.tolerance
    if not converged:
        _warn_of_budget(settings, error)
    return Vote(shares, errors, converged, max(game.n_bounces for game in games))


def _warn_of_budget(settings: BayesianTransducer, error: float) -> None:
    """Warn that the budget of bounces ended a vote, at which standard error."""
    warnings.warn(
        f"The budget of max_bounces={settings.max_bounces} ended the vote: "
        f"the largest standard error of a probability is {error:.3f}, "
        f"not {settings.tolerance:g}. Raise max_bounces, or tolerance.",
        ConvergenceWarning,
        stacklevel=4,
    )


def bounces_by_hoeffding(tolerance: float) -> int:
    """Return the bounces of one ball by the paper's rule (8).

    A mean of n independent numbers between 0 and 1 is off by `tolerance` with a probability of at
    most ``exp(-2 n tolerance^2)``, here 0.01.
    """
    wanted = -np.log(HOEFFDING_RISK) / (2.0 * tolerance**2)
    return int(np.ceil(min(wanted, 1e15)))


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTransducer(ClassTransducer):
    """Classifier in which every separator that gets the labelled rows right has a vote.

    Graepel, Herbrich, Obermayer (1999). Bayesian transduction. NIPS 12.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two
        rows.
    width : float, "median" or "cv", default="median"
        Length scale of the kernel; ``"median"`` is the median distance between two rows, ``"cv"``
        chooses a multiple of it by cross-validation on log-loss.
    softness : float, "loo" or "cv", default=0.0
        Added to the kernel's diagonal, so that labels may be wrong. 0: only separators that get
        every labelled row right have a vote. ``"loo"`` chooses by the leave-one-out log-loss of a
        Gaussian process, in closed form; ``"cv"`` by cross-validation on the log-loss of billiards,
        which takes several times as long.
    bias : float, default=1.0
        Constant added to the kernel, so that separators need not pass through the origin.
    n_balls : int, default=8
        Balls that take the vote, from different starts; the standard errors come from their
        differences, and are rough with fewer than four. 1 is the paper's billiard: a ball that
        keeps its velocity, with the rule (8) of the paper for `tolerance`, and standard errors as
        if bounces were independent, which they are not.
    tolerance : float, default=0.01
        The balls stop when the largest standard error of a probability at an unlabelled row is
        below this. A single ball bounces as often as Hoeffding's inequality asks so that a
        probability is off by this much in one case of a hundred: 1,000 times for 0.048.
    max_bounces : int, default=400_000
        Most bounces of each ball, exactly of a single one, and about of several, after a first
        flight that is not counted.
    reject_below, reject_share : float or None, default=None
        Unlabelled rows whose confidence is below the one, or the least confident share of them, are
        ``"rejected"``.
    max_memory_mb : float, default=1024
        Kernel values of labelled with unlabelled rows beyond this are computed some at a time,
        again in every round.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`,
        but for a few that are far from all others.
    n_jobs : int or None, default=None
        Balls that fly at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the balls. The same seed gives the same answer in whatever order the rows come,
        except that with a precomputed kernel the order of the labelled rows matters within the
        standard errors.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_, classes_
        Labels completed (n,); `Answer` with probabilities of all classes, confidence (the largest
        less the second largest) and the Monte Carlo standard error of the largest; the classes,
        sorted.
    width_, softness_ : float
        As used; the width is None for kernels that have none.
    cv_path_ : pandas.DataFrame
        With ``"loo"`` or ``"cv"``: what was tried, with its log-loss.
    n_bounces_, converged_ : int, bool
        Bounces of each ball; whether the tolerance was reached.
    bayes_point_ : array of shape (l,) or (n_classes, l)
        The mean of all separators, as weights of the kernel's values with the labelled rows, in
        their order, bias included: see `bayes_point_scores`. Its length is between 0 and 1.

    Notes
    -----
    With ``softness=0`` a probability is the share of version space on one side of the row: how sure
    the separators are, not how often they are right. With ``softness > 0`` it is the probability of
    the label. `predict_proba` follows the recorded flights at new rows; at an unlabelled row it
    gives the same probability as ``answer_``.

    Examples
    --------
    >>> from transduce import BayesianTransducer
    >>> model = BayesianTransducer(kernel="linear", random_state=0)
    >>> X = [[-3.0], [-2.0], [-0.1], [2.0], [3.0]]
    >>> model.fit(X, ["no", "no", None, "yes", "yes"]).transduction_
    array(['no', 'no', 'no', 'yes', 'yes'], dtype=object)
    >>> bool(model.answer_.confidence[0] < 0.5)  # separators between -2 and 2 disagree near 0
    True
    """

    kernel: KernelLike = "rbf"
    width: float | Literal["median", "cv"] = "median"
    softness: float | Literal["loo", "cv"] = 0.0
    bias: float = 1.0
    n_balls: int = 8
    tolerance: float = 0.01
    max_bounces: int = 400_000
    reject_below: float | None = None
    reject_share: float | None = None
    max_memory_mb: float = 1024
    standardize: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    missing_label: object = None

    def fit(self, X: Rows, y: Labels) -> Self:
        """Let the balls vote at the rows of X whose label is missing.

        X (n, d) are rows, or X (n, n) their kernel matrix; y (n,) are labels.
        """
        sample = validation.read_sample(self, X, y)
        self.classes_, codes = validation.class_labels(sample)
        check_settings(self)
        shown, rows, unlabelled = arrange_rows(sample, codes, self)
        random = check_random_state(self.random_state)
        names: RowNames = range(len(rows))
        if sample.index is not None:
            names = sample.index
        with few_threads(0):
            choice = choose(shown, rows, self, random.randint(2**31 - 1))
            shown = shown._replace(kernel=replace(shown.kernel, width=choice.width))
            geometry, games = drop_balls(shown, choice.softness, self, names, random)
            self._fitted = FittedBilliard(shown, geometry, [])
            vote = take_vote(games, self._fitted, unlabelled, self)
        self.softness_ = choice.softness
        self.width_ = choice.width if uses_width(self.kernel) else None
        if choice.path is not None:
            self.cv_path_ = choice.path
        self.bayes_point_ = bayes_point(self._fitted)
        self.converged_ = vote.converged
        self.n_bounces_ = vote.n_bounces
        self.answer_ = make_answer(sample, self.classes_, vote, self.softness_, self)
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    # ---------------------------------------------------------------------------------- prediction

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class (m, n_classes) at rows (m, d), by their flights.

        With a precomputed kernel rows hold kernel values with all n rows of `fit` and, if labels
        may be wrong, with the row itself as one more column (not needed if it was the same for all
        rows of `fit`).
        """
        check_is_fitted(self)
        rows = self._read_more(X)
        with few_threads(0):
            make_voters = self._fitted.voters(rows, self.max_memory_mb)
            flown = balls.count_votes(self._fitted.rounds, len(rows), make_voters(), self.n_jobs)
        shares, _ = balls.probabilities(flown)
        return shares

    def _read_more(self, X: Rows) -> Array:
        """Return new rows as those of `fit` were arranged."""
        shown = self._fitted.shown
        if shown.kernel.name != "precomputed":
            rows = validation.read_rows(self, X, reset=False)
            if shown.scaling is None:
                return rows
            return shown.scaling.apply(rows)
        rows = validation.read_kernel_rows(
            X,
            self.n_features_in_,
            shown.common_diagonal,
            own_value=self.softness_ > 0.0,
        )
        return np.nan_to_num(rows[:, [*shown.labelled, -1]])  # the diagonal may not be needed

    def decision_function(self, X: Rows) -> Array:
        """Return the probability of the second of two classes less that of the first (m,).

        Of several classes, the probability of each (m, n_classes).
        """
        shares = self.predict_proba(X)
        if shares.shape[1] == 2:
            return shares[:, 1] - shares[:, 0]
        return shares

    def predict(self, X: Rows) -> AnyArray:
        """Return the class (m,) at rows by the balls' vote."""
        shares = self.predict_proba(X)  # says so, if there was no fit
        return self.classes_[shares.argmax(axis=1)]

    # ------------------------------------------------------------------------------ one separator

    def bayes_point_scores(self, X: Rows) -> Array:
        """Return the values of one separator, the mean of all, at rows (m, d).

        Shape (m,), positive for the second of two classes, or (m, n_classes). One product of kernel
        values, where `predict_proba` follows the whole flights; the sign is nearly always that of
        the vote, the size is no probability.
        """
        check_is_fitted(self)
        rows = self._read_more(X)
        shown = self._fitted.shown
        weights = np.atleast_2d(self.bayes_point_)[:, np.argsort(np.argsort(shown.labelled))]
        scores = np.empty((len(rows), len(weights)))
        size = max(1, int(self.max_memory_mb * 2**20 // (8 * len(shown.codes))))
        for part in arrays.blocks(len(rows), size):
            K_la, _ = shown.columns(rows[part])
            scores[part] = (weights @ K_la).T
        if len(weights) == 1:
            return scores[:, 0]
        return scores

    def predict_bayes_point(self, X: Rows) -> AnyArray:
        """Return the class (m,) at rows by one separator, the mean of all."""
        scores = self.bayes_point_scores(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0.0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    # --------------------------------------------------------------------------- joint labellings

    def joint_labellings(self, X: Rows, *, most: int = 10) -> pd.DataFrame:
        """Return the most probable labellings of several rows together, most probable first.

        Which labels rows have together, such as the digits of a postal code: not the most probable
        label of each, but those that most separators give to all (the paper's equations 1 and 4).

        Parameters
        ----------
        X : array-like of shape (r, d)
            Rows, 62 at most.
        most : int, default=10
            Labellings returned.

        Returns
        -------
        pandas.DataFrame
            ``labels`` (a tuple of r classes), ``probability`` and its Monte Carlo
            ``standard_error``. Labellings that the balls did not meet are missing.

        Examples
        --------
        >>> from transduce import BayesianTransducer
        >>> model = BayesianTransducer(kernel="linear", tolerance=0.05, random_state=0)
        >>> model = model.fit([[-3.0], [-0.5], [0.5], [3.0]], ["no", None, None, "yes"])
        >>> model.joint_labellings([[-2.5], [2.5]], most=1)["labels"].tolist()
        [('no', 'yes')]
        """
        checks.check_whole("most", most, least=1)
        occupied = self._find_cells(X)
        n_rows = occupied.n_rows
        cells = occupied.cells.cells[:most]
        bits = (cells[:, None] >> np.arange(n_rows)) & 1
        return pd.DataFrame(
            {
                "labels": [tuple(self.classes_[row].tolist()) for row in bits],
                "probability": occupied.cells.shares[:most],
                "standard_error": occupied.cells.errors[:most],
            }
        )

    def labelling_probability(self, X: Rows, labels: Any) -> LabellingProbability:
        """Return the probability of a joint labelling of several rows, the paper's equation 1.

        Parameters
        ----------
        X : array-like of shape (r, d)
            At most 62 rows.
        labels : sequence of length r
            A class for each of them.

        Returns
        -------
        LabellingProbability
            With its Monte Carlo standard error; both are 0 where no ball met the labelling.
        """
        cells = self._find_cells(X)
        codes = self._read_codes(labels, cells.n_rows)
        cell = int(np.sum(codes << np.arange(cells.n_rows)))
        place = np.flatnonzero(cells.cells.cells == cell)
        if not len(place):
            return LabellingProbability(0.0, 0.0)
        share = cells.cells.shares[place[0]]
        error = cells.cells.errors[place[0]]
        return LabellingProbability(float(share), float(error))

    def _read_codes(self, labels: Any, n_rows: int) -> AnyArray:
        """Return the class numbers (r,) of labels."""
        try:
            listed = list(labels)
        except TypeError:
            listed = []
        if isinstance(labels, str) or len(listed) != n_rows:
            raise ValueError(f"labels must hold one label for each of the {n_rows} rows.")
        places = {label: code for code, label in enumerate(self.classes_.tolist())}
        names = ", ".join(map(repr, places))
        codes = []
        for label in np.asarray(listed, dtype=object):
            is_hashable = label is not None and not isinstance(label, list | dict | np.ndarray)
            if not is_hashable or label not in places:
                raise ValueError(f"labels holds {label!r}, which is none of the classes {names}.")
            codes.append(places[label])
        return np.array(codes, dtype=np.int64)

    def _find_cells(self, X: Rows) -> FoundCells:
        """Return the labellings of rows that the recorded flights met."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise ValueError(
                "Joint labellings are there for two classes: several classes vote one against the "
                "rest, each on flights of its own, which have no joint distribution."
            )
        rows = self._read_more(X)
        if not 1 <= len(rows) <= joint.MOST_ROWS:
            raise ValueError(
                f"Joint labellings are there for 1 to {joint.MOST_ROWS} rows; got {len(rows)}."
            )
        with few_threads(0):
            return self._fitted.cells(rows, self.n_bounces_)


class LabellingProbability(NamedTuple):
    """The probability of a joint labelling.

    Parameters
    ----------
    probability : float
        The share of version space that labels the rows so.
    standard_error : float
        Its Monte Carlo standard error.

    Examples
    --------
    >>> from transduce import BayesianTransducer
    >>> model = BayesianTransducer(kernel="linear", tolerance=0.05, random_state=0)
    >>> model = model.fit([[-3.0], [-0.5], [0.5], [3.0]], ["no", None, None, "yes"])
    >>> model.labelling_probability([[-0.5], [0.5]], ["yes", "no"]).probability
    0.0
    """

    probability: float
    standard_error: float


def make_answer(
    sample: PartlyLabelled,
    classes: AnyArray,
    vote: Vote,
    softness: float,
    settings: BayesianTransducer,
) -> Answer:
    """Return the answer at the unlabelled rows."""
    best = vote.shares.argmax(axis=1)
    ordered = np.sort(vote.shares, axis=1)
    confidence = ordered[:, -1] - ordered[:, -2]
    answer = Answer(
        rows=sample.unlabelled,
        values=classes[best],
        status=np.where(confidence > 1e-12, "answered", "tied"),
        guarantee=Guarantee("none", reasons=(_explain_probabilities(vote, softness), INSTEAD)),
        confidence=confidence,
        standard_errors=vote.errors[np.arange(len(best)), best],
        probabilities=vote.shares,
        classes=classes,
        index=sample.index_at(sample.unlabelled),
        diagnostics={"n_bounces": vote.n_bounces, "n_balls": settings.n_balls},
    )
    if settings.reject_below is None and settings.reject_share is None:
        return answer
    return answer.reject(below=settings.reject_below, share=settings.reject_share)


def _explain_probabilities(vote: Vote, softness: float) -> str:
    """Return what the probabilities mean and how precise they are."""
    sentence = "Probabilities are that a random separator votes for"
    if softness > 0.0:
        sentence = "Probabilities are of the label, by the model"
    if vote.errors.size:
        error = vote.errors.max()
        sentence += f"; their largest Monte Carlo standard error is {error:.2g}"
        if not vote.converged:
            sentence += ", where the budget of bounces ended the vote"
    return f"{sentence}."
