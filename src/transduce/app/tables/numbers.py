"""Numbers written as text: decimal signs, units, limits, words for a missing cell, notes."""

from __future__ import annotations

import html
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
from transduce.app.tables.row_names import MOST_NAMED, current_row_names
from transduce.app.tables.whole_numbers import holds_equal_numbers
from transduce.core.types import AnyArray, Array, ColumnName, Mask
from transduce.core.words import counted, option, quoted

# Words for a missing cell: in any column; among numbers, where "none" and "?" are no answers;
# and those that may be.
IN_TEXT = frozenset(("", "na", "n/a", "#n/a", "nan", "<na>", "null", r"\n"))  # \N: of databases
MISSING = IN_TEXT | {"#na", "n.a.", "-nan", "none", "nat", "?", "#n/a n/a"}
HOLES = MISSING | {
    *("-", "--", "---", "–", "—", ".", "..", "...", "…", "*", "#"),
    *("unknown", "missing", "blank", "empty", "undefined", "no data", "not recorded"),
    *("not available", "not known", "not determined", "not done", "not tested", "not reported"),
    *("n.d.", "n.d", "nd", "n/d", "tbd", "nil", "pending"),
    *("(null)", "(blank)", "(empty)", "(missing)", "(none)", "[null]", "(leer)"),
    *("k.a.", "k. a.", "n.b.", "n. b.", "n.v.", "n. v.", "unbekannt", "fehlt", "keine angabe"),
    *("nicht bestimmt", "nicht erhoben", "entfällt", "manquant", "non renseigné", "inconnu"),
    *("non disponible", "desconocido", "sin dato", "sin datos", "sconosciuto", "onbekend"),
    *("brak danych", "н/д", "нет данных", "不明", "未知"),
    *("#ref!", "#value!", "#div/0!", "#num!", "#name?", "#null!"),
    *("#nv", "#wert!", "#bezug!", "#zahl!", "#nul!", "#valeur!"),
    *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),  # of Stata and SAS
}
# As most programs write a missing cell.
_NOTHING = frozenset(("", "NA", "N/A", "NaN", "nan", "null", "None"))
_CODE = re.compile(r"\n\s*[-+]?0\d")  # such as 007
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_PLAIN_CELL = {"point": f"^({_PLAIN.pattern})$", "comma": r"^[-+]?(\d+,?\d*|,\d+)$"}
_GROUP = {"point": r"[ ,'\u00a0\u202f]", "comma": r"[ .'\u00a0\u202f]"}
_SIGN = {"point": r"\.", "comma": ","}
# In the order in which they are tried. Where nothing says what the sign of a table is, it may be
# either: of texts such as "2.162" alone it is the point, of others in doubt the comma.
_SIGNS = {"point": ("point", "comma"), "comma": ("comma", "point"), "either": ("comma", "point")}
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+|[-+]?\d+")
_LAKHS = {"point": r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}", "comma": "(?!)"}  # as in India
_NUMBER = {
    decimal: re.compile(
        # One number has one sign between its groups: 9 576,219 is no number of nine millions.
        rf"[-+]?(([0-9]+|[1-9][0-9]{{0,2}}({group})[0-9]{{3}}(\3[0-9]{{3}})*|{_LAKHS[decimal]})?"
        rf"({_SIGN[decimal]}[0-9]*)?"
        rf"|([0-9]+{_SIGN[decimal]}?[0-9]*|{_SIGN[decimal]}[0-9]+)[eE][-+]?[0-9]+)"
    )
    for decimal, group in _GROUP.items()
}
_LIKE_NUMBER = re.compile(r"[-+]?[\d.,][\d.,' \u00a0\u202feE+\-]*")
_ABOUT = re.compile(
    r"(?i)(ca\.?|circa|about|approx\.?|approximately|around|roughly|etwa|rund|env\.?|environ|[~≈])"
    r"\s*(?=[-+€$£]?\s?\d)"
)
_MEANT = re.compile(r"[^\W\d]|[%‰°€$£¥₹]")  # in units, not in marks such as * and ²
_SENTINEL = re.compile(
    r"-?(9{2,}|8{3,}|7{3,})|-9|-?32767|-32768|-?2147483647|-2147483648|-?1e\+?30"
)
NEARLY = 0.8  # with this share of numbers among cells that are not empty, a column holds numbers
# Or with so many different numbers beside no more than so many words, however often these occur, as
# "haemolysed" does in a column of a laboratory.
FEWEST_BESIDE_WORDS = 10
MOST_WORDS = 3
_LESS = "below|less than|under|unter|kleiner(?: als)?|inférieur à|menor que|meno di"
_MORE = "above|more than|greater than|over|über|größer(?: als)?|supérieur à|mayor que|più di"
LIMIT = re.compile(
    rf"(?P<sign><=|>=|=<|=>|[<>≤≥‹›]|(?i:{_LESS}|{_MORE})(?=\s))\s*(?P<rest>[^<>]*\d[^<>]*)"
)
_ABOVE = re.compile(rf"(?i:>=|=>|[>≥›]|{_MORE})")
# The limit itself is possible: "<=0.5" and "&ge; 20", but not "<0.5".
INCLUDING = re.compile(r"[=≤≥＝]|&(le|ge);")
_MARK = re.compile(
    r"(?P<number>.*?[\d.,%])(\s*([*†‡§¶#°ªº¹²³⁴-⁹]+|\^\w{1,2}|\[\w{1,3}\]|(±|\+/?-)\s*[\d.,]+"
    r"|\(?!{1,3}\)?|\((\*|HH?|LL?)\))"
    r"|\s[a-z]\)|\s(HH?|LL?))"  # 1a) is a name; H and L of laboratories: high, low
)
_ESCAPED = re.compile(r"&(lt|gt|le|ge);")  # as web pages write < and >
_LIMITS = (
    "cell was read as the limit that it names, with a feature that says so",
    "cells were read as the limit that each names, with a feature that says so",
)
MOST_ALIKE = 3  # groups of spellings that are named in a note
MOST_UNITS = 3  # of numbers in text; more are hardly units
# Numbers with a unit and those without one are taken for different units if the one are so many
# times as large as the other, and chance would bring that about so rarely.
UNLIKE = 10.0
CHANCE = 1e-4
FEWEST_COMPARED = 3
_FAR = 1000.0  # times as far from the median as all others
_MOST_FAR = 3  # numbers that may be far


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """A column of texts read as numbers, cell by cell."""

    values: Array  # (n,) the numbers; NaN where a cell is missing or not a number
    side: AnyArray  # (n,) -1 where a number is below its value, 1 above, 0 elsewhere
    unit: str = ""  # what is written beside all of them
    decimal: str = "point"  # or "comma"
    mended: list[int] = field(default_factory=list)  # rows of numbers with a mark, or in brackets
    unread: list[int] = field(default_factory=list)  # rows whose cell is not a number
    n_present: int = 0  # cells that are not holes
    minus_behind: bool = True  # whether "5-" is a negative number

    @property
    def nearly_all(self) -> bool:
        """Whether the column holds numbers, except for a few cells."""
        is_read = np.isfinite(self.values)
        n_read = int(is_read.sum())
        # Groups such as "<18" and ">=18" are limits alone, and no numbers.
        some_are_plain = bool(np.any(is_read & (self.side == 0)))
        return some_are_plain and n_read >= 2 and n_read >= NEARLY * self.n_present

    @property
    def mostly(self) -> bool:
        """Whether at least half of the cells that are not empty are numbers, of many values."""
        known = self.values[np.isfinite(self.values)]
        return 2 * len(known) >= self.n_present and len(np.unique(known)) >= FEWEST_BESIDE_WORDS


