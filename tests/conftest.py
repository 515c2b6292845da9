"""Settings for all tests: deterministic Hypothesis, no window for plots, forests of few trees."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile_once import compile_once
from tests.few_draws import take_few_draws

os.environ.setdefault("MPLBACKEND", "Agg")
SOURCE = Path(__file__).parents[1] / "src" / "transduce"
for name, examples in {"fast": 15, "slow": 300}.items():
    settings.register_profile(
        name, deadline=None, derandomize=True, max_examples=examples, print_blob=True
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Rooms and files whose tests compile most loops, and those that need few of them.
COMPILES = (
    "test_tuned.py",
    "confidence_machine",
    "test_trees.py",
    "model_selection",
    "spectral_graph",
    "bayesian",
)
NEEDS_FEW = (
    "gaussian_process",
    "ridge",
    "labelling",
    "core",
    "device",
    "display",
    "test_project.py",
    "tables",
)


def pytest_sessionstart():
    """Look for garbage only among what tests leave: modules and tests, half a million objects, stay."""
    gc.disable()


def pytest_collection_finish():
    given(st.none())(lambda _: None)()  # an older Hypothesis does not look among what is frozen
    gc.freeze()
    gc.set_threshold(5000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Order the tests for several workers, each of which begins elsewhere and goes on from there.

    Tests in a browser come first: the first worker owns the only browser. Tests that compile follow
    each other where the second worker begins: it compiles for the others.
    """

    def place(item, rooms):
        return next((k for k, room in enumerate(rooms) if room in item.path.parts), len(rooms))

    browsing = [item for item in items if item.path.name.endswith("browser.py")]
    rest = [item for item in items if not item.path.name.endswith("browser.py")]
    compile_most = [item for item in rest if place(item, COMPILES) < len(COMPILES)]
    others = [item for item in rest if place(item, COMPILES) == len(COMPILES)]
    compile_most.sort(key=lambda item: place(item, COMPILES))
    others.sort(key=lambda item: place(item, NEEDS_FEW))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "2"))
    before = max(len(items) // workers - len(browsing), 0)
    items[:] = browsing + others[:before] + compile_most + others[before:]


# What a required job must test, by the words of the reason with which tests of it are skipped.
SKIPS_OF = {"browser": "NOT TESTED", "torch": "torch is not installed"}
MUST_TEST = [name for name in os.environ.get("TRANSDUCE_MUST_TEST", "").split(",") if name]


def _fail_a_forbidden_skip(report):
    """Turn a skip into a failure, if a required job was to test just that."""
    if not report.skipped:
        return
    for name in MUST_TEST:
        if SKIPS_OF[name] in str(report.longrepr):
            report.outcome = "failed"
            report.longrepr = f"TRANSDUCE_MUST_TEST asks for {name}, but: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    _fail_a_forbidden_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    _fail_a_forbidden_skip(outcome.get_result())


@pytest.fixture(autouse=True, scope="module")
def few_draws(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "slow":
            take_few_draws(patch)
        yield patch


@pytest.fixture
def all_draws(few_draws):
    """Take as many trees and permutations as the program does."""
    few_draws.undo()
    yield
    take_few_draws(few_draws)


@pytest.fixture
def no_figures(monkeypatch):
    """Where a page's words are looked at, its figures, which take longest, are not drawn."""
    monkeypatch.setattr("transduce.app.report.render.draw", lambda *_: "<svg></svg>")


class FewOfMany:
    """Marks as slow all but a few cases of a test with many, if it is marked ``few(number)``.

    Those that stay are spread over all parameters: where two lists are multiplied, each gives some.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        cases = {}
        for item in items:
            if item.get_closest_marker("few"):
                cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        for same_test in cases.values():
            number = same_test[0].get_closest_marker("few").args[0]
            places = sorted(range(len(same_test)), key=lambda place: place * 0.618 % 1)
            for place in places[number:]:
                same_test[place].add_marker(pytest.mark.slow)


def pytest_configure(config):
    """Compile again what is older than a compiled source: numba looks at a function's own file alone."""
    config.pluginmanager.register(FewOfMany())
    compile_once()
    if hasattr(config, "workerinput"):
        return
    indexes = list(SOURCE.rglob("*.nbi"))
    sources = {index.parents[1] / f"{index.name.partition('.')[0]}.py" for index in indexes}
    newest = max((source.stat().st_mtime for source in sources if source.exists()), default=0.0)
    for index in indexes:
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)
