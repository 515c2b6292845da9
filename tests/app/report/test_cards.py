"""Cards and notes earn what they say: how good, how sure, and what cannot be known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests import brute
from transduce import ConformalTransducer, fill
from transduce.app.cli.terminal import how_good
from transduce.app.report.missed_classes import most_missed_class
from transduce.app.report.quality import class_quality, number_quality, share_alone
from transduce.app.report.rows import describe_classes, least_certain_first
from transduce.conformal import ByClass, Chance, Drawn
from transduce.core.assumptions import CHANCE, DRAWN
from transduce.core.findings import Drift, Verdict
from transduce.core.guarantee import Guarantee


def series(seed: int = 0, n: int = 240, n_labels: int = 180) -> tuple[pd.DataFrame, np.ndarray]:
    """A series whose labels end before something new begins, and the truth."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    y = 5.0 + 2.0 * np.sin(t / 20.0) + np.maximum(t - n_labels, 0) * 0.2 + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "when": pd.date_range("1990-01-01", periods=n, freq="MS"),
            "people": 2e5 + 250.0 * t + 20.0 * rng.normal(size=n),
            "spent": 500.0 * np.exp(0.006 * t) * (1.0 + 0.01 * rng.normal(size=n)),
            "season": np.sin(t / 20.0) + 0.1 * rng.normal(size=n),
            "y": np.where(t < n_labels, y, np.nan),
        }
    )
    return frame, y


def cards_of(result) -> dict[str, dict[str, str]]:
    return {card["question"]: card for card in result.summary()["cards"]}


@pytest.mark.few(1)
@pytest.mark.parametrize("labels", [None, Chance(order="when")], ids=["plain", "along an order"])
def test_how_good_cannot_be_known_where_rows_hardly_overlap(labels):
    frame, truth = series()
    result = fill(frame, "y", method="ridge", labels=labels)
    missing = frame["y"].isna()
    off = np.abs(result.new["y_filled"] - truth)[missing].mean()
    hidden = result.out_of_fold
    assert off > 3.0 * np.abs(hidden["true"] - hidden["answered"]).mean()  # which would mislead
    card = cards_of(result)["How good are the predictions?"]
    assert (card["large"], card["tone"]) == ("cannot be known", "bad")
    assert "hardly overlap" in card["small"]
    summary = result.summary()
    assert not summary["quality_known"]
    assert "is not known" in summary["quality_sentence"]
    assert "variance" not in result.report().partition("How good they are</h2>")[2]
    assert how_good(result).startswith("How good the predictions are is not known.")
    assert "explain" not in how_good(result)


def test_no_probability_is_told_where_rows_hardly_overlap():
    frame, truth = series()
    classes = np.where(truth > 5.0, "high", "low").astype(object)
    frame["y"] = np.where(frame["y"].notna(), classes, None)
    result = fill(frame, "y", method="ridge")
    assert result.new["y_probability"].isna().all()
    assert result.summary()["answers"]["right_if_one"] is None
    assert cards_of(result)["How good are the predictions?"]["large"] == "cannot be known"


def test_how_good_cannot_be_known_where_nothing_is_guaranteed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(np.arange(60) < 7, frame["a"] + 5.0, np.nan)
    result = fill(frame.sample(frac=1.0, random_state=1, ignore_index=True), "y", method="ridge")
    assert result.guarantee.kind == "none"
    card = cards_of(result)["How good are the predictions?"]
    assert (card["large"], card["tone"]) == ("cannot be known", "bad")
    assert result.guarantee.reachable == 0.85  # 7 labels support 7 / 8
    assert "support 85 %: ask for it with confidence=0.85" in str(result.guarantee)
    lower = fill(frame, "y", method="ridge", confidence=result.guarantee.reachable)
    assert lower.guarantee.kind != "none"


