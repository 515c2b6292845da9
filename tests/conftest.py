"""Settings for all tests: deterministic Hypothesis, no window for plots, forests of few trees."""

import os

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")
for name, examples in {"fast": 25, "slow": 300}.items():
    settings.register_profile(name, deadline=None, derandomize=True, max_examples=examples, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(autouse=True, scope="module")
def few_trees(request):
    """Forests of 40 trees, a fifth: every row is still out of some tree's sample; tests/slow has them all."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "slow":
            patch.setattr("transduce.model_selection.methods.TREES", 40)
        yield
