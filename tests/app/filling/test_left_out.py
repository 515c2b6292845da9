"""Columns recorded differently with and without a label: left out with a note, wherever a table comes from."""

from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest

from tests.app.cli.test_cli import run
from transduce import fill
from transduce.app.filling import fill_folder, fit_fill, load, save
from transduce.app.filling.left_out import columns_left_out, running_columns
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.page.preview import Preview
from transduce.app.page.workspace import Choices
from transduce.app.tables import files
from transduce.app.tables.formats import Table
from transduce.app.tables.new_columns import own_columns
from transduce.app.tables.notes import About
from transduce.conformal import Chance, Exchangeability, Grouped

N_ROWS, N_LABELS = 220, 60


def plain_table(n_rows=N_ROWS, n_labels=N_LABELS, seed=0):
    """Return a table whose labels chance chose, and the truth."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    truth = x[:, 0] + 0.5 * rng.normal(size=n_rows)
    labelled = rng.permutation(n_rows) < n_labels
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    return table.assign(y=np.where(labelled, truth, np.nan)), truth


def names_left_out(table, target="y", **options):
    read = Options.read(options)
    source = FrameSource.read(table, target, read)
    return [one.name for one in columns_left_out(source, read)]


# ------------------------------------------------------------------------------------ known only where the label is

CELLS = {
    "numbers": lambda truth, labelled: np.where(labelled, 2.0 * truth, np.nan),
    "marks": lambda truth, labelled: np.where(labelled, np.abs(truth), -999.0),
    "texts": lambda truth, labelled: np.where(labelled, "room " + (truth > 0).astype(str), None),
    "empty texts": lambda truth, labelled: np.where(labelled, "Ana", ""),
    "dates": lambda truth, labelled: pd.Series(pd.Timestamp("2024-01-01"), range(len(truth))).where(
        labelled
    ),
    "whole numbers": lambda truth, labelled: pd.Series(range(len(truth)), dtype="Int64").where(
        labelled
    ),
    "categories": lambda truth, labelled: pd.Categorical(np.where(labelled, "x", None)),
    "lists": lambda truth, labelled: [
        [1.0, value] if known else None for value, known in zip(truth, labelled, strict=True)
    ],
    "arrays": lambda truth, labelled: [
        np.array([1.0, value]) if known else None
        for value, known in zip(truth, labelled, strict=True)
    ],
    "sets": lambda truth, labelled: [
        {value} if known else None for value, known in zip(truth, labelled, strict=True)
    ],
}


@pytest.mark.parametrize("kind", CELLS)
def test_cells_of_every_kind(kind):
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    assert names_left_out(table.assign(made=CELLS[kind](truth, labelled))) == ["made"]


def test_it_is_said_and_the_guarantee_stays():
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    result = fill(table.assign(assay=np.where(labelled, truth, np.nan)), "y", method="ridge")
    without = fill(table, "y", method="ridge")
    np.testing.assert_allclose(result.answer.values, without.answer.values)
    assert result.guarantee.kind == "exact"
    note = next(note for note in result.notes if "'assay'" in note)
    assert "known only where 'y' is, at 60 of 60 rows with a label and at none of 160" in note
    assert "ignore=['assay']" in note
    line = result.columns.set_index("name").loc["assay"]
    assert (line["kind"], line["n_features"]) == ("left out", 0)


@pytest.mark.parametrize(
    ("with_label", "without_label", "left_out"),
    [(0.95, 0.05, True), (0.6, 0.02, True), (0.95, 0.3, False), (0.5, 0.45, False), (0.0, 0.2, False)],
)  # fmt: skip
def test_known_nearly_only_there(with_label, without_label, left_out):
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    rng = np.random.default_rng(1)
    known = rng.uniform(size=N_ROWS) < np.where(labelled, with_label, without_label)
    assert (names_left_out(table.assign(m=np.where(known, truth, np.nan))) == ["m"]) is left_out


@pytest.mark.parametrize(
    ("with_label", "without_label", "left_out"),
    [(0.0, 1.0, True), (0.0, 0.4, True), (0.03, 0.9, True), (0.3, 0.95, False), (0.0, 0.05, False)],
)
def test_known_nearly_only_where_the_label_is_not(with_label, without_label, left_out):
    """Notes on what is still to be done: every interval was the whole line."""
    table, _ = plain_table()
    labelled = table["y"].notna().to_numpy()
    rng = np.random.default_rng(1)
    known = rng.uniform(size=N_ROWS) < np.where(labelled, with_label, without_label)
    todo = table.assign(todo=np.where(known, rng.choice(["ask", "send"], N_ROWS), None))
    assert (names_left_out(todo) == ["todo"]) is left_out
    if without_label == 1.0:
        result = fill(todo, "y", method="ridge")
        assert result.guarantee.kind == "exact"
        (note,) = [str(note) for note in result.notes if "'todo'" in str(note)]
        assert "known only where 'y' is not, at 160 of 160 rows without a label and at none" in note


def test_few_values_may_be_chance():
    """With 60 of 220 rows labelled, six values are all at labelled rows in one of 3,000 tables, twelve in none."""
    table, truth = plain_table()
    labelled = np.flatnonzero(table["y"].notna())
    for number, expected in ((6, []), (12, ["m"])):
        some = table.assign(m=np.nan)
        some.loc[labelled[:number], "m"] = truth[labelled[:number]]
        assert names_left_out(some) == expected


def test_a_column_that_completes_one_that_is_left_out():
    """It is the same imputed, whatever its name."""
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    other = truth + 0.1 * np.random.default_rng(2).normal(size=N_ROWS)
    both = table.assign(m=np.where(labelled, other, np.nan), q=np.where(labelled, other, 7.0))
    assert names_left_out(both) == ["m", "q"]
    assert names_left_out(both, ignore=["m"]) == []
    assert names_left_out(both.assign(q=np.where(labelled, other + 1.0, 7.0))) == ["m"]


@pytest.mark.parametrize("make", [list, np.array, tuple])
def test_vectors_that_are_completed(make):
    """Lists cannot be hashed, and arrays have no single answer to being equal."""
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    known = [
        make([1.0, value]) if is_known else None
        for value, is_known in zip(truth, labelled, strict=True)
    ]
    filled = [make([0.0, 0.0]) if cell is None else cell for cell in known]
    other = [make([2.0, value]) for value in truth]
    both = table.assign(m=known, q=filled, r=other)
    assert names_left_out(both) == ["m", "q"]


def test_labels_by_group_and_within_categories():
    """A column that is known in two of ten groups, both labelled, may be so by chance."""
    table, truth = plain_table()
    groups = np.arange(N_ROWS) % 10
    table = table.assign(group=groups, y=np.where(groups < 5, truth, np.nan))
    table["m"] = np.where(groups < 2, truth, np.nan)
    assert names_left_out(table, ignore=["group"]) == ["m"]
    assert names_left_out(table, labels=Grouped("group")) == []
    site = np.where(np.arange(N_ROWS) < 80, "north", "south")
    labelled = (site == "north") & (np.arange(N_ROWS) % 40 != 0) | (np.arange(N_ROWS) % 10 == 0)
    table = plain_table()[0].assign(site=site, y=np.where(labelled, truth, np.nan))
    table["m"] = np.where((site == "north") & labelled & (np.arange(N_ROWS) < 30), truth, np.nan)
    assert names_left_out(table, labels=Chance(within="site")) == []


def test_all_columns_left_out_is_refused_with_the_reason():
    table, _truth = plain_table()
    only = table[["y"]].assign(m=table["y"] * 2.0)
    with pytest.raises(ValueError, match="'m' was left out: it is known only where 'y' is"):
        fill(only, "y")


def test_no_label_and_all_labels():
    table, _ = plain_table()
    with pytest.raises(ValueError, match="All cells"):
        names_left_out(table.assign(y=np.nan))
    named = table.assign(**{"größe 体": table["y"] * 2.0})
    assert names_left_out(named) == ["größe 体"]


# ------------------------------------------------------------------------------------------------------ own columns


def test_columns_of_an_earlier_fill_are_left_out():
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    other = truth + 0.4 * np.random.default_rng(3).normal(size=N_ROWS)
    first = fill(
        table.drop(columns="y").assign(A=np.where(labelled, other, np.nan)), "A", method="ridge"
    )
    again = first.frame.assign(y=table["y"])
    new = ["A_filled", "A_lower", "A_upper", "A_width_reduction", "A_status"]
    assert names_left_out(again) == ["A", *new]
    notes = [note for note in fill(again, "y", method="ridge").notes if "A_filled" in note]
    assert len(notes) == 1
    assert "targets of one fill" in notes[0]
    assert "ignore=['A_filled', " in notes[0]
    # Without the column itself, with some of the new ones only, and with the filled one alone.
    assert names_left_out(again.drop(columns=["A", "A_status"])) == new[:-1]
    assert names_left_out(again.drop(columns=new[1:])) == ["A", "A_filled"]


def test_columns_of_users_that_are_called_alike_stay():
    table, _ = plain_table()
    table["tank_filled"] = np.arange(N_ROWS) % 7
    assert names_left_out(table) == []
    table["tank_status"] = np.where(np.arange(N_ROWS) % 2, "open", "closed")
    assert names_left_out(table) == []


def test_of_classes_and_of_the_labelling_page():
    names = ["k_filled", "k_set", "k_probability", "k_probability_a b", "k_confidence", "k_status"]
    assert own_columns(["k", *names, "kind"]) == {"k": names}
    assert own_columns(["k_label", "k_by", "k_random", "k_answer"]) == {
        "k": ["k_label", "k_by", "k_random", "k_answer"]
    }
    assert own_columns(["k_filled", "k_random", "k_by", 7, None]) == {}


def test_marks_of_a_draw_that_are_not_used():
    table, _ = plain_table()
    drawn = table.assign(y_random=table["y"].notna(), y_random_seed=3)
    result = fill(drawn, "y", method="ridge")
    assert result.guarantee.kind == "exact"
    assert any("'y_random' was left out: it marks rows that were drawn" in n for n in result.notes)


def test_a_table_that_was_filled_before_is_refused_with_drop_it():
    table, _ = plain_table()
    filled = fill(table, "y", method="ridge").frame
    with pytest.raises(ValueError, match=r"'y_filled' already.* drop it first") as error:
        fill(filled, "y")
    assert "rename" not in str(error.value)


# ------------------------------------------------------------------------------------------- wherever the table is


@pytest.fixture
def large_table():
    table, truth = plain_table(n_rows=900, n_labels=300, seed=4)
    labelled = table["y"].notna().to_numpy()
    return table.assign(m=np.where(labelled, truth, np.nan), d=np.where(labelled, "Ana", None))


SAMPLED = {"method": "ridge", "sample": 200}


def left_out_by(result):
    columns = result.columns
    return columns["name"][columns["kind"] == "left out"].tolist()


def test_sampled_tables_parts_and_saved_fits(large_table, tmp_path):
    result = fill(large_table, "y", **SAMPLED)
    assert left_out_by(result) == ["m", "d"]
    assert result.guarantee.kind == "exact"
    assert any("'m' was left out" in note for note in result.notes)
    (tmp_path / "in").mkdir()
    for part in range(3):
        large_table.iloc[part::3].to_csv(tmp_path / "in" / f"{part}.csv", index=False)
    folder = fill_folder(str(tmp_path / "in" / "*.csv"), "y", tmp_path / "out", **SAMPLED)
    assert left_out_by(folder) == ["m", "d"]
    later = large_table.drop(columns=["m", "d", "y"])[:5]
    fitted = fit_fill(large_table, "y", **SAMPLED)
    assert fitted.encoder.columns == ["a", "b", "c"]
    save(tmp_path / "m.tds", large_table, "y", **SAMPLED)
    pd.testing.assert_frame_equal(
        load(tmp_path / "m.tds").new_columns(later), fitted.new_columns(later)
    )


@pytest.mark.timeout(400)
def test_dask(large_table):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    result = fill(dd.from_pandas(large_table, npartitions=3), "y", **SAMPLED)
    assert left_out_by(result) == ["m", "d"]


def test_page_and_compare(tmp_path, monkeypatch):
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    table.assign(m=np.where(labelled, truth, np.nan)).to_csv(tmp_path / "t.csv", index=False)
    choices = Choices(target="y")
    preview = Preview(tmp_path / "t.csv", choices)
    shown = {column["name"]: column for column in preview.as_json(choices)["columns"]}
    assert "known only where 'y' is" in shown["m"]["notes"][0]
    assert shown["a"]["notes"] == []
    assert not preview.compare(choices)["differ"]
    monkeypatch.chdir(tmp_path)
    said = run("compare", "t.csv", "--target", "y", "--folds", "2", "--quiet").output
    assert "'m' was left out" in " ".join(said.split())


def test_formulas_that_point_at_the_target(tmp_path):
    """With the value that a spreadsheet program stores: 0 where the target is empty."""
    table, _truth = plain_table()
    book = openpyxl.Workbook()
    book.active.append(["a", "b", "y", "in euro", "twice", "by area"])
    for row, (a, b, y) in enumerate(zip(table["a"], table["b"], table["y"], strict=True), start=2):
        label = None if np.isnan(y) else y
        book.active.append([a, b, label, f"=C{row}*0.9", f"=D{row}*2", f"=A{row}/2"])
    book.save(tmp_path / "t.xlsx")
    workbook = files.read(tmp_path / "t.xlsx")
    assert workbook.computed_from("y") == ["in euro", "twice"]
    assert workbook.computed_from("a") == ["by area"]
    stored = np.where(np.isnan(table["y"]), 0.0, 0.9 * table["y"])
    frame = workbook.frame.assign(
        **{"in euro": stored, "twice": 2 * stored, "by area": table["a"] / 2}
    )
    workbook = Table(frame, workbook.original, workbook.name)
    result = fill(workbook, "y", method="ridge")
    assert left_out_by(result) == ["in euro", "twice"]
    assert any("'in euro' was left out: its formulas point at 'y'" in note for note in result.notes)
    save(tmp_path / "m.tds", workbook, "y", method="ridge")
    assert load(tmp_path / "m.tds").encoder.columns == ["a", "b", "by area"]


# ------------------------------------------------------------------------------- where nothing is guaranteed

STAMPS = {
    "numbers": np.arange(N_ROWS),
    "times": pd.date_range("2024-01-01", periods=N_ROWS, freq="37min"),
    "texts": pd.date_range("2024-01-01", periods=N_ROWS).strftime("%Y-%m-%d"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", STAMPS)
@pytest.mark.parametrize("first", [True, False])
def test_labels_that_stop_along_a_running_number(kind, first):
    table, truth = plain_table(seed=1)
    some = np.arange(N_ROWS) < N_LABELS if first else np.arange(N_ROWS) >= N_ROWS - N_LABELS
    table = table.assign(y=np.where(some, truth, np.nan), nr=STAMPS[kind])
    result = fill(table, "y", method="ridge")
    said = str(result.guarantee)
    assert "Labels stop along 'nr'" in said
    for way_out in ("id='nr'", "ignore=['nr']", "labels=Chance(order='nr')"):
        assert way_out in said
    assert fill(table, "y", method="ridge", ignore=["nr"]).guarantee.kind == "exact"


def test_what_is_no_running_number():
    _table, _ = plain_table()
    missing = np.arange(N_ROWS) >= N_LABELS
    numbers = {"few": missing.astype(int), "shuffled": np.random.default_rng(0).permutation(N_ROWS)}
    others = {"amount": np.arange(N_ROWS) + 0.5, "word": "x", "flag": missing}
    assert running_columns(pd.DataFrame({**numbers, **others}), missing) == ()
    assert running_columns(pd.DataFrame({"nr": np.arange(N_ROWS)}), missing) == ("nr",)


def test_the_way_out_is_named_for_other_columns():
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    shifted = table.assign(m=np.where(labelled, 0.0, 3.0) + truth)
    said = str(fill(shifted, "y", method="ridge").guarantee)
    assert "a column was recorded differently with and without a label" in said
    assert "leave it out with ignore=['m']" in said


def test_a_way_out_is_named_where_no_column_differs_by_itself():
    """Columns that hang together where there is a label, and nowhere else."""
    features = pd.DataFrame(
        {"distance": 0.1, "residuals": [0.3, 0.2], "p_value": [0.2, 0.4]}, index=["m", "a"]
    )
    compared = Exchangeability(0.004, 0.7, features, 60, 160, 499, by_column=True)
    assert compared.verdict.features == ()
    said = str(compared.verdict)
    assert "No column shows it by itself; 'm' comes nearest." in said
    assert "leave it out with ignore=['m']" in said
    assert "ignore" not in str(replace(compared, by_column=False).verdict)


def test_on_the_command_line(tmp_path, monkeypatch):
    table, truth = plain_table()
    some = np.arange(N_ROWS) < N_LABELS
    table = table.assign(y=np.where(some, truth, np.nan), nr=np.arange(N_ROWS))
    table.assign(m=np.where(some, truth, np.nan)).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    said = " ".join(run("fill", "t.csv", "--target", "y", "--method", "ridge").output.split())
    for way_out in ("--id nr", "--ignore nr", "--order nr", "--ignore m"):
        assert way_out in said


def test_a_note_says_which_columns_it_is_about():
    """The kind of a note and its columns are data; texts are made of them at the end."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=60)
    frame = pd.DataFrame({"size": size, "odd": [1 + 2j] * 60, "price_filled": size})
    frame["price_status"] = "given"
    frame["cost"] = np.where(np.arange(60) < 40, size, np.nan)
    result = fill(frame, "cost", method="ridge")
    about = {note.text: (note.about, note.columns) for note in result.fit.notes}
    assert result.notes[: len(about)] == list(about)
    columns = [names for kind, names in about.values() if kind is About.COLUMNS]
    assert ("price_filled", "price_status") in columns or ("price_filled",) in columns
    assert ("odd",) in columns
    assert any(kind is About.METHODS for kind, _ in about.values())


