"""The confidence machine says the same wherever its arrays live."""

from __future__ import annotations

import numpy as np
import pytest

from tests.libraries import ON_PROCESSOR, dispatch, give, same
from transduce import RidgeConfidenceClassifier, RidgeConfidenceMachine
from transduce.core import arrays
from transduce.device import lines as device_lines
from transduce.methods.confidence_machine import Setting
from transduce.methods.confidence_machine.residual_lines import (
    SIDE,
    count_nonconforming,
    line_region,
    residual_lines,
)


def problem(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.3 * rng.standard_t(3, size=n)
    truth = y.copy()
    y[rng.permutation(n)[: n // 3]] = np.nan
    return X, y, truth


def same_regions(found, wanted, name):
    np.testing.assert_array_equal(found.offsets, wanted.offsets)
    same(found.pieces, wanted.pieces, name)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("residual", ["plain", "deleted", "studentized"])
@pytest.mark.parametrize(
    "settings",
    [{"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "exponential", "fit_intercept": False}],
)
def test_regressor(name, residual, settings):
    X, y, truth = problem()
    here = RidgeConfidenceMachine(residual=residual, ridge=0.3, **settings).fit(X, y)
    there = RidgeConfidenceMachine(residual=residual, ridge=0.3, **settings)
    with dispatch():
        there.fit(give(X, name), y)
        same(there.transduction_, here.transduction_, name)
        same(there.answer_.values, here.answer_.values, name)
        same_regions(there.answer_.regions, here.answer_.regions, name)
        assert there.answer_.diagnostics == here.answer_.diagnostics
        assert str(there.guarantee_) == str(here.guarantee_)
        new = X[:7] + 0.1
        same(there.predict(give(new, name)), here.predict(new), name)
        for side in ("lower", "upper"):
            found = there.predict_region(give(new, name), side=side, confidence=0.8)
            same_regions(found, here.predict_region(new, side=side, confidence=0.8), name)
        same(there.predict_interval(give(new, name)), here.predict_interval(new), name)
        same(there.p_values(give(X, name), truth), here.p_values(X, truth), name)
        smooth = [
            m.p_values(x, truth, smooth=True, random_state=0)
            for m, x in ((there, give(X, name)), (here, X))
        ]
        same(*smooth, name)
    np.testing.assert_allclose(
        there.answer_.to_frame()[["value", "lower", "upper"]],
        here.answer_.to_frame()[["value", "lower", "upper"]],
    )


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_regressor_in_chunks_and_precomputed(name):
    X, y, _ = problem(1)
    K = X @ X.T + np.eye(len(X))
    for settings, rows in (
        ({"kernel": "rbf", "max_memory_mb": 1e-2}, X),
        ({"kernel": "precomputed"}, K),
    ):
        here = RidgeConfidenceMachine(**settings).fit(rows, y)
        with dispatch():
            there = RidgeConfidenceMachine(**settings).fit(give(rows, name), y)
        same(there.transduction_, here.transduction_, name)
        same_regions(there.answer_.regions, here.answer_.regions, name)


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_too_few_labels_and_no_question(name):
    X, y, truth = problem(2, n=12)
    with dispatch(), pytest.warns(UserWarning, match="confidence of at most"):
        there = RidgeConfidenceMachine(confidence=0.99).fit(give(X, name), y)
    assert np.isinf(arrays.to_numpy(there.answer_.regions.pieces)).all()
    with dispatch():
        there = RidgeConfidenceMachine().fit(give(X, name), truth)
    assert len(there.answer_) == 0


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("label_conditional", [False, True])
def test_classifier(name, label_conditional):
    X, y, _ = problem(3, n=90)
    labels = np.where(
        np.isnan(y), None, np.where(y < -0.5, "low", np.where(y > 0.5, "high", "middle"))
    )
    here = RidgeConfidenceClassifier(label_conditional=label_conditional).fit(X, labels)
    with dispatch():
        there = RidgeConfidenceClassifier(label_conditional=label_conditional).fit(
            give(X, name), labels
        )
        assert there.transduction_.tolist() == here.transduction_.tolist()
        for field in ("p_values", "confidence", "credibility", "label_sets"):
            same(getattr(there.answer_, field), getattr(here.answer_, field), name)
        assert there.answer_.status.tolist() == here.answer_.status.tolist()
        assert there.predict(give(X, name)).tolist() == here.predict(X).tolist()
        same(
            there.predict_set(give(X, name), confidence=0.7),
            here.predict_set(X, confidence=0.7),
            name,
        )


@pytest.mark.parametrize("name", ON_PROCESSOR)
def test_grids_stay_with_numpy(name):
    X, y, _ = problem()
    with dispatch(), pytest.raises(ValueError, match="settings are chosen on numpy arrays only"):
        RidgeConfidenceMachine(settings=[Setting("linear")]).fit(give(X, name), y)


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("seed", range(6))
def test_steep_lines_are_swept(name, seed):
    """Any lines, steep and level ones, lines that just touch, and duplicates: regions and counts as compiled."""
    rng = np.random.default_rng(seed)
    m, n = 5, 9
    rho = rng.normal(size=(m, n)).round(1)
    beta = rng.normal(scale=1.0, size=(m, n)).round(1)
    beta[0] = 0.5 * np.tanh(beta[0])
    rho[1, :3], beta[1, :2] = 0.0, [1.0, -1.0]
    beta[2, :2] = device_lines.OWN, -device_lines.OWN
    for rank in (1, 3, n):
        for side in ("two", "upper", "lower"):
            found = device_lines.regions(give(rho, name), give(beta, name), rank, side, 1e-12)
            for j in range(m):
                wanted = line_region(rho[j], beta[j], rank, SIDE[side], 1e-12)
                same(found[j], wanted, name)
    t = rng.normal(size=m).round(1)
    above, tied = device_lines.counts(give(rho, name), give(beta, name), give(t, name), 1e-12)
    wanted = [count_nonconforming(rho[j], beta[j], t[j], 1e-12) for j in range(m)]
    np.testing.assert_array_equal(
        np.column_stack([arrays.to_numpy(above), arrays.to_numpy(tied)]), wanted
    )


@pytest.mark.parametrize("name", ON_PROCESSOR)
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_lines(name, power):
    """A row that no other can stand in for has no line, as compiled."""
    rng = np.random.default_rng(0)
    residuals, diagonal, weights = rng.normal(size=8), rng.uniform(0.1, 1.0, 8), rng.normal(size=8)
    diagonal[3] = weights[3] = 0.0
    parts = [give(part, name) for part in (residuals, diagonal, weights[None], np.array([1.3]))]
    found = device_lines.lines(*parts, power)
    for one, other in zip(
        found, residual_lines(residuals, diagonal, weights, 1.3, power), strict=True
    ):
        same(one, other[None], name)
