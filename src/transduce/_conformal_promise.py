"""The promises of the wrapper, as sentences that can be quoted."""

from __future__ import annotations

from dataclasses import dataclass

from transduce._typing import AnyArray
from transduce.answer import Guarantee
from transduce.calibration import labels_needed
from transduce.column import ClassColumnLaw, ColumnLaw, fewest_hidden
from transduce.exchangeability import Exchangeability


@dataclass(frozen=True)
class Facts:
    """What the sentences speak of.

    Parameters
    ----------
    classes : bool
        Whether labels are classes.
    by_class : bool
        Whether every class has a threshold of its own.
    n_labelled, n_hidden : int
        Labels, and how many of them were hidden.
    n_unreached : int
        Asked rows at which the estimator has no answer.
    tied : bool
        Whether some hidden scores are equal and count as inside.
    automatic : bool
        Whether the number of hidden labels was chosen by rule.
    n_unseen : int
        Hidden labels of classes that no visible row has.
    """

    classes: bool
    by_class: bool
    n_labelled: int
    n_hidden: int
    n_unreached: int = 0
    tied: bool = False
    automatic: bool = True
    n_unseen: int = 0

    @property
    def region(self) -> str:
        """What encloses the truth."""
        return "set of classes" if self.classes else "region"

    @property
    def everything(self) -> str:
        """The region that promises nothing."""
        return "all classes" if self.classes else "the whole line"


