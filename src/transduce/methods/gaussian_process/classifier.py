"""The moment-matched Gaussian process for classes, after the outlook of Le and others (2006)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from scipy.special import log_ndtr
from sklearn.utils.validation import check_is_fitted

from transduce.core import validation
from transduce.core.answer import Answer
from transduce.core.checks import check_random_state
from transduce.core.computing import few_threads
from transduce.core.guarantee import Guarantee
from transduce.core.ranks import rank_folds
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows
from transduce.core.validation import ClassTransducer
from transduce.methods.gaussian_process.covariances import KernelFeatures
from transduce.methods.gaussian_process.descents import Descent, Search
from transduce.methods.gaussian_process.features import arrange_rows, read_features
from transduce.methods.gaussian_process.laplace import (
    ClassObjective,
    ClassPosterior,
    find_marginals,
    match_share,
)
from transduce.methods.gaussian_process.matching import (
    N_FOLDS,
    MatchingChoice,
    MatchingSettings,
    choose_without_labels,
    cross_validate_matching,
    descend_over_grid,
)
from transduce.methods.gaussian_process.parameters import (
    FoundParameters,
    find_parameters,
    set_choice,
    warn_of_parameters,
)
from transduce.methods.gaussian_process.settings import (
    ProcessEstimator,
    announce_cost,
    read_prior,
    read_settings,
)

REASONS = (
    "Probabilities are the model's own: right if the classes follow a Gaussian process with this "
    "kernel and noise.",
    "For sets of classes with a guarantee, use ConformalTransducer or RidgeConfidenceClassifier.",
)
EQUAL_PROBABILITIES = 1e-9  # two classes whose probabilities differ by less are tied


def class_signs(codes: AnyArray, n_classes: int) -> Array:
    """Return +1 in a row's class and -1 elsewhere: (l, 1) for two classes, else (l, n_classes)."""
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def class_codes(signs: Array) -> AnyArray:
    """Return the number of each row's class (l,), from its signs (l, 1) or (l, n_classes)."""
    if signs.shape[1] == 1:
        return (signs[:, 0] > 0.0).astype(int)
    return signs.argmax(axis=1)


def log_probabilities(scores: Array) -> Array:
    """Return the logarithm of every class' probability (m, n_classes), from `z` (m, c).

    Of several classes, each against the others, the probabilities are divided by their sum.
    """
    if scores.shape[1] == 1:
        return np.column_stack([log_ndtr(-scores), log_ndtr(scores)])
    logs = log_ndtr(scores)
    logs -= logs.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def choose_matching(
    objective: ClassObjective, settings: MatchingSettings, search: Search, start: Array
) -> MatchingChoice:
    """Choose how hard to match; `start` is the lowest point of the objective without matching."""
    n_labelled = len(objective.y_l)
    n_unlabelled = objective.X.shape[0] - n_labelled
    choice = choose_without_labels(settings, n_labelled, n_unlabelled)
    if choice is not None:
        return choice
    codes = class_codes(objective.y_l).astype(float)
    fold = rank_folds(codes, objective.X[:n_labelled], min(N_FOLDS, n_labelled))
    return cross_validate_matching(objective, settings, search, start, fold, fold_errors)


def fold_errors(
    whole: ClassObjective, hidden: Mask, search: Search, start: Array, grid: Array
) -> Array:
    """Return the log-loss at hidden labels for every (matching, slack) of `grid` (g,)."""
    n_labelled = len(whole.y_l)
    X_l = whole.X[:n_labelled]
    X_hidden = X_l[hidden]
    rows = np.concatenate([X_l[~hidden], X_hidden, whole.X[n_labelled:]])
    fold = replace(whole, X=rows, y_l=whole.y_l[~hidden])
    truth = class_codes(whole.y_l[hidden])
    errors = np.full(len(grid), np.inf)
    for place, parameters in descend_over_grid(fold, search, start, grid):
        logs = log_probabilities(fold.posterior(parameters).scores(X_hidden))
        logs_of_truth = logs[np.arange(len(truth)), truth]
        errors[place] = -float(logs_of_truth.mean())
    return errors


