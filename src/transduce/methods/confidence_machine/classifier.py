"""The confidence machine for classes: exact p-values for every label of every unlabelled row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from transduce.core import arrays, validation
from transduce.core.answer import Answer
from transduce.core.estimator import ClassTransducer
from transduce.core.guarantee import CHANCE, Guarantee
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.confidence_machine.fitted_machine import (
    MachineEstimator,
    fit_machine,
    judge_classes,
    read_settings,
    tie_weights,
    warn_level,
)


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeConfidenceClassifier(MachineEstimator, ClassTransducer):
    """Sets of classes that hold the true one with the stated probability, exactly.

    The confidence machine on one-vs-rest ridge regression with targets -1 and +1. Each row is as nonconforming as
    its residual in the column of its own class; with two classes this is ridge regression on -1 and +1.

    Parameters
    ----------
    kernel, width, ridge, degree, coef0, fit_intercept, standardize, residual, confidence, max_memory_mb, missing_label
        As in `RidgeConfidenceMachine`.
    settings : None, "leave-one-out" or list of Setting, default=None
        As in `RidgeConfidenceMachine`; chosen for every candidate class of a row, by the leave-one-out error over the
        columns of all classes.
    label_conditional : bool, default=False
        Whether a row is compared with labelled rows of the candidate class only. The guarantee then holds
        within each class that has a label, rare ones included, and needs enough labels in each.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    p_unseen_ : float
        p-value of a class that no label shows, the same at every row. Where it exceeds ``1 - confidence``, no set rules
        such a class out, and ``answer_.unseen`` says so.
    transduction_ : array or series of shape (n,)
        The labels, completed by the most credible class at the unlabelled rows.
    answer_ : Answer
        Values, label sets, p-values, confidence and credibility at the unlabelled rows.
    guarantee_ : Guarantee
        What is guaranteed, whether exactly, and why.
    width_ : float or None
        The kernel's width; None if it has none, or if settings were chosen.
    settings_ : tuple of Setting or None
        What was chosen from, with the widths that the features set. ``answer_.diagnostics`` says how often each was
        chosen: for the answered classes (``"n_chosen"``), and for all candidates (``"n_chosen_candidates"``).
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    RidgeConfidenceMachine : The same for numbers.

    Notes
    -----
    *Confidence* of a prediction is one less the second largest p-value: no level below it lets a second class
    into the set. *Credibility* is the largest p-value: low means that the row is unlike all classes, and at
    levels below one less the credibility its set is empty. The true class is outside no more often than guaranteed.

    A row that is the only one of its class in the completed sample counts as infinitely nonconforming. So a class
    without a label has a p-value too, ``(1 + classes with one label) / (l + 1)``, the estimate of Good and Turing, and
    nothing need be assumed about the classes.

    The answer is the class with the largest p-value among all labelled rows, also with
    ``label_conditional=True``: there the p-values themselves cannot be compared, since that of a class with l_c
    labels is at least 1 / (l_c + 1). Ties go to the larger ridge prediction.

    The guarantee is about unlabelled rows given to `fit`; for rows given to ``predict_*`` see the notes of
    `RidgeConfidenceMachine`. An unlabelled row costs ``l * n_classes`` operations beyond the regression's.

    References
    ----------
    Nouretdinov, Melluish, Vovk (2001). Ridge regression confidence machine. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import RidgeConfidenceClassifier
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3], [0.15], [0.6]])
    >>> y = ["low", "low", "low", "low", "high", "high", "high", "high", None, None]
    >>> machine = RidgeConfidenceClassifier(ridge=0.1, confidence=0.8).fit(X, y)
    >>> machine.transduction_[-2:]
    array(['low', 'low'], dtype=object)
    >>> machine.answer_.to_frame()[["value", "set", "credibility"]]
      value     set  credibility
    8   low (low,)     1.000000
    9   low     ()     0.111111

    The second row lies between the classes: its set is empty, since neither label would be usual there.
    """

    label_conditional: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows, or the kernel matrix of all rows if ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Class labels of any type, missing where the answer is wanted.

        Returns
        -------
        RidgeConfidenceClassifier
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y, device=True)
        settings = read_settings(vars(self))
        classes, codes = validation.class_labels(sample)
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        self._fitted, unlabelled = fit_machine(sample, targets, settings)
        self.classes_, self._codes, self._conditional = classes, codes, bool(self.label_conditional)
        n_labelled, alone = len(codes), int(np.sum(np.bincount(codes) == 1))
        self.p_unseen_ = float(p_values(0, alone, n_labelled))
        p, best, status, told = self._judge(unlabelled, np.ones(unlabelled.shape[0]))
        xp, none = arrays.namespace(p), arrays.zeros((p.shape[0],), p)
        within = "class" if self._conditional else ""
        level, rank = float(self.confidence), nonconformity_rank(self.confidence, n_labelled)
        exact = Guarantee("exact", "set", level, within, assumptions=(CHANCE,), any_class=0 < rank <= alone)
        self.guarantee_ = self._fitted.guarantee(sample, exact)
        self.width_, self.settings_ = self._fitted.width, self._fitted.settings
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=classes[best],
            status=status,
            guarantee=self.guarantee_,
            label_sets=self._sets(p, self.confidence),
            p_values=p,
            unseen=none + (1.0 + alone - rank) > 0.5,
            p_unseen=none + self.p_unseen_,
            confidence=1.0 - xp.clip(xp.sort(p, axis=1)[:, -2], self.p_unseen_, None),
            credibility=xp.max(p, axis=1),
            classes=classes,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={"form": self._fitted.machine.form, **told},
        )
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def _judge(self, rows: Array, tau: Array) -> tuple[Array, AnyArray, AnyArray, dict[str, object]]:
        """Return p-values, best class and status of rows, and what was chosen; ties weigh `tau` (m,)."""
        menu, said = self._fitted.menu, judge_classes(self._fitted.machine, rows, self._codes, tau)
        best, status = _best_class(said.overall, said.scores)
        told = {}
        if menu is not None and said.chosen is not None:
            answered = said.chosen[np.arange(len(best)), best]
            told = menu.tell(answered, n_chosen_candidates=menu.count(said.chosen))
        return said.within if self._conditional else said.overall, best, status, told

    def _sets(self, p: Array, confidence: float) -> Mask:
        """Return which classes are possible, with a warning if the labels are too few for the level."""
        # With how many labelled rows a row is compared, for each class or for all.
        sizes = np.bincount(self._codes) if self._conditional else np.array([len(self._codes)])
        ranks = np.array([nonconformity_rank(confidence, n) for n in sizes])
        if np.any(ranks == 0) and p.shape[0]:
            rarest, which, consequence = int(np.argmin(sizes)), "", "every set is all classes"
            if self._conditional:
                which = f" of class {self.classes_[rarest].item()!r}"
                consequence = "that class is in every set"
            warn_level(confidence, int(sizes[rarest]), consequence, which)
        # p > 1 - confidence, in whole numbers: p (n + 1) > rank.
        return p * arrays.beside(sizes + 1.0, p) > arrays.beside(ranks + 0.5, p)

    def predict(self, X: Any) -> AnyArray:
        """Return the most credible class at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not. With a precomputed kernel: kernel values with all n rows of `fit`
            and, as column n + 1, with themselves; that column may be left out if the kernel's diagonal
            was constant in `fit`.

        Returns
        -------
        array of shape (m,)
            At an unlabelled row this equals ``transduction_``; at a labelled row it may differ from the label. With a
            precomputed kernel and no values of rows with themselves: the class of the largest ridge prediction.
        """
        rows = self._new_rows(X, own_value=False)
        if np.isnan(arrays.to_numpy(rows[:, -1])).any():  # own kernel values that are not known
            return self.classes_[np.argmax(arrays.to_numpy(self._fitted.machine.predict(rows)), axis=1)]
        return self.classes_[self._judge(rows, np.ones(rows.shape[0]))[1]]

    def p_values(self, X: Any, *, smooth: bool = False, random_state: Any = None) -> Array:
        """Return the p-value of every class at rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.
        smooth : bool, default=False
            Whether ties, the row itself included, count with a random weight between 0 and 1, the
            same for all classes of a row.
        random_state : int, RandomState or None
            Seed of that weight.

        Returns
        -------
        array of shape (m, n_classes)
        """
        rows = self._new_rows(X)
        return self._judge(rows, tie_weights(rows.shape[0], smooth, random_state))[0]

    def predict_set(self, X: Any, *, confidence: float | None = None) -> Mask:
        """Return which classes are possible at rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.
        confidence : float, optional
            Level; that of the estimator by default.

        Returns
        -------
        boolean array of shape (m, n_classes)
            Columns as in ``classes_``. All True in a column whose labels are too few for the level. A class that no
            label shows is possible besides if ``p_unseen_`` exceeds ``1 - confidence``.
        """
        rows, level = self._new_rows(X), self._level(confidence)
        return self._sets(self._judge(rows, np.ones(rows.shape[0]))[0], level)


def _best_class(p: Array, scores: Array) -> tuple[AnyArray, AnyArray]:
    """Return the class of largest p-value, the larger prediction breaking ties, and the status of each row."""
    p, scores = arrays.to_numpy(p), arrays.to_numpy(scores)  # the names of the classes are on the host
    top = p == p.max(axis=1, keepdims=True, initial=0.0)
    contest = np.where(top, scores, -np.inf)
    # Predictions for targets -1 and +1 that differ by rounding only are equal.
    winners = contest >= contest.max(axis=1, keepdims=True, initial=-np.inf) - 1e-9
    status = np.where(winners.sum(axis=1) > 1, "tied", "answered")
    return np.argmax(winners, axis=1), status
