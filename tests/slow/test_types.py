"""What a type checker knows of the front door: misspelt options are found, frames keep their type."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

GOOD = """
from transduce import TransductiveRidge, fill
result = fill("houses.csv", "price", task="regression")
result.with_options(reject=0.1).table(minimum=0.0)
fill("houses.csv", ["price", "age"]).with_options(certainty=0.9)
TransductiveRidge(width="loo")
"""
BAD = (
    'fill("houses.csv", "price", task="regresion")',
    'fill("houses.csv", "price", methods="ridge")',
    "result.with_options(rejct=0.1)",
    'result.table(minimum="a")',
    'TransductiveRidge(width="lou")',
)


def messages(tmp_path, *lines):
    file = tmp_path / "user.py"
    file.write_text(GOOD + "\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line for line in told.stdout.splitlines() if ": error:" in line]


def test_a_type_checker_finds_misspelt_options(tmp_path):
    assert messages(tmp_path) == []
    lines = {message.split(":")[1] for message in messages(tmp_path, *BAD)}
    assert len(lines) == len(BAD)
