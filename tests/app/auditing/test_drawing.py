"""`transduce draw --by`: rows drawn from each predicted class, a sheet to fill in, and back."""

from __future__ import annotations

import json
import shlex
import stat

import numpy as np
import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce import audit
from transduce.app.auditing.drawing import StrataRequest, draw_by_strata
from transduce.app.auditing.moved_cells import are_alike
from transduce.app.cli.app import app
from transduce.app.tables.files import read


@pytest.fixture
def table(tmp_path):
    """A table in a file, labelled by a model, with an empty column for a person."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "text": [f"Satz {row}" for row in range(300)],
            "llm": np.where(generator.random(300) < 0.1, "ja", "nein"),
            "doubt": generator.random(300).round(3),
            "gold": None,
        }
    )
    path = tmp_path / "judged.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_the_draw_is_written_down_and_read_back(table, tmp_path):
    sheet = tmp_path / "list.xlsx"
    done = run(
        *("draw", table, "--target", "gold", "--by", "llm", "--each", 20, "--seed", 3),
        *("--list", sheet),
    )
    assert done.exit_code == 0, done.output
    drawn = pd.read_csv(tmp_path / "judged-draw.csv")
    assert drawn["gold_random"].sum() == 40
    assert drawn[drawn["gold_random"]].groupby("llm").size().tolist() == [20, 20]
    sizes = drawn.groupby("llm").size()
    expected = 20 / sizes[drawn["llm"]].to_numpy()
    assert drawn["gold_random_probability"].to_numpy() == pytest.approx(expected)

    book = openpyxl.load_workbook(sheet)
    names = [cell.value for cell in book.active[1]]
    assert names == ["row_number", "text", "doubt", "gold"]  # the prediction is hidden
    assert book.active.data_validations.dataValidation[0].formula1 == '"ja,nein"'
    for row in range(2, 42):
        place = book.active.cell(row, 1).value - 1
        assert book.active.cell(row, 2).value == f"Satz {place}"
        book.active.cell(row, 4).value = "nein"
    book.save(sheet)

    out = tmp_path / "audit.json"
    done = run(
        *("audit", tmp_path / "judged-draw.csv", "--target", "gold", "--predictions", "llm"),
        *("--checks", sheet, "--json", out),
    )
    assert done.exit_code == 0, done.output
    content = json.loads(out.read_text())
    assert content["wrong"]["n_checked"] == 40
    assert content["wrong"]["n_wrong"] == 20
    assert content["by_prediction"]["nein"]["n_wrong"] == 0


@pytest.mark.parametrize("by", [("--by", "llm"), ("--predictions", "llm")])
def test_a_table_that_holds_predictions_only_gets_an_empty_column(table, tmp_path, by):
    frame = pd.read_csv(table).drop(columns="gold")
    frame.to_csv(table, index=False)
    sheet = tmp_path / "list.csv"
    done = run("draw", table, "--target", "gold", *by, "--number", 30, "--list", sheet)
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    assert "no column 'gold': an empty one was added" in words
    assert "--predictions llm --checks" in words
    drawn = tmp_path / "judged-draw.csv"
    empty = pd.read_csv(drawn)
    assert empty["gold"].isna().all()
    assert (empty["gold_random_probability"] > 0.0).all()
    listed = pd.read_csv(sheet)
    assert list(listed.columns) == ["row_number", "text", "doubt", "gold"]
    audited = ("audit", drawn, "--target", "gold", "--predictions", "llm", "--suspects", 0)
    assert "--checks" in run(*audited).output  # nothing was checked yet
    listed["gold"] = frame["llm"].to_numpy()[listed["row_number"] - 1]
    listed.to_csv(sheet, index=False)
    done = run(*audited, "--checks", sheet)
    assert "0 of the 30 checked predictions" in done.output, done.output


def test_a_name_that_differs_in_capitals_is_not_a_new_column(table):
    done = run("draw", table, "--target", "Gold", "--by", "llm")
    assert done.exit_code == 1
    assert "Did you mean 'gold'?" in done.output


def test_predictions_inside_objects_are_hidden_and_labels_there_are_kept(tmp_path):
    rows = [
        {
            "input": {"text": f"Satz {row}"},
            "output": {"label": "ja" if row % 5 == 0 else "nein", "tokens": row},
            "review": {"gold": "nein" if row < 20 else None},
        }
        for row in range(200)
    ]
    table = tmp_path / "judged.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    sheet = tmp_path / "list.csv"
    done = run(
        *("draw", table, "--target", "review.gold", "--by", "output.label", "--number", 40),
        *("--list", sheet),
    )
    assert done.exit_code == 0, done.output
    listed = pd.read_csv(sheet)
    assert list(listed.columns) == ["row_number", "input.text", "output.tokens", "review.gold"]
    assert listed["row_number"].min() > 20
    listed["review.gold"] = "nein"
    listed.to_csv(sheet, index=False)
    result = audit(
        str(tmp_path / "judged-draw.jsonl"),
        *("review.gold", "output.label"),
        checks=str(sheet),
        suspects=0,
    )
    n_drawn_wrong = int((listed["output.tokens"] % 5 == 0).sum())
    assert result.wrong["n_checked"] == 60
    assert result.wrong["n_wrong"] == n_drawn_wrong + 4


def drawn_and_listed(folder):
    """A table of numbers of which rows were drawn, and the list with their true values."""
    random = np.random.default_rng(4)
    table = pd.DataFrame(
        {"case": [f"K{row}" for row in range(80)], "age": random.integers(20, 90, 80)}
    )
    table["pred"] = random.normal(7, 1, 80).round(2)
    table.to_csv(folder / "t.csv", index=False)
    words = ("draw", folder / "t.csv", "--target", "gold", "--predictions", "pred")
    run(*words, "--number", 20, "--seed", 1, "--list", folder / "list.csv")
    listed = pd.read_csv(folder / "list.csv")
    listed["gold"] = table["pred"].to_numpy()[listed["row_number"] - 1] + 0.1
    return folder / "t-draw.csv", listed


def test_a_list_of_which_one_column_was_sorted_by_itself_is_refused(tmp_path):
    table, listed = drawn_and_listed(tmp_path)
    sorted_whole = listed.sample(frac=1, random_state=1)
    audit(str(table), "gold", "pred", checks=sorted_whole, tolerance=1, suspects=0)
    listed["row_number"] = np.roll(listed["row_number"], 1)
    with pytest.raises(ValueError, match=r"\d+ checks have the cells of another row of the table"):
        audit(str(table), "gold", "pred", checks=listed, tolerance=1, suspects=0)
    audit(str(table), "gold", "pred", checks=listed, id="case", tolerance=1, suspects=0)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_list_is_brought_back_to_the_table_that_is_filled(tmp_path, ending):
    random = np.random.default_rng(5)
    x = random.normal(size=60).round(3)
    labels = np.where(np.arange(60) < 30, (3 * x + 20).round(2), np.nan)
    pd.DataFrame({"case": range(60), "x": x, "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    sheet = tmp_path / f"list.{ending}"
    words = ("--target", "y", "--number", 12, "--seed", 1, "--list", sheet)
    done = run("draw", tmp_path / "t.csv", *words)
    assert f"--random-labels y_random --checks {sheet}" in done.output
    listed = pd.read_csv(sheet) if ending == "csv" else read(sheet).frame
    drawn = listed["row_number"].to_numpy() - 1
    listed["y"] = (3 * x[drawn] + 20).round(2)
    back = tmp_path / "back.csv"
    listed.sample(frac=1, random_state=3).to_csv(back, index=False, sep=";", decimal=",")
    back.chmod(0o600)
    words = ("--target", "y", "--random-labels", "y_random", "--method", "ridge")
    report = tmp_path / "r.html"
    done = run("fill", tmp_path / "t-draw.csv", *words, "--checks", back, "--report", report)
    assert "12 checks matched by 'row_number'" in done.output, done.output
    assert "Guarantee, exact:" in done.output
    filled = pd.read_csv(tmp_path / "t-draw-filled.csv")
    assert (filled["y_status"] == "given").sum() == 42
    for path in (tmp_path / "t-draw-filled.csv", report):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert filled["y_filled"].to_numpy()[drawn] == pytest.approx((3 * x[drawn] + 20).round(2))
    listed["row_number"] = np.roll(listed["row_number"], 1)
    listed.to_csv(back, index=False)
    done = run("fill", tmp_path / "t-draw.csv", *words, "--checks", back, "--force")
    assert done.exit_code == 1
    assert "checks have the cells of another row of the table" in done.output


@pytest.mark.parametrize("slip", [70.0, 0.0007, -7.0])
def test_a_check_far_from_all_others_is_noted(tmp_path, slip):
    table, listed = drawn_and_listed(tmp_path)
    plain = audit(str(table), "gold", "pred", checks=listed, tolerance=1, suspects=0)
    assert not any("far from all others" in note for note in plain.notes)
    listed.loc[3, "gold"] = slip
    row = listed.loc[3, "row_number"]
    notes = audit(str(table), "gold", "pred", checks=listed, tolerance=1, suspects=0).notes
    assert any(
        f"Look whether the check in row {row} is right: {slip:g} is far" in note for note in notes
    )


def test_equal_numbers_are_equal(table, tmp_path):
    words = ("draw", table, "--target", "gold", "--by", "llm", "--number", 40)
    assert run(*words, "--allocation", "equal").exit_code == 0
    drawn = pd.read_csv(tmp_path / "judged-draw.csv")
    assert drawn[drawn["gold_random"]].groupby("llm").size().tolist() == [20, 20]


def objects_with_reasons(folder):
    """A table of objects in which more than one field gives the prediction away."""
    rows = [
        {"text": f"Satz {row}", "output": {"label": "ja", "why": "says ja"}} for row in range(60)
    ]
    path = folder / "judged.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("draw", [("--by", "output.label"), ()])
def test_an_object_is_hidden_with_all_of_its_fields(tmp_path, draw):
    table = objects_with_reasons(tmp_path)
    sheet = tmp_path / "list.xlsx"
    done = run(
        *("draw", table, "--target", "gold", *draw, "--predictions", "output"),
        *("--number", 10, "--list", sheet),
    )
    assert done.exit_code == 0, done.output
    names = [cell.value for cell in openpyxl.load_workbook(sheet).active[1]]
    assert names == ["row_number", "text", "gold"]


@pytest.mark.parametrize("draw", [("--by", "llm"), ("--uncertainty", "doubt"), ()])
def test_a_column_to_hide_that_is_not_there_is_told(table, tmp_path, draw):
    sheet = tmp_path / "list.csv"
    words = ("draw", table, "--target", "gold", *draw, "--number", 10, "--list", sheet)
    done = run(*words, "--predictions", "gpt")
    assert done.exit_code == 1
    assert "no column 'gpt'" in done.output
    assert not sheet.exists()


def test_rows_that_were_not_brought_back_count_as_wrong(table, tmp_path):
    run("draw", table, "--target", "gold", "--by", "llm", "--number", 40, "--seed", 3)
    drawn = pd.read_csv(tmp_path / "judged-draw.csv")
    whole = drawn.assign(gold=drawn["llm"].where(drawn["gold_random"]))
    rows = np.flatnonzero(drawn["gold_random"])
    part = whole.copy()
    part.loc[rows[:5], "gold"] = np.nan
    of_part = audit(part, "gold", "llm")
    assert of_part.wrong["at_most"] > audit(whole, "gold", "llm").wrong["at_most"]
    assert "5 drawn rows without a label are taken to be wrong" in of_part.statement


def test_uncertain_rows_are_drawn_more_often(table, tmp_path):
    done = run(
        *("draw", table, "--target", "gold", "--uncertainty", "doubt"),
        *("--number", 60, "--seed", 1, "--list", tmp_path / "list.csv"),
    )
    assert done.exit_code == 0, done.output
    drawn = pd.read_csv(tmp_path / "judged-draw.csv")
    bands = drawn.groupby("gold_random_stratum")["gold_random_probability"].mean()
    order = drawn.groupby("gold_random_stratum")["doubt"].mean().sort_values().index
    assert bands[order].is_monotonic_increasing
    assert bands.min() > 0.0
    assert len(pd.read_csv(tmp_path / "list.csv")) == 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "text"), "at most 200"),
        (("--by", "llm", "--uncertainty", "doubt"), "name one of them"),
        (("--uncertainty", "text"), "must say how uncertain"),
        (("--by", "llm", "--number", "301"), "cannot be drawn"),
        (("--by", "gpt"), "gpt"),
        (("--each", "5"), "name one of them"),
    ],
)
def test_refused_in_a_sentence_and_nothing_is_written(table, tmp_path, words, message):
    done = run("draw", table, "--target", "gold", *words)
    assert done.exit_code in (1, 2)
    assert message in " ".join(done.output.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["judged.csv"]


def test_columns_of_probabilities_are_drawn_from_by_their_likeliest_class(tmp_path):
    generator = np.random.default_rng(5)
    share = generator.random(300) ** 3
    table = pd.DataFrame({"p_spam": share, "p_ham": 1.0 - share, "gold": None})
    path = tmp_path / "judged.csv"
    table.to_csv(path, index=False)
    words = ["draw", str(path), "--target", "gold", "--by", "p_spam", "--by", "p_ham"]
    words += ["--each", "9", "--seed", "1", "--list", str(tmp_path / "list.csv")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    drawn = pd.read_csv(tmp_path / "judged-draw.csv").query("gold_random")
    assert drawn["gold_random_stratum"].value_counts().to_dict() == {"ham": 9, "spam": 9}
    assert np.all((drawn["p_spam"] > 0.5) == (drawn["gold_random_stratum"] == "spam"))
    assert not {"p_spam", "p_ham"} & set(pd.read_csv(tmp_path / "list.csv").columns)


def test_rare_classes_are_drawn_together_if_there_are_many():
    """Every row can be drawn, and the audit reads the draw without being told."""
    predicted = np.repeat([f"class {i}" for i in range(30)], 3000 // (1 + np.arange(30)))
    frame = pd.DataFrame({"llm": predicted, "gold": None})
    everywhere = np.ones(len(frame), dtype=bool)
    request = StrataRequest(number=50, seed=0, by=("llm",))
    drawn = draw_by_strata(frame, "gold", everywhere, request)
    columns = drawn.columns
    assert len(drawn.rows) == 50
    assert (columns["gold_random_probability"] > 0).all()
    assert "rare classes" in drawn.statement
    checked = frame.assign(gold=frame["llm"].where(columns["gold_random"]), **columns)
    result = audit(checked, "gold", "llm")
    alone = audit(checked[["llm", "gold"]], "gold", "llm")
    assert int(result.wrong["at_most"]) < 1.3 * int(alone.wrong["at_most"])
    each = StrataRequest(number=50, seed=0, by=("llm",), each=2)
    strata = draw_by_strata(frame, "gold", everywhere, each).columns["gold_random_stratum"]
    assert strata.nunique() == 30


def test_a_list_of_a_table_with_dates_is_brought_back(tmp_path):
    days = pd.date_range("2024-01-30", periods=60)
    labels = [1.5, 2.5] * 10 + [None] * 40
    pd.DataFrame({"day": days, "y": labels}).to_excel(tmp_path / "t.xlsx", index=False)
    sheet = tmp_path / "list.csv"
    words = ("--target", "y", "--number", 12, "--seed", 1, "--list", sheet)
    assert run("draw", tmp_path / "t.xlsx", *words).exit_code == 0
    pd.read_csv(sheet).assign(y=2.0).to_csv(sheet, index=False)
    words = ("--target", "y", "--method", "ridge", "--checks", sheet)
    done = run("fill", tmp_path / "t-draw.xlsx", *words)
    assert "12 checks matched by 'row_number'" in done.output, done.output


def test_a_list_without_any_of_the_targets_is_refused(tmp_path):
    frame = pd.DataFrame({"x": range(40), "y": [1.0, 2.0] * 10 + [None] * 20})
    frame.assign(z=frame["y"]).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"row_number": [30], "w": [1.0]}).to_csv(tmp_path / "list.csv", index=False)
    words = ("--target", "y", "--target", "z", "--checks", tmp_path / "list.csv")
    done = run("fill", tmp_path / "t.csv", *words)
    assert done.exit_code == 2
    assert "none of the columns" in " ".join(done.output.split())


def test_the_command_that_follows_a_draw_quotes_names(tmp_path):
    frame = pd.DataFrame({"x": range(40), "the price": [1.0, 2.0] * 10 + [None] * 20})
    frame.to_csv(tmp_path / "my t.csv", index=False)
    words = ("draw", tmp_path / "my t.csv", "--target", "the price", "--number", 5)
    done = run(*words, "--out", tmp_path / "o.csv", "--list", tmp_path / "to label.csv")
    assert "--target 'the price' --random-labels 'the price_random'" in done.output
    assert f"--checks '{tmp_path / 'to label.csv'}'" in done.output
    done = run(*words, "--out", tmp_path / "p.csv", "--predictions", "x", "--seed", 1)
    assert "--target 'the price' --predictions x" in done.output


@pytest.mark.parametrize(
    ("ending", "out_ending", "repeated"),
    [
        ("csv", "csv", ["--header 3", "--rows 4:63"]),
        ("xlsx", "xlsx", ["--sheet 'data two'", "--header 3"]),
        ("xlsx", "csv", []),
    ],
)
@pytest.mark.parametrize("audited", [False, True])
def test_the_command_that_follows_a_draw_reads_the_table_as_it_was_read(
    tmp_path, ending, out_ending, repeated, audited
):
    random = np.random.default_rng(3)
    x = random.normal(size=60).round(3)
    frame = pd.DataFrame({"x": x, "p": (2 * x + 7).round(2), "y": (2 * x + 7).round(1)})
    frame["y"] = frame["y"].astype(object)
    frame.loc[24:, "y"] = "n.d."
    table = tmp_path / f"t.{ending}"
    reading = ["--header", "3", "--missing", "n.d.", "--missing", "lost"]
    if ending == "csv":
        reading += ["--rows", "4:63"]
        table.write_text(f"Title,of,it\n1,2,3\n{frame.to_csv(index=False)}end,1,2\n")
    else:
        reading += ["--sheet", "data two"]
        with pd.ExcelWriter(table) as book:
            pd.DataFrame({"a": [1, 2]}).to_excel(book, sheet_name="cover", index=False)
            frame.to_excel(book, sheet_name="data two", index=False, startrow=2)
    sheet = tmp_path / "list.csv"
    words = ("--target", "y", "--number", 12, "--list", sheet)
    if audited:
        words = (*words, "--predictions", "p")
    out = tmp_path / f"drawn.{out_ending}"
    done = run("draw", table, *words, *reading, "--out", out)
    assert done.exit_code == 0, done.output
    command = done.output.split("Then: transduce ")[1].strip()
    assert "--missing 'n.d.' --missing lost" in command
    for name in ("--sheet", "--header", "--rows"):
        assert (name in command) == any(words.startswith(name) for words in repeated)
    for option in repeated:
        assert option in command
    listed = pd.read_csv(sheet)
    listed["y"] = frame["p"].to_numpy()[listed["row_number"] - 1]
    listed.to_csv(sheet, index=False)
    further = ["--tolerance", 1] if audited else ["--method", "ridge"]
    done = run(*shlex.split(command), *further)
    assert done.exit_code == 0, done.output
    assert "12 checks matched by 'row_number'" in " ".join(done.output.split())


def test_a_copy_of_a_table_without_names_has_them(tmp_path):
    pd.DataFrame({"x": range(40), "y": 0.5}).to_csv(tmp_path / "t.csv", index=False, header=False)
    words = ("draw", tmp_path / "t.csv", "--target", "gold", "--header", 0, "--number", 5)
    done = run(*words, "--predictions", "column 2")
    assert done.exit_code == 0, done.output
    assert "--header" not in done.output.split("Then:")[1]


@pytest.fixture
def notes(tmp_path):
    """A table of notes of which sixty rows were drawn, and their list with true labels."""
    random = np.random.default_rng(8)
    n = 400
    table = pd.DataFrame(
        {
            "note_id": [f"N{100000 + row}" for row in random.permutation(n)],
            "site": random.choice(["north", "south"], n),
            "words": random.integers(10, 60, n),
            "weight": random.normal(70, 9, n).round(4),
            "seen": pd.date_range("2023-01-05", periods=n, freq="31h").astype(str),
            "score": random.normal(size=n).round(3),
            "llm": random.choice(["yes", "no"], n),
        }
    )
    table.to_csv(tmp_path / "notes.csv", index=False)
    words = ("--target", "gold", "--predictions", "llm", "--number", 60, "--seed", 1)
    paths = ("--list", tmp_path / "list.csv", "--out", tmp_path / "draw.csv")
    done = run("draw", tmp_path / "notes.csv", *words, *paths)
    assert done.exit_code == 0, done.output
    listed = pd.read_csv(tmp_path / "list.csv")
    listed["gold"] = table["llm"].to_numpy()[listed["row_number"] - 1]
    return tmp_path / "draw.csv", listed


def bring_back(draw, listed, verb):
    """Bring a list back with one of the commands that take it."""
    sheet = draw.parent / "back.csv"
    listed.to_csv(sheet, index=False)
    words = {
        "audit": ("--predictions", "llm", "--suspects", 0),
        "fill": ("--method", "spectral-graph", "--force"),
        "estimate": ("--what", "share of yes", "--method", "spectral-graph"),
    }[verb]
    done = run(verb, draw, "--target", "gold", "--checks", sheet, *words)
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("verb", ["audit", "fill", "estimate"])
@pytest.mark.parametrize("column", ["note_id", "site", "words", "weight", "seen", "score"])
def test_a_column_of_a_list_that_was_sorted_by_itself_is_named(notes, verb, column):
    draw, listed = notes
    ordered = listed[column].sort_values(ascending=False).to_numpy()
    first = int(listed["row_number"][ordered != listed[column].to_numpy()].min())
    exit_code, said = bring_back(draw, listed.assign(**{column: ordered}), verb)
    assert exit_code == 1, said
    assert f"Column '{column}' of the list contradicts the table in" in said
    assert f"first in row {first}:" in said


@pytest.mark.parametrize("verb", ["audit", "estimate"])
def test_a_list_that_a_spreadsheet_rewrote_is_taken(notes, verb):
    draw, listed = notes
    listed["seen"] = pd.to_datetime(listed["seen"]).dt.strftime("%d.%m.%Y %H:%M")
    listed["words"] = listed["words"].map("{:.1f}".format)
    listed["weight"] = listed["weight"].map("{:.2f}".format)
    listed["site"] = listed["site"].str.upper() + " "
    listed["score"] = None
    exit_code, said = bring_back(draw, listed.sample(frac=1, random_state=3), verb)
    assert exit_code == 0, said
    assert "of the list" not in said


def test_a_few_cells_of_a_list_that_were_corrected_are_noted_by_row(notes):
    draw, listed = notes
    listed.loc[[4, 9], "words"] = 99
    exit_code, said = bring_back(draw, listed, "audit")
    assert exit_code == 0, said
    rows = sorted(listed["row_number"][[4, 9]])
    assert f"Column 'words' of the list differs from the table in rows {rows[0]} and" in said


def test_a_column_that_was_changed_on_purpose_is_left_out_of_the_list(notes):
    draw, listed = notes
    listed["site"] = "judged"
    exit_code, said = bring_back(draw, listed, "audit")
    assert exit_code == 1
    assert "leave this column out of the list" in said
    assert bring_back(draw, listed.drop(columns="site"), "audit")[0] == 0


def test_a_list_may_fill_other_gaps_of_the_table(notes):
    draw, listed = notes
    table = pd.read_csv(draw).assign(dose="n.d.", comment=None)
    table.to_csv(draw, index=False)
    listed = listed.assign(dose=listed["weight"], comment="clear")
    exit_code, said = bring_back(draw, listed, "audit")
    assert exit_code == 0, said
    assert "of the list" not in said


@pytest.mark.parametrize("verb", ["audit", "estimate"])
def test_a_check_replaces_no_mark_of_an_empty_cell(notes, verb):
    draw, listed = notes
    table = pd.read_csv(draw)
    table["gold"] = "n.d."
    table.to_csv(draw, index=False)
    sheet = draw.parent / "back.csv"
    listed.to_csv(sheet, index=False)
    words = {"audit": ("--predictions", "llm"), "estimate": ("--method", "spectral-graph")}[verb]
    paths = ("--checks", sheet, "--missing", "n.d.")
    done = run(verb, draw, "--target", "gold", *words, *paths)
    assert done.exit_code == 0, done.output
    assert "60 checks matched" in " ".join(done.output.split())
    assert "differed from what" not in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("stored", "listed"),
    [
        ("2024-01-30", pd.Timestamp("2024-01-30")),
        ("2024-01-30", "1/30/24"),
        ("2024-01-30 08:15:33", "30.01.2024 08:15"),
        ("2024-01-30", 45321),
        ("2024-01-30 08:15:33", 45321.344132),
        ("2024-01-30", "30-Jan-24"),
        ("2024-03-05", "5. März 2024"),
        ("2024-01-30", "January 30, 2024"),
        ("16:01", "4:01:00 PM"),
        ("04:01", 0.1673611111),
        (100148280778695596, 100148280778695000),
        (123456789012345678, 123456789012346000.0),
        (123456789012, "1.23457E+11"),
        ("1.5", "1,5"),
        (True, "TRUE"),
        (0.125, "12.5%"),
        ("Müller", "M?ller"),
        ("two  words\n", "two words"),
        (None, " "),
    ],
)
def test_a_cell_that_a_spreadsheet_rewrote_is_the_same(stored, listed):
    assert are_alike(stored, listed)


@pytest.mark.parametrize(
    ("stored", "listed"),
    [
        ("2024-01-30", "2024-01-31"),
        ("2024-01-30", "30-Feb-24"),
        ("2024-01-30", "30 Mar 2024"),
        ("16:01", "16:02"),
        ("04:01", 0.25),
        (100148280778695596, 100148280778694000),
        ("2024-01-30 08:15", "2024-01-30 09:15"),
        (1000000001, 1000000002),
        (123456789012, 123457789012),
        ("1.12", "11.2"),
        ("N1", "N2"),
        ("a", None),
        (0.31, 0.3125),
    ],
)
def test_cells_of_other_rows_are_not_the_same(stored, listed):
    assert not are_alike(stored, listed)


def test_a_check_with_a_unit_is_to_be_written_without_it(tmp_path):
    table, listed = drawn_and_listed(tmp_path)
    listed["gold"] = listed["gold"].map("{:.2f}".format)
    listed.loc[3, "gold"] = "6.6 g"
    with pytest.raises(ValueError, match=r"holds '6.6 g': write 6.6 alone, in the unit of the"):
        audit(str(table), "gold", "pred", checks=listed, tolerance=1, suspects=0)
