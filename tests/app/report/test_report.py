"""The report: numbers are those of the library, nothing from the table acts, and every page is whole."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.report import filled_examples as examples
from transduce import Answer, ConformalTransducer, Guarantee, Regions, TransductiveRidgeClassifier
from transduce.app.filling.options import Options
from transduce.app.report import render_html, render_json, summarize
from transduce.app.report.figures import draw_figures
from transduce.app.report.filled_column import RowCounts
from transduce.app.report.jsonable import (
    escape_text,
    format_number,
    interval_text,
    json_name,
    rough_percent,
    to_json,
)
from transduce.app.report.quality import class_quality, number_quality
from transduce.app.report.rows import context_columns, describe_classes, least_certain_first
from transduce.conformal import Chance, exchangeability_test
from transduce.conformal.designs.grouped import CHANCE_OF_GROUPS
from transduce.conformal.designs.sampled import PROBABILITIES
from transduce.core.assumptions import CHANCE, DRAWN

NAMES = (
    "numbers",
    "unbounded",
    "machine",
    "blend",
    "two_classes",
    "three_classes",
    "many_classes",
    "nothing_unlabelled",
)
SOME = [
    pytest.param(name, marks=[] if name in ("numbers", "three_classes") else pytest.mark.slow)
    for name in NAMES
]
VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """What a page is made of: tags with attributes, texts, and whether everything opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def summaries():
    return {name: summarize(getattr(examples, name)()) for name in NAMES}


@pytest.fixture(scope="module")
def pages(summaries):
    return {name: render_html(summary) for name, summary in summaries.items()}


# ------------------------------------------------------------------------------------------------------- exact


def test_numbers_are_those_of_the_library(summaries):
    filled, summary = examples.numbers(), summaries["numbers"]
    law = filled.miscoverage
    assert summary["law"]["at_most"] == filled.guarantee.outside.at_most
    assert summary["law"]["expected"] == law.mean
    assert f"at most {law.quantile(0.95)} of the 150" in summary["guarantee"]["statement"]
    assert summary["guarantee"]["column"] == ""
    answers = filled.answer.to_frame()
    for row in summary["rows"]:
        line = answers.loc[row["position"]]
        assert row["value"] == line["value"]
        assert row["pieces"] == [[line["lower"], line["upper"]]]
        assert row["row"] == row["position"] + 1
    assert len(summary["rows"]) == summary["counts"]["unlabelled"] == 150
    assert summary["counts"]["labelled"] == 292


def test_classes_are_those_of_the_library(summaries):
    filled, summary = examples.two_classes(), summaries["two_classes"]
    answers = filled.answer.to_frame()
    for row in summary["rows"]:
        line = answers.loc[row["position"]]
        assert (row["value"], row["status"]) == (line["value"], line["status"])
        assert tuple(row["set"]) == line["set"]
        assert row["confidence"] == line["confidence"]
    sizes = filled.answer.label_sets.sum(axis=1)
    found = summary["answers"]
    assert (found["n_one"], found["n_several"]) == (np.sum(sizes == 1), np.sum(sizes > 1))
    assert sizes.min() > 0
    assert summary["counts"]["rejected"] == np.sum(filled.answer.status == "rejected") > 0


def test_quality_by_hand():
    found = number_quality(
        pd.DataFrame({"true": [1.0, 3.0, np.nan, 5.0], "answered": [2.0, 3.0, 9.0, np.nan]})
    ).numbers
    assert found["n"] == 2
    assert (found["mean_absolute_error"], found["of_the_mean"], found["r2"]) == (0.5, 1.0, 0.5)
    assert number_quality(pd.DataFrame({"true": [2.0], "answered": [2.0]})).numbers["r2"] is None
    table = pd.DataFrame(
        {
            "true": [1.0, 1.0, 2.0, 10.0],
            "answered": [1.0, 2.0, 2.0, 1.0],
            "probability": [0.9, 0.6, 0.8, 0.5],
        }
    )
    assert number_quality(table[:0]) is class_quality(table[:0]) is None
    found = class_quality(table).numbers
    assert found["classes"] == ["1", "2", "10"]
    assert found["confusion"] == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert found["accuracy"] == found["of_the_commonest"] == 0.5
    assert found["rejection"]["errors"] == [0.5, pytest.approx(1 / 3), 0.0, 0.0]
    assert found["rejection"]["error_of_surer_half"] == 0.0
    assert class_quality(table.drop(columns="probability")).numbers["rejection"] is None


