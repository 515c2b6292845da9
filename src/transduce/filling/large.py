"""Filling tables with more rows than a fit can see: it sees a sample of them, and answers all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal.designs import Drawn, calibration_number
from transduce.core.answer import Answer
from transduce.core.computing import stage
from transduce.core.guarantee import CountBound, Guarantee
from transduce.core.ranks import fewest_calibration
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Mask
from transduce.filling.fitted import FittedFill
from transduce.filling.plan import ROW_BELOW
from transduce.filling.result import FillResult
from transduce.filling.settings import FillSettings
from transduce.filling.whole import check_limits, fill_whole, reject_unsure
from transduce.tables.draws import PartScan, RowDraw, draw_roles, scan_part
from transduce.tables.labels import LabelReading, Target, read_marks
from transduce.tables.numbers import without

MOST_LABELS = 50_000  # more are not fitted to
BATCH = 50_000
_SAMPLE_DOUBT = 0.1  # of the allowed uncertainty of a bound, what the rows of the sample take


def is_sampled(settings: FillSettings, labels: Target, frame: pd.DataFrame) -> bool:
    """Return whether a table in memory has too many rows for a fit that sees them all.

    With so few labels that none are held out, or with weights, groups or categories, it sees them all the same.
    """
    design = settings.design.read(labels.missing, frame)
    few = settings.guarantee == "row" or design.needs_all_rows or settings.device is not None
    few |= settings.guarantee == "auto" and labels.n_labels < ROW_BELOW[labels.task]
    if isinstance(design, Drawn):
        few |= int(design.rows.sum()) < 2 * fewest_calibration(float(settings.confidence))
    return int(labels.missing.sum()) > settings.sample and not few


def draw(scans: list[PartScan], settings: FillSettings) -> RowDraw:
    """Draw the rows that the fit sees, and the labelled rows that are kept from it to calibrate all others."""
    n_labels = sum(int((~scan.missing).sum()) for scan in scans)
    number = calibration_number(n_labels, float(settings.confidence), by_class=settings.label_conditional)
    if isinstance(settings.design, Drawn):
        drawn = sum(int(scan.drawn.sum()) for scan in scans if scan.drawn is not None)
        least = 2 * fewest_calibration(float(settings.confidence))
        if drawn < least:
            raise ValueError(
                f"{drawn} labels of rows drawn at random are too few for a table of which the fit sees a sample: half "
                f"of them calibrate the sample and half all other rows, so it takes {least}."
            )
        number = drawn // 2
    return draw_roles(scans, n_calibration=number, n_visible=MOST_LABELS, n_sampled=settings.sample)


def scan(frame: pd.DataFrame, missing: Mask, settings: FillSettings) -> PartScan:
    """Return what a draw needs to know of some rows."""
    drawn = None
    if isinstance(settings.design, Drawn):
        drawn = read_marks(frame, settings.design.rows) & ~missing
    seen = frame.drop(columns=[name for name in settings.ignore if name in frame.columns])
    return scan_part(seen, settings.target, missing, settings.random_state, drawn)


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A filled sample, and what answers all other rows.

    Parameters
    ----------
    result : FillResult
        Of the sample: the labelled rows that were fitted to, then the unlabelled ones.
    fitted : FittedFill

    Examples
    --------
    >>> from transduce.filling import fit_fill
    >>> size = np.arange(200.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> found = fit_fill(table, "price", method="ridge")
    >>> found.guarantee_of_later(1000).outside.at_most < 250
    True
    """

    result: FillResult
    fitted: FittedFill

    def guarantee(self, n_answered: int, n_unreached: int = 0) -> Guarantee:
        """Return what is guaranteed of all answers: those in the sample, and so many others.

        Parameters
        ----------
        n_answered, n_unreached : int
            Rows outside of the sample with an answer, and without one.

        Returns
        -------
        Guarantee
            Its bounds are sums of a bound for the sample and one for the others, which share the uncertainty.
        """
        result, doubt = self.result, 1.0 - self.result.certainty
        if n_answered + n_unreached == 0:
            return result.answer.guarantee
        if len(result.answer) == 0 or not hasattr(result.model, "guarantee_at"):
            found = self.guarantee_of_later(n_answered, n_unreached)
            return replace(found, outside=None, wrong=None) if len(result.answer) else found
        sure = 1.0 - (1.0 - _SAMPLE_DOUBT) * doubt
        rest = self.guarantee_of_later(n_answered, n_unreached, certainty=sure)
        inside = result.model.guarantee_at(certainty=1.0 - _SAMPLE_DOUBT * doubt)
        if inside.kind == "none" or rest.kind == "none":
            return replace(rest, n_labelled=result.counts["n_labels"]) if rest.kind == "none" else inside
        return replace(
            rest,
            n_calibration=rest.n_calibration + inside.n_calibration,
            outside=_sum(rest.outside, inside.outside, result.certainty),
            wrong=_sum(rest.wrong, inside.wrong, result.certainty),
            n_unreached=rest.n_unreached + inside.n_unreached,
            n_short=max(rest.n_short, inside.n_short),
        )

    def guarantee_of_later(
        self, n_answered: int, n_unreached: int = 0, *, certainty: float | None = None
    ) -> Guarantee:
        """Return what is guaranteed of rows that the fit did not see.

        Parameters
        ----------
        n_answered, n_unreached : int
            How many have an answer, and how many have none.
        certainty : float, optional
            Of the bounds for all of them together; that of the settings by default.

        Returns
        -------
        Guarantee
        """
        result = self.result
        return self.fitted.outside.guarantee(
            result.confidence,
            n_answered=n_answered,
            n_unreached=n_unreached,
            certainty=result.certainty if certainty is None else certainty,
            verdict=None if result.exchangeability is None else result.exchangeability.verdict,
        )


