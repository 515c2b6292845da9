"""How the labels came about: what that assumes, which labels calibrate, and how much each of them weighs."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from transduce.conformal.exchangeability import Exchangeability
from transduce.core import checks
from transduce.core.guarantee import CHANCE, CHANCE_OF_GROUPS, CHANCE_WITHIN, DESIGN, DRAWN, Guarantee
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import SHIFTS
from transduce.model_selection.ask import Problem
from transduce.model_selection.folds import with_group_folds
from transduce.tables.features import table_features

EQUAL, KNOWN, ESTIMATED, GROUPS = "equal", "known", "estimated", "groups"


@dataclass(frozen=True, eq=False)
class Weighing:
    """Weights of calibration and unlabelled rows."""

    calibration: Array  # (c,) odds that a row has no label, up to a common factor
    unlabelled: Array  # (c,) odds that a row has no label, up to a common factor
    kind: str = EQUAL  # where they come from
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    cells: tuple[AnyArray, AnyArray] | None = None  # (c,)

    @classmethod
    def equal(cls, n_calibration: int, n_unlabelled: int, factor: float = 1.0) -> Weighing:
        """Return weights that are all 1."""
        return cls(np.ones(n_calibration), np.ones(n_unlabelled), factor=factor)

    @classmethod
    def of(cls, odds: Array, calibration: AnyArray, unlabelled: AnyArray, kind: str) -> Weighing:
        """Return the weights at rows of a table, the largest of the unlabelled ones being 1; equal odds are all 1."""
        largest = float(odds[unlabelled].max(initial=0.0)) or 1.0
        return cls(odds[calibration] / largest, odds[unlabelled] / largest, kind)

    @classmethod
    def of_groups(cls, groups: AnyArray, given: Mask, n_unlabelled: int) -> Weighing:
        """Return weights by which each calibration group counts once, however many of its rows have an answer."""
        sizes = np.bincount(groups[given], minlength=1 + groups.max(initial=0))
        weights = np.where(given, 1.0 / np.maximum(sizes[groups], 1), 0.0)
        return cls(weights, np.ones(n_unlabelled), GROUPS)

    @property
    def exchangeable(self) -> bool:
        """Whether all rows weigh the same and nothing may differ: then the number outside has a known law."""
        both = np.concatenate([self.calibration, self.unlabelled])
        return self.factor == 1.0 and self.kind != GROUPS and bool(np.all(both == 1.0))

    @property
    def pooled(self) -> bool:
        """Whether the calibration rows are a random part of all rows that have no visible label."""
        return self.exchangeable and self.cells is None

    @property
    def for_means(self) -> Array | None:
        """Weights of the calibration rows in means over all unlabelled rows; None if they are all the same."""
        if self.cells is None:
            return None if np.all(self.calibration == 1.0) and self.kind != GROUPS else self.calibration
        first, rest = self.cells
        sizes = np.bincount(first, minlength=1 + max(first.max(initial=0), rest.max(initial=0)))
        return self.calibration * np.bincount(rest, minlength=len(sizes))[first] / sizes[first]

    @property
    def effective(self) -> float:
        """How many labels of equal weight the calibration labels are worth: ``(sum w)^2 / sum w^2``."""
        squares = float(np.sum(self.calibration**2))
        return float(np.sum(self.calibration)) ** 2 / squares if squares > 0.0 else 0.0

    def without_support(self, beyond: Mask) -> Weighing:
        """Return the same weights, except that some unlabelled rows outweigh all labels: nothing is ruled out there."""
        heavy = 1e12 * (1.0 + float(self.calibration.sum()))
        return replace(self, unlabelled=np.where(beyond, heavy, self.unlabelled))

    def in_cells(self, codes: AnyArray, calibration: AnyArray, unlabelled: AnyArray) -> Weighing:
        """Return the same weights, with rows compared within categories."""
        return replace(self, cells=(codes[calibration], codes[unlabelled]))

    def supports(self, confidence: float) -> bool:
        """Whether the labels are worth enough for a level: estimated weights take ``2 / (1 - confidence)`` of them."""
        return self.kind != ESTIMATED or self.effective >= effective_needed(confidence) - 1e-9

    def parts(self, known: Mask, given: Mask) -> list[tuple[Mask, Mask]]:
        """Return which calibration rows are compared with which unlabelled ones, of those with an answer."""
        if self.cells is None:
            return [(known, given)]
        first, rest = self.cells
        return [(known & (first == cell), given & (rest == cell)) for cell in np.unique(rest)]


def effective_needed(confidence: float) -> float:
    """Return how many labels of equal weight a level takes where weights are estimated."""
    return 2.0 / (1.0 - confidence)


def odds_without_label(probability: Array) -> Array:
    """Return the odds that a row has no label, by the probability that it has one."""
    return (1.0 - probability) / probability


def calibration_number(
    n_labelled: int, confidence: float, *, by_class: bool = False, factor: float = 1.0
) -> int:
    """Return how many labels to hold out: up to half of few, a smaller share of many, none if too few for the level."""
    least = fewest_calibration(confidence)
    if factor > 1.0:
        least = int(np.ceil(factor**2 * confidence / (1.0 - confidence) - 1e-9))
    if n_labelled - least < max(2, n_labelled // 3):
        return 0
    wanted = n_labelled // 2 if by_class else int(min(n_labelled / 2, 5 * np.sqrt(n_labelled)))
    exceeding = int(np.floor((1.0 - confidence + 1e-12) * (wanted + 1)))  # c + 1 - k, rounded down
    whole = int(np.ceil(exceeding / (1.0 - confidence) - 1e-9)) - 1
    return max(whole, least)


def labels_needed(confidence: float) -> int:
    """Return the fewest labels of which `calibration_number` holds some out."""
    n_labelled = fewest_calibration(confidence) + 2
    while calibration_number(n_labelled, confidence) == 0:
        n_labelled += 1
    return n_labelled


def read_number(wanted: Any, n_labelled: int) -> int:
    """Return how many labels a number, or a share of them, holds out; raise a ValueError if it is neither."""
    ok = isinstance(wanted, numbers.Real) and not isinstance(wanted, bool | np.bool_)
    if ok and isinstance(wanted, numbers.Integral) and int(wanted) >= 1:
        number = int(wanted)
    elif ok and 0.0 < float(wanted) < 1.0:
        number = round(float(wanted) * n_labelled)
    else:
        raise ValueError(
            "calibration must be 'auto', a number of labels to hold out from 1 on, or a share of them between 0 "
            f"and 1; got {wanted!r}."
        )
    if not 1 <= number < n_labelled:
        raise ValueError(
            f"calibration={wanted!r} holds out {number} of {n_labelled} labels: at least one must be held out and at "
            "least one stay visible."
        )
    return number


def hold_out_groups(groups: AnyArray, number: int, random: np.random.RandomState) -> Mask:
    """Return which labels to hold out so that these are all labels of so many groups, drawn at random."""
    return np.isin(groups, random.choice(np.unique(groups), number, replace=False))


def hold_out_within(codes: AnyArray, confidence: float, factor: float, random: np.random.RandomState) -> Mask:
    """Return which labels to hold out so that each category has enough; none of one that has too few labels."""
    held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        number = calibration_number(len(rows), confidence, factor=factor)
        held_out[random.choice(rows, number, replace=False)] = True
    return held_out


N_FOLDS = 5
MOST_ROWS = 5000  # of each kind that a model is fitted to; a smaller share of one kind changes all odds alike
FEWEST = 5  # rows of either kind below which nothing can be learned
CAP = 0.95  # of the labelled rows have odds up to the cap
CHANCE_ALONE = "chance"
SURE = 1e-3  # probabilities closer than this to 0 or 1 are not believed


@dataclass(frozen=True, eq=False)
class EstimatedOdds:
    """Odds that each row has no label, up to a common factor, as a model sees them that was not fitted to the row."""

    odds: Array  # (n,) capped
    probability: Array  # (n,) that the row has a label, if half of all had one
    model: str  # the one whose probabilities were best at rows it had not seen
    n_capped: int  # rows whose odds were capped
    beyond: Mask  # (n,) rows whose odds, before the cap, exceed those of every labelled row


def estimate_odds(X: Any, labelled: Mask, seed: int) -> EstimatedOdds:
    """Return the odds that rows have no label, estimated from their features.

    Shapes: X (n, d), labelled (n,).

    Notes
    -----
    Candidates are chance (the same odds for all rows), logistic regressions on the normal scores of the features, and a
    random forest. Rows are dealt into five folds; each fold's probabilities come from models fitted to the others, so
    that a row's own mark does not tell. The candidate with the smallest log-loss over all rows is taken. Odds are cut
    off at those that 95 % of the labelled rows do not exceed: beyond, there is next to no labelled row to compare with,
    and estimates are wild. On nine tables with 100 labels under a strong shift, this cap covered 0.90 with 8 %
    unbounded intervals, no cap 0.93 with 26 %, equal weights 0.86. Rows whose odds exceed those of every labelled row
    are `beyond`: no weight makes up for labels that are not there, and nothing is ruled out at them.
    """
    n, random = len(labelled), np.random.RandomState(seed)
    features, names = table_features(X, np.arange(n))
    chance = np.full(n, 0.5)
    if min(labelled.sum(), (~labelled).sum()) < FEWEST or not names:
        return EstimatedOdds(np.ones(n), chance, CHANCE_ALONE, 0, np.zeros(n, dtype=bool))
    features = norm.ppf((rankdata(features, axis=0) - 0.5) / n)
    features /= features.std(axis=0)
    fold = _deal(labelled, random)
    found = {CHANCE_ALONE: chance}
    for name, model in _candidates(seed):
        said = _cross_fit(model, features, labelled, fold, random)
        if name not in found or _loss(said, labelled) < _loss(found[name], labelled):
            found[name] = said
    best = min(found, key=lambda name: _loss(found[name], labelled))
    if best == CHANCE_ALONE:
        return EstimatedOdds(np.ones(n), chance, CHANCE_ALONE, 0, np.zeros(n, dtype=bool))
    odds = odds_without_label(found[best])
    cap = float(np.quantile(odds[labelled], CAP))
    beyond = odds > odds[labelled].max()
    return EstimatedOdds(np.minimum(odds, cap), found[best], best, int(np.sum(odds > cap)), beyond)


def _candidates(seed: int) -> list[tuple[str, Any]]:
    """Return the models that are tried besides chance."""
    forest = RandomForestClassifier(50, min_samples_leaf=10, max_features=0.5, random_state=seed)
    logistic = [("logistic regression", LogisticRegression(C=C, max_iter=1000)) for C in (0.01, 0.1, 1.0)]
    return [*logistic, ("random forest", forest)]


def _deal(labelled: Mask, random: np.random.RandomState) -> AnyArray:
    """Return a fold for each row, labelled and unlabelled rows spread evenly."""
    fold = np.empty(len(labelled), dtype=int)
    for kind in (labelled, ~labelled):
        fold[random.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % N_FOLDS
    return fold


def _cross_fit(
    model: Any, features: Array, labelled: Mask, fold: AnyArray, random: np.random.RandomState
) -> Array:
    """Return each row's probability of a label by a model fitted to the other folds, both kinds weighing half."""
    said = np.empty(len(labelled))
    for k in range(N_FOLDS):
        kinds = [np.flatnonzero((fold != k) & kind) for kind in (labelled, ~labelled)]
        kinds = [rows if len(rows) <= MOST_ROWS else random.choice(rows, MOST_ROWS, False) for rows in kinds]
        rows = np.concatenate(kinds)
        weights = np.concatenate([np.full(len(kind), len(rows) / (2.0 * len(kind))) for kind in kinds])
        model.fit(features[rows], labelled[rows], sample_weight=weights)
        said[fold == k] = model.predict_proba(features[fold == k])[:, 1]
    return np.clip(said, SURE, 1.0 - SURE)


