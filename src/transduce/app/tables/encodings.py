"""The encoding of a text: read from its byte order mark, or found by trying the usual ones."""

from __future__ import annotations

import codecs
import contextlib
import re

from transduce.app.tables.other_kinds import BINARY

USUAL_ENCODINGS = ("utf-8", "cp1252", "latin-1")  # tried in this order
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before that of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CONTROL_BYTES = set(range(9))  # which no text holds
_LOOKED_AT = 8192  # bytes in which those are looked for
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
    raise _is_binary()


def _is_binary() -> ValueError:
    return ValueError(BINARY)
