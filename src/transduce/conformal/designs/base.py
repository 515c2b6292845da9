"""`Design`: what all ways in which labels may have come about share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from transduce.conformal.designs.held_out import calibration_number, labels_needed, read_number
from transduce.conformal.designs.rows import Categories, DrawnRows, is_name
from transduce.conformal.designs.weights import Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core import checks, guarantee
from transduce.core.records import changed_fields
from transduce.core.types import AnyArray, Array, Mask, Random
from transduce.core.words import MODIFIERS, OptionError, option, percent

if TYPE_CHECKING:
    import pandas as pd

    from transduce.conformal.designs.reading import Cells
    from transduce.conformal.exchangeability import Exchangeability
    from transduce.model_selection.fit_and_predict import Problem

AnyDesign = TypeVar("AnyDesign", bound="Design")


MOST_SENSITIVITY = 1e6  # beyond, no number of labels would do


# Flags of all designs, for the fields that all have.
COMMON_FLAGS = (
    Flag(
        name="within",
        field="within",
        help="A column of categories: the guarantee holds within each.",
    ),
    Flag(
        name="order",
        field="order",
        help="A column that orders the rows, such as a date: test for drift along it.",
    ),
    Flag(
        name="sensitivity",
        field="sensitivity",
        kind="factor",
        default=1.0,
        help="Let the guarantee hold even if the odds of a label depend on the value by up to this factor.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """How the labels came about; a field that describes rows names a column until `read` makes an array of it."""

    within: Any = None
    order: Any = None
    sensitivity: float = 1.0

    flags: ClassVar[tuple[Flag, ...]] = ()  # besides those of all designs
    cards: ClassVar[tuple[Card, ...]] = ()
    row_fields: ClassVar[tuple[str, ...]] = ("within", "order")  # fields that describe rows
    number_fields: ClassVar[tuple[str, ...]] = ("order",)  # those of them that hold numbers
    rests_on: ClassVar[guarantee.Assumption] = guarantee.CHANCE
    testable: ClassVar[bool] = True  # whether rows that differ speak against what is assumed
    of_column: ClassVar[bool] = True  # whether a guarantee for the column is possible
    holds_out: ClassVar[bool] = True  # whether labels must be held out to make use of it, as it is
    draws_calibration: ClassVar[bool] = False  # whether calibration rows are those that were drawn
    chosen_by_class: ClassVar[bool] = False  # whether classes have other shares without a label
    # Whether shares of classes with and without a label are compared, to see if labels were chosen by class unnoticed.
    compares_shares: ClassVar[bool] = False
    # Whether values stand without a guarantee where labels are too few for one; else that is refused.
    stands_without_guarantee: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.sensitivity != 1.0:
            checks.check_factor("sensitivity", self.sensitivity)
            checks.check_positive("sensitivity", self.sensitivity, most=MOST_SENSITIVITY)
        for name in self.row_fields:
            if name not in MODIFIERS and getattr(self, name) is None:
                raise ValueError(
                    f"{type(self).__name__} needs {name}: the name of a column, or a value for each row."
                )

    # ---- how it is said

    @classmethod
    def called(cls, value: str = "") -> str:
        """Return how to write it in Python, with its fields, or a value, in brackets where it needs any."""
        needed = [field.name for field in fields(cls) if field.default is MISSING]
        inside = ", ".join(needed)
        if needed and value:
            inside = value
        return f"{cls.__name__}({inside})"

    @classmethod
    def of_flags(cls, values: Mapping[str, Any]) -> Design:
        """Return the design that some flags of the command line say, each with its value."""
        return cls(**cls.fields_of_flags(values))

    @classmethod
    def fields_of_flags(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that some flags of the command line set, each with its value."""
        given: dict[str, Any] = {}
        for flag in (*cls.flags, *COMMON_FLAGS):
            if flag.field and flag.name in values:
                given[flag.field] = flag.read(values[flag.name])
        return given

    def as_flags(self) -> dict[str, Any]:
        """Return the flags of the command line that say it; those at their defaults are left out."""
        changed = changed_fields(self)
        own = self._flags_of_fields(self.flags, changed)
        if not own:
            own = {flag.name: flag.says for flag in self.flags if flag.says is not None}
        return {**own, **self._flags_of_fields(COMMON_FLAGS, changed)}

    @staticmethod
    def _flags_of_fields(flags: Sequence[Flag], changed: Mapping[str, Any]) -> dict[str, Any]:
        return {
            flag.name: flag.write(changed[flag.field]) for flag in flags if flag.field in changed
        }

    def as_code(self) -> str:
        """Return the Python code that makes it."""
        words = [f"{name}={value!r}" for name, value in changed_fields(self).items()]
        return f"{type(self).__name__}({', '.join(words)})"

    # ---- what the user said

    @property
    def columns(self) -> list[Any]:
        """Names of the columns that describe rows."""
        names = self.not_features
        if is_name(self.within):
            names.append(self.within)
        return names

    @property
    def not_features(self) -> list[Any]:
        """Names of the columns from which nothing is learned: all except the categories."""
        named = [getattr(self, name) for name in self.row_fields if name != "within"]
        return [name for name in named if is_name(name)]

    @property
    def columns_of_numbers(self) -> list[Any]:
        """Names of the columns that describe rows by numbers."""
        named = [getattr(self, name) for name in self.number_fields]
        return [name for name in named if is_name(name)]

    @property
    def marks(self) -> Any:
        """The column that marks rows drawn at random to be labelled; None if there is none."""
        return None

    @property
    def gives_shares(self) -> bool:
        """Whether the share of every class among the unlabelled rows is given."""
        return False

    def given_shares(self, classes: Sequence[Any] | AnyArray | None) -> Array | None:
        """Return the given share of each class; None if none is given."""
        return None

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
        from transduce.conformal.designs.reading import Cells

        read: dict[str, Any] = {}
        for name in self.row_fields:
            value = getattr(self, name)
            if value is not None and not isinstance(value, Categories | DrawnRows):
                cells = Cells.of(name, value, frame, len(missing))
                read[name] = self._read_field(name, cells, missing)
        return replace(self, **read)

    def _read_field(self, name: str, cells: Cells, missing: Mask) -> Any:
        """Return a field that describes rows, read and checked."""
        from transduce.conformal.designs.reading import read_codes, read_order

        if name == "within":
            return read_codes(cells, "categories")
        return read_order(cells)

    def at(self, rows: AnyArray) -> Self:
        """Return the design of some rows, in this order: of arrays their cells; names of columns stay as they are."""
        from transduce.conformal.designs.reading import as_array

        picked: dict[str, Any] = {}
        for name in self.row_fields:
            value = getattr(self, name)
            if isinstance(value, Categories | DrawnRows):
                picked[name] = value.at(rows)
            elif value is not None and not is_name(value):
                picked[name] = as_array(value)[rows]
        return replace(self, **picked)

    def check(self, classes: Sequence[Any] | AnyArray | None, by_class: bool) -> None:
        """Raise a ValueError if it does not suit the classes of the labels (None for numbers) or sets by class."""
        for name in ("within", "groups"):
            if by_class and getattr(self, name, None) is not None:
                raise OptionError(
                    f"{name} and label_conditional exclude each other (rows are compared within one or the "
                    "other): leave out one of the two."
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

    @property
    def holds_out_in_parts(self) -> bool:
        """Whether groups, categories or classes hold out labels of their own, so that their number varies."""
        apart = self.within is not None or self.chosen_by_class
        return apart or self.together is not None

    @property
    def n_drawn(self) -> int:
        """How many rows were drawn at random to be labelled, with a label or without."""
        return 0

    def n_calibration(self, n_labels: int, confidence: float, *, by_class: bool = False) -> int:
        """Return how many labels calibrate, unless a number is asked for; none if they are too few for the level."""
        return calibration_number(
            n_labels, confidence, by_class=by_class, factor=float(self.sensitivity)
        )

    def too_few(self, n_labels: int, confidence: float) -> str:
        """Return that labels are too few for a level, in a sentence that says what to do."""
        if self.sensitivity > 1.0:
            return (
                f"{n_labels} labels are too few to guarantee {percent(confidence)} if the odds of a label "
                f"are off by up to {self.sensitivity:g}: use a smaller {option('sensitivity')}, or ask for "
                "less confidence."
            )
        return (
            f"{n_labels} labels are too few to hold some out and guarantee {percent(confidence)}: it "
            f"takes {labels_needed(confidence)}."
        )

    def hold_out(
        self, problem: Problem, number: Any, level: float, by_class: bool, random: Random
    ) -> Mask:
        """Return which labels to hold out, (l,), whatever they are; `number` is "auto", a number or a share of them."""
        auto = isinstance(number, str) and number == "auto"
        parts = self._apart(problem)
        if parts is not None and auto:
            return self._hold_out_of_parts(problem, parts, level, random)
        units = problem.places[problem.rows]
        if self.together is not None:
            units = self.together[problem.rows]
        n_units = len(np.unique(units))
        if auto:
            size = self.n_calibration(n_units, level, by_class=by_class)
        else:
            size = read_number(number, n_units)
        return np.isin(units, random.choice(np.unique(units), size, replace=False))

    def _hold_out_of_parts(
        self, problem: Problem, parts: AnyArray, level: float, random: Random
    ) -> Mask:
        """Return which labels to hold out, as many of each part as it takes; none of one that has too few. (l,)."""
        held_out = np.zeros(len(parts), dtype=bool)
        by_content = np.argsort(problem.places[problem.rows])
        for part in np.unique(parts):
            labels = by_content[parts[by_content] == part]
            size = calibration_number(len(labels), level, factor=float(self.sensitivity))
            held_out[random.choice(labels, size, replace=False)] = True
        return held_out

    def _apart(self, problem: Problem) -> AnyArray | None:
        """Return numbers of the parts that each hold out labels of their own, shape (l,); None if there are none."""
        if self.within is None:
            return None
        return np.asarray(self.within.codes[problem.rows])

    def ready(self, estimator: Any, rows: AnyArray) -> Any:
        """Return the estimator, its own folds such that they never split a group of these labelled rows."""
        if self.together is None:
            return estimator
        from transduce.model_selection.cross_validation import with_group_folds

        return with_group_folds(estimator, self.together[rows], 0)

    # ---- what to compare, and how labels weigh

    def chance_of_presence(self, known: Mask, labelled: Mask) -> float:
        """Return how likely at least as many of the known cells of a column are at labelled rows; (n,), (n,)."""
        from transduce.conformal.presence import tail_of_labels

        categories = np.zeros(len(known), dtype=int)
        if self.within is not None:
            categories = self.within.codes
        return tail_of_labels(known, labelled, categories)

    def weigh(
        self, problem: Problem, held_out: Mask, given: Mask, *, test: bool, random: Random
    ) -> Weights:
        """Return how much rows weigh, and how they compare if that is tested. Shapes: held_out (l,), given (c,)."""
        calibration = problem.rows[held_out]
        unlabelled = problem.sample.unlabelled
        compared = None
        verdict = None
        if test and self.testable and len(unlabelled):
            compared = self._compare(problem, random)
            verdict = compared.verdict
        if len(unlabelled) and self._estimates(compared):
            from transduce.conformal.designs.propensity import weigh_by_estimate

            weights = weigh_by_estimate(problem, calibration, random.randint(2**31 - 1))
        else:
            weights = self._weights(problem, calibration, given)
        weights = self._compared_within(weights, calibration, unlabelled)
        return replace(weights, testable=self.testable, compared=compared, verdict=verdict)

    def weigh_before_fit(self, problem: Problem, held_out: Mask) -> Weights:
        """Return weights as far as they are known before a fit; those to be estimated count as equal. (l,)."""
        calibration = problem.rows[held_out]
        unlabelled = problem.sample.unlabelled
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
        from transduce.conformal.exchangeability import exchangeability_test
        from transduce.model_selection.fit_and_predict import take

        seed = random.randint(2**31 - 1)
        rows, labelled = self._alike(problem, random)
        categories = None
        if self.within is not None:
            categories = self.within.codes[rows]
        X = problem.X
        if len(rows) < problem.n_rows:
            X = take(X, rows)
        return exchangeability_test(X, labelled, within=categories, random_state=seed)

    def compared_rows(self, missing: Mask) -> tuple[AnyArray, AnyArray]:
        """Return the labelled and the unlabelled rows that are alike if the assumption holds. Shapes: missing (n,)."""
        return np.flatnonzero(~missing), np.flatnonzero(missing)

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
    def assumption(self) -> guarantee.Assumption:
        """What has to be true of the labels."""
        if self.rests_on == guarantee.CHANCE and self.within is not None:
            return guarantee.CHANCE_WITHIN
        return self.rests_on

    @property
    def for_column(self) -> bool:
        """Whether the number of rows outside can be bounded."""
        return self.of_column and self.sensitivity == 1.0
