"""The features of a table: all columns from which something may be learned."""

from __future__ import annotations

from dataclasses import replace

from transduce.app.filling.left_out import columns_left_out, notes_on
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.features import Features, vectorize


def read_features(rows: FrameSource, options: Options) -> Features:
    """Return the features of rows, or raise a ValueError if there are none."""
    target = rows.labels
    left_out = columns_left_out(rows, options)
    folder = options.pictures
    if folder is None:
        folder = rows.pictures
    features = vectorize(
        options.clean(rows.frame),
        target.name,
        text=options.text,
        number=options.number,
        id=options.id,
        random_state=options.random_state,
        ignore=options.no_features(target.name),
        left_out={column.name: column.treatment for column in left_out},
        prefer=rows.prefer,
        folder=folder,
        **options.reading,
    )
    is_target = features.columns["name"] == target.name
    features.columns.loc[is_target, "n_missing"] = int(target.missing.sum())
    features = replace(features, notes=[*notes_on(left_out), *features.notes])
    if features.matrix.shape[1] == 0:
        refusal = (
            f"No column except {target.name!r} varies from row to row: "
            "there is nothing to learn from."
        )
        raise ValueError(" ".join([refusal, *map(str, features.notes)]))
    return features
