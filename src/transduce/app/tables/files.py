"""Tables in files: reading the usual formats, and writing new columns beside the old ones."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from transduce.app.tables.arrow_tables import FEATHER, PARQUET
from transduce.app.tables.column_names import check_once
from transduce.app.tables.databases import (
    check_table_free,
    database_address,
    read_database,
    write_database,
)
from transduce.app.tables.delimited import CSV, DELIMITERS, TSV
from transduce.app.tables.formats import Format, Table, split_ending, unpacked_size
from transduce.app.tables.json_tables import JSON, JSON_LINES
from transduce.app.tables.layout import AUTOMATIC, LayoutRequest
from transduce.app.tables.other_kinds import entries_of, refuse_other_kinds
from transduce.app.tables.read_only import (
    ODS,
    OLE_SIGNATURE,
    SAS,
    SAS_TRANSPORT,
    SPSS,
    STATA,
    XLS,
    XLSB,
    refuse_password,
)
from transduce.app.tables.workbook import EXCEL
from transduce.core.computing import collection_paused
from transduce.core.files import check_free, whole_file
from transduce.core.words import OptionError, option

# A format joins here, by one entry.
WRITTEN: tuple[Format, ...] = (CSV, TSV, PARQUET, EXCEL, JSON_LINES, JSON, FEATHER)
# Formats that are only read; archives whose entries others have too come before those.
READ_ONLY: tuple[Format, ...] = (XLSB, ODS, XLS, STATA, SPSS, SAS, SAS_TRANSPORT)
FORMATS: tuple[Format, ...] = (*READ_ONLY, *WRITTEN)
# A file that says that it unpacks to more than so many bytes, and so many times its own size, is
# not read: no table does.
MOST_UNPACKED = 10**8
MOST_PACKED_TIMES = 200


# ------------------------------------------------------------------------------------------- names


def all_endings() -> list[str]:
    """Return the endings of all formats."""
    return [ending for table_format in FORMATS for ending in table_format.endings]


def format_named_by(path: str | Path) -> Format | None:
    """Return the format that the name of a file says, None if it says nothing."""
    for table_format in FORMATS:
        if table_format.is_named_by(path):
            return table_format
    return None


def kind_of(path: str | Path) -> tuple[str | None, str]:
    """Return the kind that a file's name says (None if it says nothing) and how it is packed."""
    table_format = format_named_by(path)
    packing = split_ending(path)[1]
    if table_format is None:
        return None, packing
    return table_format.name, packing


def is_table_name(path: str | Path) -> bool:
    """Return whether the name of a file says that it holds tables which can be read."""
    return database_address(path) is not None or kind_of(path)[0] is not None


def named_after(path: str | Path, word: str, ending: str | None = None) -> Path:
    """Return a file beside a table, NAME-word, with the table's ending or another one.

    Beside a table of a database it is another table, NAME_word.
    """
    address = database_address(path)
    if address is not None and ending is None:
        return Path(str(address.beside(word)))
    path = Path(path)
    if address is not None and address.table:
        path = address.path.with_name(f"{address.path.stem}-{address.table}{address.path.suffix}")
    kind, packing = kind_of(path)
    table_ending = path.suffix
    if packing:
        table_ending = "".join(path.suffixes[-2:])
    if not ending:
        ending = table_ending if kind else ".csv"
        instead = _format_called(kind).written_as if kind else ""
        ending = instead or ending
    return path.with_name(f"{path.name.removesuffix(table_ending)}-{word}{ending}")


def check_name_free(path: str | Path, *, force: bool) -> None:
    """Raise an error if there is such a file already, or such a table in a database."""
    check_free(path, force=force)
    address = database_address(path)
    if address is not None:
        check_table_free(address, force=force)


