"""Arrays as text, for the journal and for the page."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from transduce.core.types import AnyArray

KINDS = {"<i2": np.int16, "<f4": np.float32, "<f8": np.float64, "<u1": np.uint8, "<u2": np.uint16}


def pack(values: AnyArray) -> str:
    """Return an array of one dimension as text: its type, and its bytes, compressed."""
    kind = values.dtype.newbyteorder("<").str.replace("|", "<")
    if kind not in KINDS:
        raise ValueError(f"arrays of type {kind} cannot be packed")
    content = np.ascontiguousarray(values, dtype=KINDS[kind]).tobytes()
    return f"{kind}:{base64.b64encode(zlib.compress(content)).decode()}"


def unpack(text: str) -> AnyArray:
    """Return the array that `pack` made a text of."""
    kind, _, content = text.partition(":")
    if kind not in KINDS:
        raise ValueError(f"arrays of type {kind!r} cannot be unpacked")
    return np.frombuffer(zlib.decompress(base64.b64decode(content)), dtype=KINDS[kind])
