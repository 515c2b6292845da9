"""Numbers in every spelling that we claim to read, written and read back; a sign or unit in doubt is never guessed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.app.tables.noted import texts
from transduce import fill
from transduce.app.cli.app import app
from transduce.app.labelling.table import as_number
from transduce.app.tables.columns import read_target
from transduce.app.tables.features import vectorize
from transduce.app.tables.numbers import (
    all_numbers,
    find_numbers,
    holds_code,
    read_cells,
    read_numbers,
    typed,
)
from transduce.conformal import Chance

MINUS = ["-", "−", "–", "‐", "‑", "‒", "－", "﹣"]  # hyphens, minus, en and figure dash, full width
GROUPS = {
    "point": ["", ",", "'", "’", " ", "\u00a0", "\u202f", "\u2009"],
    "comma": ["", ".", "'", " ", "\u00a0", "\u202f"],
}
UNITS = [
    ("", ""), ("$", ""), ("€ ", ""), ("£", ""), ("EUR ", ""), ("US$", ""), ("₹", ""), ("", " €"), ("", "€"),
    ("", "%"), ("", " %"), ("", " kg"), ("", "kg"), ("", " °C"), ("", " mmol/L"), ("", " m²"), ("", " CHF"),
]  # fmt: skip
SIGNED = ["before", "before the unit", "apart", "behind", "brackets", "unit in brackets"]
FULL_WIDTH = str.maketrans("0123456789.,", "０１２３４５６７８９．，")


def written(value, decimals, decimal="point", group=""):
    """Return the size of a number with a decimal sign and groups of digits."""
    text = f"{abs(value):,.{decimals}f}".replace(",", "G").replace(".", "D")
    return text.replace("G", group).replace("D", "." if decimal == "point" else ",")


def signed(digits, unit, way, minus="-"):
    """Return a negative number in one of the ways to write it."""
    before, after = unit
    return {
        "before": f"{before}{minus}{digits}{after}",
        "before the unit": f"{minus}{before}{digits}{after}",
        "apart": f"{before}{minus} {digits}{after}",
        "behind": f"{before}{digits}-{after if after in ('%', '€') else after and f' {after.strip()}'}",
        "brackets": f"{before}({digits}){after}",
        "unit in brackets": f"({before}{digits}{after})",
    }[way]


@st.composite
def columns(draw):
    """Draw a column of numbers in one unit and with one decimal sign, each sign in a way of its own."""
    decimal = draw(st.sampled_from(["point", "comma"]))
    group, unit = draw(st.sampled_from(GROUPS[decimal])), draw(st.sampled_from(UNITS))
    decimals = draw(st.integers(1, 2))  # so that the decimal sign shows
    wholes = draw(st.lists(st.integers(-(10**7), 10**7), min_size=12, max_size=30))
    values = np.array([7.25, *wholes]) / 10.0**decimals
    values = np.round(values, decimals)
    values[0] = 7.2
    shape = draw(st.sampled_from(["plain", "full width", "apostrophe"]))
    texts = []
    for value in values:
        digits = written(value, decimals, decimal, group)
        if shape == "full width":
            digits = digits.translate(FULL_WIDTH)
        text = f"{unit[0]}{digits}{unit[1]}"
        if value < 0:
            way, minus = draw(st.sampled_from(SIGNED)), draw(st.sampled_from(MINUS))
            text = signed(digits, unit, way, minus)
        texts.append(f"'{text}" if shape == "apostrophe" else text)
    return texts, values, decimal


@given(columns())
@example((["-$6.60", "($6.60)", "$6.60", "$1.25"], np.array([-6.6, -6.6, 6.6, 1.25]), "point"))
@example((["161.1-", "−10.3", "–10.3", "- 6.6"], np.array([-161.1, -10.3, -10.3, -6.6]), "point"))
@example((["−6.6 °C", "6.6 °C", "- 1.2 °C"], np.array([-6.6, 6.6, -1.2]), "point"))
def test_what_is_written_is_read(column):
    """As labels, as features, with `number`, and at rows that come later; no cell is left, none is changed."""
    texts, values, prefer = column
    for anywhere in (False, True):
        found = read_numbers(texts, prefer, anywhere=anywhere)
        np.testing.assert_allclose(found.values, values, rtol=1e-12)
        assert not found.side.any()
        assert found.unread == []
    later, _ = read_cells(pd.Series(texts, dtype=object), found.decimal, found.unit)
    np.testing.assert_allclose(later, values, rtol=1e-12)


TOKENS = ["", *MINUS[:3], "—", "±", "(", "$", "EUR", " ", "'", "+", "~"]
BEHIND = ["", "-", "–", "—", ")", "%", " €", "+", " ", "*"]


@given(
    st.lists(st.sampled_from(TOKENS), max_size=3),
    st.lists(st.sampled_from(BEHIND), max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_no_sign_is_guessed(before, behind, anywhere, mixed):
    """With one minus a number is negative, with none it is positive, or else it is not read."""
    text = "".join([*before, "6.5", *behind])
    others = ["7.5", "-8.5", "9.25", "-1.75"] * 5 if mixed else []
    value = read_numbers([text, *others], anywhere=anywhere).values[0]
    if np.isnan(value):
        return
    brackets = [before.count("("), behind.count(")")]
    minus = [token for token in [*before, *behind] if token in MINUS]
    plus = [token for token in before if token == "+"]
    assert brackets in ([0, 0], [1, 1])
    assert "—" not in [*before, *behind]
    assert "±" not in before
    assert len(minus) + len(plus) + brackets[0] <= 1
    assert value == (-6.5 if minus or brackets[0] else 6.5)


@given(st.lists(st.integers(-999, 999), min_size=8, max_size=20), st.sampled_from(["k", "K", "M"]))
def test_thousands_beside_bare_numbers_are_never_ones(numbers, word):
    """A k is a thousand, and that is noted; what may be something else is not read. Alone they are one unit."""
    texts = [
        f"{number / 100:.2f}{word}" if k % 3 == 0 else f"{number}"
        for k, number in enumerate(numbers)
    ]
    for anywhere in (False, True):
        found = read_numbers(texts, anywhere=anywhere)
        for k, number in enumerate(numbers):
            if k % 3:
                assert found.values[k] == number
            elif word == "k":
                assert found.values[k] == pytest.approx(number * 10.0)
                assert k in found.mended
            else:
                assert np.isnan(found.values[k])
                assert k in found.unread
    alone = read_numbers(texts[::3])
    assert alone.unit == word
    np.testing.assert_allclose(alone.values, np.array(numbers[::3]) / 100.0)
    later, _ = read_cells(pd.Series(["566"]), alone.decimal, alone.unit)
    assert np.isnan(later[0])


@given(
    st.lists(st.sampled_from(["White", "Black", "Asian", "Other"]), min_size=20, max_size=60),
    st.sampled_from(["{}. {}", "{} {}", "{}) {}", "{} - {}", "{}-{}", "{}: {}", "{}={}"]),
)
@example(["White"] * 55 + ["Black"] * 5, "{}. {}")
def test_numbered_words_are_classes(words, spelled):
    """However frequent one of them is; also as labels."""
    names = sorted(set(words))
    cells = [spelled.format(names.index(word) + 1, word) for word in words]
    if len(names) > 1:
        assert not read_numbers(cells).nearly_all
        features = vectorize(pd.DataFrame({"a": cells, "b": np.arange(len(cells)) % 3}))
        line = features.columns.set_index("name").loc["a"]
        assert (line["kind"], line["n_missing"]) == ("category", 0)
        target = read_target(pd.DataFrame({"y": [*cells, None]}), "y", task="classification")
        assert set(target.known) == set(cells)
        if len(cells) > len(set(cells)):
            assert read_target(pd.DataFrame({"y": [*cells, None]}), "y").task == "classification"


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "spelled", ["−{:.1f}", "–{:.1f}", "{:.1f}-", "-${:.1f}", "(${:.1f})", "- {:.1f}", "−{:.1f} °C"]
)
@pytest.mark.parametrize("number", [False, True])
def test_a_column_of_negative_numbers_predicts_as_well(spelled, number):
    """As feature and as target, also where somebody says that it holds numbers."""
    random = np.random.default_rng(0)
    x = random.normal(0, 10, 90).round(1)
    positive = spelled.replace("−", "").replace("–", "").replace("(", "").replace(")", "")
    positive = positive.replace("-", "").replace(" {", "{")
    x[np.abs(x) < 0.05] = 1.0
    texts = [(spelled if value < 0 else positive).format(abs(value)) for value in x]
    options = {"number": ["x"]} if number else {}
    frame = pd.DataFrame({"x": texts, "y": np.where(np.arange(90) % 3 == 0, np.nan, 2.0 * x)})
    plain = fill(frame.assign(x=x), "y", method="ridge")
    np.testing.assert_allclose(
        fill(frame, "y", method="ridge", **options).frame["y_filled"], plain.frame["y_filled"]
    )
    labels = read_target(pd.DataFrame({"y": [*texts, None]}), "y").labels
    np.testing.assert_array_equal(labels[:-1], x)


def test_how_a_minus_was_read_is_noted():
    frame = pd.DataFrame({"a": ["161.1-", "(5.5)", "- 6.5", *map(str, np.arange(40) + 0.5)]})
    notes = texts(vectorize(frame.assign(b=np.arange(43) % 5)).notes)
    assert notes == [
        "'a': 3 cells were read as the number in each (brackets mean minus, a minus behind the number counts, a minus "
        "apart from the number counts): '161.1-' (row 1), '(5.5)' (row 2), '- 6.5' (row 3)."
    ]


def test_grades_are_not_negative():
    """Where 2+ stands beside 2-, the sign is no minus."""
    found = read_numbers(["2+", "2-", "1-", *["1", "2", "3", "4"] * 10])
    assert np.isnan(found.values[:3]).all()
    assert not found.minus_behind
    assert np.isnan(read_cells(pd.Series(["3-"]), "point", "", minus_behind=False)[0][0])


def test_a_mark_of_text_is_no_unit():
    """Spreadsheets put an apostrophe before numbers that are to be text: codes stay codes."""
    codes = pd.Series([f"'{k:06d}" for k in range(60)])
    assert holds_code(codes)
    assert vectorize(pd.DataFrame({"cust": codes, "b": np.arange(60) % 7})).columns[
        "kind"
    ].tolist() == [
        "identifier",
        "number",
    ]
    found = find_numbers([f"'{k}" for k in range(60)])
    assert found.unit == ""
    np.testing.assert_array_equal(found.values, np.arange(60))


def test_prices_without_cents():
    np.testing.assert_array_equal(read_numbers(["5,- €", "7,50 €", "12.– €"]).values, [5, 7.5, 12])


def test_several_units_are_named_where_the_numbers_are_asked_for():
    cells = [f"{k} m²" if k % 2 else f"{10 * k} sqft" for k in range(20, 80)]
    notes = texts(
        vectorize(pd.DataFrame({"size": cells, "b": np.arange(60) % 7}), number=["size"]).notes
    )
    assert any("'size' names several units (sqft, m²)" in note for note in notes)


def test_several_units_of_labels_are_named_too():
    cells = [f"{k} mg" if k % 2 else f"{k / 1000} g" for k in range(20, 80)]
    notes = read_target(numbers_and_gaps(cells), "size", anywhere=True).notes
    assert any("'size' names several units (" in note for note in notes)


@pytest.mark.parametrize(
    ("one", "other"), [("{} W", "{} E"), ("{}N", "{}S"), ("{} S", "{} H"), ("{} D", "{} C")]
)
def test_letters_that_may_be_a_sign_are_refused(one, other):
    """West and east, debit and credit: a number without a sign would be a guess."""
    cells = [(one if k % 2 else other).format(k / 10) for k in range(20, 80)]
    frame = numbers_and_gaps(cells)
    with pytest.raises(ValueError, match="may stand for a sign: write numbers below 0 with a minu"):
        read_target(frame, "size", anywhere=True)
    with pytest.raises(ValueError, match="may stand for a sign"):
        vectorize(frame, number=["size"])
    one_unit = [one.format(k / 10) for k in range(20, 80)]
    assert read_target(numbers_and_gaps(one_unit), "size", anywhere=True).task == "regression"


def test_a_table_reads_a_minus_as_a_file_does():
    series, _ = typed(np.array(["−10.3", "4.3"] * 10, dtype=object))
    assert series.dtype == object  # it is text, which is read as such
    np.testing.assert_array_equal(read_numbers(series.to_numpy()).values[:2], [-10.3, 4.3])


@pytest.mark.parametrize("text", ["−10.3", "–10.3", "-10,3", "-$10.3", "'-10.3"])
def test_a_typed_minus_is_one(text):
    assert as_number(text) == -10.3


@pytest.mark.parametrize("text", ["10.3-", "(10.3)", "- 10.3", "5.87k", "5.87M", "—5", "±5", "5+"])
def test_a_typed_number_in_doubt_is_asked_about(text):
    with pytest.raises(ValueError, match=r"in doubt|thousands|is not a number"):
        as_number(text)


def test_a_column_that_orders_rows_may_have_decimal_commas():
    """Some of which look like dates; signs are read there too."""
    places = np.linspace(-6.5, 6.5, 60).round(1)
    texts = [f"{place:.1f}".replace(".", ",").replace("-", "−") for place in places]
    np.testing.assert_array_equal(all_numbers(pd.Series(texts)), places)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=60), "day": texts})
    frame["y"] = np.where(np.arange(60) % 3 == 0, np.nan, frame["x"] * 2.0)
    written = fill(frame, "y", method="ridge", labels=Chance(order="day"))
    plain = fill(frame.assign(day=places), "y", method="ridge", labels=Chance(order="day"))
    assert str(written.guarantee) == str(plain.guarantee)
    assert all_numbers(pd.Series(["1.5", "soon"])) is None
    assert all_numbers(pd.Series(pd.date_range("2024-01-01", periods=3))) is None


def test_numbers_of_the_command_line_have_the_signs_of_cells(tmp_path):
    x = np.random.default_rng(0).normal(size=40)
    frame = pd.DataFrame({"x": x, "y": np.where(np.arange(40) % 3 == 0, np.nan, (2 * x).round(2))})
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["fill", str(tmp_path / "t.csv"), "--target", "y", "--method", "ridge"]
    run = CliRunner().invoke(app, [*command, "--min=−9.5", "--max", "9.5"])
    assert run.exit_code == 0, run.output
    assert pd.read_csv(tmp_path / "t-filled.csv")["y_lower"].min() >= -9.5
    refused = CliRunner().invoke(app, [*command, "--min", "little"])
    assert refused.exit_code == 2
    assert "'little' is not a valid float" in refused.output


def test_rows_are_drawn_from_those_that_fill_will_fill(tmp_path):
    """Cells that hold -999 are among them; with --keep they are labels."""
    values = np.random.default_rng(0).normal(50, 9, 40).round(1)
    values[:20] = -999.0
    values[20:24] = np.nan
    pd.DataFrame({"x": np.arange(40), "y": values}).to_csv(tmp_path / "t.csv", index=False)
    command = ["draw", str(tmp_path / "t.csv"), "--target", "y", "--seed", "1", "--force"]
    run = CliRunner().invoke(app, [*command, "--number", "23"])
    assert run.exit_code == 0, run.output
    drawn = pd.read_csv(tmp_path / "t-draw.csv")["y_random"]
    assert drawn[:24].sum() == drawn.sum() == 23
    kept = CliRunner().invoke(app, [*command, "--number", "23", "--keep=-999"])
    assert "There are 4 rows without a label" in kept.output


def numbers_and_gaps(cells):
    """A table whose column has a few empty cells."""
    return pd.DataFrame({"size": [*cells, None, None], "b": np.arange(len(cells) + 2) % 7})


@pytest.mark.parametrize(
    ("small", "large"),
    [("0.{:03d}", "{} %"), ("{} kg", "{}00 g"), ("{}", "{}00 g"), ("{} m", "{}000")],
)
def test_units_that_change_are_never_guessed(small, large):
    """Half the labels in one unit, half in another, or without: refused, and which is said."""
    cells = [(small if k % 2 else large).format(k) for k in range(20, 80)]
    with pytest.raises(ValueError, match=r"in several units \(.*\): write|differ by a factor of"):
        read_target(numbers_and_gaps(cells), "size")
    notes = texts(vectorize(numbers_and_gaps(cells)).notes)
    assert any(
        "write all of them in one unit" in note or "write them in one unit" in note
        for note in notes
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_unit_that_is_only_written_now_and_then_is_none_in_doubt(seed):
    """The same sizes with and without it; and two that are larger, which chance brings about."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(3.0, 1.5, 60).round(2)
    cells = [f"{size} kg" if rng.random() < 0.5 else f"{size}" for size in sizes]
    target = read_target(numbers_and_gaps(cells), "size")
    np.testing.assert_array_equal(target.known, sizes)
    cells = [f"{size} kg" for size in sizes] + ["5000", "7000"]
    assert read_target(numbers_and_gaps(cells), "size").known[-1] == 7000.0