def _sum(one: CountBound | None, other: CountBound | None, certainty: float) -> CountBound | None:
    if one is None or other is None:
        return None
    expected = None if one.expected is None or other.expected is None else one.expected + other.expected
    return CountBound(certainty, one.at_most + other.at_most, one.of + other.of, expected)


def fit_sample(
    inside: pd.DataFrame,
    calibration: pd.DataFrame,
    labels: tuple[Target, Target],
    settings: FillSettings,
    *,
    n_outside: int,
    prefer: str = "point",
) -> SampleFit:
    """Fill a sample of a table, and calibrate its fit for all other rows."""
    shown, held = labels
    check_limits(held, settings)  # those of the sample are checked where it is filled
    enough = calibration_number(
        shown.n_labels, float(settings.confidence), by_class=settings.label_conditional
    )
    how = "column" if enough or isinstance(settings.design, Drawn) else "row"
    settings = replace(settings, guarantee=how, n_outside=n_outside, label_next=False, reject_share=None)
    if shown.task == "classification" and len({*shown.labels[~shown.missing].tolist()}) == 1:
        # Chance left one class to the fit: that is the answer then, as where all others are held out of it.
        settings = replace(settings, classes=tuple(sorted({*held.labels[~held.missing].tolist()}, key=str)))
    result = fill_whole(inside.reset_index(drop=True), shown, settings, prefer)
    column = pd.concat([inside[[settings.target]], calibration[[settings.target]]], ignore_index=True)
    reading = LabelReading.of(shown, without(column, settings.missing)[settings.target], prefer)
    fitted = FittedFill.of(result, shown, calibration, held, reading, settings)
    return SampleFit(result, fitted)


def at(target: Target, rows: AnyArray) -> Target:
    """Return the labels of some rows."""
    return replace(target, labels=target.labels[rows], missing=target.missing[rows])


def fit_table(
    frame: pd.DataFrame, target: Target, settings: FillSettings, prefer: str = "point"
) -> tuple[SampleFit, AnyArray]:
    """Fit to a sample of a table in memory; return the fit, and the rows that it saw."""
    roles = draw([scan(without(frame, settings.missing), target.missing, settings)], settings)
    rows = np.concatenate([roles.visible[:, 1], roles.sampled[:, 1]])
    held = roles.calibration[:, 1]
    found = fit_sample(
        frame.iloc[rows],
        frame.iloc[held],
        (at(target, rows), at(target, held)),
        settings,
        n_outside=roles.n_unlabelled - len(roles.sampled),
        prefer=prefer,
    )
    return found, rows


