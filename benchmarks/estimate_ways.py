"""How others answer the questions of `estimates.py`: intervals for a number of a whole column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
import pandas as pd
from estimate_questions import PartlyLabelled, Question
from scipy.stats import norm
from scipy.stats import t as student_t

LEVEL = 0.95
N_COMPLETIONS = 20

Interval = tuple[float, float]
Completions = list[np.ndarray]  # of the target: numbers, or classes


def naive(question: Question, labelled: np.ndarray) -> Interval:
    """Return the interval that takes filled values for measured ones."""
    completed = np.where(labelled, question.values, question.filled)
    estimate, variance = question.analyse(completed)
    half = norm.ppf((1.0 + LEVEL) / 2.0) * np.sqrt(variance)
    return estimate - half, estimate + half


# --------------------------------------------------------------------- prediction-powered inference


def ppi_py(question: Question, labelled: np.ndarray) -> Interval | None:
    """Return the interval of the package ppi_py; None for a question that it does not have."""
    import ppi_py as package

    known = labelled & question.inside
    unknown = ~labelled & question.inside
    if known.sum() < 3:
        return None
    y, f, g = question.values[known], question.predictions[known], question.predictions[unknown]
    error = 1.0 - LEVEL
    if question.form in ("mean", "total"):
        size = len(labelled) if question.form == "total" else 1
        ends = [size * float(np.ravel(end)[0]) for end in package.ppi_mean_ci(y, f, g, alpha=error)]
        return ends[0], ends[1]
    if question.form == "quantile":
        lower, upper = package.ppi_quantile_ci(y, f, g, 0.5, alpha=error)
        return float(lower), float(upper)
    if question.form in ("slope", "logistic"):
        design = np.column_stack([np.ones(len(labelled)), question.x])
        interval = package.ppi_ols_ci if question.form == "slope" else package.ppi_logistic_ci
        lower, upper = interval(design[known], y, f, design[unknown], g, alpha=error)
        return float(lower[1]), float(upper[1])
    return None


def glide(question: Question, labelled: np.ndarray) -> Interval | None:
    """Return the interval of the package glide (PPI++), which has means alone."""
    from glide.estimators import PPIMeanEstimator

    if question.form not in ("mean", "total"):
        return None
    size = len(labelled) if question.form == "total" else 1
    inside = question.inside
    answer = PPIMeanEstimator().estimate(
        y_true=np.where(labelled, question.values, np.nan)[inside],
        y_proxy=question.predictions[inside],
        confidence_level=LEVEL,
    )
    interval = answer.confidence_interval
    return size * float(interval.lower_bound), size * float(interval.upper_bound)


PACKAGES: dict[str, Callable[[Question, np.ndarray], Interval | None]] = {
    "ppi_py": ppi_py,
    "glide": glide,
}


def installed_packages() -> list[str]:
    """Return the opponents that are installed, and say which are not."""
    pip_names = {"ppi_py": "ppi-python", "glide": "glide-py"}
    missing = [name for name in PACKAGES if find_spec(name) is None]
    for name in missing:
        print(f"{name} is left out: it is not installed (pip install {pip_names[name]}).")
    return [name for name in PACKAGES if name not in missing]


# ------------------------------------------------------------------------------ multiple imputation


def complete_by_mice(problem: PartlyLabelled, seed: int) -> Completions:
    """Return the target completed 20 times by chained equations, as scikit-learn and mice have them.

    Numbers by Bayesian linear regression on all other columns, classes by logistic regressions of
    bootstrapped labels ("logreg.boot" of the R package mice).
    """
    table = problem.table
    encoded = pd.get_dummies(table.features, dtype=float)
    encoded = encoded.fillna(encoded.median()).to_numpy(dtype=float)
    varies = np.ptp(encoded[problem.labelled], axis=0) > 0.0
    X = encoded[:, varies]
    if table.task == "regression":
        return list(_complete_numbers(X, problem, seed))
    return list(_complete_classes(X, problem, seed))


def _complete_numbers(X: np.ndarray, problem: PartlyLabelled, seed: int) -> Iterator[np.ndarray]:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
    from sklearn.preprocessing import StandardScaler

    y = np.where(problem.labelled, problem.table.target.astype(float), np.nan)
    complete = np.column_stack([StandardScaler().fit_transform(X), y])
    for k in range(N_COMPLETIONS):
        imputer = IterativeImputer(sample_posterior=True, max_iter=1, random_state=seed % 2**20 + k)
        yield imputer.fit_transform(complete)[:, -1]


def _complete_classes(X: np.ndarray, problem: PartlyLabelled, seed: int) -> Iterator[np.ndarray]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    generator = np.random.default_rng(seed)
    rows = np.flatnonzero(problem.labelled)
    unlabelled = np.flatnonzero(~problem.labelled)
    target = problem.table.target
    for _ in range(N_COMPLETIONS):
        resampled = generator.choice(rows, len(rows))
        completed = target.copy()
        if len(set(target[resampled])) < 2:
            completed[unlabelled] = target[resampled[0]]
            yield completed
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        model.fit(X[resampled], target[resampled])
        below = np.cumsum(model.predict_proba(X[unlabelled]), axis=1)
        chosen = np.sum(generator.random(len(unlabelled))[:, None] > below[:, :-1], axis=1)
        completed[unlabelled] = model.classes_[chosen]
        yield completed


def pool(question: Question, completed: list[np.ndarray], *, of_these_rows: bool) -> Interval:
    """Return the interval by Rubin's rules over completed columns.

    With `of_these_rows` a complete table has no error left, since the question is about its rows:
    only the spread between completions counts. Otherwise the rows are a sample, as software has it.
    """
    answers = np.array([question.analyse(question.read(column)) for column in completed])
    estimates, variances = answers.T
    between = (1.0 + 1.0 / len(completed)) * float(np.var(estimates, ddof=1))
    within = 0.0 if of_these_rows else float(np.mean(variances))
    total = within + between
    degrees = np.inf
    if between > 0.0:
        degrees = (len(completed) - 1) * (total / between) ** 2
    half = float(student_t.ppf((1.0 + LEVEL) / 2.0, degrees)) * np.sqrt(total)
    middle = float(np.mean(estimates))
    return middle - half, middle + half
