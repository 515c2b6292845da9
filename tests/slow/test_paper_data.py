"""Data sets of the papers: read from a folder, fetched from OpenML (a stand-in: no test goes online), or refused."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from transduce.datasets import load_houses

PAPERS = Path(__file__).parents[2] / "papers"
sys.path.insert(0, str(PAPERS))

import paper_data as datasets  # noqa: E402
from paper_data import CATALOGUE, IDA, Dataset, Entry, data_folder, dataset_names, load_dataset  # noqa: E402

sys.path.remove(str(PAPERS))
random_splits = datasets._random_splits


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder that TRANSDUCE_DATA names; OpenML cannot be reached."""
    (tmp_path / "regression").mkdir()
    (tmp_path / "classification").mkdir()
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    monkeypatch.setattr(datasets.bundled, "fetch_openml", unreachable)
    return tmp_path


@pytest.fixture
def nowhere(monkeypatch):
    """No data folder."""
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)


def unreachable(**settings):
    raise OSError("no network")


def resized(monkeypatch, name, n_rows, n_features):
    monkeypatch.setitem(
        CATALOGUE, name, CATALOGUE[name]._replace(n_rows=n_rows, n_features=n_features)
    )


def serve(monkeypatch, data, target, unlabelled=None):
    """Let OpenML answer with this table; note what it was asked for."""

    def fetch(**settings):
        if unlabelled is not None:
            unlabelled.append(settings["name"])
        return SimpleNamespace(data=data, target=target)

    monkeypatch.setattr(datasets.bundled, "fetch_openml", fetch)


def save_sparse(path, rows):
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.array(rows, dtype=np.int8)))


