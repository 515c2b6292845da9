"""What there is to know of a filled column besides its answers: quality, relevance, a map, and what to label next."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import binom
from sklearn.base import clone

from transduce.app.filling.options import Options
from transduce.app.filling.plan import FOLDS
from transduce.app.report.rows import ALONE, share_alone
from transduce.app.tables.columns import Target, answered_probability
from transduce.app.tables.features import Features
from transduce.conformal.shares import compare_shares
from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.computing import few_threads, stage
from transduce.core.guarantee import FALSE_ALARMS, Guarantee
from transduce.core.scaling import DRAWN_PRIOR, POWER_PRIOR, fit_power, square_unit, to_power
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes
from transduce.core.words import counted, in_a_sentence, option, quoted
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.cross_validation import cross_val_transduce
from transduce.model_selection.fit_and_predict import ask, is_transducer, last_step, read_problem
from transduce.model_selection.methods import MEMBERS, Case
from transduce.model_selection.own_models import OwnModel

if TYPE_CHECKING:
    from transduce.app.filling.result import TableFit

MOST_MAPPED = 20_000
FEWEST_COMPARED = 20  # labels whose shares of classes are compared with those of unlabelled rows
NOTICED = 0.005  # p-values of different shares of classes up to this are told: 1 in 200 by mistake
SMALL = 20_000  # rows up to which idle threads of matrix products take more time than they save
FEWEST_MEASURED = 10  # labels: the standard error of a share of right answers is then at most 0.16
SCORERS = {"regression": "R²", "classification": "accuracy"}


def score(task: str, folds: pd.DataFrame) -> float:
    """Return R², or the share of right answers, weighted; NaN if there is nothing to score."""
    from sklearn.metrics import r2_score

    if len(folds) < 2:
        return np.nan
    weights = folds.get("weight")
    if task == "classification":
        pairs = zip(folds["true"], folds["answered"], strict=True)
        right = [str(true) == str(answered) for true, answered in pairs]
        return float(np.average(right, weights=weights))
    true, answered = (folds[name].to_numpy(dtype=float) for name in ("true", "answered"))
    unit = square_unit(true, answered)
    return float(r2_score(true / unit, answered / unit, sample_weight=weights))


@dataclass(frozen=True, eq=False)
class Told:
    """Answers that were made elsewhere, as on the labelling page, and what is known of them."""

    values: AnyArray  # (n,) at all rows: numbers, or classes; NaN or None where there is no answer
    source: str  # who answered
    judged: (
        pd.DataFrame | None
    )  # ``true`` and ``answered`` at rows that chance chose; None if it chose none
    guarantee: Guarantee
    origins: str  # how the labels came about, as a sentence
    to_do: str  # what to do next, as a sentence
    again: str  # what makes them again
    notes: list[str]  # what the user should know


NO_FOLDS = pd.DataFrame({"true": [], "answered": []})


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """What methods said of labels that were hidden in turn."""

    scores: dict[str, float] = field(default_factory=dict)  # of each method
    folds: pd.DataFrame = field(default_factory=NO_FOLDS.copy)  # ``true`` and ``answered``
    power: float = 1.0  # makes shares of classes probabilities


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Probabilities of classes by one fit, at labels that it did not see and at unlabelled rows."""

    held: Array  # (c, n_classes)
    unlabelled: Array  # (m, n_classes)
    labels: AnyArray  # (l,) numbers of the classes of all labels
    held_labels: AnyArray  # (c,) of those that were held out
    classes: AnyArray  # (n_classes,)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a fit tells about itself, each thing computed when it is first asked for, and none so that asking fails."""

    fit: TableFit
    options: Options
    told: Told | None = None  # where the answers are from elsewhere
    notes: list[str] = field(default_factory=list)  # what could not be computed, and why

    @cached_property
    def _quality(self) -> HiddenLabels:
        """What methods said of labels that were hidden."""
        with stage("how well it does"):
            return self._try("How well the methods do", self._look_at_labels, HiddenLabels())

    def _look_at_labels(self) -> HiddenLabels:
        fit, task, model = self.fit, self.fit.target.task, self.fit.values_model
        if self.told is not None:
            folds = NO_FOLDS if self.told.judged is None else self.told.judged
            return HiddenLabels({self.told.source: score(task, folds)}, folds)
        if self.unmeasured:
            return HiddenLabels()
        if isinstance(model, TransductiveBlend):
            name, values, hidden = "blend", None, getattr(model, "out_of_fold_", None)
            if hidden is None:
                return HiddenLabels()
            rows = fit.order[hidden.index]
            stated = {
                one: hidden[one].set_axis(rows, axis=0) for one in [*model.weights_.index, name]
            }
        else:
            answers = _hide_labels(model, fit, FOLDS, self.options.random_state)[1]
            name, values, rows = self.options.method_name, answers.values, answers.rows
            stated = {name: pd.Series(values, rows)}
            if answers.probabilities is not None:
                stated = {name: pd.DataFrame(answers.probabilities, rows, answers.classes)}
        shown = {one: _at_shares(part, fit) for one, part in stated.items()}
        answered = {one: _answered(part) for one, part in shown.items()}
        if values is not None and fit.shares is None:
            answered[name] = values
        folds = pd.DataFrame(
            {"true": fit.target.labels[rows], "answered": answered[name]}, index=rows
        )
        power, said = 1.0, stated[name] if stated[name].ndim == 2 else None
        if said is not None:
            folds["probability"] = shown[name].to_numpy().max(axis=1)
            power = self._power(folds, said)
        members = {
            one: folds.assign(answered=own) for one, own in answered.items() if one != "blend"
        }
        scores = {one: score(task, self._weighed(own)) for one, own in members.items()}
        return HiddenLabels(scores, self._weighed(folds), power)

    def _power(self, folds: pd.DataFrame, said: pd.DataFrame) -> float:
        """Return the power that makes the probabilities of classes fit labels that were hidden."""
        some = self.fit.measure(said.index.to_numpy()) > 0.0
        if some.all() and isinstance(self.fit.values_model, TransductiveBlend):
            return 1.0  # which has been raised to its own, that of all labels
        codes = class_codes(folds["true"].to_numpy(), said.columns.to_numpy())
        given = np.isfinite(folds["probability"].to_numpy()) & (codes >= 0) & some
        return fit_power(
            said.to_numpy()[given], codes[given], POWER_PRIOR if some.all() else DRAWN_PRIOR
        )

    def _weighed(self, folds: pd.DataFrame) -> pd.DataFrame:
        """Return answers at labels of rows that stand for the unlabelled ones; with their weights, if these differ."""
        weights = self.fit.measure(folds.index.to_numpy())
        if len(np.unique(weights[weights > 0.0])) > 1:
            folds = folds.assign(weight=weights / weights.mean())
        return folds[weights > 0.0].rename_axis("row")

    @cached_property
    def _weights(self) -> Array:
        """How much each labelled row stands for the unlabelled ones, shape (l,)."""
        return self.fit.measure(np.flatnonzero(~self.fit.target.missing))

    @property
    def measured_at(self) -> str:
        """Which labels tell how good the answers are, in a few words; "" if all do alike."""
        if self.told is not None or len(np.unique(self._weights)) < 2:
            return ""
        if not self.drawn:
            return "weighted for the unlabelled rows"
        n = self.fit.model.guarantee_.n_empty
        without = (
            f" ({counted(n, 'more was', 'more were')} drawn, without a label, and may be harder)"
        )
        return f"of rows drawn at random{without if n else ''}"

    @property
    def drawn(self) -> bool:
        """Whether rows were drawn at random to be labelled."""
        design = self.fit.calibrated.design
        return design is not None and design.spec.draws_calibration

    @cached_property
    def unmeasured(self) -> str:
        """Why labels that were chosen do not tell how good the answers are, in a sentence; "" if they do."""
        weights = self._weights
        worth = float(weights.sum()) ** 2 / max(float(np.sum(weights**2)), 1e-300)
        if not self.measured_at or worth >= FEWEST_MEASURED:
            return ""
        few = f"The labels that stand for the unlabelled rows are worth {worth:.0f} of equal weight"
        if self.drawn:
            few = f"{counted(int(weights.sum()), 'label is', 'labels are')} of rows drawn at random"
        enough = f"it takes {FEWEST_MEASURED} to say how good the answers are"
        return f"{few}, and {enough}: other labels were chosen, and measure nothing."

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at the labelled rows, each answered while it was hidden."""
        return self._quality.folds

    @cached_property
    def members(self) -> pd.DataFrame:
        """One line for each method."""
        fit, scores, model = self.fit, self._quality.scores, self.fit.values_model
        name, left_out = self.options.method_name, dict[str, str]()
        weights, seconds = {name: 1.0}, {name: fit.seconds}
        if self.told is not None:
            weights, seconds = {self.told.source: 1.0}, {self.told.source: np.nan}
        elif isinstance(model, TransductiveBlend):
            known = model.answer_.diagnostics
            weights, seconds, left_out = dict(model.weights_), known["seconds"], known["left out"]
        lines = [
            (name, weights[name], scores.get(name, np.nan), seconds[name], "") for name in weights
        ]
        left_out |= {} if self.told is not None else fit.plan.left_out
        lines += [(name, np.nan, np.nan, np.nan, why) for name, why in left_out.items()]
        members = pd.DataFrame(lines, columns=["name", "weight", "score", "seconds", "note"])
        members.insert(3, "scorer", SCORERS[fit.target.task])
        return members

    @cached_property
    def by_class(self) -> list[str]:
        """A note, if labels that chance is said to have chosen seem to have been chosen by their class."""
        return self._try("Whether labels were chosen by class", self._compare_shares, [])

    def _compare_shares(self) -> list[str]:
        design = self.fit.calibrated.design
        other = design is not None and not design.spec.compares_shares
        chosen = self.told is not None or self.fit.shares is not None or other
        if self.fit.target.task == "regression" or chosen:
            return []
        predicted = self._predicted_at_held_out()
        if predicted is None:
            return []
        compared = compare_shares(
            predicted.held,
            predicted.unlabelled,
            predicted.labels,
            predicted.held_labels,
            self.options.random_state,
            level=NOTICED,
        )
        if compared is None or not compared.apart:
            return []
        which = f"of one of {len(compared.classes)} rare classes"
        if len(compared.classes) == 1:
            which = quoted(str(predicted.classes[compared.classes[0]]))
        return [
            f"{100 * compared.of_labels:.0f} % of the labels are {which}; among the unlabelled rows "
            f"about {100 * compared.share:.0f} % seem to be ({100 * compared.lower:.0f} to "
            f"{100 * compared.upper:.0f} %, estimated): an alarm, which chance alone raises in fewer "
            f"than 1 of {FALSE_ALARMS} tables. If labels were gathered by class, say so with "
            f"{option('labels_by_class')}."
        ]

    def _predicted_at_held_out(self) -> HeldOutPredictions | None:
        """Return what one fit says of labels that it did not see, and of the unlabelled rows."""
        fit = self.fit
        if fit.target.n_labels < FEWEST_COMPARED or not len(fit.answer):
            return None
        table = fit.calibrated.table
        if table is not None:
            held, unlabelled = table.calibration, table.unlabelled
            problem, held_out = fit.model.calibrated.problem, fit.model.calibrated.held_out
        else:
            problem = read_problem(fit.X, fit.target.labels, task=fit.target.task)
            method = _quick(fit.values_model, fit.target, fit.seconds)
            if method is None:
                return None
            random = np.random.default_rng(self.options.random_state)
            order = random.permutation(len(problem.labels))
            held_out = np.isin(np.arange(len(order)), order[: len(order) // 2])
            rows = np.concatenate([problem.rows[held_out], problem.sample.unlabelled])
            with warnings.catch_warnings(action="ignore"):
                reply = ask(method, problem, np.flatnonzero(~held_out), rows)
            n_held = int(held_out.sum())
            held = reply.at(np.arange(n_held))
            unlabelled = reply.at(np.arange(n_held, len(rows)))
        if held.probabilities is None or unlabelled.probabilities is None:
            return None
        if problem.classes is None:
            return None
        return HeldOutPredictions(
            held.probabilities[held.given],
            unlabelled.probabilities[unlabelled.given],
            problem.codes,
            problem.codes[held_out][held.given],
            problem.classes,
        )

    @cached_property
    def class_coverage(self) -> pd.DataFrame | None:
        """How often sets hold each class where it is the true one, estimated; None of numbers."""
        answer = self.fit.answer
        chosen = self.told is not None or answer.label_sets is None or answer.classes is None
        if self.fit.target.task == "regression" or chosen or not len(answer):
            return None
        return self._try("How often sets hold each class", self._cover_classes, None)

    def _cover_classes(self) -> pd.DataFrame:
        fit, answer = self.fit, self.fit.answer
        assert answer.classes is not None
        assert answer.label_sets is not None
        table = fit.calibrated.table
        if table is not None:
            judged, covered = table.covered_by_class(float(self.options.confidence))
            known = table.classes
        else:
            judged, covered = _cover_by_machine(fit, self.options.random_state)
            known = fit.model.classes_
        assert known is not None
        n_labels = np.bincount(
            class_codes(fit.target.known, answer.classes), minlength=len(answer.classes)
        )
        at = class_codes(answer.classes, np.asarray(known))
        columns = {
            "labels": n_labels,
            "in_sets": answer.label_sets.sum(axis=0),
            "judged": np.where(at >= 0, judged[at], 0),
            "covered": np.where(at >= 0, covered[at], 0),
        }
        return pd.DataFrame(columns, index=pd.Index(answer.classes, name="class"))

    @property
    def rare_classes(self) -> list[str]:
        """A note on the class that its sets hold least, where they hold it far less often than the level."""
        coverage = self.class_coverage
        if coverage is None or (self.fit.shares is not None and not self.fit.shares.given):
            return []
        design = self.fit.calibrated.design
        level = float(self.options.confidence)
        if self.options.by_class or self.fit.model.guarantee_.within == "class":
            return []
        missed = [
            (line["covered"] / max(line["judged"], 1), name)
            for name, line in coverage.to_dict("index").items()
            if _is_missed(line, coverage, len(self.fit.answer), level)
        ]
        if not missed:
            return []
        _, name = min(missed, key=lambda pair: pair[0])
        line = coverage.loc[name]
        note = (
            f"{str(name)!r} is {rough_share(line['labels'], coverage['labels'].sum())} of the labels and in "
            f"the sets of {line['in_sets']:,} of {counted(len(self.fit.answer), 'row')}. The guarantee is "
            f"over all rows; of the rows that are {str(name)!r} an estimated "
            f"{rough_share(line['covered'], line['judged'])} are in their sets ({line['covered']:,} of "
            f"{counted(int(line['judged']), 'label')} that were hidden)."
        )
        if design is not None and (design.spec.within is not None or design.groups is not None):
            return [note]
        by_class = option("label_conditional", True)
        return [f"{note} {by_class} makes the guarantee hold within every class."]

    @cached_property
    def chance(self) -> RightChance:
        """How probable classes are; of numbers nothing is said."""
        if self.fit.target.task == "regression":
            return RightChance()
        if (
            self.fit.shares is not None
        ):  # what is stated is calibrated, and for the right shares, already
            return RightChance(self.fit.target.n_labels)
        n_labels = int((self._weights > 0.0).sum())
        alone = not self.drawn and share_alone(self.fit.compared) >= ALONE
        if self.unmeasured or alone:  # of rows like these no label tells anything
            return RightChance(n_labels, silent=True)
        return RightChance.of(self.out_of_fold, n_labels, self._quality.power)

    @cached_property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, where a method says so."""
        fit = self.fit
        if self.told is not None:
            return None
        return self._try(
            "How much columns matter", lambda: relevance(fit.values_model, fit.features), None
        )

    @cached_property
    def map(self) -> pd.DataFrame | None:
        """The place of every row along the two leading vectors of its neighbour graph."""
        matrix, seed = self.fit.features.matrix, self.options.random_state
        return self._try("The map", lambda: row_map(matrix, seed), None)

    @cached_property
    def gain(self) -> float | None:
        """By which share errors get smaller with twice the labels."""
        if self.told is not None or self.unmeasured:  # labels that were chosen do not tell
            return None
        seed = self.options.random_state
        return self._try("What more labels would bring", lambda: _gain(self.fit, seed), None)

    def next_labels(self, answer: Answer) -> NextLabels:
        """Return what to label next, given the answers as they are shown."""
        fit, seed = self.fit, self.options.random_state
        with stage("what to label next"):
            rows = self._try("What to label next", lambda: _next_rows(fit, answer, seed), [])
            about = "intervals" if fit.target.task == "regression" else "errors"
            return NextLabels(tuple(rows), self.gain, about)

    def _try(self, what: str, compute: Callable[[], Any], otherwise: Any) -> Any:
        """Return what is computed; where that fails, leave a note: the answers must not be lost with a picture."""
        try:
            with few_threads(len(self.fit.frame), SMALL):
                return compute()
        except Exception as error:
            note = f"{what} could not be computed: {in_a_sentence(error)}"
            if note not in self.notes:
                self.notes.append(note)
            return otherwise


