"""Months in other languages, and ordinals: put into English, and written as they were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pandas as pd

ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The names of the months, then how they are shortened.
_NAMES = {
    "English": (
        "January February March April May June July August September October November December",
        "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    ),
    "German": (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    ),
    "French": (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
    ),
    "Spanish": (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sep oct nov dic",
    ),
    "Italian": (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
    ),
    "Dutch": (
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
    ),
    "Portuguese": (
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "jan fev mar abr mai jun jul ago set out nov dez",
    ),
    "Swedish": (
        "januari februari mars april maj juni juli augusti september oktober november december",
        "jan feb mar apr maj jun jul aug sep okt nov dec",
    ),
    "Danish": (
        "januar februar marts april maj juni juli august september oktober november december",
        "jan feb mar apr maj jun jul aug sep okt nov dec",
    ),
}
_FURTHER = {"jän": 1, "jänner": 1, "fév": 2, "feb": 2, "mär": 3, "aout": 8, "sept": 9, "dec": 12}
NAMES = {language: tuple(map(str.split, names)) for language, names in _NAMES.items()}
_MONTHS = _FURTHER | {
    name.casefold(): month
    for forms in NAMES.values()
    for names in forms
    for month, name in enumerate(names, start=1)
}
_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,})\.?(?![^\W\d_])")
_ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th|º|er)\b")
_OF = re.compile(r"\s+del?\s+", re.IGNORECASE)  # as in "5 de marzo de 2023"


def in_english(texts: pd.Series) -> pd.Series:
    """Return texts in which months are in short English, days plain, without a word between them.

    >>> in_english(pd.Series(["4. März 2023", "May 1st, 2023"])).tolist()
    ['4. Mar 2023', 'May 1, 2023']
    """
    return texts.map(_in_english, na_action="ignore")


def _in_english(text: object) -> object:
    if not isinstance(text, str):
        return text
    plain = _OF.sub(" ", _ORDINAL.sub("", text.strip()))
    return _WORD.sub(lambda word: _short(word) or word[0], plain)


def _short(word: re.Match[str]) -> str:
    month = _MONTHS.get(word[1].casefold())
    return ENGLISH[month - 1] if month is not None else ""


def month_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the twelve names that texts have for months, from their language where one is missing.

    >>> month_names(["4. März 2023", "1. Januar 2023"])[:5]
    ('Januar', 'Februar', 'März', 'April', 'Mai')
    """
    written = Counter(word[0] for text in texts for word in _WORD.finditer(text) if _short(word))
    plain = {word.rstrip(".").casefold() for word in written}
    forms = [names for forms in NAMES.values() for names in forms]
    names = list(max(forms, key=lambda names: len(plain & {name.casefold() for name in names})))
    for word, _count in reversed(written.most_common()):
        names[_MONTHS[word.rstrip(".").casefold()] - 1] = word
    return tuple(names)
