"""Filling a table: the same as calling the library, for tables as they are met, and one sentence for bad ones."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom
from sklearn.datasets import load_diabetes, load_wine

from tests.wild import MAKERS, wild_table
from transduce import (
    Answer,
    ConformalTransducer,
    Guarantee,
    RidgeConfidenceMachine,
    TransductiveBlend,
    TransductiveRidge,
    fill,
    show_progress,
)
from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.diagnostics import row_map
from transduce.app.filling.engine import fill_table
from transduce.app.filling.hidden_labels import score
from transduce.app.filling.joined_answers import join_answers
from transduce.app.filling.options import Options
from transduce.app.filling.plan import make_plan
from transduce.app.tables.features import vectorize
from transduce.app.tables.new_columns import new_names, width_reduction
from transduce.conformal import Chance
from transduce.core.computing import Forecast
from transduce.core.row_order import rows_in_order
from transduce.model_selection.methods import METHODS, Case, default_members


def plan(method, task, *, n_outside=0, n_classes=0, n_features=0, n_rows, n_labels, **options):
    """Return what is planned for a table of some size."""
    case = Case(task, n_rows, n_labels, n_features, n_classes, standardize=False, random_state=0)
    design = Chance().bind(np.arange(n_rows) >= n_labels)
    return make_plan(case, Options(method=method, **options), design, n_outside=n_outside)


def line_table(n=60, every=3):
    size = np.arange(float(n))
    noise = np.random.default_rng(0).normal(0, 1, n)
    return pd.DataFrame(
        {"size": size, "price": np.where(size % every == 0, np.nan, 2 * size + noise)}
    )


# ------------------------------------------------------------------------------------------------------ exact


@pytest.mark.parametrize("method", ["ridge", "auto"])
def test_numbers_agree_with_the_library(method):
    frame, _ = wild_table("mixed")
    result = fill(
        frame, "target", method=method, random_state=3, confidence=0.8, guarantee="column"
    )
    inner = (
        TransductiveRidge(standardize=False, random_state=3)
        if method == "ridge"
        else TransductiveBlend(task="regression", standardize=False, random_state=3)
    )
    X = vectorize(frame, "target", random_state=3).matrix
    order = result.seen.order  # in which the fit saw them
    model = ConformalTransducer(inner, confidence=0.8, refit=True, random_state=3)
    with rows_in_order():
        model.fit(X[order], frame["target"].iloc[order])
    if method == "ridge":  # a blend is weighed by its first fit
        direct = inner.fit(X, frame["target"]).answer_.values
        np.testing.assert_allclose(
            result.answer.values, direct, rtol=1e-6
        )  # the rows stand in another order
    own = model.answer_.at(result.places_in_fit)
    np.testing.assert_array_equal(result.answer.values, own.values)
    unlabelled = result.answer.rows
    np.testing.assert_array_equal(
        result.frame[["target_lower", "target_upper"]].to_numpy()[unlabelled], own.regions.hull()
    )
    np.testing.assert_array_equal(result.frame["target_filled"].iloc[order], model.transduction_)
    assert result.guarantee == model.guarantee_
    assert result.guarantee.kind == "exact"
    labels = frame["target"].dropna().to_numpy(float)
    np.testing.assert_array_equal(
        result.frame["target_width_reduction"].to_numpy()[unlabelled],
        width_reduction(own.regions.measure(), labels, 0.8),
    )


def test_classes_agree_with_the_library():
    frame, _ = wild_table("many classes")
    result = fill(frame, "target", random_state=1)
    X = vectorize(frame, "target", random_state=1).matrix
    blend = TransductiveBlend(task="classification", standardize=False, random_state=1)
    order = result.seen.order  # in which the fit saw them
    model = ConformalTransducer(blend, refit=True, random_state=1)
    with rows_in_order():
        model.fit(X[order], frame["target"].to_numpy()[order])
    own = model.answer_.at(result.places_in_fit)
    lines = result.frame.iloc[result.answer.rows]
    assert lines["target_filled"].tolist() == own.values.tolist()
    assert lines["target_set"].tolist() == [" | ".join(found) for found in own.to_frame()["set"]]
    np.testing.assert_array_equal(lines["target_confidence"], own.confidence)
    np.testing.assert_array_equal(
        lines["target_probability"],
        ClassCalibration(frame["target"].notna().sum())
        .calibrate(own, 0.9)
        .probabilities.max(axis=1),
    )
    assert result.members["weight"].sum() == pytest.approx(1.0)
    assert set(result.out_of_fold) == {"true", "answered", "probability"}


def test_few_labels_have_regions_by_the_confidence_machine():
    frame = line_table()
    frame.loc[10:, "price"] = np.nan
    frame["price"] = np.where(np.arange(60) < 10, 2 * frame["size"], np.nan)
    result = fill(frame, "price")
    X = vectorize(frame, "price").matrix
    machine = RidgeConfidenceMachine(
        settings="leave-one-out", residual="studentized", standardize=False, draw_in_far=True
    )
    order = result.seen.order  # in which the fit saw them
    machine.fit(X[order], frame["price"].iloc[order])
    with rows_in_order():
        blend = TransductiveBlend(task="regression", standardize=False, random_state=0).fit(
            X[order], frame["price"].iloc[order]
        )
    values = blend.answer_.at(result.places_in_fit).values
    np.testing.assert_array_equal(result.answer.values, values)
    np.testing.assert_array_equal(
        result.frame[["price_lower", "price_upper"]][10:],
        machine.answer_.at(result.places_in_fit).regions.holding(values).hull(),
    )
    assert "column" not in result.guarantee.statement
    assert any(
        "the intervals come from the confidence machine, which holds no label out" in note
        for note in result.notes
    )
    assert result.members["name"].tolist() == list(blend.weights_.index)
    np.testing.assert_array_equal(result.out_of_fold["true"], frame["price"][:10])
    assert json.loads(result.json())["exchangeability"]["p_value"] == result.exchangeability.p_value
    assert result.values_model.weights_.equals(blend.weights_)
    assert (
        result.guarantee.kind == "approximate"
    )  # the first rows have labels: more than chance chose them


def test_certainty_is_in_the_guarantee():
    result = fill(line_table(), "price", method="ridge", guarantee="column").with_options(
        certainty=0.99
    )
    law = result.model.miscoverage_
    assert (
        f"With 99 % certainty at most {law.quantile(0.99)} of the 20 true values"
        in result.guarantee.statement
    )


@pytest.mark.parametrize(
    "method",
    [
        "auto",
        "ridge",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("forest", "gaussian-process")),
    ],
)
def test_a_guarantee_for_each_row_holds_no_label_out(method):
    """Any method's values, in intervals of the machine that is tuned on the completed sample."""
    frame, truth = wild_table("mixed")
    result = fill(frame, "target", method=method, guarantee="row")
    assert result.guarantee.kind == "exact"
    assert result.guarantee.n_calibration == 0
    assert result.guarantee.outside is None
    assert result.answer.regions.contains(result.answer.values).all()
    unlabelled = result.answer.rows
    assert result.answer.regions.contains(truth.to_numpy(float)[unlabelled]).mean() > 0.75
    assert result.frame["target_width_reduction"][unlabelled].between(0, 1).all()


