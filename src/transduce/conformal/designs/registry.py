"""The designs that there are; a new one joins by a line at the end of this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transduce.conformal.designs.base import COMMON_FLAGS, Design
from transduce.conformal.designs.bound import BoundDesign
from transduce.conformal.designs.by_class import ByClass
from transduce.conformal.designs.by_value import ByValue
from transduce.conformal.designs.chance import Chance
from transduce.conformal.designs.drawn import Drawn
from transduce.conformal.designs.estimated import Estimated
from transduce.conformal.designs.grouped import Grouped
from transduce.conformal.designs.sampled import Sampled
from transduce.conformal.designs.seen import Seen
from transduce.conformal.designs.words import Card, Flag
from transduce.core import checks
from transduce.core.types import Mask
from transduce.core.words import OptionError, option, quoted, spell_in_python

DESIGNS: dict[str, type[Design]] = {}  # by their names


def register(design: type[Design]) -> type[Design]:
    """Let a design be chosen by its name, its flags and its cards."""
    DESIGNS[design.__name__] = design
    for flag in design.flags:
        spell_in_python(flag.name, f"labels={flag.python or design.called('...')}")
    return design


def bind_labels(labels: Design | BoundDesign | None, missing: Mask) -> BoundDesign:
    """Return how the labels came about, `Chance` by default, with an array for each column."""
    if labels is None:
        return Chance().bind(missing)
    if not isinstance(labels, BoundDesign):
        return check_design(labels).bind(missing)
    return labels.check_rows(len(missing))


def check_design(labels: Any, value: str = "") -> Design:
    """Return a design, or raise a ValueError that names those there are, and what they need."""
    if isinstance(labels, Design):
        return labels
    raise ValueError(
        f"labels says how the labels came about: {list_designs(value)}; got {quoted(labels)}."
    )


def list_designs(value: str = "") -> str:
    """Return the designs as Python writes them, in words."""
    *others, last = [design.called(value) for design in DESIGNS.values()]
    return f"{', '.join(others)} or {last}"


# ---- what a person says


def all_flags() -> dict[str, Flag]:
    """Return the flags of all designs, by their names; those that all designs have are the last."""
    flags = [flag for design in DESIGNS.values() for flag in design.flags]
    return {flag.name: flag for flag in (*flags, *COMMON_FLAGS)}


def all_cards() -> dict[str, Card]:
    """Return the cards of all designs by their names, in their order on the page."""
    cards = [card for design in DESIGNS.values() for card in design.cards]
    return {card.way: card for card in sorted(cards, key=lambda card: card.place)}


def design_of_flags(flags: Mapping[str, Any]) -> Design | None:
    """Return how the labels came about, as flags of the command line say it; None if none does."""
    flags_by_name = all_flags()
    for name, value in flags.items():
        if flags_by_name[name].choices:
            checks.check_choice(name, value, flags_by_name[name].choices)
    values = {}
    for name, value in flags.items():
        is_given = value != flags_by_name[name].default and value != []
        if is_given:
            values[name] = value
    if not values:
        return None
    meant: dict[str, type[Design]] = {}  # by the first flag of each design that is given
    for design in DESIGNS.values():
        given = [flag.name for flag in design.flags if flag.name in values]
        if given:
            meant[given[0]] = design
    if len(meant) > 1:
        first, second = list(meant)[:2]
        raise OptionError(
            f"{option(first)} and {option(second)} exclude each other, since labels came about in "
            "one way: leave out one of the two."
        )
    if not meant:
        return Chance.of_flags(values)
    return next(iter(meant.values())).of_flags(values)


register(Chance)
register(Drawn)
register(Sampled)
register(Seen)
register(Grouped)
register(ByClass)
register(ByValue)
register(Estimated)
