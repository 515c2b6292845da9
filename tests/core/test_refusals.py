"""Wrong features, labels and settings are refused in one sentence, by every estimator alike."""

from __future__ import annotations

import datetime
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from transduce import (
    BayesianTransducer,
    ConformalTransducer,
    RidgeConfidenceClassifier,
    RidgeConfidenceMachine,
    SpectralGraphTransducer,
    TransductiveBlend,
    TransductiveGPRegressor,
    TransductiveRidge,
    TransductiveRidgeClassifier,
)
from transduce.core.checks import LARGEST_SEED, as_float, check_random_state, check_whole
from transduce.core.validation import missing_mark
from transduce.core.words import LONGEST_SHOWN, in_a_sentence, quoted, shortened
from transduce.methods.spectral_graph import neighbor_graph

N_ROWS = 40
N_LABELS = 24
NUMBERS = {
    "gaussian process": lambda: TransductiveGPRegressor(matching=0, n_restarts=0, random_state=0),
    "ridge": TransductiveRidge,
    "machine": RidgeConfidenceMachine,
    "blend": lambda: TransductiveBlend(task="regression", random_state=0),
    "conformal": lambda: ConformalTransducer(TransductiveRidge(), confidence=0.7, random_state=0),
}
CLASSES = {
    "ridge": TransductiveRidgeClassifier,
    "machine": RidgeConfidenceClassifier,
    "bayesian": lambda: BayesianTransducer(random_state=0),
    "graph": lambda: SpectralGraphTransducer(random_state=0),
    "blend": lambda: TransductiveBlend(task="classification", random_state=0),
    "conformal": lambda: ConformalTransducer(
        TransductiveRidgeClassifier(), confidence=0.7, random_state=0
    ),
}


def rows():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


def numbers():
    y = rows() @ [1.0, -0.5, 0.2]
    y[N_LABELS:] = np.nan
    return y


def classes(one="a", other="b"):
    y = np.empty(N_ROWS, dtype=object)
    for row, number in enumerate(rows()[:, 0]):
        y[row] = one if number > 0 else other
    y[N_LABELS:] = None
    return y


def refuses(estimator, X, y, words):
    with pytest.raises(ValueError, match=words) as caught:
        estimator.fit(X, y)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 400


def column_of(values):
    frame = pd.DataFrame(rows(), columns=list("abc"))
    frame["odd"] = values
    return frame


@pytest.mark.parametrize("name", NUMBERS)
def test_two_columns_of_one_name(name):
    frame = pd.DataFrame(rows(), columns=["a", "a", "b"])
    refuses(NUMBERS[name](), frame, numbers(), "X has 2 columns called 'a': give each")


def test_two_columns_of_one_name_in_a_graph():
    with pytest.raises(ValueError, match="X has 2 columns called 'a'"):
        neighbor_graph(pd.DataFrame(rows(), columns=["a", "a", "b"]))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pd.period_range("2000-01", periods=N_ROWS, freq="M"), "column 'odd' holds dates"),
        ([datetime.time(1)] * N_ROWS, "column 'odd' holds dates"),
        (pd.interval_range(0, N_ROWS, periods=N_ROWS), "objects of the type Interval"),
        ([{}] * N_ROWS, "objects of the type dict"),
        ([[1]] * N_ROWS, "objects of the type list"),
        ([b"x"] * N_ROWS, "objects of the type bytes"),
        ([object()] * N_ROWS, "objects of the type object"),
        ([1j] * N_ROWS, "features must be real numbers"),
        (
            pd.Series([10**400, *range(N_ROWS - 1)], dtype=object),
            "too large for double precision in column 'odd'",
        ),
    ],
)
def test_cells_that_are_no_numbers(values, words):
    refuses(TransductiveRidge(), column_of(values), numbers(), words)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_masked_cell_is_missing(name):
    X = np.ma.array(rows(), mask=np.zeros((N_ROWS, 3), dtype=bool))
    X[3, 1] = np.ma.masked
    refuses(NUMBERS[name](), X, numbers(), "Input X contains NaN in column 1")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (None, "Expected 2D array, got scalar array instead. X is of the type NoneType"),
        ({}, "X is of the type dict"),
        ([1.0, 2.0], "Expected 2D array, got 1D array instead"),
        ([[1.0, 2.0], [3.0]], "The rows of X differ in length"),
    ],
)
def test_what_is_no_table(X, words):
    refuses(TransductiveRidge(), X, [1.0, None], words)


