"""Labels that were chosen by their class."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from transduce import ConformalTransducer
from transduce.conformal import ByClass
from transduce.conformal.miscoverage import ClassMiscoverage

CLASSES = np.array(["no", "yes"])


def case_control(seed=0, n_each=60, m=300, share=0.1, apart=2.0):
    """As many labels of each class, of rows of which a share is of the second; features, labels, and the truth."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(2 * n_each) % 2, rng.random(m) < share).astype(int)
    X = rng.normal(size=(len(codes), 2)) + apart * codes[:, None]
    y = np.where(np.arange(len(codes)) < 2 * n_each, CLASSES[codes], None)
    return X, y, CLASSES[codes]


def fitted(labels, y=None, **settings):
    X, labels_of, _ = case_control()
    inner = settings.pop("estimator", LogisticRegression())
    model = ConformalTransducer(inner, labels=labels, random_state=0, **settings)
    return model.fit(X, labels_of if y is None else y)


@pytest.fixture(scope="module")
def estimated():
    return fitted(ByClass())


@pytest.fixture(scope="module")
def given():
    return fitted(ByClass({"yes": 0.1, "no": 0.9}))


def scores_of(model, X, y):
    """Nonconformity at calibration rows, at all classes of the unlabelled rows, and the calibration rows' classes."""
    P = model.estimator_.predict_proba(X)
    held = model.calibration_rows_
    missing = np.flatnonzero([label is None for label in y])
    codes = np.searchsorted(CLASSES, y[held].astype(str))
    return P, held, missing, codes


class TestExact:
    def test_estimated_shares_compare_within_classes_by_what_was_learned(self, estimated):
        X, y, _ = case_control()
        P, held, missing, codes = scores_of(estimated, X, y)
        for c in range(2):
            own = 1.0 - P[held[codes == c], c]
            p = [(1 + np.sum(own >= 1.0 - P[row, c] - 1e-12)) / (len(own) + 1) for row in missing]
            np.testing.assert_allclose(estimated.answer_.p_values[:, c], p)

    def test_given_shares_average_the_p_values_of_the_classes(self, given):
        X, y, _ = case_control()
        P, held, missing, codes = scores_of(given, X, y)
        visible = np.setdiff1d(np.arange(120), held)
        p = np.bincount(np.searchsorted(CLASSES, y[visible].astype(str))) / len(visible)
        Q = P * np.array([0.9, 0.1]) / p
        Q /= Q.sum(axis=1, keepdims=True)
        scores = 1.0 - Q[held, codes]
        for c in range(2):
            expected = np.zeros(len(missing))
            for k, share in enumerate([0.9, 0.1]):
                own = scores[codes == k]
                above = [np.sum(own >= 1.0 - Q[row, c] - 1e-12) for row in missing]
                expected += share * (1 + np.array(above)) / (len(own) + 1)
            np.testing.assert_allclose(given.answer_.p_values[:, c], expected)

    def test_answers_are_those_of_the_shares(self, given):
        X, y, _ = case_control()
        shares = given.class_shares_
        missing = np.flatnonzero([label is None for label in y])
        P = given.estimator_.predict_proba(X[missing]) ** shares.power
        best = (P * shares.shares / shares.labels).argmax(axis=1)
        np.testing.assert_array_equal(given.answer_.values, CLASSES[best])
        np.testing.assert_array_equal(given.predict(X[missing]), CLASSES[best])
        np.testing.assert_allclose(given.predict_proba(X[missing]), given.answer_.probabilities)

    def test_the_bound_on_the_column_holds_for_any_shares(self):
        law = ClassMiscoverage(60, (), (19, 29), ranks=(18, 27))
        most = law.quantile(0.9)
        for of_first in (0, 20, 40, 60):
            parts = law.of_class(0, of_first), law.of_class(1, 60 - of_first)
            total = np.convolve(*(part.probabilities for part in parts))
            assert np.cumsum(total)[most] >= 0.9
        assert most < 30


class TestGuarantee:
    def test_it_is_exact_within_every_class_if_shares_are_estimated(self, estimated):
        found = estimated.guarantee_
        assert (found.kind, found.within) == ("exact", "class")
        assert found.condition == "if rows were labelled at random within each class"
        assert found.outside.at_most < 100
        assert found.wrong is None

    def test_it_is_exact_over_all_rows_if_the_given_shares_are_right(self, given, estimated):
        found = given.guarantee_
        assert (found.kind, found.within, found.outside) == ("exact", "", None)
        assert "given shares are right" in found.condition
        assert given.answer_.label_sets.sum() <= estimated.answer_.label_sets.sum()

    def test_shares_that_are_given_may_be_used_within_classes(self):
        model = fitted(ByClass({"yes": 0.1, "no": 0.9}), label_conditional=True)
        assert model.guarantee_.within == "class"
        assert model.guarantee_.outside is not None

    def test_nothing_is_tested_and_rows_are_not_weighed(self, estimated):
        assert estimated.exchangeability_ is None
        assert estimated.estimated_odds_ is None

    def test_shares_come_with_intervals(self, estimated):
        frame = estimated.class_shares_.to_frame()
        assert frame["lower"]["yes"] <= frame["share"]["yes"] <= frame["upper"]["yes"] < 0.5
        np.testing.assert_allclose(estimated.mean_["estimate"].sum(), 1.0)

    @pytest.mark.filterwarnings("ignore::transduce.core.guarantee.TooFewLabelsWarning")
    def test_a_class_with_few_labels_is_in_every_set(self):
        X, y, _ = case_control()
        y[[2 * i + 1 for i in range(55)]] = None  # 5 labels are "yes"
        model = ConformalTransducer(LogisticRegression(), labels=ByClass(), random_state=0).fit(
            X, y
        )
        assert model.guarantee_.n_short == 1
        assert model.answer_.label_sets[:, 1].all()
        assert model.answer_.unseen is None  # classes that were chosen by are known
        y[[2 * i for i in range(55)]] = None
        model.fit(X, y)
        assert model.guarantee_.reasons == (
            "No class has the 13 labels that 90 % takes within it.",
        )


