"""Tables in SQLite (and DuckDB, where it is installed): read, and written beside the old one."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import fill
from transduce.app.cli.app import app
from transduce.app.tables import files
from transduce.app.tables.databases import (
    SqliteDatabase,
    database_address,
    is_database,
    largest_table,
)
from transduce.app.tables.layout import LayoutRequest
from transduce.core.words import OptionError


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "lab.db"
    frame = pd.DataFrame(
        {
            "größe": np.arange(60.0),
            "who": ["a", "b", "c"] * 20,
            "price": [2.0 * n if n % 3 else None for n in range(60)],
        }
    )
    with sqlite3.connect(path) as connection:
        frame.to_sql("houses", connection, index=False)
    connection.close()
    return path


def contents(path):
    """Return all rows of all tables."""
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
    rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    connection.close()
    return rows


class TestReading:
    def test_a_table_reads_as_from_other_formats(self, database, tmp_path):
        table = files.read(f"{database}::houses")
        table.frame.to_parquet(tmp_path / "houses.parquet")
        pd.testing.assert_frame_equal(
            table.frame, files.read(tmp_path / "houses.parquet").frame, check_dtype=False
        )

    def test_the_only_table_needs_no_name(self, database):
        assert files.read(database).name == f"{database}::houses"

    def test_several_tables_are_named(self, database):
        with sqlite3.connect(database) as connection:
            connection.execute('CREATE TABLE "a ""b""" (x)')
        with pytest.raises(ValueError, match=r"holds 2 tables: name one"):
            files.read(database)
        with pytest.raises(ValueError, match="has no table 'flats', but"):
            files.read(f"{database}::flats")
        assert list(files.read(f'{database}::a "b"').frame.columns) == ["x"]

    def test_a_sheet_is_a_table(self, database):
        assert files.read(database).original.sheets == []
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE empty (x)")
        assert largest_table(database) == "houses"
        table = files.read(database, sheet="houses")
        assert (table.name, table.flags) == (f"{database}::houses", {})
        assert table.original.sheets == ["houses", "empty"]
        with pytest.raises(ValueError, match="names its table already: leave out sheet"):
            files.read(f"{database}::houses", sheet="empty")

    def test_a_file_of_another_kind(self, tmp_path):
        path = tmp_path / "x.db"
        path.write_bytes(b"no database at all, but long enough to look at it" * 40)
        with pytest.raises(ValueError, match="no SQLite database"):
            files.read(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no file"):
            files.read(tmp_path / "x.db")
        assert list(tmp_path.iterdir()) == []


class TestWriting:
    def run(self, *words):
        return CliRunner().invoke(app, list(map(str, words)))

    def test_new_columns_go_into_a_new_table(self, database):
        before = contents(database)["houses"]
        done = self.run("fill", f"{database}::houses", "--target", "price", "--method", "ridge")
        assert done.exit_code == 0, done.output
        after = contents(database)
        assert after["houses"] == before
        assert len(after["houses_filled"]) == 60
        columns = files.read(f"{database}::houses_filled").frame.columns
        assert "price_filled" in columns

    def test_an_existing_table_is_replaced_only_by_force(self, database):
        words = ("draw", f"{database}::houses", "--target", "price", "--number", 3, "--seed", 1)
        assert self.run(*words).exit_code == 0
        again = self.run(*words)
        assert again.exit_code == 2
        assert "has a table 'houses_draw' already" in again.output
        assert self.run(*words, "--force").exit_code == 0

    def test_the_table_itself_is_never_changed(self, database):
        before = contents(database)
        words = ("draw", f"{database}::houses", "--target", "price", "--number", 3, "--force")
        done = self.run(*words, "--out", f"{database}::Houses")
        assert done.exit_code == 2
        assert "never changed" in done.output
        assert contents(database) == before

    def test_a_failure_leaves_the_database_as_it_was(self, database, monkeypatch):
        import transduce.app.tables.databases as module

        before = contents(database)

        def fail(value):
            raise MemoryError

        monkeypatch.setattr(module, "_sqlite_value", fail)
        table = files.read(f"{database}::houses")
        with pytest.raises(MemoryError):
            files.write(f"{database}::new", table, pd.DataFrame({"x": range(60)}))
        with pytest.raises(MemoryError):
            files.write(database.with_name("other.db::new"), table, pd.DataFrame({"x": range(60)}))
        assert contents(database) == before
        assert not database.with_name("other.db").exists()

    def test_another_database_is_as_private_as_the_first(self, database):
        database.chmod(0o600)
        table = files.read(f"{database}::houses")
        other = database.with_name("other.sqlite")
        files.write(f"{other}::houses", table, pd.DataFrame({"x": range(60)}))
        assert other.stat().st_mode & 0o777 == 0o600


def test_duckdb_where_it_is_installed(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "lab.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS x, range * 2 AS y FROM range(5)")
    table = files.read(f"{path}::t")
    files.write(f"{path}::u", table, pd.DataFrame({"z": range(5)}))
    assert files.read(f"{path}::u").frame["z"].tolist() == [0, 1, 2, 3, 4]


def test_files_of_another_kind_are_no_databases(tmp_path, database):
    (tmp_path / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0 pictures")
    assert is_database(database)
    assert not is_database(tmp_path / "Thumbs.db")


def test_ordinary_files_are_no_databases():
    assert database_address("table.csv") is None
    assert database_address("a::b.csv") is None
    assert database_address("a.db::b").table == "b"


def test_a_report_on_a_private_database_is_private(tmp_path):
    path = tmp_path / "private.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        frame = pd.DataFrame({"x": range(40), "y": [None if n % 3 else 2.0 * n for n in range(40)]})
        frame.to_sql("lab", connection, index=False)
    path.chmod(0o600)
    table = files.read(f"{path}::lab")
    assert table.files == (path,)
    assert fill(table, "y", method="ridge").source.origin == (path,)


def test_rows_of_all_tables_are_counted_once_for_a_file(tmp_path, monkeypatch):
    """The page asks again and again; counting takes seconds where tables have millions of rows."""
    path = tmp_path / "a.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for name, n_rows in (("few", 2), ("many", 5)):
            pd.DataFrame({"x": range(n_rows)}).to_sql(name, connection, index=False)
    counted = []
    count = SqliteDatabase.count_rows

    def count_rows(database, name):
        counted.append(name)
        return count(database, name)

    monkeypatch.setattr(SqliteDatabase, "count_rows", count_rows)
    assert [largest_table(path) for _ in range(3)] == ["many"] * 3
    assert counted == ["few", "many"]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pd.DataFrame({"x": range(5000)}).to_sql("most", connection, index=False)
    assert largest_table(path) == "most"


def test_a_database_has_no_rows_beside_its_table(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as database:
        pd.DataFrame({"x": [1, 2]}).to_sql("t", database, index=False)
    database.close()
    with pytest.raises(OptionError, match="no rows beside its table"):
        files.read(f"{tmp_path / 'a.db'}::t", layout=LayoutRequest(header=2))
