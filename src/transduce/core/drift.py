"""`Drift`: whether errors change along an order of the rows, such as time, as data; a sentence is made of it last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """What was found along an order of the rows."""

    later: float
    apart: bool
    p_value: float | None
    found: bool  # whether errors drift
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
