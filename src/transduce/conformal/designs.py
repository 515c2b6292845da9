"""How the labels came about: what that assumes, which labels calibrate, and how much each of them weighs."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from transduce.conformal.exchangeability import (
    Exchangeability,
    exchangeability_test,
    table_features,
)
from transduce.conformal.presence import bound_of_labels, tail_of_labels
from transduce.core import checks, guarantee
from transduce.core.ranks import fewest_calibration, nonconformity_rank
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import OptionError, counted, option, percent, quoted
from transduce.model_selection.cross_validation import with_group_folds
from transduce.model_selection.fit_and_predict import Problem, take
from transduce.population.draws import read_marks

Random = np.random.RandomState
AnyDesign = TypeVar("AnyDesign", bound="Design")

# ------------------------------------------------------------------------------------------------- designs


MOST_SENSITIVITY = 1e6  # beyond, no number of labels would do


@dataclass(frozen=True, kw_only=True)
class Design:
    """How the labels came about; a field that describes rows names a column until `read` makes an array of it."""

    within: Any = None
    order: Any = None
    sensitivity: float = 1.0

    rests_on: ClassVar[str] = guarantee.CHANCE
    testable: ClassVar[bool] = True  # whether rows that differ speak against what is assumed
    of_column: ClassVar[bool] = True  # whether a guarantee for the column is possible
    holds_out: ClassVar[bool] = True  # whether labels must be held out to make use of it, as it is

    def __post_init__(self) -> None:
        if self.sensitivity != 1.0:
            checks.check_factor("sensitivity", self.sensitivity)
            checks.check_positive("sensitivity", self.sensitivity, most=MOST_SENSITIVITY)
        for name in ("rows", "probability", "groups"):
            if getattr(self, name, "not a field") is None:
                raise ValueError(
                    f"{type(self).__name__} needs {name}: the name of a column, or a value for each row."
                )

    # ---- what the user said

    @property
    def columns(self) -> list[Any]:
        """Names of the columns that describe rows."""
        return [*self.not_features, *([self.within] if _is_name(self.within) else [])]

    @property
    def not_features(self) -> list[Any]:
        """Names of the columns from which nothing is learned: all except the categories."""
        named = [getattr(self, name, None) for name in _READERS if name != "within"]
        return [name for name in named if _is_name(name)]

    @property
    def columns_of_numbers(self) -> list[Any]:
        """Names of the columns that describe rows by numbers."""
        named = [getattr(self, field, None) for field in ("probability", "order")]
        return [name for name in named if _is_name(name)]

    @property
    def modified(self) -> bool:
        """Whether it has categories, an order, or a factor."""
        return self.within is not None or self.order is not None or self.sensitivity != 1.0

    @property
    def calibrates(self) -> bool:
        """Whether labels must be held out to make use of it."""
        return self.holds_out or self.modified

    @property
    def needs_all_rows(self) -> bool:
        """Whether a fit to a sample of the rows cannot make use of it."""
        return self.modified or not self.of_column

    def read(self, missing: Mask, frame: pd.DataFrame | None = None) -> Self:
        """Return the design with an array, checked, in place of each column of a table. Shapes: missing (n,)."""
        read: dict[str, Any] = {}
        for name, reader in _READERS.items():
            value = getattr(self, name, None)
            if value is not None and not isinstance(value, Categories | DrawnRows):
                read[name] = reader(_Cells.of(name, value, frame, len(missing)), missing)
        return replace(self, **read)

    def at(self, rows: AnyArray) -> Self:
        """Return the design of some rows, in this order: of arrays their cells; names of columns stay as they are."""
        picked: dict[str, Any] = {}
        for name in _READERS:
            value = getattr(self, name, None)
            if isinstance(value, Categories | DrawnRows):
                picked[name] = value.at(rows)
            elif value is not None and not _is_name(value):
                picked[name] = pd.Series(value).to_numpy()[rows]
        return replace(self, **picked)

    def check(self, classes: Sequence[Any] | AnyArray | None, by_class: bool) -> None:
        """Raise a ValueError if it does not suit the classes of the labels (None for numbers) or sets by class."""
        for name in ("within", "groups"):
            if by_class and getattr(self, name, None) is not None:
                both = f"{name} and label_conditional exclude each other"
                raise OptionError(
                    f"{both} (rows are compared within one or the other): leave out one of the two."
                )

    # ---- which labels calibrate

    @property
    def by_class(self) -> bool:
        """Whether every class is to be compared with its own calibration labels."""
        return False

    @property
    def together(self) -> AnyArray | None:
        """The groups of rows that are held out together and that no fold splits, shape (n,); None if there are none."""
        return getattr(self, "groups", None)

    def n_calibration(self, n_labels: int, confidence: float, *, by_class: bool = False) -> int:
        """Return how many labels calibrate, unless a number is asked for; none if they are too few for the level."""
        return calibration_number(
            n_labels, confidence, by_class=by_class, factor=float(self.sensitivity)
        )

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        if self.sensitivity > 1.0:
            few = f"{n_labels} labels are too few to guarantee {percent(confidence)} if the odds of a label are off"
            how = f"use a smaller {option('sensitivity')}, or ask for less confidence"
            return f"{few} by up to {self.sensitivity:g}: {how}."
        few = f"{n_labels} labels are too few to hold some out and guarantee {percent(confidence)}"
        return f"{few}: it takes {labels_needed(confidence)}."

    def hold_out(
        self, problem: Problem, number: Any, level: float, by_class: bool, random: Random
    ) -> Mask:
        """Return which labels to hold out, (l,), whatever they are; `number` is "auto", a number or a share of them."""
        rows, auto = problem.rows, isinstance(number, str) and number == "auto"
        apart = self._apart(problem)
        if (
            apart is not None and auto
        ):  # each as many as it takes; none of one that has too few labels
            held_out = np.zeros(len(rows), dtype=bool)
            for code in np.unique(apart):
                own = np.flatnonzero(apart == code)
                size = calibration_number(len(own), level, factor=float(self.sensitivity))
                held_out[random.choice(own, size, replace=False)] = True
            return held_out
        units = np.arange(len(rows)) if self.together is None else self.together[rows]
        n_units = len(np.unique(units))
        size = (
            self.n_calibration(n_units, level, by_class=by_class)
            if auto
            else read_number(number, n_units)
        )
        return np.isin(units, random.choice(np.unique(units), size, replace=False))

    def _apart(self, problem: Problem) -> AnyArray | None:
        """Return numbers of the parts that each hold out labels of their own, shape (l,); None if there are none."""
        return None if self.within is None else np.asarray(self.within.codes[problem.rows])

    def ready(self, estimator: Any, rows: AnyArray) -> Any:
        """Return the estimator, its own folds such that they never split a group of these labelled rows."""
        return (
            estimator
            if self.together is None
            else with_group_folds(estimator, self.together[rows], 0)
        )

    # ---- what to compare, and how labels weigh

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many of the known cells of a column are at labelled rows; (n,), (n,)."""
        cells = np.zeros(len(known), dtype=int) if self.within is None else self.within.codes
        return tail_of_labels(known, labelled, cells)

    def weigh(
        self, problem: Problem, held_out: Mask, given: Mask, *, test: bool, random: Random
    ) -> Weights:
        """Return how much rows weigh, and how they compare if that is tested. Shapes: held_out (l,), given (c,)."""
        calibration, unlabelled = problem.rows[held_out], problem.sample.unlabelled
        compared = (
            self._compare(problem, random) if test and self.testable and len(unlabelled) else None
        )
        verdict = None if compared is None else compared.verdict
        if len(unlabelled) and self._estimates(compared):
            weights = _weighed_by_estimate(problem, calibration, random.randint(2**31 - 1))
        else:
            weights = self._weights(problem, calibration, given)
        weights = self._compared_within(weights, calibration, unlabelled)
        return replace(weights, testable=self.testable, compared=compared, verdict=verdict)

    def weigh_before_fit(self, problem: Problem, held_out: Mask) -> Weights:
        """Return weights as far as they are known before a fit; those to be estimated count as equal. (l,)."""
        calibration, unlabelled = problem.rows[held_out], problem.sample.unlabelled
        if self._estimates(None):
            weights = Weights.equal(len(calibration), len(unlabelled))
        else:
            weights = self._weights(problem, calibration, np.ones(len(calibration), dtype=bool))
        return self._compared_within(weights, calibration, unlabelled)

    def weigh_outside(self, n_calibration: int, n_empty: int, classes: AnyArray | None) -> Weights:
        """Return weights of labels that calibrate rows which no fit sees, known before any fit."""
        return Weights.equal(n_calibration, 0, n_empty=n_empty, assumption=self.assumption)

    def _compared_within(
        self, weights: Weights, calibration: AnyArray, unlabelled: AnyArray
    ) -> Weights:
        """Return weights with the categories within which rows are compared, and with what they rest on."""
        if self.within is not None:
            cells = self.within.codes[calibration], self.within.codes[unlabelled]
            weights = replace(weights, cells=cells, categories=self.within.names)
        return replace(weights, factor=float(self.sensitivity), assumption=self.assumption)

    def _compare(self, problem: Problem, random: Random) -> Exchangeability:
        """Return how labelled and unlabelled rows compare."""
        seed = random.randint(2**31 - 1)
        some, labelled = self._alike(problem, random)
        codes = None if self.within is None else self.within.codes[some]
        X = problem.X if len(some) == problem.n_rows else take(problem.X, some)
        return exchangeability_test(X, labelled, within=codes, random_state=seed)

    def _alike(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return which rows are alike if the assumption holds, and which of them count as labelled."""
        return np.arange(problem.n_rows), problem.sample.labelled

    def _estimates(self, compared: Exchangeability | None) -> bool:
        """Return whether the odds of a label are to be estimated, given how labelled and unlabelled rows compare."""
        return False

    @property
    def reweighs_if_shifted(self) -> bool:
        """Whether propensities are estimated where rows are found to differ, and only there."""
        return False

    @property
    def may_estimate(self) -> bool:
        """Whether propensities are, or may come to be, estimated."""
        return self._estimates(None) or self.reweighs_if_shifted

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        return Weights.equal(len(calibration), len(problem.sample.unlabelled))

    def measure(self, rows: AnyArray) -> Array:
        """Return how much labelled rows (l,) stand for the unlabelled ones where quality is measured; 0: not at all."""
        return np.ones(len(rows))

    # ---- what it assumes

    @property
    def assumption(self) -> str:
        """What has to be true of the labels."""
        chance = self.rests_on == guarantee.CHANCE
        return guarantee.CHANCE_WITHIN if chance and self.within is not None else self.rests_on

    @property
    def for_column(self) -> bool:
        """Whether the number of rows outside can be bounded."""
        return self.of_column and self.sensitivity == 1.0


@dataclass(frozen=True, kw_only=True)
class Chance(Design):
    """Chance alone decided which rows have a label, as far as is known.

    What describes rows is the name of a column where there is a table (`transduce.fill`), else an array.

    Parameters
    ----------
    reweight : bool, default=True
        Whether calibration labels are weighed as `Estimated` does if the test says that rows differ.
    within : str or array-like of shape (n,), optional
        The category of each row: the guarantee holds within every one, and chance need only have chosen within them.
    order : str or array-like of shape (n,), optional
        The place of each row along an order, such as a time: whether errors drift along it is tested.
    sensitivity : float, default=1.0
        Rows keep their guarantee if the odds of a label also depend on the label by up to this factor, either way.

    Examples
    --------
    >>> from transduce.conformal import Chance
    >>> Chance().assumption
    'rows were labelled at random, and the other columns came about in the same way with and without a label'
    >>> Chance(within="region").assumption
    'rows were labelled at random within each category, and the other columns came about in the same way ...'
    """

    reweight: bool = True

    holds_out: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_flag("reweight", self.reweight)

    @property
    def reweighs_if_shifted(self) -> bool:
        """Whether propensities are estimated where rows are found to differ, and only there."""
        return self.reweight

    def _estimates(self, compared: Exchangeability | None) -> bool:
        return self.reweight and compared is not None and compared.shifted


@dataclass(frozen=True)
class Drawn(Design):
    """Some rows were drawn at random from those without a label, and then labelled; other labels came about anyhow.

    Parameters
    ----------
    rows : str or boolean array-like of shape (n,)
        Which rows were drawn. Their labels calibrate, all others teach. One that has no label counts as the worst
        possible, and the guarantee is about the rows that were not drawn.
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Drawn
    >>> X, rows = np.arange(100.0)[:, None], np.arange(100) % 5 == 0
    >>> y = np.where(rows | (X[:, 0] < 20), X[:, 0], np.nan)
    >>> ConformalTransducer(Ridge(), labels=Drawn(rows)).fit(X, y).guarantee_.headline
    'exact'
    """

    rows: Any

    rests_on: ClassVar[str] = guarantee.DRAWN

    def n_calibration(self, n_labels: int, confidence: float, *, by_class: bool = False) -> int:
        """Return how many labels calibrate: all those of rows that were drawn."""
        return int(self.rows.labelled.sum())

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        few = f"{counted(int(self.rows.labelled.sum()), 'label')} of rows drawn at random cannot guarantee"
        how = "Draw and label more rows with `transduce draw`, or ask for less confidence"
        return f"{few} {percent(confidence)}: it takes {fewest_calibration(confidence)}. {how}."

    def hold_out(
        self, problem: Problem, number: Any, level: float, by_class: bool, random: Random
    ) -> Mask:
        """Return which labels to hold out, shape (l,): all those of rows that were drawn."""
        if not isinstance(number, str) or number != "auto":
            why = "calibration says how many labels to hold out, and Drawn holds out those of the rows drawn"
            raise ValueError(f"{why}: leave calibration at 'auto'.")
        return np.asarray(self.rows.labelled[problem.rows])

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        unlabelled = problem.sample.unlabelled
        return Weights.equal(len(calibration), len(unlabelled), empty=self.rows.empty[unlabelled])

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: those that were drawn do, and no others."""
        return np.asarray(self.rows.labelled[rows], dtype=float)

    def _alike(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return the rows drawn that have a label, and those that were not drawn and have none."""
        unlabelled = problem.sample.unlabelled
        others = unlabelled[~self.rows.empty[unlabelled]]
        some = np.concatenate([np.flatnonzero(self.rows.labelled), others])
        return some, problem.sample.labelled[some]


@dataclass(frozen=True)
class Sampled(Design):
    """Each row was labelled, or not, with a known probability, independently of the others.

    Parameters
    ----------
    probability : str or array-like of shape (n,)
        With which each row was chosen to be labelled, e > 0; calibration labels are weighted by ``(1 - e) / e``.
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Sampled
    >>> rng, X = np.random.default_rng(0), np.linspace(-2, 2, 100)[:, None]
    >>> probability = 1 / (1 + np.exp(-X[:, 0]))
    >>> y = np.where(rng.random(100) < probability, X[:, 0], np.nan)
    >>> ConformalTransducer(Ridge(), labels=Sampled(probability), random_state=0).fit(X, y).guarantee_.headline
    'exact if the given probabilities are right'
    """

    probability: Any

    rests_on: ClassVar[str] = guarantee.DESIGN
    testable: ClassVar[bool] = False
    of_column: ClassVar[bool] = False

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        return Weights.of(
            odds_without_label(self.probability), calibration, problem.sample.unlabelled, KNOWN
        )

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return a bound on how likely at least as many of the known cells are at labelled rows; (n,), (n,)."""
        return bound_of_labels(known, labelled, self.probability)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: by the odds that it has no label."""
        return odds_without_label(self.probability[rows])


@dataclass(frozen=True)
class Grouped(Design):
    """Whole groups have labels, such as patients with several visits, and chance chose the groups.

    Parameters
    ----------
    groups : str or array-like of shape (n,)
        The group of each row. Whole groups are held out, and each counts once. The guarantee is about a row drawn at
        random from a group without a label.
    order, sensitivity : optional
        As those of `Chance`; groups are not compared `within` categories.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Grouped
    >>> X, groups = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) // 2
    >>> y = np.where(groups < 25, X[:, 0], np.nan)
    >>> ConformalTransducer(Ridge(), labels=Grouped(groups), random_state=0).fit(X, y).guarantee_.n_groups
    9
    """

    groups: Any

    rests_on: ClassVar[str] = guarantee.CHANCE_OF_GROUPS
    of_column: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None:
            why = "groups are held out as a whole, categories calibrate one by one"
            raise ValueError(
                f"groups and within exclude each other ({why}): leave out one of the two."
            )

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many groups with a known cell have labels; shapes (n,), (n,)."""
        n_groups = int(self.groups.max()) + 1
        with_value = np.bincount(self.groups, weights=known, minlength=n_groups) > 0
        with_label = np.bincount(self.groups, weights=labelled, minlength=n_groups) > 0
        return tail_of_labels(with_value, with_label, np.zeros(n_groups, dtype=int))

    def _compare(self, problem: Problem, random: Random) -> Exchangeability:
        """Return how groups with and without labels compare, of which one row each."""
        return replace(super()._compare(problem, random), units="groups")

    def _alike(self, problem: Problem, random: Random) -> tuple[AnyArray, Mask]:
        """Return one row of each group, drawn at random: rows of one group are alike, whatever the labels are."""
        order = random.permutation(problem.n_rows)
        some = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        return some, np.isin(self.groups[some], self.groups[problem.rows])

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        """Return weights by which each calibration group counts once, however many of its rows have an answer."""
        groups, unlabelled = self.groups[calibration], problem.sample.unlabelled
        answered = np.bincount(groups[given], minlength=1 + groups.max(initial=0))
        weights = np.where(given, 1.0 / np.maximum(answered[groups], 1), 0.0)
        others = np.isin(self.groups[unlabelled], self.groups[problem.rows])
        sizes = tuple(np.unique(self.groups[unlabelled[~others]], return_counts=True)[1].tolist())
        weighed = Weights(
            weights, np.ones(len(unlabelled)), GROUPS, n_groups=len(np.unique(groups))
        )
        return replace(weighed, n_other=int(others.sum()), sizes=sizes)

    def measure(self, rows: AnyArray) -> Array:
        """Return how much each labelled row stands for the unlabelled ones: each group counts once."""
        groups = self.groups[rows]
        return np.asarray(1.0 / np.bincount(groups)[groups])


@dataclass(frozen=True)
class Estimated(Design):
    """The other columns played a part in which rows have a label, nobody knows how: the odds are estimated from them.

    The guarantee is approximate, and none where labels are worth fewer than ``2 / (1 - confidence)`` of equal weight.

    Parameters
    ----------
    within, order, sensitivity : optional
        As those of `Chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transduce.conformal import ConformalTransducer, Estimated
    >>> rng, X = np.random.default_rng(0), np.linspace(-2, 2, 400)[:, None]
    >>> y = np.where(rng.random(400) < 1 / (1 + np.exp(-X[:, 0])), X[:, 0], np.nan)
    >>> model = ConformalTransducer(Ridge(), labels=Estimated(), test_exchangeability=False, random_state=0)
    >>> model.fit(X, y).guarantee_.kind
    'approximate'
    """

    rests_on: ClassVar[str] = guarantee.ESTIMATE
    of_column: ClassVar[bool] = False

    def _estimates(self, compared: Exchangeability | None) -> bool:
        return True


@dataclass(frozen=True)
class ByClass(Design):
    """Labels were chosen by their class, say as many sick as healthy; within each class chance chose the rows.

    The guarantee holds within every class, whatever the shares. Where they are given and labels are held out, it holds
    over all rows instead, with smaller sets: of a rare class far fewer rows may be covered, and the guarantee says so.
    ``label_conditional=True`` then keeps it within every class.

    Parameters
    ----------
    shares : dict, optional
        The share of every class among the unlabelled rows, such as ``{"yes": 0.06, "no": 0.94}``; estimated by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from transduce.conformal import ByClass, ConformalTransducer
    >>> sick = np.append(np.arange(60) < 30, np.arange(400) < 40)
    >>> X = np.random.default_rng(0).normal(size=(460, 1)) + 2.0 * sick[:, None]
    >>> y = np.where(np.arange(460) < 60, np.where(sick, "yes", "no"), None)
    >>> model = ConformalTransducer(LogisticRegression(), labels=ByClass(), random_state=0).fit(X, y)
    >>> bool(model.class_shares_.to_frame()["share"]["yes"] < 0.2), model.guarantee_.within
    (True, 'class')
    """

    shares: Any = None

    testable: ClassVar[bool] = False
    holds_out: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.modified:
            why = "Labels that were chosen by their class are compared within classes alone"
            raise ValueError(f"{why}: leave out within, order and sensitivity.")
        if self.shares is not None:
            read_shares(self.shares)

    @property
    def by_class(self) -> bool:
        """Whether every class is to be compared with its own calibration labels."""
        return self.shares is None

    @property
    def assumption(self) -> str:
        """What has to be true of the labels."""
        return guarantee.BY_CLASS if self.shares is None else guarantee.SHARES

    @property
    def for_column(self) -> bool:
        """Whether the number of rows outside can be bounded."""
        return self.shares is None

    def check(self, classes: Sequence[Any] | AnyArray | None, by_class: bool) -> None:
        """Raise a ValueError if it does not suit the classes of the labels; None for numbers."""
        if classes is None:
            raise OptionError(
                "Labels that were chosen by their class are classes, and these are numbers."
            )
        self.given(classes)

    def given(self, classes: Sequence[Any] | AnyArray | None) -> Array | None:
        """Return the given share of each class; None if they are to be estimated."""
        if self.shares is None:
            return None
        by_name = {_class_name(key): share for key, share in read_shares(self.shares).items()}
        names = [_class_name(one) for one in np.asarray(classes, dtype=object).tolist()]
        lost = [name for name in names if name not in by_name]
        if lost:
            lack = f"The shares lack class {quoted(lost[0])}"
            raise ValueError(f"{lack}: give its share among the unlabelled rows too.")
        more = [name for name, share in by_name.items() if name not in names and share > 0.0]
        if more:
            why = f"{quoted(more[0])} has a share, and no label is of that class"
            raise ValueError(f"{why}: correct its name, or label some of its rows.")
        return np.array([by_name[name] for name in names])

    def n_calibration(self, n_labels: int, confidence: float, *, by_class: bool = False) -> int:
        """Return how many labels calibrate, roughly: classes with enough labels hold out some of theirs."""
        return calibration_number(n_labels, confidence, by_class=True)

    def _apart(self, problem: Problem) -> AnyArray:
        return problem.codes

    def _weights(self, problem: Problem, calibration: AnyArray, given: Mask) -> Weights:
        shares = self.given(problem.classes)
        return Weights.equal(
            len(calibration), len(problem.sample.unlabelled), kind=CLASSES, shares=shares
        )

    def weigh_outside(self, n_calibration: int, n_empty: int, classes: AnyArray | None) -> Weights:
        """Return weights of labels that calibrate rows which no fit sees, known before any fit."""
        weights = super().weigh_outside(n_calibration, n_empty, classes)
        return replace(weights, kind=CLASSES, shares=self.given(classes), testable=False)


def read_shares(shares: Any) -> dict[Any, float]:
    """Return shares of classes, which sum to 1; raise a ValueError that says what to correct."""
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(
            f"Shares of classes are given as in {{'yes': 0.06, 'no': 0.94}}; got {quoted(shares)}."
        )
    for name, share in shares.items():
        if not checks.is_number(share) or not 0.0 <= float(share) <= 1.0:
            raise ValueError(
                f"The share of class {quoted(name)} must be a number from 0 to 1; got {quoted(share)}."
            )
    total = sum(float(share) for share in shares.values())
    last = min(int(Decimal(repr(float(share))).as_tuple().exponent) for share in shares.values())
    if abs(total - 1.0) > 0.499 * len(shares) * 10.0**last + 1e-6:  # as far as numbers are rounded
        raise ValueError(f"The shares of the classes must sum to 1, and these sum to {total:.7g}.")
    return {name: float(share) / total for name, share in shares.items()}


def _class_name(value: Any) -> str:
    """Return a class as it is written in a file or on the command line: whole numbers without ``.0``, and ``true``."""
    text = re.sub(r"^(-?\d+)\.0+$", r"\1", str(value))
    return text.lower() if text.lower() in ("true", "false") else text


# ------------------------------------------------------------------------------------------------- reading


def read_design(labels: Any, missing: Mask) -> Design:
    """Return how the labels came about, `Chance` by default, with an array in place of each column."""
    design = Chance() if labels is None else labels
    if not isinstance(design, Design):
        known = (
            "Chance(), Drawn(rows), Sampled(probability), Grouped(groups), ByClass() or Estimated()"
        )
        raise ValueError(f"labels says how the labels came about: {known}; got {quoted(labels)}.")
    return design.read(missing)


@dataclass(frozen=True, eq=False)
class Categories:
    """The category of each row, by number, and the names of the categories."""

    codes: AnyArray  # (n,)
    names: tuple[str, ...]

    def at(self, rows: AnyArray) -> Categories:
        """Return those of some rows."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Which rows were drawn at random to be labelled: those that have a label, and those that have none."""

    labelled: Mask  # (n,)
    empty: Mask  # (n,)

    def at(self, rows: AnyArray) -> DrawnRows:
        """Return those of some rows."""
        return DrawnRows(self.labelled[rows], self.empty[rows])


@dataclass(frozen=True, eq=False)
class _Cells:
    """One cell for each row, of a column or an array, and how messages speak of it."""

    kind: str  # "column", whose rows are counted from 1, or "array", from 0
    name: Any
    cells: pd.Series

    @classmethod
    def of(cls, name: str, value: Any, frame: pd.DataFrame | None, n: int) -> _Cells:
        """Return the column of a table, or the array, that a field of a design names or holds."""
        if _is_name(value):
            if frame is None:
                what = f"give an array with a value for each of the {n} rows"
                raise ValueError(
                    f"{name}={quoted(value)} names a column, and there is no table here: {what}."
                )
            return cls("column", value, frame[value].reset_index(drop=True))
        if np.ndim(value) != 1 or len(value) != n:
            raise ValueError(f"Array {name!r} must have a value for each of the {n} rows.")
        cells = pd.Series(value if isinstance(value, np.ndarray | pd.Series) else list(value))
        return cls("array", name, cells.reset_index(drop=True))

    def row(self, number: int) -> str:
        """Return a row as messages name it."""
        return f"row {number + 1}" if self.kind == "column" else f"row {number} (counted from 0)"

    def at(self, number: int) -> str:
        """Return a cell in words."""
        cell = self.cells.iloc[number]
        return "nothing" if pd.isna(cell) else quoted(_plain(cell))

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} {self.name!r}"


