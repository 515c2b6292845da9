"""A folder of filled parts: what is written there, what survives a failure, and what is never touched."""

import errno
import gzip
import hashlib
import itertools
import json
import os
import signal
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from transduce.app.cli.app import app
from transduce.app.filling import FillResult, fill_folder, sources
from transduce.app.filling import folder as folders
from transduce.app.filling.manifest import Manifest, is_intact
from transduce.app.tables.parts import open_parts
from transduce.core.files import is_temporary, temporary_name

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights and signals of POSIX")
QUICK = {"method": "ridge", "sample": 100, "budget_seconds": 1.0}


def make(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = X[:, 0] + 0.1 * random.normal(size=n)
    frame = pd.DataFrame({"u": X[:, 0], "w": X[:, 1]})
    frame["y"] = np.where(random.uniform(size=n) < 0.5, y, np.nan)
    return frame


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A small table in three files, as Parquet and as CSV."""
    folder = tmp_path_factory.mktemp("inputs")
    frame = make()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet", index=False)
        frame.iloc[rows].to_csv(folder / f"{number}.csv", index=False)
    return folder


@pytest.fixture
def quick_fill(monkeypatch):
    """Fit no more than is needed to write parts: these tests are about files."""
    fitted = {}
    plain = folders.fill_parts

    def once(source, target, options):
        key = (source.name, target, str(options.as_json()))
        if key not in fitted:
            fitted[key] = plain(source, target, options)
        seen = folders.replace(fitted[key].seen, source=source)
        return folders.replace(fitted[key], seen=seen)

    monkeypatch.setattr(folders, "fill_parts", once)


def contents(folder):
    """Every file and folder below a folder, with what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def manifest_of(folder):
    return json.loads((folder / "_manifest.json").read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------------- what others put there

NAMES = [
    ".work/thesis.txt",
    ".work/00000-0123456789abcdef.parquet",
    ".work-0123456789abcdef/thesis.txt",
    ".download.iso.part",
    "._manifest.json.abcd1234.part",
    ".part-00000-0.parquet.abcdefgh.part",
    "._manifest.json.0123456789abcdef0123.part",
    ".lock",
    "note.txt",
    "_manifest.json.bak",
    "part-00000",
    "part-x/part-00000-0.parquet",
    "old-1/notes",
    "Größe €.md",
]
AS_ROWS = ["part-99999-old.parquet", "part-00000-0.parquet", "mine.parquet"]


def put(folder, names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"mine: {name}")
    return contents(folder)


@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    names=st.lists(st.sampled_from(NAMES + AS_ROWS), unique=True, max_size=6),
    target=st.sampled_from(["y", "nothing"]),
    force=st.booleans(),
    kind=st.sampled_from(["parquet", "csv"]),
)
def test_files_of_others_stay(tmp_path_factory, inputs, quick_fill, names, target, force, kind):
    """Whether a run is refused, fails or succeeds, by force or not: they are as they were."""
    out = tmp_path_factory.mktemp("out")
    before = put(out, names)
    pattern = f"{inputs}/*.{kind}"
    try:
        fill_folder(pattern, target, out, force=force, **QUICK)
    except FileExistsError:
        assert names
        assert not force or set(names) & set(AS_ROWS)
        assert contents(out) == before
        return
    except ValueError:
        assert target == "nothing"
        assert contents(out) == before
        return
    assert force or not set(names) - {".lock"}
    after = contents(out)
    assert {name: after.get(name) for name in before} == before
    new = sorted(set(after) - set(before))
    assert new == ["_manifest.json", *(f"part-0000{k}-{k}.{kind}" for k in range(3))]


@pytest.mark.parametrize("name", AS_ROWS)
def test_files_that_would_be_read_as_rows_are_named(inputs, quick_fill, tmp_path, name):
    """By force or not: who reads the folder would take them for rows of the filled table."""
    put(tmp_path, [name])
    with pytest.raises(FileExistsError, match=name):
        fill_folder(f"{inputs}/*.parquet", "y", tmp_path, force=True, **QUICK)
    assert list(contents(tmp_path)) == [name]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1}', '{"of": {}, "parts": {"a": 1}}', "[" * 100_000]
)
@pytest.mark.parametrize("force", [False, True])
def test_a_manifest_of_something_else_stays(inputs, tmp_path, text, force):
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(FileExistsError, match="is not a manifest of transduce, or it is damaged"):
        fill_folder(f"{inputs}/*.parquet", "y", tmp_path, force=force, **QUICK)
    assert contents(tmp_path) == {"_manifest.json": text.encode()}


