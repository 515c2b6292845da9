"""The options of filling, each said once.

Signature and help of `fill`, the command line, JSON and saved files read them here.
"""

# A new option is one field of `Options`, a line of `HELP`, one name in `FillOptions` or
# `Questions`, and one use. Nothing heavy is imported here, so that help is quick.

from __future__ import annotations

import csv
import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar

import numpy as np

from transduce.conformal.designs import Chance, Design
from transduce.conformal.designs.base import COMMON_FLAGS
from transduce.conformal.designs.registry import (
    DESIGNS,
    all_flags,
    check_design,
    list_designs,
)
from transduce.conformal.designs.words import Flag
from transduce.core import checks
from transduce.core.records import changed_fields, default_fields
from transduce.core.types import ColumnName, JsonObject, KnownTask, Labels, OptionValues, Rows, Task
from transduce.core.words import (
    FLAGS,
    GUARANTEES,
    TASKS,
    OptionError,
    as_csv,
    counted,
    flag,
    on_command_line,
    option,
)
from transduce.model_selection.methods import METHODS

if TYPE_CHECKING:
    import pandas as pd

    from transduce.app.tables.columns import Target
    from transduce.core.answer import Answer
    from transduce.core.findings import Limits

ANSWER = "The column and the answer"
LABELS = "How the labels came about"
GUARANTEE = "The guarantee"
COLUMNS = "Columns"
OUTPUT = "Output"
LARGE = "Large tables"
COMPUTING = "Computing"


def _designs_in_help() -> str:
    """Return the designs as Python writes them, the default first."""
    return list_designs("column").replace("Chance()", "Chance(), which is the default", 1)


def _methods_in_help() -> str:
    """Return the names of the single methods, as a list in words."""
    *names, last = (name for name in METHODS if name != "auto")
    return f"{', '.join(names)} or {last}"


PANELS = (ANSWER, LABELS, GUARANTEE, COLUMNS, OUTPUT, LARGE, COMPUTING)
# What help says of each option, by the panel that it stands in; the panels are in the order of a
# user's questions.
HELP = {
    ANSWER: {
        "method": 'How to fill: "auto" blends the methods that suit the table. For a single '
        f"method, name it: {_methods_in_help()}; `transduce methods` explains them. An estimator "
        "of your own works too, and several are blended; MODULE:NAME imports an estimator, and "
        "importing runs its code. If you try several methods and choose one by its predictions, a "
        "guarantee for the column no longer holds; intervals by row do not depend on the method.",
        "task": "Whether labels are numbers or classes. Texts are classes unless all of them are "
        "numbers; booleans, categories, and numbers that are all 0 or 1, or all -1 or 1, are "
        "classes too.",
        "minimum": "Numbers: the smallest possible value; no prediction and no interval goes "
        "below it.",
        "maximum": "Numbers: the largest possible value; no prediction and no interval goes "
        "above it.",
        "limit": "Numbers: the detection limit, such as '<0.5' or '>100', if labels are "
        "censored; by default the most extreme one among the labels. Intervals that reach it are "
        "open there.",
        "probabilities": "Classes: add one column for each class, with its probability.",
        "reject": "Mark the least certain predictions, up to this share, as rejected; their values "
        "stay in the table.",
        "label_next": "Add a column that ranks the rows whose labels would help most.",
        "suspect": "Add a column that ranks the known values that are perhaps wrong: first those "
        "that are least probable, given the other columns.",
        "similar": "Add a column that names, for each prediction, the labelled rows most like its "
        "row, with their labels and weights.",
    },
    LABELS: {
        "labels": f"How the labels came about: {_designs_in_help()} of `transduce.conformal`; "
        "most take within, order and sensitivity.",
        **{flag.name: flag.help for flag in all_flags().values()},
    },
    GUARANTEE: {
        "confidence": "Probability that the interval or prediction set of a row picked at random "
        "contains the truth. Several levels, such as 0.9,0.95, give nested intervals or sets in "
        "columns of their own: the first is the main level, and each is guaranteed by itself.",
        "guarantee": 'What is guaranteed: "row" covers a row picked at random and holds no label '
        'out; "column" also bounds how many rows lie outside; "auto" chooses by the number of '
        "labels.",
        "certainty": "Probability with which a statement about the whole column holds.",
        "tolerance": "Numbers: also bound how many predictions are off by more than this.",
        "label_conditional": "Classes: make the guarantee hold within every class.",
    },
    COLUMNS: {
        "ignore": "Columns to leave out.",
        "text": "Columns to treat as free text (TF-IDF).",
        "number": "Columns in which to extract the number from each cell; the target may be one.",
        "views": "Classes: columns that describe the rows in another way, separated by commas. "
        "Given once for each description, such as the words of a page and the words of links to "
        "it, rows are neighbours if they are alike in any of them. Used by the method "
        "spectral-graph, also in a blend.",
        "id": "The column that names the rows.",
        "predictions": "A column of predictions that were made elsewhere without the labels, "
        "such as by a language model; or several columns, each with the probability of one class "
        "and named after it. A field of JSON objects is written with dots, here and wherever a "
        "column is named, such as output.label. Predicted numbers are corrected; predicted "
        "classes join the blend as one more method. The column is also used as a feature.",
        "features": "Input for your own estimators: encoded features, or the raw columns.",
        "missing": "Values that mark an empty cell in any column, such as -999.",
        "keep": "Numbers such as 999 that are real values. Otherwise such a number counts as an "
        "empty cell if it lies far from all others of its column, and a note says so.",
        "same": "Spellings of one thing: a column, the name to use, and the spellings that mean "
        "it, separated by commas, such as sex,male,m,M.",
        "case_sensitive": "Keep classes and categories apart if they differ only in capitals or "
        "blanks. Otherwise they are merged under the most frequent spelling, and a note says so.",
        "pictures": "Folder that holds the image files. Default: the table's folder (for a "
        "DataFrame, the working directory).",
    },
    LARGE: {
        "sample": "How many unlabelled rows take part in the fit; the others are predicted from "
        "it one by one."
    },
    COMPUTING: {
        "budget_seconds": "Leave the slowest methods out of the blend until the planned time is "
        "at most this.",
        "device": "Device for the methods that support one, such as cuda; the others run on the "
        "CPU. All rows are then used in the fit.",
        "n_jobs": "Number of fits at the same time; -1 for one on each core.",
        "random_state": "The same seed gives the same predictions, in whatever order the rows "
        "stand. If you try several seeds and choose one by its predictions, a guarantee for the "
        "column no longer holds; intervals by row are the same for every seed.",
    },
}
TASK_NOUNS = {"regression": "numbers", "classification": "classes"}
OWN_COLUMNS = ("label_next", "suspect", "similar")  # questions that add a column of their name
OF_ALL_ROWS = ("reject", *OWN_COLUMNS)  # questions to all rows at once
NEED_ALL_ROWS = (*OF_ALL_ROWS, "device")  # what no fit to a sample of the rows can make use of