@pytest.mark.parametrize(("share", "clear"), [(0.86, False), (0.5, True)])
def test_a_tick_takes_more_than_a_little(share, clear):
    true = np.tile([-1.0, 1.0], 30)
    quality = number_quality(pd.DataFrame({"true": true, "answered": true * (1.0 - share)}))
    assert quality.judged == ""
    assert quality.clear == clear
    few = number_quality(pd.DataFrame({"true": true[:10], "answered": true[:10]}))
    assert not few.clear


def test_a_little_better_than_the_mean_has_no_tick():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    y = 0.6 * frame["a"] + rng.normal(size=300)
    frame["y"] = y.where(rng.random(300) < 0.4)
    result = fill(frame, "y", method="ridge")
    card = cards_of(result)["How good are the predictions?"]
    numbers = result.summary()["quality"]
    assert 0.7 < numbers["mean_absolute_error"] / numbers["of_the_mean"] < 0.95
    assert (card["tone"], card["icon"]) == ("fair", "≈")


def test_an_alarm_is_called_one():
    verdict = Verdict(0.01, True, 100, 200, ("age",))
    assert "Chance alone raises this alarm in 1 of 100 tables" in str(verdict)
    assert "Probably rows were not labelled at random" in str(verdict)


def test_labels_and_unlabelled_rows_that_are_alike_are_not_alone():
    rng = np.random.default_rng(0)

    class Test:
        shifted = True
        overlap = (rng.normal(size=500), rng.normal(size=500))

    assert share_alone(Test()) < 0.05
    Test.overlap = (np.zeros(0), np.ones(3))
    assert share_alone(Test()) == 0.0
    assert share_alone(None) == 0.0


# --------------------------------------------------------------------------------------- impossible values