# ------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_read_with_its_target_last(folder, monkeypatch, packed):
    resized(monkeypatch, "topo", 3, 2)
    text = "a,b,z\n1,u,10\n2,v,20\n3,u,30\n"
    if packed:
        (folder / "regression" / "topo.csv.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (folder / "regression" / "topo.csv").write_text(text)
    found = load_dataset("topo")
    assert (found.name, found.task, found.source, found.splits) == (
        "topo",
        "regression",
        str(folder),
        None,
    )
    assert list(found.X.columns) == ["a", "b"]
    assert found.X["b"].tolist() == ["u", "v", "u"]
    assert found.y.tolist() == [10, 20, 30]
    np.testing.assert_array_equal(found.encoded(), [[1, 1, 0], [2, 0, 1], [3, 1, 0]])
    assert found.encoded().dtype == float


def test_an_unpacked_table_goes_before_a_packed_one(folder, monkeypatch):
    resized(monkeypatch, "topo", 1, 1)
    (folder / "regression" / "topo.csv").write_text("a,z\n1,10\n")
    (folder / "regression" / "topo.csv.gz").write_bytes(gzip.compress(b"a,z\n1,99\n"))
    assert load_dataset("topo").y.tolist() == [10]


def test_machine_comes_without_the_estimate_of_its_target(folder, monkeypatch):
    resized(monkeypatch, "machine", 2, 2)
    (folder / "regression" / "machine.csv").write_text("vendor,MYCT,ERP,PRP\nx,1,5,6\ny,2,7,8\n")
    found = load_dataset("machine")
    assert list(found.X.columns) == ["vendor", "MYCT"]
    assert found.y.tolist() == [6, 8]


def test_the_training_rows_of_usps_come_first(folder, monkeypatch):
    resized(monkeypatch, "usps", 3, 1)
    (folder / "classification" / "usps_train.csv").write_text("p,label\n0.5,7\n0.25,1\n")
    (folder / "classification" / "usps_test.csv.gz").write_bytes(gzip.compress(b"p,label\n-1,3\n"))
    found = load_dataset("usps")
    assert found.y.tolist() == [7, 1, 3]
    assert found.X.index.tolist() == [0, 1, 2]


def save_ida(folder, n=4, learn=((0, 1), (2, 3)), ask=((2, 3), (0, 1))):
    np.savez(
        folder / "classification" / "ida_heart.npz",
        x=np.arange(2 * n, dtype=np.float32).reshape(n, 2),
        t=np.resize([1, -1], n).astype(np.int8),
        train=np.array(learn, dtype=np.int16),
        test=np.array(ask, dtype=np.int16),
    )


def test_published_splits_are_read_as_row_numbers(folder, monkeypatch):
    resized(monkeypatch, "heart", 4, 2)
    save_ida(folder)
    found = load_dataset("heart")
    learn, ask = found.splits
    assert learn.tolist() == [[0, 1], [2, 3]]
    assert ask.tolist() == [[2, 3], [0, 1]]
    assert learn.dtype == np.intp
    assert found.X["x1"].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert found.y.tolist() == [1, -1, 1, -1]


def test_adult_gets_its_empty_columns_and_stays_sparse(folder, monkeypatch):
    resized(monkeypatch, "adult", 3, 123)
    place = folder / "classification"
    save_sparse(place / "adult_a9a_train.npz", [[1, 0, 1], [0, 1, 0]])
    save_sparse(place / "adult_a9a_test.npz", [[0, 1]])
    (place / "adult_a9a_train_labels.csv").write_text("label\n1\n-1\n")
    (place / "adult_a9a_test_labels.csv").write_text("label\n-1\n")
    found = load_dataset("adult")
    assert found.y.tolist() == [1, -1, -1]
    assert scipy.sparse.issparse(found.encoded())
    assert found.encoded().dtype == float
    np.testing.assert_array_equal(found.X[:, :3].toarray(), [[1, 0, 1], [0, 1, 0], [0, 1, 0]])
    assert found.X[:, 3:].nnz == 0


def test_small_adult_is_one_file(folder, monkeypatch):
    resized(monkeypatch, "adult-small", 2, 123)
    save_sparse(folder / "classification" / "adult_a1a_train.npz", [[1, 0], [0, 1]])
    (folder / "classification" / "adult_a1a_train_labels.csv").write_text("label\n1\n-1\n")
    assert load_dataset("adult-small").y.tolist() == [1, -1]


def test_reuters_keeps_test_documents_and_the_stems_in_them(folder, monkeypatch):
    resized(monkeypatch, "reuters", 2, 2)
    place = folder / "classification"
    save_sparse(place / "reuters_modapte_tf.npz", [[1, 2, 3], [0, 0, 4], [5, 0, 0]])
    (place / "reuters_modapte_labels.csv").write_text(
        "newid,split,topics,earn,acq\n1,train,cocoa,0,0\n2,test,acq,0,1\n3,test,earn,1,0\n"
    )
    found = load_dataset("reuters")
    np.testing.assert_array_equal(found.X.toarray(), [[0, 4], [5, 0]])
    assert found.y.to_dict("list") == {"earn": [0, 1], "acq": [1, 0]}


def test_two_views_share_their_labels(folder, monkeypatch):
    place = folder / "classification"
    (place / "webkb_course_labels.csv").write_text("page,label\nu,1\nv,0\n")
    for view, rows in (("page", [[1, 0, 2], [0, 1, 0]]), ("link", [[3], [0]])):
        resized(monkeypatch, f"webkb-{view}s", 2, len(rows[0]))
        save_sparse(place / f"webkb_course_{view}_tf.npz", rows)
        found = load_dataset(f"webkb-{view}s")
        np.testing.assert_array_equal(found.X.toarray(), rows)
        assert found.y.tolist() == [1, 0]


def test_openml_rows_with_something_missing_are_dropped(nowhere, monkeypatch):
    resized(monkeypatch, "auto-mpg", 2, 2)
    unlabelled = []
    data = pd.DataFrame({"horsepower": [130.0, np.nan, 90.0, 95.0], "weight": [3504, 1, 2, 3]})
    serve(monkeypatch, data, pd.Series([18.0, 1.0, np.nan, 24.0]), unlabelled)
    found = load_dataset("auto-mpg")
    assert unlabelled == ["autoMpg"]
    assert found.source == "OpenML"
    assert found.X["horsepower"].tolist() == [130.0, 95.0]
    assert found.y.tolist() == [18.0, 24.0]
    assert found.X.index.tolist() == found.y.index.tolist() == [0, 1]


def test_codes_that_openml_calls_categories_become_numbers(nowhere, monkeypatch):
    resized(monkeypatch, "boston", 3, 3)
    data = pd.DataFrame(
        {
            "CHAS": pd.Categorical(["0", "1", "0"]),
            "kind": pd.Categorical(["'a'", "'b'", "'a'"]),
            "RM": [6.0, 7.0, 5.0],
        }
    )
    serve(monkeypatch, data, pd.Series(pd.Categorical(["24", "21.5", "30"])))
    found = load_dataset("boston")
    assert found.y.tolist() == [24.0, 21.5, 30.0]
    assert found.X["kind"].tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(found.encoded(), [[0, 6, 1, 0], [1, 7, 0, 1], [0, 5, 1, 0]])


def test_classes_from_openml_are_as_in_the_folder(nowhere, monkeypatch):
    resized(monkeypatch, "optdigits", 2, 1)
    serve(monkeypatch, pd.DataFrame({"p": [1, 2]}), pd.Series(pd.Categorical(["7", "0"])))
    assert load_dataset("optdigits").y.tolist() == [7, 0]
    resized(monkeypatch, "ionosphere", 2, 1)
    serve(monkeypatch, pd.DataFrame({"p": [1, 2]}), pd.Series(pd.Categorical(["g", "b"])))
    assert load_dataset("ionosphere").y.tolist() == ["g", "b"]


def test_without_the_published_splits_random_ones_take_their_place(nowhere, monkeypatch):
    resized(monkeypatch, "heart", 180, 2)
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"age": rng.normal(50, 9, 180), "sex": pd.Categorical(rng.integers(0, 2, 180).astype(str))}
    )
    serve(monkeypatch, data, pd.Series(pd.Categorical(np.resize(["present", "absent"], 180))))
    found = load_dataset("heart")
    learn, ask = found.splits
    assert (learn.shape, ask.shape) == ((100, 170), (100, 10))
    np.testing.assert_array_equal(learn, random_splits(180, 170, 5)[0])
    assert found.y.tolist()[:2] == [1, -1]
    np.testing.assert_allclose(found.X.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(found.X.std(ddof=1), 1)


def test_one_file_missing_from_the_folder_comes_from_openml(folder, monkeypatch):
    resized(monkeypatch, "pyrimidines", 1, 1)
    serve(monkeypatch, pd.DataFrame({"a": [1.0]}), pd.Series([2.0]))
    assert load_dataset("pyrimidines").source == "OpenML"


def test_the_houses_of_the_example_have_all_their_prices_apart():
    table, price = load_houses()
    known = table["price"].notna()
    assert (len(table), int(known.sum()), int(price.isna().sum())) == (400, 150, 0)
    assert table["price"][known].equals(price[known])


# ------------------------------------------------------------------------------------------------- laws


@given(st.integers(2, 30), st.data())
def test_random_splits_hold_every_row_once(n, data):
    n_learn = data.draw(st.integers(1, n - 1))
    learn, ask = random_splits(n, n_learn, seed=data.draw(st.integers(0, 5)), n_splits=3)
    assert learn.shape == (3, n_learn)
    for one, other in zip(learn, ask, strict=True):
        assert sorted([*one, *other]) == list(range(n))


def test_same_seed_same_splits():
    np.testing.assert_array_equal(random_splits(20, 5, 1)[0], random_splits(20, 5, 1)[0])
    assert (random_splits(20, 5, 1)[0] != random_splits(20, 5, 2)[0]).any()


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name.startswith("bundled-")])
def test_bundled_sets_need_no_folder(nowhere, name):
    found = load_dataset(name)
    assert found.source == "scikit-learn"
    assert found.X.shape == (CATALOGUE[name].n_rows, CATALOGUE[name].n_features)
    assert found.encoded().shape[0] == len(found.y)


