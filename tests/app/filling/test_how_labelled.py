"""What users say of how labels came about, through `fill`, the command line, the report and JSON."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.conformal.test_weights import designed
from transduce import fill
from transduce.app.cli.app import app
from transduce.conformal import Sampled
from transduce.conformal.designs.registry import design_of_flags


def table(seed=0, n=400, strength=1.2):
    X, y, truth, probability = designed(seed, n, strength)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=["age", "dose"]).assign(
        y=y,
        p=probability,
        kind=np.where(rng.random(n) < 0.5, "new", "old"),
        group=np.arange(n) // 4,
        day=pd.date_range("2020-01-01", periods=n).strftime("%d %b %Y"),
    )
    return frame, truth


EXTRA = ["p", "group", "day"]


def filled(frame, guarantee="auto", **flags):
    """Return the table filled, with flags as the command line has them."""
    ignore = [name for name in EXTRA if name not in flags.values()]
    return fill(
        frame,
        "y",
        method="ridge",
        guarantee=guarantee,
        ignore=ignore,
        labels=design_of_flags(flags),
    )


@cache
def shifted():
    return filled(table()[0])


def test_rows_that_differ_bring_weights_where_the_machine_would_be():
    """With fewer than 200 labels the confidence machine answers, unless rows differ."""
    result = shifted()
    assert result.guarantee.kind == "approximate"
    assert result.guarantee.effective >= 20
    assert result.exchangeability.features.index[0] == "age"
    assert "most of all in age" in result.guarantee.grounds
    assert any(
        note.startswith("Labelled and unlabelled rows differ: labels were held out")
        for note in result.notes
    )
    ignored = filled(table()[0], shift="ignore")
    assert type(ignored.model).__name__ == "RidgeConfidenceMachine"
    assert ignored.guarantee.kind == "approximate"
    by_chance = filled(table(strength=0.0, n=240)[0])
    assert type(by_chance.model).__name__ == "RidgeConfidenceMachine"
    assert by_chance.guarantee.headline == "exact if rows were labelled at random"


def test_too_little_in_common_says_which_rows_to_label():
    frame, _ = table(strength=6.0, n=240)
    result = filled(frame)
    assert result.guarantee.kind == "none"
    assert len(result.guarantee.remedy) == 20
    assert frame["y"].iloc[list(result.guarantee.remedy)].isna().all()
    assert result.frame["y_filled"].notna().all()
    summary = result.summary()
    assert summary["who_was_labelled"]["remedy"] == [row + 1 for row in result.guarantee.remedy]
    assert "label these rows, which were drawn at random" in result.report()
    assert (
        "A test found that rows with and without a value differ: nothing is guaranteed."
        in summary["reply"][0]
    )


def test_known_probabilities():
    frame, truth = table()
    result = filled(frame, sampling_probability="p")
    assert result.guarantee.headline == "exact if the given probabilities are right"
    assert result.columns.set_index("name")["kind"]["p"] == "ignored"
    assert result.exchangeability is None
    assert isinstance(result.model.labels.spec, Sampled)
    constant = filled(frame.assign(p=0.4), sampling_probability="p", guarantee="column")
    usual = filled(frame, guarantee="column", shift="ignore")
    pd.testing.assert_frame_equal(constant.new, usual.new)
    inside = result.answer.regions.contains(truth[result.answer.rows]).mean()
    assert inside > 0.8


def test_sensitivity_widens_and_the_report_says_how_much():
    frame, _ = table(strength=0.0, n=240)
    usual = filled(frame, guarantee="column")
    wide = filled(frame, sensitivity=1.5)
    assert np.median(wide.answer.regions.measure()) > np.median(usual.answer.regions.measure())
    assert wide.guarantee.factor == 1.5
    assert usual.sensitivity["factor"].tolist() == [1.0, 1.5, 2.0]
    assert usual.sensitivity["width"].is_monotonic_increasing
    lines = usual.summary()["who_was_labelled"]["sensitivity"]
    assert [line["factor"] for line in lines] == [1.0, 1.5, 2.0]
    assert "by a factor of up to 1.5: half of the intervals are at most" in usual.report()


def test_groups_categories_and_order():
    frame, truth = table(strength=0.0, n=240)
    some = frame.assign(y=np.where(frame["group"] % 2 == 0, truth, np.nan))
    result = filled(some, groups="group")
    assert result.guarantee.headline == "exact if groups were labelled at random"
    assert result.columns.set_index("name")["kind"]["group"] == "ignored"
    assert len(result.out_of_fold) > 0
    result = filled(frame, within="kind")
    assert result.guarantee.within == "category"
    assert result.columns.set_index("name")["kind"]["kind"] != "ignored"
    assert json.loads(result.json())["law"]["n_unlabelled"] == len(result.answer)
    result = filled(frame.assign(y=np.where(np.arange(240) < 90, truth, np.nan)), order="day")
    assert result.guarantee.headline == "exact if nothing changes along the order of the rows"
    assert "come later than labelled ones" in result.report()
    by_class = frame.assign(y=np.where(frame["y"].isna(), None, np.where(truth > 0, "high", "low")))
    sets = filled(by_class, within="kind")
    assert sets.guarantee.within == "category"
    assert "classes on average" in " ".join(sets.summary()["who_was_labelled"]["sentences"])


def test_the_section_of_the_report():
    summary = shifted().summary()
    found = summary["who_was_labelled"]
    assert found["columns"][0]["name"] == "age"
    assert found["columns"][0]["p_value"] <= 0.01
    overlap = found["overlap"]
    assert sum(overlap["labelled"]) == pytest.approx(1.0)
    assert sum(overlap["unlabelled"]) == pytest.approx(1.0)
    shared = sum(min(a, b) for a, b in zip(overlap["labelled"], overlap["unlabelled"], strict=True))
    assert overlap["shared"] == pytest.approx(shared)
    assert 0.1 < shared < 0.9
    page = shifted().report()
    assert "Who was labelled?" in page
    assert "Do labelled and unlabelled rows overlap?" in page
    assert "column 0" not in page
    assert (
        "A test found that rows with and without a value differ: the guarantee is approximate."
        in page
    )
    effective = summary["guarantee"]["effective"]
    assert json.loads(shifted().json())["guarantee"]["effective"] == pytest.approx(effective)


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (
            {"p": 0.0},
            {"sampling_probability": "p"},
            "'p' says with which probability .* row 1 has 0.0",
        ),
        ({"p": 1.2}, {"sampling_probability": "p"}, "above 0 and be at most 1, and row 1 has 1.2"),
        ({"p": "often"}, {"sampling_probability": "p"}, "row 1 has 'often'"),
        ({"p": np.nan}, {"sampling_probability": "p"}, "row 1 has nothing"),
        ({"p": 1.0}, {"sampling_probability": "p"}, "was sure to be labelled, and it has no label"),
        ({"group": np.nan}, {"groups": "group"}, "'group' names groups, and row 1 has none"),
        ({"kind": None}, {"within": "kind"}, "'kind' names categories, and row 1 has none"),
        ({"day": "soon"}, {"order": "day"}, "'day' orders the rows, and row 1 has 'soon'"),
        ({}, {"groups": "y"}, "is the target"),
        ({}, {"groups": "nobody"}, "nobody"),
        ({}, {"sensitivity": 0.2}, "a factor from 1 on"),
        ({}, {"shift": "maybe"}, "shift must be one of"),
        ({}, {"sampling_probability": "p", "guarantee": "row"}, "leave out one of the two"),
        ({}, {"sampling_probability": "p", "groups": "group"}, "exclude each other"),
    ],
)
def test_bad_columns_get_one_sentence(change, settings, words):
    frame, _ = table(n=120)
    with pytest.raises(ValueError, match=words):
        filled(frame.assign(**change), **settings)


def test_the_machine_and_few_labels_are_refused():
    frame, _ = table(n=120)
    with pytest.raises(ValueError, match="choose another method"):
        fill(frame, "y", method="confidence-machine", labels=Sampled("p"))
    few = frame.assign(y=frame["y"].where(frame["y"].notna().cumsum() <= 10))
    with pytest.raises(
        ValueError, match="10 labels are too few to hold some out and guarantee 90 %: it takes 13"
    ):
        filled(few, sampling_probability="p")


def test_options_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, truth = table(strength=0.0, n=160)
    frame.to_csv("t.csv", index=False)
    run = CliRunner().invoke
    common = ["fill", "t.csv", "--target", "y", "--method", "ridge", "--force"]
    found = run(app, [*common, "--sampling-probability", "p", "--sensitivity", "1.2"])
    assert found.exit_code == 0, found.output
    assert (
        "Guarantee, exact if the odds of being labelled are off by no more than a factor of 1.2"
        in found.output
    )
    found = run(
        app,
        [*common, "--within", "kind", "--order", "day", "--shift", "ignore", "--json", "t.json"],
    )
    assert found.exit_code == 0, found.output
    labels = json.loads((tmp_path / "t.json").read_text())["options"]["labels"]
    assert labels == {"design": "Chance", "within": "kind", "order": "day", "reweight": False}
    frame.assign(y=np.where(frame["group"] % 2 == 0, truth, np.nan)).to_csv("t.csv", index=False)
    found = run(app, [*common, "--groups", "group"])
    assert "a row drawn at random from a new group" in found.output
    found = run(app, [*common, "--groups", "nobody"])
    assert found.exit_code == 1
    assert "The table has no column 'nobody'" in found.output
