"""Names for types that many modules share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
ColumnName = Any  # of a frame: pandas lets anything that can be hashed name a column
Random = np.random.RandomState
