"""What there is to know of a filled column besides its answers: quality, relevance, a map."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from transduce.app.filling.class_calibration import ClassCalibration
from transduce.app.filling.hidden_labels import SCORERS, HiddenLabels, look_at_labels
from transduce.app.filling.interval_models import HeldOutPredictions
from transduce.app.filling.next_labels import (
    NextLabels,
    gain_of_labels,
    next_rows,
    quick_method,
)
from transduce.app.filling.options import Options
from transduce.app.filling.table_fit import TableFit
from transduce.app.report.missed_classes import most_missed_class
from transduce.app.report.quality import ALONE, share_alone
from transduce.app.report.suspects import Suspects, find_suspects
from transduce.app.tables.features import Features
from transduce.conformal.shares_compared import SharesCompared, compare_shares
from transduce.core import arrays
from transduce.core.answer import Answer
from transduce.core.computing import few_threads, stage
from transduce.core.findings import FALSE_ALARMS
from transduce.core.types import AnyArray, Array, ColumnName
from transduce.core.validation import class_codes
from transduce.core.words import counted, in_a_sentence, option, quoted
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection.estimator_kinds import last_step
from transduce.model_selection.fit_and_predict import fit_and_predict
from transduce.model_selection.problem import read_problem

MOST_MAPPED = 20_000
FEWEST_MAPPED = 5
FEWEST_COMPARED = 20  # labels whose shares of classes are compared with those of unlabelled rows
NOTICED = 0.005  # p-values of different shares of classes up to this are told: 1 in 200 by mistake
SMALL = 20_000  # rows up to which idle threads of matrix products take more time than they save
FEWEST_MEASURED = 10  # labels: the standard error of a share of right answers is then at most 0.16

Computed = TypeVar("Computed")


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Lazy diagnostics of a fit; a failure becomes a note."""

    fit: TableFit
    options: Options
    notes: list[str] = field(default_factory=list)  # what could not be computed, and why

    def _try(
        self,
        what: str,
        compute: Callable[[], Computed],
        otherwise: Computed,
    ) -> Computed:
        """Return what is computed; where that fails, leave a note: the answers must not be lost."""
        try:
            with few_threads(len(self.fit.frame), SMALL):
                return compute()
        except Exception as error:
            note = f"{what} could not be computed: {in_a_sentence(error)}"
            if note not in self.notes:
                self.notes.append(note)
            return otherwise

    # ------------------------------------------------------------------- how good the answers are

    @cached_property
    def _hidden(self) -> HiddenLabels:
        """What methods said of labels that were hidden."""
        if self.unmeasured:
            return HiddenLabels()
        with stage("how well it does"):
            return self._try(
                "How well the methods do",
                lambda: look_at_labels(self.fit, self.options),
                HiddenLabels(),
            )

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """``true`` and ``answered`` at the labelled rows, each answered while it was hidden."""
        return self._hidden.folds

    @property
    def hidden_labels(self) -> pd.DataFrame:
        """The same at all labels, those that stand for no unlabelled row too."""
        return self._hidden.all_folds

    @cached_property
    def suspects(self) -> Suspects:
        """The known values that are perhaps wrong, by the rows of the fit."""
        hidden = self.hidden_labels
        task = self.fit.target.task
        return self._try(
            "Which known values are perhaps wrong",
            lambda: find_suspects(task, hidden),
            find_suspects(task, hidden[:0]),
        )

    @cached_property
    def members(self) -> pd.DataFrame:
        """One line for each method."""
        fit = self.fit
        name = self.options.method_name
        weights = {name: 1.0}
        seconds = {name: fit.seconds}
        left_out = dict(fit.left_out)
        if isinstance(fit.values_model, TransductiveBlend):
            diagnostics = fit.values_model.answer_.diagnostics
            weights = dict(fit.values_model.weights_)
            seconds = diagnostics["seconds"]
            left_out = {**diagnostics["left out"], **fit.left_out}
        scores = self._hidden.scores
        lines: list[tuple[str, float, float, float, str]] = [
            (name, weights[name], scores.get(name, np.nan), seconds[name], "") for name in weights
        ]
        lines += [(name, np.nan, np.nan, np.nan, reason) for name, reason in left_out.items()]
        members = pd.DataFrame(lines, columns=["name", "weight", "score", "seconds", "note"])
        members.insert(3, "scorer", SCORERS[fit.target.task])
        return members

    @cached_property
    def _label_weights(self) -> Array:
        """How much each labelled row stands for the unlabelled ones, shape (l,)."""
        return self.fit.weigh_labels(np.flatnonzero(~self.fit.target.missing))

    @property
    def drawn(self) -> bool:
        """Whether rows were drawn at random to be labelled."""
        design = self.fit.model.calibrated.design
        return design is not None and design.spec.draws_calibration

    @property
    def measured_at(self) -> str:
        """Which labels tell how good the answers are, in a few words; "" if all do alike."""
        if len(np.unique(self._label_weights)) < 2:
            return ""
        if not self.drawn:
            return "weighted for the unlabelled rows"
        n_unlabelled = self.fit.model.estimator.guarantee_.n_empty
        if not n_unlabelled:
            return "of rows drawn at random"
        more = counted(n_unlabelled, "more was", "more were")
        return f"of rows drawn at random ({more} drawn, without a label, and may be harder)"

    @cached_property
    def unmeasured(self) -> str:
        """Why labels do not tell how good the answers are, in a sentence; "" if they do."""
        weights = self._label_weights
        worth = float(weights.sum()) ** 2 / max(float(np.sum(weights**2)), 1e-300)
        if not self.measured_at or worth >= FEWEST_MEASURED:
            return ""
        if self.drawn:
            few = f"{counted(int(weights.sum()), 'label is', 'labels are')} of rows drawn at random"
        else:
            few = (
                "The labels that stand for the unlabelled rows have an effective sample size of "
                f"{worth:.0f}"
            )
        return (
            f"{few}, and it takes {FEWEST_MEASURED} to measure how good the predictions are: the "
            "other labels were not chosen at random, so they cannot measure it."
        )

    @cached_property
    def calibration(self) -> ClassCalibration:
        """How probable classes are; of numbers nothing is said."""
        fit = self.fit
        if fit.target.task == "regression":
            return ClassCalibration()
        if fit.shares is not None:  # what is stated is calibrated for the right shares already
            return ClassCalibration(fit.target.n_labels)
        n_labels = int((self._label_weights > 0.0).sum())
        alone = not self.drawn and share_alone(fit.compared) >= ALONE
        if self.unmeasured or alone:  # of rows like these no label tells anything
            return ClassCalibration(n_labels, silent=True)
        return ClassCalibration.of_hidden_labels(self.out_of_fold, n_labels, self._hidden.power)

    # -------------------------------------------------------------------------- shares of classes

    @cached_property
    def by_class(self) -> list[str]:
        """A note, if labels seem to have been chosen by their class although nobody said so."""
        return self._try("Whether labels were chosen by class", self._compare_shares, [])

    def _compare_shares(self) -> list[str]:
        """Return a note on the class whose share differs most between labels and other rows."""
        design = self.fit.model.calibrated.design
        other_design = design is not None and not design.spec.compares_shares
        if self.fit.target.task == "regression" or self.fit.shares is not None or other_design:
            return []
        if self.fit.target.n_labels < FEWEST_COMPARED or not len(self.fit.answer):
            return []
        predicted = self.fit.model.predict_held_out(self._predict_half)
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
        return [_about_shares(compared, predicted.classes)]

    def _predict_half(self) -> HeldOutPredictions | None:
        """Return what one quick fit says of half of the labels and of other rows.

        That half is hidden from the fit.
        """
        fit = self.fit
        problem = read_problem(fit.X, fit.fitted_labels, task=fit.target.task)
        method = quick_method(fit.values_model, fit.target, fit.seconds)
        if method is None or problem.classes is None:
            return None
        order = np.random.default_rng(self.options.random_state).permutation(len(problem.labels))
        held_out = np.isin(np.arange(len(order)), order[: len(order) // 2])
        n_held = int(held_out.sum())
        rows = np.concatenate([problem.rows[held_out], problem.sample.unlabelled])
        with warnings.catch_warnings(action="ignore"):
            prediction = fit_and_predict(method, problem, np.flatnonzero(~held_out), rows)
        held = prediction.at(np.arange(n_held))
        unlabelled = prediction.at(np.arange(n_held, len(rows)))
        if held.probabilities is None or unlabelled.probabilities is None:
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
        if self.fit.target.task == "regression" or not len(answer):
            return None
        if answer.label_sets is None or answer.classes is None:
            return None
        return self._try("How often sets hold each class", self._cover_classes, None)

    def _cover_classes(self) -> pd.DataFrame | None:
        """Return for each class its labels, its sets, its hidden labels and those covered."""
        target = self.fit.target
        answer = self.fit.answer
        assert answer.classes is not None
        assert answer.label_sets is not None
        coverage = self.fit.model.cover_classes(
            self.fit.features.matrix,
            target.labels,
            target.missing,
            self.options.random_state,
        )
        n_classes = len(answer.classes)
        n_labels = np.bincount(class_codes(target.known, answer.classes), minlength=n_classes)
        places = class_codes(answer.classes, coverage.classes)
        columns = {
            "labels": n_labels,
            "in_sets": answer.label_sets.sum(axis=0),
            "judged": np.where(places >= 0, coverage.judged[places], 0),
            "covered": np.where(places >= 0, coverage.covered[places], 0),
        }
        return pd.DataFrame(columns, index=pd.Index(answer.classes, name="class"))

    @property
    def rare_classes(self) -> list[str]:
        """A note on the class that its sets hold least, where they hold it far too rarely."""
        coverage = self.class_coverage
        if coverage is None or (self.fit.shares is not None and not self.fit.shares.given):
            return []
        if self.options.by_class or self.fit.model.estimator.guarantee_.within == "class":
            return []
        level = self.options.level
        n_rows = len(self.fit.answer)
        missed = most_missed_class(coverage, n_rows, level)
        if missed is None:
            return []
        note = _about_missed(missed, coverage, n_rows)
        design = self.fit.model.calibrated.design
        if design is not None and (design.spec.within is not None or design.groups is not None):
            return [note]
        by_class = option("label_conditional", True)
        return [f"{note} {by_class} makes the guarantee hold within every class."]

    # --------------------------------------------------------------- columns, map, what to label

    @cached_property
    def relevance(self) -> pd.Series | None:
        """How much each column matters, where a method says so."""
        return self._try(
            "How much columns matter",
            lambda: relevance(self.fit.values_model, self.fit.features),
            None,
        )

    @cached_property
    def map(self) -> pd.DataFrame | None:
        """The place of every row along the two leading vectors of its neighbour graph."""
        return self._try(
            "The map",
            lambda: row_map(self.fit.features.matrix, self.options.random_state),
            None,
        )

    @cached_property
    def gain(self) -> float | None:
        """By which share errors get smaller with twice the labels."""
        if self.unmeasured:  # labels that were chosen do not tell
            return None
        return self._try(
            "What more labels would bring",
            lambda: gain_of_labels(self.fit, self.options.random_state),
            None,
        )

    def next_labels(self, answer: Answer) -> NextLabels:
        """Return what to label next, given the answers as they are shown."""
        fit = self.fit
        what_shrinks = "errors"
        if fit.target.task == "regression":
            what_shrinks = "intervals"
        with stage("what to label next"):
            rows: list[int] = self._try(
                "What to label next",
                lambda: next_rows(
                    fit.features.matrix,
                    fit.target.missing,
                    answer,
                    self.options.random_state,
                ),
                [],
            )
            return NextLabels(tuple(rows), self.gain, what_shrinks)


def _about_shares(compared: SharesCompared, classes: AnyArray) -> str:
    """Return that a class has another share among the labels than among the unlabelled rows."""
    which = f"of one of {len(compared.classes)} rare classes"
    if len(compared.classes) == 1:
        which = quoted(str(classes[compared.classes[0]]))
    return (
        f"{100 * compared.of_labels:.0f} % of the labels are {which}; among the unlabelled rows "
        f"an estimated {100 * compared.share:.0f} % are ({100 * compared.lower:.0f} to "
        f"{100 * compared.upper:.0f} %). Chance alone raises this alarm in fewer than 1 of "
        f"{FALSE_ALARMS} tables. If labels were chosen by class, say so with "
        f"{option('labels_by_class')}."
    )


def _about_missed(name: object, coverage: pd.DataFrame, n_rows: int) -> str:
    """Return how rarely sets hold a class where it is the true one."""
    line = coverage.loc[name]
    of_labels = rough_share(line["labels"], coverage["labels"].sum())
    in_sets = (
        f"{str(name)!r} is {of_labels} of the labels and in "
        f"the sets of {line['in_sets']:,} of {counted(n_rows, 'row')}. The guarantee is "
        "over all rows"
    )
    if not line["judged"]:
        return f"{in_sets}, and may hold for hardly any that is {str(name)!r}."
    covered = rough_share(line["covered"], line["judged"])
    return (
        f"{in_sets}; of the rows that are {str(name)!r} an estimated "
        f"{covered} are in their sets ({line['covered']:,} of "
        f"{counted(int(line['judged']), 'label')} that were hidden)."
    )


def rough_share(part: float, whole: float) -> str:
    """Return a share as a percentage without decimals."""
    return f"{100 * part / max(whole, 1):.0f} %"


def relevance(model: Any, features: Features) -> pd.Series | None:
    """Return how much each column matters, by the Gaussian process or else the trees of a model."""
    members = [model]
    if isinstance(model, TransductiveBlend):
        members = list(model.estimators_.values())
    estimators = [last_step(member) for member in members]
    for estimator in estimators:
        if getattr(estimator, "relevance", False):  # of each feature, and not one of all
            spread = arrays.to_numpy(estimator.feature_spread_)
            return _by_column(arrays.to_numpy(estimator.relevance_) * spread, features.origins)
    for estimator in estimators:
        weights: Any = getattr(estimator, "feature_importances_", ())
        # An estimator of the user's own may see the columns.
        for origins in (features.origins, features.encoder.columns):
            if len(weights) == len(origins):
                return _by_column(weights, origins)
    return None


def _by_column(weights: Array, origins: list[ColumnName]) -> pd.Series | None:
    """Return the root of the sum of squares over each column's features, the largest being 1."""
    squares = pd.Series(np.square(weights))
    sums = squares.groupby(pd.Index(origins, dtype=object)).sum() ** 0.5
    if not sums.max() > 0.0:
        return None
    return (sums / sums.max()).sort_values(ascending=False, kind="stable").rename("relevance")


def row_map(matrix: Array, seed: int) -> pd.DataFrame | None:
    """Return every row's place along two vectors of its neighbour graph; None if rows are many."""
    from transduce.methods.spectral_graph import graph_spectrum, neighbor_graph

    if not FEWEST_MAPPED <= len(matrix) <= MOST_MAPPED:
        return None
    with stage("map"), warnings.catch_warnings(action="ignore"):
        graph = neighbor_graph(matrix, metric="euclidean", random_state=seed)
        spectrum = graph_spectrum(graph, n_components=2, random_state=seed)
    if spectrum.vectors.shape[1] < 2:
        return None
    roots = np.sqrt(np.maximum(spectrum.degrees, np.finfo(float).tiny))
    return pd.DataFrame(spectrum.vectors[:, :2] / roots[:, None], columns=["x", "y"])
