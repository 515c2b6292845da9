"""The docs agree with the code: numbers that come from it, names, extras, pages and links."""

from __future__ import annotations

import ast
import importlib.util
import posixpath
import re
import sys
import tomllib
from pathlib import Path, PurePosixPath

import pytest

import transduce
from transduce.app.cli.demonstration import compare_with_truth, demo_table
from transduce.app.filling import fill, plan
from transduce.app.filling.options import DEFAULTS
from transduce.app.report.quality import CLEARLY_BETTER, FEWEST_TICKED
from transduce.conformal import Miscoverage
from transduce.conformal.designs.held_out import calibration_number
from transduce.conformal.exchangeability import SIGNIFICANCE
from transduce.core.findings import SUSPECTED
from transduce.core.ranks import fewest_calibration
from transduce.model_selection import methods

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "methods").glob("*.md")),
]
NUMBERS, CLASSES = plan.ROW_BELOW["regression"], plan.ROW_BELOW["classification"]
FEWEST = next(n for n in range(2, 100) if calibration_number(n, 0.9))


def answered_within_budget(member):
    """Return up to how many rows a method takes part in the answers of a table in parts."""
    case = methods.Case("classification", 20_000, n_labels=1000, n_classes=2)
    seconds = methods.MEMBERS[member].answer_seconds(case)
    return round(plan.ANSWER_SHARE * DEFAULTS["budget_seconds"] / seconds)


# Each line: a page, words with a group for every number, and what the code says. docs/cli.md is the help itself.
STATED = [
    (
        "docs/guarantees.md",
        r"below ([\d,]+) labels of numbers, or ([\d,]+) of classes",
        (NUMBERS, CLASSES),
    ),
    (
        "docs/choosing.md",
        r"below ([\d,]+) labels \(numbers\) and ([\d,]+) \(classes\)",
        (NUMBERS, CLASSES),
    ),
    ("docs/large.md", r"fewer than ([\d,]+) labels \(([\d,]+) for classes\)", (NUMBERS, CLASSES)),
    ("docs/large.md", r"If more than ([\d,]+) rows have no label", (DEFAULTS["sample"],)),
    (
        "docs/large.md",
        r"answers a row within (\d+) µs, or all rows within a tenth",
        (1e6 * plan.QUICK,),
    ),
    (
        "docs/large.md",
        r"forest is left out beyond ([\d.]+) million",
        (answered_within_budget("random_forest") / 1e6,),
    ),
    (
        "docs/large.md",
        r"transductive ridge beyond (\d+) million",
        (answered_within_budget("transductive_ridge") / 1e6,),
    ),
    (
        "docs/large.md",
        r"spectral graph beyond ([\d,]+)",
        (answered_within_budget("spectral_graph"),),
    ),
    ("docs/conformal.md", r"fewer than (\d+) labels \(at 90 %\) no label is held out", (FEWEST,)),
    (
        "docs/conformal.md",
        r"a whole number: (\d+) of 30, (\d+) of 150",
        [calibration_number(n, 0.9) for n in (30, 150)],
    ),
    (
        "docs/conformal.md",
        r": (\d+) labels support 90 %, (\d+) support 95 %",
        [fewest_calibration(x) for x in (0.9, 0.95)],
    ),
    ("docs/labels.md", r"A category takes (\d+) labels at 90 %", (FEWEST,)),
    ("docs/labels.md", r"From p < ([\d.]+) on the verdict speaks of signs", (SUSPECTED,)),
    (
        "docs/labels.md",
        r"([\d.]+) / ([\d.]+) = ([\d.]+) of the rows",
        (0.1, 1 - SIGNIFICANCE, 0.101),
    ),
    ("docs/labels.md", r"At p ≤ ([\d.]+) the labels are weighted", (SIGNIFICANCE,)),
    (
        "docs/troubleshooting.md",
        r"(\d+) for 90 %, (\d+) for 95 %, (\d+) for 99 %",
        [fewest_calibration(x) for x in (0.9, 0.95, 0.99)],
    ),
    ("docs/model_selection.md", r"From (\d+) labels on boosted trees", (methods.MANY_LABELS,)),
    (
        "docs/model_selection.md",
        r"Beyond ([\d,]+) rows transductive ridge has (\d+) centres",
        (methods.MOST_ROWS, methods.CENTRES),
    ),
    (
        "docs/model_selection.md",
        r"on (\d+) labels at most, and has (\d+) inducing points beyond ([\d,]+)",
        (methods.SEARCHED, plan.POINTS, methods.MOST_EXACT),
    ),
    (
        "docs/model_selection.md",
        r"Beyond ([\d,]+) rows the graph is left out",
        (methods.GRAPH_ROWS,),
    ),
    (
        "docs/report.md",
        r"at most ([\d.]+) of the simplest method's, at (\d+) known values",
        (CLEARLY_BETTER, FEWEST_TICKED),
    ),
    ("README.md", r"at least (\d+) % on average", (100 * DEFAULTS["confidence"],)),
    ("README.md", r"With (\d+) % certainty at most", (100 * DEFAULTS["certainty"],)),
]


