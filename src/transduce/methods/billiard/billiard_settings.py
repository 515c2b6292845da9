"""Settings of Bayesian transduction, and how width and softness are chosen: by a rule, leave-one-out or folds."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr
from sklearn.utils.parallel import Parallel, delayed

from transduce.core import checks
from transduce.core.ranks import rank_folds
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, check_kernel, median_width, uses_width
from transduce.methods.billiard.flight import EmptyVersionSpaceError
from transduce.methods.billiard.votes import LAST, Geometry, count_votes, held_classes, probabilities

if TYPE_CHECKING:
    from transduce.methods.billiard.classifier import BayesianTransducer


def read_settings(given: BayesianTransducer) -> BayesianTransducer:
    """Return a copy of an estimator's settings, checked, or raise a ValueError that says which one to mend."""
    read: dict[str, Any] = {}
    check_kernel(given.kernel)
    if not isinstance(given.width, str) or given.width not in ("median", "cv"):
        words = "width (a number, 'median' or 'cv')"
        read["width"] = checks.check_positive(words, given.width, least=1e-100, most=1e100)
    if not isinstance(given.softness, str) or given.softness not in ("loo", "cv"):
        checks.check_number("softness (a number from 0, 'loo' or 'cv')", given.softness)
        words = "'loo', 'cv' or a number from 0"
        read["softness"] = checks.check_not_negative("softness", given.softness, words)
    checks.check_number("bias", given.bias)
    read["bias"] = checks.check_not_negative("bias", given.bias, "a number from 0")
    checks.check_whole("n_balls", given.n_balls, least=2)
    checks.check_whole("max_bounces", given.max_bounces, least=1)
    for name in ("tolerance", "max_memory_mb"):
        read[name] = checks.check_positive(name, getattr(given, name))
    checks.check_choice("predict_with", given.predict_with, ("vote", "bayes_point"))
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
    return replace(given, **read)


log = logging.getLogger(__name__)

# What "cv" and "loo" try: multiples of the mean of the kernel's diagonal, and of the median distance.
SOFTNESSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LOO_SOFTNESSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
N_FOLDS = 5
CV_BALLS, CV_BOUNCES = 3, 2_000
LEAST = 1e-3  # probabilities below count as this


class LabelledRows(NamedTuple):
    """The labelled rows and their kernel, whose width and softness are to be chosen."""

    kernel: Kernel
    rows: Array  # (l, d) labelled rows, or their kernel matrix if it is precomputed
    codes: AnyArray  # (l,) classes
    bias: float

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

    def compare(self, grid: Sequence[tuple[float, float]], seed: int, n_jobs: int | None) -> pd.DataFrame:
        """Return the log-loss of billiards at hidden labels for every pair of width and softness, one line each."""
        ties = np.sort(self.rows, axis=1)[:, :-9:-1] if self.kernel.name == "precomputed" else self.rows
        fold = rank_folds(self.codes.astype(float), ties, min(N_FOLDS, int(np.bincount(self.codes).min())))
        losses = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(self._loss)(width, softness, fold, seed) for width, softness in grid
        )
        return _as_path(grid, losses)

    def leave_one_out(self, width: float) -> pd.DataFrame:
        """Return the leave-one-out log-loss of every softness with this width, one line each."""
        K = self.gram(width)
        softnesses = [float(K.diagonal().mean()) * factor for factor in LOO_SOFTNESSES]
        losses = leave_one_out_losses(K, self.codes, softnesses)
        return _as_path([(width, softness) for softness in softnesses], losses)

    def _loss(self, width: float, softness: float, fold: AnyArray, seed: int) -> float:
        """Return the mean log-loss over all folds; infinity where no separator is found."""
        K, n_classes, total = self.gram(width), int(self.codes.max()) + 1, 0.0
        refresh, n_games = max(20, 10 * len(K)), len(held_classes(n_classes))
        for k in range(int(fold.max()) + 1):
            shown, hidden = fold != k, fold == k
            geometry = Geometry.of(K[np.ix_(shown, shown)], softness=softness)
            seeds = np.random.RandomState(seed).randint(2**31 - 1, size=(n_games, CV_BALLS))
            try:
                games = geometry.games(self.codes[shown], n_classes, seeds, None, refresh)
            except EmptyVersionSpaceError:
                return np.inf
            for game in games:
                game.play(CV_BOUNCES)
            n_hidden = int(hidden.sum())
            voter = geometry.voter(K[np.ix_(shown, hidden)], K.diagonal()[hidden])
            tallies = count_votes(games, n_hidden, [(slice(None), voter)], LAST, None)
            right = probabilities(tallies)[0][np.arange(n_hidden), self.codes[hidden]]
            total -= float(np.sum(np.log(np.clip(right, LEAST, 1.0))))
        log.info("width=%.4g, softness=%.4g: log-loss %.4f", width, softness, total / len(self.codes))
        return total / len(self.codes)