def fill_by_sample(
    frame: pd.DataFrame, target: Target, settings: FillSettings, prefer: str = "point"
) -> FillResult:
    """Fill a table in memory whose rows are too many for a fit that sees them all."""
    found, rows = fit_table(frame, target, settings, prefer)
    rest = np.setdiff1d(np.flatnonzero(target.missing), rows)
    answers = [replace(found.result.answer, rows=rows[found.result.answer.rows])]
    with stage("other rows") as report:
        known = without(frame, settings.missing)
        for start in range(0, len(rest), BATCH):
            some = rest[start : start + BATCH]
            answers.append(found.fitted.answers(known.iloc[some], some))
            report((start + len(some)) / len(rest))
    answer = join_answers(answers, by_class=settings.label_conditional)
    answer, rejected = reject_unsure(answer, settings.reject_share)
    lost = int(sum((part.status == "unreached").sum() for part in answers[1:]))
    index = frame.index if settings.id is None else pd.Index(frame[settings.id])
    answer = replace(answer, index=index[answer.rows], guarantee=found.guarantee(len(rest) - lost, lost))
    result = _of_whole_table(frame, target, found, answer, rows)
    result = replace(result, notes=[*result.notes, *rejected])
    return result.with_next_column() if settings.label_next else result


def _of_whole_table(
    frame: pd.DataFrame, target: Target, found: SampleFit, answer: Answer, rows: AnyArray
) -> FillResult:
    """Return the result of the sample as one of the whole table."""
    result = found.result
    new = found.fitted.columns(target, answer, frame.index)
    places = None
    if result.map is not None:
        places = pd.DataFrame(np.nan, index=range(len(frame)), columns=["x", "y"])
        places.iloc[rows] = result.map.to_numpy()
    return replace(
        result,
        frame=pd.concat([frame, new], axis=1),
        new=new,
        answer=answer,
        miscoverage=None,
        advice=None if result.advice is None else result.advice.of(rows),
        map=places,
        counts={"n_rows": len(frame), "n_labels": target.n_labels, "n_fitted": len(rows)},
        notes=[*result.notes, sample_note(len(rows), len(frame), len(found.fitted.outside.labels))],
    )


def sample_note(n_fitted: int, n_rows: int, n_calibration: int) -> str:
    """Return what the user should know about a fit to a sample."""
    return (
        f"The fit saw {n_fitted:,} of the {n_rows:,} rows, drawn at random; all others are answered one by one, and "
        f"{n_calibration:,} labels that the fit did not see calibrate their answers. The comparison of labelled and "
        "unlabelled rows, the weights of methods and columns, and the map are those of the sample."
    )


# ------------------------------------------------------------------------------------------------- answers together


def join_answers(parts: list[Answer], *, by_class: bool = False) -> Answer:
    """Return several answers of one table as one, in the order of its rows."""
    classes = parts[-1].classes
    parts = [part if part.classes is None else _widened(part, classes, by_class) for part in parts]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")

    def together(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if any(one is None for one in found) else np.concatenate(found)[order]

    regions = [part.regions for part in parts if part.regions is not None]
    names = ("confidence", "credibility", "standard_errors", "p_values", "probabilities", "label_sets")
    return Answer(
        rows=rows[order],
        values=np.concatenate([part.values for part in parts])[order],
        status=np.concatenate([part.status for part in parts])[order],
        guarantee=parts[0].guarantee,
        regions=Regions.concatenate(regions)[order] if len(regions) == len(parts) else None,
        classes=classes,
        diagnostics=parts[0].diagnostics,
        **{name: together(name) for name in names},
    )


def _widened(part: Answer, classes: AnyArray | None, by_class: bool) -> Answer:
    """Return an answer with columns for all classes, one that its fit did not know among them."""
    if classes is None or part.classes is None or len(part.classes) == len(classes):
        return part
    places = np.searchsorted(classes, part.classes)

    def wide(numbers: Any, absent: Any) -> Any:
        if numbers is None:
            return None
        found = np.full((len(numbers), len(classes)), absent, dtype=numbers.dtype)
        found[:, places] = numbers
        return found

    return replace(
        part,
        classes=classes,
        p_values=wide(part.p_values, float(by_class)),
        probabilities=wide(part.probabilities, 0.0),
        label_sets=wide(part.label_sets, by_class),
    )
