"""The settings of `fill`, checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from transduce.conformal.designs import Design
from transduce.core import checks
from transduce.core.words import GUARANTEES, option
from transduce.filling.labels import HowLabelled
from transduce.filling.plan import read_method
from transduce.model_selection.methods import METHODS

BUDGET_SECONDS = 300.0
SAMPLE = 20_000
SUITED = {  # settings that only suit labels of one kind
    "regression": ("tolerance", "minimum", "maximum"),
    "classification": ("label_conditional", "probabilities"),
}


@dataclass(frozen=True)
class FillSettings:
    """The settings of `fill`, checked; `n_outside` rows are to be answered besides those that are fitted to.

    `classes` are those that are known besides the classes with a label in the fit.
    """

    target: Any
    method: str = "auto"
    confidence: float = 0.9
    certainty: float = 0.95
    guarantee: str = "auto"
    label_conditional: bool = False
    tolerance: float | None = None
    probabilities: bool = False
    how_labelled: HowLabelled = field(default_factory=HowLabelled)
    task: str = "auto"
    ignore: list[Any] = field(default_factory=list)
    text: list[Any] = field(default_factory=list)
    id: Any = None
    missing: list[Any] = field(default_factory=list)
    minimum: float | None = None
    maximum: float | None = None
    label_next: bool = False
    reject_share: float | None = None
    budget_seconds: float = BUDGET_SECONDS
    sample: int = SAMPLE
    device: str | None = None
    n_jobs: int | None = None
    random_state: int = 0
    source: str = ""
    n_outside: int = 0
    classes: tuple[Any, ...] = ()

    @classmethod
    def read(cls, target: Any, settings: dict[str, Any]) -> FillSettings:
        """Return settings as `fill` takes them, or raise an error that says what to correct."""
        how = {one.name for one in fields(HowLabelled)}
        known = {one.name for one in fields(cls)} - {"target", "how_labelled", "n_outside", "classes"}
        odd = [name for name in settings if name not in known | how]
        if odd:
            raise TypeError(f"fill has no setting {odd[0]!r}.")
        given = {name: value for name, value in settings.items() if name in known}
        given["how_labelled"] = HowLabelled(**{name: settings[name] for name in settings if name in how})
        for name in ("ignore", "text"):
            given[name] = _columns(name, given.get(name, ()))
        missing = given.get("missing", ())
        several = isinstance(missing, list | tuple | set | frozenset)
        given["missing"] = list(missing) if several else [missing]
        return cls(target, **given)

    def __post_init__(self) -> None:
        checks.check_confidence(self.confidence)
        for name in ("certainty", "reject_share"):
            value = getattr(self, name)
            if value is None:
                continue
            checks.check_number(name, value)
            if not 0.0 < float(value) < 1.0:
                raise ValueError(
                    f"{name} must lie strictly between 0 and 1, for example 0.95; got {value!r}."
                )
        checks.check_choice("guarantee", self.guarantee, GUARANTEES)
        checks.check_flag("label_conditional", self.label_conditional)
        checks.check_flag("probabilities", self.probabilities)
        if self.tolerance is not None:
            checks.check_positive("tolerance", self.tolerance)
        for name in ("minimum", "maximum"):
            if getattr(self, name) is not None:
                checks.check_number(name, getattr(self, name))
        if self.minimum is not None and self.maximum is not None and not self.minimum < self.maximum:
            raise ValueError(
                f"{option('minimum', self.minimum)} is not below {option('maximum', self.maximum)}."
            )
        checks.check_flag("label_next", self.label_next)
        checks.check_positive("budget_seconds", self.budget_seconds)
        checks.check_whole("sample", self.sample, least=100)
        if self.device is not None and not isinstance(self.device, str):
            raise ValueError(f"device is a name such as 'cuda'; got {self.device!r}.")
        checks.check_jobs(self.n_jobs)
        checks.check_whole("random_state", self.random_state, least=0)
        self.how_labelled.check(self.target, self.guarantee, self.method)
        if self.target in [*self.ignore, *self.text, self.id]:
            raise ValueError(
                f"{self.target!r} is the target: it cannot be ignored, read as text, or name rows."
            )

    def for_task(self, task: str) -> FillSettings:
        """Return the settings with the method's full name, or raise a ValueError if they do not suit the task."""
        if task == "regression" and (self.label_conditional or self.probabilities):
            names = " and ".join(option(name) for name in SUITED["classification"])
            raise ValueError(f"{names} are for classes, and these labels are numbers.")
        for name in SUITED["regression"]:
            if task == "classification" and getattr(self, name) is not None:
                raise ValueError(f"{option(name)} is for numbers, and these labels are classes.")
        found = replace(self, method=read_method(self.method, task), task=task)
        if self.device is None:
            return found
        if not METHODS[found.method].on_devices:
            able = ", ".join(method.name for method in METHODS.values() if method.on_devices)
            raise ValueError(f"{option('device', self.device)} is for the methods {able}: name one of them.")
        if self.guarantee == "row":
            raise ValueError(f"{option('device', self.device)} needs {option('guarantee', 'column')}.")
        return replace(found, guarantee="column")

    @property
    def design(self) -> Design:
        """How the labels came about."""
        return self.how_labelled.design

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value that is possible."""
        low = -np.inf if self.minimum is None else float(self.minimum)
        return low, np.inf if self.maximum is None else float(self.maximum)

    def check_sampled(self, *, in_memory: bool = False) -> None:
        """Raise a ValueError if a fit to a sample of the rows cannot make use of these settings."""
        odd = {
            "guarantee 'row'": self.guarantee == "row",
            "device": self.device is not None,
            self.how_labelled.odd: self.design.needs_all_rows,
            "label_next": self.label_next and not in_memory,
            "reject_share": self.reject_share is not None and not in_memory,
        }
        named = next((name for name, given in odd.items() if given), None)
        if named is not None:
            raise ValueError(f"{named} needs a table in memory, with all rows in the fit.")

    @property
    def named(self) -> list[Any]:
        """All columns that were named."""
        single = [] if self.id is None else [self.id]
        return [self.target, *self.ignore, *self.text, *single, *self.design.columns]

    def as_given(self, table: Any = None) -> dict[str, Any]:
        """Return the settings as the user gave them, and which sheet of a workbook the table is."""
        inner = ("n_outside", "classes")
        sheet = getattr(table, "sheet", None)
        return {name: value for name, value in self.flat.items() if name not in inner} | {"sheet": sheet}

    @property
    def flat(self) -> dict[str, Any]:
        """The settings by name, those of how labels came about among them."""
        found = asdict(self)
        return found | found.pop("how_labelled")


def suited(settings: dict[str, Any], task: str, others: Collection[str]) -> dict[str, Any]:
    """Return the settings for one of several targets: without those that are meant for targets of another task."""
    meant = [name for other in others if other != task for name in SUITED[other]]
    return {name: value for name, value in settings.items() if name not in meant}


def _columns(name: str, wanted: Collection[Any]) -> list[Any]:
    if isinstance(wanted, str):
        raise ValueError(f"{name} takes a list of columns; got {wanted!r}.")
    return list(wanted)