def test_names_of_both_tasks_are_all_names():
    both = dataset_names("regression") + dataset_names("classification")
    assert sorted(both) == sorted(dataset_names()) == sorted(CATALOGUE)


def test_the_catalogue_is_sound():
    """Every kind has a reader, every set a paper or a bundle, every shared split rows to ask."""
    for name, entry in CATALOGUE.items():
        assert entry.kind in {*datasets.READERS, "bundled"}
        assert bool(entry.papers) != (entry.kind == "bundled")
        assert (name in IDA) == (entry.kind == "ida")
        assert name not in IDA or IDA[name][0] < entry.n_rows
    assert len({seed for _, seed in IDA.values()}) == len(IDA)


def line_of(name: str, entry: Entry) -> str:
    openml = (
        f"`{entry.openml}`" if entry.openml else "scikit-learn" if entry.kind == "bundled" else ""
    )
    cells = (
        f"`{name}`",
        f"{entry.n_rows:,}",
        f"{entry.n_features:,}",
        entry.task,
        ", ".join(entry.papers),
        openml,
    )
    return "| " + " | ".join(cells) + " |"


def test_the_page_lists_the_catalogue():
    lines = re.findall(
        r"^\| `.*\|$", (PAPERS / "DATA.md").read_text().partition("## The folder")[0], re.M
    )
    assert lines == [line_of(name, entry) for name, entry in CATALOGUE.items()]


# ------------------------------------------------------------------------------------------------- limits


def test_the_folder_may_begin_at_home(tmp_path, monkeypatch):
    (tmp_path / "sets").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TRANSDUCE_DATA", "~/sets")
    assert data_folder() == tmp_path / "sets"


