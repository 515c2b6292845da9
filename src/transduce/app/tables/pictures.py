"""Columns of pictures, as files or as bytes, and the features made of them.

Features are small copies, gradients, colours and pieces.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import label

from transduce.app.tables.numbers import named_cells
from transduce.core.computing import stage
from transduce.core.types import AnyArray, ColumnName
from transduce.core.words import counted, option

try:
    from PIL import Image, ImageOps
except ImportError:  # of the extra `pictures`; a table without pictures does without it
    Image = ImageOps = None  # type: ignore[assignment]

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".gif", ".bmp")
FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP")
NEARLY = 0.8  # of the cells of a column of pictures look like one
SIDE = 64  # of the small copies that everything is computed from, in pixels
MOST_PIXELS = 80_000_000  # of a picture that is read
LARGEST = 2**28  # bytes of a file that is read
MOST_KEPT = 50_000  # files whose features are kept while they do not change
LOOKED_AT = 50  # cells that show whether a column may hold pictures
AT_A_TIME = 256  # pictures, between two reports of progress
FEWEST_PIXELS = 6  # of a small copy that are a piece
PREVIEW = 800  # pixels of the longer side
# Features of each group and their weight: with these, support vectors and trees answer digits with
# 100 labels better than from pixels, and drawn shapes by their colour, count or orientation.
GROUPS = {"grey": (64, 1.0), "tint": (32, 0.5), "gradient": (128, 1.0)}
GROUPS |= {"direction": (16, 0.5), "colour": (27, 0.7), "piece": (11, 0.5)}
LENGTH = sum(size for size, _ in GROUPS.values())
# Pictures written as text: what PNG, JPEG, WebP, GIF and TIFF begin with, in base 64.
_IN_TEXT = re.compile(
    r"\s*(?:data:image/[^,]{1,50};base64,|"
    r"(?=(?:iVBORw0KGgo|/9j/|UklGR|R0lGOD|SUkqA|TU0AK)[\w+/]{60}))([\w+/=\s]+)"
)
FAULTS = {
    "absent": ("file is not there", "files are not there"),
    "outside": (
        "file outside the folder was not opened",
        "files outside the folder were not opened",
    ),
    "broken": ("cell cannot be read as a picture", "cells cannot be read as pictures"),
    "large": ("picture is far too large", "pictures are far too large"),
}


def holds_pictures(series: pd.Series) -> bool:
    """Return whether nearly all cells are pictures: bytes, records with bytes, or files."""
    if series.dtype != object and not pd.api.types.is_string_dtype(series):
        return False
    cells = [content_of(series.iat[row]) for row in np.flatnonzero(series.notna())[:LOOKED_AT]]
    cells = [cell for cell in cells if cell is not None]
    names = [cell.strip().lower() for cell in cells if isinstance(cell, str) and "\n" not in cell]
    number = sum(isinstance(cell, bytes) for cell in cells) + sum(
        name.endswith(ENDINGS) for name in names
    )
    return bool(cells) and number >= NEARLY * len(cells)


def content_of(cell: object) -> Any:
    """Return the bytes of a picture or else its path, also of a record; None if it has neither."""
    if isinstance(cell, dict):
        content = cell.get("bytes")
        cell = cell.get("path") if content is None else content
    if isinstance(cell, bytearray | memoryview):
        return bytes(cell)
    if isinstance(cell, os.PathLike):
        cell = os.fspath(cell)
    if not isinstance(cell, str):
        return cell
    in_text = _IN_TEXT.fullmatch(cell)
    if in_text:
        return base64.b64decode(in_text[1] + "==")
    if not cell.strip():
        return None
    return cell


def name_of(cell: object) -> str:
    """Return what a picture is called: its path, or else a digest of its bytes."""
    if isinstance(cell, dict) and cell.get("path"):
        return str(cell["path"])
    content = content_of(cell)
    if not isinstance(content, bytes):
        return str(content)
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def names_of(column: pd.Series) -> pd.Series:
    """Return a column of bytes, or of records with bytes, as names; any other column as it is."""
    if not holds_pictures(column):
        return column
    return column.map(name_of, na_action="ignore")


def pictures_below(folder: Path, most: int) -> list[str]:
    """Return names of pictures in a folder and its folders, as a table in it has them, in order.

    Links, and what begins with a point, are passed over; there are at most so many.
    """
    pictures: list[str] = []
    for place, folders, names in os.walk(folder):
        path = Path(place)
        here = path.relative_to(folder)
        folders[:] = sorted(
            name for name in folders if name[0] != "." and not (path / name).is_symlink()
        )
        for name in names:
            is_picture = name[0] != "." and name.lower().endswith(ENDINGS)
            if is_picture and not (path / name).is_symlink():
                pictures.append((here / name).as_posix())
        if len(pictures) >= most:
            break
    return sorted(pictures[:most], key=_with_numbers_in_order)


def _with_numbers_in_order(name: str) -> list[tuple[bool, int, str]]:
    """Return what puts names in order: cell-2.png comes before cell-10.png."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def table_of_pictures(names: list[str]) -> pd.DataFrame:
    """Return a table with a row for each picture, and its folder if they are in several."""
    folders = [name.rpartition("/")[0] for name in names]
    table = pd.DataFrame({"picture": names})
    if len(set(folders)) > 1:
        table["folder"] = folders
    return table


