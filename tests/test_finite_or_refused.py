"""Every public name keeps its promise: a finite result, or a ValueError in words, never a silent NaN.

Here quick calls are tried with every odd value and slow ones with a few; tests/slow tries them all.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from tests import finite
from transduce.app.cli.app import app

ENTRIES = finite.entries()
FEW = 2  # odd values of a slow call


CALLS = [
    pytest.param(name, call, id=f"{name.removeprefix('transduce.')} {call.name}".strip())
    for name, calls in ENTRIES.items()
    for call in calls
]


def test_every_public_name_has_an_entry():
    """A name that is new in docs/api.md or in an ``__all__`` needs one."""
    assert finite.public_names() == set(ENTRIES)


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_finite_or_refused(name, call):
    broken = finite.broken_promises(name, call, few=FEW if call.slow else None)
    assert not broken, "\n".join(broken)


def test_a_silent_nan_is_found():
    """The net itself: it would catch a NaN, another exception, and an empty message."""
    odd = finite.Odd("odd", None)
    assert finite.broken_promise(lambda: np.array([1.0, np.nan]), {}, odd)
    assert finite.broken_promise(lambda: {"a": [(float("nan"),)]}, {}, odd)
    assert finite.broken_promise(lambda: [][1], {}, odd)
    assert finite.broken_promise(lambda: (_ for _ in ()).throw(ValueError), {}, odd)
    assert finite.broken_promise(lambda: 1 + "a", {}, odd)
    assert not finite.broken_promise(lambda: 1 + "a", {}, finite.Odd("text", "a", True))
    assert not finite.broken_promise(lambda: np.array([1.0, np.inf]), {}, odd)


# ------------------------------------------------------------------------------------------------ the commands

COMMANDS = {
    "fill": ["--target", "price", "--method", "ridge"],
    "compare": ["--target", "price", "--folds", "2"],
    "audit": ["--target", "price", "--predictions", "size", "--tolerance", "1"],
    "draw": ["--target", "price", "--number", "3"],
    "estimate": ["--target", "price", "--method", "ridge", "--out", "estimates.csv"],
    "label": None,  # serve a page until they are interrupted; tests/app/page is about them
    "open": None,
    "answer": None,  # needs a file of `fill --save`
    "methods": None,  # these read no table
    "example": None,
    "demo": None,
}
CONTENTS = {
    "nothing": b"",
    "header only": b"size,price\n",
    "one row": b"size,price\n1,\n",
    "no label": b"size,price\n1,\n2,\n3,\n",
    "one label": b"size,price\n1,5\n2,\n3,\n",
    "constant": b"size,price\n" + b"1,5\n" * 20 + b"1,\n" * 5,
    "infinite": b"size,price\n" + b"inf,1e400\n" * 20 + b"-inf,\n" * 5,
    "tiny": b"size,price\n" + b"".join(b"%d,1e-200\n" % k for k in range(20)) + b"3,\n",
    "not UTF-8": b"size,price\n\xff\xfe,1\n\xe4,\n",
    "NUL": b"size,price\n\x00,1\n1,\n",
    "ragged": b"size,price\n1,2,3,4\n1\n",
    "binary": bytes(range(256)) * 4,
    "equal names": b"price,price\n1,2\n3,\n",
}
SOME = ("nothing", "one label", "constant", "binary")


def test_every_command_has_an_entry():
    assert {command.name or command.callback.__name__ for command in app.registered_commands} == {
        *COMMANDS
    }


@pytest.mark.parametrize("command", [name for name, words in COMMANDS.items() if words])
@pytest.mark.parametrize(
    "content",
    [pytest.param(name, marks=[] if name in SOME else pytest.mark.slow) for name in CONTENTS],
)
def test_a_command_ends_with_a_table_or_a_sentence(tmp_path, monkeypatch, command, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "größe.csv").write_bytes(CONTENTS[content])
    result = CliRunner().invoke(app, [command, "größe.csv", *COMMANDS[command]])
    assert result.exit_code in (0, 1), result.output
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    made = {path.name for path in tmp_path.iterdir()} - {"größe.csv"}
    if result.exit_code:
        assert made == set()
        assert result.stderr.strip().splitlines()[-1].startswith("transduce: ")
    elif command not in ("compare", "audit"):
        text = (tmp_path / made.pop()).read_text("utf-8")
        assert not re.search(r"\bnan\b", text.casefold())
