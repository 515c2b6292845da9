"""What the page says of a column is what `fill` does with it: as the target, and as any other column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.app.filling import fill
from transduce.app.filling.sources import FrameSource
from transduce.app.labelling.table import given_labels, read_label_table
from transduce.app.page.preview import Preview
from transduce.app.page.workspace import Choices, spell_for_page
from transduce.app.report.jsonable import escape_text
from transduce.app.tables import files
from transduce.core.words import options_spelled

N = 60
RANDOM = np.random.default_rng(5)
NUMBERS = RANDOM.normal(50, 9, N).round(2)
DAYS = pd.date_range("2023-01-05", periods=N).strftime("%d.%m.%Y").tolist()
CORPUS = {
    "numbers": NUMBERS,
    "marks": np.where(np.arange(N) % 9 == 0, -999.0, NUMBERS),
    "marks in text": [f"{x:.1f}" if k % 9 else "9999" for k, x in enumerate(NUMBERS)],
    "pending": [f"{x:.2f}" if k % 11 else "pending" for k, x in enumerate(NUMBERS)],
    "holes": [f"{x:.2f}" if k % 11 else "?" for k, x in enumerate(NUMBERS)],
    "units": [f"{x:.1f} mmol/L" for x in NUMBERS],
    "some units": [f"{x:.1f} kg" if k % 2 else f"{x:.1f}" for k, x in enumerate(NUMBERS)],
    "minus": [f"−{x:.1f}" if k % 3 else f"{x:.1f}" for k, x in enumerate(NUMBERS)],
    "accounts": [f"(${x:.2f})" if k % 3 else f"${x:.2f}" for k, x in enumerate(NUMBERS)],
    "thousands": [f"{x:.2f}k" if k % 5 else f"{x:.0f}" for k, x in enumerate(NUMBERS)],
    "limits": [f"{x:.1f}" if k % 6 else "<30" for k, x in enumerate(NUMBERS)],
    "codes": [1 + k % 3 for k in range(N)],
    "few codes": [k % 2 for k in range(N)],
    "padded": [f"{k % 4:03d}" for k in range(N)],
    "numbered": [("1. White", "2. Black", "1. White", "1. White")[k % 4] for k in range(N)],
    "yes": [("yes", "YES", "No", "no", "Yes")[k % 5] for k in range(N)],
    "species": [("Adelie", "ADELIE", "Gentoo", "gentoo ", "Chinstrap")[k % 5] for k in range(N)],
    "unknown": [("a", "b", "unknown", "b", "a")[k % 5] for k in range(N)],
    "days": DAYS,
    "days and words": [day if k % 13 else "soon" for k, day in enumerate(DAYS)],
    "digits of days": [int(f"202301{k % 28 + 1:02d}") for k in range(N)],
    "times": [f"{k % 24}:{k % 60:02d}" for k in range(N)],
    "names": [f"row {k}" for k in range(N)],
    "same": ["x"] * N,
    "words": [f"some words about row {k % 50} and more" for k in range(N)],
}
SAID = [{}, {"missing": ["-999", "pending"]}, {"keep": ["-999", "9999"]}, {"case_sensitive": True}]


def table_of(cells, gone, path):
    """Write a table with a column of some cells, a part of which is empty, and return its frame."""
    column = pd.Series(list(cells), dtype=object)
    column[list(gone)] = None
    frame = pd.DataFrame(
        {"c": column, "x": NUMBERS[: len(column)], "k": np.arange(len(column)) % 4}
    )
    frame.to_csv(path, index=False)
    return files.read(path)


def labels_of(table, choices):
    """Return the labels that `fill` has, or None and its refusal."""
    try:
        labels = FrameSource.read(table, "c", choices.options()).labels
        choices.options().check_labels(labels)
    except ValueError as error:
        return None, str(error)
    return labels, ""


def check_target(path, table, said):
    """Compare what the page says of the target with the labels that `fill` has, or with its refusal."""
    choices = Choices(target="c", way="chance", **said)
    with options_spelled(spell_for_page):
        shown = Preview(path, choices).column("c", choices)
        labels, refusal = labels_of(table, choices)
    if labels is None:
        assert shown["notes"] == [escape_text(refusal, 800)]
        return
    assert shown["notes"] == [escape_text(note, 400) for note in labels.notes]
    assert shown["empty"] == shown["holes"] == int(labels.missing.sum())
    assert (shown["kind"] == "category") == (labels.task == "classification")
    assert shown["kind"] == "date" if labels.kind == "dates" else shown["kind"] != "date"
    assert shown["unit"] == ("" if labels.spelling.moments else labels.spelling.unit)


def check_features(path, said):
    """Compare what the page says of columns with what `fill` does to them, for another target."""
    choices = Choices(target="y", way="chance", **said)
    with options_spelled(spell_for_page):
        preview = Preview(path, choices)
        shown = {one["name"]: one for one in preview.as_json(choices)["columns"]}
        result = fill(files.read(path), "y", method="ridge", **said)
    account = result.columns.set_index("name")
    for name, column in shown.items():
        assert column["empty"] == account.loc[name, "n_missing"], name
        if name != "y":
            assert column["kind"] == account.loc[name, "kind"], name
            assert column["treatment"] == escape_text(account.loc[name, "treatment"]), name
        spelled = preview.table.column_reading(
            name
        ).reading  # which numbers in the file need no note for
        notes = [note for note in column["notes"] if not spelled or spelled not in note]
        assert set(notes) <= {escape_text(note, 400) for note in result.notes}, name
    assert shown["y"]["empty"] == result.summary()["counts"]["unlabelled"]


@pytest.mark.few(25)
@pytest.mark.parametrize("said", SAID, ids=str)
@pytest.mark.parametrize("kind", CORPUS)
def test_the_target_is_read_as_the_page_says(kind, said, tmp_path):
    table = table_of(CORPUS[kind], range(0, N, 3), tmp_path / "t.csv")
    check_target(tmp_path / "t.csv", table, said)


@pytest.mark.few(2)
@pytest.mark.parametrize("place", range(0, len(CORPUS), 8))
def test_other_columns_are_read_as_the_page_says(place, tmp_path):
    """Eight columns at a time: of more, not all are noted."""
    said = SAID[place // 8 % len(SAID)]
    frame = pd.DataFrame({name: CORPUS[name] for name in list(CORPUS)[place : place + 8]})
    frame = frame.astype(object).mask(
        np.add.outer(np.arange(N), np.arange(frame.shape[1])) % 7 == 0
    )
    frame["y"] = np.where(np.arange(N) % 3 == 0, np.nan, NUMBERS * 2.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    check_features(tmp_path / "t.csv", said)


CELLS = st.one_of(
    st.integers(-50, 50).map(str),
    st.integers(-5000, 5000).map(lambda number: f"{number / 100:.2f}"),
    st.sampled_from(
        ["-999", "9999", "pending", "?", "-", "n.d.", "5 kg", "<3", "(4)", "−6.5", "3k", "yes", "YES", "No",
         "1. a", "2. b", "2024-01-05", "05.01.2024", "12:30", "007", "'8", "7-", "True", "Ab", "ab", "AB "]
    ),
)  # fmt: skip


@given(
    st.lists(CELLS, min_size=2, max_size=8),
    st.lists(CELLS, max_size=2),
    st.sampled_from(SAID),
)
def test_made_up_targets_are_read_as_the_page_says(tmp_path_factory, usual, rare, said):
    """A few kinds of cells, each often, and some that occur once or twice."""
    path = tmp_path_factory.mktemp("made-up") / "t.csv"
    cells = [usual[k % len(usual)] for k in range(30)]
    cells[1 : 1 + len(rare)] = rare
    check_target(path, table_of(cells, range(0, 30, 4), path), said)


def test_marks_in_a_target_are_filled_and_never_learnt(tmp_path):
    """A column of 1.9 to 4.8 with six cells of -999 is not answered with negative numbers."""
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    ldl = (3.2 + 0.5 * x + 0.1 * random.normal(size=200)).round(2)
    ldl[np.arange(200) % 4 == 0], ldl[5:11] = np.nan, -999.0
    frame = pd.DataFrame({"x": x, "LDL": ldl})
    result = fill(frame, "LDL", method="ridge")
    assert result.frame["LDL_filled"].min() > 0.0
    assert (result.frame.loc[5:10, "LDL_status"] != "given").all()
    assert any("'LDL' holds -999 (" in note and "keep=[-999]" in note for note in result.notes)
    assert result.summary()["counts"]["unlabelled"] == int(np.isnan(ldl).sum()) + 6
    kept = fill(frame, "LDL", method="ridge", keep=-999)
    assert (kept.frame.loc[5:7, "LDL_filled"] == -999.0).all()
    given, _ = given_labels(read_label_table(frame, "LDL"), "auto")
    assert -999.0 not in given.values()
    assert sorted(given) == np.flatnonzero(result.frame["LDL_status"] == "given").tolist()
    later = fill(frame, "LDL", method="ridge").labels.read(pd.DataFrame({"LDL": [3.0, -999.0]}))
    assert later.missing.tolist() == [False, True]


def test_parts_of_a_table_ask_what_a_mark_is(tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"x": NUMBERS, "y": np.where(np.arange(N) % 3, NUMBERS * 2, np.nan)})
    frame.loc[[1, 2], "y"] = -999.0
    parts = dask.from_pandas(pd.concat([frame] * 4, ignore_index=True), npartitions=2)
    with pytest.raises(ValueError, match=r"missing=\[-999\], or a number, with keep=\[-999\]"):
        fill(parts, "y", method="ridge")


@pytest.mark.parametrize(
    "spellings", [("yes", "YES", "no", "No"), ("Adelie", "ADELIE", "Gentoo", "gentoo")]
)
def test_capitals_have_one_rule(spellings):
    """As labels and as categories, told in a note, with an option that keeps them apart; also for later rows."""
    one, shouted, other, capital = spellings
    kinds = np.array([one, one, shouted, other, other, capital] * 20, dtype=object)
    x = np.where(np.char.lower(kinds.astype(str)) == one.lower(), 1.0, -1.0)
    x += np.random.default_rng(0).normal(scale=0.3, size=120)
    labels = kinds.copy()
    labels[::5] = None
    frame = pd.DataFrame({"x": x, "kind": kinds[::-1], "y": labels})
    merged, apart = (
        fill(frame, "y", method="ridge"),
        fill(frame, "y", method="ridge", case_sensitive=True),
    )
    assert set(merged.answer.classes) == {one, other}
    assert set(apart.answer.classes) == set(spellings)
    for what, name in (("Classes", "y"), ("Categories", "kind")):
        note = f"{what} of '{name}' that differ in capitals only were taken as the same"
        assert any(note in said and "case_sensitive=True" in said for said in merged.notes)
        assert not any(note in said for said in apart.notes)
    counts = merged.columns.set_index("name")["treatment"]
    assert counts["kind"].startswith("2 categories")
    assert apart.columns.set_index("name")["treatment"]["kind"].startswith("4 categories")
    assert merged.labels.read(
        pd.DataFrame({"y": [shouted, f" {one.upper()} "]})
    ).labels.tolist() == [one, one]
    encoder = merged.fit.features.encoder
    rows = pd.DataFrame({"x": [0.0, 0.0], "kind": [one, shouted]})
    np.testing.assert_array_equal(*np.split(encoder.transform(rows), 2))
    assert encoder.notes(rows, np.arange(2)) == []


@pytest.mark.parametrize(
    ("labels", "noted"),
    [
        ([1, 2, 3] * 30, True),
        ([1.0, 2.0, 3.0, 4.0] * 20, True),
        (["1", "2", "4"] * 30, True),
        (list(NUMBERS), False),
        (list(range(40)) * 2, False),
        ([1, 2, 3, 4, 5], False),
        ([1.5, 2.5, 3.5] * 30, False),
    ],
)
def test_only_codes_are_said_to_be_read_as_numbers(labels, noted):
    frame = pd.DataFrame({"x": np.arange(len(labels) + 2.0), "y": [*labels, None, None]})
    with_codes = fill(frame, "y", method="ridge").notes
    codes = [note for note in with_codes if "which may be codes" in note]
    assert len(codes) == noted
    assert all("task='classification' reads them as classes" in note for note in codes)
    assert not any("was read as numbers" in note for note in with_codes)
    assert not any(
        "codes" in note for note in fill(frame, "y", method="ridge", task="regression").notes
    )
