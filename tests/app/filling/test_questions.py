"""Every question to a result, wherever its rows are: in memory, sampled, in files, on Dask, saved for later rows.

What a question does to the columns is written down once more here, slowly, and compared row by row; what one kind of
result cannot answer it refuses in words.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling import fill_folder, load, save
from transduce.app.filling.answer_columns import AnswerColumns
from transduce.app.filling.options import OF_GUARANTEE, QUESTIONS
from transduce.app.tables import files
from transduce.app.tables.new_columns import rounded

N_ROWS = 600
SETTINGS = {"method": "ridge", "sample": 120, "random_state": 1, "ignore": ["number"]}
OF_CLASSES = SETTINGS | {"method": "forest"}
ASKED = {  # of numbers and of classes
    "minimum": ({"minimum": -4.0}, None),
    "maximum": ({"maximum": 4.0}, None),
    "limit": ({"limit": ["<-3", ">3"]}, None),
    "probabilities": (None, {"probabilities": True}),
    "reject": ({"reject": 0.2}, {"reject": 0.2}),
    "label_next": ({"label_next": True}, {"label_next": True}),
    "suspect": ({"suspect": True}, {"suspect": True}),
    "similar": ({"similar": True}, {"similar": True}),
    "certainty": ({"certainty": 0.8}, {"certainty": 0.8}),
    "tolerance": ({"tolerance": 1.0}, None),
}
TASKS = ("regression", "classification")
KINDS = ("memory", "sampled", "folder", "dask")
NEED_ALL = ("reject", "label_next", "suspect", "similar")
CASES = [
    (task, name, asked)
    for name, both in ASKED.items()
    for task, asked in zip(TASKS, both, strict=True)
    if asked is not None
]


def make_table(task):
    """Return a table whose labels are numbers or classes; some classes are rare."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 3))
    y = (X[:, 0] * 2 + np.sin(X[:, 1]) + 0.3 * random.normal(size=N_ROWS)).clip(-4.0, 4.0)
    known = random.uniform(size=N_ROWS) < 0.4
    table = pd.DataFrame(X, columns=["u", "v", "w"]).assign(number=np.arange(N_ROWS))
    if task == "regression":
        return table.assign(y=np.where(known, y.round(3), np.nan))
    names = np.select([y < -1.5, y < 1.0], ["low", "größer, |"], "high").astype(object)
    return table.assign(y=np.where(known, names, None))


def settings_of(task):
    return SETTINGS if task == "regression" else OF_CLASSES


