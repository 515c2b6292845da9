"""What the page and the exported files say, in words: made of the certificates, and nowhere else."""

from __future__ import annotations

from transduce.labelling.certificates import RecallCertificate, WrongCertificate
from transduce.labelling.certifying import Certificates, Intervals
from transduce.labelling.journal import Label
from transduce.labelling.proposals import Proposal


def percent(share: float) -> str:
    """Return a share in percent, without digits that say nothing; never rounded up to 100."""
    number = int(1000 * share + 1e-9) / 10
    return f"{number:.0f} %" if number == int(number) else f"{number:.1f} %"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def why(proposal: Proposal, wanted: Label, n_pool: int) -> str:
    """Return why a row is shown, as a sentence."""
    rows = counted(n_pool, "unlabelled row")
    match proposal.reason:
        case "likeliest":
            return f"Of {rows} this one is the most likely to be “{wanted}”."
        case "diverse":
            start = f"No “{wanted}” is known yet. " if proposal.mode == "find" else ""
            return f"{start}This row is unlike those labelled so far, and like many others."
        case "teaches":
            share = percent(proposal.value)
            return (
                f"Its label would teach most: it takes away about {share} of the uncertainty about all rows."
            )
        case "widest":
            return f"Its interval is the widest of those compared ({proposal.value:.4g})."
        case "random":
            return f"Random draw {int(proposal.value):,}. Judge it as it is: the certificates rest on it."
        case "undone":
            drawn = " It was a random draw and stays one." if proposal.random else ""
            return f"You took its label back.{drawn}"
        case "skipped":
            return "You skipped this random draw. It counts as a possible hit until you judge it."
        case _:
            return "You chose this row."


def about_recall(certificate: RecallCertificate, wanted: Label) -> tuple[str, str]:
    """Return what is certain about the rows found, in a headline and a sentence."""
    sure, goal = percent(certificate.certainty), percent(certificate.recall)
    found = f"{counted(certificate.found, 'row')} of class “{wanted}” found"
    if certificate.unlabelled == 0:
        return "Every row is labelled.", f"{found}; none can be missing."
    missed = counted(certificate.missed_at_most, "more row")
    bound = f"With {sure} certainty at most {missed} of this class {_is(certificate.missed_at_most)} left"
    if certificate.reached:
        least = percent(certificate.recall_at_least)
        return f"You can stop: at least {least} are found.", f"{found}. {bound}: {goal} was the goal."
    if certificate.draws_needed is None:
        return (
            "Judge the skipped draws first.",
            f"{found}. Random draws that you skipped may be the missing rows.",
        )
    needed = counted(certificate.draws_needed, "more random draw")
    ahead = f"{needed} without another “{wanted}” would make {goal} certain."
    if certificate.found == 0 and certificate.n_draws == 0:
        return (
            "Nothing is certain yet.",
            f"No row of class “{wanted}” is found yet. Search first, then audit.",
        )
    if certificate.n_draws == 0:
        return "Nothing is certain yet.", f"{found}. Search first, then audit: {ahead}"
    return f"At least {percent(certificate.recall_at_least)} are found.", f"{found}. {bound}. {ahead}"


def about_answers(certificate: WrongCertificate) -> tuple[str, str]:
    """Return what is certain about wrong answers, in a headline and a sentence."""
    sure = percent(certificate.certainty)
    if certificate.remaining == 0:
        return "Every row is labelled.", "No answer is left that could be wrong."
    known = f"{counted(certificate.found, 'wrong answer')} found since the answers were frozen"
    many = certificate.wrong_at_most
    head = f"At most {many:,} of {counted(certificate.remaining, 'answer')} {_is(many)} wrong."
    text = f"That is {sure} certain ({percent(many / certificate.remaining)}). {known}."
    if certificate.n_draws == 0:
        head, text = "Nothing is certain yet.", f"{counted(certificate.remaining, 'answer')} frozen."
    if certificate.reached:
        return head, text
    if certificate.draws_needed is None:
        return head, f"{text} Judge the random draws that you skipped first."
    ahead = counted(certificate.draws_needed, "more random draw")
    return (
        head,
        f"{text} {ahead} without a wrong answer would show that at most {percent(certificate.share)} are.",
    )


def about_intervals(intervals: Intervals) -> str:
    """Return how far the calibration of intervals is, as a sentence."""
    if intervals.planned == 0:
        return "For intervals with no assumption at all, fix a number of random draws beforehand."
    if intervals.spoilt:
        return "Rows were labelled on purpose since the draws began: intervals need a new draw."
    planned = counted(intervals.planned, "planned draw")
    if intervals.ready:
        return f"All {planned} judged: exact intervals can be made now. Export before you search on."
    skipped = intervals.drawn - intervals.answered
    waiting = f" {counted(skipped, 'draw')} not judged." if skipped else ""
    return f"{intervals.answered:,} of {planned} judged; label nothing else meanwhile.{waiting}"


def certificate_text(certificates: Certificates, wanted: Label, name: str) -> str:
    """Return all certificates as lines of text, for a file."""
    lines = [f"Certificates of {name}", ""]
    if certificates.recall is not None:
        lines += ["Rows found:", *about_recall(certificates.recall, wanted), ""]
        lines += [f"Random draws: {certificates.recall.n_draws:,}.", ""]
    if certificates.answers is not None:
        lines += ["Frozen answers:", *about_answers(certificates.answers), ""]
    lines += ["Intervals:", about_intervals(certificates.intervals), ""]
    lines += [
        "Each certificate is wrong with at most the stated probability, however often it was looked at and whatever",
        "was labelled in between. It takes labels as they are: a row judged wrongly is counted as it was judged.",
        "",
    ]
    return "\n".join(lines)


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
