"""What a report needs to know of a filled table; `transduce.FillResult` has it all."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

from transduce.conformal.calibrated import Law
from transduce.conformal.exchangeability import Exchangeability
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee


class FilledTable(Protocol):
    """A filled table, as the report reads it; `transduce.FillResult` says what each part holds."""

    @property
    def frame(self) -> pd.DataFrame:
        """The table, with the new columns after its own."""

    @property
    def target(self) -> str:
        """The column that was filled."""

    @property
    def task(self) -> str:
        """Numbers ("regression") or classes ("classification")."""

    @property
    def answer(self) -> Answer:
        """The answers at the rows whose label was missing."""

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of them."""

    @property
    def miscoverage(self) -> Law | None:
        """The distribution of the number outside, if there is one."""

    @property
    def exchangeability(self) -> Exchangeability | None:
        """How labelled and unlabelled rows compare."""

    @property
    def sensitivity(self) -> pd.DataFrame | None:
        """How wide intervals get if the chance of a label also depends on the value itself."""

    @property
    def confidence(self) -> float:
        """Level of the guarantee for each row."""

    @property
    def certainty(self) -> float:
        """Certainty of the guarantee for the column."""

    @property
    def members(self) -> pd.DataFrame:
        """One line for each method."""

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """True and answered labels, each answered while hidden."""

    @property
    def columns(self) -> pd.DataFrame:
        """What was done to each column."""

    @property
    def relevance(self) -> pd.Series | None:
        """How much each column matters."""

    @property
    def map(self) -> pd.DataFrame | None:
        """Every row's place on the map."""

    @property
    def options(self) -> dict[str, Any]:
        """What was asked for."""

    @property
    def notes(self) -> list[str]:
        """What the user should know."""

    @property
    def totals(self) -> dict[str, int] | None:
        """Counts of the whole table, where this is a sample of it."""

    @property
    def advice(self) -> object | None:
        """What to label next; ``str`` makes sentences of it."""
