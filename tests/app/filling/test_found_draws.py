"""Columns of a draw are read without being told twice; a design that the user names wins."""

import numpy as np
import pandas as pd
import pytest

from transduce import audit, fill
from transduce.app.auditing.drawing import StrataRequest, draw_by_strata
from transduce.app.filling.found_draws import use_draw
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.conformal import Chance, Drawn, Sampled
from transduce.population import audit_classes

N_ROWS = 300


def drawn_table(*, earlier=(), number=90, seed=1):
    """Return a table in which rows were drawn by predicted class and labelled, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(N_ROWS) < 0.2, "yes", "no")
    llm = np.where(rng.random(N_ROWS) < 0.1, "yes", truth)
    table = pd.DataFrame({"a": rng.normal(size=N_ROWS), "llm": llm})
    table["y"] = None
    table.loc[list(earlier), "y"] = truth[list(earlier)]
    request = StrataRequest(number=number, seed=3, by=("llm",))
    drawn = draw_by_strata(table, "y", table["y"].isna().to_numpy(), request)
    table = pd.concat([table, drawn.columns], axis=1)
    table.loc[drawn.rows, "y"] = truth[drawn.rows]
    return table, truth


def design_of(table, **given):
    source, options = use_draw(
        FrameSource.read(table, "y", Options.read(given)), Options.read(given)
    )
    return options.labels, [note.text for note in source.notes]


def test_strata_calibrate_with_their_probabilities():
    table, _ = drawn_table()
    design, notes = design_of(table)
    assert design == Sampled("y_random_probability")
    assert any("weighted by the probabilities in 'y_random_probability'" in note for note in notes)
    result = fill(table, "y", method="ridge", predictions="llm")
    assert "sampling" in result.again or "Sampled" in result.again
    features = result.columns.set_index("name")["n_features"]
    assert not features.reindex([name for name in features.index if "_random" in name]).any()


def test_a_draw_that_is_used_is_not_asked_for_again():
    table, _ = drawn_table()
    with_all_labels = fill(table, "y", method="ridge")
    assert isinstance(with_all_labels.options.labels, Sampled)
    assert not any("makes use of it" in note for note in with_all_labels.notes)
    table.loc[np.flatnonzero(~table["y_random"])[:10], "y"] = "yes"
    table.loc[np.flatnonzero(table["y_random"])[5:], "y"] = None
    too_few = fill(table, "y", method="ridge")
    assert any("'y_random'" in note and "makes use of it" in note for note in too_few.notes)


def test_a_design_that_is_named_wins():
    table, _ = drawn_table()
    assert design_of(table, labels=Chance())[0] == Chance()


def test_other_labels_beside_those_of_strata_teach():
    table, _ = drawn_table(earlier=range(5))
    design, notes = design_of(table)
    assert design == Drawn("y_random", within="y_random_stratum")
    assert any("compared within each 'y_random_stratum'" in note for note in notes)
    assert fill(table, "y", method="ridge").guarantee.kind == "exact"


def test_a_drawn_row_without_a_label_is_told():
    table, _ = drawn_table()
    table.loc[np.flatnonzero(table["y_random"])[0], "y"] = None
    design, notes = design_of(table)
    assert design == Sampled("y_random_probability")
    assert any("1 drawn row has no label yet." in note for note in notes)


@pytest.mark.parametrize("given", [{"guarantee": "row"}, {"confidence": 0.995}])
def test_where_no_label_can_calibrate_chance_is_assumed_and_told(given):
    table, _ = drawn_table()
    design, notes = design_of(table, **given)
    assert design is None
    assert any("as those of rows that were labelled at random" in note for note in notes)


def test_without_strata_drawn_rows_calibrate_beside_others():
    table, truth = drawn_table()
    simple = table.drop(columns=["y_random_stratum", "y_random_probability"])
    assert design_of(simple)[0] is None  # all labels are those of the draw: chance chose them
    others = np.flatnonzero(~table["y_random"])[:10]
    simple.loc[others, "y"] = truth[others]
    design, notes = design_of(simple)
    assert design == Drawn("y_random")
    assert any(
        "their labels are used for calibration, and all others for the fit" in note
        for note in notes
    )
    assert design_of(simple.drop(columns="y_random_seed"))[0] is None  # a column of the user's
    simple.loc[np.flatnonzero(table["y_random"])[5:], "y"] = None
    design, notes = design_of(simple)
    assert design is None
    assert any("too few, or too few of each stratum" in note for note in notes)


class TestRowsLabelledAfterTheDraw:
    """Their labels may be why they were chosen: the others then differ from the drawn rows."""

    def table(self):
        table, truth = drawn_table()
        wrong = np.flatnonzero(~table["y_random"] & (table["llm"] != truth))
        table.loc[wrong, "y"] = truth[wrong]
        return table, wrong

    def test_the_guarantee_of_a_fill_is_approximate(self):
        table, wrong = self.table()
        guarantee = fill(table, "y", method="ridge").guarantee
        assert guarantee.kind == "approximate"
        assert guarantee.reasons[0].startswith(
            f"{len(wrong)} rows that were not drawn were labelled"
        )

    def test_shares_are_those_of_an_audit(self):
        table, _wrong = self.table()
        line = fill(table, "y", method="ridge", predictions="llm").estimate("share of yes").iloc[0]
        audited = audit(table, "y", "llm", suspects=0).shares.loc["yes"]
        assert line["kind"] == "exact"
        assert [line["lower"], line["upper"]] == [audited["lower"], audited["upper"]]


def test_shares_of_strata_are_those_of_an_audit():
    table, _ = drawn_table()
    line = fill(table, "y", method="ridge", predictions="llm").estimate("share of yes").iloc[0]
    audited = audit_classes(
        table["y"], table["llm"], strata=table["y_random_stratum"], drawn=table["y_random"]
    ).shares.loc["yes"]
    assert line["kind"] == "exact"
    assert [line["lower"], line["upper"]] == [audited["lower"], audited["upper"]]