def out_kind(path: str | Path, default: str) -> tuple[str, str]:
    """Return kind and packing of a file to be written; a ValueError if its name says nothing."""
    if str(path) == "-":
        return default, ""
    if database_address(path) is not None:
        return "database", ""
    kind, packing = kind_of(path)
    if kind is None:
        written = [table_format for table_format in FORMATS if not table_format.written_as]
        endings = [ending for table_format in written for ending in table_format.endings]
        raise ValueError(
            f"{path} has an unknown format: let its name end in {', '.join(endings)} (.gz or .zip)."
        )
    instead = _format_called(kind).written_as
    if instead:
        raise ValueError(
            f"{path}: such files are read, not written; let its name end in {instead}."
        )
    return kind, packing


def _format_called(kind: str) -> Format:
    return next(table_format for table_format in FORMATS if table_format.name == kind)


# ------------------------------------------------------------------------------------------ memory


def memory_needed(path: str | Path) -> int:
    """Return a rough estimate of the bytes it takes to read and fill a file."""
    table_format = format_named_by(path) or CSV
    packing = split_ending(path)[1]
    return table_format.memory_needed(path, packed=packing != "")


def memory_free() -> int | None:
    """Return the bytes of memory that are free, None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable"))
        return int(available.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return None


def check_memory(path: str | Path) -> None:
    """Raise a MemoryError if a file is likely to need more memory than there is.

    It is also raised for a file that unpacks to far more than a table would.
    """
    size = Path(path).stat().st_size
    unpacked = unpacked_size(path)
    if unpacked > MOST_UNPACKED and unpacked > MOST_PACKED_TIMES * size:
        raise MemoryError(
            f"{path} of {size / 1e6:,.1f} MB says that it unpacks to {unpacked / 1e6:,.0f} MB, "
            "far more than a table does: look at what it holds, "
            f"or try it anyway with {option('force', True)}."
        )
    needed = memory_needed(path)
    free = memory_free()
    if free is not None and needed > free:
        raise MemoryError(
            f"{path} needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are "
            "free: drop columns or rows, "
            f"or try it anyway with {option('force', True)}."
        )


# ----------------------------------------------------------------------------------------- reading


def read(
    path: str | Path,
    *,
    sheet: str | None = None,
    force: bool = False,
    layout: LayoutRequest = AUTOMATIC,
) -> Table:
    """Read a table from a file, or from standard input if the path is "-"."""
    address = database_address(path)
    if address is not None:
        if sheet is not None and address.table:
            raise OptionError(f"{path} names its table already: leave out {option('sheet')}")
        if sheet is not None:
            address = replace(address, table=sheet)
        if replace(layout, decimal="") != AUTOMATIC:
            raise OptionError(f"{path} {_no_rows_beside()}")
        return read_database(address).divided()
    path = Path(path)
    if str(path) == "-":
        name = "standard input"
        content = sys.stdin.buffer.read()
    else:
        name = str(path)
        content = _file_content(path, force=force)
    try:
        with collection_paused():
            table = _read_content(content, path, name, sheet, layout)
    except OptionError as error:
        raise OptionError(f"{name} {_end_of_sentence(error)}") from error
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        raise ValueError(f"{name} {_end_of_sentence(error)}") from error
    except (KeyError, RuntimeError) as error:  # what damaged files lead to
        raise ValueError(
            f"{name} cannot be read: it is damaged, encrypted or not what its name says."
        ) from error
    check_once(table.frame.columns, name)
    return table.divided()


def _file_content(path: Path, *, force: bool) -> bytes:
    """Return the bytes of a file that is there, and not too large."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the table in it.")
    if not force:
        check_memory(path)
    try:
        return path.read_bytes()
    except PermissionError:
        raise PermissionError(
            f"{path} cannot be read: you have no permission to. Ask its owner, or copy it."
        ) from None


