"""What proposes rows and answers them: the likeliest, those that teach most, and opinions at all of them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.metrics import pairwise_distances

from transduce.core.types import AnyArray, Array, Mask
from transduce.labelling.journal import Label
from transduce.labelling.prepared import N_COMPONENTS, GraphFeatures, MaybeSparse, Prepared
from transduce.labelling.session import FEWEST_NUMBERS
from transduce.labelling.state import Answers, Proposal, State
from transduce.methods.confidence_machine import RidgeConfidenceMachine
from transduce.methods.spectral_graph.cut import Cut, KnownLabels, cut_graph, default_label_weight

RECENT = 20  # rows looked back at for near-copies
COPY = 0.995  # cosine above which a row is a near-copy
CANDIDATES = 200
NOISE = 0.25  # variance of a label beside a prior variance of about 2
GRAPH_WEIGHT = 1.2
RIDGE = 1.0  # of regressions on words and features
TOLERANCE, MOST_STEPS = 1e-4, 200  # of conjugate gradients
MOST_REGIONS = 1_000  # rows that get an interval at once; the others when there is time
MOST_PARTS = 500  # parts of the graph whose labels are spread over it
MOST_TAUGHT = 1_000  # labels, the last ones, that answer rows which the graph does not reach
BLOCK = 16_384
MOST_VALUES = 20_000  # up to so many rows all values are renewed at once
MOST_ROWS = 50_000  # up to so many rows a blend is a second opinion on classes
FEWEST_LABELS = 10  # of which a second opinion is made


class Model:
    """What proposes rows and answers them, once all are compared."""

    def __init__(self, prepared: Prepared, task: str, confidence: float, seed: int) -> None:
        self.prepared, self._seeded = prepared, (prepared, confidence, seed)
        self.chooser, self.second = Chooser(prepared), SecondOpinion(prepared.matrix)
        self.classes = ClassOpinion(prepared).answer
        self._numbers = NumberOpinion(*self._seeded) if task == "numbers" else None

    def numbers(self, labels: Mapping[int, Label], *, everywhere: bool, afresh: bool = False) -> Answers:
        """Return the first opinion on numbers; `afresh`, without values that were answered before."""
        opinion = NumberOpinion(*self._seeded) if afresh or self._numbers is None else self._numbers
        known = {row: float(label) for row, label in labels.items()}  # type: ignore[arg-type]
        return opinion.answer(known, everywhere=everywhere)

    def think(self, state: State, *, by_class: bool) -> bool:
        """Ask for a second opinion where it is worth it; return whether one is being worked on."""
        small = self._numbers is not None or len(self.prepared.matrix) <= MOST_ROWS
        enough = len(state.labelled) >= FEWEST_LABELS and small
        if self.second.busy or not enough or self.second.answer(state.version) is not None:
            return self.second.busy
        about = (state.version, state.header.task, np.array(list(state.labelled), dtype=np.int64))
        if self._numbers is not None:
            labels = np.array(list(state.labelled.values()), dtype=float)
            return self.second.ask(Question(*about, labels, self._numbers.machine(len(labels))))
        codes = np.array(list(state.codes().values()), dtype=np.int64)
        counts = np.unique(codes, return_counts=True)[1]
        if len(counts) < 2 or counts.min() < 2:
            return False
        return self.second.ask(Question(*about, codes, shares=None if by_class else state.shares_left()))


# ------------------------------------------------------------------------------------------- choosing rows


class Chooser:
    """Chooses rows that would help most; it remembers what labels have taught."""

    def __init__(self, prepared: Prepared) -> None:
        self._unit, self._graph = prepared.unit, prepared.graph
        self._ranking = ClassRanking(prepared.unit, prepared.graph)

    @cached_property
    def _teaching(self) -> Teaching:
        return Teaching(self._graph)

    def find(self, free: Mask, hits: list[int], others: list[int]) -> Proposal:
        """Return the row most likely to be a hit; the most diverse one while no hit is known."""
        if not hits:
            chosen = self.learn(free, set(others), None, [])
            return Proposal(chosen.row, "find", "diverse", chosen.value)
        return Proposal(_best(self._ranking.scores(hits, others), free), "find", "likeliest")

    def learn(self, free: Mask, labelled: set[int], answers: Answers | None, recent: list[int]) -> Proposal:
        """Return the row, of those free (n,), whose label would teach most: most where answers are open."""
        self._teaching.update(labelled)
        gains, variance = self._teaching.gains(), np.maximum(self._teaching.variance, 0.0)
        scores, reason = gains, "diverse"
        certain = np.zeros(1) if answers is None else answers.certain
        margins = np.where(np.isnan(certain), 0.0, certain)
        if margins.any():
            spread = np.sqrt(variance)
            scores, reason = gains * spread / (margins + spread + 1e-12), "teaches"
        row = self._unlike(scores, free, recent)
        return Proposal(row, "learn", reason, float(gains[row]) / max(float(variance.mean()), 1e-12))

    def widest(self, free: Mask, answers: Answers, labelled: set[int], recent: list[int]) -> Proposal:
        """Return the row with the widest interval, of numbers; the most diverse one while there is none."""
        widths = -answers.certain
        known = np.isfinite(widths) & free
        if not known.any() or np.ptp(widths[known]) <= 1e-9 * np.abs(widths[known]).max():
            return self.learn(free, labelled, None, recent)
        row = self._unlike(np.where(known, widths, -np.inf), known, recent)
        return Proposal(row, "learn", "widest", float(widths[row]))

    def _unlike(self, scores: Array, free: Mask, recent: list[int]) -> int:
        """Return the best row that is no near-copy of one shown lately; the best of all if all are."""
        if not recent:
            return _best(scores, free)
        order = np.flatnonzero(free)
        if len(order) > CANDIDATES:
            order = order[np.argpartition(-scores[order], CANDIDATES)[:CANDIDATES]]
        order = order[np.argsort(-scores[order], kind="stable")]
        likeness = _cosines(self._unit, order, np.array(recent[-RECENT:], dtype=np.int64))
        return int(order[np.argmax(likeness < COPY)])  # the first, too, if all are alike


def _best(scores: Array, free: Mask) -> int:
    return int(np.argmax(np.where(free, scores, -np.inf)))


def _cosines(unit: MaybeSparse, rows: AnyArray, others: AnyArray) -> Array:
    """Return the largest cosine of each row with one of the others."""
    products = unit[rows] @ unit[others].T
    dense = sp.csr_array(products).toarray() if sp.issparse(products) else np.asarray(products)
    return np.asarray(dense.max(axis=1), dtype=float)


class Teaching:
    """How much the label of each row would teach, kept up to date label by label. Shapes: variance (n,)."""

    # Rows are a Gaussian process in the features. Labelling row i lowers the summed variance of all rows of its
    # component by m |S f_i|^2 / (noise + f_i' S f_i), with S the posterior covariance of the features. Both parts are
    # known at every row and change by two products a label.

    def __init__(self, features: GraphFeatures, noise: float = NOISE) -> None:
        self._features, self._noise = features, noise
        self._covariances: dict[int, Array] = {}
        self._known: set[int] = set()
        self.variance = features.weigh_squares(features.prior)
        self._reach = features.weigh_squares(np.square(features.prior))

    def update(self, labelled: set[int]) -> None:
        """Take away the labels that are gone, and add the new ones."""
        for row in sorted(self._known - labelled):
            self._change(row, -1.0)
        for row in sorted(labelled - self._known):
            self._change(row, 1.0)
        self._known = set(labelled)

    def _change(self, row: int, sign: float) -> None:
        """Add (1) or take away (-1) one label."""
        features, component = self._features, int(self._features.component[row])
        covariance = self._covariances.setdefault(component, np.diag(features.prior))
        own = features.at(np.array([row]))[0]
        first = covariance @ own
        second = covariance @ first
        factor = sign / (self._noise + sign * float(own @ first))
        rows = features.rows_of(component)
        near, far = features.products(rows, np.stack([first, second], axis=1)).T
        self.variance[rows] -= factor * near**2
        self._reach[rows] += factor * near * (factor * float(first @ first) * near - 2.0 * far)
        covariance -= factor * np.outer(first, first)

    def gains(self) -> Array:
        """Return by how much the label of each row would lower the summed variance, as a share of the rows."""
        sizes = self._features.sizes[self._features.component] / len(self._features)
        return sizes * np.maximum(self._reach, 0.0) / (self._noise + np.maximum(self.variance, 0.0))


class ClassRanking:
    """Scores of all rows for one class against the rest: two ridge regressions, one of which sees the graph."""

    # The kernel of two rows is 1 + <words and features> in one, with weight^2 <graph coordinates> added in the other;
    # their scores are added. Where a class follows the graph, the second one leads; where it does not, the first one
    # keeps the order. Labels are 1 and -1, and both sides weigh the same in all. Conjugate gradients start from the
    # last answer, so that a new label costs milliseconds.

    def __init__(self, unit: MaybeSparse, graph: GraphFeatures) -> None:
        self._unit, self._graph = unit, graph
        self._last: dict[int, tuple[float, float]] = {}

    def scores(self, hits: list[int], others: list[int]) -> Array:
        """Return a score for every row (n,): the higher, the more like the hits and unlike the others."""
        rows = np.array([*hits, *others], dtype=np.int64)
        if len(rows) == 0:
            return np.zeros(len(self._graph))
        signs = np.repeat([1.0, -1.0], [len(hits), len(others)])
        weights = len(rows) / (2 * np.repeat([len(hits), len(others)], [len(hits), len(others)]))
        own = self._unit[rows]
        prior = np.sqrt(self._graph.prior) * GRAPH_WEIGHT
        near = self._graph.at(rows) * prior
        places = self._graph.component[rows]
        parts = [np.flatnonzero(places == component) for component in np.unique(places)]

        def plain(b: Array) -> Array:
            return np.asarray(own @ (own.T @ b)).ravel() + b.sum() + RIDGE / weights * b

        def tied(b: Array) -> Array:
            product = plain(b)
            for part in parts:
                product[part] += near[part] @ (near[part].T @ b[part])
            return product

        start = np.array([self._last.get(int(row), (0.0, 0.0)) for row in rows]).T
        first = _solved(plain, signs, start[0])
        second = _solved(tied, signs, start[1])
        self._last = dict(zip(rows.tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True))
        both = (first + second).astype(np.float32)
        linear = np.asarray(self._unit @ (own.T @ both)).ravel().astype(float)
        spread = {int(places[part[0]]): (near[part].T @ second[part]) * prior for part in parts}
        return linear + self._graph.expand(spread)


def _solved(product: Callable[[Array], Array], right: Array, start: Array) -> Array:
    """Return the solution of a positive definite system by conjugate gradients, from a first guess."""
    system = LinearOperator((len(right), len(right)), matvec=product, dtype=float)
    return np.asarray(cg(system, right, start, rtol=TOLERANCE, atol=0.0, maxiter=MOST_STEPS)[0])


# ------------------------------------------------------------ a first opinion after every label, and a second


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
        code = "from transduce.labelling.model import serve_opinions; serve_opinions()"
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