def test_rare_classes_go_together(summaries):
    found = summaries["many_classes"]["quality"]
    assert len(found["classes"]) == 12
    assert found["classes"][-1] == "other classes"
    assert np.sum(found["confusion"]) == found["n"]
    assert found["classes"][:-1] == sorted(found["classes"][:-1], key=int)


def test_least_certain_come_first():
    regions = Regions.from_pieces([[(0, 1)], [(0, np.inf)], [(0, 1), (2, 3)], [(0, 1)]])
    status = np.array(["answered", "answered", "answered", "unreached"])
    answer = Answer(np.arange(4), np.zeros(4), status, Guarantee("none"), regions=regions)
    assert least_certain_first(answer).tolist() == [3, 1, 2, 0]
    surer = replace(
        answer, regions=None, confidence=np.array([0.3, 0.9, 0.3, 0.1]), credibility=np.arange(4.0)
    )
    assert least_certain_first(surer).tolist() == [3, 0, 2, 1]
    status[1] = "rejected"
    assert least_certain_first(surer).tolist() == [3, 1, 0, 2]


def test_other_certainty_has_its_own_sentence():
    model = ConformalTransducer(examples.TransductiveRidge(), random_state=0)
    filled = examples.make(
        examples.diabetes(), "progression", model, examples.TransductiveRidge(), task="regression"
    )
    answer = replace(filled.answer, guarantee=model.guarantee_at(certainty=0.8))
    summary = summarize(replace(filled, certainty=0.8, answer=answer))
    assert summary["law"]["at_most"] == model.outside_at_most(0.8)
    page = render_html(summary)
    assert "With 80\u00a0% certainty at most" in page
    assert "With 95\u00a0% certainty at most" not in page


def test_class_conditional_laws_have_a_bound_and_no_plot(figures):
    filled = examples.two_classes()
    frame = filled.frame
    X, y = frame.drop(columns="diagnosis").to_numpy(float), frame["diagnosis"].to_numpy(object)
    model = ConformalTransducer(
        TransductiveRidgeClassifier(), label_conditional=True, random_state=0
    ).fit(X, y)
    summary = summarize(
        replace(
            filled,
            answer=model.answer_,
            miscoverage=model.miscoverage_,
            exchangeability=model.exchangeability_,
        )
    )
    assert summary["law"]["rank"] is None
    assert summary["law"]["at_most"] == model.outside_at_most(0.95)
    assert "at most" in summary["guarantee"]["statement"].partition(";")[2]
    assert "law" not in draw_figures(summary)


def test_shifted_rows_are_said_aloud():
    filled = examples.numbers()
    model = ConformalTransducer(
        examples.TransductiveRidge(), random_state=0, labels=Chance(reweight=False)
    )
    frame = filled.frame.copy()
    X = frame.drop(columns="progression").to_numpy(float)
    y = frame["progression"].to_numpy(float)
    X = X + np.where(np.isnan(y), 30.0, 0.0)[:, None] * (np.arange(X.shape[1]) == 2)
    with pytest.warns(UserWarning, match="rows differ"):
        model.fit(X, y)
    summary = summarize(
        replace(
            filled,
            answer=model.answer_,
            miscoverage=model.miscoverage_,
            exchangeability=model.exchangeability_,
        )
    )
    assert summary["guarantee"]["kind"] == "approximate"
    assert summary["exchangeability"]["shifted"]
    assert summary["exchangeability"]["features"]
    assert "rows differ" not in summary["guarantee"]["grounds"]
    page = render_html(summary)
    assert page.count("rows differ") == 1
    assert 'class="alarm"' in page
    assert "--random-labels" in summary["to_do"]


def test_a_verdict_that_could_not_be_reached_is_not_called_a_check(pages):
    assert "was not tested" in pages["machine"]
    filled = examples.machine()
    few = exchangeability_test(np.zeros((6, 1)), np.arange(6) < 3)
    summary = summarize(replace(filled, exchangeability=few))
    assert summary["exchangeability"]["tested"] is False
    page = render_html(summary)
    assert "Checked" not in page
    assert page.count("cannot be tested") == 1


