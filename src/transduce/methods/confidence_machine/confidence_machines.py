"""The ridge regression confidence machine, for numbers and for classes.

Nouretdinov, Melluish and Vovk (2001).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self, get_args, overload

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer, LevelAnswer, Regions
from transduce.core.checks import check_random_state
from transduce.core.guarantee import Guarantee, TooFewLabelsWarning
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.row_order import number_rows, number_rows_of_kernel
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Labels, Mask, Rows, Seed
from transduce.core.validation import ClassTransducer, NumberTransducer
from transduce.core.words import quoted
from transduce.device.kernels import KernelLike
from transduce.methods.confidence_machine import tuned_machine
from transduce.methods.confidence_machine.class_probabilities import ClassProbabilities
from transduce.methods.confidence_machine.far_labels import GuardedMachine
from transduce.methods.confidence_machine.label_scales import (
    ScaledMachine,
)
from transduce.methods.confidence_machine.local_spread import Neighborhood
from transduce.methods.confidence_machine.machine import Machine, find_regions
from transduce.methods.confidence_machine.machine_options import (
    MachineOptions,
    Residual,
    Scale,
    read_options,
)
from transduce.methods.confidence_machine.own_scores import Nonconformity, ScoredMachine
from transduce.methods.confidence_machine.promises import (
    TUNED,
    AnyMachine,
    count_single_labels,
    explain,
    promise_intervals,
    promise_sets,
)
from transduce.methods.confidence_machine.setting_grid import (
    Setting,
    SettingGrid,
    build_kernel,
    default_settings,
)
from transduce.methods.confidence_machine.tuned_machine import RowAnswers, TunedMachine

Side = Literal["two", "lower", "upper"]
BETWEEN_TIES = 1e-9  # in the logarithm of p-values, which differ by far more where they differ

# ----------------------------------------------------------------------- what both estimators share


class PrecomputedKernel(NamedTuple):
    """A precomputed kernel, as it was given to `fit`."""

    n: int  # how many rows it has
    labelled: AnyArray  # which of them are labelled
    own_value: float | None  # the kernel value of every row with itself, if all share one

    @classmethod
    def read(cls, K: Array, labelled: Mask) -> PrecomputedKernel:
        """Read the matrix (n, n) of all rows."""
        checks.check_square(K)
        xp = arrays.namespace(K)
        diagonal = arrays.diagonal(K)
        first = float(diagonal[0])
        # A kernel that is the same for all rows with themselves is so for rows yet to come.
        is_constant = bool(xp.all(xp.abs(diagonal - diagonal[0]) <= 1e-12 * abs(first)))
        own_value = first if is_constant else None
        return cls(K.shape[0], np.flatnonzero(labelled), own_value)

    def rows(self, values: Array) -> Array:
        """Return kernel values with the labelled rows, and of rows with themselves, the last."""
        labelled = arrays.pick_columns(values, self.labelled)
        return arrays.namespace(values).concat([labelled, values[:, -1:]], axis=1)


class FittedRows(NamedTuple):
    """All rows in the form that the machine takes."""

    rows: Array
    form: Scaling | PrecomputedKernel | None  # how the user's rows become the machine's
    estimated: list[str]  # what the features set


@dataclass(kw_only=True, eq=False, repr=False)
class MachineEstimator:
    """The settings of both confidence machines, and what they do with what a call gives them."""

    kernel: KernelLike = "rbf"
    width: float | Literal["median"] = "median"
    ridge: float = 1.0
    degree: float = 3
    coef0: float = 1.0
    fit_intercept: bool = True
    standardize: bool = True
    residual: Residual | Nonconformity = "auto"
    confidence: float | Sequence[float] = 0.9
    max_memory_mb: float = 512
    settings: Literal["leave-one-out"] | Sequence[Setting] | None = None
    missing_label: object = None
    settings_: tuple[Setting, ...] | None = field(init=False)
    width_: float | None = field(init=False)
    _machine: AnyMachine = field(init=False)
    _form: Scaling | PrecomputedKernel | None = field(init=False)

    def _fit_machine(
        self, sample: PartlyLabelled, y_l: Array, labels: AnyArray
    ) -> tuple[Array, list[str]]:
        """Fit the machine; return the unlabelled rows in its form, and what the features set.

        Given are the targets of ridge regression, and the labels (l,) for a function of the user's.
        """
        options = read_options(vars(self))
        rows, form, estimated = self._take_rows(sample, options.setting)
        rows_l = arrays.pick(rows, sample.labelled)
        if options.function is not None:
            self._fit_function(options.function, rows_l, labels, options.resolution)
        elif options.candidates is None:
            estimated += self._fit_fixed(options, rows, rows_l, y_l)
        else:
            estimated += self._fit_tuned(options, rows, rows_l, y_l)
        self._form = form
        return arrays.pick(rows, ~sample.labelled), estimated

    def _fit_function(
        self, function: Nonconformity, rows_l: Array, labels: AnyArray, resolution: float | None
    ) -> None:
        """Take the labelled rows for a function of the user's, which scores numpy arrays."""
        if arrays.is_foreign(rows_l):
            raise ValueError("A function as residual scores numpy arrays: pass X as one.")
        self._machine = ScoredMachine.build(function, rows_l, labels, resolution)
        self.settings_ = None
        self.width_ = None

    def _take_rows(self, sample: PartlyLabelled, setting: Setting) -> FittedRows:
        """Return all rows as the machine takes them: kernel values, scaled, or as they are."""
        rows = sample.X
        if setting.kernel == "precomputed":
            kernel = PrecomputedKernel.read(rows, sample.labelled)
            own_values = arrays.diagonal(rows)[:, None]
            values = arrays.namespace(rows).concat([rows, own_values], axis=1)
            return FittedRows(kernel.rows(values), kernel, [])
        if self.standardize:
            scaling, scaled = Scaling.fit_apply(rows)
            return FittedRows(scaled, scaling, ["their scale"])
        return FittedRows(rows, None, [])

    def _fit_fixed(
        self,
        options: MachineOptions,
        rows: Array,
        rows_l: Array,
        y_l: Array,
    ) -> list[str]:
        """Fit a machine with the estimator's kernel; return what the features set."""
        setting = options.setting
        kernel = build_kernel(setting, rows)
        self._machine = Machine.build(
            rows_l,
            y_l,
            kernel,
            ridge=float(setting.ridge),
            fit_intercept=options.fit_intercept,
            power=options.power,
            max_bytes=options.max_bytes,
        )
        self.settings_ = None
        self.width_ = kernel.width if setting.has_width else None
        if setting.estimated:
            return ["the kernel's width"]
        return []

    def _fit_tuned(
        self,
        options: MachineOptions,
        rows: Array,
        rows_l: Array,
        y_l: Array,
    ) -> list[str]:
        """Fit a machine that chooses among settings; return what the features set."""
        if arrays.is_foreign(rows):
            raise ValueError(
                "settings are chosen on numpy arrays only: pass X as one, or set kernel, width "
                "and ridge."
            )
        candidates, are_estimated = candidate_settings(options, rows)
        grid = SettingGrid.build(candidates, rows)
        neighborhood = None
        if options.is_local:
            neighborhood = Neighborhood.build(rows, rows_l)
        machine = TunedMachine.build(
            grid,
            rows_l,
            y_l,
            fit_intercept=options.fit_intercept,
            power=options.power,
            max_bytes=options.max_bytes,
            neighborhood=neighborhood,
        )

        def with_labels(labels: Array) -> TunedMachine | ScaledMachine:
            if options.scale != "identity":
                return ScaledMachine.build(machine, labels, options.scale)
            if labels is y_l:
                return machine
            return machine.with_labels(labels)

        if options.draws_in:
            self._machine = GuardedMachine.build(y_l, with_labels)
        else:
            self._machine = with_labels(y_l)
        self.settings_ = grid.settings
        self.width_ = None
        set_by_features = []
        if are_estimated:
            set_by_features.append("the kernels")
        if options.is_local:
            set_by_features.append("the neighbours")
        return set_by_features

    def _new_rows(self, X: Rows, *, own_value: bool = True) -> Array:
        """Return rows given after `fit` as the machine takes them."""
        if not hasattr(self, "answer_"):
            check_is_fitted(self)  # which takes its time, and says what to do
        form = self._form
        if isinstance(form, PrecomputedKernel):
            return self._new_kernel_rows(X, form, own_value=own_value)
        rows = validation.read_rows(self, X, reset=False, device=True)
        if form is None:
            return rows
        return form.apply(rows)

    def _new_kernel_rows(self, X: Rows, kernel: PrecomputedKernel, *, own_value: bool) -> Array:
        """Return given kernel values of new rows; warn if those with themselves are assumed."""
        if own_value and kernel.own_value is not None and np.shape(X)[1:] == (kernel.n,):
            warnings.warn(
                f"The kernel values of new rows with themselves (column {kernel.n + 1}) are not "
                f"given: {kernel.own_value:g} is taken, as for all rows of fit.",
                stacklevel=4,
            )
        values = validation.read_kernel_rows(X, kernel.n, kernel.own_value, own_value=own_value)
        return kernel.rows(values)

    def _levels(self, confidence: Any) -> list[float]:
        """Return the levels of a call that may name several, or raise a ValueError."""
        if not are_several(confidence):
            return [self._level(confidence)]
        return list(checks.read_levels("confidence", confidence))

    def _level(self, confidence: float | None) -> float:
        """Return the confidence of a call, by default the estimator's main one."""
        if confidence is None:
            return self._own_levels[0]
        return checks.check_share("confidence", confidence)

    @property
    def _own_levels(self) -> tuple[float, ...]:
        """The estimator's levels, the main one first."""
        return checks.read_levels("confidence", self.confidence)


