"""Guarantees for each unlabelled row and for all of them together, around any transducer or scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transduce.conformal import guarantee as words
from transduce.conformal.calibrated import Table
from transduce.conformal.miscoverage import Miscoverage, confidence_for
from transduce.conformal.selection import Selection, pick, selection_p_values
from transduce.conformal.shell import Masked
from transduce.conformal.simultaneous import simultaneous_bounds
from transduce.conformal.wrapper import Wrapper
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.types import AnyArray


class ConformalTransducer(Wrapper):
    """Any estimator's answers, with a guarantee for each row and an exact one for the whole column.

    Some labels, drawn at random, are held out. The estimator is fitted once, with calibration and unlabelled rows
    shuffled together as its rows without label; how far off it is at the calibration rows says how far off it is at
    the unlabelled ones.

    Parameters
    ----------
    estimator : estimator
        A transducer of this package, or any regressor, classifier or pipeline of scikit-learn's kind. It is cloned.
    confidence : float, default=0.9
        Probability with which each region, or set of classes, holds the truth.
    calibration : "auto", int or float, default="auto"
        How many labels to hide: a number, or a share of the labels. ``"auto"`` hides about ``min(l / 2, 5 sqrt(l))`` of
        l, as many as the level takes at least, and none if there are too few labels to guarantee anything.
    nonconformity : {"auto", "absolute", "scaled", "probability", "margin", "zero_one"}, default="auto"
        How nonconforming a label is at a row. Numbers: distance from the answer, as it is or divided by the
        estimator's standard error. Classes: one less the class's probability, how far it falls behind the best other
        class, or whether it is not the answer. ``"auto"`` takes standard errors or probabilities where there are some.
    label_conditional : bool, default=False
        Whether the guarantee is to hold within every class, rare ones included.
    ties : {"inside", "random"}, default="inside"
        What happens to a score that equals the threshold. ``"inside"``: it counts as inside, which makes the
        guarantee a little more than is said if scores are often equal. ``"random"``: a random order decides, and the
        law of the column is exact in any case.
    transductive : "auto" or bool, default="auto"
        Whether the estimator is given the rows without label too. ``"auto"``: if it is a transducer.
    refit : bool, default=False
        Whether values come from a second fit, with all labels; regions, sets and guarantees stay those of the first.
        Now and then a value lies outside its region.
    test_exchangeability : bool, default=True
        Whether to test if unlabelled rows look like labelled ones; the verdict is part of the guarantee.
    random_state : int, RandomState or None, default=None
        Seed of which labels are held out, of the shuffle, and of the test.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed by the estimator's answers.
    answer_ : Answer
        Values, and regions or label sets with p-values, confidence and credibility, at the unlabelled rows.
    guarantee_ : Guarantee
        What is guaranteed, in sentences.
    miscoverage_ : Miscoverage or ClassMiscoverage
        Distribution of the number of unlabelled rows outside; with ``label_conditional=True`` bounds on it, because it
        depends on how many of the unlabelled rows are of which class.
    exchangeability_ : Exchangeability or None
        Whether the unlabelled rows look like the labelled ones; None if that was not tested.
    mean_ : pandas.DataFrame
        Mean of the unlabelled labels, or share of every class, with an interval at `confidence`. Asymptotic.
    estimator_ : estimator
        Fitted once, to the labels that were not held out.
    refitted_ : estimator
        Fitted to all labels, with ``refit=True``.
    calibration_rows_ : array of shape (c,)
        Positions of the rows whose label was held out, ascending.
    calibration_scores_ : array of shape (c,)
        How nonconforming each of their labels is; NaN where the estimator has no answer.
    nonconformity_ : str
        The measure that was used.
    classes_ : array of shape (n_classes,)
        Classification: the classes, sorted.
    n_features_in_ : int
        Number of features seen in `fit`, if the estimator says so.

    See Also
    --------
    RidgeConfidenceMachine : Exact regions with no calibration label, but with no law for the column.
    exchangeability_test : The test behind the verdict.

    Notes
    -----
    Let c labels be held out, m rows unlabelled, ``k = ceil((c + 1) confidence)`` and q the k-th smallest calibration
    score. If chance alone decided which rows have a label, every order of the c + m scores is equally likely. So each
    region
    ``{y : score(x, y) <= q}`` holds the truth with probability at least `confidence`, and the number of the m that do
    not is distributed as ``BetaBinomial(m, c + 1 - k, k)``: exactly if no two scores are equal, less otherwise.

    The values are those of the same fit, and calibration labels are not used for them; with few labels that costs
    accuracy, which ``refit=True`` gives back. The guarantee is one about regions and sets, and does not change;
    `select` and `mean_` go on using the first fit, whose answers at calibration and unlabelled rows are alike.

    With k > c every region is the whole line, or every class, and a warning says how many labels would do. Rows at
    which the estimator has no answer (NaN, or the status "unreached") get the whole line, or every class, and are left
    out of the law: c and m count the others.

    The exact guarantee is lost if the estimator was tuned on these labels outside of `fit`; tuning inside of it (a
    search as the estimator) sees visible labels only and is safe.

    References
    ----------
    Vovk, Gammerman, Shafer (2005). Algorithmic learning in a random world. Springer.
    Marques (2025). Universal distribution of the empirical coverage in split conformal prediction. Statistics and
    Probability Letters 219.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import ConformalTransducer, TransductiveRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(160, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=160)
    >>> y[60:] = np.nan
    >>> model = ConformalTransducer(TransductiveRidge(), random_state=0).fit(X, y)
    >>> len(model.calibration_rows_), model.outside_at_most(0.95)
    (29, 22)
    >>> print(model.guarantee_.guarantee)
    Each region holds its row's true label with probability at least 90 %. With 95 % certainty at most 22 of the 100
    true values are outside their regions; 10 are expected.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        confidence: float = 0.9,
        calibration: Any = "auto",
        nonconformity: str = "auto",
        label_conditional: bool = False,
        ties: str = "inside",
        transductive: Any = "auto",
        refit: bool = False,
        test_exchangeability: bool = True,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.confidence = confidence
        self.calibration = calibration
        self.nonconformity = nonconformity
        self.label_conditional = label_conditional
        self.ties = ties
        self.transductive = transductive
        self.refit = refit
        self.test_exchangeability = test_exchangeability
        self.random_state = random_state
        self.missing_label = missing_label

    # --------------------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any) -> Self:
        """Hide some labels, fit the estimator once, and answer at the rows whose label is missing.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, d)
            Features of all rows, in any form that the estimator takes.
        y : array-like of shape (n,)
            Labels, missing where the answer is wanted. With none missing no label is held out.

        Returns
        -------
        ConformalTransducer
            The fitted estimator.
        """
        self._forget()
        sample, classes, labels = self._read(X, y)
        random = check_random_state(self.random_state)
        labelled, unlabelled = np.flatnonzero(sample.labelled), sample.unlabelled
        seen = self._hide(len(labelled), len(unlabelled), random)
        self._check_visible(classes, labels[seen])
        hidden = labelled[~seen]
        shuffled = random.permutation(np.concatenate([hidden, unlabelled]))
        masked = Masked(
            self.estimator,
            X,
            labelled[seen],
            shuffled,
            labels[seen],
            classes,
            transductive=self._transductive(),
        )
        again = self._fit_again(X, masked, labels, classes, hidden, unlabelled)
        place = np.empty(len(sample.labelled), dtype=int)
        place[shuffled] = np.arange(len(shuffled))
        both = np.concatenate([hidden, unlabelled])
        table = Table.build(
            masked.predictions.at(place[both]),
            len(hidden),
            labels[~seen],
            class_sizes=() if classes is None else tuple(np.bincount(labels).tolist()),
            by_class=bool(self.label_conditional),
            wanted=self.nonconformity,
            ties=random.uniform(size=len(both)) if self.ties == "random" else np.zeros(len(both)),
            seen=np.isin(np.arange(0 if classes is None else len(classes)), labels[seen]),
        )
        self._masked, self._table, self._sample, self._classes = masked, table, sample, classes
        self._level, self._shown = float(self.confidence), labels[seen]
        self._again = again
        if again is not None:
            self.refitted_ = again.estimator
        self._describe(hidden)
        self._compare(X, sample, random)
        self._answer()
        return self

    def _describe(self, hidden: AnyArray) -> None:
        self.estimator_, self.calibration_rows_ = self._masked.estimator, hidden
        self.nonconformity_, self.calibration_scores_ = (
            self._table.nonconformity,
            self._table.calibration_scores,
        )
        if self._classes is not None:
            self.classes_ = self._classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self._masked.pairwise:
            self.n_features_in_ = len(self._sample.labelled)
        known = self._table.hidden.reached
        self._facts = words.Facts(
            classes=self._classes is not None,
            by_class=self._table.by_class,
            n_labelled=int(self._sample.labelled.sum()),
            n_calibration=len(hidden),
            n_unreached=int(np.sum(~self._table.unlabelled.reached)),
            tied=self.ties == "inside"
            and len(np.unique(self._table.calibration_scores[known])) < known.sum(),
            automatic=self.calibration == "auto",
            n_unseen=int(np.isinf(self._table.calibration_scores[known]).sum())
            if self._classes is not None
            else 0,
        )
        self.mean_ = self._table.mean(self._level, self._classes, self._shown)

    def _answer(self) -> None:
        self.miscoverage_ = self._table.law(self._level)
        self.answer_ = self._answer_at(self._level)
        self.guarantee_: Guarantee = self.answer_.guarantee
        values = self.answer_.values
        if self._classes is not None:  # where there is no answer, what stood for "no label" stays
            lost = self.answer_.status == "unreached"
            values = values.astype(object)
            values[lost] = self._sample.y[self._sample.unlabelled[lost]]
        self.transduction_ = self._sample.complete(values)

    def _answer_at(self, confidence: float) -> Answer:
        table, sample, law = self._table, self._sample, self._table.law(confidence)
        shortfall = words.shortfall(self._facts, law, confidence, self._classes)
        if shortfall and len(sample.unlabelled):
            warnings.warn(shortfall, stacklevel=4)
        found = table.unlabelled
        answer = Answer(
            rows=sample.unlabelled,
            values=found.values,
            status=found.status,
            guarantee=words.guarantee(self._facts, confidence, law, self.exchangeability_),
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={
                "n_calibration": len(self.calibration_rows_),
                "nonconformity": table.nonconformity,
                "transductive": len(self._masked.order) > len(self._masked.visible),
            },
        )
        if self._classes is None:
            answer = replace(answer, regions=table.regions(confidence), standard_errors=found.spreads)
            return self._settled(answer)
        p, sizes = table.p_values()
        ranked = np.sort(p, axis=1)
        answer = replace(
            answer,
            values=self._names(found.values),
            label_sets=table.sets(p, sizes, confidence),
            p_values=p,
            confidence=1.0 - ranked[:, -2],
            credibility=ranked[:, -1],
            probabilities=found.probabilities,
            classes=self._classes,
        )
        return self._settled(answer)

    # ------------------------------------------------------------------------------------------- guarantees

    def answer_at(self, confidence: float) -> Answer:
        """Return the answer at another level, from the same fit.

        Parameters
        ----------
        confidence : float
            Level. The guarantee holds for a level chosen without looking at the answers; for others see
            `outside_at_all_levels`.

        Returns
        -------
        Answer
        """
        check_is_fitted(self)
        return self._answer_at(checks.check_confidence(confidence))

    def outside_at_most(self, certainty: float = 0.95) -> int:
        """Return how many of the unlabelled rows are outside at most, with a certainty.

        Parameters
        ----------
        certainty : float, default=0.95

        Returns
        -------
        int
        """
        check_is_fitted(self)
        return self.miscoverage_.quantile(certainty)

    def confidence_for(self, share: float, certainty: float = 0.95) -> float:
        """Return the smallest level at which at least a share of the unlabelled rows is inside, with a certainty.

        Parameters
        ----------
        share : float
            Wanted share of rows inside.
        certainty : float, default=0.95

        Returns
        -------
        float
            For `answer_at`, or as `confidence` of another fit. A ValueError says how many calibration labels it would
            take if no level does.
        """
        law = self._whole_column("confidence_for")
        return confidence_for(
            share, certainty, n_unlabelled=law.n_unlabelled, n_calibration=law.n_calibration
        )

    def outside_at_all_levels(self, certainty: float = 0.95, *, random_state: Any = 0) -> pd.DataFrame:
        """Return bounds on the number of rows outside that hold at all levels at once.

        Parameters
        ----------
        certainty : float, default=0.95
        random_state : int, RandomState or None, default=0
            Seed of the simulated urn.

        Returns
        -------
        pandas.DataFrame
            One line for every calibration label: confidence, outside at most. With these the level may be chosen after
            looking at the regions.
        """
        law = self._whole_column("outside_at_all_levels")
        bounds = simultaneous_bounds(
            certainty,
            n_unlabelled=law.n_unlabelled,
            n_calibration=law.n_calibration,
            random_state=random_state,
        )
        levels = np.arange(1, law.n_calibration + 1) / (law.n_calibration + 1)
        return pd.DataFrame({"confidence": levels, "outside_at_most": bounds})

    def _whole_column(self, name: str) -> Miscoverage:
        check_is_fitted(self)
        if not isinstance(self.miscoverage_, Miscoverage):
            raise ValueError(f"{name} needs one threshold for all classes: fit with label_conditional=False.")
        return self.miscoverage_

    def select(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        label: Any = None,
        correct: bool = False,
        false_discovery: float = 0.1,
    ) -> Selection:
        """Pick unlabelled rows whose label is as wanted, with a bounded share of mistakes among those picked.

        Parameters
        ----------
        above, below : float, optional
            Numbers: the label is to be larger than, smaller than these; both, for a range.
        label : object, optional
            Classes: the class it is to be.
        correct : bool, default=False
            Classes: it is to be the answer, whichever that is; with ``refit=True`` that of the first fit, which
            `Selection.values` holds.
        false_discovery : float, default=0.1
            Bound on the expected share of mistakes among the rows picked.

        Returns
        -------
        Selection
            The rows, and the guarantee in words. None may be picked: then the calibration labels are too few for the
            bound, or the estimator not good enough.

        Notes
        -----
        See `transduce.conformal.selection.selection_p_values` for the theory. The smallest p-value is ``1 / (c +
        1)``, so at least ``m / (false_discovery (c + 1))`` rows are picked, or none.
        """
        check_is_fitted(self)
        wanted, what = self._wanted(above, below, label, correct)
        bound = checks.check_positive("false_discovery", false_discovery)
        if bound >= 1.0:
            raise ValueError(f"false_discovery must lie strictly between 0 and 1; got {false_discovery!r}.")
        unlabelled, hidden, good = self._table.looks(wanted)
        known, reached = self._table.hidden.reached, self._table.unlabelled.reached
        p = np.ones(len(reached))
        p[reached] = selection_p_values(unlabelled[reached], hidden[known], good[known])
        picked = np.zeros(len(p), dtype=bool)
        picked[reached] = pick(p[reached], bound)
        answer = self.answer_
        values = self._table.unlabelled.values  # the calibration rows judge the first fit, not a second one
        return Selection(
            rows=answer.rows[picked],
            values=values[picked] if self._classes is None else self._names(values)[picked],
            p_values=p,
            guarantee=words.selection_guarantee(bound, what, int(known.sum()), self.exchangeability_),
            index=None if answer.index is None else answer.index[picked],
        )