FEWEST_SEEN = 3  # labels of a class below which nothing is said of in how many sets it is
FEWEST_MISSED = 5  # rows or hidden labels below which nothing is said of how often they are covered


def _is_missed(line: dict[Any, Any], coverage: pd.DataFrame, n_rows: int, level: float) -> bool:
    """Return whether sets hold a class far less often, where it is the true one, than they are to hold the truth."""
    # Sets hold a class at no fewer rows than those of it that are covered: its share of the rows times its coverage.
    share = line["labels"] / coverage["labels"].sum()
    enough = line["labels"] >= FEWEST_SEEN and share * n_rows >= FEWEST_MISSED
    in_hardly_any = enough and line["in_sets"] < 0.5 * share * n_rows
    judged = line["judged"]
    # So few covered, or fewer, have a probability of 5 % at most if the class is covered at the level.
    often_missed = judged >= FEWEST_MISSED and binom.cdf(line["covered"], judged, level) <= 0.05
    return bool(in_hardly_any or often_missed)


def rough_share(part: Any, whole: Any) -> str:
    """Return a share as a percentage without decimals."""
    return f"{100 * part / max(whole, 1):.0f} %"


def _cover_by_machine(fit: TableFit, seed: int) -> tuple[AnyArray, AnyArray]:
    """Return how many labels each class has, and how many of them the machine's sets hold while they are hidden."""
    labelled = np.flatnonzero(~fit.target.missing)
    X, labels = fit.features.matrix[labelled], fit.target.labels[labelled]
    classes = np.asarray(fit.model.classes_)
    codes = class_codes(labels, classes)
    fold = np.random.default_rng(seed).permutation(len(labels)) % FOLDS
    covered = np.zeros(len(labels), dtype=bool)
    for number in range(FOLDS):
        hidden = np.flatnonzero(fold == number)
        shown = labels.copy()
        shown[hidden] = None
        if len(set(labels[fold != number].tolist())) < 2 or not len(hidden):
            continue
        with warnings.catch_warnings(action="ignore"):
            answer = clone(fit.model).fit(X, shown).answer_
        own = class_codes(labels[hidden], answer.classes)
        held = answer.label_sets[np.arange(len(hidden)), np.maximum(own, 0)]
        unseen = np.zeros(len(hidden), dtype=bool) if answer.unseen is None else answer.unseen
        covered[hidden] = np.where(own >= 0, held, unseen)
    n_classes = len(classes)
    return (
        np.bincount(codes, minlength=n_classes),
        np.bincount(codes[covered], minlength=n_classes),
    )


