"""The ridge regression confidence machine (Nouretdinov, Melluish and Vovk 2001), for numbers and for classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.core import arrays, checks, validation
from transduce.core.answer import Answer, Regions
from transduce.core.checks import check_random_state
from transduce.core.guarantee import CHANCE, NOT_FOR_LATER, Guarantee, TooFewLabelsWarning
from transduce.core.ranks import nonconformity_rank, p_values
from transduce.core.sample import PartlyLabelled
from transduce.core.scaling import Scaling
from transduce.core.types import AnyArray, Array, Mask
from transduce.core.validation import ClassTransducer, NumberTransducer
from transduce.core.words import quoted
from transduce.device.kernels import KernelLike, check_kernel
from transduce.methods.confidence_machine import tuned_machine
from transduce.methods.confidence_machine.machine import Machine, find_regions
from transduce.methods.confidence_machine.menu import Menu, Setting, check_settings, default_menu
from transduce.methods.confidence_machine.residual_lines import POWER
from transduce.methods.confidence_machine.tuned_machine import RowAnswers, TunedMachine

AnyMachine = Machine | TunedMachine
_CHOSEN = (
    "For every candidate label the setting was chosen by the leave-one-out error of the sample completed with it, "
    "which treats all rows alike."
)


def read_settings(params: Mapping[str, Any]) -> tuple[Setting, Any, dict[str, Any]]:
    """Return the estimator's own setting, what to choose from instead, and what a machine is built with; checked."""
    check_kernel(params["kernel"])
    fixed = Setting(**{item.name: params[item.name] for item in fields(Setting)})
    fixed.check()
    checks.check_positive("max_memory_mb", params["max_memory_mb"])
    checks.check_choice("residual", params["residual"], ("auto", *POWER))
    checks.check_share("confidence", params["confidence"])
    for name in ("standardize", "fit_intercept", "label_conditional"):
        checks.check_flag(name, params.get(name, False))
    menu, residual = params["settings"], params["residual"]
    if menu is not None:
        menu = _read_menu(menu, fixed)
    if residual == "auto":
        residual = "plain" if menu is None else "studentized"
    build = {
        "fit_intercept": bool(params["fit_intercept"]),
        "power": POWER[residual],
        "max_bytes": float(params["max_memory_mb"]) * 2**20,
    }
    return fixed, menu, build


def _read_menu(menu: Any, fixed: Setting) -> str | tuple[Setting, ...]:
    """Return "leave-one-out" or the settings to choose from, if the estimator's own are left at their defaults."""
    if fixed.kernel == "precomputed":
        among = "settings are chosen among kernels of the features"
        raise ValueError(f"{among}: with kernel='precomputed' leave settings=None, and set ridge.")
    for item in fields(Setting):
        value = getattr(fixed, item.name)
        if value != item.default:
            raise ValueError(
                f"With settings given, {item.name}={value!r} has no meaning: leave it out, or name it in each Setting."
            )
    return menu if isinstance(menu, str) and menu == "leave-one-out" else check_settings(menu)


def promise_intervals(confidence: float) -> Guarantee:
    """Return what a machine guarantees of numbers, whatever they are."""
    return Guarantee("exact", "region", confidence, assumptions=(CHANCE,))


def promise_sets(confidence: float, codes: AnyArray, *, by_class: bool) -> Guarantee:
    """Return what a machine guarantees of classes, given the codes (l,) of the labels."""
    within = "class" if by_class else ""
    n_single = int(np.sum(np.bincount(codes) == 1))  # classes that one label shows
    rank = nonconformity_rank(confidence, len(codes))
    any_class = 0 < rank <= n_single
    exact = Guarantee("exact", "set", confidence, within, assumptions=(CHANCE,))
    return replace(exact, any_class=any_class)


def explain(
    machine: AnyMachine, sample: PartlyLabelled, exact: Guarantee, estimated: list[str]
) -> Guarantee:
    """Return what is guaranteed at the unlabelled rows, with its reasons; with none, for rows given later."""
    if machine.jitter > 0.0:
        reason = "The ridge had to be raised for numerical reasons."
        return replace(exact, kind="approximate", reasons=(reason,), n_labelled=machine.n_labelled)
    details = [_CHOSEN] if isinstance(machine, TunedMachine) else []
    what = " and ".join(estimated)
    guarantee = replace(exact, n_labelled=machine.n_labelled)
    if not estimated:
        nothing = (
            "The features set nothing." if details else "No setting was estimated from the data."
        )
        return replace(guarantee, details=(*details, nothing))
    if sample.labelled.all():
        later = f"The features set {what}, and rows given only to predict had no part in that."
        return replace(guarantee, kind="approximate", details=tuple(details), reasons=(later,))
    details.append(
        f"The features of all rows, labelled and unlabelled alike, set {what}; no label did."
    )
    return replace(guarantee, details=tuple(details), reasons=(NOT_FOR_LATER,))