def is_missing(texts: AnyArray) -> AnyArray:
    """Return where texts are missing: None, NaN, or what tables write for it.

    That is "", NA, n/a, NaN, null, None, ? and the like.
    """
    gone = [not isinstance(text, str) or text.strip().lower() in MISSING for text in texts]
    return np.array(gone, dtype=bool)


def find_numbers(texts: Sequence[str | None] | AnyArray, prefer: str = "point") -> ParsedNumbers:
    """Return the cells that are just numbers, under the one reading by which most of them are.

    A reading is a decimal sign and a unit.
    """
    cells = np.asarray(pd.Series(texts, dtype=object), dtype=object)
    missing = is_missing(cells)
    present = [text.strip() for text in cells[~missing]]
    parsed = ParsedNumbers(np.full(len(cells), np.nan), np.zeros(len(cells), dtype=int))
    if all(map(_PLAIN.fullmatch, present)) and not _has_groups(present, prefer):
        parsed.values[~missing] = [float(text) for text in present]
        return parsed
    codes, levels = pd.factorize(np.array(present, dtype=object))  # each text is read once
    found_amounts = [amounts.amount_in(text) for text in levels]
    units = np.array([amounts.unit_of(amount) for amount in found_amounts], dtype=object)
    unit = _prevailing_unit(units[codes])
    digits = [amount["number"].strip() if amount else "" for amount in found_amounts]
    # Where those of the unit leave the sign open, as "1.500 €" does, all others decide,
    # as "900,50 EUR".
    has_unit = (units == unit)[codes]
    n_read: dict[str, tuple[int, int]] = {}
    for sign in _SIGNS[prefer]:
        readable = np.isfinite(np.array([read_digits(number, sign) for number in digits]))[codes]
        n_read[sign] = (int((readable & has_unit).sum()), int(readable.sum()))
    decimal = max(n_read, key=lambda sign: n_read[sign])
    values = np.array([number_of(text, decimal, unit) for text in levels])
    values = np.where(np.isfinite(values), values, np.nan)  # 1e400 is not a number
    parsed.values[~missing] = values[codes]
    return replace(parsed, decimal=decimal, unit=unit)


