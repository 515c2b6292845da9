"""Plots: what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import Answer, Guarantee, Regions, TransductiveGPRegressor
from transduce.conformal import Miscoverage
from transduce.display import (
    BandDisplay,
    MiscoverageDisplay,
    RegionDisplay,
    RejectionCurveDisplay,
    RelevanceDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")

PROMISE = Guarantee("exact", about="interval", confidence=0.9)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def answer(regions):
    m = len(regions)
    return Answer(
        np.arange(m), np.arange(m)[::-1] * 1.0, np.full(m, "answered"), PROMISE, regions=regions
    )


def test_every_piece_is_a_bar_and_rays_reach_beyond_the_rest():
    regions = Regions.from_pieces([[(-1, 1)], [(-np.inf, 0), (2, 3)], [], [(-np.inf, np.inf)]])
    display = RegionDisplay.from_answer(answer(regions), y_true=[0.0, 1.0, 2.0, 3.0])
    (bars,) = display.ax_.collections
    segments = bars.get_segments()
    assert len(segments) == 4
    # Rows are drawn in the order of their values, which here is the reverse of their own.
    assert segments[0][0][0] == 3
    assert segments[-1][0][1] < -1
    assert segments[-1][1][1] > 3
    labels = [line.get_label() for line in display.ax_.get_lines()]
    assert labels == ["truth, inside (2)", "truth, outside (2)", "prediction"]
    assert display.figure_ is display.ax_.figure


def test_laws_of_large_columns_are_drawn_as_areas():
    law = Miscoverage.at(0.9, n_unlabelled=100_000, n_calibration=150)
    ax = MiscoverageDisplay.from_law(law).ax_
    assert len(ax.patches) == 0
    within, more = ax.collections
    last = max(x for x, _ in within.get_paths()[0].vertices)
    assert last == law.quantile(0.95)
    assert min(x for x, _ in more.get_paths()[0].vertices) == last + 1
    assert len(within.get_paths()[0].vertices) < 2000


def test_axes_given_are_used():
    _, ax = plt.subplots()
    regions = Regions.from_intervals([[0, 1]])
    assert RegionDisplay.from_answer(answer(regions), ax=ax).ax_ is ax
    assert RelevanceDisplay([0.9], ["age"]).plot(ax=ax).ax_ is ax


def test_nothing_to_draw_is_drawn_without_complaint():
    assert RegionDisplay.from_answer(answer(Regions.from_pieces([]))).ax_.get_xlim() == (-1, 0)
    line = RegionDisplay.from_answer(answer(Regions.from_intervals([[-np.inf, np.inf]])))
    assert np.isfinite(line.ax_.get_ylim()).all()


def test_truth_may_be_known_in_part():
    display = RegionDisplay.from_answer(
        answer(Regions.from_intervals([[0, 1], [0, 1]])), y_true=[0.5, np.nan]
    )
    assert [len(line.get_xdata()) for line in display.ax_.get_lines()] == [1, 0, 2]


def test_refusals():
    with pytest.raises(ValueError, match="no regions"):
        RegionDisplay.from_answer(Answer(np.arange(1), np.ones(1), np.array(["answered"]), PROMISE))
    with pytest.raises(ValueError, match="each of the 1 unlabelled rows"):
        RegionDisplay.from_answer(answer(Regions.from_intervals([[0, 1]])), y_true=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"such as model.answer_"):
        RegionDisplay.from_answer("answer")


@pytest.fixture(scope="module")
def process():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["age", "größe", "dose"])
    y = np.sin(2 * X["größe"]) + 0.1 * rng.normal(size=40)
    y[::3] = np.nan
    return (
        X,
        y,
        TransductiveGPRegressor(matching=0.5, slack=0.01, n_restarts=1, random_state=0).fit(X, y),
    )


def test_relevances_are_named_and_sorted(process):
    _, _, model = process
    display = RelevanceDisplay.from_estimator(model)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names[-1] == "größe"
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, np.sort(model.relevance_ * model.feature_spread_))
    assert len(RelevanceDisplay.from_estimator(model, max_features=2).names) == 2
    with pytest.raises(TypeError, match="Pass a fitted"):
        RelevanceDisplay.from_estimator(TransductiveGPRegressor())
    with pytest.raises(ValueError, match="one name for each"):
        RelevanceDisplay([1.0, 2.0], ["a"])


@pytest.mark.parametrize("feature", ["größe", 1])
def test_bands_follow_the_predictions(process, feature):
    X, y, model = process
    display = BandDisplay.from_estimator(model, X, feature=feature)
    at = X.median().to_frame().T
    at["größe"] = display.x[7]
    mean, std = model.predict(at, return_std=True)
    assert (display.mean[7], display.std[7]) == (pytest.approx(mean[0]), pytest.approx(std[0]))
    np.testing.assert_allclose(display.seen[1], y.dropna())
    np.testing.assert_allclose(display.unlabelled[1], model.answer_.values)
    assert display.ax_.get_xlabel() == "größe, others at their median"


def test_bands_refuse_what_is_not_there(process):
    X, y, model = process
    for feature, words in (
        ("dosage", "no feature 'dosage'"),
        (3, "no feature 3"),
        (1.5, "no feature 1.5"),
    ):
        with pytest.raises(ValueError, match=words):
            BandDisplay.from_estimator(model, X, feature=feature)
    with pytest.raises(ValueError, match="Pass the 40 rows of fit"):
        BandDisplay.from_estimator(model, X[:10])
    with pytest.raises(TypeError, match="Pass a fitted"):
        BandDisplay.from_estimator(TransductiveGPRegressor(), X)
    plain = TransductiveGPRegressor(matching=0, n_restarts=0).fit(
        X.to_numpy()[:, 1:2], y.fillna(0.0)
    )
    assert BandDisplay.from_estimator(plain, X.to_numpy()[:, 1:2]).ax_.get_xlabel() == "feature 0"


def test_rejection_curves_step_down_from_the_error():
    truth, answers, sure = [0, 0, 1, 1, 0], [0, 1, 1, 1, 1], [0.9, 0.2, 0.8, 0.7, 0.4]
    display = RejectionCurveDisplay.from_predictions(truth, answers, sure)
    line = display.ax_.lines[-1]
    np.testing.assert_allclose(line.get_ydata()[:3], [0.4, 0.25, 0.0])
    np.testing.assert_allclose(line.get_xdata()[:3], [0.0, 0.2, 0.4])
    second = RejectionCurveDisplay.from_predictions(
        truth, truth, sure, name="oracle", ax=display.ax_
    )
    assert second.ax_ is display.ax_
    assert len({line.get_color() for line in display.ax_.lines}) == 3
    assert display.ax_.get_ylim()[1] >= 0.4
    perfect = RejectionCurveDisplay.from_predictions([0, 1], [0, 1], [0.1, 0.9])
    assert perfect.ax_.get_ylim() == (0.0, 0.1)
    with pytest.raises(TypeError, match="that has confidences"):
        RejectionCurveDisplay.from_answer(answer(Regions.from_intervals([[0, 1]])), [1])


def test_the_law_of_a_column_is_drawn_with_bound_and_truth():
    law = Miscoverage(n_unlabelled=40, n_calibration=19, rank=18)
    display = MiscoverageDisplay.from_law(law, certainty=0.9, truth=12)
    heights = {
        round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in display.ax_.patches
    }
    for count, height in heights.items():
        assert height == pytest.approx(law.probabilities[count])
    assert max(heights) >= law.quantile(0.9) + 1
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"90 %: at most {law.quantile(0.9)}" in words
    assert "truth: 12" in words
    assert display.ax_.get_xlabel() == "number of 40 values outside"
    _, ax = plt.subplots()
    nothing = MiscoverageDisplay.from_law(Miscoverage(200, 5, 6), ax=ax)
    assert nothing.ax_ is ax
    assert nothing.bound == 0
    assert MiscoverageDisplay.from_law(Miscoverage(400, 9, 9)).ax_.patches
    with pytest.raises(TypeError, match="Pass a Miscoverage"):
        MiscoverageDisplay.from_law("law")