class GivenKernel(NamedTuple):
    """A precomputed kernel: how many rows it has, which of them are labelled, and their own value if all share one."""

    n: int
    labelled: AnyArray
    own_value: float | None

    @classmethod
    def of(cls, K: Array, labelled: Mask) -> GivenKernel:
        """Read the matrix (n, n) of all rows."""
        checks.check_square(K)
        own, xp = arrays.diagonal(K), arrays.namespace(K)
        # A kernel that is the same for all rows with themselves is so for rows yet to come.
        near = xp.abs(own - own[0]) <= 1e-12 * abs(float(own[0]))
        return cls(
            K.shape[0], np.flatnonzero(labelled), float(own[0]) if bool(xp.all(near)) else None
        )

    def rows(self, values: Array) -> Array:
        """Return kernel values with the labelled rows alone, and the last column: values of rows with themselves."""
        labelled = arrays.pick_columns(values, self.labelled)
        return arrays.namespace(values).concat([labelled, values[:, -1:]], axis=1)


@dataclass(kw_only=True, eq=False, repr=False)
class MachineEstimator:
    """The settings of both confidence machines, and what they do with what a call gives them."""

    kernel: KernelLike = "rbf"
    width: float | str = "median"
    ridge: float = 1.0
    degree: float = 3
    coef0: float = 1.0
    fit_intercept: bool = True
    standardize: bool = True
    residual: str = "auto"
    confidence: float = 0.9
    max_memory_mb: float = 512
    settings: str | Sequence[Setting] | None = None
    missing_label: object = None
    _machine: AnyMachine = field(init=False)
    _form: Scaling | GivenKernel | None = field(
        init=False
    )  # how the user's rows become the machine's

    def _fit_machine(self, sample: PartlyLabelled, y_l: Array) -> tuple[Array, list[str]]:
        """Fit the machine; return the unlabelled rows in the form it takes, and what the features set."""
        fixed, menu, build = read_settings(vars(self))
        rows, xp = sample.X, arrays.namespace(sample.X)
        form: Scaling | GivenKernel | None = None
        width, settings, estimated = None, None, []
        if fixed.kernel == "precomputed":
            given = form = GivenKernel.of(rows, sample.labelled)
            rows = given.rows(xp.concat([rows, arrays.diagonal(rows)[:, None]], axis=1))
        elif self.standardize:
            form, rows = Scaling.fit_apply(rows)
            estimated.append("their scale")
        rows_l = arrays.pick(rows, sample.labelled)
        if menu is None:
            kernel: Any = Menu.build((fixed,), rows).kernels[0].parts[0][0]
            self._machine = Machine.build(rows_l, y_l, kernel, ridge=float(fixed.ridge), **build)
            width = kernel.width if fixed.has_width else None
            estimated += ["the kernel's width"] * fixed.estimated
        else:
            if arrays.is_foreign(rows):
                instead = "pass X as one, or set kernel, width and ridge"
                raise ValueError(f"settings are chosen on numpy arrays only: {instead}.")
            choices = Menu.build(default_menu(rows) if isinstance(menu, str) else menu, rows)
            self._machine, settings = (
                TunedMachine.build(choices, rows_l, y_l, **build),
                choices.settings,
            )
            if isinstance(menu, str) or any(setting.estimated for setting in menu):
                estimated.append("the kernels")
        self._form, self.width_, self.settings_ = form, width, settings
        return arrays.pick(rows, ~sample.labelled), estimated

    def _new_rows(self, X: Any, *, own_value: bool = True) -> Array:
        """Return rows given after `fit` as the machine takes them."""
        if not hasattr(self, "answer_"):
            check_is_fitted(self)  # which takes its time, and says what to do
        form = self._form
        if not isinstance(form, GivenKernel):
            rows = validation.read_rows(self, X, reset=False, device=True)
            return rows if form is None else form.apply(rows)
        if own_value and form.own_value is not None and np.shape(X)[1:] == (form.n,):
            warnings.warn(
                f"The kernel values of new rows with themselves (column {form.n + 1}) are not given: "
                f"{form.own_value:g} is taken, as for all rows of fit.",
                stacklevel=3,
            )
        return form.rows(
            validation.read_kernel_rows(X, form.n, form.own_value, own_value=own_value)
        )

    def _level(self, confidence: float | None) -> float:
        return checks.check_share(
            "confidence", self.confidence if confidence is None else confidence
        )


