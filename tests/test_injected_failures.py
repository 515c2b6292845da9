"""A full or broken disk, no memory, an interrupt: at every write of everything that we keep for a person.

Each test goes through all the places at which something can fail. Whatever happens: what was there before is still
there, or what is new is there as a whole; nothing else is left; and the same thing works afterwards.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.app.labelling.tables import clusters, prepared
from tests.injected import content_of, failing
from transduce import fill
from transduce.app.cli import comparison, drawn_rows, fills
from transduce.app.cli.app import app
from transduce.app.filling import load, save
from transduce.app.labelling import Session, SessionSettings, export, journal
from transduce.app.page import run
from transduce.app.page.workspace import Choices, Saved, Workspace
from transduce.app.tables import files
from transduce.core.files import temporary_name, together, write_text

MOST_PLACES = 200  # a thing that changes the disk more often than that would be tested for long
ALL = pytest.mark.parametrize(
    ("kind", "stays"),
    [
        ("disk full", False),
        ("interrupted", False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("disk full", True),
                ("disk broken", False),
                ("no memory", False),
                ("short write", False),
            )
        ),
    ],
)


def at_every_place(folder, begin, do, check, kind, stays=False, together=()):
    """Let something fail at each place in turn.

    `begin` makes the folder as it was before, `do` changes it, and `check` looks at what is there when it has
    succeeded. Of the files named in `together` all are old or all are new.
    """
    n_failed = 0
    for place in range(MOST_PLACES):
        begin()
        before = content_of(folder)
        with failing(kind, place, stays=stays) as faults:
            error = outcome_of(do)
        if not faults.happened and faults.count <= place:
            assert error is None, error
            assert n_failed or kind == "short write"
            return
        if error is not None:
            n_failed += 1
            check_words(error, kind)
        found = content_of(folder)
        check_nothing_lost(before, found, failed=error is not None)
        changed = {name: found.get(name) != before.get(name) for name in together}
        if error is not None:
            assert len(set(changed.values())) <= 1, changed
        elif faults.happened:
            check()
        assert outcome_of(do) is None  # a later run works
        check()
    pytest.fail(f"more than {MOST_PLACES} places")


def outcome_of(do):
    """Return the error that something ends with, or None."""
    try:
        do()
    except (Exception, KeyboardInterrupt) as error:
        return error
    return None


def check_words(error, kind):
    """The error says what happened in a sentence; what is no error of the disk stays what it is."""
    if kind == "no memory":
        assert isinstance(error, MemoryError), repr(error)
        return
    if kind == "interrupted":
        assert isinstance(error, KeyboardInterrupt), repr(error)
        return
    assert isinstance(error, OSError), repr(error)
    assert str(error).endswith("."), str(error)
    assert "Errno" not in str(error), str(error)
    assert ".part" not in str(error), str(error)
    if kind == "disk full":
        assert "disk is full" in str(error) or "no space left" in str(error)


def check_nothing_lost(before, found, *, failed):
    """What was there is there; a file that is new since is no part of one."""
    left = {name for name in found if ".part" in name or "part-" in name or "old-" in name}
    assert not left
    assert before.keys() <= found.keys()
    if failed:
        new = {name for name in found if name not in before}
        assert all(found[name] for name in new)


def emptied(folder):
    """Remove everything below a folder."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


# ------------------------------------------------------------------------------------------------ one file


@ALL
def test_a_text_that_is_replaced(tmp_path, kind, stays):
    path = tmp_path / "höhe.txt"
    new = "new " * 5000

    def check():
        assert path.read_text("utf-8") == new

    at_every_place(
        tmp_path,
        lambda: path.write_text("old", encoding="utf-8"),
        lambda: write_text(path, new, force=True),
        check,
        kind,
        stays,
    )


@cache
def houses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(3)
    y = np.where(np.arange(60) < 40, (X @ [1.0, 2.0]).round(3), np.nan)
    return pd.DataFrame({"größe": X[:, 0], "alter": X[:, 1], "preis": y})


@ALL
def test_a_saved_fit(tmp_path, kind, stays):
    path = tmp_path / "houses.transduce"

    def begin():
        emptied(tmp_path)
        save(path, houses(), "preis", method="ridge", confidence=0.8)

    def do():
        save(path, houses(), "preis", method="ridge", confidence=0.9, force=True)

    begin()
    old = path.read_bytes()

    def check():
        assert path.read_bytes() != old

    at_every_place(tmp_path, begin, do, check, kind, stays)
    assert load(path).new_columns(houses()[:1])["preis_status"].tolist() == ["given"]


@ALL
def test_the_file_of_the_page(tmp_path, kind, stays):
    houses().to_csv(tmp_path / "houses.csv", index=False)
    small = tmp_path / "houses.csv.transduce"

    def begin():
        Saved(Choices(target="preis"), revision=3).write(small)

    def do():
        workspace = Workspace(tmp_path, "houses.csv")
        workspace.change("houses.csv", workspace.saved.revision, {"ignore": ["alter"]})

    def check():
        saved = Saved.read(small)
        assert saved.choices.target == "preis"
        assert saved.choices.ignore == ["alter"]

    at_every_place(tmp_path, begin, do, check, kind, stays)


