"""Cells that are nearly numbers: limits, footnote marks, the other decimal sign, and what is missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.app.tables.noted import texts
from transduce import fill
from transduce.app.tables.columns import ColumnReading, read_target
from transduce.app.tables.features import vectorize
from transduce.app.tables.numbers import (
    far_note,
    find_numbers,
    hole_words,
    number_of,
    number_text,
    number_texts,
    read_cells,
    read_numbers,
    sentinels,
    units_in,
    without,
)
from transduce.core.words import in_shell, option, options_spelled

N = 80


def numbers():
    return [f"{value:.2f}" for value in np.random.default_rng(0).uniform(1, 50, N)]


@pytest.mark.parametrize(
    ("cell", "value", "side"),
    [
        ("<0.5", 0.5, -1),
        ("< 0.5", 0.5, -1),
        ("≤0,5", 0.5, -1),
        (">=1,200", 1200.0, 1),
        ("> 50*", 50.0, 1),
        ("12.3*", 12.3, 0),
        ("12.3 †", 12.3, 0),
        ("12.3[2]", 12.3, 0),
        ("12.3¹", 12.3, 0),
        ("12,5", 12.5, 0),
        ("(12.5)", -12.5, 0),
        ("(1,250)", -1250.0, 0),
        ("12.5±0.3", 12.5, 0),
        ("1e-3", 1e-3, 0),
        ("n.d.", np.nan, 0),
        ("-", np.nan, 0),
        ("< LOD", np.nan, 0),
        ("inf", np.nan, 0),
        ("12-15", np.nan, 0),
        ("3 kg", np.nan, 0),
        ("1.2.3", np.nan, 0),
        ("<>3", np.nan, 0),
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_dirty_cell_does_not_cost_a_column(cell, value, side, times):
    """The other cells keep their values; the dirty one is read, marked, or missing, and the notes name it."""
    clean = numbers()
    dirty = [cell] * times + clean[times:]
    found = read_numbers(dirty)
    np.testing.assert_array_equal(found.values[:times], value)
    assert found.side[:times].tolist() == [side] * times
    np.testing.assert_array_equal(found.values[times:], [float(text) for text in clean[times:]])
    features = vectorize(pd.DataFrame({"a": dirty, "b": np.arange(N) % 3}))
    line = features.columns.set_index("name").loc["a"]
    assert line["kind"] == "number"
    assert line["n_features"] == (1 if np.isfinite(value) and not side else 2)
    if cell != "1e-3":  # a plain number
        assert len(texts(features.notes)) == 1
        assert f"'a': {times}" in texts(features.notes)[0]
        assert repr(cell) in texts(features.notes)[0]
        assert ("row 1)" if times == 1 else "rows 1, 2 and 3)") in texts(features.notes)[0]


def test_units_and_decimal_commas_keep_theirs():
    found = read_numbers(["1,5 kg", "2,25 kg", "<3 kg", "4", "5 lb", *["7,5 kg"] * 20])
    assert found.unit == "kg"
    np.testing.assert_array_equal(found.values[:5], [1.5, 2.25, 3, 4, np.nan])
    assert found.unread == [4]


def test_a_dirty_predictor_still_predicts():
    a = np.random.default_rng(1).uniform(0, 100, N)
    frame = pd.DataFrame({"a": [f"{value:.3f}" for value in a], "b": np.arange(N) % 5, "y": 2 * a})
    frame.loc[frame.index % 2 == 0, "y"] = np.nan
    clean = fill(frame, "y", method="ridge")
    frame.loc[[3, 8], "a"] = ["n.d.", "<0.5"]
    dirty = fill(frame, "y", method="ridge")
    widths = [
        np.nanmedian(found.frame["y_upper"] - found.frame["y_lower"]) for found in (clean, dirty)
    ]
    rows = clean.answer.rows[~np.isin(clean.answer.rows, [3, 8])]
    assert np.abs(dirty.frame["y_filled"].to_numpy() - 2 * a)[rows].max() < 0.2 * np.std(2 * a)
    assert widths[0] < widths[1] < np.std(2 * a)
    assert any("'n.d.' (row 4)" in note for note in dirty.notes)
    assert any("'<0.5' (row 9)" in note for note in dirty.notes)


def test_words_and_codes_stay_what_they_are():
    frame = pd.DataFrame(
        {
            "zip": [f"{value:05d}" for value in np.arange(N) % 7 * 9000],
            "grade": ["A", "B", "3", "C"] * (N // 4),
            "street": [f"No. {k % 9} b" for k in range(N)],
            "padded": ["05", *(str(k * 7 + 10) for k in range(1, N))],
        }
    )
    kinds = vectorize(frame).columns.set_index("name")["kind"]
    assert kinds.to_dict() == {
        "zip": "category",
        "grade": "category",
        "street": "category",
        "padded": "number",
    }


def test_true_in_any_letters_is_one_category():
    frame = pd.DataFrame({"a": ["True", "true", "FALSE", "false "] * 20})
    assert vectorize(frame).names == ["a: True"]


@pytest.mark.parametrize("mark", [-999, 9999, -9999.0, 99999])
def test_sentinels_are_missing_and_noted(mark):
    values = np.append(np.random.default_rng(0).normal(20, 5, N), [mark] * 3)
    assert sentinels(np.sort(values)) == {mark: 3}
    features = vectorize(pd.DataFrame({"a": values, "b": np.arange(N + 3) % 2}))
    assert "a is missing" in features.names
    assert f"{mark:g} (3 cells)" in texts(features.notes)[0]
    column = features.matrix[:, features.names.index("a")]
    assert np.abs(column).max() < 5
    without_marks = vectorize(
        pd.DataFrame({"a": np.where(values == mark, np.nan, values), "b": np.arange(N + 3) % 2})
    )
    by_name, without = (
        pd.DataFrame(found.matrix, columns=found.names) for found in (features, without_marks)
    )
    pd.testing.assert_frame_equal(by_name, without[features.names])


def test_absurd_numbers_are_named():
    values = np.random.default_rng(0).normal(20, 5, N)
    values[[7, 30]] = 1e12, -4e11
    notes = texts(vectorize(pd.DataFrame({"a": values, "b": np.arange(N) % 2})).notes)
    assert notes == [
        "'a': 2 numbers are far from all others and were taken as they are: '1e+12' (row 8), '-400000000000' (row 31)."
    ]
    labels = [None if i % 3 == 0 else value for i, value in enumerate(values)]
    labels[7] = 1e300
    notes = read_target(table_with(labels), "y").notes
    assert any("'y': 1 number is far" in note and "'1e+300' (row 8)" in note for note in notes)


def test_long_tails_are_not_absurd():
    random = np.random.default_rng(0)
    for values in (
        random.lognormal(10, 2, 500),
        random.standard_cauchy(50),
        [0.0] * 50 + [1e9],
        [1.0, 1e9],
    ):
        assert far_note("a", np.asarray(values), np.arange(len(values))) == []


def test_minus_999_among_large_numbers():
    """It is near the others, compared with their range, but the only negative value."""
    values = np.append(np.random.default_rng(0).uniform(1000, 20000, 60), [-999.0] * 4)
    assert sentinels(np.sort(values)) == {-999.0: 4}
    assert sentinels(np.append(np.arange(900.0), 999.0)) == {}
    assert sentinels(np.append(np.arange(900.0), 999.0), gap=0.0) == {999.0: 1}


def test_ranges_are_said_to_be_read_by_their_letters():
    frame = pd.DataFrame({"a": [f"{k % 60}-{k % 60 + 5}" for k in range(N)], "b": np.arange(N) % 9})
    notes = texts(vectorize(frame).notes)
    assert len(notes) == 1
    assert "are not numbers of one kind, and all were read by their letters" in notes[0]
    assert (
        vectorize(
            pd.DataFrame({"a": [f"street {k % 3}" for k in range(N)], "b": np.arange(N) % 9})
        ).notes
        == []
    )


def test_very_long_digits_are_names():
    frame = pd.DataFrame({"id": [str(10**20 + k) for k in range(N)], "a": np.arange(N)})
    assert vectorize(frame).columns["kind"].tolist() == ["identifier", "number"]


@pytest.mark.parametrize(
    "values", [np.arange(990.0, 1010), [0, 99, 50, 70], [1, 999], np.arange(2000.0)]
)
def test_ordinary_numbers_are_no_sentinels(values):
    assert sentinels(np.sort(np.asarray(values, dtype=float))) == {}


def test_missing_values_by_name():
    frame = pd.DataFrame({"a": [1, -999, 3], "b": ["-999", "N.D.", "x"], "c": [True, False, True]})
    found = without(frame, ["-999", "n.d."])
    assert found.isna().to_numpy().tolist() == [
        [False, True, False],
        [True, True, False],
        [False, False, False],
    ]
    assert without(frame, []) is frame
    assert hole_words(["-", " - ", "red", 3]) == {"-": 2}


def test_options_are_named_as_they_are_written():
    assert option("missing", [-999]) == "missing=[-999]"
    with options_spelled(in_shell):
        assert option("missing", ["-", "a b"]) == "--missing=- --missing 'a b'"
        assert option("random_state", 3) == "--seed 3"
        assert f"use {option('missing', ['n.d.', 'x'])}." == "use --missing 'n.d.' --missing x."
        assert f"use {option('missing', 'n. d.')}." == "use --missing 'n. d.'."


# ------------------------------------------------------------------------------------------------------- the target


def table_with(labels):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=len(labels)), "y": pd.Series(labels, dtype=object)})


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        *(
            (mark, kind)
            for mark in ("-", "--", ".", "missing", "none", "?")
            for kind in ("numbers", "classes")
        ),
        (-999, "numbers"),
        ("-999", "numbers"),
    ],
)
def test_a_target_whose_holes_are_marked_in_another_way(mark, kind):
    """Nothing is learnt from the marks: the sentence names them and the option, which then fills the cells."""
    values = np.round(np.random.default_rng(1).normal(50, 9, 60), 2)
    labels = (
        list(values)
        if kind == "numbers"
        else [("low", "high")[int(value > 50)] for value in values]
    )
    if isinstance(mark, str) and kind == "numbers":
        labels = [str(label) for label in labels]
    labels[::3] = [mark] * 20
    with pytest.raises(ValueError, match=r"No cell of column 'y' is empty.*missing=") as error:
        read_target(table_with(labels), "y")
    assert "(20)" in str(error.value)
    target = read_target(without(table_with(labels), [mark]), "y")
    assert np.flatnonzero(target.missing).tolist() == list(range(0, 60, 3))


def test_marked_holes_are_filled():
    labels = [f"{value:.2f}" for value in np.random.default_rng(1).normal(50, 9, 60)]
    labels[::3] = ["--"] * 20
    result = fill(table_with(labels), "y", method="ridge", missing="--")
    assert result.answer.rows.tolist() == list(range(0, 60, 3))


@pytest.mark.parametrize("mark", ["-", "?", "n.d.", "12-15"])
def test_marks_among_numbers_are_refused(mark):
    labels = [f"{value:.1f}" for value in np.random.default_rng(1).normal(50, 9, 60)]
    labels[::3], labels[1], labels[4] = [None] * 20, mark, mark
    with pytest.raises(
        ValueError, match=r"2 of its 40 labels are not: .*\(rows 2 and 5\).*missing="
    ):
        read_target(table_with(labels), "y")


def test_marks_among_classes_and_sentinels_among_numbers_are_noted():
    labels = ["u", "v", None, "u", "v", "-"] * 20
    notes = read_target(table_with(labels), "y").notes
    assert any(
        "'-' (20) were taken as labels; if they are not, use missing=['-']" in note
        for note in notes
    )
    values = np.random.default_rng(1).normal(50, 9, 60)
    values[::3], values[[1, 4]] = np.nan, -999
    notes = read_target(table_with(list(values)), "y").notes
    assert any("-999 (2 cells)" in note and "missing=[-999]" in note for note in notes)


def test_labels_that_are_limits_or_have_marks():
    values = [f"{value:.1f}" for value in np.random.default_rng(1).normal(50, 9, 60)]
    values[::3], values[1], values[2] = [None] * 20, "<40", "52.5*"
    result = fill(table_with(values), "y", method="ridge")
    assert result.frame["y_filled"].tolist()[1:3] == [40.0, 52.5]
    assert any("'<40' (row 2)" in note and "limit" in note for note in result.notes)
    assert any("'52.5*' (row 3)" in note for note in result.notes)


def test_codes_are_classes():
    target = read_target(table_with(["007", "012", None, "007", "012"] * 12), "y")
    assert target.task == "classification"
    assert set(target.labels) == {"007", "012", None}


def test_true_and_blanks_make_no_new_classes():
    result = fill(table_with(["True", "true ", None, "FALSE", "false"] * 12), "y", method="ridge")
    assert result.answer.classes.tolist() == ["FALSE", "True"]
    yes = read_target(table_with(["Yes", "yes", None, "no", "NO", "Yes"] * 10), "y")
    assert set(yes.known) == {"Yes", "no"}
    notes = read_target(table_with(["Red", "red", None, "blue", "blue"] * 12), "y").notes
    assert any("differ in capitals only" in note for note in notes)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["72 m²", "72m2", "ca. 72", "72,5 qm", "about 80 sq m", "~90", "60"], [72, 72, 72, 72.5, 80, 90, 60]),
        (["3 rooms", "4", "5 Rooms", "2 rm.", "1 room"], [3, 4, 5, 2, 1]),
        (["€ 300", "300 EUR", "EUR 200", "120 Euro", "approx. 100 €"], [300, 300, 200, 120, 100]),
        (["12 yrs", "13 years", "circa 14 yr", "15 y"], [12, 13, 14, 15]),
        (["ca. 1.500 €", "2.300 EUR", "900,50 €"], [1500, 2300, 900.5]),
    ],
)  # fmt: skip
def test_one_unit_has_many_spellings(cells, values):
    found = read_numbers(cells)
    np.testing.assert_array_equal(found.values, values)
    assert found.nearly_all
    later, side = read_cells(
        pd.Series(cells), found.decimal, found.unit
    )  # as in rows that come later
    np.testing.assert_array_equal(later, values)
    assert not side.any()


@pytest.mark.parametrize("decimal", ["point", "comma"])
def test_texts_at_once_are_read_and_written_as_one_by_one(decimal):
    """Columns go through Arrow; the definition reads, and writes, every cell by itself."""
    random = np.random.default_rng(0)
    sizes = random.normal(size=400) * 10.0 ** random.integers(-20, 21, 400)
    values = np.array(
        [
            *sizes,
            *np.round(sizes, 2),
            *np.round(sizes),
            0.0,
            -0.0,
            np.nan,
            np.inf,
            -np.inf,
            1e-4,
            1e10,
        ]
    )
    texts = number_texts(values, decimal).to_pylist()
    assert texts == [number_text(value, decimal) for value in values]
    odd = [
        "+7",
        " 1.5 ",
        "1,5",
        ".5",
        ",5",
        "5.",
        "5,",
        "1e-3",
        "1.234,5",
        "1,234.5",
        "<3",
        "(4)",
        "x",
        "NA",
        "",
        None,
        "٣",
        "1e400",
        "9" * 400,
    ]
    cells = pd.Series([*texts, *odd], dtype="str")
    found = [
        read_cells(pd.Series([cell, 1], dtype=object), decimal, "") for cell in cells
    ]  # not all are text
    for fast, slow in zip(read_cells(cells, decimal, ""), zip(*found, strict=True), strict=True):
        np.testing.assert_array_equal(fast, [pair[0] for pair in slow])


@pytest.mark.parametrize(
    "cells",
    [
        ["72 m²", "700 sqft", "80 m²", "900 sq ft"],
        ["F0001", "F0002", "F0003", "F0004"],
        ["1A", "2B", "3C", "4D"],
        ["about 3 or 4", "5-6", "7 to 8", "9"],
    ],
)
def test_what_is_not_of_one_unit_is_left(cells):
    assert not read_numbers(cells).nearly_all


def test_units_are_named_where_they_differ():
    assert units_in(["72 m²", "80 m2", "75 m²", "700 sqft", "60"]) == ["m²", "sqft"]
    assert units_in(["<1", "5*", "7²", "~8", "5 mg", "6 MG", "7 Mg"]) == [
        "MG",
        "Mg",
    ]  # mega is not milli


def test_limits_and_marks_of_many_numbers_are_not_a_unit():
    found = read_numbers(["<0.568", "2.345", "1.111", ">3", "4*"], "comma")  # 0.568 is not 568
    assert (found.unit, found.decimal, found.side.tolist()) == ("", "point", [-1, 0, 0, 1, 0])
    np.testing.assert_array_equal(found.values, [0.568, 2.345, 1.111, 3, 4])
    assert read_numbers(["<1", "<2", "<3"]).side.tolist() == [-1, -1, -1]


def test_the_number_among_words_counts_where_somebody_says_so():
    cells = ["72 m²", "700 sqft", "size 60, bright", "3 or 4", "none given", None]
    np.testing.assert_array_equal(
        read_numbers(cells, anywhere=True).values, [72, 700, 60, *[np.nan] * 3]
    )


def test_a_text_that_occurs_often_is_read_as_often():
    """Signs and units go by how often texts occur, not by how many texts are different."""
    often = ["1,5 kg"] * 5 + ["1.250", "2.250", "3.250"]
    found = find_numbers(often)
    assert (found.unit, found.decimal) == ("kg", "comma")
    np.testing.assert_array_equal(found.values, [1.5] * 5 + [np.nan] * 3)
    assert units_in(["3 m", "3 m", "4 km", "5 km", "6 km", "3 m", "3 m"]) == ["m", "km"]


def test_groups_of_two_digits_as_in_india():
    parsed = find_numbers(["4,45,000", "12,30,000.5", "1,02,03,004", "45,000", "7"])
    assert parsed.values.tolist() == [445000, 1230000.5, 10203004, 45000, 7]
    for text in ("4,450,00", "4,45,00", "123,45,000", "4.45.000"):
        assert np.isnan(number_of(text, "point"))


def test_the_note_on_a_unit_shows_a_cell_that_has_one():
    cells = ["4.5", "6.1 U", "5.5 U", "7.1", None, "6.6"]
    target = read_target(pd.DataFrame({"y": cells}), "y")
    assert target.notes[0] == (
        "'y' holds text such as '6.1 U', read as the number 6.1 in U, as numbers without a unit "
        "are."
    )


def test_plain_numbers_in_texts_need_no_note():
    cells = ["4.5", "6", "5.5e0", None, "7.1"]
    assert read_target(pd.DataFrame({"y": cells}), "y").notes == []
    groups = ["2.162", "1.450", None, "7.123"]
    target = read_target(pd.DataFrame({"y": groups}), "y", cells=ColumnReading(prefer="comma"))
    assert target.notes[0] == "'y' holds text such as '2.162', read as the number 2162."


def test_reading_the_number_in_each_cell_is_not_advised_where_units_seem_to_differ():
    bare = [f"{value:.1f}" for value in np.linspace(4, 9, 40)]
    several = ["150 mg/dL", "99 mg/dL", "120 mg/dL", "133 mg/dL"]
    for odd, is_advised in ((["7.7 mmol/L"], True), (["140 mg/dL"], False), (several, False)):
        cells = [*bare, *odd, None]
        with pytest.raises(ValueError, match=r"of its 4\d labels") as refused:
            read_target(pd.DataFrame({"y": cells}), "y")
        assert ("Read the number in each" in str(refused.value)) == is_advised


def test_no_measurement_is_advised_to_be_taken_as_empty_beside_words():
    cells = [*(f"{value:.1f}" for value in np.linspace(50, 150, 60)), "118.6 g", "lost", "64.9 g"]
    cells.append(None)
    with pytest.raises(ValueError, match="3 of its 63 labels") as refused:
        read_target(pd.DataFrame({"w": cells}), "w")
    message = str(refused.value)
    assert "Read the number in each with number=['w'], and take those without a number" in message
    assert "as empty with missing=['lost']" in message


WORDS = ["n.b.", "haemolysed", "see note"]


@pytest.mark.parametrize("words", [WORDS[:1], WORDS[1:2], WORDS])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_few_words_however_often_cost_no_column_of_numbers(words, share):
    """A third of a column of a laboratory may say why there is no number: it stays one."""
    values = np.random.default_rng(2).uniform(1, 50, N).round(1)
    is_word = np.arange(N) % 10 < 10 * share
    cells = [
        words[place % len(words)] if gone else f"{value} mg/l"
        for place, (value, gone) in enumerate(zip(values, is_word, strict=True))
    ]
    frame = pd.DataFrame({"a": cells, "b": np.arange(N) % 7, "y": values})
    features = vectorize(frame, "y")
    assert features.columns.set_index("name").loc["a", "kind"] == "number"
    read = features.encoder.readings["a"].values(frame["a"])
    np.testing.assert_array_equal(read, np.where(is_word, np.nan, values))
    notes = " ".join(texts(features.notes))
    assert all(repr(word) in notes for word in words)
    # As a target all cells are full, so that the sentence names the option that empties them.
    with pytest.raises(ValueError, match="nothing to fill") as refused:
        read_target(frame, "a")
    for word in words:
        assert repr(word) in str(refused.value)
    target = read_target(without(frame, words), "a")
    np.testing.assert_array_equal(target.labels, np.where(is_word, np.nan, values))


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "X", "Y"],
        ["1", "2", "3", "pass", "fail"],
        ["<18", ">=18"],
        ["under 18", "over 18"],
        ["NCT01", "NCT02"],
        ["ASA 1", "ASA 2", "ASA 3"],
        ["1a)", "1b)", "2a)", "2b)"],
        ["12D-03", "13D-04", "14D-03"],
    ],
)
def test_names_with_numbers_stay_categories(cells):
    frame = pd.DataFrame({"a": np.resize(np.array(cells, dtype=object), N), "b": np.arange(N)})
    assert vectorize(frame).columns.set_index("name").loc["a", "kind"] == "category"


@pytest.mark.parametrize(
    ("cell", "value", "side"),
    [
        ("below 2.5", 2.5, -1),
        ("unter 2,5", 2.5, -1),
        ("less than 2.5", 2.5, -1),
        ("&lt;2.5", 2.5, -1),
        ("‹2.5", 2.5, -1),
        ("more than 40", 40.0, 1),
        ("12.3 H", 12.3, 0),
        ("12.3 LL", 12.3, 0),
        ("12.3 (L)", 12.3, 0),
        ("12.3 (!)", 12.3, 0),
        ("12.3 !", 12.3, 0),
        ("12.3 a)", 12.3, 0),
        ("1.2 x 10^1", 12.0, 0),
        ("1.2 × 10¹", 12.0, 0),
        ("120 × 10⁻¹", 12.0, 0),
        ("1.2D+01", 12.0, 0),
    ],
)
def test_marks_of_laboratories_cost_no_cell(cell, value, side):
    read = read_numbers([cell, *numbers()])
    assert read.values[0] == value
    assert read.side[0] == side


@pytest.mark.parametrize(
    ("spelled", "unit"),
    [
        ("{} x10^9/L", "x10^9/L"),
        ("{} 10^9/l", "10^9/l"),
        ("{} ×10⁹/L", "×10⁹/L"),
        ("{} mL/min/1.73m2", "mL/min/1.73m2"),
        ("{} l/100 km", "l/100 km"),
        ("Rs. {}", "Rs"),
        ("Kč {}", "Kč"),
        ("kr {}", "kr"),
        ("Fr. {}", "Fr"),
        ("{}\u00a0zł", "zł"),
    ],
)
def test_units_with_digits_and_currencies_by_their_letters(spelled, unit):
    cells = [spelled.format(text) for text in numbers()]
    read = find_numbers(cells)
    assert read.unit == unit
    np.testing.assert_array_equal(read.values, [float(text) for text in numbers()])
    behind = find_numbers([*cells, spelled.format("-7.5")])
    assert behind.values[-1] == -7.5
