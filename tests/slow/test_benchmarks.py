"""What the benchmarks show and where they write it, and the tests of the race. Nothing is timed here."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _beside(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


# ------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.254, "0.25"),
        (0.996, "1.0"),
        (4.63, "4.6"),
        (718.0, "720"),
        (12_345.0, "12,000"),
        (np.nan, "-"),
    ],
)
def test_ratios_have_two_digits(number, text):
    import speed_table

    assert speed_table.short(number) == text


def test_sizes_stand_side_by_side():
    import speed_table

    lines = [
        speed_table.line("Ours", "a fit", 100, 1.0, "theirs", 2.0, 10.0, 5.0),
        speed_table.line("Ours", "a fit", 1000, 2.0, "theirs", 90.0, 10.0, 20.0),
        speed_table.line("Ours", "a fit", 100, 1.0, "another", 0.5),
    ]
    assert speed_table.as_markdown(speed_table.as_frame(lines)).splitlines()[2:] == [
        "| `Ours` | a fit | theirs | 100 / 1,000 | 2.0 / 45 | 0.50 / 2.0 |",
        "|  | a fit | another | 100 | 0.50 |  |",
    ]


def test_exponent_and_share():
    """A cube law has exponent 3; 2 n^3 operations in n^3 seconds are 20 % of ten a second."""
    import scaling

    n = np.array([1, 10, 100, 1000])
    table = pd.DataFrame(
        [scaling.line("A, fit", "3", "flops", "2 n³", int(k), float(k) ** 3, 2.0 * k**3) for k in n]
    )
    table["limit"] = 10.0
    assert scaling.exponent(table) == pytest.approx(3.0)
    assert scaling.report(table).splitlines()[-1] == (
        "| A, fit | 10 to 1,000 | 3.00 | 3 | 2 n³ (operations) | 20 % |"
    )


def test_ranks_of_demsars_example():
    """Demsar (2006): four methods on 14 tables."""
    import race_ranks

    ranks = pd.Series([3.143, 2.000, 2.893, 1.964])
    chi, f = race_ranks.friedman_statistic(ranks, 14)
    assert chi == pytest.approx(9.28, abs=0.005)
    assert f == pytest.approx(3.69, abs=0.005)
    assert race_ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize(
    ("ranks", "groups"),
    [
        ([1.0, 2.0, 3.0, 4.0], [(0, 1), (1, 2), (2, 3)]),  # neighbours alone do not differ
        ([1.0, 1.5, 2.0, 4.0, 4.5], [(0, 2), (3, 4)]),
        (
            [1.0, 1.5, 1.9, 2.2],
            [(0, 2), (1, 3)],
        ),  # groups overlap; smaller ones inside them are left out
        ([1.0, 3.0, 5.0], []),
        ([2.0, 2.0, 2.0], [(0, 2)]),
    ],
)
def test_cliques_by_hand(ranks, groups):
    import race_ranks

    assert race_ranks.cliques(np.array(ranks), 1.0) == groups


def test_a_method_that_failed_comes_last():
    import race_ranks

    errors = pd.DataFrame({"a": [0.1, 0.2], "b": [np.nan, 0.1], "c": [0.3, 0.3]})
    ranks = race_ranks.mean_ranks(errors)
    assert ranks.to_dict() == {"a": 1.5, "b": 2.0, "c": 2.5}
    assert list(ranks.index) == ["a", "b", "c"]


# ------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("seed", range(5))
def test_friedman_with_ties_is_scipys(seed):
    import race_ranks

    errors = pd.DataFrame(np.random.default_rng(seed).integers(4, size=(12, 5)) / 10)
    expected = stats.friedmanchisquare(*errors.to_numpy().T)
    ranks = errors.rank(axis=1)
    tied = sum(float((c**3 - c).sum()) for c in (row.value_counts() for _, row in ranks.iterrows()))
    assert tied > 0
    chi, f = race_ranks.friedman_statistic(ranks.mean(), 12, tied)
    assert chi == pytest.approx(expected.statistic)
    assert race_ranks.friedman(errors) == pytest.approx(stats.f.sf(f, 4, 44))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_draw_has_no_row_twice_and_every_class_among_the_labels(task):
    import race_draws

    y = np.repeat(np.arange(7), [300, 90, 5, 1, 1, 1, 1])  # chance alone would miss some
    for seed in range(20):
        rows = race_draws.draw_rows(y, 10, task, np.random.default_rng(seed))
        assert len(rows) == min(len(y), 10 + race_draws.MOST_ASKED)
        assert len(set(rows)) == len(rows)
        assert set(rows) <= set(range(len(y)))
        assert task == "regression" or set(y[rows[:10]]) == set(range(7))
        again = race_draws.draw_rows(y, 10, task, np.random.default_rng(seed))
        np.testing.assert_array_equal(rows, again)


def test_every_script_of_the_runner_has_something_to_measure():
    import run

    for name in (*run.SCRIPTS, "scaling"):
        tree = ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"))
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {"measure", "main"} <= found, name


def test_publishing_keeps_what_is_around_the_markers(tmp_path):
    import run

    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nafter ×\n", encoding="utf-8"
    )
    for text in ("new", "newer"):
        run.publish_into(page, "speed", text)
        assert page.read_text(encoding="utf-8") == (
            f"before\n<!-- speed: begin -->\n\n{text}\n\n<!-- speed: end -->\nafter ×\n"
        )


def test_the_machine_is_not_named():
    import platform

    import speed_table

    assert not platform.node() or platform.node() not in speed_table.machine()
    assert "numpy" in speed_table.versions()


# ------------------------------------------------------------------------------------------------- refusals


def test_a_page_without_markers_is_refused(tmp_path):
    import run

    for words in ("nothing", "<!-- speed: end --> <!-- speed: begin -->"):
        (tmp_path / "page.md").write_text(words, encoding="utf-8")
        with pytest.raises(SystemExit, match="no markers"):
            run.publish_into(tmp_path / "page.md", "speed", "text")


def test_the_race_is_not_published_into_a_page_without_markers(tmp_path, monkeypatch):
    import race_report

    monkeypatch.setattr(race_report, "DOCS", tmp_path)
    monkeypatch.setattr(race_report, "tables", lambda ranks: "table")
    (tmp_path / "choosing.md").write_text("nothing", encoding="utf-8")
    (tmp_path / "ranks.csv").write_text("task,labels\nboth,10\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no markers"):
        race_report.publish(tmp_path)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("part", [["--only", "ridge"], ["--quick"]])
def test_a_part_of_a_run_is_not_published(part, monkeypatch):
    import run

    monkeypatch.setattr("sys.argv", ["run.py", "--publish", *part])
    monkeypatch.setattr(run, "run_all", lambda *given: pytest.fail("it ran"))
    with pytest.raises(SystemExit, match=f"whole run: leave out {part[0]}"):
        run.main()


def test_a_run_that_failed_is_not_published(tmp_path, monkeypatch):
    import run

    told = {}
    monkeypatch.setattr("sys.argv", ["run.py", "--publish", "--out", str(tmp_path)])
    monkeypatch.setattr(run, "run_all", lambda *given: ["bayesian"])
    monkeypatch.setattr(run, "write_speed", lambda *given: told.update(speed=given))
    monkeypatch.setattr(run, "write_scaling", lambda *given: told.update(scaling=given))
    with pytest.raises(SystemExit, match=r"Not measured: bayesian\..* The docs are as they were\."):
        run.main()
    assert told["speed"][-1] is told["scaling"][-1] is False
    assert "bayesian" not in told["speed"][1]


def test_masks_of_the_benchmark_of_shifts_are_as_they_say():
    import shift

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300)
    for mask in shift.MASKS:
        chance, known = shift.probabilities(X, y, mask, 80, np.random.default_rng(1))
        assert chance.sum() == pytest.approx(80)
        odds = chance / (1 - chance)
        if mask == "chance":
            assert np.ptp(chance) < 1e-12
        if mask == "label":
            np.testing.assert_allclose(
                np.unique(odds.round(9)), odds.min() * np.array([1.0, 2.25]), rtol=1e-6
            )
            assert np.ptp(known) == 0.0
        else:
            np.testing.assert_array_equal(chance, known)
    assert len(shift.all_tables([])) >= 8


@pytest.mark.filterwarnings("ignore")
def test_lines_of_the_benchmark_of_shifts():
    import shift

    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = X[:, 0] + rng.normal(size=240)
    lines = {line["way"]: line for line in shift.measure("t", X, y, "mild", 70, 0)}
    assert list(lines) == list(shift.DESIGNS)
    assert lines["factor 1.5"]["width"] > lines["as usual"]["width"]
    assert lines["random 20"]["kind"] == "exact"


def test_the_mixed_race_says_where_it_is_not_best(monkeypatch, tmp_path):
    import json

    import race_mixed

    lines = [
        {
            "task": task,
            "table": f"t{t}",
            "labels": labels,
            "draw": 0,
            "method": method,
            "error": error,
            "seconds": 1.0,
        }
        for task in ("regression", "classification")
        for t in range(6)
        for labels, errors in (
            (30, {"auto": 0.5, "CatBoost": 0.6}),
            (300, {"auto": 0.4, "CatBoost": 0.3 + 0.01 * t}),
        )
        for method, error in errors.items()
    ]
    lines.append(
        {**lines[0], "table": "half", "method": "auto"}
    )  # CatBoost has not run here: it does not count
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    monkeypatch.setattr(race_mixed, "LINES", file)
    text = race_mixed.report()
    assert "| **auto** | 1.0 (0.500) | 2.0 (0.400) | 1.0 |" in text
    assert "| tables, draws of each | 6, 1 | 6, 1 |  |" in text
    assert (
        "Numbers, 30 labels: **auto** has the best mean rank, 1.00; the best other is CatBoost with 2.00"
        in text
    )
    assert "Classes, 300 labels: **auto** does not have the best mean rank, 2.00" in text
    assert "ahead of it on 0 of 6 tables (Wilcoxon p 0.031)" in text


def test_the_mixed_tables_are_ten_of_each_kind():
    import mixed_tables

    tasks = [table.task for table in mixed_tables.TABLES.values()]
    assert tasks.count("regression") == tasks.count("classification") == 10
    packages = [table.package for table in mixed_tables.TABLES.values()]
    assert max(packages.count(name) for name in packages) <= 4


def test_completions_are_pooled_by_rubins_rules():
    """Three completions of two rows, by hand: within 1/12 on average, between (1 + 1/3) / 4."""
    import estimate_questions as questions
    import estimate_ways as ways

    rows = np.ones(2, dtype=bool)
    question = questions.Question(
        "mean",
        "mean",
        np.zeros(2),
        np.zeros(2),
        np.zeros(2),
        questions.analyse_mean(rows),
        pd.DataFrame,
        rows,
        questions.as_numbers,
    )
    completed = [np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 2.0])]
    within = np.mean([0.25, 0.0, 0.25])
    between = (1.0 + 1.0 / 3.0) * 0.25
    for of_these_rows, total in ((False, within + between), (True, between)):
        lower, upper = ways.pool(question, completed, of_these_rows=of_these_rows)
        degrees = 2.0 * (total / between) ** 2
        half = stats.t.ppf(0.975, degrees) * np.sqrt(total)
        np.testing.assert_allclose((lower, upper), (1.0 - half, 1.0 + half))


def test_complete_columns_are_analysed_as_textbooks_do():
    """Slopes and their robust variances are those of a general formula; the truth of a logistic slope is its root."""
    import estimate_questions as questions

    generator = np.random.default_rng(0)
    x = generator.normal(size=200)
    y = 2.0 * x + generator.normal(size=200) * (1.0 + x**2)
    design = np.column_stack([np.ones(200), x])
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ y
    meat = design.T @ (design * ((y - design @ beta) ** 2)[:, None])
    slope, variance = questions.analyse_slope(x)(y)
    np.testing.assert_allclose((slope, variance), (beta[1], (bread @ meat @ bread)[1, 1]))
    ones = (y > 0).astype(float)
    logistic, _ = questions.analyse_logistic(x)(ones)
    moved = [_log_likelihood(design, ones, logistic + step) for step in (-0.01, 0.0, 0.01)]
    assert moved[1] == max(moved)


def _log_likelihood(design, ones, slope):
    """Return the largest log likelihood of a logistic regression with a given slope."""
    from scipy.optimize import minimize_scalar

    def negative(constant):
        linear = constant + slope * design[:, 1]
        return np.sum(np.logaddexp(0.0, linear)) - np.sum(ones * linear)

    return -minimize_scalar(negative).fun


def test_estimates_go_on_where_they_stopped(tmp_path, monkeypatch):
    """A case whose records are in the file is not asked again; others are added to it."""
    import estimates

    asked = []

    def judge(case, read, packages):
        asked.append(case.key)
        about = {"table": case.table, "labels": case.n_labels, "draw": case.draw, "place": 0}
        record = about | {"question": "mean", "kind": "approximate", "held": True}
        return [record | {"way": way, "width": 1.0} for way in ("ours", "labels alone", "allowed")]

    monkeypatch.setattr(estimates, "judge", judge)
    lines = estimates.Lines(tmp_path / "lines.csv")
    cases = [estimates.Case("table", 30, draw, "fill", False) for draw in range(3)]
    readers = {"table": lambda: None}
    estimates.run_cases(cases[:2], readers, lines, jobs=1, minutes=1.0)
    records = estimates.run_cases(cases, readers, lines, jobs=1, minutes=1.0)
    assert asked == [("table", 30, 0), ("table", 30, 1), ("table", 30, 2)]
    assert len(records) == len(lines.read()) == 9
    assert estimates.tabulate(records).loc[("mean", 30), "ours"] == "1.000 (1.00)"
    assert len(estimates.run_cases(cases, readers, lines, jobs=1, minutes=0.0)) == 9


# ------------------------------------------------------------------------------------- what is raced is what fills


@pytest.mark.parametrize("race", ["race_mixed", "race_methods"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_races_ask_what_fill_asks(race, task):
    """A failure of a method is a line of the race, so that nobody would see that ours fails always."""
    from importlib import import_module

    rows = np.random.default_rng(0).normal(size=(60, 3))
    labels = rows[:30, 0]
    if task == "classification":
        labels = np.where(labels > 0.0, 1, 0)
    module = import_module(race)
    if race == "race_methods":
        answers = module._auto(task)(rows, labels, 0)
    else:
        if task == "classification":
            labels = np.where(labels, "yes", "no").astype(object)
        answers = module._auto(task, pd.DataFrame(rows, columns=list("abc")), labels, 0)
    assert len(answers) == 30
    assert len(set(answers.tolist())) > 1
