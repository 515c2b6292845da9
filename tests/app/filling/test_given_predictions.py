"""Predictions that were made elsewhere: corrected numbers, one more member for classes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling import fit_fill
from transduce.app.filling.engine import fit_rows
from transduce.app.filling.given_predictions import MEMBER, PredictedClasses
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.core.answer import Regions

N_ROWS = 160


def numbers(n_labels=40, n_rows=N_ROWS, seed=0):
    """Return a table with a column `llm` of predicted numbers, and the truth."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    truth = 50 * rng.normal(size=n_rows) + 3 * table["a"] + 200
    table["llm"] = truth - 3 * table["a"] + rng.normal(size=n_rows)
    labelled = np.isin(np.arange(n_rows), rng.choice(n_rows, n_labels, replace=False))
    return table.assign(y=truth.where(labelled)), truth.to_numpy()


def classes(n_labels=40, seed=0, right=0.9):
    """Return a table with a column `llm` of predicted classes, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(["ham", "spam", "other"], N_ROWS)
    guess = rng.choice(["ham", "spam", "other"], N_ROWS)
    given = np.where(rng.random(N_ROWS) < right, truth, guess)
    table = pd.DataFrame({"a": rng.normal(size=N_ROWS), "llm": given})
    labelled = np.isin(np.arange(N_ROWS), rng.choice(N_ROWS, n_labels, replace=False))
    return table.assign(y=np.where(labelled, truth, None)), truth


def by_hand(table):
    """Return the table with labels from which the prediction was taken off by hand."""
    return table.assign(y=table["y"] - table["llm"])


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_intervals_are_those_of_corrections_made_by_hand(guarantee):
    table, _ = numbers()
    options = Options(method="ridge", guarantee=guarantee, task="regression")
    with_offset = replace(options, predictions="llm")
    fit = fit_rows(FrameSource.read(table, "y", with_offset), with_offset)
    twin = fit_rows(FrameSource.read(by_hand(table), "y", options), options)
    offset = table["llm"].to_numpy()[fit.answer.rows]
    np.testing.assert_array_equal(fit.answer.rows, twin.answer.rows)
    np.testing.assert_array_equal(fit.answer.values, twin.answer.values + offset)
    hull = twin.answer.regions.hull() + offset[:, None]
    np.testing.assert_array_equal(fit.answer.regions.hull(), hull)


def test_corrected_numbers_are_better_and_say_so():
    table, truth = numbers()
    result = fill(table, "y", method="ridge", predictions="llm", guarantee="column")
    hidden = table["y"].isna().to_numpy()
    error = np.abs(result.frame["y_filled"] - truth)[hidden].mean()
    assert error < 1.5 < np.abs(table["llm"] - truth)[hidden].mean()
    assert "Predictions made elsewhere in column 'llm', corrected." in result.notes
    assert "predictions='llm'" in result.again
    assert json.loads(result.json())["options"]["predictions"] == "llm"
    folds = result.out_of_fold
    assert np.abs(folds["true"] - folds["answered"]).mean() < 2.0
    np.testing.assert_array_equal(folds["true"], table["y"].dropna())
    line = result.estimate("mean").iloc[0]
    assert line["lower"] <= truth.mean() <= line["upper"]
    assert line["worth"] > 10 * line["n_labels"]


def test_limits_are_those_of_the_target_and_not_of_the_correction():
    table, _ = numbers()
    result = fill(table, "y", method="ridge", predictions="llm", guarantee="column")
    low = float(table["y"].min()) - 1.0
    assert result.table(minimum=low)["y_lower"].min() >= low


def test_rows_beyond_the_sample_and_later_rows_are_corrected_too():
    table, truth = numbers(n_labels=120, n_rows=600)
    result = fill(table, "y", method="ridge", predictions="llm", sample=100, guarantee="column")
    hidden = table["y"].isna().to_numpy()
    assert result.seen.is_sample
    assert np.abs(result.frame["y_filled"] - truth)[hidden].mean() < 1.5
    assert result.estimate("mean").iloc[0]["worth"] > 1000
    later = fit_fill(table, "y", method="ridge", predictions="llm")
    new = later.new_columns(table.drop(columns="y").head(5))
    assert np.abs(new["y_filled"] - truth[:5]).max() < 6.0
    with pytest.raises(ValueError, match="'llm'"):
        later.new_columns(table[["a", "b"]].head(5))


def test_a_row_without_a_predicted_number_is_refused():
    table, _ = numbers()
    table.loc[3, "llm"] = np.nan
    with pytest.raises(ValueError, match=r"no number at 1 row, such as row .*: numbers are corr"):
        fill(table, "y", method="ridge", predictions="llm")


def test_the_target_is_no_prediction_of_itself():
    table, _ = numbers()
    with pytest.raises(ValueError, match="'y' is the target"):
        fill(table, "y", predictions="y")


def test_predictions_without_any_error_are_suspicious():
    table, truth = numbers()
    said = fill(table.assign(llm=truth), "y", method="ridge", predictions="llm").notes
    assert any("agrees with all 40 labels" in note for note in said)
    said = fill(table, "y", method="ridge", predictions="llm").notes
    assert not any("agrees with all" in note for note in said)


# ----------------------------------------------------------------------------------------- classes


def test_predicted_classes_are_one_more_member():
    table, truth = classes()
    result = fill(table, "y", method=["ridge", "forest"], predictions="llm")
    weights = result.members.set_index("name")["weight"]
    assert weights[MEMBER] > 0.3
    assert any("corrected as one more method" in note for note in result.notes)
    hidden = table["y"].isna().to_numpy()
    assert np.mean((result.frame["y_filled"] != truth)[hidden]) <= 0.12
    one = fill(table, "y", method="ridge", predictions="llm")
    assert any("are a feature: one method is asked" in note for note in one.notes)


def test_counts_of_a_member_by_hand():
    # Predicted: a, a, a, b; true: a, a, b, b. Right 3 of 4, smoothed 4 of 6.
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    member = PredictedClasses(
        places=[0], keys=np.array([[0.0], [1.0]]), predicted=["a", "b"], classes=["a", "b"]
    )
    right = 4.0 / 6.0
    wanted = [(2 + 2 * right) / 5, (0 + 2 * (1 - right)) / 3]
    for labels in (["a", "a", "b", "b"], [0, 0, 1, 1]):
        found = member.fit(X, labels).predict_proba([[0.0], [1.0], [7.0]])
        np.testing.assert_allclose(found[:2, 0], wanted)
        np.testing.assert_allclose(found[2], [0.5, 0.5])


def test_many_values_are_no_classes():
    table, _ = classes()
    with pytest.raises(ValueError, match="160 values that are none of the 3 classes"):
        fill(table.assign(llm=np.arange(N_ROWS) + 0.5), "y", predictions="llm")


def test_shares_of_classes_are_exact_as_in_an_audit():
    from transduce.population import audit_classes

    table, _ = classes()
    result = fill(table, "y", method="ridge", predictions="llm")
    line = result.estimate("share of spam").iloc[0]
    audited = audit_classes(table["y"], table["llm"]).shares.loc["spam"]
    assert line["kind"] == "exact"
    assert [line["lower"], line["upper"]] == [audited["lower"], audited["upper"]]
    assert line["worth"] > line["n_labels"]


def test_regions_move_by_row():
    regions = Regions.from_pieces([[(0, 1), (2, np.inf)], [], [(5, 6)]])
    wanted = Regions.from_pieces([[(10, 11), (12, np.inf)], [], [(8, 9)]])
    assert regions.shifted(np.array([10.0, 20.0, 3.0])) == wanted
