"""Labels that were seen by what made a column: they teach, and do not calibrate."""

import numpy as np
from sklearn.linear_model import LinearRegression

from transduce.conformal import ConformalTransducer, Seen

N_ROWS = 200


def seen_problem(seed=0, n_seen=60, n_labels=60):
    """Return a column that copies the labels that it saw, and is off by noise elsewhere."""
    rng = np.random.default_rng(seed)
    truth = 10.0 * rng.normal(size=N_ROWS)
    order = rng.permutation(N_ROWS)
    seen = np.isin(np.arange(N_ROWS), order[:n_seen])
    labelled = np.isin(np.arange(N_ROWS), order[: n_seen + n_labels])
    given = np.where(seen, truth, truth + rng.normal(size=N_ROWS))
    return given[:, None], truth, seen, labelled


def test_none_of_them_calibrates_and_all_teach():
    X, truth, seen, labelled = seen_problem()
    y = np.where(labelled, truth, np.nan)
    model = ConformalTransducer(LinearRegression(), labels=Seen(seen), random_state=0).fit(X, y)
    calibrated = model.calibrated
    held = calibrated.problem.rows[calibrated.held_out]
    assert 10 < len(held) < 60
    assert not seen[held].any()
    assert model.guarantee_.headline == "exact if the other rows were labelled at random"
    np.testing.assert_array_equal(calibrated.design.measure(np.arange(5)), ~seen[:5])


def test_coverage_that_seen_labels_would_spoil():
    covered = {"told": [], "not told": []}
    for seed in range(40):
        X, truth, seen, labelled = seen_problem(seed)
        y = np.where(labelled, truth, np.nan)
        for name, labels in {"told": Seen(seen), "not told": None}.items():
            model = ConformalTransducer(
                LinearRegression(), labels=labels, confidence=0.8, random_state=seed
            ).fit(X, y)
            covered[name].append(model.answer_.contains(truth[~labelled]).mean())
    # Half of the labels are without any error.
    assert np.mean(covered["told"]) > 0.77
    assert np.mean(covered["not told"]) < 0.7
