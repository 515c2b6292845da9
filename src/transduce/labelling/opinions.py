"""Answers at all rows: a first opinion after every label, and a second one while the person pauses."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from transduce.core.types import AnyArray, Array, Mask
from transduce.labelling.prepared import N_COMPONENTS, MaybeSparse, Prepared
from transduce.labelling.session import FEWEST_NUMBERS
from transduce.labelling.state import Answers
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.spectral_graph.cut import Cut, KnownLabels, cut_graph, default_label_weight

MOST_REGIONS = 1_000  # rows that get an interval at once; the others when there is time
MOST_PARTS = 500  # parts of the graph whose labels are spread over it
MOST_TAUGHT = 1_000  # labels, the last ones, that answer rows which the graph does not reach
RIDGE = 1.0
BLOCK = 16_384
MOST_VALUES = 20_000  # up to so many rows all values are renewed at once
MOST_ROWS = 50_000  # up to so many rows a blend is a second opinion on classes
FEWEST_LABELS = 10  # of which a second opinion is made


class ClassOpinion:
    """Classes at all rows by the spectral graph transducer, on a spectrum that is computed once."""

    def __init__(self, prepared: Prepared) -> None:
        self._spectrum, self._unit = prepared.spectrum, prepared.unit

    def answer(self, codes: Mapping[int, int], shares: Array | None = None) -> Answers:
        """Return the answers that follow from labels. Shapes: shares (n_classes,)."""
        n = len(self._spectrum.components)
        values, certain = np.full(n, -1, dtype=np.int16), np.full(n, np.nan)
        rows, labels = (np.array([*part], dtype=np.int64) for part in (codes, codes.values()))
        source = "nobody: labels of two classes are needed"
        if len(set(labels.tolist())) > 1:
            values, certain = self._by_graph(rows, labels, shares)
            source = "the spectral graph transducer"
            far = np.flatnonzero(values < 0)
            if len(far) and self._unit.shape[1]:
                values[far], certain[far] = _far_answers(self._unit, rows, labels, far)
                source = f"{source}, and by ridge regression where no neighbour leads to a label"
        values[rows] = labels
        return Answers(values, certain, source)

    def _by_graph(self, rows: AnyArray, labels: AnyArray, shares: Array | None) -> tuple[AnyArray, Array]:
        """Return classes and margins at all rows, -1 and NaN where no label reaches."""
        kept = self._in_large_parts(rows)
        if len(set(labels[kept].tolist())) < 2:
            kept = np.ones(len(rows), dtype=bool)
        cut, classes = self._cut(rows[kept], labels[kept], shares)
        best, certain = winners(cut.scores, cut.thresholds)
        return np.where(np.isnan(certain), -1, classes[best]).astype(np.int16), certain

    def _in_large_parts(self, rows: AnyArray) -> Mask:
        """Return which labels the graph takes: all, or those in its largest parts; each part adds a dimension."""
        part = self._spectrum.components[rows]
        known = np.unique(part)
        if len(known) <= MOST_PARTS:
            return np.ones(len(rows), dtype=bool)
        sizes = np.bincount(self._spectrum.components)[known]
        return np.isin(part, known[np.argsort(-sizes, kind="stable")[:MOST_PARTS]])

    def _cut(self, rows: AnyArray, labels: AnyArray, shares: Array | None) -> tuple[Cut, AnyArray]:
        """Return scores of classes at rows, and the classes, as `SpectralGraphTransducer.relabel` computes them."""
        classes, counts = np.unique(labels, return_counts=True)
        prior = counts / counts.sum() if shares is None else shares[classes] / shares[classes].sum()
        held = slice(None) if len(classes) > 2 else slice(1, 2)
        members = labels[:, None] == classes[held]
        sides = np.where(members, counts[held], len(rows) - counts[held])
        costs, weight = len(rows) / (2.0 * sides), default_label_weight(len(self._spectrum.components))
        known = KnownLabels(rows, members, costs, prior[held], weight)
        return cut_graph(self._spectrum, known, N_COMPONENTS), classes


def winners(scores: Array, thresholds: Array) -> tuple[AnyArray, Array]:
    """Give the best class at each row and its lead over the second, NaN where scores are; in parts that fit a cache."""
    best, lead = np.zeros(len(scores), dtype=np.int16), np.empty(len(scores))
    for start in range(0, len(scores), BLOCK):
        part = slice(start, start + BLOCK)
        margins = np.ascontiguousarray((scores[part] - thresholds).T)
        if len(margins) == 1:  # the second of two classes
            margins = np.concatenate([-margins, margins])
        top, second = margins[0].copy(), np.full(margins.shape[1], -np.inf)
        for place, own in enumerate(margins[1:], start=1):
            np.maximum(second, np.minimum(top, own), out=second)
            best[part][own > top] = place
            np.maximum(top, own, out=top)
        lead[part] = top - second
    return best, lead


def _far_answers(unit: MaybeSparse, rows: AnyArray, codes: AnyArray, far: AnyArray) -> tuple[AnyArray, Array]:
    """Return classes and margins at rows that the graph does not tie to a label: ridge regression on their features."""
    rows, codes = rows[-MOST_TAUGHT:], codes[-MOST_TAUGHT:]
    classes, places = np.unique(codes, return_inverse=True)
    own = unit[rows]
    kernel = 1.0 + sp.csr_array(own @ own.T).toarray().astype(float)
    kernel[np.diag_indices_from(kernel)] += RIDGE
    weights = np.linalg.solve(kernel, np.eye(len(classes))[places])
    scores = np.asarray(unit[far] @ (own.T @ weights)) + weights.sum(axis=0)
    if len(classes) == 1:
        return np.full(len(far), classes[0]), np.zeros(len(far))
    best, lead = winners(scores, np.zeros(1))
    return classes[best], lead


class NumberOpinion:
    """Numbers at all rows by ridge regression, with intervals by the confidence machine at some of them."""

    def __init__(self, prepared: Prepared, confidence: float, seed: int) -> None:
        self._matrix, self._confidence = prepared.matrix, confidence
        n, rng = len(self._matrix), np.random.default_rng([seed, 1])
        some = self._matrix[rng.choice(n, min(n, 1000), replace=False)]
        distances = pairwise_distances(some)[np.triu_indices(len(some), 1)]
        self._width = float(np.median(distances[distances > 0.0])) if np.any(distances > 0.0) else 1.0
        self._sample = np.sort(rng.choice(n, min(n, MOST_REGIONS), replace=False))
        self._values = np.full(n, np.nan)

    def machine(self, n_labels: int) -> tuple[float, float]:
        """Return width and level of the machine: a level that so few labels can support."""
        return self._width, min(self._confidence, (n_labels - 1) / (n_labels + 1))

    def answer(self, labels: Mapping[int, float], *, everywhere: bool = False) -> Answers:
        """Return the answers that follow from labels."""
        n, rows = len(self._matrix), np.array([*labels], dtype=np.int64)
        y = np.array([*labels.values()], dtype=float)
        values, lower, upper = np.full((3, n), np.nan)
        source = f"nobody: {FEWEST_NUMBERS} labels are needed"
        if len(rows) >= FEWEST_NUMBERS:
            others = np.setdiff1d(self._sample, rows)
            used, labelled = np.concatenate([rows, others]), np.append(y, np.full(len(others), np.nan))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = _machine(*self.machine(len(rows))).fit(self._matrix[used], labelled)
            asked = np.arange(n) if everywhere or n <= MOST_VALUES else others
            for start in range(0, len(asked), MOST_VALUES):
                part = asked[start : start + MOST_VALUES]
                self._values[part] = model.predict(self._matrix[part])
            if len(others) and model.answer_.regions is not None:
                lower[others], upper[others] = model.answer_.regions.hull().T
            values = self._values.copy()
            source = "ridge regression and the confidence machine"
        values[rows] = y
        return _with_intervals(values, lower, upper, source)


def _machine(width: float, confidence: float) -> RidgeConfidenceMachine:
    return RidgeConfidenceMachine(width=width, confidence=confidence, standardize=False)


def _with_intervals(values: Array, lower: Array, upper: Array, source: str) -> Answers:
    """Return answers that are the more certain, the narrower their intervals are."""
    with np.errstate(invalid="ignore"):
        return Answers(values, lower - upper, source, lower, upper)


@dataclass(frozen=True, eq=False)
class Question:
    """Labels that a second opinion is to be made of."""

    version: int  # of the labels
    task: str  # what they are
    rows: AnyArray  # (l,) labelled rows
    labels: AnyArray  # (l,) their places in the list of classes, or their numbers
    machine: tuple[float, float] = (1.0, 0.9)  # width and level of the confidence machine
    shares: Array | None = None  # (n_classes,) of the classes in rows without a label; None: estimate them


class SecondOpinion:
    """Answers questions one at a time, in a process that starts with the first. Shapes: matrix (n, d)."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix
        self._process: subprocess.Popen[bytes] | None = None
        self._asking: threading.Thread | None = None
        self._answers: tuple[int, Answers] | None = None

    @property
    def busy(self) -> bool:
        """Whether a question is being worked on."""
        return self._asking is not None and self._asking.is_alive()

    def ask(self, question: Question) -> bool:
        """Begin to work on a question, unless another is being worked on; return whether one is."""
        if self.busy:
            return True
        fresh = self._process is None or self._process.poll() is not None
        try:
            process = self._start() if fresh else self._process
        except OSError:  # the system has no room for a process: the first opinion stays
            return False
        self._asking = threading.Thread(target=self._converse, args=(process, question, fresh), daemon=True)
        self._asking.start()
        return True

    def answer(self, version: int) -> Answers | None:
        """Return the answers for these labels if they are ready."""
        return self._answers[1] if self._answers is not None and self._answers[0] == version else None

    @property
    def shares(self) -> Array | None:
        """The shares of the classes that the last answers estimated."""
        return None if self._answers is None else self._answers[1].shares

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process; it ends when its input is closed, so also when the session is killed."""
        self.close()
        code = "from transduce.labelling.opinions import serve_opinions; serve_opinions()"
        command, environment = [sys.executable, "-c", code], {**os.environ, "OMP_NUM_THREADS": "1"}
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment, start_new_session=True
        )
        return self._process

    def _converse(self, process: subprocess.Popen[bytes], question: Question, fresh: bool) -> None:
        """Hand a question over, and wait for the answers."""
        assert process.stdin is not None
        assert process.stdout is not None
        # Where the process was ended, the first opinion stays.
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            for message in (self._matrix, question) if fresh else (question,):
                pickle.dump(message, process.stdin)
            process.stdin.flush()
            answers = pickle.load(process.stdout)
            if answers is not None:
                self._answers = (question.version, answers)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            if self._asking is not None:
                self._asking.join()
            self._process.communicate()
            self._process = None


def serve_opinions() -> None:
    """Answer the questions that come in until the input is closed; the first message is the matrix."""
    replies, sys.stdout = sys.stdout.buffer, sys.stderr  # what a library prints is no reply
    warnings.simplefilter("ignore")
    with suppress(EOFError):
        matrix = pickle.load(sys.stdin.buffer)
        while True:
            question = pickle.load(sys.stdin.buffer)
            try:
                opinion = _second_numbers if question.task == "numbers" else _second_classes
                answers = opinion(matrix, question)
            except Exception:  # whatever goes wrong there: the first opinion stays
                answers = None
            pickle.dump(answers, replies)
            replies.flush()


def _second_numbers(matrix: Array, known: Question) -> Answers:
    """Return numbers at all rows with their intervals."""
    y, lower, upper = np.full((3, len(matrix)), np.nan)
    y[known.rows] = known.labels
    model = _machine(*known.machine).fit(matrix, y)
    assert model.answer_.regions is not None
    lower[model.answer_.rows], upper[model.answer_.rows] = model.answer_.regions.hull().T
    values = np.asarray(model.transduction_, dtype=float)
    return _with_intervals(values, lower, upper, "ridge regression and the confidence machine, at all rows")


def _second_classes(matrix: Array, known: Question) -> Answers:
    """Return classes at all rows by the blend, its probabilities corrected for how labels came about."""
    from transduce.conformal.shares import estimate_shares
    from transduce.ensemble import TransductiveBlend

    values, certain = np.full(len(matrix), -1, dtype=np.int16), np.full(len(matrix), np.nan)
    values[known.rows] = known.labels
    codes = np.full(len(matrix), None, dtype=object)
    codes[known.rows] = known.labels.astype(int)
    blend = TransductiveBlend(task="classification", standardize=False, random_state=0).fit(matrix, codes)
    assert blend.answer_.probabilities is not None
    classes = np.asarray(blend.classes_, dtype=np.int64)
    folds, shares = getattr(blend, "out_of_fold_", None), None
    if known.shares is None:  # labels were chosen by their class
        counts = np.bincount(known.labels.astype(np.int64))
        told = None if folds is None else folds["blend"].dropna()
        own = None if told is None else (told.to_numpy(), np.searchsorted(classes, values[told.index]))
        shares = np.zeros(len(counts))
        shares[classes] = estimate_shares(blend.answer_.probabilities, counts[classes], hidden=own).shares
        known = replace(known, shares=shares)
    chances = corrected(blend.answer_.probabilities, classes, known)
    best, certain[blend.answer_.rows] = winners(chances, np.zeros(1))
    values[blend.answer_.rows] = classes[best]
    names = ", ".join(str(name).replace("_", " ") for name in blend.weights_.index)
    hidden = None
    if folds is not None:
        told, hidden = folds["blend"], np.full(len(matrix), -1, dtype=np.int16)
        hidden[told.index] = classes[winners(corrected(told.to_numpy(), classes, known), np.zeros(1))[0]]
    return Answers(values, certain, f"a blend of {names}", hidden=hidden, shares=shares)


def corrected(probabilities: Array, classes: AnyArray, known: Question) -> Array:
    """Return probabilities for rows whose classes have other shares than the labels."""
    # A search labels mostly hits: by their labels nearly all rows would be hits. Bayes' rule puts it right.
    assert known.shares is not None
    labelled = np.bincount(known.labels.astype(np.int64), minlength=len(known.shares))[classes]
    chances = probabilities * (known.shares[classes] / labelled)
    total = chances.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0.0, chances / np.where(total > 0.0, total, 1.0), probabilities))
