"""Numbers written as text: decimal signs, units, limits, words for a missing cell, notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transduce.app.tables import amounts
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.words import counted, option, quoted

# Words for a missing cell: in any column; among numbers, where "none" and "?" are no answers; and those that may be.
IN_TEXT = frozenset(("", "na", "n/a", "#n/a", "nan", "<na>", "null"))
MISSING = IN_TEXT | {"#na", "n.a.", "-nan", "none", "nat", "?", "#n/a n/a"}
HOLES = MISSING | {
    "-",
    "--",
    "---",
    "–",
    "—",
    ".",
    "..",
    "...",
    "…",
    "*",
    "#",
    "unknown",
    "missing",
    "blank",
}
HOLES |= {
    "empty",
    "undefined",
    "not available",
    "not known",
    "not determined",
    "no data",
    "n.d.",
    "n.d",
}
HOLES |= {"nd", "n/d", "tbd", "k.a.", "#ref!", "#value!", "#div/0!", "#num!", "#name?", "#null!"}
_NOTHING = frozenset(
    ("", "NA", "N/A", "NaN", "nan", "null", "None")
)  # as most programs write a missing cell
_CODE = re.compile(r"\n\s*[-+]?0\d")  # such as 007
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_PLAIN_CELL = {"point": f"^({_PLAIN.pattern})$", "comma": r"^[-+]?(\d+,?\d*|,\d+)$"}
_GROUP = {"point": r"[ ,'\u00a0\u202f]", "comma": r"[ .'\u00a0\u202f]"}
_SIGN = {"point": r"\.", "comma": ","}
_SIGNS = {
    "point": ("point", "comma"),
    "comma": ("comma", "point"),
}  # in the order in which they are tried
_NUMBER = {
    decimal: re.compile(
        rf"[-+]?(([0-9]+|[1-9][0-9]{{0,2}}({group}[0-9]{{3}})+)?({_SIGN[decimal]}[0-9]*)?"
        rf"|([0-9]+{_SIGN[decimal]}?[0-9]*|{_SIGN[decimal]}[0-9]+)[eE][-+]?[0-9]+)"
    )
    for decimal, group in _GROUP.items()
}
_LIKE_NUMBER = re.compile(r"[-+]?[\d.,][\d.,' \u00a0\u202feE+\-]*")
_ABOUT = re.compile(
    r"(?i)(ca\.?|circa|about|approx\.?|approximately|around|roughly|etwa|rund|env\.?|environ|[~≈])\s*(?=[-+€$£]?\s?\d)"
)
_MEANT = re.compile(r"[^\W\d]|[%‰°€$£¥₹]")  # in units, not in marks such as * and ²
_SENTINEL = re.compile(
    r"-?(9{2,}|8{3,}|7{3,})|-9|-?32767|-32768|-?2147483647|-2147483648|-?1e\+?30"
)
NEARLY = 0.8  # with this share of numbers among cells that are not empty, a column holds numbers
LIMIT = re.compile(r"(?P<sign><=|>=|=<|=>|[<>≤≥])\s*(?P<rest>.*\d.*)")
_MARK = re.compile(
    r"(?P<number>.*?[\d.,%])\s*([*†‡§¶#°ªº¹²³⁴-⁹]+|\^\w{1,2}|\[\w{1,3}\]|(±|\+/?-)\s*[\d.,]+)"
)
_NAMED, _GONE = "names, with a feature that says so", "taken as missing, since"
_LIMITS = (
    f"cell was read as the limit that it {_NAMED}",
    f"cells were read as the limit that each {_NAMED}",
)
_MOST_NAMED = 5
MOST_ALIKE = 3  # groups of spellings that are named in a note
_FAR, _MOST_FAR = 1000.0, 3


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """A column of texts read as numbers, cell by cell."""

    values: Array  # (n,) the numbers; NaN where a cell is missing or not a number
    side: AnyArray  # (n,) -1 where a cell says that the number is below its value, 1 above, 0 elsewhere
    unit: str = ""  # what is written beside all of them
    decimal: str = "point"  # or "comma"
    mended: list[int] = field(
        default_factory=list
    )  # rows whose cell is a number with a mark, or in brackets
    unread: list[int] = field(default_factory=list)  # rows whose cell is not a number
    n_present: int = 0  # cells that are not holes
    minus_behind: bool = True  # whether "5-" is a negative number

    @property
    def nearly_all(self) -> bool:
        """Whether the column holds numbers, except for a few cells."""
        n_read = int(np.isfinite(self.values).sum())
        return n_read >= 2 and n_read >= NEARLY * self.n_present


def is_missing(texts: AnyArray) -> AnyArray:
    """Return where texts are missing: None, NaN, or what tables write for it ("", NA, n/a, NaN, null, None, ?)."""
    gone = [not isinstance(text, str) or text.strip().lower() in MISSING for text in texts]
    return np.array(gone, dtype=bool)


def find_numbers(texts: Sequence[str | None] | AnyArray, prefer: str = "point") -> ParsedNumbers:
    """Return the cells that are just numbers, under the one reading (decimal sign, unit) by which most of them are."""
    cells = np.asarray(pd.Series(texts, dtype=object), dtype=object)
    missing = is_missing(cells)
    present = [text.strip() for text in cells[~missing]]
    found = ParsedNumbers(np.full(len(cells), np.nan), np.zeros(len(cells), dtype=int))
    if all(map(_PLAIN.fullmatch, present)):
        found.values[~missing] = [float(text) for text in present]
        return found
    codes, levels = pd.factorize(np.array(present, dtype=object))  # each text is read once
    found_amounts = [amounts.amount_in(text) for text in levels]
    units = np.array([amounts.unit_of(amount) for amount in found_amounts], dtype=object)
    unit = _prevailing_unit(units[codes])
    every = [amount["number"].strip() if amount else "" for amount in found_amounts]
    readings = {
        sign: np.array([_read(number, sign) for number in every]) for sign in _SIGNS[prefer]
    }
    # Where those of the unit leave the sign open, as "1.500 €" does, all others decide, as "900,50 EUR".
    good = {sign: np.isfinite(values)[codes] for sign, values in readings.items()}
    ours = (units == unit)[codes]
    best = max(good, key=lambda sign: ((good[sign] & ours).sum(), good[sign].sum()))
    values = np.array([number_of(text, best, unit) for text in levels])
    found.values[~missing] = np.where(np.isfinite(values), values, np.nan)[
        codes
    ]  # 1e400 is not a number
    return replace(found, decimal=best, unit=unit)


def _prevailing_unit(units: AnyArray) -> str:
    """Return the most frequent unit of cells (n,), "" for none; thousands only where no cell is without them."""
    known = pd.Series(units).dropna()
    usual = known.mode()
    unit = str(usual.iloc[0]) if len(usual) else ""
    if amounts.is_scale(unit) and (known != unit).any():
        others = known[~known.map(amounts.is_scale)].mode()
        return str(others.iloc[0]) if len(others) else ""
    return unit


def number_of(text: str, decimal: str, unit: str = "") -> float:
    """Return the number that a text is under one reading and with one unit, NaN if it is not one."""
    words = text.strip()
    if not unit and _PLAIN.fullmatch(words) and (decimal == "point" or "." not in words):
        return float(words)
    if len(words) > amounts.LONGEST:
        return np.nan
    signed = words
    if not (words.isascii() and words[:1].isdigit()):
        signed = amounts.with_plain_signs(words)
    amount = amounts.AMOUNT.fullmatch(signed)
    if amount is None or amounts.unit_of(amount) != unit:
        return np.nan
    return _read(amount["number"].strip(), decimal)


def _read(number: str, decimal: str) -> float:
    """Return a number under one reading, NaN if it is not one."""
    if not _NUMBER[decimal].fullmatch(number) or not any(map(str.isdigit, number)):
        return np.nan
    return float(re.sub(_GROUP[decimal], "", number).replace(",", "."))


def number_text(value: float, decimal: str = "point") -> str:
    """Return a number as text: as short as it can be read back from, "" if it is missing."""
    if np.isnan(value):
        return ""
    text = str(int(value)) if abs(value) < 1e16 and value == int(value) else repr(float(value))
    return text.replace(".", ",") if decimal == "comma" else text


def number_texts(values: Array, decimal: str = "point") -> Any:
    """Return numbers (n,) as an Arrow array of such texts."""
    size = np.abs(values)
    usual = (size == 0.0) | (
        (size >= 1e-4) & (size < 1e10)
    )  # of others Arrow writes another exponent
    texts = pa.array(np.where(usual, values + 0.0, 0.0)).cast(pa.string())
    texts = pc.replace_with_mask(
        texts, ~usual, pa.array(map(number_text, values[~usual]), pa.string())
    )
    return pc.replace_substring(texts, ".", ",") if decimal == "comma" else texts


def plain_numbers(texts: AnyArray) -> pd.Series | None:
    """Return texts (n,) of plain numbers or nothing as `typed` does, but quickly; None if others are there."""
    gone = np.array([text in _NOTHING for text in texts.tolist()], dtype=bool)
    present, values = texts[~gone], np.full(len(texts), np.nan)
    lines = "\n".join(["", *present])
    if not len(present) or _CODE.search(lines):
        return None
    try:
        values[~gone] = pc.ascii_trim_whitespace(pa.array(present, pa.string())).cast(pa.float64())
    except ValueError:
        return None
    if not np.isfinite(values[~gone]).all():
        return None
    whole = not gone.any() and not re.search(r"[.eE]|\d{19}", lines)
    return pd.Series(present.astype(np.int64) if whole else values)


def typed(texts: AnyArray, prefer: str = "point") -> tuple[pd.Series, str]:
    """Return texts (n,) as whole numbers, numbers or text, missing where they say so, and their decimal sign."""
    missing = is_missing(texts)
    present = [text.strip() for text in texts[~missing]]
    empty = [text.strip().lower() in IN_TEXT for text in texts] if present else missing
    text = pd.Series(texts, dtype=object).mask(np.array(empty, dtype=bool), None)
    codes = any(re.match(r"[-+]?0\d", word) for word in present)
    # A few often show that a column does not hold numbers.
    if not present or codes or not all(map(_LIKE_NUMBER.fullmatch, present[:50])):
        return text, "point"
    found = find_numbers(texts, prefer)
    if found.unit or np.isnan(found.values[~missing]).any():
        return text, "point"
    if not missing.any() and all(re.fullmatch(r"[-+]?\d{1,18}", word) for word in present):
        return pd.Series([int(word) for word in present], dtype="int64"), "point"
    return pd.Series(found.values), found.decimal


def read_numbers(
    texts: Sequence[str | None] | AnyArray, prefer: str = "point", *, anywhere: bool = False
) -> ParsedNumbers:
    """Return the numbers in texts, also limits, about, or with marks; with `anywhere` the one among any words."""
    cells = np.asarray(pd.Series(texts, dtype=object), dtype=object)
    found = find_numbers(cells, prefer)
    rest = np.flatnonzero(~np.isfinite(found.values))
    odd = rest[~is_missing(cells[rest])]
    if not found.unit and len(odd) > (1.0 - NEARLY) * (len(cells) - len(rest) + len(odd)):
        # As where many say "3 rooms", others 3; a single "3 kg" may say that others are not.
        units = units_in(cells[odd])
        one_unit = len(units) == 1 and not amounts.is_scale(units[0])
        found = replace(found, unit=units[0] if one_unit else "")
    if not anywhere and len(odd) and _holds_enumeration(cells):
        found.values[:] = np.nan
        known = np.flatnonzero(~is_missing(cells)).tolist()
        return replace(found, unit="", unread=known, n_present=len(known))
    if any(amounts.PLUS_BEHIND.fullmatch(text.strip()) for text in cells[odd]):  # as grades have
        found = replace(found, minus_behind=False)
    values, side = read_cells(
        pd.Series(cells[odd], dtype=object),
        found.decimal,
        found.unit,
        anywhere,
        minus_behind=found.minus_behind,
    )
    found.values[odd], found.side[odd] = values, side
    mended, unread = odd[~np.isnan(values) & (side == 0)].tolist(), odd[np.isnan(values)].tolist()
    n_holes = sum(
        not isinstance(cell, str) or cell.strip().lower() in HOLES for cell in cells[rest]
    )
    return replace(found, mended=mended, unread=unread, n_present=len(cells) - n_holes)


def _holds_enumeration(cells: AnyArray) -> bool:
    """Return whether cells (n,) number their words, as in "1 White" and "2 Black", so that they are categories."""
    levels = dict.fromkeys(text for text in cells if isinstance(text, str))
    words = [
        amounts.with_plain_signs(text)
        for text in levels
        if len(text) <= amounts.LONGEST and text.strip().lower() not in HOLES
    ]
    found = [amounts.AMOUNT.fullmatch(text) for text in words]
    numbered = [amount for amount in found if amount is not None]
    return amounts.is_enumerated(
        [amount["number"].strip() for amount in numbered],
        [amounts.one_spelling(amount) for amount in numbered],
        others=len(numbered) < len(found),
    )


def all_numbers(column: pd.Series) -> Array | None:
    """Return the cells (n,) of a column as numbers, NaN where one is empty; None if a cell is not just a number."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    known = column.dropna()
    if pd.api.types.infer_dtype(known) not in ("string", "mixed", "mixed-integer", "empty"):
        return None
    texts = [
        None if empty else str(cell) for cell, empty in zip(column, column.isna(), strict=True)
    ]
    found = read_numbers(texts)
    return None if found.unread or found.side.any() else found.values


