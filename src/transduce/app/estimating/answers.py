"""What a few labels and predictions say of a whole column, one small frame for each question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from transduce import population
from transduce.app.estimating import censored
from transduce.app.estimating.groups import (
    Groups,
    read_groups,
    read_outcome,
    read_regressors,
)
from transduce.app.estimating.notes import TOO_FEW, add_notes, rows_of_line
from transduce.app.estimating.predicted import PredictedColumn
from transduce.app.estimating.questions import Question, read_question
from transduce.app.tables.amounts import with_plain_signs
from transduce.app.tables.numbers import spelling_key
from transduce.core.checks import check_share, is_number
from transduce.core.words import OptionError, quoted
from transduce.population.audit import share_of_class
from transduce.population.lines import labels_for_half_width, labels_for_width

ALL = "all"
REST = "the others"
AMOUNTS = (
    "estimate",
    "lower",
    "upper",
    "labels_alone",
    "labels_alone_lower",
    "labels_alone_upper",
)


@dataclass(frozen=True, eq=False)
class Answered:
    """A question, and what is estimated: one line for each group, or coefficient."""

    question: Question
    frame: pd.DataFrame
    level: float  # of each line by itself


def answer_questions(
    column: PredictedColumn,
    questions: Sequence[Question],
    *,
    level: float = 0.95,
    joint: bool = False,
) -> list[Answered]:
    """Return what is estimated for each question.

    Parameters
    ----------
    column : PredictedColumn
    questions : sequence of Question
        A share of no particular class is asked for every class.
    level : float, default=0.95
        Of each interval by itself; with `joint` of all of them together.
    joint : bool, default=False
        Whether all intervals are to hold together with this level (Bonferroni).

    Notes
    -----
    A question that these labels cannot answer, beside others that they can, gets a line of the kind
    "none" whose note says why; by itself it raises an error.
    """
    level = check_share("level", level)
    asked = [single for question in questions for single in _each_class(column, question)]
    refusals = [_refusal(column, question) for question in asked]
    if all(refusals):
        raise refusals[0] or ValueError("Ask at least one question.")

    def answer_all(level: float) -> list[Answered]:
        return [
            _answer(column, question, level)
            if refusal is None
            else Answered(question, _no_answer(column, question, str(refusal)), level)
            for question, refusal in zip(asked, refusals, strict=True)
        ]

    answered = answer_all(level)
    pairs = zip(answered, refusals, strict=True)
    n_lines = sum(len(answer.frame) for answer, refusal in pairs if refusal is None)
    if not joint or n_lines < 2:
        return answered
    return answer_all(1.0 - (1.0 - level) / n_lines)


def _refusal(column: PredictedColumn, question: Question) -> ValueError | None:
    """Return why the labels cannot answer a question; None if they can.

    A question that makes no sense of such a column raises an error.
    """
    try:
        _check_suits(column, question)
    except OptionError:
        raise
    except ValueError as error:
        return error
    return None


def _no_answer(column: PredictedColumn, question: Question, why: str) -> pd.DataFrame:
    """Return the lines of a question that the labels cannot answer."""
    frame: dict[str, Any] = dict.fromkeys(AMOUNTS, np.nan)
    frame |= {"lower": -np.inf, "upper": np.inf, "kind": "none"}
    frame |= {"labels_alone_lower": -np.inf, "labels_alone_upper": np.inf}
    frame |= {"n_labels": int(np.sum(~column.target.missing)), "worth": np.nan}
    frame |= {"labels_for_half": pd.array([pd.NA], dtype="Int64"), "note": why}
    line = pd.DataFrame(frame, index=[ALL])
    order = [*AMOUNTS[:3], "kind", "n_labels", *AMOUNTS[3:], "worth", "labels_for_half", "note"]
    return line[order]


def estimate_of(
    column: PredictedColumn,
    what: str | Sequence[str],
    *,
    level: float = 0.95,
    joint: bool = False,
    **question: Any,
) -> pd.DataFrame:
    """Return what is estimated for one question, or for several, as a frame.

    See `FillResult.estimate`.
    """
    if isinstance(what, str):
        asked = read_question(what, **question)
        return join_frames(answer_questions(column, [asked], level=level, joint=joint))
    if not isinstance(what, Sequence) or not what:
        raise OptionError(f"Ask one question, or a list of them; got {quoted(what)}.")
    questions = [read_question(text, **question) for text in what]
    answered = answer_questions(column, questions, level=level, joint=joint)
    by_question = {answer.question.in_words(column.name): answer.frame for answer in answered}
    return pd.concat(by_question, names=["what", "group"])


def join_frames(answered: Sequence[Answered]) -> pd.DataFrame:
    """Return what was estimated as one frame; by class and group where both differ."""
    if len(answered) == 1:
        return answered[0].frame
    by_class = {answer.question.of: answer.frame for answer in answered}
    if all(len(frame) == 1 and list(frame.index) == [ALL] for frame in by_class.values()):
        joined = pd.concat(by_class.values())
        return joined.set_axis(pd.Index(list(by_class), name="class"))
    return pd.concat(by_class, names=["class", "group"])


def _each_class(column: PredictedColumn, question: Question) -> list[Question]:
    """Return the question, or one for each class where it names no class."""
    if question.what != "share" or question.of is not None or question.limited:
        return [question]
    if column.is_numeric:
        raise OptionError(
            "Say which rows count for a share: 'share above 100', 'share below 5' or 'share "
            "between 2 and 5'."
        )
    classes, counts = np.unique(column.target.known.astype(str), return_counts=True)
    by_name = {str(label): label for label in column.target.known.tolist()}
    order = np.argsort(-counts, kind="stable")
    return [replace(question, of=by_name[classes[place]]) for place in order]


def _answer(column: PredictedColumn, question: Question, level: float) -> Answered:
    """Return what is estimated for one question."""
    _check_suits(column, question)
    if column.shares is not None:
        frame = _share_by_shares(column, question, level)
        return Answered(question, frame, level)
    groups = None
    if question.by is not None:
        groups = read_groups(column.frame, question.by, case_sensitive=column.case_sensitive)
    frame = _estimate(column, question, groups, level)
    if column.doubt or column.is_in_doubt(level):
        frame = frame.assign(kind="none", lower=-np.inf, upper=np.inf, labels_for_half=pd.NA)
    elif _is_estimated(column):
        frame["kind"] = frame["kind"].replace("exact", "approximate")
    frame = _within_limits(column, question, frame)
    frame = add_notes(frame, column, question, groups, level)
    frame = _note_limits(frame, column, question, groups)
    return Answered(question, _as_dates(column, question, frame), level)


def _note_limits(
    frame: pd.DataFrame, column: PredictedColumn, question: Question, groups: Groups | None
) -> pd.DataFrame:
    """Return estimates with a note where labels that are limits leave a question open."""
    if question.what not in ("share", "quantile") or not column.target.censored.any():
        return frame
    notes = []
    for name, line in frame.iterrows():
        rows = rows_of_line(name, question, groups, len(column.target.missing))
        if question.what == "quantile":
            note = censored.note_on_quantile(column, line, rows)
        else:
            above = read_limit(column, question.above)
            below = read_limit(column, question.below)
            note = censored.note_on_share(column, above, below, rows)
        has_reason = line["kind"] == "none" and line["note"] != TOO_FEW
        notes.append(line["note"] if has_reason or not note else note)
    return frame.assign(note=notes)


def _is_estimated(column: PredictedColumn) -> bool:
    sample = column.sample
    return sample is not None and not sample.known_odds


def _check_suits(column: PredictedColumn, question: Question) -> None:
    """Raise an error that says what to ask instead if a question does not suit the column."""
    of_numbers = ("mean", "total", "quantile")
    if not column.is_numeric and question.what in of_numbers:
        raise OptionError(
            f"{column.name!r} holds classes, which have no {question.what}: ask for the share of "
            f"one, as in 'share of {_some_class(column)}'."
        )
    if column.is_numeric and question.what == "share" and question.of is not None:
        raise OptionError(
            f"{column.name!r} holds numbers: ask for 'share above 100', say, and not for that of a "
            "class."
        )
    if not column.is_numeric and question.limited:
        raise OptionError(
            f"{column.name!r} holds classes: ask for the share of one, not above or below."
        )
    if question.by is not None and not isinstance(question.by, list) and question.by == column.name:
        raise OptionError(
            f"{column.name!r} is what is asked about, and is not known at every row: group by "
            "another column."
        )
    if question.what == "regression" and column.name in question.columns:
        raise OptionError(
            f"{column.name!r} is what is asked about, and is one side of the regression already: "
            "name other columns."
        )
    moments = column.target.spelling.moments
    if moments is not None and moments.dates and question.what == "total":
        raise OptionError("Dates have no total: ask for the mean or the median.")
    n_limits = max(column.target.limits.number, int(np.sum(column.target.censored)))
    if n_limits and question.what not in ("share", "quantile"):
        raise ValueError(
            f"{n_limits} labels are detection limits, such as <0.5, and what is below them "
            "is not known: ask for the median, or for the share above the largest limit."
        )


def _some_class(column: PredictedColumn) -> str:
    return str(column.target.known[0])


# ------------------------------------------------------------------------------------- estimates


def _estimate(
    column: PredictedColumn, question: Question, groups: Groups | None, level: float
) -> pd.DataFrame:
    """Return the estimates of one question, one line for each group or coefficient."""
    assert column.sample is not None
    how: dict[str, Any] = {
        "confidence": level,
        "sample": column.sample,
        "refitted": column.refitted,
    }
    by = None
    if groups is not None:
        by = groups.of_rows
    if question.what == "regression":
        return _regression(column, question, how)
    if question.what == "difference":
        return _differences(column, question, groups, how)
    if question.what == "share":
        frame = _share(column, question, {"by": by, **how})
        if column.has_exact_shares:
            frame = _exact_shares(column, question, groups, level, frame)
    elif question.what == "quantile":
        frame = censored.estimate_quantile(column, float(question.of), {"by": by, **how})
    else:
        functions = {"mean": population.estimate_mean, "total": population.estimate_total}
        estimate = functions[question.what]
        frame = estimate(column.numbers, column.predictions, by=by, **how)
    if groups is None:
        return frame
    return frame.reindex(groups.named_at(column.asked)).rename_axis(question.by)


def _share(column: PredictedColumn, question: Question, how: dict[str, Any]) -> pd.DataFrame:
    """Return the share of a class, or of the rows between limits."""
    if column.is_numeric:
        above = read_limit(column, question.above)
        below = read_limit(column, question.below)
        return censored.estimate_share(column, above, below, how)
    label = find_class(column, question.of)
    indicator = column.indicator(label)
    return population.estimate_share(indicator, column.probabilities(label), of=1.0, **how)


def _exact_shares(
    column: PredictedColumn,
    question: Question,
    groups: Groups | None,
    level: float,
    frame: pd.DataFrame,
) -> pd.DataFrame:
    """Return shares with the exact intervals that classes predicted elsewhere allow."""
    label = find_class(column, question.of)
    checked = column.checked_rows(label)
    frame = frame.copy()
    for name in frame.index:
        rows = rows_of_line(name, question, groups, len(column.target.missing))
        inside = checked.at(rows)
        line = share_of_class(inside, 1, level)
        for word in ("estimate", "lower", "upper", "kind"):
            frame.loc[name, word] = line[word]
        ends = (float(frame.loc[name, "lower"]), float(frame.loc[name, "upper"]))
        alone = frame.loc[name, "labels_alone_upper"] - frame.loc[name, "labels_alone_lower"]
        n_labels = int(frame.loc[name, "n_labels"])
        n_rows = int(np.sum(inside.drawn | ~inside.checked))
        half = labels_for_half_width(n_labels, n_rows, ends)
        frame.loc[name, "labels_for_half"] = pd.NA if np.isnan(half) else int(half)
        if 0.0 < ends[1] - ends[0] < alone:
            ratio = (ends[1] - ends[0]) / alone
            frame.loc[name, "worth"] = labels_for_width(n_labels, n_rows, ratio)
    return frame


def find_class(column: PredictedColumn, label: Any) -> Any:
    """Return the class that is meant, however its capitals, a number, or True are written."""
    classes = pd.unique(column.target.known).tolist()
    if label in classes:
        return label
    by_name = {_plain_name(name): name for name in classes}
    if _plain_name(label) in by_name:
        return by_name[_plain_name(label)]
    key = spelling_key(_plain_name(label))
    alike = [by_name[name] for name in by_name if spelling_key(name) == key]
    if len(alike) == 1:
        return alike[0]
    listed = ", ".join(sorted(by_name)[:10])
    raise OptionError(f"No label is {quoted(label)}; classes are {listed}.")


def _plain_name(label: Any) -> str:
    if is_number(label) and float(label).is_integer():
        return str(int(label))
    text = str(label).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    return text


def read_limit(column: PredictedColumn, limit: Any) -> float | None:
    """Return a limit as a number: a date is read as those of the column are."""
    if limit is None or is_number(limit):
        return limit
    moments = column.target.spelling.moments
    if moments is not None:
        number = float(moments.numbers(pd.Series([limit]))[0])
    else:
        try:
            number = float(with_plain_signs(str(limit)))
        except ValueError:
            number = np.nan
    if not np.isfinite(number):
        raise OptionError(
            f"A limit is a number like those of {column.name!r}; got {quoted(limit)}."
        )
    return number


def _differences(
    column: PredictedColumn, question: Question, groups: Groups | None, how: dict[str, Any]
) -> pd.DataFrame:
    """Return by how much the means of two groups differ, or of each group and the rest."""
    assert groups is not None
    values, predictions = column.values_and_predictions()
    names = groups.named_at(column.asked)
    by = groups.of_rows
    if question.of is not None:
        pair = tuple(_find_group(names, name) for name in question.of)
        return population.estimate_difference(values, predictions, by=by, groups=pair, **how)
    if len(names) < 2:
        raise OptionError(f"Column {question.by!r} has one group only: nothing differs.")
    if len(names) == 2:
        pair = (names[0], names[1])
        return population.estimate_difference(values, predictions, by=by, groups=pair, **how)
    parts = []
    for name in names:
        against = np.where(by == name, name, REST)
        pair = (name, REST)
        parts.append(
            population.estimate_difference(values, predictions, by=against, groups=pair, **how)
        )
    return pd.concat(parts)


def _find_group(names: list[Any], name: Any) -> Any:
    """Return the group that is meant, however its capitals or a number are written."""
    by_name = {str(group): group for group in names}
    key = spelling_key(str(name))
    if name in names:
        return name
    if str(name) in by_name:
        return by_name[str(name)]
    alike = [group for text, group in by_name.items() if spelling_key(text) == key]
    if len(alike) == 1:
        return alike[0]
    raise OptionError(f"No row is of the group {quoted(name)}; groups are {', '.join(by_name)}.")


def _regression(column: PredictedColumn, question: Question, how: dict[str, Any]) -> pd.DataFrame:
    """Return the coefficients of a regression with the column on either side."""
    values, predictions = column.values_and_predictions()
    regressors = None
    if question.regressors:
        regressors = read_regressors(
            column.frame, question.regressors, case_sensitive=column.case_sensitive
        )
    logistic = not column.is_numeric
    outcome = None
    if question.outcome is not None:
        outcome = read_outcome(column.frame, question.outcome, case_sensitive=column.case_sensitive)
        logistic = bool(np.isin(outcome, (0.0, 1.0)).all())
    frame = population.estimate_regression(
        values,
        regressors,
        predictions,
        outcome=outcome,
        logistic=logistic,
        **how,
    )
    if question.outcome is None:
        return frame
    return frame.rename(index={"y": column.name})


def _within_limits(
    column: PredictedColumn, question: Question, frame: pd.DataFrame
) -> pd.DataFrame:
    """Return estimates of means and quantiles that are possible.

    The ends of the column's range bound them.
    """
    if question.what not in ("mean", "quantile") or not column.is_numeric:
        return frame
    low, high = column.limits
    frame = frame.copy()
    promised = frame["kind"] != "none"
    for name in ("estimate", "lower", "upper"):
        frame.loc[promised, name] = frame.loc[promised, name].clip(low, high)
    return frame


def _as_dates(column: PredictedColumn, question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    """Return means and quantiles of dates as dates."""
    moments = column.target.spelling.moments
    if moments is None or question.what not in ("mean", "quantile"):
        return frame
    frame = frame.copy()
    for name in AMOUNTS:
        written = moments.written(frame[name].to_numpy(dtype=float))
        frame[name] = written.set_axis(frame.index)
    return frame


# ---- labels chosen by their class


def _share_by_shares(column: PredictedColumn, question: Question, level: float) -> pd.DataFrame:
    """Return the share of a class where labels were chosen by their class.

    From the unlabelled rows.
    """
    if question.what != "share" or question.by is not None:
        raise ValueError(
            "Labels that were chosen by their class tell the share of each class over all rows, "
            "and nothing else: ask for that, or draw rows at random with `transduce draw` and "
            "label them."
        )
    shares = column.shares
    assert shares is not None
    label = find_class(column, question.of)
    line = shares.to_frame().loc[label]
    n_rows = len(column.target.missing)
    n_known = float(np.nansum(column.indicator(label)))
    n_labels = int(np.sum(~column.target.missing))
    ends = [line["lower"], line["upper"]]
    if not shares.given:
        ends = [_at_level(line["share"], end, shares.confidence, level) for end in ends]
    over_all = [(n_known + column.n_unknown * share) / n_rows for share in (line["share"], *ends)]
    note = "Estimated from the predictions at unlabelled rows: labels were chosen by their class."
    if shares.given:
        note = "As the given shares say."
    frame = {
        "estimate": over_all[0],
        "lower": over_all[1],
        "upper": over_all[2],
        "kind": "approximate",
        "n_labels": n_labels,
        "labels_alone": np.nan,
        "labels_alone_lower": np.nan,
        "labels_alone_upper": np.nan,
        "worth": np.nan,
        "labels_for_half": pd.array([pd.NA], dtype="Int64"),
        "note": note,
    }
    return pd.DataFrame(frame, index=[ALL])


def _at_level(share: float, end: float, known: float, level: float) -> float:
    """Return the end of an interval at another level, as if the logit of the share were normal."""
    if not 0.0 < end < 1.0 or not 0.0 < share < 1.0:
        return end
    ratio = norm.ppf((1.0 + level) / 2.0) / norm.ppf((1.0 + known) / 2.0)
    return float(expit(logit(share) + ratio * (logit(end) - logit(share))))