def file_below(folder: str | Path, name: str) -> Path | str:
    """Return the file that a name stands for, links followed, or why it is not opened."""
    if "://" in name:
        return "outside"
    base = Path(folder).resolve()
    try:
        file = (base / name.strip().replace("\\", "/")).resolve()
        if not file.is_relative_to(base):
            return "outside"
        return file if file.is_file() else "absent"
    except (OSError, ValueError, RuntimeError):  # names that no system takes, links in a circle
        return "absent"


def _features(source: Any) -> AnyArray | str:
    """Return the features of a picture, or what is wrong with it.

    A file is read again when it has changed.
    """
    if not isinstance(source, Path):
        return _features_of(source)
    status = source.stat()
    return _kept_features(source, status.st_size, status.st_mtime_ns)


def _features_of(source: Any, *version: int) -> AnyArray | str:
    copy = small_copy(source)
    if isinstance(copy, str):
        return copy
    return picture_features(copy[None])[0]


_kept_features = lru_cache(maxsize=MOST_KEPT)(_features_of)


def _source(cell: object, folder: str | Path) -> Path | io.BytesIO | str:
    """Return the file, or the bytes, that a picture is read from, or why it is not read."""
    content = content_of(cell)
    if isinstance(content, bytes):
        if len(content) > LARGEST:
            return "large"
        return io.BytesIO(content)
    if not isinstance(content, str):
        return "broken"
    file = file_below(folder, content)
    if isinstance(file, Path) and file.stat().st_size > LARGEST:
        return "large"
    return file


def small_copy(source: Any) -> AnyArray | str:
    """Return a picture as SIDE x SIDE pixels of red, green and blue, or what is wrong with it."""
    picture = _seen(source, (2 * SIDE, 2 * SIDE))
    if isinstance(picture, str):
        return picture
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0))