def _answered(hidden: pd.Series | pd.DataFrame) -> AnyArray:
    """Return one member's out-of-fold answers: numbers, or the likeliest of the classes in the columns."""
    if hidden.ndim == 1:
        return hidden.to_numpy()
    return hidden.columns.to_numpy()[hidden.to_numpy().argmax(axis=1)]


def _at_shares(hidden: pd.DataFrame, fit: TableFit) -> pd.DataFrame:
    """Return out-of-fold probabilities: those of the unlabelled rows' shares, where labels were chosen by class."""
    if fit.shares is None or hidden.ndim == 1:
        return hidden
    said = fit.shares.at(hidden.columns.to_numpy()).reweigh(hidden.to_numpy())
    return pd.DataFrame(said, index=hidden.index, columns=hidden.columns)


def _hide_labels(method: Any, fit: TableFit, folds: int, seed: int) -> tuple[AnyArray, Answer]:
    """Return labels that were hidden in turn, and the answers at them."""
    labels = fit.target.labels
    how: dict[str, Any] = {"cv": folds, "groups": fit.groups, "random_state": seed}
    with warnings.catch_warnings(action="ignore"):
        answers = cross_val_transduce(method, fit.X, labels, **how).answers
    return labels[answers.rows], answers


def relevance(model: Any, features: Features) -> pd.Series | None:
    """Return how much each column matters, from 0 to 1, by the Gaussian process or else the trees behind a model."""
    members = model.estimators_.values() if isinstance(model, TransductiveBlend) else [model]
    found = [last_step(member) for member in members]
    for member in found:
        if getattr(member, "relevance", False):  # of each feature, and not one of all
            spread = arrays.to_numpy(member.feature_spread_)
            return _by_column(arrays.to_numpy(member.relevance_) * spread, features.origins)
    for member in found:
        for origins in (
            features.origins,
            features.encoder.columns,
        ):  # a user's estimator may see the columns
            if len(getattr(member, "feature_importances_", ())) == len(origins):
                return _by_column(member.feature_importances_, origins)
    return None


