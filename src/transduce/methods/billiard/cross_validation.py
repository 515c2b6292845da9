"""Width and softness of Bayesian transduction: as set, by a rule, by leave-one-out or by cross-validation."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from transduce.core.ranks import rank_folds
from transduce.core.types import AnyArray, Array
from transduce.device.kernels import Kernel, median_width, uses_width
from transduce.methods.billiard.flight import EmptyVersionSpaceError
from transduce.methods.billiard.leave_one_out import leave_one_out_losses
from transduce.methods.billiard.probabilities import LAST, Geometry, count_round, n_games, probabilities
from transduce.methods.billiard.settings import Settings
from transduce.methods.billiard.votes import Tally

log = logging.getLogger(__name__)

# What "cv" and "loo" try: multiples of the mean of the kernel's diagonal, and of the median distance.
SOFTNESSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LOO_SOFTNESSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
N_FOLDS = 5
CV_BALLS, CV_BOUNCES = 3, 2_000


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
        refresh = max(20, 10 * len(K))
        for k in range(int(fold.max()) + 1):
            shown, hidden = fold != k, fold == k
            geometry = Geometry.of(K[np.ix_(shown, shown)], softness=softness)
            seeds = np.random.RandomState(seed).randint(2**31 - 1, size=(n_games(n_classes), CV_BALLS))
            try:
                games = geometry.games(self.codes[shown], n_classes, seeds, None, refresh)
            except EmptyVersionSpaceError:
                return np.inf
            tallies = [Tally.empty(CV_BALLS, int(hidden.sum())) for _ in games]
            for game in games:
                game.play(CV_BOUNCES)
            voter = geometry.voter(K[np.ix_(shown, hidden)], K.diagonal()[hidden])
            count_round(games, tallies, [(slice(None), voter)], LAST, None)
            right = probabilities(tallies)[0][np.arange(int(hidden.sum())), self.codes[hidden]]
            total -= float(np.sum(np.log(np.clip(right, 1e-3, 1.0))))
        log.info("width=%.4g, softness=%.4g: log-loss %.4f", width, softness, total / len(self.codes))
        return total / len(self.codes)


def _as_path(grid: Sequence[tuple[float, float]], losses: Sequence[float] | Array) -> pd.DataFrame:
    lines = [(*pair, loss) for pair, loss in zip(grid, losses, strict=True)]
    return pd.DataFrame(lines, columns=["width", "softness", "log_loss"])


class Choice(NamedTuple):
    """Width and softness, and the table of what was tried, if anything was."""

    width: float
    softness: float
    path: pd.DataFrame | None = None

    @classmethod
    def best_of(cls, path: pd.DataFrame) -> Choice:
        """Return the line with the smallest log-loss."""
        best = path.iloc[int(path["log_loss"].to_numpy().argmin())]
        return cls(float(best["width"]), float(best["softness"]), path)


def choose(shown: LabelledRows, rows: Array, settings: Settings, seed: int) -> Choice:
    """Choose width and softness; the median distance is that of all rows (n, d)."""
    has_width, wanted = uses_width(settings.kernel), settings.width
    middle = median_width(rows) if has_width and isinstance(wanted, str) else 1.0
    widths = [middle] if isinstance(wanted, str) else [wanted]
    if has_width and wanted == "cv":
        widths = [middle * factor for factor in WIDTHS]
    by_word = isinstance(settings.softness, str)
    if by_word:
        unit = float(shown.gram(widths[0]).diagonal().mean())
        softnesses = [unit * factor for factor in SOFTNESSES]
    else:
        softnesses = [float(settings.softness)]
    width, softness = widths[len(widths) // 2], softnesses[len(softnesses) // 2]
    if len(widths) * len(softnesses) == 1:
        return Choice(width, softness)
    if np.bincount(shown.codes).min() < 2:
        warnings.warn(
            f"A class has one label only, too few to choose width or softness by: width {width:.3g} and softness "
            f"{softness:.3g} are used.",
            stacklevel=3,
        )
        return Choice(width, softness)
    if settings.softness == "loo":
        choices = [Choice.best_of(shown.leave_one_out(each)) for each in widths]
        if len(choices) == 1:
            return choices[0]
        grid = [(choice.width, choice.softness) for choice in choices]
    else:
        grid = [(each, value) for each in widths for value in softnesses]
    return Choice.best_of(shown.compare(grid, seed, settings.n_jobs))
