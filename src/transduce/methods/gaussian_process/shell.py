"""How the moment-matched Gaussian process finds its parameters: settings, starts, and how hard to match."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.core import checks, validation
from transduce.core.folds import rank_folds
from transduce.core.scaling import Scaling
from transduce.core.transducer import NumberTransducer
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.gaussian_process.process import Objective
from transduce.methods.gaussian_process.search import Descent, Fold, Search, choose_matching

log = logging.getLogger(__name__)

# What "cv" tries, besides no matching at all.
MATCHINGS = (0.1, 0.3, 1.0)
SLACKS = (0.001, 0.01, 0.1)
N_FOLDS = 5
MIN_LABELS = 10
MEMORY = 2e9  # bytes beyond which a fit announces what it will take


def _is_cv(setting: Any) -> bool:
    return isinstance(setting, str) and setting == "cv"


class GaussianShell(NumberTransducer):
    """Chooses parameters for rows and labels that were scaled and ordered; the estimator reads and answers."""

    def __init__(
        self,
        *,
        matching: Any = "cv",
        slack: Any = "cv",
        prior: Any = (1.0, 0.5),
        relevance: bool = True,
        n_restarts: int = 3,
        max_iter: int = 200,
        tol: float = 1e-8,
        solver: str = "nested",
        max_matched: int = 300,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.matching = matching
        self.slack = slack
        self.prior = prior
        self.relevance = relevance
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.max_matched = max_matched
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def _check_settings(self) -> None:
        for name in ("matching", "slack"):
            value = getattr(self, name)
            if not _is_cv(value):
                checks.check_number(f"{name} (a number from 0, or 'cv')", value)
                checks.check_not_negative(name, value, "'cv' or a number from 0")
        try:
            shape, rate = self.prior
        except (TypeError, ValueError):
            raise ValueError(
                f"prior must be two numbers from 0, such as (1.0, 0.5); got {self.prior!r}."
            ) from None
        for value in (shape, rate):
            checks.check_number("Each of the two numbers of prior", value)
            checks.check_not_negative("Each of the two numbers of prior", value, "a number from 0")
        for name, least in (("n_restarts", 0), ("max_iter", 1), ("max_matched", 1)):
            checks.check_whole(name, getattr(self, name), least=least)
        checks.check_positive("tol", self.tol)
        checks.check_jobs(self.n_jobs)
        checks.check_choice("solver", self.solver, ("nested", "alternating"))
        checks.check_flag("relevance", self.relevance)
        checks.check_flag("standardize", self.standardize)

    def _announce_cost(self, n_labelled: int) -> None:
        """Warn before gigabytes are taken."""
        need = 4 * 8.0 * n_labelled**2
        if need > MEMORY:
            warnings.warn(
                f"A Gaussian process with {n_labelled:,} labels needs about {need / 1e9:.0f} GB of memory and hundreds "
                "of Cholesky factors of that size; TransductiveRidge(centres=500) needs far less.",
                stacklevel=3,
            )

    def _scale(self, X: Array, labelled: Mask) -> Array:
        """Return the rows scaled or, if not wanted, centred: only differences matter, and small numbers are safer."""
        scaling, rows = Scaling.fit_apply(X)
        self.feature_spread_ = np.zeros(X.shape[1])
        self.feature_spread_[scaling.keep] = scaling.scale
        self._warn_of_far_rows(rows[labelled], np.flatnonzero(scaling.keep))
        if not self.standardize:
            scaling = replace(scaling, scale=np.ones_like(scaling.scale))
            rows = scaling.apply(X)
        self._scaling = scaling
        return rows

    def _warn_of_far_rows(self, scaled: Array, kept: AnyArray) -> None:
        """Warn if the scale of a feature is not that of the labelled rows."""
        spread = scaled.std(axis=0)
        narrow = np.flatnonzero((spread > 0.0) & (spread < 0.01))
        if len(narrow) and len(kept):
            names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
            warnings.warn(
                f"Feature {names[kept[narrow[0]]]!r} varies a hundred times less among the labelled rows than among "
                "all: a few far-off rows set its scale. Look at them; leave them out or transform the feature.",
                stacklevel=4,
            )

    def _read_more(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._scaling.apply(validation.read_rows(self, X, reset=False))

    # ------------------------------------------------------------------------------------------ parameters

    def _search(self) -> tuple[Descent, Descent]:
        """Return the best descent of the objective wanted, and the best without matching."""
        prior = (float(self.prior[0]), float(self.prior[1]))
        random = check_random_state(self.random_state)
        search = Search.at(
            self._rows,
            self._z,
            common=not self.relevance,
            solver=self.solver,
            max_iter=self.max_iter,
            tolerance=self.tol,
        )
        start, self._most_relevant = search.start, search.bounds[:-1, 1]
        objective = Objective(self._rows, self._z, prior)
        log.info("parameters without matching")
        starts = [start, *search.restarts(objective, self.n_restarts, random, self.n_jobs)]
        plain, self._ends = search.best(objective, starts, self.n_jobs)
        self._set_matching(search, prior, plain.log_parameters)
        self._objective = Objective(self._rows, self._z, prior, self.matching_, self.slack_)
        if not self._objective.looks_at_unlabelled:
            return plain, plain
        log.info("parameters with matching=%g, slack=%g", self.matching_, self.slack_)
        starts = [
            plain.log_parameters,
            start,
            *search.restarts(self._objective, self.n_restarts, random, self.n_jobs),
        ]
        found, self._ends = search.best(self._objective, starts, self.n_jobs)
        return found, plain

    def _set_matching(self, search: Search, prior: tuple[float, float], start: Array) -> None:
        """Decide how hard to match, and say why."""
        self.matching_ = 0.0 if _is_cv(self.matching) else float(self.matching)
        self.slack_ = 0.0 if _is_cv(self.slack) else float(self.slack)
        if np.ptp(self._z) == 0.0:
            self.matching_ = 0.0
            self._choice = "matching=0: all labels are equal, so there is no spread to match"
        elif len(self._rows) == len(self._z):
            self.matching_ = 0.0
            self._choice = "matching=0: no row is unlabelled, so there is nothing to match"
        elif not _is_cv(self.matching) and (self.matching_ == 0.0 or not _is_cv(self.slack)):
            self._choice = f"matching={self.matching_:g}, slack={self.slack_:g}, as set"
        elif len(self._z) < MIN_LABELS:
            self.slack_ = SLACKS[1] if _is_cv(self.slack) else self.slack_
            few = f"fewer than {MIN_LABELS} labels are too few to choose by"
            self._choice = f"matching={self.matching_:g}, slack={self.slack_:g}: {few}"
        else:
            self._cross_validate(search, prior, start, fixed=not _is_cv(self.matching))
        log.info(self._choice)

    def _cross_validate(
        self, search: Search, prior: tuple[float, float], start: Array, *, fixed: bool
    ) -> None:
        slacks = SLACKS if _is_cv(self.slack) else (float(self.slack),)
        weights = (float(self.matching),) if fixed else MATCHINGS
        pairs = [(weight, slack) for slack in slacks for weight in weights]
        grid = np.array(pairs if fixed else [(0.0, slacks[0]), *pairs])
        # A choice between a dozen pairs needs no more digits than their errors differ by.
        quick = replace(search, max_iter=min(50, self.max_iter), tolerance=max(1e-5, self.tol))
        self.matching_path_ = choose_matching(self._folds(), quick, prior, start, grid, self.n_jobs)
        path = self.matching_path_
        best = int(path["error"].to_numpy().argmin())
        if not fixed and path["gain"][best] <= path["gain_se"][best]:
            best = 0
        self.matching_, self.slack_ = (float(path[name][best]) for name in ("matching", "slack"))
        if self.matching_ == 0.0 and _is_cv(self.slack):
            self.slack_ = 0.0
        self._choice = (
            f"matching={self.matching_:g}, slack={self.slack_:g}, by cross-validation"
            if best or fixed
            else "matching=0, by cross-validation: no weight was better than none by more than its standard error"
        )

    def _folds(self) -> list[Fold]:
        """Hide each fold of the labels in turn, among the unlabelled rows."""
        n_labelled = len(self._z)
        shown, unlabelled = self._rows[:n_labelled], self._rows[n_labelled:]
        fold = rank_folds(self._z, shown, min(N_FOLDS, n_labelled))
        return [
            Fold(
                np.concatenate([shown[fold != k], shown[fold == k], unlabelled]),
                self._z[fold != k],
                self._z[fold == k],
            )
            for k in range(fold.max() + 1)
        ]
