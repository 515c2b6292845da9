"""The plot of one row's envelope: what is drawn is what was given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from transduce.display import EnvelopeDisplay

plt = pytest.importorskip("matplotlib.pyplot")

CURVES = np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 2.0, 0.0, 1.0], [9.0, 5.0, 0.0, 3.0]])
STARTS, OWNERS = np.array([-np.inf, -1.0, 1.0]), np.array([1, 0, 1])


@dataclass
class Record:
    names: tuple = ("narrow", "wide", "never")
    curves: np.ndarray = None
    starts: np.ndarray = None
    owners: np.ndarray = None
    region: np.ndarray = None
    value: float = 0.5


def record(region):
    return Record(curves=CURVES, starts=STARTS, owners=OWNERS, region=np.array(region))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_chosen_pieces_lie_on_their_curves_and_are_named_once():
    display = EnvelopeDisplay.from_envelope(record([[-2.0, 2.0]]))
    thick = [line for line in display.ax_.get_lines() if line.get_linewidth() == 3]
    assert len(thick) == 3
    for line, (owner, low, high) in zip(
        thick, [(1, -np.inf, -1), (0, -1, 1), (1, 1, np.inf)], strict=True
    ):
        x, y = line.get_data()
        assert low <= x.min() < x.max() <= high
        p, c0, c1, c2 = CURVES[owner]
        np.testing.assert_allclose(y, c0 + c1 * (x - p) + c2 * (x - p) ** 2)
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["wide", "narrow", "region", "value"]
    assert thick[0].get_color() == thick[2].get_color() != thick[1].get_color()
    low, high = display.ax_.get_xlim()
    assert low < -2.0 < 2.0 < high


def test_every_curve_is_drawn_thin():
    display = EnvelopeDisplay.from_envelope(record([[-2.0, 2.0]]))
    assert sum(line.get_linewidth() == 0.6 for line in display.ax_.get_lines()) == 3


@pytest.mark.parametrize(
    "region", [[[-np.inf, np.inf]], [[-np.inf, 0.6]], [[0.5, 0.5]], [[-3, -2], [0, 1]]]
)
def test_any_region_can_be_drawn(region):
    figure, ax = plt.subplots()
    display = EnvelopeDisplay.from_envelope(record(region), ax=ax)
    assert display.ax_ is ax
    figure.canvas.draw()
    assert len(ax.patches) == len(region)
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="Pass the envelope of one row; got int"):
        EnvelopeDisplay.from_envelope(3)
