"""Labels that are limits, such as "<0.5": intervals are open there, wherever rows are answered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests import brute
from transduce import fill
from transduce.app.filling import fill_folder, fit_fill, load, save
from transduce.core.answer import Regions

SETTINGS = {"method": "ridge", "task": "regression"}


def table_of(seed=0, n=240, low=-0.5, high=np.inf, labelled=90):
    """Return a table whose labels are limits beyond some, and the true values."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    truth = (a + 0.3 * rng.normal(size=n)).round(3)
    low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    texts = np.where(
        truth < low,
        [f"<{x:g}" for x in low],
        np.where(truth > high, [f">{x:g}" for x in high], truth),
    )
    known = rng.permutation(n) < labelled
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=n)})
    return frame.assign(y=np.where(known, texts, None)), truth, known


def inside(new, truth):
    return (new["y_lower"] <= truth) & (truth <= new["y_upper"])


def test_open_regions_hold_whatever_a_limit_hides():
    """Wherever the limit that is written is in a region, all that it may stand for is."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        ends = np.sort(rng.integers(-6, 7, size=4)).astype(float)
        pieces = (
            [(ends[0], ends[1]), (ends[2], ends[3])] if ends[2] > ends[1] else [(ends[0], ends[3])]
        )
        below, above = np.sort(rng.choice(np.arange(-6, 7), 2, replace=False)).astype(float)
        rows = [pieces, [], pieces[:1], pieces[-1:]]
        fast = Regions.from_pieces(rows).opened(below, above)
        for y in np.arange(-9.0, 9.5, 0.5):
            slow = [brute.possible_beyond_limits(row, y, below, above) for row in rows]
            assert fast.contains(y).tolist() == slow


@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_intervals_are_open_and_values_are_limits(guarantee):
    frame, truth, known = table_of(high=1.0)
    result = fill(frame, "y", guarantee=guarantee, **SETTINGS)
    new = result.new[~known]
    assert np.mean(inside(new, truth[~known])) > 0.85
    assert not ((new["y_lower"] > -np.inf) & (new["y_lower"] <= -0.5)).any()
    assert not ((new["y_upper"] < np.inf) & (new["y_upper"] >= 1.0)).any()
    assert new["y_filled"].between(-0.5, 1.0).all()
    assert (new["y_status"] == "below").equals(new["y_filled"] == -0.5)
    assert (new["y_status"] == "above").equals(new["y_filled"] == 1.0)
    assert {"below", "above", "answered"} == set(new["y_status"])
    limits = result.guarantee.limits
    assert (limits.below, limits.above, limits.differ) == (-0.5, 1.0, False)
    assert "is open downwards" in result.guarantee.statement
    assert "no row has a limit beyond those of the labels" in result.guarantee.grounds
    summary = result.summary()
    assert summary["guarantee"]["limits"]["below"] == -0.5
    assert summary["counts"]["below"] == int((new["y_status"] == "below").sum())
    assert "open there" in summary["cards"][1]["small"]


def test_limits_that_differ_and_one_that_is_named():
    low = np.random.default_rng(1).choice([-1.0, -0.5, 0.0], 240)
    frame, _, known = table_of(low=low)
    result = fill(frame, "y", guarantee="column", **SETTINGS)
    assert result.guarantee.limits.below == 0.0
    assert "Detection limits differ from label to label" in result.guarantee.grounds
    named = result.with_options(limit="<0.3", minimum=-9)
    assert named.guarantee.limits.below == 0.3
    assert "no row has a limit beyond" not in named.guarantee.grounds
    ends = named.new["y_lower"][~known]
    assert ((ends == -9) | (ends > 0.3)).all()
    assert ".with_options(minimum=-9, limit=['<0.3'])" in named.again
    assert result.with_options(limit=["<-3"]).guarantee.limits.below == 0.0
    with pytest.raises(ValueError, match=r"is a limit such as '<0.5' or '>100'; got"):
        result.with_options(limit=["0.5"])


def test_limits_of_either_side_that_overlap():
    """Where one row's "<0.4" and another's ">-0.4" overlap, a value between them is neither below nor above."""
    rng = np.random.default_rng(2)
    low, high = rng.choice([-0.6, 0.4], 240), rng.choice([-0.4, 0.6], 240)
    frame, truth, known = table_of(low=np.minimum(low, high), high=high)
    new = fill(frame, "y", **SETTINGS).new[~known]
    assert inside(new, truth[~known]).mean() > 0.85
    answered = new["y_status"] == "answered"
    assert answered.any()
    assert new["y_filled"][answered].between(-0.4, 0.4).all()
    assert (new["y_filled"][new["y_status"] == "below"] == 0.4).all()
    assert (new["y_width_reduction"] == 0.0).all()


def test_rows_outside_the_fit_and_rows_that_come_later(tmp_path):
    """The only limits are in labels that a sample need not see: the whole table's count, also in a saved file."""
    frame, truth, known = table_of(n=700, labelled=200)
    settings = SETTINGS | {"sample": 100}
    result = fill(frame, "y", **settings)
    assert result.seen.is_sample
    assert result.later_rows.reading.limits.below == -0.5
    assert np.mean(inside(result.new[~known], truth[~known])) > 0.85
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(2):
        frame.iloc[350 * k : 350 * k + 350].to_csv(parts / f"{k}.csv", index=False)
    folder = fill_folder(str(parts), "y", tmp_path / "out", **settings)
    assert folder.guarantee.limits == result.guarantee.limits
    filled = pd.concat([pd.read_csv(path) for path in sorted((tmp_path / "out").glob("*.csv"))])
    assert set(filled["y_status"]) == {"below", "answered", "given"}
    fitted = fit_fill(frame, "y", **settings)
    later = pd.DataFrame({"a": [-1.5, 0.0, 2.0], "b": 0.0})
    new = fitted.new_columns(later)
    assert new["y_status"].tolist() == ["below", "answered", "answered"]
    assert np.isinf(new["y_lower"][0])
    assert fitted.guarantee_of_later(3).limits.below == -0.5
    save(tmp_path / "m.transduce", frame, "y", **settings)
    again = load(tmp_path / "m.transduce")
    assert again.reading.limits == fitted.reading.limits
    pd.testing.assert_frame_equal(again.new_columns(later), new)
