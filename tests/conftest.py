"""Settings for all tests: deterministic Hypothesis, no window for plots."""

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile("house", deadline=None, derandomize=True, max_examples=60, print_blob=True)
settings.load_profile("house")
