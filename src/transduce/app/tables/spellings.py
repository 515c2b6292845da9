"""Spellings that mean one thing: which may, and how cells get the name that was chosen."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from transduce.app.tables import amounts
from transduce.app.tables.numbers import number_text, spelling_key, usual_spellings
from transduce.core.words import as_csv, option, quoted


def respelled(frame: pd.DataFrame, same: Sequence[Sequence[str]], *, exactly: bool) -> pd.DataFrame:
    """Return a table in which cells have the name that was chosen for their spelling.

    Parameters
    ----------
    frame : pandas.DataFrame
        Some columns, in plain types.
    same : list of lists of str
        A column, the name to use, and the spellings that mean it.
    exactly : bool
        Whether capitals make a difference.
    """
    names: dict[str, dict[str, str]] = {}
    for column, name, *spellings in same:
        of_column = names.setdefault(column, {})
        of_column |= {_key(spelling, exactly): name for spelling in spellings}
    changed = {
        column: _with_names(frame[column], names[str(column)], exactly)
        for column in frame.columns
        if str(column) in names
    }
    return frame.assign(**changed) if changed else frame


def _key(text: str, exactly: bool) -> str:
    """Return what a cell and a spelling must have in common."""
    if exactly:
        return text.strip()
    return spelling_key(text)


def _with_names(column: pd.Series, names: Mapping[str, str], exactly: bool) -> pd.Series:
    """Return a column with names in place of spellings; other cells stay."""
    cells = column.astype(object)
    levels = {cell for cell in cells.tolist() if isinstance(cell, str | int | float)}
    chosen = {level: names.get(_key(_text(level), exactly)) for level in levels}
    for level, name in chosen.items():
        if name is not None:
            cells = cells.mask(cells.map(lambda cell, level=level: cell == level), name)
    if any(chosen.values()):
        return cells
    return column


def _text(cell: object) -> str:
    """Return a cell as it is written."""
    if isinstance(cell, float | int) and not isinstance(cell, bool):
        return number_text(float(cell))
    return str(cell)


# ---------------------------------------------------------------------------- which may be the same

MOST_LEVELS = 300  # different texts that are compared
LONGEST = 60  # characters of a text that is compared
LONGEST_SHORT = 3  # characters of what may be an abbreviation
FEWEST_MORE = 3  # characters that one of two or three leaves out
FEWEST_LETTERS = 5  # of a text in which one wrong letter is likelier than another word
MOST_NAMED = 3  # groups of spellings in a note
TIMES_RARER = 3  # a misspelling is at least so many times rarer than what is meant


def alike_spellings(counts: Mapping[str, int]) -> list[list[str]]:
    """Return groups of texts that may mean one thing, each with its most frequent text first.

    Texts are alike that differ in accents, punctuation or the order of words, of which one
    abbreviates the other and no other text, or of which the rarer has one letter wrong. Those that
    differ in capitals and blanks alone count as one, the most frequent.
    """
    usual = usual_spellings(counts)
    totals = Counter[str]()
    for text, count in counts.items():
        totals[usual[spelling_key(text)]] += count
    if not 1 < len(totals) <= MOST_LEVELS or max(map(len, totals)) > LONGEST:
        return []
    texts = sorted(totals, key=lambda text: (-totals[text], text))
    leader = {text: text for text in texts}
    for spelling, other in (*_same_words(texts), *_misspellings(texts, totals)):
        _join(spelling, other, leader, texts)
    for spelling, other in list(_abbreviations(texts, leader)):
        _join(spelling, other, leader, texts)
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(_end(text, leader), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _join(
    one: str,
    other: str,
    leader: dict[str, str],
    texts: Sequence[str],
) -> None:
    """Put two texts into one group, for which the first of `texts` stands."""
    first, second = sorted((_end(one, leader), _end(other, leader)), key=texts.index)
    leader[second] = first


def _end(text: str, leader: Mapping[str, str]) -> str:
    """Return the text that stands for a group."""
    while leader[text] != text:
        text = leader[text]
    return text


def fingerprint(text: str) -> str:
    """Return the words of a text in alphabetic order, without accents, capitals and punctuation."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(sorted(set(re.findall(r"\w+", letters))))


def _same_words(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of texts with the same words."""
    first: dict[str, str] = {}
    for text in texts:
        words = fingerprint(text)
        if words and not _is_figure(words) and not _is_figure(text):
            yield first.setdefault(words, text), text


def _is_figure(text: str) -> bool:
    """Return whether signs may count in a text: it has no letter, or is a number with a unit.

    So they do in -1 and 1, and in "EUR 8.10" and "EUR 8.10-".
    """
    if not any(sign.isalpha() for sign in text):
        return True
    return any(map(str.isdigit, text)) and amounts.unit_of(amounts.amount_in(text)) is not None


def _abbreviations(texts: Sequence[str], leader: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield short texts with the longer text, of one group alone, that begins with them."""
    for text in texts:
        short = text.casefold().rstrip(".")
        if not short.isalpha() or len(short) > LONGEST_SHORT:
            continue
        longer = [other for other in texts if _abbreviates(short, other)]
        if len({_end(other, leader) for other in longer}) == 1:
            yield longer[0], text


def _abbreviates(short: str, text: str) -> bool:
    """Return whether a short text may stand for a word."""
    word = text.casefold()
    n_more = len(word) - len(short)
    if len(short) == 1:
        enough = n_more > 0
    else:
        enough = n_more >= FEWEST_MORE
    return enough and word.startswith(short) and word.isalpha()


def _misspellings(texts: Sequence[str], counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield texts with rarer ones that differ from them in one letter."""
    by_part: dict[str, list[str]] = {}
    for text in texts:
        word = text.casefold()
        shorter = [word[:place] + word[place + 1 :] for place in range(len(word))]
        for part in {word, *shorter}:
            by_part.setdefault(part, []).append(text)
    for near in by_part.values():
        for spelling, other in itertools.combinations(near, 2):  # more frequent ones come first
            rare = counts[other] * TIMES_RARER <= counts[spelling]
            if rare and differ_in_a_letter(spelling.casefold(), other.casefold()):
                yield spelling, other


def differ_in_a_letter(one: str, other: str) -> bool:
    """Return whether two words are equal but for a letter put in, left out, changed or moved."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < FEWEST_LETTERS or len(longer) - len(shorter) > 1:
        return False
    same = 0
    while same < len(shorter) and shorter[same] == longer[same]:
        same += 1
    rest = shorter[same:]
    longer_rest = longer[same:]
    if len(rest) < len(longer_rest):
        changed = longer_rest[:1]
        equal = rest == longer_rest[1:]
    elif rest[1:] == longer_rest[1:]:
        changed = rest[:1] + longer_rest[:1]
        equal = True
    else:
        changed = rest[:2]
        equal = rest[:2] == longer_rest[:2][::-1] and rest[2:] == longer_rest[2:]
    return equal and changed.isalpha()


def note_on_spellings(name: object, counts: Mapping[str, int]) -> list[str]:
    """Return a note on spellings that may mean the same, with the option that merges them."""
    groups = alike_spellings(counts)[:MOST_NAMED]
    if not groups:
        return []
    listed = "; ".join(", ".join(quoted(text, 60) for text in group) for group in groups)
    same = [as_csv([str(name), *group]) for group in groups]
    return [
        f"{name!r} has spellings that may mean the same: {listed}. {option('same', same)} takes "
        "them as one."
    ]