def units_in(texts: Iterable[Any]) -> list[str]:
    """Return the units of numbers in texts, each in its most frequent spelling, the most frequent first."""
    spelled: dict[str, Counter[str]] = {}
    for text, count in Counter(text for text in texts if isinstance(text, str)).items():
        signed = amounts.with_minus_before(amounts.with_plain_signs(text))
        amount = amounts.AMOUNT.fullmatch(_ABOUT.sub("", signed))
        if amount is None:
            continue
        unit = amounts.one_spelling(amount)
        if unit and _MEANT.search(unit):
            spelled.setdefault(unit, Counter())[(amount["before"] + amount["after"]).strip()] += (
                count
            )
    ordered = sorted(spelled, key=lambda unit: (-spelled[unit].total(), unit))
    return [min(spelled[unit], key=lambda one: (-spelled[unit][one], one)) for unit in ordered]


def text_levels(series: pd.Series) -> tuple[AnyArray, AnyArray]:
    """Return cells as the numbers of texts, and the texts, of which the last is missing: each is looked at once."""
    if pd.api.types.infer_dtype(series, skipna=True) == "string":
        codes, found = pd.factorize(series)
    else:  # of other types, equal cells such as 1 and True may differ as texts
        codes, found = np.where(series.isna(), -1, np.arange(len(series))), series.astype(object)
    pairs = zip(np.asarray(found, dtype=object), pd.isna(found), strict=True)
    texts = [None if gone else as_label(str(cell)) for cell, gone in pairs]
    levels = np.array([*texts, None], dtype=object)
    levels[is_missing(levels)] = None
    return np.asarray(codes), levels