def test_a_manifest_cannot_name_files_of_others(inputs, quick_fill, tmp_path):
    """Only names of parts count: not those of other files or of files elsewhere."""
    fill_folder(f"{inputs}/*.parquet", "y", tmp_path / "out", **QUICK)
    put(tmp_path, ["out/thesis.txt", "outside.txt", "out/.work/x"])
    manifest = manifest_of(tmp_path / "out")
    for name in ("thesis.txt", "../outside.txt", ".work/x", "part-00000-/../../outside.txt"):
        manifest["parts"][name] = {"name": name, "number": 9, "rows": 1}
        manifest["planned"].append(name)
        manifest["replaced"].append(name)
    for work in (".work", "..", "/", "."):
        manifest["work"] = work
        (tmp_path / "out" / "_manifest.json").write_text(json.dumps(manifest))
        fill_folder(f"{inputs}/*.parquet", "y", tmp_path / "out", force=True, **QUICK)
        assert (tmp_path / "out" / "thesis.txt").exists()
        assert (tmp_path / "outside.txt").exists()
        assert (tmp_path / "out" / ".work" / "x").exists()


def test_a_refused_run_by_force_leaves_the_earlier_result(inputs, quick_fill, tmp_path):
    fill_folder(f"{inputs}/*.csv", "y", tmp_path, **QUICK)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="no column"):
        fill_folder(f"{inputs}/*.csv", "nothing", tmp_path, force=True, **QUICK)
    with pytest.raises(ValueError, match="nothing to fill"):
        fill_folder(f"{inputs}/*.csv", "u", tmp_path, force=True, **QUICK)
    assert contents(tmp_path) == before


def test_force_replaces_what_an_earlier_run_wrote(inputs, quick_fill, tmp_path):
    """Parts that the new table has no use for are gone; other files are not."""
    fill_folder(f"{inputs}/*.parquet", "y", tmp_path, **QUICK)
    put(tmp_path, ["note.txt"])
    fill_folder(f"{inputs}/0.parquet", "y", tmp_path, force=True, **QUICK)
    assert list(contents(tmp_path)) == ["_manifest.json", "note.txt", "part-00000-0.parquet"]
    assert manifest_of(tmp_path)["replaced"] == []


def test_a_folder_that_was_made_for_nothing_is_gone(inputs, tmp_path):
    with pytest.raises(ValueError, match="no column"):
        fill_folder(f"{inputs}/*.csv", "nothing", tmp_path / "a" / "b", **QUICK)
    assert contents(tmp_path) == {}


# ------------------------------------------------------------------------------------------------- damaged parts


def stopped_after(monkeypatch, n_parts, pattern, out):
    """Stop a run when some of its parts are complete."""
    plain = folders._write

    def stops(shared, item):
        if item[0].number >= n_parts:
            raise KeyboardInterrupt
        return plain(shared, item)

    with monkeypatch.context() as patched:
        patched.setattr(folders, "_write", stops)
        with pytest.raises(KeyboardInterrupt):
            fill_folder(pattern, "y", out, **QUICK)


