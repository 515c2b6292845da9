"""From a partly labelled sample to the parameters of its Gaussian process: scaling, order of rows, search."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from transduce.core import arrays
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.gaussian_process.inducing import fit_posterior
from transduce.methods.gaussian_process.matching import Choice, choose_matching
from transduce.methods.gaussian_process.process import Objective
from transduce.methods.gaussian_process.search import NOISE_BOUNDS, Descent, Search, even_steps
from transduce.methods.gaussian_process.settings import Settings

log = logging.getLogger(__name__)

FOLD_STEPS = 30  # from the parameters of all labels to those of a fold's
# With so few labels the parameters of all remember each of them, and a short descent does not forget.
FROM_SCRATCH = 100
MOST_DESCENDED = 500  # with more labels the parameters of all stand in for those of a fold


def scale_rows(
    sample: PartlyLabelled, names: Sequence[str | int], *, standardize: bool
) -> tuple[Array, Scaling, Array]:
    """Return the rows, scaled or at least centred (small numbers are safer); how; and the spread of every feature."""
    # In an order of their own, so that the rounding of a mean does not depend on the order in which rows came.
    xp = arrays.namespace(sample.X)
    scaling, _ = Scaling.fit_apply(xp.take(sample.X, arrays.lexsort(sample.X), axis=0))
    rows = scaling.apply(sample.X)
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    shown = arrays.to_numpy(xp.std(arrays.pick(rows, sample.labelled), axis=0))
    narrow = np.flatnonzero((shown > 0.0) & (shown < 0.01))
    if len(narrow):
        warnings.warn(
            f"Feature {names[np.flatnonzero(scaling.keep)[narrow[0]]]!r} varies a hundred times less among the "
            "labelled rows than among all: a few far-off rows set its scale. Look at them; leave them out or transform "
            "the feature.",
            stacklevel=3,
        )
    if not standardize:
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
        rows = scaling.apply(sample.X)
    return rows, scaling, spread


def arrange_rows(
    rows: Array, labelled: Mask, y_l: Array, settings: Settings
) -> tuple[Objective, AnyArray, AnyArray]:
    """Order the rows by their values: the order in which they came leaves no trace, not even in rounding.

    Shapes: rows (n, d), labelled (n,), y_l (l,); returns order (l,).
    """
    if arrays.is_foreign(rows):
        return _arrange_foreign(rows, labelled, y_l, settings)
    shown, unlabelled = rows[labelled], rows[~labelled]
    order, matched = np.lexsort([y_l, *shown.T[::-1]]), np.lexsort(unlabelled.T[::-1])
    matched = matched[even_steps(len(matched), settings.max_matched)]
    used = np.concatenate([shown[order], unlabelled[matched]])
    return Objective(used, y_l[order], settings.prior), order, matched


def _arrange_foreign(
    rows: Any, labelled: Mask, y_l: Array, settings: Settings
) -> tuple[Objective, AnyArray, AnyArray]:
    """Do the same on a device."""
    xp, shown, unlabelled = arrays.namespace(rows), arrays.pick(rows, labelled), arrays.pick(rows, ~labelled)
    labels = arrays.beside(y_l, rows)
    order = arrays.lexsort(xp.concat([shown, labels[:, None]], axis=1))
    matched = arrays.to_numpy(arrays.lexsort(unlabelled)) if unlabelled.shape[0] else np.empty(0, dtype=int)
    matched = matched[even_steps(len(matched), settings.max_matched)]
    used = xp.concat([xp.take(shown, order, axis=0), arrays.pick(unlabelled, matched)])
    return Objective(used, xp.take(labels, order), settings.prior), arrays.to_numpy(order), matched


class Found(NamedTuple):
    """Parameters, and how they were found."""

    best: Descent  # the lowest descent with the matching that was chosen, and without matching
    plain: Descent  # the lowest descent with the matching that was chosen, and without matching
    ends: list[Descent | str]  # how the descent from each start ended
    objective: Objective  # what the best one minimises
    search: Search
    choice: Choice
    max_exact: int  # labels up to which the process is exact


def find_parameters(objective: Objective, settings: Settings, random: np.random.RandomState) -> Found:
    """Search without matching, choose how hard to match, and search again with it; on some of very many labels."""
    whole, objective = objective, _fewer_labels(objective, settings.max_searched)
    found = _search(objective, settings, random)
    return found._replace(objective=replace(found.objective, X=whole.X, y_l=whole.y_l))


def _fewer_labels(objective: Objective, most: int) -> Objective:
    """Return the objective with at most so many of the labels, at even steps of the ordered rows."""
    n = objective.y_l.shape[0]
    if n <= most:
        return objective
    some = even_steps(n, most)
    parts = [arrays.pick(objective.X, some), objective.X[n:, :]]
    X = arrays.namespace(objective.X).concat(parts)
    return replace(objective, X=X, y_l=arrays.pick(objective.y_l, some))


def _search(objective: Objective, settings: Settings, random: np.random.RandomState) -> Found:
    n_restarts, n_jobs = settings.n_restarts, settings.n_jobs
    search = Search.at(objective.X, objective.y_l, common=not settings.relevance, solver=settings.solver)
    search = replace(search, max_iter=settings.max_iter, tolerance=settings.tol)
    log.info("parameters without matching")
    starts = [search.start, *search.restarts(objective, n_restarts, random, n_jobs)]
    plain, ends = search.best(objective, starts, n_jobs)
    choice = choose_matching(objective, settings, search, plain.log_parameters)
    log.info(choice.why)
    objective = replace(objective, matching=choice.matching, slack=choice.slack)
    if not objective.looks_at_unlabelled:
        return Found(plain, plain, ends, objective, search, choice, settings.max_exact)
    log.info("parameters with matching=%g, slack=%g", choice.matching, choice.slack)
    restarts = search.restarts(objective, n_restarts, random, n_jobs)
    best, ends = search.best(objective, [plain.log_parameters, search.start, *restarts], n_jobs)
    return Found(best, plain, ends, objective, search, choice, settings.max_exact)


def answers_in_folds(
    found: Found, order: AnyArray, folds: Sequence[tuple[AnyArray, AnyArray]]
) -> list[Array]:
    """Return the process at the hidden rows of each fold, with parameters of its visible labels.

    Shapes: order (l,).
    """
    place, whole = np.argsort(order), found.objective
    X_l, rest = whole.X[: len(order)], whole.X[len(order) :]
    answers = []
    for visible, hidden in folds:
        shown = np.sort(place[visible])
        mean, spread = label_moments(whole.y_l[shown])
        y_l = (whole.y_l[shown] - mean) / spread
        parameters = found.best.log_parameters
        if len(order) <= MOST_DESCENDED:
            objective = replace(whole, X=np.concatenate([X_l[shown], rest]), y_l=y_l)
            parameters = _parameters_of_fold(found, objective, from_scratch=len(order) <= FROM_SCRATCH)
        posterior = fit_posterior(X_l[shown], y_l, parameters, found.max_exact)
        answers.append(posterior.mean(X_l[place[hidden]]) * spread + mean)
    return answers


def _parameters_of_fold(found: Found, objective: Objective, *, from_scratch: bool) -> Array:
    """Return parameters for a fold's labels, from those of all labels or from the two rules for a start."""
    if not from_scratch:
        short = replace(found.search, max_iter=FOLD_STEPS, tolerance=1e-5)
        return short.descend(objective, found.best.log_parameters).log_parameters
    n_labelled, common = len(objective.y_l), len(found.search.start) <= objective.X.shape[1]
    start = Search.at(objective.X[:n_labelled], objective.y_l, common=common, solver=found.search.solver)
    search = replace(start, max_iter=found.search.max_iter, tolerance=1e-5)
    return search.best(objective, [search.start, search.wiggly], None)[0].log_parameters


def warn_of_parameters(found: Found) -> None:
    """Say what a user should know of how the parameters were found."""
    best, words = found.best, []
    if not best.converged:
        words.append(f"The parameters {best.message} before they settled: raise max_iter, or tol.")
    if np.ptp(arrays.to_numpy(found.objective.y_l)) > 0.0:
        if np.any(best.log_parameters[:-1] > found.search.bounds[:-1, 1] - 1e-3):
            words.append(
                "A relevance ran into its upper bound: rows no longer tell of each other. Match less, or give a prior "
                "whose second number is larger."
            )
        elif best.log_parameters[-1] < found.search.bounds[-1, 0] + 1e-3:
            words.append(
                f"The noise ran into its lower bound, {NOISE_BOUNDS[0]:g} of the labels' variance: the labels look "
                "like an exact function of the features. If they are not, a prior whose first number is larger keeps "
                "the noise away from 0."
            )
    for sentence in words:
        warnings.warn(sentence, ConvergenceWarning, stacklevel=3)