# -------------------------------------------------------------------------------------------------------- laws


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SOME)
def test_a_page_is_the_same_every_time(summaries, pages, name, figures):
    assert summarize(getattr(examples, name)()) == summaries[name]
    assert render_html(json.loads(render_json(summaries[name]))) == pages[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole(pages, name):
    page = pages[name]
    assert len(page.encode()) < 1_500_000
    found = Page(page)
    assert found.open == []
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in found.tags:
        for key in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
            assert attributes.get(key, ids[0]) in ids
        for key in ("href", "xlink:href"):
            target = attributes.get(key, "data:,")
            assert target == "data:," or target[1:] in ids
    assert not re.search(r"https?:|//[a-z]", page.replace("<!DOCTYPE", "").partition("<body>")[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_accessible(pages, name):
    page = Page(pages[name])
    assert page.all("html") == [{"lang": "en"}]
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1", "title")] == [
        1
    ] * 6
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for attributes in page.all("th"))
    for attributes in page.all("svg"):
        assert attributes["role"] == "img"
        assert attributes["aria-labelledby"]
    assert len(page.all("svg")) == len(page.all("figure")) == len(page.all("figcaption"))
    assert len(page.all("script")) == 1


def test_colours_have_contrast(pages):
    """Every colour of text stands out from white and from the pale ground by 4.5 to 1."""
    page = pages["machine"]

    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for ground in ("#ffffff", "#f3f6f8"):
        for colour in ("#1f2a33", "#4d5b66", "#1b6ca8", "#b02e17", "#33414c", "#8a5a00"):
            assert (light(ground) + 0.05) / (light(colour) + 0.05) >= 4.5
            assert colour in page
    for ground in ("#141b21", "#202a32"):
        for colour in ("#e6ebef", "#a9b6c0", "#6db3e8", "#ff8f78", "#e5b04a"):
            assert (light(colour) + 0.05) / (light(ground) + 0.05) >= 4.5
            assert colour in page


def test_figures_say_in_words_what_they_show(pages):
    names = {name: set(re.findall(r'<h3 id="(\w+)-title">', page)) for name, page in pages.items()}
    assert names["numbers"] == {"answers", "law", "quality", "relevance", "map", "overlap"}
    assert names["two_classes"] == {
        "answers",
        "law",
        "quality",
        "rejection",
        "relevance",
        "map",
        "overlap",
    }
    assert names["machine"] == {"answers", "quality", "relevance", "map"}
    assert names["unbounded"] == {"answers", "quality", "relevance", "map", "overlap"}
    assert names["nothing_unlabelled"] == {"quality", "relevance"}
    for page in pages.values():
        for text in re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", page):
            assert re.search(r"\d.*\.$", text)


def test_settings_of_matplotlib_do_not_change_a_page(summaries, pages, figures):
    with mpl.rc_context(
        {"font.size": 30, "text.color": "red", "svg.fonttype": "path", "lines.linewidth": 9}
    ):
        assert render_html(summaries["machine"]) == pages["machine"]


@given(st.text())
def test_any_text_is_fit_for_a_page(text):
    found = escape_text(text)
    assert found.encode("utf-8").decode("utf-8") == found
    assert escape_text(found) == found
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", found)
    assert len(escape_text(text, 5)) <= 5
    assert json_name(text)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
))  # fmt: skip
def test_plain_values_are_json(value):
    found = to_json(value)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert to_json(found) == found


def test_plain_values_of_other_kinds():
    stamp = pd.Timestamp("2024-02-03")
    assert to_json([np.int64(3), np.bool_(True), pd.NA, pd.NaT, stamp, {"b", "a"}, np.array([1.5, -np.inf])]) == [
        3, True, None, None, "2024-02-03 00:00:00", ["a", "b"], [1.5, None],
    ]  # fmt: skip
    assert to_json(pd.Series([1, 2])) == [1, 2]


# ------------------------------------------------------------------------------------------------------ limits


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SOME)
def test_nothing_from_the_table_acts(name, figures):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = render_html(summarize(examples.spoil(getattr(examples, name)())))
    found = Page(page)
    assert found.open == []
    assert len(found.all("script")) == 1
    assert found.all("img") == []
    assert not any(key.startswith("on") for _, attributes in found.tags for key in attributes)
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert page.encode("utf-8")
    assert any("東京" in text for text in found.texts)
    assert any("(no name)" in text for text in found.texts)