def test_the_manifest_holds_sizes_and_hashes(inputs, quick_fill, tmp_path):
    fill_folder(f"{inputs}/*.csv", "y", tmp_path, **QUICK)
    for name, part in manifest_of(tmp_path)["parts"].items():
        content = (tmp_path / name).read_bytes()
        assert part["bytes"] == len(content)
        assert part["sha256"] == hashlib.sha256(content).hexdigest()
        assert is_intact(tmp_path, part)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "how",
    ["cut", "flipped", *(pytest.param(word, marks=pytest.mark.slow) for word in ("empty", "gone"))],
)
def test_a_damaged_part_is_written_again(inputs, quick_fill, tmp_path, monkeypatch, kind, how):
    pattern = f"{inputs}/*.{kind}"
    fill_folder(pattern, "y", tmp_path / "whole", **QUICK)
    stopped_after(monkeypatch, 2, pattern, tmp_path / "out")
    damaged = tmp_path / "out" / f"part-00001-1.{kind}"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    changed = {"cut": content[:100], "flipped": content, "empty": b""}
    if how == "gone":
        damaged.unlink()
    else:
        damaged.write_bytes(changed[how])
    untouched = (tmp_path / "out" / f"part-00000-0.{kind}").stat().st_mtime_ns
    result = fill_folder(pattern, "y", tmp_path / "out", **QUICK)
    assert any(damaged.name in note and "written again" in note for note in result.notes)
    assert (tmp_path / "out" / f"part-00000-0.{kind}").stat().st_mtime_ns == untouched
    whole, out = contents(tmp_path / "whole"), contents(tmp_path / "out")
    assert {k: v for k, v in out.items() if k.startswith("part-")} == {
        k: v for k, v in whole.items() if k.startswith("part-")
    }
    assert manifest_of(tmp_path / "out")["state"] == "complete"


def test_a_complete_folder_is_not_complete_without_its_parts(inputs, quick_fill, tmp_path):
    """Which somebody may have changed on purpose, so that they are named, and stay."""
    pattern = f"{inputs}/*.csv"
    fill_folder(pattern, "y", tmp_path, **QUICK)
    with pytest.raises(FileExistsError, match="filled already; to fill it again"):
        fill_folder(pattern, "y", tmp_path, **QUICK)
    changed = tmp_path / "part-00000-0.csv"
    changed.write_text("corrected by hand")
    (tmp_path / "part-00002-2.csv").unlink()
    with pytest.raises(FileExistsError) as refused:
        fill_folder(pattern, "y", tmp_path, **QUICK)
    assert "but 1 part is gone: part-00002-2.csv" in str(refused.value)
    assert "1 part is damaged or changed since: part-00000-0.csv; to fill it" in str(refused.value)
    assert changed.read_text() == "corrected by hand"
    fill_folder(pattern, "y", tmp_path, force=True, **QUICK)
    assert all(is_intact(tmp_path, part) for part in manifest_of(tmp_path)["parts"].values())


def test_a_part_that_the_disk_took_half_of(inputs, quick_fill, tmp_path, monkeypatch):
    """A write that returns without having written everything is not taken for a part."""
    plain = os.fstat

    def short(handle):
        found = list(plain(handle))
        found[6] -= 1
        return os.stat_result(found)

    monkeypatch.setattr(folders.os, "fstat", short)
    with pytest.raises(OSError, match="is full: make room"):
        fill_folder(f"{inputs}/*.parquet", "y", tmp_path / "out", **QUICK)


# ------------------------------------------------------------------------------------- failures at every write


class Failures:
    """Let the k-th call of the system that writes fail, or kill the process."""

    CALLS = ("fsync", "replace", "link", "mkdir")

    def __init__(self, place, act):
        self.place, self.act = place, act
        self.counted = itertools.count()
        self.n_calls = 0

    def install(self, put):
        for name in self.CALLS:
            plain = getattr(os, name)

            def failing(*args, plain=plain, **kwargs):
                self.n_calls += 1
                if next(self.counted) == self.place:
                    self.act()
                return plain(*args, **kwargs)

            put(os, name, failing)


def full():
    raise OSError(errno.ENOSPC, "No space left on device")


def run_command(inputs, out, kind="csv"):
    """Fill with reports, as from the command line."""
    arguments = ["fill", f"{inputs}/*.{kind}", "--target", "y", "--out", f"{out}/filled/"]
    arguments += ["--report", f"{out}/report.html", "--json", f"{out}/numbers.json", "--quiet"]
    arguments += ["--method", "ridge", "--sample", "100", "--jobs", "1"]
    return CliRunner().invoke(app, arguments)


def state_of(folder):
    try:
        return manifest_of(folder)["state"]
    except FileNotFoundError:
        return "nothing"