def tie_weights(n: int, smooth: bool, random_state: Any) -> Array:
    """Return the weight of ties at each of `n` rows: 1, or smoothed, a random number between 0 and 1."""
    return check_random_state(random_state).uniform(size=n) if smooth else np.ones(n)


def answer_numbers(
    machine: AnyMachine, rows: Array, confidence: float, side: str = "two", *, values: bool = True
) -> RowAnswers:
    """Return values, if they are wanted, and regions of rows; warn if the labels are too few for the level."""
    rank = nonconformity_rank(confidence, machine.n_labelled)
    if rank == 0 and rows.shape[0]:
        warn_level(confidence, machine.n_labelled, "every region is the whole line")
    if isinstance(machine, TunedMachine):
        return tuned_machine.answer_rows(machine, rows, rank=rank, side=side)
    regions = find_regions(machine, rows, rank=rank, side=side)
    return RowAnswers(machine.predict(rows) if values else rows[:0, 0], regions)


def warn_level(confidence: float, n: int, consequence: str, which: str = "") -> None:
    """Warn that `n` labelled rows are too few for a level, and name the largest they support."""
    rows = "labelled row supports" if n == 1 and not which else f"labelled rows{which} support"
    warnings.warn(
        f"{n} {rows} a confidence of at most {n}/{n + 1} = {n / (n + 1):.4g}; at {confidence:g} {consequence}.",
        TooFewLabelsWarning,
        stacklevel=4,
    )