def test_auto_goes_by_the_number_of_labels_alone():
    def calibrated(n, **settings):
        model = plan("auto", "regression", n_rows=900, n_labels=n, **settings).model
        return isinstance(model, ConformalTransducer)

    assert (calibrated(20), calibrated(400)) == (False, True)
    for n in (20, 400):
        assert not calibrated(n, guarantee="row")
        assert calibrated(n, guarantee="column")


def test_how_many_are_wrong_is_said():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    truth = pd.Series(np.where(frame["a"] > 0.0, "yes", "no"))
    frame["target"] = truth.where(rng.permutation(120) < 60, None)
    result = fill(frame, "target", method="ridge", guarantee="column").with_options(
        probabilities=True
    )
    wrong = (result.answer.values != truth.to_numpy()[result.answer.rows]).sum()
    assert wrong <= result.guarantee.wrong.at_most <= len(result.answer)
    assert "of the" in result.guarantee.statement
    assert "filled classes are wrong" in result.guarantee.statement
    assert (
        json.loads(result.json())["guarantee"]["wrong"]["at_most"] == result.guarantee.wrong.at_most
    )
    shares = result.frame.filter(like="target_probability_").iloc[result.answer.rows]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.max(axis=1), result.answer.probabilities.max(axis=1))


def test_within_every_class():
    frame, _ = wild_table("two classes")
    result = fill(
        frame, "target", method="ridge", guarantee="column", label_conditional=True, confidence=0.7
    )
    assert "within every class" in result.guarantee.statement
    row = fill(
        frame, "target", method="ridge", guarantee="row", label_conditional=True, confidence=0.7
    )
    assert "within every class" in row.guarantee.statement


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 6))]
)
def test_one_label_of_a_class_is_enough(seed):
    """A class with one label among thirty: whichever labels are held out, something is answered."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    frame["kind"] = np.where(np.arange(80) < 30, "common", None)
    frame.loc[0, "kind"] = "rare"
    for guarantee in ("row", "column"):
        result = fill(frame, "kind", method="ridge", guarantee=guarantee, random_state=seed)
        assert result.frame["kind_filled"].notna().all()
        assert result.answer.label_sets.any(axis=1).all()


# ----------------------------------------------------------------------------------------------------- in the wild


@pytest.mark.parametrize("kind", MAKERS)
def test_tables_in_the_wild(kind):
    frame, truth = wild_table(kind)
    result = fill(
        frame, "target", method="forest" if kind == "10,000 rows" else "ridge", guarantee="column"
    )
    assert result.task == (
        "regression"
        if kind in ("mixed", "30 categories", "60 columns", "10,000 rows")
        else "classification"
    )
    pd.testing.assert_frame_equal(result.frame[frame.columns], frame)
    assert result.frame.columns[frame.shape[1] :].tolist() == new_names("target", result.task)
    unlabelled = frame["target"].isna().to_numpy()
    status = result.frame["target_status"]
    assert (status[~unlabelled] == "given").all()
    assert (status[unlabelled] != "given").all()
    assert result.frame["target_filled"][~unlabelled].astype(truth.dtype).equals(truth[~unlabelled])
    assert result.frame["target_filled"].notna().all()
    assert result.guarantee.kind == "exact"
    if result.task == "regression":
        inside = truth.between(result.frame["target_lower"], result.frame["target_upper"])
    else:
        inside = pd.Series(
            [
                str(int(y) if isinstance(y, float) else y) in str(s).split(" | ")
                for y, s in zip(truth, result.frame["target_set"], strict=True)
            ]
        )
    assert (~inside.to_numpy()[unlabelled]).sum() <= result.model.outside_at_most(0.9999)
    assert result.columns["name"].tolist() == frame.columns.tolist()
    assert result.map is None or result.map.shape == (len(frame), 2)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_every_method(method):
    task = METHODS[method].tasks[-1]
    frame, _ = wild_table("two classes" if task == "classification" else "mixed")
    result = fill(frame, "target", method=method)
    if method in ("bayesian", "forest"):  # where chance enters
        pd.testing.assert_frame_equal(result.frame, fill(frame, "target", method=method).frame)
    assert len(result.out_of_fold)
    assert result.members["score"].notna().all()
    assert result.options.method == method
    assert f"({task}, {method})" in repr(result)
    assert (result.relevance is None) == (
        method
        not in (
            "gaussian-process",
            "moment-matched",
            "forest",
            "blend",
        )
    )
    if result.relevance is not None:
        assert result.relevance.iloc[0] == 1.0
        assert set(result.relevance.index) <= set(frame.columns) - {"target"}


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_confidence_machine_for_both(task):
    frame, _ = wild_table("two classes" if task == "classification" else "mixed")
    result = fill(frame, "target", method="confidence_machine")
    assert result.guarantee.kind == "exact"
    assert "No difference" in result.guarantee.grounds


def test_polars_in_polars_out():
    import polars

    frame = line_table()
    table = polars.from_pandas(frame).with_columns(polars.col("price").fill_nan(None))
    result = fill(table, "price", method="ridge")
    assert isinstance(result.frame, polars.DataFrame)
    plain = fill(frame, "price", method="ridge")
    np.testing.assert_array_equal(
        result.frame["price_filled"].to_numpy(), plain.frame["price_filled"]
    )
    assert result.frame["price_lower"].null_count() == 40
    assert result.summary()["counts"] == plain.summary()["counts"]
    with pytest.raises(TypeError, match="lazy"):
        fill(table.lazy(), "price")


def test_rows_keep_their_names():
    frame = (
        line_table()
        .set_index(pd.Index([f"r{k}" for k in range(60)]))
        .assign(house=[f"h{k}" for k in range(60)])
    )
    result = fill(frame, "price", method="ridge")
    assert result.frame.index.equals(frame.index)
    assert result.answer.index.tolist()[:2] == ["r0", "r3"]
    assert fill(frame, "price", method="ridge", id="house").answer.index.tolist()[:2] == [
        "h0",
        "h3",
    ]


def test_text_that_is_numbers():
    frame = line_table()
    frame["price"] = [
        None if np.isnan(value) else f"{1000 * value:,.0f} EUR" for value in frame["price"]
    ]
    result = fill(frame, "price", method="ridge")
    assert result.task == "regression"
    assert any("EUR', read as the number " in note for note in result.notes)
    assert result.frame["price_filled"].dtype == float
    pd.testing.assert_frame_equal(result.frame[frame.columns], frame)


def test_whole_numbers_as_classes_stay_whole():
    frame = line_table().assign(
        price=lambda t: np.where(t["price"].isna(), np.nan, (t["size"] > 30) * 1.0)
    )
    result = fill(frame, "price", method="ridge")
    assert result.task == "classification"
    assert result.frame["price_filled"].dtype == "Int64"
    assert set(result.frame["price_set"].dropna()) <= {"0", "1", "0 | 1", ""}
    assert fill(frame, "price", method="ridge", task="regression").task == "regression"
    mixed = frame.assign(
        price=[None if np.isnan(v) else ("one" if v else 0) for v in frame["price"]]
    )
    assert fill(mixed, "price", method="ridge").answer.classes.tolist() == ["0", "one"]
    flags = frame.assign(price=[None if np.isnan(v) else bool(v) for v in frame["price"]])
    assert fill(flags, "price", method="ridge").answer.classes.tolist() == [False, True]


@pytest.mark.parametrize("kind", ["mixed", "two classes", "many classes"])
def test_the_least_certain_rows_are_rejected(kind):
    frame, _ = wild_table(kind)
    result = fill(frame, "target", method="blend" if kind == "mixed" else "ridge").with_options(
        reject=0.25
    )
    rejected = (result.frame["target_status"] == "rejected").sum()
    assert 0 < rejected <= 0.25 * len(result.answer)
    about = f"The {rejected} least certain of {len(result.answer)} predictions"
    assert any(note.startswith(about) for note in result.notes)
    if kind == "mixed":
        width = (result.frame["target_upper"] - result.frame["target_lower"])[result.answer.rows]
        gone = result.frame["target_status"][result.answer.rows] == "rejected"
        assert width[gone].min() > width[~gone].max()


def test_one_slip_of_the_pen_is_contained():
    """One of 40 labels times a million: values and intervals stay nearly as wide as they are."""
    frame = line_table()
    slipped = frame.copy()
    slipped.loc[7, "price"] *= 1e6
    empty = frame["price"].isna()
    clean = fill(frame, "price", method="ridge").frame[empty]
    found = fill(slipped, "price", method="ridge").frame[empty]
    width = clean["price_upper"] - clean["price_lower"]
    assert (found["price_upper"] - found["price_lower"]).median() < 20 * width.median()
    assert np.abs(found["price_filled"] - clean["price_filled"]).median() < 20 * width.median()


def test_rejection_without_probabilities_goes_by_confidence():
    frame, _ = wild_table("two classes")
    answer = fill(frame, "target", method="confidence-machine").with_options(reject=0.3).answer
    assert answer.probabilities is None
    gone = answer.status == "rejected"
    assert 0 < gone.sum() <= 0.3 * len(answer)
    assert answer.confidence[gone].max() < answer.confidence[~gone].min()


def test_findings_at_the_limits():
    assert np.isnan(score("regression", pd.DataFrame({"true": [1.0], "answered": [1.0]})))
    assert row_map(np.eye(3), 0) is None


def test_shifted_rows_are_told():
    frame = line_table()
    frame["price"] = np.where(frame["size"] < 30, frame["size"], np.nan)
    result = fill(frame, "price", method="ridge")
    assert result.guarantee.kind == "none"  # they have nothing in common
    assert "rows differ" in result.guarantee.grounds
    assert len(result.guarantee.remedy) == 20
    result = fill(frame, "price", method="ridge", labels=Chance(reweight=False))
    assert result.guarantee.kind == "approximate"
    assert "rows differ" in result.guarantee.grounds


def test_stages_are_reported_and_an_interrupt_goes_through():
    seen = []
    with show_progress(lambda name, share: seen.append(name), on_forecast=seen.append):
        fill(line_table(), "price", method="blend").report()
    assert {"columns", "answers", "methods", "how well it does", "map"} <= set(seen)
    forecast = next(event for event in seen if isinstance(event, Forecast))
    assert forecast.seconds >= 1.0
    assert seen.index(forecast) < seen.index("answers")

    def stop(name, share):
        if name == "methods" and share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), show_progress(stop):
        fill(line_table(), "price", method="blend")


def test_report_and_json_say_the_same(tmp_path):
    result = fill(line_table(), "price", method="ridge")
    page = result.report(tmp_path / "a.html")
    assert page == (tmp_path / "a.html").read_text() == result.report()
    numbers = json.loads(result.json(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text()) == numbers == json.loads(result.json())
    assert numbers["counts"]["rows"] == 60
    assert numbers["guarantee"]["statement"] == result.guarantee.statement
    with pytest.raises(FileExistsError, match=r"exists already: .* force=True"):
        result.report(tmp_path / "a.html")


# ------------------------------------------------------------------------------------------------------ limits


def test_plans_depend_on_sizes_alone():
    found = plan("auto", "regression", n_rows=100_000, n_labels=1000, budget_seconds=30)
    assert "gaussian_process" in found.left_out or "transductive_ridge" in found.left_out
    assert "of a budget of 30 s" in next(iter(found.left_out.values()))
    assert found.seconds <= 30
    assert set(found.model.estimator.estimators) | set(found.left_out) == set(
        default_members(Case("regression", 100_000, 850))[0]
    )
    assert found.model.estimator.budget_seconds is None  # the plan alone leaves members out
    tiny = plan("auto", "classification", n_rows=1000, n_labels=500, budget_seconds=1e-6)
    assert len(tiny.model.estimator.estimators) == 1
    large = plan("blend", "classification", n_rows=90_000, n_labels=4000, budget_seconds=1e6)
    assert large.left_out == {"spectral_graph": "90,000 rows are more than 20,000"}
    assert plan("bayesian", "classification", n_rows=100, n_labels=50).seconds > 0


def test_slow_methods_are_left_out_where_very_many_rows_are_answered():
    """By counts alone: not by the number of processes; a larger budget takes them in; one method stays at least."""
    sizes = {"n_rows": 25_000, "n_labels": 4650}

    def planned(task="regression", **settings):
        return plan("auto", task, **sizes, guarantee="column", **settings)

    few, many = planned(n_outside=100_000), planned(n_outside=10_000_000)
    assert not few.left_out
    assert set(many.left_out) == {"extra_trees", "transductive_ridge"}
    assert set(many.model.estimator.estimators) == {"gaussian_process", "ridge", "boosted_trees"}
    note = next(note for note in many.notes if "Left out" in note)
    assert "10,000,000 rows" in note
    assert "extra_trees (150 s)" in note
    assert "budget_seconds=1500" in note
    assert not any("Left out" in note for note in few.notes)
    others = planned(n_outside=10_000_000, n_jobs=2)
    assert others.left_out == many.left_out
    assert not planned(n_outside=10_000_000, budget_seconds=1500.0).left_out
    classes = planned("classification", n_outside=10_000_000, n_classes=3)
    assert set(classes.model.estimator.estimators) == {
        "logistic_regression",
        "boosted_trees",
        "small_trees",
    }


def test_the_gaussian_process_answers_very_many_rows_from_some_points():
    def process(n_labels, n_outside):
        sizes = {"n_rows": 22_000, "n_labels": n_labels, "n_outside": n_outside}
        found = plan("auto", "regression", **sizes, guarantee="column")
        members = found.model.estimator.estimators
        return None if members is None else members["gaussian_process"].max_exact

    assert process(2000, 100_000) is None  # the defaults
    assert process(2000, 10_000_000) == 500
    assert process(400, 10_000_000) == 3000


def test_a_wide_table_keeps_its_settings_where_methods_are_left_out():
    sizes = {"n_rows": 22_000, "n_labels": 2000, "n_outside": 10_000_000, "n_features": 300}
    found = plan("auto", "regression", **sizes, guarantee="column")
    assert not found.model.estimator.estimators["gaussian_process"].relevance


def test_members_left_out_are_listed():
    result = fill(line_table(300), "price", budget_seconds=1.5)
    gone = result.members[result.members["weight"].isna()]
    assert len(gone) > 0
    assert gone["note"].str.contains("budget").all()


def test_out_of_fold_of_a_rare_class():
    frame, _ = wild_table("two classes")
    result = fill(
        frame.assign(target=frame["target"].where(frame.index != 0, "rare")),
        "target",
        method="ridge",
    )
    assert set(result.members) == {"name", "weight", "score", "scorer", "seconds", "note"}


# ------------------------------------------------------------------------------------------------------- laws


def coverage(frame, column, n_maskings, n_labels, **settings):
    """Return how many unlabelled rows were outside in each of some maskings, and the law they follow."""
    truth, outside, law = frame[column], [], None
    for seed in range(n_maskings):
        unlabelled = np.random.default_rng(seed).permutation(len(frame))[n_labels:]
        holes = frame.copy()
        holes[column] = holes[column].astype(float if truth.dtype.kind == "f" else object)
        holes.loc[unlabelled, column] = np.nan if truth.dtype.kind == "f" else None
        result = fill(holes, column, random_state=seed, guarantee="column", **settings)
        inside = holds(result, truth)
        outside.append(int((~inside[unlabelled]).sum()))
        law = result.model.miscoverage_
    return np.array(outside), law


def holds(result, truth):
    if result.task == "regression":
        return truth.between(result.frame.iloc[:, -4], result.frame.iloc[:, -3]).to_numpy()
    sets = result.frame[f"{result.target}_set"]
    return np.array([str(y) in str(s).split(" | ") for y, s in zip(truth, sets, strict=True)])


def test_guarantee_and_truth_agree_over_maskings():
    """Six maskings here, 100 in tests/slow."""
    frame = load_diabetes(as_frame=True).frame[:160]
    outside, law = coverage(frame, "target", 6, 60, method="ridge")
    exact = betabinom(law.n_unlabelled, law.n_calibration + 1 - law.rank, law.rank)
    assert abs(outside.mean() - exact.mean()) < 3 * exact.std() / np.sqrt(6)
    assert np.mean(outside <= law.quantile(0.95)) >= 0.8


def test_guarantee_and_truth_agree_for_classes():
    frame = load_wine(as_frame=True).frame
    frame["target"] = frame["target"].map({0: "a", 1: "b", 2: "c"}).astype(object)
    outside, law = coverage(frame, "target", 4, 60, method="ridge")
    exact = betabinom(law.n_unlabelled, law.n_calibration + 1 - law.rank, law.rank)
    assert outside.mean() <= exact.mean() + 3 * exact.std() / np.sqrt(4)


# --------------------------------------------------------------------------------------------------- refusals


def _with(**columns):
    return line_table().assign(**columns)


TEXTS = [None if k % 3 == 0 else "red" if k % 2 else "blue" for k in range(60)]


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        (line_table(), {"target": "Prices"}, "has no column 'Prices'. Did you mean 'price'?"),
        (pd.DataFrame(), {"target": "price"}, "has no column 'price'. It has no columns."),
        (line_table(), {"target": "zzz"}, "has no column 'zzz'. It has 'size', 'price'."),
        (line_table(), {"target": "size"}, "nothing to fill"),
        (_with(price=np.nan), {}, "All cells of column 'price' are empty"),
        (
            _with(price=[1.0, 2.0] + [np.nan] * 58),
            {},
            "has 2 labels, and it takes at least 3 to learn anything",
        ),
        (_with(price=[5.0] * 30 + [np.nan] * 30), {}, "are the same number, 5.0"),
        (_with(price=["a"] * 30 + [None] * 30), {}, "are the same class, 'a'"),
        (
            _with(price=[f"c{k}!" for k in range(30)] + [None] * 30),
            {},
            "classes that occur more than once",
        ),
        (
            _with(price=[f"{k}" for k in range(29)] + ["dear"] + [None] * 30),
            {},
            "holds numbers, but 1 of its 30 labels is not: 'dear' (row 30)",
        ),
        (
            _with(price=TEXTS),
            {"task": "regression"},
            "should hold numbers, but 40 of its 40 labels are not: 'red'",
        ),
        (
            _with(price=[np.inf] * 3 + list(range(30)) + [np.nan] * 27),
            {"task": "regression"},
            "infinite",
        ),
        (line_table().iloc[:0], {}, "The table has no rows"),
        (line_table()[["price"]], {}, "there is nothing to learn from"),
        (line_table().rename(columns={"size": "price"}), {}, "two columns called 'price'"),
        (_with(price_filled=1), {}, "has a column 'price_filled' already"),
        (line_table(), {"method": "magic"}, "There is no method 'magic'"),
        (line_table(), {"method": "bayesian"}, "fills classes, and these labels are numbers"),
        (
            _with(price=[float(k) for k in range(11)] + [np.nan] * 49),
            {"guarantee": "column"},
            "11 labels are too few to hold some out and guarantee 90 % for the column: it takes 13",
        ),
        (line_table(), {"ignore": ["sizes"]}, "Did you mean 'size'?"),
        (line_table(), {"ignore": "size"}, "ignore takes a list"),
        (line_table(), {"ignore": ["price"]}, "is the target"),
        (
            line_table(),
            {"text": ["size"], "number": ["size"]},
            "as text and as numbers: leave out one",
        ),
        (line_table(), {"confidence": 1.5}, "confidence must lie strictly between"),
        (line_table(), {"certainty": 0}, "certainty must lie strictly between"),
        (line_table(), {"reject": 1.0}, "reject must lie strictly between"),
        (line_table(), {"budget_seconds": 0}, "budget_seconds"),
        (line_table(), {"task": "clustering"}, "task must be one of"),
        (line_table(), {"n_jobs": 0}, "n_jobs"),
        (line_table(), {"random_state": -1}, "random_state"),
    ],
)
def test_bad_input_gets_one_sentence(frame, settings, message):
    options = dict(settings)
    target = options.pop("target", "price")
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        fill_table(frame, target, Options.read(options, questions=True))
    assert "\n" not in str(caught.value)


def test_regression_of_things_that_are_no_text():
    frame = _with(price=pd.Series([k % 3 == 0 if k % 2 else None for k in range(60)], dtype=object))
    frame["price"] = frame["price"].map(lambda cell: b"some" if cell else cell)
    with pytest.raises(ValueError, match="is not a number"):
        fill(frame, "price", task="regression")
    with pytest.raises(TypeError, match="pandas or polars frame"):
        fill([[1]], "price")


# -------------------------------------------------------------------------------------- guarantees that are none


def chosen_labels(n=200):
    """Return a table whose labels are from one half of the range of a column."""
    rng = np.random.default_rng(0)
    income = rng.uniform(0, 10, n)
    frame = pd.DataFrame(
        {"age": rng.normal(size=n), "income": income, "y": 2 * income + rng.normal(size=n)}
    )
    return frame.assign(y=frame["y"].where((income < 5) & (rng.random(n) < 0.7)))


@pytest.mark.parametrize(
    ("guarantee", "words"), [("row", "in doubt"), ("column", "guarantee: approximate")]
)
def test_a_guarantee_in_doubt_says_so_first_and_names_columns(guarantee, words):
    """Where labels are held out, an estimate of who was labelled corrects; elsewhere the guarantee is in doubt."""
    result = fill(chosen_labels(), "y", method="ridge", guarantee=guarantee)
    assert result.guarantee.in_doubt == (guarantee == "row")
    assert str(result.guarantee).startswith("in doubt, since labelled and") == (guarantee == "row")
    assert "most of all in income" in str(result.guarantee)
    assert not any("column 1" in note for note in [*result.notes, str(result.guarantee)])
    summary = result.summary()
    assert summary["exchangeability"]["features"][0]["name"] == "income"
    assert summary["cards"][2]["tone"] != "good"
    page = result.report()
    first = page[: page.index('<section id="guarantee"')]
    assert words in first
    assert "“income”" in first
    if guarantee == "row":
        assert "at least 90 %" not in first.replace("\u00a0", " ").split("in doubt")[0]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_few_labels_are_guaranteed_exactly(task):
    """With 8 labels and 80 % nothing is held out, and the report never denies what it guarantees."""
    a = np.random.default_rng(1).permutation(np.arange(40.0))
    y = pd.Series(2 * a if task == "regression" else np.where(a > 20, "u", "v"), dtype=object)
    y[(np.arange(40) + (a > 20)) % 5 > 0] = None
    result = fill(pd.DataFrame({"a": a, "y": y}), "y", confidence=0.8, task=task, method="ridge")
    assert (result.guarantee.kind, result.guarantee.n_calibration) == ("exact", 0)
    assert "othing is guaranteed" not in result.report()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_below_the_least_number_of_labels_values_stand_without_a_guarantee(task):
    a = np.random.default_rng(1).normal(size=40)
    y = pd.Series(2 * a if task == "regression" else np.where(a > 0, "u", "v"), dtype=object)
    y[5:] = None
    result = fill(pd.DataFrame({"a": a, "y": y}), "y", task=task)
    assert result.guarantee.kind == "none"
    assert "takes at least 9 labels, and there are 5" in str(result.guarantee)
    assert result.new["y_filled"].notna().all()
    page = result.report()
    assert "no guarantee" in page
    assert "at least 90" not in page[: page.index("<main")]


def test_many_classes_cost_time():
    """With a thousand classes the members whose cost grows with them are left out, so that the budget holds."""
    few, many = (
        plan("auto", "classification", n_rows=3000, n_labels=2000, n_classes=k) for k in (5, 1000)
    )
    assert "transductive_ridge" not in few.left_out
    assert "transductive_ridge" in many.left_out
    assert many.seconds <= 300


@pytest.mark.parametrize("guarantee", [pytest.param("row", marks=pytest.mark.slow), "column"])
def test_sets_say_that_a_class_no_label_shows_is_possible(guarantee):
    """Every second label is the only one of its class: in the table, the JSON, the report and the sentences."""
    rng = np.random.default_rng(0)
    names = np.array([f"kind {i if i % 2 else 0}" for i in range(80)], dtype=object)
    frame = pd.DataFrame(
        {"a": rng.normal(size=80), "kind": np.where(np.arange(80) < 60, names, None)}
    )
    filled = fill(frame, "kind", method="ridge", guarantee=guarantee, random_state=0)
    sets = filled.frame["kind_set"].iloc[60:]
    assert sets.str.endswith(" | or a class that no label shows").all()
    assert filled.answer.contains(["kind 61"] * 20).all()
    summary = filled.summary()
    assert all(row["unseen"] for row in summary["rows"])
    assert summary["answers"]["n_one"] == 0
    assert "or a class that no label shows" in filled.report()
    assert "a class without a label; the sets say so" in filled.guarantee.statement
    assert "every class of the unlabelled rows has a label" not in str(filled.guarantee)


def test_a_class_that_only_kept_labels_show_is_possible_where_any_class_is():
    """The fit to a sample may not know a class of the labels that are kept from it."""
    fit_answer = Answer(
        np.arange(2),
        np.array(["a", "b"]),
        np.full(2, "answered"),
        Guarantee("none"),
        label_sets=np.array([[True, False], [True, True]]),
        p_values=np.array([[0.5, 0.05], [0.6, 0.5]]),
        unseen=np.array([False, True]),
        p_unseen=np.array([0.05, 0.2]),
        classes=np.array(["a", "b"]),
    )
    others = replace(fit_answer, rows=np.arange(0), classes=np.array(["a", "b", "c"]))
    others = replace(
        others,
        values=fit_answer.values[:0],
        status=fit_answer.status[:0],
        label_sets=np.empty((0, 3), dtype=bool),
        p_values=np.empty((0, 3)),
        unseen=np.empty(0, dtype=bool),
        p_unseen=np.empty(0),
    )
    joined = join_answers([fit_answer, others])
    np.testing.assert_array_equal(joined.label_sets[:, 2], [False, True])
    np.testing.assert_array_equal(joined.p_values[:, 2], [0.05, 0.2])
    np.testing.assert_array_equal(joined.unseen, [False, True])


def two_targets(n=90):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, n))
    kind = np.where(np.arange(n) % 3 == 0, None, np.where(a > 0, "up", "down"))
    price = np.where(np.arange(n) % 4 == 0, np.nan, 2 * a + b)
    return pd.DataFrame({"a": a, "b": b, "price": price, "kind": kind})


def test_several_targets_are_filled_each_by_itself():
    """One table with all new columns; each as if the other were not there, and that is said."""
    table = two_targets()
    both = fill(
        table, ["price", "kind"], method="ridge", label_conditional=True, guarantee="column"
    )
    price = fill(table.drop(columns="kind"), "price", method="ridge", guarantee="column")
    kind = fill(
        table, "kind", method="ridge", ignore=["price"], label_conditional=True, guarantee="column"
    )
    pd.testing.assert_frame_equal(both["price"].new, price.new)
    pd.testing.assert_frame_equal(both["kind"].new, kind.new)
    pd.testing.assert_frame_equal(both.frame, pd.concat([table, price.new, kind.new], axis=1))
    assert "'kind' is filled too, and is no feature of 'price'." in both["price"].notes
    assert any("for each filled column by itself" in note for note in both["price"].notes)
    assert list(both) == ["price", "kind"]
    assert "of 'price' filled" in repr(both)
    assert "of 'kind' filled" in repr(both)
    asked = both.with_options(minimum=-9.0, probabilities=True)
    assert asked.frame["price_lower"].min() >= -9.0
    assert "kind_probability_up" in asked.frame
    for wrong in ([], ["price", "price"], ["price", "nothing"]):
        with pytest.raises(ValueError, match=r"each once|no column 'nothing'"):
            fill(table, wrong, method="ridge")
    with pytest.raises(ValueError, match="tolerance is for numbers"):
        fill(table, ["kind"], method="ridge").with_options(tolerance=1.0)


@pytest.mark.parametrize("library", ["polars", "dask"])
def test_several_targets_of_frames_of_other_libraries(library):
    table = two_targets()
    both = fill(table, ["price", "kind"], method="ridge", guarantee="column")
    if library == "polars":
        polars = pytest.importorskip("polars")
        frame = fill(
            polars.from_pandas(table), ["price", "kind"], method="ridge", guarantee="column"
        ).frame
        assert isinstance(frame, polars.DataFrame)
        assert frame.columns == list(both.frame.columns)
        np.testing.assert_array_equal(frame["price_filled"].to_numpy(), both.frame["price_filled"])
        return
    dd = pytest.importorskip("dask.dataframe")
    frame = fill(
        dd.from_pandas(table, npartitions=2), ["price", "kind"], method="ridge"
    ).frame.compute()
    assert list(frame.columns) == list(both.frame.columns)
    assert frame[["price_filled", "kind_filled"]].notna().all(axis=None)


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_intervals_at_several_levels(guarantee):
    """Nested, and those of the level of the fit are its own."""
    frame = line_table()
    result = fill(frame, "price", method="ridge", guarantee=guarantee, confidence=0.8)
    found = result.intervals_at([0.9, 0.8])
    shown = result.frame.loc[found.index]
    np.testing.assert_array_equal(found["price_filled"], shown["price_filled"])
    np.testing.assert_allclose(found["price_lower_80"], shown["price_lower"])
    np.testing.assert_allclose(found["price_upper_80"], shown["price_upper"])
    assert np.all(found["price_lower_90"] <= found["price_lower_80"])
    assert np.all(found["price_upper_90"] >= found["price_upper_80"])
    with pytest.raises(ValueError, match="a list such as"):
        result.intervals_at(0.9)


def test_names_in_levels_stay_so():
    """Columns named by several levels get new ones beside them, with the target's levels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({("x", "a"): rng.normal(size=60), ("y", "cost"): rng.normal(size=60)})
    frame.loc[30:, ("y", "cost")] = np.nan
    filled = fill(frame, ("y", "cost"), method="ridge").frame
    assert isinstance(filled.columns, pd.MultiIndex)
    assert filled.columns[:2].tolist() == frame.columns.tolist()
    assert ("y", "cost_filled") in filled.columns
    pd.testing.assert_frame_equal(filled[frame.columns], frame)
