"""Spellings that mean one thing: which are proposed, how they are merged, and that a fill is that of a mended file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import fill
from transduce.app.filling.options import Options, read_same
from transduce.app.tables import files
from transduce.app.tables.columns import UnreadCellsError
from transduce.app.tables.spellings import alike_spellings, differ_in_a_letter, respelled

PROPOSED = {
    "abbreviations": ({"M": 120, "m": 30, "male": 12, "f": 80, "female": 20}, [["M", "male"], ["f", "female"]]),
    "one letter": ({"yes": 5, "y": 3, "no": 4, "n": 2}, [["yes", "y"], ["no", "n"]]),
    "two words begin so": ({"male": 10, "married": 5, "m": 3}, []),
    "letters moved or left out": (
        {"Adelie": 50, "Adlie": 2, "Gentoo": 40, "Chinstrap": 30, "Chnistrap": 1},
        [["Adelie", "Adlie"], ["Chinstrap", "Chnistrap"]],
    ),
    "an abbreviation of a misspelled word": (
        {"positive": 50, "positiv": 5, "negative": 40, "neg.": 3, "pos": 9},
        [["positive", "pos", "positiv"], ["negative", "neg."]],
    ),
    "order, accents and signs": (
        {"New York": 9, "York, New": 2, "new-york": 1, "café": 5, "cafe": 2},
        [["New York", "York, New", "new-york"], ["café", "cafe"]],
    ),
    "digits count": ({"Typ 1": 50, "Typ 2": 3, "batch 11": 9, "batch 12": 1}, []),
    "signs of figures count": ({"-1": 10, "1": 3, "1.5": 2}, []),
    "words": ({"low": 50, "slow": 1, "lower": 1, "north": 5, "south": 2}, []),
    "capitals alone": ({"Yes": 5, "yes": 3}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", list(PROPOSED))
def test_spellings_that_may_mean_the_same(case):
    counts, expected = PROPOSED[case]
    assert alike_spellings(counts) == expected
    assert alike_spellings(dict(reversed(counts.items()))) == expected


def test_one_letter_is_wrong_by_the_definition():
    words = [
        "chinstrap",
        "chinstra",
        "chnistrap",
        "chinstrab",
        "chinstraps",
        "xchinstrap",
        "gentoo",
        "chistrpa",
    ]
    letters = "abcdefghijklmnopqrstuvwxyz"
    word = words[0]
    near = {word[:k] + word[k + 1 :] for k in range(len(word))}
    near |= {word[:k] + letter + word[k + 1 :] for k in range(len(word)) for letter in letters}
    near |= {word[:k] + letter + word[k:] for k in range(len(word) + 1) for letter in letters}
    near |= {word[:k] + word[k + 1] + word[k] + word[k + 2 :] for k in range(len(word) - 1)}
    for other in words[1:]:
        assert differ_in_a_letter(word, other) == (other in near)
        assert differ_in_a_letter(other, word) == (other in near)
    assert not differ_in_a_letter("batch 11", "batch 12")
    assert not differ_in_a_letter("cat", "cats")


def test_cells_get_the_name_of_their_spelling():
    frame = pd.DataFrame({"sex": ["m", " Male ", "f", None, 1.0], "x": range(5)})
    same = [["sex", "male", "m", "1"], ["sex", "female", "F"]]
    merged = respelled(frame, same, exactly=False)["sex"].tolist()
    assert merged == ["male", " Male ", "female", None, "male"]
    assert respelled(frame, same, exactly=True)["sex"][2] == "f"
    assert respelled(frame, [], exactly=True) is frame
    category = respelled(frame.astype({"sex": "category"}), same, exactly=False)["sex"]
    assert category[2] == "female"


@pytest.mark.parametrize("bad", ["sex,m", [["sex", "m"]], [["sex", "", "m"]], [3]])
def test_what_names_no_spellings_is_refused(bad):
    with pytest.raises(ValueError, match="same is a list of a column"):
        Options.read({"same": bad})


def test_spellings_are_read_from_text():
    assert read_same(['sex, male, m, "M, or so"']) == [["sex", "male", "m", "M, or so"]]


def table():
    random = np.random.default_rng(0)
    sex = random.choice(["male", "female"], 90)
    frame = pd.DataFrame({"sex": sex, "x": random.normal(size=90)})
    frame["dose"] = (50.0 + 20.0 * (sex == "male") + random.normal(size=90)).round(1)
    return frame.assign(dose=frame["dose"].where(np.arange(90) < 60))


def test_a_fill_is_that_of_a_mended_file(tmp_path):
    plain = table()
    messy = plain.copy()
    messy.loc[::3, "sex"] = messy.loc[::3, "sex"].str[0]
    settings = {"method": "ridge"}
    noted = fill(messy, "dose", **settings)
    (note,) = [str(note) for note in noted.notes if "may mean the same" in str(note)]
    same = [["sex", "male", "m"], ["sex", "female", "f"]]
    messy.to_csv(tmp_path / "t.csv", index=False)
    merged = fill(files.read(tmp_path / "t.csv"), "dose", same=same, **settings)
    expected = fill(plain, "dose", **settings)
    assert merged.answer.values == pytest.approx(expected.answer.values)
    assert not any("may mean the same" in str(note) for note in merged.notes)
    assert merged.again.endswith("--same sex,male,m --same sex,female,f")
    assert merged.frame["sex"].tolist() == messy["sex"].tolist()  # the user's own cells stay
    assert "same=['sex,female,f', 'sex,male,m'] takes them as one" in note
    with pytest.raises(ValueError, match="no column 'kind'"):
        fill(plain, "dose", same=[["kind", "a", "b"]], **settings)


def test_classes_are_merged():
    frame = table()
    kind = pd.Series(np.where(frame["x"] > 0, "positive", "negative"), dtype=object)
    kind[::4] = kind[::4].str[:3]
    frame["kind"] = kind.where(np.arange(90) < 60, None)
    result = fill(
        frame,
        "kind",
        method="forest",
        same=[["kind", "positive", "pos"], ["kind", "negative", "neg"]],
    )
    assert set(result.frame["kind_filled"]) == {"positive", "negative"}


def test_the_number_among_words_of_the_target_counts():
    frame = table()
    cells = [str(one) for one in frame["dose"][:60]]
    cells[3:9] = [f"{cell} mg/dl" for cell in cells[3:9]]
    messy = frame.assign(dose=pd.Series([*cells, *[None] * 30], dtype=object))
    messy.loc[12, "dose"] = "about 61 (hand)"
    with pytest.raises(UnreadCellsError) as refused:
        fill(messy, "dose", method="ridge")
    assert "about 61 (hand)" in refused.value.cells
    result = fill(messy, "dose", method="ridge", number=["dose"])
    known = frame["dose"][:60].to_numpy(copy=True)
    known[12] = 61.0
    assert result.labels.known == pytest.approx(known)
    assert result.task == "regression"
    assert "--number dose" in result.again or "number=['dose']" in result.again
    with pytest.raises(ValueError, match="but 1 of its 60 labels is not"):
        fill(
            messy.assign(dose=messy["dose"].replace({"about 61 (hand)": "lost"})),
            "dose",
            number=["dose"],
        )


def test_numbers_with_units_are_no_spellings_of_each_other():
    """To merge a debt with an asset would be silently wrong."""
    for texts in (
        ["EUR 8.10", "EUR 8.10-", "(EUR 8.10)"],
        ["1,43e+04", "1,43e-04"],
        ["3,6 10^9/l", "6,3 10^9/l"],
        ["- R$1.38", "R$1.38"],
    ):
        assert alike_spellings(dict.fromkeys(texts, 5)) == []
