"""Settings for all tests: deterministic Hypothesis, no window for plots."""

import os

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
for name, examples in {"fast": 25, "slow": 300}.items():
    settings.register_profile(name, deadline=None, derandomize=True, max_examples=examples, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