def read_cells(
    column: pd.Series,
    decimal: str,
    unit: str,
    anywhere: bool = False,
    *,
    minus_behind: bool = True,
) -> tuple[Array, AnyArray]:
    """Return the numbers in cells under a given reading, NaN for the rest, and on which side of each the truth is."""
    values, side = np.full(len(column), np.nan), np.zeros(len(column), dtype=int)
    others = np.ones(len(column), dtype=bool)
    if not unit and pd.api.types.is_string_dtype(column):  # then most cells are plain numbers
        cells = pc.utf8_trim_whitespace(pa.array(column, pa.large_string(), from_pandas=True))
        plain = pc.match_substring_regex(cells, _PLAIN_CELL[decimal])
        values = np.array(
            pc.replace_substring(pc.if_else(plain, cells, None), ",", ".").cast(pa.float64())
        )
        others = ~np.array(pc.fill_null(plain, True)) | np.isinf(values)
    codes, levels = text_levels(column[others])
    style = _Style(decimal, unit, anywhere, minus_behind)
    read = [(np.nan, 0) if text is None else _mended(text, style) for text in levels]
    values[others], side[others] = np.array(read).T[:, codes]
    return values, side


class _Style(NamedTuple):
    """How the numbers of a column are written."""

    decimal: str
    unit: str
    anywhere: bool  # whether the one number among any words counts
    minus_behind: bool  # whether "5-" is a negative number