@dataclass(frozen=True)
class FittedClasses:
    """What a fit keeps."""

    chosen: FoundParameters[ClassObjective]
    scaling: Scaling | KernelFeatures  # of the features
    unlabelled: Array  # (m, d) scaled rows at which the answer was wanted

    @cached_property
    def posterior(self) -> ClassPosterior:
        """The process with the parameters that were found."""
        return self.posterior_of(self.chosen.best)

    def posterior_of(self, descent: Descent) -> ClassPosterior:
        """Return the process with the parameters at which a descent ended."""
        return self.chosen.objective.posterior(descent.log_parameters)

    @cached_property
    def probabilities(self) -> Array:
        """Of every class at the unlabelled rows, shape (m, n_classes)."""
        return self.probabilities_at(self.posterior, self.unlabelled)

    @cached_property
    def plain_probabilities(self) -> Array:
        """The same without matching."""
        if self.chosen.plain is self.chosen.best:
            return self.probabilities
        return self.probabilities_at(self.posterior_of(self.chosen.plain), self.unlabelled)

    @staticmethod
    def probabilities_at(posterior: ClassPosterior, rows: Array) -> Array:
        """Return the probabilities at scaled rows."""
        return np.exp(log_probabilities(posterior.scores(rows)))

    def matched_shares(self) -> Array:
        """Return the share of each class (c,) in the matched distribution."""
        objective = self.chosen.objective
        posterior = self.posterior
        rows = objective.X[len(objective.y_l) :]
        k = posterior.covariance.cross(posterior.X_l, rows, posterior.relevance)
        own_variances = posterior.covariance.variances(rows, posterior.relevance)
        shares = []
        for mode, mean, target in zip(
            posterior.modes, posterior.means, objective.targets, strict=True
        ):
            noise = posterior.noise
            marginals = find_marginals(mode, k / noise, own_variances / noise, float(mean))
            match = match_share(
                marginals.z,
                float(target),
                slack=objective.slack,
                epsilon=objective.epsilon,
            )
            shares.append(match.probabilities.mean())
        if len(shares) == 1:
            shares = [1.0 - shares[0], shares[0]]
        return np.array(shares)


