"""What `estimates.py` asks of a complete table, and how a complete column would answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from transduce import population


@dataclass(frozen=True)
class Complete:
    """A complete table: features, and a column whose labels are hidden."""

    features: pd.DataFrame
    target: np.ndarray  # numbers, or classes as texts
    task: str

    def take(self, rows: np.ndarray) -> Complete:
        """Return some rows."""
        features = self.features.iloc[rows].reset_index(drop=True)
        return Complete(features, self.target[rows], self.task)


@dataclass(frozen=True)
class PartlyLabelled:
    """A table whose labels are known at some rows, with predictions for all of them."""

    table: Complete
    labelled: np.ndarray  # (n,)
    predictions: np.ndarray  # (n,), or (n, n_classes) probabilities
    refitted: bool = False  # whether those at unlabelled rows are of a fit to all labels

    @property
    def how(self) -> dict[str, object]:
        """What our estimates are told of the predictions."""
        return {"refitted": self.refitted}

    @property
    def classes(self) -> np.ndarray:
        """The classes, in the order of the probabilities."""
        return np.unique(self.table.target)


# ------------------------------------------------------------- what a complete column would answer

# An estimate from a column without gaps, and its variance as textbooks have it for a sample of an
# infinite population: what people compute who take filled values for measured ones.
Analysis = Callable[[np.ndarray], tuple[float, float]]


def analyse_mean(rows: np.ndarray) -> Analysis:
    """Return the mean of some rows."""

    def analyse(values: np.ndarray) -> tuple[float, float]:
        inside = values[rows]
        return float(np.mean(inside)), float(np.var(inside, ddof=1) / len(inside))

    return analyse


def analyse_total(n_rows: int) -> Analysis:
    """Return the total."""

    def analyse(values: np.ndarray) -> tuple[float, float]:
        return float(np.sum(values)), float(n_rows * np.var(values, ddof=1))

    return analyse


def analyse_difference(first: np.ndarray, second: np.ndarray) -> Analysis:
    """Return the mean of the first group less that of the second."""

    def analyse(values: np.ndarray) -> tuple[float, float]:
        mean, variance = analyse_mean(first)(values)
        other_mean, other_variance = analyse_mean(second)(values)
        return mean - other_mean, variance + other_variance

    return analyse


def analyse_quantile(q: float) -> Analysis:
    """Return a quantile; its variance by the order statistics around it (Woodruff 1952)."""

    def analyse(values: np.ndarray) -> tuple[float, float]:
        ordered = np.sort(values)
        n_rows = len(ordered)
        half = 1.96 * np.sqrt(q * (1.0 - q) / n_rows)
        ends = np.clip([np.ceil((q - half) * n_rows), np.ceil((q + half) * n_rows)], 1, n_rows)
        lower, upper = ordered[ends.astype(int) - 1]
        place = int(np.ceil(q * n_rows)) - 1
        return float(ordered[place]), float(((upper - lower) / (2.0 * 1.96)) ** 2)

    return analyse


def analyse_slope(x: np.ndarray) -> Analysis:
    """Return the slope of the column on x."""
    return lambda values: _slope(x, values)


def analyse_slope_on_column(outcome: np.ndarray) -> Analysis:
    """Return the slope of an outcome on the column."""
    return lambda values: _slope(values, outcome)


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    x_off = x - np.mean(x)
    squares = float(np.sum(x_off**2))
    slope = float(np.sum(x_off * y)) / squares
    residuals = y - np.mean(y) - slope * x_off
    return slope, float(np.sum((x_off * residuals) ** 2)) / squares**2


def analyse_logistic(x: np.ndarray) -> Analysis:
    """Return the slope of a logistic regression of zeros and ones on x."""
    design = np.column_stack([np.ones(len(x)), x])

    def analyse(values: np.ndarray) -> tuple[float, float]:
        beta = np.zeros(2)
        for _ in range(50):
            probabilities = 1.0 / (1.0 + np.exp(-design @ beta))
            spread = probabilities * (1.0 - probabilities)
            information = design.T @ (spread[:, None] * design)
            if np.linalg.cond(information) > 1e12:
                return np.nan, np.nan  # x tells the classes apart: the slope has no end
            step = np.linalg.solve(information, design.T @ (values - probabilities))
            beta = beta + step
            if np.max(np.abs(step)) < 1e-10:
                break
        return float(beta[1]), float(np.linalg.inv(information)[1, 1])

    return analyse


# --------------------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Question:
    """A number of the whole column: what it is, and how each way estimates it."""

    name: str
    form: str  # mean, total, quantile, slope, logistic, or "" for one that opponents do not have
    values: np.ndarray  # (n,) the complete column: numbers, or ones and zeros
    predictions: np.ndarray  # (n,) numbers, or probabilities
    filled: np.ndarray  # (n,) as a filled column has it: numbers, or ones and zeros
    analyse: Analysis
    ours: Callable[[], pd.DataFrame]
    inside: np.ndarray  # (n,) the rows that it is about
    read: Callable[[np.ndarray], np.ndarray]  # a completed target as numbers, or ones and zeros
    x: np.ndarray | None = None

    @property
    def truth(self) -> float:
        """The number that the complete column has."""
        return self.analyse(self.values)[0]


def ask(problem: PartlyLabelled) -> Iterator[Question]:
    """Yield what is asked of a table."""
    if problem.table.task == "classification":
        yield from ask_classes(problem)
    else:
        yield from ask_numbers(problem)


def ask_classes(problem: PartlyLabelled) -> Iterator[Question]:
    """Yield the shares of up to three classes, by group too, and a logistic slope of the first."""
    table = problem.table
    column = np.where(problem.labelled, table.target, None)
    groups = groups_of(table.features)
    chosen = np.argmax(problem.predictions, axis=1)
    everyone = np.ones(len(column), dtype=bool)
    for code, name in enumerate(problem.classes[:3]):
        read = class_reader(name)
        values = read(table.target)
        probabilities = np.clip(problem.predictions[:, code], 0.0, 1.0)
        filled = (chosen == code).astype(float)
        share = once(population.estimate_share, column, probabilities, of=name, **problem.how)
        columns = (values, probabilities, filled)
        mean = analyse_mean(everyone)
        yield Question("share of a class", "mean", *columns, mean, share, everyone, read)
        by_group = once(
            population.estimate_share, column, probabilities, of=name, by=groups, **problem.how
        )
        for place, group in enumerate(sorted(set(groups))):
            rows = groups == group
            line = at_place(by_group, place)
            yield Question("share by group", "mean", *columns, analyse_mean(rows), line, rows, read)
    read = class_reader(problem.classes[0])
    x = first_number(table.features)
    values = read(table.target)
    partly = np.where(problem.labelled, values, np.nan)
    probabilities = np.clip(problem.predictions[:, 0], 0.0, 1.0)
    filled = (chosen == 0).astype(float)
    regression = once(
        population.estimate_regression,
        partly,
        x[:, None],
        probabilities,
        logistic=True,
        **problem.how,
    )
    yield Question(
        "logistic slope",
        "logistic",
        values,
        probabilities,
        filled,
        analyse_logistic(x),
        at_place(regression, 1),
        everyone,
        read,
        x,
    )


def ask_numbers(problem: PartlyLabelled) -> Iterator[Question]:
    """Yield mean, total, means of groups and their difference, a share, the median and slopes."""
    table = problem.table
    y = table.target.astype(float)
    f = problem.predictions
    n_rows = len(y)
    everyone = np.ones(n_rows, dtype=bool)
    column = np.where(problem.labelled, y, np.nan)
    columns = (y, f, f)
    mean = once(population.estimate_mean, column, f, **problem.how)
    yield Question("mean", "mean", *columns, analyse_mean(everyone), mean, everyone, as_numbers)
    total = once(population.estimate_total, column, f, **problem.how)
    yield Question("total", "total", *columns, analyse_total(n_rows), total, everyone, as_numbers)
    groups = groups_of(table.features)
    names = sorted(set(groups))
    by_group = once(population.estimate_mean, column, f, by=groups, **problem.how)
    for place, group in enumerate(names):
        rows = groups == group
        line = at_place(by_group, place)
        yield Question(
            "mean by group", "mean", *columns, analyse_mean(rows), line, rows, as_numbers
        )
    pair = (names[0], names[1])
    first, second = (groups == group for group in pair)
    difference = once(
        population.estimate_difference, column, f, by=groups, groups=pair, **problem.how
    )
    compare = analyse_difference(first, second)
    yield Question("difference", "", *columns, compare, difference, first | second, as_numbers)
    limit = float(np.quantile(y, 0.8))
    above = (y > limit).astype(float)
    filled_above = (f > limit).astype(float)
    share = once(population.estimate_share, column, f, above=limit, **problem.how)
    yield Question(
        "share above",
        "mean",
        above,
        filled_above,
        filled_above,
        analyse_mean(everyone),
        share,
        everyone,
        lambda completed: (as_numbers(completed) > limit).astype(float),
    )
    median = once(population.estimate_quantile, column, f, **problem.how)
    yield Question(
        "median", "quantile", *columns, analyse_quantile(0.5), median, everyone, as_numbers
    )
    x = first_number(table.features)
    regression = once(population.estimate_regression, column, x[:, None], f, **problem.how)
    slope = at_place(regression, 1)
    yield Question("slope", "slope", *columns, analyse_slope(x), slope, everyone, as_numbers, x)
    on_column = once(population.estimate_regression, column, None, f, outcome=x, **problem.how)
    yield Question(
        "slope on the column",
        "",
        *columns,
        analyse_slope_on_column(x),
        at_place(on_column, 1),
        everyone,
        as_numbers,
    )


def as_numbers(completed: np.ndarray) -> np.ndarray:
    """Return a completed target of numbers."""
    return np.asarray(completed, dtype=float)


def class_reader(name: object) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that says, of a completed target, which rows are of a class."""
    return lambda completed: (completed == name).astype(float)


