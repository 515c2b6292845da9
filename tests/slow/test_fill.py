"""Guarantee against truth over 100 random maskings of bundled tables, filled as a user would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import betabinom, kstest

from tests.app.filling.test_fill import coverage
from transduce import fill
from transduce.app.cli.commands import compare_with_truth, demo_table

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
    """`make demo`'s comparison with the truth stands in the README, word for word."""
    table, target, truth = demo_table("diabetes")
    said = compare_with_truth(fill(table, target, guarantee="column"), truth)
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    assert " ".join(said.split()) in readme