def _mended(text: str, style: _Style) -> tuple[float, int]:
    """Return the number in a cell that is not just one, and on which side of it the truth is; NaN if there is none."""
    if len(text) > amounts.LONGEST and not style.anywhere:
        return np.nan, 0
    text = amounts.with_plain_signs(text)
    limit = LIMIT.fullmatch(text)
    if limit is None:
        return _number_in(text, style), 0
    value, side = _mended(limit["rest"], style)
    if side:
        return np.nan, 0
    return value, 1 if limit["sign"] in (">", ">=", "=>", "≥") else -1


def _number_in(text: str, style: _Style) -> float:
    """Return the number in a cell with plain signs, without what marks it; NaN if there is none."""
    words = [text, _ABOUT.sub("", text, count=1)]
    words += [marked["number"] for marked in map(_MARK.fullmatch, words) if marked]
    words = [amounts.with_minus_before(word, style.minus_behind) for word in words]
    words += [marked["number"] for marked in map(_MARK.fullmatch, words) if marked]
    # A number without the unit counts, and is noted; beside thousands it would be another number.
    units = [style.unit] if amounts.is_scale(style.unit) else [style.unit, ""]
    amount = amounts.AMOUNT.fullmatch(words[1])
    usual = amounts.AMOUNT.fullmatch(f"1 {style.unit}")
    if style.unit and amount and amounts.one_spelling(amount) == amounts.one_spelling(usual):
        words.append(amount["number"].strip())
    value = _first_number(words, style.decimal, units)
    if np.isnan(value) and not amounts.is_scale(style.unit):
        value = _in_ones(amounts.scaled(words[1]), style.decimal, style.unit)
    if np.isnan(value) and style.anywhere:
        value = _in_ones(amounts.number_among_words(words[0]), style.decimal, "")
    return value


