"""Every command takes fields of objects as columns, and leaves the objects as they are."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from transduce import audit, fill
from transduce.app.cli.app import app
from transduce.app.labelling import Session, SessionSettings

N = 120
PREDICTIONS = ("--predictions", "out.label")


def make_rows(number: int = N, seed: int = 0) -> list[dict]:
    """Rows as tools of evaluation write them: objects in objects, some fields missing."""
    random = np.random.default_rng(seed)
    rows = []
    for place in range(number):
        truth = str(random.choice(["ja", "nein"]))
        label = truth if random.random() < 0.85 else "ja"
        shares = {"ja": 0.8, "nein": 0.2} if label == "ja" else {"ja": 0.1, "nein": 0.9}
        is_checked = place % 3 == 0
        rows.append(
            {
                "sample": {"id": f"r{place}", "shown": place < 9},
                "in": {"size": round(float(random.normal() + (truth == "ja")), 3), "lang": "de"},
                "out": {"label": label, "shares": shares, "log": {"tokens": place}},
                "review": {"gold": truth, "by": "Ada"} if is_checked else None,
            }
        )
        rows[-1]["in"]["lang"] = str(random.choice(["de", "en"]))
        if place % 5 == 1:
            rows[-1]["in"]["size"] = None
    return rows


def flat_frame(rows: list[dict]) -> pd.DataFrame:
    """Return the same rows with a column for each field, by pandas itself."""
    return pd.json_normalize([row | {"review": row["review"] or {}} for row in rows])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "judged.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in make_rows()))
    return path


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.output


def check_objects_are_kept(table, out):
    for given, written in zip(
        table.read_text().splitlines(), out.read_text().splitlines(), strict=True
    ):
        assert written.startswith(given[:-1])


QUICK = ("--method", "ridge", "--quiet")


class TestCommands:
    def test_fill(self, table, tmp_path):
        out = tmp_path / "filled.jsonl"
        fit = tmp_path / "fit.transduce"
        run(
            *("fill", table, "--target", "review.gold", *PREDICTIONS, "--id", "sample.id"),
            *("--ignore", "out.shares", "--seen", "sample.shown", "--out", out, *QUICK),
        )
        check_objects_are_kept(table, out)
        filled = [json.loads(line) for line in out.read_text().splitlines()]
        assert {row["review.gold_status"] for row in filled} >= {"given", "answered"}
        run(
            "fill", table, "--target", "review.gold", "--save", fit, "--out", out, "--force", *QUICK
        )
        later = tmp_path / "later.jsonl"
        later.write_text(json.dumps({"in": {"size": 1.0}, "out": {}, "sample": {"id": "z"}}) + "\n")
        run("answer", fit, later, "--out", tmp_path / "answered.jsonl", "--quiet")
        check_objects_are_kept(later, tmp_path / "answered.jsonl")

    def test_fill_in_parts(self, table, tmp_path):
        out = tmp_path / "parts"
        run(
            *("fill", table, "--target", "review.gold", *PREDICTIONS, "--id", "sample.id"),
            *("--out", f"{out}/", *QUICK),
        )
        (part,) = out.glob("*.jsonl")
        check_objects_are_kept(table, part)

    def test_estimate(self, table, tmp_path):
        run(
            *("estimate", table, "--target", "review.gold", *PREDICTIONS, "--by", "in.lang"),
            *("--ignore", "sample", "--out", tmp_path / "shares.csv", *QUICK),
        )
        shares = pd.read_csv(tmp_path / "shares.csv")
        assert set(shares["group"]) == {"de", "en"}
        assert (shares["kind"] == "exact").all()

    def test_compare(self, table):
        words = ("--ignore", "review", "--ignore", "out", "--folds", 2)
        assert "ridge" in run("compare", table, "--target", "in.size", *words)

    def test_draw_and_audit(self, table, tmp_path):
        drawn = tmp_path / "drawn.jsonl"
        sheet = tmp_path / "sheet.csv"
        run(
            *("draw", table, "--target", "review.gold", "--by", "out.label", "--number", 30),
            *("--list", sheet, "--out", drawn),
        )
        check_objects_are_kept(table, drawn)
        listed = pd.read_csv(sheet)
        assert "out.label" not in listed.columns
        assert "in.size" in listed.columns
        listed.assign(**{"review.gold": "ja"}).to_csv(sheet, index=False)
        report = tmp_path / "audit.json"
        run(
            *("audit", drawn, "--target", "review.gold", *PREDICTIONS, "--checks", sheet),
            *("--by", "in.lang", "--json", report),
        )
        audited = json.loads(report.read_text())
        assert audited["wrong"]["n_checked"] == N // 3 + 30
        assert set(audited["by"]["in.lang"]) == {"de", "en"}

    @pytest.mark.parametrize("columns", [["out.label"], ["out.shares.ja", "out.shares.nein"]])
    def test_several_columns_of_probabilities(self, table, tmp_path, columns):
        words = [word for name in columns for word in ("--predictions", name)]
        run("audit", table, "--target", "review.gold", *words)
        run("draw", table, "--target", "review.gold", *words, "--number", 9)
        run(
            *("fill", table, "--target", "review.gold", *words, "--out", tmp_path / "out.jsonl"),
            *("--method", "ridge", "--quiet"),
        )


class TestPython:
    @pytest.mark.parametrize("ending", ["jsonl", "json", "parquet", "sqlite"])
    def test_every_format_is_read_like_a_flat_table(self, tmp_path, ending):
        rows = make_rows()
        path = tmp_path / f"judged.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
        elif ending == "json":
            path.write_text(json.dumps(rows))
        elif ending == "jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        else:
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE judged (sample, input, out, review)")
                cells = [[row[name] and json.dumps(row[name]) for name in row] for row in rows]
                database.executemany("INSERT INTO judged VALUES (?, ?, ?, ?)", cells)
            database.close()
        result = audit(path, "review.gold", "out.label")
        expected = audit(flat_frame(rows), "review.gold", "out.label")
        assert result.wrong.equals(expected.wrong)
        assert result.suspect_rows.equals(expected.suspect_rows)

    def test_frames_keep_their_objects(self):
        rows = make_rows()
        options = {"predictions": "out.label", "method": "ridge", "ignore": ["sample"]}
        frame = pd.DataFrame(rows)
        result = fill(frame, "review.gold", **options)
        assert result.frame.columns[:4].tolist() == ["sample", "in", "out", "review"]
        flat = flat_frame(rows)
        options["ignore"] = ["sample.id", "sample.shown"]
        expected = fill(flat, "review.gold", **options)
        assert result.new.equals(expected.new)
        shares = result.estimate("share of ja", by="in.lang")
        assert shares.equals(expected.estimate("share of ja", by="in.lang"))

    def test_sessions(self, table):
        for given in (table, pd.DataFrame(make_rows())):
            session = Session(
                given,
                "gold",
                predictions="out.label",
                show=["in"],
                journal=None,
                settings=SessionSettings(wait=False, seed=0, ignore=["sample"]),
            )
            assert session.table.show == ["in.size", "in.lang"]
            assert session.state.predictions.column == "out.label"
            row = session.propose("audit").row
            session.answer("ja", row=row)
            assert session.state.labels[row] == "ja"

    def test_a_frame_of_dask(self):
        dask = pytest.importorskip("dask")
        dd = pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame(make_rows(300))
        with dask.config.set({"dataframe.convert-string": False}):  # which makes texts of objects
            table = dd.from_pandas(frame, npartitions=2)
        result = fill(table, "review.gold", predictions="out.label", method="ridge")
        assert len(result.frame.compute()) == 300

    def test_what_names_an_object_is_refused_with_its_fields(self, table):
        with pytest.raises(ValueError, match=r"'out' holds objects.* 'out\.label'"):
            fill(table, "review.gold", predictions="out")
        with pytest.raises(ValueError, match=r"no column 'out\.lable'.*'out\.label'"):
            fill(table, "review.gold", predictions="out.lable")