def make_answer(sample: PartlyLabelled, fitted: FittedClasses, classes: AnyArray) -> Answer:
    """Return the answer at the unlabelled rows."""
    chosen = fitted.chosen
    probabilities = fitted.probabilities
    ranked = np.sort(probabilities, axis=1)
    is_tied = ranked[:, -1] - ranked[:, -2] <= EQUAL_PROBABILITIES
    reasons = (*REASONS, f"Parameters were chosen on the labels ({chosen.choice.why}).")
    return Answer(
        rows=sample.unlabelled,
        values=classes[probabilities.argmax(axis=1)],
        status=np.where(is_tied, "tied", "answered"),
        guarantee=Guarantee("none", reasons=reasons),
        inductive=classes[fitted.plain_probabilities.argmax(axis=1)],
        probabilities=probabilities,
        classes=classes,
        index=sample.index_at(sample.unlabelled),
        diagnostics={
            "choice": chosen.choice.why,
            "starts": [getattr(end, "message", end) for end in chosen.ends],
            "objectives": [getattr(end, "objective", np.nan) for end in chosen.ends],
        },
    )


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveGPClassifier(ProcessEstimator, ClassTransducer):
    """Gaussian process whose class probabilities have, on average, the shares of the labels seen.

    The outlook of Le, Smola, Gartner, Altun (2006), Transductive Gaussian process regression with
    automatic model selection, ECML: moments are matched for classes as `TransductiveGPRegressor`
    matches them for numbers.

    Parameters
    ----------
    kernel, relevance, n_restarts, max_iter, tol, max_matched : as in the regressor
        See `TransductiveGPRegressor`.
    prior, noise_prior : tuple of two floats, default=(0.1, 2.0) and (1.0, 2.0)
        ``a`` and ``b`` of the prior ``-log p(x) = -a log x + b x`` of each relevance, and of the
        noise. The first lets relevances vanish, the second keeps probabilities from certainty.
    matching : float or "cv", default="cv"
        Weight of the match between predicted and seen shares of the classes. 0 is Gaussian process
        classification with the parameters at their posterior maximum. ``"cv"`` chooses by the
        log-loss at hidden labels; 0 is one of the choices, and any other must be better by more
        than one standard error.
    slack : float or "cv", default="cv"
        How loose the match may be: 0 for equal shares.
    epsilon : float or None, default=None
        In place of the slack, how far the share of each class may be from that of the labels.
    max_searched : int, default=500
        With more labels, relevances and noise are searched on as many of them; the process then
        uses all labels.
    standardize, n_jobs, random_state, missing_label : as in the regressor
        See `TransductiveGPRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    transduction_, answer_
        Labels completed (n,); `Answer` with probabilities, the classes without matching, and the
        status ``"tied"`` where two classes are equally probable.
    relevance_, kernel_scale_, feature_spread_
        As in `TransductiveGPRegressor`; the scale is that of a process of variance 1.
    noise_, matching_, slack_ : float
        Variance of the noise, where the process has variance 1; settings as used.
    matching_path_ : pandas.DataFrame
        With ``"cv"``: what was tried, with its cross-validated log-loss.
    objective_path_, n_iter_, converged_ : array, int, bool
        The objective after every step of the best descent, how many there were, and whether it
        ended by itself.
    log_evidence_ : float
        Laplace's approximation of the log probability of the labels; of three and more classes the
        sum over problems of one class against the others.
    shares_ : pandas.DataFrame
        Shares of the classes: of the labels, of the probabilities without matching and with it, and
        of the matched distribution, where there is one.

    Notes
    -----
    A class is the sign of a Gaussian process plus noise. The posterior is approximated by Laplace's
    method. Three and more classes are problems of one class against the others that share
    relevances and noise; their probabilities are divided by their sum. One evaluation of the
    objective costs ``O(c l^3)``, with matching ``O(c l^2 n + n^2 d)``, for c problems.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveGPClassifier
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> y = np.where(np.sin(X[:, 0]) > 0, "up", "down").astype(object)
    >>> y[2::4] = None
    >>> model = TransductiveGPClassifier(random_state=0).fit(X, y)
    >>> bool(np.all((model.transduction_ == "up") == (np.sin(X[:, 0]) > 0)))
    True
    """

    prior: tuple[float, float] = (0.1, 2.0)
    noise_prior: tuple[float, float] = (1.0, 2.0)
    max_searched: int = 500

    def fit(self, X: Rows, y: Labels) -> Self:
        """Choose the parameters, and predict rows of X (n, d) whose class in y (n,) is missing."""
        sample = validation.read_sample(self, X, y)
        settings = read_settings(self)
        noise_prior = read_prior("noise_prior", self.noise_prior)
        classes, codes = validation.class_labels(sample)
        announce_cost(len(codes))
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        features = read_features(sample, names, settings)
        arranged = arrange_rows(features, sample.labelled, codes, settings.max_matched)
        objective = ClassObjective(
            arranged.rows,
            class_signs(arranged.labels, len(classes)),
            settings.prior,
            noise_prior,
            covariance=features.covariance,
            epsilon=settings.epsilon,
        )
        random = check_random_state(self.random_state)
        with few_threads(len(arranged.rows)):
            chosen = find_parameters(objective, settings, random, choose=choose_matching)
            warn_of_parameters(chosen)
            unlabelled = features.rows[~sample.labelled]
            fitted = FittedClasses(chosen, features.scaling, unlabelled)
            self._fitted = fitted
            self.answer_ = make_answer(sample, fitted, classes)
        self.classes_ = classes
        self.feature_spread_ = features.spread
        self._set_parameters(fitted)
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def _set_parameters(self, fitted: FittedClasses) -> None:
        """Set what was chosen, and how it was found."""
        relevance = fitted.posterior.relevance
        if isinstance(fitted.scaling, KernelFeatures):
            self.kernel_scale_ = float(relevance[0]) ** 2 / fitted.scaling.mean_variance
        else:
            self.relevance_ = np.zeros(len(fitted.scaling.keep))
            self.relevance_[fitted.scaling.keep] = relevance / fitted.scaling.scale
        self.noise_ = fitted.posterior.noise
        set_choice(self, fitted.chosen)
        self.log_evidence_ = fitted.posterior.log_evidence

    @property
    def shares_(self) -> pd.DataFrame:
        """Shares of the classes among labels and predictions."""
        check_is_fitted(self)
        fitted = self._fitted
        objective = fitted.chosen.objective
        codes = class_codes(objective.y_l)
        counts = np.bincount(codes, minlength=len(self.classes_))
        shares = {"labels": counts / len(codes)}
        if len(fitted.unlabelled):
            shares["without matching"] = fitted.plain_probabilities.mean(axis=0)
            shares["predicted"] = fitted.probabilities.mean(axis=0)
        if objective.looks_at_unlabelled:
            shares["matched"] = fitted.matched_shares()
        return pd.DataFrame(shares, index=self.classes_).T

    def predict(self, X: Rows) -> AnyArray:
        """Return the most probable class (m,) at rows X (m, d), without transducing again."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class (m, n_classes) at rows, as in `predict`.

        With a kernel of one's own a new row is as uncertain as what the rows of `fit` tell of it.
        """
        check_is_fitted(self)
        rows = validation.read_rows(self, X, reset=False)
        fitted = self._fitted
        return fitted.probabilities_at(fitted.posterior, fitted.scaling.apply(rows))