def _is_name(value: Any) -> bool:
    """Return whether a field names a column, and is no array."""
    return (
        value is not None and np.ndim(value) == 0 and not isinstance(value, Categories | DrawnRows)
    )


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _read_rows(marks: _Cells, missing: Mask) -> DrawnRows:
    """Return which rows were drawn at random, with a label and without."""
    column = marks.cells.astype(object).to_frame(marks.name)
    marked = marks.cells.to_numpy() if marks.cells.dtype == bool else read_marks(column, marks.name)
    drawn = marked & ~missing
    if not drawn.any():
        what = f"No row that {marks.name!r} marks as drawn at random has a label"
        raise ValueError(f"{what}: label some first.")
    if drawn[~missing].all():
        what = "leave it out, since chance chose all labels"
        if (marked & missing).any():  # which may be harder than the others
            what = "label some other rows to learn from"
        raise ValueError(f"{marks} marks all labelled rows as drawn at random: {what}.")
    return DrawnRows(drawn, marked & missing)


def _read_probability(cells: _Cells, missing: Mask) -> Array:
    """Return the probability with which each row was chosen to be labelled."""
    plain = pd.to_numeric(cells.cells, errors="coerce")
    numbers = plain.to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(bad):
        what = f"{cells} says with which probability each row was chosen to be labelled"
        found = f"{cells.row(bad[0])} has {cells.at(bad[0])}"
        raise ValueError(f"{what}: it must lie above 0 and be at most 1, and {found}.")
    sure = np.flatnonzero(missing & (numbers == 1.0))
    if len(sure):
        why = f"{cells.row(sure[0])} was sure to be labelled, and it has no label"
        raise ValueError(f"{cells}: {why}: say how likely it was.")
    return numbers