@pytest.mark.parametrize(("page", "words", "values"), STATED)
def test_numbers_in_the_docs_are_those_of_the_code(page, words, values):
    found = re.search(words, (ROOT / page).read_text(encoding="utf-8"))
    assert found, f"{page} no longer says {words!r}"
    assert [float(group.replace(",", "")) for group in found.groups()] == pytest.approx(
        list(values)
    )


def test_the_table_of_bounds_is_that_of_the_law():
    page = (ROOT / "docs" / "conformal.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d+) \| 100 \| (\d+) \|$", page, re.M)
    assert len(lines) == 4
    for n_calibration, bound in lines:
        law = Miscoverage.at(0.9, n_unlabelled=1000, n_calibration=int(n_calibration))
        assert law.quantile(0.95) == int(bound)


def test_the_demo_prints_what_the_readme_and_the_landing_page_say(all_draws):
    table, target, truth = demo_table("diabetes")
    compared = compare_with_truth(fill(table, target, guarantee="column"), truth)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert " ".join(compared.split()) in readme, "run python docs/demo_figure.py as well"
    n_outside = re.search(r"Outside their intervals: (\d+)", compared)[1]
    assert f"of which {n_outside} are outside" in readme
    landing_page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"of which {n_outside} are outside" in landing_page
    assert f"In fact {n_outside} were." in landing_page


def test_methods_are_named_as_in_the_code():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(\w+)` \|", readme, re.M))
    assert table == {name for name in transduce.__all__ if hasattr(getattr(transduce, name), "fit")}
    commands = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    single = re.search(r"name it: ([^;]*);", " ".join(commands.split()))
    assert {"auto", *re.split(r", | or ", single[1])} == set(methods.METHODS)


def test_extras_are_named():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    named = re.search(r"# with extras: (.*)", page)[1]
    for_users = set(extras) - {"docs", "race", "bench", "test", "dev"}
    assert set(re.sub(r"\(.*?\)", "", named).replace(" ", "").split(",")) == for_users


SECTIONS = ("start", "trust", "methods/index", "application", "reference")


def listed_pages(page):
    """Return the pages that a page's tables of contents list, by their paths below docs."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```{toctree}\n(.*?)```", text, re.S)
        for line in block.split()
        if ":" not in line
    ]
    folder = PurePosixPath(page).parent
    return [posixpath.normpath(folder / line) for line in lines]


def test_every_page_is_in_one_section():
    """So that the side bar shows it, with its neighbours."""
    assert tuple(listed_pages("index")) == SECTIONS
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in PAGES[1:]}
    in_sections = [page for section in SECTIONS for page in listed_pages(section)]
    assert sorted(set(in_sections)) == sorted(in_sections)
    assert pages - {"index", *SECTIONS} == set(in_sections) - {"auto_examples/index"}


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_says_what_each_page_is_about(section):
    text = (ROOT / "docs" / f"{section}.md").read_text(encoding="utf-8")
    links = re.findall(r"^- \[.*?\]\((.*?)\.(?:md|rst)\): ", text, re.M)
    folder = PurePosixPath(section).parent
    assert [posixpath.normpath(folder / link) for link in links] == listed_pages(section)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if ":" in path or path.startswith("auto_examples"):
            continue
        other = page.parent / path if path else page
        assert other.exists(), f"{page.name} links to {target}"
        if anchor and other.suffix == ".md":
            heads = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in anchors, f"{page.name} links to {target}"


def test_slow_definitions_named_in_the_docs_exist():
    """The page that lists the papers' items names what each is held against."""
    page = (ROOT / "docs" / "items.md").read_text()
    code = "".join(path.read_text() for path in (ROOT / "tests").glob("brute*.py"))
    defined = set(re.findall(r"^def (\w+)", code, flags=re.MULTILINE))
    columns = [line.split(" | ")[-1] for line in page.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"`(\w+)`", " ".join(columns))) - {"neighbor_graph"}
    assert len(named) > 30
    assert named <= defined


def test_scripts_import_what_there_is():
    """Benchmarks, papers and examples are run by hand: a name that moved would be found late."""
    missing = []
    for folder in ("benchmarks", "papers", "examples", "docs"):
        for path in sorted((ROOT / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.ImportFrom) or node.level:
                    continue
                if (node.module or "").split(".")[0] == "transduce":
                    names = [alias.name for alias in node.names]
                    missing += [f"{path.name}: {n}" for n in names if not has(node.module, n)]
    assert missing == []


def has(module, name):
    """Return whether a module has a name, or a module of that name."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def test_explained_mutants_and_their_tests_exist(monkeypatch):
    """A change that moved to another module would be explained for ever, and reported again."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / ".ci" / "mutants.py")
    mutants = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", mutants)
    spec.loader.exec_module(mutants)
    names = set()
    for module, tests in mutants.MODULES.items():
        assert all((ROOT / path).exists() for path in tests), module
        path = mutants.SOURCE / "transduce" / f"{module.replace('.', '/')}.py"
        switches = mutants.Switches(module, 0)
        switches.visit(ast.parse(path.read_text(encoding="utf-8")))
        names |= {mutant.name for mutant in switches.mutants}
    assert mutants.explained() - names == set()
