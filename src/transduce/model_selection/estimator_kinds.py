"""What kind of estimator a user gave: checked, named, and asked what it can do before any fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from transduce.core.validation import Transducer
from transduce.core.words import quoted


def check_member(name: str, estimator: Any) -> None:
    """Raise a ValueError unless this is an estimator that can be fitted and predict.

    The class of one is not.
    """
    if not all(hasattr(estimator, method) for method in ("fit", "get_params")):
        raise ValueError(
            f"{name} must be an estimator with fit and predict; got {quoted(estimator)}."
        )
    check_predicts(name, estimator)


def check_predicts(name: str, estimator: Any) -> None:
    """Raise a ValueError if this is a class, or an estimator that has no answer."""
    if isinstance(estimator, type):
        word = estimator.__name__
        raise ValueError(f"{name} is the class {word}: give an instance of it, {word}().")
    last = last_step(estimator)
    # Before the fit of a stack only its class says that it predicts.
    predicts = hasattr(last, "predict") or hasattr(type(last), "predict")
    if not predicts and not is_transducer(estimator):
        raise ValueError(
            f"{name}: {type(last).__name__} cannot predict: end it with a regressor or a "
            "classifier."
        )


def name_members(what: str, estimators: Any) -> dict[str, Any]:
    """Return estimators by name, or raise a ValueError that says how to give them."""
    pairs = _pair_with_names(what, estimators)
    if not pairs:
        raise ValueError(
            f"{what} is empty: give at least one estimator, or None for the default ones."
        )
    named: dict[str, Any] = {}
    for name, estimator in pairs:
        if name is None:
            check_member(what, estimator)
            name = unused_name(type(estimator).__name__, named)
        else:
            check_member(f"{what}: {name!r}", estimator)
            if not isinstance(name, str) or name in named:
                raise ValueError(f"{what}: names must be text, each once; got {quoted(name)}.")
        named[name] = estimator
    return named


def _pair_with_names(what: str, estimators: Any) -> list[tuple[Any, Any]]:
    """Return names, None where there is none, and estimators."""
    if isinstance(estimators, dict):
        return list(estimators.items())
    is_single = isinstance(estimators, str) or hasattr(estimators, "fit")
    if is_single or not isinstance(estimators, Iterable):
        raise ValueError(
            f"{what} must be a dict or a list of estimators; got {quoted(estimators)}."
        )
    pairs: list[tuple[Any, Any]] = []
    for member in estimators:
        if isinstance(member, tuple) and len(member) == 2:
            pairs.append(member)
        else:
            pairs.append((None, member))
    return pairs


def unused_name(word: str, names: Collection[str]) -> str:
    """Return a name that is not among others, with a number if they have it already."""
    count = sum(other == word or other.startswith(f"{word}-") for other in names)
    return f"{word}-{count + 1}" if count else word


def last_step(estimator: Any) -> Any:
    """Return the estimator itself, or the end of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def can_continue(estimator: Any) -> bool:
    """Return whether an estimator can begin where an earlier one ended.

    It can if nothing that is fitted comes before it.
    """
    from sklearn.preprocessing import FunctionTransformer

    if not hasattr(last_step(estimator), "continue_from"):
        return False
    if not isinstance(estimator, Pipeline):
        return True
    return all(type(step) is FunctionTransformer for _, step in estimator.steps[:-1])


def takes_numbers(estimator: Any) -> bool:
    """Return whether an estimator is a semi-supervised one of scikit-learn's.

    For these -1 means "no label".
    """
    kinds = type(last_step(estimator)).__mro__
    return any(kind.__module__.startswith("sklearn.semi_supervised") for kind in kinds)


def is_transducer(estimator: Any) -> bool:
    """Return whether an estimator takes all rows at once, some without a label.

    Those of scikit-learn are included.
    """
    last = last_step(estimator)
    if isinstance(last, Transducer) or takes_numbers(last):
        return True
    return hasattr(last, "get_params") and "missing_label" in last.get_params()


def own_missing_label(missing_label: Any, estimators: Sequence[Any]) -> Any:
    """Return what stands for "no label".

    If it is not given, the first estimator that has a word for it says it.
    """
    if missing_label is not None:
        return missing_label
    for estimator in estimators:
        label = getattr(last_step(estimator), "missing_label", None)
        if label is not None:
            return label
    return None