@dataclass(frozen=True)
class OptionType:
    """A kind of value: its type, what help calls it, and how it is checked."""

    type: Any  # a list may be repeated on the command line
    metavar: str = ""
    check: Callable[[str, Any], object] | None = None  # raises a ValueError
    choices: tuple[str, ...] = ()
    task: str = ""  # the only task that it suits
    words: str = ""  # what a docstring calls it, if not by its type


def read_method(method: Any) -> list[Any]:
    """Return the parts of a method: names in the registry, and estimators; several are blended."""
    if isinstance(method, str):
        several = method.split(",")
    else:
        several = method
    parts = []
    for part in several if isinstance(several, list | tuple) else [several]:
        if isinstance(part, str):
            word = part.strip().replace("_", "-").lower()
        else:
            word = ""
        if word in METHODS:
            parts.append(word)
            continue
        if isinstance(part, str) and ":" not in part:
            listed = ", ".join(map(repr, METHODS))
            raise ValueError(
                f"There is no method {part!r}: choose one of {listed}, or give an estimator."
            )
        from transduce.model_selection import own_models

        parts.append(
            own_models.imported(part) if isinstance(part, str) else own_models.checked(part)
        )
    if not parts:
        raise ValueError("method is empty: name a method, or give an estimator.")
    return parts


def _name(name: str, value: object) -> None:
    if not isinstance(value, str):
        example = "cuda" if name == "device" else "photos"
        raise ValueError(f"{name} is a name such as {example!r}; got {value!r}.")


def read_views(views: Any) -> list[list[Any]]:
    """Return the columns of each view; those of one view may be a text, separated by commas."""
    words = "views is a list of lists of columns, such as [['title', 'text'], ['links']]"
    if isinstance(views, str) or not isinstance(views, list | tuple):
        raise ValueError(f"{words}; got {views!r}.")
    columns = []
    for view in views:
        names = view
        if isinstance(view, str):
            names = [name.strip() for name in view.split(",")]
        if not isinstance(names, list | tuple) or not names or "" in names:
            raise ValueError(f"{words}; got {view!r}.")
        columns.append(list(names))
    return columns


