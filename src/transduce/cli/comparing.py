"""What `transduce compare` compares, and its scores as people read them."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor

from transduce.cli.terminal import called
from transduce.ensemble.blend import TransductiveBlend
from transduce.filling.plan import FOLDS
from transduce.model_selection.comparison import MethodChoice

SCORES = {"regression": "neg_mean_absolute_error", "classification": "accuracy"}
SIMPLEST = {"regression": "always the mean", "classification": "always the commonest class"}


def candidates_for(task: str, random_state: int) -> dict[str, Any]:
    """Return what is compared besides the methods: the blend that fills tables, and the simplest answer."""
    simplest = DummyRegressor() if task == "regression" else DummyClassifier()
    blend = TransductiveBlend(task=task, cv=FOLDS, standardize=False, random_state=random_state)
    return {"blend": blend, SIMPLEST[task]: simplest}


def readable(choice: MethodChoice) -> pd.DataFrame:
    """Return the comparison with errors in the target's unit, or shares of right answers, by the names of --method."""
    numbers = choice.task == "regression"
    table = choice.table
    names = [called(name) for name in table.index]
    return pd.DataFrame(
        {
            "method": names,
            "off by" if numbers else "right": (-table["score"] if numbers else table["score"]).to_numpy(),
            "±": table["spread"].to_numpy(),
            "seconds a fit": table["fit_time"].to_numpy(),
        }
    )