def test_no_folder(monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DATA", "")
    assert data_folder() is None
    monkeypatch.delenv("TRANSDUCE_DATA")
    assert data_folder() is None


def test_a_set_shows_itself_in_one_line(nowhere):
    assert repr(load_dataset("bundled-iris")) == (
        "Dataset(name='bundled-iris', task='classification', source='scikit-learn')"
    )


def test_flags_and_categories_are_encoded():
    X = pd.DataFrame(
        {"flag": [True, False], "kind": pd.Categorical(["a", "b"], categories=["a", "b", "c"])}
    )
    encoded = Dataset("mine", "regression", X, pd.Series([0.0, 1.0]), "here").encoded()
    np.testing.assert_array_equal(encoded, [[1, 1, 0, 0], [0, 0, 1, 0]])


# ------------------------------------------------------------------------------------------------- refusals


def test_a_file_of_another_size_is_refused(folder):
    (folder / "regression" / "topo.csv").write_text("x,y,z\n1,2,3\n")
    with pytest.raises(
        ValueError,
        match=r"'topo' from .* has 1 rows and 2 features .* where 52 rows and 2 features",
    ):
        load_dataset("topo")


def test_labels_of_another_length_are_refused(folder, monkeypatch):
    resized(monkeypatch, "webkb-links", 2, 1)
    save_sparse(folder / "classification" / "webkb_course_link_tf.npz", [[3], [0]])
    (folder / "classification" / "webkb_course_labels.csv").write_text("page,label\nu,1\n")
    with pytest.raises(ValueError, match="with 1 labels where 2 rows"):
        load_dataset("webkb-links")


@pytest.mark.parametrize("learn", [((1, 4),), ((-1, 2),)])
def test_splits_that_name_rows_not_there_are_refused(folder, monkeypatch, learn):
    resized(monkeypatch, "heart", 4, 2)
    save_ida(folder, learn=learn)
    with pytest.raises(ValueError, match="name rows that are not there; rows count from 0"):
        load_dataset("heart")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("bostn", "Did you mean 'boston'"),
        ("optdigit", "'optdigits'"),
        ("qqqq", "See dataset_names"),
        (7, "See"),
        ([], "See"),
    ],
)
def test_an_unknown_name_is_refused_with_near_ones(nowhere, name, near):
    with pytest.raises(ValueError, match=f"There is no data set .*{near}"):
        load_dataset(name)


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="task must be"):
        dataset_names("clustering")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_text("a file")])
def test_a_folder_that_is_not_there_is_refused(tmp_path, monkeypatch, make):
    make(tmp_path / "gone")
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"TRANSDUCE_DATA names .*gone.*no such folder"):
        load_dataset("boston")


def test_neither_in_a_folder_nor_on_openml(nowhere):
    with pytest.raises(
        FileNotFoundError,
        match=r"not in a folder at hand, and not on OpenML. Set .* TRANSDUCE_DATA",
    ):
        load_dataset("crabs")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("crabs", "regression/crabs.csv or regression/crabs.csv.gz"),
        ("thyroid", "classification/ida_thyroid.npz"),
        ("adult", "classification/adult_a9a_train.npz"),
        ("usps", "classification/usps_train.csv or"),
    ],
)
def test_a_missing_file_is_named(folder, name, file):
    with pytest.raises(
        FileNotFoundError, match=rf"not in the folder .*there is no {file}.*not on OpenML"
    ):
        load_dataset(name)


def test_a_failing_openml_says_what_to_do(nowhere, monkeypatch):
    monkeypatch.setattr(datasets.bundled, "fetch_openml", unreachable)
    with pytest.raises(
        FileNotFoundError,
        match=r"fetching 'pyrim' from OpenML failed \(OSError\). Set .*TRANSDUCE_DATA",
    ):
        load_dataset("pyrimidines")


def test_a_failing_openml_also_names_the_missing_file(folder):
    with pytest.raises(
        FileNotFoundError, match=r"there is no regression/boston.csv or .*OpenML failed"
    ):
        load_dataset("boston")


def test_words_for_numbers_from_openml_are_refused(nowhere, monkeypatch):
    serve(monkeypatch, pd.DataFrame({"a": [1.0]}), pd.Series(["high"]))
    with pytest.raises(ValueError, match="'boston' from OpenML are not numbers"):
        load_dataset("boston")


def test_another_size_from_openml_is_refused(nowhere, monkeypatch):
    serve(monkeypatch, pd.DataFrame({"a": [1.0]}), pd.Series([1.0]))
    with pytest.raises(ValueError, match="'boston' from OpenML has 1 rows"):
        load_dataset("boston")


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("crabs", "regression/crabs.csv", b""),
        ("crabs", "regression/crabs.csv.gz", b"not packed"),
        ("boston", "regression/boston.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9]),
        ("machine", "regression/machine.csv", b"a,b\n1,2\n"),
        ("thyroid", "classification/ida_thyroid.npz", b"not an archive"),
        ("thyroid", "classification/ida_thyroid.npz", b""),
        ("webkb-links", "classification/webkb_course_link_tf.npz", b"PK\x03\x04 cut short"),
    ],
)
def test_a_broken_file_is_named(folder, name, file, content):
    """A broken file is refused even where OpenML has the set: it was meant to be read."""
    (folder / file).write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"The files .* of the set '{name}' in .* cannot be read .* Replace them"
    ):
        load_dataset(name)
