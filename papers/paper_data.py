"""The data sets of the papers: which there are, and reading them from a folder, OpenML or scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn import datasets as bundled

FOLDER = "TRANSDUCE_DATA"

# ------------------------------------------------------------------------------------------------- the catalogue

CHAPELLE, NOURETDINOV, LE = "Chapelle 1999", "Nouretdinov 2001", "Le 2006"
GRAEPEL, JOACHIMS = "Graepel 1999", "Joachims 2003"


class Entry(NamedTuple):
    """One set of the catalogue."""

    task: str
    n_rows: int
    n_features: int
    kind: str  # how its files are read
    stem: str  # how the names of its files begin, from the data folder
    openml: str = ""  # its name on OpenML, where the same table is there
    papers: tuple[str, ...] = ()  # who used it


# Of the sets with published splits: how many rows are learnt from, and a seed for random splits in their place.
IDA = {
    "banana": (400, 0),
    "breast-cancer": (200, 1),
    "diabetis": (468, 2),
    "heart": (170, 5),
    "thyroid": (140, 9),
    "titanic": (150, 10),
}

# Name, rows, features, papers, name on OpenML.
_REGRESSION: list[tuple[str, int, int, tuple[str, ...], str]] = [
    ("auto-mpg", 392, 7, (NOURETDINOV,), "autoMpg"),
    ("BigMac2003", 69, 9, (LE,), ""),
    ("birthwt", 189, 7, (LE,), ""),
    ("boston", 506, 13, (CHAPELLE, NOURETDINOV, LE), "boston"),
    ("caution", 100, 2, (LE,), ""),
    ("CobarOre", 38, 2, (LE,), ""),
    ("cpus", 209, 7, (LE,), ""),
    ("crabs", 200, 6, (LE,), ""),
    ("diabetes", 43, 2, (LE,), "diabetes_numeric"),
    ("engel", 235, 1, (LE,), ""),
    ("ftcollinssnow", 93, 1, (LE,), ""),
    ("GAGurine", 314, 1, (LE,), ""),
    ("geyser", 299, 1, (LE,), ""),
    ("gilgais", 365, 8, (LE,), ""),
    ("heights", 1375, 1, (LE,), ""),
    ("highway", 39, 11, (LE,), ""),
    ("kin-32fh", 8192, 32, (CHAPELLE,), ""),
    ("machine", 209, 8, (NOURETDINOV,), ""),
    ("mcycle", 133, 1, (LE,), ""),
    ("pyrimidines", 74, 27, (LE,), "pyrim"),
    ("servo", 167, 4, (NOURETDINOV,), ""),
    ("sniffer", 125, 4, (LE,), ""),
    ("snowgeese", 45, 2, (LE,), ""),
    ("topo", 52, 2, (LE,), ""),
    ("triazines", 186, 60, (LE,), "triazines"),
    ("ufc", 372, 4, (LE,), ""),
    ("UN3", 125, 6, (LE,), ""),
]

# Name, rows, features, kind, stem, papers, name on OpenML.
_CLASSES: list[tuple[str, int, int, str, str, tuple[str, ...], str]] = [
    ("banana", 5300, 2, "ida", "ida_banana", (CHAPELLE,), "banana"),
    ("breast-cancer", 277, 9, "ida", "ida_breast_cancer", (CHAPELLE,), ""),
    ("diabetis", 768, 8, "ida", "ida_diabetis", (CHAPELLE,), "diabetes"),
    ("heart", 270, 13, "ida", "ida_heart", (CHAPELLE, GRAEPEL), "heart-statlog"),
    ("thyroid", 215, 5, "ida", "ida_thyroid", (CHAPELLE, GRAEPEL), ""),
    ("titanic", 2201, 3, "ida", "ida_titanic", (CHAPELLE,), ""),
    ("usps", 9298, 256, "two tables", "usps", (CHAPELLE,), ""),
    ("optdigits", 5620, 64, "table", "optdigits", (JOACHIMS,), "optdigits"),
    ("isolet", 7797, 617, "table", "isolet", (JOACHIMS,), "isolet"),
    ("ionosphere", 351, 34, "table", "ionosphere", (JOACHIMS,), "ionosphere"),
    ("adult", 48842, 123, "adult", "adult_a9a", (JOACHIMS,), ""),
    ("adult-small", 1605, 123, "adult", "adult_a1a", (JOACHIMS,), ""),
    ("reuters", 3299, 11849, "reuters", "reuters_modapte", (JOACHIMS,), ""),
    ("webkb-pages", 1051, 17247, "view", "webkb_course_page", (JOACHIMS,), ""),
    ("webkb-links", 1051, 1917, "view", "webkb_course_link", (JOACHIMS,), ""),
]

CATALOGUE: dict[str, Entry] = {
    **{
        name: Entry("regression", rows, columns, "table", f"regression/{name}", openml, papers)
        for name, rows, columns, papers, openml in _REGRESSION
    },
    **{
        name: Entry("classification", rows, columns, kind, f"classification/{stem}", openml, papers)
        for name, rows, columns, kind, stem, papers, openml in _CLASSES
    },
    "bundled-diabetes": Entry("regression", 442, 10, "bundled", "load_diabetes"),
    "bundled-breast-cancer": Entry("classification", 569, 30, "bundled", "load_breast_cancer"),
    "bundled-digits": Entry("classification", 1797, 64, "bundled", "load_digits"),
    "bundled-iris": Entry("classification", 150, 4, "bundled", "load_iris"),
    "bundled-wine": Entry("classification", 178, 13, "bundled", "load_wine"),
}
CATALOGUE["machine"] = CATALOGUE["machine"]._replace(kind="machine")


# ------------------------------------------------------------------------------------------------- loading


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its labels; features are as in the file: nothing scaled, categories as text."""

    name: str
    task: str
    X: Any = field(repr=False)  # frame (n, d) or sparse matrix
    y: Any = field(
        repr=False
    )  # series (n,); of Reuters a frame (n, k): which of ten topics each document has
    source: str  # a folder, OpenML or scikit-learn
    # rows to learn from (s, l) and to ask (s, m) in each of s splits, where the papers share them
    splits: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def encoded(self) -> Any:
        """Return the features as numbers, (n, p) or sparse: one column of zeros and ones for each category."""
        if scipy.sparse.issparse(self.X):
            return self.X.astype(float)
        return pd.get_dummies(self.X).to_numpy(float)