def read_same(groups: object) -> list[list[str]]:
    """Return column, name and spellings of each group; one may be a text with commas, as in CSV."""
    words = "same is a list of a column, a name and spellings, such as [['sex', 'male', 'm']]"
    if on_command_line():
        words = "--same takes a column, a name and spellings, such as --same sex,male,m"
    if isinstance(groups, str) or not isinstance(groups, list | tuple):
        raise ValueError(f"{words}; got {groups!r}.")
    read = []
    for group in groups:
        parts = group
        if isinstance(group, str):
            parts = next(csv.reader([group], skipinitialspace=True), [])
        if not isinstance(parts, list | tuple) or len(parts) < 3 or "" in parts:
            raise ValueError(f"{words}; got {group!r}.")
        read.append([str(part).strip() for part in parts])
    return read


def read_confidence(value: Any) -> Any:
    """Return a level, or a list of several, the main one first; a text has commas between them."""
    if isinstance(value, str):
        value = [_as_number(text) for text in value.split(",")]
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return value
    if len(value) == 1:
        return value[0]
    return list(value)


def _as_number(text: str) -> Any:
    """Return the number that a text is, such as 0.9 or 90%, or the text."""
    word = text.strip()
    try:
        if word.endswith("%"):
            return float(word.removesuffix("%")) / 100.0
        return float(word)
    except ValueError:
        return text


def _levels(name: str, value: object) -> None:
    checks.read_levels(name, read_confidence(value))


def _views(name: str, value: object) -> None:
    read_views(value)


def _predictions(name: str, value: object) -> None:
    if isinstance(value, list) and len(set(value)) < len(value):
        raise ValueError(f"{option(name)} names a column twice: {value!r}.")


def _same(name: str, value: object) -> None:
    read_same(value)


def _design(name: str, value: object) -> None:
    check_design(value, "column")


def _named_limits(texts: Sequence[object]) -> Limits:
    from transduce.app.tables.columns import limits_in

    return limits_in({str(text).strip(): 1 for text in texts})


def _limits(name: str, value: Sequence[object]) -> None:
    if _named_limits(value).number < len({str(text).strip() for text in value}):
        raise ValueError(f"{option(name)} is a limit such as '<0.5' or '>100'; got {value!r}.")


def _one_of(words: tuple[str, ...]) -> OptionType:
    return OptionType(str, check=partial(checks.check_choice, choices=words), choices=words)


FLAG = OptionType(bool, check=checks.check_flag)
FLAG_OF_CLASSES = replace(FLAG, task="classification")
NUMBER = OptionType(float, "NUMBER", checks.check_number, task="regression")
AMOUNT = OptionType(float, "AMOUNT", checks.check_positive, task="regression")
SHARE = OptionType(float, "SHARE", checks.check_share)
LEVEL = OptionType(float, "LEVEL", checks.check_share)
LEVELS = OptionType(str, "LEVEL[,LEVEL]", _levels, words="float or list of float")
SECONDS = OptionType(float, "SECONDS", checks.check_positive)
FACTOR = OptionType(float, "FACTOR", checks.check_factor)
ROWS = OptionType(int, "ROWS", partial(checks.check_whole, least=100))
SEED = OptionType(int, "SEED", partial(checks.check_whole, least=0, most=checks.LARGEST_SEED))
JOBS = OptionType(int, "N", lambda name, value: checks.check_jobs(value))
COLUMN = OptionType(str, "COLUMN")
SOME_COLUMNS = OptionType(list, "COLUMN", checks.check_list)
PREDICTIONS = OptionType(list, "COLUMN", _predictions, words="column or list of columns")
VALUES = OptionType(list, "VALUE")
DEVICE = OptionType(str, "NAME", _name)
FOLDER = OptionType(str, "FOLDER", _name)
METHOD = OptionType(str, "METHOD", lambda name, value: read_method(value))
METHOD = replace(METHOD, words="str, estimator or list of these")
DESIGN = OptionType(object, check=_design)
LIMITS = OptionType(list, "LIMIT", _limits, task="regression")
SAME = OptionType(list, "COLUMN,NAME,SPELLING", _same, words="list of lists of str")
VIEWS = OptionType(list, "COLUMNS", _views, task="classification", words="list of lists of columns")


@dataclass(frozen=True)
class Option:
    """What there is to know of one option."""

    help: str  # on the command line and in the docstring
    panel: str
    kind: OptionType

    def described(self, default: object) -> str:
        """Return type and default as a docstring says them."""
        if self.kind.choices:
            return f"{{{', '.join(map(repr, self.kind.choices))}}}, default={default!r}".replace(
                "'", '"'
            )
        word = {list: "sequence of str", object: "Design"}.get(
            self.kind.type, self.kind.type.__name__
        )
        word = self.kind.words or word
        if default is None or default == []:
            return f"{word}, optional"
        return f"{word}, default={default!r}"


