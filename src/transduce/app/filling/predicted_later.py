"""The predictions behind questions about rows that come later, asked of a fit that was saved.

The labels that were kept from the fit tell how wrong its predictions are. If later rows are like
those of the saved table, both together are drawn from one source, and the kept labels stand for the
later rows as those of a sample stand for the rows without a label. Labels that later rows have are
known, and correct nothing: the fit may have seen them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.app.estimating import PredictedColumn
from transduce.app.filling.predicted import drop_unpredicted, numbers_of_answer, possible_range
from transduce.core.words import counted
from transduce.population import Sample

if TYPE_CHECKING:
    from transduce.app.filling.later_rows import FittedFill


def predict_later(fitted: FittedFill, frame: pd.DataFrame) -> PredictedColumn:
    """Return the column of later rows with predictions; kept rows of the saved table come last."""
    if fitted.outside.shares is not None:
        raise ValueError(
            "Labels of the saved table were chosen by their class: fill the new table together "
            "with it, and ask for the share of each class."
        )
    assert fitted.kept_frame is not None
    frame = fitted.clean(frame)
    later = fitted.reading.read(frame)
    kept = fitted.reading.read(fitted.kept_frame)
    n_later = len(later.missing)
    n_kept = len(kept.missing)
    missing = np.concatenate([later.missing, kept.missing])
    target = replace(
        later,
        labels=np.concatenate([later.labels, kept.labels]),
        missing=missing,
        sides=np.concatenate([later.all_sides, kept.all_sides]),
    )
    classes = fitted.outside.table.classes
    unlabelled = np.flatnonzero(later.missing)
    answer = fitted.raw_answer(frame.iloc[unlabelled], unlabelled)
    at_kept = fitted.predict_kept()
    predictions = np.full((n_later + n_kept, *at_kept.shape[1:]), np.nan)
    predictions[unlabelled] = numbers_of_answer(answer, classes)
    predictions[n_later:] = at_kept
    is_kept = np.arange(n_later + n_kept) >= n_later
    sample = Sample(is_kept, elsewhere=is_kept)
    known, sample = drop_unpredicted(predictions, sample, missing)
    shared = [name for name in frame.columns if name in fitted.kept_frame.columns]
    both = pd.concat([frame[shared], fitted.kept_frame[shared]], ignore_index=True)
    assumption = fitted.options.design.assumption
    return PredictedColumn(
        target=target,
        predictions=known,
        classes=classes,
        sample=sample,
        frame=both,
        assumption=str(getattr(assumption, "later", None) or assumption),
        names=pd.Index([f"row {number:,}" for number in range(1, len(missing) + 1)]),
        limits=possible_range(fitted.options),
        case_sensitive=fitted.options.case_sensitive,
        doubt=_doubt(fitted, frame.iloc[unlabelled]),
    )


def _doubt(fitted: FittedFill, unlabelled: pd.DataFrame) -> str:
    """Return why the kept labels do not stand for later rows, in a sentence; "" if they may."""
    n_empty = fitted.outside.table.n_empty
    if n_empty:
        return (
            f"{counted(n_empty, 'row')} of the saved table {'was' if n_empty == 1 else 'were'} "
            "drawn to be labelled and have no label: label them, save again, then ask."
        )
    if not len(unlabelled):
        return ""
    if fitted.verdict_on_later(fitted.compare_later(unlabelled).verdict).shifted:
        return (
            "These rows differ from the labelled ones of the saved table, whose labels then do not "
            "stand for them: draw some with `transduce draw`, label them, and ask the new table "
            "itself."
        )
    return ""
