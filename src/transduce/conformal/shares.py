"""The shares of the classes among unlabelled rows, where labels were chosen by their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from transduce.core.types import AnyArray, Array

PULL = 4.0  # rows that the labels' shares weigh
POWER_PRIOR, SHIFT_PRIOR = 4.0, 1.0  # of the correction of probabilities
MOST_ROWS = 2000  # in a resample; more rows would hardly make intervals narrower
N_RESAMPLES = 200
N_FIRST = 20  # steps of EM before those of Newton
_SMALLEST = 1e-6  # probabilities below this count as this


@dataclass(frozen=True, eq=False)
class ClassShares:
    """The shares of the classes among the unlabelled rows, and how probabilities are made to fit them.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The classes, or their numbers.
    labels : array of shape (n_classes,)
        Their shares among the labels that probabilities were learned from.
    shares : array of shape (n_classes,)
        Their shares among the unlabelled rows: estimated, or given.
    lower, upper : array of shape (n_classes,)
        Ends of an interval for each share, at `confidence`; the share itself if shares were given.
    confidence : float
        Level of the intervals.
    given : bool
        Whether the shares were given.
    power, shifts : float, array of shape (n_classes,)
        The correction of probabilities: to this power, times ``exp(shifts)``, scaled to sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.conformal import ClassShares
    >>> shares = ClassShares(np.array(["no", "yes"]), np.array([0.5, 0.5]), np.array([0.9, 0.1]), given=True)
    >>> shares.reweigh(np.array([[0.5, 0.5], [0.1, 0.9]])).round(2)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    classes: AnyArray
    labels: Array
    shares: Array
    lower: Array | None = None
    upper: Array | None = None
    confidence: float = 0.9
    given: bool = False
    power: float = 1.0
    shifts: Array | None = None

    def corrected(self, probabilities: Array) -> Array:
        """Return probabilities of the labels' shares, corrected. Shapes: probabilities (m, n_classes)."""
        return corrected(probabilities, self.power, self.shifts)

    def reweigh(self, probabilities: Array) -> Array:
        """Return probabilities that hold at these shares.

        Parameters
        ----------
        probabilities : array of shape (m, n_classes)
            As they were learned from the labels.

        Returns
        -------
        array of shape (m, n_classes)
            ``P(c | x) shares / labels``, corrected and scaled to sum 1 in each row.
        """
        known = self.labels > 0.0
        ratio = np.divide(self.shares, self.labels, out=np.zeros(len(known)), where=known)
        weighted = self.corrected(probabilities) * ratio
        total = weighted.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), self.shares)

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each class: its share of the labels, of the unlabelled rows, and the interval."""
        ends = {"lower": self.lower, "upper": self.upper}
        columns = {"labels": self.labels, "share": self.shares, **ends}
        return pd.DataFrame(
            {name: self.shares if part is None else part for name, part in columns.items()},
            index=pd.Index(self.classes, name="class"),
        )


# ---------------------------------------------------------------------------------------------------- estimates


def estimate_shares(
    probabilities: Array,
    label_counts: Any,
    *,
    hidden: tuple[Array, AnyArray] | None = None,
    drawn: Any = None,
    confidence: float = 0.9,
    n_resamples: int = N_RESAMPLES,
    random_state: Any = 0,
) -> ClassShares:
    """Estimate the shares of the classes among unlabelled rows by maximum likelihood, with an interval for each.

    Shapes: probabilities (m, n_classes), as learned from labels of which there are `label_counts` (n_classes,);
    `hidden`, by which they are corrected, holds probabilities (l, n_classes) at labelled rows while their label was
    hidden, and the numbers of their classes (l,); `drawn` (n_classes,) counts labels of rows drawn at random.

    Notes
    -----
    If chance chose which rows of each class are labelled, the likelihood of the shares q at the unlabelled rows is
    ``prod_j sum_c P(c | x_j) q_c / p_c``, where P was learned from labels with the shares p (Saerens, Latinne,
    Decaestecker 2002). It needs calibrated probabilities (Alexandari, Kundaje, Shrikumar 2020). The labels' shares
    weigh as much as `PULL` rows, so that a class is not lost for want of evidence. Intervals are those of a bootstrap
    over hidden labels within each class, and over rows; the fit is not repeated, so that they are rather too narrow
    where labels are few.
    """
    counts = np.asarray(label_counts, dtype=float)
    p, random, m = counts / counts.sum(), check_random_state(random_state), len(probabilities)
    known = np.zeros(len(p)) if drawn is None else np.asarray(drawn, dtype=float)
    fit = (1.0, np.zeros(len(p))) if hidden is None else fit_correction(*hidden)
    shares = fit_shares(corrected(probabilities, *fit), p, PULL * p + known)
    draws, size = [shares], min(m, MOST_ROWS)
    for _ in range(n_resamples if m else 0):
        again = fit if hidden is None else fit_correction(*_resampled(*hidden, random), start=fit)
        some, own = random.choice(m, size), known
        if known.sum() >= 1.0:
            own = random.multinomial(int(known.sum()), known / known.sum()) * 1.0
        prior = (PULL * p + own) * size / m
        draws.append(fit_shares(corrected(probabilities[some], *again), p, prior))
    lower, upper = np.quantile(draws, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    ends = np.minimum(lower, shares), np.maximum(upper, shares)
    return ClassShares(np.arange(len(p)), p, shares, *ends, confidence, power=fit[0], shifts=fit[1])


def fit_shares(probabilities: Array, p: Array, prior: Array) -> Array:
    """Return the shares with the largest likelihood; `prior` counts rows of known class, some for each with a label.

    Shapes: probabilities (m, n_classes), p, prior (n_classes,).

    Notes
    -----
    The objective ``sum_j log sum_c q_c P_jc / p_c + sum_c prior_c log q_c`` is concave in q, and its second part keeps
    q from the edge. A few steps of EM come near the maximum, and Newton's on the plane ``sum(q) = 1`` reach it: EM
    alone takes thousands where classes overlap.
    """
    active = prior > 0.0
    own, ratio = prior[active], np.divide(probabilities, p, out=np.zeros(probabilities.shape), where=p > 0.0)
    ratio = ratio[ratio.sum(axis=1) > 0.0][:, active]
    total, q = len(ratio) + own.sum(), own / own.sum()
    for _ in range(N_FIRST):
        q = (q * (ratio.T @ (1.0 / (ratio @ q))) + own) / total
    for _ in range(100):
        mixed = ratio / (ratio @ q)[:, None]
        slope = mixed.sum(axis=0) + own / q  # at the maximum it is `total` everywhere
        curve = mixed.T @ mixed + np.diag(own / q**2)
        toward = np.linalg.solve(curve, np.column_stack([slope, np.ones(len(q))]))
        step = toward[:, 0] - toward[:, 1] * toward[:, 0].sum() / toward[:, 1].sum()
        gain = float(slope @ step)
        if gain <= 1e-12 * total:
            break
        q = _uphill(ratio, own, q, step, gain)
    shares = np.zeros(len(p))
    shares[active] = q / q.sum()
    return shares


def _uphill(ratio: Array, own: Array, q: Array, step: Array, gain: float) -> Array:
    """Return the shares after a step, halved until they are shares and the objective grows enough."""

    def objective(shares: Array) -> float:
        return float(np.sum(np.log(ratio @ shares)) + own @ np.log(shares))

    long, before = 1.0, objective(q)
    while long > 1e-12:
        new = q + long * step
        if new.min() > 0.0 and objective(new) >= before + 1e-4 * long * gain - 1e-12 * abs(before):
            return new
        long /= 2.0
    return q


# ------------------------------------------------------------------------------------- calibrated probabilities


def corrected(probabilities: Array, power: float, shifts: Array | None) -> Array:
    """Return probabilities to a power, times ``exp(shifts)``, scaled to sum 1 in each row."""
    if shifts is None or (power == 1.0 and not shifts.any()):
        return probabilities
    logs = power * np.log(np.maximum(probabilities, _SMALLEST)) + shifts
    return np.where(probabilities > 0.0, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), 0.0)


def fit_correction(
    probabilities: Array, codes: AnyArray, start: tuple[float, Array] | None = None
) -> tuple[float, Array]:
    """Return the power and the shifts that make probabilities at hidden labels fit these best.

    Shapes: probabilities (l, n_classes), codes (l,).
    """
    logs, k = np.log(np.maximum(probabilities, _SMALLEST)), probabilities.shape[1]
    truth = np.eye(k)[codes]

    def loss(line: Array) -> tuple[float, Array]:
        scores = np.exp(line[0]) * logs + line[1:]
        scores -= logsumexp(scores, axis=1, keepdims=True)
        off = np.exp(scores) - truth
        slope = np.append(np.exp(line[0]) * np.sum(off * logs), off.sum(axis=0))
        prior = np.append(2.0 * POWER_PRIOR * line[0], 2.0 * SHIFT_PRIOR * line[1:])
        return float(-np.sum(truth * scores) + 0.5 * line @ prior), slope + prior

    first = np.zeros(k + 1) if start is None else np.append(np.log(start[0]), start[1])
    bounds = [(-2.0, 2.0)] + [(-5.0, 5.0)] * k
    best = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(np.exp(best[0])), best[1:]


def _resampled(
    probabilities: Array, codes: AnyArray, random: np.random.RandomState
) -> tuple[Array, AnyArray]:
    """Return hidden labels drawn with replacement within each class, at most `MOST_ROWS`."""
    most = MOST_ROWS / len(codes)
    kinds = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    rows = np.concatenate([random.choice(kind, max(1, int(len(kind) * min(1.0, most)))) for kind in kinds])
    return probabilities[rows], codes[rows]