def _has_groups(texts: Sequence[str], prefer: str) -> bool:
    """Return whether points in plain numbers separate groups, since commas are decimal signs.

    So they do in "2.162" where another column of the table has "0,5".
    """
    return prefer == "comma" and all(map(_GROUPED.fullmatch, texts))


def _prevailing_unit(units: AnyArray) -> str:
    """Return the most frequent unit of cells (n,), "" for none.

    Thousands are a unit only where no cell is without them.
    """
    known = pd.Series(units).dropna()
    unit = _most_frequent(known)
    if amounts.is_scale(unit) and (known != unit).any():
        return _most_frequent(known[~known.map(amounts.is_scale)])
    return unit


def _most_frequent(texts: pd.Series) -> str:
    """Return the text that occurs most often, "" if there is none."""
    usual = texts.mode()
    if not len(usual):
        return ""
    return str(usual.iloc[0])


def number_of(text: str, decimal: str, unit: str = "") -> float:
    """Return the number that a text is under one reading and with one unit, or NaN."""
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
    return read_digits(amount["number"].strip(), decimal)


def read_digits(number: str, decimal: str) -> float:
    """Return a number under one reading, NaN if it is not one."""
    if not _NUMBER[decimal].fullmatch(number) or not any(map(str.isdigit, number)):
        return np.nan
    return float(re.sub(_GROUP[decimal], "", number).replace(",", "."))


def number_text(value: float, decimal: str = "point") -> str:
    """Return a number as text: as short as it can be read back from, "" if it is missing."""
    if np.isnan(value):
        return ""
    text = repr(float(value))
    if abs(value) < 1e16 and value == int(value):
        text = str(int(value))
    if decimal == "comma":
        return text.replace(".", ",")
    return text


def number_texts(values: Array, decimal: str = "point") -> pa.Array:
    """Return numbers (n,) as an Arrow array of such texts."""
    size = np.abs(values)
    # Of other numbers Arrow writes another exponent.
    usual = (size == 0.0) | ((size >= 1e-4) & (size < 1e10))
    texts = pa.array(np.where(usual, values + 0.0, 0.0)).cast(pa.string())
    others = pa.array(map(number_text, values[~usual]), pa.string())
    texts = pc.replace_with_mask(texts, ~usual, others)
    if decimal == "comma":
        return pc.replace_substring(texts, ".", ",")
    return texts


def plain_numbers(texts: AnyArray, prefer: str = "point") -> pd.Series | None:
    """Return texts (n,) of plain numbers or nothing as `typed` does, but quickly.

    None if others are there.
    """
    gone = np.array([text in _NOTHING for text in texts.tolist()], dtype=bool)
    present = texts[~gone]
    lines = "\n".join(["", *present])
    if not len(present) or _CODE.search(lines):
        return None
    if holds_equal_numbers(lines):
        return None
    if "." in lines and _has_groups([text.strip() for text in present], prefer):
        return None
    try:
        numbers = pc.ascii_trim_whitespace(pa.array(present, pa.string())).cast(pa.float64())
    except ValueError:
        return None
    values = np.full(len(texts), np.nan)
    values[~gone] = numbers
    if not np.isfinite(values[~gone]).all():
        return None
    if not gone.any() and not re.search(r"[.eE]|\d{19}", lines):
        return pd.Series(present.astype(np.int64))
    return pd.Series(values)


def are_plain(texts: Iterable[str | None]) -> bool:
    """Return whether all texts are numbers as programs write them, or nothing."""
    return all(text is None or _PLAIN.fullmatch(text.strip()) for text in texts)


def typed(texts: AnyArray, prefer: str = "point") -> tuple[pd.Series, str]:
    """Return texts (n,) as whole numbers, numbers or text, and their decimal sign.

    They are missing where they say so.
    """
    missing = is_missing(texts)
    present = [text.strip() for text in texts[~missing]]
    empty = missing
    if present:
        empty = np.array([text.strip().lower() in IN_TEXT for text in texts], dtype=bool)
    column = pd.Series(texts, dtype=object).mask(empty, None)
    has_codes = any(re.match(r"[-+]?0\d", word) for word in present)
    has_codes = has_codes or holds_equal_numbers("\n".join(present))
    # A few often show that a column does not hold numbers.
    if not present or has_codes or not all(map(_LIKE_NUMBER.fullmatch, present[:50])):
        return column, "point"
    parsed = find_numbers(texts, prefer)
    if parsed.unit or np.isnan(parsed.values[~missing]).any():
        return column, "point"
    if not missing.any() and all(re.fullmatch(r"[-+]?\d{1,18}", word) for word in present):
        return pd.Series([int(word) for word in present], dtype="int64"), "point"
    return pd.Series(parsed.values), parsed.decimal