@ALL
def test_labels_that_the_page_fills_with(tmp_path, kind, stays):
    labels = run.GivenLabels({1: "ja", 2: "nein"}, None)

    at_every_place(
        tmp_path,
        lambda: run.GivenLabels({1: "ja"}, None).write(tmp_path, Path(__file__)),
        lambda: labels.write(tmp_path, Path(__file__)),
        lambda: run.GivenLabels.read(tmp_path) == labels,
        kind,
        stays,
    )


# ------------------------------------------------------------------------------------------------ the journal


def labelling(path):
    frame, _ = clusters()
    settings = SessionSettings(seed=1, prepared=prepared())
    return Session(frame, "relevant", classes=["yes", "no"], journal=path, settings=settings)


@ALL
def test_the_first_lines_of_a_journal(tmp_path, kind, stays):
    path = tmp_path / "labels.jsonl"

    def do():
        with labelling(path) as session:
            assert session.classes == ["yes", "no"]

    def check():
        with labelling(path) as session:
            assert session.notes == []

    at_every_place(tmp_path, lambda: emptied(tmp_path), do, check, kind, stays)


@ALL
def test_every_line_of_a_journal(tmp_path, kind, stays):
    """What counts in memory is what is on the disk, after any failure; and the session goes on."""
    path = tmp_path / "labels.jsonl"
    for place in range(MOST_PLACES):
        path.unlink(missing_ok=True)
        session = labelling(path)
        session.answer("yes", row=0)
        session.close()
        with failing(kind, place, stays=stays) as faults:
            errors = []
            with labelling(path) as session:
                for row in (3, 5):
                    errors.append(outcome_of(lambda row=row: session.answer("no", row=row)))  # noqa: B023
                errors.append(outcome_of(lambda: session.propose("audit")))  # noqa: B023
                labels, events = dict(session.state.labels), list(session.events)
        with labelling(path) as again:
            assert again.notes == []  # no line was torn
            assert again.state.labels == labels
            assert again.events == events
        for error in filter(None, errors):
            check_words(error, "disk full" if kind == "short write" else kind)
        assert labels[0] == "yes"
        if faults.count <= place:
            assert labels == {0: "yes", 3: "no", 5: "no"}
            return
        assert not faults.happened or any(errors)


def test_a_line_that_was_interrupted_is_not_before_the_next_one(tmp_path):
    """Half of a line before another one would make the journal unreadable: all labels after it would be lost."""
    path = tmp_path / "labels.jsonl"
    with labelling(path) as session:
        for kind in ("interrupted", "no memory"):
            with failing(kind, 0):
                _faulty_again(session)
                with pytest.raises((KeyboardInterrupt, MemoryError)):
                    session.answer("yes", row=1)
            _faulty_again(session)
        session.answer("no", row=2)
    with labelling(path) as again:
        assert again.state.labels == {2: "no"}


def _faulty_again(session):
    """Let a session that was opened before write through the failing system."""
    held = session._journal
    held._file.close()
    held._file = getattr(journal, "open", open)(str(held.path), "a+b", buffering=0)


# ------------------------------------------------------------------------------------------------ several files


@cache
def filled():
    return fill(houses(), "preis", method="ridge")


@pytest.mark.few(1)
@ALL
def test_an_export_of_labels(tmp_path, monkeypatch, kind, stays):
    monkeypatch.setattr(export, "fill_labels", lambda *_: filled())
    monkeypatch.setattr(type(filled()), "report", _short_report)
    session = labelling(None)
    session.answer("yes", row=0)
    session.answer("no", row=1)
    names = [
        "table-labelled.csv",
        "table-certificate.txt",
        "table-filled.csv",
        "table-filled.html",
    ]

    def begin():
        emptied(tmp_path)
        for name in names[:3]:
            (tmp_path / name).write_text("old")

    def do():
        session.export(tmp_path, force=True)

    def check():
        assert set(content_of(tmp_path)) == set(names)
        assert b"old" not in content_of(tmp_path).values()

    at_every_place(tmp_path, begin, do, check, kind, stays, together=names)


def _short_report(self, path=None, *, force=False):
    text = "<html>" + 5000 * "x"
    if path is not None:
        write_text(path, text, force=force)
    return text


