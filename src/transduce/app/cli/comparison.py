"""`transduce compare` and `transduce methods`: which methods there are, and which predict best."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from transduce.app.cli.inputs import Show, read_options, read_table
from transduce.app.cli.terminal import called, say, show_choice, show_table
from transduce.app.filling.features import read_features
from transduce.app.filling.options import Options
from transduce.app.filling.plan import FOLDS, caution_on_method
from transduce.app.filling.sources import FrameSource
from transduce.app.tables.features import Features
from transduce.core.files import check_free, whole_file
from transduce.core.types import OptionValues
from transduce.core.words import option
from transduce.ensemble.blend import TransductiveBlend
from transduce.model_selection import choose_method
from transduce.model_selection.comparison import MethodChoice
from transduce.model_selection.methods import METHODS

SCORES = {"regression": "neg_mean_absolute_error", "classification": "accuracy"}
SIMPLEST = {"regression": "always the mean", "classification": "always the commonest class"}


def compare_file(
    table: str,
    target: str,
    folds: int,
    given: OptionValues,
) -> Show:
    """Compare the methods on the labels of a table in a file.

    With the blend, and with the simplest answer.
    """
    options = read_options(given)
    plot = given["plot"]
    force = given["force"]
    if plot is not None:
        check_free(plot, force=force)
    source = read_table(table, given)
    target = source.column_called(target)
    rows = FrameSource.read(source, target, options)
    options = options.below(rows.frame.columns, target)
    labels = rows.labels
    if labels.n_labels < folds:
        fewer = option("folds", max(2, labels.n_labels // 2))
        raise ValueError(
            f"Column {target!r} has {labels.n_labels} labels, too few for {folds} folds: label "
            f"more rows, or ask for {fewer}."
        )
    features = read_features(rows, options)
    choice = _score_methods(rows, features, folds, options)
    scores = _table_of_scores(choice, labels.task)
    if plot is not None:
        draw_comparison(scores, plot, force=force, like=source.files)

    def show() -> None:
        notes = [note.text for note in (*rows.notes, *features.notes)]
        show_choice(choice, scores, notes, caution_on_method(labels.task, labels.n_labels))
        if plot is not None and not given["quiet"]:
            say(f"Written: {plot}")

    return show


def _score_methods(
    rows: FrameSource, features: Features, folds: int, options: Options
) -> MethodChoice:
    """Return the score of every method, of the blend and of the simplest answer."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    task = rows.labels.task
    usual: OptionValues = {
        "task": task,
        "standardize": False,
        "random_state": options.random_state,
    }
    simplest = DummyRegressor() if task == "regression" else DummyClassifier()
    others = {"blend": TransductiveBlend(cv=FOLDS, **usual), SIMPLEST[task]: simplest}
    order = rows.order_by_content(options)  # folds by it, not by place
    return choose_method(
        features.matrix[order],
        rows.labels.labels[order],
        others,
        scoring=SCORES[task],
        cv=folds,
        n_jobs=options.n_jobs,
        **usual,
    )


def _table_of_scores(choice: MethodChoice, task: str) -> pd.DataFrame:
    """Return what is shown of each method: its name, its score and spread, and its time."""
    shown = choice.table[["score", "spread", "fit_time"]].reset_index(drop=True)
    if task == "regression":
        shown["score"] *= -1.0
        shown.columns = ["off by", "±", "seconds a fit"]
    else:
        shown.columns = ["right", "±", "seconds a fit"]
    shown.insert(0, "method", [called(name) for name in choice.table.index])
    return shown


def draw_comparison(
    shown: pd.DataFrame,
    path: Path,
    *,
    force: bool,
    like: tuple[Path, ...] = (),
) -> None:
    """Save a plot of the methods' scores and their spread over the folds, the best on top."""
    import matplotlib.pyplot as plt

    from transduce.display import INSIDE

    score = shown.columns[1]
    scored = shown[shown[score].notna()]
    figure, ax = plt.subplots(figsize=(6.4, 1.2 + 0.4 * len(scored)), layout="constrained")
    ax.errorbar(scored[score], scored["method"], xerr=scored["±"], fmt="o", color=INSIDE, capsize=3)
    ax.invert_yaxis()
    ax.set_xlabel(f"{score} (mean and standard deviation over the folds)")
    try:
        with whole_file(path, force=force, like=like) as file:
            figure.savefig(file, format=path.suffix.lstrip(".").lower(), dpi=150)
    finally:
        plt.close(figure)


def list_methods() -> None:
    """Print the methods, with the papers they come from."""
    own_estimator = (
        "MODULE:NAME",
        "A scikit-learn estimator of your own; names with commas are blended.",
        "you",
    )
    lines = [
        *((method.name, method.says, method.paper) for method in METHODS.values()),
        own_estimator,
    ]
    table = pd.DataFrame(lines, columns=["method", "what it does", "from"])
    show_table(table, longest=table.map(len).to_numpy().max())
