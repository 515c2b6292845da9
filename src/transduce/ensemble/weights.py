"""Weights of a blend: members' answers on one scale, how they are weighed, and how large the blend's errors are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import softmax

from transduce.core.scaling import fit_temperature
from transduce.core.types import AnyArray, Array, Mask
from transduce.model_selection.ask import Problem, Reply
from transduce.model_selection.folds import Fold


@dataclass(frozen=True)
class Calibration:
    """How a member's scores become shares: softmax of the scores times a factor."""

    factor: float = 1.0  # not used for a member that gives probabilities; these are its shares

    @classmethod
    def fit(cls, replies: list[Reply], codes: list[AnyArray], n_classes: int) -> Calibration:
        """Choose the factor that minimises the log-loss of the out-of-fold shares."""
        pairs = [
            (reply.class_scores(n_classes)[reply.given], code[reply.given])
            for reply, code in zip(replies, codes, strict=True)
            if reply.probabilities is None
        ]
        scores = np.concatenate([part for part, _ in pairs]) if pairs else np.empty((0, n_classes))
        if len(scores) == 0:
            return cls()
        size = cls.of_size(scores).factor
        return cls(size * fit_temperature(size * scores, np.concatenate([code for _, code in pairs])))

    @classmethod
    def of_size(cls, scores: Array) -> Calibration:
        """Scale scores so that the best lies 1 above the mean of its row, on average; without labels."""
        size = float(np.mean(scores.max(axis=1) - scores.mean(axis=1))) if len(scores) else 0.0
        return cls(1.0 / size if 0.0 < size < np.inf else 1.0)

    def shares(self, reply: Reply, n_classes: int) -> Array:
        """Return the share of each class, shape (m, n_classes)."""
        if reply.probabilities is not None:
            return reply.probabilities
        return np.asarray(softmax(self.factor * reply.class_scores(n_classes), axis=1))


def stack(replies: list[Reply], calibrations: list[Calibration], classes: Any) -> tuple[Array, Mask]:
    """Return answers of k members at the same m rows, shape (k, m) or (k, m, n_classes), and where they were given."""
    given = np.stack([reply.given for reply in replies])
    if classes is None:
        return np.stack([reply.values for reply in replies]), given
    pairs = zip(replies, calibrations, strict=True)
    return np.stack([calibration.shares(reply, len(classes)) for reply, calibration in pairs]), given


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Out-of-fold answers of k members, one entry for each label hidden in a fold."""

    hidden: AnyArray  # (r,) which of the labelled rows each entry is
    answers: Array  # (k, r) or (k, r, n_classes) numbers or shares
    truth: Array  # (r,) or (r, n_classes) labels, or 1 for the class and 0 for others

    @classmethod
    def of(
        cls, problem: Problem, folds: list[Fold], replies: list[list[Reply]], calibrations: list[Calibration]
    ) -> OutOfFold:
        """Collect the replies of k members in all folds."""
        parts = []
        for k, (visible, _) in enumerate(folds):
            answers, given = stack([member[k] for member in replies], calibrations, problem.classes)
            parts.append(problem.filled(answers, given, visible))
        hidden = np.concatenate([fold[1] for fold in folds])
        return cls(hidden, np.concatenate(parts, axis=1), problem.truth[hidden])

    def shares(self) -> Array:
        """Return what each entry counts: 1/t where a label was hidden t times."""
        return 1.0 / np.bincount(self.hidden)[self.hidden]

    def errors(self, unit: float) -> Array:
        """Return errors over `unit`, shape (r, k) or (r n_classes, k); a label hidden t times counts 1/t each time."""
        times = np.sqrt(self.shares()).reshape(-1, *[1] * (self.truth.ndim - 1))
        errors = (self.answers - self.truth) * times / unit
        return np.clip(errors, -1e100, 1e100).reshape(len(errors), -1).T

    def by_row(self, entries: Array) -> tuple[AnyArray, Array]:
        """Return the labelled rows that were hidden, and the mean of entries (r,) or (r, c) at each."""
        rows, at = np.unique(self.hidden, return_inverse=True)
        total = np.zeros((len(rows), *entries.shape[1:]))
        np.add.at(total, at, entries)
        return rows, total / np.bincount(at).reshape(-1, *[1] * (entries.ndim - 1))


def simplex_weights(errors: Array, pull: float = 0.0) -> Array:
    """Return the weights (k,), none negative, with sum 1, for which the error of the blend, of (r, k), is least."""
    # On the simplex ``w - 1/k = (I - 11'/k) w``, so that the penalty is k more rows of errors. Non-negative least
    # squares with one more row c 1' and target c finds u = s w with ``s^2 q + c^2 (s - 1)^2`` smallest, where q is the
    # objective at w; at the best s this is ``c^2 q / (q + c^2)``, which increases with q. So w = u / sum(u) is exact
    # for any c.
    k = errors.shape[1]
    rows = np.vstack([errors, np.sqrt(pull) * (np.eye(k) - 1.0 / k)])
    size = float(np.abs(rows).max())
    if size == 0.0 or k == 1:
        return np.full(k, 1.0 / k)
    rows = rows / size
    c = float(np.sqrt(np.mean(np.sum(rows**2, axis=0))))
    target = np.append(np.zeros(len(rows)), c)
    weights = nnls(np.vstack([rows, np.full(k, c)]), target)[0]
    return weights / weights.sum()


def shrunk_weights(errors: Array, n_labels: int) -> Array:
    """Return weights (k,) that minimise the blend's error out of fold, of (r, k), nearer to equal with fewer labels."""
    # Before any label is seen, weights may be anything with sum 1, all equally likely: each then has mean 1/k and
    # variance ``v = (k - 1) / (k^2 (k + 1))``. A normal prior with these moments, and errors of the blend of variance
    # s, that of the equal blend, make ``|errors @ w|^2 + (s / v) |w - 1/k|^2`` the negative log posterior, up to
    # factors.
    k = errors.shape[1]
    if k == 1:
        return np.ones(1)
    spread = (k - 1) / (k**2 * (k + 1))
    variance = float(np.sum(errors.mean(axis=1) ** 2)) / n_labels
    return simplex_weights(errors, variance / spread)