def candidate_settings(options: MachineOptions, rows: Array) -> tuple[Sequence[Setting], bool]:
    """Return the settings to choose from, and whether the features have a part in them."""
    candidates = options.candidates
    if isinstance(candidates, tuple):
        return candidates, any(setting.estimated for setting in candidates)
    return default_settings(rows), True


Levels = float | Sequence[float] | None


def are_several(confidence: Levels) -> bool:
    """Return whether a call names several levels."""
    return isinstance(confidence, Sequence | np.ndarray) and not isinstance(confidence, str)


def tie_weights(n: int, smooth: bool, random_state: Seed) -> Array:
    """Return the weight of ties at each of `n` rows: 1, or smoothed, random between 0 and 1."""
    if smooth:
        return check_random_state(random_state).uniform(size=n)
    return np.ones(n)


def answer_numbers(
    machine: AnyMachine,
    rows: Array,
    confidence: float,
    side: Side = "two",
    *,
    values: bool = True,
) -> RowAnswers:
    """Return values, if they are wanted, and regions of rows; warn if the labels are too few."""
    rank = nonconformity_rank(confidence, machine.n_labelled)
    if rank == 0 and rows.shape[0]:
        warn_of_few_labels(confidence, machine.n_labelled, "every region is the whole line")
    if isinstance(machine, ScoredMachine):
        if side != "two":
            raise ValueError("A function as residual has no sign: only side='two' has a meaning.")
        return machine.answer_rows(rows, rank=rank)
    if isinstance(machine, ScaledMachine | GuardedMachine):
        return machine.answer_rows(rows, rank=rank, side=side)
    if isinstance(machine, TunedMachine):
        return tuned_machine.answer_rows(machine, rows, rank=rank, side=side)
    regions = find_regions(machine, rows, rank=rank, side=side)
    if not values:
        return RowAnswers(rows[:0, 0], regions)
    return RowAnswers(machine.predict(rows), regions)


