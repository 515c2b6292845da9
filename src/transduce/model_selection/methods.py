"""The one registry of methods: their names, what they are for, how they are made, their costs.

The command line lists the methods, so this module imports nothing heavy: a method is imported when
it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from transduce.core.types import KnownTask, OptionValues, Seed

NUMBERS: KnownTask = "regression"
CLASSES: KnownTask = "classification"
MOST_ROWS = 1500  # beyond, transductive ridge has centres at some rows only
CENTRES = 500
SEARCHED = 500  # labels on which the Gaussian process looks for its parameters
MOST_EXACT = 3000  # labels from which the Gaussian process answers exactly, its default
# From so many on boosted trees join and, for numbers, extremely randomised trees replace the
# forest.
MANY_LABELS = 200
ALWAYS = (0.0, float("inf"))
MANY = (MANY_LABELS, float("inf"))
FEWER = (0.0, MANY_LABELS)
NEVER = (1.0, 0.0)
GRAPH_ROWS = 20_000  # beyond so many the graph is left out, since every fold builds it again
TREES = 200
LEAF = 3  # rows in the smallest leaf of the random forest for classes, unless there are few labels
FEW_LABELS = 30
FEW_RIDGE = 0.03  # penalty of transductive ridge for numbers with few labels
FEW_C = 0.3  # inverse penalty of logistic regression, likewise
DRAWN = 10_000  # labels that each tree of a forest draws at most
MOST_FEATURES = 100
FARTHEST = 3.0  # where features of linear methods are cut off
DEVICE_ROWS = 500  # below, small steps wait for a device longer than it saves (benchmarks/gpu.py)
# Small steps and leaves, and some features only at each split: where labels say much this comes
# near to CatBoost, and where they say little the other members count for more.
BOOSTING: dict[str, OptionValues] = {
    NUMBERS: {"learning_rate": 0.08, "n_estimators": 400},
    CLASSES: {"learning_rate": 0.04, "n_estimators": 300},
}


@dataclass(frozen=True)
class Case:
    """What a method is made for: a task, and the size of the table as far as it is known."""

    task: KnownTask
    n_rows: int
    n_labels: int = 0  # as n_features, 0 if it is not known
    n_features: int = 0
    n_classes: int = 0
    # Whether methods that depend on the scale of features bring them to one.
    standardize: bool = True
    random_state: Seed = None
    # Where the methods that can compute, as `transduce.device.to_device` takes it.
    device: str | None = None
    # Columns of each view of the rows, by their positions, where there are several: for the graph.
    views: tuple[tuple[int, ...], ...] | None = None

    @property
    def few(self) -> bool:
        """Whether there are few labels."""
        return 0 < self.n_labels < FEW_LABELS

    @property
    def wide(self) -> bool:
        """Whether there are many features."""
        return self.n_features > MOST_FEATURES

    def many_classes(self, *, a_row: float = 0.0, a_label: float = 0.0) -> float:
        """Return the seconds of all classes beyond ten.

        `a_row` and `a_label` are those for each row, or label, and class.
        """
        return max(self.n_classes - 10, 0) * (self.n_rows * a_row + self.n_labels * a_label)


@dataclass(frozen=True)
class Method:
    """A method: its names, what it is for, how it is made, and what it costs on one core."""

    # Seconds are rough; those of many classes were measured with 2,000 labels of 10 to 300 classes
    # in 3,000 rows.

    name: str  # on the command line; "" if it is in comparisons and blends only
    says: str = ""  # what it does, in a line
    paper: str = ""  # where it comes from
    member: str = ""  # its name in a comparison or a blend; "" if it is made of members
    tasks: tuple[KnownTask, ...] = (NUMBERS, CLASSES)
    # Tasks in whose blend it is, with the labels from which and below which; by
    # benchmarks/member_settings.py.
    blended: dict[str, tuple[float, float]] = field(default_factory=dict)
    make: Callable[[Case], Any] = lambda case: None  # the estimator, not fitted
    fit_seconds: Callable[[Case], float] = lambda case: 0.1 + 5e-6 * case.n_labels
    answer_seconds: Callable[[Case], float] = lambda case: 3e-7  # a row that it was not fitted to
    least_labels: int = 0
    # Labels, rows or features beyond which it is left out.
    most: dict[str, int] = field(default_factory=dict)
    on_devices: bool = False  # whether it, or some of its members, compute where the features are
    # Whether it joins comparisons; one that takes fifty times as long does not.
    compared: bool = True

    def suited(self, case: Case) -> Any:
        """Return the estimator, not fitted.

        Its rows go to the case's device if it can compute there and that pays.
        """
        estimator = self.make(case)
        if case.device is None or not self.on_devices or case.n_rows < DEVICE_ROWS:
            return estimator
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import FunctionTransformer

        from transduce.device.memory import to_device

        to_there = FunctionTransformer(to_device, kw_args={"device": case.device})
        steps = [("method", estimator)]
        if isinstance(estimator, Pipeline):
            steps = estimator.steps
        return Pipeline([*steps[:-1], ("device", to_there), steps[-1]])

    def why_too_large(self, case: Case) -> str:
        """Return why it is left out of a large table, "" if it is not."""
        sizes = {"labels": case.n_labels, "rows": case.n_rows, "features": case.n_features}
        for quantity, most in self.most.items():
            if sizes[quantity] > most:
                return f"{sizes[quantity]:,} {quantity} are more than {most:,}"
        return ""


# ---- how they are made


def _transductive_ridge(case: Case) -> Any:
    from transduce.methods.ridge import TransductiveRidge, TransductiveRidgeClassifier

    centres = None
    if case.n_rows > MOST_ROWS:
        centres = CENTRES
    if case.task == CLASSES:
        return TransductiveRidgeClassifier(
            centres=centres, standardize=case.standardize, random_state=case.random_state
        )
    ridge: float | Literal["loo"] = "loo"
    if case.few:
        ridge = FEW_RIDGE
    return TransductiveRidge(
        ridge=ridge,
        centres=centres,
        standardize=case.standardize,
        random_state=case.random_state,
    )


def _has_relevances(case: Case) -> bool:
    """Return whether every feature is to have a relevance in a Gaussian process."""
    # A relevance for every feature costs as many steps as there are features, each the square of
    # the labels: as many as 100 features take with the most labels that are searched on. To stop at
    # 100 features whatever the labels were took the error of `fill` from 0.06 to 0.61 (60 labels,
    # 10 of 101 features count).
    n_searched = min(case.n_labels or SEARCHED, SEARCHED)
    return case.n_features * n_searched**2 <= MOST_FEATURES * SEARCHED**2


def _gaussian_process(case: Case) -> Any:
    from transduce.methods.gaussian_process import TransductiveGPRegressor

    return TransductiveGPRegressor(
        matching=0,
        prior=(0.1, 2.0),
        relevance=_has_relevances(case),
        standardize=case.standardize,
        n_restarts=1,
        tol=1e-5,
        max_searched=SEARCHED,
        max_exact=MOST_EXACT,
        random_state=case.random_state,
    )


def _moment_matched(case: Case) -> Any:
    from transduce.methods.gaussian_process import TransductiveGPRegressor

    # As in the paper: its prior, and the weight of the match by cross-validation.
    return TransductiveGPRegressor(
        relevance=_has_relevances(case),
        standardize=case.standardize,
        max_searched=SEARCHED,
        random_state=case.random_state,
    )


def _bayesian_transduction(case: Case) -> Any:
    from transduce.methods.bayesian import BayesianTransducer

    # Softness, the paper's outlook, since tables often hold equal rows with different labels: then
    # no separator gets every label right, and with the paper's 0 there is no answer.
    return BayesianTransducer(
        softness=0.3,
        tolerance=0.05,
        standardize=case.standardize,
        random_state=case.random_state,
    )


def _spectral_graph(case: Case) -> Any:
    from transduce.methods.spectral_graph import SpectralGraphTransducer

    # Distances and not the paper's cosines, which cannot tell rows of one column apart. With 30
    # labels the two are level on five of six tables, and cosines ten points behind on iris; between
    # rows of unit length, such as texts, they have the same neighbours.
    return _scaled(
        case,
        SpectralGraphTransducer(
            metric="euclidean", views=case.views, random_state=case.random_state
        ),
    )


def _confidence_machine(case: Case) -> Any:
    from transduce.methods.confidence_machine import (
        RidgeConfidenceClassifier,
        RidgeConfidenceMachine,
    )

    make = RidgeConfidenceMachine if case.task == NUMBERS else RidgeConfidenceClassifier
    return make(confidence=0.5, standardize=case.standardize)


def _ridge(case: Case) -> Any:
    from transduce.model_selection.linear import LinearRegressor

    return LinearRegressor(standardize=case.standardize, farthest=FARTHEST)


def _logistic_regression(case: Case) -> Any:
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=FEW_C if case.few else 1.0, max_iter=2000)
    return _scaled(case, regression, farthest=FARTHEST)


def _random_forest(case: Case) -> Any:
    if case.task == CLASSES:
        leaf = 1 if case.few else LEAF
        return _forest(case, max_features="sqrt", min_samples_leaf=leaf)
    tried = MOST_FEATURES if case.wide else 1.0
    return _forest(case, max_features=tried, min_samples_leaf=1)


def _extra_trees(case: Case) -> Any:
    tried = MOST_FEATURES / 2 if case.wide else 0.5
    leaf = 2 if case.task == NUMBERS else 1
    return _forest(case, max_features=tried, min_samples_leaf=leaf, random_cuts=True)


def _forest(case: Case, **settings: Any) -> Any:
    from transduce.model_selection.trees import ForestClassifier, ForestRegressor

    make = ForestRegressor if case.task == NUMBERS else ForestClassifier
    drawn = DRAWN if case.n_labels > DRAWN else None
    return make(TREES, max_samples=drawn, random_state=case.random_state, **settings)


def _boosted_trees(case: Case) -> Any:
    from transduce.model_selection.trees import BoostedClassifier, BoostedRegressor

    make = BoostedRegressor if case.task == NUMBERS else BoostedClassifier
    tried = 0.4 * MOST_FEATURES if case.wide else 0.3
    return make(**BOOSTING[case.task], max_features=tried, random_state=case.random_state)


def _small_trees(case: Case) -> Any:
    from transduce.model_selection.small_trees import SmallTreesClassifier

    return SmallTreesClassifier()


def _scaled(case: Case, estimator: Any, *, farthest: float = float("inf")) -> Any:
    """Return an estimator after a step that scales features to spread 1, and cuts them off."""
    # A feature that hardly varies among few labelled rows is millions of theirs away at some of the
    # others.
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from transduce.model_selection.linear import FeatureScaler

    if case.standardize:
        return make_pipeline(FeatureScaler(farthest=farthest), estimator)
    if np.isinf(farthest):
        return estimator
    cut = FunctionTransformer(np.clip, kw_args={"a_min": -farthest, "a_max": farthest})
    return make_pipeline(cut, estimator)


# ---- the registry


def _forest_seconds(case: Case) -> float:
    return 0.05 + 4e-4 * min(case.n_labels, DRAWN) + 1.5e-5 * case.n_rows


def _share_searched(case: Case) -> float:
    """Return how many labels a Gaussian process searches by, as a share of the most."""
    return min(case.n_labels / SEARCHED, 1.0)


def _process_seconds(case: Case, search_seconds: float) -> float:
    """Return what a Gaussian process takes, search included."""
    return search_seconds + 5e-5 * case.n_labels + 3e-5 * case.n_rows


REGISTRY = (
    Method(
        "auto",
        "The blend; with few labels its intervals come from the confidence machine.",
        "this project",
        on_devices=True,
    ),
    Method(
        "ridge",
        "Transductive ridge: the missing labels that minimise the leave-one-out error.",
        "Chapelle, Vapnik, Weston 1999",
        "transductive_ridge",
        blended={NUMBERS: ALWAYS, CLASSES: ALWAYS},
        make=_transductive_ridge,
        fit_seconds=lambda case: (
            (0.1 + 3e-10 * case.n_rows**3 if case.n_rows <= MOST_ROWS else 1.0 + 9e-5 * case.n_rows)
            + case.many_classes(a_row=1.9e-5)
        ),
        answer_seconds=lambda case: 1e-5,
        on_devices=True,
    ),
    Method(
        "gaussian-process",
        "A plain Gaussian process: numbers with standard errors, and relevances.",
        "Williams, Rasmussen 1996",
        "gaussian_process",
        tasks=(NUMBERS,),
        blended={NUMBERS: ALWAYS},
        make=_gaussian_process,
        fit_seconds=lambda case: _process_seconds(case, 0.3 + 3.0 * _share_searched(case) ** 3),
        answer_seconds=lambda case: 5e-9 * case.n_labels,
        on_devices=True,
    ),
    Method(
        "moment-matched",
        "Gaussian process whose predictions look, in mean and spread, like the labels.",
        "Le, Smola, Gartner, Altun 2006",
        "moment_matched",
        tasks=(NUMBERS,),
        make=_moment_matched,
        # With 500 labels and 300 unlabelled rows: nine pairs of settings in five folds.
        fit_seconds=lambda case: _process_seconds(case, 0.7 + 20.0 * _share_searched(case) ** 2),
        answer_seconds=lambda case: 5e-9 * case.n_labels,
        on_devices=True,
        compared=False,
    ),
    Method(
        "bayesian",
        "Bayesian transduction: the vote of separators that get most labels right (softness 0.3).",
        "Graepel, Herbrich, Obermayer 1999",
        "bayesian_transduction",
        tasks=(CLASSES,),
        make=_bayesian_transduction,
        fit_seconds=lambda case: 1.0 + 20.0 * (case.n_labels / 500) ** 2 + 1e-5 * case.n_rows,
        most={"labels": 1000},  # O(l^3) and more for l labels, several hundred times over
    ),
    Method(
        "spectral-graph",
        "Spectral graph transducer: labels spread over all rows' nearest neighbours, by distance.",
        "Joachims 2003",
        "spectral_graph",
        tasks=(CLASSES,),
        blended={CLASSES: ALWAYS},
        make=_spectral_graph,
        fit_seconds=lambda case: 0.1 + 6e-4 * case.n_rows + case.many_classes(a_row=1e-6),
        answer_seconds=lambda case: 1e-4,
        most={"rows": GRAPH_ROWS},
        on_devices=True,
    ),
    Method(
        "confidence-machine",
        "Ridge confidence machine: an exact interval at every row, with no label held out.",
        "Nouretdinov, Melluish, Vovk 2001",
        "confidence_machine",
        make=_confidence_machine,
        most={"labels": 5000},
    ),
    Method(
        "blend",
        "Weighted mean of the methods that suit the table.",
        "this project",
        on_devices=True,
    ),
    Method("", member="ridge", tasks=(NUMBERS,), blended={NUMBERS: ALWAYS}, make=_ridge),
    Method(
        "",
        member="logistic_regression",
        tasks=(CLASSES,),
        blended={CLASSES: ALWAYS},
        make=_logistic_regression,
        fit_seconds=lambda case: 0.1 + 5e-6 * case.n_labels + case.many_classes(a_label=4e-7),
    ),
    Method(
        "forest",
        "Random forest, for comparison.",
        "Breiman 2001",
        "random_forest",
        blended={NUMBERS: FEWER, CLASSES: ALWAYS},
        make=_random_forest,
        fit_seconds=lambda case: _forest_seconds(case) + case.many_classes(a_label=7e-6),
        answer_seconds=lambda case: 1.5e-5,
    ),
    Method(
        "",
        member="extra_trees",
        blended={NUMBERS: MANY, CLASSES: ALWAYS},
        make=_extra_trees,
        fit_seconds=lambda case: _forest_seconds(case) + case.many_classes(a_label=2.5e-6),
        answer_seconds=lambda case: 1.5e-5,
        most={"features": 1000},  # with 5,000 they have no weight, and take longer than all others
    ),
    Method(
        "",
        member="boosted_trees",
        blended={NUMBERS: ALWAYS, CLASSES: ALWAYS},
        make=_boosted_trees,
        fit_seconds=lambda case: 0.1 + 1e-4 * case.n_labels + case.many_classes(a_label=5e-5),
        answer_seconds=lambda case: 6e-7 * (case.n_classes if case.n_classes > 2 else 1),
        least_labels=MANY_LABELS,
    ),
    Method(
        "",
        member="small_trees",
        tasks=(CLASSES,),
        blended={CLASSES: ALWAYS},
        make=_small_trees,
        fit_seconds=lambda case: (
            0.1 + 1e-6 * case.n_labels * (case.n_features or 20) + case.many_classes(a_label=3e-7)
        ),
        answer_seconds=lambda case: 2e-6 * max(case.n_classes, 2) / 2,
    ),
)
# By the names that users give them, and by those of comparisons and blends.
METHODS = {method.name: method for method in REGISTRY if method.name}
MEMBERS = {method.member: method for method in REGISTRY if method.member}


def default_members(case: Case, *, compare: bool = False) -> tuple[OptionValues, dict[str, str]]:
    """Return methods that suit a table by name, and for those that do not, why.

    They are all methods, or those of a blend.
    """
    members: OptionValues = {}
    left_out: dict[str, str] = {}
    for name, method in MEMBERS.items():
        least, below = method.blended.get(case.task, NEVER)
        if compare and method.compared and case.task in method.tasks:
            least, below = ALWAYS
        if not max(least, method.least_labels) <= case.n_labels < below:
            continue
        too_large = method.why_too_large(case)
        if too_large:
            left_out[name] = too_large
        else:
            members[name] = method.suited(case)
    return members, left_out


def planned_costs(names: Iterable[str], case: Case, *, fits: int = 1) -> dict[str, float]:
    """Return the planned seconds of some members of a blend on one core, by name."""
    # Weights take about as long again as fits.
    return {name: 2 * fits * MEMBERS[name].fit_seconds(case) for name in names}


def leave_out_slow(costs: Mapping[str, float], budget: float, *, others: int = 0) -> dict[str, str]:
    """Return the members to leave out so that the rest fits the budget, and why.

    One stays, or one of the others.

    The slowest goes first. Planned seconds alone decide, so that the same table has the same
    members everywhere.
    """
    kept = dict(costs)
    left_out: dict[str, str] = {}
    while kept and sum(kept.values()) > budget and len(kept) + others > 1:
        slowest = max(kept, key=lambda name: kept[name])
        seconds = kept.pop(slowest)
        left_out[slowest] = f"it would take about {seconds:,.3g} s of a budget of {budget:,.5g} s"
    return left_out
