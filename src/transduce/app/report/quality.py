"""How good predictions at hidden labels were, in words and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from transduce.app.report.jsonable import (
    decimals_for,
    format_number,
    json_name,
    rough_percent,
    spread_evenly,
    to_json,
)
from transduce.app.report.summary_types import ClassQuality, NumberQuality, RejectionCurve
from transduce.conformal import Exchangeability
from transduce.core.guarantee import Guarantee
from transduce.core.scaling import square_unit
from transduce.core.types import AnyArray, Array
from transduce.metrics import rejection_curve

MOST_POINTS = 1000  # in a plot
MOST_ON_CURVE = 200  # points of a rejection curve
MOST_CLASSES = 12  # in a table of confusion; the rarest go together
OTHERS = "other classes"
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better
CLEARLY_BETTER = 0.7  # errors up to this share of the simplest method's earn a tick
FEWEST_TICKED = 20  # known values that were hidden, below which none is earned
ALONE = 0.25  # share of the unlabelled rows without labelled ones like them: how good is not known


@dataclass(frozen=True)
class Quality:
    """How good predictions at hidden labels were, in words and in numbers."""

    large: str  # how good they are, in a few words
    small: str  # what the simplest method would do
    judged: str  # that they are hardly better, or no better; "" if they are
    numbers: NumberQuality | ClassQuality  # as a summary has them
    clear: bool = False  # whether they are clearly better, at enough labels to say so
    # The class of all hidden labels, if they are of one: how well others are found is not seen.
    one_class: str = ""
    explained: str = ""  # the share of the variance, as the end of a sentence


def measure_quality(task: str, out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return how good predictions at hidden labels were; None if no label was hidden."""
    if task == "regression":
        return number_quality(out_of_fold, unit)
    return class_quality(out_of_fold)


def _judge_errors(error: float, simplest: float) -> str:
    """Return that errors are hardly smaller than the simplest method's; "" if they are."""
    if error < NO_BETTER * simplest:
        return ""
    if error < simplest:
        return "The predictions are hardly better."
    return "The predictions are no better."


def _is_clear(error: float, simplest: float, n_hidden: int) -> bool:
    """Return whether errors at enough hidden labels are clearly smaller than the simplest ones."""
    return n_hidden >= FEWEST_TICKED and error <= CLEARLY_BETTER * simplest


def why_not_known(
    has_draws: bool, exchangeability: Exchangeability | None, guarantee: Guarantee
) -> str:
    """Return why hidden labels do not tell how good the predictions are; "" if they do."""
    if has_draws:
        return ""  # rows drawn at random tell
    alone = share_alone(exchangeability)
    if alone >= ALONE:
        return (
            f"Rows with and without a value hardly overlap: {rough_percent(alone)} of those to be "
            "filled are unlike nearly all rows with a known value, so known values say nothing "
            "about them."
        )
    if guarantee.kind == "none":
        return (
            "Since nothing is guaranteed, the known values do not show how good the predictions "
            "are at the rows to be filled."
        )
    return ""


def share_alone(test: Exchangeability | None) -> float:
    """Return the share of unlabelled rows that look less labelled than 99 % of labelled rows do."""
    if test is None or not test.shifted or test.overlap is None:
        return 0.0
    labelled, unlabelled = test.overlap
    if not len(labelled) or not len(unlabelled):
        return 0.0
    return float(np.mean(unlabelled > np.quantile(labelled, 0.99)))


def _label_weights(pairs: pd.DataFrame) -> Array:
    """Return how much each label counts, shape (n,); their sum is 1."""
    weights = np.ones(len(pairs))
    if "weight" in pairs:
        weights = pairs["weight"].to_numpy(float)
    if weights.sum() > 0.0:
        return weights / weights.sum()
    return np.full(len(pairs), 1.0 / len(pairs))


# ------------------------------------------------------------------------------------------ numbers


def number_quality(out_of_fold: pd.DataFrame, unit: str = "") -> Quality | None:
    """Return scores of numbers, and pairs to plot."""
    pairs = out_of_fold[["true", "answered"]].apply(pd.to_numeric, errors="coerce").dropna()
    if not len(pairs):
        return None
    true = pairs["true"].to_numpy(float)
    answered = pairs["answered"].to_numpy(float)
    weights = _label_weights(out_of_fold.loc[pairs.index])
    errors = np.abs(answered - true)
    errors_of_mean = np.abs(true - weights @ true)
    error = float(weights @ errors)
    simplest = float(weights @ errors_of_mean)
    r2 = _explained_share(errors, errors_of_mean, weights)
    shown = partial(format_number, decimals=decimals_for(error), unit=unit)
    drawn = spread_evenly(len(pairs), MOST_POINTS)
    return Quality(
        large=f"off by {shown(error)} on average",
        small=f"always predicting the mean would be off by {shown(simplest)}",
        judged=_judge_errors(error, simplest),
        clear=_is_clear(error, simplest, len(pairs)),
        explained=_about_explained(r2),
        numbers={
            "n": len(pairs),
            "mean_absolute_error": error,
            "median_absolute_error": _weighted_median(errors, weights),
            "of_the_mean": simplest,
            "r2": r2,
            "true": true[drawn].tolist(),
            "answered": answered[drawn].tolist(),
            "unit": unit,
        },
    )