# ------------------------------------------------------------------------- one number wherever there is no label

FILLERS = {
    "0": lambda cells: 0.0,
    "-1": lambda cells: -1.0,
    "mean": lambda cells: cells.mean(),
    "rounded mean": lambda cells: round(cells.mean(), 2),
    "median": lambda cells: np.median(cells),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("n_exceptions", [0, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_empty_cell_may_be_written_as_a_number(filler, n_exceptions, seed):
    """A conversion of the target, with one number where the target is empty, says nothing there.

    Kept, it made all predictions equal, some with an interval of no width.
    """
    table, truth = plain_table(seed=seed)
    labelled = table["y"].notna().to_numpy()
    cells = np.round(1.1 * truth + 3.0, 3)
    number = FILLERS[filler](cells[labelled])
    made = np.where(labelled, cells, number)
    made[np.flatnonzero(~labelled)[:n_exceptions]] = 2.5
    made = table.assign(made=made)
    assert names_left_out(made) == ["made"]
    assert names_left_out(made.sample(frac=1.0, random_state=1)) == ["made"]
    assert names_left_out(made.assign(made=made["made"].astype(str) + " €")) == ["made"]
    if filler in ("0", "-1"):
        assert names_left_out(made, keep=[number]) == []
        result = fill(made, "y", method="ridge")
        without = fill(table, "y", method="ridge")
        np.testing.assert_allclose(result.answer.values, without.answer.values)
        (note,) = [str(note) for note in result.notes if "'made'" in str(note)]
        assert f"{int(number)} seems to stand for an empty cell" in note
        assert f"keep=[{int(number)}]" in note


def test_a_number_that_may_have_been_measured_stays():
    """Few different doses; zeros in both kinds of rows; a year that lies beyond all others."""
    table, truth = plain_table()
    labelled = table["y"].notna().to_numpy()
    rng = np.random.default_rng(2)
    kept = {
        "dose": np.where(labelled, rng.integers(1, 8, N_ROWS), 0),
        "rain": np.where(rng.uniform(size=N_ROWS) < 0.9, 0.0, rng.uniform(size=N_ROWS)),
        "year": np.where(labelled, rng.uniform(1990, 2020, N_ROWS), 2024.0),
        "done": labelled.astype(int),
        "few": np.where(labelled & (rng.uniform(size=N_ROWS) < 0.1), truth, 0.0),
    }
    for name, column in kept.items():
        assert names_left_out(table.assign(**{name: column})) == [], name
