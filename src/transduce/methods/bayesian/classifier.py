"""Bayesian transduction by kernel billiard (Graepel, Herbrich and Obermayer 1999)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

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
from transduce.core.types import AnyArray, Array
from transduce.core.validation import ClassTransducer
from transduce.device.kernels import Kernel, KernelLike, check_kernel, median_width, uses_width
from transduce.methods.bayesian import balls
from transduce.methods.bayesian.balls import EmptyVersionSpaceError

INSTEAD = "For sets of classes with a guarantee, use RidgeConfidenceClassifier."
MIN_BOUNCES = 2_000
# What "cv" and "loo" try: multiples of the mean of the kernel's diagonal, and of the median distance.
SOFTNESSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LOO_SOFTNESSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
N_FOLDS = 5
CV_BALLS, CV_BOUNCES = 3, 2_000
LEAST = 1e-3  # probabilities below count as this

log = logging.getLogger(__name__)

Grid = Sequence[tuple[float, float]]  # pairs of width and softness
Choice = tuple[
    float, float, pd.DataFrame | None
]  # width, softness, and what was tried, if anything was


def check_settings(given: BayesianTransducer) -> None:
    """Raise a ValueError that says which setting to mend."""
    check_kernel(given.kernel)
    if not isinstance(given.width, str) or given.width not in ("median", "cv"):
        checks.check_positive(
            "width (a number, 'median' or 'cv')", given.width, least=1e-100, most=1e100
        )
    if not isinstance(given.softness, str) or given.softness not in ("loo", "cv"):
        checks.check_number("softness (a number from 0, 'loo' or 'cv')", given.softness)
        checks.check_not_negative("softness", given.softness, "'loo', 'cv' or a number from 0")
    checks.check_number("bias", given.bias)
    checks.check_not_negative("bias", given.bias, "a number from 0")
    checks.check_whole("n_balls", given.n_balls, least=2)
    checks.check_whole("max_bounces", given.max_bounces, least=1)
    checks.check_positive("tolerance", given.tolerance)
    checks.check_positive("max_memory_mb", given.max_memory_mb)
    checks.check_flag("standardize", given.standardize)
    checks.check_jobs(given.n_jobs)
    shares = {"reject_below": given.reject_below, "reject_share": given.reject_share}
    for name, share in shares.items():
        if share is not None:
            checks.check_number(name, share)
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1; got {share!r}.")
    if None not in shares.values():
        raise ValueError("Give either reject_below or reject_share, not both.")


class LabelledRows(NamedTuple):
    """The labelled rows, in an order of their own, their kernel, and how new rows are read."""

    kernel: Kernel
    rows: Array  # (l, d) labelled rows, or their kernel matrix if it is precomputed
    codes: AnyArray  # (l,) classes
    bias: float
    labelled: AnyArray  # (l,) their positions among all rows
    scaling: Scaling | None = None
    own: float | None = (
        None  # every row's precomputed kernel value with itself, if it is the same for all
    )

    def gram(self, width: float) -> Array:
        """Return their kernel matrix with another width, bias included."""
        if self.kernel.name == "precomputed":
            return self.rows + self.bias
        return replace(self.kernel, width=width).checked_matrix(self.rows, self.rows) + self.bias

    def columns(self, rows: Array) -> tuple[Array, Array]:
        """Return their kernel values with rows (l, m), and of the rows with themselves (m,), bias included."""
        if self.kernel.name == "precomputed":
            return rows[:, :-1].T + self.bias, rows[:, -1] + self.bias
        K = self.kernel.checked_matrix(self.rows, rows)
        return K + self.bias, self.kernel.diagonal(rows) + self.bias

    def compare(self, grid: Grid, seed: int, n_jobs: int | None) -> Choice:
        """Return the pair of width and softness with the smallest log-loss of billiards at hidden labels."""
        ties = (
            np.sort(self.rows, axis=1)[:, :-9:-1]
            if self.kernel.name == "precomputed"
            else self.rows
        )
        fold = rank_folds(
            self.codes.astype(float), ties, min(N_FOLDS, int(np.bincount(self.codes).min()))
        )
        return best_of(
            grid,
            balls.in_threads([partial(self._loss, *pair, fold, seed) for pair in grid], n_jobs),
        )

    def leave_one_out(self, width: float) -> Choice:
        """Return the softness with the smallest leave-one-out log-loss for this width."""
        K = self.gram(width)
        softnesses = [float(K.diagonal().mean()) * factor for factor in LOO_SOFTNESSES]
        losses = leave_one_out_losses(K, self.codes, softnesses)
        return best_of([(width, softness) for softness in softnesses], losses)

    def _loss(self, width: float, softness: float, fold: AnyArray, seed: int) -> float:
        """Return the mean log-loss over all folds; infinity where no separator is found."""
        K, n_classes, total = self.gram(width), int(self.codes.max()) + 1, 0.0
        refresh, n_games = max(20, 10 * len(K)), len(balls.held_classes(n_classes))
        for k in range(int(fold.max()) + 1):
            shown, hidden = fold != k, fold == k
            geometry = balls.Geometry.of(K[np.ix_(shown, shown)], softness=softness)
            seeds = np.random.RandomState(seed).randint(2**31 - 1, size=(n_games, CV_BALLS))
            try:
                games = geometry.games(self.codes[shown], n_classes, seeds, None, refresh)
            except EmptyVersionSpaceError:
                return np.inf
            n_hidden = int(hidden.sum())
            voter = geometry.voter(K[np.ix_(shown, hidden)], K.diagonal()[hidden])
            played = [game.play(CV_BOUNCES) for game in games]
            flown = balls.count_votes([played], n_hidden, [(slice(None), voter)], None)
            right = balls.probabilities(flown)[0][np.arange(n_hidden), self.codes[hidden]]
            total -= float(np.sum(np.log(np.clip(right, LEAST, 1.0))))
        log.info(
            "width=%.4g, softness=%.4g: log-loss %.4f", width, softness, total / len(self.codes)
        )
        return total / len(self.codes)


def best_of(grid: Grid, losses: Sequence[float] | Array) -> Choice:
    """Return the pair of width and softness with the smallest loss, and the table of all."""
    path = pd.DataFrame(grid, columns=["width", "softness"]).assign(log_loss=losses)
    return (*grid[int(np.argmin(losses))], path)


def choose(shown: LabelledRows, rows: Array, settings: BayesianTransducer, seed: int) -> Choice:
    """Choose width and softness; the median distance is that of all rows (n, d)."""
    if isinstance(settings.width, str):
        has_width = uses_width(settings.kernel)
        factors = WIDTHS if has_width and settings.width == "cv" else (1.0,)
        middle = median_width(rows) if has_width else 1.0
        widths = [middle * factor for factor in factors]
    else:
        widths = [float(settings.width)]
    if isinstance(settings.softness, str):
        unit = float(shown.gram(widths[0]).diagonal().mean())
        softnesses = [unit * factor for factor in SOFTNESSES]
    else:
        softnesses = [float(settings.softness)]
    width, softness = widths[len(widths) // 2], softnesses[len(softnesses) // 2]
    if len(widths) * len(softnesses) == 1:
        return width, softness, None
    if np.bincount(shown.codes).min() < 2:
        warnings.warn(
            f"A class has one label only, too few to choose width or softness by: width {width:.3g} and softness "
            f"{softness:.3g} are used.",
            stacklevel=3,
        )
        return width, softness, None
    grid = [(each, value) for each in widths for value in softnesses]
    if settings.softness == "loo":
        choices = [shown.leave_one_out(each) for each in widths]
        if len(choices) == 1:
            return choices[0]
        grid = [choice[:2] for choice in choices]
    return shown.compare(grid, seed, settings.n_jobs)


def leave_one_out_losses(K: Array, codes: AnyArray, softnesses: Sequence[float]) -> Array:
    """Return the mean leave-one-out log-loss of every softness, by a Gaussian process. Shapes: K (l, l), codes (l,)."""
    # With the kernel ``A = K + softness I`` times an unknown scale, labels of -1 and 1 as if they were latent values,
    # and row i left out, the latent value there is Student's t, of mean ``y_i - weights_i / diagonal_i`` with weights
    # ``A^-1 y`` and the diagonal of ``A^-1``, spread ``1 / diagonal_i`` times the scale, and scale ``y' A^-1 y / l`` of
    # the other ``l - 1`` rows: that of all less ``weights_i^2 / diagonal_i``. One eigendecomposition of K gives all.
    values, vectors = np.linalg.eigh(K)
    values, tiny, rest = np.maximum(values, 0.0), np.finfo(float).tiny, len(codes) - 1
    signs = np.where(codes[:, None] == balls.held_classes(int(codes.max()) + 1), 1.0, -1.0)
    turned, squares = vectors.T @ signs, vectors**2
    losses = []
    for softness in softnesses:
        inverse = 1.0 / (values + softness)
        weights, diagonal = vectors @ (inverse[:, None] * turned), (squares @ inverse)[:, None]
        means = signs - weights / diagonal
        scales = np.maximum((signs * weights).sum(axis=0) - weights**2 / diagonal, tiny) / rest
        shares = stdtr(rest, means * np.sqrt(diagonal / scales))
        shares = np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares
        right = shares[np.arange(len(codes)), codes] / np.maximum(shares.sum(axis=1), tiny)
        losses.append(-np.mean(np.log(np.clip(right, LEAST, 1.0))))
    return np.array(losses)


def arrange_rows(
    sample: PartlyLabelled, codes: AnyArray, settings: BayesianTransducer
) -> tuple[LabelledRows, Array, Array]:
    """Scale and order the rows, so that the order in which they came leaves no trace; codes (l,) are classes.

    Returns the labelled rows, all of them, and the unlabelled ones: with a precomputed kernel their values with the
    labelled rows, then with themselves.
    """
    rows, labelled = sample.X, np.flatnonzero(sample.labelled)
    kernel, bias = Kernel(settings.kernel), float(settings.bias)
    if settings.kernel == "precomputed":
        checks.check_square(rows)
        own = rows.diagonal()
        same = float(own[0]) if np.allclose(own, own[0], rtol=1e-10, atol=0.0) else None
        shown = LabelledRows(
            kernel, rows[np.ix_(labelled, labelled)], codes, bias, labelled, own=same
        )
        return shown, rows, np.column_stack([rows[:, labelled], own])[~sample.labelled]
    scaling, rows = Scaling.fit_apply(rows) if settings.standardize else (None, rows)
    kernel.check_symmetry(rows)
    order = np.lexsort([codes, *rows[labelled].T[::-1]])
    labelled = labelled[order]
    shown = LabelledRows(kernel, rows[labelled], codes[order], bias, labelled, scaling)
    return shown, rows, rows[~sample.labelled]


class FittedBilliard(NamedTuple):
    """What a fit keeps: labelled rows with the kernel as used, and the balls' rounds."""

    shown: LabelledRows
    geometry: balls.Geometry
    rounds: list[balls.Round]

    def voters(self, rows: Array, max_memory_mb: float) -> Callable[[], balls.Voters]:
        """Return what makes voters for the rows, some at a time; kept between rounds if all fit into memory."""
        size = max(1, int(max_memory_mb * 2**20 // (8 * len(self.shown.codes))))
        parts = arrays.blocks(len(rows), size)
        if len(parts) == 1:
            kept = [(parts[0], self.geometry.voter(*self.shown.columns(rows)))]
            return lambda: kept
        return lambda: (
            (part, self.geometry.voter(*self.shown.columns(rows[part]))) for part in parts
        )


def drop_balls(
    shown: LabelledRows, softness: float, settings: BayesianTransducer, names: Any, random: Any
) -> tuple[balls.Geometry, list[balls.Game]]:
    """Put balls into version space, or raise a ValueError if it is empty."""
    K, n_classes = shown.gram(shown.kernel.width), int(shown.codes.max()) + 1
    geometry = balls.Geometry.of(K, softness=softness)
    if softness == 0.0:
        check_contradictions(K, shown, names)
    seeds = random.randint(2**31 - 1, size=(len(balls.held_classes(n_classes)), settings.n_balls))
    try:
        return geometry, geometry.games(shown.codes, n_classes, seeds, settings.n_jobs)
    except EmptyVersionSpaceError:
        soft = "let labels be wrong with softness > 0 (or softness='loo')"
        how = f"give a softness larger than {softness:g}" if softness > 0.0 else soft
        width = ", or give the kernel a smaller width" if uses_width(settings.kernel) else ""
        raise ValueError(
            "No separator in this kernel's feature space gets every labelled row right, as far as double precision "
            f"can tell: {how}{width}. Features far from 0 should be standardised."
        ) from None


def check_contradictions(K: Array, shown: LabelledRows, names: Any) -> None:
    """Raise a ValueError that names two rows which are one in feature space but differ in label."""
    rows, codes, labelled = shown.rows, shown.codes, shown.labelled
    norms = np.sqrt(np.maximum(K.diagonal(), np.finfo(float).tiny))
    for i in range(len(K)):
        same = (K[i] > (1.0 - 1e-13) * norms[i] * norms) & (codes != codes[i])
        if same.any():
            j = int(np.flatnonzero(same)[0])
            who = " and ".join(str(names[row]) for row in sorted((labelled[i], labelled[j])))
            if shown.kernel.name == "precomputed" or np.array_equal(rows[i], rows[j]):
                raise ValueError(
                    f"Rows {who} are equal but labelled differently, so no separator gets both right: let labels be "
                    "wrong with softness > 0 (or softness='loo'), or drop one of them."
                )
            raise ValueError(
                f"Rows {who} cannot be told apart by this kernel in double precision, but are labelled differently: "
                "scale the features (standardize=True), give a smaller width or bias, or softness > 0."
            )


class Vote(NamedTuple):
    """What the balls say at the unlabelled rows."""

    shares: Array  # probabilities, (m, n_classes)
    errors: Array  # their standard errors
    converged: bool
    n_bounces: int  # of each ball


def take_vote(
    games: list[balls.Game], fitted: FittedBilliard, unlabelled: Array, settings: BayesianTransducer
) -> Vote:
    """Let the balls fly until they agree about the unlabelled rows, or warn that the budget is spent."""
    # Rounds, each as long as all before it. Those that make up the first quarter of the flights are forgotten as it
    # goes on: all balls start in a like manner, and what their starts have in common their differences cannot tell.
    voters, n_rows = fitted.voters(unlabelled, settings.max_memory_mb), len(unlabelled)
    counted: list[Array] = []
    lengths: list[int] = []
    n_bounces = min(max(MIN_BOUNCES // 4, 2 * games[0].pace), settings.max_bounces)
    while True:
        before = games[0].n_bounces
        fitted.rounds.append([game.play(n_bounces) for game in games])
        done = games[0].n_bounces
        counted.append(balls.count_votes(fitted.rounds[-1:], n_rows, voters(), settings.n_jobs))
        lengths.append(done - before)
        while len(lengths) > 1 and done - sum(lengths) + lengths[0] <= done / 4:
            del fitted.rounds[0], counted[0], lengths[0]
        shares, errors = balls.probabilities(np.sum(counted, axis=0))
        error = float(errors.max()) if n_rows else np.inf
        log.info("%d bounces of each ball: largest standard error %.4f", done, error)
        n_bounces = min(done, settings.max_bounces - done)
        enough = error <= settings.tolerance and done >= MIN_BOUNCES
        if enough or n_bounces <= 0 or (n_rows == 0 and done >= 4 * MIN_BOUNCES):
            break
    converged = n_rows == 0 or error <= settings.tolerance
    if not converged:
        warnings.warn(
            f"The budget of max_bounces={settings.max_bounces} ended the vote: the largest standard error of a "
            f"probability is {error:.3f}, not {settings.tolerance:g}. Raise max_bounces, or tolerance.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Vote(shares, errors, converged, max(game.n_bounces for game in games))


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTransducer(ClassTransducer):
    """Classifier in which every separator that gets the labelled rows right has a vote.

    Graepel, Herbrich, Obermayer (1999). Bayesian transduction. NIPS 12.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a function of two rows.
    width : float, "median" or "cv", default="median"
        Length scale of the kernel; ``"median"`` is the median distance between two rows, ``"cv"`` chooses a multiple
        of it by cross-validation on log-loss.
    softness : float, "loo" or "cv", default=0.0
        Added to the kernel's diagonal, so that labels may be wrong. 0: only separators that get every labelled row
        right have a vote. ``"loo"`` chooses by the leave-one-out log-loss of a Gaussian process, in closed form;
        ``"cv"`` by cross-validation on the log-loss of billiards, which takes several times as long.
    bias : float, default=1.0
        Constant added to the kernel, so that separators need not pass through the origin.
    n_balls : int, default=8
        Balls that take the vote, from different starts; the standard errors come from their differences, and are rough
        with fewer than four.
    tolerance : float, default=0.01
        The balls stop when the largest standard error of a probability at an unlabelled row is below this.
    max_bounces : int, default=400_000
        Most bounces of each ball, about; a ball bounces at least some thirty times for each labelled row.
    reject_below, reject_share : float or None, default=None
        Unlabelled rows whose confidence is below the one, or the least confident share of them, are ``"rejected"``.
    max_memory_mb : float, default=1024
        Kernel values of labelled with unlabelled rows beyond this are computed some at a time, again in every round.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`, but for a few that
        are far from all others.
    n_jobs : int or None, default=None
        Balls that fly at the same time, in joblib's way.
    random_state : int, RandomState or None, default=None
        Seed of the balls. The same seed gives the same answer in whatever order the rows come, except that with a
        precomputed kernel the order of the labelled rows matters within the standard errors.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_, classes_
        Labels completed (n,); `Answer` with probabilities of all classes, confidence (the largest less the second
        largest) and the Monte Carlo standard error of the largest; the classes, sorted.
    width_, softness_ : float
        As used; the width is None for kernels that have none.
    cv_path_ : pandas.DataFrame
        With ``"loo"`` or ``"cv"``: what was tried, with its log-loss.
    n_bounces_, converged_ : int, bool
        Bounces of each ball; whether the tolerance was reached.

    Notes
    -----
    With ``softness=0`` a probability is the share of version space on one side of the row: how sure the separators are,
    not how often they are right. With ``softness > 0`` it is the probability of the label. `predict_proba` follows the
    recorded flights at new rows; at an unlabelled row it gives the same probability as ``answer_``.

    Examples
    --------
    >>> from transduce import BayesianTransducer
    >>> model = BayesianTransducer(kernel="linear", random_state=0)
    >>> model.fit([[-3.0], [-2.0], [-0.1], [2.0], [3.0]], ["no", "no", None, "yes", "yes"]).transduction_
    array(['no', 'no', 'no', 'yes', 'yes'], dtype=object)
    >>> bool(model.answer_.confidence[0] < 0.5)  # separators between -2 and 2 disagree near 0
    True
    """

    kernel: KernelLike = "rbf"
    width: float | str = "median"
    softness: float | str = 0.0
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

    def fit(self, X: Any, y: Any) -> Self:
        """Let the balls vote at the rows of X (n, d), or of their kernel matrix, whose label in y (n,) is missing."""
        sample = validation.read_sample(self, X, y)
        self.classes_, codes = validation.class_labels(sample)
        check_settings(self)
        shown, rows, unlabelled = arrange_rows(sample, codes, self)
        random = check_random_state(self.random_state)
        names = range(len(rows)) if sample.index is None else sample.index
        with few_threads(0):
            width, self.softness_, path = choose(shown, rows, self, random.randint(2**31 - 1))
            shown = shown._replace(kernel=replace(shown.kernel, width=width))
            geometry, games = drop_balls(shown, self.softness_, self, names, random)
            self._fitted = FittedBilliard(shown, geometry, [])
            vote = take_vote(games, self._fitted, unlabelled, self)
        self.width_ = width if uses_width(self.kernel) else None
        if path is not None:
            self.cv_path_ = path
        self.converged_, self.n_bounces_ = vote.converged, vote.n_bounces
        self.answer_ = make_answer(sample, self.classes_, vote, self.softness_, self)
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    # ------------------------------------------------------------------------------------------- prediction

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class (m, n_classes) at rows (m, d), from the recorded flights.

        With a precomputed kernel rows hold kernel values with all n rows of `fit` and, if labels may be wrong, with the
        row itself as one more column (not needed if it was the same for all rows of `fit`).
        """
        check_is_fitted(self)
        shown = self._fitted.shown
        if shown.kernel.name == "precomputed":
            own_value = self.softness_ > 0.0
            rows = validation.read_kernel_rows(
                X, self.n_features_in_, shown.own, own_value=own_value
            )
            rows = np.nan_to_num(rows[:, [*shown.labelled, -1]])  # an own value may not be needed
        else:
            rows = validation.read_rows(self, X, reset=False)
            rows = shown.scaling.apply(rows) if shown.scaling else rows
        with few_threads(0):
            voters = self._fitted.voters(rows, self.max_memory_mb)
            flown = balls.count_votes(self._fitted.rounds, len(rows), voters(), self.n_jobs)
        return balls.probabilities(flown)[0]

    def decision_function(self, X: Any) -> Array:
        """Return the probability of the second of two classes less the first's (m,), or that of all (m, n_classes)."""
        shares = self.predict_proba(X)
        return shares[:, 1] - shares[:, 0] if shares.shape[1] == 2 else shares

    def predict(self, X: Any) -> AnyArray:
        """Return the class (m,) at rows by the balls' vote."""
        shares = self.predict_proba(X)  # says so, if there was no fit
        return self.classes_[shares.argmax(axis=1)]


def make_answer(
    sample: PartlyLabelled,
    classes: AnyArray,
    vote: Vote,
    softness: float,
    settings: BayesianTransducer,
) -> Answer:
    """Return the answer at the unlabelled rows."""
    best, ordered = vote.shares.argmax(axis=1), np.sort(vote.shares, axis=1)
    confidence = ordered[:, -1] - ordered[:, -2]
    what = "of the label, by the model" if softness > 0.0 else "that a random separator votes for"
    said = f"Probabilities are {what}"
    if vote.errors.size:
        end = "" if vote.converged else ", where the budget of bounces ended the vote"
        said += f"; their largest Monte Carlo standard error is {vote.errors.max():.2g}{end}"
    answer = Answer(
        rows=sample.unlabelled,
        values=classes[best],
        status=np.where(confidence > 1e-12, "answered", "tied"),
        guarantee=Guarantee("none", reasons=(f"{said}.", INSTEAD)),
        confidence=confidence,
        standard_errors=vote.errors[np.arange(len(best)), best],
        probabilities=vote.shares,
        classes=classes,
        index=None if sample.index is None else sample.index[sample.unlabelled],
        diagnostics={"n_bounces": vote.n_bounces, "n_balls": settings.n_balls},
    )
    if settings.reject_below is None and settings.reject_share is None:
        return answer
    return answer.reject(below=settings.reject_below, share=settings.reject_share)