@ALL
def test_files_that_belong_together(tmp_path, kind, stays):
    targets = [tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"]

    def begin():
        emptied(tmp_path)
        for path in targets[:2]:
            path.write_text("old")
        targets[0].chmod(0o600)

    def do():
        with together():
            for path in targets[::2]:
                write_text(path, "new", force=True)

    def check():
        assert [path.read_text() for path in targets] == ["new", "old", "new"]
        assert targets[0].stat().st_mode & 0o777 == 0o600

    at_every_place(tmp_path, begin, do, check, kind, stays, together=["a.txt", "c.txt"])


@pytest.mark.few(1)
@ALL
def test_the_result_of_the_page(tmp_path, monkeypatch, kind, stays):
    """The result before stays until the new one stands in its place."""
    table = tmp_path / "houses.csv"
    houses().to_csv(table, index=False)
    folder = tmp_path / "computed"
    folder.mkdir()
    summary = filled().summary()
    monkeypatch.setattr(run, "fill", lambda *_, **__: filled())
    monkeypatch.setattr(type(filled()), "summary", lambda *_, **__: deepcopy(summary))
    monkeypatch.setattr(type(filled()), "reported", None)
    monkeypatch.setattr(run, "tables_by_column", lambda _: {})
    monkeypatch.setattr(run, "render_html", lambda _: "<html>")
    job = json.dumps({"path": str(table), "choices": vars(Choices(target="preis"))})
    (folder / run.JOB).write_text(job)

    def begin():
        if not (folder / run.RESULT).exists():
            run.work(folder, lambda *_: None)

    def do():
        run.work(folder, lambda *_: None)

    def check():
        assert (folder / run.RESULT / "changes.json").exists()

    at_every_place(tmp_path, begin, do, check, kind, stays)


def test_a_result_that_was_put_aside_comes_back(tmp_path):
    """A process that was killed between two renames had put the result before aside."""
    before = tmp_path / temporary_name(run.BEFORE)
    before.mkdir()
    (before / "brief.json").write_text("{}")
    (tmp_path / temporary_name(run.RESULT)).mkdir()
    run.remove_old_results(tmp_path)
    assert content_of(tmp_path) == {f"{run.RESULT}/brief.json": b"{}"}
    (tmp_path / temporary_name(run.BEFORE)).mkdir()
    run.remove_old_results(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [run.RESULT]


# ------------------------------------------------------------------------------------------------ the command line


def invoke(*words):
    """Run a command; raise what its exit code stands for, with what it said."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code == 0:
        return
    assert result.exit_code in (1, 130), result.output
    assert "Traceback" not in result.output
    said = result.stderr.strip().splitlines()[-1].removeprefix("transduce: ")
    if result.exit_code == 130:
        raise KeyboardInterrupt(said)
    if "not enough memory" in said:
        raise MemoryError(said)
    raise OSError(said)


@pytest.mark.few(2)
@ALL
@pytest.mark.parametrize(
    "ending",
    [
        "csv",
        "parquet",
        "xlsx",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("json", "feather", "csv.gz", "csv.zip")
        ),
    ],
)
def test_draw(tmp_path, monkeypatch, kind, stays, ending):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_rows, "_what_draw_lacks", lambda *_: "")
    table = Path("houses.csv")
    houses().to_csv(table, index=False)
    out = Path(f"drawn.{ending}")

    def begin():
        out.write_text("old")

    def do():
        words = (
            "--target",
            "preis",
            "--number",
            5,
            "--seed",
            1,
            "--out",
            out,
            "--force",
            "--quiet",
        )
        invoke("draw", table, *words)

    def check():
        assert files.read(out).frame["preis_random"].astype(str).isin(["yes", "True"]).sum() == 5

    at_every_place(tmp_path, begin, do, check, kind, stays, together=[out.name])


@pytest.mark.few(3)
@ALL
@pytest.mark.parametrize("which", ["report", "json", "save", "out"])
def test_each_file_of_a_fill(tmp_path, monkeypatch, no_figures, kind, stays, which):
    monkeypatch.chdir(tmp_path)
    houses().to_csv("houses.csv", index=False)
    result = replace(filled(), seen=filled().seen)
    monkeypatch.setattr(fills, "fill_targets", lambda *_: {"preis": result})
    name = {"report": "r.html", "json": "r.json", "save": "s.transduce", "out": "o.csv"}[which]

    def begin():
        Path(name).write_text("old")
        Path("o.csv").write_text("old")

    def do():
        words = [] if which == "out" else [f"--{which}", name]
        invoke(
            "fill",
            "houses.csv",
            "--target",
            "preis",
            "--out",
            "o.csv",
            *words,
            "--force",
            "--quiet",
        )

    def check():
        assert Path(name).read_bytes() != b"old"
        assert len(pd.read_csv("o.csv")) == 60

    at_every_place(tmp_path, begin, do, check, kind, stays)


@pytest.mark.few(1)
@ALL
def test_the_plot_of_a_comparison(tmp_path, monkeypatch, kind, stays):
    monkeypatch.chdir(tmp_path)
    shown = pd.DataFrame({"method": ["ridge", "blend"], "off by": [1.0, 2.0], "±": [0.1, 0.2]})

    def begin():
        Path("plot.svg").write_text("old")

    def do():
        comparison.draw_comparison(shown, Path("plot.svg"), force=True)

    def check():
        assert Path("plot.svg").read_text().rstrip().endswith("</svg>")

    at_every_place(tmp_path, begin, do, check, kind, stays)
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []


@ALL
def test_the_example(tmp_path, monkeypatch, kind, stays):
    monkeypatch.chdir(tmp_path)

    def check():
        assert len(pd.read_csv("houses.csv")) == 400

    at_every_place(
        tmp_path,
        lambda: Path("houses.csv").write_text("old"),
        lambda: invoke("example", "houses.csv", "--force"),
        check,
        kind,
        stays,
    )