@pytest.mark.few(1)
@POSIX
@pytest.mark.parametrize("n_reports", [0, 1, 2])
def test_killed_after_the_last_part(inputs, whole, tmp_path, n_reports):
    """Before the reports have their names, between them, and before the manifest says that all is there."""
    out = tmp_path / "out"
    out.mkdir()
    child = os.fork()
    if not child:
        plain, placed = os.link, itertools.count()

        def killing(*names, **kwargs):
            report = Path(names[1]).name in ("report.html", "numbers.json")
            if report and next(placed) == n_reports:
                os.kill(os.getpid(), signal.SIGKILL)
            plain(*names, **kwargs)

        os.link = killing
        if n_reports == 2:
            Manifest.complete = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
        os._exit(run_command(inputs, out).exit_code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    written = {path.name for path in out.iterdir()} & {"report.html", "numbers.json"}
    assert len(written) == n_reports
    parts = {path: path.stat().st_mtime_ns for path in (out / "filled").glob("part-*")}
    assert len(parts) == 3
    done = run_command(inputs, out)
    assert done.exit_code == 0, done.output
    check_done(out, whole)
    assert parts == {path: path.stat().st_mtime_ns for path in parts}


def check_done(out, whole):
    found, wanted = contents(out), contents(whole)
    assert set(found) == set(wanted)
    for name in wanted:
        if Path(name).name.startswith("part-"):
            assert found[name] == wanted[name]
    assert manifest_of(out / "filled")["state"] == "complete"


@pytest.fixture
def whole(inputs, quick_fill, tmp_path, monkeypatch):
    """What a run without a failure leaves; reports are short, since these tests are not about them."""
    monkeypatch.setattr(FillResult, "summary", lambda result, **how: {"counts": result.seen.totals})
    monkeypatch.setattr("transduce.app.filling.result.render_html", str)
    (tmp_path / "whole").mkdir()
    assert run_command(inputs, tmp_path / "whole").exit_code == 0
    return tmp_path / "whole"


EVERY = pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])


@EVERY
def test_a_full_disk_at_every_write(inputs, whole, tmp_path, monkeypatch, step):
    """One sentence; foreign files stay; when there is room again the same command ends with the same files."""
    for place in itertools.count(step=step):
        out = tmp_path / str(place)
        put(out, ["note.txt"])
        failures = Failures(place, full)
        with monkeypatch.context() as patched:
            failures.install(patched.setattr)
            done = run_command(inputs, out)
        if failures.n_calls <= place:
            break
        assert not [name for name in contents(out) if is_temporary(Path(name).name)]
        if done.exit_code:
            assert done.exit_code == 1
            assert "Traceback" not in done.output
            assert "report.html" not in contents(out) or "numbers.json" in contents(out)
            done = run_command(inputs, out)
        assert done.exit_code == 0, done.output
        assert (out / "note.txt").read_text() == "mine: note.txt"
        (out / "note.txt").unlink()
        check_done(out, whole)
    assert done.exit_code == 0
    assert place > 15 or step > 1


@POSIX
@EVERY
def test_killed_at_every_write(inputs, whole, tmp_path, step):
    """The same command goes on, whenever it was killed: also after the last part, or between two reports."""
    for place in itertools.count(step=step):
        out = tmp_path / str(place)
        out.mkdir()
        child = os.fork()
        if not child:
            failures = Failures(place, lambda: os.kill(os.getpid(), signal.SIGKILL))
            failures.install(setattr)
            os._exit(run_command(inputs, out).exit_code)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert os.WIFSIGNALED(status)
        if state_of(out / "filled") == "complete":  # the last of all that is written
            (out / "filled" / ".lock").unlink(missing_ok=True)
        else:
            done = run_command(inputs, out)
            assert done.exit_code == 0, (place, done.output)
        check_done(out, whole)
    assert place > 15 or step > 1