def _loss(probability: Array, labelled: Mask) -> float:
    """Return the log-loss, both kinds weighing half."""
    return -float(np.log(probability[labelled]).mean() + np.log(1.0 - probability[~labelled]).mean()) / 2.0


AUTO, ESTIMATE, IGNORE = SHIFTS


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is known of how labels came about, row by row."""

    drawn: Mask | None = None  # (l,) which labels are of rows that were drawn at random
    probability: Array | None = None  # (n,) with which each row was chosen to be labelled
    shift: str = AUTO  # whether odds are estimated
    factor: float = 1.0  # by how much odds may be off
    groups: AnyArray | None = None  # (n,) numbers of the group and of the category of each row
    categories: AnyArray | None = None  # (n,) numbers of the group and of the category of each row
    category_names: tuple[str, ...] = ()  # by their numbers
    order: Array | None = None  # (n,) place of each row along an order

    def assumed(self, found: Guarantee) -> Guarantee:
        """Return a guarantee with what it rests on, given how labels came about."""
        if found.kind == "none":
            return found
        instead = CHANCE
        for words, part in (
            (DRAWN, self.drawn),
            (DESIGN, self.probability),
            (CHANCE_OF_GROUPS, self.groups),
            (CHANCE_WITHIN, self.categories),
        ):
            if part is not None:
                instead = words
                break
        return replace(
            found,
            assumptions=tuple(instead if one == CHANCE else one for one in found.assumptions),
            factor=self.factor,
        )

    def estimates(self, compared: Exchangeability | None) -> bool:
        """Return whether odds are to be estimated, given how labelled and unlabelled rows compare."""
        if self.drawn is not None or self.probability is not None or self.groups is not None:
            return False
        return self.shift == ESTIMATE or (self.shift == AUTO and compared is not None and compared.shifted)

    @property
    def testable(self) -> bool:
        """Whether a difference between labelled and unlabelled rows speaks against what is assumed."""
        return self.probability is None

    def to_compare(self, problem: Problem, random: np.random.RandomState) -> tuple[AnyArray, Mask] | None:
        """Return which rows are to be compared, and which of them count as labelled; None for all as they are."""
        labelled = problem.sample.labelled
        if (
            self.drawn is not None
        ):  # the other labels were chosen by whatever means, which is known, and no harm
            some = np.concatenate([problem.rows[self.drawn], problem.sample.unlabelled])
            return some, labelled[some]
        if self.groups is None:
            return None
        # One row of each group, drawn at random: rows of one group are alike, whatever the labels are.
        order = random.permutation(len(labelled))
        some = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        return some, np.isin(self.groups[some], self.groups[labelled])

    def ready(self, estimator: Any, rows: AnyArray, seed: int) -> Any:
        """Return the estimator, its own folds such that they never split a group of these labelled rows."""
        return estimator if self.groups is None else with_group_folds(estimator, self.groups[rows], seed)

    def new_groups(self, problem: Problem) -> Mask:
        """Return which unlabelled rows are of groups without a label, shape (m,)."""
        assert self.groups is not None
        unlabelled = problem.sample.unlabelled
        return ~np.isin(self.groups[unlabelled], self.groups[problem.rows])


def weigh(
    chosen: Chosen, problem: Problem, held_out: Mask, given: Mask, estimated: EstimatedOdds | None = None
) -> Weighing:
    """Return how much calibration and unlabelled rows weigh; `given` says which calibration rows have an answer."""
    calibration, unlabelled = problem.rows[held_out], problem.sample.unlabelled
    if chosen.groups is not None:
        found = Weighing.of_groups(chosen.groups[calibration], given, len(unlabelled))
    elif chosen.probability is not None:
        found = Weighing.of(odds_without_label(chosen.probability), calibration, unlabelled, KNOWN)
    elif estimated is not None and estimated.model != CHANCE_ALONE:
        found = Weighing.of(estimated.odds, calibration, unlabelled, ESTIMATED)
        found = found.without_support(estimated.beyond[unlabelled])
    else:
        found = Weighing.equal(len(calibration), len(unlabelled))
    if chosen.categories is not None:
        found = found.in_cells(chosen.categories, calibration, unlabelled)
    return replace(found, factor=chosen.factor)


# Settings that exclude each other, and why.
APART = {
    ("calibration", "sampling_probability"): "rows drawn at random need no probabilities",
    ("calibration", "groups"): "rows drawn at random calibrate one by one",
    ("sampling_probability", "groups"): "probabilities are of rows, and groups are held out as a whole",
    ("groups", "within"): "groups are held out as a whole, categories calibrate one by one",
    ("groups", "label_conditional"): "groups are held out as a whole, classes calibrate one by one",
    ("within", "label_conditional"): "rows are compared within categories or within classes",
    ("shift='estimate'", "calibration"): "rows drawn at random leave nothing to estimate",
    ("shift='estimate'", "sampling_probability"): "known probabilities leave nothing to estimate",
    ("shift='estimate'", "groups"): "odds are estimated for rows, and groups are held out as a whole",
}


def read_chosen(params: dict[str, Any], problem: Problem) -> Chosen:
    """Return what settings say of how labels came about, or raise a ValueError that says what to correct."""
    checks.check_choice("shift", params["shift"], SHIFTS)
    there = {name for name in ("sampling_probability", "groups", "within") if params[name] is not None}
    there |= {"calibration"} if is_mask(params["calibration"]) else set()
    there |= {"label_conditional"} if params["label_conditional"] else set()
    there |= {"shift='estimate'"} if params["shift"] == ESTIMATE else set()
    for (one, other), why in APART.items():
        if {one, other} <= there:
            raise ValueError(f"{one} and {other} exclude each other ({why}): leave out one of the two.")
    labelled, n = problem.sample.labelled, problem.n_rows
    probability, groups, within = (params[name] for name in ("sampling_probability", "groups", "within"))
    categories, names = (None, ()) if within is None else read_codes("within", within, n)
    return Chosen(
        read_drawn(params["calibration"], problem) if "calibration" in there else None,
        None if probability is None else read_probability(probability, labelled),
        params["shift"],
        read_factor(params["sensitivity"]),
        None if groups is None else read_groups(groups, labelled),
        categories,
        names,
        None if params["order"] is None else read_order(params["order"], n),
    )


def read_factor(sensitivity: Any) -> float:
    """Return the factor by which odds may be off, or raise a ValueError."""
    factor = checks.check_positive("sensitivity", sensitivity)
    if factor < 1.0:
        raise ValueError(f"sensitivity must be a factor from 1 on, for example 1.5; got {sensitivity!r}.")
    return factor


def read_probability(probability: Any, labelled: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled, or raise a ValueError."""
    try:
        numbers = np.asarray(probability, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != labelled.shape:
        raise ValueError(
            f"sampling_probability must be a number for each of the {len(labelled)} rows: the probability with which "
            "the row was chosen to be labelled."
        )
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        raise ValueError(
            f"sampling_probability must lie above 0 and be at most 1, and is {numbers[bad[0]]:g} at row {bad[0]} "
            "(counted from 0): a row that could not be chosen has nothing in common with those that were."
        )
    sure = np.flatnonzero(~labelled & (numbers == 1.0))
    if len(sure):
        raise ValueError(
            f"sampling_probability is 1 at row {sure[0]} (counted from 0), which has no label: a row that was sure to "
            "be labelled cannot lack one."
        )
    return numbers


def read_codes(name: str, cells: Any, n: int) -> tuple[AnyArray, tuple[str, ...]]:
    """Return the number of each row's group or category, and their names, or raise a ValueError."""
    column = pd.Series(np.asarray(cells, dtype=object) if np.ndim(cells) == 1 else [], dtype=object)
    if len(column) != n:
        raise ValueError(f"{name} must name a group or category for each of the {n} rows.")
    holes = np.flatnonzero(column.isna())
    if len(holes):
        raise ValueError(
            f"{name} has a hole at row {holes[0]} (counted from 0): name a group or category for each row."
        )
    codes, values = pd.factorize(column, sort=False)
    order = np.argsort([str(value) for value in values], kind="stable")
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    return place[codes], tuple(repr(_plain(values[k])) for k in order)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def read_groups(groups: Any, labelled: Mask) -> AnyArray:
    """Return the number of each row's group, or raise a ValueError that says what to correct."""
    codes, _ = read_codes("groups", groups, len(labelled))
    if len(np.unique(codes[labelled])) < 2:
        raise ValueError("All labels are of one group: at least one other is needed to calibrate.")
    if not labelled.all() and np.isin(codes[~labelled], codes[labelled]).all():
        raise ValueError(
            "Every group has a label, and groups=... is for rows of groups that have none. Leave it out: if chance "
            "chose which rows have a label, the guarantee holds without it."
        )
    return codes


def read_order(order: Any, n: int) -> Array:
    """Return the place of each row along an order as a number, or raise a ValueError."""
    column = pd.Series(order).reset_index(drop=True) if np.ndim(order) == 1 else pd.Series(dtype=float)
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        column = column.rank()
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if len(numbers) != n or not np.isfinite(numbers).all():
        raise ValueError(f"order must be a number or a time for each of the {n} rows, with no hole.")
    return numbers


def is_mask(calibration: Any) -> bool:
    """Return whether calibration rows are marked, one True or False for each row of the table."""
    return not isinstance(calibration, str) and np.ndim(calibration) == 1


def read_drawn(calibration: Any, problem: Problem) -> Mask:
    """Return which labels are of rows that were drawn at random, shape (l,), or raise a ValueError."""
    marks = np.asarray(calibration)
    if marks.shape != (problem.n_rows,) or marks.dtype.kind != "b":
        raise ValueError(
            f"calibration as a mask needs True or False for each of the {problem.n_rows} rows: True where a row was "
            "drawn at random to be labelled."
        )
    drawn = marks[problem.rows]
    if not drawn.any():
        raise ValueError(
            "No row that calibration marks as drawn at random has a label: label some of them first."
        )
    if drawn.all():
        raise ValueError("All labels are marked for calibration: at least one other is needed to learn from.")
    return drawn
