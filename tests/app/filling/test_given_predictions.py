"""Predictions that were made elsewhere: corrected numbers, one more member for classes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import audit, fill
from transduce.app.cli.app import app
from transduce.app.filling import fit_fill
from transduce.app.filling.corrected_machine import (
    LEAST_SLOPE_OF_CANDIDATES,
    CorrectedMachine,
)
from transduce.app.filling.fitting import fit_rows
from transduce.app.filling.given_predictions import (
    MEMBER,
    PredictedClasses,
    PredictedProbabilities,
)
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import Seen
from transduce.core.answer import Regions
from transduce.methods.confidence_machine import RidgeConfidenceMachine

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
    assert line["worth"] > 3.0 * line["n_labels"]  # forty labels cannot claim more than 3.2


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
    line = result.estimate("mean").iloc[0]
    assert line["worth"] > 4.0 * line["n_labels"]
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
    assert any("agree with all 40 labels" in note for note in said)
    said = fill(table, "y", method="ridge", predictions="llm").notes
    assert not any("agree with all" in note for note in said)


@pytest.mark.parametrize("make", [numbers, classes], ids=["numbers", "classes"])
def test_fill_and_audit_ask_one_function_whether_labels_were_seen(make):
    """Labels that were copied are found by both, and those that are marked as seen count in neither."""
    table, truth = make()
    labelled = table["y"].notna().to_numpy()
    poor = np.random.default_rng(0).permutation(truth)
    copied = table.assign(
        llm=np.where(labelled, truth, poor), shots=labelled & (table.index % 2 == 0)
    )
    tolerance = {"tolerance": 0.1} if make is numbers else {}
    filled = fill(copied, "y", method="ridge", predictions="llm")
    audited = audit(copied, "y", "llm", **tolerance)
    assert any("has seen" in note for note in filled.notes)
    assert any("has seen" in note for note in [*audited.warnings, *audited.notes])
    honest = np.where(copied["shots"], truth, poor)
    marked = copied.assign(llm=honest)
    filled = fill(marked, "y", method="ridge", predictions="llm", labels=Seen("shots"))
    audited = audit(marked, "y", "llm", seen="shots", **tolerance)
    assert not any("has seen" in note for note in filled.notes)
    assert not any("has seen" in note for note in [*audited.warnings, *audited.notes])


def gross(n_labels, seed=0):
    """Return a table with good predictions, one tenth of them off by far, and the truth."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N_ROWS)
    truth = 3.0 * x + 0.1 * rng.normal(size=N_ROWS)
    given = truth + np.where(rng.random(N_ROWS) < 0.1, 100.0, 0.0)
    labelled = np.isin(np.arange(N_ROWS), rng.choice(N_ROWS, n_labels, replace=False))
    table = pd.DataFrame({"x": x, "llm": given, "y": np.where(labelled, truth, np.nan)})
    return table, truth


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_predictions_far_from_the_labels_are_a_feature(guarantee):
    table, _ = gross(40)
    options = {"method": "ridge", "guarantee": guarantee}
    corrected = fill(table, "y", predictions="llm", **options)
    feature = fill(table, "y", **options)
    np.testing.assert_allclose(corrected.frame["y_filled"], feature.frame["y_filled"])
    assert any("too far from the labels to be corrected" in note for note in corrected.notes)
    widths = [result.frame["y_upper"] - result.frame["y_lower"] for result in (corrected, feature)]
    assert widths[0].mean() < 1.2 * widths[1].mean()
    assert corrected.intervals_at([0.8, 0.9]).shape == feature.intervals_at([0.8, 0.9]).shape


def test_the_machine_that_speaks_is_chosen_by_the_completed_sample():
    """For every candidate by its definition: the slope of the labels, the candidate among them."""
    rng = np.random.default_rng(3)
    predictions = rng.normal(size=14)
    truth = 0.3 * predictions + rng.normal(size=14)
    labels = np.where(np.arange(14) < 9, truth, np.nan)
    X = np.column_stack([predictions, rng.normal(size=14)])
    machine = RidgeConfidenceMachine(confidence=0.8)
    both = CorrectedMachine.fit(machine, X, labels, predictions)
    regions = both.answer_.regions
    plain = both.plain.answer_.regions
    corrected = both.corrected.answer_.regions.shifted(predictions[9:])
    spoke = set()
    for place, row in enumerate(range(9, 14)):
        for candidate in np.linspace(-9.0, 9.0, 25):
            completed = np.append(labels[:9], candidate)
            slope = np.polyfit(np.append(predictions[:9], predictions[row]), completed, 1)[0]
            is_corrected = bool(slope >= LEAST_SLOPE_OF_CANDIDATES)
            speaks = corrected if is_corrected else plain
            holds = speaks[[place]].contains(candidate)[0]
            assert regions[[place]].contains(candidate)[0] == holds
            spoke.add(is_corrected)
    assert spoke == {True, False}


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


