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
    "filling",
    "labelling",
    "metrics",
    "model_selection",
]
ROOMS += [
    f"methods.{paper}"
    for paper in ("billiard", "confidence_machine", "gaussian_process", "ridge", "spectral_graph")
]


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


BELOW = {
    "core": set(),
    "device": {"core"},
    "metrics": {"core"},
    "tables": {"core"},
    "datasets": {"core"},
    "display": {"core", "metrics"},
}
BELOW |= {"methods": {"core", "device", "metrics"}}
BELOW |= {"model_selection": BELOW["methods"] | {"methods"}}
BELOW |= {"ensemble": BELOW["model_selection"] | {"model_selection"}}
BELOW |= {"conformal": BELOW["model_selection"] | {"model_selection", "tables"}}
BELOW |= {"report": {"core", "metrics", "tables", "conformal", "display"}}
BELOW |= {"filling": set(BELOW) - {"datasets"}, "labelling": {*BELOW, "filling"}}
BELOW |= {"page": set(BELOW)}
BELOW |= {"cli": set(BELOW), "__main__": {"cli"}, "__init__": set(BELOW)}


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
    """A room imports the rooms below it alone, and no method imports another."""
    for here, there, _ in imports():
        assert there[0] == here[0] or there[0] in BELOW[here[0]], (
            f"{'.'.join(here)} opens {'.'.join(there)}"
        )
        if here[0] == there[0] == "methods":
            assert here[1] == there[1], f"{'.'.join(here)} opens {'.'.join(there)}"


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


@pytest.mark.parametrize("code", ["import transduce", "import transduce.cli.app"])
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
        "transduce.cli",
        "transduce.cli.app",
        "transduce.cli.terminal",
    }
    light |= {"transduce.core", "transduce.core.words", "transduce.core.computing"}
    light |= {"transduce.model_selection", "transduce.model_selection.methods"}
    light |= {
        "transduce.core.checks",
        "transduce.core.types",
        "transduce.filling",
        "transduce.filling.options",
    }
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
        for room in ("billiard", "confidence_machine", "spectral_graph", "ridge")
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