def _by_column(weights: Array, origins: list[Any]) -> pd.Series | None:
    """Return the root of the sum of squares over each column's features, the largest being 1."""
    sums = pd.Series(np.square(weights)).groupby(pd.Index(origins, dtype=object)).sum() ** 0.5
    if not sums.max() > 0.0:
        return None
    return (sums / sums.max()).sort_values(ascending=False, kind="stable").rename("relevance")


def row_map(matrix: Array, seed: int) -> pd.DataFrame | None:
    """Return every row's place along the two leading vectors of its neighbour graph; None if rows are too many."""
    from transduce.methods.spectral_graph import graph_spectrum, neighbor_graph

    if not 5 <= len(matrix) <= MOST_MAPPED:
        return None
    with stage("map"), warnings.catch_warnings(action="ignore"):
        graph = neighbor_graph(matrix, metric="euclidean", random_state=seed)
        spectrum = graph_spectrum(graph, n_components=2, random_state=seed)
    if spectrum.vectors.shape[1] < 2:
        return None
    roots = np.sqrt(np.maximum(spectrum.degrees, np.finfo(float).tiny))
    return pd.DataFrame(spectrum.vectors[:, :2] / roots[:, None], columns=["x", "y"])


N_ROWS = 10
MOST_COMPARED = 5000  # rows and labels among which rows are picked
MOST_SECONDS = 3.0  # of a fit of the method whose learning curve is looked at
FEW_TREES = 40  # of a forest: how errors shrink with labels shows with few
REPEATS = 2


