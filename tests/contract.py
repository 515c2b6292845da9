"""scikit-learn's contract: the estimators that are held to it, and the test that does so."""

from __future__ import annotations

import warnings

import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import estimator_checks_generator

from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveBlend,
    TransductiveGPClassifier,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.model_selection import CorrectedPredictions, TransductiveSearchCV

NUMBERS = [("ridge", TransductiveRidge(ridge=0.1, width=2.0)), ("linear", Ridge())]
CLASSES = [
    ("ridge", TransductiveRidgeClassifier(ridge=0.1, width=2.0)),
    ("logistic", LogisticRegression()),
]
WIDTHS = {"width": [1.0, 2.0]}

# One of each class: these run in every test run.
ONE_OF_EACH = [
    RidgeConfidenceMachine(),
    RidgeConfidenceClassifier(),
    TransductiveRidge(),
    TransductiveRidgeClassifier(),
    TransductiveGPRegressor(n_restarts=1),
    TransductiveGPClassifier(n_restarts=0, matching=0.3, slack=0.01, max_iter=20, tol=1e-4),
    BayesianTransducer(softness=0.5, n_balls=2, tolerance=0.3, max_bounces=2000, random_state=0),
    SpectralGraphTransducer(n_neighbors=5, metric="euclidean"),
    TransductiveBlend(CLASSES, cv=2, task="classification", random_state=0),
    ConformalTransducer(TransductiveRidgeClassifier(ridge=0.1, width=2.0), random_state=0),
    TransductiveSearchCV(TransductiveRidge(ridge=0.1), WIDTHS, cv=2),
    CorrectedPredictions(TransductiveRidge(ridge=0.1, width=2.0), predictions=0),
]

# The other task, and other settings, with other code behind the same shell.
VARIANTS = [
    BayesianTransducer(softness=0.5, n_balls=2, tolerance=0.1, random_state=0),
    TransductiveBlend(NUMBERS, cv=2, task="regression", random_state=0),
    ConformalTransducer(TransductiveRidge(ridge=0.1, width=2.0), random_state=0),
    TransductiveSearchCV(TransductiveRidgeClassifier(ridge=0.1), WIDTHS, cv=2),
    RidgeConfidenceMachine(kernel="linear", residual="studentized"),
    RidgeConfidenceClassifier(kernel="linear", residual="studentized"),
    RidgeConfidenceClassifier(label_conditional=True, standardize=False, residual="deleted"),
    RidgeConfidenceMachine(settings="leave-one-out"),
    RidgeConfidenceClassifier(settings="leave-one-out"),
    TransductiveRidge(centres=20, random_state=0, ridge=0.1, width=3.0),
    TransductiveRidgeClassifier(kernel="linear", tether="cv"),
    TransductiveGPRegressor(matching=0.5, slack=0.01, n_restarts=1),
    BayesianTransducer(width=0.5, n_balls=2, tolerance=0.2, max_bounces=2000, random_state=0),
    TransductiveBlend(task="regression", weights="equal", random_state=0),
    TransductiveBlend(task="classification", weights="equal", random_state=0),
    TransductiveBlend(CLASSES, cv=2, random_state=0),
    ConformalTransducer(TransductiveRidge(), random_state=0),
    ConformalTransducer(TransductiveRidgeClassifier(), random_state=0),
    ConformalTransducer(RandomForestRegressor(5, random_state=0), random_state=0),
    ConformalTransducer(RandomForestClassifier(5, random_state=0), random_state=0),
    ConformalTransducer(RidgeConfidenceMachine(), random_state=0),
    TransductiveSearchCV(Ridge(), {"fit_intercept": [True]}, cv=2),
    TransductiveSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2),
    CorrectedPredictions(Ridge(), predictions=0),
    TransductiveBlend(NUMBERS, cv=2, task="regression", predictions=0, random_state=0),
    ConformalTransducer(Ridge(), predictions=0, random_state=0),
]


def contract(estimators):
    """Return every check of scikit-learn's check_estimator on some estimators, as parameters of a test."""
    return [
        pytest.param(instance, check, id=f"{estimator}-{check.func.__name__}")
        for estimator in estimators
        for instance, check in estimator_checks_generator(estimator)
        if check.func.__name__ != "check_array_api_input"  # skips itself
    ]


def keep(estimator, check):
    """Run a check; estimators may warn of the tiny tables in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