def positive(seed: int, n: int = 200, spread: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    y = np.exp(spread * (frame["a"] + 0.5 * rng.normal(size=n)))
    return frame.assign(y=y.where(rng.random(n) < 0.5))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
def test_values_that_no_label_allows_are_noted(seed, sign):
    frame = positive(seed)
    frame["y"] *= sign
    # For the column: intervals for each row are on the scale of positive labels.
    result = fill(frame, "y", method="ridge", guarantee="column")
    end = result.new["y_lower"] if sign > 0.0 else -result.new["y_upper"]
    assert (end < 0.0).any()
    word, name = ("negative", "minimum") if sign > 0.0 else ("positive", "maximum")
    hints = [note for note in result.notes if note.startswith(f"No label is {word}")]
    assert len(hints) == 1
    assert f"say so with {name}=0." in hints[0]
    asked = result.with_options(**{name: 0})
    assert not [note for note in asked.notes if note.startswith("No label is")]
    assert (asked.new["y_lower"].dropna() * sign >= 0.0).all() or sign < 0.0


def test_percentages_above_100_are_noted():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    share = (60.0 + 30.0 * frame["a"] + 5.0 * rng.normal(size=200)).clip(0.0, 100.0)
    texts = share.map("{:.0f} %".format).where(rng.random(200) < 0.5)
    result = fill(frame.assign(y=texts), "y", method="ridge")
    assert (result.new["y_upper"] > 100.0).any()
    assert any("above 100 %, say so with maximum=100." in note for note in result.notes)
    number = fill(frame.assign(y=share.where(texts.notna())), "y", method="ridge")
    assert not any("100" in note for note in number.notes)  # who knows that it is a percentage?


def test_where_labels_are_of_both_signs_nothing_is_noted():
    frame = positive(0)
    frame["y"] -= 1.0
    assert not any("No label is" in note for note in fill(frame, "y", method="ridge").notes)


# ------------------------------------------------------------------------------------------------ classes


def imbalanced(seed: int = 0, n: int = 500, n_labels: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    yes = rng.random(n) < 0.09
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    frame["a"] += 0.7 * yes
    names = np.where(yes, "Yes", "No").astype(object)
    return frame.assign(y=np.where(np.arange(n) < n_labels, names, None))


@pytest.mark.few(1)
@pytest.mark.parametrize("n_labels", [45, 150], ids=["by row", "for the column"])
def test_a_class_in_hardly_any_set_is_named(n_labels):
    result = fill(imbalanced(1, n_labels=n_labels), "y", method="ridge")
    coverage = result.class_coverage
    assert coverage["labels"].sum() == n_labels
    sets = result.new["y_set"].dropna()
    assert coverage.loc["Yes", "in_sets"] == sets.str.contains("Yes").sum()
    assert coverage.loc["Yes", "covered"] < 0.5 * coverage.loc["Yes", "judged"]
    hints = [note for note in result.notes if note.startswith("'Yes' is")]
    assert len(hints) == 1
    assert "label_conditional=True makes the guarantee hold within every class" in hints[0]
    assert any("Of the rarest class, “Yes”" in caveat for caveat in result.summary()["caveats"])
    guaranteed = result.summary()["cards"][1]
    assert guaranteed["tone"] == "fair"
    assert "But where “Yes” is the true class, sets hold it at" in guaranteed["small"]
    by_class = fill(imbalanced(1, n_labels=n_labels), "y", method="ridge", label_conditional=True)
    assert not [note for note in by_class.notes if note.startswith("'Yes' is")]
    assert "is the true class" not in by_class.summary()["cards"][1]["small"]


def test_a_class_in_no_set_is_named_though_one_label_shows_it():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    is_ill = frame["a"] + 0.6 * rng.normal(size=600) > 1.9
    names = pd.Series(np.where(is_ill, "ill", "well"))
    result = fill(frame.assign(y=names.where(np.arange(600) < 60, None)), "y")
    line = result.class_coverage.loc["ill"]
    assert (line["labels"], line["in_sets"]) == (1, 0)
    hint = next(note for note in result.notes if note.startswith("'ill' is"))
    assert "label_conditional=True makes the guarantee hold within every class" in hint
    assert "0 of 0" not in hint
    assert result.summary()["cards"][1]["tone"] == "fair"


def test_a_class_of_one_label_in_some_sets_is_no_reason_for_a_hint():
    coverage = pd.DataFrame(
        {"labels": [59, 1], "in_sets": [500, 3], "judged": [29, 0], "covered": [28, 0]},
        index=["well", "ill"],
    )
    assert most_missed_class(coverage, 540, 0.9) is None
    assert most_missed_class(coverage.assign(in_sets=[540, 0]), 540, 0.9) == "ill"
    assert most_missed_class(coverage.assign(in_sets=[200, 0]), 200, 0.9) is None  # 3 rows of it


@pytest.mark.parametrize("how", [None, ByClass({"a": 0.7, "b": 0.2, "c": 0.1})], ids=str)
@pytest.mark.parametrize("by_class", [False, True])
def test_coverage_of_classes_is_that_of_each_label_among_the_others(how, by_class):
    rng = np.random.default_rng(4)
    codes = rng.choice(3, 160, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(160, 2)) + 0.8 * codes[:, None]
    y = np.where(np.arange(160) < 110, np.array(["a", "b", "c"], dtype=object)[codes], None)
    from sklearn.linear_model import LogisticRegression

    model = ConformalTransducer(
        LogisticRegression(), labels=how, label_conditional=by_class, random_state=0
    )
    table = model.fit(X, y).calibrated.table
    shares = None if how is None or by_class else np.array([0.7, 0.2, 0.1])
    slow = brute.held_out_p_values(table.scores, table.labels, by_class=by_class, shares=shares)
    np.testing.assert_allclose(table.held_out_p_values(), slow, atol=1e-12)
    judged, covered = table.covered_by_class(0.9)
    held = (slow > 0.1 + 1e-9) | (table.calibration.values == table.labels)
    assert judged.tolist() == np.bincount(table.labels, minlength=3).tolist()
    assert covered.tolist() == np.bincount(table.labels[held], minlength=3).tolist()


def test_given_shares_say_that_they_promise_nothing_within_a_class():
    rng = np.random.default_rng(0)
    codes = np.append(np.arange(120) % 2, (rng.random(200) < 0.1).astype(int))
    frame = pd.DataFrame(rng.normal(size=(320, 2)) + codes[:, None], columns=["a", "b"])
    names = np.array(["no", "yes"], dtype=object)[codes]
    frame["y"] = np.where(np.arange(320) < 120, names, None)
    shares = ByClass({"yes": 0.1, "no": 0.9})
    given = fill(frame, "y", method="ridge", labels=shares)
    assert given.guarantee.within == ""
    assert "not within each class" in given.guarantee.statement
    assert "label_conditional=True makes it hold within every class" in given.guarantee.statement
    within = fill(frame, "y", method="ridge", labels=shares, label_conditional=True)
    assert within.guarantee.within == "class"
    assert "not within each class" not in within.guarantee.statement


def test_sets_of_one_class_say_how_many_are_right():
    rows = [
        {"value": "a", "set": ["a"], "unseen": False, "probability": 0.7},
        {"value": "b", "set": ["b"], "unseen": False, "probability": 0.9},
        {"value": "b", "set": ["a", "b"], "unseen": False, "probability": 0.5},
    ]
    found = describe_classes(rows, 0.9)
    assert found.numbers["right_if_one"] == pytest.approx(0.8)
    assert found.sentences == [
        "At 90 % the set holds one class at 2 rows, several at 1.",
        "Where it holds one, about 80 % are right (estimated).",
    ]
    unknown = [row | {"probability": None} for row in rows]
    assert (
        "does not mean that 90 % of those are right" in describe_classes(unknown, 0.9).sentences[1]
    )
    # Where nothing is guaranteed, a share of them is no estimate either.
    nothing = describe_classes(rows, 0.9, claims=False)
    assert "does not mean that 90 % of those are right" in nothing.sentences[1]


def test_hidden_labels_of_one_class_say_nothing_of_the_others():
    """All 94 relevant papers found, 39 draws without one: “! 100 % right, no better” it said."""
    hidden = pd.DataFrame({"true": ["no"] * 39, "answered": ["no"] * 39})
    quality = class_quality(hidden)
    assert (quality.large, quality.one_class, quality.judged) == ("100 % right", "no", "")
    both = pd.DataFrame({"true": ["no"] * 38 + ["yes"], "answered": ["no"] * 39})
    assert class_quality(both).one_class == ""
    assert class_quality(both).judged == "The predictions are no better."


def test_the_card_of_one_class_alone_is_no_alarm():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120)})
    frame["y"] = np.where(np.arange(120) < 50, np.where(frame["a"] > 9, "yes", "no"), None)
    frame.loc[:4, "y"] = "yes"
    frame["drawn"] = np.arange(120) >= 11
    frame.loc[frame["y"].isna(), "drawn"] = False
    result = fill(frame, "y", method="ridge", labels=Drawn("drawn"))
    card = cards_of(result)["How good are the predictions?"]
    assert (card["large"], card["tone"]) == ("100 % right", "fair")
    assert "all of which are “no”" in card["small"]