def _as_path(grid: Sequence[tuple[float, float]], losses: Sequence[float] | Array) -> pd.DataFrame:
    return pd.DataFrame(grid, columns=["width", "softness"]).assign(log_loss=losses)


class KernelChoice(NamedTuple):
    """Width and softness, and the table of what was tried, if anything was."""

    width: float
    softness: float
    path: pd.DataFrame | None = None

    @classmethod
    def best_of(cls, path: pd.DataFrame) -> KernelChoice:
        """Return the line with the smallest log-loss."""
        best = path.iloc[int(path["log_loss"].to_numpy().argmin())]
        return cls(float(best["width"]), float(best["softness"]), path)


def choose(shown: LabelledRows, rows: Array, settings: BayesianTransducer, seed: int) -> KernelChoice:
    """Choose width and softness; the median distance is that of all rows (n, d)."""
    if isinstance(settings.width, str):
        has_width = uses_width(settings.kernel)
        factors = WIDTHS if has_width and settings.width == "cv" else (1.0,)
        middle = median_width(rows) if has_width else 1.0
        widths = [middle * factor for factor in factors]
    else:
        widths = [settings.width]
    if isinstance(settings.softness, str):
        unit = float(shown.gram(widths[0]).diagonal().mean())
        softnesses = [unit * factor for factor in SOFTNESSES]
    else:
        softnesses = [settings.softness]
    width, softness = widths[len(widths) // 2], softnesses[len(softnesses) // 2]
    if len(widths) * len(softnesses) == 1:
        return KernelChoice(width, softness)
    if np.bincount(shown.codes).min() < 2:
        warnings.warn(
            f"A class has one label only, too few to choose width or softness by: width {width:.3g} and softness "
            f"{softness:.3g} are used.",
            stacklevel=3,
        )
        return KernelChoice(width, softness)
    if settings.softness == "loo":
        choices = [KernelChoice.best_of(shown.leave_one_out(each)) for each in widths]
        if len(choices) == 1:
            return choices[0]
        grid = [(choice.width, choice.softness) for choice in choices]
    else:
        grid = [(each, value) for each in widths for value in softnesses]
    return KernelChoice.best_of(shown.compare(grid, seed, settings.n_jobs))


def leave_one_out_losses(K: Array, codes: AnyArray, softnesses: Sequence[float]) -> Array:
    """Return the mean leave-one-out log-loss of every softness, by a Gaussian process. Shapes: K (l, l), codes (l,)."""
    # With the kernel ``A = K + softness I`` times an unknown scale, labels of -1 and 1 as if they were latent values,
    # and one of them left out, the latent value there is Student's t: its mean, spread and scale follow from ``A^-1``
    # and ``A^-1 y``, which one eigendecomposition of K gives for every softness.
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    signs = np.where(codes[:, None] == held_classes(int(codes.max()) + 1), 1.0, -1.0)
    turned, squares = vectors.T @ signs, vectors**2
    losses = []
    for softness in softnesses:
        inverse = 1.0 / (values + softness)
        weights = vectors @ (inverse[:, None] * turned)
        shares = left_out_shares(signs, weights, squares @ inverse)
        shares = np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares
        right = shares[np.arange(len(codes)), codes] / np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
        losses.append(-np.mean(np.log(np.clip(right, LEAST, 1.0))))
    return np.array(losses)


def left_out_shares(signs: Array, weights: Array, diagonal: Array) -> Array:
    """Return the probability (l, c) of +1 at each row from all the others; signs, weights (l, c), diagonal (l,)."""
    # Without row i the mean there is ``y_i - weights_i / diagonal_i``, the spread ``1 / diagonal_i`` times the scale,
    # and the scale ``y' A^-1 y / l`` of the other ``l - 1`` rows: that of all less ``weights_i^2 / diagonal_i``.
    rest = len(signs) - 1
    inverse = diagonal[:, None]
    means = signs - weights / inverse
    scales = np.maximum((signs * weights).sum(axis=0) - weights**2 / inverse, np.finfo(float).tiny) / rest
    return stdtr(rest, means * np.sqrt(inverse / scales))
