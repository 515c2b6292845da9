"""Several levels in one `fill`: nested intervals or sets, each guaranteed by itself, wherever rows are."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.app.filling.test_questions import (
    KINDS,
    TASKS,
    fill_parts,
    make_table,
    read_rows,
    settings_of,
)
from transduce import (
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    TransductiveRidge,
    fill,
)
from transduce.app.filling import load, save
from transduce.app.filling.options import Options
from transduce.app.tables.new_columns import own_columns
from transduce.conformal import Chance
from transduce.core.answer import UNSEEN

LEVELS = [0.9, 0.95, 0.5]


def fill_kind(kind, task, folder, confidence):
    """Fill the same table wherever its rows are."""
    frame = make_table(task)
    settings = settings_of(task) | {"confidence": confidence}
    if kind == "memory":
        return fill(frame, "y", **settings | {"sample": 20_000})
    if kind == "sampled":
        return fill(frame, "y", **settings)
    if kind == "folder":
        return fill_parts(frame, folder, **settings)
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return fill(dd.from_pandas(frame, npartitions=3), "y", **settings)


def columns_at(task, level=""):
    suffix = f"_{level}" if level else ""
    if task == "regression":
        return [f"y_lower{suffix}", f"y_upper{suffix}"]
    return [f"y_set{suffix}"]


@pytest.mark.few(3)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_level_is_what_that_level_alone_gives(kind, task, tmp_path):
    """The labels that calibrate are the same at these levels, so that columns must be equal."""
    several = fill_kind(kind, task, tmp_path / "several", LEVELS)
    rows = read_rows(several)
    for number, level in enumerate(LEVELS):
        alone = fill_kind(kind, task, tmp_path / f"{number}", level)
        if alone.guarantee.n_calibration != several.guarantee.n_calibration:
            continue
        name = "" if number == 0 else f"{100 * level:g}"
        expected = read_rows(alone)[columns_at(task)].to_numpy()
        found = rows[columns_at(task, name)].to_numpy()
        assert found.shape == expected.shape
        missing = pd.isna(expected)
        assert (pd.isna(found) == missing).all()
        assert (found[~missing] == expected[~missing]).all()
        guarantee = several.guarantees[level]
        assert str(guarantee) == str(alone.guarantee)
        assert guarantee.outside == alone.guarantee.outside
    filled = rows[rows["y_status"] != "given"]
    if task == "regression":
        ends = filled[
            ["y_lower_95", "y_lower", "y_lower_50", "y_upper_50", "y_upper", "y_upper_95"]
        ]
        assert (np.diff(ends.to_numpy(dtype=float), axis=1) >= 0).all()
        assert (ends["y_lower_95"] < ends["y_lower_50"]).all()
    else:
        for lower, higher in (("y_set_50", "y_set"), ("y_set", "y_set_95")):
            for small, large in zip(filled[lower], filled[higher], strict=True):
                possible = [name for name in ("low", "größer, |", "high", UNSEEN) if name in small]
                assert all(name in large for name in possible)


def test_labels_are_held_out_for_the_highest_level_that_can_be_had():
    table = make_table("regression")
    plain = fill(table, "y", method="ridge", guarantee="column")
    wide = fill(table, "y", method="ridge", guarantee="column", confidence=[0.9, 0.99])
    beyond = fill(table, "y", method="ridge", guarantee="column", confidence=[0.9, 0.9999])
    assert plain.guarantee.n_calibration < 99 <= wide.guarantee.n_calibration
    assert wide.guarantees[0.99].kind == "exact"
    assert beyond.guarantee.n_calibration == plain.guarantee.n_calibration
    assert f"calibrated by the other {wide.guarantee.n_calibration}." in " ".join(wide.notes)


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_what_cannot_be_promised_is_said_for_that_level_alone(guarantee):
    table = make_table("regression")[:120]
    result = fill(table, "y", method="ridge", guarantee=guarantee, confidence=[0.8, 0.999])
    assert result.guarantee.kind == "exact"
    assert result.guarantees[0.999].kind == "none"
    new = result.new[result.new["y_status"] != "given"]
    assert np.isfinite(new[["y_lower", "y_upper"]]).all(axis=None)
    assert (new["y_lower_99.9"] == -np.inf).all()
    assert (new["y_upper_99.9"] == np.inf).all()
    summary = result.summary()
    assert summary["levels"][0]["kind"] == "none"
    assert summary["levels_sentences"][0].startswith("At 99.9 % nothing is guaranteed.")
    assert "Each level holds by itself" in summary["levels_sentences"][-1]


@pytest.mark.parametrize("task", TASKS)
def test_report_and_json_have_all_levels(task):
    frame = make_table(task).iloc[:200]
    settings = settings_of(task) | {"sample": 20_000}
    result = fill(frame, "y", **settings, confidence=LEVELS)
    summary = json.loads(result.json())
    assert [level["confidence"] for level in summary["levels"]] == [0.5, 0.95]
    record = summary["rows"][0]
    at = record["position"]
    for level in record["levels"]:
        name = f"{100 * level['confidence']:g}"
        if task == "regression":
            assert level["pieces"][0][0] == result.new[f"y_lower_{name}"].iloc[at]
        else:
            classes = [*level["set"], *["or a class that no label shows"] * level["unseen"]]
            assert " | ".join(classes) == result.new[f"y_set_{name}"].iloc[at]
    page = result.report()
    word = "Interval" if task == "regression" else "Possible"
    for level in (50, 90, 95):
        assert f"{word} at {level}\u00a0%" in page
    assert "Each level holds by itself" in page
    plain = fill(frame, "y", **settings)
    assert "Each level holds by itself" not in plain.report()
    assert plain.summary()["levels"] == []


def test_options_of_the_table_apply_at_every_level():
    table = make_table("regression")
    result = fill(table, "y", method="ridge", guarantee="column", confidence=[0.9, 0.99])
    cut = result.table(minimum=-4.0, maximum=4.0)
    filled = cut[cut["y_status"] != "given"]
    assert filled[["y_lower_99", "y_upper_99"]].abs().max(axis=None) == 4.0
    wide = result.new[result.new["y_status"] != "given"]
    assert (filled["y_lower_99"] == wide["y_lower_99"].clip(-4.0, 4.0)).all()
    opened = result.with_options(limit=[">3"]).new
    assert (opened["y_upper_99"][wide.index][wide["y_upper_99"] >= 3.0] == np.inf).all()


def test_predictions_made_elsewhere_move_every_level():
    table = make_table("regression")
    table["guess"] = 2.0 * table["u"]
    levels = {"confidence": [0.9, 0.5], "method": "ridge", "predictions": "guess"}
    result = fill(table, "y", **levels, guarantee="column")
    new = result.new[result.new["y_status"] != "given"]
    at_levels = result.intervals_at([0.5, 0.9])
    assert np.allclose(new["y_lower_50"], at_levels["y_lower_50"], rtol=1e-12)
    assert np.allclose(new["y_lower"], at_levels["y_lower_90"], rtol=1e-12)


def test_saved_fits_and_later_rows_have_all_levels(tmp_path):
    table = make_table("regression")
    save(tmp_path / "fit.transduce", table, "y", method="ridge", confidence=[0.9, 0.5])
    fitted = load(tmp_path / "fit.transduce")
    later = table.drop(columns="y")[:50]
    new = fitted.new_columns(later)
    assert list(new.columns[1:5]) == ["y_lower", "y_upper", "y_lower_50", "y_upper_50"]
    assert (new["y_lower"] < new["y_lower_50"]).all()
    at_half = fitted.guarantee_of_later(50, level=0.5)
    assert at_half.confidence == 0.5
    assert at_half.outside.at_most > fitted.guarantee_of_later(50).outside.at_most
    in_file = fitted.columns_for_file(new)
    assert (in_file["y_lower_50"] <= new["y_lower_50"]).all()
    assert (in_file["y_upper_50"] >= new["y_upper_50"]).all()
    assert in_file["y_upper_50"].round(3).equals(in_file["y_upper_50"])


def test_levels_in_the_call_and_the_command():
    options = Options.read({"confidence": "0.9, 0.95"})
    assert options.levels == (0.9, 0.95)
    assert "--confidence 0.9,0.95" in options.as_command("t.csv", "y", "regression")
    assert "confidence=[0.9, 0.95]" in options.as_call("y", "regression")
    assert Options.of_json(json.loads(json.dumps(options.as_json()))) == options
    assert Options.read({"confidence": [0.8]}) == Options.read({"confidence": 0.8})
    assert Options.read({"confidence": np.array([0.8, 0.5])}).confidence == [0.8, 0.5]


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        ([], "empty list"),
        ([0.9, 0.9], "each level once"),
        ([0.9, 90], "strictly between 0 and 1"),
        ("0.9,much", "strictly between 0 and 1"),
        ([0.9, None], "strictly between 0 and 1"),
        ([0.9, [0.5]], "strictly between 0 and 1"),
        ("", "strictly between 0 and 1"),
    ],
)
def test_wrong_levels_are_refused(confidence, message):
    with pytest.raises(ValueError, match=message):
        Options.read({"confidence": confidence})


def test_columns_of_levels_are_taken_for_ours():
    table = make_table("regression")
    result = fill(table, "y", method="ridge", confidence=[0.9, 0.995])
    names = [name for name in result.frame.columns if name.startswith("y_")]
    assert sorted(own_columns(list(result.frame.columns))["y"]) == sorted(names)
    assert own_columns(["y_filled", "y_status", "y_lower_tail", "x_lower_95"])["y"] == [
        "y_filled",
        "y_status",
    ]
    with pytest.raises(ValueError, match=r"'y_lower_99\.5' already"):
        fill(table.assign(**{"y_lower_99.5": 1.0}), "y", confidence=[0.9, 0.995])


@pytest.mark.parametrize("columns", [["side", "part"]])
def test_levels_are_nested_within_several_columns_too(columns):
    random = np.random.default_rng(3)
    table = make_table("regression")
    table["side"] = random.choice(["left", "right"], len(table))
    table["part"] = random.choice(["a", "b", "c"], len(table))
    levels = [0.8, 0.5, 0.6, 0.7, 0.9]
    settings = {"method": "ridge", "labels": Chance(within=columns), "confidence": levels}
    new = fill(table, "y", **settings).new
    filled = new[new["y_status"] != "given"]
    names = ["y_lower_90", "y_lower", "y_lower_70", "y_lower_60", "y_lower_50"]
    assert (np.diff(filled[names].to_numpy(float), axis=1) >= 0).all()
    names = [name.replace("lower", "upper") for name in names]
    assert (np.diff(filled[names].to_numpy(float), axis=1) <= 0).all()


# ------------------------------------------------------------------------------------ estimators


def test_estimators_take_several_levels():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    y = np.where(np.arange(80) < 50, X[:, 0] + 0.1 * random.normal(size=80), np.nan)
    for model in (
        RidgeConfidenceMachine(confidence=[0.9, 0.5]),
        RidgeConfidenceMachine(confidence=[0.9, 0.5], settings="leave-one-out", spread="local"),
        ConformalTransducer(TransductiveRidge(), confidence=[0.9, 0.5], random_state=0),
    ):
        model.fit(X, y)
        (half,) = model.answer_.further
        alone = model.__class__(**model.get_params(deep=False)).set_params(confidence=0.5)
        assert half.regions == alone.fit(X, y).answer_.regions
        assert model.guarantee_.confidence == 0.9
        assert model.guarantee_at(0.5).confidence == 0.5
        assert list(model.answer_.to_frame().columns[4:6]) == ["lower_50", "upper_50"]
        assert model.answer_.at(np.array([3, 1])).further[0].regions == half.regions[[3, 1]]
    names = np.where(np.arange(80) < 50, np.where(X[:, 0] > 0, "b", "a"), None)
    model = RidgeConfidenceClassifier(confidence=[0.5, 0.97]).fit(X, names)
    (high,) = model.answer_.further
    alone = RidgeConfidenceClassifier(confidence=0.97).fit(X, names)
    assert (high.label_sets == alone.answer_.label_sets).all()
    assert (high.unseen == alone.answer_.unseen).all()
    assert model.guarantee_at(0.97) == alone.guarantee_


@pytest.mark.parametrize(
    "model", [RidgeConfidenceMachine(), ConformalTransducer(TransductiveRidge())]
)
def test_estimators_refuse_wrong_levels(model):
    X = np.arange(20.0)[:, None]
    y = np.where(np.arange(20) < 15, np.arange(20.0), np.nan)
    for wrong in ([], [0.9, 1.0], [0.9, 0.9], "0.9,0.95"):
        with pytest.raises(ValueError, match="confidence"):
            model.set_params(confidence=wrong).fit(X, y)
