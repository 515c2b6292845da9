"""Draw docs/images/fill.png, the README's picture of the demo: python docs/demo_figure.py.

Its numbers are those of `transduce demo`; the script refuses to draw them if the README has others.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from transduce import fill
from transduce.app.cli.demonstration import compare_with_truth, demo_table
from transduce.display import MiscoverageDisplay, RegionDisplay

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Fill the demo's table, compare with the README, and draw."""
    table, target, truth = demo_table("diabetes")
    result = fill(table, target, guarantee="column")
    comparison = " ".join(compare_with_truth(result, truth).split())
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    if comparison not in readme:
        raise SystemExit(f"The README has other numbers. The demo prints: {comparison}")
    answer = result.answer
    hidden = truth.to_numpy()[answer.rows]
    n_outside = int(np.sum(~answer.regions.contains(hidden)))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.4), layout="constrained", width_ratios=[2, 1]
    )
    RegionDisplay.from_answer(answer, y_true=hidden, ax=left)
    left.set(
        title=f"292 predictions with their intervals, and the truth: {n_outside} are outside",
        xlabel="unlabelled rows, sorted by prediction",
        ylabel="progression of the disease",
    )
    MiscoverageDisplay.from_law(result.model.miscoverage_, truth=n_outside, ax=right)
    right.set(title="What was known beforehand")
    figure.savefig(ROOT / "docs" / "images" / "fill.png", dpi=110)


if __name__ == "__main__":
    main()
