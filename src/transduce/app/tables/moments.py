"""Dates, times of day and durations: read as numbers, and written again like the labels."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from transduce.app.tables.month_names import ENGLISH, in_english, month_names
from transduce.app.tables.numbers import NEARLY
from transduce.core.types import AnyArray, Array

FEWEST_DATES = 5  # that show that numbers such as 20240131 are dates
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_ZONE = re.compile(r":\d\d(?:\.\d+)?(Z| ?[-+]\d\d:?\d\d| ?UTC| ?GMT)$")
_RATIO = re.compile(r"\d+\s?:\s?\d+")  # as titres have, 1:160 beside 1:40
_DAYS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y-%m"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%B %Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%y", "%d-%b-%y", "%d %b %y"),
    *("%a, %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y", "%a %d %b %Y", "%a %b %d %Y"),
    *("%a %d.%m.%Y", "%a, %d.%m.%Y", "%a %b %d %H:%M:%S %Y"),
    *("%d%b%Y", "%d%b%y", "%Y.%m.%d", "%m-%d-%Y", "%d. %m. %Y", "%d. %B %Y", "%d. %b %Y"),
    *("%m/%Y", "%b-%y", "%b %Y", "%b-%Y", "%Y%b%d", "%Y-%b-%d", "%Y年%m月%d日"),
)
_SECOND_ENDS = ("", ":%S", ":%S.000", ":%S.000000", ":%S.%f")
_TIMES = (
    "",
    *(f" %H:%M{end}" for end in _SECOND_ENDS),
    *(f"T%H:%M{end}" for end in _SECOND_ENDS),
    *(f"{before}%H:%M{end}" for before in (":", ", ") for end in ("", ":%S")),
    " %H:%M Uhr",
    *(f" %I:%M{end}{blank}%p" for end in ("", ":%S") for blank in (" ", "")),
)
_FORMATS = (
    *(
        f"{day}{time}"
        for day in _DAYS
        for time in _TIMES
        if not time or ("%d" in day and "%H" not in day)
    ),
    *("%Y%m%dT%H%M%S", "%Y%m%dT%H%M"),
)
_YEARS = (1000, 2200)  # of most months; others are codes, as 0400-01 is
_DATES = (datetime.datetime, datetime.date, pd.Timestamp)
MOST_STYLES = 5  # formats of dates in one column
_DIGITS = "%Y%m%d"  # dates such as 20240131, in text and as numbers
_SECONDS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_EPOCH = datetime.datetime(1970, 1, 1)
_YEAR_1 = -62135596800.0  # in seconds from 1970 on
_YEAR_10_000 = 253402300800.0
_MOST_NANOSECONDS = 9.2e9  # seconds that an integer of 64 bits holds as nanoseconds


@dataclass(frozen=True)
class Moments:
    """How dates, times of day and durations are read as days or seconds, and written again.

    Dates are counted from 1970 on.
    """

    cells: str  # what they are: "date" or "time" of Python, "text", "number", or a type of pandas
    style: str = ""  # of text and numbers: the format of dates, "clock" or "span"
    step: str = "us"  # the coarsest unit whose multiples all labels are: Y, M, D, h, m, s, ms or us
    padded: bool = True  # whether texts have zeros before single digits
    case: str = ""  # "upper" or "lower", if letters are all so
    century: int = 10_000  # two-digit years from here on are meant to be a hundred years earlier
    others: tuple[str, ...] = ()  # further formats of dates in text, beside dates as such or others
    months: tuple[str, ...] = ()  # what months are called, if not as in the formats

    @classmethod
    def of(cls, column: pd.Series, *, dates: bool = True) -> Moments | None:
        """Return how a column is read; None if it does not hold (dates,) times or durations."""
        known = column.dropna()
        moments = cls._recognized(column, known, dates)
        if moments is None:
            return None
        values = moments._moments(known).dropna()
        if "%y" in moments.style:
            moments = replace(moments, century=_century(values.dt.year.to_numpy()))
            values = moments._moments(known).dropna()
        moments = replace(moments, step=_step(values))
        if moments.cells != "text":
            return moments
        texts = known[values.index].str.strip()
        if moments.others:  # the first format is how dates are written again
            plain = in_english(texts) if moments.months else texts
            in_style = pd.to_datetime(plain, format=moments.style, errors="coerce").notna()
            texts = texts[in_style]
        if texts.str.isupper().all():
            moments = replace(moments, case="upper")
        elif texts.str.islower().all():
            moments = replace(moments, case="lower")
        written = moments.written(moments.numbers(texts))
        return replace(moments, padded=written.tolist() == texts.tolist())

    @classmethod
    def _recognized(
        cls,
        column: pd.Series,
        known: pd.Series,
        dates: bool,
    ) -> Moments | None:
        """Return what the cells of a column are, as far as one cell tells it."""
        kinds: set[type]
        if column.dtype.kind in "biuf":
            kinds = {int}
        else:
            kinds = {type(cell) for cell in known.tolist()}
        if kinds in ({datetime.date}, {datetime.time}):
            return cls(kinds.pop().__name__)
        if kinds and all(issubclass(kind, datetime.date | datetime.timedelta) for kind in kinds):
            if known.dtype.kind in "mM":
                return cls(str(known.dtype))
            if issubclass(kinds.pop(), datetime.timedelta):
                return cls("timedelta64[us]")
            return cls("datetime64[us]")
        if kinds == {str}:
            texts = known.str.strip()
            style, *others = _styles(texts, dates)
            is_whole = bool(style) and ("%" not in style or _share_read(texts, style) == 1.0)
            if dates and not is_whole and not others:
                in_short = in_english(texts)
                if not in_short.equals(texts):
                    plain, *more = _styles(in_short, dates)
                    if plain:
                        names = month_names(texts)
                        return cls("text", plain, others=tuple(more), months=names)
            if style:
                return cls("text", style, others=tuple(others))
        if dates and str in kinds and kinds <= {str, *_DATES}:
            styles = date_styles(known[known.map(type).eq(str)].str.strip())
            if styles:
                return cls("datetime64[us]", others=styles)
        if kinds <= {int, float} and column.dtype != "category":
            may_be_dates = known.between(1.6e7, 2.1e7).all()
            if may_be_dates and _are_digits(_digits(known)):
                return cls("number", _DIGITS)
        return None

    @property
    def styles(self) -> tuple[str, ...]:
        """All formats of dates in text, the most frequent first."""
        return tuple(filter(None, (self.style, *self.others)))

    @property
    def dates(self) -> bool:
        """Whether they are dates."""
        return self.cells.startswith("date") or "%" in self.style

    @property
    def what(self) -> str:
        """What they are called."""
        if self.dates:
            return "dates"
        if self.cells == "time" or self.style == "clock":
            return "times"
        return "durations"

    @property
    def unit(self) -> str:
        """What the numbers count."""
        if self.step in "YMD":
            return "days"
        return "seconds"

    @property
    def _unit_seconds(self) -> float:
        if self.unit == "days":
            return _SECONDS["D"]
        return 1.0

    def _moments(self, column: pd.Series) -> pd.Series:
        """Return cells as dates or durations of pandas; missing where one is neither."""
        if column.dtype.kind in "mM":
            return column
        if self.style == "clock" or self.cells == "time":
            return _clock_spans(column)
        if not self.dates:
            return pd.to_timedelta(column, errors="coerce")
        if self.months:
            column = in_english(column)
        if self.others:
            dates = read_dates(column, self.styles)
        elif self.cells == "text":
            dates = pd.to_datetime(column.str.strip(), format=self.style, errors="coerce")
        elif self.cells == "number":
            dates = pd.to_datetime(_digits(column), format=self.style, errors="coerce")
        else:
            dates = pd.to_datetime(column, errors="coerce")
        late = dates.dt.year >= self.century
        if not late.any():
            return dates
        return dates.mask(late, dates - pd.DateOffset(years=100))

    def read(self, column: pd.Series) -> pd.Series:
        """Return cells as dates of pandas; missing where one is none."""
        return self._moments(column)

    def numbers(self, column: pd.Series) -> Array:
        """Return cells as numbers; NaN where one is missing, or neither a date nor a duration."""
        spans = self._moments(column)
        if self.dates:
            dates = spans
            if dates.dt.tz is not None and self.unit == "days":
                dates = dates.dt.tz_localize(None)
            elif dates.dt.tz is not None:
                dates = dates.dt.tz_convert(None)
            spans = dates - pd.Timestamp(_EPOCH)
        return spans.dt.total_seconds().to_numpy(float) / self._unit_seconds

    def written(self, numbers: Array, way: Callable[[Array], Array] = np.round) -> pd.Series:
        """Return numbers as cells, multiples of the step; missing where no date is."""
        seconds = np.asarray(numbers, dtype=float) * self._unit_seconds
        good = (seconds >= _YEAR_1) & (seconds < _YEAR_10_000)
        if "[ns" in self.cells:
            good = np.abs(seconds) < _MOST_NANOSECONDS
        steps = self._stepped(np.where(good, seconds, 0.0), way)
        steps[~good | (steps >= np.datetime64("10000-01-01"))] = np.datetime64("NaT")
        if self.cells.startswith("timedelta64"):
            return pd.Series(steps - np.datetime64(0, "us")).astype(self.cells)
        if self.cells.startswith("datetime64"):
            return self._in_zone(pd.Series(steps)).astype(self.cells)
        cells = [None if step is None else self._cell(step) for step in steps.tolist()]
        return pd.Series(cells, dtype=object)

    def _in_zone(self, moments: pd.Series) -> pd.Series:
        """Return dates in the zone of the labels, if these have one."""
        zone = getattr(pd.Series(dtype=self.cells).dtype, "tz", None)
        if zone is None:
            return moments
        if self.unit == "days":
            first = np.ones(len(moments), dtype=bool)
            return moments.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
        return moments.dt.tz_localize("UTC").dt.tz_convert(zone)

    def shown(self, number: float) -> str:
        """Return a number as a text for reading."""
        cell = self.written(np.array([number]))[0]
        if self.dates and self.unit == "days" and not self.style:
            return f"{cell:%Y-%m-%d}"
        return str(cell)

    def _stepped(self, seconds: Array, way: Callable[[Array], Array]) -> AnyArray:
        """Return multiples of the step, from 1970 on; what is off by rounding alone stays."""
        if self.step in _SECONDS:
            size = _SECONDS[self.step]
            seconds = way(np.round(seconds / size, 6)) * size
            if self.cells == "time":
                seconds = np.clip(seconds, 0.0, _SECONDS["D"] - size)
            elif self.style == "clock":
                seconds = np.maximum(seconds, 0.0)
            return np.round(seconds * 1e6).astype(np.int64).astype("datetime64[us]")
        dates = np.round(seconds * 1e6).astype(np.int64).astype("datetime64[us]")
        whole = dates.astype(f"datetime64[{self.step}]")
        low = whole.astype("datetime64[us]")
        high = (whole + 1).astype("datetime64[us]")
        share = np.round((dates - low) / (high - low), 6)
        return np.where(way(share) > 0.0, high, low)

    def _cell(self, moment: datetime.datetime) -> Any:
        """Return a moment from 1970 on as a cell of Python or a text."""
        if self.cells in ("date", "time"):
            return getattr(moment, self.cells)()
        if self.style == "span":
            return str(pd.Timedelta(moment - _EPOCH))
        if not self.dates:
            return self._clock_text((moment - _EPOCH).total_seconds())
        text = self._date_text(moment)
        if self.cells == "number":
            return int(text)
        return text

    def _date_text(self, moment: datetime.datetime) -> str:
        """Return a date as labels are written."""
        style = self.style.replace("%Y", f"{moment.year:04d}")  # as not all systems do
        if self.step == "ms":
            style = style.replace("%f", f"{moment.microsecond // 1000:03d}")
        text = moment.strftime(style)
        if self.months:
            text = text.replace(ENGLISH[moment.month - 1], self.months[moment.month - 1], 1)
        if self.case == "upper":
            text = text.upper()
        elif self.case == "lower":
            text = text.lower()
        if not self.padded:
            text = re.sub(r"(?<![\d:])0(?=\d(?!\d))", "", text)
        return text

    def _clock_text(self, total_seconds: float) -> str:
        """Return a time of day as labels are written."""
        minutes, seconds = divmod(total_seconds, 60)
        text = f"{int(minutes // 60):02d}:{int(minutes % 60):02d}"
        if self.step == "s":
            text += f":{seconds:02.0f}"
        elif self.step not in "Dhm":
            text += f":{seconds:06.3f}"
        if not self.padded:
            text = text.removeprefix("0")
        return text


def _clock_spans(column: pd.Series) -> pd.Series:
    """Return texts such as 12:30 as durations of pandas."""
    parts = column.astype(str).str.strip().str.extract(f"^{_CLOCK.pattern}$").astype(float)
    seconds = 3600.0 * parts[0] + 60.0 * parts[1] + parts[2].fillna(0.0)
    return pd.to_timedelta(seconds, unit="s")


def _century(years: AnyArray) -> int:
    """Return from where on years are to be a hundred years earlier.

    The widest gap between years is then outside of all.
    """
    years = np.unique(years)
    gaps = np.diff(years, append=years[0] + 100)
    if gaps[-1] == gaps.max():
        return 10_000
    return int(years[gaps.argmax() + 1])


def _digits(column: pd.Series) -> pd.Series:
    """Return numbers as text."""
    return column.map(lambda number: f"{number:.9g}", na_action="ignore")


def _are_digits(texts: pd.Series) -> bool:
    """Return whether all texts are dates such as 20240131, and enough of them differ to tell."""
    if not texts.str.fullmatch(r"(1[6-9]|20)\d{6}").all() or texts.nunique() < FEWEST_DATES:
        return False
    return bool(pd.to_datetime(texts, format=_DIGITS, errors="coerce").notna().all())


def _styles(texts: pd.Series, dates: bool) -> tuple[str, ...]:
    """Return how dates, times or durations are written, if nearly all texts are; else ("",).

    Dates may be written in several ways, the most frequent of which comes first.
    """
    style = _style(texts, dates)
    if not dates or (style and ("%" not in style or _share_read(texts, style) == 1.0)):
        return (style,)
    several = date_styles(texts)
    return several or (style,)


def _style(texts: pd.Series, dates: bool) -> str:
    """Return how dates, times or durations are written, if nearly all texts are; else ""."""
    spans = {"clock": _CLOCK.pattern, "span": r"-?\d+ days?( [-+]?\d\d:\d\d:\d\d(\.\d+)?)?"}
    for style, pattern in spans.items():
        fits = texts.str.fullmatch(pattern)
        if fits.mean() >= NEARLY and not texts[~fits].str.fullmatch(_RATIO.pattern).any():
            return style
    if not dates:
        return ""
    if _are_digits(texts):
        return _DIGITS
    return _date_style(texts)


def _date_style(texts: pd.Series) -> str:
    """Return the format of dates by which most texts are read, if nearly all are; else ""."""
    first = texts.drop_duplicates().head(9)
    zone = first.str.extract(_ZONE.pattern)[0].fillna("").mode()[0]
    marks = set(first.map(_marks))
    best = ""
    best_share = 0.0
    for moment in _FORMATS:
        style = f"{moment}{zone}"
        if _marks(style) in marks and _share_read(first, style) > 0.0:
            share = _share_read(texts, style)
            if share > best_share:  # of equal ones the first
                best = style
                best_share = share
    if best_share >= NEARLY:
        return best
    return ""


def date_styles(texts: pd.Series) -> tuple[str, ...]:
    """Return the formats of dates that are written in several ways; () if nearly all are not.

    Texts of one shape, such as 09.01.2024, are dates of one format. Where days and months could
    change places, the order of the other shapes counts.
    """
    levels = texts.drop_duplicates()
    shapes = levels.map(_shape)
    frequent = shapes.value_counts()
    if len(frequent) > 4 * MOST_STYLES or "4" not in "".join(frequent.index[:1]):
        return ()
    counts = texts.map(_shape).value_counts()
    rows_by_style: dict[str, list[str]] = {}
    for shape in counts.index[:MOST_STYLES]:
        styles = _styles_of_shape(levels[shapes == shape])
        if styles:
            rows_by_style[shape] = styles
    n_read = int(counts[list(rows_by_style)].sum())
    if n_read < NEARLY * len(texts) or not n_read:
        return ()
    certain = {_order(styles[0]) for styles in rows_by_style.values() if len(styles) == 1} - {""}
    chosen = [
        next((style for style in styles if _order(style) in certain), styles[0])
        for styles in rows_by_style.values()
    ]
    if len(certain) > 1:  # days first in some cells and months first in others: nobody can tell
        return ()
    return tuple(dict.fromkeys(chosen))


def _styles_of_shape(texts: pd.Series) -> list[str]:
    """Return the formats by which all texts of a shape are dates."""
    first = texts.iloc[0]
    fitting = []
    for style in _FORMATS:
        fits = _marks(style) == _marks(first) and _share_read(texts.head(1), style) == 1.0
        if fits and _share_read(texts, style) == 1.0:
            fitting.append(style)
    return fitting


def _shape(text: str) -> str:
    """Return a text with its words and numbers alike; a number of four digits may be a year."""
    text = re.sub(r"[^\W\d_]+", "w", text)
    return re.sub(r"\d+", lambda digits: "4" if len(digits[0]) == 4 else "n", text)


def _order(style: str) -> str:
    """Return whether numbers of days or of months come first, of dates that end with the year."""
    if "%m" in style and "%d" in style:
        return {"%d": "day", "%m": "month"}.get(style[:2], "")
    return ""


def about_formats(name: object, texts: pd.Series, dates: pd.Series) -> str:
    """Return how dates that are written in several ways were read, with one of each."""
    known = dates[texts.index].dropna()
    shapes = texts[known.index].map(_shape)
    first = shapes.drop_duplicates().index[:MOST_STYLES]
    read = ", ".join(f"{texts[row]!r} as {known[row].date()}" for row in first)
    return f"{name!r} has dates in several formats: {read}."


def read_dates(cells: pd.Series, styles: tuple[str, ...]) -> pd.Series:
    """Return dates as such, and texts in any of several formats, as dates; others are missing."""
    is_text = cells.map(type).eq(str)
    as_such = cells.where(~is_text, None)
    dates = pd.to_datetime(as_such, errors="coerce").astype("datetime64[us]")
    texts = cells.where(is_text, None).astype("string").str.strip()
    for style in styles:
        rest = dates.isna() & is_text
        if rest.any():
            read = pd.to_datetime(texts[rest], format=style, errors="coerce")
            dates = dates.mask(rest, read.astype("datetime64[us]").reindex(dates.index))
    return dates


def _share_read(texts: pd.Series, style: str) -> float:
    """Return the share of texts that are dates in a format; none if they look like codes."""
    dates = pd.to_datetime(texts, format=style, errors="coerce")
    if "%d" not in style and "%Y" in style:
        usual = dates.dt.year.between(*_YEARS)
        if 2 * usual.sum() < dates.notna().sum():
            return 0.0
    return float(dates.notna().mean())


@lru_cache(maxsize=10_000)
def _marks(text: str) -> str:
    """Return what stands between the words and numbers of a text, or of a style."""
    return re.sub(r"\s+", " ", re.sub(r"%.|\w", "", text)).strip()


def _step(moments: pd.Series) -> str:
    """Return the coarsest unit whose multiples all dates, in their zone, or durations are."""
    if moments.dtype.kind == "m":
        seconds = moments.dt.total_seconds()
        for step, size in _SECONDS.items():
            steps = seconds / size
            if np.allclose(steps, steps.round(), rtol=0.0):
                return step
        return "us"
    dates = moments.dt.tz_localize(None).to_numpy("datetime64[us]")
    units = [*_SECONDS]
    if len(np.unique(dates)) >= 5:
        units = ["Y", "M", *_SECONDS]
    return next(unit for unit in units if (dates.astype(f"datetime64[{unit}]") == dates).all())
