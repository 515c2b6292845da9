"""Tables of which the fit sees a sample: in memory, in parts, and saved for later rows."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

from transduce import TransductiveBlend, TransductiveGPRegressor, fill
from transduce.app.filling import LocalRunner, fill_folder, fit_fill, load, save
from transduce.app.filling import folder as folders
from transduce.app.tables.files import read as read_file
from transduce.app.tables.files import write as write_file
from transduce.app.tables.new_columns import rounded
from transduce.app.tables.parts import open_parts, values_in_folders
from transduce.conformal import Chance, Drawn, Grouped
from transduce.conformal.outside import calibrate_outside
from transduce.methods.gaussian_process.process import InducedPosterior
from transduce.model_selection.fit_and_predict import FittedEstimator
from transduce.model_selection.trees import BoostedRegressor

SETTINGS = {"method": "forest", "sample": 300, "random_state": 1}


def make(n=1500, seed=0):
    random = np.random.default_rng(seed)
    X, word = random.normal(size=(n, 3)), random.choice(["a", "b", "c"], n)
    y = X[:, 0] * 2 + np.sin(X[:, 1]) + 2 * (word == "a") + 0.3 * random.normal(size=n)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(word=word, number=np.arange(n))
    frame["y"] = np.where(random.uniform(size=n) < 0.2, y, np.nan)
    return frame, y


@pytest.fixture(scope="module")
def table():
    return make()


@pytest.fixture(scope="module")
def filled(table):
    return fill(table[0], "y", ignore=["number"], **SETTINGS)


@pytest.fixture
def files(table, tmp_path):
    """The table in three Parquet files."""
    for k in range(3):
        table[0].iloc[500 * k : 500 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    return tmp_path


def read(folder):
    parts = sorted(Path(folder).glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)


def columns(frame):
    return frame[["y_filled", "y_lower", "y_upper", "y_width_reduction"]].to_numpy()


def test_sampled_table_in_memory(table, filled):
    frame, y = table
    unlabelled = frame["y"].isna().to_numpy()
    assert len(filled.answer) == unlabelled.sum()
    assert filled.guarantee.kind == "exact"
    assert filled.guarantee.outside.of == unlabelled.sum()
    lower, upper = filled.new["y_lower"][unlabelled], filled.new["y_upper"][unlabelled]
    outside = int(((y[unlabelled] < lower) | (y[unlabelled] > upper)).sum())
    assert outside <= filled.guarantee.outside.at_most
    assert (filled.new["y_status"][~unlabelled] == "given").all()
    assert any("The fit saw" in note for note in filled.notes)
    assert "The fit saw" in filled.report()


def test_a_sample_of_everything_is_the_table_itself(table):
    """A table with no more rows than the sample is filled as before, whatever the sample's size."""
    frame = table[0].iloc[:400]
    one, other = (
        fill(frame, "y", method="forest", guarantee="column", sample=k) for k in (20_000, 5000)
    )
    assert columns(one.frame).tobytes() == columns(other.frame).tobytes()


@pytest.mark.parametrize("batch_rows", [100, pytest.param(100_000, marks=pytest.mark.slow)])
def test_parts_give_the_same_answers_as_memory(files, filled, tmp_path, monkeypatch, batch_rows):
    monkeypatch.setattr(folders, "_batch_rows", lambda *args: batch_rows)
    found = fill_folder(f"{files}/*.parquet", "y", tmp_path / "out", ignore=["number"], **SETTINGS)
    assert np.array_equal(columns(read(tmp_path / "out")), columns(filled.frame), equal_nan=True)
    assert found.guarantee.outside == filled.guarantee.outside
    assert found.counts.rows == 1500
    assert found.counts.statuses["answered"] == len(filled.answer)
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["state"] == "complete"
    assert len(pd.read_parquet(tmp_path / "out")) == 1500  # the manifest is no part
    summary = found.summary()
    assert summary["counts"]["rows"] == 1500