def fill_parts(frame, folder, kind="parquet", **options):
    """Fill a table of three files into a folder."""
    folder.mkdir()
    for k in range(3):
        part = frame.iloc[200 * k : 200 * (k + 1)]
        if kind == "csv":
            part.to_csv(folder / f"{k}.csv", index=False)
        else:
            part.to_parquet(folder / f"{k}.parquet", index=False)
    return fill_folder(f"{folder}/*.{kind}", "y", folder / "out", **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A function that returns the result of a kind, filled once."""
    kept = {}

    def result_of(kind, task):
        if (kind, task) not in kept:
            kept[kind, task] = _fill(kind, task, tmp_path_factory.mktemp(kind) / task)
        return kept[kind, task]

    return result_of


def _fill(kind, task, folder, **questions):
    frame, settings = make_table(task), settings_of(task)
    if kind == "memory":
        return fill(frame, "y", **settings | {"sample": 20_000}).with_options(**questions)
    if kind == "sampled":
        return fill(frame, "y", **settings).with_options(**questions)
    if kind == "folder":
        return fill_parts(frame, folder, **settings, **questions)
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return fill(dd.from_pandas(frame, npartitions=3), "y", **settings).with_options(**questions)


def read_rows(result):
    """Return all rows of a result with their new columns, as one frame of plain values."""
    frame = result.frame
    if hasattr(frame, "paths"):
        frame = pd.concat([pd.read_parquet(path) for path in frame.paths], ignore_index=True)
    elif hasattr(frame, "compute"):
        frame = frame.compute(scheduler="synchronous")
    return frame.sort_values("number").reset_index(drop=True)


def new_of(frame):
    """Return the new columns, texts and missing values as plain objects."""
    names = [name for name in frame.columns if str(name).startswith("y_")]
    plain = frame[names].astype(object)
    return plain.where(plain.notna(), None)


def assert_same(one, other):
    assert list(one.columns) == list(other.columns)
    for name in one.columns:
        assert one[name].tolist() == other[name].tolist(), name


def as_asked(plain, name, asked, result):
    """Return columns with one question more, by its definition; `plain` are those without it."""
    new = plain.copy()
    unlabelled = new["y_status"] != "given"
    if name == "minimum":
        for column in ("y_filled", "y_lower", "y_upper"):
            new.loc[unlabelled, column] = [max(v, asked[name]) for v in new.loc[unlabelled, column]]
    if name == "maximum":
        for column in ("y_filled", "y_lower", "y_upper"):
            new.loc[unlabelled, column] = [min(v, asked[name]) for v in new.loc[unlabelled, column]]
    if name == "limit":
        for row in np.flatnonzero(unlabelled):
            value, low, high = (new.loc[row, f"y_{end}"] for end in ("filled", "lower", "upper"))
            if value <= -3.0 or value >= 3.0:
                new.loc[row, "y_status"] = "below" if value <= -3.0 else "above"
            value = max(-3.0, min(3.0, value))
            new.loc[row, "y_filled"] = value
            new.loc[row, "y_lower"] = -np.inf if low <= -3.0 else min(low, value)
            new.loc[row, "y_upper"] = np.inf if high >= 3.0 else max(high, value)
    if name == "reject" and result.task == "regression":
        widths = (new["y_upper"] - new["y_lower"])[unlabelled].astype(float)
        width = widths.sort_values(ascending=False).iloc[int(0.2 * unlabelled.sum())]
        new.loc[unlabelled & (new["y_upper"] - new["y_lower"] > width), "y_status"] = "rejected"
    return new


@pytest.mark.few(14)
@pytest.mark.parametrize(("task", "name", "asked"), CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_changes_all_rows_as_it_says_or_is_refused(
    results, kind, task, name, asked, tmp_path
):
    result = results(kind, task)
    if kind in ("folder", "dask") and name in NEED_ALL:
        with pytest.raises(ValueError, match=f"^{name} needs all rows in one fit"):
            result.table(**asked)
        with pytest.raises(ValueError, match=f"^{name} needs all rows in one fit"):
            result.with_options(**asked)
        return
    if kind == "folder" and name not in OF_GUARANTEE:
        with pytest.raises(ValueError, match=f"were written without {name}="):
            result.table(**asked)
        found = _fill(kind, task, tmp_path / "again", **asked)
    else:
        found = result.with_options(**asked)
    plain, new = new_of(read_rows(result)), new_of(read_rows(found))
    if name == "probabilities":
        shares = [column for column in new.columns if column not in plain.columns]
        assert shares == [f"y_probability_{one}" for one in ("größer, |", "high", "low")]
        there = new["y_probability"].notna().to_numpy()
        assert there.sum() == (new["y_status"] != "given").sum()
        values = new[shares].to_numpy()[there].astype(float)
        assert values.sum(axis=1) == pytest.approx(1.0)
        assert values.max(axis=1) == pytest.approx(new["y_probability"][there].astype(float))
        new = new.drop(columns=shares)
    if name == "label_next":
        order = new.pop("y_label_next")
        rows = sorted(order.dropna().index, key=lambda row: order[row])
        assert rows == list(found.advice.rows)
        assert len(rows) > 0
    if name == "suspect":
        ranks = new.pop("y_suspect")
        assert sorted(ranks.dropna().index, key=lambda row: ranks[row]) == list(
            found.suspects.index
        )
    if name == "similar":
        texts = new.pop("y_similar")
        assert texts.notna().tolist() == (new["y_status"] != "given").tolist()
    if name == "reject" and task == "classification":
        gone = new["y_status"] == "rejected"
        assert 0 < gone.sum() <= 0.2 * (new["y_status"] != "given").sum()
        new.loc[gone, "y_status"] = plain.loc[gone, "y_status"]
    expected = as_asked(plain, name, asked, found)
    ends = [
        column for column in ("y_width_reduction",) if column in new.columns and name != "reject"
    ]
    assert_same(new.drop(columns=ends), expected.drop(columns=ends))
    if name == "certainty" and found.guarantee.outside is not None:
        assert found.guarantee.outside.certainty == 0.8


@pytest.mark.few(3)
@pytest.mark.parametrize(("task", "name", "asked"), [c for c in CASES if c[1] not in NEED_ALL])
def test_the_same_rows_have_the_same_columns_wherever_they_are(
    results, task, name, asked, tmp_path
):
    whole = new_of(read_rows(results("sampled", task).with_options(**asked)))
    folder = _fill("folder", task, tmp_path / "folder", **asked)
    assert_same(new_of(read_rows(folder)), whole)
    assert_same(new_of(read_rows(results("dask", task).with_options(**asked))), whole)
    given = new_of(read_rows(results("memory", task).with_options(**asked)))
    labelled = (whole["y_status"] == "given").to_numpy()
    assert_same(given[labelled], whole[labelled])
    save(tmp_path / "y.transduce", make_table(task), "y", **settings_of(task), **asked)
    later = load(tmp_path / "y.transduce")
    roles = results("sampled", task).seen.order
    others = np.setdiff1d(np.flatnonzero(~labelled), roles)
    answered = later.new_columns(make_table(task).iloc[others])
    assert len(others) > 100
    assert_same(new_of(answered).reset_index(drop=True), whole.iloc[others].reset_index(drop=True))


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", [*KINDS, "later", "csv"])
def test_a_further_option_reaches_all_rows(kind, monkeypatch, tmp_path):
    """As if an option were added that rounds the values: it is put into one place, and changes every row."""
    make = AnswerColumns.make

    def make_and_round(self, *args, **more):
        new = make(self, *args, **more)
        return new.assign(y_filled=new["y_filled"].round(0))

    monkeypatch.setattr(AnswerColumns, "make", make_and_round)
    frame = make_table("regression")
    if kind == "later":
        save(tmp_path / "y.transduce", frame, "y", **SETTINGS)
        filled = load(tmp_path / "y.transduce").new_columns(frame)["y_filled"]
    elif kind == "csv":
        found = fill_parts(frame, tmp_path / "parts", "csv", **SETTINGS)
        filled = pd.concat([pd.read_csv(path) for path in found.frame.paths])["y_filled"]
    else:
        filled = read_rows(_fill(kind, "regression", tmp_path / "parts"))["y_filled"]
    assert len(filled) == N_ROWS
    assert filled.tolist() == filled.round(0).tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("task", TASKS)
def test_files_of_text_are_rounded_alike(task, tmp_path):
    """Parts of CSV, a table in memory that is written, and later rows have the digits of all labels."""
    frame, settings = make_table(task), settings_of(task)
    folder = fill_parts(frame, tmp_path / "parts", "csv", **settings)
    parts = pd.concat([pd.read_csv(path) for path in folder.frame.paths], ignore_index=True)
    result = fill(frame, "y", **settings)
    new = result.columns_for_file
    assert_same(new_of(rounded(result.new, "y", task)), new_of(new))
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = files.read(tmp_path / "t.csv")
    from_file = fill(source, "y", **settings)
    files.write(str(tmp_path / "out.csv"), source, from_file.columns_for_file)
    written = pd.read_csv(tmp_path / "out.csv")
    labelled = frame["y"].notna()
    assert_same(new_of(written[labelled]), new_of(parts[labelled]))
    for name in ("y_filled", "y_lower", "y_upper") if task == "regression" else ():
        for column in (new[name], parts[name], written[name]):
            digits = column[np.isfinite(column)].map(lambda value: len(f"{value!r}".split(".")[1]))
            assert digits.max() <= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["confidence", "method", "guarantee", "random_state", "ignore"])
def test_an_option_of_the_fit_is_no_question(results, kind, name):
    other = {"confidence": 0.5, "method": "forest", "guarantee": "row", "random_state": 3}
    asked = {name: other.get(name, ["u"])}
    for ask in (results(kind, "regression").with_options, results(kind, "regression").table):
        with pytest.raises(TypeError, match=f"^'{name}' is no question to a result"):
            ask(**asked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_beyond_what_is_possible_is_refused_also_if_the_fit_did_not_see_it(results, kind):
    """The least label of the table may be one that calibrates."""
    least = make_table("regression")["y"].min()
    with pytest.raises(ValueError, match="correct one of them"):
        results(kind, "regression").with_options(minimum=float(least) + 1e-6)


@pytest.mark.parametrize("kind", ["memory", "sampled", "dask"])
def test_a_column_that_would_be_there_twice_is_refused(kind):
    frame = make_table("classification").assign(y_probability_low=1.0)
    options = OF_CLASSES | {"ignore": ["number", "y_probability_low"]}
    options |= {"sample": 20_000} if kind == "memory" else {}
    if kind == "dask":
        dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
        frame = dd.from_pandas(frame, npartitions=2)
    result = fill(frame, "y", **options)
    with pytest.raises(ValueError, match="The table has a column 'y_probability_low' already"):
        result.table(probabilities=True)


def test_every_question_is_asked_here():
    assert set(ASKED) == set(QUESTIONS)


def test_fewer_rejected_answers_than_asked_for_are_explained(results):
    result = results("memory", "regression").with_options(reject=0.2)
    ties = pd.Series(np.round(result.answer.regions.measure(), 9)).duplicated(keep=False)
    count = int((result.answer.status == "rejected").sum())
    note = next(note for note in result.notes if "marked as rejected" in note)
    assert note.startswith(f"The {count} least certain of {len(result.answer)} predictions")
    fewer = count < int(0.2 * len(result.answer))
    assert ("equally certain predictions are marked together" in note) == fewer
    assert ties.any() or not fewer


def test_rows_that_come_later_are_not_a_share_of_anything(results):
    """A share of the answers is one of all rows: rows that come later are answered as if nobody had asked for it."""
    result = results("sampled", "regression").with_options(reject=0.3, label_next=True)
    later = make_table("regression").drop(columns="y").iloc[:50]
    new = result.later_rows.new_columns(later)
    assert set(new["y_status"]) == {"answered"}
    assert "y_label_next" not in new.columns


def test_a_folder_says_what_to_do(results):
    folder = results("folder", "regression")
    with pytest.raises(ValueError, match="fill the table into another folder") as error:
        folder.with_options(minimum=-7.5)
    assert "minimum=-7.5" in str(error.value)
    assert str(Path(folder.frame.folder)) in str(error.value)
    same = partial(folder.with_options, minimum=None, maximum=None, probabilities=False)
    assert same().frame.paths == folder.frame.paths


@pytest.mark.parametrize("sample", [100, 20_000])
def test_probabilities_that_a_method_does_not_state_are_not_left_out_silently(sample):
    frame = make_table("classification").iloc[:300]
    result = fill(frame, "y", method="spectral-graph", ignore=["number"], sample=sample)
    asked = result.with_options(probabilities=True)
    assert list(asked.new.columns) == list(result.new.columns)
    missing = "There is no column for the probability of each class"
    assert any(note.startswith(missing) for note in asked.notes)
    assert not any(note.startswith(missing) for note in result.notes)
