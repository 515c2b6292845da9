"""The options of filling, each said once: the signature and help of `fill`, the command line, JSON and saved files.

A new option is one field of `Options`, one name in `FillOptions` or `Questions`, and one place where it is used. This
module imports nothing heavy, so that help is quick.
"""

from __future__ import annotations

import inspect
import shlex
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from transduce.core import checks
from transduce.core.words import GUARANTEES, SHIFTS, TASKS, flag, on_command_line, option
from transduce.model_selection.methods import METHODS

if TYPE_CHECKING:
    from transduce.conformal.designs import Design
    from transduce.tables.labels import Target

# The panels of help, in the order of a user's questions.
ANSWER = "The column and the answer"
LABELS = "How the labels came about"
GUARANTEE = "The guarantee"
COLUMNS = "Columns"
OUTPUT = "Output"
LARGE = "Large tables"
COMPUTING = "Computing"
PANELS = (ANSWER, LABELS, GUARANTEE, COLUMNS, OUTPUT, LARGE, COMPUTING)
KINDS = {"regression": "numbers", "classification": "classes"}


# ------------------------------------------------------------------------------------------------ kinds of values


@dataclass(frozen=True)
class Kind:
    """A kind of value: its type, what help calls it, and how it is checked."""

    type: Any  # a list may be repeated on the command line
    metavar: str = ""
    check: Callable[[str, Any], object] | None = None  # raises a ValueError
    choices: tuple[str, ...] = ()


def _method(name: str, value: Any) -> None:
    if str(value).replace("_", "-").lower() not in METHODS:
        raise ValueError(f"There is no method {value!r}: choose one of {', '.join(map(repr, METHODS))}.")


def _not_text(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise ValueError(f"{name} takes a list of columns; got {value!r}.")


def _name(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} is a name such as 'cuda'; got {value!r}.")


def _from_one(name: str, value: Any) -> None:
    if checks.check_positive(name, value) < 1.0:
        raise ValueError(f"{name} must be a factor from 1 on, for example 1.5; got {value!r}.")


def _jobs(name: str, value: Any) -> None:
    checks.check_jobs(value)


def _one_of(words: tuple[str, ...]) -> Kind:
    return Kind(str, check=partial(checks.check_choice, choices=words), choices=words)


FLAG = Kind(bool, check=checks.check_flag)
NUMBER, AMOUNT = Kind(float, "NUMBER", checks.check_number), Kind(float, "AMOUNT", checks.check_positive)
SHARE, LEVEL = Kind(float, "SHARE", checks.check_share), Kind(float, "LEVEL", checks.check_share)
SECONDS, FACTOR = Kind(float, "SECONDS", checks.check_positive), Kind(float, "FACTOR", _from_one)
ROWS, SEED = (
    Kind(int, word, partial(checks.check_whole, least=n)) for word, n in (("ROWS", 100), ("SEED", 0))
)
JOBS = Kind(int, "N", _jobs)
COLUMN, SOME_COLUMNS = Kind(str, "COLUMN"), Kind(list, "COLUMN", _not_text)
VALUES, DEVICE = Kind(list, "VALUE"), Kind(str, "NAME", _name)


# ------------------------------------------------------------------------------------------------------ the options


@dataclass(frozen=True)
class Option:
    """What there is to know of one option."""

    help: str  # on the command line and in the docstring
    panel: str
    kind: Kind
    task: str = ""  # the only task that it suits
    question: bool = False  # whether it is asked of the result: the fit does not depend on it
    sampled: bool = True  # whether it suits a fit to a sample of a table that is not in memory

    def described(self, default: Any) -> str:
        """Return type and default as a docstring says them."""
        if self.kind.choices:
            return f"{{{', '.join(map(repr, self.kind.choices))}}}, default={default!r}".replace("'", '"')
        word = {list: "sequence of str", object: "Design"}.get(self.kind.type, self.kind.type.__name__)
        return f"{word}, optional" if default is None or default == [] else f"{word}, default={default!r}"


def _option(default: Any, help: str, panel: str, kind: Kind, **more: Any) -> Any:
    """Return a field of `Options`."""
    metadata = {"option": Option(help, panel, kind, **more)}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=default, metadata=metadata)


def _question(default: Any, help: str, panel: str, kind: Kind, **more: Any) -> Any:
    """Return a field that is asked of the result."""
    return _option(default, help, panel, kind, question=True, **more)