def groups_of(features: pd.DataFrame) -> np.ndarray:
    """Return a group for each row: of the first column with few values, or halves of the first of numbers."""
    for name in features:
        column = features[name]
        if 2 <= column.nunique() <= 6 and column.value_counts(normalize=True).min() >= 0.05:
            return np.array([str(value) for value in column], dtype=object)
    numbers = features.select_dtypes("number").iloc[:, 0]
    return np.where(numbers > numbers.median(), "high", "low").astype(object)


def first_number(features: pd.DataFrame) -> np.ndarray:
    """Return the first column of numbers, gaps filled with its median, in standard units."""
    column = features.select_dtypes("number").iloc[:, 0].astype(float)
    filled = column.fillna(column.median()).to_numpy()
    return (filled - np.mean(filled)) / np.std(filled)


def once(estimate: Callable[..., pd.DataFrame], *args: object, **settings: object) -> Callable:
    """Return a function that estimates when it is first called, and then remembers."""
    known: list[pd.DataFrame] = []

    def answer() -> pd.DataFrame:
        if not known:
            known.append(estimate(*args, **settings))
        return known[0]

    return answer


def at_place(answer: Callable[[], pd.DataFrame], place: int) -> Callable[[], pd.DataFrame]:
    """Return a function that takes one line of an answer."""
    return lambda: answer().iloc[[place]]