def _first_number(words: list[str], decimal: str, units: list[str]) -> float:
    """Return the first number that one of some texts is, with either decimal sign and one of the units."""
    readings = (
        number_of(word, sign, unit)
        for word in words
        for sign in _SIGNS[decimal]
        for unit in dict.fromkeys(units)
    )
    return next((value for value in readings if np.isfinite(value)), np.nan)


def _in_ones(number: amounts.Scaled | None, decimal: str, unit: str) -> float:
    """Return a number of thousands, or millions, as so many ones; NaN if it is not known what it counts."""
    if number is None:
        return np.nan
    value = _first_number([number.text], decimal, [unit]) * number.factor
    return float(f"{value:.15g}")  # 5.87 times 1000 is 5870, and not a little more


def in_order(values: Array) -> Array:
    """Return the finite numbers among values (n,) in ascending order."""
    return np.sort(values[np.isfinite(values)])


def may_be_sentinel(value: float) -> bool:
    """Return whether a number looks like one that stands for a missing number, such as -999."""
    return _SENTINEL.fullmatch(f"{value:.12g}") is not None


def sentinels(ordered: Array, gap: float = 1.0, keep: Collection[Any] = ()) -> dict[float, int]:
    """Return numbers such as -999 or 9999 that lie far from all others, and how often they occur.

    Those in `keep` are numbers, as somebody said.
    """
    levels = np.concatenate([ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]])
    ends = (*range(min(3, len(levels))), *range(max(len(levels) - 3, 3), len(levels)))
    suspects = [j for j in ends if _SENTINEL.fullmatch(f"{levels[j]:.12g}")]
    if not suspects or len(others := np.delete(levels, suspects)) < 3:
        return {}
    spread = max(float(others[-1] - others[0]), 1e-3 * float(np.abs(others).max()))
    marks = levels[suspects]  # beyond all others by more than a gap, or the only negative ones
    nearest = np.minimum(abs(marks - others[0]), abs(marks - others[-1]))
    far = (nearest > gap * spread) | ((marks <= -99.0) & (others[0] >= 0.0))
    far &= (marks < others[0]) | (marks > others[-1])
    kept = [number_of(str(one), "point") for one in keep]
    return {
        float(mark): int(np.count_nonzero(ordered == mark))
        for mark in marks[far]
        if mark not in kept
    }


def as_label(label: Any) -> Any:
    """Return a label without blanks around it."""
    return label.strip() if isinstance(label, str) else label


