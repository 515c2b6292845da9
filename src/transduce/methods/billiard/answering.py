"""The answer of Bayesian transduction: the class with most votes, how sure it is, and what that is worth."""

from __future__ import annotations

import numpy as np

from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.sample import PartlyLabelled
from transduce.core.types import AnyArray
from transduce.methods.billiard.fitting import Vote
from transduce.methods.billiard.settings import Settings


def make_answer(
    sample: PartlyLabelled, classes: AnyArray, vote: Vote, softness: float, settings: Settings
) -> Answer:
    """Return the answer at the unlabelled rows."""
    best, ordered = vote.shares.argmax(axis=1), np.sort(vote.shares, axis=1)
    confidence = ordered[:, -1] - ordered[:, -2]
    answer = Answer(
        rows=sample.unlabelled,
        values=classes[best],
        status=np.where(confidence > 1e-12, "answered", "tied"),
        guarantee=_guarantee(vote, softness),
        confidence=confidence,
        standard_errors=vote.errors[np.arange(len(best)), best],
        probabilities=vote.shares,
        classes=classes,
        index=None if sample.index is None else sample.index[sample.unlabelled],
        diagnostics={"n_bounces": vote.n_bounces, "n_balls": settings.n_balls, "r_hat": vote.r_hat},
    )
    if settings.reject_below is None and settings.reject_share is None:
        return answer
    return answer.reject(below=settings.reject_below, share=settings.reject_share)


def _guarantee(vote: Vote, softness: float) -> Guarantee:
    what = "of the label, by the model" if softness > 0.0 else "that a random separator votes for"
    said = f"Probabilities are {what}"
    if vote.errors.size:
        end = "" if vote.converged else ", where the budget of bounces ended the vote"
        said += f"; their largest Monte Carlo standard error is {vote.errors.max():.2g}{end}"
    return Guarantee(
        "none",
        reasons=(f"{said}.", "For sets of classes with a guarantee, use RidgeConfidenceClassifier."),
    )