def data_folder() -> Path | None:
    """Return the folder named by the environment variable ``TRANSDUCE_DATA``, or None if it is not set."""
    word = os.environ.get(FOLDER)
    if not word:
        return None
    folder = Path(word).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{FOLDER} names {word!r}, and there is no such folder.")
    return folder


def dataset_names(task: str | None = None) -> list[str]:
    """Return the names of all sets that `load_dataset` knows, or of those of one task."""
    if task not in (None, "regression", "classification"):
        raise ValueError(f'task must be "regression", "classification" or None; got {task!r}.')
    return [name for name, entry in CATALOGUE.items() if task in (None, entry.task)]


def load_dataset(name: str) -> Dataset:
    """Return a set of one of the papers, or one bundled with scikit-learn.

    A set is read from the folder that the environment variable ``TRANSDUCE_DATA`` names, if it is there; else fetched
    from OpenML (scikit-learn keeps what it fetched); `Dataset.source` says which. From OpenML the sets with published
    splits come without them: a hundred random ones of the same sizes take their place, and features are scaled to mean
    zero and variance one, as they are in the published files. A set of another size than expected is refused.
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        near = get_close_matches(str(name), CATALOGUE, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "See dataset_names()."
        raise ValueError(f"There is no data set {name!r}. {hint}")
    entry = CATALOGUE[name]
    if entry.kind == "bundled":
        data = getattr(bundled, entry.stem)(as_frame=True)
        return _checked(Dataset(name, entry.task, data.data, data.target, "scikit-learn"), entry)
    folder, missing = data_folder(), "in a folder at hand"
    if folder is not None:
        try:
            found = _read(name, entry, folder)
            return _checked(
                Dataset(name, entry.task, found.X, found.y, str(folder), splits=found.splits), entry
            )
        except FileNotFoundError as error:
            missing = f"in the folder {str(folder)!r} ({error})"
    return _checked(_fetch(name, entry, missing), entry)


def _checked(data: Dataset, entry: Entry) -> Dataset:
    if data.X.shape != (entry.n_rows, entry.n_features) or len(data.y) != entry.n_rows:
        raise ValueError(
            f"The set {data.name!r} from {data.source} has {data.X.shape[0]:,} rows and {data.X.shape[1]:,} features "
            f"with {len(data.y):,} labels where {entry.n_rows:,} rows and {entry.n_features:,} features are expected: "
            "it is another set, or another version of it."
        )
    if data.splits is not None and any(
        part.min(initial=0) < 0 or part.max(initial=0) >= entry.n_rows for part in data.splits
    ):
        raise ValueError(
            f"The splits of the set {data.name!r} from {data.source} name rows that are not there; rows count from 0."
        )
    return data


# ------------------------------------------------------------------------------------------------- from a folder


class _Found(NamedTuple):
    """What a file holds."""

    X: Any
    y: Any
    splits: tuple[np.ndarray, np.ndarray] | None = None


def _read(name: str, entry: Entry, folder: Path) -> _Found:
    """Read a set from its files; say which file is missing, or that one cannot be read."""
    try:
        return READERS[entry.kind](folder, entry.stem)
    except FileNotFoundError:
        raise
    except (
        Exception
    ) as error:  # whatever a broken file makes of the parsers: the same remedy for all
        raise ValueError(
            f"The files {entry.stem}* of the set {name!r} in {str(folder)!r} cannot be read "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no more is known'}). "
            "Replace them by whole ones."
        ) from error


def _first(root: Path, *names: str) -> Path:
    """Return the first of the files that is there."""
    for name in names:
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"there is no {' or '.join(names)}")


def _read_csv(root: Path, stem: str) -> pd.DataFrame:
    return pd.read_csv(_first(root, f"{stem}.csv", f"{stem}.csv.gz"))


def _read_npz(root: Path, stem: str, n_features: int | None = None) -> Any:
    """Read a sparse matrix, with empty columns added at the end if it has too few."""
    with _first(root, f"{stem}.npz").open("rb") as file:  # numpy leaves a broken file open
        X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(file), dtype=float)
    if n_features is not None:
        X.resize((X.shape[0], max(n_features, X.shape[1])))
    return X


def _read_table(root: Path, stem: str) -> _Found:
    frame = _read_csv(root, stem)
    return _Found(frame.iloc[:, :-1], frame.iloc[:, -1])


def _read_machine(root: Path, stem: str) -> _Found:
    """Read machine without ERP, an estimate of the target by others."""
    frame = _read_csv(root, stem)
    return _Found(frame.drop(columns=["ERP", "PRP"]), frame["PRP"])


def _read_two_tables(root: Path, stem: str) -> _Found:
    """Read the rows to learn from, then the test rows."""
    parts = [_read_csv(root, f"{stem}_{part}") for part in ("train", "test")]
    frame = pd.concat(parts, ignore_index=True)
    return _Found(frame.iloc[:, :-1], frame.iloc[:, -1])


def _read_ida(root: Path, stem: str) -> _Found:
    with _first(root, f"{stem}.npz").open("rb") as file, np.load(file) as data:
        x, t = data["x"].astype(float), data["t"].astype(int)
        splits = data["train"].astype(np.intp), data["test"].astype(np.intp)
    return _Found(pd.DataFrame(x).rename(columns="x{}".format), pd.Series(t, name="t"), splits)


def _read_adult(root: Path, stem: str) -> _Found:
    """Read the rows to learn from, then the test rows of the one of two sets that has them."""
    parts = [f"{stem}_train", f"{stem}_test"][: 2 if stem.endswith("a9a") else 1]
    X = scipy.sparse.vstack([_read_npz(root, part, 123) for part in parts], format="csr")
    labels = [_read_csv(root, f"{part}_labels")["label"] for part in parts]
    return _Found(X, pd.concat(labels, ignore_index=True))


def _read_reuters(root: Path, stem: str) -> _Found:
    """Read the test documents of ModApte with the stems that occur in them, counted, and ten topics."""
    labels = _read_csv(root, f"{stem}_labels")
    unlabelled = (labels["split"] == "test").to_numpy()
    X = _read_npz(root, f"{stem}_tf")[np.flatnonzero(unlabelled)]
    kept = np.flatnonzero(X.getnnz(axis=0))
    return _Found(X[:, kept], labels.loc[unlabelled].iloc[:, 3:].reset_index(drop=True))


def _read_view(root: Path, stem: str) -> _Found:
    """Read one of the views of the same rows, counted words; the labels are shared."""
    return _Found(
        _read_npz(root, f"{stem}_tf"), _read_csv(root, f"{stem.rpartition('_')[0]}_labels")["label"]
    )


READERS: dict[str, Callable[[Path, str], _Found]] = {
    "table": _read_table,
    "machine": _read_machine,
    "two tables": _read_two_tables,
    "ida": _read_ida,
    "adult": _read_adult,
    "reuters": _read_reuters,
    "view": _read_view,
}


# ------------------------------------------------------------------------------------------------- from OpenML


def _fetch(name: str, entry: Entry, missing: str) -> Dataset:
    """Fetch a set from OpenML, drop incomplete rows, and draw splits where published ones are missing."""
    where = (
        f"Set the environment variable {FOLDER} to a folder that holds it; papers/DATA.md says how."
    )
    if not entry.openml:
        raise FileNotFoundError(f"The set {name!r} is not {missing}, and not on OpenML. {where}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = bundled.fetch_openml(name=entry.openml, version=1, as_frame=True, parser="auto")
    except (
        Exception
    ) as error:  # no network, no such set, a changed service: the same remedy for all
        raise FileNotFoundError(
            f"The set {name!r} is not {missing}, and fetching {entry.openml!r} from OpenML failed "
            f"({type(error).__name__}). {where}"
        ) from error
    whole = data.data.notna().all(axis=1).to_numpy() & data.target.notna().to_numpy()
    X = data.data[whole].reset_index(drop=True).apply(_plain)
    y = _plain(data.target[whole].reset_index(drop=True))
    if entry.task == "regression" and not pd.api.types.is_numeric_dtype(y):
        raise ValueError(
            f"The labels of the set {name!r} from OpenML are not numbers: it is another set."
        )
    if entry.kind != "ida":
        return Dataset(name, entry.task, X, y, "OpenML")
    t = pd.Series(np.where(pd.factorize(y, sort=True)[0] == 0, -1, 1), name="t")
    X = (X.astype(float) - X.astype(float).mean()) / X.astype(float).std(ddof=1)
    return Dataset(name, entry.task, X, t, "OpenML", splits=_random_splits(len(t), *IDA[name]))


def _plain(column: pd.Series) -> pd.Series:
    """Return a column as numbers if all its values are, else as text: OpenML calls some codes categories."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    words = column.astype(str).str.strip("'\"")
    numbers = pd.to_numeric(words, errors="coerce")
    return words if numbers.isna().any() else numbers


def _random_splits(
    n_rows: int, n_learn: int, seed: int, n_splits: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Return random splits of all rows: rows to learn from (n_splits, n_learn), and the others, to ask."""
    random = np.random.default_rng([1999, seed])
    orders = np.array([random.permutation(n_rows) for _ in range(n_splits)])
    return orders[:, :n_learn], orders[:, n_learn:]