def test_a_report_of_somebody_else_is_not_replaced(inputs, whole, tmp_path):
    """Not even if a run that was stopped had written one of the same name."""
    out = tmp_path / "out"
    (out / "filled").mkdir(parents=True)
    run_command(inputs, out)
    manifest = Manifest.read(out / "filled")
    manifest.state = "incomplete"
    manifest.save()
    (out / "report.html").write_text("mine")
    done = run_command(inputs, out)
    assert done.exit_code == 2
    assert "report.html exists already" in done.output
    assert (out / "report.html").read_text() == "mine"
    (out / "report.html").unlink()
    assert run_command(inputs, out).exit_code == 0  # the other one is known by its hash
    check_done(out, whole)


# ------------------------------------------------------------------------------------------------------- rights


@pytest.mark.few(1)
@POSIX
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_parts_are_as_private_as_the_table(inputs, quick_fill, tmp_path, monkeypatch, kind):
    before = os.umask(0o022)
    try:
        for path in inputs.glob(f"*.{kind}"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
            (tmp_path / path.name).chmod(0o600)
        stopped_after(monkeypatch, 1, f"{tmp_path}/*.{kind}", tmp_path / "out")
        made = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
        assert any(path.name.startswith(".work-") for path in made) == (kind == "csv")
        result = fill_folder(f"{tmp_path}/*.{kind}", "y", tmp_path / "out", **QUICK)
        result.report(tmp_path / "report.html")
        result.json(tmp_path / "numbers.json")
        made += [tmp_path / "out", *(tmp_path / "out").iterdir()]
        made += [tmp_path / "report.html", tmp_path / "numbers.json"]
        for path in filter(Path.exists, made):
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    finally:
        os.umask(before)


# --------------------------------------------------------------------------------------------- parts that are read


def put_parts(folder, texts):
    folder.mkdir()
    for number, text in enumerate(texts):
        content = text if isinstance(text, bytes) else text.encode()
        (folder / f"{number}.csv").write_bytes(content)
    return f"{folder}/*.csv"


ROWS = "\n".join(["u,w,y", *(f"{k},{k % 7},{2 * k if k % 2 else ''}" for k in range(80))]) + "\n"


@pytest.mark.parametrize(
    "empty", ["u,w,y\n", "u,w,y", "\ufeffu,w,y\r\n\r\n", "", " \n\n", "w,u,y\n"]
)
@pytest.mark.parametrize("first", [True, False])
def test_an_empty_part_of_text(tmp_path, empty, first):
    texts = [empty, ROWS] if first else [ROWS, empty]
    pattern = put_parts(tmp_path / "in", texts)
    files = open_parts(pattern, tmp_path / "out" / "work")
    assert files.n_rows == 80
    assert len(files.parts) == 1
    if empty == "u,w,y\n":
        result = fill_folder(pattern, "y", tmp_path / "filled", **QUICK)
        assert result.counts.rows == 80


def test_one_column_has_no_delimiter(tmp_path):
    """A line of names alone does not say by what fields are parted."""
    rows = ROWS.replace(",", ";")
    pattern = put_parts(tmp_path / "in", ["u;w;y\n", rows])
    assert open_parts(pattern, tmp_path / "out" / "work").n_rows == 80
    pattern = put_parts(tmp_path / "odd", ["u;w\n", rows])
    with pytest.raises(ValueError, match="column 'y'"):
        open_parts(pattern, tmp_path / "out" / "work")


@pytest.mark.parametrize("texts", [["u,w,y\n"], ["u,w,y\n", "u,w,y\n"], ["", "\n"]])
def test_parts_without_any_row(tmp_path, texts):
    with pytest.raises(ValueError, match=r"hold.? no rows|is empty"):
        fill_folder(put_parts(tmp_path / "in", texts), "y", tmp_path / "out", **QUICK)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["last", "middle"])
@pytest.mark.parametrize("end", ['"4', '"4\n', '"4""', '"a,b\n', '"'])
def test_an_open_quotation_mark_in_a_part(tmp_path, place, end):
    """All rows after it would be one cell, without a word."""
    damaged = ROWS + f"1,2,{end}"
    if place == "middle":
        damaged += ROWS.partition("\n")[2].replace('"', "")
    pattern = put_parts(tmp_path / "in", [ROWS, damaged])
    with pytest.raises(ValueError, match=r"1\.csv ends inside a quoted field"):
        open_parts(pattern, tmp_path / "out" / "work")


