"""Several descriptions of the same rows: `views` of `fill`, on the command line and in its features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from transduce import SpectralGraphTransducer, fill
from transduce.app.filling.options import Options, read_views


def two_views(n=60):
    """A table whose classes show in the first two columns and in the next two, each by itself."""
    random = np.random.default_rng(0)
    kind = np.arange(n) % 2
    columns = {
        name: 3.0 * kind + random.normal(size=n) for name in ("length", "width", "ä", "colour")
    }
    table = pd.DataFrame({**columns, "other": random.normal(size=n)})
    table["kind"] = np.where(np.arange(n) < 12, np.where(kind == 1, "yes", "no"), None)
    return table


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["spectral-graph", "auto"])
def test_the_graph_ties_rows_in_each_view(method, monkeypatch):
    seen = []
    fit = SpectralGraphTransducer.fit

    def note_views(self, X, y, **settings):
        seen.append(self.views)
        return fit(self, X, y, **settings)

    monkeypatch.setattr(SpectralGraphTransducer, "fit", note_views)
    views = [["length", "width"], ["ä", "colour"]]
    result = fill(two_views(), "kind", method=method, views=views)
    (places,) = set(seen)
    origins = result.fit.features.origins
    assert [{origins[place] for place in view} for view in places] == [set(view) for view in views]


def test_views_on_the_command_line():
    """One view is a text there, its columns separated by commas."""
    options = Options.read({"views": ["length, width", "ä"]})
    assert options.views == [["length", "width"], ["ä"]]
    command = options.as_command("t.csv", "kind", "classification")
    assert "--views length,width --views ä" in command.replace("'", "")


@pytest.mark.parametrize("views", ["text", [], [[]], [["a"], 5], [""], {"a": 1}, None])
def test_what_is_no_view(views):
    if views == []:
        assert read_views(views) == []
        return
    with pytest.raises(ValueError, match="views is a list of lists of columns"):
        read_views(views)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"views": [["length"], ["no"]]}, "has no column 'no'"),
        ({"views": [["kind"]]}, "'kind' is the target"),
        ({"views": [["length"]], "method": "forest"}, "is for the methods 'spectral-graph'"),
        ({"views": [["length"], ["same"]]}, "The view 'same' has no features"),
    ],
)
def test_views_that_cannot_be(settings, match):
    with pytest.raises(ValueError, match=match):
        fill(two_views().assign(same="x"), "kind", **settings)
