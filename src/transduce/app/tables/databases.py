"""Tables in databases of one file, SQLite or DuckDB, addressed as ``file.db::table``.

A table is read as it is; new columns go into a new table beside it, and the old one never changes.
DuckDB is used if it is installed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from transduce.app.tables.formats import Original, Table, plain_cell
from transduce.app.tables.whole_numbers import with_all_digits
from transduce.core.files import open_to_append
from transduce.core.words import option

SEPARATOR = "::"
ENDINGS = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
MOST_NAMED = 8  # tables in a message
SIGNATURE = b"SQLite format 3\0"
LARGEST_INTEGER = 2**63 - 1  # that SQLite stores


@dataclass(frozen=True)
class DatabaseAddress:
    """A table in a database: its file, its name ("" if there is only one), and what kind it is."""

    path: Path
    table: str
    kind: str

    def __str__(self) -> str:
        if not self.table:
            return str(self.path)
        return f"{self.path}{SEPARATOR}{self.table}"

    def beside(self, word: str) -> DatabaseAddress:
        """Return the address of a table beside this one, NAME_word."""
        return DatabaseAddress(self.path, f"{self.table or self.path.stem}_{word}", self.kind)


@dataclass(frozen=True, eq=False)
class DatabaseOriginal(Original):
    """A table as a database has it."""

    address: DatabaseAddress
    tables: tuple[str, ...] = ()  # of the database, the one that was read first
    kind: str = "database"

    @property
    def sheets(self) -> list[str]:
        """The tables to choose from; none if there is no choice."""
        if len(self.tables) == 1:
            return []
        return list(self.tables)

    @property
    def sheets_are(self) -> str:
        """What each of them is called."""
        return "table"


def database_address(path: str | Path) -> DatabaseAddress | None:
    """Return the address of a table in a database; None if a name is that of an ordinary file."""
    file, _separator, table = str(path).partition(SEPARATOR)
    kind = ENDINGS.get(Path(file).suffix.lower())
    if kind is None:
        return None
    return DatabaseAddress(Path(file), table, kind)


def is_database(path: Path) -> bool:
    """Return whether a file is named as a database and begins as one; a thumbnail file does not."""
    address = database_address(path)
    if address is None or address.kind == "duckdb":
        return address is not None
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


def read_database(address: DatabaseAddress) -> Table:
    """Read a table of a database; a ValueError names the tables to choose from."""
    if not address.path.exists():
        raise FileNotFoundError(f"There is no file {address.path}.")
    with _opened(address, write=False) as database:
        names = database.table_names()
        name = _chosen_table(address, names)
        frame = database.read(name)
    named = DatabaseAddress(address.path, name, address.kind)
    others = [other for other in names if other != name]
    original = DatabaseOriginal(named, (name, *others))
    return Table(frame, original, str(named))


def largest_table(path: Path) -> str | None:
    """Return the table with most rows of a database of several; None where there is no choice."""
    address = database_address(path)
    if address is None or address.table or not path.is_file():
        return None
    about = path.stat()
    return _largest_table(address, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=100)
def _largest_table(address: DatabaseAddress, changed_at: int, size: int) -> str | None:
    """Return the same; rows are counted once, as long as the file stays as it is."""
    del changed_at, size
    with _opened(address, write=False) as database:
        names = database.table_names()
        if len(names) < 2:
            return None
        return max(names, key=database.count_rows)


def check_table_free(address: DatabaseAddress, *, force: bool) -> None:
    """Raise a FileExistsError if a database has such a table already, which is not to be replaced.

    Of a table without a name nothing is known.
    """
    if force or not address.table or not address.path.is_file():
        return
    with _opened(address, write=False) as database:
        is_taken = address.table in database.table_names()
    if is_taken:
        raise FileExistsError(
            f"{address.path} has a table {address.table!r} already: name another one, or "
            f"replace it with {option('force', True)}."
        )


def write_database(
    address: DatabaseAddress, table: Table, new: pd.DataFrame, *, force: bool
) -> None:
    """Write a table with new columns into a database, as a new table; all of it or nothing."""
    if not address.table:
        raise ValueError(
            f"{address.path} is a database: name the new table, such as "
            f"{address.path}{SEPARATOR}filled."
        )
    source = table.original
    if isinstance(source, DatabaseOriginal) and _same(source.address, address):
        raise FileExistsError(
            f"{address} is the table itself, which is never changed: name another one."
        )
    check_table_free(address, force=force)
    is_new = not address.path.exists()
    if is_new and address.kind == "sqlite":
        file, _ = open_to_append(address.path, table.files)  # as private as the table
        file.close()
    try:
        with _opened(address, write=True) as database:
            database.replace(address.table, table.joined_with(new))
    except BaseException:
        if is_new:
            address.path.unlink(missing_ok=True)
        raise


def _same(one: DatabaseAddress, other: DatabaseAddress) -> bool:
    is_same_file = one.path.resolve() == other.path.resolve()
    return is_same_file and one.table.casefold() == other.table.casefold()


def _chosen_table(address: DatabaseAddress, names: list[str]) -> str:
    """Return the table that is named, or the only one."""
    if address.table in names:
        return address.table
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    if address.table:
        raise ValueError(f"{address.path} has no table {address.table!r}, but {listed or 'none'}.")
    if len(names) == 1:
        return names[0]
    if not names:
        raise ValueError(f"{address.path} holds no table.")
    raise ValueError(
        f"{address.path} holds {len(names)} tables: name one, such as "
        f"{address.path}{SEPARATOR}{names[0]} ({listed})."
    )


# -------------------------------------------------------------------------------------- databases


class SqliteDatabase:
    """A connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def table_names(self) -> list[str]:
        """Return the tables and views."""
        rows = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return [name for (name,) in rows]

    def count_rows(self, name: str) -> int:
        """Return how many rows a table has."""
        (n_rows,) = self.connection.execute(f"SELECT COUNT(*) FROM {_quoted(name)}").fetchone()
        return int(n_rows)

    def read(self, name: str) -> pd.DataFrame:
        """Return a table as a frame."""
        cursor = self.connection.execute(f"SELECT * FROM {_quoted(name)}")
        columns = [described[0] for described in cursor.description]
        cells = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
        named = dict(zip(columns, cells, strict=True))
        frame = pd.DataFrame({key: pd.Series(list(column)) for key, column in named.items()})
        return with_all_digits(frame, cells.__getitem__)

    def replace(self, name: str, frame: pd.DataFrame) -> None:
        """Make a table of a frame, in one transaction."""
        columns = [_quoted(str(column)) for column in frame.columns]
        cells = [[_sqlite_value(cell) for cell in frame[column]] for column in frame.columns]
        places = ", ".join("?" * len(columns))
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")
            self.connection.execute(f"CREATE TABLE {_quoted(name)} ({', '.join(columns)})")
            self.connection.executemany(
                f"INSERT INTO {_quoted(name)} VALUES ({places})", zip(*cells, strict=True)
            )
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise


