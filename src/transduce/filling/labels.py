"""The flags that say how labels came about, as one of the designs of `transduce.conformal`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transduce.conformal.designs import Chance, Design, Drawn, Estimated, Grouped, Sampled
from transduce.core import checks
from transduce.core.words import SHIFTS

# Flags that exclude each other, and why.
APART = {
    ("random_labels", "sampling_probability"): "rows drawn at random need no probabilities",
    ("random_labels", "groups"): "rows drawn at random calibrate one by one",
    ("sampling_probability", "groups"): "probabilities are of rows, and groups are held out as a whole",
    ("shift='estimate'", "random_labels"): "rows drawn at random leave nothing to estimate",
    ("shift='estimate'", "sampling_probability"): "known probabilities leave nothing to estimate",
    ("shift='estimate'", "groups"): "odds are estimated for rows, and groups are held out as a whole",
}


@dataclass(frozen=True)
class HowLabelled:
    """Names of columns, and settings, as `transduce.fill` takes them."""

    random_labels: Any = None
    sampling_probability: Any = None
    shift: str = "auto"
    sensitivity: float = 1.0
    groups: Any = None
    within: Any = None
    order: Any = None

    @property
    def design(self) -> Design:
        """How the labels came about."""
        checks.check_choice("shift", self.shift, SHIFTS)
        kinds = {
            "random_labels": self.random_labels,
            "sampling_probability": self.sampling_probability,
            "groups": self.groups,
            "shift='estimate'": self.shift if self.shift == "estimate" else None,
        }
        flags = {name for name, value in kinds.items() if value is not None}
        for (one, other), why in APART.items():
            if {one, other} <= flags:
                raise ValueError(f"{one} and {other} exclude each other ({why}): leave out one of the two.")
        common: dict[str, Any] = {
            "within": self.within,
            "order": self.order,
            "sensitivity": self.sensitivity,
        }
        if self.random_labels is not None:
            return Drawn(self.random_labels, **common)
        if self.sampling_probability is not None:
            return Sampled(self.sampling_probability, **common)
        if self.groups is not None:
            return Grouped(self.groups, **common)
        if self.shift == "estimate":
            return Estimated(**common)
        return Chance(reweight=self.shift == "auto", **common)

    @property
    def odd(self) -> str:
        """The first setting that was given besides random labels; "" if none was."""
        usual = HowLabelled(random_labels=self.random_labels)
        names = self.__dataclass_fields__
        return next((name for name in names if getattr(self, name) != getattr(usual, name)), "")

    def check(self, target: Any, guarantee: str, method: str) -> None:
        """Raise a ValueError that says what to correct."""
        if target in self.design.columns:
            raise ValueError(
                f"{target!r} is the target: it cannot be ignored, read as text, or name or mark rows."
            )
        if not self.design.calibrates:
            return
        usual = HowLabelled(shift=self.shift if self.shift != "estimate" else "auto")
        given = next(
            name for name in self.__dataclass_fields__ if getattr(self, name) != getattr(usual, name)
        )
        if guarantee == "row":
            verb = "calibrate" if given == "random_labels" else "needs labels that calibrate"
            raise ValueError(
                f"{given} {verb}, which guarantee 'row' does not have: leave out one of the two."
            )
        if str(method).replace("_", "-").lower() == "confidence-machine":
            raise ValueError(f"{given} needs labels that calibrate: choose another method than the machine.")
