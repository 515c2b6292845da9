"""`Drift`: whether errors change along an order of the rows, such as time, as data; a sentence is made of it last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """What was found along an order of the rows.

    Parameters
    ----------
    later : float
        Share of pairs of an unlabelled and a labelled row in which the unlabelled one comes later.
    apart : bool
        Whether labelled and unlabelled rows lie at different places along the order, by more than chance.
    p_value : float or None
        Probability of so large a drift of the errors at calibration rows if there were none; None if they are too few.
    found : bool
        Whether errors drift.
    detectable : float or None
        The smallest rank correlation of errors with the order that is found four times in five.

    Examples
    --------
    >>> print(Drift(0.98, True, 0.3, False, 0.41))
    Along the order, unlabelled rows come later than labelled ones in 98 % of pairs: exchangeable means here that
    nothing changes along it, except by chance. No drift of the errors was found (p = 0.3); one with a rank
    correlation of 0.4 would be found four times in five, a weaker one less often.
    """

    later: float
    apart: bool
    p_value: float | None
    found: bool
    detectable: float | None = None

    def __str__(self) -> str:
        return f"{self._places()} {self._errors()}"

    def _places(self) -> str:
        """Return where unlabelled rows lie, and what that asks for."""
        if not self.apart:
            return "Labelled and unlabelled rows lie alike along the order, so that nothing need be assumed of it."
        word, share = ("later", self.later) if self.later >= 0.5 else ("earlier", 1.0 - self.later)
        return (
            f"Along the order, unlabelled rows come {word} than labelled ones in {100 * share:.0f} % of pairs: "
            "exchangeable means here that nothing changes along it, except by chance."
        )

    def _errors(self) -> str:
        """Return whether errors drift."""
        if self.p_value is None:
            return "Whether errors drift along it could not be tested with so few calibration labels."
        p = f"p = {self.p_value:.2g}"
        if self.found:
            return f"Errors at calibration rows drift along it ({p}): what comes later is not like what came before."
        if self.detectable is None:
            return f"No drift of the errors was found ({p}), but so few labels would not show one."
        return (
            f"No drift of the errors was found ({p}); one with a rank correlation of {self.detectable:.1f} would be "
            "found four times in five, a weaker one less often."
        )
