"""Settings for all tests: deterministic Hypothesis, no window for plots, forests of few trees."""

import os
from pathlib import Path

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")
SOURCE = Path(__file__).parents[1] / "src" / "transduce"
for name, examples in {"fast": 25, "slow": 300}.items():
    settings.register_profile(name, deadline=None, derandomize=True, max_examples=examples, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(autouse=True, scope="module")
def few_trees(request):
    """Forests of a fifth of their trees, or a third: every row is still out of some tree; tests/slow has them all."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "slow":
            patch.setattr("transduce.model_selection.methods.TREES", 40)
            patch.setattr("transduce.methods.confidence_machine.menu.N_TREES", 30)
            patch.setattr("transduce.conformal.exchangeability.N_TREES", 20)
        yield


def pytest_configure(config):
    """Compile again what is older than a compiled source: numba looks at a function's own file alone."""
    if hasattr(config, "workerinput"):
        return
    indexes = list(SOURCE.rglob("*.nbi"))
    sources = {index.parents[1] / f"{index.name.partition('.')[0]}.py" for index in indexes}
    newest = max((source.stat().st_mtime for source in sources if source.exists()), default=0.0)
    for index in indexes:
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)
