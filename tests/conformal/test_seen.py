"""Labels that were seen by what made a column: they teach, and do not calibrate."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from transduce import fill
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


def test_too_few_others_are_refused_in_words():
    X, truth, seen, labelled = seen_problem(n_labels=5)
    table = pd.DataFrame({"llm": X[:, 0], "shown": seen, "y": np.where(labelled, truth, np.nan)})
    how = {"method": "ridge", "predictions": "llm", "labels": Seen("shown")}
    with pytest.raises(ValueError, match="5 labels of rows that were not seen cannot guarantee"):
        fill(table, "y", **how)
    with pytest.raises(ValueError, match="marks all labelled rows as seen"):
        fill(table.assign(shown=True), "y", **how)


def test_on_the_command_line(tmp_path):
    from typer.testing import CliRunner

    from transduce.app.cli.app import app

    X, truth, seen, labelled = seen_problem()
    table = pd.DataFrame({"llm": X[:, 0], "shown": seen, "y": np.where(labelled, truth, np.nan)})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["fill", str(tmp_path / "t.csv"), "--target", "y", "--method", "ridge"]
    words += ["--predictions", "llm", "--seen", "shown", "--json", str(tmp_path / "t.json")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "--seen shown" in (tmp_path / "t.json").read_text()
    assert "--predictions llm" in (tmp_path / "t.json").read_text()
