"""The encoding of a text: read from its byte order mark, or found by trying the usual ones."""

from __future__ import annotations

import codecs
import contextlib

USUAL_ENCODINGS = ("utf-8", "cp1252", "latin-1")  # tried in this order
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CONTROL_BYTES = set(range(9))  # which no text holds
_LOOKED_AT = 8192  # bytes in which those are looked for


def decode(content: bytes) -> tuple[str, str, bytes]:
    """Return text, encoding and byte order mark of bytes; a ValueError if they are not text."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            with contextlib.suppress(UnicodeDecodeError):
                return content[len(mark) :].decode(encoding), encoding, mark
            raise _is_binary()
    if set(content[:_LOOKED_AT]) & _CONTROL_BYTES:
        raise _is_binary()
    for encoding in USUAL_ENCODINGS:
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding), encoding, b""
    raise _is_binary()


def _is_binary() -> ValueError:
    return ValueError("is a binary file, not a table that can be read")