def test_quotation_marks_that_are_closed(tmp_path):
    texts = [ROWS + '1,2,"4"\n3,4,"5""6"\n5,6,7" tall', ROWS + '1,2,"a\nb"']
    files = open_parts(put_parts(tmp_path / "in", texts), tmp_path / "out" / "work")
    assert files.n_rows == 80 + 3 + 81
    cells = [
        cell
        for part in files.parts
        for batch in files.batches(part, 50)
        for cell in batch["y"].to_pylist()
    ]
    assert {"4", '5"6', '7" tall', "a\nb"} <= set(cells)


def test_many_blocks_of_text(tmp_path, monkeypatch):
    """The last record is told from the others, however the text is cut into blocks."""
    from transduce.app.tables import parts

    pattern = put_parts(tmp_path / "in", [ROWS, ROWS[:-1]])
    for size in (64, 100, 333):
        monkeypatch.setattr(parts, "_BLOCK", size)
        assert open_parts(pattern, tmp_path / "out" / f"work-{size}").n_rows == 160


@pytest.mark.parametrize("how", ["cut", "flipped"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_damaged_packed_part_is_named(tmp_path, how, kind):
    lines = "".join(json.dumps({"u": k, "y": k}) + "\n" for k in range(500))
    content = bytearray(gzip.compress((ROWS if kind == "csv" else lines).encode()))
    if how == "cut":
        content = content[: len(content) // 2]
    else:
        content[-6] ^= 1
    (tmp_path / f"a.{kind}.gz").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.{kind}\.gz cannot be read: it is damaged"):
        open_parts(str(tmp_path / f"a.{kind}.gz"), tmp_path / "out" / "work")


def test_a_damaged_page_is_named(tmp_path):
    frame = pd.concat([make()] * 20, ignore_index=True)
    frame.to_parquet(tmp_path / "0.parquet", index=False)
    frame.to_parquet(tmp_path / "1.parquet", index=False)
    content = bytearray((tmp_path / "1.parquet").read_bytes())
    content[4:4000] = b"\xff" * 3996
    (tmp_path / "1.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"1\.parquet cannot be read: it is damaged"):
        fill_folder(f"{tmp_path}/*.parquet", "y", tmp_path / "out", **QUICK)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sign", ["é", "\x81"])
def test_a_sign_that_is_not_utf8_may_come_late(tmp_path, monkeypatch, sign):
    """A long text is read as a short one is."""
    from transduce.app.tables import files, parts

    monkeypatch.setattr(parts, "_HEAD", 50)
    content = ROWS.encode() + f"1,{sign},2\n".encode("latin-1")
    pattern = put_parts(tmp_path / "in", [content])
    found = open_parts(pattern, tmp_path / "out" / "work")
    last = [batch["w"].to_pylist() for batch in found.batches(found.parts[0], 1000)][-1][-1]
    assert last == sign == files.read(tmp_path / "in" / "0.csv").frame["w"].iloc[-1]


def test_categories_and_texts_fit_together(tmp_path):
    frame = make().assign(word="a")
    frame.astype({"word": "category"}).to_parquet(tmp_path / "0.parquet", index=False)
    frame.assign(word="b").to_parquet(tmp_path / "1.parquet", index=False)
    found = open_parts(f"{tmp_path}/*.parquet", tmp_path / "out" / "work")
    words = [
        word
        for part in found.parts
        for batch in found.batches(part, 1000)
        for word in batch["word"].to_pylist()
    ]
    assert words == ["a"] * 300 + ["b"] * 300


def test_torn_files_of_a_killed_run_go(inputs, quick_fill, tmp_path):
    """Also of parts that the new table does not have."""
    (tmp_path / temporary_name("part-00007-x.parquet")).write_text("torn")
    fill_folder(f"{inputs}/*.parquet", "y", tmp_path, **QUICK)
    assert not list(tmp_path.glob(".*"))


def test_sentences_of_a_folder_say_what_they_are_about(inputs, quick_fill, tmp_path):
    """Numbers of the sample are not told of all rows, and its rows are named by their places in the parts."""
    result = fill_folder(f"{inputs}/*.parquet", "y", tmp_path / "out", **QUICK)
    summary = result.summary()
    n_unlabelled = summary["counts"]["unlabelled"]
    assert summary["counts"]["sampled"] == len(summary["rows"]) == 100 < n_unlabelled
    first, lead, *_ = summary["reply"]
    assert first.startswith(f"All {n_unlabelled} rows have a prediction.")
    assert lead.startswith("100 of them were drawn at random for the fit")
    for line in summary["rows"]:
        name, row = line["row"].split(", row ")
        written = pd.read_parquet(tmp_path / "out" / name).iloc[int(row) - 1]
        assert written["y_filled"] == line["value"]


def test_extreme_labels_of_all_parts_count(tmp_path, monkeypatch):
    """One negative label, which neither the fit nor its calibration sees, ends the hint at a minimum."""
    monkeypatch.setattr(sources, "MOST_LABELS", 30)
    frame = make()
    frame["y"] = frame["y"].clip(lower=0).map("{:.3f} kg".format).replace("nan kg", None)
    parts = put_parts(tmp_path / "parts", _three_parts(frame))
    options = {**QUICK, "confidence": 0.9}
    before = fill_folder(parts, "y", tmp_path / "before", **options)
    hints = [note for note in before.notes if note.startswith("No label is negative")]
    assert len(hints) == 1
    assert "among the 100 unlabelled rows of the sample" in hints[0]
    roles = before.seen.roles
    n_labels = before.counts.labelled
    assert any(f" with 30 of the {n_labels} labels" in note for note in before.notes)
    drawn = {100 * part + row for part, row in [*roles.visible, *roles.calibration]}
    labelled = np.flatnonzero(frame["y"].notna())
    unseen = next(row for row in labelled[::-1] if row not in drawn)
    frame.loc[unseen, "y"] = "-8.000 kg"
    parts = put_parts(tmp_path / "changed", _three_parts(frame))
    after = fill_folder(parts, "y", tmp_path / "after", **options)
    assert -8.0 not in after.labels.known
    assert -8.0 not in after.seen.later_rows(after.options).kept_labels
    assert not [note for note in after.notes if note.startswith("No label is negative")]
    with pytest.raises(ValueError, match="has the label -8, beyond minimum=0"):
        fill_folder(parts, "y", tmp_path / "limited", minimum=0, **options)


def _three_parts(frame):
    return [frame.iloc[start : start + 100].to_csv(index=False) for start in (0, 100, 200)]


def test_folders_of_sheets_and_of_files_with_titles_are_refused_in_words(tmp_path):
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    pd.DataFrame({"x": [1.0], "y": [2.0]}).to_excel(sheets / "a.xlsx", index=False)
    with pytest.raises(
        FileNotFoundError, match=r"holds 1 table of another format, such as a\.xlsx"
    ):
        fill_folder(sheets, "y", tmp_path / "out", **QUICK)
    titled = tmp_path / "titled"
    titled.mkdir()
    (titled / "a.csv").write_text("Title\n\nx,y\n1,2\n3,\n5,6\n")
    with pytest.raises(ValueError, match=r"row 2 has 2 fields, and the names 1\. Such files"):
        fill_folder(titled, "y", tmp_path / "out", **QUICK)


@pytest.mark.parametrize("encoding", ["shift_jis", "cp1251"])
def test_letters_of_other_scripts_in_parts(tmp_path, encoding):
    words = {"shift_jis": ("検査値", "患者男性"), "cp1251": ("Результат", "мужчина")}[encoding]
    rows = "".join(f"{words[1]},{x},{'' if x % 3 else 2 * x}\n" for x in range(60))
    for place in range(2):
        text = f"word,x,{words[0]}\n{rows}"
        (tmp_path / f"{place}.csv").write_bytes(text.encode(encoding))
    fill_folder(str(tmp_path / "*.csv"), words[0], tmp_path / "out", **QUICK)
    part = next((tmp_path / "out").glob("part-*")).read_text(encoding="utf-8")
    assert part.startswith(f"word,x,{words[0]},{words[0]}_filled")
    assert part.splitlines()[1].startswith(words[1])