def _explained_share(errors: Array, errors_of_mean: Array, weights: Array) -> float | None:
    """Return R²; None if the labels are all equal."""
    unit = square_unit(errors, errors_of_mean)
    variance = float(weights @ (errors_of_mean / unit) ** 2)
    if not variance > 0.0:
        return None
    return 1.0 - float(weights @ (errors / unit) ** 2) / variance


def _about_explained(r2: float | None) -> str:
    """Return the share of the variance that is explained, as the end of a sentence."""
    share = f"{100 * (r2 or 0.0):.0f}"
    if float(share) > 0.0:
        return f"; the predictions explain {share} % of the variance"
    return ""


def _weighted_median(errors: Array, weights: Array) -> float:
    """Return the median error, weighted where labels count differently."""
    if np.ptp(weights) == 0.0:
        return float(np.median(errors))
    return float(np.quantile(errors, 0.5, weights=weights, method="inverted_cdf"))


# ------------------------------------------------------------------------------------------ classes


def class_quality(out_of_fold: pd.DataFrame) -> Quality | None:
    """Return scores of classes, who was taken for whom, and errors as unsure ones are rejected."""
    pairs = out_of_fold.dropna(subset=["true", "answered"])
    if not len(pairs):
        return None
    true = np.array([json_name(name) for name in pairs["true"].tolist()], dtype=object)
    answered = np.array([json_name(name) for name in pairs["answered"].tolist()], dtype=object)
    weights = _label_weights(pairs)
    names, codes = np.unique(true, return_inverse=True)
    frequency = np.bincount(codes, weights)
    right = float(weights @ (true == answered))
    right_of_commonest = float(frequency.max())
    commonest = str(names[frequency.argmax()])
    one_class = ""
    judged = _judge_errors(1.0 - right, 1.0 - right_of_commonest)
    if len(names) == 1:
        one_class = commonest
        judged = ""
    classes, confusion = _confuse_classes(true, answered)
    rejection = None
    if np.ptp(weights) == 0.0:
        rejection = _reject_unsure(true, answered, pairs)
    return Quality(
        large=f"{rough_percent(right)} right",
        small=(
            f"always predicting “{commonest}” would be right for "
            f"{rough_percent(right_of_commonest)}"
        ),
        judged=judged,
        clear=_is_clear(1.0 - right, 1.0 - right_of_commonest, len(pairs)),
        one_class=one_class,
        numbers={
            "n": len(pairs),
            "accuracy": right,
            "of_the_commonest": right_of_commonest,
            "commonest": commonest,
            "classes": classes,
            "confusion": confusion,
            "rejection": rejection,
        },
    )


def _confuse_classes(true: AnyArray, answered: AnyArray) -> tuple[list[str], list[list[int]]]:
    """Return the most frequent classes, and how often each was answered for each."""
    counts = pd.Series(np.concatenate([true, answered])).value_counts().sort_index(kind="stable")
    frequent = counts.sort_values(ascending=False, kind="stable").index
    kept = frequent
    if len(frequent) > MOST_CLASSES:
        kept = frequent[: MOST_CLASSES - 1]
    classes = sorted(kept, key=_by_number)
    if len(kept) < len(frequent):
        classes.append(OTHERS)
    table = pd.crosstab(
        np.where(np.isin(true, kept), true, OTHERS),
        np.where(np.isin(answered, kept), answered, OTHERS),
    )
    square = table.reindex(index=classes, columns=classes, fill_value=0)
    return classes, square.to_numpy().tolist()


def _by_number(name: str) -> tuple[float, str]:
    """Return what puts names in order: numbers by size, then words."""
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


def _reject_unsure(
    true: AnyArray, answered: AnyArray, pairs: pd.DataFrame
) -> RejectionCurve | None:
    """Return the rejection curve where probabilities tell predictions apart; None elsewhere."""
    if "probability" not in pairs:
        return None
    probability = pairs["probability"]
    if probability.nunique() < 2 or probability.isna().any():
        return None
    errors, rejected = rejection_curve(true, answered, probability.to_numpy(float))
    shown = spread_evenly(len(errors), MOST_ON_CURVE)
    half = np.searchsorted(rejected, 0.5, side="right") - 1
    return {
        "errors": to_json(errors[shown]),
        "rejected": to_json(rejected[shown]),
        "error_of_all": float(errors[0]),
        "error_of_surer_half": float(errors[half]),
    }