# ----------------------------------------------------------------------------------- probabilities


def probabilities(n_labels=60, n_rows=N_ROWS, power=3.0, seed=0):
    """Return a table with overconfident probabilities of three classes, the truth, and honest ones.

    The stated ones are in proportion to a power of those by which the truth was drawn.
    """
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet([3.0, 2.0, 2.0], n_rows)
    classes = np.array(["ham", "other", "spam"], dtype=object)
    truth = classes[[rng.choice(3, p=shares) for shares in honest]]
    stated = honest**power
    stated /= stated.sum(axis=1, keepdims=True)
    table = pd.DataFrame(stated, columns=[f"p_{name}" for name in classes])
    labelled = np.isin(np.arange(n_rows), rng.choice(n_rows, n_labels, replace=False))
    table["noise"] = rng.normal(size=n_rows)
    return table.assign(y=np.where(labelled, truth, None)), truth, honest


COLUMNS = ["p_ham", "p_other", "p_spam"]


def member_of(shares, labels):
    """Return the member fitted to all rows, with features on another scale than the columns."""
    member = PredictedProbabilities(
        places=[0, 1, 2],
        slopes=np.full(3, 0.5),
        intercepts=np.zeros(3),
        predicted=["ham", "other", "spam"],
        classes=["ham", "other", "spam"],
    )
    return member.fit(2.0 * shares, labels)


def test_overconfident_probabilities_become_honest():
    table, truth, honest = probabilities(n_rows=3000)
    stated = table[COLUMNS].to_numpy()
    member = member_of(stated, truth)
    assert np.exp(member.settings_[0]) == pytest.approx(1.0 / 3.0, abs=0.04)
    corrected = member.predict_proba(2.0 * stated)
    assert np.abs(corrected - honest).mean() < 0.02 < np.abs(stated - honest).mean() / 3.0


def test_without_a_label_of_a_class_probabilities_stay_nearly_as_stated():
    table, _, _ = probabilities(power=1.0)
    stated = table[COLUMNS].to_numpy()
    stated = np.clip(stated, 0.001, None)
    stated /= stated.sum(axis=1, keepdims=True)
    member = member_of(stated[:2], np.array(["ham", "spam"], dtype=object))
    assert member.classes_.tolist() == ["ham", "spam"]
    assert np.isfinite(member.predict_proba(2.0 * stated)).all()


def test_one_column_a_class_joins_the_blend_under_every_name_of_the_columns():
    table, truth, _ = probabilities()
    hidden = table["y"].isna().to_numpy()
    result = fill(table, "y", predictions=COLUMNS)
    weights = result.members.set_index("name")["weight"]
    assert weights[MEMBER] > 0.0
    assert "Predictions made elsewhere in columns 'p_ham', 'p_other', 'p_spam'" in str(result.notes)
    error = np.mean(result.frame["y_filled"][hidden] != truth[hidden])
    likeliest = np.array(["ham", "other", "spam"])[table[COLUMNS].to_numpy().argmax(axis=1)]
    assert error <= np.mean(likeliest[hidden] != truth[hidden]) + 0.05
    renamed = table.rename(columns=dict(zip(COLUMNS, ["ham_p", "other_p", "spam_p"], strict=True)))
    again = fill(renamed, "y", predictions=["ham_p", "other_p", "spam_p"])
    weights_again = again.members.set_index("name")["weight"]
    assert weights_again[MEMBER] == pytest.approx(weights[MEMBER], abs=1e-9)
    first, second = result.raw_answer.probabilities, again.raw_answer.probabilities
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_shares_from_probabilities_are_those_of_an_audit_of_the_likeliest_class():
    table, _, _ = probabilities()
    line = fill(table, "y", predictions=COLUMNS).estimate("share", of="spam").iloc[0]
    audited = audit(table, "y", COLUMNS).shares.loc["spam"]
    assert line[["lower", "upper"]].tolist() == audited[["lower", "upper"]].tolist()


def test_numbers_have_one_column_and_probabilities_are_none_above_one():
    table, _ = numbers()
    with pytest.raises(ValueError, match="name the one that holds the predicted number"):
        fill(table, "y", predictions=["a", "b"])
    table, _, _ = probabilities()
    table.loc[3, "p_spam"] = 1.5
    with pytest.raises(ValueError, match=r"'p_spam' holds 1\.5"):
        fill(table, "y", predictions=COLUMNS)


def test_columns_of_probabilities_on_the_command_line(tmp_path):
    table, _, _ = probabilities()
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["fill", str(tmp_path / "t.csv"), "--target", "y", "--json", str(tmp_path / "t.json")]
    for name in COLUMNS:
        words += ["--predictions", name]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["options"]["predictions"] == COLUMNS