def test_stopped_and_run_again(files, tmp_path, monkeypatch):
    """What was complete stays, the rest is done, and the files are the same as without a stop."""
    fill_folder(str(files), "y", tmp_path / "whole", **SETTINGS)
    (files / "again").mkdir()
    once, calls = folders._write, []

    def fails(answering, piece):
        calls.append(piece[0].number)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return once(answering, piece)

    monkeypatch.setattr(folders, "_write", fails)
    pattern = f"{files}/*.parquet"
    with pytest.raises(KeyboardInterrupt):
        fill_folder(pattern, "y", tmp_path / "out", **SETTINGS)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["state"] == "incomplete"
    assert len(manifest["parts"]) == 1
    fill_folder(pattern, "y", tmp_path / "out", **SETTINGS)
    assert calls == [0, 1, 1, 2]
    for part in (tmp_path / "whole").glob("part-*"):
        assert part.read_bytes() == (tmp_path / "out" / part.name).read_bytes()


@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_and_run_again(files, tmp_path):
    """The process is killed when the first part is there; the same call here then ends with the same files."""
    program = (
        "import os, signal, sys\n"
        "from transduce.app.filling import fill_folder, folder\n"
        "write = folder._write\n"
        "def killing(answering, piece):\n"
        "    if piece[0].number == 1:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return write(answering, piece)\n"
        "folder._write = killing\n"
        "fill_folder(sys.argv[1], 'y', sys.argv[2], method='ridge', sample=300)\n"
    )
    command = [sys.executable, "-c", program, f"{files}/*.parquet", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    first = sorted((tmp_path / "out").glob("part-*"))
    assert len(first) == 1
    written = first[0].stat().st_mtime_ns
    for name in ("out", "whole"):
        fill_folder(f"{files}/*.parquet", "y", tmp_path / name, method="ridge", sample=300)
    assert first[0].stat().st_mtime_ns == written
    for part in (tmp_path / "whole").glob("part-*"):
        assert part.read_bytes() == (tmp_path / "out" / part.name).read_bytes()


def test_texts_stay_as_they_were_written(tmp_path, table):
    frame = table[0].drop(columns="number").assign(code="007", name="Größe; 1")
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    fill_folder(str(tmp_path / "t.csv"), "y", tmp_path / "out", method="ridge", sample=300)
    back = pd.read_csv(tmp_path / "out" / "part-00000-t.csv", sep=";", dtype=str)
    given = pd.read_csv(tmp_path / "t.csv", sep=";", dtype=str)
    assert back[given.columns].equals(given)
    assert (back["y_status"] == "given").sum() == frame["y"].notna().sum()
    assert not (tmp_path / "out" / ".work").exists()


def test_json_lines(tmp_path, table):
    table[0].to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    fill_folder(
        str(tmp_path / "t.jsonl"),
        "y",
        tmp_path / "out",
        method="ridge",
        sample=300,
        ignore=["number"],
    )
    lines = (tmp_path / "out" / "part-00000-t.jsonl").read_text().splitlines()
    given = (tmp_path / "t.jsonl").read_text().splitlines()
    assert len(lines) == len(given)
    assert all(line.startswith(start[:-1]) for line, start in zip(lines, given, strict=True))
    assert json.loads(lines[0])["y_filled"] is not None


def test_classes_in_parts(files, tmp_path):
    for path in files.glob("*.parquet"):
        frame = pd.read_parquet(path)
        kinds = np.select([frame["y"] > 1, frame["y"] < -1], [1.0, 2.0], 3.0)
        frame.assign(y=np.where(frame["y"].isna(), np.nan, kinds)).to_parquet(path, index=False)
    settings = {**SETTINGS, "task": "classification", "probabilities": True}
    found = fill_folder(str(files), "y", tmp_path / "out", **settings)
    new = read(tmp_path / "out")
    assert set(new["y_filled"].dropna().astype(int)) <= {1, 2, 3}
    assert found.guarantee.wrong.of == found.counts.unlabelled
    del settings["probabilities"]
    memory = fill(
        pd.concat([pd.read_parquet(p) for p in sorted(files.glob("?.parquet"))]), "y", **settings
    )
    memory = memory.with_options(probabilities=True)
    same = [name for name in memory.new.columns if "probability" in name]
    assert np.array_equal(new[same].to_numpy(), memory.new[same].to_numpy(), equal_nan=True)


# ------------------------------------------------------------------------------------------------------ refusals


def test_files_that_do_not_fit_together(files, tmp_path):
    frame = pd.read_parquet(files / "1.parquet")
    frame.drop(columns="y").to_parquet(files / "1.parquet", index=False)
    with pytest.raises(ValueError, match=r"1\.parquet lacks the column 'y'"):
        fill_folder(str(files), "y", tmp_path / "out")
    frame.assign(u="text").to_parquet(files / "1.parquet", index=False)
    with pytest.raises(ValueError, match=r"Column 'u' holds double in .* and .*string in"):
        fill_folder(str(files), "y", tmp_path / "out")
    (files / "1.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"1\.parquet cannot be read"):
        fill_folder(str(files), "y", tmp_path / "out")


def test_numbers_of_other_sizes_fit_together(files, tmp_path):
    frame = pd.read_parquet(files / "1.parquet")
    frame.assign(u=frame["u"].astype("float32")).to_parquet(files / "1.parquet", index=False)
    found = open_parts(str(files), tmp_path / "out" / "work")
    assert str(found.schema.field("u").type) == "double"


def test_what_cannot_be_filled(files, tmp_path):
    with pytest.raises(ValueError, match="no column 'z'"):
        fill_folder(str(files), "z", tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        fill_folder(str(files / "none-*.parquet"), "y", tmp_path / "b")
    with pytest.raises(ValueError, match="guarantee 'row'"):
        fill_folder(str(files), "y", tmp_path / "c", guarantee="row")
    with pytest.raises(ValueError, match="200 MB"):
        fill_folder(str(files), "y", tmp_path / "d", memory=1000)
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(tmp_path / "full.parquet")
    with pytest.raises(ValueError, match="nothing to fill"):
        fill_folder(str(tmp_path / "full.parquet"), "y", tmp_path / "e")


def test_a_folder_of_something_else_stays(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letters.txt").write_text("dear")
    with pytest.raises(FileExistsError, match=r"other files, such as letters\.txt"):
        fill_folder(str(files), "y", tmp_path / "out")
    fill_folder(f"{files}/?.parquet", "y", tmp_path / "done", method="ridge", sample=300)
    with pytest.raises(FileExistsError, match="filled already"):
        fill_folder(f"{files}/?.parquet", "y", tmp_path / "done", method="ridge", sample=300)
    with pytest.raises(FileExistsError, match="other settings"):
        fill_folder(f"{files}/?.parquet", "y", tmp_path / "done", method="ridge", sample=301)


def test_a_full_disk_is_said(files, tmp_path, monkeypatch):
    def full(answering, piece):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, "_write", full)
    with pytest.raises(OSError, match="is full: make room"):
        fill_folder(f"{files}/?.parquet", "y", tmp_path / "out", method="ridge", sample=300)


def test_two_at_once(files, tmp_path):
    from transduce.core.files import locked

    (tmp_path / "out").mkdir()
    with (
        locked(tmp_path / "out" / ".lock", "taken"),
        pytest.raises(BlockingIOError, match="another process"),
    ):
        fill_folder(str(files), "y", tmp_path / "out")


# ---------------------------------------------------------------------------------------------------------- later rows


def test_saved_and_loaded(table, tmp_path):
    frame = table[0].drop(columns="number")
    later, _ = make(50, seed=9)
    save(tmp_path / "m.transduce", frame, "y", **SETTINGS)
    one = load(tmp_path / "m.transduce")
    other = fit_fill(frame, "y", **SETTINGS)
    assert one.new_columns(later).equals(other.new_columns(later))
    assert one.guarantee_of_later(50) == other.guarantee_of_later(50)
    assert one.guarantee_of_later(50).headline == "exact if later rows are like the labelled ones"
    assert one.compare_later(later).verdict == other.compare_later(later).verdict
    with zipfile.ZipFile(tmp_path / "m.transduce") as archive:
        assert sorted(archive.namelist()) == ["options.json", "table.parquet"]
    with pytest.raises(FileExistsError):
        save(tmp_path / "m.transduce", frame, "y", **SETTINGS)


def test_later_rows_are_compared_with_the_calibration_rows(table):
    """A shift puts the guarantee in doubt; of few rows it is said that it cannot be tested."""
    fitted = fit_fill(table[0].drop(columns="number"), "y", **SETTINGS)
    later, _ = make(60, seed=9)
    said = {}
    for name, rows in {
        "alike": later,
        "few": later[:3],
        "moved": later.assign(u=later["u"] + 3.0),
    }.items():
        found = fitted.guarantee_of_later(len(rows), compared=fitted.compare_later(rows))
        said[name] = str(found)
        assert found.in_doubt == (name == "moved")
    assert "No difference between" in said["alike"]
    assert "It cannot be tested whether" in said["few"]
    assert said["moved"].startswith(
        "in doubt, since labelled and later rows differ. If they did not:"
    )
    assert fitted.compare_later(later[:0]).verdict.p_value is None


def test_what_is_not_a_saved_file(tmp_path):
    (tmp_path / "m").write_bytes(b"hello")
    with pytest.raises(ValueError, match="is not a file that"):
        load(tmp_path / "m")


def test_recipe_for_batches(table):
    """What the docs have for Spark and Ray: the answers of batches are those of the whole."""
    frame = table[0].drop(columns="number")
    fitted = fit_fill(frame, "y", **SETTINGS)
    whole = frame.join(fitted.new_columns(frame))
    parts = pd.concat(
        [part.join(fitted.new_columns(part)) for part in (frame.iloc[:7], frame.iloc[7:])]
    )
    assert parts.equals(whole)


# ------------------------------------------------------------------------------------------------ found by a review


def test_decimal_commas_in_parts(tmp_path, table):
    """A comma that could part thousands is the decimal sign where semicolons part fields, as in memory."""
    frame = table[0][["u", "v", "y"]].copy()
    text = frame.map(lambda value: "" if pd.isna(value) else f"{value + 10:.3f}".replace(".", ","))
    text.to_csv(tmp_path / "t.csv", index=False, sep=";")
    fill_folder(str(tmp_path / "t.csv"), "y", tmp_path / "out", method="ridge", sample=300)
    back = pd.read_csv(tmp_path / "out" / "part-00000-t.csv", sep=";", dtype=str)
    assert back["y_filled"].str.replace(",", ".").astype(float).max() < 100


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"labels": Grouped("word")}, "labels=Grouped(...)"),
        ({"labels": Chance(within="word")}, "within"),
        ({"labels": Chance(sensitivity=2.0)}, "sensitivity"),
        ({"labels": Drawn("word", order="u")}, "labels=Drawn(...)"),
        ({"reject": 0.1}, "reject"),
        ({"device": "cpu"}, "device"),
    ],
)
def test_settings_that_need_all_rows(files, tmp_path, settings, named):
    with pytest.raises(ValueError, match=f"^{re.escape(named)} needs all rows in one fit"):
        fill_folder(str(files), "y", tmp_path / "out", method="ridge", **settings)