def warn_of_few_labels(
    confidence: float,
    n: int,
    consequence: str,
    which: str = "",
) -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = f"labelled rows{which} support"
    if n == 1:
        rows = f"labelled row{which} supports"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; "
        f"at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )


# ------------------------------------------------------------------------------------------ numbers


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeConfidenceMachine(MachineEstimator, NumberTransducer):
    """Prediction regions for ridge regression that cover with the stated probability, exactly.

    Full conformal prediction around (kernel) ridge regression (Nouretdinov, Melluish, Vovk 2001.
    Ridge regression confidence machine. ICML): a region holds every label that would not make its
    row's residual nonconforming among those of the completed sample. Rows need only be
    exchangeable; no label is set aside.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a symmetric function
        of two rows (arrays of shape (d,), standardised if the features are) that returns a number.
    width : float or "median", default="median"
        Length scale of the kernel (see `transduce.device.kernels.Kernel`); the median distance
        between rows.
    ridge : float, default=1.0
        Added to the diagonal of the kernel matrix.
    degree, coef0 : float, default=3 and 1.0
        Of the polynomial kernel ``(<u, v> + coef0) ** degree``.
    fit_intercept : bool, default=True
        Whether to add an unpenalised constant.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`,
        but for a few that are far from all others.
    residual : {"auto", "plain", "deleted", "studentized"} or callable, default="auto"
        What is compared: residuals, leave-one-out residuals, or what lies halfway between them.
        ``"auto"`` is ``"plain"`` with one setting, ``"studentized"`` where settings are chosen, and
        ``"deleted"`` with a local spread. Or a nonconformity measure of your own, in place of ridge
        regression: a function of the rows (l + 1, d) and labels (l + 1,) of a completed sample that
        returns a number for each row, larger where it is stranger. It is called for every candidate
        label, so it is for few labels.
    settings : None, "leave-one-out" or list of Setting, default=None
        What to choose kernel, width and ridge from, in place of the estimator's own: a grid of
        twenty that suits most tables, or a list. At every candidate label of a row, that setting is
        used which has the smallest leave-one-out error on the sample completed with it. This keeps
        the guarantee.
    spread : {"constant", "local"}, default="constant"
        Whether residuals are divided by their local spread, from the squared residuals of rows with
        similar features: regions are then wide where residuals are large. This keeps the guarantee.
    scale : {"identity", "sqrt", "log", "auto"}, default="identity"
        Of the labels: as they are, their root, or their logarithm; ``"auto"`` chooses for every
        candidate label, by the leave-one-out likelihood of the sample completed with it, if all its
        labels are positive. Then no region reaches below 0; the guarantee is kept, since a row
        whose label alone is not positive is infinitely nonconforming.
    draw_in_far : bool, default=False
        Whether labels that are far from all others, such as slips of the pen, are moved closer, so
        that they do not widen all regions; their rows count as infinitely nonconforming. A
        candidate label is treated alike, which keeps the guarantee.
    resolution : float or "auto", default="auto"
        With a function as residual, to what labels are rounded before it scores them: regions are
        of whole units. ``"auto"`` is a 64th to a 128th of the range of the completed sample.
    confidence : float or list of float, default=0.9
        Probability with which a region covers, unless a call says otherwise. Of several levels the
        first is the main one; the regions at the others, each guaranteed by itself, are in
        ``answer_.further``.
    max_memory_mb : float, default=512
        Unlabelled rows are answered in chunks whose working arrays fit into this; the ``l x l``
        matrices do not count.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_, guarantee_
        Labels completed by the ridge prediction (n,); `Answer` with regions at the unlabelled rows;
        what is guaranteed.
    width_ : float or None
        The kernel's width; None if it has none, or if settings were chosen.
    settings_ : tuple of Setting or None
        What was chosen from, with the widths that the features set. ``answer_.diagnostics`` says
        how often each was chosen (``"n_chosen"``, at the values) and has a part in a region
        (``"n_in_region"``).

    Notes
    -----
    The guarantee is for each row by itself: of the number of unlabelled rows outside their regions
    only the mean is guaranteed. With ``standardize=True`` or ``width="median"`` that of rows given
    only to ``predict_*`` is approximate, since they had no part in scale and width. Settings chosen
    by looking at the same labels (a grid search, say) void the exactness, and no code can notice;
    `settings` does not, see docs/methods/confidence_machine.md.

    Fitting costs ``l d^2`` operations for a linear kernel with ``d < l``, else ``l^3 / 3``; an
    unlabelled row about ``d^2`` or ``2 l^2``. With `settings`, a local spread or a scale, about
    ``10 l^3`` for each kernel, and ``2 l^2`` a row for each setting; a local spread takes ``8 l^2``
    a row more for each setting that is chosen at some label.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import RidgeConfidenceMachine
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.where(np.isin(X[:, 0], [5, 12]), np.nan, 2 * X[:, 0] + np.tile([0.0, 1.0], 10))
    >>> machine = RidgeConfidenceMachine(kernel="linear", ridge=1e-3, confidence=0.8)
    >>> machine.fit(X, y).answer_.regions
    Regions of 2 rows:
      0: [9.771, 11.06]
      1: [23.93, 25.17]
    """

    spread: Literal["constant", "local"] = "constant"
    scale: Scale = "identity"
    draw_in_far: bool = False
    resolution: float | Literal["auto"] = "auto"

    def fit(self, X: Rows, y: Labels) -> Self:
        """Predict at the rows of X (n, d) whose label in y (n,) is missing.

        X is their kernel matrix if the kernel is precomputed.
        """
        sample = validation.read_sample(self, X, y, device=True)
        labels = validation.numeric_labels(sample)
        unlabelled, estimated = self._fit_machine(sample, labels, labels)
        level, *others = self._own_levels
        answers = answer_numbers(self._machine, unlabelled, level)
        further = []
        for other in sorted(others):
            regions = answer_numbers(self._machine, unlabelled, other, values=False).regions
            further.append(LevelAnswer(other, regions=regions))
        promise = promise_intervals(level)
        self.guarantee_ = explain(self._machine, sample, promise, estimated)
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=answers.values,
            status=np.full(unlabelled.shape[0], "answered"),
            guarantee=self.guarantee_,
            regions=answers.regions,
            further=tuple(further),
            index=sample.index_at(sample.unlabelled),
            diagnostics=diagnose(self._machine, answers),
        )
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def guarantee_at(self, confidence: float) -> Guarantee:
        """Return what is guaranteed of the regions at another level.

        Parameters
        ----------
        confidence : float
            The level, between 0 and 1.

        Returns
        -------
        Guarantee
        """
        check_is_fitted(self)
        level = checks.check_share("confidence", confidence)
        return replace(self.guarantee_, confidence=level)

    def predict(self, X: Rows) -> Array:
        """Predict rows by ridge regression on the labelled rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not. With a precomputed kernel these are kernel values with all n
            rows of `fit` and, as column n + 1, of the rows with themselves. `predict` does not need
            that column, and other methods only if the kernel's diagonal was not constant in `fit`.

        Returns
        -------
        array of shape (m,)
        """
        rows = self._new_rows(X, own_value=False)  # says so, if there was no fit
        return self._machine.predict(rows)

    @overload
    def predict_region(
        self, X: Rows, *, confidence: float | None = None, side: Side = "two"
    ) -> Regions: ...
    @overload
    def predict_region(
        self, X: Rows, *, confidence: Sequence[float], side: Side = "two"
    ) -> list[Regions]: ...
    def predict_region(
        self, X: Rows, *, confidence: Levels = None, side: Side = "two"
    ) -> Regions | list[Regions]:
        """Return the region of each row: all labels that conform to the labelled rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.
        confidence : float or list of float, optional
            The level, by default the estimator's. A region is part of that of any higher level.
        side : {"two", "lower", "upper"}, default="two"
            "lower" gives lower bounds ``[a, ∞)``, "upper" upper bounds ``(-∞, b]``, from signed
            residuals.

        Returns
        -------
        Regions or list of Regions
            A list for several levels.
        """
        rows = self._new_rows(X)
        checks.check_choice("side", side, get_args(Side))
        levels = self._levels(confidence)
        regions = [
            answer_numbers(self._machine, rows, level, side, values=False).regions
            for level in levels
        ]
        if are_several(confidence):
            return regions
        return regions[0]

    def predict_interval(self, X: Rows, *, confidence: Levels = None) -> Array:
        """Return the smallest interval that contains each row's region.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.
        confidence : float or list of float, optional
            The level, by default the estimator's.

        Returns
        -------
        array of shape (m, 2), or (m, n_levels, 2) for several levels
            Both ends, infinite if the region is a ray.
        """
        regions = self.predict_region(X, confidence=confidence)
        if isinstance(regions, Regions):
            return regions.hull()
        hulls = [arrays.to_numpy(of_level.hull()) for of_level in regions]
        return np.stack(hulls, axis=1)

    def p_values(
        self, X: Rows, y: Labels, *, smooth: bool = False, random_state: Seed = None
    ) -> Array:
        """Return the p-values of candidate labels.

        A p-value is the share of residuals at least as large as the row's own.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `predict`.
        y : array-like of shape (m,)
            One candidate label for each row.
        smooth : bool, default=False
            Whether ties, the row itself included, count with a random weight between 0 and 1 (the
            same for all ties of a row), which makes p-values of true labels exactly uniform.
        random_state : int, optional
            Seed of these weights.

        Returns
        -------
        array of shape (m,)
        """
        rows = self._new_rows(X)
        tau = tie_weights(rows.shape[0], smooth, random_state)
        labels = validation.read_candidates(y, len(tau))
        return self._machine.label_p_values(rows, labels, tau)

    def envelope(self, X: Rows, *, confidence: float | None = None) -> tuned_machine.RowEnvelope:
        """Return the leave-one-out error of every setting as the label of one row varies.

        `EnvelopeDisplay` draws it.

        Parameters
        ----------
        X : array-like of shape (1, d)
            The row.
        confidence : float, optional
            The level of its region, by default the estimator's.

        Returns
        -------
        RowEnvelope
        """
        rows = self._new_rows(X)
        machine = self._machine
        if isinstance(machine, ScaledMachine | GuardedMachine):
            raise ValueError(
                "Labels on several scales, or drawn in, have no envelope: pass scale='identity' "
                "and draw_in_far=False."
            )
        if not isinstance(machine, TunedMachine):
            raise ValueError(
                "One setting has no envelope: pass settings='leave-one-out' or a list of Setting."
            )
        if len(rows) != 1:
            raise ValueError(f"Give one row, with shape (1, d); got {len(rows)} rows.")
        rank = nonconformity_rank(self._level(confidence), machine.n_labelled)
        return tuned_machine.row_envelope(machine, rows, rank=rank)


