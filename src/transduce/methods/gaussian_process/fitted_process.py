"""A fitted Gaussian process: rows in an order of their own, the process, and what it says in units of the labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling, label_moments
from transduce.core.types import AnyArray, Array, Mask
from transduce.methods.gaussian_process import process
from transduce.methods.gaussian_process.moments import Match
from transduce.methods.gaussian_process.parameters import Descent, FoundParameters

if TYPE_CHECKING:
    from transduce.methods.gaussian_process.regressor import TransductiveGPRegressor

REASONS = (
    "Standard errors are the model's own: right if the labels are a Gaussian process with this kernel and noise.",
    "With few labels they tend to be too small.",
)
INSTEAD = "For intervals with a guarantee, use ConformalTransducer or RidgeConfidenceMachine."


@dataclass(frozen=True)
class Units:
    """Mean and spread of the labels, which scaled labels have lost; equal labels say nothing about errors (NaN)."""

    mean: float
    spread: float
    error: float

    @classmethod
    def of(cls, y_l: Array) -> Units:
        """Take them from the labels."""
        mean, spread = label_moments(np.sort(y_l))
        return cls(float(mean), float(spread), float(spread) if np.ptp(y_l) > 0.0 else np.nan)

    def scale(self, y_l: Array) -> Array:
        """Return labels with mean 0 and variance 1."""
        return (y_l - self.mean) / self.spread

    def restore(self, scaled: Array) -> Array:
        """Return scaled labels in units of the labels."""
        return scaled * self.spread + self.mean

    def squared(self, scaled: Array) -> Array:
        """Return scaled variances in squared units of the labels."""
        with np.errstate(over="ignore", under="ignore"):
            return scaled * self.error * self.error


@dataclass(frozen=True)
class FittedProcess:
    """What a fit keeps."""

    scaling: Scaling  # of the features
    units: Units  # of the labels
    posterior: process.Posterior | process.InducedPosterior  # of scaled labels at scaled rows
    noise: float  # variance of the noise, in squared units of the labels
    unlabelled: Array  # (m, d) scaled rows at which the answer was wanted
    predicted: tuple[Array, Array]  # (m,)
    plain: tuple[Array, Array]  # (m,)
    matched: AnyArray  # (k,) which of the unlabelled rows moments were matched at, in the order of `q`
    q: Match | None  # the matched distribution
    chosen: FoundParameters  # the parameters, and how they were found
    order: AnyArray  # (l,) the labelled rows in the order of the posterior

    @classmethod
    def of(
        cls,
        chosen: FoundParameters,
        unlabelled: Array,
        places: tuple[AnyArray, AnyArray],
        scaling: Scaling,
        units: Units,
    ) -> FittedProcess:
        """Predict with the parameters found, and match."""
        y_l, best, (order, matched) = chosen.objective.y_l, chosen.best.log_parameters, places
        X_l = chosen.objective.X[: y_l.shape[0], :]
        posterior = process.fit_posterior(X_l, y_l, best, chosen.max_exact)
        predicted = plain = posterior.predict(unlabelled)
        if chosen.plain is not chosen.best:
            other = process.fit_posterior(X_l, y_l, chosen.plain.log_parameters, chosen.max_exact)
            plain = other.predict(unlabelled)
        few = isinstance(posterior, process.Posterior)
        varied = few and len(matched) > 0 and np.ptp(arrays.to_numpy(y_l)) > 0.0
        q = chosen.objective.match(best) if varied else None
        noise = float(units.squared(np.exp(best)[-1]))
        return cls(scaling, units, posterior, noise, unlabelled, predicted, plain, matched, q, chosen, order)

    @property
    def relevance(self) -> Array:
        """Relevances in units of the features, shape (d,); 0 for a feature that does not vary."""
        relevance = np.zeros(len(self.scaling.keep))
        relevance[self.scaling.keep] = self.posterior.relevance / arrays.to_numpy(self.scaling.scale)
        return relevance

    def covariance(self, rows: Array) -> Array:
        """Return the covariance of the labels at scaled rows, shape (m, m)."""
        return self.units.squared(self.posterior.covariance(rows))

    def matched_mean(self) -> Array:
        """Return the mean of the matched distribution, rows in the order in which they came, shape (k,)."""
        if self.q is None:
            return self.units.restore(arrays.pick(self.predicted[0], np.sort(self.matched)))
        return self.units.restore(arrays.pick(self.q.mean, np.argsort(self.matched)))

    def matched_covariance(self) -> Array:
        """Return the covariance of the matched distribution, likewise, shape (k, k)."""
        if self.q is None:
            return self.covariance(arrays.pick(self.unlabelled, np.sort(self.matched)))
        root = arrays.pick(self.q.root, np.argsort(self.matched))
        return self.units.squared(root @ root.T)


def moments_table(fitted: FittedProcess, y_l: Array) -> pd.DataFrame:
    """Return mean and standard deviation, over rows, of scaled labels and of what is predicted; in their units."""
    xp = arrays.namespace(y_l)
    moments = {"labels": (float(xp.mean(y_l)), float(xp.mean(y_l**2)))}
    if fitted.unlabelled.shape[0]:
        for name, (mean, spread) in (("without matching", fitted.plain), ("predicted", fitted.predicted)):
            moments[name] = (float(xp.mean(mean)), float(xp.mean(mean**2 + spread**2)))
    q = fitted.q
    if q is not None:
        second = (q.mean @ q.mean + xp.sum(q.root**2)) / q.mean.shape[0]
        moments["matched"] = (float(xp.mean(q.mean)), float(second))
    mean, square = np.array(list(moments.values())).T
    spread = np.sqrt(np.maximum(square - mean**2, 0.0)) * fitted.units.spread
    columns = {"mean": fitted.units.restore(mean), "standard deviation": spread}
    return pd.DataFrame(columns, index=list(moments))


def make_answer(sample: PartlyLabelled, fitted: FittedProcess) -> Answer:
    """Return the answer at the unlabelled rows."""
    (mean, spread), chosen = fitted.predicted, fitted.chosen
    reasons = (*REASONS, f"Parameters were chosen on the labels ({chosen.choice.why}).", INSTEAD)
    return Answer(
        rows=sample.unlabelled,
        values=fitted.units.restore(mean),
        status=np.full(mean.shape[0], "answered"),
        guarantee=Guarantee("none", reasons=reasons),
        standard_errors=spread * fitted.units.error,
        inductive=fitted.units.restore(fitted.plain[0]),
        index=None if sample.index is None else sample.index[sample.unlabelled],
        diagnostics={
            "choice": chosen.choice.why,
            "jitter": fitted.posterior.jitter,
            "starts": [end.message if isinstance(end, Descent) else end for end in chosen.ends],
            "objectives": [end.objective if isinstance(end, Descent) else np.nan for end in chosen.ends],
        },
    )


def scale_rows(
    sample: PartlyLabelled, names: Sequence[str | int], *, standardize: bool
) -> tuple[Array, Scaling, Array]:
    """Return the rows, scaled or at least centred (small numbers are safer); how; and the spread of every feature."""
    # In an order of their own, so that the rounding of a mean does not depend on the order in which rows came.
    xp = arrays.namespace(sample.X)
    scaling, _ = Scaling.fit_apply(xp.take(sample.X, arrays.lexsort(sample.X), axis=0))
    rows = scaling.apply(sample.X)
    spread = np.zeros(len(names))
    spread[scaling.keep] = arrays.to_numpy(scaling.scale)
    shown = arrays.to_numpy(xp.std(arrays.pick(rows, sample.labelled), axis=0))
    narrow = np.flatnonzero((shown > 0.0) & (shown < 0.01))
    if len(narrow):
        warnings.warn(
            f"Feature {names[np.flatnonzero(scaling.keep)[narrow[0]]]!r} varies a hundred times less among the "
            "labelled rows than among all: a few far-off rows set its scale. Look at them; leave them out or transform "
            "the feature.",
            stacklevel=3,
        )
    if not standardize:
        scaling = replace(scaling, scale=xp.ones_like(scaling.scale))
        rows = scaling.apply(sample.X)
    return rows, scaling, spread


def arrange_rows(
    rows: Array, labelled: Mask, y_l: Array, settings: TransductiveGPRegressor
) -> tuple[process.Objective, AnyArray, AnyArray]:
    """Return labelled rows in the order of their values (l,): that in which they came leaves no trace of rounding."""
    xp, shown, unlabelled = arrays.namespace(rows), arrays.pick(rows, labelled), arrays.pick(rows, ~labelled)
    labels = arrays.beside(y_l, rows)
    order = arrays.to_numpy(arrays.lexsort(xp.concat([shown, labels[:, None]], axis=1)))
    matched = arrays.to_numpy(arrays.lexsort(unlabelled)) if unlabelled.shape[0] else np.empty(0, dtype=int)
    matched = matched[process.even_steps(len(matched), settings.max_matched)]
    used = xp.concat([arrays.pick(shown, order), arrays.pick(unlabelled, matched)])
    return process.Objective(used, arrays.pick(labels, order), settings.prior), order, matched