def test_rejected_rows_are_of_the_whole_table(table):
    frame = table[0].drop(columns="number")
    frame["y"] = np.where(frame["y"].isna(), None, np.where(frame["y"] > 0, "p", "q"))
    result = fill(frame, "y", **SETTINGS).with_options(reject=0.2)
    share = np.mean(result.answer.status == "rejected")
    assert 0.1 < share <= 0.2
    assert any("marked as rejected" in note for note in result.notes)


def test_an_empty_part(files, tmp_path):
    pd.read_parquet(files / "1.parquet").iloc[:0].to_parquet(files / "0a.parquet", index=False)
    found = fill_folder(str(files), "y", tmp_path / "out", method="ridge", sample=300)
    assert len(found.frame.parts) == 3
    assert len(read(tmp_path / "out")) == 1500


def test_marks_of_holes_in_later_rows(table):
    frame = table[0].drop(columns="number")
    fitted = fit_fill(frame, "y", missing=["-999"], **SETTINGS)
    row = frame.iloc[[0]].assign(u=-999.0, y=-999.0)
    same = frame.iloc[[0]].assign(u=np.nan, y=np.nan)
    assert fitted.new_columns(row).equals(fitted.new_columns(same))


def test_a_class_that_is_called_na(files, tmp_path):
    """In Parquet NA is a class, as it is in memory."""
    for path in files.glob("?.parquet"):
        frame = pd.read_parquet(path)
        kinds = np.where(frame["y"] > 0, "NA", "DE").astype(object)
        frame.assign(y=np.where(frame["y"].isna(), None, kinds)).to_parquet(path, index=False)
    fill_folder(f"{files}/?.parquet", "y", tmp_path / "out", method="ridge", sample=300)
    assert set(read(tmp_path / "out")["y_filled"].dropna()) == {"NA", "DE"}


