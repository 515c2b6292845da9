"""Estimators that users bring: fitted, calibrated, blended, saved and reported like ours, or refused in a sentence."""

from __future__ import annotations

import json
import shlex
import shutil
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import GammaRegressor, LinearRegression, Ridge, RidgeClassifier, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from transduce import ConformalTransducer, fill
from transduce.app.cli.app import app
from transduce.app.filling import fill_folder, load, save
from transduce.app.filling.options import Options
from transduce.app.tables.files import read
from transduce.conformal import Chance
from transduce.core.row_order import rows_in_order
from transduce.model_selection.own_models import OwnModel, TableRows, of_stored


class Bare:
    """A classifier that only fits and predicts, a column at that, as some libraries do."""

    def fit(self, X, y):
        self.commonest = pd.Series(y).mode()[0]
        return self

    def predict(self, X):
        return np.full((len(X), 1), self.commonest)


class Noting(BaseEstimator):
    """A regressor that notes what it was given, in a list that all copies share."""

    seen: ClassVar[list] = []
    _estimator_type = "regressor"

    def fit(self, X, y):
        Noting.seen.append(X)
        self.mean = float(np.mean(y))
        return self

    def predict(self, X):
        Noting.seen.append(X)
        return np.full(len(X), self.mean)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n = 160
    a, b = rng.normal(size=(2, n))
    kind = rng.choice(["x", "y", "zoo"], n)
    y = (3 * a + b + 2 * (kind == "x") + 0.3 * rng.normal(size=n)).round(2)
    labelled = rng.random(n) < 0.5
    a = np.where(rng.random(n) < 0.1, np.nan, a)
    sort = np.where(labelled, np.where(y > 0, "high", "low"), None)
    return pd.DataFrame(
        {"a": a, "b": b, "kind": kind, "y": np.where(labelled, y, np.nan), "sort": sort}
    )


class Odd:
    """A regressor that answers in a way of its own."""

    def __init__(self, way):
        self.way = way

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.way(np.zeros(len(X)))


class Coded(ClassifierMixin, BaseEstimator):
    """A classifier that answers with the numbers of classes."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Short(RandomForestClassifier):
    """A classifier that gives probabilities of one class only."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, :1]


