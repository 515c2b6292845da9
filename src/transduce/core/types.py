"""Names for types that many modules share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
# An array of numpy, torch or another library with the array API, and such a library's namespace:
# libraries share no type that a checker could know.
DeviceArray = Any
Namespace = Any
# Rows of features as users give them: an array of any library, a frame, or a sparse matrix.
Rows = Any
ColumnName = Hashable  # of a frame: pandas lets anything that can be hashed name a column
# Labels as users give them, of numbers or classes, some missing: a list, an array of any library,
# or a column of a frame.
Labels = Any
# What a guarantee is worth, what it is about, and where it holds.
Kind = Literal["exact", "approximate", "none"]
About = Literal["", "interval", "region", "set", "selection"]
Within = Literal["", "class", "category", "categories"]
# What is compared of two kinds of rows, and what those without a label are called.
Units = Literal["rows", "groups"]
OtherRows = Literal["unlabelled", "later"]
Task = Literal["auto", "regression", "classification"]
KnownTask = Literal["regression", "classification"]
JsonObject = dict[str, Any]  # as JSON holds it
OptionValues = dict[str, Any]  # of options or settings, by their names
Random = np.random.RandomState
Seed = int | np.random.RandomState | None  # what `sklearn.utils.check_random_state` takes
