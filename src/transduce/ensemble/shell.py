"""What lies behind a blend: its members, who of them answers, and their weights."""

from __future__ import annotations

import types
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import ClassifierTags, RegressorTags, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, validate_data

from transduce.core import checks, validation
from transduce.core.progress import stage
from transduce.core.scaling import label_moments
from transduce.core.task import TASKS, guess_task
from transduce.core.transducer import EitherTransducer
from transduce.core.types import Array, Mask
from transduce.ensemble.shares import Calibration, OutOfFold, class_scores
from transduce.ensemble.weights import mix, shrunk_weights
from transduce.model_selection.catalogue import default_members, name_members
from transduce.model_selection.folds import Failure, Fold, ask_folds, in_a_sentence, read_folds
from transduce.model_selection.hidden_labels import (
    Problem,
    Reply,
    ask,
    failure,
    own_missing_label,
    read_table,
)

MIN_LABELS = 5  # fewer say nothing about weights


class BlendShell(EitherTransducer, _BaseComposition):
    """Members and weights; the estimator turns them into answers."""

    def __init__(
        self,
        estimators: Any = None,
        *,
        weights: Any = "shrunk",
        task: str = "auto",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.task = task
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def _read(self, X: Any, y: Any) -> Problem:
        """Check the settings, and return table and labels."""
        checks.check_choice("task", self.task, TASKS)
        checks.check_jobs(self.n_jobs)
        if isinstance(self.weights, str):
            checks.check_choice("weights (or an array)", self.weights, ("shrunk", "equal"))
        given = {} if self.estimators is None else name_members("estimators", self.estimators)
        self._checked, self._no_label = not given, self.missing_label
        if self._checked:
            sample = validation.read_sample(self, X, y)
            X = sample.X
        else:
            validation.check_given(self, y)
            X = read_table(X)
            validate_data(self, X, skip_check_array=True)
            pairwise = {bool(get_tags(member).input_tags.pairwise) for member in given.values()}
            if len(pairwise) > 1:
                raise ValueError(
                    "Some members take a precomputed kernel and others features: give members of one kind."
                )
            self._no_label = own_missing_label(self.missing_label, given.values())
            reader = types.SimpleNamespace(missing_label=self._no_label)
            sample = validation.read_labels(
                reader, np.empty((_num_samples(X), 0)), getattr(X, "index", None), y
            )
        task = guess_task(sample, given.values()) if self.task == "auto" else self.task
        problem = Problem.of(X, sample, task)
        self.task_ = task
        self._centre, self._unit = 0.0, 1.0
        if problem.classes is None:
            self._centre, self._unit = label_moments(problem.labels)
        else:
            self.classes_ = problem.classes
        return problem

    def _members(
        self, problem: Problem, random: np.random.RandomState
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the members to fit, and why others are left out."""
        if self.estimators is not None:
            return name_members("estimators", self.estimators), {}
        seed = int(random.randint(np.iinfo(np.int32).max))
        return default_members(problem.task, len(problem.sample.labelled), len(problem.labels), seed)

    def _ask(self, members: dict[str, Any], problem: Problem) -> dict[str, Reply]:
        """Return what the members answer at the unlabelled rows; leave out those that fail."""
        jobs = (delayed(_attempt)(member, problem) for member in members.values())
        results: dict[str, Any] = {}
        with stage("methods") as report:
            for name, result in zip(
                members, Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs), strict=True
            ):
                results[name] = result
                report(len(results) / len(members))
        return self._keep(results, "")

    def _keep(self, results: dict[str, Any], when: str) -> dict[str, Any]:
        """Return the results that are no failure, and warn of those that are; all failed is an error."""
        failures = {name: result for name, result in results.items() if isinstance(result, Failure)}
        if len(failures) == len(results):
            name, first = next(iter(failures.items()))
            message = f"Every member failed{when}. {name}: {first.message}"
            raise failure(message, first.error) from first.error
        for name, why in failures.items():
            warnings.warn(f"Member {name!r} failed{when} and is left out: {why.message}", stacklevel=4)
        return {name: result for name, result in results.items() if name not in failures}

    def _ask_hidden(
        self, members: dict[str, Any], replies: dict[str, Reply], problem: Problem, folds: list[Any]
    ) -> dict[str, list[Reply]]:
        """Return the out-of-fold replies of members that need them; drop from `replies` those that fail."""
        names = [name for name in replies if folds and self._needs_folds(problem, replies[name])]
        hidden = ask_folds([members[name] for name in names], problem, folds, n_jobs=self.n_jobs)
        results: dict[str, Any] = {
            name: next((reply for reply in found if isinstance(reply, Failure)), found)
            for name, found in zip(names, hidden, strict=True)
        }
        if not results:
            return results
        kept = self._keep(results, " when labels were hidden")
        for name in set(results) - set(kept):
            del replies[name]
        return kept

    # ------------------------------------------------------------------------------------------------ weights

    def _folds(
        self, problem: Problem, replies: dict[str, Reply], random: np.random.RandomState
    ) -> list[Fold]:
        """Return the folds that weights or shares need; none if they are of no use."""
        if len(problem.labels) < MIN_LABELS:
            return []
        if not any(self._needs_folds(problem, reply) for reply in replies.values()):
            return []
        return read_folds(self.cv, problem, random_state=random, quiet=True)

    def _needs_folds(self, problem: Problem, reply: Reply) -> bool:
        """Return whether weights are to be estimated, or a member's scores to be made shares."""
        shrunk = isinstance(self.weights, str) and self.weights == "shrunk"
        return shrunk or (problem.classes is not None and not _has_probabilities(reply))

    def _given_weights(self, members: dict[str, Any]) -> dict[str, float] | None:
        """Return the weights that the user gave, by member."""
        if isinstance(self.weights, str):
            return None
        return dict(zip(members, _read_weights(self.weights, len(members)), strict=True))

    def _weigh(
        self,
        problem: Problem,
        folds: list[Fold],
        names: list[str],
        given: dict[str, float] | None,
        hidden: dict[str, Any],
    ) -> None:
        """Set the weights and, if they are estimated, the out-of-fold answers."""
        k = len(names)
        weights = np.full(k, 1.0 / k)
        self._error = self._disagreement = np.nan
        if given is not None:
            weights = np.array([given[name] for name in names])
            if weights.sum() == 0.0:
                raise ValueError("The members left have weight 0: give weights to those that do not fail.")
            weights /= weights.sum()
        elif self.weights == "shrunk" and folds:
            found = OutOfFold.of(problem, folds, [hidden[name] for name in names], self._calibrations)
            weights = shrunk_weights(found.errors(self._unit), len(np.unique(found.hidden)))
            self._set_out_of_fold(problem, found, names, weights)
        self.weights_ = pd.Series(weights, index=names, name="weight")

    def _set_out_of_fold(self, problem: Problem, found: OutOfFold, names: list[str], weights: Array) -> None:
        """Set the frame of out-of-fold answers and, for numbers, the blend's error and the members' disagreement."""
        everyone = np.ones(found.answers.shape[:2], dtype=bool)
        blend, spread = self._mean(found.answers, weights, everyone)
        rows, by_row = found.by_row(np.moveaxis(np.concatenate([found.answers, blend[None]]), 0, -1))
        index = (
            pd.Index(problem.rows[rows])
            if problem.sample.index is None
            else problem.sample.index[problem.rows[rows]]
        )
        if problem.classes is None:
            self.out_of_fold_ = pd.DataFrame(by_row, index=index, columns=[*names, "blend"])
            self._error = _size((blend - found.truth) / self._unit) * self._unit
            self._disagreement = _size(spread / self._unit) * self._unit
            return
        columns = pd.MultiIndex.from_product([[*names, "blend"], problem.classes], names=["member", "class"])
        wide = np.moveaxis(by_row, -1, 1).reshape(len(rows), -1)
        self.out_of_fold_ = pd.DataFrame(wide, index=index, columns=columns)

    def _mean(self, answers: Array, weights: Array, given: Mask) -> tuple[Array, Array]:
        """Return mean and spread of answers, computed in units of the labels so that none is too large to square."""
        mean, spread = mix((answers - self._centre) / self._unit, weights, given)
        return mean * self._unit + self._centre, spread * self._unit

    # --------------------------------------------------------------------------------- scikit-learn's contract

    def _kind(self) -> str | None:
        """Return the task as far as it is known: of the last fit, or of the fit to come."""
        if self.task != "auto" and not hasattr(self, "task_"):
            return self.task if self.task in TASKS else None
        if hasattr(self, "task_"):
            return self.task_
        for member in self._named():
            if is_classifier(member[1]) or is_regressor(member[1]):
                return "classification" if is_classifier(member[1]) else "regression"
        return None

    def _named(self) -> list[Any]:
        """Return the members by name if they were given so, in a list or a dict."""
        members = list(self.estimators.items()) if isinstance(self.estimators, dict) else self._pairs()
        return [pair for pair in members if hasattr(pair[1], "get_params")]

    def _pairs(self) -> list[Any]:
        """Return the members if they were given as a list of names and estimators, so that settings can be nested."""
        members = self.estimators
        is_list = isinstance(members, list) and all(
            isinstance(pair, tuple) and len(pair) == 2 for pair in members
        )
        return members if is_list else []

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, and with `deep` those of members given as a list of (name, estimator)."""
        if deep and self._pairs():
            return self._get_params("estimators", deep=True)
        return super().get_params(deep=False)

    def set_params(self, **params: Any) -> Any:
        """Set settings, ``name__setting`` for those of members given as a list of (name, estimator)."""
        if self._pairs():
            return self._set_params("estimators", **params)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [get_tags(member).input_tags for _, member in self._named()]
        tags.input_tags.pairwise = bool(members) and all(member.pairwise for member in members)
        tags.input_tags.sparse = any(member.sparse for member in members)
        kind = self._kind()
        if kind == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif kind == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        if kind is not None:
            tags.target_tags.required = True
        return tags


def _attempt(member: Any, problem: Problem) -> Reply | Failure:
    """Return a member's answers at the unlabelled rows, or why there are none."""
    try:
        return ask(member, problem, np.arange(len(problem.labels)), problem.sample.unlabelled)
    except Exception as error:  # an estimator of any make may raise anything
        return Failure(in_a_sentence(error), error)


def _size(numbers: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(numbers**2)))


def _has_probabilities(reply: Reply) -> bool:
    return reply.probabilities is not None or hasattr(reply.fitted, "predict_proba")


def calibrate(problem: Problem, folds: list[Fold], reply: Reply, hidden: list[Reply] | None) -> Calibration:
    """Return how a member's scores become shares: by its out-of-fold scores, or without labels if it has none."""
    if problem.classes is None or _has_probabilities(reply):
        return Calibration()
    n_classes = len(problem.classes)
    if hidden is None:
        return Calibration.of_size(class_scores(reply, n_classes)[reply.given])
    return Calibration.fit(hidden, [problem.codes[fold[1]] for fold in folds], n_classes)


def _read_weights(weights: Any, k: int) -> Array:
    """Return weights as k numbers from 0 on, or raise a ValueError."""
    try:
        numbers = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (k,) or not np.isfinite(numbers).all() or numbers.min() < 0.0 or numbers.sum() == 0.0:
        raise ValueError(
            f"weights must be 'shrunk', 'equal', or a number from 0 on for each of the {k} members, not all 0; "
            f"got {weights!r}."
        )
    return numbers