def read_numbers(
    texts: Sequence[str | None] | AnyArray, prefer: str = "point", *, anywhere: bool = False
) -> ParsedNumbers:
    """Return the numbers in texts, also limits, about, or with marks.

    With `anywhere` it is the one number among any words.
    """
    cells = np.asarray(pd.Series(texts, dtype=object), dtype=object)
    parsed = find_numbers(cells, prefer)
    rest = np.flatnonzero(~np.isfinite(parsed.values))
    odd = rest[~is_missing(cells[rest])]
    n_present = len(cells) - len(rest) + len(odd)
    if not parsed.unit and len(odd) > (1.0 - NEARLY) * n_present:
        # As where many say "3 rooms", others 3; a single "3 kg" may say that others are not.
        units = units_in(cells[odd])
        if len(units) == 1 and not amounts.is_scale(units[0]):
            parsed = replace(parsed, unit=units[0])
    if not anywhere and len(odd) and _holds_enumeration(cells):
        parsed.values[:] = np.nan
        known = np.flatnonzero(~is_missing(cells)).tolist()
        return replace(parsed, unit="", unread=known, n_present=len(known))
    if any(amounts.PLUS_BEHIND.fullmatch(text.strip()) for text in cells[odd]):  # as grades have
        parsed = replace(parsed, minus_behind=False)
    values, side = read_cells(
        pd.Series(cells[odd], dtype=object),
        parsed.decimal,
        parsed.unit,
        anywhere,
        minus_behind=parsed.minus_behind,
    )
    parsed.values[odd] = values
    parsed.side[odd] = side
    is_read = ~np.isnan(values)
    n_holes = sum(map(_is_hole, cells[rest]))
    n_holes += _count_words(cells[odd[~is_read]], parsed.values)
    return replace(
        parsed,
        mended=odd[is_read & (side == 0)].tolist(),
        unread=odd[~is_read].tolist(),
        n_present=len(cells) - n_holes,
    )


def _is_hole(cell: object) -> bool:
    """Return whether a cell is empty, or a word that often stands for an empty one."""
    return not isinstance(cell, str) or cell.strip().lower() in HOLES


def _count_words(unread: AnyArray, values: Array) -> int:
    """Return how many cells say in a few words why there is no number, beside many numbers.

    Shapes: unread (m,) are the texts that are no numbers, values (n,) those that are.
    """
    words = [text for text in unread if not _is_hole(text)]
    different = {spelling_key(text) for text in words}
    if not 0 < len(different) <= MOST_WORDS or any(map(_has_digit, different)):
        return 0
    n_numbers = len(np.unique(values[np.isfinite(values)]))
    return len(words) if n_numbers >= FEWEST_BESIDE_WORDS else 0


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _holds_enumeration(cells: AnyArray) -> bool:
    """Return whether cells (n,) number their words, so that they are categories.

    That is so in "1 White" and "2 Black".
    """
    levels = dict.fromkeys(text for text in cells if not _is_hole(text))
    short = [amounts.with_plain_signs(text) for text in levels if len(text) <= amounts.LONGEST]
    matches = [amounts.AMOUNT.fullmatch(text) for text in short]
    numbered = [amount for amount in matches if amount is not None]
    return amounts.is_enumerated(
        [amount["number"].strip() for amount in numbered],
        [amounts.one_spelling(amount) for amount in numbered],
        others=len(numbered) < len(matches),
    )


def all_numbers(column: pd.Series) -> Array | None:
    """Return the cells (n,) of a column as numbers, NaN where one is empty.

    None if a cell is not just a number.
    """
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    known = column.dropna()
    if pd.api.types.infer_dtype(known) not in ("string", "mixed", "mixed-integer", "empty"):
        return None
    empty = column.isna()
    parsed = read_numbers(
        [None if gone else str(cell) for cell, gone in zip(column, empty, strict=True)]
    )
    if parsed.unread or parsed.side.any():
        return None
    return parsed.values


def units_in(texts: Iterable[Any]) -> list[str]:
    """Return the units of numbers in texts, the most frequent first.

    Each is in its most frequent spelling.
    """
    spellings: dict[str, Counter[str]] = {}
    for text, count in Counter(text for text in texts if isinstance(text, str)).items():
        signed = amounts.with_minus_before(amounts.with_plain_signs(text))
        amount = amounts.AMOUNT.fullmatch(_ABOUT.sub("", signed))
        if amount is None:
            continue
        unit = amounts.one_spelling(amount)
        if unit and _MEANT.search(unit):
            written = (amount["before"] + amount["after"]).strip()
            spellings.setdefault(unit, Counter())[written] += count
    ordered = sorted(spellings, key=lambda unit: (-spellings[unit].total(), unit))
    return [_first_spelling(spellings[unit]) for unit in ordered]


