"""Estimators that choose their settings: scikit-learn's contract, the answer against refits, guarantees, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from tests import brute
from tests.methods.confidence_machine.test_estimators import classes, numbers, run
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.device.kernels import Kernel, median_width
from transduce.display import EnvelopeDisplay
from transduce.methods.confidence_machine import Setting

BOTH = [RidgeConfidenceMachine, RidgeConfidenceClassifier]
KINDS = [(RidgeConfidenceMachine, numbers), (RidgeConfidenceClassifier, classes)]
CHOICES = [
    Setting("rbf", ridge=0.1),
    Setting("rbf", 0.7, 1.0),
    Setting("linear", ridge=0.5),
    Setting({"rbf": 1.0, "linear": 0.3}, ridge=0.3),
]


@pytest.mark.parametrize(("make", "data"), KINDS)
def test_fitted_estimators_travel(make, data):
    X, y, _ = data()
    fitted = make(settings="leave-one-out").fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(make(settings=CHOICES)).settings == CHOICES


# ------------------------------------------------------------------------------------------------- exact


def full_kernels(X):
    """Kernel matrix of all rows and ridge of every setting of CHOICES, by the documented recipe."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rbf, linear = Kernel("rbf", median_width(X)).matrix(X, X), X @ X.T
    return [
        (rbf, 0.1),
        (Kernel("rbf", 0.7).matrix(X, X), 1.0),
        (linear, 0.5),
        (rbf + 0.3 * linear, 0.3),
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("residual", ["auto", "plain", "deleted"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_regions_of_unlabelled_rows_equal_refits(residual, fit_intercept):
    """From the user's side: scale and width from all rows, all settings refitted for every candidate label."""
    X, y, _ = numbers(n=14, unlabelled=3)
    model = RidgeConfidenceMachine(
        settings=CHOICES, residual=residual, fit_intercept=fit_intercept, confidence=0.75
    ).fit(X, y)
    every, labelled = full_kernels(X), np.flatnonzero(~np.isnan(y))
    word = "studentized" if residual == "auto" else residual
    for j, row in enumerate(model.answer_.rows):
        rows = np.array([*labelled, row])
        part = [(K[np.ix_(rows, rows)], ridge) for K, ridge in every]
        for label in np.linspace(-8, 8, 17):
            p = brute.tuned_p_value(part, np.append(y[labelled], label), fit_intercept, word)
            assert model.answer_.regions[[j]].contains(label)[0] == (p > 0.25 + 1e-9)
            assert model.p_values(X[[row]], [label])[0] == pytest.approx(p)


@pytest.mark.parametrize("label_conditional", [False, True])
def test_sets_of_unlabelled_rows_equal_refits(label_conditional):
    X, y, _ = classes(n=15, unlabelled=3)
    model = run(
        RidgeConfidenceClassifier(
            settings=CHOICES, label_conditional=label_conditional, confidence=0.7
        ),
        X,
        y,
    )
    every, labelled = full_kernels(X), np.flatnonzero(y != None)  # noqa: E711
    codes = np.searchsorted(model.classes_, y[labelled].astype(str))
    for j, row in enumerate(model.answer_.rows):
        rows = np.array([*labelled, row])
        part = [(K[np.ix_(rows, rows)], ridge) for K, ridge in every]
        p = [
            brute.tuned_class_p_value(part, codes, c, 3, True, "studentized", label_conditional)
            for c in range(3)
        ]
        np.testing.assert_allclose(model.answer_.p_values[j], p)
    np.testing.assert_allclose(
        run(model, X, y).p_values(X[model.answer_.rows]), model.answer_.p_values
    )


def test_one_setting_in_a_list_is_that_setting():
    X, y, _ = numbers()
    listed = RidgeConfidenceMachine(settings=[Setting("exponential", 2.0, 0.3)]).fit(X, y)
    fixed = RidgeConfidenceMachine(
        kernel="exponential", width=2.0, ridge=0.3, residual="studentized"
    ).fit(X, y)
    np.testing.assert_allclose(listed.answer_.values, fixed.answer_.values)
    np.testing.assert_allclose(listed.answer_.regions.pieces, fixed.answer_.regions.pieces)
    for side in ("lower", "upper"):
        one, other = (
            model.predict_region(X[:5], side=side, confidence=0.7) for model in (listed, fixed)
        )
        np.testing.assert_allclose(one.pieces, other.pieces)
    one, other = (
        model.p_values(X[:5], np.arange(5.0), smooth=True, random_state=0)
        for model in (listed, fixed)
    )
    np.testing.assert_allclose(one, other)


# -------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize(("make", "data"), KINDS)
def test_the_order_of_rows_does_not_matter(make, data):
    X, y, _ = data()
    order = np.random.default_rng(1).permutation(len(y))
    one, other = (
        make(settings="leave-one-out").fit(rows, labels)
        for rows, labels in ((X, y), (X[order], y[order]))
    )
    if make is RidgeConfidenceMachine:
        np.testing.assert_allclose(other.transduction_, one.transduction_[order])
    else:
        np.testing.assert_array_equal(other.transduction_, one.transduction_[order])


def test_predict_at_unlabelled_rows_is_the_answer():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine(settings="leave-one-out").fit(X, y)
    rows = model.answer_.rows
    np.testing.assert_allclose(model.predict(X[rows]), model.answer_.values)
    np.testing.assert_allclose(model.predict_interval(X[rows]), model.answer_.regions.hull())
    assert model.answer_.regions.contains(model.answer_.values).all()


# ------------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize(("make", "data"), KINDS)
def test_no_unlabelled_row(make, data):
    X, _, truth = data()
    model = make(settings="leave-one-out").fit(X, truth)
    assert len(model.answer_) == 0
    assert model.guarantee_.kind == "approximate"
    assert model.answer_.diagnostics["n_chosen"] == [0] * 20
    assert len(model.predict(X[:3])) == 3


# --------------------------------------------------------------------------------------------- what is told


def test_diagnostics_count_the_choices():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine(settings="leave-one-out").fit(X, y)
    told = model.answer_.diagnostics
    assert told["form"] == "tuned"
    assert told["settings"] == [str(setting) for setting in model.settings_]
    assert len(told["settings"]) == len(told["n_chosen"]) == len(told["n_in_region"]) == 20
    assert sum(told["n_chosen"]) == len(model.answer_) <= sum(told["n_in_region"])
    assert model.width_ is None
    X, y, _ = classes()
    told = RidgeConfidenceClassifier(settings=CHOICES).fit(X, y).answer_.diagnostics
    assert sum(told["n_chosen"]) == 15
    assert sum(told["n_chosen_candidates"]) == 45


def test_guarantees_say_how_settings_were_chosen():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine(settings="leave-one-out").fit(X, y)
    assert model.guarantee_.kind == "exact"
    assert "leave-one-out error of the sample completed with it" in model.guarantee_.grounds
    assert "set their scale and the kernels; no label did" in model.guarantee_.grounds
    fixed = [Setting("rbf", 1.0), Setting("linear")]
    model = RidgeConfidenceMachine(settings=fixed, standardize=False).fit(X, y)
    assert model.guarantee_.kind == "exact"
    assert "The features set nothing." in model.guarantee_.grounds
    with pytest.warns(UserWarning, match="too small for these rows"):
        model = RidgeConfidenceMachine(settings=[Setting("linear", ridge=1e-30)]).fit(X, y)
    assert model.guarantee_.kind == "approximate"


def test_fixed_settings_stay_what_they_were():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine().fit(X, y)
    plain = RidgeConfidenceMachine(residual="plain").fit(X, y)
    assert model.answer_.regions == plain.answer_.regions
    assert model.settings_ is None
    assert "settings" not in model.answer_.diagnostics


def test_the_envelope_of_a_row():
    X, y, _ = numbers()
    model = RidgeConfidenceMachine(settings=CHOICES).fit(X, y)
    row = model.answer_.rows[0]
    found = model.envelope(X[[row]])
    np.testing.assert_allclose(found.region, model.answer_.regions[0])
    assert found.value == pytest.approx(model.answer_.values[0])
    assert found.names == tuple(model.answer_.diagnostics["settings"])
    assert EnvelopeDisplay.from_envelope(found).ax_.get_xlabel() == "label of the row"
    np.testing.assert_allclose(
        model.envelope(X[[row]], confidence=0.5).region,
        model.predict_region(X[[row]], confidence=0.5)[0],
    )


def test_too_few_labels_warn_and_give_the_line():
    X, y, _ = numbers(n=10, unlabelled=5)
    with pytest.warns(UserWarning, match="every region is the whole line"):
        model = RidgeConfidenceMachine(settings=CHOICES).fit(X, y)
    assert np.isinf(model.answer_.regions.measure()).all()


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"settings": []}, "settings is an empty list"),
        ({"settings": "loo"}, "settings must be 'leave-one-out' or a list of Setting; got 'loo'"),
        ({"settings": [Setting("rfb")]}, "Unknown kernel 'rfb'"),
        ({"settings": [Setting(ridge=-1.0)]}, "ridge must be a positive number; got -1.0"),
        ({"settings": CHOICES, "ridge": 0.3}, "With settings given, ridge=0.3 has no meaning"),
        (
            {"settings": "leave-one-out", "kernel": "linear"},
            "kernel='linear' has no meaning: leave it out",
        ),
        ({"settings": CHOICES, "kernel": "precomputed"}, "chosen among kernels of the features"),
        ({"settings": [Setting("precomputed")]}, "a precomputed one is fixed"),
        (
            {"residual": "studentised"},
            "residual must be one of 'auto', 'plain', 'studentized', 'deleted'",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(make, settings, sentence):
    X, y, _ = numbers() if make is RidgeConfidenceMachine else classes()
    with pytest.raises(ValueError, match=sentence):
        make(**settings).fit(X, y)


def test_an_envelope_needs_a_choice_and_one_row():
    X, y, _ = numbers()
    with pytest.raises(
        ValueError, match="One setting has no envelope: pass settings='leave-one-out'"
    ):
        RidgeConfidenceMachine().fit(X, y).envelope(X[:1])
    with pytest.raises(ValueError, match="Give one row, with shape"):
        RidgeConfidenceMachine(settings=CHOICES).fit(X, y).envelope(X[:2])