@dataclass(frozen=True)
class Options:
    """What a user may ask of `fill` and of its result, as it was asked; checked."""

    method: str = _option(
        "auto",
        'How to fill: "auto" blends the methods that suit the table; see `transduce methods`.',
        ANSWER,
        Kind(str, check=_method, choices=tuple(METHODS)),
    )
    task: str = _option(
        "auto",
        "Whether labels are numbers or classes. Texts are classes unless all of them are numbers, and so are whole "
        "numbers of 2 to 10 different values of which some occur twice.",
        ANSWER,
        _one_of(TASKS),
    )
    minimum: float | None = _question(
        None,
        "Numbers: the least value that is possible; intervals and values end there.",
        ANSWER,
        NUMBER,
        task="regression",
    )
    maximum: float | None = _question(
        None, "Numbers: the largest value that is possible.", ANSWER, NUMBER, task="regression"
    )
    probabilities: bool = _question(
        False,
        "Classes: add a column for the probability of every class.",
        ANSWER,
        FLAG,
        task="classification",
    )
    reject: float | None = _question(
        None,
        "Mark this share of the answers, the least certain, as rejected; their values stay.",
        ANSWER,
        SHARE,
        sampled=False,
    )
    label_next: bool = _question(
        False, "Add a column that numbers the rows whose labels would help most.", ANSWER, FLAG, sampled=False
    )
    labels: Design | None = _option(
        None,
        "How the labels came about: Chance(), which is the default, Drawn(column), Sampled(column), Grouped(column) or "
        "Estimated() of `transduce.conformal`; each takes within, order and sensitivity.",
        LABELS,
        Kind(object),
    )
    confidence: float = _option(
        0.9, "Probability with which each interval or set contains the truth.", GUARANTEE, LEVEL
    )
    guarantee: str = _option(
        "auto",
        'What is guaranteed: "row", each row by itself, with no label held out; "column", how many rows are outside '
        'too; "auto" goes by the number of labels.',
        GUARANTEE,
        _one_of(GUARANTEES),
    )
    certainty: float = _question(0.95, "Certainty of the guarantee for the whole column.", GUARANTEE, LEVEL)
    tolerance: float | None = _question(
        None,
        "Numbers: bound how many answers are off by more than this.",
        GUARANTEE,
        AMOUNT,
        task="regression",
    )
    label_conditional: bool = _option(
        False, "Classes: let the guarantee hold within every class.", GUARANTEE, FLAG, task="classification"
    )
    ignore: list[Any] = _option([], "Columns to leave out.", COLUMNS, SOME_COLUMNS)
    text: list[Any] = _option([], "Columns to read word by word.", COLUMNS, SOME_COLUMNS)
    id: Any = _option(None, "The column that names the rows.", COLUMNS, COLUMN)
    missing: list[Any] = _option(
        [], "Values that mark an empty cell in any column, such as -999.", COLUMNS, VALUES
    )
    sample: int = _option(
        20_000, "How many rows without a label the fit sees; it answers all others one by one.", LARGE, ROWS
    )
    budget_seconds: float = _option(
        300.0, "Leave slow methods out of the blend to finish within this time.", COMPUTING, SECONDS
    )
    device: str | None = _option(
        None,
        "Where to compute: cuda, for the methods that can; all rows then take part in the fit.",
        COMPUTING,
        DEVICE,
        sampled=False,
    )
    n_jobs: int | None = _option(
        None, "Number of fits at the same time; -1 for one on each core.", COMPUTING, JOBS
    )
    random_state: int = _option(0, "The same seed gives the same answer.", COMPUTING, SEED)

    @classmethod
    def read(cls, given: Mapping[str, Any], *, questions: bool = False) -> Options:
        """Return options as they were given, or raise an error that says what to correct."""
        for name in given:
            if name not in OPTIONS or (OPTIONS[name].question and not questions):
                raise TypeError(_not_an_option(name))
        options = dict(given)
        for name in ("ignore", "text"):
            _not_text(name, options.get(name, ()))
            options[name] = list(options.get(name, ()))
        missing = options.get("missing", ())
        several = isinstance(missing, list | tuple | set | frozenset)
        options["missing"] = list(missing) if several else [missing]
        return cls(**options)

    def __post_init__(self) -> None:
        for name, one in OPTIONS.items():
            value = getattr(self, name)
            if one.kind.check is not None and (value is not None or DEFAULTS[name] is not None):
                one.kind.check(name, value)
        if self.minimum is not None and self.maximum is not None and not self.minimum < self.maximum:
            raise ValueError(
                f"{option('minimum', self.minimum)} is not below {option('maximum', self.maximum)}."
            )

    @property
    def design(self) -> Design:
        """How the labels came about."""
        from transduce.conformal.designs import Chance, Design

        if self.labels is not None and not isinstance(self.labels, Design):
            raise ValueError(
                "labels says how the labels came about: Chance(), Drawn(column), Sampled(column), Grouped(column) or "
                f"Estimated(); got {self.labels!r}."
            )
        return Chance() if self.labels is None else self.labels

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value that is possible."""
        low = -float("inf") if self.minimum is None else float(self.minimum)
        return low, float("inf") if self.maximum is None else float(self.maximum)

    def columns(self, target: Any) -> list[Any]:
        """Return all columns that are named, or raise a ValueError if they cannot be used like that."""
        design = self.design
        names = [*self.ignore, *self.text, *([] if self.id is None else [self.id]), *design.columns]
        if target in names:
            raise ValueError(
                f"{target!r} is the target: it cannot be ignored, read as text, or name or mark rows."
            )
        if design.calibrates:
            self._check_calibrates(_spelled_design(design))
        return [target, *names]

    def _check_calibrates(self, said: str) -> None:
        """Raise a ValueError if no label calibrates, where how the labels came about needs some."""
        if self.guarantee == "row":
            raise ValueError(
                f"{said} needs labels that calibrate, which guarantee 'row' does not have: leave out one of the two."
            )
        if str(self.method).replace("_", "-").lower() == "confidence-machine":
            raise ValueError(f"{said} needs labels that calibrate: choose another method than the machine.")

    def check_labels(self, target: Target) -> None:
        """Raise a ValueError if an option does not suit the labels, or if a label lies beyond what is possible."""
        for name in self.changed():
            if OPTIONS[name].task not in ("", target.task):
                here, there = KINDS[OPTIONS[name].task], KINDS[target.task]
                raise ValueError(f"{option(name)} is for {here}, and these labels are {there}.")
        if self.minimum is None and self.maximum is None:
            return
        low, high = self.limits
        for label in target.labels[~target.missing].astype(float):
            if not low <= label <= high:
                name = "minimum" if label < low else "maximum"
                limit = option(name, getattr(self, name))
                raise ValueError(
                    f"{target.name!r} has the label {label:g}, beyond {limit}: correct one of them."
                )

    def for_task(self, task: str) -> Options:
        """Return the options with the method's full name, or raise a ValueError if it does not suit the task."""
        method = METHODS[str(self.method).replace("_", "-").lower()]
        if task not in method.tasks:
            good = [repr(other.name) for other in METHODS.values() if task in other.tasks]
            raise ValueError(
                f"Method {method.name!r} fills {KINDS[method.tasks[0]]}, and these labels are {KINDS[task]}: choose "
                f"one of {', '.join(good)}."
            )
        settled = replace(self, method=method.name, task=task)
        if self.device is None:
            return settled
        if not method.on_devices:
            here = ", ".join(name for name, other in METHODS.items() if other.on_devices)
            raise ValueError(f"{option('device', self.device)} is for the methods {here}: name one of them.")
        if self.guarantee == "row":
            raise ValueError(f"{option('device', self.device)} needs {option('guarantee', 'column')}.")
        return replace(settled, guarantee="column")

    def check_sampled(self) -> None:
        """Raise a ValueError if a fit to a sample of the rows cannot make use of these options."""
        odd = [name for name in self.changed() if not OPTIONS[name].sampled]
        if self.guarantee == "row":
            odd.append("guarantee 'row'")
        if self.design.needs_all_rows:
            odd.append(_spelled_design(self.design))
        if odd:
            raise ValueError(f"{odd[0]} needs a table in memory, with all rows in the fit.")

    def changed(self) -> dict[str, Any]:
        """Return the options that are not left at their defaults."""
        mine = {name: getattr(self, name) for name in OPTIONS}
        return {name: value for name, value in mine.items() if _differs(value, DEFAULTS[name])}

    # ------------------------------------------------------------------------------------------ to keep and to do again

    def as_json(self) -> dict[str, Any]:
        """Return the options as JSON can hold them."""
        found = {name: getattr(self, name) for name in OPTIONS}
        return found | {"labels": None if self.labels is None else _design_as_json(self.labels)}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Options:
        """Return the options that `as_json` made this of."""
        if found.get("labels") is not None:
            from transduce.conformal import designs

            words = dict(found["labels"])
            found = found | {"labels": getattr(designs, words.pop("design"))(**words)}
        return cls.read(found, questions=True)

    def as_call(self, target: Any, task: str) -> str:
        """Return the call that does it again, of a table in Python."""
        changed = self.changed() | {"task": task}
        words = {name: _as_code(value) for name, value in changed.items()}
        fit = [f"{name}={words[name]}" for name in OPTIONS if name in words and not OPTIONS[name].question]
        asked = [f"{name}={words[name]}" for name in OPTIONS if name in words and OPTIONS[name].question]
        call = f"fill(table, {', '.join([repr(target), *fit])})"
        return f"{call}.ask({', '.join(asked)})" if asked else call

    def as_command(self, table: str, target: Any, task: str, **more: Any) -> str:
        """Return the command that does it again, of a table in a file; `more` are flags of the command alone."""
        changed = self.changed() | {"task": task}
        flags: dict[str, Any] = {}
        for name in OPTIONS:
            if name == "labels":
                flags |= flags_of(self.design)
            elif name in changed:
                flags[name] = changed[name]
        words = ["transduce", "fill", table, "--target", str(target)]
        for name, value in {**flags, **more}.items():
            words += _as_words(flag(name), value)
        return shlex.join(words)