def several_units(texts: Iterable[Any]) -> list[str]:
    """Return the units of texts that are nearly all numbers, if these are a few units."""
    present = [text for text in texts if isinstance(text, str)]
    units = units_in(present)
    if not 1 < len(units) <= MOST_UNITS:
        return []
    n_amounts = sum(amounts.amount_in(text.strip()) is not None for text in present)
    return units if n_amounts >= NEARLY * len(present) else []


OPPOSITE = (("N", "S"), ("E", "W"), ("S", "H"), ("C", "D"), ("Haben", "Soll"))


def opposite_marks(texts: Iterable[Any]) -> str:
    """Return two letters behind numbers that may stand for a sign, in words; "" if none do.

    East and west do, and the two sides of an account; either letter by itself is a unit.
    """
    units = {unit.strip(" .°") for unit in units_in(texts)}
    for one, other in OPPOSITE:
        if {one, other} <= units:
            return f"{one!r} behind some numbers and {other!r} behind others"
    return ""


def notes_on_units(name: ColumnName, texts: Iterable[Any]) -> list[str]:
    """Return that a column whose numbers were asked for names several units.

    A ValueError is raised if these may stand for a sign.
    """
    texts = list(texts)
    marks = opposite_marks(texts)
    if marks:
        raise ValueError(
            f"Column {name!r} has {marks}, which may stand for a sign: write numbers below 0 "
            "with a minus, and no letter."
        )
    units = units_in(texts)
    if len(units) < 2:
        return []
    named = ", ".join(units[:MOST_UNITS])
    return [f"{name!r} names several units ({named}): its numbers were taken as they are."]


def unlike_sizes(texts: AnyArray, values: Array, fewest: int = FEWEST_COMPARED) -> str:
    """Return that numbers (n,) with a unit and those without one differ so much in size.

    So they do in "40 %" beside "0.35". It is "" if they do not, or if fewer than `fewest` are of
    one kind. With a smaller `fewest` it is enough that all of one kind are larger.
    """
    places = np.flatnonzero(np.isfinite(values) & (values != 0.0))
    codes, levels = pd.factorize(texts[places])
    amounts_of_levels = [amounts.amount_in(text.strip()) for text in levels]
    has_unit = np.array(
        [bool(amounts.one_spelling(amount)) for amount in amounts_of_levels], dtype=bool
    )[codes]
    sizes = np.abs(values[places])
    n_bare = int(np.sum(~has_unit))
    n_fewer = min(n_bare, len(places) - n_bare)
    if n_fewer < fewest:
        return ""
    larger = sizes[has_unit]
    smaller = sizes[~has_unit]
    if median(larger) < median(smaller):
        larger, smaller = smaller, larger
    if median(larger) < UNLIKE * median(smaller):
        return ""
    from scipy.stats import mannwhitneyu

    surely = n_fewer >= FEWEST_COMPARED and mannwhitneyu(larger, smaller).pvalue <= CHANCE
    are_apart = fewest < FEWEST_COMPARED and larger.min() > smaller.max()
    if not surely and not are_apart:
        return ""
    with_unit = quoted(texts[places[has_unit][0]].strip())
    without = quoted(texts[places[~has_unit][0]].strip())
    ratio = median(larger) / median(smaller)
    return (
        f"numbers with a unit, such as {with_unit}, and without, such as {without}, whose sizes "
        f"differ by a factor of {ratio:.2g}"
    )


def _first_spelling(counts: Mapping[str, int]) -> str:
    """Return the most frequent spelling, of equally frequent ones the first by its letters."""
    return min(counts, key=lambda text: (-counts[text], text))


def text_levels(series: pd.Series) -> tuple[AnyArray, AnyArray]:
    """Return cells as the numbers of texts, and the texts, so that each is looked at once.

    The last of the texts is missing.
    """
    if pd.api.types.infer_dtype(series, skipna=True) == "string":
        codes, cells = pd.factorize(series)
    else:  # of other types, equal cells such as 1 and True may differ as texts
        codes = np.where(series.isna(), -1, np.arange(len(series)))
        cells = series.astype(object)
    pairs = zip(np.asarray(cells, dtype=object), pd.isna(cells), strict=True)
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
    """Return the numbers in cells under a given reading, NaN for the rest.

    Beside them is on which side of each the truth is.
    """
    values = np.full(len(column), np.nan)
    side = np.zeros(len(column), dtype=int)
    others = np.ones(len(column), dtype=bool)
    if not unit and pd.api.types.is_string_dtype(column):  # then most cells are plain numbers
        cells = pc.utf8_trim_whitespace(pa.array(column, pa.large_string(), from_pandas=True))
        plain = pc.match_substring_regex(cells, _PLAIN_CELL[decimal])
        with_point = pc.replace_substring(pc.if_else(plain, cells, None), ",", ".")
        values = np.array(with_point.cast(pa.float64()))
        others = ~np.array(pc.fill_null(plain, True)) | np.isinf(values)
    codes, levels = text_levels(column[others])
    style = _Style(decimal, unit, anywhere, minus_behind)
    read = [(np.nan, 0) if text is None else _mended(text, style) for text in levels]
    values_of_levels, sides_of_levels = np.array(read).T
    values[others] = values_of_levels[codes]
    side[others] = sides_of_levels[codes]
    return values, side


