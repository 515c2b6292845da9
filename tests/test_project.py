"""Guarantees about the project itself: everything public is documented, versions agree, imports go down only."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import transduce

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "transduce"


@pytest.mark.parametrize("name", transduce.__all__)
def test_public_names_are_documented_with_an_example(name):
    public = getattr(transduce, name)
    assert ">>>" in inspect.getdoc(public), f"{name} has no example"
    assert re.search(rf"^   {name}$", (ROOT / "docs" / "api.md").read_text(), re.M), (
        f"{name} is not in docs/api.md"
    )


@pytest.mark.parametrize("name", transduce.__all__)
def test_public_methods_are_documented(name):
    for method, value in inspect.getmembers(getattr(transduce, name), inspect.isfunction):
        if not method.startswith("_") and value.__module__.startswith("transduce"):
            assert inspect.getdoc(value), f"{name}.{method} has no docstring"


def test_settings_are_described():
    """Every setting of an estimator is a parameter of its docstring, alone or in a list of names."""
    for name in transduce.__all__:
        public = getattr(transduce, name)
        if not hasattr(public, "get_params"):
            continue
        parameters = inspect.getdoc(public).partition("Parameters\n")[2].partition("Attributes\n")[0]
        named = set(re.findall(r"\w+", " ".join(re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", parameters, re.M))))
        assert set(public._get_param_names()) <= named, name


def test_versions_agree():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == transduce.__version__
    assert f"## {transduce.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_lock_files_name_no_index():
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"://|--index|--find-links", text), lock


LAYERS = [
    {"_typing", "_catalogue"},
    {
        "answer",
        "sample",
        "kernels",
        "linalg",
        "moments",
        "folds",
        "billiard",
        "residual_lines",
        "break_even",
        "progress",
        "blending",
        "number_text",
        "writing",
        "datasets",
    },
    {
        "delimited",
        "vectorize",
        "residual_window",
        "loo",
        "gaussian",
        "votes",
        "rejection",
        "neighbors",
        "chebyshev",
    },
    {
        "filled",
        "table",
        "nonconformity",
        "completion",
        "gaussian_search",
        "bayesian",
        "cells",
        "spectrum",
        "display._axes",
    },
    {"graph", "cut"},
    {
        "display.column",
        "display.comparison",
        "display.gaussian",
        "display.graph",
        "display.regions",
        "display.rejection",
        "display.ridge",
    },
    {"column", "selection", "table_features"},
    {"urn", "calibration", "exchangeability"},
    {"methods._shell", "methods._transducer"},
    {
        "methods._confidence_shell",
        "methods._ridge_shell",
        "methods._gaussian_shell",
        "methods._bayesian_shell",
        "methods._graph_shell",
        "methods._asking",
        "methods._scoring",
    },
    {
        "methods.bayesian_transducer",
        "methods.gaussian_process",
        "methods.neighbor_choice",
        "methods.spectral_graph",
        "methods.confidence_machine",
        "methods.confidence_classifier",
        "methods.ridge",
        "methods.ridge_classifier",
        "methods._folding",
    },
    {"members", "model_selection", "shares", "target"},
    {"_blend_shell", "_search_results", "method_choice"},
    {"blend", "search_cv"},
    {"_conformal_shell", "_conformal_guarantee", "_conformal_values"},
    {"_conformal_table", "_conformal_wrapper"},
    {"conformal"},
    {"report.wording", "report.svg"},
    {"report.quality", "report.rows", "report.sentences"},
    {"report.figures", "report.summarize"},
    {"report.render"},
    {"fill_methods", "new_columns"},
    {"findings"},
    {"filling"},
    {"demonstration"},
    {"terminal"},
    {"cli"},
    {"__main__"},
]


def test_imports_go_down_only():
    """A module imports from lower layers only; no method imports another."""
    depth = {module: i for i, layer in enumerate(LAYERS) for module in layer}
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if module.endswith("__init__"):
            continue
        assert module in depth, f"{module} has no place in LAYERS"
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transduce")):
                continue
            target = node.module.removeprefix("transduce").removeprefix(".")
            targets = (
                [target] if target in depth else [f"{target}.{alias.name}".strip(".") for alias in node.names]
            )
            for imported in targets:
                assert depth[imported] < depth[module], f"{module} imports {imported}"


def test_readme_code_runs(tmp_path, monkeypatch):
    """The README's and the quickstart's Python blocks run as they stand."""
    monkeypatch.chdir(tmp_path)
    for page in ("README.md", "docs/quickstart.md", "docs/guarantees.md", "docs/conformal.md"):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
        assert blocks
        names: dict = {}
        for block in blocks:
            if "logging" not in block:
                exec(compile(block, page, "exec"), names)