OPTIONS: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(Options)}
DEFAULTS: dict[str, Any] = {
    one.name: one.default if one.default_factory is not list else [] for one in fields(Options)
}


def _differs(value: Any, default: Any) -> bool:
    """Return whether a value, which may be an array, is not the default."""
    return value is not default and (hasattr(value, "dtype") or bool(value != default))


class FillOptions(TypedDict, total=False):
    """The options of `fill`, for editors and type checkers."""

    method: str
    task: str
    labels: Design | None
    confidence: float
    guarantee: str
    label_conditional: bool
    ignore: Sequence[Any]
    text: Sequence[Any]
    id: Any
    missing: Any
    sample: int
    budget_seconds: float
    device: str | None
    n_jobs: int | None
    random_state: int


class Questions(TypedDict, total=False):
    """What is asked of the result, for editors and type checkers."""

    minimum: float | None
    maximum: float | None
    probabilities: bool
    reject: float | None
    label_next: bool
    certainty: float
    tolerance: float | None


def _not_an_option(name: str) -> str:
    """Return that `fill` has no such option, and where it is."""
    if name in OPTIONS:
        return f"fill has no option {name!r}: ask the result, as in fill(...).ask({name}=...)."
    if name in LABEL_FLAGS:
        return f"fill has no option {name!r}: say how the labels came about, as in labels=Drawn('column')."
    return f"fill has no option {name!r}."