def _read_content(
    content: bytes, path: Path, name: str, sheet: str | None, layout: LayoutRequest
) -> Table:
    """Return the table in the bytes of a file."""
    table_format, content = _recognize(content, format_named_by(path))
    if sheet is not None and not table_format.has_sheets:
        raise OptionError(f"is not an Excel file: leave out {option('sheet')}")
    if replace(layout, decimal="") != AUTOMATIC and not table_format.has_layout:
        raise OptionError(_no_rows_beside())
    if table_format.has_layout:
        frame, original = table_format.read(content, sheet, layout)
    else:
        frame, original = table_format.read(content, sheet)
    return Table(frame, original, name, sheet, layout)


def _no_rows_beside() -> str:
    return f"has no rows beside its table: leave out {option('header')} and {option('rows')}"


def _end_of_sentence(error: Exception) -> str:
    """Return an error as the end of a sentence that begins with the name of the file."""
    if isinstance(error, csv.Error | UnicodeError):
        return "is not a table of delimited text."
    lines = str(error).strip().splitlines()
    text = next(iter(lines), type(error).__name__).rstrip(".")
    if text[:1].islower():
        return f"{text}."
    return f"cannot be read: {text}."


def _recognize(content: bytes, named: Format | None) -> tuple[Format, bytes]:
    """Return the format of a table, which its name may say, and its bytes, unpacked."""
    if content.startswith(OLE_SIGNATURE):
        refuse_password(content)
        return XLS, content
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except EOFError as error:
            raise ValueError(
                "cannot be read, as it was cut off: copy or download it again"
            ) from error
    elif content.startswith(b"PK\x03\x04"):
        with _opened_archive(content) as archive:
            entries = entries_of(archive)
            for table_format in FORMATS:
                if table_format.archive_entry and table_format.archive_entry in entries:
                    return table_format, content
            if len(entries) != 1:
                listed = ", ".join(entries[:3])
                raise ValueError(f"holds {len(entries)} files ({listed}): pack one table alone")
            content = archive.read(entries[0])
            named = format_named_by(entries[0]) or named
    for table_format in FORMATS:
        if table_format.signature and content.startswith(table_format.signature):
            return table_format, content
    if not content.strip():
        raise ValueError("is empty: there is no table in it")
    refuse_other_kinds(content)
    is_sheet = named is not None and (named.archive_entry or named is XLS)
    if is_sheet and any(sign.encode() in content.partition(b"\n")[0] for sign in DELIMITERS):
        named = None  # delimited text that was called .xls
    if named is not None:
        return named.refined(content), content
    for table_format in FORMATS:
        if table_format.recognizes(content):
            return table_format, content
    return CSV, content


def _opened_archive(content: bytes) -> zipfile.ZipFile:
    """Return an archive; a ValueError if it is not whole."""
    try:
        return zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise ValueError(
            "cannot be read, as it is damaged or was cut off: copy or download it again"
        ) from error


# ----------------------------------------------------------------------------------------- writing


def check_fits(path: str | Path, table: Table, n_more: int = 10) -> None:
    """Raise a ValueError if a file of this name cannot hold the table and so many more columns."""
    kind, _packing = out_kind(path, table.kind)
    if kind != "database":  # which holds any table
        _format_called(kind).check_fits(path, table, n_more)


def write(
    path: str | Path,
    table: Table,
    new: pd.DataFrame,
    *,
    force: bool = False,
    like: Iterable[Path] = (),
) -> None:
    """Write a table with new columns after its own, in one piece.

    The file is as private as the table's own and those in `like`.
    """
    address = database_address(path)
    if address is not None:
        write_database(address, table, new, force=force)
        return
    kind, packing = out_kind(path, table.kind)
    if kind == "database" or _format_called(kind).written_as:  # to standard output
        kind = "csv"
    table_format = _format_called(kind)
    with whole_file(path, force=force, like=[*table.files, *like]) as file:
        if table_format.writes_in_order and not packing:
            table_format.write(file, table, new)
            return
        buffer = io.BytesIO()
        table_format.write(buffer, table, new)
        content = buffer.getvalue()
        if packing == ".zip":
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(Path(path).stem, content)
        elif packing == ".gz":
            file.write(gzip.compress(content, mtime=0))
        else:
            file.write(content)
