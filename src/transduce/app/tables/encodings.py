"""The encoding of a text: read from its byte order mark, or found by trying the usual ones."""

from __future__ import annotations

import codecs
import contextlib
import re

from transduce.app.tables.other_kinds import BINARY

USUAL_ENCODINGS = ("utf-8", "cp1252", "latin-1")  # tried in this order
# Those of other scripts, by the names that people know them by.
OTHER_SCRIPTS = {
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
    "gb18030": "GB 18030",
    "big5": "Big5",
    "cp1251": "Windows-1251",
}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before that of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CONTROL_BYTES = set(range(9))  # which no text holds
_LOOKED_AT = 8192  # bytes in which those are looked for
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_FEWEST_IN_RUNS = 0.7  # share of bytes beyond ASCII that follow each other, but in Western words
_FEWEST_HIGH = 8  # bytes beyond ASCII that tell a script
_SHIFT_JIS_PAIR = re.compile(rb"[\x81-\x98][\x40-\x7e\x80-\xfc]")  # kana and usual kanji
_BIG5_PAIR = re.compile(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]")
_MOSTLY = 0.4  # share of zeros at every second byte of a text of two bytes a sign
STRAY = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, in a text that is otherwise
_READ_AS = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(128, 256)
}


def decode(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark of bytes; a ValueError if they are not text."""
    text, encoding, mark = decode_keeping(content)
    return readable(text), encoding, mark


def readable(text: str) -> str:
    """Return a text whose stray bytes are read as those of Windows, sign for sign."""
    if STRAY.search(text) is None:
        return text
    return text.translate(_READ_AS)


def decode_keeping(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark; stray bytes stay, as ``surrogateescape`` does.

    Files that were put together from several hold some cells in UTF-8 and some as Windows has them.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            if content.startswith(mark * 2):  # of a file that was saved twice with a mark
                mark = mark * 2
            with contextlib.suppress(UnicodeDecodeError):
                return content[len(mark) :].decode(encoding), encoding, mark
            raise _is_binary()
    start = content[:_LOOKED_AT]
    if set(start) & _CONTROL_BYTES:
        for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            zeros = start[first::2].count(0)
            if zeros > _MOSTLY * len(start) / 2 and not start[1 - first :: 2].count(0):
                with contextlib.suppress(UnicodeDecodeError):
                    return content.decode(encoding), encoding, b""
        raise _is_binary()
    for encoding in USUAL_ENCODINGS:
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding), encoding, b""
        if encoding == "utf-8":
            text = content.decode("utf-8", "surrogateescape")
            n_stray = len(STRAY.findall(text))
            n_others = sum(1 for sign in text if sign > "\x7f") - n_stray
            if n_others > n_stray:
                return text, encoding, b""
            other = _decode_other_script(content)
            if other is not None:
                return *other, b""
    raise _is_binary()


def _decode_other_script(content: bytes) -> tuple[str, str] | None:
    """Return text and encoding of bytes in East Asian or Cyrillic letters; None if of others.

    In Western words a byte beyond ASCII seldom follows another one; in these scripts most do.
    """
    encoding = _encoding_of_script(content)
    if not encoding:
        return None
    with contextlib.suppress(UnicodeError):
        text = content.decode(encoding)
        if text.encode(encoding) == content:  # so that the file can stay as it is
            return text, encoding
    return None


def _encoding_of_script(content: bytes) -> str:
    """Return the encoding of a text in other letters than Western ones; "" if it has those."""
    runs = _HIGH_RUN.findall(content)
    n_high = sum(map(len, runs))
    if n_high < _FEWEST_HIGH:
        return ""
    # In these two the second byte of a letter may be one of ASCII.
    if _is_mostly(_SHIFT_JIS_PAIR, content, n_high) and _is_encoded(content, "cp932"):
        return "cp932"
    is_big5 = _is_mostly(_BIG5_PAIR, content, n_high) and _is_encoded(content, "big5")
    others = ("gb2312", "euc_jp", "euc_kr")
    if is_big5 and not any(_is_encoded(content, encoding) for encoding in others):
        return "big5"
    if sum(len(run) for run in runs if len(run) > 1) < _FEWEST_IN_RUNS * n_high:
        return ""
    leads = [byte for run in runs if len(run) % 2 == 0 for byte in run[::2]]
    if leads and _is_encoded(content, "euc_jp") and 5 * _count(leads, 0xA4, 0xA5) > len(leads):
        return "euc_jp"
    is_korean = _is_encoded(content, "cp949") and _count(leads, 0xB0, 0xC8) == len(leads)
    if leads and is_korean:
        return "cp949"
    if leads and _is_encoded(content, "gb18030"):
        return "gb18030"
    letters = b"".join(run for run in runs if len(run) > 2)
    n_cyrillic = sum(byte >= 0xC0 or byte in (0xA8, 0xB8) for byte in letters)
    if n_cyrillic > 0.9 * n_high:
        return "cp1251"
    return ""


def _is_mostly(pair: re.Pattern[bytes], content: bytes, n_high: int) -> bool:
    """Return whether the usual letters of an encoding are there, and not as Western ones are.

    Such are "°C" and "don’t": one byte beyond ASCII and one of it.
    """
    pairs = pair.findall(content)
    n_wide = sum(second_byte > 0x7F for _, second_byte in pairs)
    return 3 * len(pairs) > n_high and 3 * n_wide > len(pairs)


def _is_encoded(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _count(values: list[int], first: int, last: int) -> int:
    return sum(first <= value <= last for value in values)


def _is_binary() -> ValueError:
    return ValueError(BINARY)