class RidgeConfidenceMachine(MachineEstimator, NumberTransducer):
    """Prediction regions for ridge regression that cover with the stated probability, exactly.

    Full conformal prediction around (kernel) ridge regression (Nouretdinov, Melluish, Vovk 2001. Ridge regression
    confidence machine. ICML): a region holds every label that would not make its row's residual nonconforming among
    those of the completed sample. Rows need only be exchangeable; no label is set aside.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel name of scikit-learn, ``"exponential"``, ``"precomputed"``, or a symmetric function of two rows
        (arrays of shape (d,), standardised if the features are) that returns a number.
    width : float or "median", default="median"
        Length scale of the kernel (see `transduce.device.kernels.Kernel`); the median distance between rows.
    ridge : float, default=1.0
        Added to the diagonal of the kernel matrix.
    degree, coef0 : float, default=3 and 1.0
        Of the polynomial kernel ``(<u, v> + coef0) ** degree``.
    fit_intercept : bool, default=True
        Whether to add an unpenalised constant.
    standardize : bool, default=True
        Whether to bring features to mean 0 and standard deviation 1, over all rows given to `fit`, but for a few that
        are far from all others.
    residual : {"auto", "plain", "deleted", "studentized"}, default="auto"
        What is compared: residuals, leave-one-out residuals, or what lies halfway between them. ``"auto"`` is
        ``"plain"`` with one setting and ``"studentized"`` where settings are chosen.
    settings : None, "leave-one-out" or list of Setting, default=None
        What to choose kernel, width and ridge from, in place of the estimator's own: a menu of twenty that suits most
        tables, or a list. At every candidate label of a row, that setting is used which has the smallest leave-one-out
        error on the sample completed with it. This keeps the guarantee.
    confidence : float, default=0.9
        Probability with which a region covers, unless a call says otherwise.
    max_memory_mb : float, default=512
        Unlabelled rows are answered in chunks whose working arrays fit into this; the ``l x l`` matrices do not count.
    missing_label : object, default=None
        A label that stands for "none", besides NaN, None, NA and NaT.

    Attributes
    ----------
    transduction_, answer_, guarantee_
        Labels completed by the ridge prediction (n,); `Answer` with regions at the unlabelled rows; what is guaranteed.
    width_ : float or None
        The kernel's width; None if it has none, or if settings were chosen.
    settings_ : tuple of Setting or None
        What was chosen from, with the widths that the features set. ``answer_.diagnostics`` says how often each was
        chosen (``"n_chosen"``, at the values) and has a part in a region (``"n_in_region"``).

    Notes
    -----
    The guarantee is for each row by itself: of the number of unlabelled rows outside their regions only the mean is
    guaranteed. With ``standardize=True`` or ``width="median"`` that of rows given only to ``predict_*`` is approximate,
    since they had no part in scale and width. Settings chosen by looking at the same labels (a grid search, say) void
    the exactness, and no code can notice; `settings` does not, see docs/methods/confidence_machine.md.

    Fitting costs ``l d^2`` operations for a linear kernel with ``d < l``, else ``l^3 / 3``; an unlabelled row about
    ``d^2`` or ``2 l^2``. With `settings`, about ``10 l^3`` for each kernel, and ``2 l^2`` a row for each setting.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import RidgeConfidenceMachine
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.where(np.isin(X[:, 0], [5, 12]), np.nan, 2 * X[:, 0] + np.tile([0.0, 1.0], 10))
    >>> RidgeConfidenceMachine(kernel="linear", ridge=1e-3, confidence=0.8).fit(X, y).answer_.regions
    Regions of 2 rows:
      0: [9.771, 11.06]
      1: [23.93, 25.17]
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d) whose label in y (n,) is missing; X is their kernel matrix if precomputed."""
        sample = validation.read_sample(self, X, y, device=True)
        unlabelled, estimated = self._fit_machine(sample, validation.numeric_labels(sample))
        answers = answer_numbers(self._machine, unlabelled, self.confidence)
        exact = promise_intervals(float(self.confidence))
        self.guarantee_ = explain(self._machine, sample, exact, estimated)
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=answers.values,
            status=np.full(unlabelled.shape[0], "answered"),
            guarantee=self.guarantee_,
            regions=answers.regions,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics=diagnose(self._machine, answers),
        )
        self.transduction_ = sample.complete(self.answer_.values)
        return self

    def predict(self, X: Any) -> Array:
        """Return the ridge prediction (m,) at rows X (m, d), seen in `fit` or not, without transducing again.

        With a precomputed kernel X holds kernel values with all n rows of `fit` and, as column n + 1, with themselves.
        Here that column is not needed; elsewhere unless the kernel's diagonal was constant in `fit`.
        """
        rows = self._new_rows(X, own_value=False)  # says so, if there was no fit
        return self._machine.predict(rows)

    def predict_region(
        self, X: Any, *, confidence: float | None = None, side: str = "two"
    ) -> Regions:
        """Return the `Regions` of rows X, as in `predict`, at a level that is the estimator's own by default.

        The side "lower" gives lower bounds ``[a, ∞)``, "upper" upper bounds ``(-∞, b]``, from signed residuals.
        """
        rows = self._new_rows(X)
        checks.check_choice("side", side, ("two", "lower", "upper"))
        level = self._level(confidence)
        return answer_numbers(self._machine, rows, level, side, values=False).regions

    def predict_interval(self, X: Any, *, confidence: float | None = None) -> Array:
        """Return the convex hull of what `predict_region` returns: ends (m, 2), infinite where there is a ray."""
        return self.predict_region(X, confidence=confidence).hull()

    def p_values(self, X: Any, y: Any, *, smooth: bool = False, random_state: Any = None) -> Array:
        """Return the p-values (m,) of labels y (m,) at rows: the share of residuals at least as large as the row's own.

        With `smooth` ties, the row itself included, count with a random weight between 0 and 1 (the same for all ties
        of a row), which makes p-values of true labels exactly uniform.
        """
        rows = self._new_rows(X)
        tau = tie_weights(rows.shape[0], smooth, random_state)
        return self._machine.label_p_values(rows, validation.read_candidates(y, len(tau)), tau)

    def envelope(self, X: Any, *, confidence: float | None = None) -> tuned_machine.RowEnvelope:
        """Return the leave-one-out error of every setting as one row's (1, d) label varies; for `EnvelopeDisplay`."""
        rows = self._new_rows(X)
        machine = self._machine
        if not isinstance(machine, TunedMachine):
            instead = "pass settings='leave-one-out' or a list of Setting"
            raise ValueError(f"One setting has no envelope: {instead}.")
        if len(rows) != 1:
            raise ValueError(f"Give one row, with shape (1, d); got {len(rows)} rows.")
        rank = nonconformity_rank(self._level(confidence), machine.n_labelled)
        return tuned_machine.row_envelope(machine, rows, rank=rank)


