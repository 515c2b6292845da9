"""A table with holes in one column, filled: values, intervals or sets, a status, and what is guaranteed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transduce.conformal import guarantee as words
from transduce.conformal.exchangeability import Exchangeability, exchangeability_test
from transduce.conformal.second_fit import with_values
from transduce.conformal.transducer import ConformalTransducer
from transduce.core import checks
from transduce.core.answer import Answer
from transduce.core.atomic_file import write_text
from transduce.core.guarantee import Guarantee
from transduce.core.progress import stage
from transduce.filling.diagnostics import Values, members_and_folds, relevance, row_map
from transduce.filling.plan import Plan, plan, read_method
from transduce.filling.result import Filled
from transduce.tables.features import Features, vectorize
from transduce.tables.new_columns import beside, new_columns, new_names
from transduce.tables.target import Target, check_columns, read_target

BUDGET_SECONDS = 300.0


@dataclass(frozen=True, eq=False, repr=False)
class FillResult(Filled):
    """A filled table, what is guaranteed of it, and its report; see `Filled` for the fields.

    Parameters
    ----------
    new : pandas.DataFrame
        The new columns alone.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from transduce import fill
    >>> size = np.arange(60.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> result = fill(table, "price", method="ridge")
    >>> result
    FillResult: 20 of 60 cells of 'price' filled (regression, ridge)
    exact: Each region holds its row's true label with probability at least 90 %. ...
    """

    new: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __repr__(self) -> str:
        unlabelled = len(self.answer)
        how = f"{self.task}, {self.settings['method']}"
        return f"FillResult: {unlabelled} of {len(self.frame)} cells of {self.target!r} filled ({how})\n{self.guarantee}"

    def _plain(self) -> Filled:
        """Return the record that the report is made from, with a pandas frame."""
        record = {entry.name: getattr(self, entry.name) for entry in fields(Filled)}
        return Filled(**{**record, "frame": as_pandas(self.frame)})

    def report(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the report as one self-contained HTML page, and write it to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
        """
        from transduce.report.render import render_html
        from transduce.report.summarize import summarize

        with stage("report"):
            page = str(render_html(summarize(self._plain())))
        if path is not None:
            write_text(path, page, force=force)
        return page

    def json(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """Return the numbers of the report as JSON, and write them to a file if one is named.

        Parameters
        ----------
        path : str or Path, optional
            Where to write them, in one piece.
        force : bool, default=False
            Whether an existing file may be replaced.

        Returns
        -------
        str
        """
        from transduce.report.render import render_json
        from transduce.report.summarize import summarize

        text = str(render_json(summarize(self._plain())))
        if path is not None:
            write_text(path, text, force=force)
        return text


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a frame as pandas; a TypeError unless it is one of pandas or polars."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError("The table is a lazy frame: call its collect() first.")
    if type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "columns"):
        return pd.DataFrame(table.to_pandas())
    raise TypeError(
        f"fill takes a pandas or polars frame; got {type(table).__name__}. Files are filled by the command `transduce "
        "fill`."
    )


def fill(
    table: Any,
    target: Any,
    *,
    method: str = "auto",
    confidence: float = 0.9,
    certainty: float = 0.95,
    task: str = "auto",
    ignore: Collection[Any] = (),
    text: Collection[Any] = (),
    id: Any = None,
    reject_share: float | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    n_jobs: int | None = None,
    random_state: int = 0,
    source: str = "",
) -> FillResult:
    """Fill the empty cells of one column, and say what is guaranteed.

    Parameters
    ----------
    table : pandas or polars DataFrame
        All rows; columns of any kind.
    target : str
        The column to fill.
    method : str, default="auto"
        ``"auto"``: the blend of the methods that suit the table, with regions by the confidence machine if labels are
        too few to hide any. Or ``"ridge"``, ``"gaussian-process"`` (numbers), ``"spectral-graph"``, ``"bayesian"``
        (classes), ``"confidence-machine"``, ``"blend"``, ``"forest"``.
    confidence : float, default=0.9
        Probability with which each interval, or set of classes, holds the truth.
    certainty : float, default=0.95
        Certainty of the guarantee for the whole column.
    task : {"auto", "regression", "classification"}, default="auto"
        Whether labels are numbers or classes. ``"auto"``: text is classes unless all of it are numbers, and so are
        whole numbers of 2 to 10 different values of which some occur twice.
    ignore, text : sequence of str
        Columns to leave out, and columns to read word by word.
    id : str, optional
        The column that names the rows in the answer.
    reject_share : float, optional
        The least certain rows, up to this share, get the status "rejected"; their values stay.
    budget_seconds : float, default=300
        The slowest members of the blend are left out until the others are likely to end in time.
    n_jobs : int or None, default=None
        Fits at the same time, in joblib's way.
    random_state : int, default=0
        The same seed gives the same answer.
    source : str, default=""
        Where the table came from, for the report.

    Returns
    -------
    FillResult
        ``frame``, the table with the columns ``<target>_filled``, ``_lower`` and ``_upper`` (or ``_set``),
        ``_confidence`` and ``_status`` behind its own; ``answer``, ``guarantee``, ``report()``, ``json()``.

    See Also
    --------
    ConformalTransducer : What lies behind the guarantee.
    TransductiveBlend : What lies behind the values.

    Notes
    -----
    Columns become features without a look at the target, see `transduce.tables.features.vectorize`; methods are
    chosen by the task and the size of the table, and weighted by labels that are not held out. So nothing is known of
    the calibration labels that is not known of the unlabelled ones, and the guarantee of `ConformalTransducer` is
    exact; but for ``task="auto"``, which looks at all labels: say the task if numbers and classes could be mistaken.
    Values come from a second fit with all labels (``ConformalTransducer(refit=True)``), and now and then one lies
    outside its region, or a class outside its set. The confidence machine guarantees each row by itself, and nothing
    of the column. Warnings of the methods are in ``notes``.

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
    settings = {key: value for key, value in locals().items() if key != "table"}
    frame = as_pandas(table)
    _check_settings(settings)
    check_columns(frame, [target, *ignore, *text, *([] if id is None else [id])])
    labels = read_target(frame, target, task=task, confidence=confidence)
    settings |= {"method": read_method(method, labels.task), "ignore": list(ignore), "text": list(text)}
    _check_names(frame, target, labels.task)
    features = vectorize(frame, target, ignore=ignore, text=text, id=id, random_state=random_state)
    if features.matrix.shape[1] == 0:
        raise ValueError(f"No column but {target!r} varies from row to row: there is nothing to learn from.")
    result = _fit(frame, labels, features, settings)
    if table is frame:
        return result
    return replace(result, frame=beside(table, result.new))


def _check_settings(settings: dict[str, Any]) -> None:
    checks.check_confidence(settings["confidence"])
    certainty, share = settings["certainty"], settings["reject_share"]
    for name, value in (("certainty", certainty), *([] if share is None else [("reject_share", share)])):
        checks.check_number(name, value)
        if not 0.0 < float(value) < 1.0:
            raise ValueError(f"{name} must lie strictly between 0 and 1, for example 0.95; got {value!r}.")
    checks.check_positive("budget_seconds", settings["budget_seconds"])
    checks.check_jobs(settings["n_jobs"])
    checks.check_whole("random_state", settings["random_state"], least=0)
    for name in ("ignore", "text"):
        if isinstance(settings[name], str):
            raise ValueError(f"{name} takes a list of columns; got {settings[name]!r}.")
    if settings["target"] in [*settings["ignore"], *settings["text"], settings["id"]]:
        raise ValueError(
            f"{settings['target']!r} is the target: it cannot be ignored, read as text, or name rows."
        )


def _check_names(frame: pd.DataFrame, target: Any, task: str) -> None:
    for name in new_names(target, task):
        if name in frame.columns:
            raise ValueError(
                f"The table has a column {name!r} already, perhaps from filling it before: rename or drop it first."
            )


def _fit(frame: pd.DataFrame, target: Target, features: Features, settings: dict[str, Any]) -> FillResult:
    """Fit what was planned, and gather all there is to know about it."""
    seed, found = int(settings["random_state"]), _plan(frame, target, settings)
    index = frame.index if settings["id"] is None else pd.Index(frame[settings["id"]])
    y = pd.Series(target.labels, index=index, name=target.name)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with stage("answers"):
            model = found.model.fit(features.matrix, y)
        answer, values = _values(model, found, features, target)
        seconds = time.perf_counter() - began
        verdict = _verdict(model, features, target, settings)
        answer, said = _guarantee(model, answer, verdict, settings)
    with stage("how well it does"):
        name = settings["method"]
        members, folds = members_and_folds(values, name, found, features, target, seconds, seed)
    with stage("map"):
        where = row_map(features.matrix, seed)
    notes = [*target.notes, *_about_columns(features), *found.notes, *said]
    notes += [
        text for text in dict.fromkeys(str(w.message) for w in caught) if text not in answer.guarantee.why
    ]
    new = new_columns(target, answer, float(settings["confidence"]), frame.index)
    return FillResult(
        frame=pd.concat([frame, new], axis=1),
        target=target.name,
        task=target.task,
        answer=answer,
        guarantee=answer.guarantee,
        model=model,
        values_model=values.estimator,
        exchangeability=verdict,
        confidence=float(settings["confidence"]),
        certainty=float(settings["certainty"]),
        members=members,
        out_of_fold=folds,
        columns=features.columns,
        relevance=relevance(values.estimator, features),
        map=where,
        settings=settings | {"task": target.task, "n_rows": len(frame), "n_labels": target.n_labels},
        notes=notes,
        new=new,
    )


def _plan(frame: pd.DataFrame, target: Target, settings: dict[str, Any]) -> Plan:
    """Return what to fit, by the size of the table."""
    return plan(
        settings["method"],
        target.task,
        n_rows=len(frame),
        n_labels=target.n_labels,
        confidence=float(settings["confidence"]),
        budget_seconds=float(settings["budget_seconds"]),
        n_jobs=settings["n_jobs"],
        random_state=int(settings["random_state"]),
    )


def _about_columns(features: Features) -> list[str]:
    """Return a note on the columns that were dropped without being asked to."""
    dropped = features.columns[features.columns["treatment"].str.startswith("dropped")]
    if dropped.empty:
        return []
    names = ", ".join(
        f"{name!r} ({kind})" for name, kind in zip(dropped["name"], dropped["kind"], strict=True)
    )
    return [f"Left out: {names}."]


def _values(model: Any, found: Plan, features: Features, target: Target) -> tuple[Answer, Values]:
    """Return the answer with values from a fit to all labels, and the estimator that was fitted so."""
    if found.calibrated:
        return model.answer_, Values(model.refitted_, model._again.order)
    every = np.arange(len(target.labels))
    if found.values is None:
        return model.answer_, Values(model, every)
    with stage("values"):
        blend = found.values.fit(features.matrix, target.labels)
    return with_values(model.answer_, blend.answer_), Values(blend, every)


def _verdict(model: Any, features: Features, target: Target, settings: dict[str, Any]) -> Exchangeability:
    """Return whether the unlabelled rows look like the labelled ones."""
    if isinstance(model, ConformalTransducer) and model.exchangeability_ is not None:
        return model.exchangeability_
    with stage("exchangeability"):
        return exchangeability_test(features.matrix, ~target.missing, random_state=settings["random_state"])


def _guarantee(
    model: Any, answer: Answer, verdict: Exchangeability, settings: dict[str, Any]
) -> tuple[Answer, list[str]]:
    """Return the answer with its guarantee at the certainty wanted, unsure rows rejected, and what to tell besides."""
    notes = []
    if isinstance(model, ConformalTransducer):
        guaranteed = words.guarantee(
            model._facts,
            float(settings["confidence"]),
            model.miscoverage_,
            verdict,
            certainty=float(settings["certainty"]),
        )
    else:
        own = model.guarantee_
        kind = "approximate" if verdict.shifted and own.kind == "exact" else own.kind
        guaranteed = Guarantee(kind, own.guarantee, f"{own.why} {verdict.verdict}")
    answer = replace(answer, guarantee=guaranteed)
    if settings["reject_share"] is not None:
        answer = _reject(answer, float(settings["reject_share"]))
        count = int(np.sum(answer.status == "rejected"))
        notes.append(
            f"{count} of {len(answer)} answers, the least certain, are marked as rejected; their values stay, and the "
            "guarantee is one about all answers together."
            if count
            else "No answer is marked as rejected: this method is equally certain of all of them."
        )
    return answer, notes


def _reject(answer: Answer, share: float) -> Answer:
    """Return the answer with the least certain rows rejected.

    Of numbers those with the widest regions; of classes those whose two likeliest ones are closest, since many rows
    have the same confidence.
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
