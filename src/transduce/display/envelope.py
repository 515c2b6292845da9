"""Plot of the tuned confidence machine: which setting is chosen at which label of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.display.axes import REGION, VALUE, finish, new_axes


class Envelope(Protocol):
    """Leave-one-out errors of all settings as one row's label varies; the fields are those of `EnvelopeDisplay`."""

    names: tuple[str, ...]
    curves: Array
    starts: Array
    owners: AnyArray
    region: Array
    value: float


class EnvelopeDisplay:
    """Leave-one-out error of every setting against the label of one row, with what is chosen and the region.

    Parameters
    ----------
    names : sequence of S str
        The settings.
    curves : array of shape (S, 4)
        ``p, c0, c1, c2`` of each error ``c0 + c1 (y - p) + c2 (y - p)^2``.
    starts, owners : array of shape (k,)
        Where each piece of the lower envelope starts, and the place of the setting that owns it.
    region : array of shape (n_pieces, 2)
        The row's region.
    value : float
        The row's value.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.display import EnvelopeDisplay
    >>> curves = np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 2.0, 0.0, 1.0]])
    >>> starts, owners, region = np.array([-np.inf, -1.0, 1.0]), np.array([1, 0, 1]), np.array([[-2.0, 2.0]])
    >>> EnvelopeDisplay(["narrow", "wide"], curves, starts, owners, region, 0.0).plot().ax_.get_ylabel()
    'leave-one-out error'
    """

    def __init__(
        self,
        names: Sequence[str],
        curves: Array,
        starts: Array,
        owners: AnyArray,
        region: Array,
        value: float,
    ) -> None:
        self.names = names
        self.curves = curves
        self.starts = starts
        self.owners = owners
        self.region = region
        self.value = value

    @classmethod
    def from_envelope(cls, envelope: Envelope, *, ax: Any = None) -> Self:
        """Plot the envelope of one row, as `RidgeConfidenceMachine.envelope` returns it.

        Parameters
        ----------
        envelope : object with the attributes names, curves, starts, owners, region and value
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        EnvelopeDisplay
        """
        fields = ("names", "curves", "starts", "owners", "region", "value")
        if not all(hasattr(envelope, field) for field in fields):
            raise TypeError(f"Pass the envelope of one row; got {type(envelope).__name__}.")
        return cls(*(getattr(envelope, field) for field in fields)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw every setting's error thin, the chosen pieces thick, and the region as a band.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        EnvelopeDisplay
        """
        ax = new_axes((7, 4.5)) if ax is None else ax
        low, high = self._range()
        labels = np.linspace(low, high, 400)
        for s in range(len(self.curves)):
            ax.plot(labels, self._errors(s, labels), color=REGION, lw=0.6, zorder=1)
        top, bottom = self._draw_pieces(ax, low, high)
        for k, piece in enumerate(np.clip(self.region, low, high)):
            ax.axvspan(*piece, color=REGION, alpha=0.35, lw=0, zorder=0, label="region" if k == 0 else None)
        ax.axvline(self.value, color=VALUE, lw=1, ls="--", label="value")
        room = 0.25 * (top - bottom) or 1.0
        ax.set(xlim=(low, high), ylim=(max(bottom - room, 0.0), top + 2 * room))
        return finish(self, ax, xlabel="label of the row", ylabel="leave-one-out error", loc="upper center")

    def _errors(self, setting: int, labels: Array) -> Array:
        p, c0, c1, c2 = self.curves[setting]
        return c0 + (labels - p) * (c1 + c2 * (labels - p))

    def _range(self) -> tuple[float, float]:
        """Return the labels to show: the region and some more; where it has no end, as far as errors double."""
        chosen = int(self.owners[np.searchsorted(self.starts, self.value, side="right") - 1])
        reach = 2.0 * np.sqrt(max(self.curves[chosen, 1] / self.curves[chosen, 3], 0.0)) or 1.0
        ends = np.append(self.region[np.isfinite(self.region)], self.value)
        if not np.isfinite(self.region).all():
            ends = np.concatenate([ends, [self.value - reach, self.value + reach]])
        room = 0.35 * np.ptp(ends) or reach
        return float(ends.min() - room), float(ends.max() + room)

    def _draw_pieces(self, ax: Any, low: float, high: float) -> tuple[float, float]:
        """Draw the envelope between two labels, a colour for each setting; return its largest and smallest value."""
        colours: dict[int, str] = {}
        heights = []
        for start, end, owner in zip(
            self.starts, np.append(self.starts[1:], np.inf), self.owners, strict=True
        ):
            if end <= low or start >= high:
                continue
            s, labels = int(owner), np.linspace(max(start, low), min(end, high), 100)
            name = None if s in colours else self.names[s]
            colour = colours.setdefault(s, f"C{len(colours)}")
            heights.append(self._errors(s, labels))
            ax.plot(labels, heights[-1], color=colour, lw=3, zorder=2, label=name)
        whole = np.concatenate(heights)
        return float(whole.max()), float(whole.min())
