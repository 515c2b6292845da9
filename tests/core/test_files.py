"""Files that are written whole, together, as private as what they are made from; and nothing else is touched."""

import errno
import itertools
import os
import signal
import stat
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core import files
from transduce.core.files import (
    DiskFullError,
    is_temporary,
    locked,
    make_folder,
    remove_torn,
    temporary_name,
    together,
    whole_file,
    write_text,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights and signals of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def contents(folder):
    """Every file below a folder, with what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


# ------------------------------------------------------------------------------------------- names of temporary files


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1))
def test_temporary_names_prove_themselves(name):
    """Also of long names; the same with one sign changed does not."""
    temporary = temporary_name(name)
    assert is_temporary(temporary)
    assert len(os.fsencode(temporary)) <= 255 or len(os.fsencode(name)) > 255
    digit = temporary[-6]
    changed = f"{temporary[:-6]}{'0' if digit != '0' else '1'}.part"
    assert not is_temporary(changed)


@given(st.from_regex(r"\.[a-z.]{1,12}\.[0-9a-f]{8,20}\.part", fullmatch=True))
def test_names_of_others_do_not(name):
    assert not is_temporary(name)


def test_only_own_torn_files_are_removed(tmp_path):
    foreign = [".t.csv.abc.part", ".download.iso.part", ".t.csv.0123456789abcdef0123.part", "x"]
    for name in foreign:
        (tmp_path / name).write_text(name)
    (tmp_path / temporary_name("folder")).mkdir()
    (tmp_path / temporary_name("link")).symlink_to(tmp_path / "x")
    before = {path.name for path in tmp_path.iterdir()}
    (tmp_path / temporary_name("t.csv")).write_text("torn")
    write_text(tmp_path / "t.csv", "new")
    assert {path.name for path in tmp_path.iterdir()} == before | {"t.csv"}
    (tmp_path / temporary_name("other.csv")).write_text("torn")
    remove_torn(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before | {"t.csv"}
    remove_torn(tmp_path / "not there")


def test_long_names(tmp_path):
    """A name that a file can have is one that can be written."""
    for name in ("a" * 240, "é" * 110, "a" * 179 + "é"):
        write_text(tmp_path / name, "text")
        write_text(tmp_path / name, "other", force=True)
        assert (tmp_path / name).read_text() == "other"


# --------------------------------------------------------------------------------------------------------- one file


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    with (
        pytest.raises(FileExistsError, match="exists already"),
        whole_file(tmp_path / "a.txt"),
    ):
        (tmp_path / "a.txt").write_text("theirs")
    assert contents(tmp_path) == {"a.txt": b"theirs"}


def test_file_systems_without_links(tmp_path, monkeypatch):
    def no_link(*args, **kwargs):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    (tmp_path / "b.txt").write_text("old")
    with together():
        write_text(tmp_path / "a.txt", "new")
        write_text(tmp_path / "b.txt", "new", force=True)
    assert contents(tmp_path) == {"a.txt": b"new", "b.txt": b"new"}
    with pytest.raises(FileExistsError), whole_file(tmp_path / "c.txt"):
        (tmp_path / "c.txt").write_text("theirs")
    assert (tmp_path / "c.txt").read_text() == "theirs"


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    happened = []
    for name in ("fsync", "replace", "link"):
        plain = getattr(os, name)

        def noted(*args, plain=plain, name=name, **kwargs):
            happened.append(name)
            return plain(*args, **kwargs)

        monkeypatch.setattr(os, name, noted)
    write_text(tmp_path / "a.txt", "one", force=True)
    assert happened == ["fsync", "replace", "fsync"]  # of the file, and then of its folder


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failing_disk(tmp_path, monkeypatch, number):
    (tmp_path / "a.txt").write_text("old")

    def fails(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    kind = OSError if number == errno.EIO else DiskFullError
    with pytest.raises(kind, match=r"a\.txt cannot be written: "):
        write_text(tmp_path / "a.txt", "new", force=True)
    assert contents(tmp_path) == {"a.txt": b"old"}


# ------------------------------------------------------------------------------------------------- several files


def write_three(folder):
    """Three outputs of one run, of which one replaces an older file."""
    with together():
        write_text(folder / "a.txt", "new a")
        with together():
            write_text(folder / "b.txt", "new b", force=True)
        write_text(folder / "c.txt", "new c")
        assert not (folder / "a.txt").exists()


OLD, NEW = {"b.txt": b"old b"}, {"a.txt": b"new a", "b.txt": b"new b", "c.txt": b"new c"}
CALLS = ("open", "fsync", "replace", "link", "chmod")


def test_all_files_or_none(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"old b")
    write_three(tmp_path)
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_that_fails_leaves_what_was_there(tmp_path, monkeypatch, call, error):
    """The system fails, or the user interrupts, at the first such call, at the second, and so on."""
    plain = getattr(os, call)
    for place in itertools.count():
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "b.txt").write_bytes(b"old b")
        counted = itertools.count()

        def failing(*args, place=place, counted=counted, **kwargs):
            if next(counted) == place:
                raise error
            return plain(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(os, call, failing)
            try:
                write_three(folder)
            except (OSError, KeyboardInterrupt):
                assert contents(folder) == OLD
            else:  # there were fewer such calls, or one that is not needed
                assert contents(folder) == NEW
        if next(counted) <= place:
            break
    assert place >= 1


def kill_at(place, names):
    """Let this process be killed at a call of the system, counted from 0."""
    counted = itertools.count()
    for name in names:
        plain = getattr(os, name)

        def killing(*args, plain=plain, **kwargs):
            if next(counted) == place:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*args, **kwargs)

        setattr(os, name, killing)


@POSIX
def test_killed_at_every_call(tmp_path):
    """Each file is the old one or the new one; what is left is taken away by the next run."""
    names = (*CALLS, "unlink")
    for place in itertools.count():
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "b.txt").write_bytes(b"old b")
        child = os.fork()
        if not child:
            kill_at(place, names)
            write_three(folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found = contents(folder)
        for name, content in found.items():
            assert is_temporary(name) or content in (OLD.get(name), NEW[name])
        remove_torn(folder)
        assert not [name for name in contents(folder) if is_temporary(name)]
        if status == 0:
            break
        for name in ("a.txt", "c.txt"):
            (folder / name).unlink(missing_ok=True)
        write_three(folder)
        assert contents(folder) == NEW
    assert place > 12


@POSIX
def test_an_interrupt_waits_for_the_names(tmp_path, monkeypatch):
    """A Ctrl+C between two names comes after the last of them, also where another thread could take it."""
    plain = files.synchronise_folder

    def interrupted(folder):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        plain(folder)

    monkeypatch.setattr(files, "synchronise_folder", interrupted)
    (tmp_path / "b.txt").write_bytes(b"old b")
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    # A shell starts what runs in the background with Ctrl+C switched off.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            write_three(tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        done.set()
        other.join()
    assert contents(tmp_path) == NEW


def test_threads_place_files_too(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"old b")
    thread = threading.Thread(target=write_three, args=[tmp_path])
    thread.start()
    thread.join()
    assert contents(tmp_path) == NEW


def test_a_file_in_work_is_not_torn(tmp_path):
    """While a run has not ended, another one that writes the same file leaves its temporary file alone."""
    with together():
        write_text(tmp_path / "a.txt", "one", force=True)
        remove_torn(tmp_path)
        assert len(contents(tmp_path)) == 1
    assert contents(tmp_path) == {"a.txt": b"one"}


# -------------------------------------------------------------------------------------------------------- rights


@POSIX
@pytest.mark.parametrize(
    ("given", "found", "folder"),
    [
        (0o600, 0o600, 0o700),
        (0o400, 0o600, 0o700),
        (0o640, 0o640, 0o750),
        (0o604, 0o604, 0o705),
        (0o644, 0o644, 0o755),
        (0o666, 0o644, 0o755),
    ],
)
def test_as_private_as_what_it_is_made_from(tmp_path, usual_umask, given, found, folder):
    source = tmp_path / "patients.csv"
    source.write_text("name")
    source.chmod(given)
    write_text(tmp_path / "out.txt", "new", like=[source])
    assert mode(tmp_path / "out.txt") == found
    (tmp_path / "open.txt").write_text("old")
    (tmp_path / "open.txt").chmod(0o666)
    write_text(tmp_path / "open.txt", "new", force=True, like=[source])
    assert mode(tmp_path / "open.txt") == 0o600 | (given & 0o066)
    make_folder(tmp_path / "x" / "y", like=[source])
    assert mode(tmp_path / "x") == mode(tmp_path / "x" / "y") == folder


@POSIX
def test_the_most_private_source_counts(tmp_path, usual_umask):
    for name, rights in (("a", 0o644), ("b", 0o640), ("c", 0o604)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(rights)
    sources = [tmp_path / "a", tmp_path / "b", tmp_path / "c", tmp_path / "not there"]
    write_text(tmp_path / "out", "", like=sources)
    assert mode(tmp_path / "out") == 0o600


@POSIX
def test_a_private_folder_keeps_its_files_private(tmp_path, usual_umask):
    """What is written elsewhere is closed; beside its source it is as open as that."""
    (tmp_path / "private").mkdir(mode=0o700)
    source = tmp_path / "private" / "t.csv"
    source.write_text("")
    source.chmod(0o644)
    write_text(tmp_path / "elsewhere.txt", "", like=[source])
    write_text(tmp_path / "private" / "beside.txt", "", like=[source])
    (tmp_path / "link.csv").symlink_to(source)
    write_text(tmp_path / "linked.txt", "", like=[tmp_path / "link.csv"])
    assert mode(tmp_path / "elsewhere.txt") == mode(tmp_path / "linked.txt") == 0o600
    assert mode(tmp_path / "private" / "beside.txt") == 0o644


@POSIX
def test_nobody_reads_a_file_on_its_way(tmp_path, usual_umask):
    with whole_file(tmp_path / "a.txt") as file:
        file.write(b"1")
        (temporary,) = tmp_path.iterdir()
        assert mode(temporary) == 0o600
    assert mode(tmp_path / "a.txt") == 0o644


def test_folders_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=f"The folder {path} cannot be made: "):
            make_folder(path)
    with pytest.raises(OSError, match="cannot be made"):
        make_folder(tmp_path / "new" / ("x" * 300))
    assert not (tmp_path / "new").exists()


# --------------------------------------------------------------------------------------------------------- locks


@pytest.mark.parametrize("text", ["", "pid 17\n", "held by transduce\nand more"])
def test_a_lock_of_somebody_else_stays(tmp_path, text):
    (tmp_path / ".lock").write_text(text)
    with locked(tmp_path / ".lock", "taken"):
        with pytest.raises(BlockingIOError, match="taken"), locked(tmp_path / ".lock", "taken"):
            pass
        assert (tmp_path / ".lock").exists()
    assert (tmp_path / ".lock").read_text() == text


def test_a_lock_goes_away(tmp_path):
    """Also one of a killed process; a folder of its name is said to be in the way."""
    with locked(tmp_path / ".lock", "taken"):
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").write_bytes(files.LOCK_TEXT)
    with locked(tmp_path / ".lock", "taken"):
        pass
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").mkdir()
    with pytest.raises(OSError, match="in the way"), locked(tmp_path / ".lock", "taken"):
        pass