@pytest.mark.parametrize("name", NUMBERS)
def test_rows_named_by_two_levels_go_with_plain_labels(name):
    index = pd.MultiIndex.from_product([range(N_ROWS), ["x"]])
    frame = pd.DataFrame(rows(), index=index)
    model = NUMBERS[name]().fit(frame, pd.Series(numbers()))
    assert np.isfinite(model.answer_.values).all()


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_cannot_be_labels(name):
    X, y = rows(), numbers()
    refuses(NUMBERS[name](), X, y + 1j, "Complex data not supported: labels must be real")
    huge = y.astype(object)
    huge[0] = 10**400
    refuses(NUMBERS[name](), X, huge, "labels are too large for double precision")
    refuses(NUMBERS[name](), X, [[1.0], [2.0, 3.0]], "y holds lists of different lengths")


@pytest.mark.parametrize("name", CLASSES)
def test_classes_that_cannot_be_labels(name):
    X = rows()
    words = "Class labels must be text, numbers or booleans, but y holds"
    for one, other in [((1,), (2,)), (10**400, 1), (1j, 2j)]:
        refuses(CLASSES[name](), X, classes(one, other), words)
    refuses(CLASSES[name](), X, classes("\ud800", "b"), "holds half of a character")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_keeps_the_nul_at_its_end(name):
    model = CLASSES[name]().fit(rows(), classes("a", "a\0"))
    assert set(model.transduction_) == {"a", "a\0"}
    assert model.classes_.tolist() == ["a", "a\0"]
    assert set(model.predict(rows())) == {"a", "a\0"}
    assert model.score(rows(), classes("a", "a\0")) > 0.6


@pytest.mark.parametrize("name", CLASSES)
def test_long_classes_take_no_room_in_every_row(name):
    long = "x" * 5000
    model = CLASSES[name]().fit(rows(), classes(long, "b"))
    assert set(model.transduction_) == {long, "b"}
    assert model.answer_.values.nbytes <= 8 * len(model.answer_)
    short = CLASSES[name]().fit(rows(), classes("x", "b"))
    same = np.where(short.transduction_ == "x", long, short.transduction_)
    np.testing.assert_array_equal(model.transduction_, same)