def test_unbounded_intervals_have_words(summaries, pages):
    summary = summaries["unbounded"]
    assert all(row["pieces"] == [[None, None]] for row in summary["rows"])
    assert summary["guarantee"]["kind"] == "none"
    assert summary["law"]["at_most"] is None
    assert "any number" in pages["unbounded"]
    assert any("unbounded" in caveat for caveat in summary["caveats"])
    assert "unbounded" in " ".join(summary["reply"])
    assert "Nothing is guaranteed" in summary["guarantee"]["column"]


def test_no_row_unlabelled(summaries, pages):
    page = pages["nothing_unlabelled"]
    assert "nothing to fill" in page
    assert 'id="filled"' not in page
    assert summaries["nothing_unlabelled"]["caveats"] == []


def test_unreached_rows_have_no_value(summaries):
    summary = summaries["many_classes"]
    assert [row["value"] for row in summary["rows"][:5]] == [None] * 5
    assert summary["counts"]["unreached"] == 5
    assert "5 have none, because" in " ".join(summary["reply"])
    assert {"name": "(no answer)", "one": 5, "several": 0} in summary["answers"]["by_class"]


def test_no_number_at_all(figures):
    filled = examples.numbers()
    status = np.full(150, "unreached")
    values = np.full(150, np.nan)
    regions = Regions.from_intervals(np.tile([-np.inf, np.inf], (150, 1)))
    answer = replace(filled.answer, status=status, values=values, regions=regions)
    summary = summarize(examples.with_answer(filled, answer))
    assert summary["answers"]["n_answered"] == 0
    assert "150 have none, because" in render_html(summary)
    assert "answers" not in draw_figures(summary)


def test_bare_records(figures):
    """No out-of-fold answers, members, relevance, map, sets, settings or notes."""
    filled = examples.two_classes()
    answer = replace(
        filled.answer,
        label_sets=None,
        credibility=None,
        confidence=None,
        probabilities=None,
        guarantee=Guarantee("none"),
    )
    bare = replace(
        filled,
        answer=answer,
        miscoverage=None,
        exchangeability=None,
        members=filled.members[:0],
        out_of_fold=filled.out_of_fold[:0],
        relevance=None,
        map=None,
        options={},
        notes=[],
    )
    summary = summarize(bare)
    assert (summary["quality"], summary["law"], summary["map"], summary["relevance"]) == (None,) * 4
    assert summary["answers"]["n_one"] is None
    assert Page(render_html(summary)).open == []
    assert list(draw_figures(summary)) == ["answers"]
    hollow = replace(
        bare,
        relevance=pd.Series(dtype=float),
        out_of_fold=pd.DataFrame({"true": [None], "answered": ["a"]}),
    )
    assert summarize(hollow)["relevance"] is summarize(hollow)["quality"] is None


def test_plots_of_little(figures):
    """One class known, no mistake, no place on the map, no row of any class."""
    filled = examples.three_classes()
    pairs = pd.DataFrame({"true": ["a", "a"], "answered": ["a", "a"]})
    nowhere = filled.map * np.nan
    nobody = replace(filled.answer, **{
        name: getattr(filled.answer, name)[:0]
        for name in ("rows", "values", "status", "label_sets", "p_values", "confidence", "credibility")
    })  # fmt: skip
    summary = summarize(
        replace(examples.with_answer(filled, nobody), out_of_fold=pairs, map=nowhere)
    )
    drawn = draw_figures(summary)
    assert set(drawn) == {"quality", "relevance"}
    assert "None of the classes was taken for another" in drawn["quality"].text


def test_rows_far_off_do_not_spoil_the_map(summaries, figures):
    summary = summaries["three_classes"]
    x = [1e6, *summary["map"]["x"][1:]]
    assert "drawn at the edge" not in draw_figures(summary)["map"].text
    drawn = draw_figures({**summary, "map": {**summary["map"], "x": x}})["map"]
    assert "1 row far off is drawn at the edge" in drawn.text


def test_many_classes_are_drawn_together(summaries, figures):
    summary = summaries["many_classes"]
    names = [f"class {i}" for i in range(20)]
    tallies = [{"name": name, "one": 2, "several": 1} for name in names]
    changed = {**summary, "answers": {**summary["answers"], "by_class": tallies}}
    svg = render_html(changed)
    assert "class 13<" in svg
    assert "class 14<" not in svg
    assert "other classes" in svg


