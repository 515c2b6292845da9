"""What certificates say, in sentences.

The numbers are in `transduce.app.labelling.certificates`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transduce.app.labelling.journal import Label
from transduce.core.words import counted, percent

if TYPE_CHECKING:
    from transduce.app.labelling.certificates import (
        Certificates,
        Intervals,
        RecallCertificate,
        ShareInterval,
        WrongCertificate,
    )
    from transduce.app.labelling.state import State

MANY_MISSES = 30  # proposals of a search in a row that were no hits: it has found what it can
MANY_DRAWS = 300  # beyond which their number helps nobody; what 100 and 300 bring is shown
HARDLY_ANY = 1.5  # rows left, by an estimate, below which no number is given
VALIDITY = (
    "Each certificate is wrong with at most the stated probability, "
    "however often it was looked at and whatever\n"
    "was labelled in between. It takes labels as they are: "
    "a row judged wrongly is counted as it was judged."
)


def rounded_down(share: float) -> str:
    """Return a share in percent with at most one decimal, never rounded up.

    A share of 99.99 % is not certain.
    """
    number = int(1000 * share + 1e-9) / 10
    if number == int(number):
        return f"{number:.0f} %"
    return f"{number:.1f} %"


def rounded_up(share: float) -> str:
    """Return a bound on a share in percent with at most one decimal, never rounded down."""
    return rounded_down(math.ceil(1000 * share - 1e-9) / 1000)


def about_recall(certificate: RecallCertificate, wanted: Label) -> tuple[str, str]:
    """Return what is certain about the rows found, in a headline and a sentence."""
    rows = f"{counted(certificate.found, 'row')} of class “{wanted}” found"
    if certificate.unlabelled == 0:
        return "Every row is labelled.", f"{rows}; none can be missing."
    bound = _bound_on_rows_left(certificate)
    goal = rounded_down(certificate.recall)
    least = rounded_down(certificate.recall_at_least)
    if certificate.reached:
        headline = f"You can stop: at least {least} are found."
        return headline, f"{rows}. {bound}: {goal} was the goal."
    if certificate.draws_needed is None:
        headline = "Judge the skipped draws first."
        return headline, f"{rows}. Random draws that you skipped may be the missing rows."
    needed = counted(certificate.draws_needed, "more random draw")
    ahead = f"{needed} without another “{wanted}” would show that {goal} are found."
    if certificate.draws_needed > MANY_DRAWS:
        ahead = (
            f"more than {MANY_DRAWS} further random draws are needed to show that {goal} are found."
        )
    if certificate.n_draws > 0:
        ahead = f"{ahead[0].upper()}{ahead[1:]}"
        return f"At least {least} are found.", f"{rows}. {bound}. {ahead}"
    headline = "Nothing is certain yet."
    if certificate.found == 0:
        return (
            headline,
            f"No row of class “{wanted}” is found yet. Search first, then draw at random.",
        )
    return headline, f"{rows}. Search first, then draw at random: {ahead}"


def _bound_on_rows_left(certificate: RecallCertificate) -> str:
    sure = rounded_down(certificate.certainty)
    missed = certificate.missed_at_most
    rows = counted(missed, "more row")
    return f"With {sure} certainty at most {rows} of this class {_is(missed)} left"


def about_left(state: State) -> tuple[str, str]:
    """Return an estimate of how many wanted rows are left, and a hint, in sentences.

    The hint comes where a search finds no more.
    """
    hint = ""
    if state.n_misses >= MANY_MISSES and state.mode == "find":
        hint = (
            f"The last {state.n_misses:,} proposals were not “{state.wanted}”: "
            "draw at random to learn how many are left."
        )
    left = state.left_to_find()
    if left is None:
        return "", hint
    if left >= HARDLY_ANY and state.n_misses >= MANY_MISSES and not state.hit_was_drawn:
        # The share that a few draws without a hit leave open would be read as rows that are there.
        few = (
            f"The search has missed {state.n_misses:,} times in a row, and no random draw was "
            f"“{state.wanted}”: few are left, if any. That is no certificate."
        )
        return few, hint
    rows = "hardly any more"
    if left >= HARDLY_ANY:
        two_digits = float(f"{left:.2g}")
        rows = f"about {two_digits:,.0f} more"
    estimate = f"An estimate, not a certificate: {rows} of class “{state.wanted}” may be left."
    return estimate, hint


def about_share(share: ShareInterval | None, wanted: Label | None) -> str:
    """Return in a sentence how large the share of the wanted class is, or "".

    The sentence gives the shares of all rows between which it lies.
    """
    if share is None:
        return ""
    low, high = share.ends
    return (
        f"Of all {share.n_rows:,} rows {100 * low:.3g} to {100 * high:.3g} % are “{wanted}”, with "
        f"{percent(share.certainty)} certainty at every look, however rows were searched for."
    )


def about_answers(certificate: WrongCertificate) -> tuple[str, str]:
    """Return what is certain about wrong answers, in a headline and a sentence."""
    if certificate.remaining == 0:
        return "Every row is labelled.", "No answer is left that could be wrong."
    headline, text = _bound_on_wrong_answers(certificate)
    if certificate.reached:
        return headline, text
    if certificate.draws_needed is None:
        return headline, f"{text} Judge the random draws that you skipped first."
    draws = counted(certificate.draws_needed, "more random draw")
    goal = rounded_up(certificate.share)
    ahead = f"{draws} without a wrong answer would show that at most {goal} are wrong."
    return headline, f"{text} {ahead}"


def _bound_on_wrong_answers(certificate: WrongCertificate) -> tuple[str, str]:
    remaining = counted(certificate.remaining, "answer")
    if certificate.n_draws == 0:
        return "Nothing is certain yet.", f"{remaining} frozen."
    wrong = certificate.wrong_at_most
    share = rounded_up(wrong / certificate.remaining)
    sure = rounded_down(certificate.certainty)
    n_wrong = counted(certificate.found, "wrong answer")
    return (
        f"At most {wrong:,} of {remaining} {_is(wrong)} wrong.",
        f"That is {share} of them, and {sure} certain. "
        f"{n_wrong} found since the answers were frozen.",
    )


def about_predictions(certificate: WrongCertificate, column: str) -> tuple[str, str]:
    """Return what is certain about predictions made elsewhere, in a headline and a sentence."""
    if certificate.remaining == 0:
        return (
            "Every row is checked.",
            f"{certificate.found:,} predictions of “{column}” are wrong.",
        )
    remaining = counted(certificate.remaining, "unchecked prediction")
    n_wrong = counted(certificate.found, "wrong prediction")
    draws = counted(certificate.n_draws, "random draw")
    if certificate.n_draws == 0:
        return "Nothing is certain yet.", f"{remaining} of “{column}”: check the rows drawn here."
    wrong = certificate.wrong_at_most
    share = rounded_up(wrong / certificate.remaining)
    sure = rounded_down(certificate.certainty)
    headline = f"At most {wrong:,} of {remaining} {_is(wrong)} wrong."
    return headline, f"That is {share} of them, and {sure} certain. {n_wrong} found in {draws}."


def about_shares(shares: Sequence[tuple[Label, ShareInterval]]) -> list[str]:
    """Return how frequent each class is in the whole table, a sentence for each."""
    lines = []
    for label, interval in shares:
        low, high = interval.ends
        lines.append(
            f"“{label}”: from {rounded_down(low)} to {rounded_up(high)} of all "
            f"{interval.n_rows:,} rows, {rounded_down(interval.certainty)} certain."
        )
    return lines


def about_intervals(intervals: Intervals) -> str:
    """Return how far the calibration is, in sentences."""
    if intervals.planned == 0:
        return (
            "The first random draws are enough for calibration, and need no assumption: draw when "
            "you like."
        )
    if intervals.complete:
        return _about_complete(intervals)
    message = _about_incomplete(intervals)
    if intervals.earlier:
        return f"{message} Until then the {intervals.earlier:,} before calibrate."
    return message


def _about_complete(intervals: Intervals) -> str:
    planned = counted(intervals.planned, "random draw")
    message = (
        f"Calibrated by {planned}: what you export holds for the rows that had no label after the "
        "last of them."
    )
    skipped = intervals.drawn - intervals.answered
    if skipped:
        message += f" {_about_skipped(skipped)}: judge them if you can."
    if intervals.searched:
        message += " The next draws begin a new block."
    return message


def _about_incomplete(intervals: Intervals) -> str:
    skipped = intervals.drawn - intervals.answered
    if intervals.spoilt:
        return "Rows were labelled on purpose between the draws: the next draws begin a new block."
    if intervals.missing:
        remedy = "begin a new block"
        if intervals.missing <= skipped:
            remedy = f"judge {intervals.missing:,} of them"
        return f"{_about_skipped(skipped)}, which is too many: {remedy}."
    planned = counted(intervals.planned, "random draw")
    message = (
        f"{intervals.answered:,} of {planned} judged; "
        "until the last, label nothing that was not drawn."
    )
    put_aside = skipped - intervals.waiting
    if put_aside:
        message += f" {counted(put_aside, 'draw')} skipped."
    return message


def _about_skipped(count: int) -> str:
    if count == 1:
        return "1 draw that you skipped counts as badly answered"
    return f"{count:,} draws that you skipped count as badly answered"


def about_labels_since(count: int, needed: int) -> str:
    """Return what becomes of labels given after a complete block of draws, if there are any."""
    if count == 0:
        message = (
            "The block of random draws is complete: a value that you give now is kept in the table "
            "as given, but the fill does not learn from it yet, since that would spoil the draws."
        )
    elif count == 1:
        message = (
            "1 value that you gave after the block of random draws is kept in the table "
            "as given, but the fill does not learn from it yet, since that would spoil the draws."
        )
    else:
        message = (
            f"{count:,} values that you gave after the block of random draws are kept in the table "
            "as given, but the fill does not learn from them yet, since that would spoil the draws."
        )
    if needed:
        return (
            f"{message} That changes once {needed:,} more rows that are drawn at random "
            "have a value: choose At random for these."
        )
    return f"{message} Too few rows are left for another block of draws."


def certificate_text(
    certificates: Certificates, wanted: Label, name: str, filled: str, column: str = ""
) -> str:
    """Return all certificates as lines of text, for a file.

    `filled` says what is guaranteed of the filled table; `column` holds predictions that were
    checked.
    """
    lines = [f"Certificates of {name}", ""]
    if certificates.recall is not None:
        lines += ["Rows found:", *about_recall(certificates.recall, wanted), ""]
        lines += [f"Random draws: {certificates.recall.n_draws:,}.", ""]
    if certificates.predictions is not None:
        certified = certificates.predictions
        lines += [f"Predictions of {column}:", *about_predictions(certified, column), ""]
        lines += [*about_shares(certificates.shares), ""]
    if certificates.answers is not None:
        lines += ["Frozen answers:", *about_answers(certificates.answers), ""]
    lines += ["Intervals and sets:", about_intervals(certificates.intervals), ""]
    lines += ["The filled table:", filled, ""]
    lines += [VALIDITY, ""]
    return "\n".join(lines)


def _is(number: int) -> str:
    if number == 1:
        return "is"
    return "are"
