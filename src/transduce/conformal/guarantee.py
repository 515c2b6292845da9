"""The guarantees of the wrapper, as sentences that can be quoted."""

from __future__ import annotations

from dataclasses import dataclass

from transduce.conformal.exchangeability import Exchangeability
from transduce.conformal.miscoverage import ClassMiscoverage, Miscoverage
from transduce.conformal.scores import labels_needed
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import fewest_calibration
from transduce.core.types import AnyArray


@dataclass(frozen=True)
class Facts:
    """What the sentences speak of.

    Parameters
    ----------
    classes : bool
        Whether labels are classes.
    by_class : bool
        Whether every class has a threshold of its own.
    n_labelled, n_calibration : int
        Labels, and how many of them were held out.
    n_unreached : int
        Unlabelled rows at which the estimator has no answer.
    tied : bool
        Whether some calibration scores are equal and count as inside.
    automatic : bool
        Whether the number of calibration labels was chosen by rule.
    n_unseen : int
        Calibration labels of classes that no visible row has.
    """

    classes: bool
    by_class: bool
    n_labelled: int
    n_calibration: int
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
        """The region that guarantees nothing."""
        return "all classes" if self.classes else "the whole line"


def percent(share: float) -> str:
    """Return a share as a percentage, to as many digits as it has.

    Examples
    --------
    >>> percent(0.9), percent(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100 * share:.6g} %"


def too_few(facts: Facts, confidence: float, n_calibration: int, which: str = "") -> str:
    """Return why the calibration labels do not support a level, and how many would."""
    least = fewest_calibration(confidence)
    if facts.automatic and facts.n_calibration == 0:
        return (
            f"{_labels(facts.n_labelled)} {'is' if facts.n_labelled == 1 else 'are'} too few to hide some and guarantee "
            f"{percent(confidence)}: it takes {labels_needed(confidence)}"
        )
    limit = (
        f"at most {n_calibration}/{n_calibration + 1} = {n_calibration / (n_calibration + 1):.4g}"
        if n_calibration
        else "no level"
    )
    return (
        f"{_labels(n_calibration, 'hidden ')}{which} {'supports' if n_calibration == 1 else 'support'} {limit}: "
        f"{percent(confidence)} takes {least}"
    )


def shortfall(
    facts: Facts, law: Miscoverage | ClassMiscoverage, confidence: float, classes: AnyArray | None
) -> str | None:
    """Return a warning where the calibration labels are too few for a level; None where they are not.

    Parameters
    ----------
    facts : Facts
    law : Miscoverage or ClassMiscoverage
    confidence : float
    classes : array or None

    Returns
    -------
    str or None
    """
    if isinstance(law, Miscoverage):
        if _new_classes(facts, law):
            return f"{_unseen(facts)}: unlabelled rows may be of classes that have no label at all, and no set holds those."
        if law.rank <= law.n_calibration:
            return None
        why = too_few(facts, confidence, law.n_calibration, _which(facts, law))
        return f"{why}. Every {facts.region} is {facts.everything}."
    short = [y for y, (c, k) in enumerate(zip(law.n_calibration, law.ranks, strict=True)) if k > c]
    if not short or classes is None:
        return None
    rarest = min(short, key=lambda y: law.n_calibration[y])
    which = f" of class {classes[rarest].item()!r}"
    more = f" (and {len(short) - 1} more that have too few)" if len(short) > 1 else ""
    return (
        f"{too_few(facts, confidence, law.n_calibration[rarest], which)}; that class{more} is in every set."
    )


def _labels(number: int, kind: str = "") -> str:
    return f"{number} {kind}label{'s' * (number != 1)}"


def guarantee(
    facts: Facts,
    confidence: float,
    law: Miscoverage | ClassMiscoverage,
    found: Exchangeability | None,
    *,
    certainty: float = 0.95,
) -> Guarantee:
    """Return what is guaranteed at a level.

    Parameters
    ----------
    facts : Facts
    confidence : float
    law : Miscoverage or ClassMiscoverage
    found : Exchangeability or None
        How unlabelled and labelled rows compare, if that was tested.
    certainty : float, default=0.95
        Of the guarantee for the whole column.

    Returns
    -------
    Guarantee
    """
    if law.n_unlabelled + facts.n_unreached == 0:
        return Guarantee("none", "No row is unlabelled, and nothing is guaranteed.", "No label was held out.")
    verdict = [] if found is None else [found.verdict]
    if law.n_unlabelled == 0:
        nothing = (
            f"The estimator has no answer at any unlabelled row: every {facts.region} is {facts.everything}."
        )
        return Guarantee("none", nothing, " ".join(verdict))
    if isinstance(law, Miscoverage) and _new_classes(facts, law):
        nothing = f"Nothing is guaranteed at {percent(confidence)}: unlabelled rows may be of classes with no label at all."
        return Guarantee("none", nothing, " ".join([f"{_unseen(facts)}.", *verdict]))
    short = _n_short(law)
    if short and (isinstance(law, Miscoverage) or short == len(law.ranks)):
        nothing = (
            f"Every {facts.region} is {facts.everything}: nothing is guaranteed at {percent(confidence)}."
        )
        if isinstance(law, Miscoverage):
            why = too_few(facts, confidence, law.n_calibration, _which(facts, law))
        else:
            why = too_few(facts, confidence, max(law.n_calibration), " of one class")
        return Guarantee("none", nothing, " ".join([f"{why}.", *verdict]))
    sentences = [_each(facts, confidence), *_column(facts, law, certainty)]
    if short:
        few = "One class has too few calibration labels and is"
        few = few if short == 1 else f"{short} classes have too few calibration labels and are"
        sentences.append(f"{few} in every set.")
    if facts.n_unreached:
        sentences.append(
            f"At {facts.n_unreached} more rows the estimator has no answer while labels are held out: their "
            f"{facts.region} is {facts.everything}."
        )
    reasons = [
        f"{facts.n_calibration} of {_labels(facts.n_labelled)} were held out at random among the unlabelled rows, so that the fit "
        "could not tell them apart; it holds whatever the estimator and the distribution, if chance alone decided "
        "which rows have a label.",
        *verdict,
    ]
    if found is None:
        reasons.append("Whether the unlabelled rows look like the labelled ones was not tested.")
    kind = "approximate" if found is not None and found.shifted else "exact"
    return Guarantee(kind, " ".join(sentences), " ".join(reasons))


def _new_classes(facts: Facts, law: Miscoverage) -> bool:
    """Return whether classes without a visible label are so many that the threshold is one of them."""
    return law.n_calibration - facts.n_unseen < law.rank <= law.n_calibration


def _unseen(facts: Facts) -> str:
    return f"{facts.n_unseen} of {_labels(facts.n_calibration, 'hidden ')} are of classes that no visible row has"


def _which(facts: Facts, law: Miscoverage) -> str:
    """Return which calibration labels count, if not all do."""
    return "" if law.n_calibration == facts.n_calibration else " at rows with an answer"


def _n_short(law: Miscoverage | ClassMiscoverage) -> int:
    """Return for how many thresholds the calibration labels are too few."""
    if isinstance(law, Miscoverage):
        return int(law.rank > law.n_calibration)
    return sum(k > c for c, k in zip(law.n_calibration, law.ranks, strict=True))


def _each(facts: Facts, confidence: float) -> str:
    within = ", within every class that has a label" if facts.by_class else ""
    holds = "holds its row's true class" if facts.classes else "holds its row's true label"
    return f"Each {facts.region} {holds} with probability at least {percent(confidence)}{within}."


def _column(facts: Facts, law: Miscoverage | ClassMiscoverage, certainty: float) -> list[str]:
    what = "true classes are outside their sets" if facts.classes else "true values are outside their regions"
    most, mean, sure = law.quantile(certainty), _number(law.mean), percent(certainty)
    if isinstance(law, ClassMiscoverage):
        return [
            f"With {sure} certainty at most {most:,} of the {law.n_unlabelled:,} {what}, and at most {mean} are expected, "
            "whatever the classes of the unlabelled rows, if all of them have a label."
        ]
    tied = " Some scores are equal, so that there are, if anything, fewer." if facts.tied else ""
    return [
        f"With {sure} certainty at most {most:,} of the {law.n_unlabelled:,} {what}; {mean} are expected.{tied}"
    ]


def _number(mean: float) -> str:
    """Return an expected count: to three digits, but no fewer than it has before the point."""
    return f"{mean:.3g}" if mean < 1000 else f"{mean:,.0f}"


def selection_guarantee(
    bound: float, mistake: str, n_calibration: int, found: Exchangeability | None
) -> Guarantee:
    """Return what is guaranteed of rows that were picked.

    Parameters
    ----------
    bound : float
        On the share of mistakes.
    mistake : str
        What a mistake is.
    n_calibration : int
        Labels behind it.
    found : Exchangeability or None

    Returns
    -------
    Guarantee
    """
    if n_calibration == 0:
        return Guarantee("none", "No row is picked.", "No label was held out that rows could be picked by.")
    share = f"the share whose {mistake} is on average at most {percent(bound)} (0 if none is picked)"
    why = f"It rests on {_labels(n_calibration, 'hidden ')}, if chance alone decided which rows have a label."
    kind = "approximate" if found is not None and found.shifted else "exact"
    return Guarantee(
        kind, f"Of the rows picked, {share}.", why if found is None else f"{why} {found.verdict}"
    )
