"""The ridge regression confidence machine (Nouretdinov, Melluish and Vovk 2001), for numbers and for classes.

For each conceivable label of an unlabelled row: complete the sample with it, refit ridge regression, look how
nonconforming the row's residual is among all, keep the labels that are not too nonconforming. The regions cover with
the stated probability for any distribution, with no hold-out. Nothing is refitted: the numbers come from
`transduce.methods.confidence_machine.machine` or, if settings are to be chosen, from
`transduce.methods.confidence_machine.tuned_machine`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer
from transduce.core.estimator import ClassTransducer, NumberTransducer
from transduce.core.guarantee import CHANCE, Guarantee
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.regions import Regions
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.confidence_machine.fitted_machine import (
    FittedMachine,
    MachineEstimator,
    answer_numbers,
    fit_machine,
    judge_classes,
    judge_labels,
    read_settings,
    tie_weights,
    warn_level,
)
from transduce.methods.confidence_machine.tuned_machine import (
    RowAnswers,
    RowEnvelope,
    TunedMachine,
    row_envelope,
)


class RidgeConfidenceMachine(MachineEstimator, NumberTransducer):
    """Prediction regions for ridge regression that cover with the stated probability, exactly.

    The ridge regression confidence machine: full conformal prediction around (kernel) ridge regression.
    A region holds every label that would not make its row's residual nonconforming among the residuals of
    the completed sample. Rows need only be exchangeable; no label is spent on calibration.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a symmetric function of two rows
        (arrays of shape (d,), standardised if the features are) that returns a number.
    width : float or "median", default="median"
        Length scale of the kernel (see `transduce.device.kernels.Kernel`); the median distance between rows.
    ridge : float, default=1.0
        Added to the diagonal of the kernel matrix.
    degree, coef0 : float, default=3 and 1.0
        Of the polynomial kernel ``(<u, v> + coef0) ** degree``.
    fit_intercept : bool, default=True
        Whether to add an unpenalised constant.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`.
    residual : {"auto", "plain", "deleted", "studentized"}, default="auto"
        What is compared: residuals, leave-one-out residuals, or what lies halfway between them. ``"auto"`` is
        ``"plain"`` with one setting and ``"studentized"`` where settings are chosen.
    settings : None, "leave-one-out" or list of Setting, default=None
        What to choose kernel, width and ridge from, in place of the estimator's own: a menu of twenty that suits most
        tables (with a precomputed kernel: four ridges), or a list. At every candidate label of a row, that setting is
        used which has the smallest leave-one-out error on the sample completed with it. This keeps the guarantee.
    confidence : float, default=0.9
        Probability with which a region covers, unless a call says otherwise.
    max_memory_mb : float, default=512
        Unlabelled rows are answered in chunks whose working arrays fit into this; the ``l x l`` matrices of the fit do
        not count.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed by the ridge prediction at the unlabelled rows.
    answer_ : Answer
        Values and regions at the unlabelled rows.
    guarantee_ : Guarantee
        What is guaranteed, whether exactly, and why.
    width_ : float or None
        The kernel's width; None if it has none, or if settings were chosen.
    settings_ : tuple of Setting or None
        What was chosen from, with the widths that the features set. ``answer_.diagnostics`` says how often each was
        chosen (``"n_chosen"``, at the values) and has a part in a region (``"n_in_region"``).
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    RidgeConfidenceClassifier : The same for classes.

    Notes
    -----
    The guarantee is for each row by itself. The number of unlabelled rows outside their regions is not binomial,
    because all regions share the labelled rows: only its mean is guaranteed.

    With ``standardize=True`` or ``width="median"`` the features of all rows given to `fit` set scale and width,
    so unlabelled rows keep an exact guarantee; rows given only to ``predict_*`` had no part in that, and theirs is
    approximate (but hardly different, unless they are few and far from the others). Settings chosen by looking at
    the same labels (a grid search, say) void the exactness, and no code can notice.

    With `settings` the choice is part of what is refitted for each candidate label, that row and its label included.
    It treats all rows alike, so p-values stay exact and no label is set aside for tuning. The leave-one-out error of
    each setting is a parabola in the candidate label; on each piece of their lower envelope one setting is chosen and
    its region counts. Where errors tie, all settings that tie count. The value is the prediction of the setting that
    reaches the smallest error of all; if another setting is chosen at that label, the nearest label at which this one
    is. The region always holds the value.

    Fitting costs ``l d^2`` operations for a linear kernel with ``d < l``, else ``l^3 / 3``; an unlabelled row costs
    about ``d^2`` or ``2 l^2`` more. With `settings`, about ``10 l^3`` for each kernel, and ``2 l^2`` a row for each
    setting.

    References
    ----------
    Nouretdinov, Melluish, Vovk (2001). Ridge regression confidence machine. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import RidgeConfidenceMachine
    >>> X = np.arange(20.0)[:, None]
    >>> y = 2 * X[:, 0] + np.tile([0.0, 1.0], 10)
    >>> y[[5, 12]] = np.nan
    >>> machine = RidgeConfidenceMachine(kernel="linear", ridge=1e-3, confidence=0.8).fit(X, y)
    >>> machine.answer_.regions
    Regions of 2 rows:
      0: [9.771, 11.06]
      1: [23.93, 25.17]
    >>> machine.transduction_[[5, 12]].round(2)
    array([10.44, 24.53])

    Kernel and ridge chosen anew for every candidate label, with the same guarantee:

    >>> from transduce.methods.confidence_machine import Setting
    >>> choices = [Setting("linear", ridge=1e-3), Setting("rbf", ridge=0.1)]
    >>> tuned = RidgeConfidenceMachine(settings=choices, confidence=0.8).fit(X, y)
    >>> tuned.answer_.regions
    Regions of 2 rows:
      0: [9.737, 11.06]
      1: [23.9, 25.21]
    >>> tuned.answer_.diagnostics["n_chosen"]
    [2, 0]
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows, or the kernel matrix of all rows if ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted. With none missing, there is nothing to answer
            and the machine is ready for ``predict_*``.

        Returns
        -------
        RidgeConfidenceMachine
            The fitted estimator.
        """
        sample = validation.read_sample(self, X, y, device=True)
        settings = read_settings(vars(self))
        self._fitted, unlabelled = fit_machine(sample, validation.numeric_labels(sample), settings)
        answers = answer_numbers(self._fitted.machine, unlabelled, self.confidence)
        self.width_, self.settings_ = self._fitted.width, self._fitted.settings
        self.guarantee_ = self._fitted.guarantee(
            sample,
            Guarantee("exact", about="region", confidence=float(self.confidence), assumptions=(CHANCE,)),
        )
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=answers.values,
            status=np.full(unlabelled.shape[0], "answered"),
            guarantee=self.guarantee_,
            regions=answers.regions,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics=diagnose(self._fitted, answers),
        )
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def predict(self, X: Any) -> Array:
        """Return the ridge prediction at rows, without transducing again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not. With a precomputed kernel: kernel values with all n rows of `fit`
            and, as column n + 1, with themselves. This method needs no such column, unless settings are chosen; the
            others do, unless the kernel's diagonal was constant in `fit`.

        Returns
        -------
        array of shape (m,)
            At an unlabelled row this equals ``transduction_`` up to rounding; at a labelled row it is the fit, not the
            label.
        """
        rows = self._new_rows(X, own_value=False)  # says so, if there was no fit
        return self._fitted.machine.predict(rows)

    def predict_region(self, X: Any, *, confidence: float | None = None, side: str = "two") -> Regions:
        """Return the regions of rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`. Those not seen in `fit` have an approximate guarantee if anything was
            estimated from the features.
        confidence : float, optional
            Level; that of the estimator by default.
        side : {"two", "lower", "upper"}, default="two"
            ``"lower"`` gives lower bounds ``[a, ∞)``, ``"upper"`` upper bounds ``(-∞, b]``, from signed residuals.

        Returns
        -------
        Regions of m rows
        """
        rows = self._new_rows(X)
        checks.check_choice("side", side, ("two", "lower", "upper"))
        level = self._level(confidence)
        return answer_numbers(self._fitted.machine, rows, level, side, values=False).regions

    def predict_interval(self, X: Any, *, confidence: float | None = None) -> Array:
        """Return the convex hull of what `predict_region` returns: ends (m, 2), infinite where there is a ray."""
        return self.predict_region(X, confidence=confidence).hull()

    def p_values(self, X: Any, y: Any, *, smooth: bool = False, random_state: Any = None) -> Array:
        """Return the p-values of candidate labels: the share of residuals at least as large as the row's own.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict_region`.
        y : array-like of shape (m,)
            One candidate label for each row.
        smooth : bool, default=False
            Whether ties, the row itself included, count with a random weight between 0 and 1 (the same
            for all ties of a row), which makes p-values of true labels exactly uniform.
        random_state : int, RandomState or None
            Seed of that weight.

        Returns
        -------
        array of shape (m,)
            Between ``1 / (l + 1)`` and 1, or, smoothed, between 0 and 1.
        """
        rows = self._new_rows(X)
        tau = tie_weights(rows.shape[0], smooth, random_state)
        return judge_labels(self._fitted.machine, rows, validation.read_candidates(y, len(tau)), tau)

    def envelope(self, X: Any, *, confidence: float | None = None) -> RowEnvelope:
        """Return the leave-one-out error of every setting as one row's label varies, what is chosen, and the region.

        Parameters
        ----------
        X : array-like of shape (1, d)
            One row, as in `predict_region`.
        confidence : float, optional
            Level; that of the estimator by default.

        Returns
        -------
        RowEnvelope
            To be plotted by `transduce.display.EnvelopeDisplay.from_envelope`.
        """
        rows = self._new_rows(X)
        machine = self._fitted.machine
        if not isinstance(machine, TunedMachine):
            raise ValueError(
                "One setting has no envelope: pass settings='leave-one-out' or a list of Setting."
            )
        if len(rows) != 1:
            raise ValueError(f"Give one row, with shape (1, d); got {len(rows)} rows.")
        rank = nonconformity_rank(self._level(confidence), machine.n_labelled)
        return row_envelope(machine, rows, rank=rank)


def diagnose(fitted: FittedMachine, answers: RowAnswers) -> dict[str, Any]:
    """Return what the labels support, how many regions are no intervals or have no end, and what was chosen."""
    n_labelled, regions = fitted.machine.n_labelled, answers.regions
    bounded = np.isfinite(arrays.to_numpy(regions.pieces)).all()
    told = {
        "form": fitted.machine.form,
        "largest_confidence": n_labelled / (n_labelled + 1),
        "n_unions": int(np.count_nonzero(regions.n_pieces > 1)),
        "n_unbounded": 0 if bounded else int(np.sum(~np.isfinite(arrays.to_numpy(regions.measure())))),
    }
    if fitted.menu is None or answers.winners is None or answers.used is None:
        return told
    return told | fitted.menu.tell(answers.winners, n_in_region=answers.used.sum(axis=0).tolist())


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
        Values, label sets, p-values, confidence and credibility at the unlabelled rows. Its ``diagnostics`` say how
        often each setting was chosen: for the answered classes (``"n_chosen"``), and for all candidates
        (``"n_chosen_candidates"``).
    guarantee_, width_, settings_, n_features_in_
        As in `RidgeConfidenceMachine`.

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
        smooth, random_state
            As in `RidgeConfidenceMachine.p_values`; the weight is the same for all classes of a row.

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
