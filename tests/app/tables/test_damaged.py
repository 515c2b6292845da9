"""Files that are damaged: refused with a sentence that says where, and never read in part."""

import gzip
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.app.tables import files

ROWS = [{"a": k, "b": f"x{k}"} for k in range(4)]
WHOLE = json.dumps(ROWS, indent=1)
FIRST, SECOND = json.dumps(ROWS[:2]), json.dumps(ROWS[2:])


def read(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return files.read(path)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{FIRST}\n{SECOND}", "line 2, column 1: something follows after the end of the array"),
        (f"{FIRST}]", "line 1, column 43: something follows after the end of the array"),
        (f"{FIRST} x", "something follows after the end of the array"),
        ('[{"a": 1} {"a": 2}]', "line 1, column 11: a comma or ] is missing"),
        ('[{"a": 1},\n,{"a": 2}]', "line 2, column 1: a value is missing"),
        ('[{"a": 1},]', "line 1, column 11: a value is missing"),
        ('[,{"a": 1}]', "line 1, column 2: a value is missing"),
        ('[{"a": 1}', "line 1, column 10: the array ends without ]"),
        ('[{"a": 1},\n', "line 2, column 1: a value is missing"),
        ('[{"a": 1},\n {"a": ', "line 2"),
        ("[", "a value is missing"),
    ],
)
def test_a_damaged_array_is_refused(tmp_path, text, where):
    with pytest.raises(ValueError, match=r"t\.json is not JSON in ") as caught:
        read(tmp_path, "t.json", text)
    assert where in str(caught.value)


@given(st.integers(1, len(WHOLE) - 1))
def test_no_part_of_an_array_is_an_array(tmp_path_factory, cut):
    """Cut anywhere, it is refused; whole, it comes back."""
    folder = tmp_path_factory.mktemp("cut")
    with pytest.raises(ValueError, match=r"t\.json "):
        read(folder, "t.json", WHOLE[:cut])


@given(
    st.lists(
        st.dictionaries(st.text(min_size=1), st.one_of(st.integers(-9, 9), st.text(), st.none())),
        min_size=1,
    ).filter(lambda rows: any(rows)),
    st.sampled_from([None, 0, 2]),
    st.sampled_from(["", " \n", "\r\n\t"]),
)
def test_whole_arrays_are_read(tmp_path_factory, rows, indent, after):
    """However they are laid out, as the decoder of Python reads them."""
    folder = tmp_path_factory.mktemp("whole")
    table = read(folder, "t.json", after + json.dumps(rows, indent=indent) + after)
    assert [json.loads(text) for text in table.original.texts] == rows


def test_lines_are_counted_as_they_stand(tmp_path):
    """Blank lines between them too."""
    with pytest.raises(ValueError, match="is not JSON in line 4, column 7"):
        read(tmp_path, "t.jsonl", '{"a": 1}\n\n\n{"a": }\n')
    with pytest.raises(ValueError, match="is not JSON in line 2, column 10: something follows"):
        read(tmp_path, "t.jsonl", '{"a": 1}\n{"a": 2} {"a": 3}\n')


@pytest.mark.parametrize("end", ['"4', '"4\n', '"4""', '"', '"a,b\n', 'x"\n1,"', '"4""\n'])
def test_an_open_quotation_mark(tmp_path, end):
    with pytest.raises(ValueError, match="ends inside a quoted field"):
        read(tmp_path, "t.csv", f"a,b\n1,2\n3,{end}")


@pytest.mark.parametrize("end", ['"4"', '"4"\n', '"4"""', '5" pipe', '""', '"a\nb"', '5"'])
def test_closed_quotation_marks(tmp_path, end):
    assert len(read(tmp_path, "t.csv", f"a,b\n1,2\n3,{end}").frame) == 2


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
@pytest.mark.parametrize("cut", [1, 5, 9, 30])
def test_a_packed_file_that_was_cut(tmp_path, kind, cut):
    frame = pd.DataFrame({"a": range(50), "b": "x"})
    text = frame.to_csv(index=False)
    if kind != "csv":
        text = frame.to_json(orient="records", lines=kind == "jsonl")
    content = gzip.compress(text.encode())
    with pytest.raises(ValueError, match=rf"t\.{kind}\.gz cannot be read"):
        read(tmp_path, f"t.{kind}.gz", content[:-cut])


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_arrow_files_that_were_cut(tmp_path, name, place):
    frame = pd.DataFrame({"a": range(500), "b": "x"})
    getattr(frame, f"to_{name[2:]}")(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    with pytest.raises(ValueError, match=rf"{name} (is not a|cannot be read)"):
        read(tmp_path, name, content[: int(place * len(content))])


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_name_that_occurs_twice_in_an_object(tmp_path, name):
    """The one value or the other would be lost."""
    rows = ['{"a": 1, "b": 2}', '{"a": 1, "b": 2, "a": 3}', '{"a": 1, "b": {"c": 1, "d": 2}}']
    text = f"[{', '.join(rows)}]" if name == "t.json" else "\n".join(rows)
    with pytest.raises(ValueError, match=r"has 'a' twice in the object in (place|line) 2"):
        read(tmp_path, name, text)
