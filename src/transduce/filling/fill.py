"""Filling the empty cells of one column of a table: read, plan, fit, and gather all there is to know."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal import ConformalTransducer, Exchangeability, exchangeability_test
from transduce.conformal.second_fit import holding_values, with_values
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.guarantee import Guarantee
from transduce.core.names import GUARANTEES
from transduce.core.notices import TooFewLabelsWarning
from transduce.core.progress import stage
from transduce.core.types import Array
from transduce.filling.diagnostics import Values, members_and_folds, relevance, row_map
from transduce.filling.labels import HowLabelled
from transduce.filling.plan import Plan, PlanSettings, plan, plan_weights, read_method
from transduce.filling.probabilities import right_probability
from transduce.filling.result import FillResult
from transduce.model_selection.hidden_labels import answer_of, ask, read_problem
from transduce.tables.cells import without
from transduce.tables.features import Features, vectorize
from transduce.tables.files import Table
from transduce.tables.frames import as_pandas
from transduce.tables.new_columns import answered_probability, beside, new_columns, new_names
from transduce.tables.target import Target, check_columns, read_target

BUDGET_SECONDS = 300.0


@dataclass(frozen=True)
class FillSettings:
    """The settings of `fill`, checked."""

    target: Any
    method: str
    confidence: float
    certainty: float
    guarantee: str
    label_conditional: bool
    tolerance: float | None
    probabilities: bool
    how_labelled: HowLabelled
    task: str
    ignore: list[Any]
    text: list[Any]
    id: Any
    missing: list[Any]
    reject_share: float | None
    budget_seconds: float
    n_jobs: int | None
    random_state: int
    source: str

    def __post_init__(self) -> None:
        checks.check_confidence(self.confidence)
        for name in ("certainty", "reject_share"):
            value = getattr(self, name)
            if value is None:
                continue
            checks.check_number(name, value)
            if not 0.0 < float(value) < 1.0:
                raise ValueError(
                    f"{name} must lie strictly between 0 and 1, for example 0.95; got {value!r}."
                )
        checks.check_choice("guarantee", self.guarantee, GUARANTEES)
        checks.check_flag("label_conditional", self.label_conditional)
        checks.check_flag("probabilities", self.probabilities)
        if self.tolerance is not None:
            checks.check_positive("tolerance", self.tolerance)
        checks.check_positive("budget_seconds", self.budget_seconds)
        checks.check_jobs(self.n_jobs)
        checks.check_whole("random_state", self.random_state, least=0)
        self.how_labelled.check(self.target, self.guarantee, self.method)
        if self.target in [*self.ignore, *self.text, self.id]:
            raise ValueError(
                f"{self.target!r} is the target: it cannot be ignored, read as text, or name rows."
            )

    @property
    def named(self) -> list[Any]:
        """All columns that were named."""
        single = [] if self.id is None else [self.id]
        return [self.target, *self.ignore, *self.text, *single, *self.how_labelled.columns]


def _columns(name: str, wanted: Collection[Any]) -> list[Any]:
    if isinstance(wanted, str):
        raise ValueError(f"{name} takes a list of columns; got {wanted!r}.")
    return list(wanted)


def fill(  # noqa: PLR0913
    table: Any,
    target: Any,
    *,
    method: str = "auto",
    confidence: float = 0.9,
    certainty: float = 0.95,
    guarantee: str = "auto",
    label_conditional: bool = False,
    tolerance: float | None = None,
    probabilities: bool = False,
    random_labels: Any = None,
    sampling_probability: Any = None,
    shift: str = "auto",
    sensitivity: float = 1.0,
    groups: Any = None,
    within: Any = None,
    order: Any = None,
    task: str = "auto",
    ignore: Collection[Any] = (),
    text: Collection[Any] = (),
    id: Any = None,
    missing: Any = (),
    reject_share: float | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    n_jobs: int | None = None,
    random_state: int = 0,
    source: str = "",
) -> FillResult:
    """Fill the empty cells of one column, and say what is guaranteed.

    Parameters
    ----------
    table : pandas or polars DataFrame, or Table
        All rows; columns of any kind. A `Table` is one read from a file by `transduce.tables.files.read`.
    target : str
        The column to fill.
    method : str, default="auto"
        ``"auto"``: the blend of the methods that suit the table. Or ``"ridge"``, ``"gaussian-process"`` (numbers),
        ``"spectral-graph"``, ``"bayesian"`` (classes), ``"confidence-machine"``, ``"blend"``, ``"forest"``.
    confidence : float, default=0.9
        Probability with which each interval, or set of classes, contains the truth.
    certainty : float, default=0.95
        Certainty of the guarantee for the whole column.
    guarantee : {"auto", "row", "column"}, default="auto"
        ``"row"``: intervals from the confidence machine that is tuned on the completed sample, with no label held out;
        each holds with the stated probability. ``"column"``: some labels are held out to calibrate the answers, so that
        the number of rows outside, and of wrong answers, is bounded too. ``"auto"``: the first with few labels, the
        second with many, where measurements put the switch (see `transduce.filling.plan`).
    label_conditional : bool, default=False
        Classes: whether the guarantee is to hold within every class, rare ones included.
    tolerance : float, optional
        Numbers: an answer off by more than this counts as wrong; the number of wrong answers is bounded where labels
        are held out.
    probabilities : bool, default=False
        Classes: whether to add a column for the probability of every class.
    random_labels : str, optional
        A column that marks rows which were drawn at random from those without a label, and then labelled (see the
        command ``transduce draw``). Their labels calibrate, all others teach, however those were chosen; the guarantee
        then needs nothing else. The column is not a feature.
    sampling_probability : str, optional
        A column with the probability with which each row was chosen to be labelled: the guarantee is exact for each
        row, and says nothing of the column. It is not a feature.
    shift : {"auto", "estimate", "ignore"}, default="auto"
        Whether labels are weighted by odds of a label that are estimated from the other columns: where a test says that
        labelled and unlabelled rows differ, always, or never. The guarantee is then approximate, or none.
    sensitivity : float, default=1.0
        A factor from 1 on: the guarantee holds even if the odds of a label also depend on the value itself by up to
        this factor, either way.
    groups : str, optional
        A column that names groups of rows, such as patients with several visits: the guarantee is about a row of a
        group without a label. It is not a feature.
    within : str, optional
        A column of categories: the guarantee holds within each.
    order : str, optional
        A column that orders the rows, such as a date: whether errors drift along it is tested. It is not a feature.
    task : {"auto", "regression", "classification"}, default="auto"
        Whether labels are numbers or classes. ``"auto"``: texts are classes unless all of them are numbers, and so
        are whole numbers of 2 to 10 different values of which some occur twice.
    ignore, text : sequence of str
        Columns to leave out, and columns to read word by word.
    id : str, optional
        The column that names the rows in the answer.
    missing : value or sequence of values
        Values that mark an empty cell in any column, besides those that are empty: ``"-"``, ``-999``. Numbers are
        found however they are written, texts in small and capital letters.
    reject_share : float, optional
        The least certain rows, up to this share, get the status "rejected"; their values stay.
    budget_seconds : float, default=300
        The slowest members of the blend are left out until the others are likely to finish in time.
    n_jobs : int or None, default=None
        Fits at the same time, in joblib's way.
    random_state : int, default=0
        The same seed gives the same answer.
    source : str, default=""
        Where the table came from, for the report.

    Returns
    -------
    FillResult
        ``frame``, the table with the columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set`` and
        ``_probability``), ``_confidence`` and ``_status`` after its own; ``answer``, ``guarantee``, ``report()``,
        ``json()``.

    See Also
    --------
    ConformalTransducer : Where the guarantee comes from.
    TransductiveBlend : Where the values come from.

    Notes
    -----
    Columns become features without looking at the target, see `transduce.tables.features.vectorize`; methods are
    chosen by the task and the size of the table, and weighted by labels that are not held out. So nothing is known
    about the calibration rows that is not known about the unlabelled ones, and the guarantee of `ConformalTransducer`
    is exact. The exception is ``task="auto"``, which looks at all labels: name the task if numbers and classes could be
    confused. Values come from a second fit with all labels (``ConformalTransducer(refit=True)``); intervals and sets
    are extended where a value would be outside. The confidence machine gives a guarantee for each row, and none for
    the column. Warnings of the methods are in ``notes``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from transduce import fill
    >>> size = np.arange(60.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> fill(table, "price", method="ridge").frame.columns.tolist()
    ['size', 'price', 'price_filled', 'price_lower', 'price_upper', 'price_confidence', 'price_status']
    """
    settings = FillSettings(
        target=target,
        method=method,
        confidence=confidence,
        certainty=certainty,
        guarantee=guarantee,
        label_conditional=label_conditional,
        tolerance=tolerance,
        probabilities=probabilities,
        how_labelled=HowLabelled(
            random_labels, sampling_probability, shift, sensitivity, groups, within, order
        ),
        task=task,
        ignore=_columns("ignore", ignore),
        text=_columns("text", text),
        id=id,
        missing=list(missing) if isinstance(missing, list | tuple | set | frozenset) else [missing],
        reject_share=reject_share,
        budget_seconds=budget_seconds,
        n_jobs=n_jobs,
        random_state=random_state,
        source=source,
    )
    given = table.frame if isinstance(table, Table) else table
    frame = as_pandas(given)
    if isinstance(table, Table):
        table.check_column(target)
    check_columns(frame, settings.named)
    cells = table.cells(target) if isinstance(table, Table) else None
    known = without(frame, settings.missing)
    labels = read_target(known, target, task=task, confidence=confidence, cells=cells)
    settings = replace(settings, method=read_method(method, labels.task))
    if labels.task == "regression" and (label_conditional or probabilities):
        raise ValueError("label_conditional and probabilities are for classes, and these labels are numbers.")
    if labels.task == "classification" and tolerance is not None:
        raise ValueError("tolerance is for numbers, and these labels are classes.")
    _check_names(frame, labels, probabilities)
    features = vectorize(
        known,
        target,
        ignore=[*ignore, *settings.how_labelled.not_features],
        text=text,
        id=id,
        prefer=table.prefer if isinstance(table, Table) else "point",
        random_state=random_state,
    )
    if features.matrix.shape[1] == 0:
        raise ValueError(
            f"No column except {target!r} varies from row to row: there is nothing to learn from."
        )
    about = table.notes if isinstance(table, Table) else []
    result = _fill(frame, replace(labels, notes=[*labels.notes, *about]), features, settings)
    return result if given is frame else replace(result, frame=beside(given, result.new))


def _check_names(frame: pd.DataFrame, target: Target, probabilities: bool) -> None:
    classes = dict.fromkeys(target.labels[~target.missing].tolist()) if probabilities else {}
    for name in new_names(target.name, target.task, list(classes)):
        if name in frame.columns:
            raise ValueError(
                f"The table has a column {name!r} already, perhaps from filling it before: rename or drop it first."
            )


def _fill(frame: pd.DataFrame, target: Target, features: Features, settings: FillSettings) -> FillResult:
    """Fit what was planned, and gather all there is to know about it."""
    wanted = PlanSettings(
        confidence=float(settings.confidence),
        guarantee=settings.guarantee,
        label_conditional=settings.label_conditional,
        tolerance=settings.tolerance,
        how_labelled=settings.how_labelled.settings(frame, target),
        calibrates=settings.how_labelled.calibrates,
        budget_seconds=float(settings.budget_seconds),
        n_jobs=settings.n_jobs,
        random_state=settings.random_state,
    )
    found = plan(settings.method, target.task, n_rows=len(frame), n_labels=target.n_labels, settings=wanted)
    compared = None
    if not found.calibrated and settings.how_labelled.shift == "auto":
        compared = _compare(None, features, target, settings)
        if compared.shifted and settings.guarantee == "auto":
            found = plan_weights(settings.method, found, target, len(frame), wanted)
    index = frame.index if settings.id is None else pd.Index(frame[settings.id])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = pd.Series(target.labels, index=index, name=target.name)
        fitted = _fit(found, features, target, settings, y, compared)
    with stage("how well it does"):
        members, folds = members_and_folds(
            fitted.values, settings.method, found, features, target, fitted.seconds, settings.random_state
        )
    with stage("map"):
        where = row_map(features.matrix, settings.random_state)
    notes = [*target.notes, *features.notes, *_about_columns(features), *found.notes, *fitted.notes]
    notes += dict.fromkeys(
        str(note.message) for note in caught if not _is_said(note.category, note.message, fitted)
    )
    new = new_columns(
        target,
        fitted.answer,
        float(settings.confidence),
        frame.index,
        right=_right(fitted.answer, folds),
        probabilities=settings.probabilities,
    )
    return FillResult(
        frame=pd.concat([frame, new], axis=1),
        new=new,
        target=target.name,
        task=target.task,
        answer=fitted.answer,
        model=fitted.model,
        values_model=fitted.values.estimator,
        confidence=float(settings.confidence),
        certainty=float(settings.certainty),
        members=members,
        out_of_fold=folds,
        columns=features.columns,
        miscoverage=fitted.model.miscoverage_ if isinstance(fitted.model, ConformalTransducer) else None,
        exchangeability=fitted.compared,
        sensitivity=_sensitivity(fitted),
        relevance=relevance(fitted.values.estimator, features),
        map=where,
        settings=flat(settings) | {"task": target.task, "n_rows": len(frame), "n_labels": target.n_labels},
        notes=notes,
    )


def flat(settings: FillSettings) -> dict[str, Any]:
    """Return the settings by name, those of how labels came about among them."""
    found = asdict(settings)
    how = found.pop("how_labelled")
    return found | how


def _sensitivity(fitted: _Answered) -> pd.DataFrame | None:
    """Return how wide intervals get if the chance of a label also depends on the value; None if none calibrates."""
    if not isinstance(fitted.model, ConformalTransducer) or fitted.answer.guarantee.kind == "none":
        return None
    return fitted.model.widths_at(sorted({1.0, 1.5, 2.0, float(fitted.model.sensitivity)}))


def _right(answer: Answer, folds: pd.DataFrame) -> Array | None:
    """Return the probability that each answered class is right; None for numbers."""
    if answer.regions is not None:
        return None
    return right_probability(folds, answered_probability(answer), len(answer))


@dataclass(frozen=True, eq=False)
class _Answered:
    """What was fitted and answered, what there is to tell of it, and how long it took."""

    model: Any
    answer: Answer
    values: Values
    compared: Exchangeability | None
    notes: list[str]
    seconds: float


def _fit(
    found: Plan,
    features: Features,
    target: Target,
    settings: FillSettings,
    y: pd.Series,
    compared: Exchangeability | None,
) -> _Answered:
    """Fit the model and what the values come from, and settle the guarantee."""
    began = time.perf_counter()
    with stage("answers"):
        model = found.model.fit(features.matrix, y)
    answer, values = _values(model, found, features, target)
    seconds = time.perf_counter() - began
    if isinstance(model, ConformalTransducer):
        compared, guarantee = model.exchangeability_, model.guarantee_at(certainty=float(settings.certainty))
    else:
        compared, guarantee = compared or _compare(model, features, target, settings), model.guarantee_
    if compared is not None:
        compared = compared.named(features.origins)
        guarantee = guarantee.doubted(compared.verdict)
    answer, notes = _rejected(replace(answer, guarantee=guarantee), settings.reject_share)
    return _Answered(model, answer, values, compared, notes, seconds)


def _is_said(category: type[Warning], message: Any, fitted: _Answered) -> bool:
    """Return whether the guarantee says what a warning says: that labels are too few, or that rows differ."""
    own = getattr(fitted.model, "exchangeability_", None)
    return issubclass(category, TooFewLabelsWarning) or (own is not None and str(message) == str(own.verdict))


def _about_columns(features: Features) -> list[str]:
    """Return a note on the columns that were dropped although nobody asked for it."""
    dropped = features.columns[features.columns["treatment"].str.startswith("dropped")]
    if dropped.empty:
        return []
    names = ", ".join(
        f"{name!r} ({kind})" for name, kind in zip(dropped["name"], dropped["kind"], strict=True)
    )
    return [f"Left out: {names}."]


def _values(model: Any, found: Plan, features: Features, target: Target) -> tuple[Answer, Values]:
    """Return the answer with values from a fit to all labels, and the estimator that was fitted so."""
    if isinstance(model, ConformalTransducer):
        return model.answer_, Values(model.refitted_, model.fitted_rows_, model.groups)
    every = np.arange(len(target.labels))
    if found.values is None:
        return holding_values(model.answer_), Values(model, every)
    with stage("values"):
        problem = read_problem(features.matrix, target.labels, task=target.task)
        reply = ask(found.values, problem, np.arange(len(problem.labels)), problem.sample.unlabelled)
        better = answer_of(reply, problem, Guarantee("none"))
    assert reply.fitted is not None
    return with_values(model.answer_, better), Values(reply.fitted.estimator, every)


def _compare(model: Any, features: Features, target: Target, settings: FillSettings) -> Exchangeability:
    """Return how labelled and unlabelled rows compare."""
    if isinstance(model, ConformalTransducer) and model.exchangeability_ is not None:
        return model.exchangeability_
    with stage("exchangeability"):
        return exchangeability_test(features.matrix, ~target.missing, random_state=settings.random_state)


def _rejected(answer: Answer, share: float | None) -> tuple[Answer, list[str]]:
    """Return the answer with unsure rows rejected, if that is wanted, and a note on it."""
    if share is None:
        return answer, []
    answer = _reject(answer, float(share))
    count = int(np.sum(answer.status == "rejected"))
    if not count:
        return answer, ["No answer is marked as rejected: this method is equally certain of all of them."]
    return answer, [
        f"{count} of {len(answer)} answers, the least certain, are marked as rejected; their values stay, and the "
        "guarantee is about all answers together."
    ]


def _reject(answer: Answer, share: float) -> Answer:
    """Return the answer with the least certain rows rejected.

    For numbers those with the widest intervals; for classes those whose two likeliest classes are closest, since many
    rows have the same confidence.
    """
    if answer.regions is not None:
        certain = -answer.regions.measure()
    elif answer.probabilities is not None:
        ranked = np.sort(answer.probabilities, axis=1)
        certain = ranked[:, -1] - ranked[:, -2]
    else:
        assert answer.confidence is not None
        certain = answer.confidence
    rejected = replace(answer, confidence=certain).reject(share=share)
    return replace(rejected, confidence=answer.confidence)
