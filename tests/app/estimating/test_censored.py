"""Shares and quantiles of columns some of whose labels are detection limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.estimating import PredictedColumn, estimate_of
from transduce.app.filling import fill_folder, fit_fill, load, save
from transduce.app.tables.columns import read_target
from transduce.population import Sample

N_ROWS = 400
SHARES = (
    "share below 60",
    "share above 40",
    "share between 20 and 50",
    "share between 50 and 70",
    "share above 150",
)
QUANTILES = (0.1, 0.5, 0.9)


def draw_truth(rng):
    """Return numbers, about four in ten below 60, and a feature."""
    size = rng.normal(size=N_ROWS)
    return np.exp(4.2 + 0.4 * size + 0.3 * rng.normal(size=N_ROWS)), size


def as_written(truth, low, high):
    """Return numbers as a laboratory writes them that sees them between limits, of each row."""
    cells = np.array([f"{value:.3f}" for value in truth], dtype=object)
    for row in np.flatnonzero(truth < low):
        cells[row] = f"<{low[row]:g}"
    for row in np.flatnonzero(truth > high):
        cells[row] = f">{high[row]:g}"
    return cells


def limits_of(case):
    """Return the limits of each row, below and above."""
    low = np.zeros(N_ROWS)
    high = np.full(N_ROWS, np.inf)
    if case in ("below", "both"):
        low[:] = 60.0
    if case in ("above", "both"):
        high[:] = 120.0
    if case == "several":
        low[::2] = 60.0
        low[1::2] = 30.0
        high[::3] = 120.0
    return low, high


def make_table(case, seed=0, n_labels=140):
    rng = np.random.default_rng(seed)
    truth, size = draw_truth(rng)
    cells = as_written(truth, *limits_of(case))
    cells[rng.permutation(N_ROWS)[n_labels:]] = None
    group = rng.choice(["north", "south"], N_ROWS)
    return pd.DataFrame({"size": size, "group": group, "biomass": cells}), truth


def make_column(frame, *, predicted):
    target = read_target(frame, "biomass")
    predictions = None
    if predicted:
        predictions = np.maximum(np.exp(4.25 + 0.4 * frame["size"].to_numpy()), 55.0)
    return PredictedColumn(
        target=target,
        predictions=predictions,
        classes=None,
        sample=Sample(~target.missing),
        frame=frame,
        assumption="chance chose the labels",
        names=frame.index.astype(str),
    )


def share_of(truth, question):
    numbers = [float(word) for word in question.split() if word.isdigit()]
    if "between" in question:
        return np.mean((truth > numbers[0]) & (truth < numbers[1]))
    if "above" in question:
        return np.mean(truth > numbers[0])
    return np.mean(truth < numbers[0])


@pytest.mark.few(2)
@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("case", ["below", "above", "both", "several"])
def test_intervals_hold_the_truth(case, predicted):
    trials = 25
    missed: dict[str, int] = {}
    for seed in range(trials):
        frame, truth = make_table(case, seed)
        column = make_column(frame, predicted=predicted)
        asked = {question: share_of(truth, question) for question in SHARES}
        for q in QUANTILES:
            asked[f"quantile {q}"] = np.quantile(truth, q, method="inverted_cdf")
        for question, true in asked.items():
            line = estimate_of(column, question).iloc[0]
            missed.setdefault(question, 0)
            missed[question] += not line["lower"] <= true <= line["upper"]
    # Of 25 intervals at 95 % more than 5 miss in fewer than one of 1,000 trials.
    assert max(missed.values()) <= 5, missed


@pytest.mark.parametrize("predicted", [False, True])
def test_labels_that_decide_a_question_answer_it_as_if_all_were_numbers(predicted):
    frame, truth = make_table("below")
    column = make_column(frame, predicted=predicted)
    known = frame["biomass"].notna().to_numpy()
    uncensored = frame.assign(biomass=np.where(known, truth.round(3), np.nan))
    plain = make_column(uncensored, predicted=False)
    for question in ("share below 60", "share above 60", "share above 90", "quantile 0.7"):
        answer = estimate_of(column, question).iloc[0]
        expected = estimate_of(plain, question).iloc[0]
        assert answer["labels_alone"] == pytest.approx(expected["labels_alone"])
        assert answer["labels_alone_lower"] == pytest.approx(expected["labels_alone_lower"])
        assert answer["labels_alone_upper"] == pytest.approx(expected["labels_alone_upper"])
        assert "limit" not in answer["note"]


def test_labels_that_decide_nothing_count_both_ways():
    frame, _ = make_table("below")
    column = make_column(frame, predicted=False)
    n_below = int(frame["biomass"].str.startswith("<").sum())
    line = estimate_of(column, "share above 40").iloc[0]
    decided = estimate_of(column, "share above 60").iloc[0]
    assert line["lower"] <= decided["lower"] + 0.01
    assert line["upper"] == 1.0
    assert f"{n_below} labels are limits that leave this question open" in line["note"]
    assert "from 60 upwards" in line["note"]
    assert pd.isna(line["labels_for_half"])


def test_a_quantile_below_a_limit_has_no_lower_end():
    frame, _ = make_table("both")
    column = make_column(frame, predicted=False)
    low, high = (estimate_of(column, f"quantile {q}").iloc[0] for q in (0.1, 0.95))
    assert low["lower"] == -np.inf
    assert np.isnan(low["estimate"])
    assert low["upper"] == 60.0
    assert "ask for a higher quantile" in low["note"]
    assert high["upper"] == np.inf
    assert high["lower"] == 120.0
    assert "ask for a lower quantile" in high["note"]


def test_a_limit_that_may_be_the_value_itself_does_not_decide_it():
    frame, _ = make_table("below")
    frame["biomass"] = frame["biomass"].str.replace("<", "≤")
    column = make_column(frame, predicted=False)
    assert "limits that leave" in estimate_of(column, "share below 60").iloc[0]["note"]
    assert estimate_of(column, "share above 60").iloc[0]["note"] != ""
    assert "limits that leave" not in estimate_of(column, "share above 60").iloc[0]["note"]


SETTINGS = {"method": "ridge", "random_state": 0}
QUESTIONS = ("share below 40", "share above 40", "share below 60", "quantile 0.1", "median")


def true_answer(truth, question):
    if question.startswith("share"):
        return share_of(truth, question)
    return np.quantile(truth, 0.5 if question == "median" else 0.1, method="inverted_cdf")


def test_every_way_to_a_table_knows_its_limits(tmp_path):
    import dask.dataframe as dd

    frame, truth = make_table("below")
    for part in range(2):
        frame.iloc[200 * part : 200 * (part + 1)].to_csv(tmp_path / f"{part}.csv", index=False)
    sampled = {**SETTINGS, "sample": 120}
    results = {
        "table": fill(frame, "biomass", **SETTINGS),
        "sample": fill(frame, "biomass", **sampled),
        "folder": fill_folder(f"{tmp_path}/*.csv", "biomass", tmp_path / "out", **sampled),
        "dask": fill(dd.from_pandas(frame, npartitions=2), "biomass", **sampled),
    }
    for name, result in results.items():
        for question in QUESTIONS:
            line = result.estimate(question, level=0.999).iloc[0]
            assert line["lower"] <= true_answer(truth, question) <= line["upper"], (name, question)
        by = result.estimate("share above 40", by="group")
        assert by["note"].str.contains("this question open").all(), name
        with pytest.raises(ValueError, match="labels are detection limits"):
            result.estimate("mean")


def test_later_rows_know_the_limits_of_a_saved_fit(tmp_path):
    frame, _ = make_table("below", seed=3)
    later, truth = make_table("below", seed=4, n_labels=20)
    save(tmp_path / "fit.transduce", frame, "biomass", **SETTINGS)
    for fitted in (fit_fill(frame, "biomass", **SETTINGS), load(tmp_path / "fit.transduce")):
        for question in QUESTIONS:
            line = fitted.estimate(later, question, level=0.999).iloc[0]
            assert line["lower"] <= true_answer(truth, question) <= line["upper"], question
        assert "question open" in fitted.estimate(later, "share above 40")["note"].iloc[0]


def test_predictions_beside_limits_are_not_counted_by_how_far_off_they_are():
    frame, _ = make_table("below")
    refusal = "labels are limits, such as <0.5"
    with pytest.raises(ValueError, match=refusal):
        fill(frame, "biomass", guarantee="column", **SETTINGS).with_options(tolerance=5.0)
    result = fill(frame, "biomass", guarantee="column", **SETTINGS)
    with pytest.raises(ValueError, match=refusal):
        result.guarantee_at(tolerance=5.0)


def test_no_column_is_completed_with_limits():
    frame, _ = make_table("below")
    result = fill(frame, "biomass", **SETTINGS)
    with pytest.raises(ValueError, match="no column can be completed"):
        result.draws(2)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("below", {"above": 40.0}),
        ("below", {"tolerance": 15.0}),
        ("above", {"below": 150.0}),
        ("both", {"above": 50.0, "below": 130.0}),
    ],
)
def test_rows_are_selected_by_what_limits_decide(case, wanted):
    frame, truth = make_table(case, n_labels=200)
    result = fill(frame, "biomass", guarantee="column", **SETTINGS)
    picked = result.select(false_discovery=0.1, **wanted)
    model = result.model
    labels = read_target(result.fit.frame, "biomass")
    held = model.calibration_rows_
    least, most = (end[held] for end in labels.bounds)
    judged = model.select(false_discovery=0.1, ranges=result.ranges_in_fit, **wanted).judged
    if "tolerance" in wanted:
        # What a limit leaves open is off by any amount.
        assert np.isinf(judged.of_known[2]).sum() == np.sum(labels.censored[held])
    else:
        low, high = wanted.get("above", -np.inf), wanted.get("below", np.inf)
        of_limits = model.select(false_discovery=0.1, **wanted)
        assert len(picked.rows) <= len(of_limits.rows)
        assert np.any(((least <= low) | (most >= high)) & labels.censored[held])
        wrong = (truth[picked.rows] <= low) | (truth[picked.rows] >= high)
        assert np.sum(wrong) <= 0.15 * len(wrong)


def test_corrected_predictions_are_selected_by_how_far_off_they_are_only():
    frame, truth = make_table("none", n_labels=200)
    frame["guess"] = np.exp(4.2 + 0.4 * frame["size"])
    result = fill(frame, "biomass", guarantee="column", predictions="guess", **SETTINGS)
    assert result.fit.offset is not None
    # Labels of that fit are errors of the predictions: all of them are below 60.
    with pytest.raises(ValueError, match="judges by how far off they are"):
        result.select(below=60.0)
    picked = result.select(tolerance=60.0)
    assert len(picked.rows)
    assert np.mean(np.abs(truth[picked.rows] - picked.values) > 60.0) <= 0.15
