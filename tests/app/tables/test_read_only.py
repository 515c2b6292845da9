"""Older spreadsheets and files of statistics programs: the same table, and what cannot be read."""

from __future__ import annotations

import sys
import zipfile
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from typer.testing import CliRunner

from transduce import fill
from transduce.app.cli.app import app
from transduce.app.tables import files
from transduce.app.tables.read_only import OLE_SIGNATURE

FRAME = pd.DataFrame(
    {
        "size": np.arange(40.0) / 4,
        "kind": ["a", "b"] * 20,
        "price": [3.5 * n if n % 3 else np.nan for n in range(40)],
    }
)


def write_ods(path, rows):
    """Write rows as the smallest file that is an OpenDocument spreadsheet."""

    def cell(value):
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return "<table:table-cell/>"
        if isinstance(value, str):
            text = f"<text:p>{escape(value)}</text:p>"
            return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    names = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{names}:office:1.0" '
        f'xmlns:table="{names}:table:1.0" xmlns:text="{names}:text:1.0">'
        f'<office:body><office:spreadsheet><table:table table:name="data">{lines}'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{manifest}"/>')


def write_table(path):
    rows = [FRAME.columns.tolist(), *FRAME.to_numpy(dtype=object).tolist()]
    if path.suffix == ".ods":
        write_ods(path, rows)
    elif path.suffix == ".dta":
        FRAME.to_stata(path, write_index=False)
    elif path.suffix == ".sav":
        pyreadstat.write_sav(FRAME, str(path))
    elif path.suffix == ".xpt":
        pyreadstat.write_xport(FRAME, str(path), file_format_version=5)
    else:
        FRAME.to_csv(path, index=False)


@pytest.mark.parametrize("ending", [".ods", ".dta", ".sav", ".xpt"])
def test_the_same_table_gives_the_same_answers(tmp_path, ending):
    path = tmp_path / f"houses{ending}"
    write_table(path)
    write_table(tmp_path / "houses.csv")
    table = files.read(path)
    assert table.frame.columns.tolist() == FRAME.columns.tolist()
    ours = fill(table, "price", method="ridge").new
    expected = fill(files.read(tmp_path / "houses.csv"), "price", method="ridge").new
    pd.testing.assert_frame_equal(ours, expected)


def test_titles_above_an_opendocument_table_are_left_out(tmp_path):
    rows = [["Study", None, None], [None] * 3, FRAME.columns.tolist()]
    write_ods(tmp_path / "a.ods", [*rows, *FRAME.to_numpy(dtype=object).tolist()])
    table = files.read(tmp_path / "a.ods")
    assert len(table.frame) == 40
    assert any("above the names" in note for note in table.notes)


def test_value_labels_are_kept(tmp_path):
    frame = pd.DataFrame({"sex": pd.Categorical(["m", "f", None]), "x": [1.0, 2.0, 3.0]})
    frame.to_stata(tmp_path / "a.dta", write_index=False)
    table = files.read(tmp_path / "a.dta")
    assert table.frame["sex"].tolist() == ["m", "f", None]
    assert any("'sex'" in note for note in table.notes)
    coded = pd.DataFrame({"sex": [1.0, 2.0], "x": [1.0, 2.0]})
    labels = {"sex": {1.0: "male", 2.0: "female"}}
    pyreadstat.write_sav(coded, str(tmp_path / "a.sav"), variable_value_labels=labels)
    assert files.read(tmp_path / "a.sav").frame["sex"].tolist() == ["male", "female"]


@pytest.mark.parametrize(("ending", "written"), [(".ods", ".xlsx"), (".dta", ".csv")])
def test_the_filled_table_has_a_format_that_is_written(tmp_path, ending, written):
    path = tmp_path / f"houses{ending}"
    write_table(path)
    words = ["fill", str(path), "--target", "price", "--method", "ridge", "--quiet"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    filled = files.read(tmp_path / f"houses-filled{written}")
    assert "price_filled" in filled.frame.columns
    refused = CliRunner().invoke(app, [*words, "--out", str(tmp_path / f"b{ending}")])
    assert refused.exit_code == 2
    assert f"end in {written}" in " ".join(refused.output.split())


class TestRefusals:
    def test_a_password(self, tmp_path):
        content = OLE_SIGNATURE + b"\0" * 100 + "EncryptedPackage".encode("utf-16-le")
        for name in ("a.xlsx", "a.xls"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ValueError, match="protected by a password"):
                files.read(tmp_path / name)

    @pytest.mark.parametrize("ending", [".xls", ".ods", ".dta", ".sav", ".sas7bdat", ".xpt"])
    def test_a_file_of_another_kind(self, tmp_path, ending):
        path = tmp_path / f"a{ending}"
        path.write_bytes(b"this is a text and nothing else\n" * 30)
        with pytest.raises(ValueError, match=rf"{path.name} is no .* file, or is damaged"):
            files.read(path)

    @pytest.mark.parametrize(("ending", "library"), [(".sav", "pyreadstat"), (".ods", "calamine")])
    def test_a_library_that_is_not_installed(self, tmp_path, monkeypatch, ending, library):
        path = tmp_path / f"houses{ending}"
        write_table(path)
        module = {"pyreadstat": "pyreadstat", "calamine": "python_calamine"}[library]
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(
            ValueError, match=f"which needs .*{library}: pip install .*{library}, or"
        ):
            files.read(path)

    def test_no_permission(self, tmp_path, monkeypatch):
        path = tmp_path / "a.csv"
        path.write_text("a,b\n1,2\n")

        def refuse(self):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(path), "read_bytes", refuse)
        with pytest.raises(PermissionError, match="you have no permission"):
            files.read(path)


def test_zeros_of_a_transport_file_are_zeros(tmp_path):
    """ReadStat writes 0 as the least number above 0, and rows are told apart by their contents."""
    frame = pd.DataFrame({"x": [0.0, 1.5, -2.0], "name": ["a", "b", "c"]})
    pyreadstat.write_xport(frame, str(tmp_path / "a.xpt"), file_format_version=5)
    assert files.read(tmp_path / "a.xpt").frame["x"].tolist() == [0.0, 1.5, -2.0]
