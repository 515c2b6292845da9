"""One cell that holds a number: its sign, digits and unit, and what is doubtful in them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

# Signs as people, journals, word processors and spreadsheets write them. The em dash is none of
# them: it is a dash.
_HYPHENS = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"  # hyphens, figure dash, en dash, minus
_FULL_WIDTH = {0xFF10 + digit: str(digit) for digit in range(10)}
_FULL_WIDTH |= dict(zip(map(ord, "．，＋％＄￡￥（）"), ".,+%$£¥()", strict=True))
_INVISIBLE = "\u200b\u200e\u200f\u202a\u202b\u202c\u2060\u2066\u2067\u2068\u2069\ufeff"
_NARROW = "\u2007\u2009\u200a"  # blanks that separate groups of digits
_ASCII = dict.fromkeys(map(ord, _HYPHENS), "-") | _FULL_WIDTH
_ASCII |= dict.fromkeys(map(ord, _INVISIBLE), "") | dict.fromkeys(map(ord, _NARROW), "\u00a0")
_TEXT_MARK = re.compile(r"['‘’](?=\s*[^\s'‘’])(?!.*['‘’]$)")  # of spreadsheets: "this is text"
_SWISS_GROUP = re.compile(r"(?<=\d)[‘’](?=\d{3})")
_TIMES_POWER = re.compile(  # as in "1.2 x 10^3" and "1.2 × 10³"; "x10^9/L" is a unit
    r"(?<=\d)\s?[x×·*]\s?10(?:(?:\^|\*\*)\(?([-+]?\d{1,2})\)?|([⁻⁺]?[⁰¹²³⁴-⁹]{1,2}))(?!\s?/|\w)"
)
_SUPERSCRIPTS = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_SAS_POWER = re.compile(r"([-+]?\d*\.\d*)[dD]([-+]\d\d)")  # always with a point: 12D-03 is a code
_NO_CENTS = re.compile(r"(?<=\d)[.,]\s?[-—]{1,2}(?=\s*[^\d\s]*$)")  # of prices: "5,-" is five

_SYMBOLS = "$¢£¤¥฿៛₠-₿"
# Currencies by their letters: three others before digits are a name, as in NCT01 and "ASA 2".
_CODE_WORDS = (
    "AED AFN AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHF CLP CNY COP CRC CVE CZK DEM DJF DKK DOP DZD EGP ERN ESP ETB EUR FJD FRF "
    "GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK ITL JMD JOD JPY "
    "KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU "
    "MUR MVR MWK MXN MYR MZN NAD NGN NIO NLG NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RMB "
    "RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SRD SSP STN SYP SZL THB TJS TMT TND "
    "TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL BTC ETH "
    "ATS SFr Euro Fr Kč Ft kr Kr zł Rs лв руб TL din lei"
)
_CODES = _CODE_WORDS.replace(" ", "|")
CURRENCY = rf"(?:[A-Z]{{0,2}}[{_SYMBOLS}]|(?:{_CODES})(?![^\W\d_]))"
_SHORTENED = re.compile(rf"({CURRENCY})\.(?=\s*[-+(]?\s*\d)")  # as in "Rs. 500"
BEFORE = re.compile(rf"{CURRENCY}?|[#№%]")
# Fractions, circled digits and the like are letters to Python; in a unit they are none, since they
# change the number: "40½" is not forty.
_NUMERAL = "¼-¾⅐-↉①-⓿❶-➓〇㉈-㊿"
_LETTER = rf"[^\W\d_{_NUMERAL}]"
_UNIT_START = rf"""{_LETTER}|[%‰°(/"'′″{_SYMBOLS}]|-(?={_LETTER}{{2}})"""
_NO_UNIT = re.compile(r"[+±∓—<>=~]|-(?![^\W\d_])|[,:;/]$|^[Oo]$")
_POWER = r"(mm|cm|m|km|in|ft|yd)\^?[23]"
# Counts of cells and other units that have digits of their own, as "10^9/L" and "l/100 km".
_POWER += r"|[x×·*]?\s?10(?:\^|\*{1,2})?[\d⁰¹²³⁴-⁹]{1,2}\s?/\s?[µμu]?[lL]"
_POWER += r"|[^\W\d_]{1,5}(?:/[^\W\d_]{1,4})?/(?:100\s?km|1[.,]73\s?m[²2])"
_UNIT_PART = rf"[^\d\s{_NUMERAL}]"
AFTER = re.compile(rf"|(?={_UNIT_START}){_UNIT_PART}{{1,8}}|{_POWER}")
SPELLED = re.compile(rf"(?={_UNIT_START}){_UNIT_PART}+( {_UNIT_PART}+)?|{_POWER}")
GROUPS = r" \u00a0\u202f"
AMOUNT = re.compile(
    rf"(?s)(?P<before>[^\d+\-.,]*)"
    rf"(?P<number>[-+]?[\d.,](?:[\d.,']|[{GROUPS}](?=\d{{3}}(?!\d)))*"
    r"(?:[eE][-+]?\d{1,3}(?![\w.,]))?)(?P<after>.*)"
)
_DIGITS = rf"[\d.,][\d.,'{GROUPS}]*"
_SIGN_BEFORE_CURRENCY = re.compile(rf"([-+])\s*({CURRENCY})\s*(?=[\d.,])")
_SIGN_APART = re.compile(rf"(?P<before>{CURRENCY}?\s*)(?P<sign>[-+])\s+(?=[\d.,])")
_SIGN_BEHIND = re.compile(
    rf"(?P<before>{CURRENCY}?\s*)(?P<number>{_DIGITS}(?<=\d))-"
    rf"(?P<after>\s*(?:%|{CURRENCY})|\s+[^\d\s+\-]+|)"
)
_IN_BRACKETS = re.compile(
    rf"(?P<before>{CURRENCY}?\s*)\(\s*(?P<inner>{CURRENCY}?\s*)(?P<number>{_DIGITS})"
    r"(?P<unit>[^\d()+\-]*)\)(?P<after>[^\d()+\-]*)"
)
PLUS_BEHIND = re.compile(r".*\d\s?\+")

# Words that say that a number is one to be taken away, or may say so: on bank statements CR and DR,
# of years BC. They are no units.
SIGN_WORD = re.compile(
    r"(?i:minus|negativ\w*|neg|moins|menos|meno|cr|dr|credits?|debits?|loss(?:es)?|deficit|verlust"
    r"|below zero|unter null|bce?)\.?"
)

# Thousands and millions that are written as one letter or word. Where cells without such a word
# stand beside them, the unit of the column is not one; a k is a thousand then, and what may mean
# something else is not read.
_SCALES = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "mio": 1e6, "million": 1e6, "mrd": 1e9, "bn": 1e9}
_DOUBTFUL = (
    *("K", "M", "MM", "mn", "mln", "B", "bln", "billion", "tn", "trillion", "lakh", "crore"),
    *("千", "万", "萬", "億", "亿", "千円", "万円", "億円", "万元", "亿元"),
)
_SCALED = re.compile(
    rf"(?P<number>.*\d[.,]?)\s?(?P<word>[^\W\d_]+)\.?(?P<after>\s?(?:[{_SYMBOLS}]|[A-Z]{{3}}))?"
)
_WORD_AFTER = re.compile(r"\s?([^\W\d_]+)")
# What may be a sign beside a number among words, though not directly before it; a hyphen after a
# letter is none.
_SIGN_LEFT = re.compile(rf"[-+—±∓(]['~\s%{_SYMBOLS}]*(?:[A-Z]{{3}}\s*)?$")
_SIGN_RIGHT = re.compile(rf"[\s%*{_SYMBOLS}]*[-—]+(?!\s*\w)")
_HYPHEN = re.compile(r"[^\W\d_]-$")
# Other marks of accounts and journals that may be a sign: brackets, raised and long dashes,
# triangles and arrows; behind degrees south and west, which are.
_MARKS_LEFT = r"\u00ad\[\]{}⟨〈⁅⁻₋¯ˉ‾˗֊⸺⸻﹘―➖▲△▴▵▼▽▾▿◣◢↑↓↗↘⬆⬇⬈⬊⏶⏷🔺🔻"
_MAY_BE_SIGN = re.compile(rf"[{_MARKS_LEFT}][\s{_SYMBOLS}]*(?:[A-Z]{{3}}\s*)?$")
_BETWEEN = re.compile(r"<\s*[^<>]*>")
_SIGN_AT_END = re.compile(r"(?<![^\W\d_]{3})[-—]$")  # as in "6.6 °C-", not in "6 pre-"
# What goes on directly behind a number: a power is part of a unit, as in "12 kg/m2"; other digits
# are of the same number, misread, or of a second one, as in "4O.O6", "39_823", "39h49" and "2x4".
_GOES_ON = re.compile(r"\S*")
_POWERS = re.compile(r"(?<![^\W_])(mm|cm|dm|km|m|in|ft|yd|sec|s)\^?[1-4](?!\w)")
_MISREAD = re.compile(rf"[\d{_NUMERAL}]|^[Oo]\b")
_SIGN_WORD_AMONG_OTHERS = re.compile(
    rf"(?<![^\W\d_])(?:{SIGN_WORD.pattern}|(?i:v\.\s?chr))(?![^\W\d_])"
    r"|[°'′″]\s?[SW](?![^\W\d_])"
)
_ANY_NUMBER = re.compile(r"(?<![\w.,])[-+]?\d[\d.,']*")


LONGEST = 100  # characters of a cell that holds a number and nothing else; longer ones are text


class Scaled(NamedTuple):
    """A number in thousands, millions and so on."""

    text: str  # without the word
    factor: float  # NaN if the word may mean something else


def with_plain_signs(text: str) -> str:
    """Return a cell with signs and digits as ASCII has them.

    A mark that says "this is text" is taken off.
    """
    if text.isascii():
        plain = text
    else:
        plain = _SWISS_GROUP.sub("'", text.translate(_ASCII))
    plain = plain.strip()
    mark = _TEXT_MARK.match(plain)
    if mark is not None:
        plain = plain[mark.end() :].lstrip()
    if "10" in plain:
        plain = _TIMES_POWER.sub(_as_exponent, plain, count=1)
    power = _SAS_POWER.fullmatch(plain)
    if power is not None:
        plain = f"{power[1]}e{power[2]}"
    plain = _NO_CENTS.sub("", _SHORTENED.sub(r"\1 ", plain, count=1))
    signed = _SIGN_BEFORE_CURRENCY.match(plain)
    if signed is None:
        return plain
    sign, currency = signed.groups()
    if currency[-1].isalpha():
        blank = " "
    else:
        blank = ""
    return f"{currency}{blank}{sign}{plain[signed.end() :]}"


def _as_exponent(power: re.Match[str]) -> str:
    """Return a power of ten as the exponent of the number before it."""
    return "e" + (power[1] or power[2]).translate(_SUPERSCRIPTS)


def with_minus_before(text: str, minus_behind: bool = True) -> str:
    """Return a cell with plain signs whose minus, if any, is directly before the digits.

    It may stand behind the number, or apart from it; brackets mean minus, as in accounts.
    """
    apart = _SIGN_APART.match(text)
    if apart is not None:
        return f"{apart['before']}{apart['sign']}{text[apart.end() :]}"
    brackets = _IN_BRACKETS.fullmatch(text)
    if brackets is not None:
        before = (brackets["before"].strip(), brackets["inner"].strip())
        if all(before):
            return text
        return f"{''.join(before)}-{brackets['number']}{brackets['unit']}{brackets['after']}"
    behind = _SIGN_BEHIND.fullmatch(text) if minus_behind else None
    if behind is not None:
        return f"{behind['before']}-{behind['number']}{behind['after']}"
    return text


def unusual_spellings(texts: list[str]) -> list[str]:
    """Return, in words, which unusual minus signs or thousands occur, and what they mean."""
    plain = [with_plain_signs(text) for text in texts]
    ways: dict[str, Callable[[str], object]] = {
        "brackets mean minus": _IN_BRACKETS.fullmatch,
        "a minus behind the number counts": _SIGN_BEHIND.fullmatch,
        "a minus apart from the number counts": _SIGN_APART.match,
        "a hyphen after a letter is no minus": re.compile(r".*[^\W\d_]-\d").match,
        "k means thousand, and words such as million count": scaled,
    }
    return [words for words, find in ways.items() if any(find(text) for text in plain)]


def unit_of(amount: re.Match[str] | None) -> str | None:
    """Return what is written before or after a number; None if that is not a unit."""
    if amount is None or _is_enumeration(amount):
        return None
    before = amount["before"].strip()
    after = amount["after"].strip()
    if (before and after) or not BEFORE.fullmatch(before) or not _is_unit(after, AFTER):
        return None
    return before + after


def _is_unit(words: str, pattern: re.Pattern[str]) -> bool:
    """Return whether what stands behind a number is a unit.

    No part of a unit is a sign or half a pair of brackets.
    """
    if not pattern.fullmatch(words) or _NO_UNIT.search(words) or SIGN_WORD.fullmatch(words):
        return False
    return words.count("(") == words.count(")")


def _is_enumeration(amount: re.Match[str]) -> bool:
    """Return whether a number only numbers the words behind it, as in "1. White"."""
    return amount["number"].rstrip().endswith((".", ",")) and bool(amount["after"].strip())


# One unit has many spellings: without blanks, points, capitals and plurals, and by these other
# names of it.
_SAME_UNIT = (
    "m2 sqm qm squaremetre squaremeter mq|ft2 sqft squarefeet squarefoot|km2 sqkm|"
    "m3 cbm cubicmetre cubicmeter"
)
_SAME_UNIT += (
    "|€ eur euro|$ usd dollar us$|£ gbp|% pct percent|kg kilo kilogram|g gram gramme|m metre meter"
)
_SAME_UNIT += "|km kilometre|h hr hour std|min minute|y yr year|room rm zimmer"
_SAME_UNIT += "|cm centimetre centimeter|mm millimetre"
_UNIT_NAMES = {name: names.split()[0] for names in _SAME_UNIT.split("|") for name in names.split()}
_MEGA = re.compile("M(Pa|Hz|Wh?|eV|[gmlsJVNAB])?")  # which is not milli


def one_spelling(amount: re.Match[str] | None) -> str | None:
    """Return a unit in its one spelling, or "" if there is none.

    None if what stands beside a number is not a unit.
    """
    if amount is None or _is_enumeration(amount):
        return None
    before = amount["before"].strip()
    after = amount["after"].strip()
    if before and after:
        return None
    words = before or after
    if not (BEFORE.fullmatch(before) if before or not after else _is_unit(after, SPELLED)):
        return None
    plain = re.sub(r"[\s.^]", "", words).replace("²", "2").replace("³", "3")
    if _MEGA.fullmatch(plain):
        plain = plain
    else:
        plain = plain.lower()
    if len(plain) > 2:
        singular = plain.removesuffix("s")
    else:
        singular = plain
    return _UNIT_NAMES.get(plain, _UNIT_NAMES.get(singular, singular))


def is_scale(unit: str) -> bool:
    """Return whether a unit counts ones, as k and M do.

    Bare numbers then differ from numbers with it.
    """
    word = unit.strip().removesuffix(".")
    return word in _DOUBTFUL or _factor(word) is not None


def _factor(word: str) -> float | None:
    if word == "K":  # kelvin, or thousands
        return None
    lower = word.lower()
    return _SCALES.get(lower, _SCALES.get(lower.removesuffix("s")))


def scaled(text: str) -> Scaled | None:
    """Return a number in thousands, millions and so on; None if a cell is no such number."""
    match = _SCALED.fullmatch(text)
    if match is None or not is_scale(match["word"]):
        return None
    factor = _factor(match["word"])
    return Scaled(
        f"{match['number']}{match['after'] or ''}", math.nan if factor is None else factor
    )


def number_among_words(text: str) -> Scaled | None:
    """Return the one number among any words, with a plain sign.

    None if there is none, or its sign is in doubt.
    """
    inside = list(_ANY_NUMBER.finditer(text))
    if len(inside) != 1:
        return None
    before = text[: inside[0].start()]
    after = text[inside[0].end() :]
    if _SIGN_LEFT.search(before) and not _HYPHEN.search(before):
        return None
    if _MAY_BE_SIGN.search(before) or _SIGN_WORD_AMONG_OTHERS.search(text) or _BETWEEN.search(text):
        return None
    if _SIGN_AT_END.search(text) or _may_go_on(inside[0][0], after):
        return None
    wordless = not re.search(r"[^\W\d_]", re.sub(CURRENCY, "", text))
    if _SIGN_RIGHT.match(after) or (wordless and re.search(r"[-+—±∓()]", before + after)):
        return None
    word = _WORD_AFTER.match(after)
    factor: float | None = 1.0
    if word is not None and is_scale(word[1]):
        factor = _factor(word[1])
    digits = inside[0][0].rstrip(".,'")
    return Scaled(digits, math.nan if factor is None else factor)


def _may_go_on(number: str, after: str) -> bool:
    """Return whether what stands behind a number may be more of its digits."""
    if number[-1] in ".," and re.match(r"[^\W_]", after):
        return True
    if re.match(rf"\s*[{_NUMERAL}]", after):
        return True
    goes_on = _GOES_ON.match(after)
    return goes_on is not None and _MISREAD.search(_POWERS.sub("", goes_on[0])) is not None


def amount_in(text: str) -> re.Match[str] | None:
    """Return number and unit of a cell, or None if it has no number.

    Thousands are without the word for thousands.
    """
    if len(text) > LONGEST:
        return None
    if text.isascii() and text[:1].isdigit():  # most cells need no more than this
        amount = AMOUNT.fullmatch(text)
        if unit_of(amount) is not None:
            return amount
    signed = with_minus_before(with_plain_signs(text))
    amount = AMOUNT.fullmatch(signed)
    if unit_of(amount) is not None:
        return amount
    ones = scaled(signed)
    if ones is None:
        return amount
    return AMOUNT.fullmatch(ones.text)


def is_enumerated(numbers: list[str], units: list[str | None], others: bool) -> bool:
    """Return whether numbers only number the words behind them, one for each word.

    So they do in "1 White" and "2 Black".

    `others` says whether there are cells besides that hold no such number.
    """
    numbers_of: dict[str, set[str]] = {}
    for number, unit in zip(numbers, units, strict=True):
        if unit is not None and re.search(r"[^\W\d_]{2}", unit):
            numbers_of.setdefault(unit, set()).add(number)
    if not numbers_of or any(len(numbers_of_group) > 1 for numbers_of_group in numbers_of.values()):
        return False
    bare = any(unit is not None and unit not in numbers_of for unit in units)
    return len(numbers_of) > 1 or (others and not bare)