def diagnose(machine: AnyMachine, answers: RowAnswers) -> dict[str, Any]:
    """Return what the labels support, how many regions are unions or unbounded, and the choice."""
    n_labelled = machine.n_labelled
    diagnostics = {
        "form": machine.form,
        "largest_confidence": n_labelled / (n_labelled + 1),
        "n_unions": int(np.count_nonzero(answers.regions.n_pieces > 1)),
        "n_unbounded": _count_unbounded(answers.regions),
    }
    if isinstance(machine, TUNED):
        assert answers.winners is not None
        assert answers.used is not None
        n_in_region = answers.used.sum(axis=0).tolist()
        diagnostics |= machine.grid.summarize(answers.winners, n_in_region=n_in_region)
    if isinstance(machine, GuardedMachine):
        diagnostics["n_far"] = machine.n_far[machine.main]
        machine = machine.machine
    if isinstance(machine, ScaledMachine):
        assert answers.scales is not None
        n_of_scale = np.bincount(answers.scales, minlength=len(machine.names)).tolist()
        diagnostics["n_scales"] = dict(zip(machine.names, n_of_scale, strict=True))
    return diagnostics


def _count_unbounded(regions: Regions) -> int:
    """Return how many regions have no end."""
    if np.isfinite(arrays.to_numpy(regions.pieces)).all():
        return 0
    measures = arrays.to_numpy(regions.measure())
    return int(np.sum(~np.isfinite(measures)))


