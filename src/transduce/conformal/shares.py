"""The shares of the classes among unlabelled rows, where labels were chosen by their class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from scipy.special import softmax

from transduce.core import checks
from transduce.core.checks import check_random_state
from transduce.core.scaling import fit_power, to_power
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import class_codes
from transduce.core.words import counted, quoted
from transduce.model_selection.cross_validation import ask_folds, read_folds
from transduce.model_selection.fit_and_predict import FittedEstimator, Problem, Reply, last_step

PULL = 2.0  # labels, which the labels' shares weigh; measured by benchmarks/by_class.py
MOST_ROWS = 2000  # of a resample
N_RESAMPLES = 200
N_PERMUTATIONS = 999
CONFIDENCE = 0.9  # of intervals for a share that is told without being asked for
FEWEST_POOLED = 10  # labels below which a class is compared together with others
N_FIRST = 20  # steps of EM before those of Newton
MOST_SAID = 5  # classes
# Labels held out: where a class has fewer, labels are hidden in turn to see how sure shares are.
FEWEST_OF_CLASS = 5
# Probabilities (l, n_classes) at labelled rows while their label was hidden, and the numbers of
# their classes (l,).
Hidden = tuple[Array, AnyArray]


@dataclass(frozen=True, eq=False)
class ClassShares:
    """The shares of the classes among the unlabelled rows.

    Probabilities are made to fit them.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The classes, or their numbers.
    labels, shares : array of shape (n_classes,)
        Their shares among the labels that probabilities were learned from, and among the unlabelled
        rows.
    lower, upper : array of shape (n_classes,)
        Ends of an interval for each share, at `confidence`; the share itself if shares were given.
    confidence, given : float, bool
        Level of the intervals, and whether the shares were given.
    power : float
        What makes the probabilities that were learned calibrated ones: each to this power, scaled
        to sum 1.
    unit : float
        By what scores are divided where an estimator has no probabilities, so that each row is
        answered by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.conformal import ClassShares
    >>> classes = np.array(["no", "yes"])
    >>> shares = ClassShares(classes, np.array([0.5, 0.5]), np.array([0.9, 0.1]), given=True)
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
    unit: float | None = None

    def reweigh(self, probabilities: Array) -> Array:
        """Return probabilities (m, n_classes) at these shares: ``P(c | x) shares / labels``."""
        probabilities = checks.as_floats("probabilities", probabilities)
        if not np.isfinite(probabilities).all():
            raise ValueError("probabilities must be finite: leave out rows that have none.")
        known = self.labels > 0.0
        ratio = np.divide(self.shares, self.labels, out=np.zeros(len(known)), where=known)
        weighted = to_power(probabilities, self.power) * ratio
        total = weighted.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), self.shares)

    def applied(self, reply: Reply) -> Reply:
        """Return answers as they are at these shares."""
        unit = self.unit or score_unit(reply, len(self.classes))
        said = self.reweigh(class_probabilities(reply, self.labels, unit))
        ranked = np.sort(said, axis=1)
        status = np.where(ranked[:, -1] - ranked[:, -2] <= 1e-9, "tied", "answered")
        status = np.where(reply.given, status, reply.status)
        return replace(
            reply, values=said.argmax(axis=1), status=status, probabilities=said, scores=None
        )

    def at(self, classes: AnyArray) -> ClassShares:
        """Return the same of fewer or more classes.

        One that no label in the fit has is never answered.
        """
        at = class_codes(classes, self.classes)
        parts: dict[str, Any] = {}
        for name in ("labels", "shares", "lower", "upper"):
            numbers = getattr(self, name)
            parts[name] = None if numbers is None else np.where(at >= 0, numbers[at], 0.0)
        return replace(self, classes=classes, **parts)

    def weights(self, labels: AnyArray) -> Array:
        """Return how many unlabelled rows each label stands for, up to a factor."""
        own = self.at(np.asarray(labels))
        zeros = np.zeros(len(labels))
        return np.divide(own.shares, own.labels, out=zeros, where=own.labels > 0.0)

    def __str__(self) -> str:
        """Return the shares in a sentence, the most frequent classes first."""
        order, said = np.argsort(-self.shares, kind="stable"), []
        for k in order[:MOST_SAID].tolist():
            ends = ""
            if self.lower is not None and self.upper is not None:
                ends = f" ({100 * self.lower[k]:.0f} to {100 * self.upper[k]:.0f} %)"
            said.append(f"{100 * self.shares[k]:.3g} % {quoted(str(self.classes[k]))}{ends}")
        left = len(order) - MOST_SAID
        more = f", and {counted(left, 'more class', 'more classes')}" if left > 0 else ""
        if self.given:
            return f"Answers are for the given shares of the classes: {', '.join(said)}{more}."
        how = f"estimated (intervals at about {100 * self.confidence:.0f} %)"
        return f"Shares of the classes among the unlabelled rows, {how}: {', '.join(said)}{more}."

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each class: shares of labels and unlabelled rows, interval."""
        lower, upper = (self.shares if end is None else end for end in (self.lower, self.upper))
        columns = {"labels": self.labels, "share": self.shares, "lower": lower, "upper": upper}
        return pd.DataFrame(columns, index=pd.Index(self.classes, name="class"))


# ---------------------------------------------------------------------------------------- estimates


def shares_of_classes(
    problem: Problem,
    held_out: Mask,
    first: Reply,
    second: Reply | None,
    given: Array | None,
    random: Any,
) -> ClassShares:
    """Return the shares of the classes among the unlabelled rows, given or estimated."""
    assert problem.classes is not None
    k, n_held = len(problem.classes), int(held_out.sum())
    counts = np.bincount(
        problem.codes if second is not None else problem.codes[~held_out], minlength=k
    )
    others = first.at(np.arange(n_held, len(first.values)))
    reply, p = others if second is None else second, counts / counts.sum()
    known, unit = first.given[:n_held], score_unit(first if second is None else second, k)
    by_content = np.argsort(problem.places[problem.rows[held_out]][known])
    hidden = (
        class_probabilities(first, p, unit)[:n_held][known][by_content],
        problem.codes[held_out][known][by_content],
    )
    if given is not None:
        return ClassShares(
            problem.classes, p, given, given=True, power=fit_power(*hidden), unit=unit
        )
    said = class_probabilities(reply, p, unit)[reply.given]
    found = replace(
        estimate_shares(said, counts, hidden=hidden), classes=problem.classes, unit=unit
    )
    if np.bincount(hidden[1], minlength=k).min() < FEWEST_OF_CLASS and reply.fitted is not None:
        hidden = _hidden_in_turn(problem, reply.fitted, p, unit)
        others = reply
    like = class_probabilities(others, p, unit)[others.given]
    ends = np.tile([[0.0], [1.0]], k)
    if len(like) and len(hidden[1]):
        ends = share_intervals(like, hidden, found.confidence, random)
    lower = np.minimum(ends[0], found.shares)
    upper = np.maximum(ends[1], found.shares)
    return replace(found, lower=lower, upper=upper)


def _hidden_in_turn(problem: Problem, fitted: FittedEstimator, p: Array, unit: float) -> Hidden:
    """Return probabilities at labels while these were hidden, and their classes."""
    own = getattr(last_step(fitted.estimator), "out_of_fold_", None)
    if own is not None:  # a blend has done so
        told = own["blend"].dropna()
        wide = fitted.spread(told.to_numpy(), fitted.codes(told.columns.to_numpy()), 0.0)
        rows = fitted.order[told.index]
        by_content = np.argsort(problem.places[rows])
        codes = problem.codes[np.searchsorted(problem.rows, rows)]
        return np.asarray(wide)[by_content], codes[by_content]
    folds = read_folds(5, problem, random_state=0, quiet=True)
    said = [np.empty((0, len(p)))]
    labels = [np.empty(0, dtype=int)]
    for (_, hidden), reply in zip(
        folds, ask_folds([fitted.estimator], problem, folds)[0], strict=True
    ):
        if isinstance(reply, Reply):
            said.append(class_probabilities(reply, p, unit)[reply.given])
            labels.append(hidden[reply.given])
    hidden = np.concatenate(labels)
    by_content = np.argsort(problem.places[problem.rows[hidden]])
    return np.vstack(said)[by_content], problem.codes[hidden[by_content]]


def estimate_shares(
    probabilities: Array, label_counts: Any, *, hidden: Hidden | None = None
) -> ClassShares:
    """Estimate the shares of the classes among unlabelled rows by maximum likelihood."""
    # The likelihood of shares q is prod_j sum_c P(c | x_j) q_c / p_c, P learned from labels with
    # the shares p (Saerens et al. 2002) and calibrated (Alexandari et al. 2020) at labels while
    # they were hidden. Probabilities learned from l labels tell no more of q than l rows would, so
    # m rows count as m l / (m + l).
    counts = np.asarray(label_counts, dtype=float)
    p, m = counts / counts.sum(), len(probabilities)
    power = 1.0 if hidden is None else fit_power(*hidden)
    shares = fit_shares(to_power(probabilities, power), p, PULL * p * (1.0 + m / counts.sum()))
    return ClassShares(np.arange(len(p)), p, shares, power=power)


def share_intervals(
    probabilities: Array, hidden: Hidden, confidence: float, random_state: Any = 0
) -> Array:
    """Return the ends of an interval for each share, from resamples, shape (2, n_classes)."""
    # Hidden labels of a class are like the unlabelled rows of it: the mean of the probabilities
    # over the latter is sum_c q_c M_c, M_c their mean over hidden labels of class c, whatever they
    # are worth. A resample weighs the hidden labels of each class at random, any one of all among
    # them, so that a class with few labels tells little. Resamples of the likelihood held the
    # shares in 0 to 96 % of trials at 90 %, these in 80 to 100.
    said, codes = hidden
    k = said.shape[1]
    random = check_random_state(random_state)
    own = codes == np.arange(k)[:, None]
    has_labels = own.any(axis=1)
    n_labels = np.maximum(own.sum(axis=1), 1)
    noise = np.zeros((k, k))
    if len(probabilities) > 1:
        noise = np.cov(probabilities, rowvar=False) / len(probabilities)
    means = random.multivariate_normal(
        probabilities.mean(axis=0), noise, N_RESAMPLES, check_valid="ignore"
    )
    draws = []
    for mean in means:
        weights = own * random.exponential(size=len(codes))
        other = np.where(has_labels, random.beta(1.0, n_labels), 1.0)[:, None]
        of_class = weights @ said / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        of_class = (1.0 - other) * of_class + other * said[random.randint(len(codes), size=k)]
        draws.append(mixture(mean, of_class))
    levels = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    return np.quantile(draws, levels, axis=0)


def mixture(mean: Array, of_class: Array) -> Array:
    """Return shares (k,) whose mixture of the rows of `of_class` (k, d) is nearest `mean`."""
    heavy = 1e3  # they sum to 1
    equations = np.vstack([of_class.T, np.full(len(of_class), heavy)])
    found = nnls(equations, np.append(mean, heavy))[0]
    return np.asarray(found / found.sum())


@dataclass(frozen=True, eq=False)
class SharesCompared:
    """Whether labelled and unlabelled rows look as if their classes had different shares.

    Parameters
    ----------
    p_value : float
        Probability of so large a difference if rows were labelled at random.
    classes : tuple of int
        Numbers of the classes that differ most; several where those with few labels were taken
        together.
    of_labels, share : float
        Their share among the labels, and its estimate among the unlabelled rows.
    lower, upper : float
        Ends of an interval for that share, at `CONFIDENCE`.
    """

    p_value: float
    classes: tuple[int, ...]
    of_labels: float
    share: float
    lower: float
    upper: float

    @property
    def apart(self) -> bool:
        """Whether the interval excludes the share that the labels have."""
        return not self.lower <= self.of_labels <= self.upper


def compare_shares(
    held: Array,
    unlabelled: Array,
    labels: AnyArray,
    held_labels: AnyArray,
    random_state: Any = 0,
    *,
    level: float = 1.0,
) -> SharesCompared | None:
    """Compare the shares of classes by the predictions of one fit at labels that it did not see.

    Parameters
    ----------
    held, unlabelled : array of shape (c, n_classes), (m, n_classes)
        Probabilities of the classes by one fit, at rows whose labels were held out at random, and
        at unlabelled rows.
    labels, held_labels : array of int of shape (l,), (c,)
        The class of every label, and of those that were held out.
    random_state : int or RandomState
        Seed of the permutations.
    level : float, default=1.0
        Largest p-value that is of interest.

    Returns
    -------
    SharesCompared or None
        None where all classes have too few labels to be told apart, or where the p-value exceeds
        the level.
    """
    # If rows were labelled at random, those held out and the unlabelled ones are exchangeable for a
    # fit that saw the label of neither, so that a permutation test of its predictions is exact.
    # Predictions out of fold come from several fits, each of fewer labels than the one behind the
    # predictions at unlabelled rows: with 40 classes such a test raised a false alarm at 1 % in 8 %
    # of the tables.
    random = check_random_state(random_state)
    groups = pool_classes(np.bincount(labels, minlength=held.shape[1]))
    if len(groups) < 2 or not len(held) or not len(unlabelled):
        return None
    rows = unlabelled
    if len(rows) > MOST_ROWS:
        rows = unlabelled[random.choice(len(unlabelled), MOST_ROWS, replace=False)]
    here, there = (np.column_stack([p[:, g].sum(axis=1) for g in groups]) for p in (held, rows))
    p_value, differences = permutation_test(here, there, random)
    if p_value > level:
        return None
    of_group = np.empty(held.shape[1], dtype=int)
    for number, group in enumerate(groups):
        of_group[group] = number
    codes = of_group[held_labels]
    k = int(np.argmax(differences))
    lower, upper = share_intervals(there, (here, codes), CONFIDENCE, random)[:, k]
    counts = np.bincount(codes, minlength=len(groups))
    share = float(lower + upper) / 2.0
    if counts.min() > 0:
        means = [here[codes == number].mean(axis=0) for number in range(len(groups))]
        mixed = mixture(there.mean(axis=0), np.array(means))
        share = float(np.clip(mixed[k], lower, upper))
    of_labels = float(np.mean(of_group[labels] == k))
    return SharesCompared(p_value, tuple(groups[k]), of_labels, share, float(lower), float(upper))


def pool_classes(counts: AnyArray) -> list[list[int]]:
    """Return groups of classes: each that has enough labels by itself, and all others together."""
    # Predictions of a class with two or three labels are nearly 0/0 when divided by its share.
    groups = [[int(k)] for k in np.flatnonzero(counts >= FEWEST_POOLED)]
    rare = [int(k) for k in np.flatnonzero(counts < FEWEST_POOLED)]
    if not rare:
        return groups
    if counts[rare].sum() >= FEWEST_POOLED or not groups:
        return [*groups, rare]
    smallest = min(groups, key=lambda group: int(counts[group].sum()))
    return [sorted([*group, *rare]) if group is smallest else group for group in groups]


def permutation_test(here: Array, there: Array, random: Any) -> tuple[float, Array]:
    """Return a p-value of "both come from one distribution", and the differences.

    The differences are those of the mean of each column.

    The statistic is the largest difference of means of a column, in units of its standard
    deviation. Shapes: here (c, k), there (m, k).
    """
    both = np.vstack([here, there])
    n = len(here)
    centred = both - both.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-9
    scaled = centred / np.where(varies, spread, 1.0) * varies
    mean_here = scaled[:n].mean(axis=0)
    mean_there = scaled[n:].mean(axis=0)
    differences = np.abs(mean_here - mean_there)
    # Rows are centred, so that the difference of means is a multiple of the sum over the first n.
    largest = float(np.abs(scaled[:n].sum(axis=0)).max())
    picks = np.zeros((N_PERMUTATIONS, len(both)), dtype=bool)
    for pick in picks:
        pick[random.permutation(len(both))[:n]] = True
    permuted = np.abs(picks.astype(float) @ scaled).max(axis=1)
    n_larger = int(np.sum(permuted >= largest - 1e-9 * max(largest, 1.0)))
    return (1.0 + n_larger) / (1.0 + N_PERMUTATIONS), differences


def fit_shares(probabilities: Array, p: Array, prior: Array) -> Array:
    """Return the shares with the largest likelihood.

    The `prior` (n_classes,) counts rows of known class.
    """
    # sum_j log sum_c q_c P_jc / p_c + sum_c prior_c log q_c is concave, and its second part keeps q
    # from the edge. A few steps of EM come near the maximum and Newton's reach it: EM alone takes
    # thousands where classes overlap.
    active = prior > 0.0
    own, ratio = (
        prior[active],
        np.divide(probabilities, p, out=np.zeros(probabilities.shape), where=p > 0.0),
    )
    ratio = ratio[ratio.sum(axis=1) > 0.0][:, active]
    total, q = len(ratio) + own.sum(), own / own.sum()
    for _ in range(N_FIRST):
        q = (q * (ratio.T @ (1.0 / (ratio @ q))) + own) / total
    for _ in range(100):
        mixed = ratio / (ratio @ q)[:, None]
        slope = mixed.sum(axis=0) + own / q  # at the maximum it is `total` everywhere
        curve = mixed.T @ mixed + np.diag(own / q**2)
        toward = np.linalg.solve(curve, np.column_stack([slope, np.ones(len(q))]))
        uphill = toward[:, 0]
        along_sum = toward[:, 1]
        step = uphill - along_sum * uphill.sum() / along_sum.sum()
        gain = float(slope @ step)
        if gain <= 1e-12 * total:
            break
        q = _uphill(ratio, own, q, step, gain)
    shares = np.zeros(len(p))
    shares[active] = q / q.sum()
    return shares


def _uphill(ratio: Array, own: Array, q: Array, step: Array, gain: float) -> Array:
    """Return the shares after a step, halved until the objective grows enough."""

    def objective(shares: Array) -> float:
        return float(np.sum(np.log(ratio @ shares)) + own @ np.log(shares))

    before = objective(q)
    for long in 0.5 ** np.arange(40.0):
        new = q + long * step
        if new.min() > 0.0 and objective(new) >= before + 1e-4 * long * gain - 1e-12 * abs(before):
            return new
    return q


def class_probabilities(reply: Reply, p: Array, unit: float) -> Array:
    """Return probabilities where labels have the shares p, made of scores if need be."""
    if reply.probabilities is not None:
        return reply.probabilities
    # Scores and answers alone are taken for odds at equal shares: they say nothing of how frequent
    # a class is.
    weighted = softmax(reply.class_scores(len(p)) / unit, axis=1) * p
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def score_unit(reply: Reply, n_classes: int) -> float:
    """Return by how much the best score of a row exceeds their mean; 1 if it never does."""
    scores = reply.class_scores(n_classes)
    if not len(scores):
        return 1.0
    leads = scores.max(axis=1) - scores.mean(axis=1)
    return float(np.mean(leads)) or 1.0