def _as_words(word: str, value: Any) -> list[str]:
    """Return an option as words of the command line."""
    words = []
    for one in value if isinstance(value, list) else [value]:
        if one is True:
            words.append(word)
        else:
            words += [f"{word}={one}"] if str(one).startswith("-") else [word, str(one)]
    return words


# ------------------------------------------------------------------------------------------- how the labels came about

# The flags of the command line, which make a design. Those of the first four exclude each other.
LABEL_FLAGS = {
    "random_labels": Option(
        "A column that marks rows drawn at random to be labelled: these calibrate. See `transduce draw`.",
        LABELS,
        COLUMN,
    ),
    "sampling_probability": Option(
        "A column with the probability with which each row was chosen to be labelled, if known.",
        LABELS,
        COLUMN,
    ),
    "groups": Option(
        "A column of groups of rows: the guarantee is about rows of new groups.", LABELS, COLUMN
    ),
    "shift": Option(
        "Whether to weigh labels by estimated odds of a label: where rows differ, always, or never.",
        LABELS,
        _one_of(SHIFTS),
    ),
    "within": Option("A column of categories: the guarantee holds within each.", LABELS, COLUMN),
    "order": Option(
        "A column that orders the rows, such as a date: test for drift along it.", LABELS, COLUMN
    ),
    "sensitivity": Option(
        "Let the guarantee hold even if the odds of a label depend on the value by up to this factor.",
        LABELS,
        FACTOR,
    ),
}
LABEL_DEFAULTS: dict[str, Any] = dict.fromkeys(LABEL_FLAGS) | {"shift": "auto", "sensitivity": 1.0}
_OF_ROWS = {  # the flag and the field of designs that describe rows
    "Drawn": ("random_labels", "rows"),
    "Sampled": ("sampling_probability", "probability"),
    "Grouped": ("groups", "groups"),
}