def _read_codes(cells: _Cells, what: str) -> Categories:
    """Return the number of each row's group or category, and their names, sorted as text."""
    holes = np.flatnonzero(cells.cells.isna())
    if len(holes):
        raise ValueError(
            f"{cells} names {what}, and {cells.row(holes[0])} has none: fill that hole first."
        )
    codes, values = pd.factorize(cells.cells.astype(object), sort=False)
    order = np.argsort([str(value) for value in values], kind="stable")
    return Categories(np.argsort(order)[codes], tuple(repr(_plain(values[k])) for k in order))


def _read_groups(cells: _Cells, missing: Mask) -> AnyArray:
    """Return the number of each row's group."""
    codes = _read_codes(cells, "groups").codes
    if len(np.unique(codes[~missing])) < 2:
        raise ValueError("All labels are of one group: at least one other is needed to calibrate.")
    if missing.any() and np.isin(codes[missing], codes[~missing]).all():
        why = "Every group has a label, and groups are for rows of groups that have none"
        without = "if chance chose which rows have a label, the guarantee holds without them"
        raise ValueError(f"{why}. Leave them out: {without}.")
    return codes


def _read_order(cells: _Cells, missing: Mask) -> Array:
    """Return the place of each row along an order: numbers, or times as their ranks."""
    numbers = pd.to_numeric(cells.cells, errors="coerce").where(cells.cells.notna())
    if numbers.isna().any() or pd.api.types.is_datetime64_any_dtype(cells.cells):
        times = pd.to_datetime(cells.cells, errors="coerce", format="mixed", utc=True)
        numbers = times.rank().where(times.notna())
    bad = np.flatnonzero(~np.isfinite(numbers.to_numpy(dtype=float, na_value=np.nan)))
    if len(bad):
        what = f"{cells.row(bad[0])} has {cells.at(bad[0])}"
        raise ValueError(
            f"{cells} orders the rows, and {what}: it must be a number or a date in each."
        )
    return numbers.to_numpy(dtype=float)