@pytest.mark.few(8)
@pytest.mark.parametrize("factor", [1e155, 1e200, 1e299, 1e-200, 1e-300])
@pytest.mark.parametrize("name", NUMBERS)
def test_labels_of_any_size(name, factor):
    X, y = rows(), numbers()
    plain, scaled = NUMBERS[name]().fit(X, y), NUMBERS[name]().fit(X, y * factor)
    np.testing.assert_allclose(scaled.answer_.values / factor, plain.answer_.values, rtol=1e-6)
    assert scaled.score(X, y * factor) == pytest.approx(plain.score(X, y), rel=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_equal_labels_have_finite_standard_errors(name):
    y = np.where(np.isnan(numbers()), np.nan, 5.0)
    model = NUMBERS[name]()
    with pytest.warns() if name == "gaussian process" else nullcontext():
        model.fit(rows(), y)
    np.testing.assert_allclose(model.answer_.values, 5.0)
    errors = model.answer_.standard_errors
    assert errors is None or np.isfinite(errors).all()


# ------------------------------------------------------------------------------------ -1 and "" among the labels


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("mark", [-1, ""])
def test_a_class_that_looks_like_a_missing_label(name, mark):
    y = np.where(rows()[:, 0] > 0, *(("a", "b") if mark == "" else (0, 1))).astype(object)
    y[N_LABELS:] = mark
    with pytest.warns(
        UserWarning, match=f"16 of 40 labels are {mark!r}: .* missing_label={mark!r}"
    ):
        CLASSES[name]().fit(rows(), y)
    model = CLASSES[name]().set_params(missing_label=mark).fit(rows(), y)
    assert len(model.answer_) == N_ROWS - N_LABELS


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_looks_like_a_missing_label(name):
    y = np.abs(rows()[:, 0]) + 1.0
    y[N_LABELS:] = -1
    with pytest.warns(UserWarning, match="missing_label=-1"):
        NUMBERS[name]().fit(rows(), y)


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        ([0, 1, -1], -1),
        ([0.0, 2.5, 7.0, -1.0], -1),
        (["a", "b", ""], ""),
        (["a", " "], " "),
        ([-1, 1], None),  # the two classes of the papers
        ([-1, 0], None),
        ([-2, -1, 0, 1], None),
        ([True, False], None),
        (["a", "b"], None),
        (["-1", "a"], None),
        (["a", "-1", "b"], "-1"),
        (["a", "b", -1], -1),
        (["0", "1", "-1"], "-1"),
        (["-2", "-1", "0", "1"], None),
        (["", ""], None),
        ([1j, -1], None),
    ],
)
def test_which_labels_look_missing(labels, mark):
    array = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    assert missing_mark(array) == mark
    if all(isinstance(label, str) for label in labels):
        assert missing_mark(np.array(labels)) == mark


# --------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "x", True, np.random.default_rng(0)])
@pytest.mark.parametrize("make", [TransductiveGPRegressor, TransductiveBlend])
def test_seeds(make, seed):
    refuses(
        make(random_state=seed), rows(), numbers(), "random_state must be a whole number from 0"
    )


def test_seeds_that_are_taken():
    assert check_random_state(LARGEST_SEED).randint(10) >= 0
    random = np.random.RandomState(3)
    assert check_random_state(random) is random
    assert check_random_state(None) is check_random_state(np.random)


def test_whole_numbers_that_no_array_holds():
    assert as_float(-(10**400)) == -np.inf
    with pytest.raises(ValueError, match="n must be at most 9223372036854775807; got"):
        check_whole("n", 2**63, least=0)


# ---------------------------------------------------------------------------------------------- shortened texts


def test_texts_in_messages_are_short():
    text = "a" * 1_000_000
    assert shortened(text, 10) == "aaaaaaaaa…"
    assert len(quoted(text)) == LONGEST_SHOWN + 2
    assert len(quoted([text])) == LONGEST_SHOWN
    assert quoted(np.str_("a")) == "'a'"
    assert quoted(np.float64(2.5)) == "2.5"
    assert quoted(10**5000) == "a whole number of 16,610 bits"
    assert "\n" not in quoted(np.ones((30, 30)))
    assert in_a_sentence(ValueError("one\ntwo")) == "one"
    assert in_a_sentence(MemoryError()) == "MemoryError"


@pytest.mark.parametrize("name", CLASSES)
def test_a_long_class_in_a_refusal(name):
    y = classes("x" * 1_000_000, "x" * 1_000_000)
    refuses(CLASSES[name](), rows(), y, r"one class only \('xxx")


def test_folds_without_labels_point_to_what_hides_labels():
    """Where rows are cut into folds, one may have no label: the error names what to use instead."""
    X = np.arange(40.0)[:, None]
    numbers = np.where(np.arange(40) < 10, X[:, 0], np.nan)
    model = TransductiveRidge().fit(X, numbers)
    with pytest.raises(ValueError, match="use TransductiveSearchCV or cross_val_transduce"):
        model.score(X[20:], numbers[20:])
    classes = np.where(np.arange(40) < 10, np.where(X[:, 0] < 5, "a", "b"), None)
    with pytest.raises(ValueError, match=r"None of these rows has a label.*TransductiveSearchCV"):
        TransductiveRidgeClassifier().fit(X, classes).score(X[20:], classes[20:])