def test_long_tables_are_cut_in_the_page_only():
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame(
        {"x": rng.normal(size=n), "y": [None] * n}, index=[f"row {i}" for i in range(n)]
    )
    ends = np.sort(rng.normal(size=(n, 2)), axis=1)
    answer = Answer(
        np.arange(n),
        ends.mean(axis=1),
        np.full(n, "answered"),
        Guarantee("exact", about="interval", confidence=0.9),
        regions=Regions.from_intervals(ends),
    )
    filled = replace(
        examples.numbers(),
        frame=frame,
        labels=examples.labels_of(frame, "y", "regression"),
        answer=answer,
        counts=RowCounts.count_rows(n, answer),
        row_names=list(frame.index),
        map=pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "y"]),
        out_of_fold=pd.DataFrame({"true": ends[:, 0], "answered": ends[:, 1]}),
    )
    summary = summarize(filled)
    assert len(summary["rows"]) == n
    assert summary["rows"][0]["row"].startswith("row ")
    page = render_html(summary)
    assert page.count('<th scope="row"><span class="cell">row ') == 1000
    assert "1,000 least certain of 3,000" in page
    assert len(page.encode()) < 1_500_000
    drawn = draw_figures(summary)
    assert "300 of them are drawn" in drawn["answers"].text
    assert "1,000 of them are drawn" in drawn["quality"].text
    assert "spread evenly over all 3,000" in drawn["map"].text


def test_columns_that_tell_rows_apart_come_first():
    filled = examples.numbers()
    assert context_columns(filled) == ["age", "sex", "bmi"]
    kinds = filled.columns.assign(
        kind=["number"] * 6 + ["identifier"] + ["ignored"] * 3 + ["target"]
    )
    assert context_columns(replace(filled, columns=kinds)) == ["s3", "age", "sex"]
    assert context_columns(replace(filled, columns=kinds[:0])) == []
    assert summarize(replace(filled, columns=kinds[:0]))["rows"][0]["context"] == []


def test_words():
    assert [rough_percent(share) for share in (0.9, 0.9999, 1.0, 0.0)] == [
        "90 %",
        "99.99 %",
        "100 %",
        "0 %",
    ]
    assert format_number(-3.0, 0) == "−3"
    assert format_number(math.pi * 1e-12) == "3.142e-12"
    assert interval_text([[None, 2.0]], 0) == "2 or less"
    assert interval_text(None, 0) == "–"
    assert json_name(None) == json_name(np.nan) == "(no name)"


def test_constant_values_can_be_mapped_and_drawn(figures):
    filled = examples.machine()
    answer = replace(filled.answer, values=np.full(len(filled.answer), 7.0))
    frame = filled.frame.assign(
        progression=np.where(filled.frame["progression"].isna(), np.nan, 7.0)
    )
    pairs = pd.DataFrame({"true": [7.0, 7.0], "answered": [7.0, 7.0]})
    labels = examples.labels_of(frame, "progression", "regression")
    summary = summarize(
        replace(filled, frame=frame, labels=labels, answer=answer, out_of_fold=pairs)
    )
    assert set(draw_figures(summary)) == {"answers", "quality", "relevance", "map"}
    status = np.where(np.arange(len(answer)) < 3, "unreached", "answered")
    assert "map" in draw_figures(summarize(replace(filled, answer=replace(answer, status=status))))


# ------------------------------------------------------------------------------------------------ the first screen


def test_three_questions_are_answered_first(summaries, pages):
    large = {
        name: [card["large"] for card in summary["cards"]] for name, summary in summaries.items()
    }
    quality = summaries["numbers"]["quality"]
    assert large["numbers"][0] == f"off by {quality['mean_absolute_error']:.1f} on average"
    assert large["numbers"][1:] == ["at least 90 %", "guarantee: exact"]
    assert (
        large["two_classes"][0]
        == f"{rough_percent(summaries['two_classes']['quality']['accuracy'])} right"
    )
    assert large["unbounded"][1:] == ["nothing", "no guarantee"]
    assert large["nothing_unlabelled"] == []
    for name, summary in summaries.items():
        page = pages[name]
        header = page[: page.index("<main")]
        for card in summary["cards"]:
            assert card["question"] in header
            assert f'<div class="{card["tone"]}">' in header
    assert {card["tone"] for card in summaries["unbounded"]["cards"][1:]} == {"bad"}