def test_dates_in_two_ways_are_told():
    days = pd.date_range("2020-01-01", periods=60)
    cells = [day.strftime("%Y-%m-%d" if k % 2 else "%d. %b %y") for k, day in enumerate(days)]
    with pytest.raises(ValueError, match="were not read as numbers or dates: if they are"):
        read_target(numbers_and_gaps(cells), "size")


def test_classes_are_listed_so_that_two_spellings_of_one_are_seen():
    cells = ["yes", "1", "no", "0", "no", "1"] * 8
    (note,) = read_target(numbers_and_gaps(cells), "size").notes
    assert note == (
        "'size' was read as classes ('1' 16 times, 'no' 16 times, 'yes' 8 times, '0' 8 times)."
    )


IN_DOUBT = [
    "[{}]", "[ ${} ]", "{{{}}}", "<{}>", "⁻{}", "¯{}", "―{}", "▲{}", "△ {}", "▼{}", "↓{}", "minus {}",
    "Minus {}", "neg. {}", "{} CR", "{} DR", "${} cr", "{} BC", "loss {}", "{} below zero",
]  # fmt: skip


@pytest.mark.parametrize("spelled", IN_DOUBT)
def test_what_may_be_a_sign_is_never_guessed(spelled):
    """Half of the cells, or a few: not even where the number in each is asked for."""
    for n_odd in (3, 15, 30):
        cells = [spelled.format(k / 10) if k < n_odd else f"{k / 10}" for k in range(1, 61)]
        for anywhere in (False, True):
            found = read_numbers(cells, anywhere=anywhere)
            odd = np.array([not cell[0].isdigit() or cell[-1].isalpha() for cell in cells])
            assert np.isnan(found.values[odd]).all(), (n_odd, anywhere)
    frame = numbers_and_gaps(cells)
    with pytest.raises(ValueError, match="should hold numbers, but 29 of its 60 labels are not"):
        read_target(frame, "size", anywhere=True)
    notes = texts(vectorize(frame, number=["size"]).notes)
    assert any("29 cells were taken as missing" in note for note in notes)