def spelling_key(text: str) -> str:
    """Return what texts have in common that differ in capitals, or in the number of their blanks, only."""
    return " ".join(text.split()).casefold()


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each key the text that is written most often, of equally frequent ones the first in `counts`."""
    usual: dict[str, str] = {}
    for text, count in counts.items():
        key = spelling_key(text)
        if key not in usual or count > counts[usual[key]]:
            usual[key] = text
    return usual


def spelling_note(name: Any, what: str, counts: Mapping[str, int]) -> list[str]:
    """Return a note on classes, or categories, that were taken as the same though they are spelled differently."""
    groups: dict[str, list[str]] = {}
    for text in counts:
        groups.setdefault(spelling_key(text), []).append(text)
    several = [texts for texts in groups.values() if len(texts) > 1]
    if not several:
        return []
    blanks = any(len({text.casefold() for text in texts}) > 1 for texts in several)
    how = "blanks or capitals" if blanks else "capitals"
    named = [
        "; ".join(f"{quoted(text, 60)} ({counts[text]:,})" for text in texts)
        for texts in several[:MOST_ALIKE]
    ]
    more = f", and {len(several) - MOST_ALIKE:,} more" if len(several) > MOST_ALIKE else ""
    apart = option("case_sensitive", True)
    return [
        f"{what} of {name!r} that differ in {how} only were taken as the same: "
        f"{', '.join(named)}{more}. Use {apart} to keep them apart."
    ]


def hole_words(texts: Iterable[Any], known: Collection[str] = HOLES) -> dict[Any, int]:
    """Return the words that often stand for an empty cell, and how often each occurs."""
    words = [text.strip() for text in texts if isinstance(text, str)]
    return dict(Counter(word for word in words if word and word.lower() in known))


def without(frame: pd.DataFrame, words: Sequence[Any]) -> pd.DataFrame:
    """Return a table of plain types in which the cells that hold one of these values are empty."""
    texts = {str(word).strip().lower() for word in words}
    numbers = [
        value for value in (number_of(text, "point") for text in texts) if np.isfinite(value)
    ]

    def is_one(cell: Any) -> bool:
        if isinstance(cell, str):
            word = cell.strip().lower()
            return word in texts or bool(numbers and number_of(word, "point") in numbers)
        return isinstance(cell, int | float) and not isinstance(cell, bool) and cell in numbers

    def emptied(column: pd.Series) -> pd.Series:
        lists = isinstance(column.dtype, pd.ArrowDtype) and column.dtype.kind == "O"
        if not words or lists:
            return column
        plain = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        empty = column.isin(numbers) if plain else column.astype(object).map(is_one).astype(bool)
        return column.mask(empty) if empty.any() else column

    changed: dict[int, pd.Series] = {}
    for j, kind in enumerate(frame.dtypes):
        if (
            words or kind == "object" or not isinstance(kind, np.dtype)
        ):  # a column takes its time in wide tables
            column = frame.iloc[:, j]
            new = emptied(_plain(column))
            changed |= {} if new is column else {j: new}
    if not changed:
        return frame
    columns = [changed[j] if j in changed else frame.iloc[:, j] for j in range(frame.shape[1])]
    return pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)


def _plain(column: pd.Series) -> pd.Series:
    """Return Arrow's dates, times and durations as those of pandas, decimals as floats, periods and so on as text."""
    kind, odd = column.dtype, pd.PeriodDtype | pd.IntervalDtype
    if kind == "object":
        return (
            column.astype(float)
            if pd.api.types.infer_dtype(column, skipna=True) == "decimal"
            else column
        )
    if isinstance(kind, pd.ArrowDtype) and pa.types.is_temporal(kind.pyarrow_dtype):
        return column.array.__arrow_array__().to_pandas().set_axis(column.index)
    if isinstance(kind, pd.CategoricalDtype) and isinstance(kind.categories.dtype, odd):
        return column.cat.rename_categories(kind.categories.astype(str))
    return (
        column.astype(str).astype(object).mask(column.isna(), None)
        if isinstance(kind, odd)
        else column
    )


def named_cells(cells: Iterable[tuple[str, int]]) -> str:
    """Return cells with the rows that they are in, counted from 1."""
    rows: dict[str, list[int]] = {}
    for text, row in cells:
        rows.setdefault(text, []).append(row + 1)
    said = [f"{quoted(text)} ({_rows(where)})" for text, where in list(rows.items())[:_MOST_NAMED]]
    others = counted(len(rows) - _MOST_NAMED, "other")
    return ", ".join(said) + (f", and {others}" if len(rows) > _MOST_NAMED else "")


def _rows(where: list[int]) -> str:
    some = [f"{row:,}" for row in sorted(where)[:_MOST_NAMED]]
    if len(where) > _MOST_NAMED:
        return f"rows {', '.join(some)} and {len(where) - _MOST_NAMED:,} more"
    return f"row {some[0]}" if len(some) == 1 else f"rows {', '.join(some[:-1])} and {some[-1]}"