@pytest.mark.parametrize("batch_rows", [40, pytest.param(100_000, marks=pytest.mark.slow)])
def test_truths_and_lists(tmp_path, table, monkeypatch, batch_rows):
    """Columns of truths with holes, of lists, and a target of truths."""
    monkeypatch.setattr(folders, "_batch_rows", lambda *args: batch_rows)
    frame = table[0].iloc[:600].drop(columns="number")
    flag = pd.Series(np.where(frame["u"] > 1, None, frame["v"] > 0), dtype=object)
    label = pd.Series(
        [None if pd.isna(value) else bool(value > 0) for value in frame["y"]], dtype=object
    )
    frame = frame.assign(flag=flag, pair=[[k, k] for k in range(600)], y=label)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    fill_folder(
        str(tmp_path / "t.parquet"),
        "y",
        tmp_path / "out",
        method="ridge",
        sample=150,
        ignore=["pair"],
    )
    memory = fill(frame, "y", method="ridge", sample=150, ignore=["pair"], guarantee="column")
    back = read(tmp_path / "out")
    assert back["y_filled"].astype(str).tolist() == memory.new["y_filled"].astype(str).tolist()


@pytest.mark.parametrize("named", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_stored_index_is_kept_and_is_no_feature(table, tmp_path, named):
    """An index that gives the target away changes nothing, and reading the result brings it back."""
    frame, y = table
    told = frame.set_index(pd.Index(y, name="code" if named else None))
    (tmp_path / "plain").mkdir()
    (tmp_path / "told").mkdir()
    for k in range(3):
        rows = slice(500 * k, 500 * (k + 1))
        frame.iloc[rows].to_parquet(tmp_path / "plain" / f"{k}.parquet", index=False)
        told.iloc[rows].to_parquet(tmp_path / "told" / f"{k}.parquet")
    fill_folder(str(tmp_path / "plain"), "y", tmp_path / "one", **SETTINGS)
    found = fill_folder(str(tmp_path / "told"), "y", tmp_path / "other", **SETTINGS)
    other = pd.concat(
        [pd.read_parquet(part) for part in sorted((tmp_path / "other").glob("part-*"))]
    )
    assert other.index.name == told.index.name
    assert np.array_equal(other.index, told.index)
    assert list(other.columns) == list(read(tmp_path / "one").columns)
    assert np.array_equal(columns(other), columns(read(tmp_path / "one")), equal_nan=True)
    assert "code" not in set(found.columns["name"])
    single = read_file(tmp_path / "told" / "0.parquet")
    assert len(single.index) == 1
    small = fill(single, "y", method="ridge")
    assert not set(single.index) & set(small.columns["name"])


def test_an_index_that_the_user_names_is_a_column(table, tmp_path):
    table[0].sample(frac=1, random_state=0).set_index("number").to_parquet(tmp_path / "0.parquet")
    found = fill_folder(str(tmp_path / "0.parquet"), "y", tmp_path / "out", id="number", **SETTINGS)
    kinds = found.columns.set_index("name")["kind"]
    assert kinds["number"] == "identifier"


@pytest.mark.parametrize("kind", ["parquet", "csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_folders_that_name_a_column(table, tmp_path, kind):
    """A column that stands in the names of folders alone is a feature, and is in the files that are written."""
    frame, y = table
    frame = frame.assign(word=frame["word"].replace({"a": "a b/c"}), y=np.round(frame["y"], 3))
    for word, rows in frame.groupby("word"):
        folder = tmp_path / "in" / f"word={quote(word, safe='')}" / "year=2024"
        folder.mkdir(parents=True)
        rows = rows.drop(columns="word")
        if kind == "parquet":
            rows.to_parquet(folder / "0.parquet", index=False)
        elif kind == "csv":
            rows.to_csv(folder / "0.csv", index=False)
        else:
            rows.to_json(folder / "0.jsonl", orient="records", lines=True)
    found = fill_folder(str(tmp_path / "in"), "y", tmp_path / "out", **SETTINGS)
    assert found.columns.set_index("name")["kind"][["word", "year"]].tolist() == [
        "category",
        "constant",
    ]
    readers = {
        "parquet": pd.read_parquet,
        "csv": pd.read_csv,
        "jsonl": lambda path: pd.read_json(path, lines=True),
    }
    parts = pd.concat([readers[kind](part) for part in sorted((tmp_path / "out").glob("part-*"))])
    parts = parts.sort_values("number", ignore_index=True)
    assert parts["word"].tolist() == frame["word"].tolist()
    assert parts["year"].astype(int).eq(2024).all()
    error = (parts["y_filled"].to_numpy() - y)[frame["y"].isna()]
    told = (frame["word"] == "a b/c").to_numpy()[frame["y"].isna()]
    assert abs(error[told].mean() - error[~told].mean()) < 0.7  # 2 without the column


def test_folders_that_name_different_columns_are_refused(table, tmp_path):
    for folder in ("word=a", "month=1"):
        (tmp_path / folder).mkdir()
        table[0].iloc[:200].to_parquet(tmp_path / folder / "0.parquet")
    with pytest.raises(ValueError, match="name different columns"):
        fill_folder(str(tmp_path), "y", tmp_path / "out", **SETTINGS)


def test_a_column_in_folders_and_files_is_that_of_the_files(table, tmp_path):
    for k in range(2):
        (tmp_path / "in" / f"word=x{k}").mkdir(parents=True)
        rows = table[0].iloc[750 * k : 750 * (k + 1)]
        rows.to_parquet(tmp_path / "in" / f"word=x{k}" / "0.parquet", index=False)
    fill_folder(f"{tmp_path}/in/*/*.parquet", "y", tmp_path / "out", **SETTINGS)
    assert read(tmp_path / "out")["word"].tolist() == table[0]["word"].tolist()


def test_missing_values_and_numbers_in_folders():
    files = tuple(
        Path(f"in/part={word}/0.parquet") for word in ("-3", "__HIVE_DEFAULT_PARTITION__", "20")
    )
    assert values_in_folders("in", files, typed=True) == {"part": [-3, None, 20]}
    assert values_in_folders("in/*/*.parquet", files, typed=False) == {"part": ["-3", None, "20"]}
    zeros = (Path("in/zip=01234/0.parquet"), Path("in/zip=99999/0.parquet"))
    assert values_in_folders("in", zeros, typed=True) == {"zip": ["01234", "99999"]}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_texts_are_written_as_a_fill_in_memory_writes_them(tmp_path, kind):
    """Every line begins as it was; quotes stand where a cell needs them; numbers have the digits of the labels."""
    frame, _ = make(600, seed=3)
    frame["word"] = frame["word"].replace({"a": 'a, "b"', "b": "two words"})
    frame["y"] = frame["y"].round(2)
    frame = frame.drop(columns="number").round(3)
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    fill_folder(str(path), "y", tmp_path / "out", method="ridge", sample=200)
    memory = fill(read_file(path), "y", method="ridge", sample=200)
    write_file(tmp_path / f"memory.{kind}", read_file(path), rounded(memory.new, "y", "regression"))
    part = next((tmp_path / "out").glob("part-*")).read_text().splitlines()
    whole, given = (p.read_text().splitlines() for p in (tmp_path / f"memory.{kind}", path))
    number = re.compile(r"-?\d+\.?\d*")
    for mine, other, own in zip(part, whole, given, strict=True):
        assert mine.startswith(own.removesuffix("}"))
        assert number.sub("0", mine) == number.sub("0", other)
        for values in (number.findall(line[len(own) - 1 :]) for line in (mine, other)):
            assert all(len(value.partition(".")[2]) <= 2 for value in values[:-1])
    labelled = [
        place for place, own in enumerate(frame["y"], start=kind == "csv") if not np.isnan(own)
    ]
    assert [part[place] for place in labelled] == [whole[place] for place in labelled]


def test_a_number_with_a_comma_and_classes_with_quotes(tmp_path):
    random = np.random.default_rng(0)
    u = random.normal(size=600).round(2)
    kinds = np.where(u + 0.3 * random.normal(size=600) > 0, 'say "yes"', "no; never")
    frame = pd.DataFrame({"u": [f"{value:g}".replace(".", ",") for value in u]})
    frame["kind"] = np.where(random.uniform(size=600) < 0.4, kinds, None)
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    fill_folder(str(tmp_path / "t.csv"), "kind", tmp_path / "out", method="ridge", sample=150)
    back = pd.read_csv(tmp_path / "out" / "part-00000-t.csv", sep=";", dtype=str)
    assert back["u"].tolist() == frame["u"].tolist()
    assert set(back["kind_filled"]) == set(kinds)
    text = (tmp_path / "out" / "part-00000-t.csv").read_text()
    assert '"say ""yes"""' in text
    assert '"answered"' not in text


def test_memory_is_shared_by_all_processes(files, tmp_path):
    """Batches are half as long if twice as many processes read at the same time, on whatever runner."""
    parts = open_parts(str(files), tmp_path / "work" / "x")
    rows = [folders._batch_rows(parts, 3e8, LocalRunner(n)) for n in (2, 4, 8)]
    assert rows[0] > 2000
    assert rows == [rows[0], rows[0] // 2, rows[0] // 4]


def test_no_batch_changes_a_bit_of_a_blend():
    """A process with inducing points and compiled trees: rows one by one, in batches of any size, or all at once."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5200, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * random.normal(size=len(X))
    members = {
        "process": TransductiveGPRegressor(matching=0, n_restarts=0, max_searched=60, max_exact=60),
        "trees": BoostedRegressor(n_estimators=20),
    }
    model = TransductiveBlend(members, weights="equal", random_state=0).fit(X[:120], y[:120])
    assert isinstance(model.estimators_["process"]._fitted.posterior, InducedPosterior)
    fitted = FittedEstimator(model, None, np.arange(120), 120)
    outside = calibrate_outside(fitted, X[:120], y[:120], X[120:160], y[120:160])
    rows = X[160:]
    whole = outside.answer(rows, 0.9)
    for size in (1, 7, 4608, 5000):
        for start in (0, len(rows) - size):
            part = outside.answer(rows[start : start + size], 0.9)
            assert part.values.tobytes() == whole.values[start : start + size].tobytes()
            assert (
                part.regions.hull().tobytes()
                == whole.regions.hull()[start : start + size].tobytes()
            )


@pytest.mark.parametrize("labels", [pytest.param("text", marks=pytest.mark.slow), "whole numbers"])
def test_a_class_whose_labels_are_all_held_out(labels):
    """The fit may see one class only; then that is the answer, and both groups keep their guarantee."""
    random = np.random.default_rng(0)
    names = ["a", "b"] if labels == "text" else [0, 1]
    frame = pd.DataFrame(random.normal(size=(700, 2)), columns=["u", "v"])
    frame["kind"] = pd.Series([names[0]] * 200 + [None] * 500, dtype=object)
    frame.loc[0, "kind"] = names[1]
    seen = set()
    for seed in range(8):
        settings = {
            "method": "ridge",
            "guarantee": "column",
            "task": "classification",
            "random_state": seed,
        }
        found = fill(frame, "kind", sample=200, **settings)
        seen.add(len(set(found.later_rows.labels)))
        new = found.later_rows.new_columns(frame)
        assert set(new["kind_status"]) == {"given", "answered"}
        assert found.guarantee.outside.of == 500
        if len(set(found.later_rows.labels)) == 1:
            assert (new["kind_filled"].iloc[1:].astype(str) == str(names[0])).all()
            assert new["kind_set"].dropna().str.contains(str(names[0])).all()
            alone = found
        if seen == {1, 2}:
            break
    assert seen == {1, 2}
    assert alone.report()