# ------------------------------------------------------------------------------------------ classes


class ClassAnswers(NamedTuple):
    """What a machine says of the classes at rows."""

    p_values: Array  # (m, n_classes), within each class if the estimator is label-conditional
    log_p_values: Array  # (m, n_classes) among all labels; of equal ones larger where predicted
    best: AnyArray  # (m,) the code of the most credible class
    status: AnyArray  # (m,) "answered" or "tied"
    choice: dict[str, object]  # how often each setting was chosen, if settings are


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeConfidenceClassifier(MachineEstimator, ClassTransducer):
    """Sets of classes that hold the true one with the stated probability, exactly.

    `RidgeConfidenceMachine` on one-vs-rest ridge regression with targets -1 and +1. Each row is as
    nonconforming as its residual in the column of its own class; with two classes this is ridge
    regression on -1 and +1.

    Parameters
    ----------
    kernel, width, ridge, degree, coef0, fit_intercept, standardize, residual, confidence,
    max_memory_mb, missing_label
        As in `RidgeConfidenceMachine`.
    settings : None, "leave-one-out" or list of Setting, default=None
        As in `RidgeConfidenceMachine`; chosen for every candidate class of a row, by the
        leave-one-out error over the columns of all classes.
    label_conditional : bool, default=False
        Whether a row is compared with labelled rows of the candidate class only. The guarantee then
        holds within each class that has a label, rare ones included, and needs enough labels in
        each.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    p_unseen_ : float
        p-value of a class that no label shows, the same at every row. Where it exceeds ``1 -
        confidence``, no set rules such a class out, and ``answer_.unseen`` says so.
    transduction_, answer_
        Labels completed by the most credible class (n,); `Answer` with label sets, p-values,
        confidence and credibility. Its ``diagnostics`` say how often each setting was chosen: for
        the answered classes (``"n_chosen"``), and for all candidates (``"n_chosen_candidates"``).
    guarantee_, width_, settings_
        As in `RidgeConfidenceMachine`.

    Notes
    -----
    *Confidence* of a prediction is one less the second largest p-value: no level below it lets a
    second class into the set. *Credibility* is the largest p-value: low means that the row is
    unlike all classes, and at levels below one less the credibility its set is empty. The true
    class is outside no more often than guaranteed.

    The answer is the class with the largest p-value among all labelled rows, also with
    ``label_conditional=True``: there the p-values themselves cannot be compared, since that of a
    class with l_c labels is at least 1 / (l_c + 1). Ties go to the larger ridge prediction. An
    unlabelled row costs ``l * n_classes`` operations beyond the regression's.

    Examples
    --------
    >>> from transduce import RidgeConfidenceClassifier
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3], [0.15], [0.6]]
    >>> y = ["low", "low", "low", "low", "high", "high", "high", "high", None, None]
    >>> machine = RidgeConfidenceClassifier(ridge=0.1, confidence=0.8).fit(X, y)
    >>> machine.answer_.to_frame()[["value", "set", "credibility"]]  # 9 is between the classes
      value     set  credibility
    8   low (low,)     1.000000
    9   low     ()     0.111111
    """

    label_conditional: bool = False

    def fit(self, X: Rows, y: Labels) -> Self:
        """Predict at the rows of X (n, d) whose class in y (n,) is missing.

        X is their kernel matrix if the kernel is precomputed.
        """
        sample = validation.read_sample(self, X, y, device=True)
        classes, codes = validation.class_labels(sample)
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        unlabelled, estimated = self._fit_machine(sample, targets, classes[codes])
        self.classes_ = classes
        self._codes = codes
        self._probabilities = self._prepare_probabilities(sample)
        self._conditional = bool(self.label_conditional)
        self.p_unseen_ = float(p_values(0, count_single_labels(codes), len(codes)))
        promise = promise_sets(self._level(None), codes, by_class=self._conditional)
        self.guarantee_ = explain(self._machine, sample, promise, estimated)
        self.answer_ = self._answer(sample, unlabelled)
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def _prepare_probabilities(self, sample: PartlyLabelled) -> ClassProbabilities:
        """Return what `predict_proba` needs of the labelled rows."""
        rows = arrays.to_numpy(arrays.pick(sample.X, sample.labelled))
        numbers = number_rows(rows)
        if self.kernel == "precomputed":
            rows = rows[:, sample.labelled]
            numbers = number_rows_of_kernel(rows)
        machine = clone(self).set_params(missing_label=None)
        return ClassProbabilities(machine, rows, numbers, self._codes, self.classes_)

    def _answer(self, sample: PartlyLabelled, unlabelled: Array) -> Answer:
        """Return classes, sets and p-values of the unlabelled rows (m, d)."""
        answers = self._judge(unlabelled)
        p = answers.p_values
        xp = arrays.namespace(p)
        zeros = arrays.zeros((p.shape[0],), p)
        second_largest = xp.sort(p, axis=1)[:, -2]
        level, *others = self._own_levels
        further = []
        for other in sorted(others):
            sets = self._sets(p, other)
            further.append(LevelAnswer(other, None, sets, self._unseen_at(other, zeros)))
        return Answer(
            rows=sample.unlabelled,
            values=self.classes_[answers.best],
            status=answers.status,
            guarantee=self.guarantee_,
            label_sets=self._sets(p, level),
            p_values=p,
            unseen=self._unseen_at(level, zeros),
            p_unseen=zeros + self.p_unseen_,
            confidence=1.0 - xp.clip(second_largest, self.p_unseen_, None),
            credibility=xp.max(p, axis=1),
            classes=self.classes_,
            index=sample.index_at(sample.unlabelled),
            further=tuple(further),
            diagnostics={"form": self._machine.form, **answers.choice},
        )

    def _unseen_at(self, confidence: float, zeros: Array) -> Mask:
        """Return whether a class that no label shows is possible at rows (m,): at all or none."""
        rank = nonconformity_rank(confidence, len(self._codes))
        return zeros + (1.0 + count_single_labels(self._codes) - rank) > 0.5

    def guarantee_at(self, confidence: float) -> Guarantee:
        """Return what is guaranteed of the sets at another level.

        Parameters
        ----------
        confidence : float
            The level, between 0 and 1.

        Returns
        -------
        Guarantee
        """
        check_is_fitted(self)
        level = checks.check_share("confidence", confidence)
        promise = promise_sets(level, self._codes, by_class=self._conditional)
        return replace(self.guarantee_, confidence=level, any_class=promise.any_class)

    def _judge(self, rows: Array, tau: Array | None = None) -> ClassAnswers:
        """Return p-values, best class and status of rows; ties weigh `tau` (m,), 1 by default."""
        if tau is None:
            tau = np.ones(rows.shape[0])
        machine = self._machine
        assert isinstance(machine, Machine | TunedMachine | ScoredMachine)
        judged = machine.class_p_values(rows, self._codes, tau)
        # The class of largest p-value, the larger prediction breaking ties; the names of the
        # classes are on the host.
        overall = arrays.to_numpy(judged.overall)
        scores = arrays.to_numpy(judged.scores)
        is_largest = overall == overall.max(axis=1, keepdims=True, initial=0.0)
        contest = np.where(is_largest, scores, -np.inf)
        # Predictions for targets -1 and +1 that differ by rounding only are equal.
        winners = contest >= contest.max(axis=1, keepdims=True, initial=-np.inf) - 1e-9
        best = np.argmax(winners, axis=1)
        status = np.where(winners.sum(axis=1) > 1, "tied", "answered")
        choice: dict[str, object] = {}
        if isinstance(machine, TunedMachine):
            assert judged.chosen is not None
            chosen_for_best = judged.chosen[np.arange(len(best)), best]
            n_candidates = machine.grid.count(judged.chosen)
            choice = machine.grid.summarize(chosen_for_best, n_chosen_candidates=n_candidates)
        p = judged.within if self._conditional else judged.overall
        log_p_values = np.log(overall) + BETWEEN_TIES * np.tanh(scores)
        return ClassAnswers(p, log_p_values, best, status, choice)

    def _sets(self, p: Array, confidence: float) -> Mask:
        """Return which classes are possible; warn if the labels are too few for the level."""
        # With how many labelled rows a row is compared, for each class or for all.
        sizes = np.array([len(self._codes)])
        if self._conditional:
            sizes = np.bincount(self._codes)
        ranks = np.array([nonconformity_rank(confidence, n) for n in sizes])
        if np.any(ranks == 0) and p.shape[0]:
            self._warn_of_few_labels(confidence, sizes)
        # p > 1 - confidence, in whole numbers: p (n + 1) > rank.
        return p * arrays.asarray_like(sizes + 1.0, p) > arrays.asarray_like(ranks + 0.5, p)

    def _warn_of_few_labels(self, confidence: float, sizes: AnyArray) -> None:
        """Warn that the labels, of the rarest class or in all, are too few for the level."""
        rarest = int(np.argmin(sizes))
        if self._conditional:
            which = f" of class {quoted(self.classes_[rarest])}"
            consequence = "that class is in every set"
        else:
            which = ""
            consequence = "every set is all classes"
        warn_of_few_labels(confidence, int(sizes[rarest]), consequence, which)

    def predict(self, X: Rows) -> AnyArray:
        """Predict the most credible class: that of the largest p-value.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, as in `RidgeConfidenceMachine.predict`. With a precomputed kernel and no values of
            rows with themselves the class of the largest ridge prediction is returned.

        Returns
        -------
        array of shape (m,)
        """
        rows = self._new_rows(X, own_value=False)
        own_values_missing = np.isnan(arrays.to_numpy(rows[:, -1])).any()
        if own_values_missing:
            scores = arrays.to_numpy(self._machine.predict(rows))
            return self.classes_[np.argmax(scores, axis=1)]
        answers = self._judge(rows)
        return self.classes_[answers.best]

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of every class.

        This is the softmax of the logarithms of the p-values, times a factor that maximises the
        likelihood of the labels, each while it is hidden: at the first call the machine is fitted
        up to ten times more. Sets have a guarantee, these probabilities have none.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.

        Returns
        -------
        array of shape (m, n_classes)
            In the order of ``classes_``.
        """
        rows = self._new_rows(X)
        answers = self._judge(rows)
        return arrays.asarray_like(self._probabilities.of(answers.log_p_values), answers.p_values)

    def p_values(
        self,
        X: Rows,
        *,
        smooth: bool = False,
        random_state: Seed = None,
    ) -> Array:
        """Return the p-value of every class.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.
        smooth : bool, default=False
            Whether ties count with a random weight, the same for all classes of a row.
        random_state : int, optional
            Seed of these weights.

        Returns
        -------
        array of shape (m, n_classes)
            In the order of ``classes_``.
        """
        rows = self._new_rows(X)
        tau = tie_weights(rows.shape[0], smooth, random_state)
        return self._judge(rows, tau).p_values

    def predict_set(self, X: Rows, *, confidence: Levels = None) -> Mask:
        """Return the prediction set of each row: which classes are possible.

        All are, if there are too few labels. A class that no label shows is possible besides if
        ``p_unseen_`` exceeds ``1 - confidence``.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, seen in `fit` or not.
        confidence : float or list of float, optional
            The level, by default the estimator's.

        Returns
        -------
        boolean array of shape (m, n_classes), or (m, n_levels, n_classes) for several levels
            In the order of ``classes_``.
        """
        rows = self._new_rows(X)
        levels = self._levels(confidence)
        answers = self._judge(rows)
        sets = [self._sets(answers.p_values, level) for level in levels]
        if are_several(confidence):
            return np.stack([arrays.to_numpy(of_level) for of_level in sets], axis=1)
        return sets[0]
