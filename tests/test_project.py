"""Guarantees about the project itself: everything public is documented, versions agree, imports go down only."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import transduce

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "transduce"
FILES = sorted(SOURCE.rglob("*.py"))


@cache
def tree(path):
    """Return the syntax tree of a file, parsed once for all tests."""
    return ast.parse(path.read_text())


ROOMS = [
    "conformal",
    "device",
    "datasets",
    "display",
    "ensemble",
    "metrics",
    "model_selection",
    "population",
    "app.auditing",
    "app.filling",
    "app.labelling",
]
PAPERS = ("bayesian", "confidence_machine", "gaussian_process", "ridge", "spectral_graph")
ROOMS += [f"methods.{paper}" for paper in PAPERS]


def public_names():
    """Yield every public name with what it stands for: the front door's, and those of the rooms."""
    for name in transduce.__all__:
        if name != "__version__":
            yield name, getattr(transduce, name)
    for room in ROOMS:
        module = import_module(f"transduce.{room}")
        for name in getattr(module, "__all__", ()):
            if callable(getattr(module, name)):
                yield name, getattr(module, name)


PUBLIC = dict(public_names())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented_with_an_example(name):
    assert ">>>" in inspect.getdoc(PUBLIC[name]), f"{name} has no example"
    assert re.search(rf"^   {name}$", (ROOT / "docs" / "api.md").read_text(), re.M), (
        f"{name} is not in docs/api.md"
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_public_methods_are_documented(name):
    for method, value in inspect.getmembers(PUBLIC[name], inspect.isfunction):
        if not method.startswith("_") and value.__module__.startswith("transduce"):
            assert inspect.getdoc(value), f"{name}.{method} has no docstring"


def test_settings_are_described():
    """Every setting of an estimator is a parameter of its docstring, alone or in a list of names."""
    for name, public in PUBLIC.items():
        if not hasattr(public, "get_params"):
            continue
        parameters = (
            inspect.getdoc(public).partition("Parameters\n")[2].partition("Attributes\n")[0]
        )
        named = set(
            re.findall(r"\w+", " ".join(re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", parameters, re.M)))
        )
        assert set(public._get_param_names()) <= named, name


def words_of_type(annotation):
    """Return the words that a type allows, "" left out."""
    words = set()
    if get_origin(annotation) is Literal:
        words = {word for word in get_args(annotation) if isinstance(word, str)}
    else:
        for part in get_args(annotation):
            words |= words_of_type(part)
    return words - {""}


def test_types_allow_the_words_that_docstrings_name():
    """A parameter of the science that is one of some words has them in docstring and type."""
    for name, public in PUBLIC.items():
        if public.__module__.startswith("transduce.app"):
            continue
        function = public.__init__ if inspect.isclass(public) else public
        try:
            types = get_type_hints(function)
        except (NameError, TypeError):  # imported for type checkers alone
            continue
        for names, kind in re.findall(r"^([a-z_, ]+) : (.*)$", inspect.getdoc(public), re.M):
            described = set(re.findall(r'"([\w-]+)"', kind.partition("default")[0]))
            for parameter in names.split(", "):
                allowed = words_of_type(types.get(parameter))
                if described and parameter in types:
                    assert allowed == described, f"{name}: {parameter}"


def test_an_unknown_setting_names_the_estimator():
    for name, public in PUBLIC.items():
        if hasattr(public, "get_params"):
            with pytest.raises(TypeError, match=rf"^{name}\."):
                public(no_such_setting=1)


def test_versions_agree():
    """The version stands in the package alone; the build reads it there."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in settings["project"]
    assert ROOT / settings["tool"]["hatch"]["version"]["path"] == Path(transduce.__file__)
    assert f"## {transduce.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_lock_files_name_no_index():
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"://|--index|--find-links", text), lock


def test_locked_versions_are_locked_with_their_extras():
    """pip takes the newest version of a package with an extra, whatever the lock says of it without one."""
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    locked = set(re.findall(r"^([\w.-]+)", lock, re.M))
    asked = {
        with_extra[0].lower()
        for package in distributions()
        if package.name.lower().replace("_", "-") in locked
        for line in package.requires or ()
        if "extra ==" not in line and (with_extra := re.match(r"[\w.-]+\[[\w,-]+\]", line))
    }
    assert "coverage[toml]" in asked
    assert [name for name in sorted(asked) if f"\n{name}==" not in lock] == []


# Which rooms each room of the science may open.
SCIENCE = {
    "core": set(),
    "device": {"core"},
    "metrics": {"core"},
    "datasets": {"core"},
    "display": {"core", "metrics"},
    "methods": {"core", "device", "metrics"},
    "population": {"core"},
}
SCIENCE["model_selection"] = {"core", "device", "metrics", "methods"}
SCIENCE["ensemble"] = SCIENCE["model_selection"] | {"model_selection"}
SCIENCE["conformal"] = SCIENCE["model_selection"] | {"model_selection", "population"}

# Which rooms of the application each of its rooms may open, besides the science.
APPLICATION: dict[str, set[str]] = {
    "tables": set(),
    "estimating": {"tables"},
    "report": {"tables", "estimating"},
    "filling": {"tables", "estimating", "report"},
    "auditing": {"tables", "report"},
    "labelling": {"tables", "estimating", "report", "filling", "auditing"},
    "page": {"tables", "estimating", "report", "filling", "labelling", "auditing"},
    "cli": {"tables", "estimating", "report", "filling", "labelling", "auditing", "page"},
}


@cache
def imports():
    """Return room, module and names of every import of this package from itself, except those for annotations alone."""
    found = []
    for path in FILES:
        parts = path.relative_to(SOURCE).with_suffix("").parts
        checking = [
            node
            for node in tree(path).body
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ]
        annotations = {id(node) for block in checking for node in ast.walk(block)}
        found += [
            (parts, node.module.split(".")[1:], [alias.name for alias in node.names])
            for node in ast.walk(tree(path))
            if id(node) not in annotations
            and isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("transduce.")
        ]
    return found


def test_doors():
    """A room opens the rooms below it alone, and no method opens another."""
    for here, there, _ in imports():
        opens = f"{'.'.join(here)} opens {'.'.join(there)}"
        if here[0] in ("__init__", "__main__"):
            continue
        if here[0] == "app":
            if there[0] == "app" and len(here) > 2 and len(there) > 1:
                assert there[1] == here[1] or there[1] in APPLICATION[here[1]], opens
            continue
        assert there[0] == here[0] or there[0] in SCIENCE[here[0]], opens
        if here[0] == there[0] == "methods":
            assert here[1] == there[1], opens


def test_the_science_never_imports_the_application():
    """Whoever wants the estimators alone needs nothing that reads files, speaks sentences or serves pages."""
    for here, there, _ in imports():
        if here[0] not in ("app", "__init__", "__main__"):
            assert there[0] != "app", f"{'.'.join(here)} opens {'.'.join(there)}"


LIBRARIES_OF_THE_SCIENCE = {
    "numpy",
    "scipy",
    "sklearn",
    "numba",
    "pandas",
    "joblib",
    "threadpoolctl",
}
# Imported only where something is drawn, or where an array of theirs is given.
WHEN_NEEDED = {"matplotlib", "array_api_compat", "torch", "triton", "polars"}


def test_the_science_needs_seven_libraries():
    for path in FILES:
        parts = path.relative_to(SOURCE).parts
        if parts[0] in ("app", "__main__.py"):
            continue
        for node in ast.walk(tree(path)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            libraries = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
            others = libraries - LIBRARIES_OF_THE_SCIENCE - WHEN_NEEDED - {"transduce"}
            assert not others, f"{path} imports {others}"


def test_tests_of_the_science_never_import_the_application():
    """`make science` runs them where nothing that the application needs is installed."""
    makefile = (ROOT / "Makefile").read_text()
    rooms = re.search(r"addprefix tests/,([\w .]+)\)", makefile)[1].split()
    paths = [*(ROOT / "tests").glob("*.py")]
    paths = [path for path in paths if path.name.startswith(("brute", "contract", "strategies"))]
    for room in rooms:
        place = ROOT / "tests" / room
        paths += [place] if place.suffix else place.rglob("*.py")
    in_application = {name for name, home in transduce._HOMES.items() if ".app" in home}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            names = {alias.name for alias in node.names}
            front_door = node.module == "transduce" and names & (in_application | {"app"})
            inside = (node.module or "").startswith(("transduce.app", "tests.app"))
            place = f"{path.relative_to(ROOT)}, line {node.lineno}"
            assert not front_door, place
            assert not inside, place


def test_rooms_talk_through_public_names():
    for here, there, names in imports():
        if here[: len(there) - 1] != tuple(there[:-1]):
            private = [
                name
                for name in [*there, *names]
                if name.startswith("_") and not name.startswith("__")
            ]
            assert not private, f"{'.'.join(here)} imports {private}"


HEAVY = {
    "numba",
    "scipy",
    "sklearn",
    "pandas",
    "matplotlib",
    "numpy",
    "rich",
    "skrub",
    "pyarrow",
    "joblib",
}


@pytest.mark.parametrize("code", ["import transduce", "import transduce.app.cli.app"])
def test_the_front_door_is_light(code):
    """Names are imported when first used: these modules of ours are all that the door itself loads."""
    run = f"{code}\nimport sys\nprint(*sys.modules)"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", run], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    allowed = {"numpy", "rich"} if "cli" in code else set()
    assert not (HEAVY - allowed) & loaded
    ours = {name for name in loaded if name.startswith("transduce")}
    light = {
        "transduce",
        "transduce.app",
        "transduce.app.cli",
        "transduce.app.cli.app",
        "transduce.app.cli.terminal",
    }
    light |= {"transduce.core", "transduce.core.words", "transduce.core.computing"}
    light |= {"transduce.model_selection", "transduce.model_selection.methods"}
    light |= {
        "transduce.core.checks",
        "transduce.core.types",
        "transduce.app.filling",
        "transduce.app.filling.options",
    }
    light |= {"transduce.core.ranks", "transduce.core.records", "transduce.core.guarantee"}
    light |= {"transduce.core.assumptions", "transduce.core.findings"}
    light |= {"transduce.core.guarantee_sentences"}
    light |= {"transduce.conformal"}
    designs = "transduce.conformal.designs"
    light |= {name for name in ours if name.partition(designs)[0] == ""}
    assert not {f"{designs}.reading", f"{designs}.propensity"} & ours
    assert ours <= (light if "cli" in code else {"transduce", "transduce.core"})


def test_a_fill_imports_what_it_asks_for():
    """Compiled loops, trees, scores, templates and methods wait until a table needs them."""
    run = "from transduce import fill\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    later = {
        "numba",
        "matplotlib",
        "jinja2",
        "skrub",
        "sklearn.ensemble",
        "sklearn.metrics",
        "sklearn.linear_model",
    }
    later |= {
        f"transduce.methods.{room}"
        for room in ("bayesian", "confidence_machine", "spectral_graph", "ridge")
    }
    assert not later & set(done.stdout.split())


def test_readme_code_runs(tmp_path, monkeypatch):
    """The README's and the quickstart's Python blocks run as they stand."""
    monkeypatch.chdir(tmp_path)
    for page in (
        "README.md",
        "docs/quickstart.md",
        "docs/own_models.md",
        "docs/guarantees.md",
        "docs/conformal.md",
    ):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
        assert blocks
        names: dict = {}
        for block in blocks:
            if "logging" not in block and "catboost" not in block:
                exec(compile(block, page, "exec"), names)