@pytest.mark.slow
def test_the_estimate_for_sets_of_one_class_is_about_right():
    said, right = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 500)
        frame = pd.DataFrame(rng.normal(size=(500, 2)) + codes[:, None], columns=["a", "b"])
        names = np.array(["no", "yes"], dtype=object)[codes]
        frame["y"] = np.where(np.arange(500) < 100, names, None)
        result = fill(frame, "y", method="ridge")
        one = result.answer.label_sets.sum(axis=1) == 1
        said.append(result.summary()["answers"]["right_if_one"])
        right.append(np.mean((result.answer.values == names[100:])[one]))
    assert abs(np.mean(said) - np.mean(right)) < 0.04


def test_what_is_shown_beside_a_class_is_its_probability_alone(capsys):
    from transduce.app.cli.terminal import show_preview

    result = fill(imbalanced(0), "y", method="ridge")
    show_preview(result)
    shown = capsys.readouterr().out
    assert "probability" in shown
    assert "confidence" not in shown
    page = result.report()
    assert ">Probability</th>" in page
    assert ">Confidence</th>" not in page
    order = least_certain_first(result.answer)
    own = result.new["y_probability"].to_numpy()[result.answer.rows[order]]
    usual = result.answer.status[order] == "answered"
    assert (np.diff(own[usual]) >= -1e-12).all()  # in the order of what is shown