class _Style(NamedTuple):
    """How the numbers of a column are written."""

    decimal: str
    unit: str
    anywhere: bool  # whether the one number among any words counts
    minus_behind: bool  # whether "5-" is a negative number


def _mended(text: str, style: _Style) -> tuple[float, int]:
    """Return the number in a cell that is not just one, NaN if there is none.

    Beside it is on which side of the number the truth is.
    """
    if len(text) > amounts.LONGEST and not style.anywhere:
        return np.nan, 0
    text = amounts.with_plain_signs(_ESCAPED.sub(lambda sign: html.unescape(sign[0]), text))
    limit = LIMIT.fullmatch(text)
    if limit is None:
        return _number_in(text, style), 0
    value, side = _mended(limit["rest"], style)
    if side:
        return np.nan, 0
    if _ABOVE.fullmatch(limit["sign"]):
        return value, 1
    return value, -1


def _number_in(text: str, style: _Style) -> float:
    """Return the number in a cell with plain signs, without what marks it; NaN if there is none."""
    scaled = amounts.is_scale(style.unit)
    words = [text, _ABOUT.sub("", text, count=1)]
    words += [marked["number"] for marked in map(_MARK.fullmatch, words) if marked]
    words = [amounts.with_minus_before(word, style.minus_behind) for word in words]
    words += [marked["number"] for marked in map(_MARK.fullmatch, words) if marked]
    # A number without the unit counts, and is noted; beside thousands it would be another number.
    units = [style.unit]
    if not scaled:
        units.append("")
    amount = amounts.AMOUNT.fullmatch(words[1])
    usual = amounts.AMOUNT.fullmatch(f"1 {style.unit}")
    if style.unit and amount and amounts.one_spelling(amount) == amounts.one_spelling(usual):
        words.append(amount["number"].strip())
    value = _first_number(words, style.decimal, units)
    if np.isnan(value) and not scaled:
        value = _in_ones(amounts.scaled(words[1]), style.decimal, style.unit)
    if np.isnan(value) and style.anywhere:
        value = _in_ones(amounts.number_among_words(words[0]), style.decimal, "")
    return value


def _first_number(words: list[str], decimal: str, units: list[str]) -> float:
    """Return the first number that a text is, with either decimal sign and one of the units."""
    for word in words:
        for sign in _SIGNS[decimal]:
            for unit in dict.fromkeys(units):
                value = number_of(word, sign, unit)
                if np.isfinite(value):
                    return value
    return np.nan


def _in_ones(number: amounts.Scaled | None, decimal: str, unit: str) -> float:
    """Return a number of thousands, or millions, as so many ones; NaN if its scale is unknown."""
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
    is_new = ordered[1:] != ordered[:-1]
    levels = np.concatenate([ordered[:1], ordered[1:][is_new]])
    n_levels = len(levels)
    ends = (*range(min(3, n_levels)), *range(max(n_levels - 3, 3), n_levels))
    suspects = [place for place in ends if may_be_sentinel(levels[place])]
    others = np.delete(levels, suspects)
    if not suspects or len(others) < 3:
        return {}
    length = float(others[-1] - others[0])
    largest = float(np.abs(others).max())
    spread = max(length, 1e-3 * largest)
    marks = levels[suspects]  # beyond all others by more than a gap, or the only negative ones
    nearest = np.minimum(abs(marks - others[0]), abs(marks - others[-1]))
    only_negative = (marks <= -99.0) & (others[0] >= 0.0)
    far = (nearest > gap * spread) | only_negative
    far &= (marks < others[0]) | (marks > others[-1])
    kept = [number_of(str(value), "point") for value in keep]
    missing = [mark for mark in marks[far] if mark not in kept]
    return {float(mark): int(np.count_nonzero(ordered == mark)) for mark in missing}


def as_label(label: Any) -> Any:
    """Return a label without blanks around it."""
    if isinstance(label, str):
        return label.strip()
    return label