def test_kinds_of_guarantee_look_different():
    filled = examples.numbers()
    tones = {}
    for kind in ("exact", "approximate", "none"):
        answer = replace(filled.answer, guarantee=replace(filled.answer.guarantee, kind=kind))
        card = summarize(replace(filled, answer=answer))["cards"][2]
        tones[kind] = (card["tone"], card["icon"])
    assert len(set(tones.values())) == 3


@pytest.mark.parametrize("assumption", [CHANCE, DRAWN, PROBABILITIES, CHANCE_OF_GROUPS])
def test_caveats_follow_the_design(assumption):
    filled = examples.numbers()
    guarantee = replace(
        filled.answer.guarantee, kind="exact", assumptions=(assumption,), verdict=None
    )
    caveats = " ".join(
        summarize(replace(filled, answer=replace(filled.answer, guarantee=guarantee)))["caveats"]
    )
    assert f"assumes that {assumption}." in caveats
    assert ("A test can find signs" in caveats) == (assumption == CHANCE)
    assert assumption == CHANCE or "rows were labelled at random" not in caveats


def test_the_first_screen_says_what_to_do(summaries, pages):
    for name, summary in summaries.items():
        told = pages[name].find("What to do next:")
        assert (told > 0) == bool(summary["counts"]["unlabelled"])
        assert told < pages[name].find("<nav ")
    assert summaries["unbounded"]["to_do"].startswith("Take the values as suggestions")
    for page in pages.values():
        for words in ("candidate label", "Score out of fold"):
            for place in re.finditer(words, page):
                assert page.rfind("<details>", 0, place.start()) > page.rfind(
                    "</details>", 0, place.start()
                )


def test_answers_that_say_little_are_called_so():
    filled = examples.numbers()
    true = filled.out_of_fold["true"].to_numpy(float)
    guess = filled.out_of_fold.assign(answered=true.mean() - 0.1 * (true - true.mean()))
    assert (
        "The predictions are no better."
        in summarize(replace(filled, out_of_fold=guess))["cards"][0]["small"]
    )
    close = filled.out_of_fold.assign(answered=true.mean() + 0.03 * (true - true.mean()))
    told = summarize(replace(filled, out_of_fold=close))
    assert "The predictions are hardly better." in told["cards"][0]["small"]
    assert told["to_do"].startswith("Add columns that tell more about")
    wide = replace(
        filled.answer,
        regions=Regions.from_intervals(np.tile([-500.0, 900.0], (len(filled.answer), 1))),
    )
    assert "they say little" in summarize(replace(filled, answer=wide))["cards"][1]["small"]
    none = describe_classes([{"value": "a", "set": ["a", "b"], "unseen": False}] * 9, 0.9)
    assert none.little == " But no set rules out all classes except one: they say little."
    bare = summarize(replace(filled, out_of_fold=filled.out_of_fold[:0]))["cards"]
    assert [card["question"] for card in bare] == ["What is guaranteed?", "Can it be trusted?"]


def test_never_nothing_beside_a_number(pages):
    """A page that bounds how many are outside does not say that nothing is guaranteed."""
    for page in pages.values():
        if re.search(r"at most [\d,]+ of the [\d,]+ true", page):
            assert "othing is guaranteed" not in page


def test_to_do_it_again(summaries, pages):
    options = Options(missing=["-", "x y"], probabilities=True, random_state=0)
    command = options.as_command("my houses.csv", "price", "regression")
    words = "--target price --task regression --probabilities --missing=- --missing 'x y'"
    assert command == f"transduce fill 'my houses.csv' {words}"
    call = options.as_call("price", "regression")
    assert (
        call
        == "fill(table, 'price', task='regression', missing=['-', 'x y']).with_options(probabilities=True)"
    )
    assert summaries["numbers"]["again"] in pages["numbers"]
    assert f"This page was made on {summaries['numbers']['made']}" in pages["numbers"]


def test_plain_words(pages):
    for page in pages.values():
        assert "slowest" not in page
        assert ">known value<" in page or 'id="map-title"' not in page
