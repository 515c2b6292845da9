"""The page of results: full runs copied into docs/results, and docs/results.md made from them.

    python papers/page.py [PAPER ...]

copies tables, figures and numbers of the full runs in ``papers/output`` (of all papers, or of those named) into
``docs/results`` and writes the page again: for each paper what held and what did not (``papers/PAPER.md``, written by
hand), its main tables in short form, and its figures. With no full run there it writes the page from what is in
``docs/results``.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
MOST_BYTES = 400_000  # of raw numbers in the docs; what is larger stays where it was made

# Each paper: its reference, its parts in the order of the page, and which of them show their table there.
PAPERS = {
    "chapelle1999": (
        "Chapelle, Vapnik, Weston 1999: transductive ridge",
        "O. Chapelle, V. Vapnik, J. Weston. Transductive inference for estimating values of functions. NIPS 12, 1999.",
        ["figure1a", "figure1b", "figure1c", "figure1d", "table1"],
        {"table1"},
    ),
    "le2006": (
        "Le, Smola, Gartner, Altun 2006: moment-matched Gaussian process",
        "Q. V. Le, A. J. Smola, T. Gartner, Y. Altun. Transductive Gaussian process regression with automatic model "
        "selection. ECML 2006.",
        ["table-1"],
        {"table-1"},
    ),
    "joachims2003": (
        "Joachims 2003: spectral graph transducer",
        "T. Joachims. Transductive learning via spectral graph partitioning. ICML 2003.",
        [
            "table",
            "tsvm",
            "sizes",
            "settings-c",
            "settings-d",
            "settings-k",
            "webkb",
            "webkb-errors",
            "mincut",
            "speed",
        ],
        {"table", "tsvm", "webkb-errors", "mincut"},
    ),
    "graepel1999": (
        "Graepel, Herbrich, Obermayer 1999: Bayesian transduction",
        "T. Graepel, R. Herbrich, K. Obermayer. Bayesian transduction. NIPS 12, 1999.",
        ["figure-2", "one-ball"],
        {"figure-2", "one-ball"},
    ),
    "nouretdinov2001": (
        "Nouretdinov, Melluish, Vovk 2001: ridge regression confidence machine",
        "I. Nouretdinov, T. Melluish, V. Vovk. Ridge regression confidence machine. ICML 2001.",
        ["figure2", "figure3", "table2", "table4", "coverage"],
        {"table2", "table4"},
    ),
}
# Columns that stay in docs/results: details, and what the paper only quotes.
DETAILS = (
    "splits",
    "AdaBoost",
    "Ind AMS",
    "median width",
    "unbounded",
    "target range",
    "area",
    "threshold 1",
    "95 %",
)
OPENING = """# The papers, reproduced

This page has our figures beside the published ones, and says what held.
The scripts in `papers/` wrote its tables and plots from full runs; the paragraphs are written by hand.
Tables show means over as many splits as the papers have; a column *paper* holds the published figure.
`docs/results` has the whole tables, with standard deviations, tests and raw numbers.

```console
export TRANSDUCE_DATA=folder
make papers                             # quick mode of all: minutes each
python papers/chapelle1999.py --full    # goes on where it was stopped; --jobs 2 for two cores
python papers/page.py                   # this page, from the full runs
```

The quick mode takes the first splits of the full one, and says which of its figures agree within four standard errors.
`papers/DATA.md` says where the data come from.
"""


def copy_full_run(paper: str) -> None:
    """Copy what a full run wrote to docs/results, except large files of raw numbers."""
    source, target = HERE / "output" / paper / "full", DOCS / "results" / paper
    if not source.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.suffix in (".md", ".svg", ".csv") and path.stat().st_size <= MOST_BYTES:
            shutil.copyfile(path, target / path.name)


def short_table(text: str) -> str:
    """Return title and table of a full run's part: means alone, without the columns of details and empty ones."""
    title = text.partition("\n")[0]
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.partition("±")[0].strip() for cell in line] for line in lines]
    shown = [
        k
        for k, name in enumerate(head)
        if not any(word in name for word in DETAILS) and any(line[k] for line in body)
    ]
    rows = [[line[k] for k in shown] for line in (head, ["---"] * len(head), *body)]
    return f"{title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def page(texts: Path = HERE, results: Path = DOCS / "results") -> str:
    """Return the page, from the paragraphs by hand and the tables and figures of the full runs."""
    parts = [OPENING]
    for paper, (title, reference, names, tables) in PAPERS.items():
        parts.append(f"## {title}\n\n{reference} `papers/{paper}.py`\n")
        parts.append((texts / f"{paper}.md").read_text(encoding="utf-8"))
        for name in names:
            table, figure = results / paper / f"{name}.md", results / paper / f"{name}.svg"
            if name in tables:
                parts.append(short_table(table.read_text(encoding="utf-8")))
            parts += (
                [f"![{paper}, {name}](results/{paper}/{name}.svg)\n"] if figure.is_file() else []
            )
    return "\n".join(part.strip() + "\n" for part in parts)


def main() -> None:
    for paper in sys.argv[1:] or PAPERS:
        if paper not in PAPERS:
            sys.exit(f"There is no paper {paper!r}: choose among {', '.join(PAPERS)}.")
        copy_full_run(paper)
    (DOCS / "results.md").write_text(page(), encoding="utf-8")
    print(f"Written: {DOCS / 'results.md'}")


if __name__ == "__main__":
    main()
