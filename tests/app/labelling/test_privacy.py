"""What a session, an export and the page leave on disk is as private as the table."""

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from transduce.app.labelling import Session
from transduce.app.page.run import RESULT, WRITTEN, GivenLabels, Run, remove_old_results
from transduce.app.page.workspace import Choices, Saved, Workspace
from transduce.core.files import is_temporary, temporary_name

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")


@pytest.fixture
def table(tmp_path):
    before = os.umask(0o022)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.normal(size=60)})
    frame["kind"] = np.where(np.arange(60) < 20, np.where(frame["size"] > 0, "a", "b"), None)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.csv").chmod(0o600)
    yield tmp_path / "t.csv"
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
def test_a_session_and_its_export(table):
    with Session(table, "kind") as session:
        row = session.propose().row
        session.answer("a", row=row)
        exported = session.export()
        made = [session.journal, exported.labelled, exported.filled]
        made += [exported.report, exported.certificate]
        assert [mode(path) for path in made] == [0o600] * 5


@POSIX
def test_what_the_page_keeps(table):
    workspace = Workspace(table.parent, "t.csv")
    workspace.change("t.csv", 0, {"target": "kind"})
    GivenLabels({3: "a"}, None).write(workspace.computed, table)
    made = [path for path in table.parent.rglob("*") if path != table]
    assert {path.name for path in made} == {".transduce", "t.csv.transduce", "t.csv", "labels.json"}
    for path in made:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


@POSIX
@pytest.mark.timeout(400)
def test_what_a_fill_of_the_page_leaves(table):
    folder = table.parent / ".transduce" / "t.csv"
    run = Run(folder)
    run.start(table, Choices(target="kind"))
    run._process.wait()
    found = list(folder.rglob("*"))
    assert folder / RESULT / "report.html" in found
    for path in [folder.parent, folder, *found]:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_only_old_results_are_removed(tmp_path):
    """Files of others in the folder, and in old results, stay."""
    folder = tmp_path / "t.csv"
    old = folder / temporary_name(RESULT)
    mine = ["part-1/thesis.txt", "old-notes/x", ".result.abc.part/x", "result/x", f"{old.name}/x"]
    for name in [*mine, *(f"{old.name}/{word}" for word in (*WRITTEN, "t-filled.csv"))]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    remove_old_results(folder)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == set(mine)
    (old / "x").unlink()
    remove_old_results(folder)
    assert not [path for path in folder.iterdir() if is_temporary(path.name)]


def test_damaged_files_put_aside_replace_none(tmp_path):
    """A second one gets another name."""
    pd.DataFrame({"a": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    for text in ("first", "second", "third"):
        (tmp_path / "t.csv.transduce").write_text(text)
        workspace = Workspace(tmp_path, "t.csv")
        assert workspace.saved == Saved()
    names = ["t.csv.transduce-damaged", "t.csv.transduce-damaged-2", "t.csv.transduce-damaged-3"]
    assert [Path(tmp_path / name).read_text() for name in names] == ["first", "second", "third"]