@dataclass(frozen=True)
class NextLabels:
    """What to label next."""

    rows: tuple[
        int, ...
    ]  # positions in the table of the rows whose labels would help most, the best first
    smaller: float | None
    about: str  # what gets smaller: "intervals" or "errors"

    def of(self, rows: AnyArray) -> NextLabels:
        """Return the same of a table in which the rows stand at these positions."""
        return replace(self, rows=tuple(int(rows[row]) for row in self.rows))

    def __str__(self) -> str:
        said = []
        if self.rows:
            *names, last = [f"{row + 1:,}" for row in self.rows]
            which = f"Rows {', '.join(names)} and {last}" if names else f"Row {last}"
            said.append(
                f"{which} would help most if {'they were' if names else 'it was'} labelled."
            )
        if self.smaller is not None:
            share = f"{100 * self.smaller:.0f} %"
            much = "hardly" if share == "0 %" else f"about {share}"
            what = f"{much} fewer answers would be wrong"
            if self.about == "intervals":
                what = f"intervals would {'hardly be' if share == '0 %' else f'be {much}'} narrower"
            said.append(f"With twice the labels {what}, going by fits to fewer of them.")
        chance = (
            "Rows picked like this are no random sample: for a guarantee, draw rows at random too."
        )
        return " ".join([*said, chance] if self.rows else said)