GOES_ON = [
    "{}½", "{} ¾", "{}⅓", "{}②", "{}_823", "{}h45", "{}x4", "{}O", "{}.O6", "{}O.O6", "{}l5", "{}m5",
    "{} °C-", "{} mg-", "\u00ad{}", "{} kg —",
]  # fmt: skip


@pytest.mark.parametrize("spelled", GOES_ON)
def test_digits_and_signs_behind_a_number_are_not_dropped(spelled):
    """Fractions, misread digits, a second number, a minus behind the unit: no part is a number."""
    for n_odd in (3, 15, 30):
        cells = [spelled.format(k) if k < n_odd else str(k) for k in range(1, 61)]
        for anywhere in (False, True):
            values = read_numbers(cells, anywhere=anywhere).values
            assert np.isnan(values[: n_odd - 1]).all(), (n_odd, anywhere, values[: n_odd - 1])
            np.testing.assert_array_equal(values[n_odd - 1 :], np.arange(n_odd, 61))


@pytest.mark.parametrize("unit", ["kg/m2", "W m⁻²", "m2", "m^3", "cells/mm3", "m²"])
def test_powers_are_part_of_a_unit(unit):
    cells = [f"{k} {unit}" for k in range(1, 61)]
    np.testing.assert_array_equal(read_numbers(cells, anywhere=True).values, np.arange(1, 61))


def test_words_that_only_look_like_a_sign_are_none():
    cells = ["5 crates", "5 drams", "abc 5", "5 [est]", "5 negs"]
    found = read_numbers([*cells, *map(str, range(60))], anywhere=True)
    np.testing.assert_array_equal(found.values[: len(cells)], 5.0)
