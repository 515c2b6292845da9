"""`Guarantee`: what is guaranteed of the answers, and on what ground."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """What is guaranteed about the answers, and on what ground.

    Parameters
    ----------
    kind : {"exact", "approximate", "none"}
        Whether the guarantee holds in finite samples with no assumption but exchangeable rows; "none" if there is none.
    guarantee : str
        The guarantee, as a sentence.
    why : str
        Why it is of this kind, as a sentence.

    Examples
    --------
    >>> print(Guarantee("exact", "Each region covers with probability 90 %.", "Nothing was tuned."))
    exact: Each region covers with probability 90 %. Nothing was tuned.
    """

    kind: str
    guarantee: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.guarantee} {self.why}"
