"""Known values that are perhaps wrong: by the definition, in words, and where they are."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pandas as pd
import pytest

from tests import brute
from transduce import fill
from transduce.app.report.suspects import (
    about_suspects,
    find_suspects,
    name_row,
    smaller_than_chance,
    summarize_suspects,
    tail_probabilities,
    times_usual,
    wrong_probability,
)
from transduce.app.tables import files
from transduce.app.tables.columns import read_target


def folds_of(true, answered):
    return pd.DataFrame({"true": true, "answered": answered}).rename_axis("row")


def numbers(values):
    return read_target(pd.DataFrame({"y": [*values, None]}), "y", task="regression")


def smooth_folds(n=60):
    true = np.linspace(100_000.0, 400_000.0, n)
    return folds_of(true, true + 1000.0 * np.sin(np.arange(n)))


@pytest.mark.parametrize("n", [20, 21, 50, 133])
def test_errors_are_measured_in_those_of_similar_predictions(n):
    random = np.random.default_rng(n)
    answered = random.normal(size=n).round(1)  # with ties
    errors = random.exponential(size=n) * (1.0 + np.abs(answered))
    expected = brute.times_usual_error(errors, answered)
    assert times_usual(errors, answered) == pytest.approx(expected)


def test_the_tail_is_a_power_law():
    random = np.random.default_rng(0)
    times = random.pareto(3.0, 4000)
    above = times > np.quantile(times, 0.9)
    found = tail_probabilities(times)
    assert (found[times <= np.quantile(times, 0.8)] == 1.0).all()
    for value, probability in zip(times[above][:20], found[above][:20], strict=True):
        by_share = []
        for share in (0.2, 0.1):
            threshold = max(np.quantile(times, 1 - share), 1.0)
            excesses = sorted(log(other / threshold) for other in times if other > threshold)
            index = max(np.median(excesses) / log(2.0), 0.2)
            by_share.append(share * exp(-log(value / threshold) / index))
        assert probability == pytest.approx(max(by_share))


def test_the_rule_of_benjamini_and_hochberg():
    for seed in range(30):
        p_values = np.random.default_rng(seed).uniform(size=12) ** 3
        order = sorted(range(12), key=lambda place: p_values[place])
        passing = [k for k in range(1, 13) if p_values[order[k - 1]] <= 0.2 * k / 12]
        expected = order[: max(passing, default=0)]
        assert smaller_than_chance(p_values, 0.2).tolist() == expected


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_wrong_label_by_counting(n_classes):
    """Of many labels one in 50 is replaced by another class; among those like this, so many are wrong."""
    of_true = 0.05
    others = (1.0 - of_true) / (n_classes - 1)
    shown_right = 0.98 * of_true
    shown_wrong = sum(0.02 * others / (n_classes - 1) for _ in range(n_classes - 1))
    expected = shown_wrong / (shown_wrong + shown_right)
    assert wrong_probability(np.array([of_true]), n_classes) == pytest.approx([expected])


def test_no_label_is_suspect_without_a_slip():
    assert len(find_suspects("regression", smooth_folds())) == 0
    assert (
        about_suspects(find_suspects("regression", smooth_folds()), numbers([1.0, 2.0, 4.0]), None)
        == ""
    )


def test_few_suspects_among_right_values():
    """About one in ten tables of right values has any: the rule allows one in five by chance."""
    n_tables = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        answered = random.normal(size=80)
        errors = random.standard_t(5, size=80)
        n_tables += len(find_suspects("regression", folds_of(answered + errors, answered))) > 0
    assert n_tables <= 20


def test_slips_are_found_and_named():
    folds = smooth_folds()
    folds.loc[[7, 30], "true"] = [12_500_000.0, 2_521.5]
    suspects = find_suspects("regression", folds)
    assert suspects.rows.tolist() == [7, 30]
    labels = numbers(folds["true"])
    sentence = about_suspects(suspects, labels, None)
    assert sentence.startswith(
        "Check whether these known values are right: 12,500,000 in row 8, predicted as 136,250 while it was hidden, "
    )
    assert "; 2,521.5 in row 31, predicted as 251,554 while it was hidden, " in sentence
    lines = list(range(5, 65))
    assert "12,500,000 in line 12, predicted" in about_suspects(suspects, labels, lines)
    in_a_sample = replace(suspects, have_places=False)
    assert "12,500,000, predicted" in about_suspects(in_a_sample, labels, lines)
    assert summarize_suspects(in_a_sample, labels, lines) == []
    first = summarize_suspects(suspects, labels, lines)[0]
    assert (first["position"], first["row"], first["value"]) == (7, "line 12", "12,500,000")
    assert len(find_suspects("regression", folds[:19])) == 0


def test_dates_are_named_as_dates():
    known = pd.date_range("2020-01-01", periods=60)
    labels = read_target(pd.DataFrame({"y": [*known.astype(str), None]}), "y")
    folds = folds_of(labels.known, labels.known + np.sin(np.arange(60)))
    folds.loc[3, "answered"] += 4000.0
    sentence = about_suspects(find_suspects(labels.task, folds), labels, None)
    assert "2020-01-04 in row 4, predicted as 2030-12-" in sentence


def test_classes_that_are_improbable():
    true = np.array(["yes", "no"] * 20, dtype=object)
    folds = folds_of(true, true).assign(probability_of_true=0.9)
    folds.loc[5, ["answered", "probability_of_true"]] = ["yes", 0.01]
    folds.loc[8, ["answered", "probability_of_true"]] = ["no", 0.4]  # a mistake as there are many
    suspects = find_suspects("classification", folds)
    assert suspects.rows.tolist() == [5]
    labels = read_target(pd.DataFrame({"y": [*true, None]}), "y")
    assert about_suspects(suspects, labels, None) == (
        "Check whether these known values are right: “no” in row 6, predicted as “yes” while it was hidden, "
        "and itself given a probability of 1 %."
    )
    assert len(find_suspects("classification", folds.drop(columns="probability_of_true"))) == 0


def table_with_slips(task):
    random = np.random.default_rng(3)
    x = random.normal(size=(160, 2))
    y = 10.0 + 3.0 * x[:, 0] + 0.2 * random.normal(size=160)
    if task == "regression":
        y[[4, 50]] = [y[4] * 10.0, -40.0]
        column = pd.Series(y.round(2)).where(np.arange(160) < 100)
    else:
        column = pd.Series(np.where(y > 10.0, "high", "low"), dtype=object)
        column[np.argmax(x[:100, 0])] = "low"
        column = column.where(np.arange(160) < 100, None)
    return pd.DataFrame(x, columns=["a", "b"]).assign(y=column)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_result_lists_and_ranks_them(task):
    table = table_with_slips(task)
    expected = {4, 50}
    if task == "classification":
        expected = {int(np.argmax(table["a"][:100]))}
    result = fill(table, "y", method="ridge" if task == "regression" else "forest")
    assert set(result.suspects.index) >= expected
    assert len(result.suspects) <= 3
    ranks = result.table(suspect=True)["y_suspect"]
    assert [int(ranks[row]) for row in result.suspects.index] == list(
        range(1, len(result.suspects) + 1)
    )
    assert ranks.notna().sum() == len(result.suspects)


def test_the_line_of_the_file_is_named(tmp_path):
    table = table_with_slips("regression")
    path = tmp_path / "a.csv"
    text = table.assign(note=['"two\nlines"'] * 2 + ["one"] * 158).to_csv(
        index=False, quoting=3, escapechar="\\"
    )
    path.write_text("Laboratory, March\n\n" + text.replace("\\", ""))
    result = fill(files.read(path), "y", method="ridge", ignore=["note"])
    assert set(result.suspects["line"]) == {10, 56}
    assert path.read_text().splitlines()[9].startswith(f"{table['a'][4]:.5f}"[:6])
    sentence = about_suspects(result.known_suspects, result.labels, result.seen.lines)
    assert " in line 10, predicted" in sentence


def test_rows_without_a_file_are_counted():
    assert name_row(1233, None) == "row 1,234"
    assert name_row(1, [4, 7]) == "line 7"
