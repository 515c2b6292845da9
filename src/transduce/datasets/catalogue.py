"""What is known of each data set: enough to find it, and to see that the right one was found."""

from __future__ import annotations

from typing import NamedTuple

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
