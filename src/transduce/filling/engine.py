"""Filling the empty cells of one column of a table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pandas as pd

from transduce.filling.large import SampleFit, fill_by_sample, fit_table, is_sampled
from transduce.filling.lazily import fill_partitions
from transduce.filling.settings import BUDGET_SECONDS, SAMPLE, FillSettings
from transduce.filling.sources import is_dask
from transduce.filling.whole import fill_whole
from transduce.tables.columns import as_pandas, check_names, with_new_columns
from transduce.tables.files import Table
from transduce.tables.labels import Target, check_columns, read_target
from transduce.tables.numbers import without


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
    minimum: float | None = None,
    maximum: float | None = None,
    label_next: bool = False,
    reject_share: float | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    sample: int = SAMPLE,
    device: str | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    source: str = "",
) -> Any:
    """Fill the empty cells of one column, and say what is guaranteed.

    Parameters
    ----------
    table : pandas, polars or Dask DataFrame, or Table
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
    minimum, maximum : float, optional
        Numbers: the least and the largest value that is possible; intervals and values end there. The guarantee stays
        as it is if no true value lies beyond.
    label_next : bool, default=False
        Whether to add a column that numbers the rows whose labels would help most.
    reject_share : float, optional
        The least certain rows, up to this share, get the status "rejected"; their values stay.
    budget_seconds : float, default=300
        The slowest members of the blend are left out until the others are likely to finish in time.
    sample : int, default=20,000
        If more rows than this have no label, the fit sees so many of them, drawn at random, and answers all others one
        by one.
    device : str, optional
        Where to compute, as torch names it: ``"cuda"``. For the methods ridge, gaussian-process and spectral-graph,
        with a guarantee for the column; all rows then take part in the fit.
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
        ``json()``. Of a Dask frame, a lazy frame with the new columns (see `transduce.filling.fill_lazily` for its
        guarantee).

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
    settings = FillSettings.read(
        target,
        {
            "method": method,
            "confidence": confidence,
            "certainty": certainty,
            "guarantee": guarantee,
            "label_conditional": label_conditional,
            "tolerance": tolerance,
            "probabilities": probabilities,
            "random_labels": random_labels,
            "sampling_probability": sampling_probability,
            "shift": shift,
            "sensitivity": sensitivity,
            "groups": groups,
            "within": within,
            "order": order,
            "task": task,
            "ignore": ignore,
            "text": text,
            "id": id,
            "missing": missing,
            "minimum": minimum,
            "maximum": maximum,
            "label_next": label_next,
            "reject_share": reject_share,
            "budget_seconds": budget_seconds,
            "sample": sample,
            "device": device,
            "n_jobs": n_jobs,
            "random_state": random_state,
            "source": source,
        },
    )
    if is_dask(table):
        return fill_partitions(table, settings).frame
    asked = settings.as_given(table)
    given, frame, labels, settings, prefer = read_table(table, settings)
    if is_sampled(settings, labels, frame):
        result = fill_by_sample(frame, labels, settings, prefer)
    else:
        result = fill_whole(frame, labels, settings, prefer)
    result = replace(result, options=asked | {"task": labels.task})
    return result if given is frame else replace(result, frame=with_new_columns(given, result.new))


def read_table(table: Any, settings: FillSettings) -> tuple[Any, pd.DataFrame, Target, FillSettings, str]:
    """Return the table as given and as a frame, its labels, the settings for their task, and the decimal sign."""
    given = table
    if isinstance(table, Table):
        given = table.frame.drop(columns=[name for name in table.index if name not in settings.named])
    frame, target = as_pandas(given), settings.target
    if isinstance(table, Table):
        table.check_column(target)
    check_columns(frame, settings.named)
    cells = table.cells(target) if isinstance(table, Table) else None
    labels = read_target(
        without(frame, settings.missing),
        target,
        task=settings.task,
        cells=cells,
    )
    check_names(frame, labels, settings.probabilities, settings.label_next)
    if isinstance(table, Table):
        labels = replace(labels, notes=[*labels.notes, *table.notes])
    return given, frame, labels, settings.for_task(labels.task), getattr(table, "prefer", "point")


def fit_fill(table: Any, target: Any, *, prefer: str = "", **settings: Any) -> SampleFit:
    """Fit a model of one column, to answer rows that come later.

    Parameters
    ----------
    table : pandas or polars DataFrame, or Table
        Rows with and without a label.
    target : str
        The column.
    prefer : {"point", "comma"}, optional
        The decimal sign of numbers in text, in case of doubt; that of the table by default.
    **settings
        As those of `fill`.

    Returns
    -------
    SampleFit
        ``fitted.answer(rows)`` gives the new columns of later rows, ``result`` is the table filled, and
        ``guarantee_of_later(n)`` says what holds for n later rows.

    Notes
    -----
    Some labelled rows are kept from the fit: they calibrate the answers at later rows, which the fit has not seen
    either. The guarantee holds if chance decided which rows are labelled, which are in the table, and which come later.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> size = np.arange(200.0)
    >>> table = pd.DataFrame({"size": size, "price": np.where(size % 3 == 0, np.nan, 2 * size)})
    >>> found = fit_fill(table, "price", method="ridge")
    >>> found.fitted.answer(pd.DataFrame({"size": [12.5]}))["price_filled"].round().tolist()
    [25.0]
    """
    _, frame, labels, read, sign = read_table(table, FillSettings.read(target, settings))
    read.check_sampled()
    return fit_table(frame, labels, read, prefer or sign)[0]