def in_columns():
    """Return a pipeline that encodes a table on its own."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), (SimpleImputer(), ["a", "b"])
    )
    return make_pipeline(encode, Ridge())


def test_a_regressor_is_calibrated_and_fitted_again_with_all_labels(table):
    """By hand: the same features, labels held out, and second fit give the same table."""
    result = fill(table, "y", method=RandomForestRegressor(10), ignore=["sort"])
    assert isinstance(result.model, ConformalTransducer)
    assert result.guarantee.kind == "exact"
    assert result.guarantee.outside is not None
    assert list(result.members["name"]) == ["RandomForestRegressor"]
    inner = RandomForestRegressor(10, random_state=0)  # seeded, since no seed was given
    labels = table["y"].to_numpy()[result.seen.order]  # in the order in which the fit saw them
    twin = ConformalTransducer(inner, refit=True, random_state=0)
    with rows_in_order():
        twin.fit(result.fit.features.matrix, labels)
    own = twin.answer_.at(result.places_in_fit)
    np.testing.assert_array_equal(result.answer.values, own.values)
    np.testing.assert_array_equal(result.answer.regions.hull(), own.regions.hull())


def test_what_estimators_are_given(table):
    for features in ("encoded", "columns"):
        Noting.seen.clear()
        result = fill(table, "y", method=Noting(), features=features, ignore=["sort"])
        assert result.answer.regions is not None
        for X in Noting.seen:
            assert isinstance(X, pd.DataFrame) == (features == "columns")
        if features == "columns":
            assert list(Noting.seen[0].columns) == ["a", "b", "kind"]
            assert set(Noting.seen[-1]["kind"]) <= {"x", "y", "zoo"}
            assert Noting.seen[0]["a"].isna().any()
        else:
            assert np.isfinite(Noting.seen[0]).all()


@pytest.mark.parametrize("method", [RidgeClassifier(), Bare(), RandomForestClassifier(10)])
def test_classifiers_with_probabilities_scores_and_neither(table, method):
    result = fill(table, "sort", method=method, ignore=["y"])
    assert set(result.new["sort_filled"]) == {"high", "low"}
    assert result.guarantee.wrong is not None
    assert result.frame["sort_set"].dropna().isin(["high", "low", "high | low"]).all()


def test_classifiers_that_answer_otherwise(table):
    with pytest.raises(
        ValueError, match=r"Coded answers with .*0.* and the like, which no label is"
    ):
        fill(table, "sort", method=Coded(), ignore=["y"])
    with pytest.raises(ValueError, match=r"Short answers \d+ rows with an array of shape"):
        fill(table, "sort", method=Short(), ignore=["y"])


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["y", "sort"])
def test_stacks_predict_once_they_are_fitted(table, target):
    stack = {
        "y": StackingRegressor([("a", Ridge()), ("b", LinearRegression())]),
        "sort": StackingClassifier([("a", RidgeClassifier()), ("b", RandomForestClassifier(10))]),
    }[target]
    result = fill(table, target, method=stack, ignore=[{"y": "sort", "sort": "y"}[target]])
    assert result.new[f"{target}_filled"].notna().all()
    assert result.members["name"].tolist() == [type(stack).__name__]


def test_a_blend_of_ours_and_theirs(table):
    """Ours get features, theirs the columns; each member answers as it would by itself."""
    method = ["ridge", in_columns(), in_columns()]
    result = fill(table, "y", method=method, features="columns", ignore=["sort"])
    assert list(result.values_model.weights_.index) == [
        "transductive_ridge",
        "Ridge",
        "Ridge-2",
    ]
    members = result.values_model.estimators_
    alone = fill(table, "y", method=in_columns(), features="columns", ignore=["sort"])
    rows = TableRows(result.fit.features.matrix, result.fit.X.frame)
    np.testing.assert_allclose(members["Ridge"].predict(rows), alone.values_model.predict(rows))
    assert result.members["weight"].sum() == pytest.approx(1.0)
    assert result.options.method_name == "blend"


def test_names_alone_are_blended_too(table):
    assert (
        Options(method=" Ridge, forest").parts
        == Options(method=["ridge", "forest"]).parts
        == ["ridge", "forest"]
    )
    result = fill(
        table, "y", method=["ridge", "gaussian-process"], guarantee="column", ignore=["sort"]
    )
    assert list(result.values_model.weights_.index) == ["transductive_ridge", "gaussian_process"]


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        (RandomForestClassifier(), {}, "fills classes, and these labels are numbers: give a regressor"),
        (RandomForestClassifier, {}, "give an instance of it, RandomForestClassifier()"),
        (3, {}, "3 is neither: it has no fit"),
        (StandardScaler(), {}, "StandardScaler cannot predict"),
        ([], {}, "method is empty"),
        (["auto", "nonsense"], {}, "There is no method 'nonsense'"),
        ("nowhere:Model", {}, "cannot be imported (ModuleNotFoundError"),
        ("sklearn.linear_model:Nothing", {}, "cannot be imported (AttributeError"),
        (Ridge(), {"guarantee": "row"}, "not from an estimator of your own"),
        (Ridge(), {"device": "cuda"}, "is for the methods auto, ridge"),
        (LinearRegression(), {"features": "columns"}, "LinearRegression cannot be fitted: could not convert string"),
        (LinearRegression(), {"features": "columns", "ignore": ["kind", "sort"]}, "with features='encoded' it gets"),
        (GammaRegressor(), {}, "GammaRegressor cannot be fitted: Some value"),
        ("ridge", {"features": "columns"}, "is for an estimator of your own"),
        (KMeans(3), {}, "KMeans learns no labels, and these labels are numbers: give a regressor"),
        (IsolationForest(), {}, "IsolationForest learns no labels"),
        (Odd(lambda p: p[:-1]), {}, "Odd answers 110 rows with an array of shape (109,) in place of (110,)"),
        (Odd(lambda p: None), {}, "shape () in place of (110,)"),
        (Odd(lambda p: np.c_[p, p]), {}, "with an array of shape (110, 2)"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(table, method, settings, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        fill(table, "y", method=method, **{"ignore": ["sort"], **settings})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_labels(table):
    few = table.assign(y=table["y"].where(np.arange(len(table)) < 12))
    with pytest.raises(ValueError, match="needs none held out, without an estimator of your own"):
        fill(few, "y", method=Ridge(), ignore=["sort"])


@pytest.mark.parametrize(
    ("method", "features"),
    [
        pytest.param(in_columns(), "columns", marks=pytest.mark.slow),
        (
            ["ridge", make_pipeline(StandardScaler(), RidgeCV(alphas=np.array([0.1, 1.0])))],
            "encoded",
        ),
    ],
)
def test_to_do_it_again(table, method, features):
    result = fill(table, "y", method=method, features=features, ignore=["sort"])
    again = json.loads(result.json())["again"]
    *lines, call = again.splitlines()
    names = {"fill": fill, "table": table}
    exec("\n".join([*lines, f"twin = {call}"]), names)
    pd.testing.assert_frame_equal(names["twin"].frame, result.frame, check_exact=True)
    assert "Ridge" in json.loads(result.json())["options"]["method"]
    assert "Ridge" in result.report()


def test_large_tables(table, tmp_path, monkeypatch):
    """A sample, files in parts and Dask: rows outside of the fit are answered by the estimator too."""
    import dask.dataframe as dd

    monkeypatch.chdir(tmp_path)
    settings = {"method": in_columns(), "features": "columns", "sample": 100}
    short = pd.concat([table.drop(columns="sort")] * 2, ignore_index=True)
    sampled = fill(short, "y", labels=Chance(reweight=False), **settings)
    assert sampled.seen.is_sample
    assert sampled.new["y_status"].isin(["given", "answered"]).all()
    short.to_parquet("t.parquet")
    folder = fill_folder("t.parquet", "y", "out", **settings)
    first = folder.frame.paths[0].read_bytes()
    shutil.rmtree("out")
    exec(folder.again, {})
    assert folder.frame.paths[0].read_bytes() == first
    lazy = fill(dd.from_pandas(short, npartitions=2), "y", **settings).frame.compute()
    values = pd.read_parquet(folder.frame.paths[0])["y_filled"]
    np.testing.assert_allclose(values, sampled.new["y_filled"], atol=0.5)
    np.testing.assert_allclose(lazy["y_filled"], sampled.new["y_filled"], atol=0.5)


def test_saved_files_hold_known_estimators_and_no_code(table, tmp_path):
    path, some = tmp_path / "m.transduce", table[["a", "b", "kind"]].head(3)
    safe = ["ridge", make_pipeline(StandardScaler(), RidgeCV(alphas=np.array([0.1, 1.0])))]
    plain = table.drop(columns="sort")
    save(path, plain, "y", method=safe)
    assert load(path).new_columns(some)["y_filled"].notna().all()
    save(path, plain, "y", method="sklearn.linear_model:Ridge", force=True)
    assert load(path).new_columns(some)["y_filled"].notna().all()
    for unsafe in (
        Bare(),
        make_pipeline(FunctionTransformer(np.log1p), Ridge()),
        Pipeline([("ridge", Ridge())], memory="cache"),
    ):
        with pytest.raises(
            ValueError, match="cannot be saved: a saved file holds estimators of scikit-learn"
        ):
            save(
                path,
                plain.assign(y=plain["y"].abs()),
                "y",
                method=unsafe,
                task="regression",
                force=True,
            )


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').abort()",
        "from os import abort\nabort()",
        "from sklearn.utils import check_array\ncheck_array(X=[1])",
        "from sklearn.pipeline import Pipeline\nPipeline(steps=[], memory='/tmp/x')",
        "from transduce import fill\nfill(table=1)",
    ],
)
def test_a_file_of_a_stranger_runs_nothing(code):
    with pytest.raises((ValueError, TypeError)):
        of_stored(code)


def test_the_command_line(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_own_models.py").write_text(
        "import numpy\nfrom sklearn.linear_model import Ridge\nfrom sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer\n\nstiff = Ridge(alpha=3.0)\n"
        "logs = make_pipeline(FunctionTransformer(numpy.log1p), Ridge())\n",
        encoding="utf-8",
    )
    table.drop(columns="sort").to_csv("t.csv", index=False)

    def run(*words):
        done = CliRunner().invoke(app, ["fill", "t.csv", "--target", "y", *words])
        assert done.exit_code == 0, done.output
        return done

    run("--method", "my_own_models:stiff,ridge", "--out", "a.csv", "--json", "a.json", "--quiet")
    about = json.loads((tmp_path / "a.json").read_text())
    assert {one["name"] for one in about["members"]} == {"Ridge", "transductive ridge"}
    again = shlex.split(about["again"])
    assert CliRunner().invoke(app, [*again[1:], "--out", "b.csv", "--quiet"]).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert "Ridge" in run("--method", "sklearn.linear_model:Ridge", "--out", "c.csv").output
    bad = CliRunner().invoke(
        app, ["fill", "t.csv", "--target", "y", "--method", "my_own_models:nothing"]
    )
    assert bad.exit_code == 2
    logs = "my_own_models:logs"  # a pipeline with a function, which no file of data holds
    words = ["fill", "t.csv", "--target", "y", "--method", logs, "--save", "m", "--out", "d.csv"]
    refused = CliRunner().invoke(app, words)
    assert "cannot be saved" in refused.output
    assert "answers" not in refused.output
    assert not (tmp_path / "d.csv").exists()
    result = fill(read("t.csv"), "y", method=Ridge(alpha=3.0))
    names = {"fill": fill}
    *lines, call = result.again.splitlines()
    exec("\n".join([*lines, f"twin = {call}"]), names)
    pd.testing.assert_frame_equal(names["twin"].frame, result.frame)


def test_seeds_are_set_where_there_are_none():
    from transduce.model_selection.methods import Case

    case = Case("regression", 10, random_state=7)
    given = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(random_state=3))
    assert OwnModel.of(given, case, columns=False).steps[1][1].steps[1][1].random_state == 3
    assert OwnModel.of(RandomForestRegressor(), case, columns=False).steps[1][1].random_state == 7
    assert given.steps[1][1].random_state == 3
