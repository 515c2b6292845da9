"""Columns such as patients, of which whole values were labelled: the advice is to name groups."""

import itertools

import numpy as np
import pandas as pd
import pytest

from tests.app.cli.test_cli import run
from transduce import fill
from transduce.app.filling.whole_values import chance_of_whole_values, is_labelled_by_value
from transduce.conformal import Grouped


def visits(n_patients=60, n_visits=5, seed=0, *, whole=True):
    """Return visits of patients, some of whom, or some visits, have a label."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), n_visits)
    n_rows = len(patient)
    bmi = rng.normal(25.0, 4.0, n_patients).round(2)[patient]
    dose = rng.normal(size=n_rows)
    y = bmi + dose + rng.normal(size=n_patients)[patient]
    if whole:
        labelled = np.isin(patient, rng.permutation(n_patients)[: n_patients // 3])
    else:
        labelled = rng.permutation(n_rows) < n_rows // 3
    names = np.array([f"P{number:03d}" for number in rng.permutation(n_patients)])[patient]
    table = pd.DataFrame({"patient": names, "bmi": bmi, "dose": dose})
    return table.assign(y=np.where(labelled, y, np.nan))


@pytest.mark.parametrize("options", [{}, {"ignore": ["patient"]}])
def test_groups_are_suggested_in_place_of_leaving_columns_out(options):
    result = fill(visits(), "y", method="ridge", **options)
    said = " ".join([str(result.guarantee), *map(str, result.notes)])
    assert said.count("labels=Grouped('patient')") == 1
    assert "ignore=" not in str(result.guarantee)


def test_nothing_is_suggested_where_single_rows_or_groups_were_labelled():
    for table, options in [
        (visits(whole=False), {}),
        (visits(), {"labels": Grouped("patient")}),
        (visits(n_visits=1), {}),
    ]:
        result = fill(table, "y", method="ridge", **options)
        assert "Of no value of" not in " ".join([str(result.guarantee), *map(str, result.notes)])


def test_on_the_command_line_and_in_the_report(tmp_path):
    visits().to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    asked = ["--target", "y", "--method", "ridge", "--report", str(report)]
    result = run("fill", str(tmp_path / "t.csv"), *asked)
    assert "--groups patient" in " ".join(result.output.split())
    assert "--groups patient" in report.read_text(encoding="utf-8")


def test_the_chance_is_bounded():
    """All ways to label so many rows, one by one."""
    for sizes in ([2, 2], [1, 2, 3], [3, 3, 2], [1, 1, 1]):
        group = np.repeat(np.arange(len(sizes)), sizes)
        for n_labels in range(1, len(group)):
            ways = list(itertools.combinations(range(len(group)), n_labels))
            counts = [np.bincount(group[list(way)], minlength=len(sizes)) for way in ways]
            whole = [np.all((count == 0) | (count == sizes)) for count in counts]
            assert chance_of_whole_values(np.array(sizes), n_labels) >= np.mean(whole)


def test_labels_that_stop_along_a_number_are_no_groups():
    year = np.repeat(np.arange(2000, 2030), 10)
    assert not is_labelled_by_value(pd.Series(year), year < 2015)
    odd = year % 2 == 0
    assert is_labelled_by_value(pd.Series(year), odd)
    odd[0] = ~odd[0]
    assert not is_labelled_by_value(pd.Series(year), odd)
    assert not is_labelled_by_value(pd.Series(["a", "b"] * 150), np.tile([True, False], 150))
