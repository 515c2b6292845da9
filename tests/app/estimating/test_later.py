"""Questions about rows that come later, asked of a fit that was saved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transduce.app.cli.app import app
from transduce.app.filling import fit_fill, load, save
from transduce.conformal import ByClass
from transduce.population import Sample, estimate_mean


def draw_rows(n, seed, shift=0.0):
    """Return rows of one source: a feature, a category, a number and a class."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n) + shift
    region = rng.choice(["north", "south", "west"], n)
    price = 3.0 + 2.0 * size + (region == "north") + rng.normal(size=n)
    sold = np.where(price + rng.normal(size=n) > 3.0, "yes", "no").astype(object)
    return pd.DataFrame({"size": size, "region": region, "price": price, "sold": sold})


def saved_table(target, n_labels=150):
    rows = draw_rows(400, seed=0)
    labelled = np.random.default_rng(1).permutation(400) < n_labels
    other = "sold" if target == "price" else "price"
    return rows.drop(columns=other).assign(**{target: rows[target].where(labelled, None)})


@pytest.fixture(scope="module")
def fitted():
    return fit_fill(saved_table("price"), "price", method="ridge")


LATER = draw_rows(300, seed=2)
UNLABELLED = LATER.drop(columns=["price", "sold"])


class TestExact:
    def test_an_estimate_is_that_of_the_science(self, fitted):
        """Kept labels elsewhere, and predictions of the fit at later rows."""
        answer = fitted.raw_answer(UNLABELLED)
        n_kept = len(fitted.kept_labels)
        is_kept = np.arange(300 + n_kept) >= 300
        y = np.concatenate([np.full(300, np.nan), fitted.kept_labels])
        f = np.concatenate([answer.values.astype(float), fitted.predict_kept()])
        by_hand = estimate_mean(y, f, sample=Sample(is_kept, elsewhere=is_kept)).iloc[0]
        line = fitted.estimate(UNLABELLED, "mean").iloc[0]
        for name in ("estimate", "lower", "upper", "n_labels", "worth"):
            assert line[name] == pytest.approx(by_hand[name])

    @pytest.mark.parametrize(
        ("what", "truth"),
        [
            ("mean", LATER["price"].mean()),
            ("total", LATER["price"].sum()),
            ("share above 4", (LATER["price"] > 4).mean()),
            ("median", LATER["price"].median()),
        ],
    )
    def test_the_interval_holds_the_number_of_the_later_rows(self, fitted, what, truth):
        line = fitted.estimate(UNLABELLED, what).iloc[0]
        assert line["lower"] <= truth <= line["upper"]

    def test_groups_differences_and_slopes(self, fitted):
        by_region = fitted.estimate(UNLABELLED, "mean", by="region")
        assert by_region.index.tolist() == ["north", "south", "west"]
        assert int(by_region["n_labels"].sum()) == len(fitted.kept_labels)
        slope = fitted.estimate(UNLABELLED, "slope of size").loc["size"]
        assert slope["lower"] <= np.polyfit(LATER["size"], LATER["price"], 1)[0] <= slope["upper"]
        on_price = fitted.estimate(UNLABELLED, "slope", outcome="size").loc["price"]
        truth = np.polyfit(LATER["price"], LATER["size"], 1)[0]
        assert on_price["lower"] <= truth <= on_price["upper"]
        differences = fitted.estimate(UNLABELLED, "difference", by="region")
        assert differences.index[0] == "north - the others"

    def test_later_rows_may_be_a_polars_frame(self, fitted):
        polars = pytest.importorskip("polars")
        by_region = fitted.estimate(polars.from_pandas(UNLABELLED), by="region")
        pd.testing.assert_frame_equal(by_region, fitted.estimate(UNLABELLED, by="region"))

    def test_a_group_of_the_saved_table_alone_is_not_asked_about(self, fitted):
        later = UNLABELLED[UNLABELLED["region"] != "west"]
        by_region = fitted.estimate(later, "mean", by="region")
        assert by_region.index.tolist() == ["north", "south"]

    def test_labels_of_later_rows_are_counted(self, fitted):
        line = fitted.estimate(LATER.drop(columns="sold"), "mean").iloc[0]
        assert line["estimate"] == pytest.approx(LATER["price"].mean())
        assert line["note"] == "Every label is known."

    def test_a_saved_fit_is_asked_like_the_first_one(self, tmp_path):
        table = saved_table("sold")
        save(tmp_path / "sold.transduce", table, "sold", method="ridge")
        first = fit_fill(table, "sold", method="ridge").estimate(UNLABELLED, "share", level=0.99)
        again = load(tmp_path / "sold.transduce").estimate(UNLABELLED, "share", level=0.99)
        pd.testing.assert_frame_equal(first, again)
        share = (LATER["sold"] == "yes").mean()
        assert again.loc["yes", "lower"] <= share <= again.loc["yes", "upper"]


class TestRefusals:
    def test_rows_that_differ_promise_nothing(self, fitted):
        later = draw_rows(300, seed=3, shift=2.0).drop(columns=["price", "sold"])
        line = fitted.estimate(later, "mean").iloc[0]
        assert line["kind"] == "none"
        assert line["note"].startswith("These rows differ from the labelled ones")

    def test_labels_by_class(self):
        table = saved_table("sold")
        by_class = fit_fill(table, "sold", method="ridge", labels=ByClass())
        with pytest.raises(ValueError, match="chosen by their class"):
            by_class.estimate(UNLABELLED, "share")

    def test_a_column_that_the_saved_table_lacks(self, fitted):
        later = UNLABELLED.assign(new="a")
        with pytest.raises(ValueError, match="no column 'new'"):
            fitted.estimate(later, "mean", by="new")

    def test_no_rows(self, fitted):
        with pytest.raises(ValueError, match="no rows"):
            fitted.estimate(UNLABELLED[:0])


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save("price.transduce", saved_table("price"), "price", method="ridge")
        UNLABELLED.to_csv("later.csv", index=False)

    def test_a_saved_fit(self, folder, fitted):
        words = ["estimate", "later.csv", "--model", "price.transduce", "--out", "e.csv"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert "Mean of price" in done.stdout
        line = fitted.estimate(UNLABELLED, "mean").iloc[0]
        assert pd.read_csv("e.csv")["lower"].iloc[0] == pytest.approx(line["lower"])

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ([], "--target, or a saved fit"),
            (["--model", "price.transduce", "--target", "price"], "leave --target out"),
            (["--model", "price.transduce", "--method", "ridge"], "its own method"),
            (["--model", "later.csv"], "is not a file that"),
            (["--model", "nothing.transduce"], "There is no file"),
        ],
    )
    def test_bad_usage_is_one_sentence(self, folder, words, message):
        done = CliRunner().invoke(app, ["estimate", "later.csv", *words])
        assert done.exit_code in (1, 2), done.output
        assert message in " ".join(done.stderr.split())
        assert "Traceback" not in done.output
