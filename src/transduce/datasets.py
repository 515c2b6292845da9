"""The data sets of the papers: from a folder, from OpenML, or bundled with scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn import datasets as bundled

from transduce._typing import AnyArray, Array

FOLDER = "TRANSDUCE_DATA"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its labels.

    Parameters
    ----------
    name : str
    task : {"regression", "classification"}
    X : DataFrame of shape (n, d), or sparse matrix
        The features as they are: nothing scaled, categories as text.
    y : Series of length n, or DataFrame of shape (n, k)
        The labels; of Reuters, which of ten topics each document has.
    source : str
        Where it was read: a folder, OpenML or scikit-learn.
    splits : tuple of two int arrays of shape (s, l) and (s, m), or None
        The rows to learn from and the rows to ask in each of s published splits, if the set comes with them.

    Examples
    --------
    >>> from transduce.datasets import load_dataset
    >>> iris = load_dataset("bundled-iris")
    >>> iris.X.shape, iris.task, iris.source
    ((150, 4), 'classification', 'scikit-learn')
    """

    name: str
    task: str
    X: Any
    y: Any
    source: str
    splits: tuple[AnyArray, AnyArray] | None = None

    def encoded(self) -> Any:
        """Return the features as numbers: one column of zeros and ones for each category.

        Returns
        -------
        array of float of shape (n, p), or sparse matrix

        Examples
        --------
        >>> from transduce.datasets import load_dataset
        >>> load_dataset("bundled-wine").encoded().shape
        (178, 13)
        """
        if scipy.sparse.issparse(self.X):
            return self.X.astype(float)
        return pd.get_dummies(self.X).to_numpy(float)


@dataclass(frozen=True)
class _Entry:
    """What the catalogue knows of a set: enough to see that the right one was found."""

    task: str
    n_rows: int
    n_features: int
    read: Callable[[Path], tuple[Any, ...]] | None = None
    openml: str = ""


def data_folder() -> Path | None:
    """Return the folder named by the environment variable ``TRANSDUCE_DATA``, or None if it is not set.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> import os
    >>> from transduce.datasets import data_folder
    >>> data_folder() is None or "TRANSDUCE_DATA" in os.environ
    True
    """
    word = os.environ.get(FOLDER)
    if not word:
        return None
    folder = Path(word).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{FOLDER} names the folder {word!r}, which is not there.")
    return folder


def dataset_names(task: str | None = None) -> list[str]:
    """Return the names of all sets that `load_dataset` knows.

    Parameters
    ----------
    task : {"regression", "classification"} or None, default=None
        Only those of one task.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from transduce.datasets import dataset_names
    >>> [name for name in dataset_names("regression") if name.startswith("bundled")]
    ['bundled-diabetes']
    """
    if task not in (None, "regression", "classification"):
        raise ValueError(f'task must be "regression", "classification" or None; got {task!r}.')
    return [name for name, entry in CATALOGUE.items() if task in (None, entry.task)]