def spelling_key(text: str) -> str:
    """Return what texts have in common that differ in capitals or in the number of blanks only."""
    return " ".join(text.split()).casefold()


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each key the text that is written most often.

    Of equally frequent ones it is the first in `counts`.
    """
    usual: dict[str, str] = {}
    for text, count in counts.items():
        key = spelling_key(text)
        if key not in usual or count > counts[usual[key]]:
            usual[key] = text
    return usual


def spelling_note(name: ColumnName, what: str, counts: Mapping[str, int]) -> list[str]:
    """Return a note on classes, or categories, of different spellings that were taken as one."""
    groups: dict[str, list[str]] = {}
    for text in counts:
        groups.setdefault(spelling_key(text), []).append(text)
    several = [texts for texts in groups.values() if len(texts) > 1]
    if not several:
        return []
    how = "capitals"
    if any(len({text.casefold() for text in texts}) > 1 for texts in several):
        how = "blanks or capitals"
    listed = "; ".join(_listed_spellings(texts, counts) for texts in several[:MOST_ALIKE])
    if len(several) > MOST_ALIKE:
        listed += f"; and {len(several) - MOST_ALIKE:,} more"
    return [
        f"{what} of {name!r} that differ in {how} only were taken as the same: {listed}. "
        f"Use {option('case_sensitive', True)} to keep them apart."
    ]


def _listed_spellings(texts: list[str], counts: Mapping[str, int]) -> str:
    return ", ".join(f"{quoted(text, 60)} ({counts[text]:,})" for text in texts)


def hole_words(texts: Iterable[Any], known: Collection[str] = HOLES) -> dict[Any, int]:
    """Return the words that often stand for an empty cell, and how often each occurs."""
    words = [text.strip() for text in texts if isinstance(text, str)]
    return dict(Counter(word for word in words if word and word.lower() in known))


def words_beside_numbers(column: pd.Series) -> dict[str, int]:
    """Return the words in a column of numbers in text, and how often each occurs."""
    cells = column.to_numpy(dtype=object)
    if not any(isinstance(cell, str) for cell in cells):
        return {}
    texts = np.array([None if pd.isna(cell) else str(cell) for cell in cells], dtype=object)
    parsed = read_numbers(texts)
    words = [texts[row].strip() for row in parsed.unread]
    if not parsed.nearly_all or any(map(_has_digit, words)):
        return {}
    return dict(Counter(words).most_common(MOST_WORDS))


def without(frame: pd.DataFrame, words: Sequence[Any]) -> pd.DataFrame:
    """Return a table of plain types in which the cells that hold one of these values are empty."""
    changed: dict[int, pd.Series] = {}
    for place, dtype in enumerate(frame.dtypes):
        # A column takes its time in wide tables.
        if words or dtype == "object" or not isinstance(dtype, np.dtype):
            column = frame.iloc[:, place]
            new = _emptied(_plain(column), words)
            if new is not column:
                changed[place] = new
    if not changed:
        return frame
    columns = [changed.get(place, frame.iloc[:, place]) for place in range(frame.shape[1])]
    return pd.concat(columns, axis=1).set_axis(frame.columns, axis=1)


def _emptied(column: pd.Series, words: Sequence[Any]) -> pd.Series:
    """Return a column in which the cells that hold one of these values are empty."""
    holds_lists = isinstance(column.dtype, pd.ArrowDtype) and column.dtype.kind == "O"
    if not words or holds_lists:
        return column
    texts = {str(word).strip().lower() for word in words}
    read = [number_of(text, "point") for text in texts]
    numbers = [value for value in read if np.isfinite(value)]

    def is_empty(cell: object) -> bool:
        if isinstance(cell, str):
            word = cell.strip().lower()
            return word in texts or bool(numbers and number_of(word, "point") in numbers)
        return isinstance(cell, int | float) and not isinstance(cell, bool) and cell in numbers

    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        empty = column.isin(numbers)
    else:
        empty = column.astype(object).map(is_empty).astype(bool)
    if not empty.any():
        return column
    return column.mask(empty)


def _plain(column: pd.Series) -> pd.Series:
    """Return a column of types of Arrow, or odd ones of pandas, in a plain type.

    Arrow's dates, times and durations become those of pandas, decimals floats, periods and
    intervals text.
    """
    dtype = column.dtype
    if dtype == "object":
        if pd.api.types.infer_dtype(column, skipna=True) == "decimal":
            return column.astype(float)
        return column
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_temporal(dtype.pyarrow_dtype):
        return column.array.__arrow_array__().to_pandas().set_axis(column.index)
    spans = pd.PeriodDtype | pd.IntervalDtype
    if isinstance(dtype, pd.CategoricalDtype) and isinstance(dtype.categories.dtype, spans):
        return column.cat.rename_categories(dtype.categories.astype(str))
    if isinstance(dtype, spans):
        return column.astype(str).astype(object).mask(column.isna(), None)
    return column


def named_cells(cells: Iterable[tuple[str, int]]) -> str:
    """Return cells with the rows that they are in, as `naming_rows` says to call them."""
    row_names = current_row_names()
    rows: dict[str, list[int]] = {}
    for text, row in cells:
        rows.setdefault(text, []).append(row)
    first = list(rows.items())[:MOST_NAMED]
    named = ", ".join(f"{quoted(text)} ({row_names.name(where)})" for text, where in first)
    if len(rows) > MOST_NAMED:
        return f"{named}, and {counted(len(rows) - MOST_NAMED, 'other')}"
    return named


def cell_notes(
    name: ColumnName,
    texts: AnyArray,
    parsed: ParsedNumbers,
    rows: AnyArray,
    limits: tuple[str, str] = _LIMITS,
) -> list[str]:
    """Return what the user should know of cells that were read as numbers.

    Shapes: texts (n,), rows (n,). `limits` says in words what one limit, or several, were read as.
    """
    ways = amounts.unusual_spellings([texts[place] for place in parsed.mended])
    examples = ""
    if ways:
        examples = f" ({', '.join(ways)})"
    kinds = (
        (np.flatnonzero(parsed.side).tolist(), *limits),
        (
            parsed.mended,
            f"cell was read as the number in it{examples}",
            f"cells were read as the number in each{examples}",
        ),
        (
            parsed.unread,
            "cell was taken as missing, since it is not a number",
            "cells were taken as missing, since they are not numbers",
        ),
    )
    notes = []
    for places, singular, plural in kinds:
        if places:
            where = sorted(places, key=lambda place: rows[place])
            cells = named_cells((texts[place].strip(), int(rows[place])) for place in where)
            notes.append(f"{name!r}: {counted(len(places), singular, plural)}: {cells}.")
    return notes


def value_notes(
    name: ColumnName, values: Array, marks: dict[float, int], rows: AnyArray
) -> list[str]:
    """Return notes on values (n,) that look like marks of missing cells, or lie far from the rest.

    Shapes: rows (n,).
    """
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
    if value == int(value):
        return int(value)
    return value


def median(values: Array) -> float:
    """Return the median of finite numbers (n,).

    It does without numpy's checks, which take longer than short columns.
    """
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    low, high = np.partition(values, (half - 1, half))[half - 1 : half + 1]
    return (float(low) + float(high)) / 2.0


def n_far(ordered: Array) -> int:
    """Return how many of ordered numbers, up to three, are far from all others.

    Far is a thousand times as far from the median.
    """
    n_values = len(ordered)
    n_looked_at = _MOST_FAR + 1
    if n_values < n_looked_at:
        return 0
    ends = ordered
    if n_values >= 2 * n_looked_at:
        ends = np.concatenate([ordered[:n_looked_at], ordered[-n_looked_at:]])
    size = float(np.abs(ends).max()) or 1.0  # nothing is too large then
    middle = median(ordered[(n_values - 1) // 2 : n_values // 2 + 1] / size)
    distances = np.sort(np.abs(ends / size - middle))[::-1]
    count = 0
    for place in range(1, n_looked_at):
        if distances[place] > 0.0 and distances[place - 1] > _FAR * distances[place]:
            count = place
    return count


def far_note(name: ColumnName, values: Array, rows: AnyArray) -> list[str]:
    """Return a note on up to three values (n,) that are far from all others; in rows (n,)."""
    count = n_far(in_order(values))
    if not count:
        return []
    known = np.flatnonzero(np.isfinite(values))
    scaled = values[known] / np.abs(values[known]).max()
    by_distance = np.argsort(-np.abs(scaled - median(scaled)), kind="stable")
    places = known[by_distance[:count]]
    cells = named_cells((f"{values[place]:.12g}", int(rows[place])) for place in places)
    numbers = counted(
        len(places),
        "number is far from all others and was taken as it is",
        "numbers are far from all others and were taken as they are",
    )
    return [f"{name!r}: {numbers}: {cells}."]


def holds_code(texts: pd.Series) -> bool:
    """Return whether digits are codes rather than numbers.

    Codes are very long, or have leading zeros at one length, or often.
    """
    words = texts.str.strip().str.replace(r"^'(?=\d)", "", regex=True)  # which marks text
    if words.str.fullmatch(r"\d{17,}").mean() > 0.5:  # no number has so many digits
        return True
    zero: Mask = words.str.match(r"[-+]?0\d").to_numpy(dtype=bool)
    if not zero.any():
        return False
    if zero.mean() > 1.0 - NEARLY:
        return True
    digits = words[words.str.fullmatch(r"\d+")]
    return len(digits) == len(words) and digits.str.len().nunique() == 1