def pick_rows(matrix: Array, labelled: AnyArray, rows: AnyArray, unsure: Array) -> list[int]:
    """Return rows that are unsure and far from labelled rows, and from each other, the best first; matrix (n, d)."""
    from sklearn.metrics import pairwise_distances

    if not len(rows):
        return []
    nearest = pairwise_distances(matrix[rows], matrix[labelled]).min(axis=1)
    picked: list[int] = []
    for _ in range(min(N_ROWS, len(rows))):
        gain = unsure * nearest
        best = int(np.argmax(gain))
        if picked and gain[best] <= 0.0:
            break
        picked.append(int(rows[best]))
        nearest = np.minimum(
            nearest, pairwise_distances(matrix[rows], matrix[rows[best]][None])[:, 0]
        )
        nearest[best] = -1.0
    return picked


def unsureness(answer: Answer) -> Array:
    """Return how unsure each answer is, from what the methods say: spread of numbers, or chance of another class."""
    if answer.regions is None:
        if answer.probabilities is not None:
            return 1.0 - answer.probabilities.max(axis=1)
        assert answer.confidence is not None
        return 1.0 - answer.confidence + 1e-3
    if answer.standard_errors is not None and np.all(np.isfinite(answer.standard_errors)):
        return np.asarray(answer.standard_errors, dtype=float)
    widths = answer.regions.measure()
    known = widths[np.isfinite(widths)]
    return np.where(np.isfinite(widths), widths, known.max() if len(known) else 1.0)