def design_of(flags: Mapping[str, Any]) -> Design | None:
    """Return how the labels came about, as flags of the command line say it; None if none does."""
    from transduce.conformal import designs

    flags = LABEL_DEFAULTS | dict(flags)
    checks.check_choice("shift", flags["shift"], SHIFTS)
    given = {name for name, value in flags.items() if value != LABEL_DEFAULTS[name]}
    if not given:
        return None
    kinds = [name for name, _ in _OF_ROWS.values() if name in given]
    kinds += ["shift"] if flags["shift"] == "estimate" else []
    if len(kinds) > 1:
        one, other = map(option, kinds[:2])
        raise ValueError(
            f"{one} and {other} exclude each other, since labels came about in one way: leave out one of the two."
        )
    modifiers = {name: flags[name] for name in ("within", "order", "sensitivity")}
    for kind, (name, _) in _OF_ROWS.items():
        if name in given:
            return getattr(designs, kind)(flags[name], **modifiers)
    if flags["shift"] == "estimate":
        return designs.Estimated(**modifiers)
    return designs.Chance(reweight=flags["shift"] == "auto", **modifiers)


def flags_of(design: Design) -> dict[str, Any]:
    """Return the flags of the command line that say how the labels came about; those at their defaults are left out."""
    kind = type(design).__name__
    flags = {}
    if kind in _OF_ROWS:
        name, field_name = _OF_ROWS[kind]
        flags[name] = getattr(design, field_name)
    if kind == "Estimated":
        flags["shift"] = "estimate"
    if not getattr(design, "reweight", True):
        flags["shift"] = "ignore"
    modifiers = {name: getattr(design, name) for name in ("within", "order", "sensitivity")}
    return flags | {name: value for name, value in modifiers.items() if value != LABEL_DEFAULTS[name]}


def _spelled_design(design: Design) -> str:
    """Return how the user said how the labels came about."""
    return option(next(iter(flags_of(design)))) if on_command_line() else f"labels={_as_code(design)}"


def _fields_of(design: Design) -> dict[str, Any]:
    """Return the fields of a design that are not left at their defaults."""
    mine = {one.name: getattr(design, one.name) for one in fields(design)}
    defaults = {one.name: one.default for one in fields(design)}
    return {name: value for name, value in mine.items() if _differs(value, defaults[name])}


def _design_as_json(design: Design) -> dict[str, Any]:
    return {"design": type(design).__name__, **_fields_of(design)}


def _as_code(value: Any) -> str:
    """Return a value as Python code."""
    from transduce.conformal.designs import Design

    if not isinstance(value, Design):
        return repr(value)
    words = [f"{name}={one!r}" for name, one in _fields_of(value).items()]
    return f"{type(value).__name__}({', '.join(words)})"


# ------------------------------------------------------------------------------------------------ signatures and help


def described(names: Sequence[str]) -> Callable[[Callable[..., Any]], Any]:
    """Give a function that takes some options its signature, and its docstring their descriptions.

    They stand in the docstring where it says ``OPTIONS``.
    """

    def describe(function: Callable[..., Any]) -> Any:
        plain = inspect.signature(function)
        first = [one for one in plain.parameters.values() if one.kind is not one.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[name], annotation=_ANNOTATIONS[name]
            )
            for name in names
        ]
        function.__signature__ = plain.replace(parameters=[*first, *more])  # type: ignore[attr-defined]
        indent = "        " if "self" in plain.parameters else "    "
        function.__doc__ = (function.__doc__ or "").replace(f"{indent}OPTIONS\n", _parameters(names, indent))
        return function

    return describe


_ANNOTATIONS = {one.name: one.type for one in fields(Options)}
FIT = tuple(name for name, one in OPTIONS.items() if not one.question)
QUESTIONS = tuple(name for name, one in OPTIONS.items() if one.question)


def _parameters(names: Sequence[str], indent: str) -> str:
    """Return the lines of a docstring that describe some options."""
    lines = []
    for name in names:
        one = OPTIONS[name]
        lines.append(f"{indent}{name} : {one.described(DEFAULTS[name])}")
        lines += textwrap.wrap(
            one.help, 120, initial_indent=f"{indent}    ", subsequent_indent=f"{indent}    "
        )
    return "".join(f"{line}\n" for line in lines)
