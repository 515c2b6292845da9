"""Certificates of a whole session, their curves and their sentences, by states that are written down by hand."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from types import SimpleNamespace

import numpy as np
import pytest

from transduce.app.labelling import certificates
from transduce.app.labelling.certificates import (
    Audit,
    Certificates,
    Draws,
    Intervals,
    RecallCertificate,
    WrongCertificate,
    _certify_share,
    _recall_ahead,
    _wrong_ahead,
    after_more_draws,
    bound_curve,
    certify,
    certify_answers,
    certify_recall,
    certify_share,
    class_shares,
    draws_needed,
    first_rejection,
    intervals,
    log_martingale,
    share_of_level,
    total_at_most,
)
from transduce.app.labelling.sentences import (
    about_answers,
    about_intervals,
    about_left,
    about_recall,
    certificate_text,
    rounded_down,
    rounded_up,
)
from transduce.core.ranks import calibration_rank

# ------------------------------------------------------------------------------------------------- exact


def test_percentages_are_rounded_to_the_safe_side():
    for thousandths in range(0, 1001):
        for share in (thousandths / 1000, thousandths / 1000 + 0.0004, thousandths / 1000 - 0.0004):
            if not 0 <= share <= 1:
                continue
            exact = Fraction(repr(share)) * 1000
            assert rounded_down(share) == f"{floor(exact) / 10:g} %"
            assert rounded_up(share) == f"{ceil(exact) / 10:g} %"


def test_draws_are_read_row_by_row():
    draws = Draws.of([(9, 2, True), (8, 3, False)])
    assert draws.unlabelled.tolist() == [9, 8]
    assert draws.known.tolist() == [2, 3]
    assert draws.hits.tolist() == [True, False]
    assert len(Draws.of([])) == 0
    assert draws[1:].known.tolist() == [3]


def test_a_total_that_a_miss_makes_impossible_is_rejected_from_then_on():
    """Two rows, both of which would have to be hits: a miss rules that out for good."""
    draws = Draws.of([(2, 0, False), (1, 0, True)])
    assert log_martingale(draws, 2).tolist() == [np.inf, np.inf]
    assert first_rejection(draws, 2, 0.01) == 1


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_the_forecast_of_draws_is_what_happens(level):
    """The draws forecast, all of them misses, reject the total; one fewer does not."""
    for found, doubtful, pool, total in ((5, 0, 80, 8), (0, 0, 30, 1), (3, 2, 60, 9)):
        audit = Audit(Draws.of([]), found, doubtful, pool)
        needed = draws_needed(audit, total, level)
        known = found + doubtful
        rows = [(pool - s, known, False) for s in range(needed)]
        assert first_rejection(Draws.of(rows), total, level) == needed
        assert first_rejection(Draws.of(rows[:-1]), total, level) is None
    assert draws_needed(Audit(Draws.of([]), 3, 2, 60), 5, level) is None
    assert draws_needed(Audit(Draws.of([]), 3, 2, 60), 66, level) == 0


def test_certificates_count_what_they_are_about():
    draws = Draws.of([(100 - s, 5, False) for s in range(40)])
    audit = Audit(draws, found=5, doubtful=2, pool=58)
    assert audit.most == 65
    recall = certify_recall(audit, recall=0.5, certainty=0.9)
    assert (recall.found, recall.unlabelled, recall.n_draws) == (5, 60, 40)
    assert recall.total_at_most == total_at_most(audit, 0.1)
    answers = certify_answers(audit, share=0.1, certainty=0.9)
    assert (answers.found, answers.remaining, answers.n_draws) == (5, 60, 40)
    assert answers.wrong_at_most == total_at_most(audit, 0.1) - 5
    # 6 of 60 may be wrong: certain once 5 + 6 + 1 hits in all are ruled out.
    assert answers.draws_needed == draws_needed(audit, 12, 0.1)
    assert answers.reached == (answers.wrong_at_most <= 6)
    fresh = Audit(Draws.of([]), found=0, doubtful=0, pool=60)
    needed = certify_answers(fresh, share=0.1, certainty=0.9).draws_needed
    assert needed == draws_needed(fresh, 7, 0.1)
    assert needed != draws_needed(fresh, 8, 0.1)


def test_a_goal_is_reached_exactly_where_it_is():
    """Of 20 rows in all 19 are 95 %, of 21 they are not."""
    for total, reached in ((19, True), (20, True), (21, False)):
        certificate = RecallCertificate(19, total, 5, 9, 0.95, 0.9, 3)
        assert certificate.reached == reached
        assert certificate.missed_at_most == total - 19
    for wrong, reached in ((0, True), (6, True), (7, False)):
        assert WrongCertificate(0, wrong, 60, 9, 0.1, 0.9, 3).reached == reached


def test_the_curve_tells_when_each_bound_came():
    draws = Draws.of([(200 - s, 4, s in (3, 60)) for s in range(120)])
    audit = Audit(draws, found=6, doubtful=0, pool=80)
    curve = bound_curve(audit, 0.1)
    assert curve[0] == (0, 204)  # 200 rows could be drawn, and 4 hits were known
    assert curve[-1] == (120, total_at_most(audit, 0.1))
    for after, total in curve[1:-1]:
        assert first_rejection(draws, total + 1, 0.1) == after
    assert curve[-2][1] >= curve[-1][1]
    lowest = [total for after, total in curve if after < 120]
    assert min(lowest) <= curve[-1][1] + 2  # it goes all the way down
    assert bound_curve(Audit(Draws.of([]), 6, 0, 80), 0.1) == [(0, 86)]


def test_a_curve_of_all_totals_tells_the_best_bound_after_each_draw(monkeypatch):
    monkeypatch.setattr(certificates, "MOST_POINTS", 2000)
    draws = Draws.of([(30 - s, 5, False) for s in range(26)])
    audit = Audit(draws, found=5, doubtful=0, pool=4)
    bound = total_at_most(audit, 0.2)
    expected = {0: 35, 26: bound}
    for total in range(35, bound, -1):
        after = first_rejection(draws, total, 0.2)
        expected[after] = min(expected.get(after, 99), total - 1)
    assert bound_curve(audit, 0.2) == sorted(expected.items())


# ------------------------------------------------------------------------------------------------- a session


def session_state(**changes):
    """A state of 20 draws from 60 rows, by hand; what is in doubt counts 7 more."""
    draws = Draws.of([(60 - s, 3, False) for s in range(20)])

    def audit(kind, first=0):
        found = {"wanted": 3, "wrong": 1}.get(kind, 20)  # the rest: all that are not wanted
        return Audit(draws[first:], found, 0, 40)

    def outside(kind, doubt):
        return np.full(21, 3 if kind == "wanted" else 1) + 7 * doubt

    usual = {
        "certainty": 0.9,
        "recall": 0.8,
        "wanted": "yes",
        "is_wanted": "wanted",
        "is_wrong": lambda freeze: "wrong",
        "audit": audit,
        "outside": outside,
        "freezes": [],
        "predictions": None,
        "plan": None,
    }
    return SimpleNamespace(**usual | changes)


def test_the_certificate_of_found_rows_and_its_curve():
    state = session_state()
    found = certify(state, 0.1)
    audit = state.audit("wanted")
    assert found.recall == certify_recall(audit, recall=0.8, certainty=0.9)
    assert found.answers is None
    assert found.answers_curve == []
    *before, last = bound_curve(audit, 1.0 - 0.9)
    assert found.recall_curve[:-1] == [(s, 3 / total) for s, total in before]
    assert found.recall_curve[-1] == (last[0], found.recall.recall_at_least)
    assert certify(session_state(wanted=None), 0.1).recall is None


def test_a_total_of_no_rows_is_found_as_a_whole():
    nothing = Audit(Draws.of([]), 0, 0, 0)
    state = session_state(
        audit=lambda kind, first=0: nothing, outside=lambda kind, doubt: np.zeros(1)
    )
    assert certify(state, 0.1).recall_curve == [(0, 1.0)]


def test_only_the_last_freeze_counts_with_its_part_of_the_level():
    freezes = [SimpleNamespace(first_draw=first) for first in (0, 2, 4)]
    state = session_state(freezes=freezes)
    found = certify(state, 0.1)
    level = (1.0 - 0.9) * share_of_level(3)
    audit = state.audit("wrong", 4)
    expected = certify_answers(audit, share=0.1, certainty=1.0 - level)
    assert found.answers.wrong_at_most == expected.wrong_at_most
    assert found.answers.n_draws == 16
    assert found.answers.certainty == 0.9
    *before, last = bound_curve(audit, level)
    assert found.answers_curve[:-1] == [(s, max(total - 1, 0)) for s, total in before]
    assert found.answers_curve[-1] == (last[0], expected.wrong_at_most)
    assert share_of_level(1) == pytest.approx(0.8319, abs=1e-4)
    assert sum(map(share_of_level, range(1, 5000))) == pytest.approx(1.0, abs=1e-6)


def planned(rows, labels, *, count=None, level=0.5, pending=None, block=None, aside=0):
    """A state in which draws were planned, by hand."""
    number = len(rows) if count is None else count
    plan = SimpleNamespace(
        count=number, level=level, spoilt=False, searched=True, aside=aside, first_draw=5
    )
    return SimpleNamespace(
        plan=plan,
        drawn_in=lambda plan: rows,
        labels=dict.fromkeys(labels, "yes"),
        block=block,
        pending=pending,
        calibrating=lambda plan, level: rows,
    )


def test_how_far_planned_draws_are():
    assert intervals(SimpleNamespace(plan=None)) == Intervals()
    found = intervals(planned([1, 2, 3], [1, 2, 3]))
    assert found == Intervals(3, 3, 3, False, True, 0, False, 0)
    assert found.complete
    assert found.ready
    # One of three is skipped: at 50 % the second of the three scores is the threshold, and there are two.
    assert intervals(planned([1, 2, 3], [1, 2])).missing == 0
    assert intervals(planned([1, 2, 3], [1])).missing == calibration_rank(0.5, 3) - 1
    assert intervals(planned([1, 2, 3], [1, 2], aside=4)).missing == calibration_rank(0.5, 7) - 2
    # Before the last is made or judged, and where no level was planned, none is missing yet.
    assert intervals(planned([1, 2, 3], [1], count=4)).missing == 0
    assert intervals(planned([1, 2, 3], [1], pending=3)).missing == 0
    assert intervals(planned([1, 2, 3], [1], pending=3)).waiting
    assert intervals(planned([1, 2, 3], [1], level=0.0)).missing == 0


def test_an_earlier_block_calibrates_until_the_next_is_complete():
    for first, count in ((4, 9), (5, 0), (6, 0)):
        block = SimpleNamespace(first_draw=first, count=9)
        assert intervals(planned([1], [1], count=2, block=block)).earlier == count
    assert Intervals(planned=2, drawn=1, earlier=1).ready
    assert not Intervals(planned=2, drawn=1).ready
    assert not Intervals().complete
    assert Intervals(planned=1, drawn=1).complete


# ------------------------------------------------------------------------------------------------- sentences


def recall_words(**changes):
    usual = {
        "found": 19,
        "total_at_most": 25,
        "unlabelled": 50,
        "n_draws": 9,
        "recall": 0.95,
        "certainty": 0.9,
        "draws_needed": 30,
    }
    return about_recall(RecallCertificate(**usual | changes), "yes")


def test_what_is_said_of_rows_found():
    assert recall_words() == (
        "At least 76 % are found.",
        "19 rows of class “yes” found. With 90 % certainty at most 6 more rows of this class are left. "
        "30 more random draws without another “yes” would show that 95 % are found.",
    )
    assert recall_words(unlabelled=0) == (
        "Every row is labelled.",
        "19 rows of class “yes” found; none can be missing.",
    )
    assert recall_words(unlabelled=1)[0] == "At least 76 % are found."
    assert recall_words(total_at_most=20) == (
        "You can stop: at least 95 % are found.",
        "19 rows of class “yes” found. With 90 % certainty at most 1 more row of this class is left: "
        "95 % was the goal.",
    )
    assert recall_words(draws_needed=None)[0] == "Judge the skipped draws first."
    assert recall_words(n_draws=1)[0] == "At least 76 % are found."
    assert recall_words(n_draws=0) == (
        "Nothing is certain yet.",
        "19 rows of class “yes” found. Search first, then draw at random: 30 more random draws without another "
        "“yes” would show that 95 % are found.",
    )
    assert recall_words(n_draws=0, found=0) == (
        "Nothing is certain yet.",
        "No row of class “yes” is found yet. Search first, then draw at random.",
    )
    assert "1 row of class" in recall_words(n_draws=0, found=1)[1]


def answer_words(**changes):
    usual = {
        "found": 2,
        "wrong_at_most": 9,
        "remaining": 60,
        "n_draws": 12,
        "share": 0.1,
        "certainty": 0.9,
        "draws_needed": 15,
    }
    return about_answers(WrongCertificate(**usual | changes))


def test_what_is_said_of_wrong_answers():
    assert answer_words() == (
        "At most 9 of 60 answers are wrong.",
        "That is 15 % of them, and 90 % certain. 2 wrong answers found since the answers were frozen. "
        "15 more random draws without a wrong answer would show that at most 10 % are wrong.",
    )
    assert answer_words(remaining=0) == (
        "Every row is labelled.",
        "No answer is left that could be wrong.",
    )
    assert answer_words(remaining=1, wrong_at_most=1)[0] == "At most 1 of 1 answer is wrong."
    assert answer_words(n_draws=0)[0] == "Nothing is certain yet."
    assert answer_words(n_draws=0)[1].startswith("60 answers frozen. 15 more random draws")
    assert answer_words(n_draws=1)[0] == "At most 9 of 60 answers are wrong."
    assert answer_words(wrong_at_most=6)[1].endswith("since the answers were frozen.")
    assert answer_words(draws_needed=None)[1].endswith(
        "Judge the random draws that you skipped first."
    )


def test_what_is_said_of_intervals():
    assert about_intervals(Intervals()).endswith("draw when you like.")
    done = (
        "Calibrated by 1 random draw: what you export holds for the rows that had no label after the "
        "last of them."
    )
    assert about_intervals(Intervals(1, 1, 1)) == done
    assert about_intervals(Intervals(1, 1, 1, searched=True)).endswith(
        "The next draws begin a new block."
    )
    assert "2 draws that you skipped count as badly answered" in about_intervals(Intervals(5, 5, 3))
    spoilt = about_intervals(Intervals(5, 3, 3, spoilt=True, earlier=4))
    assert spoilt.startswith("Rows were labelled on purpose between the draws")
    assert spoilt.endswith("Until then the 4 before calibrate.")
    few = about_intervals(Intervals(5, 5, 3, missing=2))
    assert (
        few
        == "2 draws that you skipped count as badly answered, which is too many: judge 2 of them."
    )
    assert about_intervals(Intervals(5, 5, 3, missing=3)).endswith("begin a new block.")
    waiting = about_intervals(Intervals(5, 3, 2, waiting=True))
    assert waiting == (
        "2 of 5 random draws judged; until the last, label nothing that was not drawn."
    )
    assert about_intervals(Intervals(5, 3, 1, waiting=True)).endswith(" 1 draw skipped.")


def test_what_is_said_of_rows_left():
    def words(left, n_misses=0, mode="find", hit_was_drawn=False):
        state = SimpleNamespace(left_to_find=lambda: left, n_misses=n_misses, mode=mode)
        state.wanted = "yes"
        state.hit_was_drawn = hit_was_drawn
        return about_left(state)

    assert words(None) == ("", "")
    assert "hardly any more of class “yes”" in words(1.4)[0]
    assert "about 2 more of class “yes”" in words(1.5)[0]
    assert "about 1,200 more" in words(1234.0)[0]
    assert words(3.0, n_misses=29)[1] == ""
    assert words(3.0, n_misses=30)[1].startswith("The last 30 proposals were not “yes”")
    assert words(3.0, n_misses=30, mode="learn")[1] == ""
    # After many misses no number of rows is told that only the few draws leave open.
    assert "few are left, if any" in words(300.0, n_misses=140)[0]
    assert "about 300 more" in words(300.0, n_misses=140, hit_was_drawn=True)[0]


def test_the_text_of_all_certificates():
    recall = RecallCertificate(19, 25, 50, 9, 0.95, 0.9, 30)
    wrong = WrongCertificate(2, 9, 60, 12, 0.1, 0.9, 15)
    both = certificate_text(
        Certificates(recall, wrong, Intervals(), [], []), "yes", "papers.csv", "Nothing."
    )
    neither = certificate_text(
        Certificates(None, None, Intervals(), [], []), None, "papers.csv", "Nothing."
    )
    for words in ("Rows found:", "Random draws: 9.", "Frozen answers:"):
        assert words in both
        assert words not in neither
    assert "The filled table:\nNothing." in neither


# ------------------------------------------------------------------------------------------------- refusals


EARLIER = [(100, 2, False), (99, 2, True), (98, 3, False), (97, 3, False)]


def test_draws_that_are_still_to_come_bring_hits_as_often_as_those_before():
    """One of four was a hit: of eight more the fourth and the last."""
    audit = Audit(Draws.of(EARLIER), found=3, doubtful=1, pool=95)
    later = after_more_draws(audit, 8)
    assert later.draws.unlabelled[4:].tolist() == list(range(95, 87, -1))
    assert later.draws.known[4:].tolist() == [4, 4, 4, 4, 5, 5, 5, 5]
    assert later.draws.hits[4:].tolist() == [False, False, False, True] * 2
    assert (later.found, later.doubtful, later.pool) == (5, 1, 87)
    all_of_them = after_more_draws(audit, 500)
    assert (len(all_of_them.draws), all_of_them.pool) == (99, 0)
    before_any = after_more_draws(Audit(Draws.of([]), found=3, doubtful=1, pool=95), 8)
    assert (before_any.found, before_any.draws.hits.any()) == (3, False)
    few_hits = after_more_draws(Audit(Draws.of(EARLIER[:3]), found=3, doubtful=0, pool=95), 4)
    assert few_hits.draws.hits[3:].tolist() == [False, False, True, False]


def test_the_share_of_a_class_is_bounded_from_both_sides():
    """Half of the doubt a side; the rows in doubt may be of the class or not."""
    none_drawn = Draws.of([(1000 - s, 0, False) for s in range(60)])
    wanted = Audit(none_drawn, found=0, doubtful=1, pool=940)
    of_others = Draws.of([(1000 - s, s, True) for s in range(60)])
    others = Audit(of_others, found=60, doubtful=1, pool=940)
    share = certify_share(wanted, others, certainty=0.9)
    assert share.n_rows == 1001
    assert share.most == total_at_most(wanted, 0.05) < total_at_most(wanted, 0.03)
    assert share.fewest == 1001 - total_at_most(others, 0.05) == 0
    turned = certify_share(others, wanted, certainty=0.9)
    assert (turned.fewest, turned.most) == (1001 - share.most, 1001)
    assert turned.fewest > 60  # more than were found


def test_shares_of_classes_begin_with_those_that_have_most_labels():
    labels = {0: "a", 1: "b", 2: "b", 3: "c", 4: "b", 5: "c"}

    def audit(is_hit):
        hits = [is_hit(row, label) for row, label in labels.items()]
        known = np.cumsum([0, *hits])
        draws = [(50 - row, int(known[row]), bool(hit)) for row, hit in enumerate(hits)]
        return Audit(Draws.of(draws), found=sum(hits), doubtful=0, pool=44)

    state = SimpleNamespace(
        numbers=False,
        labelled=labels,
        classes=["a", "b", "c"],
        certainty=0.9,
        audit=audit,
        is_wanted=lambda row, label: label == "b",
    )
    shares = class_shares(state)
    assert [label for label, _ in shares] == ["b", "c", "a"]
    of_b = certify_share(
        audit(lambda row, label: label == "b"),
        audit(lambda row, label: label != "b"),
        certainty=0.9,
    )
    assert shares[0][1] == of_b == _certify_share(state)
    assert class_shares(SimpleNamespace(numbers=True)) == []
    nothing = Audit(Draws.of([]), found=0, doubtful=0, pool=44)
    state.audit = lambda is_hit: nothing
    assert _certify_share(state) is None


def test_what_more_draws_would_make_certain():
    audit = Audit(Draws.of(EARLIER), found=3, doubtful=1, pool=95)
    state = SimpleNamespace(
        wanted="yes", is_wanted=None, certainty=0.9, audit=lambda *which: audit, predictions=None
    )
    later = after_more_draws(audit, 30)
    assert _recall_ahead(state) == [(30, later.found / total_at_most(later, 0.1))]
    assert _recall_ahead(SimpleNamespace(wanted=None)) == []
    state.predictions = SimpleNamespace(first_draw=0)
    state.is_wrong = lambda frozen: None
    at_most = total_at_most(later, 0.2) - later.found
    assert _wrong_ahead(state, 0.2) == [(30, at_most / (1 + 65))]
    few = Audit(Draws.of([]), found=0, doubtful=0, pool=30)
    state.audit = lambda *which: few
    assert _recall_ahead(state) == _wrong_ahead(state, 0.2) == []  # as many as there are rows
    none = Audit(Draws.of([(200 - s, 0, False) for s in range(169)]), 0, 0, 31)
    state.audit = lambda *which: none
    assert _recall_ahead(state) == [(30, 1.0)]  # nothing is left to be found


def test_counts_and_levels_that_make_no_sense_are_refused():
    for rows in ([(0, 1, True)], [(5, -1, True)], [(0, -1, True)]):
        with pytest.raises(ValueError, match="from 1 row or more"):
            Draws.of(rows)
    with pytest.raises(ValueError, match="list of"):
        Draws.of([("a", 1, True)])
    with pytest.raises((TypeError, ValueError), match="Draws"):
        Audit([], 0, 0, 10)
    for certified, level in ((certify_recall, "recall"), (certify_answers, "share")):
        with pytest.raises((TypeError, ValueError), match="Audit"):
            certified("audit", **{level: 0.5}, certainty=0.9)
        with pytest.raises((TypeError, ValueError), match=level):
            certified(Audit(Draws.of([]), 5, 0, 10), **{level: "half"}, certainty=0.9)
    with pytest.raises(ValueError, match="share"):
        certify_answers(Audit(Draws.of([]), 5, 0, 10), share=1.0, certainty=0.9)
    draws = Draws.of([])
    for counts in ((-5, 0, 10), (1, -1, 10), (1, 0, -10), (1.5, 0, 10), (2**62, 0, 10)):
        with pytest.raises(ValueError, match=r"found|doubtful|pool|rows"):
            Audit(draws, *counts)
    with pytest.raises(ValueError, match="one entry for each draw"):
        Draws(np.array([1]), np.array([1, 2, 3]), np.array([True] * 3))
    audit = Audit(draws, 5, 0, 10)
    for levels in ({"recall": 0.0}, {"recall": 1.5}, {"certainty": 1.0}, {"certainty": np.nan}):
        with pytest.raises(ValueError, match=r"recall|certainty"):
            certify_recall(audit, **{"recall": 0.9, "certainty": 0.9} | levels)
    for levels in ({"share": -0.1}, {"share": 1.1}, {"certainty": 0.0}):
        with pytest.raises(ValueError, match=r"share|certainty"):
            certify_answers(audit, **{"share": 0.1, "certainty": 0.9} | levels)
    assert certify_recall(audit, recall=1.0, certainty=0.9).recall == 1.0
    assert certify_answers(audit, share=0.0, certainty=0.9).share == 0.0
