"""Rows inside the fit's sample and rows outside of it: the numbers of both that lie outside their intervals.

Chance alone says which rows of a fixed table are labelled. Then the number of rows outside has, in each group, the
distribution `Miscoverage` of its own calibration labels, and different splits are independent. How often it exceeds a
quantile of that distribution is binomial, with a known probability.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from transduce.app.filling import fill_folder
from transduce.conformal import Miscoverage

N_ROWS, N_LABELS, SAMPLE, CONFIDENCE = 600, 60, 200, 0.8
SETTINGS = {
    "method": "ridge",
    "sample": SAMPLE,
    "confidence": CONFIDENCE,
    "guarantee": "column",
    "ignore": ["row"],
}


def table(task="regression"):
    random = np.random.default_rng(5)
    X = random.normal(size=(N_ROWS, 2))
    truth = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * (1 + np.abs(X[:, 0])) * random.normal(size=N_ROWS)
    if task == "classification":
        truth = np.array(list("abc"))[np.digitize(truth, [-0.6, 0.6])]
    return pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "row": np.arange(N_ROWS)}), truth


def split_counts(folder, split, task="regression"):
    """Return for the rows in the sample, and for all others, how many are outside, and the law of that number."""
    frame, truth = table(task)
    shown = np.random.default_rng([split, 11]).permutation(N_ROWS)[:N_LABELS]
    labels = pd.Series(
        np.nan if task == "regression" else None, index=frame.index, dtype=pd.Series(truth).dtype
    )
    labels.iloc[shown] = truth[shown]
    frame.assign(y=labels).to_parquet(folder / f"{split}.parquet", index=False)
    found = fill_folder(
        str(folder / f"{split}.parquet"),
        "y",
        folder / f"out{split}",
        random_state=split,
        **SETTINGS,
    )
    new = pd.read_parquet(folder / f"out{split}" / found.frame.parts[0]).sort_values("row")
    if task == "regression":
        out = ((truth < new["y_lower"]) | (truth > new["y_upper"])).to_numpy()
    else:
        pairs = zip(truth, new["y_set"].fillna(""), strict=True)
        out = np.array([label not in text.split(" | ") for label, text in pairs])
    unlabelled = np.setdiff1d(np.arange(N_ROWS), shown)
    inside = np.intersect1d(found.shown["row"].to_numpy(), unlabelled)
    outside = np.setdiff1d(unlabelled, inside)
    assert len(inside) == SAMPLE
    laws = [
        Miscoverage.at(CONFIDENCE, n_unlabelled=len(rows), n_calibration=c)
        for rows, c in (
            (inside, len(found.model.calibration_rows_)),
            (outside, len(found.later_rows.outside.table.labels)),
        )
    ]
    return [(int(out[rows].sum()), law) for rows, law in zip((inside, outside), laws, strict=True)]


def check_laws(found, exact=(False, True)):
    """Hold counts of many splits against their law, where it is not exact from above only.

    Inside the sample an interval is extended where the value of the fit to all labels would be outside, so that fewer
    rows than stated are; so it is in both groups where scores are equal.
    """
    for group in (0, 1):
        counts, law = np.array([pair[group][0] for pair in found]), found[0][group][1]
        assert all(pair[group][1].n_calibration == law.n_calibration for pair in found)
        total = np.cumsum(law.probabilities)
        for level in (0.5, 0.9):
            edge = int(np.searchsorted(total, level))
            above, chance = int((counts > edge).sum()), 1.0 - total[edge]
            assert binom.sf(above - 1, len(counts), chance) > 1e-5, (group, level)
            if exact[group]:
                assert binom.cdf(above, len(counts), chance) > 1e-5, (group, level)


@pytest.mark.timeout(300)
def test_rows_inside_and_outside_of_the_sample(tmp_path):
    check_laws([split_counts(tmp_path, split) for split in range(5)])


def test_a_wrong_level_would_be_noticed():
    """Counts of a level that is off by ten points fail, as counts of the level itself do not."""
    random = np.random.default_rng(0)
    right, wrong = Miscoverage(340, 24, 20), Miscoverage(340, 24, 17)

    def drawn(law):
        numbers = random.choice(341, 300, p=law.probabilities / law.probabilities.sum())
        return [((int(number), right), (int(number), right)) for number in numbers]

    check_laws(drawn(right))
    with pytest.raises(AssertionError):
        check_laws(drawn(wrong))