def mix(answers: Array, weights: Array, given: Mask) -> tuple[Array, Array]:
    """Return the weighted mean of answers (k, m, ...) over the members that gave one (k, m), and their spread."""
    shape = given.shape + (1,) * (answers.ndim - 2)
    share = np.where(given, weights[:, None], 0.0)
    share = np.where(share.sum(axis=0) > 0.0, share, given)
    total = share.sum(axis=0)
    share = np.divide(share, total, out=np.full_like(share, np.nan), where=total > 0.0).reshape(shape)
    answers = np.where(given.reshape(shape), answers, 0.0)
    mean = np.sum(share * answers, axis=0)
    return mean, np.sqrt(np.sum(share * (answers - mean) ** 2, axis=0))


PENALTY = 30.0  # on the squared coefficients; intervals are hardly wider with 10 or 100
FARTHEST = 3.0  # standard deviations at which value and spread are cut off
LEAST = 0.1  # of the root mean square spread is added to every spread, so that a spread of 0 has a logarithm


@dataclass(frozen=True, eq=False)
class ErrorSize:
    """The standard error of a blend as a function of its value and its members' spread at a row."""

    coefficients: Array  # (3,) of the logarithm of the size
    centres: Array  # (2,) means of value and logarithm of the spread at the labels
    units: Array  # (2,) their standard deviations
    typical: float  # root mean square spread
    factor: float  # makes a standard error of the size

    @classmethod
    def fit(cls, values: Array, spreads: Array, errors: Array, shares: Array) -> ErrorSize:
        """Fit the size to out-of-fold errors (r,), by their values, spreads and shares (r,)."""
        # Absolute errors ``e`` are taken as exponential with the mean ``s = exp(c'z)``, where z holds 1 and the two
        # standardised signals: ``sum(log s + e / s)`` plus a penalty on the coefficients of the signals is convex in c.
        # With few labels the size is nearly the same everywhere. The standard error is s times the root mean square of
        # ``e / s``.
        typical = float(np.sqrt(_mean(spreads**2, shares)))
        signals = _signals(values, spreads, typical)
        centres = _mean(signals, shares)
        units = np.sqrt(_mean((signals - centres) ** 2, shares))
        varies = units > 1e-9 * (1.0 + np.abs(centres))  # a signal that does not says nothing
        same = cls(np.zeros(3), centres, np.where(varies, units, np.inf), typical, 0.0)
        sizes = np.abs(errors)
        mean = float(_mean(sizes, shares))
        if mean == 0.0:
            return same
        z = same._features(values, spreads)
        tight = {"ftol": 1e-15, "gtol": 1e-9}
        known = z, sizes / mean, shares
        solution = minimize(_loss, np.zeros(3), known, jac=True, method="L-BFGS-B", options=tight)
        factor = float(np.sqrt(_mean((sizes * np.exp(-z @ solution.x)) ** 2, shares)))
        return replace(same, coefficients=solution.x, factor=factor)

    def at(self, values: Array, spreads: Array) -> Array:
        """Return standard errors at rows with these values and spreads of the members."""
        logs = np.sum(self._features(values, spreads) * self.coefficients, axis=1)  # the same for every batch
        return self.factor * np.exp(logs)

    def _features(self, values: Array, spreads: Array) -> Array:
        z = (_signals(values, spreads, self.typical) - self.centres) / self.units
        return np.column_stack([np.ones(len(z)), np.clip(z, -FARTHEST, FARTHEST)])


def _signals(values: Array, spreads: Array, typical: float) -> Array:
    logs = np.log(spreads + LEAST * typical) if typical > 0.0 else np.zeros(len(spreads))
    return np.column_stack([values, logs])


def _mean(numbers: Array, shares: Array) -> Array:
    return np.asarray(np.average(numbers, axis=0, weights=shares))


def _loss(coefficients: Array, z: Array, sizes: Array, shares: Array) -> tuple[float, Array]:
    """Return the penalised negative log likelihood of exponential sizes, and its gradient."""
    logs = z @ coefficients
    over = sizes * np.exp(-logs)
    pull = np.append(0.0, coefficients[1:])
    value = float(np.sum(shares * (logs + over)) + PENALTY * np.sum(pull**2))
    return value, z.T @ (shares * (1.0 - over)) + 2.0 * PENALTY * pull
