"""The parts of a summary: what `summarize` writes once, and a page or a JSON file shows."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from transduce.core.types import JsonObject

Tone = Literal["good", "fair", "bad"]


class RowLevel(TypedDict):
    """The interval, or set, of a filled row at a level besides the main one."""

    confidence: float
    # Of numbers:
    pieces: NotRequired[list[list[float | None]]]  # of its interval; None is infinite
    width: NotRequired[float | None]
    # Of classes:
    set: NotRequired[list[Any]]
    unseen: NotRequired[bool]


class RowRecord(TypedDict):
    """One filled row."""

    row: Any  # its name
    position: int
    context: list[str]  # cells of columns that tell which row is meant
    value: Any
    status: str
    levels: list[RowLevel]  # at further levels, lowest first
    # Of numbers:
    pieces: NotRequired[list[list[float | None]] | None]  # of its interval; None is infinite
    width: NotRequired[float | None]
    standard_error: NotRequired[float | None]
    # Of classes:
    set: NotRequired[list[Any] | None]
    unseen: NotRequired[bool]  # whether a class that no label shows is possible too
    confidence: NotRequired[float | None]
    credibility: NotRequired[float | None]
    probability: NotRequired[float | None]


class SuspectRecord(TypedDict):
    """One known value that is perhaps wrong."""

    position: int
    row: str  # its line in the file, or its number
    value: str
    reason: str


class NumberAnswers(TypedDict):
    """What filled numbers and their intervals are like as a whole."""

    n_answered: int
    smallest: float | None
    median: float | None
    largest: float | None
    median_width: float | None
    n_unbounded: int
    n_open: int  # on one side, at a limit
    equally_wide: bool
    decimals: int
    width_reduction: float | None  # of the median interval
    unit: str  # of widths, and of numbers that do not stand for dates
    moments: JsonObject | None


class ClassTally(TypedDict):
    """How often a class was answered, with one and with several possible classes."""

    name: str
    one: int
    several: int


class ClassAnswers(TypedDict):
    """What filled classes and their sets are like as a whole."""

    n_one: int | None
    n_several: int | None
    right_if_one: float | None
    by_class: list[ClassTally]


class MiscoverageSummary(TypedDict):
    """The distribution of the number of rows outside, by its parameters, with its bound."""

    n_unlabelled: int
    n_calibration: int
    rank: int | None
    certainty: float
    at_most: int | None
    expected: float | None


class DistanceRecord(TypedDict):
    """How far apart labelled and unlabelled rows are in a column."""

    name: str
    distance: float | None


class ExchangeabilitySummary(TypedDict):
    """How labelled and unlabelled rows compare."""

    verdict: str
    power: str
    tested: bool
    p_value: float | None
    area_under_curve: float | None
    shifted: bool
    suspected: bool
    detectable: float | None
    n_permutations: int
    features: list[DistanceRecord]


class BoundSummary(TypedDict):
    """A bound on a count."""

    at_most: int
    of: int
    certainty: float
    tells: bool
    judged: int | None  # of wrong ones: the bound for the fit without the calibration labels
    changed: int  # rows at which the fit to all labels differs from that one


class OverlapSummary(TypedDict):
    """The shares of labelled and unlabelled rows in bins of their scores."""

    edges: list[float]
    labelled: list[float]
    unlabelled: list[float]
    shared: float
    n_labelled: int
    n_unlabelled: int


class LabelledSummary(TypedDict):
    """What is known of which rows have a label."""

    columns: list[JsonObject]
    overlap: OverlapSummary | None
    drift: str | None
    sensitivity: list[JsonObject] | None
    remedy: list[int]
    sentences: list[str]


class SharesSummary(TypedDict):
    """The shares of the classes among the unlabelled rows."""

    given: bool
    confidence: float
    classes: list[JsonObject]


class RejectionCurve(TypedDict):
    """Errors, as more and more of the least sure answers are left aside."""

    errors: list[float]
    rejected: list[float]
    error_of_all: float
    error_of_surer_half: float


class NumberQuality(TypedDict):
    """How good filled numbers were at hidden labels."""

    n: int
    mean_absolute_error: float
    median_absolute_error: float
    of_the_mean: float  # of always answering the mean
    r2: float | None
    true: list[float]
    answered: list[float]
    unit: str


class ClassQuality(TypedDict):
    """How good filled classes were at hidden labels."""

    n: int
    accuracy: float
    of_the_commonest: float  # of always answering the commonest class
    commonest: str
    classes: list[str]
    confusion: list[list[int]]  # how often each class (column) was answered for each (row)
    rejection: RejectionCurve | None


class MapSummary(TypedDict):
    """The places of some rows, with their values, known or answered."""

    n_rows: int
    x: list[float]
    y: list[float]
    unlabelled: list[bool]
    value: list[Any]


class LevelSummary(TypedDict):
    """What is guaranteed, and given, at a level besides the main one."""

    confidence: float
    kind: str
    outside: BoundSummary | None
    reason: str
    median_width: float | None  # of numbers; None also where half of the intervals are unbounded
    n_one: int | None  # of classes: at how many rows one is possible


class Card(TypedDict):
    """A question with its answer, in a few large words and in a sentence."""

    question: str
    large: str
    small: str
    tone: Tone
    icon: str


class Summary(TypedDict):
    """Every number and sentence of a report."""

    format: int
    target: str
    task: str
    source: str
    confidence: float
    certainty: float
    counts: dict[str, int]
    context: list[str]
    rows: list[RowRecord]
    rows_are: str  # what their names are, in a sentence
    suspects: list[SuspectRecord]
    answers: NumberAnswers | ClassAnswers
    law: MiscoverageSummary | None
    exchangeability: ExchangeabilitySummary | None
    guarantee: JsonObject
    levels: list[LevelSummary]  # besides the main one, lowest first
    levels_sentences: list[str]
    who_was_labelled: LabelledSummary | None
    whole: JsonObject | None  # estimates of the whole column
    class_shares: SharesSummary | None
    class_coverage: list[JsonObject] | None
    quality: NumberQuality | ClassQuality | None
    members: list[JsonObject]
    relevance: list[JsonObject] | None
    map: MapSummary | None
    columns: list[JsonObject]
    options: JsonObject
    versions: dict[str, str]
    question: str
    reply: list[str]
    quality_known: bool
    quality_sentence: str | None
    caveats: list[str]
    next: str
    cards: list[Card]
    to_do: str
    again: str
    again_words: str
    notes: list[str]
    made: str
