"""Classes that no label shows: their p-value, sets that say so, and the only rows of their class."""

from __future__ import annotations

import numpy as np
import pytest

from tests import brute
from transduce import RidgeConfidenceClassifier
from transduce.core.answer import UNSEEN
from transduce.device import lines as device_lines
from transduce.methods.confidence_machine.residual_lines import count_nonconforming_by_class
from transduce.methods.confidence_machine.setting_grid import Setting

SIZES = {
    "one single": (9, 4, 1),
    "singles": (5, 3, 1, 1, 1),
    "one label of one of two": (12, 1),
    "all different": (1,) * 6,
    "none alone": (6, 4),
}


def table(sizes, seed=0, n_unlabelled=4):
    """Whole-number features, so that rows and residuals tie, and labels of classes of these sizes."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.integers(0, 4, size=(len(codes) + n_unlabelled, 2)).astype(float)
    return X, np.array([f"c{code}" for code in codes] + [None] * n_unlabelled, dtype=object), codes


@pytest.mark.few(4)
@pytest.mark.parametrize("case", SIZES)
@pytest.mark.parametrize("label_conditional", [False, True])
def test_every_class_and_row_equals_refits(case, label_conditional):
    X, y, codes = table(SIZES[case])
    n, n_classes = len(codes), len(SIZES[case])
    fixed = {"kernel": "linear", "standardize": False, "ridge": 0.5}
    rule = {"label_conditional": label_conditional, "confidence": 0.5}
    model = RidgeConfidenceClassifier(**fixed, **rule).fit(X, y)
    chosen = [Setting("linear", ridge=0.5), Setting("linear", ridge=5.0)]
    tuned = RidgeConfidenceClassifier(settings=chosen, standardize=False, **rule).fit(X, y)
    for j, row in enumerate(model.answer_.rows):
        rows = [*range(n), row]
        K = (X @ X.T)[np.ix_(rows, rows)]
        every = [(K, 0.5), (K, 5.0)]
        for c in range(n_classes):
            plain = brute.class_p_value(
                K, codes, c, n_classes, 0.5, True, label_conditional=label_conditional
            )
            assert model.answer_.p_values[j, c] == pytest.approx(plain)
            best = brute.tuned_class_p_value(
                every, codes, c, n_classes, True, "studentized", label_conditional
            )
            assert tuned.answer_.p_values[j, c] == pytest.approx(best)
        new = brute.class_p_value(K, codes, n_classes, n_classes, 0.5, True)
        assert model.p_unseen_ == tuned.p_unseen_ == model.answer_.p_unseen[j] == pytest.approx(new)
        assert model.answer_.unseen[j] == (new > 0.5 + 1e-9)
        assert model.answer_.confidence[j] == pytest.approx(
            1 - max(np.sort(model.answer_.p_values[j])[-2], new)
        )


def test_one_class_alone():
    """With one class the machine has a p-value for it and, 1 / (l + 1), for any other."""
    X, _, codes = table((7,))
    machine = RidgeConfidenceClassifier(kernel="linear", standardize=False)
    with pytest.raises(ValueError, match="at least two classes"):
        machine.fit(X, np.array(["a"] * 7 + [None] * 4, dtype=object))
    assert brute.class_p_value((X @ X.T)[:8, :8], codes, 1, 1, 1.0, True) == pytest.approx(1 / 8)


def test_the_device_counts_alike():
    rng = np.random.default_rng(0)
    codes = np.array([0, 0, 0, 1, 1, 2, 3])
    inside = codes[:, None] == np.arange(4)
    rho, beta, prediction = (
        rng.normal(size=(5, 7)),
        rng.normal(size=(5, 7)),
        rng.normal(size=(5, 4)),
    )
    overall, within = device_lines.counts_by_class(rho, beta, inside, prediction, 1e-12)
    for j in range(5):
        every, same = count_nonconforming_by_class(rho[j], beta[j], codes, prediction[j], 1e-12)
        np.testing.assert_array_equal([part[j] for part in overall], every)
        np.testing.assert_array_equal([part[j] for part in within], same)
        assert (every[0, :2] >= 2).all()  # the two singles


def test_sets_say_so_and_contain_it():
    X, y, _ = table((9, 4, 1, 1))
    sure = RidgeConfidenceClassifier(confidence=0.5).fit(X, y)
    assert not sure.answer_.unseen.any()
    assert not sure.guarantee_.any_class
    assert "every class of the unlabelled" not in str(sure.guarantee_)
    wide = RidgeConfidenceClassifier(confidence=0.9).fit(X, y)  # p = 3 / 16
    assert wide.p_unseen_ == 3 / 16
    assert wide.guarantee_.any_class
    assert "a class without a label; the sets say so" in wide.guarantee_.statement
    assert {labels[-1] for labels in wide.answer_.to_frame()["set"]} == {UNSEEN}
    assert wide.answer_.contains(["new"] * 4).all()
    assert not sure.answer_.contains(["new"] * 4).any()
    np.testing.assert_array_equal(wide.answer_.contains(["c0"] * 4), wide.answer_.label_sets[:, 0])