class TestLimits:
    @pytest.mark.parametrize(
        "inner", [LinearSVC(), KNeighborsClassifier(1)], ids=["scores", "sure"]
    )
    def test_estimators_without_smooth_probabilities(self, inner):
        model = fitted(ByClass(), estimator=inner, refit=True)
        assert 0.0 < model.class_shares_.shares[1] < 0.35
        assert len(model.answer_) == 300

    def test_scores_alone_do_not_make_a_class_with_few_labels_frequent(self):
        X, y, truth = case_control()
        y[[2 * i + 1 for i in range(58)]] = None  # 60 labels are "no" and 2 are "yes"
        with warnings.catch_warnings(action="ignore"):
            model = ConformalTransducer(LinearSVC(), labels=ByClass(), random_state=0).fit(X, y)
        assert model.class_shares_.shares[1] < 0.5
        assert np.mean(model.answer_.values[-300:] == truth[-300:]) > 0.8

    def test_no_row_without_a_label(self):
        _, _, truth = case_control()
        assert len(fitted(ByClass(), truth).answer_) == 0

    def test_numbers_are_classes_by_their_names(self):
        X, y, _ = case_control()
        y = np.array([np.nan if one is None else float(one == "yes") for one in y])
        model = ConformalTransducer(
            LogisticRegression(), labels=ByClass({"1": 0.1, 0: 0.9}), random_state=0
        )
        np.testing.assert_allclose(model.fit(X, y).class_shares_.shares, [0.9, 0.1])

    def test_booleans_and_single_precision(self):
        X, y, _ = case_control()
        y = np.array([None if one is None else one == "yes" for one in y], dtype=object)
        shares = {"true": np.float32(0.1), False: 0.9}
        model = ConformalTransducer(LogisticRegression(), labels=ByClass(shares), random_state=0)
        np.testing.assert_allclose(model.fit(X, y).class_shares_.shares, [0.9, 0.1], atol=1e-6)

    @pytest.mark.filterwarnings("ignore::transduce.core.guarantee.TooFewLabelsWarning")
    def test_shares_that_were_rounded_are_scaled(self):
        design = ByClass({"no": 0.33, "yes": 0.33, "perhaps": 0.33})
        with pytest.raises(
            ValueError, match="'perhaps' has a share, and no label is of that class"
        ):
            fitted(design)
        X, y, _ = case_control()
        model = ConformalTransducer(
            LogisticRegression(), labels=design, classes=["perhaps"], random_state=0
        )
        np.testing.assert_allclose(model.fit(X, y).class_shares_.shares, 1 / 3)
        assert model.answer_.label_sets.shape == (300, 3)


class TestRefusals:
    @pytest.mark.parametrize(
        ("shares", "match"),
        [
            ({"yes": 0.1, "no": 0.8}, "must sum to 1, and these sum to 0.9"),
            ({"yes": -0.1, "no": 1.1}, "The share of class 'yes' must be a number from 0 to 1"),
            ({"yes": "many", "no": 1.0}, "must be a number from 0 to 1"),
            ({}, "as in"),
            ([0.1, 0.9], "as in"),
        ],
    )
    def test_shares_that_are_none(self, shares, match):
        with pytest.raises(ValueError, match=match):
            ByClass(shares)

    def test_a_class_without_a_share(self):
        with pytest.raises(ValueError, match="The shares lack class 'no'"):
            fitted(ByClass({"yes": 1.0}))

    @pytest.mark.parametrize("more", [{"within": [0]}, {"order": [0]}, {"sensitivity": 2.0}])
    def test_what_does_not_go_with_classes(self, more):
        with pytest.raises(ValueError, match="leave out within, order and sensitivity"):
            ByClass(**more)

    def test_numbers(self):
        from sklearn.linear_model import Ridge

        X, _, _ = case_control()
        with pytest.raises(ValueError, match="are classes, and these are numbers"):
            ConformalTransducer(Ridge(), labels=ByClass()).fit(
                X, np.where(np.arange(420) < 120, X[:, 0], np.nan)
            )
