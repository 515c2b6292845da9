"""A format joins by one entry in `FORMATS`: reading, writing, names, memory and refusals follow."""

import gzip
import json
from dataclasses import dataclass

import pandas as pd
import pytest

from transduce import fill
from transduce.app.cli import app
from transduce.app.page.workspace import Workspace
from transduce.app.tables import files
from transduce.app.tables.formats import Format, Original, Table


@dataclass(frozen=True, eq=False)
class Blocks(Original):
    """Rows as blocks of ``name=value`` lines."""

    texts: list[str]
    kind: str = "blocks"

    def exact_columns(self, frame):
        return frame.astype(object)

    def notes(self, table):
        return [f"{table.name} has {len(self.texts)} blocks."]


class BlocksFormat(Format):
    """A made-up format: a blank line between rows, a line for each cell."""

    name = "blocks"
    endings = (".blocks",)
    memory_factor = 7
    signature = b"#blocks\n"

    def read(self, content, sheet):
        texts = content.decode().removeprefix("#blocks\n").strip().split("\n\n")
        rows = [dict(line.split("=") for line in text.splitlines()) for text in texts]
        columns = {
            name: pd.to_numeric(column, errors="coerce")
            for name, column in pd.DataFrame(rows).items()
        }
        return pd.DataFrame(columns), Blocks(texts)

    def write(self, file, table, new):
        if isinstance(table.original, Blocks):
            starts = [f"{text}\n" for text in table.original.texts]
        else:
            starts = [""] * len(new)
            new = table.joined_with(new)
        file.write(b"#blocks\n")
        for start, (_, row) in zip(starts, new.iterrows(), strict=True):
            lines = "".join(f"{name}={value}\n" for name, value in row.items())
            file.write(f"{start}{lines}\n".encode())

    def check_fits(self, path, table, n_more):
        if len(table.frame) > 100:
            raise ValueError(f"{path} cannot hold more than 100 blocks.")


@pytest.fixture
def with_blocks(monkeypatch):
    """Register the format, as one entry in the list of formats does."""
    monkeypatch.setattr(files, "FORMATS", (*files.FORMATS, BlocksFormat()))


GIVEN = "#blocks\na=1\nb=007\n\na=2\nb=3.50\n"


@pytest.mark.usefixtures("with_blocks")
def test_a_new_format_is_read_and_written_beside_what_was_given(tmp_path):
    (tmp_path / "t.blocks").write_text(GIVEN)
    table = files.read(tmp_path / "t.blocks")
    assert table.kind == "blocks"
    assert table.frame["b"].tolist() == [7.0, 3.5]
    assert table.notes == [f"{tmp_path / 't.blocks'} has 2 blocks."]
    files.write(tmp_path / "out.blocks", table, pd.DataFrame({"c": ["x", "y"]}))
    written = (tmp_path / "out.blocks").read_text()
    assert written == "#blocks\na=1\nb=007\nc=x\n\na=2\nb=3.50\nc=y\n\n"


@pytest.mark.usefixtures("with_blocks")
def test_a_new_format_is_converted_to_all_others_and_from_them(tmp_path):
    (tmp_path / "t.blocks").write_text(GIVEN)
    table = files.read(tmp_path / "t.blocks")
    new = pd.DataFrame({"c": [5, 6]})
    written = [one for one in files.FORMATS if not one.written_as]
    for ending in (ending for one in written for ending in one.endings):
        files.write(tmp_path / f"out{ending}", table, new)
        other = files.read(tmp_path / f"out{ending}")
        assert other.frame["c"].tolist() == [5, 6], ending
        files.write(tmp_path / f"back{ending}.blocks", other, pd.DataFrame({"d": [8, 9]}))
        back = files.read(tmp_path / f"back{ending}.blocks")
        assert back.frame["b"].tolist() == [7.0, 3.5], ending
        assert back.frame["d"].tolist() == [8, 9], ending
    files.write(tmp_path / "out.jsonl", table, new, force=True)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"a": 2, "b": 3.5, "c": 6}


@pytest.mark.usefixtures("with_blocks")
def test_a_new_format_is_known_packed_by_its_signature_and_by_its_name(tmp_path):
    (tmp_path / "t.blocks.gz").write_bytes(gzip.compress(GIVEN.encode()))
    (tmp_path / "t.unknown").write_text(GIVEN)
    (tmp_path / "t.csv").write_text(GIVEN)
    for name in ("t.blocks.gz", "t.unknown", "t.csv"):
        assert files.read(tmp_path / name).kind == "blocks"
    assert files.kind_of("t.blocks.gz") == ("blocks", ".gz")
    assert files.named_after("t.blocks.gz", "filled").name == "t-filled.blocks.gz"
    (tmp_path / "t.blocks").write_text(GIVEN)
    assert files.memory_needed(tmp_path / "t.blocks") == 7 * len(GIVEN)
    with pytest.raises(ValueError, match=r"let its name end in .*, \.feather, \.blocks \("):
        files.out_kind("t.doc", "csv")
    with pytest.raises(ValueError, match="is not an Excel file"):
        files.read(tmp_path / "t.blocks", sheet="2")


@pytest.mark.usefixtures("with_blocks")
def test_a_new_format_may_refuse_a_table():
    files.check_fits("t.blocks", Table(pd.DataFrame({"a": range(100)}), Original(), "t"))
    with pytest.raises(ValueError, match=r"t\.blocks cannot hold more than 100 blocks"):
        files.check_fits("t.blocks", Table(pd.DataFrame({"a": range(101)}), Original(), "t"))


@pytest.mark.usefixtures("with_blocks")
def test_a_new_format_is_filled_and_listed_on_the_page(tmp_path):
    rows = [f"a={i}\nb={i * i}\ny={'nan' if i % 3 == 0 else 2 * i}" for i in range(30)]
    (tmp_path / "t.blocks").write_text("#blocks\n" + "\n\n".join(rows))
    result = fill(files.read(tmp_path / "t.blocks"), "y", method="ridge")
    assert f"{tmp_path / 't.blocks'} has 30 blocks." in result.notes
    assert "t.blocks" in result.again
    listed = json.dumps(Workspace(tmp_path).tables(), default=str)
    assert "t.blocks" in listed


def test_the_help_of_the_command_line_names_every_format():
    sentence = app.FORMATS_SENTENCE.casefold()
    for table_format in files.FORMATS:
        assert table_format.name in sentence


def test_no_two_formats_share_a_name_an_ending_or_a_signature():
    names = [table_format.name for table_format in files.FORMATS]
    signatures = [one.signature for one in files.FORMATS if one.signature]
    for values in (names, signatures, files.all_endings()):
        assert len(set(values)) == len(values)