def _option(default: Any, kind: OptionType) -> Any:
    """Return a field of `Options`."""
    usual: Any = {"default_factory": list} if default == [] else {"default": default}
    return field(metadata={"kind": kind}, **usual)


def read_predicted(value: Any) -> Any:
    """Return one column of predictions as it is, and several as a list; none as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        return value
    columns = list(value)
    if len(columns) == 1:
        return columns[0]
    return columns


def _is_unset(name: str, value: object) -> bool:
    """Return whether an option that is left out by default was left out."""
    default = DEFAULTS[name]
    if default is None:
        return value is None
    return isinstance(default, list) and isinstance(value, list) and not value


def _described(kinds: Mapping[str, OptionType]) -> dict[str, Option]:
    """Return options of some kinds, with what help says of them."""
    places = {name: (text, panel) for panel, texts in HELP.items() for name, text in texts.items()}
    return {name: Option(*places[name], kind) for name, kind in kinds.items()}


@dataclass(frozen=True)
class Options:
    """What a user may ask of `fill` and of its result, as it was asked; checked."""

    method: Any = _option("auto", METHOD)
    task: str = _option("auto", _one_of(TASKS))
    minimum: float | None = _option(None, NUMBER)
    maximum: float | None = _option(None, NUMBER)
    limit: list[object] = _option([], LIMITS)
    probabilities: bool = _option(False, FLAG_OF_CLASSES)
    reject: float | None = _option(None, SHARE)
    label_next: bool = _option(False, FLAG)
    suspect: bool = _option(False, FLAG)
    similar: bool = _option(False, FLAG)
    labels: Design | None = _option(None, DESIGN)
    confidence: float | list[float] = _option(0.9, LEVELS)
    guarantee: str = _option("auto", _one_of(GUARANTEES))
    certainty: float = _option(0.95, LEVEL)
    tolerance: float | None = _option(None, AMOUNT)
    label_conditional: bool = _option(False, FLAG_OF_CLASSES)
    ignore: list[ColumnName] = _option([], SOME_COLUMNS)
    text: list[ColumnName] = _option([], SOME_COLUMNS)
    number: list[ColumnName] = _option([], SOME_COLUMNS)
    views: list[list[ColumnName]] = _option([], VIEWS)
    id: ColumnName = _option(None, COLUMN)
    predictions: Any = _option([], PREDICTIONS)
    features: str = _option("encoded", _one_of(("encoded", "columns")))
    missing: list[object] = _option([], VALUES)
    keep: list[object] = _option([], VALUES)
    same: list[list[str]] = _option([], SAME)
    case_sensitive: bool = _option(False, FLAG)
    pictures: str | None = _option(None, FOLDER)
    sample: int = _option(20_000, ROWS)
    budget_seconds: float = _option(300.0, SECONDS)
    device: str | None = _option(None, DEVICE)
    n_jobs: int | None = _option(None, JOBS)
    random_state: int = _option(0, SEED)

    @classmethod
    def read(cls, given: Mapping[str, Any], *, questions: bool = False) -> Options:
        """Return options as they were given, or raise an error that says what to correct."""
        for name in given:
            if name not in OPTIONS or (name in QUESTIONS and not questions):
                hint = ""
                if name in OPTIONS:
                    hint = f": ask the result, as in fill(...).with_options({name}=...)"
                if name in LABEL_FLAGS:
                    example = "Drawn('column')"
                    if name in OF_ALL_DESIGNS:
                        example = f"Chance({name}=...)"
                    hint = f": say how the labels came about, as in labels={example}"
                written_as = [other for other, short in FLAGS.items() if short == name]
                if written_as and name not in OPTIONS:
                    hint = f": ask the result, as in fill(...).with_options({written_as[0]}=...)"
                    if written_as[0] not in QUESTIONS:
                        hint = f": in Python it is {written_as[0]!r}"
                raise TypeError(f"fill has no option {name!r}{hint}.")
        options = dict(given)
        lists = {"ignore", "text", "number", "limit"}
        for name in lists & set(given):  # one column is no list, and is refused below
            listed = given[name] if name != "limit" else [given[name]]
            options[name] = listed if isinstance(given[name], str) else list(given[name])
        if "views" in given:
            options["views"] = read_views(given["views"])
        if "same" in given:
            options["same"] = read_same(given["same"])
        if "confidence" in given:
            options["confidence"] = read_confidence(given["confidence"])
        if "predictions" in given:
            options["predictions"] = read_predicted(given["predictions"])
        for name in ("missing", "keep"):
            values = given.get(name, ())
            several = isinstance(values, list | tuple | set | frozenset)
            options[name] = list(values) if several else [values]
        return cls(**options)

    def __post_init__(self) -> None:
        for name, described in OPTIONS.items():
            value = getattr(self, name)
            if described.kind.check is not None and not _is_unset(name, value):
                described.kind.check(name, value)
        if (
            self.minimum is not None
            and self.maximum is not None
            and not self.minimum < self.maximum
        ):
            low = option("minimum", self.minimum)
            high = option("maximum", self.maximum)
            raise OptionError(f"{low} is not below {high}.")

    @property
    def predicted(self) -> list[ColumnName]:
        """The columns of predictions made elsewhere: one, or one for each class."""
        if isinstance(self.predictions, list):
            return self.predictions
        return [self.predictions]

    @property
    def design(self) -> Design:
        """How the labels came about."""
        return Chance() if self.labels is None else self.labels

    @property
    def levels(self) -> tuple[float, ...]:
        """All levels of the intervals or sets, the main one first."""
        return checks.read_levels("confidence", self.confidence)

    @property
    def level(self) -> float:
        """The main level."""
        return self.levels[0]

    @property
    def further_levels(self) -> tuple[float, ...]:
        """The levels besides the main one, lowest first."""
        return tuple(sorted(self.levels[1:]))

    @property
    def new_columns(self) -> OptionValues:
        """Which columns are added besides the usual ones, as `check_names` takes it."""
        endings = [name for name in OWN_COLUMNS if getattr(self, name)]
        return {
            "probabilities": self.probabilities,
            "further": self.further_levels,
            "endings": endings,
        }

    def at_level(self, level: float) -> Options:
        """Return the options with one level only."""
        return replace(self, confidence=level)

    @property
    def by_class(self) -> bool:
        """Whether every class is to be compared with its own calibration labels."""
        return self.label_conditional or self.design.by_class

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value that is possible."""
        if self.minimum is None:
            low = -float("inf")
        else:
            low = float(self.minimum)
        return low, float("inf") if self.maximum is None else float(self.maximum)

    def limits_with(self, seen: Limits) -> Limits:
        """Return which limits labels have, and those that the user names."""
        return seen.with_named(_named_limits(self.limit))

    def clip(self, answer: Answer, seen: Limits) -> Answer:
        """Return an answer that is open at the limits of labels, and cut to what is possible."""
        limits = self.limits_with(seen)
        return answer.opened(limits.below, limits.above).within(*self.limits)

    @property
    def reading(self) -> OptionValues:
        """How cells of the target and of every other column are read."""
        return {"case_sensitive": self.case_sensitive, "keep": self.keep}

    def reading_of(self, target: ColumnName) -> OptionValues:
        """Return how cells of the target are read, as `read_target` takes it."""
        return {**self.reading, "task": self.task, "anywhere": target in self.number}

    def clean(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows with plain types, empty cells where they are marked, and one name a thing."""
        from transduce.app.tables.numbers import without
        from transduce.app.tables.spellings import respelled

        return respelled(without(frame, self.missing), self.same, exactly=self.case_sensitive)

    def below(self, columns: Iterable[ColumnName], target: ColumnName) -> Options:
        """Return the options for a table: where an object is named, its fields are meant.

        Fields that are named by themselves are not.
        """
        from transduce.app.tables.nested import fields_below

        named = {target, self.id, *self.predicted, *self.design.columns}
        others = [name for name in columns if name not in named]
        return replace(
            self,
            ignore=fields_below(others, self.ignore),
            text=fields_below(others, self.text),
            number=fields_below(others, self.number),
            views=[fields_below(others, view) for view in self.views],
        )

    def columns(self, target: ColumnName) -> list[ColumnName]:
        """Return all columns that are named.

        A ValueError says which of them cannot be used like that.
        """
        design = self.design
        named = list(self.predicted)
        if self.id is not None:
            named.append(self.id)
        in_views = [column for view in self.views for column in view]
        numbers = [name for name in self.number if name != target]
        names = [*self.ignore, *self.text, *numbers, *in_views, *named, *design.columns]
        if target in names:
            raise OptionError(
                f"{target!r} is the target: it cannot be ignored, read otherwise, or name or mark "
                "rows."
            )
        if both := [name for name in self.text if name in self.number]:
            raise OptionError(
                f"{both[0]!r} cannot be read as text and as numbers: leave out one of the two."
            )
        lacks = ""
        if design.holds_out and self.guarantee == "row":
            lacks = (
                "labels that calibrate, which guarantee 'row' does not have: leave out one of the "
                "two"
            )
        elif (design.holds_out or not design.testable) and self.parts == ["confidence-machine"]:
            lacks = "probabilities, which the machine lacks: choose another method"
            if design.holds_out:
                lacks = "labels that calibrate: choose another method than the machine"
        if lacks:
            raise OptionError(f"{_spelled_design(design)} needs {lacks}.")
        respelled = [group[0] for group in self.same]
        return [target, *names, *respelled]

    def check_labels(self, target: Target) -> None:
        """Refuse an option that does not suit the labels, and labels that are not possible.

        It raises a ValueError.
        """
        for name in self.changed():
            suits = OPTIONS[name].kind.task or target.task
            if suits != target.task:
                here = TASK_NOUNS[suits]
                labels_are = TASK_NOUNS[target.task]
                raise OptionError(
                    f"{option(name)} is for {here}, and these labels are {labels_are}."
                )
        if self.tolerance is not None and target.limits.number:
            raise ValueError(
                f"{counted(target.limits.number, 'label is a limit', 'labels are limits')}, such "
                "as <0.5, of which no prediction is known to be off by so much or so little: leave "
                f"out {option('tolerance')}."
            )
        if self.minimum is None and self.maximum is None:
            return
        if target.spelling.moments is not None:
            name = option("minimum" if self.minimum is not None else "maximum")
            raise OptionError(
                f"{name} is for numbers, and these labels are {target.spelling.moments.what}."
            )
        low, high = self.limits
        for label in target.known.astype(float):
            if not low <= label <= high:
                name = "minimum" if label < low else "maximum"
                raise ValueError(
                    f"{target.name!r} has the label {label:g}, beyond "
                    f"{option(name, getattr(self, name))}: correct one of them."
                )

    @cached_property
    def parts(self) -> list[Any]:
        """The method's parts, read once: names in the registry, and estimators."""
        return read_method(self.method)

    @property
    def own(self) -> list[Any]:
        """The estimators among the method's parts."""
        return [part for part in self.parts if not isinstance(part, str)]

    @property
    def method_name(self) -> str:
        """What the method is called: its name, the class of an estimator, or a blend."""
        if len(self.parts) > 1:
            return "blend"
        if not self.own:
            return str(self.parts[0])
        from transduce.model_selection import own_models

        return own_models.called(self.own[0])

    def for_labels(self, *targets: Target) -> Options:
        """Return the options for these labels, all of them checked.

        Labels of rows that are kept from the fit are among them.
        """
        for target in targets:
            self.check_labels(target)
        classes = None
        if targets[0].task == "classification":
            classes = sorted(
                {label for target in targets for label in target.known.tolist()}, key=str
            )
        settled = self.for_task(targets[0].task)
        self.design.check(classes, self.by_class)
        return settled

    def for_task(self, task: KnownTask) -> Options:
        """Return the options with the guarantee that is possible.

        A ValueError says which methods do not suit.
        """
        for method in (METHODS[part] for part in self.parts if isinstance(part, str)):
            if task not in method.tasks:
                good = ", ".join(
                    repr(other.name) for other in METHODS.values() if task in other.tasks
                )
                refusal = f"Method {method.name!r} fills {TASK_NOUNS[method.tasks[0]]}"
                raise OptionError(
                    f"{refusal}, and these labels are {TASK_NOUNS[task]}: choose one of {good}."
                )
        with_graph = {"spectral-graph", "auto", "blend"}
        if self.views and not with_graph & {part for part in self.parts if isinstance(part, str)}:
            raise OptionError(
                f"{option('views')} is for the methods 'spectral-graph', 'auto' and 'blend': name "
                "one of them."
            )
        if self.views and self.device is not None:
            raise OptionError(f"{option('views')} and {option('device')} exclude each other.")
        if self.own:
            from transduce.model_selection import own_models

            for part in self.own:
                own_models.check_task(part, task)
        elif self.features != "encoded":
            raise OptionError(
                f"{option('features', self.features)} is for an estimator of your own."
            )
        on_devices = [name for name, method in METHODS.items() if method.on_devices]
        if self.device is not None and not any(part in on_devices for part in self.parts):
            raise OptionError(
                f"{option('device', self.device)} is for the methods {', '.join(on_devices)}: "
                "name one of them."
            )
        if self.own and self.guarantee == "row":
            raise OptionError(
                f"{option('guarantee', 'row')} comes from the confidence machine, not from an "
                "estimator of your own: leave out one of the two."
            )
        return replace(self, task=task, guarantee="column" if self.own else self.guarantee)

    def check_sampled(self) -> None:
        """Raise a ValueError if a fit to a sample of the rows cannot make use of these options."""
        odd = [option(name) for name in self.changed() if name in NEED_ALL_ROWS]
        if self.guarantee == "row":
            odd.append("guarantee 'row'")
        if self.design.needs_all_rows:
            odd.append(_spelled_design(self.design))
        if odd:
            raise OptionError(
                f"{odd[0]} needs all rows in one fit: it cannot be combined with a fit that is "
                "saved or answers rows that come later, nor with a table in parts."
            )

    def no_features(self, target: ColumnName) -> list[ColumnName]:
        """Return the columns that are no features, besides the target and the names of rows."""
        # What `transduce draw` writes beside the marks of a draw.
        of_draw = [f"{target}_random_{word}" for word in ("seed", "stratum", "probability")]
        return [*self.ignore, *self.design.not_features, *of_draw]

    def for_other_rows(self) -> Options:
        """Return the options for rows that are answered one by one.

        Of these there is neither a share nor an order.
        """
        return replace(self, **{name: DEFAULTS[name] for name in OF_ALL_ROWS})

    def changed(self) -> OptionValues:
        """Return the options that are not left at their defaults."""
        return changed_fields(self)

    def as_dict(self) -> OptionValues:
        """Return all options by their names."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def as_json(self) -> JsonObject:
        """Return the options as JSON can hold them."""
        design = self.labels
        method = self.method
        words = (
            None if design is None else {"design": type(design).__name__, **changed_fields(design)}
        )
        if not isinstance(method, str):
            from transduce.model_selection import own_models

            method = own_models.as_code(method)
        return self.as_dict() | {"method": method, "labels": words}

    @classmethod
    def of_json(cls, content: JsonObject) -> Options:
        """Return the options that `as_json` made this of."""
        if content.get("labels") is not None:
            words = dict(content["labels"])
            design = DESIGNS[words.pop("design")]
            content = content | {"labels": design(**words)}
        return cls.read(content, questions=True)

    def as_call(
        self,
        target: ColumnName,
        task: str,
        file: str = "",
        **more: Any,
    ) -> str:
        """Return the code that does it again, of a table in Python or in a file.

        `more` are flags of the command.
        """
        changed = replace(self, task=task).changed()
        lines = list[str]()
        words = {name: f"{name}={value!r}" for name, value in changed.items()}
        if self.labels is not None:
            words["labels"] = f"labels={self.labels.as_code()}"
        if not isinstance(self.method, str):
            from transduce.model_selection import own_models

            words["method"] = f"method={own_models.as_code(self.method)}"
            lines = own_models.import_lines(self.method)
        fit = [repr(target), *(words[name] for name in FIT if name in words)]
        asked = [words[name] for name in QUESTIONS if name in words]
        if "out" in more:
            own_lines = [repr(file), *fit, f"out={more['out']!r}", *asked]
            lines += [
                "from transduce.app.filling import fill_folder",
                f"fill_folder({', '.join(own_lines)})",
            ]
            return "\n".join(lines)
        table = "table"
        if file:
            lines.append("from transduce.app.tables.files import read")
            arguments = [repr(file), *(f"{name}={value!r}" for name, value in more.items())]
            table = f"read({', '.join(arguments)})"
        call = f"fill({table}, {', '.join(fit)})"
        return "\n".join([*lines, f"{call}.with_options({', '.join(asked)})" if asked else call])

    def as_command(
        self,
        table: str,
        target: ColumnName,
        task: str,
        **more: Any,
    ) -> str:
        """Return the command that does it again, of a table in a file.

        `more` are flags of the command alone.
        """
        flags: OptionValues = {}
        for name, value in replace(self, task=task).changed().items():
            flags |= value.as_flags() if name == "labels" else {name: value}
        if not isinstance(self.method, str):
            flags["method"] = ",".join(self.parts)
        words = ["transduce", "fill", table, "--target", str(target)]
        for name, value in {**flags, **more}.items():
            if name == "confidence" and isinstance(value, list):
                value = ",".join(map(str, value))
            for item in value if isinstance(value, list) else [value]:
                if name == "views":
                    item = ",".join(map(str, item))
                elif name == "same":
                    item = as_csv(item)
                beside = (
                    [f"{flag(name)}={item}"]
                    if str(item).startswith("-")
                    else [flag(name), str(item)]
                )
                words += [flag(name)] if item is True else beside
        return shlex.join(words)


OPTIONS = _described({one.name: one.metadata["kind"] for one in fields(Options)})
DEFAULTS = default_fields(Options)


GuaranteeFor = Literal["auto", "row", "column"]
FeatureInput = Literal["encoded", "columns"]
MethodName = Literal[
    "auto",
    "blend",
    "ridge",
    "gaussian-process",
    "moment-matched",
    "spectral-graph",
    "bayesian",
    "confidence-machine",
    "forest",
]


class Estimator(Protocol):
    """An estimator as scikit-learn has them."""

    def fit(self, X: Rows, y: Labels) -> Any:
        """Fit to rows and labels."""

    def get_params(self, deep: bool = True) -> Any:
        """Return the settings."""


def _annotations_of(options: type) -> dict[str, str]:
    """Return the types of options, as they are written in the code."""
    types: dict[str, str] = {}
    for name, written in options.__annotations__.items():
        types[name] = getattr(written, "__forward_arg__", str(written))
    return types


class FillOptions(TypedDict, total=False):
    """The options of `fill`, for editors and type checkers."""

    method: MethodName | str | Estimator | Sequence[MethodName | str | Estimator]
    task: Task
    labels: Design | None
    confidence: float | Sequence[float]
    guarantee: GuaranteeFor
    label_conditional: bool
    ignore: Sequence[ColumnName]
    text: Sequence[ColumnName]
    number: Sequence[ColumnName]
    views: Sequence[Sequence[Any]]
    id: ColumnName
    predictions: ColumnName | Sequence[ColumnName]
    features: FeatureInput
    missing: Any
    keep: Any
    same: Sequence[Sequence[str]]
    case_sensitive: bool
    pictures: str | None
    sample: int
    budget_seconds: float
    device: str | None
    n_jobs: int | None
    random_state: int


class Questions(TypedDict, total=False):
    """What is asked of the result, for editors and type checkers."""

    minimum: float | None
    maximum: float | None
    limit: Sequence[str]
    probabilities: bool
    reject: float | None
    label_next: bool
    suspect: bool
    similar: bool
    certainty: float
    tolerance: float | None


FIT = tuple(FillOptions.__annotations__)
QUESTIONS = tuple(Questions.__annotations__)
# What each option may be; a field of `Options` has the type of what is read from it.
ACCEPTED = {**_annotations_of(FillOptions), **_annotations_of(Questions)}
# Questions that change the guarantee alone, and no column.
OF_GUARANTEE = ("certainty", "tolerance")


# ---- how the labels came about

# The flags of the command line, which make a design.
_TYPES_OF_FLAGS = {
    "column": COLUMN,
    "columns": SOME_COLUMNS,
    "switch": FLAG,
    "factor": FACTOR,
}


def _type_of_flag(flag: Flag) -> OptionType:
    """Return the kind of value that a flag of a design has."""
    if flag.kind == "choice":
        return _one_of(flag.choices)
    if flag.kind == "text":
        return OptionType(str, flag.metavar, lambda name, text: flag.read(text))
    return _TYPES_OF_FLAGS[flag.kind]


LABEL_FLAGS = _described({flag.name: _type_of_flag(flag) for flag in all_flags().values()})
LABEL_DEFAULTS = {flag.name: flag.default for flag in all_flags().values()}
OF_ALL_DESIGNS = {flag.name for flag in COMMON_FLAGS}


def _spelled_design(design: Design) -> str:
    """Spell the design as the user wrote it."""
    return option(next(iter(design.as_flags())))


Function = TypeVar("Function", bound=Callable[..., Any])


def described(names: Sequence[str]) -> Callable[[Function], Function]:
    """Give a function some options, in its signature and in its docstring.

    They are described where the docstring says ``OPTIONS``.
    """

    def describe(function: Function) -> Function:
        plain = inspect.signature(function)
        parameters = [
            parameter
            for parameter in plain.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        indent = "        " if "self" in plain.parameters else "    "
        lines = []
        for name in names:
            default = DEFAULTS[name]
            kind = inspect.Parameter.KEYWORD_ONLY
            annotation = ACCEPTED[name]
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
            lines.append(f"{indent}{name} : {OPTIONS[name].described(default)}\n")
            wrapped = textwrap.wrap(OPTIONS[name].help, 116 - len(indent))
            lines += [f"{indent}    {line}\n" for line in wrapped]
        function.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__doc__ = (function.__doc__ or "").replace(f"{indent}OPTIONS\n", "".join(lines))
        return function

    return describe