def cell_notes(
    name: Any,
    texts: AnyArray,
    found: ParsedNumbers,
    rows: AnyArray,
    limits: tuple[str, str] = _LIMITS,
) -> list[str]:
    """Return what the user should know of cells that were read as numbers. Shapes: texts (n,), rows (n,)."""
    ways = amounts.unusual_spellings([texts[place] for place in found.mended])
    read = "read as the number in {}" + (f" ({', '.join(ways)})" if ways else "")
    kinds = (
        (np.flatnonzero(found.side).tolist(), *limits),
        (found.mended, f"cell was {read.format('it')}", f"cells were {read.format('each')}"),
        (
            found.unread,
            f"cell was {_GONE} it is not a number",
            f"cells were {_GONE} they are not numbers",
        ),
    )
    notes = []
    for places, one, many in kinds:
        where = sorted(places, key=lambda place: rows[place])
        cells = named_cells((texts[place].strip(), int(rows[place])) for place in where)
        notes += [f"{name!r}: {counted(len(places), one, many)}: {cells}."] if places else []
    return notes


def value_notes(name: Any, values: Array, marks: dict[float, int], rows: AnyArray) -> list[str]:
    """Return notes on values (n,) that look like marks of missing cells, or lie far from the rest; in rows (n,)."""
    if not marks:
        return far_note(name, values, rows)
    others = np.where(np.isin(values, list(marks)), np.nan, values)
    words = ", ".join(f"{value:.12g} ({counted(count, 'cell')})" for value, count in marks.items())
    listed = [plain(value) for value in marks]
    note = (
        f"{name!r} holds {words}, far from all its other values: taken as missing. "
        f"Say so with {option('missing', listed)}, or that it is a number with "
        f"{option('keep', listed)}."
    )
    return [note, *far_note(name, others, rows)]


def plain(value: float) -> float:
    """Return a number that is whole as an integer."""
    return int(value) if value == int(value) else value


def median(values: Array) -> float:
    """Return the median of finite numbers (n,), without numpy's checks, which take longer than short columns."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    low, high = np.partition(values, (half - 1, half))[half - 1 : half + 1]
    return (float(low) + float(high)) / 2.0


def n_far(ordered: Array) -> int:
    """Return how many of ordered numbers, up to three, are a thousand times as far from the median as all others."""
    n, some = len(ordered), _MOST_FAR + 1
    if n < some:
        return 0
    ends = ordered if n < 2 * some else np.concatenate([ordered[:some], ordered[-some:]])
    size = float(np.abs(ends).max()) or 1.0  # nothing is too large then
    middle = median(ordered[(n - 1) // 2 : n // 2 + 1] / size)
    sizes = np.sort(np.abs(ends / size - middle))[::-1]
    return max(
        (k for k in range(1, some) if sizes[k] > 0.0 and sizes[k - 1] > _FAR * sizes[k]), default=0
    )


def far_note(name: Any, values: Array, rows: AnyArray) -> list[str]:
    """Return a note on up to three values (n,) a thousand times as far from the median as all others; in rows (n,)."""
    known, count = np.flatnonzero(np.isfinite(values)), n_far(in_order(values))
    if not count:
        return []
    scaled = values[known] / np.abs(values[known]).max()
    places = known[np.argsort(-np.abs(scaled - median(scaled)), kind="stable")[:count]]
    cells = named_cells((f"{values[place]:.12g}", int(rows[place])) for place in places)
    one, many = "number is far from all others and was", "numbers are far from all others and were"
    taken = counted(len(places), f"{one} taken as it is", f"{many} taken as they are")
    return [f"{name!r}: {taken}: {cells}."]


def holds_code(texts: pd.Series) -> bool:
    """Return whether digits are codes rather than numbers: very long, or with leading zeros at one length or often."""
    words = texts.str.strip().str.replace(r"^'(?=\d)", "", regex=True)  # which marks text
    if words.str.fullmatch(r"\d{17,}").mean() > 0.5:  # no number has so many digits
        return True
    zero: Mask = words.str.match(r"[-+]?0\d").to_numpy(dtype=bool)
    if not zero.any():
        return False
    digits = words[words.str.fullmatch(r"\d+")]
    return bool(
        zero.mean() > 1.0 - NEARLY
        or (len(digits) == len(words) and digits.str.len().nunique() == 1)
    )
