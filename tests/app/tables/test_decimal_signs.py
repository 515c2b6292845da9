"""The decimal sign of a table, which its columns show together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables import files
from transduce.app.tables.decimal_signs import (
    number_in_doubt,
    sign_of_column,
    sign_of_frame,
    sign_of_table,
)
from transduce.app.tables.delimited import read_delimited
from transduce.app.tables.layout import LayoutRequest

THOUSANDS = [2162, 2899, 980, 13029]
SHARES = [0.126, -0.5, 12.25, 0.9]


def written(numbers, sign):
    """Numbers as people write them where this is the decimal sign."""
    texts = [f"{number:,}" for number in numbers]
    if sign == "point":
        return texts
    return [text.translate(str.maketrans(".,", ",.")) for text in texts]


def delimited(columns, delimiter):
    lines = [
        delimiter.join(columns),
        *(delimiter.join(row) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("sign", ["point", "comma"])
def test_other_columns_tell_what_separates_groups(delimiter, sign):
    """A column of thousands alone may have either sign; another column of the file decides."""
    columns = {"count": written(THOUSANDS, sign), "share": written(SHARES, sign)}
    frame, original = read_delimited(delimited(columns, delimiter))
    assert frame["count"].tolist() == THOUSANDS
    assert frame["share"].tolist() == SHARES
    assert original.sign == sign
    assert original.readings["count"].reading.endswith("was read as 2162")
    alone, original = read_delimited(
        delimited({"count": columns["count"], "n": list("1234")}, delimiter)
    )
    assert original.sign == ("either" if delimiter == ";" else "point")
    if sign == "point" and delimiter != ";":
        assert alone["count"].tolist() == THOUSANDS


@given(
    st.lists(st.integers(-9_999_999, 9_999_999), min_size=2, max_size=8),
    st.lists(st.integers(-9999, 9999).map(lambda n: n + 0.5), min_size=2, max_size=8),
    st.sampled_from(["point", "comma"]),
)
def test_what_is_written_is_read(counts, shares, sign):
    """Whole numbers with groups of digits, beside numbers with decimals, in text of a frame."""
    n = min(len(counts), len(shares))
    texts = {"count": written(counts[:n], sign), "share": written(shares[:n], sign)}
    frame = pd.DataFrame(texts)
    assert sign_of_frame(frame) == sign
    grown = pd.concat(
        [frame] * 3 + [pd.DataFrame({"count": [None], "share": [None]})], ignore_index=True
    )
    if len(set(counts[:n])) > 1:
        source = FrameSource.read(
            grown, "count", Options.read({"task": "regression", "keep": counts})
        )
        np.testing.assert_array_equal(source.labels.known, counts[:n] * 3)


def test_what_shows_no_sign():
    assert sign_of_column(["2.162", "980", None]) == ""
    assert sign_of_column(["Smith, J.", "Lee, K.", "1,5"]) == ""
    assert sign_of_column(["1,5", "2.5"]) == ""
    assert sign_of_column(["1.234,5", "17"]) == "comma"
    assert sign_of_column(["1.234.567"]) == "comma"
    assert sign_of_column(["3,5 kg", "4 kg"]) == "comma"
    assert sign_of_table([["0,5"], ["0.5"], ["2.162"]]) == ""
    assert sign_of_frame(pd.DataFrame({"x": [0.5, 1.5]})) == "point"
    # Lists, which cannot be hashed, stand between texts.
    assert sign_of_frame(pd.DataFrame({"x": ["0,5", [1, 2], {3}, "1,5"]})) == "comma"
    assert number_in_doubt([[[1, 2], "4,729", "5,130"]]) == (0, "4,729")


class TestNumbersThatMayBeReadInTwoWays:
    """Nothing is guessed without a word: the note names the option that settles it."""

    def read(self, tmp_path, cells, name="t.txt", delimiter="|", **request):
        lines = [delimiter.join(["id", "x"]), *(f"p{i}{delimiter}{c}" for i, c in enumerate(cells))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return files.read(tmp_path / name, layout=LayoutRequest(**request))

    CELLS = ("4,729", "5,130", "3,001", "2,844")

    def test_a_note_names_the_option(self, tmp_path):
        table = self.read(tmp_path, self.CELLS)
        assert table.in_two_ways == ("x", "4,729")
        assert "may be 4.729 or 4729" in table.notes[0]
        assert "decimal='comma' reads it as 4.729" in table.notes[0]

    @pytest.mark.parametrize(("decimal", "value"), [("comma", 4.729), ("point", 4729.0)])
    def test_the_option_settles_it(self, tmp_path, decimal, value):
        table = self.read(tmp_path, self.CELLS, decimal=decimal)
        assert table.frame["x"][0] == value
        assert table.notes == []

    @pytest.mark.parametrize("other", ["0,512", "4,72", "1,234,567", "-0,100"])
    def test_one_number_shows_the_sign_of_all(self, tmp_path, other):
        assert self.read(tmp_path, [*self.CELLS, other]).in_two_ways is None

    def test_commas_that_separate_fields_are_no_decimal_signs(self, tmp_path):
        quoted = [f'"{cell}"' for cell in self.CELLS]
        table = self.read(tmp_path, quoted, "t.csv", ",")
        assert table.in_two_ways is None
        assert table.frame["x"][0] == 4729

    def test_texts_of_a_workbook(self, tmp_path):
        frame = pd.DataFrame({"x": self.CELLS})
        frame.to_excel(tmp_path / "t.xlsx", index=False)
        assert files.read(tmp_path / "t.xlsx").in_two_ways == ("x", "4,729")
        said = LayoutRequest(decimal="comma")
        assert files.read(tmp_path / "t.xlsx", layout=said).prefer == "comma"


def test_a_number_with_one_reading_is_in_no_doubt():
    assert number_in_doubt([["9,5", "8.25", "7,125"]]) == (0, "7,125")
    assert number_in_doubt([["9,5", "8.25", "7,1"]]) is None
