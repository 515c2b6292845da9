"""How the labels came about, with the columns of a table in place of their names."""

from __future__ import annotations

import pandas as pd

from transduce.app.tables.numbers import all_numbers
from transduce.conformal.designs import BoundDesign, Design
from transduce.core.types import Mask


def bind_design(design: Design, missing: Mask, frame: pd.DataFrame) -> BoundDesign:
    """Return a design with a checked array for each column that it names.

    Shapes: missing (n,).
    """
    # Numbers are read as all numbers of a table are: those with decimal commas may look like dates.
    for name in design.columns_of_numbers:
        amounts = all_numbers(frame[name])
        if amounts is not None:
            frame = frame.copy(deep=False)
            frame[name] = amounts
    return design.bind(missing, frame)