def diagnose(machine: AnyMachine, answers: RowAnswers) -> dict[str, Any]:
    """Return what the labels support, how many regions are no intervals or have no end, and what was chosen."""
    n_labelled, regions = machine.n_labelled, answers.regions
    bounded = np.isfinite(arrays.to_numpy(regions.pieces)).all()
    told = {
        "form": machine.form,
        "largest_confidence": n_labelled / (n_labelled + 1),
        "n_unions": int(np.count_nonzero(regions.n_pieces > 1)),
        "n_unbounded": 0
        if bounded
        else int(np.sum(~np.isfinite(arrays.to_numpy(regions.measure())))),
    }
    if not isinstance(machine, TunedMachine) or answers.winners is None or answers.used is None:
        return told
    return told | machine.menu.tell(answers.winners, n_in_region=answers.used.sum(axis=0).tolist())


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeConfidenceClassifier(MachineEstimator, ClassTransducer):
    """Sets of classes that hold the true one with the stated probability, exactly.

    `RidgeConfidenceMachine` on one-vs-rest ridge regression with targets -1 and +1. Each row is as nonconforming as
    its residual in the column of its own class; with two classes this is ridge regression on -1 and +1.

    Parameters
    ----------
    kernel, width, ridge, degree, coef0, fit_intercept, standardize, residual, confidence, max_memory_mb, missing_label
        As in `RidgeConfidenceMachine`.
    settings : None, "leave-one-out" or list of Setting, default=None
        As in `RidgeConfidenceMachine`; chosen for every candidate class of a row, by the leave-one-out error over the
        columns of all classes.
    label_conditional : bool, default=False
        Whether a row is compared with labelled rows of the candidate class only. The guarantee then holds
        within each class that has a label, rare ones included, and needs enough labels in each.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    p_unseen_ : float
        p-value of a class that no label shows, the same at every row. Where it exceeds ``1 - confidence``, no set rules
        such a class out, and ``answer_.unseen`` says so.
    transduction_, answer_
        Labels completed by the most credible class (n,); `Answer` with label sets, p-values, confidence and
        credibility. Its ``diagnostics`` say how often each setting was chosen: for the answered classes
        (``"n_chosen"``), and for all candidates (``"n_chosen_candidates"``).
    guarantee_, width_, settings_
        As in `RidgeConfidenceMachine`.

    Notes
    -----
    *Confidence* of a prediction is one less the second largest p-value: no level below it lets a second class into the
    set. *Credibility* is the largest p-value: low means that the row is unlike all classes, and at levels below one
    less the credibility its set is empty. The true class is outside no more often than guaranteed.

    The answer is the class with the largest p-value among all labelled rows, also with ``label_conditional=True``:
    there the p-values themselves cannot be compared, since that of a class with l_c labels is at least 1 / (l_c + 1).
    Ties go to the larger ridge prediction. An unlabelled row costs ``l * n_classes`` operations beyond the
    regression's.

    Examples
    --------
    >>> from transduce import RidgeConfidenceClassifier
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3], [0.15], [0.6]]
    >>> y = ["low", "low", "low", "low", "high", "high", "high", "high", None, None]
    >>> machine = RidgeConfidenceClassifier(ridge=0.1, confidence=0.8).fit(X, y)
    >>> machine.answer_.to_frame()[["value", "set", "credibility"]]  # the second lies between the classes
      value     set  credibility
    8   low (low,)     1.000000
    9   low     ()     0.111111
    """

    label_conditional: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Answer at the rows of X (n, d) whose class in y (n,) is missing; X is their kernel matrix if precomputed."""
        sample = validation.read_sample(self, X, y, device=True)
        classes, codes = validation.class_labels(sample)
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        unlabelled, estimated = self._fit_machine(sample, targets)
        self.classes_, self._codes, self._conditional = classes, codes, bool(self.label_conditional)
        n_labelled, alone = len(codes), int(np.sum(np.bincount(codes) == 1))
        self.p_unseen_ = float(p_values(0, alone, n_labelled))
        p, best, status, told = self._judge(unlabelled, np.ones(unlabelled.shape[0]))
        xp, none = arrays.namespace(p), arrays.zeros((p.shape[0],), p)
        rank = nonconformity_rank(self.confidence, n_labelled)
        exact = promise_sets(float(self.confidence), codes, by_class=self._conditional)
        self.guarantee_ = explain(self._machine, sample, exact, estimated)
        self.answer_ = Answer(
            rows=sample.unlabelled,
            values=classes[best],
            status=status,
            guarantee=self.guarantee_,
            label_sets=self._sets(p, self.confidence),
            p_values=p,
            unseen=none + (1.0 + alone - rank) > 0.5,
            p_unseen=none + self.p_unseen_,
            confidence=1.0 - xp.clip(xp.sort(p, axis=1)[:, -2], self.p_unseen_, None),
            credibility=xp.max(p, axis=1),
            classes=classes,
            index=None if sample.index is None else sample.index[sample.unlabelled],
            diagnostics={"form": self._machine.form, **told},
        )
        self.transduction_ = sample.complete(self.answer_.values.astype(object))
        return self

    def _judge(
        self, rows: Array, tau: Array
    ) -> tuple[Array, AnyArray, AnyArray, dict[str, object]]:
        """Return p-values, best class and status of rows, and what was chosen; ties weigh `tau` (m,)."""
        said = self._machine.class_p_values(rows, self._codes, tau)
        # The class of largest p-value, the larger prediction breaking ties; the names of the classes are on the host.
        p, scores = arrays.to_numpy(said.overall), arrays.to_numpy(said.scores)
        contest = np.where(p == p.max(axis=1, keepdims=True, initial=0.0), scores, -np.inf)
        # Predictions for targets -1 and +1 that differ by rounding only are equal.
        winners = contest >= contest.max(axis=1, keepdims=True, initial=-np.inf) - 1e-9
        best, status = (
            np.argmax(winners, axis=1),
            np.where(winners.sum(axis=1) > 1, "tied", "answered"),
        )
        told = {}
        if isinstance(self._machine, TunedMachine) and said.chosen is not None:
            menu, answered = self._machine.menu, said.chosen[np.arange(len(best)), best]
            told = menu.tell(answered, n_chosen_candidates=menu.count(said.chosen))
        return said.within if self._conditional else said.overall, best, status, told

    def _sets(self, p: Array, confidence: float) -> Mask:
        """Return which classes are possible, with a warning if the labels are too few for the level."""
        # With how many labelled rows a row is compared, for each class or for all.
        sizes = np.bincount(self._codes) if self._conditional else np.array([len(self._codes)])
        ranks = np.array([nonconformity_rank(confidence, n) for n in sizes])
        if np.any(ranks == 0) and p.shape[0]:
            rarest, which, consequence = int(np.argmin(sizes)), "", "every set is all classes"
            if self._conditional:
                which = f" of class {quoted(self.classes_[rarest])}"
                consequence = "that class is in every set"
            warn_level(confidence, int(sizes[rarest]), consequence, which)
        # p > 1 - confidence, in whole numbers: p (n + 1) > rank.
        return p * arrays.beside(sizes + 1.0, p) > arrays.beside(ranks + 0.5, p)

    def predict(self, X: Any) -> AnyArray:
        """Return the most credible class (m,) at rows, as in `RidgeConfidenceMachine`, without transducing again.

        With a precomputed kernel and no values of rows with themselves it is the class of the largest ridge prediction.
        """
        rows = self._new_rows(X, own_value=False)
        if np.isnan(arrays.to_numpy(rows[:, -1])).any():  # own kernel values that are not known
            return self.classes_[np.argmax(arrays.to_numpy(self._machine.predict(rows)), axis=1)]
        return self.classes_[self._judge(rows, np.ones(rows.shape[0]))[1]]

    def p_values(self, X: Any, *, smooth: bool = False, random_state: Any = None) -> Array:
        """Return the p-value of every class at rows (m, n_classes); smoothed, with one weight for all of a row."""
        rows = self._new_rows(X)
        return self._judge(rows, tie_weights(rows.shape[0], smooth, random_state))[0]

    def predict_set(self, X: Any, *, confidence: float | None = None) -> Mask:
        """Return which classes (m, n_classes), as in ``classes_``, are possible at rows; all where labels are too few.

        A class that no label shows is possible besides if ``p_unseen_`` exceeds ``1 - confidence``.
        """
        rows, level = self._new_rows(X), self._level(confidence)
        return self._sets(self._judge(rows, np.ones(rows.shape[0]))[0], level)
