"""Labels were chosen by their class."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from transduce.conformal.designs.base import Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.held_out import calibration_number
from transduce.conformal.designs.weights import CLASSES, Weights
from transduce.conformal.designs.words import Card, Flag
from transduce.core import assumptions, checks
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import OptionError, option, quoted

if TYPE_CHECKING:
    from transduce.conformal.designs.reading import RowReader
    from transduce.model_selection.problem import Problem
    from transduce.population.sample import Sample


# A name ends where = and a number follow.
_SHARE = re.compile(r"(.+?)=\s*([-+.\deE]+)\s*(?:,|$)", re.DOTALL)


def read_spelled_shares(text: str) -> dict[str, float]:
    """Return shares of classes as ``yes=0.06,no=0.94``, or as JSON, says them."""
    try:
        if text.lstrip().startswith("{"):
            return {str(name): float(share) for name, share in json.loads(text).items()}
        pairs = [(name.strip(), float(share)) for name, share in _SHARE.findall(text)]
        if pairs and not _SHARE.sub("", text) and len(dict(pairs)) == len(pairs):
            return dict(pairs)
    except (ValueError, TypeError, AttributeError):
        pass
    example = 'yes=0.06,no=0.94 or {"yes": 0.06, "no": 0.94}'
    raise ValueError(
        f"{option('class_shares')} gives each class once, as in {example}; got {text!r}."
    )


def spell_shares(shares: Mapping[Any, float]) -> str:
    """Return shares of classes as `read_spelled_shares` reads them."""
    by_name = {str(name): float(share) for name, share in shares.items()}
    if any(set(name) & set('=,{"') or name != name.strip() for name in by_name):
        return json.dumps(by_name, ensure_ascii=False)
    return ",".join(f"{name}={share!r}" for name, share in by_name.items())


@dataclass(frozen=True)
class ByClass(Design):
    """Labels were chosen by their class, say as many sick as healthy.

    Within each class rows were labelled at random.

    The guarantee holds within every class, whatever the shares. Where they are given and labels are
    held out, it holds over all rows instead, with smaller sets: of a rare class far fewer rows may
    be covered, and the guarantee says so. ``label_conditional=True`` then keeps it within every
    class.

    Parameters
    ----------
    shares : dict, optional
        The share of every class among the unlabelled rows, such as ``{"yes": 0.06, "no": 0.94}``;
        estimated by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from transduce.conformal import ByClass, ConformalTransducer
    >>> sick = np.append(np.arange(60) < 30, np.arange(400) < 40)
    >>> X = np.random.default_rng(0).normal(size=(460, 1)) + 2.0 * sick[:, None]
    >>> y = np.where(np.arange(460) < 60, np.where(sick, "yes", "no"), None)
    >>> model = ConformalTransducer(LogisticRegression(), labels=ByClass(), random_state=0)
    >>> model = model.fit(X, y)
    >>> bool(model.class_shares_.to_frame()["share"]["yes"] < 0.2), model.guarantee_.within
    (True, 'class')
    """

    shares: Mapping[Any, float] | None = None

    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(
            name="labels_by_class",
            kind="switch",
            default=False,
            says=True,
            help="Labels were chosen by their class: adjust to the class shares that are "
            "estimated among the unlabelled rows.",
        ),
        Flag(
            name="class_shares",
            field="shares",
            kind="text",
            metavar="CLASS=SHARE,...",
            python="ByClass(...)",
            read=read_spelled_shares,
            write=spell_shares,
            help="The same, but with known shares of the classes among the unlabelled rows, such "
            "as yes=0.06,no=0.94.",
        ),
    )
    cards: ClassVar[tuple[Card, ...]] = (
        Card(
            way="class",
            place=30,
            title="By their class",
            words="For example, equal numbers of cases and controls, each sampled at random.",
            flag="labels_by_class",
            needs="classes",
            unfit="The values are numbers, not classes.",
        ),
    )
    testable: ClassVar[bool] = False
    always_holds_out: ClassVar[bool] = False
    chosen_by_class: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.modified:
            raise ValueError(
                "Labels that were chosen by their class are compared within classes alone: leave "
                "out within, order and sensitivity."
            )
        if self.shares is not None:
            read_shares(self.shares)

    @property
    def by_class(self) -> bool:
        """Whether every class is to be compared with its own calibration labels."""
        return self.shares is None

    @property
    def gives_shares(self) -> bool:
        """Whether the share of every class among the unlabelled rows is given."""
        return self.shares is not None

    @property
    def assumption(self) -> assumptions.Assumption:
        """What has to be true of the labels."""
        return assumptions.BY_CLASS if self.shares is None else assumptions.SHARES

    def check(self, classes: Sequence[Any] | AnyArray | None, by_class: bool) -> None:
        """Raise a ValueError if it does not suit the classes of the labels; None for numbers."""
        if classes is None:
            raise OptionError(
                "Labels that were chosen by their class are classes, and these are numbers."
            )
        self.given_shares(classes)

    def given_shares(self, classes: Sequence[Any] | AnyArray | None) -> Array | None:
        """Return the given share of each class; None if they are to be estimated."""
        if self.shares is None:
            return None
        by_name = {_class_name(key): share for key, share in read_shares(self.shares).items()}
        names = [
            _class_name(class_name) for class_name in np.asarray(classes, dtype=object).tolist()
        ]
        lost = [name for name in names if name not in by_name]
        if lost:
            raise ValueError(
                f"The shares lack class {quoted(lost[0])}: give its share among the unlabelled "
                "rows too."
            )
        more = [name for name, share in by_name.items() if name not in names and share > 0.0]
        if more:
            raise ValueError(
                f"{quoted(more[0])} has a share, and no label is of that class: correct its name, "
                "or label some of its rows."
            )
        return np.array([by_name[name] for name in names])

    def weigh_outside(self, n_calibration: int, n_empty: int, classes: AnyArray | None) -> Weights:
        """Return weights of labels that calibrate rows which no fit sees, known before any fit."""
        weights = super().weigh_outside(n_calibration, n_empty, classes)
        shares = self.given_shares(classes)
        return replace(weights, kind=CLASSES, shares=shares).resting_on(testable=False)

    def bind_rows(self, rows: RowReader) -> BoundByClass:
        """Return the bound design, made of what a reader reads."""
        return BoundByClass(**rows.common())


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundByClass(BoundDesign):
    """Rows that were labelled by their class."""

    def n_calibration(
        self,
        n_labels: int,
        confidence: float,
        *,
        by_class: bool = False,
    ) -> int:
        """Return roughly how many labels calibrate: classes with enough labels hold out some."""
        return calibration_number(n_labels, confidence, by_class=True)

    def _parts(self, problem: Problem) -> AnyArray:
        return problem.codes

    def _weigh_rows(self, problem: Problem, calibration: AnyArray, answered: Mask) -> Weights:
        shares = self.spec.given_shares(problem.classes)
        n_unlabelled = len(problem.sample.unlabelled)
        return Weights.equal(len(calibration), n_unlabelled, kind=CLASSES, shares=shares)

    def describe_sample(self, missing: Mask, estimated: Array | None = None) -> Sample:
        """Refuse: labels that were chosen by their class tell the shares of the classes alone."""
        raise ValueError(
            "Labels that were chosen by their class tell the share of each class over all rows, "
            "and nothing else: ask for that, or draw rows at random with `transduce draw` and "
            "label them."
        )


def read_shares(shares: Any) -> dict[Any, float]:
    """Return shares of classes, which sum to 1; raise a ValueError that says what to correct."""
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(
            f"Shares of classes are given as in {{'yes': 0.06, 'no': 0.94}}; got {quoted(shares)}."
        )
    for name, share in shares.items():
        if not checks.is_number(share) or not 0.0 <= float(share) <= 1.0:
            raise ValueError(
                f"The share of class {quoted(name)} must be a number from 0 to 1; got "
                f"{quoted(share)}."
            )
    total = sum(float(share) for share in shares.values())
    decimals = [Decimal(repr(float(share))) for share in shares.values()]
    last = min(int(decimal.as_tuple().exponent) for decimal in decimals)
    if abs(total - 1.0) > 0.499 * len(shares) * 10.0**last + 1e-6:  # as far as numbers are rounded
        raise ValueError(f"The shares of the classes must sum to 1, and these sum to {total:.7g}.")
    return {name: float(share) / total for name, share in shares.items()}


def _class_name(value: object) -> str:
    """Return a class as a file writes it: whole numbers without ``.0``, and ``true``."""
    text = re.sub(r"^(-?\d+)\.0+$", r"\1", str(value))
    if text.lower() in ("true", "false"):
        return text.lower()
    return text
