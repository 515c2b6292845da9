"""Audit predictions that were made elsewhere, by the rows that somebody checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd

from transduce.core.checks import check_flag, check_list, check_number, check_share, check_whole
from transduce.core.types import AnyArray, Array, Mask
from transduce.population.checks import CheckedRows, class_interval, strata_for_class
from transduce.population.lines import EXACT, read_groups
from transduce.population.sample import check_length, read_numbers

ALL_ROWS = "all rows"
NO_PREDICTION = "(no prediction)"
MOST_CLASSES = 100


@dataclass(frozen=True, eq=False)
class Audit:
    """What checked rows say of predictions; every frame has one line a group, class or cell.

    Attributes
    ----------
    wrong : DataFrame
        ``n_rows``, ``n_checked``, ``n_wrong`` among these, ``n_unchecked``, ``n_doubtful`` of them
        that were drawn and got no label, the ``estimate`` of how many of the unchecked ones are
        wrong, and ``at_most`` how many with the certainty. The first line is of all rows, others
        are of groups.
    by_prediction : DataFrame
        The same for the rows of each predicted class.
    shares : DataFrame
        The share of each true class among all rows: ``estimate``, ``lower``, ``upper``, ``kind``,
        ``n_labels``, and what labels alone would give (NaN where rows were drawn by strata).
    group_shares : dict of DataFrame
        The same within each group.
    confusion : DataFrame
        One line for each pair of ``predicted`` and ``true`` class: ``n_checked`` rows of that
        prediction, ``n_found`` of that truth, and the share of it among all rows of that
        prediction: ``estimate``, ``lower``, ``upper``.
    certainty : float
        Of every bound and interval, each by itself.

    Examples
    --------
    >>> from transduce.population import audit_classes
    >>> audit = audit_classes(["a", "b", None, None], ["a", "a", "a", "b"])
    >>> audit.confusion["n_found"].tolist()
    [1, 1, 0, 0]
    """

    wrong: pd.DataFrame
    by_prediction: pd.DataFrame
    shares: pd.DataFrame
    group_shares: dict[Hashable, pd.DataFrame]
    confusion: pd.DataFrame
    certainty: float
    rows: CheckedRows
    classes: list[Hashable]  # all of them, also those without lines

    def forecast(self, more: Iterable[int] = (50, 100, 300)) -> pd.DataFrame:
        """Return the bound on wrong rows that is expected after more checks, at the present rate.

        Parameters
        ----------
        more : iterable of int
            Numbers of further checks.

        Returns
        -------
        DataFrame
            One line for each number: ``n_checked`` and ``n_unchecked`` then, ``at_most`` how many
            of the latter would be wrong, and ``share``, the same as a share of them.

        Examples
        --------
        >>> from transduce.population import audit_classes
        >>> truth = ["a", "a", "b", "a"] + [None] * 200
        >>> audit = audit_classes(truth, ["a"] * 204)
        >>> bool(audit.forecast([100])["share"].iloc[0] < audit.wrong["at_most"].iloc[0] / 200)
        True
        """
        return forecast_wrong(self.rows, more, self.certainty)


def forecast_wrong(rows: CheckedRows, more: Iterable[int], certainty: float) -> pd.DataFrame:
    """Return the bound on wrong rows that is expected after more checks, at the present rate."""
    check_list("more", more)
    numbers = list(more)
    if not numbers:
        raise ValueError("more must name at least one number of further checks, such as 100.")
    for number in numbers:
        check_whole("more", number, least=0)
    now = rows.count_strata(rows.wrong, doubtful=True)
    lines = []
    for number in numbers:
        then = now.after_more_checks(int(number))
        at_most = then.at_most_unchecked(certainty)
        lines.append(
            {
                "n_checked": then.n_drawn,
                "n_unchecked": then.n_unchecked,
                "at_most": at_most,
                "share": at_most / max(then.n_unchecked, 1),
            }
        )
    return pd.DataFrame(lines, index=pd.Index(numbers, name="more"))


def audit_classes(  # noqa: PLR0913 - settings of a public function
    truth: object,
    predictions: object,
    *,
    by: npt.ArrayLike | None = None,
    strata: object = None,
    drawn: object = None,
    drawn_from: object = None,
    certainty: float = 0.95,
    most_classes: int = MOST_CLASSES,
) -> Audit:
    """Say how often predicted classes are wrong, and how frequent each class is, exactly.

    The predictions must have been made without the labels: by a language model, a vendor, or a
    rule. Rows must have been drawn at random to be checked.

    Parameters
    ----------
    truth : array-like of shape (n,)
        The true classes, missing (None, NaN or pd.NA) where nobody checked.
    predictions : array-like of shape (n,)
        The predicted class of every row; a missing one is a class of its own, and wrong.
    by : array-like of shape (n,), optional
        The group of every row: wrong rows and shares in each, besides those of all rows.
    strata : array-like of shape (n,), optional
        The stratum of every row, if rows were drawn by strata, such as by predicted class.
    drawn : boolean array-like of shape (n,), optional
        Which rows were drawn at random to be checked; all checked ones by default. Others are
        known, and say nothing of rows that nobody checked: examples that the predictor has seen,
        say. A drawn row without a label counts as wrong.
    drawn_from : boolean array-like of shape (n,), optional
        Which rows could be drawn; by default the drawn ones and those without a label. Name them
        where rows were checked on purpose after the draw: what chose these may depend on whether
        they are wrong. Rows without a label that could not be drawn may all be wrong.
    certainty : float, default=0.95
        Of every bound and interval, each by itself.
    most_classes : int, default=100
        How many classes get lines of their own, the most frequent ones; wrong rows are counted
        whatever their class.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import audit_classes
    >>> predictions = np.array(["spam", "ham"] * 500)
    >>> truth = np.full(1000, None, dtype=object)
    >>> truth[:60] = predictions[:60]
    >>> truth[7] = "spam"
    >>> audit = audit_classes(truth, predictions)
    >>> audit.wrong[["n_checked", "n_wrong", "at_most"]].iloc[0].tolist()
    [60, 1, 73]
    >>> [round(float(audit.shares.loc["spam", end]), 2) for end in ("lower", "upper")]
    [0.47, 0.58]
    """
    certainty = check_share("certainty", certainty)
    check_whole("most_classes", most_classes, least=1)
    coded = CodedClasses.read(truth, predictions)
    classes = coded.names
    rows = make_checked_rows(coded.codes, drawn, strata, drawn_from)
    predicted = coded.most_frequent(most_classes)
    true = [code for code in predicted if classes[code] != coded.no_prediction]
    groups = name_groups(by, len(rows.true))
    shares = {name: class_shares(rows.at(mask), true, classes, certainty) for name, mask in groups}
    return Audit(
        wrong=wrong_lines(rows, groups, certainty),
        by_prediction=prediction_lines(rows, predicted, classes, certainty),
        shares=class_shares(rows, true, classes, certainty),
        group_shares=shares,
        confusion=confusion_lines(rows, predicted, true, classes, certainty),
        certainty=certainty,
        rows=rows,
        classes=classes,
    )


@dataclass(frozen=True, eq=False)
class CodedClasses:
    """Predicted and true classes, by number."""

    codes: AnyArray  # (2 n,) of the predictions, then of the truth; -1 where that is not known
    names: list[Hashable]  # of the classes
    no_prediction: str  # what the class of a missing prediction is called

    @classmethod
    def read(cls, truth: object, predictions: object) -> CodedClasses:
        """Return the classes of two columns; raise a ValueError in words."""
        true_cells = read_cells("truth", truth)
        predicted_cells = read_cells("predictions", predictions)
        check_length("predictions", predicted_cells, len(true_cells))
        no_prediction = name_of_missing(np.concatenate([predicted_cells, true_cells]))
        named = np.where(pd.isna(predicted_cells), no_prediction, predicted_cells)
        codes, names = pd.factorize(np.concatenate([named, true_cells]), sort=False)
        classes = [name.item() if isinstance(name, np.generic) else name for name in names]
        return cls(codes, classes, no_prediction)

    def most_frequent(self, most: int) -> list[int]:
        """Return the numbers of so many classes at most, in the order of their names."""
        counts = np.bincount(self.codes[self.codes >= 0])
        frequent = np.argsort(-counts, kind="stable")[:most]
        return sorted(frequent.tolist(), key=lambda code: str(self.names[code]))


@dataclass(frozen=True, eq=False)
class NumberAudit:
    """What checked rows say of predicted numbers.

    Attributes
    ----------
    wrong : DataFrame
        As that of `Audit`: rows off by more than the tolerance.
    off_by : float
        A checked row drawn at random is off by no more than this with the certainty: predictions
        plus and minus it hold so large a share of the truths of unchecked rows on average.
        Infinite if there are too few labels; NaN if rows were drawn by strata.
    group_off_by : dict of float
        The same within each group.
    tolerance : float
    relative : bool
        Whether the tolerance is a share of the prediction.
    certainty : float

    Examples
    --------
    >>> from transduce.population import audit_numbers
    >>> audit = audit_numbers([1.0, 2.5] + [float("nan")] * 6, [1.0, 2.0] * 4, tolerance=0.1)
    >>> int(audit.wrong["n_wrong"].iloc[0]), audit.off_by
    (1, inf)
    """

    wrong: pd.DataFrame
    off_by: float
    group_off_by: dict[Hashable, float]
    tolerance: float
    relative: bool
    certainty: float
    rows: CheckedRows


def audit_numbers(  # noqa: PLR0913 - settings of a public function
    truth: object,
    predictions: object,
    *,
    tolerance: float,
    relative: bool = False,
    by: npt.ArrayLike | None = None,
    strata: object = None,
    drawn: object = None,
    drawn_from: object = None,
    certainty: float = 0.95,
) -> NumberAudit:
    """Say how many predicted numbers are off by more than a tolerance, exactly.

    Parameters
    ----------
    truth : array-like of shape (n,)
        The true numbers, missing where nobody checked.
    predictions : array-like of shape (n,)
        The predicted number of every row; a missing one counts as off.
    tolerance : float
        By how much a prediction may be off.
    relative : bool, default=False
        Whether the tolerance is a share of the size of the prediction.
    by, strata, drawn, drawn_from, certainty
        As those of `audit_classes`.

    Returns
    -------
    NumberAudit

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.population import audit_numbers
    >>> predictions = np.linspace(0.0, 1.0, 500)
    >>> truth = np.where(np.arange(500) % 10 == 0, predictions + 0.01, np.nan)
    >>> audit = audit_numbers(truth, predictions, tolerance=0.05)
    >>> audit.wrong[["n_wrong", "at_most"]].iloc[0].tolist(), round(audit.off_by, 3)
    ([0, 27], 0.01)
    """
    certainty = check_share("certainty", certainty)
    check_number("tolerance", tolerance)
    check_flag("relative", relative)
    tolerance = float(tolerance)
    if tolerance < 0.0:
        raise ValueError(f"tolerance must not be negative; got {tolerance}.")
    true_numbers = read_numbers("truth", truth)
    predicted = read_numbers("predictions", predictions)
    check_length("predictions", predicted, len(true_numbers))
    allowed = allowed_errors(predicted, tolerance, relative)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(true_numbers - predicted)
    is_wrong = ~(off <= allowed)
    true_codes = np.where(np.isnan(true_numbers), -1, is_wrong.astype(np.int64))
    codes = np.concatenate([np.zeros(len(predicted), dtype=np.int64), true_codes])
    rows = make_checked_rows(codes, drawn, strata, drawn_from)
    groups = name_groups(by, len(predicted))
    sizes = np.where(np.isnan(off), np.inf, off)

    def off_by(inside: Mask) -> float:
        """Return how far rows are off at most, if strata do not weigh them differently."""
        return upper_quantile(sizes[rows.drawn & inside], certainty) if rows.is_simple else np.nan

    return NumberAudit(
        wrong=wrong_lines(rows, groups, certainty),
        off_by=off_by(np.ones(len(predicted), dtype=bool)),
        group_off_by={name: off_by(inside) for name, inside in groups},
        tolerance=tolerance,
        relative=relative,
        certainty=certainty,
        rows=rows,
    )


def allowed_errors(predicted: Array, tolerance: float, relative: bool) -> Array:
    """Return by how much each predicted number (n,) may be off."""
    if relative:
        return np.asarray(tolerance * np.abs(predicted))
    return np.full(len(predicted), tolerance)


def upper_quantile(sizes: Array, confidence: float) -> float:
    """Return what the next of exchangeable numbers does not exceed, with a confidence."""
    rank = ceil((len(sizes) + 1) * confidence - 1e-9)
    if rank > len(sizes):
        return float(np.inf)
    return float(np.sort(sizes)[rank - 1])


# ------------------------------------------------------------------------------------- reading


def read_cells(name: str, values: object) -> AnyArray:
    """Return cells as an array of objects, None where one is missing."""
    if np.ndim(values) != 1 or isinstance(values, str | bytes):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a column: one value for each row.")
    cells = pd.Series(values).astype(object)
    return cells.where(cells.notna(), None).to_numpy(dtype=object)


def name_of_missing(cells: AnyArray) -> str:
    """Return what to call a missing prediction, so that no class is called the same."""
    name = NO_PREDICTION
    while np.any(cells == name):
        name = f"({name})"
    return name


def name_groups(by: npt.ArrayLike | None, n_rows: int) -> list[tuple[Hashable, Mask]]:
    """Return the rows of each group; a group that is called as all rows are is quoted."""
    if by is None:
        return []
    groups: list[tuple[Hashable, Mask]] = []
    for name, rows in read_groups(by, n_rows):
        called = repr(ALL_ROWS) if name == ALL_ROWS else name
        groups.append((called, rows))
    return groups


def make_checked_rows(
    codes: AnyArray, drawn: object, strata: object, drawn_from: object
) -> CheckedRows:
    """Return rows from the codes (2 n,) of predictions and truths; raise a ValueError in words."""
    predicted, true = np.split(np.asarray(codes, dtype=np.int64), 2)
    n_rows = len(true)
    if n_rows == 0:
        raise ValueError("There is no row to audit.")
    checked = true >= 0
    if not checked.any():
        raise ValueError("No row was checked: truth is missing everywhere.")
    is_drawn = checked
    if drawn is not None:
        is_drawn = read_row_marks("drawn", drawn, n_rows)
        if not (is_drawn & checked).any():
            raise ValueError("None of the checked rows was drawn at random.")
    stratum_codes = np.zeros(n_rows, dtype=np.int64)
    if strata is not None:
        cells = read_cells("strata", strata)
        check_length("strata", cells, n_rows)
        stratum_codes = pd.factorize(cells, use_na_sentinel=False)[0].astype(np.int64)
    could_be_drawn = None
    if drawn_from is not None:
        could_be_drawn = read_row_marks("drawn_from", drawn_from, n_rows)
        if (is_drawn & ~could_be_drawn).any():
            raise ValueError("drawn_from must be True at every drawn row.")
    return CheckedRows(predicted, true, is_drawn, stratum_codes, drawn_from=could_be_drawn)


def read_row_marks(name: str, marks: object, n_rows: int) -> Mask:
    """Return which rows are marked; raise a ValueError in words."""
    mask = np.asarray(marks)
    if mask.dtype != bool or mask.shape != (n_rows,):
        raise ValueError(f"{name} must be True or False for each of the {n_rows} rows.")
    return mask


# --------------------------------------------------------------------------------------- lines


def wrong_lines(
    rows: CheckedRows, groups: list[tuple[Hashable, Mask]], certainty: float
) -> pd.DataFrame:
    """Return how many predictions are wrong, of all rows and of each group."""
    lines: dict[Hashable, dict[str, float]] = {ALL_ROWS: wrong_line(rows, certainty)}
    for name, mask in groups:
        lines[name] = wrong_line(rows.at(mask), certainty)
    return pd.DataFrame(list(lines.values()), index=pd.Index(list(lines)))


def wrong_line(rows: CheckedRows, certainty: float) -> dict[str, float]:
    """Return how many predictions of some rows are wrong."""
    marked = rows.count_strata(rows.wrong, doubtful=True)
    return {
        "n_rows": len(rows.true),
        "n_checked": int(np.sum(rows.checked)),
        "n_wrong": marked.n_seen,
        "n_unchecked": marked.n_unchecked,
        "n_doubtful": marked.n_doubtful,
        "estimate": marked.estimated_unchecked,
        "at_most": marked.at_most_unchecked(certainty),
    }


def prediction_lines(
    rows: CheckedRows, order: list[int], classes: list[Hashable], certainty: float
) -> pd.DataFrame:
    """Return how many predictions of each class are wrong."""
    lines = {}
    for code in order:
        predicted = rows.predicted == code
        if predicted.any():
            lines[classes[code]] = wrong_line(rows.at(predicted), certainty)
    return pd.DataFrame(list(lines.values()), index=pd.Index(list(lines), name="predicted"))


def class_shares(
    rows: CheckedRows, true_classes: list[int], classes: list[Hashable], certainty: float
) -> pd.DataFrame:
    """Return the share of each true class among some rows."""
    lines = {}
    for code in true_classes:
        lines[classes[code]] = share_of_class(rows, code, certainty)
    return pd.DataFrame(list(lines.values()), index=pd.Index(list(lines)))


def share_of_class(rows: CheckedRows, code: int, certainty: float) -> dict[str, object]:
    """Return the share of one class among some rows, with an exact interval."""
    n_rows = len(rows.true)
    marked = strata_for_class(rows, code).count_class(code, doubtful=False)
    fewest, most = class_interval(rows, code, certainty)
    estimate = marked.estimated_total
    if np.isnan(estimate):
        estimate = (fewest + most) / 2.0
    line: dict[str, object] = {
        "estimate": float(np.clip(estimate, fewest, most)) / n_rows,
        "lower": fewest / n_rows,
        "upper": most / n_rows,
        "kind": EXACT,
        "n_labels": marked.n_drawn,
    }
    lower = np.nan
    upper = np.nan
    if rows.is_simple:
        lower, upper = interval_of_labels_alone(rows, code, certainty)
    line |= {"labels_alone_lower": lower, "labels_alone_upper": upper}
    return line


def interval_of_labels_alone(rows: CheckedRows, code: int, certainty: float) -> tuple[float, float]:
    """Return the interval for the share of a class that labels give without predictions."""
    fewest, _ = rows.count_class(code, doubtful=False).total_interval(certainty)
    _, most = rows.count_class(code, doubtful=True).total_interval(certainty)
    return fewest / len(rows.true), most / len(rows.true)


def confusion_lines(
    rows: CheckedRows,
    order: list[int],
    true_classes: list[int],
    classes: list[Hashable],
    certainty: float,
) -> pd.DataFrame:
    """Return what the truth is where each class was predicted, with exact intervals."""
    lines = []
    for predicted in order:
        part = rows.at(rows.predicted == predicted)
        if len(part.true) == 0:
            continue
        for true in true_classes:
            marked = part.count_class(true, doubtful=False)
            fewest, most = marked.total_interval(certainty)
            if marked.n_unanswered:
                _, most = part.count_class(true, doubtful=True).total_interval(certainty)
            lines.append(
                {
                    "predicted": classes[predicted],
                    "true": classes[true],
                    "n_checked": int(np.sum(part.checked)),
                    "n_found": marked.n_seen,
                    "estimate": marked.estimated_total / len(part.true),
                    "lower": fewest / len(part.true),
                    "upper": most / len(part.true),
                }
            )
    return pd.DataFrame(lines)