# By the field that is read.
_READERS = {
    "rows": _read_rows,
    "probability": _read_probability,
    "groups": _read_groups,
    "within": lambda cells, missing: _read_codes(cells, "categories"),
    "order": _read_order,
}


# ------------------------------------------------------------------------------------------------- weights

EQUAL, KNOWN, ESTIMATED, GROUPS, CLASSES = "equal", "known", "estimated", "groups", "classes"


@dataclass(frozen=True, eq=False)
class Weights:
    """How much calibration and unlabelled rows weigh, and what that rests on."""

    calibration: Array  # (c,) odds that a row has no label, up to a common factor
    unlabelled: Array  # (m,) the same
    kind: str = EQUAL  # where they come from
    factor: float = 1.0  # the true odds may be up to this many times larger or smaller
    cells: tuple[AnyArray, AnyArray] | None = (
        None  # (c,), (m,) categories, within which rows are compared
    )
    categories: tuple[str, ...] = ()  # their names
    shares: Array | None = (
        None  # (n_classes,) of the classes among the unlabelled rows, if they were given
    )
    n_groups: int = 0  # groups that calibrate
    n_other: int = 0  # unlabelled rows of groups that have labels
    sizes: tuple[int, ...] = ()  # unlabelled rows of each group that has none
    empty: Mask | None = None  # (m,) unlabelled rows that were drawn to be labelled
    n_empty: int = 0  # such rows of the table that are not among these m
    assumption: str = guarantee.CHANCE  # what has to be true
    testable: bool = True  # whether rows that differ speak against it
    compared: Exchangeability | None = (
        None  # how labelled and unlabelled rows compare, if that was tested
    )
    verdict: guarantee.Verdict | None = None  # the same, in short
    estimated: EstimatedOdds | None = None  # the odds, if they were estimated

    @classmethod
    def equal(cls, n_calibration: int, n_unlabelled: int, **rest: Any) -> Weights:
        """Return weights that are all 1."""
        return cls(np.ones(n_calibration), np.ones(n_unlabelled), **rest)

    @classmethod
    def of(cls, odds: Array, calibration: AnyArray, unlabelled: AnyArray, kind: str) -> Weights:
        """Return the weights at rows of a table, the largest of the unlabelled ones being 1; equal odds are all 1."""
        largest = float(odds[unlabelled].max(initial=0.0)) or 1.0
        return cls(odds[calibration] / largest, odds[unlabelled] / largest, kind)


