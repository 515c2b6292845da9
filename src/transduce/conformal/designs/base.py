"""`Design`: what a user says about how the labels came about.

A design names columns, or holds a value for each row.
`Design.bind` reads these once, and the `BoundDesign` that it returns holds arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.rows import (
    DESCRIBES_ROWS,
    NUMBERS_OF_ROWS,
    RowValues,
    count_columns,
    named_columns,
)
from transduce.conformal.designs.weights import Grounds, Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core import assumptions, checks
from transduce.core.records import changed_fields
from transduce.core.types import AnyArray, Array, ColumnName, Mask, OptionValues
from transduce.core.words import OptionError

if TYPE_CHECKING:
    import pandas as pd

    from transduce.conformal.designs.reading import RowReader
    from transduce.conformal.exchangeability import Exchangeability


MOST_SENSITIVITY = 1e6  # beyond, no number of labels would do


def _one_or_several(names: ColumnName | list[ColumnName]) -> RowValues:
    """Return the one column that a list names, or all of them, each once; a name is one column."""
    if not isinstance(names, list):
        return names
    different = list(dict.fromkeys(names))
    if len(different) == 1:
        return different[0]
    return different


# Flags of all designs, for the fields that all have.
COMMON_FLAGS = (
    Flag(
        name="within",
        field="within",
        kind="columns",
        read=_one_or_several,
        write=named_columns,
        help=(
            "A column of categories: the guarantee then holds within each of them. If the option "
            "is repeated, it holds within each category of every column named."
        ),
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
        help=(
            "Keep the guarantee even if the odds of being labelled depend on the value itself, by "
            "up to this factor."
        ),
    ),
)


def _row_fields(design: Design | type[Design]) -> list[Field[RowValues]]:
    """Return the fields that describe rows; those of all designs come last."""
    described = [item for item in fields(design) if item.metadata.get("describes_rows")]
    return sorted(described, key=lambda item: item.default is None)


@dataclass(frozen=True, kw_only=True)
class Design:
    """How the labels came about, as a user says it."""

    within: RowValues = field(default=None, metadata=DESCRIBES_ROWS)
    order: RowValues = field(default=None, metadata=NUMBERS_OF_ROWS)
    sensitivity: float = 1.0

    flags: ClassVar[tuple[Flag, ...]] = ()  # besides those of all designs
    cards: ClassVar[tuple[Card, ...]] = ()
    rests_on: ClassVar[assumptions.Assumption] = assumptions.CHANCE
    testable: ClassVar[bool] = True  # whether rows that differ speak against what is assumed
    can_bound_column: ClassVar[bool] = True  # whether a guarantee for the column is possible
    always_holds_out: ClassVar[bool] = True  # whether it needs calibration labels, as it is
    weighs_equally: ClassVar[bool] = False  # whether calibration labels weigh the same, as it is
    draws_calibration: ClassVar[bool] = False  # whether calibration rows are those that were drawn
    chosen_by_class: ClassVar[bool] = False  # whether classes have other shares without a label
    # Whether shares of classes with and without a label are compared, to see if labels were chosen
    # by class unnoticed.
    compares_shares: ClassVar[bool] = False
    # Whether values stand without a guarantee where labels are too few for one; else a fit is
    # refused.
    stands_without_guarantee: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.sensitivity != 1.0:
            checks.check_factor("sensitivity", self.sensitivity)
            checks.check_positive("sensitivity", self.sensitivity, most=MOST_SENSITIVITY)
        if self.overlapping:
            self._check_overlapping()
        for described in _row_fields(self):
            if described.default is MISSING and getattr(self, described.name) is None:
                raise ValueError(
                    f"{type(self).__name__} needs {described.name}: the name of a column, or a "
                    "value for each row."
                )

    def _check_overlapping(self) -> None:
        """Raise a ValueError if rows cannot be compared within several columns at once."""
        # Weights of rows differ by more than their categories: then each row would need a program
        # of its own.
        if not self.weighs_equally or self.sensitivity != 1.0:
            raise ValueError(
                "Several columns in within need labels that weigh the same: name one column, or "
                f"leave out sensitivity and use Chance or Drawn instead of {type(self).__name__}."
            )

    # ---- how it is written

    @classmethod
    def called(cls, value: str = "") -> str:
        """Return how Python writes it, with the fields it needs, or a value, in brackets."""
        needed = [item.name for item in fields(cls) if item.default is MISSING]
        inside = ", ".join(needed)
        if needed and value:
            inside = value
        return f"{cls.__name__}({inside})"

    @classmethod
    def of_flags(cls, values: Mapping[str, Any]) -> Design:
        """Return the design that flags of the command line describe, each with its value."""
        return cls(**cls.fields_of_flags(values))

    @classmethod
    def fields_of_flags(cls, values: Mapping[str, Any]) -> OptionValues:
        """Return the fields that flags of the command line set, each with its value."""
        given: OptionValues = {}
        for flag in (*cls.flags, *COMMON_FLAGS):
            if flag.field and flag.name in values:
                given[flag.field] = flag.read(values[flag.name])
        return given

    def as_flags(self) -> OptionValues:
        """Return the flags of the command line that describe it.

        Flags at their defaults are left out.
        """
        changed = changed_fields(self)
        flags = self._flags_of_fields(self.flags, changed)
        if not flags:
            flags = {flag.name: flag.says for flag in self.flags if flag.says is not None}
        return {**flags, **self._flags_of_fields(COMMON_FLAGS, changed)}

    @staticmethod
    def _flags_of_fields(flags: Sequence[Flag], changed: Mapping[str, Any]) -> OptionValues:
        values: OptionValues = {}
        for flag in flags:
            if flag.field in changed:
                values[flag.name] = flag.write(changed[flag.field])
        return values

    def as_code(self) -> str:
        """Return the Python code that makes it."""
        words = [f"{name}={value!r}" for name, value in changed_fields(self).items()]
        return f"{type(self).__name__}({', '.join(words)})"

    # ---- which columns it names

    def _names(self, described: Sequence[Field[RowValues]]) -> list[ColumnName]:
        """Return the columns that fields name."""
        names: list[ColumnName] = []
        for item in described:
            names += named_columns(getattr(self, item.name))
        return names

    @property
    def columns(self) -> list[ColumnName]:
        """Names of the columns that describe rows."""
        return [*self.not_features, *named_columns(self.within)]

    @property
    def not_features(self) -> list[ColumnName]:
        """Names of the columns from which nothing is learned: all except the categories."""
        return self._names([item for item in _row_fields(self) if item.name != "within"])

    @property
    def columns_of_numbers(self) -> list[ColumnName]:
        """Names of the columns that describe rows by numbers."""
        return self._names([item for item in _row_fields(self) if item.metadata["numbers"]])

    @property
    def marks(self) -> RowValues:
        """The column that marks rows drawn at random to be labelled; None if there is none."""
        return None

    @property
    def probabilities(self) -> RowValues:
        """The column of known probabilities of a label; None if there is none."""
        return None

    def take_rows(self, rows: AnyArray) -> Self:
        """Return the design of some rows, in this order; names of columns stay as they are."""
        from transduce.conformal.designs.reading import take_values

        taken: dict[str, Any] = {}
        for described in _row_fields(self):
            value = getattr(self, described.name)
            if value is not None and not named_columns(value):
                taken[described.name] = take_values(value, rows)
        return replace(self, **taken)

    def bind(self, missing: Mask, frame: pd.DataFrame | None = None) -> BoundDesign:
        """Return the design with an array, checked, for each field that describes rows.

        Parameters
        ----------
        missing : array of shape (n,)
            Which rows have no label.
        frame : pandas.DataFrame, optional
            The table whose columns are named.

        Returns
        -------
        BoundDesign
            What the rows of this table are, and all that depends on it.
        """
        from transduce.conformal.designs.reading import RowReader

        return self.bind_rows(RowReader(self, missing, frame))

    def bind_rows(self, rows: RowReader) -> BoundDesign:
        """Return the bound design, made of what a reader reads."""
        return BoundDesign(**rows.common())

    # ---- what it is, whatever the rows

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
    def holds_out(self) -> bool:
        """Whether labels must be held out to make use of it."""
        return self.always_holds_out or self.modified

    @property
    def needs_all_rows(self) -> bool:
        """Whether a fit to a sample of the rows cannot make use of it."""
        return self.modified or not self.can_bound_column

    @property
    def by_class(self) -> bool:
        """Whether every class is to be compared with its own calibration labels."""
        return False

    @property
    def holds_out_in_parts(self) -> bool:
        """Whether groups, categories or classes hold out labels of their own."""
        if self.overlapping:
            return False
        return self.within is not None or self.chosen_by_class

    @property
    def overlapping(self) -> bool:
        """Whether the guarantee is to hold within the categories of several columns at once."""
        return count_columns(self.within) > 1

    def check(self, classes: Sequence[Any] | AnyArray | None, by_class: bool) -> None:
        """Raise a ValueError if the design does not suit the classes or sets by class.

        `classes` is None for numbers.
        """
        for name in ("within", "groups"):
            if by_class and getattr(self, name, None) is not None:
                raise OptionError(
                    f"{name} and label_conditional exclude each other (rows are compared within "
                    "one or the other): leave out one of the two."
                )

    def weigh_outside(self, n_calibration: int, n_empty: int, classes: AnyArray | None) -> Weights:
        """Return weights of labels that calibrate rows which no fit sees, known before any fit."""
        grounds = Grounds(assumption=self.assumption)
        return Weights.equal(n_calibration, 0, n_empty=n_empty, grounds=grounds)

    def estimates_propensity(self, compared: Exchangeability | None) -> bool:
        """Return whether propensities are estimated.

        This may depend on how labelled and unlabelled rows compare.
        """
        return False

    @property
    def reweighs_if_shifted(self) -> bool:
        """Whether propensities are estimated where rows are found to differ, and only there."""
        return False

    @property
    def may_estimate(self) -> bool:
        """Whether propensities are, or may come to be, estimated."""
        return self.estimates_propensity(None) or self.reweighs_if_shifted

    @property
    def assumption(self) -> assumptions.Assumption:
        """What has to be true of the labels."""
        partitioned = self.within is not None and not self.overlapping
        if self.rests_on == assumptions.CHANCE and partitioned:
            return assumptions.CHANCE_WITHIN
        return self.rests_on