def _seen(source: Any, needed: tuple[int, int] | None = None) -> Any:
    """Return a picture as a person sees it, or what is wrong with it.

    Of a JPEG no more is decoded than is needed.
    """
    if isinstance(source, str):
        return source
    try:
        with Image.open(source, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                return "large"
            if needed:
                image.draft("RGB", needed)
            return opaque(image)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return "large"
    except Exception:  # damaged files lead to nearly any error
        return "broken"


def opaque(image: Image.Image) -> Image.Image:
    """Return a picture as a person sees it: upright, in 8 bits a colour.

    What is transparent becomes white.
    """
    image = ImageOps.exif_transpose(image)
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.nan_to_num(np.asarray(image, dtype=np.float32))
        low = 0.0
        high = 65535.0 if values.max() > 255 else 255.0
        if image.mode == "F":
            low = float(values.min())
            high = float(values.max())
        values = (values - low) / max(high - low, 1e-30) * 255.0
        return Image.fromarray(np.clip(values.round(), 0, 255).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def picture_features(copies: AnyArray) -> AnyArray:
    """Return the features of small copies, in groups.

    Shapes: copies (n, SIDE, SIDE, 3); returns (n, LENGTH).
    """
    n = len(copies)
    colours = copies.astype(np.float32) / np.float32(255.0)
    grey = colours @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    tint = _pooled(colours[..., [0, 2]] - grey[..., None], 4)
    orientations, strength = _orientations(_pooled(grey, 32))
    cells = _pooled(orientations[..., ::2] + orientations[..., 1::2], 4)
    one_more_each_side = ((0, 0), (1, 1), (1, 1), (0, 0))
    around = np.pad(cells, one_more_each_side, mode="edge")
    windows = [around[:, i : i + 4, j : j + 4] for i in range(3) for j in range(3)]
    near = sum(windows) / 9.0
    cells = cells / np.sqrt(np.square(near).sum(axis=3, keepdims=True) + 1e-5)
    whole = np.sqrt(orientations.mean(axis=(1, 2)) / (strength[:, None] + 1e-4))
    shares = np.sqrt(_histogram(_pooled(colours, 32)))
    pieces = np.array(
        [[*_pieces(*pair)] for pair in zip(colours, grey, strict=True)], dtype=np.float32
    )
    groups = (_pooled(grey, 8), tint, cells, whole, shares, np.c_[np.sqrt(strength), pieces])
    # Rounded, so that the tints of a grey picture are 0.
    return (
        np.concatenate([group.reshape(n, -1) for group in groups], axis=1)
        .astype(np.float32)
        .round(4)
    )


def _pooled(values: AnyArray, side: int) -> AnyArray:
    """Return the means of blocks, so that pictures have `side` rows and columns.

    Shapes: values (n, s, s, ...).
    """
    n, size = values.shape[:2]
    return values.reshape(n, side, size // side, side, size // side, *values.shape[3:]).mean(
        axis=(2, 4)
    )


def _orientations(grey: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return how strong gradients of 16 orientations are, and their mean strength.

    A gradient is shared between the two nearest orientations.
    """
    padded = np.pad(grey, ((0, 0), (1, 1), (1, 1)), mode="edge")
    down, right = np.gradient(padded, axis=(1, 2))
    down = down[:, 1:-1, 1:-1]
    right = right[:, 1:-1, 1:-1]
    strength = np.hypot(down, right)
    place = np.arctan2(down, right) % np.pi * (16 / np.pi)
    apart = np.abs(place[..., None] - np.arange(16))
    share = np.clip(1.0 - np.minimum(apart, 16 - apart), 0.0, None)
    return strength[..., None] * share, strength.mean(axis=(1, 2))


def _histogram(colours: AnyArray) -> AnyArray:
    """Return how frequent 27 colours are, shape (n, 27).

    Each pixel is shared between the nearest of them.
    """
    levels = np.array([0.0, 0.5, 1.0], dtype=np.float32)
    shares = np.clip(
        1.0 - 2.0 * np.abs(colours.reshape(len(colours), -1, 3, 1) - levels),
        0.0,
        None,
    )
    pairs = shares[:, :, 0, :, None] * shares[:, :, 1, None, :]
    pairs = pairs.reshape(*pairs.shape[:2], 9)
    triples = np.einsum("npk,npl->nkl", pairs, shares[:, :, 2])
    return triples.reshape(len(colours), 27) / shares.shape[1]


def _pieces(colours: AnyArray, grey: AnyArray) -> Iterator[float]:
    """Yield brightness, and how a picture stands out from its border.

    That is in how many pieces, how much, and in which colour.
    """
    edges = [colours[0], colours[-1], colours[:, 0], colours[:, -1]]
    border = np.median(np.concatenate(edges), axis=0)
    apart = np.abs(colours - border).max(axis=2)
    yield from (grey.mean(), grey.std(), np.sqrt(apart.mean()))
    for least in (0.15, 0.35):
        inside = apart > least
        sizes = np.bincount(label(inside)[0].ravel())[1:]
        yield from (np.sqrt(np.sum(sizes >= FEWEST_PIXELS)), np.sqrt(inside.mean()))
    out = colours[apart >= 0.5 * max(apart.max(), 0.1)]
    yield from (out.mean(axis=0) - border if len(out) else np.zeros(3))


def read_pictures(series: pd.Series, folder: str) -> tuple[AnyArray, list[str]]:
    """Return features (n, LENGTH), and what is wrong with each cell, or "".

    Features are missing where there is no picture.
    """
    matrix = np.full((len(series), LENGTH), np.nan, dtype=np.float32)
    faults = [""] * len(series)
    for row, features in _each(series, folder, _features):
        if isinstance(features, str):
            faults[row] = features
        else:
            matrix[row] = features
    return matrix, faults


def small_copies(series: pd.Series, folder: str) -> pd.Series:
    """Return records of names and small copies, of which the same features are made."""
    kept: list[dict[str, Any] | None] = [None] * len(series)
    for row, copy in _each(series, folder, small_copy):
        file = io.BytesIO()
        if not isinstance(copy, str):
            Image.fromarray(copy).save(file, "PNG")
        kept[row] = {"bytes": file.getvalue(), "path": name_of(series.iat[row])}
    return pd.Series(kept, index=series.index, dtype=object)


def _each(series: pd.Series, folder: str, read: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """Yield what a function makes of each picture, on all cores.

    Nothing outside the folder is opened.
    """
    if Image is None:
        raise ValueError(
            f"{series.name!r} holds pictures, which need Pillow: pip install "
            f"pillow, or leave the column out with {option('ignore', series.name)}."
        )
    cells = series.tolist()
    rows = [
        row for row in np.flatnonzero(series.notna()).tolist() if content_of(cells[row]) is not None
    ]
    with (
        warnings.catch_warnings(),
        ThreadPoolExecutor(os.cpu_count()) as pool,
        stage("pictures") as report,
    ):
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for start in range(0, len(rows), AT_A_TIME):
            batch = rows[start : start + AT_A_TIME]
            yield from zip(
                batch,
                pool.map(lambda row: read(_source(cells[row], folder)), batch),
                strict=True,
            )
            report((start + len(batch)) / len(rows))


def picture_notes(
    name: ColumnName,
    series: pd.Series,
    faults: list[str],
    rows: AnyArray,
    n_read: int,
) -> list[str]:
    """Return how many pictures were read, and which cells were not. Shapes: rows (n,)."""
    notes: list[str] = []
    if n_read:
        notes.append(
            f"{name!r}: {counted(n_read, 'picture was', 'pictures were')} read, "
            "as small copies, gradients, colours and pieces."
        )
    for fault, words in FAULTS.items():
        faulty = [row for row, fault_of_row in enumerate(faults) if fault_of_row == fault]
        if not faulty:
            continue
        places = sorted(faulty, key=lambda row: rows[row])
        cells = named_cells((name_of(series.iat[row]), int(rows[row])) for row in places)
        note = f"{name!r}: {counted(len(places), *words)}: {cells}."
        if fault in ("absent", "outside") and len(places) > n_read:
            note += f" Say below which folder they are with {option('pictures', 'FOLDER')}."
        notes.append(note)
    return notes


def preview(content: bytes | Path) -> bytes | None:
    """Return a picture as a PNG that any browser shows, None if it cannot be read."""
    if Image is None:
        return None
    source: Path | io.BytesIO
    if isinstance(content, bytes):
        source = io.BytesIO(content)
    else:
        source = content
    picture = _seen(source)
    if isinstance(picture, str):
        return None
    picture.thumbnail((PREVIEW, PREVIEW))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