def percent(share: float) -> str:
    """Return a share as a percentage, to as many digits as it has.

    Examples
    --------
    >>> percent(0.9), percent(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100 * share:.6g} %"


def too_few(facts: Facts, confidence: float, n_hidden: int, which: str = "") -> str:
    """Return why the hidden labels do not support a level, and how many would."""
    least = fewest_hidden(confidence)
    if facts.automatic and facts.n_hidden == 0:
        return (
            f"{_labels(facts.n_labelled)} {'is' if facts.n_labelled == 1 else 'are'} too few to hide some and promise "
            f"{percent(confidence)}: it takes {labels_needed(confidence)}"
        )
    limit = f"at most {n_hidden}/{n_hidden + 1} = {n_hidden / (n_hidden + 1):.4g}" if n_hidden else "no level"
    return (
        f"{_labels(n_hidden, 'hidden ')}{which} {'supports' if n_hidden == 1 else 'support'} {limit}: "
        f"{percent(confidence)} takes {least}"
    )


def shortfall(
    facts: Facts, law: ColumnLaw | ClassColumnLaw, confidence: float, classes: AnyArray | None
) -> str | None:
    """Return a warning where the hidden labels are too few for a level; None where they are not.

    Parameters
    ----------
    facts : Facts
    law : ColumnLaw or ClassColumnLaw
    confidence : float
    classes : array or None

    Returns
    -------
    str or None
    """
    if isinstance(law, ColumnLaw):
        if _new_classes(facts, law):
            return f"{_unseen(facts)}: asked rows may be of classes that have no label at all, and no set holds those."
        if law.rank <= law.n_hidden:
            return None
        why = too_few(facts, confidence, law.n_hidden, _which(facts, law))
        return f"{why}. Every {facts.region} is {facts.everything}."
    short = [y for y, (c, k) in enumerate(zip(law.n_hidden, law.ranks, strict=True)) if k > c]
    if not short or classes is None:
        return None
    rarest = min(short, key=lambda y: law.n_hidden[y])
    which = f" of class {classes[rarest].item()!r}"
    more = f" (and {len(short) - 1} more that have too few)" if len(short) > 1 else ""
    return f"{too_few(facts, confidence, law.n_hidden[rarest], which)}; that class{more} is in every set."


def _labels(number: int, kind: str = "") -> str:
    return f"{number} {kind}label{'s' * (number != 1)}"


def promise(
    facts: Facts,
    confidence: float,
    law: ColumnLaw | ClassColumnLaw,
    found: Exchangeability | None,
    *,
    certainty: float = 0.95,
) -> Guarantee:
    """Return what is promised at a level.

    Parameters
    ----------
    facts : Facts
    confidence : float
    law : ColumnLaw or ClassColumnLaw
    found : Exchangeability or None
        How asked and labelled rows compare, if that was tested.
    certainty : float, default=0.95
        Of the promise for the whole column.

    Returns
    -------
    Guarantee
    """
    if law.n_asked + facts.n_unreached == 0:
        return Guarantee("none", "No row is asked, and nothing is promised.", "No label was hidden.")
    verdict = [] if found is None else [found.verdict]
    if law.n_asked == 0:
        nothing = f"The estimator has no answer at any asked row: every {facts.region} is {facts.everything}."
        return Guarantee("none", nothing, " ".join(verdict))
    if isinstance(law, ColumnLaw) and _new_classes(facts, law):
        nothing = f"Nothing is promised at {percent(confidence)}: asked rows may be of classes with no label at all."
        return Guarantee("none", nothing, " ".join([f"{_unseen(facts)}.", *verdict]))
    short = _n_short(law)
    if short and (isinstance(law, ColumnLaw) or short == len(law.ranks)):
        nothing = f"Every {facts.region} is {facts.everything}: nothing is promised at {percent(confidence)}."
        if isinstance(law, ColumnLaw):
            why = too_few(facts, confidence, law.n_hidden, _which(facts, law))
        else:
            why = too_few(facts, confidence, max(law.n_hidden), " of one class")
        return Guarantee("none", nothing, " ".join([f"{why}.", *verdict]))
    sentences = [_each(facts, confidence), *_column(facts, law, certainty)]
    if short:
        few = "One class has too few hidden labels and is"
        few = few if short == 1 else f"{short} classes have too few hidden labels and are"
        sentences.append(f"{few} in every set.")
    if facts.n_unreached:
        sentences.append(
            f"At {facts.n_unreached} more rows the estimator has no answer while labels are hidden: their "
            f"{facts.region} is {facts.everything}."
        )
    reasons = [
        f"{facts.n_hidden} of {_labels(facts.n_labelled)} were hidden at random among the asked rows, so that the fit "
        "could not tell them apart; it holds whatever the estimator and the distribution, if chance alone decided "
        "which rows have a label.",
        *verdict,
    ]
    if found is None:
        reasons.append("Whether the asked rows look like the labelled ones was not tested.")
    kind = "approximate" if found is not None and found.shifted else "exact"
    return Guarantee(kind, " ".join(sentences), " ".join(reasons))


def _new_classes(facts: Facts, law: ColumnLaw) -> bool:
    """Return whether classes without a visible label are so many that the threshold is one of them."""
    return law.n_hidden - facts.n_unseen < law.rank <= law.n_hidden


def _unseen(facts: Facts) -> str:
    return f"{facts.n_unseen} of {_labels(facts.n_hidden, 'hidden ')} are of classes that no visible row has"


def _which(facts: Facts, law: ColumnLaw) -> str:
    """Return which hidden labels count, if not all do."""
    return "" if law.n_hidden == facts.n_hidden else " at rows with an answer"


def _n_short(law: ColumnLaw | ClassColumnLaw) -> int:
    """Return for how many thresholds the hidden labels are too few."""
    if isinstance(law, ColumnLaw):
        return int(law.rank > law.n_hidden)
    return sum(k > c for c, k in zip(law.n_hidden, law.ranks, strict=True))


def _each(facts: Facts, confidence: float) -> str:
    within = ", within every class that has a label" if facts.by_class else ""
    holds = "holds its row's true class" if facts.classes else "holds its row's true label"
    return f"Each {facts.region} {holds} with probability at least {percent(confidence)}{within}."


def _column(facts: Facts, law: ColumnLaw | ClassColumnLaw, certainty: float) -> list[str]:
    what = "true classes are outside their sets" if facts.classes else "true values are outside their regions"
    most, mean, sure = law.quantile(certainty), _number(law.mean), percent(certainty)
    if isinstance(law, ClassColumnLaw):
        return [
            f"With {sure} certainty at most {most:,} of the {law.n_asked:,} {what}, and at most {mean} are expected, "
            "whatever the classes of the asked rows, if all of them have a label."
        ]
    tied = " Some scores are equal, so that there are, if anything, fewer." if facts.tied else ""
    return [
        f"With {sure} certainty at most {most:,} of the {law.n_asked:,} {what}; {mean} are expected.{tied}"
    ]


def _number(mean: float) -> str:
    """Return an expected count: to three digits, but no fewer than it has before the point."""
    return f"{mean:.3g}" if mean < 1000 else f"{mean:,.0f}"


def selection_promise(bound: float, mistake: str, n_hidden: int, found: Exchangeability | None) -> Guarantee:
    """Return what is promised of rows that were picked.

    Parameters
    ----------
    bound : float
        On the share of mistakes.
    mistake : str
        What a mistake is.
    n_hidden : int
        Labels behind it.
    found : Exchangeability or None

    Returns
    -------
    Guarantee
    """
    if n_hidden == 0:
        return Guarantee("none", "No row is picked.", "No label was hidden that rows could be picked by.")
    share = f"the share whose {mistake} is on average at most {percent(bound)} (0 if none is picked)"
    why = f"It rests on {_labels(n_hidden, 'hidden ')}, if chance alone decided which rows have a label."
    kind = "approximate" if found is not None and found.shifted else "exact"
    return Guarantee(
        kind, f"Of the rows picked, {share}.", why if found is None else f"{why} {found.verdict}"
    )