class DuckDatabase:
    """A connection to DuckDB."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def table_names(self) -> list[str]:
        """Return the tables and views."""
        rows = self.connection.execute(
            "SELECT table_name FROM information_schema.tables ORDER BY table_name"
        )
        return [name for (name,) in rows.fetchall()]

    def count_rows(self, name: str) -> int:
        """Return how many rows a table has."""
        (n_rows,) = self.connection.execute(f"SELECT COUNT(*) FROM {_quoted(name)}").fetchone()
        return int(n_rows)

    def read(self, name: str) -> pd.DataFrame:
        """Return a table as a frame."""
        frame: pd.DataFrame = self.connection.execute(f"SELECT * FROM {_quoted(name)}").df()
        return frame

    def replace(self, name: str, frame: pd.DataFrame) -> None:
        """Make a table of a frame, in one transaction."""
        self.connection.register("transduce_frame", frame)
        self.connection.execute(
            f"CREATE OR REPLACE TABLE {_quoted(name)} AS SELECT * FROM transduce_frame"
        )
        self.connection.unregister("transduce_frame")


@contextlib.contextmanager
def _opened(address: DatabaseAddress, *, write: bool) -> Iterator[SqliteDatabase | DuckDatabase]:
    """Open a database while the block runs; what is wrong with it becomes a sentence."""
    if address.kind == "duckdb":
        with _opened_duckdb(address, write=write) as database:
            yield database
        return
    mode = "rwc" if write else "ro"
    where = f"file:{quote(str(address.path.absolute()))}?mode={mode}"
    try:
        connection = sqlite3.connect(where, uri=True, isolation_level=None)
        try:
            yield SqliteDatabase(connection)
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        raise ValueError(f"{address.path} cannot be used as a database: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"{address.path} is no SQLite database, or it is damaged or encrypted: {error}."
        ) from error


@contextlib.contextmanager
def _opened_duckdb(address: DatabaseAddress, *, write: bool) -> Iterator[DuckDatabase]:
    try:
        import duckdb
    except ImportError as error:
        raise ValueError(
            f"{address.path} is a DuckDB database: install duckdb (pip install duckdb), or write "
            "the table to Parquet."
        ) from error
    try:
        connection = duckdb.connect(str(address.path), read_only=not write)
        try:
            yield DuckDatabase(connection)
        finally:
            connection.close()
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        raise ValueError(f"{address.path} cannot be used: {first_line}.") from error


def _quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def _sqlite_value(value: Any) -> Any:
    """Return a value as SQLite stores it."""
    value = plain_cell(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return str(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, int | float | str | bytes | None):
        return value
    return str(value)
