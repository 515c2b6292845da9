"""Guarantee against truth over 100 random maskings of bundled tables, filled as a user would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import betabinom, kstest

from tests.app.filling.test_fill import coverage
from transduce import fill
from transduce.app.cli.demonstration import compare_with_truth, demo_table

N_MASKINGS = 100


@pytest.mark.parametrize(
    ("name", "n_labels", "method"),
    [
        ("diabetes", 100, "ridge"),
        ("diabetes", 60, "auto"),
        ("wine", 60, "ridge"),
        ("breast-cancer", 80, "ridge"),
    ],
)
def test_shares_outside_follow_the_law(name, n_labels, method, monkeypatch):
    monkeypatch.setattr(
        "transduce.model_selection.methods.TREES", 40
    )  # the law holds for forests of any size
    _, target, truth = demo_table(name)
    frame = demo_table(name)[0].assign(**{target: truth})
    outside, law = coverage(frame, target, N_MASKINGS, n_labels, method=method)
    exact = betabinom(law.n_unlabelled, law.n_calibration + 1 - law.rank, law.rank)
    margin = 3.5 * exact.std() / np.sqrt(N_MASKINGS)
    assert outside.mean() <= exact.mean() + margin
    assert np.mean(outside <= exact.ppf(0.95)) >= 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / N_MASKINGS)
    if name == "diabetes":  # numbers have no ties: the law holds with equality
        assert outside.mean() >= exact.mean() - margin
        random = np.random.default_rng(0).uniform(size=N_MASKINGS)
        shares = exact.cdf(outside - 1) + random * exact.pmf(outside)
        assert kstest(shares, "uniform").pvalue > 0.001


def test_the_readme_shows_what_the_demo_prints():
    """The demo's comparison with the truth stands in the README, word for word, and on the landing page."""
    table, target, truth = demo_table("diabetes")
    result = fill(table, target, guarantee="column")
    comparison = " ".join(compare_with_truth(result, truth).split())
    root = Path(__file__).parents[2]
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    assert comparison in readme
    assert result.guarantee.statement.partition("certainty ")[2] in readme
    n_outside = int(np.sum(~result.answer.contains(truth.to_numpy()[result.answer.rows])))
    landing = (root / "docs" / "index.md").read_text(encoding="utf-8")
    most = result.guarantee.outside.at_most
    assert f"At most {most} of them could be outside" in landing
    assert f"with 95 % certainty; {n_outside} were." in landing
