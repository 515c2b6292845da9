"""What a command writes: all of it or nothing, as private as the table, and nothing of anybody else's."""

import errno
import itertools
import json
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce.app.cli import fills
from transduce.app.cli.app import app
from transduce.app.filling import FillResult

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
OUTPUTS = {"t-filled.csv", "report.html", "numbers.json", "fit.transduce"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A small table in a file, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    size = random.normal(size=300)
    price = np.where(random.uniform(size=300) < 0.5, 2.0 * size, np.nan)
    pd.DataFrame({"size": size, "price": price}).round(3).to_csv("t.csv", index=False)
    monkeypatch.setattr(FillResult, "summary", lambda result, **how: {"counts": {}})
    monkeypatch.setattr("transduce.app.filling.result.render_html", str)
    return Path("t.csv")


def fill_with_all_outputs(*more):
    words = ["fill", "t.csv", "--target", "price", "--method", "ridge", "--quiet"]
    words += ["--report", "report.html", "--json", "numbers.json", "--save", "fit.transduce"]
    return CliRunner().invoke(app, [*words, *more])


def names():
    return {path.name for path in Path().iterdir()} - {"t.csv"}


@pytest.mark.parametrize(
    ("call", "error"),
    [("link", OSError(errno.ENOSPC, "full")), ("fsync", KeyboardInterrupt())],
)
def test_all_outputs_or_none(table, monkeypatch, call, error):
    """Whichever write fails, nothing is there, so that the same command can be given again."""
    plain, fitted, fill = getattr(os, call), {}, fills.fill_targets

    def fill_once(source, targets, options):
        fitted[""] = fitted.get("") or fill(source, targets, options)
        return fitted[""]

    monkeypatch.setattr(fills, "fill_targets", fill_once)
    for place in itertools.count():
        counted = itertools.count()

        def failing(*args, place=place, counted=counted, **kwargs):
            if next(counted) == place:
                raise error
            return plain(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(os, call, failing)
            done = fill_with_all_outputs()
        if next(counted) <= place:
            assert done.exit_code == 0
            break
        if done.exit_code:
            assert names() == set()
        else:  # what failed was not needed
            assert names() == OUTPUTS
            for name in OUTPUTS:
                Path(name).unlink()
    assert place >= 4
    assert names() == OUTPUTS


def test_outputs_that_are_replaced_come_back(table, monkeypatch):
    for name in OUTPUTS:
        Path(name).write_text("old")
    plain, counted = os.replace, itertools.count()

    def failing(*args):
        if next(counted) == 2:
            raise OSError(errno.EIO, "Input/output error")
        return plain(*args)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing)
        done = fill_with_all_outputs("--force")
    assert done.exit_code == 1
    assert names() == OUTPUTS
    assert {Path(name).read_text() for name in OUTPUTS} == {"old"}


def test_an_output_that_came_meanwhile_is_not_replaced(table, monkeypatch):
    plain = FillResult.json

    def meanwhile(self, *args, **kwargs):
        Path("t-filled.csv").write_text("mine")
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(FillResult, "json", meanwhile)
    done = fill_with_all_outputs()
    assert done.exit_code == 2
    assert "t-filled.csv exists already" in done.output
    assert names() == {"t-filled.csv"}
    assert Path("t-filled.csv").read_text() == "mine"


@pytest.mark.few(2)
@POSIX
@pytest.mark.parametrize(("given", "found"), [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644)])
def test_outputs_are_as_private_as_the_table(table, given, found):
    before = os.umask(0o022)
    try:
        table.chmod(given)
        assert fill_with_all_outputs().exit_code == 0
        Path("new.csv").write_text("size\n1\n2\n")
        words = ["answer", "fit.transduce", "new.csv", "--json", "answered.json"]
        assert CliRunner().invoke(app, words).exit_code == 0
        words = ["draw", "t.csv", "--target", "price", "--number", "20"]
        assert CliRunner().invoke(app, words).exit_code == 0
        made = names() - {"new.csv"}
        assert made == {*OUTPUTS, "answered.json", "new-answered.csv", "t-draw.csv"}
        for name in made:
            assert stat.S_IMODE(Path(name).stat().st_mode) == found, name
    finally:
        os.umask(before)


def test_answer_says_why_its_values_differ(table):
    assert fill_with_all_outputs().exit_code == 0
    words = ["answer", "fit.transduce", "t.csv", "--json", "answered.json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    why = "at rows of the filled table its values differ a little from those of `transduce fill`"
    assert why in " ".join(done.stdout.split())
    assert why in json.loads(Path("answered.json").read_text())["values"]


@pytest.mark.parametrize("name", ["wine.csv", "wine-filled.csv", "wine.html", "wine.json"])
def test_a_demo_replaces_no_file_of_the_user(table, name):
    Path(name).write_text("mine")
    done = CliRunner().invoke(app, ["demo", "wine", "--folder", "."])
    assert done.exit_code == 2
    assert f"{name} exists already" in done.output
    assert names() == {name}
    assert Path(name).read_text() == "mine"


def test_pictures_of_a_demo_replace_none_of_the_user(tmp_path):
    """One that an earlier demo had begun to write is completed."""
    from transduce.app.page.command import _write_once

    for before in (None, b"", b"pict", b"picture"):
        path = tmp_path / f"{before}.png"
        if before is not None:
            path.write_bytes(before)
        _write_once(path, b"picture")
        assert path.read_bytes() == b"picture"
    (tmp_path / "0003.png").write_bytes(b"mine")
    (tmp_path / "0004.png").mkdir()
    for name in ("0003.png", "0004.png"):
        with pytest.raises(FileExistsError, match=f"{name} exists already"):
            _write_once(tmp_path / name, b"picture")
    assert (tmp_path / "0003.png").read_bytes() == b"mine"