def _next_rows(fit: TableFit, answer: Answer, seed: int) -> list[int]:
    """Return the rows whose labels would help most."""
    random, labelled = np.random.default_rng(seed), np.flatnonzero(~fit.target.missing)
    places = np.arange(len(answer))
    if len(labelled) > MOST_COMPARED:
        labelled = random.choice(labelled, MOST_COMPARED, replace=False)
    if len(places) > MOST_COMPARED:
        places = np.sort(random.choice(places, MOST_COMPARED, replace=False))
    return pick_rows(fit.features.matrix, labelled, answer.rows[places], unsureness(answer)[places])


def _gain(fit: TableFit, seed: int) -> float | None:
    """Return by which share errors get smaller with twice the labels, by a power law through two sizes."""
    n_labels = fit.target.n_labels
    method = _quick(fit.values_model, fit.target, fit.seconds)
    if method is None or n_labels < 20 or n_labels > MOST_COMPARED:
        return None
    half, most = (
        float(np.mean([_error(method, fit, folds, seed + k) for k in range(repeats)]))
        for folds, repeats in ((2, REPEATS), (5, 1))
    )
    if min(half, most) <= 0.0:
        return None
    power = np.log(half / most) / np.log((1.0 - 1.0 / 5) / (1.0 - 1.0 / 2))
    return float(1.0 - 0.5 ** np.clip(power, 0.0, 1.0))