def _weighed_by_estimate(problem: Problem, calibration: AnyArray, seed: int) -> Weights:
    """Return weights by the odds that rows have no label, estimated from their features."""
    unlabelled = problem.sample.unlabelled
    estimated = estimate_odds(problem.X, problem.sample.labelled, seed)
    kind = EQUAL if estimated.model == CHANCE_ALONE else ESTIMATED
    weights = Weights.of(estimated.odds, calibration, unlabelled, kind)
    # Rows beyond all labelled ones outweigh all labels, so that nothing is ruled out there.
    heavy = 1e12 * (1.0 + float(weights.calibration.sum()))
    beyond = np.where(estimated.beyond[unlabelled], heavy, weights.unlabelled)
    return replace(weights, unlabelled=beyond, estimated=estimated)


def odds_without_label(probability: Array) -> Array:
    """Return the odds that a row has no label, by the probability that it has one."""
    return (1.0 - probability) / probability


# ----------------------------------------------------------------------------------- numbers of labels


def calibration_number(
    n_labels: int, level: float, *, by_class: bool = False, factor: float = 1.0
) -> int:
    """Return how many labels to hold out: up to half of few, a smaller share of many, none if too few for the level."""
    least = fewest_calibration(level, factor)
    if n_labels - least < max(2, n_labels // 3):
        return 0
    about = n_labels // 2 if by_class else int(min(n_labels / 2, 5 * np.sqrt(n_labels)))
    exceeding = nonconformity_rank(level, about)  # c + 1 - k, rounded down
    return max(int(np.ceil(exceeding / (1.0 - level) - 1e-9)) - 1, least)


def labels_needed(confidence: float) -> int:
    """Return the fewest labels of which `calibration_number` holds some out."""
    least = fewest_calibration(confidence)
    start = max(least + 2, 3 * least // 2 - 2)  # of fewer a third would not be left
    return next(n_labels for n_labels in count(start) if calibration_number(n_labels, confidence))


def read_number(calibration: Any, n_labelled: int) -> int:
    """Return how many labels a number, or a share of them, holds out; raise a ValueError if it is neither."""
    ok = checks.is_number(calibration)
    if ok and isinstance(calibration, numbers.Integral) and int(calibration) >= 1:
        number = int(calibration)
    elif ok and 0.0 < float(calibration) < 1.0:
        number = round(float(calibration) * n_labelled)
    else:
        allowed = (
            "'auto', a number of labels to hold out from 1 on, or a share of them between 0 and 1"
        )
        raise ValueError(f"calibration must be {allowed}; got {quoted(calibration)}.")
    if not 1 <= number < n_labelled:
        holds = f"calibration={quoted(calibration)} holds out {number} of {n_labelled} labels"
        raise ValueError(f"{holds}: at least one must be held out and at least one stay visible.")
    return number


# -------------------------------------------------------------------------------------- estimated odds

N_FOLDS, N_TREES = 5, 50
MOST_ROWS = 5000  # of each kind that a model is fitted to; a smaller share of one kind changes all odds alike
MOST_TRIED = 100  # features at a split: of thousands half would take minutes
FEWEST = 5  # rows of either kind below which nothing can be learned
# Of the labelled rows have odds up to the cap: beyond, there is next to no labelled row to compare with, and estimates
# are wild. On nine tables with 100 labels under a strong shift this cap covered 0.90 with 8 % unbounded intervals, no
# cap 0.93 with 26 %, equal weights 0.86.
CAP = 0.95
CHANCE_ALONE = "chance"
SURE = 1e-3  # probabilities closer than this to 0 or 1 are not believed


@dataclass(frozen=True, eq=False)
class EstimatedOdds:
    """Odds that each row has no label, up to a common factor, as a model sees them that was not fitted to the row."""

    odds: Array  # (n,) capped
    model: str  # the one whose probabilities were best at rows it had not seen
    beyond: Mask  # (n,) rows whose odds, before the cap, exceed those of every labelled row


def estimate_odds(X: Any, labelled: Mask, seed: int) -> EstimatedOdds:
    """Return the odds that rows have no label, estimated from their features. Shapes: X (n, d), labelled (n,)."""
    n, random = len(labelled), np.random.RandomState(seed)
    features, names = table_features(X, np.arange(n))
    if min(labelled.sum(), (~labelled).sum()) < FEWEST or not names:
        return EstimatedOdds(np.ones(n), CHANCE_ALONE, np.zeros(n, dtype=bool))
    features = norm.ppf((rankdata(features, axis=0) - 0.5) / n)
    features /= features.std(axis=0)
    fold = _deal(labelled, random)  # a row's own mark does not tell: others' models judge it
    tried = [(CHANCE_ALONE, np.full(n, 0.5))]  # half of all rows, where both kinds weigh the same
    for name, model in _candidates(seed, features.shape[1]):
        tried.append((name, _cross_fit(model, features, labelled, fold, random)))
    best, probability = min(tried, key=lambda one: _loss(one[1], labelled))
    odds = odds_without_label(probability)
    cap = float(np.quantile(odds[labelled], CAP))
    beyond = odds > odds[labelled].max()  # no weight makes up for labels that are not there
    return EstimatedOdds(np.minimum(odds, cap), best, beyond)


def _candidates(seed: int, n_features: int) -> list[tuple[str, Any]]:
    """Return the models that are tried besides chance."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    tried = min(0.5, MOST_TRIED / n_features)
    forest = RandomForestClassifier(
        N_TREES, min_samples_leaf=10, max_features=tried, random_state=seed
    )
    logistic = [
        ("logistic regression", LogisticRegression(C=C, max_iter=1000)) for C in (0.01, 0.1, 1.0)
    ]
    return [*logistic, ("random forest", forest)]


def _deal(labelled: Mask, random: Random) -> AnyArray:
    """Return a fold for each row, labelled and unlabelled rows spread evenly."""
    fold = np.empty(len(labelled), dtype=int)
    for kind in (labelled, ~labelled):
        fold[random.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % N_FOLDS
    return fold


def _cross_fit(
    model: Any, features: Array, labelled: Mask, fold: AnyArray, random: Random
) -> Array:
    """Return each row's probability of a label by a model of the other folds, where both kinds weigh the same."""
    said = np.empty(len(labelled))
    for k in range(N_FOLDS):
        kinds = [np.flatnonzero((fold != k) & kind) for kind in (labelled, ~labelled)]
        kinds = [
            rows if len(rows) <= MOST_ROWS else random.choice(rows, MOST_ROWS, False)
            for rows in kinds
        ]
        rows = np.concatenate(kinds)
        weights = np.concatenate(
            [np.full(len(kind), len(rows) / (2.0 * len(kind))) for kind in kinds]
        )
        model.fit(features[rows], labelled[rows], sample_weight=weights)
        said[fold == k] = model.predict_proba(features[fold == k])[:, 1]
    return np.clip(said, SURE, 1.0 - SURE)


def _loss(probability: Array, labelled: Mask) -> float:
    """Return the log-loss, in which both kinds weigh the same."""
    return (
        -float(np.log(probability[labelled]).mean() + np.log(1.0 - probability[~labelled]).mean())
        / 2.0
    )
