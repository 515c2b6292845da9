"""Guarantees for each asked row and for all of them together, around any transducer or scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from transduce import _conformal_promise as words
from transduce._conformal_shell import Masked
from transduce._conformal_table import Table
from transduce._conformal_wrapper import Wrapper
from transduce._typing import AnyArray
from transduce.answer import Answer, Guarantee
from transduce.column import ColumnLaw, confidence_for
from transduce.methods import _shell
from transduce.selection import Selection, pick, selection_p_values
from transduce.urn import simultaneous_bounds


class ConformalTransducer(Wrapper):
    """Any estimator's answers, with a promise for each row and an exact one for the whole column.

    Some labels, drawn at random, are hidden. The estimator is fitted once, with hidden and asked rows shuffled together
    as its rows without label; how far off it is at the hidden rows says how far off it is at the asked ones.

    Parameters
    ----------
    estimator : estimator
        A transducer of this package, or any regressor, classifier or pipeline of scikit-learn's kind. It is cloned.
    confidence : float, default=0.9
        Probability with which each region, or set of classes, holds the truth.
    calibration : "auto", int or float, default="auto"
        How many labels to hide: a number, or a share of the labels. ``"auto"`` hides about ``min(l / 2, 5 sqrt(l))`` of
        l, as many as the level takes at least, and none if there are too few labels to promise anything.
    strangeness : {"auto", "absolute", "scaled", "probability", "margin", "zero_one"}, default="auto"
        How strange a label is at a row. Numbers: distance from the answer, as it is or divided by the
        estimator's standard error. Classes: one less the class's probability, how far it falls behind the best other
        class, or whether it is not the answer. ``"auto"`` takes standard errors or probabilities where there are some.
    label_conditional : bool, default=False
        Whether the promise is to hold within every class, rare ones included.
    ties : {"inside", "random"}, default="inside"
        What happens to a score that equals the threshold. ``"inside"``: it counts as inside, which makes the promise a
        little more than is said if scores are often equal. ``"random"``: a random order decides, and the law of the
        column is exact in any case.
    transductive : "auto" or bool, default="auto"
        Whether the estimator is given the rows without label too. ``"auto"``: if it is a transducer.
    refit : bool, default=False
        Whether values come from a second fit, with all labels; regions, sets and promises stay those of the first. Now
        and then a value lies outside its region.
    test_exchangeability : bool, default=True
        Whether to test if asked rows look like labelled ones; the verdict is part of the guarantee.
    random_state : int, RandomState or None, default=None
        Seed of which labels are hidden, of the shuffle, and of the test.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_ : array or series of shape (n,)
        The labels, completed by the estimator's answers.
    answer_ : Answer
        Values, and regions or label sets with p-values, confidence and credibility, at the asked rows.
    guarantee_ : Guarantee
        What is promised, in sentences.
    column_law_ : ColumnLaw or ClassColumnLaw
        Distribution of the number of asked rows outside; with ``label_conditional=True`` bounds on it, because it
        depends on how many of the asked rows are of which class.
    exchangeability_ : Exchangeability or None
        Whether the asked rows look like the labelled ones; None if that was not tested.
    mean_ : pandas.DataFrame
        Mean of the asked labels, or share of every class, with an interval at `confidence`. Asymptotic.
    estimator_ : estimator
        Fitted once, to the labels that were not hidden.
    refitted_ : estimator
        Fitted to all labels, with ``refit=True``.
    hidden_ : array of shape (c,)
        Positions of the rows whose label was hidden, ascending.
    calibration_scores_ : array of shape (c,)
        How strange each of their labels is; NaN where the estimator has no answer.
    strangeness_ : str
        The measure that was used.
    classes_ : array of shape (n_classes,)
        Classification: the classes, sorted.
    n_features_in_ : int
        Number of features seen in `fit`, if the estimator says so.

    See Also
    --------
    RidgeConfidenceMachine : Exact regions with no hidden label, but with no law for the column.
    exchangeability_test : The test behind the verdict.

    Notes
    -----
    Let c labels be hidden, m rows asked, ``k = ceil((c + 1) confidence)`` and q the k-th smallest hidden score. If
    chance alone decided which rows have a label, every order of the c + m scores is equally likely. So each region
    ``{y : score(x, y) <= q}`` holds the truth with probability at least `confidence`, and the number of the m that do
    not is distributed as ``BetaBinomial(m, c + 1 - k, k)``: exactly if no two scores are equal, less otherwise.

    The values are those of the same fit, and hidden labels are not used for them; with few labels that costs accuracy,
    which ``refit=True`` gives back. The promise is one about regions and sets, and does not change; `select` and
    `mean_` go on using the first fit, whose answers at hidden and asked rows are alike.

    With k > c every region is the whole line, or every class, and a warning says how many labels would do. Rows at
    which the estimator has no answer (NaN, or the status "unreached") get the whole line, or every class, and are left
    out of the law: c and m count the others.

    The exact promise is lost if the estimator was tuned on these labels outside of `fit`; tuning inside of it (a search
    as the estimator) sees visible labels only and is safe.

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
    >>> len(model.hidden_), model.outside_at_most(0.95)
    (29, 22)
    >>> print(model.guarantee_.promise)
    Each region holds its row's true label with probability at least 90 %. With 95 % certainty at most 22 of the 100
    true values are outside their regions; 10 are expected.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        confidence: float = 0.9,
        calibration: Any = "auto",
        strangeness: str = "auto",
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
        self.strangeness = strangeness
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
            Labels, missing where the answer is wanted. With none missing no label is hidden.

        Returns
        -------
        ConformalTransducer
            The fitted estimator.
        """
        self._forget()
        sample, classes, labels = self._read(X, y)
        random = check_random_state(self.random_state)
        labelled, asked = np.flatnonzero(sample.labelled), sample.asked
        seen = self._hide(len(labelled), len(asked), random)
        self._check_visible(classes, labels[seen])
        hidden = labelled[~seen]
        unlabelled = random.permutation(np.concatenate([hidden, asked]))
        masked = Masked(
            self.estimator,
            X,
            labelled[seen],
            unlabelled,
            labels[seen],
            classes,
            transductive=self._transductive(),
        )
        again = self._fit_again(X, masked, labels, classes, hidden, asked)
        place = np.empty(len(sample.labelled), dtype=int)
        place[unlabelled] = np.arange(len(unlabelled))
        both = np.concatenate([hidden, asked])
        table = Table.build(
            masked.predictions.at(place[both]),
            len(hidden),
            labels[~seen],
            class_sizes=() if classes is None else tuple(np.bincount(labels).tolist()),
            by_class=bool(self.label_conditional),
            wanted=self.strangeness,
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
        self.estimator_, self.hidden_ = self._masked.estimator, hidden
        self.strangeness_, self.calibration_scores_ = self._table.strangeness, self._table.hidden_scores
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
            n_hidden=len(hidden),
            n_unreached=int(np.sum(~self._table.asked.reached)),
            tied=self.ties == "inside" and len(np.unique(self._table.hidden_scores[known])) < known.sum(),
            automatic=self.calibration == "auto",
            n_unseen=int(np.isinf(self._table.hidden_scores[known]).sum())
            if self._classes is not None
            else 0,
        )
        self.mean_ = self._table.mean(self._level, self._classes, self._shown)

    def _answer(self) -> None:
        self.column_law_ = self._table.law(self._level)
        self.answer_ = self._answer_at(self._level)
        self.guarantee_: Guarantee = self.answer_.guarantee
        values = self.answer_.values
        if self._classes is not None:  # where there is no answer, what stood for "no label" stays
            lost = self.answer_.status == "unreached"
            values = values.astype(object)
            values[lost] = self._sample.y[self._sample.asked[lost]]
        self.transduction_ = self._sample.complete(values)

    def _answer_at(self, confidence: float) -> Answer:
        table, sample, law = self._table, self._sample, self._table.law(confidence)
        shortfall = words.shortfall(self._facts, law, confidence, self._classes)
        if shortfall and len(sample.asked):
            warnings.warn(shortfall, stacklevel=4)
        found = table.asked
        answer = Answer(
            rows=sample.asked,
            values=found.values,
            status=found.status,
            guarantee=words.promise(self._facts, confidence, law, self.exchangeability_),
            index=None if sample.index is None else sample.index[sample.asked],
            diagnostics={
                "n_hidden": len(self.hidden_),
                "strangeness": table.strangeness,
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
            Level. The promise holds for a level chosen without looking at the answers; for others see
            `outside_at_all_levels`.

        Returns
        -------
        Answer
        """
        _shell.check_is_fitted(self)
        return self._answer_at(_shell.check_confidence(confidence))

    def outside_at_most(self, certainty: float = 0.95) -> int:
        """Return how many of the asked rows are outside at most, with a certainty.

        Parameters
        ----------
        certainty : float, default=0.95

        Returns
        -------
        int
        """
        _shell.check_is_fitted(self)
        return self.column_law_.quantile(certainty)

    def confidence_for(self, share: float, certainty: float = 0.95) -> float:
        """Return the smallest level at which at least a share of the asked rows is inside, with a certainty.

        Parameters
        ----------
        share : float
            Wanted share of rows inside.
        certainty : float, default=0.95

        Returns
        -------
        float
            For `answer_at`, or as `confidence` of another fit. A ValueError says how many hidden labels it would take
            if no level does.
        """
        law = self._whole_column("confidence_for")
        return confidence_for(share, certainty, n_asked=law.n_asked, n_hidden=law.n_hidden)

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
            One line for every hidden label: confidence, outside at most. With these the level may be chosen after
            looking at the regions.
        """
        law = self._whole_column("outside_at_all_levels")
        bounds = simultaneous_bounds(
            certainty, n_asked=law.n_asked, n_hidden=law.n_hidden, random_state=random_state
        )
        levels = np.arange(1, law.n_hidden + 1) / (law.n_hidden + 1)
        return pd.DataFrame({"confidence": levels, "outside_at_most": bounds})

    def _whole_column(self, name: str) -> ColumnLaw:
        _shell.check_is_fitted(self)
        if not isinstance(self.column_law_, ColumnLaw):
            raise ValueError(f"{name} needs one threshold for all classes: fit with label_conditional=False.")
        return self.column_law_

    def select(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        label: Any = None,
        correct: bool = False,
        false_discovery: float = 0.1,
    ) -> Selection:
        """Pick asked rows whose label is as wanted, with a bounded share of mistakes among those picked.

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
            The rows, and the guarantee in words. None may be picked: then the hidden labels are too few for the bound,
            or the estimator not good enough.

        Notes
        -----
        See `transduce.selection.selection_p_values` for the theory. The smallest p-value is ``1 / (c + 1)``, so at
        least ``m / (false_discovery (c + 1))`` rows are picked, or none.
        """
        _shell.check_is_fitted(self)
        wanted, what = self._wanted(above, below, label, correct)
        bound = _shell.check_positive("false_discovery", false_discovery)
        if bound >= 1.0:
            raise ValueError(f"false_discovery must lie strictly between 0 and 1; got {false_discovery!r}.")
        asked, hidden, good = self._table.looks(wanted)
        known, reached = self._table.hidden.reached, self._table.asked.reached
        p = np.ones(len(reached))
        p[reached] = selection_p_values(asked[reached], hidden[known], good[known])
        picked = np.zeros(len(p), dtype=bool)
        picked[reached] = pick(p[reached], bound)
        answer = self.answer_
        values = self._table.asked.values  # the hidden rows judge the first fit, not a second one
        return Selection(
            rows=answer.rows[picked],
            values=values[picked] if self._classes is None else self._names(values)[picked],
            p_values=p,
            guarantee=words.selection_promise(bound, what, int(known.sum()), self.exchangeability_),
            index=None if answer.index is None else answer.index[picked],
        )