def _quick(model: Any, target: Target, seconds: float) -> Any:
    """Return the method, or the member of a blend with the largest weight whose fits are quick; None if none is."""
    # Counts tell which are quick, and not the clock: those that are fitted to labelled rows only, and to few enough.
    if not isinstance(
        model, TransductiveBlend
    ):  # of a user's own, nothing but its seconds is known
        return (
            clone(model) if not isinstance(model, OwnModel) or seconds <= 2 * MOST_SECONDS else None
        )
    n_classes = len(set(target.known)) if target.task == "classification" else 0
    case = Case(target.task, len(target.labels), target.n_labels, n_classes=n_classes)
    for name in model.weights_.sort_values(ascending=False, kind="stable").index:
        member = model.estimators_[name]
        quick = name in MEMBERS and MEMBERS[name].fit_seconds(case) <= MOST_SECONDS
        if model.weights_[name] > 0.0 and not is_transducer(member) and quick:
            found = clone(member)
            return (
                found.set_params(n_estimators=FEW_TREES)
                if hasattr(found, "n_estimators")
                else found
            )
    return None


def _error(method: Any, fit: TableFit, folds: int, seed: int) -> float:
    """Return the mean error at hidden labels."""
    true, answers = _hide_labels(method, fit, folds, seed)
    if fit.target.task == "regression":
        off = np.abs(true.astype(float) - answers.values.astype(float))
    else:
        pairs = zip(true.tolist(), answers.values.tolist(), strict=True)
        off = np.array([str(label) != str(value) for label, value in pairs])
    return float(np.average(off, weights=fit.measure(answers.rows)))


@dataclass(frozen=True)
class RightChance:
    """How probable classes are, given what the method says."""

    # What a method states is raised to a power that fits hidden labels (a blend has done so), and one label more is
    # spread evenly over the classes, so that n labels make nothing surer than about n in n + 1. A line through the
    # log-odds of the answers, fitted to hidden labels, was too sure: at 0.95 and more it said 98.7 % with 40 labels,
    # and 96.0 % were right; now it says 97.2 %, and 97.6 % are (`benchmarks/blend_calibration.py`).
    n_labels: int = 0
    share: float = (
        np.nan
    )  # of right answers at hidden labels, if known, where no probability is stated
    power: float = 1.0
    silent: bool = (
        False  # whether too few labels tell: then it is not said how probable an answer is
    )

    @classmethod
    def of(cls, folds: pd.DataFrame, n_labels: int, power: float = 1.0) -> RightChance:
        """Return what answers at labels that were hidden in turn say."""
        right = (folds["true"].astype(str) == folds["answered"].astype(str)).to_numpy()
        mean = np.average(right, weights=folds.get("weight")) if len(right) else np.nan
        return cls(n_labels, (len(right) * float(mean) + 1.0) / (len(right) + 2.0), power)

    def of_classes(self, answer: Answer, level: float) -> Answer:
        """Return an answer with calibrated probabilities, if any; what is surer than a level is not unusual."""
        stated = answer.probabilities
        if stated is None or stated.shape[1] == 0:
            return answer
        n, fitted = self.n_labels, to_power(stated, self.power)
        answer = replace(answer, probabilities=(n * fitted + 1.0 / stated.shape[1]) / (n + 1.0))
        sure = (answer.status == "unusual") & (self.right(answer) >= level)
        return replace(answer, status=np.where(sure, "answered", answer.status))

    def right(self, answer: Answer) -> Array:
        """Return the probability that each answered class is right, given calibrated ones."""
        stated = answered_probability(answer)
        return np.full(len(answer), self.share) if stated is None or self.silent else stated
