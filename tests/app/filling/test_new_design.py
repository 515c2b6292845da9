"""A new design is one class and one line that registers it: all else follows."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("starlette")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What the application makes of a design that it has never heard of."""
    command = [
        sys.executable,
        "-m",
        "tests.app.filling.new_design",
        str(tmp_path_factory.mktemp("new")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_it_has_its_flag_and_help(report):
    assert "--label-odds COLUMN" in report["help"]
    assert "A column with the odds of no label." in report["help"]
    assert "Estimated() or Weighted(column)" in " ".join(report["doc"].split())
    assert report["exit"] == 0
    assert "exact if the given odds are right" in " ".join(report["output"].split())
    assert "--groups and --label-odds exclude each other" in " ".join(report["both"].split())


def test_it_has_its_guarantee_and_sentence(report):
    assert report["headline"] == "exact if the given odds are right"
    assert report["assumptions"] == ["the given odds of being labelled are right"]
    assert report["same intervals"]  # as those of the probabilities that give these odds
    assert "Estimated() or Weighted(column); got 'odds'" in report["refusal"]
    assert report["in python"] == "labels=Weighted(...)"


def test_it_is_done_again(report):
    assert report["call"] == "fill(table, 'y', task='regression', labels=Weighted(odds='odds'))"
    assert report["command"] == (
        "transduce fill table.csv --target y --task regression --label-odds odds"
    )
    assert report["read back"]


def test_it_has_its_card(report):
    known, new, unknown = report["cards"][-3:]
    assert (known, new, unknown) == ("I know the probabilities", "I know the odds", "I don't know")
    assert report["on the page"] == "“I know the odds” in the second step"
    assert report["by the page"]