def load_dataset(name: str) -> Dataset:
    """Return a set of one of the papers, or one bundled with scikit-learn.

    A set is read from the folder that the environment variable ``TRANSDUCE_DATA`` names, if it is there; else fetched
    from OpenML (scikit-learn keeps what it fetched); `Dataset.source` says which.

    Parameters
    ----------
    name : str
        One of `dataset_names`.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        There is no set of this name, or what was found is another one: its size differs.
    FileNotFoundError
        The set is not in the folder and not on OpenML, or OpenML cannot be reached.

    Notes
    -----
    The folder holds ``regression/NAME.csv`` (target last) and ``classification/``: tables with the label last
    (``optdigits.csv``), ``ida_NAME.npz`` with arrays ``x``, ``t``, ``train`` and ``test`` for the sets with published
    splits, and sparse matrices as scipy saves them with their labels beside. Files may be packed (``.csv.gz``). From
    OpenML these sets come without the published splits: random ones of the same sizes take their place.

    Examples
    --------
    >>> from transduce.datasets import load_dataset
    >>> digits = load_dataset("bundled-digits")
    >>> digits.X.shape, digits.y.nunique()
    ((1797, 64), 10)
    """
    if name not in CATALOGUE:
        near = get_close_matches(str(name), CATALOGUE, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "See dataset_names()."
        raise ValueError(f"There is no data set {name!r}. {hint}")
    entry = CATALOGUE[name]
    if name.startswith("bundled-"):
        data = getattr(bundled, BUNDLED[name])(as_frame=True)
        return _checked(Dataset(name, entry.task, data.data, data.target, "scikit-learn"), entry)
    folder = data_folder()
    if folder is not None and entry.read is not None:
        try:
            return _checked(Dataset(name, entry.task, *_with_source(entry.read(folder), folder)), entry)
        except FileNotFoundError:
            if not entry.openml:
                raise
    return _checked(_fetch(name, entry), entry)


def _with_source(parts: tuple[Any, ...], folder: Path) -> tuple[Any, ...]:
    return (*parts[:2], str(folder), *parts[2:])


def _checked(data: Dataset, entry: _Entry) -> Dataset:
    if data.X.shape != (entry.n_rows, entry.n_features) or len(data.y) != entry.n_rows:
        raise ValueError(
            f"The set {data.name!r} from {data.source} has {data.X.shape[0]:,} rows and {data.X.shape[1]:,} features "
            f"where {entry.n_rows:,} and {entry.n_features:,} are expected: it is another set, or a version of it."
        )
    return data


# ------------------------------------------------------------------------------------------------- from a folder


def _first(folder: Path, stem: str) -> Path:
    """Return the file of a table, packed or not."""
    for ending in (".csv", ".csv.gz"):
        if (folder / f"{stem}{ending}").is_file():
            return folder / f"{stem}{ending}"
    raise FileNotFoundError(f"There is no file {stem}.csv or {stem}.csv.gz in {folder}.")


def _table(folder: str, stem: str) -> Callable[[Path], tuple[Any, ...]]:
    def read(root: Path) -> tuple[Any, ...]:
        frame = pd.read_csv(_first(root / folder, stem))
        return frame.iloc[:, :-1], frame.iloc[:, -1]

    return read


def _read_machine(root: Path) -> tuple[Any, ...]:
    """Read machine without ERP, an estimate of the target by others."""
    frame = pd.read_csv(_first(root / "regression", "machine"))
    return frame.drop(columns=["ERP", "PRP"]), frame["PRP"]


def _read_usps(root: Path) -> tuple[Any, ...]:
    """Read the 7,291 training rows, then the 2,007 test rows."""
    parts = [pd.read_csv(_first(root / "classification", f"usps_{part}")) for part in ("train", "test")]
    frame = pd.concat(parts, ignore_index=True)
    return frame.iloc[:, :-1], frame.iloc[:, -1]


def _ida(stem: str) -> Callable[[Path], tuple[Any, ...]]:
    def read(root: Path) -> tuple[Any, ...]:
        with np.load(root / "classification" / f"ida_{stem}.npz") as data:
            x, t = data["x"].astype(float), data["t"].astype(int)
            splits = data["train"].astype(np.intp), data["test"].astype(np.intp)
        return pd.DataFrame(x).rename(columns="x{}".format), pd.Series(t, name="t"), splits

    return read


def _sparse(root: Path, stem: str) -> Any:
    return scipy.sparse.csr_matrix(
        scipy.sparse.load_npz(root / "classification" / f"{stem}.npz"), dtype=float
    )


def _read_adult(root: Path) -> tuple[Any, ...]:
    """Read the rows of a9a, those to learn from first."""
    parts = ("adult_a9a_train", "adult_a9a_test")
    labels = [pd.read_csv(root / "classification" / f"{part}_labels.csv")["label"] for part in parts]
    X = scipy.sparse.vstack([_wide(_sparse(root, part), 123) for part in parts], format="csr")
    return X, pd.concat(labels, ignore_index=True)


def _read_small_adult(root: Path) -> tuple[Any, ...]:
    labels = pd.read_csv(root / "classification" / "adult_a1a_train_labels.csv")["label"]
    return _wide(_sparse(root, "adult_a1a_train"), 123), labels


def _wide(X: Any, n_features: int) -> Any:
    """Return the matrix with empty columns added at the end."""
    X.resize((X.shape[0], n_features))
    return X


def _read_reuters(root: Path) -> tuple[Any, ...]:
    """Read the test documents of ModApte with the stems that occur in them, counted, and ten topics."""
    labels = pd.read_csv(root / "classification" / "reuters_modapte_labels.csv")
    asked = (labels["split"] == "test").to_numpy()
    X = _sparse(root, "reuters_modapte_tf")[np.flatnonzero(asked)]
    kept = np.flatnonzero(X.getnnz(axis=0))
    return X[:, kept], labels.loc[asked].iloc[:, 3:].reset_index(drop=True)


def _webkb(view: str) -> Callable[[Path], tuple[Any, ...]]:
    def read(root: Path) -> tuple[Any, ...]:
        labels = pd.read_csv(root / "classification" / "webkb_course_labels.csv")["label"]
        return _sparse(root, f"webkb_course_{view}_tf"), labels

    return read


# ------------------------------------------------------------------------------------------------- from OpenML


def _fetch(name: str, entry: _Entry) -> Dataset:
    """Fetch a set from OpenML, drop incomplete rows, and draw splits where published ones are missing."""
    where = f"Set the environment variable {FOLDER} to a folder that holds it; see transduce.datasets in the docs."
    if not entry.openml:
        raise FileNotFoundError(f"The set {name!r} is not in a folder at hand, and not on OpenML. {where}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = bundled.fetch_openml(name=entry.openml, version=1, as_frame=True, parser="auto")
    except Exception as error:  # no network, no such set, a changed service: the same remedy for all
        raise FileNotFoundError(
            f"The set {name!r} is not in a folder at hand, and fetching {entry.openml!r} from OpenML failed "
            f"({type(error).__name__}). {where}"
        ) from error
    whole = data.data.notna().all(axis=1).to_numpy() & data.target.notna().to_numpy()
    X, y = data.data[whole].reset_index(drop=True), data.target[whole].reset_index(drop=True)
    y = pd.to_numeric(y) if entry.task == "regression" else y.astype(str)
    if name not in IDA:
        return Dataset(name, entry.task, X, y, "OpenML")
    t = pd.Series(np.where(pd.factorize(y, sort=True)[0] == 0, -1, 1), name="t")
    X = (X.astype(float) - X.astype(float).mean()) / X.astype(float).std(ddof=0)
    return Dataset(name, entry.task, X, t, "OpenML", random_splits(len(t), *IDA[name]))


def random_splits(n_rows: int, n_learn: int, seed: int, n_splits: int = 100) -> tuple[Array, Array]:
    """Return random splits of all rows into rows to learn from and rows to ask.

    Parameters
    ----------
    n_rows, n_learn : int
    seed : int
    n_splits : int, default=100

    Returns
    -------
    learn : int array of shape (n_splits, n_learn)
    ask : int array of shape (n_splits, n_rows - n_learn)

    Examples
    --------
    >>> from transduce.datasets import random_splits
    >>> learn, ask = random_splits(5, 3, seed=0, n_splits=2)
    >>> learn.shape, ask.shape
    ((2, 3), (2, 2))
    """
    random = np.random.default_rng([1999, seed])
    orders = np.array([random.permutation(n_rows) for _ in range(n_splits)])
    return orders[:, :n_learn], orders[:, n_learn:]


# ------------------------------------------------------------------------------------------------- the catalogue

# Of the sets with published splits: how many rows are learnt from, and a seed for random splits in their place.
IDA = {
    "banana": (400, 0),
    "breast-cancer": (200, 1),
    "diabetis": (468, 2),
    "heart": (170, 5),
    "thyroid": (140, 9),
    "titanic": (150, 10),
}
BUNDLED = {
    "bundled-diabetes": "load_diabetes",
    "bundled-breast-cancer": "load_breast_cancer",
    "bundled-digits": "load_digits",
    "bundled-iris": "load_iris",
    "bundled-wine": "load_wine",
}
# Name: rows, features and, where the same table is there, the name on OpenML.
TABLES: dict[str, tuple[int, int, str]] = {
    "BigMac2003": (69, 9, ""),
    "CobarOre": (38, 2, ""),
    "GAGurine": (314, 1, ""),
    "UN3": (125, 6, ""),
    "auto-mpg": (392, 7, "autoMpg"),
    "birthwt": (189, 7, ""),
    "boston": (506, 13, "boston"),
    "caution": (100, 2, ""),
    "cpus": (209, 7, ""),
    "crabs": (200, 6, ""),
    "diabetes": (43, 2, "diabetes_numeric"),
    "engel": (235, 1, ""),
    "ftcollinssnow": (93, 1, ""),
    "geyser": (299, 1, ""),
    "gilgais": (365, 8, ""),
    "heights": (1375, 1, ""),
    "highway": (39, 11, ""),
    "kin-32fh": (8192, 32, ""),
    "mcycle": (133, 1, ""),
    "pyrimidines": (74, 27, "pyrim"),
    "servo": (167, 4, ""),
    "sniffer": (125, 4, ""),
    "snowgeese": (45, 2, ""),
    "topo": (52, 2, ""),
    "triazines": (186, 60, "triazines"),
    "ufc": (372, 4, ""),
}
_REGRESSION = {
    name: _Entry("regression", rows, columns, _table("regression", name), openml)
    for name, (rows, columns, openml) in TABLES.items()
}
_REGRESSION["machine"] = _Entry("regression", 209, 8, _read_machine)
_CLASSIFICATION = {
    "banana": _Entry("classification", 5300, 2, _ida("banana"), "banana"),
    "breast-cancer": _Entry("classification", 277, 9, _ida("breast_cancer")),
    "diabetis": _Entry("classification", 768, 8, _ida("diabetis"), "diabetes"),
    "heart": _Entry("classification", 270, 13, _ida("heart"), "heart-statlog"),
    "thyroid": _Entry("classification", 215, 5, _ida("thyroid")),
    "titanic": _Entry("classification", 2201, 3, _ida("titanic")),
    "usps": _Entry("classification", 9298, 256, _read_usps),
    "optdigits": _Entry("classification", 5620, 64, _table("classification", "optdigits"), "optdigits"),
    "isolet": _Entry("classification", 7797, 617, _table("classification", "isolet"), "isolet"),
    "ionosphere": _Entry("classification", 351, 34, _table("classification", "ionosphere"), "ionosphere"),
    "adult": _Entry("classification", 48842, 123, _read_adult),
    "adult-small": _Entry("classification", 1605, 123, _read_small_adult),
    "reuters": _Entry("classification", 3299, 11849, _read_reuters),
    "webkb-pages": _Entry("classification", 1051, 17247, _webkb("page")),
    "webkb-links": _Entry("classification", 1051, 1917, _webkb("link")),
}
_SHAPES = {
    "bundled-diabetes": ("regression", 442, 10),
    "bundled-breast-cancer": ("classification", 569, 30),
    "bundled-digits": ("classification", 1797, 64),
    "bundled-iris": ("classification", 150, 4),
    "bundled-wine": ("classification", 178, 13),
}
CATALOGUE: dict[str, _Entry] = {
    **dict(sorted(_REGRESSION.items(), key=lambda pair: pair[0].lower())),
    **_CLASSIFICATION,
    **{name: _Entry(*shape) for name, shape in _SHAPES.items()},
}
