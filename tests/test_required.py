"""What a required job must test is not skipped there: a skip becomes a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPPED = """
import pytest

def test_of_torch():
    pytest.skip("torch is not installed")

@pytest.mark.skipif(True, reason="NOT TESTED, because Chromium is not installed.")
def test_of_a_browser():
    pass

def test_of_a_card():
    pytest.skip("there is no CUDA device")
"""


@pytest.mark.parametrize(
    ("must_test", "outcome"),
    [
        pytest.param("", "3 skipped", marks=pytest.mark.slow),
        pytest.param("torch", "1 failed, 2 skipped", marks=pytest.mark.slow),
        ("browser,torch", "1 failed, 1 skipped, 1 error"),
    ],
)
def test_a_required_job_does_not_skip(tmp_path, must_test, outcome):
    test_file = tmp_path / "test_skipped.py"
    test_file.write_text(SKIPPED)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "--rootdir",
            tmp_path,
            test_file,
        ],
        cwd=ROOT,
        env=os.environ | {"TRANSDUCE_MUST_TEST": must_test},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert outcome in run.stdout