# -------------------------------------------------------------------------------------------------- words


def test_bounds_of_an_approximate_guarantee_are_hedged():
    from transduce.core.guarantee import CountBound

    bound = CountBound(0.95, 18, 100, 9.0)
    exact = Guarantee(
        "exact", about="interval", confidence=0.9, outside=bound, assumptions=(CHANCE,)
    )
    assert "With 95 % certainty at most 18 of the 100" in str(exact)
    drifting = exact.along(Drift(0.9, True, 0.002, True))
    assert "Were it exact, with 95 % certainty at most 18 of the 100" in str(drifting)
    assert "It holds approximately, for any distribution, if" in str(drifting)
    assert "and makes it approximate" in str(exact.decided_by(2.0))


@pytest.mark.parametrize(
    ("p_value", "words"),
    [(0.021, "signs that errors drift"), (0.5, "No drift of the errors was found")],
)
def test_signs_of_a_drift_are_not_called_none(p_value, words):
    drift = Drift(0.9, True, p_value, False, 0.4)
    assert words in str(drift)
    assert "rank correlation of 0.4" not in str(drift)
    assert "rank correlation of 0.4" in drift.power


def test_an_exact_guarantee_is_printed_without_what_is_for_statisticians():
    guarantee = fill(positive(0), "y", method="ridge").guarantee
    assert guarantee.details
    assert "given only to predict" not in guarantee.grounds
    assert "leave-one-out" not in str(guarantee)
    assert "leave-one-out" in guarantee.grounds


def test_held_out_labels_are_not_said_to_look_like_unlabelled_rows():
    frame, _ = series()
    result = fill(frame, "y", method="ridge", labels=Chance(reweight=False), guarantee="column")
    assert result.guarantee.verdict.shifted
    assert "could not tell" not in str(result.guarantee)


def test_a_card_names_the_condition_of_drawn_labels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    drawn = np.arange(200) < 40
    chosen = (np.arange(200) < 80) & ~drawn
    frame["y"] = np.where(drawn | chosen, frame["a"] + 0.2 * rng.normal(size=200), np.nan)
    result = fill(frame.assign(d=drawn), "y", method="ridge", labels=Drawn("d"))
    assert DRAWN in result.guarantee.assumptions
    assert "drawn at random" in cards_of(result)["Can it be trusted?"]["small"]


def test_draws_without_a_label_leave_a_lower_level():
    rng = np.random.default_rng(1)
    n = 300
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    drawn = np.arange(n) < 40
    labelled = (np.arange(n) >= 5) & (np.arange(n) < 100)  # of 40 drawn rows 35 have a label
    frame["y"] = np.where(labelled, frame["a"] + 0.3 * rng.normal(size=n), np.nan)
    none = fill(frame.assign(d=drawn), "y", method="ridge", labels=Drawn("d"))
    assert none.guarantee.kind == "none"
    assert none.guarantee.reachable == 0.85
    assert "85 %" in none.summary()["to_do"]
    lower = fill(frame.assign(d=drawn), "y", method="ridge", labels=Drawn("d"), confidence=0.85)
    assert lower.guarantee.kind == "exact"
    best = fill(frame.assign(d=drawn), "y", method="ridge", labels=Drawn("d"), confidence=0.88)
    assert best.guarantee.kind == "none"


def test_a_value_at_an_end_of_its_interval_is_explained():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    y = frame["a"] ** 3 + rng.standard_t(2, size=400)
    result = fill(frame.assign(y=y.where(np.arange(400) < 60)), "y")
    new = result.new[result.new["y_status"] == "answered"]
    n_ends = int(((new["y_filled"] == new["y_lower"]) | (new["y_filled"] == new["y_upper"])).sum())
    notes = [note for note in result.notes if "an end of its interval" in note]
    assert len(notes) == (n_ends > 0)
    assert not n_ends or f"At {n_ends} row" in notes[0]
